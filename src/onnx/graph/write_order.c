/* The order in which a graph's nodes are written to a file.
 *
 * What runtimes hold depends on it: ONNX Runtime goes back from the results, and of what a node
 * reads takes first what stands last in the file. Exporters write what a long chain is combined
 * with in front of the chain's end; `order` has it behind:
 *
 *   file    z -> a b;  x -> c -> d;  e = d * a;  f = e + b      d, c, then a, b: two at a time
 *   order   x c d z a e b f                                     b, a, ... first, of all such nodes
 *
 * So a graph in which no node was made here is written as it was read.
 */
#include "ir.h"

/* All nodes are of the file, and each stands there behind what it reads. */
static bool is_as_read(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->source == OT_NONE) return false;
        for (uint32_t j = 0; j < n->n_in + n->n_captured; j++) {
            const ot_id v = j < n->n_in ? n->in[j] : n->captured[j - n->n_in];
            const ot_id by = v == OT_NONE ? OT_NONE : g->values[v].producer;
            if (by != OT_NONE && g->nodes[by].source >= n->source) return false;
        }
    }
    return true;
}

typedef struct placed {
    uint32_t source;
    ot_id node;
} placed;

static int by_source(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

const ot_id *ot_write_order(const ot_graph *g, ot_arena *a)
{
    if (!is_as_read(g)) return g->order;
    placed *all = OT_NEW_N(a, placed, g->n_order + 1u);
    ot_id *order = OT_NEW_N(a, ot_id, g->n_order + 1u);
    if (!all || !order) return NULL;
    for (uint32_t k = 0; k < g->n_order; k++)
        all[k] = (placed){g->nodes[g->order[k]].source, g->order[k]};
    qsort(all, g->n_order, sizeof *all, by_source);
    for (uint32_t k = 0; k < g->n_order; k++) order[k] = all[k].node;
    return order;
}
