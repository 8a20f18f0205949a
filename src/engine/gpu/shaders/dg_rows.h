/* Private to shaders/: the elements that make one result, or one row: what one work-item goes
 * through, or the work-items of a group together.
 *
 *   alone    0 1 2 3 4 5 6 7 ...                 s
 *   shared   0 4 8 ..  item 0: s0                s0 + s2  -+
 *            1 5 9 ..  item 1: s1                s1 + s3  -+- s, of all items
 *            2 6 ..    item 2: s2                          the same pairs in each run
 *            3 7 ..    item 3: s3
 */
#ifndef OT_ENGINE_GPU_SHADERS_DG_ROWS_H
#define OT_ENGINE_GPU_SHADERS_DG_ROWS_H

#include "dg_internal.h"

typedef struct dg_row {
    bool reduced[OT_RANK_MAX]; /* axes along which the work-item goes; set before dg_row_open */
    uint32_t rank;
    const int64_t *dims;
    int64_t items, length;           /* rows; elements of each */
    uint32_t share;                  /* work-items that a row has; 1: it has no group */
    const char *coords[OT_RANK_MAX]; /* of an element, within the loops */
} dg_row;

/* Neighbouring axes from `first` on that are reduced become one, where x and y (NULL: none) lie so:
 * the outer one has extent 1 then. */
void dg_row_join(const dg_row *r, uint32_t first, ot_nd *x, ot_nd *y);
/* The kernel begins: coordinates of the axes that are kept. x lives on. */
bool dg_row_open(dg_build *b, dg_row *r, const ot_nd *x);
/* Loops over the row; several may follow one another. */
void dg_row_loops(dg_build *b, const dg_row *r);
void dg_row_close(dg_build *b, const dg_row *r);
/* After loops: variable s, of this type, becomes what it is for the whole row. merge: a statement
 * that takes another work-item's, x, into s. */
void dg_row_merge(dg_build *b, const dg_row *r, const char *type, const char *s, const char *merge);
/* Lines for one work-item of the row, up to dg_row_one_end. */
void dg_row_one(dg_build *b, const dg_row *r);
void dg_row_one_end(dg_build *b, const dg_row *r);
/* The kernel is complete. group_items: as of dg_end. */
void dg_row_end(dg_build *b, const dg_row *r, uint32_t group_items, double operations);

#endif
