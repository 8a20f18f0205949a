/* Float32 implementations on rows and matrices: raw pointers, strides in elements, no allocation,
 * no failure.
 *
 *   rows          |<------ n ------>|        one function call handles `rows` rows; dst may be src
 *                                            itself
 *   src           x x x x x x x x x x . . .  (same strides), else they must not overlap
 *   src + stride  x x x x x x x x x x . . .
 *
 *   matrices      B [k, n] is packed into panels of 16 columns, each [k][16], the last filled up
 *                 with zeros;
 *                 a tile of 6 x 16 sums stays in registers while k runs
 *
 * What is here runs on the calling thread; implementations (fast_rows*.c, fast_product*.c) and the
 * executor share it out. Long sums are taken in vector lanes over blocks of OT_ROWS_BLOCK
 * elements, and the blocks in double.
 */
#ifndef OT_ENGINE_CPU_ROWS_ROWS_H
#define OT_ENGINE_CPU_ROWS_ROWS_H

#include <string.h>

#include "engine/ref/ref_operators.h"
#include "engine/core/simd.h"

/* Products may be fused with additions: faster, and more exact. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT ON
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=fast")
#endif

#define OT_ROWS_BLOCK 512

/* ---- functions of one number: branch-free, so that a loop of them becomes vector code ---- */

static inline float ot_rows_power_of_2(int32_t n) /* -126 <= n <= 127 */
{
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* exp(x) = 2^n * exp(r), |r| <= log(2) / 2: n, and exp(r) by a polynomial fitted to relative
 * error 3e-9. */
static inline float ot_rows_exp_parts(float x, int32_t *n)
{
    /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */
    const float magic = 12582912.0f;
    float t = x * 1.44269504f + magic;
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    *n = (int32_t)(bits - 0x4B400000u);
    t -= magic;
    float r = x - t * 0.693359375f;
    r = r + t * 2.12194440e-4f;
    float q = 0.00138131424f;
    q = q * r + 0.00836941879f;
    q = q * r + 0.0416684560f;
    q = q * r + 0.166665152f;
    q = q * r + 0.49999994f;
    return 1.0f + (r + r * r * q);
}

/* exp(x) within 2 ulp, all x; NaN stays NaN. */
static inline float ot_rows_exp(float x)
{
    int32_t n;
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float p = ot_rows_exp_parts(x, &n);
    int32_t half = n >> 1;
    return p * ot_rows_power_of_2(half) * ot_rows_power_of_2(n - half);
}

/* The same for x <= 0; what is no normal number is 0. */
static inline float ot_rows_exp_negative(float x)
{
    int32_t n;
    float c = x < -87.0f ? -87.0f : x;
    float p = ot_rows_exp_parts(c, &n) * ot_rows_power_of_2(n);
    return x < -87.0f ? 0.0f : p;
}

/* x * (share of a normal distribution below x), the exact Gelu. The share of the smaller side is
 * exp(-x^2 / 2) times a smooth function, fitted in u = 1 / (1 + 0.3 |x|) to relative error 6e-8. */
static inline float ot_rows_gelu(float x)
{
    float a = x < 0.0f ? -x : x;
    a = a > 14.0f ? 14.0f : a;
    float u = 1.0f / (1.0f + 0.3f * a);
    float q = 0.0384075418f;
    q = q * u - 0.169308156f;
    q = q * u + 0.228953138f;
    q = q * u - 0.0768411085f;
    q = q * u + 0.142766207f;
    q = q * u + 0.0945855007f;
    q = q * u + 0.121945344f;
    q = q * u + 0.119484194f;
    q = q * u + 7.37294022e-6f;
    q = q * ot_rows_exp_negative(-0.5f * a * a);
    float y = x * (x < 0.0f ? q : 1.0f - q);
    return x < -14.0f ? (x < -3.0e38f ? x * 0.0f * x : -0.0f) : y;
}

/* Gelu with tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) for the error function: x * sigmoid of twice
 * that. */
static inline float ot_rows_gelu_tanh(float x)
{
    float z = x * (1.59576912f + 0.0713548163f * x * x);
    return x / (1.0f + ot_rows_exp(-z));
}

/* ---- rows ---- */

/* exp(x - largest) over its sum; a row with NaN or infinity (or of nothing but minus infinity)
 * is NaN, as the formula says. */
void ot_rows_softmax(float *dst, const float *src, int64_t rows, int64_t n, int64_t dst_stride,
                     int64_t src_stride);
void ot_rows_log_softmax(float *dst, const float *src, int64_t rows, int64_t n, int64_t dst_stride,
                         int64_t src_stride);
/* The same along the other axis: `columns` lanes of n elements, `stride` apart, next to each other.
 */
void ot_rows_softmax_columns(float *dst, const float *src, int64_t n, int64_t columns,
                             int64_t dst_stride, int64_t src_stride);
void ot_rows_log_softmax_columns(float *dst, const float *src, int64_t n, int64_t columns,
                                 int64_t dst_stride, int64_t src_stride);

typedef struct ot_rows_norm {
    const float *scale, *shift; /* [n] or NULL: 1, 0 */
    float epsilon;
    bool rms; /* no mean is subtracted */
} ot_rows_norm;

/* One row: (x - mean) / sqrt(variance + epsilon) * scale + shift. mean, inverse: receive the
 * statistics, or NULL. */
void ot_rows_layernorm(float *dst, const float *x, int64_t n, const ot_rows_norm *norm, float *mean,
                       float *inverse);
/* Mean, and mean of squared distances from `center`, of n elements. */
double ot_rows_mean(const float *x, int64_t n);
double ot_rows_square_mean(const float *x, int64_t n, double center);
/* dst = (x - center) * factor + shift */
void ot_rows_affine(float *dst, const float *x, int64_t n, float center, float factor, float shift);

/* y = act(x + bias): bias is [n] or NULL. */
typedef enum ot_rows_act { OT_ROWS_GELU, OT_ROWS_GELU_TANH } ot_rows_act;
void ot_rows_activate(float *dst, const float *src, const float *bias, int64_t n, ot_rows_act act);
/* dst = x * sigmoid(alpha * x) */
void ot_rows_quick_gelu(float *dst, const float *x, int64_t n, float alpha);

/* dst [columns][rows] = src [rows][columns], strides between rows. */
void ot_rows_transpose(float *dst, const float *src, int64_t rows, int64_t columns,
                       int64_t dst_stride, int64_t src_stride);

/* ---- matrices ---- */

double ot_rows_dot(const float *a, const float *b, int64_t n);

#define OT_PANEL 16 /* columns */

/* Floats that B [k, n] takes packed; -1: more than can be counted. */
int64_t ot_panels_size(int64_t k, int64_t n);
/* A matrix B [k, n], whose element (i, j) is b[i * row_step + j * column_step]. */
typedef struct ot_matrix_layout {
    int64_t k, n, row_step, column_step;
} ot_matrix_layout;
/* Panels [first, end) of B. */
void ot_panels_pack(float *to, const float *b, const ot_matrix_layout *m, int64_t first,
                    int64_t end);

/* C [m, n] = alpha * A * B + (add ? C : 0), columns of panels [first, end). A is row-major with
 * ld lda; C with ldc. */
typedef struct ot_panels_job {
    int64_t m, n, k, lda, ldc;
    const float *a, *panels;
    float *c;
    float alpha;
    bool add;
} ot_panels_job;
void ot_panels_product(const ot_panels_job *j, int64_t first, int64_t end);
/* c [n] += a [k] * B, all of it packed. */
void ot_panels_add_vector(const float *a, const float *panels, float *c, int64_t n, int64_t k);
/* Is ot_panels_product faster than oneDNN on this machine? */
bool ot_panels_pay(void);

/* ---- threads ---- */

/* Threads worth starting for `work` elements (of a few operations each): 1 inside a parallel
 * region. */
int ot_rows_threads(const ot_call *c, double work);

/* ---- implementations ---- */

/* ends with {OT_OP_OPAQUE, NULL}, as all such tables do */
extern const ot_op_entry ot_fast_rows[];
extern const ot_op_named ot_fast_rows_named[];

/* fast_rows*.c, by file */
ot_status ot_fast_softmax(ot_call *c);
ot_status ot_fast_lanes(ot_call *c);
ot_status ot_fast_layer_norm(ot_call *c);
ot_status ot_fast_skip_layer_norm(ot_call *c);
ot_status ot_fast_channel_norm(ot_call *c);
ot_status ot_fast_mean_variance(ot_call *c);
ot_status ot_fast_moments(ot_call *c);
ot_status ot_fast_lrn(ot_call *c);
ot_status ot_fast_reduce(ot_call *c);
ot_status ot_fast_global_pool(ot_call *c);
ot_status ot_fast_arg(ot_call *c);
ot_status ot_fast_topk(ot_call *c);
ot_status ot_fast_gelu(ot_call *c);
ot_status ot_fast_arc(ot_call *c);

#endif
