/* Rows: softmax, normalisation, sums. Leaves are compiled for several instruction sets; loops
 * that carry a sum or a largest element are told (omp simd reduction) that the order does not
 * matter.
 */
#include "rows.h"

#include "engine/core/pool.h"

#include <math.h>

enum {
    COLUMNS = 256,
    COLUMNS_LEAST = 32
}; /* lanes that are computed side by side: as many as the first cache levels hold */

int ot_rows_threads(const ot_call *c, double work)
{
    double most = work / 16384;
    if (c->threads <= 1 || most < 2 || ot_pool_inside()) return 1;
    return most < (double)c->threads ? (int)most : (int)c->threads;
}

/* ---- softmax ---- */

static inline float largest_of(const float *x, int64_t n)
{
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* dst = exp(x - most); returns the sum. */
static inline double exp_of(float *dst, const float *x, int64_t n, float most)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += OT_ROWS_BLOCK) {
        int64_t m = ot_min(OT_ROWS_BLOCK, n - at);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < m; i++) {
            float e = ot_rows_exp_negative(x[at + i] - most);
            dst[at + i] = e;
            sum += e;
        }
        total += (double)sum;
    }
    return total;
}

static inline double exp_sum_of(const float *x, int64_t n, float most)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += OT_ROWS_BLOCK) {
        int64_t m = ot_min(OT_ROWS_BLOCK, n - at);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < m; i++) sum += ot_rows_exp_negative(x[at + i] - most);
        total += (double)sum;
    }
    return total;
}

OT_CLONES static void softmax_row(float *dst, const float *x, int64_t n)
{
    float by = (float)(1 / exp_of(dst, x, n, largest_of(x, n)));
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] *= by;
}

void ot_rows_softmax(float *dst, const float *src, int64_t rows, int64_t n, int64_t dst_stride,
                     int64_t src_stride)
{
    for (int64_t r = 0; r < rows; r++) softmax_row(dst + r * dst_stride, src + r * src_stride, n);
}

OT_CLONES static void log_softmax_row(float *dst, const float *x, int64_t n)
{
    float most = largest_of(x, n), log_sum = (float)log(exp_sum_of(x, n, most));
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = x[i] - most - log_sum;
}

void ot_rows_log_softmax(float *dst, const float *src, int64_t rows, int64_t n, int64_t dst_stride,
                         int64_t src_stride)
{
    for (int64_t r = 0; r < rows; r++)
        log_softmax_row(dst + r * dst_stride, src + r * src_stride, n);
}

/* ---- softmax along columns: COLUMNS lanes at a time ---- */

static inline void columns_largest(const float *x, int64_t n, int64_t w, int64_t stride,
                                   float *most)
{
    for (int64_t k = 0; k < w; k++) most[k] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
#pragma omp simd
        for (int64_t k = 0; k < w; k++)
            most[k] = x[i * stride + k] > most[k] ? x[i * stride + k] : most[k];
    }
}

/* exp(x - most) into dst unless it is NULL; sums into total. */
static inline void columns_exp(float *dst, const float *x, int64_t n, int64_t w, int64_t dst_stride,
                               int64_t stride, const float *most, float *total)
{
    float sum[COLUMNS];
    for (int64_t k = 0; k < w; k++) total[k] = 0;
    for (int64_t at = 0; at < n; at += 64) {
        for (int64_t k = 0; k < w; k++) sum[k] = 0;
        for (int64_t i = at; i < ot_min(n, at + 64); i++) {
            const float *from = x + i * stride;
            float *to = dst ? dst + i * dst_stride : NULL;
            if (to) {
#pragma omp simd
                for (int64_t k = 0; k < w; k++)
                    sum[k] += to[k] = ot_rows_exp_negative(from[k] - most[k]);
            } else {
#pragma omp simd
                for (int64_t k = 0; k < w; k++) sum[k] += ot_rows_exp_negative(from[k] - most[k]);
            }
        }
        for (int64_t k = 0; k < w; k++) total[k] += sum[k];
    }
}

OT_CLONES static void softmax_block(float *dst, const float *x, int64_t n, int64_t w,
                                    int64_t dst_stride, int64_t stride)
{
    float most[COLUMNS], total[COLUMNS];
    columns_largest(x, n, w, stride, most);
    columns_exp(dst, x, n, w, dst_stride, stride, most, total);
    for (int64_t k = 0; k < w; k++) total[k] = 1.0f / total[k];
    for (int64_t i = 0; i < n; i++) {
#pragma omp simd
        for (int64_t k = 0; k < w; k++) dst[i * dst_stride + k] *= total[k];
    }
}

static int64_t columns_at_once(int64_t n)
{
    int64_t fit = 32768 / (n > 0 ? n : 1) / 16 * 16;
    return fit > COLUMNS ? COLUMNS : fit < COLUMNS_LEAST ? COLUMNS_LEAST : fit;
}

void ot_rows_softmax_columns(float *dst, const float *src, int64_t n, int64_t columns,
                             int64_t dst_stride, int64_t src_stride)
{
    int64_t w = columns_at_once(n);
    for (int64_t k = 0; k < columns; k += w)
        softmax_block(dst + k, src + k, n, ot_min(w, columns - k), dst_stride, src_stride);
}

OT_CLONES static void log_softmax_block(float *dst, const float *x, int64_t n, int64_t w,
                                        int64_t dst_stride, int64_t stride)
{
    float most[COLUMNS], total[COLUMNS];
    columns_largest(x, n, w, stride, most);
    columns_exp(NULL, x, n, w, 0, stride, most, total);
    for (int64_t k = 0; k < w; k++) total[k] = logf(total[k]);
    for (int64_t i = 0; i < n; i++) {
#pragma omp simd
        for (int64_t k = 0; k < w; k++)
            dst[i * dst_stride + k] = x[i * stride + k] - most[k] - total[k];
    }
}

void ot_rows_log_softmax_columns(float *dst, const float *src, int64_t n, int64_t columns,
                                 int64_t dst_stride, int64_t src_stride)
{
    int64_t w = columns_at_once(n);
    for (int64_t k = 0; k < columns; k += w)
        log_softmax_block(dst + k, src + k, n, ot_min(w, columns - k), dst_stride, src_stride);
}

/* ---- normalisation ---- */

/* Distances from the first element are summed: what all elements have in common takes no digits. */
static inline double mean_of(const float *x, int64_t n)
{
    double total = 0;
    float origin = n > 0 ? x[0] : 0.0f;
    for (int64_t at = 0; at < n; at += OT_ROWS_BLOCK) {
        int64_t m = ot_min(OT_ROWS_BLOCK, n - at);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < m; i++) sum += x[at + i] - origin;
        total += (double)sum;
    }
    return (double)origin + total / (double)n;
}

/* Around a centre, so that squares do not cancel afterwards. */
static inline double square_sum_of(const float *x, int64_t n, float center)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += OT_ROWS_BLOCK) {
        int64_t m = ot_min(OT_ROWS_BLOCK, n - at);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < m; i++) sum += (x[at + i] - center) * (x[at + i] - center);
        total += (double)sum;
    }
    return total;
}

OT_CLONES static double row_mean(const float *x, int64_t n) { return mean_of(x, n); }

OT_CLONES static double row_square_sum(const float *x, int64_t n, float center)
{
    return square_sum_of(x, n, center);
}

double ot_rows_mean(const float *x, int64_t n) { return row_mean(x, n); }

/* sum (x - c)^2 = sum (x - f)^2 - n (c - f)^2 when c is the mean and f its float. */
double ot_rows_square_mean(const float *x, int64_t n, double center)
{
    double off = center - (double)(float)center;
    return row_square_sum(x, n, (float)center) / (double)n - off * off;
}

OT_CLONES static void affine(float *dst, const float *x, int64_t n, float center, float factor,
                             float shift)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = (x[i] - center) * factor + shift;
}

void ot_rows_affine(float *dst, const float *x, int64_t n, float center, float factor, float shift)
{
    affine(dst, x, n, center, factor, shift);
}

OT_CLONES void ot_rows_layernorm(float *dst, const float *x, int64_t n, const ot_rows_norm *norm,
                                 float *mean, float *inverse)
{
    const float *scale = norm->scale, *shift = norm->shift;
    double m = norm->rms ? 0 : mean_of(x, n), off = m - (double)(float)m;
    float center = (float)m;
    double variance = square_sum_of(x, n, center) / (double)n - off * off;
    /* of the rounded mean */
    float factor = (float)(1 / sqrt(variance + (double)norm->epsilon)), rest = -(float)off * factor;
    if (mean) *mean = center;
    if (inverse) *inverse = factor;
    if (scale && shift) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dst[i] = ((x[i] - center) * factor + rest) * scale[i] + shift[i];
    } else if (scale) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) dst[i] = ((x[i] - center) * factor + rest) * scale[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            dst[i] = (x[i] - center) * factor + rest + (shift ? shift[i] : 0.0f);
    }
}

/* ---- activations ---- */

OT_CLONES static void gelu_row(float *dst, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = ot_rows_gelu(x[i]);
}

OT_CLONES static void gelu_bias_row(float *dst, const float *x, const float *bias, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = ot_rows_gelu(x[i] + bias[i]);
}

OT_CLONES static void tanh_row(float *dst, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = ot_rows_gelu_tanh(x[i]);
}

OT_CLONES static void tanh_bias_row(float *dst, const float *x, const float *bias, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = ot_rows_gelu_tanh(x[i] + bias[i]);
}

void ot_rows_activate(float *dst, const float *src, const float *bias, int64_t n, ot_rows_act act)
{
    if (act == OT_ROWS_GELU) {
        if (bias)
            gelu_bias_row(dst, src, bias, n);
        else
            gelu_row(dst, src, n);
    } else if (bias) {
        tanh_bias_row(dst, src, bias, n);
    } else {
        tanh_row(dst, src, n);
    }
}

OT_CLONES static void quick_row(float *dst, const float *x, int64_t n, float alpha)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dst[i] = x[i] / (1.0f + ot_rows_exp(-alpha * x[i]));
}

void ot_rows_quick_gelu(float *dst, const float *x, int64_t n, float alpha)
{
    quick_row(dst, x, n, alpha);
}

/* ---- vectors, transposition ---- */

OT_CLONES static double dot(const float *a, const float *b, int64_t n)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += OT_ROWS_BLOCK) {
        int64_t m = ot_min(OT_ROWS_BLOCK, n - at);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < m; i++) sum += a[at + i] * b[at + i];
        total += (double)sum;
    }
    return total;
}

double ot_rows_dot(const float *a, const float *b, int64_t n) { return dot(a, b, n); }

void ot_rows_transpose(float *dst, const float *src, int64_t rows, int64_t columns,
                       int64_t dst_stride, int64_t src_stride)
{
    for (int64_t r0 = 0; r0 < rows; r0 += 16)
        for (int64_t k = 0; k < columns; k++)
            for (int64_t r = r0; r < ot_min(rows, r0 + 16); r++)
                dst[k * dst_stride + r] = src[r * src_stride + k];
}
