/* Values that late readers compute once more (src/transform/decompose/rematerialise_skips.c):
 * which are found, who reads the copy, that a copy of which no region has taken a part is taken
 * back. Numbers and memory in runtimes: tests/e2e/skips.sh.
 */
#include "ir_check.h"

#include "transform/decompose/decompose.h"

#define CONV(y, x, w) " %" y " = Conv(%" x ", %" w ") {kernel_shape=[3,3], pads=[1,1,1,1]}\n"
#define HEAD                                                                                       \
    "model ir 8 opset 18\ngraph g {\n input %x : float32[1,2,16,12]\n init %v : float32[8,2,3,3] " \
    "= random 1\n"                                                                                 \
    " init %w : float32[8,8,3,3] = random 2\n init %u : float32[4,16,3,3] = random 3\n"            \
    " init %few : float32[1,8,3,3] = random 4\n"
/* the same, with dynamic extents */
#define DYNAMIC_HEAD                                                                             \
    "model ir 8 opset 18\ngraph g {\n input %x : float32[1,2,?,?]\n init %v : float32[8,2,3,3] " \
    "= random 1\n"                                                                               \
    " init %w : float32[8,8,3,3] = random 2\n init %u : float32[4,16,3,3] = random 3\n"          \
    " init %few : float32[1,8,3,3] = random 4\n"
#define ENCODER                                                                       \
    " %c = Conv(%x, %v) {kernel_shape=[3,3], pads=[1,1,1,1]}\n %r = Relu(%c)\n" CONV( \
        "d", "r", "w") " %s = Relu(%d)\n"
/* with a product more than OT_REMAT_WAITS makes again */
#define DEEP_ENCODER                                                                  \
    " %c = Conv(%x, %v) {kernel_shape=[3,3], pads=[1,1,1,1]}\n %r = Relu(%c)\n" CONV( \
        "b", "r", "w") " %t = Relu(%b)\n" CONV("d", "t", "w") " %s = Relu(%d)\n"
#define MIDDLE                                                                             \
    CONV("e", "s", "w")                                                                    \
    " %f = Relu(%e)\n" CONV("g", "f", "w") " %h = Relu(%g)\n" CONV("i", "h", "w") " %j = " \
                                                                                  "Relu(%i)\n"
/* more steps than make what waits */
#define LONG_MIDDLE                                                 \
    CONV("e", "s", "w")                                             \
    " %f = Relu(%e)\n" CONV("g", "f", "w") " %h = Relu(%g)\n" CONV( \
        "m", "h", "w") " %n = Relu(%m)\n" CONV("i", "n", "w") " %j = Relu(%i)\n"
#define DECODER " %k = Concat(%j, %s) {axis=1}\n" CONV("y", "k", "u") " output %y\n}\n"

#define SQUEEZE(y, pool)                                                                        \
    " %p = " pool "\n %a = Conv(%p, %square) {kernel_shape=[1,1]}\n %scale = Sigmoid(%a)\n %" y \
    " = Mul(%s, %scale)\n"
#define POOLED(pool)                                                                \
    HEAD " init %square : float32[8,8,1,1] = random 5\n" ENCODER SQUEEZE("k", pool) \
        CONV("y", "k", "few") " output %y\n}\n"

#define CHANNEL (16 * 12 * 4) /* bytes */

static ot_model *model_of(const char *text)
{
    ot_model *m = parse(text);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    return m;
}

static void found_as_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *name; /* of the largest; NULL: there is none */
        int64_t channels; /* that it takes beyond what it is made of */
    } CASES[] = {
        {HEAD ENCODER MIDDLE DECODER, "s", 8},                 /* of the caller's image */
        {HEAD ENCODER " %j = Sigmoid(%s)\n" DECODER, NULL, 0}, /* it waits for a step */
        /* read twice soon, once late */
        {HEAD ENCODER CONV("t", "s", "few") MIDDLE DECODER, "s", 8},
        {HEAD ENCODER MIDDLE " output %s\n" DECODER, NULL, 0}, /* it is there anyhow */
        {HEAD ENCODER MIDDLE CONV("o", "j", "w") " %q = Relu(%o)\n" CONV("l", "q", "w")
             CONV("m", "l", "w") CONV("n", "m", "w") " %k = Concat(%n, %j) {axis=1}\n" CONV(
                 "y", "k", "u") " output %y\n}\n",
         NULL, 0}, /* made of as many numbers */
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_model *m = model_of(CASES[k].text);
        ot_remat_skip all[3] = {0};
        uint32_t n;
        assert_int_equal(ot_rematerialise_find_skips(m->graph, OT_REMAT_WAITS, all, 3, &n), OT_OK);
        if ((n > 0) != (CASES[k].name != NULL)) fail_msg("case %zu: %u are found", k, n);
        if (n > 0) {
            assert_string_equal(m->graph->values[all[0].value].name, CASES[k].name);
            assert_int_equal(all[0].bytes, CASES[k].channels * CHANNEL);
            assert_true(all[0].macs == 16 * 12 * (9 * (2 * 8 + 8 * 8) + 2 * 8));
        }
        for (uint32_t j = 1; j < n; j++) assert_true(all[j].bytes <= all[j - 1].bytes);
        assert_int_equal(ot_rematerialise_find_skips(m->graph, OT_REMAT_WAITS, all, 0, &n), OT_OK);
        assert_int_equal(n, 0);
        ot_model_free(m);
    }
}

/* What is pooled and then scaled is found as such, and not as what waits; a pool that tiles cannot
 * sum up is none. A chain goes on past a value that two of its nodes read. */
static void found_pooled(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t n, nodes;
    } CASES[] = {
        {POOLED("GlobalAveragePool(%s)"), 1, 4},
        {POOLED("ReduceMax(%s) {axes=[2,3]}"), 1, 4},
        {POOLED("MaxPool(%s) {kernel_shape=[16,12]}"), 0, 0}, /* a window, not a reduction */
        {HEAD
         " init %square : float32[8,8,1,1] = random 5\n %c = Conv(%x, %v) {kernel_shape=[3,3], "
         "pads=[1,1,1,1]}\n %g = Sigmoid(%c)\n %s = Mul(%c, %g)\n" SQUEEZE(
             "k", "GlobalAveragePool(%s)") CONV("y", "k", "few") " output %y\n}\n",
         1, 3},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_model *m = model_of(CASES[k].text);
        ot_graph *g = m->graph;
        ot_remat_skip all[3] = {0};
        uint32_t n;
        assert_int_equal(ot_rematerialise_find_skips(g, OT_REMAT_WAITS, all, 3, &n), OT_OK);
        assert_int_equal(n, 0);
        assert_int_equal(ot_rematerialise_find_skips(g, OT_REMAT_POOLED, all, 3, &n), OT_OK);
        if (n != CASES[k].n) fail_msg("case %zu: %u are found", k, n);
        if (n > 0) {
            assert_string_equal(g->values[all[0].value].name, "s");
            assert_int_equal(ot_rematerialise_skips(g, g, OT_REMAT_POOLED, &all[0].value, 1),
                             OT_OK);
            assert_int_equal(ot_verify(g), OT_OK);
            assert_int_equal(m->rematerialised[0].n_nodes, CASES[k].nodes);
            const ot_value *again = &g->values[m->rematerialised[0].again];
            assert_int_equal(again->n_uses, 1);
            assert_string_equal(g->nodes[again->uses[0]].op_type, "Mul");
        }
        ot_model_free(m);
    }
}

/* What waits in an arena may be made of more nodes. With dynamic extents, which tell no sizes, the
 * values are those of the graph at one size, and the copy reads the image of any. */
static void deep_and_dynamic(void **state)
{
    (void)state;
    ot_model *planned = model_of(HEAD DEEP_ENCODER LONG_MIDDLE DECODER),
             *m = model_of(DYNAMIC_HEAD DEEP_ENCODER LONG_MIDDLE DECODER);
    ot_graph *g = m->graph;
    ot_remat_skip all[3] = {0};
    uint32_t n;
    assert_int_equal(ot_rematerialise_find_skips(planned->graph, OT_REMAT_WAITS, all, 3, &n),
                     OT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ot_rematerialise_find_skips(g, OT_REMAT_DEEP, all, 3, &n), OT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(ot_rematerialise_find_skips(planned->graph, OT_REMAT_DEEP, all, 3, &n), OT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(all[0].bytes, 8 * CHANNEL);
    const ot_id s = ot_value_find(g, "s");
    assert_int_equal(all[0].value, s);
    assert_int_equal(ot_rematerialise_skips(g, planned->graph, OT_REMAT_DEEP, &s, 1), OT_OK);
    assert_int_equal(ot_verify(g), OT_OK);
    assert_int_equal(m->n_rematerialised, 1);
    assert_int_equal(planned->n_rematerialised, 0);
    assert_int_equal(m->rematerialised[0].n_nodes, 6);
    const ot_value *again = &g->values[m->rematerialised[0].again];
    assert_string_equal(g->nodes[again->uses[0]].op_type, "Concat");
    assert_int_equal(g->values[s].n_uses, 1);
    ot_model_free(m);
    ot_model_free(planned);
}

/* The late reader has the copy, the early one does not; clones get the same; what no region
 * touches becomes what it was. */
static void repeated_and_taken_back(void **state)
{
    (void)state;
    for (int touched = 0; touched < 3; touched++) {
        ot_model *m = model_of(HEAD ENCODER MIDDLE DECODER), *copy;
        ot_graph *g = m->graph;
        const ot_id s = ot_value_find(g, "s"), by = g->values[s].producer;
        char *before = print(g);
        assert_int_equal(ot_model_clone(m, &copy), OT_OK);
        assert_int_equal(ot_rematerialise_skips(copy->graph, copy->graph, OT_REMAT_WAITS, &s, 1),
                         OT_OK);
        assert_int_equal(ot_rematerialise_skips(g, g, OT_REMAT_WAITS, &s, 1), OT_OK);
        assert_int_equal(ot_verify(g), OT_OK);
        assert_int_equal(m->n_rematerialised, 1);
        assert_int_equal(m->rematerialised[0].n_nodes, 4);
        assert_int_equal(m->rematerialised[0].again, copy->rematerialised[0].again);
        assert_int_equal(g->values[s].n_uses, 1);
        assert_string_equal(g->nodes[g->values[s].uses[0]].op_type, "Conv");
        const ot_value *again = &g->values[m->rematerialised[0].again];
        assert_int_equal(again->n_uses, 1);
        assert_string_equal(g->nodes[again->uses[0]].op_type, "Concat");
        assert_int_equal(g->nodes[again->producer].op, g->nodes[by].op);
        if (touched == 1) ot_node_remove(g, m->rematerialised[0].nodes[0]);
        if (touched == 2) ot_node_remove(g, by);
        assert_int_equal(ot_recompose(g, false), OT_OK);
        assert_true(g->nodes[m->rematerialised[0].nodes[1]].dead == (touched == 0));
        if (touched == 0) {
            assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
            char *after = print(g);
            assert_string_equal(before, after);
            free(after);
        }
        free(before);
        ot_model_free(copy);
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_as_expected), cmocka_unit_test(found_pooled),
        cmocka_unit_test(deep_and_dynamic), cmocka_unit_test(repeated_and_taken_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
