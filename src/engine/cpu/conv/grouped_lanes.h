/* Grouped convolutions of two axes whose groups do not fill blocks of channels: the loops over
 * vectors, compiled for each instruction set, and what they are given.
 *
 *   array (input)   [C/b][H][W][b]       a vector holds the b channels of a block at one pixel
 *   terms           a result's channel reads one channel of its group in each: lane l takes lane
 *                   pick[l] of an input block
 *
 *     b = 8, 4 channels a group     term 0          term 1             of four
 *     lanes of the input block      0 0 0 0 4 4 4 4   1 1 1 1 5 5 5 5
 *
 *   weights         [K/b][kernel rows][terms][kernel columns][b]
 *
 * A run is some pixels of a row of one block of results, whose sums stay in registers. Where
 * groups lie across blocks (24 channels in blocks of 16) some lanes have nothing to read in some
 * terms: these are zeros, whatever the input holds.
 */
#ifndef OT_ENGINE_CPU_CONV_GROUPED_LANES_H
#define OT_ENGINE_CPU_CONV_GROUPED_LANES_H

#include "grouped_conv.h"

#define OT_GROUPED_LANES 16 /* most */

/* What each lane of a block of results reads of an input block. */
typedef struct ot_grouped_term {
    uint32_t pick[OT_GROUPED_LANES];
    uint32_t mask[OT_GROUPED_LANES]; /* all ones, or 0: nothing */
    int64_t block;                   /* of those that the block of results reads */
    bool is_partial;                 /* some of mask are 0 */
} ot_grouped_term;

/* `n` pixels side by side. */
typedef struct ot_grouped_run {
    /* [n_rows][blocks]: where the first pixel's first column lies; all columns that the longest
     * run reads may be read */
    const float *const *rows;
    const float *weights; /* of the first of these rows */
    const ot_grouped_term *terms;
    const float *bias;     /* [b] */
    const uint32_t *mask;  /* [b] zeros where channels only pad the block */
    const float *residual; /* of the first pixel, or NULL */
    float *dst;
    int64_t n, n_rows, n_terms, blocks;
    int64_t columns, stride, dilation; /* of the kernel, across */
    int act;                           /* as in ot_winograd_spec */
    float alpha, beta;
} ot_grouped_run;

typedef struct ot_grouped_code {
    int64_t block;   /* b */
    int64_t longest; /* pixels of a run */
    /* pixels that a run of n <= longest computes: columns for these must be there */
    int64_t (*computed)(int64_t n);
    void (*run)(const ot_grouped_run *r);
} ot_grouped_code;

extern const ot_grouped_code ot_grouped_plain; /* b = 8 */
#if defined(__x86_64__) && defined(__GNUC__)
#define OT_GROUPED_X86 1
extern const ot_grouped_code ot_grouped_avx2;   /* b = 8 */
extern const ot_grouped_code ot_grouped_avx512; /* b = 16 */
#endif

#endif
