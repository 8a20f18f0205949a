/* Shape rules of windowed operators: convolutions, poolings, their transposes, and block moves.
 *
 *   |<lo>|<------- in ------->|<hi>|      extent of a kernel: e = (k - 1) * dilation + 1
 *   [....x x x x x x x x x x x.....]      out = floor((lo + in + hi - e) / stride) + 1
 *   [ e ]                                 ceil_mode: ceil instead of floor, less a last window that
 *        [ e ]  stride apart              would start in the end padding
 *
 * What ONNX leaves open is decided as ONNX Runtime does it. Extents are below 2^48 and attributes
 * at most 2^31, so sums and products of two stay within int64.
 */
#include "shape.h"

/* Attributes of a windowed operator, per spatial axis. */
typedef struct window {
    int32_t n; /* spatial axes */
    int64_t kernel[OT_RANK_MAX], stride[OT_RANK_MAX], dilation[OT_RANK_MAX];
    int64_t lo[OT_RANK_MAX], hi[OT_RANK_MAX], extra[OT_RANK_MAX]; /* extra: output_padding */
    bool same, valid;                                             /* auto_pad SAME_*, VALID */
} window;

/* ints attribute `name` of n elements in [low, ATTR_MAX] into out; `dflt` when absent. */
static ot_status read_ints(ot_infer *c, const char *name, int32_t n, int64_t low, int64_t dflt,
                           int64_t *out)
{
    size_t have = 0;
    const int64_t *v = ot_attr_ints(c->n, name, &have);
    for (int32_t k = 0; k < n; k++) out[k] = dflt;
    if (v == NULL || have == 0) return OT_OK;
    if (have != (size_t)n)
        return ot_shape_fail(c, "%s has %zu values, the input has %d spatial axes", name, have, n);
    for (int32_t k = 0; k < n; k++) {
        if (v[k] < low || v[k] > OT_SHAPE_ATTR_MAX)
            return ot_shape_fail(c, "%s[%d] is %lld, must be in [%lld, 2^31]", name, k,
                                 (long long)v[k], (long long)low);
        out[k] = v[k];
    }
    return OT_OK;
}

static ot_status read_pads(ot_infer *c, window *w)
{
    const char *mode = ot_attr_str(c->n, "auto_pad", "NOTSET");
    w->same = strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0;
    w->valid = strcmp(mode, "VALID") == 0;
    if (!w->same && !w->valid && mode[0] != '\0' && strcmp(mode, "NOTSET") != 0)
        return ot_shape_fail(c, "auto_pad '%s' is not one of NOTSET, SAME_UPPER, SAME_LOWER, VALID",
                             mode);
    size_t have = 0;
    const int64_t *v = w->same || w->valid ? NULL : ot_attr_ints(c->n, "pads", &have);
    for (int32_t k = 0; k < w->n; k++) w->lo[k] = w->hi[k] = 0;
    if (v == NULL || have == 0) return OT_OK;
    if (have != 2 * (size_t)w->n)
        return ot_shape_fail(c, "pads has %zu values, needs two for each of %d spatial axes", have,
                             w->n);
    for (int32_t k = 0; k < 2 * w->n; k++) {
        if (v[k] < 0 || v[k] > OT_SHAPE_ATTR_MAX)
            return ot_shape_fail(c, "pads[%d] is %lld, must be in [0, 2^31]", k, (long long)v[k]);
        if (k < w->n)
            w->lo[k] = v[k];
        else
            w->hi[k - w->n] = v[k];
    }
    return OT_OK;
}

/* strides, dilations, pads; the kernel is the caller's. */
static ot_status read_window(ot_infer *c, int32_t n, window *w)
{
    w->n = n;
    OT_TRY(read_ints(c, "strides", n, 1, 1, w->stride));
    OT_TRY(read_ints(c, "dilations", n, 1, 1, w->dilation));
    return read_pads(c, w);
}

/* kernel_shape against the weight's spatial dims. */
static ot_status read_kernel(ot_infer *c, const ot_value *weight, int32_t n, window *w)
{
    OT_TRY(read_ints(c, "kernel_shape", n, 1, OT_DIM_UNKNOWN, w->kernel));
    if (weight == NULL) return OT_OK;
    for (int32_t k = 0; k < n; k++) {
        if (!ot_shape_merge(&w->kernel[k], weight->dims[2 + k]))
            return ot_shape_fail(c, "kernel_shape[%d] is %lld, but the weight's kernel is %lld", k,
                                 (long long)w->kernel[k], (long long)weight->dims[2 + k]);
        if (w->kernel[k] == 0)
            return ot_shape_fail(c, "the kernel is empty along spatial axis %d", k);
    }
    return OT_OK;
}

/* Output extent of axis k for input extent `in`; unknown stays unknown. */
static ot_status conv_out(ot_infer *c, const window *w, int32_t k, int64_t in, int64_t *out)
{
    *out = OT_DIM_UNKNOWN;
    if (in < 0) return OT_OK;
    if (w->same) {
        *out = ot_ceil_div(in, w->stride[k]);
        return OT_OK;
    }
    if (w->kernel[k] < 0) return OT_OK;
    int64_t e = (w->kernel[k] - 1) * w->dilation[k] + 1;
    int64_t room = in + w->lo[k] + w->hi[k] - e;
    if (room < 0)
        return ot_shape_fail(
            c, "the window (%lld) is larger than the padded input (%lld) along spatial axis %d",
            (long long)e, (long long)(room + e), k);
    *out = room / w->stride[k] + 1;
    return OT_OK;
}

/* Same for a pooling. ONNX Runtime computes the pads of SAME_* without regard to dilation. A window
 * larger than the padded input, and dilated windows with gaps between them under SAME_*, are left
 * unknown: its kernels disagree about them. */
static int64_t pool_out(const window *w, int32_t k, int64_t in, bool ceil_mode)
{
    if (in < 0) return OT_DIM_UNKNOWN;
    int64_t stride = w->stride[k], pads = w->lo[k] + w->hi[k];
    if (w->same && w->dilation[k] == 1) return ot_ceil_div(in, stride);
    if (w->same) pads = (ot_ceil_div(in, stride) - 1) * stride + w->kernel[k] - in;
    int64_t lo = w->same ? pads / 2 : w->lo[k];
    int64_t room = in + pads - (w->kernel[k] - 1) * w->dilation[k] - 1;
    if (room < 0 || pads < 0) return OT_DIM_UNKNOWN;
    int64_t out = (ceil_mode ? ot_ceil_div(room, stride) : room / stride) + 1;
    if (ceil_mode && (out - 1) * stride >= in + lo) out--;
    return out;
}

/* ---- convolutions ---- */

static ot_dtype conv_type(const ot_infer *c)
{
    if (c->n->op == OT_OP_ConvInteger) return OT_I32;
    if (c->n->op != OT_OP_QLinearConv) return ot_shape_dtype(c, 0);
    ot_dtype t = ot_shape_dtype(c, 7);
    return t != OT_DT_UNKNOWN ? t : ot_shape_dtype(c, 0);
}

/* Ranks of input and weight agree; gives the rank, or -1. */
static ot_status conv_rank(ot_infer *c, const ot_value *x, const ot_value *w, int32_t *rank)
{
    *rank = x != NULL ? x->rank : w != NULL ? w->rank : -1;
    size_t k = 0;
    if (*rank < 0 && ot_attr_ints(c->n, "kernel_shape", &k) != NULL && k < OT_RANK_MAX - 2)
        *rank = (int32_t)k + 2;
    if (x != NULL && w != NULL && x->rank != w->rank)
        return ot_shape_fail(c, "input has rank %d, weight has rank %d", x->rank, w->rank);
    if (*rank >= 0 && *rank < 3)
        return ot_shape_fail(c, "input has rank %d, needs N, C and at least one spatial axis",
                             *rank);
    return OT_OK;
}

/* `have` channels against what the weight wants; unknowns fit. */
static ot_status check_channels(ot_infer *c, int64_t have, int64_t per_group, int64_t group)
{
    if (have < 0 || per_group < 0) return OT_OK;
    int64_t want = 0;
    if (!ot_mul_i64(per_group, group, &want) || want != have)
        return ot_shape_fail(c, "input has %lld channels, the weight wants %lld x group %lld",
                             (long long)have, (long long)per_group, (long long)group);
    return OT_OK;
}

static ot_status check_bias(ot_infer *c, uint32_t k, int64_t maps)
{
    const ot_value *b = ot_shape_ranked(c, k);
    if (b == NULL || maps < 0) return OT_OK;
    if (b->rank != 1 || (b->dims[0] >= 0 && b->dims[0] != maps))
        return ot_shape_fail(c, "bias must have shape [%lld]", (long long)maps);
    return OT_OK;
}

/* The input that is the bias of a convolution. */
static uint32_t bias_input(const ot_node *n)
{
    if (n->op == OT_OP_QLinearConv) return 8;
    return strcmp(n->op_type, "DeformConv") == 0 ? 3 : 2;
}

static ot_status read_group(ot_infer *c, int64_t *group)
{
    *group = ot_attr_int(c->n, "group", 1);
    if (*group < 1 || *group > OT_SHAPE_ATTR_MAX)
        return ot_shape_fail(c, "group is %lld, must be at least 1", (long long)*group);
    return OT_OK;
}

ot_status ot_shape_conv(ot_infer *c)
{
    bool qlinear = c->n->op == OT_OP_QLinearConv;
    const ot_value *x = ot_shape_ranked(c, 0), *w = ot_shape_ranked(c, qlinear ? 3 : 1);
    ot_shape_set_type(c, 0, conv_type(c));
    int32_t rank;
    int64_t group, d[OT_RANK_MAX] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    OT_TRY(read_group(c, &group));
    OT_TRY(conv_rank(c, x, w, &rank));
    if (rank < 0) return OT_OK;
    window win;
    OT_TRY(read_window(c, rank - 2, &win));
    OT_TRY(read_kernel(c, w, rank - 2, &win));
    if (x != NULL) d[0] = x->dims[0];
    if (w != NULL) {
        d[1] = w->dims[0];
        if (d[1] >= 0 && d[1] % group != 0)
            return ot_shape_fail(c, "%lld output channels do not divide into %lld groups",
                                 (long long)d[1], (long long)group);
        if (x != NULL) OT_TRY(check_channels(c, x->dims[1], w->dims[1], group));
        if (c->n->op != OT_OP_ConvInteger) OT_TRY(check_bias(c, bias_input(c->n), d[1]));
    }
    for (int32_t k = 0; k < rank - 2; k++)
        OT_TRY(conv_out(c, &win, k, x == NULL ? OT_DIM_UNKNOWN : x->dims[2 + k], &d[2 + k]));
    ot_shape_set(c, 0, conv_type(c), rank, d);
    return OT_OK;
}

/* Attribute output_shape: the last n values (older files give N and C too), or NULL. */
static ot_status read_output_shape(ot_infer *c, int32_t n, const int64_t **out)
{
    size_t have = 0;
    *out = ot_attr_ints(c->n, "output_shape", &have);
    if (*out == NULL || have == 0) {
        *out = NULL;
        return OT_OK;
    }
    if (have != (size_t)n && have != (size_t)n + 2)
        return ot_shape_fail(c, "output_shape has %zu values, the input has %d spatial axes", have,
                             n);
    *out += have - (size_t)n;
    for (int32_t k = 0; k < n; k++)
        if ((*out)[k] < 1)
            return ot_shape_fail(c, "output_shape[%d] is %lld", k, (long long)(*out)[k]);
    return OT_OK;
}

static ot_status transposed_out(ot_infer *c, const window *w, int32_t k, int64_t in, int64_t *out)
{
    *out = OT_DIM_UNKNOWN;
    if (in < 0) return OT_OK;
    if (w->kernel[k] < 0) return OT_OK;
    int64_t e = (w->kernel[k] - 1) * w->dilation[k] + 1;
    if (!ot_mul_i64(in - 1, w->stride[k], out) ||
        !ot_add_i64(*out, e + w->extra[k] - w->lo[k] - w->hi[k], out))
        return ot_shape_fail(c, "the output size overflows");
    if (w->same) *out = ot_min(*out, in * w->stride[k]); /* crops to the target, never adds */
    if (*out <= 0)
        return ot_shape_fail(c, "pads leave an output size of %lld on spatial axis %d",
                             (long long)*out, k);
    return OT_OK;
}

ot_status ot_shape_conv_transpose(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *w = ot_shape_ranked(c, 1);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    int32_t rank;
    int64_t group, d[OT_RANK_MAX] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    OT_TRY(read_group(c, &group));
    OT_TRY(conv_rank(c, x, w, &rank));
    if (rank < 0) return OT_OK;
    window win;
    const int64_t *fixed;
    OT_TRY(read_window(c, rank - 2, &win));
    OT_TRY(read_kernel(c, w, rank - 2, &win));
    OT_TRY(read_ints(c, "output_padding", rank - 2, 0, 0, win.extra));
    OT_TRY(read_output_shape(c, rank - 2, &fixed));
    if (x != NULL) d[0] = x->dims[0];
    if (w != NULL) {
        if (w->dims[1] >= 0 && !ot_mul_i64(w->dims[1], group, &d[1]))
            return ot_shape_fail(c, "the number of output channels overflows");
        if (x != NULL && x->dims[1] >= 0 &&
            (x->dims[1] % group != 0 || (w->dims[0] >= 0 && w->dims[0] != x->dims[1])))
            return ot_shape_fail(c, "input has %lld channels, the weight has %lld in %lld groups",
                                 (long long)x->dims[1], (long long)w->dims[0], (long long)group);
        OT_TRY(check_bias(c, 2, d[1]));
    }
    for (int32_t k = 0; k < rank - 2; k++) {
        if (fixed != NULL)
            d[2 + k] = fixed[k];
        else
            OT_TRY(
                transposed_out(c, &win, k, x == NULL ? OT_DIM_UNKNOWN : x->dims[2 + k], &d[2 + k]));
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), rank, d);
    return OT_OK;
}

/* ---- pooling ---- */

/* kernel_shape is there and fits x; gives the number of spatial axes (-1: not even that is known).
 */
static ot_status pool_axes(ot_infer *c, const ot_value *x, int32_t *n)
{
    size_t have = 0;
    if (ot_attr_ints(c->n, "kernel_shape", &have) == NULL)
        return ot_shape_fail(c, "attribute kernel_shape is missing");
    if (have == 0 || have > OT_RANK_MAX - 2)
        return ot_shape_fail(c, "kernel_shape has %zu values, must have 1 to %d", have,
                             OT_RANK_MAX - 2);
    *n = (int32_t)have;
    if (x != NULL && x->rank != *n + 2)
        return ot_shape_fail(c, "kernel_shape has %d values, but the input has rank %d", *n,
                             x->rank);
    return OT_OK;
}

/* ONNX Runtime refuses pads that reach the kernel size: a window would hold padding only. */
static ot_status check_pool_pads(ot_infer *c, const window *w)
{
    for (int32_t k = 0; k < w->n; k++) {
        if (w->lo[k] >= w->kernel[k] || w->hi[k] >= w->kernel[k])
            return ot_shape_fail(
                c, "pads (%lld, %lld) of spatial axis %d reach the kernel size %lld",
                (long long)w->lo[k], (long long)w->hi[k], k, (long long)w->kernel[k]);
    }
    return OT_OK;
}

ot_status ot_shape_pool(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int32_t n;
    window w;
    OT_TRY(pool_axes(c, x, &n));
    OT_TRY(read_window(c, n, &w));
    OT_TRY(read_ints(c, "kernel_shape", n, 1, 1, w.kernel));
    OT_TRY(check_pool_pads(c, &w));
    bool ceil_mode = ot_attr_int(c->n, "ceil_mode", 0) != 0;
    int64_t d[OT_RANK_MAX];
    for (int32_t k = 0; k < n + 2; k++) d[k] = x == NULL ? OT_DIM_UNKNOWN : x->dims[k];
    for (int32_t k = 0; k < n; k++) d[2 + k] = pool_out(&w, k, d[2 + k], ceil_mode);
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), n + 2, d);
    ot_shape_set(c, 1, OT_I64, n + 2, d);
    return OT_OK;
}

ot_status ot_shape_global_pool(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    if (x->rank < 3)
        return ot_shape_fail(c, "input has rank %d, needs N, C and at least one spatial axis",
                             x->rank);
    int64_t d[OT_RANK_MAX];
    for (int32_t k = 0; k < x->rank; k++) d[k] = k < 2 ? x->dims[k] : 1;
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), x->rank, d);
    return OT_OK;
}

ot_status ot_shape_max_unpool(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int32_t n;
    window w;
    OT_TRY(pool_axes(c, x, &n));
    OT_TRY(read_window(c, n, &w));
    OT_TRY(read_ints(c, "kernel_shape", n, 1, 1, w.kernel));
    size_t have = 0;
    const int64_t *fixed = ot_shape_ints(c, 2, &have);
    int64_t d[OT_RANK_MAX];
    for (int32_t k = 0; k < n + 2; k++) d[k] = x == NULL ? OT_DIM_UNKNOWN : x->dims[k];
    if (fixed != NULL && have != (size_t)n + 2)
        return ot_shape_fail(c, "output_shape has %zu values, the input has rank %d", have, n + 2);
    for (int32_t k = 2; k < n + 2; k++) {
        int64_t in = d[k];
        d[k] = OT_DIM_UNKNOWN;
        if (fixed != NULL)
            d[k] = fixed[k];
        else if (ot_shape_in(c, 2) == NULL && in > 0)
            d[k] = (in - 1) * ot_min(w.stride[k - 2], OT_SHAPE_ATTR_MAX / 2) + w.kernel[k - 2] -
                   w.lo[k - 2] - w.hi[k - 2];
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), n + 2, d);
    return OT_OK;
}

ot_status ot_shape_roi_align(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *rois = ot_shape_ranked(c, 1);
    if (x != NULL && x->rank != 4)
        return ot_shape_fail(c, "input has rank %d, must have 4", x->rank);
    if (rois != NULL && rois->rank != 2)
        return ot_shape_fail(c, "rois has rank %d, must have 2", rois->rank);
    int64_t h = ot_attr_int(c->n, "output_height", 1), w = ot_attr_int(c->n, "output_width", 1);
    if (h < 1 || w < 1)
        return ot_shape_fail(c, "output size %lld x %lld is not positive", (long long)h,
                             (long long)w);
    int64_t d[4] = {rois == NULL ? OT_DIM_UNKNOWN : rois->dims[0],
                    x == NULL ? OT_DIM_UNKNOWN : x->dims[1], h, w};
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 4, d);
    return OT_OK;
}

/* ---- DepthToSpace, SpaceToDepth ---- */

static ot_status read_block(ot_infer *c, const ot_value *x, int64_t *b)
{
    *b = ot_attr_int(c->n, "blocksize", 0);
    if (*b < 1 || *b > 65536)
        return ot_shape_fail(c, "blocksize is %lld, must be in [1, 65536]", (long long)*b);
    if (x != NULL && x->rank != 4)
        return ot_shape_fail(c, "input has rank %d, must have 4", x->rank);
    return OT_OK;
}

ot_status ot_shape_depth_to_space(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t b, d[4] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN, OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    OT_TRY(read_block(c, x, &b));
    if (x != NULL) {
        d[0] = x->dims[0];
        if (x->dims[1] >= 0) {
            if (x->dims[1] % (b * b) != 0)
                return ot_shape_fail(c, "%lld channels are no multiple of blocksize %lld squared",
                                     (long long)x->dims[1], (long long)b);
            d[1] = x->dims[1] / (b * b);
        }
        for (int32_t k = 2; k < 4; k++)
            if (x->dims[k] >= 0 && !ot_mul_i64(x->dims[k], b, &d[k]))
                return ot_shape_fail(c, "the output size overflows");
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 4, d);
    return OT_OK;
}

ot_status ot_shape_space_to_depth(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t b, d[4] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN, OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    OT_TRY(read_block(c, x, &b));
    if (x != NULL) {
        d[0] = x->dims[0];
        if (x->dims[1] >= 0 && !ot_mul_i64(x->dims[1], b * b, &d[1]))
            return ot_shape_fail(c, "the number of channels overflows");
        for (int32_t k = 2; k < 4; k++) {
            if (x->dims[k] < 0) continue;
            if (x->dims[k] % b != 0)
                return ot_shape_fail(c, "dim %d is %lld, no multiple of blocksize %lld", k,
                                     (long long)x->dims[k], (long long)b);
            d[k] = x->dims[k] / b;
        }
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 4, d);
    return OT_OK;
}
