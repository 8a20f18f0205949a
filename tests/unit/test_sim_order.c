/* The order in which the runtime takes the steps: what ONNX Runtime 1.31.1 writes as its optimized
 * model, without changes of layout. */
#include "alloc_sim/simulate.h"
#include "shaped_model.h"

#define CONV(y, x)   " %" #y " = Conv(%" #x ", %w)\n"
#define RELU(y, x)   " %" #y " = Relu(%" #x ")\n"
#define ADD(y, a, b) " %" #y " = Add(%" #a ", %" #b ")\n"

/* Names of what the steps make, without blanks. */
static void order_of(const char *nodes, char *out)
{
    char text[2048];
    ot_diag d;
    ot_sim_schedule p;
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n input %%x : float32[1,32,24,24]\n"
             " init %%w : float32[32,32,1,1] = random 1\n%s output %%y\n}\n",
             nodes);
    ot_model *m = read_model(text, &d);
    assert_int_equal(ot_sim_plan_make(m->graph, NULL, &ot_runtime_onnxruntime, true,
                                      (ot_sim_orders){0}, m->arena, &p),
                     OT_OK);
    *out = 0;
    for (size_t k = 0; k < p.n; k++)
        if (p.steps[k].node != OT_NONE)
            strcat(out, m->graph->values[p.steps[k].writes[0] % m->graph->n_values].name);
    ot_model_free(m);
}

static void steps_run_in_the_runtimes_order(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *order;
    } ROWS[] = {
        /* of two chains the one that stands last in the file is made anew first, and runs last */
        {CONV(s, x) CONV(a, s) RELU(b, a) CONV(c, b) CONV(d, s) ADD(y, c, d), "sbdy"},
        {CONV(s, x) CONV(d, s) CONV(a, s) RELU(b, a) CONV(c, b) ADD(y, c, d), "sdby"},
        /* a convolution that its activation is fused with stands behind one that none is */
        {CONV(s, x) CONV(a, s) RELU(b, a) CONV(c, s) CONV(e, c) ADD(y, b, e), "scby"},
        {CONV(s, x) CONV(a, s) CONV(c, s) RELU(b, c) CONV(e, a) ADD(f, e, b) CONV(y, f), "sabfy"},
        {CONV(s, x) CONV(d, s) CONV(a, s) CONV(c, a) ADD(y, c, d), "sday"},
        {CONV(s, x) CONV(a, s) CONV(b, s) CONV(e, a) CONV(f, b) ADD(y, e, f), "sabfy"},
    };
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++) {
        char order[256];
        order_of(ROWS[k].nodes, order);
        if (strcmp(order, ROWS[k].order) != 0)
            fail_msg("row %zu: %s, not %s", k, order, ROWS[k].order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_run_in_the_runtimes_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
