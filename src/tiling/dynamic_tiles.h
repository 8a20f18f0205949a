/* Tiles, or steps of a stream, of a region whose cut axis has another extent in every run.
 *
 *   tile      0 .. first-1     first .. first+n-1         first+n
 *   windows   constants        start + i * step, length   start + n * step to the end of the axis
 *             |==begin==|      |==inner==|==inner==|...   |==last=========|
 *
 * What the tiles at the beginning and in the middle read is a matter of kernels, strides and
 * pads alone; the last one is the operators themselves, on what is left of their inputs, with
 * the pads that they have at the end. n is computed when the model runs:
 *
 *   n = min over cut inputs v of floor((extent(v) - least(v)) / step(v))  where one is below
 *                                                                         least(v): the region
 *                                                                         untiled
 *
 * A region that streams (tiling/stream.h) has one step in place of the tiles at the beginning,
 * as long as it takes until steps are alike; the inner and the last ones take over the same
 * number of rows of each value.
 */
#ifndef OT_TILING_DYNAMIC_TILES_H
#define OT_TILING_DYNAMIC_TILES_H

#include "forms.h"

typedef struct ot_dynamic_tiles {
    /* whose extents the windows below are of: larger than the design's, where there is such a
     * graph */
    const ot_graph *g;
    uint32_t n_first; /* tiles at the beginning that are unlike the inner ones; of a stream, 1 */
    int64_t lead;     /* rows of the sink that these make */
    const ot_tile_windows *first; /* [n_first] */
    const ot_tile_windows *inner; /* the first inner tile */
    ot_tile_windows last;         /* windows of a last tile; their upper ends are those of g */
    /* [n_values] rows from one inner tile to the next; 0 where it is not cut */
    int64_t *step;
    int64_t *least; /* [n_values] of cut inputs: extent with no inner tile */
    /* every cut value is as long as every other: cut inputs that are not are an error or a
     * broadcast of the model's */
    bool same;
} ot_dynamic_tiles;

/* Tiles of t->r, a region of the planned graph t->g, cut along one dimension; steps where its
 * form is OT_FORM_STREAM. *legal false with *why where the tiles depend on the size in another
 * way, or where the design size itself would run untiled. Allocates in t->arena. Fails:
 * OT_E_NOMEM. */
ot_status ot_dynamic_tiles_plan(const ot_form_tiles *t, ot_dynamic_tiles *out, bool *legal,
                                ot_why *why) OT_MUST_USE;

#endif
