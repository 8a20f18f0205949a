/* Private to devicegen/: the elements that one work-item goes through. */
#ifndef OT_ENGINE_GPU_SHADERS_DG_ROWS_H
#define OT_ENGINE_GPU_SHADERS_DG_ROWS_H

#include "dg_internal.h"

typedef struct dg_row {
    bool reduced[OT_RANK_MAX]; /* axes along which the work-item goes; set before dg_row_open */
    uint32_t rank;
    const int64_t *dims;
    int64_t items, length;           /* work-items; elements of each */
    const char *coords[OT_RANK_MAX]; /* of an element, within the loops */
} dg_row;

/* The kernel begins: coordinates of the axes that are kept. x lives on. */
bool dg_row_open(dg_build *b, dg_row *r, const ot_nd *x);
/* Loops over the row; several may follow one another. */
void dg_row_loops(dg_build *b, const dg_row *r);
void dg_row_close(dg_build *b, const dg_row *r);

#endif
