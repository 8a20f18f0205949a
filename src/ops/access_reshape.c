/* Slice relation of Reshape, Flatten, Squeeze, Unsqueeze, and of Expand.
 *
 * A reshape keeps the elements in order. Walking both shapes from the left, axes fall into
 * minimal groups of equal products (extents of 1 belong nowhere):
 *
 *   in  [ 2, | 6, 4, | 1, 5 ]        groups {2|2} {6,4|3,8} {5|5}
 *   out [ 2, | 3, 8, | 5    ]
 *
 * Within a group, a step of the leading axis is a run of consecutive elements: r_in = 4 on the
 * left, r_out = 8 on the right. Cutting the leading output axis to [o0,o1) therefore asks for
 * the flat range [o0*r_out, o1*r_out) of the group, which is a window of the leading input axis
 * once it starts and ends on multiples of r_in; it is a window of the output axis on multiples
 * of r_out. So both ends move outwards to multiples of lcm(r_in, r_out), and the output produces
 * more than was asked where they do:
 *
 *   flat  0   8   16  24        out [1,2) -> flat [8,16) -> lcm 8 -> in [2,4), made [1,2)
 *   in    |.|.|#|#|.|.|  (4 each)
 *   out   |...|###|...|  (8 each)
 *
 * An axis that is not the leading one of its group interleaves with the leading one: refused.
 */
#include "access_same.h"

/* One group, as the axis functions need it. */
typedef struct rs_group {
    uint32_t in_axis;    /* leading input axis */
    int64_t r_in, r_out; /* elements per step of the leading axes */
} rs_group;

static int32_t next_axis(const ot_value *v,
                         int32_t a) /* first axis >= a whose extent is not 1; or rank */
{
    while (a < v->rank && v->dims[a] == 1) a++;
    return a;
}

/* The group whose leading output axis is `axis`. */
static bool find_group(const ot_value *in, const ot_value *out, uint32_t axis, rs_group *grp,
                       ot_why *why)
{
    if (out->dims[axis] == 1) return ot_acc_refuse(why, OT_WHY_EXTENT_ONE);
    int32_t i = next_axis(in, 0), o = next_axis(out, 0);
    while (i < in->rank && o < out->rank) {
        int32_t i0 = i, o0 = o;
        int64_t pi = in->dims[i], po = out->dims[o];
        while (pi != po) { /* multiply the smaller side until they meet */
            bool left = pi < po;
            const ot_value *v = left ? in : out;
            int32_t *at = left ? &i : &o;
            *at = next_axis(v, *at + 1);
            if (*at >= v->rank || !ot_mul_i64(left ? pi : po, v->dims[*at], left ? &pi : &po))
                return ot_acc_refuse(why, OT_WHY_ELEMENTS_DIFFER);
        }
        if (o0 == (int32_t)axis) {
            *grp = (rs_group){
                .in_axis = (uint32_t)i0, .r_in = pi / in->dims[i0], .r_out = po / out->dims[o0]};
            return true;
        }
        if ((int32_t)axis <= o) return ot_acc_refuse(why, OT_WHY_RESHAPE_INNER);
        i = next_axis(in, i + 1);
        o = next_axis(out, o + 1);
    }
    return ot_acc_refuse(why, OT_WHY_ELEMENTS_DIFFER);
}

static bool same_elements(const ot_value *in, const ot_value *out)
{
    int64_t a, b;
    return ot_value_elems(in, &a) && ot_value_elems(out, &b) && a == b;
}

static bool reshape_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    rs_group grp;
    (void)out_axis;
    if (!in || !same_elements(in, out)) return ot_acc_refuse(why, OT_WHY_ELEMENTS_DIFFER);
    if (!find_group(in, out, axis, &grp, why)) return false;
    in_axis[0] = (int8_t)grp.in_axis;
    return true;
}

static bool reshape_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           ot_op_tile *t, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    rs_group grp = {.r_in = 1, .r_out = 1};
    if (!in || !out || !find_group(in, out, axis, &grp, why)) return false;
    /* The elements of the group are a multiple of r_in and of r_out, hence of their lcm: nothing
     * below overflows, and rounding up never passes the end. */
    int64_t align = grp.r_in / ot_gcd(grp.r_in, grp.r_out) * grp.r_out;
    int64_t lo = t->need.lo * grp.r_out / align * align;
    int64_t last = (t->need.hi * grp.r_out - 1) / align; /* aligned run of the last element */
    int64_t hi = (last + 1) * align;
    t->in[0] = (ot_win){lo / grp.r_in, hi / grp.r_in};
    t->made = (ot_win){lo / grp.r_out, hi / grp.r_out};
    return true;
}

/* Extents of the tile's output: the made windows where it is cut, the original extents elsewhere.
 */
static uint32_t tile_dims(const ot_value *out, const ot_tile_axis *axes, uint32_t n_axes,
                          int64_t *dims)
{
    for (int32_t i = 0; i < out->rank; i++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, (uint32_t)i);
        dims[i] = t ? t->made.hi - t->made.lo : out->dims[i];
    }
    return (uint32_t)out->rank;
}

/* Squeeze without axes removes every axis of extent 1: a cut axis must not become one of them.
 * When the whole input has none, the node does nothing (and an empty list of axes would mean
 * "all" again). */
static ot_status squeeze_adapt(const ot_graph *g, const ot_node *n, ot_arena *arena,
                               ot_adapted *out)
{
    const ot_value *in = ot_acc_in(g, n, 0);
    int64_t axes[OT_RANK_MAX];
    size_t n_axes = 0;
    if (ot_acc_in(g, n, 1) || ot_attr_find(n, "axes")) return OT_OK;
    for (int32_t i = 0; i < in->rank; i++)
        if (in->dims[i] == 1) axes[n_axes++] = i;
    if (n_axes == 0) {
        out->kind = OT_ADAPT_FORWARD;
        out->forward = 0;
        return OT_OK;
    }
    if (n->version > 0 && n->version < 13)
        return ot_adapt_set_ints(arena, out, "axes", axes, n_axes);
    return ot_adapt_set_i64(arena, out, 1, axes, n_axes);
}

static ot_status reshape_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                               uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    int64_t dims[OT_RANK_MAX];
    /* what may be cut then says nothing of extents (dynamic_cut.c) */
    if (g->model->dynamic_dims) return OT_OK;
    if (n->op == OT_OP_Squeeze) return squeeze_adapt(g, n, arena, out);
    /* Flatten, Unsqueeze: their extents follow by themselves */
    if (n->op != OT_OP_Reshape) return OT_OK;
    uint32_t rank = tile_dims(ot_acc_out(g, n, axes[0].out_index), axes, n_axes, dims);
    if (n->version > 0 && n->version < 5) return ot_adapt_set_ints(arena, out, "shape", dims, rank);
    return ot_adapt_set_i64(arena, out, 1, dims, rank);
}

const ot_access_ops ot_access_reshape = {reshape_axis, reshape_window, reshape_adapt};

/* ---- Expand: numpy broadcasting of operand 0 to the shape in operand 1 ----
 *
 * An axis along which it repeats its input cuts nothing but the shape: every tile repeats the whole
 * input so many times.
 */

static bool expand_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!in || in->rank > out->rank) return ot_acc_refuse(why, OT_WHY_EXPAND_BROADCAST);
    return ot_acc_set(in_axis, 0, ot_acc_broadcast_last(in, out, axis), why);
}

static ot_status expand_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                              uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    int64_t dims[OT_RANK_MAX];
    uint32_t rank = tile_dims(ot_acc_out(g, n, axes[0].out_index), axes, n_axes, dims);
    return ot_adapt_set_i64(arena, out, 1, dims, rank);
}

const ot_access_ops ot_access_expand = {expand_axis, NULL, expand_adapt};
