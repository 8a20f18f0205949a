/* What one input's size says of the others: a file that calls a dimension of two inputs by one name
 * means one extent.
 *
 *   ids   [batch, tokens]      --shape ids=1,128   ->   batch 1, tokens 128
 *   mask  [batch, tokens]                          ->   [1,128]
 */
#include "ops/dim_names.h"

#include "onnx/import/model_io.h"

ot_status ot_dim_names_new(const ot_graph *g, ot_arena *a, ot_dim_names *out)
{
    size_t n = 1;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const int32_t rank = g->values[g->inputs[k]].rank;
        n += rank > 0 ? (size_t)rank : 0;
    }
    *out = (ot_dim_names){.names = OT_NEW_N(a, const char *, n),
                          .extents = OT_NEW_N(a, int64_t, n)};
    return out->names && out->extents ? OT_OK : ot_fail_nomem(g->model->diag);
}

const char *ot_dim_shared_name(const ot_value *input, uint32_t d)
{
    const char *name = ot_dim_name(input, d);
    for (uint32_t k = 0; name && k < (uint32_t)input->rank; k++) {
        const char *other = ot_dim_name(input, k);
        if (k != d && (k == 0 || d == 0) && other && strcmp(name, other) == 0) return NULL;
    }
    return name;
}

void ot_dim_names_add(ot_dim_names *x, const char *name, int64_t extent)
{
    if (ot_dim_names_extent(x, name) != OT_DIM_UNKNOWN) return;
    x->names[x->n] = name;
    x->extents[x->n++] = extent;
}

int64_t ot_dim_names_extent(const ot_dim_names *x, const char *name)
{
    for (size_t k = 0; name && k < x->n; k++)
        if (strcmp(x->names[k], name) == 0) return x->extents[k];
    return OT_DIM_UNKNOWN;
}

const ot_shape_binding *ot_binding_of(const ot_shape_binding *given, size_t n, const ot_value *v)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(given[k].input, v->name) == 0) return &given[k];
    return NULL;
}

void ot_dim_names_take(ot_dim_names *x, const ot_graph *g, const ot_shape_binding *given, size_t n)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        const ot_shape_binding *b = ot_binding_of(given, n, v);
        for (uint32_t d = 0; b && v->rank == (int32_t)b->rank && d < b->rank; d++) {
            const char *name = v->dims[d] == OT_DIM_UNKNOWN ? ot_dim_shared_name(v, d) : NULL;
            if (name) ot_dim_names_add(x, name, b->dims[d]);
        }
    }
}

ot_status ot_dim_names_apply(const ot_dim_names *x, ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_inputs && x->n > 0; k++) {
        ot_value *v = &g->values[g->inputs[k]];
        int64_t dims[OT_RANK_MAX];
        bool any = false;
        for (int32_t d = 0; v->is_tensor && !v->init && d < v->rank; d++) {
            dims[d] = v->dims[d] == OT_DIM_UNKNOWN
                          ? ot_dim_names_extent(x, ot_dim_shared_name(v, (uint32_t)d))
                          : v->dims[d];
            any |= dims[d] != v->dims[d];
        }
        if (any) OT_TRY(ot_value_set_shape(g, g->inputs[k], v->rank, dims));
    }
    return OT_OK;
}
