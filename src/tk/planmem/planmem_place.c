/* PlanMemory, one buffer: the place that costs least.
 *
 * The obstacles of a slot (planmem_rules.c) leave gaps in the outline. Places worth a look are
 * the low end of each gap and, inside it, the places of buffers that it may share with:
 *
 *      |  obstacle  |   gap:  [ B ]      [ C  ]      |  obstacle |
 *                    ^        ^          ^
 *
 * The lowest place is taken when it makes the memory higher. Of the places below the height
 * reached so far the one with the fewest buffers of other pipes beneath it is taken; on ties one
 * over a buffer of the own pipe before fresh memory, then the lowest.
 *
 * Upgrades (level 1). A single buffer may take its place as it is, apart from the multi-buffers
 * of its loop, or with as many slots as one of them; a multi-buffer may also take the place of
 * an earlier single buffer of its loop, which then gets the missing slots. The way that ends
 * lowest is taken, on ties the one with fewer slots.
 */
#include "planmem_internal.h"

#define MAX_CANDIDATES 256 /* places compared for one slot */

typedef struct slot_offset {
    int64_t offset;
    uint32_t cross; /* slots of other pipes beneath it */
    bool fresh;     /* no slot of the own pipe beneath it */
} slot_offset;

typedef struct slot_search {
    pm_state *m;
    uint32_t buffer, slot, multi;
    bool first;     /* of the buffer's free slots: the one that a failed plan is known by */
    int64_t height; /* of the outline */
    uint32_t n_apart, n_over;
    uint32_t next; /* first of `over` that may start a place */
    uint32_t tried;
    bool found, done; /* done: no later place is better */
    slot_offset best;
} slot_search;

static int64_t align_up(int64_t offset, int64_t alignment)
{
    return ot_ceil_div(offset, alignment) * alignment;
}

/* Single, in a loop, and free to get more slots. */
static bool can_upgrade(const pm_state *m, uint32_t b)
{
    const ot_buffer *x = m->buffers[b];
    return m->multi[b] == 1 && x->multi == 1 && x->fixed[0] < 0 && x->loop != OT_NONE;
}

/* Split the outline into obstacles and slots that may be shared. `lift`: earlier single buffers
 * of the loop count as if they had as many slots. */
static void split_outline(slot_search *s, ot_reuse_level level, bool lift)
{
    pm_state *m = s->m;
    const ot_buffer *x = m->buffers[s->buffer];
    s->n_apart = s->n_over = 0;
    s->height = 0;
    for (uint32_t i = 0; i < m->n_outline; i++) {
        const pm_slot *p = &m->outline[i];
        const ot_buffer *y = m->buffers[p->buffer];
        uint32_t multi = m->multi[p->buffer];
        if (lift && can_upgrade(m, p->buffer) && y->loop == x->loop) multi = s->multi;
        bool share = p->buffer != s->buffer && !pm_meet(x, y) &&
                     pm_may_share(m->kernel, (pm_turn){x, s->multi, s->slot},
                                  (pm_turn){y, multi, p->slot}, level);
        if (share)
            m->over[s->n_over++] = *p;
        else
            m->apart[s->n_apart++] = *p;
        s->height = ot_max(s->height, p->end);
    }
    m->work += m->n_outline;
}

static void consider(slot_search *s, int64_t offset)
{
    pm_state *m = s->m;
    const ot_buffer *x = m->buffers[s->buffer];
    if (s->first && pm_is_failed(m, s->buffer, s->multi, offset)) return;
    bool grows = offset + x->size > s->height;
    s->tried++;
    if (grows || m->lowest || s->tried == MAX_CANDIDATES) s->done = true;
    if (grows && s->found) return;
    slot_offset p = {.offset = offset, .fresh = true};
    for (uint32_t i = 0; i < s->n_over && m->over[i].offset < offset + x->size; i++) {
        if (m->over[i].end <= offset) continue;
        const ot_buffer *y = m->buffers[m->over[i].buffer];
        if (pm_cross_pipe(x, y)) p.cross++;
        if (pm_same_pipe(x, y)) p.fresh = false;
    }
    m->work += s->n_over;
    if (!s->found || p.cross < s->best.cross ||
        (p.cross == s->best.cross && !p.fresh && s->best.fresh))
        s->best = p;
    s->found = true;
    if (p.cross == 0 && !p.fresh) s->done = true;
}

/* The places in the gap [lower, upper). */
static void consider_gap(slot_search *s, int64_t lower, int64_t upper)
{
    const pm_state *m = s->m;
    const ot_buffer *x = m->buffers[s->buffer];
    int64_t offset = align_up(lower, x->align);
    while (offset <= upper - x->size && !s->done) {
        consider(s, offset);
        int64_t last = offset;
        for (; s->next < s->n_over && offset <= last; s->next++)
            offset = align_up(m->over[s->next].offset, x->align);
        if (offset <= last) return;
        s->next--; /* it may be tried in a later gap */
    }
}

/* A place for one slot, nothing beyond the capacity. */
static bool find_slot(slot_search *s, ot_reuse_level level, bool lift)
{
    pm_state *m = s->m;
    split_outline(s, level, lift);
    s->found = s->done = false;
    s->next = s->tried = 0;
    int64_t edge = 0;
    for (uint32_t i = 0; i < s->n_apart && !s->done; i++) {
        if (m->apart[i].offset > edge) consider_gap(s, edge, m->apart[i].offset);
        edge = ot_max(edge, m->apart[i].end);
    }
    if (!s->done) consider_gap(s, edge, m->capacity);
    return s->found;
}

/* Place the free slots of b from number `from` on. */
static bool place_slots(pm_state *m, uint32_t b, uint32_t from, ot_reuse_level level, bool lift)
{
    const ot_buffer *x = m->buffers[b];
    slot_search s = {.m = m, .buffer = b, .multi = m->multi[b], .first = from == 0};
    for (uint32_t k = from; k < m->multi[b]; k++) {
        if (k < x->multi && x->fixed[k] >= 0) continue;
        s.slot = k;
        if (!find_slot(&s, level, lift)) return false;
        pm_insert(m, (pm_slot){s.best.offset, s.best.offset + x->size, b, k});
        s.first = false;
    }
    return true;
}

/* ---- earlier single buffers that become multi-buffers ---- */

/* Do all slots that lie over slot 0 of c suit it with the slots that it has now? */
static bool neighbours_agree(pm_state *m, uint32_t c)
{
    const pm_slot *own = NULL;
    for (uint32_t i = 0; i < m->n_outline && !own; i++)
        if (m->outline[i].buffer == c) own = &m->outline[i];
    for (uint32_t i = 0; own && i < m->n_outline; i++) {
        const pm_slot *p = &m->outline[i];
        if (p->buffer == c || p->offset >= own->end || p->end <= own->offset) continue;
        const pm_turn first = {m->buffers[c], m->multi[c], 0},
                      over = {m->buffers[p->buffer], m->multi[p->buffer], p->slot};
        if (!pm_may_share(m->kernel, first, over, OT_LEVEL_1)) return false;
    }
    m->work += m->n_outline;
    return true;
}

/* Give the single buffers that b was laid over the slots they miss. */
static bool lift_beneath(pm_state *m, uint32_t b)
{
    const ot_buffer *x = m->buffers[b];
    bool any = false;
    for (uint32_t i = 0; i < m->n_outline; i++) {
        const pm_slot *p = &m->outline[i];
        if (p->buffer != b) continue;
        for (uint32_t j = 0; j < m->n_outline && m->outline[j].offset < p->end; j++) {
            const pm_slot *q = &m->outline[j];
            if (q->end <= p->offset || !can_upgrade(m, q->buffer) ||
                m->buffers[q->buffer]->loop != x->loop)
                continue;
            if (pm_same_pipe(x, m->buffers[q->buffer])) continue;
            m->upgraded_by[q->buffer] = b;
            any = true;
        }
        m->work += m->n_outline;
    }
    if (!any) return true;
    for (uint32_t c = 0; c < m->n; c++)
        if (m->upgraded_by[c] == b) m->multi[c] = m->multi[b];
    for (uint32_t c = 0; c < m->n; c++)
        if (m->upgraded_by[c] == b &&
            (!neighbours_agree(m, c) || !place_slots(m, c, 1, OT_LEVEL_1, false)))
            return false;
    return true;
}

void pm_unplace(pm_state *m, uint32_t b)
{
    for (uint32_t c = 0; c < m->n; c++) {
        if (m->upgraded_by[c] != b) continue;
        pm_remove(m, c, 1);
        m->multi[c] = 1;
        m->upgraded_by[c] = OT_NONE;
    }
    pm_remove(m, b, 0);
    m->multi[b] = m->buffers[b]->multi;
}

/* ---- one buffer ---- */

static bool place_with(pm_state *m, uint32_t b, uint32_t multi, ot_reuse_level level, bool lift)
{
    m->multi[b] = multi;
    if (place_slots(m, b, 0, level, lift) && (!lift || lift_beneath(m, b))) return true;
    pm_unplace(m, b);
    return false;
}

/* Slot counts, as a bit set, of the placed multi-buffers that b might share with by an upgrade. */
static uint32_t upgrades(const pm_state *m, uint32_t b)
{
    uint32_t counts = 0;
    for (uint32_t i = 0; i < m->n_outline; i++) {
        uint32_t c = m->outline[i].buffer;
        if (m->multi[c] > 1 && m->buffers[c]->loop == m->buffers[b]->loop &&
            !pm_meet(m->buffers[b], m->buffers[c]))
            counts |= 1u << m->multi[c];
    }
    return counts;
}

/* Level 1: the way with the least growth. */
static bool place_level_1(pm_state *m, uint32_t b)
{
    uint32_t own = m->multi[b], best_multi = 0;
    uint32_t counts = 1u << own | (can_upgrade(m, b) ? upgrades(m, b) : 0);
    bool best_lift = false, can_lift = own > 1 && m->buffers[b]->loop != OT_NONE;
    int64_t best = INT64_MAX;
    for (uint32_t multi = own; multi <= OT_TK_MULTI_MAX; multi++)
        for (int lift = 0; lift <= (can_lift ? 1 : 0) && (counts >> multi & 1); lift++) {
            if (!place_with(m, b, multi, OT_LEVEL_1, lift)) continue;
            int64_t height = pm_height(m);
            if (height < best) {
                best = height;
                best_multi = multi;
                best_lift = lift;
            }
            pm_unplace(m, b);
        }
    return best_multi != 0 && place_with(m, b, best_multi, OT_LEVEL_1, best_lift);
}

bool pm_place(pm_state *m, uint32_t b, ot_reuse_level level)
{
    bool done = level == OT_LEVEL_1 ? place_level_1(m, b)
                                    : place_with(m, b, m->multi[b], level, false);
    if (done) m->level[b] = level;
    return done;
}
