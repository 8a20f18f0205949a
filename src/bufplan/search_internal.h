/* Inside the exact search: state shared by search.c (the tree and its restarts), search_setup.c, search_state.c (placing, bounds),
 * search_choose.c (where to branch, in which order) and search_learn.c (conflicts and what is remembered of them).
 *
 * Lengths are in units (search.unit); a box is an item, a section one of the moments at which the most items are alive.
 */
#ifndef OT_SEARCH_INTERNAL_H
#define OT_SEARCH_INTERNAL_H

#include "pack_internal.h"

/* What the inner loops read of a box. */
typedef struct search_box {
    uint32_t first, last;   /* hull of its sections, half-open */
    uint32_t twin;          /* the box before it that is equal in everything, or OT_NONE */
    bool placed;
    bool gappy;             /* its sections are not all of the hull */
    bool special;           /* low is more than the highest floor: alignment, fixed boxes in the way, a limit of its own */
} search_box;

/* The rest of it. */
typedef struct search_shape {
    uint32_t item;             /* index in the problem */
    const uint32_t *sections;  /* [n_sections] ascending */
    uint32_t n_sections;
    int64_t align, fixed, hint; /* fixed, hint: -1: none */
    int64_t highest;           /* largest offset within the capacity */
    int64_t real_size;         /* bytes */
    const ot_span *taken;      /* [n_taken] ascending, disjoint: offsets that fixed boxes hold, which it meets */
    uint32_t n_taken;
    uint64_t hash;             /* Zobrist */
} search_shape;

typedef struct search_section {
    int64_t rest;        /* sizes of the boxes to come */
    uint64_t set;        /* xor of their hashes */
    uint64_t salt;
    uint32_t *list;      /* boxes that live here; [start, end) are to come, ascending by low */
    uint32_t start, end;
    uint32_t crossing;   /* boxes to come that live here and in the next section, hulls taken */
    uint32_t weight;     /* 1 + failures seen here */
} search_section;

/* A value to put back. */
typedef struct search_undo {
    int64_t *where, old;
} search_undo;

/* One thing done: a box placed, or height given up (box OT_NONE). */
typedef struct search_step {
    uint32_t box;
    size_t trail, saved; /* lengths before it */
} search_step;

/* A node of the tree: which box rests on the floor of `section`, among the sections [from, to)? */
typedef struct search_node {
    uint32_t from, to;
    uint32_t parent;     /* node whose branch it belongs to, or OT_NONE */
    uint32_t todo;       /* parts that wait for this one to succeed: index into waiting, or OT_NONE */
    uint32_t section;
    uint32_t next;       /* candidate to try; n_candidates: giving up height */
    uint32_t candidates, n_candidates; /* in search.candidates */
    uint32_t steps;      /* done before its branches */
    uint32_t waiting;    /* in the list before its branches */
    int64_t level;       /* the floor */
    int64_t gives_up;    /* floor if no box rests here; -1: some must */
    int64_t next_level;  /* no box starts between level and this one; level: nothing is claimed */
    uint64_t hash, hash2;
} search_node;

/* A part of the boxes to come that shares no section with the others. */
typedef struct search_part {
    uint32_t from, to, parent, todo; /* as in search_node */
} search_part;

/* "No packing exists whatever lies elsewhere", about the sections pool[at..at + n): their boxes to come, and floors at least these. */
typedef struct search_nogood {
    uint64_t key;        /* of the sets of boxes to come */
    uint64_t set;        /* ... of the section it is filed under */
    uint64_t at;         /* position in the ring, never wrapped */
    uint32_t n;
} search_nogood;

typedef struct search {
    ot_arena *arena;
    uint32_t rules;
    bool jumps;              /* conflicts are told as sets of sections; else every failure blames all */
    int64_t unit, capacity;
    uint32_t n, n_sections;
    int64_t *low;            /* [n] lowest offset that floors, alignment and fixed boxes leave a box; while it is not placed */
    int64_t *size;           /* [n] rounded up to the common alignment */
    search_box *box;         /* [n] */
    search_shape *shape;     /* [n] */
    search_section *section; /* [n_sections + 1]; the last holds nothing */
    int64_t *floor;          /* [n_sections + 1] no box to come lies lower: raw, or raised to the lowest of their low */
    int64_t *raw;            /* [n_sections + 1] top of the last box placed here, or of height given up */
    bool plain;              /* no box is special */
    /* what was done, and how to undo it */
    search_undo *trail;
    size_t n_trail, cap_trail;
    uint32_t *saved;         /* old stretches of lists: the boxes, their first index, their number, the section */
    size_t n_saved, cap_saved;
    search_step *steps;
    size_t n_steps, cap_steps;
    int64_t *offset;         /* [n] of the placed */
    uint32_t from, to;       /* sections that the step under way has touched */
    int64_t least;           /* ... and the least low that it has raised */
    uint32_t misplaced;      /* box whose low has passed its highest, or OT_NONE */
    /* the tree */
    search_node *nodes;
    size_t n_nodes, cap_nodes;
    uint32_t *candidates;
    size_t n_candidates, cap_candidates;
    search_part *waiting;
    size_t n_waiting, cap_waiting;
    search_part part;        /* the next one to enter */
    uint32_t failed;         /* node whose branch has failed, or OT_NONE */
    /* choosing */
    uint32_t *run_first, *run_last; /* [n_sections] scratch: sections around with the same floor */
    uint64_t *key;           /* [n] order of the candidates in this restart, before noise */
    uint64_t *rank;          /* [n] scratch: keys of the candidates of a node */
    int64_t *phase;          /* [n] offset in the best partial packing of the last restart; -1: none */
    uint32_t best_placed, n_placed;
    bool keep_phase;
    uint32_t noise;          /* parts of 1024 */
    uint64_t random;
    /* learning; sets of sections are [words] */
    size_t words;
    uint64_t *conflict;      /* the sections to blame for the last failure */
    uint64_t *blame;         /* of the open nodes, [n_nodes][words] */
    size_t cap_blame;
    uint64_t *memo;          /* [memo_mask + 1] entries of hash, hash2, set */
    size_t memo_mask;
    search_nogood *nogoods;  /* [n_sections][per section] rings */
    uint32_t *nogood_next;   /* [n_sections] */
    uint32_t *pool_section;  /* [pool_mask + 1] */
    int64_t *pool_floor;
    uint64_t pool_at, pool_mask;
    /* effort */
    pack_budget *budget;
    int64_t work;            /* list entries looked at since the last step was counted */
    int64_t nodes_left;      /* of this restart */
    bool stopped;            /* the budget is used up */
    bool nomem;
} search;

/* search_setup.c; a NULL *out with PACK_NONE in *answer: no packing, at once */
ot_status search_new(const ot_pack_problem *p, int64_t capacity, uint32_t rules, pack_budget *b, search **out, pack_answer *answer);

/* search_state.c */
int64_t search_lowest(const search *s, uint32_t box, int64_t from); /* lowest offset >= from that suits the box */
bool search_lives(const search *s, uint32_t box, uint32_t section);
bool search_begin(search *s);                              /* before the first step; false: there is no packing */
bool search_place(search *s, uint32_t box);                /* at its low; false: conflict is set */
bool search_give_up(search *s, uint32_t section, int64_t floor);
void search_undo_to(search *s, size_t n_steps);

/* search_choose.c */
void search_choose(search *s, search_node *node);          /* fills section .. next_level; pushes candidates */
void search_set_order(search *s, uint32_t kind);           /* of candidates, until the next call */
uint64_t search_random(search *s);
uint64_t search_mix(uint64_t x);

/* search_learn.c */
static inline bool search_has(const uint64_t *set, uint32_t section)
{
    return set[section >> 6] >> (section & 63) & 1;
}
bool search_learn_init(search *s);                         /* false: no memory */
void search_blame_all(search *s);
void search_blame_section(search *s, uint32_t section);    /* its boxes do not fit any more */
void search_blame_box(search *s, uint32_t box);            /* it is above its highest offset */
bool search_blame_node(search *s, uint32_t node);          /* new node: empty set. false: no memory */
bool search_failed_before(search *s, search_node *node);   /* before choosing: by memo; sets conflict, or the node's hashes */
bool search_failed_alike(search *s, const search_node *node); /* after choosing: by nogood */
bool search_branch_failed(search *s, uint32_t node, uint32_t box); /* box or OT_NONE; true: the node has failed with it */
void search_node_failed(search *s, uint32_t node);         /* all branches have: set conflict, remember */

#endif
