/* The choice: variants x limits, see select.h.
 *
 *   group    the model in one form of its shapes and of one type: plain, and with edits
 *   lap      all groups under one limit on time: the best variant of each, then the better group
 *   kept     the best of all laps; a later one must hold less, strictly
 *
 * Differences that are no better than the predictions are none: an edit that brings another
 * rounding must save two hundredths, values that are made again a twentieth.
 *
 */
#include "variant.h"

#include "ops/dynamic_dims.h"
#include "tiling/lower/lowering.h"
#include "transform/transform.h"

#include <math.h>

#define TIME_ABOUT  1e-9
#define EDIT_SAVES  0.98 /* of what the plan without the edit takes */
#define AGAIN_SAVES 0.95
/* of what the model as it is takes at the design and half of it: at other sizes, they differ by
 * some percent more */
#define DYNAMIC_SAVES 0.9
/* of a plan of static shapes: such took 11 % more than predicted in the median of ten models, those
 * of dynamic shapes 5 % */
#define DYNAMIC_ABOUT 1.06
#define GROWTH_ABOUT  1.01 /* growth that is taken to be the same, where the process holds less */
#define GROUPS_MAX    4

/* Limits on time that are searched: the user's is rounded down to one of them, and what was found
 * under the tighter ones competes. */
static const double SLOWDOWNS[] = {0,   0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4,
                                   0.5, 0.75, 1,   1.5,  2,   3,    5,   10};

/* A variant and what was found for it. */
typedef struct pick {
    ot_variant_group *group;
    ot_variant *v; /* NULL: nothing was found */
    ot_outcome found;
} pick;

typedef struct selecting {
    const ot_select_request *r;
    ot_variant_group *groups; /* [n] */
    uint32_t n;
    pick memory;     /* the best of the laps for goal memory so far, */
    size_t next_lap; /* index of the next of SLOWDOWNS */
    /* budget */
    pick best;
    ot_diag why; /* the first refusal */
} selecting;

static const ot_variant *plain_of(const ot_variant_group *x) { return &x->v[OT_VARIANT_PLAIN]; }

/* ---- one variant ---- */

static ot_status open_candidates(const ot_variant_group *x, ot_variant *v, const ot_plan_options *o)
{
    const ot_select_request *r = x->r;
    if (!v->c)
        OT_TRY(ot_candidates_open(ot_variant_graph(v), r->target, o,
                                  !x->is_dynamic && r->static_shape, &v->c));
    if (v->kind != OT_VARIANT_PLAIN) ot_score_base_share(plain_of(x)->c, v->c);
    v->c->o = *o;
    v->c->starts_rich = v->kind != OT_VARIANT_PLAIN && r->target->runtime->chunk_arena &&
                        ot_candidates_compete(o);
    return OT_OK;
}

/* The fastest plan for v takes longer than allowed. */
static ot_status is_too_slow(ot_variant *v, const ot_plan_options *o, double allowed, bool *slow)
{
    if (v->fastest_s == 0) {
        ot_plan_options fast = *o;
        ot_plan *p = NULL;
        fast.goal = OT_GOAL_TIME;
        fast.detail = false;
        OT_TRY(ot_planner_plan(v->c->planner, &fast, &p));
        v->fastest_s = p->tiled.time_s;
        ot_plan_free(p);
    }
    *slow = v->fastest_s > allowed * (1 + TIME_ABOUT);
    return OT_OK;
}

/* The slowdown that v may have where the plain variant may have so much: an edit costs time before
 * anything is tiled. *slow: not even the fastest plan keeps to it. */
static ot_status own_slowdown(const ot_variant_group *x, ot_variant *v, const ot_plan_options *o,
                              double *slowdown, bool *slow)
{
    *slow = false;
    if (v->kind == OT_VARIANT_PLAIN || o->goal != OT_GOAL_MEMORY || o->force) return OT_OK;
    const double allowed = plain_of(x)->c->untiled_s * (1 + *slowdown);
    const double slower = allowed / ot_planner_untiled_seconds(v->c->planner) - 1;
    if (slower >= *slowdown) return OT_OK;
    *slowdown = fmax(0, slower);
    return slower < 0 ? is_too_slow(v, o, allowed, slow) : OT_OK;
}

/* v->last: what is found with options o. */
static ot_status run_variant(ot_variant_group *x, ot_variant *v, const ot_plan_options *o)
{
    const bool compete = ot_candidates_compete(o);
    double slowdown = o->max_slowdown;
    bool slow;
    OT_TRY(open_candidates(x, v, o));
    OT_TRY(own_slowdown(x, v, o, &slowdown, &slow));
    if (compete && v->slowdown == slowdown) return OT_OK; /* as in the lap before */
    v->has_outcome = false;
    v->slowdown = compete ? slowdown : -1;
    if (slow) return OT_OK;
    const ot_status s = ot_candidates_lap(v->c, slowdown, &v->last);
    v->has_outcome = s == OT_OK;
    if (s != OT_E_BUDGET || v->kind == OT_VARIANT_PLAIN || o->memory_budget == 0) return s;
    *x->r->diag = (ot_diag){0}; /* the model as it is has a plan that keeps to it */
    return OT_OK;
}

/* ---- one group ---- */

/* Bytes by which outcomes compare, where nothing else is asked. */
static double bytes_of(const ot_variant_group *x, const ot_outcome *of)
{
    return of->takes.growth > 0 ? (double)ot_score_bytes(&of->takes, &plain_of(x)->c->base)
                                : (double)of->peak;
}

/* Time of an outcome of v: what an edit by itself is predicted to save does not count, be it faster
 * at all (25 normalisations of a Conv-TasNet, decomposed for one region: predicted x0.93, measured
 * x1.22). */
static double seconds_of(const ot_variant_group *x, const ot_variant *v, const ot_outcome *of)
{
    return of->seconds + fmax(0, plain_of(x)->c->untiled_s - v->c->untiled_s);
}

/* b's last outcome is to be preferred to a, of the plain variant or of one with edits, too. */
static bool wins(const pick *a, const ot_variant *b, const ot_plan_options *o)
{
    const ot_variant_group *x = a->group;
    const ot_candidates *plain = plain_of(x)->c;
    const ot_outcome *to = &b->last;
    if (!b->has_outcome || !to->any_regions) return false;
    if (o->force) return true;
    const bool faster = seconds_of(x, b, to) < EDIT_SAVES * seconds_of(x, a->v, &a->found);
    if (o->goal == OT_GOAL_TIME && o->memory_budget == 0) return faster;
    /* the checker knows the latter only */
    const double allowed = fmin(plain->untiled_s, b->c->untiled_s) * (1 + o->max_slowdown);
    if (o->goal == OT_GOAL_MEMORY && to->seconds > allowed * (1 + TIME_ABOUT)) return false;
    const bool fits = ot_budget_fits(ot_outcome_process(to), o);
    if (o->goal == OT_GOAL_TIME && ot_budget_fits(ot_outcome_process(&a->found), o) != fits)
        return fits;
    if (o->goal == OT_GOAL_TIME) return faster; /* live tensors of both keep to the budget */
    const double margin = x->r->target->runtime->margins.wins_decomposed;
    if (plain->untiled.growth > 0 && to->takes.growth > 0)
        return bytes_of(x, to) < EDIT_SAVES * bytes_of(x, &a->found) &&
               bytes_of(x, to) < margin * (double)plain->base.untiled;
    return (double)to->peak < EDIT_SAVES * (double)a->found.peak;
}

static void show(const ot_variant_group *x, const ot_variant *v)
{
    static const char *const NAMES[] = {
        "plain",      "wraps moved",     "decomposed",  "decomposed, no Softmax",
        "made again", "made again, one", "skips again", "skips again, one"};
    if (!ot_dbg['D'] || !v->has_outcome) return;
    fprintf(stderr, "> Variant: %s%s: %u regions, %.3f ms, peak %lld, resident growth %lld\n",
            x->is_dynamic ? "dynamic, " : "", NAMES[v->kind], v->last.set.n, v->last.seconds * 1e3,
            (long long)v->last.peak, (long long)v->last.takes.growth);
}

/* Run a variant with edits, where there is one; *best becomes it, if it wins by so much. */
static ot_status try_variant(ot_variant_group *x, ot_variant_kind kind, double saves,
                             const ot_plan_options *o, pick *best, bool *won)
{
    ot_variant *v = &x->v[kind];
    *won = false;
    OT_TRY(ot_group_make(x, kind));
    if (!v->model) return OT_OK;
    OT_TRY(run_variant(x, v, o));
    show(x, v);
    *won = wins(best, v, o) &&
           (saves >= 1 || bytes_of(x, &v->last) < saves * bytes_of(x, &best->found));
    if (*won) *best = (pick){x, v, v->last};
    return OT_OK;
}

/* Normalisations decomposed; Softmaxes stay whole where no region cuts their pixels. */
static ot_status try_decomposed(ot_variant_group *x, const ot_plan_options *o, pick *best)
{
    ot_variant *v = &x->v[OT_VARIANT_DECOMPOSED];
    const pick before = *best;
    const bool memory = o->goal == OT_GOAL_MEMORY && !o->force;
    bool won;
    OT_TRY(try_variant(x, OT_VARIANT_DECOMPOSED, x->is_dynamic && memory ? DYNAMIC_SAVES : 1, o,
                       best, &won));
    if (x->is_dynamic || !v->model || !v->has_outcome || !ot_variant_softmax_idle(v)) return OT_OK;
    *best = before;
    return try_variant(x, OT_VARIANT_NO_SOFTMAX, 1, o, best, &won);
}

/* Values that are made again, all that are large, or the largest alone. */
static ot_status try_again(ot_variant_group *x, const ot_plan_options *o, pick *best)
{
    static const ot_variant_kind KINDS[][2] = {{OT_VARIANT_AGAIN, OT_VARIANT_AGAIN_ONE},
                                               {OT_VARIANT_SKIPS, OT_VARIANT_SKIPS_ONE}};
    for (size_t k = 0; k < 2 && !x->is_dynamic && ot_candidates_compete(o); k++) {
        bool won;
        OT_TRY(try_variant(x, KINDS[k][0], AGAIN_SAVES, o, best, &won));
        if (!won) OT_TRY(try_variant(x, KINDS[k][1], AGAIN_SAVES, o, best, &won));
    }
    return OT_OK;
}

/* The best variant of the group with options o. */
static ot_status run_group(ot_variant_group *x, const ot_plan_options *o, pick *best)
{
    ot_variant *plain = &x->v[OT_VARIANT_PLAIN];
    OT_TRY(run_variant(x, plain, o));
    *best = (pick){x, plain, plain->last};
    if (x->plain_only || plain->model->graph->n_nodes == 0) return OT_OK;
    bool won;
    OT_TRY(try_variant(x, OT_VARIANT_WRAPS, 1, o, best, &won));
    OT_TRY(try_decomposed(x, o, best));
    return try_again(x, o, best);
}

/* ---- all groups ---- */

/* Dynamic shapes in the place of given ones: by what the process takes, both within the time
 * that is allowed. ONNX Runtime keeps a buffer of known shape until another of that shape has
 * been in it, and knows none of what is computed of a dynamic dimension. */
static bool is_better_dynamic(const pick *given, const pick *dynamic)
{
    const ot_outcome *a = &given->found, *b = &dynamic->found;
    const ot_variant_group *x = given->group;
    return b->any_regions && a->takes.growth > 0 && b->takes.growth > 0 &&
           bytes_of(x, b) <= DYNAMIC_ABOUT * bytes_of(x, a);
}

/* The best of all groups with options o. The second group is dynamic beside a given size: it goes
 * where it cannot be planned at every size. */
static ot_status run_groups(selecting *x, const ot_plan_options *o, pick *best)
{
    OT_TRY(run_group(&x->groups[0], o, best));
    if (x->n < 2 || !ot_candidates_compete(o)) return OT_OK;
    pick other;
    const ot_status s = run_group(&x->groups[1], o, &other);
    if (s == OT_E_NOMEM) return s;
    if (s != OT_OK) {
        *x->r->diag = (ot_diag){0};
        ot_group_close(&x->groups[--x->n]);
        return OT_OK;
    }
    if (is_better_dynamic(best, &other)) *best = other;
    return OT_OK;
}

/* `to`, of a looser limit, holds less than what is kept. */
static bool holds_less(const pick *kept, const pick *to)
{
    const ot_outcome *a = &kept->found, *b = &to->found;
    const ot_variant_group *x = kept->group;
    if (a->takes.growth <= 0 || b->takes.growth <= 0) return b->peak < a->peak;
    return bytes_of(x, b) < bytes_of(x, a) &&
           (double)b->takes.growth <= GROWTH_ABOUT * (double)a->takes.growth;
}

/* x->memory: with at most so much slowdown, the best of that lap and all before. */
static ot_status lap(selecting *x, const ot_plan_options *o, double slowdown)
{
    ot_plan_options at = *o;
    pick found;
    at.max_slowdown = slowdown;
    OT_TRY(run_groups(x, &at, &found));
    if (ot_dbg['P'])
        fprintf(stderr, "> Time limit: slowdown %.2f: %.2f MB, %.3f ms\n", slowdown,
                (double)found.found.takes.growth / 1048576.0, found.found.seconds * 1e3);
    if (!x->memory.v || holds_less(&x->memory, &found)) x->memory = found;
    return OT_OK;
}

/* The best with options o. */
static ot_status find(selecting *x, const ot_plan_options *o, pick *out)
{
    static const size_t n = sizeof SLOWDOWNS / sizeof *SLOWDOWNS;
    if (!ot_candidates_compete(o) || o->max_tensor) return run_groups(x, o, out);
    while (o->one_lap && x->next_lap + 1 < n && SLOWDOWNS[x->next_lap + 1] <= o->max_slowdown)
        x->next_lap++;
    for (; x->next_lap < n && SLOWDOWNS[x->next_lap] <= o->max_slowdown; x->next_lap++)
        OT_TRY(lap(x, o, SLOWDOWNS[x->next_lap]));
    *out = x->memory;
    return OT_OK;
}

/* ---- a memory budget ---- */

/* p in the place of what is kept: of those whose process keeps the budget the fastest, else, and
 * for goal memory, the one whose process takes least. */
static bool is_better(const selecting *x, const pick *p)
{
    const ot_plan_options *o = x->r->options;
    const ot_outcome *a = &x->best.found, *b = &p->found;
    const int64_t process = ot_outcome_process(b), kept = ot_outcome_process(a);
    const bool fits = ot_budget_fits(process, o);
    if (!x->best.v) return true;
    if (kept == 0 || process == 0) /* not known: live tensors of both keep to the budget */
        return o->goal == OT_GOAL_TIME ? b->seconds < a->seconds * (1 - TIME_ABOUT)
                                       : b->peak < a->peak;
    if (o->goal == OT_GOAL_TIME && fits != ot_budget_fits(kept, o)) return fits;
    if (o->goal == OT_GOAL_TIME && fits) return b->seconds < a->seconds * (1 - TIME_ABOUT);
    return process < kept;
}

static ot_status attempt(void *of, const ot_plan_options *o, double *met)
{
    selecting *x = of;
    pick p = {0};
    const ot_status s = find(x, o, &p);
    if (s == OT_E_BUDGET) {
        if (!x->why.message[0]) x->why = *x->r->diag;
        *x->r->diag = (ot_diag){0};
        return OT_OK;
    }
    OT_TRY(s);
    if (ot_dbg['P'])
        fprintf(stderr, "> Budget: peak %lld, process %lld, %.3f ms\n", (long long)p.found.peak,
                (long long)ot_outcome_process(&p.found), p.found.seconds * 1e3);
    if (p.found.peak <= x->r->options->memory_budget && is_better(x, &p)) x->best = p;
    const bool keeps = x->best.v &&
                       ot_budget_fits(ot_outcome_process(&x->best.found), x->r->options);
    *met = keeps ? x->best.found.seconds : INFINITY;
    return OT_OK;
}

/* What takes least, whatever the budget. */
static ot_status find_least(selecting *x, pick *out)
{
    ot_plan_options o = *x->r->options;
    *x->r->diag = (ot_diag){0};
    o.goal = OT_GOAL_MEMORY;
    o.memory_budget = 0;
    return find(x, &o, out);
}

/* The runtime takes no tiles of dynamic dimensions: the model takes what it takes. */
static ot_status refuse_untiled(const selecting *x)
{
    const ot_candidates *plain = plain_of(&x->groups[0])->c;
    const int64_t needed = ot_planner_peak(plain->planner, NULL, 0);
    const int64_t budget = x->r->options->memory_budget;
    *x->r->diag = (ot_diag){0};
    return ot_fail(x->r->diag, OT_E_BUDGET,
                   "memory budget cannot be met: required %lld bytes, available %lld, excess %lld: "
                   "%s takes no tiles of dynamic dimensions: bind them with --shape",
                   (long long)needed, (long long)budget, (long long)(needed - budget),
                   x->r->target->runtime->name);
}

static ot_status find_in_budget(selecting *x, pick *out)
{
    ot_variant *plain = &x->groups[0].v[OT_VARIANT_PLAIN];
    OT_TRY(open_candidates(&x->groups[0], plain, x->r->options));
    const ot_budget_search b = {
        .of = x,
        .o = x->r->options,
        .untiled = {.peak_bytes = ot_planner_peak(plain->c->planner, NULL, 0),
                    .growth_bytes = plain->c->untiled.growth,
                    .time_s = ot_planner_untiled_seconds(plain->c->planner)},
        .n_nodes = ot_planner_nodes(plain->c->planner),
        .attempt = attempt};
    OT_TRY(ot_budget_run(&b));
    if (!x->best.v && x->r->options->best_effort) return find_least(x, out);
    if (!x->best.v) return ot_fail(x->r->diag, OT_E_BUDGET, "%s", x->why.message);
    *out = x->best;
    return OT_OK;
}

/* ---- taking ---- */

/* The outcome as the selection's plan. */
static ot_status take(const selecting *x, const pick *p, ot_selection *out)
{
    const ot_variant_group *g = p->group;
    const ot_candidates *plain = plain_of(g)->c;
    OT_TRY(ot_candidates_take(p->v->c, &p->found, &out->plan));
    out->design = p->v->design;
    out->stays_dynamic = g->is_dynamic && x->r->unbound != NULL;
    if (p->v->kind != OT_VARIANT_PLAIN) {
        ot_figures *whole = &out->plan->whole;
        ot_plan *own = plain->own;
        *whole = own->untiled;
        whole->largest_bytes = ot_largest_tensor(plain->g).bytes;
        if (plain->is_known) ot_process_figures(&plain->untiled, whole);
        out->plan->is_decomposed = true;
    }
    if (g->of_file.growth > 0) ot_process_figures(&g->of_file, &out->plan->untiled);
    return OT_OK;
}

/* What is computed in float32 must take enough less than the file, whatever it takes of itself. */
static bool pays_widened(const ot_select_request *r, const pick *p)
{
    const ot_variant_group *g = p->group;
    if (!p->found.changes) return false;
    const ot_score_base base = ot_score_base_of(&g->of_file, &g->of_file);
    return r->options->goal != OT_GOAL_MEMORY || g->of_file.growth == 0 ||
           (double)ot_score_bytes(&p->found.takes, &base) <=
               r->target->runtime->margins.wins * (double)base.untiled;
}

static ot_status open_groups(selecting *x, bool widened, bool *any)
{
    const ot_select_request *r = x->r;
    OT_TRY(ot_group_open(r, r->is_dynamic, widened, &x->groups[0], any));
    x->n = *any ? 1 : 0;
    if (!*any || !r->unbound) return OT_OK;
    bool also;
    const ot_status s = ot_group_open(r, true, widened, &x->groups[1], &also);
    if (s == OT_E_NOMEM) return s;
    if (s != OT_OK) *r->diag = (ot_diag){0};
    x->n = s == OT_OK && also ? 2 : 1;
    return OT_OK;
}

static void close_groups(selecting *x)
{
    for (uint32_t k = 0; k < GROUPS_MAX; k++) ot_group_close(&x->groups[k]);
    x->n = 0;
}

/* Choose among the groups of one type. *found false: nothing was widened, or it does not pay. */
static ot_status select_typed(selecting *x, bool widened, pick *p, bool *found)
{
    const ot_plan_options *o = x->r->options;
    OT_TRY(open_groups(x, widened, found));
    if (!*found) return OT_OK;
    ot_status s = o->memory_budget > 0 && !o->force ? find_in_budget(x, p) : find(x, o, p);
    if (s == OT_E_BUDGET && x->r->is_dynamic && !ot_runtime_sequences(x->r->target->runtime))
        s = refuse_untiled(x);
    if (s == OT_E_BUDGET && o->best_effort && o->memory_budget > 0) s = find_least(x, p);
    OT_TRY(s);
    *found = !widened || pays_widened(x->r, p);
    return OT_OK;
}

/* A budget of live bytes, and a limit for tensors, speak of half precision as the file has it; who
 * forces regions wants the file's operators. */
static bool may_widen(const ot_select_request *r)
{
    const ot_plan_options *p = r->options;
    return r->target->runtime->widens && !p->bit_exact && !p->memory_budget && !p->max_tensor &&
           !p->force && r->sizes.n_ranges == 0;
}

/* Whether a much larger limit on time would bring anything, of the planners at hand. */
static ot_status try_slower(selecting *x, ot_figures *out)
{
    ot_plan_options at = *x->r->options;
    pick found;
    if (!ot_candidates_compete(&at) || at.max_tensor || at.memory_budget ||
        at.max_slowdown >= OT_SLOWER)
        return OT_OK;
    at.max_slowdown = OT_SLOWER;
    OT_TRY(run_groups(x, &at, &found));
    *out = (ot_figures){.growth_bytes = found.found.takes.growth,
                        .peak_bytes = found.found.peak,
                        .time_s = found.found.seconds};
    return OT_OK;
}

static ot_status select_any(const ot_select_request *r, ot_selection *out)
{
    selecting x = {.r = r, .groups = out->groups};
    pick p = {0};
    bool found = false;
    ot_status s = may_widen(r) ? select_typed(&x, true, &p, &found) : OT_OK;
    if (s == OT_OK && !found) {
        close_groups(&x);
        x = (selecting){.r = r, .groups = out->groups};
        s = select_typed(&x, false, &p, &found);
    }
    if (s == OT_OK) s = take(&x, &p, out);
    if (s == OT_OK && r->options->try_slower) s = try_slower(&x, &out->slower);
    if (s == OT_OK && p.v->model != r->model) s = ot_model_adopt(r->model, p.v->model);
    return s;
}

/* The same over ranges of sizes with a budget. */
static ot_status select_in_ranges(const ot_select_request *r, ot_selection *out)
{
    bool any;
    OT_TRY(ot_group_open(r, true, false, &out->groups[0], &any));
    out->design = out->groups[0].v[OT_VARIANT_PLAIN].design;
    const ot_status s = ot_bounds_plan(r, out->design, &out->plan, &out->bounds);
    if (s != OT_E_BUDGET || !out->plan) return s;
    out->missed = ot_strdup(out->arena, r->diag->message);
    *r->diag = (ot_diag){0};
    return out->missed ? OT_OK : ot_fail_nomem(r->diag);
}

static ot_bounds_case bounds_case(const ot_select_request *r, const ot_selection *s)
{
    return (ot_bounds_case){.file = r->model,
                            .planned = s->design,
                            .plan = s->plan,
                            .target = r->target,
                            .ranges = r->sizes.ranges,
                            .n = r->sizes.n_ranges,
                            .budget = r->options->memory_budget,
                            .diag = r->diag};
}

/* Why a process of what was chosen may pass the budget, or a tensor its limit; "": they keep to it,
 * by all that is known. NULL: no memory. */
static const char *say_missed(const ot_select_request *r, const ot_selection *s)
{
    const ot_plan_options *o = r->options;
    const ot_figures *t = &s->plan->tiled;
    const char *unknown = ot_unknown_sizes((s->design ? s->design : r->model)->graph, s->arena);
    int64_t needed = t->peak_bytes;
    if (!unknown) return NULL;
    if (*unknown)
        return ot_format(s->arena, "%s cannot be shown to be kept: %s",
                         o->memory_budget > 0 ? "memory budget" : "max tensor", unknown);
    if (o->memory_budget == 0) return "";
    if (ot_runtime_simulates(r->target->runtime) && t->growth_bytes <= 0)
        return "memory budget cannot be shown to be kept: what subgraphs take is not known";
    if (t->growth_bytes > 0) needed = ot_max(needed, ot_budget_for(t->process_bytes));
    if (needed <= o->memory_budget) return "";
    return ot_format(s->arena,
                     "memory budget cannot be met: required %lld bytes, available %lld, excess "
                     "%lld (live tensors take %lld; the process is predicted to take %lld, and "
                     "predictions are a tenth off)",
                     (long long)needed, (long long)o->memory_budget,
                     (long long)(needed - o->memory_budget), (long long)t->peak_bytes,
                     (long long)t->process_bytes);
}

/* A limit that may be broken is one that is not kept. */
static ot_status check_limits(const ot_select_request *r, ot_selection *s)
{
    s->missed = say_missed(r, s);
    if (!s->missed) return ot_fail_nomem(r->diag);
    if (!*s->missed || r->options->best_effort) return OT_OK;
    return ot_fail(r->diag, OT_E_BUDGET, "%s; --best-effort writes the least that was found",
                   s->missed);
}

static ot_status select_narrowed(const ot_select_request *r, ot_selection *out)
{
    const bool budget = r->options->memory_budget > 0;
    if (r->sizes.n_ranges > 0 && budget) return select_in_ranges(r, out);
    OT_TRY(select_any(r, out));
    if (r->sizes.n_ranges == 0)
        return budget || r->options->max_tensor > 0 ? check_limits(r, out) : OT_OK;
    const ot_bounds_case c = bounds_case(r, out);
    return ot_bounds_compute(&c, r->model->arena, &out->bounds);
}

/* What nobody reads is left out, where that is much. */
static ot_status select_read(const ot_select_request *r, ot_selection *out)
{
    ot_select_request q = *r;
    ot_narrowed narrowed;
    ot_figures whole;
    const ot_folded folded = out->folded;
    *out = (ot_selection){.arena = ot_arena_new(), .missed = "", .folded = folded};
    out->groups = out->arena ? OT_NEW_N(out->arena, ot_variant_group, GROUPS_MAX) : NULL;
    if (!out->groups) return ot_fail_nomem(r->diag);
    out->n_groups = GROUPS_MAX;
    OT_TRY(ot_select_narrow(r, &out->narrowed, &narrowed, &whole));
    if (!out->narrowed) return select_narrowed(r, out);
    q.unbound = NULL; /* windows are those of one size */
    OT_TRY(select_narrowed(&q, out));
    out->plan->whole = whole;
    out->plan->narrowed_nodes = narrowed.n_nodes;
    out->plan->unread_macs = narrowed.unread_macs;
    out->plan->unread_bytes = narrowed.unread_bytes;
    return OT_OK;
}

static void free_choice(ot_selection *s)
{
    ot_plan_free(s->plan);
    for (uint32_t k = 0; k < s->n_groups; k++) ot_group_close(&s->groups[k]);
    ot_model_free(s->narrowed);
    ot_arena_free(s->arena);
}

ot_status ot_select(const ot_select_request *r, ot_selection *out)
{
    *out = (ot_selection){0};
    OT_TRY(ot_select_fold(r, &out->folded));
    OT_TRY(select_read(r, out));
    if (!out->folded.model) return OT_OK;
    if (ot_folded_gains(&out->folded, out->plan)) {
        out->plan->folded_nodes = out->folded.n_nodes;
        out->plan->whole = out->folded.whole;
        return OT_OK;
    }
    free_choice(out);
    *out = (ot_selection){.folded = out->folded};
    OT_TRY(ot_model_adopt(r->model, out->folded.file));
    return select_read(r, out);
}

void ot_selection_free(ot_selection *s)
{
    free_choice(s);
    ot_folded_free(&s->folded);
    *s = (ot_selection){0};
}

ot_status ot_select_plan(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                         bool static_shape, ot_plan **p)
{
    const ot_select_request r = {.model = g->model,
                                 .target = t,
                                 .options = o,
                                 .static_shape = static_shape,
                                 .diag = g->model->diag};
    ot_variant_group group;
    selecting x = {.r = &r, .groups = &group, .n = 1};
    pick found = {0};
    bool any;
    ot_plan *made = NULL;
    ot_status s = ot_group_open(&r, false, false, &group, &any);
    group.plain_only = true;
    if (s == OT_OK) s = find(&x, o, &found);
    if (s == OT_OK) s = ot_candidates_take(found.v->c, &found.found, &made);
    ot_group_close(&group);
    if (s != OT_OK) return s;
    ot_plan_free(*p);
    *p = made;
    return OT_OK;
}
