/* Files of models that are large, and files that others write to while they are in use.
 *
 * A large model file is read in parts (pb_slim.c): what arrives is what arrives from memory, which
 * knows no parts. External data is mapped and guarded (file_view.c).
 */
#include "import_check.h"

#include "base/file_view.h"
#include "onnx_tile.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE 300000 /* elements: more than a file that is read as a whole may have */
#define PAGE  4096

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

/* ---- large model files ---- */

static float contents[2][LARGE];

static void fill_contents(void)
{
    for (int k = 0; k < LARGE; k++) {
        contents[0][k] = (float)k;
        contents[1][k] = (float)-k;
    }
}

static wire large_tensor(const char *name, int which)
{
    return x_tensor(name, 1, DIMS(LARGE), contents[which], sizeof contents[which]);
}

/* x -> Add w -> y */
static wire add_graph(wire before, wire behind)
{
    return W(before, w_msg(1, x_node("Add", "x w", "y", "a", W_NONE)), w_str(2, "g"), behind,
             w_msg(11, x_value_info("x", 1, DIMS(LARGE))),
             w_msg(12, x_value_info("y", 1, DIMS(LARGE))));
}

static ot_status import_file(wire file, ot_diag *d, ot_model **m)
{
    put_file("m.onnx", file.data, file.n);
    *d = (ot_diag){0};
    *m = NULL;
    return ot_import_file(at("m.onnx"), d, m);
}

/* The file arrives as the same bytes in memory do. */
static void same_as_memory(wire file)
{
    ot_diag d, e = {0};
    ot_model *m, *from_memory = NULL;
    ot_status s = import_file(file, &d, &m);
    ot_status t = ot_import_memory(file.data, file.n, NULL, &e, &from_memory);
    assert_int_equal(s, t);
    assert_string_equal(d.message, e.message);
    if (s != OT_OK) return;
    wire a = exported(m), b = exported(from_memory);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.data, b.data, a.n);
    ot_model_free(m);
    ot_model_free(from_memory);
}

static void test_a_large_file_arrives_as_from_memory(void **state)
{
    (void)state;
    fill_contents();
    wire w = w_msg(5, large_tensor("w", 0)), u = w_msg(5, large_tensor("u", 1));
    same_as_memory(x_model(8, 13, add_graph(W_NONE, w)));
    same_as_memory(x_model(8, 13, add_graph(w, u))); /* tensors in front of nodes and behind */
    /* in an attribute, in a graph in an attribute */
    wire value = w_msg(5, W(w_str(1, "value"), w_msg(5, large_tensor("", 1)), w_int(20, 4)));
    wire inner = W(w_msg(1, x_node("Constant", "", "k", "c", value)), w_str(2, "b"), u,
                   w_msg(12, x_value_info("k", 1, DIMS(LARGE))));
    wire branches = W(x_attr_graph("then_branch", inner), x_attr_graph("else_branch", inner));
    wire nodes = W(w_msg(1, x_node("Constant", "", "l", "d", value)),
                   w_msg(1, x_node("If", "x", "z", "i", branches)));
    same_as_memory(x_model(8, 13, add_graph(nodes, w)));
    /* contents in a typed field stay where they are */
    wire typed = W(w_int(1, LARGE), w_int(2, 1), w_str(8, "w"),
                   w_bytes(4, contents[0], sizeof contents[0]));
    same_as_memory(x_model(8, 13, add_graph(W_NONE, w_msg(5, typed))));
}

static void test_what_is_no_plain_case_arrives_too(void **state)
{
    (void)state;
    fill_contents();
    wire plain = large_tensor("w", 0);
    /* contents twice: the last count */
    wire twice = W(plain, w_bytes(9, contents[1], sizeof contents[1]));
    same_as_memory(x_model(8, 13, add_graph(W_NONE, w_msg(5, twice))));
    /* a short one last: refused, as from memory */
    same_as_memory(x_model(8, 13, add_graph(W_NONE, w_msg(5, W(plain, w_bytes(9, "abcd", 4))))));
    /* the field that stands for contents in the copy; it survives */
    wire field = W(w_varint(((1ull << 29) - 1) << 3 | 1), (wire){(uint8_t *)"\0\0\0\0\0\0\0\0", 8});
    same_as_memory(x_model(8, 13, add_graph(W_NONE, w_msg(5, W(plain, field)))));
    same_as_memory(W(x_model(8, 13, add_graph(W_NONE, w_msg(5, plain))), field));
    /* a tensor in two parts, which readers merge */
    wire part = W(w_str(1, "value"), w_msg(5, large_tensor("", 1)), w_int(20, 4));
    wire parts = w_msg(5, W(part, w_msg(5, w_str(8, "named"))));
    same_as_memory(x_model(
        8, 13, add_graph(w_msg(1, x_node("Constant", "", "k", "c", parts)), w_msg(5, plain))));
}

static void test_broken_large_files_are_refused_as_from_memory(void **state)
{
    (void)state;
    fill_contents();
    wire file = x_model(8, 13, add_graph(W_NONE, w_msg(5, large_tensor("w", 0))));
    for (size_t n = file.n; n > (1u << 20); n -= 30011) same_as_memory((wire){file.data, n - 1});
    wire group = W(large_tensor("w", 0), w_varint(77 << 3 | 3));
    same_as_memory(x_model(8, 13, add_graph(W_NONE, w_msg(5, group))));
    wire deep = large_tensor("w", 0); /* deeper than readers go */
    for (int k = 0; k < 60; k++)
        deep = W(w_msg(5, W(w_str(1, "g"), w_msg(6, w_msg(1, deep)), w_int(20, 5))));
    same_as_memory(x_model(8, 13, w_msg(1, deep)));
}

static size_t held, held_most;

static void *counting(void *ptr, size_t old_size, size_t new_size)
{
    held += new_size - old_size;
    if (held > held_most) held_most = held;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Contents are never in memory twice. */
static void test_contents_are_read_where_they_stay(void **state)
{
    (void)state;
    fill_contents();
    ot_diag d;
    ot_model *m;
    wire file = x_model(
        8, 13,
        add_graph(W_NONE, W(w_msg(5, large_tensor("w", 0)), w_msg(5, large_tensor("u", 1)))));
    held = held_most = 0;
    ot_set_alloc_hook(counting);
    assert_int_equal(import_file(file, &d, &m), OT_OK);
    assert_in_range(held_most, sizeof contents, sizeof contents + (1 << 19));
    ot_model_free(m);
    ot_set_alloc_hook(NULL);
    assert_int_equal(held, 0);
}

/* ---- external data that becomes shorter ---- */

#define ELEMENTS (4 * PAGE)

/* A model whose weight of 16 pages is in w.bin. */
static ot_model *external(void)
{
    static float weight[ELEMENTS];
    for (int k = 0; k < ELEMENTS; k++) weight[k] = 1;
    put_file("w.bin", weight, sizeof weight);
    wire w = x_external("w", 1, DIMS(ELEMENTS), PAIRS("location", "w.bin"));
    wire g = W(w_msg(1, x_node("Add", "x w", "y", "a", W_NONE)), w_str(2, "g"), w_msg(5, w),
               w_msg(11, x_value_info("x", 1, DIMS(ELEMENTS))),
               w_msg(12, x_value_info("y", 1, DIMS(ELEMENTS))));
    ot_diag *d = test_calloc(1, sizeof *d);
    ot_model *m;
    wire file = x_model(8, 13, g);
    put_file("m.onnx", file.data, file.n);
    if (ot_import_file(at("m.onnx"), d, &m) != OT_OK) fail_msg("%s", d->message);
    return m;
}

static void close_external(ot_model *m)
{
    ot_diag *d = m->diag;
    ot_model_free(m);
    test_free(d);
}

static const float *weight_of(const ot_model *m)
{
    return m->graph->values[ot_value_find(m->graph, "w")].init->data;
}

static void test_what_a_file_lost_is_read_as_zeros_and_told(void **state)
{
    (void)state;
    ot_model *m = external();
    ot_diag d = {0};
    assert_int_equal(truncate(at("w.bin"), 2 * PAGE), 0);
    assert_int_equal(ot_import_check(m, OT_OK, &d), OT_OK); /* nothing of it was read */
    assert_true(weight_of(m)[0] == 1);
    assert_int_equal(ot_import_check(m, OT_OK, &d), OT_OK);
    assert_true(weight_of(m)[ELEMENTS - 1] == 0);
    assert_true(weight_of(m)[ELEMENTS / 2] == 0);
    ot_fail(&d, OT_E_SYSTEM, "what follows from it");
    assert_int_equal(ot_import_check(m, OT_E_SYSTEM, &d), OT_E_INPUT);
    assert_non_null(strstr(d.message, "external data 'w.bin' has become shorter"));
    assert_int_equal(ot_import_check(m, OT_OK, NULL), OT_E_INPUT); /* for good */
    close_external(m);
}

static void test_zeros_are_never_written(void **state)
{
    (void)state;
    ot_model *m = external();
    assert_int_equal(truncate(at("w.bin"), 0), 0);
    assert_int_equal(ot_export_file(m, at("out.onnx")), OT_E_INPUT);
    assert_non_null(strstr(m->diag->message, "has become shorter"));
    assert_int_equal(access(at("out.onnx"), F_OK), -1);
    close_external(m);
}

static void test_small_tensors_stay_as_they_were(void **state)
{
    (void)state;
    int64_t shape[2] = {2, 3};
    put_file("s.bin", shape, sizeof shape);
    wire s = x_external("s", 7, DIMS(2), PAIRS("location", "s.bin"));
    wire g = W(w_msg(1, x_node("Reshape", "x s", "y", "r", W_NONE)), w_str(2, "g"), w_msg(5, s),
               w_msg(11, x_value_info("x", 1, DIMS(6))),
               w_msg(12, x_value_info("y", 1, DIMS(2, 3))));
    ot_diag d;
    ot_model *m;
    assert_int_equal(import_file(x_model(8, 13, g), &d, &m), OT_OK);
    int fd = open(at("s.bin"), O_WRONLY);
    assert_int_equal(pwrite(fd, "\x7f", 1, 0), 1);
    close(fd);
    const ot_tensor *t = m->graph->values[ot_value_find(m->graph, "s")].init;
    assert_int_equal(((const int64_t *)t->data)[0], 2);
    assert_int_equal(truncate(at("s.bin"), 0), 0);
    assert_int_equal(((const int64_t *)t->data)[1], 3);
    assert_int_equal(ot_import_check(m, OT_OK, &d), OT_OK);
    ot_model_free(m);
}

#ifdef OT_ENGINE

static void test_a_session_tells(void **state)
{
    (void)state;
    static float x[ELEMENTS];
    onnx_tile_session *s;
    close_external(external());
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_load_file(s, at("m.onnx")), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_bind_input(s, 0, x, NULL, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_OK);
    assert_int_equal(truncate(at("w.bin"), 2 * PAGE), 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_INPUT);
        assert_non_null(strstr(onnx_tile_session_error(s), "'w.bin' has become shorter"));
    }
    onnx_tile_session_free(s);
}

#endif

/* ---- who else handles the signal ---- */

static volatile int handled;

static void own_handler(int number)
{
    (void)number;
    handled++;
}

static ot_file_view *view_of(const char *name, size_t n)
{
    ot_file_view *v = NULL;
    int fd = open(at(name), O_RDONLY);
    assert_int_equal(ot_file_view_new(fd, n, &v), OT_OK);
    close(fd);
    return v;
}

static void test_other_faults_go_to_the_handler_before(void **state)
{
    (void)state;
    static char pages[2 * PAGE];
    put_file("v", pages, sizeof pages);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGBUS, own_handler); /* the one before, as far as later views know */
        ot_file_view *v = view_of("v", sizeof pages), *w = view_of("v", sizeof pages);
        (void)!truncate(at("v"), 0);
        bool ours = ((const volatile char *)ot_file_view_data(v))[PAGE] == 0 && handled == 0 &&
                    ot_file_view_damaged(v) && !ot_file_view_damaged(w);
        raise(SIGBUS);
        ot_file_view_free(v);
        ot_file_view_free(w);
        _exit(ours && handled == 1 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Once a view is freed its memory is not guarded; a fault there ends the process as ever. */
static void test_without_another_handler_the_process_ends(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char page[PAGE];
        put_file("v", page, sizeof page);
        signal(SIGBUS, SIG_DFL);
        ot_file_view_free(view_of("v", sizeof page));
        raise(SIGBUS);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_large_file_arrives_as_from_memory),
        cmocka_unit_test(test_what_is_no_plain_case_arrives_too),
        cmocka_unit_test(test_broken_large_files_are_refused_as_from_memory),
        cmocka_unit_test(test_contents_are_read_where_they_stay),
        cmocka_unit_test(test_what_a_file_lost_is_read_as_zeros_and_told),
        cmocka_unit_test(test_zeros_are_never_written),
        cmocka_unit_test(test_small_tensors_stay_as_they_were),
#ifdef OT_ENGINE
        cmocka_unit_test(test_a_session_tells),
#endif
        cmocka_unit_test(test_other_faults_go_to_the_handler_before),
        cmocka_unit_test(test_without_another_handler_the_process_ends),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
