/* MatMul, MatMulInteger, QLinearMatMul, FusedMatMul.
 *
 * The quantized forms subtract zero points first and multiply the sums by the scales afterwards;
 * zero points and scales are one number, or one for each row of a and each column of b.
 */
#include "ref_product.h"

/* ---- shapes ---- */

static ot_status broadcast_batch(ot_call *c, const ot_nd *a, const ot_nd *b, ot_matmul *p)
{
    uint32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
    int64_t a_step = 1, b_step = 1;
    p->batch_rank = ra > rb ? ra : rb;
    for (uint32_t e = 0; e < p->batch_rank; e++) { /* from the last axis */
        uint32_t k = p->batch_rank - 1 - e;
        int64_t da = e < ra ? a->dims[ra - 1 - e] : 1, db = e < rb ? b->dims[rb - 1 - e] : 1;
        if (da != db && da != 1 && db != 1)
            return ot_call_fail(c, "batch sizes %lld and %lld do not broadcast", (long long)da,
                                (long long)db);
        p->batch[k] = da == 1 ? db : da;
        p->a_step[k] = da == 1 ? 0 : a_step;
        p->b_step[k] = db == 1 ? 0 : b_step;
        if (!ot_mul_i64(a_step, da, &a_step) || !ot_mul_i64(b_step, db, &b_step))
            return ot_call_fail(c, "the batch is too large");
    }
    return OT_OK;
}

ot_status ot_matmul_open(ot_call *c, const ot_nd *a, const ot_nd *b, ot_matmul *p)
{
    if (a->rank < 1 || b->rank < 1) return ot_call_fail(c, "a scalar is no matrix");
    p->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    p->k = a->dims[a->rank - 1];
    p->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int64_t rows = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (p->k != rows)
        return ot_call_fail(c, "%lld columns meet %lld rows", (long long)p->k, (long long)rows);
    OT_TRY(broadcast_batch(c, a, b, p));
    memcpy(p->dims, p->batch, p->batch_rank * sizeof *p->dims);
    p->rank = p->batch_rank;
    if (a->rank > 1) p->dims[p->rank++] = p->m;
    if (b->rank > 1) p->dims[p->rank++] = p->n;
    if (!ot_product(p->dims, p->rank, &p->count)) return ot_call_fail(c, "the output is too large");
    return OT_OK;
}

/* ---- sums ---- */

/* First elements of the matrices that position pos of the batch names. */
static void batch_at(const ot_matmul *p, const int64_t *pos, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (uint32_t k = 0; k < p->batch_rank; k++) {
        *a += pos[k] * p->a_step[k];
        *b += pos[k] * p->b_step[k];
    }
    *a *= p->m * p->k;
    *b *= p->k * p->n;
}

void ot_matmul_doubles(const ot_matmul *p, const double *a, const double *b, double *y)
{
    int64_t pos[OT_RANK_MAX] = {0}, a0, b0;
    if (p->count == 0 || p->k == 0) return;
    do {
        batch_at(p, pos, &a0, &b0);
        for (int64_t m = 0; m < p->m; m++)
            for (int64_t k = 0; k < p->k; k++)
                for (int64_t n = 0; n < p->n; n++)
                    y[m * p->n + n] += a[a0 + m * p->k + k] * b[b0 + k * p->n + n];
        y += p->m * p->n;
    } while (ot_num_next(p->batch_rank, p->batch, pos));
}

void ot_matmul_ints(const ot_matmul *p, const int64_t *a, const int64_t *b, int64_t *y)
{
    int64_t pos[OT_RANK_MAX] = {0}, a0, b0;
    if (p->count == 0 || p->k == 0) return;
    do {
        batch_at(p, pos, &a0, &b0);
        for (int64_t m = 0; m < p->m; m++) {
            for (int64_t n = 0; n < p->n; n++) {
                uint64_t sum = 0;
                for (int64_t k = 0; k < p->k; k++)
                    sum += (uint64_t)a[a0 + m * p->k + k] * (uint64_t)b[b0 + k * p->n + n];
                y[m * p->n + n] = (int64_t)sum;
            }
        }
        y += p->m * p->n;
    } while (ot_num_next(p->batch_rank, p->batch, pos));
}

/* ---- MatMul ---- */

ot_status ot_ref_matmul(ot_call *c)
{
    ot_matmul p = {0};
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS | OT_NUM_INTS));
    OT_TRY(ot_num_same_type(c, 1, 0));
    OT_TRY(ot_matmul_open(c, c->in[0], c->in[1], &p));
    ot_dtype t = c->in[0]->dtype;
    if (ot_num_is(t, OT_NUM_FLOATS)) {
        double *a = ot_num_doubles(c, c->in[0]), *b = a ? ot_num_doubles(c, c->in[1]) : NULL;
        double *y = b ? ot_num_scratch(c, p.count, sizeof *y) : NULL;
        if (!y) return OT_E_NOMEM;
        ot_matmul_doubles(&p, a, b, y);
        return ot_num_output(c, 0, t, p.rank, p.dims, y);
    }
    int64_t *a = ot_num_ints(c, c->in[0]), *b = a ? ot_num_ints(c, c->in[1]) : NULL;
    int64_t *y = b ? ot_num_scratch(c, p.count, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    ot_matmul_ints(&p, a, b, y);
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, t, p.rank, p.dims));
    for (int64_t i = 0; i < p.count; i++) ot_num_put_int(c->out[0], i, y[i]);
    return OT_OK;
}

/* Input k as doubles, its last two axes exchanged when `swap`; *shape gets its dims. NULL: no
 * memory. */
static double *perhaps_transposed(ot_call *c, uint32_t k, bool swap, ot_nd *shape)
{
    *shape = *c->in[k];
    uint32_t r = shape->rank;
    double *v = ot_num_doubles(c, shape);
    if (!v || !swap || r < 2) return v;
    int64_t rows = shape->dims[r - 2], columns = shape->dims[r - 1], n = ot_num_count(shape);
    double *t = ot_num_scratch(c, n, sizeof *t);
    for (int64_t i = 0; t && i < n; i++)
        t[i / (rows * columns) * (rows * columns) + i % columns * rows + i / columns % rows] = v[i];
    shape->dims[r - 2] = columns;
    shape->dims[r - 1] = rows;
    return t;
}

/* com.microsoft: alpha * A B, with A and B transposed or not. */
ot_status ot_ref_fused_matmul(ot_call *c)
{
    ot_matmul p = {0};
    ot_nd a_shape, b_shape;
    double alpha = (double)ot_attr_float(c->node, "alpha", 1);
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_same_type(c, 1, 0));
    if (ot_attr_int(c->node, "transBatchA", 0) != 0 || ot_attr_int(c->node, "transBatchB", 0) != 0)
        return ot_call_fail(c, "transBatchA and transBatchB are not supported");
    double *a = perhaps_transposed(c, 0, ot_attr_int(c->node, "transA", 0) != 0, &a_shape);
    double *b = a ? perhaps_transposed(c, 1, ot_attr_int(c->node, "transB", 0) != 0, &b_shape)
                  : NULL;
    if (!b) return OT_E_NOMEM;
    OT_TRY(ot_matmul_open(c, &a_shape, &b_shape, &p));
    double *y = ot_num_scratch(c, p.count, sizeof *y);
    if (!y) return OT_E_NOMEM;
    ot_matmul_doubles(&p, a, b, y);
    for (int64_t i = 0; i < p.count; i++) y[i] *= alpha;
    return ot_num_output(c, 0, c->in[0]->dtype, p.rank, p.dims, y);
}

/* ---- quantized ---- */

/* Number of parameter `q` (input qi) that belongs to row or column `line` of matrix `batch` (of
 * `lines` lines each): one for all, one for each line, or one for each line of each matrix. */
static int64_t line_index(int64_t have, int64_t lines, int64_t batch, int64_t line)
{
    return have == 1 ? 0 : have == lines ? line : batch * lines + line;
}

static ot_status check_lines(ot_call *c, uint32_t qi, const ot_nd *of, int64_t lines)
{
    const ot_nd *q = ot_num_in(c, qi);
    if (!q) return OT_OK;
    int64_t n = ot_num_count(q), matrices = of->rank > 2 ? 1 : 0;
    for (uint32_t k = 0; matrices > 0 && k + 2 < of->rank; k++) matrices *= of->dims[k];
    if (n == 1 || n == lines || (matrices > 0 && n / matrices == lines && n % matrices == 0))
        return OT_OK;
    return ot_call_fail(c, "input %u has %lld elements, must have 1 or %lld", qi, (long long)n,
                        (long long)lines);
}

/* Input k (a matrix or many) minus its zero point (input z). by_row: zero points belong to rows,
 * else to columns. */
static ot_status centred(ot_call *c, uint32_t k, uint32_t z, bool by_row, int64_t **out)
{
    const ot_nd *a = c->in[k], *zero = ot_num_in(c, z);
    int64_t columns = a->rank > 1 || by_row ? a->dims[a->rank - 1] : 1,
            rows = a->rank > 1 ? a->dims[a->rank - 2]
                   : by_row    ? 1
                               : a->dims[0];
    int64_t lines = by_row ? rows : columns, n = ot_num_count(a),
            have = zero ? ot_num_count(zero) : 0;
    *out = ot_num_ints(c, a);
    if (!*out) return OT_E_NOMEM;
    OT_TRY(ot_num_same_type(c, z, k));
    OT_TRY(check_lines(c, z, a, lines));
    for (int64_t i = 0; zero && i < n; i++) {
        int64_t line = by_row ? i / columns % rows : i % columns;
        (*out)[i] -= ot_nd_int(zero, line_index(have, lines, i / columns / rows, line));
    }
    return OT_OK;
}

ot_status ot_ref_matmul_integer(ot_call *c)
{
    ot_matmul p = {0};
    int64_t *a, *b;
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 4; k++) OT_TRY(ot_num_type(c, k, OT_NUM_BYTES));
    OT_TRY(ot_matmul_open(c, c->in[0], c->in[1], &p));
    OT_TRY(centred(c, 0, 2, true, &a));
    OT_TRY(centred(c, 1, 3, false, &b));
    int64_t *y = ot_num_scratch(c, p.count, sizeof *y);
    if (!y) return OT_E_NOMEM;
    ot_matmul_ints(&p, a, b, y);
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, OT_I32, p.rank, p.dims));
    for (int64_t i = 0; i < p.count; i++) ot_num_put_int(c->out[0], i, y[i]);
    return OT_OK;
}

/* Inputs a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero. */
ot_status ot_ref_qlinear_matmul(ot_call *c)
{
    ot_matmul p = {0};
    int64_t *a, *b;
    OT_TRY(ot_call_need(c, 8));
    for (uint32_t k = 0; k < 8; k++)
        OT_TRY(ot_num_type(c, k, k == 1 || k == 4 || k == 6 ? OT_NUM_FLOATS : OT_NUM_BYTES));
    OT_TRY(ot_matmul_open(c, c->in[0], c->in[3], &p));
    OT_TRY(check_lines(c, 1, c->in[0], p.m));
    OT_TRY(check_lines(c, 4, c->in[3], p.n));
    OT_TRY(ot_num_single(c, 6));
    OT_TRY(ot_num_single(c, 7));
    OT_TRY(centred(c, 0, 2, true, &a));
    OT_TRY(centred(c, 3, 5, false, &b));
    int64_t *y = ot_num_scratch(c, p.count, sizeof *y), a_scales = ot_num_count(c->in[1]),
            b_scales = ot_num_count(c->in[4]);
    if (!y) return OT_E_NOMEM;
    ot_matmul_ints(&p, a, b, y);
    if (!ot_num_out(c, 0)) return OT_OK;
    float y_scale = (float)ot_nd_double(c->in[6], 0);
    double y_zero = (double)ot_nd_int(c->in[7], 0);
    if ((a_scales != 1 && a_scales != p.m) || (b_scales != 1 && b_scales != p.n))
        return ot_call_fail(c, "scales for each matrix of a batch are not supported");
    OT_TRY(ot_call_output(c, 0, c->in[7]->dtype, p.rank, p.dims));
    for (int64_t i = 0; i < p.count; i++) {
        float a_scale = (float)ot_nd_double(c->in[1], a_scales == 1 ? 0 : i / p.n % p.m);
        float scale = a_scale * (float)ot_nd_double(c->in[4], b_scales == 1 ? 0 : i % p.n) /
                      y_scale;
        ot_num_put_quantized(c->out[0], i, (double)((float)y[i] * scale), y_zero);
    }
    return OT_OK;
}
