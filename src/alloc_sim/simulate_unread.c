/* Nodes that only shapes read, which are known before a run.
 *
 *   v --> ScatterND --> ...              Shape is computed while loading; then nobody reads
 *   '---> Gather --> Shape --> Expand    Gather's result, and the node is left out
 *
 * (ONNX Runtime, ConstantFolding; exporters write such chains for every element that a model sets:
 * RWKV's 1,024 Gathers would each keep a state.)
 */
#include "simulate.h"

/* Is it read, and by nobody who runs? */
static bool is_unread(const ot_graph *g, const ot_node *n, const bool *read, const bool *by_shapes)
{
    bool shapes = false;
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_id v = n->out[k];
        if (v == OT_NONE) continue;
        if (read[v] || g->values[v].is_output) return false;
        shapes |= by_shapes[v];
    }
    return shapes;
}

ot_status ot_sim_find_unread(const ot_graph *g, ot_arena *a, bool *unread)
{
    bool *read = OT_NEW_N(a, bool, g->n_values + 1u), /* by a node that runs */
        *by_shapes = OT_NEW_N(a, bool, g->n_values + 1u);
    if (!read || !by_shapes) return OT_E_NOMEM;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        const bool gone = n->is_static || is_unread(g, n, read, by_shapes);
        unread[g->order[k]] |= gone && !n->is_static;
        for (uint32_t j = 0; j < n->n_in + n->n_captured; j++) {
            const ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
            if (v != OT_NONE) (gone ? by_shapes : read)[v] = true;
        }
    }
    return OT_OK;
}
