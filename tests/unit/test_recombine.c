/* The best plan of regions that exist, against all sets of them. */
#include "select/search/search.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { NODES = 12, REGIONS = 9 };

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* A sequence without values, regions that take every node of their interval. */
typedef struct rig {
    ot_seq s;
    uint32_t pos[NODES];
    double time[NODES + 1];
    int64_t live[NODES];
    ot_rnode nodes[REGIONS][NODES];
    ot_region all[REGIONS];
    ot_region_pool pool;
} rig;

static void make(rig *x, ot_arena *a, uint64_t *state)
{
    memset(x, 0, sizeof *x);
    x->s = (ot_seq){.arena = a, .n = NODES, .pos = x->pos, .time = x->time, .live = x->live};
    for (uint32_t p = 0; p < NODES; p++) {
        x->pos[p] = p;
        x->time[p + 1] = x->time[p] + 1 + (double)(next(state) % 8);
        x->live[p] = (int64_t)(next(state) % 100);
    }
    for (uint32_t k = 0; k < REGIONS; k++) {
        ot_region *r = &x->all[k];
        r->first = (uint32_t)next(state) % NODES;
        r->last = r->first + (uint32_t)next(state) % (NODES - r->first);
        r->n_nodes = r->last - r->first + 1;
        r->nodes = x->nodes[k];
        for (uint32_t i = 0; i < r->n_nodes; i++) x->nodes[k][i].node = r->first + i;
        r->benefit = (double)(next(state) % 9) - 6;
        r->peak = (int64_t)(next(state) % 80);
    }
    x->pool = (ot_region_pool){x->all, REGIONS, REGIONS};
}

/* Figures of the plan with the regions of `set`; false: two of them overlap. */
static bool figures(const rig *x, uint32_t set, double *time, int64_t *peak)
{
    bool inside[NODES] = {false};
    *time = x->time[NODES];
    *peak = 0;
    for (uint32_t k = 0; k < REGIONS; k++) {
        if (!(set >> k & 1)) continue;
        for (uint32_t p = x->all[k].first; p <= x->all[k].last; p++) {
            if (inside[p]) return false;
            inside[p] = true;
        }
        *time -= x->all[k].benefit;
        *peak = ot_max(*peak, x->all[k].peak);
    }
    for (uint32_t p = 0; p < NODES; p++)
        if (!inside[p]) *peak = ot_max(*peak, x->live[p]);
    return true;
}

/* Least peak within the allowed time, then least time; for goal time, least time within the
 * budget, or at the least peak. */
static void best_of_all(const rig *x, const ot_plan_options *o, double *time, int64_t *peak)
{
    const double allowed = ot_time_allowed(&x->s, o) * (1 + 1e-12);
    double t;
    int64_t b, most = INT64_MAX;
    for (uint32_t set = 0; set < 1u << REGIONS; set++)
        if (figures(x, set, &t, &b) && t <= allowed) most = ot_min(most, b);
    if (o->goal == OT_GOAL_TIME) most = ot_max(most, o->memory_budget);
    *time = DBL_MAX;
    *peak = most;
    for (uint32_t set = 0; set < 1u << REGIONS; set++)
        if (figures(x, set, &t, &b) && b <= most && t < *time) *time = t;
}

static void equals_exhaustive(void **state)
{
    (void)state;
    uint64_t seed = 1, random = seed;
    ot_region out[REGIONS];
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint32_t round = 0; round < 600; round++) {
        ot_arena *a = ot_arena_new();
        static rig x;
        make(&x, a, &random);
        ot_plan_options o = {.goal = OT_GOAL_MEMORY,
                             .max_slowdown = 0.05 * (double)(next(&random) % 8),
                             .search.first_region = 7};
        if (round % 3 == 0)
            o = (ot_plan_options){.goal = OT_GOAL_TIME,
                                  .memory_budget = 20 + (int64_t)(next(&random) % 80)};
        uint32_t n = 0, set = 0;
        double want_time, time;
        int64_t want_peak, peak;
        assert_int_equal(ot_recombine(&x.s, &o, &x.pool, out, &n), OT_OK);
        for (uint32_t k = 0; k < n; k++) {
            assert_int_equal(out[k].id, o.search.first_region + k);
            assert_true(k == 0 || out[k].first > out[k - 1].last);
            for (uint32_t j = 0; j < REGIONS; j++)
                if (out[k].nodes == x.all[j].nodes) set |= 1u << j;
        }
        assert_true(figures(&x, set, &time, &peak));
        best_of_all(&x, &o, &want_time, &want_peak);
        if (peak > want_peak || time > want_time + 1e-9 || time < want_time - 1e-9)
            fail_msg("round %u: %g s and %lld bytes, %g and %lld are possible", round, time,
                     (long long)peak, want_time, (long long)want_peak);
        ot_arena_free(a);
    }
}

/* An untiled node of a region's interval runs beside what is there, without the values that
 * tiles keep to themselves. */
static void interval_counts_what_runs_in_it(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    uint32_t pos[3] = {0, 1, 2}, def[1] = {0}, last[1] = {2}, n = 0;
    double time[4] = {0, 1, 2, 3};
    int64_t live[3] = {50, 90, 50}, held[1] = {40};
    ot_rnode nodes[2] = {{.node = 0}, {.node = 2}};
    ot_rvalue values[1] = {{.value = 0, .node = 0}};
    ot_region r = {.nodes = nodes,
                   .n_nodes = 2,
                   .values = values,
                   .n_values = 1,
                   .last = 2,
                   .peak = 10,
                   .benefit = -1},
              out[1];
    ot_seq s = {.arena = a,
                .n = 3,
                .pos = pos,
                .def = def,
                .last = last,
                .time = time,
                .live = live,
                .held = held};
    ot_region_pool pool = {&r, 1, 1};
    ot_plan_options o = {.goal = OT_GOAL_TIME, .memory_budget = 50};
    /* 90 - 40 bytes while node 1 runs */
    assert_int_equal(ot_recombine(&s, &o, &pool, out, &n), OT_OK);
    assert_int_equal(n, 1);
    held[0] = 39;
    o.memory_budget = 0;
    o.goal = OT_GOAL_MEMORY;
    o.max_slowdown = 1;
    assert_int_equal(ot_recombine(&s, &o, &pool, out, &n), OT_OK); /* still lower than 90 */
    assert_int_equal(n, 1);
    o.max_slowdown = 0.1; /* it takes a second more */
    assert_int_equal(ot_recombine(&s, &o, &pool, out, &n), OT_OK);
    assert_int_equal(n, 0);
    ot_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_exhaustive),
                                       cmocka_unit_test(interval_counts_what_runs_in_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
