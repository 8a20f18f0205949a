/* Sums whose rounding a later subtraction brings out.
 *
 * Networks that take the variance as E[x^2] - E[x]^2 subtract two sums of nearly the same size
 * where the mean is large against the deviation: what is left has only the last digits of both,
 * and its square root's reciprocal is a factor of all that follows. A sum made in another order
 * differs in just these digits:
 *
 *   x --ReduceSum--> s --Mul 1/n--> mean --Mul(mean)--> mean^2 --.
 *    `-Mul(x)--ReduceSum--> q --Mul 1/n-----------------> E[x^2] --Sub--> variance  of 4.00000 -
 *    3.99998
 *
 * So such sums are left whole. The larger half of a LayerNormalization, x - mean, is no such
 * case: x is no sum.
 */
#include "ops.h"

/* Nodes between a sum and the subtraction: means, squares, casts, added axes. */
#define HOPS 6
/* Nodes that are asked in all; a graph that has more in so few hops counts as one that subtracts.
 */
#define ASKED_MOST 4096

static bool is_sum(ot_op op)
{
    return op == OT_OP_GlobalAveragePool || op == OT_OP_ReduceMean || op == OT_OP_ReduceSum ||
           op == OT_OP_ReduceSumSquare || op == OT_OP_ReduceL1 || op == OT_OP_ReduceL2;
}

/* Hands on each element by itself. */
static bool hands_on(ot_op op)
{
    ot_access_kind a = ot_op_access(op);
    return a == OT_ACC_POINTWISE || a == OT_ACC_RESHAPE || a == OT_ACC_EXPAND ||
           a == OT_ACC_TRANSPOSE;
}

/* v is made of a sum. */
static bool from_sum(const ot_graph *g, ot_id v, uint32_t hops, uint32_t *asked)
{
    if (++*asked > ASKED_MOST) return true;
    if (v == OT_NONE || g->values[v].producer == OT_NONE) return false;
    const ot_node *n = &g->nodes[g->values[v].producer];
    if (is_sum(n->op)) return true;
    if (hops == 0 || !hands_on(n->op)) return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (from_sum(g, n->in[i], hops - 1, asked)) return true;
    return false;
}

static bool is_negated(const ot_graph *g, ot_id v)
{
    return v != OT_NONE && g->values[v].producer != OT_NONE &&
           g->nodes[g->values[v].producer].op == OT_OP_Neg;
}

/* n takes one sum from another. */
static bool subtracts_sums(const ot_graph *g, const ot_node *n, uint32_t *asked)
{
    if (n->n_in != 2) return false;
    bool subtracts = n->op == OT_OP_Sub ||
                     (n->op == OT_OP_Add && is_negated(g, n->in[0]) != is_negated(g, n->in[1]));
    return subtracts && from_sum(g, n->in[0], HOPS, asked) && from_sum(g, n->in[1], HOPS, asked);
}

/* A reader of v, at most `hops` nodes on, takes another sum from what is made of v. Values of
 * more than `elems` elements are not sums any more, but what they are applied to. */
static bool reaches(const ot_graph *g, ot_id v, int64_t elems, uint32_t hops, uint32_t *asked)
{
    int64_t have;
    if (!ot_value_elems(&g->values[v], &have) || have > elems) return false;
    for (uint32_t u = 0; u < g->values[v].n_uses; u++) {
        const ot_node *n = &g->nodes[g->values[v].uses[u]];
        if (++*asked > ASKED_MOST) return true;
        if (!hands_on(n->op) || n->n_out == 0 || n->out[0] == OT_NONE) continue;
        if (subtracts_sums(g, n, asked)) return true;
        if (hops > 0 && reaches(g, n->out[0], elems, hops - 1, asked)) return true;
    }
    return false;
}

bool ot_sum_cancels(const ot_graph *g, const ot_node *n)
{
    int64_t elems;
    uint32_t asked = 0;
    return is_sum(n->op) && n->n_out > 0 && n->out[0] != OT_NONE &&
           ot_value_elems(&g->values[n->out[0]], &elems) &&
           reaches(g, n->out[0], elems, HOPS, &asked);
}
