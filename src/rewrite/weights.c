/* Bringing what a body reads into the body.
 *
 * Runtimes prepack and fuse weights only when they are constants of the graph that uses them: a weight
 * captured from the enclosing graph costs a convolution its fast kernels. So initializers are moved
 * into the body (the tensor itself is shared until the model is written), and nodes that only make
 * constants (Constant, DequantizeLinear of a weight...) are copied along with what they read.
 * Activations, and initializers that the caller may override, are captured by name.
 *
 *     top    w --Dequantize--> W --.                 body   w' --Dequantize--> W' --.
 *            x -------------------Conv      =>              x (captured) ----------Conv
 */
#include "rewrite.h"

ot_status rw_capture(rw_region *w, rw_target *t, ot_id v, ot_id *out)
{
    const ot_value x = w->g->values[v];
    if ((*out = ot_value_find(t->g, x.name)) != OT_NONE) return OT_OK;
    *out = ot_value_new(t->g, x.name, x.dtype, x.rank, x.dims);
    if (*out == OT_NONE) return rw_nomem(w);
    t->g->values[*out].is_outer = true;
    t->g->values[*out].is_const = x.is_const;
    t->g->values[*out].known = x.known;
    t->g->values[*out].known_n = x.known_n;
    return OT_OK;
}

/* Contents that shape inference knows, as a tensor; NULL when the type is not one that it tracks. */
static ot_status known_tensor(rw_region *w, const ot_value *x, const ot_tensor **out)
{
    ot_arena *a = w->g->model->arena;
    size_t size = ot_dtype_bits(x->dtype) / 8;
    *out = NULL;
    if (x->dtype != OT_I64 && x->dtype != OT_I32 && x->dtype != OT_BOOL) return OT_OK;
    ot_tensor *t = OT_NEW(a, ot_tensor);
    char *data = ot_alloc(a, x->known_n * size + 1);
    int64_t *dims = ot_memdup(a, x->dims, (size_t)x->rank * sizeof *dims);
    if (!t || !data || !dims) return rw_nomem(w);
    for (uint32_t k = 0; k < x->known_n; k++) {
        int32_t narrow = (int32_t)x->known[k];
        if (size == 8)
            memcpy(data + k * size, &x->known[k], size);
        else if (size == 4)
            memcpy(data + k * size, &narrow, size);
        else
            data[k] = x->known[k] != 0;
    }
    *t = (ot_tensor){.dtype = x->dtype, .rank = (uint32_t)x->rank, .dims = dims, .data = data, .bytes = x->known_n * size};
    *out = t;
    return OT_OK;
}

/* A node that makes constants can be copied when it has no subgraphs. */
static bool can_copy(const ot_node *n)
{
    if (n->dead || n->n_captured) return false;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH) return false;
    return true;
}

static ot_status copy_node(rw_region *w, rw_target *t, ot_id id)
{
    const ot_node n = w->g->nodes[id];
    ot_id *in = OT_NEW_N(w->arena, ot_id, n.n_in), *out = OT_NEW_N(w->arena, ot_id, n.n_out);
    if (!in || !out) return rw_nomem(w);
    for (uint32_t k = 0; k < n.n_in; k++) in[k] = n.in[k] == OT_NONE ? OT_NONE : t->from_outer[n.in[k]];
    for (uint32_t k = 0; k < n.n_out; k++) {
        if ((out[k] = n.out[k]) == OT_NONE) continue;
        const ot_value v = w->g->values[n.out[k]];
        OT_TRY(rw_value(w, t, t->label, v.name, v.dtype, v.rank, v.dims, &out[k]));
        t->g->values[out[k]].is_const = true;
        t->g->values[out[k]].is_tensor = v.is_tensor;
        t->from_outer[n.out[k]] = out[k];
    }
    const char *name = rw_name(w, t->label, n.name[0] ? n.name : n.op_type);
    if (!name) return rw_nomem(w);
    ot_id copy = ot_node_new(t->g, n.op_type, n.domain, name, in, n.n_in, out, n.n_out, n.attrs, n.n_attrs);
    if (copy == OT_NONE) return rw_nomem(w);
    t->g->nodes[copy].version = n.version;
    t->g->nodes[copy].is_static = true;
    return OT_OK;
}

/* Bring v in when it needs no other value; otherwise *node is the producer to copy first. */
static ot_status use_leaf(rw_region *w, rw_target *t, ot_id v, ot_id *node)
{
    const ot_value x = w->g->values[v];
    ot_id *out = &t->from_outer[v];
    *node = OT_NONE;
    if (x.init && !x.overridable) return rw_const(w, t, x.name, x.init, out);
    if (x.known && !x.overridable && !x.is_input && x.rank >= 0) {
        const ot_tensor *k;
        OT_TRY(known_tensor(w, &x, &k));
        if (k) return rw_const(w, t, x.name, k, out);
    }
    if (x.is_const && x.producer != OT_NONE && can_copy(&w->g->nodes[x.producer])) {
        *node = x.producer;
        return OT_OK;
    }
    return rw_capture(w, t, v, out);
}

/* Read by name, but for small results of shape arithmetic: those are known here, and the nodes that make them can go. */
static ot_status use_captured(rw_region *w, rw_target *t, ot_id v, ot_id *out)
{
    const ot_value x = w->g->values[v];
    const ot_tensor *k = NULL;
    if (x.known && !x.init && !x.is_input && x.rank >= 0) OT_TRY(known_tensor(w, &x, &k));
    return k ? rw_const(w, t, x.name, k, out) : rw_capture(w, t, v, out);
}

ot_status rw_use(rw_region *w, rw_target *t, ot_id v, ot_id *out)
{
    ot_id *stack = NULL;
    uint32_t n = 0;
    size_t cap = 0;
    *out = v;
    if (!t->is_body) return OT_OK;
    if (v >= t->n_outer) return rw_capture(w, t, v, out); /* made by this stage */
    if (w->capture) return use_captured(w, t, v, out);
    if (!OT_PUSH(w->arena, stack, n, cap, v)) return rw_nomem(w);
    while (n > 0) { /* producers before readers, without recursion */
        ot_id top = stack[n - 1], node;
        uint32_t before = n;
        if (t->from_outer[top] != OT_NONE) {
            n--;
            continue;
        }
        OT_TRY(use_leaf(w, t, top, &node));
        if (node == OT_NONE) continue;
        const ot_node *p = &w->g->nodes[node];
        for (uint32_t k = 0; k < p->n_in; k++)
            if (p->in[k] != OT_NONE && t->from_outer[p->in[k]] == OT_NONE && !OT_PUSH(w->arena, stack, n, cap, p->in[k]))
                return rw_nomem(w);
        if (n == before) OT_TRY(copy_node(w, t, node));
    }
    *out = t->from_outer[v];
    return OT_OK;
}

/* ---- what a body must not capture ---- */

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
bool rw_captures_safe(const rw_region *w, const char **why)
{
    const ot_region *r = w->r;
    *why = "a loop would capture data that ONNX Runtime quantizes in another place";
    for (uint32_t k = 0; k < r->n_inputs; k++) {
        int32_t hops = hops_from_dequantize(w->g, r->values[k].value);
        bool cropped = false;
        for (uint32_t d = 0; d < r->n_dims; d++) cropped |= r->n_dims > 1 && r->values[k].axis[d] != OT_AX_WHOLE;
        if (hops > 0 || (hops == 0 && cropped) || (hops < 0 && moves_to_quantize(w->g, r->values[k].value, 0))) return false;
    }
    return true;
}
