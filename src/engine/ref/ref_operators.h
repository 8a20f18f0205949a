/* Tables of reference implementations, one per family; ref_operators.c looks in all of them. */
#ifndef OT_ENGINE_REF_REF_OPERATORS_H
#define OT_ENGINE_REF_REF_OPERATORS_H

#include "engine/core/engine.h"

typedef struct ot_op_entry {
    ot_op op;
    ot_op_fn run;
} ot_op_entry;

/* Operators that ops.def does not have (sequences, optionals, STFT, com.microsoft's...), told
 * apart by name. A family that has some exports ot_ops_<family>_named[], ended by {NULL,
 * NULL, NULL}, and ref_operators.c knows of it. */
typedef struct ot_op_named {
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    ot_op_fn run;
} ot_op_named;

/* Each ends with {OT_OP_OPAQUE, NULL}. */
/* ref_math*.c: element-wise, casts, comparisons, Where */
extern const ot_op_entry ot_ops_math[];
/* ref_reduce*.c: reductions, softmax, normalisation, cumulative, TopK */
extern const ot_op_entry ot_ops_reduce[];
/* ref_window*.c: convolutions, pools, resampling, LRN */
extern const ot_op_entry ot_ops_window[];
/* ref_product*.c: MatMul, Gemm, Einsum, recurrent, quantized products */
extern const ot_op_entry ot_ops_product[];
/* ref_move*.c: data movement, shapes, constants */
extern const ot_op_entry ot_ops_move[];
/* ref_control*.c: If, Loop, Scan, sequences, optionals */
extern const ot_op_entry ot_ops_control[];

extern const ot_op_named ot_ops_window_named[];
extern const ot_op_named ot_ops_product_named[];
extern const ot_op_named ot_ops_move_named[];
extern const ot_op_named ot_ops_control_named[];

#endif
