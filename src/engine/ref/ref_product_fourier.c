/* DFT and STFT, by definition.
 *
 *   X[k] = sum over n of x[n] e^(-2 pi i k n / N)        inverse: conjugated, over N; k n is
 *                                                        reduced modulo N first, which keeps
 *                                                        the angles exact
 * The last axis holds real numbers (1) or complex ones (2). onesided: only the first N / 2 + 1 of
 * X, whose rest are conjugates; with inverse, it is the input that is so shortened, and the output
 * is real.
 */
#include "ref_product.h"

#include <math.h>

/* Cosines and sines of the N angles 2 pi j / N. */
typedef struct circle {
    int64_t n;
    double *cos, *sin;
} circle;

static ot_status circle_new(ot_call *c, int64_t n, circle *o)
{
    o->n = n;
    if (!(o->cos = ot_num_scratch(c, n, sizeof *o->cos)) ||
        !(o->sin = ot_num_scratch(c, n, sizeof *o->sin)))
        return OT_E_NOMEM;
    /* cos(0), cos(pi / 2)...: exact, unlike the function's */
    static const double quarter[4] = {1, 0, -1, 0};
    for (int64_t j = 0; j < n; j++) {
        double angle = 2 * 3.14159265358979323846 * (double)j / (double)n;
        bool exact = 4 * j % n == 0;
        o->cos[j] = exact ? quarter[4 * j / n] : cos(angle);
        o->sin[j] = exact ? quarter[(4 * j / n + 3) % 4] : sin(angle);
    }
    return OT_OK;
}

/* Complex numbers, `step` apart; im NULL: real ones. */
typedef struct signal {
    const double *re, *im;
    int64_t step, len;
} signal;

/* Sum over the signal of (re, im)[t] e^(sign 2 pi i k t / N). */
static void transform(const circle *o, const signal *s, int64_t k, int sign, double *out)
{
    int64_t j = 0;
    out[0] = out[1] = 0;
    for (int64_t t = 0; t < s->len; t++) {
        double cosine = o->cos[j], sine = sign * o->sin[j], a = s->re[t * s->step],
               b = s->im ? s->im[t * s->step] : 0;
        out[0] += a * cosine - b * sine;
        out[1] += a * sine + b * cosine;
        j += k;
        if (j >= o->n) j -= o->n;
    }
}

/* ---- DFT ---- */

/* Attribute axis (before opset 20) or input 2. */
static ot_status dft_axis(ot_call *c, uint32_t *axis)
{
    const ot_nd *x = c->in[0], *a = ot_num_in(c, 2);
    bool old = c->node->version != 0 && c->node->version < 20;
    OT_TRY(ot_num_type(c, 2, OT_NUM_BIT(OT_I64)));
    OT_TRY(ot_num_single(c, 2));
    int64_t asked = old ? ot_attr_int(c->node, "axis", 1) : a ? ot_nd_int(a, 0) : -2;
    OT_TRY(ot_num_axis(c, asked, x->rank, axis));
    return *axis + 1 < x->rank
               ? OT_OK
               : ot_call_fail(c, "axis %lld holds the parts of complex numbers", (long long)asked);
}

ot_status ot_dft_open(ot_call *c, ot_dft *d, int64_t *dims)
{
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    const ot_nd *x = c->in[0], *length = ot_num_in(c, 1);
    uint32_t axis;
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_single(c, 1));
    if (x->rank < 2 || (x->dims[x->rank - 1] != 1 && x->dims[x->rank - 1] != 2))
        return ot_call_fail(c, "the last axis must hold 1 or 2 numbers");
    OT_TRY(dft_axis(c, &axis));
    d->inverse = ot_attr_int(c->node, "inverse", 0) != 0;
    d->onesided = ot_attr_int(c->node, "onesided", 0) != 0;
    d->parts = x->dims[x->rank - 1];
    d->in_extent = x->dims[axis];
    bool to_real = d->inverse && d->onesided;
    d->n = length ? ot_nd_int(length, 0) : to_real ? 2 * (d->in_extent - 1) : d->in_extent;
    if (d->n < 1 || d->n > (int64_t)1 << 40)
        return ot_call_fail(c, "the length of the transform is %lld", (long long)d->n);
    if (d->onesided && !d->inverse && d->parts == 2)
        return ot_call_fail(c, "onesided needs a real input");
    d->out_parts = to_real ? 1 : 2;
    d->out = d->onesided && !d->inverse ? d->n / 2 + 1 : d->n;
    d->len = ot_min(d->in_extent, to_real ? d->n / 2 + 1 : d->n);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = d->out;
    dims[x->rank - 1] = d->out_parts;
    if (!ot_product(x->dims, axis, &d->outer) ||
        !ot_product(x->dims + axis + 1, x->rank - axis - 2, &d->inner))
        return ot_call_fail(c, "the input is too large");
    return OT_OK;
}

/* Output k of the line that starts at re (and im); `full`: scratch for the whole spectrum of a
 * onesided inverse. */
static void dft_line(const ot_dft *d, const circle *o, const double *re, const double *im,
                     double *full, double *y)
{
    int64_t step = d->inner * d->parts, len = d->len;
    if (d->inverse && d->onesided) { /* the rest of the spectrum is conjugated */
        for (int64_t k = 0; k < d->n; k++) {
            int64_t from = k <= d->n / 2 ? k : d->n - k;
            bool there = from < d->len;
            full[2 * k] = there ? re[from * step] : 0;
            full[2 * k + 1] = there && im ? (k == from ? 1 : -1) * im[from * step] : 0;
        }
        re = full, im = full + 1, step = 2, len = d->n;
    }
    const signal s = {re, im, step, len};
    for (int64_t k = 0; k < d->out; k++) {
        double v[2];
        transform(o, &s, k, d->inverse ? 1 : -1, v);
        for (int64_t p = 0; p < d->out_parts; p++)
            y[k * d->inner * d->out_parts + p] = d->inverse ? v[p] / (double)d->n : v[p];
    }
}

ot_status ot_ref_dft(ot_call *c)
{
    ot_dft d = {0};
    circle o = {0};
    int64_t dims[OT_RANK_MAX], n;
    OT_TRY(ot_dft_open(c, &d, dims));
    const ot_nd *x = c->in[0];
    double *v = ot_num_doubles(c, x),
           *y = v ? ot_num_scratch(c, ot_product(dims, x->rank, &n) ? n : -1, sizeof *y) : NULL;
    double *full = y ? ot_num_scratch(c, 2 * d.n, sizeof *full) : NULL;
    if (!full) return OT_E_NOMEM;
    OT_TRY(circle_new(c, d.n, &o));
    for (int64_t i = 0; i < d.outer; i++) {
        for (int64_t j = 0; j < d.inner; j++) {
            const double *re = v + (i * d.in_extent * d.inner + j) * d.parts;
            dft_line(&d, &o, re, d.parts == 2 ? re + 1 : NULL, full,
                     y + (i * d.out * d.inner + j) * d.out_parts);
        }
    }
    return ot_num_output(c, 0, x->dtype, x->rank, dims, y);
}

/* ---- STFT: signal [batch, length, 1 or 2], frame_step, window, frame_length -> [batch, frames,
 * bins, 2] ---- */

typedef struct stft {
    int64_t step, frame, frames, bins, parts, length;
    const double *window; /* NULL: all ones */
} stft;

static ot_status stft_open(ot_call *c, stft *s)
{
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_INDEX));
    OT_TRY(ot_num_type(c, 2, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 3, OT_NUM_INDEX));
    OT_TRY(ot_num_single(c, 1));
    OT_TRY(ot_num_single(c, 3));
    const ot_nd *x = c->in[0], *window = ot_num_in(c, 2), *length = ot_num_in(c, 3);
    bool onesided = ot_attr_int(c->node, "onesided", 1) != 0;
    if (x->rank != 2 && x->rank != 3)
        return ot_call_fail(c, "the signal has rank %u, must have 3", x->rank);
    s->parts = x->rank == 3 ? x->dims[2] : 1;
    if (s->parts != 1 && s->parts != 2)
        return ot_call_fail(c, "the last axis must hold 1 or 2 numbers");
    s->length = x->dims[1];
    s->step = ot_nd_int(c->in[1], 0);
    s->frame = length ? ot_nd_int(length, 0) : window ? ot_num_count(window) : s->length;
    if (s->step < 1 || s->frame < 1 || s->frame > s->length)
        return ot_call_fail(c, "frames of %lld, %lld apart, do not fit a signal of %lld",
                            (long long)s->frame, (long long)s->step, (long long)s->length);
    OT_TRY(ot_num_dims(c, 2, 1, &s->frame));
    s->frames = (s->length - s->frame) / s->step + 1;
    s->bins = onesided && s->parts == 1 ? s->frame / 2 + 1 : s->frame;
    if (onesided && s->parts == 2) return ot_call_fail(c, "onesided needs a real signal");
    s->window = window ? ot_num_doubles(c, window) : NULL;
    return window && !s->window ? OT_E_NOMEM : OT_OK;
}

ot_status ot_ref_stft(ot_call *c)
{
    stft s = {0};
    circle o = {0};
    int64_t n;
    OT_TRY(stft_open(c, &s));
    const ot_nd *x = c->in[0];
    int64_t dims[4] = {x->dims[0], s.frames, s.bins, 2};
    OT_TRY(circle_new(c, s.frame, &o));
    double *v = ot_num_doubles(c, x),
           *y = v ? ot_num_scratch(c, ot_product(dims, 4, &n) ? n : -1, sizeof *y) : NULL;
    double *part = y ? ot_num_scratch(c, s.frame * s.parts, sizeof *part) : NULL;
    if (!part) return OT_E_NOMEM;
    for (int64_t f = 0; f < dims[0] * s.frames; f++) {
        const double *from = v + (f / s.frames * s.length + f % s.frames * s.step) * s.parts;
        for (int64_t i = 0; i < s.frame * s.parts; i++)
            part[i] = from[i] * (s.window ? s.window[i / s.parts] : 1);
        const signal frame = {part, s.parts == 2 ? part + 1 : NULL, s.parts, s.frame};
        for (int64_t k = 0; k < s.bins; k++) transform(&o, &frame, k, -1, y + (f * s.bins + k) * 2);
    }
    return ot_num_output(c, 0, x->dtype, 4, dims, y);
}
