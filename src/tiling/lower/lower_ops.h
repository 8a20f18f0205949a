/* What the files that write operators as operations of kernels share. Private to memory/. */
#ifndef OT_TILING_LOWER_LOWER_OPS_H
#define OT_TILING_LOWER_LOWER_OPS_H

#include "lower_region.h"

/* The node of a tile: its own settings. */
typedef struct tile_node {
    lowered *p;
    ot_node n;  /* with the adapted attributes */
    uint32_t i; /* in the region */
    const ot_adapted *ad;
    const lowered_tensor *in;
    uint32_t n_in;
    lowered_tensor out;
} tile_node;

/* All axes in blocks; operands follow as NumPy broadcasts them. */
lowered_op tile_pointwise(const char *name, const lowered_tensor *out, const lowered_tensor *in,
                          uint32_t n_in);
/* One operand of the same axes, of which those in `whole` are wanted whole. */
lowered_op tile_along(const char *name, const lowered_tensor *out, const lowered_tensor *in,
                      const bool *whole);
/* A setting of the operation. */
void tile_set_list(lowered_op *op, const char *name, const int64_t *values, uint32_t n);
void tile_set_number(lowered_op *op, const char *name, double value);
/* The operation: one statement, or in blocks in the cores. */
ot_status tile_put(lowered *p, const lowered_op *op) OT_MUST_USE;
/* out = name(in), name(in, setting=x), name(x, y), element by element. */
ot_status tile_put_unary(lowered *p, const char *name, const lowered_tensor *out,
                         const lowered_tensor *in) OT_MUST_USE;
ot_status tile_put_number(lowered *p, const char *name, const lowered_tensor *out,
                          const lowered_tensor *in, const char *setting, double x) OT_MUST_USE;
ot_status tile_put_pair(lowered *p, const char *name, const lowered_tensor *out,
                        const lowered_tensor *x, const lowered_tensor *y) OT_MUST_USE;
/* Contents of a constant operand, at most `max` numbers. false: not known. */
bool tile_numbers(const tile_node *x, uint32_t j, double *out, size_t max, size_t *n);
/* As lowered_refuse. */
ot_status tile_refuse(const tile_node *x, const char *why) OT_MUST_USE;

/* ---- lower_moves.c: Transpose; DepthToSpace, SpaceToDepth; Resize, Upsample; Concat; Slice;
 * Pad ---- */

ot_status tile_transpose(const tile_node *x) OT_MUST_USE;
ot_status tile_blocks(const tile_node *x) OT_MUST_USE;
/* Nearest neighbours in whole numbers: every element several times. */
ot_status tile_resize(const tile_node *x) OT_MUST_USE;
ot_status tile_concat(const tile_node *x) OT_MUST_USE;
/* A part of the tile; along the cut it is what the tile's own bounds say. */
ot_status tile_slice(const tile_node *x) OT_MUST_USE;
/* What lies inside is written after what lies around it. */
ot_status tile_pad(const tile_node *x) OT_MUST_USE;

#endif
