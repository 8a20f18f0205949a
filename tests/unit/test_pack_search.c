/* The packer against brute force: least heights of small instances with gaps, alignments and
 * fixed offsets, under every subset of the search rules; larger ones whose least height is known
 * by construction; proofs, limits, threads, memory running out. Every packing is checked here,
 * by code of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/watch.h"
#include "pack/pack_internal.h"

#ifndef SEED
#define SEED 20261121u
#endif
enum { SMALL = 7, GAPS = 2, LARGE = 400 };

/* ---- instances ---- */

static uint64_t random_state;

static uint32_t pick(uint32_t n) /* 0 .. n - 1 */
{
    return (uint32_t)(ot_next_random(&random_state) >> 16) % n;
}

typedef struct instance {
    ot_pack_item items[LARGE];
    ot_span gaps[SMALL][GAPS];
    ot_pack_problem p;
} instance;

static ot_pack_item item(int64_t lower, int64_t upper, int64_t size)
{
    return (ot_pack_item){
        .lower = lower, .upper = upper, .size = size, .alignment = 1, .fixed = -1, .hint = -1};
}

static bool alive(const ot_pack_item *x, int64_t t)
{
    if (t < x->lower || t >= x->upper) return false;
    for (uint32_t g = 0; g < x->n_gaps; g++)
        if (t >= x->gaps[g].lower && t < x->gaps[g].upper) return false;
    return true;
}

static bool meet(const ot_pack_item *x, const ot_pack_item *y)
{
    int64_t from = x->lower < y->lower ? x->lower : y->lower,
            to = x->upper > y->upper ? x->upper : y->upper;
    for (int64_t t = from; t < to; t++)
        if (alive(x, t) && alive(y, t)) return true;
    return false;
}

static bool apart(const ot_pack_item *x, int64_t at, const ot_pack_item *y, int64_t other)
{
    return at + x->size <= other || other + y->size <= at || x->size == 0 || y->size == 0 ||
           !meet(x, y);
}

/* What makes instances hard in different ways; kinds are bits. */
enum { WITH_GAPS = 1, WITH_ALIGNMENT = 2, WITH_FIXED = 4, WITH_TWINS = 8, COMMON_ALIGNMENT = 16 };

static void add_gaps(instance *in, uint32_t k)
{
    ot_pack_item *x = &in->items[k];
    int64_t from = x->lower;
    for (uint32_t g = 0; g < GAPS; g++) {
        if (pick(2) || from + 1 > x->upper) continue;
        int64_t lower = from + pick(3), upper = lower + 1 + pick(2);
        if (upper > x->upper) break;
        in->gaps[k][x->n_gaps++] = (ot_span){lower, upper};
        from = upper;
    }
    x->gaps = in->gaps[k];
}

static void small_instance(instance *in, uint32_t n, uint32_t kind)
{
    static const int64_t alignments[] = {1, 1, 2, 3, 4, 6};
    in->p = (ot_pack_problem){in->items, n};
    for (uint32_t k = 0; k < n; k++) {
        int64_t lower = pick(8);
        if ((kind & WITH_TWINS) && k > 0 && pick(2)) {
            in->items[k] = in->items[pick(k)];
            in->items[k].fixed = -1;
            continue;
        }
        in->items[k] = item(lower, lower + 1 + pick(5), pick(12) == 0 ? 0 : 1 + pick(9));
        if (kind & WITH_ALIGNMENT) in->items[k].alignment = alignments[pick(6)];
        if (kind & COMMON_ALIGNMENT) in->items[k].alignment = 4;
        if (pick(4) == 0) in->items[k].hint = pick(10);
        if (kind & WITH_GAPS) add_gaps(in, k);
        if (!(kind & WITH_FIXED) || pick(3)) continue;
        in->items[k].fixed = pick(5) * in->items[k].alignment;
        for (uint32_t j = 0; j < k; j++)
            if (in->items[j].fixed >= 0 &&
                !apart(&in->items[k], in->items[k].fixed, &in->items[j], in->items[j].fixed))
                in->items[k].fixed = -1;
    }
}

/* ---- brute force ---- */

static int64_t lowest_place(const ot_pack_problem *p, const int64_t *offsets, const bool *placed,
                            uint32_t k)
{
    const ot_pack_item *x = &p->items[k];
    if (x->fixed >= 0) return x->fixed;
    for (int64_t at = 0;; at += x->alignment) {
        bool free = true;
        for (uint32_t j = 0; j < p->n && free; j++)
            free = !placed[j] || apart(x, at, &p->items[j], offsets[j]);
        if (free) return at;
    }
}

static void try_orders(const ot_pack_problem *p, int64_t *offsets, bool *placed, uint32_t left,
                       int64_t height, int64_t *best)
{
    if (height >= *best) return;
    if (left == 0) *best = height;
    for (uint32_t k = 0; k < p->n; k++) {
        if (placed[k]) continue;
        offsets[k] = lowest_place(p, offsets, placed, k);
        placed[k] = true;
        int64_t top = offsets[k] + p->items[k].size;
        try_orders(p, offsets, placed, left - 1, top > height ? top : height, best);
        placed[k] = false;
    }
}

/* Some order of the items, each at the lowest free place, gives a least height: that of a lowest
 * packing, by offsets. */
static int64_t least_height(const ot_pack_problem *p)
{
    int64_t offsets[SMALL], height = 0, best = INT64_MAX;
    bool placed[SMALL] = {false};
    uint32_t left = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        placed[k] = p->items[k].fixed >= 0;
        if (!placed[k])
            left++;
        else {
            offsets[k] = p->items[k].fixed;
            height = height > offsets[k] + p->items[k].size ? height
                                                            : offsets[k] + p->items[k].size;
        }
    }
    try_orders(p, offsets, placed, left, height, &best);
    return best;
}

/* ---- checks ---- */

static int64_t check_packing(const ot_pack_problem *p, const int64_t *offsets)
{
    int64_t height = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[k];
        assert_true(offsets[k] >= 0);
        assert_int_equal(offsets[k] % x->alignment, 0);
        if (x->fixed >= 0) assert_int_equal(offsets[k], x->fixed);
        for (uint32_t j = 0; j < k; j++)
            assert_true(apart(x, offsets[k], &p->items[j], offsets[j]));
        height = height > offsets[k] + x->size ? height : offsets[k] + x->size;
    }
    return height;
}

static pack_answer search_with(const ot_pack_problem *p, int64_t capacity, uint32_t order,
                               uint32_t rules, int64_t steps, int64_t *offsets)
{
    pack_budget b = {.step_limit = steps};
    pack_answer answer;
    assert_int_equal(pack_search(p, capacity, order, rules, &b, offsets, &answer), OT_OK);
    if (answer == PACK_FOUND) assert_true(check_packing(p, offsets) <= capacity);
    return answer;
}

static ot_pack_result pack(const ot_pack_problem *p, const ot_pack_options *o, int64_t *offsets)
{
    ot_diag d = {0};
    ot_pack_result r;
    if (ot_pack(p, o, &d, offsets, &r) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(check_packing(p, offsets), r.height);
    assert_true(r.lower_bound <= r.height);
    return r;
}

/* ---- small instances ---- */

static void optimum_of_small_instances(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[SMALL];
    random_state = SEED;
    print_message("seed %u\n", SEED);
    for (uint32_t k = 0; k < 1500; k++) {
        small_instance(&in, 2 + pick(SMALL - 1), k % 32);
        int64_t best = least_height(&in.p);
        if (best > 0)
            assert_int_equal(search_with(&in.p, best, k % 5, OT_PACK_RULES_ALL, 0, offsets),
                             PACK_FOUND);
        if (best > 1)
            assert_int_equal(search_with(&in.p, best - 1, k % 5, OT_PACK_RULES_ALL, 0, offsets),
                             PACK_NONE);
        ot_pack_result r = pack(&in.p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, offsets);
        assert_int_equal(r.height, best);
        assert_true(r.found);
        assert_true(r.proved);
        assert_false(r.timed_out);
    }
}

static void every_subset_of_rules(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[SMALL];
    random_state = SEED + 1;
    for (uint32_t k = 0; k < 64; k++) {
        small_instance(&in, 3 + pick(3), k % 32);
        int64_t best = least_height(&in.p);
        if (best < 2) continue;
        for (uint32_t rules = 0; rules <= OT_PACK_RULES_ALL; rules++) {
            assert_int_equal(search_with(&in.p, best, 0, rules, 0, offsets), PACK_FOUND);
            assert_int_equal(search_with(&in.p, best - 1, 0, rules, 0, offsets), PACK_NONE);
            if (k % 8) continue;
            ot_pack_result r = pack(&in.p, &(ot_pack_options){.rules = rules}, offsets);
            assert_true(r.height == best && r.proved);
        }
    }
}

static void capacities_around_the_optimum(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[SMALL];
    random_state = SEED + 2;
    for (uint32_t k = 0; k < 300; k++) {
        small_instance(&in, SMALL, k % 32);
        int64_t best = least_height(&in.p);
        for (int64_t capacity = best > 3 ? best - 3 : 1; capacity <= best + 2; capacity++) {
            ot_pack_result r = pack(
                &in.p, &(ot_pack_options){.capacity = capacity, .rules = OT_PACK_RULES_ALL},
                offsets);
            assert_int_equal(r.found, capacity >= best);
            if (!r.found) assert_true(r.proved);
            if (r.found) assert_true(r.height <= capacity);
        }
    }
}

/* ---- larger instances ---- */

/* A rectangle cut into n pieces: they fill it without a hole again. */
static void cut_rectangle(instance *in, uint32_t n, int64_t width, int64_t height)
{
    int64_t offset[LARGE] = {0};
    in->p = (ot_pack_problem){in->items, n};
    in->items[0] = item(0, width, height);
    for (uint32_t k = 1; k < n;) {
        uint32_t from = pick(k);
        ot_pack_item *x = &in->items[from], *y = &in->items[k];
        *y = *x;
        if (pick(2) && x->upper - x->lower > 1) {
            y->lower = x->upper = x->lower + 1 + pick((uint32_t)(x->upper - x->lower - 1));
            offset[k++] = offset[from];
        } else if (x->size > 1) {
            y->size = 1 + pick((uint32_t)(x->size - 1));
            x->size -= y->size;
            offset[k++] = offset[from] + x->size;
        }
    }
}

/* Remembered states are compared, not only their hashes: where these collide, answers and proofs
 * are the same. */
static void hashes_prove_nothing(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[LARGE];
    random_state = SEED + 9;
    for (uint32_t k = 0; k < 100; k++) {
        small_instance(&in, SMALL, k % 32);
        int64_t best = least_height(&in.p);
        uint32_t rules = (OT_PACK_RULES_ALL & ~(1u << k % 7)) | OT_PACK_MEMO |
                         OT_PACK_COLLIDE; /* fewer rules: too many states to compare */
        if (best > 0)
            assert_int_equal(search_with(&in.p, best, k % 5, rules, 0, offsets), PACK_FOUND);
        if (best > 1)
            assert_int_equal(search_with(&in.p, best - 1, k % 5, rules, 0, offsets), PACK_NONE);
        ot_pack_result r = pack(
            &in.p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL | OT_PACK_COLLIDE}, offsets);
        assert_true(r.height == best && r.proved);
    }
    for (uint32_t k = 0; k < 4; k++) {
        cut_rectangle(&in, 10 + k, 40, 200);
        assert_int_equal(
            search_with(&in.p, 200, k, OT_PACK_RULES_ALL | OT_PACK_COLLIDE, 0, offsets),
            PACK_FOUND);
    }
}

static void cut_rectangles_fit_again(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[LARGE];
    random_state = SEED + 3;
    for (uint32_t k = 0; k < 40; k++) {
        uint32_t n = 10 + k;
        cut_rectangle(&in, n, 40, 200);
        assert_int_equal(search_with(&in.p, 200, k, OT_PACK_RULES_ALL, 0, offsets), PACK_FOUND);
        assert_int_equal(search_with(&in.p, 199, k, OT_PACK_RULES_ALL, 0, offsets), PACK_NONE);
        ot_pack_result r = pack(&in.p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, offsets);
        assert_true(r.height == 200 && r.proved);
    }
}

/* Three items of size 2 in a ring of lifetimes: two alive at any time, but no packing below 6.
 * Copies one after the other. */
static void proofs_above_the_bound(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[LARGE];
    ot_span *gap = in.gaps[0];
    *gap = (ot_span){1, 2};
    in.p = (ot_pack_problem){in.items, 3};
    in.items[0] = item(0, 2, 2);
    in.items[1] = item(1, 3, 2);
    in.items[2] = item(0, 3, 2);
    in.items[2].gaps = gap;
    in.items[2].n_gaps = 1;
    ot_pack_result r = pack(&in.p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, offsets);
    assert_int_equal(r.lower_bound, 4);
    assert_true(r.height == 6 && r.proved);
    r = pack(&in.p, &(ot_pack_options){.capacity = 5, .rules = OT_PACK_RULES_ALL}, offsets);
    assert_true(!r.found && r.proved);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    instance in;
    int64_t one[LARGE], two[LARGE];
    random_state = SEED + 4;
    for (uint32_t k = 0; k < 6; k++) {
        cut_rectangle(&in, 150 + 20 * k, 100, 1000);
        ot_pack_options o = {.capacity = k % 2 ? 1000 : 0,
                             .step_limit = 20000,
                             .rules = OT_PACK_RULES_ALL,
                             .threads = 1};
        ot_pack_result a = pack(&in.p, &o, one);
        o.threads = 2 + k % 3;
        ot_pack_result b = pack(&in.p, &o, two);
        assert_memory_equal(one, two, in.p.n * sizeof *one);
        assert_int_equal(a.height, b.height);
        assert_int_equal(a.steps, b.steps);
        assert_int_equal(a.proved, b.proved);
        assert_true(a.steps <= 21000 && !a.timed_out && !b.timed_out);
    }
}

static void limits_end_the_search(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[LARGE];
    random_state = SEED + 5;
    cut_rectangle(&in, LARGE, 200, 4000);
    assert_int_equal(search_with(&in.p, 4000, 0, OT_PACK_RULES_ALL, 50, offsets), PACK_LIMIT);
    pack_budget b = {.deadline = ot_now() - 1};
    pack_answer answer;
    assert_int_equal(pack_search(&in.p, 4000, 0, OT_PACK_RULES_ALL, &b, offsets, &answer), OT_OK);
    assert_int_equal(answer, PACK_LIMIT);
    assert_true(b.timed_out);
    atomic_bool stop = true;
    b = (pack_budget){.stop = &stop};
    assert_int_equal(pack_search(&in.p, 4000, 0, OT_PACK_RULES_ALL, &b, offsets, &answer), OT_OK);
    assert_int_equal(answer, PACK_LIMIT);
    const atomic_int ended = 1; /* the caller's work is to end */
    ot_watch w = {.stop = &ended}, *before = ot_watch_use(&w);
    b = (pack_budget){0};
    assert_int_equal(pack_search(&in.p, 4000, 0, OT_PACK_RULES_ALL, &b, offsets, &answer), OT_OK);
    (void)ot_watch_use(before);
    assert_int_equal(answer, PACK_LIMIT);
    ot_pack_result r = pack(
        &in.p, &(ot_pack_options){.time_limit = 1e-6, .rules = OT_PACK_RULES_ALL}, offsets);
    assert_true(r.found && (r.timed_out || r.proved));
}

/* ---- corners ---- */

static void empty_and_never_alive(void **state)
{
    (void)state;
    ot_span all = {0, 4};
    ot_pack_item items[] = {item(0, 4, 0), item(0, 4, 3), item(0, 4, 5), item(0, 4, 7)};
    items[3].gaps = &all;
    items[3].n_gaps = 1;
    ot_pack_problem p = {items, 4};
    int64_t offsets[4];
    assert_int_equal(search_with(&p, 8, 0, OT_PACK_RULES_ALL, 0, offsets), PACK_FOUND);
    assert_int_equal(search_with(&p, 7, 0, OT_PACK_RULES_ALL, 0, offsets), PACK_NONE);
    ot_pack_result r = pack(&p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, offsets);
    assert_true(r.height == 8 && r.proved);
    p.n = 0;
    r = pack(&p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, offsets);
    assert_true(r.height == 0 && r.found && r.proved);
    items[3].size = 9; /* alive never, but it has to lie somewhere */
    p.n = 4;
    assert_int_equal(search_with(&p, 8, 0, OT_PACK_RULES_ALL, 0, offsets), PACK_NONE);
}

static void hints_come_first(void **state)
{
    (void)state;
    ot_pack_item items[] = {item(0, 4, 2), item(0, 4, 3), item(0, 4, 4)};
    ot_pack_problem p = {items, 3};
    int64_t offsets[3];
    items[0].hint = 7;
    items[1].hint = 0;
    items[2].hint = 3;
    assert_int_equal(search_with(&p, 9, 0, OT_PACK_RULES_ALL, 0, offsets), PACK_FOUND);
    for (uint32_t k = 0; k < 3; k++) assert_int_equal(offsets[k], items[k].hint);
}

static void large_numbers(void **state)
{
    (void)state;
    int64_t giga = (int64_t)1 << 58;
    ot_pack_item items[] = {item(0, 4, giga + 1), item(0, 2, giga - 1), item(2, 4, giga),
                            item(1, 3, 3)};
    ot_pack_problem p = {items, 4};
    int64_t offsets[4];
    items[3].fixed = giga + 1;
    ot_pack_result r = pack(&p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, offsets);
    assert_true(r.proved);
    assert_int_equal(r.height, 2 * giga + 4);
    r = pack(&p, &(ot_pack_options){.capacity = INT64_MAX, .rules = OT_PACK_RULES_ALL}, offsets);
    assert_true(r.found);
}

static void broken_items_are_named(void **state)
{
    (void)state;
    ot_span outside = {3, 6};
    ot_pack_item good = item(0, 4, 8), bad[8];
    for (uint32_t k = 0; k < 8; k++) bad[k] = good;
    bad[0].upper = 0;
    bad[1].size = -1;
    bad[2].alignment = 0;
    bad[3].fixed = -2;
    bad[4].fixed = 3;
    bad[4].alignment = 2;
    bad[5].gaps = &outside;
    bad[5].n_gaps = 1;
    bad[6].size = INT64_MAX;
    bad[7].fixed = 4; /* on the other's fixed place */
    for (uint32_t k = 0; k < 8; k++) {
        ot_pack_item items[] = {good, bad[k]};
        ot_pack_problem p = {items, 2};
        ot_diag d = {0};
        ot_pack_result r;
        int64_t offsets[2];
        if (k == 7) items[0].fixed = 0;
        assert_int_equal(
            ot_pack(&p, &(ot_pack_options){.rules = OT_PACK_RULES_ALL}, &d, offsets, &r),
            OT_E_INPUT);
        assert_non_null(strstr(d.message, k == 7 ? "0 and 1" : "1"));
    }
}

/* ---- memory ---- */

static long allocations_left;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(ptr, new_size) : NULL;
}

static void memory_runs_out(void **state)
{
    (void)state;
    instance in;
    int64_t offsets[LARGE];
    random_state = SEED + 6;
    cut_rectangle(&in, 120, 60, 400);
    in.items[5].alignment = 2;
    int failures = 0;
    ot_status st = OT_E_NOMEM;
    for (long allowed = 0; st != OT_OK && allowed < 1000; allowed++) {
        pack_budget b = {.step_limit = 3000};
        pack_answer answer;
        allocations_left = allowed;
        ot_set_alloc_hook(failing_hook);
        st = pack_search(&in.p, 402, 1, OT_PACK_RULES_ALL, &b, offsets, &answer);
        ot_set_alloc_hook(NULL);
        if (st != OT_OK) assert_int_equal(st, OT_E_NOMEM);
        failures += st != OT_OK;
    }
    assert_int_equal(st, OT_OK);
    assert_true(failures > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimum_of_small_instances),
        cmocka_unit_test(every_subset_of_rules),
        cmocka_unit_test(hashes_prove_nothing),
        cmocka_unit_test(capacities_around_the_optimum),
        cmocka_unit_test(cut_rectangles_fit_again),
        cmocka_unit_test(proofs_above_the_bound),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(limits_end_the_search),
        cmocka_unit_test(empty_and_never_alive),
        cmocka_unit_test(hints_come_first),
        cmocka_unit_test(large_numbers),
        cmocka_unit_test(broken_items_are_named),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
