/* Products of float32 matrices, as the implementations of fast_product*.c share them. */
#ifndef OT_ENGINE_CPU_PRODUCT_FAST_PRODUCT_H
#define OT_ENGINE_CPU_PRODUCT_FAST_PRODUCT_H

#include "engine/ref/ref_product.h"
#include "engine/cpu/rows/rows.h"

/* Element (i, j) is data[i * row_step + j * column_step]; one of the steps is 1, the other `ld`. */
typedef struct ot_matrix {
    const float *data;
    int64_t row_step, column_step, ld;
    bool transposed; /* columns lie without steps: row_step is 1 */
} ot_matrix;

/* c [m, n] = alpha * a * b (+ c when `add`). */
typedef struct ot_product_job {
    int64_t m, n, k, ldc;
    ot_matrix a, b;
    const float *panels; /* b packed, or NULL */
    float *c;
    float alpha;
    bool add;
} ot_product_job;

/* On the calling thread, or on those that oneDNN starts. OT_E_NOMEM is not recorded. */
ot_status ot_product_run(const ot_product_job *j) OT_MUST_USE;
/* The same by all threads that the call may use. */
ot_status ot_product_shared(ot_call *c, const ot_product_job *j) OT_MUST_USE;
/* Item i of a batch of dense outputs. */
void ot_product_at(uint32_t rank, const int64_t *dims, const int64_t *a_step, const int64_t *b_step,
                   int64_t i, ot_product_job *j);
/* How the matrix [rows, columns] with these steps is stored; false: neither way round without
 * holes in the rows. Does not read it. */
bool ot_product_view(const float *data, int64_t rows, int64_t columns, int64_t row_step,
                     int64_t column_step, ot_matrix *out);
/* The same matrix the other way round. */
void ot_product_swap(ot_nd *a);

/* Many products. */
typedef struct ot_product_batch {
    uint32_t rank;
    /* steps in elements; 0: broadcast */
    int64_t dims[OT_RANK_MAX], a_step[OT_RANK_MAX], b_step[OT_RANK_MAX];
    int64_t count;
} ot_product_batch;

/* Shapes were accepted by ot_matmul_open: dims of the batch are known to agree. */
void ot_product_open_batch(const ot_matmul *p, const ot_nd *a, const ot_nd *b,
                           ot_product_batch *out);
/* Products that share B and whose rows follow on one another become one. */
void ot_product_join(ot_product_batch *t, ot_product_job *j);
/* y [m, n] = beta * bias, broadcast; float32. */
void ot_product_put_bias(const ot_nd *bias, float beta, float *y, int64_t m, int64_t n);
bool ot_product_bias_fits(const ot_nd *bias, int64_t m, int64_t n);

/* B [k, n] of a product in panels. */
typedef struct ot_product_panels {
    const void *from; /* what was packed */
    ot_dtype type;    /* of it: float32, or 16 bits */
    int64_t k, n, row_step, column_step;
    /* B is held in panels only, maybe of several forms; it has the address of some of them */
    bool only;
    _Alignas(64) float panels[];
} ot_product_panels;

enum { OT_PRODUCT_ROWS = 24 }; /* threads take a multiple of it, but the last */

/* Are panels faster than other ways, for a constant B? */
bool ot_product_takes_panels(int64_t m, int64_t n, int64_t k);
/* With the head of `like` and room for its panels, not written; free() it. NULL: no memory. */
ot_product_panels *ot_product_panels_new(const ot_product_panels *like);
/* When input k, which is b of the job, is constant and packing it pays: the panels that the node
 * keeps. */
void ot_product_constant(ot_call *c, uint32_t k, ot_product_job *j);

/* ---- half_product.c: operands of 16 bits ---- */

/* Both operands are of one type of 16 bits. */
bool ot_half_operands(const ot_call *c);
/* alpha * a * b into output 0; what it does not take, `otherwise` does. */
ot_status ot_half_matmul(ot_call *c, const ot_nd *a, const ot_nd *b, float alpha,
                         ot_op_fn otherwise);
ot_status ot_half_gemm(ot_call *c);
/* Panels [first, end) of a constant of 16 bits. */
void ot_half_panels_pack(ot_product_panels *p, const void *source, int64_t first, int64_t end);
/* Are panels better than widening B at each run? */
bool ot_half_takes_panels(int64_t n, int64_t k);

/* ---- implementations ---- */

extern const ot_op_entry ot_fast_product[];
extern const ot_op_named ot_fast_product_named[];

ot_status ot_fast_matmul(ot_call *c);
ot_status ot_fast_fused_matmul(ot_call *c); /* com.microsoft: alpha * a' * b' */
ot_status ot_fast_gemm(ot_call *c);
ot_status ot_fast_attention(ot_call *c);
ot_status ot_fast_projected_attention(ot_call *c);
ot_status ot_fast_rnn(ot_call *c);
ot_status ot_fast_gru(ot_call *c);
ot_status ot_fast_lstm(ot_call *c);
ot_status ot_fast_stft(ot_call *c);
ot_status ot_fast_dft(ot_call *c);
ot_status ot_fast_rotary_embedding(ot_call *c); /* fast_rotary.c */
ot_status ot_fast_matmul_nbits(ot_call *c);
ot_status ot_fast_einsum(ot_call *c);

#endif
