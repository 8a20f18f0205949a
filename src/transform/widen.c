/* Half precision in float32, for runtimes that compute so. On a CPU ONNX Runtime has few kernels
 * for half precision: it casts what every other operator reads and makes, writes Relu, HardSwish
 * and the like as functions of what it has, and inside a branch or a loop it casts the weights
 * anew in each run, so that no convolution there is packed or blocked. The same graph in float32
 * has none of that:
 *
 *     x --> Conv(W) --> Relu --> y            x --> Cast --> Conv(W) --> Relu --> Cast --> y
 *     all in half precision                   half   |       float32       |      half
 *
 * Inputs and results keep their types. What is computed is nearer to exact arithmetic, since
 * nothing is rounded on the way. The runtime holds weights in float32 whatever the file says;
 * the file's part of them becomes twice as large.
 */
#include "transform.h"

#include "onnx/import/model_io.h"

/* bytes of half precision: the file is to stay below the 2 GiB of a message */
#define MOST_WEIGHTS (INT64_C(512) << 20)

static bool is_half(const ot_graph *g, ot_id v)
{
    return v != OT_NONE && g->values[v].dtype == OT_F16;
}

/* No run changes it. */
static bool is_constant(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return (x->init && !x->overridable) || x->is_const ||
           (x->producer != OT_NONE && g->nodes[x->producer].is_static);
}

static bool takes_part(const ot_node *n) { return !n->dead && !n->is_static; }

static bool touches_half(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (is_half(g, n->in[k])) return true;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (is_half(g, n->out[k])) return true;
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (is_half(g, n->captured[k])) return true;
    return false;
}

/* Its results follow the types of its operands, or (Cast) of the attribute that is written anew. */
static bool follows_operands(const ot_graph *g, const ot_node *n)
{
    if (n->op == OT_OP_OPAQUE || n->n_captured > 0) return false;
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const ot_attr *a = &n->attrs[k];
        if (a->kind == OT_ATTR_OPAQUE || a->kind == OT_ATTR_GRAPH || a->kind == OT_ATTR_TENSOR)
            return false;
        if (strcmp(a->name, "dtype") == 0 || strcmp(a->name, "output_dtype") == 0) return false;
    }
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE &&
            (!g->values[n->in[k]].is_tensor || g->values[n->in[k]].overridable))
            return false;
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && !g->values[n->out[k]].is_tensor) return false;
    return true;
}

/* There is a product in half precision, and all that takes part can be computed in float32. A Cast
 * behind a few-bit weight would make its product one of floats. */
static bool gains(const ot_graph *g)
{
    bool has_product = false;
    if (ot_has_half_quantised(g)) return false;
    for (ot_id k = 0; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        if (!takes_part(n) || !touches_half(g, n)) continue;
        if (!follows_operands(g, n)) return false;
        has_product |= n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose ||
                       n->op == OT_OP_MatMul || n->op == OT_OP_Gemm;
    }
    return has_product;
}

static const char *new_name(ot_graph *g, const char *prefix, ot_id of)
{
    const char *base = ot_format(g->model->arena, "tile/wide/%s%s", prefix, g->values[of].name);
    return base ? ot_fresh_name(g->model, base) : NULL;
}

static ot_id new_value(ot_graph *g, ot_id of)
{
    const ot_value x = g->values[of];
    const char *name = new_name(g, "", of);
    return name ? ot_value_new(g, name, OT_F32, x.rank, x.dims) : OT_NONE;
}

static const ot_tensor *contents(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    if (x->init || x->producer == OT_NONE || g->nodes[x->producer].op != OT_OP_Constant)
        return x->init;
    const ot_attr *a = ot_attr_find(&g->nodes[x->producer], "value");
    return a && a->kind == OT_ATTR_TENSOR ? a->t : NULL;
}

/* Constant v in float32. *out OT_NONE: nobody holds its contents. */
static ot_status widen_constant(ot_graph *g, ot_id v, ot_id *out)
{
    const ot_value x = g->values[v];
    int64_t elems = 0;
    size_t n = 0;
    *out = OT_NONE;
    const ot_tensor *t = contents(g, v);
    if (!t || !ot_value_elems(&x, &elems)) return OT_OK;
    float *data = malloc(((size_t)elems + 1) * sizeof *data);
    const char *name = data ? new_name(g, "", v) : NULL;
    if (name && ot_tensor_floats(t, data, (size_t)elems, &n) && n == (size_t)elems) {
        *out = ot_const_f32(g, name, data, x.rank, x.dims);
        if (*out == OT_NONE) name = NULL;
    }
    free(data);
    return name ? OT_OK : ot_fail_nomem(g->model->diag);
}

static ot_status cast(ot_graph *g, ot_id from, ot_id to)
{
    const ot_attr type = ot_mk_int("to", g->values[to].dtype);
    const char *name = new_name(g, "cast/", g->values[to].dtype == OT_F16 ? to : from);
    const ot_id n = name ? ot_node_new(g, &(ot_node_def){.op = "Cast",
                                                         .name = name,
                                                         .in = {&from, 1},
                                                         .out = {&to, 1},
                                                         .attrs = {&type, 1}})
                         : OT_NONE;
    if (n == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->nodes[n].is_static = g->values[to].is_const = is_constant(g, from);
    return OT_OK;
}

/* The node makes float32; a result of the graph keeps its type, in a Cast. wide: [values of the
 * file] what takes their place. */
static ot_status widen_results(ot_graph *g, ot_id id, ot_id *wide)
{
    for (uint32_t k = 0; k < g->nodes[id].n_out; k++) {
        const ot_id v = g->nodes[id].out[k];
        if (!is_half(g, v)) continue;
        g->nodes[id].proto = NULL;
        if (!g->values[v].is_output) {
            g->values[v].dtype = OT_F32;
            g->values[v].proto = NULL;
            continue;
        }
        wide[v] = new_value(g, v);
        if (wide[v] == OT_NONE) return ot_fail_nomem(g->model->diag);
        g->nodes[id].out[k] = wide[v];
        g->values[wide[v]].producer = id;
        g->values[wide[v]].out_index = k;
        OT_TRY(cast(g, wide[v], v));
    }
    return OT_OK;
}

static ot_status widen_operands(ot_graph *g, ot_id id, ot_id *wide)
{
    for (uint32_t k = 0; k < g->nodes[id].n_in; k++) {
        const ot_id v = g->nodes[id].in[k];
        if (!is_half(g, v)) continue;
        if (wide[v] == OT_NONE && is_constant(g, v)) OT_TRY(widen_constant(g, v, &wide[v]));
        if (wide[v] == OT_NONE) {
            wide[v] = new_value(g, v);
            if (wide[v] == OT_NONE) return ot_fail_nomem(g->model->diag);
            OT_TRY(cast(g, v, wide[v]));
        }
        g->nodes[id].in[k] = wide[v];
        g->nodes[id].proto = NULL;
    }
    return OT_OK;
}

/* A Cast to half precision stays in float32. */
static ot_status widen_cast(ot_graph *g, ot_id id)
{
    ot_node *n = &g->nodes[id];
    if (n->op != OT_OP_Cast || ot_attr_int(n, "to", 0) != OT_F16) return OT_OK;
    ot_attr *attrs = ot_memdup(g->model->arena, n->attrs, n->n_attrs * sizeof *attrs);
    if (!attrs) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (strcmp(attrs[k].name, "to") == 0) attrs[k] = ot_mk_int("to", OT_F32);
    n->attrs = attrs;
    n->proto = NULL;
    return OT_OK;
}

/* Whether all that read v read it as an operand: no body does. */
static bool is_read_plainly(const ot_graph *g, ot_id v)
{
    for (uint32_t k = 0; k < g->values[v].n_uses; k++) {
        const ot_node *n = &g->nodes[g->values[v].uses[k]];
        for (uint32_t j = 0; j < n->n_captured; j++)
            if (n->captured[j] == v) return false;
    }
    return !g->values[v].is_output;
}

ot_status ot_widen_drop_casts(ot_graph *g)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    for (uint32_t i = 0; i < g->n_order; i++) {
        const ot_id id = g->order[i];
        const ot_node *n = &g->nodes[id];
        if (n->op != OT_OP_Cast || n->is_static || ot_attr_int(n, "to", 0) != OT_F32 ||
            n->n_in != 1 || n->n_out != 1)
            continue;
        const ot_id from = n->in[0], to = n->out[0];
        if (g->values[from].dtype != OT_F32 || !is_read_plainly(g, to)) continue;
        for (uint32_t k = 0; k < g->values[to].n_uses; k++) {
            ot_node *reader = &g->nodes[g->values[to].uses[k]];
            for (uint32_t j = 0; j < reader->n_in; j++)
                if (reader->in[j] == to) reader->in[j] = from;
            reader->proto = NULL;
        }
        ot_node_remove(g, id);
    }
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

/* Constants of half precision that nobody reads any more are not written. Requires USES. */
static void drop_unread(ot_graph *g, const ot_id *wide, uint32_t n_values)
{
    for (ot_id v = 0; v < n_values; v++)
        if (wide[v] != OT_NONE && contents(g, v)) ot_value_drop_unread(g, v);
}

ot_status ot_widen(ot_graph *g, bool *changed)
{
    const ot_id n = g->n_nodes;
    const uint32_t n_values = g->n_values;
    *changed = false;
    if (g->model->weight_bytes > MOST_WEIGHTS || !gains(g)) return OT_OK;
    ot_id *wide = ot_alloc_n(g->model->arena, g->n_values + 1u, sizeof *wide);
    if (!wide) return ot_fail_nomem(g->model->diag);
    for (ot_id v = 0; v < g->n_values; v++) wide[v] = OT_NONE;
    for (ot_id k = 0; k < n; k++)
        if (takes_part(&g->nodes[k])) OT_TRY(widen_results(g, k, wide));
    for (ot_id k = 0; k < n; k++) {
        if (!takes_part(&g->nodes[k])) continue;
        OT_TRY(widen_operands(g, k, wide));
        OT_TRY(widen_cast(g, k));
    }
    *changed = true;
    ot_confirm(g, 0);
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    drop_unread(g, wide, n_values);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
