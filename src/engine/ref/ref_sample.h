/* Places between the elements of an array: which elements count there, and how much.
 *
 *   a place x along an axis:   . . o  x   o . .    one tap (nearest), two (linear), four (cubic)
 *
 * One rule for the reference and the fast implementations of GridSample, AffineGrid and DeformConv.
 */
#ifndef OT_ENGINE_REF_REF_SAMPLE_H
#define OT_ENGINE_REF_REF_SAMPLE_H

#include "ref_window.h"

#include <math.h>

typedef enum ot_sample_mode { OT_SAMPLE_NEAREST, OT_SAMPLE_LINEAR, OT_SAMPLE_CUBIC } ot_sample_mode;
typedef enum ot_sample_padding {
    OT_SAMPLE_ZEROS,
    OT_SAMPLE_BORDER,
    OT_SAMPLE_REFLECTION
} ot_sample_padding;

typedef struct ot_sample_point {
    int64_t index[4]; /* -1: outside, zero */
    double weight[4];
    int n;
} ot_sample_point;

typedef struct ot_sampler {
    ot_sample_mode mode;
    ot_sample_padding padding;
    bool align_corners;
    uint32_t n; /* axes */
    int64_t in[OT_RANK_MAX];
} ot_sampler;

/* x mirrored at lo and hi until it lies between them. */
static inline double ot_sample_reflect(double x, double lo, double hi)
{
    double range = hi - lo, d = x < lo ? lo - x : x - hi;
    if (!(range > 0)) return lo;
    if (d <= 0) return x;
    double rest = fmod(d, range);
    bool even = fmod(floor(d / range), 2) == 0;
    return (x < lo) == even ? lo + rest : hi - rest;
}

/* Element at whole position p, as the padding mode says. */
static inline int64_t ot_sample_element(const ot_sampler *s, uint32_t a, double p)
{
    double hi = (double)(s->in[a] - 1), edge = s->align_corners ? 0 : 0.5;
    if (p >= 0 && p <= hi) return (int64_t)p;
    if (s->padding == OT_SAMPLE_ZEROS || isnan(p)) return -1;
    if (s->padding == OT_SAMPLE_REFLECTION) p = ot_sample_reflect(p, -edge, hi + edge);
    return !(p > 0) ? 0 : p < hi ? (int64_t)p : (int64_t)hi;
}

static inline void ot_sample_cubic_weights(double f, double *w)
{
    const double a = -0.75;
    double g = 1 - f;
    w[0] = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a;
    w[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
    w[2] = ((a + 2) * g - (a + 3)) * g * g + 1;
    w[3] = ((a * (g + 1) - 5 * a) * (g + 1) + 8 * a) * (g + 1) - 4 * a;
}

/* The taps of place x along axis a. */
static inline void ot_sample_locate(const ot_sampler *s, uint32_t a, double x, ot_sample_point *to)
{
    double base = floor(x), f = x - base;
    bool cubic = s->mode == OT_SAMPLE_CUBIC;
    to->n = s->mode == OT_SAMPLE_NEAREST ? 1 : cubic ? 4 : 2;
    to->weight[0] = s->mode == OT_SAMPLE_NEAREST ? 1 : 1 - f;
    to->weight[1] = f;
    if (cubic) ot_sample_cubic_weights(f, to->weight);
    if (s->mode == OT_SAMPLE_NEAREST) base = x;
    for (int t = 0; t < to->n; t++) to->index[t] = ot_sample_element(s, a, base + t - cubic);
}

/* Grid coordinate g in [-1, 1] as position along axis a; in the grid's precision, which decides
 * where nearest falls. */
static inline double ot_sample_position(const ot_sampler *s, uint32_t a, double g, bool is_double)
{
    double len = (double)s->in[a], hi = len - 1, edge = s->align_corners ? 0 : 0.5, x;
    if (is_double)
        x = s->align_corners ? (g + 1) / 2 * hi : ((g + 1) * len - 1) / 2;
    else
        x = (double)(s->align_corners ? ((float)g + 1) / 2 * (float)hi
                                      : (((float)g + 1) * (float)len - 1) / 2);
    if (s->mode == OT_SAMPLE_NEAREST) x = rint(x);
    /* cubic moves each tap inside, not the place between them */
    if (x >= -edge && x <= hi + edge) return x;
    if (s->padding == OT_SAMPLE_BORDER && s->mode != OT_SAMPLE_CUBIC)
        x = !(x > 0) ? 0 : x < hi ? x : hi;
    if (s->padding == OT_SAMPLE_REFLECTION && isfinite(x))
        x = ot_sample_reflect(x, -edge, hi + edge);
    return x;
}

/* ---- ref_window_sample.c ---- */

typedef struct ot_grid {
    ot_sampler s;
    int64_t in_n, out_n;       /* elements of a channel */
    int64_t dims[OT_RANK_MAX]; /* of the output */
} ot_grid;

/* Inputs (checked) and attributes of a GridSample. */
ot_status ot_grid_open(ot_call *c, ot_grid *g) OT_MUST_USE;

/* Inputs x, w, offset [N, groups, kernel, 2, out], bias, mask [N, groups, kernel, out]. */
typedef struct ot_deform {
    ot_conv v;
    int64_t offset_group;
} ot_deform;

/* Inputs (checked) and attributes of a DeformConv. */
ot_status ot_deform_open(ot_call *c, ot_deform *d) OT_MUST_USE;

static inline ot_sampler ot_deform_sampler(const ot_deform *d)
{
    return (ot_sampler){.mode = OT_SAMPLE_LINEAR,
                        .padding = OT_SAMPLE_ZEROS,
                        .align_corners = true,
                        .n = 2,
                        .in = {d->v.w.in[0], d->v.w.in[1]}};
}

/* Where tap k of output position p reads when it is moved by (dy, dx). */
static inline void ot_deform_locate(const ot_deform *d, const ot_sampler *s, int64_t k, int64_t p,
                                    double dy, double dx, ot_sample_point places[2])
{
    const ot_window *w = &d->v.w;
    int64_t row = p / w->out[1] * w->stride[0] - w->lo[0] + k / w->kernel[1] * w->dilation[0];
    int64_t column = p % w->out[1] * w->stride[1] - w->lo[1] + k % w->kernel[1] * w->dilation[1];
    ot_sample_locate(s, 0, (double)row + dy, &places[0]);
    ot_sample_locate(s, 1, (double)column + dx, &places[1]);
}

/* Inputs of an AffineGrid (checked): spatial axes and dims of its output. */
ot_status ot_affine_open(ot_call *c, uint32_t *axes, int64_t *dims) OT_MUST_USE;

/* The coordinate of element i of an axis. */
static inline double ot_affine_step(int64_t i, int64_t len, bool align_corners)
{
    /* one element: as ONNX Runtime */
    if (align_corners) return len > 1 ? -1 + 2.0 * (double)i / (double)(len - 1) : 1;
    return (2.0 * (double)i + 1) / (double)len - 1;
}

#endif
