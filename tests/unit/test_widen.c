/* Half precision written in float32 (transform/widen.c): types, what is left alone, and the way
 * back. */
#include "ops/shape.h"
#include "onnx/import/model_io.h"
#include "onnx/graph/ir.h"
#include "transform/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static ot_model *model_of(const char *text)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK ||
        ot_infer_shapes(m->graph, NULL, 0) != OT_OK ||
        ot_assure(m->graph, OT_P_ORDER | OT_P_USES) != OT_OK)
        fail_msg("%s\n%s", d.message, text);
    return m;
}

/* The graph as text; malloc'ed. */
static char *text_of(const ot_graph *g)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(ot_text_print(g, f), OT_OK);
    assert_int_equal(fclose(f), 0);
    return text;
}

static ot_id value(const ot_graph *g, const char *name)
{
    const ot_id v = ot_value_find(g, name);
    if (v == OT_NONE) fail_msg("no value %s", name);
    return v;
}

static const ot_node *maker(const ot_graph *g, ot_id v)
{
    if (g->values[v].producer == OT_NONE) fail_msg("nobody makes %s", g->values[v].name);
    return &g->nodes[g->values[v].producer];
}

#define HEAD   "model ir 8 opset 17\ngraph g {\n"
#define INPUT  "  input %x : float16[1,4,8,8]\n"
#define WEIGHT "  init %w : float16[4,4,3,3] = random 1\n"
#define CONV   "  %c = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"

static uint32_t count_casts(const ot_graph *g)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_order; k++) n += g->nodes[g->order[k]].op == OT_OP_Cast;
    return n;
}

/* Casts that follow each other, that a result is made by, and that readers of two kinds share. */
static void casts_with_nothing_to_do_go(void **state)
{
    (void)state;
    ot_model *m = model_of(
        HEAD INPUT WEIGHT CONV
        "  %f = Cast(%c) {to=1}\n  %r = Relu(%f)\n  %h = Cast(%r) {to=10}\n  %i = Cast(%h) {to=1}\n"
        "  %a = Add(%i, %f)\n  %z = Add(%h, %c)\n  output %a\n  output %z\n}\n");
    ot_graph *g = m->graph;
    ot_model *before;
    bool changed;
    char *was = text_of(g);
    assert_int_equal(ot_model_clone(m, &before), OT_OK);
    assert_int_equal(ot_widen(g, &changed), OT_OK);
    assert_true(changed);
    assert_int_equal(ot_widen_drop_casts(g), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    assert_int_equal(count_casts(g), 2); /* of x, and of z */
    const ot_id conv = maker(g, value(g, "r"))->in[0], relu = value(g, "r");
    assert_int_equal(maker(g, conv)->op, OT_OP_Conv);
    assert_int_equal(maker(g, value(g, "a"))->in[0], relu);
    assert_int_equal(maker(g, value(g, "a"))->in[1], conv);
    assert_int_equal(ot_model_adopt(m, before), OT_OK);
    char *now = text_of(g);
    assert_string_equal(now, was);
    free(now);
    free(was);
    ot_model_free(before);
    ot_model_free(m);
}

static void all_between_the_casts_is_float32(void **state)
{
    (void)state;
    /* y is a result, and others read it; h was cast to half precision on purpose */
    ot_model *m = model_of(HEAD INPUT WEIGHT CONV
                           "  %y = Relu(%c)\n  %f = Cast(%y) {to=1}\n  %h = Cast(%f) {to=10}\n"
                           "  %z = Add(%h, %y)\n  output %y\n  output %z\n}\n");
    ot_graph *g = m->graph;
    ot_model *before;
    bool changed;
    char *was = text_of(g);
    assert_int_equal(ot_model_clone(m, &before), OT_OK);
    assert_int_equal(ot_widen(g, &changed), OT_OK);
    assert_true(changed);
    assert_int_equal(ot_infer_shapes(g, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    assert_int_equal(g->values[value(g, "x")].dtype, OT_F16);
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        assert_int_equal(g->values[g->outputs[k]].dtype, OT_F16);
        assert_int_equal(maker(g, g->outputs[k])->op, OT_OP_Cast);
    }
    assert_int_equal(g->values[value(g, "h")].dtype, OT_F32); /* not rounded on the way */
    const ot_node *conv = maker(g, value(g, "c"));
    assert_int_equal(g->values[conv->in[0]].dtype, OT_F32);
    assert_int_equal(maker(g, conv->in[0])->op, OT_OP_Cast);
    assert_true(g->values[value(g, "w")].removed);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->op != OT_OP_Cast) assert_int_equal(g->values[n->in[j]].dtype, OT_F32);
    }
    assert_int_equal(ot_model_adopt(m, before), OT_OK);
    assert_int_equal(ot_infer_shapes(g, NULL, 0), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    char *now = text_of(g);
    assert_string_equal(now, was);
    free(was);
    free(now);
    ot_model_free(before);
    ot_model_free(m);
}

static void constants_keep_their_numbers(void **state)
{
    (void)state;
    ot_model *m = model_of(HEAD INPUT WEIGHT
                           "  init %b : float16[4] = [1, -0.5, 65504, 0.0009765625]\n"
                           "  %c = Conv(%x, %w, %b) {pads=[1, 1, 1, 1]}\n  output %c\n}\n");
    ot_graph *g = m->graph;
    bool changed;
    float got[4];
    size_t n = 0;
    assert_int_equal(ot_widen(g, &changed), OT_OK);
    const ot_value *b = &g->values[maker(g, maker(g, value(g, "c"))->in[0])->in[2]];
    assert_int_equal(b->dtype, OT_F32);
    assert_non_null(b->init);
    assert_true(ot_tensor_floats(b->init, got, 4, &n) && n == 4);
    assert_true(got[0] == 1 && got[1] == -0.5F && got[2] == 65504 && got[3] == 0.0009765625F);
    ot_model_free(m);
}

/* Nothing to gain, or an operator that would make half precision all the same. */
static void left_alone(const char *text)
{
    ot_model *m = model_of(text);
    bool changed;
    char *was = text_of(m->graph);
    assert_int_equal(ot_widen(m->graph, &changed), OT_OK);
    assert_false(changed);
    char *now = text_of(m->graph);
    assert_string_equal(now, was);
    free(was);
    free(now);
    ot_model_free(m);
}

static void some_graphs_stay(void **state)
{
    (void)state;
    left_alone(HEAD INPUT "  %y = Relu(%x)\n  output %y\n}\n"); /* no product */
    left_alone(HEAD "  input %x : float32[1,4,8,8]\n  init %w : float32[4,4,1,1] = random 1\n  %c "
                    "= Conv(%x, %w)\n  output %c\n}\n");
    left_alone(HEAD INPUT WEIGHT CONV "  %y = Unknown(%c)\n  output %y\n}\n");
    left_alone(HEAD INPUT WEIGHT CONV
               "  %e = RandomNormalLike(%c) {dtype=10}\n  %y = Add(%c, %e)\n  output %y\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(casts_with_nothing_to_do_go),
                                       cmocka_unit_test(all_between_the_casts_is_float32),
                                       cmocka_unit_test(constants_keep_their_numbers),
                                       cmocka_unit_test(some_graphs_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
