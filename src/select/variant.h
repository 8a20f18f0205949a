/* Variants of a model that are planned (private to this folder).
 *
 *   form      static shapes, as given  |  dynamic shapes, planned at a design size
 *   type      as in the file           |  half precision computed in float32 (widened)
 *   edits     none | decomposed | ... with Softmaxes | values made again
 *
 * A variant is a copy of the file's model with the edits made; what is chosen becomes the file's
 * model as a whole (ot_model_adopt), so that no edit is made a second time.
 */
#ifndef OT_SELECT_VARIANT_H
#define OT_SELECT_VARIANT_H

#include "select/candidates.h"

#include "transform/decompose/decompose.h"
#include "transform/transform.h"

typedef enum ot_variant_kind {
    OT_VARIANT_PLAIN = 0,   /* no edits */
    OT_VARIANT_WRAPS,       /* circular padding is moved to the front */
    OT_VARIANT_DECOMPOSED,  /* normalisations, Softmaxes over pixels, ... */
    OT_VARIANT_NO_SOFTMAX,  /* the same, Softmaxes whole */
    OT_VARIANT_AGAIN,       /* and what normalisations read is made again where it is large */
    OT_VARIANT_AGAIN_ONE,   /* the largest of that */
    OT_VARIANT_SKIPS,       /* and large values that wait are made again for late readers */
    OT_VARIANT_SKIPS_ONE,   /* the largest of these */
    OT_VARIANT_POOLED,      /* large values that are pooled are made again for their scaling */
    OT_VARIANT_POOLED_ONE,  /* the largest of these */
    OT_VARIANT_WAITING,     /* as SKIPS, of what waits in an arena when it grows last */
    OT_VARIANT_WAITING_ONE, /* the largest of these */
    OT_VARIANT_KINDS
} ot_variant_kind;

/* A model to plan. */
typedef struct ot_variant {
    ot_variant_kind kind;
    bool is_made;    /* was looked for */
    ot_model *model; /* with the edits; NULL: there is nothing to edit. Owned, unless it is the
                        file's */
    /* dynamic shapes: copies of model at the design size, which plans are of, at a larger and a
     * smaller one, as far as it takes them; owned. Else NULL */
    ot_model *design, *large, *small;
    ot_candidates *c; /* what competes; NULL: nothing yet, or it is chosen */
    size_t n_plans;   /* that competed, once it is */
    double fastest_s; /* of its plans, whatever they hold; 0: not known yet */
    double slowdown;  /* of its last lap; -1: none was run */
    ot_outcome last;  /* of that lap, */
    bool has_outcome; /* where one keeps within the time allowed */
    bool is_left_out; /* its model does not hold: no more laps */
    ot_outcome least; /* of the lap without any slowdown, once one below 0 was asked for */
    bool has_least;
} ot_variant;

/* The model in one form and of one type, with its edits. */
typedef struct ot_variant_group {
    const struct ot_select_request *r; /* while it is chosen among */
    const ot_model *file;              /* r's */
    bool is_dynamic, is_widened;
    bool plain_only;        /* no variant with edits is looked for */
    ot_sim_figures of_file; /* with both: of the file, in half precision; growth 0: not known */
    ot_sim_figures last;    /* of the best so far, when WAITING is made; none: growth 0 */
    ot_variant v[OT_VARIANT_KINDS];
} ot_variant_group;

/* The graph that plans are of. */
static inline ot_graph *ot_variant_graph(const ot_variant *v)
{
    return (v->design ? v->design : v->model)->graph;
}

/* The variant without edits. */
static inline const ot_variant *ot_group_plain(const ot_variant_group *x)
{
    return &x->v[OT_VARIANT_PLAIN];
}

/* ---- variant.c ---- */

/* The group's plain variant, of r's model (or of r->unbound, with dynamic shapes, where a size was
 * given). widened: with half precision made float32; then *any says whether anything was. Fails:
 * OT_E_NOMEM; of dynamic shapes as ot_sizes_bind does. */
ot_status ot_group_open(const ot_select_request *r, bool is_dynamic, bool widened,
                        ot_variant_group *out, bool *any) OT_MUST_USE;
void ot_group_close(ot_variant_group *x);
/* Look for a variant of that kind: x->v[kind].model is set where there is something to edit.
 * Requires outcomes of the plain variant. Fails: OT_E_NOMEM. */
ot_status ot_group_make(ot_variant_group *x, ot_variant_kind kind) OT_MUST_USE;
/* Softmaxes are decomposed for nothing: there are some, and the outcome cuts the pixels of none. */
bool ot_variant_softmax_idle(const ot_variant *v);
void ot_variant_close(ot_variant *v, const ot_model *file);

/* ---- dynamic_sizes.c ---- */

/* v's model at the sizes of r, and what of the first holds there alone. Requires shapes inferred as
 * far as they are known. Fails: OT_E_USAGE: an input without a size; as ot_infer_shapes. */
ot_status ot_sizes_bind(const ot_select_request *r, ot_variant *v) OT_MUST_USE;

/* ---- budget.c ---- */

/* Plans that are tried for a memory budget. */
typedef struct ot_budget_search {
    void *of;
    const ot_plan_options *o; /* with the budget */
    ot_figures untiled;       /* peak_bytes, growth_bytes, time_s */
    uint32_t n_nodes;         /* that run */
    bool stops;               /* at the first plan that is met; else tighter budgets are tried */
    /* Make a plan of these options and keep it if it is the best so far. *met: seconds that the
     * best takes, if it keeps the budget; INFINITY: none does. 0: nothing that comes later is
     * wanted. */
    ot_status (*attempt)(void *of, const ot_plan_options *o, double *met);
} ot_budget_search;
/* One after the other, in the order in which people like them. Fails: as attempt. */
ot_status ot_budget_run(const ot_budget_search *x) OT_MUST_USE;
/* The plan for design, r's model at its design size, that keeps o's budget over r's ranges: what
 * lives at once, proved, and the process, as predicted; *out is what ot_bounds_compute says of it.
 * Fails: OT_E_BUDGET naming a size and what it takes, or why nothing is proved; with best_effort
 * *p is the plan that takes least then, else NULL; OT_E_NOMEM. (bounds_budget.c) */
ot_status ot_bounds_plan(const ot_select_request *r, ot_model *design, ot_plan **p,
                         ot_bounds_facts *out) OT_MUST_USE;
/* The process keeps to o's memory budget as well, with something to spare, as far as it is known
 * what it grows by. */
bool ot_budget_fits(int64_t process, const ot_plan_options *o);
/* The least budget that a process keeps to which is predicted to take so much. */
int64_t ot_budget_for(int64_t process);

/* ---- folded.c ---- */

/* r's model becomes one in which r->constants are initializers, where loading it then takes some MB
 * less, and its process no more; out->model NULL: it stays as it is. Fails: OT_E_NOMEM. */
ot_status ot_select_fold(const ot_select_request *r, ot_folded *out) OT_MUST_USE;
/* p, of the folded model, changes more than that, or its process is so much smaller. */
bool ot_folded_gains(const ot_folded *x, const ot_plan *p);
void ot_folded_free(ot_folded *x);

/* ---- narrowed.c ---- */

/* Figures of the untiled model m. Fails: OT_E_NOMEM. */
ot_status ot_select_figures(const ot_select_request *r, const ot_model *m,
                            ot_figures *out) OT_MUST_USE;

/* r's model becomes one in which nobody computes what nobody reads, where that is much and takes no
 * more memory: *out, a copy that must outlive it; *whole: the figures that it had before. *out
 * NULL: the model stays as it is. Fails: OT_E_NOMEM. */
ot_status ot_select_narrow(const ot_select_request *r, ot_model **out, ot_narrowed *what,
                           ot_figures *whole) OT_MUST_USE;

#endif
