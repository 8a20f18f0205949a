/* Products of float32 matrices, as the kernels of fast_product*.c share them. */
#ifndef OT_ENGINE_FAST_PRODUCT_H
#define OT_ENGINE_FAST_PRODUCT_H

#include "engine/ref/ref_product.h"
#include "engine/rows/rows.h"

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
/* B [k, n] of a product in panels. */
typedef struct ot_product_panels {
    const float *from; /* what was packed */
    int64_t k, n, row_step, column_step;
    bool only; /* B is held in panels only, maybe of several forms; it has the address of some of them */
    _Alignas(64) float panels[];
} ot_product_panels;

enum { OT_PRODUCT_ROWS = 24 }; /* threads take a multiple of it, but the last */

/* Are panels faster than other ways, for a constant B? */
bool ot_product_takes_panels(int64_t m, int64_t n, int64_t k);
/* With the head of `like` and room for its panels, not written; free() it. NULL: no memory. */
ot_product_panels *ot_product_panels_new(const ot_product_panels *like);
/* When input k, which is b of the job, is constant and packing it pays: the panels that the node keeps. */
void ot_product_constant(ot_call *c, uint32_t k, ot_product_job *j);

/* ---- kernels ---- */

extern const ot_kernel_entry ot_fast_product[];
extern const ot_kernel_named ot_fast_product_named[];

ot_status ot_fast_matmul(ot_call *c);
ot_status ot_fast_fused_matmul(ot_call *c); /* com.microsoft: alpha * a' * b' */
ot_status ot_fast_gemm(ot_call *c);
ot_status ot_fast_attention(ot_call *c);
ot_status ot_fast_projected_attention(ot_call *c);
ot_status ot_fast_rnn(ot_call *c);
ot_status ot_fast_gru(ot_call *c);
ot_status ot_fast_lstm(ot_call *c);
ot_status ot_fast_stft(ot_call *c);

#endif
