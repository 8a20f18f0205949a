/* Winograd convolutions against sums in double precision: every size of tile, every instruction
 * set that the machine has, strips of many lengths, threads together and apart, strides with
 * gaps, pads, edges.
 *
 *   array with gaps:  | row 0: w * b floats | gap | row 1 ... | gap | next block ... | guard |
 *                                             ^ holds JUNK, and must still when the run is over
 */
#include "engine_check.h"
#include "pool_check.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "engine/core/simd.h"
#include "engine/cpu/conv/winograd_lanes.h"

#define JUNK  12345.5f
#define GUARD 64 /* floats behind every array */

static uint64_t state_of_random;

static uint64_t next_random(void)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return state_of_random;
}

static int64_t pick(int64_t from, int64_t to)
{
    return from + (int64_t)(next_random() % (uint64_t)(to - from + 1));
}

static float number(void)
{
    return (float)((double)(next_random() >> 11) / 4503599627370496.0 - 1);
}

/* ---- arrays ---- */

typedef struct blocked {
    int64_t n, c, h, w, b, strides[3];
    int64_t floats;
    float *data; /* aligned to 64 */
} blocked;

static float *floats_new(int64_t n)
{
    float *p = NULL;
    assert_int_equal(posix_memalign((void **)&p, 64, (size_t)(n + GUARD) * sizeof(float)), 0);
    for (int64_t k = 0; k < n + GUARD; k++) p[k] = JUNK;
    return p;
}

static blocked blocked_new(int64_t n, int64_t c, int64_t h, int64_t w, int64_t b, bool gaps)
{
    blocked a = {.n = n, .c = c, .h = h, .w = w, .b = b};
    a.strides[2] = (w + (gaps ? pick(0, 2) : 0)) * b;
    a.strides[1] = a.strides[2] * h + (gaps ? pick(0, 3) * b : 0);
    a.strides[0] = a.strides[1] * ((c + b - 1) / b) + (gaps ? pick(0, 3) * b : 0);
    a.floats = a.strides[0] * n;
    a.data = floats_new(a.floats);
    return a;
}

/* Element of a channel, of one that only pads the last block, too. */
static float *at(const blocked *a, int64_t n, int64_t c, int64_t y, int64_t x)
{
    return a->data + n * a->strides[0] + c / a->b * a->strides[1] + y * a->strides[2] + x * a->b +
           c % a->b;
}

static int64_t channels_held(const blocked *a) { return (a->c + a->b - 1) / a->b * a->b; }

static void fill(const blocked *a)
{
    for (int64_t n = 0; n < a->n; n++)
        for (int64_t c = 0; c < channels_held(a); c++)
            for (int64_t y = 0; y < a->h; y++)
                for (int64_t x = 0; x < a->w; x++) *at(a, n, c, y, x) = c < a->c ? number() : 0;
}

/* ---- the obvious way ---- */

static double act(const ot_winograd_spec *s, double y)
{
    switch (s->act) {
    case OT_WINO_RELU: return y < 0 ? 0 : y;
    case OT_WINO_CLIP: return fmin(fmax(y, (double)s->alpha), (double)s->beta);
    case OT_WINO_LEAKY: return y < 0 ? (double)s->alpha * y : y;
    default: return y;
    }
}

static double convolved(const ot_winograd_spec *s, const blocked *src, int64_t n, int64_t k,
                        int64_t y, int64_t x)
{
    double sum = 0, scale = s->scale ? (double)s->scale[k] : 1;
    for (int64_t c = 0; c < s->sizes.in_channels; c++)
        for (int64_t t = 0; t < 9; t++) {
            int64_t row = y + t / 3 - s->sizes.pad_top, col = x + t % 3 - s->sizes.pad_left;
            if (row < 0 || row >= s->sizes.in_h || col < 0 || col >= s->sizes.in_w) continue;
            sum += (double)s->weights[(k * s->sizes.in_channels + c) * 9 + t] * scale *
                   (double)*at(src, n, c, row, col);
        }
    return sum + (s->bias ? (double)s->bias[k] : 0);
}

/* Every element of dst. Errors are relative to sums over a whole tile: an output at a border
 * shares its neighbours' errors. */
static void check(const ot_winograd_spec *s, const char *label, const blocked *src,
                  const blocked *dst, const float *residual)
{
    /* mistakes are of the size of one term */
    double allowed = 6e-5 * (1 + sqrt((double)s->sizes.in_channels));
    for (int64_t n = 0; n < s->sizes.batch; n++)
        for (int64_t k = 0; k < channels_held(dst); k++)
            for (int64_t y = 0; y < s->sizes.out_h; y++)
                for (int64_t x = 0; x < s->sizes.out_w; x++) {
                    float *got = at(dst, n, k, y, x);
                    double want = 0;
                    if (k < s->sizes.out_channels) {
                        want = convolved(s, src, n, k, y, x);
                        want = act(s, want + (residual ? (double)residual[got - dst->data] : 0));
                    }
                    if (!(fabs((double)*got - want) <= (k < s->sizes.out_channels ? allowed : 0)))
                        fail_msg("%s: image %d channel %d row %d column %d is %.9g, not %.9g",
                                 label, (int)n, (int)k, (int)y, (int)x, (double)*got, want);
                    *got = JUNK;
                }
    for (int64_t k = 0; k < dst->floats + GUARD; k++)
        if (dst->data[k] != JUNK)
            fail_msg("%s: element %d lies outside and was written", label, (int)k);
}

/* ---- one convolution ---- */

typedef struct task {
    ot_winograd_spec s;
    blocked src, dst;
    float *weights, *scale, *bias, *residual;
    char label[300];
} task;

static float *some(int64_t n)
{
    float *p = floats_new(n);
    for (int64_t k = 0; k < n; k++) p[k] = number();
    return p;
}

/* Operands of a spec whose sizes, pads and activation are set. */
static void open_task(task *t, int64_t b, bool scale, bool bias, bool gaps)
{
    ot_winograd_spec *s = &t->s;
    t->src = blocked_new(s->sizes.batch, s->sizes.in_channels, s->sizes.in_h, s->sizes.in_w, b,
                         gaps);
    t->dst = blocked_new(s->sizes.batch, s->sizes.out_channels, s->sizes.out_h, s->sizes.out_w, b,
                         gaps);
    fill(&t->src);
    s->weights = t->weights = some(s->sizes.in_channels * s->sizes.out_channels * 9);
    s->scale = t->scale = scale ? some(s->sizes.out_channels) : NULL;
    s->bias = t->bias = bias ? some(s->sizes.out_channels) : NULL;
    t->residual = NULL;
    if (s->residual) {
        blocked r = t->dst;
        r.data = t->residual = floats_new(r.floats);
        fill(&r);
    }
}

static void close_task(task *t)
{
    free(t->src.data);
    free(t->dst.data);
    free(t->weights);
    free(t->scale);
    free(t->bias);
    free(t->residual);
}

static void run_task(task *t, const ot_wino_choice *way)
{
    ot_diag d = {0};
    ot_winograd *w = NULL;
    ot_status status = way ? ot_wino_make(&t->s, way, &d, &w) : ot_winograd_new(&t->s, &d, &w);
    if (status != OT_OK) fail_msg("%s: %s", t->label, d.message);
    int64_t bytes = ot_winograd_scratch(w), floats = bytes / (int64_t)sizeof(float);
    assert_int_equal(bytes % 64, 0);
    float *scratch = floats_new(floats);
    for (int64_t k = 0; k < floats; k++) scratch[k] = NAN;
    ot_winograd_run(w, t->src.data, t->src.strides, t->dst.data, t->dst.strides, t->residual,
                    scratch);
    for (int64_t k = floats; k < floats + GUARD; k++)
        if (scratch[k] != JUNK) fail_msg("%s: more scratch is written than reported", t->label);
    check(&t->s, t->label, &t->src, &t->dst, t->residual);
    free(scratch);
    ot_winograd_free(w);
}

static void random_spec(ot_winograd_spec *s)
{
    static const float slopes[] = {0.1f, 0.0f, 1.5f, -0.5f};
    bool small = pick(0, 3) > 0;
    *s = (ot_winograd_spec){.sizes.batch = pick(1, 3),
                            .sizes.in_channels = pick(1, small ? 20 : 70),
                            .sizes.out_channels = pick(1, small ? 20 : 70)};
    s->sizes.pad_top = pick(0, 2);
    s->sizes.pad_left = pick(0, 2);
    s->sizes.in_h = pick(1, 14);
    s->sizes.in_w = pick(1, pick(0, 5) ? 14 : 120);
    s->sizes.out_h = ot_max(s->sizes.in_h + s->sizes.pad_top + pick(0, 2) - 2, 1);
    s->sizes.out_w = ot_max(s->sizes.in_w + s->sizes.pad_left + pick(0, 2) - 2, 1);
    s->sizes.threads = pick(0, 2) ? 1 : 3;
    s->act = (int)pick(OT_WINO_NONE, OT_WINO_LEAKY);
    s->residual = pick(0, 1);
    if (s->act == OT_WINO_CLIP) {
        s->alpha = number() / 2; /* of either sign: channels that pad must be 0 all the same */
        s->beta = s->alpha + 1;
    }
    if (s->act == OT_WINO_LEAKY) s->alpha = slopes[pick(0, 3)];
}

/* Every instruction set that this machine has. */
static uint32_t codes(const ot_wino_code *list[3])
{
    uint32_t n = 0;
    list[n++] = &ot_wino_plain;
#ifdef OT_WINO_X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) list[n++] = &ot_wino_avx2;
    if (__builtin_cpu_supports("avx512f")) list[n++] = &ot_wino_avx512;
#endif
    return n;
}

static void name_task(task *t, uint64_t seed, const ot_wino_choice *way)
{
    const ot_winograd_spec *s = &t->s;
    snprintf(
        t->label, sizeof t->label,
        "seed %llu, %s, m %d strip %d group %d part %d shared %d: %dx%dx%dx%d to %dx%dx%d pads "
        "%d %d "
        "act %d residual %d threads %u",
        (unsigned long long)seed, way->code->name, (int)way->m, (int)way->strip, (int)way->group,
        (int)way->part, way->shared, (int)s->sizes.batch, (int)s->sizes.in_channels,
        (int)s->sizes.in_h, (int)s->sizes.in_w, (int)s->sizes.out_channels, (int)s->sizes.out_h,
        (int)s->sizes.out_w, (int)s->sizes.pad_top, (int)s->sizes.pad_left, (int)s->act,
        s->residual, s->sizes.threads);
}

static void all_ways_are_right(void **state)
{
    (void)state;
    const ot_wino_code *list[3];
    uint32_t n_codes = codes(list);
    uint64_t first = (uint64_t)time(NULL);
    for (uint64_t seed = first; seed < first + 150; seed++) {
        task t = {0};
        state_of_random = seed * 0x9E3779B97F4A7C15u | 1;
        for (int k = 0; k < 10; k++) (void)next_random();
        random_spec(&t.s);
        ot_wino_choice way = {.code = list[pick(0, n_codes - 1)],
                              .m = 2 * pick(1, 3),
                              .strip = pick(1, 40),
                              .shared = pick(0, 1)};
        way.group = pick(1, 5);
        way.part = pick(0, 3) * way.code->block; /* 0: transformed weights are held */
        open_task(&t, way.code->block, pick(0, 1), pick(0, 1), pick(0, 1));
        name_task(&t, seed, &way);
        run_task(&t, &way);
        close_task(&t);
    }
}

/* What ot_winograd_new chooses, for shapes of networks and for small ones. */
static void choices_are_right(void **state)
{
    (void)state;
    static const int64_t shapes[][5] = {
        /* batch, C, K, H, W */
        {1, 64, 64, 12, 40}, {1, 16, 16, 30, 34}, {2, 96, 160, 7, 7}, {1, 3, 32, 20, 20},
        {1, 64, 1, 16, 16},  {1, 1, 1, 1, 1},     {1, 40, 24, 2, 90}, {1, 320, 288, 6, 9}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (uint32_t how = 0; how < 4; how++) {
            const int64_t *p = shapes[k];
            uint32_t threads = how % 2 ? 3 : 1;
            task t = {.s = {.sizes.batch = p[0],
                            .sizes.in_channels = p[1],
                            .sizes.out_channels = p[2],
                            .sizes.in_h = p[3],
                            .sizes.in_w = p[4],
                            .sizes.out_h = p[3],
                            .sizes.out_w = p[4],
                            .sizes.pad_top = 1,
                            .sizes.pad_left = 1,
                            .sizes.threads = threads,
                            .room = how < 2 ? OT_WINOGRAD_ROOM : 0,
                            .act = OT_WINO_RELU}};
            state_of_random = 77 + k;
            open_task(&t, ot_simd_block(), true, true, false);
            ot_wino_choice way = ot_wino_choose(&t.s);
            assert_true(how < 2 || way.part > 0); /* without room nothing is held */
            name_task(&t, 77 + k, &way);
            run_task(&t, NULL);
            close_task(&t);
        }
}

typedef struct two_runs {
    const ot_winograd *w;
    const task *t;
    blocked dst[2];
    float *scratch[2];
} two_runs;

static void run_some(void *job, int64_t first, int64_t end, uint32_t worker)
{
    two_runs *r = job;
    (void)worker;
    for (int64_t k = first; k < end; k++)
        ot_winograd_run(r->w, r->t->src.data, r->t->src.strides, r->dst[k].data, r->dst[k].strides,
                        NULL, r->scratch[k]);
}

/* In work that is shared out a run takes no threads of its own, and several may go on at once. */
static void runs_inside_shared_work(void **state)
{
    (void)state;
    task t = {.s = {.sizes.batch = 1,
                    .sizes.in_channels = 20,
                    .sizes.out_channels = 20,
                    .sizes.in_h = 30,
                    .sizes.in_w = 30,
                    .sizes.out_h = 30,
                    .sizes.out_w = 30,
                    .sizes.pad_top = 1,
                    .sizes.pad_left = 1,
                    .sizes.threads = 2},
              .label = "inside shared work"};
    state_of_random = 5;
    open_task(&t, ot_simd_block(), false, true, false);
    ot_diag d = {0};
    ot_winograd *w = NULL;
    assert_int_equal(ot_winograd_new(&t.s, &d, &w), OT_OK);
    two_runs r = {.w = w, .t = &t, .dst = {t.dst, t.dst}};
    for (int k = 0; k < 2; k++) {
        r.dst[k].data = floats_new(t.dst.floats);
        r.scratch[k] = floats_new(ot_winograd_scratch(w) / (int64_t)sizeof(float));
    }
    ot_pool_share_each(2, 2, run_some, &r);
    for (int k = 0; k < 2; k++) {
        check(&t.s, t.label, &t.src, &r.dst[k], NULL);
        free(r.dst[k].data);
        free(r.scratch[k]);
    }
    ot_winograd_free(w);
    close_task(&t);
}

/* ---- accuracy ---- */

/* Squared error over squared size of the outputs, over `layers` convolutions in a row; each
 * keeps the size of its input. */
static double chain_error(int64_t m, bool held, int layers)
{
    enum { C = 32, H = 20, W = 26 };
    static double exact[2][C][H][W];
    task t = {.s = {.sizes.batch = 1,
                    .sizes.in_channels = C,
                    .sizes.out_channels = C,
                    .sizes.in_h = H,
                    .sizes.in_w = W,
                    .sizes.out_h = H,
                    .sizes.out_w = W,
                    .sizes.pad_top = 1,
                    .sizes.pad_left = 1,
                    .sizes.threads = 1,
                    .act = OT_WINO_RELU}};
    state_of_random = 99;
    open_task(&t, ot_simd_block(), false, true, false);
    ot_wino_choice way = ot_wino_choose(&t.s);
    way.m = m;
    way.part = held ? 0 : way.code->block;
    for (int64_t c = 0; c < C; c++)
        for (int64_t i = 0; i < H * W; i++)
            exact[0][c][i / W][i % W] = (double)*at(&t.src, 0, c, i / W, i % W);
    for (int l = 0; l < layers; l++) {
        ot_diag d = {0};
        ot_winograd *w = NULL;
        for (int64_t k = 0; k < C * C * 9; k++) t.weights[k] = number() * sqrtf(6.0f / (9 * C));
        for (int64_t k = 0; k < C; k++) t.bias[k] = number() * 0.1f;
        assert_int_equal(ot_wino_make(&t.s, &way, &d, &w), OT_OK);
        float *scratch = floats_new(ot_winograd_scratch(w) / (int64_t)sizeof(float));
        blocked *from = l % 2 ? &t.dst : &t.src, *to = l % 2 ? &t.src : &t.dst;
        ot_winograd_run(w, from->data, from->strides, to->data, to->strides, NULL, scratch);
        for (int64_t k = 0; k < C; k++)
            for (int64_t i = 0; i < H * W; i++) {
                double sum = (double)t.bias[k];
                for (int64_t j = 0; j < C * 9; j++) {
                    int64_t y = i / W + j % 9 / 3 - 1, x = i % W + j % 3 - 1;
                    if (y >= 0 && y < H && x >= 0 && x < W)
                        sum += (double)t.weights[k * C * 9 + j] * exact[l % 2][j / 9][y][x];
                }
                exact[1 - l % 2][k][i / W][i % W] = fmax(sum, 0);
            }
        free(scratch);
        ot_winograd_free(w);
    }
    const blocked *last = layers % 2 ? &t.dst : &t.src;
    double error = 0, size = 0;
    for (int64_t c = 0; c < C; c++)
        for (int64_t i = 0; i < H * W; i++) {
            double want = exact[layers % 2][c][i / W][i % W],
                   off = (double)*at(last, 0, c, i / W, i % W) - want;
            error += off * off;
            size += want * want;
        }
    close_task(&t);
    return error / size;
}

static void errors_stay_small(void **state)
{
    (void)state;
    static const double one[] = {2e-13, 2e-12, 4e-11}, many[] = {4e-12, 4e-11, 4e-10};
    for (int64_t m = 2; m <= 6; m += 2) {
        for (int held = 0; held < 2; held++) {
            double e1 = chain_error(m, held, 1), e18 = chain_error(m, held, 18);
            print_message("F(%d, 3), weights %s: squared relative error %.2g after 1 layer, %.2g "
                          "after 18\n",
                          (int)m, held ? "held" : "transformed in each strip", e1, e18);
            assert_true(e1 < one[m / 2 - 1]);
            assert_true(e18 < many[m / 2 - 1]);
        }
    }
}

/* What is no number stays none: at the outputs that it reaches directly, at others of these
 * tiles perhaps. */
static void no_numbers_stay(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int k = 0; k < 3; k++) {
        task t = {.s = {.sizes.batch = 1,
                        .sizes.in_channels = 9,
                        .sizes.out_channels = 9,
                        .sizes.in_h = 40,
                        .sizes.in_w = 11,
                        .sizes.out_h = 40,
                        .sizes.out_w = 11,
                        .sizes.pad_top = 1,
                        .sizes.pad_left = 1,
                        .sizes.threads = 1,
                        .act = OT_WINO_NONE}};
        state_of_random = 3;
        open_task(&t, ot_simd_block(), false, false, false);
        *at(&t.src, 0, 4, 7, 5) = bad[k];
        ot_diag d = {0};
        ot_winograd *w = NULL;
        assert_int_equal(ot_winograd_new(&t.s, &d, &w), OT_OK);
        float *scratch = floats_new(ot_winograd_scratch(w) / (int64_t)sizeof(float));
        ot_winograd_run(w, t.src.data, t.src.strides, t.dst.data, t.dst.strides, NULL, scratch);
        assert_false(isfinite(*at(&t.dst, 0, 2, 7, 5)));
        assert_true(isfinite(*at(&t.dst, 0, 2, 30, 5)));
        assert_true(*at(&t.dst, 0, 9, 7, 5) == 0);
        free(scratch);
        ot_winograd_free(w);
        close_task(&t);
    }
}

/* ---- dilation: images that lie in one another ---- */

typedef struct dilated {
    int64_t d, lo; /* dilation, pads */
    ot_winograd_spec s;
    blocked src, dst, residual;
} dilated;

static double dilated_sum(const dilated *t, int64_t n, int64_t k, int64_t y, int64_t x)
{
    double sum = (double)t->s.bias[k] + (double)*at(&t->residual, n, k, y, x);
    for (int64_t c = 0; c < t->src.c; c++)
        for (int64_t i = 0; i < 9; i++) {
            int64_t row = y - t->lo + i / 3 * t->d, col = x - t->lo + i % 3 * t->d;
            if (row >= 0 && row < t->src.h && col >= 0 && col < t->src.w)
                sum += (double)t->s.weights[(k * t->src.c + c) * 9 + i] *
                       (double)*at(&t->src, n, c, row, col);
        }
    return sum;
}

static void check_dilated(const dilated *t)
{
    for (int64_t n = 0; n < t->dst.n; n++)
        for (int64_t k = 0; k < channels_held(&t->dst); k++)
            for (int64_t y = 0; y < t->dst.h; y++)
                for (int64_t x = 0; x < t->dst.w; x++) {
                    float *got = at(&t->dst, n, k, y, x);
                    double want = k < t->dst.c ? dilated_sum(t, n, k, y, x) : 0;
                    if (!(fabs((double)*got - want) <= 4e-4))
                        fail_msg("dilation %ld, map %ld, %ld, %ld: %g, not %g", (long)t->d, (long)k,
                                 (long)y, (long)x, (double)*got, want);
                    *got = JUNK;
                }
    for (int64_t k = 0; k < t->dst.floats; k++) assert_true(t->dst.data[k] == JUNK);
}

static void run_dilated(const ot_wino_choice *way, int64_t d, int64_t pads, int64_t h, int64_t w)
{
    enum { N = 2, C = 9, K = 19 };
    const int64_t less = 2 * d - 2 * pads * d, out_h = h - less, out_w = w - less,
                  b = way->code->block;
    dilated t = {.d = d, .lo = pads * d};
    float *weights = some(K * C * 9), *bias = some(K);
    t.src = blocked_new(N, C, h, w, b, true);
    t.dst = blocked_new(N, K, out_h, out_w, b, true);
    t.residual = t.dst;
    t.residual.data = floats_new(t.dst.floats);
    fill(&t.src);
    fill(&t.residual);
    t.s = (ot_winograd_spec){.sizes = {.batch = N * d * d,
                                       .in_channels = C,
                                       .out_channels = K,
                                       .in_h = (h + d - 1) / d,
                                       .in_w = (w + d - 1) / d,
                                       .out_h = (out_h + d - 1) / d,
                                       .out_w = (out_w + d - 1) / d,
                                       .pad_top = pads,
                                       .pad_left = pads,
                                       .threads = 2},
                             .weights = weights,
                             .bias = bias,
                             .residual = true,
                             .apart = d,
                             .in = {h, w},
                             .out = {out_h, out_w}};
    ot_diag diag = {0};
    ot_winograd *wino = NULL;
    assert_int_equal(ot_wino_make(&t.s, way, &diag, &wino), OT_OK);
    float *scratch = floats_new(ot_winograd_scratch(wino) / (int64_t)sizeof(float));
    ot_winograd_run(wino, t.src.data, t.src.strides, t.dst.data, t.dst.strides, t.residual.data,
                    scratch);
    check_dilated(&t);
    ot_winograd_free(wino);
    free(scratch);
    free(weights);
    free(bias);
    free(t.src.data);
    free(t.dst.data);
    free(t.residual.data);
}

static void dilated_are_right(void **state)
{
    (void)state;
    const ot_wino_code *list[3];
    state_of_random = 5;
    for (uint32_t c = codes(list); c-- > 0;)
        for (int64_t m = 2; m <= 6; m += 2)
            for (int64_t pads = 0; pads < 3; pads++) {
                ot_wino_choice way = {.code = list[c],
                                      .m = m,
                                      .strip = 7,
                                      .group = 2,
                                      .part = pads == 1 ? list[c]->block : 0,
                                      .shared = pads == 2};
                run_dilated(&way, 2, pads, 13, 22);
                run_dilated(&way, 5, pads, 11, 14);
                /* most images are empty */
                if (pads > 0) run_dilated(&way, 6, pads, 4, 9);
            }
}

/* ---- refusals and judgement ---- */

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    static const float weights[9];
    const ot_winograd_spec good = {.sizes.batch = 1,
                                   .sizes.in_channels = 1,
                                   .sizes.out_channels = 1,
                                   .sizes.in_h = 1,
                                   .sizes.in_w = 1,
                                   .sizes.out_h = 1,
                                   .sizes.out_w = 1,
                                   .sizes.pad_top = 1,
                                   .sizes.pad_left = 1,
                                   .weights = weights,
                                   .sizes.threads = 1};
    for (int k = 0; k < 7; k++) {
        ot_winograd_spec s = good;
        switch (k) {
        case 0: s.sizes.in_channels = 0; break;
        case 1: s.sizes.out_h = -1; break;
        case 2: s.sizes.in_w = INT64_MAX; break;
        case 3: s.sizes.pad_left = -1; break;
        case 4:
            s.sizes.batch = INT64_MAX / 2;
            s.sizes.out_h = s.sizes.out_w = INT32_MAX;
            break;
        case 5: s.sizes.in_channels = s.sizes.out_channels = INT32_MAX; break;
        default: s.sizes.batch = -1; break;
        }
        ot_diag d = {0};
        ot_winograd *w = NULL;
        assert_int_equal(ot_winograd_new(&s, &d, &w), OT_E_INPUT);
        assert_null(w);
        assert_false(ot_winograd_pays(&s));
    }
    ot_winograd_free(NULL);
}

/* Clear cases only, and only where there are kernels for the machine's vectors. */
static void judgement_is_sound(void **state)
{
    (void)state;
    ot_winograd_spec s = {.sizes.batch = 1,
                          .sizes.in_channels = 64,
                          .sizes.out_channels = 64,
                          .sizes.in_h = 56,
                          .sizes.in_w = 56,
                          .sizes.out_h = 56,
                          .sizes.out_w = 56,
                          .sizes.pad_top = 1,
                          .sizes.pad_left = 1,
                          .sizes.threads = 1};
    bool vectors = ot_wino_choose(&s).code != &ot_wino_plain;
    assert_int_equal(ot_winograd_pays(&s), vectors);
    s.sizes.in_channels = 1;
    assert_false(ot_winograd_pays(&s));
    s.sizes.in_channels = 64;
    /* two rows of three are zeros, which a direct convolution leaves out */
    s.sizes.in_h = s.sizes.out_h = 1;
    assert_false(ot_winograd_pays(&s));
    s.sizes.threads = UINT32_MAX;
    (void)ot_winograd_pays(&s);
    assert_true(ot_wino_choose(&s).strip >= 1);
}

static void *no_memory(void *p, size_t old_size, size_t new_size)
{
    (void)old_size;
    static int left = 1;
    if (!new_size) {
        free(p);
        return NULL;
    }
    return left-- > 0 ? realloc(p, new_size) : NULL;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    static const float weights[9];
    ot_winograd_spec s = {.sizes.batch = 1,
                          .sizes.in_channels = 1,
                          .sizes.out_channels = 1,
                          .sizes.in_h = 4,
                          .sizes.in_w = 4,
                          .sizes.out_h = 4,
                          .sizes.out_w = 4,
                          .sizes.pad_top = 1,
                          .sizes.pad_left = 1,
                          .weights = weights,
                          .sizes.threads = 1};
    ot_set_alloc_hook(no_memory);
    for (int k = 0; k < 2; k++) { /* the second allocation fails, then the first */
        ot_diag d = {0};
        ot_winograd *w = NULL;
        assert_int_equal(ot_winograd_new(&s, &d, &w), OT_E_NOMEM);
        assert_null(w);
    }
    ot_set_alloc_hook(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_are_right),
        cmocka_unit_test(choices_are_right),
        cmocka_unit_test(runs_inside_shared_work),
        cmocka_unit_test(errors_stay_small),
        cmocka_unit_test(no_numbers_stay),
        cmocka_unit_test(dilated_are_right),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(judgement_is_sound),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, pool_start, pool_end);
}
