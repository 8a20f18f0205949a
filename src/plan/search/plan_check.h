/* What the files of the plan checker share; its interface is ot_plan_check (plan/plan.h). */
#ifndef OT_PLAN_CHECK_H
#define OT_PLAN_CHECK_H

#include "plan/plan.h"

/* What the checker found of a region's tiles. Arrays are per dim, in elements of the cut axis, 0 where nothing is cut. */
typedef struct ot_check_extents {
    int64_t *most[OT_DIMS_MAX]; /* [n_values] longest made window over all tiles */
    int64_t *sum[OT_DIMS_MAX];  /* [n_values] made windows of all tiles */
    int64_t *done[OT_DIMS_MAX]; /* [n_nodes] what the node makes (reduces, of OT_AX_SUM) in all tiles */
    double live;                /* bytes of the largest tile that wait for readers at once: no working set is lower */
} ot_check_extents;

/* ---- plan_check_figures.c ---- */

/* Seconds, bytes moved, multiply-adds and peaks of the plan and its regions, and the limits of o. extents: [n_regions]; owner:
 * [n_nodes] region of a node or OT_NONE; a: scratch. Requires a plan whose regions were checked. Fails as ot_plan_check. */
ot_status ot_plan_check_figures(ot_graph *g, const ot_plan *p, const ot_target *t, const ot_plan_options *o,
                                const ot_check_extents *extents, const uint32_t *owner, ot_arena *a, ot_diag *d) OT_MUST_USE;

#endif
