/* The loops of Winograd convolutions over vectors of one width. Included by the file of each
 * instruction set, which defines
 *   LANES            floats of a vector: the block b
 *   TARGET           attribute of functions, or nothing
 *   MADD(a, b, c)    a b + c          SPREAD(p)  *p in all lanes
 *   LARGER(a, b), SMALLER(a, b)       b where either is no number
 *   ROWS_OF_TWO      tiles of a register block with two vectors of output channels: 2 ROWS_OF_TWO
 *                    accumulators
 *   CODE, NAME       the table, and its name in words
 *
 * Transforms of m outputs use the points 0, +-a, +-c, ... and infinity; a row of B' is a product
 * of (x - point) over the other points, so that rows of +-a share their even and odd parts. The
 * scales of winograd_points (winograd.c) go with them.
 *
 *   input: columns first (adjacent tiles share two)   output: columns first, too
 *     d0 d1 d2 d3 d4 d5 | d4 d5 ...                     m00..m05       s00..s05      y00..y03
 *     each column --B'--> 6 numbers, in `columns`          ...   -A'->    ...   -A->   ...
 *     each tile: 6 rows of these --B--> V               m50..m55       s30..s35      y30..y33
 */
#include "winograd_lanes.h"

typedef float vec __attribute__((vector_size(4 * LANES), may_alias));
/* of the caller's arrays */
typedef float vec_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(4 * LANES), may_alias));

#define ROWS_MAX 12 /* tiles of a register block with one vector of output channels */
#define INLINE   static inline __attribute__((always_inline)) TARGET

/* ---- one dimension ---- */

#define ALL(x) ((vec){0} + (float)(x))

/* The row of +point and of -point: even + point odd, even - point odd, where (x - other points)
 * is x^4 - sum x^2 + product. */
#define ROWS_OF_FOUR(t, point, other)                                                      \
    do {                                                                                   \
        vec even = MADD(ALL(-(other)), d[2], d[4]), odd = MADD(ALL(-(other)), d[1], d[3]); \
        (t)[0] = MADD(ALL(point), odd, even);                                              \
        (t)[1] = MADD(ALL(-(point)), odd, even);                                           \
    } while (0)
#define ROWS_OF_SIX(t, point, sum, product)                                 \
    do {                                                                    \
        vec even = MADD(ALL(product), d[2], MADD(ALL(-(sum)), d[4], d[6])); \
        vec odd = MADD(ALL(product), d[1], MADD(ALL(-(sum)), d[3], d[5]));  \
        (t)[0] = MADD(ALL(point), odd, even);                               \
        (t)[1] = MADD(ALL(-(point)), odd, even);                            \
    } while (0)

INLINE void input_line(const int m, const vec *d, vec *t)
{
    if (m == 2) {
        t[0] = d[2] - d[0];
        t[1] = d[1] + d[2];
        t[2] = d[2] - d[1];
        t[3] = d[3] - d[1];
    } else if (m == 4) { /* x^4 - 2.5 x^2 + 1 */
        t[0] = MADD(ALL(-2.5), d[2], d[0] + d[4]);
        ROWS_OF_FOUR(t + 1, OT_WINO_ROOT_HALF, 2);
        ROWS_OF_FOUR(t + 3, 2 * OT_WINO_ROOT_HALF, 0.5);
        t[5] = MADD(ALL(-2.5), d[3], d[1] + d[5]);
    } else { /* x^6 - 5.25 x^4 + 5.25 x^2 - 1 */
        t[0] = MADD(ALL(5.25), d[2] - d[4], d[6] - d[0]);
        ROWS_OF_SIX(t + 1, 0.5, 5, 4);
        ROWS_OF_SIX(t + 3, 1, 4.25, 1);
        ROWS_OF_SIX(t + 5, 2, 1.25, 0.25);
        t[7] = MADD(ALL(5.25), d[3] - d[5], d[7] - d[1]);
    }
}

INLINE void output_line(const int m, const vec *t, vec *y)
{
    if (m == 2) {
        y[0] = t[0] + t[1] + t[2];
        y[1] = t[1] - t[2] + t[3];
        return;
    }
    vec even_a = t[1] + t[2], odd_a = t[1] - t[2], even_b = t[3] + t[4], odd_b = t[3] - t[4];
    if (m == 4) {
        const vec a = ALL(OT_WINO_ROOT_HALF), b = ALL(2 * OT_WINO_ROOT_HALF);
        y[0] = MADD(b, even_a, MADD(a, even_b, t[0])); /* 1 / a is b */
        y[1] = odd_a + odd_b;
        y[2] = MADD(a, even_a, b * even_b);
        y[3] = MADD(ALL(0.5), odd_a, MADD(ALL(2), odd_b, t[5]));
    } else {
        vec even_c = t[5] + t[6], odd_c = t[5] - t[6];
        y[0] = MADD(ALL(2), even_a, MADD(ALL(0.5), even_c, even_b + t[0]));
        y[1] = odd_a + odd_b + odd_c;
        y[2] = MADD(ALL(0.5), even_a, MADD(ALL(2), even_c, even_b));
        y[3] = MADD(ALL(0.25), odd_a, MADD(ALL(4), odd_c, odd_b));
        y[4] = MADD(ALL(0.125), even_a, MADD(ALL(8), even_c, even_b));
        y[5] = MADD(ALL(0.0625), odd_a, MADD(ALL(16), odd_c, odd_b)) + t[7];
    }
}

/* The row of G of +point and of -point; n: the product of (point - x) over the other points x. */
#define WEIGHTS_OF_TWO(t, point, n)                                               \
    do {                                                                          \
        vec even = MADD(ALL((point) * (point) / (n)), w[2], ALL(1 / (n)) * w[0]); \
        (t)[0] = MADD(ALL((point) / (n)), w[1], even);                            \
        (t)[1] = MADD(ALL(-(point) / (n)), w[1], even);                           \
    } while (0)

/* See transform_rows (winograd.c). */
INLINE void weights_line(const int m, const vec *w, vec *t)
{
    t[0] = m == 4 ? w[0] : -w[0];
    t[m + 1] = w[2];
    if (m == 2) {
        WEIGHTS_OF_TWO(t + 1, 1.0, 2.0);
    } else if (m == 4) {
        WEIGHTS_OF_TWO(t + 1, OT_WINO_ROOT_HALF, -3 * OT_WINO_ROOT_HALF);
        WEIGHTS_OF_TWO(t + 3, 2 * OT_WINO_ROOT_HALF, 6 * OT_WINO_ROOT_HALF);
    } else {
        WEIGHTS_OF_TWO(t + 1, 0.5, 2.8125);
        WEIGHTS_OF_TWO(t + 3, 1.0, -4.5);
        WEIGHTS_OF_TWO(t + 5, 2.0, 45.0);
    }
}

/* Runs copy what describes them: a vector that is stored could be part of another's memory, as
 * far as a compiler knows. */

/* ---- input ---- */

/* Column x of the run: from m + 2 rows to m + 2 numbers. steps: floats between columns of each
 * row, or NULL: LANES. */
INLINE void input_column(const int m, const float *const *rows, const int64_t *steps, int64_t x,
                         vec *to)
{
    vec d[8], t[8];
    for (int i = 0; i < m + 2; i++)
        d[i] = *(const vec_any *)(rows[i] + x * (steps ? steps[i] : LANES));
    input_line(m, d, t);
    for (int i = 0; i < m + 2; i++) to[i] = t[i];
}

/* dense: columns lie one after another. */
INLINE void input_run(const int m, const bool dense, const ot_wino_input *r)
{
    static const float nothing[(6 * OT_WINO_RUN + 2) * LANES];
    const float *rows[8];
    int64_t steps[8], n = m * r->tiles + 2, from = ot_min(ot_max(-r->col, 0), n),
                      to = ot_max(ot_min(r->in_w - r->col, n), from);
    for (int i = 0; i < m + 2; i++) {
        bool inside = r->row + i >= 0 && r->row + i < r->in_h;
        rows[i] = inside ? r->src + (r->row + i) * r->row_stride + (r->col + from) * r->pixel_stride
                         : nothing;
        steps[i] = inside ? r->pixel_stride : 0;
    }
    vec *column = (vec *)r->columns;
    for (int64_t k = 0; k < from * (m + 2); k++) column[k] = (vec){0};
    for (int64_t x = from; x < to; x++)
        input_column(m, rows, dense ? NULL : steps, x - from, column + x * (m + 2));
    for (int64_t k = to * (m + 2); k < n * (m + 2); k++) column[k] = (vec){0};

    for (int64_t t = 0; t < r->tiles; t++, column += m * (m + 2)) {
        float *v = r->v + t * LANES;
        for (int i = 0; i < m + 2; i++) {
            vec d[8], o[8];
            for (int j = 0; j < m + 2; j++) d[j] = column[j * (m + 2) + i];
            input_line(m, d, o);
            for (int j = 0; j < m + 2; j++, v += r->pos_stride) *(vec *)v = o[j];
        }
    }
}

TARGET static void input_2(const ot_wino_input *r)
{
    const ot_wino_input own = *r;
    if (own.pixel_stride == LANES)
        input_run(2, true, &own);
    else
        input_run(2, false, &own);
}

TARGET static void input_4(const ot_wino_input *r)
{
    const ot_wino_input own = *r;
    if (own.pixel_stride == LANES)
        input_run(4, true, &own);
    else
        input_run(4, false, &own);
}

TARGET static void input_6(const ot_wino_input *r)
{
    const ot_wino_input own = *r;
    if (own.pixel_stride == LANES)
        input_run(6, true, &own);
    else
        input_run(6, false, &own);
}

/* ---- output ---- */

/* y = act(y + bias + residual) for `cols` vectors of a row. */
INLINE void finish_row(const ot_wino_output *r, vec *y, const float *residual, int64_t cols)
{
    const vec zero = {0}, bias = *(const vec *)r->bias, alpha = r->alpha + zero,
              beta = r->beta + zero;
    for (int64_t j = 0; j < cols; j++) y[j] += bias;
    if (residual)
        for (int64_t j = 0; j < cols; j++)
            y[j] += *(const vec_any *)(residual + j * r->pixel_stride);
    if (r->act == OT_WINO_RELU)
        for (int64_t j = 0; j < cols; j++) y[j] = LARGER(zero, y[j]);
    else if (r->act == OT_WINO_CLIP)
        for (int64_t j = 0; j < cols; j++) y[j] = SMALLER(beta, LARGER(alpha, y[j]));
    else if (r->act == OT_WINO_LEAKY)
        for (int64_t j = 0; j < cols; j++)
            y[j] = MADD(alpha, SMALLER(zero, y[j]), LARGER(zero, y[j]));
    if (r->mask)
        for (int64_t j = 0; j < cols; j++) y[j] = (vec)((bits)y[j] & *(const bits *)r->mask);
}

INLINE void output_tile(const int m, const ot_wino_output *r, const float *from, int64_t x,
                        int64_t rows, int64_t cols)
{
    vec s[6][8];
    for (int j = 0; j < m + 2; j++) {
        vec t[8], y[6];
        for (int i = 0; i < m + 2; i++)
            t[i] = *(const vec *)(from + (i * (m + 2) + j) * r->pos_stride);
        output_line(m, t, y);
        for (int i = 0; i < m; i++) s[i][j] = y[i];
    }
    for (int64_t i = 0; i < rows; i++) {
        vec y[6];
        int64_t at = i * r->row_stride + x * r->pixel_stride;
        output_line(m, s[i], y);
        finish_row(r, y, r->residual ? r->residual + at : NULL, cols);
        for (int64_t j = 0; j < cols; j++) *(vec_any *)(r->dst + at + j * r->pixel_stride) = y[j];
    }
}

INLINE void output_run(const int m, const ot_wino_output *r)
{
    int64_t whole = r->rows >= m ? ot_min(r->cols / m, r->tiles) : 0;
    for (int64_t t = 0; t < whole; t++) output_tile(m, r, r->m + t * LANES, t * m, m, m);
    for (int64_t t = whole; t < r->tiles; t++)
        output_tile(m, r, r->m + t * LANES, t * m, ot_min(r->rows, m), ot_min(r->cols - t * m, m));
}

TARGET static void output_2(const ot_wino_output *r)
{
    const ot_wino_output own = *r;
    output_run(2, &own);
}

TARGET static void output_4(const ot_wino_output *r)
{
    const ot_wino_output own = *r;
    output_run(4, &own);
}

TARGET static void output_6(const ot_wino_output *r)
{
    const ot_wino_output own = *r;
    output_run(6, &own);
}

/* ---- weights ---- */

INLINE void weights_run(const int m, const ot_wino_weights *r)
{
    int64_t wide = r->k_blocks * LANES;
    for (int64_t c = 0; c < r->channels; c++)
        for (int64_t k = 0; k < wide; k += LANES) {
            const float *w = r->w + c * 9 * wide + k;
            float *u = r->u + c * wide + k;
            vec s[8][3];
            for (int j = 0; j < 3; j++) {
                vec d[3], t[8];
                for (int i = 0; i < 3; i++) d[i] = *(const vec *)(w + (3 * i + j) * wide);
                weights_line(m, d, t);
                for (int i = 0; i < m + 2; i++) s[i][j] = t[i];
            }
            for (int i = 0; i < m + 2; i++) {
                vec t[8];
                weights_line(m, s[i], t);
                for (int j = 0; j < m + 2; j++, u += r->pos_stride) *(vec *)u = t[j];
            }
        }
}

TARGET static void weights_2(const ot_wino_weights *r)
{
    const ot_wino_weights own = *r;
    weights_run(2, &own);
}

TARGET static void weights_4(const ot_wino_weights *r)
{
    const ot_wino_weights own = *r;
    weights_run(4, &own);
}

TARGET static void weights_6(const ot_wino_weights *r)
{
    const ot_wino_weights own = *r;
    weights_run(6, &own);
}

/* ---- product ---- */

/* `rows` tiles by `k` vectors of output channels: named sums, as compilers keep arrays of
 * vectors in memory. */
#define EACH_ROW(X)  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define ROW_CLEAR(i) vec a##i = {0}, b##i = {0};
#define ROW_LOAD(i)                                                \
    if (i < rows) {                                                \
        a##i = *(const vec *)(to + i * LANES);                     \
        if (k > 1) b##i = *(const vec *)(to + stride + i * LANES); \
    }
#define ROW_STEP(i)                          \
    if (i < rows) {                          \
        vec x = SPREAD(v + c + i * LANES);   \
        a##i = MADD(x, w0, a##i);            \
        if (k > 1) b##i = MADD(x, w1, b##i); \
    }
#define ROW_STORE(i)                                                  \
    if (i < rows) {                                                   \
        *(vec *)(to + i * LANES) = a##i;                              \
        if (k > 1) *(vec *)(to + p->block_stride + i * LANES) = b##i; \
    }

INLINE void product_block(const int rows, const int k, const ot_wino_product *p, const float *u,
                          const float *v, float *to)
{
    EACH_ROW(ROW_CLEAR)
    int64_t stride = p->block_stride;
    if (p->add) { EACH_ROW(ROW_LOAD) }
    for (int64_t left = p->channels; left > 0; left -= LANES, v += stride) {
        int64_t n = ot_min(left, LANES);
        for (int64_t c = 0; c < n; c++, u += k * LANES) {
            vec w0 = *(const vec *)u, w1 = k > 1 ? *(const vec *)(u + LANES) : w0;
            EACH_ROW(ROW_STEP)
        }
    }
    EACH_ROW(ROW_STORE)
}

#define PRODUCT(rows, k)                                                              \
    TARGET static void product_##rows##_##k(const ot_wino_product *p, const float *u, \
                                            const float *v, float *to)                \
    {                                                                                 \
        product_block(rows, k, p, u, v, to);                                          \
    }
/* clang-format off */
PRODUCT(1, 1) PRODUCT(2, 1) PRODUCT(3, 1) PRODUCT(4, 1) PRODUCT(5, 1) PRODUCT(6, 1)
PRODUCT(7, 1) PRODUCT(8, 1) PRODUCT(9, 1) PRODUCT(10, 1) PRODUCT(11, 1) PRODUCT(12, 1)
PRODUCT(1, 2) PRODUCT(2, 2) PRODUCT(3, 2) PRODUCT(4, 2) PRODUCT(5, 2) PRODUCT(6, 2)
#if ROWS_OF_TWO > 6
PRODUCT(7, 2) PRODUCT(8, 2) PRODUCT(9, 2) PRODUCT(10, 2) PRODUCT(11, 2) PRODUCT(12, 2)
#endif
    /* clang-format on */

    typedef void (*product_fn)(const ot_wino_product *p, const float *u, const float *v, float *to);

static const product_fn products_1[] = {product_1_1, product_2_1,  product_3_1,  product_4_1,
                                        product_5_1, product_6_1,  product_7_1,  product_8_1,
                                        product_9_1, product_10_1, product_11_1, product_12_1};
static const product_fn products_2[] = {product_1_2,  product_2_2, product_3_2, product_4_2,
                                        product_5_2,  product_6_2,
#if ROWS_OF_TWO > 6
                                        product_7_2,  product_8_2, product_9_2, product_10_2,
                                        product_11_2, product_12_2
#endif
};

/* Tiles are shared out evenly among as few register blocks as hold them: 16 are 6 + 5 + 5. */
static void product(const ot_wino_product *p)
{
    const float *u = p->u;
    for (int64_t kb = 0, k; kb < p->k_blocks; kb += k) {
        k = ot_min(2, p->k_blocks - kb);
        int64_t most = k == 2 ? ROWS_OF_TWO : ROWS_MAX, parts = (p->tiles + most - 1) / most;
        int64_t rows = p->tiles / parts, longer = p->tiles % parts;
        const product_fn *fn = k == 2 ? products_2 : products_1;
        for (int64_t part = 0, t = 0, n; part < parts; part++, t += n) {
            n = rows + (part < longer);
            fn[n - 1](p, u, p->v + t * LANES, p->m + kb * p->block_stride + t * LANES);
        }
        u += p->channels * k * LANES;
    }
}

const ot_wino_code CODE = {
    .name = NAME,
    .block = LANES,
    .input = {input_2, input_4, input_6},
    .output = {output_2, output_4, output_6},
    .weights = {weights_2, weights_4, weights_6},
    .product = product,
};
