/* Fast kernels of rows and lanes against loops in double: random shapes, axes, threads, special
 * values. */
#include "fast_check.h"

/* ---- functions of one number ---- */

static double ulps(float got, double want)
{
    int e;
    (void)frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static void exponentials(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 400000; i++) {
        float x = ((float)fast_random(2000001) / 1e6f - 1.0f) * 88.0f;
        if (i % 4 == 0) x /= 100;
        worst = fmax(worst, ulps(ot_rows_exp(x), exp((double)x)));
        if (x < 0 && x > -87.0f) worst = fmax(worst, ulps(ot_rows_exp_negative(x), exp((double)x)));
    }
    if (worst > 2) fail_msg("off by %g ulp", worst);
    assert_true(ot_rows_exp(0) == 1 && ot_rows_exp_negative(0) == 1);
    assert_true(isinf(ot_rows_exp(89)) && isinf(ot_rows_exp(INFINITY)) &&
                ot_rows_exp(-INFINITY) == 0 && ot_rows_exp(-200) == 0);
    assert_true(ot_rows_exp_negative(-INFINITY) == 0 && ot_rows_exp_negative(-88) == 0);
    assert_true(isnan(ot_rows_exp(NAN)) && isnan(ot_rows_exp_negative(NAN)));
    assert_true(fabs((double)ot_rows_exp(-95) - exp(-95)) < 2e-45);
}

static void gelus(void **state)
{
    (void)state;
    for (int i = 0; i < 100000; i++) {
        float x = ((float)fast_random(2000001) / 1e6f - 1.0f) * 8.0f;
        double v = (double)x, want = v / 2 * erfc(-v / sqrt(2)),
               soft = v / 2 * (1 + tanh(sqrt(2 / 3.14159265358979) * (v + 0.044715 * v * v * v)));
        if (fabs((double)ot_rows_gelu(x) - want) > 4e-6 * fabs(want))
            fail_msg("gelu %.9g: %.9g, not %.9g", v, (double)ot_rows_gelu(x), want);
        if (fabs((double)ot_rows_gelu_tanh(x) - soft) > 2e-6 * fabs(soft) + 2e-7)
            fail_msg("tanh gelu %.9g", v);
    }
    assert_true(ot_rows_gelu(50) == 50 && ot_rows_gelu(-50) == 0 && ot_rows_gelu(0) == 0 &&
                isinf(ot_rows_gelu(INFINITY)));
    assert_true(isnan(ot_rows_gelu(NAN)) && isnan(ot_rows_gelu_tanh(NAN)) &&
                ot_rows_gelu_tanh(-1e4f) == 0);
}

/* ---- rows with strides ---- */

static void strided_rows(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        int64_t rows = 1 + fast_random(5), n = 1 + fast_random(round % 4 ? 40 : 1500),
                stride = n + fast_random(9);
        ot_nd a = FAST_ARRAY(OT_F32, rows, stride), b = FAST_ARRAY(OT_F32, rows, stride);
        float *x = a.data, *y = round % 2 ? x : b.data,
              *old = test_malloc((size_t)(rows * stride) * 4), mean[5], inverse[5];
        double *from = fast_doubles(&a);
        memcpy(old, y, (size_t)(rows * stride) * 4);
        bool layer = round % 3 == 0;
        ot_rows_norm norm = {.epsilon = 1e-3f};
        if (layer)
            for (int64_t r = 0; r < rows; r++)
                ot_rows_layernorm(y + r * stride, x + r * stride, n, &norm, mean + r, inverse + r);
        else
            ot_rows_softmax(y, x, rows, n, stride, stride);
        for (int64_t r = 0; r < rows; r++) {
            double sum = 0, m = 0, var = 0;
            for (int64_t i = 0; i < n; i++)
                sum += exp(from[r * stride + i]), m += from[r * stride + i] / (double)n;
            for (int64_t i = 0; i < n; i++)
                var += (from[r * stride + i] - m) * (from[r * stride + i] - m) / (double)n;
            for (int64_t i = 0; i < stride; i++) {
                int64_t at = r * stride + i;
                double want = i >= n  ? (double)old[at]
                              : layer ? (from[at] - m) / sqrt(var + 1e-3)
                                      : exp(from[at]) / sum;
                if (!(fabs((double)y[at] - want) <= 2e-6 * fabs(want) + 1e-6))
                    fail_msg("n %d, element %d", (int)n, (int)at);
            }
            if (layer)
                assert_true(fabs((double)mean[r] - m) < 1e-6 &&
                            fabs((double)inverse[r] * sqrt(var + 1e-3) - 1) < 1e-5);
        }
        test_free(from);
        test_free(old);
        test_free(a.data);
        test_free(b.data);
    }
}

/* ---- operators on lanes ---- */

typedef void (*lane_function)(double *x, int64_t n);

static void lane_softmax(double *x, int64_t n)
{
    double m = x[0], sum = 0;
    for (int64_t i = 0; i < n; i++) m = fmax(m, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - m);
    for (int64_t i = 0; i < n; i++) x[i] = exp(x[i] - m) / sum;
}
static void lane_log_softmax(double *x, int64_t n)
{
    lane_softmax(x, n);
    for (int64_t i = 0; i < n; i++) x[i] = log(x[i]);
}
static void lane_hardmax(double *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++)
        if (x[i] > x[best]) best = i;
    for (int64_t i = 0; i < n; i++) x[i] = i == best;
}
static void lane_l1(double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += fabs(x[i]);
    for (int64_t i = 0; i < n; i++) x[i] = sum == 0 ? 0 : x[i] / sum;
}
static void lane_l2(double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < n; i++) x[i] = sum == 0 ? 0 : x[i] / sqrt(sum);
}

/* f on all lanes of axes [first, end). */
static double *on_lanes(const ot_nd *a, uint32_t first, uint32_t end, lane_function f)
{
    double *v = fast_doubles(a);
    int64_t n = 1, inner = 1, all = fast_count(a);
    for (uint32_t d = first; d < end; d++) n *= a->dims[d];
    for (uint32_t d = end; d < a->rank; d++) inner *= a->dims[d];
    double *lane = test_malloc((size_t)n * sizeof *lane);
    for (int64_t k = 0; k < all / n; k++) {
        double *at = v + k / inner * n * inner + k % inner;
        for (int64_t i = 0; i < n; i++) lane[i] = at[i * inner];
        f(lane, n);
        for (int64_t i = 0; i < n; i++) at[i * inner] = lane[i];
    }
    test_free(lane);
    return v;
}

static void lanes(void **state)
{
    (void)state;
    const struct {
        const char *op, *more;
        int opset;
        lane_function f;
    } cases[] = {
        {"Softmax", "", 13, lane_softmax},         {"LogSoftmax", "", 13, lane_log_softmax},
        {"Hardmax", "", 13, lane_hardmax},         {"Softmax", "", 11, lane_softmax},
        {"LogSoftmax", "", 11, lane_log_softmax},  {"Hardmax", "", 11, lane_hardmax},
        {"LpNormalization", ", p=1", 13, lane_l1}, {"LpNormalization", ", p=2", 13, lane_l2}};
    for (int round = 0; round < 200; round++) {
        size_t i = (size_t)round % (sizeof cases / sizeof *cases);
        uint32_t rank = 1 + fast_random(4), axis = fast_random(rank);
        bool flat = cases[i].opset < 13;
        char node[200];
        fast_run r = {.in = {lanes_array(rank, axis)}, .n_in = 1, .n_out = 1};
        snprintf(node, sizeof node, "%s(%%a) {axis=%d%s}", cases[i].op,
                 fast_random(2) ? (int)axis : (int)axis - (int)rank, cases[i].more);
        fast_right(&r, cases[i].opset, node, fast_random(2) ? 3 : 1);
        double *want = on_lanes(&r.in[0], axis, flat ? rank : axis + 1, cases[i].f);
        fast_same(&r, 0, rank, r.in[0].dims, want, 3e-6, 2e-7);
        test_free(want);
        fast_close(&r);
    }
}

static void softmax_of_specials(void **state)
{
    (void)state;
    const float inf = INFINITY;
    float rows[5][20];
    for (int i = 0; i < 100; i++) rows[i / 20][i % 20] = fast_number();
    rows[0][3] = rows[0][17] = -inf; /* masked */
    rows[1][19] = inf;
    rows[2][0] = NAN;
    for (int i = 0; i < 20; i++) rows[3][i] = -inf;
    rows[4][7] = 300;
    for (int turned = 0; turned < 2; turned++) {
        float x[100], y[100];
        double sum = 0;
        for (int i = 0; i < 100; i++) x[turned ? i % 20 * 5 + i / 20 : i] = rows[i / 20][i % 20];
        if (turned)
            ot_rows_softmax_columns(y, x, 20, 5, 5, 5);
        else
            ot_rows_softmax(y, x, 5, 20, 20, 20);
        for (int i = 0; i < 20; i++) {
            float got[5];
            for (int r = 0; r < 5; r++) got[r] = turned ? y[i * 5 + r] : y[r * 20 + i];
            assert_true(i == 3 || i == 17 ? got[0] == 0 : got[0] > 0);
            sum += (double)got[0];
            assert_true(isnan(got[1]) && isnan(got[2]) && isnan(got[3]));
            assert_true(got[4] == (i == 7 ? 1.0f : 0.0f));
        }
        assert_true(fabs(sum - 1) < 1e-6);
    }
}

static void cumulative_sums(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        uint32_t rank = 1 + fast_random(4), axis = fast_random(rank);
        bool exclusive = fast_random(2), reverse = fast_random(2);
        int32_t at = (int32_t)axis - (fast_random(2) ? (int32_t)rank : 0);
        char node[200];
        fast_run r = {.in = {lanes_array(rank, axis)}, .n_in = 2, .n_out = 1};
        r.in[1] = fast_array(OT_I32, 0, NULL);
        *(int32_t *)r.in[1].data = at;
        snprintf(node, sizeof node, "CumSum(%%a, %%b) {exclusive=%d, reverse=%d}", exclusive,
                 reverse);
        fast_right(&r, 14, node, fast_random(2) ? 3 : 1);
        double *v = fast_doubles(&r.in[0]), *want = fast_doubles(&r.in[0]);
        int64_t inner = r.in[0].strides[axis], n = r.in[0].dims[axis];
        for (int64_t i = 0; i < fast_count(&r.in[0]); i++) {
            want[i] = 0;
            for (int64_t k = 0, here = i / inner % n; k < n; k++)
                if (reverse ? k > here - !exclusive : k < here + !exclusive)
                    want[i] += v[i + (k - here) * inner];
        }
        fast_same(&r, 0, rank, r.in[0].dims, want, 1e-6, 1e-6);
        test_free(v);
        test_free(want);
        fast_close(&r);
    }
}

/* ---- normalisation ---- */

static void layer_norms(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        uint32_t rank = 1 + fast_random(4), axis = fast_random(rank), n_scale;
        bool rms = round % 4 == 3, with_shift = !rms && fast_random(2);
        fast_run r = {
            .in = {lanes_array(rank, rank - 1)}, .n_in = with_shift ? 3 : 2, .n_out = rms ? 1 : 3};
        int64_t n = 1, rows, *dims = r.in[0].dims, stat_dims[4];
        char node[200];
        for (uint32_t d = axis; d < rank; d++) n *= dims[d];
        n_scale = rank - axis;
        /* far from zero */
        for (int64_t i = 0; round % 5 == 0 && i < fast_count(&r.in[0]); i++)
            ((float *)r.in[0].data)[i] += 1000;
        r.in[1] = fast_array(OT_F32, n_scale, dims + axis);
        if (with_shift) r.in[2] = fast_array(OT_F32, n_scale, dims + axis);
        snprintf(node, sizeof node, "%s(%%a, %%b%s) {axis=%d, epsilon=0.01}",
                 rms ? "RMSNormalization" : "LayerNormalization", with_shift ? ", %c" : "",
                 (int)axis - (fast_random(2) ? (int)rank : 0));
        fast_right(&r, rms ? 23 : 17, node, fast_random(2) ? 3 : 1);
        double *x = fast_doubles(&r.in[0]), *mean, *inverse;
        rows = fast_count(&r.in[0]) / n;
        mean = test_calloc((size_t)rows, sizeof *mean);
        inverse = test_calloc((size_t)rows, sizeof *inverse);
        for (int64_t o = 0; o < rows; o++) {
            double var = 0;
            for (int64_t i = 0; !rms && i < n; i++) mean[o] += x[o * n + i] / (double)n;
            for (int64_t i = 0; i < n; i++)
                var += (x[o * n + i] - mean[o]) * (x[o * n + i] - mean[o]) / (double)n;
            inverse[o] = 1 / sqrt(var + 0.01);
            for (int64_t i = 0; i < n; i++)
                x[o * n + i] = (x[o * n + i] - mean[o]) * inverse[o] *
                                   (double)((float *)r.in[1].data)[i] +
                               (with_shift ? (double)((float *)r.in[2].data)[i] : 0);
        }
        fast_same(&r, 0, rank, dims, x, 1e-5, 2e-6);
        for (uint32_t d = 0; d < rank; d++) stat_dims[d] = d < axis ? dims[d] : 1;
        if (!rms) fast_same(&r, 1, rank, stat_dims, mean, 1e-6, 1e-6);
        if (!rms) fast_same(&r, 2, rank, stat_dims, inverse, 1e-5, 0);
        test_free(x);
        test_free(mean);
        test_free(inverse);
        fast_close(&r);
    }
}

/* The kernel of a node of com.microsoft, which has no reference, in the place of a node with as
 * many inputs and outputs. */
static const char *named_type;
static ot_op_fn named_op;

static ot_status run_named(ot_call *c)
{
    ot_node n = *c->node;
    ot_call inner = *c;
    n.op_type = named_type;
    n.domain = "com.microsoft";
    n.op = OT_OP_OPAQUE;
    inner.node = &n;
    return named_op(&inner);
}

static ot_op_fn find_named(const char *type)
{
    for (const ot_op_named *e = ot_fast_rows_named; e->op_type; e++)
        if (strcmp(e->op_type, type) == 0) return e->run;
    fail_msg("%s is not there", type);
    return NULL;
}

static void skip_layer_norm(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++) {
        bool rms = round % 3 == 2, with_bias = round % 2;
        int64_t batch = 1 + fast_random(3), seq = 1 + fast_random(7), n = 1 + fast_random(60);
        fast_run r = {.n_in = rms ? (with_bias ? 4 : 3) : with_bias ? 5 : 4, .n_out = 4};
        r.in[0] = FAST_ARRAY(OT_F32, batch, seq, n);
        r.in[1] = round % 4 == 0   ? FAST_ARRAY(OT_F32, seq, n)
                  : round % 4 == 1 ? FAST_ARRAY(OT_F32, 1, seq, n)
                                   : FAST_ARRAY(OT_F32, batch, seq, n);
        for (uint32_t k = 2; k < r.n_in; k++) r.in[k] = FAST_ARRAY(OT_F32, n);
        named_type = rms ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization";
        named_op = find_named(named_type);
        const char *stand_in = r.n_in == 3   ? "Attention(%a, %b, %c) {epsilon=0.001}"
                               : r.n_in == 4 ? "Attention(%a, %b, %c, %d) {epsilon=0.001}"
                                             : "Attention(%a, %b, %c, %d, %e) {epsilon=0.001}";
        if (fast_try(&r, 23, stand_in, round % 5 ? 1 : 3, run_named) != OT_OK)
            fail_msg("%s", r.b.d.message);
        const float *skip = r.in[1].data, *gamma = r.in[2].data, *beta = rms ? NULL : r.in[3].data;
        const float *bias = with_bias ? r.in[rms ? 3 : 4].data : NULL;
        double *sum = fast_doubles(&r.in[0]), *y = fast_doubles(&r.in[0]), mean[64], inverse[64];
        int64_t skips = fast_count(&r.in[1]), rows = batch * seq, stats[3] = {batch, seq, 1};
        for (int64_t i = 0; i < rows * n; i++)
            sum[i] += (double)skip[i % skips] + (bias ? (double)bias[i % n] : 0);
        for (int64_t o = 0; o < rows; o++) {
            double var = 0;
            mean[o] = 0;
            for (int64_t i = 0; !rms && i < n; i++) mean[o] += sum[o * n + i] / (double)n;
            for (int64_t i = 0; i < n; i++)
                var += (sum[o * n + i] - mean[o]) * (sum[o * n + i] - mean[o]) / (double)n;
            inverse[o] = 1 / sqrt(var + 0.001);
            for (int64_t i = 0; i < n; i++)
                y[o * n + i] = (sum[o * n + i] - mean[o]) * inverse[o] * (double)gamma[i] +
                               (beta ? (double)beta[i] : 0);
        }
        fast_same(&r, 0, 3, r.in[0].dims, y, 1e-5, 2e-5);
        fast_same(&r, 1, 3, stats, mean, 1e-5, 1e-6);
        fast_same(&r, 2, 3, stats, inverse, 1e-4, 0);
        fast_same(&r, 3, 3, r.in[0].dims, sum, 1e-6, 1e-6);
        test_free(sum);
        test_free(y);
        fast_close(&r);
    }
}

static void gelu_kernels(void **state)
{
    (void)state;
    const char *types[] = {"Gelu", "BiasGelu", "FastGelu", "FastGelu", "QuickGelu"};
    for (int round = 0; round < 20; round++) {
        const int type = round % 5;
        int64_t rows = 1 + fast_random(200), n = 1 + fast_random(300);
        fast_run r = {.n_in = type == 1 || type == 3 ? 2 : 1, .n_out = 1};
        r.in[0] = FAST_ARRAY(OT_F32, rows, n);
        r.in[1] = FAST_ARRAY(OT_F32, n);
        named_type = types[type];
        named_op = find_named(named_type);
        if (fast_try(&r, 14, r.n_in == 2 ? "Add(%a, %b)" : "Relu(%a)", round % 3 ? 1 : 3,
                     run_named) != OT_OK)
            fail_msg("%s", r.b.d.message);
        double *v = fast_doubles(&r.in[0]);
        for (int64_t i = 0; i < rows * n; i++) {
            if (r.n_in == 2) v[i] += (double)((float *)r.in[1].data)[i % n];
            double t = sqrt(2 / 3.14159265358979323846) * (v[i] + 0.044715 * v[i] * v[i] * v[i]);
            if (type == 4)
                v[i] /= 1 + exp(-1.702 * v[i]);
            else
                v[i] = type < 2 ? v[i] / 2 * erfc(-v[i] / sqrt(2)) : v[i] / 2 * (1 + tanh(t));
        }
        fast_same(&r, 0, 2, r.in[0].dims, v, 3e-6, 3e-7);
        test_free(v);
        r.n_in = 2;
        fast_close(&r);
    }
}

/* Against the C library in double. */
static void arcs(void **state)
{
    (void)state;
    const char *nodes[] = {"Asin(%a)", "Acos(%a)", "Atan(%a)"};
    const float special[] = {0, -0.0f, 1, -1, 0.5f, -0.5f, 1e-30f, NAN, 1.5f, -INFINITY, INFINITY};
    enum { SPECIAL = sizeof special / sizeof *special };
    for (int round = 0; round < 9; round++) {
        const int kind = round % 3;
        int64_t n = SPECIAL + (round < 6 ? fast_random(60) : 20000);
        fast_run r = {.in = {FAST_ARRAY(OT_F32, n)}, .n_in = 1, .n_out = 1};
        float *x = r.in[0].data;
        for (int64_t i = 0; i < n; i++) {
            double u = (double)fast_random(1u << 24) / (1 << 23) - 1;
            x[i] = i < SPECIAL ? special[i] : (float)(kind == 2 ? tan(1.57 * u) : u);
        }
        fast_right(&r, 14, nodes[kind], round % 2 ? 3 : 1);
        double *want = fast_doubles(&r.in[0]);
        for (int64_t i = 0; i < n; i++) {
            double v = want[i];
            want[i] = kind == 0 ? asin(v) : kind == 1 ? acos(v) : atan(v);
        }
        fast_same(&r, 0, 1, r.in[0].dims, want, 3e-7, 0);
        const float *y = r.out[0].data;
        if (kind != 1) assert_true(signbit(y[1]) && !signbit(y[0]));
        test_free(want);
        fast_close(&r);
    }
}

/* Instance, group: parts of `group` channels. */
static void channel_norms(void **state)
{
    (void)state;
    for (int round = 0; round < 30; round++) {
        bool instance = round % 3 == 0, by_group = round % 3 == 1; /* scales of version 18 */
        int64_t groups = 1 + fast_random(4), group = instance ? 1 : 1 + fast_random(4),
                channels = groups * group;
        int64_t batch = 1 + fast_random(3), h = 1 + fast_random(12),
                w = 1 + fast_random(round % 4 ? 9 : 90);
        char node[200];
        fast_run r = {.n_in = 3, .n_out = 1};
        r.in[0] = FAST_ARRAY(OT_F32, batch, channels, h, w);
        r.in[1] = FAST_ARRAY(OT_F32, by_group ? groups : channels);
        r.in[2] = FAST_ARRAY(OT_F32, by_group ? groups : channels);
        if (instance)
            snprintf(node, sizeof node, "InstanceNormalization(%%a, %%b, %%c) {epsilon=0.01}");
        else
            snprintf(node, sizeof node,
                     "GroupNormalization(%%a, %%b, %%c) {epsilon=0.01, num_groups=%d}",
                     (int)groups);
        fast_right(&r, by_group ? 18 : 21, node, fast_random(2) ? 3 : 1);
        double *x = fast_doubles(&r.in[0]);
        int64_t len = group * h * w;
        for (int64_t p = 0; p < batch * groups; p++) {
            double mean = 0, var = 0, *v = x + p * len;
            for (int64_t i = 0; i < len; i++) mean += v[i] / (double)len;
            for (int64_t i = 0; i < len; i++) var += (v[i] - mean) * (v[i] - mean) / (double)len;
            for (int64_t i = 0; i < len; i++) {
                int64_t ch = p % groups * group + i / (h * w), of = by_group ? ch / group : ch;
                v[i] = (v[i] - mean) / sqrt(var + 0.01) * (double)((float *)r.in[1].data)[of] +
                       (double)((float *)r.in[2].data)[of];
            }
        }
        fast_same(&r, 0, 4, r.in[0].dims, x, 1e-5, 1e-5);
        test_free(x);
        fast_close(&r);
    }
}

/* Mean and variance of each channel, side by side; means that are large against the deviation. */
static void moments(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        const int64_t channels = 1 + fast_random(5), h = 1 + fast_random(20),
                      w = 1 + fast_random(round % 4 ? 40 : 400), len = h * w;
        const int64_t dims[4] = {2, channels, 1, 2};
        const float center = round % 2 ? 1000.0f : 0.0f;
        fast_run r = {.n_in = 1, .n_out = 1};
        r.in[0] = FAST_ARRAY(OT_F32, 2, channels, h, w);
        for (int64_t i = 0; i < fast_count(&r.in[0]); i++) ((float *)r.in[0].data)[i] += center;
        fast_right(&r, 18, "\"onnx_tile\"::Moments(%a) {axes=[2, 3]}", fast_random(2) ? 3 : 1);
        double *x = fast_doubles(&r.in[0]), want[2 * 5 * 2] = {0};
        for (int64_t p = 0; p < 2 * channels; p++) {
            double *v = x + p * len, *m = want + 2 * p;
            for (int64_t i = 0; i < len; i++) m[0] += v[i] / (double)len;
            for (int64_t i = 0; i < len; i++) m[1] += (v[i] - m[0]) * (v[i] - m[0]) / (double)len;
        }
        fast_same(&r, 0, 4, dims, want, 1e-5, 1e-5);
        test_free(x);
        fast_close(&r);
    }
}

static void mean_variance(void **state)
{
    (void)state;
    const char *axes[] = {"",
                          " {axes=[1]}",
                          " {axes=[0, 2, 3]}",
                          " {axes=[-1]}",
                          " {axes=[1, 3]}",
                          " {axes=[0, 1, 2, 3]}"};
    const unsigned masks[] = {13, 2, 13, 8, 10, 15}; /* bit d: axis d */
    for (int round = 0; round < 24; round++) {
        fast_run r = {.n_in = 1, .n_out = 1};
        char node[100];
        r.in[0] = FAST_ARRAY(OT_F32, 1 + fast_random(4), 1 + fast_random(4), 2 + fast_random(7),
                             2 + fast_random(40));
        snprintf(node, sizeof node, "MeanVarianceNormalization(%%a)%s", axes[round % 6]);
        fast_right(&r, 13, node, fast_random(2) ? 3 : 1);
        double *x = fast_doubles(&r.in[0]), *want = fast_doubles(&r.in[0]);
        const int64_t *d = r.in[0].dims, n = fast_count(&r.in[0]);
        for (int64_t i = 0; i < n; i++) {
            double sum = 0, squares = 0, count = 0;
            for (int64_t j = 0; j < n; j++) {
                bool same = true;
                for (uint32_t k = 0; k < 4; k++)
                    same = same && (masks[round % 6] >> k & 1 ||
                                    i / r.in[0].strides[k] % d[k] == j / r.in[0].strides[k] % d[k]);
                if (same) sum += x[j], squares += x[j] * x[j], count++;
            }
            want[i] = (x[i] - sum / count) /
                      (sqrt(fmax(0, squares / count - sum / count * sum / count)) + 1e-9);
            if (count == 1) want[i] = 0;
        }
        fast_same(&r, 0, 4, d, want, 1e-5, 1e-5);
        test_free(x);
        test_free(want);
        fast_close(&r);
    }
}

static void local_response(void **state)
{
    (void)state;
    const double betas[] = {0.75, 0.5, 1.25};
    for (int round = 0; round < 18; round++) {
        int64_t size = 1 + fast_random(6), channels = 1 + fast_random(9), inner;
        double beta = betas[round % 3];
        char node[200];
        fast_run r = {.n_in = 1, .n_out = 1};
        r.in[0] = FAST_ARRAY(OT_F32, 1 + fast_random(3), channels, 1 + fast_random(9),
                             1 + fast_random(40));
        inner = r.in[0].strides[1];
        snprintf(node, sizeof node, "LRN(%%a) {size=%d, alpha=0.5, beta=%g, bias=2.0}", (int)size,
                 beta);
        fast_right(&r, 13, node, fast_random(2) ? 3 : 1);
        double *x = fast_doubles(&r.in[0]), *want = fast_doubles(&r.in[0]);
        for (int64_t i = 0; i < fast_count(&r.in[0]); i++) {
            double sum = 0;
            for (int64_t k = 0, ch = i / inner % channels; k < channels; k++)
                if (k >= ch - (size - 1) / 2 && k <= ch + size / 2)
                    sum += x[i + (k - ch) * inner] * x[i + (k - ch) * inner];
            want[i] = x[i] / pow(2 + 0.5 / (double)size * sum, beta);
        }
        fast_same(&r, 0, 4, r.in[0].dims, want, 2e-6, 1e-7);
        test_free(x);
        test_free(want);
        fast_close(&r);
    }
}

/* ---- what the reference takes over, and refuses ---- */

static void handed_over(void **state)
{
    (void)state;
    fast_run r = {.in = {FAST_ARRAY(OT_F32, 2, 0, 3)}, .n_in = 1, .n_out = 1};
    fast_right(&r, 13, "Softmax(%a)", 1);
    assert_int_equal(fast_count(&r.out[0]), 0);
    fast_end(&r);
    fast_right(&r, 13, "ReduceSum(%a)", 1);
    assert_true(((float *)r.out[0].data)[0] == 0);
    fast_end(&r);
    assert_int_equal(fast_try(&r, 13, "Softmax(%a) {axis=3}", 1, NULL), OT_E_INPUT);
    fast_end(&r);
    assert_int_equal(fast_try(&r, 13, "ReduceMax(%a) {axes=[1, 1]}", 1, NULL), OT_E_INPUT);
    fast_close(&r);
}

int main(void)
{
    const char *seed = getenv("OT_SEED");
    fast_state = seed ? strtoull(seed, NULL, 10) : 20240718;
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials),
        cmocka_unit_test(gelus),
        cmocka_unit_test(strided_rows),
        cmocka_unit_test(lanes),
        cmocka_unit_test(softmax_of_specials),
        cmocka_unit_test(cumulative_sums),
        cmocka_unit_test(layer_norms),
        cmocka_unit_test(skip_layer_norm),
        cmocka_unit_test(gelu_kernels),
        cmocka_unit_test(arcs),
        cmocka_unit_test(channel_norms),
        cmocka_unit_test(mean_variance),
        cmocka_unit_test(local_response),
        cmocka_unit_test(handed_over),
        cmocka_unit_test(moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
