/* Units behind those that make what they read: backwards in depth from what nobody reads, the unit
 * of more rank first. (ONNX Runtime: Graph::ReverseDFSFrom with nodes compared by index.)
 *
 *   makers   b: a    d: b c                 c, of more rank than b, is gone down first
 *   order    c a b d
 */
#include "simulate.h"

typedef struct visited {
    uint64_t rank;
    uint32_t unit;
    bool leaves;
} visited;

struct ot_sim_depth {
    const ot_sim_makers *m;
    ot_arena *a;
    bool *is_read, *seen; /* [n] */
    visited *stack;
    size_t n_stack, cap;
};

ot_status ot_sim_makers_start(ot_sim_makers *m, uint32_t n, ot_arena *a)
{
    *m = (ot_sim_makers){.a = a};
    m->first = OT_NEW_N(a, uint32_t, n + 1u);
    m->is_there = OT_NEW_N(a, bool, n + 1u);
    return m->first && m->is_there ? OT_OK : OT_E_NOMEM;
}

ot_status ot_sim_makers_add(ot_sim_makers *m, uint32_t maker)
{
    return OT_PUSH(m->a, m->all, m->n_all, m->cap, maker) ? OT_OK : OT_E_NOMEM;
}

void ot_sim_makers_end(ot_sim_makers *m, bool is_there)
{
    m->is_there[m->n] = is_there;
    m->first[++m->n] = (uint32_t)m->n_all;
}

static bool push(ot_sim_depth *d, uint64_t rank, uint32_t unit, bool leaves)
{
    return OT_PUSH(d->a, d->stack, d->n_stack, d->cap, ((visited){rank, unit, leaves}));
}

/* By rank, each behind those of less rank. */
static bool push_makers(ot_sim_depth *d, const uint64_t *rank, uint32_t unit)
{
    const size_t first = d->n_stack;
    for (uint32_t k = d->m->first[unit]; k < d->m->first[unit + 1]; k++) {
        const uint32_t by = d->m->all[k];
        if (d->seen[by]) continue;
        if (!push(d, rank[by], by, false)) return false;
        for (size_t j = d->n_stack - 1; j > first && d->stack[j - 1].rank > d->stack[j].rank; j--) {
            const visited t = d->stack[j];
            d->stack[j] = d->stack[j - 1];
            d->stack[j - 1] = t;
        }
    }
    return true;
}

static int by_rank(const void *a, const void *b)
{
    const visited *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

ot_status ot_sim_depth_new(const ot_sim_makers *m, ot_arena *a, ot_sim_depth **out)
{
    ot_sim_depth *d = *out = OT_NEW(a, ot_sim_depth);
    if (!d) return OT_E_NOMEM;
    *d = (ot_sim_depth){.m = m, .a = a};
    d->is_read = OT_NEW_N(a, bool, m->n + 1u);
    d->seen = OT_NEW_N(a, bool, m->n + 1u);
    if (!d->is_read || !d->seen) return OT_E_NOMEM;
    for (size_t k = 0; k < m->n_all; k++) d->is_read[m->all[k]] = true;
    return OT_OK;
}

ot_status ot_sim_depth_order(ot_sim_depth *d, const uint64_t *rank, uint32_t *out, uint32_t *n)
{
    *n = 0;
    d->n_stack = 0;
    memset(d->seen, 0, d->m->n * sizeof *d->seen);
    for (uint32_t k = 0; k < d->m->n; k++)
        if (d->m->is_there[k] && !d->is_read[k] && !push(d, rank[k], k, false)) return OT_E_NOMEM;
    if (d->n_stack) qsort(d->stack, d->n_stack, sizeof *d->stack, by_rank);
    while (d->n_stack) {
        const visited e = d->stack[--d->n_stack];
        if (e.leaves) {
            out[(*n)++] = e.unit;
            continue;
        }
        if (d->seen[e.unit]) continue;
        d->seen[e.unit] = true;
        if (!push(d, 0, e.unit, true) || !push_makers(d, rank, e.unit)) return OT_E_NOMEM;
    }
    return OT_OK;
}
