/* Sessions on an OpenCL device, on a Vulkan device (under the validation layer, where there is
 * one) and on a CUDA device (a stub that computes on the host, where there is none) against the
 * engine's reference kernels: every operator class on random shapes, random graphs untiled and
 * tiled, nodes that run on the host in between, the memory that is planned. Skipped where there
 * is no device.
 *
 * OT_SEED=7: that seed; OT_SEEDS=50: so many random graphs. OT_DEVICE=vulkan: on that alone.
 */
#define OT_EVERY_API
#include "cuda_rig.h"
#include "engine_graphs.h"
#include "engine_device_rig.h"
#include "tiled_graph.h"

#include <math.h>
#include <stdlib.h>

#define ERROR_MOST 1e-9 /* sum of squared differences by sum of squares */

/* ---- operators ---- */

/* On x [2, 8, H, W], small [2, 8, H, W] whose values are from 0.1 to 0.9, row [8, 1, 1], a [3,
 * M, K], b [K, N], integers i [M, N]. */
static const char *const OPERATORS[] = {
    "Conv(%x, %w3) {pads=[1, 1, 1, 1]}",
    "Conv(%x, %w3, %bias) {pads=[0, 2, 1, 0], strides=[2, 1]}",
    "Conv(%x, %w3) {dilations=[2, 2], auto_pad=\"SAME_LOWER\"}",
    "Conv(%x, %w1, %bias)",
    "Conv(%tall, %w1, %bias)",
    "Conv(%x, %wd) {group=8, pads=[1, 1, 1, 1], strides=[1, 2]}",
    "Conv(%x, %wg) {group=2, auto_pad=\"SAME_UPPER\", strides=[2, 2]}",
    "ConvTranspose(%x, %wt, %bias) {strides=[2, 3], pads=[1, 0, 0, 1]}",
    "ConvTranspose(%x, %wd) {group=8, output_padding=[1, 1], strides=[2, 2]}",
    "MaxPool(%x) {kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]}",
    "MaxPool(%x) {kernel_shape=[2, 2], dilations=[2, 1], ceil_mode=1, strides=[2, 2]}",
    "AveragePool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}",
    "AveragePool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, ceil_mode=1, "
    "strides=[2, 2]}",
    "GlobalAveragePool(%x)",
    "GlobalMaxPool(%x)",
    "MatMul(%a, %b)",
    "Gemm(%b, %c, %d) {transA=1, transB=1, alpha=0.5, beta=2.0}",
    "ReduceMean(%x) {axes=[2, 3]}",
    "ReduceSum(%x, %axes) {keepdims=0}",
    "ReduceMax(%x) {axes=[1], keepdims=0}",
    "ReduceMin(%x)",
    "ReduceL2(%x) {axes=[-1]}",
    "ReduceLogSum(%small) {axes=[1]}",
    "ArgMax(%x) {axis=1}",
    "ArgMin(%x) {axis=3, keepdims=0, select_last_index=1}",
    "Softmax(%x) {axis=1}",
    "Softmax@11(%x) {axis=2}",
    "LogSoftmax(%x)",
    "LayerNormalization(%x, %scale_w, %scale_w) {axis=-1}",
    "InstanceNormalization(%x, %bias, %bias)",
    "BatchNormalization(%x, %bias, %bias, %bias, %var)",
    "LpNormalization(%x) {axis=1}",
    "LRN(%x) {size=3, alpha=0.5, beta=0.6, bias=1.5}",
    "LRN(%x) {size=4, alpha=0.2}",
    "\"onnx_tile\"::Moments@1(%x) {axes=[2, 3]}",
    "\"onnx_tile\"::NormFactors@1(%moments, %bias8, %var, %bias8, %bias8) {groups=4, epsilon=0.01, "
    "dtype=1}",
    "\"onnx_tile\"::NormFactors@1(%moments) {groups=8, epsilon=0.01, centred=1, dtype=1}",
    "Resize(%x, _, %scales) {mode=\"nearest\"}",
    "Resize(%x, _, %scales) {mode=\"linear\", coordinate_transformation_mode=\"align_corners\"}",
    "Resize(%x, _, %scales) {mode=\"cubic\"}",
    "Concat(%x, %small, %x) {axis=1}",
    "Slice(%x, %ones, %tens, %axes)",
    "Slice(%x, %tens, %zeros, %axes, %minus)",
    "Transpose(%x) {perm=[0, 2, 3, 1]}",
    "Expand(%row, %target)",
    "Tile(%x, %repeats)",
    "DepthToSpace(%x) {blocksize=2}",
    "DepthToSpace(%x) {blocksize=2, mode=\"CRD\"}",
    "Pad(%x, %pads, %half)",
    "Pad(%x, %pads) {mode=\"reflect\"}",
    "Pad(%x, %pads) {mode=\"edge\"}",
    "Gather(%x, %picks) {axis=1}",
    "Reshape(%x, %flat)",
    "Sigmoid(%x)",
    "Tanh(%x)",
    "Erf(%x)",
    "Exp(%x)",
    "Log(%small)",
    "Sqrt(%small)",
    "Relu(%x)",
    "LeakyRelu(%x) {alpha=0.3}",
    "Elu(%x)",
    "Selu(%x)",
    "Celu(%x) {alpha=0.5}",
    "HardSigmoid(%x)",
    "HardSwish(%x)",
    "Softplus(%x)",
    "Softsign(%x)",
    "Floor(%x)",
    "Round(%x)",
    "Sign(%x)",
    "Reciprocal(%small)",
    "Clip(%x, %minus_one, %half)",
    "PRelu(%x, %row)",
    "Pow(%small, %half)",
    "Pow(%small, %row)",
    "Div(%x, %small)",
    "Max(%x, %small, %row)",
    "Mean(%x, %small)",
    "Where(%above, %x, %small)",
    "Greater(%x, %small)",
    "Cast(%x) {to=7}",
    "Cast(%x) {to=10}",
    "Cast(%x) {to=16}",
    "Cast(%i) {to=3}",
    "Sin(%x)",
    "Cos(%x)",
    "Tan(%small)",
    "Asin(%small)",
    "Acos(%small)",
    "Atan(%x)",
    "Sinh(%x)",
    "Cosh(%x)",
    "Asinh(%x)",
    "Atanh(%small)",
    "Mish(%x)",
    "Pow(%x, %fifth)",
    "Mod(%i, %five)",
    "Div(%i, %five)",
    "Mul(%i, %i)",
};
#define N_OPERATORS (sizeof OPERATORS / sizeof *OPERATORS)

/* SpaceToDepth needs even sizes; H and W are. */
static void declare(char *text, size_t size, int h, int w, int m, int k, int n)
{
    snprintf(text, size,
             "input %%x : float32[2,8,%d,%d]\ninput %%small : float32[2,8,%d,%d]\ninput %%row : "
             "float32[8,1,1]\ninput %%tall : float32[2,8,7,1]\n"
             "input %%a : float32[3,%d,%d]\ninput %%b : float32[%d,%d]\ninput %%c : "
             "float32[%d,%d]\ninput %%d : float32[%d]\n"
             "input %%i : int32[%d,%d]\n"
             "init %%w3 : float32[12,8,3,3] = random 1 * 0.2\ninit %%w1 : float32[12,8,1,1] = "
             "random 2\ninit %%wd : float32[8,1,3,3] = random 3\n"
             "init %%wg : float32[12,4,3,2] = random 4\ninit %%wt : float32[8,12,3,4] = random "
             "5\ninit %%bias : float32[12] = random 6\n"
             "init %%bias8 : float32[8] = random 7\ninit %%var : float32[8] = fill 0.7\ninit "
             "%%scale_w : float32[%d] = random 8\n"
             "init %%axes : int64[2] = [1, 3]\ninit %%ones : int64[2] = [1, 2]\ninit %%tens : "
             "int64[2] = [7, 1000]\n"
             "init %%zeros : int64[2] = [1, -1000]\ninit %%minus : int64[2] = [-2, -1]\ninit "
             "%%scales : float32[4] = [1, 1, 1.7, 0.6]\n"
             "init %%target : int64[4] = [2, 8, %d, %d]\ninit %%repeats : int64[4] = [1, 2, 1, 3]\n"
             "init %%pads : int64[8] = [0, 1, 2, 1, 0, 0, 1, 3]\ninit %%half : float32[] = "
             "[0.5]\ninit %%minus_one : float32[] = [-1]\n"
             "init %%picks : int64[3] = [1, -1, 5]\ninit %%flat : int64[3] = [4, -1, 2]\ninit "
             "%%five : int32[] = [5]\ninit %%fifth : float32[1] = [5]\n",
             h, w, h, w, m, k, k, n, n + 3, k, n + 3, m, n, w, h, w);
}

static void put_node(char *text, size_t size, size_t number, const char *node)
{
    size_t at = strlen(text);
    bool of_eight = strstr(node, "InstanceNorm") || strstr(node, "BatchNorm");
    at += (size_t)snprintf(
        text + at, size - at,
        strstr(node, "NormFactors") ? "%%y%zu, %%summand%zu = " : "%%y%zu = ", number, number);
    for (const char *c = node; *c && at + 8 < size; c++) {
        text[at++] = *c;
        if (of_eight && strncmp(c, "bias", 4) == 0 && c[-1] == '%') {
            at += (size_t)snprintf(text + at, size - at, "ias8");
            c += 3;
        }
    }
    snprintf(text + at, size - at, "\noutput %%y%zu\n", number);
}

static void fill_inputs(const ot_session *s, ot_nd *in, unsigned seed)
{
    uint64_t state = seed;
    for (uint32_t k = 0; k < ot_session_inputs(s); k++) {
        const ot_value *v = ot_session_input(s, k);
        ot_diag d = {0};
        int64_t n;
        if (ot_nd_new(&in[k], v->dtype, (uint32_t)v->rank, v->dims, &d) != OT_OK ||
            !ot_nd_elems(&in[k], &n))
            fail_msg("%s", d.message);
        bool small = strcmp(v->name, "small") == 0;
        for (int64_t j = 0; j < n; j++) {
            double x = (double)(ot_next_random(&state) % 4001) / 1000 - 2;
            if (v->dtype == OT_F32) ((float *)in[k].data)[j] = (float)(small ? 0.5 + x / 5 : x);
            if (v->dtype == OT_I32) ((int32_t *)in[k].data)[j] = (int32_t)(x * 20);
        }
    }
}

static void operators_are_the_references(void **state)
{
    NEEDS_DEVICE(state);
    static char text[24000];
    unsigned seed = first_seed;
    int h = 6 + 2 * (int)(seed * 7 % 5), w = 6 + 2 * (int)(seed * 5 % 6), m = 1 + (int)(seed % 9),
        k = 3 + (int)(seed % 5), n = 4 + (int)(seed * 3 % 9);
    declare(text, sizeof text, h, w, m, k, n);
    size_t at = strlen(text);
    snprintf(text + at, sizeof text - at,
             "%%above = Greater(%%x, %%small)\n%%moments = \"onnx_tile\"::Moments@1(%%small) "
             "{axes=[2, 3]}\n");
    for (size_t j = 0; j < N_OPERATORS; j++) put_node(text, sizeof text, j, OPERATORS[j]);
    bench want, got;
    ot_nd in[16] = {{0}}, out[2][N_OPERATORS] = {{{0}}};
    ot_device_figures f;
    open_with(&want, text, (ot_session_options){.reference = true});
    if (want.status != OT_OK) fail_msg("%s", want.d.message);
    open_with(&got, text, (ot_session_options){.place = &place});
    if (got.status != OT_OK) fail_msg("%s", got.d.message);
    fill_inputs(want.s, in, seed);
    run_ok(&want, in, out[0]);
    run_ok(&got, in, out[1]);
    for (size_t j = 0; j < N_OPERATORS; j++) {
        double e = error_of(&out[0][j], &out[1][j]);
        if (!(e <= ERROR_MOST)) fail_msg("seed %u: %s: error %.2e", seed, OPERATORS[j], e);
    }
    ot_device_figures_get(got.s, &f);
    for (uint32_t j = 0; j < f.n_fallbacks; j++)
        print_message("on the host: %s: %s\n", f.fallbacks[j].op, f.fallbacks[j].why);
    assert_int_equal(f.n_host, 0);
    assert_int_equal(f.poisoned, f.arena_bytes);
    for (uint32_t j = 0; j < 16; j++) ot_nd_release(&in[j]);
    close_bench(&got);
    close_bench(&want);
}

/* ---- random graphs ---- */

/* l2 0: untiled. Returns the number of regions. */
static uint32_t check_graph(const graph *g, float *x, const graph_run *ref, int64_t l2,
                            unsigned seed)
{
    graph_run r = {.m = NULL};
    ot_model *m = text_model(g->text, &r.d);
    uint32_t regions = l2 ? tile_graph(m, l2) : 0;
    if (graph_open(&r, m, (ot_session_options){.place = &place}) != OT_OK)
        fail_msg("seed %u: %s\n%s", seed, r.d.message, g->text);
    for (int again = 0; again < 2; again++) {
        if (graph_execute(&r, g, x, true, again) != OT_OK)
            fail_msg("seed %u: %s\n%s", seed, r.d.message, g->text);
        for (int k = 0; k < g->outputs; k++) {
            double e = graph_error(&ref->out[k], &r.out[k]);
            if (!(e <= GRAPH_NMSE))
                fail_msg("seed %u, cache %lld: output %d has error %.2e\n%s", seed, (long long)l2,
                         k, e, g->text);
        }
        graph_drop_outputs(&r);
    }
    graph_close(&r);
    return regions;
}

static void random_networks(void **state)
{
    NEEDS_DEVICE(state);
    static graph g;
    const char *many = getenv("OT_SEEDS");
    unsigned n = many ? (unsigned)atoi(many) : 2, tiled = 0;
    for (unsigned seed = first_seed; seed < first_seed + n; seed++) {
        graph_run ref;
        float *x = graph_reference(&g, seed, true, true, &ref);
        (void)check_graph(&g, x, &ref, 0, seed);
        tiled += check_graph(&g, x, &ref, 12000, seed) > 0;
        graph_close(&ref);
        free(x);
    }
    print_message("%u graphs were tiled\n", tiled);
}

/* A group whose coordinates and variables stand in one function: their names differ. */
static void names_in_a_group_differ(void **state)
{
    NEEDS_DEVICE(state);
    bench b;
    float x[3] = {3, -1, 0.5F};
    ot_nd in = F32S(x, 1, 3, 1, 1), out = {0};
    open_with(&b,
              "input %x : float32[1,3,1,1]\n%c = Conv(%x, %w) {group=3}\ninit %w : "
              "float32[3,1,1,1] = fill 2\n"
              "%y = Clip(%c, %lo, %hi)\ninit %lo : float32[] = [-1]\ninit %hi : float32[] = "
              "[5]\noutput %y\n",
              (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    run_ok(&b, &in, &out);
    CHECK_FLOATS(&out, 5, -1, 1);
    close_bench(&b);
}

/* ---- memory and the host ---- */

static void planned_is_what_is_allocated(void **state)
{
    NEEDS_DEVICE(state);
    bench b;
    ot_device_figures f;
    int64_t before = ot_device_use(dev).used;
    open_with(&b,
              "input %x : float32[1,4,32,32]\n%a = Softmax(%x)\n%b = Softmax(%a)\n%c = "
              "Softmax(%b)\n%d = Reshape(%c, %s)\n"
              "init %s : int64[2] = [4, 1024]\n%y = Softmax(%d)\noutput %y\n",
              (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    ot_device_figures_get(b.s, &f);
    assert_int_equal(f.arena_bytes, 2 * 4 * 1024 * 4); /* two values at a time */
    assert_int_equal(ot_device_use(dev).used - before, f.device_bytes);
    assert_int_equal(f.device_bytes, f.arena_bytes + f.weight_bytes);
    close_bench(&b);
    assert_int_equal(ot_device_use(dev).used, before);
}

/* Inputs and results whose bytes others have before them or behind them move while kernels run;
 * the others do not need commands where the host is the device. Twice three arrays fill the arena,
 * so that z comes late, and r must have left. */
static void who_shares_bytes_moves_beside_kernels(void **state)
{
    NEEDS_DEVICE(state);
    enum { N = 3000 };
    static float x[N], z[N], out[3][N];
    const char *text =
        "input %x : float32[1,3000]\ninput %z : float32[1,3000]\n"
        "%r = Softmax(%x)\n%b = Concat(%r, %r, %r) {axis=0}\n%m = ReduceMax(%b) {keepdims=1}\n"
        "%s = Add(%z, %m)\n%w = Softmax(%s)\n%c = Concat(%w, %w, %w) {axis=0}\n%n = ReduceMax(%c) "
        "{keepdims=1}\n"
        "%y = Add(%m, %n)\noutput %r\noutput %w\noutput %y\n";
    bench b;
    ot_device_figures f;
    for (int k = 0; k < N; k++) x[k] = (float)(k % 7) * 0.5f, z[k] = (float)(k % 11) * 0.25f;
    const ot_nd in[2] = {F32S(x, 1, N), F32S(z, 1, N)};
    for (int k = 0; k < 2; k++) { /* of the host */
        ot_nd want[3] = {{0}};
        open_with(&b, text, (ot_session_options){.place = k ? &place : NULL});
        if (b.status != OT_OK) fail_msg("%s", b.d.message);
        for (int again = 0; again < 3; again++) {
            run_ok(&b, in, want);
            for (int j = 0; j < 3 && k == 0; j++)
                memcpy(out[j], want[j].data, (j < 2 ? N : 1) * sizeof(float));
            for (int j = 0; j < 3; j++) {
                const ot_nd host = F32S(out[j], 1, j < 2 ? N : 1);
                assert_true(error_of(&host, &want[j]) < 1e-9);
            }
            memset(want, 0, sizeof want);
        }
        if (k) ot_device_figures_get(b.s, &f);
        close_bench(&b);
    }
    const bool maps = ot_device_about(dev)->is_cpu;
    assert_true(f.n_uploads == 2 && f.n_downloads == 3 && f.n_host == 0);
    /* x and y through maps; z, r and w of three runs beside kernels */
    assert_int_equal(f.mapped_up, maps ? sizeof x : 0);
    assert_int_equal(f.mapped_down, maps ? sizeof(float) : 0);
    if (maps) assert_true(f.moves.n_requests == 9 && f.moves.bytes_asked == 9 * sizeof x);
    if (!maps) assert_true(f.moves.n_requests > 3 * 5); /* weights, too */
}

/* A model that the host runs, all of it, takes no activations on the device. */
static void nothing_is_planned_for_the_host(void **state)
{
    NEEDS_DEVICE(state);
    bench b;
    ot_device_figures f;
    const int64_t before = ot_device_use(dev).used;
    open_with(&b, "input %x : float32[4]\n%y = NonZero(%x)\noutput %y\n",
              (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    ot_device_figures_get(b.s, &f);
    assert_int_equal(f.arena_bytes, 0);
    assert_int_equal(f.device_bytes, f.weight_bytes);
    assert_int_equal(ot_device_use(dev).used - before, f.weight_bytes);
    close_bench(&b);
}

/* NonZero makes what nobody knows the size of; TopK has no kernel: both run on the host, between
 * kernels. */
static void the_host_takes_the_rest(void **state)
{
    NEEDS_DEVICE(state);
    bench b;
    ot_device_figures f;
    float x[6] = {3, -1, 2, 5, 0, -4};
    ot_nd in = F32S(x, 2, 3), out[2] = {{0}};
    open_with(&b,
              "input %x : float32[2,3]\n%a = Relu(%x)\n%t : float32[2,2], %i : int64[2,2] = "
              "TopK(%a, %k)\ninit %k : int64[1] = [2]\n"
              "%y = Neg(%t)\n%z = NonZero(%a)\noutput %y\noutput %z\n",
              (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    for (int again = 0; again < 2; again++) {
        run_ok(&b, &in, out);
        CHECK_FLOATS(&out[0], -3, -2, -5, 0);
        assert_int_equal(out[1].dims[1], 3);
        memset(out, 0, sizeof out);
    }
    ot_device_figures_get(b.s, &f);
    assert_int_equal(f.n_host, 2);
    assert_int_equal(f.n_fallbacks, 2);
    assert_int_equal(f.n_uploads, 2);   /* the input, the two largest */
    assert_int_equal(f.n_downloads, 2); /* what both read, once; the result */
    close_bench(&b);
}

/* A window of an input, and what is the input under another name, for a node on the host that
 * comes first. */
static void the_host_reads_views_of_inputs(void **state)
{
    NEEDS_DEVICE(state);
    bench b;
    float x[6] = {3, -1, 2, 5, 0, -4};
    ot_nd in = F32S(x, 2, 3), out[2] = {{0}};
    open_with(&b,
              "input %x : float32[2,3]\n%r = Reshape(%x, %s)\ninit %s : int64[1] = [6]\n%t, _ = "
              "TopK(%r, %k)\ninit %k : int64[1] = [2]\n"
              "init %one : int64[1] = [1]\n%c = Slice(%x, %one, %k, %one)\n%u, _ = TopK(%c, "
              "%one)\noutput %t\noutput %u\n",
              (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    run_ok(&b, &in, out);
    CHECK_FLOATS(&out[0], 5, 3);
    CHECK_FLOATS(&out[1], -1, 0);
    close_bench(&b);
}

/* A node without a kernel in the body of a loop: windows go to the host and results come back,
 * tile by tile. */
static void the_host_takes_part_in_tiles(void **state)
{
    NEEDS_DEVICE(state);
    enum { ROWS = 64, COLS = 3000 };
    static float x[ROWS * COLS], want[ROWS * COLS];
    bench b;
    char starts[ROWS * 4 + 8] = "";
    for (int k = 0; k < ROWS; k++)
        snprintf(starts + strlen(starts), sizeof starts - strlen(starts), "%s%d", k ? "," : "", k);
    char text[4000];
    snprintf(text, sizeof text,
             "input %%x : float32[%d,%d]\ninit %%k : int64[1] = [%d]\n%%y0 = "
             "\"onnx_tile\"::Alloc@1() {shape=[%d,%d], dtype=1}\n"
             "%%y = \"onnx_tile\"::While@1(%%y0) {count=%d, body=graph body {\n  input %%i : "
             "int64[]\n  input %%buffer : float32[%d,%d]\n"
             "  outer %%x : float32[%d,%d]\n  outer %%k : int64[1]\n"
             "  %%s : float32[1,%d] = \"onnx_tile\"::Slice@1(%%x, %%i) {axes=[0], sizes=[1], "
             "starts=[%s]}\n"
             "  %%a : float32[1,%d] = Neg(%%s)\n  %%t : float32[1,%d], _ = TopK(%%a, %%k)\n"
             "  %%next : float32[%d,%d] = \"onnx_tile\"::Deslice@1(%%t, %%buffer, %%i) {axes=[0], "
             "starts=[%s]}\n  output %%next\n}}\noutput %%y\n",
             ROWS, COLS, COLS, ROWS, COLS, ROWS, ROWS, COLS, ROWS, COLS, COLS, starts, COLS, COLS,
             ROWS, COLS, starts);
    for (int k = 0; k < ROWS * COLS; k++) x[k] = (float)k;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            want[r * COLS + c] = -x[r * COLS + c]; /* the largest first */
    ot_nd in = F32S(x, ROWS, COLS), out = {0};
    open_with(&b, text, (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    run_ok(&b, &in, &out);
    check_floats(&out, want, ROWS * COLS);
    close_bench(&b);
}

/* Tiles that move beside kernels lie in pinned memory where the device wants that: other memory is
 * read and written while the host waits. */
static void tiles_move_by_pinned_memory(void **state)
{
    NEEDS_DEVICE(state);
    enum { ROWS = 64, COLS = 3000 };
    static float x[ROWS * COLS], want[ROWS * COLS];
    bench b;
    char starts[ROWS * 4 + 8] = "", text[4000];
    for (int k = 0; k < ROWS; k++)
        snprintf(starts + strlen(starts), sizeof starts - strlen(starts), "%s%d", k ? "," : "", k);
    snprintf(text, sizeof text,
             "input %%x : float32[%d,%d]\n%%y0 = \"onnx_tile\"::Alloc@1() {shape=[%d,%d], "
             "dtype=1}\n%%y = \"onnx_tile\"::While@1(%%y0) {count=%d, body=graph body {\n  input "
             "%%i : int64[]\n  input %%buffer : float32[%d,%d]\n  outer %%x : float32[%d,%d]\n"
             "  %%s : float32[1,%d] = \"onnx_tile\"::Slice@1(%%x, %%i) {axes=[0], sizes=[1], "
             "starts=[%s]}\n  %%a : float32[1,%d] = Neg(%%s)\n"
             "  %%next : float32[%d,%d] = \"onnx_tile\"::Deslice@1(%%a, %%buffer, %%i) {axes=[0], "
             "starts=[%s]}\n  output %%next\n}}\noutput %%y\n",
             ROWS, COLS, ROWS, COLS, ROWS, ROWS, COLS, ROWS, COLS, COLS, starts, COLS, ROWS, COLS,
             starts);
    for (int k = 0; k < ROWS * COLS; k++) want[k] = -(x[k] = (float)k);
    ot_nd in = F32S(x, ROWS, COLS), out = {0};
    ot_device_figures f;
    const bool on_stub = cuda_is_stub && ot_device_about(dev)->api == OT_DEV_CUDA;
    open_with(&b, text, (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    const int before = cuda_stub_count("stub_pageable");
    run_ok(&b, &in, &out);
    check_floats(&out, want, ROWS * COLS);
    ot_device_figures_get(b.s, &f);
    assert_int_equal(f.n_uploads, ROWS);
    assert_int_equal(f.n_downloads, ROWS);
    if (on_stub) {
        assert_int_equal(cuda_stub_count("stub_pageable"), before);
        assert_int_equal(cuda_stub_count("stub_pinned"), 4 + 1); /* the mover's ring */
    }
    close_bench(&b);
    assert_int_equal(cuda_stub_count("stub_pinned"), 0);
}

/* NaN, infinities and zeros go through a device as through the host. */
static void bad_values_are_the_hosts(void **state)
{
    NEEDS_DEVICE(state);
    static const char text[] =
        "  input %x : float32[1,8]\n  input %z : float32[1,8]\n  %y0 = HardSigmoid(%x)\n"
        "  %y1 = HardSwish(%x)\n  %y2 = Relu(%x)\n  %y3 = Softsign(%x)\n  %y4 = Sigmoid(%x)\n"
        "  %y5 = Max(%x, %z)\n  %y6 = Min(%x, %z)\n  %y7 = Div(%x, %z)\n  %y8 = Pow(%x, %z)\n"
        "  output %y0\n  output %y1\n  output %y2\n  output %y3\n  output %y4\n  output %y5\n"
        "  output %y6\n  output %y7\n  output %y8";
    float x[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 1, -2, -INFINITY},
          z[] = {-300, NAN, 0, 0, 5, 0, INFINITY, 0.5f};
    ot_nd in[] = {F32S(x, 1, 8), F32S(z, 1, 8)}, want[9] = {{0}}, got[9] = {{0}};
    bench host, there;
    open_text(&host, text);
    open_with(&there, text, (ot_session_options){.place = &place});
    if (there.status != OT_OK) fail_msg("%s", there.d.message);
    run_ok(&host, in, want);
    run_ok(&there, in, got);
    for (int k = 0; k < 9; k++)
        for (int j = 0; j < 8; j++) {
            const float a = ((const float *)want[k].data)[j], b = ((const float *)got[k].data)[j];
            if (isnan(a) ? !isnan(b) : a != b && !(fabsf(a - b) < 1e-5f))
                fail_msg("output %d of %g and %g: %g on the host, %g there", k, (double)x[j],
                         (double)z[j], (double)a, (double)b);
        }
    close_bench(&there);
    close_bench(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_are_the_references),
        cmocka_unit_test(bad_values_are_the_hosts),
        cmocka_unit_test(random_networks),
        cmocka_unit_test(names_in_a_group_differ),
        cmocka_unit_test(planned_is_what_is_allocated),
        cmocka_unit_test(who_shares_bytes_moves_beside_kernels),
        cmocka_unit_test(nothing_is_planned_for_the_host),
        cmocka_unit_test(the_host_takes_the_rest),
        cmocka_unit_test(the_host_reads_views_of_inputs),
        cmocka_unit_test(the_host_takes_part_in_tiles),
        cmocka_unit_test(tiles_move_by_pinned_memory),
    };
    cuda_load_stub();
    return RUN_ON_EVERY_DEVICE(tests);
}
