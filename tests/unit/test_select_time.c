/* Goal time: regions that add more to the process than they save in time leave the plan
 * (src/select/select_time.c). */
#include "ir_check.h"

#include "ops/ops.h"
#include "machine/target/target.h"
#include "alloc_sim/alloc_sim.h"
#include "select/candidates.h"

/* Three convolutions of which tiles save maps; an activation whose result in pieces lies next to
 * its copy: not less without tiles. */
static const char TEXT[] =
    "model ir 8 opset 17\ngraph g {\n input %x : float32[1,16,256,128]\n input %z : "
    "float32[1,32,512,128]\n init %w : float32[16,16,3,3] = random 1\n"
    " %a = Conv(%x, %w) {pads=[1,1,1,1]}\n %b = Conv(%a, %w) {pads=[1,1,1,1]}\n"
    " %c = Conv(%b, %w) {pads=[1,1,1,1]}\n %y = ReduceMax(%c) {axes=[1]}\n %v = Exp(%z)\n output "
    "%y\n output %v\n}\n";

typedef struct rig {
    ot_model *m;
    ot_diag diag;
    ot_target target;
    ot_plan_options o;
    ot_plan *plan;
    ot_candidates x;
    ot_sim_figures all; /* of all regions */
    int64_t without[2]; /* growth without region k */
    int64_t loaded;     /* of the untiled model */
} rig;

static int64_t growth_of(rig *r, ot_region *regions, uint32_t n)
{
    ot_sim_figures f = {0};
    assert_int_equal(ot_candidates_simulate(&r->x, regions, n, &f), OT_OK);
    return f.growth;
}

/* Two regions that save a twentieth of a second each, of one. */
static void build(rig *r)
{
    *r = (rig){.loaded = 1ll << 40, .m = parse(TEXT), .o = {.goal = OT_GOAL_TIME, .force = true}};
    assert_int_equal(ot_infer_shapes(r->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(r->m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &r->diag, &r->target), OT_OK);
    assert_int_equal(ot_plan_graph(r->m->graph, &r->target, &r->o, &r->plan), OT_OK);
    assert_int_equal(r->plan->n_regions, 2);
    r->x = (ot_candidates){.g = r->m->graph,
                           .t = &r->target,
                           .o = r->o,
                           .static_shape = true,
                           .untiled_s = 1,
                           .arena = ot_arena_new()};
    for (uint32_t k = 0; k < 2; k++) {
        r->plan->regions[k].benefit = 0.05;
        r->without[k] = growth_of(r, &r->plan->regions[1 - k], 1);
    }
    assert_int_equal(ot_candidates_simulate(&r->x, r->plan->regions, 2, &r->all), OT_OK);
}

/* Regions that stay when the untiled model grows the process by that; *left: the first of them. */
static uint32_t stay(rig *r, int64_t untiled, ot_id *left)
{
    r->x.untiled = (ot_sim_figures){.growth = untiled, .loaded = r->loaded};
    ot_region_set set = {.all = r->plan->regions, .n = 2};
    for (uint32_t k = 0; k < 2; k++) set.gain += set.all[k].benefit;
    assert_int_equal(ot_time_is_worth(&r->x, &r->all, &set), OT_OK);
    const uint32_t n = set.n;
    *left = n > 0 ? set.all[0].first : OT_NONE;
    ot_arena_free(r->x.arena);
    ot_plan_free(r->plan);
    ot_target_free(&r->target);
    ot_model_free(r->m);
    return n;
}

static void test_worth_it(void **state)
{
    (void)state;
    rig r;
    ot_id left;
    build(&r);
    /* as much more memory as less time */
    assert_int_equal(stay(&r, r.all.growth * 9 / 10, &left), 2);
}

static void test_the_worst_leaves(void **state)
{
    (void)state;
    rig r;
    ot_id left;
    build(&r);
    const uint32_t worst = r.without[1] < r.without[0], other = 1 - worst;
    const int64_t least = r.without[worst];
    const ot_id first = r.plan->regions[other].first;
    r.plan->regions[worst].benefit = -0.3;
    r.plan->regions[other].benefit = 0.1;
    assert_true(least <= r.all.growth);
    /* a twentieth more memory in a tenth less time */
    assert_int_equal(stay(&r, least * 95 / 100, &left), 1);
    assert_int_equal(left, first);
}

static void test_none_pays(void **state)
{
    (void)state;
    rig r;
    ot_id left;
    build(&r);
    assert_int_equal(stay(&r, 1 << 10, &left), 0);
}

/* Growth and time are worth it, but the process is larger than the untiled model's. */
static void test_the_process_counts(void **state)
{
    (void)state;
    rig r;
    ot_id left;
    build(&r);
    assert_true(r.all.loaded > r.all.growth / 20);
    r.loaded = 0;
    assert_int_equal(stay(&r, r.all.growth, &left), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worth_it),
        cmocka_unit_test(test_the_worst_leaves),
        cmocka_unit_test(test_none_pays),
        cmocka_unit_test(test_the_process_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
