/* Fourier transforms by factors of n (fft.h).
 *
 *   a pass of radix r: `len` = r * m numbers remain to be combined, `done` of them have been
 *
 *       x  block p + m * k     a_k      k in [0, r), p in [0, m); blocks of done * lanes numbers
 *       y  block r * p + j     e^(-2 pi i p j / len) * sum over k of a_k e^(-2 pi i j k / r)
 */
#include "fft.h"

#include "engine/core/simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASSES_MAX = 64, FFT_PRIME_MAX = 31 };

typedef struct pass {
    int64_t radix, m;
    const float *turns; /* [m][radix - 1][2]: factors of a_1, a_2, ... */
} pass;

struct ot_fft {
    int64_t n;
    uint32_t n_passes; /* 0 and n > 1: by convolution */
    pass passes[PASSES_MAX];
    float *memory;
    /* by convolution */
    ot_fft *inner;
    const float *chirp;  /* [n][2]: e^(-pi i t t / n) */
    const float *filter; /* [inner->n][2]: spectrum of its conjugate, over inner->n */
};

/* e^(-2 pi i k / n): exact at the quarters. */
static void turn(int64_t k, int64_t n, float *out)
{
    static const double quarter[4] = {1, 0, -1, 0};
    double angle = 2 * 3.14159265358979323846 * (double)k / (double)n;
    bool exact = 4 * k % n == 0;
    out[0] = (float)(exact ? quarter[4 * k / n % 4] : cos(angle));
    out[1] = -(float)(exact ? quarter[(4 * k / n + 3) % 4] : sin(angle));
}

/* ---- passes ---- */

/* One pass: `block` numbers lie together. */
typedef struct sweep {
    const float *xr, *xi;
    float *yr, *yi;
    int64_t block;
} sweep;

#define PASS_BEGIN(r)                                                             \
    const int64_t n = s->block;                                                   \
    for (int64_t q = 0; q < p->m; q++) {                                          \
        const float *xr = s->xr + q * n, *xi = s->xi + q * n;                     \
        float *restrict yr = s->yr + (r)*q * n, *restrict yi = s->yi + (r)*q * n; \
        const float *w = p->turns + 2 * ((r)-1) * q;                              \
        const int64_t apart = p->m * n;                                           \
        for (int64_t i = 0; i < n; i++) {
#define PASS_END \
    }            \
    }
/* y_j = (re + im i) turned */
#define PUT(j, re, im)                              \
    do {                                            \
        float re_ = (re), im_ = (im);               \
        float c_ = w[2 * (j)-2], s_ = w[2 * (j)-1]; \
        yr[(j)*n + i] = re_ * c_ - im_ * s_;        \
        yi[(j)*n + i] = re_ * s_ + im_ * c_;        \
    } while (0)
#define GET(k) float r##k = xr[(k)*apart + i], i##k = xi[(k)*apart + i]

OT_CLONES static void pass_2(const sweep *s, const pass *p)
{
    PASS_BEGIN(2)
    GET(0);
    GET(1);
    yr[i] = r0 + r1;
    yi[i] = i0 + i1;
    PUT(1, r0 - r1, i0 - i1);
    PASS_END
}

OT_CLONES static void pass_3(const sweep *s, const pass *p)
{
    const float sine = 0.866025403784438647f;
    PASS_BEGIN(3)
    GET(0);
    GET(1);
    GET(2);
    float sr = r1 + r2, si = i1 + i2, dr = sine * (i1 - i2), di = sine * (r2 - r1);
    float cr = r0 - 0.5f * sr, ci = i0 - 0.5f * si;
    yr[i] = r0 + sr;
    yi[i] = i0 + si;
    PUT(1, cr + dr, ci + di);
    PUT(2, cr - dr, ci - di);
    PASS_END
}

OT_CLONES static void pass_4(const sweep *s, const pass *p)
{
    PASS_BEGIN(4)
    GET(0);
    GET(1);
    GET(2);
    GET(3);
    float ar = r0 + r2, ai = i0 + i2, br = r0 - r2, bi = i0 - i2;
    float cr = r1 + r3, ci = i1 + i3, dr = i1 - i3, di = r3 - r1;
    yr[i] = ar + cr;
    yi[i] = ai + ci;
    PUT(1, br + dr, bi + di);
    PUT(2, ar - cr, ai - ci);
    PUT(3, br - dr, bi - di);
    PASS_END
}

OT_CLONES static void pass_5(const sweep *s, const pass *p)
{
    const float c1 = 0.309016994374947424f, s1 = 0.951056516295153572f, c2 = -0.809016994374947424f,
                s2 = 0.587785252292473129f;
    PASS_BEGIN(5)
    GET(0);
    GET(1);
    GET(2);
    GET(3);
    GET(4);
    float ar = r1 + r4, ai = i1 + i4, br = r2 + r3, bi = i2 + i3;
    float cr = r1 - r4, ci = i1 - i4, dr = r2 - r3, di = i2 - i3;
    float er = r0 + c1 * ar + c2 * br, ei = i0 + c1 * ai + c2 * bi;
    float fr = r0 + c2 * ar + c1 * br, fi = i0 + c2 * ai + c1 * bi;
    float gr = s1 * ci + s2 * di, gi = -(s1 * cr + s2 * dr);
    float hr = s2 * ci - s1 * di, hi = -(s2 * cr - s1 * dr);
    yr[i] = r0 + ar + br;
    yi[i] = i0 + ai + bi;
    PUT(1, er + gr, ei + gi);
    PUT(2, fr + hr, fi + hi);
    PUT(3, fr - hr, fi - hi);
    PUT(4, er - gr, ei - gi);
    PASS_END
}

/* Any radix: sums of all terms. */
OT_CLONES static void pass_any(const sweep *s, const pass *p)
{
    const int64_t n = s->block, r = p->radix, apart = p->m * n;
    float root[FFT_PRIME_MAX][2];
    for (int64_t k = 0; k < r; k++) turn(k, r, root[k]);
    for (int64_t q = 0; q < p->m; q++) {
        const float *xr = s->xr + q * n, *xi = s->xi + q * n;
        for (int64_t j = 0; j < r; j++) {
            float *restrict yr = s->yr + (r * q + j) * n, *restrict yi = s->yi + (r * q + j) * n;
            const float c = j ? p->turns[2 * ((r - 1) * q + j) - 2] : 1,
                        d = j ? p->turns[2 * ((r - 1) * q + j) - 1] : 0;
            for (int64_t i = 0; i < n; i++) yr[i] = yi[i] = 0;
            for (int64_t k = 0; k < r; k++) {
                float wr = root[j * k % r][0], wi = root[j * k % r][1];
                float a = wr * c - wi * d, b = wr * d + wi * c;
                const float *ar = xr + k * apart, *ai = xi + k * apart;
                for (int64_t i = 0; i < n; i++) {
                    yr[i] += ar[i] * a - ai[i] * b;
                    yi[i] += ar[i] * b + ai[i] * a;
                }
            }
        }
    }
}

static ot_fft_arrays run_passes(const ot_fft *f, ot_fft_arrays x, int64_t lanes)
{
    int64_t done = 1;
    for (uint32_t k = 0; k < f->n_passes; k++) {
        const pass *p = &f->passes[k];
        const sweep s = {x.re, x.im, x.other_re, x.other_im, done * lanes};
        switch (p->radix) {
        case 2: pass_2(&s, p); break;
        case 3: pass_3(&s, p); break;
        case 4: pass_4(&s, p); break;
        case 5: pass_5(&s, p); break;
        default: pass_any(&s, p); break;
        }
        done *= p->radix;
        x = (ot_fft_arrays){x.other_re, x.other_im, x.re, x.im};
    }
    return x;
}

/* ---- by convolution ---- */

/* (re, im) [n][lanes] *= w [n][2] */
OT_CLONES static void turn_lanes(float *re, float *im, const float *w, int64_t n, int64_t lanes)
{
    for (int64_t t = 0; t < n; t++) {
        float c = w[2 * t], s = w[2 * t + 1], *r = re + t * lanes, *m = im + t * lanes;
        for (int64_t l = 0; l < lanes; l++) {
            float a = r[l], b = m[l];
            r[l] = a * c - b * s;
            m[l] = a * s + b * c;
        }
    }
}

/* k t = (k k + t t - (k - t)(k - t)) / 2 */
static ot_fft_arrays run_chirp(const ot_fft *f, ot_fft_arrays x, int64_t lanes)
{
    int64_t size = f->inner->n;
    size_t rest = (size_t)((size - f->n) * lanes) * sizeof(float);
    turn_lanes(x.re, x.im, f->chirp, f->n, lanes);
    memset(x.re + f->n * lanes, 0, rest);
    memset(x.im + f->n * lanes, 0, rest);
    x = run_passes(f->inner, x, lanes);
    turn_lanes(x.re, x.im, f->filter, size, lanes);
    /* the inverse: real and imaginary parts exchanged */
    x = (ot_fft_arrays){x.im, x.re, x.other_im, x.other_re};
    x = run_passes(f->inner, x, lanes);
    x = (ot_fft_arrays){x.im, x.re, x.other_im, x.other_re};
    turn_lanes(x.re, x.im, f->chirp, f->n, lanes);
    return x;
}

ot_fft_arrays ot_fft_run(const ot_fft *f, ot_fft_arrays x, int64_t lanes)
{
    return f->inner ? run_chirp(f, x, lanes) : run_passes(f, x, lanes);
}

/* ---- making one ---- */

/* Radices of n; returns how many. 0: there is a large prime, or n is 1. */
static uint32_t factorise(int64_t n, int64_t radices[PASSES_MAX])
{
    uint32_t count = 0;
    for (; n % 4 == 0; n /= 4) radices[count++] = 4;
    for (int64_t r = 2; r <= FFT_PRIME_MAX && n > 1; r++)
        for (; n % r == 0; n /= r) radices[count++] = r;
    return n == 1 ? count : 0;
}

static bool make_passes(ot_fft *f, const int64_t *radices, uint32_t count)
{
    int64_t len = f->n, total = 0;
    for (uint32_t k = 0; k < count; len /= radices[k++])
        total += 2 * (len / radices[k]) * (radices[k] - 1);
    float *to = malloc((size_t)ot_max(total, 1) * sizeof *to);
    f->memory = to;
    f->n_passes = count;
    len = f->n;
    for (uint32_t k = 0; to && k < count; k++) {
        int64_t r = radices[k], m = len / r;
        f->passes[k] = (pass){r, m, to};
        for (int64_t p = 0; p < m; p++)
            for (int64_t j = 1; j < r; j++, to += 2) turn(p * j % len, len, to);
        len = m;
    }
    return f->memory != NULL;
}

/* The spectrum of e^(pi i t t / n) around 0, in place of `filter`. */
static bool make_filter(const ot_fft *f, float *filter)
{
    int64_t n = f->n, size = f->inner->n;
    float *x = calloc((size_t)(4 * size), sizeof *x);
    if (!x) return false;
    for (int64_t t = 0; t < n; t++)
        for (int64_t at = t; at >= 0; at = at == t && t > 0 ? size - t : -1) {
            x[at] = f->chirp[2 * t];
            x[size + at] = -f->chirp[2 * t + 1];
        }
    ot_fft_arrays y = run_passes(f->inner, (ot_fft_arrays){x, x + size, x + 2 * size, x + 3 * size},
                                 1);
    for (int64_t k = 0; k < size; k++) {
        filter[2 * k] = y.re[k] / (float)size;
        filter[2 * k + 1] = y.im[k] / (float)size;
    }
    free(x);
    return true;
}

static bool make_chirp(ot_fft *f)
{
    int64_t size = 1, n = f->n;
    while (size < 2 * n - 1) size *= 2;
    f->inner = ot_fft_new(size);
    f->memory = malloc((size_t)(2 * (n + size)) * sizeof *f->memory);
    if (!f->inner || !f->memory) return false;
    float *chirp = f->memory, *filter = chirp + 2 * n;
    for (int64_t t = 0, square = 0; t < n; t++) {
        turn(square, 2 * n, chirp + 2 * t);
        square = (square + 2 * t + 1) % (2 * n);
    }
    f->chirp = chirp;
    f->filter = filter;
    return make_filter(f, filter);
}

ot_fft *ot_fft_new(int64_t n)
{
    int64_t radices[PASSES_MAX];
    ot_fft *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->n = n;
    uint32_t count = factorise(n, radices);
    if (count > 0 || n == 1 ? make_passes(f, radices, count) : make_chirp(f)) return f;
    ot_fft_free(f);
    return NULL;
}

void ot_fft_free(void *of)
{
    ot_fft *f = of;
    if (!f) return;
    ot_fft_free(f->inner);
    free(f->memory);
    free(f);
}

int64_t ot_fft_length(const ot_fft *f) { return f->n; }

int64_t ot_fft_room(const ot_fft *f) { return f->inner ? f->inner->n : f->n; }
