/* Instructions between float and quantized numbers of 8 bits, and tables of 256 of them.
 *
 *   from  (q - zero) * scale                        a difference of small integers, rounded once
 *   to    clamp(round-half-even(x / scale) + zero)  the division that QuantizeLinear asks for; NaN
 *         becomes the least
 *
 * Scale and zero point are one number each for the block. Elements are what quantize.c computes,
 * bit by bit.
 */
#include "chain_ops.h"

#include "chain_math.h"
#include "engine/core/simd.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(OT_ONE_ISA)
#include <immintrin.h>
#define HAS_VBMI 1
#endif

#ifdef HAS_VBMI
/* Bytes of x, 16 at a time. A division takes longer than all else, so that x is multiplied with
 * 1 / scale, which is within 1e-4 of the quotient where that is at most 512; what may lie on the
 * other side of a half is divided. Returns how many were done. */
__attribute__((target("avx512f,avx512bw"))) static int64_t
quantize_wide(uint8_t *to, const float *x, float scale, float zero, float least, int64_t n)
{
    const float one = 1.0f / scale;
    int64_t i = 0;
    if (!(scale >= 1e-30f && scale <= 1e30f)) return 0;
    const __m512 low = _mm512_set1_ps(least), high = _mm512_set1_ps(least + 255.0f),
                 by = _mm512_set1_ps(one), half = _mm512_set1_ps(0.4998f);
    const __m512i shift = _mm512_set1_epi32((int32_t)zero);
    for (; i + 16 <= n; i += 16) {
        const __m512 v = _mm512_loadu_ps(x + i);
        __m512 q = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(v, by), low), high);
        __m512i r = _mm512_cvtps_epi32(q);
        const __m512 rest = _mm512_abs_ps(_mm512_sub_ps(q, _mm512_cvtepi32_ps(r)));
        if (_mm512_cmp_ps_mask(rest, half, _CMP_GT_OQ)) {
            q = _mm512_div_ps(v, _mm512_set1_ps(scale));
            r = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(q, low), high));
        }
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm512_cvtepi32_epi8(_mm512_add_epi32(r, shift)));
    }
    return i;
}

static int64_t some_bytes(void *to, const float *x, float scale, float zero, float least, int64_t n)
{
    return __builtin_cpu_supports("avx512bw") ? quantize_wide(to, x, scale, zero, least, n) : 0;
}
#else
static int64_t some_bytes(void *to, const float *x, float scale, float zero, float least, int64_t n)
{
    (void)to, (void)x, (void)scale, (void)zero, (void)least, (void)n;
    return 0;
}
#endif

/* Adding it rounds to an integer (to nearest, ties to even) what is at most 2^22 in size. */
#define ROUNDING 12582912.0f

#define FROM(name, type)                                                                \
    OT_CLONES void name(ot_chain_code code, unsigned single, void *to_, const void *a_, \
                        const void *b_, const void *c_, int64_t n)                      \
    {                                                                                   \
        (void)code, (void)single;                                                       \
        float *restrict to = to_;                                                       \
        const type *restrict a = a_;                                                    \
        const float scale = *(const float *)b_, zero = *(const float *)c_;              \
        for (int64_t i = 0; i < n; i++) to[i] = ((float)a[i] - zero) * scale;           \
    }

/* The clamp comes before rounding, which changes nothing since its bounds are integers. */
#define TO(name, type, lowest)                                                          \
    OT_CLONES void name(ot_chain_code code, unsigned single, void *to_, const void *a_, \
                        const void *b_, const void *c_, int64_t n)                      \
    {                                                                                   \
        (void)code, (void)single;                                                       \
        type *restrict to = to_;                                                        \
        const float *restrict a = a_;                                                   \
        const float scale = *(const float *)b_, zero = *(const float *)c_;              \
        const float least = (float)(lowest)-zero, most = least + 255.0f;                \
        for (int64_t i = some_bytes(to, a, scale, zero, least, n); i < n; i++) {        \
            float q = a[i] / scale;                                                     \
            q = q > least ? q : least;                                                  \
            q = q < most ? q : most;                                                    \
            to[i] = (type)(int32_t)(((q + ROUNDING) - ROUNDING) + zero);                \
        }                                                                               \
    }

FROM(ot_chain_from_u8, uint8_t)
FROM(ot_chain_from_i8, int8_t)
TO(ot_chain_to_u8, uint8_t, 0)
TO(ot_chain_to_i8, int8_t, INT8_MIN)

void ot_chain_copy_bytes(ot_chain_code code, unsigned single, void *to, const void *a,
                         const void *b, const void *c, int64_t n)
{
    (void)code, (void)single, (void)b, (void)c;
    memmove(to, a, (size_t)n);
}

/* ---- tables ---- */

#ifdef HAS_VBMI
/* 64 elements at a time: a table is four registers. Returns how many were done. */
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static int64_t
look_up_vbmi(uint8_t *to, const uint8_t *a, const uint8_t *table, int64_t n)
{
    const __m512i t0 = _mm512_loadu_si512((const void *)table),
                  t1 = _mm512_loadu_si512((const void *)(table + 64)),
                  t2 = _mm512_loadu_si512((const void *)(table + 128)),
                  t3 = _mm512_loadu_si512((const void *)(table + 192));
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        const __m512i x = _mm512_loadu_si512((const void *)(a + i));
        const __m512i low = _mm512_permutex2var_epi8(t0, x, t1),
                      high = _mm512_permutex2var_epi8(t2, x, t3);
        _mm512_storeu_si512((void *)(to + i),
                            _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
    }
    return i;
}
#endif

void ot_chain_look_up(ot_chain_code code, unsigned single, void *to_, const void *a_, const void *b,
                      const void *c, int64_t n)
{
    (void)code, (void)single, (void)c;
    uint8_t *to = to_;
    const uint8_t *a = a_, *table;
    int64_t i = 0;
    memcpy(&table, b, sizeof table);
#ifdef HAS_VBMI
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw"))
        i = look_up_vbmi(to, a, table, n);
#endif
    for (; i < n; i++) to[i] = table[a[i]];
}
