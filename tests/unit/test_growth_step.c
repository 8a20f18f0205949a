/* Regions that pay only together (src/select/growth_step.c), and which values are held at the step
 * where a process grows last (src/alloc_sim/simulate_waiting.c).
 *
 *   x -> a -> b -> m (small) -> c -> d -> y (small)      [a b m] and [c d y]: as much is held in
 *                                                        both, so neither pays without the other
 */
#include "ir_check.h"

#include "ops/ops.h"
#include "machine/target/target.h"
#include "alloc_sim/alloc_sim.h"
#include "select/candidates.h"

#include <string.h>

#define HALVES(last)                                                                         \
    "model ir 8 opset 17\ngraph g {\n input %x : float32[1,1,500,256]\n"                     \
    " init %v : float32[128,1,3,3] = random 1\n init %w : float32[128,128,3,3] = random 2\n" \
    " %a = Conv(%x, %v) {pads=[1,1,1,1]}\n %b = Conv(%a, %w) {pads=[1,1,1,1]}\n"             \
    " %m = ReduceMax(%b) {axes=[1]}\n"                                                       \
    " %c = Conv(%m, %v) {pads=[1,1,1,1]}\n %d = Conv(%c, %w) {pads=[1,1,1,1]}\n"             \
    " %y = " last "(%d) {axes=[1]}\n output %y\n}\n"

static const char TWINS[] = HALVES("ReduceMax"), OTHERS[] = HALVES("ReduceMin");

typedef struct rig {
    ot_model *m;
    ot_diag diag;
    ot_target target;
    ot_plan_options o;
    ot_plan *plans[2]; /* regions around a and c */
    ot_candidates x;
} rig;

/* The region of steps first to last, in long tiles, of p's. */
static const ot_region *region_of(const ot_plan *p, uint32_t first, uint32_t last)
{
    for (uint32_t k = 0; k < p->n_spare; k++)
        if (p->spare[k].first == first && p->spare[k].last == last) return &p->spare[k];
    for (uint32_t k = 0; k < p->n_regions; k++)
        if (p->regions[k].first == first && p->regions[k].last == last) return &p->regions[k];
    return NULL;
}

static void build(rig *r, const char *text)
{
    ot_sim_figures whole;
    *r = (rig){
        .m = parse(text),
        .o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 10, .search.near = 1, .search.spare = true}};
    assert_int_equal(ot_infer_shapes(r->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(r->m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &r->diag, &r->target), OT_OK);
    assert_int_equal(ot_sim_growth(r->m->graph, r->target.runtime, true, &whole), OT_OK);
    r->x = (ot_candidates){.g = r->m->graph,
                           .t = &r->target,
                           .o = r->o,
                           .static_shape = true,
                           .how.branch = true,
                           .arena = ot_arena_new()};
    r->x.untiled = whole;
    r->x.base = ot_score_base_of(&whole, &whole);
    for (uint32_t half = 0; half < 2; half++) {
        r->o.search.near = 1 + r->m->graph->order[3 * half];
        assert_int_equal(ot_plan_graph(r->m->graph, &r->target, &r->o, &r->plans[half]), OT_OK);
        const ot_region *one = region_of(r->plans[half], 3 * half, 3 * half + 2);
        assert_non_null(one);
        const ot_plan alone = {.regions = (ot_region *)one, .n_regions = 1};
        assert_int_equal(ot_candidates_add(&r->x, &alone, INT64_MAX), OT_OK);
    }
    r->x.untiled_s = r->plans[0]->untiled.time_s;
    assert_int_equal(r->x.n_pool, 2);
}

static void done(rig *r)
{
    ot_arena_free(r->x.arena);
    for (int k = 0; k < 2; k++) ot_plan_free(r->plans[k]);
    ot_target_free(&r->target);
    ot_model_free(r->m);
}

static void come_in_together(const char *text)
{
    rig r;
    ot_sim_figures f;
    ot_region_set won = {0};
    bool better;
    build(&r, text);
    assert_int_equal(ot_candidates_score(&r.x, NULL, 0, &won.bytes), OT_OK);
    for (size_t k = 0; k < 2; k++) { /* so one at a time no climb gets anywhere */
        int64_t alone;
        assert_int_equal(ot_candidates_score(&r.x, (ot_region *)r.x.pool[k], 1, &alone), OT_OK);
        assert_true((double)alone > 0.99 * (double)won.bytes);
    }
    const int64_t before = won.bytes;
    won.all = OT_NEW_N(r.x.arena, ot_region, 3);
    assert_int_equal(ot_candidates_simulate(&r.x, NULL, 0, &f), OT_OK);
    r.x.work = 0;
    assert_int_equal(ot_candidates_let_go(&r.x, 0, &f, &won, &better), OT_OK);
    assert_false(better); /* no work is allowed */
    assert_int_equal(ot_candidates_let_go(&r.x, 10000, &f, &won, &better), OT_OK);
    assert_true(better);
    assert_int_equal(won.n, 2);
    assert_true((double)won.bytes < 0.8 * (double)before);
    assert_int_equal(ot_candidates_simulate(&r.x, won.all, won.n, &f), OT_OK);
    assert_int_equal(ot_candidates_let_go(&r.x, r.x.work + 10000, &f, &won, &better), OT_OK);
    assert_false(better); /* there is nothing else */
    done(&r);
}

static void test_twins(void **state)
{
    (void)state;
    come_in_together(TWINS);
}

static void test_two_that_differ(void **state)
{
    (void)state;
    come_in_together(OTHERS);
}

/* a is read again at the end: it is there when the last and largest value is made. */
static void test_held_at_the_last_growth(void **state)
{
    static const char text[] =
        "model ir 8 opset 17\ngraph g {\n input %x : float32[1,4,256,256]\n"
        " init %w : float32[4,4,3,3] = random 1\n init %u : float32[64,4,3,3] = random 2\n"
        " %a = Conv(%x, %w) {pads=[1,1,1,1]}\n %b = Conv(%a, %u) {pads=[1,1,1,1]}\n"
        " %m = ReduceMax(%b) {axes=[1]}\n %y = Add(%m, %a)\n output %y\n}\n";
    (void)state;
    ot_model *m = parse(text);
    ot_target t;
    ot_diag d = {0};
    ot_sim_figures f;
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_sim_growth(m->graph, t.runtime, true, &f), OT_OK);
    assert_int_equal(f.n_held, 2);
    assert_string_equal(m->graph->values[f.held[0]].name, "b");
    assert_string_equal(m->graph->values[f.held[1]].name, "a");
    ot_target_free(&t);
    ot_model_free(m);
}

/* A set is written and simulated once, whichever step asks, and counts as work each time; written
 * in another way, or with another region, it is another. */
static void test_simulated_once(void **state)
{
    (void)state;
    rig r;
    build(&r, TWINS);
    ot_region set[1] = {*region_of(r.plans[0], 0, 2)}, other[1] = {*region_of(r.plans[1], 3, 5)};
    ot_sim_figures first, again, plain;
    r.x.work = 0;
    assert_int_equal(ot_candidates_simulate(&r.x, set, 1, &first), OT_OK);
    const uint64_t once = r.x.work;
    assert_true(once > 0 && r.x.simulated.n == 1);
    assert_int_equal(ot_candidates_simulate(&r.x, set, 1, &again), OT_OK);
    assert_true(r.x.work == 2 * once && r.x.simulated.n == 1);
    assert_memory_equal(&first, &again, sizeof first);
    assert_int_equal(ot_candidates_simulate(&r.x, other, 1, &again), OT_OK);
    assert_int_equal(r.x.simulated.n, 2);
    r.x.how.branch = false;
    assert_int_equal(ot_candidates_simulate(&r.x, set, 1, &plain), OT_OK);
    assert_int_equal(r.x.simulated.n, 3);
    assert_int_not_equal(plain.growth, first.growth);
    done(&r);
}

/* A set of which a region cannot be written is one of many: it takes more than all others, and
 * nothing is refused. */
static void test_no_set_is_fatal(void **state)
{
    (void)state;
    rig r;
    build(&r, TWINS);
    ot_region set[2] = {*region_of(r.plans[0], 0, 2), *region_of(r.plans[1], 3, 5)};
    const ot_form form = set[1].form;
    ot_sim_figures f;
    int64_t bytes;
    r.m->diag = &r.diag;
    set[1].form = OT_FORM_SCAN;
    assert_int_equal(ot_candidates_simulate(&r.x, set, 2, &f), OT_OK);
    assert_true(f.growth == INT64_MAX);
    assert_int_equal(ot_candidates_score(&r.x, set, 2, &bytes), OT_OK);
    assert_true(bytes == INT64_MAX);
    assert_int_equal(r.diag.status, OT_OK);
    set[1].form = form;
    assert_int_equal(ot_candidates_simulate(&r.x, set, 2, &f), OT_OK);
    assert_true(f.growth < INT64_MAX);
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twins),
        cmocka_unit_test(test_two_that_differ),
        cmocka_unit_test(test_held_at_the_last_growth),
        cmocka_unit_test(test_simulated_once),
        cmocka_unit_test(test_no_set_is_fatal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
