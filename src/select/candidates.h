/* Plans and sets of their regions that compete for the least growth (private to this folder). */
#ifndef OT_SELECT_CANDIDATES_H
#define OT_SELECT_CANDIDATES_H

#include "select.h"

#include "alloc_sim/alloc_sim.h"

/* Regions of a plan, or of several. */
typedef struct ot_region_set {
    ot_region *all; /* [n] in topological order, disjoint */
    uint32_t n;
    int64_t bytes; /* what they weigh (ot_candidates_score) */
    double gain;   /* seconds that they save together */
} ot_region_set;

typedef struct ot_candidates {
    ot_graph *g;
    const ot_target *t;
    const ot_plan_options *o;
    bool static_shape; /* the file states all extents */
    bool branch;       /* candidates are played as a branch */
    bool views;        /* candidates read blocked values through views */
    /* candidates are written with BatchNormalizations folded into convolutions */
    bool folds_norms;
    /* weights of candidates are packed when they are used, from so many bytes on; 0: none */
    int64_t defer_from;
    int64_t deferred_bytes; /* that were packed so in the candidate written last */
    int64_t unjoined_from;  /* candidates keep values of so many bytes in pieces; 0: none */
    bool at_design;         /* candidates are weighed at the design size alone */
    double untiled_s;       /* predicted time of the untiled model */
    ot_figures whole;       /* of the untiled model: growth_bytes, loaded_bytes */
    /* of the untiled model at the smaller size (two_sizes.c); 0: not looked at yet, -1: not
     * known */
    int64_t small_growth;
    uint64_t work; /* nodes that were written and played */
    /* [n_starts] plans to begin with, besides o's; each brings as much work as o's */
    const ot_plan_options *starts;
    size_t n_starts;
    ot_arena *arena;
    ot_plan **plans; /* [n_plans] all that were made; owned */
    size_t n_plans, cap_plans;
    ot_region *pool; /* [n_pool] their regions, each once */
    size_t n_pool, cap_pool;
    ot_region_set *sets; /* [n_sets] of each plan */
    size_t n_sets, cap_sets;
} ot_candidates;

/* ---- select_plan.c ---- */

/* ot_select_plan, where the contest also begins with plans that are made with other options than
 * o: starts ([n]). Fails: as that. */
ot_status ot_select_plan_with(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                              bool static_shape, const ot_plan_options *starts, size_t n,
                              ot_plan **p) OT_MUST_USE;

/* Bytes by which processes compare: what one grows by, and what it holds of the loaded model
 * beyond what it holds of the untiled one, as far as that is more than an eighth of what tiling
 * gains. */
int64_t ot_score_bytes(int64_t growth, int64_t loaded, const ot_figures *untiled);

/* A copy of the model in which these regions ([n], of any plan; they get new numbers) are
 * written, and nothing else of p. Caller frees. Fails: OT_E_NOMEM. */
ot_status ot_candidates_write(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t n,
                              ot_model **copy) OT_MUST_USE;
/* What a process grows by that runs g, one of the contest's graphs as it is written: with free
 * dimensions, in the worst of a few orders of changes of layout. Fails: OT_E_NOMEM. */
ot_status ot_candidates_growth(const ot_candidates *x, const ot_graph *g, bool static_shape,
                               ot_sim_figures *f) OT_MUST_USE;
/* What the process takes when these regions ([n]) are written so; growth without bound
 * (INT64_MAX) where a tensor is larger than allowed. Fails: OT_E_NOMEM. */
ot_status ot_candidates_simulate(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t n,
                                 ot_sim_figures *f) OT_MUST_USE;
/* What counts of them (ot_score_bytes). Fails: OT_E_NOMEM. */
ot_status ot_candidates_score(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t n,
                              int64_t *bytes) OT_MUST_USE;

/* ---- two_sizes.c ---- */

/* *bytes, what the regions ([n]) weigh at the design size, becomes what they weigh at that and
 * at a smaller one; it stays where extents are fixed, or no smaller size is known. Fails:
 * OT_E_NOMEM. */
ot_status ot_candidates_both(ot_candidates *x, const ot_plan *p, const ot_region *regions,
                             uint32_t n, int64_t *bytes) OT_MUST_USE;

/* Where dimensions are free, several regions may have to come in before one lowers anything at
 * the smaller size: *won becomes what is best at the design size alone, where that weighs less
 * at both. Fails: OT_E_NOMEM. */
ot_status ot_candidates_at_design(ot_candidates *x, const ot_plan *first,
                                  ot_region_set *won) OT_MUST_USE;
/* Where dimensions are free, the rows of a tile are the same at every size: the regions of *won
 * compete in tiles of other lengths, and it becomes the best set with them. Fails: OT_E_NOMEM. */
ot_status ot_candidates_vary(ot_candidates *x, const ot_plan *first,
                             ot_region_set *won) OT_MUST_USE;

/* ---- select_time.c ---- */

/* With goal time: regions leave *p until the process's growth times the plan's seconds is no
 * more than the untiled model's; grown: what *p takes. x->whole is known. Fails: OT_E_NOMEM. */
ot_status ot_time_is_worth(ot_candidates *x, const ot_sim_figures *grown, ot_plan **p) OT_MUST_USE;

/* ---- select_tensor_limit.c ---- */

/* Another form for *p, where the tensors that it makes are larger than max_tensor. Fails:
 * OT_E_BUDGET, OT_E_NOMEM. */
ot_status ot_limit_keep(ot_candidates *x, ot_plan **p) OT_MUST_USE;
/* Fill largest_bytes of p's figures: of the model as it is, and as it is written. Fails:
 * OT_E_NOMEM. */
ot_status ot_limit_fill(ot_candidates *x, ot_plan *p) OT_MUST_USE;

/* ---- select_decomposed.c ---- */

/* Take g apart as the graph is that plan p is for. Fails: OT_E_NOMEM. */
ot_status ot_decompose_like(ot_graph *g, const ot_plan *p) OT_MUST_USE;

/* ---- select_budget.c ---- */

/* The process keeps to o's memory budget as well, with something to spare, as far as it is known
 * what it grows by. */
bool ot_budget_fits(const ot_figures *f, const ot_plan_options *o);

/* ---- region_sets.c ---- */

/* The plan's regions compete; `bytes` is what the plan weighs. Fails: OT_E_NOMEM. */
ot_status ot_candidates_add(ot_candidates *x, const ot_plan *p, int64_t bytes) OT_MUST_USE;
/* The spare regions of p compete, each by itself; the contest owns p from now on, also when this
 * fails. Fails: OT_E_NOMEM. */
ot_status ot_candidates_offer(ot_candidates *x, ot_plan *p) OT_MUST_USE;
/* `from` is to have r, which makes it `to`. Steps that take longer than what they replace must
 * save more than tiles, for rows that are put together are predicted less well. */
bool ot_candidates_comes_in(const ot_candidates *x, const ot_region *r, const ot_region_set *from,
                            const ot_region_set *to);
/* The best set of regions of all plans that is found with some work. *won: in the contest's
 * arena, with room for all regions of the pool. Fails: OT_E_NOMEM. */
ot_status ot_candidates_search(ot_candidates *x, const ot_plan *first,
                               ot_region_set *won) OT_MUST_USE;
/* *won becomes better, if it can, by regions that come in or go, one at a time; x->work begins
 * anew. Fails: OT_E_NOMEM. */
ot_status ot_candidates_climb(ot_candidates *x, const ot_plan *first,
                              ot_region_set *won) OT_MUST_USE;
/* *at becomes a set in which nothing of the step is left where the block is fullest (full: as
 * *at plays), and that takes no more; it competes. *left: there is one. Fails: OT_E_NOMEM. */
ot_status ot_candidates_leave(ot_candidates *x, const ot_plan *first, const ot_sim_figures *full,
                              ot_region_set *at, bool *left) OT_MUST_USE;
/* The set as a plan; the contest gives the plans away that it still needs. Fails: OT_E_NOMEM. */
ot_status ot_candidates_plan(ot_candidates *x, ot_plan *first, const ot_region_set *won,
                             ot_plan **out) OT_MUST_USE;

#endif
