/* What ONNX Runtime holds of operators between quantizers: chains of one operator, measured. */
#include "shaped_model.h"
#include "alloc_sim/alloc_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define N              (64 * 256 * 256) /* elements of what each operator makes */
#define QUANTIZE(x, y) "  %" y " = QuantizeLinear(%" x ", %s, %z)\n"
#define STEP(op, k, l)                                  \
    "  %d" #k " = DequantizeLinear(%q" #k ", %s, %z)\n" \
    "  %y" #k " = " op "\n" QUANTIZE("y" #k, "q" #l)
#define CHAIN(op) STEP(op("0"), 0, 1) STEP(op("1"), 1, 2) STEP(op("2"), 2, 3)

#define CONV(k)    "Conv(%d" k ", %w) {pads=[1,1,1,1]}"
#define ADD(k)     "Add(%d" k ", %d0)"
#define SOFTMAX(k) "Softmax(%d" k ")"
#define LEAKY(k)   "LeakyRelu(%d" k ")"
#define SQRT(k)    "Sqrt(%d" k ")"

static ot_sim_figures figures(const char *chain, int kernel)
{
    char text[4096];
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,64,256,256]\n"
             "  init %%s : float32[] = fill 1\n  init %%z : uint8[] = fill 128\n"
             "  init %%wq : int8[64,64,%d,%d] = fill 3\n  init %%wz : int8[] = fill 0\n"
             "  %%w = DequantizeLinear(%%wq, %%s, %%wz)\n"
             "  %%q0 = QuantizeLinear(%%x, %%s, %%z)\n%s"
             "  output %%q3\n}\n",
             kernel, kernel, chain);
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    ot_model_free(m);
    return f;
}

/* Values that exist at once, in bytes for each element, in a session without an arena of ONNX
 * Runtime 1.31.1: a convolution's addresses are 9 * 8 bytes a pixel of 64 channels. */
static void operators_hold_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        const char *chain;
        double values;
    } ROWS[] = {
        {CHAIN(CONV), 3.24}, {CHAIN(ADD), 3.03},  {CHAIN(SOFTMAX), 2.03},
        {CHAIN(LEAKY), 2.0}, {CHAIN(SQRT), 9.03},
    };
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++) {
        const double grown = (double)figures(ROWS[k].chain, 3).growth / N;
        /* the second run takes its values in one block, beside those of the first */
        if (grown < 0.9 * ROWS[k].values || grown > 2.2 * ROWS[k].values)
            fail_msg("row %zu: %.2f", k, grown);
    }
}

/* Bytes that three convolutions in a row take, for each element of a result. */
static double three_convolutions(const char *x, const char *w, int kernel, int groups)
{
    char text[4096];
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%q0 : %s[1,64,256,256]\n"
             "  init %%s : float32[] = fill 1\n  init %%z : %s[] = fill 0\n"
             "  init %%w : %s[64,%d,%d,%d] = fill 3\n  init %%v : %s[] = fill %d\n",
             x, x, w, 64 / groups, kernel, kernel, w, strcmp(w, "int8") == 0 ? 0 : 128);
    for (int k = 0; k < 3; k++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n,
                 "  %%q%d = QLinearConv(%%q%d, %%s, %%z, %%w, %%s, %%v, %%s, %%z) "
                 "{pads=[%d,%d,%d,%d], group=%d}\n",
                 k + 1, k, kernel / 2, kernel / 2, kernel / 2, kernel / 2, groups);
    }
    const size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "  output %%q3\n}\n");
    ot_diag d;
    ot_sim_figures f;
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f), OT_OK);
    ot_model_free(m);
    return (double)f.growth / N;
}

/* Weights around 0 are taken as they are; else windows are unfolded, and sums have 32 bits.
 * Measured as above. */
static void convolutions_unfold_by_their_weights(void **state)
{
    (void)state;
    static const struct {
        const char *x, *w;
        int kernel, groups;
        double values;
    } ROWS[] = {
        {"uint8", "int8", 3, 1, 3.21},  {"uint8", "uint8", 3, 1, 15.11},
        {"int8", "int8", 3, 1, 19.08},  {"int8", "int8", 1, 1, 10.07},
        {"uint8", "int8", 3, 64, 4.30}, {"int8", "int8", 3, 64, 11.19},
        {"int8", "int8", 3, 4, 12.32},
    };
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++) {
        const double grown = three_convolutions(ROWS[k].x, ROWS[k].w, ROWS[k].kernel,
                                                ROWS[k].groups);
        if (grown < 0.6 * ROWS[k].values || grown > 2.2 * ROWS[k].values)
            fail_msg("row %zu: %.2f", k, grown);
    }
}

/* What is read by another operator, too, exists in float32. */
static void other_readers_take_floats(void **state)
{
    (void)state;
    const int64_t bytes = figures(CHAIN(LEAKY), 3).growth;
    const int64_t floats = figures(CHAIN(LEAKY) "  %o = Sqrt(%y1)\n  output %o\n", 3).growth;
    assert_true(floats > bytes + 6 * N);
}

/* Weights are packed as they are in the file. */
static void weights_are_loaded_as_bytes(void **state)
{
    (void)state;
    const int64_t less = figures(CHAIN(CONV), 1).loaded, more = figures(CHAIN(CONV), 33).loaded;
    const int64_t bytes = 64 * 64 * (33 * 33 - 1); /* and what loading frees of them */
    assert_in_range(more - less, bytes, 3 * bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_hold_what_was_measured),
        cmocka_unit_test(convolutions_unfold_by_their_weights),
        cmocka_unit_test(other_readers_take_floats),
        cmocka_unit_test(weights_are_loaded_as_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
