/* What a session of the engine holds of a run's model, before and after, by its own layout of the
 * values; no tiles for goal memory where it holds no less with them; and tighter plans where that
 * does not keep the memory budget, which plans keep by live bytes.
 *
 *   model as loaded --------------------------session that only plans--> growth_bytes, untiled
 *     `--select--> plan --rewrite a copy------session that only plans--> growth_bytes, tiled
 */
#include "pipeline.h"

#include "engine/core/engine.h"
#include "onnx/import/model_io.h"

#ifdef OT_ENGINE

#define WORTH         100 /* of what a session holds, the part that tiles must save */
#define MOST_COMPUTED (INT64_C(1) << 29) /* of constants, for a figure */

/* Bytes of values that a session of m plans; shapes are inferred in m. */
static ot_status planned_bytes(const ot_run *r, ot_model *m, int64_t *bytes)
{
    const ot_session_options o = {.threads = r->target.cores,
                                  .plans_only = true,
                                  .shapes = r->options.shapes,
                                  .n_shapes = r->options.n_shapes};
    ot_session *s;
    ot_session_figures f;
    OT_TRY(ot_session_new(m, &o, m->diag, &s));
    ot_session_figures_get(s, &f);
    ot_session_free(s);
    *bytes = f.planned_peak;
    return OT_OK;
}

/* The same of a copy of m, as the run's plan has changed it if `planned`. */
static ot_status copy_bytes(ot_run *r, ot_model *m, bool planned, int64_t *bytes)
{
    ot_model *copy, *kept = r->model;
    ot_diag own = {0}, *told = r->diag;
    OT_TRY(ot_model_clone(m, &copy));
    copy->source = r->model->source; /* borrowed */
    copy->diag = r->diag = &own;
    r->model = copy;
    ot_status s = planned ? ot_run_write_plan(r) : OT_OK;
    r->model = kept;
    r->diag = told;
    if (s == OT_OK) s = planned_bytes(r, copy, bytes);
    ot_model_free(copy);
    return s;
}

/* The plan of the file's model without tiles. */
static ot_status select_none(ot_run *r, ot_model *file)
{
    const ot_runtime *kept = r->target.runtime;
    ot_runtime none = *kept;
    none.forms = 0;
    ot_selection_free(&r->selection);
    OT_TRY(ot_model_adopt(r->model, file));
    r->target.runtime = &none;
    const ot_status s = ot_run_select(r);
    r->target.runtime = kept;
    if (s != OT_OK) return s;
    ot_plan *p = r->selection.plan;
    for (uint32_t k = 0; k < p->n_refused; k++)
        if (p->refused[k].reason.why == OT_WHY_NO_FORM_OF_RUNTIME ||
            p->refused[k].reason.why == OT_WHY_NO_EXACT_FORM)
            p->refused[k].reason = (ot_reason){OT_WHY_GROWTH, 0};
    return OT_OK;
}

/* Nothing but the goal asks for tiles. */
static bool may_do_without(const ot_run *r)
{
    const ot_plan_options *o = &r->options.plan;
    return o->goal == OT_GOAL_MEMORY && !o->force && o->memory_budget == 0 && o->max_tensor == 0 &&
           o->force_form == OT_FORM_NONE;
}

/* A session computes constants before it lays out the rest; so much of them that a figure is not
 * worth it. */
static bool computes_much(const ot_graph *g)
{
    int64_t left = MOST_COMPUTED;
    for (ot_id v = 0; v < g->n_values && left >= 0; v++) {
        const ot_value *y = &g->values[v];
        int64_t bytes;
        if (!y->is_const || y->producer == OT_NONE || !ot_value_bytes(y, &bytes)) continue;
        left = bytes > left ? -1 : left - bytes;
    }
    return left < 0;
}

/* As the run's plan has it; what it does not change takes what the file's model does. */
static ot_status plan_bytes(ot_run *r, int64_t before, int64_t *after)
{
    *after = before;
    return ot_plan_edits(r->selection.plan) ? copy_bytes(r, r->model, true, after) : OT_OK;
}

static ot_status look(ot_run *r, ot_model *file, int64_t *before, int64_t *after)
{
    OT_TRY(copy_bytes(r, file, false, before));
    return plan_bytes(r, *before, after);
}

/* ---- a budget ---- */

#define TENTHS 10 /* of what the untiled model takes: live bytes that plans are asked to keep to */

/* The plan of the file's model within so many live bytes. */
static ot_status select_within(ot_run *r, ot_model *file, int64_t live)
{
    ot_model *copy;
    const int64_t budget = r->options.plan.memory_budget;
    OT_TRY(ot_model_clone(file, &copy));
    copy->lender = r->model->lender;
    r->model->lender = copy;
    ot_selection_free(&r->selection);
    OT_TRY(ot_model_adopt(r->model, copy));
    r->options.plan.memory_budget = live;
    const ot_status s = ot_run_select(r);
    r->options.plan.memory_budget = budget;
    return s;
}

/* The budget is that of a session. */
static bool is_held(const ot_run *r)
{
    const ot_plan_options *o = &r->options.plan;
    return o->memory_budget > 0 && !o->force && !r->options.keep_dynamic;
}

/* Tries plans that keep to fewer and fewer live bytes until a session keeps the budget. Which ones
 * does not hang on the budget: what a refusal requires is enough. */
static ot_status keep_budget(ot_run *r, ot_model *file, int64_t before, int64_t *after)
{
    const int64_t budget = r->options.plan.memory_budget, first = *after;
    int64_t least = INT64_MAX, of_least = budget;
    if (before <= budget) { /* tiles take more */
        *after = before;
        return select_none(r, file);
    }
    for (int64_t tenth = TENTHS; tenth > 0 && *after > budget; tenth--) {
        const int64_t live = (int64_t)((double)before / TENTHS * (double)tenth);
        const ot_status s = select_within(r, file, live);
        if (s == OT_E_BUDGET) {
            *after = INT64_MAX; /* there is no plan now */
            break;
        }
        OT_TRY(s);
        OT_TRY(plan_bytes(r, before, after));
        if (*after >= least) continue;
        least = *after;
        of_least = live;
    }
    if (*after <= budget) return OT_OK;
    if (least == INT64_MAX) least = first;
    if (least == INT64_MAX) return OT_E_BUDGET;
    char excess[OT_EXCESS_SIZE];
    ot_format_excess(least, budget, excess, sizeof excess);
    *r->diag = (ot_diag){0};
    const bool has_plan = *after == least;
    *after = least;
    if (!r->options.plan.best_effort)
        return ot_fail(r->diag, OT_E_BUDGET, "memory budget cannot be met: %s, in a session",
                       excess);
    if (!has_plan) OT_TRY(select_within(r, file, of_least));
    r->selection.missed = ot_strdup(r->model->arena, excess);
    return r->selection.missed ? OT_OK : ot_fail_nomem(r->diag);
}

static ot_status put_figures(ot_run *r, int64_t before, int64_t after)
{
    ot_plan *p = r->selection.plan;
    const char *unknown = ot_unknown_sizes(r->model->graph, r->model->arena);
    if (!unknown) return ot_fail_nomem(r->diag);
    if (*unknown) return OT_OK;
    p->untiled.growth_bytes = p->whole.growth_bytes = before;
    p->tiled.growth_bytes = after;
    return OT_OK;
}

ot_status ot_run_engine_budget(ot_run *r, ot_model *file)
{
    int64_t before, after = INT64_MAX;
    const ot_diag refusal = *r->diag;
    if (!is_held(r) || computes_much(file->graph) || copy_bytes(r, file, false, &before) != OT_OK)
        return OT_E_BUDGET;
    *r->diag = (ot_diag){0};
    const ot_status s = keep_budget(r, file, before, &after);
    if (s == OT_E_BUDGET && after == INT64_MAX) *r->diag = refusal;
    return s == OT_OK ? put_figures(r, before, after) : s;
}

ot_status ot_run_engine_memory(ot_run *r, ot_model *file)
{
    int64_t before, after;
    if (computes_much(r->model->graph)) return OT_OK;
    const ot_status s = look(r, file, &before, &after);
    /* what the engine does not run is refused elsewhere, and has no figures */
    if (s != OT_OK) return s == OT_E_NOMEM ? ot_fail_nomem(r->diag) : OT_OK;
    if (ot_plan_edits(r->selection.plan) && after > before - before / WORTH && may_do_without(r)) {
        OT_TRY(select_none(r, file));
        after = before;
    }
    if (is_held(r) && after > r->options.plan.memory_budget)
        OT_TRY(keep_budget(r, file, before, &after));
    return put_figures(r, before, after);
}

#else

ot_status ot_run_engine_memory(ot_run *r, ot_model *file)
{
    (void)r, (void)file;
    return OT_OK;
}

ot_status ot_run_engine_budget(ot_run *r, ot_model *file)
{
    (void)r, (void)file;
    return OT_E_BUDGET;
}

#endif
