/* What the files of the search share; its interface is plan/plan.h. */
#ifndef OT_PLAN_SEARCH_H
#define OT_PLAN_SEARCH_H

#include "plan/cost/cost.h"

/* ---- dynamic_program.c ---- */

typedef struct ot_path {
    ot_choice *steps; /* [n] in order; untiled nodes have n_dims 0 */
    uint32_t n;
    double time;
    int64_t peak;
    ot_choice *pool; /* [n_pool] tiled choices that some good plan uses (for the tie-break) */
    uint32_t n_pool;
} ot_path;

/* Seconds that a plan may take in all: with goal memory what the user allows, but not when everything legal is to be tiled;
 * else no limit (DBL_MAX). */
double ot_time_allowed(const ot_seq *s, const ot_plan_options *o);
/* Cheapest way through the sequence. OT_E_BUDGET: no way keeps the memory budget (and the allowed time). */
ot_status ot_dp_solve(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t, const ot_plan_options *o,
                      ot_path *out) OT_MUST_USE;

/* ---- tie_break.c ---- */

/* Among plans within epsilon of the path's time (and under the budgets): least peak, then loops, then tiles, by a small
 * MILP over the pool. Leaves *path as it was when GLPK finds nothing better or the program is too large. */
ot_status ot_tie_break(const ot_seq *s, const ot_target *t, const ot_plan_options *o, ot_path *path) OT_MUST_USE;

/* ---- alternatives.c ---- */

/* What a report tells besides the plan: costs of nodes, tilings that were weighed. Figures are exact until a budget of windows
 * is used up; regions after that have no candidates but their own. Fills p->detail. */
ot_status ot_plan_detail_fill(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t, ot_plan *p) OT_MUST_USE;

/* ---- settle.c ---- */

#define OT_FIT_TRIES   1000  /* other tilings tried for a whole graph */
#define OT_FIT_WRITTEN 50000 /* nodes that tiles are written out to; beyond, loops where a region has them */
/* What is left of that. */
typedef struct ot_fit_left {
    uint32_t tries;
    double written;
} ot_fit_left;

/* The region of a chosen interval: its best form, exact figures, working set planned. On a scratchpad, finer tiles when the
 * chosen ones do not fit (left counts down). loss: seconds that the region may lose for less memory; beyond that it is written in
 * its fastest form. *found false: no form can express it, or nothing fits; *out is then the region as chosen. */
ot_status ot_region_fit(const ot_seq *s, ot_walk *w, const ot_target *t, const ot_plan_options *o, const ot_choice *choice,
                        double loss, ot_arena *a, ot_fit_left *left, ot_region *out, bool *found) OT_MUST_USE;
/* Of n regions that differ in their form alone, the index of the one to take; OT_NONE: none. time_tiled < 0: not possible.
 * loss: as above. */
uint32_t ot_best_form(const ot_plan_options *o, const ot_region *forms, uint32_t n, double loss);

#endif
