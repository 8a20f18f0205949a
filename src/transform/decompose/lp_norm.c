/* LpNormalization along an axis of maps, in parts:
 *
 *     x --ReduceL2 (ReduceL1)--> norm        norm + (1 - Sign(norm)) --> divisor  x / divisor --> y
 *
 * The reduction has parts (ops/access_sum.c). Where all of a lane is zero, so is the result: it
 * is divided by one there, and by the norm itself everywhere else. Along channels nothing is to
 * be gained: maps can be cut as they are.
 */
#include "decompose_internal.h"

#define HAS_SIGN 9 /* opset since which there is Sign */
#define SPATIAL  2 /* the first axis of maps */

bool decomp_find_lp(const ot_graph *g, ot_id id, ot_lane_norm *out)
{
    const ot_node *n = &g->nodes[id];
    if (n->dead || n->op != OT_OP_LpNormalization || n->in[0] == OT_NONE || n->out[0] == OT_NONE ||
        g->model->opset < HAS_SIGN)
        return false;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    const int64_t p = ot_attr_int(n, "p", 2);
    int64_t axis = ot_attr_int(n, "axis", -1);
    if (!decomp_is_image(x) || !ot_value_is_static(y) ||
        (x->dtype != OT_F32 && x->dtype != OT_F64) || x->dtype != y->dtype)
        return false;
    if (axis < 0) axis += x->rank;
    if (axis < SPATIAL || axis >= x->rank || (p != 1 && p != 2)) return false;
    *out = (ot_lane_norm){.node = id, .axis = (int32_t)axis};
    return x->rank > 3 || decomp_is_over_pixels(g, n->in[0], out->axis);
}

ot_status decomp_write_lp(decomp_writer *w, const ot_lane_norm *s)
{
    const ot_node n = w->g->nodes[s->node];
    const ot_id x = n.in[0];
    const ot_value v = w->g->values[x];
    const int64_t axis = s->axis;
    const double unit = 1;
    ot_id y = n.out[0], norm, sign = OT_NONE, one, rest = OT_NONE, divisor = OT_NONE;
    int64_t dims[OT_RANK_MAX];
    memcpy(dims, v.dims, (size_t)v.rank * sizeof *dims);
    dims[axis] = 1;
    const ot_tensor_type one_each = {v.dtype, v.rank, dims};
    ot_node_remove(w->g, s->node);
    OT_TRY(decomp_reduce(w, ot_attr_int(&n, "p", 2) == 1 ? "ReduceL1" : "ReduceL2", "norm", x,
                         &axis, 1, &norm));
    OT_TRY(decomp_op(w, &(ot_node_def){.op = "Sign", .name = "sign", .in = {&norm, 1}}, one_each,
                     &sign));
    OT_TRY(decomp_doubles(w, "one", &unit, 0, NULL, &one));
    if (v.dtype != OT_F64) OT_TRY(decomp_cast(w, "one", one, v.dtype, &one));
    OT_TRY(decomp_op(
        w, &(ot_node_def){.op = "Sub", .name = "is_zero", .in = {(ot_id[]){one, sign}, 2}},
        one_each, &rest));
    OT_TRY(decomp_op(
        w, &(ot_node_def){.op = "Add", .name = "divisor", .in = {(ot_id[]){norm, rest}, 2}},
        one_each, &divisor));
    return decomp_op(w,
                     &(ot_node_def){.op = "Div", .name = "share", .in = {(ot_id[]){x, divisor}, 2}},
                     ot_type_of(&v), &y);
}
