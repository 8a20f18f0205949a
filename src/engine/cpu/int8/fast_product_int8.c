/* MatMulInteger, QLinearMatMul and com.microsoft's relatives with exact 8-bit products.
 *
 *                         A        zero points    factor of a sum                output
 *   MatMulInteger         u8, s8   rows, columns  -                              int32
 *   QLinearMatMul         u8, s8   rows, columns  a_scale b_scale[j] / y_scale   u8, s8
 *   MatMulIntegerToFloat  u8, s8   all, columns   a_scale b_scale[j]             float, + bias
 *   DynamicQuantizeMatMul float: quantized to u8 as DynamicQuantizeLinear does   float, + bias
 *   QGemm                 u8, s8   all, columns   alpha a_scale b_scale[j] / y_scale
 *                                                                                u8, s8, or float
 *
 * Integer results are those of the references, bit by bit. What is unusual goes to the
 * reference, where there is one.
 */
#include "int8_product.h"

#include "engine/cpu/product/fast_product.h"

static bool is_byte(const ot_nd *a) { return a && a->data && ot_num_is(a->dtype, OT_NUM_BYTES); }

static bool is_float(const ot_nd *a) { return a && a->data && a->dtype == OT_F32; }

/* A zero point that is omitted, or of the type of what it belongs to. */
static bool fits(const ot_nd *zero, const ot_nd *of)
{
    return !zero || (zero->data && zero->dtype == of->dtype);
}

/* Operands and zero points; false: not for this file. */
static bool open_product(ot_call *c, const ot_nd *a, const ot_nd *b, const ot_nd *a_zero,
                         const ot_nd *b_zero, ot_i8_product *p)
{
    if (!fits(a_zero, a) || !fits(b_zero, b)) return false;
    p->a = a->data;
    p->b = b->data;
    p->a_signed = a->dtype == OT_I8;
    p->job.b_signed = b->dtype == OT_I8;
    return ot_i8_zeros(c, a_zero, p->shape.m, &p->a_zero, &p->a_zeros) &&
           ot_i8_zeros(c, b_zero, p->shape.n, &p->job.b_zero, &p->job.b_zeros);
}

/* b_scale, one or [n], times `by`, divided by `over`: in scratch memory for columns, else in
 * p->job.out.scale. */
static bool open_scales(ot_call *c, const ot_nd *b_scale, float by, float over, ot_i8_product *p)
{
    int64_t n = ot_num_count(b_scale);
    const float *from = b_scale->data;
    p->job.out.scale = 1;
    if (n == 1) {
        p->job.out.scale = by * from[0] / over;
        return true;
    }
    float *to = n == p->shape.n && n > 0 ? ot_call_scratch(c, (size_t)n * sizeof *to) : NULL;
    for (int64_t i = 0; to && i < n; i++) to[i] = by * from[i] / over;
    p->job.out.scales = to;
    return to != NULL;
}

static ot_status into_output(ot_call *c, ot_dtype t, ot_i8_product *p, uint32_t b_input)
{
    OT_TRY(ot_call_output(c, 0, t, p->shape.rank, p->shape.dims));
    if (!ot_num_out(c, 0) || p->shape.count == 0) return OT_OK;
    p->job.out.type = t;
    p->job.out.to = c->out[0]->data;
    ot_i8_product_constant(c, b_input, p);
    return ot_i8_product_run(c, p);
}

/* ---- ai.onnx ---- */

ot_status ot_fast_matmul_integer(ot_call *c)
{
    const ot_nd *a = ot_num_in(c, 0), *b = ot_num_in(c, 1);
    ot_i8_product p = {0};
    if (!is_byte(a) || !is_byte(b)) return ot_ref_matmul_integer(c);
    OT_TRY(ot_matmul_open(c, a, b, &p.shape));
    if (!open_product(c, a, b, ot_num_in(c, 2), ot_num_in(c, 3), &p))
        return ot_ref_matmul_integer(c);
    return into_output(c, OT_I32, &p, 1);
}

ot_status ot_fast_qlinear_matmul(ot_call *c)
{
    const ot_nd *in[8];
    ot_i8_product p = {0};
    for (uint32_t k = 0; k < 8; k++) {
        in[k] = ot_num_in(c, k);
        bool scale = k == 1 || k == 4 || k == 6;
        if (scale ? !is_float(in[k]) : !is_byte(in[k])) return ot_ref_qlinear_matmul(c);
    }
    OT_TRY(ot_matmul_open(c, in[0], in[3], &p.shape));
    if (p.shape.k > OT_I8_K_MAX || ot_num_count(in[1]) != 1 || ot_num_count(in[6]) != 1 ||
        ot_num_count(in[7]) != 1)
        return ot_ref_qlinear_matmul(c);
    float a_scale = *(const float *)in[1]->data, y_scale = *(const float *)in[6]->data;
    if (!open_product(c, in[0], in[3], in[2], in[5], &p) ||
        !open_scales(c, in[4], a_scale, y_scale, &p))
        return ot_ref_qlinear_matmul(c);
    p.job.out.zero = (int32_t)ot_nd_int(in[7], 0);
    return into_output(c, in[7]->dtype, &p, 3);
}

/* ---- com.microsoft ---- */

static ot_status open_bias(ot_call *c, const ot_nd *bias, ot_i8_product *p)
{
    if (!bias) return OT_OK;
    if (!is_float(bias) || bias->rank != 1 || bias->dims[0] != p->shape.n)
        return ot_call_fail(c, "the bias is not one float for each of %lld columns",
                            (long long)p->shape.n);
    p->job.out.shift = bias->data;
    return OT_OK;
}

static ot_status odd_parameters(ot_call *c)
{
    return ot_call_fail(c, "scales or zero points of this type or number are not supported");
}

/* Inputs A, B, a_scale, b_scale, a_zero, b_zero, bias. */
ot_status ot_fast_matmul_integer_to_float(ot_call *c)
{
    ot_i8_product p = {0};
    OT_TRY(ot_call_need(c, 4));
    const ot_nd *a = c->in[0], *b = c->in[1];
    if (!is_byte(a) || !is_byte(b) || !is_float(c->in[2]) || !is_float(c->in[3]))
        return ot_call_fail(c, "it is supported for bytes with float scales only");
    OT_TRY(ot_matmul_open(c, a, b, &p.shape));
    if (ot_num_count(c->in[2]) != 1 ||
        !open_product(c, a, b, ot_num_in(c, 4), ot_num_in(c, 5), &p) ||
        !open_scales(c, c->in[3], *(const float *)c->in[2]->data, 1, &p))
        return odd_parameters(c);
    OT_TRY(open_bias(c, ot_num_in(c, 6), &p));
    return into_output(c, OT_F32, &p, 1);
}

/* Inputs A (float), B, b_scale, b_zero, bias. */
ot_status ot_fast_dynamic_quantize_matmul(ot_call *c)
{
    ot_i8_product p = {0};
    float scale, zero;
    OT_TRY(ot_call_need(c, 3));
    ot_nd a = *c->in[0];
    const ot_nd *b = c->in[1];
    if (!is_float(&a) || !is_byte(b) || !is_float(c->in[2]))
        return ot_call_fail(c, "it is supported for floats times bytes with float scales only");
    OT_TRY(ot_matmul_open(c, &a, b, &p.shape));
    int64_t n = ot_num_count(&a);
    uint8_t *bytes = ot_num_scratch(c, n, 1);
    if (!bytes) return OT_E_NOMEM;
    int threads = ot_rows_threads(c, (double)n);
    ot_quant_span(a.data, n, threads, &scale, &zero);
    ot_quant_bytes(bytes, a.data, n, threads, scale, zero);
    a.data = bytes;
    a.dtype = OT_U8;
    if (!open_product(c, &a, b, NULL, ot_num_in(c, 3), &p) ||
        !open_scales(c, c->in[2], scale, 1, &p))
        return odd_parameters(c);
    p.a_zero = (int32_t)zero;
    OT_TRY(open_bias(c, ot_num_in(c, 4), &p));
    return into_output(c, OT_F32, &p, 1);
}

/* op(A) of rank 2, transposed in scratch memory when asked for. */
static ot_status gemm_a(ot_call *c, ot_nd *out)
{
    *out = *c->in[0];
    if (ot_attr_int(c->node, "transA", 0) == 0) return OT_OK;
    int64_t rows = out->dims[0], columns = out->dims[1];
    const uint8_t *from = out->data;
    uint8_t *to = ot_num_scratch(c, ot_num_count(out), 1);
    if (!to) return OT_E_NOMEM;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j];
    ot_nd_set_dense(out, out->dtype, 2, (int64_t[]){columns, rows});
    out->data = to;
    return OT_OK;
}

/* Inputs A, a_scale, a_zero, B, b_scale, b_zero, C (int32, in units of a_scale * b_scale),
 * y_scale, y_zero. */
ot_status ot_fast_qgemm(ot_call *c)
{
    ot_i8_product p = {0};
    ot_nd a, b;
    OT_TRY(ot_call_need(c, 6));
    b = *c->in[3];
    if (!is_byte(c->in[0]) || !is_byte(&b) || c->in[0]->rank != 2 || b.rank != 2)
        return ot_call_fail(c, "its operands are not two matrices of bytes");
    OT_TRY(gemm_a(c, &a));
    p.b_transposed = ot_attr_int(c->node, "transB", 0) != 0;
    if (p.b_transposed) ot_nd_set_dense(&b, b.dtype, 2, (int64_t[]){b.dims[1], b.dims[0]});
    OT_TRY(ot_matmul_open(c, &a, &b, &p.shape));
    const ot_nd *bias = ot_num_in(c, 6), *y_scale = ot_num_in(c, 7), *y_zero = ot_num_in(c, 8);
    if (!is_float(c->in[1]) || !is_float(c->in[4]) || ot_num_count(c->in[1]) != 1 ||
        (y_scale && !is_float(y_scale)) || (y_zero && !is_byte(y_zero)) || p.shape.k > OT_I8_K_MAX)
        return odd_parameters(c);
    if (bias && (bias->dtype != OT_I32 || ot_num_count(bias) != p.shape.n))
        return ot_call_fail(c, "a bias that is not one int32 for each column is not supported");
    float alpha = ot_attr_float(c->node, "alpha", 1),
          over = y_scale ? *(const float *)y_scale->data : 1;
    if (!open_product(c, &a, &b, c->in[2], c->in[5], &p) ||
        !open_scales(c, c->in[4], alpha * *(const float *)c->in[1]->data, over, &p))
        return odd_parameters(c);
    p.job.out.bias = bias ? bias->data : NULL;
    p.job.out.zero = y_zero ? (int32_t)ot_nd_int(y_zero, 0) : 0;
    return into_output(c, !y_scale ? OT_F32 : y_zero ? y_zero->dtype : OT_U8, &p, 3);
}

const ot_op_entry ot_fast_int8[] = {
    {OT_OP_MatMulInteger, ot_fast_matmul_integer},
    {OT_OP_QLinearMatMul, ot_fast_qlinear_matmul},
    {OT_OP_QuantizeLinear, ot_fast_quantize_linear},
    {OT_OP_DequantizeLinear, ot_fast_dequantize_linear},
    {OT_OP_OPAQUE, NULL},
};

const ot_op_named ot_fast_int8_named[] = {
    {"", "DynamicQuantizeLinear", ot_fast_dynamic_quantize_linear},
    {"com.microsoft", "QuantizeLinear", ot_fast_quantize_linear},
    {"com.microsoft", "DequantizeLinear", ot_fast_dequantize_linear},
    {"com.microsoft", "MatMulIntegerToFloat", ot_fast_matmul_integer_to_float},
    {"com.microsoft", "DynamicQuantizeMatMul", ot_fast_dynamic_quantize_matmul},
    {"com.microsoft", "QGemm", ot_fast_qgemm},
    {NULL, NULL, NULL},
};
