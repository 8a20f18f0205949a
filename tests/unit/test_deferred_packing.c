/* Weights that are packed when they are used, and BatchNormalizations that are folded before:
 * what is written, in which order, and when it is chosen. */
#include "machine/target/target.h"
#include "transform/transform.h"
#include "select/select.h"
#include "shaped_model.h"
#include "region_prices.h"

#include <math.h>

/* Node that makes value `name`. */
static const ot_node *maker(const ot_graph *g, const char *name)
{
    const ot_id v = ot_value_find(g, name);
    if (v == OT_NONE || g->values[v].producer == OT_NONE) fail_msg("nobody makes %s", name);
    return &g->nodes[g->values[v].producer];
}

static const float *contents(const ot_graph *g, ot_id v) { return g->values[v].init->data; }

#define NORM                                                                                       \
    "  init %s : float32[2] = [2, 4]\n  init %o : float32[2] = [1, -1]\n  init %m : float32[2] = " \
    "[0.5, 3]\n  init %v : float32[2] = [4, 0.25]\n"

/* Two convolutions with the same weights and normalisation get the same folded ones, a third
 * with another epsilon its own. */
static void normalisations_are_folded_once(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,1,4,4]\n  init %w : "
        "float32[2,1,1,1] = [3, 5]\n"
        "  init %b : float32[2] = [10, 20]\n" NORM "  %a = Conv(%x, %w, %b)\n"
        "  %ya = BatchNormalization(%a, %s, %o, %m, %v) {epsilon=0.0}\n  %c = Conv(%x, %w, %b)\n"
        "  %yc = BatchNormalization(%c, %s, %o, %m, %v) {epsilon=0.0}\n  %e = Conv(%x, %w)\n"
        "  %ye = BatchNormalization(%e, %s, %o, %m, %v) {epsilon=0.75}\n  output %ya\n  output "
        "%yc\n  output %ye\n}\n",
        &d);
    ot_graph *g = m->graph;
    assert_int_equal(ot_fold_norms(g, true), OT_OK);
    assert_int_equal(count_nodes(g, OT_OP_BatchNormalization), 0);
    const ot_node *a = maker(g, "ya"), *c = maker(g, "yc"), *e = maker(g, "ye");
    assert_int_equal(a->op, OT_OP_Conv);
    assert_int_equal(a->in[1], c->in[1]);
    assert_int_equal(a->in[2], c->in[2]);
    assert_int_not_equal(a->in[1], e->in[1]);
    const float weights[2] = {3 * 2 / 2.f, 5 * 4 / 0.5f},
                bias[2] = {(10 - 0.5f) * 1 + 1, (20 - 3) * 8.f - 1};
    for (int k = 0; k < 2; k++) {
        assert_float_equal(contents(g, a->in[1])[k], weights[k], 1e-6);
        assert_float_equal(contents(g, a->in[2])[k], bias[k], 1e-5);
        const double factor = (k ? 4 : 2) / sqrt((k ? 0.25 : 4) + 0.75);
        assert_float_equal(contents(g, e->in[1])[k], (float)((k ? 5 : 3) * factor), 1e-5);
        assert_float_equal(contents(g, e->in[2])[k],
                           (float)((k ? -3 : -0.5) * factor + (k ? -1 : 1)), 1e-5);
    }
    assert_true(g->values[ot_value_find(g, "w")].removed &&
                g->values[ot_value_find(g, "v")].removed);
    ot_model_free(m);
}

#define BODY(name, x)                                                                        \
    name "_branch=graph " name " {\n  outer %x : float32[1,1,4,4]\n  init %" x "w : "        \
         "float32[2,1,1,1] = [3, 5]\n  init %" x "s : float32[2] = [2, 4]\n  init %" x       \
         "o : float32[2] = [1, -1]\n  %" x "c : float32[1,2,4,4] = Conv(%x, %" x "w)\n  %" x \
         "y : float32[1,2,4,4] = BatchNormalization(%" x "c, %" x "s, %" x "o, %" x "o, %" x \
         "s) {epsilon=0.0}\n  output %" x "y\n  }"

/* Bodies of which each has a value for the same weights share what is folded into them. */
static void normalisations_of_bodies_are_folded(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,1,4,4]\n  "
                             "input %p : bool[]\n  %y : float32[1,2,4,4] = If(%p) {" BODY(
                                 "then", "t") ", " BODY("else", "e") "}\n  output %y\n}\n",
                             &d);
    const ot_node *n = maker(m->graph, "y");
    ot_graph *then = n->attrs[0].g, *other = n->attrs[1].g;
    static const char *const shared[] = {"w", "s", "o"};
    for (int k = 0; k < 3; k++) {
        char from[8], to[8];
        snprintf(from, sizeof from, "t%s", shared[k]);
        snprintf(to, sizeof to, "e%s", shared[k]);
        other->values[ot_value_find(other, to)].init = then->values[ot_value_find(then, from)].init;
    }
    assert_int_equal(ot_fold_norms(m->graph, true), OT_OK);
    const ot_node *a = maker(then, "ty"), *b = maker(other, "ey");
    assert_int_equal(a->op, OT_OP_Conv);
    assert_int_equal(b->op, OT_OP_Conv);
    assert_int_equal(count_nodes(then, OT_OP_BatchNormalization), 0);
    assert_ptr_equal(contents(then, a->in[1]), contents(other, b->in[1]));
    assert_ptr_equal(contents(then, a->in[2]), contents(other, b->in[2]));
    const float *weights = contents(then, a->in[1]), *bias = contents(then, a->in[2]);
    assert_float_equal(weights[1], 5 * 4 / 2.f, 1e-5);
    assert_float_equal(bias[1], 1 * 4 / 2.f - 1, 1e-5);
    assert_true(other->values[ot_value_find(other, "ew")].removed);
    ot_model_free(m);
}

/* What others read of the convolution stays, and so does a normalisation whose factors are
 * computed. */
static void some_normalisations_stay(void **state)
{
    (void)state;
    static const char *const rest[] = {
        "  %y = BatchNormalization(%a, %s, %o, %m, %v)\n  output %a\n  output %y\n}\n",
        "  %n = BatchNormalization(%a, %s, %o, %m, %v)\n  %y = Add(%a, %n)\n  output %y\n}\n",
        "  input %f : float32[2]\n  %y = BatchNormalization(%a, %f, %o, %m, %v)\n  output %y\n}\n",
    };
    for (size_t k = 0; k < sizeof rest / sizeof *rest; k++) {
        char text[1024];
        ot_diag d;
        snprintf(text, sizeof text,
                 "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,1,4,4]\n  init %%w : "
                 "float32[2,1,1,1] = [3, 5]\n%s  %%a = Conv(%%x, %%w)\n%s",
                 NORM, rest[k]);
        ot_model *m = read_model(text, &d);
        assert_int_equal(ot_fold_norms(m->graph, true), OT_OK);
        assert_int_equal(count_nodes(m->graph, OT_OP_BatchNormalization), 1);
        assert_false(m->graph->values[ot_value_find(m->graph, "w")].removed);
        ot_model_free(m);
    }
}

#define CONVS                                                                                      \
    "  init %small : float32[4,4,1,1] = random 1\n  init %w : float32[8,4,3,3] = random 2\n  "     \
    "init %also : float32[4,8,3,3] = random 3\n"                                                   \
    "  %a = Conv(%x, %small)\n  %b = Conv(%a, %w) {pads=[1,1,1,1]}\n  %c = Conv(%b, %also) "       \
    "{pads=[1,1,1,1]}\n"                                                                           \
    "  %e = Conv(%c, %w) {pads=[1,1,1,1]}\n  %r = ReduceSum(%also)\n  %y = Add(%e, %r)\n  output " \
    "%y\n}\n"

/* Large weights of convolutions alone, each once, before the first node that reads it. */
static void large_weights_come_late(void **state)
{
    (void)state;
    ot_diag d;
    int64_t packed;
    ot_model *m = read_model(
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,8,8]\n" CONVS, &d);
    ot_graph *g = m->graph;
    assert_int_equal(ot_defer_packing(g, 1000, &packed), OT_OK);
    assert_int_equal(packed, 2 * 8 * 4 * 9 * 4); /* two readers */
    assert_int_equal(maker(g, "a")->in[1], ot_value_find(g, "small"));
    assert_int_equal(maker(g, "c")->in[1], ot_value_find(g, "also"));
    const ot_node *b = maker(g, "b"), *e = maker(g, "e");
    assert_int_equal(b->in[1], e->in[1]);
    const ot_id gather = g->values[b->in[1]].producer;
    assert_int_equal(g->nodes[gather].op, OT_OP_Gather);
    assert_false(g->values[b->in[1]].is_const); /* nobody computes it ahead */
    for (uint32_t k = 0; k < g->n_order; k++)
        if (g->order[k] == gather) assert_ptr_equal(&g->nodes[g->order[k + 1]], b);
    assert_int_equal(ot_verify(g), OT_OK);
    ot_model_free(m);
}

/* Without a number to begin with, or with few enough bytes, all stays. */
static void models_without_deferred_packing(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        int64_t from;
    } cases[] = {
        {"model ir 8 opset 8\ngraph g {\n  input %x : float32[1,4,8,8]\n", 1000},
        {"model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,8,8]\n", 100000},
        {"model ir 8 opset 17\ngraph g {\n  input %z : bool[1,4,8,8]\n  %x = Cast(%z) {to=1}\n",
         1000}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[2048];
        ot_diag d;
        int64_t packed;
        snprintf(text, sizeof text, "%s%s", cases[k].head, CONVS);
        ot_model *m = read_model(text, &d);
        const uint32_t n = m->graph->n_nodes;
        assert_int_equal(ot_defer_packing(m->graph, cases[k].from, &packed), OT_OK);
        assert_int_equal(packed, 0);
        assert_int_equal(m->graph->n_nodes, n);
        ot_model_free(m);
    }
}

/* The plan for eight convolutions of 256 channels over an image of so many rows and columns. */
static ot_plan *plan_for(int size, const char *runtime, ot_goal goal)
{
    char text[4096];
    ot_diag d;
    ot_target t;
    ot_plan *p = NULL;
    const ot_plan_options o = {.goal = goal, .max_slowdown = 0.1, .tie_break = true};
    int n = snprintf(text, sizeof text,
                     "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,256,%d,%d]\n", size,
                     size);
    for (int k = 0; k < 8; k++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  init %%w%d : float32[256,256,3,3] = random %d\n  %%v%d = Conv(%%v%d, "
                      "%%w%d) {pads=[1,1,1,1]}\n",
                      k, k + 1, k + 1, k, k);
    snprintf(text + n, sizeof text - (size_t)n, "  output %%v8\n}\n");
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_target_set_runtime(&t, runtime, &d), OT_OK);
    if (ot_plan_graph(m->graph, &t, &o, &p) != OT_OK ||
        ot_select_plan(m->graph, &t, &o, true, &p) != OT_OK ||
        check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
        fail_msg("%s", d.message);
    ot_model_free(m);
    return p;
}

/* Where that takes little of the model's time, and the runtime does so. */
static void packing_is_deferred_where_it_pays(void **state)
{
    (void)state;
    static const struct {
        int size;
        const char *runtime;
        ot_goal goal;
        bool late;
    } cases[] = {{32, "openvino", OT_GOAL_MEMORY, true},
                 {2, "openvino", OT_GOAL_MEMORY, false}, /* packing would be most of the time */
                 {32, "openvino", OT_GOAL_TIME, false},
                 {32, "onnxruntime", OT_GOAL_MEMORY, false},
                 {32, "loop", OT_GOAL_MEMORY, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_plan *p = plan_for(cases[k].size, cases[k].runtime, cases[k].goal);
        if ((p->defer_from > 0) != cases[k].late)
            fail_msg("case %zu: from %lld", k, (long long)p->defer_from);
        assert_true(p->tiled.time_s <= 1.1 * p->untiled.time_s);
        if (cases[k].late) {
            assert_true(p->deferred_seconds > 0);
            /* 18 MB less two weights */
            assert_true(p->tiled.growth_bytes < p->untiled.growth_bytes - (12 << 20));
        } else {
            /* maps that tiles read as plain ones cost time, too (select/plain_maps.c) */
            assert_true(p->deferred_seconds == 0 || p->n_plain > 0);
        }
        ot_plan_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(normalisations_are_folded_once),
                                       cmocka_unit_test(normalisations_of_bodies_are_folded),
                                       cmocka_unit_test(some_normalisations_stay),
                                       cmocka_unit_test(large_weights_come_late),
                                       cmocka_unit_test(models_without_deferred_packing),
                                       cmocka_unit_test(packing_is_deferred_where_it_pays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
