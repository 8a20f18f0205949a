/* Resize and Upsample: attributes and inputs into tables, by the formulas of
 * ref_window_resize.c. See fast_resize.h. */
#include "fast_resize.h"

#include "fast_move.h"
#include "engine/ref/ref_number.h"

#include <math.h>

/* what lies so near to the middle between two elements counts as the middle, as in the reference */
#define TIE_SLACK 1e-6f

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

typedef struct rules {
    ot_resize_mode mode;
    transform transform;
    rounding rounding;
    bool modern; /* Resize of opset 11 and later */
    bool antialias, exclude_outside, uncut;
    double cubic_a;
} rules;

/* ---- attributes ---- */

/* Which of the names the attribute is; the first when absent; -1: none. */
static int choose(const ot_node *n, const char *attr, const char *const *names, int count)
{
    const char *s = ot_attr_str(n, attr, names[0]);
    for (int k = 0; k < count; k++)
        if (strcmp(s, names[k]) == 0) return k;
    return -1;
}

static bool read_rules(const ot_node *n, rules *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const transforms[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    r->modern = strcmp(n->op_type, "Resize") == 0 && (n->version == 0 || n->version >= 11);
    int m = choose(n, "mode", modes, 4),
        t = r->modern ? choose(n, "coordinate_transformation_mode", transforms, 7) : ASYMMETRIC;
    int q = r->modern ? choose(n, "nearest_mode", roundings, 4) : SIMPLE;
    if (m < 0 || t < 0 || q < 0) return false;
    r->mode = m == 3 ? OT_RESIZE_LINEAR : (ot_resize_mode)m;
    r->transform = (transform)t;
    r->rounding = (rounding)q;
    r->antialias = r->modern && r->mode != OT_RESIZE_NEAREST && ot_attr_int(n, "antialias", 0) != 0;
    r->exclude_outside = r->modern && ot_attr_int(n, "exclude_outside", 0) != 0;
    r->uncut = n->version == 0 || n->version >= 19;
    r->cubic_a = (double)ot_attr_float(n, "cubic_coeff_a", -0.75f);
    return true;
}

/* The axes that roi, scales and sizes speak of. */
static bool read_axes(const ot_node *n, uint32_t rank, uint32_t *axes, uint32_t *count)
{
    size_t given = 0;
    const int64_t *list = ot_attr_ints(n, "axes", &given);
    bool seen[OT_RANK_MAX] = {false};
    *count = list && given > 0 ? (uint32_t)ot_min((int64_t)given, OT_RANK_MAX + 1) : rank;
    if (*count > rank) return false;
    for (uint32_t e = 0; e < *count; e++) {
        int64_t a = list && given > 0 ? list[e] : e;
        a = a < 0 ? a + rank : a;
        if (a < 0 || a >= rank || seen[a]) return false;
        seen[a] = true;
        axes[e] = (uint32_t)a;
    }
    return true;
}

static bool set_scale(ot_resize_axis *a, float scale, float out)
{
    if (!(scale > 0) || !(out < 0x1p31f)) return false;
    a->scale = scale;
    a->out = scale == 1 ? a->in : (int64_t)out;
    a->length = scale * (float)a->in;
    return true;
}

static bool set_sizes(const ot_node *n, ot_resize *r, const ot_nd *sizes, const uint32_t *axes,
                      uint32_t count)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy = choose(n, "keep_aspect_ratio_policy", policies, 3);
    float common = 0;
    if (policy < 0 || ot_num_count(sizes) != count) return false;
    for (uint32_t e = 0; e < count; e++) {
        ot_resize_axis *a = &r->axes[axes[e]];
        a->out = ot_nd_int(sizes, e);
        if (a->out <= 0 || a->out > INT32_MAX) return false;
        a->scale = (float)a->out / (float)a->in;
        a->length = (float)a->out;
        if (e == 0 || (policy == 1 ? a->scale < common : a->scale > common)) common = a->scale;
    }
    for (uint32_t e = 0; policy != 0 && e < count; e++)
        if (!set_scale(&r->axes[axes[e]], common,
                       floorf(common * (float)r->axes[axes[e]].in + 0.5f)))
            return false;
    return true;
}

static bool set_scales(ot_resize *r, const ot_nd *scales, const ot_attr *attr, const uint32_t *axes,
                       uint32_t count)
{
    if ((attr ? (int64_t)attr->n : ot_num_count(scales)) != count) return false;
    for (uint32_t e = 0; e < count; e++) {
        ot_resize_axis *a = &r->axes[axes[e]];
        float s = attr ? attr->floats[e] : (float)ot_nd_double(scales, e);
        if (!set_scale(a, s, floorf(s * (float)a->in))) return false;
    }
    return true;
}

/* Input k when it has elements, of one of these types; *ok false when it is of another. */
static const ot_nd *given(const ot_nd *const *in, uint32_t n_in, uint32_t k, uint32_t types,
                          bool *ok)
{
    const ot_nd *a = k < n_in ? in[k] : NULL;
    if (!a) return NULL;
    *ok = *ok && ot_num_is(a->dtype, types) && a->data;
    return *ok && ot_num_count(a) > 0 ? a : NULL;
}

static bool read_extents(const ot_node *n, const rules *u, ot_resize *r, const ot_nd *const *in,
                         uint32_t n_in)
{
    uint32_t axes[OT_RANK_MAX], count;
    bool ok = true;
    const ot_attr *attr = strcmp(n->op_type, "Resize") == 0 ? NULL : ot_attr_find(n, "scales");
    const ot_nd *roi = u->modern ? given(in, n_in, 1, OT_NUM_FLOATS, &ok) : NULL;
    const ot_nd *scales = given(in, n_in, u->modern ? 2 : 1, OT_NUM_FLOATS, &ok);
    const ot_nd *sizes = u->modern ? given(in, n_in, 3, OT_NUM_INDEX, &ok) : NULL;
    attr = attr && attr->kind == OT_ATTR_FLOATS ? attr : NULL;
    if (!ok || (!attr && !sizes && !scales) || !read_axes(n, r->rank, axes, &count)) return false;
    if (!attr && sizes ? !set_sizes(n, r, sizes, axes, count)
                       : !set_scales(r, scales, attr, axes, count))
        return false;
    if (u->transform != TF_CROP) return true;
    if (!roi || ot_num_count(roi) != 2 * (int64_t)count) return false;
    for (uint32_t e = 0; e < count; e++) {
        r->axes[axes[e]].roi_lo = (float)ot_nd_double(roi, e);
        r->axes[axes[e]].roi_hi = (float)ot_nd_double(roi, count + e);
    }
    return true;
}

/* ---- coordinates: float32, as the reference implementation reckons ---- */

static float original(const rules *u, const ot_resize_axis *a, int64_t i)
{
    float x = (float)i, in = (float)a->in, out = (float)a->out,
          corners = u->uncut ? a->length : out;
    switch (u->transform) {
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

static int32_t clamped(double v, int64_t hi)
{
    return !(v > 0) ? 0 : v < (double)hi ? (int32_t)v : (int32_t)hi;
}

static int32_t nearest(const rules *u, const ot_resize_axis *a, float x)
{
    float v = x, low = floorf(x);
    bool tie = fabsf(x - low - 0.5f) <= TIE_SLACK;
    switch (u->rounding) {
    case PREFER_FLOOR: v = tie ? low : roundf(x); break;
    case PREFER_CEIL: v = tie ? ceilf(x) : roundf(x); break;
    case FLOOR: v = low; break;
    case CEIL: v = ceilf(x); break;
    case SIMPLE: v = a->scale < 1 ? ceilf(x) : truncf(x); break;
    }
    return clamped((double)v, a->in - 1);
}

/* ---- tables ---- */

static double filter(const rules *u, double d)
{
    double a = u->cubic_a;
    d = fabs(d);
    if (u->mode == OT_RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static void weigh(const rules *u, ot_resize_axis *a, int64_t i, float x, double stretch)
{
    double first = floor((double)x) - (double)(a->n_taps / 2) + 1, sum = 0;
    bool scaled = u->exclude_outside || u->antialias;
    for (int64_t t = 0; t < a->n_taps; t++) {
        double at = first + (double)t;
        bool counts = !u->exclude_outside || (at >= 0 && at <= (double)(a->in - 1));
        sum += counts ? filter(u, (at - (double)x) * stretch) : 0;
    }
    for (int64_t t = 0; t < a->n_taps; t++) {
        double at = first + (double)t;
        bool counts = !u->exclude_outside || (at >= 0 && at <= (double)(a->in - 1));
        double weight = counts ? filter(u, (at - (double)x) * stretch) : 0;
        a->index[t * a->out + i] = clamped(at, a->in - 1);
        a->weight[t * a->out + i] = (float)(scaled && sum != 0 ? weight / sum : weight);
    }
}

/* Where pairs of outputs have the same weights, and the input advances by one from pair to pair. */
static void find_pairs(ot_resize_axis *a)
{
    int64_t n = a->out / 2, from = a->n_taps / 2, to;
    if ((a->n_taps != 2 && a->n_taps != 4) || n < 8) return;
    for (to = from; to < n; to++) {
        bool alike = true;
        for (int64_t t = 0; t < a->n_taps; t++)
            for (int64_t odd = 0; odd < 2; odd++) {
                int64_t first = t * a->out + 2 * from + odd, here = t * a->out + 2 * to + odd;
                alike = alike && a->weight[here] == a->weight[first] &&
                        a->index[here] == a->index[first] + to - from;
            }
        if (!alike) break;
    }
    a->even_from = from;
    a->even_to = to;
}

static ot_status fill_axis(ot_arena *arena, const rules *u, ot_resize_axis *a)
{
    double stretch = u->antialias && a->scale < 1 ? (double)a->scale : 1;
    int64_t reach = u->mode == OT_RESIZE_CUBIC ? 2 : 1, n, outside = 0;
    /* ONNX Runtime leaves such an axis alone, whatever the transformation */
    a->same = a->scale == 1;
    if (a->same) return OT_OK;
    a->n_taps = u->mode == OT_RESIZE_NEAREST ? 1
                : stretch < 1                ? 2 * (int64_t)ceil((double)reach / stretch)
                                             : 2 * reach;
    if (!ot_mul_i64(a->n_taps, a->out, &n)) return OT_E_NOMEM;
    a->index = OT_NEW_N(arena, int32_t, (size_t)n);
    a->weight = OT_NEW_N(arena, float, (size_t)n);
    bool *is_outside = OT_NEW_N(arena, bool, (size_t)a->out);
    if (!a->index || !a->weight || !is_outside) return OT_E_NOMEM;
    for (int64_t i = 0; i < a->out; i++) {
        float x = original(u, a, i);
        is_outside[i] = u->transform == TF_CROP && !(x >= 0 && x <= (float)(a->in - 1));
        outside += is_outside[i];
        if (!isfinite(x)) x = 0;
        if (u->mode == OT_RESIZE_NEAREST)
            a->index[i] = nearest(u, a, x);
        else
            weigh(u, a, i, x, stretch);
    }
    if (outside > 0) a->outside = is_outside;
    if (u->mode != OT_RESIZE_NEAREST) {
        find_pairs(a);
        return OT_OK;
    }
    a->factor = a->out % a->in == 0 ? a->out / a->in : 0;
    for (int64_t i = 0; i < a->out && a->factor > 0; i++)
        if (a->index[i] != i / a->factor) a->factor = 0;
    return OT_OK;
}

/* What the loops can do. */
static bool is_runnable(ot_resize *r, ot_dtype type)
{
    bool changes = false, extrapolates = false;
    for (uint32_t k = 0; k < r->rank; k++) {
        if (r->axes[k].same) continue;
        r->last = k;
        changes = true;
        extrapolates = extrapolates || r->axes[k].outside;
    }
    if (!changes) r->mode = OT_RESIZE_NEAREST; /* a copy */
    return r->mode == OT_RESIZE_NEAREST ? ot_dtype_bytes(type) > 0 && !extrapolates
                                        : ot_dtype_is_real(type);
}

ot_status ot_resize_new(ot_arena *arena, const ot_node *n, const ot_nd *x, const ot_nd *const *in,
                        uint32_t n_in, const ot_resize **out)
{
    const uint32_t rank = x->rank;
    const int64_t *dims = x->dims;
    rules u = {0};
    ot_resize *r = OT_NEW(arena, ot_resize);
    *out = NULL;
    if (!r) return OT_E_NOMEM;
    r->rank = rank;
    for (uint32_t k = 0; k < rank; k++) {
        if (dims[k] <= 0 || dims[k] > INT32_MAX) return OT_OK;
        r->axes[k] = (ot_resize_axis){
            .in = dims[k], .out = dims[k], .scale = 1, .length = (float)dims[k], .roi_hi = 1};
    }
    if (rank == 0 || !read_rules(n, &u) || !read_extents(n, &u, r, in, n_in)) return OT_OK;
    r->mode = u.mode;
    r->extrapolation = ot_attr_float(n, "extrapolation_value", 0);
    for (uint32_t k = 0; k < rank; k++) {
        if (r->axes[k].out == 0) return OT_OK;
        OT_TRY(fill_axis(arena, &u, &r->axes[k]));
    }
    if (is_runnable(r, x->dtype)) *out = r;
    return OT_OK;
}

bool ot_resize_blocked_ok(const ot_resize *r, ot_dtype type)
{
    return ot_dtype_is_real(type) && r->rank >= 3 && r->axes[0].same && r->axes[1].same;
}

/* ---- the implementation ---- */

static ot_status resize_call(ot_call *c, const ot_resize *r)
{
    int64_t dims[OT_RANK_MAX], bytes = ot_resize_scratch(r, c->in[0]->dtype, 0, c->threads);
    for (uint32_t k = 0; k < r->rank; k++) dims[k] = r->axes[k].out;
    OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, r->rank, dims));
    void *scratch = ot_num_scratch(c, bytes, 1);
    if (!scratch) return OT_E_NOMEM;
    ot_resize_run(r, c->out[0], c->in[0], scratch, c->threads);
    return OT_OK;
}

ot_status ot_fast_resize(ot_call *c)
{
    const ot_resize *r = NULL;
    ot_arena *arena = ot_arena_new();
    ot_status s = arena ? OT_OK : ot_fail_nomem(c->diag);
    if (arena && ot_move_usual(c, 1)) {
        s = ot_resize_new(arena, c->node, c->in[0], c->in, c->n_in, &r);
        if (s == OT_E_NOMEM) (void)ot_fail_nomem(c->diag);
    }
    if (s == OT_OK) s = r ? resize_call(c, r) : ot_op_reference(OT_OP_Resize)(c);
    ot_arena_free(arena);
    return s;
}
