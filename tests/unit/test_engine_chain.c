/* Chains of element-wise operators: every operator against the C library in double; random
 * expressions are in test_engine_chain_random.c. */
#include "seeded.h"

#include "engine/cpu/chain/chain_ops.h"
#include "pool_check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- chains from text ---- */

typedef struct made {
    ot_model *m;
    ot_arena *a;
    const ot_chain *c;
    ot_diag d;
} made;

/* Nodes over %x, %y, %z (float), %p, %q (bool) make %out, or %mask. Values whose name begins
 * with m are bool. */
static ot_status chain_of(made *k, int opset, const char *nodes, const char *output)
{
    char text[6000];
    *k = (made){0};
    snprintf(text, sizeof text,
             "model ir 8 opset %d\ngraph main {\ninput %%x : float32[2,3]\ninput %%y : "
             "float32[2,3]\ninput %%z : float32[2,3]\n"
             "input %%p : bool[2,3]\ninput %%q : bool[2,3]\n%s\noutput %%%s\n}\n",
             opset, nodes, output);
    if (ot_text_parse(text, strlen(text), &k->d, &k->m) != OT_OK)
        fail_msg("%s: %s", nodes, k->d.message);
    ot_graph *g = k->m->graph;
    const ot_node *list[64];
    for (uint32_t i = 0; i < g->n_values; i++) {
        ot_value *v = &g->values[i];
        if (v->dtype == OT_DT_UNKNOWN) v->dtype = v->name[0] == 'm' ? OT_BOOL : OT_F32;
        if (v->rank < 0) assert_int_equal(ot_value_set_shape(g, i, 2, (int64_t[]){2, 3}), OT_OK);
    }
    assert_in_range(g->n_nodes, 1, 64);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        list[i] = &g->nodes[i];
        if (!ot_chain_takes(g, list[i])) return OT_E_INPUT;
    }
    ot_id out = ot_value_find(g, output);
    assert_int_not_equal(out, OT_NONE);
    k->a = ot_arena_new();
    return ot_chain_new(k->a, &(ot_chain_spec){g, list, g->n_nodes, &out, 1}, &k->d, &k->c);
}

static void drop(made *k)
{
    ot_arena_free(k->a);
    ot_model_free(k->m);
}

/* Dense arrays of n elements by the names of the inputs. */
static void run_dense(const made *k, int64_t n, void *x, void *y, void *z, void *p, void *q,
                      void *out)
{
    const ot_id *ids;
    uint32_t n_in = ot_chain_inputs(k->c, &ids);
    ot_chain_array in[OT_CHAIN_INPUTS] = {0}, to = {.data = out, .strides = {1}};
    for (uint32_t i = 0; i < n_in; i++) {
        const char *name = k->m->graph->values[ids[i]].name;
        in[i].data = *name == 'x' ? x : *name == 'y' ? y : *name == 'z' ? z : *name == 'p' ? p : q;
        in[i].strides[0] = 1;
    }
    ot_chain_run(k->c, 1, &n, in, &to, 1);
}

/* ---- operators against the C library ---- */

#define POINTS 40000

static const float special[] = {
    0.0f,   -0.0f,   1,      -1,        0.5f,      -0.5f,  1.5f,    2.5f,     -2.5f,   2,
    -2,     3,       -3,     6,         -6,        20,     -20,     87,       -87,     87.4f,
    -87.4f, 88.5f,   -88.5f, 88.72283f, 88.7229f,  89,     -89,     -91,      -104,    150,
    -150,   1e4f,    -1e4f,  123456.0f, 1e10f,     -1e10f, FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN,
    1e-40f, -1e-40f, 1e-45f, INFINITY,  -INFINITY, NAN};
#define SPECIALS (sizeof special / sizeof *special)

static float any_float(void)
{
    if (draw(3) == 0) return special[draw(SPECIALS)];
    if (draw(2)) return ((float)draw(1u << 24) / (float)(1u << 24) - 0.5f) * (float)(1u << draw(9));
    uint32_t u = (uint32_t)draw(1u << 16) << 16 | draw(1u << 16);
    float f;
    memcpy(&f, &u, sizeof f);
    return isnan(f) ? NAN : f; /* never a signalling one */
}

static void same(const char *what, float x, float y, float got, double want, double tolerance,
                 double slack)
{
    float as_float = (float)want;
    bool fine;
    if (isnan(want))
        fine = isnan(got);
    else if (isinf(as_float) || isinf(got))
        fine = got == as_float || (fabs(want) > 0.9999999 * (double)FLT_MAX &&
                                   fabsf(got) > 3.4e38f && (got > 0) == (want > 0));
    else if (fabs(want) < 1.2e-38)
        fine = fabs((double)got) < 1.2e-38 && (got == 0 || want == 0 || (got > 0) == (want > 0));
    else
        fine = fabs((double)got - want) <= tolerance * fabs(want) + slack;
    if (!fine)
        fail_msg("%s of %.9g, %.9g: %.9g, not %.9g", what, (double)x, (double)y, (double)got, want);
}

typedef double (*function)(double x, double y);

/* Errors: relative, and absolute where numbers near 1 are subtracted. */
static void check_function(int opset, const char *nodes, function f, double tolerance, double slack)
{
    static float x[POINTS], y[POINTS], z[POINTS], out[POINTS];
    made k;
    if (chain_of(&k, opset, nodes, "out") != OT_OK) fail_msg("%s: %s", nodes, k.d.message);
    for (int64_t i = 0; i < POINTS; i++) {
        x[i] = i < (int64_t)(SPECIALS * SPECIALS) ? special[(size_t)i % SPECIALS] : any_float();
        y[i] = i < (int64_t)(SPECIALS * SPECIALS) ? special[(size_t)i / SPECIALS] : any_float();
    }
    run_dense(&k, POINTS, x, y, z, NULL, NULL, out);
    for (int64_t i = 0; i < POINTS; i++)
        same(nodes, x[i], y[i], out[i], f((double)x[i], (double)y[i]), tolerance, slack);
    drop(&k);
}

#define FUNCTION(name, value)              \
    static double name(double x, double y) \
    {                                      \
        (void)y;                           \
        return value;                      \
    }
static double positive(double x) { return x > 0 ? x : 0; }
static double down(double x) { return x < 0 ? expm1(x) : x; }
static double hard(double x, double a, double b)
{
    return fmin(fmax(a * x + b, 0), 1) + 0 * (x - x != 0 && x == x ? 0 : x);
}
static double clamp(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }
/* tails as in mathematics, not as double can subtract them */
static double gelu(double x) { return 0.5 * x * erfc(-x / M_SQRT2); }
static double gelu_tanh(double x)
{
    double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return x / (1 + exp(-2 * u));
}
static double mish(double x)
{
    double e = exp(x);
    if (x == -INFINITY) return NAN;
    return x > 50 ? x : x * (e * (e + 2) / (e * (e + 2) + 2));
}
FUNCTION(f_neg, -x)
FUNCTION(f_abs, fabs(x))
FUNCTION(f_sqrt, sqrt(x))
FUNCTION(f_reciprocal, 1 / x)
FUNCTION(f_exp, exp(x))
FUNCTION(f_log, log(x))
FUNCTION(f_relu, x < 0 ? 0 : x)
FUNCTION(f_leaky, x < 0 ? (double)0.125f * x : x)
FUNCTION(f_prelu, x < 0 ? x * y : x)
FUNCTION(f_elu, x < 0 ? 1.5 * down(x) : x)
FUNCTION(f_selu, 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * expm1(x)))
FUNCTION(f_celu, x > 0 ? x : 0.75 * expm1(x / 0.75))
FUNCTION(f_clip, clamp(x, -0.5, 6))
FUNCTION(f_sigmoid, 1 / (1 + exp(-x)))
FUNCTION(f_hard_sigmoid, isnan(x) ? x : hard(x, 0.25, 0.5))
FUNCTION(f_hard_swish,
         isnan(x) || x == -INFINITY ? NAN : x * fmin(fmax(x * (double)(1.0f / 6) + 0.5, 0), 1))
FUNCTION(f_tanh, tanh(x))
FUNCTION(f_erf, erf(x))
FUNCTION(f_gelu, x == -INFINITY ? NAN : gelu(x))
FUNCTION(f_gelu_tanh, x == -INFINITY ? NAN : gelu_tanh(x))
FUNCTION(f_softplus, log1p(exp(-fabs(x))) + (isnan(x) ? x : positive(x)))
FUNCTION(f_softsign, isinf(x) ? copysign(1, x) : x / (1 + fabs(x)))
FUNCTION(f_mish, mish(x))
FUNCTION(f_silu, x == -INFINITY ? NAN : x / (1 + exp(-x)))
FUNCTION(f_swish, x == -INFINITY ? NAN : x / (1 + exp(-0.5 * x)))
FUNCTION(f_swiglu, f_silu(x, y) * y)
FUNCTION(f_threshold, x > 1.25 ? x : 0)
FUNCTION(f_shrink, x<-0.5 ? x + 0.25 : x> 0.5 ? x - 0.25 : 0)
FUNCTION(f_floor, floor(x))
FUNCTION(f_ceil, ceil(x))
FUNCTION(f_round, nearbyint(x))
FUNCTION(f_sign, x > 0 ? 1 : x < 0 ? -1 : x)
FUNCTION(f_sin, sin(x))
FUNCTION(f_cos, cos(x))
FUNCTION(f_add, x + y)
FUNCTION(f_sub, x - y)
FUNCTION(f_mul, x *y)
FUNCTION(f_div, x / y)
FUNCTION(f_pow, pow(x, y))
FUNCTION(f_square, x *x)
FUNCTION(f_cube, x *x *x)
FUNCTION(f_root, pow(x, 0.5))
FUNCTION(f_same, x)
FUNCTION(f_mod, fmod(x, y))
FUNCTION(f_min, isnan(x) ? x : isnan(y) ? y : fmin(x, y))
FUNCTION(f_max, isnan(x) ? x : isnan(y) ? y : fmax(x, y))
FUNCTION(f_half_sum, (x + y) / 2)
FUNCTION(f_eighth, x / 8)
FUNCTION(f_nan_to_0, isnan(x) ? 0 : x)

static void test_functions(void **state)
{
    static const struct {
        const char *nodes;
        function f;
        double tolerance;
    } all[] = {
        {"%out = Neg(%x)", f_neg, 0},
        {"%out = Abs(%x)", f_abs, 0},
        {"%out = Sqrt(%x)", f_sqrt, 1e-7},
        {"%out = Reciprocal(%x)", f_reciprocal, 1e-7},
        {"%out = Exp(%x)", f_exp, 2e-7},
        {"%out = Log(%x)", f_log, 2e-7},
        {"%out = Relu(%x)", f_relu, 0},
        {"%out = LeakyRelu(%x) {alpha = 0.125}", f_leaky, 1e-7},
        {"%out = PRelu(%x, %y)", f_prelu, 1e-7},
        {"%out = Elu(%x) {alpha = 1.5}", f_elu, 4e-7},
        {"%out = Selu(%x)", f_selu, 4e-7},
        {"%out = Celu(%x) {alpha = 0.75}", f_celu, 4e-7},
        {"init %lo : float32[] = [-0.5]\ninit %hi : float32[1] = [6.0]\n%out = Clip(%x, %lo, %hi)",
         f_clip, 0},
        {"%out = Sigmoid(%x)", f_sigmoid, 4e-7},
        {"%out = Tanh(%x)", f_tanh, 4e-7},
        {"%out = Erf(%x)", f_erf, 4e-7},
        {"%out = Gelu(%x)", f_gelu, 4.5e-7},
        {"%out = Gelu(%x) {approximate = \"tanh\"}", f_gelu_tanh, 4e-7},
        {"%out = Softplus(%x)", f_softplus, 4e-7},
        {"%out = Softsign(%x)", f_softsign, 2e-7},
        {"%out = Mish(%x)", f_mish, 4e-7},
        {"%out = ThresholdedRelu(%x) {alpha = 1.25}", f_threshold, 0},
        {"%out = Shrink(%x) {bias = 0.25}", f_shrink, 1e-7},
        {"%out = Floor(%x)", f_floor, 0},
        {"%out = Ceil(%x)", f_ceil, 0},
        {"%out = Round(%x)", f_round, 0},
        {"%out = Sign(%x)", f_sign, 0},
        {"%out = Sin(%x)", f_sin, 2e-7},
        {"%out = Cos(%x)", f_cos, 2e-7},
        {"%out = Add(%x, %y)", f_add, 1e-7},
        {"%out = Sub(%x, %y)", f_sub, 1e-7},
        {"%out = Mul(%x, %y)", f_mul, 1e-7},
        {"%out = Div(%x, %y)", f_div, 1e-7},
        {"%out = Pow(%x, %y)", f_pow, 2e-7},
        {"%out = Mod(%x, %y) {fmod = 1}", f_mod, 0},
        {"%out = Min(%x, %y)", f_min, 0},
        {"%out = Max(%x, %y)", f_max, 0},
        {"%out = Max(%x, %y, %x)", f_max, 0},
        {"%out = Sum(%x, %y)", f_add, 1e-7},
        {"%out = Identity(%x)", f_same, 0},
        {"%out = Dropout(%x)", f_same, 0},
        {"%out = Max(%x)", f_same, 0},
        {"%out = Cast(%x) {to = 1}", f_same, 0},
        {"init %two : float32[] = [2.0]\n%out = Pow(%x, %two)", f_square, 1e-7},
        {"init %three : float32[] = [3.0]\n%out = Pow(%x, %three)", f_cube, 2e-7},
        {"init %half : float32[] = [0.5]\n%out = Pow(%x, %half)", f_root, 1e-7},
        {"init %minus : float32[] = [-1.0]\n%out = Pow(%x, %minus)", f_reciprocal, 1e-7},
        {"init %eight : float32[] = [8.0]\n%out = Div(%x, %eight)", f_eighth, 1e-7},
        {"%s = Sigmoid(%x)\n%out = Mul(%s, %x)", f_silu, 4e-7},
        {"init %half : float32[] = [0.5]\n%t = Mul(%half, %x)\n%s = Sigmoid(%t)\n%out = Mul(%x, "
         "%s)",
         f_swish, 4e-7},
        {"init %r : float32[] = [1.41421354]\ninit %one : float32[] = [1.0]\ninit %half : "
         "float32[] = [0.5]\n%t = Div(%x, %r)\n"
         "%e = Erf(%t)\n%n = Add(%e, %one)\n%w = Mul(%x, %n)\n%out = Mul(%w, %half)",
         f_gelu, 4.5e-7},
        {"init %r : float32[] = [0.70710677]\ninit %one : float32[] = [1.0]\ninit %half : "
         "float32[] = [0.5]\n%t = Mul(%r, %x)\n"
         "%e = Erf(%t)\n%n = Add(%one, %e)\n%w = Mul(%half, %n)\n%out = Mul(%w, %x)",
         f_gelu, 4.5e-7},
        {"%m = IsNaN(%x)\ninit %zero : float32[] = [0.0]\n%out = Where(%m, %zero, %x)", f_nan_to_0,
         0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        check_function(20, all[k].nodes, all[k].f, all[k].tolerance, 0);
    check_function(20, "%out = HardSigmoid(%x) {alpha = 0.25}", f_hard_sigmoid, 1e-7, 1e-7);
    check_function(20, "%out = HardSwish(%x)", f_hard_swish, 2e-7, 6e-7);
    check_function(10, "%out = Clip(%x) {min = -0.5, max = 6.0}", f_clip, 0, 0);
    check_function(24, "%out = Swish(%x) {alpha = 0.5}", f_swish, 4e-7, 0);
}

/* The mean of two overflows where one does not: finite operands only. */
static void test_mean(void **state)
{
    float x[3] = {1, -3, 2.5f}, y[3] = {2, 5, INFINITY}, out[3];
    made k;
    (void)state;
    assert_int_equal(chain_of(&k, 20, "%out = Mean(%x, %y)", "out"), OT_OK);
    run_dense(&k, 3, x, y, NULL, NULL, NULL, out);
    for (int i = 0; i < 3; i++)
        same("Mean", x[i], y[i], out[i], f_half_sum((double)x[i], (double)y[i]), 1e-7, 0);
    drop(&k);
}

/* A gate that vanishes loses digits before a huge operand brings it back: none such. */
static void test_swiglu(void **state)
{
    float x[6] = {1, -3, 2.5f, INFINITY, NAN, 30}, y[6] = {2, 5, -1e3f, 0.5f, 1, 1e20f}, out[6];
    made k;
    (void)state;
    assert_int_equal(chain_of(&k, 28, "%out = SwiGLU(%x, %y)", "out"), OT_OK);
    run_dense(&k, 6, x, y, NULL, NULL, NULL, out);
    for (int i = 0; i < 6; i++)
        same("SwiGLU", x[i], y[i], out[i], f_swiglu((double)x[i], (double)y[i]), 5e-7, 0);
    drop(&k);
    assert_int_equal(chain_of(&k, 28, "%out = SwiGLU(%x, %y) {alpha = 0.5}", "out"), OT_OK);
    run_dense(&k, 6, x, y, NULL, NULL, NULL, out);
    for (int i = 0; i < 6; i++)
        same("SwiGLU", x[i], y[i], out[i], f_swish((double)x[i], (double)y[i]) * (double)y[i], 5e-7,
             0);
    drop(&k);
}

/* ---- masks ---- */

typedef bool (*predicate)(float x, float y, bool p, bool q);
#define PREDICATE(name, value)                         \
    static bool name(float x, float y, bool p, bool q) \
    {                                                  \
        (void)x, (void)y, (void)p, (void)q;            \
        return value;                                  \
    }
PREDICATE(p_equal, x == y)
PREDICATE(p_greater, x > y)
PREDICATE(p_greater_equal, x >= y)
PREDICATE(p_less, x < y)
PREDICATE(p_less_equal, x <= y)
PREDICATE(p_nan, isnan(x))
PREDICATE(p_inf, isinf(x))
PREDICATE(p_plus_inf, isinf(x) && x > 0)
PREDICATE(p_minus_inf, isinf(x) && x < 0)
PREDICATE(p_never, false)
PREDICATE(p_not_zero, x != 0)
PREDICATE(p_and, p &&q)
PREDICATE(p_or, p || q)
PREDICATE(p_xor, p != q)
PREDICATE(p_same, p == q)
PREDICATE(p_not, !p)
PREDICATE(p_p, p)
PREDICATE(p_choice, x > y ? p : q)

static void test_masks(void **state)
{
    static const struct {
        const char *nodes;
        predicate f;
    } all[] = {
        {"%m = Equal(%x, %y)", p_equal},
        {"%m = Greater(%x, %y)", p_greater},
        {"%m = GreaterOrEqual(%x, %y)", p_greater_equal},
        {"%m = Less(%x, %y)", p_less},
        {"%m = LessOrEqual(%x, %y)", p_less_equal},
        {"%m = IsNaN(%x)", p_nan},
        {"%m = IsInf(%x)", p_inf},
        {"%m = IsInf(%x) {detect_negative = 0}", p_plus_inf},
        {"%m = IsInf(%x) {detect_positive = 0}", p_minus_inf},
        {"%m = IsInf(%x) {detect_positive = 0, detect_negative = 0}", p_never},
        {"%m = Cast(%x) {to = 9}", p_not_zero},
        {"%m = And(%p, %q)", p_and},
        {"%m = Or(%p, %q)", p_or},
        {"%m = Xor(%p, %q)", p_xor},
        {"%m = Equal(%p, %q)", p_same},
        {"%m = Not(%p)", p_not},
        {"%m = Identity(%p)", p_p},
        {"%f = Cast(%p) {to = 1}\n%m = Cast(%f) {to = 9}", p_p},
        {"%m1 = Greater(%x, %y)\n%m = Where(%m1, %p, %q)", p_choice},
    };
    enum { N = 5000 };
    static float x[N], y[N];
    static uint8_t p[N], q[N], out[N];
    (void)state;
    for (size_t i = 0; i < N; i++) {
        x[i] = i < SPECIALS * SPECIALS ? special[i % SPECIALS] : any_float();
        y[i] = i < SPECIALS * SPECIALS ? special[i / SPECIALS] : draw(2) ? x[i] : any_float();
        p[i] = (uint8_t)(draw(2) ? draw(256) : 0); /* any byte that is not 0 is true */
        q[i] = (uint8_t)(draw(2) ? draw(256) : 0);
    }
    for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
        made k;
        if (chain_of(&k, 20, all[t].nodes, "m") != OT_OK)
            fail_msg("%s: %s", all[t].nodes, k.d.message);
        run_dense(&k, N, x, y, NULL, p, q, out);
        for (int i = 0; i < N; i++)
            if (out[i] != all[t].f(x[i], y[i], p[i] != 0, q[i] != 0))
                fail_msg("%s of %g, %g, %d, %d: %d", all[t].nodes, (double)x[i], (double)y[i], p[i],
                         q[i], out[i]);
        drop(&k);
    }
}

/* ---- what is taken ---- */

static void test_taken(void **state)
{
    static const char *const refused[] = {
        "%out = MatMul(%x, %y)",
        "%out = Tan(%x)",
        "%out = Mod(%x, %y)",
        "%out = Celu(%x) {alpha = -1.0}",
        "%m = Cast(%x) {to = 7}",
        "%out = Gelu(%x) {approximate = \"other\"}",
        "%out, %m = Dropout(%x)",
        "init %i : int64[] = [1]\n%out = Pow(%x, %i)",
        "%out = Dropout(%x, _, %p)",
        "%out = Add(%p, %q)",
        "%m = Not(%x)",
        "%out = BatchNormalization(%x, %y, %y, %y, %y) {training_mode = 1}"};
    made k;
    (void)state;
    for (size_t t = 0; t < sizeof refused / sizeof *refused; t++) {
        const char *output = strncmp(refused[t], "%m =", 4) == 0 ? "m" : "out";
        if (chain_of(&k, 20, refused[t], output) == OT_OK) fail_msg("%s is taken", refused[t]);
        drop(&k);
    }
    assert_int_not_equal(chain_of(&k, 6, "%out = Add(%x, %y) {broadcast = 1}", "out"), OT_OK);
    drop(&k);
    assert_int_not_equal(chain_of(&k, 6, "%out = PRelu(%x, %y)", "out"), OT_OK);
    drop(&k);
    assert_int_equal(chain_of(&k, 6, "%out = Add(%x, %y)", "out"), OT_OK);
    drop(&k);
}

/* Fused instructions cost less than their parts; constants cost nothing. */
static void test_fused(void **state)
{
    static const char *const pairs[][2] = {
        {"%s = Sigmoid(%x)\n%out = Mul(%x, %s)", "%s = Sigmoid(%x)\n%out = Mul(%y, %s)"},
        {"%t = Mul(%x, %y)\n%out = Add(%z, %t)", "%t = Mul(%x, %y)\n%out = Max(%z, %t)"},
        {"init %a : float32[] = [2.0]\n%b = Exp(%a)\n%out = Add(%x, %b)",
         "%b = Exp(%y)\n%out = Add(%x, %b)"},
        {"%dead = Exp(%x)\n%out = Neg(%x)", "%e = Exp(%x)\n%out = Neg(%e)"}};
    (void)state;
    for (size_t t = 0; t < sizeof pairs / sizeof *pairs; t++) {
        made a, b;
        assert_int_equal(chain_of(&a, 20, pairs[t][0], "out"), OT_OK);
        assert_int_equal(chain_of(&b, 20, pairs[t][1], "out"), OT_OK);
        if (!(a.c->work < b.c->work)) fail_msg("%s is not fused", pairs[t][0]);
        drop(&a);
        drop(&b);
    }
}

/* What a Constant node or arithmetic of constants makes is a number as an initializer is. */
static void test_known_numbers(void **state)
{
    static const char text[] = "model ir 8 opset 20\ngraph main {\ninput %x : float32[2,3]\n"
                               "init %four : float32[] = [4.0]\n%two = Sqrt(%four)\n"
                               "%one = Constant() {value_float = 1.0}\n%p = Add(%one, %one)\n"
                               "%s = Pow(%x, %two)\n%out = Pow(%s, %p)\noutput %out\n}\n";
    made k = {.a = ot_arena_new()};
    const ot_id *ids;
    float x[6] = {-1, 2, 3, -4, 0.5f, 0}, out[6];
    (void)state;
    assert_int_equal(ot_text_parse(text, strlen(text), &k.d, &k.m), OT_OK);
    assert_int_equal(ot_infer_shapes(k.m->graph, NULL, 0), OT_OK);
    const ot_graph *g = k.m->graph;
    const ot_node *list[] = {&g->nodes[g->n_nodes - 2], &g->nodes[g->n_nodes - 1]};
    ot_id y = ot_value_find(g, "out");
    assert_int_equal(ot_chain_new(k.a, &(ot_chain_spec){g, list, 2, &y, 1}, &k.d, &k.c), OT_OK);
    assert_int_equal(ot_chain_inputs(k.c, &ids), 1);
    run_dense(&k, 6, x, NULL, NULL, NULL, NULL, out);
    for (size_t i = 0; i < 6; i++) assert_true(out[i] == x[i] * x[i] * (x[i] * x[i]));
    drop(&k);
}

/* More than fits is refused in one line. */
static void test_too_much(void **state)
{
    char nodes[6000] = "%v0 = Neg(%x)\n";
    made k;
    (void)state;
    for (int i = 1; i < 60; i++) {
        size_t at = strlen(nodes);
        snprintf(nodes + at, sizeof nodes - at,
                 "%%v%d = BatchNormalization(%%v%d, %%y, %%y, %%y, %%y)\n", i, i - 1);
    }
    assert_int_equal(chain_of(&k, 20, nodes, "v59"), OT_E_INPUT);
    assert_non_null(strstr(k.d.message, "instructions and operands"));
    drop(&k);
}

/* ---- BatchNormalization over a blocked array ---- */

static void test_batch_norm(void **state)
{
    enum { N = 2, C = 24, HW = 77, B = 8 };
    static float x[N * C * HW], out[N * C * HW];
    float parameter[4][C];
    made k;
    (void)state;
    for (int i = 0; i < N * C * HW; i++) x[i] = (float)draw(1000) / 100;
    for (int c = 0; c < 4 * C; c++) parameter[c / C][c % C] = (float)(draw(100) + 1) / 50;
    assert_int_equal(
        chain_of(&k, 20,
                 "init %s : float32[3] = [1.0, 1.0, 1.0]\ninit %b : float32[3] = [1.0, 1.0, 1.0]\n"
                 "init %m_ : float32[3] = [1.0, 1.0, 1.0]\ninit %v : float32[3] = [1.0, 1.0, 1.0]\n"
                 "%n = BatchNormalization(%x, %s, %b, %m_, %v) {epsilon = 0.001}\n%out = Relu(%n)",
                 "out"),
        OT_OK);
    const ot_id *ids;
    uint32_t n_in = ot_chain_inputs(k.c, &ids);
    assert_int_equal(n_in, 5);
    for (int blocked = 0; blocked < 2; blocked++) {
        int64_t dims[5] = {N, C / B, HW, B, 1};
        ot_chain_array in[5], to = {.data = out};
        for (uint32_t i = 0; i < n_in; i++) {
            char name = *k.m->graph->values[ids[i]].name;
            assert_int_equal(ot_chain_is_channel(k.c, i), name != 'x');
            in[i] = (ot_chain_array){.data = name == 'x' ? x
                                                         : parameter[name == 's'   ? 0
                                                                     : name == 'b' ? 1
                                                                     : name == 'm' ? 2
                                                                                   : 3]};
            int64_t block = name == 'x' ? (blocked ? HW * B : B * HW) : B,
                    pixel = name == 'x' ? (blocked ? B : 1) : 0;
            memcpy(in[i].strides,
                   (int64_t[]){name == 'x' ? C * HW : 0, block, pixel,
                               name == 'x' && !blocked ? HW : 1, 0},
                   5 * sizeof(int64_t));
            if (name == 'x') memcpy(to.strides, in[i].strides, sizeof to.strides);
        }
        memset(out, 0xA8, sizeof out);
        ot_chain_run(k.c, 5, dims, in, &to, 1);
        for (int i = 0; i < N * C * HW; i++) {
            int c = blocked ? i / (HW * B) % (C / B) * B + i % B : i / HW % C;
            double deviation = sqrt((double)parameter[3][c] + (double)0.001f);
            double y = ((double)x[i] - (double)parameter[2][c]) / deviation *
                           (double)parameter[0][c] +
                       (double)parameter[1][c];
            y = y < 0 ? 0 : y;
            if (fabs(y - (double)out[i]) > 1e-4)
                fail_msg("channel %d: %g, not %g", c, (double)out[i], y);
        }
    }
    drop(&k);
}

/* ---- an output larger than caches ---- */

static void test_large(void **state)
{
    enum { ROWS = 10500, COLS = 1024 };
    static float x[COLS];
    float *memory = malloc(((size_t)ROWS * COLS + 8) * sizeof *memory), *out = memory + 3;
    made k;
    (void)state;
    assert_non_null(memory);
    for (int i = 0; i < COLS; i++) x[i] = (float)draw(1000) - 500;
    assert_int_equal(chain_of(&k, 20, "%a = Abs(%x)\n%out = Neg(%a)", "out"), OT_OK);
    ot_chain_array in = {.data = x, .strides = {0, 1}}, to = {.data = out, .strides = {COLS, 1}};
    out[-1] = out[ROWS * COLS] = 77;
    ot_chain_run(k.c, 2, (int64_t[]){ROWS, COLS}, &in, &to, 3);
    assert_true(out[-1] == 77 && out[ROWS * COLS] == 77);
    for (int i = 0; i < ROWS * COLS; i++)
        if (out[i] != -fabsf(x[i % COLS]))
            fail_msg("element %d: %g, not %g", i, (double)out[i], (double)-fabsf(x[i % COLS]));
    free(memory);
    drop(&k);
}

static int begin(void **state) { return start(state) | pool_start(state); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),     cmocka_unit_test(test_mean),
        cmocka_unit_test(test_swiglu),        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_taken),         cmocka_unit_test(test_fused),
        cmocka_unit_test(test_known_numbers), cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_batch_norm),    cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, begin, pool_end);
}
