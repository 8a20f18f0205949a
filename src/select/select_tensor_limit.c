/* The limit on single tensors (max_tensor), looked at on the graph as it is written: the planner
 * reckons with tiles and outputs, and not with what a form makes besides.
 *
 */
#include "candidates.h"

#include "ops/ops.h"

/* Bytes of the largest tensor that p makes. */
static ot_status measure_largest(ot_candidates *x, const ot_plan *p, int64_t *bytes)
{
    ot_model *copy;
    ot_status s = ot_candidates_write(x, p, p->regions, p->n_regions, &copy);
    if (s == OT_OK) {
        *bytes = ot_largest_tensor(copy->graph).bytes;
        ot_model_free(copy);
    }
    return s == OT_E_NOMEM ? ot_fail_nomem(x->g->model->diag) : s;
}

ot_status ot_limit_keep(ot_candidates *x, ot_plan **p)
{
    static const ot_form FORMS[] = {OT_FORM_PEELED, OT_FORM_UNROLLED, OT_FORM_LOOP, OT_FORM_SCAN};
    ot_diag *told = x->g->model->diag;
    int64_t bytes, least;
    OT_TRY(measure_largest(x, *p, &bytes));
    least = bytes;
    for (size_t k = 0; bytes > x->o->max_tensor && k < sizeof FORMS / sizeof *FORMS; k++) {
        ot_plan_options o = *x->o;
        ot_diag aside = {0};
        ot_plan *other = NULL;
        o.force_form = FORMS[k];
        if (!ot_runtime_takes(x->t->runtime, FORMS[k])) continue;
        x->g->model->diag = &aside;
        ot_status s = ot_plan_graph(x->g, x->t, &o, &other);
        if (s == OT_OK) s = measure_largest(x, other, &bytes);
        x->g->model->diag = told;
        if (s == OT_E_NOMEM) return ot_fail_nomem(told);
        least = s == OT_OK ? ot_min(least, bytes) : least;
        bool holds = s == OT_OK && bytes <= x->o->max_tensor;
        ot_plan_free(holds ? *p : other);
        if (holds) *p = other;
        if (s != OT_OK) bytes = INT64_MAX;
    }
    if (bytes <= x->o->max_tensor) return OT_OK;
    return ot_fail(told, OT_E_BUDGET,
                   "max tensor cannot be kept: no form of the tiles makes tensors of less than "
                   "%lld bytes, %lld are allowed",
                   (long long)least, (long long)x->o->max_tensor);
}

ot_status ot_limit_fill(ot_candidates *x, ot_plan *p)
{
    p->untiled.largest_bytes = p->tiled.largest_bytes = ot_largest_tensor(x->g).bytes;
    return p->n_regions > 0 ? measure_largest(x, p, &p->tiled.largest_bytes) : OT_OK;
}
