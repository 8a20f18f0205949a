/* What is known, when a session loads, of the extents of values in channel blocks: whether two of
 * them have the same. (ONNX Runtime, NchwcTransformer: a Mul of blocks needs that, and an Add joins
 * a convolution where it holds.)
 *
 *      x --> reorder --> Conv -> a -> Conv -> b        b has the rows of a, a its own
 *        --> reorder --> Conv -> c                     nobody knows that c has those of a
 *
 * Stated extents are compared. Where the graph states none, a value has the rows and columns of the
 * blocks that it was made from, and what is made from a plain one has its own.
 */
#include "simulate.h"

#define RANK 4

static bool same_rows(const ot_value *x, const ot_value *y)
{
    return x->rank == RANK && y->rank == RANK && x->dims[2] == y->dims[2] &&
           x->dims[3] == y->dims[3];
}

ot_id ot_sim_rows_of(const ot_sim_schedule *p, ot_id v)
{
    const ot_graph *g = p->g;
    for (ot_id at = v;;) {
        const ot_id by = g->values[at].producer;
        if (by == OT_NONE || g->nodes[by].n_in == 0) return v;
        at = g->nodes[by].in[0];
        if (at == OT_NONE || !same_rows(&g->values[at], &g->values[v])) return v;
        /* what lies within a step is never made */
        if (p->values[at].bytes != 0) return p->values[at].is_blocked ? p->values[at].rows : v;
    }
}

static bool is_stated(const ot_value *v) { return ot_value_is_static(v) && !v->is_unstated; }

bool ot_sim_same_extents(const ot_sim_schedule *p, const ot_node *n)
{
    for (uint32_t k = 1; k < n->n_in; k++) {
        const ot_id v = n->in[0], w = n->in[k];
        if (v == OT_NONE || w == OT_NONE) return false;
        const ot_value *x = &p->g->values[v], *y = &p->g->values[w];
        if (!same_rows(x, y) || x->dims[0] != y->dims[0] || x->dims[1] != y->dims[1]) return false;
        if ((!is_stated(x) || !is_stated(y)) && p->values[v].rows != p->values[w].rows)
            return false;
    }
    return true;
}

bool ot_sim_suits_blocks(const ot_sim_schedule *p, int64_t block, const ot_node *n)
{
    switch (n->op) {
    case OT_OP_MaxPool:
    case OT_OP_AveragePool:
    case OT_OP_GlobalMaxPool:
    case OT_OP_GlobalAveragePool: return p->g->values[n->out[0]].dims[1] % block <= 0;
    case OT_OP_Mul: return ot_sim_same_extents(p, n);
    default: return true;
    }
}
