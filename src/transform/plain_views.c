/* A view of each blocked value that regions, or other readers of plain tensors, read. ONNX
 * Runtime computes convolutions in a blocked layout, and what others read is changed back by a
 * node of its own; all of these it makes at the end, in the order of a hash table of addresses.
 * Nodes run backwards in depth, the latest made first, so where a change runs is chance: a skip
 * connection's right behind its convolution, or not before the region that reads it, when all of
 * them are there twice. A Reshape to the same extents stands between: it moves nothing, and its
 * place is the file's.
 *
 *     conv --> v --> pool           conv --> v/blocks --> pool
 *              '---> region                    '--> Reshape --> v --> region
 *
 * The order of the file visits deep operands first, so what was made early comes last before a
 * region, which ONNX Runtime runs first: as soon as it is there. U-Net of 1024 x 1024: 189 to
 * 317 MB from session to session without, 196 in each with it.
 */
#include "fusion/fusion.h"
#include "machine/runtime/runtime.h"
#include "transform_internal.h"

typedef struct views {
    ot_graph *g;
    const ot_runtime *r;
    bool *blocked; /* [n_values] */
} views;

/* An activation that the convolution before it takes in. */
static bool is_merged(const views *x, const ot_node *n)
{
    const ot_graph *g = x->g;
    const ot_value *v = &g->values[n->in[0]];
    return ot_runtime_fuses(x->r) && ot_onnxruntime_fuses_activation(n->op) && v->n_uses == 1 &&
           v->producer != OT_NONE && ot_runtime_makes_blocks(x->r, &g->nodes[v->producer]);
}

/* Its result is held in blocks, as its operands are. */
static bool makes_blocked(const views *x, const ot_node *n)
{
    const ot_graph *g = x->g;
    if (n->n_in < 1 || n->in[0] == OT_NONE || g->values[n->in[0]].rank != 4) return false;
    if (ot_runtime_makes_blocks(x->r, n))
        return n->n_in > 1 && n->in[1] != OT_NONE && g->values[n->in[1]].is_const;
    if (!ot_runtime_keeps_blocks(x->r, n) && !is_merged(x, n)) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !g->values[n->in[k]].is_const && !x->blocked[n->in[k]])
            return false;
    return true;
}

/* The node takes v as it is blocked. */
static bool takes_blocked(const views *x, const ot_node *n)
{
    if (rw_is_tile(n)) return false;
    return ot_runtime_makes_blocks(x->r, n) ||
           (n->n_out > 0 && n->out[0] != OT_NONE && x->blocked[n->out[0]]);
}

/* v is blocked where it is made, and somebody reads it plain. */
static bool wants_view(const views *x, ot_id v)
{
    const ot_value *y = &x->g->values[v];
    if (!x->blocked[v] || y->is_output || y->dtype != OT_F32 || !ot_value_is_static(y))
        return false;
    if (y->producer == OT_NONE || rw_is_tile(&x->g->nodes[y->producer])) return false;
    for (uint32_t k = 0; k < y->n_uses; k++)
        if (!takes_blocked(x, &x->g->nodes[y->uses[k]])) return true;
    return false;
}

/* v becomes the view; what it was is called otherwise. */
static ot_status make_view(const views *x, ot_id v)
{
    ot_graph *g = x->g;
    ot_model *m = g->model;
    const ot_value y = g->values[v];
    const int64_t rank = y.rank;
    const char *base = ot_format(m->arena, "tile/view/%s", y.name),
               *from = ot_format(m->arena, "tile/view/%s/blocks", y.name),
               *shape = ot_format(m->arena, "tile/view/%s/shape", y.name);
    base = base ? ot_fresh_name(m, base) : NULL;
    from = from ? ot_fresh_name(m, from) : NULL;
    shape = shape ? ot_fresh_name(m, shape) : NULL;
    if (!base || !from || !shape) return ot_fail_nomem(m->diag);
    const ot_id raw = ot_value_new(g, from, y.dtype, y.rank, y.dims),
                dims = raw == OT_NONE ? raw : ot_const_i64(g, shape, y.dims, 1, &rank);
    if (dims == OT_NONE) return ot_fail_nomem(m->diag);
    ot_node *maker = &g->nodes[y.producer];
    maker->out[y.out_index] = raw;
    maker->proto = NULL;
    g->values[raw].producer = y.producer;
    g->values[raw].out_index = y.out_index;
    for (uint32_t k = 0; k < y.n_uses; k++)
        if (takes_blocked(x, &g->nodes[y.uses[k]])) rw_read_instead(&g->nodes[y.uses[k]], v, raw);
    return ot_node_new(g, &(ot_node_def){.op = "Reshape",
                                         .name = base,
                                         .in = {(const ot_id[]){raw, dims}, 2},
                                         .out = {&v, 1}}) == OT_NONE
               ? ot_fail_nomem(m->diag)
               : OT_OK;
}

ot_status rw_plain_views(ot_graph *g, const ot_runtime *r)
{
    const uint32_t n = g->n_values;
    uint32_t made = 0;
    ot_arena *a = ot_arena_new();
    views x = {.g = g, .r = r, .blocked = a ? OT_NEW_N(a, bool, n + 1u) : NULL};
    ot_status st = x.blocked ? OT_OK : ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; st == OT_OK && k < g->n_order; k++) {
        const ot_node *node = &g->nodes[g->order[k]];
        const bool blocked = !rw_is_tile(node) && makes_blocked(&x, node);
        for (uint32_t o = 0; o < node->n_out; o++)
            if (node->out[o] != OT_NONE) x.blocked[node->out[o]] = blocked;
    }
    for (ot_id v = 0; st == OT_OK && v < n; v++) {
        if (!wants_view(&x, v)) continue;
        st = make_view(&x, v);
        made++;
    }
    ot_arena_free(a);
    if (made == 0 || st != OT_OK) return st;
    ot_confirm(g, OT_P_SHAPES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
