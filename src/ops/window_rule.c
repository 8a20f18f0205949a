/* Windows of one node, many of them: what they follow from is read once.
 *
 * Attributes are looked up by their names, and broadcasting goes through all operands. Who follows
 * a region from step to step asks millions of times for windows of a few hundred nodes, of which
 * nothing but the place is another.
 */
#include "access_same.h"
#include "access_spatial.h"

/* What fits no kind is asked for, window by window. */
static ot_window_kind kind_of(ot_window_rule *r)
{
    const ot_access_ops *ops = ot_access_of(r->n);
    bool known = false;
    if (!ops) return OT_WINDOW_ASKED;
    if (ops == &ot_access_conv || ops == &ot_access_pool) {
        r->follows = 1;
        if (r->axis < 2) return OT_WINDOW_SAME;
        known = ops == &ot_access_conv ? ot_conv_spatial(r->g, r->n, r->axis, &r->spatial)
                                       : ot_pool_spatial(r->g, r->n, r->axis, &r->spatial);
        return known ? OT_WINDOW_SPATIAL : OT_WINDOW_ASKED;
    }
    if (ops == &ot_access_pointwise)
        known = ot_acc_point_follows(r->g, r->n, r->out_index, r->axis, &r->follows);
    else if (!ops->window)
        known = ot_acc_same_follows(ops->axis, r->g, r->n, r->out_index, r->axis, &r->follows);
    return known ? OT_WINDOW_SAME : OT_WINDOW_ASKED;
}

ot_window_rule ot_window_rule_of(const ot_graph *g, const ot_node *n, uint32_t out_index,
                                 uint32_t axis)
{
    ot_window_rule r = {.g = g, .n = n, .out_index = out_index, .axis = axis};
    r.extent = ot_acc_out(g, n, out_index)->dims[axis];
    r.kind = kind_of(&r);
    return r;
}

bool ot_window_by_rule(const ot_window_rule *r, ot_op_tile *t, ot_why *why)
{
    if (r->kind == OT_WINDOW_ASKED)
        return ot_access_window(r->g, r->n, r->out_index, r->axis, t, why);
    if (t->need.lo < 0 || t->need.lo >= t->need.hi || t->need.hi > r->extent)
        return ot_acc_refuse(why, OT_WHY_WINDOW_OUTSIDE);
    *why = OT_WHY_NO_WINDOW;
    t->made = t->need;
    t->pad_lo = t->pad_hi = t->extra = 0;
    if (r->kind == OT_WINDOW_SPATIAL) return ot_spatial_window(&r->spatial, t, why);
    for (uint64_t left = r->follows; left; left &= left - 1) t->in[__builtin_ctzll(left)] = t->need;
    return true;
}
