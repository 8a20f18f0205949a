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
 * Where the device multiplies matrices (dg_matrix.c), TALL x WIDE sums are a subgroup's, shared
 * memory holds words of 32 bits, each one float32 or two neighbours along the depth of half the
 * size, and several chunks are on their way at once.
 */
#ifndef OT_ENGINE_GPU_SHADERS_DG_TILES_H
#define OT_ENGINE_GPU_SHADERS_DG_TILES_H

#include "dg_internal.h"

#define DG_SLICE    8  /* elements of the depth; words of a matrix instruction */
#define DG_SUBGROUP 32 /* work-items that make a matrix instruction together */

/* Which operand: one has the rows, one the columns. */
typedef enum dg_side { DG_ROWS, DG_COLS } dg_side;

typedef struct dg_tiles {
    uint32_t rows, cols; /* of a work-group */
    uint32_t tall, wide; /* of a work-item */
    uint32_t slices;     /* of a chunk */
    double fraction;     /* of the device's products in a second that it makes where it is busy */
    bool deep[2];        /* by dg_side: neighbours in memory are neighbours along the depth */
    /* matrix instructions: */
    uint32_t steps;   /* of a slice of a chunk; 0: none are used */
    uint32_t stages;  /* chunks that shared memory holds */
    double alone;     /* time of a chunk where a unit has one group, as dg_work counts it */
    uint32_t in_word; /* elements of the depth in a word; 0: as 1 */
    ot_dtype dtype;   /* of the operands */
    bool direct[2];   /* by dg_side: words go to shared memory by no register, */
    bool quads[2];    /* four neighbours in memory at once */
} dg_tiles;

/* What is to be multiplied. */
typedef struct dg_tiled {
    int64_t rows, cols, depth;
    int64_t taps;  /* each of this depth: a chunk is of one */
    int64_t times; /* so many products */
    ot_dtype dtype;
    bool deep_halves[2]; /* by dg_side: in words of two, it lies along the depth */
    /* by dg_side: 16 bytes from every 16 on are all inside or all outside, where the argument
     * begins at such a place; of words of two only where it is deep */
    bool quads[2];
    /* may a work-group have so many rows? NULL: any */
    bool (*fits)(const void *of, uint32_t rows);
    const void *of;
    double begins; /* of a unit, what a kernel of matrices does beside, as dg_work counts it */
    double plain;  /* dg_work of a kernel without shared memory, for one element of the depth */
} dg_tiled;

static inline uint32_t dg_in_word(const dg_tiles *t) { return t->in_word > 1 ? t->in_word : 1; }
static inline uint32_t dg_tile_items(const dg_tiles *t)
{
    return t->rows / t->tall * (t->cols / t->wide) * t->slices * (t->steps ? DG_SUBGROUP : 1);
}
/* Words of a chunk along the depth; elements. */
static inline uint32_t dg_tile_words(const dg_tiles *t)
{
    return DG_SLICE * t->slices * (t->steps ? t->steps : 1);
}
static inline uint32_t dg_tile_depth(const dg_tiles *t) { return dg_tile_words(t) * dg_in_word(t); }
static inline int64_t dg_tile_chunks(const dg_tiles *t, const dg_tiled *x)
{
    return x->taps * ot_ceil_div(x->depth, dg_tile_depth(t));
}
static inline uint32_t dg_tile_extent(const dg_tiles *t, dg_side side)
{
    return side == DG_ROWS ? t->rows : t->cols;
}
/* Does the device take blocks for this, and which? */
bool dg_tiles_choose(const dg_build *b, const dg_tiled *x, dg_tiles *t);
/* Loads of a work-item, of a chunk: words, or quads of those. */
uint32_t dg_tile_loads(const dg_tiles *t, dg_side side);
/* Elements of each that are loaded one by one. */
static inline uint32_t dg_tile_parts(const dg_tiles *t, dg_side side)
{
    return t->quads[side] ? 1 : dg_in_word(t);
}
/* From its first load to number n, along the rows or columns, along the depth (elements). The
 * first is row or column "ra" or "rb" of the work-group's, "ka" or "kb" elements deep. */
int64_t dg_tile_across(const dg_tiles *t, dg_side side, uint32_t n);
int64_t dg_tile_down(const dg_tiles *t, dg_side side, uint32_t n);
/* Shared memory, and where the work-item is: "tx", "ty" of the work-group's, in slice "slice". */
void dg_tiles_open(dg_build *b, const dg_tiles *t);
/* Lines that load element k of word n of the next chunk, where `inside` holds (else it is 0):
 * element `index` of argument arg. */
void dg_tile_load(dg_build *b, const dg_tiles *t, dg_side side, uint32_t n, uint32_t k,
                  const char *inside, uint32_t arg, const char *index);
/* What lies beside the loop over chunks. */
typedef struct dg_tile_text {
    void (*start)(dg_build *b, const void *of); /* where loads begin: assignments */
    void (*fetch)(dg_build *b, const void *of); /* dg_tile_load of all words of the next chunk */
    const char *const *first; /* [tall] what sums begin with; NULL: 0. Not with matrices */
    const void *of;
} dg_tile_text;
/* The sums; of slice 0 alone. */
void dg_tiles_sums(dg_build *b, const dg_tiles *t, const dg_tiled *x, const dg_tile_text *text);
/* Afterwards: two loops over the sums, "l" of columns, "j" of rows, each of which is
 * dg_tile_sum, of column dg_tile_col and row dg_tile_row of the work-group's; lines may stand
 * between them. */
void dg_tiles_cols(dg_build *b, const dg_tiles *t);
void dg_tiles_rows(dg_build *b, const dg_tiles *t);
void dg_tiles_end(dg_build *b, const dg_tiles *t);
const char *dg_tile_sum(dg_build *b, const dg_tiles *t);
const char *dg_tile_col(dg_build *b, const dg_tiles *t);
const char *dg_tile_row(dg_build *b, const dg_tiles *t);
/* What work-items load and store, counted. */
void dg_tiles_count(dg_build *b, const dg_tiles *t, const dg_tiled *x, ot_dtype type);

/* ---- dg_matrix.c: the same by matrix instructions ---- */

/* Element of shared memory, from the first of a chunk's: row or column `at` (text), word k. */
const char *dg_matrix_place(dg_build *b, const dg_tiles *t, dg_side side, const char *at,
                            const char *k);
/* Words of shared memory of a chunk. */
uint32_t dg_matrix_words(const dg_tiles *t, dg_side side);
void dg_matrix_open(dg_build *b, const dg_tiles *t);
void dg_matrix_load(dg_build *b, const dg_tiles *t, dg_side side, uint32_t n, uint32_t k,
                    const char *inside, uint32_t arg, const char *index);
void dg_matrix_sums(dg_build *b, const dg_tiles *t, const dg_tiled *x, const dg_tile_text *text);

#endif
