/* Operators that change the shape only, and those that read it: Reshape, Flatten, Squeeze,
 * Unsqueeze, Identity, BitCast, Shape, Size.
 *
 * No element moves: the output is a view of the input where the memory plan allows one.
 */
#include "ref_move.h"

/* ---- Reshape ---- */

/* 0 keeps the input's dimension, unless `zero_is_zero`; one -1 takes what is left. */
static ot_status reshape_dims(ot_call *c, const int64_t *v, uint32_t rank, bool zero_is_zero,
                              int64_t *dims)
{
    const ot_nd *x = c->in[0];
    int64_t total = ot_num_count(x), rest = 1;
    uint32_t open = OT_NONE;
    bool zero = false;
    for (uint32_t k = 0; k < rank; k++) {
        dims[k] = v[k];
        zero = zero || v[k] == 0;
        if (v[k] < -1)
            return ot_call_fail(c, "dimension %u of the shape is %lld", k, (long long)v[k]);
        if (v[k] == 0 && !zero_is_zero) {
            if (k >= x->rank)
                return ot_call_fail(
                    c, "dimension %u of the shape copies one that the input has not", k);
            dims[k] = x->dims[k];
        }
        if (v[k] == -1 && open != OT_NONE)
            return ot_call_fail(c, "two dimensions of the shape are -1");
        if (v[k] == -1) open = k;
    }
    if (open == OT_NONE) return OT_OK;
    if (zero && zero_is_zero) return ot_call_fail(c, "with allowzero, its shape has both 0 and -1");
    dims[open] = 1;
    if (!ot_product(dims, rank, &rest)) return ot_call_fail(c, "the shape has too many elements");
    if (rest == 0 ? total != 0 : total % rest != 0)
        return ot_call_fail(c, "%lld elements cannot be shaped so: %lld in the dimensions given",
                            (long long)total, (long long)rest);
    dims[open] = rest == 0 ? 0 : total / rest;
    return OT_OK;
}

ot_status ot_mv_reshape(ot_call *c)
{
    const int64_t *v;
    int64_t n, dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_mv_list(c, 1, "shape", &v, &n));
    if (!v) return ot_call_fail(c, "no shape is given");
    if (n > OT_RANK_MAX)
        return ot_call_fail(c, "a shape of %lld dimensions (at most %d are supported)",
                            (long long)n, OT_RANK_MAX);
    OT_TRY(reshape_dims(c, v, (uint32_t)n, ot_attr_int(c->node, "allowzero", 0) != 0, dims));
    return ot_call_view(c, 0, 0, (uint32_t)n, dims);
}

/* ---- Flatten, Squeeze, Unsqueeze ---- */

ot_status ot_mv_flatten(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    int64_t axis = ot_attr_int(c->node, "axis", 1), dims[2];
    if (axis < -(int64_t)x->rank || axis > (int64_t)x->rank)
        return ot_call_fail(c, "axis %lld is out of range for rank %u", (long long)axis, x->rank);
    if (axis < 0) axis += x->rank;
    if (!ot_product(x->dims, (size_t)axis, &dims[0]) ||
        !ot_product(x->dims + axis, x->rank - (size_t)axis, &dims[1]))
        return ot_call_fail(c, "its dimensions overflow");
    return ot_call_view(c, 0, 0, 2, dims);
}

/* Without axes, or with an empty list of them as ONNX Runtime takes it, all dimensions of 1 go. */
ot_status ot_mv_squeeze(ot_call *c)
{
    const int64_t *v;
    int64_t n, dims[OT_RANK_MAX];
    uint32_t axes[OT_RANK_MAX], count, rank = 0;
    bool gone[OT_RANK_MAX] = {false};
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_list(c, 1, "axes", &v, &n));
    if (n == 0) v = NULL;
    OT_TRY(ot_mv_axes(c, v, n, x->rank, axes, &count));
    for (uint32_t k = 0; k < count; k++) {
        gone[axes[k]] = x->dims[axes[k]] == 1;
        if (v && !gone[axes[k]])
            return ot_call_fail(c, "dimension %u is %lld, not 1", axes[k],
                                (long long)x->dims[axes[k]]);
    }
    for (uint32_t k = 0; k < x->rank; k++)
        if (!gone[k]) dims[rank++] = x->dims[k];
    return ot_call_view(c, 0, 0, rank, dims);
}

ot_status ot_mv_unsqueeze(ot_call *c)
{
    const int64_t *v;
    int64_t n, dims[OT_RANK_MAX];
    uint32_t axes[OT_RANK_MAX], count, from = 0;
    bool made[OT_RANK_MAX] = {false};
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_mv_list(c, 1, "axes", &v, &n));
    if (!v) return ot_call_fail(c, "no axes are given");
    if (n > OT_RANK_MAX - (int64_t)x->rank)
        return ot_call_fail(c, "%lld more dimensions than %u (at most %d are supported)",
                            (long long)n, x->rank, OT_RANK_MAX);
    uint32_t rank = x->rank + (uint32_t)n;
    OT_TRY(ot_mv_axes(c, v, n, rank, axes, &count));
    for (uint32_t k = 0; k < count; k++) made[axes[k]] = true;
    for (uint32_t k = 0; k < rank; k++) dims[k] = made[k] ? 1 : x->dims[from++];
    return ot_call_view(c, 0, 0, rank, dims);
}

/* ---- Identity, BitCast ---- */

ot_status ot_mv_identity(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    if (x->data) return ot_call_view(c, 0, 0, x->rank, x->dims);
    ot_mv_share(c, 0, x); /* a sequence, or an empty optional */
    return OT_OK;
}

ot_status ot_mv_bitcast(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    int64_t to = ot_attr_int(c->node, "to", 0);
    uint32_t bits = to > 0 && to <= OT_I2 ? ot_dtype_bits((ot_dtype)to) : 0;
    size_t size = ot_mv_size(x);
    if (bits < 8 || bits != ot_dtype_bits(x->dtype))
        return ot_call_fail(c, "the bits of %s cannot be read as type %lld",
                            ot_dtype_name(x->dtype), (long long)to);
    OT_TRY(ot_call_output(c, 0, (ot_dtype)to, x->rank, x->dims));
    size_t bytes = (size_t)ot_num_count(x) * size;
    if (bytes) memcpy(c->out[0]->data, x->data, bytes);
    return OT_OK;
}

/* ---- Shape, Size ---- */

/* Dimensions [start, end); ends outside are cut off. */
ot_status ot_mv_shape_of(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    int64_t r = x->rank, start = ot_attr_int(c->node, "start", 0),
            end = ot_attr_int(c->node, "end", r);
    if (start < 0) start += r;
    if (end < 0) end += r;
    start = ot_max(0, ot_min(start, r));
    end = ot_max(start, ot_min(end, r));
    OT_TRY(ot_call_output(c, 0, OT_I64, 1, &(int64_t){end - start}));
    if (end > start)
        memcpy(c->out[0]->data, x->dims + start, (size_t)(end - start) * sizeof(int64_t));
    return OT_OK;
}

ot_status ot_mv_size_of(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_call_output(c, 0, OT_I64, 0, NULL));
    *(int64_t *)c->out[0]->data = ot_num_count(c->in[0]);
    return OT_OK;
}
