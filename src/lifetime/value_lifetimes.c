/* Lifetimes of a graph's values: one walk over its nodes. */
#include "lifetime.h"

ot_status ot_value_lifetimes_new(uint32_t n, ot_arena *a, ot_value_lifetimes *out)
{
    *out = (ot_value_lifetimes){
        .n = n, .made = OT_NEW_N(a, uint32_t, n + 1u), .last = OT_NEW_N(a, uint32_t, n + 1u)};
    if (!out->made || !out->last) return OT_E_NOMEM;
    for (ot_id v = 0; v < n; v++) out->made[v] = out->last[v] = OT_NONE;
    return OT_OK;
}

ot_status ot_value_lifetimes_of(const ot_graph *g, const uint32_t *step_of, uint32_t end,
                                ot_arena *a, ot_value_lifetimes *out)
{
    OT_TRY(ot_value_lifetimes_new(g->n_values, a, out));
    for (uint32_t p = 0; p < g->n_order; p++) {
        const ot_node *n = &g->nodes[g->order[p]];
        const uint32_t step = step_of ? step_of[g->order[p]] : p;
        if (step == OT_NONE) continue;
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE) ot_lifetime_read(out, n->in[k], step);
        for (uint32_t k = 0; k < n->n_captured; k++)
            if (n->captured[k] != OT_NONE) ot_lifetime_read(out, n->captured[k], step);
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OT_NONE) out->made[n->out[k]] = step;
    }
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (g->outputs[k] != OT_NONE) ot_lifetime_read(out, g->outputs[k], end);
    return OT_OK;
}
