/* Stage select/search: one plan for one graph, target and set of options. */
#ifndef OT_SELECT_SEARCH_PLAN_SEARCH_H
#define OT_SELECT_SEARCH_PLAN_SEARCH_H

#include "tiling/plan.h"

#define OT_TIME_ABOUT 1e-9 /* sums of seconds differ by rounding */

/* What plans of one graph for one target share: the sequence of its nodes with their costs, and
 * what its intervals cost in their tilings, which no limit and no price changes. */
typedef struct ot_planner ot_planner;
/* Requires ORDER, USES, SHAPES of g, which must stay as it is, and outlive the planner, as t must.
 * Fails: OT_E_NOMEM. */
ot_status ot_planner_open(ot_graph *g, const ot_target *t, ot_planner **out) OT_MUST_USE;
/* One plan, which may outlive the planner. Fails: as ot_plan_graph. */
ot_status ot_planner_plan(ot_planner *x, const ot_plan_options *o, ot_plan **out) OT_MUST_USE;
void ot_planner_close(ot_planner *x);
/* Of the untiled graph: its time, and nodes that run. */
double ot_planner_untiled_seconds(const ot_planner *x);
uint32_t ot_planner_nodes(const ot_planner *x);
/* Fill *out of that: time, live bytes, bytes moved, multiply-adds. Fails: OT_E_NOMEM. */
ot_status ot_planner_untiled(ot_planner *x, ot_figures *out) OT_MUST_USE;
/* Live bytes when these regions ([n], in order, disjoint) are tiled; -1: no memory. */
int64_t ot_planner_peak(ot_planner *x, ot_region *regions, uint32_t n);
/* Fill p->detail of a plan of the graph. Fails: OT_E_NOMEM. */
ot_status ot_planner_detail(ot_planner *x, const ot_plan_options *o, ot_plan *p) OT_MUST_USE;

/* Plan a graph. Requires ORDER, USES, SHAPES; keeps them. Fails with OT_E_BUDGET naming
 * required, available and excess bytes when memory_budget cannot be met, or the tensor that
 * max_tensor does not let be and why it is not cut. Deterministic, bounded. */
ot_status ot_plan_graph(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                        ot_plan **out) OT_MUST_USE;
/* A plan of no regions; its spare ones are like regions [n] of plans of g, or of a graph with
 * the same nodes at another size: the same nodes, axes, rows of a tile and form, with g's
 * extents and exact figures. Left out is what is not legal, or less than two whole tiles;
 * same_size: of plans of g as it is, of which no tile is all. Requires ORDER, USES, SHAPES; keeps
 * them. Fails: OT_E_NOMEM. */
ot_status ot_plan_like(ot_graph *g, const ot_target *t, const ot_region *like, uint32_t n,
                       bool same_size, ot_plan **out) OT_MUST_USE;
/* What a plan is put together of. */
typedef struct ot_plan_parts {
    const ot_region *regions; /* [n] in topological order, disjoint, of plans of the graph */
    uint32_t n;
    /* [n_idle] listed as refused for `reason` where nothing of theirs is in the plan */
    const ot_region *idle;
    uint32_t n_idle;
    ot_why reason;
    ot_plan **lenders; /* [n_lenders] the plans that own all those */
    uint32_t n_lenders;
} ot_plan_parts;
/* The plan of these parts. It frees the lenders with itself; they are freed when this fails, too.
 * Fails: OT_E_NOMEM. */
ot_status ot_planner_take(ot_planner *x, const ot_plan_options *o, const ot_plan_parts *of,
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
