/* Asin, Acos and Atan of float32: polynomials of Cephes (Moshier 1992; asinf.c, atanf.c) without
 * branches, so that loops vectorise.
 *
 *   asin   |x| <= 1/2: x + x z P(z), z = x^2     else pi/2 - 2 asin(sqrt((1 - |x|) / 2))
 *   acos   pi/2 - asin(x)                        near 1: 2 asin(...), near -1: pi - 2 asin(...)
 *   atan   the angle less 0, pi/4 or pi/2 has a tangent of at most tan(pi/8)
 *
 * Relative errors are below 3e-7. NaN runs through, and is the result beyond 1.
 */
#include "fast_rows.h"

#include "engine/cpu/chain/chain_math.h"

OT_CHAIN_CONTRACT

enum { PIECE = 8192 }; /* elements of one piece of work */

#define HALF_PI 1.57079632679f

/* asin(x) for |x| <= 1/2; z: x^2. */
CM_INLINE float near_zero(float x, float z)
{
    float p = 4.2163199048e-2f * z + 2.4181311049e-2f;
    p = (p * z + 4.5470025998e-2f) * z + 7.4953002686e-2f;
    p = (p * z + 1.6666752422e-1f) * z;
    return p * x + x;
}

CM_INLINE float arc_sine(float x)
{
    const float a = fabsf(x), rest = 0.5f * (1.0f - a);
    const float z = a > 0.5f ? rest : x * x, s = a > 0.5f ? sqrtf(rest) : a;
    const float y = near_zero(s, z);
    return copysignf(a > 0.5f ? HALF_PI - 2 * y : y, x);
}

CM_INLINE float arc_cosine(float x)
{
    const float a = fabsf(x), rest = 0.5f * (1.0f - a);
    const float z = a > 0.5f ? rest : x * x, s = a > 0.5f ? sqrtf(rest) : x;
    const float y = near_zero(s, z);
    const float far = x < 0 ? 2 * HALF_PI - 2 * y : 2 * y;
    return a > 0.5f ? far : HALF_PI - y;
}

CM_INLINE float arc_tangent(float x)
{
    const float a = fabsf(x);
    const int large = a > 2.41421356f, middle = a > 0.414213562f; /* tan of 3 pi/8, of pi/8 */
    const float over = large ? -1.0f : middle ? a - 1.0f : a;
    const float under = large ? a : middle ? a + 1.0f : 1.0f;
    const float base = large ? HALF_PI : middle ? HALF_PI / 2 : 0.0f;
    const float t = over / under, z = t * t;
    float p = 8.05374449538e-2f * z - 1.38776856032e-1f;
    p = (p * z + 1.99777106478e-1f) * z - 3.33329491539e-1f;
    return copysignf(base + (p * z * t + t), x);
}

typedef void arc_fn(float *to, const float *from, int64_t n);

#define ARC(name, f)                                                                      \
    OT_CLONES static void name(float *restrict to, const float *restrict from, int64_t n) \
    {                                                                                     \
        for (int64_t i = 0; i < n; i++) to[i] = f(from[i]);                               \
    }

ARC(arc_sines, arc_sine)
ARC(arc_cosines, arc_cosine)
ARC(arc_tangents, arc_tangent)

typedef struct arcs {
    arc_fn *run;
    int64_t n;
    float *y;
    const float *x;
} arcs;

static void arcs_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const arcs *a = job;
    const int64_t at = first * PIECE;
    (void)worker;
    a->run(a->y + at, a->x + at, ot_min(end * PIECE, a->n) - at);
}

ot_status ot_fast_arc(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_arc, ot_rows_before(c, -1));
    const ot_op op = ot_rows_op(c);
    arcs a = {.run = op == OT_OP_Asin ? arc_sines : op == OT_OP_Acos ? arc_cosines : arc_tangents};
    if (!ot_rows_takes(c) || !ot_nd_elems(c->in[0], &a.n)) return ot_op_reference(op)(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, c->in[0]->rank, c->in[0]->dims));
    if (!ot_rows_wants(c, 0) || a.n == 0) return OT_OK;
    a.y = c->out[0]->data;
    a.x = c->in[0]->data;
    ot_pool_share((uint32_t)ot_rows_threads(c, 8.0 * (double)a.n), ot_ceil_div(a.n, PIECE), 1,
                  arcs_share, &a);
    return OT_OK;
}
