/* Candidates of one graph: made, written on a copy, simulated, scored.
 *
 *   planner -- copy -- transform [-- branch] -- simulate --> bytes  the least wins; within 2 %, the
 *                                                                   faster one
 *
 * What the planner's live bytes say is what a plan must hold; what counts for somebody whose
 * process dies is what that grows by. Where a runtime's habits are not known, plans compete by
 * live bytes.
 */
#include "candidates.h"

#include "base/watch.h"
#include "cost/cost.h"
#include "ops/ops.h"
#include "tiling/forms.h"
#include "tiling/lower/lowering.h"
#include "transform/transform.h"

/* of changes of layout, the worst of which counts with dynamic shapes: there are no views that
 * decide it */
#define ORDERS       3
#define DATA_FILE    (1 << 20) /* bytes of weights for which a file of their own is written */
#define WEIGHTS_PART 0.35      /* of the process: a model with a data file and nothing else */
#define HALVINGS     4         /* of the price of kept bytes in a plan to begin with */

bool ot_candidates_compete(const ot_plan_options *o)
{
    return o->goal == OT_GOAL_MEMORY && o->memory_budget == 0 && !o->force &&
           o->force_form == OT_FORM_NONE;
}

static ot_status simulate_untiled(ot_candidates *x)
{
    if (!ot_runtime_simulates(x->t->runtime)) return OT_OK;
    if (ot_sim_growth(x->g, x->t->runtime, x->static_shape, &x->untiled) != OT_OK)
        return ot_fail_nomem(x->g->model->diag);
    x->base = ot_score_base_of(&x->untiled, &x->untiled);
    x->is_known = x->untiled.n_unknown == 0;
    return OT_OK;
}

static int64_t bytes_of_weights(const ot_graph *g)
{
    int64_t bytes = 0;
    for (ot_id v = 0; v < g->n_values; v++)
        if (g->values[v].init && !g->values[v].removed)
            bytes += (int64_t)ot_min((uint64_t)g->values[v].init->bytes, UINT64_MAX >> 24);
    return bytes;
}

ot_status ot_candidates_open(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                             bool static_shape, ot_candidates **out)
{
    ot_arena *arena = ot_arena_new();
    ot_candidates *x = arena ? OT_NEW(arena, ot_candidates) : NULL;
    *out = NULL;
    if (!x) {
        ot_arena_free(arena);
        return ot_fail_nomem(g->model->diag);
    }
    *x = (ot_candidates){.g = g,
                         .file_graph = g,
                         .t = t,
                         .o = *o,
                         .static_shape = static_shape,
                         .weights = bytes_of_weights(g),
                         .memo = ot_form_memo_new(arena),
                         .small_memo = ot_form_memo_new(arena),
                         .arena = arena};
    ot_status s = x->memo && x->small_memo ? ot_planner_open(g, t, &x->planner)
                                           : ot_fail_nomem(g->model->diag);
    if (s == OT_OK) s = simulate_untiled(x);
    if (s == OT_OK) s = ot_repacks_fill(x);
    if (s == OT_OK)
        *out = x;
    else
        ot_candidates_close(x);
    return s;
}

void ot_candidates_close(ot_candidates *x)
{
    if (!x) return;
    for (size_t k = 0; k < x->n_plans; k++) ot_plan_free(x->plans[k]);
    ot_smaller_close(x);
    ot_planner_close(x->planner);
    ot_form_memo_free(x->memo);
    ot_form_memo_free(x->small_memo);
    ot_arena_free(x->arena);
}

/* ---- writing and scoring ---- */

/* The model states its extents when it is written, with so many regions: they are of one size. */
static bool states_extents(const ot_candidates *x, uint32_t n_regions)
{
    return x->static_shape || (n_regions > 0 && !x->g->model->dynamic_dims);
}

bool ot_candidates_hide(const ot_candidates *x, uint32_t n_regions)
{
    return x->how.branch && !x->g->model->dynamic_dims && states_extents(x, n_regions);
}

/* Seconds by which marked weights make the graph's convolutions longer. */
static double unpacked_seconds(const ot_candidates *x, const ot_graph *g)
{
    double seconds = 0;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->op == OT_OP_Conv && g->values[n->in[1]].is_unpacked)
            seconds += ot_cost_unpacked(g, n, x->t);
    }
    return seconds;
}

uint32_t ot_mark_writing(ot_graph *g, const ot_writing *how)
{
    uint32_t n = how->unpacked_from > 0 ? ot_mark_unpacked(g, how->unpacked_from) : 0;
    return n + ot_mark_plain(g, how->plain, how->n_plain);
}

static void number_regions(const ot_candidates *x, ot_region *regions, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) regions[k].id = x->o.search.first_region + k;
}

ot_status ot_candidates_write(ot_candidates *x, ot_region *regions, uint32_t n, ot_model **copy)
{
    ot_plan some = {.regions = regions,
                    .n_regions = n,
                    .outer_weights = x->t->runtime->outer_weights && !x->how.data_file,
                    .looped_borders = x->t->runtime->looped_borders,
                    .slices_apart = x->t->runtime->slices_apart,
                    .nests_scans = x->t->runtime->nests_scans,
                    .unjoined_from = x->how.unjoined_from,
                    .viewed = x->how.views ? x->t->runtime : NULL,
                    .blocked = x->how.blocks ? x->t->runtime : NULL,
                    .memo = x->memo};
    number_regions(x, regions, n);
    ot_form_memo_next(x->memo);
    OT_TRY(ot_watch_look(x->g->model->diag));
    /* names are for who reads -d P */
    OT_TRY(ot_dbg['P'] ? ot_model_clone(x->g->model, copy) : ot_model_sketch(x->g->model, copy));
    some.arena = (*copy)->arena;
    (*copy)->data_file = x->how.data_file;
    x->packing_seconds = 0;
    if (ot_candidates_unpack(x) && ot_mark_writing((*copy)->graph, &x->how) > 0)
        x->packing_seconds = unpacked_seconds(x, (*copy)->graph);
    ot_status s = n > 0 ? ot_fold_static((*copy)->graph, &some) : OT_OK;
    /* normalisations become whole again, and values are made once */
    if (s == OT_OK && (n > 0 || (*copy)->n_decomposed > 0 || (*copy)->n_rematerialised > 0))
        s = ot_transform_tiles((*copy)->graph, &some);
    if (s == OT_OK && x->how.folds_norms) s = ot_fold_norms((*copy)->graph, false);
    if (s == OT_OK && x->how.piece_bytes > 0)
        s = ot_split_weights((*copy)->graph, x->how.piece_bytes);
    int64_t deferred = 0;
    if (s == OT_OK && x->how.defer_from > 0)
        s = ot_defer_packing((*copy)->graph, x->how.defer_from, &deferred);
    x->packing_seconds += (double)deferred * x->t->runtime->deferred_seconds;
    if (s == OT_OK && x->how.branch)
        s = ot_branch(*copy, x->how.hidden && ot_candidates_hide(x, n));
    if (s == OT_OK && x->how.branch) s = ot_first_block(*copy, x->how.first_block);
    if (s == OT_OK) s = ot_assure((*copy)->graph, OT_P_ORDER | OT_P_USES);
    if (s != OT_OK) ot_model_free(*copy);
    return s;
}

ot_status ot_candidates_growth(const ot_candidates *x, const ot_graph *g, bool static_shape,
                               const ot_sim_stop *stop, ot_sim_figures *f)
{
    const uint32_t orders = x->g->model->dynamic_dims ? ORDERS : 1;
    return ot_sim_growth_until(g, x->t->runtime, static_shape, orders, stop, f);
}

static ot_status simulate_written(ot_candidates *x, ot_region *regions, uint32_t n, int64_t most,
                                  ot_sim_figures *f)
{
    const ot_score_limit limit = {.base = &x->base, .most = most};
    const ot_sim_stop stop = ot_score_stop(&limit);
    ot_model *copy;
    OT_TRY(ot_candidates_write(x, regions, n, &copy));
    const bool hidden = x->how.hidden && ot_candidates_hide(x, n);
    const ot_status s = ot_candidates_growth(x, copy->graph, states_extents(x, n) && !hidden, &stop,
                                             f);
    if (s == OT_OK && x->o.max_tensor && ot_largest_tensor(copy->graph).bytes > x->o.max_tensor) {
        f->growth = INT64_MAX;
        f->is_cut = false;
    }
    ot_model_free(copy);
    return s;
}

/* The same with a message of its own: where these regions cannot be written together, another set
 * is chosen; the model is written untiled at the least. */
static ot_status simulate_aside(ot_candidates *x, ot_region *regions, uint32_t n, int64_t most,
                                ot_sim_figures *f)
{
    ot_diag *told = x->g->model->diag, why = {0};
    if (n == 0) return simulate_written(x, regions, n, most, f);
    x->g->model->diag = &why;
    const ot_status s = simulate_written(x, regions, n, most, f);
    x->g->model->diag = told;
    if (s == OT_OK || s == OT_E_NOMEM) return s;
    if (s != OT_E_INPUT) return ot_fail(told, s, "%s", why.message);
    if (ot_dbg['P']) fprintf(stderr, "> Left out: %s\n", why.message);
    *f = (ot_sim_figures){.growth = INT64_MAX};
    return OT_OK;
}

/* As far as the score is at most `most`: f->is_cut where it is more. What was simulated before
 * counts as work all the same: how far a search goes does not depend on who asked first. -d P
 * prints the steps of each, so that each is simulated then. */
static ot_status simulate_to(ot_candidates *x, ot_region *regions, uint32_t n, int64_t most,
                             ot_sim_figures *f)
{
    const uint64_t key = ot_written_key(x, regions, n);
    x->work += x->g->n_order + n;
    number_regions(x, regions, n);
    const ot_simulated *known = ot_dbg['P'] ? NULL : ot_simulations_find(&x->simulated, key);
    if (known) {
        *f = known->figures;
        x->packing_seconds = known->packing_seconds;
        if (!f->is_cut || ot_score_bytes(f, &x->base) > most) return OT_OK;
    }
    const ot_status s = simulate_aside(x, regions, n, most, f);
    if (s == OT_E_NOMEM) return ot_fail_nomem(x->g->model->diag);
    OT_TRY(s);
    const ot_simulated done = {
        .figures = *f, .packing_seconds = x->packing_seconds, .is_written = true};
    return ot_simulations_keep(&x->simulated, x->arena, key, &done)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_simulate(ot_candidates *x, ot_region *regions, uint32_t n,
                                 ot_sim_figures *f)
{
    return simulate_to(x, regions, n, INT64_MAX, f);
}

ot_status ot_candidates_score_to(ot_candidates *x, ot_region *regions, uint32_t n, int64_t most,
                                 int64_t *bytes)
{
    int64_t here = -1;
    ot_sim_figures f = {0};
    number_regions(x, regions, n);
    if (!ot_score_loads_more(x, regions, n))
        OT_TRY(ot_candidates_small_first(x, regions, n, most, &here));
    if (here < 0) {
        x->work += x->g->n_order + n;
        *bytes = INT64_MAX;
        return OT_OK;
    }
    OT_TRY(simulate_to(x, regions, n, here, &f));
    *bytes = f.is_cut ? INT64_MAX : ot_score_bytes(&f, &x->base);
    return ot_candidates_both(x, regions, n, most, bytes);
}

ot_status ot_candidates_score(ot_candidates *x, ot_region *regions, uint32_t n, int64_t *bytes)
{
    return ot_candidates_score_to(x, regions, n, INT64_MAX, bytes);
}

/* ---- plans ---- */

ot_status ot_candidates_made(ot_candidates *x, ot_planner *planner, const ot_plan_options *o,
                             ot_diag *why, ot_plan **p)
{
    ot_diag *told = x->g->model->diag;
    *p = NULL;
    *why = (ot_diag){0};
    x->g->model->diag = why; /* a plan that does not hold is no failure */
    const ot_status s = ot_planner_plan(planner, o, p);
    x->g->model->diag = told;
    if (s == OT_E_BUDGET) return OT_OK;
    if (s != OT_OK) return ot_fail(told, s, "%s", why->message);
    if (OT_PUSH(x->arena, x->plans, x->n_plans, x->cap_plans, *p)) return OT_OK;
    ot_plan_free(*p);
    *p = NULL;
    return ot_fail_nomem(told);
}

ot_status ot_candidates_make(ot_candidates *x, const ot_plan_options *o, ot_plan **p)
{
    ot_diag why;
    OT_TRY(ot_candidates_made(x, x->planner, o, &why, p));
    if (*p || o->max_tensor || o->max_slowdown < 0) return OT_OK;
    return ot_fail(x->g->model->diag, OT_E_BUDGET, "%s", why.message);
}

/* p has regions, or cannot be made whatever bytes cost. */
static bool tiles(const ot_plan *p, const ot_plan_options *o)
{
    return p ? p->n_regions > 0 : o->max_slowdown >= 0;
}

/* Where bytes cost so much that nothing which saves them keeps within the time allowed, they
 * cost less and less. */
static ot_status make_in_reach(ot_candidates *x, const ot_plan_options *o, ot_plan **p)
{
    ot_plan_options less = *o;
    less.detail = false;
    less.search.spare = o->search.near > 0 || o->force_form == OT_FORM_STREAM;
    OT_TRY(ot_candidates_make(x, &less, p));
    const bool priced = o->search.byte_seconds > 0 && !o->force;
    for (int k = 0; k < HALVINGS && priced && !tiles(*p, o); k++) {
        less.search.byte_seconds /= 2;
        OT_TRY(ot_candidates_make(x, &less, p));
    }
    return OT_OK;
}

ot_status ot_candidates_try(ot_candidates *x, const ot_plan_options *o, int64_t *bytes)
{
    ot_plan *p;
    *bytes = INT64_MAX;
    OT_TRY(make_in_reach(x, o, &p));
    if (!p) return OT_OK;
    OT_TRY(ot_candidates_score(x, p->regions, p->n_regions, bytes));
    if (ot_dbg['P'])
        fprintf(stderr,
                "> Candidate: level %lld, price %g, form %s: %u regions, %.2f MB, %.3f ms\n",
                (long long)o->search.level, o->search.price, ot_form_name(o->force_form),
                p->n_regions, (double)*bytes / 1048576.0, p->tiled.time_s * 1e3);
    return ot_candidates_add(x, p, *bytes);
}

/* ---- a lap ---- */

/* Sets of regions compete by what their process takes. */
static bool sets_compete(const ot_candidates *x)
{
    return ot_candidates_compete(&x->o) && ot_runtime_simulates(x->t->runtime);
}

/* Weights are written to a file of their own: for less memory, where there are enough of them. */
static bool has_data_file(const ot_candidates *x)
{
    const bool memory = x->o.goal == OT_GOAL_MEMORY || x->o.memory_budget > 0;
    return memory && !x->o.single_file && x->t->runtime->maps_weights && x->weights >= DATA_FILE;
}

static void write_plainly(ot_candidates *x)
{
    const bool any = sets_compete(x), apart = has_data_file(x);
    x->how = (ot_writing){.branch = any && ot_candidates_branch(x),
                          .data_file = apart,
                          .blocks = any && x->t->runtime->plain_views && !x->t->bit_exact,
                          .folds_norms = any && (apart || x->t->runtime->folds_norms) &&
                                         !x->t->bit_exact};
    x->packing_seconds = x->unpacked_s = x->block_s = 0;
}

/* Where weights are written to a file of their own, sets compete beside the model written so. */
static ot_status set_base(ot_candidates *x)
{
    ot_sim_figures f;
    if (x->has_base || !sets_compete(x)) return OT_OK;
    x->has_base = true;
    if (!x->how.data_file) return OT_OK;
    OT_TRY(ot_candidates_simulate(x, NULL, 0, &f));
    if (f.growth != INT64_MAX) x->base = ot_score_base_of(&x->untiled, &f);
    return OT_OK;
}

/* The plan that the options alone give. Where regions have to save time, estimates of those with
 * the least memory may miss that: the fastest then. */
static ot_status make_own(ot_candidates *x)
{
    ot_plan_options o = x->o;
    ot_diag why;
    o.detail = false; /* filled when it is taken */
    OT_TRY(ot_candidates_made(x, x->planner, &o, &why, &x->own));
    if (!x->own && o.max_slowdown < 0) {
        o.goal = OT_GOAL_TIME;
        OT_TRY(ot_candidates_made(x, x->planner, &o, &why, &x->own));
    }
    OT_TRY(ot_candidates_less_room(x, &o));
    if (!x->own) return ot_fail(x->g->model->diag, OT_E_BUDGET, "%s", why.message);
    x->untiled_s = x->own->untiled.time_s;
    return OT_OK;
}

static ot_region_set set_of(const ot_candidates *x, const ot_plan *p)
{
    ot_region_set set = {.all = p->regions, .n = p->n_regions};
    for (uint32_t k = 0; k < set.n; k++) set.gain += ot_set_saves(x, &set.all[k]);
    return set;
}

/* What p takes is known, and nothing was asked for but time. */
static bool is_for_time(const ot_candidates *x)
{
    const ot_plan_options *o = &x->o;
    return o->goal == OT_GOAL_TIME && o->memory_budget == 0 && o->max_tensor == 0 && !o->force &&
           o->force_form == OT_FORM_NONE && x->is_known && !x->g->model->dynamic_dims;
}

/* So much of the process are weights that a file of their own by itself takes an eighth less
 * (measured: half of them; BERT 607 MB, 417). */
static bool is_weights(const ot_candidates *x)
{
    const double whole = (double)ot_process_bytes(&x->untiled);
    return sets_compete(x) && x->is_known && (double)x->weights > WEIGHTS_PART * whole;
}

/* Figures of the set as it is written. */
static ot_status measure(ot_candidates *x, const ot_region_set *set, ot_outcome *out)
{
    ot_sim_figures f = x->untiled;
    const ot_writing *w = &x->how;
    *out = (ot_outcome){.set = *set, .how = *w};
    if (is_for_time(x) && ot_time_cannot_pay(x, set)) out->set.n = 0;
    out->any_regions = out->set.n > 0;
    const bool edits = out->set.n > 0 || w->branch || w->defer_from > 0 || w->piece_bytes > 0;
    out->how.data_file = w->data_file && (edits || is_weights(x));
    out->changes = edits || out->how.data_file;
    out->how.folds_norms = w->folds_norms && out->changes;
    out->how.hidden = w->hidden && ot_candidates_hide(x, out->set.n);
    x->how = out->how;
    if (ot_runtime_simulates(x->t->runtime) && (out->changes || ot_dbg['P']))
        OT_TRY(ot_candidates_simulate(x, out->set.all, out->set.n, &f));
    if (is_for_time(x) && out->set.n > 0 && ot_time_costs_memory(x, &f)) {
        OT_TRY(ot_time_is_worth(x, &f, &out->set));
        f = x->untiled;
        out->changes = out->any_regions = out->set.n > 0;
        if (out->changes) OT_TRY(ot_candidates_simulate(x, out->set.all, out->set.n, &f));
    }
    /* of what is known, where sets compete by it: detectors choose boxes behind the network */
    if (x->is_known || sets_compete(x)) out->takes = f;
    const bool packs = w->defer_from == 0 && w->unpacked_from == 0 && w->n_plain == 0;
    out->packing_s = (packs ? 0 : x->packing_seconds) + ot_set_repacks(x, &out->set) + x->block_s;
    out->set.gain = 0;
    for (uint32_t k = 0; k < out->set.n; k++) out->set.gain += out->set.all[k].benefit;
    out->seconds = x->untiled_s - out->set.gain + out->packing_s;
    out->peak = ot_planner_peak(x->planner, out->set.all, out->set.n);
    out->own = x->own;
    out->o = x->o;
    return out->peak >= 0 ? OT_OK : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_lap(ot_candidates *x, double slowdown, ot_outcome *out)
{
    x->o.max_slowdown = slowdown;
    x->n_sets = x->n_lap_pool = 0;
    x->lap++;
    OT_TRY(make_own(x));
    write_plainly(x);
    OT_TRY(set_base(x));
    if (x->o.max_tensor) OT_TRY(ot_limit_keep(x));
    ot_region_set won = set_of(x, x->own);
    if (sets_compete(x) && !x->o.max_tensor && ot_candidates_lost(x)) {
        won = (ot_region_set){.bytes = x->base.untiled};
        x->how.branch = false;
    } else if (sets_compete(x)) {
        OT_TRY(ot_candidates_score(x, won.all, won.n, &won.bytes));
        OT_TRY(ot_candidates_add(x, x->own, won.bytes));
        if (ot_score_loads_more(x, won.all, won.n))
            won = (ot_region_set){.all = won.all, .bytes = x->base.untiled};
        OT_TRY(ot_set_allow(x, &won));
        if (won.n < x->own->n_regions) OT_TRY(ot_candidates_score(x, won.all, won.n, &won.bytes));
        OT_TRY(ot_candidates_propose(x, &won));
        OT_TRY(ot_candidates_keep(x, &won));
        OT_TRY(ot_candidates_refine(x, &won));
    }
    return measure(x, &won, out);
}

/* x->how: as `of` is written, in x's own memory. */
static ot_status write_as(ot_candidates *x, const ot_outcome *of)
{
    x->how = of->how;
    x->block_s = ot_first_block_seconds(x, of->how.first_block);
    if (of->how.n_plain == 0) return OT_OK;
    x->how.plain = ot_memdup(x->arena, of->how.plain, of->how.n_plain * sizeof *of->how.plain);
    return x->how.plain ? OT_OK : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_again(ot_candidates *x, const ot_outcome *of, ot_outcome *out, bool *found)
{
    ot_plan *p;
    *found = false;
    OT_TRY(ot_plan_like(x->g, x->t, of->set.all, of->set.n, true, &p));
    if (!OT_PUSH(x->arena, x->plans, x->n_plans, x->cap_plans, p)) {
        ot_plan_free(p);
        return ot_fail_nomem(x->g->model->diag);
    }
    if (p->n_spare < of->set.n) return OT_OK;
    const ot_region_set set = {.all = p->spare, .n = p->n_spare};
    OT_TRY(write_as(x, of));
    OT_TRY(measure(x, &set, out));
    *found = out->seconds <= x->untiled_s * (1 + x->o.max_slowdown + OT_TIME_ABOUT);
    return OT_OK;
}

ot_status ot_candidates_tells_process(const ot_candidates *x, bool *told)
{
    *told = x->is_known;
    if (x->is_known || !sets_compete(x)) return OT_OK;
    const char *unknown = ot_unknown_sizes(x->g, x->g->model->arena);
    *told = unknown && *unknown && x->own->untiled.peak_bytes > 0;
    return unknown ? OT_OK : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_candidates_take(ot_candidates *x, const ot_outcome *of, ot_plan **out)
{
    x->how = of->how;
    if (!ot_candidates_compete(&of->o))
        x->own = of->own; /* else the last lap's, to say what is idle */
    x->o = of->o;
    OT_TRY(ot_candidates_plan(x, &of->set, out));
    ot_plan *p = *out;
    if (x->o.detail && !p->detail) OT_TRY(ot_planner_detail(x->planner, &x->o, p));
    p->in_branch = of->how.branch;
    p->hides_extents = of->how.hidden;
    p->data_file = of->how.data_file;
    p->outer_weights = p->outer_weights && !p->data_file;
    p->unjoined_from = of->set.n > 0 ? of->how.unjoined_from : 0;
    p->viewed = of->set.n > 0 && of->how.views ? x->t->runtime : NULL;
    p->blocked = of->set.n > 0 && of->how.blocks ? x->t->runtime : NULL;
    p->defer_from = of->how.defer_from;
    p->unpacked_from = of->how.unpacked_from;
    p->piece_bytes = of->how.piece_bytes;
    p->first_block = of->how.first_block;
    p->n_plain = of->how.n_plain;
    if (p->n_plain > 0)
        p->plain = ot_memdup(p->arena, of->how.plain, p->n_plain * sizeof *p->plain);
    if (p->n_plain > 0 && !p->plain) return ot_fail_nomem(x->g->model->diag);
    p->folds_norms = of->how.folds_norms;
    p->deferred_seconds = of->packing_s;
    p->tiled.time_s += p->deferred_seconds;
    bool told;
    OT_TRY(ot_candidates_tells_process(x, &told));
    if (told) ot_process_figures(&x->untiled, &p->untiled);
    if (told) ot_process_figures(&of->takes, &p->tiled);
    return ot_limit_fill(x, p);
}
