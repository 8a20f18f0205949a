/* Plans that are scored by what a process grows by. Random cases print their seed. */
#include "alloc_sim/simulate.h"
#include "alloc_sim/alloc_sim.h"
#include "transform/transform.h"
#include "select/select.h"
#include "shaped_model.h"
#include "region_prices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB (INT64_C(1) << 20)

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

enum { TEXT = 8192 };

static void random_text(char *buf, uint32_t n)
{
    uint32_t c = 8u << next_random(3), h = 64u << next_random(3);
    size_t len = (size_t)snprintf(
        buf, TEXT, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,%u,%u,%u]\n", c, h, h);
#define PUT(...) len += (size_t)snprintf(buf + len, TEXT - len, __VA_ARGS__)
    PUT("  init %%w : float32[%u,%u,3,3] = random 1\n", c, c);
    for (uint32_t k = 0; k < n; k++) {
        switch (next_random(5)) {
        case 0: PUT("  %%v%u = Add(%%v%u, %%v%u)\n", k + 1, k, next_random(k + 1)); break;
        case 1: PUT("  %%v%u = Relu(%%v%u)\n", k + 1, k); break;
        case 2:
            PUT("  %%v%u = MaxPool(%%v%u) {kernel_shape=[3,3],pads=[1,1,1,1]}\n", k + 1, k);
            break;
        default: PUT("  %%v%u = Conv(%%v%u, %%w) {pads=[1,1,1,1]}\n", k + 1, k); break;
        }
    }
    PUT("  output %%v%u\n}\n", n);
#undef PUT
}

/* Goal memory never ends above the untiled model; what is left out is listed with its reason;
 * the plan passes the checker. */
static void scored_plans_are_never_worse(void **state)
{
    (void)state;
    static char text[TEXT];
    uint32_t tiled = 0, untiled = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        ot_diag d;
        ot_target t;
        ot_plan *p = NULL;
        const ot_plan_options o = {.goal = OT_GOAL_MEMORY,
                                   .max_slowdown = 0.1 * (double)(seed % 3),
                                   .tie_break = seed % 2 == 0};
        rng = seed;
        random_text(text, 2 + next_random(9));
        ot_model *m = read_model(text, &d);
        assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        uint32_t before = m->graph->n_nodes;
        if (ot_select_plan(m->graph, &t, &o, true, &p) != OT_OK)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, d.message, text);
        assert_int_equal(m->graph->n_nodes, before); /* plans are tried on copies */
        assert_true(p->untiled.growth_bytes > 0);
        bool won = (double)p->tiled.growth_bytes <= 0.88 * (double)p->untiled.growth_bytes;
        bool same = p->n_regions == 0 && !p->in_branch &&
                    p->tiled.growth_bytes == p->untiled.growth_bytes;
        if (!won && !same)
            fail_msg("seed %llu: %u regions, growth %lld of %lld\n%s", (unsigned long long)seed,
                     p->n_regions, (long long)p->tiled.growth_bytes,
                     (long long)p->untiled.growth_bytes, text);
        if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, d.message, text);
        tiled += won;
        untiled += same;
        ot_plan_free(p);
        ot_model_free(m);
    }
    assert_true(tiled > 0 && untiled > 0); /* both happen */
}

/* The same for OpenVINO, where regions that save time but no memory are taken out: what is left
 * keeps to a slowdown that is hardly any, or none. */
static void plans_keep_to_little_slowdown(void **state)
{
    (void)state;
    static char text[TEXT];
    for (uint64_t seed = 1; seed <= 120; seed++) {
        ot_diag d;
        ot_target t;
        ot_plan *p = NULL;
        const ot_plan_options o = {.goal = OT_GOAL_MEMORY,
                                   .max_slowdown = 0.01 * (double)(seed % 3),
                                   .tie_break = seed % 2 == 0};
        rng = seed;
        random_text(text, 4 + next_random(20));
        ot_model *m = read_model(text, &d);
        assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
        assert_int_equal(ot_target_set_runtime(&t, "openvino", &d), OT_OK);
        if (ot_plan_graph(m->graph, &t, &o, &p) != OT_OK ||
            ot_select_plan(m->graph, &t, &o, true, &p) != OT_OK)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, d.message, text);
        if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, d.message, text);
        assert_true(p->tiled.growth_bytes <= p->untiled.growth_bytes);
        ot_plan_free(p);
        ot_model_free(m);
    }
}

/* A plan for one form that tiles nothing is no win of that form: what the first plan tiled is
 * left out because the process would not grow by less, not because that one form cannot express
 * it. */
static void idle_plans_say_why(void **state)
{
    (void)state;
    ot_diag d;
    ot_target t;
    ot_plan *p = NULL;
    uint32_t idle = 0;
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .tie_break = true};
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,64,60,64]\n  "
                             "init %s : float32[64,1,1] = random 1\n"
                             "  init %w : float32[64,64,3,3] = random 2\n  %a = Conv(%x, %w) "
                             "{pads=[1,1,1,1]}\n  %b = PRelu(%a, %s)\n"
                             "  %c = Conv(%b, %w) {pads=[1,1,1,1]}\n  %d = PRelu(%c, %s)\n  %e = "
                             "Conv(%d, %w) {pads=[1,1,1,1]}\n"
                             "  %f = PRelu(%e, %s)\n  %g = Conv(%f, %w) {pads=[1,1,1,1]}\n  %y = "
                             "PRelu(%g, %s)\n  output %y\n}\n",
                             &d);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    assert_true(p->n_regions > 0);
    assert_int_equal(ot_select_plan(m->graph, &t, &o, true, &p), OT_OK);
    assert_int_equal(p->n_regions, 0);
    for (uint32_t k = 0; k < p->n_refused; k++) {
        assert_int_not_equal(p->refused[k].reason.why, OT_WHY_NO_EXACT_FORM);
        idle += p->refused[k].reason.why == OT_WHY_GROWTH;
    }
    assert_true(idle > 0);
    ot_plan_free(p);
    ot_model_free(m);
}

static bool is_tiled(const ot_graph *g, const ot_plan *p, const char *made)
{
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++)
            if (strcmp(g->values[g->nodes[p->regions[k].nodes[i].node].out[0]].name, made) == 0)
                return true;
    return false;
}

/* With a price for bytes, convolutions that are not where the model's peak is are tiled, too;
 * the plan keeps what is allowed of time. Sets of several plans' regions pass the checker, and
 * are no worse than the plan that they began with. */
static void bytes_have_a_price(void **state)
{
    (void)state;
    ot_diag d;
    ot_target t;
    ot_plan *plain = NULL, *paid = NULL;
    ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .tie_break = true};
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,512]\n  init %w : "
        "float32[40,16,3,3] = random 1\n"
        "  init %u : float32[40,40,3,3] = random 2\n  init %z : float32[4,40,3,3] = random 3\n  %a "
        "= Softmax(%x) {axis=1}\n"
        "  %b = LpNormalization(%a) {axis=2}\n  %c = LpNormalization(%b) {axis=3}\n  %d = "
        "LpNormalization(%c) {axis=2}\n"
        "  %e = Sum(%a, %b, %c, %d)\n  %p = MaxPool(%e) {kernel_shape=[2,2],strides=[2,2]}\n"
        "  %f = Conv(%p, %w) {pads=[1,1,1,1]}\n  %g = Conv(%f, %u) {pads=[1,1,1,1]}\n  %h = "
        "Conv(%g, %u) {pads=[1,1,1,1]}\n"
        "  %i = Conv(%h, %z) {pads=[1,1,1,1]}\n  %y = ReduceMax(%i) {axes=[1]}\n  output %y\n}\n",
        &d);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &plain), OT_OK);
    o.search.level = plain->untiled.peak_bytes / 5;
    o.search.price = 8 * plain->untiled.time_s /
                     ((double)plain->untiled.peak_bytes * m->graph->n_nodes);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &paid), OT_OK);
    assert_false(is_tiled(m->graph, plain, "g"));
    assert_true(is_tiled(m->graph, paid, "g"));
    assert_true(paid->tiled.time_s <= 1.1 * paid->untiled.time_s + 1e-9);
    o.search.price = 0;
    o.search.level = 0;
    assert_int_equal(ot_select_plan(m->graph, &t, &o, true, &plain), OT_OK);
    if (check_plan_and_prices(m->graph, plain, &t, &o, &d) != OT_OK) fail_msg("%s", d.message);
    assert_in_range(plain->tiled.growth_bytes, 1, plain->untiled.growth_bytes * 7 / 10);
    ot_plan_free(plain);
    ot_plan_free(paid);
    ot_model_free(m);
}

/* A branch is for goal memory, for runtimes that take sequences, and for opsets that have them. */
static void branches_are_scored(void **state)
{
    (void)state;
    static const struct {
        int opset;
        ot_goal goal;
        bool force;
        const char *runtime;
        bool branch;
    } cases[] = {{17, OT_GOAL_MEMORY, false, "onnxruntime", true},
                 {11, OT_GOAL_MEMORY, false, "onnxruntime", true},
                 {10, OT_GOAL_MEMORY, false, "onnxruntime", false},
                 {17, OT_GOAL_TIME, false, "onnxruntime", false},
                 {17, OT_GOAL_MEMORY, true, "onnxruntime", false},
                 {17, OT_GOAL_MEMORY, false, "portable", false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_diag d;
        ot_target t;
        ot_plan *p = NULL;
        char text[512];
        const ot_plan_options o = {.goal = cases[k].goal, .force = cases[k].force};
        snprintf(text, sizeof text,
                 "model ir 8 opset %d\ngraph g {\n  input %%x : float32[1,16,512,512]\n  %%a = "
                 "Softmax(%%x) {axis=1}\n"
                 "  %%b = Softmax(%%a) {axis=2}\n  %%c = Softmax(%%b) {axis=3}\n  %%y = "
                 "GlobalMaxPool(%%c)\n  output %%y\n}\n",
                 cases[k].opset);
        ot_model *m = read_model(text, &d);
        assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
        assert_int_equal(ot_target_set_runtime(&t, cases[k].runtime, &d), OT_OK);
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        assert_int_equal(ot_select_plan(m->graph, &t, &o, true, &p), OT_OK);
        if (p->in_branch != cases[k].branch)
            fail_msg("case %zu: %s", k, p->in_branch ? "a branch" : "no branch");
        if (cases[k].branch)
            assert_in_range(p->tiled.growth_bytes, 1, p->untiled.growth_bytes * 6 / 10);
        ot_plan_free(p);
        ot_model_free(m);
    }
}

/* A model of whose values no size is known has no figure. */
static void unknown_sizes_have_no_figure(void **state)
{
    (void)state;
    ot_diag d;
    ot_target t;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY};
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,?,8]\n  %a "
                             "= Exp(%x)\n  %y = Neg(%a)\n  output %y\n}\n",
                             &d);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    assert_int_equal(ot_select_plan(m->graph, &t, &o, true, &p), OT_OK);
    assert_int_equal(p->untiled.growth_bytes, 0);
    assert_int_equal(p->tiled.growth_bytes, 0);
    ot_plan_free(p);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_are_scored),
        cmocka_unit_test(bytes_have_a_price),
        cmocka_unit_test(scored_plans_are_never_worse),
        cmocka_unit_test(plans_keep_to_little_slowdown),
        cmocka_unit_test(unknown_sizes_have_no_figure),
        cmocka_unit_test(idle_plans_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
