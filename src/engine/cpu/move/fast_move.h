/* What the fast implementations of data movement, of resampling and of integers share.
 *
 * They compute what the reference implementations of ref_move*.c, ref_window_resize.c and
 * ref_math*.c do, on dense arrays. An implementation looks at its operands first; whatever is
 * unusual (or wrong: one place has the messages) it leaves to the reference implementation before
 * it has made an output.
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

/* ---- fast_index.c ----
 *
 * Both fail without memory; *offsets, in scratch memory and in elements of input 0, is NULL where
 * types, dims or an index are not as they should be: the reference says what is wrong. */

/* GatherElements, ScatterElements: input 1 [as many axes as input 0] holds coordinates on the
 * axis. */
ot_status ot_move_element_offsets(ot_call *c, int64_t axis, int64_t **offsets) OT_MUST_USE;
/* GatherND, ScatterND: the last axis of input 1, indices, holds coordinates on the axes of input 0
 * from b on; both have at least that many axes, and the first b in common. */
ot_status ot_move_tuple_offsets(ot_call *c, uint32_t b, int64_t **offsets) OT_MUST_USE;

/* ---- implementations, by file ---- */

ot_status ot_fast_pad(ot_call *c);    /* fast_move_pad.c */
ot_status ot_fast_gather(ot_call *c); /* fast_index.c */
ot_status ot_fast_gather_elements(ot_call *c);
ot_status ot_fast_gather_nd(ot_call *c);
ot_status ot_fast_scatter_elements(ot_call *c); /* fast_scatter.c */
ot_status ot_fast_scatter_nd(ot_call *c);
ot_status ot_fast_trilu(ot_call *c); /* fast_make.c */
ot_status ot_fast_eye_like(ot_call *c);
ot_status ot_fast_one_hot(ot_call *c);
ot_status ot_fast_range(ot_call *c);
ot_status ot_fast_non_zero(ot_call *c); /* fast_select.c */
ot_status ot_fast_unique(ot_call *c);
ot_status ot_fast_non_max_suppression(ot_call *c);
ot_status ot_fast_cast(ot_call *c); /* fast_move_number.c */
ot_status ot_fast_where(ot_call *c);
ot_status ot_fast_int_binary(ot_call *c); /* float64, too */
ot_status ot_fast_int_clip(ot_call *c);
ot_status ot_fast_resize(ot_call *c); /* fast_resize.c: Resize, Upsample */

#endif
