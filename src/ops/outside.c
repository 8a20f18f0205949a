/* What rows before the first and behind the last one of an operand count as, where an operator's
 * windows reach out of it.
 */
#include "access.h"

static ot_outside by(ot_outside_kind kind) { return (ot_outside){kind, OT_NONE, 0}; }

/* The zero point of a quantised convolution's operand 0. */
static ot_outside zero_point(const ot_node *n, uint32_t k)
{
    ot_outside o = by(OT_OUTSIDE_VALUE);
    if (k < n->n_in) o.operand = n->in[k];
    return o;
}

static ot_outside of_pool(const ot_node *n)
{
    switch (n->op) {
    case OT_OP_MaxPool: return by(OT_OUTSIDE_LOWEST);
    case OT_OP_LpPool: return by(OT_OUTSIDE_VALUE);
    case OT_OP_AveragePool:
        return by(ot_attr_int(n, "count_include_pad", 0) ? OT_OUTSIDE_VALUE : OT_OUTSIDE_LEFT_OUT);
    default: return by(OT_OUTSIDE_UNKNOWN);
    }
}

static ot_outside of_pad(const ot_node *n)
{
    const char *mode = ot_attr_str(n, "mode", "constant");
    if (strcmp(mode, "edge") == 0) return by(OT_OUTSIDE_EDGE);
    if (strcmp(mode, "reflect") == 0) return by(OT_OUTSIDE_REFLECT);
    if (strcmp(mode, "constant") != 0) return by(OT_OUTSIDE_UNKNOWN);
    ot_outside o = by(OT_OUTSIDE_VALUE);
    if (n->version < 11)
        o.number = ot_attr_float(n, "value", 0);
    else if (n->n_in > 2)
        o.operand = n->in[2];
    return o;
}

ot_outside ot_access_outside(const ot_node *n)
{
    if (ot_is_fused_conv(n)) return by(OT_OUTSIDE_VALUE);
    switch (ot_op_access(n->op)) {
    case OT_ACC_CONV:
        if (n->op == OT_OP_ConvInteger || n->op == OT_OP_QLinearConv) return zero_point(n, 2);
        return by(OT_OUTSIDE_VALUE);
    case OT_ACC_CONVT: return by(OT_OUTSIDE_VALUE);
    case OT_ACC_POOL: return of_pool(n);
    case OT_ACC_PAD: return of_pad(n);
    case OT_ACC_RESIZE:
        return by(ot_attr_int(n, "exclude_outside", 0) ? OT_OUTSIDE_UNKNOWN : OT_OUTSIDE_EDGE);
    default: return by(OT_OUTSIDE_UNKNOWN);
    }
}
