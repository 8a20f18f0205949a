/* What the files of the plan checker share; its interface is ot_plan_check
 * (select/search/plan_search.h). */
#ifndef OT_SELECT_CHECK_PLAN_CHECK_H
#define OT_SELECT_CHECK_PLAN_CHECK_H

#include "cost/cost.h"

/* What the checker found of a region's tiles. Arrays are per dim, in elements of the cut axis, 0
 * where nothing is cut. */
typedef struct ot_check_extents {
    /* [n_values] form stream: most rows that a step hands on; NULL in other forms */
    int64_t *kept;
    int64_t *most[OT_DIMS_MAX]; /* [n_values] longest made window over all tiles */
    int64_t *sum[OT_DIMS_MAX];  /* [n_values] made windows of all tiles */
    /* [n_values] what readers that want less than a tile's window take out of it, all tiles */
    int64_t *cropped[OT_DIMS_MAX];
    /* [n_nodes] what the node makes (reduces, of OT_AX_SUM) in all tiles */
    int64_t *done[OT_DIMS_MAX];
    int64_t *done_most[OT_DIMS_MAX]; /* [n_nodes] and in the tile where that is most */
    /* [n_nodes][n_in] what it reads of each cut operand in all tiles */
    int64_t **read[OT_DIMS_MAX];
} ot_check_extents;

/* Elements of the axis of which done and done_most count. Requires a node that is cut in d. */
static inline int64_t ot_check_node_extent(const ot_graph *g, const ot_rnode *x, uint32_t d)
{
    const ot_node *n = &g->nodes[x->node];
    if (x->lead_axis[d] == OT_AX_SUM) return g->values[n->in[0]].dims[x->in_axis[d][0]];
    return g->values[n->out[x->lead_out[d]]].dims[x->lead_axis[d]];
}

/* ---- plan_check_stream.c ---- */

/* The steps of a region that streams: rows are made once, each in one step, and all that is read
 * is at hand. Fills x, whose arrays are there. a: scratch. Fails: OT_E_INPUT with the rule that
 * is broken, OT_E_NOMEM. */
ot_status ot_plan_check_stream(const ot_graph *g, const ot_region *r, ot_check_extents *x,
                               ot_arena *a, ot_diag *d) OT_MUST_USE;

/* ---- plan_check_memory.c ---- */

/* Working set and capacity of region r. constant: [n_values] scratch, OT_NONE everywhere before
 * and after; a: scratch. Fails: OT_E_INPUT with the rule that is broken, OT_E_NOMEM. */
ot_status ot_plan_check_memory(const ot_graph *g, const ot_region *r, const ot_target *t,
                               const ot_check_extents *x, uint32_t *constant, ot_arena *a,
                               ot_diag *d) OT_MUST_USE;

/* ---- plan_check_figures.c ---- */

/* What the checker found of a plan, besides that it is right. */
typedef struct ot_check_found {
    ot_check_extents *extents; /* [n_regions] */
    uint32_t *owner;           /* [n_nodes] region of a node, or OT_NONE */
    /* [n_regions] bytes live when the first tile of a region runs: whole values, the region's
     * inputs among them */
    double *start;
} ot_check_found;

/* Figures of the plan and its regions, and the limits of o. found: extents and owner; start is
 * filled. a: scratch. Requires a plan whose regions were checked. Fails as ot_plan_check. */
ot_status ot_plan_check_figures(ot_graph *g, const ot_plan *p, const ot_target *t,
                                const ot_plan_options *o, ot_check_found *found, ot_arena *a,
                                ot_diag *d) OT_MUST_USE;

/* ---- plan_check.c ---- */

/* ot_plan_check, and what it found, in arena a. */
ot_status ot_plan_check_find(ot_graph *g, const ot_plan *p, const ot_target *t,
                             const ot_plan_options *o, ot_arena *a, ot_diag *d,
                             ot_check_found *found) OT_MUST_USE;

#endif
