/* What stands between quantized tensors, other than convolutions and products: element-wise
 * groups, data movement, pools. Against the reference kernels, node by node; and that it is one
 * step on bytes, without float32 arrays.
 *
 * Scales are powers of two where results must be equal whatever the order of roundings; with
 * others, and with what is computed by polynomials or from sums, a result may be the neighbour
 * of the right one.
 */
#include "groups_check.h"

#include "engine/cpu/chain/chain_ops.h"

#include <math.h>
#include <stdlib.h>

typedef struct form {
    /* from %a, %b (dequantized x and y), %g (gate [N,C,1,1]) and u: quantizing by %us, %uz */
    const char *nodes;
    uint32_t steps; /* that it becomes; gates and inputs are given */
    bool exact;     /* whatever the scales */
    bool smooth;    /* never */
} form;

/* Scale of %us is that of %a: results may move. %ys is another one. */
static const form forms[] = {
    {"%s = Add(%a, %b)\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, true, false},
    {"%s = Add(%a, %b)\n%r = Relu(%s)\n%q = QuantizeLinear(%r, %ys, %yz)\n", 1, true, false},
    {"%s = Sigmoid(%a)\n%m = Mul(%a, %s)\n%q = QuantizeLinear(%m, %ys, %yz)\n", 1, false, true},
    {"%m = Mul(%a, %g)\n%s = Sub(%m, %b)\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, false, false},
    {"%s = HardSwish(%a)\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, false, true},
    {"%q = QuantizeLinear(%a, %ys, %yz)\n", 1, true, false},
    {"%s = Add(%a, %b)\n%q = QuantizeLinear(%s, %ys, %yz)\n%f = DequantizeLinear(%q, %ys, %yz)\n%t "
     "= Neg(%f)\noutput %t\n",
     2, true, false},
    {"%s = Add(%a, %b)\noutput %s\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, true, false},
    {"%s = Add(%a, %b)\n%q = QuantizeLinear(%s, %ys, %yz)\noutput %a\n", 2, true, false},
    {"%s = Transpose(%a) {perm=[0, 2, 3, 1]}\n%q = QuantizeLinear(%s, %us, %uz)\n", 1, true, false},
    {"%s = Transpose(%a) {perm=[1, 0, 3, 2]}\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, true, false},
    {"%s = Flatten(%a)\n%q = QuantizeLinear(%s, %us, %uz)\n", 1, true, false},
    {"init %st : int64[2] = [1, 0]\ninit %en : int64[2] = [99, 1]\ninit %ax : int64[2] = [2, 3]\n"
     "%s = Slice(%a, %st, %en, %ax)\n%q = QuantizeLinear(%s, %us, %uz)\n",
     1, true, false},
    {"init %sc : float32[4] = [1, 1, 2, 3]\n%s = Resize(%a, _, %sc) {mode=\"nearest\"}\n%q = "
     "QuantizeLinear(%s, %us, %uz)\n",
     1, true, false},
    {"%s = Concat(%a, %b) {axis=1}\n%q = QuantizeLinear(%s, %us, %uz)\n", 1, true, false},
    {"%s = Concat(%b, %a, %b) {axis=-1}\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, true, false},
    {"%s = MaxPool(%a) {kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]}\n%q = "
     "QuantizeLinear(%s, %us, %uz)\n",
     1, true, false},
    {"%s = MaxPool(%a) {kernel_shape=[2, 2], strides=[1, 2], dilations=[2, 1]}\n%q = "
     "QuantizeLinear(%s, %us, %uz)\n",
     1, true, false},
    {"%s = MaxPool(%a) {kernel_shape=[3, 3], strides=[3, 3], ceil_mode=1}\n%q = QuantizeLinear(%s, "
     "%us, %uz)\n",
     1, true, false},
    {"%s = GlobalMaxPool(%a)\n%q = QuantizeLinear(%s, %us, %uz)\n", 1, true, false},
    {"%s = GlobalAveragePool(%a)\n%q = QuantizeLinear(%s, %ys, %yz)\n", 1, false, true},
    {"%s = AveragePool(%a) {kernel_shape=[3, 2], strides=[1, 2], pads=[1, 1, 1, 0]}\n%q = "
     "QuantizeLinear(%s, %ys, %yz)\n",
     1, false, true},
    {"%s = AveragePool(%a) {kernel_shape=[2, 3], pads=[0, 1, 1, 1], count_include_pad=1}\n%q = "
     "QuantizeLinear(%s, %us, %uz)\n",
     1, false, true},
    {"%q = GlobalAveragePool(%a)\n", 1, false, true},
    {"%q = \"com.microsoft\"::QLinearAdd@1(%x, %us, %uz, %y, %vs, %vz, %ys, %yz)\n", 1, true,
     false},
    {"%q = \"com.microsoft\"::QLinearMul@1(%x, %us, %uz, %w, %vs, %vz, %ys, %yz)\n", 1, false,
     false},
    {"%q = \"com.microsoft\"::QLinearSigmoid@1(%x, %us, %uz, %ys, %yz)\n", 1, false, true},
    {"%q = \"com.microsoft\"::QLinearLeakyRelu@1(%x, %us, %uz, %ys, %yz) {alpha=0.25}\n", 1, false,
     false},
    {"%m = \"com.microsoft\"::QLinearMul@1(%x, %us, %uz, %y, %vs, %vz, %ys, %yz)\n%q = "
     "\"com.microsoft\"::QLinearAdd@1(%m, %ys, "
     "%yz, %x, %us, %uz, %vs, %vz)\n",
     1, false, false},
    {"%q = \"com.microsoft\"::QLinearGlobalAveragePool@1(%x, %us, %uz, %ys, %yz)\n", 1, false,
     true},
    {"%q = \"com.microsoft\"::QLinearAveragePool@1(%x, %us, %uz, %ys, %yz) {kernel_shape=[3, 2], "
     "strides=[1, 2], pads=[1, 1, 1, "
     "0]}\n",
     1, false, true},
    {"%q = \"com.microsoft\"::QLinearConcat@1(%ys, %yz, %x, %us, %uz, %y, %ys, %yz) {axis=2}\n", 1,
     true, false},
};

typedef struct made {
    char text[4000];
    size_t at;
    uint64_t state;
    int64_t dims[4];
    bool is_signed;
} made;

static int below(made *g, int n)
{
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((g->state >> 33) % (uint64_t)n);
}

static void OT_PRINTF(2, 3) put(made *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(g->text + g->at, sizeof g->text - g->at, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof g->text - g->at) fail_msg("a test graph is too long");
    g->at += (size_t)n;
}

static void put_quantizer(made *g, const char *name, bool exact)
{
    double scale = 1.0 / (16 << below(g, 3));
    if (!exact) scale *= 1 + below(g, 1000) / 1000.0;
    put(g, "init %%%ss : float32[] = [%.9g]\n", name, scale);
    put(g, "init %%%sz : %s[] = [%d]\n", name, g->is_signed ? "int8" : "uint8",
        below(g, 256) - (g->is_signed ? 128 : 0));
}

static void make_graph(made *g, unsigned seed, const form *f, bool exact)
{
    *g = (made){.state = seed * 7777777u + 3u, .dims = {1, 1, 1, 1}};
    const char *type = below(g, 2) ? "int8" : "uint8";
    g->is_signed = type[0] == 'i';
    for (int k = 0; k < 4; k++)
        g->dims[k] = 1 + below(g, k == 0 ? 2 : k == 1 ? 9 : below(g, 4) ? 9 : 60) + (k > 1 ? 3 : 0);
    const char *names[] = {"x", "y", "w"};
    for (int k = 0; k < 3; k++)
        put(g, "input %%%s : %s[%d,%d,%d,%d]\n", names[k], type, (int)g->dims[0], (int)g->dims[1],
            k == 2 ? 1 : (int)g->dims[2], k == 2 ? 1 : (int)g->dims[3]);
    put_quantizer(g, "u", exact);
    put_quantizer(g, "v", exact);
    put_quantizer(g, "y", exact);
    put(g, "%%a = DequantizeLinear(%%x, %%us, %%uz)\n%%b = DequantizeLinear(%%y, %%vs, %%vz)\n%%g "
           "= DequantizeLinear(%%w, %%vs, "
           "%%vz)\n");
    put(g, "%soutput %%q\n", f->nodes);
}

static void compare(const made *g, unsigned seed, const ot_nd *want, const ot_nd *got, bool equal)
{
    int64_t n = 0, off = 0;
    assert_true(ot_nd_same_shape(got, want->dtype, want->rank, want->dims));
    assert_true(ot_nd_elems(want, &n));
    for (int64_t k = 0; k < n; k++) {
        double a = ot_nd_double(want, k), b = ot_nd_double(got, k), e = a < b ? b - a : a - b;
        double most = want->dtype == OT_F32 ? 1e-5 * (1 + (a < 0 ? -a : a)) : equal ? 0 : 1;
        if (e > most)
            fail_msg("seed %u: element %lld is %g, not %g\n%s", seed, (long long)k, b, a, g->text);
        off += e > 0;
    }
    if (want->dtype != OT_F32 && off > 2 + n / 20)
        fail_msg("seed %u: %lld of %lld differ\n%s", seed, (long long)off, (long long)n, g->text);
}

static void check(unsigned seed, const form *f)
{
    static made g;
    static uint8_t bytes[3][200000];
    bool exact = seed % 2;
    make_graph(&g, seed, f, exact);
    ot_nd in[3], want[2] = {{0}}, got[2] = {{0}};
    for (int k = 0; k < 3; k++) {
        int64_t dims[4] = {g.dims[0], g.dims[1], k == 2 ? 1 : g.dims[2], k == 2 ? 1 : g.dims[3]},
                n = dims[0] * dims[1] * dims[2] * dims[3];
        assert_true(n <= (int64_t)sizeof bytes[0]);
        for (int64_t i = 0; i < n; i++) bytes[k][i] = (uint8_t)below(&g, 256);
        in[k] = over(g.is_signed ? OT_I8 : OT_U8, bytes[k], 4, dims);
    }
    bench ref, fast;
    assert_same_groups(g.text);
    open_with(&ref, g.text, (ot_session_options){.reference = true});
    if (ref.status != OT_OK) fail_msg("seed %u: %s\n%s", seed, ref.d.message, g.text);
    run_ok(&ref, in, want);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        open_with(&fast, g.text, (ot_session_options){.threads = threads});
        if (fast.status != OT_OK) fail_msg("seed %u: %s\n%s", seed, fast.d.message, g.text);
        if (fast.s->top->n_steps != f->steps)
            fail_msg("%u steps, not %u:\n%s", fast.s->top->n_steps, f->steps, g.text);
        run_ok(&fast, in, got);
        for (uint32_t k = 0; k < fast.m->graph->n_outputs; k++) {
            compare(&g, seed, &want[k], &got[k], f->exact || (exact && !f->smooth));
            ot_nd_release(&got[k]);
        }
        close_bench(&fast);
    }
    for (uint32_t k = 0; k < 2; k++) ot_nd_release(&want[k]);
    close_bench(&ref);
}

static void random_groups(void **state)
{
    (void)state;
    const char *one = getenv("OT_SEED");
    unsigned first = one ? (unsigned)atoi(one) : 1, n = one ? 1 : 8;
    print_message("seeds %u to %u\n", first, first + n - 1);
    for (unsigned seed = first; seed < first + n; seed++)
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) check(seed, &forms[k]);
}

/* Quotients at and beside a half, where a product with the reciprocal may round the other way. */
static void halves(void **state)
{
    (void)state;
    enum { N = 1024 };
    float x[N] = {0};
    uint8_t got[N];
    for (int t = 0; t < 400; t++) {
        bool is_signed = t % 2;
        float scale = ldexpf(1 + (float)(t * 7919 % 1000) / 1000, t % 21 - 14),
              zero = (float)(t * 37 % 256) - (is_signed ? 128 : 0), least = is_signed ? -128 : 0;
        for (int i = 0; i < N; i++) {
            float half = (float)(i - N / 2) + 0.5f;
            x[i] = half * scale;
            for (int k = 0; k < t % 3; k++) x[i] = nextafterf(x[i], k + t % 5 < 3 ? 1e30f : -1e30f);
        }
        x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY;
        (is_signed ? ot_chain_to_i8 : ot_chain_to_u8)(0, 0, got, x, &scale, &zero, N - t % 17);
        for (int i = 0; i < N - t % 17; i++) {
            float q = fminf(fmaxf(nearbyintf(x[i] / scale), least - zero), least - zero + 255);
            if (i == 0) q = least - zero;
            assert_int_equal(got[i], (uint8_t)(int32_t)(q + zero));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_groups), cmocka_unit_test(halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
