/* Private to the kernels of matrix products: dg_product.c, dg_product_tiles.c (shared memory). */
#ifndef OT_ENGINE_GPU_SHADERS_DG_PRODUCT_H
#define OT_ENGINE_GPU_SHADERS_DG_PRODUCT_H

#include "dg_internal.h"

typedef struct dg_matrices {
    const ot_node *n;
    ot_nd a, b, y; /* A [..., M, K], B [..., K, N], Y [..., M, N] */
    int64_t rows, cols, depth;
    uint32_t lanes, block; /* block: rows of a work-item */
    bool packs;            /* B is packed */
    int64_t span;          /* columns between lanes */
    const char *coords[OT_RANK_MAX];
    uint32_t in_a, in_b;
} dg_matrices;

/* Index of an operand: batch axes of y, aligned at the right, then two of its own. */
const char *dg_product_index(dg_build *b, const dg_matrices *p, uint32_t arg, const char *row,
                             const char *col);
/* What follows the product, and the stores: of element (row, col), whose sum is `value`. */
bool dg_product_rest(dg_build *b, dg_matrices *p, const char *row, const char *col,
                     const char *value);

/* ---- dg_product_tiles.c ---- */

/* As dg_conv_tiles. */
bool dg_product_tiles(dg_build *b, dg_matrices *p, double plain, bool *done);

#endif
