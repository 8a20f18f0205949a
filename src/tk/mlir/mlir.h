/* Stage tk/mlir/: kernels in the form of HIVM, an MLIR dialect, in and out of the buffer planner.
 *
 *   k.mlir --mlir_parse--> ot_kernel (as .tk makes it) --planmem/--> offsets --mlir_write--> the
 *   same text with pointer_cast
 *
 *   %a = memref.alloc() : memref<16x256xf16, #hivm.address_space<ub>>
 *   -->
 *   %c512_i64 = arith.constant 512 : i64                     (head of the function)
 *   %a = hivm.hir.pointer_cast(%c512_i64) : memref<16x256xf16, #hivm.address_space<ub>>
 *
 * The subset that is read is listed in docs/kernels/mlir.md; what is outside of it is an error
 * with line and column. Functions are read and planned one by one. Nothing of the text changes
 * but what is planned.
 */
#ifndef OT_TK_MLIR_MLIR_H
#define OT_TK_MLIR_MLIR_H

#include "tk/planmem/planmem.h"

typedef struct ot_mlir ot_mlir;
/* What a vector function does with its arguments (mlir_vector.h). */
typedef struct ml_effects ml_effects;

/* A function with a body. */
typedef struct ot_mlir_function {
    const char *name;
    uint32_t line, col;        /* of its first word */
    size_t at;                 /* byte of it in the text */
    bool is_vector;            /* attribute hivm.vector_function: its memrefs are its caller's */
    const ml_effects *effects; /* of a vector function; NULL: it may do anything */
} ot_mlir_function;

typedef struct ot_mlir_functions {
    ot_arena *arena;
    ot_mlir_function *at; /* [n] in the order of the text */
    size_t n, cap;
} ot_mlir_functions;

/* The functions with a body; bodies are skipped. list->arena is the caller's. OT_E_INPUT. */
ot_status ot_mlir_find(const char *path, const char *text, size_t n, ot_diag *d,
                       ot_mlir_functions *list) OT_MUST_USE;

/* What is read, and how. */
typedef struct ot_mlir_options {
    ot_mem_part mode; /* of memref.alloc (local) and memref_ext.alloc_workspace, what is planned */
    /* one that ot_mlir_find found in this text, of which nothing else is read then; NULL: the
     * first with a body, and the text is read to its end */
    const ot_mlir_function *function;
    /* what calls lead to; NULL: they may do anything */
    const ot_mlir_functions *all;
    bool apart; /* results of scf.if are either branch's buffer: they share no place */
} ot_mlir_options;

/* Read one function of n bytes of text (borrowed until ot_mlir_free); path is for messages.
 * Fails with OT_E_INPUT, "path:line:col: rule". */
ot_status ot_mlir_parse(const char *path, const char *text, size_t n, const ot_mlir_options *o,
                        ot_diag *d, ot_mlir **out) OT_MUST_USE;
/* The verified kernel, with the lines and columns of the text; owned by m. Its target is
 * "ascend-a2". */
ot_kernel *ot_mlir_kernel(const ot_mlir *m);
/* Can the plan be written as addresses alone? A carried value or a result that does not share
 * its memory with what it is made of would need a copy: OT_E_INPUT at the loop or branch. The
 * same for a buffer that an operation reads and nothing wrote. */
ot_status ot_mlir_check_plan(const ot_mlir *m, const ot_mem_plan *p, ot_diag *d) OT_MUST_USE;
/* Plan function o->function; where branches' results cannot share a place, it is read once more
 * with each branch's own. Both *out and *plan are the caller's. */
ot_status ot_mlir_plan(const char *path, const char *text, size_t n, const ot_mlir_options *o,
                       const ot_tk_machine *t, const ot_mem_options *how, ot_diag *d, ot_mlir **out,
                       ot_mem_plan **plan) OT_MUST_USE;
/* The text from *from to the end of the function, with the plan's addresses; *from is then what
 * is left. OT_E_NOMEM, or what the stream reports. */
ot_status ot_mlir_write(const ot_mlir *m, const ot_mem_plan *p, size_t *from, FILE *f) OT_MUST_USE;
/* A message "path:line:col: text" becomes `loc("path":line:col): error: text`, the compiler's
 * form of it. */
void ot_mlir_loc(const char *path, ot_diag *d);
void ot_mlir_free(ot_mlir *m); /* accepts NULL */

#endif
