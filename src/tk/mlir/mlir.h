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
 * with line and column. One function with a body is planned. Nothing of the text changes but
 * what is planned.
 *
 *
 *
 */
#ifndef OT_TK_MLIR_MLIR_H
#define OT_TK_MLIR_MLIR_H

#include "tk/planmem/planmem.h"

typedef struct ot_mlir ot_mlir;

/* Read n bytes of text (borrowed until ot_mlir_free); path is for messages. mode: of
 * memref.alloc (local) and memref_ext.alloc_workspace, what becomes buffers of the kernel. Fails
 * with OT_E_INPUT, "path:line:col: rule". */
ot_status ot_mlir_parse(const char *path, const char *text, size_t n, ot_mem_part mode, ot_diag *d,
                        ot_mlir **out) OT_MUST_USE;
/* The verified kernel, with the lines and columns of the text; owned by m. Its target is
 * "ascend-a2". */
ot_kernel *ot_mlir_kernel(const ot_mlir *m);
/* Can the plan be written as addresses alone? A carried value or a result that does not share
 * its memory with what it is made of would need a copy: OT_E_INPUT at the loop or branch. */
ot_status ot_mlir_check_plan(const ot_mlir *m, const ot_mem_plan *p, ot_diag *d) OT_MUST_USE;
/* The text with the plan's addresses. OT_E_NOMEM, or what the stream reports. */
ot_status ot_mlir_write(const ot_mlir *m, const ot_mem_plan *p, FILE *f) OT_MUST_USE;
/* A message "path:line:col: text" becomes `loc("path":line:col): error: text`, the compiler's
 * form of it. */
void ot_mlir_loc(const char *path, ot_diag *d);
void ot_mlir_free(ot_mlir *m); /* accepts NULL */

#endif
