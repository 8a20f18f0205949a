/* Inputs and results that stay on the host while loops move tiles of them: which do, what is
 * moved, and that results are those of the untiled graph. Skipped where there is no device.
 *
 *   x [ROWS, COLS] --Slice--> body --Deslice--> y        ROWS tiles of one row, or so many columns
 */
#include "engine_graphs.h"
#include "engine_device_rig.h"
#include "tiled_graph.h"

enum { ROWS = 12, COLS = 40, TILES = 10, WIDE = COLS / TILES };

static float x[ROWS * COLS];

static int fill(void **state)
{
    for (int k = 0; k < ROWS * COLS; k++) x[k] = (float)(k % 37) - 18;
    return open_device(state);
}

typedef struct facts {
    ot_device_figures f;
    ot_nd out[2];
} facts;

/* Runs it twice: places are used again. */
static facts run_graph(bench *b, const char *text)
{
    facts r = {0};
    ot_nd in = F32S(x, ROWS, COLS);
    open_with(b, text, (ot_session_options){.place = &place});
    if (b->status != OT_OK) fail_msg("%s\n%s", b->d.message, text);
    run_ok(b, &in, r.out);
    memset(r.out, 0, sizeof r.out);
    run_ok(b, &in, r.out);
    ot_device_figures_get(b->s, &r.f);
    return r;
}

static void check_negated(const ot_nd *y)
{
    float want[ROWS * COLS];
    for (int k = 0; k < ROWS * COLS; k++) want[k] = -x[k];
    check_floats(y, want, ROWS * COLS);
}

/* A loop over windows of `wide` columns of x: `work` makes %t of %s. */
static void write_loop(char *text, size_t n, const char *work, const char *behind)
{
    char starts[TILES * 4 + 8] = "";
    for (int k = 0; k < TILES; k++)
        snprintf(starts + strlen(starts), sizeof starts - strlen(starts), "%s%d", k ? "," : "",
                 k * WIDE);
    snprintf(
        text, n,
        "input %%x : float32[%d,%d]\n%%y0 = \"onnx_tile\"::Alloc@1() {shape=[%d,%d], dtype=1}\n"
        "%%y = \"onnx_tile\"::While@1(%%y0) {count=%d, body=graph body {\n  input %%i : int64[]\n  "
        "input %%buffer : float32[%d,%d]\n"
        "  outer %%x : float32[%d,%d]\n"
        "  %%s : float32[%d,%d] = \"onnx_tile\"::Slice@1(%%x, %%i) {axes=[1], sizes=[%d], "
        "starts=[%s]}\n%s"
        "  %%next : float32[%d,%d] = \"onnx_tile\"::Deslice@1(%%t, %%buffer, %%i) {axes=[1], "
        "starts=[%s]}\n  output %%next\n}}\n%s",
        ROWS, COLS, ROWS, COLS, TILES, ROWS, COLS, ROWS, COLS, ROWS, WIDE, WIDE, starts, work, ROWS,
        COLS, starts, behind);
}

#define TILE "float32[12,4]"

static void tiles_move_both_ways(void **state)
{
    NEEDS_DEVICE(state);
    char text[4000];
    bench b;
    write_loop(text, sizeof text, "  %t : " TILE " = Neg(%s)\n", "output %y\n");
    facts r = run_graph(&b, text);
    check_negated(&r.out[0]);
    assert_int_equal(r.f.n_uploads, TILES);
    assert_int_equal(r.f.n_downloads, TILES);
    assert_int_equal(r.f.uploaded, sizeof x);
    assert_int_equal(r.f.downloaded, sizeof x);
    assert_int_equal(r.f.arena_bytes, 4 * 256); /* two windows, two tiles, of 192 bytes each */
    close_bench(&b);
}

/* The tile is a window of an input, another shape of what a kernel made, or a part of it: what
 * leaves is whole and the loop's own. */
static void tiles_that_are_views(void **state)
{
    NEEDS_DEVICE(state);
    static const char *const works[] = {
        "  %m : " TILE " = Neg(%s)\n  %n : " TILE " = Neg(%m)\n  %o : " TILE
        " = Neg(%n)\n  %t : " TILE " = Identity(%o)\n",
        "  %m : " TILE " = Neg(%s)\n  %f : float32[48] = Reshape(%m, %flat)\n  %t : " TILE
        " = Reshape(%f, %shape)\n",
        "  %m : " TILE " = Neg(%s)\n  %c : float32[24,4] = Concat(%m, %s) {axis=0}\n  %t : " TILE
        ", %u : " TILE " = Split(%c) {axis=0, num_outputs=2}\n",
    };
    char text[4000], work[800];
    for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
        bench b;
        snprintf(work, sizeof work,
                 "  init %%flat : int64[1] = [48]\n  init %%shape : int64[2] = [12, 4]\n%s",
                 works[k]);
        write_loop(text, sizeof text, work, "output %y\n");
        facts r = run_graph(&b, text);
        check_negated(&r.out[0]);
        assert_int_equal(r.f.n_downloads, TILES);
        assert_int_equal(r.f.n_host, 0);
        close_bench(&b);
    }
}

/* A window that leaves as it came has a copy: its place is loaded again while the tile is on its
 * way. */
static void windows_that_leave_at_once(void **state)
{
    NEEDS_DEVICE(state);
    char text[4000];
    bench b;
    write_loop(text, sizeof text, "  %t : " TILE " = Identity(%s)\n", "%z = Neg(%y)\noutput %z\n");
    facts r = run_graph(&b, text);
    check_negated(&r.out[0]);
    close_bench(&b);
    write_loop(text, sizeof text, "  %t : " TILE " = Identity(%s)\n", "output %y\n");
    r = run_graph(&b, text);
    check_floats(&r.out[0], x, ROWS * COLS);
    assert_int_equal(r.f.n_launches, TILES);
    close_bench(&b);
}

/* Who is read by others is there whole. */
static void others_read_them_too(void **state)
{
    NEEDS_DEVICE(state);
    char text[4000];
    bench b;
    write_loop(text, sizeof text, "  %t : " TILE " = Neg(%s)\n",
               "%z = Sub(%y, %x)\noutput %y\noutput %z\n");
    facts r = run_graph(&b, text);
    check_negated(&r.out[0]);
    assert_int_equal(r.f.n_uploads, 1);
    assert_int_equal(r.f.n_downloads, 2);
    for (int k = 0; k < ROWS * COLS; k++) assert_true(ot_nd_double(&r.out[1], k) == -2.0 * x[k]);
    close_bench(&b);
}

/* Border tiles are loops of their own: they share a place of memory, and fill one result. The
 * whole graph is cut by the planner. */
static void chains_of_loops(void **state)
{
    NEEDS_DEVICE(state);
    static graph g = {.text = "input %cond : bool[]\ninput %v0 : float32[1,3,96,20]\ninit %w : "
                              "float32[4,3,3,3] = random 1 * 0.3\n"
                              "init %u : float32[5,4,3,3] = random 2 * 0.3\n%a = Conv(%v0, %w) "
                              "{pads=[1, 1, 1, 1]}\n%b = Relu(%a)\n"
                              "%y = Conv(%b, %u) {pads=[1, 1, 1, 1]}\noutput %y\n",
                      .v = {{0, {1, 3, 96, 20}, false}},
                      .outputs = 1};
    static float data[3 * 96 * 20];
    graph_run want = {.m = NULL}, got = {.m = NULL};
    ot_device_figures f;
    graph_input(&g, data, 3);
    assert_int_equal(
        graph_open(&want, text_model(g.text, &want.d), (ot_session_options){.reference = true}),
        OT_OK);
    assert_int_equal(graph_execute(&want, &g, data, true, false), OT_OK);
    ot_model *m = text_model(g.text, &got.d);
    assert_int_equal(tile_graph(m, 6000), 1);
    assert_int_equal(graph_open(&got, m, (ot_session_options){.place = &place}), OT_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(graph_execute(&got, &g, data, true, again), OT_OK);
        assert_true(graph_error(&want.out[0], &got.out[0]) <= GRAPH_NMSE);
        graph_drop_outputs(&got);
    }
    ot_device_figures_get(got.s, &f);
    assert_int_equal(f.downloaded, 5 * 96 * 20 * 4);
    assert_true(f.uploaded > (int64_t)sizeof data); /* halos are moved twice */
    assert_true(f.n_uploads > 2 && f.n_uploads == f.n_downloads);
    /* not one of the three arrays is there whole */
    assert_true(f.arena_bytes < (int64_t)sizeof data);
    graph_close(&got);
    graph_close(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_move_both_ways),
        cmocka_unit_test(tiles_that_are_views),
        cmocka_unit_test(windows_that_leave_at_once),
        cmocka_unit_test(others_read_them_too),
        cmocka_unit_test(chains_of_loops),
    };
    int failed = cmocka_run_group_tests_name("opencl", tests, fill, close_device);
    api = OT_DEV_VULKAN;
    return failed + cmocka_run_group_tests_name("vulkan", tests, fill, close_device);
}
