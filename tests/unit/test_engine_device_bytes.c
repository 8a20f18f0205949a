/* Bytes that kernels of a session read and write, in the profile of the device: by hand,
 * operator by operator, and of tiles. Skipped where there is no device. */
#include "engine_graphs.h"
#include "engine_device_rig.h"

#include "device/profile.h"

typedef struct expected {
    const char *text, *kernel;
    uint64_t count;
    int64_t bytes; /* of all launches together */
} expected;

#define F 4 /* bytes of a float32 */

static const expected CASES[] = {
    /* all of the operands, once */
    {"input %x : float32[1,2,8,8]\ninit %w : float32[4,2,3,3] = random 1\n%c = Conv(%x, %w) "
     "{pads=[1,1,1,1]}\n%y = Relu(%c)\noutput %y\n",
     "Conv, Relu", 1, (128 + 72 + 256) * F},
    {"input %x : float32[4,8]\ninit %w : float32[8,6] = random 1\n%y = MatMul(%x, %w)\noutput %y\n",
     "MatMul", 1, (32 + 48 + 24) * F},
    /* what is repeated, once */
    {"input %x : float32[4,8]\ninit %b : float32[8] = random 1\n%y = Add(%x, %b)\noutput %y\n",
     "Add", 1, (32 + 8 + 32) * F},
    /* what steps pass by is not read */
    {"input %x : float32[1,2,8,8]\ninit %w : float32[4,2,1,1] = random 1\n%y = Conv(%x, %w) "
     "{strides=[2,2]}\noutput %y\n",
     "Conv", 1, (2 * 16 + 8 + 64) * F},
    {"input %x : float32[1,2,8,8]\n%y = MaxPool(%x) {kernel_shape=[2,2], strides=[3,3]}\noutput "
     "%y\n",
     "MaxPool", 1, (2 * 36 + 2 * 9) * F},
    {"input %x : float32[1,1,8,8]\ninit %s : float32[4] = [1, 1, 0.5, 0.5]\n%y = Resize(%x, _, %s) "
     "{mode=\"nearest\"}\noutput %y\n",
     "Resize", 1, (16 + 16) * F + 2 * 4 * 4 /* and its two tables */},
    /* rows that are taken, and their numbers */
    {"input %x : float32[100,8]\ninit %i : int64[3] = [5, 0, 99]\n%y = Gather(%x, %i)\noutput %y\n",
     "Gather", 1, (24 + 24) * F + 3 * 8},
    /* windows */
    {"input %x : float32[64,8]\ninit %a : int64[1] = [2]\ninit %e : int64[1] = [4]\n%s = Slice(%x, "
     "%a, %e)\n%y = Neg(%s)\noutput %y\n",
     "Neg", 1, (16 + 16) * F},
    {"input %x : float32[4,8]\ninput %z : float32[2,8]\n%y = Concat(%x, %z) {axis=0}\noutput %y\n",
     "Concat", 2, 2 * (32 + 16) * F},
    /* tiles: ten windows of four columns, of a buffer of 40 */
    {"input %x : float32[12,40]\n%y0 = \"onnx_tile\"::Alloc@1() {shape=[12,40], dtype=1}\n"
     "%y = \"onnx_tile\"::While@1(%y0) {count=10, body=graph body {\n  input %i : int64[]\n  input "
     "%buffer : float32[12,40]\n"
     "  outer %x : float32[12,40]\n"
     "  %s : float32[12,4] = \"onnx_tile\"::Slice@1(%x, %i) {axes=[1], sizes=[4], "
     "starts=[0,4,8,12,16,20,24,28,32,36]}\n"
     "  %t : float32[12,4] = Neg(%s)\n"
     "  %next : float32[12,40] = \"onnx_tile\"::Deslice@1(%t, %buffer, %i) {axes=[1], "
     "starts=[0,4,8,12,16,20,24,28,32,36]}\n"
     "  output %next\n}}\noutput %y\n",
     "Neg", 10, 10 * 2 * 48 * F},
};

static void check_case(const expected *want)
{
    static float zeros[100 * 8];
    bench b;
    ot_nd in[2] = {{0}}, out[1] = {{0}};
    ot_device_error e;
    uint32_t n;
    open_with(&b, want->text, (ot_session_options){.place = &place});
    if (b.status != OT_OK) fail_msg("%s\n%s", b.d.message, want->text);
    for (uint32_t k = 0; k < ot_session_inputs(b.s); k++) {
        const ot_value *v = ot_session_input(b.s, k);
        ot_nd_set_dense(&in[k], v->dtype, (uint32_t)v->rank, v->dims);
        in[k].data = zeros;
    }
    assert_int_equal(ot_device_profile_start(dev, &e), OT_OK);
    run_ok(&b, in, out);
    ot_device_kernel_sum *sums = ot_device_profile_kernels(dev, &n);
    assert_int_equal(n, 1);
    assert_string_equal(sums[0].name, want->kernel);
    if (sums[0].n != want->count || sums[0].bytes != want->bytes)
        fail_msg("%s: %llu launches, %lld bytes, not %llu and %lld", want->kernel,
                 (unsigned long long)sums[0].n, (long long)sums[0].bytes,
                 (unsigned long long)want->count, (long long)want->bytes);
    free(sums);
    close_bench(&b);
}

static void bytes_are_those_that_move(void **state)
{
    NEEDS_DEVICE(state);
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) check_case(&CASES[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_those_that_move)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
