/* Copies between strided boxes: the one routine behind Transpose, Concat, Slice, Pad, Split,
 * Expand, DepthToSpace, changes of layout, and pieces of tiles.
 *
 *   dst[i0,i1,...] = src[i0,i1,...]     each side with strides of its own, 0 in src repeats,
 *                                       negative runs backwards
 */
#ifndef OT_ENGINE_CPU_MOVE_BOX_H
#define OT_ENGINE_CPU_MOVE_BOX_H

#include "engine/core/engine.h"

#define OT_BOX_RANK 12

/* What is copied: elements of `size` bytes, dims [rank]. */
typedef struct ot_box_shape {
    size_t size;
    uint32_t rank;
    const int64_t *dims;
} ot_box_shape;

/* Elements of 1, 2, 4 or 8 bytes; strides in elements. Boxes do not overlap. Runs of
 * elements that are adjacent on both sides are copied whole; where they are adjacent along one
 * dim in src and along another in dst, small squares go through registers (a transposition of 8
 * x 8 floats costs 8 loads and 8 stores). threads > 1: the longest dims are shared out
 * (ot_pool_share). */
void ot_box_copy(ot_box_shape shape, void *dst, const int64_t *dst_strides, const void *src,
                 const int64_t *src_strides, uint32_t threads);
/* All elements of the box become the bytes of one element at `value`. */
void ot_box_fill(ot_box_shape shape, void *dst, const int64_t *dst_strides, const void *value,
                 uint32_t threads);

/* Change of layout: `from` and `to` have equal dims, each plain with any strides (chan_block 0)
 * or blocked by channel (axis 1, `chan_block` channels together: dims [N, ceil(C / b), ..., b];
 * strides[1] is that of a block of channels, strides of the others as they lie, channels within
 * a block are adjacent). Channels that only pad the last block become zero in `to`. Both of one
 * type of 1, 2, 4 or 8 bytes. */
void ot_box_relayout(const ot_nd *to, const ot_nd *from, uint32_t threads);

#endif
