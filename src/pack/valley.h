/* Inside the valley search: state shared by valley.c (the search), valley_state.c (set-up,
 * placing, undoing), valley_choose.c (bounds and the choice of the place to branch on) and
 * valley_memo.c (failed states). */
#ifndef OT_PACK_VALLEY_H
#define OT_PACK_VALLEY_H

#include "pack_internal.h"

#define VALLEY_NO_LEVEL INT64_MAX

typedef struct valley_item {
    uint32_t first, last; /* hull of its sections, half-open */
    /* [n_sections] ascending; first..last-1 unless the lifetime has gaps */
    const uint32_t *sections;
    uint32_t n_sections;
    bool gappy;
    int64_t size, align, fixed, hint;
    uint64_t hash;
    uint32_t twin; /* the item before it that is equal in everything, or OT_NONE */
} valley_item;

typedef struct valley_undo {
    uint32_t section;
    int64_t floor;
} valley_undo;

typedef struct valley_memo valley_memo;

typedef struct valley {
    ot_arena *arena;
    uint32_t rules;
    int64_t capacity;
    int64_t unit; /* all sizes and alignments are multiples of it */
    uint32_t n, n_sections;
    bool gaps;          /* some item has gaps */
    valley_item *items; /* [n] ascending by first section */
    uint32_t *source;   /* [n] index in the problem */
    /* per item */
    bool *placed;
    int64_t *offset;
    int64_t *low; /* lowest place it can take, given the floors; set by valley_bound */
    bool *flat;   /* all its sections have one floor; set by valley_bound */
    double *key;  /* order among candidates; set by valley_candidates */
    /* per section */
    int64_t *floor;  /* everything below is taken or given up */
    int64_t *rest;   /* sizes of the items still to come */
    uint32_t *count; /* how many they are */
    uint64_t *rest_hash;
    /* scratch of valley_bound: end of the sections with the same floor */
    uint32_t *level_end;
    /* ... tables over ranges of 2^k sections, [levels][n_sections + 1] */
    int64_t *highs, *lows;
    uint32_t *options;             /* scratch of valley_choose: items that can rest on the floor */
    int64_t *top_left, *top_right; /* ... least top of the items that end or begin here */
    int64_t *right;                /* ... least top of the items that begin to the right */
    uint32_t *weight;              /* failures seen here; kept across restarts */
    /* stacks */
    valley_undo *trail;
    size_t n_trail, cap_trail;
    uint32_t *stack; /* placed items */
    uint32_t n_stack;
    uint32_t *pool; /* lists of the nodes on the path */
    size_t n_pool, cap_pool;
    valley_memo *memo; /* failed states; kept across restarts */
    /* effort */
    pack_budget *budget;
    int64_t run_limit, run_steps; /* of the current restart */
    bool out_of_budget;           /* the whole search is over */
    bool cut;                     /* the current restart is over */
    bool nomem;
    uint32_t key_kind; /* which order of candidates */
    double noise;
    uint64_t random; /* state of the generator */
} valley;

/* The place to branch on. */
typedef struct valley_branch {
    uint32_t section;
    int64_t waste; /* floor if no item sits here; VALLEY_NO_LEVEL: some item must */
} valley_branch;

/* valley_state.c */
/* nomem: OT_E_NOMEM */
ot_status valley_new(const ot_pack_problem *p, int64_t capacity, uint32_t rules,
                     valley **out) OT_MUST_USE;
/* nothing placed; memo and weights stay */
void valley_reset(valley *s);
bool valley_raise(valley *s, uint32_t section, int64_t to); /* false when memory ran out */
bool valley_put(valley *s, uint32_t item, int64_t offset);
void valley_undo_to(valley *s, size_t n_trail, uint32_t n_stack);
uint64_t valley_mix(uint64_t x);

/* valley_memo.c; list: as below. The state is the items of the list and the floors of the
 * sections that they cover; hash: of it. */
/* false when memory ran out */
bool valley_memo_make(valley *s);
uint64_t valley_memo_hash(const valley *s, uint32_t lo, uint32_t hi); /* never 0 */
/* Was this very state added? Equal hashes are not enough. */
bool valley_memo_has(const valley *s, uint64_t hash, const uint32_t *list, uint32_t n, uint32_t lo,
                     uint32_t hi);
/* Keep the state if there is room; when memory runs out, s->nomem and s->cut are set. */
void valley_memo_add(valley *s, uint64_t hash, const uint32_t *list, uint32_t n, uint32_t lo,
                     uint32_t hi);

/* valley_choose.c; list: the items to come of one component, in order, sections [lo, hi) */
/* false: nothing fits above here */
bool valley_bound(valley *s, const uint32_t *list, uint32_t n, uint32_t lo, uint32_t hi);
/* false: dead end */
bool valley_choose(valley *s, const uint32_t *list, uint32_t n, uint32_t lo, uint32_t hi,
                   valley_branch *out);
/* best first */
uint32_t valley_candidates(valley *s, const uint32_t *list, uint32_t n, uint32_t section,
                           uint32_t *out);

#endif
