/* Operators that copy boxes: Transpose, Slice, Crop, Split, Concat, Expand, DepthToSpace,
 * SpaceToDepth, ReverseSequence.
 *
 * Each finds the starts and strides of the two sides and calls ot_mv_copy; see ref_move.h.
 * Arrays without elements end there.
 */
#include "ref_move.h"

static ot_status need_axis(ot_call *c, const ot_nd *x, int64_t dflt, uint32_t *axis)
{
    return ot_num_axis(c, ot_attr_int(c->node, "axis", dflt), x->rank, axis);
}

/* ---- Transpose ---- */

ot_status ot_mv_transpose(ot_call *c)
{
    const int64_t *perm;
    int64_t n, dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    uint32_t axes[OT_RANK_MAX], count;
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_list(c, OT_NONE, "perm", &perm, &n));
    OT_TRY(ot_mv_axes(c, perm, n, x->rank, axes, &count));
    if (count != x->rank) return ot_call_fail(c, "perm has %u axes, the input %u", count, x->rank);
    for (uint32_t k = 0; k < x->rank; k++) {
        uint32_t from = perm ? axes[k] : x->rank - 1 - k;
        dims[k] = x->dims[from];
        strides[k] = x->strides[from];
    }
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    ot_mv_copy(ot_mv_size(x), x->rank, dims, c->out[0]->data, c->out[0]->strides, x->data, strides);
    return OT_OK;
}

/* ---- Slice ---- */

typedef struct slice_lists {
    const int64_t *starts, *ends, *axes, *steps;
    int64_t n;
} slice_lists;

/* Elements start, start + step, ... before end, of n; negative ones count from the end, what
 * lies outside is cut off. The largest integers mean "to the end", backwards, too. */
static void slice_axis(int64_t n, int64_t start, int64_t end, int64_t step, int64_t *first,
                       int64_t *count)
{
    bool to_the_end = end == INT32_MAX || end == INT64_MAX;
    if (start < 0) start += n;
    if (end < 0) end += n;
    start = ot_max(0, ot_min(start, step > 0 ? n : n - 1));
    end = step > 0 ? ot_max(0, ot_min(end, n)) : to_the_end ? -1 : ot_max(-1, ot_min(end, n - 1));
    uint64_t span = step > 0 ? (end > start ? (uint64_t)(end - start) : 0)
                             : (start > end ? (uint64_t)(start - end) : 0);
    uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    *first = start;
    *count = n == 0 || span == 0 ? 0 : (int64_t)((span - 1) / size + 1);
}

static ot_status slice_read(ot_call *c, slice_lists *s)
{
    int64_t n_ends, n_axes, n_steps;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_mv_list(c, 1, "starts", &s->starts, &s->n));
    OT_TRY(ot_mv_list(c, 2, "ends", &s->ends, &n_ends));
    OT_TRY(ot_mv_list(c, 3, "axes", &s->axes, &n_axes));
    OT_TRY(ot_mv_list(c, 4, NULL, &s->steps, &n_steps));
    if (!s->starts || !s->ends) return ot_call_fail(c, "starts and ends are needed");
    if (n_ends != s->n || (s->axes && n_axes != s->n) || (s->steps && n_steps != s->n))
        return ot_call_fail(c, "its lists of starts, ends, axes and steps differ in length");
    if (s->n > c->in[0]->rank)
        return ot_call_fail(c, "%lld dimensions to slice, but the input has %u", (long long)s->n,
                            c->in[0]->rank);
    return OT_OK;
}

ot_status ot_mv_slice(ot_call *c)
{
    slice_lists s;
    uint32_t axes[OT_RANK_MAX], count;
    int64_t dims[OT_RANK_MAX], strides[OT_RANK_MAX], first[OT_RANK_MAX], from = 0;
    OT_TRY(slice_read(c, &s));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_axes(c, s.axes, s.n, x->rank, axes, &count));
    memcpy(dims, x->dims, sizeof dims);
    memcpy(strides, x->strides, sizeof strides);
    for (uint32_t k = 0; k < s.n; k++) {
        int64_t step = s.steps ? s.steps[k] : 1;
        if (step == 0) return ot_call_fail(c, "step %u is 0", k);
        slice_axis(x->dims[axes[k]], s.starts[k], s.ends[k], step, &first[k], &dims[axes[k]]);
    }
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    for (uint32_t k = 0; k < s.n; k++) {
        uint32_t a = axes[k];
        from += first[k] * x->strides[a];
        strides[a] = dims[a] > 1 && s.steps ? x->strides[a] * s.steps[k] : x->strides[a];
    }
    ot_mv_copy(ot_mv_size(x), x->rank, dims, c->out[0]->data, c->out[0]->strides, ot_mv_at(x, from),
               strides);
    return OT_OK;
}

/* ---- Crop, of opsets 1 to 9 ---- */

ot_status ot_mv_crop(ot_call *c)
{
    size_t n = 0, n_scale = 0;
    const int64_t *border = ot_attr_ints(c->node, "border", &n),
                  *scale = ot_attr_ints(c->node, "scale", &n_scale);
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    if (x->rank != 4 || n != 4 || !border)
        return ot_call_fail(c, "a picture and four borders are needed");
    int64_t dims[4] = {x->dims[0], x->dims[1]}, from = 0;
    for (uint32_t k = 0; k < 2; k++) { /* border: left, top, right, bottom */
        int64_t in = x->dims[2 + k], lo = border[1 - k], hi = border[3 - k];
        if (lo < 0 || hi < 0 || lo > in || hi > in)
            return ot_call_fail(c, "a border is wider than the picture");
        dims[2 + k] = scale && n_scale == 2 ? scale[k] : in - lo - hi;
        if (dims[2 + k] < 1 || dims[2 + k] > in - lo)
            return ot_call_fail(c, "nothing is left, or more than there is");
        from += lo * x->strides[2 + k];
    }
    OT_TRY(ot_call_output(c, 0, x->dtype, 4, dims));
    if (ot_num_count(c->out[0]) == 0) return OT_OK;
    ot_mv_copy(ot_mv_size(x), 4, dims, c->out[0]->data, c->out[0]->strides, ot_mv_at(x, from),
               x->strides);
    return OT_OK;
}

/* ---- Split ---- */

/* Sizes of the n_out parts of `total`. */
static ot_status split_sizes(ot_call *c, int64_t total, int64_t *size)
{
    const int64_t *v;
    int64_t n, sum = 0, parts = ot_attr_int(c->node, "num_outputs", c->n_out);
    OT_TRY(ot_mv_list(c, 1, "split", &v, &n));
    if (v ? n != c->n_out : parts != c->n_out)
        return ot_call_fail(c, "%lld parts for %u outputs", (long long)(v ? n : parts), c->n_out);
    if (!v && total % parts != 0 && c->node->version < 18)
        return ot_call_fail(c, "%lld elements cannot be split into %lld equal parts",
                            (long long)total, (long long)parts);
    int64_t each = ot_ceil_div(total, parts);
    for (uint32_t k = 0; k < c->n_out; k++) {
        size[k] = v ? v[k] : ot_min(each, total - sum); /* the last ones are smaller */
        if (size[k] < 0 || !ot_add_i64(sum, size[k], &sum) || sum > total)
            return ot_call_fail(c, "part %u of %lld elements does not fit into %lld", k,
                                (long long)size[k], (long long)total);
    }
    if (sum != total)
        return ot_call_fail(c, "its parts have %lld elements, the input %lld", (long long)sum,
                            (long long)total);
    return OT_OK;
}

ot_status ot_mv_split(ot_call *c)
{
    uint32_t axis;
    int64_t from = 0, dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    OT_TRY(need_axis(c, x, 0, &axis));
    int64_t *size = ot_num_scratch(c, c->n_out, sizeof *size);
    if (!size) return OT_E_NOMEM;
    OT_TRY(split_sizes(c, x->dims[axis], size));
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t k = 0; k < c->n_out; k++) {
        dims[axis] = size[k];
        OT_TRY(ot_call_output(c, k, x->dtype, x->rank, dims));
        if (c->out[k] && ot_num_count(c->out[k]) > 0)
            ot_mv_copy(ot_mv_size(x), x->rank, dims, c->out[k]->data, c->out[k]->strides,
                       ot_mv_at(x, from * x->strides[axis]), x->strides);
        from += size[k];
    }
    return OT_OK;
}

/* ---- Concat ---- */

/* Inputs agree but for the axis; its dimensions add up. */
static ot_status concat_dims(ot_call *c, uint32_t axis, int64_t *dims)
{
    const ot_nd *first = c->in[0];
    memcpy(dims, first->dims, sizeof first->dims);
    for (uint32_t k = 1; k < c->n_in; k++) {
        OT_TRY(ot_num_same_type(c, k, 0));
        OT_TRY(ot_num_rank(c, k, first->rank));
        for (uint32_t a = 0; a < first->rank; a++)
            if (a != axis && c->in[k]->dims[a] != first->dims[a])
                return ot_call_fail(c, "input %u has %lld elements along axis %u, input 0 has %lld",
                                    k, (long long)c->in[k]->dims[a], a, (long long)first->dims[a]);
        if (!ot_add_i64(dims[axis], c->in[k]->dims[axis], &dims[axis]))
            return ot_call_fail(c, "its inputs are too large together");
    }
    return OT_OK;
}

ot_status ot_mv_concat(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], at = 0;
    uint32_t axis;
    OT_TRY(ot_call_need(c, c->n_in ? c->n_in : 1));
    const ot_nd *first = c->in[0];
    if (!ot_attr_find(c->node, "axis") && c->node->version >= 4)
        return ot_call_fail(c, "attribute 'axis' is missing");
    OT_TRY(need_axis(c, first, 1, &axis));
    OT_TRY(concat_dims(c, axis, dims));
    OT_TRY(ot_call_output(c, 0, first->dtype, first->rank, dims));
    ot_nd *y = c->out[0];
    if (ot_num_count(y) == 0) return OT_OK;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const ot_nd *x = c->in[k];
        ot_mv_copy(ot_mv_size(x), x->rank, x->dims, ot_mv_at(y, at * y->strides[axis]), y->strides,
                   x->data, x->strides);
        at += x->dims[axis];
    }
    return OT_OK;
}

/* ---- Expand ---- */

/* Input and shape broadcast to one another: a 1 in the shape keeps the input's dimension. */
ot_status ot_mv_expand(ot_call *c)
{
    int64_t want[OT_RANK_MAX], dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    uint32_t n;
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_shape(c, 1, &n, want));
    uint32_t rank = n > x->rank ? n : x->rank;
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t from_end = rank - k;
        int64_t w = from_end <= n ? want[n - from_end] : 1,
                d = from_end <= x->rank ? x->dims[x->rank - from_end] : 1;
        if (w != d && w != 1 && d != 1)
            return ot_call_fail(c, "dimension %u: %lld cannot be expanded to %lld", k, (long long)d,
                                (long long)w);
        dims[k] = d == 1 ? w : d;
        strides[k] = d == 1 ? 0 : x->strides[x->rank - from_end];
    }
    OT_TRY(ot_call_output(c, 0, x->dtype, rank, dims));
    ot_mv_copy(ot_mv_size(x), rank, dims, c->out[0]->data, c->out[0]->strides, x->data, strides);
    return OT_OK;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

static ot_status block_read(ot_call *c, int64_t *block, bool *columns_first)
{
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_rank(c, 0, 4));
    const char *mode = ot_attr_str(c->node, "mode", "DCR");
    *block = ot_attr_int(c->node, "blocksize", 0);
    *columns_first = strcmp(mode, "CRD") == 0;
    if (!*columns_first && strcmp(mode, "DCR") != 0)
        return ot_call_fail(c, "mode '%.40s' is neither DCR nor CRD", mode);
    if (*block <= 0 || *block > INT32_MAX)
        return ot_call_fail(c, "blocksize %lld is out of range", (long long)*block);
    return OT_OK;
}

/* The deep side as [N, a, b, c, H, W]: (a, b, c) is (row, column, depth) in DCR, (depth, row,
 * column) in CRD; the wide side is [N, depth, H, row, W, column]. perm: where each dimension of
 * the wide side lies in the deep one. */
static const uint32_t *block_perm(bool columns_first)
{
    static const uint32_t dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
    return columns_first ? crd : dcr;
}

/* Copy between the deep side (dims given) and the wide side. */
static void block_copy(ot_call *c, const int64_t *deep, bool columns_first, bool to_deep)
{
    const uint32_t *perm = block_perm(columns_first);
    ot_nd shape = {0}, wide_shape = {0};
    int64_t wide[6], strides[6];
    ot_nd_set_dense(&shape, c->in[0]->dtype, 6, deep);
    for (uint32_t k = 0; k < 6; k++) {
        wide[k] = deep[perm[k]];
        strides[k] = shape.strides[perm[k]];
    }
    ot_nd_set_dense(&wide_shape, c->in[0]->dtype, 6, wide);
    ot_mv_copy(ot_mv_size(c->in[0]), 6, wide, c->out[0]->data,
               to_deep ? strides : wide_shape.strides, c->in[0]->data,
               to_deep ? wide_shape.strides : strides);
}

ot_status ot_mv_depth_to_space(ot_call *c)
{
    int64_t b, h, w;
    bool crd;
    OT_TRY(block_read(c, &b, &crd));
    const ot_nd *x = c->in[0];
    const int64_t *d = x->dims;
    if (d[1] % (b * b) != 0)
        return ot_call_fail(c, "%lld channels are not a multiple of %lld", (long long)d[1],
                            (long long)(b * b));
    if (!ot_mul_i64(d[2], b, &h) || !ot_mul_i64(d[3], b, &w))
        return ot_call_fail(c, "its output is too large");
    int64_t depth = d[1] / (b * b), out[4] = {d[0], depth, h, w};
    int64_t deep[6] = {d[0], crd ? depth : b, b, crd ? b : depth, d[2], d[3]};
    OT_TRY(ot_call_output(c, 0, x->dtype, 4, out));
    block_copy(c, deep, crd, false);
    return OT_OK;
}

ot_status ot_mv_space_to_depth(ot_call *c)
{
    int64_t b, channels;
    bool crd;
    OT_TRY(block_read(c, &b, &crd));
    const ot_nd *x = c->in[0];
    const int64_t *d = x->dims;
    if (d[2] % b != 0 || d[3] % b != 0)
        return ot_call_fail(c, "%lld x %lld is not a multiple of block size %lld", (long long)d[2],
                            (long long)d[3], (long long)b);
    if (!ot_mul_i64(d[1], b * b, &channels)) return ot_call_fail(c, "its output is too large");
    int64_t out[4] = {d[0], channels, d[2] / b, d[3] / b};
    int64_t deep[6] = {d[0], crd ? d[1] : b, b, crd ? b : d[1], d[2] / b, d[3] / b};
    OT_TRY(ot_call_output(c, 0, x->dtype, 4, out));
    block_copy(c, deep, crd, true);
    return OT_OK;
}

/* ---- ReverseSequence ---- */

/* Of each batch the first lens[b] steps are turned round, the others kept. */
ot_status ot_mv_reverse_sequence(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], strides[OT_RANK_MAX];
    uint32_t batch, time;
    OT_TRY(ot_call_need(c, 2));
    const ot_nd *x = c->in[0], *lens = c->in[1];
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "batch_axis", 1), x->rank, &batch));
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "time_axis", 0), x->rank, &time));
    if (batch == time) return ot_call_fail(c, "batch_axis and time_axis are the same");
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_dims(c, 1, 1, &x->dims[batch]));
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    ot_nd *y = c->out[0];
    if (ot_num_count(y) == 0) return OT_OK;
    memcpy(dims, x->dims, sizeof dims);
    memcpy(strides, x->strides, sizeof strides);
    dims[batch] = 1;
    for (int64_t b = 0; b < x->dims[batch]; b++) {
        int64_t len = ot_nd_int(lens, b), at = b * x->strides[batch];
        if (len < 0 || len > x->dims[time])
            return ot_call_fail(c, "sequence length %lld is out of range", (long long)len);
        dims[time] = len;
        strides[time] = -x->strides[time];
        if (len > 0)
            ot_mv_copy(ot_mv_size(x), x->rank, dims, ot_mv_at(y, at), y->strides,
                       ot_mv_at(x, at + (len - 1) * x->strides[time]), strides);
        dims[time] = x->dims[time] - len;
        at += len * x->strides[time];
        if (dims[time] > 0)
            ot_mv_copy(ot_mv_size(x), x->rank, dims, ot_mv_at(y, at), y->strides, ot_mv_at(x, at),
                       x->strides);
    }
    return OT_OK;
}
