/* What a loop's body must not capture: quirks of runtimes that look into bodies as if they were no graphs of their own. */
#include "forms.h"

#include "analyse/quirks.h"

/* Operators through which ONNX Runtime moves a DequantizeLinear towards its readers. */
static bool moves_quantized(ot_op op)
{
    return op == OT_OP_Transpose || op == OT_OP_Reshape || op == OT_OP_Squeeze || op == OT_OP_Unsqueeze || op == OT_OP_Slice ||
           op == OT_OP_MaxPool;
}

/* Nodes between v and the DequantizeLinear that it is moved from; -1: it comes from none. */
static int32_t hops_from_dequantize(const ot_graph *g, ot_id v)
{
    for (int32_t hops = 0; hops < 64; hops++) {
        const ot_node *n = g->values[v].producer == OT_NONE ? NULL : &g->nodes[g->values[v].producer];
        if (n && n->op == OT_OP_DequantizeLinear) return hops;
        if (!n || !moves_quantized(n->op) || n->n_in == 0 || n->in[0] == OT_NONE) return -1;
        v = n->in[0];
    }
    return 64; /* too long to tell: the careful answer */
}

/* A reader of v moves data towards a QuantizeLinear. */
static bool moves_to_quantize(const ot_graph *g, ot_id v, uint32_t depth)
{
    for (uint32_t u = 0; u < g->values[v].n_uses; u++) {
        const ot_node *n = &g->nodes[g->values[v].uses[u]];
        if (n->op == OT_OP_QuantizeLinear && depth > 0) return true;
        if (!moves_quantized(n->op) || n->n_in == 0 || n->in[0] != v || n->n_out == 0 || n->out[0] == OT_NONE) continue;
        if (depth >= 8 || moves_to_quantize(g, n->out[0], depth + 1)) return true;
    }
    return false;
}

/* ONNX Runtime's propagation of quantization does not know that a body captures a value:
 *   DequantizeLinear --> Transpose --> v     it follows the edge as if v were an operand of the Loop, and crashes on loading
 *   v --> Transpose --> QuantizeLinear       it quantizes v itself, for the body, too
 * A Slice written before the loop is a Transpose in this. */
bool ot_captures_safe(const ot_graph *g, const ot_region *r, ot_why *why)
{
    *why = OT_WHY_CAPTURED_QUANT;
    if (!ot_quirk_concerns(OT_QUIRK_QUANT_CAPTURE, OT_BY_ALL)) return true;
    for (uint32_t k = 0; k < r->n_inputs; k++) {
        int32_t hops = hops_from_dequantize(g, r->values[k].value);
        bool cropped = false;
        for (uint32_t d = 0; d < r->n_dims; d++) cropped |= r->n_dims > 1 && r->values[k].axis[d] != OT_AX_WHOLE;
        if (hops > 0 || (hops == 0 && cropped) || (hops < 0 && moves_to_quantize(g, r->values[k].value, 0))) return false;
    }
    return true;
}
