/* Slice relation of operators that move whole elements: Transpose, Split, Concat, Gather, Tile.
 *
 *   Transpose  out axis a is input axis perm[a]
 *   Split      any axis but the split one; all pieces are cut alike
 *   Concat     any other axis: all pieces are cut alike; the joined axis itself: the window falls
 *              into pieces, and those it misses are left out
 *
 *                out  0....[lo          hi)......E
 *                     |--a----|---b---|----c----|
 *                a [lo,|a|)   b whole  c [0, hi-|a|-|b|)
 *
 *   Gather     axes of the indices cut the indices, the other axes of the data cut the data;
 *              the gathered axis is needed whole, as the indices may point anywhere
 *   Tile       any axis: within one copy of the input its window, else copies of all of it
 */
#include "access_same.h"

/* ---- Transpose ---- */

/* The input axis that becomes out axis `axis`, or -1 when perm is no permutation. */
static int32_t source_axis(const ot_node *n, int32_t rank, uint32_t axis)
{
    size_t n_perm = 0;
    const int64_t *perm = ot_attr_ints(n, "perm", &n_perm);
    if (!perm) return rank - 1 - (int32_t)axis;
    if (n_perm != (size_t)rank) return -1;
    return ot_acc_norm_axis(perm[axis], rank);
}

static bool transpose_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    int32_t ax = in && in->rank == out->rank ? source_axis(n, in->rank, axis) : -1;
    if (ax < 0 || in->dims[ax] != out->dims[axis]) return ot_acc_refuse(why, OT_WHY_TRANSPOSE_PERM);
    in_axis[0] = (int8_t)ax;
    return true;
}

const ot_access_ops ot_access_transpose = {transpose_axis, NULL, NULL};

/* ---- Split ---- */

static bool split_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    if (!in || in->rank != out->rank) return ot_acc_refuse(why, OT_WHY_RANKS_DIFFER);
    int32_t along = ot_acc_norm_axis(ot_attr_int(n, "axis", 0), in->rank);
    if (along < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    if (along == (int32_t)axis) return ot_acc_refuse(why, OT_WHY_SPLIT_AXIS);
    if (in->dims[axis] != out->dims[axis]) return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    in_axis[0] = (int8_t)axis;
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *o = ot_acc_out(g, n, k);
        if (o && o->rank == in->rank && o->dims[axis] == in->dims[axis]) out_axis[k] = (int8_t)axis;
    }
    return true;
}

static bool split_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    (void)g, (void)n, (void)out_index, (void)axis, (void)why;
    t->in[0] = t->made = t->need; /* any number of outputs, one operand that is cut */
    return true;
}

const ot_access_ops ot_access_split = {split_axis, split_window, NULL};

/* ---- Concat ---- */

static int32_t concat_along(const ot_node *n, int32_t rank)
{
    return ot_acc_norm_axis(ot_attr_int(n, "axis", 1), rank); /* 1 was the default before opset 4 */
}

static bool concat_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *out = ot_acc_out(g, n, out_index);
    int32_t along = concat_along(n, out->rank);
    int64_t total = 0;
    (void)out_axis;
    if (along < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *in = ot_acc_in(g, n, k);
        if (!in || in->rank != out->rank) return ot_acc_refuse(why, OT_WHY_CONCAT_OPERAND);
        if (in->dims[along] < 1) return ot_acc_refuse(why, OT_WHY_EMPTY_OPERAND);
        if (along != (int32_t)axis && in->dims[axis] != out->dims[axis])
            return ot_acc_refuse(why, OT_WHY_CONCAT_DIFFER);
        if (!ot_add_i64(total, in->dims[along], &total))
            return ot_acc_refuse(why, OT_WHY_CONCAT_OVERFLOW);
        in_axis[k] = (int8_t)axis;
    }
    if (total != out->dims[along]) return ot_acc_refuse(why, OT_WHY_CONCAT_SUM);
    return true;
}

static bool concat_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          ot_op_tile *t, ot_why *why)
{
    bool joins = concat_along(n, ot_acc_out(g, n, out_index)->rank) == (int32_t)axis;
    int64_t at = 0; /* where piece k begins in the output */
    (void)why;
    for (uint32_t k = 0; k < n->n_in; k++) {
        int64_t extent = ot_acc_in(g, n, k)->dims[axis];
        if (!joins) {
            t->in[k] = t->need;
            continue;
        }
        int64_t lo = ot_max(t->need.lo - at, 0), hi = ot_min(t->need.hi - at, extent);
        t->in[k] = lo < hi ? (ot_win){lo, hi} : (ot_win){0, 0};
        at += extent;
    }
    t->made = t->need;
    return true;
}

static ot_status concat_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                              uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    int32_t along = concat_along(n, ot_acc_out(g, n, axes[0].out_index)->rank);
    const ot_op_tile *t = along < 0 ? NULL : ot_acc_cut(axes, n_axes, (uint32_t)along);
    uint32_t left = 0, last = 0;
    (void)arena;
    if (!t) return OT_OK;
    for (uint32_t k = 0; k < n->n_in; k++) {
        out->drop[k] = t->in[k].lo >= t->in[k].hi;
        if (out->drop[k]) continue;
        left++;
        last = k;
    }
    if (left == 1) {
        out->kind = OT_ADAPT_FORWARD;
        out->forward = last;
    }
    return OT_OK;
}

const ot_access_ops ot_access_concat = {concat_axis, concat_window, concat_adapt};

/* ---- Gather: out = data[:axis] + indices + data[axis+1:] ---- */

static bool gather_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *data = ot_acc_in(g, n, 0), *idx = ot_acc_in(g, n, 1),
                   *out = ot_acc_out(g, n, out_index);
    int32_t a = (int32_t)axis;
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!data || !idx || data->rank < 1 || out->rank != data->rank - 1 + idx->rank)
        return ot_acc_refuse(why, OT_WHY_GATHER_RANKS);
    int32_t along = ot_acc_norm_axis(ot_attr_int(n, "axis", 0), data->rank);
    if (along < 0) return ot_acc_refuse(why, OT_WHY_AXIS_RANGE);
    bool by_index = a >= along && a < along + idx->rank;
    const ot_value *v = by_index ? idx : data;
    int32_t ax = by_index ? a - along : a < along ? a : a - idx->rank + 1;
    if (v->dims[ax] != out->dims[axis]) return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    in_axis[by_index ? 1 : 0] = (int8_t)ax;
    return true;
}

const ot_access_ops ot_access_gather = {gather_axis, NULL, NULL};

/* ---- Tile ----
 *
 *   in   0..E        out 0....E....2E....3E
 *   out within one copy:  the same window of the input, repeated once
 *   out over several:     the whole input, and all of these copies are made
 *
 * An input of extent 1 is needed whole, as of Expand.
 */

/* Is operand 0 repeated whole, whatever the tile? */
static bool repeats_all(const ot_value *in, const ot_value *out, uint32_t axis)
{
    return in->dims[axis] == 1 && out->dims[axis] > 1;
}

static bool tile_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (n->version > 0 && n->version < 6) return ot_acc_refuse(why, OT_WHY_TILE_OPSET);
    if (!in || in->rank != out->rank) return ot_acc_refuse(why, OT_WHY_RANKS_DIFFER);
    if (out->dims[axis] % in->dims[axis] != 0) return ot_acc_refuse(why, OT_WHY_IN_OUT_DIFFER);
    if (!repeats_all(in, out, axis)) in_axis[0] = (int8_t)axis;
    return true;
}

static bool tile_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        ot_op_tile *t, ot_why *why)
{
    const ot_value *in = ot_acc_in(g, n, 0), *out = ot_acc_out(g, n, out_index);
    const int64_t extent = in->dims[axis], first = t->need.lo / extent,
                  end = (t->need.hi - 1) / extent + 1;
    (void)why;
    t->made = t->need;
    if (repeats_all(in, out, axis)) return true;
    if (end - first == 1) {
        t->in[0] = (ot_win){t->need.lo - first * extent, t->need.hi - first * extent};
    } else {
        t->in[0] = (ot_win){0, extent};
        t->made = (ot_win){first * extent, end * extent};
    }
    return true;
}

static ot_status tile_adapt(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                            uint32_t n_axes, ot_arena *arena, ot_adapted *out)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, axes[0].out_index);
    int64_t repeats[OT_RANK_MAX];
    bool once = true;
    if (g->model->dynamic_dims) return OT_OK; /* then it repeats along no axis that is cut */
    for (int32_t d = 0; d < x->rank; d++) {
        const ot_op_tile *t = ot_acc_cut(axes, n_axes, (uint32_t)d);
        const bool part = t && !repeats_all(x, y, (uint32_t)d);
        const int64_t made = t ? t->made.hi - t->made.lo : y->dims[d],
                      in = part ? t->in[0].hi - t->in[0].lo : x->dims[d];
        repeats[d] = made / in;
        once &= repeats[d] == 1;
    }
    if (once) {
        out->kind = OT_ADAPT_FORWARD;
        out->forward = 0;
        return OT_OK;
    }
    return ot_adapt_set_i64(arena, out, 1, repeats, (size_t)x->rank);
}

const ot_access_ops ot_access_tile = {tile_axis, tile_window, tile_adapt};
