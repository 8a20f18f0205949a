/* The order in which a runtime takes the steps (ONNX Runtime's default order, simulate_depth.c).
 * What its passes make anew has larger indices than what the file says: fused and blocked operators
 * behind all others, changes of layout at blocked results behind those.
 *
 * Changes to plain layouts are made in the order of a hash table of addresses, which no two
 * sessions share.
 */
#include "simulate.h"

typedef struct sorter {
    const ot_sim_schedule *p;
    ot_sim_depth *depth;
    uint64_t *rank; /* [n] */
    uint32_t *out;  /* [n_out] steps */
    uint32_t n_out;
} sorter;

/* Rank of the k-th step among the changes to plain: 0, as they come; 1, the other way round; else
 * some order or other. */
static uint64_t turn_of(uint64_t k, uint32_t order)
{
    uint64_t state = k * 64 + order;
    return order == 0   ? k
           : order == 1 ? OT_RANK_LATER - 1 - k
                        : ot_next_random(&state) % OT_RANK_LATER;
}

/* x->out: the steps in that order of changes to plain. */
static ot_status find_order(sorter *x, uint32_t order)
{
    for (uint32_t k = 0; k < x->p->n; k++) {
        const ot_sim_step *s = &x->p->steps[k];
        x->rank[k] = s->is_turn ? 2 * OT_RANK_LATER + turn_of(s->rank - OT_RANK_LATER, order)
                                : s->rank;
    }
    return ot_sim_depth_order(x->depth, x->rank, x->out, &x->n_out);
}

/* In which of n orders the steps are others than `first` [n_out]. */
static ot_status compare_orders(sorter *x, const uint32_t *first, uint32_t n, uint32_t *others)
{
    uint32_t turns = 0;
    for (size_t k = 0; k < x->p->n; k++) turns += x->p->steps[k].is_turn;
    for (uint32_t order = 1; order < n && turns > 1; order++) {
        OT_TRY(find_order(x, order));
        if (memcmp(x->out, first, x->n_out * sizeof *first) != 0) *others |= 1u << order;
    }
    return OT_OK;
}

/* Who makes what the steps read. */
static ot_status list_makers(const ot_sim_schedule *p, ot_sim_makers *m, ot_arena *a)
{
    const size_t n_values = 2 * (size_t)p->g->n_values;
    uint32_t *maker = OT_NEW_N(a, uint32_t, n_values + 1);
    if (!maker) return OT_E_NOMEM;
    OT_TRY(ot_sim_makers_start(m, (uint32_t)p->n, a));
    for (size_t v = 0; v < n_values; v++) maker[v] = OT_NONE;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_sim_step *s = &p->steps[k];
        for (uint32_t j = 0; j < s->n_writes && !s->is_gone; j++) maker[s->writes[j]] = k;
    }
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_sim_step *s = &p->steps[k];
        for (uint32_t j = 0; j < s->n_reads && !s->is_gone; j++)
            if (maker[s->reads[j]] != OT_NONE) OT_TRY(ot_sim_makers_add(m, maker[s->reads[j]]));
        ot_sim_makers_end(m, !s->is_gone);
    }
    return OT_OK;
}

/* Steps [n_all] as order [n] says, in their place; those that it leaves out come last. order has
 * room for all, and is lost. */
static ot_status put_in_order(ot_sim_step *steps, size_t n_all, uint32_t *order, size_t n,
                              ot_arena *a)
{
    bool *taken = OT_NEW_N(a, bool, n_all + 1);
    if (!taken) return OT_E_NOMEM;
    for (size_t k = 0; k < n; k++) taken[order[k]] = true;
    for (size_t k = 0; k < n_all; k++)
        if (!taken[k]) order[n++] = (uint32_t)k;
    for (size_t k = 0; k < n_all; k++) {
        if (order[k] == k) continue;
        const ot_sim_step first =
            steps[k]; /* of a circle: each takes the place of the one before */
        size_t at = k;
        while (order[at] != k) {
            const uint32_t from = order[at];
            steps[at] = steps[from];
            order[at] = (uint32_t)at;
            at = from;
        }
        steps[at] = first;
        order[at] = (uint32_t)at;
    }
    return OT_OK;
}

static ot_status order_with(ot_sim_schedule *p, ot_sim_orders orders, ot_arena *a)
{
    ot_sim_makers makers;
    sorter x = {.p = p};
    x.rank = OT_NEW_N(a, uint64_t, p->n + 1);
    x.out = OT_NEW_N(a, uint32_t, 2 * (p->n + 1));
    if (!x.rank || !x.out) return OT_E_NOMEM;
    OT_TRY(list_makers(p, &makers, a));
    OT_TRY(ot_sim_depth_new(&makers, a, &x.depth));
    OT_TRY(find_order(&x, orders.order));
    uint32_t *first = x.out;
    const size_t n = x.n_out;
    x.out += n;
    OT_TRY(compare_orders(&x, first, orders.n, &p->other_orders));
    OT_TRY(put_in_order(p->steps, p->n, first, n, a));
    p->n = p->cap = n;
    return OT_OK;
}

ot_status ot_sim_order(ot_sim_schedule *p, ot_sim_orders orders)
{
    ot_arena *a = ot_arena_new();
    const ot_status st = a ? order_with(p, orders, a) : OT_E_NOMEM;
    ot_arena_free(a);
    return st;
}
