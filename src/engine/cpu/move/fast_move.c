/* Transpose, Slice, Split, Concat, Expand, Tile, DepthToSpace, SpaceToDepth: each is one box or
 * a few (box.h), with strides as in ref_move_box.c. The family's table is at the end.
 */
#include "fast_move.h"

#include "box_leaf.h"
#include "engine/ref/ref_move.h"

void ot_move_box(const ot_call *c, ot_box_shape shape, char *dst, const int64_t *dst_strides,
                 const char *src, const int64_t *src_strides)
{
    const size_t size = shape.size;
    int64_t n[OT_RANK_MAX], to[OT_RANK_MAX], from[OT_RANK_MAX];
    uint32_t kept = 0;
    for (uint32_t k = 0; k < shape.rank; k++) {
        if (shape.dims[k] == 1) continue;
        n[kept] = shape.dims[k];
        to[kept] = dst_strides[k];
        from[kept++] = src_strides[k];
    }
    bool usual = kept <= OT_BOX_RANK && (size == 1 || size == 2 || size == 4 || size == 8);
    if (usual)
        ot_box_copy((ot_box_shape){size, kept, n}, dst, to, src, from, c->threads);
    else
        ot_mv_copy(size, kept, n, dst, to, src, from);
}

bool ot_move_usual(const ot_call *c, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (k >= c->n_in || !c->in[k] || c->in[k]->list || ot_dtype_bytes(c->in[k]->dtype) == 0)
            return false;
    return c->n_out > 0 && c->out[0];
}

int ot_move_threads(const ot_call *c, int64_t bytes)
{
    return (int)ot_box_shares(bytes, c->threads);
}

/* A box of input 0 to the whole of output 0. */
static ot_status to_output(ot_call *c, uint32_t rank, const int64_t *dims, int64_t first,
                           const int64_t *strides)
{
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    if (ot_num_count(c->out[0]) > 0)
        ot_move_box(c, (ot_box_shape){ot_mv_size(x), rank, dims}, c->out[0]->data,
                    c->out[0]->strides, ot_mv_at(x, first), strides);
    return OT_OK;
}

/* ---- Transpose ---- */

static ot_status fast_transpose(ot_call *c)
{
    const int64_t *perm;
    int64_t n, dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    uint32_t axes[OT_RANK_MAX], count;
    if (!ot_move_usual(c, 1)) return ot_op_reference(OT_OP_Transpose)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_list(c, OT_NONE, "perm", &perm, &n));
    OT_TRY(ot_mv_axes(c, perm, n, x->rank, axes, &count));
    if (count != x->rank) return ot_op_reference(OT_OP_Transpose)(c);
    for (uint32_t k = 0; k < x->rank; k++) {
        uint32_t from = perm ? axes[k] : x->rank - 1 - k;
        dims[k] = x->dims[from];
        strides[k] = x->strides[from];
    }
    return to_output(c, x->rank, dims, 0, strides);
}

/* ---- Slice ---- */

/* One axis of n elements: [start, end) by step as the operator has them -> first element, how many.
 */
static void slice_axis(int64_t n, int64_t start, int64_t end, int64_t step, int64_t *first,
                       int64_t *count)
{
    bool back = step < 0, to_the_end = end == INT32_MAX || end == INT64_MAX;
    start = start < 0 ? start + n : start;
    end = end < 0 ? end + n : end;
    start = ot_max(0, ot_min(start, back ? n - 1 : n));
    end = !back ? ot_max(0, ot_min(end, n)) : to_the_end ? -1 : ot_max(-1, ot_min(end, n - 1));
    uint64_t span = back ? (uint64_t)ot_max(0, start - end) : (uint64_t)ot_max(0, end - start);
    uint64_t size = back ? 0 - (uint64_t)step : (uint64_t)step;
    *first = start;
    *count = n == 0 || span == 0 ? 0 : (int64_t)((span - 1) / size + 1);
}

static ot_status fast_slice(ot_call *c)
{
    const int64_t *starts, *ends, *which, *steps;
    int64_t n, n_ends, n_axes, n_steps, at = 0, dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    uint32_t axes[OT_RANK_MAX], count;
    if (!ot_move_usual(c, 1)) return ot_op_reference(OT_OP_Slice)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_list(c, 1, "starts", &starts, &n));
    OT_TRY(ot_mv_list(c, 2, "ends", &ends, &n_ends));
    OT_TRY(ot_mv_list(c, 3, "axes", &which, &n_axes));
    OT_TRY(ot_mv_list(c, 4, NULL, &steps, &n_steps));
    bool fits = starts && ends && n_ends == n && (!which || n_axes == n) &&
                (!steps || n_steps == n) && n <= x->rank;
    for (int64_t k = 0; fits && steps && k < n; k++) fits = steps[k] != 0;
    if (!fits) return ot_op_reference(OT_OP_Slice)(c);
    OT_TRY(ot_mv_axes(c, which, n, x->rank, axes, &count));
    memcpy(dims, x->dims, sizeof dims);
    memcpy(strides, x->strides, sizeof strides);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t a = axes[k];
        int64_t first, step = steps ? steps[k] : 1;
        slice_axis(x->dims[a], starts[k], ends[k], step, &first, &dims[a]);
        if (dims[a] > 0 && ot_num_count(x) > 0) at += first * x->strides[a];
        if (dims[a] > 1) strides[a] = x->strides[a] * step;
    }
    return to_output(c, x->rank, dims, at, strides);
}

/* ---- Split ---- */

static ot_status fast_split(ot_call *c)
{
    const int64_t *given;
    int64_t n, total = 0, from = 0, dims[OT_RANK_MAX],
               parts = ot_attr_int(c->node, "num_outputs", c->n_out);
    uint32_t axis;
    bool usual = c->n_in > 0 && c->in[0] && !c->in[0]->list &&
                 ot_dtype_bytes(c->in[0]->dtype) > 0 && c->n_out > 0;
    if (!usual) return ot_op_reference(OT_OP_Split)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), x->rank, &axis));
    OT_TRY(ot_mv_list(c, 1, "split", &given, &n));
    bool even = !given && parts == c->n_out && x->dims[axis] % parts == 0,
         fits = given ? n == c->n_out : even;
    for (uint32_t k = 0; fits && k < c->n_out && given; k++)
        fits = given[k] >= 0 && ot_add_i64(total, given[k], &total);
    if (!fits || (given && total != x->dims[axis])) return ot_op_reference(OT_OP_Split)(c);
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t k = 0; k < c->n_out; k++) {
        dims[axis] = given ? given[k] : x->dims[axis] / parts;
        OT_TRY(ot_call_output(c, k, x->dtype, x->rank, dims));
        if (c->out[k] && ot_num_count(c->out[k]) > 0)
            ot_move_box(c, (ot_box_shape){ot_mv_size(x), x->rank, dims}, c->out[k]->data,
                        c->out[k]->strides, ot_mv_at(x, from * x->strides[axis]), x->strides);
        from += dims[axis];
    }
    return OT_OK;
}

/* ---- Concat ---- */

/* Do all inputs agree but for the axis? dims: theirs, added up along it. */
static bool concat_dims(const ot_call *c, uint32_t axis, int64_t *dims)
{
    const ot_nd *first = c->in[0];
    memcpy(dims, first->dims, sizeof first->dims);
    for (uint32_t k = 1; k < c->n_in; k++) {
        const ot_nd *x = c->in[k];
        if (x->dtype != first->dtype || x->rank != first->rank ||
            !ot_add_i64(dims[axis], x->dims[axis], &dims[axis]))
            return false;
        for (uint32_t a = 0; a < first->rank; a++)
            if (a != axis && x->dims[a] != first->dims[a]) return false;
    }
    return true;
}

static ot_status fast_concat(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], at = 0;
    uint32_t axis;
    bool given = ot_attr_find(c->node, "axis") || c->node->version < 4;
    if (c->n_in == 0 || !given || !ot_move_usual(c, c->n_in))
        return ot_op_reference(OT_OP_Concat)(c);
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 1), c->in[0]->rank, &axis));
    if (!concat_dims(c, axis, dims)) return ot_op_reference(OT_OP_Concat)(c);
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, c->in[0]->rank, dims));
    ot_nd *y = c->out[0];
    for (uint32_t k = 0; k < c->n_in && ot_num_count(y) > 0; k++) {
        const ot_nd *x = c->in[k];
        if (ot_num_count(x) > 0)
            ot_move_box(c, (ot_box_shape){ot_mv_size(x), x->rank, x->dims},
                        ot_mv_at(y, at * y->strides[axis]), y->strides, x->data, x->strides);
        at += x->dims[axis];
    }
    return OT_OK;
}

/* ---- Expand, Tile ---- */

static ot_status fast_expand(ot_call *c)
{
    int64_t want[OT_RANK_MAX], dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    uint32_t n;
    if (!ot_move_usual(c, 2)) return ot_op_reference(OT_OP_Expand)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_shape(c, 1, &n, want));
    uint32_t rank = n > x->rank ? n : x->rank;
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t from_end = rank - k;
        int64_t w = from_end <= n ? want[n - from_end] : 1,
                d = from_end <= x->rank ? x->dims[x->rank - from_end] : 1;
        if (w != d && w != 1 && d != 1) return ot_op_reference(OT_OP_Expand)(c);
        dims[k] = d == 1 ? w : d;
        strides[k] = d == 1 ? 0 : x->strides[x->rank - from_end];
    }
    return to_output(c, rank, dims, 0, strides);
}

/* Repetitions are dims of their own: [r0, d0, r1, d1, ...], of stride 0 in the input. */
static ot_status fast_tile(ot_call *c)
{
    const int64_t *repeats;
    int64_t n, dims[OT_RANK_MAX], box[OT_RANK_MAX], to[OT_RANK_MAX], from[OT_RANK_MAX];
    uint32_t rank = 0;
    if (c->n_in != 2 || !ot_move_usual(c, 2)) return ot_op_reference(OT_OP_Tile)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_list(c, 1, NULL, &repeats, &n));
    bool fits = n == x->rank;
    for (uint32_t k = 0; fits && k < n; k++) {
        rank += (repeats[k] != 1) + (x->dims[k] != 1);
        fits = repeats[k] >= 0 && ot_mul_i64(x->dims[k], repeats[k], &dims[k]);
    }
    if (!fits || rank > OT_RANK_MAX) return ot_op_reference(OT_OP_Tile)(c);
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    ot_nd *y = c->out[0];
    if (ot_num_count(y) == 0) return OT_OK;
    rank = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        const int64_t part[2] = {repeats[k], x->dims[k]},
                      y_step[2] = {x->dims[k] * y->strides[k], y->strides[k]},
                      x_step[2] = {0, x->strides[k]};
        for (int j = 0; j < 2; j++) {
            if (part[j] == 1) continue;
            box[rank] = part[j];
            to[rank] = y_step[j];
            from[rank++] = x_step[j];
        }
    }
    ot_move_box(c, (ot_box_shape){ot_mv_size(x), rank, box}, y->data, to, x->data, from);
    return OT_OK;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

/* The deep side as [N, a, b, c, H, W], (a, b, c) being (row, column, depth) in DCR, (depth, row,
 * column) in CRD; the wide side as [N, depth, H, row, W, column]. Which of the deep side's dims
 * each of these is: */
static const uint32_t wide_dims[2][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};

static ot_status move_blocks(ot_call *c, ot_op op, bool to_deep)
{
    const char *mode = ot_attr_str(c->node, "mode", "DCR");
    int64_t b = ot_attr_int(c->node, "blocksize", 0), high, wide;
    bool crd = strcmp(mode, "CRD") == 0;
    if (!ot_move_usual(c, 1) || c->in[0]->rank != 4 || b <= 0 || b > INT16_MAX ||
        (!crd && strcmp(mode, "DCR") != 0))
        return ot_op_reference(op)(c);
    const ot_nd *x = c->in[0];
    const int64_t *d = x->dims;
    if (to_deep ? d[2] % b != 0 || d[3] % b != 0 : d[1] % (b * b) != 0)
        return ot_op_reference(op)(c);
    if (to_deep ? !ot_mul_i64(d[1], b * b, &high)
                : !ot_mul_i64(d[2], b, &high) || !ot_mul_i64(d[3], b, &wide))
        return ot_op_reference(op)(c);
    int64_t depth = to_deep ? d[1] : d[1] / (b * b), rows = to_deep ? d[2] / b : d[2],
            columns = to_deep ? d[3] / b : d[3];
    const int64_t out[4] = {d[0], to_deep ? high : depth, to_deep ? rows : high,
                            to_deep ? columns : wide};
    const int64_t deep[6] = {d[0], crd ? depth : b, b, crd ? b : depth, rows, columns};
    OT_TRY(ot_call_output(c, 0, x->dtype, 4, out));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    ot_nd deep_side = {0}, wide_side = {0};
    int64_t dims[6], strides[6];
    ot_nd_set_dense(&deep_side, x->dtype, 6, deep);
    for (uint32_t k = 0; k < 6; k++) {
        dims[k] = deep[wide_dims[crd][k]];
        strides[k] = deep_side.strides[wide_dims[crd][k]];
    }
    ot_nd_set_dense(&wide_side, x->dtype, 6, dims);
    ot_move_box(c, (ot_box_shape){ot_mv_size(x), 6, dims}, c->out[0]->data,
                to_deep ? strides : wide_side.strides, x->data,
                to_deep ? wide_side.strides : strides);
    return OT_OK;
}

static ot_status fast_depth_to_space(ot_call *c)
{
    return move_blocks(c, OT_OP_DepthToSpace, false);
}
static ot_status fast_space_to_depth(ot_call *c)
{
    return move_blocks(c, OT_OP_SpaceToDepth, true);
}

/* ---- the family ---- */

const ot_op_entry ot_fast_move[] = {
    {OT_OP_Transpose, fast_transpose},
    {OT_OP_Slice, fast_slice},
    {OT_OP_Split, fast_split},
    {OT_OP_Concat, fast_concat},
    {OT_OP_Expand, fast_expand},
    {OT_OP_Tile, fast_tile},
    {OT_OP_DepthToSpace, fast_depth_to_space},
    {OT_OP_SpaceToDepth, fast_space_to_depth},
    {OT_OP_Pad, ot_fast_pad},
    {OT_OP_Gather, ot_fast_gather},
    {OT_OP_GatherElements, ot_fast_gather_elements},
    {OT_OP_GatherND, ot_fast_gather_nd},
    {OT_OP_ScatterElements, ot_fast_scatter_elements},
    {OT_OP_ScatterND, ot_fast_scatter_nd},
    {OT_OP_Trilu, ot_fast_trilu},
    {OT_OP_EyeLike, ot_fast_eye_like},
    {OT_OP_OneHot, ot_fast_one_hot},
    {OT_OP_Range, ot_fast_range},
    {OT_OP_NonZero, ot_fast_non_zero},
    {OT_OP_Unique, ot_fast_unique},
    {OT_OP_NonMaxSuppression, ot_fast_non_max_suppression},
    {OT_OP_Cast, ot_fast_cast},
    {OT_OP_Where, ot_fast_where},
    {OT_OP_Add, ot_fast_int_binary},
    {OT_OP_Sub, ot_fast_int_binary},
    {OT_OP_Mul, ot_fast_int_binary},
    {OT_OP_Clip, ot_fast_int_clip},
    {OT_OP_Equal, ot_fast_int_binary},
    {OT_OP_Less, ot_fast_int_binary},
    {OT_OP_LessOrEqual, ot_fast_int_binary},
    {OT_OP_Greater, ot_fast_int_binary},
    {OT_OP_GreaterOrEqual, ot_fast_int_binary},
    {OT_OP_Resize, ot_fast_resize},
    {OT_OP_Upsample, ot_fast_resize},
    {OT_OP_OPAQUE, NULL},
};
