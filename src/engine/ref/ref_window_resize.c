/* Resize and Upsample, all versions.
 *
 *   Upsample 7  attribute scales  Resize 10      input 1: scales          asymmetric coordinates
 *                                                                         only
 *   Upsample 9  input 1: scales   Resize 11, 13  roi, scales or sizes     a coordinate
 *                                                                         transformation
 *                                 Resize 18, 19  axes, antialias, aspect ratio policy,
 *                                                half_pixel_symmetric
 *
 * Interpolation is separable. Each axis gets a table: for every output coordinate, which input
 * elements with which weights.
 *
 *   x_original = transform(x_resized)  . . o . x . o . .  linear: 2 neighbours, cubic: 4,
 *                                      antialias: as many as one output
 *                                      |___| weight       pixel covers; elements beyond the edge
 *                                                         are the edge, or weigh
 *                                                         nothing (exclude_outside)
 *
 * Coordinates are single precision, as ONNX Runtime computes them: 1.3 is no float, and (19 +
 * 0.5) / 1.3 - 0.5, which is 14.5, comes out as 14.500001. So what lies within TIE_SLACK of the
 * middle between two elements counts as the middle.
 */
#include "ref_window.h"

#include <math.h>

#define TIE_SLACK 1e-6f

typedef enum mode { NEAREST, LINEAR, CUBIC } mode;
typedef enum transform {
    HALF_PIXEL,
    SYMMETRIC,
    PYTORCH,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    TF_CROP
} transform;
typedef enum rounding { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL, SIMPLE } rounding;

typedef struct axis {
    int64_t in, out;
    float scale;  /* out / in, or as given */
    float length; /* of the output, before it was cut to a whole number: in * scale */
    float roi_lo, roi_hi;
    int64_t n_taps; /* of each output coordinate */
    int64_t *index; /* [out][n_taps] */
    double *weight; /* [out][n_taps] */
    bool *outside;  /* [out] TF_CROP: takes the extrapolation value */
} axis;

typedef struct resize {
    mode mode;
    transform transform;
    rounding rounding;
    bool antialias, exclude_outside;
    /* ALIGN_CORNERS reckons with `length`, as the reference code of opset 19 does; before that
     * (and in ONNX Runtime) with the whole number */
    bool uncut;
    double cubic_a, extrapolation;
    uint32_t rank, n_axes;
    uint32_t at[OT_RANK_MAX]; /* [n_axes] which axes roi, scales and sizes speak of */
    axis axes[OT_RANK_MAX];
} resize;

/* ---- attributes ---- */

/* Position of the attribute's value among `names`; the first when absent. */
static ot_status choose(ot_call *c, const char *name, const char *const *names, int n, int dflt,
                        int *out)
{
    const char *s = ot_attr_str(c->node, name, names[dflt]);
    for (*out = 0; *out < n; ++*out)
        if (strcmp(s, names[*out]) == 0) return OT_OK;
    return ot_call_fail(c, "%s '%s' is unknown", name, s);
}

static ot_status read_modes(ot_call *c, resize *r, bool modern)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const transforms[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    int m, t = ASYMMETRIC, q = SIMPLE;
    OT_TRY(choose(c, "mode", modes, 4, 0, &m));
    if (modern) {
        OT_TRY(choose(c, "coordinate_transformation_mode", transforms, 7, HALF_PIXEL, &t));
        OT_TRY(choose(c, "nearest_mode", roundings, 4, PREFER_FLOOR, &q));
    }
    r->mode = m == 3 ? LINEAR : (mode)m;
    r->transform = (transform)t;
    r->rounding = (rounding)q;
    r->antialias = modern && r->mode != NEAREST && ot_attr_int(c->node, "antialias", 0) != 0;
    r->uncut = c->node->version == 0 || c->node->version >= 19;
    r->exclude_outside = modern && ot_attr_int(c->node, "exclude_outside", 0) != 0;
    r->cubic_a = (double)ot_attr_float(c->node, "cubic_coeff_a", -0.75f);
    r->extrapolation = (double)ot_attr_float(c->node, "extrapolation_value", 0);
    return OT_OK;
}

static ot_status read_axes(ot_call *c, const ot_nd *x, resize *r)
{
    size_t n = 0;
    const int64_t *list = ot_attr_ints(c->node, "axes", &n);
    bool seen[OT_RANK_MAX] = {false};
    r->rank = x->rank;
    r->n_axes = list && n > 0 ? (uint32_t)ot_min((int64_t)n, OT_RANK_MAX + 1) : x->rank;
    if (r->n_axes > x->rank)
        return ot_call_fail(c, "%zu axes, but the input has rank %u", n, x->rank);
    for (uint32_t e = 0; e < r->n_axes; e++) {
        OT_TRY(ot_num_axis(c, list && n > 0 ? list[e] : e, x->rank, &r->at[e]));
        if (seen[r->at[e]]) return ot_call_fail(c, "axis %u is named twice", r->at[e]);
        seen[r->at[e]] = true;
    }
    for (uint32_t k = 0; k < x->rank; k++) {
        if (x->dims[k] > (int64_t)1 << 40) return ot_call_fail(c, "axis %u is too large", k);
        r->axes[k] = (axis){.in = x->dims[k],
                            .out = x->dims[k],
                            .scale = 1,
                            .length = (float)x->dims[k],
                            .roi_hi = 1};
    }
    return OT_OK;
}

static ot_status set_scale(ot_call *c, axis *a, float scale, double out)
{
    if (!(scale > 0)) return ot_call_fail(c, "a scale is %g, must be positive", (double)scale);
    if (!(out < 0x1p40)) return ot_call_fail(c, "the output size is too large");
    a->scale = scale;
    a->out = scale == 1 ? a->in : (int64_t)out;
    a->length = scale * (float)a->in;
    return OT_OK;
}

static ot_status by_scales(ot_call *c, resize *r, const ot_nd *scales, const float *attr, int64_t n)
{
    if (n != r->n_axes) return ot_call_fail(c, "%lld scales for %u axes", (long long)n, r->n_axes);
    for (uint32_t e = 0; e < r->n_axes; e++) {
        axis *a = &r->axes[r->at[e]];
        float s = attr ? attr[e] : (float)ot_nd_double(scales, e);
        OT_TRY(set_scale(c, a, s, (double)floorf(s * (float)a->in)));
    }
    return OT_OK;
}

static ot_status by_sizes(ot_call *c, resize *r, const ot_nd *sizes)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy;
    float common = 0;
    OT_TRY(choose(c, "keep_aspect_ratio_policy", policies, 3, 0, &policy));
    if (ot_num_count(sizes) != r->n_axes)
        return ot_call_fail(c, "%lld sizes for %u axes", (long long)ot_num_count(sizes), r->n_axes);
    for (uint32_t e = 0; e < r->n_axes; e++) {
        axis *a = &r->axes[r->at[e]];
        int64_t out = ot_nd_int(sizes, e);
        if (out < 0 || out > (int64_t)1 << 40)
            return ot_call_fail(c, "a size is %lld", (long long)out);
        if (a->in == 0 && out > 0)
            return ot_call_fail(c, "axis %u has no elements to resize", r->at[e]);
        float s = a->in == 0 ? 1 : (float)out / (float)a->in;
        if (e == 0 || (policy == 1 ? s < common : s > common)) common = s;
        a->out = out;
        a->scale = s;
        a->length = (float)out;
    }
    for (uint32_t e = 0; policy != 0 && e < r->n_axes; e++) {
        axis *a = &r->axes[r->at[e]];
        if (common > 0)
            OT_TRY(set_scale(c, a, common, (double)floorf(common * (float)a->in + 0.5f)));
        else
            a->out = 0;
    }
    return OT_OK;
}

static ot_status read_roi(ot_call *c, resize *r, const ot_nd *roi)
{
    if (r->transform != TF_CROP) return OT_OK;
    if (!roi || ot_num_count(roi) != 2 * (int64_t)r->n_axes)
        return ot_call_fail(c, "tf_crop_and_resize needs a roi of %u values", 2 * r->n_axes);
    for (uint32_t e = 0; e < r->n_axes; e++) {
        r->axes[r->at[e]].roi_lo = (float)ot_nd_double(roi, e);
        r->axes[r->at[e]].roi_hi = (float)ot_nd_double(roi, r->n_axes + e);
    }
    return OT_OK;
}

static bool given(const ot_nd *a) { return a && ot_num_count(a) > 0; }

static ot_status resize_open(ot_call *c, resize *r)
{
    bool is_resize = strcmp(c->node->op_type, "Resize") == 0,
         modern = is_resize && (c->node->version == 0 || c->node->version >= 11);
    uint32_t at = modern ? 2 : 1;
    const ot_attr *attr = is_resize ? NULL : ot_attr_find(c->node, "scales");
    OT_TRY(ot_num_type(c, at, OT_NUM_FLOATS));
    if (modern) {
        OT_TRY(ot_num_type(c, 1, OT_NUM_FLOATS));
        OT_TRY(ot_num_type(c, 3, OT_NUM_INDEX));
    }
    OT_TRY(read_modes(c, r, modern));
    OT_TRY(read_axes(c, c->in[0], r));
    const ot_nd *scales = ot_num_in(c, at), *sizes = modern ? ot_num_in(c, 3) : NULL;
    if (attr && attr->kind == OT_ATTR_FLOATS) {
        OT_TRY(by_scales(c, r, NULL, attr->floats, (int64_t)attr->n));
    } else if (given(sizes)) {
        OT_TRY(by_sizes(c, r, sizes));
    } else if (given(scales)) {
        OT_TRY(by_scales(c, r, scales, NULL, ot_num_count(scales)));
    } else if (r->rank > 0) {
        return ot_call_fail(c, "has neither scales nor sizes");
    }
    return read_roi(c, r, modern ? ot_num_in(c, 1) : NULL);
}

/* ---- coordinates ---- */

static float original(const resize *r, const axis *a, int64_t i)
{
    float x = (float)i, in = (float)a->in, out = (float)a->out,
          corners = r->uncut ? a->length : out;
    /* ONNX Runtime leaves such an axis alone, whatever the transformation */
    if (a->scale == 1) return x;
    switch (r->transform) {
    case HALF_PIXEL: return (x + 0.5f) / a->scale - 0.5f;
    case SYMMETRIC: { /* the one sum that ONNX Runtime makes in double precision */
        float offset = in / 2 * (1 - out / (a->scale * in));
        return (float)((double)offset + ((double)x + 0.5) / (double)a->scale - 0.5);
    }
    case PYTORCH: return a->out > 1 ? (x + 0.5f) / a->scale - 0.5f : 0;
    case ALIGN_CORNERS: return i == 0 ? 0 : x * (in - 1) / (corners - 1);
    case ASYMMETRIC: return x / a->scale;
    case TF_HALF_PIXEL: return (x + 0.5f) / a->scale;
    case TF_CROP:
        if (a->out > 1)
            return a->roi_lo * (in - 1) + x * (a->roi_hi - a->roi_lo) * (in - 1) / (out - 1);
        return 0.5f * (a->roi_lo + a->roi_hi) * (in - 1);
    }
    return 0;
}

static int64_t clamp(double v, int64_t hi) /* [0, hi]; NaN: 0 */
{
    return !(v > 0) ? 0 : v < (double)hi ? (int64_t)v : hi;
}

static int64_t nearest(const resize *r, const axis *a, float x)
{
    float v = x;
    bool tie = fabsf(x - floorf(x) - 0.5f) <= TIE_SLACK;
    switch (r->rounding) {
    case PREFER_FLOOR: v = tie ? floorf(x) : roundf(x); break;
    case PREFER_CEIL: v = tie ? ceilf(x) : roundf(x); break;
    case FLOOR: v = floorf(x); break;
    case CEIL: v = ceilf(x); break;
    case SIMPLE: v = a->scale < 1 ? ceilf(x) : truncf(x); break;
    }
    return clamp((double)v, a->in - 1);
}

/* ---- weights ---- */

/* Weight of an element at distance d of the (stretched) filter's centre. */
static double filter(const resize *r, double d)
{
    double a = r->cubic_a;
    d = fabs(d);
    if (r->mode == LINEAR) return d < 1 ? 1 - d : 0;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The taps of output coordinate i around x. */
static void weigh(const resize *r, axis *a, int64_t i, float x, double stretch)
{
    double *weight = a->weight + i * a->n_taps, sum = 0;
    int64_t *index = a->index + i * a->n_taps;
    double first = floor((double)x) - (double)(a->n_taps / 2) + 1;
    for (int64_t t = 0; t < a->n_taps; t++) {
        double at = first + (double)t;
        bool inside = at >= 0 && at <= (double)(a->in - 1);
        index[t] = clamp(at, a->in - 1);
        weight[t] = r->exclude_outside && !inside ? 0 : filter(r, (at - (double)x) * stretch);
        sum += weight[t];
    }
    if (!r->exclude_outside && !r->antialias) return;
    for (int64_t t = 0; t < a->n_taps && sum != 0; t++) weight[t] /= sum;
}

static ot_status fill_axis(ot_call *c, const resize *r, axis *a)
{
    double stretch = r->antialias && a->scale < 1 ? (double)a->scale : 1;
    int64_t reach = r->mode == CUBIC ? 2 : 1, n;
    if (a->out == 0) return OT_OK;
    a->n_taps = r->mode == NEAREST ? 1
                : stretch < 1      ? 2 * (int64_t)ceil((double)reach / stretch)
                                   : 2 * reach;
    a->index = ot_num_scratch(c, ot_mul_i64(a->out, a->n_taps, &n) ? n : -1, sizeof *a->index);
    a->weight = a->index ? ot_num_scratch(c, n, sizeof *a->weight) : NULL;
    a->outside = a->weight ? ot_num_scratch(c, a->out, sizeof *a->outside) : NULL;
    if (!a->outside) return OT_E_NOMEM;
    for (int64_t i = 0; i < a->out; i++) {
        float x = original(r, a, i);
        a->outside[i] = r->transform == TF_CROP && !(x >= 0 && x <= (float)(a->in - 1));
        if (!isfinite(x)) x = 0;
        if (r->mode == NEAREST)
            a->index[i] = nearest(r, a, x);
        else
            weigh(r, a, i, x, stretch);
    }
    return OT_OK;
}

/* ---- the pixels ---- */

static bool extrapolated(const resize *r, const int64_t *pos)
{
    for (uint32_t k = 0; k < r->rank; k++)
        if (r->axes[k].outside[pos[k]]) return true;
    return false;
}

/* Elements move as they are, whatever their type. */
static void move_nearest(const resize *r, const ot_nd *x, ot_nd *y)
{
    size_t size = ot_dtype_bytes(x->dtype);
    int64_t n = ot_num_count(y), pos[OT_RANK_MAX] = {0};
    for (int64_t i = 0; i < n; i++, (void)ot_num_next(r->rank, y->dims, pos)) {
        int64_t from = 0;
        for (uint32_t k = 0; k < r->rank; k++)
            from = from * r->axes[k].in + r->axes[k].index[pos[k]];
        if (extrapolated(r, pos))
            ot_num_put(y, i, r->extrapolation);
        else
            memcpy((char *)y->data + (size_t)i * size, (const char *)x->data + (size_t)from * size,
                   size);
    }
}

/* v [outer, in, inner] -> [outer, out, inner]. NULL: no memory. */
static double *along_axis(ot_call *c, const axis *a, const double *v, int64_t outer, int64_t inner)
{
    int64_t n;
    double *y = ot_num_scratch(
        c, ot_mul_i64(outer, a->out, &n) && ot_mul_i64(n, inner, &n) ? n : -1, sizeof *y);
    if (!y) return NULL;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < a->out; i++) {
            double *to = y + (o * a->out + i) * inner;
            for (int64_t t = 0; t < a->n_taps; t++) {
                const double *from = v + (o * a->in + a->index[i * a->n_taps + t]) * inner;
                double weight = a->weight[i * a->n_taps + t];
                for (int64_t j = 0; weight != 0 && j < inner; j++) to[j] += weight * from[j];
            }
        }
    }
    return y;
}

static ot_status interpolate(ot_call *c, const resize *r, const ot_nd *x, ot_nd *y)
{
    int64_t pos[OT_RANK_MAX] = {0}, n = ot_num_count(y), outer = 1, inner = ot_num_count(x);
    double *v = ot_num_doubles(c, x);
    if (!v) return OT_E_NOMEM;
    for (uint32_t k = 0; n > 0 && k < r->rank; k++) {
        const axis *a = &r->axes[k];
        inner /= a->in;
        if (a->scale != 1 && !(v = along_axis(c, a, v, outer, inner))) return OT_E_NOMEM;
        outer *= a->out;
    }
    bool is_int = !ot_num_is(x->dtype, OT_NUM_FLOATS);
    for (int64_t i = 0; i < n; i++, (void)ot_num_next(r->rank, y->dims, pos)) {
        double e = extrapolated(r, pos) ? r->extrapolation : v[i];
        ot_num_put(y, i,
                   !is_int ? e
                   : r->antialias
                       ? rint(e)
                       : (double)(float)e); /* integers as ONNX Runtime: mostly towards zero */
    }
    return OT_OK;
}

ot_status ot_ref_resize(ot_call *c)
{
    resize r = {0};
    int64_t dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_ALL));
    const ot_nd *x = c->in[0];
    OT_TRY(resize_open(c, &r));
    for (uint32_t k = 0; k < r.rank; k++) {
        dims[k] = r.axes[k].out;
        if (r.axes[k].in == 0 && dims[k] > 0)
            return ot_call_fail(c, "axis %u has no elements to resize", k);
    }
    for (uint32_t k = 0; k < r.rank; k++) OT_TRY(fill_axis(c, &r, &r.axes[k]));
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, x->dtype, r.rank, dims));
    if (r.mode != NEAREST) return interpolate(c, &r, x, c->out[0]);
    move_nearest(&r, x, c->out[0]);
    return OT_OK;
}
