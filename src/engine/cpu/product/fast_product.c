/* MatMul, Gemm, FusedMatMul in float32; of 16 bits: half_product.c.
 *
 *   operands are matrices with strides --view_of--> how a product routine may read them as they lie
 *   (or a dense copy)
 *
 *       one row or one column      own loops: dot products, or sums of rows
 *       B constant                 packed into panels, by the session (product_pack.c) or at the
 *                                  first call, in the node's state
 *       rows of B share cache sets packed into panels piece by piece
 *       else                       dnnl_sgemm
 *
 * Many matrices are shared out over threads; of few, each is computed by all threads. What is no
 * float32, and what the operator refuses, goes to the reference, which explains it.
 */
#include "fast_product.h"

#include "engine/core/dnnl_util.h"
#include "engine/core/pool.h"

#include <stdatomic.h>

/* ---- operands ---- */

bool ot_product_view(const float *data, int64_t rows, int64_t columns, int64_t row_step,
                     int64_t column_step, ot_matrix *out)
{
    *out = (ot_matrix){.data = data, .row_step = row_step, .column_step = column_step};
    if (columns <= 1) {
        out->column_step = 1;
        out->ld = rows <= 1 ? 1 : row_step;
        if (rows <= 1) out->row_step = 1;
        return out->ld >= 1;
    }
    if (rows <= 1) {
        out->transposed = column_step != 1;
        out->ld = out->transposed ? column_step : columns;
        out->row_step = out->transposed ? 1 : columns;
        return column_step >= 1;
    }
    if (column_step == 1 && row_step >= columns) {
        out->ld = row_step;
        return true;
    }
    out->transposed = true;
    out->ld = column_step;
    return row_step == 1 && column_step >= rows;
}

/* ---- one product ---- */

static void rows_by_vector(const ot_product_job *j)
{
    const ot_matrix *a = &j->a, *b = &j->b;
    for (int64_t i = 0; i < j->m; i++) {
        double sum = ot_rows_dot(a->data + i * a->row_step, b->data, j->k);
        float *y = j->c + i * j->ldc;
        *y = (float)((double)j->alpha * sum) + (j->add ? *y : 0.0f);
    }
}

static void vector_by_columns(const ot_product_job *j)
{
    for (int64_t i = 0; i < j->n; i++) {
        double sum = ot_rows_dot(j->a.data, j->b.data + i * j->b.column_step, j->k);
        j->c[i] = (float)((double)j->alpha * sum) + (j->add ? j->c[i] : 0.0f);
    }
}

/* Inner products need both vectors without steps. */
static bool by_dots(const ot_product_job *j)
{
    bool a_dense = j->a.column_step == 1, b_dense = j->b.row_step == 1;
    return a_dense && b_dense && (j->n == 1 || j->m == 1);
}

enum { CHUNK = 32768 }; /* floats of B that are packed at a time */

/* Rows of B that lie a multiple of 4 KiB apart fall into the same cache sets: it is packed piece
 * by piece. */
static bool packs_on_the_way(const ot_product_job *j)
{
    return ot_panels_pay() && j->m >= 24 && j->n >= OT_PANEL && j->k >= 8 &&
           j->k <= CHUNK / OT_PANEL && j->a.column_step == 1 && j->b.column_step == 1 &&
           j->b.ld % 1024 == 0;
}

static void run_packing(const ot_product_job *j)
{
    _Alignas(64) float panels[CHUNK];
    int64_t step = CHUNK / (OT_PANEL * j->k) * OT_PANEL;
    for (int64_t at = 0; at < j->n; at += step) {
        int64_t n = ot_min(step, j->n - at), end = (n + OT_PANEL - 1) / OT_PANEL;
        ot_panels_pack(panels, j->b.data + at, &(ot_matrix_layout){j->k, n, j->b.ld, 1}, 0, end);
        ot_panels_job p = {j->m,      n,      j->k,      j->a.row_step, j->ldc,
                           j->a.data, panels, j->c + at, j->alpha,      j->add};
        ot_panels_product(&p, 0, end);
    }
}

ot_status ot_product_run(const ot_product_job *j)
{
    if (j->m == 0 || j->n == 0) return OT_OK;
    if (j->k == 0) {
        for (int64_t i = 0; i < j->m && !j->add; i++)
            memset(j->c + i * j->ldc, 0, (size_t)j->n * sizeof *j->c);
        return OT_OK;
    }
    if (by_dots(j)) {
        if (j->n == 1)
            rows_by_vector(j);
        else
            vector_by_columns(j);
        return OT_OK;
    }
    if (j->panels) {
        ot_panels_job p = {j->m,      j->n,      j->k, j->a.row_step, j->ldc,
                           j->a.data, j->panels, j->c, j->alpha,      j->add};
        ot_panels_product(&p, 0, (j->n + OT_PANEL - 1) / OT_PANEL);
        return OT_OK;
    }
    if (packs_on_the_way(j)) {
        run_packing(j);
        return OT_OK;
    }
    ot_dnnl_alone();
    dnnl_status_t s = dnnl_sgemm(j->a.transposed ? 'T' : 'N', j->b.transposed ? 'T' : 'N', j->m,
                                 j->n, j->k, j->alpha, j->a.data, j->a.ld, j->b.data, j->b.ld,
                                 j->add ? 1.0f : 0.0f, j->c, j->ldc);
    return s == dnnl_success ? OT_OK : OT_E_NOMEM;
}

/* Rows [first, end) and panels or columns of the product. */
static ot_product_job part_of(const ot_product_job *j, int64_t row, int64_t rows, int64_t column,
                              int64_t columns)
{
    ot_product_job p = *j;
    p.m = rows;
    p.n = columns;
    p.a.data += row * j->a.row_step;
    p.b.data += column * j->b.column_step;
    if (p.panels) p.panels += column * j->k;
    p.c += row * j->ldc + column;
    return p;
}

/* One product, cut along its rows or its columns. */
typedef struct cut_product {
    const ot_product_job *j;
    bool by_rows;
    int64_t unit, extent; /* rows or columns that stay together: a register tile; all */
    atomic_bool failed;
} cut_product;

static void cut_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    cut_product *c = job;
    const ot_product_job *j = c->j;
    int64_t at = first * c->unit, n = ot_min(c->extent, end * c->unit) - at;
    ot_product_job p = c->by_rows ? part_of(j, at, n, 0, j->n) : part_of(j, 0, j->m, at, n);
    (void)worker;
    if (ot_product_run(&p) != OT_OK) c->failed = true;
}

/* Over all threads: pieces of rows or of columns, whichever there are more of, each a multiple
 * of a register tile. */
static ot_status run_shared(const ot_product_job *j, int threads)
{
    bool by_rows = j->m >= j->n || j->m >= 64 * threads;
    cut_product c = {.j = j,
                     .by_rows = by_rows,
                     .unit = by_rows ? OT_PRODUCT_ROWS : OT_PANEL,
                     .extent = by_rows ? j->m : j->n};
    int64_t units = ot_ceil_div(c.extent, c.unit),
            least = j->panels ? 1 : ot_ceil_div(units, threads); /* who packs B does it for each */
    ot_pool_share((uint32_t)threads, units, least, cut_share, &c);
    return c.failed ? OT_E_NOMEM : OT_OK;
}

/* ---- packed constants ---- */

/* from here on oneDNN, which packs at each call, is as fast and needs no second copy */
enum { PACKED_ROWS = 1024 };

bool ot_product_takes_panels(int64_t m, int64_t n, int64_t k)
{
    return ot_panels_pay() && m >= 2 && m <= PACKED_ROWS && n >= OT_PANEL && k >= 8;
}

ot_product_panels *ot_product_panels_new(const ot_product_panels *like)
{
    int64_t size = ot_panels_size(like->k, like->n);
    if (size < 0 || size > INT64_MAX / 8) return NULL;
    size_t bytes = (sizeof *like + (size_t)size * sizeof(float) + 63) / 64 * 64;
    ot_product_panels *p = aligned_alloc(64, bytes);
    if (p) *p = *like;
    return p;
}

static ot_product_panels *pack(const ot_product_job *j)
{
    const ot_product_panels like = {j->b.data,     OT_F32,           j->k, j->n,
                                    j->b.row_step, j->b.column_step, false};
    ot_product_panels *p = ot_product_panels_new(&like);
    if (p)
        ot_panels_pack(p->panels, j->b.data,
                       &(ot_matrix_layout){j->k, j->n, j->b.row_step, j->b.column_step}, 0,
                       (j->n + OT_PANEL - 1) / OT_PANEL);
    return p;
}

/* Threads may meet here at the same node: the first to finish wins. Without memory for it the
 * product goes on unpacked. */
static ot_product_panels *panels_of(ot_call *c, const ot_product_job *j)
{
    ot_product_panels *p = __atomic_load_n(&c->state->data, __ATOMIC_ACQUIRE);
    void *none = NULL;
    if (p) return p;
    p = pack(j);
    if (!p) return NULL;
    if (__atomic_compare_exchange_n(&c->state->data, &none, p, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        c->state->free = free;
        return p;
    }
    free(p);
    return none;
}

void ot_product_constant(ot_call *c, uint32_t k, ot_product_job *j)
{
    ot_id v = k < c->node->n_in ? c->node->in[k] : OT_NONE;
    if (!c->state || v == OT_NONE || !c->g->values[v].is_const || j->a.column_step != 1) return;
    if (!ot_product_takes_panels(j->m, j->n, j->k)) return;
    const ot_product_panels *p = panels_of(c, j);
    if (p && p->from == j->b.data && p->k == j->k && p->n == j->n && p->row_step == j->b.row_step &&
        p->column_step == j->b.column_step)
        j->panels = p->panels;
}

/* B is in panels and nowhere else. */
static bool only_panels(const ot_call *c, ot_product_job *j)
{
    const ot_product_panels *p = c->state ? __atomic_load_n(&c->state->data, __ATOMIC_ACQUIRE)
                                          : NULL;
    if (!p || !p->only) return false;
    if (p->k != j->k || p->n != j->n || j->a.column_step != 1) OT_BUG("a product lost its operand");
    j->panels = p->panels;
    j->b.row_step = j->b.column_step = 0;
    return true;
}

/* ---- batches ---- */

void ot_product_open_batch(const ot_matmul *p, const ot_nd *a, const ot_nd *b,
                           ot_product_batch *out)
{
    uint32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
    *out = (ot_product_batch){.rank = p->batch_rank, .count = 1};
    for (uint32_t k = 0; k < p->batch_rank; k++) {
        uint32_t from_end = p->batch_rank - k;
        out->dims[k] = p->batch[k];
        out->a_step[k] = from_end <= ra && a->dims[ra - from_end] != 1 ? a->strides[ra - from_end]
                                                                       : 0;
        out->b_step[k] = from_end <= rb && b->dims[rb - from_end] != 1 ? b->strides[rb - from_end]
                                                                       : 0;
        out->count *= p->batch[k];
    }
}

/* With one B for all, matrices of A whose rows follow on one another are one matrix. */
static void collapse(ot_product_batch *t, ot_product_job *j)
{
    for (uint32_t k = 0; k < t->rank; k++)
        if (t->b_step[k] != 0) return;
    for (; t->rank > 0; t->rank--) {
        int64_t d = t->dims[t->rank - 1];
        if (d != 1 && (j->m == 1 || t->a_step[t->rank - 1] != j->a.row_step * j->m)) return;
        j->m *= d;
        t->count /= d;
    }
}

/* Vectors of a batch that share B are the rows of a matrix. */
static void stack_vectors(ot_product_batch *t, ot_product_job *j)
{
    if (j->m != 1 || t->rank == 0) return;
    for (uint32_t k = 0; k < t->rank; k++)
        if (t->b_step[k] != 0) return;
    int64_t step = t->a_step[t->rank - 1];
    if (step < j->k || j->a.column_step != 1) return;
    for (uint32_t k = t->rank; k-- > 1;)
        if (t->a_step[k - 1] != t->a_step[k] * t->dims[k]) return;
    j->m = t->count;
    j->a.row_step = j->a.ld = step;
    j->a.transposed = false;
    *t = (ot_product_batch){.count = 1};
}

void ot_product_join(ot_product_batch *t, ot_product_job *j)
{
    collapse(t, j);
    stack_vectors(t, j);
}

typedef struct many_products {
    const ot_product_batch *t;
    const ot_product_job *j;
    atomic_bool failed;
} many_products;

static void many_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    many_products *m = job;
    (void)worker;
    for (int64_t i = first; i < end; i++) {
        ot_product_job one = *m->j;
        ot_product_at(m->t->rank, m->t->dims, m->t->a_step, m->t->b_step, i, &one);
        if (ot_product_run(&one) != OT_OK) m->failed = true;
    }
}

static ot_status run_batch(ot_call *c, const ot_product_batch *t, const ot_product_job *j)
{
    double work = 2.0 * (double)j->m * (double)j->n * (double)j->k;
    int threads = ot_rows_threads(c, work * (double)t->count / 16);
    if (threads > 1 && t->count < 2 * threads) {
        for (int64_t i = 0; i < t->count; i++) {
            ot_product_job one = *j;
            ot_product_at(t->rank, t->dims, t->a_step, t->b_step, i, &one);
            if (run_shared(&one, threads) != OT_OK) return ot_fail_nomem(c->diag);
        }
        return OT_OK;
    }
    many_products many = {.t = t, .j = j};
    ot_pool_share((uint32_t)threads, t->count, 1, many_share, &many);
    return many.failed ? ot_fail_nomem(c->diag) : OT_OK;
}

ot_status ot_product_shared(ot_call *c, const ot_product_job *j)
{
    int threads = ot_rows_threads(c, (double)j->m * (double)j->n * (double)j->k / 8);
    return threads > 1 ? run_shared(j, threads) : ot_product_run(j);
}

void ot_product_at(uint32_t rank, const int64_t *dims, const int64_t *a_step, const int64_t *b_step,
                   int64_t i, ot_product_job *j)
{
    j->c += i * j->m * j->n;
    for (uint32_t k = rank; k-- > 0; i /= dims[k]) {
        j->a.data += i % dims[k] * a_step[k];
        j->b.data += i % dims[k] * b_step[k];
    }
}

/* ---- implementations ---- */

/* Product of a and b (already seen the right way round) into output 0. */
static ot_status run_matmul(ot_call *c, const ot_nd *a, const ot_nd *b, float alpha,
                            ot_op_fn otherwise)
{
    ot_matmul p = {0};
    ot_product_batch t;
    OT_TRY(ot_matmul_open(c, a, b, &p));
    ot_product_job j = {.m = p.m, .n = p.n, .k = p.k, .ldc = p.n, .alpha = alpha};
    int64_t a_row = a->rank > 1 ? a->strides[a->rank - 2] : p.k,
            b_column = b->rank > 1 ? b->strides[b->rank - 1] : 1;
    bool ok = ot_product_view(a->data, p.m, p.k, a_row, a->strides[a->rank - 1], &j.a);
    ok = ot_product_view(b->data, p.k, p.n, b->strides[b->rank > 1 ? b->rank - 2 : 0], b_column,
                         &j.b) &&
         ok;
    if (!ok) return otherwise(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, p.rank, p.dims));
    if (!ot_num_out(c, 0) || p.count == 0) return OT_OK;
    j.c = c->out[0]->data;
    ot_product_open_batch(&p, a, b, &t);
    ot_product_join(&t, &j);
    if (!only_panels(c, &j) && t.count == 1) ot_product_constant(c, 1, &j);
    return run_batch(c, &t, &j);
}

static bool both_float(const ot_call *c)
{
    return c->n_in >= 2 && c->in[0] && c->in[1] && c->in[0]->dtype == OT_F32 &&
           c->in[1]->dtype == OT_F32;
}

ot_status ot_fast_matmul(ot_call *c)
{
    if (ot_half_operands(c)) return ot_half_matmul(c, c->in[0], c->in[1], 1, ot_ref_matmul);
    if (!both_float(c)) return ot_ref_matmul(c);
    return run_matmul(c, c->in[0], c->in[1], 1, ot_ref_matmul);
}

void ot_product_swap(ot_nd *a)
{
    if (a->rank < 2) return;
    uint32_t r = a->rank - 1;
    int64_t d = a->dims[r], s = a->strides[r];
    a->dims[r] = a->dims[r - 1];
    a->strides[r] = a->strides[r - 1];
    a->dims[r - 1] = d;
    a->strides[r - 1] = s;
}

ot_status ot_fast_fused_matmul(ot_call *c)
{
    const ot_node *n = c->node;
    bool half = ot_half_operands(c);
    if ((!half && !both_float(c)) || ot_attr_int(n, "transBatchA", 0) != 0 ||
        ot_attr_int(n, "transBatchB", 0) != 0)
        return ot_ref_fused_matmul(c);
    ot_nd a = *c->in[0], b = *c->in[1];
    if (ot_attr_int(n, "transA", 0) != 0) ot_product_swap(&a);
    if (ot_attr_int(n, "transB", 0) != 0) ot_product_swap(&b);
    float alpha = ot_attr_float(n, "alpha", 1);
    return half ? ot_half_matmul(c, &a, &b, alpha, ot_ref_fused_matmul)
                : run_matmul(c, &a, &b, alpha, ot_ref_fused_matmul);
}

void ot_product_put_bias(const ot_nd *bias, float beta, float *y, int64_t m, int64_t n)
{
    int64_t columns = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1,
            rows = bias->rank > 1 ? bias->dims[bias->rank - 2] : 1;
    int64_t column_step = columns == 1 ? 0 : bias->strides[bias->rank - 1],
            row_step = rows == 1 ? 0 : bias->strides[bias->rank - 2];
    const float *b = bias->data;
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++) y[i * n + k] = beta * b[i * row_step + k * column_step];
}

bool ot_product_bias_fits(const ot_nd *bias, int64_t m, int64_t n)
{
    int64_t columns = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1,
            rows = bias->rank > 1 ? bias->dims[bias->rank - 2] : 1;
    return bias->rank <= 2 && (columns == 1 || columns == n) && (rows == 1 || rows == m);
}

ot_status ot_fast_gemm(ot_call *c)
{
    const ot_nd *bias = ot_num_in(c, 2);
    float beta = ot_attr_float(c->node, "beta", 1);
    if (ot_half_operands(c)) return ot_half_gemm(c);
    if (!both_float(c) || c->in[0]->rank != 2 || c->in[1]->rank != 2) return ot_ref_gemm(c);
    ot_nd a = *c->in[0], b = *c->in[1];
    if (ot_attr_int(c->node, "transA", 0) != 0) ot_product_swap(&a);
    if (ot_attr_int(c->node, "transB", 0) != 0) ot_product_swap(&b);
    int64_t dims[2] = {a.dims[0], b.dims[1]}, count;
    if (a.dims[1] != b.dims[0] || !ot_product(dims, 2, &count) ||
        (bias && (bias->dtype != OT_F32 || !ot_product_bias_fits(bias, dims[0], dims[1]))))
        return ot_ref_gemm(c);
    ot_product_job j = {.m = dims[0],
                        .n = dims[1],
                        .k = a.dims[1],
                        .ldc = dims[1],
                        .alpha = ot_attr_float(c->node, "alpha", 1)};
    bool ok = ot_product_view(a.data, j.m, j.k, a.strides[0], a.strides[1], &j.a);
    ok = ot_product_view(b.data, j.k, j.n, b.strides[0], b.strides[1], &j.b) && ok;
    if (!ok) return ot_ref_gemm(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, 2, dims));
    if (!ot_num_out(c, 0) || count == 0) return OT_OK;
    j.c = c->out[0]->data;
    j.add = bias != NULL;
    if (bias) ot_product_put_bias(bias, beta, j.c, j.m, j.n);
    if (!only_panels(c, &j)) ot_product_constant(c, 1, &j);
    return run_batch(c, &(ot_product_batch){.count = 1}, &j);
}

const ot_op_entry ot_fast_product[] = {
    {OT_OP_MatMul, ot_fast_matmul},
    {OT_OP_Gemm, ot_fast_gemm},
    {OT_OP_Attention, ot_fast_attention},
    {OT_OP_Einsum, ot_fast_einsum},
    {OT_OP_RNN, ot_fast_rnn},
    {OT_OP_GRU, ot_fast_gru},
    {OT_OP_LSTM, ot_fast_lstm},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_fast_product_named[] = {
    {"com.microsoft", "FusedMatMul", ot_fast_fused_matmul},
    {"com.microsoft", "MatMulNBits", ot_fast_matmul_nbits},
    {"com.microsoft", "Attention", ot_fast_projected_attention},
    {"", "STFT", ot_fast_stft},
    {"", "DFT", ot_fast_dft},
    {"", "RotaryEmbedding", ot_fast_rotary_embedding},
    {NULL, NULL, NULL},
};
