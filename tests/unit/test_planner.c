/* Plans of one graph, one after the other (src/select/search/planner.c): what was asked for before
 * changes nothing in the next one, neither the regions that stream (stream_plan.c) nor those in
 * tiles (fitted.c).
 */
#include "ir_check.h"

#include "machine/target/target.h"
#include "ops/ops.h"
#include "select/search/search.h"

enum { PLANS = 40 };

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
        assert_int_equal(a[k].form, b[k].form);
        assert_int_equal(a[k].first, b[k].first);
        assert_int_equal(a[k].last, b[k].last);
        assert_int_equal(a[k].n_dims, b[k].n_dims);
        for (uint32_t i = 0; i < a[k].n_dims; i++)
            assert_int_equal(a[k].dims[i].tile, b[k].dims[i].tile);
        assert_int_equal(a[k].working_set, b[k].working_set);
        assert_int_equal(a[k].weights_stay, b[k].weights_stay);
        assert_int_equal(a[k].peak, b[k].peak);
        assert_true(a[k].benefit == b[k].benefit);
        assert_true(a[k].stall == b[k].stall);
        assert_int_equal(a[k].n_nodes, b[k].n_nodes);
        for (uint32_t i = 0; i < a[k].n_nodes; i++)
            assert_int_equal(a[k].nodes[i].node, b[k].nodes[i].node);
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
        for (uint32_t i = 0; i < a->n_regions; i++)
            assert_int_equal(a->regions[i].form, OT_FORM_STREAM);
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

static ot_plan_options random_options(uint64_t *state)
{
    static const ot_form FORMS[] = {OT_FORM_NONE, OT_FORM_NONE, OT_FORM_LOOP, OT_FORM_UNROLLED};
    static const int64_t LEVELS[] = {0, 1, 100000};
    ot_plan_options o = {.tie_break = true, .search.spare = true};
    o.goal = ot_next_random(state) % 2 ? OT_GOAL_MEMORY : OT_GOAL_TIME;
    o.max_slowdown = (double)(ot_next_random(state) % 4) * 0.2;
    o.memory_budget = ot_next_random(state) % 3 ? 0 : (int64_t)(ot_next_random(state) % 400000) + 1;
    o.force = ot_next_random(state) % 8 == 0;
    o.force_form = FORMS[ot_next_random(state) % 4];
    if (ot_next_random(state) % 3 == 0) o.search.byte_seconds = 5e-10;
    o.search.level = o.search.byte_seconds > 0 ? LEVELS[*state % 3] : 0;
    return o;
}

/* Plans of one planner, against those of planners that made no other: the same result, the same
 * regions, which hold when the planner is gone. */
static void plans_made_before_change_nothing(const char *target)
{
    ot_diag d = {0};
    ot_target t;
    ot_model *m = parse(TEXT);
    ot_plan *made[PLANS];
    ot_plan_options o[PLANS];
    uint64_t state = 7;
    uint32_t regions = 0, tilings = 0;
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load(target, 1, &d, &t), OT_OK);
    ot_planner *all = open_planner(m, &t);
    for (int k = 0; k < PLANS; k++) {
        ot_plan *alone = NULL;
        o[k] = random_options(&state);
        const ot_status s = ot_planner_plan(all, &o[k], &made[k]);
        assert_int_equal(ot_plan_graph(m->graph, &t, &o[k], &alone), s);
        if (s != OT_OK) continue;
        assert_int_equal(made[k]->n_regions, alone->n_regions);
        assert_int_equal(made[k]->n_spare, alone->n_spare);
        assert_int_equal(made[k]->n_refused, alone->n_refused);
        assert_same_regions(made[k]->regions, alone->regions, alone->n_regions);
        assert_same_regions(made[k]->spare, alone->spare, alone->n_spare);
        regions += alone->n_regions;
        ot_plan_free(alone);
    }
    tilings = all->fitted.n;
    print_message("%s: %u regions of %u tilings\n", target, regions, tilings);
    assert_in_range(regions, tilings / 2, UINT32_MAX); /* so some were known */
    ot_planner_close(all);
    for (int k = 0; k < PLANS; k++)
        if (made[k] && ot_plan_check(m->graph, made[k], &t, &o[k], &d) != OT_OK)
            fail_msg("plan %d: %s", k, d.message);
    for (int k = 0; k < PLANS; k++) ot_plan_free(made[k]);
    ot_target_free(&t);
    ot_model_free(m);
}

static void tilings_known_before_change_nothing(void **state)
{
    (void)state;
    plans_made_before_change_nothing("cpu-generic");
    plans_made_before_change_nothing("mcu-512k"); /* with less beside tiles that do not fit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_asked_for_before_change_nothing),
                                       cmocka_unit_test(tilings_known_before_change_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
