/* Plans of one graph, and sets of their regions, that compete (private to this folder).
 *
 *   lap of one time limit:
 *     propose     plans of other options, each of them one more set of regions        propose.c
 *     search      sets of regions of any of these plans                               region_sets.c
 *     let go      regions that pay only together                                      growth_step.c
 *     refine      how the best set is written                                         refine.c
 *       each:     transform a copy -> simulate -> score                               candidates.c
 *     keep        the best set, unless one of a tighter limit holds less              laps.c
 *
 * Laps go from tight limits to loose ones, and what they found stays: so a looser limit never gives
 * a worse plan.
 */
#ifndef OT_SELECT_CANDIDATES_H
#define OT_SELECT_CANDIDATES_H

#include "select/select.h"

#include "alloc_sim/alloc_sim.h"

/* Regions of a plan, or of several. */
typedef struct ot_region_set {
    ot_region *all; /* [n] in topological order, disjoint */
    uint32_t n;
    int64_t bytes; /* by which sets compete (ot_candidates_score) */
    double gain;   /* seconds that they save together */
} ot_region_set;

/* How regions are written. */
typedef struct ot_writing {
    bool branch;           /* as a branch (transform/branch.c) */
    bool hidden;           /* which states no extents (transform/hidden_extents.c) */
    bool views;            /* they read blocked values through views */
    bool blocks;           /* residual networks read their results in blocks */
    bool folds_norms;      /* BatchNormalizations become part of convolutions */
    bool data_file;        /* weights are in a file beside the model */
    int64_t unjoined_from; /* values of so many bytes stay in pieces; 0: none */
    int64_t defer_from;    /* weights of so many bytes are packed when they are used; 0: none */
    int64_t unpacked_from; /* those of convolutions of so many bytes are not packed; 0: all are */
    int64_t piece_bytes;   /* large weights are read in pieces of so many bytes; 0: none are */
    /* [n_plain] nor are these, whose convolutions then compute plain maps (plain_maps.c) */
    const ot_id *plain;
    uint32_t n_plain;
    int64_t first_block; /* a tensor of so many bytes comes before the branch runs; 0: none does */
} ot_writing;

/* What a lap found. */
typedef struct ot_outcome {
    ot_region_set set;
    ot_writing how;
    ot_sim_figures takes;      /* of the model that is written so; all 0: not known */
    int64_t peak;              /* its live bytes */
    double seconds, packing_s; /* of which, for packing weights when it runs */
    ot_plan *own;              /* the plan that the lap's options alone give; the candidates' */
    ot_plan_options o;         /* of the lap */
    bool changes;              /* the model is written otherwise than it is */
    bool any_regions;          /* the plan has regions */
} ot_outcome;

/* What processes are scored by (score.c). */
typedef struct ot_score_base {
    int64_t process; /* bytes of the untiled model's */
    int64_t beside;  /* of which, beside growth, it must hold: less is no gain to any set */
    int64_t untiled; /* what the untiled model scores */
} ot_score_base;

/* A set that was scored, and how it was written. */
typedef struct ot_scored {
    uint64_t key;
    int64_t bytes;
    bool is_more; /* it scores more than that, and nobody wanted to know how much */
} ot_scored;

/* What a set takes, as it was written; or (is_cut) at least. */
typedef struct ot_simulated {
    ot_sim_figures figures;
    double packing_seconds;
    bool is_written; /* false: it cannot be, at that size */
} ot_simulated;

/* The same of all sets that were simulated at one size. */
typedef struct ot_simulations {
    uint64_t *keys;    /* [n] */
    ot_simulated *all; /* [n_all] of the same n */
    size_t n, n_all, cap, cap_all;
} ot_simulations;

/* Plans whose tiles take a part of the fast memory. */
typedef struct ot_smaller {
    ot_target target; /* t with that room */
    ot_planner *planner;
} ot_smaller;

/* A region's place among those of the pool. */
typedef struct ot_pool_link {
    uint32_t next; /* another that begins at the same step; OT_NONE: no more */
    uint32_t lap;  /* the last lap of whose pool it is */
    /* only ot_candidates_let_go puts it into sets: a climb through all would take too long */
    bool late;
} ot_pool_link;

typedef struct ot_candidates {
    ot_graph *g;
    const ot_graph *file_graph; /* of g's sizes before they were bound, or g */
    const ot_target *t;
    ot_plan_options o;   /* the user's, with the limit on time of the lap at hand */
    ot_planner *planner; /* of g */
    ot_smaller *smaller; /* beside it, in rooms of a scratchpad, as they are made (less_room.c) */
    bool static_shape;   /* the file states all extents */
    int64_t weights;     /* bytes of g's initializers */
    /* [nodes of g] seconds to pack the weights that a loop captures, each time that it runs */
    double *repacks;
    bool starts_rich;       /* laps begin with plans in which kept bytes have a price, too */
    ot_writing how;         /* of what is scored now */
    double packing_seconds; /* that deferred and unpacked weights cost in what was written last */
    double unpacked_s;      /* of these, what unpacked weights cost as sets are written now */
    double block_s;         /* seconds that the tensor which comes first takes */
    bool at_design;         /* scored at the design size alone */
    double untiled_s;       /* predicted time of the untiled model */
    ot_sim_figures untiled; /* what a process takes that runs the untiled model */
    ot_score_base base;     /* what is scored by, */
    bool has_base;          /* once a lap has set it */
    bool is_known;          /* the simulation knows all sizes */
    /* of the smaller size (two_sizes.c), once that was looked at; process 0: not known */
    ot_score_base small_base;
    bool looked_small;
    uint64_t work; /* nodes that were written and simulated */
    /* tiles of regions, of g and at the smaller size */
    struct ot_form_memo *memo, *small_memo;
    ot_arena *arena;
    ot_plan *own;    /* the plan of o of the lap at hand; one of plans */
    ot_plan **plans; /* [n_plans] all that were made; owned */
    size_t n_plans, cap_plans;
    const ot_region **pool; /* [n_pool] their regions, each once */
    size_t n_pool, cap_pool;
    uint32_t *pool_head; /* [nodes of g] the last of the pool that begins at a step; OT_NONE */
    ot_pool_link *links; /* [n_links] one for each of the pool */
    size_t n_links, cap_links;
    uint32_t lap;       /* number of the lap at hand */
    bool finds_late;    /* what is found now is such */
    size_t n_near;      /* regions of the pool that were found around held values */
    uint32_t *lap_pool; /* [n_lap_pool] of these, the ones that plans of the lap at hand have */
    size_t n_lap_pool, cap_lap_pool;
    ot_region_set *sets; /* [n_sets] of each plan of the lap at hand */
    size_t n_sets, cap_sets;
    ot_region_set *kept; /* [n_kept] what laps found */
    size_t n_kept, cap_kept;
    ot_scored *scored; /* [n_scored] */
    size_t n_scored, cap_scored;
    ot_simulations simulated, small_simulated; /* of g, and at the smaller size */
} ot_candidates;

/* ---- simulated.c ---- */

/* Of the set as x writes it now, and of the nodes in it: regions of equal ends may leave out
 * others. */
uint64_t ot_written_key(const ot_candidates *x, const ot_region *regions, uint32_t n);
/* NULL: it is not known. Good until the next one is kept. */
const ot_simulated *ot_simulations_find(const ot_simulations *all, uint64_t key);
/* In the place of what was known of it, if anything was. false: no memory. */
bool ot_simulations_keep(ot_simulations *all, ot_arena *a, uint64_t key,
                         const ot_simulated *now) OT_MUST_USE;

/* ---- candidates.c ---- */

/* What competes for graph g with options o, which are copied; g, t must outlive it. Fails:
 * OT_E_NOMEM; then nothing is left to close. */
ot_status ot_candidates_open(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                             bool static_shape, ot_candidates **out) OT_MUST_USE;
void ot_candidates_close(ot_candidates *x);
/* The best that is found with so much slowdown; x->own is the plan that the options alone give.
 * Where sets compete, later laps have a larger slowdown. Fails: as ot_planner_plan. */
ot_status ot_candidates_lap(ot_candidates *x, double slowdown, ot_outcome *out) OT_MUST_USE;
/* An outcome of another of the same graph, for another fast memory, as one of x: with x's costs.
 * *found false: a region is none here, or it takes longer than x's lap at hand allows. After a
 * lap. Fails: OT_E_NOMEM. */
ot_status ot_candidates_again(ot_candidates *x, const ot_outcome *of, ot_outcome *out,
                              bool *found) OT_MUST_USE;
/* An outcome as a plan, with its figures; x gives the plans away that it still needs, and can but
 * be closed then. Fails: OT_E_NOMEM. */
ot_status ot_candidates_take(ot_candidates *x, const ot_outcome *of, ot_plan **out) OT_MUST_USE;
/* May figures of a plan tell what the process takes? All sizes are known, or those of some values
 * are not, which every output says then (ot_unknown_sizes): it takes at least that. Not where they
 * are unknown in bodies alone, or of all values. After a lap. Fails: OT_E_NOMEM. */
ot_status ot_candidates_tells_process(const ot_candidates *x, bool *told) OT_MUST_USE;
/* Nothing was asked for that keeps sets of regions from competing. */
bool ot_candidates_compete(const ot_plan_options *o);

/* A plan of options o by that planner, which x owns. *p NULL: none keeps a limit; *why says which.
 * Fails: OT_E_NOMEM. */
ot_status ot_candidates_made(ot_candidates *x, ot_planner *planner, const ot_plan_options *o,
                             ot_diag *why, ot_plan **p) OT_MUST_USE;
/* A plan of options o, which x owns. *p NULL: none keeps the limit on tensors. Fails: OT_E_BUDGET,
 * OT_E_NOMEM. */
ot_status ot_candidates_make(ot_candidates *x, const ot_plan_options *o, ot_plan **p) OT_MUST_USE;
/* The same; its regions compete. *bytes: what they score; INT64_MAX without a plan. */
ot_status ot_candidates_try(ot_candidates *x, const ot_plan_options *o, int64_t *bytes) OT_MUST_USE;
/* A copy of the model in which these regions ([n], of any plan; they get new numbers) are written
 * as x->how says. Caller frees. Fails: OT_E_NOMEM. */
ot_status ot_candidates_write(ot_candidates *x, ot_region *regions, uint32_t n,
                              ot_model **copy) OT_MUST_USE;
/* What a process grows by that runs g, a graph of x's as it is written: with dynamic shapes, in
 * the worst of a few orders of changes of layout. stop: of ot_sim_growth_until. Fails: OT_E_NOMEM.
 */
ot_status ot_candidates_growth(const ot_candidates *x, const ot_graph *g, bool static_shape,
                               const ot_sim_stop *stop, ot_sim_figures *f) OT_MUST_USE;
/* What the process takes when these regions ([n]) are written so; growth without bound (INT64_MAX)
 * where a tensor is larger than allowed. Fails: OT_E_NOMEM. */
ot_status ot_candidates_simulate(ot_candidates *x, ot_region *regions, uint32_t n,
                                 ot_sim_figures *f) OT_MUST_USE;
/* Extents can be hidden where they are stated, by the file or by n_regions regions of one size. */
bool ot_candidates_hide(const ot_candidates *x, uint32_t n_regions);
/* What counts of that (ot_score_bytes). Fails: OT_E_NOMEM. */
ot_status ot_candidates_score(ot_candidates *x, ot_region *regions, uint32_t n,
                              int64_t *bytes) OT_MUST_USE;
/* The same; INT64_MAX where it is more than `most`, as far as that is found out earlier. Fails:
 * OT_E_NOMEM. */
ot_status ot_candidates_score_to(ot_candidates *x, ot_region *regions, uint32_t n, int64_t most,
                                 int64_t *bytes) OT_MUST_USE;

/* ---- score.c ---- */

/* The process (ot_process_bytes), and what it is made of, as figures of a plan. */
void ot_process_figures(const ot_sim_figures *f, ot_figures *out);
/* The process of an outcome; 0: not known. */
int64_t ot_outcome_process(const ot_outcome *of);
/* To score by: `written` is the untiled model as tiles are going to be written, with its weights in
 * a file of their own; else the same. */
ot_score_base ot_score_base_of(const ot_sim_figures *untiled, const ot_sim_figures *written);
/* What an edit of the model makes competes with what the model as it is makes: by one base. Until
 * plain has one, nothing. */
void ot_score_base_share(const ot_candidates *plain, ot_candidates *edited);
/* Bytes by which processes compare. Growth without bound: INT64_MAX. More growth never scores less:
 * a simulation may end where the score is above what is asked for. */
int64_t ot_score_bytes(const ot_sim_figures *f, const ot_score_base *base);
/* Of a large graph: the nodes that tiles of regions [n] add take more, once they are loaded, than
 * all tensors of the untiled model: whatever they save, the process takes more. */
bool ot_score_loads_more(const ot_candidates *x, const ot_region *regions, uint32_t n);
/* What a looser limit on time found, `to`, takes the place of what is kept: it scores less, and
 * grows by no more, or the process takes less by a twentieth and by as much as it grows by more. */
bool ot_score_holds_less(const ot_sim_figures *kept, const ot_sim_figures *to,
                         const ot_score_base *base);
/* Where a simulation may end whose score by `base` counts up to `most` only. */
typedef struct ot_score_limit {
    const ot_score_base *base;
    int64_t most; /* INT64_MAX: no limit */
} ot_score_limit;
/* It reads l when it is asked. */
ot_sim_stop ot_score_stop(const ot_score_limit *l);

/* ---- less_room.c ---- */

/* x->own, a plan of options o or NULL where none keeps the budget, becomes a better one whose tiles
 * take less of a scratchpad, where that holds less, or keeps the budget in less time. x owns what
 * is made. Fails: OT_E_NOMEM. */
ot_status ot_candidates_less_room(ot_candidates *x, const ot_plan_options *o) OT_MUST_USE;
void ot_smaller_close(ot_candidates *x);

/* ---- propose.c ---- */

/* Plans of other options than the lap's own, as many as the graph's size allows; *won: the best
 * set of regions of all plans, as far as it is searched. Fails: OT_E_NOMEM. */
ot_status ot_candidates_propose(ot_candidates *x, ot_region_set *won) OT_MUST_USE;

/* ---- refine.c ---- */

/* How *won is written best, and whether it wins over the untiled model by enough: else it becomes
 * a set of no regions. Fails: OT_E_NOMEM. */
ot_status ot_candidates_refine(ot_candidates *x, ot_region_set *won) OT_MUST_USE;
/* All that tensors take is less than what is not known of the nodes: no set wins. */
bool ot_candidates_lost(const ot_candidates *x);
/* The graph can be written as a branch, and the runtime gains by it. */
bool ot_candidates_branch(const ot_candidates *x);
/* Weights of convolutions can be left as they are: in a branch. */
bool ot_candidates_unpack(const ot_candidates *x);
/* The runtime hands pieces on in sequences. */
bool ot_candidates_sequences(const ot_candidates *x);

/* ---- two_sizes.c ---- */

/* *bytes, what the regions ([n]) score at the design size, becomes what they score at that and at
 * a smaller one; it stays where extents are static, or no smaller size is known. most: as of
 * ot_candidates_score_to. Fails: OT_E_NOMEM. */
ot_status ot_candidates_both(ot_candidates *x, const ot_region *regions, uint32_t n, int64_t most,
                             int64_t *bytes) OT_MUST_USE;
/* *here: what regions ([n]) may score at the design size, for `most` at both; below 0: they score
 * more whatever that is. The smaller size is simulated in less time, and tells how far to simulate
 * the other one. Fails: OT_E_NOMEM. */
ot_status ot_candidates_small_first(ot_candidates *x, const ot_region *regions, uint32_t n,
                                    int64_t most, int64_t *here) OT_MUST_USE;
/* With dynamic shapes, several regions may have to come in before one lowers anything at the
 * smaller size: *won becomes what is best at the design size alone, where that scores less at
 * both. Fails: OT_E_NOMEM. */
ot_status ot_candidates_at_design(ot_candidates *x, ot_region_set *won) OT_MUST_USE;
/* With dynamic shapes, the rows of a tile are the same at every size: the regions of *won compete
 * in tiles of other lengths, and it becomes the best set with them. Fails: OT_E_NOMEM. */
ot_status ot_candidates_vary(ot_candidates *x, ot_region_set *won) OT_MUST_USE;

/* ---- select_time.c ---- */

/* The process grows by more, or holds more, than the untiled model's. */
bool ot_time_costs_memory(const ot_candidates *x, const ot_sim_figures *f);
/* The same of a set too large for regions to leave it one by one (ot_time_is_worth leaves none of
 * it), seen before it is written: its nodes alone take more than the untiled model's tensors. */
bool ot_time_cannot_pay(const ot_candidates *x, const ot_region_set *set);
/* With goal time: regions leave *set until the process holds no more than the untiled model's, and
 * its growth times the seconds is no more; grown: what *set takes. Fails: OT_E_NOMEM. */
ot_status ot_time_is_worth(ot_candidates *x, const ot_sim_figures *grown,
                           ot_region_set *set) OT_MUST_USE;

/* ---- tensor_limit.c ---- */

/* Another form for x->own, where the tensors that it makes are larger than max_tensor. Fails:
 * OT_E_BUDGET, OT_E_NOMEM. */
ot_status ot_limit_keep(ot_candidates *x) OT_MUST_USE;
/* Fill largest_bytes of p's figures: of the model as it is, and as it is written. Fails:
 * OT_E_NOMEM. */
ot_status ot_limit_fill(ot_candidates *x, ot_plan *p) OT_MUST_USE;

/* Marks the weights of g that no runtime is to pack. Returns how many. Requires USES, SHAPES. */
uint32_t ot_mark_writing(ot_graph *g, const ot_writing *how);

/* Sets from *won on, as they are written now, unless the process then holds or grows by more than
 * that. Fails: OT_E_NOMEM. */
ot_status ot_candidates_climb_below(ot_candidates *x, ot_region_set *won, int64_t process,
                                    int64_t growth) OT_MUST_USE;

/* ---- plain_maps.c ---- */

/* Let convolutions of large maps compute plain tensors where *won scores less by enough so, within
 * its time: x->how, won->bytes, x->unpacked_s. Fails: OT_E_NOMEM. */
ot_status ot_candidates_plain_maps(ot_candidates *x, ot_region_set *won) OT_MUST_USE;

/* ---- loading.c ---- */

/* Tiles that are written out in a graph that states no extents leave *of, or become loops, where
 * the process holds and grows by no more then, and the time is about the same: what remains loads
 * in less. allowed_s: the limit on time. Fails: OT_E_NOMEM. */
ot_status ot_candidates_lighten(ot_candidates *x, double allowed_s, ot_outcome *of) OT_MUST_USE;

/* ---- first_block.c ---- */

/* Let a tensor come before the branch runs where *won then takes less by enough, within its time:
 * x->how, won->bytes, x->block_s. Fails: OT_E_NOMEM. */
ot_status ot_candidates_first_block(ot_candidates *x, ot_region_set *won) OT_MUST_USE;
/* What such a tensor takes; bytes 0: 0. */
double ot_first_block_seconds(const ot_candidates *x, int64_t bytes);

/* ---- region_sets.c ---- */

/* The plan's regions compete; `bytes` is what they score. p lives as long as x does: sets point to
 * its regions. Fails: OT_E_NOMEM. */
ot_status ot_candidates_add(ot_candidates *x, const ot_plan *p, int64_t bytes) OT_MUST_USE;
/* A set that a lap found competes in those after it. Fails: OT_E_NOMEM. */
ot_status ot_candidates_keep(ot_candidates *x, const ot_region_set *set) OT_MUST_USE;
/* The spare regions of p compete, each by itself; x owns p from now on, also when this fails.
 * Fails: OT_E_NOMEM. */
ot_status ot_candidates_offer(ot_candidates *x, ot_plan *p) OT_MUST_USE;
/* `from` is to have r, which makes it `to`. Steps that take longer than what they replace must save
 * more than tiles, for rows that are put together are predicted less well. */
bool ot_candidates_comes_in(const ot_candidates *x, const ot_region *r, const ot_region_set *from,
                            const ot_region_set *to);
/* `to` keeps to the limit on time, or is no slower than `from`, if that is not NULL. */
bool ot_set_in_time(const ot_candidates *x, const ot_region_set *to, const ot_region_set *from);
/* Out of *set go regions that save least time, until it keeps to the limit: the planner does not
 * know what writing adds to theirs. */
ot_status ot_set_allow(ot_candidates *x, ot_region_set *set) OT_MUST_USE;
/* *to: `from` with r, without what r overlaps; false: it has r. to->all: room. */
bool ot_set_put_in(const ot_candidates *x, const ot_region_set *from, const ot_region *r,
                   ot_region_set *to);
void ot_set_swap(ot_region_set *a, ot_region_set *b);
/* Of all by which regions differ, and of how they are written. */
uint64_t ot_set_key(const ot_candidates *x, const ot_region_set *set);
/* set->bytes, looked up where the same set was scored before; INT64_MAX where it is more than
 * `most`, as far as that is found out earlier. Fails: OT_E_NOMEM. */
ot_status ot_set_score(ot_candidates *x, int64_t most, ot_region_set *set) OT_MUST_USE;
/* The best set of regions that is found with some work: first of the plans of the lap at hand,
 * as if there had been no other; then of all, from that one and what laps before found. *won:
 * regions of a plan, or in x's arena. Fails: OT_E_NOMEM. */
ot_status ot_candidates_search(ot_candidates *x, ot_region_set *won) OT_MUST_USE;
/* *won becomes better, if it can, by regions that come in or go, one at a time; x->work begins
 * anew. Fails: OT_E_NOMEM. */
ot_status ot_candidates_climb(ot_candidates *x, ot_region_set *won) OT_MUST_USE;
/* *at becomes a set in which nothing of the step is left where the block is fullest (full: as *at
 * is simulated), and that takes no more; it competes. *left: there is one. Fails: OT_E_NOMEM. */
ot_status ot_candidates_leave(ot_candidates *x, const ot_sim_figures *full, ot_region_set *at,
                              bool *left) OT_MUST_USE;
/* The set as a plan; x gives the plans away that it still needs. Fails: OT_E_NOMEM. */
ot_status ot_candidates_plan(ot_candidates *x, const ot_region_set *won, ot_plan **out) OT_MUST_USE;

/* ---- repacks.c ---- */

/* Fill x->repacks. Fails: OT_E_NOMEM. */
ot_status ot_repacks_fill(ot_candidates *x) OT_MUST_USE;
/* Seconds that r saves as regions are written now. */
double ot_set_saves(const ot_candidates *x, const ot_region *r);
/* Seconds that packing anew costs the set as it is written now. */
double ot_set_repacks(const ot_candidates *x, const ot_region_set *set);

/* ---- growth_step.c ---- */

/* *won becomes a better set by a region that lets go of what is held at the step where the process
 * grows last, f: as *won is simulated; by one and its twins; or by two that follow each other so.
 * x->work stays below `most`, but for the last set. Fails: OT_E_NOMEM. */
ot_status ot_candidates_let_go(ot_candidates *x, uint64_t most, const ot_sim_figures *f,
                               ot_region_set *won, bool *better) OT_MUST_USE;

#endif
