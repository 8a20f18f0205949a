/* Operators that move elements: copies between two views, Pad, Gather.
 *
 *   Concat        each operand to its part of the result
 *   Slice, Split  parts of the operand                   (a caller may also take the view as it is:
 *                                                        ot_dg_view)
 *   Transpose     strides in another order
 *   Expand, Tile  strides of 0
 *   DepthToSpace  both sides with six axes
 *
 * Elements are moved as unsigned integers of their size.
 */
#include "dg_internal.h"

/* ---- views ---- */

static bool view_slice(const dg_build *b, const ot_node *n, const ot_nd *y, ot_nd *view,
                       int64_t *first)
{
    int64_t starts[OT_RANK_MAX], axes[OT_RANK_MAX], steps[OT_RANK_MAX];
    uint32_t count = 0, n_axes = 0, n_steps = 0;
    if (n->version < 10) {
        size_t have = 0, have_axes = 0;
        const int64_t *s = ot_attr_ints(n, "starts", &have),
                      *a = ot_attr_ints(n, "axes", &have_axes);
        if (!s || have > OT_RANK_MAX || (a && have_axes != have)) return false;
        count = (uint32_t)have;
        for (uint32_t k = 0; k < count; k++) starts[k] = s[k], axes[k] = a ? a[k] : k, steps[k] = 1;
    } else {
        if (!dg_const_ints(b, n, 1, starts, OT_RANK_MAX, &count)) return false;
        for (uint32_t k = 0; k < count; k++) axes[k] = k, steps[k] = 1;
        if (dg_in(n, 3) != OT_NONE &&
            (!dg_const_ints(b, n, 3, axes, OT_RANK_MAX, &n_axes) || n_axes != count))
            return false;
        if (dg_in(n, 4) != OT_NONE &&
            (!dg_const_ints(b, n, 4, steps, OT_RANK_MAX, &n_steps) || n_steps != count))
            return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        int64_t a = axes[k] < 0 ? axes[k] + view->rank : axes[k];
        if (a < 0 || a >= view->rank || steps[k] == 0) return false;
        int64_t extent = view->dims[a], at = starts[k] < 0 ? starts[k] + extent : starts[k];
        at = ot_max(0, ot_min(at, steps[k] > 0 ? extent : extent - 1));
        if (y->dims[a] > 0 && (at >= extent || at + (y->dims[a] - 1) * steps[k] < 0 ||
                               at + (y->dims[a] - 1) * steps[k] >= extent))
            return false;
        *first += at * view->strides[a];
        view->strides[a] *= steps[k];
        view->dims[a] = y->dims[a];
    }
    return true;
}

static bool view_split(const dg_build *b, const ot_node *n, uint32_t out, ot_nd *view,
                       int64_t *first)
{
    int64_t axis = ot_attr_int(n, "axis", 0), at = 0;
    if (axis < 0) axis += view->rank;
    if (axis < 0 || axis >= view->rank) return false;
    for (uint32_t k = 0; k < out; k++) {
        if (n->out[k] == OT_NONE) return false;
        at += dg_nd(b, n->out[k])->dims[axis];
    }
    if (at + dg_nd(b, n->out[out])->dims[axis] > view->dims[axis]) return false;
    *first += at * view->strides[axis];
    view->dims[axis] = dg_nd(b, n->out[out])->dims[axis];
    return true;
}

static bool view_transpose(const ot_node *n, ot_nd *view)
{
    size_t have = 0;
    const int64_t *perm = ot_attr_ints(n, "perm", &have);
    const ot_nd x = *view;
    if (perm && have != x.rank) return false;
    for (uint32_t k = 0; k < x.rank; k++) {
        int64_t from = perm ? perm[k] : x.rank - 1 - k;
        if (from < 0 || from >= x.rank) return false;
        view->dims[k] = x.dims[from];
        view->strides[k] = x.strides[from];
    }
    return true;
}

static bool view_expand(const ot_nd *y, ot_nd *view)
{
    const ot_nd x = *view;
    if (!dg_broadcasts(&x, y->rank, y->dims)) return false;
    view->rank = y->rank;
    for (uint32_t k = 0; k < y->rank; k++) {
        bool own = k >= y->rank - x.rank && x.dims[k - (y->rank - x.rank)] != 1;
        view->dims[k] = y->dims[k];
        view->strides[k] = own ? x.strides[k - (y->rank - x.rank)] : 0;
    }
    return true;
}

/* Output `out` of the node as a view of its input 0: dims and strides in *view, *first: elements
 * to skip. */
static bool view_of(const dg_build *b, const ot_node *n, uint32_t out, ot_nd *view, int64_t *first)
{
    const ot_nd *y = dg_nd(b, n->out[out]);
    bool ok = false;
    *view = *dg_nd(b, n->in[0]);
    *first = 0;
    if (n->op == OT_OP_Slice) ok = view_slice(b, n, y, view, first);
    if (n->op == OT_OP_Split) ok = view_split(b, n, out, view, first);
    if (n->op == OT_OP_Transpose) ok = view_transpose(n, view);
    if (n->op == OT_OP_Expand) ok = view_expand(y, view);
    return ok && view->rank == y->rank && !memcmp(view->dims, y->dims, y->rank * sizeof *y->dims);
}

bool ot_dg_view(const ot_node *n, uint32_t out, const ot_nd *arrays, ot_nd *view, int64_t *first)
{
    const ot_dg_group g = {.arrays = arrays};
    const dg_build b = {.g = &g};
    bool moves = n->op == OT_OP_Slice || n->op == OT_OP_Split || n->op == OT_OP_Expand;
    return moves && n->n_in > 0 && n->in[0] != OT_NONE && view_of(&b, n, out, view, first);
}

/* ---- copies ---- */

/* Axes that lie one behind the other on both sides become one; those of extent 1 go. */
static void join_axes(ot_nd *x, ot_nd *y)
{
    uint32_t to = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (x->dims[k] == 1) continue;
        bool joins = to > 0 && x->strides[to - 1] == x->strides[k] * x->dims[k] &&
                     y->strides[to - 1] == y->strides[k] * y->dims[k];
        uint32_t at = joins ? to - 1 : to++;
        int64_t extent = joins ? x->dims[at] * x->dims[k] : x->dims[k];
        x->dims[at] = y->dims[at] = extent;
        x->strides[at] = x->strides[k];
        y->strides[at] = y->strides[k];
    }
    x->rank = y->rank = to;
}

static bool as_carrier(dg_build *b, ot_nd *x)
{
    static const ot_dtype carriers[] = {OT_DT_UNKNOWN, OT_U8,         OT_U16,
                                        OT_DT_UNKNOWN, OT_U32,        OT_DT_UNKNOWN,
                                        OT_DT_UNKNOWN, OT_DT_UNKNOWN, OT_U64};
    size_t bytes = ot_dtype_bytes(x->dtype);
    if (bytes < 1 || bytes > 8 || carriers[bytes] == OT_DT_UNKNOWN)
        return dg_refuse(b, "elements of a size that devices do not have");
    x->dtype = carriers[bytes];
    return true;
}

bool dg_copy_kernel(dg_build *b, dg_view read, dg_view write)
{
    const char *c[OT_RANK_MAX];
    int64_t items;
    if (!as_carrier(b, &read.x) || !as_carrier(b, &write.x)) return false;
    if (!ot_nd_elems(&write.x, &items)) return dg_refuse(b, "more elements than can be counted");
    if (items == 0) return true;
    if (read.x.chan_block || write.x.chan_block) {
        const uint32_t block = read.x.chan_block ? read.x.chan_block : write.x.chan_block;
        if (write.x.rank == OT_RANK_MAX || write.x.dims[1] % block != 0)
            return dg_refuse(b, "channels that make no blocks");
        const bool last = write.x.chan_block != 0;
        read.x = dg_unblock(&read.x, block, last);
        write.x = dg_unblock(&write.x, block, last);
    }
    join_axes(&read.x, &write.x);
    dg_begin(b, items);
    dg_split(b, "c", read.x.rank, read.x.dims, c);
    uint32_t from = dg_arg_at(b, &read, false), to = dg_arg_at(b, &write, true);
    dg_store(b, to, dg_index(b, to, c), dg_load(b, from, dg_index(b, from, c)));
    dg_end(b, items, 64, 0);
    return !b->why;
}

/* Reshape of arrays of any strides: each element's number split into indices on both sides. */
bool dg_reshape(dg_build *b, const ot_node *n)
{
    const char *c[OT_RANK_MAX], *d[OT_RANK_MAX];
    ot_nd x = *dg_nd(b, n->in[0]), y = *dg_nd(b, n->out[0]);
    int64_t items, before;
    if (!as_carrier(b, &x) || !as_carrier(b, &y)) return false;
    if (!ot_nd_elems(&y, &items) || !ot_nd_elems(&x, &before) || items != before || items == 0)
        return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    uint32_t from = dg_arg(b, n->in[0], &x, false), to = dg_arg(b, n->out[0], &y, true);
    dg_split(b, "c", x.rank, x.dims, c);
    dg_split(b, "d", y.rank, y.dims, d);
    dg_store(b, to, dg_index(b, to, d), dg_load(b, from, dg_index(b, from, c)));
    dg_end(b, items, 64, 0);
    return !b->why;
}

bool dg_views(dg_build *b, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++) {
        dg_view from = {.v = n->in[0]};
        if (n->out[k] == OT_NONE) continue;
        if (!view_of(b, n, k, &from.x, &from.first))
            return dg_refuse(b, "bounds that are not constant");
        if (!dg_copy_kernel(b, from, (dg_view){.v = n->out[k], .x = *dg_nd(b, n->out[k])}))
            return false;
    }
    return true;
}

bool dg_concat(dg_build *b, const ot_node *n)
{
    const ot_nd *y = dg_nd(b, n->out[0]);
    int64_t axis = ot_attr_int(n, "axis", n->version < 4 ? 1 : 0), at = 0;
    if (axis < 0) axis += y->rank;
    if (axis < 0 || axis >= y->rank) return dg_refuse(b, "an axis out of range");
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_nd *x = dg_nd(b, n->in[k]);
        const bool in_blocks = y->chan_block && axis == 1;
        dg_view to = {.v = n->out[0],
                      .x = *y,
                      .first = (in_blocks ? at / y->chan_block : at) * y->strides[axis]};
        if (in_blocks && at % y->chan_block != 0)
            return dg_refuse(b, "channels that make no blocks");
        if (x->rank != y->rank || x->dtype != y->dtype)
            return dg_refuse(b, "operands that do not match");
        to.x.dims[axis] = x->dims[axis];
        at += x->dims[axis];
        if (at > y->dims[axis] || !dg_same_dims(x, &to.x)) return dg_refuse(b, DG_CONTRADICT);
        if (!dg_copy_kernel(b, (dg_view){.v = n->in[k], .x = *x}, to)) return false;
    }
    return true;
}

bool dg_repeat(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    dg_view from = {.v = n->in[0], .x = *x}, to = {.v = n->out[0], .x = *y};
    if (n->version < 6 || x->rank != y->rank || 2 * x->rank > OT_RANK_MAX)
        return dg_refuse(b, "a Tile of this rank");
    from.x.rank = to.x.rank = 2 * x->rank;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (x->dims[k] < 1 || y->dims[k] % x->dims[k] != 0) return dg_refuse(b, "an empty result");
        from.x.dims[2 * k] = to.x.dims[2 * k] = y->dims[k] / x->dims[k];
        from.x.dims[2 * k + 1] = to.x.dims[2 * k + 1] = x->dims[k];
        from.x.strides[2 * k] = 0;
        from.x.strides[2 * k + 1] = x->strides[k];
        to.x.strides[2 * k] = y->strides[k] * x->dims[k];
        to.x.strides[2 * k + 1] = y->strides[k];
    }
    return dg_copy_kernel(b, from, to);
}

/* [N, C, H, b, W, b] of the side with large planes; `channel`, `dy`, `dx`: strides of the side
 * with many channels. */
bool dg_block(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    bool to_space = n->op == OT_OP_DepthToSpace,
         crd = to_space && strcmp(ot_attr_str(n, "mode", "DCR"), "CRD") == 0;
    int64_t s = ot_attr_int(n, "blocksize", 0);
    if (x->rank != 4 || y->rank != 4 || s < 1) return dg_refuse(b, "an impossible block size");
    const ot_nd *deep = to_space ? x : y, *wide = to_space ? y : x;
    int64_t maps = wide->dims[1], step = deep->strides[1];
    const int64_t wanted[4] = {deep->dims[0], maps, deep->dims[2] * s, deep->dims[3] * s};
    if (deep->dims[1] != maps * s * s || memcmp(wide->dims, wanted, sizeof wanted))
        return dg_refuse(b, DG_CONTRADICT);
    const int64_t dims[6] = {wide->dims[0], maps, deep->dims[2], s, deep->dims[3], s};
    const int64_t plane[6] = {wide->strides[0], wide->strides[1],     wide->strides[2] * s,
                              wide->strides[2], wide->strides[3] * s, wide->strides[3]};
    const int64_t channels[6] = {deep->strides[0], crd ? step * s * s : step,
                                 deep->strides[2], crd ? step * s : step * maps * s,
                                 deep->strides[3], crd ? step : step * maps};
    dg_view from = {.v = n->in[0], .x = *x}, to = {.v = n->out[0], .x = *y};
    from.x.rank = to.x.rank = 6;
    memcpy(from.x.dims, dims, sizeof dims);
    memcpy(to.x.dims, dims, sizeof dims);
    memcpy(from.x.strides, to_space ? channels : plane, sizeof plane);
    memcpy(to.x.strides, to_space ? plane : channels, sizeof plane);
    return dg_copy_kernel(b, from, to);
}

/* ---- Pad ---- */

/* Borders before each axis. */
static bool pad_borders(dg_build *b, const ot_node *n, const ot_nd *x, int64_t *lo)
{
    int64_t pads[2 * OT_RANK_MAX], axes[OT_RANK_MAX];
    uint32_t count = 0, n_axes = x->rank;
    size_t have = 0;
    for (uint32_t k = 0; k < x->rank; k++) axes[k] = k, lo[k] = 0;
    if (n->version < 11) {
        const int64_t *p = ot_attr_ints(n, n->version < 2 ? "paddings" : "pads", &have);
        if (!p || have > 2 * OT_RANK_MAX) return dg_refuse(b, "borders that are not constant");
        memcpy(pads, p, have * sizeof *p);
        count = (uint32_t)have;
    } else {
        if (!dg_const_ints(b, n, 1, pads, 2 * OT_RANK_MAX, &count))
            return dg_refuse(b, "borders that are not constant");
        if (dg_in(n, 3) != OT_NONE && !dg_const_ints(b, n, 3, axes, OT_RANK_MAX, &n_axes))
            return dg_refuse(b, "axes that are not constant");
    }
    if (count != 2 * n_axes) return dg_refuse(b, DG_CONTRADICT);
    for (uint32_t k = 0; k < n_axes; k++) {
        int64_t a = axes[k] < 0 ? axes[k] + x->rank : axes[k];
        if (a < 0 || a >= x->rank) return dg_refuse(b, "an axis out of range");
        lo[a] = pads[k];
    }
    return true;
}

bool dg_pad(dg_build *b, const ot_node *n)
{
    const ot_nd *x = dg_nd(b, n->in[0]), *y = dg_nd(b, n->out[0]);
    const char *mode = ot_attr_str(n, "mode", "constant"), *c[OT_RANK_MAX], *at[OT_RANK_MAX];
    bool constant = strcmp(mode, "constant") == 0, edge = strcmp(mode, "edge") == 0,
         wrap = strcmp(mode, "wrap") == 0;
    int64_t lo[OT_RANK_MAX], items;
    dg_type t;
    if (!dg_type_of(x->dtype, &t) || !pad_borders(b, n, x, lo))
        return dg_refuse(b, "a Pad of this type");
    if (x->rank != y->rank) return dg_refuse(b, DG_CONTRADICT);
    if (!constant && !edge && !wrap && strcmp(mode, "reflect") != 0)
        return dg_refuse(b, "an unknown mode of Pad");
    if (!ot_nd_elems(y, &items) || items == 0) return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    dg_split(b, "c", y->rank, y->dims, c);
    uint32_t in = dg_arg(b, n->in[0], NULL, false), out = dg_arg(b, n->out[0], NULL, true);
    const char *inside = "true";
    for (uint32_t k = 0; k < x->rank; k++) {
        at[k] = c[k];
        if (lo[k] == 0 && x->dims[k] == y->dims[k]) continue;
        const char *extent = dg_num(b, x->dims[k]);
        at[k] = dg_fmt(b, "a%u", k);
        dg_line(b, "int a%u = %s - %s;", k, c[k], dg_num(b, lo[k]));
        if (constant) {
            dg_line(b, "const bool u%u = a%u >= 0 && a%u < %s;", k, k, k, extent);
            inside = dg_fmt(b, "%s && u%u", inside, k);
        }
        if (constant || edge) dg_line(b, "a%u = clamp(a%u, 0, %s - 1);", k, k, extent);
        if (wrap) dg_line(b, "a%u = rem(rem(a%u, %s) + %s, %s);", k, k, extent, extent, extent);
        if (!constant && !edge && !wrap)
            dg_line(b,
                    "if (%s > 1) { const int turn = 2 * %s - 2; a%u = rem(rem(a%u, turn) + "
                    "turn, turn); a%u = min(a%u, turn - a%u); } else a%u = 0;",
                    extent, extent, k, k, k, k, k, k);
    }
    const char *value = "0";
    ot_id v = constant && n->version >= 11 ? dg_in(n, 2) : OT_NONE;
    if (v != OT_NONE) value = dg_load(b, dg_arg(b, v, NULL, false), "0");
    if (constant && n->version < 11)
        value = dg_fmt(b, "to_%s(%.9g)", t.computed, (double)ot_attr_float(n, "value", 0));
    dg_line(b, "%s y = %s;\nif (%s) y = %s;", t.computed, value, inside,
            dg_load(b, in, dg_index(b, in, at)));
    dg_store(b, out, dg_index(b, out, c), "y");
    dg_end(b, items, 64, 0);
    return !b->why;
}

/* ---- Gather ---- */

bool dg_gather(dg_build *b, const ot_node *n)
{
    ot_nd x = *dg_nd(b, n->in[0]), y = *dg_nd(b, n->out[0]);
    const ot_nd *index = dg_nd(b, n->in[1]);
    const char *c[OT_RANK_MAX], *at[OT_RANK_MAX];
    int64_t axis = ot_attr_int(n, "axis", 0), items;
    if (axis < 0) axis += x.rank;
    if (axis < 0 || axis >= x.rank || y.rank != x.rank - 1 + index->rank)
        return dg_refuse(b, "an axis out of range");
    if (index->dtype != OT_I64 && index->dtype != OT_I32)
        return dg_refuse(b, "an index of this type");
    for (uint32_t k = 0; k < y.rank; k++) {
        bool by = k >= axis && k < axis + index->rank;
        if (y.dims[k] != (by ? index->dims[k - axis] : x.dims[k < axis ? k : k + 1 - index->rank]))
            return dg_refuse(b, DG_CONTRADICT);
    }
    if (!as_carrier(b, &x) || !as_carrier(b, &y)) return false;
    if (!ot_nd_elems(&y, &items) || items == 0 || x.dims[axis] == 0)
        return dg_refuse(b, "an empty result");
    dg_begin(b, items);
    dg_split(b, "c", y.rank, y.dims, c);
    uint32_t in = dg_arg(b, n->in[0], &x, false), by = dg_arg(b, n->in[1], NULL, false),
             out = dg_arg(b, n->out[0], &y, true);
    dg_reads_at_most(b, in, items); /* rows that are taken */
    const char *extent = dg_num(b, x.dims[axis]);
    dg_line(b, "int at = to_int(%s);\nat = clamp(at < 0 ? at + %s : at, 0, %s - 1);",
            dg_load(b, by, dg_index(b, by, c + axis)), extent, extent);
    for (uint32_t k = 0; k < x.rank; k++)
        at[k] = k < axis ? c[k] : k == axis ? "at" : c[k - 1 + index->rank];
    dg_store(b, out, dg_index(b, out, c), dg_load(b, in, dg_index(b, in, at)));
    dg_end(b, items, 64, 0);
    return !b->why;
}
