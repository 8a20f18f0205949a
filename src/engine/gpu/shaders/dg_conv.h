/* Private to the kernels of convolutions: dg_conv.c (arrays as models have them), dg_conv_tiles.c
 * (the same in shared memory), dg_conv_blocks.c (in blocks of channels). */
#ifndef OT_ENGINE_GPU_SHADERS_DG_CONV_H
#define OT_ENGINE_GPU_SHADERS_DG_CONV_H

#include "dg_internal.h"

#define DG_BLOCK 8 /* channels side by side in activations */

typedef struct dg_convolution {
    const ot_node *n;
    dg_window w;
    ot_nd x, weights, y; /* of five axes; rows joined where `flat` */
    bool flat;
    int64_t group, in_maps, maps; /* channels of a group: of x, of y */
    uint32_t lanes, block;        /* block: output channels of a work-item */
    int64_t blocks;               /* of a group; filled up where block * blocks > maps */
    bool packs;                   /* weights are packed */
    bool depthwise;               /* in blocks of channels: a weight for each */
    int64_t span;                 /* elements of a row between lanes */
    const char *coords[5];        /* of the first element: batch, channel, ... */
    uint32_t in, wt;              /* arguments */
} dg_convolution;

static inline int64_t dg_taps(const dg_convolution *c)
{
    return c->w.kernel[0] * c->w.kernel[1] * c->w.kernel[2];
}
static inline bool dg_fills_up(const dg_convolution *c) { return c->block * c->blocks > c->maps; }
/* A loop over the window's axis k, and where it is in the input: "ih", for `out` of the result.
 * Outside of the picture it goes on, but for columns. */
void dg_conv_axis(dg_build *b, const dg_convolution *c, uint32_t k, const char *name,
                  const char *out);
/* Lines for the work-item's first output channel, `map`; its group's first input channel is
 * *first, its block *block. */
void dg_conv_maps(dg_build *b, dg_convolution *c, const char **first, const char **block);
/* May blocks of so many channels be filled up with zeros? They take memory, which weights that
 * are large have not. bytes: of the weights. */
static inline bool dg_may_fill(int64_t maps, uint32_t block, int64_t bytes)
{
    return bytes <= DG_FILL_SMALL || ot_ceil_div(maps, block) * block <= maps + maps / 4;
}
/* What follows the convolution, and the stores: of lane `l` of the row, map `j` of the block,
 * whose sum is `value`. */
bool dg_conv_rest(dg_build *b, const dg_convolution *c, const char *map, const char *at,
                  const char *value);

/* ---- dg_conv_tiles.c ---- */

/* The kernel of blocks in shared memory, where the device takes it: *done. plain: dg_work of a
 * kernel without. false: refused. */
bool dg_conv_tiles(dg_build *b, dg_convolution *c, double plain, bool *done);

/* ---- dg_conv_blocks.c ---- */

/* Does the group take the kernel of blocks: its input or its result lies in blocks of channels? */
bool dg_conv_takes_blocks(const dg_build *b, const dg_convolution *c);
bool dg_conv_blocks(dg_build *b, dg_convolution *c);

#endif
