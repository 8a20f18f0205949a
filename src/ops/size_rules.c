/* Terms of all extents of a graph: by operator, what its shape rule (shape_*.c) computes, on terms.
 *
 *   pools, convolutions   (in + pads - kernel extent) / stride + 1 (size_windows.c)
 *   element-wise          max of the operands' extents: those that differ are 1
 *   Reshape               0: as before; -1: all elements over those of the other extents, equal
 *                         terms struck out first
 *
 * Sizes that the model refuses do not count: terms hold wherever it runs. What has no rule here
 * has no term, unless the file's own shape inference knows the extent for every size.
 */
#include "access.h"
#include "shape.h"
#include "size_rules.h"

typedef const ot_term *terms;

const ot_term *ot_sizing_dims(const ot_sizing *x, const ot_node *n, uint32_t k)
{
    return k < n->n_in && n->in[k] != OT_NONE ? x->t->dims[n->in[k]] : NULL;
}

int64_t ot_sizing_item(const ot_node *n, const char *name, size_t k, int64_t dflt)
{
    size_t have = 0;
    const int64_t *v = ot_attr_ints(n, name, &have);
    return v && k < have ? v[k] : dflt;
}

/* ---- element-wise, products ---- */

/* Extents of operand k broadcast into out [rank], from its axis `from` up to `to` of the end. */
static void broadcast(ot_sizing *x, terms d, int32_t d_rank, ot_term *out, int32_t rank)
{
    for (int32_t k = 0; k < rank; k++) {
        const int32_t at = k - (rank - d_rank);
        if (at < 0) continue;
        out[k] = out[k] == OT_NONE ? d[at] : ot_term_max(x->t->terms, out[k], d[at]);
        if (d[at] == OT_NONE) out[k] = OT_NONE;
    }
}

static void pointwise(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    for (int32_t k = 0; k < rank; k++) out[k] = ot_sizing_number(x, 1);
    for (uint32_t j = 0; j < n->n_in; j++) {
        if (n->in[j] == OT_NONE) continue;
        const terms d = ot_sizing_dims(x, n, j);
        if (!d || ot_sizing_rank(x, n, j) > rank) {
            for (int32_t k = 0; k < rank; k++) out[k] = OT_NONE;
            return;
        }
        for (int32_t k = 0; k < rank; k++) {
            const int32_t at = k - (rank - ot_sizing_rank(x, n, j));
            if (at >= 0) out[k] = ot_term_max(x->t->terms, out[k], d[at]);
        }
    }
}

static void as_first(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    if (!in || ot_sizing_rank(x, n, 0) != rank) return;
    for (int32_t k = 0; k < rank; k++) out[k] = in[k];
}

static void product(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const uint32_t at = ot_op_row_of(n->op)->weights;
    const terms a = ot_sizing_dims(x, n, 0), b = ot_sizing_dims(x, n, at);
    if (!a || !b) return;
    const int32_t ra = ot_sizing_rank(x, n, 0), rb = ot_sizing_rank(x, n, at);
    if (ra < 2 || rb < 2 || rank != (ra > rb ? ra : rb)) return;
    for (int32_t k = 0; k < rank - 2; k++) out[k] = ot_sizing_number(x, 1);
    broadcast(x, a, ra - 2, out, rank - 2);
    broadcast(x, b, rb - 2, out, rank - 2);
    out[rank - 2] = a[ra - 2];
    out[rank - 1] = b[rb - 1];
}

static void gemm(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms a = ot_sizing_dims(x, n, 0), b = ot_sizing_dims(x, n, 1);
    if (!a || !b || rank != 2 || ot_sizing_rank(x, n, 0) != 2 || ot_sizing_rank(x, n, 1) != 2)
        return;
    out[0] = a[ot_attr_int(n, "transA", 0) ? 1 : 0];
    out[1] = b[ot_attr_int(n, "transB", 0) ? 0 : 1];
}

/* ---- reductions ---- */

static void reduce(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const bool arg = n->op == OT_OP_ArgMax || n->op == OT_OP_ArgMin,
               keep = ot_attr_int(n, "keepdims", 1) != 0;
    const int32_t from = in ? ot_sizing_rank(x, n, 0) : 0;
    int64_t list[OT_RANK_MAX];
    bool gone[OT_RANK_MAX] = {false};
    size_t have = 0;
    const int64_t *axes = arg ? NULL : ot_attr_ints(n, "axes", &have);
    if (!in) return;
    if (arg) {
        list[0] = ot_attr_int(n, "axis", 0);
        axes = list;
        have = 1;
    } else if (!axes && n->n_in > 1 && n->in[1] != OT_NONE) {
        const int64_t count = ot_acc_ints(x->g, n, 1, list, OT_RANK_MAX);
        if (count < 0) return;
        axes = list;
        have = (size_t)count;
    }
    if (have == 0 && ot_attr_int(n, "noop_with_empty_axes", 0) != 0) {
        as_first(x, n, out, rank);
        return;
    }
    for (int32_t k = 0; k < from; k++) gone[k] = have == 0;
    for (size_t k = 0; k < have; k++) {
        const int32_t a = ot_acc_norm_axis(axes[k], from);
        if (a < 0) return;
        gone[a] = true;
    }
    for (int32_t k = 0, to = 0; k < from && to < rank; k++)
        if (keep || !gone[k]) out[to++] = gone[k] ? ot_sizing_number(x, 1) : in[k];
}

/* ---- moves ---- */

static void transpose(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    if (!in || ot_sizing_rank(x, n, 0) != rank) return;
    for (int32_t k = 0; k < rank; k++) {
        const int64_t from = ot_sizing_item(n, "perm", (size_t)k, rank - 1 - k);
        if (from >= 0 && from < rank) out[k] = in[from];
    }
}

/* All elements of x over the product of the extents known of out: equal terms are struck out on
 * both sides. */
static ot_term rest_of(ot_sizing *x, terms in, int32_t from, const ot_term *out, int32_t rank,
                       int32_t open)
{
    bool used[OT_RANK_MAX] = {false};
    ot_term above = ot_sizing_number(x, 1), below = ot_sizing_number(x, 1);
    for (int32_t k = 0; k < rank; k++) {
        bool struck = k == open;
        for (int32_t j = 0; j < from && !struck; j++) {
            struck = !used[j] && in[j] == out[k] && in[j] != OT_NONE;
            used[j] |= struck;
        }
        if (!struck) below = ot_term_mul(x->t->terms, below, out[k]);
    }
    for (int32_t j = 0; j < from; j++)
        if (!used[j]) above = ot_term_mul(x->t->terms, above, in[j]);
    return ot_term_div(x->t->terms, above, below);
}

static void reshape(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const int32_t from = in ? ot_sizing_rank(x, n, 0) : 0;
    int32_t open = -1;
    size_t have = 0;
    uint32_t count = 0;
    const int64_t *attr = ot_attr_ints(n, "shape", &have);
    const terms shape = attr ? NULL : ot_sizing_content(x, n, 1, &count);
    if (!in || (attr ? (int32_t)have : (int32_t)count) != rank || (!attr && !shape)) return;
    for (int32_t k = 0; k < rank; k++) {
        int64_t v;
        out[k] = attr ? ot_sizing_number(x, attr[k]) : shape[k];
        if (!ot_term_is_const(x->t->terms, out[k], &v)) {
            /* it might be a 0 or -1 */
            if (out[k] != OT_NONE && ot_term_least(x->t->terms, out[k]) < 1) out[k] = OT_NONE;
            if (out[k] == OT_NONE && open < 0) open = k;
            continue;
        }
        if (v == 0 && ot_attr_int(n, "allowzero", 0) == 0) out[k] = k < from ? in[k] : OT_NONE;
        if (v == -1) open = k;
    }
    if (open >= 0) out[open] = rest_of(x, in, from, out, rank, open);
}

static void flatten(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    if (!in || rank != 2) return;
    const int64_t axis = ot_attr_int(n, "axis", 1);
    const int32_t from = ot_sizing_rank(x, n, 0), at = (int32_t)(axis < 0 ? axis + from : axis);
    out[0] = out[1] = ot_sizing_number(x, 1);
    for (int32_t k = 0; k < from; k++)
        out[k < at ? 0 : 1] = ot_term_mul(x->t->terms, out[k < at ? 0 : 1], in[k]);
}

/* Axes of Squeeze and Unsqueeze; false: not known. */
static bool axes_of(const ot_sizing *x, const ot_node *n, int32_t rank, bool *mask)
{
    int64_t list[OT_RANK_MAX];
    size_t have = 0;
    const int64_t *axes = ot_attr_ints(n, "axes", &have);
    if (!axes) {
        const int64_t count = n->n_in > 1 ? ot_acc_ints(x->g, n, 1, list, OT_RANK_MAX) : -1;
        if (count < 0) return false;
        axes = list;
        have = (size_t)count;
    }
    for (size_t k = 0; k < have; k++) {
        const int32_t a = ot_acc_norm_axis(axes[k], rank);
        if (a < 0) return false;
        mask[a] = true;
    }
    return true;
}

static void squeeze(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const bool less = n->op == OT_OP_Squeeze;
    bool mask[OT_RANK_MAX] = {false};
    if (!in || !axes_of(x, n, less ? ot_sizing_rank(x, n, 0) : rank, mask)) return;
    const int32_t from = ot_sizing_rank(x, n, 0);
    for (int32_t k = 0, to = 0; less && k < from && to < rank; k++)
        if (!mask[k]) out[to++] = in[k];
    for (int32_t k = 0, at = 0; !less && k < rank; k++)
        out[k] = mask[k] ? ot_sizing_number(x, 1) : at < from ? in[at++] : OT_NONE;
}

static void concat(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const int32_t axis = ot_acc_norm_axis(ot_attr_int(n, "axis", 1), rank);
    if (axis < 0) return;
    for (uint32_t j = 0; j < n->n_in; j++) {
        const terms d = ot_sizing_dims(x, n, j);
        if (!d || ot_sizing_rank(x, n, j) != rank) {
            out[axis] = OT_NONE;
            continue;
        }
        for (int32_t k = 0; k < rank; k++)
            if (k != axis && (j == 0 || out[k] == OT_NONE)) out[k] = d[k];
        out[axis] = j == 0 ? d[axis] : ot_term_add(x->t->terms, out[axis], d[axis]);
    }
}

/* Result `at` of a Split. */
static void split(ot_sizing *x, const ot_node *n, uint32_t at, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const int32_t axis = ot_acc_norm_axis(ot_attr_int(n, "axis", 0), rank);
    size_t have = 0;
    uint32_t count = 0;
    const int64_t *sizes = ot_attr_ints(n, "split", &have);
    if (!in || axis < 0 || ot_sizing_rank(x, n, 0) != rank) return;
    as_first(x, n, out, rank);
    const terms given = sizes ? NULL : ot_sizing_content(x, n, 1, &count);
    const bool operand = n->n_in > 1 && n->in[1] != OT_NONE;
    if (sizes)
        out[axis] = at < have ? ot_sizing_number(x, sizes[at]) : OT_NONE;
    else if (operand)
        out[axis] = given && at < count ? given[at] : OT_NONE;
    else if (n->version >= 18 && at + 1 == n->n_out) /* what is left: no more than a part */
        out[axis] = OT_NONE;
    else
        out[axis] = n->version < 18
                        ? ot_term_div(x->t->terms, in[axis], ot_sizing_number(x, n->n_out))
                        : ot_term_div(x->t->terms,
                                      ot_term_add(x->t->terms, in[axis],
                                                  ot_sizing_number(x, (int64_t)n->n_out - 1)),
                                      ot_sizing_number(x, n->n_out));
}

/* One bound of a Slice on an axis of extent d: written from the end where it is negative; at
 * most d. */
static ot_term slice_bound(ot_sizing *x, ot_term v, ot_term d)
{
    if (v == OT_NONE || d == OT_NONE) return OT_NONE;
    if (ot_term_most(x->t->terms, v) < 0)
        return ot_term_max(x->t->terms, ot_term_add(x->t->terms, d, v), ot_sizing_number(x, 0));
    return ot_term_least(x->t->terms, v) >= 0 ? ot_term_min(x->t->terms, v, d) : OT_NONE;
}

/* A list of Slice: attribute of old versions, else operand k. */
static bool slice_list(ot_sizing *x, const ot_node *n, const char *attr, uint32_t k, ot_term *out,
                       uint32_t *count)
{
    size_t have = 0;
    const int64_t *v = n->version < 10 && attr ? ot_attr_ints(n, attr, &have) : NULL;
    *count = 0;
    if (v && have <= OT_RANK_MAX) {
        for (size_t j = 0; j < have; j++) /* "to the end" is more than any extent */
            out[j] = ot_sizing_number(x, v[j] > INT32_MAX    ? INT32_MAX
                                         : v[j] < -INT32_MAX ? -INT32_MAX
                                                             : v[j]);
        *count = (uint32_t)have;
        return true;
    }
    int64_t list[OT_RANK_MAX];
    const int64_t n_list = n->version >= 10 ? ot_acc_ints(x->g, n, k, list, OT_RANK_MAX) : -1;
    for (int64_t j = 0; j < n_list; j++)
        out[j] = ot_sizing_number(x, list[j] > INT32_MAX    ? INT32_MAX
                                     : list[j] < -INT32_MAX ? -INT32_MAX
                                                            : list[j]);
    *count = n_list > 0 ? (uint32_t)n_list : 0;
    if (n_list >= 0) return true;
    const terms t = n->version >= 10 ? ot_sizing_content(x, n, k, count) : NULL;
    if (!t || *count > OT_RANK_MAX) return false;
    memcpy(out, t, *count * sizeof *out);
    return true;
}

static void slice(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    ot_term start[OT_RANK_MAX], end[OT_RANK_MAX], axis[OT_RANK_MAX], step[OT_RANK_MAX];
    uint32_t ns, ne, na = 0, nt = 0;
    if (!in || ot_sizing_rank(x, n, 0) != rank) return;
    if (!slice_list(x, n, "starts", 1, start, &ns) || !slice_list(x, n, "ends", 2, end, &ne) ||
        ns != ne)
        return;
    const bool axes = n->version < 10 ? ot_attr_find(n, "axes") != NULL
                                      : n->n_in > 3 && n->in[3] != OT_NONE;
    const bool steps = n->version >= 10 && n->n_in > 4 && n->in[4] != OT_NONE;
    if (axes && (!slice_list(x, n, "axes", 3, axis, &na) || na != ns)) return;
    if (steps && (!slice_list(x, n, NULL, 4, step, &nt) || nt != ns)) return;
    as_first(x, n, out, rank);
    for (uint32_t k = 0; k < ns; k++) {
        int64_t a = k, by = 1;
        if (axes && !ot_term_is_const(x->t->terms, axis[k], &a)) a = rank;
        const int32_t at = ot_acc_norm_axis(a, rank);
        if (at < 0) {
            for (int32_t j = 0; j < rank; j++) out[j] = OT_NONE;
            return;
        }
        out[at] = OT_NONE;
        if (steps && !ot_term_is_const(x->t->terms, step[k], &by)) continue;
        if (by < 1) continue;
        const ot_term len = ot_term_max(x->t->terms,
                                        ot_term_sub(x->t->terms, slice_bound(x, end[k], in[at]),
                                                    slice_bound(x, start[k], in[at])),
                                        ot_sizing_number(x, 0));
        out[at] = ot_term_div(x->t->terms,
                              ot_term_add(x->t->terms, len, ot_sizing_number(x, by - 1)),
                              ot_sizing_number(x, by));
    }
}

/* Crop of old opsets: border (left, top, right, bottom), or scale (height, width) instead of
 * right and bottom. */
static void crop(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    if (!in || rank != 4 || ot_sizing_rank(x, n, 0) != 4) return;
    as_first(x, n, out, rank);
    for (size_t k = 0; k < 2; k++) {
        const int64_t size = ot_sizing_item(n, "scale", k, -1);
        const ot_term less = ot_sizing_number(x, -ot_sizing_item(n, "border", 1 - k, 0) -
                                                     ot_sizing_item(n, "border", 3 - k, 0));
        out[2 + k] = size >= 0 ? ot_sizing_number(x, size)
                               : ot_term_max(x->t->terms, ot_term_add(x->t->terms, in[2 + k], less),
                                             ot_sizing_number(x, 0));
    }
}

static void pad(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    size_t have = 0;
    uint32_t count = 0;
    const int64_t *attr = ot_attr_ints(n, "pads", &have);
    const terms pads = attr ? NULL : ot_sizing_content(x, n, 1, &count);
    if (attr) count = (uint32_t)have;
    if (!in || ot_sizing_rank(x, n, 0) != rank || (!attr && !pads) || count != 2 * (uint32_t)rank)
        return;
    if (n->n_in > 3 && n->in[3] != OT_NONE) return;
    for (int32_t k = 0; k < rank; k++) {
        const ot_term lo = attr ? ot_sizing_number(x, attr[k]) : pads[k],
                      hi = attr ? ot_sizing_number(x, attr[k + rank]) : pads[k + rank];
        out[k] = ot_term_add(x->t->terms, ot_term_add(x->t->terms, in[k], lo), hi);
    }
}

static void gather(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0), index = ot_sizing_dims(x, n, 1);
    if (!in || !index) return;
    const int32_t from = ot_sizing_rank(x, n, 0), more = ot_sizing_rank(x, n, 1),
                  axis = ot_acc_norm_axis(ot_attr_int(n, "axis", 0), from);
    if (axis < 0 || rank != from - 1 + more) return;
    for (int32_t k = 0; k < rank; k++)
        out[k] = k < axis ? in[k] : k < axis + more ? index[k - axis] : in[k - more + 1];
}

static void resize(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    const terms in = ot_sizing_dims(x, n, 0);
    const bool two = n->op == OT_OP_Resize && n->version >= 11;
    const ot_attr *attr = ot_attr_find(n, "scales");
    float scales[OT_RANK_MAX];
    uint32_t count = 0;
    size_t n_axes = 0;
    const int64_t *axes = n->version >= 18 ? ot_attr_ints(n, "axes", &n_axes) : NULL;
    if (!in || ot_sizing_rank(x, n, 0) != rank ||
        strcmp(ot_attr_str(n, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return;
    const terms sizes = two ? ot_sizing_content(x, n, 3, &count) : NULL;
    const bool by_sizes = two && n->n_in > 3 && n->in[3] != OT_NONE && count > 0;
    int64_t have = count;
    if (!by_sizes && n->op == OT_OP_Upsample && attr && attr->kind == OT_ATTR_FLOATS &&
        attr->n <= OT_RANK_MAX) {
        memcpy(scales, attr->floats, attr->n * sizeof *scales);
        have = (int64_t)attr->n;
    } else if (!by_sizes) {
        have = ot_acc_floats(x->g, n, two ? 2 : 1, scales, OT_RANK_MAX);
    }
    if (have != (axes ? (int64_t)n_axes : rank)) return;
    as_first(x, n, out, rank);
    for (int64_t e = 0; e < have; e++) {
        const int32_t a = axes ? ot_acc_norm_axis(axes[e], rank) : (int32_t)e;
        if (a >= 0) out[a] = by_sizes ? sizes[e] : ot_term_scale(x->t->terms, in[a], scales[e]);
    }
}

/* Expand: as a broadcast; ConstantOfShape: the contents themselves; Tile: that many times. */
static void by_contents(ot_sizing *x, const ot_node *n, ot_term *out, int32_t rank)
{
    uint32_t count = 0;
    const uint32_t at = n->op == OT_OP_ConstantOfShape ? 0 : 1;
    const terms in = at ? ot_sizing_dims(x, n, 0) : NULL,
                shape = ot_sizing_content(x, n, at, &count);
    if (!shape || (at && !in)) return;
    if (n->op == OT_OP_Expand) {
        if (ot_sizing_rank(x, n, 0) > rank || count > (uint32_t)rank) return;
        for (int32_t k = 0; k < rank; k++) out[k] = ot_sizing_number(x, 1);
        broadcast(x, in, ot_sizing_rank(x, n, 0), out, rank);
        broadcast(x, shape, (int32_t)count, out, rank);
        return;
    }
    if (count != (uint32_t)rank || (at && ot_sizing_rank(x, n, 0) != rank)) return;
    for (int32_t k = 0; k < rank; k++) {
        out[k] = at ? ot_term_mul(x->t->terms, in[k], shape[k]) : shape[k];
        if (out[k] != OT_NONE && ot_term_least(x->t->terms, out[k]) < 0) out[k] = OT_NONE;
    }
}

/* ---- the graph ---- */

static void fill_output(ot_sizing *x, const ot_node *n, uint32_t at, ot_term *out, int32_t rank)
{
    switch (ot_op_access(n->op)) {
    case OT_ACC_POINTWISE: pointwise(x, n, out, rank); return;
    case OT_ACC_CONV: ot_size_convolution(x, n, out, rank); return;
    case OT_ACC_CONVT: ot_size_transposed(x, n, out, rank); return;
    case OT_ACC_POOL: ot_size_pool(x, n, out, rank); return;
    case OT_ACC_GLOBALPOOL: ot_size_global_pool(x, n, out, rank); return;
    case OT_ACC_NORM:
        if (at == 0) as_first(x, n, out, rank);
        return;
    case OT_ACC_QUANT:
    case OT_ACC_CUMSUM:
    case OT_ACC_SOFTMAX: as_first(x, n, out, rank); return;
    case OT_ACC_REDUCE: reduce(x, n, out, rank); return;
    case OT_ACC_MATMUL: product(x, n, out, rank); return;
    case OT_ACC_GEMM: gemm(x, n, out, rank); return;
    case OT_ACC_TRANSPOSE: transpose(x, n, out, rank); return;
    case OT_ACC_CONCAT: concat(x, n, out, rank); return;
    case OT_ACC_SPLIT: split(x, n, at, out, rank); return;
    case OT_ACC_SLICE:
        if (n->op == OT_OP_Slice) slice(x, n, out, rank);
        if (n->op == OT_OP_Crop) crop(x, n, out, rank);
        return;
    case OT_ACC_PAD: pad(x, n, out, rank); return;
    case OT_ACC_RESIZE: resize(x, n, out, rank); return;
    case OT_ACC_BLOCK: ot_size_blocks(x, n, out); return;
    case OT_ACC_GATHER: gather(x, n, out, rank); return;
    case OT_ACC_EXPAND:
    case OT_ACC_TILE: by_contents(x, n, out, rank); return;
    case OT_ACC_RESHAPE:
        if (n->op == OT_OP_Reshape) reshape(x, n, out, rank);
        if (n->op == OT_OP_Flatten) flatten(x, n, out, rank);
        if (n->op == OT_OP_Squeeze || n->op == OT_OP_Unsqueeze) squeeze(x, n, out, rank);
        return;
    default:
        if (n->op == OT_OP_ConstantOfShape) by_contents(x, n, out, rank);
        return;
    }
}

/* Extents that hold at every size, and no others yet. */
static bool start_value(ot_sizing *x, ot_id id, const ot_term *given)
{
    const ot_value *v = &x->g->values[id];
    if (v->rank < 0) return true;
    ot_term *d = OT_NEW_N(x->a, ot_term, (size_t)v->rank + 1u);
    if (!d) return false;
    for (int32_t k = 0; k < v->rank; k++)
        d[k] = given ? given[k] : v->dims[k] >= 0 ? ot_sizing_number(x, v->dims[k]) : OT_NONE;
    x->t->dims[id] = d;
    return true;
}

static bool fill_node(ot_sizing *x, const ot_node *n)
{
    for (uint32_t o = 0; o < n->n_out; o++) {
        ot_term out[OT_RANK_MAX];
        if (n->out[o] == OT_NONE) continue;
        const ot_value *v = &x->g->values[n->out[o]];
        if (v->rank < 0) continue;
        for (int32_t k = 0; k < v->rank; k++) out[k] = OT_NONE;
        fill_output(x, n, o, out, v->rank);
        for (int32_t k = 0; k < v->rank; k++)
            if (x->t->dims[n->out[o]][k] == OT_NONE) x->t->dims[n->out[o]][k] = out[k];
    }
    ot_sizing_fill_content(x, n);
    return !x->nomem && !ot_size_failed(x->t->terms);
}

/* requires ORDER, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_size_table_fill(const ot_graph *g, ot_size_terms *list, ot_term *const *inputs,
                             ot_arena *a, ot_size_table *out)
{
    ot_sizing x = {.g = g, .a = a, .t = out};
    *out = (ot_size_table){.terms = list,
                           .dims = OT_NEW_N(a, ot_term *, g->n_values + 1u),
                           .content = OT_NEW_N(a, ot_term *, g->n_values + 1u),
                           .n_content = OT_NEW_N(a, uint32_t, g->n_values + 1u),
                           .n_values = g->n_values};
    bool ok = out->dims && out->content && out->n_content;
    for (ot_id v = 0; ok && v < g->n_values; v++) ok = start_value(&x, v, NULL);
    for (uint32_t k = 0; ok && k < g->n_inputs; k++)
        if (inputs[k]) ok = start_value(&x, g->inputs[k], inputs[k]);
    for (uint32_t k = 0; ok && k < g->n_order; k++) ok = fill_node(&x, &g->nodes[g->order[k]]);
    return ok ? OT_OK : ot_fail_nomem(g->model->diag);
}
