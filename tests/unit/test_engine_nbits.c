/* MatMulNBits: by hand; the fast kernel against the reference on random weights; what is
 * refused. */
#include "fast_check.h"

#include <time.h>

#include "engine/ref/ref_product.h"

static ot_nd bytes_array(int64_t n)
{
    ot_nd a = FAST_ARRAY(OT_U8, n);
    for (int64_t i = 0; i < n; i++) ((uint8_t *)a.data)[i] = (uint8_t)fast_random(256);
    return a;
}

/* K 16 in one block: the elements 0, 1, ..., 15 less 8, times 0.5. */
static void test_hand(void **state)
{
    (void)state;
    float a[16], scale[1] = {0.5f}, want = 0;
    uint8_t b[8];
    for (int k = 0; k < 16; k++) {
        a[k] = (float)(k * k);
        want += a[k] * (float)(k - 8) * 0.5f;
    }
    for (int k = 0; k < 8; k++) b[k] = (uint8_t)(2 * k + 16 * (2 * k + 1));
    fast_run r = {.in = {F32S(a, 1, 16), over(OT_U8, b, 3, (int64_t[]){1, 1, 8}), F32S(scale, 1)},
                  .n_in = 3,
                  .n_out = 1};
    const char *node = "\"com.microsoft\"::MatMulNBits@1(%a, %b, %c) {K = 16, N = 1, bits = 4, "
                       "block_size = 16}";
    for (int reference = 0; reference < 2; reference++) {
        assert_int_equal(fast_try(&r, 17, node, 1, reference ? ot_ref_matmul_nbits : NULL), OT_OK);
        assert_true(r.out[0].rank == 2 && ((const float *)r.out[0].data)[0] == want);
        fast_end(&r);
    }
}

static void random_weights(uint32_t threads)
{
    static const int64_t bits_of[] = {2, 4, 4, 8};
    int64_t bits = bits_of[fast_random(4)], block = (int64_t)16 << fast_random(3),
            k = 1 + fast_random(150), n = 1 + fast_random(80), rows = 1 + fast_random(12),
            blocks = ot_ceil_div(k, block);
    uint32_t zero = fast_random(3);
    bool bias = fast_random(2);
    fast_run r = {.n_in = 3, .n_out = 1};
    char node[300];
    r.in[0] = FAST_ARRAY(OT_F32, 1, rows, k);
    r.in[1] = bytes_array(n * blocks * block * bits / 8);
    r.in[2] = FAST_ARRAY(OT_F32, n * blocks);
    if (zero == 1) r.in[r.n_in++] = bytes_array(n * ot_ceil_div(blocks * bits, 8));
    if (zero == 2) r.in[r.n_in++] = FAST_ARRAY(OT_F32, n * blocks);
    if (bias) r.in[r.n_in++] = FAST_ARRAY(OT_F32, n);
    snprintf(node, sizeof node,
             "\"com.microsoft\"::MatMulNBits@1(%%a, %%b, %%c, %s, _, %s) {K = %d, N = %d, "
             "bits = %d, block_size = %d}",
             zero ? "%d" : "_",
             !bias  ? "_"
             : zero ? "%e"
                    : "%d",
             (int)k, (int)n, (int)bits, (int)block);
    /* numbers of up to 256 times 2, weighted by 2: sums of 150 of them in float */
    fast_twins(&r, 17, node, threads, ot_ref_matmul_nbits, bits == 8 ? 0.3 : 0.03);
    fast_close(&r);
}

static void test_random(void **state)
{
    (void)state;
    for (int k = 0; k < 200; k++) random_weights(1 + fast_random(3));
}

static void refused(const char *attributes, int64_t bytes, const char *why)
{
    fast_run r = {.in = {FAST_ARRAY(OT_F32, 2, 32), bytes_array(bytes), FAST_ARRAY(OT_F32, 3)},
                  .n_in = 3,
                  .n_out = 1};
    char node[300];
    snprintf(node, sizeof node, "\"com.microsoft\"::MatMulNBits@1(%%a, %%b, %%c) {%s}", attributes);
    assert_int_equal(fast_try(&r, 17, node, 1, NULL), OT_E_INPUT);
    if (!strstr(r.b.d.message, why)) fail_msg("'%s' does not say '%s'", r.b.d.message, why);
    fast_close(&r);
}

static void test_refused(void **state)
{
    (void)state;
    refused("K = 32, N = 3, block_size = 32", 47, "input 1 has 47 elements, must have 48");
    refused("K = 33, N = 3, block_size = 32", 96, "rows of A do not have K 33");
    refused("K = 32, N = 3, block_size = 24", 48, "block_size 24 is no power of 2");
    refused("K = 32, N = 3, block_size = 32, bits = 3", 48, "bits is 3");
    refused("K = 32, N = 0, block_size = 32", 48, "N 0 must be");
    refused("K = 32, N = 4, block_size = 32", 64, "input 2 has 3 elements, must have 4");
}

int main(void)
{
    const char *given = getenv("SEED");
    fast_state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)fast_state);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hand), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
