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

typedef struct ranked {
    uint64_t rank;
    ot_id node;
} ranked;

typedef struct places {
    const ot_graph *g;
    const uint64_t *rank; /* [n_nodes] */
    bool *seen;           /* [n_nodes] */
    ranked *stack;        /* [n_stack] a node that is left for good: rank 0 */
    size_t n_stack, cap;
    ot_arena *a;
    ot_id *out; /* [n_out] */
    uint32_t n_out;
} places;

#define LEAVES 0

static ot_id operand(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

static bool is_read(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE && g->values[n->out[k]].n_uses > 0) return true;
    return false;
}

static bool push(places *p, uint64_t rank, ot_id node)
{
    return OT_PUSH(p->a, p->stack, p->n_stack, p->cap, ((ranked){rank, node}));
}

/* The makers of what the node reads, by rank, each behind those of less rank. */
static bool push_makers(places *p, ot_id id)
{
    const ot_node *n = &p->g->nodes[id];
    const size_t first = p->n_stack;
    for (uint32_t k = 0; k < n->n_in + n->n_captured; k++) {
        const ot_id v = operand(n, k), by = v == OT_NONE ? OT_NONE : p->g->values[v].producer;
        if (by == OT_NONE || p->seen[by] || p->g->nodes[by].is_static) continue;
        if (!push(p, p->rank[by], by)) return false;
        for (size_t j = p->n_stack - 1; j > first && p->stack[j - 1].rank > p->stack[j].rank; j--) {
            const ranked t = p->stack[j];
            p->stack[j] = p->stack[j - 1];
            p->stack[j - 1] = t;
        }
    }
    return true;
}

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* p->out: the nodes as they are visited. */
static ot_status visit(places *p)
{
    const ot_graph *g = p->g;
    p->n_out = 0;
    p->n_stack = 0;
    memset(p->seen, 0, g->n_nodes * sizeof *p->seen);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        if (!g->nodes[id].is_static && !is_read(g, &g->nodes[id]) && !push(p, p->rank[id], id))
            return OT_E_NOMEM;
    }
    qsort(p->stack, p->n_stack, sizeof *p->stack, by_rank);
    while (p->n_stack) {
        const ranked e = p->stack[--p->n_stack];
        if (e.rank == LEAVES) {
            p->out[p->n_out++] = e.node;
            continue;
        }
        if (p->seen[e.node]) continue;
        p->seen[e.node] = true;
        if (!push(p, LEAVES, e.node) || !push_makers(p, e.node)) return OT_E_NOMEM;
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
    uint64_t *rank = OT_NEW_N(a, uint64_t, g->n_nodes + 1u);
    places p = {.g = g, .rank = rank, .a = a};
    p.seen = OT_NEW_N(a, bool, g->n_nodes + 1u);
    p.out = OT_NEW_N(a, ot_id, g->n_order + 1u);
    if (!file || !rank || !p.seen || !p.out) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) rank[file[k]] = k + 1u;
    *out = (ot_sim_places){.rank = rank, .order = file, .n = g->n_order};
    if (!fuses) return OT_OK;
    bool any = false;
    OT_TRY(visit(&p));
    for (uint32_t k = 0; k < p.n_out; k++) {
        if (!is_replaced(g, tail, p.out[k])) continue;
        rank[p.out[k]] = OT_RANK_FUSED + k;
        any = true;
    }
    if (any) OT_TRY(visit(&p));
    out->order = p.out;
    out->n = p.n_out;
    return OT_OK;
}
