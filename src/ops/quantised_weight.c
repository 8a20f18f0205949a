/* Products whose weight is a constant of few bits.
 *
 *     wq (int4) --> DequantizeLinear --> MatMul          one reader each: a runtime multiplies by
 *     scale ----->-'  x ------------>-'                  wq (MatMulNBits), and rounds as it pleases
 *
 * Where two nodes read wq, the scale or what DequantizeLinear makes, the product is one of floats.
 * So it is before a Relu or Clip that alone reads it and is read once itself, by a node: the
 * runtime looks for the QuantizeLinear of a product of 8 bits behind those. Which of the two it is
 * decides the last digits, so a tiled model has to leave it as it was.
 */
#include "ops.h"

bool ot_is_quantised_weight(const ot_graph *g, ot_id v)
{
    if (v == OT_NONE || g->values[v].producer == OT_NONE || !g->values[v].is_const) return false;
    const ot_node *made = &g->nodes[g->values[v].producer];
    if (made->op != OT_OP_DequantizeLinear || made->n_in == 0 || made->in[0] == OT_NONE)
        return false;
    switch (g->values[made->in[0]].dtype) {
    case OT_I8:
    case OT_U8:
    case OT_I4:
    case OT_U4:
    case OT_I2:
    case OT_U2: return true;
    default: return false;
    }
}

static bool limits(ot_op op) { return op == OT_OP_Relu || op == OT_OP_Clip; }

/* How often v is read, 2 at most; the graph's result counts as read often. */
static uint32_t times_read(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    if (x->is_output || x->n_uses != 1) return x->n_uses == 0 && !x->is_output ? 0 : 2;
    const ot_node *by = &g->nodes[x->uses[0]];
    uint32_t n = 0;
    for (uint32_t k = 0; k < by->n_in; k++) n += by->in[k] == v;
    return n == 1 ? 1 : 2;
}

/* What reads n's result alone is a Relu or Clip that is read once. */
static bool is_limited(const ot_graph *g, const ot_node *n)
{
    const ot_value *made = &g->values[n->out[0]];
    if (made->n_uses != 1) return false;
    const ot_node *by = &g->nodes[made->uses[0]];
    return limits(by->op) && by->in[0] == n->out[0] && times_read(g, by->out[0]) == 1;
}

bool ot_quantised_weight_alone(const ot_graph *g, ot_id v)
{
    if (!ot_is_quantised_weight(g, v) || g->values[v].n_uses != 1) return false;
    const ot_node *by = &g->nodes[g->values[v].uses[0]];
    if (ot_is_quantised_product(g, by) && is_limited(g, by)) return false;
    const ot_node *made = &g->nodes[g->values[v].producer];
    for (uint32_t k = 0; k < made->n_in; k++)
        if (made->in[k] != OT_NONE && g->values[made->in[k]].n_uses != 1) return false;
    return true;
}

bool ot_is_quantised_product(const ot_graph *g, const ot_node *n)
{
    if ((n->op != OT_OP_MatMul && n->op != OT_OP_Gemm) || n->n_in < 2 || n->in[0] == OT_NONE ||
        !ot_is_quantised_weight(g, n->in[1]))
        return false;
    const ot_id left = g->values[n->in[0]].producer;
    return left == OT_NONE || g->nodes[left].op != OT_OP_DequantizeLinear; /* one of 8 bits */
}

bool ot_limits_quantised(const ot_graph *g, const ot_node *n)
{
    if (!limits(n->op) || !(g->props & OT_P_USES) || n->n_in == 0 || n->in[0] == OT_NONE)
        return false;
    const ot_id by = g->values[n->in[0]].producer;
    return by != OT_NONE && ot_is_quantised_product(g, &g->nodes[by]) &&
           ot_quantised_weight_alone(g, g->nodes[by].in[1]);
}

bool ot_is_half_quantised(const ot_graph *g, const ot_node *n)
{
    if ((n->op != OT_OP_MatMul && n->op != OT_OP_Gemm) || !(g->props & OT_P_USES) ||
        n->n_out == 0 || n->out[0] == OT_NONE)
        return false;
    const ot_dtype t = g->values[n->out[0]].dtype;
    return t != OT_F32 && t != OT_F64 && ot_is_quantised_product(g, n) &&
           ot_quantised_weight_alone(g, n->in[1]);
}

bool ot_has_half_quantised(const ot_graph *g)
{
    for (ot_id k = 0; k < g->n_nodes; k++)
        if (!g->nodes[k].dead && ot_is_half_quantised(g, &g->nodes[k])) return true;
    return false;
}
