/* Which cuts hold at every size (src/ops/dynamic_cut.c), and tiles of free axes against brute
 * force (src/tiling/dynamic_tiles.c): the tiles that the formulas of docs/dynamic-shapes.md give
 * for a size are held against the windows that a region has at that size. What ONNX Runtime
 * makes of it is tests/property/dynamic_sizes.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/dynamic_dims.h"
#include "tiling/dynamic_tiles.h"
#include "tiling/sequence.h"
#include "tiling/stream.h"
#include "tiling/walk.h"

static ot_diag diag;

/* A model with x [n,8,h,w], all but the channels free, and its copy at a size. */
typedef struct sized {
    ot_model *file, *planned;
} sized;

static ot_graph *at_size(ot_model *file, int64_t n, int64_t h, int64_t w, ot_model **out)
{
    const int64_t dims[] = {n, 8, h, w};
    const ot_shape_binding b = {"x", 4, dims, false, "--design"};
    assert_int_equal(ot_model_clone(file, out), OT_OK);
    if (ot_infer_shapes((*out)->graph, &b, 1) != OT_OK) fail_msg("%s", diag.message);
    assert_int_equal(ot_assure((*out)->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    return (*out)->graph;
}

static sized model_of(const char *inits, const char *body, int64_t n, int64_t h, int64_t w)
{
    static char text[8192];
    sized s = {0};
    diag = (ot_diag){0};
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[?,8,?,?]\n  init %%w : "
             "float32[8,8,3,3] = random 3\n%s%s  output %%y\n}\n",
             inits, body);
    if (ot_text_parse(text, strlen(text), &diag, &s.file) != OT_OK)
        fail_msg("%s\n%s", diag.message, text);
    if (ot_infer_shapes(s.file->graph, NULL, 0) != OT_OK) fail_msg("%s", diag.message);
    assert_int_equal(ot_assure(s.file->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    at_size(s.file, n, h, w, &s.planned);
    assert_int_equal(ot_dynamic_dims_set(s.file->graph, s.planned->graph, NULL), OT_OK);
    return s;
}

static void drop(sized *s)
{
    ot_model_free(s->planned);
    ot_model_free(s->file);
}

/* Whether y may be cut along axis (OT_WHY_NONE), or why not. */
static void asks(const char *inits, const char *body, uint32_t axis, ot_why want)
{
    sized s = model_of(inits, body, 2, 32, 24);
    const ot_graph *g = s.planned->graph;
    const ot_value *y = &g->values[ot_value_find(g, "y")];
    int8_t in[8], out[8];
    ot_why why = OT_WHY_NONE;
    if (!ot_access_axis(g, &g->nodes[y->producer], 0, axis, in, out, &why) ? why != want
                                                                           : want != OT_WHY_NONE)
        fail_msg("axis %u: '%s', not '%s': %s", axis, ot_reason_name(why), ot_reason_name(want),
                 body);
    drop(&s);
}

static void cuts(void **state)
{
    (void)state;
    asks("", "  %y = Conv(%x, %w) {pads=[1,1,1,1], strides=[2,2]}\n", 2, OT_WHY_NONE);
    asks("", "  %y = Conv(%x, %w) {auto_pad=\"SAME_UPPER\"}\n", 2, OT_WHY_NONE);
    asks("", "  %y = Conv(%x, %w) {auto_pad=\"SAME_UPPER\", strides=[2,2]}\n", 2,
         OT_WHY_DYNAMIC_AUTO_PAD);
    asks("", "  %y = Conv(%x, %w) {auto_pad=\"SAME_UPPER\", strides=[2,2]}\n", 0, OT_WHY_NONE);
    asks("", "  %y = ConvTranspose(%x, %w) {strides=[2,2], pads=[1,1,1,1]}\n", 2, OT_WHY_NONE);
    asks("", "  %y = ConvTranspose(%x, %w) {strides=[2,2], output_shape=[64,48]}\n", 2,
         OT_WHY_DYNAMIC_FIXED);
    asks("", "  %y = ConvTranspose(%x, %w) {strides=[2,2], pads=[2,2,2,2]}\n", 2, OT_WHY_NONE);
    asks("", "  %y = Concat(%x, %x) {axis=1}\n", 2, OT_WHY_NONE);
    asks("", "  %y = Concat(%x, %x) {axis=2}\n", 2, OT_WHY_DYNAMIC_FIXED);
    asks("  init %s : float32[4] = [1, 1, 2, 2]\n", "  %y = Resize(%x, _, %s) {mode=\"nearest\"}\n",
         2, OT_WHY_NONE);
    asks("  init %s : float32[4] = [1, 1, 1.5, 1.5]\n",
         "  %y = Resize(%x, _, %s) {mode=\"linear\"}\n", 2, OT_WHY_DYNAMIC_SCALE);
    asks("  init %s : int64[4] = [2, 8, 64, 48]\n",
         "  %y = Resize(%x, _, _, %s) {mode=\"nearest\"}\n", 2, OT_WHY_DYNAMIC_FIXED);
    asks("  init %s : int64[4] = [0, 0, 0, -1]\n", "  %y = Reshape(%x, %s)\n", 2, OT_WHY_NONE);
    asks("  init %s : int64[4] = [2, 8, 32, 24]\n", "  %y = Reshape(%x, %s)\n", 2,
         OT_WHY_DYNAMIC_FIXED);
    /* rows of a free length */
    asks("  init %s : int64[3] = [0, 0, -1]\n", "  %y = Reshape(%x, %s)\n", 2,
         OT_WHY_DYNAMIC_FIXED);
    asks("", "  %s = Shape(%x)\n  %y = Reshape(%x, %s)\n", 2, OT_WHY_DYNAMIC_FIXED);
    asks("  init %s : int64[8] = [0,0,1,1,0,0,1,1]\n", "  %y = Pad(%x, %s)\n", 2, OT_WHY_NONE);
    asks("  init %s : int64[8] = [0,0,1,1,0,0,1,1]\n", "  %y = Pad(%x, %s) {mode=\"reflect\"}\n", 2,
         OT_WHY_DYNAMIC_BORDER);
    asks("", "  %y = Softmax(%x) {axis=1}\n", 2, OT_WHY_NONE);
    /* Slices: from both ends, to the end; not to a row that is counted from the other end. */
#define SLICE(from, to, step)                                        \
    "  init %b : int64[2] = [" from "]\n  init %e : int64[2] = [" to \
    "]\n  init %a : int64[2] = [2, 3]\n  init %s : int64[2] = [" step "]\n"
    const char *slice = "  %y = Slice(%x, %b, %e, %a, %s)\n";
    asks(SLICE("2, 1", "-2, -3", "1, 1"), slice, 2, OT_WHY_NONE);
    asks(SLICE("1, 0", "9223372036854775807, 2147483647", "2, 2"), slice, 2, OT_WHY_NONE);
    /* columns are another matter */
    asks(SLICE("1, 0", "9223372036854775807, 10", "2, 2"), slice, 2, OT_WHY_NONE);
    asks(SLICE("1, 0", "9223372036854775807, 10", "2, 2"), slice, 3, OT_WHY_DYNAMIC_FIXED);
    asks(SLICE("-9, 0", "-1, -1", "1, 1"), slice, 2, OT_WHY_DYNAMIC_FIXED);
    /* Where the extent is fixed, all that is fixed is the same at every size: here, rows that a
     * transposed convolution makes. */
    const char *fixed = "  %a = ConvTranspose(%x, %w) {strides=[2,2], output_shape=[64,48]}\n";
    static char body[512];
    snprintf(body, sizeof body,
             "%s  %%y = ConvTranspose(%%a, %%w) {strides=[2,2], output_shape=[129,97]}\n", fixed);
    asks("", body, 2, OT_WHY_NONE);
    snprintf(body, sizeof body, "%s  %%y = Slice(%%a, %%b, %%e, %%k, %%s)\n", fixed);
    asks("  init %b : int64[1] = [-60]\n  init %e : int64[1] = [62]\n  init %k : int64[1] = [2]\n  "
         "init %s : int64[1] = [1]\n",
         body, 2, OT_WHY_NONE);
}

/* An operand that is one long at the design size may be longer at another. */
static void broadcasting(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 2; n++) {
        sized s = model_of("  input %m : float32[?,8,1,1]\n", "  %y = Mul(%x, %m)\n", 4, 32, 24);
        const int64_t x[] = {4, 8, 32, 24}, m[] = {n == 1 ? 1 : 4, 8, 1, 1};
        const ot_shape_binding both[] = {{"x", 4, x, false, NULL}, {"m", 4, m, false, NULL}};
        int8_t in[2], out[1];
        ot_why why = OT_WHY_NONE;
        assert_int_equal(ot_infer_shapes(s.planned->graph, both, 2), OT_OK);
        assert_int_equal(ot_dynamic_dims_set(s.file->graph, s.planned->graph, NULL), OT_OK);
        assert_int_equal(
            ot_access_axis(s.planned->graph, &s.planned->graph->nodes[0], 0, 0, in, out, &why),
            n != 1);
        assert_int_equal(why == OT_WHY_DYNAMIC_BROADCAST, n == 1);
        /* fixed at 1 there */
        assert_true(
            ot_access_axis(s.planned->graph, &s.planned->graph->nodes[0], 0, 2, in, out, &why));
        drop(&s);
    }
}

/* The region of all nodes, cut along axis 2 of the last one. */
static ot_region region_of(ot_graph *g, ot_seq *s, int64_t tile, ot_arena *a)
{
    ot_walk w;
    ot_region r;
    assert_int_equal(ot_seq_build(g, a, s), OT_OK);
    assert_int_equal(ot_walk_new(s, &w), OT_OK);
    const ot_choice c = {.first = 0,
                         .end = s->n - 1,
                         .n_dims = 1,
                         .axes = {2},
                         .tile = {tile},
                         .form = OT_FORM_PEELED};
    assert_int_equal(ot_region_build(s, &w, &c, a, &r), OT_OK);
    r.form = OT_FORM_PEELED;
    assert_int_equal(r.n_nodes, s->n);
    return r;
}

/* Inner tiles, or steps, at extent h by the formula; -1: the region runs untiled. */
static int64_t inner_ones(const ot_region *planned, const ot_dynamic_tiles *f, int64_t h)
{
    int64_t n = INT64_MAX;
    for (uint32_t v = 0; v < planned->n_inputs; v++) {
        if (planned->values[v].axis[0] < 0) continue;
        if (h < f->least[v]) return -1;
        if (f->step[v] > 0) n = ot_min(n, (h - f->least[v]) / f->step[v]);
    }
    return n;
}

/* Tiles by the formulas at extent h, against the windows that the same pieces have there.
 * Returns how many inner ones there are. */
static int64_t simulate(ot_model *file, const ot_region *planned, const ot_dynamic_tiles *f,
                        int64_t tile, int64_t h)
{
    ot_arena *a = ot_arena_new();
    ot_model *m = NULL;
    ot_seq s;
    ot_graph *g = at_size(file, 1, h, 8, &m);
    const int64_t n = inner_ones(planned, f, h);
    if (n >= 0) {
        const ot_region r = region_of(g, &s, tile, a);
        const uint32_t last = f->n_first + (uint32_t)n;
        ot_tile_windows w;
        ot_why why = OT_WHY_NONE;
        assert_int_equal(ot_tile_windows_new(g, &r, a, &w), OT_OK);
        assert_true(r.dims[0].extent > (int64_t)last * tile); /* the last tile has rows */
        for (uint32_t k = 0; k <= last; k++) {
            const int64_t lo = k * tile, hi = k == last ? r.dims[0].extent : lo + tile;
            const ot_tile_windows *is = k < f->n_first ? &f->first[k] : f->inner;
            if (!ot_tile_windows_part(g, &r, 0, lo, hi, &w, &why))
                fail_msg("tile %u of %u at %lld", k, last, (long long)h);
            for (uint32_t v = 0; v < r.n_values; v++) {
                const int64_t moved = k < f->n_first ? 0 : (int64_t)(k - f->n_first) * f->step[v];
                assert_int_equal(w.made[v].lo, is->made[v].lo + moved);
                if (k < last) assert_int_equal(w.made[v].hi, is->made[v].hi + moved);
            }
        }
    }
    ot_model_free(m);
    ot_arena_free(a);
    return n;
}

/* Steps of a stream likewise: what each makes and takes over at that extent, all steps taken one
 * by one. */
static int64_t simulate_steps(ot_model *file, const ot_region *planned, const ot_dynamic_tiles *f,
                              int64_t tile, int64_t h)
{
    ot_arena *a = ot_arena_new();
    ot_model *m = NULL;
    ot_seq s;
    ot_graph *g = at_size(file, 1, h, 8, &m);
    const int64_t n = inner_ones(planned, f, h);
    if (n >= 0) {
        ot_region r = region_of(g, &s, tile, a);
        int64_t ends[160];
        ot_tile_windows *w;
        ot_why why = OT_WHY_NONE;
        r.form = OT_FORM_STREAM;
        for (int64_t k = 0; k <= n; k++) ends[k] = f->lead + k * tile;
        ends[n + 1] = r.dims[0].extent;
        assert_true(ends[n + 1] > ends[n]);
        assert_int_equal(ot_stream_at(g, &r, a, ends, (uint32_t)n + 2, &w, &why), OT_OK);
        if (!w) fail_msg("steps at %lld: %s", (long long)h, ot_reason_sentence(why));
        for (int64_t k = 0; k <= n + 1; k++)
            for (uint32_t v = 0; v < r.n_values; v++) {
                const ot_tile_windows *is = k == 0 ? &f->first[0] : f->inner;
                const int64_t moved = k == 0 ? 0 : (k - 1) * f->step[v];
                if (k <= n) assert_int_equal(w[k].made[v].hi, is->made[v].hi + moved);
                if (v < r.n_inputs && k <= n)
                    assert_int_equal(w[k].made[v].lo, is->made[v].lo + moved);
                if (v < r.n_inputs || k == 0) continue;
                /* rows that are there when the step begins */
                assert_int_equal(w[k].kept[v].hi, is->kept[v].hi + moved);
                assert_in_range(w[k].kept[v].lo, is->kept[v].lo + moved, is->kept[v].hi + moved);
                /* each step, the last one, too, makes some of every value */
                assert_true(w[k].made[v].hi > w[k].kept[v].hi);
            }
    }
    ot_model_free(m);
    ot_arena_free(a);
    return n;
}

static void tiles(void **state)
{
    (void)state;
    static const struct {
        const char *inits, *body;
        int64_t tile, from; /* rows a tile; fewest that are tried */
    } cases[] = {
        {"",
         "  %a = ConvTranspose(%x, %w) {strides=[2,2], pads=[2,2,2,2]}\n  %y = ConvTranspose(%a, "
         "%w) {strides=[2,2], pads=[2,2,2,2]}\n",
         16, 4},
        {"", "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %y = Conv(%a, %w) {pads=[1,1,1,1]}\n", 6, 4},
        {"",
         "  %a = Conv(%x, %w) {pads=[2,0,1,0], strides=[2,1]}\n  %y = MaxPool(%a) "
         "{kernel_shape=[3,3], strides=[2,1], pads=[1,1,1,1]}\n",
         3, 4},
        {"",
         "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Add(%a, %x)\n  %y = AveragePool(%b) "
         "{kernel_shape=[2,2], strides=[2,2], ceil_mode=1}\n",
         4, 4},
        {"",
         "  %a = MaxPool(%x) {kernel_shape=[2,2], strides=[2,2]}\n  %b = ConvTranspose(%a, %w) "
         "{strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]}\n"
         "  %y = Conv(%b, %w) {pads=[1,1,1,1]}\n",
         8, 4},
        {"  init %s : float32[4] = [1, 1, 2, 2]\n",
         "  %a = Conv(%x, %w) {pads=[3,1,3,1], dilations=[3,1]}\n  %y = Resize(%a, _, %s) "
         "{mode=\"linear\"}\n",
         16, 4},
        {"  init %s : float32[4] = [1, 1, 2, 2]\n",
         "  %a = Conv(%x, %w) {pads=[3,1,3,1], dilations=[3,1]}\n"
         "  %b = Resize(%a, _, %s) {mode=\"nearest\", "
         "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}\n"
         "  %y = Conv(%b, %w) {pads=[1,1,1,1]}\n",
         4, 4},
        /* a residual block without padding */
        {"  init %b : int64[1] = [2]\n  init %e : int64[1] = [-2]\n  init %k : int64[1] = [2]\n",
         "  %c = Slice(%x, %b, %e, %k)\n  %d = Conv(%x, %w) {pads=[0,1,0,1]}\n  %f = Conv(%d, %w) "
         "{pads=[0,1,0,1]}\n  %y = Add(%c, %f)\n",
         8, 6},
        {"  init %b : int64[1] = [1]\n  init %e : int64[1] = [-3]\n  init %k : int64[1] = [2]\n  "
         "init %s : int64[1] = [2]\n",
         "  %c = Slice(%x, %b, %e, %k, %s)\n  %d = ConvTranspose(%c, %w) {strides=[2,2], "
         "pads=[0,1,0,1]}\n  %f = Slice(%d, %b, %e, %k)\n"
         "  %y = Conv(%f, %w) {pads=[1,1,1,1]}\n",
         8, 10},
    };
    for (size_t c = 0; c < 2 * (sizeof cases / sizeof *cases); c++) {
        const bool steps = c % 2;
        ot_arena *a = ot_arena_new();
        sized s = model_of(cases[c / 2].inits, cases[c / 2].body, 1, 256, 8);
        ot_seq seq;
        ot_region r = region_of(s.planned->graph, &seq, cases[c / 2].tile, a);
        if (steps) r.form = OT_FORM_STREAM;
        const ot_form_tiles t = {.g = s.planned->graph, .r = &r, .arena = a};
        ot_dynamic_tiles f;
        bool legal;
        ot_why why = OT_WHY_NONE;
        int64_t most = 0, untiled = 0;
        assert_int_equal(ot_dynamic_tiles_plan(&t, &f, &legal, &why), OT_OK);
        /* interpolation makes rows that are there already */
        const bool again = steps && strstr(cases[c / 2].body, "linear");
        if (!legal && !again) fail_msg("case %zu: %s", c, ot_reason_sentence(why));
        for (int64_t h = cases[c / 2].from; legal && h < 150; h++) {
            const int64_t n = (steps ? simulate_steps : simulate)(s.file, &r, &f, cases[c / 2].tile,
                                                                  h);
            untiled += n < 0;
            most = ot_max(most, n);
        }
        if (legal && (most <= 2 || untiled == 0 || untiled >= 60))
            fail_msg("case %zu: %lld inner ones at the most, %lld sizes untiled", c,
                     (long long)most, (long long)untiled);
        drop(&s);
        ot_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cuts), cmocka_unit_test(broadcasting),
                                       cmocka_unit_test(tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
