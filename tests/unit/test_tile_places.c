/* Whether places are disjoint: random sets against every pair, and how much work large ones take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ops/tile_places.h"

static uint64_t seed;

static int64_t below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static ot_places compare(const ot_place_table *t, int32_t rank, const int64_t *dims,
                         ot_place pair[2])
{
    ot_places answer;
    assert_int_equal(ot_places_compare(t, rank, dims, &answer, pair), OT_OK);
    return answer;
}

/* First element of a place along an axis; *size of it. */
static int64_t start_of(const ot_place_table *t, int64_t row, int64_t axis)
{
    for (uint32_t k = 0; k < t->n_axes; k++)
        if (t->axes[k] == axis) return t->starts[row * t->n_axes + k];
    return 0;
}

static bool overlap(const ot_place_table *a, int64_t i, const ot_place_table *b, int64_t j,
                    int32_t rank)
{
    for (int32_t axis = 0; axis < rank; axis++) {
        int64_t x = start_of(a, i, axis), y = start_of(b, j, axis);
        if (x >= y + b->sizes[axis] || y >= x + a->sizes[axis]) return false;
    }
    return true;
}

#define TABLES 3
#define ROWS   60

/* Tables of random sizes and axes; those that would overlap are left out for as long as `apart`
 * says so. */
static void random_sets(void **state)
{
    (void)state;
    int meets = 0, apart = 0;
    for (unsigned at = 0; at < 3000; at++) {
        seed = at;
        int32_t rank = (int32_t)(1 + below(4));
        int64_t dims[4], sizes[TABLES][4], axes[TABLES][4], starts[TABLES][ROWS * 4];
        ot_place_table t[TABLES] = {{0}};
        bool pairs = false, keep = below(3) > 0;
        for (int32_t a = 0; a < rank; a++) dims[a] = 1 + below(rank > 2 ? 12 : 40);
        for (int k = 0; k < TABLES; k++) {
            for (int32_t a = 0; a < rank; a++) sizes[k][a] = dims[a];
            uint32_t n = 0;
            for (int32_t a = rank - 1; a >= 0; a--)
                if (n == 0 || below(4) > 0) axes[k][n++] = a;
            for (uint32_t j = 0; j < n; j++)
                sizes[k][axes[k][j]] = 1 + below(ot_min(dims[axes[k][j]], 5));
            t[k] = (ot_place_table){.axes = axes[k],
                                    .starts = starts[k],
                                    .sizes = sizes[k],
                                    .n_axes = n,
                                    .next = k + 1 < TABLES ? &t[k + 1] : NULL};
            for (int tries = 0; tries < ROWS; tries++) {
                bool hits = false;
                for (uint32_t j = 0; j < n; j++)
                    starts[k][t[k].rows * n + j] = below(dims[axes[k][j]] - sizes[k][axes[k][j]] +
                                                         1);
                for (int q = 0; q <= k; q++)
                    for (int64_t row = 0; row < t[q].rows; row++)
                        hits = hits || overlap(&t[k], t[k].rows, &t[q], row, rank);
                if (hits && keep) continue;
                pairs = pairs || hits;
                t[k].rows++;
            }
        }
        ot_place pair[2];
        ot_places answer = compare(t, rank, dims, pair);
        assert_int_equal(answer, pairs ? OT_PLACES_MEET : OT_PLACES_APART);
        if (pairs)
            assert_true(overlap(pair[0].table, pair[0].row, pair[1].table, pair[1].row, rank));
        if (pairs) assert_true(pair[0].table != pair[1].table || pair[0].row != pair[1].row);
        meets += pairs;
        apart += !pairs;
    }
    print_message("%d sets meet, %d are apart\n", meets, apart);
    assert_true(meets > 500 && apart > 500);
}

/* A grid of n0 x n1 x n2 tiles in any order; `moved` tiles are moved by one element along axis 1.
 */
static ot_places grid(int64_t n0, int64_t n1, int64_t n2, int64_t size, bool moved)
{
    int64_t dims[3] = {n0 * size, n1 * size + 1, n2 * size}, sizes[3] = {size, size, size},
            axes[3] = {0, 1, 2}, n = n0 * n1 * n2;
    int64_t *starts = malloc((size_t)(n * 3) * sizeof *starts), stride = 7919;
    assert_non_null(starts);
    while (n % stride == 0) stride++;
    for (int64_t k = 0; k < n; k++) {
        int64_t tile = k * stride % n;
        starts[k * 3] = tile / (n1 * n2) * size;
        starts[k * 3 + 1] = tile / n2 % n1 * size + (moved && tile == n / 3);
        starts[k * 3 + 2] = tile % n2 * size;
    }
    ot_place pair[2];
    ot_place_table t = {.axes = axes, .starts = starts, .sizes = sizes, .n_axes = 3, .rows = n};
    ot_places answer = compare(&t, 3, dims, pair);
    free(starts);
    return answer;
}

/* Comparing every pair of 2^17 tiles would be 2^33 comparisons. */
static void large_grids(void **state)
{
    (void)state;
    clock_t start = clock();
    assert_int_equal(grid(1, 512, 256, 8, false), OT_PLACES_APART);
    assert_int_equal(grid(32, 64, 64, 7, false), OT_PLACES_APART);
    assert_int_equal(grid(1, 1, 1 << 17, 3, false), OT_PLACES_APART);
    assert_int_equal(grid(1 << 17, 1, 1, 1, false), OT_PLACES_APART);
    assert_int_equal(grid(1, 512, 256, 8, true), OT_PLACES_MEET);
    assert_int_equal(grid(32, 64, 64, 7, true), OT_PLACES_MEET);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    print_message("%.2f s\n", seconds);
    assert_true(seconds < 20);
}

/* All in one place along 15 axes, apart along none: there is an answer, or there is none, but soon.
 */
static void many_axes(void **state)
{
    (void)state;
    enum { N = 4000, AXES = 16 };
    static int64_t starts[N * AXES];
    int64_t dims[AXES], sizes[AXES], axes[AXES];
    ot_place pair[2];
    for (int a = 0; a < AXES; a++) {
        dims[a] = 2 * N;
        sizes[a] = N;
        axes[a] = a;
    }
    for (int64_t k = 0; k < N; k++)
        for (int a = 0; a < AXES; a++) starts[k * AXES + a] = (k * 7919 + a * 31) % N;
    ot_place_table t = {.axes = axes, .starts = starts, .sizes = sizes, .n_axes = AXES, .rows = N};
    assert_int_equal(compare(&t, AXES, dims, pair), OT_PLACES_MEET);
    sizes[AXES - 1] = 1; /* apart along the last axis alone */
    for (int64_t k = 0; k < N; k++)
        for (int a = 0; a < AXES; a++)
            starts[k * AXES + a] = a + 1 < AXES ? (k * 7919 + a * 31) % N : k;
    assert_int_equal(compare(&t, AXES, dims, pair), OT_PLACES_APART);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sets),
        cmocka_unit_test(large_grids),
        cmocka_unit_test(many_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
