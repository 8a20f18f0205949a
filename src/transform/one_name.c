/* Constants that bodies capture have one name.
 *
 *     b --> Identity --> b2         body: conv (x, W, b) --> conv (., W2, b2)
 *                             -->   body: conv (x, W, b) --> conv (., W2, b)
 *
 * Exporters write equal constants once, and every other name of theirs as an Identity. Runtimes
 * take that away when they load a model, which they cannot where a body captures both names: they
 * say so, and copy the constant for every run.
 */
#include "transform.h"

/* The constant of the graph that the value is by another name; OT_NONE: it is none, or an output
 * of the graph. */
static ot_id first_name(const ot_graph *g, ot_id v)
{
    if (g->values[v].is_output) return OT_NONE;
    while (g->values[v].producer != OT_NONE) {
        const ot_node *n = &g->nodes[g->values[v].producer];
        if (n->op != OT_OP_Identity || n->n_in != 1 || n->in[0] == OT_NONE) return OT_NONE;
        v = n->in[0];
    }
    return g->values[v].init && !g->values[v].overridable ? v : OT_NONE;
}

static bool has_own_subgraph(const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_OPAQUE) return true;
    return false;
}

/* Bodies made here capture v, and no subgraph of the file, which knows it by its name. */
static bool is_captured(const ot_graph *g, ot_id v)
{
    bool captured = false;
    for (uint32_t k = 0; k < g->values[v].n_uses; k++) {
        const ot_node *n = &g->nodes[g->values[v].uses[k]];
        for (uint32_t j = 0; j < n->n_captured; j++) {
            if (n->captured[j] != v) continue;
            if (has_own_subgraph(n)) return false;
            captured = true;
        }
    }
    return captured;
}

ot_status ot_use_one_name(ot_graph *g)
{
    ot_arena *a = ot_arena_new();
    ot_id *first = a ? OT_NEW_N(a, ot_id, g->n_nodes + 1u) : NULL;
    ot_status st = first ? OT_OK : ot_fail_nomem(g->model->diag);
    const uint32_t n_nodes = g->n_nodes;
    for (ot_id k = 0; st == OT_OK && k < n_nodes; k++) { /* replacing makes uses stale */
        const ot_node *n = &g->nodes[k];
        const bool named = !n->dead && n->op == OT_OP_Identity && n->n_out == 1;
        first[k] = named && is_captured(g, n->out[0]) ? first_name(g, n->out[0]) : OT_NONE;
    }
    for (ot_id k = 0; st == OT_OK && k < n_nodes; k++) {
        if (first[k] == OT_NONE) continue;
        st = ot_replace_uses(g, g->nodes[k].out[0], first[k]);
        if (st == OT_OK) ot_node_remove(g, k);
    }
    ot_arena_free(a);
    return st == OT_OK ? ot_assure(g, OT_P_ORDER | OT_P_USES) : st;
}
