/* Data movement: the copying loops, the checks that operators share, and the family's table. See
 * ref_move.h. */
#include "ref_move.h"

/* ---- copies ---- */

#define ROW(type)                                   \
    for (int64_t i = 0; i < n; i++) {               \
        type v;                                     \
        memcpy(&v, from + i * from_step, sizeof v); \
        memcpy(to + i * to_step, &v, sizeof v);     \
    }

/* n pieces of `bytes` bytes; steps count bytes, too. */
static void copy_row(size_t bytes, int64_t n, char *to, int64_t to_step, const char *from,
                     int64_t from_step)
{
    switch (bytes) {
    case 1: ROW(uint8_t) break;
    case 2: ROW(uint16_t) break;
    case 4: ROW(uint32_t) break;
    case 8: ROW(uint64_t) break;
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, bytes);
        break;
    }
}

#undef ROW

void ot_mv_copy(size_t size, uint32_t rank, const int64_t *dims, char *to,
                const int64_t *to_strides, const char *from, const int64_t *from_strides)
{
    int64_t pos[OT_RANK_MAX] = {0}, n, run = 1, bytes = (int64_t)size;
    if (!ot_product(dims, rank, &n) || n == 0) return;
    /* the innermost dimensions that are dense on both sides are one piece */
    while (rank > 0 &&
           (dims[rank - 1] == 1 || (to_strides[rank - 1] == run && from_strides[rank - 1] == run)))
        run *= dims[--rank];
    if (rank == 0) {
        memcpy(to, from, (size_t)(run * bytes));
        return;
    }
    uint32_t last = rank - 1;
    do {
        int64_t t = 0, f = 0;
        for (uint32_t k = 0; k < last; k++) {
            t += pos[k] * to_strides[k];
            f += pos[k] * from_strides[k];
        }
        copy_row((size_t)(run * bytes), dims[last], to + t * bytes, to_strides[last] * bytes,
                 from + f * bytes, from_strides[last] * bytes);
    } while (ot_num_next(last, dims, pos));
}

void ot_mv_mapped(ot_nd *y, const ot_nd *x, int64_t *const *map, const void *fill)
{
    int64_t pos[OT_RANK_MAX] = {0}, n = ot_num_count(y);
    size_t size = ot_mv_size(y);
    for (int64_t i = 0; i < n; i++) {
        const char *from = x->data;
        for (uint32_t k = 0; k < y->rank && from; k++) {
            int64_t at = map[k][pos[k]];
            from = at < 0 ? NULL : from + at * x->strides[k] * (int64_t)size;
        }
        memcpy(ot_mv_at(y, i), from ? from : fill, size);
        (void)ot_num_next(y->rank, y->dims, pos);
    }
}

/* ---- checks ---- */

ot_status ot_mv_list(ot_call *c, uint32_t k, const char *attr, const int64_t **v, int64_t *n)
{
    static const int64_t nothing[1] = {0};
    const ot_nd *a = ot_num_in(c, k);
    size_t count = 0;
    *v = NULL;
    *n = 0;
    if (!a) {
        const ot_attr *at = attr ? ot_attr_find(c->node, attr) : NULL;
        *v = at ? ot_attr_ints(c->node, attr, &count) : NULL;
        if (at && !*v && at->n > 0)
            return ot_call_fail(c, "attribute '%s' is no list of integers", attr);
        if (at && !*v) *v = nothing;
        *n = (int64_t)count;
        return OT_OK;
    }
    OT_TRY(ot_num_type(c, k, OT_NUM_INDEX));
    if (a->rank > 1) return ot_call_fail(c, "input %u has rank %u, must be a list", k, a->rank);
    *v = ot_num_ints(c, a);
    *n = ot_num_count(a);
    return *v ? OT_OK : OT_E_NOMEM;
}

ot_status ot_mv_shape(ot_call *c, uint32_t k, uint32_t *rank, int64_t *dims)
{
    const int64_t *v;
    int64_t n;
    OT_TRY(ot_mv_list(c, k, NULL, &v, &n));
    if (!v) return ot_call_fail(c, "input %u, a shape, is missing", k);
    if (n > OT_RANK_MAX)
        return ot_call_fail(c, "a shape of %lld dimensions (at most %d are supported)",
                            (long long)n, OT_RANK_MAX);
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < 0)
            return ot_call_fail(c, "dimension %lld of the shape is negative (%lld)", (long long)i,
                                (long long)v[i]);
        dims[i] = v[i];
    }
    *rank = (uint32_t)n;
    return OT_OK;
}

ot_status ot_mv_axes(ot_call *c, const int64_t *v, int64_t n, uint32_t rank, uint32_t *axes,
                     uint32_t *count)
{
    bool seen[OT_RANK_MAX] = {false};
    if (!v) n = rank;
    if (n > rank || n > OT_RANK_MAX)
        return ot_call_fail(c, "%lld axes given for rank %u", (long long)n, rank);
    for (uint32_t k = 0; k < n; k++) {
        axes[k] = k;
        if (v) OT_TRY(ot_num_axis(c, v[k], rank, &axes[k]));
        if (seen[axes[k]]) return ot_call_fail(c, "axis %u is given twice", axes[k]);
        seen[axes[k]] = true;
    }
    *count = (uint32_t)n;
    return OT_OK;
}

ot_status ot_mv_scalar(ot_call *c, uint32_t k, int64_t *v)
{
    const ot_nd *a = ot_num_in(c, k);
    if (!a) return ot_call_fail(c, "input %u is omitted, but needed", k);
    OT_TRY(ot_num_type(c, k, OT_NUM_INTS | OT_NUM_BIT(OT_BOOL)));
    OT_TRY(ot_num_single(c, k));
    *v = ot_nd_int(a, 0);
    return OT_OK;
}

ot_status ot_mv_index(ot_call *c, int64_t v, int64_t n, int64_t *out)
{
    if (v < -n || v >= n)
        return ot_call_fail(c, "index %lld is out of range for %lld elements", (long long)v,
                            (long long)n);
    *out = v < 0 ? v + n : v;
    return OT_OK;
}

/* ---- outputs that exist already ---- */

void ot_mv_give(ot_call *c, uint32_t k, ot_nd *a)
{
    ot_nd *y = ot_num_out(c, k);
    if (!y) {
        ot_nd_release(a);
        return;
    }
    ot_nd_release(y);
    *y = *a;
    *a = (ot_nd){0};
}

void ot_mv_share(ot_call *c, uint32_t k, const ot_nd *a)
{
    ot_nd copy;
    ot_nd_share(&copy, a);
    ot_mv_give(c, k, &copy);
}

/* ---- the family ---- */

const ot_op_entry ot_ops_move[] = {
    {OT_OP_Reshape, ot_mv_reshape},
    {OT_OP_Flatten, ot_mv_flatten},
    {OT_OP_Squeeze, ot_mv_squeeze},
    {OT_OP_Unsqueeze, ot_mv_unsqueeze},
    {OT_OP_Identity, ot_mv_identity},
    {OT_OP_Shape, ot_mv_shape_of},
    {OT_OP_Size, ot_mv_size_of},
    {OT_OP_Transpose, ot_mv_transpose},
    {OT_OP_Slice, ot_mv_slice},
    {OT_OP_Crop, ot_mv_crop},
    {OT_OP_Split, ot_mv_split},
    {OT_OP_Concat, ot_mv_concat},
    {OT_OP_Expand, ot_mv_expand},
    {OT_OP_DepthToSpace, ot_mv_depth_to_space},
    {OT_OP_SpaceToDepth, ot_mv_space_to_depth},
    {OT_OP_ReverseSequence, ot_mv_reverse_sequence},
    {OT_OP_Pad, ot_mv_pad},
    {OT_OP_Tile, ot_mv_tile},
    {OT_OP_Gather, ot_mv_gather},
    {OT_OP_GatherRows, ot_mv_gather_rows},
    {OT_OP_GatherElements, ot_mv_gather_elements},
    {OT_OP_GatherND, ot_mv_gather_nd},
    {OT_OP_Compress, ot_mv_compress},
    {OT_OP_Scatter, ot_mv_scatter_elements},
    {OT_OP_ScatterElements, ot_mv_scatter_elements},
    {OT_OP_ScatterND, ot_mv_scatter_nd},
    {OT_OP_Constant, ot_mv_constant},
    {OT_OP_ConstantOfShape, ot_mv_constant_of_shape},
    {OT_OP_Range, ot_mv_range},
    {OT_OP_EyeLike, ot_mv_eye_like},
    {OT_OP_OneHot, ot_mv_one_hot},
    {OT_OP_Trilu, ot_mv_trilu},
    {OT_OP_NonZero, ot_mv_non_zero},
    {OT_OP_Unique, ot_mv_unique},
    {OT_OP_NonMaxSuppression, ot_mv_non_max_suppression},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_ops_move_named[] = {
    {"", "BitCast", ot_mv_bitcast},
    {"", "CenterCropPad", ot_mv_center_crop_pad},
    {"", "TensorScatter", ot_mv_tensor_scatter},
    {"", "HannWindow", ot_mv_hann_window},
    {"", "HammingWindow", ot_mv_hamming_window},
    {"", "BlackmanWindow", ot_mv_blackman_window},
    {NULL, NULL, NULL},
};
