/* Implementations of convolutions and what surrounds them that no fused step takes: float16, and
 * shapes or weights that the run brings. */
#ifndef OT_ENGINE_CPU_CONV_FAST_CONV_H
#define OT_ENGINE_CPU_CONV_FAST_CONV_H

#include "engine/ref/ref_operators.h"

extern const ot_op_entry ot_fast_window[];
extern const ot_op_named ot_fast_window_named[];

/* fast_conv.c */
ot_status ot_fast_conv(ot_call *c);
ot_status ot_fast_relu(ot_call *c);     /* float16 */
ot_status ot_fast_max_pool(ot_call *c); /* float16; others: fast_pool.c */
/* fast_pool.c */
ot_status ot_fast_max_pool_rows(ot_call *c);
ot_status ot_fast_col2im(ot_call *c);
ot_status ot_fast_max_unpool(ot_call *c);
/* fast_deconv.c */
ot_status ot_fast_conv_transpose(ot_call *c);
/* fast_sample.c */
ot_status ot_fast_grid_sample(ot_call *c);
ot_status ot_fast_affine_grid(ot_call *c);
ot_status ot_fast_deform_conv(ot_call *c);
/* fast_roi.c */
ot_status ot_fast_roi_align(ot_call *c);
ot_status ot_fast_max_roi_pool(ot_call *c);

#endif
