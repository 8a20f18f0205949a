/* Constants that tiles share, repeated for those that are written out: biases, slopes, factors;
 * no weights, no limits, nothing large. */
#include "ops/shape.h"
#include "onnx/graph/ir.h"
#include "transform/transform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Node `name` of the text below; the first of each kind is the file's, the second and third as
 * if the rewriter had made them. */
static ot_node *node(ot_graph *g, const char *name)
{
    for (ot_id k = 0; k < g->n_nodes; k++)
        if (strcmp(g->values[g->nodes[k].out[0]].name, name) == 0) return &g->nodes[k];
    fail_msg("no node %s", name);
    return NULL;
}

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

/* Operand j of nodes name0, name1, name2: does each of the latter two have one of its own, with
 * the same contents? */
static void assert_own(ot_graph *g, const char *name, uint32_t j, bool own)
{
    char names[3][16];
    ot_id v[3];
    for (int k = 0; k < 3; k++) {
        snprintf(names[k], sizeof names[k], "%s%d", name, k);
        v[k] = node(g, names[k])->in[j];
    }
    for (int k = 1; k < 3; k++) {
        if ((v[k] != v[0]) != own || (own && v[1] == v[2])) fail_msg("%s, operand %u", names[k], j);
        assert_ptr_equal(g->values[v[k]].init, g->values[v[0]].init);
    }
}

static void made_nodes_get_their_own(void **state)
{
    (void)state;
    char text[4096] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,8,8]\n  init %w : "
        "float32[4,4,1,1] = random 1\n"
        "  init %b : float32[4] = random 1\n  init %s : float32[4,1,1] = random 1\n  init %f : "
        "float32[4,1,1] = random 1\n"
        "  init %lo : float32[] = [0]\n  init %large : float32[512,4,8,8] = random 1\n";
    for (int k = 0; k < 3; k++) {
        char part[512];
        snprintf(part, sizeof part,
                 "  %%conv%d = Conv(%%x, %%w, %%b)\n  %%prelu%d = PRelu(%%conv%d, %%s)\n  %%mul%d "
                 "= Mul(%%f, %%prelu%d)\n"
                 "  %%clip%d = Clip(%%mul%d, %%lo)\n  %%add%d = Add(%%clip%d, %%large)\n  output "
                 "%%add%d\n",
                 k, k, k, k, k, k, k, k, k, k);
        strcat(text, part);
    }
    ot_model *m = model_of(strcat(text, "}\n"));
    ot_graph *g = m->graph;
    static const char *const kinds[] = {"conv", "prelu", "mul", "clip", "add"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int k = 0; k < 3; k++) {
            char name[16];
            snprintf(name, sizeof name, "%s%d", kinds[i], k);
            node(g, name)->source = k ? OT_NONE : 0;
        }
    assert_int_equal(ot_own_biases(g), OT_OK);
    assert_own(g, "conv", 1, false);
    assert_own(g, "conv", 2, true);
    assert_own(g, "prelu", 1, true);
    assert_own(g, "mul", 0, true);
    assert_own(g, "clip", 1, false);
    assert_own(g, "add", 1, false);
    ot_model_free(m);
}

/* With nothing made, nothing changes. */
static void the_files_nodes_share(void **state)
{
    (void)state;
    ot_model *m = model_of("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,8,8]\n  init "
                           "%s : float32[4,1,1] = random 1\n"
                           "  %a = PRelu(%x, %s)\n  %y = PRelu(%a, %s)\n  output %y\n}\n");
    const uint32_t n = m->graph->n_values;
    for (ot_id k = 0; k < m->graph->n_nodes; k++) m->graph->nodes[k].source = k;
    assert_int_equal(ot_own_biases(m->graph), OT_OK);
    assert_int_equal(m->graph->n_values, n);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(made_nodes_get_their_own),
                                       cmocka_unit_test(the_files_nodes_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
