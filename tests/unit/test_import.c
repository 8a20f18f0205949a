/* Import and export of ONNX files, against messages encoded by hand (wire.h).
 *
 * Three kinds of tests: a good model arrives in the IR as it should; a bad one is refused with a
 * message that names the culprit; what is written back equals, byte for byte or field for field,
 * what the rules say. Files live in a fresh folder under /tmp.
 *
 */
#include "import_check.h"

#include <glob.h>
#include <fcntl.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static const char *at(const char *name)
{
    static char path[4][160];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void put_file(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static wire get_file(const char *name)
{
    static uint8_t block[1 << 20];
    FILE *f = fopen(at(name), "rb");
    if (!f) return W_NONE;
    size_t n = fread(block, 1, sizeof block, f);
    fclose(f);
    return w_cat((wire){block, n}, W_NONE);
}

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    closedir(d);
    return n;
}

static int setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/onnx-tile-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    wire_reset();
    return system(command);
}

static void bad(wire file, const char *part)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_status st = ot_import_memory(file.data, file.n, folder, &d, &m);
    if (st != OT_E_INPUT || !strstr(d.message, part))
        fail_msg("wanted '%s', got status %d: %s", part, st, d.message);
    assert_null(m);
}

static const ot_value *value(const ot_model *m, const char *name)
{
    ot_id v = ot_value_find(m->graph, name);
    if (v == OT_NONE) fail_msg("no value '%s'", name);
    return &m->graph->values[v];
}

/* x -> Relu -> y, with room for more of the graph's fields behind. */
static wire relu_graph(wire more)
{
    return W(w_msg(1, x_node("Relu", "x", "y", "r", W_NONE)), w_str(2, "g"), more,
             f32_info(11, "x"), f32_info(12, "y"));
}

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

static wire function(const char *name, const char *callee)
{
    wire n = W(x_node(callee, "a", "b", "", W_NONE), w_str(7, "d"));
    return w_msg(25, W(w_str(1, name), w_str(4, "a"), w_str(5, "b"), w_msg(7, n), w_str(10, "d")));
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

/* ---- external data ---- */

static wire external_model(const char *const *pairs)
{
    return x_model(8, 13, relu_graph(w_msg(5, x_external("w", 1, DIMS(4), pairs))));
}

static void test_external_data_is_fenced(void **state)
{
    (void)state;
    char bytes[64] = "0123456789abcdef";
    put_file("w.bin", bytes, sizeof bytes);
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    put_file("sub/w.bin", bytes, sizeof bytes);
    assert_int_equal(symlink("w.bin", at("link.bin")), 0);
    assert_int_equal(symlink("sub", at("linked")), 0);
    put_file("two.bin", bytes, sizeof bytes);
    assert_int_equal(link(at("two.bin"), at("three.bin")), 0);
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);

    bad(external_model(PAIRS("location", "/etc/passwd")), "absolute");
    bad(external_model(PAIRS("location", "../w.bin")), "below the model's folder");
    bad(external_model(PAIRS("location", "sub/../w.bin")), "below the model's folder");
    bad(external_model(PAIRS("location", "sub/..")), "below the model's folder");
    bad(external_model(PAIRS("location", "")), "file name");
    bad(external_model(PAIRS("location", ".")), "file name");
    bad(external_model(PAIRS("location", "link.bin")), "symbolic link");
    bad(external_model(PAIRS("location", "linked/w.bin")), "symbolic link");
    bad(external_model(PAIRS("location", "two.bin")), "hard links");
    bad(external_model(PAIRS("location", "fifo")), "regular file");
    bad(external_model(PAIRS("location", "sub")), "regular file");
    bad(external_model(PAIRS("location", "w.bin/x")), "symbolic link or a file");
    bad(external_model(PAIRS("location", "nowhere.bin")), "cannot open");
    bad(external_model(PAIRS("offset", "0")), "lacks the key 'location'");
    bad(external_model(PAIRS("location", "w.bin", "path", "x")), "unknown key 'path'");
    bad(external_model(PAIRS("location", "w.bin", "location", "w.bin")), "repeats");
    bad(external_model(PAIRS("location", "w.bin", "offset", "-4")), "malformed offset");
    bad(external_model(PAIRS("location", "w.bin", "offset", "0x4")), "malformed offset");
    bad(external_model(PAIRS("location", "w.bin", "offset", "49")), "passes the end");
    bad(external_model(PAIRS("location", "w.bin", "offset", "9223372036854775807")),
        "passes the end");
    bad(external_model(PAIRS("location", "w.bin", "offset", "18446744073709551616")),
        "malformed offset");
    bad(external_model(PAIRS("location", "w.bin", "length", "12")), "length 12");

    ot_diag d = {0};
    ot_model *m = NULL;
    wire file = external_model(PAIRS("location", "./sub//w.bin", "offset", "4", "length", "16"));
    assert_int_equal(ot_import_memory(file.data, file.n, NULL, &d, &m), OT_E_INPUT); /* no folder */
    d.status = OT_OK;
    assert_int_equal(ot_import_memory(file.data, file.n, folder, &d, &m), OT_OK);
    assert_true(m->has_external);
    assert_memory_equal(value(m, "w")->init->data, "456789abcdef", 12);
    ot_model_free(m);
    file = external_model(PAIRS("location", "w.bin", "offset", "3")); /* not aligned: copied */
    assert_int_equal(ot_import_memory(file.data, file.n, folder, &d, &m), OT_OK);
    assert_int_equal((uintptr_t)value(m, "w")->init->data % 4, 0);
    assert_memory_equal(value(m, "w")->init->data, "3456789abcdef", 13);
    ot_model_free(m);
}

static ot_model *from_file(const char *name)
{
    ot_diag *d = calloc(1, sizeof *d); /* as long as the model: freed by done() */
    ot_model *m = NULL;
    if (ot_import_file(at(name), d, &m) != OT_OK) fail_msg("refused: %s", d->message);
    return m;
}

static void done(ot_model *m)
{
    ot_diag *d = m->diag;
    ot_model_free(m);
    free(d);
}

/* Two large tensors at the same place in the file, one in a subgraph, and a small one. */
/* Name of the one data file of model `model`: model.HASH.data. */
static void find_data(const char *model, char *name, size_t size)
{
    glob_t found;
    char pattern[96];
    snprintf(pattern, sizeof pattern, "%s.????????????????.data", model);
    assert_int_equal(glob(at(pattern), 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(name, size, "%s", strrchr(found.gl_pathv[0], '/') + 1);
    globfree(&found);
}

static void test_external_data_is_copied_once(void **state)
{
    (void)state;
    static uint8_t bytes[8192];
    for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = (uint8_t)(k * 31 % 251);
    put_file("big.bin", bytes, sizeof bytes);
    const int64_t *dims = DIMS(1024);
    wire inner = W(
        w_msg(1, x_node("Abs", "v", "t", "", W_NONE)), w_str(2, "b"),
        w_msg(5, x_external("v", 1, dims, PAIRS("location", "big.bin", "offset", "4096"))),
        w_msg(12, w_str(1, "t")));
    wire more = W(
        w_msg(5, x_external("small", 1, DIMS(4), PAIRS("location", "big.bin", "offset", "16"))),
        w_msg(5, x_external("a", 1, dims, PAIRS("location", "big.bin"))),
        w_msg(5, x_external("b", 1, dims, PAIRS("location", "big.bin", "offset", "4096"))),
        w_msg(1, x_node("If", "x", "z", "if", x_attr_graph("then_branch", inner))));
    wire file = x_model(8, 13, relu_graph(more));
    put_file("m.onnx", file.data, file.n);
    ot_model *m = from_file("m.onnx");
    assert_int_equal(ot_export_file(m, at("o.onnx")), OT_OK);
    char name[64];
    find_data("o.onnx", name, sizeof name);
    wire data = get_file(name);
    assert_int_equal(data.n, 8192); /* "b" and "v" share a place */
    wire out = get_file("o.onnx");
    const uint8_t *in_line = memmem(out.data, out.n, bytes + 16, 16);
    assert_non_null(in_line); /* the small one moved into the model */
    ot_model *again = from_file("o.onnx");
    assert_memory_equal(value(again, "a")->init->data, bytes, 4096);
    assert_memory_equal(value(again, "b")->init->data, bytes + 4096, 4096);
    assert_memory_equal(value(again, "small")->init->data, bytes + 16, 16);
    done(again);
    /* onto its own data, or into a place that can hold no second file: refused, nothing changed */
    int before = entries();
    assert_int_equal(ot_export_file(m, at("big.bin")), OT_E_INPUT);
    assert_int_equal(ot_export_file(m, "/dev/null"), OT_E_INPUT);
    put_file("big.bin.data", "x", 1);
    void *block;
    size_t n;
    assert_int_equal(ot_export_memory(m, &block, &n), OT_E_INPUT);
    assert_int_equal(entries(), before + 1);
    assert_int_equal(get_file("big.bin").n, sizeof bytes);
    done(m);
    m = from_file("o.onnx"); /* its data is now an input, and what would be written */
    before = entries();
    assert_int_equal(ot_export_file(m, at("o.onnx")), OT_OK);
    assert_int_equal(entries(), before);
    done(m);
    m = from_file("m.onnx");
    put_file(name, "x", 1); /* somebody else's contents under that name: replaced */
    assert_int_equal(ot_export_file(m, at("o.onnx")), OT_OK);
    assert_int_equal(get_file(name).n, 8192);
    done(m);
}

/* ---- writing ---- */

static void test_untouched_models_come_back_byte_for_byte(void **state)
{
    (void)state;
    /* fields newer than the protos we build with: node metadata (9), model configuration (26) */
    wire n = W(x_node("Relu", "x", "y", "r", x_attr_int("q", -3)), w_str(6, "doc"),
               w_msg(9, W(w_str(1, "k"), w_str(2, "v"))));
    wire g = W(w_msg(1, n), w_str(2, "g"),
               w_msg(5, x_tensor("w", 7, DIMS(1), "\1\2\3\4\5\6\7\x08", 8)), w_str(10, "d"),
               f32_info(11, "x"), f32_info(12, "y"), w_msg(16, W(w_str(1, "a"), w_str(2, "b"))));
    wire file = W(w_int(1, 13), w_str(2, "someone"), w_msg(7, g), x_opset("", 24),
                  x_opset("foo", 3), w_msg(14, W(w_str(1, "k"), w_str(2, ""))),
                  function("f", "Abs"), w_msg(26, w_str(1, "cfg")));
    ot_model *m = good(file);
    void *bytes = NULL;
    size_t n_bytes;
    assert_int_equal(ot_export_memory(m, &bytes, &n_bytes), OT_OK);
    assert_int_equal(n_bytes, file.n);
    assert_memory_equal(bytes, file.data, file.n);
    free(bytes);
    ot_model_free(m);
}

/* A changed node is rebuilt from the IR; its neighbours, its own unknown fields and all else stay.
 */
static void test_a_changed_node_is_rebuilt(void **state)
{
    (void)state;
    wire tail = w_msg(9, W(w_str(1, "k"), w_str(2, "v")));
    wire abs1 = w_msg(1, x_node("Abs", "x", "a", "n1", W_NONE));
    wire info = W(f32_info(11, "x"), f32_info(11, "z"), f32_info(12, "y"));
    wire file = x_model(8, 13,
                        W(abs1,
                          w_msg(1, W(x_node("Relu", "a", "y", "n2", x_attr_int("q", 1)), tail)),
                          w_str(2, "g"), info));
    wire want = x_model(8, 13,
                        W(abs1,
                          w_msg(1, W(x_node("Relu", "z", "y", "n2", x_attr_int("q", 1)), tail)),
                          w_str(2, "g"), info));
    ot_model *m = good(file);
    assert_int_equal(
        ot_replace_uses(m->graph, ot_value_find(m->graph, "a"), ot_value_find(m->graph, "z")),
        OT_OK);
    wire out = exported(m);
    assert_int_equal(out.n, want.n);
    assert_memory_equal(out.data, want.data, want.n);
    ot_model_free(m);
}

static void add_body(ot_model *m, ot_id weight)
{
    ot_graph *g = m->graph, *b = ot_graph_new(m, g, "body");
    assert_non_null(b);
    ot_id in = ot_value_new(b, "b_in", OT_F32, 2, DIMS(1, 2)),
          out = ot_value_new(b, "b_out", OT_F32, 2, DIMS(1, 2));
    ot_id w = ot_value_new(b, "b_w", OT_F32, 2, DIMS(1, 2));
    b->values[w].init = g->values[weight].init;
    b->values[in].is_input = b->values[out].is_output = true;
    b->inputs = ot_memdup(m->arena, &in, sizeof in);
    b->outputs = ot_memdup(m->arena, &out, sizeof out);
    b->n_inputs = b->n_outputs = 1;
    assert_true(ot_node_new(b, &(ot_node_def){.op = "Add",
                                              .name = "b_add",
                                              .in = {(ot_id[]){in, w}, 2},
                                              .out = {&out, 1}}) != OT_NONE);
    ot_attr attrs[2] = {ot_mk_graph("body", b), ot_mk_int("num_scan_inputs", 1)};
    ot_id x = ot_value_find(g, "x"), z = ot_value_new(g, "z", OT_F32, 2, DIMS(1, 2));
    assert_true(ot_node_new(g, &(ot_node_def){.op = "Scan",
                                              .name = "scan",
                                              .in = {&x, 1},
                                              .out = {&z, 1},
                                              .attrs = {attrs, 2}}) != OT_NONE);
    g->values[weight].removed = true;
    assert_int_equal(ot_topo_sort(g), OT_OK);
}

/* The same change in IR 8 (initializers) and IR 3 (Constant nodes; the moved weight was an input).
 */
static void test_bodies_and_new_constants(void **state)
{
    (void)state;
    static const float w[] = {1, 2};
    for (int ir = 3; ir <= 8; ir += 5) {
        wire weight = w_msg(5, x_tensor("w", 1, DIMS(1, 2), w, 8));
        wire g = W(w_msg(1, x_node("Relu", "x", "y", "r", W_NONE)), w_str(2, "g"), weight,
                   f32_info(11, "x"), ir < 4 ? f32_info(11, "w") : W_NONE, f32_info(12, "y"));
        ot_model *m = good(x_model(ir, 13, g));
        ot_id wid = ot_value_find(m->graph, "w");
        ot_id k = ot_const_i64(m->graph, "k", (int64_t[]){3}, 0, NULL);
        assert_true(k != OT_NONE);
        add_body(m, wid);

        wire moved = x_tensor("b_w", 1, DIMS(1, 2), w, 8),
             kt = x_tensor("k", 7, (const int64_t[]){-9}, "\3\0\0\0\0\0\0\0", 8);
        wire value = w_msg(5, W(w_str(1, "value"), w_msg(5, moved), w_int(20, 4)));
        wire k_attr = w_msg(5, W(w_str(1, "value"), w_msg(5, kt), w_int(20, 4)));
        wire b_const = ir < 4 ? w_msg(1, W(w_str(2, "b_w"), w_str(3, "b_w"), w_str(4, "Constant"),
                                           value))
                              : W_NONE;
        wire k_const = ir < 4
                           ? w_msg(1, W(w_str(2, "k"), w_str(3, "k"), w_str(4, "Constant"), k_attr))
                           : W_NONE;
        wire body = W(b_const, w_msg(1, x_node("Add", "b_in b_w", "b_out", "b_add", W_NONE)),
                      w_str(2, "body"), ir < 4 ? W_NONE : w_msg(5, moved), f32_info(11, "b_in"),
                      f32_info(12, "b_out"));
        wire scan = w_msg(1,
                          x_node("Scan", "x", "z", "scan",
                                 W(x_attr_graph("body", body), x_attr_int("num_scan_inputs", 1))));
        wire want = x_model(ir, 13,
                            W(k_const, w_msg(1, x_node("Relu", "x", "y", "r", W_NONE)), scan,
                              w_str(2, "g"), ir < 4 ? W_NONE : w_msg(5, kt), f32_info(11, "x"),
                              f32_info(12, "y"), f32_info(13, "z")));
        wire out = exported(m);
        assert_int_equal(out.n, want.n);
        assert_memory_equal(out.data, want.data, want.n);
        ot_model_free(good(out));
        ot_model_free(m);
    }
}

static void test_bound_inputs_are_static_when_the_graph_changed(void **state)
{
    (void)state;
    wire n = w_msg(1, x_node("Relu", "x", "y", "r", W_NONE));
    wire shape = W(w_msg(1, w_str(2, "N")), w_msg(1, W(w_int(1, 2), w_str(3, "CHANNEL"))));
    wire pinned = W(w_msg(1, w_int(1, 5)), w_msg(1, W(w_int(1, 2), w_str(3, "CHANNEL"))));
    wire before = w_msg(11, W(w_str(1, "x"), w_msg(2, w_msg(1, W(w_int(1, 1), w_msg(2, shape))))));
    wire after = w_msg(11, W(w_str(1, "x"), w_msg(2, w_msg(1, W(w_int(1, 1), w_msg(2, pinned))))));
    wire file = x_model(8, 13, W(n, w_str(2, "g"), before, f32_info(12, "y")));
    ot_model *m = good(file);
    m->static_inputs = true;
    assert_int_equal(ot_value_set_shape(m->graph, ot_value_find(m->graph, "x"), 2, DIMS(5, 2)),
                     OT_OK);
    wire out = exported(m);
    assert_int_equal(out.n, file.n);
    assert_memory_equal(out.data, file.data, file.n); /* nothing changed: as it was */
    m->graph->nodes[0].proto = NULL;
    wire want = x_model(8, 13, W(n, w_str(2, "g"), after, f32_info(12, "y")));
    out = exported(m);
    assert_int_equal(out.n, want.n);
    assert_memory_equal(out.data, want.data, want.n);
    ot_model_free(m);
}

static void test_an_output_appears_whole_or_not_at_all(void **state)
{
    (void)state;
    wire file = x_model(8, 13, relu_graph(W_NONE));
    put_file("m.onnx", file.data, file.n);
    ot_model *m = from_file("m.onnx");
    put_file("old.onnx", "old", 3);
    assert_int_equal(chmod(at("old.onnx"), 0640), 0);
    assert_int_equal(ot_export_file(m, at("old.onnx")), OT_OK); /* replaced, mode kept */
    struct stat st;
    assert_int_equal(stat(at("old.onnx"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_size, file.n);
    assert_int_equal(ot_export_file(m, at("m.onnx")), OT_OK); /* onto itself */
    assert_int_equal(symlink("old.onnx", at("link.onnx")), 0);
    put_file("old.onnx", "old", 3);
    assert_int_equal(ot_export_file(m, at("link.onnx")), OT_OK);
    assert_int_equal(lstat(at("link.onnx"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(get_file("old.onnx").n, file.n);
    assert_int_equal(ot_export_file(m, "/dev/null"), OT_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    int before = entries();
    assert_int_equal(ot_export_file(m, at("nowhere/o.onnx")), OT_E_SYSTEM);
    m->diag->status = OT_OK;
    assert_int_equal(ot_export_file(m, folder), OT_E_SYSTEM);
    m->diag->status = OT_OK;
    assert_int_equal(ot_export_file(m, "/dev/full"), OT_E_SYSTEM);
    assert_int_equal(entries(), before); /* no temporary file is left */
    done(m);
    ot_diag d = {0};
    assert_int_equal(ot_import_file(at("nowhere.onnx"), &d, &m), OT_E_INPUT);
    d.status = OT_OK;
    assert_int_equal(ot_import_file(folder, &d, &m), OT_E_INPUT);
    assert_non_null(strstr(d.message, "folder"));
}

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
        TEST(test_external_data_is_fenced),
        TEST(test_external_data_is_copied_once),
        TEST(test_untouched_models_come_back_byte_for_byte),
        TEST(test_a_changed_node_is_rebuilt),
        TEST(test_bodies_and_new_constants),
        TEST(test_bound_inputs_are_static_when_the_graph_changed),
        TEST(test_an_output_appears_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
