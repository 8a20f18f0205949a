/* Quantized operators of ONNX Runtime (domain com.microsoft), as its documentation defines them.
 *
 *   x = (q - zero) * scale              every tensor comes with a scale and a zero point of one
 *                                       element each
 *
 *   QLinearAdd, QLinearMul              A, B: tensor, scale, zero; then scale and zero of the
 *                                       result; broadcast as in numpy
 *   QLinearSigmoid, QLinearLeakyRelu    X: tensor, scale, zero; scale and zero of the result
 *   QLinearGlobalAveragePool            the same
 *   QLinearConcat                       scale and zero of the result; then tensor, scale, zero of
 *                                       each part
 *   QGemm                               A, B: tensor, scale, zero (B: of each column); C int32 in
 *                                       units of both scales; scale and
 * zero of the result, which is float32 without them
 *
 * QLinearAveragePool is with the other pools. Zero points may be omitted.
 */
#include "ref_product.h"

#include <math.h>

/* Scale k and zero point k + 1 of a tensor of type t. */
static ot_status read_quantizer(ot_call *c, uint32_t k, ot_dtype t, ot_quantizer *q)
{
    const ot_nd *scale = ot_num_in(c, k), *zero = ot_num_in(c, k + 1);
    if (!scale) return ot_call_fail(c, "input %u, a scale, is missing", k);
    OT_TRY(ot_num_type(c, k, OT_NUM_BIT(OT_F32)));
    OT_TRY(ot_num_single(c, k));
    if (zero && (zero->dtype != t || ot_num_count(zero) != 1))
        return ot_call_fail(c, "input %u is no zero point of its tensor", k + 1);
    *q = (ot_quantizer){ot_nd_double(scale, 0), zero ? (double)ot_nd_int(zero, 0) : 0};
    return OT_OK;
}

ot_status ot_ref_dequantized(ot_call *c, uint32_t k, ot_quantizer *q, double **x)
{
    OT_TRY(ot_call_need(c, k + 1));
    OT_TRY(ot_num_type(c, k, OT_NUM_BYTES));
    OT_TRY(read_quantizer(c, k + 1, c->in[k]->dtype, q));
    *x = ot_num_doubles(c, c->in[k]);
    if (!*x) return OT_E_NOMEM;
    int64_t n = ot_num_count(c->in[k]);
    for (int64_t i = 0; i < n; i++) (*x)[i] = ((*x)[i] - q->zero) * q->scale;
    return OT_OK;
}

ot_status ot_ref_requantized(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank, const int64_t *dims,
                             const double *y)
{
    ot_quantizer q = {0};
    OT_TRY(read_quantizer(c, k, t, &q));
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, t, rank, dims));
    int64_t n = ot_num_count(c->out[0]);
    for (int64_t i = 0; i < n; i++) ot_num_put_quantized(c->out[0], i, y[i] / q.scale, q.zero);
    return OT_OK;
}

/* ---- element-wise ---- */

/* Number of the element of `a` that meets position pos of a result of `rank` dims. */
static int64_t broadcast_at(const ot_nd *a, uint32_t rank, const int64_t *pos)
{
    int64_t at = 0;
    for (uint32_t k = 0; k < a->rank; k++)
        at = at * a->dims[k] + (a->dims[k] == 1 ? 0 : pos[k + rank - a->rank]);
    return at;
}

static ot_status broadcast_dims(ot_call *c, const ot_nd *a, const ot_nd *b, uint32_t *rank,
                                int64_t *dims)
{
    *rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t k = 0; k < *rank; k++) {
        int64_t x = k + a->rank < *rank ? 1 : a->dims[k + a->rank - *rank],
                y = k + b->rank < *rank ? 1 : b->dims[k + b->rank - *rank];
        if (x != y && x != 1 && y != 1)
            return ot_call_fail(c, "the operands do not broadcast along axis %u", k);
        dims[k] = x == 1 ? y : x;
    }
    return OT_OK;
}

static ot_status binary(ot_call *c, bool product)
{
    ot_quantizer qa, qb;
    double *a = NULL, *b = NULL;
    uint32_t rank;
    int64_t dims[OT_RANK_MAX], pos[OT_RANK_MAX] = {0}, n;
    OT_TRY(ot_ref_dequantized(c, 0, &qa, &a));
    OT_TRY(ot_ref_dequantized(c, 3, &qb, &b));
    OT_TRY(broadcast_dims(c, c->in[0], c->in[3], &rank, dims));
    double *y = ot_num_scratch(c, ot_product(dims, rank, &n) ? n : -1, sizeof *y);
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++, (void)ot_num_next(rank, dims, pos)) {
        double u = a[broadcast_at(c->in[0], rank, pos)], v = b[broadcast_at(c->in[3], rank, pos)];
        y[i] = product ? u * v : u + v;
    }
    return ot_ref_requantized(c, 6, c->in[0]->dtype, rank, dims, y);
}

ot_status ot_ref_qlinear_add(ot_call *c) { return binary(c, false); }
ot_status ot_ref_qlinear_mul(ot_call *c) { return binary(c, true); }

static ot_status unary(ot_call *c, bool sigmoid)
{
    ot_quantizer q = {0};
    double *x = NULL, alpha = (double)ot_attr_float(c->node, "alpha", 0.01f);
    OT_TRY(ot_ref_dequantized(c, 0, &q, &x));
    int64_t n = ot_num_count(c->in[0]);
    for (int64_t i = 0; i < n; i++)
        x[i] = sigmoid ? 1 / (1 + exp(-x[i])) : x[i] < 0 ? alpha * x[i] : x[i];
    return ot_ref_requantized(c, 3, c->in[0]->dtype, c->in[0]->rank, c->in[0]->dims, x);
}

ot_status ot_ref_qlinear_sigmoid(ot_call *c) { return unary(c, true); }
ot_status ot_ref_qlinear_leaky_relu(ot_call *c) { return unary(c, false); }

/* ---- reductions and moving ---- */

ot_status ot_ref_qlinear_global_average_pool(ot_call *c)
{
    ot_quantizer q = {0};
    double *x = NULL;
    int64_t dims[OT_RANK_MAX], plane = 1;
    OT_TRY(ot_ref_dequantized(c, 0, &q, &x));
    const ot_nd *a = c->in[0];
    if (ot_attr_int(c->node, "channels_last", 0))
        return ot_call_fail(c, "channels_last is not supported");
    if (a->rank < 3) return ot_call_fail(c, "the input has rank %u, must have 3 or more", a->rank);
    for (uint32_t k = 0; k < a->rank; k++) {
        dims[k] = k < 2 ? a->dims[k] : 1;
        if (k >= 2) plane *= a->dims[k];
    }
    for (int64_t i = 0; i < a->dims[0] * a->dims[1]; i++) {
        double sum = 0;
        for (int64_t k = 0; k < plane; k++) sum += x[i * plane + k];
        x[i] = plane > 0 ? sum / (double)plane : 0;
    }
    return ot_ref_requantized(c, 3, a->dtype, a->rank, dims, x);
}

ot_status ot_ref_qlinear_concat(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], outer = 1, inner = 1, n, at = 0;
    uint32_t axis;
    if (c->n_in < 5 || (c->n_in - 2) % 3 != 0)
        return ot_call_fail(c, "its inputs are not a scale, a zero point and triples");
    OT_TRY(ot_call_need(c, 3));
    const ot_nd *first = c->in[2];
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 0), first->rank, &axis));
    memcpy(dims, first->dims, first->rank * sizeof *dims);
    dims[axis] = 0;
    for (uint32_t k = 2; k < c->n_in; k += 3) {
        if (!c->in[k] || c->in[k]->rank != first->rank || c->in[k]->dtype != first->dtype)
            return ot_call_fail(c, "input %u has not the rank and type of the first part", k);
        for (uint32_t d = 0; d < first->rank; d++)
            if (d != axis && c->in[k]->dims[d] != first->dims[d])
                return ot_call_fail(c, "the parts differ along axis %u", d);
        if (!ot_add_i64(dims[axis], c->in[k]->dims[axis], &dims[axis]))
            return ot_call_fail(c, "the parts are too large");
    }
    for (uint32_t d = 0; d < first->rank; d++)
        *(d < axis ? &outer : &inner) *= d == axis ? 1 : dims[d];
    double *y = ot_num_scratch(c, ot_product(dims, first->rank, &n) ? n : -1, sizeof *y);
    if (!y) return OT_E_NOMEM;
    for (uint32_t k = 2; k < c->n_in; k += 3) {
        ot_quantizer q = {0};
        double *x = NULL;
        int64_t run = c->in[k]->dims[axis] * inner;
        OT_TRY(ot_ref_dequantized(c, k, &q, &x));
        for (int64_t i = 0; i < outer * run; i++)
            y[i / run * dims[axis] * inner + at + i % run] = x[i];
        at += run;
    }
    return ot_ref_requantized(c, 0, first->dtype, first->rank, dims, y);
}

/* ---- QGemm ---- */

/* Element (i, j) of op(a). */
static double element(const double *a, const ot_nd *shape, bool transposed, int64_t i, int64_t j)
{
    return a[transposed ? j * shape->dims[1] + i : i * shape->dims[1] + j];
}

/* B less its zero points, times its scales, each one or one for each column. */
static ot_status gemm_b(ot_call *c, bool transposed, double **b)
{
    const ot_nd *m = c->in[3], *scale = c->in[4], *zero = ot_num_in(c, 5);
    int64_t columns = m->dims[!transposed], rows = m->dims[transposed],
            n_scales = ot_num_count(scale);
    int64_t n_zeros = zero ? ot_num_count(zero) : 1;
    OT_TRY(ot_num_type(c, 4, OT_NUM_BIT(OT_F32)));
    OT_TRY(ot_num_same_type(c, 5, 3));
    if ((n_scales != 1 && n_scales != columns) || (n_zeros != 1 && n_zeros != columns))
        return ot_call_fail(
            c, "scale or zero point of B is neither one number nor one for each of %lld columns",
            (long long)columns);
    *b = ot_num_doubles(c, m);
    if (!*b) return OT_E_NOMEM;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) {
            double *x = *b + (transposed ? j * rows + i : i * columns + j);
            *x = (*x - (zero ? (double)ot_nd_int(zero, n_zeros == 1 ? 0 : j) : 0)) *
                 ot_nd_double(scale, n_scales == 1 ? 0 : j);
        }
    return OT_OK;
}

ot_status ot_ref_qgemm(ot_call *c)
{
    bool ta = ot_attr_int(c->node, "transA", 0) != 0, tb = ot_attr_int(c->node, "transB", 0) != 0;
    double alpha = (double)ot_attr_float(c->node, "alpha", 1), *a = NULL, *b = NULL;
    ot_quantizer q = {0};
    int64_t dims[2], size;
    OT_TRY(ot_call_need(c, 6));
    OT_TRY(ot_num_type(c, 3, OT_NUM_BYTES));
    if (c->in[0]->rank != 2 || c->in[3]->rank != 2)
        return ot_call_fail(c, "its operands are not two matrices");
    OT_TRY(ot_ref_dequantized(c, 0, &q, &a));
    OT_TRY(gemm_b(c, tb, &b));
    dims[0] = c->in[0]->dims[ta];
    dims[1] = c->in[3]->dims[!tb];
    int64_t inner = c->in[0]->dims[!ta];
    if (inner != c->in[3]->dims[tb])
        return ot_call_fail(c, "A has %lld columns, B %lld rows", (long long)inner,
                            (long long)c->in[3]->dims[tb]);
    const ot_nd *bias = ot_num_in(c, 6), *scale_b = c->in[4];
    OT_TRY(ot_num_type(c, 6, OT_NUM_BIT(OT_I32)));
    int64_t n_bias = bias ? ot_num_count(bias) : 0;
    if (bias && n_bias != dims[1] && n_bias != dims[0] * dims[1])
        return ot_call_fail(c, "C has %lld elements", (long long)n_bias);
    double *y = ot_num_scratch(c, ot_mul_i64(dims[0], dims[1], &size) ? size : -1, sizeof *y);
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < size; i++) {
        int64_t column = i % dims[1];
        double unit = q.scale * ot_nd_double(scale_b, ot_num_count(scale_b) == 1 ? 0 : column),
               sum = 0;
        for (int64_t k = 0; k < inner; k++)
            sum += element(a, c->in[0], ta, i / dims[1], k) * element(b, c->in[3], tb, k, column);
        if (bias) sum += unit * (double)ot_nd_int(bias, n_bias == dims[1] ? column : i);
        y[i] = alpha * sum;
    }
    if (!ot_num_in(c, 7)) return ot_num_output(c, 0, OT_F32, 2, dims, y);
    return ot_ref_requantized(c, 7, ot_num_in(c, 8) ? c->in[8]->dtype : OT_U8, 2, dims, y);
}
