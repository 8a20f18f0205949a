/* Shapes of operators outside ops.def on images, of losses, and of recurrences (shape_extra.c).
 * Nothing is an error: a rule that does not apply leaves the output as the file states it.
 */
#include "ops.h"
#include "shape.h"

static int64_t dim_of(const ot_value *v, int32_t a)
{
    return v != NULL && a < v->rank ? v->dims[a] : OT_DIM_UNKNOWN;
}

/* A positive extent of a list of extents; unknown where there is none. */
static int64_t extent_at(const int64_t *list, size_t n, size_t k)
{
    return list != NULL && k < n && list[k] > 0 && list[k] <= OT_SHAPE_DIM_MAX ? list[k]
                                                                               : OT_DIM_UNKNOWN;
}

/* x [N, C, H, W], rois [R, 5] -> [R, C, pooled_shape] */
ot_status ot_shape_max_roi_pool(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *rois = ot_shape_ranked(c, 1);
    size_t n = 0;
    const int64_t *pooled = ot_attr_ints(c->n, "pooled_shape", &n);
    int64_t d[4] = {dim_of(rois, 0), dim_of(x, 1), extent_at(pooled, n, 0),
                    extent_at(pooled, n, 1)};
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 4, d);
    return OT_OK;
}

/* columns [N, C * block, positions], image shape, block shape -> [N, C, image shape] */
ot_status ot_shape_col2im(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *shape = ot_shape_ranked(c, 1);
    size_t n = 0, n_block = 0;
    const int64_t *image = ot_shape_ints(c, 1, &n), *block = ot_shape_ints(c, 2, &n_block);
    int64_t each, d[OT_RANK_MAX];
    int64_t axes = image ? (int64_t)n : dim_of(shape, 0);
    if (axes < 1 || axes > OT_RANK_MAX - 2) return OT_OK;
    d[0] = dim_of(x, 0);
    d[1] = OT_DIM_UNKNOWN;
    if (block != NULL && ot_product(block, n_block, &each) && each > 0 && dim_of(x, 1) >= 0 &&
        dim_of(x, 1) % each == 0)
        d[1] = dim_of(x, 1) / each;
    for (int64_t k = 0; k < axes; k++) d[k + 2] = extent_at(image, n, (size_t)k);
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), (int32_t)axes + 2, d);
    return OT_OK;
}

/* theta [N, n, n + 1], size [N, C, D1 ... Dn] -> grid [N, D1 ... Dn, n] */
ot_status ot_shape_affine_grid(ot_infer *c)
{
    const ot_value *theta = ot_shape_ranked(c, 0), *size = ot_shape_ranked(c, 1);
    size_t n = 0;
    const int64_t *s = ot_shape_ints(c, 1, &n);
    int64_t axes = s ? (int64_t)n - 2 : dim_of(size, 0) - 2, d[OT_RANK_MAX];
    if (axes < 1 && dim_of(theta, 1) > 0) axes = dim_of(theta, 1);
    if (axes < 1 || axes > OT_RANK_MAX - 2) return OT_OK;
    d[0] = dim_of(theta, 0) >= 0 ? dim_of(theta, 0) : extent_at(s, n, 0);
    for (int64_t k = 0; k < axes; k++) d[k + 1] = extent_at(s, n, (size_t)k + 2);
    d[axes + 1] = axes;
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), (int32_t)axes + 2, d);
    return OT_OK;
}

/* x with the extents of input 1 along `axes` (all, where they are not named) */
ot_status ot_shape_center_crop_pad(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    size_t n = 0, n_axes = 0;
    const int64_t *s = ot_shape_ints(c, 1, &n), *axes = ot_attr_ints(c->n, "axes", &n_axes);
    int64_t d[OT_RANK_MAX];
    if (x == NULL) return OT_OK;
    if (axes == NULL) n_axes = (size_t)x->rank;
    for (int32_t a = 0; a < x->rank; a++) d[a] = x->dims[a];
    for (size_t k = 0; k < n_axes; k++) {
        int64_t a = axes == NULL ? (int64_t)k : axes[k] < 0 ? axes[k] + x->rank : axes[k];
        if (a < 0 || a >= x->rank) return OT_OK;
        d[a] = extent_at(s, n, k);
    }
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

/* The same elements of another type. */
ot_status ot_shape_bit_cast(ot_infer *c)
{
    int64_t t = ot_attr_int(c->n, "to", 0);
    ot_shape_set_like(c, 0, t > 0 && t <= OT_I2 ? (ot_dtype)t : OT_DT_UNKNOWN,
                      ot_shape_ranked(c, 0));
    return OT_OK;
}

/* scores [N, C, ...], labels [N, ...] -> one loss, or (reduction none) one for each label; output
 * 1, where there is one, is like the scores. */
ot_status ot_shape_loss(ot_infer *c)
{
    const ot_dtype t = ot_shape_dtype(c, 0);
    if (strcmp(ot_attr_str(c->n, "reduction", "mean"), "none") == 0)
        ot_shape_set_like(c, 0, t, ot_shape_ranked(c, 1));
    else
        ot_shape_set(c, 0, t, 0, NULL);
    ot_shape_set_like(c, 1, t, ot_shape_ranked(c, 0));
    return OT_OK;
}

/* input [N, C, L], weight [C, 1, k] -> the same, and a state of k - 1 positions */
ot_status ot_shape_causal_conv(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *w = ot_shape_ranked(c, 1);
    int64_t k = dim_of(w, 2);
    int64_t d[3] = {dim_of(x, 0), dim_of(x, 1), k > 0 ? k - 1 : OT_DIM_UNKNOWN};
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 0), x);
    ot_shape_set(c, 1, ot_shape_dtype(c, 0), 3, d);
    return OT_OK;
}

/* query [B, T, Hq * dk], key [B, T, H * dk], value [B, T, H * dv] -> [B, T, Hq * dv], and a state
 * [B, H, dk, dv] */
ot_status ot_shape_linear_attention(ot_infer *c)
{
    const ot_value *q = ot_shape_ranked(c, 0), *k = ot_shape_ranked(c, 1),
                   *v = ot_shape_ranked(c, 2);
    const int64_t heads = ot_attr_int(c->n, "kv_num_heads", 0),
                  query_heads = ot_attr_int(c->n, "q_num_heads", 0);
    int64_t dk = dim_of(k, 2), dv = dim_of(v, 2), out = OT_DIM_UNKNOWN;
    dk = heads > 0 && dk >= 0 ? dk / heads : OT_DIM_UNKNOWN;
    dv = heads > 0 && dv >= 0 ? dv / heads : OT_DIM_UNKNOWN;
    if (dv < 0 || query_heads < 1 || !ot_mul_i64(query_heads, dv, &out)) out = OT_DIM_UNKNOWN;
    int64_t d[3] = {dim_of(q, 0), dim_of(q, 1), out};
    int64_t state[4] = {dim_of(q, 0), heads > 0 ? heads : OT_DIM_UNKNOWN, dk, dv};
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 3, d);
    ot_shape_set(c, 1, ot_shape_dtype(c, ot_shape_in(c, 3) ? 3 : 0), 4, state);
    return OT_OK;
}

/* Q [..., head size], V [..., its head size]: a result with the last of V */
ot_status ot_shape_flex_attention(ot_infer *c)
{
    const ot_value *q = ot_shape_ranked(c, 0), *v = ot_shape_ranked(c, 2);
    int64_t d[4] = {dim_of(q, 0), dim_of(q, 1), dim_of(q, 2), dim_of(v, 3)};
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 4, d);
    return OT_OK;
}
