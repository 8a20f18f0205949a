/* The order in which a runtime takes the steps: backwards in depth from what nobody reads, the
 * latest made first. (ONNX Runtime's default order: Graph::ReverseDFSFrom with nodes compared by
 * index. What its passes make anew has larger indices than what the file says: fused and blocked
 * operators behind all others, changes of layout at blocked results behind those.)
 *
 *   file     a -> b -> d      c -> d        d reads b and c: c, the later one, is gone down first
 *   order    c a b d
 *
 * Changes to plain layouts are made in the order of a hash table of addresses, which no two
 * sessions share.
 */
#include "simulate.h"

typedef struct visit_entry {
    uint32_t step;
    bool leaves;
} visit_entry;

/* What nobody reads. */
typedef struct leaf {
    uint64_t rank;
    uint32_t step;
} leaf;

typedef struct sorter {
    const ot_sim_schedule *p;
    ot_arena *a;
    uint32_t order;  /* of changes to plain */
    uint32_t *maker; /* [2 * n_values] step that makes it */
    bool *is_read;   /* [2 * n_values] */
    bool *seen;      /* [n] */
    visit_entry *stack;
    size_t n_stack, cap_stack;
    leaf *leaves; /* [n_leaves] */
    size_t n_leaves;
    uint32_t *out; /* [n_out] steps */
    size_t n_out;
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

static uint64_t rank_of(const sorter *x, uint32_t step)
{
    const ot_sim_step *s = &x->p->steps[step];
    if (!s->is_turn) return s->rank;
    return 2 * OT_RANK_LATER + turn_of(s->rank - OT_RANK_LATER, x->order);
}

static bool push(sorter *x, uint32_t step, bool leaves)
{
    return OT_PUSH(x->a, x->stack, x->n_stack, x->cap_stack, ((visit_entry){step, leaves}));
}

/* The makers of what a step reads, by rank, each behind those of less rank. */
static bool push_makers(sorter *x, uint32_t step)
{
    const ot_sim_step *s = &x->p->steps[step];
    size_t first = x->n_stack;
    for (uint32_t k = 0; k < s->n_reads; k++) {
        uint32_t by = x->maker[s->reads[k]];
        if (by == OT_NONE || x->seen[by]) continue;
        if (!push(x, by, false)) return false;
        for (size_t j = x->n_stack - 1;
             j > first && rank_of(x, x->stack[j - 1].step) > rank_of(x, x->stack[j].step); j--) {
            visit_entry t = x->stack[j];
            x->stack[j] = x->stack[j - 1];
            x->stack[j - 1] = t;
        }
    }
    return true;
}

static ot_status walk(sorter *x)
{
    while (x->n_stack) {
        visit_entry e = x->stack[--x->n_stack];
        if (e.leaves) {
            x->out[x->n_out++] = e.step;
            continue;
        }
        if (x->seen[e.step]) continue;
        x->seen[e.step] = true;
        if (!push(x, e.step, true) || !push_makers(x, e.step)) return OT_E_NOMEM;
    }
    return OT_OK;
}

static int by_rank(const void *a, const void *b)
{
    const leaf *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* x->out: the steps in that order of changes to plain. */
static ot_status find_order(sorter *x, uint32_t order)
{
    x->order = order;
    x->n_out = x->n_stack = x->n_leaves = 0;
    memset(x->seen, 0, x->p->n * sizeof *x->seen);
    for (uint32_t k = 0; k < x->p->n; k++) {
        const ot_sim_step *s = &x->p->steps[k];
        bool is_leaf = !s->is_gone;
        for (uint32_t j = 0; j < s->n_writes && is_leaf; j++) is_leaf = !x->is_read[s->writes[j]];
        if (is_leaf) x->leaves[x->n_leaves++] = (leaf){rank_of(x, k), k};
    }
    qsort(x->leaves, x->n_leaves, sizeof *x->leaves, by_rank);
    for (size_t k = 0; k < x->n_leaves; k++)
        if (!push(x, x->leaves[k].step, false)) return OT_E_NOMEM;
    return walk(x);
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

ot_status ot_sim_order(ot_sim_schedule *p, ot_sim_orders orders, ot_arena *a)
{
    const size_t n_values = 2 * (size_t)p->g->n_values;
    sorter x = {.p = p, .a = a};
    x.maker = OT_NEW_N(a, uint32_t, n_values + 1);
    x.is_read = OT_NEW_N(a, bool, n_values + 1);
    x.seen = OT_NEW_N(a, bool, p->n + 1);
    x.out = OT_NEW_N(a, uint32_t, 2 * (p->n + 1));
    x.leaves = OT_NEW_N(a, leaf, p->n + 1);
    ot_sim_step *steps = OT_NEW_N(a, ot_sim_step, p->n + 1);
    if (!x.maker || !x.is_read || !x.seen || !x.out || !x.leaves || !steps) return OT_E_NOMEM;
    for (size_t v = 0; v < n_values; v++) x.maker[v] = OT_NONE;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_sim_step *s = &p->steps[k];
        if (s->is_gone) continue;
        for (uint32_t j = 0; j < s->n_writes; j++) x.maker[s->writes[j]] = k;
        for (uint32_t j = 0; j < s->n_reads; j++) x.is_read[s->reads[j]] = true;
    }
    OT_TRY(find_order(&x, orders.order));
    const uint32_t *first = x.out;
    const size_t n = x.n_out;
    x.out += n;
    OT_TRY(compare_orders(&x, first, orders.n, &p->other_orders));
    for (size_t k = 0; k < n; k++) steps[k] = p->steps[first[k]];
    p->steps = steps;
    p->n = p->cap = n;
    return OT_OK;
}
