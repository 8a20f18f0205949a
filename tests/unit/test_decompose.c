/* Normalisations decomposed (src/transform/decompose): which are found, what takes their place,
 * that what no region touches becomes what it was, and that moments of parts add up to those of
 * all of it, in any sizes. Numbers in ONNX Runtime: tests/e2e/decompose.sh.
 */
#include "ir_check.h"

#include "transform/decompose/decompose.h"

#define VECTORS " init %s : float32[8] = random 1\n init %b : float32[8] = random 2\n"
#define GROUPED                                                                           \
    " init %one : float32[4] = random 3\n init %zero : float32[4] = random 4\n"           \
    " init %gamma : float32[8,1,1] = random 5\n init %beta : float32[8,1,1] = random 6\n" \
    " init %to : int64[3] = [0, 4, -1]\n init %back : int64[4] = [1, 8, 16, 12]\n %r = "  \
    "Reshape(%c, %to)\n"                                                                  \
    " %n = InstanceNormalization(%r, %one, %zero) {epsilon=1e-6}\n %u = Reshape(%n, %back)\n"

#define NUMBERS                                                                              \
    " init %one : float32[1] = [1]\n init %two : float32[] = [2]\n init %eps : float32[] = " \
    "[1e-6]\n"                                                                               \
    " init %gamma : float32[8,1,1] = random 5\n init %beta : float32[8,1,1] = random 6\n"
#define MEAN(x, axes)   " %m = ReduceMean(%" x ", %" axes ")\n %d = Sub(%" x ", %m)\n"
#define SPREAD(x, axes) " %v = ReduceMean(%" x ", %" axes ")\n %e = Add(%v, %eps)\n %s = Sqrt(%e)\n"
#define MAPS            " init %hw : int64[2] = [-1, 2]\n"
#define LAYER                                                                                   \
    " init %each : float32[8,16,12] = random 5\n init %map : float32[16,12] = random 6\n init " \
    "%row : float32[12] = random 7\n"
#define WRITTEN NUMBERS MAPS MEAN("c", "hw") " %q = Mul(%d, %d)\n" SPREAD("q", "hw")
#define BY_GROUPS                                                                                 \
    NUMBERS " init %rest : int64[1] = [2]\n init %to : int64[3] = [1, 4, -1]\n %r = Reshape(%c, " \
            "%to)\n"                                                                              \
            " init %back : int64[4] = [1, 8, 16, 12]\n"

static ot_model *model_of(const char *body)
{
    static const char head[] = "model ir 8 opset 18\ngraph g {\n input %x : float32[1,8,16,12]\n "
                               "init %w : float32[8,8,3,3] = random 9\n"
                               " %c = Conv(%x, %w) {kernel_shape=[3,3], pads=[1,1,1,1]}\n";
    char text[4096];
    snprintf(text, sizeof text, "%s%s output %%y\n}\n", head, body);
    ot_model *m = parse(text);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    return m;
}

/* How many normalisations are found, and of how many nodes the first one consists. */
static uint32_t found(const ot_graph *g, ot_norm *first)
{
    uint32_t n = 0;
    for (ot_id k = 0; k < g->n_nodes; k++) {
        ot_norm x;
        if (!ot_decompose_find(g, k, &x)) continue;
        if (n++ == 0) *first = x;
    }
    return n;
}

static void forms_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t nodes; /* 0: it is none */
        int64_t groups;
        bool gamma, beta;
    } CASES[] = {
        {VECTORS " %y = InstanceNormalization(%c, %s, %b)\n", 1, 8, false, false},
        {VECTORS " %y = GroupNormalization(%c, %s, %b) {num_groups=2}\n", 1, 2, false, false},
        {GROUPED " %m = Mul(%u, %gamma)\n %y = Add(%m, %beta)\n", 5, 4, true, true},
        {GROUPED " %m = Mul(%gamma, %u)\n %y = Relu(%m)\n", 4, 4, true, false},
        {GROUPED " %y = Relu(%u)\n", 3, 4, false, false},
        {GROUPED " %y = Mul(%u, %c)\n", 3, 4, false, false}, /* not a number for each channel */
        /* groups are read besides */
        {GROUPED " %m = Relu(%r)\n %q = Reshape(%m, %back)\n %y = Add(%q, %u)\n", 1, 4, false,
         false},
        /* found by itself: below */
        {" %y = LpNormalization(%c)\n", 0, 0, false, false},
        {" %y = MeanVarianceNormalization(%c)\n", 1, 8, false, false},
        {" %y = MeanVarianceNormalization(%c) {axes=[-2, -1]}\n", 1, 8, false, false},
        {" %y = MeanVarianceNormalization(%c) {axes=[0, 1, 2, 3]}\n", 1, 1, false, false},
        {" %y = MeanVarianceNormalization(%c) {axes=[1, 3]}\n", 0, 0, false, false},
        {" init %two : float32[2,1,1,1] = [0, 1]\n %d = Mul(%c, %two)\n %y = "
         "MeanVarianceNormalization(%d)\n",
         0, 0, false, false}, /* over both samples */
        {WRITTEN " %y = Div(%d, %s)\n", 7, 8, false, false},
        {WRITTEN " %n = Div(%d, %s)\n %g = Mul(%n, %gamma)\n %y = Add(%beta, %g)\n", 9, 8, true,
         true},
        {WRITTEN " %i = Reciprocal(%s)\n %y = Mul(%i, %d)\n", 8, 8, false, false},
        {WRITTEN " %i = Div(%one, %s)\n %y = Mul(%d, %i)\n", 8, 8, false, false},
        {NUMBERS MAPS MEAN("c", "hw") " %f = Sub(%c, %m)\n %q = Pow(%f, %two)\n" SPREAD(
             "q", "hw") " %y = Div(%d, %s)\n",
         8, 8, false, false},
        {NUMBERS " init %chw : int64[3] = [1, 2, 3]\n" MEAN(
             "c", "chw") " %q = Mul(%d, %d)\n" SPREAD("q", "chw") " %y = Div(%d, %s)\n",
         7, 1, false, false},
        {BY_GROUPS MEAN("r", "rest") " %q = Mul(%d, %d)\n" SPREAD(
             "q", "rest") " %n = Div(%d, %s)\n %u = Reshape(%n, %back)\n %g = Mul(%u, %gamma)\n %y "
                          "= Add(%g, %beta)\n",
         11, 4, true, true},
        {LAYER " %y = LayerNormalization(%c, %each, %each) {axis=1}\n", 1, 1, false, false},
        {LAYER " %y = LayerNormalization(%c, %map) {axis=-2}\n", 1, 8, false, false},
        {LAYER " %y = LayerNormalization(%c, %row) {axis=3}\n", 0, 0, false, false},
        {LAYER " %y, %m = LayerNormalization(%c, %map) {axis=2}\n output %m\n", 0, 0, false, false},
        {" %h = Cast(%c) {to=10}\n init %s : float16[8] = random 1\n init %b : float16[8] = random "
         "2\n"
         " %y = InstanceNormalization(%h, %s, %b)\n",
         1, 8, false, false},
        /* none of these: a reader besides, another divisor, the wrong power, other axes, E[x^2]
         * - E[x]^2 */
        {WRITTEN " %n = Div(%d, %s)\n %y = Add(%n, %m)\n", 0, 0, false, false},
        {WRITTEN " %n = Div(%d, %s)\n %y = Add(%n, %d)\n", 0, 0, false, false},
        {WRITTEN " %y = Div(%d, %e)\n", 0, 0, false, false},
        {WRITTEN " %y = Div(%s, %d)\n", 0, 0, false, false},
        {NUMBERS MAPS MEAN("c", "hw") " %q = Pow(%d, %one)\n" SPREAD("q",
                                                                     "hw") " %y = Div(%d, %s)\n",
         0, 0, false, false},
        {NUMBERS MAPS " init %w1 : int64[1] = [3]\n" MEAN("c", "hw") " %q = Mul(%d, %d)\n" SPREAD(
             "q", "w1") " %y = Div(%d, %s)\n",
         0, 0, false, false},
        {NUMBERS " init %w1 : int64[1] = [3]\n" MEAN("c", "w1") " %q = Mul(%d, %d)\n" SPREAD(
             "q", "w1") " %y = Div(%d, %s)\n",
         0, 0, false, false},
        {NUMBERS MAPS MEAN("c", "hw") " %q = Mul(%c, %c)\n %p = ReduceMean(%q, %hw)\n %k = Mul(%m, "
                                      "%m)\n %v = Sub(%p, %k)\n"
                                      " %e = Add(%v, %eps)\n %s = Sqrt(%e)\n %y = Div(%d, %s)\n",
         0, 0, false, false},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_model *m = model_of(CASES[k].body);
        ot_norm x = {0};
        uint32_t n = found(m->graph, &x);
        if (n != (CASES[k].nodes > 0)) fail_msg("case %zu: %u found", k, n);
        if (n && (x.n_nodes != CASES[k].nodes || x.groups != CASES[k].groups))
            fail_msg("case %zu: %u nodes", k, x.n_nodes);
        if (n && ((x.gamma != OT_NONE) != CASES[k].gamma || (x.beta != OT_NONE) != CASES[k].beta))
            fail_msg("case %zu: factors", k);
        ot_model_free(m);
    }
}

static void untouched_is_as_it_was(void **state)
{
    (void)state;
    ot_model *m = model_of(GROUPED " %m = Mul(%u, %gamma)\n %y = Add(%m, %beta)\n");
    char *before = print(m->graph);
    uint32_t n;
    assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    char *apart = print(m->graph);
    assert_non_null(strstr(apart, "Moments"));
    assert_null(strstr(apart, "InstanceNormalization"));
    assert_int_equal(ot_recompose(m->graph, false), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    char *after = print(m->graph);
    assert_string_equal(before, after);
    free(before);
    free(apart);
    free(after);
    ot_model_free(m);
}

#define PIXELS " init %flat : int64[3] = [1, 8, -1]\n %r = Reshape(%c, %flat)\n"

/* Softmax over the pixels of a map, in any opset; not over channels, keys, or what is no map. */
static void softmaxes_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool found;
    } CASES[] = {
        {PIXELS " %y = Softmax(%r)\n", true},
        {PIXELS " %y = Softmax(%r) {axis=2}\n", true},
        {PIXELS " %y = Softmax(%r) {axis=1}\n", false},
        {PIXELS " %y = LogSoftmax(%r)\n", false},
        {" %y = Softmax(%c) {axis=1}\n", false},
        {" %y = Softmax(%c)\n", false},
        {PIXELS " %q = Relu(%r)\n %y = Softmax(%q)\n", false},
        {" init %rows : int64[3] = [1, 128, 12]\n %r = Reshape(%c, %rows)\n %y = Softmax(%r)\n",
         false},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_model *m = model_of(CASES[k].body);
        uint32_t n;
        assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        if (n != CASES[k].found) fail_msg("case %zu: %u found", k, n);
        char *apart = print(m->graph);
        assert_int_equal(strstr(apart, "ReduceMax") != NULL, CASES[k].found);
        assert_int_equal(ot_recompose(m->graph, false), OT_OK);
        assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        char *after = print(m->graph);
        assert_null(
            strstr(after, "Exp(")); /* as it was, but for constants, which the rewriting sweeps */
        assert_non_null(strstr(after, "oftmax("));
        free(apart);
        free(after);
        ot_model_free(m);
    }
}

/* LpNormalization along maps, whole again where no region takes a part. */
static void lp_norms_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *body, *reduction; /* NULL: it is not found */
    } CASES[] = {
        {" %y = LpNormalization(%c)\n", "ReduceL2"},
        {" %y = LpNormalization(%c) {axis=2, p=1}\n", "ReduceL1"},
        {PIXELS " %y = LpNormalization(%r) {axis=-1}\n", "ReduceL2"},
        {" %y = LpNormalization(%c) {axis=1}\n", NULL},
        {PIXELS " %y = LpNormalization(%r) {axis=1}\n", NULL},
        {" init %rows : int64[3] = [1, 128, 12]\n %r = Reshape(%c, %rows)\n %y = "
         "LpNormalization(%r)\n",
         NULL},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_model *m = model_of(CASES[k].body);
        uint32_t n;
        assert_int_equal(ot_decompose_norms(m->graph, false, &n), OT_OK);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        if (n != (CASES[k].reduction != NULL)) fail_msg("case %zu: %u found", k, n);
        char *apart = print(m->graph);
        if (n) assert_non_null(strstr(apart, CASES[k].reduction));
        assert_int_equal(ot_recompose(m->graph, false), OT_OK);
        assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        char *after = print(m->graph);
        assert_null(strstr(after, "Sign("));
        assert_non_null(strstr(after, "LpNormalization("));
        free(apart);
        free(after);
        ot_model_free(m);
    }
}

/* A part is gone, as when a region has taken it: the others become operators of the standard. */
static void the_rest_is_standard(void **state)
{
    (void)state;
    ot_model *m = model_of(VECTORS " %y = InstanceNormalization(%c, %s, %b)\n");
    ot_graph *g = m->graph;
    uint32_t n;
    assert_int_equal(ot_decompose_norms(g, true, &n), OT_OK);
    const ot_id last = m->decomposed[0].parts[m->decomposed[0].n_parts - 1];
    const ot_node add = g->nodes[last];
    ot_node_remove(g, last);
    assert_true(ot_node_new(g, &(ot_node_def){.op = "Sum",
                                              .name = "another",
                                              .in = {add.in, 2},
                                              .out = {add.out, 1}}) != OT_NONE);
    assert_int_equal(ot_recompose(g, false), OT_OK);
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    for (ot_id k = 0; k < g->n_nodes; k++)
        assert_true(g->nodes[k].dead || g->nodes[k].domain[0] == 0);
    ot_model_free(m);
}

/* Of many numbers it stays apart, in standard ONNX, unless parts are somebody's own operators. */
static void long_sums_stay_apart(void **state)
{
    (void)state;
    static const struct {
        int side;
        const char *norm;
        bool own, whole;
    } CASES[] = {
        {511, "InstanceNormalization(%x, %s, %b)", false, true},  /* 261121 numbers */
        {513, "InstanceNormalization(%x, %s, %b)", false, false}, /* 263169 */
        {513, "InstanceNormalization(%x, %s, %b)", true, true},   /* the engine's form */
        {513, "MeanVarianceNormalization(%x)", false, false},
        {511, "MeanVarianceNormalization(%x)", false, true},
        /* 263538 of two channels */
        {363, "GroupNormalization(%x, %s, %b) {num_groups=4}", false, false},
        {361, "GroupNormalization(%x, %s, %b) {num_groups=4}", false, true},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char text[500];
        uint32_t n;
        const int vectors = strchr(CASES[k].norm, '4') ? 4 : 8;
        snprintf(text, sizeof text,
                 "model ir 8 opset 18\ngraph g {\n input %%x : float32[1,8,%d,%d]\n init %%s : "
                 "float32[%d] = random 1\n"
                 " init %%b : float32[%d] = random 2\n %%y = %s\n output %%y\n}\n",
                 CASES[k].side, CASES[k].side, vectors, vectors, CASES[k].norm);
        ot_model *m = parse(text);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
        assert_int_equal(n, 1);
        assert_int_equal(ot_recompose(m->graph, CASES[k].own), OT_OK);
        assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        char *after = print(m->graph);
        if ((strstr(after, "Normalization(") != NULL) != CASES[k].whole)
            fail_msg("case %zu: %s", k, after);
        assert_null(strstr(after, "Moments"));
        assert_null(strstr(after, "NormFactors"));
        free(after);
        ot_model_free(m);
    }
}

/* Many numbers are not added up one after another: line by line, then the lines. */
static void long_means_are_of_lines(void **state)
{
    (void)state;
    static const struct {
        int h, w;
        const char *axes;
        size_t means; /* ReduceMeans that are written */
    } CASES[] = {{64, 64, "2, 3", 2},
                 {64, 65, "2, 3", 3},
                 {2, 5000, "2, 3", 3},
                 {2, 5000, "3", 1},
                 {5, 900, "1, 2, 3", 3}};
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char text[300];
        snprintf(text, sizeof text,
                 "model ir 8 opset 18\ngraph g {\n input %%x : float32[1,2,%d,%d]\n %%y = "
                 "\"onnx_tile\"::Moments(%%x) {axes=[%s]}\n"
                 " %%m = Identity(%%y)\n output %%m\n}\n",
                 CASES[k].h, CASES[k].w, CASES[k].axes);
        ot_model *m = parse(text);
        ot_graph *g = m->graph;
        assert_int_equal(ot_infer_shapes(g, NULL, 0), OT_OK);
        const ot_node n = g->nodes[0];
        size_t n_axes, written = 0, squares = 0;
        const int64_t *axes = ot_attr_ints(&n, "axes", &n_axes);
        ot_id out = n.out[0];
        ot_node_remove(g, 0);
        assert_int_equal(ot_moments_write(g, "m", n.in[0], axes, n_axes, &out), OT_OK);
        assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_int_equal(ot_verify(g), OT_OK);
        for (ot_id i = 0; i < g->n_nodes; i++) {
            if (g->nodes[i].dead) continue;
            written += g->nodes[i].op == OT_OP_ReduceMean;
            squares += g->nodes[i].op == OT_OP_ReduceSumSquare;
        }
        if (written != CASES[k].means || squares != (k > 0))
            fail_msg("case %zu: %zu means, %zu sums", k, written, squares);
        ot_model_free(m);
    }
}

/* The formula, on parts of random sizes around a mean that is large against the deviation. */
static void parts_add_up(void **state)
{
    (void)state;
    enum { N = 4096 };
    static double x[N];
    uint32_t seed = 20261122;
    for (int round = 0; round < 50; round++) {
        double center = (double)(rng_next(&seed) % 1000000), mean = 0, variance = 0, sum = 0,
               square = 0;
        int at = 0, parts = 0;
        static double n[N], means[N], variances[N];
        for (int k = 0; k < N; k++) x[k] = center + (double)(rng_next(&seed) % 1000) / 1000;
        for (int k = 0; k < N; k++) sum += x[k] - center;
        for (int k = 0; k < N; k++) square += (x[k] - center - sum / N) * (x[k] - center - sum / N);
        while (at < N) {
            int len = (int)ot_min(N - at, 1 + (int64_t)(rng_next(&seed) % 700));
            means[parts] = variances[parts] = 0;
            for (int k = 0; k < len; k++) means[parts] += x[at + k] / len;
            for (int k = 0; k < len; k++)
                variances[parts] += (x[at + k] - means[parts]) * (x[at + k] - means[parts]) / len;
            n[parts++] = len;
            at += len;
        }
        for (int k = 0; k < parts; k++) mean += n[k] / N * means[k];
        for (int k = 0; k < parts; k++)
            variance += n[k] / N * (variances[k] + (means[k] - mean) * (means[k] - mean));
        assert_true(fabs(mean - (center + sum / N)) <= 1e-12 * (center + 1));
        assert_true(fabs(variance - square / N) <= 1e-9 * (square / N));
    }
}

/* Files may hold the operator, too: only as it is written here. */
static void strange_moments_are_refused(void **state)
{
    (void)state;
    static const char *const AXES[] = {"{axes=[-1]}",  "{axes=[3, 2]}",          "{axes=[1, 3]}",
                                       "{axes=[2]}",   "{axes=[0, 1, 2, 3, 4]}", "",
                                       "{axes=[2, 3]}"};
    for (size_t k = 0; k < sizeof AXES / sizeof *AXES; k++) {
        char text[300];
        snprintf(text, sizeof text,
                 "model ir 8 opset 18\ngraph g {\n input %%x : float32[1,8,6,4]\n %%y = "
                 "\"onnx_tile\"::Moments(%%x) %s\n output %%y\n}\n",
                 AXES[k]);
        ot_model *m = parse(text);
        const bool good = k + 1 == sizeof AXES / sizeof *AXES;
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), good ? OT_OK : OT_E_INPUT);
        ot_model_free(m);
    }
}

#define NORM   " %n = InstanceNormalization(%c, %s, %b)\n"
#define PADDED " init %pads : int64[8] = [0, 0, 1, 1, 0, 0, 1, 1]\n"
#define SMALLER                                                                                \
    " init %w3 : float32[3,8,1,1] = random 3\n init %w8 : float32[8,3,3,3] = random 4\n %r = " \
    "Conv(%x, %w3)\n"

/* What is found to be rematerialised: by which nodes, and what need not be kept then. */
static void cheap_values_are_made_twice(void **state)
{
    (void)state;
    enum { CHANNEL = 16 * 12 * 4 };
    static const struct {
        const char *body;
        uint32_t nodes; /* 0: it is not */
        int64_t bytes;
    } CASES[] = {
        /* of the graph's input, which the caller keeps */
        {VECTORS NORM " %y = Relu(%n)\n", 1, 8 * CHANNEL},
        {VECTORS NORM " %y = Relu(%n)\n output %c\n", 0, 0}, /* x is a result itself, */
        {VECTORS NORM " %y = Add(%n, %c)\n", 0, 0},          /* or added later */
        {VECTORS SMALLER " %d = Conv(%r, %w8) {pads=[1,1,1,1]}\n %n = InstanceNormalization(%d, "
                         "%s, %b)\n %y = Relu(%n)\n",
         1, 5 * CHANNEL}, /* one product; 3 channels are kept */
        {VECTORS SMALLER " %q = Relu(%r)\n %d = Conv(%q, %w8) {pads=[1,1,1,1]}\n %n = "
                         "InstanceNormalization(%d, %s, %b)\n"
                         " %y = Relu(%n)\n",
         /* from the activation on, or before it: the same is kept, and less is computed */
         1, 5 * CHANNEL},
        {VECTORS PADDED " %p = Pad(%x, %pads) {mode=\"reflect\"}\n %d = Conv(%p, %w)\n %n = "
                        "InstanceNormalization(%d, %s, %b)\n"
                        " %y = Relu(%n)\n",
         2, 8 * CHANNEL},
        {VECTORS " %d = Conv(%c, %w) {pads=[1,1,1,1]}\n %n = InstanceNormalization(%d, %s, %b)\n "
                 "%y = Relu(%n)\n",
         0, 0}, /* of as many numbers, which had to be kept */
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_model *m = model_of(CASES[k].body);
        ot_remat_norm found;
        uint32_t n, first = 0;
        char *before = print(m->graph);
        assert_int_equal(ot_decompose_norms(m->graph, true, &n), OT_OK);
        const uint32_t again = ot_rematerialise_find_norms(m->graph, &found, 1);
        if (again != (CASES[k].nodes > 0) || (again && found.bytes != CASES[k].bytes))
            fail_msg("case %zu", k);
        assert_int_equal(ot_rematerialise_norms(m->graph, &first, 1), OT_OK);
        if (m->decomposed[0].n_again != CASES[k].nodes)
            fail_msg("case %zu: %u nodes", k, m->decomposed[0].n_again);
        assert_int_equal(ot_verify(m->graph), OT_OK);
        assert_int_equal(ot_rematerialise_find_norms(m->graph, &found, 1), 0);
        assert_int_equal(ot_recompose(m->graph, false), OT_OK);
        assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        char *after = print(m->graph);
        assert_string_equal(before, after); /* no region has taken a part: once will do */
        free(before);
        free(after);
        ot_model_free(m);
    }
}

/* Statistics read what was there, all else what is made again, right behind the statistics. */
static void twice_in_order(void **state)
{
    (void)state;
    ot_model *m = model_of(VECTORS NORM " %y = Relu(%n)\n");
    ot_graph *g = m->graph;
    uint32_t n, first = 0;
    assert_int_equal(ot_decompose_norms(g, true, &n), OT_OK);
    assert_int_equal(ot_rematerialise_norms(g, &first, 1), OT_OK);
    static const char *const ORDER[] = {"Conv", "Moments", "NormFactors", "Conv",
                                        "Mul",  "Add",     "Relu"};
    assert_int_equal(g->n_order, sizeof ORDER / sizeof *ORDER);
    for (uint32_t k = 0; k < g->n_order; k++)
        assert_string_equal(g->nodes[g->order[k]].op_type, ORDER[k]);
    assert_int_equal(g->nodes[g->order[1]].in[0], g->nodes[g->order[0]].out[0]);
    assert_int_equal(g->nodes[g->order[4]].in[0], g->nodes[g->order[3]].out[0]);
    /* the statistics are in a region, and what made x with them: nothing is undone */
    ot_node_remove(g, g->order[0]);
    const ot_node moments = g->nodes[m->decomposed[0].parts[0]];
    ot_node_remove(g, m->decomposed[0].parts[0]);
    const ot_id x = ot_value_find(g, "x");
    assert_true(ot_node_new(g, &(ot_node_def){.op = "Moments",
                                              .domain = OT_TILE_DOMAIN,
                                              .name = "another",
                                              .in = {&x, 1},
                                              .out = {moments.out, 1},
                                              .attrs = {moments.attrs, moments.n_attrs}}) !=
                OT_NONE);
    assert_int_equal(ot_recompose(g, true), OT_OK);
    assert_false(g->nodes[m->decomposed[0].again[0]].dead);
    ot_model_free(m);
}

#define AROUND(to, back)                                                                    \
    " init %one : float32[4] = random 3\n init %zero : float32[4] = random 4\n init %to : " \
    "int64[3] = " to "\n %r = Reshape(%c, %to)\n"                                           \
    " %n = InstanceNormalization(%r, %one, %zero)\n" back " %y = Reshape(%n, %back)\n"

/* Of what looks like a normalisation at one size, what is one at all: the others would be wrong,
 * or refused, at another. */
static void found_where_extents_are_free(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t n;
    } CASES[] = {
        {VECTORS " %y = InstanceNormalization(%c, %s, %b)\n", 1},
        {MAPS NUMBERS MEAN("c", "hw") " %q = Mul(%d, %d)\n" SPREAD("q", "hw") " %y = Div(%d, %s)\n",
         1},
        {AROUND("[0, 4, -1]", " %back = Shape(%c)\n"), 1},
        {AROUND("[1, 4, -1]", " %back = Shape(%c)\n"), 0},                       /* of one sample */
        {AROUND("[0, 4, 384]", " init %back : int64[4] = [1, 8, 16, 12]\n"), 0}, /* of one size */
        {AROUND("[0, 4, -1]", " %all = Shape(%x)\n %back = Add(%all, %none)\n init %none : "
                              "int64[4] = [0, 0, 0, 0]\n"),
         0},                                                              /* of something else */
        {" %y = MeanVarianceNormalization(%c) {axes=[0, 1, 2, 3]}\n", 0}, /* of all samples */
        /* whose weights fix the size */
        {LAYER " %y = LayerNormalization(%c, %each) {axis=1}\n", 0},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        static const int64_t dims[] = {1, 8, 16, 12};
        const ot_shape_binding at = {"x", 4, dims, false, "--design"};
        char text[4096];
        ot_model *planned;
        ot_norm *norms;
        uint32_t n;
        snprintf(text, sizeof text,
                 "model ir 8 opset 18\ngraph g {\n input %%x : float32[?,8,?,?]\n init %%w : "
                 "float32[8,8,3,3] = random 9\n"
                 " %%c = Conv(%%x, %%w) {kernel_shape=[3,3], pads=[1,1,1,1]}\n%s output %%y\n}\n",
                 CASES[k].body);
        ot_model *file = parse(text);
        assert_int_equal(ot_model_clone(file, &planned), OT_OK);
        assert_int_equal(ot_infer_shapes(planned->graph, &at, 1), OT_OK);
        assert_int_equal(ot_infer_shapes(file->graph, NULL, 0), OT_OK);
        assert_int_equal(ot_assure(planned->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_int_equal(ot_assure(file->graph, OT_P_ORDER | OT_P_USES), OT_OK);
        assert_int_equal(
            ot_decompose_find_dynamic(planned->graph, file->graph, file->arena, &norms, &n), OT_OK);
        if (n != CASES[k].n) fail_msg("%u found in %s", n, text);
        assert_int_equal(ot_decompose_these(file->graph, norms, n), OT_OK);
        assert_int_equal(file->n_decomposed, n);
        assert_int_equal(ot_infer_shapes(planned->graph, &at, 1), OT_OK);
        /* in parts, it is as long as it was */
        assert_int_equal(ot_infer_shapes(file->graph, &at, 1), OT_OK);
        const ot_value *y = &file->graph->values[file->graph->outputs[0]];
        assert_memory_equal(y->dims, dims, sizeof dims);
        ot_model_free(planned);
        ot_model_free(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_are_found),
        cmocka_unit_test(found_where_extents_are_free),
        cmocka_unit_test(softmaxes_are_found),
        cmocka_unit_test(untouched_is_as_it_was),
        cmocka_unit_test(the_rest_is_standard),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(strange_moments_are_refused),
        cmocka_unit_test(long_sums_stay_apart),
        cmocka_unit_test(long_means_are_of_lines),
        cmocka_unit_test(cheap_values_are_made_twice),
        cmocka_unit_test(twice_in_order),
        cmocka_unit_test(lp_norms_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
