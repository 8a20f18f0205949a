/* The order in which a runtime takes the steps: backwards in depth from what nobody reads, the
 * latest made first. (ONNX Runtime's default order: Graph::ReverseDFSFrom with nodes compared by
 * index. What its passes make anew has larger indices than what the file says: fused and blocked
 * operators behind all others, changes of layout at blocked results behind those.)
 *
 *   file     a -> b -> d      c -> d        d reads b and c: c, the later one, is gone down first
 *   order    c a b d
 *
 */
#include "simulate.h"

typedef struct visit_entry {
    uint32_t step;
    bool leaves;
} visit_entry;

typedef struct sorter {
    ot_sim_plan *p;
    ot_arena *a;
    uint32_t *maker; /* [2 * n_values] step that makes it */
    bool *seen;      /* [n] */
    visit_entry *stack;
    size_t n_stack, cap_stack;
    ot_sim_step *out; /* [n_out] */
    size_t n_out;
} sorter;

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
        for (size_t j = x->n_stack - 1; j > first && x->p->steps[x->stack[j - 1].step].rank >
                                                         x->p->steps[x->stack[j].step].rank;
             j--) {
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
            x->out[x->n_out++] = x->p->steps[e.step];
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
    uint64_t x = (*(const ot_sim_step *const *)a)->rank, y = (*(const ot_sim_step *const *)b)->rank;
    return x < y ? -1 : x > y;
}

ot_status ot_sim_order(ot_sim_plan *p, ot_arena *a)
{
    const size_t n_values = 2 * (size_t)p->g->n_values;
    sorter x = {.p = p, .a = a};
    x.maker = OT_NEW_N(a, uint32_t, n_values + 1);
    x.seen = OT_NEW_N(a, bool, p->n + 1);
    x.out = OT_NEW_N(a, ot_sim_step, p->n + 1);
    bool *read = OT_NEW_N(a, bool, n_values + 1);
    const ot_sim_step **leaves = OT_NEW_N(a, const ot_sim_step *, p->n + 1);
    size_t n_leaves = 0;
    if (!x.maker || !x.seen || !x.out || !read || !leaves) return OT_E_NOMEM;
    for (size_t v = 0; v < n_values; v++) x.maker[v] = OT_NONE;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_sim_step *s = &p->steps[k];
        if (s->is_gone) continue;
        for (uint32_t j = 0; j < s->n_writes; j++) x.maker[s->writes[j]] = k;
        for (uint32_t j = 0; j < s->n_reads; j++) read[s->reads[j]] = true;
    }
    for (uint32_t k = 0; k < p->n; k++) {
        bool leaf = !p->steps[k].is_gone;
        for (uint32_t j = 0; j < p->steps[k].n_writes; j++) leaf &= !read[p->steps[k].writes[j]];
        if (leaf) leaves[n_leaves++] = &p->steps[k];
    }
    qsort(leaves, n_leaves, sizeof *leaves, by_rank);
    for (size_t k = 0; k < n_leaves; k++)
        if (!push(&x, (uint32_t)(leaves[k] - p->steps), false)) return OT_E_NOMEM;
    OT_TRY(walk(&x));
    p->steps = x.out;
    p->n = p->cap = x.n_out;
    return OT_OK;
}
