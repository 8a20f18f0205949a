/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear between float32 and small integers.
 *
 *   x  [outer, extent, inner]   a scale and a zero point for all, or for each slice along the axis:
 *
 *       inner > 1      runs of `inner` elements with one scale each
 *       inner = 1      rows of `extent` elements, scales next to each other
 *
 * Elements are what the references compute, bit by bit: the same division in float, rounded to
 * even. Scales by block, other types and wider arithmetic are left to the references.
 */
#include "int8_product.h"

#include <math.h>

#include "engine/cpu/rows/rows.h"
#include "engine/core/pool.h"

/* Adding it rounds to an integer (to nearest, ties to even) what is at most 2^22 in size. */
#define ROUNDING 12582912.0f

/* ---- where scales are found ---- */

typedef struct lanes {
    int64_t runs, n;   /* of n elements next to each other */
    int64_t extent;    /* run r has number r % extent, unless it has them all */
    bool by_element;   /* element i of a run has number i */
    float *scales;     /* [numbers] */
    float *zeros;      /* [numbers] */
    float least, most; /* of the integer type */
} lanes;

static bool range_of(ot_dtype t, lanes *l)
{
    bool shorts = ot_num_is(t, OT_NUM_SHORTS), is_signed = t == OT_I8 || t == OT_I16;
    if (!shorts && !ot_num_is(t, OT_NUM_BYTES)) return false;
    l->least = is_signed ? shorts ? -32768.0f : -128.0f : 0.0f;
    l->most = l->least + (shorts ? 65535.0f : 255.0f);
    return true;
}

static bool numbers_of(ot_call *c, const ot_nd *scale, const ot_nd *zero, int64_t n, lanes *l)
{
    l->scales = ot_call_scratch(c, (size_t)n * 2 * sizeof(float));
    if (!l->scales) return false;
    l->zeros = l->scales + n;
    memcpy(l->scales, scale->data, (size_t)n * sizeof(float));
    for (int64_t i = 0; zero && i < n; i++) l->zeros[i] = (float)ot_nd_int(zero, i);
    return true;
}

/* false: for the reference, if only to say what is wrong. `t`: type of the integers, and of the
 * zero point. */
static bool open_lanes(ot_call *c, ot_dtype t, lanes *l)
{
    const ot_nd *x = c->in[0], *scale = c->in[1], *zero = ot_num_in(c, 2);
    int64_t n, numbers = ot_num_count(scale), axis = ot_attr_int(c->node, "axis", 1);
    *l = (lanes){.extent = 1};
    if (!x->data || !scale->data || scale->dtype != OT_F32 || scale->rank > 1 || numbers < 1 ||
        !ot_nd_elems(x, &n) || n == 0 || !range_of(t, l) ||
        ot_attr_int(c->node, "block_size", 0) > 0)
        return false;
    if (zero && (!zero->data || zero->dtype != t || zero->rank != scale->rank ||
                 ot_num_count(zero) != numbers))
        return false;
    if (axis < 0) axis += x->rank;
    if (numbers == 1) {
        l->runs = 1;
        l->n = n;
    } else if (axis < 0 || axis >= x->rank || x->dims[axis] != numbers) {
        return false;
    } else {
        int64_t inner = 1;
        for (uint32_t k = (uint32_t)axis + 1; k < x->rank; k++) inner *= x->dims[k];
        l->by_element = inner == 1;
        l->extent = l->by_element ? 1 : numbers;
        l->n = l->by_element ? numbers : inner;
        l->runs = n / l->n;
    }
    return numbers_of(c, scale, zero, numbers, l);
}

/* ---- loops ---- */

/* The clamp comes before rounding, which changes nothing since its bounds are integers; NaN
 * becomes the least. */
static inline float rounded(float q, float least, float most)
{
    q = q > least ? q : least;
    q = q < most ? q : most;
    return (q + ROUNDING) - ROUNDING;
}

/* n quotients, rounded, within the type: y = zero + integers. One scale, or one each. */
#define QUANTIZE(name, type)                                                                      \
    OT_CLONES static void name(type *restrict y, const float *restrict x, int64_t n, float scale, \
                               float zero, float least, float most)                               \
    {                                                                                             \
        float lo = least - zero, hi = most - zero;                                                \
        for (int64_t i = 0; i < n; i++)                                                           \
            y[i] = (type)(int32_t)(rounded(x[i] / scale, lo, hi) + zero);                         \
    }                                                                                             \
    OT_CLONES static void name##_each(type *restrict y, const float *restrict x, int64_t n,       \
                                      const float *restrict scale, const float *restrict zero,    \
                                      float least, float most)                                    \
    {                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                           \
            y[i] = (type)(int32_t)(rounded(x[i] / scale[i], least - zero[i], most - zero[i]) +    \
                                   zero[i]);                                                      \
    }

/* Differences and their product with a scale are exact in double, so float arithmetic rounds
 * once, as the reference does. */
#define DEQUANTIZE(name, type)                                                                    \
    OT_CLONES static void name(float *restrict y, const type *restrict x, int64_t n, float scale, \
                               float zero)                                                        \
    {                                                                                             \
        for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero) * scale;                      \
    }                                                                                             \
    OT_CLONES static void name##_each(float *restrict y, const type *restrict x, int64_t n,       \
                                      const float *restrict scale, const float *restrict zero)    \
    {                                                                                             \
        for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero[i]) * scale[i];                \
    }

QUANTIZE(to_u8, uint8_t)
QUANTIZE(to_i8, int8_t)
QUANTIZE(to_u16, uint16_t)
QUANTIZE(to_i16, int16_t)
DEQUANTIZE(from_u8, uint8_t)
DEQUANTIZE(from_i8, int8_t)
DEQUANTIZE(from_u16, uint16_t)
DEQUANTIZE(from_i16, int16_t)

/* Elements [at, at + n) of run r. */
#define PIECE(f, y, x, ...)                                                                 \
    (l->by_element                                                                          \
         ? f##_each((y) + first, (x) + first, n, l->scales + at, l->zeros + at __VA_ARGS__) \
         : f((y) + first, (x) + first, n, l->scales[r % l->extent],                         \
             l->zeros[r % l->extent] __VA_ARGS__))

static void quantize_piece(const lanes *l, ot_nd *y, const float *x, int64_t r, int64_t at,
                           int64_t n)
{
    int64_t first = r * l->n + at;
    switch ((int)y->dtype) {
    case OT_U8: PIECE(to_u8, (uint8_t *)y->data, x, , l->least, l->most); break;
    case OT_I8: PIECE(to_i8, (int8_t *)y->data, x, , l->least, l->most); break;
    case OT_U16: PIECE(to_u16, (uint16_t *)y->data, x, , l->least, l->most); break;
    default: PIECE(to_i16, (int16_t *)y->data, x, , l->least, l->most); break;
    }
}

static void dequantize_piece(const lanes *l, float *y, const ot_nd *x, int64_t r, int64_t at,
                             int64_t n)
{
    int64_t first = r * l->n + at;
    switch ((int)x->dtype) {
    case OT_U8: PIECE(from_u8, y, (const uint8_t *)x->data, ); break;
    case OT_I8: PIECE(from_i8, y, (const int8_t *)x->data, ); break;
    case OT_U16: PIECE(from_u16, y, (const uint16_t *)x->data, ); break;
    default: PIECE(from_i16, y, (const int16_t *)x->data, ); break;
    }
}

enum { PIECE_LENGTH = 16384 };

typedef struct piece_job {
    const lanes *l;
    ot_nd *y;
    const ot_nd *x;
    bool quantize;
} piece_job;

static void pieces_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const piece_job *j = job;
    int64_t parts = ot_ceil_div(j->l->n, PIECE_LENGTH);
    (void)worker;
    for (int64_t i = first; i < end; i++) {
        int64_t at = i % parts * PIECE_LENGTH, n = ot_min(PIECE_LENGTH, j->l->n - at);
        if (j->quantize)
            quantize_piece(j->l, j->y, j->x->data, i / parts, at, n);
        else
            dequantize_piece(j->l, j->y->data, j->x, i / parts, at, n);
    }
}

/* All pieces of all runs, shared out; `quantize` says which way. */
static void each_piece(const ot_call *c, const lanes *l, ot_nd *y, const ot_nd *x, bool quantize)
{
    piece_job j = {.l = l, .y = y, .x = x, .quantize = quantize};
    int threads = ot_rows_threads(c, (double)l->runs * (double)l->n / 2);
    ot_pool_share((uint32_t)threads, l->runs * ot_ceil_div(l->n, PIECE_LENGTH), 1, pieces_share,
                  &j);
}

/* ---- implementations ---- */

/* com.microsoft has the names, too, and no references of its own. */
ot_status ot_fast_quantize_linear(ot_call *c)
{
    lanes l;
    const ot_nd *zero = ot_num_in(c, 2);
    int64_t asked = ot_attr_int(c->node, "output_dtype", 0);
    if (c->n_in < 2 || !c->in[0] || !c->in[1] || c->in[0]->dtype != OT_F32)
        return ot_ref_quantize_linear(c);
    ot_dtype t = zero ? zero->dtype : asked > 0 && asked < 32 ? (ot_dtype)asked : OT_U8;
    if ((asked != 0 && asked != (int64_t)t) || ot_attr_int(c->node, "precision", 0) == OT_F64 ||
        !open_lanes(c, t, &l))
        return ot_ref_quantize_linear(c);
    OT_TRY(ot_call_output(c, 0, t, c->in[0]->rank, c->in[0]->dims));
    if (ot_num_out(c, 0)) each_piece(c, &l, c->out[0], c->in[0], true);
    return OT_OK;
}

ot_status ot_fast_dequantize_linear(ot_call *c)
{
    lanes l;
    int64_t asked = ot_attr_int(c->node, "output_dtype", 0);
    if (c->n_in < 2 || !c->in[0] || !c->in[1] || (asked != 0 && asked != OT_F32) ||
        !open_lanes(c, c->in[0]->dtype, &l))
        return ot_ref_dequantize_linear(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, c->in[0]->rank, c->in[0]->dims));
    if (ot_num_out(c, 0)) each_piece(c, &l, c->out[0], c->in[0], false);
    return OT_OK;
}

/* ---- DynamicQuantizeLinear ---- */

OT_CLONES static void span_of(const float *x, int64_t n, float *least, float *most)
{
    float lo = 0, hi = 0;
#pragma omp simd reduction(min : lo) reduction(max : hi)
    for (int64_t i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *least = lo;
    *most = hi;
}

enum { SPANS = 64, SPAN_LEAST = 4096 }; /* threads at most; elements that a thread takes at least */

typedef struct span_job {
    const float *x;
    float least[SPANS], most[SPANS]; /* of what each worker saw, and of 0 */
} span_job;

static void span_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    span_job *j = job;
    float least, most;
    span_of(j->x + first, end - first, &least, &most);
    j->least[worker] = fminf(j->least[worker], least);
    j->most[worker] = fmaxf(j->most[worker], most);
}

typedef struct byte_job {
    uint8_t *q;
    const float *x;
    float scale, zero;
} byte_job;

static void bytes_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const byte_job *j = job;
    (void)worker;
    to_u8(j->q + first, j->x + first, end - first, j->scale, j->zero, 0, 255);
}

void ot_quant_span(const float *x, int64_t n, int threads, float *scale, float *zero)
{
    span_job j = {.x = x};
    float lo = 0, hi = 0;
    if (threads > SPANS) threads = SPANS;
    ot_pool_share((uint32_t)threads, n, SPAN_LEAST, span_share, &j);
    for (int t = 0; t < threads; t++) {
        lo = fminf(lo, j.least[t]);
        hi = fmaxf(hi, j.most[t]);
    }
    *scale = hi == lo ? 1.0f : (hi - lo) / 255;
    *zero = rintf(fmaxf(0, fminf(255, 0 - lo / *scale)));
}

void ot_quant_bytes(uint8_t *q, const float *x, int64_t n, int threads, float scale, float zero)
{
    byte_job j = {.q = q, .x = x, .scale = scale, .zero = zero};
    ot_pool_share((uint32_t)threads, n, SPAN_LEAST, bytes_share, &j);
}

ot_status ot_fast_dynamic_quantize_linear(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0);
    float scale, zero;
    if (!x || !x->data || x->dtype != OT_F32) return ot_ref_dynamic_quantize_linear(c);
    int64_t n = ot_num_count(x);
    int threads = ot_rows_threads(c, (double)n / 2);
    ot_quant_span(x->data, n, threads, &scale, &zero);
    OT_TRY(ot_call_output(c, 0, OT_U8, x->rank, x->dims));
    if (ot_num_out(c, 0)) ot_quant_bytes(c->out[0]->data, x->data, n, threads, scale, zero);
    OT_TRY(ot_call_output(c, 1, OT_F32, 0, NULL));
    if (ot_num_out(c, 1)) *(float *)c->out[1]->data = scale;
    OT_TRY(ot_call_output(c, 2, OT_U8, 0, NULL));
    if (ot_num_out(c, 2)) *(uint8_t *)c->out[2]->data = (uint8_t)zero;
    return OT_OK;
}
