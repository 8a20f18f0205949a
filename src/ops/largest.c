/* The largest tensor that a graph makes, bodies included: what --max-tensor is held against once
 * the graph is written. It knows nothing of plans.
 */
#include "ops.h"

static void look(const ot_graph *g, bool body, uint32_t depth, ot_largest *out)
{
    for (ot_id id = 0; id < g->n_values; id++) {
        const ot_value *v = &g->values[id];
        bool handed = body && v->is_input; /* a slice, or what an iteration hands to the next */
        int64_t bytes;
        if (!v->is_tensor || v->is_outer || v->removed || v->init ||
            (v->producer == OT_NONE && !handed))
            continue;
        if (v->producer != OT_NONE &&
            (g->nodes[v->producer].dead || g->nodes[v->producer].op == OT_OP_Constant))
            continue;
        if (!ot_value_bytes(v, &bytes)) {
            if (v->dtype != OT_STRING) out->n_unknown++;
        } else if (bytes > out->bytes) {
            out->bytes = bytes;
            out->value = v->name;
        }
    }
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_inner *inner = &g->nodes[id].inner;
        if (g->nodes[id].dead) continue;
        out->n_unknown += inner->bytes < 0;
        if (inner->largest <= out->bytes) continue;
        out->bytes = inner->largest;
        out->value = inner->value;
    }
    for (ot_id id = 0; id < g->n_nodes && depth < OT_NESTING_MAX; id++)
        for (uint32_t k = 0; k < g->nodes[id].n_attrs && !g->nodes[id].dead; k++)
            if (g->nodes[id].attrs[k].kind == OT_ATTR_GRAPH && g->nodes[id].attrs[k].g)
                look(g->nodes[id].attrs[k].g, true, depth + 1, out);
}

ot_largest ot_largest_tensor(const ot_graph *g)
{
    ot_largest x = {0};
    look(g, false, 0, &x);
    return x;
}
