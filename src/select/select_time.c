/* Goal time: what a plan saves in seconds must be worth what it adds to the process.
 *
 *   regions          all of the plan, as long as      growth x seconds  <=  those of the untiled
 *                                                     process           <=  model
 *     | thin out     else the region goes without which the process takes least, and so on
 *   regions that pay, or none: the model stays as it was
 *
 * Tiles are there to take less memory; where they take more (a result in pieces next to its
 * copy, weights packed twice), a plan that is predicted to save two hundredths of the time is no
 * gain to anybody.
 */
#include "candidates.h"

#define ABOUT       1.02 /* predictions differ by that much from one another at least */
#define SIMULATIONS 64   /* of plans without one of their regions */

static bool is_worth(const ot_candidates *x, double seconds, const ot_sim_figures *f)
{
    return (double)f->growth * seconds <= ABOUT * (double)x->untiled.growth * x->untiled_s &&
           (double)ot_process_bytes(f) <= ABOUT * (double)ot_process_bytes(&x->untiled);
}

bool ot_time_costs_memory(const ot_candidates *x, const ot_sim_figures *f)
{
    return f->growth > x->untiled.growth || ot_process_bytes(f) > ot_process_bytes(&x->untiled);
}

bool ot_time_cannot_pay(const ot_candidates *x, const ot_region_set *set)
{
    return set->n > SIMULATIONS && ot_score_loads_more(x, set->all, set->n);
}

/* The set without the region without which the process takes least. *left: simulations that may
 * still be done. spare: room for it. */
static ot_status leave_one(ot_candidates *x, ot_region_set *set, ot_region *spare, uint32_t *left,
                           ot_sim_figures *f)
{
    uint32_t worst = 0;
    int64_t least = INT64_MAX;
    for (uint32_t k = 0; k < set->n; k++) {
        ot_sim_figures at = {0};
        uint32_t m = 0;
        for (uint32_t j = 0; j < set->n; j++)
            if (j != k) spare[m++] = set->all[j];
        OT_TRY(ot_candidates_simulate(x, spare, m, &at));
        const int64_t bytes = ot_process_bytes(&at);
        if (k > 0 && bytes >= least) continue;
        *f = at;
        least = bytes;
        worst = k;
    }
    *left -= set->n;
    set->n--;
    set->gain -= set->all[worst].benefit;
    for (uint32_t j = worst; j < set->n; j++) set->all[j] = set->all[j + 1];
    return OT_OK;
}

ot_status ot_time_is_worth(ot_candidates *x, const ot_sim_figures *grown, ot_region_set *set)
{
    ot_sim_figures f = *grown;
    const uint32_t before = set->n;
    uint32_t left = SIMULATIONS;
    if (is_worth(x, x->untiled_s - set->gain, &f)) return OT_OK;
    ot_region *all = ot_memdup(x->arena, set->all, set->n * sizeof *all);
    ot_region *spare = OT_NEW_N(x->arena, ot_region, set->n);
    if (!all || !spare) return ot_fail_nomem(x->g->model->diag);
    set->all = all;
    for (bool pays = false; !pays && set->n > 0;) {
        if (left < set->n) {
            set->n = 0;
            set->gain = 0;
        } else {
            OT_TRY(leave_one(x, set, spare, &left, &f));
        }
        const double seconds = x->untiled_s - set->gain;
        pays = set->n > 0 && seconds < x->untiled_s && is_worth(x, seconds, &f);
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Goal time: %u of %u regions are worth what they add\n", set->n, before);
    return OT_OK;
}
