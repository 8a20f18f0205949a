/* Walks over graphs of ONNX Runtime's. */
#include "ep_graph.h"

#include "ort_run.h"

#include <stdlib.h>

ort_status *ep_no_memory(const ep_tables *t) { return ort_failure(t->api, "out of memory", NULL); }

ort_status *ep_graph_nodes(const ep_tables *t, const ort_graph *g, const ort_node ***out, size_t *n)
{
    *out = NULL;
    TRY_ORT(CALL(t->api, ORT_GRAPH_NODE_COUNT, ort_graph_count)(g, n));
    *out = calloc(*n + 1, sizeof **out);
    if (!*out) return ep_no_memory(t);
    return CALL(t->api, ORT_GRAPH_NODES, ort_graph_nodes)(g, *out, *n);
}

ort_status *ep_node_values(const ep_tables *t, const ort_node *node, int count_at, int values_at,
                           const ort_value_info ***out, size_t *n)
{
    *out = NULL;
    TRY_ORT(CALL(t->api, count_at, ort_node_count)(node, n));
    *out = calloc(*n + 1, sizeof **out);
    if (!*out) return ep_no_memory(t);
    return CALL(t->api, values_at, ort_node_values)(node, *out, *n);
}

ort_status *ep_value_name(const ep_tables *t, const ort_value_info *v, const char **out)
{
    *out = "";
    return v ? CALL(t->api, ORT_VALUE_NAME, ort_value_name)(v, out) : NULL;
}

ort_status *ep_first_output(const ep_tables *t, const ort_node *n, const char **out)
{
    const ort_value_info **values;
    size_t count = 0;
    *out = NULL;
    ort_status *st = ep_node_values(t, n, ORT_NODE_OUTPUT_COUNT, ORT_NODE_OUTPUTS, &values, &count);
    for (size_t k = 0; !st && !*out && k < count; k++) {
        const char *name;
        st = ep_value_name(t, values[k], &name);
        if (!st && *name) *out = name;
    }
    free(values);
    return st;
}

bool ep_is_ranked(const ep_tables *t, const ort_shape *s, size_t rank)
{
    if (rank > 0) return rank <= ONNX_TILE_RANK_MAX;
    return t->knows_shapes && CALL(t->api, ORT_SHAPE_IS_KNOWN, ort_shape_is_known)(s);
}

ort_status *ep_value_shape(const ep_tables *t, const ort_value_info *v, const ort_shape **out)
{
    const ort_type *type = NULL;
    *out = NULL;
    TRY_ORT(CALL(t->api, ORT_VALUE_TYPE, ort_value_type)(v, &type));
    return type ? CALL(t->api, ORT_TYPE_TENSOR, ort_type_tensor)(type, out) : NULL;
}

ort_status *ep_value_is_fixed(const ep_tables *t, const ort_value_info *v, bool *out)
{
    const ort_shape *s;
    int64_t dims[ONNX_TILE_RANK_MAX];
    size_t rank = 0;
    *out = false;
    TRY_ORT(ep_value_shape(t, v, &s));
    if (!s) return NULL;
    TRY_ORT(CALL(t->api, ORT_SHAPE_RANK, ort_shape_rank)(s, &rank));
    if (!ep_is_ranked(t, s, rank)) return NULL;
    TRY_ORT(CALL(t->api, ORT_SHAPE_DIMS, ort_shape_dims)(s, dims, rank));
    *out = true;
    for (size_t k = 0; k < rank; k++) *out &= dims[k] >= 0;
    return NULL;
}
