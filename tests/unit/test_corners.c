/* Resize with align_corners decomposed (src/transform/decompose/corners.c): rows and weights
 * against whole-number arithmetic, windows against the rows that brute force finds, what no
 * region touches becomes what it was. Values in runtimes: tests/e2e/corners.sh.
 */
#include "ir_check.h"
#include "seeded.h"

#include "ops/resize_corners.h"
#include "transform/decompose/decompose.h"

#include <math.h>

#define CORNERS "coordinate_transformation_mode=\"align_corners\""

/* A model with one Resize of `in` rows to `out`; decomposed where `split`. */
static ot_model *resized(int64_t in, int64_t out, const char *mode, bool split)
{
    char text[600];
    uint32_t n;
    snprintf(text, sizeof text,
             "model ir 8 opset 13\ngraph g {\n input %%x : float32[1,2,%lld,5]\n init %%s : "
             "int64[4] = [1, 2, %lld, 9]\n"
             " %%y = Resize(%%x, _, _, %%s) {" CORNERS ", %s}\n output %%y\n}\n",
             (long long)in, (long long)out, mode);
    ot_model *m = parse(text);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    if (!split) return m;
    assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    return m;
}

static ot_corners corners_of(const ot_model *m)
{
    ot_corners c;
    for (ot_id k = 0; k < m->graph->n_nodes; k++)
        if (m->graph->nodes[k].op == OT_OP_Resize &&
            ot_corners_read(m->graph, &m->graph->nodes[k], &c))
            return c;
    fail_msg("no Resize is found");
    return c;
}

/* Extents of one axis that differ: any, and the ends of what there is. */
static void extents(int64_t *in, int64_t *out)
{
    do {
        *in = below(6) == 0 ? 1 : 1 + below(300);
        *out = below(6) == 0   ? 1
               : below(3) == 0 ? 2 * *in
               : below(3) == 0 ? 8 * (*in - 1) + 1
                               : 1 + below(600);
    } while (*in == *out);
}

/* Rows and weights are those of o * (in - 1) / (out - 1) in whole numbers. */
static void taps_are_exact(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t in, out, row[OT_CORNER_TAPS];
        float w[OT_CORNER_TAPS];
        extents(&in, &out);
        ot_model *m = resized(in, out, "mode=\"linear\"", false);
        const ot_corners c = corners_of(m);
        assert_int_equal(c.axis, 2);
        assert_int_equal(c.n_taps, 2);
        for (int64_t o = 0; o < out; o++) {
            const int64_t last = out == 1 ? 1 : out - 1, low = o * (in - 1) / last,
                          rest = o * (in - 1) % last;
            assert_true(ot_corners_taps(&c, o, row, w));
            if (row[0] != low || row[1] != (low + 1 < in ? low + 1 : low))
                fail_msg("%ld -> %ld, row %ld", in, out, o);
            if (fabs((double)w[1] - (double)rest / (double)last) > 1e-7 * (double)in ||
                w[0] != 1 - w[1])
                fail_msg("%ld -> %ld, row %ld: weight %g", in, out, o, (double)w[1]);
        }
        ot_model_free(m);
    }
}

/* The neighbour by whole numbers: of num / den, ties as the mode says. */
static int64_t neighbour(int mode, int64_t num, int64_t den)
{
    switch (mode) {
    case 0: return num / den;
    case 1: return (num + den - 1) / den;
    case 2: return (2 * num + den - 1) / (2 * den); /* a tie goes down */
    default: return (2 * num + den) / (2 * den);
    }
}

static void neighbours_are_exact(void **state)
{
    (void)state;
    static const char *const MODES[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"};
    for (int round = 0; round < 300; round++) {
        int64_t in, out, row[OT_CORNER_TAPS];
        float w[OT_CORNER_TAPS];
        char text[80];
        const int mode = below(4);
        extents(&in, &out);
        snprintf(text, sizeof text, "mode=\"nearest\", nearest_mode=\"%s\"", MODES[mode]);
        ot_model *m = resized(in, out, text, false);
        const ot_corners c = corners_of(m);
        for (int64_t o = 0; o < out; o++) {
            if (!ot_corners_taps(&c, o, row, w)) continue; /* not decomposed */
            const int64_t want = neighbour(mode, o * (in - 1), out == 1 ? 1 : out - 1);
            if (row[0] != want || w[0] != 1)
                fail_msg("%s: %ld -> %ld, row %ld: %ld, not %ld", MODES[mode], in, out, o, row[0],
                         want);
        }
        ot_model_free(m);
    }
}

/* Cubic weights keep a parabola as far as Keys' do with a = -0.5, and always sum up to 1. */
static void cubic_keeps_parabolas(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        int64_t in, out, row[OT_CORNER_TAPS];
        float w[OT_CORNER_TAPS];
        extents(&in, &out);
        const bool exclude = below(2);
        ot_model *m = resized(in, out,
                              exclude ? "mode=\"cubic\", cubic_coeff_a=-0.5, exclude_outside=1"
                                      : "mode=\"cubic\", cubic_coeff_a=-0.5",
                              false);
        const ot_corners c = corners_of(m);
        assert_int_equal(c.n_taps, 4);
        for (int64_t o = 0; o < out; o++) {
            const double at = out == 1 ? 0 : (double)o * (double)(in - 1) / (double)(out - 1);
            double sum = 0, value = 0;
            assert_true(ot_corners_taps(&c, o, row, w));
            for (int k = 0; k < 4; k++) {
                assert_in_range(row[k], 0, in - 1);
                sum += (double)w[k];
                value += (double)w[k] * ((double)row[k] - at) * ((double)row[k] - at);
            }
            assert_true(fabs(sum - 1) < 1e-4);
            if (at >= 1 && at < (double)in - 2 && fabs(value) > 1e-3)
                fail_msg("%ld -> %ld, row %ld: off by %g", in, out, o, value);
        }
        ot_model_free(m);
    }
}

/* Rows [*lo, *hi) that output rows [a, b) take, by asking for each. */
static void brute_force(const ot_corners *c, int64_t a, int64_t b, int64_t *lo, int64_t *hi)
{
    *lo = INT64_MAX;
    *hi = 0;
    for (int64_t o = a; o < b; o++) {
        int64_t row[OT_CORNER_TAPS];
        float w[OT_CORNER_TAPS];
        assert_true(ot_corners_taps(c, o, row, w));
        for (uint32_t k = 0; k < c->n_taps; k++) {
            *lo = ot_min(*lo, row[k]);
            *hi = ot_max(*hi, row[k] + 1);
        }
    }
}

/* A tile's window has all rows that it takes and no more than a few besides, and is as long as
 * that of every tile of its length. */
static void windows_hold_what_tiles_take(void **state)
{
    (void)state;
    static const char *const MODES[] = {"mode=\"linear\"", "mode=\"cubic\""};
    for (int round = 0; round < 200; round++) {
        int64_t in, out;
        const char *mode = MODES[below(2)];
        extents(&in, &out);
        ot_model *whole = resized(in, out, mode, false), *m = resized(in, out, mode, true);
        const ot_corners c = corners_of(whole);
        const ot_graph *g = m->graph;
        uint32_t n_taps = 0;
        const int64_t tile = 1 + below((int)out);
        for (ot_id k = 0; k < g->n_nodes; k++) {
            const ot_node *n = &g->nodes[k];
            int64_t length = -1;
            int8_t in_axis[3], out_axis[1];
            ot_why why;
            if (n->dead || n->op != OT_OP_GatherRows) continue;
            n_taps++;
            assert_true(ot_access_axis(g, n, 0, 2, in_axis, out_axis, &why));
            assert_int_equal(in_axis[0], 2);
            assert_int_equal(in_axis[1], 0);
            assert_int_equal(in_axis[2], 0);
            for (int64_t a = 0; a + tile <= out; a += 1 + below(7)) {
                ot_win windows[3];
                ot_op_tile t = {.need = {a, a + tile}, .in = windows};
                int64_t lo, hi;
                assert_true(ot_access_window(g, n, 0, 2, &t, &why));
                brute_force(&c, a, a + tile, &lo, &hi);
                if (windows[0].lo > lo || windows[0].hi < hi || windows[0].lo < 0 ||
                    windows[0].hi > in)
                    fail_msg("%ld -> %ld, tile %ld .. %ld: window %ld .. %ld, takes %ld .. %ld", in,
                             out, a, a + tile, windows[0].lo, windows[0].hi, lo, hi);
                if (windows[0].hi - windows[0].lo > hi - lo + (c.n_taps == 2 ? 3 : 6))
                    fail_msg("%ld -> %ld: too long a window", in, out);
                if (length >= 0 && windows[0].hi - windows[0].lo != length)
                    fail_msg("%ld -> %ld: windows of two lengths", in, out);
                length = windows[0].hi - windows[0].lo;
                assert_memory_equal(&windows[1], &windows[0], sizeof *windows);
                assert_memory_equal(&windows[2], &t.need, sizeof *windows);
            }
        }
        assert_int_equal(n_taps, c.n_taps);
        ot_model_free(whole);
        ot_model_free(m);
    }
}

static void untouched_is_as_it_was(void **state)
{
    (void)state;
    ot_model *m = resized(17, 40, "mode=\"linear\"", false);
    char *before = print(m->graph);
    uint32_t n;
    assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
    char *apart = print(m->graph);
    assert_non_null(strstr(apart, "GatherRows"));
    assert_int_equal(ot_recompose(m->graph, false), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    for (ot_id k = 0; k < m->graph->n_nodes; k++)
        assert_true(m->graph->nodes[k].dead || m->graph->nodes[k].op == OT_OP_Resize);
    assert_non_null(strstr(before, "Resize"));
    free(before);
    free(apart);
    ot_model_free(m);
}

/* Where a region has taken the Resize of the columns, what is left of the rows is of the standard.
 */
static void the_rest_is_standard(void **state)
{
    (void)state;
    ot_model *m = resized(17, 40, "mode=\"linear\"", true);
    ot_graph *g = m->graph;
    for (ot_id k = 0; k < g->n_nodes; k++) {
        const ot_node n = g->nodes[k];
        if (n.dead || n.op != OT_OP_Resize) continue;
        ot_node_remove(g, k);
        assert_true(ot_node_new(g, &(ot_node_def){.op = "Resize",
                                                  .name = "another",
                                                  .in = {n.in, n.n_in},
                                                  .out = {n.out, 1},
                                                  .attrs = {n.attrs, n.n_attrs}}) != OT_NONE);
        break;
    }
    assert_int_equal(ot_recompose(g, false), OT_OK);
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    uint32_t gathers = 0;
    for (ot_id k = 0; k < g->n_nodes; k++) {
        assert_true(g->nodes[k].dead || g->nodes[k].domain[0] == 0);
        gathers += !g->nodes[k].dead && g->nodes[k].op == OT_OP_Gather;
    }
    assert_int_equal(gathers, 2);
    ot_model_free(m);
}

/* What is none, or has a form that stays. */
static void others_stay(void **state)
{
    (void)state;
    static const struct {
        const char *inputs, *node;
        bool found;
    } CASES[] = {
        {"init %s : float32[4] = [1, 1, 2, 2]", "Resize(%x, _, %s) {mode=\"linear\", " CORNERS "}",
         true},
        {"init %s : float32[4] = [1, 1, 2, 1]", "Resize(%x, _, %s) {mode=\"linear\", " CORNERS "}",
         true},
        /* 32.3 rows */
        {"init %s : float32[4] = [1, 1, 1.9, 2]",
         "Resize(%x, _, %s) {mode=\"linear\", " CORNERS "}", false},
        /* columns alone */
        {"init %s : float32[4] = [1, 1, 1, 2]", "Resize(%x, _, %s) {mode=\"linear\", " CORNERS "}",
         false},
        {"init %s : float32[4] = [1, 1, 2, 2]", "Resize(%x, _, %s) {mode=\"linear\"}", false},
        {"init %s : float32[2] = [2, 2]",
         "Resize(%x, _, %s) {mode=\"linear\", axes=[2, 3], " CORNERS "}", true},
        {"init %s : float32[2] = [0.5, 0.5]",
         "Resize(%x, _, %s) {mode=\"linear\", antialias=1, axes=[2, 3], " CORNERS "}", false},
        {"init %s : int64[4] = [1, 2, 30, 40]",
         "Resize(%x, _, _, %s) {mode=\"linear\", keep_aspect_ratio_policy=\"not_larger\", " CORNERS
         "}",
         false},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char text[600];
        uint32_t n;
        snprintf(text, sizeof text,
                 "model ir 8 opset 18\ngraph g {\n input %%x : float32[1,2,17,12]\n %s\n %%y = "
                 "%s\n output %%y\n}\n",
                 CASES[k].inputs, CASES[k].node);
        ot_model *m = parse(text);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
        if ((n == 1) != CASES[k].found) fail_msg("case %zu: %u found", k, n);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        ot_model_free(m);
    }
}

/* Files may hold the operator, too: tables that are not the rewriter's are not cut, nor taken
 * for its own. */
static void strange_tables_stay(void **state)
{
    (void)state;
    static const struct {
        const char *rows, *index;
        bool cut;
    } CASES[] = {{"[0, 1, 2]", "[0, 0, 1, 1, 2]", true},
                 {"[0, 1, 2]", "[0, 2, 1, 1, 2]", false},
                 {"[1, 2, 3]", "[0, 0, 1, 1, 2]", false},
                 {"[0, 1, 2]", "[0, 0, 1, 1, 3]", false}};
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char text[600];
        snprintf(text, sizeof text,
                 "model ir 8 opset 13\ngraph g {\n input %%x : float32[2,3,4]\n init %%r : "
                 "int64[3] = %s\n init %%i : int64[5] = %s\n"
                 " %%y = \"onnx_tile\"::GatherRows(%%x, %%r, %%i) {axis=1}\n output %%y\n}\n",
                 CASES[k].rows, CASES[k].index);
        ot_model *m = parse(text);
        ot_graph *g = m->graph;
        int8_t in_axis[3], out_axis[1];
        ot_why why;
        assert_int_equal(ot_infer_shapes(g, NULL, 0), OT_OK);
        assert_int_equal(ot_access_axis(g, &g->nodes[0], 0, 1, in_axis, out_axis, &why),
                         CASES[k].cut);
        assert_true(ot_access_axis(g, &g->nodes[0], 0, 2, in_axis, out_axis, &why));
        assert_int_equal(ot_recompose(g, false), OT_OK);
        assert_int_equal(g->nodes[0].dead, CASES[k].cut);
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taps_are_exact),
        cmocka_unit_test(neighbours_are_exact),
        cmocka_unit_test(cubic_keeps_parabolas),
        cmocka_unit_test(windows_hold_what_tiles_take),
        cmocka_unit_test(untouched_is_as_it_was),
        cmocka_unit_test(the_rest_is_standard),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(strange_tables_stay),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
