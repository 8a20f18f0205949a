/* Exact products of 8-bit integers.
 *
 *   panel of B, bytes          a part of it, int16                rows of A, int16
 *   [k / 2][16][2]  --expand--> [256 pairs][16][2]  in L1         [6][k]
 *                                     |                             |
 *                                     `-- micro-kernel: 6 rows x 16 columns of int32 in registers;
 *                                     a step takes one pair of
 *                                         k: two loads of B, six broadcasts of a pair of A, twelve
 *                                         products, twelve sums
 *
 *   for 96 rows
 *       for panels
 *           for parts of k: expand, then for six rows: tile = or += sums
 *           finish: tile -> int32, float, u8 or s8
 *
 * B stays bytes in memory, which is what products of few rows wait for; making a part int16
 * costs as much as two rows. Quads (int8_quads.c) need no part: six rows by two panels at a time
 * are multiplied as bytes, and with sums of rows and columns zero points come off afterwards:
 *
 *   sum (a - za) (b - zb) = sum a b - za (sum b - k zb) - zb sum a
 */
#include "int8_quads.h"

#include "engine/core/simd.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_AVX2_TILE 1
#endif

enum {
    MR = 6,
    ROWS = 96,         /* of a tile of sums */
    PAIRS = 256,       /* of k, of a part of B */
    CACHED = 128 << 10 /* int16 of A that stay in the core's cache */
};

/* ---- operands ---- */

int64_t ot_i8_row_bytes(int64_t k)
{
    int64_t step = (k + 15) / 16 * 16;
    return 2 * (step % 512 == 0 ? step + 32 : step);
}

int64_t ot_i8_rows_at_once(int64_t k)
{
    int64_t rows = 2 * CACHED / (k > 0 ? ot_i8_row_bytes(k) : 2) / MR * MR;
    return rows < MR ? MR : rows > ROWS ? ROWS : rows;
}

OT_CLONES static void widen_unsigned(int16_t *to, const uint8_t *from, int64_t n, int16_t zero)
{
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(from[i] - zero);
}

OT_CLONES static void widen_signed(int16_t *to, const int8_t *from, int64_t n, int16_t zero)
{
    for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(from[i] - zero);
}

OT_CLONES static void flip_bytes(uint8_t *to, const uint8_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = from[i] ^ 0x80;
}

bool ot_i8_reads(const ot_i8_job *j, bool is_signed)
{
    return j->way != OT_I8_PAIRS && j->k % 4 == 0 && is_signed != j->b_signed;
}

void ot_i8_row(const ot_i8_job *j, void *row, const void *from, bool is_signed, int32_t zero,
               ot_i8_end *end)
{
    if (j->way == OT_I8_PAIRS) {
        int16_t *wide = row;
        if (is_signed)
            widen_signed(wide, from, j->k, (int16_t)zero);
        else
            widen_unsigned(wide, from, j->k, (int16_t)zero);
        if (j->k % 2) wide[j->k] = 0;
        return;
    }
    uint8_t *bytes = row;
    if (is_signed == j->b_signed) { /* one of the two is signed */
        flip_bytes(bytes, from, j->k);
        zero += is_signed ? 128 : -128;
    } else if (j->k > 0) {
        memcpy(bytes, from, (size_t)j->k);
    }
    for (int64_t i = j->k; i < ot_i8_up4(j->k); i++) bytes[i] = 0;
    *end = ot_i8_end_of(bytes, j->k, !j->b_signed, zero);
}

/* ---- a part of a panel ---- */

/* n pairs of rows, less the zero points of the columns: zeros is [16][2]. */
OT_CLONES static void expand_unsigned(int16_t *restrict to, const uint8_t *restrict from, int64_t n,
                                      const int16_t *zeros)
{
    for (int64_t p = 0; p < n; p++)
        for (int64_t j = 0; j < 2 * OT_I8_PANEL; j++)
            to[p * 2 * OT_I8_PANEL + j] = (int16_t)(from[p * 2 * OT_I8_PANEL + j] - zeros[j]);
}

OT_CLONES static void expand_signed(int16_t *restrict to, const int8_t *restrict from, int64_t n,
                                    const int16_t *zeros)
{
    for (int64_t p = 0; p < n; p++)
        for (int64_t j = 0; j < 2 * OT_I8_PANEL; j++)
            to[p * 2 * OT_I8_PANEL + j] = (int16_t)(from[p * 2 * OT_I8_PANEL + j] - zeros[j]);
}

/* ---- micro-kernel ---- */

typedef struct tile {
    const int16_t *a, *b; /* a: [height], row_step apart; b: [pairs][16][2] */
    int32_t *sums;        /* [height][16] */
    int64_t pairs, row_step;
    bool add; /* to the sums that are there */
} tile;

OT_CLONES static void tile_plain(const tile *t, int64_t height)
{
    for (int64_t i = 0; i < height; i++) {
        const int16_t *a = t->a + i * t->row_step, *b = t->b;
        int32_t sums[OT_I8_PANEL] = {0}, *to = t->sums + i * OT_I8_PANEL;
        for (int64_t p = 0; p < t->pairs; p++, a += 2, b += 2 * OT_I8_PANEL)
            for (int64_t j = 0; j < OT_I8_PANEL; j++)
                sums[j] = (int32_t)((uint32_t)sums[j] +
                                    (uint32_t)(a[0] * b[2 * j] + a[1] * b[2 * j + 1]));
        for (int64_t j = 0; j < OT_I8_PANEL; j++)
            to[j] = t->add ? (int32_t)((uint32_t)to[j] + (uint32_t)sums[j]) : sums[j];
    }
}

#ifdef HAS_AVX2_TILE
#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __attribute__((always_inline)) __m256i pair_of(const int16_t *a)
{
    int32_t pair;
    memcpy(&pair, a, sizeof pair);
    return _mm256_set1_epi32(pair);
}

/* sums += products of one row's pair. */
AVX2 static inline __attribute__((always_inline)) void step(__m256i *sums, const int16_t *a,
                                                            __m256i lo, __m256i hi)
{
    const __m256i pair = pair_of(a);
    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(pair, lo));
    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(pair, hi));
}

AVX2 static inline __attribute__((always_inline)) void store(const tile *t, int row,
                                                             const __m256i *sums)
{
    __m256i *to = (__m256i *)(void *)(t->sums + row * OT_I8_PANEL);
    _mm256_storeu_si256(to, t->add ? _mm256_add_epi32(_mm256_loadu_si256(to), sums[0]) : sums[0]);
    _mm256_storeu_si256(to + 1,
                        t->add ? _mm256_add_epi32(_mm256_loadu_si256(to + 1), sums[1]) : sums[1]);
}

/* `height` is a constant, so that all sums are registers and what is beyond the height vanishes. */
AVX2 static inline __attribute__((always_inline)) void multiply(const tile *t, int height)
{
    const __m256i none = _mm256_setzero_si256();
    __m256i s0[2] = {none, none}, s1[2] = {none, none}, s2[2] = {none, none}, s3[2] = {none, none},
            s4[2] = {none, none}, s5[2] = {none, none};
    const int64_t r = t->row_step;
    const int16_t *a = t->a, *a3 = a + (height > 3 ? 3 * r : 0), *b = t->b;
    for (int64_t p = 0; p < t->pairs; p++, a += 2, a3 += 2, b += 2 * OT_I8_PANEL) {
        const __m256i lo = _mm256_loadu_si256((const __m256i *)(const void *)b);
        const __m256i hi = _mm256_loadu_si256((const __m256i *)(const void *)(b + OT_I8_PANEL));
        step(s0, a, lo, hi);
        if (height > 1) step(s1, a + r, lo, hi);
        if (height > 2) step(s2, a + 2 * r, lo, hi);
        if (height > 3) step(s3, a3, lo, hi);
        if (height > 4) step(s4, a3 + r, lo, hi);
        if (height > 5) step(s5, a3 + 2 * r, lo, hi);
    }
    store(t, 0, s0);
    if (height > 1) store(t, 1, s1);
    if (height > 2) store(t, 2, s2);
    if (height > 3) store(t, 3, s3);
    if (height > 4) store(t, 4, s4);
    if (height > 5) store(t, 5, s5);
}

AVX2 static void tile_avx2(const tile *t, int64_t height) { OT_BY_HEIGHT(multiply, t, height); }
#endif

typedef void (*tile_fn)(const tile *t, int64_t height);

static tile_fn best_tile(void)
{
#ifdef HAS_AVX2_TILE
    if (__builtin_cpu_supports("avx2")) return tile_avx2;
#endif
    return tile_plain;
}

/* ---- from sums to outputs ---- */

/* One panel's share of ot_i8_out, filled up to 16 columns. */
typedef struct finish {
    int64_t w; /* columns that there are */
    int32_t bias[OT_I8_PANEL];
    float factors[OT_I8_PANEL], shift[OT_I8_PANEL];
    float least, most; /* less the zero point: what rounding must stay within */
    int32_t zero;
} finish;

static void finish_open(const ot_i8_job *j, int64_t column, finish *f)
{
    const ot_i8_out *o = &j->out;
    bool all = o->least == 0 && o->most == 0, is_signed = o->type == OT_I8;
    int32_t least = all ? (is_signed ? INT8_MIN : 0) : o->least,
            most = all ? (is_signed ? INT8_MAX : UINT8_MAX) : o->most;
    *f = (finish){.w = ot_min(OT_I8_PANEL, j->n - column),
                  .least = (float)(least - o->zero),
                  .most = (float)(most - o->zero),
                  .zero = o->zero};
    for (int64_t k = 0; k < f->w; k++) {
        if (o->bias) f->bias[k] = o->bias[column + k];
        if (o->shift) f->shift[k] = o->shift[column + k];
        f->factors[k] = o->scale * (o->scales ? o->scales[column + k] : 1);
    }
}

/* Adding it rounds to an integer (to nearest, ties to even) what is at most 2^22 in size. */
#define ROUNDING 12582912.0f

/* What differs from row to row. */
typedef struct row_terms {
    const float *scales, *shift; /* [m] or NULL */
    const int32_t *bias;
} row_terms;

/* m rows. The clamp comes before rounding, which changes nothing since its bounds are integers;
 * NaN becomes the least. */
OT_CLONES static void finish_bytes(const finish *f, const int32_t *sums, int64_t m, uint8_t *to,
                                   int64_t ld, const row_terms *r)
{
    for (int64_t i = 0; i < m; i++, sums += OT_I8_PANEL, to += ld) {
        uint8_t bytes[OT_I8_PANEL];
        float by_row = r->scales ? r->scales[i] : 1.0f, shift = r->shift ? r->shift[i] : 0.0f;
        uint32_t bias = r->bias ? (uint32_t)r->bias[i] : 0;
        for (int64_t k = 0; k < OT_I8_PANEL; k++) {
            float sum = (float)(int32_t)((uint32_t)sums[k] + (uint32_t)f->bias[k] + bias);
            float v = sum * (f->factors[k] * by_row) + (f->shift[k] + shift);
            v = v > f->least ? v : f->least;
            v = v < f->most ? v : f->most;
            v = (v + ROUNDING) - ROUNDING;
            bytes[k] = (uint8_t)((int32_t)v + f->zero);
        }
        if (f->w == OT_I8_PANEL)
            memcpy(to, bytes, OT_I8_PANEL);
        else
            memcpy(to, bytes, (size_t)f->w);
    }
}

#ifdef HAS_AVX2_TILE
#define AVX2_FMA __attribute__((target("avx2,fma")))

/* Eight columns from `at` on of a row, as integers of 32 bits. */
AVX2_FMA static inline __m256i finish_eight(const finish *f, const int32_t *sums, int64_t at,
                                            __m256i bias, __m256 scale, __m256 shift)
{
    __m256i s = _mm256_loadu_si256((const __m256i *)(const void *)(sums + at));
    __m256i column = _mm256_loadu_si256((const __m256i *)(const void *)(f->bias + at));
    __m256 v = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_add_epi32(s, column), bias));
    v = _mm256_fmadd_ps(v, _mm256_mul_ps(_mm256_loadu_ps(f->factors + at), scale),
                        _mm256_add_ps(_mm256_loadu_ps(f->shift + at), shift));
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(f->least)), _mm256_set1_ps(f->most));
    return _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(f->zero));
}

AVX2_FMA static void finish_bytes_avx2(const finish *f, const int32_t *sums, int64_t m, uint8_t *to,
                                       int64_t ld, const row_terms *r)
{
    for (int64_t i = 0; i < m; i++, sums += OT_I8_PANEL, to += ld) {
        __m256 scale = _mm256_set1_ps(r->scales ? r->scales[i] : 1.0f),
               shift = _mm256_set1_ps(r->shift ? r->shift[i] : 0.0f);
        __m256i bias = _mm256_set1_epi32(r->bias ? r->bias[i] : 0);
        __m256i lo = finish_eight(f, sums, 0, bias, scale, shift),
                hi = finish_eight(f, sums, 8, bias, scale, shift);
        __m256i shorts = _mm256_and_si256(
            _mm256_permute4x64_epi64(_mm256_packs_epi32(lo, hi), 0xd8), _mm256_set1_epi16(0xff));
        __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(shorts),
                                         _mm256_extracti128_si256(shorts, 1));
        if (f->w == OT_I8_PANEL)
            _mm_storeu_si128((__m128i *)(void *)to, bytes);
        else
            memcpy(to, &bytes, (size_t)f->w);
    }
}
#endif

typedef void (*finish_fn)(const finish *f, const int32_t *sums, int64_t m, uint8_t *to, int64_t ld,
                          const row_terms *r);

static finish_fn best_finish(void)
{
#ifdef HAS_AVX2_TILE
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return finish_bytes_avx2;
#endif
    return finish_bytes;
}

OT_CLONES static void finish_floats(const finish *f, const int32_t *sums, int64_t m, float *to,
                                    int64_t ld, const row_terms *r)
{
    for (int64_t i = 0; i < m; i++, sums += OT_I8_PANEL, to += ld) {
        float v[OT_I8_PANEL], by_row = r->scales ? r->scales[i] : 1.0f,
                              shift = r->shift ? r->shift[i] : 0.0f;
        uint32_t bias = r->bias ? (uint32_t)r->bias[i] : 0;
        for (int64_t k = 0; k < OT_I8_PANEL; k++)
            v[k] = (float)(int32_t)((uint32_t)sums[k] + (uint32_t)f->bias[k] + bias) *
                       (f->factors[k] * by_row) +
                   f->shift[k] + shift;
        if (f->w == OT_I8_PANEL)
            memcpy(to, v, sizeof v);
        else
            memcpy(to, v, (size_t)f->w * sizeof *v);
    }
}

OT_CLONES static void finish_ints(const finish *f, const int32_t *sums, int64_t m, int32_t *to,
                                  int64_t ld, const row_terms *r)
{
    for (int64_t i = 0; i < m; i++, sums += OT_I8_PANEL, to += ld) {
        uint32_t bias = r->bias ? (uint32_t)r->bias[i] : 0;
        for (int64_t k = 0; k < f->w; k++)
            to[k] = (int32_t)((uint32_t)sums[k] + (uint32_t)f->bias[k] + bias);
    }
}

static row_terms terms_of(const ot_i8_out *o, int64_t row)
{
    return (row_terms){o->row_scales ? o->row_scales + row : NULL,
                       o->row_shift ? o->row_shift + row : NULL,
                       o->row_bias ? o->row_bias + row : NULL};
}

/* Rows [row, row + m) of the output. */
static void finish_rows(const ot_i8_job *j, int64_t column, int64_t row, int64_t m,
                        const int32_t *sums)
{
    const ot_i8_out *o = &j->out;
    row_terms r = terms_of(o, row);
    int64_t at = row * o->ld + column;
    finish f;
    finish_open(j, column, &f);
    if (o->type == OT_F32)
        finish_floats(&f, sums, m, (float *)o->to + at, o->ld, &r);
    else if (o->type == OT_I32)
        finish_ints(&f, sums, m, (int32_t *)o->to + at, o->ld, &r);
    else
        best_finish()(&f, sums, m, (uint8_t *)o->to + at, o->ld, &r);
}

/* ---- the product ---- */

static void zeros_of(const ot_i8_job *j, int64_t column, int16_t *zeros)
{
    for (int64_t k = 0; k < OT_I8_PANEL; k++) {
        int32_t z = !j->b_zeros ? j->b_zero : column + k < j->n ? j->b_zeros[column + k] : 0;
        zeros[2 * k] = zeros[2 * k + 1] = (int16_t)z;
    }
}

static const uint8_t *panel_at(const ot_i8_job *j, int64_t panel)
{
    return j->panels + panel * ot_i8_panel_bytes(j->k);
}

/* m <= ROWS rows from `row` on against one panel. */
static void multiply_panel(const ot_i8_job *j, tile_fn run, int64_t panel, int64_t row, int64_t m)
{
    _Alignas(64) int16_t part[PAIRS * 2 * OT_I8_PANEL];
    _Alignas(64) int32_t sums[ROWS * OT_I8_PANEL];
    int16_t zeros[2 * OT_I8_PANEL];
    int64_t pairs = (j->k + 1) / 2, tiles = (m + MR - 1) / MR, column = panel * OT_I8_PANEL;
    const uint8_t *bytes = panel_at(j, panel);
    const int16_t *rows = j->rows;
    tile t = {.b = part, .row_step = j->row_bytes / (int64_t)sizeof *rows};
    zeros_of(j, column, zeros);
    for (int64_t p = 0; p < pairs; p += PAIRS) {
        t.pairs = ot_min(PAIRS, pairs - p);
        t.add = p > 0;
        if (j->b_signed)
            expand_signed(part, (const int8_t *)bytes + p * 2 * OT_I8_PANEL, t.pairs, zeros);
        else
            expand_unsigned(part, bytes + p * 2 * OT_I8_PANEL, t.pairs, zeros);
        for (int64_t u = 0; u < tiles; u++) {
            int64_t first = m * u / tiles;
            t.a = rows + (row + first) * t.row_step + 2 * p;
            t.sums = sums + first * OT_I8_PANEL;
            run(&t, m * (u + 1) / tiles - first);
        }
    }
    finish_rows(j, column, row, m, sums);
}

/* ---- quads ---- */

/* Is the zero point of one of the rows not 0? */
static bool has_row_zeros(const ot_i8_end *ends, int64_t m)
{
    int32_t any = 0;
    for (int64_t i = 0; i < m; i++) any |= ends[i].zero;
    return any != 0;
}

/* What comes off the sums of a row: its zero point times `rest`, and its sum times `zeros`. */
typedef struct zero_terms {
    const ot_i8_end *ends;                          /* of the rows */
    uint32_t rest[OT_I8_PANEL], zeros[OT_I8_PANEL]; /* of the columns */
} zero_terms;

OT_CLONES static void take_zeros_off(int32_t *sums, int64_t m, const zero_terms *z)
{
    for (int64_t i = 0; i < m; i++, sums += OT_I8_PANEL) {
        uint32_t zero = (uint32_t)z->ends[i].zero, sum = (uint32_t)z->ends[i].sum;
        for (int64_t k = 0; k < OT_I8_PANEL; k++)
            sums[k] = (int32_t)((uint32_t)sums[k] - zero * z->rest[k] - z->zeros[k] * sum);
    }
}

#ifdef HAS_AVX2_TILE
/* finish_bytes of a whole panel's width at once, after take_zeros_off. */
__attribute__((target("avx512f,avx512bw,avx512vl"))) static void
finish_bytes_avx512(const finish *f, const int32_t *sums, int64_t m, uint8_t *to, int64_t ld,
                    const row_terms *r, const zero_terms *z)
{
    const ot_i8_end *ends = z->ends;
    const __m512i bias = _mm512_loadu_si512((const void *)f->bias),
                  rest = _mm512_loadu_si512((const void *)z->rest),
                  zeros = _mm512_loadu_si512((const void *)z->zeros),
                  zero = _mm512_set1_epi32(f->zero);
    const __m512 factors = _mm512_loadu_ps(f->factors), shifts = _mm512_loadu_ps(f->shift),
                 least = _mm512_set1_ps(f->least), most = _mm512_set1_ps(f->most);
    const __mmask16 w = (__mmask16)((1u << f->w) - 1);
    for (int64_t i = 0; i < m; i++, sums += OT_I8_PANEL, to += ld) {
        __m512i s = _mm512_loadu_si512((const void *)sums);
        s = _mm512_sub_epi32(s, _mm512_mullo_epi32(_mm512_set1_epi32(ends[i].zero), rest));
        s = _mm512_sub_epi32(s, _mm512_mullo_epi32(_mm512_set1_epi32(ends[i].sum), zeros));
        s = _mm512_add_epi32(_mm512_add_epi32(s, bias),
                             _mm512_set1_epi32(r->bias ? r->bias[i] : 0));
        __m512 v = _mm512_fmadd_ps(
            _mm512_cvtepi32_ps(s),
            _mm512_mul_ps(factors, _mm512_set1_ps(r->scales ? r->scales[i] : 1.0f)),
            _mm512_add_ps(shifts, _mm512_set1_ps(r->shift ? r->shift[i] : 0.0f)));
        v = _mm512_min_ps(_mm512_max_ps(v, least), most);
        _mm512_mask_cvtepi32_storeu_epi8(to, w, _mm512_add_epi32(_mm512_cvtps_epi32(v), zero));
    }
}
#endif

/* The sums of m rows from `row` on against a panel become outputs. */
static void finish_quads(const ot_i8_job *j, int64_t panel, int64_t row, int64_t m, int32_t *sums,
                         const ot_i8_end *ends, bool by_row)
{
    int64_t column = panel * OT_I8_PANEL;
    int32_t sum[OT_I8_PANEL] = {0};
    zero_terms terms = {.ends = ends};
    uint32_t any = 0;
    if (by_row) ot_i8_column_sums(panel_at(j, panel), ot_i8_up4(j->k) / 4, j->b_signed, sum);
    for (int64_t k = 0; k < OT_I8_PANEL; k++) {
        int32_t z = !j->b_zeros ? j->b_zero : column + k < j->n ? j->b_zeros[column + k] : 0;
        terms.zeros[k] = (uint32_t)z;
        terms.rest[k] = (uint32_t)sum[k] - (uint32_t)j->k * terms.zeros[k];
        any |= terms.zeros[k];
    }
#ifdef HAS_AVX2_TILE
    if ((j->out.type == OT_U8 || j->out.type == OT_I8) && ot_i8_way_here() != OT_I8_PAIRS) {
        finish f;
        const row_terms r = terms_of(&j->out, row);
        finish_open(j, column, &f);
        finish_bytes_avx512(&f, sums, m, (uint8_t *)j->out.to + row * j->out.ld + column, j->out.ld,
                            &r, &terms);
        return;
    }
#endif
    if (by_row || any) take_zeros_off(sums, m, &terms);
    finish_rows(j, column, row, m, sums);
}

/* Rows of the job from `row` on against panels. */
typedef struct quads_part {
    int64_t row, m, panel; /* m <= ROWS */
    int panels;            /* 1 or 2 */
    bool by_row;           /* zero points of rows are not all 0 */
} quads_part;

static void run_quads(ot_i8_quads *t, const quads_part *o)
{
    ot_i8_quads_fn run = ot_i8_best_quads();
    const uint8_t *a = t->a;
    int32_t *sums = t->sums;
    int64_t tiles = (o->m + MR - 1) / MR;
    for (int64_t u = 0; u < tiles; u++) {
        int64_t first = o->m * u / tiles;
        t->a = a + first * t->row_step;
        t->sums = sums + first * OT_I8_PANEL;
        run(t, o->m * (u + 1) / tiles - first, o->panels);
    }
}

static void multiply_quads(const ot_i8_job *j, const quads_part *o, bool by_tiles)
{
    _Alignas(64) int32_t sums[2 * ROWS * OT_I8_PANEL];
    ot_i8_quads t = {.a = (const uint8_t *)j->rows + o->row * j->row_bytes,
                     .b = panel_at(j, o->panel),
                     .sums = sums,
                     .quads = ot_i8_up4(j->k) / 4,
                     .row_step = j->row_bytes,
                     .sums_step = ROWS * OT_I8_PANEL,
                     .sums_ld = OT_I8_PANEL,
                     .b_signed = j->b_signed};
    if (by_tiles)
        ot_i8_tiles_run(&t, o->m, o->panels);
    else
        run_quads(&t, o);
    for (int p = 0; p < o->panels; p++)
        finish_quads(j, o->panel + p, o->row, o->m, sums + p * t.sums_step, j->ends + o->row,
                     o->by_row);
}

/* All rows against panels [first, end). */
static void multiply_all_quads(const ot_i8_job *j, int64_t first, int64_t end)
{
    bool by_tiles = j->way == OT_I8_TILES && ot_i8_tiles_here();
    if (by_tiles && ot_i8_strips_fit(j, first, end)) {
        ot_i8_strips_run(j, first, end);
        return;
    }
    int64_t last = by_tiles ? ot_max(j->m - OT_I8_TILE_ROWS, 0) : j->m;
    if (by_tiles) ot_i8_tiles_open(j->m, ot_i8_up4(j->k) / 4);
    for (int64_t row = 0; row < j->m; row += ROWS) {
        quads_part o = {.row = ot_min(row, last)};
        o.m = ot_min(ROWS, j->m - o.row);
        o.by_row = has_row_zeros(j->ends + o.row, o.m);
        for (o.panel = first; o.panel < end; o.panel += 2) {
            o.panels = end - o.panel > 1 ? 2 : 1;
            multiply_quads(j, &o, by_tiles);
        }
    }
    if (by_tiles) ot_i8_tiles_close();
}

/* Sums over nothing, which have neither rows nor panels. */
static void multiply_nothing(const ot_i8_job *j, int64_t first, int64_t end)
{
    static const int32_t sums[ROWS * OT_I8_PANEL];
    for (int64_t row = 0; row < j->m; row += ROWS)
        for (int64_t panel = first; panel < end; panel++)
            finish_rows(j, panel * OT_I8_PANEL, row, ot_min(ROWS, j->m - row), sums);
}

void ot_i8_multiply(const ot_i8_job *j, int64_t first, int64_t end)
{
    tile_fn run = best_tile();
    if (j->k == 0) {
        multiply_nothing(j, first, end);
        return;
    }
    if (j->way != OT_I8_PAIRS) {
        multiply_all_quads(j, first, end);
        return;
    }
    for (int64_t row = 0; row < j->m; row += ROWS)
        for (int64_t panel = first; panel < end; panel++)
            multiply_panel(j, run, panel, row, ot_min(ROWS, j->m - row));
}
