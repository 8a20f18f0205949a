/* What a vector function does with its caller's buffers. */
#ifndef OT_TK_MLIR_MLIR_VECTOR_H
#define OT_TK_MLIR_MLIR_VECTOR_H

#include "mlir_internal.h"

struct ml_effects {
    uint32_t n; /* arguments */
    /* of its bytes: some may be read, some may be written, each is written and none is read */
    bool reads[ML_LIST_MAX], writes[ML_LIST_MAX], whole[ML_LIST_MAX];
    bool *over; /* [n * n] at o * n + i: argument o may lie where argument i does */
};

/* From its arguments and its body, in copies of the lexer at '(' and at '{'. *out is in the arena,
 * NULL where the body holds what is not understood. */
ot_status ml_find_effects(const ml_lexer *arguments, const ml_lexer *body, ot_arena *a,
                          const ml_effects **out) OT_MUST_USE;

#endif
