/* Inside the search for cheap reuse: a part of a problem as a graph, and the ways to make it
 * cheaper: exact where all sizes are equal (price_slots.c) or items are few (price_search.c),
 * annealing for all (price_anneal.c).
 *
 *   a ===== b      hard: alive together, never share a byte
 *   a --3-- c      may share bytes, which costs 3
 *
 * Parts are connected by such edges; what is in different parts shares what it likes. */
#ifndef OT_PACK_PRICE_H
#define OT_PACK_PRICE_H

#include "pack_internal.h"

typedef struct price_edge {
    uint32_t item;  /* the other end */
    int64_t weight; /* of hard edges: what breaking it costs at present */
    bool hard;
} price_edge;

typedef struct price_part {
    uint32_t n;
    uint32_t *source; /* [n] index in the problem */
    int64_t *size, *alignment;
    bool *fixed;
    uint32_t *begin;   /* [n + 1] of its edges */
    price_edge *edges; /* both ways */
    int64_t capacity;
    int64_t unit;    /* weight in the middle of those above 0, at least 1 */
    int64_t *offset; /* [n] best packing so far */
    int64_t sum;     /* its price */
    int64_t bound;   /* no packing is cheaper */
} price_part;

static inline bool price_meets(const price_part *s, const int64_t *offset, uint32_t i, uint32_t j)
{
    return offset[i] < offset[j] + s->size[j] && offset[j] < offset[i] + s->size[i];
}

/* price_graph.c */
typedef struct price_graph {
    price_part *parts; /* [n] only those with something to save */
    size_t n;
    int64_t bound; /* what is paid between items with fixed offsets */
    bool whole;    /* false: too large to be made */
} price_graph;
ot_status price_make(const ot_pack_problem *p, const ot_pack_pair *pairs, size_t n_pairs,
                     int64_t capacity, const int64_t *offsets, ot_arena *a,
                     price_graph *out) OT_MUST_USE;
/* Price of offsets of a part. */
int64_t price_part_sum(const price_part *s, const int64_t *offset);

/* price_anneal.c: about that many moves, all of the time until `until` where a clock is given. */
ot_status price_anneal(price_part *s, int64_t moves, double until, uint64_t seed, pack_budget *b,
                       ot_arena *a) OT_MUST_USE;

/* price_apart.c: nothing shared, where that is easy. */
ot_status price_apart(price_part *s, ot_arena *a) OT_MUST_USE;

/* price_bound.c: the bound rises to what lack of room costs in any packing. */
ot_status price_find_bound(price_part *p, ot_arena *a) OT_MUST_USE;

/* price_search.c: few items, of whatever sizes: the best and its proof, unless the budget ended
 * it. */
ot_status price_search(price_part *s, pack_budget *b, ot_arena *a) OT_MUST_USE;

/* price_slots.c: all free items have one size. *applies: it is so, and few enough; then the best
 * and its proof, unless the budget ended it. */
ot_status price_slots(price_part *s, pack_budget *b, ot_arena *a, bool *applies) OT_MUST_USE;

#endif
