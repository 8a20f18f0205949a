/* A bias for each convolution. Tiles that are written out share their constants; a runtime that merges a bias only where nobody else
 * reads it would leave an operator behind every convolution but one. So every later reader gets a constant of its own, with the same
 * contents: some bytes a channel.
 *
 *     t0/conv (x, W, b)                      t0/conv (x, W, b)
 *     t1/conv (x, W, b)         -->          t1/conv (x, W, b_1)
 */
#include "rewrite.h"

/* The bias that a convolution reads, when it is a constant that may be repeated; else OT_NONE. */
static ot_id bias_of(const ot_graph *g, const ot_node *n)
{
    if (n->dead || (n->op != OT_OP_Conv && n->op != OT_OP_ConvTranspose) || n->n_in < 3 || n->in[2] == OT_NONE) return OT_NONE;
    const ot_value *x = &g->values[n->in[2]];
    return x->init && !x->overridable && !x->is_output && x->producer == OT_NONE ? n->in[2] : OT_NONE;
}

static ot_status repeat(ot_graph *g, ot_id v, ot_id *out)
{
    const ot_value x = g->values[v];
    const char *name = ot_fresh_name(g->model, x.name);
    *out = name ? ot_value_new(g, name, x.dtype, x.rank, x.dims) : OT_NONE;
    if (*out == OT_NONE) return ot_fail_nomem(g->model->diag);
    g->values[*out].init = x.init;
    g->values[*out].is_const = x.is_const;
    return OT_OK;
}

ot_status ot_own_biases(ot_graph *g)
{
    ot_arena *a = ot_arena_new();
    bool *read = a ? OT_NEW_N(a, bool, g->n_values + 1u) : NULL; /* by a convolution before */
    ot_status st = read ? OT_OK : ot_fail_nomem(g->model->diag);
    for (int made = 0; made < 2; made++) { /* those of the file keep theirs */
        for (ot_id k = 0; st == OT_OK && k < g->n_nodes; k++) {
            ot_node *n = &g->nodes[k];
            ot_id v = (n->source == OT_NONE) == made ? bias_of(g, n) : OT_NONE;
            if (v == OT_NONE) continue;
            if (read[v] && made)
                st = repeat(g, v, &n->in[2]);
            else
                read[v] = true;
        }
    }
    ot_arena_free(a);
    if (st != OT_OK) return st;
    ot_confirm(g, g->props & ~(unsigned)OT_P_USES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
