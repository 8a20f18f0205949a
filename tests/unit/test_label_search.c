/* The tie-break's path by labels against all paths of small nets, where there are too many labels,
 * and where memory runs out. */
#include "random_nets.h"
#include "stingy.h"

/* Go through all paths from `at`. *best: of those within the limit; *any: there is one. */
static void every_path(const ot_net *m, uint32_t at, net_value v, net_value *best, bool *any)
{
    if (at + 1 == m->n_nodes) {
        if (v.time <= m->limit && (!*any || net_compare(&v, best) < 0)) *best = v;
        *any |= v.time <= m->limit;
        return;
    }
    for (uint32_t k = 0; k < m->n_arcs; k++) {
        net_value w = v;
        if (m->arcs[k].from != at) continue;
        net_add(&w, &m->arcs[k]);
        every_path(m, m->arcs[k].to, w, best, any);
    }
}

static void finds_what_brute_force_finds(void **state)
{
    (void)state;
    uint32_t n_found = 0, n_none = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        ot_arena *a = ot_arena_new();
        random_net x;
        net_value best = {0};
        bool any = false, found;
        net_make(&x, seed, 2 + (uint32_t)(seed % 7), (uint32_t)(seed % 14), a);
        if (seed % 5 == 0) x.m.limit -= 0.5; /* a path may take just as long */
        every_path(&x.m, 0, (net_value){0}, &best, &any);
        assert_int_equal(ot_net_labels(&x.m, x.used, &found), OT_OK);
        if (found != any) fail_msg("seed %d: a path is %s", (int)seed, any ? "missed" : "made up");
        if (found) {
            const net_value v = net_value_of(&x.m, x.used);
            if (net_compare(&best, &v) != 0)
                fail_msg(
                    "seed %d: peak %lld, %d loops, %d tiles, time %g; all paths: %lld, %d, %d, %g",
                    (int)seed, (long long)v.peak, (int)v.loops, (int)v.tiles, v.time,
                    (long long)best.peak, (int)best.loops, (int)best.tiles, best.time);
        }
        n_found += found;
        n_none += !found;
        ot_arena_free(a);
    }
    assert_true(n_found > 3000 && n_none > 500);
}

/* n stages of two arcs: 2^k seconds, or 2^k tiles. No way is better than another in both. */
static void make_powers(random_net *x, uint32_t n, ot_arena *a)
{
    x->m = (ot_net){.arena = a, .arcs = x->arcs, .n_nodes = n + 1, .limit = (1u << n) * 0.6};
    for (uint32_t k = 0; k < n; k++) {
        const ot_net_arc slow = {.from = k, .to = k + 1, .time = 1u << k, .peak = 8},
                         cut = {.from = k, .to = k + 1, .peak = 8, .tiles = 1u << k};
        x->arcs[x->m.n_arcs++] = slow;
        x->arcs[x->m.n_arcs++] = cut;
    }
}

static void many_labels(void **state)
{
    (void)state;
    for (uint32_t n = 10; n <= 18; n += 8) {
        ot_arena *a = ot_arena_new();
        random_net x;
        bool found;
        make_powers(&x, n, a);
        assert_int_equal(ot_net_labels(&x.m, x.used, &found), OT_OK);
        assert_true(found);
        const net_value v = net_value_of(&x.m, x.used);
        const uint32_t all = (1u << n) - 1;
        if (n == 10) /* as much time as there is goes for tiles */
            assert_int_equal(v.tiles, all - (uint32_t)x.m.limit);
        else /* too many ways: the fastest */
            assert_true(v.tiles == all && v.time == 0);
        ot_arena_free(a);
    }
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    ot_status st = OT_E_NOMEM;
    for (long n = 0; n < 1000 && st != OT_OK; n++) {
        ot_arena *a = ot_arena_new();
        random_net x;
        bool found;
        make_powers(&x, 10, a);
        allowed = n;
        ot_set_alloc_hook(stingy);
        st = ot_net_labels(&x.m, x.used, &found);
        ot_set_alloc_hook(NULL);
        assert_true(st == OT_E_NOMEM || (st == OT_OK && n > 4));
        ot_arena_free(a);
    }
    assert_int_equal(st, OT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_brute_force_finds),
        cmocka_unit_test(many_labels),
        cmocka_unit_test(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
