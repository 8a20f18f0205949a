/* What a region needs of the fast memory: its kernel, planned.
 *
 *   region --region_kernel.c--> kernel --lifetimes, packing--> height, lower bound
 *
 * Tiles that are loaded or stored while others are computed (two slots, where DMA overlaps
 * compute) keep their memory for the whole loop: the cost model counts on transfers that wait
 * for nothing.
 *
 * Where transfers are DMA's, the places that are kept are PlanMemory's in the whole memory:
 * sharing makes pipes wait, and nothing is gained by leaving memory empty.
 *
 * The search is told to get as low as it can and given no capacity, since the caller decides
 * what a plan that is too high means: nothing on a cache, another tile on a scratchpad. Its
 * effort is bounded by steps, fewer for larger kernels, so that the plan of a graph takes its
 * time from the number of nodes, not from how hard its regions are to pack.
 */
#include "lowering.h"
#include "region_held.h"

#define CAPACITY   (INT64_C(1) << 56) /* no limit; messages in bits do not overflow */
#define STEPS      20000              /* for a kernel of a few operators */
#define STEPS_MIN  2000
#define VALUES_FEW 32

/* Steps that a kernel is worth: what its packing costs grows with the number of buffers, and so
 * does a step. */
static int64_t steps_for(const ot_kernel *k)
{
    if (k->n_values <= VALUES_FEW) return STEPS;
    return ot_max(STEPS_MIN, STEPS * VALUES_FEW / k->n_values);
}

static ot_status plan(const ot_kernel *k, const ot_target *t, ot_mem_mode mode, int64_t capacity,
                      ot_diag *d, ot_mem_plan **out)
{
    ot_tk_machine roomy = ot_target_tk_machine(t);
    ot_mem_options o = {.mode = mode,
                        .capacity = capacity,
                        .step_limit = steps_for(k),
                        .threads = 1,
                        .lifetimes = {.hold_multi = true}};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) /* targets made in code may not say */
        if (roomy.scopes[s].alignment < 1) roomy.scopes[s].alignment = 1;
    roomy.scopes[OT_SCOPE_L2].bytes = capacity;
    return ot_mem_plan_kernel(k, k->name, &roomy, &o, d, out);
}

/* The plan that the kernel keeps, in place of the search's: sequential, else level by level. */
static ot_status place(const ot_kernel *k, const ot_target *t, int64_t height, ot_diag *d,
                       ot_mem_plan **p)
{
    ot_diag local = {0};
    ot_mem_plan *own = NULL;
    if (!t->double_buffer) return OT_OK; /* no DMA: nothing waits for a transfer */
    ot_status st = plan(k, t, OT_MEM_AUTO, ot_max(height, t->fast_bytes), &local, &own);
    if (st == OT_E_BUDGET) return OT_OK; /* the search found what PlanMemory does not */
    if (st != OT_OK) return ot_fail(d, st, "%s", local.message);
    ot_mem_plan_free(*p);
    *p = own;
    return OT_OK;
}

static const ot_scope_plan *fast_plan(const ot_mem_plan *p)
{
    for (uint32_t s = 0; s < p->n_scopes; s++)
        if (p->scopes[s].scope == OT_SCOPE_L2) return &p->scopes[s];
    return NULL;
}

/* What node i's operations take in a tile, by the target's rates. */
static double seconds_of(const ot_graph *g, const ot_region *r, const ot_target *t, uint32_t i,
                         double work)
{
    const ot_node *n = &g->nodes[r->nodes[i].node];
    double rate = t->rate_elem;
    switch (ot_op_cost(n->op)) {
    case OT_COST_CONV:
        rate = ot_attr_int(n, "group", 1) > 1 ? t->rate_conv_depthwise : t->rate_conv;
        break;
    case OT_COST_GEMM: rate = t->rate_gemm; break;
    case OT_COST_TRANS: rate = t->rate_trans; break;
    case OT_COST_REDUCE:
    case OT_COST_NORM: rate = t->rate_reduce; break;
    case OT_COST_POOL: rate = t->rate_pool; break;
    default: break;
    }
    return t->node_overhead + (rate > 0 ? work / rate : 0);
}

/* What sharing stalls: how long each statement takes, then the pipes side by side. */
static ot_status find_stall(const ot_region_job *j, const ot_kernel *k, const ot_mem_plan *p,
                            const ot_region_held *h, double *out)
{
    const ot_target *t = j->t;
    double *seconds = OT_NEW_N(j->a, double, k->n_stmts + 1u);
    uint32_t n = 0;
    if (!seconds) return ot_fail_nomem(j->d);
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        const ot_tk_stmt *x = &k->stmts[s];
        const bool moves = x->op == OT_TK_LOAD || x->op == OT_TK_STORE;
        if (moves)
            seconds[s] = t->bw_slow > 0
                             ? (double)k->values[x->op == OT_TK_LOAD ? x->out[0] : x->in[0]].bytes /
                                   t->bw_slow
                             : 0;
        if (x->op != OT_TK_COMPUTE) continue;
        const uint32_t i = n < h->n_nodes ? h->nodes[n] : OT_NONE;
        n++;
        if (i != OT_NONE)
            seconds[s] = seconds_of(j->g, j->r, t, i, h->work[i]);
        else if (t->bw_fast > 0)
            seconds[s] = (double)k->values[x->out[0]].bytes / t->bw_fast;
    }
    return ot_region_stall(k, p, seconds, j->d, out);
}

ot_status ot_region_plan_held(const ot_region_job *j, ot_region_memory *out, ot_region_held *h,
                              ot_kernel **kernel)
{
    const ot_target *t = j->t;
    ot_diag *d = j->d;
    ot_kernel *k = NULL;
    ot_mem_plan *p = NULL;
    *out = (ot_region_memory){.proved = true};
    OT_TRY(ot_region_kernel_held(j, h, &k));
    ot_status st = ot_kernel_verify(k, k->name, d);
    if (st == OT_OK) st = plan(k, t, OT_MEM_SEARCH, CAPACITY, d, &p);
    const ot_scope_plan *l2 = st == OT_OK ? fast_plan(p) : NULL;
    if (l2)
        *out = (ot_region_memory){
            .height = l2->height, .lower_bound = l2->lower_bound, .proved = l2->proved};
    const bool too_much = l2 && ot_target_hard_limit(t) && l2->height > t->fast_bytes;
    if (l2 && (kernel || (t->double_buffer && !too_much))) {
        st = place(k, t, out->height, d, &p);
        l2 = fast_plan(p);
        out->arena = l2->height;
        out->mode = l2->mode;
        out->level = l2->level;
        out->cross_pipe = l2->n_cross_pipe;
        if (st == OT_OK && j->r->overlap && l2->n_cross_pipe > 0)
            st = find_stall(j, k, p, h, &out->stall);
    }
    if (st == OT_OK && kernel) {
        ot_mem_plan_apply(p, k);
        *kernel = k;
        k = NULL;
    }
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    return st;
}

/* requires a built region with its form set. Fails: OT_E_NOMEM, OT_E_INPUT (our bug). */
ot_status ot_region_plan_memory(const ot_graph *g, const ot_region *r, const ot_target *t,
                                ot_diag *d, ot_region_memory *out, ot_kernel **kernel)
{
    ot_arena *a = ot_arena_new();
    ot_region_held held = {0};
    if (!a) return ot_fail_nomem(d);
    ot_status st = ot_region_plan_held(&(ot_region_job){g, r, t, a, d}, out, &held, kernel);
    ot_arena_free(a);
    return st;
}
