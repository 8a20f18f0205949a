/* The order in which a runtime's passes go through a graph.
 *
 * ONNX Runtime's passes visit the nodes as runs do: backwards in depth from what nobody reads, the
 * node of more rank first. What a pass makes anew comes behind all that was there, in the order of
 * the visit; hence the next pass, and then the run, find siblings the other way round:
 *
 *   file        a   b -> c   d = a + c      c stands behind a: c's chain first
 *   first pass  b c a d                     each made anew in that order: a' now behind c'
 *   then        a' b' c' d'
 */
#include "simulate.h"

/* Who makes what the nodes read that run. */
static ot_status list_makers(const ot_graph *g, ot_sim_makers *m, ot_arena *a)
{
    OT_TRY(ot_sim_makers_start(m, g->n_nodes, a));
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        const bool runs = !n->dead && !n->is_static;
        for (uint32_t k = 0; k < n->n_in + n->n_captured && runs; k++) {
            const ot_id v = k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
            const ot_id by = v == OT_NONE ? OT_NONE : g->values[v].producer;
            if (by != OT_NONE && !g->nodes[by].is_static) OT_TRY(ot_sim_makers_add(m, by));
        }
        ot_sim_makers_end(m, runs);
    }
    return OT_OK;
}

/* ---- what passes make ---- */

/* A convolution's only reader, which it is fused with. */
static bool is_fused_activation(const ot_graph *g, const ot_node *n)
{
    if (n->n_in == 0 || n->in[0] == OT_NONE || !ot_onnxruntime_fuses_activation(n->op))
        return false;
    const ot_value *v = &g->values[n->in[0]];
    const ot_node *by = v->producer == OT_NONE ? NULL : &g->nodes[v->producer];
    if (by && by->op == OT_OP_BatchNormalization && by->n_in > 0 && by->in[0] != OT_NONE) {
        const ot_id conv = g->values[by->in[0]].producer;
        if (conv != OT_NONE && g->nodes[conv].op == OT_OP_Conv) by = &g->nodes[conv];
    }
    return by && by->op == OT_OP_Conv && v->n_uses == 1 && !v->is_output;
}

/* Nodes that are replaced by one: the last of each group. */
static bool is_replaced(const ot_graph *g, const ot_id *tail, ot_id id)
{
    return tail[id] == id || is_fused_activation(g, &g->nodes[id]);
}

ot_status ot_sim_find_places(const ot_graph *g, bool fuses, const ot_id *tail, ot_arena *a,
                             ot_sim_places *out)
{
    const ot_id *file = ot_write_order(g, a);
    ot_sim_makers makers;
    ot_sim_depth *depth;
    uint64_t *rank = OT_NEW_N(a, uint64_t, g->n_nodes + 1u);
    ot_id *order = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    bool any = false;
    uint32_t n;
    if (!file || !rank || !order) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) rank[file[k]] = k + 1u;
    *out = (ot_sim_places){.rank = rank, .order = file, .n = g->n_order};
    if (!fuses) return OT_OK;
    OT_TRY(list_makers(g, &makers, a));
    OT_TRY(ot_sim_depth_new(&makers, a, &depth));
    OT_TRY(ot_sim_depth_order(depth, rank, order, &n));
    for (uint32_t k = 0; k < n; k++) {
        if (!is_replaced(g, tail, order[k])) continue;
        rank[order[k]] = OT_RANK_FUSED + k;
        any = true;
    }
    if (any) OT_TRY(ot_sim_depth_order(depth, rank, order, &n));
    out->order = order;
    out->n = n;
    return OT_OK;
}
