/* Geometry of sliding-window operators: what Conv, pools and ConvTranspose share. Private to
 * src/ops/. */
#ifndef OT_OPS_ACCESS_SPATIAL_H
#define OT_OPS_ACCESS_SPATIAL_H

#include "access.h"

#define OT_SPATIAL_MAX 3 /* spatial axes: 1-D to 3-D operators */

typedef struct ot_spatial {
    uint32_t n; /* spatial axes; value axis = 2 + index */
    ot_spatial_axis ax[OT_SPATIAL_MAX];
} ot_spatial;

/* Extent of the dilated kernel. */
static inline int64_t ot_spatial_dk(const ot_spatial_axis *x) { return (x->k - 1) * x->d + 1; }

/* Kernel (from attribute kernel_shape, else from the spatial dims of operand `weights`; OT_NONE:
 * the attribute is required), strides, dilations, extents of operand 0 and output 0. Pads are left
 * 0. false with *why when the node is malformed or outside our range. */
bool ot_spatial_read(const ot_graph *g, const ot_node *n, uint32_t weights, ot_spatial *sp,
                     ot_why *why);

/* Pads of a Conv or pool: explicit, or resolved from auto_pad. */
bool ot_spatial_read_pads(const ot_node *n, ot_spatial *sp, ot_why *why);

/* Batch and channel axes need no geometry: do input and output agree there? */
bool ot_spatial_same_extent(const ot_graph *g, const ot_node *n, uint32_t axis);
/* Is any spatial axis among the cuts? Otherwise the node is cloned as it is, auto_pad and all. */
bool ot_spatial_is_cut(const ot_tile_axis *axes, uint32_t n_axes);

/* Window of one axis of a Conv or pool (see access_conv.c for the formulas). */
bool ot_spatial_window(const ot_spatial_axis *x, ot_op_tile *t, ot_why *why);

/* The geometry that windows of a Conv, or of a pool, follow along `axis` (>= 2), whatever the
 * window; false: they do not, or there is none. */
bool ot_conv_spatial(const ot_graph *g, const ot_node *n, uint32_t axis, ot_spatial_axis *out);
bool ot_pool_spatial(const ot_graph *g, const ot_node *n, uint32_t axis, ot_spatial_axis *out);

/* Explicit pads for all spatial axes: the tile's on cut axes, the resolved original ones elsewhere;
 * auto_pad goes. */
ot_status ot_spatial_set_pads(const ot_spatial *sp, const ot_tile_axis *axes, uint32_t n_axes,
                              ot_arena *arena, ot_adapted *out) OT_MUST_USE;

#endif
