#include "int8_quads.h"

#include "engine/core/simd.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_VNNI 1
#endif

/* ---- rows ---- */

OT_CLONES static int32_t sum_of_unsigned(const uint8_t *x, int64_t n)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

OT_CLONES static int32_t sum_of_signed(const int8_t *x, int64_t n)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

ot_i8_end ot_i8_end_of(const void *row, int64_t k, bool is_signed, int32_t zero)
{
    return (ot_i8_end){is_signed ? sum_of_signed(row, k) : sum_of_unsigned(row, k), zero};
}

/* ---- any machine ---- */

static void one_row(const ot_i8_quads *t, const uint8_t *a, const uint8_t *b, int32_t *to)
{
    int32_t sums[OT_I8_PANEL] = {0};
    for (int64_t q = 0; q < t->quads; q++, a += 4, b += 4 * OT_I8_PANEL)
        for (int64_t j = 0; j < OT_I8_PANEL; j++)
            for (int64_t e = 0; e < 4; e++)
                sums[j] += t->b_signed ? a[e] * (int8_t)b[4 * j + e] : (int8_t)a[e] * b[4 * j + e];
    memcpy(to, sums, sizeof sums);
}

static void quads_plain(const ot_i8_quads *t, int64_t height, int panels)
{
    for (int p = 0; p < panels; p++)
        for (int64_t i = 0; i < height; i++)
            one_row(t, t->a + i * t->row_step, t->b + p * t->quads * 4 * OT_I8_PANEL,
                    t->sums + p * t->sums_step + i * OT_I8_PANEL);
}

OT_CLONES static void sums_unsigned(const uint8_t *b, int64_t quads, int32_t *column)
{
    for (int64_t q = 0; q < quads; q++, b += 4 * OT_I8_PANEL)
        for (int64_t j = 0; j < OT_I8_PANEL; j++)
            column[j] += b[4 * j] + b[4 * j + 1] + b[4 * j + 2] + b[4 * j + 3];
}

OT_CLONES static void sums_signed(const int8_t *b, int64_t quads, int32_t *column)
{
    for (int64_t q = 0; q < quads; q++, b += 4 * OT_I8_PANEL)
        for (int64_t j = 0; j < OT_I8_PANEL; j++)
            column[j] += b[4 * j] + b[4 * j + 1] + b[4 * j + 2] + b[4 * j + 3];
}

/* ---- AVX-512 VNNI ---- */

#ifdef HAS_VNNI
#define VNNI        __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define VNNI_INLINE VNNI static inline __attribute__((always_inline))

VNNI_INLINE __m512i quad_of(const uint8_t *a)
{
    int32_t quad;
    memcpy(&quad, a, sizeof quad);
    return _mm512_set1_epi32(quad);
}

VNNI_INLINE __m512i load(const uint8_t *b) { return _mm512_loadu_si512((const void *)b); }

VNNI_INLINE __m512i step(__m512i sums, __m512i a, __m512i b, bool b_signed)
{
    return b_signed ? _mm512_dpbusd_epi32(sums, a, b) : _mm512_dpbusd_epi32(sums, b, a);
}

/* All but t are constants, so that sums are registers. */
VNNI_INLINE void multiply(const ot_i8_quads *t, int height, int panels, bool b_signed)
{
    __m512i s[6][2];
    const uint8_t *a = t->a, *b0 = t->b, *b1 = t->b + (panels > 1 ? t->quads * 4 * OT_I8_PANEL : 0);
    const int64_t r = t->row_step;
#pragma GCC unroll 6
    for (int i = 0; i < height; i++) s[i][0] = s[i][1] = _mm512_setzero_si512();
    for (int64_t q = 0; q < t->quads; q++, a += 4, b0 += 64, b1 += 64) {
        const __m512i lo = load(b0), hi = panels > 1 ? load(b1) : lo;
#pragma GCC unroll 6
        for (int i = 0; i < height; i++) {
            const __m512i quad = quad_of(a + i * r);
            s[i][0] = step(s[i][0], quad, lo, b_signed);
            if (panels > 1) s[i][1] = step(s[i][1], quad, hi, b_signed);
        }
    }
#pragma GCC unroll 6
    for (int i = 0; i < height; i++) {
        _mm512_storeu_si512(t->sums + i * OT_I8_PANEL, s[i][0]);
        if (panels > 1) _mm512_storeu_si512(t->sums + t->sums_step + i * OT_I8_PANEL, s[i][1]);
    }
}

#define ONE_SIGNED(t, h)   multiply(t, h, 1, true)
#define TWO_SIGNED(t, h)   multiply(t, h, 2, true)
#define ONE_UNSIGNED(t, h) multiply(t, h, 1, false)
#define TWO_UNSIGNED(t, h) multiply(t, h, 2, false)

VNNI static void one_signed(const ot_i8_quads *t, int64_t height)
{
    OT_BY_HEIGHT(ONE_SIGNED, t, height);
}
VNNI static void two_signed(const ot_i8_quads *t, int64_t height)
{
    OT_BY_HEIGHT(TWO_SIGNED, t, height);
}
VNNI static void one_unsigned(const ot_i8_quads *t, int64_t height)
{
    OT_BY_HEIGHT(ONE_UNSIGNED, t, height);
}
VNNI static void two_unsigned(const ot_i8_quads *t, int64_t height)
{
    OT_BY_HEIGHT(TWO_UNSIGNED, t, height);
}

static void quads_vnni(const ot_i8_quads *t, int64_t height, int panels)
{
    if (t->b_signed)
        (panels > 1 ? two_signed : one_signed)(t, height);
    else
        (panels > 1 ? two_unsigned : one_unsigned)(t, height);
}

VNNI static void sums_vnni(const uint8_t *b, int64_t quads, bool is_signed, int32_t *column)
{
    const __m512i ones = _mm512_set1_epi8(1);
    __m512i sums = _mm512_setzero_si512();
    for (int64_t q = 0; q < quads; q++, b += 64) sums = step(sums, ones, load(b), is_signed);
    _mm512_storeu_si512(column, sums);
}

static bool has_vnni(void)
{
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}
#endif

/* ---- what the machine has ---- */

ot_i8_way ot_i8_way_here(void)
{
#ifdef HAS_VNNI
    if (has_vnni()) return ot_i8_tiles_here() ? OT_I8_TILES : OT_I8_QUADS;
#endif
    return OT_I8_PAIRS;
}

ot_i8_quads_fn ot_i8_best_quads(void)
{
#ifdef HAS_VNNI
    if (has_vnni()) return quads_vnni;
#endif
    return quads_plain;
}

void ot_i8_column_sums(const uint8_t *panel, int64_t quads, bool is_signed, int32_t *column)
{
#ifdef HAS_VNNI
    if (has_vnni()) {
        sums_vnni(panel, quads, is_signed, column);
        return;
    }
#endif
    memset(column, 0, OT_I8_PANEL * sizeof *column);
    if (is_signed)
        sums_signed((const int8_t *)panel, quads, column);
    else
        sums_unsigned(panel, quads, column);
}
