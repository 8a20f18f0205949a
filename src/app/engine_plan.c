/* A model as the engine runs it best, without a file in between: planned when it is loaded. */
#include "engine_plan.h"

#include "base/watch.h"
#include "onnx/import/model_io.h"

#ifdef OT_ENGINE

static ot_status rewrite(ot_run *r, bool *changed)
{
    OT_TRY(ot_run_tile(r, true));
    *changed = ot_plan_edits(r->selection.plan);
    return *changed ? ot_run_rewrite(r) : OT_OK;
}

static void free_run(void *of)
{
    ot_run_free(of);
    free(of);
}

/* The rewritten graph has parts that the run's selection made. */
static ot_status keep_run(ot_run *r, ot_diag *d, ot_model **planned)
{
    ot_model *keeper = ot_model_new(d);
    if (!keeper) return ot_fail_nomem(d);
    ot_facts_free(r->facts);
    r->facts = NULL;
    ot_selection_forget_plan(&r->selection);
    keeper->source = r;
    keeper->free_source = free_run;
    *planned = r->model;
    keeper->lender = (*planned)->lender;
    (*planned)->lender = keeper;
    r->model = NULL;
    return OT_OK;
}

static ot_run *make_run(const ot_engine_request *q, ot_diag *d)
{
    ot_run *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (ot_run){.diag = d,
                  .options = {.target = "host",
                              .threads = q->threads ? q->threads : 1,
                              .shapes = q->shapes,
                              .n_shapes = q->n_shapes,
                              .plan = {.goal = q->goal,
                                       .max_slowdown = q->max_slowdown,
                                       .tie_break = true,
                                       .single_file = true},
                              .emit_engine = true}};
    return r;
}

/* *planned: NULL unless it is to be run in place of m. */
static ot_status plan(ot_model *m, const ot_engine_request *q, ot_diag *d, ot_model **planned)
{
    bool better = false;
    ot_run *r = make_run(q, d);
    if (!r) return ot_fail_nomem(d);
    ot_status s = ot_model_clone(m, &r->model);
    if (s == OT_OK) {
        r->model->source = m->source; /* borrowed */
        r->model->diag = d;
        s = rewrite(r, &better);
    }
    if (s == OT_OK && better) s = keep_run(r, d, planned);
    if (!*planned) free_run(r);
    return s;
}

ot_status ot_plan_engine_copy(ot_model *m, const ot_engine_request *q, ot_diag *d,
                              ot_model **planned)
{
    ot_diag own = {0}, *told = m->diag;
    *planned = NULL;
    m->diag = &own;
    const ot_status s = plan(m, q, &own, planned);
    m->diag = told;
    if (*planned) (*planned)->diag = d;
    if (s == OT_OK) return OT_OK;
    OT_TRY(ot_watch_look(d));
    return s == OT_E_NOMEM ? ot_fail_nomem(d) : OT_OK;
}

ot_status ot_plan_for_engine(ot_model **m, const ot_engine_request *q, ot_diag *d)
{
    ot_model *planned;
    OT_TRY(ot_plan_engine_copy(*m, q, d, &planned));
    if (!planned) return OT_OK;
    ot_model *last = planned;
    while (last->lender) last = last->lender;
    last->lender = *m;
    *m = planned;
    return OT_OK;
}

#else

ot_status ot_plan_engine_copy(ot_model *m, const ot_engine_request *q, ot_diag *d,
                              ot_model **planned)
{
    (void)m, (void)q, (void)d;
    *planned = NULL;
    return OT_OK;
}

ot_status ot_plan_for_engine(ot_model **m, const ot_engine_request *q, ot_diag *d)
{
    (void)m, (void)q, (void)d;
    return OT_OK;
}

#endif
