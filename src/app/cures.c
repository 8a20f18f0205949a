/* What would help: options that may, by the reasons of what is in the way, are tried on the model
 * as it was loaded, and kept where the tiled model then takes less.
 *
 *   obstacles of the facts --> OT_CURE_* --> options --> a plan of its own --> an eighth less?
 *
 * Few plans, by a search that is cut short; none for a large graph, where they take longer than
 * what they tell is worth.
 */
#include "cures.h"

#define NODES_MOST 2000
#define LARGEST    3         /* obstacles that are looked at */
#define HELPS      (7.0 / 8) /* of what is taken without: as a plan for goal memory must win */

typedef struct cures {
    ot_run *r;
    ot_figures now; /* the tiled model without them */
} cures;

/* What a user asks of a plan: the growth of the process, or what lives where it is not known. */
static bool takes_less(const ot_figures *a, const ot_figures *b)
{
    if (a->growth_bytes > 0 && b->growth_bytes > 0)
        return (double)a->growth_bytes < HELPS * (double)b->growth_bytes;
    return a->peak_bytes > 0 && (double)a->peak_bytes < HELPS * (double)b->peak_bytes;
}

/* *out: what the model tiled with these options takes; all 0 where it cannot be. quick: at the
 * most, by a search that is cut short. */
static ot_status plan_with(const ot_run *r, const ot_run_options *o, bool quick, ot_figures *out)
{
    ot_diag own = {0};
    ot_run t = {.diag = &own, .options = *o, .source = r->source};
    t.options.plan.detail = t.options.plan.search.try_slower = t.options.try_cures = false;
    t.options.plan.search.one_lap = quick;
    t.options.dump_dir = NULL;
    t.options.log = NULL;
    t.options.progress = NULL;
    *out = (ot_figures){0};
    OT_TRY(ot_model_clone(r->untouched, &t.model));
    t.model->diag = &own;
    t.model->source = r->model->source; /* borrowed: nothing frees it there */
    const ot_status s = ot_run_plan(&t);
    if (s == OT_OK) *out = t.selection.plan->tiled;
    ot_run_free(&t);
    return s == OT_E_NOMEM ? ot_fail_nomem(r->diag) : OT_OK;
}

/* What helps by a quick search is planned in full, for its figures. *helps: it is kept, as `text`
 * (NULL: there is no memory). */
static ot_status try_options(cures *x, const ot_run_options *o, const char *text, bool *helps)
{
    ot_facts *f = x->r->facts;
    ot_figures got;
    OT_TRY(plan_with(x->r, o, true, &got));
    *helps = takes_less(&got, &x->now);
    if (!*helps) return OT_OK;
    OT_TRY(plan_with(x->r, o, false, &got));
    *helps = takes_less(&got, &x->now);
    if (!*helps) return OT_OK;
    const ot_fact_cure c = {text, got.growth_bytes > 0 ? (double)got.growth_bytes : OT_ABSENT,
                            (double)got.peak_bytes, got.time_s};
    return text && OT_PUSH(f->arena, f->cures, f->n_cures, f->cap_cures, c)
               ? OT_OK
               : ot_fail_nomem(x->r->diag);
}

/* ---- the options ---- */

/* What the largest limit brings, as the search itself tried it. */
static ot_status plan_slower(const cures *x, const ot_run_options *o, ot_figures *most)
{
    *most = x->r->selection.slower;
    return most->peak_bytes > 0 ? OT_OK : plan_with(x->r, o, true, most);
}

/* The largest limit first: where it brings nothing, no other does. Then the smallest that helps. */
static ot_status try_slowdown(cures *x)
{
    static const double LIMITS[] = {0.3, 1, OT_SLOWER};
    enum { N = sizeof LIMITS / sizeof *LIMITS };
    ot_run_options o = x->r->asked;
    ot_figures most;
    bool helps = false;
    if (o.plan.max_slowdown >= LIMITS[N - 1]) return OT_OK;
    o.plan.max_slowdown = LIMITS[N - 1];
    OT_TRY(plan_slower(x, &o, &most));
    if (!takes_less(&most, &x->now)) return OT_OK;
    for (size_t k = 0; k < N && !helps; k++) {
        if (LIMITS[k] <= x->r->asked.plan.max_slowdown) continue;
        o.plan.max_slowdown = LIMITS[k];
        OT_TRY(try_options(
            x, &o, ot_format(x->r->facts->arena, "--max-slowdown %g", 100 * LIMITS[k]), &helps));
    }
    return OT_OK;
}

static ot_status try_memory(cures *x)
{
    ot_run_options o = x->r->asked;
    bool helps;
    o.plan.goal = OT_GOAL_MEMORY;
    return try_options(x, &o, "--goal memory", &helps);
}

static ot_status try_engine(cures *x)
{
    ot_run_options o = x->r->asked;
    bool helps;
    o.emit_engine = true;
    o.runtime = NULL;
    return try_options(x, &o, "--emit engine", &helps);
}

static ot_status try_runtime(cures *x)
{
    ot_run_options o = x->r->asked;
    bool helps;
    o.runtime = ot_runtime_onnxruntime.name;
    return try_options(x, &o, "--runtime onnxruntime", &helps);
}

/* The size that is planned for, alone. */
static ot_status try_size(cures *x)
{
    ot_run *r = x->r;
    ot_run_options o = r->asked;
    const size_t n = r->options.n_design;
    bool helps;
    ot_shape_binding *shapes = OT_NEW_N(r->facts->arena, ot_shape_binding, n + 1);
    if (!shapes) return ot_fail_nomem(r->diag);
    for (size_t k = 0; k < n; k++) {
        shapes[k] = r->options.design[k];
        shapes[k].option = NULL;
    }
    o.shapes = shapes;
    o.n_shapes = n;
    o.design = NULL;
    o.n_design = 0;
    o.keep_dynamic = false;
    return try_options(x, &o, ot_run_shape_text(r, r->facts->arena), &helps);
}

/* ---- which ---- */

/* What may help against what is in the way. */
static unsigned wanted(const ot_run *r)
{
    const ot_run_options *o = &r->asked;
    const ot_facts *f = r->facts;
    const bool memory = o->plan.goal == OT_GOAL_MEMORY, plain = !o->emit_engine && !o->runtime;
    unsigned bits = 0;
    for (uint32_t k = 0; k < f->n_obstacles && k < LARGEST; k++)
        bits |= ot_reason_cures(ot_reason_find(f->obstacles[k].reason_id));
    if (bits & (OT_CURE_MEMORY | OT_CURE_SLOWDOWN))
        bits |= memory ? OT_CURE_SLOWDOWN : OT_CURE_MEMORY;
    bits &= memory ? ~(unsigned)OT_CURE_MEMORY : ~(unsigned)OT_CURE_SLOWDOWN;
    if (!plain || r->selection.design) bits &= ~(unsigned)OT_CURE_ENGINE;
    if (o->emit_engine || !o->runtime || ot_runtime_named(o->runtime) == &ot_runtime_onnxruntime)
        bits &= ~(unsigned)OT_CURE_RUNTIME;
    if (!r->selection.design || r->options.n_design == 0 || o->n_ranges > 0)
        bits &= ~(unsigned)OT_CURE_SIZE;
    return o->plan.force || o->plan.memory_budget > 0 || o->plan.max_tensor > 0 ? 0 : bits;
}

ot_status ot_run_keep_untouched(ot_run *r)
{
    if (!r->options.try_cures || r->model->graph->n_nodes > NODES_MOST) return OT_OK;
    r->asked = r->options;
    r->options.plan.search.try_slower = r->options.plan.goal == OT_GOAL_MEMORY;
    return ot_model_clone(r->model, &r->untouched);
}

ot_status ot_run_try_cures(ot_run *r)
{
    static const struct {
        unsigned bit;
        ot_status (*run)(cures *x);
    } ALL[] = {{OT_CURE_MEMORY, try_memory},
               {OT_CURE_SLOWDOWN, try_slowdown},
               {OT_CURE_SIZE, try_size},
               {OT_CURE_RUNTIME, try_runtime},
               {OT_CURE_ENGINE, try_engine}};
    if (!r->untouched || !r->facts->complete) return OT_OK;
    cures x = {r, r->selection.plan->tiled};
    const unsigned bits = wanted(r);
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++)
        if (bits & ALL[k].bit) OT_TRY(ALL[k].run(&x));
    return OT_OK;
}
