/* Whether a 3x3 convolution is done by Winograd's algorithm, and how: pure functions of its
 * sizes and of the width of a machine's vectors. The engine and the planner ask the same rule,
 * so they cannot disagree; builds without the engine have it, too.
 *
 *   sizes, block --> ot_winograd_guess_for    pays?  cycles of a run, bytes of transformed weights
 *                    ot_winograd_admits       is there room for these weights?
 *                    ot_winograd_choose       the way that it is done: extent of tiles, strips,
 *                                             groups
 *
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

/* How a convolution is done. */
typedef struct ot_winograd_way {
    int64_t m;     /* outputs of a tile, each way: 2, 4 or 6 */
    int64_t strip; /* tiles whose transformed inputs are held at one time */
    /* blocks of output channels whose products are held at one time; even, or all of them */
    int64_t group;
    bool shared; /* the threads work at one strip together */
} ot_winograd_way;

/* The fastest way with vectors of `block` floats. *cycles: of a run, on the thread with the most
 * to do. */
ot_winograd_way ot_winograd_choose(const ot_winograd_sizes *s, int64_t block, double *cycles);
/* Tiles of all images. */
int64_t ot_winograd_tiles(const ot_winograd_sizes *s, int64_t m);
/* Bytes of transformed weights. */
int64_t ot_winograd_bytes(const ot_winograd_sizes *s, int64_t m, int64_t block);

/* What a machine with vectors of `block` floats would do; sizes that do not fit, and block 0,
 * never pay. */
typedef struct ot_winograd_guess {
    bool pays;     /* faster than a direct convolution */
    double cycles; /* of a run, on the thread with the most to do */
    int64_t bytes; /* of transformed weights */
} ot_winograd_guess;
ot_winograd_guess ot_winograd_guess_for(const ot_winograd_sizes *s, int64_t block);

/* Transformed weights replace the model's, which are smaller. What a layer holds, and what a
 * session holds more than its model, is limited: may it hold so many bytes for this layer when
 * it has grown by `grown` already? *growth: by which it grows. */
bool ot_winograd_admits(const ot_winograd_sizes *s, int64_t bytes, int64_t grown, int64_t *growth);

#endif
