/* First and last use of values: by hand, in every way to number steps, and beside a count of every
 * reader of random graphs, bodies included. Random cases print their seed. */
#include "lifetime/lifetime.h"

#include "ir_check.h"

static ot_id id_of(const ot_graph *g, const char *name)
{
    const ot_id v = ot_value_find(g, name);
    if (v == OT_NONE) fail_msg("no value %s", name);
    return v;
}

/* a is read by the body of an If, b by nobody, y by the caller. */
#define BODY                                                                                  \
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[4]\n  input %c : bool[]\n"          \
    "  %a : float32[4] = Neg(%x)\n  %b : float32[4] = Abs(%x)\n  %d : float32[4] = Exp(%a)\n" \
    "  %y : float32[4] = If(%c) {then_branch=graph t {\n  outer %a : float32[4]\n"            \
    "  %p : float32[4] = Abs(%a)\n  output %p\n}, else_branch=graph e {\n"                    \
    "  outer %d : float32[4]\n  %q : float32[4] = Neg(%d)\n  output %q\n}}\n  output %y\n}\n"

static ot_model *assured(const char *text)
{
    ot_model *m = parse(text);
    if (ot_assure(m->graph, OT_P_ORDER | OT_P_USES) != OT_OK) fail_msg("%s", text);
    return m;
}

static void bodies_read_at_their_node(void **state)
{
    (void)state;
    ot_model *m = assured(BODY);
    ot_arena *a = ot_arena_new();
    const ot_graph *g = m->graph;
    ot_value_lifetimes l;
    assert_int_equal(ot_value_lifetimes_of(g, NULL, g->n_order, a, &l), OT_OK);
    assert_int_equal(g->n_order, 4);
    const uint32_t branch = l.made[id_of(g, "y")];
    assert_int_equal(l.last[id_of(g, "a")], branch);
    assert_int_equal(l.last[id_of(g, "d")], branch);
    assert_int_equal(l.last[id_of(g, "y")], g->n_order);
    assert_int_equal(l.made[id_of(g, "x")], OT_NONE);
    assert_int_equal(l.last[id_of(g, "b")], OT_NONE);
    assert_int_equal(ot_lifetime_end(&l, id_of(g, "b")), l.made[id_of(g, "b")]);
    assert_int_equal(ot_lifetime_end(&l, id_of(g, "a")), branch);
    ot_arena_free(a);
    ot_model_free(m);
}

/* Several nodes in one step; one that does not run reads and makes nothing. */
static void steps_are_the_callers(void **state)
{
    (void)state;
    ot_model *m = assured(BODY);
    ot_arena *a = ot_arena_new();
    const ot_graph *g = m->graph;
    uint32_t step_of[4];
    ot_value_lifetimes l;
    for (uint32_t k = 0; k < 4; k++) step_of[k] = 7;
    step_of[g->values[id_of(g, "y")].producer] = OT_NONE;
    assert_int_equal(ot_value_lifetimes_of(g, step_of, 9, a, &l), OT_OK);
    assert_int_equal(l.made[id_of(g, "a")], 7);
    assert_int_equal(l.last[id_of(g, "a")], 7);
    assert_int_equal(l.last[id_of(g, "d")], OT_NONE);
    assert_int_equal(l.made[id_of(g, "y")], OT_NONE);
    assert_int_equal(l.last[id_of(g, "y")], 9);
    ot_arena_free(a);
    ot_model_free(m);
}

/* Uses, which the graph keeps, say the same. */
static void random_graphs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t rng = seed;
        char text[6000];
        int at = snprintf(text, sizeof text,
                          "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[4]\n");
        const unsigned n = 2 + (unsigned)(ot_next_random(&rng) % 30);
        for (unsigned k = 1; k < n; k++)
            at += snprintf(
                text + at, sizeof text - (size_t)at, "  %%v%u : float32[4] = Add(%%v%u, %%v%u)\n",
                k, (unsigned)(ot_next_random(&rng) % k), (unsigned)(ot_next_random(&rng) % k));
        snprintf(text + at, sizeof text - (size_t)at, "  output %%v%u\n  output %%v%u\n}\n", n - 1,
                 n / 2 > 0 && n / 2 != n - 1 ? n / 2 : 0);
        ot_model *m = assured(text);
        ot_arena *a = ot_arena_new();
        const ot_graph *g = m->graph;
        ot_value_lifetimes l;
        uint32_t place[64];
        for (uint32_t k = 0; k < g->n_order; k++) place[g->order[k]] = k;
        assert_int_equal(ot_value_lifetimes_of(g, NULL, g->n_order, a, &l), OT_OK);
        for (ot_id v = 0; v < g->n_values; v++) {
            const ot_value *x = &g->values[v];
            const uint32_t last = x->is_output ? g->n_order
                                  : x->n_uses  ? place[x->uses[x->n_uses - 1]]
                                               : OT_NONE;
            const uint32_t made = x->producer == OT_NONE ? OT_NONE : place[x->producer];
            if (l.last[v] != last || l.made[v] != made)
                fail_msg("seed %llu: value %s\n%s", (unsigned long long)seed, x->name, text);
        }
        ot_arena_free(a);
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_read_at_their_node),
        cmocka_unit_test(steps_are_the_callers),
        cmocka_unit_test(random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
