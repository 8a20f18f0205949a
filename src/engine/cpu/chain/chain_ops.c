/* Instructions that are a few machine operations an element: arithmetic, limits, comparisons,
 * logic.
 *
 *   pair     x op y, x op s, s op y  s: one number for the block, held in a register of the machine
 *   triple   x * y + z               y, z or both one number
 *   choice   m ? x : y               x, y or both one number
 *
 * One function holds all instructions of a shape, a loop for each. Result and operands may be
 * the same block, hence `omp simd`: iterations do not depend on one another. What the loops
 * leave to the C library (pow, fmod) is in `slow`.
 */
#include "chain_ops.h"
#include "chain_math.h"
#include "chain_loops.h"
#include "engine/core/simd.h"

OT_CHAIN_CONTRACT

#ifdef __clang__
#pragma clang diagnostic ignored \
    "-Wpass-failed" /* floor and the like are calls on machines before SSE4.1 */
#endif

const ot_chain_code_info ot_chain_codes[OT_CH_COUNT] = {
#define CODE(name, function, operands, types, parameters, work) \
    [OT_CH_##name] = {ot_chain_##function, operands, parameters, work, types},
    OT_CHAIN_CODES
#undef CODE
};

unsigned ot_chain_singles(ot_chain_code code, unsigned single)
{
    const ot_chain_code_info *info = &ot_chain_codes[code];
    unsigned parameters = ((1u << info->parameters) - 1) << (info->operands - info->parameters);
    ot_chain_function f = info->run;
    if (f == ot_chain_pair || f == ot_chain_compare) return single == 3 ? 1 : single;
    if (f == ot_chain_slow) return single;
    if (f == ot_chain_triple || f == ot_chain_choice) return single & 6u;
    return single & parameters;
}

/* ---- one operand, and constants ---- */

CM_INLINE float hard_sigmoid(float x, float alpha, float beta)
{
    float y = alpha * x + beta;
    y = y < 0 ? 0.0f : y;
    return y > 1 ? 1.0f : y;
}

CM_INLINE float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
CM_INLINE float shrink(float x, float lambd, float bias)
{
    return x < -lambd ? x + bias : x > lambd ? x - bias : 0.0f;
}
CM_INLINE float clip(float x, float lo, float hi)
{
    float y = x < lo ? lo : x;
    return y > hi ? hi : y;
}
/* pow(x, 0.5) */
CM_INLINE float root(float x) { return x == -INFINITY ? INFINITY : sqrtf(x) + 0.0f; }
CM_INLINE float softsign(float x) { return fabsf(x) == INFINITY ? sign(x) : x / (1.0f + fabsf(x)); }

OT_CLONES void ot_chain_plain(ot_chain_code code, unsigned single, void *to_, const void *a_,
                              const void *b_, const void *c_, int64_t n)
{
    (void)single;
    float *to = to_;
    const float *a = a_, p = b_ ? *(const float *)b_ : 0, q = c_ ? *(const float *)c_ : 0;
    switch ((int)code) {
        CASE(NEG, -x);
        CASE(ABS, fabsf(x));
        CASE(SQRT, sqrtf(x));
        CASE(ROOT, root(x));
        CASE(RECIPROCAL, 1.0f / x);
        CASE(RELU, x < 0 ? 0.0f : x);
        CASE(FLOOR, floorf(x));
        CASE(CEIL, ceilf(x));
        CASE(ROUND, rintf(x));
        CASE(SIGN, sign(x));
        CASE(SOFTSIGN, softsign(x));
        CASE(HARDSWISH, x * hard_sigmoid(x, 1.0f / 6, 0.5f));
        CASE(HARDSIGMOID, hard_sigmoid(x, p, q));
        CASE(CLIP, clip(x, p, q));
        CASE(THRESHOLD, x > p ? x : 0.0f);
        CASE(SHRINK, shrink(x, p, q));
    default: memmove(to, a, (size_t)n * sizeof *to); break; /* COPY */
    }
}
#undef CASE

/* ---- two operands ---- */

CM_INLINE float add(float x, float y) { return x + y; }
CM_INLINE float sub(float x, float y) { return x - y; }
CM_INLINE float mul(float x, float y) { return x * y; }
CM_INLINE float divide(float x, float y) { return x / y; }
/* NaN wins. */
CM_INLINE float min(float x, float y) { return ((y < x) | (y != y)) ? y : x; }
CM_INLINE float max(float x, float y) { return ((y > x) | (y != y)) ? y : x; }
CM_INLINE float prelu(float x, float y) { return x < 0 ? x * y : x; }
CM_INLINE float at_least(float x, float y) { return x < y ? y : x; }
CM_INLINE float at_most(float x, float y) { return x > y ? y : x; }

#define CASE(name, f)                   \
    case OT_CH_##name:                  \
        if (single & 1u) {              \
            float x = *a;               \
            EACH to[i] = f(x, b[i]);    \
        } else if (single & 2u) {       \
            float y = *b;               \
            EACH to[i] = f(a[i], y);    \
        } else {                        \
            EACH to[i] = f(a[i], b[i]); \
        }                               \
        break

OT_CLONES void ot_chain_pair(ot_chain_code code, unsigned single, void *to_, const void *a_,
                             const void *b_, const void *c_, int64_t n)
{
    (void)c_;
    float *to = to_;
    const float *a = a_, *b = b_;
    switch ((int)code) {
        CASE(ADD, add);
        CASE(SUB, sub);
        CASE(MUL, mul);
        CASE(DIV, divide);
        CASE(MIN, min);
        CASE(MAX, max);
        CASE(PRELU, prelu);
        CASE(AT_LEAST, at_least);
        CASE(AT_MOST, at_most);
    default: break;
    }
}

CM_INLINE uint8_t equal(float x, float y) { return x == y; }
CM_INLINE uint8_t greater(float x, float y) { return x > y; }
CM_INLINE uint8_t greater_equal(float x, float y) { return x >= y; }
CM_INLINE uint8_t less(float x, float y) { return x < y; }
CM_INLINE uint8_t less_equal(float x, float y) { return x <= y; }

OT_CLONES void ot_chain_compare(ot_chain_code code, unsigned single, void *to_, const void *a_,
                                const void *b_, const void *c_, int64_t n)
{
    (void)c_;
    uint8_t *to = to_;
    const float *a = a_, *b = b_;
    switch ((int)code) {
        CASE(EQUAL, equal);
        CASE(GREATER, greater);
        CASE(GREATER_EQUAL, greater_equal);
        CASE(LESS, less);
        CASE(LESS_EQUAL, less_equal);
    default: break;
    }
}
#undef CASE

void ot_chain_slow(ot_chain_code code, unsigned single, void *to_, const void *a_, const void *b_,
                   const void *c_, int64_t n)
{
    (void)c_;
    float *to = to_;
    const float *a = a_, *b = b_;
    int64_t step_a = single & 1u ? 0 : 1, step_b = single & 2u ? 0 : 1;
    for (int64_t i = 0; i < n; i++) {
        float x = a[i * step_a], y = b[i * step_b];
        to[i] = code == OT_CH_POW ? powf(x, y) : fmodf(x, y);
    }
}

/* ---- three operands ---- */

OT_CLONES void ot_chain_triple(ot_chain_code code, unsigned single, void *to_, const void *a_,
                               const void *b_, const void *c_, int64_t n)
{
    (void)code; /* MUL_ADD */
    float *to = to_;
    const float *a = a_, *b = b_, *c = c_, y = *b, z = *c;
    switch (single) {
    case 6: EACH to[i] = a[i] * y + z; break;
    case 4: EACH to[i] = a[i] * b[i] + z; break;
    case 2: EACH to[i] = a[i] * y + c[i]; break;
    default: EACH to[i] = a[i] * b[i] + c[i]; break;
    }
}

OT_CLONES static void choose_float(unsigned single, float *to, const uint8_t *m, const float *b,
                                   const float *c, int64_t n)
{
    float x = *b, y = *c;
    switch (single) {
    case 6: EACH to[i] = m[i] ? x : y; break;
    case 4: EACH to[i] = m[i] ? b[i] : y; break;
    case 2: EACH to[i] = m[i] ? x : c[i]; break;
    default:
        EACH
        {
            float u = b[i], v = c[i];
            to[i] = m[i] ? u : v;
        }
        break;
    }
}

OT_CLONES static void choose_mask(unsigned single, uint8_t *to, const uint8_t *m, const uint8_t *b,
                                  const uint8_t *c, int64_t n)
{
    uint8_t x = *b != 0, y = *c != 0;
    switch (single) {
    case 6: EACH to[i] = m[i] ? x : y; break;
    case 4: EACH to[i] = m[i] ? b[i] != 0 : y; break;
    case 2: EACH to[i] = m[i] ? x : c[i] != 0; break;
    default:
        EACH
        {
            uint8_t u = b[i] != 0, v = c[i] != 0;
            to[i] = m[i] ? u : v;
        }
        break;
    }
}

void ot_chain_choice(ot_chain_code code, unsigned single, void *to, const void *a, const void *b,
                     const void *c, int64_t n)
{
    if (code == OT_CH_WHERE)
        choose_float(single, to, a, b, c, n);
    else
        choose_mask(single, to, a, b, c, n);
}

/* ---- masks ---- */

OT_CLONES void ot_chain_test(ot_chain_code code, unsigned single, void *to_, const void *a_,
                             const void *b_, const void *c_, int64_t n)
{
    (void)single, (void)b_, (void)c_;
    uint8_t *to = to_;
    const float *a = a_;
    switch ((int)code) {
    case OT_CH_IS_NAN: EACH to[i] = a[i] != a[i]; break;
    case OT_CH_IS_INF: EACH to[i] = fabsf(a[i]) == INFINITY; break;
    case OT_CH_IS_PLUS_INF: EACH to[i] = a[i] == INFINITY; break;
    case OT_CH_IS_MINUS_INF: EACH to[i] = a[i] == -INFINITY; break;
    default: EACH to[i] = a[i] != 0; break; /* NOT_ZERO */
    }
}

OT_CLONES void ot_chain_to_float(ot_chain_code code, unsigned single, void *to_, const void *a_,
                                 const void *b_, const void *c_, int64_t n)
{
    (void)code, (void)single, (void)b_, (void)c_;
    float *to = to_;
    const uint8_t *a = a_;
    EACH to[i] = a[i] ? 1.0f : 0.0f;
}

OT_CLONES void ot_chain_logic(ot_chain_code code, unsigned single, void *to_, const void *a_,
                              const void *b_, const void *c_, int64_t n)
{
    (void)single, (void)c_;
    uint8_t *to = to_;
    const uint8_t *a = a_, *b = b_;
    switch ((int)code) {
    case OT_CH_NOT: EACH to[i] = a[i] == 0; break;
    case OT_CH_AND: EACH to[i] = (a[i] != 0) & (b[i] != 0); break;
    case OT_CH_OR: EACH to[i] = (a[i] != 0) | (b[i] != 0); break;
    case OT_CH_XOR: EACH to[i] = (a[i] != 0) ^ (b[i] != 0); break;
    case OT_CH_SAME: EACH to[i] = (a[i] != 0) == (b[i] != 0); break;
    default: EACH to[i] = a[i] != 0; break; /* COPY_MASK */
    }
}
