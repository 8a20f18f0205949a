/* Attention (opsets 23 to 25).
 *
 *   K' = past_key then K     V' = past_value then V      (heads of K and V serve several heads of
 *                                                        Q, when there are fewer)
 *   scores[i, j] = scale * Q[i] . K'[j]                  mode 0 of the output qk_matmul_output
 *   softcap * tanh(scores / softcap)                     mode 1
 *   + mask[i, j], or minus infinity where query i may not look at key j        mode 2
 *   softmax along j; a row that may look at nothing is zero                    mode 3
 *   Y[i] = sum over j of scores[i, j] * V'[j]
 *
 * Query i stands at key i + offset: behind the past, or, with nonpad_kv_seqlen, so that the last
 * query is the last valid key. Q, K, V are [batch, heads, length, size], or [batch, length,
 * heads * size] with the numbers of heads as attributes.
 */
#include "ref_product.h"

#include <math.h>

/* One of Q, K, V, seen as [batch, heads, length, size]. */
typedef struct heads {
    const double *v;
    int64_t batch, heads, length, size;
    bool flat; /* stored as [batch, length, heads * size] */
} heads;

typedef struct attention {
    heads q, k, v;
    int64_t past, total; /* keys before K, and with K */
    double scale, softcap;
    bool causal;
    int64_t left, right, mode; /* windows: -1 none */
    const ot_nd *mask, *nonpad;
    double *keys, *values; /* [batch, k.heads, total, size] */
} attention;

static int64_t head_at(const heads *h, int64_t b, int64_t n, int64_t i)
{
    return h->flat ? ((b * h->length + i) * h->heads + n) * h->size
                   : ((b * h->heads + n) * h->length + i) * h->size;
}

/* ---- operands ---- */

static ot_status open_heads(ot_call *c, uint32_t k, const char *attr, heads *h)
{
    const ot_nd *a = c->in[k];
    h->flat = a->rank == 3;
    h->batch = a->dims[0];
    if (a->rank == 4) {
        h->heads = a->dims[1];
        h->length = a->dims[2];
        h->size = a->dims[3];
    } else if (a->rank == 3) {
        h->heads = ot_attr_int(c->node, attr, 0);
        if (h->heads < 1 || a->dims[2] % h->heads != 0)
            return ot_call_fail(c, "%s is %lld, input %u has %lld numbers to share out", attr,
                                (long long)h->heads, k, (long long)a->dims[2]);
        h->length = a->dims[1];
        h->size = a->dims[2] / h->heads;
    } else {
        return ot_call_fail(c, "input %u has rank %u, must have 3 or 4", k, a->rank);
    }
    h->v = ot_num_doubles(c, a);
    return h->v ? OT_OK : OT_E_NOMEM;
}

/* past (or nothing) and then the new part, along the length. NULL: no memory. */
static double *join(ot_call *c, const ot_nd *past, const heads *h, int64_t total)
{
    int64_t before = total - h->length, dims[4] = {h->batch, h->heads, total, h->size}, n;
    double *v = ot_num_scratch(c, ot_product(dims, 4, &n) ? n : -1, sizeof *v);
    if (!v) return NULL;
    for (int64_t r = 0; n > 0 && r < h->batch * h->heads; r++) {
        double *to = v + r * total * h->size;
        for (int64_t i = 0; i < before * h->size; i++)
            to[i] = ot_nd_double(past, r * before * h->size + i);
        for (int64_t i = 0; i < h->length; i++)
            memcpy(to + (before + i) * h->size, h->v + head_at(h, r / h->heads, r % h->heads, i),
                   (size_t)h->size * sizeof *to);
    }
    return v;
}

static ot_status open_cache(ot_call *c, attention *a)
{
    const ot_nd *past_k = ot_num_in(c, 4), *past_v = ot_num_in(c, 5);
    if (!past_k != !past_v) return ot_call_fail(c, "past_key and past_value come together");
    OT_TRY(ot_num_rank(c, 4, 4));
    a->past = past_k ? past_k->dims[2] : 0;
    int64_t k_dims[4] = {a->k.batch, a->k.heads, a->past, a->k.size},
            v_dims[4] = {a->v.batch, a->v.heads, a->past, a->v.size};
    OT_TRY(ot_num_dims(c, 4, 4, k_dims));
    OT_TRY(ot_num_dims(c, 5, 4, v_dims));
    if (!ot_add_i64(a->past, a->k.length, &a->total))
        return ot_call_fail(c, "the cache is too large");
    a->nonpad = ot_num_in(c, 6);
    if (a->nonpad && past_k) return ot_call_fail(c, "nonpad_kv_seqlen does not go with past_key");
    OT_TRY(ot_num_dims(c, 6, 1, &a->q.batch));
    a->keys = join(c, past_k, &a->k, a->total);
    a->values = a->keys ? join(c, past_v, &a->v, a->total) : NULL;
    return a->values ? OT_OK : OT_E_NOMEM;
}

/* The mask is aligned at the right; its last axis may be shorter than the keys. */
static ot_status check_mask(ot_call *c, const attention *a)
{
    int64_t full[4] = {a->q.batch, a->q.heads, a->q.length, a->total};
    const ot_nd *m = a->mask;
    if (!m) return OT_OK;
    if (m->rank < 1 || m->rank > 4) return ot_call_fail(c, "the mask has rank %u", m->rank);
    for (uint32_t k = 0; k < m->rank; k++) {
        int64_t want = full[4 - m->rank + k], d = m->dims[k];
        bool last = k + 1 == m->rank;
        if (last ? d > want : d != want && d != 1)
            return ot_call_fail(c, "the mask has %lld elements along axis %u, must have %lld",
                                (long long)d, k, (long long)want);
    }
    return OT_OK;
}

static ot_status attention_open(ot_call *c, attention *a)
{
    OT_TRY(ot_call_need(c, 3));
    for (uint32_t k = 0; k < 7; k++)
        OT_TRY(ot_num_type(c, k,
                           k == 3   ? OT_NUM_ALL
                           : k == 6 ? OT_NUM_BIT(OT_I64)
                                    : OT_NUM_FLOATS));
    OT_TRY(ot_num_same_type(c, 1, 0));
    OT_TRY(ot_num_same_type(c, 4, 0));
    OT_TRY(ot_num_same_type(c, 5, 2));
    OT_TRY(open_heads(c, 0, "q_num_heads", &a->q));
    OT_TRY(open_heads(c, 1, "kv_num_heads", &a->k));
    OT_TRY(open_heads(c, 2, "kv_num_heads", &a->v));
    if (a->k.batch != a->q.batch || a->v.batch != a->q.batch || a->k.length != a->v.length ||
        a->k.heads != a->v.heads || a->k.size != a->q.size || a->q.flat != a->k.flat ||
        a->q.flat != a->v.flat)
        return ot_call_fail(c, "the shapes of Q, K and V do not agree");
    if (a->k.heads < 1 || a->q.heads % a->k.heads != 0)
        return ot_call_fail(c, "%lld heads of K do not divide %lld heads of Q",
                            (long long)a->k.heads, (long long)a->q.heads);
    const ot_attr *scale = ot_attr_find(c->node, "scale");
    a->scale = scale && scale->kind == OT_ATTR_FLOAT ? (double)scale->f
                                                     : 1 / sqrt((double)a->q.size);
    a->softcap = (double)ot_attr_float(c->node, "softcap", 0);
    a->causal = ot_attr_int(c->node, "is_causal", 0) != 0;
    a->left = ot_attr_int(c->node, "left_window_size", -1);
    a->right = ot_attr_int(c->node, "right_window_size", -1);
    a->mode = ot_attr_int(c->node, "qk_matmul_output_mode", 0);
    if (a->left < -1 || a->right < -1 || a->mode < 0 || a->mode > 3)
        return ot_call_fail(c, "a window size or qk_matmul_output_mode is out of range");
    a->mask = ot_num_in(c, 3);
    OT_TRY(open_cache(c, a));
    return check_mask(c, a);
}

/* ---- scores ---- */

/* What is added to the score of query i and key j: minus infinity when i may not look at j. */
static double bias_of(const attention *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const ot_nd *m = a->mask;
    int64_t valid = a->nonpad ? ot_nd_int(a->nonpad, b) : a->total, pos[4] = {b, h, i, j}, at = 0;
    int64_t stands = i + (a->nonpad ? ot_max(valid, -a->total) - a->q.length : a->past);
    if (j >= valid || (a->causal && j > stands)) return -INFINITY;
    if ((a->left >= 0 && stands - j > a->left) || (a->right >= 0 && j - stands > a->right))
        return -INFINITY;
    if (!m) return 0;
    if (j >= m->dims[m->rank - 1]) return -INFINITY;
    for (uint32_t k = 0; k < m->rank; k++)
        at = at * m->dims[k] + (m->dims[k] == 1 ? 0 : pos[4 - m->rank + k]);
    return m->dtype == OT_BOOL ? (ot_nd_int(m, at) ? 0 : -INFINITY) : ot_nd_double(m, at);
}

static void softmax(double *v, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) most = fmax(most, v[j]);
    for (int64_t j = 0; j < n; j++) sum += v[j] = exp(v[j] - most);
    for (int64_t j = 0; j < n; j++) v[j] /= sum;
}

/* Row of scores of query i, as far as the softmax; `shown` (or NULL) gets it as the mode says. */
static void score_row(const attention *a, int64_t b, int64_t h, int64_t i, double *row,
                      double *shown)
{
    int64_t kv = h / (a->q.heads / a->k.heads), size = a->q.size, n = a->total;
    const double *q = a->q.v + head_at(&a->q, b, h, i),
                 *keys = a->keys + (b * a->k.heads + kv) * n * size;
    bool blind = true;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0, bias = bias_of(a, b, h, i, j);
        for (int64_t d = 0; d < size; d++) sum += q[d] * keys[j * size + d];
        sum *= a->scale;
        if (shown && a->mode == 0) shown[j] = sum;
        if (a->softcap > 0) sum = a->softcap * tanh(sum / a->softcap);
        if (shown && a->mode == 1) shown[j] = sum;
        blind = blind && bias == -INFINITY;
        row[j] = sum + bias;
        if (shown && a->mode == 2) shown[j] = row[j];
    }
    if (!blind) softmax(row, n);
    for (int64_t j = 0; blind && j < n; j++) row[j] = 0;
    if (shown && a->mode == 3) memcpy(shown, row, (size_t)n * sizeof *row);
}

static ot_status attend(ot_call *c, const attention *a, double *y, double *scores)
{
    int64_t n = a->total, size = a->v.size;
    double *row = ot_num_scratch(c, n, sizeof *row);
    heads out = {NULL, a->q.batch, a->q.heads, a->q.length, size, a->q.flat};
    if (!row) return OT_E_NOMEM;
    for (int64_t r = 0; r < a->q.batch * a->q.heads * a->q.length; r++) {
        int64_t i = r % a->q.length, h = r / a->q.length % a->q.heads,
                b = r / a->q.length / a->q.heads;
        score_row(a, b, h, i, row, scores ? scores + r * n : NULL);
        const double *values = a->values +
                               (b * a->k.heads + h / (a->q.heads / a->k.heads)) * n * size;
        double *to = y + head_at(&out, b, h, i);
        for (int64_t j = 0; j < n; j++)
            for (int64_t d = 0; row[j] != 0 && d < size; d++)
                to[d] += row[j] * values[j * size + d];
    }
    return OT_OK;
}

ot_status ot_ref_attention(ot_call *c)
{
    attention a = {0};
    int64_t n, n_scores;
    OT_TRY(attention_open(c, &a));
    int64_t dims[4] = {a.q.batch, a.q.heads, a.q.length, a.v.size},
            flat[3] = {a.q.batch, a.q.length, 0};
    int64_t k_dims[4] = {a.k.batch, a.k.heads, a.total, a.k.size},
            v_dims[4] = {a.v.batch, a.v.heads, a.total, a.v.size};
    int64_t score_dims[4] = {a.q.batch, a.q.heads, a.q.length, a.total};
    if (!ot_product(dims, 4, &n) || !ot_product(score_dims, 4, &n_scores) ||
        !ot_mul_i64(a.q.heads, a.v.size, &flat[2]))
        return ot_call_fail(c, "the output is too large");
    double *y = ot_num_scratch(c, n, sizeof *y),
           *scores = y && ot_num_out(c, 3) ? ot_num_scratch(c, n_scores, sizeof *scores) : NULL;
    if (!y || (ot_num_out(c, 3) && !scores)) return OT_E_NOMEM;
    OT_TRY(attend(c, &a, y, scores));
    ot_dtype t = c->in[0]->dtype;
    OT_TRY(ot_num_output(c, 0, t, a.q.flat ? 3 : 4, a.q.flat ? flat : dims, y));
    OT_TRY(ot_num_output(c, 1, t, 4, k_dims, a.keys));
    OT_TRY(ot_num_output(c, 2, c->in[2]->dtype, 4, v_dims, a.values));
    return ot_num_output(c, 3, t, 4, score_dims, scores);
}
