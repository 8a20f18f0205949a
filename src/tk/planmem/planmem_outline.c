/* PlanMemory, the outline: all placed slots in order of their offsets, in one array. Slots of
 * buffers that share memory lie over each other in it. A kernel has at most some thousand
 * buffers; moving the rest of an array is cheaper than any tree then. */
#include "planmem_internal.h"

static bool before(const pm_slot *a, const pm_slot *b)
{
    if (a->offset != b->offset) return a->offset < b->offset;
    if (a->buffer != b->buffer) return a->buffer < b->buffer;
    return a->slot < b->slot;
}

void pm_insert(pm_state *m, pm_slot s)
{
    uint32_t lo = 0, hi = m->n_outline;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (before(&m->outline[mid], &s))
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(&m->outline[lo + 1], &m->outline[lo], (m->n_outline - lo) * sizeof *m->outline);
    m->outline[lo] = s;
    m->n_outline++;
}

void pm_remove(pm_state *m, uint32_t buffer, uint32_t from)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->n_outline; i++) {
        const pm_slot *s = &m->outline[i];
        const ot_buffer *b = m->buffers[buffer];
        bool fixed = s->slot < b->multi && b->fixed[s->slot] >= 0;
        if (s->buffer == buffer && s->slot >= from && !fixed) continue;
        m->outline[kept++] = *s;
    }
    m->n_outline = kept;
}

int64_t pm_height(const pm_state *m)
{
    int64_t height = 0;
    for (uint32_t i = 0; i < m->n_outline; i++) height = ot_max(height, m->outline[i].end);
    return height;
}

bool pm_is_free(const ot_buffer *b)
{
    for (uint32_t k = 0; k < b->multi; k++)
        if (b->fixed[k] < 0) return true;
    return false;
}
