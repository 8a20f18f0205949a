/* Bringing what a body reads into the body.
 *
 * Some runtimes prepack and fuse weights only when they are constants of the graph that uses
 * them: a weight captured from the enclosing graph costs a convolution its fast kernels. So
 * initializers are moved into the body (the tensor itself is shared until the model is written),
 * and nodes that only make constants (Constant, DequantizeLinear of a weight...) are copied
 * along with what they read. ONNX Runtime holds the initializers of a body once more as the
 * bytes of the file, at each level (ResNet-50 in a Loop: 221 MB loaded, 109 with its weights in
 * the top graph, 108 untiled). There, large ones are captured, and a Reshape to what they are,
 * which is computed when the model is loaded, makes constants of the body of them; those of types
 * that Reshape does not take are moved all the same; where weights are in a file beside the model,
 * bodies refer to it, and there are no such bytes. Weights of matrix products are captured as they
 * are: of a body's own it holds the packed copy and the pages of the file; in a loop of a branch
 * it packs none that are captured, and reads them where they are (DINOv2: 211 MB,
 * 159 this way). Activations, and initializers that the caller may override, are captured by name.
 *
 *     top    w --Dequantize--> W --.                 body   w' --Dequantize--> W' --.
 *            x -------------------Conv      =>              x (captured) ----------Conv
 */
#include "tiling/reassemble_types.h"
#include "transform_internal.h"

ot_status rw_capture(rw_region *w, rw_target *t, ot_id v, ot_id *out)
{
    const ot_value x = w->g->values[v];
    if ((*out = ot_value_find(t->g, x.name)) != OT_NONE) return OT_OK;
    *out = ot_value_new(t->g, x.name, x.dtype, x.rank, x.dims);
    if (*out == OT_NONE) return rw_nomem(w);
    t->g->values[*out].is_outer = true;
    t->g->values[*out].is_const = x.is_const && !x.is_unpacked;
    t->g->values[*out].known = x.known;
    t->g->values[*out].known_floats = x.known_floats;
    t->g->values[*out].known_n = x.known_n;
    return OT_OK;
}

/* Where value v of the enclosing graph is found in the body; OT_NONE: nowhere yet. */
static ot_id found_at(const rw_region *w, const rw_target *t, ot_id v)
{
    return ot_map_get(t->from_outer, w->g->values[v].name);
}

static ot_status note_found(rw_region *w, rw_target *t, ot_id v, ot_id at)
{
    return ot_map_put(t->from_outer, w->g->values[v].name, at) ? OT_OK : rw_nomem(w);
}

static ot_status copy_node(rw_region *w, rw_target *t, ot_id id)
{
    const ot_node n = w->g->nodes[id];
    ot_id *in = OT_NEW_N(w->arena, ot_id, n.n_in), *out = OT_NEW_N(w->arena, ot_id, n.n_out);
    if (!in || !out) return rw_nomem(w);
    for (uint32_t k = 0; k < n.n_in; k++)
        in[k] = n.in[k] == OT_NONE ? OT_NONE : found_at(w, t, n.in[k]);
    for (uint32_t k = 0; k < n.n_out; k++) {
        if ((out[k] = n.out[k]) == OT_NONE) continue;
        const ot_value v = w->g->values[n.out[k]];
        OT_TRY(rw_value(w, t, t->label, v.name, ot_type_of(&v), &out[k]));
        t->g->values[out[k]].is_const = true;
        t->g->values[out[k]].is_tensor = v.is_tensor;
        OT_TRY(note_found(w, t, n.out[k], out[k]));
    }
    const char *name = rw_name(w, t->label, n.name[0] ? n.name : n.op_type);
    if (!name) return rw_nomem(w);
    ot_id copy = ot_node_new(t->g, &(ot_node_def){.op = n.op_type,
                                                  .domain = n.domain,
                                                  .name = name,
                                                  .in = {in, n.n_in},
                                                  .out = {out, n.n_out},
                                                  .attrs = {n.attrs, n.n_attrs}});
    if (copy == OT_NONE) return rw_nomem(w);
    t->g->nodes[copy].version = n.version;
    t->g->nodes[copy].is_static = true;
    return OT_OK;
}

bool rw_stays_outer(const ot_model *m, const ot_tensor *weight)
{
    return weight->bytes >= OT_OUTER_WEIGHT &&
           ot_reassemble_takes(OT_REASSEMBLE_RESHAPE, weight->dtype, m->opset);
}

bool rw_packs_captured(const ot_graph *g, const ot_node *n, uint32_t k)
{
    return k == 1 && (n->op == OT_OP_MatMul || n->op == OT_OP_Gemm) &&
           g->values[n->in[k]].rank == 2;
}

/* All that reads v multiplies by it. */
static bool is_multiplied(const ot_graph *g, ot_id v)
{
    for (uint32_t k = 0; k < g->values[v].n_uses; k++) {
        const ot_node *n = &g->nodes[g->values[v].uses[k]];
        bool reads = false;
        for (uint32_t j = 0; j < n->n_in; j++) {
            if (n->in[j] != v) continue;
            if (!rw_packs_captured(g, n, j)) return false;
            reads = true;
        }
        if (!reads && n->n_captured == 0) return false;
    }
    return true;
}

/* Bodies capture initializer v as it is. */
static bool is_captured_product(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return x->init && !x->overridable && rw_stays_outer(g->model, x->init) && is_multiplied(g, v);
}

int64_t ot_captured_product(const ot_graph *g, const ot_node *n)
{
    const ot_id w = n->n_in > 1 ? n->in[1] : OT_NONE;
    return w != OT_NONE && rw_packs_captured(g, n, 1) && is_captured_product(g, w)
               ? (int64_t)g->values[w].init->bytes
               : 0;
}

/* Captured, and a constant of the body all the same. */
static ot_status use_weight(rw_region *w, rw_target *t, ot_id v)
{
    const ot_value x = w->g->values[v];
    ot_id in[2], out = OT_NONE;
    OT_TRY(rw_capture(w, t, v, &in[0]));
    OT_TRY(rw_const_i64(w, t, "shape", x.dims, (size_t)x.rank, false, &in[1]));
    OT_TRY(rw_op(w, t, t->label, &(ot_node_def){.op = "Reshape", .name = x.name, .in = {in, 2}},
                 ot_type_of(&x), &out));
    t->g->values[out].is_const = true;
    t->g->nodes[t->g->values[out].producer].is_static = true;
    return note_found(w, t, v, out);
}

/* Bring v in when it needs no other value; otherwise *node is the producer to copy first. */
static ot_status use_leaf(rw_region *w, rw_target *t, ot_id v, ot_id *node)
{
    const ot_value x = w->g->values[v];
    const ot_tensor *contents = x.init;
    ot_id out = OT_NONE;
    *node = OT_NONE;
    switch (ot_body_source_of(w->g, v)) {
    case OT_BODY_COPY: *node = x.producer; return OT_OK;
    case OT_BODY_CAPTURE: OT_TRY(rw_capture(w, t, v, &out)); return note_found(w, t, v, out);
    case OT_BODY_KNOWN:
        if (!(contents = ot_known_tensor(w->g->model->arena, &x))) return rw_nomem(w);
        break;
    case OT_BODY_INIT:
        if ((w->outer_weights || w->g->model->data_file) && is_captured_product(w->g, v)) {
            OT_TRY(rw_capture(w, t, v, &out));
            return note_found(w, t, v, out);
        }
        if (w->outer_weights && rw_stays_outer(w->g->model, contents)) return use_weight(w, t, v);
        break;
    }
    OT_TRY(rw_const(w, t, x.name, contents, &out));
    return note_found(w, t, v, out);
}

/* Read by name, but for small results of shape arithmetic: those are known here, and the nodes
 * that make them can go. */
static ot_status use_captured(rw_region *w, rw_target *t, ot_id v, ot_id *out)
{
    const ot_value x = w->g->values[v];
    if (ot_body_source_of(w->g, v) != OT_BODY_KNOWN) return rw_capture(w, t, v, out);
    const ot_tensor *k = ot_known_tensor(w->g->model->arena, &x);
    return k ? rw_const(w, t, x.name, k, out) : rw_nomem(w);
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
        if (found_at(w, t, top) != OT_NONE) {
            n--;
            continue;
        }
        OT_TRY(use_leaf(w, t, top, &node));
        if (node == OT_NONE) continue;
        const ot_node *p = &w->g->nodes[node];
        for (uint32_t k = 0; k < p->n_in; k++)
            if (p->in[k] != OT_NONE && found_at(w, t, p->in[k]) == OT_NONE &&
                !OT_PUSH(w->arena, stack, n, cap, p->in[k]))
                return rw_nomem(w);
        if (n == before) OT_TRY(copy_node(w, t, node));
    }
    *out = found_at(w, t, v);
    return OT_OK;
}
