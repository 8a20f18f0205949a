/* Cost model, quantized networks in the engine: what stands between two 8-bit tensors is one step (engine/lower/fuse_qconv.c and others).
 *
 *   xq --DequantizeLinear--> Conv, MatMul, Add, MaxPool ... --QuantizeLinear--> yq
 *      `- costs nothing -'  `------- float32 values are never stored ---------'
 *
 * The values inside have no bytes, QuantizeLinear belongs to the group of what it quantizes, and no region begins or ends between
 * a DequantizeLinear and its readers, or before a QuantizeLinear: what is stored between regions is the 8-bit tensor.
 */
#include "cost.h"

static const ot_node *node_at(const ot_seq *s, uint32_t p) { return &s->g->nodes[s->node[p]]; }

static bool is_byte(const ot_graph *g, ot_id v)
{
    return v != OT_NONE && (g->values[v].dtype == OT_U8 || g->values[v].dtype == OT_I8);
}

static bool is_elementwise(const ot_node *n) { return ot_op_access(n->op) == OT_ACC_POINTWISE; }

/* Products and pools. */
static bool is_sum(const ot_node *n)
{
    ot_op op = n->op;
    return op == OT_OP_Conv || op == OT_OP_MatMul || op == OT_OP_Gemm || op == OT_OP_AveragePool || op == OT_OP_GlobalAveragePool;
}

/* The only reader of v is a QuantizeLinear. */
static bool is_quantized(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return v != OT_NONE && x->dtype == OT_F32 && !x->is_output && x->n_uses == 1 &&
           g->nodes[x->uses[0]].op == OT_OP_QuantizeLinear && g->nodes[x->uses[0]].in[0] == v;
}

/* Runs on bytes when all it reads is quantized and its result is quantized, too. */
static bool moves_bytes(const ot_graph *g, const ot_node *n)
{
    switch ((int)n->op) {
    case OT_OP_MaxPool:
    case OT_OP_GlobalMaxPool:
    case OT_OP_Concat:
    case OT_OP_Transpose:
    case OT_OP_Slice:
    case OT_OP_Resize:
    case OT_OP_Upsample:
    case OT_OP_DepthToSpace:
    case OT_OP_SpaceToDepth:
    case OT_OP_Reshape:
    case OT_OP_Flatten:
    case OT_OP_Squeeze:
    case OT_OP_Unsqueeze: return n->n_out > 0 && n->out[0] != OT_NONE && is_quantized(g, n->out[0]);
    default: return false;
    }
}

/* Constant scale and zero point of one element, an 8-bit and a float32 tensor. */
static bool is_quantizer(const ot_seq *s, const ot_node *n)
{
    ot_id bytes = n->op == OT_OP_DequantizeLinear ? n->in[0] : n->out[0];
    if (n->n_in < 2 || n->in[0] == OT_NONE || n->in[1] == OT_NONE || n->out[0] == OT_NONE || !is_byte(s->g, bytes)) return false;
    return !s->act[n->in[1]] && s->elems[n->in[1]] == 1 && (n->n_in < 3 || n->in[2] == OT_NONE || !s->act[n->in[2]]);
}

/* No cut between the maker of v and its last reader. */
static void keep_together(ot_seq *s, ot_id v)
{
    s->bytes[v] = 0;
    for (uint32_t b = s->def[v] + 1; s->last[v] != OT_NONE && b <= s->last[v] && b <= s->n; b++) s->inside[b] = true;
}

static void dequantize(ot_seq *s, uint32_t p)
{
    const ot_graph *g = s->g;
    const ot_node *n = node_at(s, p);
    if (!is_quantizer(s, n) || !s->act[n->in[0]]) return;
    const ot_value *x = &g->values[n->out[0]];
    if (x->is_output || x->n_uses == 0) return;
    for (uint32_t u = 0; u < x->n_uses; u++) {
        const ot_node *r = &g->nodes[x->uses[u]];
        bool known = is_elementwise(r) || is_sum(r) || moves_bytes(g, r) || r->op == OT_OP_QuantizeLinear;
        if (!known || s->pos[x->uses[u]] == OT_NONE) return;
    }
    keep_together(s, n->out[0]);
    s->fused[p] = true;
}

static void quantize(ot_seq *s, uint32_t p)
{
    const ot_node *n = node_at(s, p);
    ot_id v = n->in[0];
    if (!is_quantizer(s, n) || !is_quantized(s->g, v) || s->def[v] == OT_NONE) return;
    uint32_t q = s->def[v];
    const ot_node *m = node_at(s, q);
    bool on_bytes = ot_cost_on_bytes(s->g, m);
    if (!is_elementwise(m) && m->op != OT_OP_DequantizeLinear && !on_bytes) return;
    keep_together(s, v);
    s->fused[p] = true;
    s->head[p] = s->head[q];
}

bool ot_cost_on_bytes(const ot_graph *g, const ot_node *n)
{
    if ((!is_sum(n) && !moves_bytes(g, n)) || n->n_in < 1 || n->in[0] == OT_NONE) return false;
    const ot_value *x = &g->values[n->in[0]];
    return x->producer != OT_NONE && g->nodes[x->producer].op == OT_OP_DequantizeLinear && is_byte(g, g->nodes[x->producer].in[0]);
}

void ot_cost_quant_fill(ot_seq *s, const ot_target *t)
{
    if (!t->runtime->one_pass) return;
    for (uint32_t p = 0; p < s->n; p++) {
        const ot_node *n = node_at(s, p);
        if (n->n_in < 1 || n->n_out < 1) continue;
        if (n->op == OT_OP_DequantizeLinear)
            dequantize(s, p);
        else if (n->op == OT_OP_QuantizeLinear)
            quantize(s, p);
        if (!ot_cost_on_bytes(s->g, n) || n->out[0] == OT_NONE) continue;
        s->wino_room[p] = -1;
        s->blocked[n->out[0]] = false;
    }
}
