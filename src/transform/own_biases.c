/* Constants for each operator that is merged. Tiles that are written out share them; a runtime
 * that merges a bias, a slope or a factor into what makes the other operand only where nobody
 * else reads it would leave an operator behind every convolution but one, in a layout of its own
 * if need be. So every later reader gets a constant of its own, with the same contents: some
 * bytes a channel.
 *
 *     t0/conv (x, W, b) --> t0/prelu (., s)               t0/conv (x, W, b) --> t0/prelu (., s)
 *     t1/conv (x, W, b) --> t1/prelu (., s)         -->   t1/conv (x, W, b_1) --> t1/prelu (., s_1)
 */
#include "transform.h"

#define MOST_BYTES (64 << 10) /* of a constant that is repeated: 16384 channels */

/* Operand j of the node is a constant that it is merged with, and that may be repeated: the bias
 * of a convolution, any of an element-wise operator. */
static bool is_own(const ot_graph *g, const ot_node *n, uint32_t j)
{
    int64_t bytes;
    if (n->dead || n->in[j] == OT_NONE) return false;
    const bool convolves = n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose;
    if (convolves ? j != 2 : ot_op_access(n->op) != OT_ACC_POINTWISE || n->op == OT_OP_Clip)
        return false; /* limits are attributes */
    const ot_value *x = &g->values[n->in[j]];
    return x->init && !x->overridable && !x->is_output && x->producer == OT_NONE &&
           ot_value_bytes(x, &bytes) && bytes <= MOST_BYTES;
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

/* The node's constants that others have read before. */
static ot_status take_own(ot_graph *g, ot_node *n, bool may_repeat, bool *read)
{
    for (uint32_t j = 0; j < n->n_in; j++) {
        if (!is_own(g, n, j)) continue;
        if (read[n->in[j]] && may_repeat)
            OT_TRY(repeat(g, n->in[j], &n->in[j]));
        else
            read[n->in[j]] = true;
    }
    return OT_OK;
}

ot_status ot_own_biases(ot_graph *g)
{
    ot_arena *a = ot_arena_new();
    /* [n_values] by such an operator before; constants that are repeated are none of these */
    bool *read = a ? OT_NEW_N(a, bool, g->n_values + 1u) : NULL;
    ot_status st = read ? OT_OK : ot_fail_nomem(g->model->diag);
    for (int made = 0; made < 2; made++) /* those of the file keep theirs */
        for (ot_id k = 0; st == OT_OK && k < g->n_nodes; k++)
            if ((g->nodes[k].source == OT_NONE) == made) st = take_own(g, &g->nodes[k], made, read);
    ot_arena_free(a);
    if (st != OT_OK) return st;
    ot_confirm(g, g->props & ~(unsigned)OT_P_USES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
