/* Instructions between float and quantized numbers of 8 bits.
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
        for (int64_t i = 0; i < n; i++) {                                               \
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
