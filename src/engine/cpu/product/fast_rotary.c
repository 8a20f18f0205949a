/* RotaryEmbedding of float32: a head of a token is turned by the cosines and sines of its position,
 * pairs of halves or of neighbours.
 *
 *   halves       [a b | c d]   a cos0 - c sin0, b cos1 - d sin1 | a sin0 + c cos0, b sin1 + d cos1
 *   neighbours   [a c  b d]    the same pairs side by side
 *
 * Threads take tokens.
 */
#include "fast_product.h"

#include "engine/core/half.h"
#include "engine/core/pool.h"
#include "engine/core/simd.h"
#include "engine/cpu/rows/rows.h"
#include "engine/ref/ref_product.h"

OT_CLONES static void turn_halves(float *restrict y, const float *restrict x, const float *cosine,
                                  const float *sine, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        float a = x[k], b = x[n + k];
        y[k] = cosine[k] * a - sine[k] * b;
        y[n + k] = sine[k] * a + cosine[k] * b;
    }
}

OT_CLONES static void turn_neighbours(float *restrict y, const float *restrict x,
                                      const float *cosine, const float *sine, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        float a = x[2 * k], b = x[2 * k + 1];
        y[2 * k] = cosine[k] * a - sine[k] * b;
        y[2 * k + 1] = sine[k] * a + cosine[k] * b;
    }
}

typedef struct rotary_job {
    ot_rotary r;
    float *y;
    const float *x, *cosine, *sine;
    const int64_t *ids; /* positions of the tokens; NULL: a row of the tables for each token */
} rotary_job;

static void rotary_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const rotary_job *j = job;
    const ot_rotary *r = &j->r;
    int64_t turned = 2 * r->half;
    (void)worker;
    for (int64_t t = first; t < end; t++) {
        int64_t row = (j->ids ? j->ids[t] : t) * r->half;
        for (int64_t h = 0; h < r->heads; h++) {
            int64_t at = r->size *
                         (r->flat ? t * r->heads + h
                                  : (t / r->length * r->heads + h) * r->length + t % r->length);
            (r->interleaved ? turn_neighbours : turn_halves)(j->y + at, j->x + at, j->cosine + row,
                                                             j->sine + row, r->half);
            memcpy(j->y + at + turned, j->x + at + turned,
                   (size_t)(r->size - turned) * sizeof *j->y);
        }
    }
}

ot_status ot_fast_rotary_embedding(ot_call *c)
{
    rotary_job j = {0};
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_rotary_embedding, 0);
    const ot_nd *ids = ot_num_in(c, 3);
    for (uint32_t k = 0; k < 3; k++)
        if (!ot_num_in(c, k) || c->in[k]->dtype != OT_F32) return ot_ref_rotary_embedding(c);
    if (ids && ids->dtype != OT_I64) return ot_ref_rotary_embedding(c);
    OT_TRY(ot_rotary_open(c, &j.r));
    int64_t tokens = j.r.batch * j.r.length;
    for (int64_t t = 0; ids && t < tokens; t++) {
        int64_t at = ((const int64_t *)ids->data)[t];
        if (at < 0 || at >= c->in[1]->dims[0]) return ot_ref_rotary_embedding(c);
    }
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    if (!ot_num_out(c, 0)) return OT_OK;
    j.y = c->out[0]->data;
    j.x = x->data;
    j.cosine = c->in[1]->data;
    j.sine = c->in[2]->data;
    j.ids = ids ? ids->data : NULL;
    ot_pool_share((uint32_t)ot_rows_threads(c, (double)ot_num_count(x)), tokens, 1, rotary_share,
                  &j);
    return OT_OK;
}
