/* A matrix product and the number that its result is multiplied by or divided by, as one product
 * with a factor.
 *
 *   MatMul --> Mul by 0.125
 *   PRODUCT    FACTOR
 *
 * Attention whose scores others read, too, scales them so: a pass over the largest array of the
 * network less.
 */
#include "fusion.h"

static void take(ot_group *x, uint32_t place, ot_group_role role)
{
    x->parts[x->n++] = (ot_group_part){place, role};
}

bool ot_group_product(const ot_group_view *v, const ot_group_rules *r, uint32_t place,
                      ot_group *out)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape s;
    *out = (ot_group){.kind = OT_GROUP_PRODUCT, .result = OT_NONE, .residual = OT_NONE};
    if (!n || n->op != OT_OP_MatMul || n->n_in != 2 || n->n_out < 1 ||
        !ot_group_is_real(v, n->out[0], &s) ||
        !ot_group_is_real(v, ot_group_operand(v, place, 0), &s) ||
        !ot_group_is_real(v, ot_group_operand(v, place, 1), &s))
        return false;
    uint32_t next = ot_group_only_reader(v, n->out[0]);
    const ot_node *scale = next == OT_NONE ? NULL : v->node(v->of, next);
    if (!scale || (scale->op != OT_OP_Mul && scale->op != OT_OP_Div) || scale->n_out < 1)
        return false;
    uint32_t factor = ot_group_factor(v, next);
    if (factor == OT_NONE || ot_group_operand(v, next, 1 - factor) != n->out[0]) return false;
    if (!ot_group_is_real(v, scale->out[0], &s) || !ot_group_same_dims(v, n->out[0], scale->out[0]))
        return false;
    if (!r->supported(r->ctx, v, out, place, OT_ROLE_PRODUCT)) return false;
    take(out, place, OT_ROLE_PRODUCT);
    if (!r->supported(r->ctx, v, out, next, OT_ROLE_FACTOR)) return false;
    take(out, next, OT_ROLE_FACTOR);
    out->result = scale->out[0];
    return true;
}
