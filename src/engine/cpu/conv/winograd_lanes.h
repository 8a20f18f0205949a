/* What one instruction set does for Winograd convolutions: the loops over vectors, and the table
 * that names them.
 *
 *   array (input)  [C/b][H][W][b]          a vector holds the b channels of a block at one pixel
 *   V              [P][C/b][tiles][b]      P = (m + 2)^2 positions of a transformed tile
 *   U              [K/b/g][P][g blocks of K, by twos: [C][2 b], a last odd one [C][b]]
 *   M              [P][g][tiles][b]        of one group of g blocks of output channels
 *   weights        [K/b by twos][C][9][2 b] that are transformed in each strip, some channels at
 *                  a time: U [P][channels][2 b], a last odd block b in place of 2 b
 *
 * Positions lie an odd number of cache lines apart: the 36 places that one tile is written to
 * would share a set otherwise. winograd_code.h is the code, compiled once for each instruction
 * set with other widths and other intrinsics.
 */
#ifndef OT_ENGINE_CPU_CONV_WINOGRAD_LANES_H
#define OT_ENGINE_CPU_CONV_WINOGRAD_LANES_H

#include "winograd.h"

#define OT_WINO_ROOT_HALF 0.70710678118654752440
#define OT_WINO_RUN       16 /* tiles of a row whose columns are transformed together */

/* `tiles` tiles side by side in one block of channels: from the array to V. */
typedef struct ot_wino_input {
    const float *src; /* row 0, column 0 of the block */
    int64_t row_stride, pixel_stride;
    int64_t in_h, in_w;
    int64_t row, col; /* of the first tile's first element; may lie outside: zeros */
    int64_t tiles;    /* at most OT_WINO_RUN */
    float *v;         /* of the first tile at position 0 */
    int64_t pos_stride;
    float *columns; /* scratch: [m * OT_WINO_RUN + 2][m + 2][b] */
} ot_wino_input;

/* `tiles` tiles side by side in one block of channels: from M to the array. */
typedef struct ot_wino_output {
    const float *m; /* of the first tile at position 0 */
    int64_t pos_stride;
    int64_t tiles;
    float *dst;            /* the first tile's first element */
    const float *residual; /* likewise, or NULL */
    int64_t row_stride, pixel_stride;
    int64_t rows, cols;   /* of the output from there on: what lies beyond is cut off */
    const float *bias;    /* [b] */
    const uint32_t *mask; /* [b] zeros where channels only pad the block, or NULL */
    int act;
    float alpha, beta;
} ot_wino_output;

/* M = U V at one position, for `k_blocks` blocks of output channels. */
typedef struct ot_wino_product {
    const float *u, *v;
    float *m;
    int64_t channels, k_blocks, tiles;
    int64_t block_stride; /* between blocks of channels in V and in M */
    bool add;             /* to what is in M */
} ot_wino_product;

/* U of some channels and one or two blocks of output channels. */
typedef struct ot_wino_weights {
    const float *w; /* [channels][9][k_blocks b] */
    float *u;       /* [P][channels][k_blocks b] */
    int64_t channels, k_blocks;
    int64_t pos_stride;
} ot_wino_weights;

typedef struct ot_wino_code {
    const char *name;
    int64_t block;                            /* b */
    void (*input[3])(const ot_wino_input *r); /* m = 2, 4, 6 */
    void (*output[3])(const ot_wino_output *r);
    void (*weights[3])(const ot_wino_weights *r);
    void (*product)(const ot_wino_product *p);
} ot_wino_code;

/* How a convolution is done. ot_winograd_new takes what ot_wino_choose says; tests take other ways.
 */
typedef struct ot_wino_choice {
    const ot_wino_code *code;
    int64_t m;     /* outputs of a tile, each way: 2, 4 or 6 */
    int64_t strip; /* tiles whose V is held at one time */
    int64_t group; /* blocks of output channels whose M is held at one time; even, or all of them */
    int64_t part;  /* channels whose U is made at one time, in each strip; 0: all U is held */
    bool shared;   /* the threads work at one strip together */
} ot_wino_choice;

/* requires sizes that ot_winograd_new takes */
ot_wino_choice ot_wino_choose(const ot_winograd_spec *s);

/* ---- winograd.c ---- */

ot_status ot_wino_make(const ot_winograd_spec *s, const ot_wino_choice *way, ot_diag *d,
                       ot_winograd **out) OT_MUST_USE;

extern const ot_wino_code ot_wino_plain; /* b = 8 */
#if defined(__x86_64__) && defined(__GNUC__)
#define OT_WINO_X86 1
extern const ot_wino_code ot_wino_avx2;   /* b = 8 */
extern const ot_wino_code ot_wino_avx512; /* b = 16 */
#endif

#endif
