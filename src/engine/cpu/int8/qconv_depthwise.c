/* Convolutions of 8-bit tensors with groups of one channel: some rows of the output at a time.
 *
 *   band of x, with its pads, unsigned; rows and columns lie apart by phase of the strides:
 *
 *   rows 0, 2, 4 columns 0, 2, 4  [z x x x x x][z x x x x x]...  a tap is one run of bytes:
 *                                 positions of the output
 *   rows 0, 2, 4 columns 1, 3, 5  [x x x x x x][x x x x x x]...  next to each other, row after row;
 *                                 sums of windows that
 *   rows 1, 3, 5 ...                                             go beyond the end of a row are of
 *                                                                no use
 *
 *   sums [ . . . . . - . . . . . - ] = bias + w00 * run + w01 * run + ...
 *
 * Zero points come off at the end: sum (x - zx)(w - zw) = sum x (w - zw) - zx * sum (w - zw).
 */
#include "qconv.h"

#include "engine/core/simd.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_VNNI 1
#endif

#define BAND_BYTES ((int64_t)4 << 10) /* of x; with its sums it stays in the first-level cache */

static int64_t up64(int64_t n) { return ot_ceil_div(n, 64) * 64; }

typedef struct band {
    int64_t width; /* bytes of a row of one phase: the pitch of the sums, too */
    int64_t rows;  /* of one phase */
    int64_t step;  /* rows of the output that a band serves */
} band;

static void form_band(const ot_qconv *v, band *b)
{
    int64_t reach_y = (v->kernel[0] - 1) * v->dilation[0] / v->stride[0];
    int64_t reach_x = (v->kernel[1] - 1) * v->dilation[1] / v->stride[1];
    b->width = v->out[1] + reach_x;
    int64_t fit = BAND_BYTES / b->width / v->stride[1] / v->stride[0] - reach_y;
    b->step = ot_min(v->out[0], ot_max(1, fit));
    b->rows = b->step + reach_y;
}

/* Bytes of x in a band, and so many more as sums that nobody needs may read; -1: more than can
 * be counted. */
static int64_t band_bytes(const ot_qconv *v, const band *b)
{
    int64_t n;
    if (!ot_mul_i64(b->width, v->stride[1], &n) || !ot_mul_i64(n, v->stride[0], &n) ||
        !ot_mul_i64(n, b->rows, &n))
        return -1;
    return n > INT64_MAX / 64 ? -1 : up64(n) + 128;
}

/* Loops go on to whole vectors: `n` sums of a band, of which there is room for a multiple of 64. */
static int64_t whole(int64_t n) { return ot_ceil_div(n, 16) * 16; }

/* x, sums, and results of one byte. */
int64_t ot_qconv_depthwise_work(const ot_qconv *v)
{
    band b;
    form_band(v, &b);
    int64_t x = band_bytes(v, &b), n;
    if (x < 0 || !ot_mul_i64(b.step, b.width, &n) || n > INT64_MAX / 64) return -1;
    return x + up64(n) * (int64_t)sizeof(int32_t) + up64(n);
}

/* ---- the band ---- */

/* `rows` rows of n elements; of x every `stride`th, and rows `from_step` apart. */
OT_CLONES static void take(uint8_t *restrict to, int64_t to_step, const uint8_t *restrict from,
                           int64_t from_step, int64_t stride, int64_t rows, int64_t n, uint8_t flip)
{
    for (int64_t r = 0; r < rows; r++, to += to_step, from += from_step) {
        if (stride == 1)
            for (int64_t i = 0; i < n; i++) to[i] = from[i] ^ flip;
        else if (stride == 2)
            for (int64_t i = 0; i < n; i++) to[i] = from[2 * i] ^ flip;
        else
            for (int64_t i = 0; i < n; i++) to[i] = from[i * stride] ^ flip;
    }
}

/* Of `count` elements at position + k * stride along an axis of x, those inside of it: [*first,
 * *end). */
static void inside(int64_t position, int64_t stride, int64_t size, int64_t count, int64_t *first,
                   int64_t *end)
{
    *first = position < 0 ? ot_min(ot_ceil_div(-position, stride), count) : 0;
    *end = size > position ? ot_min(ot_ceil_div(size - position, stride), count) : 0;
    *end = ot_max(*end, *first);
}

/* The rows that `some` rows of the output from `first` on read, phase by phase. */
static void take_band(const ot_qconv *v, const band *b, uint8_t *to, const uint8_t *plane,
                      int64_t first, int64_t some, uint8_t zero)
{
    int64_t top = first * v->stride[0] - v->lo[0], apart = b->rows * b->width;
    int64_t have = (some - 1) * v->stride[0] + (v->kernel[0] - 1) * v->dilation[0] + 1;
    memset(to, zero, (size_t)(apart * v->stride[0] * v->stride[1]));
    for (int64_t py = 0; py < v->stride[0]; py++)
        for (int64_t px = 0; px < v->stride[1]; px++, to += apart) {
            int64_t rows[2], columns[2], left = px - v->lo[1];
            inside(top + py, v->stride[0], v->in[0],
                   ot_max(0, ot_ceil_div(have - py, v->stride[0])), &rows[0], &rows[1]);
            inside(left, v->stride[1], v->in[1], b->width, &columns[0], &columns[1]);
            if (rows[1] == rows[0] || columns[1] == columns[0]) continue;
            const uint8_t *from = plane + (top + py + rows[0] * v->stride[0]) * v->x_strides[2] +
                                  left + columns[0] * v->stride[1];
            take(to + rows[0] * b->width + columns[0], b->width, from,
                 v->stride[0] * v->x_strides[2], v->stride[1], rows[1] - rows[0],
                 columns[1] - columns[0], v->x_signed ? 0x80 : 0);
        }
}

/* ---- sums ---- */

typedef struct taps {
    const uint8_t *at[9]; /* their elements for the first position */
    int32_t w[9];
} taps;

OT_CLONES static void sum_nine(int32_t *restrict sums, const taps *t, int32_t bias, int64_t n)
{
    const uint8_t *a = t->at[0], *b = t->at[1], *c = t->at[2], *d = t->at[3], *e = t->at[4],
                  *f = t->at[5], *g = t->at[6], *h = t->at[7], *i = t->at[8];
    const int32_t *w = t->w;
    const int32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5], w6 = w[6],
                  w7 = w[7], w8 = w[8];
    for (int64_t k = 0; k < n; k++)
        sums[k] = (int32_t)((uint32_t)bias +
                            (uint32_t)(a[k] * w0 + b[k] * w1 + c[k] * w2 + d[k] * w3 + e[k] * w4 +
                                       f[k] * w5 + g[k] * w6 + h[k] * w7 + i[k] * w8));
}

/* += three of them. */
OT_CLONES static void sum_three(int32_t *restrict sums, const taps *t, int64_t n)
{
    const uint8_t *a = t->at[0], *b = t->at[1], *c = t->at[2];
    const int32_t w0 = t->w[0], w1 = t->w[1], w2 = t->w[2];
    for (int64_t k = 0; k < n; k++)
        sums[k] = (int32_t)((uint32_t)sums[k] + (uint32_t)(a[k] * w0 + b[k] * w1 + c[k] * w2));
}

static int32_t weight(const ot_qconv *v, int64_t map, int64_t k, int64_t n)
{
    const uint8_t *w = v->weights + map * n + k;
    return (v->w_signed ? (int32_t) * (const int8_t *)w : (int32_t)*w) -
           (v->w_zeros ? v->w_zeros[map] : v->w_zero);
}

/* Taps [k, k + some) of a map; those beyond the last count nothing. */
static void find_taps(const ot_qconv *v, const band *b, const uint8_t *x, int64_t map, int64_t k,
                      int64_t some, taps *t)
{
    const int64_t n = v->kernel[0] * v->kernel[1];
    for (int64_t j = 0; j < some; j++) {
        int64_t tap = ot_min(k + j, n - 1), y = tap / v->kernel[1] * v->dilation[0],
                c = tap % v->kernel[1] * v->dilation[1];
        int64_t phase = y % v->stride[0] * v->stride[1] + c % v->stride[1];
        t->at[j] = x + (phase * b->rows + y / v->stride[0]) * b->width + c / v->stride[1];
        t->w[j] = k + j < n ? weight(v, map, tap, n) : 0;
    }
}

#ifdef HAS_VNNI
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

enum { TAPS_MAX = 52 };

/* Four taps at a time. */
typedef struct quad_taps {
    const uint8_t *at[TAPS_MAX];
    int32_t w[TAPS_MAX / 4]; /* four bytes each */
    int64_t quads;
} quad_taps;

/* false: too many taps, or weights that are not bytes less their zero point. */
static bool find_quads(const ot_qconv *v, const band *b, const uint8_t *x, int64_t map,
                       quad_taps *t)
{
    int64_t n = v->kernel[0] * v->kernel[1];
    if (n > TAPS_MAX || n < 4 || ot_i8_way_here() == OT_I8_PAIRS) return false;
    t->quads = (n + 3) / 4;
    for (int64_t q = 0; q < t->quads; q++) {
        taps four;
        int8_t w[4];
        find_taps(v, b, x, map, 4 * q, 4, &four);
        for (int e = 0; e < 4; e++) {
            if (four.w[e] < INT8_MIN || four.w[e] > INT8_MAX) return false;
            w[e] = (int8_t)four.w[e];
            t->at[4 * q + e] = four.at[e];
        }
        memcpy(&t->w[q], w, sizeof w);
    }
    return true;
}

/* Four positions of a lane together, lane by lane; lanes are put in order when all is summed. */
VNNI static void sum_quads(int32_t *sums, const quad_taps *t, int32_t bias, int64_t n)
{
    for (int64_t k = 0; k < n; k += 64) {
        __m512i s0 = _mm512_set1_epi32(bias), s1 = s0, s2 = s0, s3 = s0;
        for (int64_t q = 0; q < t->quads; q++) {
            const uint8_t *const *at = t->at + 4 * q;
            const __m512i w = _mm512_set1_epi32(t->w[q]),
                          x0 = _mm512_loadu_si512((const void *)(at[0] + k)),
                          x1 = _mm512_loadu_si512((const void *)(at[1] + k)),
                          x2 = _mm512_loadu_si512((const void *)(at[2] + k)),
                          x3 = _mm512_loadu_si512((const void *)(at[3] + k));
            const __m512i a = _mm512_unpacklo_epi8(x0, x1), b = _mm512_unpacklo_epi8(x2, x3),
                          c = _mm512_unpackhi_epi8(x0, x1), d = _mm512_unpackhi_epi8(x2, x3);
            s0 = _mm512_dpbusd_epi32(s0, _mm512_unpacklo_epi16(a, b), w);
            s1 = _mm512_dpbusd_epi32(s1, _mm512_unpackhi_epi16(a, b), w);
            s2 = _mm512_dpbusd_epi32(s2, _mm512_unpacklo_epi16(c, d), w);
            s3 = _mm512_dpbusd_epi32(s3, _mm512_unpackhi_epi16(c, d), w);
        }
        const __m512i low01 = _mm512_shuffle_i32x4(s0, s1, 0x44),
                      high01 = _mm512_shuffle_i32x4(s0, s1, 0xee),
                      low23 = _mm512_shuffle_i32x4(s2, s3, 0x44),
                      high23 = _mm512_shuffle_i32x4(s2, s3, 0xee);
        _mm512_storeu_si512((void *)(sums + k), _mm512_shuffle_i32x4(low01, low23, 0x88));
        _mm512_storeu_si512((void *)(sums + k + 16), _mm512_shuffle_i32x4(low01, low23, 0xdd));
        _mm512_storeu_si512((void *)(sums + k + 32), _mm512_shuffle_i32x4(high01, high23, 0x88));
        _mm512_storeu_si512((void *)(sums + k + 48), _mm512_shuffle_i32x4(high01, high23, 0xdd));
    }
}
#endif

/* The first `count` sums of a band. */
static void sum_band(const ot_qconv *v, const band *b, const uint8_t *x, int64_t map, int32_t bias,
                     int32_t *sums, int64_t count)
{
    int64_t n = v->kernel[0] * v->kernel[1];
    taps t;
#ifdef HAS_VNNI
    quad_taps quads;
    if (find_quads(v, b, x, map, &quads)) {
        sum_quads(sums, &quads, bias, count);
        return;
    }
#endif
    if (n == 9) {
        find_taps(v, b, x, map, 0, 9, &t);
        sum_nine(sums, &t, bias, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) sums[i] = bias;
    for (int64_t k = 0; k < n; k += 3) {
        find_taps(v, b, x, map, k, 3, &t);
        sum_three(sums, &t, count);
    }
}

/* ---- outputs ---- */

/* Adding it rounds to an integer (to nearest, ties to even) what is at most 2^22 in size. */
#define ROUNDING 12582912.0f

typedef struct finish {
    float factor, shift, least, most; /* limits less the zero point */
    int32_t zero;
} finish;

/* Clamping to integers before rounding is clamping after it. */
OT_CLONES static void finish_bytes(uint8_t *restrict to, const int32_t *restrict sums, int64_t n,
                                   const finish *f)
{
    const float factor = f->factor, shift = f->shift, least = f->least, most = f->most;
    const int32_t zero = f->zero;
    for (int64_t i = 0; i < n; i++) {
        float q = (float)sums[i] * factor + shift;
        q = q > least ? q : least;
        q = q < most ? q : most;
        q = (q + ROUNDING) - ROUNDING;
        to[i] = (uint8_t)((int32_t)q + zero);
    }
}

OT_CLONES static void finish_floats(float *restrict to, const int32_t *restrict sums, int64_t n,
                                    float factor, float shift)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)sums[i] * factor + shift;
}

static finish finish_of(const ot_qconv *v, int64_t map)
{
    const ot_i8_out *o = &v->y;
    bool all = o->least == 0 && o->most == 0;
    int32_t low = o->type == OT_I8 ? INT8_MIN : 0, least = all ? low : o->least,
            most = all ? low + UINT8_MAX : o->most;
    return (finish){o->scale * (o->row_scales ? o->row_scales[map] : 1),
                    o->row_shift ? o->row_shift[map] : 0, (float)(least - o->zero),
                    (float)(most - o->zero), o->zero};
}

/* `some` rows of sums to `to`, of y's type; `bytes` has room for as many. */
static void finish_band(const ot_qconv *v, const band *b, int64_t map, const int32_t *sums,
                        int64_t some, uint8_t *bytes, char *to)
{
    finish f = finish_of(v, map);
    int64_t width = v->out[1];
    bool narrow = v->y.type != OT_I32 && v->y.type != OT_F32;
    size_t row = (size_t)width * (narrow ? sizeof *bytes : sizeof *sums);
    if (narrow && b->width == width) {
        finish_bytes((uint8_t *)to, sums, some * width, &f);
        return;
    }
    if (narrow) finish_bytes(bytes, sums, whole((some - 1) * b->width + width), &f);
    for (int64_t r = 0; r < some; r++, sums += b->width, bytes += b->width, to += row) {
        if (narrow)
            memcpy(to, bytes, row);
        else if (v->y.type == OT_I32)
            memcpy(to, sums, row);
        else
            finish_floats((float *)(void *)to, sums, width, f.factor, f.shift);
    }
}

void ot_qconv_depthwise(const ot_qconv *v, const uint8_t *x, void *y, int64_t image, int64_t map,
                        void *work)
{
    band b;
    form_band(v, &b);
    int64_t n = v->kernel[0] * v->kernel[1];
    uint8_t *taken = work, *bytes;
    int32_t *sums = (int32_t *)(void *)(taken + band_bytes(v, &b));
    int32_t zero = v->x_zero + (v->x_signed ? 128 : 0), all = 0;
    const uint8_t *plane = x + image * v->x_strides[0] +
                           map / (v->maps / v->group) * v->x_strides[1];
    bytes = (uint8_t *)(sums + up64(b.step * b.width));
    for (int64_t k = 0; k < n; k++) all += weight(v, map, k, n);
    uint32_t bias = (v->y.row_bias ? (uint32_t)v->y.row_bias[map] : 0) -
                    (uint32_t)zero * (uint32_t)all;
    for (int64_t first = 0; first < v->out[0]; first += b.step) {
        int64_t some = ot_min(b.step, v->out[0] - first);
        take_band(v, &b, taken, plane, first, some, (uint8_t)zero);
        sum_band(v, &b, taken, map, (int32_t)bias, sums, whole((some - 1) * b.width + v->out[1]));
        int64_t at = ((image * v->maps + map) * v->out[0] + first) * v->out[1];
        finish_band(v, &b, map, sums, some, bytes,
                    (char *)y + (size_t)at * ot_dtype_bytes(v->y.type));
    }
}
