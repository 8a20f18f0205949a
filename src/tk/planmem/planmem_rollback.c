/* PlanMemory, rollback: what happens when a buffer has no place.
 *
 *   order   A  B  C  D  E   E has no place at any level. Placements are undone from the last one
 *                           back, until E would
 *   placed  *  *  *  *  x   have a place: at C. C must not go where it was (the plan is remembered
 *                           as failed), and
 *   undone        *  *      C to E may only use levels below the one that C had: they share more,
 *                           and what that frees
 *   again         C' D' E'  is for E. After E the highest level is allowed again.
 *
 * Only buffers alive together with E can be in its way; others are undone on the way, since a
 * plan is a sequence of choices. A remembered plan is never made again in the attempt, so every
 * rollback leads to a new one and there are finitely many; their number is bounded besides.
 */
#include "planmem_internal.h"

bool pm_is_failed(const pm_state *m, uint32_t buffer, uint32_t multi, int64_t offset)
{
    for (uint32_t i = 0; i < m->n_failed; i++) {
        const pm_failed *f = &m->failed[i];
        if (f->buffer == buffer && f->multi == multi && f->offset == offset) return true;
    }
    return false;
}

bool pm_is_spent(pm_state *m)
{
    m->was_cut = m->was_cut || m->work > m->max_work;
    return m->work > m->max_work;
}

/* Where the first free slot of b is. */
static int64_t first_offset(const pm_state *m, uint32_t b)
{
    const ot_buffer *x = m->buffers[b];
    uint32_t first = 0;
    while (first < x->multi && x->fixed[first] >= 0) first++;
    for (uint32_t i = 0; i < m->n_outline; i++)
        if (m->outline[i].buffer == b && m->outline[i].slot == first) return m->outline[i].offset;
    OT_BUG("buffer is not placed");
}

static bool has_place(pm_state *m, uint32_t b)
{
    if (!pm_place(m, b, m->floor)) return false;
    pm_unplace(m, b);
    return true;
}

bool pm_roll_back(pm_state *m, const uint32_t *order, uint32_t *i)
{
    uint32_t b = order[*i];
    if (m->rollbacks == m->max_rollbacks || pm_is_spent(m)) return false;
    for (uint32_t j = *i; j-- > 0;) {
        uint32_t c = order[j];
        pm_failed made = {c, m->multi[c], first_offset(m, c)};
        pm_unplace(m, c);
        if (!pm_meet(m->buffers[b], m->buffers[c]) || !has_place(m, b)) continue;
        m->failed[m->n_failed++] = made;
        ot_reuse_level below = m->level[c] > m->floor ? m->level[c] - 1 : m->floor;
        for (uint32_t q = j; q <= *i; q++)
            if (below < m->limit[order[q]] || q == j) m->limit[order[q]] = below;
        m->rollbacks++;
        *i = j;
        return true;
    }
    return false;
}
