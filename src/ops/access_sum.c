/* Reductions that can be combined from parts of their input.
 *
 * The slice relation says that a reduction needs the axes it reduces whole. Where tiles may
 * write partial results, it does not: every tile reduces its own piece, and one more reduction
 * over the pieces, in the order of the tiles, gives the result.
 *
 *   x [1,C,H,W]   |--piece 0--|--piece 1--|--piece 2--|        ReduceMax over H, W
 *                       |           |           |
 *   parts [3,1,C,1,1]   m0          m1          m2  ------->   max over the parts: [1,C,1,1]
 *
 * A root of a sum of squares is that of the parts' roots. A mean is the mean of the parts when
 * all pieces are equally long; else each part is weighted with its number of elements. A
 * variance takes the means of the parts as well, since these differ from the mean of all.
 */
#include "access_same.h"
#include "dynamic_dims.h"

#define ADDED_AT_ONCE 4096 /* numbers: fewer are as good in one sum */

/* Types in which parts can be weighted, and roots of them taken: of integers, fractions would be
 * lost. */
static bool has_weights(ot_dtype t) { return t == OT_F32 || t == OT_F64; }

static ot_sum_kind kind_of(const ot_node *n, ot_dtype t)
{
    switch (n->op) {
    case OT_OP_GlobalAveragePool:
    case OT_OP_ReduceMean: return has_weights(t) ? OT_SUM_MEAN : OT_SUM_NONE;
    case OT_OP_ReduceSum:
    case OT_OP_ReduceL1:
    case OT_OP_ReduceSumSquare: return OT_SUM_ADD;
    case OT_OP_GlobalMaxPool:
    case OT_OP_ReduceMax: return OT_SUM_MAX;
    case OT_OP_ReduceMin: return OT_SUM_MIN;
    case OT_OP_ReduceL2: return has_weights(t) ? OT_SUM_L2 : OT_SUM_NONE;
    case OT_OP_Moments: return OT_SUM_MOMENTS;
    default: return OT_SUM_NONE;
    }
}

static bool all_positive(const ot_value *x)
{
    for (int32_t a = 0; a < x->rank; a++)
        if (x->dims[a] < 1) return false;
    return true;
}

/* With dynamic dimensions: tiles may make parts of n, whatever the size. Behind sequences nobody
 * infers shapes, so what has free axes has no bound. */
static bool holds_anyhow(const ot_graph *g, const ot_node *n)
{
    const ot_dynamic_dims *t = g->model->dynamic_dims;
    if (!t) return true;
    for (int32_t a = 0; t->bounded && a < g->values[n->out[0]].rank; a++)
        if (ot_axis_is_dynamic(g, n->out[0], a)) return false;
    return n->n_in < 2 || !ot_value_varies(g, n->in[1]); /* other axes at other sizes */
}

bool ot_moments_are_many(const ot_value *x, const int64_t *axes, size_t n)
{
    int64_t many = 1;
    for (size_t k = 0; k < n; k++)
        if (x->dims[axes[k]] < 1 || !ot_mul_i64(many, x->dims[axes[k]], &many)) return false;
    return many > ADDED_AT_ONCE;
}

ot_sum_kind ot_access_sum(const ot_graph *g, const ot_node *n, bool reduced[OT_RANK_MAX])
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    ot_why why = OT_WHY_NONE;
    if (!x || !y || n->n_captured > 0 || n->n_out != 1 || !ot_acc_regular(g, n, &why))
        return OT_SUM_NONE;
    if (!x->is_tensor || !ot_value_is_static(x) || !ot_value_is_static(y) || !all_positive(x) ||
        !holds_anyhow(g, n))
        return OT_SUM_NONE;
    ot_sum_kind kind = kind_of(n, x->dtype);
    if (kind == OT_SUM_NONE || (x->dtype != y->dtype && kind != OT_SUM_MOMENTS)) return OT_SUM_NONE;
    if (ot_op_access(n->op) == OT_ACC_REDUCE)
        return ot_acc_reduced_axes(g, n, x->rank, reduced, &why) ? kind : OT_SUM_NONE;
    if (x->rank < 3) return OT_SUM_NONE;
    for (int32_t a = 0; a < x->rank; a++) reduced[a] = a >= 2;
    return kind;
}
