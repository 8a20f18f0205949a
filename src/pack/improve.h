/* Inside the heuristics: what lies where (improve_map.c), where an item can lie
 * (improve_place.c), and the ways to get lower: packings by priorities (improve_skyline.c,
 * improve_keys.c) and by throwing out what is in the way (improve_eject.c). greedy.c uses the
 * map. */
#ifndef OT_PACK_IMPROVE_H
#define OT_PACK_IMPROVE_H

#include "pack_internal.h"

/* Lifetime in moments, gaps included. Moments number the different starts of lifetimes: two
 * lifetimes overlap exactly when their moments do. */
typedef struct pack_life {
    uint32_t first, last; /* half-open */
} pack_life;

/* life: [p->n]. *n_moments: at least 1. */
ot_status pack_lives(const ot_pack_problem *p, ot_arena *a, pack_life *life,
                     uint32_t *n_moments) OT_MUST_USE;

/* ---- improve_map.c: the placed items, by time and offset ---- */

typedef struct pack_block { /* bytes that an item takes */
    int64_t lower, upper;
    pack_life life;
    uint32_t item;
} pack_block;

typedef struct pack_window { /* what is alive in a part of time, ascending by lower */
    pack_block *blocks;      /* [n] */
    size_t n, cap;
} pack_window;

typedef struct pack_map {
    const ot_pack_problem *p;
    ot_arena *arena;
    pack_life *life;      /* [n] */
    int64_t *offset;      /* [n] -1: not placed */
    bool gaps;            /* some item has gaps */
    uint32_t stride;      /* window w holds moments [w * stride, (w + 2) * stride) */
    pack_window *windows; /* [n_windows] */
    uint32_t n_windows, n_moments;
    pack_block *near;  /* what pack_map_near found */
    pack_block *spare; /* [n] scratch */
} pack_map;

/* stack.c: what is not in the map, in this order of all items, each above everything that is alive
 * with it: offsets alone, the map stays. */
ot_status pack_stack(pack_map *m, const uint32_t *order) OT_MUST_USE;

/* An empty map. Items without a size are never in it. */
ot_status pack_map_new(const ot_pack_problem *p, ot_arena *a, pack_map *out) OT_MUST_USE;
void pack_map_clear(pack_map *m);
bool pack_map_put(pack_map *m, uint32_t item, int64_t offset) OT_MUST_USE; /* false: no memory */
void pack_map_take(pack_map *m, uint32_t item);
/* The placed items that are alive together with `item`, ascending by lower, into m->near.
 * Returns their number. */
uint32_t pack_map_near(pack_map *m, uint32_t item);
typedef enum pack_fit {
    PACK_FIRST_FIT, /* lowest place that is free */
    PACK_BEST_FIT /* smallest gap that is large enough, the lowest of equals; else on top of all */
} pack_fit;
/* Where the item can lie among those placed (itself not counted). */
int64_t pack_map_place(pack_map *m, uint32_t item, pack_fit fit);

/* ---- improve_place.c ---- */

/* Ascending by lower; spare: room for n. */
void pack_blocks_sort(pack_block *b, uint32_t n, pack_block *spare);
/* A place for x, whose lifetime is `life`: its hint when that is free. b: [n] ascending by
 * lower; those that do not overlap it count not. */
int64_t pack_blocks_place(const pack_block *b, size_t n, pack_life life, const ot_pack_item *x,
                          pack_fit fit);

static inline int64_t pack_align_up(int64_t x, int64_t align)
{
    int64_t over = align > 1 ? x % align : 0;
    return over ? x + (align - over) : x;
}

/* ---- the ways ---- */

typedef struct pack_improver {
    const ot_pack_problem *p; /* without hints */
    ot_arena *arena;
    int64_t goal;
    pack_budget *budget;
    bool spent;      /* the budget is used up */
    uint64_t random; /* state of the generator */
    int64_t *best;   /* [n] best packing found */
    int64_t height;
    int64_t *offsets; /* [n] scratch: the packing at hand */
    pack_map map;     /* scratch */
} pack_improver;

/* Is the goal reached, or the budget used up? */
static inline bool pack_done(const pack_improver *s) { return s->height <= s->goal || s->spent; }
/* The packing at hand has this height: keep it when it is the best. */
void pack_offer(pack_improver *s, const int64_t *offsets, int64_t height);
void pack_count(pack_improver *s, int64_t steps);
double pack_random_unit(pack_improver *s); /* [0, 1) */

/* improve_keys.c */
typedef struct pack_keys pack_keys;
ot_status pack_keys_new(pack_improver *s, pack_keys **out) OT_MUST_USE;
/* One packing of each order that it knows, then ranked by height. */
ot_status pack_keys_orders(pack_keys *k) OT_MUST_USE;
/* From the rank-th best order (any number): items that end too high come earlier next time.
 * About that many steps. */
ot_status pack_keys_squeak(pack_keys *k, uint32_t rank, int64_t steps) OT_MUST_USE;
/* From the rank-th best order: small changes where it is too high, kept when that does not make
 * it worse. */
ot_status pack_keys_climb(pack_keys *k, uint32_t rank, int64_t steps) OT_MUST_USE;

/* improve_eject.c: from the best packing; what is too high goes where it throws out least. */
ot_status pack_eject(pack_improver *s, int64_t steps) OT_MUST_USE;

#endif
