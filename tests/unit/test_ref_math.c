/* Reference kernels: element-wise operators, casts. */
#include "ref_math_check.h"

/* ---- element-wise ---- */

static void arithmetic_of_integers_wraps(void **state)
{
    (void)state;
    two(14, "int8[3] = [-128, 127, 100]", "int8[3] = [-1, 1, 100]", "Add(%a, %b)",
        "int8[3] = [127, -128, -56]");
    two(14, "int64[1] = [-9223372036854775808]", "int64[1] = [1]", "Sub(%a, %b)",
        "int64[1] = [9223372036854775807]");
    two(14, "int64[1] = [9223372036854775807]", "int64[1] = [3]", "Mul(%a, %b)",
        "int64[1] = [9223372036854775805]");
    two(14, "int64[3] = [-9223372036854775808, -7, 7]", "int64[3] = [-1, 2, -2]", "Div(%a, %b)",
        "int64[3] = [-9223372036854775808, -3, -3]");
    two(14, "int8[1] = [-128]", "int8[1] = [-1]", "Div(%a, %b)", "int8[1] = [-128]");
    two(14, "uint64[2] = [0xffffffffffffffff, 10]", "uint64[2] = [2, 3]", "Div(%a, %b)",
        "uint64[2] = [9223372036854775807, 3]");
    two(14, "uint8[2] = [3, 200]", "uint8[2] = [5, 100]", "Sub(%a, %b)", "uint8[2] = [254, 100]");
    one(13, "int32[2] = [-2147483648, -5]", "Abs(%a)", "int32[2] = [-2147483648, 5]");
    one(13, "int16[2] = [-32768, 5]", "Neg(%a)", "int16[2] = [-32768, -5]");
    one(13, "uint64[2] = [0xffffffffffffffff, 0]", "Sign(%a)", "uint64[2] = [1, 0]");
    one(13, "uint64[1] = [0xffffffffffffffff]", "Abs(%a)", "uint64[1] = [0xffffffffffffffff]");
}

static void what_has_no_result_is_a_line(void **state)
{
    (void)state;
    no(14, "int32[2] = [1, 2]", "int32[2] = [1, 0]", "Div(%a, %b)",
       "division of an integer by zero");
    no(14, "uint8[1] = [1]", "uint8[1] = [0]", "Mod(%a, %b)", "division of an integer by zero");
    no(14, "int64[1] = [0]", "int64[1] = [-1]", "Pow(%a, %b)", "negative power");
    no(11, "uint8[1] = [1]", "uint8[1] = [8]", "BitShift(%a, %b) {direction=\"LEFT\"}",
       "shift by 8");
    no(11, "uint64[1] = [1]", "uint64[1] = [0xffffffffffffffff]",
       "BitShift(%a, %b) {direction=\"RIGHT\"}", "shift by");
    no(11, "uint8[1] = [1]", "uint8[1] = [1]", "BitShift(%a, %b) {direction=\"UP\"}", "UP");
    no(14, "float32[1] = [1]", "float32[1] = [1]", "Mod(%a, %b)", "fmod");
    no(14, "float32[2] = [1, 2]", "float32[3] = [1, 2, 3]", "Add(%a, %b)", "do not agree");
    no(14, "float32[2] = [1, 2]", "float64[2] = [1, 2]", "Add(%a, %b)", "different element types");
    no(14, "bool[1] = [1]", "bool[1] = [1]", "Add(%a, %b)", "element type bool");
    no(14, "int32[1] = [1]", NULL, "Sqrt(%a)", "element type int32");
    no(14, "float32[1] = [1]", NULL, "Add(%a)", "needs 2");
    no(20, "float32[1] = [1]", NULL, "Gelu(%a) {approximate=\"sinh\"}", "sinh");
    no(16, "float32[1] = [1]", "float32[2] = [1, 2]", "PRelu(%a, %b)", "do not agree");
}

static void mod_follows_divisor_or_dividend(void **state)
{
    (void)state;
    two(13, "int32[4] = [-7, 7, -7, 7]", "int32[4] = [3, -3, -3, 3]", "Mod(%a, %b)",
        "int32[4] = [2, -2, -1, 1]");
    two(13, "int32[4] = [-7, 7, -7, 7]", "int32[4] = [3, -3, -3, 3]", "Mod(%a, %b) {fmod=1}",
        "int32[4] = [-1, 1, -1, 1]");
    two(13, "int64[1] = [-9223372036854775808]", "int64[1] = [-1]", "Mod(%a, %b)",
        "int64[1] = [0]");
    two(13, "float32[3] = [-7.5, 7.5, 1.0]", "float32[3] = [2.0, -2.0, 0.0]",
        "Mod(%a, %b) {fmod=1}", "float32[3] = [-1.5, 1.5, nan]");
    two(28, "float32[3] = [-7.5, 7.5, -2.0]", "float32[3] = [2.0, -2.0, inf]", "Mod(%a, %b)",
        "float32[3] = [0.5, -0.5, inf]");
    two(13, "uint64[1] = [0xffffffffffffffff]", "uint64[1] = [10]", "Mod(%a, %b)",
        "uint64[1] = [5]");
}

static void power_takes_two_types(void **state)
{
    (void)state;
    two(15, "int32[4] = [2, -3, -1, 5]", "int64[4] = [10, 3, -3, -1]", "Pow(%a, %b)",
        "int32[4] = [1024, -27, -1, 0]");
    two(15, "int64[2] = [3, 3]", "int64[2] = [39, 0]", "Pow(%a, %b)",
        "int64[2] = [4052555153018976267, 1]");
    two(15, "float32[3] = [2, 4, -8]", "int32[3] = [-1, 3, 2]", "Pow(%a, %b)",
        "float32[3] = [0.5, 64, 64]");
    two(15, "int32[2] = [4, 10]", "float32[2] = [0.5, 2.0]", "Pow(%a, %b)", "int32[2] = [2, 100]");
    two(15, "float16[2] = [3, 2]", "float32[1] = [2]", "Pow(%a, %b)", "float16[2] = [9, 4]");
}

static void bits_and_logic(void **state)
{
    (void)state;
    two(11, "uint8[3] = [1, 255, 128]", "uint8[3] = [7, 1, 0]",
        "BitShift(%a, %b) {direction=\"LEFT\"}", "uint8[3] = [128, 254, 128]");
    two(11, "uint64[2] = [0xffffffffffffffff, 8]", "uint64[2] = [63, 3]",
        "BitShift(%a, %b) {direction=\"RIGHT\"}", "uint64[2] = [1, 1]");
    two(28, "int8[4] = [-8, -8, 8, 1]", "int8[4] = [1, 8, -1, 7]",
        "BitShift(%a, %b) {direction=\"RIGHT\"}", "int8[4] = [-4, -1, 0, 0]");
    two(28, "int8[3] = [1, -1, 3]", "int8[3] = [7, 9, 1]", "BitShift(%a, %b) {direction=\"LEFT\"}",
        "int8[3] = [-128, 0, 6]");
    two(18, "int8[2] = [-1, 12]", "int8[2] = [6, 10]", "BitwiseAnd(%a, %b)", "int8[2] = [6, 8]");
    two(18, "uint16[2] = [1, 12]", "uint16[2] = [6, 10]", "BitwiseOr(%a, %b)",
        "uint16[2] = [7, 14]");
    two(18, "uint32[2] = [0xffffffff, 12]", "uint32[2] = [1, 10]", "BitwiseXor(%a, %b)",
        "uint32[2] = [0xfffffffe, 6]");
    one(18, "uint8[2] = [0, 240]", "BitwiseNot(%a)", "uint8[2] = [255, 15]");
    one(18, "int64[2] = [0, 5]", "BitwiseNot(%a)", "int64[2] = [-1, -6]");
    two(7, "bool[4] = [0, 0, 1, 1]", "bool[4] = [0, 1, 0, 1]", "And(%a, %b)",
        "bool[4] = [0, 0, 0, 1]");
    two(7, "bool[4] = [0, 0, 1, 1]", "bool[4] = [0, 1, 0, 1]", "Or(%a, %b)",
        "bool[4] = [0, 1, 1, 1]");
    two(7, "bool[4] = [0, 0, 1, 1]", "bool[4] = [0, 1, 0, 1]", "Xor(%a, %b)",
        "bool[4] = [0, 1, 1, 0]");
    one(7, "bool[2] = [0, 1]", "Not(%a)", "bool[2] = [1, 0]");
}

static void comparisons_know_signs_and_nan(void **state)
{
    (void)state;
    const char *u = "uint64[3] = [0xffffffffffffffff, 1, 2]", *v = "uint64[3] = [1, 1, 3]";
    two(13, u, v, "Greater(%a, %b)", "bool[3] = [1, 0, 0]");
    two(16, u, v, "GreaterOrEqual(%a, %b)", "bool[3] = [1, 1, 0]");
    two(13, u, v, "Less(%a, %b)", "bool[3] = [0, 0, 1]");
    two(16, u, v, "LessOrEqual(%a, %b)", "bool[3] = [0, 1, 1]");
    two(13, u, v, "Equal(%a, %b)", "bool[3] = [0, 1, 0]");
    two(13, "int64[2] = [9007199254740993, -1]", "int64[2] = [9007199254740992, 1]",
        "Greater(%a, %b)", "bool[2] = [1, 0]");
    const char *f = "float32[3] = [nan, 1, -0.0]", *g = "float32[3] = [nan, 2, 0.0]";
    two(16, f, g, "LessOrEqual(%a, %b)", "bool[3] = [0, 1, 1]");
    two(13, f, g, "Equal(%a, %b)", "bool[3] = [0, 0, 1]");
    two(13, "bool[2] = [1, 0]", "bool[1] = [1]", "Equal(%a, %b)", "bool[2] = [1, 0]");
}

static void broadcasting_goes_both_ways(void **state)
{
    (void)state;
    two(14, "int32[2,1] = [10, 20]", "int32[3] = [1, 2, 3]", "Add(%a, %b)",
        "int32[2,3] = [11, 12, 13, 21, 22, 23]");
    two(14, "int32[] = [5]", "int32[2,1] = [1, 2]", "Sub(%a, %b)", "int32[2,1] = [4, 3]");
    two(14, "float32[0,3] = []", "float32[3] = [1, 2, 3]", "Mul(%a, %b)", "float32[0,3] = []");
    two(14, "float32[1] = [2]", "float32[0] = []", "Mul(%a, %b)", "float32[0] = []");
    two(14, "int32[] = [5]", "int32[] = [1]", "Sub(%a, %b)", "int32[] = [4]");
    /* before version 7: an axis, or nothing */
    const char *a = "float32[2,2,3] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
    two(6, a, "float32[2] = [1, 2]", "Add(%a, %b) {broadcast=1, axis=1}",
        "float32[2,2,3] = [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]");
    two(6, a, "float32[2] = [1, 2]", "Add(%a, %b) {broadcast=1, axis=0}",
        "float32[2,2,3] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]");
    two(6, a, "float32[3] = [1, 2, 3]", "Sub(%a, %b) {broadcast=1}",
        "float32[2,2,3] = [-1, -2, -3, -1, -2, -3, -1, -2, -3, -1, -2, -3]");
    two(1, "float32[2] = [3, 4]", "float32[1] = [2]", "Pow(%a, %b) {broadcast=1}",
        "float32[2] = [9, 16]");
    no(6, "float32[2] = [3, 4]", "float32[1] = [2]", "Mul(%a, %b)", "broadcast");
    no(6, "float32[2] = [3, 4]", "float32[1] = [2]",
       "Mul(%a, %b) {broadcast=1, axis=9223372036854775807}", "axis");
    no(6, "float32[2] = [3, 4]", "float32[1,1] = [2]", "Mul(%a, %b) {broadcast=1}", "axis");
    two(6, "float32[1,2,2] = [-1, -2, -3, 4]", "float32[2] = [2, 10]", "PRelu(%a, %b)",
        "float32[1,2,2] = [-2, -4, -30, 4]");
    two(9, "float32[1,2,2] = [-1, -2, -3, 4]", "float32[2] = [2, 10]", "PRelu(%a, %b)",
        "float32[1,2,2] = [-2, -20, -6, 4]");
    two(9, "int32[2] = [-1, 4]", "int32[1] = [3]", "PRelu(%a, %b)", "int32[2] = [-3, 4]");
}

static void functions(void **state)
{
    (void)state;
    one(13, "float32[4] = [-1.5, 2.5, -0.0, inf]", "Abs(%a)", "float32[4] = [1.5, 2.5, 0, inf]");
    one(13, "float32[3] = [-1.5, 2.5, nan]", "Sign(%a)", "float32[3] = [-1, 1, nan]");
    one(13, "float32[3] = [-1.5, 2.5, -0.2]", "Floor(%a)", "float32[3] = [-2, 2, -1]");
    one(13, "float32[3] = [-1.5, 2.5, 0.2]", "Ceil(%a)", "float32[3] = [-1, 3, 1]");
    one(11, "float32[6] = [0.5, 1.5, 2.5, -0.5, -1.5, 2.7]", "Round(%a)",
        "float32[6] = [0, 2, 2, -0.0, -2, 3]");
    one(13, "float64[3] = [2, 0, -1]", "Sqrt(%a)", "float64[3] = [1.414213562373, 0, nan]");
    one(13, "float32[2] = [4, 0]", "Reciprocal(%a)", "float32[2] = [0.25, inf]");
    one(13, "float32[3] = [0, 1, 1000]", "Exp(%a)", "float32[3] = [1, 2.7182818, inf]");
    one(13, "float32[3] = [1, 10, 0]", "Log(%a)", "float32[3] = [0, 2.3025851, -inf]");
    one(13, "float32[2] = [0.5, -inf]", "Erf(%a)", "float32[2] = [0.5204999, -1]");
    one(9, "int32[1] = [5]", "Erf(%a)", "int32[1] = [0]");
    one(7, "float64[1] = [1]", "Sin(%a)", "float64[1] = [0.8414709848]");
    one(7, "float64[1] = [1]", "Cos(%a)", "float64[1] = [0.5403023059]");
    one(7, "float64[1] = [1]", "Tan(%a)", "float64[1] = [1.5574077247]");
    one(7, "float64[1] = [0.5]", "Asin(%a)", "float64[1] = [0.5235987756]");
    one(7, "float64[1] = [0.5]", "Acos(%a)", "float64[1] = [1.0471975512]");
    one(7, "float64[1] = [0.5]", "Atan(%a)", "float64[1] = [0.4636476090]");
    one(9, "float64[1] = [1]", "Sinh(%a)", "float64[1] = [1.1752011936]");
    one(9, "float64[1] = [1]", "Cosh(%a)", "float64[1] = [1.5430806348]");
    one(13, "float64[1] = [1]", "Tanh(%a)", "float64[1] = [0.7615941560]");
    one(9, "float64[1] = [1]", "Asinh(%a)", "float64[1] = [0.8813735870]");
    one(9, "float64[1] = [2]", "Acosh(%a)", "float64[1] = [1.3169578969]");
    one(9, "float64[1] = [0.5]", "Atanh(%a)", "float64[1] = [0.5493061443]");
    one(13, "float16[2] = [2, 0.3333]", "Neg(%a)", "float16[2] = [-2, -0.3333]");
    one(13, "bfloat16[2] = [2, 0.5]", "Exp(%a)", "bfloat16[2] = [7.389056, 1.648721]");
}

static void activations(void **state)
{
    (void)state;
    const char *x = "float64[3] = [-1, 0, 2]";
    one(13, x, "Sigmoid(%a)", "float64[3] = [0.2689414214, 0.5, 0.8807970780]");
    one(14, x, "Relu(%a)", "float64[3] = [0, 0, 2]");
    one(14, "int8[3] = [-128, 0, 2]", "Relu(%a)", "int8[3] = [0, 0, 2]");
    one(16, x, "LeakyRelu(%a) {alpha=0.5}", "float64[3] = [-0.5, 0, 2]");
    one(16, "float32[1] = [-1]", "LeakyRelu(%a)", "float32[1] = [-0.01]");
    one(10, x, "ThresholdedRelu(%a) {alpha=2.0}", "float64[3] = [0, 0, 0]");
    one(10, x, "ThresholdedRelu(%a)", "float64[3] = [0, 0, 2]");
    one(6, x, "Elu(%a) {alpha=2.0}", "float64[3] = [-1.2642411177, 0, 2]");
    one(6, "float32[2] = [-1, 2]", "Selu(%a)", "float32[2] = [-1.1113307, 2.1014020]");
    one(1, "float32[2] = [-1, 2]", "Selu(%a)", "float32[2] = [-1.1112874, 2.1014]");
    one(6, "float32[2] = [-1, 2]", "Selu(%a) {alpha=1.0, gamma=2.0}",
        "float32[2] = [-1.2642411, 4]");
    one(12, "float32[2] = [-1, 2]", "Celu(%a) {alpha=2.0}", "float32[2] = [-0.7869387, 2]");
    one(20, x, "Gelu(%a)", "float64[3] = [-0.1586552539, 0, 1.9544997361]");
    one(20, x, "Gelu(%a) {approximate=\"tanh\"}", "float64[3] = [-0.1588080094, 0, 1.9545976940]");
    one(6, "float32[4] = [-3, 0, 2, 3]", "HardSigmoid(%a)", "float32[4] = [0, 0.5, 0.9, 1]");
    one(6, "float32[2] = [-1, 2]", "HardSigmoid(%a) {alpha=0.5, beta=0.6}",
        "float32[2] = [0.1, 1]");
    one(14, "float64[4] = [-4, -1, 1, 4]", "HardSwish(%a)",
        "float64[4] = [-0.0, -0.3333333333, 0.6666666667, 4]");
    one(18, x, "Mish(%a)", "float64[3] = [-0.3034014614, 0, 1.9439589595]");
    one(1, "float64[3] = [-1, 0, 1000]", "Softplus(%a)",
        "float64[3] = [0.3132616875, 0.6931471806, 1000]");
    one(1, "float64[3] = [-1, 3, -inf]", "Softsign(%a)", "float64[3] = [-0.5, 0.75, -1]");
    one(24, x, "Swish(%a) {alpha=2.0}", "float64[3] = [-0.1192029220, 0, 1.9640275801]");
    two(28, x, "float64[3] = [2, 5, -1]", "SwiGLU(%a, %b) {alpha=2.0}",
        "float64[3] = [-0.2384058440, 0, -1.9640275801]");
    two(28, "float16[2] = [-1, 2]", "float16[2] = [1, 0.5]", "SwiGLU(%a, %b)",
        "float16[2] = [-0.26904297, 0.88085938]");
    no(28, "float32[2,2] = [1, 2, 3, 4]", "float32[2] = [1, 2]", "SwiGLU(%a, %b)",
       "different shapes");
    no(28, "int32[1] = [1]", "int32[1] = [1]", "SwiGLU(%a, %b)", "int32");
    one(9, "float32[3] = [-2, 0.5, 2]", "Shrink(%a) {lambd=1.5, bias=1.5}",
        "float32[3] = [-0.5, 0, 0.5]");
    one(7, "float32[2] = [-2, 3]", "Affine(%a) {alpha=2.0, beta=0.5}", "float32[2] = [-3.5, 6.5]");
    one(7, "float32[2] = [-2, 3]", "Affine(%a)", "float32[2] = [-2, 3]");
    one(7, "float32[2,3,1,1] = [1, 2, 3, 4, 5, 6]",
        "ImageScaler(%a) {scale=2.0, bias=[1.0, 0.0, -1.0]}",
        "float32[2,3,1,1] = [3, 4, 5, 9, 10, 11]");
    no(7, "float32[1,2,1,1] = [1, 2]", NULL, "ImageScaler(%a) {bias=[1.0]}", "each of 2 channels");
    no(7, "float32[2] = [1, 2]", NULL, "ImageScaler(%a) {bias=[1.0, 2.0]}", "rank 1");
    one(9, "int32[3] = [-2, 0, 2]", "Shrink(%a) {lambd=1.0, bias=1.0}", "int32[3] = [-1, 0, 1]");
}

static void clip_of_all_versions(void **state)
{
    (void)state;
    const char *x = "float32[3] = [-5, 0.5, 5]";
    one(6, x, "Clip(%a) {min=-1.0, max=1.0}", "float32[3] = [-1, 0.5, 1]");
    one(6, "float32[2] = [-inf, inf]", "Clip(%a)",
        "float32[2] = [-3.4028234663852886e+38, 3.4028234663852886e+38]");
    one(1, "float32[2] = [-inf, 7]", "Clip(%a) {max=1.0}", "float32[2] = [-inf, 1]");
    three(13, x, "float32[] = [-1]", "float32[] = [1]", "Clip(%a, %b, %c)",
          "float32[3] = [-1, 0.5, 1]");
    /* the upper limit wins */
    three(13, x, "float32[] = [2]", "float32[] = [1]", "Clip(%a, %b, %c)",
          "float32[3] = [1, 1, 1]");
    two(13, x, "float32[] = [1]", "Clip(%a, _, %b)", "float32[3] = [-5, 0.5, 1]");
    one(13, x, "Clip(%a)", "float32[3] = [-5, 0.5, 5]");
    two(13, "float32[2] = [nan, -inf]", "float32[] = [1]", "Clip(%a, %b)", "float32[2] = [nan, 1]");
    three(12, "uint64[2] = [0xffffffffffffffff, 1]", "uint64[] = [2]",
          "uint64[] = [0xfffffffffffffff0]", "Clip(%a, %b, %c)",
          "uint64[2] = [0xfffffffffffffff0, 2]");
    no(13, x, "float32[2] = [1, 2]", "Clip(%a, %b)", "not one number");
    no(13, x, "float64[] = [1]", "Clip(%a, %b)", "different element types");
}

static void several_inputs(void **state)
{
    (void)state;
    const char *a = "float32[2] = [1, nan]", *b = "float32[2,1] = [3, -4]", *c = "float32[] = [2]";
    three(13, a, b, c, "Max(%a, %b, %c)", "float32[2,2] = [3, nan, 2, nan]");
    three(13, a, b, c, "Min(%a, %b, %c)", "float32[2,2] = [1, nan, -4, nan]");
    three(13, a, b, c, "Sum(%a, %b, %c)", "float32[2,2] = [6, nan, -1, nan]");
    three(13, "float32[1] = [1]", "float32[1] = [3]", "float32[1] = [5]", "Mean(%a, %b, %c)",
          "float32[1] = [3]");
    one(13, "float32[2] = [1, -2]", "Mean(%a)", "float32[2] = [1, -2]");
    two(13, "uint64[2] = [0xffffffffffffffff, 1]", "uint64[2] = [1, 2]", "Max(%a, %b)",
        "uint64[2] = [0xffffffffffffffff, 2]");
    two(13, "int8[2] = [-1, 1]", "int8[2] = [1, 2]", "Min(%a, %b)", "int8[2] = [-1, 1]");
    /* rounded once: 2048 + 1 + 1 in float16 */
    three(13, "float16[1] = [2048]", "float16[1] = [1]", "float16[1] = [1]", "Sum(%a, %b, %c)",
          "float16[1] = [2050]");
    three(16, "bool[2,1] = [1, 0]", "int64[2] = [1, 2]", "int64[] = [9]", "Where(%a, %b, %c)",
          "int64[2,2] = [1, 2, 9, 9]");
    three(16, "bool[2] = [1, 0]", "bool[2] = [1, 1]", "bool[1] = [0]", "Where(%a, %b, %c)",
          "bool[2] = [1, 0]");
    three(16, "bool[2] = [1, 0]", "float64[1] = [1]", "float64[1] = [0.5]", "Where(%a, %b, %c)",
          "float64[2] = [1, 0.5]");
}

static void nan_and_infinity(void **state)
{
    (void)state;
    const char *x = "float16[4] = [nan, inf, -inf, 1]";
    one(13, x, "IsNaN(%a)", "bool[4] = [1, 0, 0, 0]");
    one(20, x, "IsInf(%a)", "bool[4] = [0, 1, 1, 0]");
    one(20, x, "IsInf(%a) {detect_negative=0}", "bool[4] = [0, 1, 0, 0]");
    one(20, x, "IsInf(%a) {detect_positive=0}", "bool[4] = [0, 0, 1, 0]");
}

/* ---- Cast ---- */

static void casts(void **state)
{
    (void)state;
    const char *x = "float32[6] = [1.9, -1.9, 300, -129, nan, 8589934592]";
    one(13, x, "Cast(%a) {to=6}", "int32[6] = [1, -1, 300, -129, -2147483648, -2147483648]");
    one(13, x, "Cast(%a) {to=7}",
        "int64[6] = [1, -1, 300, -129, -9223372036854775808, 8589934592]");
    one(13, x, "Cast(%a) {to=3}", "int8[6] = [1, -1, 44, 127, 0, 0]");
    one(13, x, "Cast(%a) {to=2}", "uint8[6] = [1, 255, 44, 127, 0, 0]");
    one(13, "float64[3] = [1.8e19, -1, 1e30]", "Cast(%a) {to=13}",
        "uint64[3] = [18000000000000000000, 0xffffffffffffffff, 0]");
    one(13, "float32[4] = [0, -0.0, nan, 0.1]", "Cast(%a) {to=9}", "bool[4] = [0, 0, 1, 1]");
    one(13, "int32[3] = [200, -1, 70000]", "Cast(%a) {to=3}", "int8[3] = [-56, -1, 112]");
    one(13, "int64[2] = [-1, 0]", "Cast(%a) {to=13}", "uint64[2] = [0xffffffffffffffff, 0]");
    one(13, "uint64[1] = [0xffffffffffffffff]", "Cast(%a) {to=11}",
        "float64[1] = [18446744073709551616.0]");
    one(13, "int64[3] = [0, 5, -3]", "Cast(%a) {to=9}", "bool[3] = [0, 1, 1]");
    one(13, "bool[2] = [0, 1]", "Cast(%a) {to=1}", "float32[2] = [0, 1]");
    one(13, "bool[2] = [0, 1]", "Cast(%a) {to=7}", "int64[2] = [0, 1]");
    one(13, "float64[2] = [1e300, -1e-300]", "Cast(%a) {to=1}", "float32[2] = [inf, -0.0]");
    one(13, "float32[3] = [70000, 1.0009, 1e-9]", "Cast(%a) {to=10}",
        "float16[3] = [inf, 1.0009765625, 0]");
    one(13, "float32[2] = [1.00390625, 1.01171875]", "Cast(%a) {to=16}",
        "bfloat16[2] = [1, 1.015625]");
    one(1, "float32[1] = [2.5]", "Cast(%a) {to=\"INT32\"}", "int32[1] = [2]");
    two(15, "int32[2] = [1, 0]", "bool[0] = []", "CastLike(%a, %b)", "bool[2] = [1, 0]");
    /* one rounding from a number that double cannot hold: 2^54 + 2^30 + 1 lies just above the
     * middle of two float32 */
    one(13, "int64[1] = [18014399583223809]", "Cast(%a) {to=1}",
        "float32[1] = [18014400656965632.0]");
    no(13, "float32[1] = [1]", NULL, "Cast(%a)", "to");
    no(13, "float32[1] = [1]", NULL, "Cast(%a) {to=8}", "string");
    no(13, "float32[1] = [1]", NULL, "Cast(%a) {to=-9223372036854775808}", "no data type");
}

/* There and back: low bits, with their sign; floats are rounded, halves away from zero. */
static void casts_below_a_byte(void **state)
{
    (void)state;
    const char *x = "float32[8] = [7, 8, -8.5, 2.5, -2.4, 300, nan, 1e10]";
    one(21, x, "Cast(%c) {to=6}\n%c = Cast(%a) {to=22}", "int32[8] = [7, -8, 7, 3, -2, -4, 0, 0]");
    one(21, x, "Cast(%c) {to=6}\n%c = Cast(%a) {to=21}", "int32[8] = [7, 8, 7, 3, 14, 12, 0, 0]");
    const char *i = "int32[6] = [-3, -2, 1, 2, 7, 200]";
    one(25, i, "Cast(%c) {to=1}\n%c = Cast(%a) {to=26}", "float32[6] = [1, -2, 1, -2, -1, 0]");
    one(25, i, "Cast(%c) {to=1}\n%c = Cast(%a) {to=25}", "float32[6] = [1, 2, 1, 2, 3, 0]");
    const char *f = "float32[7] = [2.5, 5, -7, 0.25, 0.75, -0.2, inf]";
    one(23, f, "Cast(%c) {to=1}\n%c = Cast(%a) {to=23}", "float32[7] = [2, 4, -6, 0, 1, -0.0, 6]");
}

static void casts_to_eight_bits(void **state)
{
    (void)state;
    const char *x = "float32[8] = [0, -0.0, 1, -1.0625, 0.001953125, 500, inf, nan]";
    one(19, x, "Cast(%a) {to=17}", "float8_e4m3fn[8] = [0, 128, 56, 184, 1, 126, 126, 127]");
    one(19, x, "Cast(%a) {to=17, saturate=0}",
        "float8_e4m3fn[8] = [0, 128, 56, 184, 1, 127, 127, 127]");
    one(19, x, "Cast(%a) {to=18}", "float8_e4m3fnuz[8] = [0, 0, 64, 192, 2, 127, 127, 128]");
    one(19, x, "Cast(%a) {to=19}", "float8_e5m2[8] = [0, 128, 60, 188, 24, 96, 123, 127]");
    one(19, x, "Cast(%a) {to=19, saturate=0}",
        "float8_e5m2[8] = [0, 128, 60, 188, 24, 96, 124, 127]");
    one(19, x, "Cast(%a) {to=20}", "float8_e5m2fnuz[8] = [0, 0, 64, 192, 28, 100, 127, 128]");
    one(24, "float32[5] = [1, 1.25, 3, 0, nan]", "Cast(%a) {to=24}",
        "float8_e8m0fnu[5] = [127, 128, 129, 0, 255]");
    one(24, "float32[4] = [1.25, 1.5, 3, 1.75]", "Cast(%a) {to=24, round_mode=\"nearest\"}",
        "float8_e8m0fnu[4] = [127, 128, 129, 128]");
    one(24, "float32[2] = [1.75, 0.7]", "Cast(%a) {to=24, round_mode=\"down\"}",
        "float8_e8m0fnu[2] = [127, 126]");
    one(19, "float8_e4m3fn[4] = [56, 1, 254, 127]", "Cast(%a) {to=1}",
        "float32[4] = [1, 0.001953125, -448, nan]");
    one(19, "float8_e5m2[4] = [60, 1, 252, 126]", "Cast(%a) {to=1}",
        "float32[4] = [1, 1.52587890625e-05, -inf, nan]");
    one(19, "float8_e5m2fnuz[3] = [64, 1, 128]", "Cast(%a) {to=1}",
        "float32[3] = [1, 7.62939453125e-06, nan]");
}

/* ---- BatchNormalization, Dropout ---- */

#define CHANNELS                                                      \
    "init %x : float32[2,2,2] = [1, 2, 3, 4, 5, 6, 7, 8]\n"           \
    "init %s : float32[2] = [1, 2]\ninit %b : float32[2] = [0, 10]\n" \
    "init %m : float32[2] = [1, 2]\ninit %v : float32[2] = [4, 1]\n"

static void batch_normalization(void **state)
{
    (void)state;
    right(15, CHANNELS "%y = BatchNormalization(%x, %s, %b, %m, %v) {epsilon=0.0}\noutput %y\n"
                       "init %w : float32[2,2,2] = [0, 0.5, 12, 14, 2, 2.5, 20, 22]\noutput %w");
    /* training: means 3.5 and 5.5, variances 4.25 */
    right(15,
          CHANNELS "%y, %m2, %v2 = BatchNormalization(%x, %s, %b, %m, %v) {training_mode=1, "
                   "momentum=0.5, epsilon=0.0}\n"
                   "init %w : float32[2,2,2] = [-1.2126781, -0.7276069, 7.5746437, 8.5447862, "
                   "0.7276069, 1.2126781, 11.4552138, 12.4253563]\n"
                   "init %wm : float32[2] = [2.25, 3.75]\ninit %wv : float32[2] = [4.125, 2.625]\n"
                   "output %y\noutput %w\noutput %m2\noutput %wm\noutput %v2\noutput %wv");
    right(9,
          CHANNELS "%y, %m2, _, %sm, %sv = BatchNormalization(%x, %s, %b, %m, %v) {momentum=0.5}\n"
                   "init %wm : float32[2] = [2.25, 3.75]\ninit %wsm : float32[2] = [3.5, "
                   "5.5]\ninit %wsv : float32[2] = [4.25, 4.25]\n"
                   "output %m2\noutput %wm\noutput %sm\noutput %wsm\noutput %sv\noutput %wsv");
    /* features instead of channels */
    right(7, "init %x : float32[2,1,2] = [1, 2, 3, 4]\ninit %s : float32[1,2] = [1, 2]\ninit %b : "
             "float32[1,2] = [0, 10]\n"
             "init %m : float32[1,2] = [1, 2]\ninit %v : float32[1,2] = [4, 1]\n"
             "%y = BatchNormalization(%x, %s, %b, %m, %v) {spatial=0, epsilon=0.0}\noutput %y\n"
             "init %w : float32[2,1,2] = [0, 10, 1, 14]\noutput %w");
    right(15, "init %x : float32[3] = [1, 2, 5]\ninit %p : float32[1] = [1]\n"
              "%y = BatchNormalization(%x, %p, %p, %p, %p) {epsilon=3.0}\noutput %y\ninit %w : "
              "float32[3] = [1, 1.5, 3]\noutput %w");
    right(15, "init %x : float32[1099511627776,1,0] = []\ninit %p : float32[1] = [1]\n"
              "%y, %m, %v = BatchNormalization(%x, %p, %p, %p, %p) {training_mode=1}\noutput "
              "%m\ninit %w : float32[1] = [nan]\noutput %w");
    refused(15, CHANNELS "%y, %m2 = BatchNormalization(%x, %s, %b, %m, %v)\noutput %y\noutput %m2",
            "training_mode");
    refused(
        15,
        CHANNELS
        "init %q : float32[3] = [1, 2, 3]\n%y = BatchNormalization(%x, %s, %q, %m, %v)\noutput %y",
        "input 2");
}

static void dropout_is_for_inference(void **state)
{
    (void)state;
    const char *x = "init %x : float32[2] = [1, -2]\n";
    char text[1000];
    snprintf(text, sizeof text,
             "%s%%y, %%m = Dropout(%%x)\ninit %%w : bool[2] = [1, 1]\noutput %%y\noutput "
             "%%x\noutput %%m\noutput %%w",
             x);
    right(13, text);
    snprintf(text, sizeof text,
             "%s%%y, %%m = Dropout(%%x)\ninit %%w : float32[2] = [1, 1]\noutput %%y\noutput "
             "%%x\noutput %%m\noutput %%w",
             x);
    right(7, text);
    snprintf(text, sizeof text,
             "%sinit %%r : float32[] = [0.0]\ninit %%t : bool[] = [1]\n%%y = Dropout(%%x, %%r, "
             "%%t)\noutput %%y\noutput %%x",
             x);
    right(13, text);
    snprintf(text, sizeof text,
             "%sinit %%r : float32[] = [0.5]\ninit %%t : bool[] = [1]\n%%y = Dropout(%%x, %%r, "
             "%%t)\noutput %%y\noutput %%x",
             x);
    refused(13, text, "training");
    snprintf(text, sizeof text, "%s%%y = Dropout(%%x)\noutput %%y\noutput %%x", x);
    refused(6, text, "training");
    snprintf(text, sizeof text, "%s%%y = Dropout(%%x) {is_test=1}\noutput %%y\noutput %%x", x);
    right(6, text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_of_integers_wraps),
        cmocka_unit_test(what_has_no_result_is_a_line),
        cmocka_unit_test(mod_follows_divisor_or_dividend),
        cmocka_unit_test(power_takes_two_types),
        cmocka_unit_test(bits_and_logic),
        cmocka_unit_test(comparisons_know_signs_and_nan),
        cmocka_unit_test(broadcasting_goes_both_ways),
        cmocka_unit_test(functions),
        cmocka_unit_test(activations),
        cmocka_unit_test(clip_of_all_versions),
        cmocka_unit_test(several_inputs),
        cmocka_unit_test(nan_and_infinity),
        cmocka_unit_test(casts),
        cmocka_unit_test(casts_below_a_byte),
        cmocka_unit_test(casts_to_eight_bits),
        cmocka_unit_test(batch_normalization),
        cmocka_unit_test(dropout_is_for_inference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
