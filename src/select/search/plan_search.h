/* Stage select/search: one plan for one graph, target and set of options. */
#ifndef OT_SELECT_SEARCH_PLAN_SEARCH_H
#define OT_SELECT_SEARCH_PLAN_SEARCH_H

#include "tiling/plan.h"

/* Plan a graph. Requires ORDER, USES, SHAPES; keeps them. Fails with OT_E_BUDGET naming
 * required, available and excess bytes when memory_budget cannot be met, or the tensor that
 * max_tensor does not let be and why it is not cut. Deterministic, bounded. */
ot_status ot_plan_graph(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                        ot_plan **out) OT_MUST_USE;
/* A plan of no regions; its spare ones are like regions [n] of plans of g, or of a graph with
 * the same nodes at another size: the same nodes, axes, rows of a tile and form, with g's
 * extents and exact figures. Left out is what is not legal, or less than two tiles. Requires
 * ORDER, USES, SHAPES; keeps them. Fails: OT_E_NOMEM. */
ot_status ot_plan_like(ot_graph *g, const ot_target *t, const ot_region *like, uint32_t n,
                       ot_plan **out) OT_MUST_USE;
/* A plan of regions [n], in topological order, disjoint, that other plans of g for t have; idle
 * [n_idle] of them are listed as refused for `reason` where nothing of theirs is in the plan.
 * lenders [n_lenders]: the plans that own all those; the new one frees them, and does so when
 * this fails. Requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_plan_take(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                       const ot_region *regions, uint32_t n, const ot_region *idle, uint32_t n_idle,
                       ot_why reason, ot_plan **lenders, uint32_t n_lenders,
                       ot_plan **out) OT_MUST_USE;
/* Recompute every claim of the plan without the search's code, from the graph, its slice
 * relations, and the prices of untiled nodes: regions disjoint, convex, connected; pieces cover
 * outputs exactly once; windows contain what brute-force propagation needs; working sets and
 * capacity; what all regions add up to in time, bytes moved, multiply-adds and peak, where those
 * of one region are taken as stated (select/check/plan_check.c); the limits in o, the options
 * that the plan was made with. Requires ORDER, USES, SHAPES; keeps them. Fails: OT_E_INPUT with
 * the first violation, each with a reason of its own (our bug); OT_E_NOMEM. */
ot_status ot_plan_check(ot_graph *g, const ot_plan *p, const ot_target *t, const ot_plan_options *o,
                        ot_diag *d) OT_MUST_USE;

#endif
