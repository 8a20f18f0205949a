/* Slice relation of reductions and cumulative sums: the axes that are summed over are needed
 * whole, all others are cut alike. With keepdims = 0 the output has lost the reduced axes, so
 * the numbers shift:
 *
 *   x [N, C, H, W]   axes {1, 3}    keepdims 1: out [N,1,H,1]  out axis 2 -> x axis 2
 *                                   keepdims 0: out [N, H]     out axis 1 -> x axis 2
 *
 * ArgMax and ArgMin give positions along the reduced axis, which no cut moves. The axes come
 * from an attribute or (ReduceSum since opset 13, the others since 18) from operand 1, which
 * must be constant.
 */
#include "access_same.h"

static bool is_arg(ot_op op) { return op == OT_OP_ArgMax || op == OT_OP_ArgMin; }

bool ot_acc_reduced_axes(const ot_graph *g, const ot_node *n, int32_t rank, bool *reduced,
                         ot_why *why)
{
    int64_t from_input[OT_RANK_MAX];
    const int64_t *axes = NULL;
    int64_t one;
    size_t n_axes = 0;
    memset(reduced, 0, OT_RANK_MAX * sizeof *reduced);
    if (is_arg(n->op)) {
        one = ot_attr_int(n, "axis", 0);
        axes = &one;
        n_axes = 1;
    } else if (ot_acc_in(g, n, 1)) {
        int64_t count = ot_acc_ints(g, n, 1, from_input, OT_RANK_MAX);
        if (count < 0) return ot_acc_refuse(why, OT_WHY_REDUCE_AXES_RUNTIME);
        axes = from_input;
        n_axes = (size_t)count;
    } else {
        axes = ot_attr_ints(n, "axes", &n_axes);
    }
    if (n_axes == 0 || !axes) {
        bool noop = ot_attr_int(n, "noop_with_empty_axes", 0) != 0;
        for (int32_t i = 0; i < rank; i++) reduced[i] = !noop;
        return true;
    }
    for (size_t i = 0; i < n_axes; i++) {
        int32_t a = ot_acc_norm_axis(axes[i], rank);
        if (a < 0) return ot_acc_refuse(why, OT_WHY_REDUCE_AXES_RANGE);
        reduced[a] = true;
    }
    return true;
}

/* The input axis behind output axis `axis`; -1 when there is none. */
static int32_t input_axis(const bool *reduced, int32_t rank, bool keepdims, uint32_t axis)
{
    if (keepdims) return (int32_t)axis < rank ? (int32_t)axis : -1;
    uint32_t kept = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (reduced[i]) continue;
        if (kept++ == axis) return i;
    }
    return -1;
}

static bool reduce_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    bool reduced[OT_RANK_MAX];
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!x) return ot_acc_refuse(why, OT_WHY_INPUT_MISSING);
    if (!ot_acc_reduced_axes(g, n, x->rank, reduced, why)) return false;
    int32_t ax = input_axis(reduced, x->rank, ot_attr_int(n, "keepdims", 1) != 0, axis);
    if (ax < 0) return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    if (reduced[ax]) return ot_acc_refuse(why, OT_WHY_REDUCE);
    if (x->dims[ax] != out->dims[axis]) return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    in_axis[0] = (int8_t)ax;
    return true;
}

const ot_access_ops ot_access_reduce = {reduce_axis, NULL, NULL};

/* ---- CumSum ---- */

static bool cumsum_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0);
    int64_t along;
    (void)out_axis;
    if (!ot_acc_alike(g, n, out_index, axis, why)) return false;
    if (ot_acc_ints(g, n, 1, &along, 1) != 1) return ot_acc_refuse(why, OT_WHY_CUMSUM_AXIS_RUNTIME);
    int32_t whole = ot_acc_norm_axis(along, x->rank);
    if (whole < 0) return ot_acc_refuse(why, OT_WHY_CUMSUM_AXIS_RANGE);
    if (whole == (int32_t)axis) return ot_acc_refuse(why, OT_WHY_CUMSUM);
    in_axis[0] = (int8_t)axis;
    return true;
}

const ot_access_ops ot_access_cumsum = {cumsum_axis, NULL, NULL};
