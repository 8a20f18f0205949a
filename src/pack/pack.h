/* Stage pack/: static planning of one memory.
 *
 *   offset ^   +-----+  +--------+
 *          |   |  b  |  |   d    |        height = max(offset + size)
 *          | +-+-----+--+-+------+        lower bound = max over time of the live sizes
 *          | |     a      |   c  |
 *          +-+------------+------+---> time
 */
#ifndef OT_PACK_PACK_H
#define OT_PACK_PACK_H

#include "base/base.h"

typedef struct ot_span {
    int64_t lower, upper; /* half-open, lower < upper */
} ot_span;

typedef struct ot_pack_item {
    int64_t lower, upper; /* lifetime, half-open, lower < upper */
    int64_t size;         /* bytes, >= 0 */
    int64_t alignment;    /* >= 1 (no power of two needed) */
    int64_t fixed;        /* offset that is given; -1: free */
    int64_t hint;         /* preferred offset, tried first; -1: none */
    /* [n_gaps] disjoint, ascending, inside the lifetime: the buffer holds nothing then */
    const ot_span *gaps;
    uint32_t n_gaps;
} ot_pack_item;

typedef struct ot_pack_problem {
    const ot_pack_item *items; /* [n] */
    uint32_t n;
} ot_pack_problem;

/* Rules of the search; tests switch them off one by one (answers must not change, only the effort).
 */
typedef enum ot_pack_rule {
    /* a section whose floor plus the sizes still to come passes the capacity is a dead end */
    OT_PACK_SECTIONS = 1,
    /* floors rise to the lowest place that any item still to come can take */
    OT_PACK_RAISE = 2,
    OT_PACK_DOMINANCE = 4, /* height given up reaches to the next level at which an item can rest */
    OT_PACK_DECOMPOSE = 8, /* parts that no item to come connects are searched apart */
    /* next section: fewest options per failure seen there; off: lowest floor, leftmost */
    OT_PACK_DYNAMIC = 16,
    OT_PACK_SYMMETRY = 32, /* equal items in one order only */
    OT_PACK_MEMO = 64,     /* states that failed are remembered */
    OT_PACK_RULES_ALL = 127,
    OT_PACK_COLLIDE =
        128 /* not a rule: hashes of remembered states take four values only, for tests */
} ot_pack_rule;

typedef struct ot_pack_options {
    int64_t capacity;   /* > 0: any packing of at most this height; 0: the lowest */
    double time_limit;  /* seconds; 0: none */
    int64_t step_limit; /* search steps (deterministic); 0: a default that ends within seconds */
    uint32_t threads;   /* 0 or 1: one; the result is the same for any number unless time ran out */
    uint32_t rules;     /* OT_PACK_RULES_ALL */
} ot_pack_options;

typedef struct ot_pack_result {
    int64_t height;      /* of offsets */
    int64_t lower_bound; /* largest sum of live sizes, fixed offsets and alignment considered */
    bool found;          /* capacity 0: always; else height <= capacity */
    bool proved;         /* height is the least possible; or, when !found, that nothing fits */
    bool timed_out;      /* time_limit ended the search: another run may find another result */
    int64_t steps;       /* search steps taken */
    double seconds;
} ot_pack_result;

/* Place all items. offsets: [n] out; when !found they hold the best packing (height > capacity).
 * Deterministic unless timed_out. Fails: OT_E_INPUT when an item breaks the rules above, its
 * number named; OT_E_NOMEM. */
ot_status ot_pack(const ot_pack_problem *p, const ot_pack_options *o, ot_diag *d, int64_t *offsets,
                  ot_pack_result *r) OT_MUST_USE;

/* *bound: largest sum of sizes alive at one time (gaps excluded), at least the largest fixed
 * end; -1 on overflow. Fails: OT_E_NOMEM. */
ot_status ot_pack_find_bound(const ot_pack_problem *p, int64_t *bound) OT_MUST_USE;
/* The same; -1 also when memory runs out. */
int64_t ot_pack_lower_bound(const ot_pack_problem *p);
/* Do the lifetimes, less their gaps, meet? */
bool ot_pack_meet(const ot_pack_item *a, const ot_pack_item *b);

/* Best-fit: items in the given order (NULL: by size, then lifetime; the "greedy by size" of the
 * literature), each at the lowest offset that is free for its whole lifetime. offsets: [n]. O(n
 * * neighbours). */
ot_status ot_pack_greedy(const ot_pack_problem *p, const uint32_t *order, int64_t *offsets,
                         int64_t *height) OT_MUST_USE;

/* The validator: O(n log n), and what is alive is moved in memory; shares no code with the
 * planners. capacity 0: not checked. Fails with OT_E_INPUT and a reason of its own for each rule:
 * negative offset, alignment, fixed offset moved, above capacity, overlap (both items named).
 * names: [n] or NULL. Fails with OT_E_NOMEM, too. */
ot_status ot_pack_check(const ot_pack_problem *p, const int64_t *offsets, int64_t capacity,
                        const char *const *names, ot_diag *d) OT_MUST_USE;

/* ---- price.c: what it costs that two items share bytes ---- */

typedef struct ot_pack_pair {
    uint32_t first, second; /* different items */
    int64_t weight;         /* >= 0; all of a problem together at most OT_PACK_WEIGHT_MAX */
} ot_pack_pair;
#define OT_PACK_WEIGHT_MAX ((int64_t)1 << 39) /* in 12 digits */

typedef struct ot_pack_price {
    int64_t sum;         /* weights of the pairs that share bytes */
    int64_t lower_bound; /* no packing within the capacity has less */
    bool proved;         /* sum is the least possible within the capacity */
    bool timed_out;      /* time_limit ended the search */
    int64_t steps;       /* moves and search steps taken */
} ot_pack_price;

/* Sum of the weights of pairs that share bytes at these offsets. */
int64_t ot_pack_price_of(const ot_pack_problem *p, const ot_pack_pair *pairs, size_t n_pairs,
                         const int64_t *offsets);
/* From a packing whose height is at most o->capacity (> 0), one that is no taller than that and
 * whose sum is less, as low as the effort allows. The same effort, the same answer, unless it
 * timed out. Fails: OT_E_NOMEM. */
ot_status ot_pack_price_reuse(const ot_pack_problem *p, const ot_pack_pair *pairs, size_t n_pairs,
                              const ot_pack_options *o, int64_t *offsets,
                              ot_pack_price *r) OT_MUST_USE;

/* ---- pack_pairs.c: first,second[,weight] ---- */

struct ot_pack_file;
/* The pairs of a file for a table that was read: CSV with a header, or JSON: a list of objects
 * with `first`, `second` and `weight` (1 where there is none), or an object whose `pairs` is one.
 * They replace those that the table has. */
ot_status ot_pack_read_pairs(struct ot_pack_file *f, const char *path, const char *text, size_t n,
                             ot_diag *d) OT_MUST_USE;

/* ---- pack_csv.c: id,lower,upper,size[,alignment][,gaps][,hint][,offset] as minimalloc reads it
 * ---- */

typedef struct ot_pack_file {
    ot_arena *arena; /* owns everything, itself included */
    ot_pack_problem problem;
    const char **names; /* [n] */
    void *table;        /* the cells as read, for writing back */
    /* gaps that keep a part of the buffer: planned as if it kept all, so a proof is none */
    uint32_t n_windows;
    const ot_pack_pair *pairs; /* [n_pairs] of what shares bytes at a price */
    size_t n_pairs;
} ot_pack_file;
ot_status ot_pack_read_csv(const char *path, const char *text, size_t n, ot_diag *d,
                           ot_pack_file **out) OT_MUST_USE;
/* The columns as read, `offset` filled in or added. */
ot_status ot_pack_write_csv(const ot_pack_file *f, const int64_t *offsets, FILE *out) OT_MUST_USE;
void ot_pack_file_free(ot_pack_file *f); /* accepts NULL */

#endif
