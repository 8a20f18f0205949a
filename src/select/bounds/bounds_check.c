/* Whether ranges are those of a model's inputs. See size_bounds.h. */
#include "size_bounds.h"

static ot_status check_one(const ot_graph *g, const ot_size_range *r)
{
    ot_diag *d = g->model->diag;
    const ot_id id = ot_value_find(g, r->input);
    const ot_value *v = id == OT_NONE ? NULL : &g->values[id];
    if (!v || !v->is_input || v->init) return ot_no_such_input(g, "--range", r->input);
    if (!v->is_tensor || (v->rank >= 0 && (uint32_t)v->rank != r->rank))
        return ot_fail(d, OT_E_USAGE, "--range %.300s: %u dims given, the input has %d", r->input,
                       r->rank, v->rank);
    for (uint32_t k = 0; v->rank >= 0 && k < r->rank; k++)
        if (v->dims[k] >= 0 && (r->dims[k].lo != v->dims[k] || r->dims[k].hi != v->dims[k]))
            return ot_fail(d, OT_E_USAGE, "--range %.300s: dim %u is fixed at %lld in the model",
                           r->input, k, (long long)v->dims[k]);
    return OT_OK;
}

ot_status ot_bounds_check(const ot_graph *g, const ot_size_range *ranges, size_t n, ot_arena *a,
                          ot_shape_binding **design)
{
    ot_diag *d = g->model->diag;
    *design = OT_NEW_N(a, ot_shape_binding, n + 1);
    if (!*design) return ot_fail_nomem(d);
    for (size_t k = 0; k < n; k++) {
        int64_t *dims = OT_NEW_N(a, int64_t, ranges[k].rank + 1u);
        if (!dims) return ot_fail_nomem(d);
        OT_TRY(check_one(g, &ranges[k]));
        for (uint32_t j = 0; j < ranges[k].rank; j++) dims[j] = ranges[k].dims[j].hi;
        (*design)[k] = (ot_shape_binding){
            .input = ranges[k].input, .rank = ranges[k].rank, .dims = dims, .option = "--range"};
    }
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        bool given = false;
        if (v->init || !v->is_tensor || ot_value_is_static(v)) continue;
        for (size_t j = 0; j < n; j++) given |= strcmp(ranges[j].input, v->name) == 0;
        if (!given)
            return ot_fail(d, OT_E_USAGE,
                           "--range: input '%.300s' has dynamic dimensions: give its range, too, "
                           "--range %.300s=D,LO:HI,...",
                           v->name, v->name);
    }
    return OT_OK;
}
