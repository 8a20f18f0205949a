/* The choice: a plan of the best variant, within a budget where there is one, taken over into the
 * file's model; see select.h. What is found under which limit on time: laps.c.
 */
#include "laps.h"

#include "ops/dynamic_dims.h"
#include "tiling/lower/lowering.h"
#include "transform/transform.h"

#include <math.h>

typedef struct selecting {
    ot_laps laps;
    /* budget */
    ot_pick best;
    double untiled_s;
    bool is_slower; /* best is slower than is allowed of plans that no budget asks for */
    ot_diag why;    /* the first refusal */
} selecting;

/* ---- a memory budget ---- */

/* The least budget that is kept; a process that is not known (0) counts as its live tensors. */
static int64_t budget_for(int64_t peak, int64_t process)
{
    return ot_max(peak, ot_budget_for(process));
}

static int64_t budget_needed(const ot_outcome *f)
{
    return budget_for(f->peak, ot_outcome_process(f));
}

static bool keeps_budget(const selecting *x, const ot_outcome *f)
{
    return budget_needed(f) <= x->laps.r->options->memory_budget;
}

/* p in the place of what is kept: of those that keep to the budget the fastest, for goal memory the
 * one whose process takes least, within the slowdown before all others; where none does, the one
 * that needs the least budget. */
static bool is_better(const selecting *x, const ot_pick *p, bool is_slower)
{
    const ot_outcome *a = &x->best.found, *b = &p->found;
    const int64_t process = ot_outcome_process(b), kept = ot_outcome_process(a);
    const bool keeps = keeps_budget(x, b);
    if (!x->best.v) return true;
    if (keeps != keeps_budget(x, a)) return keeps;
    if (!keeps) return budget_needed(b) < budget_needed(a);
    if (x->laps.r->options->goal == OT_GOAL_TIME)
        return b->seconds < a->seconds * (1 - OT_TIME_ABOUT);
    if (is_slower != x->is_slower) return x->is_slower;
    return kept == 0 || process == 0 ? b->peak < a->peak : process < kept;
}

static ot_status attempt(void *of, const ot_plan_options *o, double *met)
{
    selecting *x = of;
    ot_pick p = {0};
    const ot_status s = ot_laps_find(&x->laps, o, &p);
    if (s == OT_E_BUDGET) {
        if (!x->why.message[0]) x->why = *x->laps.r->diag;
        *x->laps.r->diag = (ot_diag){0};
        return OT_OK;
    }
    OT_TRY(s);
    if (ot_dbg['P'])
        fprintf(stderr, "> Budget: peak %lld, process %lld, %.3f ms\n", (long long)p.found.peak,
                (long long)ot_outcome_process(&p.found), p.found.seconds * 1e3);
    const ot_plan_options *user = x->laps.r->options;
    const double allowed = x->untiled_s * (1 + user->max_slowdown) * (1 + OT_TIME_ABOUT);
    const bool is_slower = o->max_slowdown > user->max_slowdown && p.found.seconds > allowed;
    if (is_better(x, &p, is_slower)) {
        x->best = p;
        x->is_slower = is_slower;
    }
    *met = keeps_budget(x, &x->best.found) ? x->best.found.seconds : INFINITY;
    return OT_OK;
}

/* What takes least, whatever the budget. */
static ot_status find_least(selecting *x, ot_pick *out)
{
    ot_plan_options o = *x->laps.r->options;
    *x->laps.r->diag = (ot_diag){0};
    o.goal = OT_GOAL_MEMORY;
    o.memory_budget = 0;
    return ot_laps_find(&x->laps, &o, out);
}

/* The runtime takes no tiles of dynamic dimensions: the model takes what it takes. */
static ot_status refuse_untiled(const selecting *x)
{
    const ot_candidates *plain = ot_group_plain(&x->laps.groups[0])->c;
    const int64_t process = plain->untiled.growth > 0 ? ot_process_bytes(&plain->untiled) : 0;
    const int64_t needed = budget_for(ot_planner_peak(plain->planner, NULL, 0), process);
    const int64_t budget = x->laps.r->options->memory_budget;
    *x->laps.r->diag = (ot_diag){0};
    char excess[OT_EXCESS_SIZE];
    return ot_fail(x->laps.r->diag, OT_E_BUDGET,
                   "memory budget cannot be met: %s: %s takes no tiles of dynamic dimensions: bind "
                   "them with --shape",
                   ot_format_excess(needed, budget, excess, sizeof excess),
                   x->laps.r->target->runtime->name);
}

static ot_status find_in_budget(selecting *x, ot_pick *out)
{
    ot_variant *plain = &x->laps.groups[0].v[OT_VARIANT_PLAIN];
    OT_TRY(ot_laps_open(&x->laps.groups[0], plain, x->laps.r->options));
    const ot_budget_search b = {
        .of = x,
        .o = x->laps.r->options,
        .untiled = {.peak_bytes = ot_planner_peak(plain->c->planner, NULL, 0),
                    .growth_bytes = plain->c->untiled.growth,
                    .time_s = ot_planner_untiled_seconds(plain->c->planner)},
        .n_nodes = ot_planner_nodes(plain->c->planner),
        .attempt = attempt};
    x->untiled_s = b.untiled.time_s;
    OT_TRY(ot_budget_run(&b));
    if (x->best.v && keeps_budget(x, &x->best.found)) {
        *out = x->best;
        return OT_OK;
    }
    ot_pick least = {0};
    const ot_status s = find_least(x, &least);
    if (s == OT_E_NOMEM) return s;
    if (s == OT_OK && is_better(x, &least, false)) x->best = least;
    if (!x->best.v) return ot_fail(x->laps.r->diag, OT_E_BUDGET, "%s", x->why.message);
    *x->laps.r->diag = (ot_diag){0};
    *out = x->best;
    return OT_OK;
}

/* ---- taking ---- */

/* The outcome as the selection's plan. */
static ot_status take(const selecting *x, const ot_pick *p, ot_selection *out)
{
    const ot_variant_group *g = p->group;
    const ot_candidates *plain = ot_group_plain(g)->c;
    OT_TRY(ot_candidates_take(p->v->c, &p->found, &out->plan));
    out->design = p->v->design;
    out->stays_dynamic = g->is_dynamic && x->laps.r->unbound != NULL;
    if (p->v->kind != OT_VARIANT_PLAIN) {
        ot_figures *whole = &out->plan->whole;
        ot_plan *own = plain->own;
        *whole = own->untiled;
        whole->largest_bytes = ot_largest_tensor(plain->g).bytes;
        bool told;
        OT_TRY(ot_candidates_tells_process(plain, &told));
        if (told) ot_process_figures(&plain->untiled, whole);
        out->plan->is_decomposed = true;
    }
    if (g->of_file.growth > 0) ot_process_figures(&g->of_file, &out->plan->untiled);
    return OT_OK;
}

/* What is computed in float32 must take enough less than the file, whatever it takes of itself. */
static bool pays_widened(const ot_select_request *r, const ot_pick *p)
{
    const ot_variant_group *g = p->group;
    if (!p->found.changes) return false;
    const ot_score_base base = ot_score_base_of(&g->of_file, &g->of_file);
    return r->options->goal != OT_GOAL_MEMORY || g->of_file.growth == 0 ||
           (double)ot_score_bytes(&p->found.takes, &base) <=
               r->target->runtime->margins.wins * (double)base.untiled;
}

static void close_groups(selecting *x)
{
    for (uint32_t k = 0; k < OT_LAPS_GROUPS; k++) ot_group_close(&x->laps.groups[k]);
    x->laps.n = 0;
}

/* Choose among the groups of one type. *found false: nothing was widened, or it does not pay. */
static ot_status select_typed(selecting *x, bool widened, ot_pick *p, bool *found)
{
    const ot_plan_options *o = x->laps.r->options;
    OT_TRY(ot_laps_open_groups(&x->laps, widened, found));
    if (!*found) return OT_OK;
    const bool limited = o->memory_budget > 0 && !o->force;
    ot_status s = limited ? find_in_budget(x, p) : ot_laps_find(&x->laps, o, p);
    const bool missed = limited && !o->best_effort && s == OT_OK && !keeps_budget(x, &p->found);
    if ((missed || s == OT_E_BUDGET) && x->laps.r->is_dynamic &&
        !ot_runtime_sequences(x->laps.r->target->runtime))
        s = refuse_untiled(x);
    if (s == OT_E_BUDGET && o->best_effort && o->memory_budget > 0) s = find_least(x, p);
    OT_TRY(s);
    if (!limited) OT_TRY(ot_laps_smaller_fast(&x->laps, widened, o, p));
    *found = !widened || pays_widened(x->laps.r, p);
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

/* What competed goes: the plan that was taken needs none of it, and it is most of what planning
 * holds. */
static void forget_candidates(ot_selection *s)
{
    for (uint32_t k = 0; k < s->n_groups; k++)
        for (int j = 0; j < OT_VARIANT_KINDS; j++) {
            ot_variant *v = &s->groups[k].v[j];
            v->n_plans = v->c ? v->c->n_plans : 0;
            ot_candidates_close(v->c);
            v->c = NULL;
        }
}

static ot_status select_any(const ot_select_request *r, ot_selection *out)
{
    selecting x = {.laps = {.r = r, .groups = out->groups}};
    ot_pick p = {0};
    bool found = false;
    ot_status s = may_widen(r) ? select_typed(&x, true, &p, &found) : OT_OK;
    if (s == OT_OK && !found) {
        close_groups(&x);
        x = (selecting){.laps = {.r = r, .groups = out->groups}};
        s = select_typed(&x, false, &p, &found);
    }
    if (s == OT_OK) s = take(&x, &p, out);
    if (s == OT_OK && r->options->search.try_slower) s = ot_laps_slower(&x.laps, &out->slower);
    forget_candidates(out);
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
    char excess[OT_EXCESS_SIZE], live[32], process[32];
    return ot_format(s->arena,
                     "memory budget cannot be met: %s (live tensors take %s; the process is "
                     "predicted to take %s, and predictions are a tenth off)",
                     ot_format_excess(needed, o->memory_budget, excess, sizeof excess),
                     ot_format_bytes((double)t->peak_bytes, live, sizeof live),
                     ot_format_bytes((double)t->process_bytes, process, sizeof process));
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
    out->groups = out->arena ? OT_NEW_N(out->arena, ot_variant_group, OT_LAPS_GROUPS) : NULL;
    if (!out->groups) return ot_fail_nomem(r->diag);
    out->n_groups = OT_LAPS_GROUPS;
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

void ot_selection_forget_plan(ot_selection *s)
{
    ot_plan_free(s->plan);
    s->plan = NULL;
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
    ot_laps x = {.r = &r, .groups = &group, .n = 1};
    ot_pick found = {0};
    bool any;
    ot_plan *made = NULL;
    ot_status s = ot_group_open(&r, false, false, &group, &any);
    group.plain_only = true;
    if (s == OT_OK) s = ot_laps_find(&x, o, &found);
    if (s == OT_OK) s = ot_candidates_take(found.v->c, &found.found, &made);
    ot_group_close(&group);
    if (s != OT_OK) return s;
    ot_plan_free(*p);
    *p = made;
    return OT_OK;
}
