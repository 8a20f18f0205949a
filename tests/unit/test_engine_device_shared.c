/* Kernels whose work-groups share memory, as a GPU takes them, forced on devices that would not:
 * rows of reductions and normalisations, blocks of products and convolutions. Random shapes with
 * tails against the engine's reference kernels, on OpenCL, Vulkan and CUDA (a stub that computes
 * on the host, where there is none).
 *
 * OT_SEED=7: that seed; OT_SEEDS=50: so many of each. OT_DEVICE=vulkan: on that alone.
 *
 */
#include "cuda_rig.h"
#include "engine_laid_rig.h"

static unsigned seeds(unsigned few)
{
    const char *many = getenv("OT_SEEDS");
    return many ? (unsigned)atoi(many) : few;
}

/* Layouts with the form under test; busy: few work-items for a row or block, or many. */
static void check_shared(const char *text, uint64_t seed)
{
    ot_device_figures f;
    laid_want want;
    want_of(&want, text, seed);
    for (int form = 0; form < (api == OT_DEV_CUDA ? 4 : 2); form++) {
        const bool few = form & 1;
        const ot_dg_layout layout = {.together = few ? 32 : 1,
                                     .sector = 64,
                                     .busy = few ? 100000 : 1,
                                     .shares_rows = OT_DG_ALWAYS,
                                     .tiles = OT_DG_ALWAYS,
                                     .matrices = form & 2 ? OT_DG_ALWAYS : OT_DG_NEVER};
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
    char text[1000];
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++)
        for (unsigned seed = first_seed; seed < first_seed + seeds(1); seed++) {
            uint64_t random = seed * 7919u + k;
            const int n = pick(&random, 1, 2), c = 3 * pick(&random, 1, 12),
                      h = pick(&random, 1, 9), w = pick(&random, 1, 150);
            snprintf(text, sizeof text,
                     "input %%x : float32[%d,%d,%d,%d]\ninit %%s : float32[%d] = random 1\n"
                     "init %%t : float32[%d] = random 2\ninit %%u : float32[%d] = random 3\n"
                     "init %%v : float32[%d] = random 4\ninit %%g : float32[3] = random "
                     "5\n%s\noutput %%y\n",
                     n, c, h, w, c, c, w, w, ROWS[k]);
            check_shared(text, random);
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
    const ot_device_laid laid = {dev, {.together = 32, .busy = 1000, .shares_rows = OT_DG_ALWAYS}};
    const ot_backend shared = ot_device_backend_laid(&laid);
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

/* A convolution of random channels, groups, windows, strides, dilations and pads. */
static void put_convolution(char *text, size_t size, uint64_t *state)
{
    const int groups = pick(state, 0, 2) ? 1 : pick(state, 2, 3), in = pick(state, 1, 20),
              maps = pick(state, 1, 70);
    const bool flat = pick(state, 0, 3) == 0, bias = pick(state, 0, 1), tail = pick(state, 0, 1);
    const int kh = flat ? 1 : pick(state, 1, 3), kw = flat ? 1 : pick(state, 1, 3),
              dh = pick(state, 1, 2), dw = pick(state, 1, 2);
    const int h = (kh - 1) * dh + 1 + pick(state, 0, 12),
              w = (kw - 1) * dw + 1 + pick(state, 0, 20), stride = flat ? 1 : pick(state, 1, 2),
              pad = flat ? 0 : pick(state, 0, 1);
    int n = snprintf(
        text, size,
        "input %%x : float32[%d,%d,%d,%d]\ninit %%w : float32[%d,%d,%d,%d] = random 1\n"
        "init %%b : float32[%d] = random 2\n%%c = Conv(%%x, %%w%s) {group=%d, dilations=[%d, %d], "
        "strides=[%d, %d], pads=[%d, %d, %d, %d]}\n",
        pick(state, 1, 2), in * groups, h, w, maps * groups, in, kh, kw, maps * groups,
        bias ? ", %b" : "", groups, dh, dw, stride, pick(state, stride, stride), pad, 2 * pad,
        2 * pad, pad);
    snprintf(text + n, size - (size_t)n,
             tail ? "%%r = Relu(%%c)\n%%y = Add(%%r, %%c)\noutput %%y\n" : "output %%c\n");
}

/* A product of random extents: MatMul over a batch, or Gemm with any transposes. */
static void put_product(char *text, size_t size, uint64_t *state)
{
    const int m = pick(state, 1, 90), k = pick(state, 1, 30), n = pick(state, 1, 90);
    const bool ta = pick(state, 0, 1), tb = pick(state, 0, 1);
    if (pick(state, 0, 1))
        snprintf(text, size,
                 "input %%x : float32[2,%d,%d]\ninit %%w : float32[%d,%d] = random 1\n%%m = "
                 "MatMul(%%x, %%w)\n%%t = Transpose(%%m) {perm=[0, 2, 1]}\n%%y = MatMul(%%m, "
                 "%%t)\noutput %%y\n",
                 m, k, k, n);
    else
        snprintf(text, size,
                 "input %%x : float32[%d,%d]\ninit %%w : float32[%d,%d] = random 1\ninit %%b : "
                 "float32[%d] = random 2\n"
                 "%%c = Gemm(%%x, %%w, %%b) {transA=%d, transB=%d, alpha=0.5}\n%%y = "
                 "Relu(%%c)\noutput %%y\n",
                 ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n, n, ta, tb);
}

static void random_blocks(void **state)
{
    NEEDS_DEVICE(state);
    char text[1000];
    for (unsigned seed = first_seed; seed < first_seed + seeds(6); seed++) {
        uint64_t random = seed * 7919u;
        put_convolution(text, sizeof text, &random);
        check_shared(text, random);
        put_product(text, sizeof text, &random);
        check_shared(text, random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_rows),
        cmocka_unit_test(rows_with_equals_and_nan),
        cmocka_unit_test(random_blocks),
    };
    cuda_load_stub();
    return RUN_ON_EVERY_DEVICE(tests);
}
