/* Values of known size and life in one block of memory (private to this folder). */
#ifndef OT_ALLOC_SIM_LIVE_BOXES_H
#define OT_ALLOC_SIM_LIVE_BOXES_H

#include "onnx/graph/ir.h"

typedef struct ot_live_box {
    uint32_t first, last; /* steps: the one that writes it, the last that reads it */
    int64_t bytes, at;    /* at: offset, set by ot_boxes_place */
    /* node of the top graph that makes it, or what it is a copy of in another layout; OT_NONE:
     * one of a body */
    ot_id maker;
} ot_live_box;

/* Place n boxes as OpenVINO does, and return the height of the block. Their order changes. */
int64_t ot_boxes_place(ot_live_box *boxes, size_t n);

/* Makers of the boxes that are there when most bytes are, the largest first, each once: [*found
 * <= most] into makers. n_steps: more than any box's last. Fails: OT_E_NOMEM. */
ot_status ot_boxes_fullest(const ot_live_box *boxes, size_t n, uint32_t n_steps, ot_arena *a,
                           ot_id *makers, uint32_t most, uint32_t *found) OT_MUST_USE;

#endif
