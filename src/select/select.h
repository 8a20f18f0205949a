/* Stage select/: plans are rewritten on a copy and played as the runtime would run them
 * (alloc_sim/). The planner's live bytes say what a plan must hold; what counts for somebody whose
 * process dies is what the process grows by. */
#ifndef OT_SELECT_SELECT_H
#define OT_SELECT_SELECT_H

#include "select/search/plan_search.h"

/* Fill largest_bytes of p's figures, and with o's max_tensor see that the graph as it is written
 * keeps it (OT_E_BUDGET). Fill growth_bytes, where the runtime's habits and all sizes are known.
 * With goal memory (no budget, no force) the plan is first improved on by that figure: regions
 * and whole plans that do not lower it are left out, the graph is run as a branch where that is
 * possible and pays (in_branch), and nothing is tiled that does not win by an eighth.
 * static_shape: the model's file states all extents. *p may be replaced by another plan.
 * Requires ORDER, USES, SHAPES; g is not changed. Fails: OT_E_NOMEM. Deterministic, bounded. */
ot_status ot_select_plan(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                         bool static_shape, ot_plan **p) OT_MUST_USE;

/* *p, the plan for g, is replaced where the model with its normalisations taken apart has a
 * better one for the same goal; g is then taken apart, too. Nothing for a target that is to keep
 * all rounding (bit_exact). Requires ORDER, USES, SHAPES and keeps them. Fails: OT_E_NOMEM. */
ot_status ot_select_decomposed(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                               bool static_shape, ot_plan **p) OT_MUST_USE;

/* The plan for g, a graph with free extents at its design size whose normalisations are taken
 * apart, where it is better than `whole`, the plan for the model as it is; else *p NULL.
 * Requires ORDER, USES, SHAPES; g is not changed. Fails: OT_E_NOMEM. */
ot_status ot_select_decomposed_dynamic(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                                       const ot_plan *whole, ot_plan **p) OT_MUST_USE;

/* The plan for g under o's memory budget (above 0): *p keeps live tensors within it, and the
 * process, too, where a plan is found that does and the runtime's habits are known; of such
 * plans the fastest, else the one that grows least. g is taken apart where the plan is for the
 * model with its normalisations in parts. Takes the place of ot_plan_graph, ot_select_plan and
 * ot_select_decomposed. Requires ORDER, USES, SHAPES and keeps them. Fails: OT_E_BUDGET naming
 * required, available and excess bytes; OT_E_NOMEM. Deterministic, bounded. */
ot_status ot_select_budget(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                           bool static_shape, ot_plan **p) OT_MUST_USE;

#endif
