/* Products with a packed right operand.
 *
 *         n                 panels of B   A, OT_ROWS rows at a time
 *      +-----+             +--+--+--+
 *    k |  B  |  packed:  k |16|16|16|    micro-kernel: 6 rows of A against one panel, 12 vectors of
 *                                        sums;
 *      +-----+             +--+--+--+    per step of k two loads of the panel, six broadcasts of A
 *
 *   for blocks of k (a panel's part stays in L1)
 *       for blocks of m (A's part, copied so that six rows lie together, stays in L2)
 *           for panels
 *               for six rows: micro-kernel, then C = alpha * sums, or C += them
 */
#include "rows.h"

enum {
    MR = 6,
    KC = 320,
    MC = 96,
    COPY_FROM = 9 /* panels that make a copy of A's rows worth its while */
};

typedef float v8 __attribute__((vector_size(32)));
typedef float v8u __attribute__((vector_size(32), aligned(4), may_alias));

bool ot_panels_pay(void)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(OT_ONE_ISA)
    return __builtin_cpu_supports("avx2") && ot_simd_block() == 8;
#else
    return false;
#endif
}

int64_t ot_panels_size(int64_t k, int64_t n)
{
    int64_t whole, size;
    if (!ot_add_i64(n, OT_PANEL - 1, &whole)) return -1;
    return ot_mul_i64(whole / OT_PANEL * OT_PANEL, k, &size) ? size : -1;
}

/* One panel: w <= 16 columns. */
static void pack_one(float *to, const float *b, int64_t k, int64_t w, int64_t row_step,
                     int64_t column_step)
{
    if (w < OT_PANEL) memset(to, 0, (size_t)k * OT_PANEL * sizeof *to);
    if (column_step == 1 && w == OT_PANEL) {
        for (int64_t i = 0; i < k; i++)
            memcpy(to + i * OT_PANEL, b + i * row_step, OT_PANEL * sizeof *to);
    } else if (row_step == 1) {
        for (int64_t i0 = 0; i0 < k; i0 += 16)
            for (int64_t j = 0; j < w; j++)
                for (int64_t i = i0; i < ot_min(k, i0 + 16); i++)
                    to[i * OT_PANEL + j] = b[j * column_step + i];
    } else {
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < w; j++)
                to[i * OT_PANEL + j] = b[i * row_step + j * column_step];
    }
}

void ot_panels_pack(float *to, const float *b, const ot_matrix_layout *m, int64_t first,
                    int64_t end)
{
    for (int64_t p = first; p < end; p++) {
        int64_t j = p * OT_PANEL;
        pack_one(to + j * m->k, b + j * m->column_step, m->k, ot_min(OT_PANEL, m->n - j),
                 m->row_step, m->column_step);
    }
}

/* Rows of A, six together: to[i / 6][k][i % 6]; m is a multiple of six. */
static void pack_rows(float *to, const float *a, int64_t lda, int64_t m, int64_t k)
{
    for (int64_t i = 0; i < m; i += MR, to += MR * k)
        for (int64_t p = 0; p < k; p++)
            for (int64_t u = 0; u < MR; u++) to[p * MR + u] = a[(i + u) * lda + p];
}

typedef struct tile {
    const float *a, *b; /* element (row, p) of A is a[row * row_step + p * k_step]; b is [k][16] */
    float *c;
    int64_t k, row_step, k_step, ldc, n; /* n: columns that are stored */
    float alpha;
    bool add;
} tile;

static inline void store_row(const tile *t, int64_t row, v8 *sums)
{
    float *c = t->c + row * t->ldc;
    sums[0] *= t->alpha;
    sums[1] *= t->alpha;
    if (t->n == OT_PANEL) {
        v8u *to = (v8u *)c;
        if (t->add) sums[0] += to[0], sums[1] += to[1];
        to[0] = sums[0];
        to[1] = sums[1];
        return;
    }
    float v[OT_PANEL];
    memcpy(v, sums, sizeof v);
    for (int64_t j = 0; j < t->n; j++) c[j] = t->add ? c[j] + v[j] : v[j];
}

/* `height` rows; a constant, so that all sums are registers and what is beyond the height vanishes.
 */
static inline __attribute__((always_inline)) void multiply(const tile *t, int height)
{
    v8 s0[2] = {0}, s1[2] = {0}, s2[2] = {0}, s3[2] = {0}, s4[2] = {0}, s5[2] = {0};
    const int64_t r = t->row_step;
    const float *a = t->a, *a3 = a + 3 * r, *b = t->b;
    for (int64_t p = 0; p < t->k; p++, a += t->k_step, a3 += t->k_step, b += OT_PANEL) {
        const v8 lo = *(const v8u *)b, hi = *(const v8u *)(b + 8);
        s0[0] += a[0] * lo, s0[1] += a[0] * hi;
        if (height > 1) s1[0] += a[r] * lo, s1[1] += a[r] * hi;
        if (height > 2) s2[0] += a[2 * r] * lo, s2[1] += a[2 * r] * hi;
        if (height > 3) s3[0] += a3[0] * lo, s3[1] += a3[0] * hi;
        if (height > 4) s4[0] += a3[r] * lo, s4[1] += a3[r] * hi;
        if (height > 5) s5[0] += a3[2 * r] * lo, s5[1] += a3[2 * r] * hi;
    }
    store_row(t, 0, s0);
    if (height > 1) store_row(t, 1, s1);
    if (height > 2) store_row(t, 2, s2);
    if (height > 3) store_row(t, 3, s3);
    if (height > 4) store_row(t, 4, s4);
    if (height > 5) store_row(t, 5, s5);
}

OT_CLONES static void multiply_tile(const tile *t, int64_t height)
{
    OT_BY_HEIGHT(multiply, t, height);
}

/* The same for six rows that lie together. */
OT_CLONES static void multiply_packed(const tile *t)
{
    tile u = *t;
    u.row_step = 1;
    u.k_step = MR;
    multiply(&u, MR);
}

/* Rows [0, m) of A in tiles of equal height against one panel. */
static void multiply_rows(tile *t, const float *a, float *c, int64_t lda, int64_t m)
{
    int64_t tiles = (m + MR - 1) / MR;
    t->row_step = lda;
    t->k_step = 1;
    for (int64_t u = 0; u < tiles; u++) {
        int64_t first = m * u / tiles;
        t->a = a + first * lda;
        t->c = c + first * t->ldc;
        multiply_tile(t, m * (u + 1) / tiles - first);
    }
}

/* Whole tiles from the copy of A, the rest from A itself. */
static void multiply_copied(tile *t, const float *rows, const float *a, float *c, int64_t lda,
                            int64_t m)
{
    int64_t whole = m / MR * MR;
    for (int64_t u = 0; u < whole; u += MR) {
        t->a = rows + u * t->k;
        t->c = c + u * t->ldc;
        multiply_packed(t);
    }
    if (whole < m) multiply_rows(t, a + whole * lda, c + whole * t->ldc, lda, m - whole);
}

void ot_panels_product(const ot_panels_job *j, int64_t first, int64_t end)
{
    _Alignas(64) float rows[MC * KC];
    bool copy = end - first >= COPY_FROM && j->m >= 2 * MR;
    for (int64_t p = 0; p < j->k; p += KC) {
        int64_t kc = ot_min(KC, j->k - p);
        for (int64_t i = 0; i < j->m; i += MC) {
            int64_t mc = ot_min(MC, j->m - i);
            const float *a = j->a + i * j->lda + p;
            if (copy) pack_rows(rows, a, j->lda, mc / MR * MR, kc);
            for (int64_t q = first; q < end; q++) {
                tile t = {.b = j->panels + q * OT_PANEL * j->k + p * OT_PANEL,
                          .k = kc,
                          .ldc = j->ldc,
                          .alpha = j->alpha};
                float *c = j->c + i * j->ldc + q * OT_PANEL;
                t.n = ot_min(OT_PANEL, j->n - q * OT_PANEL);
                t.add = j->add || p > 0;
                if (copy)
                    multiply_copied(&t, rows, a, c, j->lda, mc);
                else
                    multiply_rows(&t, a, c, j->lda, mc);
            }
        }
    }
}

/* ---- a vector ---- */

typedef float v16 __attribute__((vector_size(64)));
typedef float v16u __attribute__((vector_size(64), aligned(4), may_alias));

/* c [16 * count] += a * panels; count from 1 to 4, known to the compiler. */
static inline __attribute__((always_inline)) void add_vector(const float *a, const float *panels,
                                                             float *c, int64_t k, int count)
{
    const int64_t step = k * OT_PANEL;
    const float *b = panels;
    v16 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int64_t p = 0; p < k; p++, b += OT_PANEL) {
        s0 += a[p] * *(const v16u *)b;
        if (count > 1) s1 += a[p] * *(const v16u *)(b + step);
        if (count > 2) s2 += a[p] * *(const v16u *)(b + 2 * step);
        if (count > 3) s3 += a[p] * *(const v16u *)(b + 3 * step);
    }
    v16u *to = (v16u *)c;
    to[0] += s0;
    if (count > 1) to[1] += s1;
    if (count > 2) to[2] += s2;
    if (count > 3) to[3] += s3;
}

OT_CLONES void ot_panels_add_vector(const float *a, const float *panels, float *c, int64_t n,
                                    int64_t k)
{
    int64_t j = 0;
    for (; j + 4 * OT_PANEL <= n; j += 4 * OT_PANEL) add_vector(a, panels + j * k, c + j, k, 4);
    for (; j + OT_PANEL <= n; j += OT_PANEL) add_vector(a, panels + j * k, c + j, k, 1);
    if (j == n) return;
    float rest[OT_PANEL] = {0};
    add_vector(a, panels + j * k, rest, k, 1);
    for (int64_t i = 0; j + i < n; i++) c[j + i] += rest[i];
}
