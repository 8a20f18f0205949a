/* Softmax over all pixels of a map, as attention masks and key points use it, in parts:
 *
 *     x [N, K, H, W] --Reshape--> [N, K, H * W] --Softmax(axis 2)-->
 *
 *     x --ReduceMax--> most        x - most --Exp--ReduceSum--> sum    x - most --Exp-- / sum --> y
 *
 * Both reductions have parts (ops/access_sum.c): largest of the tiles' largest, sum of the
 * tiles' sums. Exp is computed twice and stored at most once. Other Softmaxes stay: those over
 * channels or keys can be cut along the pixels or queries that they are made for.
 */
#include "decompose_internal.h"

#define ONE_AXIS 13 /* opset since which Softmax normalises along one axis, not all from it on */

bool decomp_is_over_pixels(const ot_graph *g, ot_id x, int32_t axis)
{
    const ot_id maker = g->values[x].producer;
    if (maker == OT_NONE || g->nodes[maker].op != OT_OP_Reshape || g->nodes[maker].in[0] == OT_NONE)
        return false;
    const ot_value *image = &g->values[g->nodes[maker].in[0]];
    int64_t pixels = 1, rows = 0;
    if (!decomp_is_image(image) || image->rank < 4) return false;
    for (int32_t a = 2; a < image->rank; a++) {
        pixels *= image->dims[a]; /* at most as many as elements, which are counted */
        rows += image->dims[a] > 1;
    }
    return rows >= 2 && g->values[x].dims[axis] == pixels;
}

bool decomp_find_softmax(const ot_graph *g, ot_id id, ot_lane_norm *out)
{
    const ot_node *n = &g->nodes[id];
    int64_t elements;
    if (n->dead || n->op != OT_OP_Softmax || n->n_in < 1 || n->in[0] == OT_NONE ||
        n->out[0] == OT_NONE)
        return false;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    if (!x->is_tensor || !ot_value_is_static(x) || !ot_value_is_static(y) || x->rank < 1 ||
        x->rank > OT_RANK_MAX - 4)
        return false;
    if (x->dtype != y->dtype || (x->dtype != OT_F32 && x->dtype != OT_F64) ||
        !ot_value_elems(x, &elements) || elements < 1)
        return false;
    int64_t axis = ot_attr_int(n, "axis", n->version < ONE_AXIS ? 1 : -1);
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) return false;
    for (int32_t a = (int32_t)axis + 1; a < x->rank; a++)
        if (n->version < ONE_AXIS && x->dims[a] != 1) return false;
    *out = (ot_lane_norm){.node = id, .axis = (int32_t)axis};
    return decomp_is_over_pixels(g, n->in[0], out->axis);
}

/* exp(x - most), of x's shape. */
static ot_status write_exp(decomp_writer *w, const char *role, ot_id x, ot_id most, ot_id *out)
{
    const ot_value v = w->g->values[x];
    ot_id away = OT_NONE;
    OT_TRY(decomp_op(w, &(ot_node_def){.op = "Sub", .name = role, .in = {(ot_id[]){x, most}, 2}},
                     ot_type_of(&v), &away));
    *out = OT_NONE;
    return decomp_op(w, &(ot_node_def){.op = "Exp", .name = role, .in = {&away, 1}}, ot_type_of(&v),
                     out);
}

ot_status decomp_write_softmax(decomp_writer *w, const ot_lane_norm *s)
{
    const ot_id x = w->g->nodes[s->node].in[0];
    ot_id y = w->g->nodes[s->node].out[0], most, powers, sum;
    const ot_value v = w->g->values[x];
    const int64_t axis = s->axis;
    ot_node_remove(w->g, s->node);
    OT_TRY(decomp_reduce(w, "ReduceMax", "most", x, &axis, 1, &most));
    OT_TRY(write_exp(w, "power", x, most, &powers));
    OT_TRY(decomp_reduce(w, "ReduceSum", "sum", powers, &axis, 1, &sum));
    OT_TRY(write_exp(w, "power_again", x, most, &powers));
    return decomp_op(
        w, &(ot_node_def){.op = "Div", .name = "share", .in = {(ot_id[]){powers, sum}, 2}},
        ot_type_of(&v), &y);
}
