/* Models of old opsets: read as newer ones where the meaning is the same, written as they were
 * when nothing changes. */
#include "import_check.h"

static int teardown(void **state)
{
    (void)state;
    wire_reset();
    return 0;
}

/* x -> node -> y in a file of opset `from`: read as opset `to`, with `attrs` attributes left; to
 * == from: kept, unknown. */
static void raise_case(const char *op, const char *in, wire attrs, int from, int to,
                       uint32_t n_attrs)
{
    wire g = W(w_msg(1, x_node(op, in, "y", "n", attrs)), f32_info(11, "x"), f32_info(12, "y"));
    wire file = x_model(3, from, g);
    ot_model *m = good(file);
    const ot_node *n = &m->graph->nodes[0];
    if (m->opset != to || n->version != to)
        fail_msg("%s %d: read as %d, expected %d", op, from, m->opset, to);
    assert_int_equal(n->op == OT_OP_OPAQUE, to < 7);
    assert_int_equal(n->n_attrs, n_attrs);
    assert_int_equal(ot_raise_undo(m), OT_OK);
    wire out = exported(m); /* nothing was changed: nothing is raised */
    assert_int_equal(out.n, file.n);
    assert_memory_equal(out.data, file.data, file.n);
    ot_model_free(m);
}

static void test_old_opsets_are_read_as_newer_ones(void **state)
{
    (void)state;
    wire one = x_attr_int("broadcast", 1), tested = x_attr_int("is_test", 1);
    raise_case("Relu", "x", W_NONE, 6, 13, 0);
    raise_case("Relu", "x", x_attr_int("consumed_inputs", 1), 1, 13, 0);
    raise_case("LeakyRelu", "x", x_attr_int("alpha", 1), 6, 13, 1);
    raise_case("Relu", "x", W_NONE, 7, 13, 0);  /* to where there are sequences */
    raise_case("Relu", "x", W_NONE, 11, 11, 0); /* not old */
    raise_case("ThresholdedRelu", "x", x_attr_int("alpha", 1), 7, 7, 1);
    raise_case("Softmax", "x", x_attr_int("axis", 1), 9, 12, 1);
    raise_case("Dropout", "x", x_attr_int("ratio", 1), 7, 13, 0);
    raise_case("AveragePool", "x",
               w_msg(5, W(w_str(1, "pads"), w_int(8, 1), w_int(8, 1), w_int(20, 7))), 7, 13, 1);
    raise_case("PRelu", "x x", W_NONE, 7, 13, 0);
    raise_case("ConstantOfShape", "x", W_NONE, 8, 8, 0); /* not there yet */
    raise_case("ConstantOfShape", "x", W_NONE, 9, 13, 0);
    raise_case("Clip", "x", x_attr_int("min", 1), 6, 10, 1); /* a limit that is no float */
    raise_case("Slice", "x", W_NONE, 6, 9, 0);
    raise_case("Slice", "x x x", W_NONE, 10, 13, 0);
    raise_case("Resize", "x x", W_NONE, 10, 10, 0); /* larger or smaller is not known */
    raise_case("TopK", "x x", W_NONE, 10, 13, 0);
    raise_case("TopK", "x x", W_NONE, 9, 9, 0); /* how many was an attribute */
    raise_case("NonZero", "x", W_NONE, 9, 13, 0);
    raise_case("Softmax", "x", x_attr_int("axis", 1), 6, 12, 1);
    raise_case("Add", "x x", W_NONE, 6, 13, 0);
    raise_case("Add", "x x", one, 6, 13, 0);
    /* aligned at another axis than later opsets do */
    raise_case("Add", "x x", W(one, x_attr_int("axis", 1)), 6, 6, 2);
    raise_case("Add", "x x", W(x_attr_int("broadcast", 0), x_attr_int("axis", 1)), 6, 13, 0);
    raise_case("BatchNormalization", "x x x x x", W(tested, x_attr_int("spatial", 1)), 6, 13, 0);
    raise_case("BatchNormalization", "x x x x x", W_NONE, 6, 6, 0); /* training */
    raise_case("BatchNormalization", "x x x x x", W(tested, x_attr_int("spatial", 0)), 6, 6, 2);
    raise_case("Dropout", "x", W(tested, x_attr_int("ratio", 1)), 6, 13, 0);
    raise_case("Dropout", "x", W_NONE, 6, 6, 0);
    raise_case("Concat", "x x", W_NONE, 3, 3, 0); /* the axis had a default */
    raise_case("Concat", "x x", x_attr_int("axis", 1), 3, 13, 1);
    raise_case("AveragePool", "x", W_NONE, 6, 13, 0);
    raise_case("AveragePool", "x",
               w_msg(5, W(w_str(1, "pads"), w_int(8, 1), w_int(8, 1), w_int(20, 7))), 6, 6, 1);
    raise_case("Selu", "x", W_NONE, 5, 5, 0);
    raise_case("Selu", "x", W_NONE, 6, 13, 0);
    raise_case("PRelu", "x x", W_NONE, 6, 6, 0); /* its slope follows the channels */
    raise_case("Nobody", "x", W_NONE, 6, 6, 0);
    raise_case("Reshape", "x", W_NONE, 4, 4, 0);
}

/* What is replaced has constants of float32: it stays in a model of other floats. */
static void test_other_floats_are_left_alone(void **state)
{
    (void)state;
    static const struct {
        int type, to;
    } cases[] = {{OT_F32, 13}, {OT_F16, 9}, {OT_F64, 9}, {OT_BF16, 9}, {OT_I32, 13}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        wire cast = w_msg(1, x_node("Cast", "x", "c", "m", x_attr_int("to", cases[k].type)));
        wire g = W(cast, w_msg(1, x_node("Affine", "c", "y", "n", W_NONE)), f32_info(11, "x"),
                   f32_info(12, "y"));
        ot_model *m = good(x_model(3, 6, g));
        assert_int_equal(m->opset, cases[k].to);
        ot_model_free(m);
    }
}

/* x -> node -> y in a file of opset `from`, as ot_raise_operands leaves it: opset `to`, operand
 * 1 a constant with `operand` (NULL: none), and `attrs` attributes. */
static void operands_case(const char *op, wire attrs, int from, int to, const int64_t *operand,
                          uint32_t n, uint32_t n_attrs)
{
    wire g = W(w_msg(1, x_node(op, "x", "y", "n", attrs)), f32_info(11, "x"), f32_info(12, "y"));
    wire file = x_model(7, from, g);
    ot_model *m = good(file);
    size_t got = 0;
    int64_t data[4];
    assert_int_equal(ot_raise_operands(m), OT_OK);
    assert_int_equal(m->opset, to);
    assert_int_equal(m->graph->n_order, 1);
    const ot_node *node = &m->graph->nodes[m->graph->order[0]];
    assert_string_equal(node->op_type, op);
    assert_int_equal(node->version, to);
    assert_int_equal(node->n_in, operand ? 2 : 1);
    assert_int_equal(node->n_attrs, n_attrs);
    assert_int_equal(node->out[0], ot_value_find(m->graph, "y"));
    if (operand) {
        assert_true(ot_tensor_ints(m->graph->values[node->in[1]].init, data, 4, &got));
        assert_int_equal(got, n);
        assert_memory_equal(data, operand, n * sizeof *data);
    }
    /* x is [1, 2] */
    if (to == 13 && (strstr(op, "max"))) assert_int_equal(ot_attr_int(node, "axis", 7), 1);
    assert_int_equal(ot_raise_undo(m), OT_OK);
    wire out = exported(m);
    assert_int_equal(out.n, file.n);
    assert_memory_equal(out.data, file.data, file.n);
    ot_model_free(m);
}

static void test_attributes_become_operands(void **state)
{
    (void)state;
    const int64_t one = 1;
    wire axes = w_msg(5, W(w_str(1, "axes"), w_int(8, 1), w_int(20, 7))),
         mode = w_msg(5, W(w_str(1, "coordinate_transformation_mode"),
                           w_str(4, "tf_half_pixel_for_nn"), w_int(20, 3)));
    operands_case("Unsqueeze", axes, 11, 13, &one, 1, 0);
    operands_case("Squeeze", axes, 12, 13, &one, 1, 0);
    operands_case("Squeeze", W_NONE, 11, 13, NULL, 0, 0);
    operands_case("ReduceSum", W(axes, x_attr_int("keepdims", 0)), 11, 13, &one, 1, 1);
    operands_case("Split", w_msg(5, W(w_str(1, "split"), w_int(8, 1), w_int(20, 7))), 11, 13, &one,
                  1, 0);
    operands_case("Dropout", w_msg(5, W(w_str(1, "ratio"), w_int(20, 1))), 11, 13, NULL, 0, 0);
    operands_case("Softmax", W_NONE, 11, 13, NULL, 0, 1);
    operands_case("LogSoftmax", x_attr_int("axis", 1), 11, 13, NULL, 0, 1);
    operands_case("Hardmax", W_NONE, 12, 13, NULL, 0, 1);
    /* over both axes at once */
    operands_case("Softmax", x_attr_int("axis", 0), 11, 11, NULL, 0, 1);
    operands_case("Resize", W_NONE, 11, 13, NULL, 0, 0);
    operands_case("Resize", mode, 11, 11, NULL, 0, 1); /* opset 13 has it no more */
    operands_case("Nobody", W_NONE, 11, 13, NULL, 0, 0);
    operands_case("Relu", W_NONE, 12, 13, NULL, 0, 0);
    operands_case("Unsqueeze", axes, 14, 14, NULL, 0, 1); /* wrong, and not ours to mend */
    operands_case("LSTM", W_NONE, 11, 13, NULL, 0, 0);
    wire body = W(w_msg(1, x_node("Relu", "b_in", "b_out", "b", W_NONE)), w_str(2, "body"),
                  f32_info(11, "b_in"), f32_info(12, "b_out"));
    operands_case("Scan", W(x_attr_graph("body", body), x_attr_int("num_scan_inputs", 1)), 11, 11,
                  NULL, 0, 2);
}

/* Once something else changes, the whole model has the newer opset, and attributes that it does
 * not have are gone. */
static void test_a_raised_model_is_written_as_such(void **state)
{
    (void)state;
    wire g = W(w_msg(1, x_node("Relu", "x", "a", "r", x_attr_int("consumed_inputs", 1))),
               w_msg(1, x_node("LeakyRelu", "a", "y", "l", W_NONE)), w_str(2, "g"),
               f32_info(11, "x"), f32_info(12, "y"));
    ot_model *m = good(x_model(3, 6, g));
    ot_id y = ot_value_find(m->graph, "y"), z = ot_value_new(m->graph, "z", OT_F32, 2, DIMS(1, 2));
    assert_true(
        ot_node_new(m->graph,
                    &(ot_node_def){.op = "Abs", .name = "new", .in = {&y, 1}, .out = {&z, 1}}) !=
        OT_NONE);
    assert_int_equal(ot_topo_sort(m->graph), OT_OK);
    wire want = x_model(4, 13,
                        W(w_msg(1, x_node("Relu", "x", "a", "r", W_NONE)),
                          w_msg(1, x_node("LeakyRelu", "a", "y", "l", W_NONE)),
                          w_msg(1, x_node("Abs", "y", "z", "new", W_NONE)), w_str(2, "g"),
                          f32_info(11, "x"), f32_info(12, "y"), f32_info(13, "z")));
    wire out = exported(m);
    assert_int_equal(out.n, want.n);
    assert_memory_equal(out.data, want.data, want.n);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_old_opsets_are_read_as_newer_ones, teardown),
        cmocka_unit_test_teardown(test_other_floats_are_left_alone, teardown),
        cmocka_unit_test_teardown(test_attributes_become_operands, teardown),
        cmocka_unit_test_teardown(test_a_raised_model_is_written_as_such, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
