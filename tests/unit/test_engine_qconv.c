/* Quantized convolutions as units and as steps of tiles, against the reference kernels on random
 * shapes.
 *
 * Scales are powers of two and sums small, so that float32 arithmetic is exact whatever its
 * order: results must be equal. With other scales a result may be the neighbour of the right one
 * where that lies in the middle between two integers.
 */
#include "groups_check.h"

#include <stdlib.h>

typedef struct made {
    char text[18000];
    size_t at;
    uint64_t state;
    int64_t x_dims[4];
    uint32_t rank;
    bool x_signed;
} made;

static int below(made *g, int n)
{
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((g->state >> 33) % (uint64_t)n);
}

static int between(made *g, int lo, int hi) { return lo + below(g, hi - lo + 1); }

static void OT_PRINTF(2, 3) put(made *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(g->text + g->at, sizeof g->text - g->at, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof g->text - g->at) fail_msg("a test graph is too long");
    g->at += (size_t)n;
}

/* An initializer of n random integers. */
static void integers(made *g, const char *name, const char *type, const char *dims, int64_t n,
                     int lo, int hi)
{
    put(g, "init %%%s : %s[%s] = [", name, type, dims);
    for (int64_t k = 0; k < n; k++) put(g, "%s%d", k ? "," : "", between(g, lo, hi));
    put(g, "]\n");
}

/* n scales: powers of two, or anything near them. */
static void scales(made *g, const char *name, int64_t n, int exponent, bool exact)
{
    char dims[30] = "";
    if (n > 0) snprintf(dims, sizeof dims, "%lld", (long long)n);
    put(g, "init %%%s : float32[%s] = [", name, dims);
    for (int64_t k = 0; k < (n > 0 ? n : 1); k++) {
        double s = 1.0;
        for (int e = between(g, exponent, exponent + 2); e < 0; e++) s /= 2;
        put(g, "%s%.9g", k ? "," : "", exact ? s : s * (1 + between(g, 0, 999) / 1000.0));
    }
    put(g, "]\n");
}

/* ---- one convolution ---- */

typedef struct shape {
    int spatial, group, per, maps;
    int size[2], kernel[2], stride[2], dilation[2], lo[2], hi[2];
} shape;

static shape make_shape(made *g)
{
    shape s = {.spatial = below(g, 5) ? 2 : 1,
               .group = 1,
               .per = between(g, 1, 9),
               .maps = between(g, 1, 14)};
    int kind = below(g, 3);
    /* depthwise */
    if (kind == 1)
        s = (shape){
            .spatial = s.spatial, .group = between(g, 2, 7), .per = 1, .maps = between(g, 1, 2)};
    if (kind == 2)
        s = (shape){.spatial = s.spatial,
                    .group = between(g, 2, 3),
                    .per = between(g, 2, 4),
                    .maps = between(g, 1, 4)};
    for (int a = 0; a < s.spatial; a++) {
        bool plain = below(g, 3) == 0;
        s.kernel[a] = plain ? 1 : between(g, 1, 5);
        s.stride[a] = plain ? 1 : between(g, 1, 3);
        s.dilation[a] = plain || below(g, 4) ? 1 : 2;
        s.lo[a] = plain ? 0 : below(g, s.kernel[a]);
        s.hi[a] = plain ? 0 : below(g, s.kernel[a]);
        s.size[a] = (s.kernel[a] - 1) * s.dilation[a] + between(g, 1, below(g, 4) ? 12 : 70);
    }
    return s;
}

static void put_attributes(made *g, const shape *s)
{
    put(g, "{group=%d, ", s->group);
    for (int k = 0; k < 4; k++) {
        static const char *const names[] = {"kernel_shape", "strides", "dilations", "pads"};
        const int *const of[] = {s->kernel, s->stride, s->dilation, s->lo};
        put(g, "%s%s=[", k ? ", " : "", names[k]);
        for (int a = 0; a < s->spatial; a++) put(g, "%s%d", a ? "," : "", of[k][a]);
        for (int a = 0; k == 3 && a < s->spatial; a++) put(g, ",%d", s->hi[a]);
        put(g, "]");
    }
    put(g, "}\n");
}

static void put_input(made *g, const shape *s, int batch)
{
    g->rank = (uint32_t)s->spatial + 2;
    g->x_dims[0] = batch;
    g->x_dims[1] = s->group * s->per;
    for (int a = 0; a < s->spatial; a++) g->x_dims[a + 2] = s->size[a];
    put(g, "input %%x : %s[%lld,%lld", g->x_signed ? "int8" : "uint8", (long long)g->x_dims[0],
        (long long)g->x_dims[1]);
    for (int a = 0; a < s->spatial; a++) put(g, ",%d", s->size[a]);
    put(g, "]\n");
}

/* Weights, their zero points and scales; bias b. Returns whether weights have a number for each
 * map. */
static bool put_weights(made *g, const shape *s, bool w_signed, bool exact)
{
    int64_t maps = (int64_t)s->group * s->maps, n = maps * s->per;
    char dims[60], one[30];
    snprintf(dims, sizeof dims, "%lld,%d,%d", (long long)maps, s->per, s->kernel[0]);
    if (s->spatial == 2)
        snprintf(dims, sizeof dims, "%lld,%d,%d,%d", (long long)maps, s->per, s->kernel[0],
                 s->kernel[1]);
    for (int a = 0; a < s->spatial; a++) n *= s->kernel[a];
    int low = w_signed ? -128 : 0;
    bool per_map = below(g, 2);
    snprintf(one, sizeof one, "%lld", (long long)maps);
    integers(g, "w", w_signed ? "int8" : "uint8", dims, n, low, low + 255);
    integers(g, "wz", w_signed ? "int8" : "uint8", per_map ? one : "", per_map ? maps : 1,
             low + 100, low + 155);
    scales(g, "ws", per_map ? maps : 0, -12, exact);
    integers(g, "b", "int32", one, maps, -40000, 40000);
    return per_map;
}

/* x --DequantizeLinear--> Conv --> ... --> y, of one form or another. */
static void make_graph(made *g, unsigned seed, bool exact)
{
    *g = (made){.state = seed * 77777u + 5u};
    shape s = make_shape(g);
    bool w_signed = below(g, 2), y_signed = below(g, 2);
    int form = below(g, 6), biased = below(g, 3), act = below(g, 4);
    g->x_signed = below(g, 2);
    put_input(g, &s, between(g, 1, 2));
    const char *type = g->x_signed ? "int8" : "uint8", *to = y_signed ? "int8" : "uint8";
    integers(g, "xz", type, "", 1, g->x_signed ? -50 : 60, g->x_signed ? 50 : 190);
    scales(g, "xs", 0, -6, exact);
    bool per_map = put_weights(g, &s, w_signed, exact);
    scales(g, "ys", 0, -5, exact);
    integers(g, "yz", to, "", 1, y_signed ? -50 : 60, y_signed ? 50 : 190);
    if (form == 0) {
        put(g, "%%y = ConvInteger(%%x, %%w, %%xz, %%wz) ");
        put_attributes(g, &s);
        put(g, "output %%y\n");
        return;
    }
    if (form == 1) {
        put(g, "%%y = QLinearConv(%%x, %%xs, %%xz, %%w, %%ws, %%wz, %%ys, %%yz%s) ",
            biased ? ", %b" : "");
        put_attributes(g, &s);
        put(g, "output %%y\n");
        return;
    }
    put(g,
        "%%xf = DequantizeLinear(%%x, %%xs, %%xz)\n%%wf = DequantizeLinear(%%w, %%ws, %%wz) "
        "{axis=%d}\n",
        per_map ? 0 : 1);
    if (biased) put(g, "%%bs = Mul(%%xs, %%ws)\n%%bf = DequantizeLinear(%%b, %%bs) {axis=0}\n");
    if (biased == 2) /* no multiple of the products' unit */
        put(g, "%%half : float32[] = Identity(%%xs)\n%%bb = Add(%%bf, %%half)\n");
    put(g, "%%c = Conv(%%xf, %%wf%s) ", biased == 2 ? ", %bb" : biased ? ", %bf" : "");
    put_attributes(g, &s);
    const char *last = "c";
    if (act == 1) put(g, "%%a = Relu(%%c)\n"), last = "a";
    if (act == 2)
        put(g, "init %%lo : float32[] = [-0.5]\ninit %%hi : float32[] = [1.5]\n%%a = Clip(%%c, "
               "%%lo, %%hi)\n"),
            last = "a";
    if (form == 2) {
        put(g, "output %%%s\n", last); /* float32 */
        return;
    }
    put(g, "%%y = QuantizeLinear(%%%s, %%ys, %%yz)\noutput %%y\n", last);
    if (form == 3) put(g, "output %%xf\n"); /* somebody else reads the dequantized input */
}

/* ---- comparing ---- */

static int64_t elements(const ot_nd *a)
{
    int64_t n = 0;
    assert_true(ot_nd_elems(a, &n));
    return n;
}

static void compare(const made *g, unsigned seed, const ot_nd *want, const ot_nd *got, bool exact)
{
    assert_int_equal(want->dtype, got->dtype);
    assert_true(ot_nd_same_shape(got, want->dtype, want->rank, want->dims));
    int64_t n = elements(want), off = 0;
    for (int64_t k = 0; k < n; k++) {
        double a = ot_nd_double(want, k), b = ot_nd_double(got, k), e = a < b ? b - a : a - b;
        double most = exact ? 0 : want->dtype == OT_F32 ? 1e-5 * (1 + (a < 0 ? -a : a)) : 1;
        if (e > most)
            fail_msg("seed %u: element %lld is %g, not %g\n%s", seed, (long long)k, b, a, g->text);
        off += e > 0;
    }
    if (want->dtype != OT_F32 && off > 1 + n / 50)
        fail_msg("seed %u: %lld of %lld differ\n%s", seed, (long long)off, (long long)n, g->text);
}

static void check_seed(unsigned seed)
{
    static made g;
    static uint8_t x[200000];
    bool exact = seed % 3 != 0;
    make_graph(&g, seed, exact);
    int64_t n = g.x_dims[0] * g.x_dims[1] * g.x_dims[2] * (g.rank == 4 ? g.x_dims[3] : 1);
    assert_true(n <= (int64_t)sizeof x);
    for (int64_t k = 0; k < n; k++) x[k] = (uint8_t)below(&g, 256);
    ot_nd in = over(g.x_signed ? OT_I8 : OT_U8, x, g.rank, g.x_dims), want[2] = {{0}},
          got[2] = {{0}};
    bench ref, fast;
    assert_same_groups(g.text);
    open_with(&ref, g.text, (ot_session_options){.reference = true});
    if (ref.status != OT_OK) fail_msg("seed %u: %s\n%s", seed, ref.d.message, g.text);
    run_ok(&ref, &in, want);
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        open_with(&fast, g.text, (ot_session_options){.threads = threads});
        if (fast.status != OT_OK) fail_msg("seed %u: %s\n%s", seed, fast.d.message, g.text);
        run_ok(&fast, &in, got);
        for (uint32_t k = 0; k < fast.m->graph->n_outputs; k++) {
            compare(&g, seed, &want[k], &got[k], exact);
            ot_nd_release(&got[k]);
        }
        close_bench(&fast);
    }
    for (uint32_t k = 0; k < 2; k++) ot_nd_release(&want[k]);
    close_bench(&ref);
}

static void random_convolutions(void **state)
{
    (void)state;
    const char *one = getenv("OT_SEED"), *many = getenv("OT_SEEDS");
    unsigned first = one ? (unsigned)atoi(one) : 1, n = many ? (unsigned)atoi(many) : one ? 1 : 300;
    print_message("seeds %u to %u\n", first, first + n - 1);
    for (unsigned seed = first; seed < first + n; seed++) check_seed(seed);
}

/* ---- what runs ---- */

/* The group is one step, and no float32 map lies in the arena. */
static void groups_are_one_step(void **state)
{
    (void)state;
    static const char text[] =
        "input %x : uint8[1,1,32,32]\ninit %z : uint8[] = [128]\ninit %s : float32[] = [0.125]\n"
        "init %w : int8[2,1,3,3] = [1,2,3,4,5,6,7,8,9,-1,-2,-3,-4,-5,-6,-7,-8,-9]\ninit %wz : "
        "int8[] = [0]\n"
        "%xf = DequantizeLinear(%x, %s, %z)\n%wf = DequantizeLinear(%w, %s, %wz)\n"
        "%c = Conv(%xf, %wf) {kernel_shape=[3,3], pads=[1,1,1,1]}\n%r = Relu(%c)\n%m = "
        "QuantizeLinear(%r, %s, %z)\n"
        "%mf = DequantizeLinear(%m, %s, %z)\ninit %v : int8[1,2,1,1] = [3,-5]\n%vf = "
        "DequantizeLinear(%v, %s, %wz)\n"
        "%d = Conv(%mf, %vf)\n%y = QuantizeLinear(%d, %s, %z)\noutput %y";
    uint8_t x[1024];
    const int64_t dims[4] = {1, 1, 32, 32};
    ot_nd in = over(OT_U8, x, 4, dims), out = {0};
    ot_session_figures f;
    bench b;
    for (int k = 0; k < 1024; k++) x[k] = (uint8_t)(k * 37);
    open_text(&b, text);
    run_ok(&b, &in, &out);
    assert_int_equal(b.s->top->n_steps, 2);
    ot_session_figures_get(b.s, &f);
    assert_int_equal(f.n_mispredicted, 0);
    assert_true(b.s->top->steps[0].work > 0 && b.s->top->steps[0].work_at >= 0);
    ot_nd_release(&out);
    close_bench(&b);
}

/* Scales and zero point of the input are computed in the run. */
static void dynamic(void **state)
{
    (void)state;
    static const char *const ends[] = {"%y = Relu(%m)\n", "%y = Add(%m, %b)\n"};
    static float x[2 * 6 * 11 * 13];
    for (int round = 0; round < 8; round++) {
        static made g;
        bool depthwise = round & 1;
        g = (made){.state = (uint64_t)round * 999983u + 7u};
        put(&g, "input %%x : float32[2,6,11,13]\n%%q, %%s, %%z = DynamicQuantizeLinear(%%x)\n");
        integers(&g, "w", "int8", depthwise ? "6,1,3,3" : "9,6,3,3", depthwise ? 54 : 486, -128,
                 127);
        put(&g, "init %%ws : float32[] = [0.0123]\n");
        integers(&g, "wz", "int8", "", 1, -3, 3);
        put(&g, "init %%b : float32[%d,1,1] = [", depthwise ? 6 : 9);
        for (int k = 0; k < (depthwise ? 6 : 9); k++) put(&g, "%s%d", k ? "," : "", k - 3);
        put(&g,
            "]\n%%f = Mul(%s)\n%%i = ConvInteger(%%q, %%w, %%z, %%wz) {group=%d, pads=[1,0,2,1], "
            "strides=[%d,1]}\n",
            round & 2 ? "%s, %ws" : "%ws, %s", depthwise ? 6 : 1, 1 + (round & 1));
        put(&g, "%%c = Cast(%%i) {to=1}\n%%m = Mul(%%c, %%f)\n%soutput %%y\n", ends[round >> 2]);
        for (size_t k = 0; k < sizeof x / sizeof *x; k++)
            x[k] = (float)below(&g, 2000) / 500.0f - 1.5f;
        ot_nd in = F32S(x, 2, 6, 11, 13), want = {0}, got = {0};
        bench ref, fast;
        assert_same_groups(g.text);
        open_with(&ref, g.text, (ot_session_options){.reference = true});
        open_with(&fast, g.text, (ot_session_options){.threads = 2});
        if (ref.status != OT_OK || fast.status != OT_OK)
            fail_msg("%s%s\n%s", ref.d.message, fast.d.message, g.text);
        if (fast.s->top->n_steps != (round >> 2 ? 3u : 4u))
            fail_msg("%u steps:\n%s", fast.s->top->n_steps, g.text);
        run_ok(&ref, &in, &want);
        run_ok(&fast, &in, &got);
        compare(&g, (unsigned)round, &want, &got, false);
        ot_nd_release(&got);
        ot_nd_release(&want);
        close_bench(&ref);
        close_bench(&fast);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_convolutions),
                                       cmocka_unit_test(groups_are_one_step),
                                       cmocka_unit_test(dynamic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
