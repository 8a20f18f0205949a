/* Shape rules of Resize and Upsample.
 *
 *   Upsample 7        attribute scales        out = floor(in * scale)
 *   Upsample 9        input 1: scales
 *   Resize 10         input 1: scales
 *   Resize 11 to 24   inputs 2: scales, 3: sizes (one of them empty or omitted); since 18 for
 * `axes` only, and sizes may keep the aspect ratio: scale = min (not_larger) or max (not_smaller)
 * of sizes / in, out = round(in * scale)
 *
 * Products are taken in single precision, as runtimes do: 0.7f * 10 is 7, not 6.999.
 */
#include "shape.h"

#include <math.h>

/* Scales or sizes for n axes; at[e] is the axis of entry e. */
typedef struct targets {
    int64_t n;
    bool negative; /* some axis was written negative */
    uint32_t at[OT_RANK_MAX];
} targets;

static ot_status read_axes(ot_infer *c, int32_t rank, targets *t)
{
    size_t n = 0;
    const int64_t *axes = c->n->version >= 18 ? ot_attr_ints(c->n, "axes", &n) : NULL;
    t->n = rank;
    t->negative = false;
    for (int32_t a = 0; a < rank; a++) t->at[a] = (uint32_t)a;
    if (axes == NULL || n == 0) return OT_OK;
    bool mask[OT_RANK_MAX];
    OT_TRY(ot_shape_axes(c, "axes", axes, n, rank, mask));
    t->n = (int64_t)n;
    for (size_t e = 0; e < n; e++) {
        t->negative = t->negative || axes[e] < 0;
        t->at[e] = (uint32_t)(axes[e] < 0 ? axes[e] + rank : axes[e]);
    }
    return OT_OK;
}

/* floor(in * scale) in single precision; unknown when it does not fit. */
static int64_t scaled(int64_t in, double scale)
{
    float out = floorf((float)in * (float)scale);
    return out >= 0 && out < (float)OT_SHAPE_DIM_MAX ? (int64_t)out : OT_DIM_UNKNOWN;
}

static ot_status by_scales(ot_infer *c, const ot_value *x, const targets *t, const ot_known *scales,
                           int64_t *d)
{
    if ((int64_t)scales->n != t->n)
        return ot_shape_fail(c, "scales has %u values, expected %lld", scales->n, (long long)t->n);
    for (uint32_t e = 0; e < scales->n; e++) {
        uint32_t a = t->at[e];
        double s = scales->f[e];
        d[a] = OT_DIM_UNKNOWN;
        if (!ot_known_has(scales, e)) continue;
        if (!(s > 0)) return ot_shape_fail(c, "scales[%u] is %g, must be positive", e, s);
        if (x->dims[a] >= 0)
            d[a] = scaled(x->dims[a], s);
        else if (s == 1.0)
            d[a] = x->dims[a];
    }
    return OT_OK;
}

/* sizes with keep_aspect_ratio_policy: one common scale. Needs everything known. With negative axes
 * ONNX Runtime leaves the input's size as it is, against the standard: unknown then. */
static void by_policy(const ot_value *x, const targets *t, const ot_known *sizes, bool not_larger,
                      int64_t *d)
{
    float scale = 0;
    bool all = sizes->ok == NULL && t->n > 0 && !t->negative;
    for (int64_t e = 0; e < t->n; e++) {
        int64_t in = x->dims[t->at[e]];
        d[t->at[e]] = OT_DIM_UNKNOWN;
        if (in <= 0) all = false;
        if (!all) continue;
        float s = (float)sizes->i[e] / (float)in;
        if (e == 0 || (not_larger ? s < scale : s > scale)) scale = s;
    }
    for (int64_t e = 0; all && e < t->n; e++) {
        float out = roundf(scale * (float)x->dims[t->at[e]]);
        if (out >= 0 && out < (float)OT_SHAPE_DIM_MAX) d[t->at[e]] = (int64_t)out;
    }
}

static ot_status by_sizes(ot_infer *c, const ot_value *x, const targets *t, const ot_known *sizes,
                          int64_t *d)
{
    const char *policy = ot_attr_str(c->n, "keep_aspect_ratio_policy", "stretch");
    if ((int64_t)sizes->n != t->n)
        return ot_shape_fail(c, "sizes has %u values, expected %lld", sizes->n, (long long)t->n);
    for (uint32_t e = 0; e < sizes->n; e++)
        if (ot_known_has(sizes, e) && sizes->i[e] < 0)
            return ot_shape_fail(c, "sizes[%u] is %lld", e, (long long)sizes->i[e]);
    if (c->n->version >= 18 && strcmp(policy, "stretch") != 0) {
        bool not_larger = strcmp(policy, "not_larger") == 0;
        if (!not_larger && strcmp(policy, "not_smaller") != 0)
            return ot_shape_fail(
                c, "keep_aspect_ratio_policy '%s' is not one of stretch, not_larger, not_smaller",
                policy);
        by_policy(x, t, sizes, not_larger, d);
        return OT_OK;
    }
    for (uint32_t e = 0; e < sizes->n; e++)
        d[t->at[e]] = ot_known_has(sizes, e) ? sizes->i[e] : OT_DIM_UNKNOWN;
    return OT_OK;
}

/* An operand that is there and not of length 0. */
static bool present(const ot_value *v) { return v != NULL && !(v->rank == 1 && v->dims[0] == 0); }

ot_status ot_shape_resize(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    bool two = c->n->op == OT_OP_Resize && c->n->version >= 11; /* scales or sizes */
    uint32_t at = two ? 2 : 1;
    const ot_attr *attr = ot_attr_find(c->n, "scales");
    const ot_value *scales = ot_shape_in(c, at), *sizes = two ? ot_shape_in(c, 3) : NULL;
    targets t = {0};
    int64_t d[OT_RANK_MAX];
    OT_TRY(read_axes(c, x->rank, &t));
    for (int32_t a = 0; a < x->rank; a++) d[a] = x->dims[a];
    bool done = false;
    if (c->n->op == OT_OP_Upsample && c->n->version < 9) {
        if (attr == NULL || attr->kind != OT_ATTR_FLOATS)
            return ot_shape_fail(c, "attribute scales is missing");
        double wide[OT_RANK_MAX];
        for (size_t e = 0; e < attr->n && e < OT_RANK_MAX; e++) wide[e] = (double)attr->floats[e];
        OT_TRY(by_scales(c, x, &t, &(ot_known){.n = (uint32_t)attr->n, .f = wide}, d));
        done = true;
    } else if (present(sizes)) {
        const ot_known *k = ot_shape_known(c, 3);
        if (k != NULL && k->i != NULL) {
            OT_TRY(by_sizes(c, x, &t, k, d));
            done = true;
        }
    } else if (present(scales)) {
        const ot_known *k = ot_shape_known(c, at);
        if (k != NULL && k->f != NULL) {
            OT_TRY(by_scales(c, x, &t, k, d));
            done = true;
        }
    } else {
        return ot_shape_fail(c, "has neither scales nor sizes");
    }
    for (int64_t e = 0; !done && e < t.n; e++) d[t.at[e]] = OT_DIM_UNKNOWN;
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}
