/* The limit on single tensors (max_tensor), looked at on the graph as it is written: the planner
 * reckons with tiles and outputs, and not with what a form makes besides.
 */
#include "candidates.h"

#include "ops/ops.h"

/* Bytes of the largest tensor that is made when p's regions are written as x->how says. */
static ot_status measure_largest(ot_candidates *x, const ot_plan *p, int64_t *bytes)
{
    ot_model *copy;
    ot_status s = ot_candidates_write(x, p->regions, p->n_regions, &copy);
    if (s == OT_OK) {
        *bytes = ot_largest_tensor(copy->graph).bytes;
        ot_model_free(copy);
    }
    return s == OT_E_NOMEM ? ot_fail_nomem(x->g->model->diag) : s;
}

ot_status ot_limit_keep(ot_candidates *x)
{
    static const ot_form FORMS[] = {OT_FORM_PEELED, OT_FORM_UNROLLED, OT_FORM_LOOP, OT_FORM_SCAN};
    ot_diag *told = x->g->model->diag;
    const int64_t most = x->o.max_tensor;
    int64_t bytes, least;
    OT_TRY(measure_largest(x, x->own, &bytes));
    least = bytes;
    for (size_t k = 0; bytes > most && k < sizeof FORMS / sizeof *FORMS; k++) {
        ot_plan_options o = x->o;
        ot_plan *other;
        o.force_form = FORMS[k];
        if (!ot_runtime_takes(x->t->runtime, FORMS[k])) continue;
        OT_TRY(ot_candidates_make(x, &o, &other));
        if (!other) continue;
        OT_TRY(measure_largest(x, other, &bytes));
        least = ot_min(least, bytes);
        if (bytes <= most) x->own = other;
    }
    if (bytes <= most) return OT_OK;
    char a[64], b[64];
    return ot_fail(told, OT_E_BUDGET,
                   "max tensor cannot be kept: no form of the tiles makes tensors of less than %s, "
                   "%s are allowed",
                   ot_format_exact_bytes(least, a, sizeof a), ot_format_limit(most, b, sizeof b));
}

ot_status ot_limit_fill(ot_candidates *x, ot_plan *p)
{
    p->untiled.largest_bytes = p->tiled.largest_bytes = ot_largest_tensor(x->g).bytes;
    return p->n_regions > 0 ? measure_largest(x, p, &p->tiled.largest_bytes) : OT_OK;
}
