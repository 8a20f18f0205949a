/* GridSample, DeformConv and RoiAlign by taps against the reference: random shapes, modes,
 * paddings and places far outside. */
#include "fast_check.h"

#include <time.h>

#include "engine/ref/ref_window.h"

static const char *pick(const char *const *from, uint32_t n) { return from[fast_random(n)]; }
#define PICK(...)                            \
    pick((const char *const[]){__VA_ARGS__}, \
         (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static void random_grid(uint32_t threads)
{
    uint32_t axes = 1 + fast_random(3);
    int64_t x[5] = {1 + fast_random(3), 1 + fast_random(5)}, g[5] = {x[0]}, last = axes + 1;
    fast_run r = {.n_in = 2, .n_out = 1};
    char node[300];
    for (uint32_t a = 0; a < axes; a++) {
        x[2 + a] = 1 + fast_random(axes == 3 ? 6 : 40);
        g[1 + a] = 1 + fast_random(axes == 3 ? 7 : 90);
    }
    g[last] = axes;
    r.in[0] = fast_array(OT_F32, axes + 2, x);
    r.in[1] = fast_array(OT_F32, axes + 2, g);
    float *grid = r.in[1].data;
    for (int64_t i = 0; i < fast_count(&r.in[1]); i++) {
        grid[i] *= fast_random(10) ? 0.6f : 3;
        if (fast_random(60) == 0) grid[i] = fast_random(2) ? 1 : -1;
        if (fast_random(200) == 0) grid[i] = NAN;
    }
    snprintf(node, sizeof node,
             "GridSample(%%a, %%b) {mode = \"%s\", padding_mode = \"%s\", align_corners = %d}",
             PICK("linear", "nearest", "cubic"), PICK("zeros", "border", "reflection"),
             (int)fast_random(2));
    fast_twins(&r, 20, node, threads, ot_ref_grid_sample, 1e-5);
    fast_close(&r);
}

static void test_grid(void **state)
{
    (void)state;
    for (int k = 0; k < 400; k++) random_grid(1 + fast_random(3));
}

/* An element that no tap reads may be anything. */
static void test_unread(void **state)
{
    (void)state;
    float x[4] = {INFINITY, 2, 3, 4}, grid[2] = {3, 3};
    fast_run r = {.in = {F32S(x, 1, 1, 2, 2), F32S(grid, 1, 1, 1, 2)}, .n_in = 2, .n_out = 1};
    fast_right(&r, 20, "GridSample(%a, %b)", 1);
    assert_true(((const float *)r.out[0].data)[0] == 0);
    fast_end(&r);
}

static void random_deform(uint32_t threads)
{
    int64_t group = 1 + fast_random(2), offset = 1 + fast_random(2), per = 1 + fast_random(8);
    int64_t channels = group * offset * per, maps = group * (1 + fast_random(6)),
            n = 1 + fast_random(2), h = 1 + fast_random(14), w = 1 + fast_random(14),
            kh = 1 + fast_random(3), kw = 1 + fast_random(3), pad = fast_random(3),
            stride = 1 + fast_random(2), dilation = 1 + fast_random(2);
    int64_t oh = h + 2 * pad - (kh - 1) * dilation - 1, ow = w + 2 * pad - (kw - 1) * dilation - 1;
    bool bias = fast_random(2), mask = fast_random(2);
    if (oh < 0 || ow < 0) return;
    oh = oh / stride + 1;
    ow = ow / stride + 1;
    fast_run r = {.n_in = 3, .n_out = 1};
    char node[400];
    r.in[0] = FAST_ARRAY(OT_F32, n, channels, h, w);
    r.in[1] = FAST_ARRAY(OT_F32, maps, channels / group, kh, kw);
    r.in[2] = FAST_ARRAY(OT_F32, n, offset * kh * kw * 2, oh, ow);
    if (bias) r.in[r.n_in++] = FAST_ARRAY(OT_F32, maps);
    if (mask) r.in[r.n_in++] = FAST_ARRAY(OT_F32, n, offset * kh * kw, oh, ow);
    snprintf(node, sizeof node,
             "DeformConv(%%a, %%b, %%c%s%s) {kernel_shape = [%d, %d], pads = [%d, %d, %d, %d], "
             "strides = [%d, %d], dilations = [%d, %d], group = %d, offset_group = %d}",
             bias   ? ", %d"
             : mask ? ", _"
                    : "",
             mask ? bias ? ", %e" : ", %d" : "", (int)kh, (int)kw, (int)pad, (int)pad, (int)pad,
             (int)pad, (int)stride, (int)stride, (int)dilation, (int)dilation, (int)group,
             (int)offset);
    fast_twins(&r, 19, node, threads, ot_ref_deform_conv, 1e-4);
    fast_close(&r);
}

static void test_deform(void **state)
{
    (void)state;
    for (int k = 0; k < 200; k++) random_deform(1 + fast_random(3));
}

static void random_rois(uint32_t threads)
{
    int64_t n = 1 + fast_random(3), h = 1 + fast_random(30), w = 1 + fast_random(30),
            regions = fast_random(6);
    fast_run r = {.n_in = 3, .n_out = 1};
    char node[400];
    r.in[0] = FAST_ARRAY(OT_F32, n, 1 + fast_random(5), h, w);
    r.in[1] = FAST_ARRAY(OT_F32, regions, 4);
    r.in[2] = FAST_ARRAY(OT_I64, regions);
    for (int64_t k = 0; k < regions; k++) {
        float *corner = (float *)r.in[1].data + 4 * k;
        ((int64_t *)r.in[2].data)[k] = fast_random((uint32_t)n);
        for (int e = 0; e < 4; e++)
            corner[e] = (float)fast_random(400) / 10 - 5 + (e > 1 ? corner[e - 2] : 0);
    }
    snprintf(node, sizeof node,
             "RoiAlign(%%a, %%b, %%c) {output_height = %d, output_width = %d, sampling_ratio = %d, "
             "mode = \"%s\", spatial_scale = %g, coordinate_transformation_mode = \"%s\"}",
             1 + (int)fast_random(8), 1 + (int)fast_random(8), (int)fast_random(4),
             PICK("avg", "max"), fast_random(2) ? 1.0 : 0.5,
             PICK("half_pixel", "output_half_pixel"));
    fast_twins(&r, 16, node, threads, ot_ref_roi_align, 1e-5);
    fast_close(&r);
}

static void test_rois(void **state)
{
    (void)state;
    for (int k = 0; k < 300; k++) random_rois(1 + fast_random(3));
}

int main(void)
{
    const char *given = getenv("SEED");
    fast_state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grid), cmocka_unit_test(test_unread),
                                       cmocka_unit_test(test_deform), cmocka_unit_test(test_rois)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
