/* Which of two sets of regions a search takes: by what they take, and by what they save of time.
 */
#include "select/candidates.h"

#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A set of one region, of steps 0 to `last`. */
typedef struct one {
    ot_region r;
    ot_region_set set;
} one;

static one of(ot_form form, uint32_t last, int64_t bytes, double gain)
{
    return (one){.r = {.form = form, .last = last, .benefit = gain},
                 .set = {.n = 1, .bytes = bytes, .gain = gain}};
}

/* a is chosen, whichever of them came first. No region can come out in the time that is allowed,
 * none can come in. */
static bool is_chosen(one a, one b)
{
    const ot_plan_options o = {.max_slowdown = -1};
    bool chosen = true;
    a.set.all = &a.r;
    b.set.all = &b.r;
    for (int order = 0; order < 2; order++) {
        ot_arena *arena = ot_arena_new();
        ot_region_set sets[2] = {order ? b.set : a.set, order ? a.set : b.set}, won = {0};
        ot_candidates x = {.o = o,
                           .untiled_s = 100,
                           .base.untiled = 1000,
                           .arena = arena,
                           .sets = sets,
                           .n_sets = 2,
                           .cap_sets = 2};
        assert_non_null(arena);
        assert_int_equal(ot_candidates_search(&x, &won), OT_OK);
        chosen = chosen && won.bytes == a.set.bytes;
        ot_arena_free(arena);
    }
    return chosen;
}

static bool comes_in(one now, one then)
{
    const ot_candidates x = {.base.untiled = 1000};
    now.set.all = &now.r;
    then.set.all = &then.r;
    return ot_candidates_comes_in(&x, &then.r, &now.set, &then.set);
}

static void test_less_memory_or_about_as_much_in_less_time(void **state)
{
    (void)state;
    assert_true(is_chosen(of(OT_FORM_LOOP, 5, 90, 101), of(OT_FORM_LOOP, 7, 100, 109)));
    assert_true(is_chosen(of(OT_FORM_LOOP, 7, 100, 109), of(OT_FORM_LOOP, 5, 99, 101)));
}

static void test_slower_steps_save_a_twentieth(void **state)
{
    (void)state;
    const one tiles = of(OT_FORM_LOOP, 5, 100, 5), none = {.set.bytes = 100};
    assert_false(comes_in(tiles, of(OT_FORM_STREAM, 7, 96, 1)));
    assert_true(comes_in(tiles, of(OT_FORM_STREAM, 7, 94, 1)));
    assert_true(comes_in(tiles, of(OT_FORM_STREAM, 7, 96, 9))); /* no slower */
    assert_true(comes_in(tiles, of(OT_FORM_LOOP, 7, 96, 1)));   /* tiles */
    /* the untiled model's time does not count */
    assert_true(comes_in(none, of(OT_FORM_STREAM, 7, 96, -1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_less_memory_or_about_as_much_in_less_time),
        cmocka_unit_test(test_slower_steps_save_a_twentieth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
