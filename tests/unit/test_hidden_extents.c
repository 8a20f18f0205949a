/* A branch that states no extents: what hides them, and what stays as it is. */
#include "shaped_model.h"

#include "transform/transform.h"

static ot_model *hidden(const char *body, ot_diag *d)
{
    char text[4096];
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph g {\n%s}\n", body);
    ot_model *m = read_model(text, d);
    assert_true(ot_branch_fits(m->graph));
    if (ot_branch(m, true) != OT_OK || ot_verify(m->graph) != OT_OK) fail_msg("%s", d->message);
    return m;
}

static ot_graph *branch_of(const ot_model *m)
{
    for (uint32_t k = 0; k < m->graph->n_nodes; k++)
        if (m->graph->nodes[k].op == OT_OP_If) return m->graph->nodes[k].attrs[0].g;
    fail_msg("no branch");
    return NULL;
}

static const ot_node *maker(const ot_graph *g, const char *value)
{
    const ot_id v = ot_value_find(g, value);
    assert_int_not_equal(v, OT_NONE);
    assert_int_not_equal(g->values[v].producer, OT_NONE);
    return &g->nodes[g->values[v].producer];
}

/* The node that makes operand k of n. */
static const ot_node *operand(const ot_graph *g, const ot_node *n, uint32_t k)
{
    assert_true(k < n->n_in && g->values[n->in[k]].producer != OT_NONE);
    return &g->nodes[g->values[n->in[k]].producer];
}

/* Shapes of large values are products with the length of the sequence, one for each shape. */
static void large_values_are_hidden(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = hidden("  input %x : float32[1,32,64,64]\n  init %s : int64[3] = [1,32,4096]\n"
                         "  init %t : int64[4] = [1,32,64,64]\n  init %u : int64[2] = [1,32]\n"
                         "  %a = Reshape(%x, %s)\n  %b = Relu(%a)\n  %c = Reshape(%b, %t)\n"
                         "  %e = Add(%c, %x)\n  %f = Reshape(%e, %s)\n"
                         "  %p = GlobalAveragePool(%e)\n  %y = Reshape(%p, %u)\n"
                         "  output %f\n  output %y\n",
                         &d);
    const ot_graph *g = branch_of(m);
    assert_true(g->states_no_extents);
    assert_int_equal(count_nodes(g, OT_OP_Slice), 1);
    assert_int_equal(count_nodes(g, OT_OP_Mul), 3); /* two shapes, and the end of the Slice */
    const ot_node *a = maker(g, "a"), *sum = maker(g, "e"), *small = maker(g, "y");
    assert_int_equal(operand(g, a, 0)->op, OT_OP_Slice);
    assert_int_equal(operand(g, a, 1)->op, OT_OP_Mul);
    assert_int_equal(a->in[1], maker(g, "f")->in[1]);
    assert_int_equal(operand(g, sum, 1)->op, OT_OP_Slice);
    assert_string_equal(g->values[small->in[1]].name, "u"); /* of 32 numbers */
    const ot_node *cut = operand(g, a, 0);
    assert_true(g->values[cut->in[0]].is_outer);
    assert_int_equal(operand(g, cut, 2)->op, OT_OP_Mul);
    /* the interface states what it did */
    assert_int_equal(m->graph->values[ot_value_find(m->graph, "f")].dims[2], 4096);
    assert_int_equal(g->values[ot_value_find(g, "f")].dims[2], OT_DIM_UNKNOWN);
    ot_model_free(m);
}

/* Small inputs, and what is made of constants alone. */
static void what_is_small_or_constant_stays(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = hidden("  input %x : float32[1,16,16]\n  init %w : float32[65536] = random 1\n"
                         "  init %s : int64[3] = [1,256,256]\n  init %t : int64[3] = [1,16,16]\n"
                         "  %v = Reshape(%w, %s)\n  %r = ReduceMax(%v) {axes = [2], keepdims = 1}\n"
                         "  %m = ReduceMax(%r) {axes = [1], keepdims = 1}\n"
                         "  %a = Reshape(%x, %t)\n  %y = Add(%a, %m)\n  output %y\n",
                         &d);
    const ot_graph *g = branch_of(m);
    assert_int_equal(count_nodes(g, OT_OP_Slice), 0);
    assert_int_equal(count_nodes(g, OT_OP_Mul), 0);
    ot_model_free(m);
}

/* Of rank 3 and less every axis is hidden, of images the last two: their channels are those of
 * weights. */
static void inputs_by_rank(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = hidden("  input %x : float32[1,256,128]\n  input %z : float32[2,8,64,64]\n"
                         "  %y = Relu(%x)\n  %u = Relu(%z)\n  output %y\n  output %u\n",
                         &d);
    const ot_graph *g = branch_of(m);
    static const char *const made[] = {"y", "u"};
    static const int64_t first[] = {1, 2};
    for (int k = 0; k < 2; k++) {
        const ot_node *cut = operand(g, maker(g, made[k]), 0);
        const ot_value *axes = &g->values[cut->in[3]];
        assert_int_equal(cut->op, OT_OP_Slice);
        assert_int_equal(axes->dims[0], 2);
        assert_int_equal(((const int64_t *)axes->init->data)[0], first[k]);
    }
    ot_model_free(m);
}

/* How often a Scan runs is not known where that makes large results: its tables are sliced, what
 * is large is hidden already. */
static void lengths_of_scans(void **state)
{
    (void)state;
    static const struct {
        const char *width; /* of what is stacked */
        bool hidden;
    } cases[] = {{"4096", true}, {"16", false}};
    for (size_t k = 0; k < 2; k++) {
        char body[2048];
        ot_diag d;
        snprintf(body, sizeof body,
                 "  input %%x : float32[32,%s]\n  init %%t : int64[32,1] = random 1\n"
                 "  %%y : float32[32,%s] = Scan(%%x, %%t) {num_scan_inputs=2, body=graph b {\n"
                 "    input %%i : float32[%s]\n    input %%j : int64[1]\n"
                 "    %%f : float32[1] = Cast(%%j) {to = 1}\n"
                 "    %%o : float32[%s] = Add(%%i, %%f)\n    output %%o\n  }}\n"
                 "  output %%y\n",
                 cases[k].width, cases[k].width, cases[k].width, cases[k].width);
        ot_model *m = hidden(body, &d);
        const ot_graph *g = branch_of(m);
        const ot_node *scan = maker(g, "y");
        assert_int_equal(scan->op, OT_OP_Scan);
        assert_int_equal(count_nodes(g, OT_OP_Slice), cases[k].hidden ? 2 : 0);
        if (cases[k].hidden) {
            const ot_node *cut = operand(g, scan, 1);
            assert_int_equal(cut->op, OT_OP_Slice);
            assert_int_equal(operand(g, cut, 2)->op, OT_OP_Mul);
            assert_string_equal(g->values[cut->in[0]].name, "t");
        }
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_values_are_hidden),
        cmocka_unit_test(what_is_small_or_constant_stays),
        cmocka_unit_test(inputs_by_rank),
        cmocka_unit_test(lengths_of_scans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
