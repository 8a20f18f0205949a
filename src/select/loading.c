/* Tiles that are written out, lower nothing and save little time go: each has nodes to load.
 *
 *     with all       growth 222   process 271   1.530 s a run   920 nodes
 *     without one    growth 222   process 269   1.531 s a run   760 nodes    it goes
 *     in loops       growth 222   process 268   1.531 s a run   780 nodes    else
 *
 * Sets compete by bytes, and within the predictions' error by time: so a region that saves a
 * thousandth of a run comes in, be it 32 tiles. Where the graph states no extents, a session loads
 * in a time that grows with the square of its nodes, longer than thousands of runs save (a decoder
 * of latents at 1024 x 1024: 2.4 s in place of 0.1). Elsewhere they stay: they cost little, and
 * where buffers are reserved, places are predicted less well (a text detector without four such
 * regions: predicted 134 MB and 134, measured 144 and 197).
 */
#include "candidates.h"

#include <math.h>

#define LITTLE     0.01  /* of the untiled model's time: what may be lost by all that goes */
#define MOST_NODES 60000 /* that are written and simulated for it */

/* Regions of set that are written out, in order of what they save, least first, and no more than
 * `most`: *order, [*n] first steps. */
static ot_status find_little(const ot_candidates *x, const ot_region_set *set, double most,
                             uint32_t **order, uint32_t *n)
{
    double *saves = OT_NEW_N(x->arena, double, set->n + 1u);
    *order = OT_NEW_N(x->arena, uint32_t, set->n + 1u);
    *n = 0;
    if (!saves || !*order) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < set->n; k++) {
        const double s = ot_set_saves(x, &set->all[k]);
        uint32_t at = *n;
        if (set->all[k].form != OT_FORM_UNROLLED || s < 0 || s > most) continue;
        for (; at > 0 && saves[at - 1] > s; at--) {
            saves[at] = saves[at - 1];
            (*order)[at] = (*order)[at - 1];
        }
        saves[at] = s;
        (*order)[at] = set->all[k].first;
        (*n)++;
    }
    return OT_OK;
}

/* What is tried in the place of what was found. */
typedef struct lightening {
    double limit_s;
    ot_outcome *of;
    ot_outcome spare; /* set.all: room */
} lightening;

static uint32_t place_of(const ot_outcome *of, uint32_t first)
{
    uint32_t k = 0;
    while (of->set.all[k].first != first) k++;
    return k;
}

/* y->spare becomes y->of with `in` (NULL: nothing) in the place of region k. */
static void exchange(const ot_candidates *x, lightening *y, uint32_t k, const ot_region *in)
{
    const ot_region_set *set = &y->of->set;
    const ot_region *out = &set->all[k];
    ot_region *all = y->spare.set.all;
    const double gain = (in ? in->benefit : 0) - out->benefit,
                 saves = (in ? ot_set_saves(x, in) : 0) - ot_set_saves(x, out);
    uint32_t n = 0;
    for (uint32_t j = 0; j < set->n; j++)
        if (j != k)
            all[n++] = set->all[j];
        else if (in)
            all[n++] = *in;
    y->spare = *y->of;
    y->spare.set.all = all;
    y->spare.set.n = n;
    y->spare.set.gain += gain;
    y->spare.packing_s += gain - saves;
    y->spare.seconds -= saves;
}

/* The same, and y->of becomes that, if it is in time and nothing is more. */
static ot_status try_exchange(ot_candidates *x, lightening *y, uint32_t k, const ot_region *in,
                              bool *done)
{
    ot_sim_figures f;
    *done = false;
    exchange(x, y, k, in);
    ot_region_set *set = &y->spare.set;
    if (y->spare.seconds > y->limit_s) return OT_OK;
    OT_TRY(ot_candidates_simulate(x, set->all, set->n, &f));
    if (f.growth > y->of->takes.growth || ot_process_bytes(&f) > ot_process_bytes(&y->of->takes))
        return OT_OK;
    y->spare.peak = ot_planner_peak(x->planner, set->all, set->n);
    if (y->spare.peak < 0) return ot_fail_nomem(x->g->model->diag);
    if (y->spare.peak > y->of->peak) return OT_OK;
    if (ot_dbg['P'])
        fprintf(stderr, "> Lighter: step %u, form %s -> %s: %.3f ms\n", y->of->set.all[k].first,
                ot_form_name(y->of->set.all[k].form), in ? ot_form_name(in->form) : "none",
                (y->spare.seconds - y->of->seconds) * 1e3);
    ot_region *all = y->of->set.all;
    *y->of = y->spare;
    y->of->takes = f;
    y->spare.set.all = all;
    *done = true;
    return OT_OK;
}

/* Where it lowers something: as loops, of any plan that has them. */
static ot_status try_loops(ot_candidates *x, lightening *y, uint32_t k)
{
    const ot_region r = y->of->set.all[k];
    bool done = false;
    for (size_t j = 0; j < x->n_pool && !done; j++) {
        const ot_region *in = x->pool[j];
        if (in->first == r.first && in->last == r.last && in->form != OT_FORM_UNROLLED)
            OT_TRY(try_exchange(x, y, k, in, &done));
    }
    return OT_OK;
}

ot_status ot_candidates_lighten(ot_candidates *x, double allowed_s, ot_outcome *of)
{
    lightening y = {.limit_s = fmin(allowed_s, of->seconds + LITTLE * x->untiled_s), .of = of};
    uint32_t *order, n;
    if (!of->how.hidden || x->g->model->dynamic_dims || of->takes.growth <= 0) return OT_OK;
    y.spare.set.all = OT_NEW_N(x->arena, ot_region, of->set.n + 1u);
    /* the two change places; what the set was so far is others' */
    of->set.all = ot_memdup(x->arena, of->set.all, of->set.n * sizeof *of->set.all);
    if (!y.spare.set.all || !of->set.all) return ot_fail_nomem(x->g->model->diag);
    x->how = of->how;
    OT_TRY(find_little(x, &of->set, y.limit_s - of->seconds, &order, &n));
    n = (uint32_t)ot_min(n, MOST_NODES / (x->g->n_order + of->set.n + 1));
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t at = place_of(of, order[k]);
        bool done = false;
        if (of->set.n > 1) OT_TRY(try_exchange(x, &y, at, NULL, &done));
        if (!done) OT_TRY(try_loops(x, &y, at));
    }
    return OT_OK;
}
