/* Whether a 3x3 convolution is done by Winograd's algorithm, and how: pure functions of its
 * sizes and of the width of a machine's vectors. The engine and the planner ask the same rule,
 * so they cannot disagree; builds without the engine have it, too.
 *
 *   sizes, block, room --> ot_winograd_guess_for    pays?  cycles of a run, bytes of weights
 *                          ot_winograd_choose       the way that it is done: extent of tiles,
 *                                                   strips, groups, whose weights are held
 *
 * Weights are held transformed, which is several times their size, or transformed again in each
 * strip of tiles, which takes time, but no room.
 */
#ifndef OT_FUSION_WINOGRAD_RULE_H
#define OT_FUSION_WINOGRAD_RULE_H

#include "base/base.h"

typedef struct ot_winograd_sizes {
    int64_t batch, in_channels, out_channels;
    int64_t in_h, in_w, out_h, out_w;
    /* zeros before the first row and column; after the last as many as out_h, out_w ask for */
    int64_t pad_top, pad_left;
    uint32_t threads; /* that a run may use */
} ot_winograd_sizes;

/* Each is positive and below 2^31, and products of them can be counted. Requirement of what
 * follows. */
bool ot_winograd_sizes_fit(const ot_winograd_sizes *s);

/* Of a convolution of dilation d, both ways, s becomes the sizes of the d * d ones without dilation
 * that it is, in the batch: of images that lie in one another, as large as the largest.
 *
 *   dilation 2     0 1 0 1 0     out[y] reads rows that are y modulo d
 *                  2 3 2 3 2
 *                  0 1 0 1 0
 *
 * false, and s as it was: d is 0 or too large, or the zeros before do not fall on all of them. */
bool ot_winograd_take_apart(ot_winograd_sizes *s, int64_t d);

/* How a convolution is done. */
typedef struct ot_winograd_way {
    int64_t m;     /* outputs of a tile, each way: 2, 4 or 6 */
    int64_t strip; /* tiles whose transformed inputs are held at one time */
    /* blocks of output channels whose products are held at one time; even, or all of them */
    int64_t group;
    /* input channels whose weights are transformed at one time in each strip; 0: all are held
     * transformed */
    int64_t part;
    bool shared; /* the threads work at one strip together */
} ot_winograd_way;

/* Bytes that transformed weights may add to those of a model, in all its layers. */
#define OT_WINOGRAD_ROOM ((int64_t)22 << 20)

/* The fastest way with vectors of `block` floats, whose weights exceed the model's by at most
 * `room` bytes. *cycles: of a run, on the thread with the most to do. */
ot_winograd_way ot_winograd_choose(const ot_winograd_sizes *s, int64_t block, int64_t room,
                                   double *cycles);
/* Tiles of all images. */
int64_t ot_winograd_tiles(const ot_winograd_sizes *s, int64_t m);
/* Bytes of weights as that way holds them, and by how much transforming has made them larger. */
int64_t ot_winograd_bytes(const ot_winograd_sizes *s, const ot_winograd_way *way, int64_t block);
int64_t ot_winograd_growth(const ot_winograd_sizes *s, const ot_winograd_way *way, int64_t block);

/* What a machine with vectors of `block` floats would do; sizes that do not fit, and block 0,
 * never pay. */
typedef struct ot_winograd_guess {
    bool pays;      /* faster than a direct convolution */
    double cycles;  /* of a run, on the thread with the most to do */
    int64_t growth; /* ot_winograd_growth */
} ot_winograd_guess;
ot_winograd_guess ot_winograd_guess_for(const ot_winograd_sizes *s, int64_t block, int64_t room);

#endif
