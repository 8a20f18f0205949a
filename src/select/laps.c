/* The best variant of a model under limits on time, from tight to loose.
 *
 *   group    the model in one form of its shapes and of one type: plain, and with edits
 *   lap      all groups under one limit on time: the best variant of each, then the better group
 *   kept     the best of all laps; a later one must hold less, strictly
 *
 * Differences that are no better than the predictions are none: an edit that brings another
 * rounding must save two hundredths, values that are made again a twentieth.
 */
#include "laps.h"

#include <math.h>

#define EDIT_SAVES  0.98 /* of what the plan without the edit takes */
#define AGAIN_SAVES 0.95
/* least limit on time under which values that wait in an arena are made again: that takes time */
#define WAITING_FROM 0.1
/* of what the model as it is takes at the design and half of it: at other sizes, they differ by
 * some percent more */
#define DYNAMIC_SAVES 0.9
/* of a plan of static shapes: such took 11 % more than predicted in the median of ten models, those
 * of dynamic shapes 5 % */
#define DYNAMIC_ABOUT 1.06

/* Limits on time that are searched: the user's is rounded down to one of them, and what was found
 * under the tighter ones competes. */
static const double SLOWDOWNS[] = {0,   0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,
                                   0.4, 0.5,  0.75, 1,    1.5, 2,    3,   5,    10};
#define COARSE 0.05 /* where sets of regions are simulated, a lap takes long: no limits below */

ot_status ot_laps_open_groups(ot_laps *x, bool widened, bool *any)
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

/* ---- one variant ---- */

ot_status ot_laps_open(const ot_variant_group *x, ot_variant *v, const ot_plan_options *o)
{
    const ot_select_request *r = x->r;
    if (!v->c)
        OT_TRY(ot_candidates_open(ot_variant_graph(v), r->target, o,
                                  !x->is_dynamic && r->static_shape, &v->c));
    v->c->file_graph = v->model->graph;
    if (v->kind != OT_VARIANT_PLAIN) ot_score_base_share(ot_group_plain(x)->c, v->c);
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
    *slow = v->fastest_s > allowed * (1 + OT_TIME_ABOUT);
    return OT_OK;
}

/* The slowdown that v may have where the plain variant may have so much: an edit costs time before
 * anything is tiled, and where that is more than is allowed, regions have to save it: below 0. */
static double own_slowdown(const ot_variant_group *x, const ot_variant *v, const ot_plan_options *o)
{
    /* what is too large has to be in tiles, whatever it costs */
    if (v->kind == OT_VARIANT_PLAIN || o->goal != OT_GOAL_MEMORY || o->force || o->max_tensor > 0)
        return o->max_slowdown;
    const double allowed = ot_group_plain(x)->c->untiled_s * (1 + o->max_slowdown);
    return fmin(o->max_slowdown, allowed / ot_planner_untiled_seconds(v->c->planner) - 1);
}

/* v->last takes longer than it may with this slowdown, below 0: regions that save what the edits
 * cost in its place, where there are any. */
static ot_status run_faster(ot_variant *v, double slowdown)
{
    const double allowed = ot_planner_untiled_seconds(v->c->planner) * (1 + slowdown);
    if (v->last.seconds <= allowed * (1 + OT_TIME_ABOUT)) return OT_OK;
    const ot_outcome least = v->last;
    const ot_status s = ot_candidates_lap(v->c, slowdown, &v->last);
    if (s == OT_E_BUDGET) v->last = least;
    return s == OT_E_BUDGET ? OT_OK : s;
}

/* What is found of v with this slowdown of its own. Of those below 0 the first asks for the least
 * memory that no slowdown at all brings; the others know that. */
static ot_status run_at(ot_variant *v, double slowdown, bool compete)
{
    if (slowdown >= 0) return ot_candidates_lap(v->c, slowdown, &v->last);
    if (!compete || !v->has_least) OT_TRY(ot_candidates_lap(v->c, 0, &v->least));
    v->has_least = true;
    v->last = v->least;
    return run_faster(v, slowdown);
}

/* v->last: what is found with options o. */
static ot_status run_variant(ot_variant_group *x, ot_variant *v, const ot_plan_options *o)
{
    const bool compete = ot_candidates_compete(o);
    bool slow = false;
    OT_TRY(ot_laps_open(x, v, o));
    const double slowdown = own_slowdown(x, v, o);
    if (slowdown < 0)
        OT_TRY(is_too_slow(v, o, ot_group_plain(x)->c->untiled_s * (1 + o->max_slowdown), &slow));
    if (compete && v->slowdown == slowdown) return OT_OK; /* as in the lap before */
    v->has_outcome = false;
    v->slowdown = compete && !slow ? slowdown : -1;
    if (slow) return OT_OK;
    const ot_status s = run_at(v, slowdown, compete);
    v->has_outcome = s == OT_OK;
    const bool limited = o->memory_budget > 0 || o->max_tensor > 0;
    if (s != OT_E_BUDGET || v->kind == OT_VARIANT_PLAIN || !limited) return s;
    *x->r->diag = (ot_diag){0}; /* another variant has a plan that keeps to it, or nothing has */
    return OT_OK;
}

/* ---- one group ---- */

/* Bytes by which outcomes compare, where nothing else is asked. */
static double bytes_of(const ot_variant_group *x, const ot_outcome *of)
{
    return of->takes.growth > 0 ? (double)ot_score_bytes(&of->takes, &ot_group_plain(x)->c->base)
                                : (double)of->peak;
}

/* Time of an outcome of v: what an edit by itself is predicted to save does not count, be it faster
 * at all (25 normalisations of a Conv-TasNet, decomposed for one region: predicted x0.93, measured
 * x1.22). */
static double seconds_of(const ot_variant_group *x, const ot_variant *v, const ot_outcome *of)
{
    return of->seconds + fmax(0, ot_group_plain(x)->c->untiled_s - v->c->untiled_s);
}

/* b's last outcome is to be preferred to a, of the plain variant or of one with edits, too. */
static bool wins(const ot_pick *a, const ot_variant *b, const ot_plan_options *o)
{
    const ot_variant_group *x = a->group;
    const ot_candidates *plain = ot_group_plain(x)->c;
    const ot_outcome *to = &b->last;
    if (!b->has_outcome || !to->any_regions) return false;
    if (o->force) return true;
    const bool faster = seconds_of(x, b, to) < EDIT_SAVES * seconds_of(x, a->v, &a->found);
    if (o->goal == OT_GOAL_TIME && o->memory_budget == 0) return faster;
    /* the checker knows the latter only */
    const double allowed = fmin(plain->untiled_s, b->c->untiled_s) * (1 + o->max_slowdown);
    if (o->goal == OT_GOAL_MEMORY && to->seconds > allowed * (1 + OT_TIME_ABOUT)) return false;
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
        "plain",        "wraps moved",       "decomposed",    "decomposed, no Softmax",
        "made again",   "made again, one",   "skips again",   "skips again, one",
        "pooled again", "pooled again, one", "waiting again", "waiting again, one"};
    if (!ot_dbg['D'] || !v->has_outcome) return;
    fprintf(stderr, "> Variant: %s%s: %u regions, %.3f ms, peak %lld, resident growth %lld\n",
            x->is_dynamic ? "dynamic, " : "", NAMES[v->kind], v->last.set.n, v->last.seconds * 1e3,
            (long long)v->last.peak, (long long)v->last.takes.growth);
}

/* The variant of that kind, run. Where its edits come to a model that does not hold it is left out:
 * the others have theirs. What an earlier lap found of it stays valid. */
static ot_status run_edited(ot_variant_group *x, ot_variant_kind kind, const ot_plan_options *o)
{
    ot_variant *v = &x->v[kind];
    ot_diag *told = x->r->diag;
    v->has_outcome &= !v->is_left_out;
    if (v->is_left_out) return OT_OK;
    ot_status s = ot_group_make(x, kind);
    if (s == OT_OK && v->model) s = run_variant(x, v, o);
    if (s != OT_E_INPUT) return s;
    if (ot_dbg['P']) fprintf(stderr, "> Left out: %s\n", told->message);
    *told = (ot_diag){0};
    v->is_left_out = true;
    v->has_outcome = false;
    return OT_OK;
}

/* Run a variant with edits, where there is one; *best becomes it, if it wins by so much. */
static ot_status try_variant(ot_variant_group *x, ot_variant_kind kind, double saves,
                             const ot_plan_options *o, ot_pick *best, bool *won)
{
    ot_variant *v = &x->v[kind];
    *won = false;
    OT_TRY(run_edited(x, kind, o));
    if (!v->model) return OT_OK;
    show(x, v);
    *won = wins(best, v, o) &&
           (saves >= 1 || bytes_of(x, &v->last) < saves * bytes_of(x, &best->found));
    if (*won) *best = (ot_pick){x, v, v->last};
    return OT_OK;
}

/* Normalisations decomposed; Softmaxes stay whole where no region cuts their pixels. */
static ot_status try_decomposed(ot_variant_group *x, const ot_plan_options *o, ot_pick *best)
{
    ot_variant *v = &x->v[OT_VARIANT_DECOMPOSED];
    const ot_pick before = *best;
    const bool memory = o->goal == OT_GOAL_MEMORY && !o->force;
    bool won;
    OT_TRY(try_variant(x, OT_VARIANT_DECOMPOSED, x->is_dynamic && memory ? DYNAMIC_SAVES : 1, o,
                       best, &won));
    if (x->is_dynamic || !v->model || !v->has_outcome || !ot_variant_softmax_idle(v)) return OT_OK;
    *best = before;
    return try_variant(x, OT_VARIANT_NO_SOFTMAX, 1, o, best, &won);
}

/* v makes one value again, if any: the largest alone is no other variant. */
static bool makes_one_again(const ot_variant *v)
{
    return !v->model || v->model->n_rematerialised == 1;
}

/* Values of one kind that are made again, all that are large, or the largest alone. */
static ot_status try_all_or_one(ot_variant_group *x, const ot_variant_kind kinds[2],
                                const ot_plan_options *o, ot_pick *best)
{
    bool won;
    OT_TRY(try_variant(x, kinds[0], AGAIN_SAVES, o, best, &won));
    if (won || makes_one_again(&x->v[kinds[0]])) return OT_OK;
    return try_variant(x, kinds[1], AGAIN_SAVES, o, best, &won);
}

/* The same of all kinds. */
static ot_status try_again(ot_variant_group *x, const ot_plan_options *o, ot_pick *best)
{
    static const ot_variant_kind KINDS[][2] = {{OT_VARIANT_AGAIN, OT_VARIANT_AGAIN_ONE},
                                               {OT_VARIANT_SKIPS, OT_VARIANT_SKIPS_ONE},
                                               {OT_VARIANT_POOLED, OT_VARIANT_POOLED_ONE}};
    static const size_t n = sizeof KINDS / sizeof *KINDS;
    for (size_t k = 0; k < n && !x->is_dynamic && ot_candidates_compete(o); k++)
        OT_TRY(try_all_or_one(x, KINDS[k], o, best));
    return OT_OK;
}

/* In an arena, where there is much time: values that wait when the process grows last, in the
 * better group. */
static ot_status try_waiting(const ot_laps *x, const ot_plan_options *o, ot_pick *best)
{
    static const ot_variant_kind KINDS[] = {OT_VARIANT_WAITING, OT_VARIANT_WAITING_ONE};
    ot_variant_group *at = best->group;
    if (!x->r->target->runtime->chunk_arena || !ot_candidates_compete(o) || o->max_tensor ||
        o->max_slowdown < WAITING_FROM || at->plain_only ||
        ot_group_plain(at)->model->graph->n_nodes == 0)
        return OT_OK;
    at->last = best->found.takes;
    return try_all_or_one(at, KINDS, o, best);
}

/* No plan of the model as it is keeps the limit on tensors: the first variant of which one does. */
static ot_status run_limited(ot_variant_group *x, const ot_plan_options *o, ot_pick *best)
{
    static const ot_variant_kind KINDS[] = {
        OT_VARIANT_WRAPS,     OT_VARIANT_DECOMPOSED, OT_VARIANT_NO_SOFTMAX,
        OT_VARIANT_AGAIN_ONE, OT_VARIANT_AGAIN,      OT_VARIANT_SKIPS_ONE,
        OT_VARIANT_SKIPS,     OT_VARIANT_POOLED_ONE, OT_VARIANT_POOLED};
    ot_variant *plain = &x->v[OT_VARIANT_PLAIN];
    const ot_diag why = *x->r->diag;
    ot_plan_options any = *o;
    any.max_tensor = any.memory_budget = 0;
    *x->r->diag = (ot_diag){0};
    plain->slowdown = -1;
    OT_TRY(run_variant(x, plain, &any)); /* what edits are compared with */
    plain->has_outcome = false;
    plain->slowdown = -1;
    for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
        ot_variant *v = &x->v[KINDS[k]];
        if (x->is_dynamic && KINDS[k] >= OT_VARIANT_AGAIN) break;
        OT_TRY(run_edited(x, KINDS[k], o));
        if (!v->model) continue;
        show(x, v);
        if (!v->has_outcome || !v->last.any_regions) continue;
        *best = (ot_pick){x, v, v->last};
        return OT_OK;
    }
    return ot_fail(x->r->diag, OT_E_BUDGET, "%s", why.message);
}

/* The best variant of the group with options o. */
static ot_status run_group(ot_variant_group *x, const ot_plan_options *o, ot_pick *best)
{
    ot_variant *plain = &x->v[OT_VARIANT_PLAIN];
    const ot_status s = run_variant(x, plain, o);
    if (s == OT_E_BUDGET && o->max_tensor > 0 && !x->plain_only) return run_limited(x, o, best);
    OT_TRY(s);
    *best = (ot_pick){x, plain, plain->last};
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
static bool is_better_dynamic(const ot_pick *given, const ot_pick *dynamic)
{
    const ot_outcome *a = &given->found, *b = &dynamic->found;
    const ot_variant_group *x = given->group;
    return b->any_regions && a->takes.growth > 0 && b->takes.growth > 0 &&
           bytes_of(x, b) <= DYNAMIC_ABOUT * bytes_of(x, a);
}

/* The best of all groups with options o. The second group is dynamic beside a given size: it goes
 * where it cannot be planned at every size. */
static ot_status best_of_groups(ot_laps *x, const ot_plan_options *o, ot_pick *best)
{
    OT_TRY(run_group(&x->groups[0], o, best));
    if (x->n < 2 || !ot_candidates_compete(o)) return OT_OK;
    ot_pick other;
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

static ot_status run_groups(ot_laps *x, const ot_plan_options *o, ot_pick *best)
{
    OT_TRY(best_of_groups(x, o, best));
    return try_waiting(x, o, best);
}

/* `to`, of a looser limit, holds less than what is kept. */
static bool holds_less(const ot_pick *kept, const ot_pick *to)
{
    const ot_outcome *a = &kept->found, *b = &to->found;
    if (a->takes.growth <= 0 || b->takes.growth <= 0) return b->peak < a->peak;
    return ot_score_holds_less(&a->takes, &b->takes, &ot_group_plain(kept->group)->c->base);
}

/* x->memory: with at most so much slowdown, the best of that lap and all before. */
static ot_status lap(ot_laps *x, const ot_plan_options *o, double slowdown)
{
    ot_plan_options at = *o;
    ot_pick found;
    at.max_slowdown = slowdown;
    OT_TRY(run_groups(x, &at, &found));
    if (ot_dbg['P'])
        fprintf(stderr, "> Time limit: slowdown %.2f: %.2f MB, %.3f ms\n", slowdown,
                (double)found.found.takes.growth / 1048576.0, found.found.seconds * 1e3);
    if (!x->memory.v || holds_less(&x->memory, &found)) x->memory = found;
    return OT_OK;
}

static bool is_skipped(const ot_laps *x, double slowdown)
{
    return slowdown > 0 && slowdown < COARSE && ot_runtime_simulates(x->r->target->runtime);
}

/* What costs more to load than it saves goes at the very end, under the user's own limit on time:
 * laps compare sets as they were found. */
static ot_status lighten(const ot_plan_options *o, ot_pick *best)
{
    ot_candidates *c = best->v->c;
    const double untiled_s = fmin(ot_group_plain(best->group)->c->untiled_s, c->untiled_s);
    if (o->goal != OT_GOAL_MEMORY || o->memory_budget > 0) return OT_OK;
    return ot_candidates_lighten(c, untiled_s * (1 + o->max_slowdown), &best->found);
}

ot_status ot_laps_find(ot_laps *x, const ot_plan_options *o, ot_pick *out)
{
    static const size_t n = sizeof SLOWDOWNS / sizeof *SLOWDOWNS;
    if (!ot_candidates_compete(o) || o->max_tensor) return run_groups(x, o, out);
    while (o->search.one_lap && x->next + 1 < n && SLOWDOWNS[x->next + 1] <= o->max_slowdown)
        x->next++;
    while (o->search.one_lap && x->next > 0 && is_skipped(x, SLOWDOWNS[x->next])) x->next--;
    for (; x->next < n && SLOWDOWNS[x->next] <= o->max_slowdown; x->next++)
        if (!is_skipped(x, SLOWDOWNS[x->next])) OT_TRY(lap(x, o, SLOWDOWNS[x->next]));
    *out = x->memory;
    return lighten(o, out);
}

ot_status ot_laps_slower(ot_laps *x, ot_figures *out)
{
    ot_plan_options at = *x->r->options;
    ot_pick found;
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
