/* Reductions in parts: which operators have them, and that a region which ends in one is
 * planned, checked and refused as it must.
 *
 * The numbers that come out are compared elsewhere (tests/e2e/emit_engine.sh, against an
 * evaluator of its own).
 */
#include "select/search/plan_search.h"
#include "tiling/forms.h"
#include "region_prices.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Memory does not run out here. */
static bool form_legal(const ot_graph *g, const ot_region *r, ot_form f, ot_why *why)
{
    bool legal;
    assert_int_equal(ot_form_legal(g, r, f, 0, &legal, why), OT_OK);
    return legal;
}

static ot_model *model_of(const char *text)
{
    ot_diag d = {0};
    ot_model *m = NULL;
    if (ot_text_parse(text, strlen(text), &d, &m) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    return m;
}

static ot_target engine_target(void)
{
    ot_target t;
    ot_diag d = {0};
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    ot_target_set_l2(&t, 12 << 10);
    ot_target_set_engine(&t);
    return t;
}

static void expect_kind(const char *node, ot_sum_kind kind, unsigned axes)
{
    char text[512];
    bool reduced[OT_RANK_MAX] = {false};
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[2,3,8,6]\n  init %%a : "
             "int64[2] = [-1, 1]\n"
             "  %%y = %s\n  output %%y\n}\n",
             node);
    ot_model *m = model_of(text);
    assert_int_equal(ot_access_sum(m->graph, &m->graph->nodes[0], reduced), kind);
    for (unsigned a = 0; a < 4 && kind != OT_SUM_NONE; a++)
        assert_int_equal(reduced[a], (axes >> a) & 1);
    ot_model_free(m);
}

static void kinds(void **state)
{
    (void)state;
    expect_kind("GlobalAveragePool(%x)", OT_SUM_MEAN, 0xC);
    expect_kind("GlobalMaxPool(%x)", OT_SUM_MAX, 0xC);
    expect_kind("ReduceMean(%x) {axes=[-2]}", OT_SUM_MEAN, 0x4);
    expect_kind("ReduceMean(%x)", OT_SUM_MEAN, 0xF);
    expect_kind("ReduceSum(%x, %a) {keepdims=0}", OT_SUM_ADD, 0xA);
    expect_kind("ReduceL1(%x) {axes=[0, 3]}", OT_SUM_ADD, 0x9);
    expect_kind("ReduceMin(%x) {axes=[2]}", OT_SUM_MIN, 0x4);
    expect_kind("ReduceL2(%x) {axes=[2]}", OT_SUM_L2, 0x4);
    expect_kind("ReduceLogSumExp(%x) {axes=[2]}", OT_SUM_NONE, 0);
    expect_kind("GlobalLpPool(%x)", OT_SUM_NONE, 0);
    expect_kind("ArgMax(%x) {axis=2}", OT_SUM_NONE, 0);
    expect_kind("Relu(%x)", OT_SUM_NONE, 0);
}

static const char *const pool_text = "model ir 8 opset 17\ngraph g {\n  input %x : "
                                     "float32[1,4,45,32]\n  init %w : float32[8,4,3,3] = random 1\n"
                                     "  %c = Conv(%x, %w) {pads=[1,1,1,1]}\n  %r = Relu(%c)\n  %y "
                                     "= GlobalAveragePool(%r)\n  output %y\n}\n";

/* The region of the pool and what is before it; its node that reduces in parts is *sum. */
static ot_region *pool_region(ot_model *m, const ot_target *t, ot_plan **p, ot_rnode **sum)
{
    ot_plan_options o = {.goal = OT_GOAL_MEMORY, .force = true};
    assert_int_equal(ot_plan_graph(m->graph, t, &o, p), OT_OK);
    for (uint32_t k = 0; k < (*p)->n_regions; k++) {
        ot_region *r = &(*p)->regions[k];
        *sum = &r->nodes[r->n_nodes - 1];
        if (m->graph->nodes[(*sum)->node].op == OT_OP_GlobalAveragePool) return r;
    }
    fail_msg("the pool is in no region");
    return NULL;
}

/* Every element of what is reduced falls to one tile. */
static void shares_cover(void **state)
{
    (void)state;
    ot_why why = OT_WHY_NONE;
    ot_model *m = model_of(pool_text);
    ot_target t = engine_target();
    ot_plan *p;
    ot_rnode *sum;
    ot_region *r = pool_region(m, &t, &p, &sum);
    ot_tile_windows w;
    assert_true(r->n_nodes > 1);
    assert_int_equal(r->form, OT_FORM_WHILE);
    assert_int_equal(ot_tile_windows_new(m->graph, r, p->arena, &w), OT_OK);
    for (uint32_t d = 0; d < r->n_dims; d++) {
        int64_t at = 0;
        assert_int_equal(sum->lead_axis[d], OT_AX_SUM);
        for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
            assert_true(ot_tile_windows_get(m->graph, r, d, k, &w, &why));
            ot_win share = w.ops[r->n_nodes - 1].in[0];
            assert_int_equal(share.lo, at);
            assert_true(share.hi > share.lo);
            at = share.hi;
        }
        assert_int_equal(at, r->dims[d].extent);
    }
    ot_plan_free(p);
    ot_model_free(m);
}

/* The checker finds what would make a part wrong. */
static void planted_errors(void **state)
{
    (void)state;
    ot_why why = OT_WHY_NONE;
    ot_model *m = model_of(pool_text);
    ot_target t = engine_target();
    ot_plan *p;
    ot_rnode *sum;
    ot_diag d = {0};
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY, .force = true};
    ot_region *r = pool_region(m, &t, &p, &sum);
    if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK) fail_msg("%s", d.message);
    sum->lead_axis[0] = OT_AX_WHOLE;
    assert_int_not_equal(check_plan_and_prices(m->graph, p, &t, &o, &d), OT_OK);
    sum->lead_axis[0] = OT_AX_SUM;
    r->nodes[0].lead_axis[0] = OT_AX_SUM; /* a convolution has no parts */
    assert_int_not_equal(check_plan_and_prices(m->graph, p, &t, &o, &d), OT_OK);
    r->nodes[0].lead_axis[0] = 2;
    r->form = OT_FORM_UNROLLED; /* no other form can combine them */
    assert_int_not_equal(check_plan_and_prices(m->graph, p, &t, &o, &d), OT_OK);
    r->form = OT_FORM_WHILE;
    if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
        fail_msg("not as it was: %s", d.message);
    assert_true(form_legal(m->graph, r, OT_FORM_WHILE, &why));
    ot_plan_free(p);
    ot_model_free(m);
}

/* For standard ONNX the tiles hand out parts, too; unless sums have to be made in the runtime's
 * own order: then the pool ends the region before it, and what lifts that is said. */
static void plain_forms(void **state)
{
    (void)state;
    ot_model *m = model_of(pool_text);
    ot_target t;
    ot_diag d = {0};
    ot_plan *p;
    ot_plan_options o = {.goal = OT_GOAL_TIME, .force = true};
    bool said = false;
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    ot_target_set_l2(&t, 24 << 10);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    bool parts = false;
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++)
            parts |= p->regions[k].nodes[i].lead_axis[0] == OT_AX_SUM;
    assert_true(parts);
    if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK) fail_msg("%s", d.message);
    ot_plan_free(p);
    t.bit_exact = true;
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    for (uint32_t k = 0; k < p->n_barriers; k++)
        said |= p->barriers[k].reason.why == OT_WHY_POOL_ENDS_ENGINE ||
                p->barriers[k].reason.why == OT_WHY_WHOLE_ENDS_ENGINE;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        for (uint32_t i = 0; i < r->n_nodes; i++)
            for (uint32_t a = 0; a < r->n_dims; a++)
                assert_int_not_equal(r->nodes[i].lead_axis[a], OT_AX_SUM);
    }
    assert_true(said);
    ot_plan_free(p);
    ot_model_free(m);
}

/* A sum that another sum is subtracted from is made whole: rounding would show (E[x^2] -
 * E[x]^2). x - mean is no such case. */
static int in_parts;

static void expect_cancels(const char *nodes, bool expected)
{
    char text[1024];
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,4,45,32]\n  init %%n : "
             "float32[1] = [0.5]\n"
             "  init %%w : float32[4,4,3,3] = random 1\n  %%c = Conv(%%x, %%w) {pads=[1,1,1,1]}\n  "
             "%%r = Relu(%%c)\n%s  output %%y\n}\n",
             nodes);
    ot_model *m = model_of(text);
    bool cancels = false, parts = false;
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES), OT_OK);
    for (uint32_t k = 0; k < m->graph->n_nodes; k++)
        cancels |= ot_sum_cancels(m->graph, &m->graph->nodes[k]);
    assert_int_equal(cancels, expected);
    ot_target t;
    ot_diag d = {0};
    ot_plan *p;
    ot_plan_options o = {.goal = OT_GOAL_MEMORY, .force = true};
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    ot_target_set_l2(&t, 12 << 10);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++)
            for (uint32_t a = 0; a < p->regions[k].n_dims; a++)
                parts |= p->regions[k].nodes[i].lead_axis[a] == OT_AX_SUM;
    if (expected) assert_false(parts);
    in_parts += parts;
    ot_plan_free(p);
    ot_model_free(m);
}

#define MEAN_OF_SQUARES                                                                         \
    "  %s = Mul(%r, %r)\n  %q = ReduceMean(%s) {axes=[2, 3]}\n  %m = ReduceMean(%r) {axes=[2, " \
    "3]}\n"

static void cancelling_sums(void **state)
{
    (void)state;
    expect_cancels(MEAN_OF_SQUARES "  %h = Mul(%m, %m)\n  %y = Sub(%q, %h)\n", true);
    expect_cancels(MEAN_OF_SQUARES
                   "  %h = Mul(%m, %m)\n  %g = Neg(%h)\n  %i = Mul(%q, %n)\n  %y = Add(%i, %g)\n",
                   true);
    expect_cancels(MEAN_OF_SQUARES "  %y = Add(%q, %m)\n", false);
    expect_cancels("  %m = ReduceMean(%r) {axes=[2, 3]}\n  %y = Sub(%r, %m)\n", false);
    expect_cancels("  %m = ReduceMax(%r) {axes=[2, 3]}\n  %s = ReduceMin(%r) {axes=[2, 3]}\n  %y = "
                   "Sub(%m, %s)\n",
                   false);
    assert_true(in_parts > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancelling_sums), cmocka_unit_test(kinds),
        cmocka_unit_test(shares_cover),    cmocka_unit_test(planted_errors),
        cmocka_unit_test(plain_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
