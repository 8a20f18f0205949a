/* The recogniser of groups: what the engine's lowering merges is what the cost model believes,
 * graph by graph; and what each rule lets in or keeps out, by the number of groups and of nodes
 * in them.
 */
#include "groups_check.h"

#define CONV                                                                                      \
    "input %x : float32[1,8,12,12]\ninput %r : float32[1,8,12,12]\ninit %w : float32[8,8,3,3] = " \
    "random 1\n"                                                                                  \
    "init %b : float32[8] = random 2\ninit %f : float32[8,1,1] = random 3\ninit %one : "          \
    "float32[1] = random 4\n"                                                                     \
    "init %g : float32[1,8,12,12] = random 5\n%y = Conv(%x, %w) {pads=[1,1,1,1]}\n"

static void convolutions(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        uint32_t nodes; /* of the first group; 0: none */
    } cases[] = {
        {"%z = Relu(%y)\noutput %z", 2},
        {"%z = Mul(%y, %f)\n%o = Add(%z, %f)\n%q = Clip(%o)\noutput %q", 4},
        {"%z = BatchNormalization(%y, %b, %b, %b, %b)\n%q = LeakyRelu(%z)\noutput %q", 3},
        /* a residual */
        {"%z = Add(%r, %y)\n%q = Relu(%z)\noutput %q", 3},
        {"%z = Add(%y, %r)\n%q = Add(%z, %x)\noutput %q", 2}, /* one only */
        {"%z = Sigmoid(%y)\n%q = Mul(%z, %y)\noutput %q", 3}, /* a gate */
        /* no gate of y */
        {"%z = Sigmoid(%y)\n%q = Mul(%z, %r)\noutput %q", 2},
        {"%z = HardSigmoid(%y) {alpha=0.16666667}\n%q = Mul(%y, %z)\noutput %q", 3}, /* HardSwish */
        /* a factor comes too late */
        {"%z = Relu(%y)\n%q = Mul(%z, %f)\noutput %q", 2},
        /* no number a channel: a chain of its own */
        {"%z = Add(%y, %g)\n%q = Relu(%z)\noutput %q", 2},
        {"%z = Div(%one, %y)\noutput %z", 0},
        {"%z = Tanh(%y)\n%q = Neg(%z)\noutput %q", 2},            /* a chain */
        {"%z = Relu(%y)\n%q = Neg(%y)\noutput %z\noutput %q", 0}, /* y has two readers */
        {"%z = Relu(%y)\noutput %z\noutput %y", 0},
        /* four on the result */
        {"%a = Relu(%y)\n%c = Elu(%a)\n%d = HardSwish(%c)\n%e = Sigmoid(%d)\n%h = Relu(%e)\noutput "
         "%h",
         5},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[2000];
        snprintf(graph, sizeof graph, "%s%s", CONV, cases[k].rest);
        uint32_t n = first_group(graph);
        if (n != cases[k].nodes)
            fail_msg("%u nodes in the first group, not %u: %s", n, cases[k].nodes, cases[k].rest);
    }
}

static void transposed_convolutions(void **state)
{
    (void)state;
    const char *head = "input %x : float32[1,8,12,12]\ninput %r : float32[1,8,24,24]\ninit %w : "
                       "float32[8,8,4,4] = random 1\n"
                       "%y = ConvTranspose(%x, %w) {pads=[1,1,1,1], strides=[2,2]}\n";
    char graph[1000];
    snprintf(graph, sizeof graph, "%s%%z = Relu(%%y)\noutput %%z", head);
    assert_int_equal(first_group(graph), 2);
    /* takes no residual */
    snprintf(graph, sizeof graph, "%s%%z = Add(%%y, %%r)\n%%q = Relu(%%z)\noutput %%q", head);
    assert_int_equal(first_group(graph), 2);
}

static void chains(void **state)
{
    (void)state;
    const char *head = "input %x : float32[4,32]\ninput %z : float32[4,32]\ninput %i : "
                       "int64[4,32]\ninit %w : float32[32,32] = random 1\n";
    static const struct {
        const char *rest;
        uint32_t nodes;
    } cases[] = {
        {"%a = Exp(%x)\n%b = Neg(%a)\noutput %b", 2},
        /* joined through both operands */
        {"%a = Exp(%x)\n%b = Neg(%z)\n%c = Mul(%a, %b)\noutput %c", 3},
        /* a is read before b's place */
        {"%a = Exp(%x)\n%m = MatMul(%a, %w)\n%b = Add(%a, %m)\noutput %b", 0},
        /* and here after */
        {"%a = Exp(%x)\n%b = Neg(%a)\n%m = MatMul(%a, %w)\noutput %b\noutput %m", 2},
        {"%a = Neg(%i)\n%b = Abs(%a)\noutput %b", 0}, /* integers */
        {"%a = Exp(%x)\n%s = ReduceMax(%a) {axes=[1]}\n%b = Sub(%x, %s)\noutput %b", 0},
        {"%a = Greater(%x, %z)\n%b = Where(%a, %x, %z)\noutput %b", 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[2000];
        snprintf(graph, sizeof graph, "%s%s", head, cases[k].rest);
        uint32_t n = first_group(graph);
        if (n != cases[k].nodes)
            fail_msg("%u nodes in the first group, not %u: %s", n, cases[k].nodes, cases[k].rest);
    }
}

/* 60 nodes in a row: groups hold 48. */
static void long_chains(void **state)
{
    (void)state;
    char graph[4000] = "input %v0 : float32[4,32]\n";
    size_t at = strlen(graph);
    for (int k = 0; k < 60; k++)
        at += (size_t)snprintf(graph + at, sizeof graph - at, "%%v%d = Neg(%%v%d)\n", k + 1, k);
    snprintf(graph + at, sizeof graph - at, "output %%v60");
    assert_int_equal(first_group(graph), OT_GROUP_PARTS);
}

#define HEADS                                                                                      \
    "input %q : float32[2,32,16]\ninput %k : float32[2,16,32]\ninput %v : float32[2,32,16]\n"      \
    "input %m : float32[2,32,32]\ninput %n : float32[1]\ninput %kt : float32[2,32,16]\ninput %qt " \
    ": float32[32,2,16]\n"                                                                         \
    "init %f : float32[] = fill 0.125\ninit %c : float32[2,16,32] = random 1\n"
#define MIX "%p = Softmax(%t) {axis=-1}\n%y = MatMul(%p, %v)\n"

/* Product, factors, mask, Softmax and product; Transposes around them. */
static void attention(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        uint32_t nodes; /* of the first group; 0: none */
    } cases[] = {
        {"%t = MatMul(%q, %k)\n" MIX "output %y", 3},
        {"%s = MatMul(%q, %k)\n%t = Mul(%f, %s)\n" MIX "output %y", 4},
        {"%s = MatMul(%q, %k)\n%t = Div(%s, %f)\n" MIX "output %y", 4},
        {"%s = MatMul(%q, %k)\n%t = Div(%f, %s)\n" MIX "output %y", 0},
        /* a factor that is only known later */
        {"%s = MatMul(%q, %k)\n%t = Mul(%s, %n)\n" MIX "output %y", 0},
        {"%s = MatMul(%q, %k)\n%u = Mul(%s, %f)\n%t = Add(%m, %u)\n" MIX "output %y", 5},
        {"%t = MatMul(%q, %c)\n" MIX "output %y", 3},            /* constant keys */
        {"%t = MatMul(%q, %k)\n" MIX "output %y\noutput %t", 0}, /* scores are wanted */
        {"%t = MatMul(%q, %k)\n%p = Softmax(%t) {axis=1}\n%y = MatMul(%p, %v)\noutput %y", 0},
        /* of one array with itself */
        {"%t = MatMul(%m, %m)\n%p = Softmax(%t) {axis=-1}\n%y = MatMul(%p, %v)\noutput %y", 0},
        {"%j = Transpose(%kt) {perm=[0,2,1]}\n%t = MatMul(%q, %j)\n" MIX "output %y", 4},
        /* it is wanted, too */
        {"%j = Transpose(%kt) {perm=[0,2,1]}\n%t = MatMul(%q, %j)\n" MIX "output %y\noutput %j", 3},
        {"%i = Transpose(%qt) {perm=[1,0,2]}\n%j = Transpose(%kt) {perm=[0,2,1]}\n%t = MatMul(%i, "
         "%j)\n" MIX "%z = Transpose(%y) {perm=[1,0,2]}\noutput %z",
         6},
        /* rows would not stay rows */
        {"%t = MatMul(%q, %k)\n" MIX "%z = Transpose(%y) {perm=[0,2,1]}\noutput %z", 3},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[2000];
        snprintf(graph, sizeof graph, "%s%s", HEADS, cases[k].rest);
        uint32_t n = first_group(graph);
        if (n != cases[k].nodes)
            fail_msg("%u nodes in the first group, not %u: %s", n, cases[k].nodes, cases[k].rest);
    }
}

/* Transposes that are strides take no time and make no array. */
static void transposes_move_nothing(void **state)
{
    (void)state;
    ot_diag d = {0};
    ot_seq s;
    ot_model *m = text_model(HEADS "%j = Transpose(%kt) {perm=[0,2,1]}\n%t = MatMul(%q, %j)\n" MIX
                                   "%z = Transpose(%y) {perm=[1,0,2]}\n%o = Relu(%z)\noutput %o",
                             &d);
    ot_arena *a = ot_arena_new();
    cost_in_engine(m, a, &s);
    assert_int_equal(s.n, 6);
    assert_true(s.time[1] == s.time[0] && s.time[5] == s.time[4] && s.time[6] > s.time[5]);
    /* what the last Transpose makes, overwritten by Relu */
    assert_int_equal(s.peak, 2 * 32 * 16 * 4);
    ot_arena_free(a);
    ot_model_free(m);
}

/* A product and its factor. */
static void products(void **state)
{
    (void)state;
    const char *head = "input %x : float32[2,6,16]\ninput %k : float32[2,16,8]\ninput %n : "
                       "float32[1]\ninit %f : float32[1] = fill 0.125\n"
                       "init %g : float32[8] = random 1\n%y = MatMul(%x, %k)\n";
    static const struct {
        const char *rest;
        uint32_t nodes;
    } cases[] = {
        {"%z = Mul(%y, %f)\noutput %z", 2},
        {"%z = Mul(%f, %y)\noutput %z", 2},
        {"%z = Div(%y, %f)\noutput %z", 2},
        {"%z = Div(%f, %y)\noutput %z", 0},
        {"%z = Mul(%y, %g)\noutput %z", 0}, /* a number a column */
        {"%z = Mul(%y, %n)\noutput %z", 0}, /* known later */
        {"%z = Mul(%y, %f)\noutput %z\noutput %y", 0},
        {"%z = Mul(%y, %f)\n%o = Neg(%z)\noutput %o", 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[2000];
        snprintf(graph, sizeof graph, "%s%s", head, cases[k].rest);
        uint32_t n = first_group(graph);
        if (n != cases[k].nodes)
            fail_msg("%u nodes in the first group, not %u: %s", n, cases[k].nodes, cases[k].rest);
    }
}

#define BYTES                                                                                    \
    "input %x : uint8[1,4,8,8]\ninput %r : float32[1,4,8,8]\ninit %s : float32[] = fill "        \
    "0.05\ninit %t : float32[] = fill 0.1\n"                                                     \
    "init %m : float32[4] = [0.1, 0.2, 0.3, 0.4]\ninit %bad : float32[] = fill -1\n"             \
    "init %z : uint8[] = [3]\ninit %wz : int8[] = [0]\ninit %mz : int8[4] = [0, 0, 0, 0]\ninit " \
    "%lo : float32[] = fill 0.5\n"                                                               \
    "init %w : int8[4,1,1,1] = [1, 2, 3, 4]\n%d = DequantizeLinear(%x, %s, %z)\n%v = "           \
    "DequantizeLinear(%w, %s, %wz)\n"
#define E     "%e = DequantizeLinear(%x, %t, %z)\n"
#define CONV4 "%c = Conv(%d, %v) {group=4}\n"

/* What runs on bytes between quantizers. DequantizeLinear is part of nothing; who runs it is
 * compared besides. */
static void bytes(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        uint32_t nodes;
    } cases[] = {
        {CONV4 "%q = QuantizeLinear(%c, %s, %z)\noutput %q", 2},
        {CONV4 "output %c", 0}, /* alone, on bytes */
        {CONV4 "%a = Relu(%c)\n%q = QuantizeLinear(%a, %s, %z)\noutput %q", 3},
        {CONV4 "%a = Clip(%c, %lo)\n%b = Relu(%a)\n%q = QuantizeLinear(%b, %s, %z)\noutput %q", 4},
        /* limits of integers only */
        {CONV4 "%a = Relu(%c)\noutput %a", 0},
        {CONV4 "%a = Relu(%c)\n%b = Neg(%a)\noutput %b", 2},                       /* a chain */
        {CONV4 "%a = Sigmoid(%c)\n%q = QuantizeLinear(%a, %s, %z)\noutput %q", 2}, /* a chain */
        {CONV4 "%q = QuantizeLinear(%c, %bad, %z)\noutput %q", 0},                 /* no scale */
        {CONV4 "%q = QuantizeLinear(%c, %s, %z)\noutput %q\noutput %d", 2},        /* both run */
        {"%vm = DequantizeLinear(%w, %m, %mz) {axis=0}\n%c = Conv(%d, %vm) {group=4}\n%q = "
         "QuantizeLinear(%c, %s, %z)\noutput %q",
         /* a scale a map */
         2},
        /* float32 in */
        {"%c = Conv(%r, %v) {group=4}\n%q = QuantizeLinear(%c, %s, %z)\noutput %q", 0},
        /* the residual is made */
        {"%c = Conv(%r, %v) {group=4}\n%a = Add(%c, %d)\n%b = Relu(%a)\noutput %b", 3},
        {"%p = MaxPool(%d) {kernel_shape=[2,2]}\n%q = QuantizeLinear(%p, %s, %z)\noutput %q", 2},
        /* of another scale */
        {"%p = MaxPool(%d) {kernel_shape=[2,2]}\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 0},
        {"%p = AveragePool(%d) {kernel_shape=[2,2]}\n%q = QuantizeLinear(%p, %t, %z)\noutput %q",
         2},
        {"%p = Transpose(%d) {perm=[0,2,3,1]}\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 2},
        {"%p = Identity(%d)\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 0}, /* the very memory */
        {E "%p = Concat(%d, %e) {axis=1}\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 2},
        {"%p = Concat(%d, %r) {axis=1}\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 0},
        /* matrices that are computed */
        {E "%p = MatMul(%d, %e)\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 2},
        {E "%p = MatMul(%d, %e)\n%a = Relu(%p)\n%q = QuantizeLinear(%a, %t, %z)\noutput %q", 3},
        {E "%p = MatMul(%d, %e)\n%a = Add(%p, %lo)\n%q = QuantizeLinear(%a, %t, %z)\noutput %q", 3},
        {"%p = MatMul(%d, %r)\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 0},
        /* a chain of bytes */
        {E "%p = Add(%d, %e)\n%q = QuantizeLinear(%p, %t, %z)\noutput %q", 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[4000];
        snprintf(graph, sizeof graph, "%s%s", BYTES, cases[k].rest);
        uint32_t n = first_group(graph);
        if (n != cases[k].nodes)
            fail_msg("%u nodes in the first group, not %u: %s", n, cases[k].nodes, cases[k].rest);
    }
}

#define INTEGER                                                                                   \
    "input %x : float32[1,4,8,8]\ninput %n : float32[1]\ninput %many : float32[8]\n%q, %s, %z = " \
    "DynamicQuantizeLinear(%x)\n"                                                                 \
    "init %f : float32[] = fill 0.01\ninit %c : float32[8] = random 1\ninit %b : float32[4,1,1] " \
    "= random 2\n"                                                                                \
    "init %w : int8[8,8] = fill 3\ninit %wz : int8[] = [1]\ninit %k : int8[4,4,1,1] = fill 2\n"
#define FLOATS "%i = Cast(%y) {to=1}\n%o = Mul(%i, %p)\n"

/* Integer products and the way back to float32. */
static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        uint32_t nodes;
    } cases[] = {
        {"%y = MatMulInteger(%q, %w, %z, %wz)\noutput %y", 0},
        {"%y = MatMulInteger(%q, %w, %z, %wz)\n%p = Mul(%s, %f)\n" FLOATS "output %o", 4},
        {"%y = MatMulInteger(%q, %w, %z, %wz)\n%p = Mul(%s, %c)\n" FLOATS
         "%a = Add(%o, %c)\noutput %a",
         5},
        /* scales that others read */
        {"%y = MatMulInteger(%q, %w, %z, %wz)\n%p = Mul(%s, %f)\n" FLOATS "output %o\noutput %p",
         3},
        /* known later, a number a column */
        {"%y = MatMulInteger(%q, %w, %z, %wz)\n%p = Mul(%s, %many)\n" FLOATS "output %o", 0},
        /* integers are wanted */
        {"%y = MatMulInteger(%q, %w, %z, %wz)\n%p = Mul(%s, %f)\n" FLOATS "output %o\noutput %i",
         0},
        {"%y = ConvInteger(%q, %k, %z)\n%p = Mul(%s, %f)\n" FLOATS "output %o", 3},
        {"%y = ConvInteger(%q, %k, %z)\n%p = Mul(%s, %f)\n" FLOATS "%a = Add(%b, %o)\noutput %a",
         4},
        {"%y = ConvInteger(%q, %k, %z)\n%p = Mul(%s, %c)\n" FLOATS "output %o", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[4000];
        snprintf(graph, sizeof graph, "%s%s", INTEGER, cases[k].rest);
        uint32_t n = first_group(graph);
        if (n != cases[k].nodes)
            fail_msg("%u nodes in the first group, not %u: %s", n, cases[k].nodes, cases[k].rest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions), cmocka_unit_test(transposed_convolutions),
        cmocka_unit_test(chains),       cmocka_unit_test(long_chains),
        cmocka_unit_test(attention),    cmocka_unit_test(transposes_move_nothing),
        cmocka_unit_test(products),     cmocka_unit_test(bytes),
        cmocka_unit_test(integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
