/* What ONNX Runtime computes within other nodes, as it decides while it makes its steps.
 *
 *   Conv -> BN, Mul, Add by channel     folded into the convolution's weights
 *   Conv -> Relu; Conv -> Add -> Relu   within the convolution: the Add of two tensors in blocks
 *   Transpose, Mul by a number -> MatMul    the product reads through it: it moves nothing
 *
 * Which values lie in blocks of channels follows from the steps before: whoever makes the steps
 * says so (alloc_sim/simulate_plan.c).
 */
#include "fusion.h"

static bool has_result(const ot_node *n) { return n->n_out > 0 && n->out[0] != OT_NONE; }

static bool same_dims(const ot_value *x, const ot_value *y)
{
    return x->rank == y->rank && x->rank >= 0 &&
           (x->rank == 0 || memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0);
}

bool ot_value_is_precomputed(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return x->init || x->is_const || (x->producer != OT_NONE && g->nodes[x->producer].is_static);
}

/* The node that alone reads the first result of n; OT_NONE. */
static ot_id reader_of(const ot_graph *g, const ot_node *n)
{
    return has_result(n) ? ot_value_only_reader(g, n->out[0]) : OT_NONE;
}

/* ---- folded into weights ---- */

/* A constant of one element for all, or for each channel of a map of rank 4. */
static bool is_per_channel(const ot_graph *g, ot_id v, const ot_value *map)
{
    const ot_value *x = &g->values[v];
    int64_t elems = 0;
    if (!ot_value_is_precomputed(g, v) || !ot_value_elems(x, &elems) || map->rank != 4)
        return false;
    return elems == 1 || (x->rank >= 3 && elems == map->dims[1] && x->dims[x->rank - 3] == elems);
}

static bool is_folded(const ot_graph *g, const ot_node *n)
{
    if (!has_result(n)) return false;
    if (n->op == OT_OP_BatchNormalization) return true;
    return (n->op == OT_OP_Mul || n->op == OT_OP_Add) && n->n_in == 2 && n->in[0] != OT_NONE &&
           n->in[1] != OT_NONE && is_per_channel(g, n->in[1], &g->values[n->out[0]]) &&
           same_dims(&g->values[n->in[0]], &g->values[n->out[0]]);
}

ot_id ot_onnxruntime_folded(const ot_graph *g, ot_id node)
{
    const ot_id next = reader_of(g, &g->nodes[node]);
    return next != OT_NONE && is_folded(g, &g->nodes[next]) ? next : OT_NONE;
}

/* ---- within convolutions ---- */

/* The convolution that makes v can take in what alone reads it. */
static bool is_open(const ot_graph *g, ot_id v, const ot_open_conv *by)
{
    return v != OT_NONE && by->is_conv && !by->has_activation && !g->values[v].is_output &&
           g->values[v].n_uses == 1 && g->values[v].dtype == OT_F32;
}

uint32_t ot_onnxruntime_joins(const ot_graph *g, const ot_node *n, const ot_open_conv by[2],
                              bool blocked)
{
    if (n->n_in == 0 || n->n_out != 1 || !has_result(n)) return OT_NONE;
    if (ot_onnxruntime_fuses_activation(n->op)) return is_open(g, n->in[0], &by[0]) ? 0 : OT_NONE;
    if ((n->op != OT_OP_Add && n->op != OT_OP_Sum) || n->n_in != 2 || n->in[0] == n->in[1] ||
        !blocked || !same_dims(&g->values[n->in[0]], &g->values[n->in[1]]))
        return OT_NONE;
    for (uint32_t k = 0; k < 2; k++)
        if (is_open(g, n->in[k], &by[k]) && !by[k].has_added) return k;
    return OT_NONE;
}

/* ---- read through ---- */

/* A Transpose of the last two axes whose only reader is a matrix product: the product reads its
 * input as it lies. */
static bool is_read_transposed(const ot_graph *g, const ot_node *n)
{
    size_t rank = 0;
    const int64_t *perm = n->op == OT_OP_Transpose ? ot_attr_ints(n, "perm", &rank) : NULL;
    const ot_id reader = perm && rank >= 2 ? reader_of(g, n) : OT_NONE;
    if (reader == OT_NONE || g->nodes[reader].op != OT_OP_MatMul ||
        g->values[n->out[0]].dtype != OT_F32)
        return false;
    for (size_t k = 0; k < rank; k++) {
        int64_t from = k + 2 < rank ? (int64_t)k : (int64_t)(k + 1 == rank ? rank - 2 : rank - 1);
        if (perm[k] != from) return false;
    }
    return true;
}

/* A factor beside a matrix product, which the product takes in: Mul, Div by a constant of one
 * element. */
static bool is_taken_in(const ot_graph *g, const ot_node *n)
{
    int64_t elems = 0;
    if ((n->op != OT_OP_Mul && n->op != OT_OP_Div) || n->n_in != 2 || !has_result(n)) return false;
    if (g->values[n->out[0]].dtype != OT_F32) return false;
    if (!ot_value_is_precomputed(g, n->in[1]) || !ot_value_elems(&g->values[n->in[1]], &elems) ||
        elems != 1)
        return false;
    const ot_id reader = reader_of(g, n), by = g->values[n->in[0]].producer;
    const bool behind = by != OT_NONE && g->nodes[by].op == OT_OP_MatMul &&
                        g->values[n->in[0]].n_uses == 1;
    return behind || (reader != OT_NONE && g->nodes[reader].op == OT_OP_MatMul);
}

bool ot_onnxruntime_reads_through(const ot_graph *g, const ot_node *n)
{
    return is_read_transposed(g, n) || is_taken_in(g, n);
}
