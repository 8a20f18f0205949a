/* Candidates: the plan as made, plans that pay for memory everywhere, the same goal with one
 * form preferred; then sets of their regions, of whichever plan they are (region_sets.c); all of
 * them, and the untiled graph, as a branch in which the runtime keeps no block for tensors
 * (transform/branch.c), where that is possible.
 *
 *   planner -- copy -- rewrite [-- branch] -- play --> bytes  the least wins; within 2 %, the
 *                                                             faster one
 *
 * The model as it is stays unless a candidate takes an eighth less.
 *
 *
 *
 */
#include "candidates.h"

#include "ops/ops.h"
#include "alloc_sim/alloc_sim.h"
#include "tiling/forms.h"
#include "transform/transform.h"

#define BRANCH 0.95 /* of what the same plan takes without the branch */
#define PIECES 0.95 /* of what the same plan takes when all values are joined */
/* of what the same plan takes without views, in the order that is thought likely */
#define VIEWS      1.05
#define LATE_LEAST (2 << 20) /* bytes that packing weights late must save */
/* that part of the gain may be held as copies of weights from loading on */
#define LOADED_FREE 8
#define FULL_ROUNDS 4
#define LEAVES      6 /* steps of a block that are emptied one after the other */
/* of changes of layout, the worst of which counts where dimensions are free: there are no views
 * that settle it */
#define ORDERS   3
#define HALVINGS 4 /* of what bytes weigh in a plan to begin with */
/* that run, of a graph for which other plans are made; larger ones are judged as planned */
#define MOST_NODES 600

static bool takes_sequences(const ot_candidates *x)
{
    const ot_runtime *r = x->t->runtime;
    return !ot_runtime_in_classes(r) && (r->cannot & OT_NEEDS_SEQUENCE) == 0;
}

/* Memory patterns are escaped by a branch that reads a sequence. */
static bool takes_branch(const ot_candidates *x)
{
    return takes_sequences(x) && ot_branch_fits(x->g);
}

ot_status ot_candidates_write(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t n,
                              ot_model **copy)
{
    ot_plan some = *p;
    some.regions = regions;
    some.n_regions = n;
    some.unjoined_from = x->unjoined_from;
    some.viewed = x->views ? x->t->runtime : NULL;
    for (uint32_t k = 0; k < n; k++) regions[k].id = x->o->first_region + k;
    OT_TRY(ot_model_clone(x->g->model, copy));
    ot_status s = n > 0 ? ot_fold_static((*copy)->graph, &some) : OT_OK;
    if (s == OT_OK && (n > 0 || (*copy)->n_decomposed > 0 || (*copy)->n_rematerialised > 0))
        s = ot_transform_tiles(
            (*copy)->graph,
            &some); /* normalisations become whole again, and values are made once */
    if (s == OT_OK && x->folds_norms) s = ot_fold_norms((*copy)->graph, false);
    if (s == OT_OK && x->defer_from > 0)
        s = ot_defer_packing((*copy)->graph, x->defer_from, &x->deferred_bytes);
    if (s == OT_OK && x->branch) s = ot_branch(*copy);
    if (s == OT_OK) s = ot_assure((*copy)->graph, OT_P_ORDER | OT_P_USES);
    if (s != OT_OK) ot_model_free(*copy);
    return s;
}

ot_status ot_candidates_growth(const ot_candidates *x, const ot_graph *g, bool static_shape,
                               ot_sim_figures *f)
{
    OT_TRY(ot_sim_growth(g, x->t->runtime, static_shape, f));
    for (uint32_t k = 1; k < ORDERS && x->g->model->dynamic_dims; k++) {
        ot_sim_figures other;
        OT_TRY(ot_sim_growth_in(g, x->t->runtime, static_shape, k, &other));
        if (other.growth > f->growth) *f = other;
    }
    return OT_OK;
}

ot_status ot_candidates_simulate(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t n,
                                 ot_sim_figures *f)
{
    ot_model *copy;
    ot_status s = ot_candidates_write(x, p, regions, n, &copy);
    if (s == OT_OK) {
        x->work += x->g->n_nodes + n;
        s = ot_candidates_growth(x, copy->graph,
                                 x->static_shape || (n > 0 && !x->g->model->dynamic_dims), f);
        if (x->o->max_tensor && ot_largest_tensor(copy->graph).bytes > x->o->max_tensor)
            f->growth = INT64_MAX;
        ot_model_free(copy);
    }
    return s == OT_E_NOMEM ? ot_fail_nomem(x->g->model->diag) : s;
}

int64_t ot_score_bytes(int64_t growth, int64_t loaded, const ot_figures *untiled)
{
    const int64_t more = loaded - untiled->loaded_bytes, gain = untiled->growth_bytes - growth;
    return growth + ot_max(0, more - ot_max(0, gain) / LOADED_FREE);
}

ot_status ot_candidates_score(ot_candidates *x, const ot_plan *p, ot_region *regions, uint32_t n,
                              int64_t *bytes)
{
    ot_sim_figures f = {0};
    OT_TRY(ot_candidates_simulate(x, p, regions, n, &f));
    *bytes = f.growth == INT64_MAX ? INT64_MAX : ot_score_bytes(f.growth, f.loaded, &x->whole);
    return ot_candidates_both(x, p, regions, n, bytes);
}

/* Weigh plan p and take it in, which then owns it. *out: what it weighs. */
static ot_status enter(ot_candidates *x, ot_plan *p, int64_t *out)
{
    int64_t bytes = 0;
    if (!OT_PUSH(x->arena, x->plans, x->n_plans, x->cap_plans, p)) {
        ot_plan_free(p);
        return ot_fail_nomem(x->g->model->diag);
    }
    OT_TRY(ot_candidates_score(x, p, p->regions, p->n_regions, &bytes));
    OT_TRY(ot_candidates_add(x, p, bytes));
    *out = bytes;
    return OT_OK;
}

/* A plan with o, without what only the last one is asked for. */
static ot_status make_plan(ot_candidates *x, const ot_plan_options *o, ot_plan **p)
{
    ot_plan_options quick = *o;
    quick.detail = false;
    quick.spare = o->near > 0 || o->force_form == OT_FORM_STREAM;
    ot_diag *told = x->g->model->diag, aside = {0};
    if (o->max_tensor) x->g->model->diag = &aside; /* a plan that does not hold is no failure */
    ot_status s = ot_plan_graph(x->g, x->t, &quick, p);
    x->g->model->diag = told;
    return s;
}

/* The same. Where bytes weigh so much that nothing which saves them keeps within the time
 * allowed, they weigh less and less. */
static ot_status plan_in_reach(ot_candidates *x, const ot_plan_options *o, ot_plan **p)
{
    ot_plan_options less = *o;
    OT_TRY(make_plan(x, &less, p));
    for (int k = 0; k < HALVINGS && o->byte_seconds > 0 && !o->force && (*p)->n_regions == 0; k++) {
        ot_plan_free(*p);
        *p = NULL;
        less.byte_seconds /= 2;
        OT_TRY(make_plan(x, &less, p));
    }
    return OT_OK;
}

/* A plan with other options than the user's. */
static ot_status try_options(ot_candidates *x, const ot_plan_options *o, int64_t *bytes)
{
    ot_plan *p = NULL;
    ot_diag *told = x->g->model->diag;
    ot_status s = plan_in_reach(x, o, &p);
    *bytes = INT64_MAX;
    if (s == OT_E_BUDGET && o->max_tensor) return OT_OK;
    if (s == OT_E_NOMEM) return ot_fail_nomem(told);
    OT_TRY(s);
    const uint32_t n = p->n_regions;
    const double time = p->tiled.time_s;
    OT_TRY(enter(x, p, bytes));
    if (ot_dbg['P'])
        fprintf(stderr,
                "> Candidate: level %lld, price %g, form %s: %u regions, %.2f MB, %.3f ms\n",
                (long long)o->level, o->price, ot_form_name(o->force_form), n,
                (double)*bytes / 1048576.0, time * 1e3);
    return OT_OK;
}

static ot_status try_form(ot_candidates *x, const ot_plan_options *like, ot_form form)
{
    ot_plan_options o = *like;
    int64_t bytes;
    o.force_form = form;
    return ot_runtime_takes(x->t->runtime, form) ? try_options(x, &o, &bytes) : OT_OK;
}

/* Plans that pay for bytes above a level wherever they are, not at the peak alone: what the
 * planner holds for the peak need not be where the process grows. *best: the options of the best
 * so far. */
static ot_status try_levels(ot_candidates *x, const ot_plan *first, int64_t least,
                            ot_plan_options *best)
{
    static const struct {
        /* of the untiled model's peak and time: of that, what all nodes pay at the peak */
        double level, price;
    } TRIES[] = {{0.6, 8}, {0.4, 8}, {0.2, 8}, {0, 8}, {0.3, 1}};
    const int64_t peak = first->untiled.peak_bytes;
    for (size_t k = 0; k < sizeof TRIES / sizeof *TRIES && peak > 0; k++) {
        ot_plan_options o = *x->o;
        int64_t bytes;
        o.level = (int64_t)(TRIES[k].level * (double)peak);
        o.price = TRIES[k].price * first->untiled.time_s / ((double)peak * x->g->n_nodes);
        OT_TRY(try_options(x, &o, &bytes));
        /* no region: forms are nothing to it */
        if (bytes >= least || x->sets[x->n_sets - 1].n == 0) continue;
        least = bytes;
        *best = o;
    }
    return OT_OK;
}

/* Regions around what made the tensors that wait for a reader when the process grows last,
 * nothing being tiled: live bytes may be as many elsewhere, and then the planner does not care.
 * ONNX Runtime computes the up-sampled picture that a super-resolution network adds at its end
 * before all else, and holds it: a region of the last three nodes took that from 51 to 31 MB,
 * and from the live bytes nothing. */
static ot_status try_waiting(ot_candidates *x, const ot_plan *first)
{
    ot_sim_figures f;
    ot_plan_options o = *x->o;
    OT_TRY(ot_candidates_simulate(x, first, NULL, 0, &f));
    for (uint32_t k = 0; k < OT_WAITING && f.waiting[k] != OT_NONE && f.waiting[k] < x->g->n_nodes;
         k++) {
        int64_t bytes;
        o.near = f.waiting[k] + 1;
        if (ot_dbg['P']) fprintf(stderr, "> Waiting: %s\n", x->g->nodes[f.waiting[k]].name);
        OT_TRY(try_options(x, &o, &bytes));
        if (x->branch) OT_TRY(try_form(x, &o, OT_FORM_PEELED));
    }
    return OT_OK;
}

/* Regions around the nodes that fill the block at its fullest step, but for those that were
 * looked at. *any: there were others. */
static ot_status try_near(ot_candidates *x, const ot_sim_figures *f, bool *tried, bool *any)
{
    *any = false;
    for (uint32_t k = 0; k < f->n_fullest; k++) {
        const ot_id id = f->fullest[k];
        int64_t bytes;
        if (id >= x->g->n_nodes || tried[id]) continue;
        ot_plan_options o = *x->o;
        tried[id] = *any = true;
        o.near = id + 1;
        if (ot_dbg['P']) fprintf(stderr, "> Fullest: %s\n", x->g->nodes[id].name);
        OT_TRY(try_options(x, &o, &bytes));
    }
    return OT_OK;
}

/* Several steps may be as full: one after the other is emptied, and what that comes to competes. */
static ot_status try_leaving(ot_candidates *x, const ot_plan *first, bool *tried,
                             ot_region_set *won)
{
    ot_region_set at = *won;
    bool left = true, any;
    for (int k = 0; k < LEAVES && left; k++) {
        ot_sim_figures f;
        OT_TRY(ot_candidates_simulate(x, first, at.all, at.n, &f));
        OT_TRY(try_near(x, &f, tried, &any));
        OT_TRY(ot_candidates_leave(x, first, &f, &at, &left));
    }
    return at.bytes < won->bytes ? ot_candidates_search(x, first, won) : OT_OK;
}

/* Where one block holds all values: regions around what fills it when it is fullest, with the
 * regions of the best set so far written out; what fills it then, and so on. */
static ot_status try_fullest(ot_candidates *x, const ot_plan *first, ot_region_set *won)
{
    bool *tried = OT_NEW_N(x->arena, bool, x->g->n_nodes + 1u), any;
    if (!tried) return ot_fail_nomem(x->g->model->diag);
    for (int round = 0; round < FULL_ROUNDS; round++) {
        ot_sim_figures f;
        OT_TRY(ot_candidates_simulate(x, first, won->all, won->n, &f));
        OT_TRY(try_near(x, &f, tried, &any));
        if (!any) break;
        OT_TRY(ot_candidates_search(x, first, won));
    }
    return try_leaving(x, first, tried, won);
}

/* Plans like the best one in which one form is preferred. In a branch, what peeled loops join is
 * taken late (transform/branch.c), which no plan foresees: regions of the goal's own plan may
 * have that form, too. */
static ot_status try_forms(ot_candidates *x, const ot_plan_options *best)
{
    static const ot_form FORMS[] = {OT_FORM_PEELED, OT_FORM_UNROLLED, OT_FORM_LOOP, OT_FORM_SCAN,
                                    OT_FORM_PRESCAN};
    for (size_t k = 0; k < sizeof FORMS / sizeof *FORMS; k++) OT_TRY(try_form(x, best, FORMS[k]));
    if (best->price == 0) return OT_OK;
    /* of the goal's own plan, too: patterns hold what the price of bytes does not see */
    if (!takes_sequences(x))
        for (size_t k = 0; k < sizeof FORMS / sizeof *FORMS; k++)
            OT_TRY(try_form(x, x->o, FORMS[k]));
    return x->branch ? try_form(x, x->o, OT_FORM_PEELED) : OT_OK;
}

/* Regions that stream, in steps of some rows. */
static ot_status try_streams(ot_candidates *x)
{
    static const uint32_t ROWS[] = {1, 2, 4, 8, 16, 32, 64}; /* of a step, at least */
    const bool any = !x->o->no_streams && ot_runtime_takes(x->t->runtime, OT_FORM_STREAM);
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS && any; k++) {
        ot_plan_options o = *x->o;
        int64_t bytes;
        o.force_form = OT_FORM_STREAM;
        o.stream_rows = ROWS[k];
        OT_TRY(try_options(x, &o, &bytes));
    }
    return OT_OK;
}

/* It normalises over maps, be that one operator or taken apart. */
static bool normalises(const ot_graph *g)
{
    bool any = g->model->n_decomposed > 0;
    for (uint32_t k = 0; k < g->n_order && !any; k++) {
        const ot_op op = g->nodes[g->order[k]].op;
        any = op == OT_OP_InstanceNormalization || op == OT_OP_GroupNormalization;
    }
    return any;
}

/* In half precision; a Cast at the border of what is computed in float32 (transform/widen.c)
 * does not. */
static bool computes_half(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out && !n->is_static && n->op != OT_OP_Cast; k++)
        if (n->out[k] != OT_NONE && g->values[n->out[k]].dtype == OT_F16) return true;
    return false;
}

/* Part of the untiled model's growth that a plan must not exceed. */
static double least_win(const ot_candidates *x)
{
    const ot_graph *g = x->g;
    const ot_runtime_margins *m = &x->t->runtime->margins;
    for (uint32_t k = 0; k < g->n_order; k++)
        if (computes_half(g, &g->nodes[g->order[k]])) return m->wins_half;
    for (uint32_t k = 0; k < g->n_order; k++)
        if (g->nodes[g->order[k]].op == OT_OP_QuantizeLinear ||
            g->nodes[g->order[k]].op == OT_OP_QLinearConv)
            return m->wins_bytes;
    return normalises(g) ? m->wins_norms : m->wins;
}

/* Large values may stay in pieces between regions (transform/unjoined_tiles.c): the largest
 * alone, or those half, a quarter as large. Pieces that are not joined are copied once more for
 * each window that they are part of: fewer of them, where that saves as much. */
static ot_status try_pieces(ot_candidates *x, const ot_plan *first, ot_region_set *won)
{
    const int64_t largest = ot_largest_tensor(x->g).bytes;
    int64_t from = 0, least = won->bytes;
    if (won->n < 2 || !takes_sequences(x)) return OT_OK;
    for (int k = 0; k < 3 && largest >> k > 0; k++) {
        int64_t bytes;
        x->unjoined_from = largest >> k;
        OT_TRY(ot_candidates_score(x, first, won->all, won->n, &bytes));
        if ((double)bytes >= (from ? 0.98 : PIECES) * (double)least) continue;
        least = bytes;
        from = x->unjoined_from;
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Pieces from %lld: %.2f MB -> %.2f MB\n", (long long)from,
                (double)won->bytes / 1048576.0, (double)least / 1048576.0);
    x->unjoined_from = from;
    won->bytes = least;
    return OT_OK;
}

/* Views of what the regions read in blocks (transform/plain_views.c), unless the order that they
 * make is the worse one. Without, a session takes an order by chance. */
static ot_status try_views(ot_candidates *x, const ot_plan *first, ot_region_set *won)
{
    int64_t bytes;
    if (won->n == 0 || !x->t->runtime->plain_views || x->g->model->dynamic_dims) return OT_OK;
    x->views = true;
    OT_TRY(ot_candidates_score(x, first, won->all, won->n, &bytes));
    x->views = (double)bytes <= VIEWS * (double)won->bytes;
    if (ot_dbg['P'])
        fprintf(stderr, "> Views: %.2f MB -> %.2f MB\n", (double)won->bytes / 1048576.0,
                (double)bytes / 1048576.0);
    if (x->views) won->bytes = bytes;
    return OT_OK;
}

static double deferred_seconds(const ot_candidates *x)
{
    return x->defer_from > 0 ? (double)x->deferred_bytes * x->t->runtime->deferred_seconds : 0;
}

/* Weights that are packed when they are used (transform/deferred_packing.c), all but small ones:
 * the more of them, the more time that takes. They are tried with the regions that won, and
 * where no region did. */
static ot_status try_late(ot_candidates *x, const ot_plan *first, ot_region_set *won)
{
    static const int64_t FROM[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
    const double most = x->o->max_slowdown * x->untiled_s + won->gain;
    int64_t from = 0, least = won->bytes;
    if (x->t->runtime->deferred_seconds <= 0) return OT_OK;
    for (size_t k = 0; k < sizeof FROM / sizeof *FROM; k++) {
        int64_t bytes;
        x->defer_from = FROM[k];
        OT_TRY(ot_candidates_score(x, first, won->all, won->n, &bytes));
        if (deferred_seconds(x) > most || bytes > least - (from ? 1 : LATE_LEAST)) continue;
        least = bytes;
        from = x->defer_from;
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Late weights from %lld: %.2f MB -> %.2f MB\n", (long long)from,
                (double)won->bytes / 1048576.0, (double)least / 1048576.0);
    x->defer_from = from;
    won->bytes = least;
    return OT_OK;
}

/* The winner's figures, with or without the branch, are compared with those of the graph that is
 * only a branch. */
static ot_status judge(ot_candidates *x, const ot_plan *first, ot_region_set *won, bool *in_branch)
{
    const int64_t untiled = x->whole.growth_bytes;
    int64_t none, without = INT64_MAX;
    const double part = least_win(x);
    const bool may_branch = x->branch;
    OT_TRY(ot_candidates_score(x, first, NULL, 0, &none));
    *in_branch = may_branch;
    if (may_branch) {
        x->branch = false;
        OT_TRY(ot_candidates_score(x, first, won->all, won->n, &without));
    }
    if (*in_branch && (double)won->bytes > BRANCH * (double)without) {
        *in_branch = false;
        won->bytes = without;
    }
    if (won->n > 0 && (double)won->bytes > part * (double)none) {
        *won = (ot_region_set){.all = won->all, .bytes = none};
        *in_branch = may_branch && none < untiled;
    }
    if ((double)won->bytes <= part * (double)untiled) return OT_OK;
    /* it has to be */
    if (x->o->max_tensor && ot_largest_tensor(x->g).bytes > x->o->max_tensor) return OT_OK;
    *won = (ot_region_set){.all = won->all, .bytes = untiled};
    *in_branch = false;
    x->defer_from = 0;
    return OT_OK;
}

/* Nodes that run: exporters write a constant or a shape's arithmetic for every second one, which
 * costs a plan nothing. */
static uint32_t count_running(const ot_graph *g)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_order; k++) n += !g->nodes[g->order[k]].is_static;
    return n;
}

static ot_status improve(ot_candidates *x, ot_plan **p)
{
    ot_plan *first = *p;
    ot_region_set won;
    bool in_branch;
    int64_t least, bytes;
    ot_plan_options best = *x->o;
    *p = NULL; /* from here on it is the contest's */
    x->branch = takes_branch(x);
    x->untiled_s = first->untiled.time_s;
    x->folds_norms = x->t->runtime->folds_norms && !x->t->bit_exact;
    OT_TRY(enter(x, first, &least));
    for (size_t k = 0; k < x->n_starts; k++) OT_TRY(try_options(x, &x->starts[k], &bytes));
    if (count_running(x->g) <= MOST_NODES) {
        OT_TRY(try_levels(x, first, least, &best));
        OT_TRY(try_waiting(x, first));
        OT_TRY(try_forms(x, &best));
        OT_TRY(try_streams(x));
    }
    OT_TRY(ot_candidates_search(x, first, &won));
    OT_TRY(ot_candidates_at_design(x, first, &won));
    OT_TRY(ot_candidates_vary(x, first, &won));
    if (ot_runtime_places_all(x->t->runtime) && count_running(x->g) <= MOST_NODES)
        OT_TRY(try_fullest(x, first, &won));
    OT_TRY(try_pieces(x, first, &won));
    OT_TRY(try_views(x, first, &won));
    OT_TRY(try_late(x, first, &won));
    OT_TRY(judge(x, first, &won, &in_branch));
    OT_TRY(ot_candidates_plan(x, first, &won, p));
    (*p)->in_branch = in_branch;
    (*p)->unjoined_from = won.n > 0 ? x->unjoined_from : 0;
    (*p)->viewed = won.n > 0 && x->views ? x->t->runtime : NULL;
    (*p)->defer_from = x->defer_from;
    (*p)->folds_norms = x->folds_norms && (won.n > 0 || x->defer_from > 0);
    return OT_OK;
}

static ot_status contest(const ot_candidates *like, const ot_sim_figures *untiled, ot_plan **p)
{
    ot_candidates x = *like;
    x.arena = ot_arena_new();
    if (!x.arena) return ot_fail_nomem(x.g->model->diag);
    x.whole = (ot_figures){.growth_bytes = untiled->growth, .loaded_bytes = untiled->loaded};
    ot_status s = improve(&x, p);
    for (size_t k = 0; k < x.n_plans; k++) ot_plan_free(x.plans[k]);
    ot_arena_free(x.arena);
    return s;
}

/* What p takes is known, and nothing was asked for but time. */
static bool is_for_time(const ot_candidates *x, const ot_plan *p, const ot_sim_figures *untiled)
{
    const ot_plan_options *o = x->o;
    return o->goal == OT_GOAL_TIME && o->memory_budget == 0 && o->max_tensor == 0 && !o->force &&
           o->force_form == OT_FORM_NONE && p->n_regions > 0 && untiled->n_unknown == 0 &&
           !x->g->model->dynamic_dims;
}

/* Regions that save little time and add memory leave *p (select_time.c). */
static ot_status keep_worthy(ot_candidates *x, ot_plan **p, const ot_sim_figures *untiled,
                             ot_sim_figures *f)
{
    x->arena = ot_arena_new();
    if (!x->arena) return ot_fail_nomem(x->g->model->diag);
    x->whole = (ot_figures){.growth_bytes = untiled->growth, .loaded_bytes = untiled->loaded};
    x->untiled_s = (*p)->untiled.time_s;
    ot_status s = ot_time_is_worth(x, f, p);
    *f = *untiled;
    if (s == OT_OK && (*p)->n_regions > 0)
        s = ot_candidates_simulate(x, *p, (*p)->regions, (*p)->n_regions, f);
    ot_arena_free(x->arena);
    x->arena = NULL;
    return s;
}

/* What the process takes with *p as it is written, which is the last that is played (-d P shows
 * it). */
static ot_status finish(ot_candidates *x, ot_plan **plan, const ot_sim_figures *untiled)
{
    ot_sim_figures f = *untiled;
    ot_plan *p = *plan;
    x->branch = p->in_branch;
    x->unjoined_from = p->unjoined_from;
    x->views = p->viewed != NULL;
    x->folds_norms = p->folds_norms;
    x->defer_from = p->defer_from;
    if (ot_plan_changes(p) || ot_dbg['P'])
        OT_TRY(ot_candidates_simulate(x, p, p->regions, p->n_regions, &f));
    if (is_for_time(x, p, untiled) && f.growth > untiled->growth) {
        OT_TRY(keep_worthy(x, plan, untiled, &f));
        p = *plan;
    }
    p->deferred_seconds = deferred_seconds(x);
    p->tiled.time_s += p->deferred_seconds;
    if (untiled->n_unknown == 0) {
        p->untiled.growth_bytes = untiled->growth;
        p->untiled.loaded_bytes = untiled->loaded;
        p->tiled.growth_bytes = f.growth;
        p->tiled.loaded_bytes = f.loaded;
    }
    return ot_limit_fill(x, p);
}

ot_status ot_select_plan(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                         bool static_shape, ot_plan **p)
{
    return ot_select_plan_with(g, t, o, static_shape, NULL, 0, p);
}

ot_status ot_select_plan_with(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                              bool static_shape, const ot_plan_options *starts, size_t n,
                              ot_plan **p)
{
    ot_candidates x = {
        .g = g, .t = t, .o = o, .static_shape = static_shape, .starts = starts, .n_starts = n};
    ot_sim_figures whole;
    if (g->n_nodes == 0) return OT_OK;
    if (o->max_tensor) OT_TRY(ot_limit_keep(&x, p));
    if (!ot_runtime_simulates(t->runtime)) return ot_limit_fill(&x, *p);
    ot_status s = ot_sim_growth(g, t->runtime, static_shape, &whole);
    if (s != OT_OK) return ot_fail_nomem(g->model->diag);
    if (o->goal == OT_GOAL_MEMORY && o->memory_budget == 0 && !o->force &&
        o->force_form == OT_FORM_NONE)
        OT_TRY(contest(&x, &whole, p));
    return finish(&x, p, &whole);
}
