/* The price of reuse against its definition: every packing of small problems is looked at. */
#include "pack_random.h"

#define ITEMS 5
#define PAIRS 10

typedef struct priced {
    ot_pack_item items[ITEMS];
    ot_pack_pair pairs[PAIRS];
    ot_pack_problem p;
    int64_t capacity;
} priced;

static void make(priced *x, uint64_t *s, bool equal)
{
    *x = (priced){.p = {x->items, ITEMS}, .capacity = 3 + below(s, 3)};
    const int64_t size = 1 + below(s, 3);
    for (uint32_t k = 0; k < ITEMS; k++) {
        const int64_t from = below(s, 8);
        x->items[k] = (ot_pack_item)ITEM(from, from + 1 + below(s, 2), equal ? size : below(s, 4));
        if (!equal && below(s, 4) == 0) x->items[k].alignment = 2;
        if (!equal && below(s, 8) == 0) x->items[k].fixed = 2 * below(s, 2);
    }
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint32_t a = (uint32_t)below(s, ITEMS);
        const uint32_t b = (a + 1 + (uint32_t)below(s, ITEMS - 1)) % ITEMS;
        x->pairs[k] = (ot_pack_pair){a, b, below(s, 4)};
    }
}

static bool is_valid(const priced *x, const int64_t *offsets)
{
    ot_diag d = {0};
    return ot_pack_check(&x->p, offsets, x->capacity, NULL, &d) == OT_OK;
}

/* Least price of all packings; -1: there is none. */
static int64_t least_of(const priced *x)
{
    int64_t offsets[ITEMS] = {0}, least = -1;
    for (;;) {
        if (is_valid(x, offsets)) {
            const int64_t sum = ot_pack_price_of(&x->p, x->pairs, PAIRS, offsets);
            if (least < 0 || sum < least) least = sum;
        }
        uint32_t k = 0;
        while (k < ITEMS && ++offsets[k] > x->capacity) offsets[k++] = 0;
        if (k == ITEMS) return least;
    }
}

static void check_least(uint64_t seed, bool equal, uint32_t *n_paid)
{
    uint64_t s = 88172645463325252u + seed * 2 + equal;
    priced x;
    int64_t offsets[ITEMS], again[ITEMS];
    ot_pack_result packed;
    ot_pack_price r, r2;
    ot_diag d = {0};
    make(&x, &s, equal);
    const ot_pack_options o = {.capacity = x.capacity, .rules = OT_PACK_RULES_ALL};
    if (ot_pack(&x.p, &o, &d, offsets, &packed) != OT_OK || !packed.found) return;
    memcpy(again, offsets, sizeof again);
    const int64_t first = ot_pack_price_of(&x.p, x.pairs, PAIRS, offsets), least = least_of(&x);
    CHECK(seed, ot_pack_price_reuse(&x.p, x.pairs, PAIRS, &o, offsets, &r) == OT_OK);
    CHECK(seed, is_valid(&x, offsets));
    CHECK(seed, r.sum == ot_pack_price_of(&x.p, x.pairs, PAIRS, offsets) && r.sum <= first);
    CHECK(seed, r.sum == least);
    CHECK(seed, r.lower_bound <= least);
    CHECK(seed, r.proved == (r.sum == r.lower_bound));
    CHECK(seed, r.proved);
    CHECK(seed, ot_pack_price_reuse(&x.p, x.pairs, PAIRS, &o, again, &r2) == OT_OK);
    CHECK(seed, memcmp(again, offsets, sizeof again) == 0 && r2.steps == r.steps);
    *n_paid += least > 0;
}

static void small_ones(void **state)
{
    (void)state;
    uint32_t n_paid = 0;
    for (uint64_t seed = 0; seed < 60; seed++) check_least(seed, seed % 2, &n_paid);
    assert_true(n_paid >= 10);
}

/* Sixteen equal buffers, any two at a price, none alive together: in two slots 2 * 28 pairs are
 * paid, in sixteen none. */
static void slots(void **state)
{
    (void)state;
    enum { N = 16, ALL_PAIRS = N * (N - 1) / 2 };
    ot_pack_item items[N];
    ot_pack_pair pairs[ALL_PAIRS];
    int64_t offsets[N] = {0};
    ot_pack_price r;
    size_t n = 0;
    for (uint32_t k = 0; k < N; k++) {
        items[k] = (ot_pack_item)ITEM(k, k + 1, 64);
        for (uint32_t j = 0; j < k; j++) pairs[n++] = (ot_pack_pair){j, k, 1};
    }
    const ot_pack_problem p = {items, N};
    ot_pack_options o = {.capacity = 128 + 63};
    assert_int_equal(ot_pack_price_of(&p, pairs, n, offsets), ALL_PAIRS);
    assert_int_equal(ot_pack_price_reuse(&p, pairs, n, &o, offsets, &r), OT_OK);
    assert_int_equal(r.sum, 56);
    assert_true(r.proved);
    o.capacity = 1024;
    assert_int_equal(ot_pack_price_reuse(&p, pairs, n, &o, offsets, &r), OT_OK);
    assert_int_equal(r.sum, 0);
    assert_true(r.proved);
}

/* Too many of two sizes for a search: what does not fit beside one another is paid for. Twenty of
 * all of the memory meet all others, twenty of half of it lie in two halves: 190 + 400 + 2 * 45. */
static void too_little_room(void **state)
{
    (void)state;
    enum { N = 40, ALL_PAIRS = N * (N - 1) / 2 };
    ot_pack_item items[N];
    ot_pack_pair pairs[ALL_PAIRS];
    int64_t offsets[N] = {0};
    ot_pack_price r;
    size_t n = 0;
    for (uint32_t k = 0; k < N; k++) {
        items[k] = (ot_pack_item)ITEM(k, k + 1, k % 2 ? 64 : 128);
        for (uint32_t j = 0; j < k; j++) pairs[n++] = (ot_pack_pair){j, k, 1};
    }
    const ot_pack_problem p = {items, N};
    const ot_pack_options o = {.capacity = 128};
    assert_int_equal(ot_pack_price_reuse(&p, pairs, n, &o, offsets, &r), OT_OK);
    assert_int_equal(r.sum, 680);
    assert_true(r.proved);
}

/* A clock: what comes is still a packing, and no dearer. */
static void limited(void **state)
{
    (void)state;
    ot_pack_pair pairs[200];
    ot_pack_price r;
    ot_pack_result packed;
    ot_diag d = {0};
    uint64_t s = 5;
    make_random(&problem, 5, 60, GAPS | ALIGNED | FIXED | EMPTY);
    int64_t offsets[N_MAX];
    ot_pack_options o = {.rules = OT_PACK_RULES_ALL};
    for (uint32_t k = 0; k < 200; k++)
        pairs[k] = (ot_pack_pair){k % 60, (k % 60 + 1 + (uint32_t)below(&s, 59)) % 60,
                                  below(&s, 9)};
    assert_int_equal(ot_pack(&problem.p, &o, &d, offsets, &packed), OT_OK);
    const int64_t first = ot_pack_price_of(&problem.p, pairs, 200, offsets);
    o.capacity = packed.height * 5 / 4;
    o.time_limit = 0.05;
    assert_int_equal(ot_pack_price_reuse(&problem.p, pairs, 200, &o, offsets, &r), OT_OK);
    assert_true(r.sum < first);
    assert_int_equal(ot_pack_check(&problem.p, offsets, o.capacity, NULL, &d), OT_OK);
    assert_true(r.timed_out == !r.proved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones),
        cmocka_unit_test(slots),
        cmocka_unit_test(too_little_room),
        cmocka_unit_test(limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
