/* Values of known size and life in one block of memory (private to this folder). */
#ifndef OT_PROCESS_LIVE_BOXES_H
#define OT_PROCESS_LIVE_BOXES_H

#include "base/base.h"

typedef struct ot_live_box {
    uint32_t first, last; /* steps: the one that writes it, the last that reads it */
    int64_t bytes, at;    /* at: offset, set by ot_boxes_place */
} ot_live_box;

/* Place n boxes as OpenVINO does, and return the height of the block. Their order changes. */
int64_t ot_boxes_place(ot_live_box *boxes, size_t n);

#endif
