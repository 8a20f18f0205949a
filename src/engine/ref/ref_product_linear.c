/* RotaryEmbedding and LinearAttention: positions by rotation, attention with a state instead of
 * a cache.
 *
 *   RotaryEmbedding  pairs of numbers of a head are turned by the angle of its position:
 *                    neighbours (interleaved) or halves
 *   LinearAttention  state S [d_k, d_v] for each head, token by token:
 *                      gated: S *= exp(decay)   delta: v = beta * (v - S^T k)
 *                      S += k v^T  y = scale * S^T q
 */
#include "ref_product.h"

#include <math.h>

/* ---- RotaryEmbedding ---- */

ot_status ot_rotary_open(ot_call *c, ot_rotary *r)
{
    const ot_nd *x = c->in[0], *cosines = c->in[1];
    r->flat = x->rank == 3;
    if (x->rank != 3 && x->rank != 4)
        return ot_call_fail(c, "the input has rank %u, must have 3 or 4", x->rank);
    r->batch = x->dims[0];
    r->heads = r->flat ? ot_attr_int(c->node, "num_heads", 0) : x->dims[1];
    r->length = x->dims[r->flat ? 1 : 2];
    if (r->flat && (r->heads < 1 || x->dims[2] % r->heads != 0))
        return ot_call_fail(c, "num_heads %lld does not fit", (long long)r->heads);
    r->size = r->flat ? x->dims[2] / r->heads : x->dims[3];
    r->interleaved = ot_attr_int(c->node, "interleaved", 0) != 0;
    int64_t turned = ot_attr_int(c->node, "rotary_embedding_dim", 0);
    if (turned == 0) turned = r->size;
    if (turned < 0 || turned > r->size || turned % 2 != 0)
        return ot_call_fail(c, "%lld numbers of %lld cannot be turned", (long long)turned,
                            (long long)r->size);
    r->half = turned / 2;
    int64_t ids[2] = {r->batch, r->length}, by_token[3] = {r->batch, r->length, r->half};
    OT_TRY(ot_num_dims(c, 3, 2, ids));
    if (!ot_num_in(c, 3)) {
        OT_TRY(ot_num_dims(c, 1, 3, by_token));
    } else if (cosines->rank != 2 || cosines->dims[1] != r->half) {
        return ot_call_fail(c, "the cosines must be [positions,%lld]", (long long)r->half);
    }
    return ot_num_dims(c, 2, cosines->rank, cosines->dims);
}

ot_status ot_ref_rotary_embedding(ot_call *c)
{
    ot_rotary r = {0};
    OT_TRY(ot_call_need(c, 3));
    for (uint32_t k = 0; k < 4; k++)
        OT_TRY(ot_num_type(c, k, k == 3 ? OT_NUM_BIT(OT_I64) : OT_NUM_FLOATS));
    OT_TRY(ot_rotary_open(c, &r));
    const ot_nd *x = c->in[0], *ids = ot_num_in(c, 3);
    double *y = ot_num_doubles(c, x);
    if (!y) return OT_E_NOMEM;
    for (int64_t t = 0; t < r.batch * r.length; t++) {
        int64_t b = t / r.length, i = t % r.length, at = ids ? ot_nd_int(ids, t) : t;
        if (ids && (at < 0 || at >= c->in[1]->dims[0]))
            return ot_call_fail(c, "position %lld is out of range", (long long)at);
        for (int64_t h = 0; h < r.heads; h++) {
            double *v = y + (r.flat ? (t * r.heads + h) * r.size
                                    : ((b * r.heads + h) * r.length + i) * r.size);
            for (int64_t k = 0; k < r.half; k++) {
                double cosine = ot_nd_double(c->in[1], at * r.half + k),
                       sine = ot_nd_double(c->in[2], at * r.half + k);
                double *re = v + (r.interleaved ? 2 * k : k),
                       *im = r.interleaved ? re + 1 : re + r.half, old = *re;
                *re = cosine * old - sine * *im;
                *im = sine * old + cosine * *im;
            }
        }
    }
    return ot_num_output(c, 0, x->dtype, x->rank, x->dims, y);
}

/* ---- LinearAttention ---- */

typedef struct linear {
    int64_t batch, length, q_heads, heads, dk, dv;
    bool gated, delta;
    double scale;
    const double *q, *k, *v, *decay, *beta;
    int64_t decay_last, beta_last; /* numbers per token */
    double *state;                 /* [batch, heads, dk, dv] */
} linear;

/* Input k as doubles, [batch, length, *last]. */
static ot_status tokens(ot_call *c, uint32_t k, const linear *a, int64_t *last, const double **out)
{
    const ot_nd *x = c->in[k];
    OT_TRY(ot_num_rank(c, k, 3));
    int64_t want[3] = {a->batch, a->length, x->dims[2]};
    OT_TRY(ot_num_dims(c, k, 3, want));
    *last = x->dims[2];
    *out = ot_num_doubles(c, x);
    return *out ? OT_OK : OT_E_NOMEM;
}

static ot_status linear_rule(ot_call *c, linear *a)
{
    const char *rule = ot_attr_str(c->node, "update_rule", "gated_delta");
    a->gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    a->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!a->gated && !a->delta && strcmp(rule, "linear") != 0)
        return ot_call_fail(c, "update_rule '%s' is unknown", rule);
    if (a->gated != (ot_num_in(c, 4) != NULL) || a->delta != (ot_num_in(c, 5) != NULL))
        return ot_call_fail(
            c, "update_rule '%s' does not go with the inputs decay and beta as given", rule);
    return OT_OK;
}

static ot_status linear_open(ot_call *c, linear *a)
{
    int64_t q_last, k_last, v_last;
    OT_TRY(ot_call_need(c, 3));
    for (uint32_t k = 0; k < 6; k++) OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
    OT_TRY(ot_num_rank(c, 0, 3));
    OT_TRY(linear_rule(c, a));
    a->batch = c->in[0]->dims[0];
    a->length = c->in[0]->dims[1];
    OT_TRY(tokens(c, 0, a, &q_last, &a->q));
    OT_TRY(tokens(c, 1, a, &k_last, &a->k));
    OT_TRY(tokens(c, 2, a, &v_last, &a->v));
    a->q_heads = ot_attr_int(c->node, "q_num_heads", 0);
    a->heads = ot_attr_int(c->node, "kv_num_heads", 0);
    if (a->q_heads < 1 || a->heads < 1 || a->q_heads % a->heads != 0 || q_last % a->q_heads != 0 ||
        v_last % a->heads != 0)
        return ot_call_fail(c, "%lld and %lld heads do not fit", (long long)a->q_heads,
                            (long long)a->heads);
    a->dk = q_last / a->q_heads;
    a->dv = v_last / a->heads;
    if (k_last % a->heads != 0 || k_last / a->heads != a->dk)
        return ot_call_fail(c, "the keys have not the size of the queries");
    if (a->gated) OT_TRY(tokens(c, 4, a, &a->decay_last, &a->decay));
    if (a->delta) OT_TRY(tokens(c, 5, a, &a->beta_last, &a->beta));
    if (a->gated && a->decay_last != a->heads && a->decay_last != k_last)
        return ot_call_fail(c, "decay has %lld numbers a token", (long long)a->decay_last);
    if (a->delta && a->beta_last != a->heads && a->beta_last != 1)
        return ot_call_fail(c, "beta has %lld numbers a token", (long long)a->beta_last);
    a->scale = (double)ot_attr_float(c->node, "scale", 0);
    if (a->scale == 0) a->scale = 1 / sqrt((double)a->dk);
    int64_t state[4] = {a->batch, a->heads, a->dk, a->dv}, n;
    OT_TRY(ot_num_dims(c, 3, 4, state));
    const ot_nd *past = ot_num_in(c, 3);
    a->state = past ? ot_num_doubles(c, past)
                    : ot_num_scratch(c, ot_product(state, 4, &n) ? n : -1, sizeof *a->state);
    return a->state ? OT_OK : OT_E_NOMEM;
}

/* Token t of sequence b enters the state of head h; `v`: [dv] scratch. */
static void linear_step(const linear *a, int64_t b, int64_t t, int64_t h, double *v)
{
    int64_t row = b * a->length + t;
    double *s = a->state + (b * a->heads + h) * a->dk * a->dv;
    const double *k = a->k + (row * a->heads + h) * a->dk;
    for (int64_t i = 0; a->gated && i < a->dk * a->dv; i++)
        s[i] *= exp(a->decay_last == a->heads ? a->decay[row * a->heads + h]
                                              : a->decay[(row * a->heads + h) * a->dk + i / a->dv]);
    for (int64_t m = 0; m < a->dv; m++) {
        v[m] = a->v[(row * a->heads + h) * a->dv + m];
        if (!a->delta) continue;
        for (int64_t d = 0; d < a->dk; d++) v[m] -= s[d * a->dv + m] * k[d];
        v[m] *= a->beta[row * a->beta_last + (a->beta_last == 1 ? 0 : h)];
    }
    for (int64_t i = 0; i < a->dk * a->dv; i++) s[i] += k[i / a->dv] * v[i % a->dv];
}

ot_status ot_ref_linear_attention(ot_call *c)
{
    linear a = {0};
    int64_t dims[3], n;
    OT_TRY(linear_open(c, &a));
    dims[0] = a.batch;
    dims[1] = a.length;
    if (!ot_mul_i64(a.q_heads, a.dv, &dims[2]) || !ot_product(dims, 3, &n))
        return ot_call_fail(c, "the output is too large");
    double *y = ot_num_scratch(c, n, sizeof *y), *v = y ? ot_num_scratch(c, a.dv, sizeof *v) : NULL;
    if (!v) return OT_E_NOMEM;
    for (int64_t row = 0; row < a.batch * a.length; row++) {
        int64_t b = row / a.length, per = a.q_heads / a.heads;
        for (int64_t h = 0; h < a.heads; h++) linear_step(&a, b, row % a.length, h, v);
        for (int64_t i = 0; i < dims[2]; i++) {
            int64_t h = i / a.dv, m = i % a.dv;
            const double *s = a.state + (b * a.heads + h / per) * a.dk * a.dv,
                         *q = a.q + (row * a.q_heads + h) * a.dk;
            for (int64_t d = 0; d < a.dk; d++)
                y[row * dims[2] + i] += a.scale * q[d] * s[d * a.dv + m];
        }
    }
    const ot_nd *past = ot_num_in(c, 3);
    int64_t state[4] = {a.batch, a.heads, a.dk, a.dv};
    OT_TRY(ot_num_output(c, 0, c->in[0]->dtype, 3, dims, y));
    return ot_num_output(c, 1, past ? past->dtype : c->in[0]->dtype, 4, state, a.state);
}
