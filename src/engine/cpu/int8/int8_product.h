/* Products of 8-bit matrices, and batches of them, as implementations and fused steps run them:
 * shared out over threads, packed when they have to be. What becomes of the sums is said by job.out
 * (int8_gemm.h), whose arrays are those of one matrix.
 */
#ifndef OT_ENGINE_CPU_INT8_INT8_PRODUCT_H
#define OT_ENGINE_CPU_INT8_INT8_PRODUCT_H

#include "int8_gemm.h"
#include "engine/ref/ref_product.h"

typedef struct ot_i8_product {
    ot_matmul shape; /* m, n, k, batch */
    /* dense; b is not read when there are panels, which are those of the only matrix of B */
    const uint8_t *a, *b;
    bool b_transposed; /* matrices of B lie as [n, k] */
    bool a_signed;
    int32_t a_zero;         /* of all rows, unless */
    const int32_t *a_zeros; /* [m] or NULL */
    ot_i8_job job;          /* panels or NULL, b_signed, b_zero, b_zeros, out but for ld */
} ot_i8_product;

/* Fails with OT_E_NOMEM, recorded. */
ot_status ot_i8_product_run(ot_call *c, const ot_i8_product *p) OT_MUST_USE;
/* B [k, n] (transposed: it lies as [n, k]), packed, in memory that the caller frees; NULL: no
 * memory. */
uint8_t *ot_i8_packed(const void *b, int64_t k, int64_t n, bool transposed);
/* When input k, which is B [k, n] of the product, is constant: panels, which the node keeps from
 * its first call on. */
void ot_i8_product_constant(ot_call *c, uint32_t k, ot_i8_product *p);

/* Zero points (integers) or scales (float32) of `lines` rows or columns: *one for all of them,
 * or *each [lines] in scratch memory. `a` NULL: none, which leaves both as they are. false: as
 * many as neither, or no memory; the reference knows why. */
bool ot_i8_zeros(ot_call *c, const ot_nd *a, int64_t lines, int32_t *one, const int32_t **each);

extern const ot_op_entry ot_fast_int8[];
extern const ot_op_named ot_fast_int8_named[];

/* fast_product_int8.c: implementations, and the tables of them and of quantize.c's */
ot_status ot_fast_matmul_integer(ot_call *c);
ot_status ot_fast_qlinear_matmul(ot_call *c);
ot_status ot_fast_matmul_integer_to_float(ot_call *c); /* com.microsoft */
ot_status ot_fast_dynamic_quantize_matmul(ot_call *c);
ot_status ot_fast_qgemm(ot_call *c);

/* quantize.c */
ot_status ot_fast_quantize_linear(ot_call *c);
ot_status ot_fast_dequantize_linear(ot_call *c);
ot_status ot_fast_dynamic_quantize_linear(ot_call *c);

/* Scale and zero point such that uint8 spans the n values, and zero; by `threads`. */
void ot_quant_span(const float *x, int64_t n, int threads, float *scale, float *zero);
/* q = saturate(round-half-even(x / scale) + zero), as DynamicQuantizeLinear says. */
void ot_quant_bytes(uint8_t *q, const float *x, int64_t n, int threads, float scale, float zero);

#endif
