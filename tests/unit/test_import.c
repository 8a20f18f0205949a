/* Import of ONNX files, against messages encoded by hand (wire.h).
 *
 * A good model arrives in the IR as it should; a bad one is refused with a message that names the
 * culprit.
 */
#include "import_files.h"

/* ---- good models ---- */

static void test_values_nodes_and_attributes(void **state)
{
    (void)state;
    static const float weights[] = {1, 2, 3, 4};
    wire attrs = W(w_msg(5, W(w_str(1, "axis"), w_int(3, -1), w_int(20, 2))),
                   w_msg(5, W(w_str(1, "alpha"), w_float(2, 0.5f), w_int(20, 1))),
                   w_msg(5, W(w_str(1, "mode"), w_bytes(4, "a\0b", 3), w_int(20, 3))),
                   w_msg(5, W(w_str(1, "pads"), w_int(8, 1), w_int(8, -2), w_int(20, 7))),
                   w_msg(5, W(w_str(1, "old"), w_int(3, 9)))); /* no type: deduced */
    wire g = W(w_msg(1, x_node("Conv", "x w _", "c", "conv", attrs)),
               w_msg(1, x_node("Nobody", "c", "y _", "", W_NONE)), w_str(2, "g"),
               w_msg(5, x_tensor("w", 1, DIMS(2, 2), weights, sizeof weights)),
               w_msg(11, x_value_info("x", 1, DIMS(1, -1, 3))), f32_info(12, "y"),
               w_msg(13, x_value_info("c", 1, DIMS(1, 2, 3))));
    ot_model *m = good(x_model(8, 13, g));
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->opset, 13);
    assert_int_equal(m->weight_bytes, 16);
    const ot_value *x = value(m, "x"), *w = value(m, "w"), *c = value(m, "c");
    assert_true(x->is_input && x->rank == 3 && x->dims[0] == 1 && x->dims[1] == OT_DIM_UNKNOWN &&
                x->dims[2] == 3);
    assert_true(w->init && w->init->dtype == OT_F32 && w->init->bytes == 16 && !w->overridable);
    assert_memory_equal(w->init->data, weights, 16);
    assert_true(c->rank == 3 && c->producer == 0 && c->n_uses == 1 && c->uses[0] == 1);
    const ot_node *conv = &m->graph->nodes[0], *other = &m->graph->nodes[1];
    assert_true(conv->op == OT_OP_Conv && conv->version == 13 && conv->n_in == 3 &&
                conv->in[2] == OT_NONE);
    assert_true(other->op == OT_OP_OPAQUE && other->n_out == 2 && other->out[1] == OT_NONE);
    assert_int_equal(ot_attr_int(conv, "axis", 0), -1);
    assert_int_equal(ot_attr_int(conv, "old", 0), 9);
    assert_true(ot_attr_float(conv, "alpha", 0) == 0.5f);
    const ot_attr *mode = ot_attr_find(conv, "mode");
    assert_true(mode->kind == OT_ATTR_STRING && mode->n == 3);
    assert_memory_equal(mode->s, "a\0b", 4);
    size_t n;
    const int64_t *pads = ot_attr_ints(conv, "pads", &n);
    assert_true(n == 2 && pads[0] == 1 && pads[1] == -2);
    ot_model_free(m);
}

/* Where accesses are checked, every message has a block of its own. */
#if defined(__has_feature) /* clang's way to say it */
#if __has_feature(address_sanitizer)
#define SHARES false
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SHARES false
#endif
#ifndef SHARES
#define SHARES true
#endif

static wire many_attributes(int64_t axis)
{
    char text[300];
    memset(text, 'a', sizeof text); /* too long to be held with the others */
    wire t = x_tensor("", 1, DIMS(1), (const float[]){1}, 4);
    return W(w_msg(5, W(w_str(1, "axis"), w_int(3, axis), w_int(20, 2))),
             w_msg(5, W(w_str(1, "pads"), w_int(8, 1), w_int(8, 2), w_int(20, 7))),
             w_msg(5, W(w_str(1, "long"), w_bytes(4, text, sizeof text), w_int(20, 3))),
             w_msg(5, W(w_str(1, "t"), w_msg(5, t), w_int(20, 4))));
}

static void test_equal_attributes_are_held_once(void **state)
{
    (void)state;
    wire g = W(w_msg(1, x_node("Nobody", "x", "a", "", many_attributes(1))),
               w_msg(1, x_node("Nobody", "a", "b", "", many_attributes(1))),
               w_msg(1, x_node("Nobody", "b", "y", "", many_attributes(2))), w_str(2, "g"),
               f32_info(11, "x"), f32_info(12, "y"));
    ot_model *m = good(x_model(8, 13, g));
    const ot_node *n = m->graph->nodes;
    for (int k = 0; k < 3; k++) {
        size_t n_pads;
        const int64_t *pads = ot_attr_ints(&n[k], "pads", &n_pads);
        assert_int_equal(ot_attr_int(&n[k], "axis", 0), k == 2 ? 2 : 1);
        assert_true(n_pads == 2 && pads[0] == 1 && pads[1] == 2);
        assert_int_equal(ot_attr_find(&n[k], "long")->n, 300);
        assert_true(*(const float *)ot_attr_find(&n[k], "t")->t->data == 1);
    }
#define HELD(node, name) (ot_attr_find(&n[node], name)->proto)
    assert_true((HELD(0, "axis") == HELD(1, "axis")) == SHARES);
    assert_true((HELD(0, "pads") == HELD(2, "pads")) == SHARES);
    assert_true(HELD(0, "axis") != HELD(2, "axis"));
    assert_true(HELD(0, "long") != HELD(1, "long"));
    assert_true(HELD(0, "t") != HELD(1, "t"));
    ot_model_free(m);
}

static void test_order_of_nodes_in_the_file_is_free(void **state)
{
    (void)state;
    wire g = W(w_msg(1, x_node("Relu", "a", "y", "second", W_NONE)),
               w_msg(1, x_node("Abs", "x", "a", "first", W_NONE)), f32_info(11, "x"),
               f32_info(12, "y"));
    ot_model *m = good(x_model(8, 13, g));
    assert_int_equal(m->graph->n_order, 2);
    assert_int_equal(m->graph->order[0], 1);
    assert_int_equal(m->graph->order[1], 0);
    ot_model_free(m);
}

static void test_initializer_that_is_an_input(void **state)
{
    (void)state;
    wire more = W(w_msg(5, x_tensor("w", 1, DIMS(1, 2), "\0\0\0\0\0\0\0\0", 8)), f32_info(11, "w"));
    for (int ir = 3; ir <= 4; ir++) {
        ot_model *m = good(x_model(ir, 9, relu_graph(more)));
        assert_true(value(m, "w")->init != NULL);
        assert_int_equal(
            value(m, "w")->is_input,
            ir >= 4); /* IR 3 lists constants, too: raised with the opset, they are not listed */
        assert_int_equal(value(m, "w")->overridable, ir >= 4);
        assert_int_equal(m->graph->n_inputs, ir >= 4 ? 2 : 1);
        assert_int_equal(ot_raise_undo(m), OT_OK);
        assert_true(value(m, "w")->is_input);
        assert_int_equal(m->graph->n_inputs, 2);
        ot_model_free(m);
    }
}

static void test_what_is_not_surely_known_is_opaque(void **state)
{
    (void)state;
    ot_model *m;
    wire twice = W(x_attr_int("a", 1), x_attr_int("a", 2));
    wire g = W(w_msg(1, x_node("Relu", "x", "y", "r", twice)), f32_info(11, "x"),
               f32_info(12, "y"));
    m = good(x_model(8, 13, g));
    assert_int_equal(m->graph->nodes[0].op, OT_OP_OPAQUE);
    ot_model_free(m);
    /* a model-local function hides the standard operator of its name */
    wire f = w_msg(25, W(w_str(1, "Relu"), w_str(4, "a"), w_str(5, "b"),
                         w_msg(7, x_node("Abs", "a", "b", "", W_NONE))));
    m = good(w_cat(x_model(8, 13, relu_graph(W_NONE)), f));
    assert_int_equal(m->graph->nodes[0].op, OT_OP_OPAQUE);
    ot_model_free(m);
    /* ai.onnx is another spelling of the standard domain */
    wire n = W(x_node("Relu", "x", "y", "r", W_NONE), w_str(7, "ai.onnx"));
    m = good(x_model(8, 13, W(w_msg(1, n), f32_info(11, "x"), f32_info(12, "y"))));
    assert_int_equal(m->graph->nodes[0].op, OT_OP_Relu);
    assert_string_equal(m->graph->nodes[0].domain, "");
    ot_model_free(m);
}

static void test_captured_values_and_shadowing(void **state)
{
    (void)state;
    /* inner reads: t (own), x (hidden by the middle graph's input), w (top), top output u directly
     */
    wire inner = W(w_msg(1, x_node("Add", "x w", "t", "", W_NONE)), w_str(2, "inner"),
                   w_msg(12, w_str(1, "t")));
    wire middle = W(w_msg(1, x_node("If", "c", "m", "", x_attr_graph("then_branch", inner))),
                    w_str(2, "middle"), w_msg(11, w_str(1, "x")), w_msg(12, w_str(1, "m")),
                    w_msg(12, w_str(1, "u")));
    wire g = W(w_msg(1, x_node("Abs", "x", "u", "", W_NONE)),
               w_msg(1, x_node("Scan", "x", "y", "s", x_attr_graph("body", middle))),
               f32_info(11, "x"), f32_info(11, "w"), f32_info(11, "c"), f32_info(12, "y"));
    ot_model *m = good(x_model(8, 13, g));
    const ot_node *scan = &m->graph->nodes[1];
    assert_int_equal(scan->n_captured, 3);
    const char *want[] = {"c", "w", "u"};
    for (uint32_t k = 0; k < 3; k++) {
        bool found = false;
        for (uint32_t j = 0; j < 3; j++)
            found = found || strcmp(m->graph->values[scan->captured[j]].name, want[k]) == 0;
        assert_true(found);
    }
    assert_string_equal(ot_fresh_name(m, "t"), "t_1"); /* inner names are taken */
    ot_model_free(m);
}

static void test_tensor_storage(void **state)
{
    (void)state;
    wire dims2 = w_int(1, 2);
    int64_t i64[2] = {-5, 1LL << 40};
    wire more = W(
        w_msg(5, W(dims2, w_int(2, 1), w_bytes(4, (float[]){1.5f, -2}, 8), w_str(8, "f"))),
        w_msg(5, W(dims2, w_int(2, 3),
                   w_bytes(5, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x07", 11), w_str(8, "i8"))),
        /* 0x3c00 0xbc00 */
        w_msg(5, W(dims2, w_int(2, 10), w_bytes(5, "\x80\x78\x80\xf8\x02", 5), w_str(8, "h"))),
        w_msg(5,
              W(dims2, w_int(2, 12), w_str(8, "u32"), w_bytes(11, "\xff\xff\xff\xff\x0f\x02", 6))),
        w_msg(5, x_tensor("l", 7, DIMS(2), i64, 16)),
        w_msg(5, W(dims2, w_int(2, 8), w_words(6, "a b"), w_str(8, "s"))),
        w_msg(5, x_tensor("none", 1, DIMS(0, 3), "", 0)),
        w_msg(5, x_tensor("nibbles", 22, DIMS(3), "\x21\x03", 2)),
        w_msg(5, x_tensor("b", 9, DIMS(2), "\0\1", 2)),
        w_msg(5, x_tensor("bf", 16, DIMS(2), "\x80\x3f\0\xc0", 4)));
    ot_model *m = good(x_model(8, 13, relu_graph(more)));
    int64_t ints[4];
    float floats[4];
    size_t n;
    assert_true(ot_tensor_floats(value(m, "f")->init, floats, 4, &n) && n == 2 &&
                floats[0] == 1.5f && floats[1] == -2);
    assert_true(ot_tensor_ints(value(m, "i8")->init, ints, 4, &n) && n == 2 && ints[0] == -1 &&
                ints[1] == 7);
    assert_true(ot_tensor_floats(value(m, "h")->init, floats, 4, &n) && n == 2 && floats[0] == 1 &&
                floats[1] == -1);
    assert_true(ot_tensor_floats(value(m, "bf")->init, floats, 4, &n) && floats[0] == 1 &&
                floats[1] == -2);
    assert_true(ot_tensor_ints(value(m, "u32")->init, ints, 4, &n) && ints[0] == UINT32_MAX &&
                ints[1] == 2);
    assert_true(ot_tensor_ints(value(m, "l")->init, ints, 4, &n) && ints[0] == -5 &&
                ints[1] == 1LL << 40);
    assert_true(ot_tensor_ints(value(m, "b")->init, ints, 4, &n) && ints[0] == 0 && ints[1] == 1);
    assert_false(ot_tensor_ints(value(m, "l")->init, ints, 1, &n)); /* too many */
    assert_false(ot_tensor_ints(value(m, "f")->init, ints, 4, &n)); /* not integers */
    assert_true(ot_tensor_floats(value(m, "none")->init, floats, 4, &n) && n == 0);
    assert_null(value(m, "s")->init->data);
    assert_null(value(m, "nibbles")->init->data);
    assert_int_equal(value(m, "nibbles")->init->bytes, 2);
    ot_model_free(m);
}

/* ---- bad models ---- */

static void test_broken_files(void **state)
{
    (void)state;
    bad(W_NONE, "empty");
    bad((wire){(uint8_t *)(uintptr_t) "hello, world", 12}, "not a valid ONNX file");
    bad(w_int(1, 8), "no graph");
    bad(w_msg(7, W_NONE), "no IR version");
    bad(W(w_int(1, 8), w_varint(7 << 3 | 2), w_varint(100)), "longer than the message");
    bad(W(w_int(1, 8), w_varint(100 << 3 | 3)), "group");
    bad(W(w_int(1, 8), w_varint(7)), "impossible field number");
    bad(W(w_int(1, 8), w_int(7, 3)), "wrong wire type");
    bad(W(w_int(1, 8), w_bytes(2, "a\0b", 3)), "zero byte");
    bad(W(w_int(1, 8),
          (wire){(uint8_t *)(uintptr_t) "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12}),
        "cut off");
    bad(W(w_int(1, 8), w_msg(7, w_msg(5, w_bytes(4, "abc", 3)))), "packed");
    wire deep = W_NONE;
    for (int k = 0; k < 60; k++) deep = w_msg(1, W(w_str(4, "If"), w_msg(5, w_msg(6, deep))));
    bad(x_model(8, 13, deep), "nested");
    wire file = x_model(8, 13, relu_graph(W_NONE));
    /* every truncation is refused or, at a field's end, understood */
    for (size_t n = 1; n < file.n; n++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        ot_status st = ot_import_memory(file.data, n, NULL, &d, &m);
        assert_true(st == OT_E_INPUT || st == OT_OK);
        assert_true((st == OT_OK) == (d.message[0] == '\0'));
        ot_model_free(m);
    }
}

static void test_names_that_clash_or_dangle(void **state)
{
    (void)state;
    wire w = w_msg(5, x_tensor("w", 1, DIMS(1), "\0\0\0\0", 4));
    bad(x_model(8, 13, relu_graph(W(w, w))), "'w' is defined twice");
    /* of a map, as an input and among other values */
    wire map = W(w_str(1, "w"), w_msg(2, w_msg(5, w_int(1, 7))));
    bad(x_model(8, 13, relu_graph(W(w_msg(11, map), w))), "'w' is listed as no tensor");
    bad(x_model(8, 13, relu_graph(W(w_msg(13, map), w))), "'w' is listed as no tensor");
    bad(x_model(8, 13, relu_graph(f32_info(11, "x"))), "'x' is listed twice");
    bad(x_model(8, 13, relu_graph(w_msg(1, x_node("Abs", "x", "y", "again", W_NONE)))),
        "node 'again' (Abs)");
    bad(x_model(8, 13, relu_graph(w_msg(1, x_node("Abs", "x", "x", "n", W_NONE)))),
        "'x' is already defined");
    bad(x_model(8, 13, relu_graph(w_msg(1, x_node("Abs", "ghost", "z", "n", W_NONE)))),
        "node 'n' (Abs): input 0 reads 'ghost'");
    bad(x_model(8, 13, relu_graph(f32_info(12, "ghost"))), "output 'ghost'");
    bad(x_model(8, 13, relu_graph(w_msg(1, x_node("", "x", "z", "n", W_NONE)))), "no op_type");
    wire loop = W(w_msg(1, x_node("Abs", "q", "p", "n1", W_NONE)),
                  w_msg(1, x_node("Abs", "p", "q", "n2", W_NONE)));
    bad(x_model(8, 13, relu_graph(loop)), "cycle");
    wire branch = W(w_msg(1, x_node("Abs", "ghost", "t", "", W_NONE)), w_str(2, "then"),
                    w_msg(12, w_str(1, "t")));
    bad(x_model(8, 13,
                relu_graph(
                    w_msg(1, x_node("If", "x", "z", "if1", x_attr_graph("then_branch", branch))))),
        "node 'if1' (If): its subgraph 'then' reads 'ghost'");
    bad(x_model(8, -1, relu_graph(W_NONE)), "impossible version");
}

static void test_functions(void **state)
{
    (void)state;
    wire m = x_model(8, 13, relu_graph(W_NONE));
    bad(W(m, function("f", "f")), "'f' calls itself");
    bad(W(m, function("f", "g"), function("g", "h"), function("h", "f")), "calls itself");
    bad(W(m, function("f", "g"), function("f", "h")), "defined twice");
    ot_model_free(good(
        W(m, function("f", "g"), function("g", "h"), function("h", "Abs"), function("k", "g"))));
    /* an overload is another function: f (overload "1") may call f */
    wire n = W(x_node("f", "a", "b", "", W_NONE), w_str(7, "d"));
    wire over = w_msg(25, W(w_str(1, "f"), w_str(4, "a"), w_str(5, "b"), w_msg(7, n),
                            w_str(10, "d"), w_str(13, "1")));
    ot_model_free(good(W(m, function("f", "Abs"), over)));
}

static void test_tensors_that_lie(void **state)
{
    (void)state;
    bad(x_model(8, 13, relu_graph(w_msg(5, x_tensor("w", 1, DIMS(2, 2), "1234", 4)))),
        "initializer 'w': raw_data holds 4");
    bad(x_model(8, 13, relu_graph(w_msg(5, W(w_int(1, -2), w_int(2, 1), w_str(8, "w"))))),
        "dimension 0 is negative");
    bad(x_model(8, 13, relu_graph(w_msg(5, W(w_int(1, 2), w_int(2, 1), w_str(8, "w"))))),
        "holds no data");
    bad(x_model(8, 13,
                relu_graph(
                    w_msg(5, W(w_int(1, 2), w_int(2, 1), w_bytes(4, "1234", 4), w_str(8, "w"))))),
        "float_data holds 1");
    bad(x_model(8, 13,
                relu_graph(w_msg(5, W(w_int(1, 2), w_int(2, 8), w_words(6, "a"), w_str(8, "w"))))),
        "strings");
    bad(x_model(8, 13, relu_graph(w_msg(5, x_tensor("w", 1, DIMS(INT64_MAX, 4), "", 0)))),
        "more bytes than can be counted");
    bad(x_model(8, 13,
                relu_graph(w_msg(
                    5, x_tensor("w", 1, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
                                "1234", 4)))),
        "17 dimensions");
    wire attr = w_msg(
        5, W(w_str(1, "value"), w_msg(5, x_tensor("", 1, DIMS(2), "1234", 4)), w_int(20, 4)));
    bad(x_model(8, 13, relu_graph(w_msg(1, x_node("Constant", "", "k", "c", attr)))),
        "node 'c' (Constant): attribute 'value'");
    /* in an operator of another domain that is not our business */
    wire n = W(x_node("Foo", "", "k", "c", attr), w_str(7, "foo"));
    ot_model_free(good(x_model(8, 13, relu_graph(w_msg(1, n)))));
}

/* ---- writing ---- */

/* The last import of a domain counts, under either of its names. */
static void test_domains_imported_twice(void **state)
{
    (void)state;
    ot_model *m = good(w_cat(x_model(8, 13, relu_graph(W_NONE)), x_opset("ai.onnx", 12)));
    assert_int_equal(m->opset, 12);
    ot_model_free(m);
    m = good(w_cat(x_model(8, 12, relu_graph(W_NONE)), x_opset("", 13)));
    assert_int_equal(m->opset, 13);
    ot_model_free(m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_values_nodes_and_attributes),
        TEST(test_equal_attributes_are_held_once),
        TEST(test_order_of_nodes_in_the_file_is_free),
        TEST(test_initializer_that_is_an_input),
        TEST(test_what_is_not_surely_known_is_opaque),
        TEST(test_captured_values_and_shadowing),
        TEST(test_tensor_storage),
        TEST(test_broken_files),
        TEST(test_names_that_clash_or_dangle),
        TEST(test_domains_imported_twice),
        TEST(test_functions),
        TEST(test_tensors_that_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
