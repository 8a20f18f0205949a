/* QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
 *
 *   q = saturate(round-half-even(x / scale) + zero)      x = (q - zero) * scale
 *   of a floating type: q = code of x / scale + zero
 *
 * Scale and zero point are one for the tensor, one for each slice along `axis`, or (block_size
 * B) one for each block of B neighbours along `axis`: the scale then has the input's shape with
 * ceil(D / B) in place of D.
 */
#include "ref_math.h"
#include "ref_product.h"

#include <math.h>

/* Where the scale of an element is found. */
typedef struct scales {
    int64_t inner, extent; /* elements behind the axis, along it */
    /* elements that share a scale along the axis; groups of them. blocks 0: one scale for all */
    int64_t block, blocks;
    bool per_slice; /* the scale is a vector along the axis */
} scales;

static int64_t scale_index(const scales *s, int64_t i)
{
    if (s->blocks == 0) return 0;
    int64_t at = i / s->inner % s->extent / s->block;
    return s->per_slice ? at
                        : (i / s->inner / s->extent * s->blocks + at) * s->inner + i % s->inner;
}

static ot_status block_shape(ot_call *c, uint32_t axis, scales *s)
{
    const ot_nd *x = c->in[0], *scale = c->in[1];
    int64_t block = ot_attr_int(c->node, "block_size", 0);
    if (block < 1) return ot_call_fail(c, "a scale of rank %u needs a block_size", scale->rank);
    if (scale->rank != x->rank)
        return ot_call_fail(c, "the scale has rank %u, the input %u", scale->rank, x->rank);
    for (uint32_t k = 0; k < x->rank; k++) {
        int64_t want = k == axis && x->dims[k] > 0 ? (x->dims[k] - 1) / block + 1 : x->dims[k];
        if (scale->dims[k] != want)
            return ot_call_fail(c, "the scale has %lld elements along axis %u, must have %lld",
                                (long long)scale->dims[k], k, (long long)want);
    }
    s->block = block;
    s->blocks = ot_max(1, scale->dims[axis]);
    return OT_OK;
}

static ot_status scales_open(ot_call *c, scales *s)
{
    const ot_nd *x = c->in[0], *scale = c->in[1], *zero = ot_num_in(c, 2);
    uint32_t axis = 0;
    *s = (scales){.inner = 1, .extent = 1, .block = 1};
    bool single = ot_num_count(scale) == 1 && scale->rank <= 1;
    if (zero && single && zero->rank <= 1)
        OT_TRY(ot_num_single(c, 2)); /* [] and [1] are the same to ONNX Runtime's quantizer */
    else if (zero)
        OT_TRY(ot_num_dims(c, 2, scale->rank, scale->dims));
    if (single) return OT_OK;
    if (scale->rank == 0) return ot_call_fail(c, "the scale is empty");
    OT_TRY(ot_num_axis(c, ot_attr_int(c->node, "axis", 1), x->rank, &axis));
    s->extent = x->dims[axis];
    for (uint32_t k = axis + 1; k < x->rank; k++)
        if (x->dims[k] > 0 && !ot_mul_i64(s->inner, x->dims[k], &s->inner))
            return ot_call_fail(c, "the input is too large");
    if (scale->rank > 1 || (ot_attr_int(c->node, "block_size", 0) > 0 && x->rank == 1))
        return block_shape(c, axis, s);
    if (scale->dims[0] != s->extent)
        return ot_call_fail(c, "the scale has %lld elements, axis %u has %lld",
                            (long long)scale->dims[0], axis, (long long)s->extent);
    s->per_slice = true;
    s->blocks = ot_max(1, s->extent);
    return OT_OK;
}

#define QUANTIZED (OT_NUM_BYTES | OT_NUM_SHORTS | OT_NUM_NARROW | OT_NUM_FLOAT8)
#define SCALES    (OT_NUM_FLOATS | OT_NUM_BIT(OT_F8E8M0))

/* Element i of a quantized tensor, a zero point or a scale. */
static double number_of(const ot_nd *a, int64_t i)
{
    if (!ot_rm_is_float8(a->dtype)) return ot_nd_double(a, i);
    return ot_rm_float8_decode(a->dtype, ((const uint8_t *)a->data)[i]);
}

/* Type of the quantized output: the zero point's, output_dtype, or uint8. */
static ot_status quantized_type(ot_call *c, ot_dtype *t)
{
    const ot_nd *zero = ot_num_in(c, 2);
    int64_t asked = ot_attr_int(c->node, "output_dtype", 0);
    *t = zero ? zero->dtype : asked != 0 ? (ot_dtype)(asked > 0 && asked < 32 ? asked : 0) : OT_U8;
    if (zero && asked != 0 && asked != (int64_t)zero->dtype)
        return ot_call_fail(c, "output_dtype disagrees with the zero point's type %s",
                            ot_dtype_name(*t));
    if (!ot_num_is(*t, QUANTIZED))
        return ot_call_fail(c, "quantizing to %s is not supported", ot_dtype_name(*t));
    return OT_OK;
}

ot_status ot_ref_quantize_linear(ot_call *c)
{
    scales s = {0};
    ot_dtype t;
    int64_t precision = ot_attr_int(c->node, "precision", 0);
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS | OT_NUM_BIT(OT_I32)));
    OT_TRY(ot_num_type(c, 1, SCALES | OT_NUM_BIT(OT_I32)));
    OT_TRY(quantized_type(c, &t));
    OT_TRY(scales_open(c, &s));
    const ot_nd *x = c->in[0], *scale = c->in[1], *zero = ot_num_in(c, 2);
    double *v = ot_num_doubles(c, x);
    if (!v) return OT_E_NOMEM;
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, t, x->rank, x->dims));
    int64_t n = ot_num_count(x);
    bool saturate = ot_attr_int(c->node, "saturate", 1) != 0;
    bool wide = precision == OT_F64 || scale->dtype == OT_F64;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = scale_index(&s, i);
        double by = number_of(scale, k), q = wide ? v[i] / by : (double)((float)v[i] / (float)by),
               at = zero ? number_of(zero, k) : 0;
        if (!ot_rm_is_float8(t))
            ot_num_put_quantized(c->out[0], i, q, at);
        else
            ((uint8_t *)c->out[0]->data)[i] = ot_rm_float8_encode(t, (double)(float)(q + at),
                                                                  saturate, REF_NEAREST);
    }
    return OT_OK;
}

ot_status ot_ref_dequantize_linear(ot_call *c)
{
    scales s = {0};
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, QUANTIZED | OT_NUM_BIT(OT_I32)));
    OT_TRY(ot_num_type(c, 1, SCALES));
    OT_TRY(ot_num_same_type(c, 2, 0));
    OT_TRY(scales_open(c, &s));
    const ot_nd *x = c->in[0], *scale = c->in[1], *zero = ot_num_in(c, 2);
    int64_t asked = ot_attr_int(c->node, "output_dtype", 0), n = ot_num_count(x);
    ot_dtype t = asked == 0 ? scale->dtype : (ot_dtype)(asked > 0 && asked < 32 ? asked : 0);
    if (!ot_num_is(t, OT_NUM_FLOATS))
        return ot_call_fail(c, "output_dtype %lld is not supported", (long long)asked);
    double *y = ot_num_scratch(c, n, sizeof *y);
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = scale_index(&s, i);
        y[i] = (number_of(x, i) - (zero ? number_of(zero, k) : 0)) * number_of(scale, k);
    }
    return ot_num_output(c, 0, t, x->rank, x->dims, y);
}

/* Scale and zero point such that uint8 spans the values, and zero: outputs y, scale, zero point. */
ot_status ot_ref_dynamic_quantize_linear(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_BIT(OT_F32)));
    const ot_nd *x = c->in[0];
    const float *v = x->data;
    int64_t n = ot_num_count(x);
    float lo = 0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = fminf(lo, v[i]);
        hi = fmaxf(hi, v[i]);
    }
    float scale = hi == lo ? 1.0f : (hi - lo) / 255,
          zero = rintf(fmaxf(0, fminf(255, 0 - lo / scale)));
    double scale_out = (double)scale, zero_out = (double)zero;
    double *q = ot_num_scratch(c, n, sizeof *q);
    if (!q) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) q[i] = (double)(rintf(v[i] / scale) + zero);
    OT_TRY(ot_num_output(c, 0, OT_U8, x->rank, x->dims, q));
    OT_TRY(ot_num_output(c, 1, OT_F32, 0, NULL, &scale_out));
    return ot_num_output(c, 2, OT_U8, 0, NULL, &zero_out);
}
