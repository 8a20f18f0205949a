/* Runs in which dimensions stay dynamic: what goes together with that, the size that is planned
 * for, and the model as it was before a size was bound, which may be better written for every
 * size.
 */
#include "dynamic_shapes.h"

#include "onnx/import/model_io.h"
#include "ops/guessed_size.h"

#define SEQUENCES_SINCE 13 /* opset */

/* What holds for one size only, or is another way to write it; NULL: nothing. */
static const char *one_size_option(const ot_run_options *o)
{
    return o->n_shapes      ? "--shape"
           : o->emit_engine ? "--emit engine"
           : o->runtime && !ot_runtime_named(o->runtime)->keeps_dynamic
               ? "a --runtime that needs sizes"
           : o->plan.max_tensor ? "--max-tensor"
           : o->plan.force_form && o->plan.force_form != OT_FORM_PEELED &&
                   o->plan.force_form != OT_FORM_STREAM
               ? "another --form than loop-peeled and stream"
               : NULL;
}

static ot_status check_dynamic(const ot_run *r)
{
    const char *other = one_size_option(&r->options), *asked = r->options.n_ranges > 0 ? "--range"
                                                               : r->options.n_design > 0
                                                                   ? "--design"
                                                                   : "--keep-dynamic";
    if (other)
        return ot_fail(r->diag, OT_E_USAGE,
                       "%s does not go with %s, which is for one size: bind the dimensions with "
                       "--shape instead",
                       asked, other);
    return r->was_fixed ? ot_fail(r->diag, OT_E_USAGE,
                                  "%s: no dimension of the model's inputs is dynamic", asked)
                        : OT_OK;
}

/* Without a design, plans are made for the largest size of the range. */
static ot_status check_ranges(ot_run *r)
{
    ot_shape_binding *upper;
    OT_TRY(ot_bounds_check(r->model->graph, r->options.ranges, r->options.n_ranges, r->model->arena,
                           &upper));
    if (r->options.n_design > 0) return OT_OK;
    r->options.design = upper;
    r->options.n_design = r->options.n_ranges;
    return OT_OK;
}

/* Loops that hand sequences on are of opset 13. */
static ot_status raise_for_loops(ot_run *r)
{
    OT_TRY(ot_infer_shapes(r->model->graph, NULL, 0));
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    return ot_raise_operands(r->model);
}

/* The model's shapes as far as they are known at every size. */
ot_status ot_run_infer_dynamic(ot_run *r)
{
    if (r->model->opset < SEQUENCES_SINCE) OT_TRY(raise_for_loops(r));
    if (r->options.n_ranges > 0) OT_TRY(check_ranges(r));
    OT_TRY(ot_infer_shapes(r->model->graph, NULL, 0));
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    return ot_check_tile_ops(r->model->graph, NULL);
}

/* What is asked for holds for bound dimensions alone: then nothing is guessed. */
static bool needs_shapes(const ot_run_options *o)
{
    return o->n_shapes > 0 || o->plan.max_tensor > 0 || o->plan.force_form != OT_FORM_NONE;
}

/* Where no size is given, dynamic dimensions stay dynamic, if a size can be found to plan for. So
 * they do for runtimes that take no tiles of dynamic dimensions, too: figures are those of the
 * guessed size, and what is written takes every size that the file takes. */
ot_status ot_run_choose_design(ot_run *r)
{
    const bool asked = r->options.keep_dynamic;
    if (asked) OT_TRY(check_dynamic(r));
    if (r->was_fixed || r->options.n_ranges > 0 || (!asked && needs_shapes(&r->options)))
        return OT_OK;
    r->guessed = false;
    ot_guessed_sizes sizes;
    OT_TRY(ot_guess_sizes(r->model, r->options.design, r->options.n_design, "--design",
                          r->model->arena, &sizes));
    if (!sizes.found) return OT_OK;
    r->guessed = r->options.keep_dynamic = true;
    r->options.design = sizes.all;
    r->options.n_design = sizes.n;
    return OT_OK;
}

/* ---- a size is given, and dynamic dimensions may stay dynamic all the same ---- */

static bool may_stay_dynamic(const ot_run *r)
{
    ot_run_options o = r->options;
    o.n_shapes = 0;
    return r->options.n_shapes > 0 && o.plan.goal == OT_GOAL_MEMORY && !o.plan.force &&
           !o.plan.bit_exact && o.plan.force_form == OT_FORM_NONE && !o.plan.no_streams &&
           !o.plan.memory_budget && !r->was_fixed && !one_size_option(&o);
}

/* The size as a design; what the file fixes stays. */
static ot_status design_of_shapes(ot_run *r)
{
    const ot_run_options *o = &r->options;
    ot_shape_binding *design = OT_NEW_N(r->model->arena, ot_shape_binding, o->n_shapes);
    if (!design) return ot_fail_nomem(r->diag);
    for (size_t k = 0; k < o->n_shapes; k++) {
        design[k] = o->shapes[k];
        design[k].replace = false;
        design[k].option = "--design";
    }
    r->given_design = design;
    return OT_OK;
}

ot_status ot_run_keep_unbound(ot_run *r)
{
    if (!may_stay_dynamic(r)) return OT_OK;
    OT_TRY(design_of_shapes(r));
    return ot_model_clone(r->model, &r->unbound);
}
