/* Form stream: a region walks along one axis and carries the last rows of each value, so that no
 * row is computed twice.
 *
 *   conv 3x3 twice, steps of 4 rows          kept: carried in    made: at hand    fresh: computed
 *
 *            step 0          step 1          step 2           the last step
 *   x        [0 ........ 6)  |4 ...... 10)   |8 ...... 14)    rows are read where they lie, outside
 *   conv 1   [0 .... 5)      |3..5 .. 9)     |7..9 .. 13)     3..5 kept, 5..9 fresh
 *   conv 2   [0 .. 4)        |     4..8)     |     8..12)
 *            prologue        steady: steps that are alike     epilogue
 *
 * docs/streaming.md has the formulas. A step's windows are those of a tile (region.h) but for
 * this: `made` of a value that is made inside is what the step has of it, `kept` the part of
 * that which the step before handed on; what a node computes is ops[].made, right behind `kept`.
 * Pieces of outputs are what is computed of them.
 *
 * Standard ONNX writes a body for each kind of step, so there are three at most, and the first
 * one makes all rows by which the region lags. Line buffers (r->rolling) are for somebody who
 * writes in place and calls operators one by one. There no step makes more than a steady one:
 *
 *   steps   0  1  2  3  4  5 ...  before the sink's first row, steps in which the values before it
 *           make theirs
 *   conv 1  4  4  4  4  4  4      rows of region inputs are kept as well: each is brought once
 *   conv 2  1  4  4  4  4  4      columns may be cut besides, with halos: dims[1], each strip from
 *                                 its first row to its last
 *   sink    -  2  4  4  4  4
 *
 * The engine's operators (r->in_classes) have such steps, too, each with a body of its own.
 */
#ifndef OT_TILING_STREAM_H
#define OT_TILING_STREAM_H

#include "forms.h"

typedef struct ot_stream {
    ot_tile_windows *steps; /* [n] with `kept` */
    uint32_t n;
    /* [n_runs] single steps and one of several that are alike, which hands on as many rows as it
     * takes. At most three; rolling: as many as there are steps */
    ot_tile_run *runs;
    uint32_t n_runs;
} ot_stream;

/* What ot_stream_steps found for the region that has it (r->memo): who looks at one region asks
 * for its steps several times. It holds for the region's rows and form as they are. */
typedef struct ot_stream_memo {
    ot_arena *a; /* of the steps */
    bool is_known, legal;
    ot_why why;
    ot_stream steps;
} ot_stream_memo;

/* Rows of value v that are new in step w: behind those that were kept. */
static inline ot_win ot_stream_new(const ot_tile_windows *w, uint32_t v)
{
    return (ot_win){w->made[v].lo + (w->kept[v].hi - w->kept[v].lo), w->made[v].hi};
}

/* Region r, which streams, as it is written: in the engine's operators as it is, in standard
 * ONNX with all of a step's rows in their whole length, in three kinds of steps. */
static inline ot_region ot_stream_written(const ot_region *r)
{
    ot_region flat = *r;
    if (r->in_classes) return flat;
    if (r->rolling) {
        flat.n_dims = 1;
        flat.memo = NULL; /* other steps */
    }
    flat.rolling = false;
    return flat;
}

/* Steps of region r along dims[0], .tile rows of the sink in each of the steady ones. *legal
 * false, with *why, when the region cannot stream so. In a, or in that of r->memo. Requires SHAPES;
 * a borrows nothing. Fails: OT_E_NOMEM. */
ot_status ot_stream_steps(const ot_graph *g, const ot_region *r, ot_arena *a, ot_stream *out,
                          bool *legal, ot_why *why) OT_MUST_USE;
/* Windows of steps that end at ends [n] of the sink, ascending, whatever they look like; *steps
 * [n] in a, or NULL, with *why, when the region cannot stream so. The rest as above. */
ot_status ot_stream_at(const ot_graph *g, const ot_region *r, ot_arena *a, const int64_t *ends,
                       uint32_t n, ot_tile_windows **steps, ot_why *why) OT_MUST_USE;

#endif
