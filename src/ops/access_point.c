/* Slice relation of element-wise operators, normalisations and softmax.
 *
 * All three share one shape: an output axis that is no part of a reduction is cut, and every
 * operand that varies along it is cut in the same place. They differ in which axes are dynamic:
 *
 *   Add, Where, PRelu...    every axis; operands broadcast as in numpy (or by `axis`, before opset
 *                           7)
 *   BatchNormalization      every axis; scale, bias, mean, var follow the channel axis
 *   InstanceNormalization   batch and channel       GroupNormalization     batch
 *   LayerNorm, RMSNorm      axes before `axis`      LpNormalization        all but `axis`
 *   MeanVarianceNorm        axes not in `axes`      LRN                    all but the channel axis
 *   Softmax family          opset >= 13: all but `axis`; before: axes before `axis` (it flattens)
 *
 * No attribute of these operators depends on an extent, so the node of a tile is a plain clone.
 */
#include "access_same.h"
#include "quirks.h"

/* ---- helpers (access_same.h) ---- */

int32_t ot_acc_broadcast(const ot_value *in, const ot_value *out, int32_t shift, uint32_t axis)
{
    int32_t ax = (int32_t)axis - shift;
    if (ax < 0 || ax >= in->rank) return OT_AX_WHOLE;
    if (in->dims[ax] == out->dims[axis]) return ax;
    return in->dims[ax] == 1 ? OT_AX_WHOLE : OT_AX_BAD;
}

int32_t ot_acc_broadcast_last(const ot_value *in, const ot_value *out, uint32_t axis)
{
    return ot_acc_broadcast(in, out, out->rank - in->rank, axis);
}

bool ot_acc_set(int8_t *in_axis, uint32_t k, int32_t ax, ot_why *why)
{
    if (ax == OT_AX_BAD) return ot_acc_refuse(why, OT_WHY_NO_BROADCAST);
    in_axis[k] = (int8_t)ax;
    return true;
}

bool ot_acc_regular(const ot_graph *g, const ot_node *n, ot_why *why)
{
    if (n->n_in > OT_ACC_ARITY || n->n_out > OT_ACC_ARITY)
        return ot_acc_refuse(why, OT_WHY_TOO_MANY_OPERANDS);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *v = ot_acc_in(g, n, k);
        for (int32_t i = 0; v && i < v->rank; i++)
            if (v->dims[i] < 1) return ot_acc_refuse(why, OT_WHY_EMPTY_OPERAND);
    }
    return true;
}

bool ot_acc_follow(const ot_acc_question *q, uint32_t k, int32_t axis)
{
    const ot_value *v = ot_acc_in(q->g, q->n, k);
    if (!v) return true;
    if (axis < 0 || axis >= v->rank || v->dims[axis] != q->out->dims[q->axis])
        return ot_acc_refuse(q->why, q->differ);
    q->in_axis[k] = (int8_t)axis;
    return true;
}

bool ot_acc_alike(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                  ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    if (!ot_acc_regular(g, n, why)) return false;
    return (x && x->rank == out->rank && x->dims[axis] == out->dims[axis]) ||
           ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
}

bool ot_acc_same_window(ot_acc_axis_fn fn, const ot_graph *g, const ot_node *n, uint32_t out_index,
                        uint32_t axis, ot_op_tile *t, ot_why *why)
{
    int8_t in_axis[OT_ACC_ARITY], out_axis[OT_ACC_ARITY];
    if (!ot_acc_regular(g, n, why)) return false;
    memset(in_axis, OT_AX_WHOLE, sizeof in_axis);
    memset(out_axis, OT_AX_WHOLE, sizeof out_axis);
    if (!fn(g, n, out_index, axis, in_axis, out_axis, why)) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (in_axis[k] >= 0) t->in[k] = t->need;
    t->made = t->need;
    return true;
}

bool ot_acc_same_follows(ot_acc_axis_fn fn, const ot_graph *g, const ot_node *n, uint32_t out_index,
                         uint32_t axis, uint64_t *follows)
{
    int8_t in_axis[OT_ACC_ARITY], out_axis[OT_ACC_ARITY];
    ot_why why;
    if (!ot_acc_regular(g, n, &why)) return false;
    memset(in_axis, OT_AX_WHOLE, sizeof in_axis);
    memset(out_axis, OT_AX_WHOLE, sizeof out_axis);
    if (!fn(g, n, out_index, axis, in_axis, out_axis, &why)) return false;
    *follows = 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (in_axis[k] >= 0) *follows |= UINT64_C(1) << k;
    return true;
}

/* ---- element-wise ---- */

/* Binary operators that had `broadcast` and `axis` attributes before opset 7. */
static bool had_legacy_broadcast(ot_op op)
{
    switch (op) {
    case OT_OP_Add:
    case OT_OP_Sub:
    case OT_OP_Mul:
    case OT_OP_Div:
    case OT_OP_Pow:
    case OT_OP_And:
    case OT_OP_Or:
    case OT_OP_Xor:
    case OT_OP_Equal:
    case OT_OP_Less:
    case OT_OP_Greater: return true;
    default: return false;
    }
}

/* Operands that steer the operator and do not take part in its broadcasting. */
static bool is_parameter(const ot_node *n, uint32_t k)
{
    return k > 0 && (n->op == OT_OP_Clip || n->op == OT_OP_Dropout || n->op == OT_OP_CastLike);
}

/* Which axis of operand k follows the output's `axis`. */
static int32_t point_follow(const ot_graph *g, const ot_node *n, uint32_t k, const ot_value *out,
                            uint32_t axis)
{
    const ot_value *in = ot_acc_in(g, n, k);
    if (!in || is_parameter(n, k)) return OT_AX_WHOLE;
    bool legacy = n->version > 0 && n->version < 7;
    if (legacy && k == 1 && n->op == OT_OP_PRelu && in->rank == 1 && out->rank >= 2)
        return ot_acc_broadcast(in, out, 1, axis); /* one slope per channel */
    if (legacy && k == 1 && had_legacy_broadcast(n->op) && ot_attr_int(n, "broadcast", 0) == 1) {
        const ot_attr *a = ot_attr_find(n, "axis");
        if (a && a->kind == OT_ATTR_INT) {
            int32_t shift = ot_acc_norm_axis(a->i, out->rank);
            if (shift < 0 || shift + in->rank > out->rank) return OT_AX_BAD;
            return ot_acc_broadcast(in, out, shift, axis);
        }
    }
    if (in->rank > out->rank) return OT_AX_BAD;
    return ot_acc_broadcast_last(in, out, axis);
}

static bool point_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    if (n->op == OT_OP_Dropout && ot_acc_in(g, n, 2)) {
        int64_t training = 1;
        if (ot_acc_ints(g, n, 2, &training, 1) != 1 || training != 0)
            return ot_acc_refuse(why, OT_WHY_DROPOUT_TRAINING);
    }
    bool experimental = n->op == OT_OP_Affine || n->op == OT_OP_ImageScaler;
    if (experimental && ot_quirk_concerns(OT_QUIRK_EXPERIMENTAL, OT_BY_ALL))
        return ot_acc_refuse(why, OT_WHY_EXPERIMENTAL);
    if (n->op == OT_OP_ImageScaler && axis == 1) return ot_acc_refuse(why, OT_WHY_SCALER_CHANNELS);
    bool any = false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (!ot_acc_set(in_axis, k, point_follow(g, n, k, out, axis), why)) return false;
        any = any || in_axis[k] >= 0;
    }
    if (!any) return ot_acc_refuse(why, OT_WHY_NO_OPERAND_VARIES);
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *o = ot_acc_out(g, n, k); /* Dropout's mask has the shape of its data */
        if (o && o->rank == out->rank && o->dims[axis] == out->dims[axis])
            out_axis[k] = (int8_t)axis;
    }
    return true;
}

/* Sum, Max, Mean... take any number of operands: no buffer, operand by operand. */
static bool point_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    (void)why;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (point_follow(g, n, k, out, axis) >= 0) t->in[k] = t->need;
    t->made = t->need;
    return true;
}

bool ot_acc_point_follows(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          uint64_t *follows)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    if (n->n_in > 64) return false;
    *follows = 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (point_follow(g, n, k, out, axis) >= 0) *follows |= UINT64_C(1) << k;
    return true;
}

const ot_access_ops ot_access_pointwise = {point_axis, point_window, NULL};

/* ---- normalisations ---- */

/* Operands 1.. with one number per channel (or omitted). */
static bool per_channel(const ot_graph *g, const ot_node *n, int64_t channels)
{
    for (uint32_t k = 1; k < n->n_in; k++) {
        const ot_value *v = ot_acc_in(g, n, k);
        if (v && (v->rank != 1 || v->dims[0] != channels)) return false;
    }
    return true;
}

static void follow_channels(const ot_graph *g, const ot_node *n, int8_t *in_axis)
{
    for (uint32_t k = 1; k < n->n_in; k++)
        if (ot_acc_in(g, n, k)) in_axis[k] = 0;
}

static bool batch_norm_trains(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 1; k < n->n_out; k++)
        if (ot_acc_out(g, n, k)) return true;
    if (n->version >= 14) return ot_attr_int(n, "training_mode", 0) != 0;
    return n->version > 0 && n->version < 7 && ot_attr_int(n, "is_test", 0) == 0;
}

static bool batch_norm_axis(const ot_graph *g, const ot_node *n, const ot_value *x, uint32_t axis,
                            int8_t *in_axis, ot_why *why)
{
    if (batch_norm_trains(g, n)) return ot_acc_refuse(why, OT_WHY_BATCH_NORM_TRAINING);
    if (ot_attr_int(n, "spatial", 1) == 0) return ot_acc_refuse(why, OT_WHY_BATCH_NORM_SPATIAL);
    if (!per_channel(g, n, x->rank > 1 ? x->dims[1] : 1))
        return ot_acc_refuse(why, OT_WHY_BATCH_NORM_STATISTICS);
    in_axis[0] = (int8_t)axis;
    if (axis == 1) follow_channels(g, n, in_axis);
    return true;
}

static bool instance_norm_axis(const ot_graph *g, const ot_node *n, const ot_value *x,
                               uint32_t axis, int8_t *in_axis, ot_why *why)
{
    if (axis > 1) return ot_acc_refuse(why, OT_WHY_INSTANCE_NORM);
    if (x->rank < 2 || !per_channel(g, n, x->dims[1]))
        return ot_acc_refuse(why, OT_WHY_INSTANCE_NORM_SCALE);
    in_axis[0] = (int8_t)axis;
    if (axis == 1) follow_channels(g, n, in_axis);
    return true;
}

/* LayerNormalization and RMSNormalization; Mean and InvStdDev keep the rank of X. */
static bool layer_norm_axis(const ot_graph *g, const ot_node *n, const ot_value *x, uint32_t axis,
                            int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    int32_t first = ot_acc_norm_axis(ot_attr_int(n, "axis", -1), x->rank);
    if (first < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    if ((int32_t)axis >= first) return ot_acc_refuse(why, OT_WHY_LAYER_NORM);
    in_axis[0] = (int8_t)axis;
    for (uint32_t k = 1; k < n->n_in; k++) {
        const ot_value *p = ot_acc_in(g, n, k);
        if (!p) continue;
        int32_t ax = p->rank > x->rank ? OT_AX_BAD : ot_acc_broadcast_last(p, x, axis);
        if (!ot_acc_set(in_axis, k, ax, why)) return false;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *o = ot_acc_out(g, n, k);
        if (o && o->rank == x->rank && o->dims[axis] == x->dims[axis]) out_axis[k] = (int8_t)axis;
    }
    return true;
}

static bool mvn_axis(const ot_node *n, const ot_value *x, uint32_t axis, int8_t *in_axis,
                     ot_why *why)
{
    static const int64_t usual[] = {0, 2, 3};
    if (n->version < 9) return ot_acc_refuse(why, OT_WHY_MVN_OPSET);
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(n, "axes", &n_axes);
    if (!axes) {
        axes = usual;
        n_axes = 3;
    }
    for (size_t i = 0; i < n_axes; i++)
        if (ot_acc_norm_axis(axes[i], x->rank) == (int32_t)axis)
            return ot_acc_refuse(why, OT_WHY_MVN);
    in_axis[0] = (int8_t)axis;
    return true;
}

/* LRN (channel axis) and LpNormalization (`axis`): one operand, one axis needed whole. */
static bool all_but_one(const ot_value *x, uint32_t axis, int64_t whole, int8_t *in_axis,
                        ot_why *why, ot_why reason)
{
    int32_t w = ot_acc_norm_axis(whole, x->rank);
    if (w < 0) return ot_acc_refuse(why, OT_WHY_NORM_AXIS_RANGE);
    if (w == (int32_t)axis) return ot_acc_refuse(why, reason);
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool norm_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0);
    if (!ot_acc_alike(g, n, out_index, axis, why)) return false;
    switch (n->op) {
    case OT_OP_BatchNormalization: return batch_norm_axis(g, n, x, axis, in_axis, why);
    case OT_OP_InstanceNormalization: return instance_norm_axis(g, n, x, axis, in_axis, why);
    case OT_OP_LayerNormalization:
    case OT_OP_RMSNormalization: return layer_norm_axis(g, n, x, axis, in_axis, out_axis, why);
    case OT_OP_GroupNormalization:
        if (axis != 0) return ot_acc_refuse(why, OT_WHY_GROUP_NORM);
        in_axis[0] = 0;
        return true;
    case OT_OP_LpNormalization:
        return all_but_one(x, axis, ot_attr_int(n, "axis", -1), in_axis, why, OT_WHY_LP_NORM);
    case OT_OP_LRN: return all_but_one(x, axis, 1, in_axis, why, OT_WHY_LRN);
    case OT_OP_MeanVarianceNormalization: return mvn_axis(n, x, axis, in_axis, why);
    default: return false;
    }
}

const ot_access_ops ot_access_norm = {norm_axis, NULL, NULL};

/* ---- Softmax, LogSoftmax, Hardmax ---- */

static bool softmax_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0);
    (void)out_axis;
    if (!ot_acc_alike(g, n, out_index, axis, why)) return false;
    bool flattens = n->version < 13; /* coerces to 2-D: [dims before axis] x [axis and after] */
    int64_t attr = ot_attr_int(n, "axis", flattens ? 1 : -1);
    int32_t whole = ot_acc_norm_axis(attr, x->rank);
    if (flattens && attr == x->rank) whole = x->rank; /* every row has one element */
    if (whole < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    if (flattens && (int32_t)axis >= whole) return ot_acc_refuse(why, OT_WHY_SOFTMAX_OPSET);
    if ((int32_t)axis == whole) return ot_acc_refuse(why, OT_WHY_SOFTMAX);
    in_axis[0] = (int8_t)axis;
    return true;
}

const ot_access_ops ot_access_softmax = {softmax_axis, NULL, NULL};
