/* Constants that a graph computes: which are found, and what is left when they are initializers. */
#include "shaped_model.h"

#include "app/constants.h"
#include "transform/transform.h"

static ot_model *model_of(const char *body, ot_diag *d)
{
    char text[4096];
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph g {\n%s}\n", body);
    return read_model(text, d);
}

/* Ones of that shape. */
#define ONES(name, shape)                                                               \
    "  init %" name "s : int64[2] = [" shape "]\n  %" name "z = ConstantOfShape(%" name \
    "s)\n  init %" name "one : float32[] = [1]\n  %" name " = Add(%" name "z, %" name "one)\n"

static ot_constants constants_of(const ot_model *m, bool bit_exact)
{
    ot_constants c;
    assert_int_equal(ot_constants_compute(m, bit_exact, m->arena, &c), OT_OK);
    return c;
}

/* Equal results are one initializer; what led to them goes, and so do the constants of that. */
static void equal_constants_are_one(void **state)
{
    (void)state;
    ot_diag d;
    uint32_t n = 0;
    ot_model *m = model_of(
        "  input %x : float32[1024,1024]\n" ONES("a", "1024, 1024")
            ONES("b", "1024, 1024") "  init %c : float32[] = [3]\n"
                                    "  %t = Mul(%b, %c)\n  %p = Add(%x, %a)\n  %q = Mul(%p, %b)\n"
                                    "  %y = Sub(%q, %t)\n  output %y\n",
        &d);
    ot_graph *g = m->graph;
    const ot_constants c = constants_of(m, true);
    assert_int_equal(c.computed.n, 3);
    assert_int_equal(ot_fold_constants(g, &c, &n), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    assert_int_equal(n, 5);
    assert_int_equal(g->n_order, 3);
    const ot_node *p = &g->nodes[g->values[ot_value_find(g, "p")].producer],
                  *q = &g->nodes[g->values[ot_value_find(g, "q")].producer],
                  *y = &g->nodes[g->values[ot_value_find(g, "y")].producer];
    assert_int_equal(p->in[1], q->in[1]);
    const float *ones = g->values[p->in[1]].init->data, *threes = g->values[y->in[1]].init->data;
    assert_float_equal(ones[1024 * 1024 - 1], 1, 0);
    assert_float_equal(threes[77], 3, 0);
    assert_true(g->values[ot_value_find(g, "as")].removed);
    assert_true(g->values[ot_value_find(g, "c")].removed);
    ot_model_free(m);
}

/* Little, what is rounded, results of the graph, and what a subgraph reads by name stay. */
static void others_stay(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t n; /* constants that are found */
    } cases[] = {
        {ONES("a", "1, 1024") "  %y = Add(%x, %a)\n  output %y\n", 0},
        {ONES("a", "1024, 1024") "  %e = Exp(%a)\n  %y = Add(%x, %e)\n  output %y\n", 1},
        {ONES("a", "1024, 1024") "  %y = Add(%x, %a)\n  output %y\n  output %a\n", 1},
        {ONES("a", "16384, 16384") "  %y = ReduceSum(%a)\n  output %y\n", 0},
        /* a number outside of the range, a sum of its own order */
        {ONES("a", "1024, 1024") "  %i = Cast(%a) {to = 7}\n  %f = Cast(%i) {to = 1}\n"
                                 "  %y = Add(%x, %f)\n  output %y\n",
         1},
        {"  init %l : float32[] = [0]\n  init %h : float32[] = [1048576]\n"
         "  init %d : float32[] = [0.1]\n  %r = Range(%l, %h, %d)\n"
         "  %s = ReduceSum(%r)\n  %y = Add(%x, %s)\n  output %y\n",
         0},
        {ONES("a", "1024, 1024") "  init %i : int64[1,2] = [0, 0]\n"
                                 "  init %u : float32[1] = [5]\n"
                                 "  %f = ScatterND(%a, %i, %u) {reduction = \"add\"}\n"
                                 "  %y = Add(%x, %f)\n  output %y\n",
         1},
        /* a part of what would take too much */
        {ONES("a", "65536, 65536") "  init %i : int64[] = [5]\n  %f = Gather(%a, %i)\n"
                                   "  %s = ReduceSum(%f)\n  %y = Add(%x, %s)\n  output %y\n",
         0},
        {ONES("a", "1024, 1024") "  %i = Identity(%as)\n  %y = Expand(%x, %i)\n  output %y\n", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char body[2048];
        ot_diag d;
        snprintf(body, sizeof body, "  input %%x : float32[1024,1024]\n%s", cases[k].body);
        ot_model *m = model_of(body, &d);
        const ot_constants c = constants_of(m, true);
        if (c.computed.n != cases[k].n)
            fail_msg("case %zu: %u constants, not %u", k, c.computed.n, cases[k].n);
        ot_model_free(m);
    }
}

/* What rounds is computed where bits may differ, unless something makes a step of them. */
static void rounded_unless_stepped(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool computed; /* %e is */
    } cases[] = {
        {"  %y = Add(%x, %e)\n", true},
        {"  %f = Sqrt(%e)\n  %m = ReduceMean(%f) {axes = [1]}\n  %y = Mul(%x, %m)\n", true},
        {"  %i = Cast(%e) {to = 7}\n  %f = Cast(%i) {to = 1}\n  %y = Add(%x, %f)\n", false},
        {"  %f = Mul(%e, %aone)\n  %b = Less(%f, %aone)\n  %y = Where(%b, %x, %aone)\n", false},
        {"  %f = Floor(%e)\n  %y = Add(%x, %f)\n", false},
        {"  %b = Greater(%x, %e)\n  %y = Where(%b, %x, %aone)\n", false},
        {"  %i = ArgMax(%e) {axis = 1}\n  %f = Cast(%i) {to = 1}\n  %y = Add(%x, %f)\n", false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char body[2048];
        ot_diag d;
        snprintf(body, sizeof body,
                 "  input %%x : float32[1024,1024]\n%s  %%e = Exp(%%a)\n%s  output %%y\n",
                 ONES("a", "1024, 1024"), cases[k].body);
        ot_model *m = model_of(body, &d);
        for (int exact = 0; exact < 2; exact++) {
            const ot_constants c = constants_of(m, exact);
            const ot_id by = m->graph->values[ot_value_find(m->graph, "e")].producer;
            if (c.computed.nodes[by] != (cases[k].computed && !exact))
                fail_msg("case %zu, %d: wrong", k, exact);
        }
        ot_model_free(m);
    }
}

/* A constant that cannot be computed is left to who runs the model. */
static void failures_stay(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = model_of("  input %x : int64[1024,1024]\n  init %s : int64[2] = [1024, 1024]\n"
                           "  init %i : int64[1] = [5000]\n  init %w : int64[2] = [1, 2]\n"
                           "  %z = ConstantOfShape(%s)\n  %c = Cast(%z) {to = 7}\n"
                           "  %g = Gather(%w, %i)\n  %b = Add(%c, %g)\n"
                           "  %y = Add(%x, %b)\n  output %y\n",
                           &d);
    const ot_constants c = constants_of(m, true);
    assert_int_equal(c.computed.n, 0);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_constants_are_one), cmocka_unit_test(others_stay),
        cmocka_unit_test(rounded_unless_stepped), cmocka_unit_test(failures_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
