/* See half.h.
 *
 *   AVX-512, AVX2   float16 by the processor's own conversions (every processor with AVX2 has
 *                   them), 16 or 8 at a time
 *   else            in integers: loops that the compiler makes vector code of
 *
 * What is left over at the end of a row goes through a buffer of one vector, so that each
 * element is converted by the same instructions wherever it lies.
 */
#include "half.h"

#include "simd.h"

#include "base/half_float.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HALF_X86
#endif

/* ---- float16 in integers ---- */

OT_CLONES static void widen_plain(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ot_f16_to_f32(from[i]);
}

OT_CLONES static void narrow_plain(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ot_f32_to_f16(from[i]);
}

/* ---- bfloat16 ---- */

OT_CLONES static void widen_brain(float *restrict to, const uint16_t *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ot_bf16_to_f32(from[i]);
}

OT_CLONES static void narrow_brain(uint16_t *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = ot_f32_to_bf16(from[i]);
}

/* ---- float16 by the processor ---- */

#ifdef HALF_X86

__attribute__((target("avx512f"))) static void widen_512(float *to, const uint16_t *from, int64_t n)
{
    int64_t i = 0;
    uint16_t rest[16] = {0};
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(
            to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(from + i))));
    if (i == n) return;
    memcpy(rest, from + i, (size_t)(n - i) * sizeof *from);
    _mm512_mask_storeu_ps(to + i, (__mmask16)((1u << (n - i)) - 1),
                          _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)rest)));
}

__attribute__((target("avx512f"))) static void narrow_512(uint16_t *to, const float *from,
                                                          int64_t n)
{
    int64_t i = 0;
    uint16_t rest[16];
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(to + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    if (i == n) return;
    __m512 v = _mm512_maskz_loadu_ps((__mmask16)((1u << (n - i)) - 1), from + i);
    _mm256_storeu_si256((__m256i *)(void *)rest, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    memcpy(to + i, rest, (size_t)(n - i) * sizeof *to);
}

__attribute__((target("avx2,f16c"))) static void widen_256(float *to, const uint16_t *from,
                                                           int64_t n)
{
    int64_t i = 0;
    uint16_t rest[8] = {0};
    float wide[8];
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + i))));
    if (i == n) return;
    memcpy(rest, from + i, (size_t)(n - i) * sizeof *from);
    _mm256_storeu_ps(wide, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)rest)));
    memcpy(to + i, wide, (size_t)(n - i) * sizeof *to);
}

__attribute__((target("avx2,f16c"))) static void narrow_256(uint16_t *to, const float *from,
                                                            int64_t n)
{
    int64_t i = 0;
    uint16_t rest[8];
    float wide[8] = {0};
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    if (i == n) return;
    memcpy(wide, from + i, (size_t)(n - i) * sizeof *from);
    _mm_storeu_si128((__m128i *)(void *)rest,
                     _mm256_cvtps_ph(_mm256_loadu_ps(wide), _MM_FROUND_TO_NEAREST_INT));
    memcpy(to + i, rest, (size_t)(n - i) * sizeof *to);
}

static bool has_512(void) { return __builtin_cpu_supports("avx512f"); }
static bool has_256(void) { return __builtin_cpu_supports("avx2"); }

#else

static bool has_512(void) { return false; }
static bool has_256(void) { return false; }
#define widen_512  widen_plain
#define narrow_512 narrow_plain
#define widen_256  widen_plain
#define narrow_256 narrow_plain

#endif

/* ---- rows ---- */

void ot_half_widen(ot_dtype t, float *to, const uint16_t *from, int64_t n)
{
    if (t == OT_BF16)
        widen_brain(to, from, n);
    else if (has_512())
        widen_512(to, from, n);
    else if (has_256())
        widen_256(to, from, n);
    else
        widen_plain(to, from, n);
}

void ot_half_narrow(ot_dtype t, uint16_t *to, const float *from, int64_t n)
{
    if (t == OT_BF16)
        narrow_brain(to, from, n);
    else if (has_512())
        narrow_512(to, from, n);
    else if (has_256())
        narrow_256(to, from, n);
    else
        narrow_plain(to, from, n);
}

/* ---- boxes ---- */

/* A box of which both sides run on along the last dim. */
typedef struct lines {
    uint32_t rank; /* of the dims before it */
    int64_t n, count, dims[OT_HALF_RANK], a[OT_HALF_RANK], b[OT_HALF_RANK];
} lines;

static lines lines_of(uint32_t rank, const int64_t *dims, const int64_t *a, const int64_t *b)
{
    lines l = {.n = 1, .count = 1};
    uint32_t k = rank;
    while (k > 0 && (dims[k - 1] == 1 || (a[k - 1] == l.n && b[k - 1] == l.n))) l.n *= dims[--k];
    for (uint32_t d = 0; d < k; d++) {
        if (dims[d] == 1) continue;
        l.dims[l.rank] = dims[d];
        l.a[l.rank] = a[d];
        l.b[l.rank++] = b[d];
        l.count *= dims[d];
    }
    return l;
}

static void line_at(const lines *l, int64_t i, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (uint32_t k = l->rank; k-- > 0; i /= l->dims[k]) {
        *a += i % l->dims[k] * l->a[k];
        *b += i % l->dims[k] * l->b[k];
    }
}

void ot_half_widen_box(ot_dtype t, uint32_t rank, const int64_t *dims, float *to,
                       const int64_t *to_strides, const uint16_t *from, const int64_t *from_strides)
{
    const lines l = lines_of(rank, dims, to_strides, from_strides);
    for (int64_t i = 0, a, b; i < l.count; i++) {
        line_at(&l, i, &a, &b);
        ot_half_widen(t, to + a, from + b, l.n);
    }
}

void ot_half_narrow_box(ot_dtype t, uint32_t rank, const int64_t *dims, uint16_t *to,
                        const int64_t *to_strides, const float *from, const int64_t *from_strides)
{
    const lines l = lines_of(rank, dims, to_strides, from_strides);
    for (int64_t i = 0, a, b; i < l.count; i++) {
        line_at(&l, i, &a, &b);
        ot_half_narrow(t, to + a, from + b, l.n);
    }
}
