/* Kernels whose work-groups share memory, as a GPU takes them, forced on devices that would not:
 * rows of reductions and normalisations, blocks of products and convolutions. Random shapes with
 * tails against the engine's reference kernels, on OpenCL, Vulkan and CUDA (a stub that computes
 * on the host, where there is none).
 *
 * OT_SEED=7: that seed; OT_SEEDS=50: so many of each. OT_DEVICE=vulkan: on that alone.
 */
#include "cuda_rig.h"
#include "engine_laid_rig.h"

static unsigned seeds(unsigned few)
{
    const char *many = getenv("OT_SEEDS");
    return many ? (unsigned)atoi(many) : few;
}

/* Layouts with the form under test; busy: few work-items for a row or block, or many. */
static void check_shared(const char *text, ot_dg_choice matrices, uint64_t seed)
{
    ot_device_figures f;
    laid_want want;
    want_of(&want, text, seed);
    for (int few = 0; few < 2; few++) {
        const ot_dg_layout layout = {.together = few ? 32 : 1,
                                     .sector = 64,
                                     .busy = few ? 100000 : 1,
                                     .shares_rows = OT_DG_ALWAYS,
                                     .tiles = OT_DG_ALWAYS,
                                     .matrices = matrices};
        same_laid(&want, layout, &f);
        assert_int_equal(f.n_host, 0);
    }
    want_done(&want);
}

/* ---- rows ---- */

static const char *const ROWS[] = {
    "%y = ReduceSum(%x) {axes=[2, 3], keepdims=0}",
    "%y = ReduceMean(%x) {axes=[1]}",
    "%y = ReduceMean(%x) {axes=[0, 3], keepdims=1}",
    "%y = ReduceMax(%x) {axes=[3]}",
    "%y = ReduceMin(%x) {axes=[0, 1, 2, 3]}",
    "%y = ReduceProd(%x) {axes=[2]}",
    "%y = ReduceL1(%x) {axes=[1, 3]}",
    "%y = ReduceL2(%x) {axes=[2, 3]}",
    "%y = ReduceSumSquare(%x) {axes=[3]}",
    "%p = GlobalAveragePool(%x)\n%y = Relu(%p)",
    "%y = GlobalMaxPool(%x)",
    "%y = Softmax(%x) {axis=1}",
    "%y = Softmax(%x) {axis=-1}",
    "%y = LogSoftmax(%x) {axis=2}",
    "%y = ArgMax(%x) {axis=3}",
    "%y = ArgMin(%x) {axis=1, select_last_index=1}",
    "%y = ArgMax(%x) {axis=2, select_last_index=1}",
    "%y = InstanceNormalization(%x, %s, %t)",
    "%y = LpNormalization(%x) {axis=3, p=1}",
    "%y = LpNormalization(%x) {axis=1}",
    "%y = LayerNormalization(%x, %u, %v) {axis=3}",
    "%y = RMSNormalization(%x, %u) {axis=-1}",
    "%y = GroupNormalization(%x, %g, %g) {num_groups=3}",
};

static void random_rows(void **state)
{
    NEEDS_DEVICE(state);
    static laid_nets all;
    char text[1000];
    const size_t n_rows = sizeof ROWS / sizeof *ROWS;
    for (unsigned seed = first_seed; seed < first_seed + seeds(1); seed++)
        for (size_t k = 0; k < n_rows; k++) {
            uint64_t random = seed * 7919u + k;
            const int n = pick(&random, 1, 2), c = 3 * pick(&random, 1, 12),
                      h = pick(&random, 1, 9), w = pick(&random, 1, 150);
            snprintf(text, sizeof text,
                     "input %%x : float32[%d,%d,%d,%d]\ninit %%s : float32[%d] = random 1\n"
                     "init %%t : float32[%d] = random 2\ninit %%u : float32[%d] = random 3\n"
                     "init %%v : float32[%d] = random 4\ninit %%g : float32[3] = random "
                     "5\n%s\noutput %%y\n",
                     n, c, h, w, c, c, w, w, ROWS[k]);
            add_net(&all, text);
            if (all.n < LAID_INPUTS && k + 1 < n_rows) continue;
            check_shared(all.text, OT_DG_NEVER, random);
            all.used = 0;
            all.n = 0;
        }
}

/* Equal elements far apart, which other work-items find, and NaN: ArgMax and maxima tell them as
 * one work-item would. */
static void rows_with_equals_and_nan(void **state)
{
    NEEDS_DEVICE(state);
    static const char text[] =
        "input %x : float32[3,200]\n%y0 = ArgMax(%x) {axis=1}\n"
        "%y1 = ArgMax(%x) {axis=1, select_last_index=1}\n%y2 = ReduceMax(%x) {axes=[1]}\n"
        "%y3 = ReduceMin(%x) {axes=[1]}\n%y4 = Softmax(%x)\n"
        "output %y0\noutput %y1\noutput %y2\noutput %y3\noutput %y4\n";
    static float x[3][200];
    for (int k = 0; k < 200; k++) x[0][k] = x[1][k] = x[2][k] = (float)(k % 7);
    x[0][170] = x[0][33] = x[0][77] = 9;
    x[1][133] = NAN;
    for (int k = 0; k < 200; k++) x[2][k] = -INFINITY;
    ot_nd in = F32S(x, 3, 200), got[5] = {{0}};
    const ot_device_laid laid = {
        .dev = dev, .layout = {.together = 32, .busy = 1000, .shares_rows = OT_DG_ALWAYS}};
    const ot_backend shared = ot_device_backend(&laid);
    bench b;
    open_with(&b, text, (ot_session_options){.place = &shared});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    run_ok(&b, &in, got);
    assert_int_equal(ot_nd_int(&got[0], 0), 33);
    assert_int_equal(ot_nd_int(&got[1], 0), 170);
    assert_int_equal(ot_nd_int(&got[0], 2), 0);
    assert_int_equal(ot_nd_int(&got[1], 2), 199);
    assert_true(ot_nd_double(&got[2], 0) == 9);
    assert_true(isnan(ot_nd_double(&got[2], 1)));
    assert_true(isnan(ot_nd_double(&got[3], 1)));
    assert_true(isinf(ot_nd_double(&got[2], 2)));
    for (int k = 0; k < 200; k++) {
        assert_true(ot_nd_double(&got[4], k) > 0);
        assert_true(isnan(ot_nd_double(&got[4], 200 + k)));
    }
    close_bench(&b);
}

/* ---- blocks in shared memory ---- */

/* As Cast has it. */
static int code_of(const char *type)
{
    return *type == 'b' ? 16 : strcmp(type, "float16") ? 1 : 10;
}

/* Up to so many; half of the time a multiple of 8, of which four neighbours are loaded at once. */
static int some(uint64_t *state, int most)
{
    return pick(state, 0, 1) ? pick(state, 1, most) : 8 * pick(state, 1, most / 8);
}

/* A convolution of random channels, groups, windows, strides, dilations and pads. */
static void put_convolution(char *text, size_t size, const char *type, uint64_t *state)
{
    const int groups = pick(state, 0, 2) ? 1 : pick(state, 2, 3), in = some(state, 20),
              maps = pick(state, 1, 70);
    const bool flat = pick(state, 0, 3) == 0, bias = pick(state, 0, 1), tail = pick(state, 0, 1);
    const int kh = flat ? 1 : pick(state, 1, 3), kw = flat ? 1 : pick(state, 1, 3),
              dh = pick(state, 1, 2), dw = pick(state, 1, 2);
    const int h = (kh - 1) * dh + 1 + pick(state, 0, 12),
              w = (kw - 1) * dw + 1 + pick(state, 0, 20), stride = flat ? 1 : pick(state, 1, 2),
              pad = flat ? 0 : pick(state, 0, 1);
    int n = snprintf(text, size,
                     "input %%i : float32[%d,%d,%d,%d]\ninit %%w : %s[%d,%d,%d,%d] = random 1\n"
                     "init %%b : %s[%d] = random 2\n%%x = Cast(%%i) {to=%d}\n%%c = Conv(%%x, "
                     "%%w%s) {group=%d, dilations=[%d, %d], "
                     "strides=[%d, %d], pads=[%d, %d, %d, %d]}\n",
                     pick(state, 1, 2), in * groups, h, w, type, maps * groups, in, kh, kw, type,
                     maps * groups, code_of(type), bias ? ", %b" : "", groups, dh, dw, stride,
                     pick(state, stride, stride), pad, 2 * pad, 2 * pad, pad);
    snprintf(text + n, size - (size_t)n,
             tail ? "%%r = Relu(%%c)\n%%y = Add(%%r, %%c)\n%%o = Cast(%%y) {to=1}\noutput %%o\n"
                  : "%%o = Cast(%%c) {to=1}\noutput %%o\n");
}

/* A product of random extents: MatMul over a batch, or Gemm with any transposes. */
static void put_product(char *text, size_t size, const char *type, uint64_t *state)
{
    const int m = some(state, 90), k = some(state, 40), n = some(state, 90);
    const bool ta = pick(state, 0, 1), tb = pick(state, 0, 1);
    if (pick(state, 0, 1))
        snprintf(text, size,
                 "input %%i : float32[2,%d,%d]\ninit %%w : %s[%d,%d] = random 1\n%%x = Cast(%%i) "
                 "{to=%d}\n%%m = MatMul(%%x, %%w)\n%%t = Transpose(%%m) {perm=[0, 2, 1]}\n%%y = "
                 "MatMul(%%m, %%t)\n%%o = Cast(%%y) {to=1}\noutput %%o\n",
                 m, k, type, k, n, code_of(type));
    else
        snprintf(text, size,
                 "input %%i : float32[%d,%d]\ninit %%w : %s[%d,%d] = random 1\ninit %%b : "
                 "%s[%d] = random 2\n%%x = Cast(%%i) {to=%d}\n"
                 "%%c = Gemm(%%x, %%w, %%b) {transA=%d, transB=%d, alpha=0.5}\n%%y = "
                 "Relu(%%c)\n%%o = Cast(%%y) {to=1}\noutput %%o\n",
                 ta ? k : m, ta ? m : k, type, tb ? n : k, tb ? k : n, type, n, code_of(type), ta,
                 tb);
}

static void blocks_of(const char *type, ot_dg_choice matrices, unsigned few)
{
    static laid_nets all;
    char text[1000];
    const unsigned end = first_seed + seeds(few);
    for (unsigned seed = first_seed; seed < end; seed++) {
        uint64_t random = seed * 7919u;
        put_convolution(text, sizeof text, type, &random);
        add_net(&all, text);
        put_product(text, sizeof text, type, &random);
        add_net(&all, text);
        if (all.n + 2 <= LAID_INPUTS && seed + 1 < end) continue;
        check_shared(all.text, matrices, random);
        all.used = 0;
        all.n = 0;
    }
}

static void random_blocks(void **state)
{
    NEEDS_DEVICE(state);
    blocks_of("float32", OT_DG_NEVER, 6);
}

/* By matrix instructions: elsewhere the same as without. */
static void random_matrices(void **state)
{
    NEEDS_DEVICE(state);
    if (api != OT_DEV_CUDA) return;
    blocks_of("float32", OT_DG_ALWAYS, 4);
}
static void random_matrices_of_halves(void **state)
{
    NEEDS_DEVICE(state);
    if (api != OT_DEV_CUDA) return;
    blocks_of("float16", OT_DG_ALWAYS, 4);
    blocks_of("bfloat16", OT_DG_ALWAYS, 2);
}

/* Infinities, NaN and numbers whose rounding would be infinite, in one row of A or the weights, are
 * what products one by one make of them. */
static void matrices_with_infinities(void **state)
{
    NEEDS_DEVICE(state);
    if (api != OT_DEV_CUDA) return;
    static const char text[] = "input %x : float32[40,24]\ninit %w : float32[24,40] = random 1\n"
                               "%y = MatMul(%x, %w)\noutput %y\n";
    static float x[40][24];
    for (int k = 0; k < 40 * 24; k++) x[k / 24][k % 24] = (float)(k % 7) - 3;
    x[3][5] = INFINITY;
    x[7][1] = NAN;
    x[9][2] = 3.4028234e38F;
    ot_nd in = F32S(x, 40, 24), want[1] = {{0}}, got[1] = {{0}};
    const ot_device_laid laid = {
        .dev = dev,
        .layout = {.together = 32, .busy = 1000, .tiles = OT_DG_ALWAYS, .matrices = OT_DG_ALWAYS}};
    const ot_backend forced = ot_device_backend(&laid);
    bench host, b;
    open_with(&host, text, (ot_session_options){.reference = true});
    run_ok(&host, &in, want);
    open_with(&b, text, (ot_session_options){.place = &forced});
    if (b.status != OT_OK) fail_msg("%s", b.d.message);
    run_ok(&b, &in, got);
    for (int k = 0; k < 40 * 40; k++) {
        const double w = ot_nd_double(&want[0], k), g = ot_nd_double(&got[0], k);
        if (isnan(w) ? !isnan(g) : isinf(w) ? g != w : !(fabs(g - w) <= 1e-5 * (1 + fabs(w))))
            fail_msg("row %d: %g for %g", k / 40, g, w);
    }
    close_bench(&b);
    close_bench(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_rows),
        cmocka_unit_test(rows_with_equals_and_nan),
        cmocka_unit_test(random_blocks),
        cmocka_unit_test(random_matrices),
        cmocka_unit_test(random_matrices_of_halves),
        cmocka_unit_test(matrices_with_infinities),
    };
    cuda_load_stub();
    return RUN_ON_EVERY_DEVICE(tests);
}
