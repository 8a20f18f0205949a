/* Weights that kernels read as they are.
 *
 *   branch   W --> Reshape --> copy --> Reshape --> W' --> Conv      W' has the memory of the copy,
 *                                                    '---> bodies    and bodies of loops capture it
 *            extents --> Mul ------------^
 *                        one, the length of the branch's sequence
 *
 * A runtime that computes convolutions in blocks writes their weights anew while it loads a model,
 * once for each graph that reads them; what it makes on the way is free by the end, but the heap
 * keeps its pages. It does so where it knows the weights: those that a Reshape hands on, to
 * extents that are computed when the model runs, it does not. Their convolutions take plain
 * tensors, and longer. The copy is made while the model loads: else the pages of the file would
 * come with the first run, beside what a run takes.
 *
 *      VGG-16, 512 x 512          169 MB -> 133 MB, loads in 0.15 -> 0.09 s
 *      ResNet-50, 640 x 640       232 MB -> 199 MB, loads in 0.17 -> 0.12 s; runs take 10 % longer
 */
#include "transform_internal.h"

#define RANK 4 /* of weights that are written in blocks */

static ot_status nomem(const ot_graph *g) { return ot_fail_nomem(g->model->diag); }

/* n reads v as the weights of a convolution of one group, and as nothing else. */
static bool reads_weights(const ot_node *n, ot_id v)
{
    if (n->op != OT_OP_Conv || n->n_captured > 0 || ot_attr_int(n, "group", 1) != 1) return false;
    for (uint32_t j = 0; j < n->n_in; j++)
        if ((n->in[j] == v) != (j == 1)) return false;
    return true;
}

static bool is_weight(const ot_graph *g, ot_id v, int64_t from)
{
    const ot_value *w = &g->values[v];
    int64_t bytes;
    if (!w->init || w->overridable || w->is_output || w->producer != OT_NONE ||
        w->dtype != OT_F32 || w->rank != RANK || w->n_uses == 0 || !ot_value_bytes(w, &bytes) ||
        bytes < from)
        return false;
    for (uint32_t k = 0; k < w->n_uses; k++)
        if (!reads_weights(&g->nodes[w->uses[k]], v)) return false;
    return true;
}

bool ot_has_unpacked(const ot_graph *g, int64_t from)
{
    bool any = false;
    for (ot_id v = 0; v < g->n_values && !any; v++) any = is_weight(g, v, from);
    return any;
}

uint32_t ot_mark_unpacked(ot_graph *g, int64_t from)
{
    uint32_t n = 0;
    for (ot_id v = 0; v < g->n_values; v++) {
        g->values[v].is_unpacked = is_weight(g, v, from);
        n += g->values[v].is_unpacked;
    }
    return n;
}

bool ot_may_unpack(const ot_graph *g, ot_id v) { return is_weight(g, v, 0); }

uint32_t ot_mark_plain(ot_graph *g, const ot_id *weights, uint32_t n)
{
    uint32_t marked = 0;
    for (uint32_t k = 0; k < n; k++) {
        ot_value *w = &g->values[weights[k]];
        if (!w->is_unpacked) w->is_unpacked = is_weight(g, weights[k], 0);
        marked += w->is_unpacked;
    }
    return marked;
}

/* The same of a graph with tiles: bodies written by the rewriter may capture v. */
static bool reads_unpacked(const ot_graph *g, const ot_node *n, ot_id v)
{
    bool captures = false;
    for (uint32_t k = 0; k < n->n_captured; k++) captures |= n->captured[k] == v;
    for (uint32_t k = 0; k < n->n_in && captures; k++)
        if (n->in[k] == v) return false;
    if (!captures) return reads_weights(n, v);
    for (uint32_t k = 0; k < n->n_attrs; k++) {
        const ot_graph *body = n->attrs[k].kind == OT_ATTR_GRAPH ? n->attrs[k].g : NULL;
        if (n->attrs[k].kind == OT_ATTR_OPAQUE) return false;
        const ot_id in = body ? ot_value_find(body, g->values[v].name) : OT_NONE;
        for (ot_id j = 0; in != OT_NONE && j < body->n_nodes; j++) {
            const ot_node *reader = &body->nodes[j];
            bool any = false;
            for (uint32_t i = 0; i < reader->n_in; i++) any |= reader->in[i] == in;
            for (uint32_t i = 0; i < reader->n_captured; i++) any |= reader->captured[i] == in;
            if (any && !reader->dead && !reads_unpacked(body, reader, in)) return false;
        }
    }
    return true;
}

/* W', for all that reads v. */
static ot_status hide(ot_graph *g, ot_id v, ot_id one)
{
    const ot_value w = g->values[v];
    const int64_t rank = w.rank;
    const char *const names[] = {ot_fresh_name(g->model, "tile/unpacked/extents"),
                                 ot_fresh_name(g->model, "tile/unpacked/shape"),
                                 ot_fresh_name(g->model, "tile/unpacked/copy"),
                                 ot_fresh_name(g->model, "tile/unpacked/weight")};
    for (int k = 0; k < 4; k++)
        if (!names[k]) return nomem(g);
    const ot_id extents = ot_const_i64(g, names[0], w.dims, 1, &rank),
                shape = ot_value_new(g, names[1], OT_I64, 1, &rank),
                copy = ot_value_new(g, names[2], w.dtype, w.rank, w.dims),
                out = ot_value_new(g, names[3], w.dtype, w.rank, w.dims);
    if (extents == OT_NONE || shape == OT_NONE || copy == OT_NONE || out == OT_NONE)
        return nomem(g);
    OT_TRY(ot_replace_uses(g, v, out));
    const ot_id in[3][2] = {{extents, one}, {v, extents}, {copy, shape}};
    const ot_id made[3] = {shape, copy, out};
    for (int k = 0; k < 3; k++)
        if (ot_node_new(g, &(ot_node_def){.op = k == 0 ? "Mul" : "Reshape",
                                          .name = names[k + 1],
                                          .in = {in[k], 2},
                                          .out = {&made[k], 1}}) == OT_NONE)
            return nomem(g);
    g->values[copy].is_const = g->nodes[g->values[copy].producer].is_static = true;
    return OT_OK;
}

ot_status rw_hide_weights(ot_graph *g, ot_id one)
{
    const uint32_t n_values = g->n_values;
    for (ot_id v = 0; v < n_values; v++) {
        const ot_value *w = &g->values[v];
        bool alone = w->is_unpacked && w->init && !w->removed && w->n_uses > 0;
        for (uint32_t k = 0; k < w->n_uses && alone; k++)
            alone = reads_unpacked(g, &g->nodes[w->uses[k]], v);
        if (alone) OT_TRY(hide(g, v, one));
    }
    return OT_OK;
}
