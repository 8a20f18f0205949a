/* Random packing problems, and what a naive twin of a packer asks of them. */
#ifndef OT_PACK_RANDOM_H
#define OT_PACK_RANDOM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pack/improve_skyline.h"

#define ITEM(from, to, bytes)                                                              \
    {                                                                                      \
        .lower = from, .upper = to, .size = bytes, .alignment = 1, .fixed = -1, .hint = -1 \
    }
#define N_MAX    400
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* In loops over seeds. */
#define CHECK(seed, condition)                                                               \
    do {                                                                                     \
        if (!(condition)) fail_msg("seed %llu: %s", (unsigned long long)(seed), #condition); \
    } while (0)

static inline uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s * 0x2545f4914f6cdd1du >> 11;
}

static inline int64_t below(uint64_t *s, int64_t n)
{
    return (int64_t)(next_random(s) % (uint64_t)n);
}

enum { PLAIN = 0, GAPS = 1, ALIGNED = 2, FIXED = 4, HINTS = 8, EMPTY = 16, ALL = 31 };

typedef struct random_problem {
    ot_pack_item items[N_MAX];
    ot_span gaps[N_MAX][3];
    ot_pack_problem p;
} random_problem;

static inline void add_gaps(random_problem *r, uint32_t k, uint64_t *s)
{
    ot_pack_item *x = &r->items[k];
    int64_t at = x->lower;
    x->gaps = r->gaps[k];
    for (int64_t g = below(s, 4); g > 0 && at < x->upper; g--) {
        int64_t from = at + below(s, 3), to = from + 1 + below(s, 5);
        if (to > x->upper) break;
        r->gaps[k][x->n_gaps++] = (ot_span){from, to};
        at = to;
    }
}

/* Lifetimes of all lengths, so that some stay within a window of the map and some do not; few
 * different times, so that many agree. */
static inline void make_random(random_problem *r, uint64_t seed, uint32_t n, unsigned features)
{
    static int64_t offsets[N_MAX];
    int64_t height;
    uint64_t s = seed * 0x9e3779b97f4a7c15u + 1;
    int64_t times = 1 + below(&s, 3 * n), longest = 1 + below(&s, times),
            largest = 1 + below(&s, 200);
    memset(r, 0, sizeof *r);
    r->p = (ot_pack_problem){r->items, n};
    for (uint32_t k = 0; k < n; k++) {
        int64_t lower = below(&s, times) - 5,
                length = 1 + below(&s, below(&s, 8) ? longest / 8 + 1 : longest);
        r->items[k] = (ot_pack_item){lower, lower + length, 1 + below(&s, largest), 1, -1, -1, NULL,
                                     0};
        if ((features & EMPTY) && !below(&s, 8)) r->items[k].size = 0;
        if ((features & ALIGNED) && !below(&s, 2)) r->items[k].alignment = 1 + below(&s, 40);
        if ((features & GAPS) && !below(&s, 3)) add_gaps(r, k, &s);
    }
    if (features & FIXED) { /* where some packing has them: then they agree with each other */
        assert_int_equal(ot_pack_greedy(&r->p, NULL, offsets, &height), OT_OK);
        for (uint32_t k = 0; k < n; k++)
            if (!below(&s, 10)) r->items[k].fixed = offsets[k];
    }
    for (uint32_t k = 0; k < n && (features & HINTS); k++)
        if (!below(&s, 4))
            r->items[k].hint = below(&s, 10 * largest) / r->items[k].alignment *
                               r->items[k].alignment;
}

static inline int64_t up(int64_t x, int64_t align) { return (x + align - 1) / align * align; }

static random_problem problem;

#endif
