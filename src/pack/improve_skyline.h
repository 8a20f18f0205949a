/* Inside the heuristics: packings built bottom up by priorities (improve_skyline.c). */
#ifndef OT_PACK_IMPROVE_SKYLINE_H
#define OT_PACK_IMPROVE_SKYLINE_H

#include "improve.h"

/* A part of time with one floor; neighbours are linked. */
typedef struct pack_segment {
    uint32_t first, last; /* sections, half-open */
    int64_t floor;
    uint32_t left, right; /* OT_NONE at the ends */
    bool gone;
} pack_segment;

/* A node of the tree over the items: bounds of its items that are still to come. */
typedef struct pack_tree_node {
    uint32_t first_min, first_max, last_min, last_max;
    float key; /* largest; negative: none left */
} pack_tree_node;

typedef struct pack_skyline {
    const ot_pack_problem *p;
    uint32_t n; /* items that take part: not fixed, with a size */
    uint32_t n_sections;
    pack_life *life;        /* [n] in sections, by place in the tree */
    uint32_t *item;         /* [n] index in the problem */
    float *key;             /* [n] of the run; negative: placed */
    pack_tree_node *nodes;  /* [2 * n_leaves] root 1, leaves from n_leaves on */
    uint32_t n_leaves;      /* power of two */
    pack_segment *segments; /* [cap] */
    uint32_t n_segments;
    uint32_t *heap; /* [cap] segments, lowest floor first, then the leftmost */
    uint32_t n_heap;
} pack_skyline;

ot_status pack_skyline_new(const ot_pack_problem *p, ot_arena *a, pack_skyline *out) OT_MUST_USE;
/* Pack: into the lowest valley goes the item of the largest key among those that lie inside it.
 * key: [p->n] positive; offsets: [p->n] written for items that take part. Returns the height.
 * Gaps and fixed items are not considered. */
int64_t pack_skyline_run(pack_skyline *s, const double *key, int64_t *offsets);

#endif
