/* Inside the packer: greedy placement over an index of placed items (greedy.c), for greedy and improve. */
#ifndef OT_PACK_GREEDY_H
#define OT_PACK_GREEDY_H

#include "pack_internal.h"

typedef struct pack_hole {
    int64_t lower, upper; /* offsets */
} pack_hole;

/* Placed items by time. */
typedef struct pack_index {
    const ot_pack_problem *p;
    uint32_t leaves;  /* power of two >= n */
    uint32_t *item;   /* [n] by start */
    int64_t *lower;   /* [n] their starts */
    uint32_t *rank;   /* [n] place of an item in `item` */
    int64_t *latest;  /* [2 * leaves] latest end of the placed items below a node; INT64_MIN: none */
    pack_hole *found; /* scratch: what is taken among the neighbours */
    uint32_t n_found;
} pack_index;

ot_status pack_index_new(const ot_pack_problem *p, ot_arena *a, pack_index *x) OT_MUST_USE; /* OT_E_NOMEM */
void pack_index_clear(pack_index *x);
void pack_index_add(pack_index *x, uint32_t item); /* its offset is in the caller's array */
void pack_index_remove(pack_index *x, uint32_t item);
/* Offset for an item that is not placed: its fixed offset, its hint when that is free, else the smallest hole that holds it (first_fit: the
 * lowest), else on top. */
int64_t pack_place(pack_index *x, uint32_t item, const int64_t *offsets, bool first_fit);
/* Place all items anew in this order (fixed ones before all others); returns the height. */
int64_t pack_place_all(pack_index *x, const uint32_t *order, bool first_fit, int64_t *offsets);

#endif
