/* The loops of grouped convolutions over vectors of one width. Included by the file of each
 * instruction set, which defines
 *   LANES            floats of a vector: the block b
 *   TARGET           attribute of functions, or nothing
 *   MADD(a, b, c)    a b + c
 *   PICKED(p, pick)  p[pick[l]] in lane l, of LANES floats at p; else plain C
 *   LARGER(a, b), SMALLER(a, b)   b where either is no number
 *   LONGEST          pixels of the longest run: so many accumulators
 *   CODE             the table
 *
 * Where a kernel has three columns a picked pixel goes to all sums that it belongs to:
 *
 *   columns   0   1   2   3   4   5      of one term, one row of the kernel
 *   sums      0  01  012 123 23   3      stride 1; weights of the three columns in registers
 */
#include "grouped_lanes.h"

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
/* of the caller's arrays */
typedef float vec_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(4 * LANES), may_alias));
typedef uint32_t bits_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline)) TARGET

/* Vectors are not returned: that would depend on the instruction set. */
#ifndef PICKED
INLINE void gather(vec *v, const float *p, const bits *pick)
{
    for (int l = 0; l < LANES; l++) (*v)[l] = p[(*pick)[l]];
}
#define TAKE(v, p, pick) gather(&(v), p, &(pick))
#else
#define TAKE(v, p, pick) ((v) = PICKED(p, pick))
#endif

/* One term of one row of a kernel of `columns` columns; `stride` and they are known. */
INLINE void add_known(const int pixels, const int columns, const int stride, const float *x,
                      const float *w, const ot_grouped_term *t, bool partial, vec *sum)
{
    const bits pick = *(const bits_any *)t->pick, mask = *(const bits_any *)t->mask;
    vec weight[3];
#pragma GCC unroll 3
    for (int k = 0; k < columns; k++) weight[k] = *(const vec_any *)(w + k * LANES);
#pragma GCC unroll 40
    for (int c = 0; c < (pixels - 1) * stride + columns; c++) {
        vec v;
        TAKE(v, x + c * LANES, pick);
        if (partial) v = (vec)((bits)v & mask);
#pragma GCC unroll 3
        for (int k = 0; k < columns; k++)
            if (c >= k && (c - k) % stride == 0 && (c - k) / stride < pixels)
                sum[(c - k) / stride] = MADD(v, weight[k], sum[(c - k) / stride]);
    }
}

INLINE void add_any(const int pixels, const ot_grouped_run *r, const float *x, const float *w,
                    const ot_grouped_term *t, vec *sum)
{
    const bits pick = *(const bits_any *)t->pick, mask = *(const bits_any *)t->mask;
    for (int64_t k = 0; k < r->columns; k++, x += r->dilation * LANES) {
        const vec weight = *(const vec_any *)(w + k * LANES);
#pragma GCC unroll 16
        for (int p = 0; p < pixels; p++) {
            vec v;
            TAKE(v, x + p * r->stride * LANES, pick);
            sum[p] = MADD((vec)((bits)v & mask), weight, sum[p]);
        }
    }
}

INLINE void activate(const ot_grouped_run *r, vec *y)
{
    const vec none = {0};
    if (r->act == OT_WINO_RELU) *y = LARGER(none, *y);
    if (r->act == OT_WINO_CLIP) *y = SMALLER(none + r->beta, LARGER(none + r->alpha, *y));
    if (r->act == OT_WINO_LEAKY) *y = MADD(none + r->alpha, SMALLER(none, *y), LARGER(none, *y));
}

/* columns 0: any kernel. */
INLINE void run_of(const int pixels, const int columns, const int stride, const ot_grouped_run *r)
{
    vec sum[LONGEST];
    const float *w = r->weights;
#pragma GCC unroll 16
    for (int p = 0; p < pixels; p++) sum[p] = *(const vec_any *)r->bias;
    for (int64_t row = 0; row < r->n_rows; row++)
        for (int64_t k = 0; k < r->n_terms; k++, w += r->columns * LANES) {
            const ot_grouped_term *t = &r->terms[k];
            const float *x = r->rows[row * r->blocks + t->block];
            if (columns == 0)
                add_any(pixels, r, x, w, t, sum);
            else if (t->is_partial)
                add_known(pixels, columns, stride, x, w, t, true, sum);
            else
                add_known(pixels, columns, stride, x, w, t, false, sum);
        }
    const bits mask = *(const bits_any *)r->mask;
#pragma GCC unroll 16
    for (int p = 0; p < pixels; p++) {
        if (p >= r->n) break;
        vec y = sum[p];
        if (r->residual) y += *(const vec_any *)(r->residual + p * LANES);
        activate(r, &y);
        *(vec_any *)(r->dst + p * LANES) = (vec)((bits)y & mask);
    }
}

#define RUN(pixels)                                          \
    static TARGET void run_##pixels(const ot_grouped_run *r) \
    {                                                        \
        if (r->columns != 3 || r->dilation != 1)             \
            run_of(pixels, 0, 0, r);                         \
        else if (r->stride == 1)                             \
            run_of(pixels, 3, 1, r);                         \
        else if (r->stride == 2)                             \
            run_of(pixels, 3, 2, r);                         \
        else                                                 \
            run_of(pixels, 0, 0, r);                         \
    }
/* clang-format off */
RUN(4) RUN(8)
#if LONGEST > 8
RUN(16)
#endif

    /* clang-format on */
    static int64_t computed(int64_t n)
{
    return n <= 4 ? 4 : n <= 8 ? 8 : LONGEST;
}

static void run(const ot_grouped_run *r)
{
    if (r->n <= 4)
        run_4(r);
    else if (r->n <= 8)
        run_8(r);
#if LONGEST > 8
    else
        run_16(r);
#endif
}

const ot_grouped_code CODE = {.block = LANES, .longest = LONGEST, .computed = computed, .run = run};
