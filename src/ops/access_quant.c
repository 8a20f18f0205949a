/* Slice relation of QuantizeLinear and DequantizeLinear.
 *
 *   per tensor  scale is one number                  every axis free, scale whole
 *   per axis    scale [E] along attribute `axis`     cutting that axis cuts scale and zero point
 *                                                    too
 *                                                    too, to no less than two elements (quirk
 *                                                    QUANT_ONE)
 *   blocked     scale of the rank of x (block_size)  refused
 */
#include "access_same.h"
#include "quirks.h"

/* Operands 1 and 2 hold one number in all (also written [1]). */
static bool is_single(const ot_value *v)
{
    for (int32_t i = 0; i < v->rank; i++)
        if (v->dims[i] != 1) return false;
    return true;
}

static bool quant_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0);
    (void)out_axis;
    if (!ot_acc_alike(g, n, out_index, axis, why)) return false;
    if (ot_attr_int(n, "block_size", 0) != 0) return ot_acc_refuse(why, OT_WHY_QUANT_BLOCKS);
    in_axis[0] = (int8_t)axis;
    for (uint32_t k = 1; k < n->n_in; k++) {
        const ot_value *p = ot_acc_in(g, n, k);
        if (!p || (p->rank <= 1 && is_single(p))) continue;
        int32_t along = ot_acc_norm_axis(ot_attr_int(n, "axis", 1), x->rank);
        if (p->rank != 1 || along < 0 || p->dims[0] != x->dims[along])
            return ot_acc_refuse(why, OT_WHY_QUANT_SCALE);
        if (along == (int32_t)axis) in_axis[k] = 0;
    }
    return true;
}

static bool quant_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    int8_t in_axis[OT_ACC_ARITY], out_axis[OT_ACC_ARITY];
    memset(in_axis, OT_AX_WHOLE, sizeof in_axis);
    if (!quant_axis(g, n, out_index, axis, in_axis, out_axis, why)) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (in_axis[k] < 0) continue;
        if (k > 0 && t->need.hi - t->need.lo == 1 &&
            ot_quirk_concerns(OT_QUIRK_QUANT_ONE, OT_BY_ALL))
            return ot_acc_refuse(why, OT_WHY_QUANT_ONE);
        t->in[k] = t->need;
    }
    t->made = t->need;
    return true;
}

const ot_access_ops ot_access_quant = {quant_axis, quant_window, NULL};
