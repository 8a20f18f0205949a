/* What the fast kernels of data movement, of resampling and of integers share.
 *
 * They compute what the reference kernels of ref_move*.c, ref_window_resize.c and ref_math*.c
 * do, on dense arrays. A kernel looks at its operands first; whatever is unusual (or wrong: one
 * place has the messages) it leaves to the reference kernel before it has made an output.
 */
#ifndef OT_ENGINE_CPU_MOVE_FAST_MOVE_H
#define OT_ENGINE_CPU_MOVE_FAST_MOVE_H

#include "box.h"
#include "fast_resize.h"
#include "engine/ref/ref_operators.h"

/* Ended by {OT_OP_OPAQUE, NULL}. */
extern const ot_op_entry ot_fast_move[];

/* ot_box_copy by the call's threads, for elements of any size and up to OT_RANK_MAX dims;
 * strides in elements. */
void ot_move_box(const ot_call *c, ot_box_shape shape, char *dst, const int64_t *dst_strides,
                 const char *src, const int64_t *src_strides);
/* Are inputs [0, n) given, and output 0 wanted and of a type that is held in memory? */
bool ot_move_usual(const ot_call *c, uint32_t n);
/* How many threads work on so many bytes. */
int ot_move_threads(const ot_call *c, int64_t bytes);

/* ---- kernels, by file ---- */

ot_status ot_fast_pad(ot_call *c);    /* fast_move_pad.c */
ot_status ot_fast_gather(ot_call *c); /* fast_index.c */
ot_status ot_fast_gather_elements(ot_call *c);
ot_status ot_fast_gather_nd(ot_call *c);
ot_status ot_fast_cast(ot_call *c); /* fast_move_number.c */
ot_status ot_fast_where(ot_call *c);
ot_status ot_fast_int_binary(ot_call *c);
ot_status ot_fast_resize(ot_call *c); /* fast_resize.c: Resize, Upsample */

#endif
