/* Resize with align_corners, decomposed along its first resized axis
 * (src/transform/decompose/corners.c). */
#ifndef OT_OPS_RESIZE_CORNERS_H
#define OT_OPS_RESIZE_CORNERS_H

#include "ops.h"

#define OT_CORNER_TAPS 4 /* most rows that one row is made of */

typedef struct ot_corners {
    uint32_t axis;   /* the first one that is resized */
    int64_t in, out; /* its extents, which differ */
    bool others;     /* axes behind it are resized, too */
    uint32_t n_taps; /* rows that one row is made of: nearest 1, linear 2, cubic 4 */
    /* these lie from floor(f) - before to floor(f) + behind, f the row's coordinate */
    int64_t before, behind;
    uint32_t operand;   /* of scales or sizes */
    bool by_sizes;      /* sizes, else scales */
    uint32_t n_entries; /* of that vector */
    /* [n_entries] of a Resize of the other axes, behind which this one has its extent */
    int64_t sizes[OT_RANK_MAX];
    float scales[OT_RANK_MAX]; /* [n_entries] likewise */
    int round;                 /* nearest_mode */
    bool exclude;              /* rows outside have no weight */
    float cubic_a;
} ot_corners;

/* Whether n is a Resize with align_corners of known extents, and what it says. Requires SHAPES. */
bool ot_corners_read(const ot_graph *g, const ot_node *n, ot_corners *out);
/* Rows [n_taps] that output row o is made of, and their weights. False: runtimes do not agree on
 * its nearest row. */
bool ot_corners_taps(const ot_corners *c, int64_t o, int64_t row[OT_CORNER_TAPS],
                     float weight[OT_CORNER_TAPS]);
/* access_rows.c: whether the tables of GatherRows n are those that src/transform/decompose
 * writes: rows that are numbered from 0 on, and indices near the coordinates, as `before` and
 * `behind` say. Requires SHAPES. */
bool ot_rows_are_near(const ot_graph *g, const ot_node *n);

#endif
