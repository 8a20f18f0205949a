/* The implementation of attention.h.
 *
 *   scratch  Q' [panels][size][16]  Y' [panels][v_size][16]
 *            largest, sums [panels][16]                          of the block
 *            K  [chunk / 6][size][6]  V  [v_size / 6][chunk][6]  of the chunk, for all panels
 *            scores [chunk][16]  mask [chunk][16]                of one panel
 *
 *   for chunks of keys
 *       K and V copied so that six rows of their products lie together
 *       for panels of queries
 *           scores = scale * K Q' + mask        micro-kernel: six keys and 16 queries in registers
 *           largest, factor of what there is, exp, sums
 *           Y' = Y' * factor + V' scores        the same with six columns of V
 *
 * With AVX-512 twelve keys, or columns of V, in registers: two groups of six.
 */
#include "attention.h"

#include <math.h>

#include "engine/core/half.h"
#include "engine/core/simd.h"
#include "engine/cpu/move/box_leaf.h"
#include "engine/cpu/rows/rows.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_AVX512 1
#endif

enum {
    WIDE = OT_ATTENTION_PANEL,
    MR = 6,
    CHUNK = 252, /* keys: a multiple of 2 * MR and of GROUP */
    PIECE = 64,  /* columns of adjacent rows that are copied at a time */
    GROUP = 4    /* keys whose exponentials are taken together */
};

typedef float v8 __attribute__((vector_size(32)));
typedef float v8a __attribute__((vector_size(32), may_alias));

/* ---- products ---- */

/* c [height][16] = scale * a b, or c * keep + a b. */
typedef struct tile {
    const float *a, *b; /* element (row, p) of A is a[p * MR + row]; b is [k][16] */
    float *c;
    int64_t k;
    float scale;
    const float *keep; /* [16] factors of what is in c, or NULL */
} tile;

static inline __attribute__((always_inline)) void store_row(const tile *t, int64_t row,
                                                            const v8 *sums)
{
    v8a *c = (v8a *)(t->c + row * WIDE);
    const v8a *keep = (const v8a *)t->keep;
    if (keep) {
        c[0] = c[0] * keep[0] + sums[0];
        c[1] = c[1] * keep[1] + sums[1];
    } else {
        c[0] = sums[0] * t->scale;
        c[1] = sums[1] * t->scale;
    }
}

/* `height` rows; a constant, so that all sums are registers and what is beyond the height vanishes.
 */
static inline __attribute__((always_inline)) void multiply(const tile *t, int height)
{
    v8 s0[2] = {0}, s1[2] = {0}, s2[2] = {0}, s3[2] = {0}, s4[2] = {0}, s5[2] = {0};
    const float *a = t->a, *b = t->b;
    for (int64_t p = 0; p < t->k; p++, a += MR, b += WIDE) {
        const v8 lo = *(const v8a *)b, hi = *(const v8a *)(b + 8);
        s0[0] += a[0] * lo, s0[1] += a[0] * hi;
        if (height > 1) s1[0] += a[1] * lo, s1[1] += a[1] * hi;
        if (height > 2) s2[0] += a[2] * lo, s2[1] += a[2] * hi;
        if (height > 3) s3[0] += a[3] * lo, s3[1] += a[3] * hi;
        if (height > 4) s4[0] += a[4] * lo, s4[1] += a[4] * hi;
        if (height > 5) s5[0] += a[5] * lo, s5[1] += a[5] * hi;
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

#ifdef HAS_AVX512
#define AVX512 __attribute__((target("avx512f")))

/* Two groups of six rows; sums are made in the same order as by `multiply`. */
AVX512 static void multiply_two_groups(const tile *t)
{
    __m512 s[2 * MR];
    const float *a = t->a, *a6 = t->a + MR * t->k, *b = t->b;
#pragma GCC unroll 12
    for (int i = 0; i < 2 * MR; i++) s[i] = _mm512_setzero_ps();
    for (int64_t p = 0; p < t->k; p++, a += MR, a6 += MR, b += WIDE) {
        const __m512 line = _mm512_loadu_ps(b);
#pragma GCC unroll 6
        for (int i = 0; i < MR; i++) {
            s[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), line, s[i]);
            s[MR + i] = _mm512_fmadd_ps(_mm512_set1_ps(a6[i]), line, s[MR + i]);
        }
    }
    const __m512 keep = t->keep ? _mm512_loadu_ps(t->keep) : _mm512_setzero_ps(),
                 scale = _mm512_set1_ps(t->scale);
#pragma GCC unroll 12
    for (int i = 0; i < 2 * MR; i++) {
        float *c = t->c + i * WIDE;
        _mm512_storeu_ps(c, t->keep ? _mm512_fmadd_ps(_mm512_loadu_ps(c), keep, s[i])
                                    : _mm512_mul_ps(s[i], scale));
    }
}

/* ONEDNN_MAX_CPU_ISA may forbid it, as for convolutions. */
static bool has_avx512(void) { return ot_simd_block() == 16 && __builtin_cpu_supports("avx512f"); }
#else
static void multiply_two_groups(const tile *t) { (void)t; /* not called */ }
static bool has_avx512(void) { return false; }
#endif

/* All rows [0, m) of a packed A. */
static void multiply_all(tile *t, const float *a, float *c, int64_t m)
{
    const int64_t paired = has_avx512() ? m / (2 * MR) * (2 * MR) : 0;
    for (int64_t i = 0; i < paired; i += 2 * MR) {
        t->a = a + i * t->k;
        t->c = c + i * WIDE;
        multiply_two_groups(t);
    }
    for (int64_t i = paired; i < m; i += MR) {
        t->a = a + i * t->k;
        t->c = c + i * WIDE;
        multiply_tile(t, ot_min(MR, m - i));
    }
}

/* ---- copies ---- */

typedef float v4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef float v8u __attribute__((vector_size(32), aligned(4), may_alias));

#define PAIR(a, b) \
    __builtin_shufflevector(*(const v4u *)(a), *(const v4u *)(b), 0, 1, 2, 3, 4, 5, 6, 7)

/* Four columns of six rows, each without steps: to[p * MR + u] = a[u * row + p]. Two floats more
 * are overwritten. */
static inline void turn_four(float *to, const float *a, int64_t row)
{
    const v8 ae = PAIR(a, a + 4 * row), bf = PAIR(a + row, a + 5 * row),
             c = PAIR(a + 2 * row, a + 2 * row), d = PAIR(a + 3 * row, a + 3 * row);
    const v8 ab_low = __builtin_shufflevector(ae, bf, 0, 8, 1, 9, 4, 12, 5, 13);
    const v8 ab_high = __builtin_shufflevector(ae, bf, 2, 10, 3, 11, 6, 14, 7, 15);
    const v8 cd_low = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
    const v8 cd_high = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    *(v8u *)to = __builtin_shufflevector(ab_low, cd_low, 0, 1, 8, 9, 4, 5, 12, 13);
    *(v8u *)(to + MR) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 10, 11, 6, 7, 14, 15);
    *(v8u *)(to + 2 * MR) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13);
    *(v8u *)(to + 3 * MR) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* Rows [0, m) of A, six together: to[i / 6][k][i % 6]; two floats beyond these may be
 * overwritten. Lines of A are read once: of adjacent rows few columns are taken at a time. */
OT_CLONES static void pack_rows(float *to, const float *a, int64_t row, int64_t column, int64_t m,
                                int64_t k)
{
    int64_t step = row == 1 ? PIECE : k;
    for (int64_t piece = 0; piece < k; piece += step) {
        int64_t end = ot_min(k, piece + step);
        for (int64_t i = 0; i < m; i += MR) {
            const float *from = a + i * row;
            float *group = to + i * k;
            int64_t h = ot_min(MR, m - i), p = piece;
            if (h == MR && row == 1)
                for (; p < end; p++) memcpy(group + p * MR, from + p * column, MR * sizeof *to);
            if (h == MR && column == 1 && row != 1)
                for (; p + 4 <= end; p += 4) turn_four(group + p * MR, from + p, row);
            for (; p < end; p++)
                for (int64_t u = 0; u < h; u++) group[p * MR + u] = from[u * row + p * column];
        }
    }
}

/* to [columns][16] = 16 rows of A, of which `rows` are there and the rest is zero. */
static void pack_panel(float *to, const ot_attention_matrix *a, int64_t rows, int64_t columns)
{
    const float *data = a->data;
    if (rows < WIDE) memset(to, 0, (size_t)columns * WIDE * sizeof *to);
    if (a->column == 1) {
        ot_box_turn(sizeof *to, rows, columns, (char *)to, WIDE * sizeof *to, (const char *)data,
                    a->row * (int64_t)sizeof *to);
        return;
    }
    for (int64_t k = 0; k < columns; k++)
        for (int64_t r = 0; r < rows; r++) to[k * WIDE + r] = data[r * a->row + k * a->column];
}

/* Rows and columns of a matrix as float32: as they lie, or widened in `to`, which has room for
 * all of them. */
static ot_attention_matrix widened(const ot_attention_matrix *m, int64_t rows, int64_t columns,
                                   float *to)
{
    const uint16_t *from = m->data;
    if (!ot_dtype_is_half(m->type)) return *m;
    if (m->row == 0) rows = 1;
    if (m->column == 0) columns = 1;
    if (m->row == 1 && m->column != 1) {
        for (int64_t k = 0; k < columns; k++)
            ot_half_widen(m->type, to + k * rows, from + k * m->column, rows);
        return (ot_attention_matrix){to, 1, m->column == 0 ? 0 : rows, OT_F32};
    }
    for (int64_t i = 0; i < rows && m->column <= 1; i++)
        ot_half_widen(m->type, to + i * columns, from + i * m->row, columns);
    for (int64_t i = 0; i < rows && m->column > 1; i++)
        for (int64_t k = 0; k < columns; k++)
            ot_half_widen(m->type, to + i * columns + k, from + i * m->row + k * m->column, 1);
    return (ot_attention_matrix){to, m->row == 0 ? 0 : columns, m->column == 0 ? 0 : 1, OT_F32};
}

/* ---- softmax, 16 queries side by side ---- */

/* What a panel knows of the keys so far. */
typedef struct state {
    float most[WIDE], sum[WIDE];
    float keep[WIDE]; /* factor of what was summed up before this chunk */
} state;

/* Scores of n keys (filled up to a multiple of GROUP) become exp(score - largest). */
OT_CLONES static void weigh(state *s, float *scores, int64_t n)
{
    enum { LANES = GROUP * WIDE };
    _Alignas(64) float most[LANES], sum[LANES];
    for (int64_t k = 0; k < LANES; k++) most[k] = s->most[k % WIDE];
    for (int64_t i = 0; i < n * WIDE; i += LANES)
#pragma omp simd
        for (int64_t k = 0; k < LANES; k++)
            most[k] = scores[i + k] > most[k] ? scores[i + k] : most[k];
    for (int64_t k = 0; k < WIDE; k++) {
        float m = most[k];
        for (int64_t g = 1; g < GROUP; g++) m = most[g * WIDE + k] > m ? most[g * WIDE + k] : m;
        float from = m == -INFINITY ? 0 : m; /* nothing is to be seen so far: all weights are 0 */
        s->keep[k] = ot_rows_exp_negative(s->most[k] - from);
        s->most[k] = m;
        for (int64_t g = 0; g < GROUP; g++) most[g * WIDE + k] = from;
    }
    for (int64_t k = 0; k < LANES; k++) sum[k] = 0;
    for (int64_t i = 0; i < n * WIDE; i += LANES)
#pragma omp simd
        for (int64_t k = 0; k < LANES; k++) {
            float e = ot_rows_exp_negative(scores[i + k] - most[k]);
            scores[i + k] = e;
            sum[k] += e;
        }
    for (int64_t k = 0; k < WIDE; k++)
        s->sum[k] = s->sum[k] * s->keep[k] +
                    ((sum[k] + sum[WIDE + k]) + (sum[2 * WIDE + k] + sum[3 * WIDE + k]));
}

/* m: mask of these queries (a panel at most) and n keys. */
OT_CLONES static void add_mask(float *scores, const ot_attention_matrix *m, int64_t queries,
                               int64_t n, float *panel)
{
    const float *data = m->data;
    if (m->row != 0) {
        pack_panel(panel, m, queries, n);
        for (int64_t i = 0; i < n * WIDE; i++) scores[i] += panel[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < WIDE; k++) scores[i * WIDE + k] += data[i * m->column];
}

/* ---- a block ---- */

typedef struct block {
    const ot_attention_job *j;
    float *q, *y, *k, *v, *scores, *mask;
    float *wide; /* of operands of 16 bits: a chunk of one of them */
    state *states;
} block;

/* Queries of panel p. */
static int64_t width(const ot_attention_job *j, int64_t p)
{
    return ot_min(WIDE, j->queries - p * WIDE);
}

static void begin(const block *b, int64_t p)
{
    const ot_attention_job *j = b->j;
    ot_attention_matrix given = ot_attention_from(j->q, p * WIDE, 0),
                        q = widened(&given, width(j, p), j->size, b->wide);
    pack_panel(b->q + p * j->size * WIDE, &q, width(j, p), j->size);
    memset(b->y + p * j->v_size * WIDE, 0, (size_t)(j->v_size * WIDE) * sizeof *b->y);
    for (int64_t k = 0; k < WIDE; k++) {
        b->states[p].most[k] = -INFINITY;
        b->states[p].sum[k] = 0;
    }
}

/* Scores of keys that a query does not see; query 0 of the panel sees the first `seen`. */
static void hide(float *scores, int64_t seen, int64_t n)
{
    for (int64_t i = ot_max(seen, 0); i < n; i++)
        for (int64_t k = 0; k < WIDE && seen + k <= i; k++) scores[i * WIDE + k] = -INFINITY;
}

/* Panel p against n keys. */
static void attend(const block *b, int64_t p, int64_t key, int64_t n)
{
    const ot_attention_job *j = b->j;
    state *s = &b->states[p];
    tile first = {.b = b->q + p * j->size * WIDE, .k = j->size, .scale = j->scale};
    tile second = {.b = b->scores, .k = n, .keep = s->keep};
    int64_t whole = ot_ceil_div(n, GROUP) * GROUP, seen = j->seen + p * WIDE - key;
    if (j->seen && seen + WIDE <= 1) return;
    multiply_all(&first, b->k, b->scores, n);
    if (j->mask.data) {
        ot_attention_matrix given = ot_attention_from(j->mask, p * WIDE, key),
                            mask = widened(&given, width(j, p), n, b->wide);
        add_mask(b->scores, &mask, width(j, p), n, b->mask);
    }
    if (j->seen) hide(b->scores, seen, n);
    for (int64_t i = n * WIDE; i < whole * WIDE; i++) b->scores[i] = -INFINITY;
    weigh(s, b->scores, whole);
    multiply_all(&second, b->v, b->y + p * j->v_size * WIDE, j->v_size);
}

static void finish(const block *b, int64_t p)
{
    const ot_attention_job *j = b->j;
    float *y = b->y + p * j->v_size * WIDE, by[WIDE];
    for (int64_t k = 0; k < WIDE; k++) {
        float sum = b->states[p].sum[k];
        by[k] = j->blind_zero && sum == 0 ? 0 : 1 / sum;
    }
    for (int64_t i = 0; i < j->v_size; i++)
        for (int64_t k = 0; k < WIDE; k++) y[i * WIDE + k] *= by[k];
    int64_t rows = width(j, p);
    bool half = ot_dtype_is_half(j->q.type);
    float *to = half ? b->wide : (float *)j->y + p * WIDE * j->y_row;
    ot_box_turn(sizeof *y, j->v_size, rows, (char *)to,
                (half ? j->v_size : j->y_row) * (int64_t)sizeof *y, (const char *)y,
                WIDE * sizeof *y);
    for (int64_t i = 0; half && i < rows; i++)
        ot_half_narrow(j->q.type, (uint16_t *)j->y + (p * WIDE + i) * j->y_row, to + i * j->v_size,
                       j->v_size);
}

void ot_attention_run(const ot_attention_job *j, float *scratch)
{
    int64_t panels = ot_ceil_div(j->queries, WIDE);
    block b = {.j = j, .q = scratch};
    b.y = b.q + panels * j->size * WIDE;
    b.scores = b.y + panels * j->v_size * WIDE;
    b.mask = b.scores + CHUNK * WIDE;
    b.states = (state *)(void *)(b.mask + CHUNK * WIDE);
    b.k = (float *)(void *)(b.states + panels);
    b.v = b.k + CHUNK * j->size;
    b.wide = b.v + CHUNK * (j->v_size + MR);
    for (int64_t p = 0; p < panels; p++) begin(&b, p);
    for (int64_t key = 0; key < j->keys; key += CHUNK) {
        int64_t n = ot_min(CHUNK, j->keys - key);
        ot_attention_matrix given = ot_attention_from(j->k, key, 0),
                            m = widened(&given, n, j->size, b.wide);
        pack_rows(b.k, m.data, m.row, m.column, n, j->size);
        given = ot_attention_from(j->v, key, 0);
        m = widened(&given, n, j->v_size, b.wide);
        pack_rows(b.v, m.data, m.column, m.row, j->v_size, n);
        for (int64_t p = 0; p < panels; p++) attend(&b, p, key, n);
    }
    for (int64_t p = 0; p < panels; p++) finish(&b, p);
}

int64_t ot_attention_scratch(ot_dtype type, int64_t panels, int64_t size, int64_t v_size)
{
    int64_t both, of_panels, of_chunk, total, wide = ot_max(ot_max(size, v_size), WIDE);
    int64_t fixed = 2 * CHUNK * WIDE + 2 * WIDE, each = (int64_t)(sizeof(state) / sizeof(float));
    if (!ot_add_i64(size, v_size + MR, &both) || !ot_mul_i64(both, WIDE, &of_panels) ||
        !ot_add_i64(of_panels, each, &of_panels) || !ot_mul_i64(of_panels, panels, &of_panels) ||
        !ot_mul_i64(both, CHUNK, &of_chunk) || !ot_add_i64(of_panels, of_chunk, &total) ||
        !ot_add_i64(total, fixed, &total))
        return -1;
    if (ot_dtype_is_half(type) &&
        (!ot_mul_i64(wide, CHUNK, &wide) || !ot_add_i64(total, wide + WIDE, &total)))
        return -1;
    return total / WIDE * WIDE; /* that of each thread is aligned, too */
}
