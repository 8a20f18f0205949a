/* Products whose weight is a constant of few bits.
 *
 *     wq (int4) --> DequantizeLinear --> MatMul          one reader each: a runtime multiplies by
 *     scale ----->-'  x ------------>-'                  wq (MatMulNBits), and rounds as it pleases
 *
 * Where two nodes read wq, the scale or what DequantizeLinear makes, the product is one of floats.
 * Which of the two it is decides the last digits, so a tiled model has to leave it as it was.
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

bool ot_quantised_weight_alone(const ot_graph *g, ot_id v)
{
    if (!ot_is_quantised_weight(g, v) || g->values[v].n_uses != 1) return false;
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
