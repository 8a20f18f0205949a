/* What a Resize says, for the slice relation and for those that align_corners keeps from it
 * (resize_corners.c). Private to src/ops/. */
#ifndef OT_OPS_ACCESS_RESIZE_H
#define OT_OPS_ACCESS_RESIZE_H

#include "access.h"

/* coordinates so near to the middle between two elements count as the middle */
#define RS_TIE_SLACK 1e-6f

typedef enum rs_mode { RS_NEAREST, RS_LINEAR, RS_CUBIC } rs_mode;
typedef enum rs_map {
    RS_HALF_PIXEL,
    RS_SYMMETRIC,
    RS_PYTORCH,
    RS_ASYMMETRIC,
    RS_TF_HALF,
    RS_CORNERS,
    RS_CROP
} rs_map;
typedef enum rs_round { RS_PREFER_FLOOR, RS_PREFER_CEIL, RS_FLOOR, RS_CEIL } rs_round;

/* What a Resize or Upsample says. */
typedef struct ot_resize {
    rs_mode mode;
    rs_map map;
    rs_round round;
    /* no nearest_mode: truncate going up, ceil going down (Upsample, Resize 10) */
    bool legacy;
    bool antialias, exclude, aspect; /* aspect: sizes are adjusted by keep_aspect_ratio_policy */
    bool by_sizes;
    uint32_t operand;           /* of scales or sizes; OT_NONE: attribute */
    uint32_t n_entries;         /* of that vector */
    int8_t entry[OT_RANK_MAX];  /* axis -> index into the vector, or -1 */
    int64_t sizes[OT_RANK_MAX]; /* [n_entries] when by_sizes */
    float scales[OT_RANK_MAX];  /* [n_entries] else */
} ot_resize;

/* Its attributes, and contents of its scales or sizes; false with *why where they are not known
 * or do not fit. Requires SHAPES. */
bool ot_resize_read(const ot_graph *g, const ot_node *n, ot_resize *r, ot_why *why);
/* The neighbour of coordinate f, in single precision as runtimes compute it: those that compare
 * with the middle (slack 0), and those that allow for the rounding of the scale (RS_TIE_SLACK),
 * as ONNX Runtime and the engine do. */
int64_t ot_resize_round(rs_round round, float f, float slack);

#endif
