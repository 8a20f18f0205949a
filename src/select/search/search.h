/* What the files of the search share; its interface is select/search/plan_search.h. */
#ifndef OT_SELECT_SEARCH_SEARCH_H
#define OT_SELECT_SEARCH_SEARCH_H

#include "cost/cost.h"
#include "tiling/lower/lowering.h"
#include "plan_search.h"

/* ---- tensor_limit.c ---- */

/* An interval that no form expresses (within the limit): not tried again. */
typedef struct ot_banned {
    uint32_t first; /* OT_NONE: all that end there with sums in parts */
    uint32_t end;
} ot_banned;
#define OT_BANNED_MAX 16

/* Values that --max-tensor does not let be whole. */
typedef struct ot_limit {
    int64_t most; /* bytes; 0: any */
    ot_id *large; /* [n_large] made values that are larger, by position */
    uint32_t n_large;
    uint32_t *before; /* [n + 1] of these, how many are made before this position; NULL: no limit */
    ot_banned banned[OT_BANNED_MAX];
    uint32_t n_banned;
} ot_limit;
/* Fails: OT_E_BUDGET when an input, an output or a constant is larger; OT_E_NOMEM. */
ot_status ot_limit_find(const ot_seq *s, int64_t most, ot_limit *out) OT_MUST_USE;
/* Some node in [first, end] makes a large value. */
bool ot_limit_concerns(const ot_limit *x, uint32_t first, uint32_t end);
/* Large values of [first, end] that are whole, or in tiles that are large themselves, in this
 * pair of the trial. */
uint32_t ot_limit_missed(const ot_limit *x, const ot_seq *s, const ot_walk *w, const ot_trial *tr,
                         uint32_t pair, uint32_t first, uint32_t end);
/* The region keeps a large value in tiles. */
bool ot_limit_needs(const ot_limit *x, const ot_seq *s, const ot_region *r);
/* A large value that the plan leaves whole; OT_NONE: none. */
ot_id ot_limit_left(const ot_limit *x, const ot_plan *p);
/* Tell of it, and why it is not cut. Returns OT_E_BUDGET, or OT_E_NOMEM. */
ot_status ot_limit_fail(const ot_limit *x, const ot_seq *s, const ot_plan *p) OT_MUST_USE;

/* ---- dynamic_program.c ---- */

/* Choices are the cache's or in the plan's scratch memory: lists point to them. */
typedef struct ot_interval_path {
    const ot_choice **steps; /* [n] the tiled intervals, in order; the other nodes stay whole */
    uint32_t n;
    double time;
    int64_t peak;
    const ot_choice **pool; /* [n_pool] those that some good plan uses (for the tie-break) */
    uint32_t n_pool;
    /* [n_rest] those of other good plans through the whole sequence, each once, none of them in
     * steps */
    const ot_choice **rest;
    uint32_t n_rest;
} ot_interval_path;

/* Seconds that a plan may take in all: with goal memory what the user allows, but not when
 * everything legal is to be tiled; else no limit (DBL_MAX). */
double ot_time_allowed(const ot_seq *s, const ot_plan_options *o);
/* The node at `first` is merged into what comes before it: no boundary between them. first <= s->n.
 * (region_ends.c) */
bool ot_splits_fusion(const ot_seq *s, uint32_t first);
/* A walk from one end along some axes: its steps, and how many choices it came to. */
typedef struct ot_walk_seen {
    uint32_t steps, n_choices;
} ot_walk_seen;
/* What the intervals that end at one position cost in their tilings. */
typedef struct ot_interval_list {
    ot_choice *all; /* [n] in the order in which they were found */
    uint32_t n;
    size_t cap;
    bool complete;       /* all of them */
    ot_walk_seen *walks; /* [n_walks] that found them, where these are kept */
    uint32_t n_walks;
    size_t cap_walks;
    uint64_t work; /* that it took to look at them (ot_trial_work) */
} ot_interval_list;
typedef struct ot_interval_cache {
    ot_interval_list *ends; /* [n] by the position where they end; NULL: none yet */
    ot_arena *arena;
    size_t n_choices;
} ot_interval_cache;
/* What plans of one goal know of one another's intervals: those that are not forced, near a node,
 * or pay for what is kept share the best of each; those that pay all of them, as far as each of
 * these alone would look. */
typedef struct ot_interval_caches {
    ot_interval_cache *shared, *alone;
} ot_interval_caches;
#define OT_CACHED_CHOICES 400000 /* of a sequence; ends behind that are looked at again */

/* Cheapest way through the sequence, of those that leave the fewest values above the limit
 * (NULL: there is none). known: of the goal of o, and of what it forces; NULL: nothing.
 * OT_E_BUDGET: no way keeps the memory budget (and the allowed time). */
ot_status ot_dp_solve(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t,
                      const ot_plan_options *o, const ot_limit *limit,
                      const ot_interval_caches *known, ot_interval_path *out) OT_MUST_USE;

/* ---- kept_bytes.c ---- */

/* Bytes of the results, of `level` and more each, that the nodes from `first` to `end` leave to
 * others, and of what those take that run whole: which w, a walk from `end`, has put none of into a
 * region (NULL: of any). */
double ot_kept_bytes(const ot_seq *s, const ot_walk *w, int64_t level, uint32_t first,
                     uint32_t end);

/* ---- tie_break.c ---- */

/* Among plans within epsilon of the path's time (and under the budgets): least peak, then loops,
 * then tiles, over the pool (plan_net.h). Leaves *path as it was where the net is too large. */
ot_status ot_tie_break(const ot_seq *s, const ot_target *t, const ot_plan_options *o,
                       ot_interval_path *path) OT_MUST_USE;

/* ---- region_ends.c: why regions end where they do, and what stayed untiled ---- */

/* Add to p's barriers the nodes that read whole what the region before them cuts. Fails:
 * OT_E_NOMEM. */
ot_status ot_region_ends_list(const ot_seq *s, ot_plan *p) OT_MUST_USE;
/* Add to p's refusals the nodes of no region, barrier and refusal so far: those that cannot be
 * cut as the region beside them is, with that reason, and runs of the others. p->refused has
 * room for the nodes of s. Fails: OT_E_NOMEM. */
ot_status ot_refusals_list(const ot_seq *s, const ot_plan_options *o, ot_plan *p) OT_MUST_USE;

/* ---- alternatives.c ---- */

/* What a report tells besides the plan: costs of nodes, tilings that were scored. Figures are
 * exact until a budget of windows is used up; regions after that have no candidates but their
 * own. Fills p->detail. */
ot_status ot_plan_detail_fill(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t,
                              ot_plan *p) OT_MUST_USE;
/* Output of the region's last node that its tiles are counted on, or OT_SUM_SINK; OT_NONE: there
 * is none. */
uint32_t ot_sink_output(const ot_seq *s, const ot_region *r);

/* ---- fitted.c: intervals as regions, looked at once for all plans of a graph ---- */

/* A tiling of an interval, its region, and that in the forms that somebody asked for. */
typedef struct ot_fitted ot_fitted;
typedef struct ot_fitted_cache {
    ot_arena *arena;        /* of what is known */
    ot_region_store *store; /* of what regions point to; held */
    ot_fitted **slots;      /* [n_slots] a power of 2 */
    uint32_t n_slots, n;
} ot_fitted_cache;
/* The region of a tiling; what is not kept for the next plan is in s->arena. Fails: OT_E_NOMEM. */
ot_status ot_fitted_region(ot_fitted_cache *x, const ot_seq *s, ot_walk *w, const ot_choice *c,
                           ot_fitted **out) OT_MUST_USE;
/* As built: without form and figures. */
void ot_fitted_built(const ot_fitted *f, ot_region *out);
/* In this form, with exact figures; out->time_tiled < 0: not possible. how: OT_FIT_ bits. Fails:
 * OT_E_NOMEM. */
ot_status ot_fitted_form(ot_fitted_cache *x, const ot_seq *s, const ot_target *t, ot_fitted *f,
                         ot_form form, unsigned how, ot_region *out) OT_MUST_USE;
/* The same as ot_region_fit_memory, for r that ot_fitted_form made with the same `how`. Fails:
 * OT_E_NOMEM. */
ot_status ot_fitted_memory(ot_fitted_cache *x, const ot_seq *s, const ot_target *t, ot_fitted *f,
                           unsigned how, ot_region *r) OT_MUST_USE;

/* ---- exact_fit.c ---- */

#define OT_FIT_TRIES 1000 /* other tilings tried for a whole graph */
/* nodes that tiles are written out to; beyond, loops where a region has them */
#define OT_FIT_WRITTEN 50000
/* What is left of that. */
typedef struct ot_fit_left {
    uint32_t tries;
    double written;
} ot_fit_left;

/* Choices of a path's pool by the position where they end. */
typedef struct ot_interval_ends {
    const ot_interval_path *path;
    uint32_t *head; /* [n + 1] index into the pool, or OT_NONE */
    uint32_t *next; /* [path->n_pool] */
} ot_interval_ends;
/* Fails: OT_E_NOMEM. */
ot_status ot_interval_ends_list(const ot_seq *s, const ot_interval_path *path,
                                ot_interval_ends *x) OT_MUST_USE;

/* What the regions of a plan are fitted with. */
typedef struct ot_fit_request {
    const ot_seq *s;
    ot_walk *w;
    const ot_target *t;
    const ot_plan_options *o;
    const ot_interval_ends *ends; /* other tilings of an interval */
    ot_fitted_cache *known;
    ot_fit_left *left; /* counts down */
} ot_fit_request;

/* The region of a chosen interval: its best form, exact figures, working set planned. On a
 * scratchpad, finer tiles when the chosen ones do not fit (left counts down); another tiling of
 * the interval when it has no form or loses. loss: seconds that the region may lose for less
 * memory; beyond that it is written in its fastest form. *found false: no form can express it,
 * or nothing fits; *out is then the region as chosen. Fails: OT_E_NOMEM. */
ot_status ot_region_fit(const ot_fit_request *q, const ot_choice *choice, double loss,
                        ot_region *out, bool *found) OT_MUST_USE;
/* The planned arena of r's kernel is its working set; what its places stall is part of its time.
 */
void ot_region_take_memory(ot_region *r, const ot_region_memory *m);
/* Plan the memory of r's kernel: working set and its bound. Requires a form. Fails: OT_E_NOMEM. */
ot_status ot_region_fit_memory(const ot_seq *s, const ot_target *t, ot_region *r) OT_MUST_USE;
/* For goal time a region must not lose more than the runtime gives for less memory. */
bool ot_region_loses(const ot_seq *s, const ot_target *t, const ot_plan_options *o,
                     const ot_region *r);
/* Of n regions that differ in their form alone, the index of the one to take; OT_NONE: none.
 * time_tiled < 0: not possible. loss: as above. */
uint32_t ot_best_form(const ot_plan_options *o, const ot_region *forms, uint32_t n, double loss);

/* ---- granules.c ---- */

/* Steps along dimension d whose multiples, as tiles, begin and end with granules of rows of the
 * sink; 0: there are none, or d cuts no rows innermost. */
int64_t ot_granule_steps(const ot_graph *g, const ot_region *r, uint32_t d, int64_t granule);
/* Bytes of all granules that the region's tiles bring and store, one that several of them touch
 * each time. 0: not known. a: scratch. Fails: OT_E_NOMEM. */
ot_status ot_granules_moved(const ot_graph *g, const ot_region *r, int64_t granule, ot_arena *a,
                            double *out) OT_MUST_USE;

/* ---- recombine.c ---- */

/* Regions with exact figures that were built for plans of a graph, under any limits. */
typedef struct ot_region_pool {
    ot_region *all; /* [n] */
    uint32_t n;
    size_t cap;
} ot_region_pool;
/* Of all sets of regions that do not overlap: for goal time the fastest; for goal memory, or a
 * forced form, the one with the least peak that takes no longer than o allows; under a budget
 * the fastest that keeps it, or comes nearest to it. Of several the fastest. out: room for
 * pool->n; *n of them, numbered, in order. Fails: OT_E_NOMEM. */
ot_status ot_recombine(const ot_seq *s, const ot_plan_options *o, const ot_region_pool *pool,
                       ot_region *out, uint32_t *n) OT_MUST_USE;

/* ---- stream_plan.c ---- */

/* An interval in steps of some rows, as it was looked at. */
typedef struct ot_steps_seen {
    ot_choice c;   /* the interval, its axes and rows */
    ot_region r;   /* of it, with figures where it is legal */
    bool legal;    /* it can be written, where it fits */
    bool fits;     /* the fast memory, */
    bool writes;   /* and can be written as it is then */
    uint64_t work; /* that it took to look at it */
} ot_steps_seen;

/* All that were seen of a graph: whatever rows are asked for, an interval is looked at once. */
typedef struct ot_steps_cache {
    ot_steps_seen *all; /* [n] */
    size_t n, cap;
} ot_steps_cache;

/* Regions in form stream with exact figures, of long intervals, into the pool; of each interval
 * those of all steps that it takes, or with o->stream_rows only the one of the least rows from
 * that on. a: of the plan, and of what is seen. Nothing for a runtime without the form. Fails:
 * OT_E_NOMEM. */
ot_status ot_stream_regions(const ot_seq *s, ot_walk *w, const ot_target *t,
                            const ot_plan_options *o, ot_arena *a, ot_steps_cache *seen,
                            ot_region_pool *pool) OT_MUST_USE;

/* ---- planner.c ---- */

/* Streams that were looked for with these options. */
typedef struct ot_stream_cache {
    uint32_t rows; /* o->stream_rows */
    bool asked;    /* the form is forced */
    ot_region_pool pool;
} ot_stream_cache;

/* See plan_search.h. */
struct ot_planner {
    ot_graph *g;
    const ot_target *t;
    ot_arena *arena; /* of all that plans share */
    ot_seq s;        /* its arena: of the plan at hand */
    ot_walk w;
    ot_trial *tr;              /* NULL: nothing of the graph can be tiled */
    ot_plan_options o;         /* of the plan at hand: trials read the goal there */
    ot_interval_cache cuts[2]; /* by goal */
    /* by goal, and whether everything legal is to be tiled */
    ot_interval_cache alone[2][2];
    ot_fitted_cache fitted;
    ot_stream_cache *streams; /* [n_streams] */
    size_t n_streams, cap_streams;
    ot_steps_cache steps_seen;
};
/* ot_stream_regions, looked for once: copies in arena a. Fails: OT_E_NOMEM. */
ot_status ot_planner_streams(ot_planner *x, const ot_plan_options *o, ot_arena *a,
                             ot_region_pool *pool) OT_MUST_USE;
/* The plan of x->o into p, whose arena and runtime are set. Fails: as ot_planner_plan.
 * (plan_search.c) */
ot_status ot_planner_fill(ot_planner *x, ot_plan *p) OT_MUST_USE;
/* A plan of no regions yet for t. NULL: no memory. */
ot_plan *ot_plan_begin(const ot_target *t);

#endif
