/* Products: implementations of the family, and the matrix product that they share.
 *
 *   y[..., m, n] = sum over k of a[..., m, k] * b[..., k, n]  leading dimensions broadcast; a
 *                                                             vector is a row of a, a column of b
 */
#ifndef OT_ENGINE_REF_REF_PRODUCT_H
#define OT_ENGINE_REF_REF_PRODUCT_H

#include "ref_number.h"

/* Shapes of a matrix product. */
typedef struct ot_matmul {
    int64_t m, n, k;
    uint32_t batch_rank;
    int64_t batch[OT_RANK_MAX]; /* [batch_rank] dims of the broadcast */
    /* [batch_rank] matrices of a and b per step; 0: broadcast */
    int64_t a_step[OT_RANK_MAX], b_step[OT_RANK_MAX];
    uint32_t rank;
    int64_t dims[OT_RANK_MAX]; /* [rank] of the output */
    int64_t count;             /* elements of the output */
} ot_matmul;

/* From the dims of a and b. */
ot_status ot_matmul_open(ot_call *c, const ot_nd *a, const ot_nd *b, ot_matmul *p) OT_MUST_USE;
/* y [batch, m, n], zeroed, gets the sums. */
void ot_matmul_doubles(const ot_matmul *p, const double *a, const double *b, double *y);
/* modulo 2^64 */
void ot_matmul_ints(const ot_matmul *p, const int64_t *a, const int64_t *b, int64_t *y);

/* ---- ref_product_einsum.c: an equation and its operands ---- */

#define OT_EINSUM_LABELS (OT_RANK_MAX + 52) /* dimensions under an ellipsis, then letters */

typedef struct ot_einsum {
    int64_t extent[OT_EINSUM_LABELS];  /* -1: label not used */
    uint32_t count[OT_EINSUM_LABELS];  /* occurrences in inputs */
    uint32_t n_ops, ellipsis;          /* most dimensions under an ellipsis */
    int64_t (*step)[OT_EINSUM_LABELS]; /* [n_ops] elements of an operand per label; 0: has it not */
    uint32_t order[OT_EINSUM_LABELS];  /* the output's labels, then those that are summed */
    uint32_t n_out, n_all;
    int64_t dims[OT_RANK_MAX]; /* [n_out] of the output */
} ot_einsum;

/* Reads the equation and checks it against the inputs. */
ot_status ot_einsum_open(ot_call *c, ot_einsum *e) OT_MUST_USE;

/* ---- ref_product_fourier.c: a DFT of lines of an array [outer, axis, inner, parts] ---- */

typedef struct ot_dft {
    int64_t n, len, out; /* of the transform, of what is used of the input, of the output's axis */
    int64_t outer, inner, in_extent;
    int64_t parts, out_parts; /* numbers per element: 1 real, 2 complex */
    bool inverse, onesided;
} ot_dft;

/* Inputs (checked), attributes, dims of the output. */
ot_status ot_dft_open(ot_call *c, ot_dft *d, int64_t *dims) OT_MUST_USE;

/* ref_product_linear.c: RotaryEmbedding. */
typedef struct ot_rotary {
    int64_t batch, heads, length, size, half; /* half: pairs turned in each head */
    bool flat, interleaved;
} ot_rotary;

/* Dims and attributes (checked); inputs 0 to 2 are there. */
ot_status ot_rotary_open(ot_call *c, ot_rotary *r) OT_MUST_USE;

/* ---- implementations, by file ---- */

ot_status ot_ref_matmul(ot_call *c); /* ref_product_matmul.c: MatMul, FusedMatMul */
ot_status ot_ref_fused_matmul(ot_call *c);
ot_status ot_ref_matmul_integer(ot_call *c);
ot_status ot_ref_matmul_nbits(ot_call *c); /* ref_product_nbits.c */
ot_status ot_ref_qlinear_matmul(ot_call *c);
ot_status ot_ref_det(ot_call *c);  /* ref_product_det.c */
ot_status ot_ref_gemm(ot_call *c); /* ref_product_gemm.c */
ot_status ot_ref_fused_gemm(ot_call *c);
ot_status ot_ref_einsum(ot_call *c);          /* ref_product_einsum.c */
ot_status ot_ref_quantize_linear(ot_call *c); /* ref_product_quant.c */
ot_status ot_ref_dequantize_linear(ot_call *c);
ot_status ot_ref_dynamic_quantize_linear(ot_call *c);
ot_status ot_ref_qlinear_add(ot_call *c); /* ref_product_qlinear.c: of com.microsoft */
ot_status ot_ref_qlinear_mul(ot_call *c);
ot_status ot_ref_qlinear_sigmoid(ot_call *c);
ot_status ot_ref_qlinear_leaky_relu(ot_call *c);
ot_status ot_ref_qlinear_global_average_pool(ot_call *c);
ot_status ot_ref_qlinear_concat(ot_call *c);
ot_status ot_ref_qgemm(ot_call *c);
ot_status ot_ref_lstm(ot_call *c); /* ref_product_rnn.c */
ot_status ot_ref_gru(ot_call *c);
ot_status ot_ref_rnn(ot_call *c);
ot_status ot_ref_attention(ot_call *c); /* ref_product_attention.c */
/* ref_product_projected.c: com.microsoft Attention */
ot_status ot_ref_projected_attention(ot_call *c);
ot_status ot_ref_linear_attention(ot_call *c); /* ref_product_linear.c */
ot_status ot_ref_rotary_embedding(ot_call *c);
ot_status ot_ref_dft(ot_call *c); /* ref_product_fourier.c */
ot_status ot_ref_stft(ot_call *c);

/* ref_product_cell.c: activation functions of the recurrent operators and of fused products. */
typedef struct ot_activation {
    double (*f)(double x, double alpha, double beta);
    double alpha, beta;
    bool has_alpha, has_beta; /* takes them from the attributes */
} ot_activation;

/* By name (any case), with the default alpha and beta. false: no such function. */
bool ot_activation_find(const char *name, ot_activation *out);

#endif
