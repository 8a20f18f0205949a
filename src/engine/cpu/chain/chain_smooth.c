/* Instructions that are functions of mathematics: loops around those of chain_math.h.
 *
 * Sine and cosine are reduced to a quarter of the circle exactly enough up to CM_ANGLE_MAX; a
 * block that holds a larger angle (or what is no number) is gone through again, and the C
 * library computes those elements.
 */
#include "chain_math.h"
#include "chain_ops.h"
#include "chain_loops.h"
#include "engine/core/simd.h"

OT_CHAIN_CONTRACT

OT_CLONES void ot_chain_smooth(ot_chain_code code, unsigned single, void *to_, const void *a_,
                               const void *b_, const void *c_, int64_t n)
{
    (void)single;
    float *to = to_;
    const float *a = a_, p = b_ ? *(const float *)b_ : 0, q = c_ ? *(const float *)c_ : 0;
    cm_limits l = cm_make_limits();
    switch ((int)code) {
        CASE(EXP, cm_exp(x));
        CASE(LOG, cm_log(x));
        CASE(SIGMOID, cm_sigmoid(x, l));
        CASE(SILU, cm_gate(x, x, l));
        CASE(SWISH, cm_gate(x, x * p, l));
        CASE(TANH, cm_tanh(x, l));
        CASE(ERF, cm_erf(x, l));
        CASE(GELU, cm_gelu(x, l));
        CASE(GELU_TANH, cm_gelu_tanh(x, l));
        CASE(SOFTPLUS, cm_softplus(x, l));
        CASE(MISH, cm_mish(x));
        CASE(ELU, x < 0 ? p * cm_expm1_down(x, l) : x);
        CASE(SELU, q * (x > 0 ? x : p * cm_expm1_down(x, l)));
        CASE(CELU, x > 0 ? x : p * cm_expm1_down(x / p, l));
    default: break;
    }
}

/* Angles that cm_sin cannot take are kept in `to`; returns whether there are any. */
OT_CLONES static int32_t small_angles(uint32_t quarter, float *to, const float *a, int64_t n)
{
    int32_t large = 0;
    _Pragma("omp simd reduction(| : large)") for (int64_t i = 0; i < n; i++)
    {
        float x = a[i];
        int32_t is_large = !(fabsf(x) < CM_ANGLE_MAX);
        float y = cm_sin(is_large ? 0.0f : x, quarter);
        to[i] = is_large ? x : y;
        large |= is_large;
    }
    return large;
}

void ot_chain_angle(ot_chain_code code, unsigned single, void *to_, const void *a, const void *b,
                    const void *c, int64_t n)
{
    (void)single, (void)b, (void)c;
    float *to = to_;
    if (!small_angles(code == OT_CH_COS, to, a, n)) return;
    for (int64_t i = 0; i < n; i++) /* those computed already are at most 1 */
        if (!(fabsf(to[i]) < CM_ANGLE_MAX)) to[i] = code == OT_CH_COS ? cosf(to[i]) : sinf(to[i]);
}
