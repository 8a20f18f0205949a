/* What ONNX Runtime runs on 8-bit tensors: an operator whose operands come from DequantizeLinear,
 * and whose result goes to QuantizeLinear.
 *
 *   xq --DequantizeLinear--> Conv --> Relu --> QuantizeLinear --> yq        QLinearConv
 *   wq --DequantizeLinear----'
 *   xq --DequantizeLinear--> MatMul --> y                                  MatMulIntegerToFloat
 *
 * DequantizeLinear is run for other readers alone; what lies before QuantizeLinear is what that
 * makes. ConvTranspose, Pad, normalizations and most element-wise operators have no such kernel:
 * they run in float32, and so do all where anybody else reads the result.
 */
#include "fusion.h"

/* How many operands, from the first, must be dequantized; 0: there is no kernel. */
static uint32_t operands_of(const ot_node *n)
{
    switch ((int)n->op) {
    case OT_OP_Conv:
    case OT_OP_MatMul:
    case OT_OP_Gemm:
    case OT_OP_Add:
    case OT_OP_Mul: return 2;
    case OT_OP_Concat: return n->n_in;
    case OT_OP_Sigmoid:
    case OT_OP_LeakyRelu:
    case OT_OP_Softmax:
    case OT_OP_AveragePool:
    case OT_OP_GlobalAveragePool:
    case OT_OP_MaxPool:
    case OT_OP_Resize:
    case OT_OP_Reshape:
    case OT_OP_Transpose:
    case OT_OP_Squeeze:
    case OT_OP_Unsqueeze:
    case OT_OP_Flatten:
    case OT_OP_Gather:
    case OT_OP_Slice:
    case OT_OP_Split:
    case OT_OP_Expand: return 1;
    default: return 0;
    }
}

ot_id ot_dequantized_from(const ot_graph *g, ot_id v)
{
    const ot_id by = v == OT_NONE ? OT_NONE : g->values[v].producer;
    const ot_node *n = by == OT_NONE ? NULL : &g->nodes[by];
    if (!n || n->op != OT_OP_DequantizeLinear || n->n_in == 0 || n->in[0] == OT_NONE ||
        ot_dtype_bits(g->values[n->in[0]].dtype) > 8)
        return OT_NONE;
    return n->in[0];
}

/* The node that alone reads v, as its first operand; NULL. */
static const ot_node *first_reader(const ot_graph *g, ot_id v)
{
    const ot_id by = ot_value_only_reader(g, v);
    const ot_node *n = by == OT_NONE ? NULL : &g->nodes[by];
    return n && n->n_in > 0 && n->in[0] == v && n->n_out > 0 && n->out[0] != OT_NONE ? n : NULL;
}

static bool quantizes(const ot_graph *g, const ot_node *n)
{
    return n && n->op == OT_OP_QuantizeLinear && ot_dtype_bits(g->values[n->out[0]].dtype) == 8;
}

/* What quantizes v, perhaps behind one limit; v and what lies between have 8 bits then. */
static bool is_quantized(const ot_graph *g, ot_id v, bool limited, ot_on_bytes *x)
{
    const ot_node *n = first_reader(g, v), *limit = NULL;
    if (limited && n && (n->op == OT_OP_Relu || n->op == OT_OP_Clip)) {
        limit = n;
        n = first_reader(g, n->out[0]);
    }
    if (!quantizes(g, n)) return false;
    x->names[n - g->nodes] = true;
    if (limit) x->names[limit - g->nodes] = x->values[limit->out[0]] = true;
    return true;
}

static void look_at(const ot_graph *g, ot_id id, ot_on_bytes *x)
{
    const ot_node *n = &g->nodes[id];
    const uint32_t operands = operands_of(n);
    const bool product = n->op == OT_OP_MatMul || n->op == OT_OP_Gemm;
    if (operands == 0 || n->n_in < operands || n->is_static) return;
    for (uint32_t k = 0; k < operands; k++)
        if (ot_dequantized_from(g, n->in[k]) == OT_NONE) return;
    bool all = n->n_out > 0;
    for (uint32_t k = 0; k < n->n_out; k++)
        all = all && n->out[k] != OT_NONE &&
              (n->n_out == 1 || quantizes(g, first_reader(g, n->out[k])));
    for (uint32_t k = 0; all && k < n->n_out; k++) {
        const bool is = is_quantized(g, n->out[k], n->op == OT_OP_Conv, x);
        x->values[n->out[k]] = is;
        all = is;
    }
    x->nodes[id] = all || (product && n->n_out == 1);
}

/* Nobody reads what DequantizeLinear n makes but kernels that read what it is made of. */
static bool is_gone(const ot_graph *g, const ot_node *n, const ot_on_bytes *x)
{
    if (ot_dequantized_from(g, n->out[0]) == OT_NONE || g->values[n->out[0]].is_output)
        return false;
    const ot_value *v = &g->values[n->out[0]];
    for (uint32_t u = 0; u < v->n_uses; u++)
        if (!x->nodes[v->uses[u]]) return false;
    return v->n_uses > 0;
}

ot_status ot_onnxruntime_on_bytes(const ot_graph *g, bool fuses, ot_arena *a, ot_on_bytes *x)
{
    bool any = false;
    *x = (ot_on_bytes){OT_NEW_N(a, bool, g->n_nodes + 1u), OT_NEW_N(a, bool, g->n_nodes + 1u),
                       OT_NEW_N(a, bool, g->n_nodes + 1u), OT_NEW_N(a, bool, g->n_values + 1u)};
    if (!x->nodes || !x->names || !x->gone || !x->values) return OT_E_NOMEM;
    for (uint32_t k = 0; fuses && k < g->n_order && !any; k++)
        any = g->nodes[g->order[k]].op == OT_OP_DequantizeLinear;
    for (uint32_t k = 0; any && k < g->n_order; k++) look_at(g, g->order[k], x);
    for (uint32_t k = 0; any && k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->op == OT_OP_DequantizeLinear && n->n_out > 0 && n->out[0] != OT_NONE)
            x->gone[g->order[k]] = is_gone(g, n, x);
    }
    return OT_OK;
}
