/* Numbers of 16 bits: arrays hold them, arithmetic is float32.
 *
 *   float16    s eeeee ffffffffff     subnormal below 2^-14, infinite from 65520 on
 *   bfloat16   s eeeeeeee fffffff     the upper half of a float
 *
 *   a call     x [16 bits] --widen--> rows of float32 in a cache --computed--> rows
 *              --narrow--> y [16 bits]
 *
 * Widening is exact; narrowing goes to nearest, ties to even. NaN stays NaN. Vector code is
 * chosen for the processor when it runs.
 */
#ifndef OT_ENGINE_CORE_HALF_H
#define OT_ENGINE_CORE_HALF_H

#include "engine.h"

/* n elements; `t` is float16 or bfloat16. The arrays do not overlap. */
void ot_half_widen(ot_dtype t, float *to, const uint16_t *from, int64_t n);
void ot_half_narrow(ot_dtype t, uint16_t *to, const float *from, int64_t n);

#define OT_HALF_RANK 8

/* The same for all elements of a box of `dims` (none is 0); strides in elements, 1 along the
 * last dim of either side. On the calling thread. */
void ot_half_widen_box(ot_dtype t, uint32_t rank, const int64_t *dims, float *to,
                       const int64_t *to_strides, const uint16_t *from,
                       const int64_t *from_strides);
void ot_half_narrow_box(ot_dtype t, uint32_t rank, const int64_t *dims, uint16_t *to,
                        const int64_t *to_strides, const float *from, const int64_t *from_strides);

/* ---- widened_call.c ---- */

/* Is some operand of 16 bits? */
bool ot_call_is_half(const ot_call *c);
/* Run an implementation of float32 arrays: operands of 16 bits are widened, results rounded to what
 * the model says. leading: axes of operand 0 along which it works part by part and that
 * results begin with, too; then few parts are float32 at one time. 0: all is. */
ot_status ot_call_widened(ot_call *c, ot_op_fn run, uint32_t leading) OT_MUST_USE;

#endif
