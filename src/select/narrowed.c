/* What nobody reads is not computed: the model that plans are made of, where that is much.
 *
 *   file --clone--> narrow (transform/narrow.c) --simulate--> holds no more than the file's?
 *                                                             then it is the model
 *
 * It saves time and memory at once, so it competes with nothing. Windows are of one size: with
 * dynamic shapes the model stays as it is.
 */
#include "variant.h"

#include "alloc_sim/alloc_sim.h"

#define NO_WORSE 1.02  /* of what the file takes: predictions are no better */
#define GAINS    0.875 /* of its time or of its memory: else nothing is to be changed */

ot_status ot_select_figures(const ot_select_request *r, const ot_model *m, ot_figures *out)
{
    ot_planner *planner = NULL;
    ot_sim_figures f = {0};
    OT_TRY(ot_planner_open(m->graph, r->target, &planner));
    ot_status s = ot_planner_untiled(planner, out);
    ot_planner_close(planner);
    if (s == OT_OK && ot_runtime_simulates(r->target->runtime) &&
        ot_sim_growth(m->graph, r->target->runtime, r->static_shape, &f) != OT_OK)
        s = ot_fail_nomem(r->diag);
    if (s != OT_OK) return s;
    out->largest_bytes = ot_largest_tensor(m->graph).bytes;
    if (f.n_unknown > 0) return OT_OK;
    ot_process_figures(&f, out);
    return OT_OK;
}

/* Bytes by which the two compare: of the process where both are known, else live ones. */
static double bytes_of(const ot_figures *x, const ot_figures *other)
{
    const bool known = x->growth_bytes > 0 && other->growth_bytes > 0;
    return (double)(known ? x->growth_bytes : x->peak_bytes);
}

static bool pays(const ot_figures *before, const ot_figures *after)
{
    const double time = after->time_s / before->time_s,
                 bytes = bytes_of(after, before) / bytes_of(before, after);
    return time <= NO_WORSE && bytes <= NO_WORSE && (time <= GAINS || bytes <= GAINS);
}

/* m, a copy with something to leave out, is narrowed; *is_better: it is to be the model. */
static ot_status narrow(const ot_select_request *r, ot_model *m, ot_narrowed *what,
                        ot_figures *whole, bool *is_better)
{
    ot_figures after;
    *is_better = false;
    OT_TRY(ot_narrow(m->graph, what));
    OT_TRY(ot_infer_shapes(m->graph, r->sizes.shapes, r->sizes.n_shapes));
    OT_TRY(ot_assure(m->graph, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_select_figures(r, r->model, whole));
    OT_TRY(ot_select_figures(r, m, &after));
    *is_better = pays(whole, &after);
    return OT_OK;
}

ot_status ot_select_narrow(const ot_select_request *r, ot_model **out, ot_narrowed *what,
                           ot_figures *whole)
{
    ot_model *m;
    bool is_better = false;
    *out = NULL;
    if (r->is_dynamic || r->sizes.n_ranges > 0) return OT_OK;
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_find_unread(r->model->graph, what));
    if (what->n_nodes == 0) return OT_OK; /* of most models, all is read: none is copied */
    OT_TRY(ot_model_clone(r->model, &m));
    m->diag = r->diag;
    m->source = r->model->source; /* borrowed: nothing frees it here */
    ot_status s = narrow(r, m, what, whole, &is_better);
    if (s == OT_OK && is_better) s = ot_model_adopt(r->model, m);
    if (s == OT_OK && is_better)
        *out = m;
    else
        ot_model_free(m);
    return s;
}
