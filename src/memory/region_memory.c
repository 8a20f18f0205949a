/* What a region needs of the fast memory: its kernel, planned.
 *
 *   region --region_kernel.c--> kernel --lifetimes, packing--> height, lower bound
 *
 * Tiles that are loaded or stored while others are computed (two slots, where DMA overlaps compute) keep their memory for the
 * whole loop: the cost model counts on transfers that wait for nothing.
 *
 * The search is told to get as low as it can and given no capacity, since the caller decides what a plan that is too high
 * means: nothing on a cache, another tile on a scratchpad. Its effort is bounded by steps, fewer for larger kernels, so that
 * the plan of a graph takes its time from the number of nodes, not from how hard its regions are to pack.
 */
#include "memory.h"

#define CAPACITY   (INT64_C(1) << 56) /* no limit; messages in bits do not overflow */
#define STEPS      20000              /* for a kernel of a few operators */
#define STEPS_MIN  2000
#define VALUES_FEW 32

/* Steps that a kernel is worth: what its packing costs grows with the number of buffers, and so does a step. */
static int64_t steps_for(const ot_kernel *k)
{
    if (k->n_values <= VALUES_FEW) return STEPS;
    return ot_max(STEPS_MIN, STEPS * VALUES_FEW / k->n_values);
}

static ot_status plan(const ot_kernel *k, const ot_target *t, ot_diag *d, ot_mem_plan **out)
{
    ot_target roomy = *t;
    ot_mem_options o = {
        .mode = OT_MEM_SEARCH, .capacity = CAPACITY, .step_limit = steps_for(k), .threads = 1, .lifetimes = {.hold_multi = true}};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) /* targets made in code may not say */
        if (roomy.scopes[s].alignment < 1) roomy.scopes[s].alignment = 1;
    roomy.scopes[OT_SCOPE_L2].bytes = CAPACITY;
    return ot_mem_plan_kernel(k, k->name, &roomy, &o, d, out);
}

/* requires a built region with its form set. Fails: OT_E_NOMEM, OT_E_INPUT (our bug). */
ot_status ot_region_plan_memory(const ot_graph *g, const ot_region *r, const ot_target *t, ot_diag *d, ot_region_memory *out,
                                ot_kernel **kernel)
{
    ot_kernel *k = NULL;
    ot_mem_plan *p = NULL;
    *out = (ot_region_memory){.proved = true};
    OT_TRY(ot_region_kernel(g, r, t, d, &k));
    ot_status st = ot_kernel_verify(k, k->name, d);
    if (st == OT_OK) st = plan(k, t, d, &p);
    for (uint32_t s = 0; st == OT_OK && s < p->n_scopes; s++)
        if (p->scopes[s].scope == OT_SCOPE_L2)
            *out = (ot_region_memory){p->scopes[s].height, p->scopes[s].lower_bound, p->scopes[s].proved};
    if (st == OT_OK && kernel) {
        ot_mem_plan_apply(p, k);
        *kernel = k;
        k = NULL;
    }
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    return st;
}
