/* Which operators hand on channel blocks, by the extents that the runtime knows when it loads:
 * what ONNX Runtime 1.31.1 writes as its optimized model, with blocks of 16 channels. */
#include "alloc_sim/simulate.h"
#include "shaped_model.h"

#define X(c)     " %a = Conv(%x, %wa) {pads=[1,1,1,1]}\n %b = Conv(%x, %wb) {pads=[1,1,1,1]}\n" c
#define SIGMOIDS " %p = Sigmoid(%a)\n %q = Sigmoid(%b)\n"

/* Is %r made in blocks, of c channels and where extents are stated or not? *steps: of the schedule,
 * those that another one takes in not counted. */
static bool is_blocked(const char *nodes, int c, bool stated, size_t *steps)
{
    char text[2048];
    ot_diag d;
    ot_sim_schedule p;
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n input %%x : float32[1,32,24,24]\n"
             " init %%wa : float32[%d,32,3,3] = random 1\n init %%wb : float32[%d,32,3,3] = random "
             "2\n init %%wc : float32[%d,%d,1,1] = random 3\n init %%wy : float32[32,%d,1,1] = "
             "random 4\n%s %%y = Conv(%%r, %%wy)\n output %%y\n}\n",
             c, c, c, c, c, nodes);
    ot_model *m = read_model(text, &d);
    for (ot_id v = 0; v < m->graph->n_values; v++) m->graph->values[v].is_unstated = !stated;
    assert_int_equal(ot_sim_plan_make(m->graph, NULL, &ot_runtime_onnxruntime, stated,
                                      (ot_sim_orders){0}, m->arena, &p),
                     OT_OK);
    const bool blocked = p.values[ot_value_find(m->graph, "r")].is_blocked;
    *steps = 0;
    for (size_t k = 0; k < p.n; k++) *steps += !p.steps[k].is_gone;
    ot_model_free(m);
    return blocked;
}

static void a_product_of_blocks_has_one_shape(void **state)
{
    (void)state;
    static const struct {
        const char *nodes;
        bool stated, unstated;
    } ROWS[] = {
        {X(" %g = GlobalAveragePool(%a)\n %p = Conv(%g, %wc)\n %q = Sigmoid(%p)\n"
           " %r = Mul(%a, %q)\n"),
         false, false},
        {X(SIGMOIDS " %r = Mul(%p, %q)\n"), true, false},
        {X(SIGMOIDS " %r = Add(%p, %q)\n"), true, true},
        {X(" %p = Conv(%a, %wc)\n %q = Sigmoid(%p)\n %r = Mul(%a, %q)\n"), true, true},
        {X(" %p = Sigmoid(%a)\n %q = Tanh(%p)\n %r = Mul(%p, %q)\n"), true, true},
    };
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++)
        for (int stated = 0; stated < 2; stated++) {
            size_t steps;
            if (is_blocked(ROWS[k].nodes, 32, stated, &steps) !=
                (stated ? ROWS[k].stated : ROWS[k].unstated))
                fail_msg("row %zu, stated %d", k, stated);
        }
}

static void pools_take_whole_blocks(void **state)
{
    (void)state;
    static const char *const POOLS[] = {"GlobalAveragePool(%a)", "GlobalMaxPool(%a)",
                                        "MaxPool(%a) {kernel_shape=[2,2]}",
                                        "AveragePool(%a) {kernel_shape=[2,2]}"};
    for (size_t k = 0; k < sizeof POOLS / sizeof *POOLS; k++)
        for (int c = 16; c <= 48; c += 8) {
            char nodes[256];
            size_t steps;
            snprintf(nodes, sizeof nodes, "%s %%r = %s\n", X(""), POOLS[k]);
            assert_int_equal(is_blocked(nodes, c, true, &steps), c % 16 == 0);
        }
}

/* An Add of what two convolutions make of one plain value runs alone where no extents are stated;
 * of a value in blocks and what a convolution makes of it, never. */
static void an_add_joins_where_extents_are_known(void **state)
{
    (void)state;
    size_t stated, unstated;
    assert_true(is_blocked(X(" %r = Add(%a, %b)\n"), 32, true, &stated));
    assert_true(is_blocked(X(" %r = Add(%a, %b)\n"), 32, false, &unstated));
    assert_int_equal(unstated, stated + 1);
    const char *chain = X(" %p = Conv(%a, %wc)\n %r = Add(%a, %p)\n");
    assert_true(is_blocked(chain, 32, true, &stated));
    assert_true(is_blocked(chain, 32, false, &unstated));
    assert_int_equal(unstated, stated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_of_blocks_has_one_shape),
        cmocka_unit_test(pools_take_whole_blocks),
        cmocka_unit_test(an_add_joins_where_extents_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
