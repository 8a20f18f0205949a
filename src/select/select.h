/* Stage select/: which plan a model gets. The one place that decides.
 *
 *   narrow: what nobody reads is not computed, where that is much
 *   for each variant of the model           as it is, decomposed, with values made again, with
 *                                           dynamic shapes
 *     for each limit on time, tight first
 *       propose -> transform a copy -> simulate -> score -> keep       (candidates.h)
 *
 * Limits are constraints: more slowdown allowed, or a larger budget, never gives a worse plan,
 * since what was found under tighter limits competes. docs/architecture.md draws it.
 */
#ifndef OT_SELECT_SELECT_H
#define OT_SELECT_SELECT_H

#include "select/search/plan_search.h"
#include "select/bounds/size_bounds.h"
#include "transform/transform.h"

/* The sizes that a model is planned for. */
typedef struct ot_sizes {
    const ot_shape_binding *shapes; /* [n_shapes] bound in the model */
    size_t n_shapes;
    const ot_shape_binding *design; /* [n_design] with dynamic shapes: what plans are made at */
    size_t n_design;
    const ot_size_range *ranges; /* [n_ranges] with dynamic shapes: what is bounded */
    size_t n_ranges;
    bool one_size; /* with dynamic shapes: no other size counts */
} ot_sizes;

typedef struct ot_select_request {
    ot_model
        *model; /* the file's; becomes the variant that is chosen. Shapes inferred: all, or with
                        is_dynamic as far as they are known */
    ot_model
        *unbound; /* the model before sizes.shapes were bound, where its shapes may stay dynamic
                          all the same; NULL: they may not */
    const ot_target *target;
    const ot_plan_options *options;
    ot_sizes sizes;
    /* that model's graph computes them, of one size, and they may be initializers instead; NULL:
     * none are asked for. Borrowed as long as the model is used */
    const ot_constants *constants;
    bool is_dynamic;   /* shapes stay dynamic */
    bool static_shape; /* the file states all extents */
    ot_diag *diag;
} ot_select_request;

#define OT_SLOWER 3.0

/* The model with constants in place of what computes them (folded.c). */
typedef struct ot_folded {
    ot_model *model;  /* NULL: it is as it was; must outlive what is planned of it */
    ot_model *file;   /* the model before */
    ot_figures whole; /* the figures that it had */
    uint32_t n_nodes; /* that it has no more */
} ot_folded;

/* What was chosen. What it holds lives as long as the model is used. */
typedef struct ot_selection {
    ot_plan *plan;
    /* with dynamic shapes: the model's copy at the design size, which the plan is of; else NULL */
    ot_model *design;
    bool stays_dynamic;     /* although a size was given */
    ot_bounds_facts bounds; /* over the ranges; in the model's arena */
    /* with options.try_slower: what a plan takes that may be OT_SLOWER times as slow; all 0: it was
     * not tried */
    ot_figures slower;
    /* the model in which nobody computes what nobody reads (narrowed.c), which everything here is
     * of; NULL: it is the file's */
    ot_model *narrowed;
    ot_folded folded;   /* what it was before that, if constants are in the file */
    const char *missed; /* why the memory budget is not kept, with best_effort; "": it is */
    struct ot_variant_group *groups; /* [n_groups] */
    uint32_t n_groups;
    ot_arena *arena;
} ot_selection;

/* Choose a variant of r's model, and a plan for it. Requires ORDER, USES, SHAPES; of the model
 * changed. Fails: OT_E_BUDGET naming required, available and excess bytes, a size of the ranges
 * that takes more, or what is not known of what the process takes (unless options.best_effort);
 * OT_E_USAGE (an input without a size); OT_E_NOMEM. Deterministic, bounded. */
ot_status ot_select(const ot_select_request *r, ot_selection *out) OT_MUST_USE;
void ot_selection_free(ot_selection *s); /* not the plan's graph, which is the model's */
/* The plan, which is most of what a selection holds; the model that was chosen, and rewritten, may
 * still use the rest. */
void ot_selection_forget_plan(ot_selection *s);

/* *p, a plan of g with o or NULL, is replaced by the best one for g as it is: nothing is
 * decomposed, and sizes are what they are. static_shape: the model's file states all extents.
 * Requires ORDER, USES, SHAPES; g is not changed. Fails: OT_E_BUDGET, where live tensors cannot
 * keep o's memory budget or a tensor its limit; OT_E_NOMEM. Deterministic, bounded. */
ot_status ot_select_plan(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                         bool static_shape, ot_plan **p) OT_MUST_USE;

#endif
