/* Tiled regions as they are lowered: what fuse_tiles.c (regions) and tile_windows.c (Slice,
 * Deslice) share. */
#ifndef OT_ENGINE_LOWER_TILES_H
#define OT_ENGINE_LOWER_TILES_H

#include "lower.h"

/* Where windows begin: one row of starts an iteration. */
typedef struct lw_table {
    uint32_t n_axes;
    int64_t rows;
    const int64_t *axes, *starts; /* [n_axes], [rows * n_axes] */
    bool dense;                   /* windows have no holes: strides as if they were whole */
    bool again;                   /* of a Deslice: another one may write to the same place */
} lw_table;

/* Tiles that are alike. */
typedef struct lw_tile_class {
    const ot_node *node;
    ot_schedule **workers;   /* [n_workers] */
    int64_t first, count;    /* tasks */
    const uint32_t *buffers; /* [body inputs - 1] output of the step */
} lw_tile_class;

typedef struct ot_tiles {
    lw_tile_class *classes; /* [n] */
    uint32_t n, n_workers;
    int64_t tasks, stride; /* bytes of one worker's arena */
    bool ordered;          /* tasks read what the ones before them left */
    bool alone;            /* one runs at a time, on all threads */
    /* [tasks] by the places that they write, where rows come and go; NULL: as they are */
    const int64_t *by_row;
} ot_tiles;

/* ---- tile_windows.c ---- */

/* The table of a step that is a Slice or Deslice of a body; NULL: it is none. */
const lw_table *lw_table_of(const ot_step *step);
bool lw_is_tile_out(const ot_step *step);
/* OT_E_INPUT: what is wrong with the node. */
ot_status lw_bad_node(const lw_pass *l, const ot_node *n, const char *what);

#endif
