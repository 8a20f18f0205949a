/* Floats of 16 bits, one at a time.
 *
 *   float16    s eeeee ffffffffff     bias 15; subnormal below 2^-14, infinite from 65520 on
 *   bfloat16   s eeeeeeee fffffff     the upper half of a float32
 *
 * Widening is exact. Narrowing goes to nearest, ties to even, and rounds once. NaN stays NaN, and
 * is a quiet one afterwards, as processors do it. No branches and no subnormal operands: loops
 * over them become vector code, and a thread that flushes subnormals computes the same.
 */
#ifndef OT_BASE_HALF_FLOAT_H
#define OT_BASE_HALF_FLOAT_H

#include <stdint.h>
#include <string.h>

static inline uint32_t ot_float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float ot_float_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Exponents are 112 apart. */
static inline float ot_f16_to_f32(uint16_t h)
{
    uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t normal = (magnitude << 13) + (112u << 23);
    uint32_t small = ot_float_bits((float)(int32_t)magnitude * 0x1p-24f);
    uint32_t special = magnitude << 13 | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0);
    uint32_t bits = magnitude < 0x400u ? small : normal;
    return ot_float_of_bits(sign | (magnitude >= 0x7c00u ? special : bits));
}

/* Numbers below the least normal one are rounded by adding 1/2, whose last place is their unit;
 * a carry of the others goes on into the exponent. */
static inline uint16_t ot_f32_to_f16(float f)
{
    uint32_t u = ot_float_bits(f), magnitude = u & 0x7fffffffu;
    uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
    uint32_t small = ot_float_bits(ot_float_of_bits(magnitude) + 0.5f) - ot_float_bits(0.5f);
    uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t h = magnitude < (113u << 23) ? small : normal;
    return (uint16_t)((u >> 16 & 0x8000u) | (magnitude >= 0x477ff000u ? large : h));
}

static inline float ot_bf16_to_f32(uint16_t h) { return ot_float_of_bits((uint32_t)h << 16); }

static inline uint16_t ot_f32_to_bf16(float f)
{
    uint32_t u = ot_float_bits(f), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? u >> 16 | 0x40u : rounded);
}

/* ---- half_float.c: from doubles, where rounding to float32 first could round twice ---- */

uint16_t ot_f64_to_f16(double d);
uint16_t ot_f64_to_bf16(double d);

#endif
