/* Slice relation of operators of domain com.microsoft, which ONNX Runtime's own optimiser writes
 * into the models that it saves. They have no row in ops.def; their shapes are in shape_extra.c.
 *
 *   Gelu, FastGelu, BiasGelu...   element-wise; a bias broadcasts
 *   QLinearAdd, QLinearMul        element-wise operands 0 and 3; scales and zero points stay whole
 *   QLinearConcat                 operands from 2 on are triples of a piece, its scale and zero
 *   FusedConv                     as Conv; a summand, operand 3, is cut as what is made
 *   FusedMatMul                   rows of A, columns of B, batches of both
 *   SkipLayerNormalization        all axes but the last
 *   QLinearLeakyRelu, ...Sigmoid  element-wise operand 0; numbers stay whole
 *   QLinearSoftmax                all axes but its own
 *   QLinearAveragePool            as AveragePool; QLinearGlobalAveragePool: batch and channels
 *   QuantizeLinear, ...           as the standard's, with one scale
 *
 * What transformers have is in access_transformers.c.

 * A tile is a plain clone, but for the pads of a convolution and the pieces that it does not read.
 */
#include "access_contrib.h"
#include "access_spatial.h"

/* Operand k, broadcast to the output, follows it. */
static bool follow(const ot_graph *g, const ot_node *n, uint32_t k, const ot_value *out,
                   uint32_t axis, int8_t *in_axis, ot_why *why)
{
    const ot_value *v = ot_acc_in(g, n, k);
    if (!v) return true;
    if (v->rank > out->rank) return ot_acc_refuse(why, OT_WHY_NO_BROADCAST);
    return ot_acc_set(in_axis, k, ot_acc_broadcast_last(v, out, axis), why);
}

/* Operands [0, n) are alike or broadcast. */
static bool point_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (!follow(g, n, k, out, axis, in_axis, why)) return false;
    return true;
}

/* (a, its scale, its zero point, b, its scale, its zero point, ...): two operands and numbers. */
static bool binary_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    return ot_acc_regular(g, n, why) && follow(g, n, 0, out, axis, in_axis, why) &&
           follow(g, n, 3, out, axis, in_axis, why);
}

/* ---- QLinearConcat ---- */

static int32_t joined_axis(const ot_node *n, int32_t rank)
{
    return ot_acc_norm_axis(ot_attr_int(n, "axis", 0), rank);
}

static bool concat_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    const int32_t along = joined_axis(n, out->rank);
    int64_t total = 0;
    (void)out_axis;
    if (along < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    for (uint32_t k = 2; k < n->n_in; k += 3) {
        const ot_value *in = ot_acc_in(g, n, k);
        if (!in || in->rank != out->rank) return ot_acc_refuse(why, OT_WHY_CONCAT_OPERAND);
        if (in->dims[along] < 1) return ot_acc_refuse(why, OT_WHY_EMPTY_OPERAND);
        if (along != (int32_t)axis && in->dims[axis] != out->dims[axis])
            return ot_acc_refuse(why, OT_WHY_CONCAT_DIFFER);
        if (!ot_add_i64(total, in->dims[along], &total))
            return ot_acc_refuse(why, OT_WHY_CONCAT_OVERFLOW);
        in_axis[k] = (int8_t)axis;
    }
    return total == out->dims[along] ? true : ot_acc_refuse(why, OT_WHY_CONCAT_SUM);
}

static bool concat_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          ot_op_tile *t, ot_why *why)
{
    const bool joins = joined_axis(n, ot_acc_out(g, n, out_index)->rank) == (int32_t)axis;
    int64_t at = 0; /* where the piece begins in the output */
    (void)why;
    for (uint32_t k = 2; k < n->n_in; k += 3) {
        const int64_t extent = ot_acc_in(g, n, k)->dims[axis];
        const int64_t lo = ot_max(t->need.lo - at, 0), hi = ot_min(t->need.hi - at, extent);
        t->in[k] = !joins ? t->need : lo < hi ? (ot_win){lo, hi} : (ot_win){0, 0};
        at += extent;
    }
    return true;
}

/* Pieces that the tile does not read go, with their scales: one that stays alone is scaled still.
 */
static ot_status concat_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                              uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    const int32_t along = joined_axis(n, ot_acc_out(g, n, axes[0].out_index)->rank);
    const ot_op_tile *t = along < 0 ? NULL : ot_acc_cut(axes, n_axes, (uint32_t)along);
    (void)arena;
    for (uint32_t k = 2; t && k + 2 < n->n_in; k += 3)
        if (t->in[k].lo >= t->in[k].hi) out->drop[k] = out->drop[k + 1] = out->drop[k + 2] = true;
    return OT_OK;
}

/* ---- FusedConv ---- */

static bool conv_read(const ot_graph *g, const ot_node *n, ot_spatial *sp, ot_why *why)
{
    return ot_spatial_read(g, n, 1, sp, why) && ot_spatial_read_pads(n, sp, why);
}

static bool conv_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index), *sum = ot_acc_in(g, n, 3);
    ot_spatial sp;
    (void)out_axis;
    if (axis == 1) return ot_acc_refuse(why, OT_WHY_CONV_CHANNELS);
    if (!conv_read(g, n, &sp, why)) return false;
    const ot_spatial_axis *a = &sp.ax[axis < 2 ? 0 : axis - 2];
    if (axis >= 2 && a->out != ot_floor_div(a->in + a->pb + a->pe - ot_spatial_dk(a), a->s) + 1)
        return ot_acc_refuse(why, OT_WHY_KERNEL_EXTENT);
    if (axis == 0 && !ot_spatial_same_extent(g, n, 0))
        return ot_acc_refuse(why, OT_WHY_BATCH_DIFFERS);
    in_axis[0] = (int8_t)axis;
    if (!sum) return true;
    if (sum->rank != out->rank || sum->dims[axis] != out->dims[axis])
        return ot_acc_refuse(why, OT_WHY_NO_BROADCAST);
    in_axis[3] = (int8_t)axis;
    return true;
}

static bool conv_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        ot_op_tile *t, ot_why *why)
{
    ot_spatial sp;
    (void)out_index;
    t->in[0] = t->need;
    if (axis >= 2 && (!conv_read(g, n, &sp, why) || !ot_spatial_window(&sp.ax[axis - 2], t, why)))
        return false;
    if (ot_acc_in(g, n, 3)) t->in[3] = t->made;
    return true;
}

static ot_status conv_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                            uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    ot_why why = OT_WHY_NONE;
    ot_spatial sp;
    if (!ot_spatial_is_cut(axes, n_axes)) return OT_OK;
    if (!conv_read(g, n, &sp, &why)) OT_BUG("a tile was made of a FusedConv that is not cut");
    return ot_spatial_set_pads(&sp, axes, n_axes, arena, out);
}

/* ---- FusedMatMul ---- */

/* alpha * op(A) op(B), where op turns the last two axes; turned batches are left alone. */
static bool matmul_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *a = ot_acc_in(g, n, 0), *b = ot_acc_in(g, n, 1),
                   *y = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (ot_attr_int(n, "transBatchA", 0) != 0 || ot_attr_int(n, "transBatchB", 0) != 0)
        return ot_acc_refuse(why, OT_WHY_MATMUL_RANKS);
    if (!a || !b || a->rank < 2 || b->rank < 2 || y->rank != ot_max(a->rank, b->rank))
        return ot_acc_refuse(why, OT_WHY_MATMUL_RANKS);
    const int32_t at = (int32_t)axis, rows = y->rank - 2;
    const int32_t of_a = ot_attr_int(n, "transA", 0) ? a->rank - 1 : a->rank - 2,
                  of_b = ot_attr_int(n, "transB", 0) ? b->rank - 2 : b->rank - 1;
    if (at < rows)
        return follow(g, n, 0, y, axis, in_axis, why) && follow(g, n, 1, y, axis, in_axis, why);
    const ot_value *from = at == rows ? a : b;
    const int32_t cut = at == rows ? of_a : of_b;
    if (from->dims[cut] != y->dims[axis]) return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    in_axis[at == rows ? 0 : 1] = (int8_t)cut;
    return true;
}

/* ---- SkipLayerNormalization: (x, skip, gamma, beta, bias) ---- */

static bool skip_norm_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0);
    if (!ot_acc_alike(g, n, out_index, axis, why)) return false;
    if ((int32_t)axis == x->rank - 1) return ot_acc_refuse(why, OT_WHY_LAYER_NORM);
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *o = ot_acc_out(g, n, k);
        if (o && o->rank == x->rank && o->dims[axis] == x->dims[axis]) out_axis[k] = (int8_t)axis;
    }
    return follow(g, n, 0, x, axis, in_axis, why) && follow(g, n, 1, x, axis, in_axis, why);
}

/* ---- quantized operators of operand 0 ---- */

/* Scales and zero points are numbers. */
static bool one_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                     int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_axis;
    if (!ot_acc_alike(g, n, out_index, axis, why)) return false;
    for (uint32_t k = 1; k < n->n_in; k++) {
        const ot_value *v = ot_acc_in(g, n, k);
        if (v && (v->rank > 1 || (v->rank == 1 && v->dims[0] != 1)))
            return ot_acc_refuse(why, OT_WHY_QUANT_SCALE);
    }
    in_axis[0] = (int8_t)axis;
    return true;
}

/* Before opset 13 all axes from `axis` on are one. */
static bool softmax_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const int32_t along = ot_acc_norm_axis(ot_attr_int(n, "axis", -1),
                                           ot_acc_out(g, n, out_index)->rank);
    const bool single = ot_attr_int(n, "opset", 0) >= 13;
    if (along < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    if (single ? along == (int32_t)axis : along <= (int32_t)axis)
        return ot_acc_refuse(why, OT_WHY_SOFTMAX);
    return one_axis(g, n, out_index, axis, in_axis, out_axis, why);
}

/* Of plain order: import turns the other one (nhwc_nodes.c). */
static bool average_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    if (ot_attr_int(n, "channels_last", 0) != 0) return ot_acc_refuse(why, OT_WHY_CHANNELS_LAST);
    return ot_access_pool.axis(g, n, out_index, axis, in_axis, out_axis, why);
}

static bool average_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           ot_op_tile *t, ot_why *why)
{
    return ot_access_pool.window(g, n, out_index, axis, t, why);
}

static ot_status average_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                               uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    return ot_access_pool.adapt(g, n, axes, n_axes, arena, out);
}

static bool global_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    if (ot_attr_int(n, "channels_last", 0) != 0) return ot_acc_refuse(why, OT_WHY_CHANNELS_LAST);
    return ot_access_globalpool.axis(g, n, out_index, axis, in_axis, out_axis, why);
}

static bool global_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          ot_op_tile *t, ot_why *why)
{
    return ot_access_globalpool.window(g, n, out_index, axis, t, why);
}

static const ot_contrib table[] = {
    {"Gelu", {point_axis, NULL, NULL}},
    {"FastGelu", {point_axis, NULL, NULL}},
    {"QuickGelu", {point_axis, NULL, NULL}},
    {"BiasGelu", {point_axis, NULL, NULL}},
    {"QLinearAdd", {binary_axis, NULL, NULL}},
    {"QLinearMul", {binary_axis, NULL, NULL}},
    {"QLinearLeakyRelu", {one_axis, NULL, NULL}},
    {"QLinearSigmoid", {one_axis, NULL, NULL}},
    {"QLinearSoftmax", {softmax_axis, NULL, NULL}},
    {"QLinearAveragePool", {average_axis, average_window, average_adapt}},
    {"QLinearGlobalAveragePool", {global_axis, global_window, NULL}},
    {"QuantizeLinear", {one_axis, NULL, NULL}},
    {"DequantizeLinear", {one_axis, NULL, NULL}},
    {"QLinearConcat", {concat_axis, concat_window, concat_adapt}},
    {"FusedConv", {conv_axis, conv_window, conv_adapt}},
    {"FusedMatMul", {matmul_axis, NULL, NULL}},
    {"SkipLayerNormalization", {skip_norm_axis, NULL, NULL}},
    {"SkipSimplifiedLayerNormalization", {skip_norm_axis, NULL, NULL}},
    {NULL, {NULL, NULL, NULL}},
};

static const ot_access_ops *find(const ot_contrib *rows, const char *op_type)
{
    for (; rows->op_type; rows++)
        if (strcmp(op_type, rows->op_type) == 0) return &rows->ops;
    return NULL;
}

const ot_access_ops *ot_access_contrib(const ot_node *n)
{
    if (n->op != OT_OP_OPAQUE || n->calls_function) return NULL;
    if (!n->domain[0]) return ot_access_extra(n);
    if (strcmp(n->domain, "com.microsoft") != 0) return NULL;
    const ot_access_ops *ops = find(table, n->op_type);
    return ops ? ops : find(ot_access_transformers, n->op_type);
}

bool ot_is_fused_conv(const ot_node *n)
{
    return n->op == OT_OP_OPAQUE && strcmp(n->op_type, "FusedConv") == 0 && ot_access_contrib(n);
}

bool ot_makes_all_outputs(const ot_node *n)
{
    if (n->op != OT_OP_OPAQUE) return n->op == OT_OP_Split || n->op == OT_OP_TopK;
    return strcmp(n->domain, "com.microsoft") == 0 &&
           strcmp(n->op_type, "EmbedLayerNormalization") == 0;
}
