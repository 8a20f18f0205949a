/* Form stream: a region walks along one axis and carries the last rows of each value, so that no row is computed twice.
 *
 *   conv 3x3 twice, steps of 4 rows          kept: carried in    made: at hand    fresh: computed
 *
 *            step 0          step 1          step 2                the last step
 *   x        [0 ........ 6)  |4 ...... 10)   |8 ...... 14)         rows are read where they lie, outside
 *   conv 1   [0 .... 5)      |3..5 .. 9)     |7..9 .. 13)          3..5 kept, 5..9 fresh
 *   conv 2   [0 .. 4)        |     4..8)     |     8..12)
 *            prologue        steady: steps that are alike          epilogue
 *
 * docs/streaming.md has the formulas. A step's windows are those of a tile (region.h) but for this: `made` of a value that is made inside
 * is what the step has of it, `kept` the part of that which the step before handed on; what a node computes is ops[].made, right behind
 * `kept`. Pieces of outputs are what is computed of them.
 */
#ifndef OT_REGION_STREAM_H
#define OT_REGION_STREAM_H

#include "forms.h"

typedef struct ot_stream {
    ot_tile_windows *steps; /* [n] with `kept` */
    uint32_t n;
    ot_tile_run *
        runs; /* [n_runs] at most three: a step, steps that are alike, a step. A run of several hands on as many rows as it takes */
    uint32_t n_runs;
} ot_stream;

/* Steps of region r, dims[0].tile rows of the sink in each of the steady ones. *legal false, with *why, when the region cannot stream so.
 * Requires SHAPES; a borrows nothing. Fails: OT_E_NOMEM. */
ot_status ot_stream_steps(const ot_graph *g, const ot_region *r, ot_arena *a, ot_stream *out, bool *legal, ot_why *why) OT_MUST_USE;

#endif
