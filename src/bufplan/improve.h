/* Inside the heuristics: who is alive together (improve_index.c) and where an item can lie among those placed (improve_place.c). Used
 * by greedy.c and improve*.c. */
#ifndef OT_IMPROVE_H
#define OT_IMPROVE_H

#include "pack_internal.h"

/* ---- improve_index.c: neighbours in time, found in about as many steps as there are ---- */

typedef struct pack_life {
    uint32_t first, last; /* moments [first, last) of the lifetime, gaps included */
} pack_life;

/* Items ascending by first moment; `at` below is a position in this order. Moments number the different starts of
 * lifetimes, so two lifetimes (gaps included) overlap exactly when their moments do. */
typedef struct pack_index {
    const ot_pack_problem *p;
    uint32_t n, n_moments;
    pack_life *life;         /* [n] */
    uint32_t *item;          /* [n] position -> index in the problem */
    uint32_t *at;            /* [n] index in the problem -> position */
    uint32_t *begin;         /* [n_moments + 1] first position with that first moment */
    bool gaps;               /* some item has gaps: ask pack_index_meet as well */
    /* Marks: every so many starts, who began before and is still alive. */
    uint32_t *mark;          /* [n_marks] moments, ascending; mark[0] is 0 */
    uint32_t *mark_list;     /* [n_marks + 1] begin in `alive` */
    uint32_t *alive;         /* positions */
    uint32_t *mark_of;       /* [n_moments] the last mark that is not later */
    uint32_t n_marks;
} pack_index;

ot_status pack_index_new(const ot_pack_problem *p, ot_arena *a, pack_index *out) OT_MUST_USE;
/* Positions of all items (but `at`) whose lifetimes overlap that of `at`; out: room for n. Returns their number. */
uint32_t pack_index_neighbours(const pack_index *x, uint32_t at, uint32_t *out);

/* ---- improve_place.c: one item among placed ones ---- */

typedef struct pack_block { /* bytes taken */
    int64_t lower, upper;
} pack_block;

typedef enum pack_fit {
    PACK_FIRST_FIT, /* lowest place that is free */
    PACK_BEST_FIT   /* smallest gap that is large enough, the lowest of equals; else on top of all */
} pack_fit;

/* Sort by lower end; spare: room for n. */
void pack_blocks_sort(pack_block *b, uint32_t n, pack_block *spare);
/* A place for x; b: [n] ascending by lower end. INT64_MAX: x is fixed elsewhere and hits a block */
int64_t pack_blocks_place(const pack_block *b, uint32_t n, const ot_pack_item *x, pack_fit fit);

#endif
