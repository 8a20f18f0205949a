/* What planning leaves out of large graphs and of long axes: nodes that do not run count for
 * nothing, steps of few bytes are not taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "shaped_model.h"
#include "onnx/graph/ir.h"
#include "select/search/search.h"
#include "select/select.h"

enum { TEXT = 1 << 16, STATICS = CASES(700), SKIPS = 200, PLANS = CASES(40) };

/* What the process grows by with the plan for least memory. The graph's result is reshaped to
 * what so many nodes hand on from a constant. */
static int64_t growth_with(uint32_t statics)
{
    static char text[TEXT];
    ot_diag d;
    ot_target t;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .tie_break = true};
    size_t len = (size_t)snprintf(
        text, TEXT,
        "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,3,640,640]\n  init %%s0 : "
        "int64[1] = [-1]\n"
        "  init %%w0 : float32[16,3,7,7] = random 1\n  init %%w1 : float32[16,16,3,3] = random 2\n"
        "  init %%w2 : float32[32,16,3,3] = random 3\n  init %%w3 : float32[32,32,3,3] = random 4\n"
        "  init %%w4 : float32[64,32,3,3] = random 5\n  init %%w5 : float32[64,64,3,3] = random 6\n"
        "  %%a = Conv(%%x, %%w0) {strides=[2,2],pads=[3,3,3,3]}\n  %%b = Relu(%%a)\n"
        "  %%c = MaxPool(%%b) {kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1]}\n"
        "  %%d = Conv(%%c, %%w1) {pads=[1,1,1,1]}\n  %%e = Relu(%%d)\n  %%f = Conv(%%e, %%w1) "
        "{pads=[1,1,1,1]}\n  %%g = Relu(%%f)\n"
        "  %%h = Conv(%%g, %%w2) {strides=[2,2],pads=[1,1,1,1]}\n  %%i = Relu(%%h)\n  %%j = "
        "Conv(%%i, %%w3) {pads=[1,1,1,1]}\n"
        "  %%k = Relu(%%j)\n  %%l = Conv(%%k, %%w4) {strides=[2,2],pads=[1,1,1,1]}\n  %%m = "
        "Relu(%%l)\n"
        "  %%n = Conv(%%m, %%w5) {pads=[1,1,1,1]}\n  %%o = Relu(%%n)\n  %%r = ReduceMax(%%o) "
        "{axes=[1]}\n");
    for (uint32_t k = 0; k < statics; k++)
        len += (size_t)snprintf(text + len, TEXT - len, "  %%s%u = Identity(%%s%u)\n", k + 1, k);
    snprintf(text + len, TEXT - len, "  %%y = Reshape(%%r, %%s%u)\n  output %%y\n}\n", statics);
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    assert_int_equal(ot_select_plan(m->graph, &t, &o, true, &p), OT_OK);
    const int64_t growth = p->tiled.growth_bytes;
    assert_in_range(growth, 1, p->untiled.growth_bytes);
    ot_plan_free(p);
    ot_model_free(m);
    return growth;
}

/* Exporters write shape arithmetic for every second node: the graph gets the same plans without it.
 */
static void static_nodes_do_not_count(void **state)
{
    (void)state;
    const int64_t alone = growth_with(0), among = growth_with(STATICS);
    print_message("%lld bytes, among %d static nodes %lld\n", (long long)alone, STATICS,
                  (long long)among);
    assert_true(among <= alone + alone / 20);
}

/* A row of 64 channels of a sound is 256 bytes: a step of streaming makes more of them than one,
 * though one is asked for. */
static void steps_are_not_tiny(void **state)
{
    (void)state;
    ot_diag d;
    ot_target t;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY,
                               .max_slowdown = 9,
                               .force_form = OT_FORM_STREAM,
                               .search.stream_rows = 1};
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,64,8192]\n  "
                             "init %w : float32[64,64,3] = random 1\n"
                             "  init %s : float32[64,1] = random 2\n  %a = Conv(%x, %w) "
                             "{pads=[1,1]}\n  %b = PRelu(%a, %s)\n"
                             "  %c = Conv(%b, %w) {pads=[1,1]}\n  %z = PRelu(%c, %s)\n  %y = "
                             "ReduceMax(%z) {axes=[1]}\n  output %y\n}\n",
                             &d);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    assert_true(p->n_regions > 0);
    for (uint32_t k = 0; k < p->n_regions; k++)
        assert_in_range(p->regions[k].dims[0].tile, 32, 1024);
    ot_plan_free(p);
    ot_model_free(m);
}

/* x -> v1 -> ... -> vn, and all of them are added up from the last back to the first: an interval
 * of the sums reads as many values as it has nodes. */
static ot_model *read_nested_skips(ot_diag *d)
{
    static char text[TEXT];
    size_t len = (size_t)snprintf(text, TEXT, "%s",
                                  "model ir 8 opset 17\ngraph g {\n  input %x : "
                                  "float32[1,4,16,16]\n  %v0 = Relu(%x)\n");
    for (int k = 1; k < SKIPS; k++)
        len += (size_t)snprintf(text + len, TEXT - len, "  %%v%d = Relu(%%v%d)\n", k, k - 1);
    len += (size_t)snprintf(text + len, TEXT - len, "  %%u%d = Add(%%v%d, %%v%d)\n", SKIPS - 1,
                            SKIPS - 1, SKIPS - 2);
    for (int k = SKIPS - 2; k > 0; k--)
        len += (size_t)snprintf(text + len, TEXT - len, "  %%u%d = Add(%%u%d, %%v%d)\n", k, k + 1,
                                k - 1);
    snprintf(text + len, TEXT - len, "  output %%u1\n}\n");
    return read_model(text, d);
}

/* Of plans that share no intervals the first may do all that one plan may, the others a part: a
 * graph of a few kilobytes does not take minutes because it has many of them. */
static void work_of_all_plans_has_a_limit(void **state)
{
    (void)state;
    ot_diag d;
    ot_target t;
    ot_planner *x = NULL;
    const ot_plan_options o = {
        .goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .search.byte_seconds = 5e-10};
    ot_model *m = read_nested_skips(&d);
    uint64_t first = 0, all;
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_planner_open(m->graph, &t, &x), OT_OK);
    for (int k = 0; k < PLANS; k++) {
        ot_plan *p = NULL;
        assert_int_equal(ot_planner_plan(x, &o, &p), OT_OK);
        ot_plan_free(p);
        if (k == 0) first = ot_trial_work(x->tr);
    }
    all = ot_trial_work(x->tr);
    print_message("work of the first plan %llu, of %d plans %llu\n", (unsigned long long)first,
                  PLANS, (unsigned long long)all);
    assert_in_range(first, 4000000, 9000000);
    assert_in_range(all, first + 1, 50000000);
    ot_planner_close(x);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(static_nodes_do_not_count),
                                       cmocka_unit_test(steps_are_not_tiny),
                                       cmocka_unit_test(work_of_all_plans_has_a_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
