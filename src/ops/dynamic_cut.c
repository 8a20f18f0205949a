/* Which cuts hold at every size: by operator, what of its slice relation speaks of extents.
 *
 * The tile of an operator is written once for all sizes. So nothing in it may come of an extent
 * that is free: pads of SAME with a stride, sizes of a Resize, bounds of a Slice on the cut
 * axis, an operand that broadcasts because its dynamic extent happens to be 1. Axes that are not
 * cut keep what the operator itself says of them, constant or computed.
 */
#include "access_spatial.h"
#include "dynamic_dims.h"

static bool refuse(ot_why *why, ot_why reason) { return ot_acc_refuse(why, reason); }

static ot_id operand(const ot_node *n, uint32_t k) { return k < n->n_in ? n->in[k] : OT_NONE; }

/* Any axis of v from `first` on is free. */
static bool any_free(const ot_graph *g, ot_id v, int32_t first)
{
    for (int32_t a = first; v != OT_NONE && a < g->values[v].rank; a++)
        if (ot_axis_is_dynamic(g, v, a)) return true;
    return false;
}

/* An operand that is not cut broadcasts along the axis: is it sure to at every size? */
static bool broadcasts_always(const ot_graph *g, const ot_node *n, const ot_value *out,
                              uint32_t axis, const int8_t *in_axis)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || in_axis[k] >= 0) continue;
        int32_t a = (int32_t)axis - (out->rank - g->values[v].rank);
        if (a >= 0 && g->values[v].dims[a] == 1 && ot_axis_is_dynamic(g, v, a)) return false;
    }
    return true;
}

/* Convolutions, pools, transposed convolutions, cut along a picture's axis. */
static bool spatial_holds(const ot_graph *g, const ot_node *n, uint32_t axis, ot_why *why)
{
    const bool same = strncmp(ot_attr_str(n, "auto_pad", "NOTSET"), "SAME", 4) == 0;
    const bool turned = ot_op_access(n->op) == OT_ACC_CONVT;
    size_t count = 0;
    const int64_t *strides = ot_attr_ints(n, "strides", &count);
    if (axis < 2) return true;
    for (size_t k = 0; same && !turned && strides && k < count; k++)
        if (strides[k] != 1 && ot_axis_is_dynamic(g, n->in[0], (int32_t)k + 2))
            return refuse(why, OT_WHY_DYNAMIC_AUTO_PAD);
    const bool fixed = !ot_axis_is_dynamic(g, n->in[0], (int32_t)axis) &&
                       !ot_axis_is_dynamic(g, n->out[0], (int32_t)axis);
    if (turned && ot_attr_find(n, "output_shape") && !fixed)
        return refuse(why, OT_WHY_DYNAMIC_FIXED);
    return true;
}

/* Rows that a transposed convolution crops at its end may be all that a row of its input reaches.
 */
static int64_t rows_ahead(const ot_graph *g, const ot_node *n, uint32_t axis, int64_t crop,
                          int64_t padding)
{
    ot_spatial sp;
    ot_why why = OT_WHY_NONE;
    if (!ot_spatial_read(g, n, 1, &sp, &why)) return 0;
    const ot_spatial_axis *x = &sp.ax[axis - 2];
    return ot_max(0, ot_ceil_div(x->s + crop - ot_spatial_dk(x) - padding, x->s));
}

static bool is_power_of_two(float s)
{
    for (float p = 1; p <= 4096; p *= 2)
        if (s == p || s * p == 1) return true;
    return false;
}

/* Scales that are exact in floating point wherever the picture ends. */
static bool resize_holds(const ot_graph *g, const ot_node *n, uint32_t axis, ot_why *why)
{
    float scales[OT_RANK_MAX];
    const bool old = n->op == OT_OP_Upsample || n->version < 11;
    const ot_attr *attr = ot_attr_find(n, "scales");
    const uint32_t at = old ? 1 : 2;
    int64_t count = -1, entry = axis;
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes);
    if (old && attr && attr->kind == OT_ATTR_FLOATS && attr->n <= OT_RANK_MAX) {
        count = (int64_t)attr->n;
        memcpy(scales, attr->floats, attr->n * sizeof *scales);
    } else if (!ot_value_varies(g, operand(n, at))) {
        count = ot_acc_floats(g, n, at, scales, OT_RANK_MAX);
    }
    if (count <= 0) return refuse(why, OT_WHY_DYNAMIC_FIXED);
    const int32_t rank = g->values[n->in[0]].rank;
    for (size_t k = 0; !old && k < n_axes; k++)
        if (ot_acc_norm_axis(axes[k], rank) == (int32_t)axis) entry = (int64_t)k;
    if (!old && axes && entry < (int64_t)n_axes &&
        ot_acc_norm_axis(axes[entry], rank) != (int32_t)axis)
        return true; /* not resized */
    if (entry >= count) return !old && axes ? true : refuse(why, OT_WHY_DYNAMIC_FIXED);
    const char *map = ot_attr_str(n, "coordinate_transformation_mode", "");
    const bool centred = strcmp(map, "half_pixel_symmetric") == 0 ||
                         strcmp(map, "pytorch_half_pixel") == 0;
    if (!is_power_of_two(scales[entry]) || (centred && scales[entry] < 1))
        return refuse(why, OT_WHY_DYNAMIC_SCALE);
    return true;
}

/* Entries of a Reshape that mean the same at every size: 0 (as it was), -1, or a fixed extent
 * before and behind. */
static bool reshape_holds(const ot_graph *g, const ot_node *n, uint32_t axis, const int8_t *in_axis,
                          ot_why *why)
{
    int64_t shape[OT_RANK_MAX];
    const ot_id x = n->in[0], y = n->out[0];
    const ot_value *in = &g->values[x], *out = &g->values[y];
    *why = OT_WHY_DYNAMIC_FIXED;
    if (n->op == OT_OP_Unsqueeze) return !ot_value_varies(g, operand(n, 1));
    if (n->op == OT_OP_Squeeze)
        return (operand(n, 1) != OT_NONE || ot_attr_find(n, "axes")) &&
               !ot_value_varies(g, operand(n, 1));
    if (n->op == OT_OP_Flatten)
        return axis == 0 && in_axis[0] == 0 && ot_attr_int(n, "axis", 1) == 1;
    if (n->op != OT_OP_Reshape || n->version < 5 || in_axis[0] != (int8_t)axis) return false;
    if (ot_value_varies(g, operand(n, 1)) || ot_attr_int(n, "allowzero", 0) != 0) return false;
    if (ot_acc_ints(g, n, 1, shape, OT_RANK_MAX) != out->rank) return false;
    for (uint32_t k = 0; k < axis; k++) { /* in front of the cut axis nothing moves */
        const bool fixed = !ot_axis_is_dynamic(g, x, (int32_t)k) &&
                           !ot_axis_is_dynamic(g, y, (int32_t)k) && in->dims[k] == out->dims[k];
        if (shape[k] != 0 && !fixed) return false;
    }
    if (shape[axis] == 0) return true;
    return shape[axis] == -1 && !any_free(g, x, (int32_t)axis + 1) &&
           !any_free(g, y, (int32_t)axis + 1);
}

/* The cut axis is none that the node slices, or what is cut off does not depend on its extent. */
static bool slice_holds(const ot_graph *g, const ot_node *n, uint32_t axis)
{
    int64_t axes[OT_RANK_MAX], crop;
    bool listed = false;
    if (n->op != OT_OP_Slice || n->version < 10 || operand(n, 3) == OT_NONE ||
        ot_value_varies(g, n->in[3]))
        return false;
    const int64_t count = ot_acc_ints(g, n, 3, axes, OT_RANK_MAX);
    for (int64_t k = 0; k < count; k++)
        listed |= ot_acc_norm_axis(axes[k], g->values[n->in[0]].rank) == (int32_t)axis;
    if (!listed) return count >= 0;
    if (ot_value_varies(g, operand(n, 1)) || ot_value_varies(g, operand(n, 2)) ||
        ot_value_varies(g, operand(n, 4)))
        return false;
    return ot_slice_end(g, n, axis, ot_axis_is_dynamic(g, n->in[0], (int32_t)axis), &crop);
}

static bool pad_holds(const ot_graph *g, const ot_node *n, uint32_t axis, ot_why *why)
{
    ot_op_tile t;
    ot_win in[4];
    const int64_t extent = g->values[n->out[0]].dims[axis];
    *why = OT_WHY_DYNAMIC_FIXED;
    if (ot_value_varies(g, operand(n, 1)) || ot_value_varies(g, operand(n, 3)) || n->n_in > 4)
        return false;
    t = (ot_op_tile){.need = {0, extent}, .in = in};
    if (!ot_access_window(g, n, 0, axis, &t, why)) return false;
    *why = OT_WHY_DYNAMIC_BORDER;
    const int64_t whole = g->values[n->in[0]].dims[axis];
    const bool crops = t.in[0].lo != 0 || t.in[0].hi != whole;
    return !crops &&
           (strcmp(ot_attr_str(n, "mode", "constant"), "reflect") != 0 || t.pad_lo + t.pad_hi == 0);
}

bool ot_dynamic_allows(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       const int8_t *in_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    if (!g->model->dynamic_dims) return true;
    switch (ot_op_access(n->op)) {
    case OT_ACC_POINTWISE:
    case OT_ACC_QUANT:
    case OT_ACC_MATMUL:
    case OT_ACC_GEMM:
        return broadcasts_always(g, n, out, axis, in_axis) ? true
                                                           : refuse(why, OT_WHY_DYNAMIC_BROADCAST);
    case OT_ACC_CONV:
    case OT_ACC_CONVT:
    case OT_ACC_POOL: return spatial_holds(g, n, axis, why);
    case OT_ACC_GLOBALPOOL:
    case OT_ACC_NORM:
    case OT_ACC_SOFTMAX:
    case OT_ACC_TRANSPOSE:
    case OT_ACC_SPLIT: /* never along the axis that it splits */
    case OT_ACC_GATHER:
    case OT_ACC_BLOCK: return true;
    case OT_ACC_EINSUM: /* what an ellipsis covers broadcasts */
        return !strchr(ot_attr_str(n, "equation", ""), '.') ? true
                                                            : refuse(why, OT_WHY_DYNAMIC_BROADCAST);
    case OT_ACC_TILE:
        return !ot_value_varies(g, operand(n, 1)) &&
                       ot_acc_in(g, n, 0)->dims[axis] == out->dims[axis]
                   ? true
                   : refuse(why, OT_WHY_DYNAMIC_FIXED);
    case OT_ACC_REDUCE:
    case OT_ACC_CUMSUM:
        return !ot_value_varies(g, operand(n, 1)) ? true : refuse(why, OT_WHY_DYNAMIC_FIXED);
    case OT_ACC_CONCAT:
        return ot_acc_norm_axis(ot_attr_int(n, "axis", 1), out->rank) != (int32_t)axis
                   ? true
                   : refuse(why, OT_WHY_DYNAMIC_FIXED);
    case OT_ACC_RESIZE: return resize_holds(g, n, axis, why);
    case OT_ACC_RESHAPE: return reshape_holds(g, n, axis, in_axis, why);
    case OT_ACC_SLICE: return slice_holds(g, n, axis) ? true : refuse(why, OT_WHY_DYNAMIC_FIXED);
    case OT_ACC_PAD: return pad_holds(g, n, axis, why);
    default: return refuse(why, OT_WHY_DYNAMIC_OPERATOR);
    }
}

ot_end_border ot_access_end(const ot_graph *g, const ot_node *n, uint32_t axis)
{
    ot_spatial sp;
    ot_why why = OT_WHY_NONE;
    ot_end_border e = {0, 0, 0};
    switch (ot_op_access(n->op)) {
    case OT_ACC_CONV:
        if (axis >= 2 && ot_spatial_read(g, n, ot_op_row_of(n->op)->weights, &sp, &why) &&
            ot_spatial_read_pads(n, &sp, &why))
            e.pad_hi = sp.ax[axis - 2].pe;
        break;
    case OT_ACC_POOL:
        if (axis >= 2 && ot_spatial_read(g, n, OT_NONE, &sp, &why) &&
            ot_spatial_read_pads(n, &sp, &why))
            e = (ot_end_border){sp.ax[axis - 2].pe, ot_attr_int(n, "ceil_mode", 0) != 0, 0};
        break;
    case OT_ACC_CONVT:
        if (axis < 2) break;
        ot_convt_end(g, n, axis, &e.pad_hi, &e.extra);
        e.ahead = rows_ahead(g, n, axis, e.pad_hi, e.extra);
        break;
    case OT_ACC_PAD: e.pad_hi = ot_pad_end(g, n, axis); break;
    case OT_ACC_SLICE: /* cuts off rows that tiles must not take for theirs */
        if (ot_slice_end(g, n, axis, ot_axis_is_dynamic(g, n->in[0], (int32_t)axis), &e.pad_hi))
            e.ahead = e.pad_hi;
        break;
    default: break;
    }
    return e;
}
