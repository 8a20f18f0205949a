/* Heuristics of packing: the skyline against a naive twin, improvement of what was found. */
#include "pack_random.h"

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
        cmocka_unit_test(skyline_equals_its_naive_twin),
        cmocka_unit_test(improve_is_valid_and_repeats),
        cmocka_unit_test(improve_stops_at_the_goal),
        cmocka_unit_test(improve_of_fixed_items_ends),
        cmocka_unit_test(improve_gets_near_perfect_packings),
        cmocka_unit_test(improve_of_a_large_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
