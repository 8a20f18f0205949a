/* Functions of mathematics on single floats, without branches or calls: loops around them
 * vectorise.
 *
 *   exp(x):   x = n ln 2 + r, |r| <= ln 2 / 2        exp(x) = 2^n (1 + r + r^2 Q(r))
 *                                                              the exponent field of a float: n <<
 *                                                              23
 *
 * Nearly all others are made of exp(-|x|), which cannot overflow: with E for it,
 *
 *   silu     x (x < 0 ? E : 1) / (1 + E)   relative accuracy where it is tiny, too
 *   tanh     -m / (2 + m)                  m = exp(-2|x|) - 1, computed without cancellation
 *   softplus log1p(E) + max(x, 0)
 *   gelu     x Phi(x), Phi(-a) = exp(-a^2 / 2) R(a), a^2 in two parts: its rounding would be
 *            multiplied by 80
 *
 * Products x * f(x) with f below the smallest normal number keep a factor 2^32 in f until x is
 * multiplied in. NaN runs through: bounds are written `bound < x ? bound : x`, which is x for
 * NaN. Polynomials are evaluated in halves, which shortens the chain of dependent operations;
 * that counts more than their number. Comments give maximal relative errors measured over all
 * floats. Polynomials minimise the maximal relative error of the function.
 *
 * Files that include this allow contraction to multiply-add (OT_CHAIN_CONTRACT); nothing relies
 * on it.
 */
#ifndef OT_ENGINE_CPU_CHAIN_CHAIN_MATH_H
#define OT_ENGINE_CPU_CHAIN_CHAIN_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ISO mode forbids gcc to contract a * b + c; clang does it within an expression unless told
 * otherwise. */
#if defined(__GNUC__) && !defined(__clang__)
#define OT_CHAIN_CONTRACT _Pragma("GCC optimize(\"fp-contract=fast\")")
#else
#define OT_CHAIN_CONTRACT
#endif

/* Compiled along with the loop around it, for its instruction set. */
#define CM_INLINE static inline __attribute__((always_inline))

CM_INLINE uint32_t cm_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

CM_INLINE float cm_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

#define CM_LOG2E  1.44269504f
#define CM_LN2_HI 0.693359375f /* nine bits: multiples by small integers are exact */
#define CM_LN2_LO -2.12194440e-4f
/* 1.5 * 2^23: added and subtracted it rounds to integers, which its low bits then hold */
#define CM_ROUND      12582912.0f
#define CM_ONE        0x3f800000u /* bits of 1.0f */
#define CM_SCALE      0x1p32f     /* extra factor of tiny numbers */
#define CM_SCALED_OUT 110.5f      /* exp(-x) * CM_SCALE is computed as 0 here */
#define CM_OUT        88.0f       /* exp(-x) is computed as 0 here: it is less than 1.2e-38 */

/* Bounds whose values the compiler does not know: against a constant it compares and blends,
 * against a number in a register it takes the one instruction for minima (maxima) that does the
 * same, NaN included. Made outside of loops. */
typedef struct cm_limits {
    float out, scaled_out, overflow, tiny, erf, gelu, gelu_low, gelu_high;
} cm_limits;

CM_INLINE float cm_unknown(float f)
{
    uint32_t u = cm_bits(f);
    __asm__("" : "+r"(u));
    return cm_float(u);
}

CM_INLINE cm_limits cm_make_limits(void)
{
    return (cm_limits){.out = cm_unknown(CM_OUT),
                       .scaled_out = cm_unknown(-CM_SCALED_OUT),
                       .overflow = cm_unknown(89.0f),
                       .tiny = cm_unknown(-40.0f),
                       .erf = cm_unknown(4.0f),
                       .gelu = cm_unknown(13.27f),
                       .gelu_low = cm_unknown(-10.92f),
                       .gelu_high = cm_unknown(9.9f)};
}

CM_INLINE float cm_at_most(float x, float most) { return most < x ? most : x; }
CM_INLINE float cm_at_least(float x, float least) { return least > x ? least : x; }
CM_INLINE int cm_is_negative(float x) { return (int32_t)cm_bits(x) < 0; } /* also -0 */

/* x = n ln 2 + *r; returns n << 23. */
CM_INLINE uint32_t cm_reduce(float x, float *r)
{
    float z = x * CM_LOG2E + CM_ROUND, n = z - CM_ROUND;
    *r = (x - n * CM_LN2_HI) - n * CM_LN2_LO;
    return cm_bits(z) << 23;
}

/* exp(r) - 1 for |r| <= ln 2 / 2 (3e-9). */
CM_INLINE float cm_expm1_part(float r)
{
    float s = r * r, low = r * 1.666652113e-01f + 4.999999404e-01f;
    float high = (s * 1.382090268e-03f + (r * 8.368670940e-03f + 4.166826233e-02f));
    return (high * s + low) * s + r;
}

/* exp(r), a little less accurate (1.1e-7 before rounding). */
CM_INLINE float cm_exp_part(float r)
{
    float s = r * r, high = r * 8.312590420e-03f + 4.189024866e-02f,
          low = r * 1.666711420e-01f + 4.999923110e-01f;
    return (high * s + low) * s + (r + 1.0f);
}

/* 1 ulp; 0 where the result is less than the smallest normal number. */
CM_INLINE float cm_exp(float x)
{
    float r;
    uint32_t n = cm_reduce(x, &r);
    float y = cm_float(cm_bits(cm_expm1_part(r) + 1.0f) + n);
    y = x < -87.33654f ? 0.0f : y;
    return x <= 88.72283f ? y : x + INFINITY; /* also NaN */
}

/* exp(-a) for 0 <= a <= CM_OUT. */
CM_INLINE float cm_exp_down(float a)
{
    float r;
    uint32_t n = cm_reduce(-a, &r);
    return cm_exp_part(r) * cm_float(n + CM_ONE);
}

/* exp(x) - 1 for x <= 0, accurate near 0, too; anything for x > 0. */
CM_INLINE float cm_expm1_down(float x, cm_limits l)
{
    float r;
    uint32_t n = cm_reduce(cm_at_least(x, l.tiny), &r);
    float scale = cm_float(n + CM_ONE);
    return scale * cm_expm1_part(r) + (scale - 1.0f);
}

/* 1 / (1 + exp(-x)); the exponential is infinite from 88.4 on, where the result is less than
 * 1.2e-38. */
CM_INLINE float cm_sigmoid(float x, cm_limits l)
{
    float r;
    uint32_t n = cm_reduce(cm_at_least(cm_at_most(-x, l.overflow), -l.out), &r);
    return 1.0f / (cm_exp_part(r) * cm_float(n + CM_ONE) + 1.0f);
}

/* x * sigmoid(t), t of the sign of x: x E / (E + 1) below 0, both E and 1 scaled, and x / (E +
 * 1) above. */
CM_INLINE float cm_gate(float x, float t, cm_limits l)
{
    float r, a = fabsf(cm_at_least(cm_at_most(t, l.out), l.scaled_out));
    float one = cm_is_negative(t) ? CM_SCALE : 1.0f;
    uint32_t n = cm_reduce(-a, &r);
    float e = cm_exp_part(r) * cm_float(n + cm_bits(one));
    return x * (cm_is_negative(t) ? e : 1.0f) / (e + one);
}

CM_INLINE float cm_tanh(float x, cm_limits l)
{
    float m = cm_expm1_down(-2.0f * fabsf(x), l);
    return copysignf(m / (m + 2.0f), x);
}

/* erf: x P(x^2) up to 1; 1 - exp(-G(|x|)) up to 4, from where on it is 1. */
CM_INLINE float cm_erf(float x, cm_limits l)
{
    float a = cm_at_most(fabsf(x), l.erf), s = x * x;
    float p = -5.554363015e-04f;
    p = p * s + 4.898362327e-03f;
    p = p * s + -2.669454552e-02f;
    p = p * s + 1.127957627e-01f;
    p = p * s + -3.761224747e-01f;
    p = p * s + 1.128379107e+00f;
    float g = 1.157166087e-03f;
    g = g * a + -1.483142562e-02f;
    g = g * a + 8.879843354e-02f;
    g = g * a + 6.542420387e-01f;
    g = g * a + 1.117619753e+00f;
    g = g * a + 2.619631356e-03f;
    float large = copysignf(1.0f - cm_exp_down(g), x);
    return a < 1.0f ? x * p : large;
}

/* exp(a^2 / 2) Phi(-a) for a >= 0 (3e-8): a polynomial of t = 1 / (1 + 0.35 a), by Horner's
 * rule, which rounds least here. */
CM_INLINE float cm_normal_tail(float a)
{
    float t = 1.0f / (a * 0.35f + 1.0f);
    float p = -2.913143486e-02f;
    p = p * t + 1.438996941e-01f;
    p = p * t + -2.555621266e-01f;
    p = p * t + 1.589961350e-01f;
    p = p * t + -2.298402041e-02f;
    p = p * t + 1.054532006e-01f;
    p = p * t + 1.198471859e-01f;
    p = p * t + 1.398598254e-01f;
    p = p * t + 1.396215260e-01f;
    return t * p;
}

CM_INLINE float cm_gelu(float x, cm_limits l)
{
    float a = cm_at_most(fabsf(x), l.gelu); /* from where on exp(-a^2 / 2) is computed as 0 */
    /* exact: twelve bits */
    float coarse = cm_float(cm_bits(a) & 0xfffff000u), half = coarse * coarse * 0.5f;
    float rest = (a - coarse) * (a + coarse) * 0.5f;
    float r;
    uint32_t n = cm_reduce(-half, &r);
    /* r - rest is up to 0.4 */
    float p = cm_expm1_part(r - rest), e = cm_float(n + CM_ONE), tail = cm_normal_tail(a);
    float below = x * tail * e, above = a * tail * e;
    below = below * p + below;
    above = x - (above * p + above);
    return x < 0 ? below : above;
}

/* x sigmoid(w), w = 2 sqrt(2 / pi) (x + 0.044715 x^3): w in double, as its rounding would be
 * multiplied by 80. The bounds of x are where w is -110.3, from where on exp(w) * CM_SCALE is
 * computed as 0, and 85. */
CM_INLINE float cm_gelu_tanh(float x, cm_limits l)
{
    const double k = 1.5957691216057308, round = 6755399441055744.0; /* 1.5 * 2^52 */
    double d = (double)cm_at_least(cm_at_most(x, l.gelu_high), l.gelu_low),
           w = fabs(d * (d * d * (0.044715 * k) + k));
    double n = (w * -1.4426950408889634 + round) - round;
    float r = (float)(-w - n * 0.6931471805599453), z = (float)n + CM_ROUND,
          one = cm_is_negative(x) ? CM_SCALE : 1.0f;
    float e = cm_exp_part(r) * cm_float((cm_bits(z) << 23) + cm_bits(one));
    return x * (cm_is_negative(x) ? e : 1.0f) / (e + one);
}

/* log1p(e) for 0 <= e <= 1: 2 atanh(s), s = e / (2 + e). */
CM_INLINE float cm_log1p_unit(float e)
{
    float s = e / (2.0f + e), q = s * s;
    float p = 2.424591035e-01f;
    p = p * q + 2.144379169e-01f;
    p = p * q + 2.861521542e-01f;
    p = p * q + 3.999894857e-01f;
    p = p * q + 6.666667461e-01f;
    return s * (q * p) + 2.0f * s;
}

CM_INLINE float cm_softplus(float x, cm_limits l)
{
    return cm_log1p_unit(cm_exp_down(cm_at_most(fabsf(x), l.out))) + (x > 0 ? x : 0.0f);
}

/* x tanh(softplus(x)) = x e (e + 2) / (e (e + 2) + 2), e = exp(x). */
CM_INLINE float cm_mish(float x)
{
    float t = x > 20.0f ? 20.0f : x, r;
    t = t < -CM_SCALED_OUT ? -CM_SCALED_OUT : t;
    uint32_t n = cm_reduce(t, &r);
    float scaled = (cm_expm1_part(r) + 1.0f) * cm_float(n + cm_bits(CM_SCALE)),
          e = scaled * (1.0f / CM_SCALE);
    float y = x * scaled * ((e + 2.0f) / (e * (e + 2.0f) + 2.0f)) * (1.0f / CM_SCALE);
    return x > 20.0f ? x : y;
}

/* 1 ulp; also of numbers below the normal ones. */
CM_INLINE float cm_log(float x)
{
    float tiny = x < 0x1p-126f ? 0x1p23f : 1.0f, shift = x < 0x1p-126f ? -23.0f : 0.0f;
    uint32_t u = cm_bits(x * tiny) - 0x3f3504f3u; /* of sqrt(1 / 2): mantissas lie around 1 */
    float e = (float)((int32_t)u >> 23) + shift, f = cm_float((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float s = f * f;
    float even = s * 6.748725474e-02f + 1.188360974e-01f,
          odd = s * -1.166980267e-01f + -1.240627617e-01f;
    even = even * s + 1.422035694e-01f;
    odd = odd * s + -1.666798741e-01f;
    even = even * s + 2.000207156e-01f;
    odd = odd * s + -2.500000894e-01f;
    even = even * s + 3.333331347e-01f;
    float y = s * f * (odd * f + even) + e * CM_LN2_LO;
    y = (f + (y - 0.5f * s)) + e * CM_LN2_HI;
    y = x > 0 ? y : x == 0 ? -INFINITY : NAN;
    return x < INFINITY ? y : x; /* also NaN */
}

#define CM_ANGLE_MAX 1e4f /* sin and cos are accurate below */

/* sin(x + quarter pi / 2) for |x| < CM_ANGLE_MAX. */
CM_INLINE float cm_sin(float x, uint32_t quarter)
{
    const double round = 6755399441055744.0;
    double d = (double)x, n = (d * 0.6366197723675814 + round) - round;
    /* pi / 2, 33 bits and the rest */
    float r = (float)((d - n * 1.5707963267341256) - n * 6.077100506506192e-11);
    uint32_t k = cm_bits((float)n + CM_ROUND) + quarter;
    float s = r * r;
    float p = s * 2.832511655e-06f + -1.985306444e-04f;
    p = p * s + 8.333379403e-03f;
    p = p * s + -1.666666716e-01f;
    float c = s * -2.887984465e-07f + 2.482201489e-05f;
    c = c * s + -1.388898003e-03f;
    c = c * s + 4.166666791e-02f;
    float sine = r * s * p + r, cosine = (s * s * c - 0.5f * s) + 1.0f;
    float y = k & 1u ? cosine : sine;
    return cm_float(cm_bits(y) ^ (k & 2u) << 30);
}

#endif
