/* Slice relation of GatherRows, with which tiles interpolate as Resize does under align_corners
 * (src/transform/decompose/corners.c).
 *
 * Output row o is made of rows near f(o) = o * (in - 1) / (out - 1): floor(f(o)) - before ..
 * floor(f(o)) + behind. The slope has no period of whole tiles (n to 2n never has), so equally
 * many output rows lie over windows whose lengths differ by one. Tiles look alike when all these
 * windows are as long as the longest; at the end of x they are moved up.
 *
 *     o  [a ..... b)  [c ..... d)
 *     x   [--------]    [------]+  floor(f(a)) - before, as many rows as ceil(f(b - a - 1)) + 1 +
 *                                  before + behind
 *
 * Indices are numbers of rows of the whole x, and its tile comes with the numbers of its rows:
 * cut along the same windows, they say what to subtract, wherever a tile lies.
 */
#include "access_same.h"
#include "resize_corners.h"

/* Contents of operand i, a list of integers that nobody can change; NULL: they are not known. */
static const int64_t *list(const ot_graph *g, const ot_node *n, uint32_t i)
{
    const ot_value *v = ot_acc_in(g, n, i);
    return v && v->init && !v->overridable && v->dtype == OT_I64 && v->rank == 1 ? v->init->data
                                                                                 : NULL;
}

bool ot_rows_are_near(const ot_graph *g, const ot_node *n)
{
    const int64_t *rows = list(g, n, 1), *index = list(g, n, 2);
    if (!rows || !index) return false;
    const int64_t in = ot_acc_in(g, n, 1)->dims[0], out = ot_acc_in(g, n, 2)->dims[0],
                  last = ot_max(out - 1, 1);
    const int64_t before = ot_attr_int(n, "before", 0), behind = ot_attr_int(n, "behind", 0);
    for (int64_t k = 0; k < in; k++)
        if (rows[k] != k) return false;
    for (int64_t o = 0; o < out; o++) {
        const int64_t at = o * (in - 1) / last;
        if (index[o] < ot_max(0, at - before) || index[o] > ot_min(at + behind, in - 1))
            return false;
    }
    return before >= 0 && behind >= 0;
}

static bool rows_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0), *rows = ot_acc_in(g, n, 1), *index = ot_acc_in(g, n, 2);
    const ot_value *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!x || !rows || !index || x->rank != out->rank || rows->rank != 1 || index->rank != 1)
        return ot_acc_refuse(why, OT_WHY_GATHER_RANKS);
    const int32_t along = ot_acc_norm_axis(ot_attr_int(n, "axis", 0), x->rank);
    if (along < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    const int64_t want = along == (int32_t)axis ? index->dims[0] : x->dims[axis];
    if (out->dims[axis] != want || rows->dims[0] != x->dims[along])
        return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    if (along == (int32_t)axis && !ot_rows_are_near(g, n))
        return ot_acc_refuse(why, OT_WHY_NEEDS_ALL);
    in_axis[0] = (int8_t)axis;
    if (along == (int32_t)axis) in_axis[1] = in_axis[2] = 0;
    return true;
}

static bool rows_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        ot_op_tile *t, ot_why *why)
{
    const ot_value *x = ot_acc_in(g, n, 0);
    (void)out_index;
    (void)why;
    t->in[0] = t->made = t->need;
    if (ot_acc_norm_axis(ot_attr_int(n, "axis", 0), x->rank) != (int32_t)axis) return true;
    const int64_t in = x->dims[axis], out = ot_acc_in(g, n, 2)->dims[0], last = ot_max(out - 1, 1);
    const int64_t before = ot_attr_int(n, "before", 0), near = before + ot_attr_int(n, "behind", 0);
    const int64_t most = ot_min(in, ot_ceil_div((t->need.hi - t->need.lo - 1) * (in - 1), last) +
                                        1 + near);
    const int64_t lo = ot_max(0, ot_min(t->need.lo * (in - 1) / last - before, in - most));
    t->in[0] = t->in[1] = (ot_win){lo, lo + most};
    t->in[2] = t->need;
    return true;
}

const ot_access_ops ot_access_rows = {rows_axis, rows_window, NULL};
