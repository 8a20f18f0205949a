/* What the user allows is kept by every step of the planner: the slowdown, the budget, and what
 * a plan gains. */
#include "select/search/plan_search.h"
#include "select/search/search.h"
#include "cases.h"
#include "region_prices.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* A chain of convolutions, activations, pools and sums with what was made before: an image
 * network in small. */
static ot_model *random_model(uint64_t seed, uint32_t n, ot_diag *d)
{
    static char text[16384];
    rng = seed;
    ot_model *m = NULL;
    uint32_t h = 64u << next_random(2), c = 4u << next_random(3);
    int len = snprintf(text, sizeof text,
                       "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,%u,%u,%u]\n", c, h,
                       h);
    for (uint32_t k = 0; k < n; k++)
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "  init %%w%u : float32[%u,%u,3,3] = random %u\n", k, c, c, k + 1);
    for (uint32_t k = 0, pooled = 0; k < n; k++) {
        uint32_t what = k == 0 ? 5 : next_random(6);
        const char *form = "  %%v%u = Conv(%%v%u, %%w%u) {pads=[1,1,1,1]}\n";
        if (what == 0) form = "  %%v%u = Relu(%%v%u)\n";
        if (what == 1 && k > 0 && pooled != k) form = "  %%v%u = Add(%%v%u, %%v%u)\n";
        if (what == 2 && pooled + 3 < k)
            form = "  %%v%u = MaxPool(%%v%u) {kernel_shape=[2,2], strides=[2,2]}\n", pooled = k + 1;
        len += snprintf(text + len, sizeof text - (size_t)len, form, k + 1, k,
                        what == 1 && pooled != k ? k - 1 : k);
    }
    snprintf(text + len, sizeof text - (size_t)len, "  output %%v%u\n}\n", n);
    if (ot_text_parse(text, strlen(text), d, &m) != OT_OK) fail_msg("%s\n%s", d->message, text);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    return m;
}

static ot_target small_target(bool is_cache)
{
    return (ot_target){.fast_bytes = 1 << 17,
                       .granule = 64,
                       .cores = 1,
                       .is_cache = is_cache,
                       .runtime = ot_runtime_of(is_cache, false),
                       .bw_fast = 100e9,
                       .bw_mid = 20e9,
                       .bw_slow = 4e9,
                       .rate_conv = 400e9,
                       .rate_conv_depthwise = 20e9,
                       .rate_conv_pointwise = 40e9,
                       .rate_gemm = 50e9,
                       .rate_elem = 5e9,
                       .rate_trans = 1e9,
                       .rate_reduce = 5e9,
                       .rate_pool = 5e9,
                       .node_overhead = 2e-7,
                       .loop_overhead = 2e-7,
                       .region_overhead = 1e-6};
}

/* Exact figures of the whole plan, not what the search estimated, are within the limit; and
 * memory is still saved. */
static void slowdown_is_kept(void **state)
{
    (void)state;
    const double allowed[] = {0, 0.01, 0.05};
    uint32_t leaner = 0;
    for (uint64_t seed = 1; seed <= CASES(120); seed++) {
        ot_diag d = {0};
        ot_model *m = random_model(seed, 4 + (uint32_t)(seed % 14), &d);
        ot_target t = small_target(seed % 4 != 0);
        ot_plan_options o = {
            .goal = OT_GOAL_MEMORY, .max_slowdown = allowed[seed % 3], .tie_break = true};
        ot_plan *p;
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        double untiled = p->untiled.time_s, tiled = p->tiled.time_s;
        if (tiled > untiled * (1 + o.max_slowdown) * (1 + 1e-9))
            fail_msg("seed %llu: %.6f times as long, %.2f allowed", (unsigned long long)seed,
                     tiled / untiled, 1 + o.max_slowdown);
        leaner += p->tiled.peak_bytes < p->untiled.peak_bytes;
        ot_plan_free(p);
        ot_model_free(m);
    }
    /* the test means something only when many do */
    if (leaner < CASES(30)) fail_msg("only %u plans save memory", leaner);
}

/* A plan that keeps the budget and the slowdown, or no plan. */
static void both_limits_are_kept(void **state)
{
    (void)state;
    uint32_t met = 0, missed = 0;
    for (uint64_t seed = 1; seed <= CASES(60); seed++) {
        ot_diag d = {0};
        ot_model *m = random_model(seed * 31, 5 + (uint32_t)(seed % 12), &d);
        ot_target t = small_target(true);
        ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.02, .tie_break = true};
        ot_plan *p;
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        o.memory_budget = p->tiled.peak_bytes +
                          (seed % 2 ? 0 : (p->untiled.peak_bytes - p->tiled.peak_bytes) / 2);
        ot_plan_free(p);
        ot_status st = ot_plan_graph(m->graph, &t, &o, &p);
        if (st == OT_OK) {
            assert_true(p->tiled.peak_bytes <= o.memory_budget);
            assert_true(p->tiled.time_s <= p->untiled.time_s * 1.02 * (1 + 1e-9));
            ot_plan_free(p);
            met++;
        } else {
            assert_int_equal(st, OT_E_BUDGET);
            missed++;
        }
        ot_model_free(m);
    }
    if (met < CASES(50))
        fail_msg("%u budgets met that a plan is known for, %u missed", met, missed);
}

/* Ties are broken for less memory, not for what the plan was made for: nearly all of the gain
 * stays. */
static void ties_keep_the_gain(void **state)
{
    (void)state;
    uint32_t gaining = 0;
    for (uint64_t seed = 1; seed <= CASES(120); seed++) {
        ot_diag d = {0};
        ot_model *m = random_model(seed * 17, 6 + (uint32_t)(seed % 12), &d);
        ot_target t = small_target(false);
        ot_plan_options o = {.goal = OT_GOAL_TIME, .tie_break = true};
        ot_arena *a = ot_arena_new();
        ot_seq s;
        ot_walk w;
        ot_interval_path path;
        t.bw_slow = 20e9; /* little to gain: half a percent of the time is much of it */
        assert_int_equal(ot_seq_build(m->graph, a, &s), OT_OK);
        assert_int_equal(ot_cost_fill(&s, &t), OT_OK);
        assert_int_equal(ot_walk_new(&s, &w), OT_OK);
        ot_trial *tr = ot_trial_new(&s, &t, &o);
        assert_non_null(tr);
        assert_int_equal(ot_dp_solve(&s, &w, tr, &t, &o, NULL, NULL, &path), OT_OK);
        double gain = s.time[s.n] - path.time;
        assert_int_equal(ot_tie_break(&s, &t, &o, &path), OT_OK);
        double left = s.time[s.n] - path.time;
        if (left < gain * 0.94)
            fail_msg("seed %llu: of %.9f ms, %.9f are left", (unsigned long long)seed, gain * 1e3,
                     left * 1e3);
        gaining += gain > 0;
        ot_arena_free(a);
        ot_model_free(m);
    }
    if (gaining < CASES(30)) fail_msg("only %u plans gain time", gaining);
}

/* Long chains, in which no tile ever grows too large to follow: the search counts its work and
 * ends. */
static void work_is_bounded(void **state)
{
    (void)state;
    enum { N = 3000 };
    static char text[N * 32 + 256];
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Abs"};
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_target t = small_target(true);
    ot_plan_options o = {.goal = OT_GOAL_TIME};
    int len = snprintf(text, sizeof text,
                       "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,8,256,256]\n");
    for (uint32_t k = 0; k < N; k++)
        len += snprintf(text + len, sizeof text - (size_t)len, "  %%v%u = %s(%%v%u)\n", k + 1,
                        ops[k % 4], k);
    snprintf(text + len, sizeof text - (size_t)len, "  output %%v%u\n}\n", N);
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    ot_arena *a = ot_arena_new();
    ot_seq s;
    ot_walk w;
    ot_interval_path path;
    assert_int_equal(ot_seq_build(m->graph, a, &s), OT_OK);
    assert_int_equal(ot_cost_fill(&s, &t), OT_OK);
    assert_int_equal(ot_walk_new(&s, &w), OT_OK);
    ot_trial *tr = ot_trial_new(&s, &t, &o);
    assert_non_null(tr);
    assert_int_equal(ot_dp_solve(&s, &w, tr, &t, &o, NULL, NULL, &path), OT_OK);
    assert_true(ot_trial_work(tr) < 8100000); /* 27 million without a limit */
    assert_true(path.time < s.time[s.n] * 0.7);
    /* the limit is spread evenly: the end of the chain is tiled as its beginning is */
    uint32_t last = 0;
    for (uint32_t k = 0; k < path.n; k++)
        if (path.n > 0) last = path.steps[k]->end;
    assert_true(last > N - 10);
    ot_arena_free(a);
    ot_model_free(m);
}

/* A limit on tensors is kept by what the graph says of every value, for both goals; a value that
 * cannot be cut is named. */
static void tensors_are_small(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES(24); seed++) {
        ot_diag d = {0};
        ot_model *m = random_model(seed, 8, &d);
        ot_graph *g = m->graph;
        ot_target t = small_target(true);
        ot_plan *p = NULL;
        int64_t least = 0;
        for (ot_id v = 0; v < g->n_values; v++) {
            int64_t b;
            if ((g->values[v].is_input || g->values[v].is_output || g->values[v].init) &&
                ot_value_bytes(&g->values[v], &b))
                least = ot_max(least, b);
        }
        ot_plan_options o = {.goal = seed % 2 ? OT_GOAL_TIME : OT_GOAL_MEMORY,
                             .max_slowdown = 0.1,
                             .max_tensor = least};
        ot_status st = ot_plan_graph(g, &t, &o, &p);
        if (st == OT_OK) {
            if (check_plan_and_prices(g, p, &t, &o, &d) != OT_OK)
                fail_msg("seed %u: %s", (unsigned)seed, d.message);
        } else {
            assert_int_equal(st, OT_E_BUDGET);
            if (!strstr(d.message, "max tensor cannot be kept: 'v"))
                fail_msg("seed %u: %s", (unsigned)seed, d.message);
        }
        ot_plan_free(p);
        d = (ot_diag){0};
        o.max_tensor = 1000;
        assert_int_equal(ot_plan_graph(g, &t, &o, &p), OT_E_BUDGET);
        assert_non_null(
            strstr(d.message, "1000 B are allowed: inputs, outputs and constants are not cut"));
        ot_model_free(m);
    }
}

/* The checker sees a whole value above the limit, whatever the plan says. */
static void whole_tensors_are_seen(void **state)
{
    (void)state;
    static const char text[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,2,64,64]\n  "
                               "init %w : float32[16,2,3,3] = random 1\n"
                               "  init %v : float32[2,16,3,3] = random 2\n  %a = Conv(%x, %w) "
                               "{pads=[1,1,1,1]}\n  %b = Relu(%a)\n"
                               "  %y = Conv(%b, %v) {pads=[1,1,1,1]}\n  output %y\n}\n";
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_plan *p = NULL;
    ot_target t = small_target(true);
    ot_plan_options o = {.goal = OT_GOAL_TIME},
                    limited = {.goal = OT_GOAL_TIME, .max_tensor = 65536};
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &limited, &p), OT_OK);
    assert_true(p->n_regions == 1 && p->regions[0].n_nodes == 3 && p->regions[0].largest <= 65536);
    assert_int_equal(check_plan_and_prices(m->graph, p, &t, &limited, &d), OT_OK);
    p->n_regions = 0;
    p->tiled = p->untiled;
    assert_int_equal(check_plan_and_prices(m->graph, p, &t, &o, &d), OT_OK);
    assert_int_equal(check_plan_and_prices(m->graph, p, &t, &limited, &d), OT_E_INPUT);
    assert_non_null(strstr(d.message, "above the limit is whole"));
    ot_plan_free(p);
    ot_model_free(m);
}

static ot_region form(double time, int64_t peak)
{
    return (ot_region){.time_tiled = time, .time_untiled = 10, .benefit = 10 - time, .peak = peak};
}

/* Under a budget, forms are still compared with the fastest that keeps it. */
static void form_within_budget(void **state)
{
    (void)state;
    ot_plan_options o = {.goal = OT_GOAL_MEMORY, .memory_budget = 100};
    ot_region forms[] = {form(5, 200), form(8, 100), form(8.2, 90), form(20, 50), form(-1, 10)};
    /* not the slowest, and not the one that is too large */
    assert_int_equal(ot_best_form(&o, forms, 5, 100), 2);
    /* 8.2 would lose more than there is to lose */
    assert_int_equal(ot_best_form(&o, forms, 5, -1.9), 1);
    o.memory_budget = 60;
    assert_int_equal(ot_best_form(&o, forms, 5, 100), 3);
    o.memory_budget = 40; /* nothing keeps it: as if there were none */
    assert_int_equal(ot_best_form(&o, forms, 5, 100), 0);
    assert_int_equal(ot_best_form(&o, forms + 4, 1, 100), OT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slowdown_is_kept),       cmocka_unit_test(both_limits_are_kept),
        cmocka_unit_test(ties_keep_the_gain),     cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(form_within_budget),     cmocka_unit_test(tensors_are_small),
        cmocka_unit_test(whole_tensors_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
