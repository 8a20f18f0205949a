/* Views of blocked values: what a convolution takes in stays behind it. */
#include "shaped_model.h"

#include "machine/runtime/runtime.h"
#include "transform/transform_internal.h"

#define HEAD                                       \
    "model ir 8 opset 17\ngraph g {\n"             \
    "  input %%x : float32[1,32,16,16]\n"          \
    "  init %%w : float32[32,32,3,3] = random 1\n" \
    "  %%a = Conv(%%x, %%w) {pads = [1,1,1,1]}\n"

static const ot_node *maker_of(const ot_graph *g, const char *value)
{
    const ot_id v = ot_value_find(g, value);
    assert_int_not_equal(v, OT_NONE);
    assert_int_not_equal(g->values[v].producer, OT_NONE);
    return &g->nodes[g->values[v].producer];
}

/* %y is what `activation` makes of a convolution, and is read plain. The node before it. */
static ot_op before_activation(const char *activation, ot_op *viewed)
{
    char text[1024];
    ot_diag d;
    snprintf(text, sizeof text,
             HEAD "  %%y = %s\n  %%b = Conv(%%y, %%w) {pads = [1,1,1,1]}\n"
                  "  %%p = Softmax(%%y) {axis = 1}\n  output %%b\n  output %%p\n}\n",
             activation);
    ot_model *m = read_model(text, &d);
    if (rw_plain_views(m->graph, ot_runtime_named("onnxruntime")) != OT_OK ||
        ot_verify(m->graph) != OT_OK)
        fail_msg("%s", d.message);
    const ot_graph *g = m->graph;
    const ot_node *n = maker_of(g, "y");
    *viewed = n->op;
    if (n->op == OT_OP_Reshape) n = &g->nodes[g->values[n->in[0]].producer];
    const ot_op op = g->nodes[g->values[n->in[0]].producer].op;
    ot_model_free(m);
    return op;
}

static void activations_stay_behind_convolutions(void **state)
{
    (void)state;
    static const char *const MERGED[] = {"Relu(%a)", "HardSwish(%a)", "HardSigmoid(%a)",
                                         "Sigmoid(%a)", "Tanh(%a)"};
    for (size_t k = 0; k < sizeof MERGED / sizeof *MERGED; k++) {
        ot_op viewed;
        assert_int_equal(before_activation(MERGED[k], &viewed), OT_OP_Conv);
        assert_int_equal(viewed, OT_OP_Reshape);
    }
}

/* What no convolution takes in reads a view. */
static void others_read_views(void **state)
{
    (void)state;
    ot_op viewed;
    assert_int_equal(before_activation("Softplus(%a)", &viewed), OT_OP_Reshape);
    assert_int_equal(viewed, OT_OP_Softplus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_stay_behind_convolutions),
        cmocka_unit_test(others_read_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
