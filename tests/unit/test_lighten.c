/* Goal memory, where the graph states no extents: tiles that are written out, lower nothing and
 * save next to no time leave the plan, others become loops (src/select/loading.c). */
#include "ir_check.h"

#include "machine/target/target.h"
#include "ops/ops.h"
#include "select/candidates.h"

#include <math.h>

/* Three convolutions of which tiles save maps; an activation whose tiles save nothing. */
static const char TEXT[] =
    "model ir 8 opset 17\ngraph g {\n input %x : float32[1,16,256,128]\n input %z : "
    "float32[1,8,64,64]\n init %w : float32[16,16,3,3] = random 1\n"
    " %a = Conv(%x, %w) {pads=[1,1,1,1]}\n %b = Conv(%a, %w) {pads=[1,1,1,1]}\n"
    " %c = Conv(%b, %w) {pads=[1,1,1,1]}\n %y = ReduceMax(%c) {axes=[1]}\n"
    " %s = Exp(%z)\n %t = Tanh(%s)\n %v = Exp(%t)\n output %y\n output %v\n}\n";

typedef struct rig {
    ot_model *m;
    ot_diag diag;
    ot_target target;
    ot_plan_options o;
    ot_plan *plan;
    ot_candidates *x;
    ot_outcome of;
} rig;

static void plan_in(rig *r, ot_form form, ot_plan **out)
{
    r->o = (ot_plan_options){.goal = OT_GOAL_MEMORY, .force = true, .force_form = form};
    assert_int_equal(ot_plan_graph(r->m->graph, &r->target, &r->o, out), OT_OK);
}

/* An outcome of a plan in this form, in which each region saves so much of a second, of one. */
static void build(rig *r, ot_form form, double each)
{
    *r = (rig){.m = parse(TEXT)};
    assert_int_equal(ot_infer_shapes(r->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(r->m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &r->diag, &r->target), OT_OK);
    plan_in(r, form, &r->plan);
    assert_int_equal(r->plan->n_regions, 2);
    assert_int_equal(ot_candidates_open(r->m->graph, &r->target, &r->o, true, &r->x), OT_OK);
    r->x->untiled_s = 1;
    r->x->how = (ot_writing){.branch = true, .hidden = true};
    r->of = (ot_outcome){
        .how = r->x->how, .set = {.all = r->plan->regions, .n = 2}, .seconds = 1 - 2 * each};
    for (uint32_t k = 0; k < 2; k++) r->plan->regions[k].benefit = each;
    r->of.set.gain = 2 * each;
    r->of.peak = ot_planner_peak(r->x->planner, r->plan->regions, 2);
    assert_int_equal(ot_candidates_simulate(r->x, r->plan->regions, 2, &r->of.takes), OT_OK);
}

static void end(rig *r)
{
    ot_candidates_close(r->x);
    ot_plan_free(r->plan);
    ot_target_free(&r->target);
    ot_model_free(r->m);
}

static bool is_convolutions(const rig *r, const ot_region *x)
{
    return r->m->graph->nodes[x->nodes[0].node].op == OT_OP_Conv;
}

static void test_what_lowers_nothing_goes(void **state)
{
    (void)state;
    rig r;
    build(&r, OT_FORM_UNROLLED, 0.004);
    const ot_sim_figures with = r.of.takes;
    assert_int_equal(ot_candidates_lighten(r.x, 1.1, &r.of), OT_OK);
    assert_int_equal(r.of.set.n, 1);
    assert_true(is_convolutions(&r, &r.of.set.all[0]));
    assert_true(r.of.takes.growth <= with.growth);
    assert_true(ot_process_bytes(&r.of.takes) < ot_process_bytes(&with)); /* fewer nodes */
    assert_true(fabs(r.of.seconds - 0.996) < 1e-9);
    assert_true(fabs(r.of.set.gain - 0.004) < 1e-9);
    end(&r);
}

static void test_what_saves_time_stays(void **state)
{
    (void)state;
    rig r;
    build(&r, OT_FORM_UNROLLED, 0.02); /* a fiftieth */
    assert_int_equal(ot_candidates_lighten(r.x, 1.1, &r.of), OT_OK);
    assert_int_equal(r.of.set.n, 2);
    end(&r);
    build(&r, OT_FORM_UNROLLED, 0.004); /* the limit on time is reached */
    assert_int_equal(ot_candidates_lighten(r.x, r.of.seconds, &r.of), OT_OK);
    assert_int_equal(r.of.set.n, 2);
    end(&r);
    build(&r, OT_FORM_UNROLLED, 0.004);
    r.of.how.hidden = false; /* extents are stated: nodes cost little */
    assert_int_equal(ot_candidates_lighten(r.x, 1.1, &r.of), OT_OK);
    assert_int_equal(r.of.set.n, 2);
    end(&r);
}

/* What the simulation is to say of these regions. */
static void takes(rig *r, ot_region *regions, uint32_t n, int64_t growth)
{
    ot_sim_figures f;
    assert_int_equal(ot_candidates_simulate(r->x, regions, n, &f), OT_OK);
    r->x->simulated.all[r->x->simulated.n - 1].figures.growth = growth;
}

static void test_tiles_become_loops(void **state)
{
    (void)state;
    rig r;
    ot_plan *loops;
    build(&r, OT_FORM_UNROLLED, 0.004);
    plan_in(&r, OT_FORM_PEELED, &loops);
    ot_region now[2], alone;
    for (uint32_t k = 0; k < 2; k++) {
        const bool is = is_convolutions(&r, &loops->regions[k]);
        now[k] = is ? loops->regions[k] : r.plan->regions[k];
        if (!is) continue;
        now[k].benefit = 0.003;
        alone = now[k];
    }
    takes(&r, now, 2, r.of.takes.growth);
    takes(&r, &alone, 1, r.of.takes.growth);
    r.of.peak = INT64_MAX;
    const ot_region *pool[] = {&alone};
    r.x->pool = pool;
    r.x->n_pool = 1;
    assert_int_equal(ot_candidates_lighten(r.x, 1.1, &r.of), OT_OK);
    assert_int_equal(r.of.set.n, 1);
    assert_true(is_convolutions(&r, &r.of.set.all[0]));
    assert_int_equal(r.of.set.all[0].form, OT_FORM_PEELED);
    assert_true(fabs(r.of.seconds - 0.997) < 1e-9);
    end(&r);
    ot_plan_free(loops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_lowers_nothing_goes),
        cmocka_unit_test(test_what_saves_time_stays),
        cmocka_unit_test(test_tiles_become_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
