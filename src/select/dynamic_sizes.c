/* Dynamic shapes: copies of a model at the size that is planned for, and at others.
 *
 *   model   [N?, 3, H?, W?]           what is written
 *   design  [1, 3, 720, 1280]         plans are of this one
 *   large   [8, 3, 5760, 10240]       shows tiles far from the ends of their axes
 *   small   [1, 3, 360, 1280]         plans must not be bad there either
 */
#include "variant.h"

#include "ops/dynamic_dims.h"

#define LARGER \
    8                   /* times as long as the design are the dynamic dimensions of the copy that
                           shows tiles */
#define LEAST_HALVED 32 /* rows: fewer are not halved */

/* No input is left that has no size. */
static ot_status check_design(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (!v->init && v->is_tensor && !ot_value_is_static(v))
            return ot_fail(
                g->model->diag, OT_E_USAGE,
                "--keep-dynamic: input '%.300s' has dynamic dimensions: give the size to "
                "plan for, --design %.300s=D,D,...",
                v->name, v->name);
    }
    return OT_OK;
}

/* A copy of v's model at a size, where it takes that; *out NULL: it does not. */
static ot_status bind_copy(const ot_variant *v, const ot_shape_binding *bind, size_t n,
                           ot_model **out)
{
    ot_diag aside = {0}, *told = v->model->diag;
    OT_TRY(ot_model_clone(v->model, out));
    (*out)->diag = &aside;
    ot_status s = ot_infer_shapes((*out)->graph, bind, n);
    if (s == OT_OK) s = ot_assure((*out)->graph, OT_P_ORDER | OT_P_USES);
    (*out)->diag = told;
    if (s == OT_OK) return OT_OK;
    ot_model_free(*out);
    *out = NULL;
    return s == OT_E_NOMEM ? ot_fail_nomem(told) : OT_OK;
}

/* The extent of dimension d of an input at another size than the design's. *first: no dynamic
 * dimension but the batch was met yet. */
static int64_t other_extent(const ot_variant *v, ot_id input, uint32_t d, int64_t extent,
                            bool larger, bool *first)
{
    if (!ot_axis_is_dynamic(v->design->graph, input, (int32_t)d)) return extent;
    if (larger) return extent * LARGER;
    const bool rows = *first && d > 0 && extent >= LEAST_HALVED;
    if (d > 0) *first = false;
    return rows ? extent / 2 : extent;
}

/* Copies at LARGER times the design size, and, unless it is one size that counts, with half as many
 * rows (the first dynamic dimension behind the batch). A model need not take them. */
static ot_status bind_others(const ot_sizes *o, ot_variant *v)
{
    ot_arena *a = v->model->arena;
    for (int larger = o->one_size; larger < 2; larger++) {
        ot_shape_binding *bind = OT_NEW_N(a, ot_shape_binding, o->n_design + 1u);
        if (!bind) return ot_fail_nomem(v->model->diag);
        for (size_t k = 0; k < o->n_design; k++) {
            const ot_id input = ot_value_find(v->model->graph, o->design[k].input);
            int64_t *dims = OT_NEW_N(a, int64_t, o->design[k].rank + 1u);
            bool first = true;
            if (!dims) return ot_fail_nomem(v->model->diag);
            for (uint32_t d = 0; d < o->design[k].rank; d++)
                dims[d] = other_extent(v, input, d, o->design[k].dims[d], larger, &first);
            bind[k] = o->design[k];
            bind[k].dims = dims;
        }
        OT_TRY(bind_copy(v, bind, o->n_design, larger ? &v->large : &v->small));
    }
    return OT_OK;
}

ot_status ot_sizes_bind(const ot_select_request *r, ot_variant *v)
{
    const ot_sizes *o = &r->sizes;
    ot_graph *file = v->model->graph;
    OT_TRY(ot_model_clone(v->model, &v->design));
    ot_graph *design = v->design->graph;
    OT_TRY(ot_infer_shapes(design, o->design, o->n_design));
    OT_TRY(check_design(design));
    OT_TRY(ot_assure(design, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_infer_shapes(file, NULL, 0));
    OT_TRY(ot_assure(file, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_dynamic_dims_set(file, design, NULL));
    OT_TRY(bind_others(o, v));
    if (v->large) OT_TRY(ot_dynamic_dims_set(file, design, v->large->graph));
    if (v->small) ot_dynamic_dims_small(design, v->small->graph);
    if (o->n_ranges > 0) ot_dynamic_dims_bounded(design);
    return OT_OK;
}
