/* Running out of memory at every possible place: import, change and export of a model; planning
 * and rewriting it.
 *
 * The hook lets k allocations succeed and fails all later ones, or the next one only, for k = 0,
 * 1, 2, ... until everything succeeds. Each run must end with OT_E_NOMEM or OT_OK, give all
 * memory back, and leave no file behind; no run may end with another plan.
 */
#include "onnx/import/model_io.h"
#include "onnx_tile.h"
#include "wire.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#include <unistd.h>

static long allowed;
static long live;
static bool once; /* one allocation fails, those after it succeed */

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && allowed-- <= 0 && !(once && allowed < -1)) return NULL;
    live += (long)new_size - (long)(ptr ? old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* A model with every kind of thing in it, and enough of it to make lists and tables grow. */
static wire rich_model(void)
{
    static uint8_t raw[40000];
    wire nodes = {NULL, 0};
    for (int k = 0; k < 120; k++) {
        char in[32], out[32];
        snprintf(in, sizeof in, k ? "v%d w" : "x w", k - 1);
        snprintf(out, sizeof out, "v%d", k);
        wire attrs = W(x_attr_int("q", k),
                       w_msg(5, W(w_str(1, "s"), w_str(4, "text"), w_int(20, 3))),
                       w_msg(5, W(w_str(1, "l"), w_str(9, "a"), w_str(9, "b"), w_int(20, 8))));
        nodes = w_cat(nodes, w_msg(1, x_node("Add", in, out, out, attrs)));
    }
    wire inner = W(w_msg(1, x_node("Abs", "v3", "t", "", W_NONE)), w_str(2, "b"),
                   w_msg(12, w_str(1, "t")));
    wire g = W(nodes, w_msg(1, x_node("If", "x", "y", "if", x_attr_graph("then_branch", inner))),
               w_str(2, "g"), w_msg(5, x_tensor("w", 1, DIMS(100, 100), raw, sizeof raw)),
               w_msg(5, W(w_int(1, 2), w_int(2, 3), w_bytes(5, "\1\2", 2), w_str(8, "narrow"))),
               w_msg(11, x_value_info("x", 1, DIMS(1, -1))),
               w_msg(12, x_value_info("y", 1, DIMS(1, 2))),
               w_msg(13, x_value_info("v7", 1, DIMS(1, 2))));
    wire f = w_msg(25, W(w_str(1, "f"), w_str(4, "a"), w_str(5, "b"),
                         w_msg(7, x_node("Abs", "a", "b", "", W_NONE)), w_str(10, "d")));
    return w_cat(x_model(8, 13, g), f);
}

static ot_status change(ot_model *m)
{
    ot_graph *g = m->graph;
    if (ot_const_i64(g, "k", (int64_t[]){1, 2}, 1, (int64_t[]){2}) == OT_NONE)
        return ot_fail_nomem(m->diag);
    OT_TRY(ot_replace_uses(g, ot_value_find(g, "v5"), ot_value_find(g, "v4")));
    return ot_topo_sort(g);
}

static ot_status everything(wire file, const char *path, ot_diag *d)
{
    ot_model *m = NULL;
    OT_TRY(ot_import_memory(file.data, file.n, NULL, d, &m));
    ot_status st = change(m);
    if (st == OT_OK) st = ot_export_file(m, path);
    ot_model_free(m);
    return st;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    char path[] = "/tmp/onnx-tile-oom-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlink(path), 0);
    wire file = rich_model();
    ot_set_alloc_hook(failing_hook);
    long k = 0;
    for (;; k++) {
        ot_diag d = {0};
        allowed = k;
        live = 0;
        ot_status st = everything(file, path, &d);
        if (live != 0) fail_msg("%ld bytes are not given back when allocation %ld fails", live, k);
        if (st == OT_OK) break;
        if (st != OT_E_NOMEM || d.status != OT_E_NOMEM)
            fail_msg("allocation %ld fails: status %d, %s", k, st, d.message);
        if (access(path, F_OK) == 0) fail_msg("a file is left behind when allocation %ld fails", k);
    }
    ot_set_alloc_hook(NULL);
    assert_true(k > 30); /* small messages share blocks, but under sanitizers: hundreds there */
    assert_int_equal(unlink(path), 0);
    wire_reset();
}

/* ---- planning ---- */

static const char network[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[2,8,64,64]\n  init %w : float32[8,8,3,3] "
    "= random 1\n"
    "  init %v : float32[8,8,3,3] = random 2\n  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = "
    "Relu(%a)\n"
    "  %c = Conv(%b, %v) {pads=[1,1,1,1]}\n  %d = Add(%c, %x)\n  %e = Softmax(%d) {axis=1}\n"
    "  %p = GlobalAveragePool(%e)\n  %y = Relu(%d)\n  output %y\n  output %p\n}\n";

/* The last rows of it are read (transform/narrow.c). */
static const char cropped[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,256,64]\n"
    "  init %w : float32[8,8,3,3] = random 1\n  init %s : int64[1] = [-96]\n"
    "  init %e : int64[1] = [256]\n  init %d : int64[1] = [2]\n  init %i : int64[] = [5]\n"
    "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n  %c = Slice(%b, %s, %e, %d)\n"
    "  %f = Conv(%c, %w) {pads=[1,1,1,1]}\n  %h = Exp(%f)\n"
    "  %y = Gather(%h, %i) {axis = 3}\n  output %y\n}\n";

/* Circular padding that goes (transform/wraps.c). */
static const char wrapped[] =
    "model ir 9 opset 19\ngraph g {\n  input %x : float32[1,8,64,64]\n"
    "  init %w : float32[8,8,3,3] = random 1\n  init %p : int64[8] = [0,0,1,1,0,0,1,1]\n"
    "  %a = Pad(%x, %p) {mode = \"wrap\"}\n  %b = Conv(%a, %w)\n  %r = Relu(%b)\n"
    "  %c = Pad(%r, %p) {mode = \"wrap\"}\n  %d = Conv(%c, %w)\n  %y = Add(%d, %r)\n"
    "  output %y\n}\n";

/* *json: what the tool says of its plan; in memory of the C library. */
static onnx_tile_status plan(const void *bytes, size_t n, onnx_tile_goal goal, char **json,
                             char *error)
{
    onnx_tile *t = NULL;
    const char *text = NULL;
    void *out = NULL;
    size_t n_out;
    onnx_tile_status st = onnx_tile_create(&t);
    *json = NULL;
    *error = '\0';
    if (st == ONNX_TILE_OK) st = onnx_tile_set_target(t, "cpu-generic");
    if (st == ONNX_TILE_OK) st = onnx_tile_set_l2(t, 1 << 15);
    if (st == ONNX_TILE_OK) st = onnx_tile_set_force(t, 1);
    if (st == ONNX_TILE_OK) st = onnx_tile_set_goal(t, goal);
    if (st == ONNX_TILE_OK) st = onnx_tile_load_memory(t, bytes, n, NULL);
    if (st == ONNX_TILE_OK) st = onnx_tile_optimise(t);
    if (st == ONNX_TILE_OK) st = onnx_tile_save_memory(t, &out, &n_out);
    if (st == ONNX_TILE_OK) st = onnx_tile_results_json(t, &text);
    if (st == ONNX_TILE_OK) *json = strdup(text);
    if (t) snprintf(error, 500, "%s", onnx_tile_error(t));
    onnx_tile_free_bytes(out);
    onnx_tile_free(t);
    return st;
}

/* Every allocation of a plan of this goal; those after it fail as well, or not. */
static void walk_plan(const void *bytes, size_t n, onnx_tile_goal goal, bool alone)
{
    char *want, *got, error[500];
    assert_int_equal(plan(bytes, n, goal, &want, error), ONNX_TILE_OK);
    assert_non_null(strstr(want, "\"form\""));
    ot_set_alloc_hook(failing_hook);
    long k = 0;
    for (once = alone;; k++) {
        allowed = k;
        live = 0;
        onnx_tile_status st = plan(bytes, n, goal, &got, error);
        if (live != 0) fail_msg("%ld bytes are not given back when allocation %ld fails", live, k);
        if (st == ONNX_TILE_OK && strcmp(want, got) != 0)
            fail_msg("another plan when allocation %ld fails:\n%s", k, got);
        if (st != ONNX_TILE_OK && st != ONNX_TILE_NOMEM)
            fail_msg("allocation %ld fails: status %d, %s", k, st, error);
        if (strchr(error, '\n')) fail_msg("allocation %ld: more than a line: %s", k, error);
        free(got);
        if (st == ONNX_TILE_OK && allowed >= 0) break;
        if (st == ONNX_TILE_OK) fail_msg("allocation %ld fails, and nobody says so", k);
    }
    ot_set_alloc_hook(NULL);
    once = false;
    free(want);
    print_message("%ld allocations\n", k);
    assert_true(k > 50); /* arenas take memory in blocks */
}

/* The file of the text; the caller frees it. */
static void *file_of(const char *text, size_t *n)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    void *bytes = NULL;
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
    assert_int_equal(ot_export_memory(m, &bytes, n), OT_OK);
    ot_model_free(m);
    return bytes;
}

static void test_a_plan_or_none(void **state)
{
    (void)state;
    size_t n;
    void *bytes = file_of(network, &n);
    for (int alone = 0; alone < 2; alone++) {
        walk_plan(bytes, n, ONNX_TILE_GOAL_TIME, alone);
        walk_plan(bytes, n, ONNX_TILE_GOAL_MEMORY, alone);
    }
    free(bytes);
}

static void test_an_edited_graph_or_none(void **state)
{
    (void)state;
    static const char *const texts[] = {cropped, wrapped};
    for (int k = 0; k < 4; k++) {
        size_t n;
        char *json, error[500];
        void *bytes = file_of(texts[k / 2], &n);
        assert_int_equal(plan(bytes, n, ONNX_TILE_GOAL_MEMORY, &json, error), ONNX_TILE_OK);
        assert_non_null(strstr(json, k < 2 ? "narrowed_nodes" : "tile/wrap"));
        free(json);
        walk_plan(bytes, n, ONNX_TILE_GOAL_MEMORY, k % 2);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation_may_fail),
                                       cmocka_unit_test(test_a_plan_or_none),
                                       cmocka_unit_test(test_an_edited_graph_or_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
