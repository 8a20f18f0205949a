/* Private to shaders/: products whose operands a work-group loads once, block by block.
 *
 *   rows x depth  *  depth x cols     convolutions: output channels x inputs of a window, times
 *                                     those x pixels
 *
 *          cols                for all chunks of the depth
 *        +--+--+--+              each work-item loads some elements of the next chunk
 *   rows |  |  |  |              all multiply the chunk that is in shared memory,
 *        +--+--+--+                TALL x WIDE sums each
 *        |  |##|  |              what was loaded goes into the other half of shared memory
 *        +--+--+--+
 *          ## of a work-group
 *
 * Where there are few blocks, a chunk has several slices of its depth, each with work-items of its
 * own, whose sums are added up in the end, one slice after the other: more loads are on their way
 * at a time. Rows of a work-item are neighbours; its columns are apart by the work-items beside
 * it, so that they load and store neighbours.
 *
 */
#ifndef OT_ENGINE_GPU_SHADERS_DG_TILES_H
#define OT_ENGINE_GPU_SHADERS_DG_TILES_H

#include "dg_internal.h"

#define DG_SLICE 8 /* elements of the depth */

/* Which operand: one has the rows, one the columns. */
typedef enum dg_side { DG_ROWS, DG_COLS } dg_side;

typedef struct dg_tiles {
    uint32_t rows, cols; /* of a work-group */
    uint32_t tall, wide; /* of a work-item */
    uint32_t slices;     /* of a chunk */
    double fraction;     /* of the device's products in a second that it makes where it is busy */
    bool deep[2];        /* by dg_side: neighbours in memory are neighbours along the depth */
} dg_tiles;

/* What is to be multiplied. */
typedef struct dg_tiled {
    int64_t rows, cols, depth;
    int64_t taps;  /* each of this depth: a chunk is of one */
    int64_t times; /* so many products */
    /* may a work-group have so many rows? NULL: any */
    bool (*fits)(const void *of, uint32_t rows);
    const void *of;
    double plain; /* dg_work of a kernel without shared memory, for one element of the depth */
} dg_tiled;

static inline uint32_t dg_tile_items(const dg_tiles *t)
{
    return t->rows / t->tall * (t->cols / t->wide) * t->slices;
}
static inline uint32_t dg_tile_depth(const dg_tiles *t) { return DG_SLICE * t->slices; }
static inline int64_t dg_tile_chunks(const dg_tiles *t, const dg_tiled *x)
{
    return x->taps * ot_ceil_div(x->depth, dg_tile_depth(t));
}
/* Does the device take blocks for this, and which? */
bool dg_tiles_choose(const dg_build *b, const dg_tiled *x, dg_tiles *t);
/* Elements that a work-item loads of a chunk. */
uint32_t dg_tile_loads(const dg_tiles *t, dg_side side);
/* From its first such element to number n, along the rows or columns, along the depth. The first
 * is row or column "ra" or "rb" of the work-group's, "ka" or "kb" deep. */
int64_t dg_tile_across(const dg_tiles *t, dg_side side, uint32_t n);
int64_t dg_tile_down(const dg_tiles *t, dg_side side, uint32_t n);
/* Shared memory, and where the work-item is: "tx", "ty" of the work-group's, in slice "slice". */
void dg_tiles_open(dg_build *b, const dg_tiles *t);
/* The sums acc0, acc1, ..., one vector of WIDE columns for each row, which are there: 0 but in
 * slice 0. fetch: lines
 * that load the next chunk into fa0, fa1, ..., fb0, fb1, ... */
void dg_tiles_sums(dg_build *b, const dg_tiles *t, const dg_tiled *x,
                   void (*fetch)(dg_build *b, const void *state), const void *state);
/* Afterwards: two loops over the sums, "l" of columns, "j" of rows, each of which is
 * dg_tile_sum; lines may stand between them. */
void dg_tiles_cols(dg_build *b, const dg_tiles *t);
void dg_tiles_rows(dg_build *b, const dg_tiles *t);
void dg_tiles_end(dg_build *b, const dg_tiles *t);
const char *dg_tile_sum(dg_build *b, const dg_tiles *t);
/* What work-items load and store, counted. */
void dg_tiles_count(dg_build *b, const dg_tiles *t, const dg_tiled *x, ot_dtype type);

#endif
