/* A memory budget: live tensors must keep to it, and the process should, where the runtime's
 * allocator is known. Who gives a budget means the process.
 *
 *   the goal's own plan within the budget
 *   the goal's own plan within tighter budgets      tenths of what the untiled model takes, so that
 *                                                   a looser budget knows what a tighter one found
 *   for goal memory, slower and slower              unless one of these is met that takes no longer
 *                                                   than the slowdowns before allow; under goal
 *                                                   memory where nobody says how slow: once, for
 *                                                   what is found there and takes no longer than
 *                                                   allowed, and on where none is met
 */
#include "variant.h"

#include <math.h>

/* of the budget, by prediction: tiled models are predicted a tenth too low */
#define FITS       0.9
#define MANY_NODES 1500 /* that run: every second budget is tried from there on */
#define TENTHS     10
#define ABOUT      0.02 /* so much longer than the untiled model is as good as no longer */

static const double SLOWER[] = {0.3,
                                OT_BUDGET_SLOWDOWN}; /* slowdown, where a smaller one does not do */

bool ot_budget_fits(int64_t process, const ot_plan_options *o)
{
    return (double)process <= FITS * (double)o->memory_budget;
}

int64_t ot_budget_for(int64_t process)
{
    const double least = ceil((double)process / FITS);
    return least < (double)INT64_MAX ? (int64_t)least : INT64_MAX;
}

/* Plans for the least growth are not made within the budget: what they hold is looked at when they
 * are there. */
static ot_status try_memory(const ot_budget_search *x, double slowdown, double *met)
{
    ot_plan_options o = *x->o;
    o.goal = OT_GOAL_MEMORY;
    o.memory_budget = 0;
    o.max_slowdown = slowdown;
    return x->attempt(x->of, &o, met);
}

/* Tenths of `whole` that are tighter than the budget, the loosest first. */
static ot_status try_tighter(const ot_budget_search *x, int64_t whole, double *met)
{
    const int step = x->n_nodes > MANY_NODES ? 2 : 1;
    for (int tenth = TENTHS - step; tenth > 0 && !(x->stops && isfinite(*met)); tenth -= step) {
        ot_plan_options o = *x->o;
        o.memory_budget = (int64_t)((double)tenth / TENTHS * (double)whole);
        if (o.memory_budget <= 0 || o.memory_budget >= x->o->memory_budget) continue;
        OT_TRY(x->attempt(x->of, &o, met));
    }
    return OT_OK;
}

/* Plans of SLOWER[k] are wanted, too: met takes longer than the slowdown before, or none is. */
static bool wants_slower(const ot_budget_search *x, double met, size_t k)
{
    const double before = k > 0 ? SLOWER[k - 1] : ABOUT;
    if (x->stops && isfinite(met)) return false;
    if (x->o->goal != OT_GOAL_TIME)
        return x->o->max_slowdown == OT_MAX_SLOWDOWN && (k == 0 || !isfinite(met));
    return met > x->untiled.time_s * (1 + before);
}

ot_status ot_budget_run(const ot_budget_search *x)
{
    const ot_plan_options *o = x->o;
    const int64_t peak = x->untiled.peak_bytes, growth = x->untiled.growth_bytes;
    double met = INFINITY;
    OT_TRY(x->attempt(x->of, o, &met));
    if (o->force_form != OT_FORM_NONE || (x->stops && isfinite(met))) return OT_OK;
    OT_TRY(try_tighter(x, peak, &met));
    if (growth != peak) OT_TRY(try_tighter(x, growth, &met));
    if (!x->stops || !isfinite(met)) OT_TRY(try_memory(x, o->max_slowdown, &met));
    for (size_t k = 0; k < sizeof SLOWER / sizeof *SLOWER && wants_slower(x, met, k); k++)
        if (SLOWER[k] > o->max_slowdown) OT_TRY(try_memory(x, SLOWER[k], &met));
    return OT_OK;
}
