/* Streaming regions of plans of one graph (src/select/search/stream_plan.c): whatever rows were
 * asked for before, the same ones are found.
 */
#include "ir_check.h"

#include "machine/target/target.h"
#include "ops/ops.h"
#include "select/search/search.h"

static const char TEXT[] =
    "model ir 8 opset 17\ngraph g {\n input %x : float32[1,3,96,64]\n"
    " init %v : float32[16,3,3,3] = random 1\n init %w : float32[16,16,3,3] = random 2\n"
    " %a = Conv(%x, %v) {pads=[1,1,1,1]}\n %b = Relu(%a)\n"
    " %c = Conv(%b, %w) {pads=[1,1,1,1]}\n %d = Conv(%c, %w) {pads=[1,1,1,1]}\n"
    " %y = MaxPool(%d) {kernel_shape=[2,2],strides=[2,2]}\n output %y\n}\n";

static ot_plan_options options_of(uint32_t rows)
{
    return (ot_plan_options){.goal = OT_GOAL_MEMORY,
                             .max_slowdown = 10,
                             .force_form = OT_FORM_STREAM,
                             .search.stream_rows = rows,
                             .search.spare = true};
}

static ot_planner *open_planner(ot_model *m, const ot_target *t)
{
    ot_planner *p;
    assert_int_equal(ot_planner_open(m->graph, t, &p), OT_OK);
    return p;
}

static void assert_same_regions(const ot_region *a, const ot_region *b, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        assert_null(a[k].memo);
        assert_int_equal(a[k].form, OT_FORM_STREAM);
        assert_int_equal(a[k].first, b[k].first);
        assert_int_equal(a[k].last, b[k].last);
        assert_int_equal(a[k].dims[0].tile, b[k].dims[0].tile);
        assert_int_equal(a[k].working_set, b[k].working_set);
        assert_true(a[k].benefit == b[k].benefit);
    }
}

static void rows_asked_for_before_change_nothing(void **state)
{
    (void)state;
    static const uint32_t ROWS[] = {0, 1, 2, 4, 8};
    ot_diag d = {0};
    ot_target t;
    ot_model *m = parse(TEXT);
    uint32_t regions = 0;
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    ot_planner *all = open_planner(m, &t);
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS; k++) {
        const ot_plan_options o = options_of(ROWS[k]);
        ot_planner *one = open_planner(m, &t);
        ot_plan *a, *b;
        const size_t seen = all->steps_seen.n;
        assert_int_equal(ot_planner_plan(all, &o, &a), OT_OK);
        assert_int_equal(ot_planner_plan(one, &o, &b), OT_OK);
        /* all rows were looked at for 0 */
        assert_true(k == 0 ? all->steps_seen.n > 0 : all->steps_seen.n == seen);
        assert_true(one->steps_seen.n > 0);
        assert_int_equal(a->n_regions, b->n_regions);
        assert_int_equal(a->n_spare, b->n_spare);
        assert_same_regions(a->regions, b->regions, a->n_regions);
        regions += a->n_regions;
        ot_plan_free(a);
        ot_plan_free(b);
        ot_planner_close(one);
    }
    assert_true(regions > 0);
    ot_planner_close(all);
    ot_target_free(&t);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_asked_for_before_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
