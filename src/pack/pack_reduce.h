/* Inside the packer: checking and splitting problems (pack_reduce.c). */
#ifndef OT_PACK_PACK_REDUCE_H
#define OT_PACK_PACK_REDUCE_H

#include "pack_internal.h"

/* The rules at ot_pack_item; OT_E_INPUT naming the item's number. */
ot_status pack_validate(const ot_pack_problem *p, ot_diag *d) OT_MUST_USE;

/* false: it has no size, or its gaps fill its lifetime; then it may lie anywhere. */
bool pack_takes_part(const ot_pack_item *x);

/* Parts of a problem whose lifetimes are not connected; items that do not take part are in none.
 * Part k has items[begin[k]..begin[k + 1]). */
typedef struct pack_parts {
    ot_pack_item *items;
    uint32_t *source; /* index in the problem */
    uint32_t *begin;  /* [n + 1] */
    uint32_t n;
} pack_parts;
ot_status pack_split(const ot_pack_problem *p, ot_arena *a, pack_parts *out) OT_MUST_USE;

/* All offsets and heights of canonical packings are multiples of it. */
int64_t pack_unit(const ot_pack_problem *p);

#endif
