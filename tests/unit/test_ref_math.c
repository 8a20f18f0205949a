/* Reference kernels: element-wise operators and reductions, against results worked out by hand from the operators' definitions.
 *
 * A case is a graph of initializers, one or more nodes, and pairs of outputs: what a node made and what it should have made.
 */
#include "engine_check.h"

#include <math.h>

/* ---- running a case ---- */

static ot_status run_text(bench *b, int opset, const char *graph, ot_nd *out, uint32_t *n_out)
{
    char text[40000];
    *b = (bench){0};
    snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n%s\n}\n", opset, graph);
    if (ot_text_parse(text, strlen(text), &b->d, &b->m) != OT_OK) fail_msg("%s: %s", graph, b->d.message);
    ot_session_options o = {.reference = true, .poison = true};
    ot_status s = ot_session_new(b->m, &o, &b->d, &b->s);
    if (s != OT_OK) return s;
    *n_out = ot_session_outputs(b->s);
    assert_in_range(*n_out, 1, 8);
    return ot_session_run(b->s, NULL, out, &b->d);
}

static void check_same(const char *graph, const ot_nd *got, const ot_nd *want)
{
    int64_t n;
    if (got->dtype != want->dtype) fail_msg("%s: %s, not %s", graph, ot_dtype_name(got->dtype), ot_dtype_name(want->dtype));
    if (!ot_nd_same_shape(got, want->dtype, want->rank, want->dims)) fail_msg("%s: wrong shape", graph);
    assert_true(ot_nd_elems(got, &n));
    bool fractions = want->dtype == OT_F32 || want->dtype == OT_F64 || want->dtype == OT_F16 || want->dtype == OT_BF16;
    for (int64_t k = 0; k < n && fractions; k++) {
        double g = ot_nd_double(got, k), w = ot_nd_double(want, k), slack = want->dtype == OT_F64 ? 1e-6 : 1e-5;
        if (isnan(w) ? !isnan(g) : !(g == w || fabs(g - w) <= slack * fabs(w)))
            fail_msg("%s: element %d is %.9g, not %.9g", graph, (int)k, g, w);
        if (w == 0 && signbit(w) && !signbit(g)) fail_msg("%s: element %d is 0, not -0", graph, (int)k);
    }
    if (!fractions && n && memcmp(got->data, want->data, (size_t)n * ot_dtype_bytes(want->dtype)) != 0) {
        for (int64_t k = 0; k < n; k++)
            if (ot_nd_int(got, k) != ot_nd_int(want, k))
                fail_msg("%s: element %d is %lld, not %lld", graph, (int)k, (long long)ot_nd_int(got, k),
                         (long long)ot_nd_int(want, k));
        fail_msg("%s: bytes differ", graph);
    }
}

/* Outputs 2k and 2k + 1 are the same. */
static void right(int opset, const char *graph)
{
    bench b;
    ot_nd out[8] = {0};
    uint32_t n = 0;
    if (run_text(&b, opset, graph, out, &n) != OT_OK) fail_msg("%s: %s", graph, b.d.message);
    assert_int_equal(n % 2, 0);
    for (uint32_t k = 0; k < n; k += 2) check_same(graph, &out[k], &out[k + 1]);
    close_bench(&b);
}

/* One line that says `why`. */
static void refused(int opset, const char *graph, const char *why)
{
    bench b;
    ot_nd out[8] = {0};
    uint32_t n = 0;
    ot_status s = run_text(&b, opset, graph, out, &n);
    if (s != OT_E_INPUT) fail_msg("%s: status %d", graph, (int)s);
    if (!strstr(b.d.message, why)) fail_msg("%s: '%s' does not say '%s'", graph, b.d.message, why);
    close_bench(&b);
}

/* y = node, of inits a, b, c; it is `want` (type and contents). NULL: no such operand. */
static const char *graph_of(char *text, size_t size, const char *a, const char *b, const char *c, const char *node,
                            const char *want)
{
    const char *operands[] = {a, b, c};
    size_t at = 0;
    for (int k = 0; k < 3; k++)
        if (operands[k]) at += (size_t)snprintf(text + at, size - at, "init %%%c : %s\n", 'a' + k, operands[k]);
    at += (size_t)snprintf(text + at, size - at, "%%y = %s\noutput %%y\n", node);
    if (want) snprintf(text + at, size - at, "init %%w : %s\noutput %%w", want);
    return text;
}

static void one(int opset, const char *a, const char *node, const char *want)
{
    char text[20000];
    right(opset, graph_of(text, sizeof text, a, NULL, NULL, node, want));
}
static void two(int opset, const char *a, const char *b, const char *node, const char *want)
{
    char text[20000];
    right(opset, graph_of(text, sizeof text, a, b, NULL, node, want));
}
static void three(int opset, const char *a, const char *b, const char *c, const char *node, const char *want)
{
    char text[20000];
    right(opset, graph_of(text, sizeof text, a, b, c, node, want));
}

/* The same refused by the kernel itself: what it is given are inputs of unknown shape, so that nothing is found before it runs. */
static void no(int opset, const char *a, const char *b, const char *node, const char *why)
{
    char text[2000];
    const char *operands[] = {a, b};
    ot_nd in[2] = {0}, out[8] = {0};
    ot_diag d = {0};
    ot_model *contents;
    snprintf(text, sizeof text, "model ir 8 opset 13\ngraph main {\ninit %%a : %s\ninit %%b : %s\n}\n", a, b ? b : "int64[0] = []");
    if (ot_text_parse(text, strlen(text), &d, &contents) != OT_OK) fail_msg("%s: %s", text, d.message);
    size_t at = (size_t)snprintf(text, sizeof text, "model ir 8 opset %d\ngraph main {\n", opset);
    for (int k = 0; k < 2 && operands[k]; k++) {
        const ot_tensor *t = contents->graph->values[ot_value_find(contents->graph, k ? "b" : "a")].init;
        ot_nd_set_dense(&in[k], t->dtype, t->rank, t->dims);
        in[k].data = (void *)t->data;
        at += (size_t)snprintf(text + at, sizeof text - at, "input %%%c : %s\n", 'a' + k, ot_dtype_name(t->dtype));
    }
    snprintf(text + at, sizeof text - at, "%%y = %s\noutput %%y\n}\n", node);
    bench run = {0};
    if (ot_text_parse(text, strlen(text), &run.d, &run.m) != OT_OK) fail_msg("%s: %s", text, run.d.message);
    ot_session_options o = {.reference = true, .poison = true};
    ot_status s = ot_session_new(run.m, &o, &run.d, &run.s);
    if (s == OT_OK) s = ot_session_run(run.s, in, out, &run.d);
    if (s != OT_E_INPUT) fail_msg("%s: status %d", text, (int)s);
    if (!strstr(run.d.message, why)) fail_msg("%s: '%s' does not say '%s'", text, run.d.message, why);
    close_bench(&run);
    ot_model_free(contents);
}

/* ---- element-wise ---- */

static void arithmetic_of_integers_wraps(void **state)
{
    (void)state;
    two(14, "int8[3] = [-128, 127, 100]", "int8[3] = [-1, 1, 100]", "Add(%a, %b)", "int8[3] = [127, -128, -56]");
    two(14, "int64[1] = [-9223372036854775808]", "int64[1] = [1]", "Sub(%a, %b)", "int64[1] = [9223372036854775807]");
    two(14, "int64[1] = [9223372036854775807]", "int64[1] = [3]", "Mul(%a, %b)", "int64[1] = [9223372036854775805]");
    two(14, "int64[3] = [-9223372036854775808, -7, 7]", "int64[3] = [-1, 2, -2]", "Div(%a, %b)",
        "int64[3] = [-9223372036854775808, -3, -3]");
    two(14, "int8[1] = [-128]", "int8[1] = [-1]", "Div(%a, %b)", "int8[1] = [-128]");
    two(14, "uint64[2] = [0xffffffffffffffff, 10]", "uint64[2] = [2, 3]", "Div(%a, %b)", "uint64[2] = [9223372036854775807, 3]");
    two(14, "uint8[2] = [3, 200]", "uint8[2] = [5, 100]", "Sub(%a, %b)", "uint8[2] = [254, 100]");
    one(13, "int32[2] = [-2147483648, -5]", "Abs(%a)", "int32[2] = [-2147483648, 5]");
    one(13, "int16[2] = [-32768, 5]", "Neg(%a)", "int16[2] = [-32768, -5]");
    one(13, "uint64[2] = [0xffffffffffffffff, 0]", "Sign(%a)", "uint64[2] = [1, 0]");
    one(13, "uint64[1] = [0xffffffffffffffff]", "Abs(%a)", "uint64[1] = [0xffffffffffffffff]");
}

static void what_has_no_result_is_a_line(void **state)
{
    (void)state;
    no(14, "int32[2] = [1, 2]", "int32[2] = [1, 0]", "Div(%a, %b)", "division of an integer by zero");
    no(14, "uint8[1] = [1]", "uint8[1] = [0]", "Mod(%a, %b)", "division of an integer by zero");
    no(14, "int64[1] = [0]", "int64[1] = [-1]", "Pow(%a, %b)", "negative power");
    no(11, "uint8[1] = [1]", "uint8[1] = [8]", "BitShift(%a, %b) {direction=\"LEFT\"}", "shift by 8");
    no(11, "uint64[1] = [1]", "uint64[1] = [0xffffffffffffffff]", "BitShift(%a, %b) {direction=\"RIGHT\"}", "shift by");
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
    two(13, "int32[4] = [-7, 7, -7, 7]", "int32[4] = [3, -3, -3, 3]", "Mod(%a, %b)", "int32[4] = [2, -2, -1, 1]");
    two(13, "int32[4] = [-7, 7, -7, 7]", "int32[4] = [3, -3, -3, 3]", "Mod(%a, %b) {fmod=1}", "int32[4] = [-1, 1, -1, 1]");
    two(13, "int64[1] = [-9223372036854775808]", "int64[1] = [-1]", "Mod(%a, %b)", "int64[1] = [0]");
    two(13, "float32[3] = [-7.5, 7.5, 1.0]", "float32[3] = [2.0, -2.0, 0.0]", "Mod(%a, %b) {fmod=1}",
        "float32[3] = [-1.5, 1.5, nan]");
    two(28, "float32[3] = [-7.5, 7.5, -2.0]", "float32[3] = [2.0, -2.0, inf]", "Mod(%a, %b)", "float32[3] = [0.5, -0.5, inf]");
    two(13, "uint64[1] = [0xffffffffffffffff]", "uint64[1] = [10]", "Mod(%a, %b)", "uint64[1] = [5]");
}

static void power_takes_two_types(void **state)
{
    (void)state;
    two(15, "int32[4] = [2, -3, -1, 5]", "int64[4] = [10, 3, -3, -1]", "Pow(%a, %b)", "int32[4] = [1024, -27, -1, 0]");
    two(15, "int64[2] = [3, 3]", "int64[2] = [39, 0]", "Pow(%a, %b)", "int64[2] = [4052555153018976267, 1]");
    two(15, "float32[3] = [2, 4, -8]", "int32[3] = [-1, 3, 2]", "Pow(%a, %b)", "float32[3] = [0.5, 64, 64]");
    two(15, "int32[2] = [4, 10]", "float32[2] = [0.5, 2.0]", "Pow(%a, %b)", "int32[2] = [2, 100]");
    two(15, "float16[2] = [3, 2]", "float32[1] = [2]", "Pow(%a, %b)", "float16[2] = [9, 4]");
}

static void bits_and_logic(void **state)
{
    (void)state;
    two(11, "uint8[3] = [1, 255, 128]", "uint8[3] = [7, 1, 0]", "BitShift(%a, %b) {direction=\"LEFT\"}",
        "uint8[3] = [128, 254, 128]");
    two(11, "uint64[2] = [0xffffffffffffffff, 8]", "uint64[2] = [63, 3]", "BitShift(%a, %b) {direction=\"RIGHT\"}",
        "uint64[2] = [1, 1]");
    two(28, "int8[4] = [-8, -8, 8, 1]", "int8[4] = [1, 8, -1, 7]", "BitShift(%a, %b) {direction=\"RIGHT\"}",
        "int8[4] = [-4, -1, 0, 0]");
    two(28, "int8[3] = [1, -1, 3]", "int8[3] = [7, 9, 1]", "BitShift(%a, %b) {direction=\"LEFT\"}", "int8[3] = [-128, 0, 6]");
    two(18, "int8[2] = [-1, 12]", "int8[2] = [6, 10]", "BitwiseAnd(%a, %b)", "int8[2] = [6, 8]");
    two(18, "uint16[2] = [1, 12]", "uint16[2] = [6, 10]", "BitwiseOr(%a, %b)", "uint16[2] = [7, 14]");
    two(18, "uint32[2] = [0xffffffff, 12]", "uint32[2] = [1, 10]", "BitwiseXor(%a, %b)", "uint32[2] = [0xfffffffe, 6]");
    one(18, "uint8[2] = [0, 240]", "BitwiseNot(%a)", "uint8[2] = [255, 15]");
    one(18, "int64[2] = [0, 5]", "BitwiseNot(%a)", "int64[2] = [-1, -6]");
    two(7, "bool[4] = [0, 0, 1, 1]", "bool[4] = [0, 1, 0, 1]", "And(%a, %b)", "bool[4] = [0, 0, 0, 1]");
    two(7, "bool[4] = [0, 0, 1, 1]", "bool[4] = [0, 1, 0, 1]", "Or(%a, %b)", "bool[4] = [0, 1, 1, 1]");
    two(7, "bool[4] = [0, 0, 1, 1]", "bool[4] = [0, 1, 0, 1]", "Xor(%a, %b)", "bool[4] = [0, 1, 1, 0]");
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
    two(13, "int64[2] = [9007199254740993, -1]", "int64[2] = [9007199254740992, 1]", "Greater(%a, %b)", "bool[2] = [1, 0]");
    const char *f = "float32[3] = [nan, 1, -0.0]", *g = "float32[3] = [nan, 2, 0.0]";
    two(16, f, g, "LessOrEqual(%a, %b)", "bool[3] = [0, 1, 1]");
    two(13, f, g, "Equal(%a, %b)", "bool[3] = [0, 0, 1]");
    two(13, "bool[2] = [1, 0]", "bool[1] = [1]", "Equal(%a, %b)", "bool[2] = [1, 0]");
}

static void broadcasting_goes_both_ways(void **state)
{
    (void)state;
    two(14, "int32[2,1] = [10, 20]", "int32[3] = [1, 2, 3]", "Add(%a, %b)", "int32[2,3] = [11, 12, 13, 21, 22, 23]");
    two(14, "int32[] = [5]", "int32[2,1] = [1, 2]", "Sub(%a, %b)", "int32[2,1] = [4, 3]");
    two(14, "float32[0,3] = []", "float32[3] = [1, 2, 3]", "Mul(%a, %b)", "float32[0,3] = []");
    two(14, "float32[1] = [2]", "float32[0] = []", "Mul(%a, %b)", "float32[0] = []");
    two(14, "int32[] = [5]", "int32[] = [1]", "Sub(%a, %b)", "int32[] = [4]");
    /* before version 7: an axis, or nothing */
    const char *a = "float32[2,2,3] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
    two(6, a, "float32[2] = [1, 2]", "Add(%a, %b) {broadcast=1, axis=1}", "float32[2,2,3] = [1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]");
    two(6, a, "float32[2] = [1, 2]", "Add(%a, %b) {broadcast=1, axis=0}", "float32[2,2,3] = [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]");
    two(6, a, "float32[3] = [1, 2, 3]", "Sub(%a, %b) {broadcast=1}",
        "float32[2,2,3] = [-1, -2, -3, -1, -2, -3, -1, -2, -3, -1, -2, -3]");
    two(1, "float32[2] = [3, 4]", "float32[1] = [2]", "Pow(%a, %b) {broadcast=1}", "float32[2] = [9, 16]");
    no(6, "float32[2] = [3, 4]", "float32[1] = [2]", "Mul(%a, %b)", "broadcast");
    no(6, "float32[2] = [3, 4]", "float32[1] = [2]", "Mul(%a, %b) {broadcast=1, axis=9223372036854775807}", "axis");
    no(6, "float32[2] = [3, 4]", "float32[1,1] = [2]", "Mul(%a, %b) {broadcast=1}", "axis");
    two(6, "float32[1,2,2] = [-1, -2, -3, 4]", "float32[2] = [2, 10]", "PRelu(%a, %b)", "float32[1,2,2] = [-2, -4, -30, 4]");
    two(9, "float32[1,2,2] = [-1, -2, -3, 4]", "float32[2] = [2, 10]", "PRelu(%a, %b)", "float32[1,2,2] = [-2, -20, -6, 4]");
    two(9, "int32[2] = [-1, 4]", "int32[1] = [3]", "PRelu(%a, %b)", "int32[2] = [-3, 4]");
}

static void functions(void **state)
{
    (void)state;
    one(13, "float32[4] = [-1.5, 2.5, -0.0, inf]", "Abs(%a)", "float32[4] = [1.5, 2.5, 0, inf]");
    one(13, "float32[3] = [-1.5, 2.5, nan]", "Sign(%a)", "float32[3] = [-1, 1, nan]");
    one(13, "float32[3] = [-1.5, 2.5, -0.2]", "Floor(%a)", "float32[3] = [-2, 2, -1]");
    one(13, "float32[3] = [-1.5, 2.5, 0.2]", "Ceil(%a)", "float32[3] = [-1, 3, 1]");
    one(11, "float32[6] = [0.5, 1.5, 2.5, -0.5, -1.5, 2.7]", "Round(%a)", "float32[6] = [0, 2, 2, -0.0, -2, 3]");
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
    one(6, "float32[2] = [-1, 2]", "Selu(%a) {alpha=1.0, gamma=2.0}", "float32[2] = [-1.2642411, 4]");
    one(12, "float32[2] = [-1, 2]", "Celu(%a) {alpha=2.0}", "float32[2] = [-0.7869387, 2]");
    one(20, x, "Gelu(%a)", "float64[3] = [-0.1586552539, 0, 1.9544997361]");
    one(20, x, "Gelu(%a) {approximate=\"tanh\"}", "float64[3] = [-0.1588080094, 0, 1.9545976940]");
    one(6, "float32[4] = [-3, 0, 2, 3]", "HardSigmoid(%a)", "float32[4] = [0, 0.5, 0.9, 1]");
    one(6, "float32[2] = [-1, 2]", "HardSigmoid(%a) {alpha=0.5, beta=0.6}", "float32[2] = [0.1, 1]");
    one(14, "float64[4] = [-4, -1, 1, 4]", "HardSwish(%a)", "float64[4] = [-0.0, -0.3333333333, 0.6666666667, 4]");
    one(18, x, "Mish(%a)", "float64[3] = [-0.3034014614, 0, 1.9439589595]");
    one(1, "float64[3] = [-1, 0, 1000]", "Softplus(%a)", "float64[3] = [0.3132616875, 0.6931471806, 1000]");
    one(1, "float64[3] = [-1, 3, -inf]", "Softsign(%a)", "float64[3] = [-0.5, 0.75, -1]");
    one(24, x, "Swish(%a) {alpha=2.0}", "float64[3] = [-0.1192029220, 0, 1.9640275801]");
    two(28, x, "float64[3] = [2, 5, -1]", "SwiGLU(%a, %b) {alpha=2.0}", "float64[3] = [-0.2384058440, 0, -1.9640275801]");
    two(28, "float16[2] = [-1, 2]", "float16[2] = [1, 0.5]", "SwiGLU(%a, %b)", "float16[2] = [-0.26904297, 0.88085938]");
    no(28, "float32[2,2] = [1, 2, 3, 4]", "float32[2] = [1, 2]", "SwiGLU(%a, %b)", "different shapes");
    no(28, "int32[1] = [1]", "int32[1] = [1]", "SwiGLU(%a, %b)", "int32");
    one(9, "float32[3] = [-2, 0.5, 2]", "Shrink(%a) {lambd=1.5, bias=1.5}", "float32[3] = [-0.5, 0, 0.5]");
    one(7, "float32[2] = [-2, 3]", "Affine(%a) {alpha=2.0, beta=0.5}", "float32[2] = [-3.5, 6.5]");
    one(7, "float32[2] = [-2, 3]", "Affine(%a)", "float32[2] = [-2, 3]");
    one(7, "float32[2,3,1,1] = [1, 2, 3, 4, 5, 6]", "ImageScaler(%a) {scale=2.0, bias=[1.0, 0.0, -1.0]}",
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
    one(6, "float32[2] = [-inf, inf]", "Clip(%a)", "float32[2] = [-3.4028234663852886e+38, 3.4028234663852886e+38]");
    one(1, "float32[2] = [-inf, 7]", "Clip(%a) {max=1.0}", "float32[2] = [-inf, 1]");
    three(13, x, "float32[] = [-1]", "float32[] = [1]", "Clip(%a, %b, %c)", "float32[3] = [-1, 0.5, 1]");
    three(13, x, "float32[] = [2]", "float32[] = [1]", "Clip(%a, %b, %c)", "float32[3] = [1, 1, 1]"); /* the upper limit wins */
    two(13, x, "float32[] = [1]", "Clip(%a, _, %b)", "float32[3] = [-5, 0.5, 1]");
    one(13, x, "Clip(%a)", "float32[3] = [-5, 0.5, 5]");
    two(13, "float32[2] = [nan, -inf]", "float32[] = [1]", "Clip(%a, %b)", "float32[2] = [nan, 1]");
    three(12, "uint64[2] = [0xffffffffffffffff, 1]", "uint64[] = [2]", "uint64[] = [0xfffffffffffffff0]", "Clip(%a, %b, %c)",
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
    three(13, "float32[1] = [1]", "float32[1] = [3]", "float32[1] = [5]", "Mean(%a, %b, %c)", "float32[1] = [3]");
    one(13, "float32[2] = [1, -2]", "Mean(%a)", "float32[2] = [1, -2]");
    two(13, "uint64[2] = [0xffffffffffffffff, 1]", "uint64[2] = [1, 2]", "Max(%a, %b)", "uint64[2] = [0xffffffffffffffff, 2]");
    two(13, "int8[2] = [-1, 1]", "int8[2] = [1, 2]", "Min(%a, %b)", "int8[2] = [-1, 1]");
    /* rounded once: 2048 + 1 + 1 in float16 */
    three(13, "float16[1] = [2048]", "float16[1] = [1]", "float16[1] = [1]", "Sum(%a, %b, %c)", "float16[1] = [2050]");
    three(16, "bool[2,1] = [1, 0]", "int64[2] = [1, 2]", "int64[] = [9]", "Where(%a, %b, %c)", "int64[2,2] = [1, 2, 9, 9]");
    three(16, "bool[2] = [1, 0]", "bool[2] = [1, 1]", "bool[1] = [0]", "Where(%a, %b, %c)", "bool[2] = [1, 0]");
    three(16, "bool[2] = [1, 0]", "float64[1] = [1]", "float64[1] = [0.5]", "Where(%a, %b, %c)", "float64[2] = [1, 0.5]");
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
    one(13, x, "Cast(%a) {to=7}", "int64[6] = [1, -1, 300, -129, -9223372036854775808, 8589934592]");
    one(13, x, "Cast(%a) {to=3}", "int8[6] = [1, -1, 44, 127, 0, 0]");
    one(13, x, "Cast(%a) {to=2}", "uint8[6] = [1, 255, 44, 127, 0, 0]");
    one(13, "float64[3] = [1.8e19, -1, 1e30]", "Cast(%a) {to=13}", "uint64[3] = [18000000000000000000, 0xffffffffffffffff, 0]");
    one(13, "float32[4] = [0, -0.0, nan, 0.1]", "Cast(%a) {to=9}", "bool[4] = [0, 0, 1, 1]");
    one(13, "int32[3] = [200, -1, 70000]", "Cast(%a) {to=3}", "int8[3] = [-56, -1, 112]");
    one(13, "int64[2] = [-1, 0]", "Cast(%a) {to=13}", "uint64[2] = [0xffffffffffffffff, 0]");
    one(13, "uint64[1] = [0xffffffffffffffff]", "Cast(%a) {to=11}", "float64[1] = [18446744073709551616.0]");
    one(13, "int64[3] = [0, 5, -3]", "Cast(%a) {to=9}", "bool[3] = [0, 1, 1]");
    one(13, "bool[2] = [0, 1]", "Cast(%a) {to=1}", "float32[2] = [0, 1]");
    one(13, "bool[2] = [0, 1]", "Cast(%a) {to=7}", "int64[2] = [0, 1]");
    one(13, "float64[2] = [1e300, -1e-300]", "Cast(%a) {to=1}", "float32[2] = [inf, -0.0]");
    one(13, "float32[3] = [70000, 1.0009, 1e-9]", "Cast(%a) {to=10}", "float16[3] = [inf, 1.0009765625, 0]");
    one(13, "float32[2] = [1.00390625, 1.01171875]", "Cast(%a) {to=16}", "bfloat16[2] = [1, 1.015625]");
    one(1, "float32[1] = [2.5]", "Cast(%a) {to=\"INT32\"}", "int32[1] = [2]");
    two(15, "int32[2] = [1, 0]", "bool[0] = []", "CastLike(%a, %b)", "bool[2] = [1, 0]");
    /* one rounding from a number that double cannot hold: 2^54 + 2^30 + 1 lies just above the middle of two float32 */
    one(13, "int64[1] = [18014399583223809]", "Cast(%a) {to=1}", "float32[1] = [18014400656965632.0]");
    no(13, "float32[1] = [1]", NULL, "Cast(%a)", "to");
    no(13, "float32[1] = [1]", NULL, "Cast(%a) {to=8}", "string");
    no(13, "float32[1] = [1]", NULL, "Cast(%a) {to=-9223372036854775808}", "no data type");
    no(21, "float32[1] = [1]", NULL, "Cast(%a) {to=22}", "int4");
}

static void casts_to_eight_bits(void **state)
{
    (void)state;
    const char *x = "float32[8] = [0, -0.0, 1, -1.0625, 0.001953125, 500, inf, nan]";
    one(19, x, "Cast(%a) {to=17}", "float8_e4m3fn[8] = [0, 128, 56, 184, 1, 126, 126, 127]");
    one(19, x, "Cast(%a) {to=17, saturate=0}", "float8_e4m3fn[8] = [0, 128, 56, 184, 1, 127, 127, 127]");
    one(19, x, "Cast(%a) {to=18}", "float8_e4m3fnuz[8] = [0, 0, 64, 192, 2, 127, 127, 128]");
    one(19, x, "Cast(%a) {to=19}", "float8_e5m2[8] = [0, 128, 60, 188, 24, 96, 123, 127]");
    one(19, x, "Cast(%a) {to=19, saturate=0}", "float8_e5m2[8] = [0, 128, 60, 188, 24, 96, 124, 127]");
    one(19, x, "Cast(%a) {to=20}", "float8_e5m2fnuz[8] = [0, 0, 64, 192, 28, 100, 127, 128]");
    one(24, "float32[5] = [1, 1.25, 3, 0, nan]", "Cast(%a) {to=24}", "float8_e8m0fnu[5] = [127, 128, 129, 0, 255]");
    one(24, "float32[4] = [1.25, 1.5, 3, 1.75]", "Cast(%a) {to=24, round_mode=\"nearest\"}",
        "float8_e8m0fnu[4] = [127, 128, 129, 128]");
    one(24, "float32[2] = [1.75, 0.7]", "Cast(%a) {to=24, round_mode=\"down\"}", "float8_e8m0fnu[2] = [127, 126]");
    one(19, "float8_e4m3fn[4] = [56, 1, 254, 127]", "Cast(%a) {to=1}", "float32[4] = [1, 0.001953125, -448, nan]");
    one(19, "float8_e5m2[4] = [60, 1, 252, 126]", "Cast(%a) {to=1}", "float32[4] = [1, 1.52587890625e-05, -inf, nan]");
    one(19, "float8_e5m2fnuz[3] = [64, 1, 128]", "Cast(%a) {to=1}", "float32[3] = [1, 7.62939453125e-06, nan]");
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
    right(
        15, CHANNELS
        "%y, %m2, %v2 = BatchNormalization(%x, %s, %b, %m, %v) {training_mode=1, momentum=0.5, epsilon=0.0}\n"
        "init %w : float32[2,2,2] = [-1.2126781, -0.7276069, 7.5746437, 8.5447862, 0.7276069, 1.2126781, 11.4552138, 12.4253563]\n"
        "init %wm : float32[2] = [2.25, 3.75]\ninit %wv : float32[2] = [4.125, 2.625]\n"
        "output %y\noutput %w\noutput %m2\noutput %wm\noutput %v2\noutput %wv");
    right(9, CHANNELS
          "%y, %m2, _, %sm, %sv = BatchNormalization(%x, %s, %b, %m, %v) {momentum=0.5}\n"
          "init %wm : float32[2] = [2.25, 3.75]\ninit %wsm : float32[2] = [3.5, 5.5]\ninit %wsv : float32[2] = [4.25, 4.25]\n"
          "output %m2\noutput %wm\noutput %sm\noutput %wsm\noutput %sv\noutput %wsv");
    /* features instead of channels */
    right(7, "init %x : float32[2,1,2] = [1, 2, 3, 4]\ninit %s : float32[1,2] = [1, 2]\ninit %b : float32[1,2] = [0, 10]\n"
             "init %m : float32[1,2] = [1, 2]\ninit %v : float32[1,2] = [4, 1]\n"
             "%y = BatchNormalization(%x, %s, %b, %m, %v) {spatial=0, epsilon=0.0}\noutput %y\n"
             "init %w : float32[2,1,2] = [0, 10, 1, 14]\noutput %w");
    right(15,
          "init %x : float32[3] = [1, 2, 5]\ninit %p : float32[1] = [1]\n"
          "%y = BatchNormalization(%x, %p, %p, %p, %p) {epsilon=3.0}\noutput %y\ninit %w : float32[3] = [1, 1.5, 3]\noutput %w");
    right(
        15,
        "init %x : float32[1099511627776,1,0] = []\ninit %p : float32[1] = [1]\n"
        "%y, %m, %v = BatchNormalization(%x, %p, %p, %p, %p) {training_mode=1}\noutput %m\ninit %w : float32[1] = [nan]\noutput %w");
    refused(15, CHANNELS "%y, %m2 = BatchNormalization(%x, %s, %b, %m, %v)\noutput %y\noutput %m2", "training_mode");
    refused(15, CHANNELS "init %q : float32[3] = [1, 2, 3]\n%y = BatchNormalization(%x, %s, %q, %m, %v)\noutput %y", "input 2");
}

static void dropout_is_for_inference(void **state)
{
    (void)state;
    const char *x = "init %x : float32[2] = [1, -2]\n";
    char text[1000];
    snprintf(text, sizeof text,
             "%s%%y, %%m = Dropout(%%x)\ninit %%w : bool[2] = [1, 1]\noutput %%y\noutput %%x\noutput %%m\noutput %%w", x);
    right(13, text);
    snprintf(text, sizeof text,
             "%s%%y, %%m = Dropout(%%x)\ninit %%w : float32[2] = [1, 1]\noutput %%y\noutput %%x\noutput %%m\noutput %%w", x);
    right(7, text);
    snprintf(text, sizeof text,
             "%sinit %%r : float32[] = [0.0]\ninit %%t : bool[] = [1]\n%%y = Dropout(%%x, %%r, %%t)\noutput %%y\noutput %%x", x);
    right(13, text);
    snprintf(text, sizeof text,
             "%sinit %%r : float32[] = [0.5]\ninit %%t : bool[] = [1]\n%%y = Dropout(%%x, %%r, %%t)\noutput %%y\noutput %%x", x);
    refused(13, text, "training");
    snprintf(text, sizeof text, "%s%%y = Dropout(%%x)\noutput %%y\noutput %%x", x);
    refused(6, text, "training");
    snprintf(text, sizeof text, "%s%%y = Dropout(%%x) {is_test=1}\noutput %%y\noutput %%x", x);
    right(6, text);
}

/* ---- reductions ---- */

static void reductions(void **state)
{
    (void)state;
    const char *x = "float32[2,3] = [1, -2, 3, -4, 5, -6]";
    one(11, x, "ReduceSum(%a) {axes=[1]}", "float32[2,1] = [2, -5]");
    one(11, x, "ReduceSum(%a) {axes=[-2], keepdims=0}", "float32[3] = [-3, 3, -3]");
    one(11, x, "ReduceSum(%a)", "float32[1,1] = [-3]");
    one(11, x, "ReduceSum(%a) {keepdims=0}", "float32[] = [-3]");
    two(13, x, "int64[1] = [1]", "ReduceSum(%a, %b)", "float32[2,1] = [2, -5]");
    two(13, x, "int64[0] = []", "ReduceSum(%a, %b)", "float32[1,1] = [-3]");
    two(13, x, "int64[0] = []", "ReduceSum(%a, %b) {noop_with_empty_axes=1}", x);
    one(18, x, "ReduceSumSquare(%a) {noop_with_empty_axes=1}", "float32[2,3] = [1, 4, 9, 16, 25, 36]");
    one(13, x, "ReduceMean(%a) {axes=[1]}", "float32[2,1] = [0.6666667, -1.6666667]");
    one(13, x, "ReduceMax(%a) {axes=[0]}", "float32[1,3] = [1, 5, 3]");
    one(13, x, "ReduceMin(%a) {axes=[1], keepdims=0}", "float32[2] = [-2, -6]");
    one(13, x, "ReduceProd(%a) {axes=[1], keepdims=0}", "float32[2] = [-6, 120]");
    one(13, x, "ReduceL1(%a) {axes=[1], keepdims=0}", "float32[2] = [6, 15]");
    one(13, x, "ReduceL2(%a) {axes=[1], keepdims=0}", "float32[2] = [3.7416574, 8.7749644]");
    one(13, x, "ReduceSumSquare(%a) {axes=[1], keepdims=0}", "float32[2] = [14, 77]");
    one(13, x, "ReduceLogSum(%a) {axes=[1], keepdims=0}", "float32[2] = [0.6931472, nan]");
    one(13, "float32[2,2] = [1000, 1000, -inf, -inf]", "ReduceLogSumExp(%a) {axes=[1], keepdims=0}",
        "float32[2] = [1000.6931472, -inf]");
    one(13, "float32[] = [7]", "ReduceSum(%a)", "float32[] = [7]");
    one(13, "float32[3] = [1, nan, 3]", "ReduceMax(%a)", "float32[1] = [nan]");
    one(13, "float16[3] = [60000, 60000, -60000]", "ReduceSum(%a)", "float16[1] = [60000]");
    one(20, "bool[2,2] = [0, 1, 0, 0]", "ReduceMax(%a) {noop_with_empty_axes=0}", "bool[1,1] = [1]");
    two(20, "bool[2,2] = [0, 1, 0, 0]", "int64[1] = [1]", "ReduceMin(%a, %b)", "bool[2,1] = [0, 0]");
}

static void reductions_of_integers(void **state)
{
    (void)state;
    one(13, "int32[3] = [2147483647, 1, 1]", "ReduceSum(%a)", "int32[1] = [-2147483647]");
    one(13, "int32[2] = [2147483647, 2147483647]", "ReduceMean(%a)", "int32[1] = [2147483647]");
    one(13, "int32[3] = [-3, -3, -1]", "ReduceMean(%a)", "int32[1] = [-2]");
    one(13, "uint64[2] = [0xffffffffffffffff, 1]", "ReduceMax(%a)", "uint64[1] = [0xffffffffffffffff]");
    one(13, "int8[2] = [-128, 3]", "ReduceMin(%a)", "int8[1] = [-128]");
    one(13, "int64[2] = [-9223372036854775808, 5]", "ReduceL1(%a)", "int64[1] = [-9223372036854775803]");
    one(13, "int32[2] = [3, -4]", "ReduceL2(%a)", "int32[1] = [5]");
    one(13, "int32[2] = [3, -4]", "ReduceProd(%a)", "int32[1] = [-12]");
    one(13, "int32[2] = [3, 100]", "ReduceLogSum(%a)", "int32[1] = [4]");
}

static void reductions_of_nothing(void **state)
{
    (void)state;
    const char *f = "float32[2,0] = []", *i = "int32[2,0] = []", *axis = "int64[1] = [1]";
    two(20, f, axis, "ReduceSum(%a, %b)", "float32[2,1] = [0, 0]");
    two(20, f, axis, "ReduceProd(%a, %b)", "float32[2,1] = [1, 1]");
    two(20, f, axis, "ReduceMax(%a, %b)", "float32[2,1] = [-inf, -inf]");
    two(20, f, axis, "ReduceMin(%a, %b) {keepdims=0}", "float32[2] = [inf, inf]");
    two(20, f, axis, "ReduceMean(%a, %b)", "float32[2,1] = [nan, nan]");
    two(20, f, axis, "ReduceLogSumExp(%a, %b)", "float32[2,1] = [-inf, -inf]");
    two(20, f, axis, "ReduceL2(%a, %b)", "float32[2,1] = [0, 0]");
    two(20, f, "int64[1] = [0]", "ReduceSum(%a, %b)", "float32[1,0] = []");
    two(20, i, axis, "ReduceMax(%a, %b)", "int32[2,1] = [-2147483648, -2147483648]");
    two(20, i, axis, "ReduceMin(%a, %b)", "int32[2,1] = [2147483647, 2147483647]");
    two(20, "uint8[0] = []", "int64[1] = [0]", "ReduceMin(%a, %b)", "uint8[1] = [255]");
    two(20, "int64[0] = []", "int64[1] = [0]", "ReduceMin(%a, %b)", "int64[1] = [9223372036854775807]");
    two(20, "bool[0] = []", "int64[1] = [0]", "ReduceMin(%a, %b)", "bool[1] = [1]");
    no(20, i, axis, "ReduceMean(%a, %b)", "mean of no integers");
    no(13, "float32[2] = [1, 2]", NULL, "ReduceMean(%a) {axes=[1]}", "axis 1");
    no(13, "float32[2] = [1, 2]", NULL, "ReduceMean(%a) {axes=[0, -1]}", "twice");
}

static void positions(void **state)
{
    (void)state;
    const char *x = "float32[2,3] = [1, 3, 3, 2, 0, 0]";
    one(13, x, "ArgMax(%a) {axis=1}", "int64[2,1] = [1, 0]");
    one(13, x, "ArgMax(%a) {axis=-1, keepdims=0, select_last_index=1}", "int64[2] = [2, 0]");
    one(13, x, "ArgMin(%a) {axis=1, keepdims=0}", "int64[2] = [0, 1]");
    one(13, x, "ArgMin(%a) {axis=1, select_last_index=1}", "int64[2,1] = [0, 2]");
    one(13, x, "ArgMax(%a)", "int64[1,3] = [1, 0, 0]");
    one(13, "uint64[2] = [1, 0xffffffffffffffff]", "ArgMax(%a)", "int64[1] = [1]");
    no(13, "float32[2,0] = []", NULL, "ArgMax(%a) {axis=1}", "no elements");
    one(13, "float32[0,2] = []", "ArgMax(%a) {axis=1}", "int64[0,1] = []");
    no(13, x, NULL, "ArgMax(%a) {axis=2}", "axis 2");
}

static void softmax_and_relatives(void **state)
{
    (void)state;
    const char *x = "float32[1,2,2] = [0, 1, 2, 1000]";
    one(13, "float32[2,2] = [0, 1, 2, 1000]", "Softmax(%a)", "float32[2,2] = [0.2689414, 0.7310586, 0, 1]");
    one(13, x, "Softmax(%a) {axis=1}", "float32[1,2,2] = [0.1192029, 0, 0.8807971, 1]");
    one(11, "float32[1,2,2] = [0, 0, 0, 0]", "Softmax(%a)", "float32[1,2,2] = [0.25, 0.25, 0.25, 0.25]");
    one(11, "float32[1,2,2] = [0, 0, 0, 0]", "Softmax(%a) {axis=2}", "float32[1,2,2] = [0.5, 0.5, 0.5, 0.5]");
    one(13, x, "LogSoftmax(%a) {axis=1}", "float32[1,2,2] = [-2.126928, -999, -0.1269280, 0]");
    one(13, "float32[2,3] = [1, 3, 3, 2, 0, 0]", "Hardmax(%a)", "float32[2,3] = [0, 1, 0, 1, 0, 0]");
    one(11, x, "Hardmax(%a)", "float32[1,2,2] = [0, 0, 0, 1]");
    one(13, "float32[2,0] = []", "Softmax(%a)", "float32[2,0] = []");
    one(13, "float32[] = [3]", "Softmax(%a)", "float32[] = [1]");
    no(13, x, NULL, "Softmax(%a) {axis=3}", "axis 3");
    one(1, "float32[2,2] = [3, 4, 0, 0]", "LpNormalization(%a)", "float32[2,2] = [0.6, 0.8, 0, 0]");
    one(1, "float32[2,2] = [3, -4, 1, 0]", "LpNormalization(%a) {axis=0, p=1}", "float32[2,2] = [0.75, -1, 0.25, 0]");
    no(1, x, NULL, "LpNormalization(%a) {p=3}", "p = 3");
}

static void cumulative_sums(void **state)
{
    (void)state;
    const char *x = "int32[2,3] = [1, 2, 3, 4, 5, 6]", *axis = "int64[] = [1]";
    two(14, x, axis, "CumSum(%a, %b)", "int32[2,3] = [1, 3, 6, 4, 9, 15]");
    two(14, x, axis, "CumSum(%a, %b) {exclusive=1}", "int32[2,3] = [0, 1, 3, 0, 4, 9]");
    two(14, x, axis, "CumSum(%a, %b) {reverse=1}", "int32[2,3] = [6, 5, 3, 15, 11, 6]");
    two(14, x, axis, "CumSum(%a, %b) {reverse=1, exclusive=1}", "int32[2,3] = [5, 3, 0, 11, 6, 0]");
    two(14, x, "int32[1] = [-2]", "CumSum(%a, %b)", "int32[2,3] = [1, 2, 3, 5, 7, 9]");
    two(14, "float64[2] = [0.5, 0.25]", "int32[] = [0]", "CumSum(%a, %b)", "float64[2] = [0.5, 0.75]");
    no(14, x, "int64[] = [2]", "CumSum(%a, %b)", "axis 2");
    no(14, x, "int64[2] = [0, 1]", "CumSum(%a, %b)", "not one number");
}

static void top_k(const char *x, const char *k, const char *attrs, const char *values, const char *indices)
{
    char text[2000];
    snprintf(text, sizeof text,
             "init %%x : %s\ninit %%k : %s\n%%y, %%i = TopK(%%x, %%k)%s\ninit %%wy : %s\ninit %%wi : %s\n"
             "output %%y\noutput %%wy\noutput %%i\noutput %%wi",
             x, k, attrs, values, indices);
    right(11, text);
}

static void largest_and_smallest(void **state)
{
    (void)state;
    const char *x = "float32[2,4] = [1, 3, 3, -0.0, 2, 0, inf, 0]", *two_of = "int64[1] = [2]";
    top_k(x, two_of, "", "float32[2,2] = [3, 3, inf, 2]", "int64[2,2] = [1, 2, 2, 0]");
    top_k(x, two_of, "{largest=0}", "float32[2,2] = [-0.0, 1, 0, 0]", "int64[2,2] = [3, 0, 1, 3]");
    top_k("int64[3,1] = [-9223372036854775808, 5, 9223372036854775807]", two_of, "{axis=0}",
          "int64[2,1] = [9223372036854775807, 5]", "int64[2,1] = [2, 1]");
    top_k("uint64[2] = [0xffffffffffffffff, 5]", two_of, "{largest=0, sorted=0}", "uint64[2] = [5, 0xffffffffffffffff]",
          "int64[2] = [1, 0]");
    top_k("float32[3] = [-1, -2, nan]", "int64[1] = [3]", "", "float32[3] = [nan, -1, -2]", "int64[3] = [2, 0, 1]");
    top_k("float32[2] = [-0.0, 0.0]", "int64[1] = [1]", "", "float32[1] = [-0.0]", "int64[1] = [0]");
    top_k(x, "int64[1] = [0]", "", "float32[2,0] = []", "int64[2,0] = []");
    one(1, "float32[3] = [1, 3, 2]", "TopK(%a) {k=2}", "float32[2] = [3, 2]");
    no(11, x, "int64[1] = [5]", "TopK(%a, %b)", "5 elements of an axis of size 4");
    no(11, x, "int64[1] = [-1]", "TopK(%a, %b)", "-1 elements");
    no(11, "float32[] = [1]", "int64[1] = [1]", "TopK(%a, %b)", "scalar");
}

/* ---- normalisations ---- */

static void layers(void **state)
{
    (void)state;
    right(17, "init %x : float32[2,2] = [1, 3, 5, 9]\ninit %s : float32[2] = [1, 2]\ninit %b : float32[2] = [0, 10]\n"
              "%y, %m, %i = LayerNormalization(%x, %s, %b) {epsilon=0.0}\n"
              "init %wy : float32[2,2] = [-1, 12, -1, 12]\ninit %wm : float32[2,1] = [2, 7]\ninit %wi : float32[2,1] = [1, 0.5]\n"
              "output %y\noutput %wy\noutput %m\noutput %wm\noutput %i\noutput %wi");
    right(17, "init %x : float16[1,2,2] = [1, 3, 1, 3]\ninit %s : float16[1,2,1] = [1, 2]\n"
              "%y, %m = LayerNormalization(%x, %s) {axis=1, epsilon=3.0}\n"
              "init %wy : float16[1,2,2] = [-0.5, 0.5, -1, 1]\ninit %wm : float32[1,1,1] = [2]\n"
              "output %y\noutput %wy\noutput %m\noutput %wm");
    right(17, "init %x : float32[2,0] = []\ninit %s : float32[1] = [1]\n%y = LayerNormalization(%x, %s)\noutput %y\noutput %x");
    two(23, "float32[2,2] = [1, 7, 0, 0]", "float32[2] = [1, 2]", "RMSNormalization(%a, %b) {epsilon=0.0001}",
        "float32[2,2] = [0.1999996, 2.7999944, 0, 0]");
    two(23, "float16[1,2] = [1, 7]", "float32[2] = [1, 2]", "RMSNormalization(%a, %b) {epsilon=0.0}", "float32[1,2] = [0.2, 2.8]");
    no(17, "float32[2,2] = [1, 7, 0, 0]", "float32[3] = [1, 2, 3]", "LayerNormalization(%a, %b)", "do not agree");
    no(17, "float32[2,2] = [1, 7, 0, 0]", "float32[2] = [1, 2]", "LayerNormalization(%a, %b) {stash_type=7}", "stash_type");
}

static void instances_and_groups(void **state)
{
    (void)state;
    three(6, "float32[1,2,2] = [1, 3, 5, 9]", "float32[2] = [1, 2]", "float32[2] = [0, 10]",
          "InstanceNormalization(%a, %b, %c) {epsilon=0.0}", "float32[1,2,2] = [-1, 1, 8, 12]");
    const char *x = "float32[1,4,1] = [1, 3, 5, 9]";
    three(21, x, "float32[4] = [1, 2, 3, 4]", "float32[4] = [0, 0, 0, 1]",
          "GroupNormalization(%a, %b, %c) {num_groups=2, epsilon=0.0}", "float32[1,4,1] = [-1, 2, -3, 5]");
    three(18, x, "float32[2] = [1, 2]", "float32[2] = [0, 10]", "GroupNormalization(%a, %b, %c) {num_groups=2, epsilon=0.0}",
          "float32[1,4,1] = [-1, 1, 8, 12]");
    one(13, "float32[2,1,1,2] = [1, 3, 1, 3]", "MeanVarianceNormalization(%a)", "float32[2,1,1,2] = [-1, 1, -1, 1]");
    one(13, "float32[2,2] = [1, 2, 3, 6]", "MeanVarianceNormalization(%a) {axes=[0]}", "float32[2,2] = [-1, -1, 1, 1]");
    no(13, "float32[2,2] = [1, 2, 3, 6]", NULL, "MeanVarianceNormalization(%a)", "axis 2");
    char text[1000];
    for (int groups = 0; groups <= 3; groups += 3) {
        snprintf(
            text, sizeof text,
            "init %%x : %s\ninit %%s : float32[4] = fill 1\n%%y = GroupNormalization(%%x, %%s, %%s) {num_groups=%d}\noutput %%y", x,
            groups);
        refused(21, text, "num_groups");
    }
}

/* ---- strides and axes, against the plainest of loops ---- */

#define RANDOM_RANK 5

typedef struct random_array {
    uint32_t rank;
    int64_t dims[RANDOM_RANK];
    int64_t data[4000];
} random_array;

/* Element at an index of the output, aligned at the end; size 1 stands still. */
static int64_t aligned(const random_array *a, const int64_t *index, uint32_t rank)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < a->rank; d++) at = at * a->dims[d] + (a->dims[d] == 1 ? 0 : index[rank - a->rank + d]);
    return a->data[at];
}

static size_t print_array(char *text, size_t size, const char *name, const random_array *a)
{
    size_t at = (size_t)snprintf(text, size, "init %%%s : int64[", name);
    int64_t n = 1;
    for (uint32_t d = 0; d < a->rank; d++) {
        at += (size_t)snprintf(text + at, size - at, "%s%lld", d ? "," : "", (long long)a->dims[d]);
        n *= a->dims[d];
    }
    at += (size_t)snprintf(text + at, size - at, "] = [");
    for (int64_t k = 0; k < n; k++) at += (size_t)snprintf(text + at, size - at, "%s%lld", k ? "," : "", (long long)a->data[k]);
    return at + (size_t)snprintf(text + at, size - at, "]\n");
}

static bool count_up(int64_t *index, const int64_t *dims, uint32_t rank)
{
    for (uint32_t d = rank; d-- > 0;) {
        if (++index[d] < dims[d]) return true;
        index[d] = 0;
    }
    return false;
}

static void random_broadcasts(void **state)
{
    (void)state;
    uint64_t seed = 20240717;
    print_message("seed %llu\n", (unsigned long long)seed);
    static char text[39000];
    for (int round = 0; round < 200; round++) {
        random_array ops[3], want = {.rank = (uint32_t)(ot_next_random(&seed) % (RANDOM_RANK + 1))};
        int64_t index[RANDOM_RANK] = {0}, n = 0;
        for (uint32_t d = 0; d < want.rank; d++) want.dims[d] = 1 + (int64_t)(ot_next_random(&seed) % 4);
        if (want.rank && ot_next_random(&seed) % 8 == 0) want.dims[want.rank - 1] = 3 + (int64_t)(ot_next_random(&seed) % 5);
        for (int k = 0; k < 3; k++) { /* the first has the full shape */
            random_array *a = &ops[k];
            a->rank = k ? (uint32_t)(ot_next_random(&seed) % (want.rank + 1)) : want.rank;
            int64_t size = 1;
            for (uint32_t d = 0; d < a->rank; d++) {
                a->dims[d] = k && ot_next_random(&seed) % 2 ? 1 : want.dims[want.rank - a->rank + d];
                size *= a->dims[d];
            }
            for (int64_t i = 0; i < size; i++) a->data[i] = (int64_t)(ot_next_random(&seed) % 1000);
        }
        do {
            int64_t best = aligned(&ops[0], index, want.rank);
            for (int k = 1; k < 3; k++) best = ot_max(best, aligned(&ops[k], index, want.rank));
            want.data[n++] = best;
        } while (count_up(index, want.dims, want.rank));
        size_t at = 0;
        const char *names[] = {"a", "b", "c"};
        for (int k = 0; k < 3; k++) at += print_array(text + at, sizeof text - at, names[k], &ops[k]);
        at += print_array(text + at, sizeof text - at, "w", &want);
        snprintf(text + at, sizeof text - at, "%%y = Max(%%c, %%a, %%b)\noutput %%y\noutput %%w");
        right(13, text);
    }
}

static void random_reductions(void **state)
{
    (void)state;
    uint64_t seed = 20240718;
    print_message("seed %llu\n", (unsigned long long)seed);
    static char text[39000];
    for (int round = 0; round < 200; round++) {
        random_array a = {.rank = 1 + (uint32_t)(ot_next_random(&seed) % RANDOM_RANK)}, want = {.rank = a.rank};
        bool reduced[RANDOM_RANK];
        int64_t index[RANDOM_RANK] = {0}, n = 0;
        char axes[100] = "";
        for (uint32_t d = 0; d < a.rank; d++) {
            a.dims[d] = 1 + (int64_t)(ot_next_random(&seed) % 4);
            reduced[d] = ot_next_random(&seed) % 2;
            want.dims[d] = reduced[d] ? 1 : a.dims[d];
            if (reduced[d]) snprintf(axes + strlen(axes), sizeof axes - strlen(axes), "%s%d", axes[0] ? "," : "", (int)d);
        }
        do {
            int64_t to = 0;
            for (uint32_t d = 0; d < a.rank; d++) to = to * want.dims[d] + (reduced[d] ? 0 : index[d]);
            a.data[n] = (int64_t)(ot_next_random(&seed) % 2000) - 1000;
            want.data[to] += a.data[n++];
        } while (count_up(index, a.dims, a.rank));
        size_t at = print_array(text, sizeof text, "a", &a);
        at += print_array(text + at, sizeof text - at, "w", &want);
        snprintf(text + at, sizeof text - at,
                 "init %%axes : int64[%d] = [%s]\n%%y = ReduceSum(%%a, %%axes) {noop_with_empty_axes=1}\noutput %%y\noutput %%w",
                 axes[0] ? (int)(strlen(axes) + 1) / 2 : 0, axes);
        right(13, text);
    }
}

/* Rows are longer than one buffer. */
static void long_rows(void **state)
{
    (void)state;
    right(13, "init %x : float32[2,1000] = random 3\ninit %r : float32[1000,2] = random 4\n"
              "%a = Add(%x, %x)\n%b = Sub(%a, %x)\noutput %b\noutput %x");
    right(13, "init %x : float64[3,700] = fill 0.5\n%s = ReduceSum(%x) {noop_with_empty_axes=0}\n"
              "init %w : float64[1,1] = [1050]\noutput %s\noutput %w");
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
        cmocka_unit_test(casts_to_eight_bits),
        cmocka_unit_test(batch_normalization),
        cmocka_unit_test(dropout_is_for_inference),
        cmocka_unit_test(reductions),
        cmocka_unit_test(reductions_of_integers),
        cmocka_unit_test(reductions_of_nothing),
        cmocka_unit_test(positions),
        cmocka_unit_test(softmax_and_relatives),
        cmocka_unit_test(cumulative_sums),
        cmocka_unit_test(largest_and_smallest),
        cmocka_unit_test(layers),
        cmocka_unit_test(instances_and_groups),
        cmocka_unit_test(random_broadcasts),
        cmocka_unit_test(random_reductions),
        cmocka_unit_test(long_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
