/* Static nodes: shape arithmetic whose results are known. */
#include "dynamic_dims.h"

bool ot_static_foldable(const ot_graph *g, const ot_node *n)
{
    const ot_dynamic_dims *t = g->model->dynamic_dims;
    if (t && (size_t)(n - g->nodes) < t->n_nodes && !t->foldable[n - g->nodes]) return false;
    if (!n->is_static || n->n_captured > 0) return false;
    for (uint32_t o = 0; o < n->n_out; o++) {
        ot_id v = n->out[o];
        if (v == OT_NONE) continue;
        const ot_value *x = &g->values[v];
        bool integer = x->dtype == OT_I64 || x->dtype == OT_I32 || x->dtype == OT_BOOL;
        if (!(x->known_floats || (x->known && integer)) || x->is_output || x->rank < 0 || o >= 8)
            return false;
    }
    return true;
}
