/* What the files of the search share; its interface is plan/plan.h. */
#ifndef OT_PLAN_SEARCH_H
#define OT_PLAN_SEARCH_H

#include "plan/cost/cost.h"

/* ---- dynamic_program.c ---- */

/* Predictions for the engine are no finer than this fraction of the model's time: what is as fast may as well hold less. */
#define OT_ENGINE_ABOUT 0.03

typedef struct ot_path {
    ot_choice *steps; /* [n] in order; untiled nodes have n_dims 0 */
    uint32_t n;
    double time;
    int64_t peak;
    ot_choice *pool; /* [n_pool] tiled choices that some good plan uses (for the tie-break) */
    uint32_t n_pool;
} ot_path;

/* Cheapest way through the sequence. `ends`: optional filter. */
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

#define OT_FIT_TRIES 1000 /* other tilings tried for a whole graph */

/* The region of a chosen interval: its best form, exact figures, working set planned. On a scratchpad, finer tiles when the
 * chosen ones do not fit (*tries counts down). *found false: no form can express it, or nothing fits; *out is then the region
 * as chosen. */
ot_status ot_region_fit(const ot_seq *s, ot_walk *w, const ot_target *t, const ot_plan_options *o, const ot_choice *choice,
                        ot_arena *a, uint32_t *tries, ot_region *out, bool *found) OT_MUST_USE;

#endif
