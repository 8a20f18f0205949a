/* Constants that the graph computes are in the file: the model that plans are made of, where what a
 * runtime makes on the way, while it loads, is much.
 *
 *   file --clone--> fold (transform/fold_constants.c) --simulate--> loads with less, and holds no
 *                                                                   more? then it is the model
 *
 * Regions that read the constants are then planned as for any weights. Where nothing else is to be
 * changed and the process does not become so much smaller, the model is the file's again.
 */
#include "variant.h"

#define LEAST (INT64_C(4) << 20) /* bytes that loading must need less */
#define GAINS 0.875              /* of the process: else it is not worth a change by itself */

static bool pays(const ot_figures *before, const ot_figures *after)
{
    return before->process_bytes > 0 && after->process_bytes > 0 &&
           after->process_bytes <= before->process_bytes &&
           after->loading_bytes <= before->loading_bytes - LEAST;
}

static ot_status fold(const ot_select_request *r, ot_model *m, ot_folded *what, bool *is_better)
{
    ot_figures after;
    OT_TRY(ot_fold_constants(m->graph, r->constants, &what->n_nodes));
    OT_TRY(ot_fold_distinct(m->graph));
    OT_TRY(ot_assure(m->graph, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_select_figures(r, r->model, &what->whole));
    OT_TRY(ot_select_figures(r, m, &after));
    *is_better = pays(&what->whole, &after);
    return OT_OK;
}

ot_status ot_select_fold(const ot_select_request *r, ot_folded *out)
{
    bool is_better = false;
    *out = (ot_folded){0};
    if (!r->constants || r->constants->computed.n == 0) return OT_OK;
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    ot_status s = ot_model_clone(r->model, &out->file);
    if (s == OT_OK) s = ot_model_clone(r->model, &out->model);
    if (s == OT_OK) {
        out->model->diag = r->diag;
        out->model->source = r->model->source; /* borrowed: nothing frees it here */
        s = fold(r, out->model, out, &is_better);
    }
    if (s == OT_OK && is_better) s = ot_model_adopt(r->model, out->model);
    if (s != OT_OK || !is_better) ot_folded_free(out);
    return s;
}

bool ot_folded_gains(const ot_folded *x, const ot_plan *p)
{
    return ot_plan_edits(p) ||
           (double)p->tiled.process_bytes <= GAINS * (double)x->whole.process_bytes;
}

void ot_folded_free(ot_folded *x)
{
    ot_model_free(x->file);
    ot_model_free(x->model);
    *x = (ot_folded){0};
}
