/* Large weights in pieces: which they are, what their operators become, and what a process holds
 * while it loads them. */
#include "shaped_model.h"

#include "alloc_sim/alloc_sim.h"
#include "machine/target/target.h"
#include "transform/transform.h"

#define HEAD "model ir 8 opset 17\ngraph g {\n  input %x : float32[2,64]\n"
#define EACH (64 * 64 * 4) /* 64 rows of 64 numbers */

static const ot_node *maker(const ot_graph *g, const char *name)
{
    const ot_id v = ot_value_find(g, name);
    if (v == OT_NONE || g->values[v].producer == OT_NONE) fail_msg("nobody makes %s", name);
    return &g->nodes[g->values[v].producer];
}

/* Value `in` of n has rows [first, first + rows) of `whole`, each of so many bytes, where they
 * were. */
static void has_rows(const ot_graph *g, const ot_node *n, uint32_t in, const ot_tensor *whole,
                     int64_t first, int64_t rows, size_t row)
{
    const ot_value *v = &g->values[n->in[in]];
    assert_non_null(v->init);
    assert_int_equal(v->dims[in == 1 ? 0 : v->rank - 1], rows);
    assert_int_equal(v->init->bytes, (size_t)rows * row);
    assert_ptr_equal(v->init->data, (const char *)whole->data + (size_t)first * row);
}

/* 200 rows are three pieces of 64 and one of 8; what the operator is told stays. */
static void products_are_split_by_rows(void **state)
{
    (void)state;
    static const struct {
        const char *init, *bias;
        bool parts;
    } cases[] = {{"", "", false},
                 {"  init %c : float32[200] = random 2\n", ", %c", true},
                 {"  init %c : float32[1,200] = random 2\n", ", %c", true},
                 {"  init %c : float32[2,1] = random 2\n", ", %c", false},
                 {"  init %c : float32[] = [3]\n", ", %c", false},
                 {"  input %c : float32[1]\n", ", %c", false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[1024];
        ot_diag d;
        snprintf(text, sizeof text,
                 "%s%s  init %%w : float32[200,64] = random 1\n  %%y = Gemm(%%x, %%w%s) "
                 "{transB=1, alpha=0.5, beta=2.0}\n  output %%y\n}\n",
                 HEAD, cases[k].init, cases[k].bias);
        ot_model *m = read_model(text, &d);
        ot_graph *g = m->graph;
        const ot_tensor *w = g->values[ot_value_find(g, "w")].init;
        const ot_id c = ot_value_find(g, "c");
        const ot_tensor *bias = c == OT_NONE ? NULL : g->values[c].init;
        assert_int_equal(ot_count_split(g, EACH), 1);
        assert_int_equal(ot_split_weights(g, EACH), OT_OK);
        const ot_node *y = maker(g, "y");
        assert_int_equal(y->op, OT_OP_Concat);
        assert_int_equal(ot_attr_int(y, "axis", 0), 1);
        assert_int_equal(y->n_in, 4);
        for (uint32_t j = 0; j < 4; j++) {
            const ot_node *n = &g->nodes[g->values[y->in[j]].producer];
            const int64_t rows = j < 3 ? 64 : 8;
            assert_int_equal(n->op, OT_OP_Gemm);
            assert_float_equal(ot_attr_float(n, "alpha", 1), 0.5f, 0);
            assert_float_equal(ot_attr_float(n, "beta", 1), 2.0f, 0);
            assert_int_equal(g->values[n->out[0]].dims[1], rows);
            has_rows(g, n, 1, w, j * 64, rows, 64 * 4);
            if (cases[k].parts)
                has_rows(g, n, 2, bias, j * 64, rows, 4);
            else if (c != OT_NONE)
                assert_int_equal(n->in[2], c);
        }
        assert_true(g->values[ot_value_find(g, "w")].removed);
        assert_int_equal(ot_verify(g), OT_OK);
        assert_int_equal(ot_count_split(g, EACH), 0); /* what was split stays so */
        ot_model_free(m);
    }
}

static void convolutions_are_split_by_channels(void **state)
{
    (void)state;
    ot_diag d;
    ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,4,4]\n"
                             "  init %w : float32[150,16,4,4] = random 1\n"
                             "  init %b : float32[150] = random 2\n"
                             "  %y = Conv(%x, %w, %b) {strides=[2,2]}\n  output %y\n}\n",
                             &d);
    ot_graph *g = m->graph;
    const ot_tensor *w = g->values[ot_value_find(g, "w")].init,
                    *b = g->values[ot_value_find(g, "b")].init;
    assert_int_equal(ot_split_weights(g, 64 * 16 * 16 * 4), OT_OK);
    const ot_node *y = maker(g, "y");
    assert_int_equal(y->op, OT_OP_Concat);
    assert_int_equal(y->n_in, 3);
    for (uint32_t j = 0; j < 3; j++) {
        const ot_node *n = &g->nodes[g->values[y->in[j]].producer];
        assert_int_equal(n->op, OT_OP_Conv);
        assert_non_null(ot_attr_find(n, "strides"));
        has_rows(g, n, 1, w, j * 64, j < 2 ? 64 : 22, 16 * 16 * 4);
        has_rows(g, n, 2, b, j * 64, j < 2 ? 64 : 22, 4);
    }
    assert_int_equal(ot_verify(g), OT_OK);
    ot_model_free(m);
}

/* Weights whose rows are no outputs, that others read, that are small or made; results as large as
 * they are; a bias that is computed. */
static void others_stay_whole(void **state)
{
    (void)state;
    static const char *const rest[] = {
        "  init %w : float32[64,200] = random 1\n  %y = Gemm(%x, %w)\n",
        "  init %w : float32[200,64] = random 1\n  %s = ReduceSum(%w)\n  %a = Gemm(%x, %w) "
        "{transB=1}\n  %y = Add(%a, %s)\n",
        "  init %w : float32[100,64] = random 1\n  %y = Gemm(%x, %w) {transB=1}\n",
        "  init %v : float32[200,64] = random 1\n  %w = Neg(%v)\n  %y = Gemm(%x, %w) "
        "{transB=1}\n",
        "  init %w : float32[200,64] = random 1\n  input %z : float32[16,64]\n  %y = Gemm(%z, %w) "
        "{transB=1}\n",
        "  init %w : float32[200,64] = random 1\n  input %b : float32[200]\n  %y = Gemm(%x, %w, "
        "%b) {transB=1}\n",
        "  init %w : float32[200,64] = random 1\n  init %b : float32[2,200] = random 2\n  %y = "
        "Gemm(%x, %w, %b) {transB=1}\n",
        "  init %w : float32[200,64,1,1] = random 1\n  input %z : float32[1,128,1,1]\n  %y = "
        "Conv(%z, %w) {group=2}\n",
    };
    for (size_t k = 0; k < sizeof rest / sizeof *rest; k++) {
        char text[1024];
        ot_diag d;
        snprintf(text, sizeof text, "%s%s  output %%y\n}\n", HEAD, rest[k]);
        ot_model *m = read_model(text, &d);
        if (ot_count_split(m->graph, EACH) != 0) fail_msg("case %zu is split", k);
        const uint32_t n = m->graph->n_nodes;
        assert_int_equal(ot_split_weights(m->graph, EACH), OT_OK);
        assert_int_equal(m->graph->n_nodes, n);
        ot_model_free(m);
    }
}

/* While the model loads from a file that is mapped, a weight is there twice. */
static void a_process_holds_a_piece_more(void **state)
{
    (void)state;
    const int64_t weight = 4096 * 4096 * 4;
    ot_sim_figures f[2];
    for (int split = 0; split < 2; split++) {
        ot_diag d;
        ot_model *m = read_model("model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4096]\n"
                                 "  init %w : float32[4096,4096] = fill 0.5\n  %y = Gemm(%x, %w) "
                                 "{transB=1}\n  output %y\n}\n",
                                 &d);
        m->data_file = true;
        if (split)
            assert_int_equal(ot_split_weights(m->graph, ot_runtime_onnxruntime.piece_bytes), OT_OK);
        assert_int_equal(ot_sim_growth(m->graph, &ot_runtime_onnxruntime, true, &f[split]), OT_OK);
        ot_model_free(m);
    }
    assert_true(f[0].loading > f[0].loaded + weight / 2);
    assert_true(f[1].loading < f[0].loading - weight / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_split_by_rows),
        cmocka_unit_test(convolutions_are_split_by_channels),
        cmocka_unit_test(others_stay_whole),
        cmocka_unit_test(a_process_holds_a_piece_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
