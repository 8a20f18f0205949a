/* What a graph says of float32 values between quantized tensors. */
#include "fusion.h"

bool ot_value_is_dequantized(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return x->producer != OT_NONE && g->nodes[x->producer].op == OT_OP_DequantizeLinear;
}

bool ot_value_is_quantized(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    for (uint32_t u = 0; u < x->n_uses; u++) {
        const ot_node *n = &g->nodes[x->uses[u]];
        if (n->op == OT_OP_QuantizeLinear && n->n_in > 0 && n->in[0] == v) return true;
    }
    return false;
}

bool ot_value_beside_quantizer(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    if (x->dtype != OT_F32 || x->is_output || x->is_input || x->producer == OT_NONE) return false;
    if (ot_value_is_dequantized(g, v)) return true;
    if (x->n_uses == 0) return false;
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (g->nodes[x->uses[u]].op != OT_OP_QuantizeLinear) return false;
    return true;
}
