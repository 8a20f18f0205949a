/* MatMul, Gemm, FusedMatMul of 16 bits: float32 products of widened pieces.
 *
 *   A [m, k]   rows, a piece at a time  --widen-->  float32  --.
 *   B [k, n]   constant: panels, packed once (product_pack.c)  --product-->  rows of C, float32
 *              --narrow-->  C [m, n]
 *              else widened before, or by each thread the columns that it computes
 *
 * Threads take pieces: of rows, or of columns where there are few rows. Sums, factor and bias
 * are float32; the result is rounded once.
 */
#include "fast_product.h"

#include "engine/core/half.h"
#include "engine/cpu/rows/fast_rows.h"

#include <stdatomic.h>

/* of rows of A and C: less than a core's second-level cache */
#define PIECE_FLOATS ((int64_t)96 << 10)
#define FEW_ROWS     48 /* so many are not shared out */

typedef struct half_product {
    ot_dtype type;
    int64_t m, n, k;
    ot_matrix a, b; /* steps; no data */
    const float *panels, *bias;
    int64_t bias_row, bias_column;
    float alpha;
} half_product;

/* One of a batch. */
typedef struct half_item {
    const uint16_t *a, *b;
    uint16_t *c;
    const float *wide; /* B as float32, steps like b's; NULL: panels, or to be widened */
} half_item;

bool ot_half_operands(const ot_call *c)
{
    return c->n_in >= 2 && c->in[0] && c->in[1] && ot_dtype_is_half(c->in[0]->dtype) &&
           c->in[1]->dtype == c->in[0]->dtype;
}

/* ---- widening ---- */

/* Rows [row, row + rows), columns [column, column + columns) of a matrix, dense in its own
 * order; *out describes them. */
static void widen_part(ot_dtype t, const uint16_t *data, const ot_matrix *m, const int64_t at[2],
                       const int64_t n[2], float *to, ot_matrix *out)
{
    const uint16_t *from = data + at[0] * m->row_step + at[1] * m->column_step;
    *out = (ot_matrix){.data = to, .transposed = m->transposed};
    if (m->transposed) {
        for (int64_t j = 0; j < n[1]; j++)
            ot_half_widen(t, to + j * n[0], from + j * m->column_step, n[0]);
        out->row_step = 1;
        out->column_step = out->ld = n[0];
        return;
    }
    for (int64_t i = 0; i < n[0]; i++)
        ot_half_widen(t, to + i * n[1], from + i * m->row_step, n[1]);
    out->row_step = out->ld = n[1];
    out->column_step = 1;
}

bool ot_half_takes_panels(int64_t n, int64_t k) { return n >= OT_PANEL && k >= 8; }

void ot_half_panels_pack(ot_product_panels *p, const void *source, int64_t first, int64_t end)
{
    const uint16_t *b = source;
    float column[256];
    for (int64_t j = first * OT_PANEL; j < end * OT_PANEL; j += OT_PANEL) {
        float *to = p->panels + j * p->k;
        int64_t w = ot_min(OT_PANEL, p->n - j);
        if (w < OT_PANEL) memset(to, 0, (size_t)(p->k * OT_PANEL) * sizeof *to);
        for (int64_t i = 0; p->column_step == 1 && i < p->k; i++)
            ot_half_widen(p->type, to + i * OT_PANEL, b + i * p->row_step + j, w);
        for (int64_t u = 0; p->column_step != 1 && u < w; u++)
            for (int64_t i = 0; i < p->k; i += 256) {
                int64_t n = ot_min(256, p->k - i);
                ot_half_widen(p->type, column, b + (j + u) * p->column_step + i, n);
                for (int64_t q = 0; q < n; q++) to[(i + q) * OT_PANEL + u] = column[q];
            }
    }
}

/* ---- pieces ---- */

/* Floats that a piece of that extent takes. */
static int64_t piece_floats(const half_product *h, int64_t rows, int64_t columns, bool widens)
{
    return rows * h->k + rows * columns + (widens ? h->k * columns : 0) + 64;
}

/* Rows [row, row + rows) of columns [column, column + columns). */
static ot_status run_piece(const half_product *h, const half_item *x, int64_t row, int64_t rows,
                           int64_t column, int64_t columns, float *scratch)
{
    ot_product_job j = {.m = rows,
                        .n = columns,
                        .k = h->k,
                        .ldc = columns,
                        .alpha = h->alpha,
                        .add = h->bias != NULL};
    const int64_t a_at[2] = {row, 0}, a_n[2] = {rows, h->k}, b_at[2] = {0, column},
                  b_n[2] = {h->k, columns};
    float *wide = scratch + rows * h->k, *c = wide + (x->wide || h->panels ? 0 : h->k * columns);
    widen_part(h->type, x->a, &h->a, a_at, a_n, scratch, &j.a);
    if (h->panels && j.a.column_step != 1) OT_BUG("a product in panels reads columns");
    if (h->panels) {
        j.panels = h->panels + column * h->k;
    } else if (x->wide) {
        j.b = h->b;
        j.b.data = x->wide + column * h->b.column_step;
    } else {
        widen_part(h->type, x->b, &h->b, b_at, b_n, wide, &j.b);
    }
    j.c = c;
    for (int64_t i = 0; h->bias && i < rows; i++)
        for (int64_t q = 0; q < columns; q++)
            c[i * columns + q] = h->bias[(row + i) * h->bias_row + (column + q) * h->bias_column];
    OT_TRY(ot_product_run(&j));
    for (int64_t i = 0; i < rows; i++)
        ot_half_narrow(h->type, x->c + (row + i) * h->n + column, c + i * columns, columns);
    return OT_OK;
}

/* How a product is cut: pieces of so many columns, or of so many rows. */
typedef struct half_cut {
    bool by_columns, widens;    /* widens: each piece its columns of B */
    int64_t most, pieces, room; /* room: floats that a piece takes */
} half_cut;

static half_cut cut_of(const half_product *h, int threads)
{
    half_cut x = {.by_columns = h->m <= FEW_ROWS ||
                                (threads > 1 && h->m < OT_PRODUCT_ROWS * threads)};
    x.widens = !h->panels && h->m <= FEW_ROWS;
    int64_t extent = x.by_columns ? h->n : h->m, unit = x.by_columns ? OT_PANEL : OT_PRODUCT_ROWS;
    int64_t each = x.by_columns ? h->m + (x.widens ? h->k : 0) : h->k + h->n;
    x.most = ot_max(PIECE_FLOATS / each / unit, 1) * unit;
    x.most = ot_min(x.most, ot_ceil_div(ot_ceil_div(extent, threads), unit) * unit);
    x.pieces = ot_ceil_div(extent, x.most);
    x.room = x.by_columns ? piece_floats(h, h->m, ot_min(x.most, h->n), x.widens)
                          : piece_floats(h, ot_min(x.most, h->m), h->n, false);
    x.room = ot_ceil_div(x.room, 16) * 16;
    return x;
}

typedef struct half_run {
    const half_product *h;
    const half_cut *cut;
    const half_item *x;
    float *scratch; /* [threads][room] */
    atomic_bool failed;
} half_run;

static void pieces_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    half_run *r = job;
    const half_product *h = r->h;
    const half_cut *cut = r->cut;
    float *own = r->scratch + worker * cut->room;
    for (int64_t p = first; p < end; p++) {
        int64_t at = p * cut->most, n = ot_min(cut->most, (cut->by_columns ? h->n : h->m) - at);
        ot_status s = cut->by_columns ? run_piece(h, r->x, 0, h->m, at, n, own)
                                      : run_piece(h, r->x, at, n, 0, h->n, own);
        if (s != OT_OK) r->failed = true;
    }
}

/* One product by all threads. */
static ot_status run_item(const half_product *h, const half_cut *cut, const half_item *x,
                          int threads, float *scratch)
{
    half_run r = {.h = h, .cut = cut, .x = x, .scratch = scratch};
    ot_pool_share((uint32_t)threads, cut->pieces, 1, pieces_share, &r);
    return r.failed ? OT_E_NOMEM : OT_OK;
}

/* Operands and result of item i. */
static half_item item_at(const half_product *h, const ot_product_batch *t, const half_item *first,
                         int64_t i)
{
    half_item x = *first;
    x.c += i * h->m * h->n;
    for (uint32_t d = t->rank; d-- > 0; i /= t->dims[d]) {
        x.a += i % t->dims[d] * t->a_step[d];
        x.b += i % t->dims[d] * t->b_step[d];
    }
    return x;
}

static ot_status run_half(ot_call *c, const half_product *product, const ot_product_batch *t,
                          const half_item *first)
{
    half_product h = *product;
    int threads = ot_rows_threads(c, (double)h.m * (double)h.n * (double)h.k / 8);
    const half_cut cut = cut_of(&h, threads);
    const int64_t at[2] = {0, 0}, whole[2] = {h.k, h.n};
    int64_t room, b_floats = h.panels || cut.widens ? 0 : h.k * h.n;
    if (!ot_mul_i64(cut.room, threads, &room)) return OT_E_NOMEM;
    float *scratch = ot_num_scratch(c, room, sizeof *scratch),
          *wide = b_floats ? ot_num_scratch(c, b_floats, sizeof *wide) : NULL;
    if (!scratch || (b_floats && !wide)) return OT_E_NOMEM;
    const uint16_t *widened = NULL;
    for (int64_t i = 0; i < t->count; i++) {
        half_item x = item_at(&h, t, first, i);
        if (wide && widened != x.b)
            widen_part(h.type, widened = x.b, &product->b, at, whole, wide, &h.b);
        x.wide = wide;
        OT_TRY(run_item(&h, &cut, &x, threads, scratch));
    }
    return OT_OK;
}

/* ---- implementations ---- */

/* Panels that the session packed. */
static const float *panels_of(const ot_call *c, const half_product *h)
{
    const ot_product_panels *p = c->state ? __atomic_load_n(&c->state->data, __ATOMIC_ACQUIRE)
                                          : NULL;
    if (!p) return NULL;
    if (p->k != h->k || p->n != h->n || h->a.column_step != 1) OT_BUG("a product lost its operand");
    return p->panels;
}

ot_status ot_half_matmul(ot_call *c, const ot_nd *a, const ot_nd *b, float alpha,
                         ot_op_fn otherwise)
{
    ot_matmul p = {0};
    ot_product_batch t;
    OT_TRY(ot_matmul_open(c, a, b, &p));
    ot_product_job j = {.m = p.m, .n = p.n, .k = p.k};
    int64_t a_row = a->rank > 1 ? a->strides[a->rank - 2] : p.k,
            b_column = b->rank > 1 ? b->strides[b->rank - 1] : 1;
    bool ok = ot_product_view(NULL, p.m, p.k, a_row, a->strides[a->rank - 1], &j.a);
    ok = ot_product_view(NULL, p.k, p.n, b->strides[b->rank > 1 ? b->rank - 2 : 0], b_column,
                         &j.b) &&
         ok;
    if (!ok || p.k == 0) return otherwise(c);
    OT_TRY(ot_call_output(c, 0, a->dtype, p.rank, p.dims));
    if (!ot_num_out(c, 0) || p.count == 0) return OT_OK;
    ot_product_open_batch(&p, a, b, &t);
    ot_product_join(&t, &j);
    half_product h = {
        .type = a->dtype, .m = j.m, .n = j.n, .k = j.k, .a = j.a, .b = j.b, .alpha = alpha};
    h.panels = panels_of(c, &h);
    return run_half(c, &h, &t, &(half_item){a->data, b->data, c->out[0]->data, NULL});
}

/* beta * C as float32: a number, a row, a column or all of it. */
static ot_status open_bias(ot_call *c, const ot_nd *bias, half_product *h)
{
    int64_t n = ot_num_count(bias), columns = bias->rank > 0 ? bias->dims[bias->rank - 1] : 1,
            rows = bias->rank > 1 ? bias->dims[bias->rank - 2] : 1;
    float *to = ot_num_scratch(c, n, sizeof *to), beta = ot_attr_float(c->node, "beta", 1);
    if (!to) return OT_E_NOMEM;
    ot_half_widen(bias->dtype, to, bias->data, n);
    for (int64_t i = 0; i < n; i++) to[i] *= beta;
    h->bias = to;
    h->bias_row = rows == 1 ? 0 : columns;
    h->bias_column = columns == 1 ? 0 : 1;
    return OT_OK;
}

ot_status ot_half_gemm(ot_call *c)
{
    const ot_nd *bias = ot_num_in(c, 2);
    if (c->in[0]->rank != 2 || c->in[1]->rank != 2) return ot_ref_gemm(c);
    ot_nd a = *c->in[0], b = *c->in[1];
    if (ot_attr_int(c->node, "transA", 0) != 0) ot_product_swap(&a);
    if (ot_attr_int(c->node, "transB", 0) != 0) ot_product_swap(&b);
    int64_t dims[2] = {a.dims[0], b.dims[1]}, count;
    half_product h = {.type = a.dtype,
                      .m = dims[0],
                      .n = dims[1],
                      .k = a.dims[1],
                      .alpha = ot_attr_float(c->node, "alpha", 1)};
    if (h.k != b.dims[0] || h.k == 0 || !ot_product(dims, 2, &count)) return ot_ref_gemm(c);
    if (bias && (bias->dtype != a.dtype || !ot_product_bias_fits(bias, h.m, h.n)))
        return ot_ref_gemm(c);
    bool ok = ot_product_view(NULL, h.m, h.k, a.strides[0], a.strides[1], &h.a);
    ok = ot_product_view(NULL, h.k, h.n, b.strides[0], b.strides[1], &h.b) && ok;
    if (!ok) return ot_ref_gemm(c);
    OT_TRY(ot_call_output(c, 0, a.dtype, 2, dims));
    if (!ot_num_out(c, 0) || count == 0) return OT_OK;
    if (bias) OT_TRY(open_bias(c, bias, &h));
    h.panels = panels_of(c, &h);
    return run_half(c, &h, &(ot_product_batch){.count = 1},
                    &(half_item){a.data, b.data, c->out[0]->data, NULL});
}
