/* Kernels that close gaps to other runtimes (recurrent cells, STFT, float16 Conv, ConvTranspose
 * of groups), against the reference kernels on random operands, which follow the operators'
 * formulas in double; Resize between fused steps, and grouped convolutions, against a session of
 * references.
 */
#include "fast_check.h"

#include "base/half_float.h"

#include <time.h>

#include "engine/ref/ref_product.h"
#include "engine/ref/ref_window.h"

/* ---- recurrent cells ---- */

typedef struct cell_case {
    const char *op;
    int64_t gates;
    ot_op_fn reference;
} cell_case;

static const cell_case cells[] = {
    {"RNN", 1, ot_ref_rnn}, {"GRU", 3, ot_ref_gru}, {"LSTM", 4, ot_ref_lstm}};

/* Weights small enough for activations not to saturate. */
static ot_nd small_array(uint32_t rank, const int64_t *dims)
{
    ot_nd a = fast_array(OT_F32, rank, dims);
    for (int64_t i = 0; i < fast_count(&a); i++) ((float *)a.data)[i] *= 0.3f;
    return a;
}
#define SMALL(...) \
    small_array(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

/* Adds the name of the next operand, which is there or omitted. */
static void name_next(fast_run *r, bool there, char *names)
{
    if (there)
        sprintf(names + strlen(names), ", %%%c", 'a' + (int)r->n_in++);
    else
        strcat(names, ", _");
}

static ot_nd lengths(int64_t batch, int64_t seq)
{
    ot_nd a = FAST_ARRAY(OT_I32, batch);
    for (int64_t b = 0; b < batch; b++)
        ((int32_t *)a.data)[b] = (int32_t)fast_random((uint32_t)seq + 1);
    return a;
}

static void random_cell(const cell_case *cell, uint32_t threads)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    const char *direction = directions[fast_random(3)];
    int64_t d = direction[0] == 'b' ? 2 : 1, layout = fast_random(2), hidden = 1 + fast_random(40),
            input = 1 + fast_random(40);
    int64_t batch = 1 + fast_random(5), seq = 1 + fast_random(9), width = cell->gates * hidden;
    bool bias = fast_random(3) > 0, state = fast_random(2) > 0, lens = fast_random(3) == 0,
         peep = cell->gates == 4 && fast_random(3) == 0;
    fast_run r = {.n_out = cell->gates == 4 ? 3 : 2};
    char node[300];
    r.in[0] = layout ? SMALL(batch, seq, input) : SMALL(seq, batch, input);
    r.in[1] = SMALL(d, width, input);
    r.in[2] = SMALL(d, width, hidden);
    r.n_in = 3;
    char optional[100] = "";
    if (bias) r.in[r.n_in] = SMALL(d, 2 * width);
    name_next(&r, bias, optional);
    if (lens) r.in[r.n_in] = lengths(batch, seq);
    name_next(&r, lens, optional);
    for (int k = 0; k < (cell->gates == 4 ? 2 : 1); k++) {
        if (state) r.in[r.n_in] = layout ? SMALL(batch, d, hidden) : SMALL(d, batch, hidden);
        name_next(&r, state, optional);
    }
    if (peep) {
        r.in[r.n_in] = SMALL(d, 3 * hidden);
        name_next(&r, true, optional);
    }
    snprintf(node, sizeof node,
             "%s(%%a, %%b, %%c%s) {hidden_size = %d, layout = %d, direction = \"%s\"%s}", cell->op,
             optional, (int)hidden, (int)layout, direction,
             cell->gates == 3 && fast_random(2) ? ", linear_before_reset = 1" : "");
    fast_twins(&r, 14, node, threads, cell->reference, 2e-5);
    fast_close(&r);
}

static void test_cells(void **state)
{
    (void)state;
    for (int k = 0; k < 150; k++) random_cell(&cells[k % 3], 1 + fast_random(2));
}

/* ---- DFT ---- */

static void random_dft(uint32_t threads)
{
    static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 30, 31, 37, 60, 64, 77, 97, 128};
    int64_t n = lengths[fast_random(17)], inner = 1 + fast_random(4), outer = 1 + fast_random(40),
            length = n;
    bool inverse = fast_random(2), onesided = fast_random(2), last = fast_random(2);
    int64_t parts = onesided && !inverse ? 1 : 1 + fast_random(2);
    if (fast_random(3) == 0) length = lengths[fast_random(17)]; /* cut, or filled up */
    fast_run r = {.n_in = 2, .n_out = 1};
    char node[200];
    if (last)
        r.in[0] = FAST_ARRAY(OT_F32, outer, n, parts);
    else
        r.in[0] = FAST_ARRAY(OT_F32, outer, n, inner, parts);
    r.in[1] = fast_array(OT_I64, 0, NULL);
    *(int64_t *)r.in[1].data = length;
    snprintf(node, sizeof node, "DFT(%%a, %%b) {axis = 1, inverse = %d, onesided = %d}",
             (int)inverse, (int)onesided);
    fast_twins(&r, 17, node, threads, ot_ref_dft, 3e-4);
    fast_close(&r);
}

static void test_dft(void **state)
{
    (void)state;
    for (int k = 0; k < 400; k++) random_dft(1 + fast_random(3));
}

/* ---- STFT ---- */

static void test_stft(void **state)
{
    (void)state;
    for (int k = 0; k < 40; k++) {
        int64_t frame = 1 + fast_random(70), length = frame + fast_random(200),
                step = 1 + fast_random(40);
        bool window = fast_random(2) > 0;
        fast_run r = {.n_in = 3, .n_out = 1};
        char node[200];
        r.in[0] = FAST_ARRAY(OT_F32, 1 + fast_random(3), length, 1);
        r.in[1] = fast_array(OT_I64, 0, NULL);
        *(int64_t *)r.in[1].data = step;
        r.in[2] = window ? FAST_ARRAY(OT_F32, frame) : fast_array(OT_I64, 0, NULL);
        if (!window) *(int64_t *)r.in[2].data = frame;
        snprintf(node, sizeof node, "STFT(%%a, %%b, %s%%c) {onesided = %d}", window ? "" : "_, ",
                 (int)fast_random(2));
        fast_twins(&r, 17, node, 1 + fast_random(2), ot_ref_stft, 2e-5);
        /* once more with what the node keeps, and with another window */
        for (int64_t i = 0; window && i < frame; i++) ((float *)r.in[2].data)[i] = fast_number();
        double *before = fast_doubles(&r.out[0]);
        memset(r.out, 0, sizeof r.out);
        assert_int_equal(ot_session_run(r.b.s, r.in, r.out, &r.b.d), OT_OK);
        if (!window) fast_same(&r, 0, r.out[0].rank, r.out[0].dims, before, 0, 0);
        test_free(before);
        if (window) {
            fast_end(&r);
            fast_twins(&r, 17, node, 1, ot_ref_stft, 2e-5);
        }
        fast_close(&r);
    }
}

/* ---- Conv of float16, and of weights that are no constants ---- */

/* The same numbers as float16. */
static ot_nd halves(const ot_nd *a)
{
    ot_nd h = fast_array(OT_I32, a->rank, a->dims);
    for (int64_t i = 0; i < fast_count(a); i++)
        ((uint16_t *)h.data)[i] = ot_f32_to_f16(((const float *)a->data)[i]);
    h.dtype = OT_F16;
    return h;
}

static void check_halves(const ot_nd *got, const ot_nd *want)
{
    for (int64_t i = 0; i < fast_count(want); i++) {
        double g = ot_nd_double(got, i), w = ot_nd_double(want, i);
        if (!(fabs(g - w) <= 1e-3 * fabs(w) + 2e-4))
            fail_msg("float16: element %d is %.9g, not %.9g", (int)i, g, w);
    }
}

static void random_conv(bool half)
{
    int64_t group = 1 + fast_random(3), per = 1 + fast_random(5),
            maps = group * (1 + fast_random(6)), k = 1 + fast_random(3);
    int64_t h = 3 + fast_random(12), w = 3 + fast_random(12);
    fast_run r = {.n_in = 3, .n_out = 1};
    char node[300];
    ot_nd f[3] = {FAST_ARRAY(OT_F32, 1 + fast_random(2), group * per, h, w), SMALL(maps, per, k, k),
                  FAST_ARRAY(OT_F32, maps)};
    for (int j = 0; j < 3; j++) r.in[j] = half ? halves(&f[j]) : f[j];
    snprintf(node, sizeof node,
             "Conv(%%a, %%b, %%c) {group = %d, strides = [%d, %d], pads = [%d, %d, %d, %d], "
             "dilations = [1, %d]}",
             (int)group, 1 + (int)fast_random(2), 1 + (int)fast_random(2), (int)fast_random(2),
             (int)fast_random(2), (int)fast_random(2), (int)fast_random(2),
             k > 1 && w > 6 ? 1 + (int)fast_random(2) : 1);
    if (half) {
        fast_run twin = r;
        fast_right(&r, 17, node, 1 + fast_random(2));
        if (fast_try(&twin, 17, node, 1, ot_ref_conv) != OT_OK) fail_msg("%s", twin.b.d.message);
        assert_true(ot_nd_same_shape(&r.out[0], OT_F16, twin.out[0].rank, twin.out[0].dims));
        check_halves(&r.out[0], &twin.out[0]);
        fast_end(&twin);
        for (int j = 0; j < 3; j++) test_free(f[j].data);
    } else {
        fast_twins(&r, 17, node, 1 + fast_random(2), ot_ref_conv, 2e-5);
    }
    fast_close(&r);
}

static void test_conv(void **state)
{
    (void)state;
    for (int k = 0; k < 80; k++) random_conv(k % 2 == 0);
}

/* ---- ConvTranspose with groups, or weights that are no constants ---- */

static void random_deconv(void)
{
    bool flat = fast_random(4) == 0; /* one spatial axis */
    int64_t group = 1 + fast_random(4), per = 1 + fast_random(3), maps_per = 1 + fast_random(3),
            kh = 1 + fast_random(4), kw = 1 + fast_random(4);
    int64_t h = 1 + fast_random(9), w = 2 + fast_random(20), batch = 1 + fast_random(2);
    int sh = 1 + (int)fast_random(3), sw = 1 + (int)fast_random(3);
    fast_run r = {.n_in = 3, .n_out = 1};
    char node[300];
    r.in[0] = flat ? FAST_ARRAY(OT_F32, batch, group * per, w)
                   : FAST_ARRAY(OT_F32, batch, group * per, h, w);
    r.in[1] = flat ? SMALL(group * per, maps_per, kw) : SMALL(group * per, maps_per, kh, kw);
    r.in[2] = FAST_ARRAY(OT_F32, group * maps_per);
    const char *bias = fast_random(3) ? ", %c" : "";
    if (!*bias) {
        test_free(r.in[2].data);
        r.n_in = 2;
    }
    if (flat)
        snprintf(node, sizeof node,
                 "ConvTranspose(%%a, %%b%s) {group = %d, strides = [%d], output_padding = [%d]}",
                 bias, (int)group, sw, (int)fast_random((uint32_t)sw));
    else
        snprintf(node, sizeof node,
                 "ConvTranspose(%%a, %%b%s) {group = %d, strides = [%d, %d], dilations = [%d, %d], "
                 "pads = [%d, %d, %d, %d], "
                 "output_padding = [%d, %d]}",
                 bias, (int)group, sh, sw, 1 + (int)fast_random(2), 1 + (int)fast_random(2),
                 kh > 1 ? (int)fast_random(2) : 0, kw > 1 ? (int)fast_random(2) : 0, 0,
                 kw > 2 && w > 3 ? (int)fast_random(2) : 0, (int)fast_random((uint32_t)sh),
                 (int)fast_random((uint32_t)sw));
    fast_twins(&r, 17, node, 1 + fast_random(2), ot_ref_conv_transpose, 2e-5);
    fast_close(&r);
}

static void test_deconv(void **state)
{
    (void)state;
    for (int k = 0; k < 200; k++) random_deconv();
}

/* Every float16 there is, through Relu and through a Conv that multiplies by 1 or another
 * float16: the product is exact in float32, and rounded once. */
static void test_halves(void **state)
{
    int64_t dims[4] = {1, 1, 256, 256};
    uint16_t *all = test_malloc(65536 * sizeof *all);
    (void)state;
    for (uint32_t k = 0; k < 65536; k++) all[k] = (uint16_t)k;
    for (int j = 0; j < 12; j++) {
        uint16_t factor = (uint16_t)(j == 0 ? 0x3c00 : fast_random(0x7800));
        fast_run conv = {.n_in = 2, .n_out = 1}, relu = {.n_in = 1, .n_out = 1};
        conv.in[0] = relu.in[0] = over(OT_F16, all, 4, dims);
        conv.in[1] = over(OT_F16, &factor, 4, (int64_t[]){1, 1, 1, 1});
        fast_right(&conv, 17, "Conv(%a, %b)", 1);
        fast_right(&relu, 17, "Relu(%a)", 1);
        for (uint32_t k = 0; k < 65536; k++) {
            double x = (double)ot_f16_to_f32((uint16_t)k), y = ot_nd_double(&conv.out[0], k),
                   z = ot_nd_double(&relu.out[0], k);
            double product = (double)ot_f16_to_f32(ot_f32_to_f16((float)x * ot_f16_to_f32(factor)));
            if (isnan(product) ? !isnan(y) : y != product)
                fail_msg("%04x * %04x gives %g, not %g", k, factor, y, product);
            if (isnan(x) ? !isnan(z) : z != (x < 0 ? 0 : x))
                fail_msg("Relu of %04x gives %g", k, z);
        }
        fast_end(&conv);
        fast_end(&relu);
    }
    test_free(all);
}

static void test_pool(void **state)
{
    (void)state;
    for (int k = 0; k < 60; k++) {
        int64_t kernel = 1 + fast_random(4), size = kernel * 2 + fast_random(9);
        fast_run r = {.n_in = 1, .n_out = 1}, twin;
        char node[200];
        ot_nd f = FAST_ARRAY(OT_F32, 1 + fast_random(2), 1 + fast_random(4), size, size + 1);
        r.in[0] = halves(&f);
        uint16_t *some = (uint16_t *)r.in[0].data + fast_random((uint32_t)fast_count(&f));
        if (fast_random(3) == 0) *some = fast_random(2) ? 0x7e00 : 0xfc00; /* NaN, minus infinity */
        snprintf(node, sizeof node,
                 "MaxPool(%%a) {kernel_shape = [%d, %d], strides = [%d, %d], pads = [%d, 0, 0, "
                 "%d], dilations = [%d, 1], "
                 "ceil_mode = %d}",
                 (int)kernel, (int)kernel, 1 + (int)fast_random(3), 1 + (int)fast_random(3),
                 (int)fast_random((uint32_t)kernel), (int)fast_random((uint32_t)kernel),
                 1 + (int)fast_random(2), (int)fast_random(2));
        twin = r;
        fast_right(&r, 17, node, 1 + fast_random(2));
        if (fast_try(&twin, 17, node, 1, ot_ref_max_pool) != OT_OK)
            fail_msg("%s", twin.b.d.message);
        assert_true(ot_nd_same_shape(&r.out[0], OT_F16, twin.out[0].rank, twin.out[0].dims));
        for (int64_t i = 0; i < fast_count(&twin.out[0]); i++) {
            double g = ot_nd_double(&r.out[0], i), w = ot_nd_double(&twin.out[0], i);
            if (isnan(w) ? !isnan(g) : g != w)
                fail_msg("%s: element %d is %g, not %g", r.what, (int)i, g, w);
        }
        fast_end(&twin);
        fast_close(&r);
        test_free(f.data);
    }
}

/* ---- Resize between convolutions ---- */

/* Steps of this operator that make arrays blocked by channel. */
static int blocked_steps(const ot_session *s, const char *op)
{
    int n = 0;
    for (uint32_t k = 0; k < s->top->n_steps; k++) {
        const ot_step *step = &s->top->steps[k];
        n += step->plan && strcmp(step->node->op_type, op) == 0 && step->n_out > 0 &&
             step->out_slots[0]->fore.chan_block > 1;
    }
    return n;
}

/* The graph of one input and n outputs, with and without fused steps; returns how many steps of
 * operator `op` ran blocked. */
static int check_session(const char *graph, ot_nd *in, uint32_t n, const char *op)
{
    bench fast, slow;
    ot_nd a[2] = {0}, b[2] = {0};
    open_with(&fast, graph, (ot_session_options){.threads = 2});
    open_with(&slow, graph, (ot_session_options){.reference = true});
    if (fast.status != OT_OK) fail_msg("%s", fast.d.message);
    run_ok(&fast, in, a);
    run_ok(&slow, in, b);
    for (uint32_t k = 0; k < n; k++) {
        assert_true(ot_nd_same_shape(&a[k], b[k].dtype, b[k].rank, b[k].dims));
        for (int64_t i = 0; i < fast_count(&b[k]); i++) {
            double got = (double)((const float *)a[k].data)[i],
                   want = (double)((const float *)b[k].data)[i];
            if (!(fabs(got - want) <= 2e-4))
                fail_msg("%s\noutput %u, element %d is %.9g, not %.9g", graph, k, (int)i, got,
                         want);
        }
    }
    int blocked = blocked_steps(fast.s, op);
    close_bench(&fast);
    close_bench(&slow);
    test_free(in->data);
    return blocked;
}

/* Conv -> Resize -> Relu -> MaxPool; returns how many Resize ran blocked. */
static int check_resize(const char *resize, int64_t channels, int64_t h, int64_t w)
{
    char graph[16000];
    int n = snprintf(graph, sizeof graph,
                     "input %%x : float32[1, %d, %d, %d]\n"
                     "init %%s : float32[4] = [1, 1, 2, 1.5]\n"
                     "init %%w : float32[%d, %d, 1, 1] = [",
                     (int)channels, (int)h, (int)w, (int)channels, (int)channels);
    for (int64_t k = 0; k < channels * channels; k++)
        n += snprintf(graph + n, sizeof graph - (size_t)n, "%s%.3f", k ? ", " : "",
                      (double)fast_number());
    snprintf(graph + n, sizeof graph - (size_t)n,
             "]\n"
             "%%a = Conv(%%x, %%w)\n"
             "%%b = %s\n"
             "%%c = Relu(%%b)\n"
             "%%d = MaxPool(%%c) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n"
             "output %%d\n"
             "output %%b\n",
             resize);
    ot_nd in = FAST_ARRAY(OT_F32, 1, channels, h, w);
    return check_session(graph, &in, 2, "Resize");
}

static void test_resize(void **state)
{
    static const char *const nodes[] = {
        "Resize(%a, _, %s) {mode = \"nearest\"}",
        "Resize(%a, _, %s) {mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
        "nearest_mode = \"floor\"}",
        "Resize(%a, _, %s) {mode = \"linear\"}",
        "Resize(%a, _, %s) {mode = \"cubic\"}",
        "Resize(%a, _, %s) {mode = \"linear\", coordinate_transformation_mode = \"align_corners\"}",
    };
    (void)state;
    int blocked = 0;
    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++)
        for (int j = 0; j < 6; j++)
            blocked += check_resize(nodes[k], 1 + fast_random(36), 4 + fast_random(20),
                                    4 + fast_random(20));
    assert_true(blocked > 0);
}

/* ---- grouped convolutions ---- */

static void test_groups(void **state)
{
    (void)state;
    for (int j = 0; j < 20; j++) {
        char graph[16000];
        int64_t group = 2 + fast_random(4), per = 1 + fast_random(9);
        int64_t maps = group * (1 + fast_random(9)), k = 1 + 2 * fast_random(2);
        int n = snprintf(graph, sizeof graph,
                         "input %%x : float32[2, %d, 7, 9]\ninit %%w : float32[%d, %d, %d, %d] = [",
                         (int)(group * per), (int)maps, (int)per, (int)k, (int)k);
        for (int64_t i = 0; i < maps * per * k * k; i++)
            n += snprintf(graph + n, sizeof graph - (size_t)n, i ? ",%d" : "%d",
                          (int)fast_random(9) - 4);
        assert_in_range(n, 1, sizeof graph - 200);
        snprintf(graph + n, sizeof graph - (size_t)n,
                 "]\n%%y = Conv(%%x, %%w) {group = %d, pads = [1, 0, 1, 1]}\n%%z = "
                 "Relu(%%y)\noutput %%z\n",
                 (int)group);
        ot_nd in = FAST_ARRAY(OT_F32, 2, group * per, 7, 9);
        (void)check_session(graph, &in, 1, "Conv");
    }
}

int main(void)
{
    const char *seed = getenv("SEED");
    fast_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
    print_message("SEED=%llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells), cmocka_unit_test(test_dft),    cmocka_unit_test(test_stft),
        cmocka_unit_test(test_conv),  cmocka_unit_test(test_deconv), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_pool),  cmocka_unit_test(test_resize), cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
