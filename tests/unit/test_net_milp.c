/* The tie-break's path by labels and by GLPK, on thousands of random nets: worth the same. */
#include "random_nets.h"

static void compare(uint64_t seed, uint32_t n_nodes, uint32_t n_regions, uint32_t *n_found)
{
    ot_arena *a = ot_arena_new();
    random_net x;
    bool found, milp_found, milp_used[NET_ARCS_MAX] = {false};
    net_make(&x, seed, n_nodes, n_regions, a);
    assert_int_equal(ot_net_labels(&x.m, x.used, &found), OT_OK);
    assert_int_equal(ot_net_milp(&x.m, milp_used, &milp_found), OT_OK);
    assert_int_equal(found, milp_found);
    if (found) {
        const net_value v = net_value_of(&x.m, x.used), w = net_value_of(&x.m, milp_used);
        if (net_compare(&v, &w) != 0)
            fail_msg(
                "seed %d: labels: peak %lld, %d loops, %d tiles, time %g; GLPK: %lld, %d, %d, %g",
                (int)seed, (long long)v.peak, (int)v.loops, (int)v.tiles, v.time, (long long)w.peak,
                (int)w.loops, (int)w.tiles, w.time);
    }
    *n_found += found;
    ot_arena_free(a);
}

static void small_nets(void **state)
{
    (void)state;
    uint32_t n_found = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++)
        compare(seed, 2 + (uint32_t)(seed % 12), (uint32_t)(seed % 31), &n_found);
    assert_true(n_found > 2500);
}

static void large_nets(void **state)
{
    (void)state;
    uint32_t n_found = 0;
    for (uint64_t seed = 1; seed <= 60; seed++)
        compare(seed, 20 + (uint32_t)(seed % 60), 60 + (uint32_t)(seed % 120), &n_found);
    assert_true(n_found > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_nets),
        cmocka_unit_test(large_nets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
