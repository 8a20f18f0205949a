/* How a convolution is cut into parts that threads take one by one, each a convolution by itself
 * (private to src/engine/cpu/conv).
 *
 *   images    part = some images, all channels                 a batch that is long enough
 *   channels  part = an image, some blocks of output channels  blocks lie one after another, in
 *             results and weights
 *   rows      part = an image, one block, some rows            rows of one block lie one after
 *                                                              another
 *
 * oneDNN would share a primitive out itself, by OpenMP, whose threads spin while they wait.
 * Primitives are made for one thread instead, and parts are chosen so that what they write lies
 * in one piece, since oneDNN's implementations take dense arrays only. Rows of several blocks of
 * input channels do not: they are copied before.
 */
#ifndef OT_ENGINE_CPU_CONV_CONV_CUT_H
#define OT_ENGINE_CPU_CONV_CONV_CUT_H

#include "conv.h"

typedef struct lw_conv_part {
    int64_t image, images;     /* first, number */
    int64_t map, maps;         /* output channels */
    int64_t channel, channels; /* input channels that they read */
    int64_t row, rows;         /* of the result along the first spatial axis */
    int64_t in_row, in_rows;   /* that they read */
    int64_t lo;                /* rows of zeros before these */
} lw_conv_part;

/* Parts that together are the convolution k of an array of the form of x into one of the form of
 * y, each computed once; in `a`. One thread, or what cannot be cut: a single part. *parts NULL:
 * no memory. Returns their number. */
uint32_t lw_conv_cut(ot_arena *a, const lw_conv *k, const ot_nd *x, const ot_nd *y,
                     uint32_t threads, lw_conv_part **parts);

/* The same for implementations whose sums depend on the size of the part (oneDNN's matrix product,
 * whose edges add up in another order): these parts are chosen without regard to threads. x:
 * plain. */
uint32_t lw_conv_cut_alike(ot_arena *a, const lw_conv *k, const ot_nd *x, lw_conv_part **parts);

/* The convolution of that part alone, and the forms of its input and result. */
void lw_conv_part_of(const lw_conv *k, const ot_nd *x, const ot_nd *y, const lw_conv_part *part,
                     lw_conv *sub, ot_nd *sub_x, ot_nd *sub_y);

/* Is the input of the part in one piece, so that it is read where it lies? */
bool lw_conv_part_is_dense(const ot_nd *x, const lw_conv_part *part);
/* Elements before what the part reads (of a dense one) and writes. */
int64_t lw_conv_part_source(const ot_nd *x, const lw_conv_part *part);
int64_t lw_conv_part_result(const ot_nd *y, const lw_conv_part *part);
/* Its input's rows, one after another. from: the whole input; to: as large as sub_x. */
void lw_conv_part_copy(const ot_nd *x, const lw_conv_part *part, float *to, const float *from);

#endif
