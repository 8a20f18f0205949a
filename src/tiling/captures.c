/* What a loop's body holds of its own and what it captures; and what it must not capture: quirks
 * of runtimes that look into bodies as if they were no graphs of their own. */
#include "forms.h"

#include "ops/quirks.h"

/* A node that makes constants can be copied when it has no subgraphs. */
static bool can_copy(const ot_node *n)
{
    if (n->dead || n->n_captured) return false;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH) return false;
    return true;
}

ot_body_source ot_body_source_of(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    const bool known =
        x->known ? x->dtype == OT_I64 || x->dtype == OT_I32 || x->dtype == OT_BOOL
                 : x->known_floats &&
                       !x->is_const; /* weights of Constant nodes are copied with their nodes */
    if (x->init && x->is_unpacked) return OT_BODY_CAPTURE;
    if (x->init && !x->overridable) return OT_BODY_INIT;
    /* a copy with one reader would become part of the product (ops/quantised_weight.c) */
    if (ot_is_quantised_weight(g, v) && !ot_quantised_weight_alone(g, v)) return OT_BODY_CAPTURE;
    if (known && !x->overridable && !x->is_input && x->rank >= 0) return OT_BODY_KNOWN;
    if (x->is_const && x->producer != OT_NONE && can_copy(&g->nodes[x->producer]))
        return OT_BODY_COPY;
    return OT_BODY_CAPTURE;
}

/* Whether value v, with all that nodes to be copied read, ends up in the body. seen: [n_values]. */
static ot_status owned(const ot_form_tiles *t, ot_id v, bool *seen, bool *owns)
{
    ot_id *stack = NULL;
    uint32_t n = 0;
    size_t cap = 0;
    if (!OT_PUSH(t->arena, stack, n, cap, v)) return ot_fail_nomem(t->g->model->diag);
    while (n > 0 && *owns) {
        ot_id x = stack[--n];
        if (seen[x]) continue;
        seen[x] = true;
        ot_body_source from = ot_body_source_of(t->g, x);
        *owns = from != OT_BODY_CAPTURE;
        if (from != OT_BODY_COPY) continue;
        const ot_node *p = &t->g->nodes[t->g->values[x].producer];
        for (uint32_t k = 0; k < p->n_in; k++)
            if (p->in[k] != OT_NONE && !OT_PUSH(t->arena, stack, n, cap, p->in[k]))
                return ot_fail_nomem(t->g->model->diag);
    }
    return OT_OK;
}

ot_status ot_body_owns_constants(const ot_form_tiles *t, bool *owns)
{
    bool *seen = OT_NEW_N(t->arena, bool, t->g->n_values);
    if (!seen) return ot_fail_nomem(t->g->model->diag);
    *owns = true;
    for (uint32_t i = 0; i < t->r->n_nodes && *owns; i++) {
        const ot_node *n = &t->g->nodes[t->r->nodes[i].node];
        for (uint32_t j = 0; j < n->n_in && *owns; j++)
            if (t->r->nodes[i].in[j] == OT_NONE && n->in[j] != OT_NONE)
                OT_TRY(owned(t, n->in[j], seen, owns));
    }
    return OT_OK;
}

/* Operators through which ONNX Runtime moves a DequantizeLinear towards its readers. */
static bool moves_quantized(ot_op op)
{
    return op == OT_OP_Transpose || op == OT_OP_Reshape || op == OT_OP_Squeeze ||
           op == OT_OP_Unsqueeze || op == OT_OP_Slice || op == OT_OP_MaxPool;
}

/* Nodes between v and the DequantizeLinear that it is moved from; -1: it comes from none. */
static int32_t hops_from_dequantize(const ot_graph *g, ot_id v)
{
    for (int32_t hops = 0; hops < 64; hops++) {
        const ot_node *n = g->values[v].producer == OT_NONE ? NULL
                                                            : &g->nodes[g->values[v].producer];
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
        if (!moves_quantized(n->op) || n->n_in == 0 || n->in[0] != v || n->n_out == 0 ||
            n->out[0] == OT_NONE)
            continue;
        if (depth >= 8 || moves_to_quantize(g, n->out[0], depth + 1)) return true;
    }
    return false;
}

/* ONNX Runtime's propagation of quantization does not know that a body captures a value:
 *   DequantizeLinear --> Transpose --> v     it follows the edge as if v were an operand of the
 *                                            Loop, and crashes on loading
 *   v --> Transpose --> QuantizeLinear       it quantizes v itself, for the body, too
 * A Slice written before the loop is a Transpose in this. */
bool ot_captures_safe(const ot_graph *g, const ot_region *r, ot_why *why)
{
    *why = OT_WHY_CAPTURED_QUANT;
    if (!ot_quirk_concerns(OT_QUIRK_QUANT_CAPTURE, OT_BY_ALL)) return true;
    for (uint32_t k = 0; k < r->n_inputs; k++) {
        int32_t hops = hops_from_dequantize(g, r->values[k].value);
        bool cropped = false;
        for (uint32_t d = 0; d < r->n_dims; d++)
            cropped |= r->n_dims > 1 && r->values[k].axis[d] != OT_AX_WHOLE;
        if (hops > 0 || (hops == 0 && cropped) ||
            (hops < 0 && g->quantizes && moves_to_quantize(g, r->values[k].value, 0)))
            return false;
    }
    return true;
}
