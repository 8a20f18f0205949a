/* Goal time: what a plan saves in seconds must be worth what it adds to the process.
 *
 *   regions          all of the plan, as long as      growth x seconds  <=  those of the untiled
 *                                                                           model
 *     | thin out     else the region goes without which the process grows least, and so on
 *   regions that pay, or none: the model stays as it was
 *
 * Tiles are there to take less memory; where they take more (a result in pieces next to its
 * copy, weights packed twice), a plan that is predicted to save two hundredths of the time is no
 * gain to anybody.
 *
 *
 *
 */
#include "candidates.h"

#define ABOUT 1.02 /* predictions differ by that much from one another at least */
#define PLAYS 64   /* of plans without one of their regions */

static bool is_worth(const ot_candidates *x, double seconds, const ot_sim_figures *f)
{
    return (double)f->growth * seconds <= ABOUT * (double)x->whole.growth_bytes * x->untiled_s;
}

/* Regions [*n] without the one without which the process grows least. *left: plays that may
 * still be done. */
static ot_status leave_one(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t *n,
                           uint32_t *left, ot_sim_figures *f)
{
    ot_region *without = OT_NEW_N(x->arena, ot_region, *n);
    uint32_t worst = 0;
    if (!without) return ot_fail_nomem(x->g->model->diag);
    f->growth = INT64_MAX;
    for (uint32_t k = 0; k < *n; k++) {
        ot_sim_figures at = {0};
        uint32_t m = 0;
        for (uint32_t j = 0; j < *n; j++)
            if (j != k) without[m++] = regions[j];
        OT_TRY(ot_candidates_simulate(x, p, without, m, &at));
        if (at.growth >= f->growth) continue;
        *f = at;
        worst = k;
    }
    *left -= *n;
    --*n;
    for (uint32_t j = worst; j < *n; j++) regions[j] = regions[j + 1];
    return OT_OK;
}

ot_status ot_time_is_worth(ot_candidates *x, const ot_sim_figures *grown, ot_plan **p)
{
    const ot_plan *first = *p;
    ot_sim_figures f = *grown;
    uint32_t n = first->n_regions, left = PLAYS;
    if (is_worth(x, first->tiled.time_s, &f)) return OT_OK;
    ot_region *regions = ot_memdup(x->arena, first->regions, n * sizeof *regions);
    ot_region *idle = ot_memdup(x->arena, first->regions, n * sizeof *idle);
    if (!regions || !idle) return ot_fail_nomem(x->g->model->diag);
    for (bool pays = false; !pays && n > 0;) {
        double seconds = x->untiled_s;
        if (left < n)
            n = 0;
        else
            OT_TRY(leave_one(x, first, regions, &n, &left, &f));
        for (uint32_t k = 0; k < n; k++) seconds -= regions[k].benefit;
        pays = n > 0 && seconds < x->untiled_s && is_worth(x, seconds, &f);
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Goal time: %u of %u regions are worth what they add\n", n,
                first->n_regions);
    ot_plan *lender = *p;
    return ot_plan_take(x->g, x->t, x->o, regions, n, idle, first->n_regions, OT_WHY_GROWTH,
                        &lender, 1, p);
}
