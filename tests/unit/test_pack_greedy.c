/* Greedy packing and the lower bound: exact offsets of small problems, naive twins on random
 * ones. */
#include "pack_random.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
