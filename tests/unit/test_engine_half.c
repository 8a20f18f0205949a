/* Numbers of 16 bits: conversions, and fast kernels on float16 and bfloat16 against reference
 * kernels on the same arrays. The reference rounds after every operator, fused steps at their
 * end, so what is compared is the normalised squared error. */
#include "engine_graphs.h"

#include "base/half_float.h"
#include "engine/core/half.h"

static const ot_dtype half_types[] = {OT_F16, OT_BF16};
static const char *const half_names[] = {"float16", "bfloat16"};
/* Of squared errors: some roundings in a row. */
static const double half_bounds[] = {2e-5, 1.3e-3};

static float half_value(ot_dtype t, uint16_t h)
{
    return t == OT_F16 ? ot_f16_to_f32(h) : ot_bf16_to_f32(h);
}
static uint16_t half_of(ot_dtype t, float f)
{
    return t == OT_F16 ? ot_f32_to_f16(f) : ot_f32_to_bf16(f);
}

/* ---- conversions ---- */

static bool same_bits(float a, float b)
{
    return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof a);
}

static void every_number_is_widened(void **state)
{
    (void)state;
    static uint16_t from[65536];
    static float to[65536];
    for (uint32_t h = 0; h < 65536; h++) from[h] = (uint16_t)h;
    for (uint32_t k = 0; k < 2; k++)
        for (int64_t n = 65536, at = 0; at < 40;
             at++, n = 65536 - 7 * at) { /* ends of all lengths */
            ot_half_widen(half_types[k], to, from + at, n - at);
            for (int64_t i = at ? n - at - 40 : 0; i < n - at; i++)
                if (!same_bits(to[i], half_value(half_types[k], from[at + i])))
                    fail_msg("%s %04x: %g", half_names[k], from[at + i], (double)to[i]);
        }
}

static void numbers_are_rounded_to_nearest_even(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    static float from[N];
    static uint16_t to[N];
    for (uint32_t k = 0; k < 2; k++) {
        ot_dtype t = half_types[k];
        uint64_t random = 99;
        /* a number of 16 bits, the middle to the next, one bit to either side; or any float */
        for (uint32_t i = 0; i < N; i++) {
            uint32_t bits;
            float low = half_value(t, (uint16_t)i), high = half_value(t, (uint16_t)(i + 1));
            random = random * 6364136223846793005u + 1442695040888963407u;
            bits = (uint32_t)(random >> 32);
            memcpy(&from[i], &bits, sizeof bits);
            if (i % 4 == 0) from[i] = low;
            if (i % 4 == 1) from[i] = low / 2 + high / 2;
            if (i % 4 == 2)
                from[i] = nextafterf(low / 2 + high / 2, i % 8 == 2 ? INFINITY : -INFINITY);
        }
        for (int64_t n = N; n > N - 40; n--) {
            ot_half_narrow(t, to, from, n);
            for (int64_t i = n == N ? 0 : n - 40; i < n; i++) {
                uint16_t want = half_of(t, from[i]);
                if (to[i] != want && !(isnan(from[i]) && isnan(half_value(t, to[i]))))
                    fail_msg("%s of %.9g: %04x, not %04x", half_names[k], (double)from[i], to[i],
                             want);
            }
        }
    }
}

static void boxes_keep_to_their_place(void **state)
{
    (void)state;
    enum { N = 3 * 8 * 9 };
    static const int64_t dims[] = {3, 5, 7}, dense[] = {35, 7, 1}, holes[] = {72, 9, 1};
    uint16_t from[N], back[N];
    float wide[105];
    for (int i = 0; i < N; i++) {
        from[i] = half_of(OT_F16, (float)i);
        back[i] = 0xffff;
    }
    ot_half_widen_box(OT_F16, 3, dims, wide, dense, from, holes);
    for (int i = 0; i < 105; i++)
        assert_true(wide[i] == (float)(i / 35 * 72 + i / 7 % 5 * 9 + i % 7));
    ot_half_narrow_box(OT_F16, 3, dims, back, holes, wide, dense);
    for (int i = 0; i < N; i++) {
        bool inside = i % 72 / 9 < 5 && i % 9 < 7;
        assert_int_equal(back[i], inside ? from[i] : 0xffff);
    }
}

/* ---- networks ---- */

/* The graph with every float32 of another type. */
static void retype(const char *text, const char *name, char *out, size_t size)
{
    size_t at = 0;
    for (const char *from = text; *from;) {
        bool here = strncmp(from, "float32", 7) == 0;
        at += (size_t)snprintf(out + at, size - at, "%.*s", here ? (int)strlen(name) : 1,
                               here ? name : from);
        if (at >= size) fail_msg("a test graph is too long");
        from += here ? 7 : 1;
    }
}

typedef struct half_run {
    ot_diag d;
    ot_model *m;
    ot_session *s;
    ot_nd out[GRAPH_OUTPUTS];
} half_run;

static void half_open(half_run *r, const char *text, ot_session_options o, const ot_nd *in)
{
    memset(r, 0, sizeof *r);
    r->m = text_model(text, &r->d);
    if (ot_session_new(r->m, &o, &r->d, &r->s) != OT_OK ||
        ot_session_run(r->s, in, r->out, &r->d) != OT_OK)
        fail_msg("%s\n%s", r->d.message, text);
}

static void half_close(half_run *r)
{
    ot_session_free(r->s);
    ot_model_free(r->m);
}

/* Sum of squared differences by the sum of squares; infinite when NaN and infinity are elsewhere.
 */
static double half_error(const ot_nd *want, const ot_nd *got)
{
    int64_t n = 0;
    double off = 0, all = 1e-30;
    if (!ot_nd_same_shape(want, got->dtype, got->rank, got->dims) || !ot_nd_elems(want, &n))
        return INFINITY;
    for (int64_t k = 0; k < n; k++) {
        double a = ot_nd_double(want, k), b = ot_nd_double(got, k);
        if (isnan(a) != isnan(b) || (isinf(a) && a != b)) return INFINITY;
        if (isnan(a) || isinf(a)) continue;
        off += (a - b) * (a - b);
        all += a * a;
    }
    return off / all;
}

/* A graph in float32 as text, run as either type by reference and by fast kernels. in: [n_in]
 * float32, converted. */
static void check_text(const char *text, const ot_nd *in, uint32_t n_in, const char *what)
{
    static char half[GRAPH_TEXT];
    for (uint32_t k = 0; k < 2; k++) {
        ot_nd own[4] = {{0}};
        half_run ref, fast;
        retype(text, half_names[k], half, sizeof half);
        for (uint32_t j = 0; j < n_in; j++) {
            int64_t n;
            own[j] = in[j];
            if (in[j].dtype != OT_F32) continue;
            assert_true(ot_nd_elems(&in[j], &n));
            own[j].dtype = half_types[k];
            own[j].data = malloc((size_t)n * sizeof(uint16_t) + 1);
            for (int64_t i = 0; i < n; i++)
                ((uint16_t *)own[j].data)[i] = half_of(half_types[k],
                                                       ((const float *)in[j].data)[i]);
        }
        half_open(&ref, half, (ot_session_options){.reference = true}, own);
        for (uint32_t threads = 1; threads < 4; threads += 2) {
            half_open(&fast, half, (ot_session_options){.threads = threads, .poison = true}, own);
            for (uint32_t j = 0; j < ot_session_outputs(fast.s); j++) {
                double e = half_error(&ref.out[j], &fast.out[j]);
                if (!(e <= half_bounds[k]))
                    fail_msg("%s, %u threads: output %u has error %.2e\n%s", what, threads, j, e,
                             half);
            }
            half_close(&fast);
        }
        half_close(&ref);
        for (uint32_t j = 0; j < n_in; j++)
            if (in[j].dtype == OT_F32) free(own[j].data);
    }
}

static void random_networks(void **state)
{
    (void)state;
    const char *one = getenv("OT_SEED"), *many = getenv("OT_SEEDS");
    unsigned first = one ? (unsigned)atoi(one) : 1, n = many ? (unsigned)atoi(many) : one ? 1 : 100;
    print_message("seeds %u to %u\n", first, first + n - 1);
    for (unsigned seed = first; seed < first + n; seed++) {
        static graph g;
        char what[60];
        bool cond = seed % 2;
        graph_make(&g, seed, false);
        float *x = malloc((size_t)(g.v[0].d[0] * g.v[0].d[1] * g.v[0].d[2] * g.v[0].d[3]) *
                          sizeof *x);
        assert_non_null(x);
        graph_input(&g, x, seed);
        ot_nd in[2] = {over(OT_BOOL, &cond, 0, NULL), over(OT_F32, x, 4, g.v[0].d)};
        snprintf(what, sizeof what, "seed %u", seed);
        check_text(g.text, in, 2, what);
        free(x);
    }
}

/* ---- one operator each ---- */

/* Random numbers in [-2, 2]. */
static ot_nd random_array(uint64_t seed, uint32_t rank, const int64_t *dims)
{
    ot_nd a = {0};
    int64_t n;
    ot_nd_set_dense(&a, OT_F32, rank, dims);
    assert_true(ot_nd_elems(&a, &n));
    a.data = malloc((size_t)n * sizeof(float) + 1);
    assert_non_null(a.data);
    for (int64_t k = 0; k < n; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ((float *)a.data)[k] = (float)((seed >> 33) % 4001) / 1000.0f - 2.0f;
    }
    return a;
}

/* Large enough for several strips of rows, the last one shorter. */
static void convolutions_in_strips(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "input %x : float32[1,32,41,250]\ninit %w : float32[16,32,3,3] = random 3 * 0.05\ninit %b "
        ": float32[16] = random 4\n"
        "%y = Conv(%x, %w, %b) {pads=[1, 1, 1, 1]}\n%z = Relu(%y)\noutput %z\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[16,32,3,2] = random 3 * 0.05\n"
        "%y = Conv(%x, %w) {strides=[2, 3], pads=[2, 1, 0, 1]}\n%z = HardSwish(%y)\noutput %z\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[32,1,5,5] = random 3 * 0.2\n"
        "%y = Conv(%x, %w) {group=32, strides=[2, 2], pads=[2, 2, 2, 2]}\n%z = Sigmoid(%y)\noutput "
        "%z\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[32,32,1,1] = random 3 * 0.1\n"
        "%y = Conv(%x, %w)\n%s = Add(%y, %x)\n%z = Relu(%s)\n%v = Neg(%x)\noutput %z\noutput %v\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[32,1,3,3] = random 3 * 0.3\n"
        "%a = Neg(%x)\n%y = Conv(%a, %w) {group=32, pads=[1, 1, 1, 1]}\n%s = Add(%a, %y)\n%z = "
        "Relu(%s)\noutput %z\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[32,8,2,2] = random 3 * 0.1\n"
        "%y = ConvTranspose(%x, %w) {strides=[2, 2]}\n%z = Sigmoid(%y)\noutput %z\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[32,8,5,3] = random 3 * 0.1\n"
        "%y = ConvTranspose(%x, %w) {strides=[2, 1], pads=[2, 1, 1, 0], output_padding=[1, "
        "0]}\noutput %y\n",
        "input %x : float32[1,32,41,250]\ninit %w : float32[32,3,4,4] = random 3 * 0.1\n"
        "%y = ConvTranspose(%x, %w) {strides=[3, 2], pads=[0, 3, 3, 1]}\noutput %y\n",
    };
    ot_nd x = random_array(7, 4, (int64_t[]){1, 32, 41, 250});
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++)
        check_text(graphs[k], &x, 1, "strips");
    free(x.data);
}

static void convolutions_along_one_and_three_axes(void **state)
{
    (void)state;
    ot_nd line = random_array(8, 3, (int64_t[]){2, 24, 9001}),
          block = random_array(9, 5, (int64_t[]){1, 6, 19, 40, 41});
    check_text("input %x : float32[2,24,9001]\ninit %w : float32[8,24,7] = random 3 * 0.1\n"
               "%y = Conv(%x, %w) {strides=[2], pads=[3, 2]}\n%z = LeakyRelu(%y)\noutput %z\n",
               &line, 1, "one axis");
    check_text("input %x : float32[1,6,19,40,41]\ninit %w : float32[6,6,3,1,3] = random 3 * 0.2\n"
               "%y = Conv(%x, %w) {pads=[1, 0, 1, 1, 0, 1]}\n%s = Add(%x, %y)\noutput %s\n",
               &block, 1, "three axes");
    free(line.data);
    free(block.data);
}

/* Elements are picked, or blended; Casts around the former go. */
static void resizes(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "%y = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n%z = Resize(%y, _, _, %s) "
        "{mode=\"linear\"}\noutput %z\n",
        "%z = Resize(%x, _, _, %s) {mode=\"cubic\", "
        "coordinate_transformation_mode=\"align_corners\"}\noutput %z\n",
        "%z = Resize(%x, _, _, %r) {mode=\"linear\", "
        "coordinate_transformation_mode=\"asymmetric\"}\noutput %z\n",
        "%y = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n%z = Resize(%y, _, _, %s) "
        "{mode=\"nearest\"}\noutput %z\n",
        "%c = Cast(%x) {to=1}\n%z = Resize(%c, _, _, %s) {mode=\"nearest\"}\n%d = CastLike(%z, "
        "%x)\noutput %d\n",
        ("%y = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n%c = Cast(%y) {to=1}\n%z = Resize(%c, _, _, %r) "
         "{mode=\"nearest\"}\n"
         "%d = Cast(%z) {to=10}\n%e = Cast(%d) {to=1}\noutput %e\n"),
        "%c = Cast(%x) {to=1}\n%z = Resize(%c, _, _, %s) {mode=\"nearest\"}\n%d = Cast(%z) "
        "{to=10}\n%e = Neg(%c)\noutput %d\noutput %e\n",
    };
    char text[1000];
    ot_nd x = random_array(11, 4, (int64_t[]){1, 19, 23, 17});
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        snprintf(text, sizeof text,
                 "input %%x : float32[1,19,23,17]\ninit %%w : float32[19,19,3,3] = random 3 * "
                 "0.1\ninit %%s : int64[4] = [1, 19, 46, 34]\n"
                 "init %%r : int64[4] = [1, 19, 23, 50]\n%s",
                 graphs[k]);
        check_text(text, &x, 1, "resize");
    }
    free(x.data);
}

/* Constant and given operands, few rows and many, batches, either way round. */
static void products(void **state)
{
    (void)state;
    static const struct {
        int64_t a[4], b[4];
        uint32_t ra, rb;
        const char *make;
    } cases[] = {
        {{70, 33}, {33, 50}, 2, 2, "%y = MatMul(%x, %z)\n"},
        {{2, 3, 37, 21}, {2, 3, 21, 19}, 4, 4, "%y = MatMul(%x, %z)\n"},
        {{2, 3, 37, 21}, {1, 3, 21, 1}, 4, 4, "%y = MatMul(%x, %z)\n"},
        {{3, 1, 1, 21}, {21, 130}, 4, 2, "%y = MatMul(%x, %z)\n"},
        {{21}, {4, 21, 9}, 1, 3, "%y = MatMul(%x, %z)\n"},
        {{5, 7, 21}, {21}, 3, 1, "%y = MatMul(%x, %z)\n"},
        {{1, 300}, {300, 77}, 2, 2, "%y = MatMul(%x, %z)\n"},
        {{300, 65},
         {40, 300},
         2,
         2,
         "init %c : float32[40] = random 5\n%y = Gemm(%x, %z, %c) {transA=1, transB=1, alpha=0.5, "
         "beta=2.0}\n"},
        {{65, 300}, {300, 40}, 2, 2, "init %c : float32[65,1] = random 5\n%y = Gemm(%x, %z, %c)\n"},
        {{900, 128}, {16, 128}, 2, 2, "%y = Gemm(%x, %z) {transB=1}\n"},
        {{2, 40, 96},
         {2, 33, 33},
         3,
         3,
         "init %c : float32[96,45] = random 5 * 0.1\ninit %d : float32[] = [0.3]\n"
         "%y = MatMul(%x, %c)\n%q = MatMul(%z, %z)\n%r = Mul(%q, %d)\noutput %r\n"},
        {{1, 96},
         {2, 33, 33},
         2,
         3,
         "init %c : float32[96,45] = random 5 * 0.1\n%y = MatMul(%x, %c)\n%r = Neg(%z)\noutput "
         "%r\n"},
        {{33, 96},
         {2, 33, 33},
         2,
         3,
         "init %c : float32[45,96] = random 5 * 0.1\n%y = Gemm(%x, %c) {transB=1}\n%r = "
         "Neg(%z)\noutput %r\n"},
        {{9, 96},
         {2, 33, 33},
         2,
         3,
         "init %n : int64[2] = [45, 96]\n%c = ConstantOfShape(%n)\ninit %f : float32[] = [0.1]\n"
         "%d = CastLike(%c, %x)\n%e = Add(%d, %f)\n%y = Gemm(%x, %e) {transB=1}\n%r = "
         "Neg(%z)\noutput %r\n"},
        {{700, 96},
         {2, 33, 33},
         2,
         3,
         "init %c : float32[96,33] = random 5 * 0.1\n%y = MatMul(%x, %c)\n%r = Neg(%z)\noutput "
         "%r\n"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1000], dims[2][60] = {"", ""};
        ot_nd in[] = {random_array(k, cases[k].ra, cases[k].a),
                      random_array(k + 50, cases[k].rb, cases[k].b)};
        for (uint32_t j = 0; j < 2; j++)
            for (uint32_t a = 0; a < in[j].rank; a++)
                snprintf(dims[j] + strlen(dims[j]), sizeof dims[j] - strlen(dims[j]), "%s%lld",
                         a ? "," : "", (long long)in[j].dims[a]);
        snprintf(text, sizeof text,
                 "input %%x : float32[%s]\ninput %%z : float32[%s]\n%soutput %%y\n", dims[0],
                 dims[1], cases[k].make);
        check_text(text, in, 2, "product");
        free(in[0].data);
        free(in[1].data);
    }
}

/* Masks that repeat, operands by way of Transposes, more keys than a chunk; queries that see
 * nothing are NaN. */
static void attentions(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "%k = Transpose(%x) {perm=[0, 1, 3, 2]}\n%s = MatMul(%x, %k)\n%m = Add(%s, %z)\n%p = "
        "Softmax(%m) {axis=-1}\n"
        "%y = MatMul(%p, %x)\noutput %y\n",
        "%a = Reshape(%x, %d)\n%q = Transpose(%a) {perm=[0, 2, 1, 3]}\n%k = Transpose(%a) "
        "{perm=[0, 2, 3, 1]}\n"
        "%v = Transpose(%a) {perm=[0, 2, 1, 3]}\n%s = MatMul(%q, %k)\n%t = Div(%s, %c)\n%p = "
        "Softmax(%t) {axis=-1}\n"
        "%o = MatMul(%p, %v)\n%y = Transpose(%o) {perm=[0, 2, 1, 3]}\noutput %y\n%n = "
        "Neg(%z)\noutput %n\n",
    };
    char text[1500];
    ot_nd x = random_array(21, 4, (int64_t[]){1, 3, 300, 20}),
          masks[] = {random_array(22, 4, (int64_t[]){1, 1, 1, 300}),
                     random_array(23, 4, (int64_t[]){1, 3, 300, 300}),
                     random_array(24, 4, (int64_t[]){1, 1, 300, 1})};
    ((float *)masks[1].data)[5] = -INFINITY;
    for (int64_t i = 0; i < 300; i++) ((float *)masks[1].data)[900 + i] = -INFINITY;
    for (size_t k = 0; k < 4; k++) {
        const ot_nd *m = &masks[k % 3];
        ot_nd in[] = {x, *m};
        snprintf(text, sizeof text,
                 "input %%x : float32[1,3,300,20]\ninput %%z : float32[1,%lld,%lld,%lld]\ninit %%c "
                 ": float32[] = [4.0]\n"
                 "init %%d : int64[4] = [1, 300, 3, 20]\n%s",
                 (long long)m->dims[1], (long long)m->dims[2], (long long)m->dims[3],
                 graphs[k / 3]);
        check_text(text, in, 2, "attention");
    }
    free(x.data);
    for (size_t k = 0; k < 3; k++) free(masks[k].data);
}

/* Kernels of rows and lanes: pieces along the axes in front, statistics of whole parts, other
 * results beside the first. */
static void rows_and_lanes(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "%y = Softmax(%x) {axis=-1}\noutput %y\n",
        "%y = Softmax(%x) {axis=1}\n%z = LogSoftmax(%x) {axis=2}\noutput %y\noutput %z\n",
        "init %s : float32[67] = random 3\ninit %b : float32[67] = random 4\n%y = "
        "LayerNormalization(%x, %s, %b)\noutput %y\n",
        "init %s : float32[31,67] = random 3\n%y = LayerNormalization(%x, %s) {axis=-2, "
        "epsilon=0.001}\noutput %y\n",
        "init %s : float32[70] = random 3\ninit %b : float32[70] = random 4\n%y = "
        "InstanceNormalization(%x, %s, %b)\noutput %y\n",
        "%y = ReduceMean(%x) {axes=[2, 3], keepdims=1}\n%z = ReduceMax(%x) {axes=[-1], "
        "keepdims=0}\noutput %y\noutput %z\n",
        "init %a : int64[1] = [1]\n%y = ReduceSum(%x, %a) {keepdims=0}\n%z = ReduceL2(%x) "
        "{axes=[0, 3]}\noutput %y\noutput %z\n",
        "%y = ReduceMin(%x) {keepdims=0}\n%z = ReduceLogSumExp(%x) {axes=[1, 2]}\noutput "
        "%y\noutput %z\n",
        "%y = ArgMax(%x) {axis=2}\n%z = ArgMin(%x) {axis=3, keepdims=0}\noutput %y\noutput %z\n",
        "init %k : int64[1] = [5]\n%y, %z = TopK(%x, %k) {axis=-1}\noutput %y\noutput %z\n",
        "%y = LRN(%x) {size=3}\noutput %y\n",
        "%y = MeanVarianceNormalization(%x)\noutput %y\n",
        "init %a : int64[] = [2]\n%y = CumSum(%x, %a)\n%z = LpNormalization(%x) {axis=1}\noutput "
        "%y\noutput %z\n",
        "%y = GlobalAveragePool(%x)\n%z = GlobalMaxPool(%x)\noutput %y\noutput %z\n",
    };
    char text[1000];
    ot_nd x = random_array(31, 4, (int64_t[]){2, 70, 31, 67});
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        snprintf(text, sizeof text, "input %%x : float32[2,70,31,67]\n%s", graphs[k]);
        check_text(text, &x, 1, "rows");
    }
    for (int64_t i = 0; i < 31 * 67; i++) ((float *)x.data)[i] = NAN; /* one part */
    for (size_t k = 0; k < 6; k++) {
        snprintf(text, sizeof text, "input %%x : float32[2,70,31,67]\n%s", graphs[k]);
        check_text(text, &x, 1, "rows that are no numbers");
    }
    free(x.data);
}

/* NaN, infinities, numbers below the least normal one, the largest: through chains, rounded at
 * the end. */
static void chains_of_numbers_that_are_none(void **state)
{
    (void)state;
    static const float odd[] = {NAN,    INFINITY, -INFINITY, 0.0f,      -0.0f, 6e-8f,
                                -6e-8f, 3e-5f,    30000.0f,  -30000.0f, 1.0f,  -2.5f};
    enum { ROWS = 5, N = ROWS * 331 };
    static float x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = i < 331 ? NAN : odd[i % 12];
        y[i] = odd[i / 12 % 12];
    }
    ot_nd in[] = {F32S(x, ROWS, 331), F32S(y, ROWS, 331)};
    check_text(
        "input %x : float32[5,331]\ninput %y : float32[5,331]\ninit %c : float32[] = [0.5]\n"
        "%a = Add(%x, %y)\n%b = Mul(%a, %c)\n%d = Greater(%x, %b)\n%e = Where(%d, %b, %y)\n"
        "%f = Relu(%x)\n%g = Abs(%y)\n%n = IsNaN(%x)\n%h = Cast(%n) {to=10}\n%i = Cast(%h) {to=1}\n"
        "output %b\noutput %e\noutput %f\noutput %g\noutput %n\noutput %i\n",
        in, 2, "odd numbers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_widened),
        cmocka_unit_test(numbers_are_rounded_to_nearest_even),
        cmocka_unit_test(boxes_keep_to_their_place),
        cmocka_unit_test(convolutions_in_strips),
        cmocka_unit_test(convolutions_along_one_and_three_axes),
        cmocka_unit_test(resizes),
        cmocka_unit_test(products),
        cmocka_unit_test(attentions),
        cmocka_unit_test(rows_and_lanes),
        cmocka_unit_test(chains_of_numbers_that_are_none),
        cmocka_unit_test(random_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
