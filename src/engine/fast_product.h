/* Products of float32 matrices, as the kernels of fast_product*.c share them. */
#ifndef OT_ENGINE_FAST_PRODUCT_H
#define OT_ENGINE_FAST_PRODUCT_H

#include "ref_product.h"
#include "rows.h"

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
void ot_product_at(uint32_t rank, const int64_t *dims, const int64_t *a_step, const int64_t *b_step, int64_t i, ot_product_job *j);
/* When input k, which is b of the job, is constant and packing it pays: the panels that the node keeps. */
void ot_product_constant(ot_call *c, uint32_t k, ot_product_job *j);

/* com.microsoft FusedMatMul: alpha * a' * b' */
ot_status ot_fast_fused_matmul(ot_call *c);

#endif
