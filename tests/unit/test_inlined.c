/* Functions of the standard that ONNX Runtime writes out, written out in bodies and nowhere
 * else. */
#include "ops/shape.h"
#include "onnx/graph/ir.h"
#include "transform/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const ot_node *maker(const ot_graph *g, ot_id v)
{
    assert_int_not_equal(g->values[v].producer, OT_NONE);
    return &g->nodes[g->values[v].producer];
}

static uint32_t count(const ot_graph *g, const char *op)
{
    uint32_t n = 0;
    for (ot_id k = 0; k < g->n_nodes; k++)
        n += !g->nodes[k].dead && strcmp(g->nodes[k].op_type, op) == 0;
    return n;
}

/* A node of the top graph with a body in which `op` makes y of x; *body: that. */
static ot_model *model_with(const char *op, ot_graph **body)
{
    static const char *const TEXT = "model ir 8 opset 18\ngraph g {\n"
                                    "  input %%in : float32[1,4]\n"
                                    "  %%out = %s(%%in)\n  output %%out\n}\n";
    static const int64_t DIMS[] = {1, 4};
    char text[256];
    ot_diag d = {0};
    ot_model *m = NULL;
    snprintf(text, sizeof text, TEXT, op);
    if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s", d.message);
    ot_graph *g = m->graph, *b = ot_graph_new(m, g, "body");
    assert_non_null(b);
    const ot_id x = ot_value_new(b, "x", OT_F32, 2, DIMS),
                y = ot_value_new(b, "y", OT_F32, 2, DIMS),
                z = ot_value_new(g, "z", OT_F32, 2, DIMS);
    b->values[x].is_input = b->values[y].is_output = true;
    b->inputs = ot_memdup(m->arena, &x, sizeof x);
    b->outputs = ot_memdup(m->arena, &y, sizeof y);
    b->n_inputs = b->n_outputs = 1;
    assert_int_not_equal(
        ot_node_new(b, &(ot_node_def){.op = op, .name = "f", .in = {&x, 1}, .out = {&y, 1}}),
        OT_NONE);
    assert_int_equal(ot_assure(b, OT_P_ORDER | OT_P_USES), OT_OK);
    const ot_attr attr = ot_mk_graph("body", b);
    assert_int_not_equal(
        ot_node_new(g, &(ot_node_def){.op = "Loop", .out = {&z, 1}, .attrs = {&attr, 1}}), OT_NONE);
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    *body = b;
    return m;
}

static void hard_swish(void **state)
{
    (void)state;
    ot_graph *b;
    ot_model *m = model_with("HardSwish", &b);
    assert_int_equal(ot_write_inlined(m->graph), OT_OK);
    assert_int_equal(count(m->graph, "HardSwish"), 1); /* the top graph keeps its own */
    assert_int_equal(count(b, "HardSwish"), 0);
    const ot_node *mul = maker(b, b->outputs[0]), *gate = maker(b, mul->in[1]);
    assert_string_equal(mul->op_type, "Mul");
    assert_int_equal(mul->in[0], b->inputs[0]);
    assert_string_equal(gate->op_type, "HardSigmoid");
    assert_int_equal(gate->in[0], b->inputs[0]);
    assert_true(ot_attr_float(gate, "alpha", 0) == 1.0f / 6);
    assert_true(ot_attr_float(gate, "beta", 0) == 0.5f);
    assert_int_equal(b->n_order, 2);
    ot_model_free(m);
}

static void mish(void **state)
{
    (void)state;
    ot_graph *b;
    ot_model *m = model_with("Mish", &b);
    assert_int_equal(ot_write_inlined(m->graph), OT_OK);
    assert_int_equal(count(m->graph, "Mish"), 1);
    assert_int_equal(count(b, "Mish"), 0);
    const ot_node *mul = maker(b, b->outputs[0]), *tanh = maker(b, mul->in[1]),
                  *soft = maker(b, tanh->in[0]);
    assert_string_equal(mul->op_type, "Mul");
    assert_string_equal(tanh->op_type, "Tanh");
    assert_string_equal(soft->op_type, "Softplus");
    assert_int_equal(mul->in[0], b->inputs[0]);
    assert_int_equal(soft->in[0], b->inputs[0]);
    assert_int_equal(soft->n_attrs + tanh->n_attrs + mul->n_attrs, 0);
    ot_model_free(m);
}

static void others_stay(void **state)
{
    (void)state;
    ot_graph *b;
    ot_model *m = model_with("Sigmoid", &b);
    assert_int_equal(ot_write_inlined(m->graph), OT_OK);
    assert_int_equal(count(b, "Sigmoid"), 1);
    assert_int_equal(b->n_order, 1);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hard_swish), cmocka_unit_test(mish),
                                       cmocka_unit_test(others_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
