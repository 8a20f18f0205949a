/* Convolutions and pools that threads share out: the parts that they are cut into make the same
 * bits as the whole, and cover it. */
#include "engine_graphs.h"
#include "seeded.h"

#include "engine/cpu/conv/conv_cut.h"

/* ---- parts ---- */

static void form(ot_nd *a, bool blocked, uint32_t block, const int64_t *dims)
{
    if (blocked)
        ot_nd_set_blocked(a, OT_F32, 4, dims, block);
    else
        ot_nd_set_dense(a, OT_F32, 4, dims);
}

static lw_conv random_conv(int64_t *x_dims, int64_t *y_dims)
{
    static const int channels[] = {1, 3, 8, 16, 20, 48, 64};
    lw_conv k = {
        .group = 1, .maps = channels[below(7)], .channels = channels[below(7)], .win = {.n = 2}};
    if (!below(3)) { /* depthwise */
        k.group = k.maps;
        k.channels = 1;
    } else if (!below(4)) {
        k.group = 2;
        k.maps *= 2;
    }
    x_dims[0] = y_dims[0] = 1 + below(6);
    x_dims[1] = k.channels * k.group;
    y_dims[1] = k.maps;
    for (int a = 0; a < 2; a++) {
        ot_window *w = &k.win;
        w->kernel[a] = 1 + below(5);
        w->stride[a] = 1 + below(2);
        w->dilation[a] = 1 + below(2);
        w->in[a] = (w->kernel[a] - 1) * w->dilation[a] + 1 + below(30);
        w->lo[a] = below((int)w->kernel[a]);
        w->hi[a] = below((int)w->kernel[a]);
        w->out[a] = (w->in[a] + w->lo[a] + w->hi[a] - (w->kernel[a] - 1) * w->dilation[a] - 1) /
                        w->stride[a] +
                    1;
        x_dims[a + 2] = w->in[a];
        y_dims[a + 2] = w->out[a];
    }
    return k;
}

static bool within(int64_t first, int64_t n, int64_t at) { return at >= first && at < first + n; }

/* Each result is in one part, which reads all rows and channels that the result needs. */
static void check_parts(const lw_conv *k, const lw_conv_part *parts, uint32_t n, int64_t images)
{
    const ot_window *w = &k->win;
    for (int64_t i = 0; i < images * k->maps * w->out[0]; i++) {
        int64_t row = i % w->out[0], map = i / w->out[0] % k->maps, image = i / w->out[0] / k->maps;
        uint32_t found = 0;
        for (uint32_t j = 0; j < n; j++) {
            const lw_conv_part *p = &parts[j];
            if (!within(p->image, p->images, image) || !within(p->map, p->maps, map) ||
                !within(p->row, p->rows, row))
                continue;
            int64_t group = map / (k->maps / k->group);
            found++;
            assert_true(p->channel <= group * k->channels &&
                        p->channel + p->channels >= (group + 1) * k->channels);
            for (int64_t t = 0; t < w->kernel[0]; t++) {
                int64_t at = row * w->stride[0] - w->lo[0] + t * w->dilation[0];
                int64_t local = (row - p->row) * w->stride[0] - p->lo + t * w->dilation[0];
                bool inside = at >= 0 && at < w->in[0];
                if (inside != within(0, p->in_rows, local) || (inside && local + p->in_row != at))
                    fail_msg("row %d of part %u reads other rows", (int)row, j);
            }
        }
        assert_int_equal(found, 1);
    }
}

static void parts_cover_convolutions(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    assert_non_null(a);
    for (int again = 0; again < 3000; again++) {
        int64_t x_dims[4], y_dims[4];
        uint32_t block = below(2) ? 8 : 16;
        lw_conv k = random_conv(x_dims, y_dims);
        lw_conv_part *parts;
        ot_nd x = {0}, y = {0};
        form(&x, below(2), block, x_dims);
        form(&y, below(3), block, y_dims);
        uint32_t threads = 1 + (uint32_t)below(9), n = lw_conv_cut(a, &k, &x, &y, threads, &parts);
        assert_non_null(parts);
        if (threads == 1 && n != 1) fail_msg("%u parts for one thread", n);
        check_parts(&k, parts, n, x_dims[0]);
        form(&x, false, 0, x_dims);
        n = lw_conv_cut_alike(a, &k, &x, &parts);
        assert_non_null(parts);
        check_parts(&k, parts, n, x_dims[0]);
    }
    ot_arena_free(a);
}

/* ---- runs ---- */

/* Outputs by one thread, by the reference, and by several threads, in bits like the first. */
static void same_bits(const char *text, int64_t n_in, const int64_t *dims)
{
    static const uint32_t threads[] = {2, 3, 4, 8};
    float *x = malloc((size_t)n_in * sizeof *x);
    bench one, many, ref;
    ot_nd in = over(OT_F32, x, 4, dims), want = {0}, got = {0}, right = {0};
    int64_t n;
    assert_non_null(x);
    for (int64_t k = 0; k < n_in; k++) x[k] = (float)below(2001) / 1000.0f - 1;
    open_with(&ref, text, (ot_session_options){.reference = true});
    open_with(&one, text, (ot_session_options){.threads = 1});
    if (one.status != OT_OK) fail_msg("%s\n%s", one.d.message, text);
    run_ok(&ref, &in, &right);
    run_ok(&one, &in, &want);
    if (!(graph_error(&right, &want) <= GRAPH_NMSE)) fail_msg("wrong\n%s", text);
    assert_true(ot_nd_elems(&want, &n));
    for (int k = 0; k < 4; k++) {
        open_with(&many, text, (ot_session_options){.threads = threads[k]});
        if (many.status != OT_OK) fail_msg("%s\n%s", many.d.message, text);
        for (int again = 0; again < 2; again++) {
            got = (ot_nd){0};
            run_ok(&many, &in, &got);
            if (memcmp(got.data, want.data, (size_t)n * sizeof(float)))
                fail_msg("%u threads: other bits\n%s", threads[k], text);
        }
        close_bench(&many);
    }
    close_bench(&one);
    close_bench(&ref);
    free(x);
}

/* Windows that Winograd's algorithm does not take, with enough work for several threads. */
static void convolutions(void **state)
{
    (void)state;
    static const int channels[] = {3, 8, 16, 24, 40, 64}, maps[] = {1, 16, 24, 40, 48, 64, 96},
                     sides[] = {15, 28, 56};
    static const char *const posts[] = {"%y = Relu(%t)", "%y = Identity(%t)", "%y = HardSwish(%t)"};
    for (int again = 0; again < 60; again++) {
        char text[1000], last[100];
        int kind = below(4), c = channels[below(6)], m = maps[below(7)], group = 1,
            side = sides[below(3)], kernel = 1 + 2 * below(3);
        int stride = kernel == 3 ? 2 : 1 + below(2), dilation = 1 + below(2), pad = below(kernel),
            n = below(3) ? 1 : 2 + below(4);
        if (kind == 0) c = m = group = 8 * (1 + below(16));
        if (kind == 1) c = m = 16 * (group = 1 + below(4));
        int out = (side + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
        if ((double)n * m * c / group * kernel * kernel * out * out > 4e7) continue;
        bool residual = below(3) == 0;
        snprintf(last, sizeof last, residual ? "%%s = Add(%%t, %%r)\n%%y = Relu(%%s)" : "%s",
                 posts[below(3)]);
        snprintf(text, sizeof text,
                 "input %%x : float32[%d,%d,%d,%d]\ninit %%w : float32[%d,%d,%d,%d] = random 7 * "
                 "0.2\ninit %%b : float32[%d] = random 8\n"
                 "init %%r : float32[%d,%d,%d,%d] = random 9\n"
                 "%%t = Conv(%%x, %%w, %%b) {strides=[%d, %d], pads=[%d, %d, %d, %d], "
                 "dilations=[%d, %d], group=%d}\n%s\noutput %%y",
                 n, c, side, side, m, c / group, kernel, kernel, m, residual ? n : 1,
                 residual ? m : 1, residual ? out : 1, residual ? out : 1, stride, stride, pad, pad,
                 pad, pad, dilation, dilation, group, last);
        same_bits(text, (int64_t)n * c * side * side, (int64_t[]){n, c, side, side});
    }
}

/* A convolution whose parts have no kernel is one part again, of all images: of 3 images, two
 * threads would read a fourth. */
static void all_images_in_one(void **state)
{
    (void)state;
    same_bits("input %x : float32[3,16,56,56]\ninit %w : float32[40,16,1,1] = random 7 * 0.2\ninit "
              "%b : float32[40] = random 8\n"
              "init %r : float32[3,40,28,28] = random 9\n%t = Conv(%x, %w, %b) {strides=[2, 2]}\n"
              "%s = Add(%t, %r)\n%y = Relu(%s)\noutput %y",
              (int64_t)3 * 16 * 56 * 56, (int64_t[]){3, 16, 56, 56});
}

/* Pads that oneDNN's kernels for AVX2 have no place for: a matrix product, which adds up the
 * edges of a part in another order. */
static void products_of_windows(void **state)
{
    (void)state;
    same_bits("input %x : float32[1,16,15,15]\ninit %w : float32[272,16,5,5] = random 7 * "
              "0.2\ninit %b : float32[272] = random 8\n"
              "%y = Conv(%x, %w, %b) {pads=[4, 4, 4, 4]}\noutput %y",
              (int64_t)16 * 15 * 15, (int64_t[]){1, 16, 15, 15});
    same_bits("input %x : float32[5,16,15,15]\ninit %w : float32[48,16,5,5] = random 7 * 0.2\ninit "
              "%b : float32[48] = random 8\n"
              "%y = Conv(%x, %w, %b) {pads=[4, 4, 4, 4]}\noutput %y",
              (int64_t)5 * 16 * 15 * 15, (int64_t[]){5, 16, 15, 15});
}

static void pools(void **state)
{
    (void)state;
    static const char *const ops[] = {"MaxPool", "AveragePool", "GlobalAveragePool",
                                      "GlobalMaxPool"};
    for (int again = 0; again < 24; again++) {
        char text[1000], attrs[100] = "";
        int n = 1 + below(3), c = 1 + below(70), side = 70 + below(40), kernel = 2 + below(3);
        if (again % 4 < 2)
            snprintf(attrs, sizeof attrs,
                     " {kernel_shape=[%d, %d], strides=[2, 2], pads=[1, 1, 1, 1]}", kernel, kernel);
        snprintf(text, sizeof text, "input %%x : float32[%d,%d,%d,%d]\n%%y = %s(%%x)%s\noutput %%y",
                 n, c, side, side, ops[again % 4], attrs);
        same_bits(text, (int64_t)n * c * side * side, (int64_t[]){n, c, side, side});
    }
}

static void transposed(void **state)
{
    (void)state;
    for (int again = 0; again < 12; again++) {
        char text[1000];
        int n = 1 + below(2), c = 8 * (1 + below(6)), m = 1 + below(40), side = 10 + below(30),
            kernel = 2 + below(3);
        snprintf(
            text, sizeof text,
            "input %%x : float32[%d,%d,%d,%d]\ninit %%w : float32[%d,%d,%d,%d] = random 7 * "
            "0.2\ninit %%b : float32[%d] = random 8\n"
            "%%y = ConvTranspose(%%x, %%w, %%b) {strides=[2, 2], pads=[1, 0, 0, 1]}\noutput %%y",
            n, c, side, side, c, m, kernel, kernel, m);
        same_bits(text, (int64_t)n * c * side * side, (int64_t[]){n, c, side, side});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_cover_convolutions),
                                       cmocka_unit_test(convolutions),
                                       cmocka_unit_test(all_images_in_one),
                                       cmocka_unit_test(products_of_windows),
                                       cmocka_unit_test(pools),
                                       cmocka_unit_test(transposed)};
    return cmocka_run_group_tests(tests, start, NULL);
}
