/* Greedy packing, the lower bound and the heuristics: exact offsets of small problems, naive
 * twins on random ones. */
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

/* ---- exact offsets ---- */

static void check_greedy(const ot_pack_item *items, uint32_t n, const uint32_t *order,
                         const int64_t *want)
{
    int64_t offsets[16], height, most = 0;
    ot_pack_problem p = {items, n};
    assert_int_equal(ot_pack_greedy(&p, order, offsets, &height), OT_OK);
    for (uint32_t k = 0; k < n; k++) {
        if (offsets[k] != want[k])
            fail_msg("item %u at %lld, expected %lld", k, (long long)offsets[k],
                     (long long)want[k]);
        most = ot_max(most, offsets[k] + items[k].size);
    }
    assert_int_equal(height, most);
}

#define GREEDY(order, ...) check_greedy(items, COUNT(items), order, (const int64_t[]){__VA_ARGS__})
#define ORDER(...)         ((const uint32_t[]){__VA_ARGS__})

static void given_order_takes_the_lowest_hole(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 2, 10), ITEM(0, 4, 10), ITEM(0, 2, 10),
                            ITEM(2, 4, 4),  ITEM(2, 4, 5),  ITEM(0, 9, 1)};
    GREEDY(ORDER(0, 1, 2, 3, 4, 5), 0, 10, 20, 0, 4, 30);
    GREEDY(ORDER(5, 4, 3, 2, 1, 0), 21, 11, 1, 6, 1, 0);
}

/* Holes of 6 (at 0) and 4 (at 10) for an item of 4: the tighter one, though it is higher. */
static void by_size_takes_the_tightest_hole(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 4), ITEM(0, 9, 4), ITEM(0, 9, 9), ITEM(9, 10, 99)};
    items[1].fixed = 6;
    items[2].fixed = 14;
    GREEDY(NULL, 10, 6, 14, 0);
    GREEDY(ORDER(0, 1, 2, 3), 0, 6, 14, 0);
    items[0].size = 7; /* fits in none: on top */
    GREEDY(NULL, 23, 6, 14, 0);
}

static void by_size_then_length_then_number(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 5), ITEM(0, 5, 5), ITEM(0, 4, 7), ITEM(0, 4, 5)};
    GREEDY(NULL, 12, 7, 0, 17);
}

static void alignment_costs_bytes(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(0, 4, 7), ITEM(0, 4, 5), ITEM(0, 4, 6)};
    items[1].alignment = 16;
    items[2].alignment = 12; /* no power of two */
    GREEDY(ORDER(0, 1, 2, 3), 0, 16, 24, 10);
    items[3].alignment = 8; /* 10..16 would hold 6 bytes, but 16 is the next multiple */
    GREEDY(ORDER(0, 1, 2, 3), 0, 16, 24, 32);
    GREEDY(NULL, 0, 16, 36, 24); /* by size: 0, 1, 3, 2 */
}

static void fixed_come_first(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(0, 4, 3), ITEM(4, 8, 10)};
    items[1].fixed = 5;
    GREEDY(ORDER(0, 1, 2), 8, 5, 0);
    items[1].fixed = 10;
    GREEDY(ORDER(0, 1, 2), 0, 10, 0);
}

static void hints_are_tried_first(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(0, 4, 10), ITEM(0, 4, 10)};
    items[0].hint = 20;
    items[1].hint = 25; /* taken */
    items[2].hint = 0;
    GREEDY(ORDER(0, 1, 2), 20, 0, 10);
    items[2].hint = 35;
    items[2].alignment = 2; /* no hint that holds */
    GREEDY(ORDER(0, 1, 2), 20, 0, 10);
    items[2].hint = 30;
    GREEDY(ORDER(0, 1, 2), 20, 0, 30);
}

static void gaps_are_free(void **state)
{
    (void)state;
    const ot_span gap[] = {{2, 4}};
    ot_pack_item items[] = {ITEM(0, 6, 10), ITEM(2, 4, 10), ITEM(1, 4, 10), ITEM(2, 5, 10)};
    items[0].gaps = gap;
    items[0].n_gaps = 1;
    GREEDY(ORDER(0, 1, 2, 3), 0, 0, 10, 20);
}

static void empty_items(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 0), ITEM(0, 4, 10), ITEM(0, 4, 0), ITEM(0, 4, 0)};
    items[2].fixed = 5;
    items[3].hint = 3;
    GREEDY(NULL, 0, 0, 5, 3);
    check_greedy(NULL, 0, NULL, NULL);
}

static void too_large_sums(void **state)
{
    (void)state;
    int64_t offsets[2], height;
    ot_pack_item items[] = {ITEM(0, 4, INT64_MAX / 2), ITEM(0, 4, INT64_MAX / 2 + 2)};
    ot_pack_problem p = {items, 2};
    assert_int_equal(ot_pack_greedy(&p, NULL, offsets, &height), OT_E_INPUT);
    assert_int_equal(ot_pack_lower_bound(&p), -1);
    items[1].lower = 4;
    items[1].upper = 5;
    assert_int_equal(ot_pack_lower_bound(&p), INT64_MAX / 2 + 2);
    items[1].fixed = INT64_MAX / 2;
    assert_int_equal(ot_pack_lower_bound(&p), -1);
}

/* ---- random problems ---- */

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s * 0x2545f4914f6cdd1du >> 11;
}

static int64_t below(uint64_t *s, int64_t n) { return (int64_t)(next_random(s) % (uint64_t)n); }

enum { PLAIN = 0, GAPS = 1, ALIGNED = 2, FIXED = 4, HINTS = 8, EMPTY = 16, ALL = 31 };

typedef struct random_problem {
    ot_pack_item items[N_MAX];
    ot_span gaps[N_MAX][3];
    ot_pack_problem p;
} random_problem;

static void add_gaps(random_problem *r, uint32_t k, uint64_t *s)
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
static void make_random(random_problem *r, uint64_t seed, uint32_t n, unsigned features)
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

static bool alive(const ot_pack_item *x, int64_t t)
{
    for (uint32_t g = 0; g < x->n_gaps; g++)
        if (t >= x->gaps[g].lower && t < x->gaps[g].upper) return false;
    return t >= x->lower && t < x->upper;
}

/* Some time at which both live, looked for one by one. */
static bool meet_naive(const ot_pack_item *x, const ot_pack_item *y)
{
    for (int64_t t = ot_max(x->lower, y->lower); t < ot_min(x->upper, y->upper); t++)
        if (alive(x, t) && alive(y, t)) return true;
    return false;
}

static bool meets[N_MAX][N_MAX]; /* of the problem at hand */

static void find_meets(const ot_pack_problem *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j <= i; j++)
            meets[i][j] = meets[j][i] = meet_naive(&p->items[i], &p->items[j]);
}

/* Is [at, at + size) of item k free of those placed (offset >= 0)? */
static bool free_naive(const ot_pack_problem *p, const int64_t *offsets, uint32_t k, int64_t at)
{
    const ot_pack_item *x = &p->items[k];
    for (uint32_t j = 0; j < p->n; j++) {
        const ot_pack_item *y = &p->items[j];
        if (j != k && offsets[j] >= 0 && x->size > 0 && y->size > 0 && at < offsets[j] + y->size &&
            offsets[j] < at + x->size && meets[k][j])
            return false;
    }
    return true;
}

static int64_t up(int64_t x, int64_t align) { return (x + align - 1) / align * align; }

/* The free offsets above 0 and above each end; best fit by what is left over up to the next block.
 */
static int64_t place_naive(const ot_pack_problem *p, const int64_t *offsets, uint32_t k,
                           bool best_fit)
{
    const ot_pack_item *x = &p->items[k];
    int64_t at = INT64_MAX, left = INT64_MAX;
    if (x->hint >= 0 && x->hint % x->alignment == 0 && free_naive(p, offsets, k, x->hint))
        return x->hint;
    for (uint32_t j = 0; j <= p->n; j++) {
        int64_t c = 0, room = INT64_MAX;
        if (j < p->n) {
            if (offsets[j] < 0 || p->items[j].size == 0 || !meets[k][j]) continue;
            c = up(offsets[j] + p->items[j].size, x->alignment);
        }
        if (!free_naive(p, offsets, k, c)) continue;
        for (uint32_t i = 0; i < p->n && best_fit && x->size > 0; i++)
            if (offsets[i] >= c && p->items[i].size > 0 && meets[k][i])
                room = ot_min(room, offsets[i] - c);
        if (!best_fit || x->size == 0) room = 0;
        if (room < left || (room == left && c < at)) {
            at = c;
            left = room;
        }
    }
    return at;
}

static void greedy_naive(const ot_pack_problem *p, const uint32_t *order, bool best_fit,
                         int64_t *offsets)
{
    for (uint32_t k = 0; k < p->n; k++) offsets[k] = p->items[k].fixed;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->items[order[k]].fixed < 0)
            offsets[order[k]] = place_naive(p, offsets, order[k], best_fit);
}

/* Numbers 0..n-1 by size, then length, by selection. */
static void order_naive(const ot_pack_problem *p, uint32_t *order)
{
    for (uint32_t k = 0; k < p->n; k++) order[k] = k;
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t j = k + 1; j < p->n; j++) {
            const ot_pack_item *x = &p->items[order[k]], *y = &p->items[order[j]];
            int64_t lx = x->upper - x->lower, ly = y->upper - y->lower;
            if (y->size < x->size ||
                (y->size == x->size && (ly < lx || (ly == lx && order[j] > order[k]))))
                continue;
            uint32_t swap = order[k];
            order[k] = order[j];
            order[j] = swap;
        }
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t seed)
{
    uint64_t s = seed + 99;
    for (uint32_t k = 0; k < n; k++) order[k] = k;
    for (uint32_t k = n; k > 1; k--) {
        uint32_t j = (uint32_t)below(&s, k), swap = order[k - 1];
        order[k - 1] = order[j];
        order[j] = swap;
    }
}

static random_problem problem;

static void greedy_equals_its_naive_twin(void **state)
{
    (void)state;
    static int64_t got[N_MAX], want[N_MAX];
    static uint32_t order[N_MAX];
    int64_t height;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        uint32_t n = seed % 10 ? (uint32_t)(1 + seed % 60) : N_MAX;
        make_random(&problem, seed, n, seed % 4 ? (unsigned)(seed / 2 % 32) : PLAIN);
        find_meets(&problem.p);
        for (int by_size = 0; by_size < 2; by_size++) {
            if (by_size)
                order_naive(&problem.p, order);
            else
                shuffle(order, n, seed);
            greedy_naive(&problem.p, order, by_size, want);
            assert_int_equal(ot_pack_greedy(&problem.p, by_size ? NULL : order, got, &height),
                             OT_OK);
            for (uint32_t k = 0; k < n; k++)
                if (got[k] != want[k])
                    fail_msg("seed %llu, by size %d: item %u at %lld, expected %lld",
                             (unsigned long long)seed, by_size, k, (long long)got[k],
                             (long long)want[k]);
        }
    }
}

/* Each item that is left, in the order by size, above all that it meets in time. */
static void stack_naive(const ot_pack_problem *p, const uint32_t *order, int64_t *offsets)
{
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = order[k];
        const ot_pack_item *x = &p->items[i];
        int64_t top = 0;
        if (offsets[i] >= 0) continue;
        for (uint32_t j = 0; j < p->n; j++) {
            const ot_pack_item *y = &p->items[j];
            if (offsets[j] >= 0 && x->lower < y->upper && y->lower < x->upper)
                top = ot_max(top, offsets[j] + y->size);
        }
        offsets[i] = (top + x->alignment - 1) / x->alignment * x->alignment;
    }
}

/* When its budget is spent, the items so far lie as ever, and the others on top. */
static void greedy_ends_with_its_budget(void **state)
{
    (void)state;
    static int64_t got[N_MAX], whole[N_MAX], want[N_MAX];
    static uint32_t order[N_MAX];
    for (uint64_t seed = 1; seed <= 120; seed++) {
        const uint32_t n = seed % 10 ? (uint32_t)(2 + seed % 60) : N_MAX;
        const uint32_t steps = 1 + (uint32_t)seed * 7 % n;
        pack_budget b = {.step_limit = steps};
        int64_t height, most = 0;
        ot_diag d = {0};
        make_random(&problem, seed, n, seed % 4 ? (unsigned)(seed / 2 % 32) : PLAIN);
        order_naive(&problem.p, order);
        assert_int_equal(ot_pack_greedy(&problem.p, NULL, whole, &height), OT_OK);
        assert_int_equal(pack_greedy(&problem.p, NULL, &b, got, &height), OT_OK);
        uint32_t placed = 0;
        for (uint32_t k = 0; k < n; k++) want[k] = problem.items[k].fixed;
        for (uint32_t k = 0; k < n && placed < steps; k++) {
            if (problem.items[order[k]].fixed >= 0) continue;
            want[order[k]] = whole[order[k]];
            placed++;
        }
        if (placed == steps) stack_naive(&problem.p, order, want);
        for (uint32_t k = 0; k < n; k++) {
            CHECK(seed, got[k] == want[k]);
            most = ot_max(most, got[k] + problem.items[k].size);
        }
        CHECK(seed, height == most);
        CHECK(seed, ot_pack_check(&problem.p, got, 0, NULL, &d) == OT_OK);
    }
}

/* ---- bound ---- */

static void meet_equals_its_naive_twin(void **state)
{
    (void)state;
    int met = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        make_random(&problem, seed, 40, GAPS);
        for (uint32_t i = 0; i < 40; i++)
            for (uint32_t j = 0; j < 40; j++) {
                const ot_pack_item *x = &problem.items[i], *y = &problem.items[j];
                if (ot_pack_meet(x, y) != meet_naive(x, y))
                    fail_msg("seed %llu: items %u and %u", (unsigned long long)seed, i, j);
                met += i != j && ot_pack_meet(x, y) && (x->n_gaps || y->n_gaps);
            }
    }
    assert_in_range(met, 1000, 40000);
}

static int64_t bound_naive(const ot_pack_problem *p, int64_t from, int64_t to)
{
    int64_t most = 0, g = 0;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->items[k].size > 0) g = ot_gcd(p->items[k].alignment, g);
    for (int64_t t = from; t <= to; t++) {
        int64_t live = 0, saved = 0;
        for (uint32_t k = 0; k < p->n; k++) {
            const ot_pack_item *x = &p->items[k];
            if (x->size == 0 || !alive(x, t)) continue;
            live += up(x->size, g);
            saved = ot_max(saved, up(x->size, g) - x->size);
        }
        most = ot_max(most, live - saved);
    }
    for (uint32_t k = 0; k < p->n; k++)
        if (p->items[k].fixed >= 0) most = ot_max(most, p->items[k].fixed + p->items[k].size);
    return most;
}

static void bound_equals_its_naive_twin(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint32_t n = (uint32_t)(seed % 50);
        make_random(&problem, seed, n + 1, (unsigned)(seed % 32));
        problem.p.n = n;
        if (seed % 3 == 0) /* a common factor of all alignments */
            for (uint32_t k = 0; k < n; k++) problem.items[k].alignment *= 8;
        int64_t got = ot_pack_lower_bound(&problem.p), want = bound_naive(&problem.p, -10, 400);
        if (got != want)
            fail_msg("seed %llu: %lld, expected %lld", (unsigned long long)seed, (long long)got,
                     (long long)want);
    }
}

static void bound_of_aligned_items(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(0, 4, 33), ITEM(3, 9, 20)};
    ot_pack_problem p = {items, 3};
    assert_int_equal(ot_pack_lower_bound(&p), 63);
    for (int k = 0; k < 3; k++) items[k].alignment = 16;
    assert_int_equal(ot_pack_lower_bound(&p), 16 + 33 + 32); /* 33 on top saves 15 */
    items[2].fixed = 96;
    assert_int_equal(ot_pack_lower_bound(&p), 116);
    p.n = 0;
    assert_int_equal(ot_pack_lower_bound(&p), 0);
}

/* ---- skyline ---- */

/* Lowest floor over time, the leftmost; the item of the largest key inside the valley; else the
 * floor rises to a wall. */
static int64_t skyline_naive(const ot_pack_problem *p, const double *key, int64_t from, int64_t to,
                             int64_t *offsets)
{
    static int64_t floor[1000];
    int64_t n = to - from, height = 0;
    assert_in_range(n, 1, (int64_t)COUNT(floor) - 1);
    for (int64_t t = 0; t <= n; t++) floor[t] = 0;
    for (uint32_t k = 0; k < p->n; k++) offsets[k] = -1;
    for (uint32_t left = p->n; left > 0;) {
        int64_t l = 0, r;
        uint32_t best = OT_NONE;
        for (int64_t t = 1; t < n; t++)
            if (floor[t] < floor[l]) l = t;
        for (r = l; r < n && floor[r] == floor[l];) r++;
        for (uint32_t k = 0; k < p->n; k++)
            if (offsets[k] < 0 && p->items[k].lower - from >= l && p->items[k].upper - from <= r &&
                (best == OT_NONE || key[k] > key[best]))
                best = k;
        if (best == OT_NONE) {
            int64_t wall = ot_min(l > 0 ? floor[l - 1] : INT64_MAX, r < n ? floor[r] : INT64_MAX);
            for (int64_t t = l; t < r; t++) floor[t] = wall;
            continue;
        }
        offsets[best] = up(floor[l], p->items[best].alignment);
        for (int64_t t = p->items[best].lower - from; t < p->items[best].upper - from; t++)
            floor[t] = offsets[best] + p->items[best].size;
        height = ot_max(height, offsets[best] + p->items[best].size);
        left--;
    }
    return height;
}

static void skyline_equals_its_naive_twin(void **state)
{
    (void)state;
    static int64_t got[N_MAX], want[N_MAX];
    static double key[N_MAX];
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint32_t n = (uint32_t)(1 + seed * 3 % 250);
        uint64_t s = seed;
        ot_arena *a = ot_arena_new();
        pack_skyline sky;
        make_random(&problem, seed, n, seed % 2 ? ALIGNED : PLAIN);
        /* every moment counts, so that sections are moments: nothing is left out at the ends */
        for (uint32_t k = 0; k < n; k++) {
            problem.items[k].lower = ot_max(0, problem.items[k].lower) % 300;
            problem.items[k].upper = problem.items[k].lower + 1 + below(&s, 30);
        }
        for (uint32_t k = 0; k < n; k++) key[k] = 1 + (double)((k * 7919u) % 4001u);
        assert_int_equal(pack_skyline_new(&problem.p, a, &sky), OT_OK);
        for (int again = 0; again < 2; again++) {
            int64_t height = pack_skyline_run(&sky, key, got),
                    height_naive = skyline_naive(&problem.p, key, 0, 331, want);
            for (uint32_t k = 0; k < n; k++)
                if (got[k] != want[k])
                    fail_msg("seed %llu: item %u at %lld, expected %lld", (unsigned long long)seed,
                             k, (long long)got[k], (long long)want[k]);
            CHECK(seed, height == height_naive);
        }
        ot_arena_free(a);
    }
}

/* ---- improve ---- */

typedef struct outcome {
    int64_t offsets[N_MAX], height, start, steps;
} outcome;

/* From plain greedy; what comes out is checked. */
static void improve(const ot_pack_problem *p, int64_t goal, uint64_t seed, int64_t step_limit,
                    outcome *out)
{
    ot_diag d = {0};
    pack_budget b = {.step_limit = step_limit};
    int64_t most = 0;
    assert_int_equal(ot_pack_greedy(p, NULL, out->offsets, &out->height), OT_OK);
    out->start = out->height;
    assert_int_equal(pack_improve(p, goal, seed, &b, out->offsets, &out->height), OT_OK);
    assert_false(b.timed_out);
    out->steps = b.steps;
    if (ot_pack_check(p, out->offsets, 0, NULL, &d) != OT_OK) fail_msg("%s", d.message);
    for (uint32_t k = 0; k < p->n; k++) most = ot_max(most, out->offsets[k] + p->items[k].size);
    assert_int_equal(out->height, most);
    assert_true(out->height <= out->start);
}

static void improve_is_valid_and_repeats(void **state)
{
    (void)state;
    static outcome a, b;
    int better = 0, other = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint32_t n = (uint32_t)(seed * 7 % 200);
        make_random(&problem, seed, n + 1, seed % 3 ? (unsigned)(seed % 32) : PLAIN);
        problem.p.n = n;
        int64_t bound = ot_pack_lower_bound(&problem.p);
        improve(&problem.p, bound, seed, 20000, &a);
        improve(&problem.p, bound, seed, 20000, &b);
        CHECK(seed, a.height >= bound);
        CHECK(seed, a.height == b.height);
        CHECK(seed, a.steps == b.steps);
        CHECK(seed, n == 0 || memcmp(a.offsets, b.offsets, n * sizeof *a.offsets) == 0);
        CHECK(seed, a.steps <= 20000 + 5 * (int64_t)n + 200); /* one packing more at the most */
        improve(&problem.p, bound, seed + 1, 20000, &b);
        other += n && memcmp(a.offsets, b.offsets, n * sizeof *a.offsets) != 0;
        better += a.height < a.start;
    }
    assert_in_range(better, 20, 60);
    assert_in_range(other, 5, 60); /* the seed matters */
}

static void improve_stops_at_the_goal(void **state)
{
    (void)state;
    static outcome a;
    int lower = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_random(&problem, seed, 150, PLAIN);
        int64_t bound = ot_pack_lower_bound(&problem.p);
        improve(&problem.p, INT64_MAX, 1, 0, &a); /* no limit: it would not end otherwise */
        CHECK(seed, a.height == a.start);
        CHECK(seed, a.steps == 0);
        if (a.start == bound) continue;
        int64_t goal = (a.start + bound) / 2;
        improve(&problem.p, goal, 1, 3000000, &a);
        if (a.height > goal) continue;
        lower++;
        CHECK(seed, a.steps < 3000000);
        CHECK(seed, a.height >= bound && a.height <= goal);
        int64_t steps = a.steps;
        improve(&problem.p, goal, 1, steps, &a); /* a limit just as large is no limit */
        CHECK(seed, a.steps == steps);
        CHECK(seed, a.height >= bound && a.height <= goal);
    }
    assert_in_range(lower, 5, 20);
}

/* With every item fixed, or none, there is nothing to search and no limit needed. */
static void improve_of_fixed_items_ends(void **state)
{
    (void)state;
    static outcome a;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(4, 8, 0), ITEM(0, 2, 1)};
    ot_pack_problem p = {items, 2};
    items[0].fixed = 90;
    items[1].hint = 1000;
    improve(&p, 10, 1, 0, &a);
    assert_int_equal(a.height, 100);
    assert_int_equal(a.offsets[1], 0); /* an item without bytes is not what makes it high */
    p.n = 3;
    items[2].hint = 300;
    improve(&p, 10, 1, 0, &a);
    assert_int_equal(a.height, 100);
    p.n = 0;
    improve(&p, 0, 1, 0, &a);
    assert_int_equal(a.height, 0);
}

static ot_pack_item *pieces;
static uint32_t n_pieces;

/* Cut a rectangle into n pieces: they can be packed without any loss. */
static void cut(uint64_t *s, int64_t l, int64_t r, int64_t height, uint32_t n)
{
    if (n <= 1 || (r - l < 2 && height < 2)) {
        pieces[n_pieces++] = (ot_pack_item)ITEM(l, r, height);
        return;
    }
    uint32_t part = (uint32_t)(1 + below(s, n - 1));
    if (height < 2 || (r - l >= 2 && below(s, 2))) {
        int64_t at = l + 1 + below(s, r - l - 1);
        cut(s, l, at, height, part);
        cut(s, at, r, height, n - part);
    } else {
        int64_t at = 1 + below(s, height - 1);
        cut(s, l, r, at, part);
        cut(s, l, r, height - at, n - part);
    }
}

static void improve_gets_near_perfect_packings(void **state)
{
    (void)state;
    static outcome a;
    int64_t greedy = 0, improved = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        uint64_t s = seed * 77;
        pieces = problem.items;
        n_pieces = 0;
        cut(&s, 0, 1000, 10000, 120);
        ot_pack_problem p = {pieces, n_pieces};
        assert_int_equal(ot_pack_lower_bound(&p), 10000);
        improve(&p, 10000, 1, 100000, &a);
        greedy += a.start;
        improved += a.height;
    }
    assert_true(greedy > 10 * 11000);
    assert_in_range(improved, 10 * 10000, 10 * 10300);
}

/* Thousands of items, short and long ones: many windows in the map, deep trees. */
static void improve_of_a_large_problem(void **state)
{
    (void)state;
    uint32_t n = 6000;
    uint64_t s = 11;
    int64_t *offsets = calloc(n, sizeof *offsets), height;
    ot_pack_item *items = calloc(n, sizeof *items);
    ot_diag d = {0};
    for (uint32_t k = 0; k < n; k++) {
        int64_t lower = below(&s, 4 * n),
                length = 1 + (below(&s, 50) ? below(&s, 200) : below(&s, 4 * n));
        items[k] = (ot_pack_item)ITEM(lower, lower + length, 64 * (1 + below(&s, 500)));
    }
    ot_pack_problem p = {items, n};
    pack_budget b = {.step_limit = 400000};
    int64_t bound = ot_pack_lower_bound(&p);
    assert_int_equal(ot_pack_greedy(&p, NULL, offsets, &height), OT_OK);
    if (ot_pack_check(&p, offsets, height, NULL, &d) != OT_OK) fail_msg("%s", d.message);
    int64_t start = height;
    assert_int_equal(pack_improve(&p, bound, 1, &b, offsets, &height), OT_OK);
    if (ot_pack_check(&p, offsets, height, NULL, &d) != OT_OK) fail_msg("%s", d.message);
    assert_true(height < start);
    assert_in_range(height, bound, bound + bound / 20);
    free(items);
    free(offsets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_order_takes_the_lowest_hole),
        cmocka_unit_test(by_size_takes_the_tightest_hole),
        cmocka_unit_test(by_size_then_length_then_number),
        cmocka_unit_test(alignment_costs_bytes),
        cmocka_unit_test(fixed_come_first),
        cmocka_unit_test(hints_are_tried_first),
        cmocka_unit_test(gaps_are_free),
        cmocka_unit_test(empty_items),
        cmocka_unit_test(too_large_sums),
        cmocka_unit_test(greedy_equals_its_naive_twin),
        cmocka_unit_test(greedy_ends_with_its_budget),
        cmocka_unit_test(meet_equals_its_naive_twin),
        cmocka_unit_test(bound_equals_its_naive_twin),
        cmocka_unit_test(bound_of_aligned_items),
        cmocka_unit_test(skyline_equals_its_naive_twin),
        cmocka_unit_test(improve_is_valid_and_repeats),
        cmocka_unit_test(improve_stops_at_the_goal),
        cmocka_unit_test(improve_of_fixed_items_ends),
        cmocka_unit_test(improve_gets_near_perfect_packings),
        cmocka_unit_test(improve_of_a_large_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
