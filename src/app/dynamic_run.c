/* Runs in which free dimensions stay free: the size that is planned for, copies of the model at
 * that size and others, and whether a model whose size is given is better written for every
 * size.
 *
 *   pristine ------> real one, sizes bound ---> plan ----------------> W bytes
 *      `--> copy --> sizes free, planned at the one given --> plan --> F bytes  F is little more
 *      than W, or less: the real one is made as
 *                                                                               it was, and
 *                                                                               the free
 *                                                                               plan is its
 *                                                                               own
 *
 *
 *
 */
#include "dynamic_run.h"

#include "ops/dynamic_dims.h"
#include "onnx/import/model_io.h"
#include "alloc_sim/alloc_sim.h"
#include "transform/transform.h"
#include "transform/decompose/decompose.h"
#include "select/select.h"

/* times as long as the design are the free dimensions of the copy that shows tiles */
#define LARGER          8
#define LEAST_HALVED    32 /* rows: fewer are not halved */
#define SEQUENCES_SINCE 13 /* opset */
/* of a static_shape plan: such took 11 % more than predicted in the median of ten models, free
 * ones 5 % */
#define FREE_ABOUT 1.06

/* No input is left that has no size. */
static ot_status check_design(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (!v->init && v->is_tensor && !ot_value_is_static(v))
            return ot_fail(g->model->diag, OT_E_USAGE,
                           "--keep-dynamic: input '%.300s' has free dimensions: give the size to "
                           "plan for, --design %.300s=D,D,...",
                           v->name, v->name);
    }
    return OT_OK;
}

/* What holds for one size only, or is another way to write it; NULL: nothing. */
static const char *one_size_option(const ot_run_options *o)
{
    return o->n_shapes      ? "--shape"
           : o->emit_engine ? "--emit engine"
           : o->runtime && !ot_runtime_named(o->runtime)->keeps_dynamic
               ? "a --runtime that needs sizes"
           : o->plan.memory_budget && !o->n_ranges ? "--memory-budget without --range"
           : o->plan.max_tensor                    ? "--max-tensor"
           : o->plan.force_form && o->plan.force_form != OT_FORM_PEELED &&
                   o->plan.force_form != OT_FORM_STREAM
               ? "another --form than loop-peeled and stream"
               : NULL;
}

static ot_status check_dynamic(const ot_run *r)
{
    const char *other = one_size_option(&r->options);
    if (other)
        return ot_fail(r->diag, OT_E_USAGE,
                       "--keep-dynamic does not go with %s, which is for one size: bind the "
                       "dimensions with --shape instead",
                       other);
    return r->was_fixed ? ot_fail(r->diag, OT_E_USAGE,
                                  "--keep-dynamic: no dimension of the model's inputs is free")
                        : OT_OK;
}

/* A copy of the model at a size, where it takes that; *out NULL: it does not. */
static ot_status bind_copy(ot_run *r, const ot_shape_binding *bind, ot_model **out)
{
    ot_diag aside = {0};
    OT_TRY(ot_model_clone(r->model, out));
    (*out)->diag = &aside;
    ot_status s = ot_infer_shapes((*out)->graph, bind, r->options.n_design);
    if (s == OT_OK) s = ot_assure((*out)->graph, OT_P_ORDER | OT_P_USES);
    (*out)->diag = r->diag;
    if (s == OT_OK) return OT_OK;
    ot_model_free(*out);
    *out = NULL;
    return s == OT_E_NOMEM ? ot_fail_nomem(r->diag) : OT_OK;
}

/* The extent of dimension d of an input at another size than the design's. *first: no free
 * dimension but the batch was met yet. */
static int64_t other_extent(const ot_run *r, ot_id v, uint32_t d, int64_t extent, bool larger,
                            bool *first)
{
    if (!ot_axis_is_dynamic(r->planned->graph, v, (int32_t)d)) return extent;
    if (larger) return extent * LARGER;
    const bool rows = *first && d > 0 && extent >= LEAST_HALVED;
    if (d > 0) *first = false;
    return rows ? extent / 2 : extent;
}

/* Copies at LARGER times the design size, where tiles are seen far from the ends of their axes,
 * and, unless it is one size that counts, with half as many rows (the first free dimension
 * behind the batch), which plans must not be bad at either. A model need not take them. */
static ot_status bind_others(ot_run *r)
{
    const ot_run_options *o = &r->options;
    ot_arena *a = r->model->arena;
    for (int larger = r->options.one_size; larger < 2; larger++) {
        ot_shape_binding *bind = OT_NEW_N(a, ot_shape_binding, o->n_design + 1u);
        if (!bind) return ot_fail_nomem(r->diag);
        for (size_t k = 0; k < o->n_design; k++) {
            const ot_id v = ot_value_find(r->model->graph, o->design[k].input);
            int64_t *dims = OT_NEW_N(a, int64_t, o->design[k].rank + 1u);
            bool first = true;
            if (!dims) return ot_fail_nomem(r->diag);
            for (uint32_t d = 0; d < o->design[k].rank; d++)
                dims[d] = other_extent(r, v, d, o->design[k].dims[d], larger, &first);
            bind[k] = o->design[k];
            bind[k].dims = dims;
        }
        OT_TRY(bind_copy(r, bind, larger ? &r->large : &r->small));
    }
    return OT_OK;
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

/* Copies of the model at the design size and others, and what of the first holds there alone. */
static ot_status bind_sizes(ot_run *r)
{
    const ot_run_options *o = &r->options;
    OT_TRY(ot_model_clone(r->model, &r->planned));
    OT_TRY(ot_infer_shapes(r->planned->graph, o->design, o->n_design));
    OT_TRY(check_design(r->planned->graph));
    OT_TRY(ot_assure(r->planned->graph, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_infer_shapes(r->model->graph, NULL, 0));
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_dynamic_dims_set(r->model->graph, r->planned->graph, NULL));
    OT_TRY(bind_others(r));
    if (r->large) OT_TRY(ot_dynamic_dims_set(r->model->graph, r->planned->graph, r->large->graph));
    if (r->small) ot_dynamic_dims_small(r->planned->graph, r->small->graph);
    if (o->n_ranges > 0) ot_dynamic_dims_bounded(r->planned->graph);
    return OT_OK;
}

ot_status ot_run_bind_again(ot_run *r)
{
    ot_model_free(r->large);
    ot_model_free(r->small);
    ot_model_free(r->planned);
    r->planned = r->large = r->small = NULL;
    return bind_sizes(r);
}

static ot_status widen_graph(ot_run *r)
{
    OT_TRY(ot_widen(r->model->graph, &r->narrow));
    return r->narrow ? ot_widen_drop_casts(r->model->graph) : OT_OK;
}

ot_status ot_run_widen_dynamic(ot_run *r)
{
    ot_sim_figures file = {0};
    OT_TRY(widen_graph(r));
    if (!r->narrow) return OT_OK;
    if (ot_runtime_simulates(r->target.runtime)) /* the copies are still as the file is */
        OT_TRY(ot_sim_growth(r->planned->graph, r->target.runtime, false, &file));
    r->file_growth = file.n_unknown == 0 ? file.growth : 0;
    r->file_loaded = file.n_unknown == 0 ? file.loaded : 0;
    return ot_run_bind_again(r);
}

void ot_run_tell_untiled(ot_run *r)
{
    if (r->file_growth == 0) return;
    r->plan->untiled.growth_bytes = r->file_growth;
    r->plan->untiled.loaded_bytes = r->file_loaded;
}

bool ot_run_wide_pays(const ot_run *r)
{
    return r->options.plan.goal != OT_GOAL_MEMORY || r->file_growth == 0 ||
           (double)r->plan->tiled.growth_bytes <=
               r->target.runtime->margins.wins * (double)r->file_growth;
}

ot_status ot_run_bind_design(ot_run *r)
{
    OT_TRY(check_dynamic(r));
    if (r->model->opset < SEQUENCES_SINCE) OT_TRY(raise_for_loops(r));
    if (r->options.n_ranges > 0) OT_TRY(check_ranges(r));
    OT_TRY(bind_sizes(r));
    return ot_check_tile_ops(r->model->graph, NULL);
}

/* Where nobody says a word of sizes, free dimensions stay free, if a size can be found to plan for.
 */
ot_status ot_run_choose_design(ot_run *r)
{
    const bool asked = r->options.keep_dynamic;
    if (r->was_fixed || r->options.n_ranges > 0 ||
        (!asked && (r->options.one_size || one_size_option(&r->options))))
        return OT_OK;
    r->guessed = false;
    OT_TRY(ot_run_guess_design(r));
    r->options.keep_dynamic |= r->guessed;
    return OT_OK;
}

/* The free run's model with its normalisations [n] taken apart, in a run of its own, and its
 * plan where that is better; else *p NULL. */
static ot_status weigh_apart(const ot_run *r, const ot_norm *norms, uint32_t n, ot_run *apart,
                             ot_plan **p)
{
    *apart = *r;
    apart->model = apart->planned = apart->large = apart->small = NULL;
    OT_TRY(ot_model_clone(r->model, &apart->model));
    OT_TRY(ot_decompose_these(apart->model->graph, norms, n));
    OT_TRY(bind_sizes(apart));
    return ot_select_decomposed_dynamic(apart->planned->graph, &r->target, &r->options.plan,
                                        r->plan, p);
}

static void swap_models(ot_model **a, ot_model **b)
{
    ot_model *was = *a;
    *a = *b;
    *b = was;
}

/* With free dimensions, r's plan is replaced where the model with its normalisations taken apart
 * has a better one; model and copies are then taken apart, too. Not for a range: their parts
 * have no bound. */
ot_status ot_run_select_decomposed(ot_run *r)
{
    ot_norm *norms;
    uint32_t n;
    ot_run apart = {0};
    ot_plan *p = NULL;
    if (r->options.n_ranges > 0 || r->target.bit_exact) return OT_OK;
    OT_TRY(
        ot_decompose_find_dynamic(r->planned->graph, r->model->graph, r->model->arena, &norms, &n));
    if (n == 0) return OT_OK;
    ot_status s = weigh_apart(r, norms, n, &apart, &p);
    if (s == OT_OK && p) s = ot_decompose_these(r->model->graph, norms, n);
    if (s == OT_OK && p) {
        r->norms = norms;
        r->n_norms = n;
        ot_plan_free(r->plan);
        r->plan = p;
        swap_models(&r->planned, &apart.planned);
        swap_models(&r->large, &apart.large);
        swap_models(&r->small, &apart.small);
        swap_models(&r->apart, &apart.model);
    } else if (p) {
        ot_plan_free(p);
    }
    ot_model_free(apart.large);
    ot_model_free(apart.small);
    ot_model_free(apart.planned);
    ot_model_free(apart.model);
    return s;
}

/* ---- a size is given, and free dimensions may stay free all the same ---- */

static bool may_stay_free(const ot_run *r)
{
    ot_run_options o = r->options;
    o.n_shapes = 0;
    return r->options.n_shapes > 0 && o.plan.goal == OT_GOAL_MEMORY && !o.one_size &&
           !o.plan.force && !o.plan.bit_exact && o.plan.force_form == OT_FORM_NONE &&
           !o.plan.no_streams && !r->was_fixed && !one_size_option(&o);
}

ot_status ot_run_keep_pristine(ot_run *r)
{
    if (!may_stay_free(r)) return OT_OK;
    return ot_model_clone(r->model, &r->pristine);
}

/* f: the run r with the size as its design, on a copy of the pristine model. aside: where it
 * says what it cannot. */
static ot_status start_free(const ot_run *r, ot_diag *aside, ot_run *f)
{
    ot_shape_binding *design = OT_NEW_N(r->model->arena, ot_shape_binding, r->options.n_shapes);
    if (!design) return ot_fail_nomem(r->diag);
    for (size_t k = 0; k < r->options.n_shapes; k++) {
        design[k] = r->options.shapes[k];
        design[k].replace = false; /* what the file fixes stays */
        design[k].option = "--design";
    }
    *f = (ot_run){.diag = aside, .options = r->options, .target = r->target};
    f->options.design = design;
    f->options.n_design = r->options.n_shapes;
    f->options.n_shapes = 0;
    f->options.one_size = true;
    OT_TRY(ot_model_clone(r->pristine, &f->model));
    f->model->diag = aside;
    f->model->source = r->model->source; /* borrowed */
    return OT_OK;
}

static ot_status plan_free(ot_run *f)
{
    OT_TRY(ot_run_bind_design(f));
    if (f->target.runtime->widens) OT_TRY(ot_run_widen_dynamic(f));
    OT_TRY(ot_plan_graph(f->planned->graph, &f->target, &f->options.plan, &f->plan));
    OT_TRY(ot_select_plan(f->planned->graph, &f->target, &f->options.plan, false, &f->plan));
    OT_TRY(ot_run_select_decomposed(f));
    if (f->narrow) ot_run_tell_untiled(f);
    return OT_OK;
}

/* By what the process takes; both within the time that is allowed. */
static bool is_better_free(const ot_plan *static_shape, const ot_plan *free_plan)
{
    const ot_figures *a = &static_shape->tiled, *b = &free_plan->tiled;
    return free_plan->n_regions > 0 && a->growth_bytes > 0 && b->growth_bytes > 0 &&
           (double)b->growth_bytes <= FREE_ABOUT * (double)a->growth_bytes;
}

/* r goes on as f does, whose copies become its own. */
static ot_status go_on_free(ot_run *r, ot_run *f)
{
    OT_TRY(ot_model_restore(r->model, r->pristine));
    if (r->model->opset < SEQUENCES_SINCE) OT_TRY(raise_for_loops(r));
    OT_TRY(ot_infer_shapes(r->model->graph, NULL, 0));
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    r->narrow = NULL;
    if (f->narrow) { /* as the copy that was planned */
        OT_TRY(widen_graph(r));
        OT_TRY(ot_infer_shapes(r->model->graph, NULL, 0));
        OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    }
    if (f->n_norms > 0) OT_TRY(ot_decompose_these(r->model->graph, f->norms, f->n_norms));
    ot_plan_free(r->plan);
    r->plan = f->plan;
    r->planned = f->planned;
    r->large = f->large;
    r->small = f->small;
    r->apart = f->apart;
    r->sized = f->model;
    ot_model *const all[] = {r->planned, r->large, r->small, r->apart, r->sized};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k]) all[k]->diag = r->diag;
    *f = (ot_run){0};
    return OT_OK;
}

ot_status ot_run_select_dynamic(ot_run *r)
{
    ot_diag aside = {0};
    ot_run f = {0};
    if (!r->pristine || r->model->resized || !r->target.runtime->keeps_dynamic) return OT_OK;
    ot_status s = start_free(r, &aside, &f);
    if (s == OT_OK) s = plan_free(&f);
    const bool goes_on = s == OT_OK && is_better_free(r->plan, f.plan);
    /* not at every size, and the size is what was asked for */
    if (s != OT_OK && s != OT_E_NOMEM) s = OT_OK;
    if (goes_on) s = go_on_free(r, &f);
    if (f.plan) ot_plan_free(f.plan);
    ot_model_free(f.large);
    ot_model_free(f.small);
    ot_model_free(f.planned);
    ot_model_free(f.apart);
    ot_model_free(f.model);
    return s == OT_E_NOMEM ? ot_fail_nomem(r->diag) : s;
}
