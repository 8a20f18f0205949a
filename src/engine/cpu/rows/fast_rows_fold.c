/* Folds of rows. Sums are taken in vector lanes over blocks of OT_ROWS_BLOCK elements, blocks in
 * double; the product in double. */
#include "fast_rows_fold.h"

#include <math.h>

double ot_fold_start(ot_fold f)
{
    switch (f) {
    case OT_FOLD_PRODUCT: return 1;
    case OT_FOLD_MOST: return -(double)INFINITY;
    case OT_FOLD_LEAST: return (double)INFINITY;
    default: return 0;
    }
}

double ot_fold_join(ot_fold f, double a, double b)
{
    switch (f) {
    case OT_FOLD_PRODUCT: return a * b;
    case OT_FOLD_MOST: return b > a || isnan(b) ? b : a;
    case OT_FOLD_LEAST: return b < a || isnan(b) ? b : a;
    default: return a + b;
    }
}

/* ---- rows ---- */

#define SUM_ROW(name, term)                                                        \
    OT_CLONES static double name(const float *row, int64_t n, float shift)         \
    {                                                                              \
        double total = 0;                                                          \
        (void)shift;                                                               \
        for (int64_t at = 0; at < n; at += OT_ROWS_BLOCK) {                        \
            int64_t m = ot_min(OT_ROWS_BLOCK, n - at);                             \
            const float *from = row + at;                                          \
            float sum = 0;                                                         \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < m; i++) \
            {                                                                      \
                float x = from[i];                                                 \
                sum += term;                                                       \
            }                                                                      \
            total += (double)sum;                                                  \
        }                                                                          \
        return total;                                                              \
    }

SUM_ROW(sum_row, x)
SUM_ROW(abs_row, fabsf(x))
SUM_ROW(square_row, x *x)
SUM_ROW(exp_row, ot_rows_exp(x - shift))
#undef SUM_ROW

OT_CLONES static double product_row(const float *x, int64_t n)
{
    double p = 1;
#pragma omp simd reduction(* : p)
    for (int64_t i = 0; i < n; i++) p *= (double)x[i];
    return p;
}

OT_CLONES static double most_row(const float *x, int64_t n)
{
    float most = -INFINITY;
    int nans = 0;
#pragma omp simd reduction(max : most) reduction(| : nans)
    for (int64_t i = 0; i < n; i++) {
        most = x[i] > most ? x[i] : most;
        nans |= x[i] != x[i];
    }
    return nans ? (double)NAN : (double)most;
}

OT_CLONES static double least_row(const float *x, int64_t n)
{
    float least = INFINITY;
    int nans = 0;
#pragma omp simd reduction(min : least) reduction(| : nans)
    for (int64_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        nans |= x[i] != x[i];
    }
    return nans ? (double)NAN : (double)least;
}

double ot_fold_row(ot_fold f, const float *x, int64_t n, float shift)
{
    switch (f) {
    case OT_FOLD_ABS: return abs_row(x, n, 0);
    case OT_FOLD_SQUARE: return square_row(x, n, 0);
    case OT_FOLD_PRODUCT: return product_row(x, n);
    case OT_FOLD_MOST: return most_row(x, n);
    case OT_FOLD_LEAST: return least_row(x, n);
    case OT_FOLD_EXP: return exp_row(x, n, shift);
    default: return sum_row(x, n, 0);
    }
}

/* ---- columns ---- */

#define COLUMNS(name, result)                                                               \
    OT_CLONES static void name(float *acc, const float *row, int64_t w, const float *shift) \
    {                                                                                       \
        (void)shift;                                                                        \
        _Pragma("omp simd") for (int64_t i = 0; i < w; i++)                                 \
        {                                                                                   \
            float x = row[i], a = acc[i];                                                   \
            acc[i] = result;                                                                \
        }                                                                                   \
    }

COLUMNS(sum_columns, a + x)
COLUMNS(abs_columns, a + fabsf(x))
COLUMNS(square_columns, a + x * x)
COLUMNS(product_columns, a *x)
COLUMNS(most_columns, ((x > a) | (x != x)) ? x : a)
COLUMNS(least_columns, ((x < a) | (x != x)) ? x : a)
COLUMNS(exp_columns, a + ot_rows_exp(x - shift[i]))
#undef COLUMNS

void ot_fold_columns(ot_fold f, float *acc, const float *x, int64_t w, const float *shift)
{
    switch (f) {
    case OT_FOLD_ABS: abs_columns(acc, x, w, NULL); break;
    case OT_FOLD_SQUARE: square_columns(acc, x, w, NULL); break;
    case OT_FOLD_PRODUCT: product_columns(acc, x, w, NULL); break;
    case OT_FOLD_MOST: most_columns(acc, x, w, NULL); break;
    case OT_FOLD_LEAST: least_columns(acc, x, w, NULL); break;
    case OT_FOLD_EXP: exp_columns(acc, x, w, shift); break;
    default: sum_columns(acc, x, w, NULL); break;
    }
}
