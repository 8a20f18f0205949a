/* The validator of packings: each rule broken alone, with its own reason, and packings that look
 * wrong but are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pack/pack.h"
#include "seeded.h"

#define ITEM(from, to, bytes)                                                              \
    {                                                                                      \
        .lower = from, .upper = to, .size = bytes, .alignment = 1, .fixed = -1, .hint = -1 \
    }

/* Reason that the packing of n items is refused; "" when it is accepted. */
static const char *reason(const ot_pack_item *items, uint32_t n, const int64_t *offsets,
                          int64_t capacity, const char *const *names)
{
    static ot_diag d;
    ot_pack_problem p = {items, n};
    d = (ot_diag){0};
    ot_status st = ot_pack_check(&p, offsets, capacity, names, &d);
    assert_int_equal(st, d.message[0] ? OT_E_INPUT : OT_OK);
    assert_int_equal(st, d.status);
    return d.message;
}

#define REASON(offsets, capacity) \
    reason(items, sizeof items / sizeof *items, offsets, capacity, NULL)
#define AT(...) ((const int64_t[]){__VA_ARGS__})

static void accepts_what_is_right(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(2, 6, 10), ITEM(4, 8, 10), ITEM(0, 8, 5)};
    assert_string_equal(REASON(AT(0, 10, 0, 20), 25), "");
    assert_string_equal(REASON(AT(0, 10, 0, 20), 0), "");
    assert_string_equal(REASON(AT(15, 5, 15, 0), 25), "");
    assert_string_equal(reason(NULL, 0, NULL, 1, NULL), "");
}

static void negative_offset(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(4, 5, 1)};
    assert_string_equal(REASON(AT(0, -1), 0), "buffer 1: its offset -1 is negative");
    assert_string_equal(REASON(AT(INT64_MIN, 0), 0),
                        "buffer 0: its offset -9223372036854775808 is negative");
}

static void alignment(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(0, 4, 10)};
    items[1].alignment = 12;
    assert_string_equal(REASON(AT(0, 10), 0),
                        "buffer 1: its offset 10 is not a multiple of its alignment 12");
    assert_string_equal(REASON(AT(0, 12), 0), "");
    assert_string_equal(REASON(AT(24, 12), 0), "");
}

static void fixed_offset(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(4, 8, 10)};
    items[0].fixed = 7;
    assert_string_equal(REASON(AT(8, 0), 0), "buffer 0: it is at 8 but fixed at 7");
    assert_string_equal(REASON(AT(7, 0), 0), "");
    items[0].fixed = 0;
    assert_string_equal(REASON(AT(1, 0), 0), "buffer 0: it is at 1 but fixed at 0");
}

static void capacity(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(4, 8, 10)};
    assert_string_equal(REASON(AT(0, 1), 10), "buffer 1: its end 11 is above the capacity 10");
    assert_string_equal(REASON(AT(0, 1), 11), "");
    assert_string_equal(REASON(AT(0, 1), 0), "");
}

static void overflow(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10)};
    assert_string_equal(REASON(AT(INT64_MAX - 9), 0),
                        "buffer 0: its end overflows (offset 9223372036854775798, size 10)");
    assert_string_equal(REASON(AT(INT64_MAX - 10), 0), "");
}

static void overlap(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(3, 8, 10), ITEM(8, 9, 10)};
    assert_string_equal(REASON(AT(0, 9, 9), 0),
                        "buffers 0 [0, 10) and 1 [9, 19) overlap at time 3");
    assert_string_equal(REASON(AT(19, 10, 0), 0),
                        "buffers 0 [19, 29) and 1 [10, 20) overlap at time 3");
    assert_string_equal(REASON(AT(0, 10, 0), 0), "");
    const char *const names[] = {"a", "b%s", "c"};
    assert_string_equal(reason(items, 3, AT(0, 0, 0), 0, names),
                        "buffers a [0, 10) and b%s [0, 10) overlap at time 3");
    items[1].lower = 4; /* they touch in time only */
    assert_string_equal(REASON(AT(0, 9, 9), 0), "");
}

static void one_inside_the_other(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 10, 100), ITEM(4, 5, 1)};
    assert_string_equal(REASON(AT(0, 50), 0),
                        "buffers 0 [0, 100) and 1 [50, 51) overlap at time 4");
    assert_string_equal(REASON(AT(0, 100), 0), "");
}

static void empty_items_hold_nothing(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 10, 100), ITEM(4, 5, 0), ITEM(4, 5, 0)};
    assert_string_equal(REASON(AT(0, 50, 50), 0), "");
    assert_string_equal(REASON(AT(0, 101, 0), 100),
                        "buffer 1: its end 101 is above the capacity 100");
}

/* Where one has a gap the other may lie. */
static void gaps(void **state)
{
    (void)state;
    const ot_span gap[] = {{2, 4}, {6, 8}}, other[] = {{0, 3}, {4, 6}};
    ot_pack_item items[] = {ITEM(0, 10, 10), ITEM(2, 4, 10)};
    assert_string_equal(REASON(AT(0, 5), 0), "buffers 0 [0, 10) and 1 [5, 15) overlap at time 2");
    items[0].gaps = gap;
    items[0].n_gaps = 2;
    assert_string_equal(REASON(AT(0, 5), 0), "");
    items[1].upper = 5;
    assert_string_equal(REASON(AT(0, 5), 0), "buffers 0 [0, 10) and 1 [5, 15) overlap at time 4");
    items[1].lower = 1;
    items[1].upper = 4;
    assert_string_equal(REASON(AT(0, 5), 0), "buffers 0 [0, 10) and 1 [5, 15) overlap at time 1");
    items[1].lower = 0; /* alive in [3, 4) and [6, 8) */
    items[1].upper = 8;
    items[1].gaps = other;
    items[1].n_gaps = 2;
    assert_string_equal(REASON(AT(0, 5), 0), "");
    items[1].upper = 9; /* and in [8, 9) */
    assert_string_equal(REASON(AT(0, 5), 0), "buffers 0 [0, 10) and 1 [5, 15) overlap at time 8");
}

/* The rules are asked in the order of the header, item by item before pairs. */
static void first_rule_counts(void **state)
{
    (void)state;
    ot_pack_item items[] = {ITEM(0, 4, 10), ITEM(0, 4, 10)};
    items[1].alignment = 4;
    items[1].fixed = 8;
    assert_string_equal(REASON(AT(0, -2), 5), "buffer 0: its end 10 is above the capacity 5");
    assert_string_equal(REASON(AT(0, -2), 15), "buffer 1: its offset -2 is negative");
    assert_string_equal(REASON(AT(0, 6), 15),
                        "buffer 1: its offset 6 is not a multiple of its alignment 4");
    assert_string_equal(REASON(AT(0, 4), 13), "buffer 1: it is at 4 but fixed at 8");
    assert_string_equal(REASON(AT(0, 8), 15), "buffer 1: its end 18 is above the capacity 15");
    assert_string_equal(REASON(AT(0, 8), 18), "buffers 0 [0, 10) and 1 [8, 18) overlap at time 0");
}

enum { ITEMS = 7, MOMENTS = 12, OFFSETS = 40, PROBLEMS = 20000 };

static bool is_alive(const ot_pack_item *x, int64_t when)
{
    bool alive = when >= x->lower && when < x->upper;
    for (uint32_t k = 0; k < x->n_gaps; k++)
        alive = alive && (when < x->gaps[k].lower || when >= x->gaps[k].upper);
    return alive;
}

/* Moment by moment, byte by byte: two items hold one. */
static bool share_a_byte(const ot_pack_item *items, const int64_t *offsets)
{
    for (int64_t when = 0; when < MOMENTS; when++) {
        int holders[OFFSETS + 10] = {0};
        for (uint32_t k = 0; k < ITEMS; k++)
            for (int64_t b = 0; is_alive(&items[k], when) && b < items[k].size; b++)
                if (++holders[offsets[k] + b] > 1) return true;
    }
    return false;
}

static void overlaps_are_those_of_bytes(void **state)
{
    (void)state;
    int refused = 0;
    for (int round = 0; round < PROBLEMS; round++) {
        ot_pack_item items[ITEMS];
        ot_span gaps[ITEMS][2];
        int64_t offsets[ITEMS];
        for (uint32_t k = 0; k < ITEMS; k++) {
            const int64_t from = below(MOMENTS - 6), to = from + 1 + below(6);
            items[k] = (ot_pack_item)ITEM(from, to, below(8));
            offsets[k] = below(OFFSETS);
            if (to - from < 5 || below(2)) continue;
            gaps[k][0] = (ot_span){from + 1, from + 2};
            gaps[k][1] = (ot_span){from + 3, from + 3 + below(2)};
            items[k].gaps = gaps[k];
            items[k].n_gaps = 1 + draw(2);
        }
        const bool bad = share_a_byte(items, offsets);
        refused += bad;
        assert_int_equal(REASON(offsets, 0)[0] != 0, bad);
    }
    assert_in_range(refused, PROBLEMS / 10, PROBLEMS - PROBLEMS / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_what_is_right),
        cmocka_unit_test(negative_offset),
        cmocka_unit_test(alignment),
        cmocka_unit_test(fixed_offset),
        cmocka_unit_test(capacity),
        cmocka_unit_test(overflow),
        cmocka_unit_test(overlap),
        cmocka_unit_test(one_inside_the_other),
        cmocka_unit_test(empty_items_hold_nothing),
        cmocka_unit_test(gaps),
        cmocka_unit_test(first_rule_counts),
        cmocka_unit_test(overlaps_are_those_of_bytes),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
