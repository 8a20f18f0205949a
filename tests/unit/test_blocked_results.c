/* Copies in blocks of what regions make: where a residual network would read it so. */
#include "shaped_model.h"

#include "machine/runtime/runtime.h"
#include "transform/transform_internal.h"

/* %v comes from a region; is it copied to blocks, and do all of its readers read the copy? */
static bool is_copied(const char *nodes, int channels)
{
    char text[2048];
    ot_diag d;
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n input %%x : float32[1,%d,16,16]\n"
             " init %%w : float32[%d,%d,1,1] = random 1\n init %%n : float32[%d] = random 2\n"
             " %%v = Softsign(%%x)\n%s output %%y\n}\n",
             channels, channels, channels, channels, nodes);
    ot_model *m = read_model(text, &d);
    ot_graph *g = m->graph;
    const ot_id v = ot_value_find(g, "v");
    g->nodes[g->values[v].producer].source = OT_NONE;
    if (rw_blocked_results(g, ot_runtime_named("onnxruntime")) != OT_OK || ot_verify(g) != OT_OK)
        fail_msg("%s", d.message);
    const ot_node *n = &g->nodes[g->values[v].uses[0]];
    const bool copied = strncmp(n->name, "tile/blocks/", 12) == 0;
    if (copied) {
        assert_int_equal(g->values[v].n_uses, 1);
        assert_int_equal(n->op, OT_OP_Conv);
        assert_int_equal(ot_attr_int(n, "group", 1), channels);
        const float *taps = g->values[n->in[1]].init->data;
        for (int k = 0; k < channels; k++) assert_true(taps[k] == 1);
    }
    ot_model_free(m);
    return copied;
}

#define CONVS " %a = Conv(%v, %w)\n %b = Conv(%a, %w)\n"

static void residual_networks_read_blocks(void **state)
{
    (void)state;
    static const char *const COPIED[] = {
        CONVS " %y = Add(%b, %v)\n",
        CONVS " %y = Add(%v, %b)\n",
        CONVS " %r = Relu(%b)\n %y = Add(%r, %v)\n",
        CONVS " %s = Sigmoid(%b)\n %r = Mul(%b, %s)\n %y = Add(%r, %v)\n",
        CONVS " %c = Conv(%v, %w)\n %s = Add(%c, %v)\n %y = Add(%b, %s)\n",
    };
    for (size_t k = 0; k < sizeof COPIED / sizeof *COPIED; k++)
        if (!is_copied(COPIED[k], 32)) fail_msg("row %zu", k);
}

static void others_read_what_the_region_makes(void **state)
{
    (void)state;
    static const char *const PLAIN[] = {
        CONVS " %y = Add(%b, %b)\n",                     /* no sum of it */
        " %p = Softsign(%v)\n %y = Add(%p, %v)\n",       /* no convolution */
        CONVS " %p = Softsign(%x)\n %y = Add(%p, %v)\n", /* of what is not in blocks */
        CONVS " %p = Softmax(%v)\n %z = Add(%b, %v)\n %y = Add(%z, %p)\n", /* another reader */
    };
    for (size_t k = 0; k < sizeof PLAIN / sizeof *PLAIN; k++)
        if (is_copied(PLAIN[k], 32)) fail_msg("row %zu", k);
    /* no whole blocks */
    assert_false(is_copied(CONVS " %y = Add(%b, %v)\n", 20));
    assert_true(is_copied(CONVS " %y = Add(%b, %v)\n", 48));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residual_networks_read_blocks),
        cmocka_unit_test(others_read_what_the_region_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
