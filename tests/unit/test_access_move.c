/* Slice relation of the operators that move elements, as test_access_point.c has it of those
 * that compute. */
#include "access_check.h"

/* ---- movement ---- */

static void test_transpose_random(void **state)
{
    (void)state;
    seed(15);
    for (int i = 0; i < 60; i++) {
        kase *c = new_case("Transpose", 13);
        int32_t rank = 1 + (int32_t)rnd(4);
        int64_t d[ARR_RANK] = {0}, perm[ARR_RANK];
        for (int32_t a = 0; a < rank; a++) d[a] = 1 + rnd(4), perm[a] = a;
        for (int32_t a = rank - 1; a > 0; a--) {
            int64_t j = rnd(a + 1), t = perm[a];
            perm[a] = perm[j], perm[j] = t;
        }
        operand(c, rank, d);
        if (rnd(4)) attr_ints(c, "perm", perm, (size_t)rank);
        check(c, &"1111"[4 - rank]);
    }
}

static int64_t product(const int64_t *d, int32_t from, int32_t to)
{
    int64_t p = 1;
    for (int32_t i = from; i < to; i++) p *= d[i];
    return p;
}

/* A random shape with the given prime factors in order, and extents of 1 sprinkled in. */
static int32_t random_shape(const int64_t *f, int32_t n, int64_t *d)
{
    int32_t rank = 0;
    for (int32_t i = 0; i < n;) {
        int64_t e = 1;
        if (rnd(5) == 0 && rank < ARR_RANK - 1) d[rank++] = 1;
        do e *= f[i++];
        while (i < n && (rnd(2) || rank >= ARR_RANK - 2));
        d[rank++] = e;
    }
    return rank;
}

/* The axis can be cut exactly when as many elements precede its slabs as precede those of an
 * input axis. */
static bool reshape_leads(const arr *x, const arr *y, int32_t a, int32_t *in_axis)
{
    for (int32_t i = 0; i < x->rank; i++) {
        if (x->d[i] == 1 || y->d[a] == 1 || product(x->d, 0, i) != product(y->d, 0, a)) continue;
        *in_axis = i;
        return true;
    }
    return false;
}

/* The smallest window around [lo,hi) that begins and ends on slabs of both sides, by trying all. */
static ot_win smallest_made(const arr *x, const arr *y, int32_t a, int32_t i, int64_t lo,
                            int64_t hi)
{
    int64_t ry = product(y->d, a + 1, y->rank), rx = product(x->d, i + 1, x->rank);
    while (lo * ry % rx) lo--;
    while (hi * ry % rx) hi++;
    return (ot_win){lo, hi};
}

static void test_reshape_random(void **state)
{
    static const int64_t primes[] = {2, 3, 2, 5, 2, 3};
    (void)state;
    seed(16);
    for (int i = 0; i < 400; i++) {
        kase *c = new_case("Reshape", 13);
        int64_t f[6], g[6], d[ARR_RANK] = {0};
        int32_t n = 1 + (int32_t)rnd(6);
        for (int32_t k = 0; k < n; k++) f[k] = g[k] = primes[k];
        if (rnd(2) && n > 2) g[1] = f[2], g[2] = f[1]; /* groups that meet only later */
        operand(c, random_shape(f, n, d), d);
        int32_t rank = random_shape(g, n, d);
        ints_in(c, rank, d);
        build(c);
        char expect[ARR_RANK + 1] = "";
        for (int32_t a = 0; a < rank; a++) {
            int32_t in_axis = -1;
            cut x;
            int64_t lo, hi;
            bool leads = reshape_leads(&c->in[0], &c->full[0], a, &in_axis);
            expect[a] = leads ? '1' : '0';
            assert_int_equal(ask(c, (uint32_t)a, &x), leads);
            if (!leads) continue;
            assert_int_equal(x.in_axis[0], in_axis);
            random_window(d[a], &lo, &hi);
            fill_window(c, &x, lo, hi);
            ot_win w = smallest_made(&c->in[0], &c->full[0], a, in_axis, lo, hi);
            assert_int_equal(x.tile.made.lo, w.lo);
            assert_int_equal(x.tile.made.hi, w.hi);
        }
        check(c, expect);
    }
}

static void test_reshape_kin(void **state)
{
    (void)state;
    seed(17);
    kase *c = new_case("Reshape", 13); /* 0 and -1 become numbers */
    IN(c, 2, 6, 4), INTS(c, 0, 0, 2, -1);
    check(c, "1110");
    c = new_case("Flatten", 13);
    IN(c, 2, 3, 4, 5);
    attr_i(c, "axis", 2);
    check(c, "11");
    c = new_case("Squeeze", 13); /* without axes: a tile of extent 1 must keep its axis */
    IN(c, 1, 4, 1, 5);
    check(c, "11");
    c = new_case("Squeeze", 13); /* nothing to remove: an empty list of axes would mean all */
    IN(c, 4, 3);
    check(c, "11");
    c = new_case("Squeeze", 13);
    IN(c, 4, 1, 5), INTS(c, -2);
    check(c, "11");
    c = new_case("Unsqueeze", 13);
    IN(c, 4, 5), INTS(c, 0, -1);
    check(c, "0110");
    c = new_case("Reshape", 13); /* window and alignment named in access_reshape.c */
    IN(c, 6, 4), INTS(c, 3, 8);
    build(c);
    cut x;
    assert_true(ask(c, 0, &x));
    fill_window(c, &x, 1, 2);
    assert_int_equal(x.in[0].lo, 2);
    assert_int_equal(x.in[0].hi, 4);
    check(c, "10");
}

static void test_expand_tile(void **state)
{
    (void)state;
    seed(18);
    kase *c = new_case("Expand", 13);
    IN(c, 3, 1, 5), INTS(c, 2, 1, 4, 5);
    check(c, "1111");
    c = new_case("Expand", 13); /* 1 in the target keeps the extent */
    IN(c, 3, 4), INTS(c, 1, 1);
    check(c, "11");
    c = new_case("Tile", 13);
    IN(c, 3, 4, 2), INTS(c, 1, 3, 1);
    check(c, "111");
    c = new_case("Tile", 13);
    IN(c, 1, 5), INTS(c, 4, 2);
    check(c, "11");
}

/* Within one copy a tile reads its own window, over several all of the input. */
static void test_tile_windows(void **state)
{
    static const struct {
        int64_t lo, hi, in_lo, in_hi, made_lo, made_hi;
    } rows[] = {{1, 3, 1, 3, 1, 3}, {5, 8, 1, 4, 5, 8}, {3, 5, 0, 4, 0, 8}, {7, 12, 0, 4, 4, 12}};
    (void)state;
    kase *c = new_case("Tile", 13);
    cut x;
    IN(c, 4), INTS(c, 3);
    build(c);
    assert_true(ask(c, 0, &x));
    assert_int_equal(x.in_axis[0], 0);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        fill_window(c, &x, rows[k].lo, rows[k].hi);
        assert_int_equal(x.in[0].lo, rows[k].in_lo);
        assert_int_equal(x.in[0].hi, rows[k].in_hi);
        assert_int_equal(x.tile.made.lo, rows[k].made_lo);
        assert_int_equal(x.tile.made.hi, rows[k].made_hi);
    }
    drop(c);
}

static void test_concat_split(void **state)
{
    (void)state;
    seed(19);
    for (int i = 0; i < 40; i++) {
        kase *c = new_case("Concat", 13);
        int32_t rank = 1 + (int32_t)rnd(3), axis = (int32_t)rnd(rank);
        int64_t d[ARR_RANK] = {0};
        for (int32_t a = 0; a < rank; a++) d[a] = 1 + rnd(4);
        for (int64_t k = 1 + rnd(5); k > 0; k--) {
            d[axis] = 1 + rnd(4);
            operand(c, rank, d);
        }
        attr_i(c, "axis", rnd(2) ? axis : axis - rank);
        check(c, &"111"[3 - rank]);
    }
    kase *c = new_case("Split", 13);
    IN(c, 4, 6, 2), INTS(c, 2, 4);
    attr_i(c, "axis", 1);
    c->n_out = 2;
    check(c, "101");
}

static void test_gather_random(void **state)
{
    (void)state;
    seed(20);
    for (int i = 0; i < 60; i++) {
        kase *c = new_case("Gather", 13);
        int32_t rank = 1 + (int32_t)rnd(3), q = (int32_t)rnd(3);
        int64_t d[ARR_RANK] = {0}, axis = rnd(rank);
        if (rank + q == 1) q = 1;
        for (int32_t a = 0; a < rank; a++) d[a] = 1 + rnd(4);
        d[axis] += 1; /* else adding one to an index points at the same slab */
        operand(c, rank, d);
        for (int32_t a = 0; a < q; a++) d[a] = 1 + rnd(3);
        operand(c, q, d);
        attr_i(c, "axis", rnd(2) ? axis : axis - rank);
        build(c);
        check(c, &"1111"[4 - c->full[0].rank]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose_random), cmocka_unit_test(test_reshape_random),
        cmocka_unit_test(test_reshape_kin),      cmocka_unit_test(test_expand_tile),
        cmocka_unit_test(test_tile_windows),     cmocka_unit_test(test_concat_split),
        cmocka_unit_test(test_gather_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
