/* com.microsoft Attention: one product makes queries, keys and values of the same tokens.
 *
 *   x [B, S, I] * W [I, Q + Q + V] + bias  -->  queries | keys | values, each of num_heads heads
 *   present [2, B, N, T, d] = past [2, B, N, P, d], then the new keys and values          T = P + S
 *   Y [B, S, V] = softmax(scale * q . k + mask + attention_bias) * values
 *
 * mask_index says what may be looked at: [B] how many keys, [B, T] or [B, S, T] which ones; what
 * may not gets mask_filter_value added. Inputs x, W, bias, mask_index, past, attention_bias.
 */
#include "ref_product.h"

#include <math.h>

typedef struct projected {
    int64_t batch, length, heads, q_size, v_size; /* sizes: of one head */
    int64_t past, total;
    bool causal;
    double scale, filter;
    const ot_nd *mask, *bias;
    const double *qkv;     /* [batch, length, 2 * heads * q_size + heads * v_size] */
    double *keys, *values; /* [batch, heads, total, size] */
} projected;

static ot_status read_sizes(ot_call *c, projected *a)
{
    const ot_nd *w = c->in[1];
    size_t n = 0;
    const int64_t *sizes = ot_attr_ints(c->node, "qkv_hidden_sizes", &n);
    a->heads = ot_attr_int(c->node, "num_heads", 0);
    int64_t q = w->dims[1] / 3, v = q;
    if (sizes && n == 3 && sizes[0] == sizes[1] && sizes[0] >= 0 && sizes[0] <= w->dims[1])
        q = sizes[0], v = sizes[2];
    if (a->heads < 1 || q % a->heads != 0 || v < 0 || v % a->heads != 0 || v > w->dims[1] ||
        2 * q + v != w->dims[1])
        return ot_call_fail(c, "%lld heads do not share out %lld columns", (long long)a->heads,
                            (long long)w->dims[1]);
    a->q_size = q / a->heads;
    a->v_size = v / a->heads;
    return OT_OK;
}

static ot_status check_operands(ot_call *c, projected *a)
{
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 6; k++)
        OT_TRY(ot_num_type(c, k, k == 3 ? OT_NUM_BIT(OT_I32) : OT_NUM_FLOATS));
    OT_TRY(ot_num_rank(c, 0, 3));
    OT_TRY(ot_num_rank(c, 1, 2));
    OT_TRY(read_sizes(c, a));
    const ot_nd *x = c->in[0], *past = ot_num_in(c, 4);
    a->batch = x->dims[0];
    a->length = x->dims[1];
    OT_TRY(ot_num_dims(c, 2, 1, &c->in[1]->dims[1]));
    OT_TRY(ot_num_rank(c, 4, 5));
    a->past = past ? past->dims[3] : 0;
    if (!ot_add_i64(a->past, a->length, &a->total)) return ot_call_fail(c, "the past is too long");
    if ((past || ot_num_out(c, 1)) && a->q_size != a->v_size)
        return ot_call_fail(c, "a past needs keys and values of one size");
    int64_t past_dims[5] = {2, a->batch, a->heads, a->past, a->q_size};
    OT_TRY(ot_num_dims(c, 4, 5, past_dims));
    if (ot_num_in(c, 6) || ot_attr_int(c->node, "do_rotary", 0) != 0 ||
        ot_attr_int(c->node, "past_present_share_buffer", 0) != 0)
        return ot_call_fail(
            c, "past_sequence_length, do_rotary and past_present_share_buffer are not supported");
    a->causal = ot_attr_int(c->node, "unidirectional", 0) != 0;
    float scale = ot_attr_float(c->node, "scale", 0);
    a->scale = scale != 0 ? (double)scale : 1 / sqrt((double)a->q_size);
    a->filter = (double)ot_attr_float(c->node, "mask_filter_value", -10000);
    return OT_OK;
}

static ot_status check_masks(ot_call *c, projected *a)
{
    const ot_nd *m = a->mask = ot_num_in(c, 3), *b = a->bias = ot_num_in(c, 5);
    int64_t by_key[2] = {a->batch, a->total}, by_query[3] = {a->batch, a->length, a->total};
    OT_TRY(ot_num_rank(c, 5, 4));
    if (b && ((b->dims[0] != 1 && b->dims[0] != a->batch) ||
              (b->dims[1] != 1 && b->dims[1] != a->heads) || b->dims[2] != a->length ||
              b->dims[3] != a->total))
        return ot_call_fail(c, "attention_bias does not broadcast to the scores");
    if (!m || (m->rank == 1 && m->dims[0] == a->batch)) return OT_OK;
    if (m->rank != 2 && m->rank != 3)
        return ot_call_fail(c, "a mask of this shape is not supported");
    return ot_num_dims(c, 3, m->rank, m->rank == 2 ? by_key : by_query);
}

/* Queries, keys and values of all tokens; then keys and values behind the past. */
static ot_status project(ot_call *c, projected *a)
{
    ot_matmul p = {0};
    const ot_nd *bias = ot_num_in(c, 2), *past = ot_num_in(c, 4);
    OT_TRY(ot_matmul_open(c, c->in[0], c->in[1], &p));
    double *x = ot_num_doubles(c, c->in[0]), *w = x ? ot_num_doubles(c, c->in[1]) : NULL,
           *y = w ? ot_num_scratch(c, p.count, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    ot_matmul_doubles(&p, x, w, y);
    for (int64_t i = 0; bias && i < p.count; i++) y[i] += ot_nd_double(bias, i % p.n);
    a->qkv = y;
    int64_t rows, k_n, v_n, q = a->heads * a->q_size;
    if (!ot_mul_i64(a->batch * a->heads, a->total, &rows) || !ot_mul_i64(rows, a->q_size, &k_n) ||
        !ot_mul_i64(rows, a->v_size, &v_n))
        return ot_call_fail(c, "the keys are too large");
    if (!(a->keys = ot_num_scratch(c, k_n, sizeof *a->keys)) ||
        !(a->values = ot_num_scratch(c, v_n, sizeof *a->values)))
        return OT_E_NOMEM;
    for (int64_t r = 0; r < rows; r++) {
        int64_t t = r % a->total - a->past, h = r / a->total % a->heads,
                b = r / a->total / a->heads;
        const double *token = y + (b * a->length + t) * p.n;
        int64_t old = ((b * a->heads + h) * a->past + t + a->past) * a->q_size,
                half = a->batch * a->heads * a->past * a->q_size;
        for (int64_t d = 0; d < a->q_size; d++)
            a->keys[r * a->q_size + d] = t < 0 ? ot_nd_double(past, old + d)
                                               : token[q + h * a->q_size + d];
        for (int64_t d = 0; d < a->v_size; d++)
            a->values[r * a->v_size + d] = t < 0 ? ot_nd_double(past, half + old + d)
                                                 : token[2 * q + h * a->v_size + d];
    }
    return OT_OK;
}

/* What is added to the score of query i and key j. */
static double added(const projected *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const ot_nd *m = a->mask, *bias = a->bias;
    double sum = 0;
    if (a->causal && j > i + a->past) return -INFINITY;
    if (bias)
        sum = ot_nd_double(
            bias, (((bias->dims[0] == 1 ? 0 : b) * bias->dims[1] + (bias->dims[1] == 1 ? 0 : h)) *
                       a->length +
                   i) * a->total +
                      j);
    if (!m) return sum;
    bool seen = m->rank == 1 ? j < ot_nd_int(m, b)
                             : ot_nd_int(m, m->rank == 2 ? b * a->total + j
                                                         : (b * a->length + i) * a->total + j) > 0;
    return seen ? sum : sum + a->filter;
}

static void attend(const projected *a, int64_t b, int64_t h, int64_t i, double *row, double *y)
{
    int64_t columns = a->heads * (2 * a->q_size + a->v_size);
    const double *q = a->qkv + (b * a->length + i) * columns + h * a->q_size,
                 *keys = a->keys + (b * a->heads + h) * a->total * a->q_size;
    const double *values = a->values + (b * a->heads + h) * a->total * a->v_size;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->total; j++) {
        row[j] = 0;
        for (int64_t d = 0; d < a->q_size; d++) row[j] += q[d] * keys[j * a->q_size + d];
        row[j] = row[j] * a->scale + added(a, b, h, i, j);
        most = fmax(most, row[j]);
    }
    for (int64_t j = 0; j < a->total; j++) sum += row[j] = exp(row[j] - most);
    for (int64_t j = 0; j < a->total; j++)
        for (int64_t d = 0; d < a->v_size; d++) y[d] += row[j] / sum * values[j * a->v_size + d];
}

static ot_status put_present(ot_call *c, const projected *a)
{
    int64_t dims[5] = {2, a->batch, a->heads, a->total, a->q_size};
    if (!ot_num_out(c, 1)) return OT_OK;
    OT_TRY(ot_call_output(c, 1, c->in[0]->dtype, 5, dims));
    int64_t half = ot_num_count(c->out[1]) / 2;
    for (int64_t i = 0; i < half; i++) {
        ot_num_put(c->out[1], i, a->keys[i]);
        ot_num_put(c->out[1], half + i, a->values[i]);
    }
    return OT_OK;
}

ot_status ot_ref_projected_attention(ot_call *c)
{
    projected a = {0};
    OT_TRY(check_operands(c, &a));
    OT_TRY(check_masks(c, &a));
    OT_TRY(project(c, &a));
    int64_t dims[3] = {a.batch, a.length, a.heads * a.v_size}, n;
    double *y = ot_num_scratch(c, ot_product(dims, 3, &n) ? n : -1, sizeof *y),
           *row = y ? ot_num_scratch(c, a.total, sizeof *row) : NULL;
    if (!row) return OT_E_NOMEM;
    for (int64_t t = 0; n > 0 && t < a.batch * a.length; t++)
        for (int64_t h = 0; h < a.heads; h++)
            attend(&a, t / a.length, h, t % a.length, row, y + (t * a.heads + h) * a.v_size);
    OT_TRY(put_present(c, &a));
    return ot_num_output(c, 0, c->in[0]->dtype, 3, dims, y);
}
