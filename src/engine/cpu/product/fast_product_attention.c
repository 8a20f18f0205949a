/* Attention (opset 23 and later; com.microsoft) in float32, block by block of queries: no array
 * of all scores (attention.h).
 *
 *   masks and biases are added to the scores; a query that may look at nothing gets zeros
 *
 * Operands are [batch][head][position][size] in any strides but that of `size`. Caches, windows,
 * soft caps and shown scores go to the reference.
 */
#include <math.h>

#include "attention.h"
#include "fast_product.h"
#include "engine/cpu/rows/fast_rows.h"

typedef struct heads {
    const float *data;
    int64_t batch, head, position; /* steps */
} heads;

typedef struct attention {
    /* shared: heads of Q with one head of K and V */
    int64_t batch, heads, shared, length, total, size, v_size;
    heads q, k, v, y;
    float *out;
    float scale;
    bool causal;
    const float *bias;     /* [.., total], or NULL */
    int64_t bias_steps[3]; /* along batch, head, query */
} attention;

static ot_attention_matrix matrix(const heads *h, int64_t b, int64_t head)
{
    return (ot_attention_matrix){h->data + b * h->batch + head * h->head, h->position, 1, OT_F32};
}

/* Block `item` of all. */
static void attend(const attention *a, int64_t blocks, int64_t item, float *scratch)
{
    int64_t panels = ot_ceil_div(a->length, OT_ATTENTION_PANEL), h = item / blocks % a->heads,
            b = item / blocks / a->heads;
    int64_t first = panels * (item % blocks) / blocks * OT_ATTENTION_PANEL,
            end = ot_min(a->length, panels * (item % blocks + 1) / blocks * OT_ATTENTION_PANEL);
    ot_attention_job j = {.queries = end - first,
                          .keys = a->total,
                          .size = a->size,
                          .v_size = a->v_size,
                          .y_row = a->y.position,
                          .scale = a->scale,
                          .seen = a->causal ? first + 1 : 0,
                          .blind_zero = true};
    j.q = ot_attention_from(matrix(&a->q, b, h), first, 0);
    j.k = matrix(&a->k, b, h / a->shared);
    j.v = matrix(&a->v, b, h / a->shared);
    j.y = a->out + b * a->y.batch + h * a->y.head + first * a->y.position;
    if (a->bias) {
        const float *bias = a->bias + b * a->bias_steps[0] + h * a->bias_steps[1] +
                            first * a->bias_steps[2];
        j.mask = (ot_attention_matrix){bias, a->bias_steps[2], 1, OT_F32};
    }
    ot_attention_run(&j, scratch);
}

typedef struct attend_job {
    const attention *a;
    int64_t blocks, each;
    float *scratch; /* [threads][each] */
} attend_job;

static void attend_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const attend_job *j = job;
    for (int64_t i = first; i < end; i++) attend(j->a, j->blocks, i, j->scratch + worker * j->each);
}

static ot_status run_attention(ot_call *c, const attention *a)
{
    int64_t panels = ot_ceil_div(a->length, OT_ATTENTION_PANEL), bytes;
    double scores = (double)(a->batch * a->heads * a->length) * (double)a->total;
    int threads = ot_rows_threads(c, scores * (double)(a->size + a->v_size) / 8);
    int64_t blocks = ot_ceil_div(panels, ot_attention_panels(a->size, a->v_size));
    int64_t items = 3 * (int64_t)threads; /* so many share evenly */
    if (threads > 1 && blocks * a->batch * a->heads < items)
        blocks = ot_min(panels, ot_ceil_div(items, a->batch * a->heads));
    int64_t each = ot_attention_scratch(OT_F32, ot_ceil_div(panels, blocks), a->size, a->v_size);
    if (each < 0 || !ot_mul_i64(each, (int64_t)sizeof(float) * threads, &bytes))
        return ot_fail_nomem(c->diag);
    float *scratch = ot_call_scratch(c, (size_t)bytes);
    if (!scratch) return ot_fail_nomem(c->diag);
    attend_job j = {.a = a, .blocks = blocks, .each = each, .scratch = scratch};
    ot_pool_share_each((uint32_t)threads, a->batch * a->heads * blocks, attend_share, &j);
    return OT_OK;
}

/* ---- Attention ---- */

/* Steps of an operand [batch, head, position, size], or [batch, position, heads * size]. */
static bool open_heads(const ot_call *c, uint32_t k, const char *attr, heads *h, int64_t *count,
                       int64_t *length, int64_t *size)
{
    const ot_nd *a = ot_rows_in(c, k);
    if (!a || a->dtype != OT_F32 || !ot_nd_is_dense(a) || (a->rank != 3 && a->rank != 4))
        return false;
    bool flat = a->rank == 3;
    *count = flat ? ot_attr_int(c->node, attr, 0) : a->dims[1];
    if (*count < 1 || (flat && a->dims[2] % *count != 0)) return false;
    *length = a->dims[flat ? 1 : 2];
    *size = flat ? a->dims[2] / *count : a->dims[3];
    *h = (heads){a->data, a->strides[0], flat ? *size : a->strides[1],
                 flat ? a->strides[1] : *size};
    return *length > 0 && *size > 0 && a->dims[0] > 0;
}

/* A mask of bools or numbers that broadcasts to the scores, as bias. */
static bool open_bias(ot_call *c, const ot_nd *m, attention *a)
{
    int64_t full[4] = {a->batch, a->heads, a->length, a->total}, step = a->total, n;
    if (!m) return true;
    if ((m->dtype != OT_F32 && m->dtype != OT_BOOL) || !ot_nd_is_dense(m) || m->rank < 1 ||
        m->rank > 4 || m->dims[m->rank - 1] != a->total || !ot_nd_elems(m, &n) || n == 0)
        return false;
    for (uint32_t d = 3; d-- > 0;) {
        int64_t have = d + m->rank >= 4 ? m->dims[d + m->rank - 4] : 1;
        if (have != 1 && have != full[d]) return false;
        a->bias_steps[d] = have == 1 ? 0 : step;
        step *= have;
    }
    a->bias = m->data;
    if (m->dtype == OT_F32) return true;
    float *to = ot_call_scratch(c, (size_t)n * sizeof *to);
    for (int64_t i = 0; to && i < n; i++) to[i] = ((const uint8_t *)m->data)[i] ? 0.0f : -INFINITY;
    a->bias = to;
    return to != NULL;
}

static bool plain_attention(ot_call *c, attention *a)
{
    const ot_node *n = c->node;
    int64_t k_heads = 0, v_heads = 0, v_length = 0, k_size = 0;
    if (ot_rows_in(c, 4) || ot_rows_in(c, 5) || ot_rows_in(c, 6) || ot_rows_wants(c, 1) ||
        ot_rows_wants(c, 2) || ot_rows_wants(c, 3) ||
        ot_attr_int(n, "left_window_size", -1) != -1 ||
        ot_attr_int(n, "right_window_size", -1) != -1 || ot_attr_float(n, "softcap", 0) != 0)
        return false;
    if (!open_heads(c, 0, "q_num_heads", &a->q, &a->heads, &a->length, &a->size) ||
        !open_heads(c, 1, "kv_num_heads", &a->k, &k_heads, &a->total, &k_size) ||
        !open_heads(c, 2, "kv_num_heads", &a->v, &v_heads, &v_length, &a->v_size))
        return false;
    a->batch = c->in[0]->dims[0];
    a->shared = a->heads / k_heads;
    a->causal = ot_attr_int(n, "is_causal", 0) != 0;
    a->scale = ot_attr_float(n, "scale", (float)(1 / sqrt((double)a->size)));
    return c->in[1]->dims[0] == a->batch && c->in[2]->dims[0] == a->batch && k_heads == v_heads &&
           v_length == a->total && k_size == a->size && a->heads % k_heads == 0 &&
           c->in[0]->rank == c->in[1]->rank && c->in[0]->rank == c->in[2]->rank &&
           open_bias(c, ot_rows_in(c, 3), a);
}

ot_status ot_fast_attention(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_attention, 0);
    attention a = {0};
    if (!plain_attention(c, &a)) return ot_ref_attention(c);
    bool flat = c->in[0]->rank == 3;
    int64_t dims[4] = {a.batch, a.heads, a.length, a.v_size},
            flat_dims[3] = {a.batch, a.length, a.heads * a.v_size};
    OT_TRY(ot_call_output(c, 0, OT_F32, flat ? 3 : 4, flat ? flat_dims : dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    a.out = c->out[0]->data;
    a.y = (heads){NULL, a.length * a.heads * a.v_size, flat ? a.v_size : a.length * a.v_size,
                  flat ? a.heads * a.v_size : a.v_size};
    return run_attention(c, &a);
}

/* ---- Attention of com.microsoft: one product makes queries, keys and values ---- */

/* mask_index as bias: [batch] numbers of keys, or [batch, total] or [batch, length, total] of
 * ones and zeros. */
static bool open_mask_index(ot_call *c, attention *a)
{
    const ot_nd *m = ot_rows_in(c, 3);
    float filter = ot_attr_float(c->node, "mask_filter_value", -10000);
    if (!m) return true;
    bool ends = m->rank == 1 && m->dims[0] == a->batch,
         keys = m->rank == 2 && m->dims[1] == a->total;
    bool pairs = m->rank == 3 && m->dims[1] == a->length && m->dims[2] == a->total;
    if (m->dtype != OT_I32 || !ot_nd_is_dense(m) || m->dims[0] != a->batch ||
        !(ends || keys || pairs))
        return false;
    int64_t rows = a->batch * (pairs ? a->length : 1), n;
    if (!ot_mul_i64(rows, a->total, &n)) return false;
    float *to = ot_call_scratch(c, (size_t)n * sizeof *to);
    const int32_t *of = m->data;
    for (int64_t i = 0; to && i < n; i++)
        to[i] = (ends ? i % a->total < of[i / a->total] : of[i] > 0) ? 0.0f : filter;
    a->bias = to;
    a->bias_steps[0] = a->total * (pairs ? a->length : 1);
    a->bias_steps[2] = pairs ? a->total : 0;
    return to != NULL;
}

/* x [batch, length, inner] * W [inner, columns] + bias; false: the reference knows what to do. */
static bool projected_attention(ot_call *c, attention *a)
{
    const ot_node *n = c->node;
    const ot_nd *x = ot_rows_in(c, 0), *w = ot_rows_in(c, 1), *bias = ot_rows_in(c, 2);
    if (!ot_rows_takes(c) || x->rank != 3 || !w || w->dtype != OT_F32 || !ot_nd_is_dense(w) ||
        w->rank != 2 || w->dims[0] != x->dims[2] ||
        (bias && (bias->dtype != OT_F32 || bias->rank != 1 || bias->dims[0] != w->dims[1])))
        return false;
    if (ot_rows_in(c, 4) || ot_rows_in(c, 6) || ot_rows_wants(c, 1) ||
        ot_attr_int(n, "do_rotary", 0) != 0 ||
        ot_attr_int(n, "past_present_share_buffer", 0) != 0 ||
        ot_attr_find(n, "qkv_hidden_sizes") || (ot_rows_in(c, 3) && ot_rows_in(c, 5)))
        return false;
    a->heads = ot_attr_int(n, "num_heads", 0);
    if (a->heads < 1 || w->dims[1] < 1 || w->dims[1] % (3 * a->heads) != 0 ||
        x->dims[0] * x->dims[1] * x->dims[2] == 0)
        return false;
    a->size = a->v_size = w->dims[1] / 3 / a->heads;
    a->batch = x->dims[0];
    a->length = a->total = x->dims[1];
    a->shared = 1;
    a->causal = ot_attr_int(n, "unidirectional", 0) != 0;
    float scale = ot_attr_float(n, "scale", 0);
    a->scale = scale != 0 ? scale : (float)(1 / sqrt((double)a->size));
    const ot_nd *b = ot_rows_in(c, 5);
    return (!b || (b->rank == 4 && b->dtype == OT_F32)) && open_bias(c, b, a) &&
           open_mask_index(c, a);
}

static ot_status project(ot_call *c, attention *a)
{
    const ot_nd *x = c->in[0], *w = c->in[1], *bias = ot_rows_in(c, 2);
    int64_t columns = w->dims[1], inner = x->dims[2], rows = a->batch * a->length,
            each = a->heads * a->size, n;
    if (!ot_mul_i64(rows, columns, &n) || n > INT64_MAX / 8) return ot_fail_nomem(c->diag);
    float *y = ot_call_scratch(c, (size_t)n * sizeof *y);
    if (!y) return ot_fail_nomem(c->diag);
    for (int64_t r = 0; bias && r < rows; r++)
        memcpy(y + r * columns, bias->data, (size_t)columns * sizeof *y);
    ot_product_job j = {.m = rows,
                        .n = columns,
                        .k = inner,
                        .ldc = columns,
                        .c = y,
                        .alpha = 1,
                        .add = bias != NULL};
    j.a = (ot_matrix){x->data, inner, 1, inner, false};
    j.b = (ot_matrix){w->data, columns, 1, columns, false};
    ot_product_constant(c, 1, &j);
    if (ot_product_shared(c, &j) != OT_OK) return ot_fail_nomem(c->diag);
    heads of = {y, a->length * columns, a->size, columns};
    a->q = a->k = a->v = of;
    a->k.data += each;
    a->v.data += 2 * each;
    return OT_OK;
}

ot_status ot_fast_projected_attention(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_projected_attention, 0);
    attention a = {0};
    if (!projected_attention(c, &a)) return ot_ref_projected_attention(c);
    int64_t width = a.heads * a.v_size, dims[3] = {a.batch, a.length, width};
    OT_TRY(ot_call_output(c, 0, OT_F32, 3, dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    OT_TRY(project(c, &a));
    a.out = c->out[0]->data;
    a.y = (heads){NULL, a.length * width, a.v_size, width};
    return run_attention(c, &a);
}
