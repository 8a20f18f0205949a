/* Tables of reference kernels, one per family; ref_kernels.c looks operators up in all of them. */
#ifndef OT_ENGINE_REF_REF_KERNELS_H
#define OT_ENGINE_REF_REF_KERNELS_H

#include "engine/core/engine.h"

typedef struct ot_kernel_entry {
    ot_op op;
    ot_kernel_fn run;
} ot_kernel_entry;

/* Operators that ops.def does not have (sequences, optionals, STFT, com.microsoft's...), told
 * apart by name. A family that has some exports ot_kernels_<family>_named[], ended by {NULL,
 * NULL, NULL}, and ref_kernels.c knows of it. */
typedef struct ot_kernel_named {
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    ot_kernel_fn run;
} ot_kernel_named;

/* Each ends with {OT_OP_OPAQUE, NULL}. */
/* ref_math*.c: element-wise, casts, comparisons, Where */
extern const ot_kernel_entry ot_kernels_math[];
/* ref_reduce*.c: reductions, softmax, normalisation, cumulative, TopK */
extern const ot_kernel_entry ot_kernels_reduce[];
/* ref_window*.c: convolutions, pools, resampling, LRN */
extern const ot_kernel_entry ot_kernels_window[];
/* ref_product*.c: MatMul, Gemm, Einsum, recurrent, quantized products */
extern const ot_kernel_entry ot_kernels_product[];
/* ref_move*.c: data movement, shapes, constants */
extern const ot_kernel_entry ot_kernels_move[];
/* ref_control*.c: If, Loop, Scan, sequences, optionals */
extern const ot_kernel_entry ot_kernels_control[];

extern const ot_kernel_named ot_kernels_window_named[];
extern const ot_kernel_named ot_kernels_product_named[];
extern const ot_kernel_named ot_kernels_move_named[];
extern const ot_kernel_named ot_kernels_control_named[];

#endif
