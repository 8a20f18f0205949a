/* Weights that are packed when they are used. A runtime that packs weights when a model is
 * loaded, and keeps them as they are as well, holds all of them twice. What it cannot compute
 * before the model runs it packs when the kernel runs, in memory that other values take before
 * and after. So the weights go through a Gather, whose index is zero and is computed from an
 * input:
 *
 *                                                     false even if x is not a number
 *     x --> Reshape [-1] --> Gather (0) --> Less (., itself) --> Cast --> zero
 *     W --> Reshape [1, ...] --------------------> Gather (., zero) --> W, late --> Conv
 *
 * The Gather's extents are known, so that its result has a place like any other value's (a Slice
 * from zero on has none: 23 MB more for ResNet-50, 1024 x 1024). It stands right before the
 * first convolution that reads it.
 */
#include "transform.h"

#define SINCE  9 /* opset: Less takes integers */
#define N_ZERO 4 /* nodes that compute the zero */

typedef struct late {
    ot_graph *g;
    int64_t from;     /* bytes */
    uint32_t n_nodes; /* before */
} late;

static ot_status nomem(const ot_graph *g) { return ot_fail_nomem(g->model->diag); }

/* v is a large weight of convolutions, or of products with a bias, and nothing else. */
static bool is_weight(const late *x, ot_id v)
{
    const ot_value *w = &x->g->values[v];
    int64_t bytes;
    if (!w->init || w->overridable || w->is_output || w->producer != OT_NONE ||
        w->dtype != OT_F32 || w->rank < 2 || w->n_uses == 0 || !ot_value_bytes(w, &bytes) ||
        bytes < x->from)
        return false;
    for (uint32_t k = 0; k < w->n_uses; k++) {
        const ot_node *n = &x->g->nodes[w->uses[k]];
        if (n->op != OT_OP_Conv && n->op != OT_OP_ConvTranspose && n->op != OT_OP_Gemm)
            return false;
        for (uint32_t j = 0; j < n->n_in; j++)
            if ((n->in[j] == v) != (j == 1)) return false;
    }
    return true;
}

/* An input that a number can be read of; OT_NONE: there is none. */
static ot_id find_input(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        int64_t bytes;
        const bool number = v->dtype == OT_F32 || v->dtype == OT_I32 || v->dtype == OT_I64;
        if (!v->init && v->is_tensor && number && ot_value_bytes(v, &bytes) && bytes > 0)
            return g->inputs[k];
    }
    return OT_NONE;
}

/* The node, with one output; the names of both begin with def->name. */
static ot_status add_node(ot_graph *g, const ot_node_def *def, ot_tensor_type type, ot_id *out)
{
    ot_node_def own = *def;
    own.name = ot_fresh_name(g->model, def->name);
    own.out = (ot_id_list){out, 1};
    *out = own.name ? ot_value_new(g, own.name, type.dtype, type.rank, type.dims) : OT_NONE;
    return *out == OT_NONE || ot_node_new(g, &own) == OT_NONE ? nomem(g) : OT_OK;
}

/* A zero without axes that is computed from x. */
static ot_status write_zero(ot_graph *g, ot_id x, ot_id *zero)
{
    const ot_dtype type = g->values[x].dtype;
    const int64_t none = 0, flat = -1;
    const ot_attr to = ot_mk_int("to", OT_I64);
    int64_t n = 1;
    ot_id in[2] = {x}, at;
    for (int32_t d = 0; d < g->values[x].rank; d++) n *= g->values[x].dims[d];
    OT_TRY(ot_const_ints(g, "tile/late/flat", &flat, 1, &in[1]));
    OT_TRY(add_node(g, &(ot_node_def){.op = "Reshape", .name = "tile/late/input", .in = {in, 2}},
                    (ot_tensor_type){type, 1, &n}, &at));
    in[0] = at;
    OT_TRY(ot_const_ints(g, "tile/late/first", &none, -1, &in[1]));
    OT_TRY(add_node(g, &(ot_node_def){.op = "Gather", .name = "tile/late/number", .in = {in, 2}},
                    (ot_tensor_type){type, 0, NULL}, &at));
    in[0] = in[1] = at;
    OT_TRY(add_node(g, &(ot_node_def){.op = "Less", .name = "tile/late/false", .in = {in, 2}},
                    (ot_tensor_type){OT_BOOL, 0, NULL}, &at));
    return add_node(
        g,
        &(ot_node_def){.op = "Cast", .name = "tile/late/zero", .in = {&at, 1}, .attrs = {&to, 1}},
        (ot_tensor_type){OT_I64, 0, NULL}, zero);
}

/* Weight v, late, for all that read it. */
static ot_status write_late(const late *x, ot_id v, ot_id zero)
{
    ot_graph *g = x->g;
    const ot_value w = g->values[v];
    int64_t dims[OT_RANK_MAX + 1] = {1};
    ot_id in[2] = {v}, out;
    const char *label = ot_format(g->model->arena, "tile/late/%s", w.name);
    if (!label) return nomem(g);
    memcpy(dims + 1, w.dims, (size_t)w.rank * sizeof *dims);
    OT_TRY(ot_const_ints(g, "tile/late/shape", dims, w.rank + 1, &in[1]));
    OT_TRY(add_node(g, &(ot_node_def){.op = "Reshape", .name = label, .in = {in, 2}},
                    (ot_tensor_type){w.dtype, w.rank + 1, dims}, &out));
    g->values[out].is_const = true;
    g->nodes[g->values[out].producer].is_static = true;
    in[0] = out;
    in[1] = zero;
    OT_TRY(add_node(g, &(ot_node_def){.op = "Gather", .name = label, .in = {in, 2}}, ot_type_of(&w),
                    &out));
    for (uint32_t k = 0; k < w.n_uses; k++) {
        g->nodes[w.uses[k]].in[1] = out;
        g->nodes[w.uses[k]].proto = NULL;
    }
    return OT_OK;
}

/* The zero first, each weight right before the first node that reads it. */
static ot_status set_order(const late *x)
{
    ot_graph *g = x->g;
    const uint32_t n_order = g->n_order;
    uint32_t n = 0;
    ot_arena *a = ot_arena_new();
    ot_id *order = a ? OT_NEW_N(a, ot_id, n_order + 1u) : NULL;
    bool *placed = a ? OT_NEW_N(a, bool, g->n_nodes + 1u) : NULL;
    if (!order || !placed) {
        ot_arena_free(a);
        return nomem(g);
    }
    for (ot_id k = x->n_nodes; k < x->n_nodes + N_ZERO; k++) order[n++] = k;
    for (uint32_t k = 0; k < n_order; k++) {
        const ot_node *node = &g->nodes[g->order[k]];
        if (g->order[k] >= x->n_nodes) continue;
        const ot_id by = node->n_in > 1 && node->in[1] != OT_NONE ? g->values[node->in[1]].producer
                                                                  : OT_NONE;
        if (by != OT_NONE && by >= x->n_nodes && !placed[by]) {
            placed[by] = true;
            order[n++] = by - 1; /* its Reshape was made right before */
            order[n++] = by;
        }
        order[n++] = g->order[k];
    }
    memcpy(g->order, order, n_order * sizeof *order);
    ot_arena_free(a);
    return ot_take_order(g);
}

/* requires ORDER, USES, SHAPES; keeps them. */
ot_status ot_defer_packing(ot_graph *g, int64_t from, int64_t *packed)
{
    late x = {.g = g, .from = from};
    ot_id zero = OT_NONE;
    *packed = 0;
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    const ot_id input = find_input(g);
    if (g->model->opset < SINCE || input == OT_NONE) return OT_OK;
    x.n_nodes = g->n_nodes;
    const uint32_t n_values = g->n_values;
    for (ot_id v = 0; v < n_values; v++) {
        if (!is_weight(&x, v)) continue;
        int64_t bytes = 0;
        if (ot_value_bytes(&g->values[v], &bytes)) *packed += bytes * g->values[v].n_uses;
        if (zero == OT_NONE) OT_TRY(write_zero(g, input, &zero));
        OT_TRY(write_late(&x, v, zero));
    }
    if (zero == OT_NONE) return OT_OK;
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    return set_order(&x);
}
