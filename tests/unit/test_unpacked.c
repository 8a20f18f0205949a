/* Weights of convolutions that no runtime packs: which they are, what a branch writes of them, and
 * what a process holds then. */
#include "shaped_model.h"

#include "alloc_sim/alloc_sim.h"
#include "cost/cost.h"
#include "machine/target/target.h"
#include "transform/transform.h"

#define MB   (INT64_C(1) << 20)
#define HEAD "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,256,8,8]\n"

static const ot_graph *branch_of(const ot_model *m)
{
    for (uint32_t k = 0; k < m->graph->n_nodes; k++)
        if (m->graph->nodes[k].op == OT_OP_If) return m->graph->nodes[k].attrs[0].g;
    fail_msg("no branch");
    return NULL;
}

static bool is_marked(const ot_model *m, const char *name)
{
    const ot_id v = ot_value_find(m->graph, name);
    assert_int_not_equal(v, OT_NONE);
    return m->graph->values[v].is_unpacked;
}

/* Those of float32 that convolutions of one group read, and nothing else does. */
static void weights_of_convolutions_are_marked(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model(
        HEAD "  init %w : float32[256,256,3,3] = random 1\n"
             "  init %small : float32[16,256,1,1] = random 2\n"
             "  init %grouped : float32[256,128,3,3] = random 3\n"
             "  init %added : float32[256,256,1,1] = random 4\n"
             "  init %line : float32[256,256,64] = random 5\n"
             "  init %s : int64[3] = [1,256,64]\n"
             "  %a = Conv(%x, %w) {pads = [1,1,1,1]}\n  %b = Conv(%a, %w) {pads = [1,1,1,1]}\n"
             "  %c = Conv(%b, %small)\n  %e = Conv(%a, %grouped) {group = 2}\n"
             "  %f = Conv(%a, %added)\n  %h = ReduceSum(%added)\n"
             "  %l = Reshape(%a, %s)\n  %i = Conv(%l, %line)\n"
             "  output %c\n  output %e\n  output %f\n  output %h\n  output %i\n}\n",
        &d);
    assert_int_equal(ot_mark_unpacked(m->graph, 64 << 10), 1);
    assert_true(is_marked(m, "w"));
    assert_false(is_marked(m, "small") || is_marked(m, "grouped"));
    assert_false(is_marked(m, "added") || is_marked(m, "line"));
    assert_int_equal(ot_mark_unpacked(m->graph, 1 << 10), 2);
    assert_true(is_marked(m, "small"));
    assert_int_equal(ot_mark_unpacked(m->graph, 256 * 256 * 9 * 4 + 1), 0);
    assert_false(is_marked(m, "w")); /* of the last call alone */
    /* by name, of any size, beside those; but what other operators read, too, is never marked */
    const ot_id more[] = {ot_value_find(m->graph, "small"), ot_value_find(m->graph, "added")};
    assert_int_equal(ot_mark_unpacked(m->graph, 1 << 20), 1);
    assert_int_equal(ot_mark_plain(m->graph, more, 2), 1);
    assert_true(is_marked(m, "w") && is_marked(m, "small"));
    assert_false(is_marked(m, "added"));
    assert_true(ot_may_unpack(m->graph, more[0]) && !ot_may_unpack(m->graph, more[1]));
    ot_model_free(m);
}

/* In the branch a Reshape hands them on, whose extents are a product with the sequence's length. */
static void a_branch_hands_them_on(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model(HEAD "  init %w : float32[256,256,3,3] = random 1\n"
                                  "  init %k : float32[16,256,1,1] = random 2\n"
                                  "  %a = Conv(%x, %w) {pads = [1,1,1,1]}\n"
                                  "  %b = Conv(%a, %w) {pads = [1,1,1,1]}\n"
                                  "  %c = Conv(%b, %k)\n  output %c\n}\n",
                             &d);
    assert_int_equal(ot_mark_unpacked(m->graph, MB), 1);
    m->data_file = true;
    if (ot_branch(m, false) != OT_OK || ot_verify(m->graph) != OT_OK) fail_msg("%s", d.message);
    const ot_graph *g = branch_of(m);
    assert_int_equal(count_nodes(g, OT_OP_Reshape), 2);
    const ot_node *a = &g->nodes[g->values[ot_value_find(g, "a")].producer],
                  *b = &g->nodes[g->values[ot_value_find(g, "b")].producer],
                  *c = &g->nodes[g->values[ot_value_find(g, "c")].producer];
    assert_int_equal(a->in[1], b->in[1]);
    assert_string_equal(g->values[c->in[1]].name, "k");
    assert_false(ot_value_is_precomputed(g, a->in[1]));
    const ot_node *by = &g->nodes[g->values[a->in[1]].producer];
    assert_int_equal(by->op, OT_OP_Reshape);
    const ot_node *copy = &g->nodes[g->values[by->in[0]].producer];
    assert_true(copy->op == OT_OP_Reshape && copy->is_static);
    assert_string_equal(g->values[copy->in[0]].name, "w");
    const ot_node *shape = &g->nodes[g->values[by->in[1]].producer];
    assert_int_equal(shape->op, OT_OP_Mul);
    assert_string_equal(g->nodes[g->values[shape->in[1]].producer].op_type, "SequenceLength");
    ot_model_free(m);
}

static ot_sim_figures simulate(const char *text, int64_t from)
{
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(text, &d);
    m->data_file = true;
    ot_mark_unpacked(m->graph, from);
    if (ot_branch(m, false) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    ot_model_free(m);
    return f;
}

/* Nothing of them is free once the model is loaded, and they are there once. A kernel that makes
 * more channels than pixels unfolds its input: 256 x 9 x 64 numbers. */
static void a_process_holds_them_once(void **state)
{
    (void)state;
    const char *text = HEAD "  init %w : float32[256,256,3,3] = random 1\n"
                            "  %a = Conv(%x, %w) {pads = [1,1,1,1]}\n  output %a\n}\n";
    const ot_sim_figures packed = simulate(text, INT64_MAX), mapped = simulate(text, MB);
    const int64_t weight = 256 * 256 * 9 * 4, columns = 256 * 9 * 64 * 4;
    assert_in_range(packed.loaded - mapped.loaded, weight / 2, weight);
    assert_in_range(mapped.growth - packed.growth, columns / 2, columns + MB);
}

/* The price is a part of the convolution's own time, and higher for windows and few pixels. */
static void the_price_depends_on_windows_and_pixels(void **state)
{
    (void)state;
    ot_diag d;
    ot_target t;
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,64,32,32]\n"
                             "  init %p : float32[64,64,1,1] = random 1\n"
                             "  init %w : float32[64,64,3,3] = random 2\n"
                             "  init %f : float32[32,64,3,3] = random 3\n"
                             "  %a = Conv(%x, %p)\n  %b = Conv(%x, %w) {pads = [1,1,1,1]}\n"
                             "  %c = Conv(%x, %w) {strides = [8,8], pads = [1,1,1,1]}\n"
                             "  %e = Conv(%x, %f) {pads = [1,1,1,1]}\n"
                             "  output %a\n  output %b\n  output %c\n  output %e\n}\n",
                             &d);
    const ot_graph *g = m->graph;
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    double part[4];
    const char *const names[] = {"a", "b", "c", "e"};
    for (int k = 0; k < 4; k++) {
        const ot_node *n = &g->nodes[g->values[ot_value_find(g, names[k])].producer];
        const double macs = ot_node_macs(g, n);
        part[k] = ot_cost_unpacked(g, n, &t) / ot_cost_compute(g, n, &t, macs, 0, 0);
    }
    assert_true(part[0] > 0 && part[0] < part[1] && part[1] < part[2] && part[2] < 2);
    assert_true(part[1] < part[3] && part[3] < 2); /* of few channels */
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_convolutions_are_marked),
        cmocka_unit_test(a_branch_hands_them_on),
        cmocka_unit_test(a_process_holds_them_once),
        cmocka_unit_test(the_price_depends_on_windows_and_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
