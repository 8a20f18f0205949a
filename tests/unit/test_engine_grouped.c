/* Grouped convolutions against sums in double precision: every instruction set that the machine
 * has, groups that lie in a block, across blocks, and in many; any kernel, stride, dilation, pads;
 * residuals in place; threads. A number that is none stays in its group.
 *
 *   array with gaps:  | row 0: w * b floats | gap | row 1 ... | gap | next block ... |
 *                                             ^ holds JUNK, and must still when the run is over
 */
#include "engine_check.h"
#include "pool_check.h"

#include <math.h>
#include <stdlib.h>

#include "engine/core/simd.h"
#include "engine/cpu/conv/grouped_lanes.h"

#define JUNK 12345.5f

static uint64_t state_of_random;

static int64_t pick(int64_t from, int64_t to)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return from + (int64_t)((state_of_random >> 33) % (uint64_t)(to - from + 1));
}

static float number(void) { return (float)pick(-1000, 1000) / 1000; }

typedef struct blocked {
    int64_t c, h, w, b, strides[3], floats;
    float *data; /* aligned to 64 */
} blocked;

static blocked blocked_new(int64_t n, int64_t c, int64_t h, int64_t w, int64_t b)
{
    blocked a = {.c = c, .h = h, .w = w, .b = b};
    a.strides[2] = (w + pick(0, 1)) * b;
    a.strides[1] = a.strides[2] * h + pick(0, 1) * b;
    a.strides[0] = a.strides[1] * ((c + b - 1) / b) + pick(0, 1) * b;
    a.floats = a.strides[0] * n;
    assert_int_equal(posix_memalign((void **)&a.data, 64, (size_t)a.floats * sizeof(float)), 0);
    for (int64_t k = 0; k < a.floats; k++) a.data[k] = JUNK;
    return a;
}

static float *at(const blocked *a, int64_t n, int64_t c, int64_t y, int64_t x)
{
    return a->data + n * a->strides[0] + c / a->b * a->strides[1] + y * a->strides[2] + x * a->b +
           c % a->b;
}

static int64_t channels_held(const blocked *a) { return (a->c + a->b - 1) / a->b * a->b; }

static void fill(const blocked *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < channels_held(a); c++)
            for (int64_t y = 0; y < a->h; y++)
                for (int64_t x = 0; x < a->w; x++) *at(a, i, c, y, x) = c < a->c ? number() : 0;
}

/* ---- the obvious way ---- */

static double activated(const ot_grouped_spec *s, double y)
{
    if (s->act == OT_WINO_RELU) return y < 0 ? 0 : y;
    if (s->act == OT_WINO_CLIP) return fmin(fmax(y, (double)s->alpha), (double)s->beta);
    return s->act == OT_WINO_LEAKY && y < 0 ? (double)s->alpha * y : y;
}

static double sum_of(const ot_grouped_spec *s, const float *weights, const blocked *src, int64_t n,
                     int64_t map, int64_t y, int64_t x)
{
    double sum = 0;
    for (int64_t c = 0; c < s->channels; c++)
        for (int64_t i = 0; i < s->kernel[0]; i++)
            for (int64_t j = 0; j < s->kernel[1]; j++) {
                int64_t row = y * s->stride[0] - s->lo[0] + i * s->dilation[0],
                        col = x * s->stride[1] - s->lo[1] + j * s->dilation[1];
                if (row < 0 || row >= s->in[0] || col < 0 || col >= s->in[1]) continue;
                sum +=
                    (double)
                        weights[((map * s->channels + c) * s->kernel[0] + i) * s->kernel[1] + j] *
                    (double)*at(src, n, map / s->maps * s->channels + c, row, col);
            }
    return sum;
}

/* ---- one case ---- */

typedef struct made {
    ot_arena *a;
    float *weights, *scale, *bias, *packed;
    void *scratch;
    ot_grouped_conv *conv;
} made;

static made make(const ot_grouped_spec *s, const ot_grouped_code *code)
{
    made m = {.a = ot_arena_new()};
    int64_t maps = s->group * s->maps, each = s->channels * s->kernel[0] * s->kernel[1];
    m.weights = OT_NEW_N(m.a, float, maps *each);
    m.scale = OT_NEW_N(m.a, float, maps);
    m.bias = OT_NEW_N(m.a, float, maps);
    for (int64_t k = 0; k < maps * each; k++) m.weights[k] = number();
    for (int64_t k = 0; k < maps; k++) {
        m.scale[k] = 1 + number() / 2;
        m.bias[k] = number();
    }
    assert_true(ot_grouped_fits(s));
    m.conv = ot_grouped_new(m.a, s, code);
    assert_non_null(m.conv);
    m.packed = OT_NEW_N(m.a, float, ot_grouped_floats(m.conv));
    ot_grouped_pack(m.conv, m.weights, m.scale, m.bias, m.packed);
    size_t bytes = (size_t)ot_grouped_scratch(m.conv);
    assert_int_equal(posix_memalign(&m.scratch, 64, bytes), 0);
    return m;
}

static void check(const ot_grouped_spec *s, const made *m, const blocked *src, const blocked *dst,
                  const float *before)
{
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t k = 0; k < channels_held(dst); k++)
            for (int64_t y = 0; y < dst->h; y++)
                for (int64_t x = 0; x < dst->w; x++) {
                    float *got = at(dst, n, k, y, x);
                    double want = 0;
                    if (k < dst->c)
                        want = sum_of(s, m->weights, src, n, k, y, x) * (double)m->scale[k] +
                               (double)m->bias[k] + (before ? (double)before[got - dst->data] : 0);
                    want = k < dst->c ? activated(s, want) : 0;
                    if (!(fabs((double)*got - want) <= 2e-5))
                        fail_msg("%ld groups, map %ld, %ld, %ld: %g, not %g", (long)s->group,
                                 (long)k, (long)y, (long)x, (double)*got, want);
                    *got = JUNK;
                }
    for (int64_t k = 0; k < dst->floats; k++) assert_true(dst->data[k] == JUNK);
}

static void one_case(ot_grouped_spec s, const ot_grouped_code *code, bool residual)
{
    made m = make(&s, code);
    blocked src = blocked_new(s.batch, s.group * s.channels, s.in[0], s.in[1], code->block),
            dst = blocked_new(s.batch, s.group * s.maps, s.out[0], s.out[1], code->block);
    float *before = NULL;
    fill(&src, s.batch);
    if (residual) {
        fill(&dst, s.batch);
        before = OT_NEW_N(m.a, float, dst.floats);
        memcpy(before, dst.data, (size_t)dst.floats * sizeof *before);
    }
    ot_grouped_run_all(m.conv, m.packed, src.data, src.strides, dst.data, dst.strides,
                       residual ? dst.data : NULL, m.scratch);
    check(&s, &m, &src, &dst, before);
    free(src.data);
    free(dst.data);
    free(m.scratch);
    ot_arena_free(m.a);
}

/* Codes of the machine. */
static uint32_t codes(const ot_grouped_code *out[3])
{
    uint32_t n = 0;
    out[n++] = &ot_grouped_plain;
#ifdef OT_GROUPED_X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[n++] = &ot_grouped_avx2;
    if (__builtin_cpu_supports("avx512f")) out[n++] = &ot_grouped_avx512;
#endif
    return n;
}

/* Groups, channels and maps of each: in a block, across blocks, of several blocks. */
static const int64_t forms[][3] = {{6, 8, 8},  {26, 4, 4}, {5, 3, 7},  {3, 24, 24}, {9, 1, 3},
                                   {2, 5, 40}, {2, 40, 5}, {7, 16, 2}, {11, 2, 1}};

static ot_grouped_spec drawn(size_t form)
{
    ot_grouped_spec s = {.batch = pick(1, 2),
                         .group = forms[form][0],
                         .channels = forms[form][1],
                         .maps = forms[form][2],
                         .act = (int)pick(0, 3),
                         .alpha = -0.5f,
                         .beta = 0.75f,
                         .threads = (uint32_t)pick(1, 3)};
    bool usual = pick(0, 2) > 0;
    for (uint32_t a = 0; a < 2; a++) {
        s.kernel[a] = usual ? 3 : pick(1, 4);
        s.stride[a] = pick(1, usual ? 2 : 3);
        s.dilation[a] = usual ? 1 : pick(1, 3);
        s.lo[a] = pick(0, 3);
        s.out[a] = pick(1, a ? 37 : 5);
        /* up to what is read, or less: pads at the end */
        s.in[a] = ot_max(1, (s.out[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1 -
                                s.lo[a] - pick(-1, 3));
    }
    return s;
}

static void test_against_sums(void **state)
{
    const ot_grouped_code *code[3];
    (void)state;
    state_of_random = 7;
    for (uint32_t c = codes(code); c-- > 0;)
        for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
            for (int turn = 0; turn < 6; turn++) one_case(drawn(form), code[c], turn % 2 == 1);
}

/* What is no number in one group is none in its results, and in no others. */
static void test_apart(void **state)
{
    const ot_grouped_code *code[3];
    (void)state;
    for (uint32_t c = codes(code); c-- > 0;)
        for (size_t form = 0; form < sizeof forms / sizeof *forms; form++)
            for (int64_t columns = 2; columns <= 3; columns++) {
                ot_grouped_spec s = {.batch = 1,
                                     .group = forms[form][0],
                                     .channels = forms[form][1],
                                     .maps = forms[form][2],
                                     .in = {3, 9},
                                     .out = {3, 9},
                                     .kernel = {3, columns},
                                     .stride = {1, 1},
                                     .dilation = {1, 1},
                                     .lo = {1, 1},
                                     .threads = 1};
                made m = make(&s, code[c]);
                blocked src = blocked_new(1, s.group * s.channels, 3, 9, code[c]->block),
                        dst = blocked_new(1, s.group * s.maps, 3, 9, code[c]->block);
                fill(&src, 1);
                *at(&src, 0, s.channels, 1, 4) = NAN; /* group 1 */
                ot_grouped_run_all(m.conv, m.packed, src.data, src.strides, dst.data, dst.strides,
                                   NULL, m.scratch);
                for (int64_t k = 0; k < channels_held(&dst); k++)
                    assert_int_equal(isnan(*at(&dst, 0, k, 1, 4)) != 0,
                                     k >= s.maps && k < 2 * s.maps);
                free(src.data);
                free(dst.data);
                free(m.scratch);
                ot_arena_free(m.a);
            }
}

/* Sizes that overflow are none. */
static void test_sizes(void **state)
{
    (void)state;
    ot_grouped_spec s = {.batch = 1,
                         .group = 4,
                         .channels = 4,
                         .maps = 4,
                         .in = {8, 8},
                         .out = {8, 8},
                         .kernel = {3, 3},
                         .stride = {1, 1},
                         .dilation = {1, 1},
                         .threads = 1};
    assert_true(ot_grouped_fits(&s));
    s.dilation[1] = 1 << 20;
    assert_false(ot_grouped_fits(&s));
    s.dilation[1] = 1;
    s.channels = s.maps = s.group = 1 << 20;
    assert_false(ot_grouped_fits(&s));
    s.channels = s.maps = 4;
    s.group = 1;
    assert_false(ot_grouped_fits(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_sums),
                                       cmocka_unit_test(test_apart), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, pool_start, pool_end);
}
