/* What is written back, and what lies beside a model: external data is fenced and copied once;
 * what is exported equals, byte for byte or field for field, what the rules say. */
#include "import_files.h"

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

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
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
