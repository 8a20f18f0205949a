/* Plans for dynamic dimensions are scored at two sizes (src/select/two_sizes.c); what is best at
 * the design size alone competes, too, and so do tiles of other lengths. */
#include "ir_check.h"

#include "ops/ops.h"
#include "ops/dynamic_dims.h"
#include "machine/target/target.h"
#include "alloc_sim/alloc_sim.h"
#include "select/candidates.h"

#include <math.h>

static const char TEXT[] =
    "model ir 8 opset 17\ngraph g {\n input %x : float32[1,16,?,128]\n init %w : "
    "float32[16,16,3,3] = random 1\n"
    " %a = Conv(%x, %w) {pads=[1,1,1,1]}\n %b = Conv(%a, %w) {pads=[1,1,1,1]}\n"
    " %c = Conv(%b, %w) {pads=[1,1,1,1]}\n %y = ReduceMax(%c) {axes=[1]}\n output %y\n}\n";

/* Candidates of one plan, of one region over all of the network. */
typedef struct rig {
    ot_model *file, *planned, *small;
    ot_diag diag;
    ot_target target;
    ot_plan_options o;
    ot_plan *plan;
    ot_candidates x;
} rig;

static ot_model *at_rows(rig *r, int64_t rows)
{
    const int64_t dims[] = {1, 16, rows, 128};
    const ot_shape_binding b = {"x", 4, dims, false, "--design"};
    ot_model *m;
    assert_int_equal(ot_model_clone(r->file, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, &b, 1), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    return m;
}

static void build(rig *r)
{
    ot_sim_figures whole;
    *r = (rig){.file = parse(TEXT),
               .o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 10, .force = true}};
    assert_int_equal(ot_infer_shapes(r->file->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(r->file->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    r->planned = at_rows(r, 512);
    r->small = at_rows(r, 256);
    assert_int_equal(ot_dynamic_dims_set(r->file->graph, r->planned->graph, NULL), OT_OK);
    ot_dynamic_dims_small(r->planned->graph, r->small->graph);
    assert_int_equal(ot_target_load("cpu-generic", 1, &r->diag, &r->target), OT_OK);
    assert_int_equal(ot_plan_graph(r->planned->graph, &r->target, &r->o, &r->plan), OT_OK);
    assert_true(r->plan->n_regions > 0);
    assert_int_equal(ot_sim_growth(r->planned->graph, r->target.runtime, false, &whole), OT_OK);
    r->x = (ot_candidates){.g = r->planned->graph,
                           .t = &r->target,
                           .o = r->o,
                           .untiled_s = r->plan->untiled.time_s,
                           .arena = ot_arena_new()};
    r->x.untiled = whole;
    r->x.base = ot_score_base_of(&whole, &whole);
    assert_int_equal(ot_candidates_add(&r->x, r->plan, INT64_MAX), OT_OK);
}

static void done(rig *r)
{
    ot_arena_free(r->x.arena);
    ot_plan_free(r->plan);
    ot_target_free(&r->target);
    ot_model_free(r->small);
    ot_model_free(r->planned);
    ot_model_free(r->file);
}

/* The mean of both sizes, the smaller one by its part of what the model scores there. */
static void test_scored_at_both_sizes(void **state)
{
    (void)state;
    rig r;
    int64_t both, design;
    build(&r);
    assert_int_equal(ot_candidates_score(&r.x, r.plan->regions, r.plan->n_regions, &both), OT_OK);
    r.x.at_design = true;
    assert_int_equal(ot_candidates_score(&r.x, r.plan->regions, r.plan->n_regions, &design), OT_OK);
    assert_true(design < r.x.base.untiled);
    assert_true(both > design); /* tiles of as many rows are a larger part there */
    done(&r);
}

/* What scores more than is asked for is more, whoever asked before; what does not has its score. */
static void test_scored_up_to_a_limit(void **state)
{
    (void)state;
    static const int PARTS[] = {50, 90, 99, 101, 99, 50, 200};
    for (int at_design = 0; at_design < 2; at_design++) {
        rig r, cut;
        int64_t whole, bytes;
        uint32_t n_more = 0;
        build(&r);
        build(&cut);
        r.x.at_design = cut.x.at_design = at_design;
        assert_int_equal(ot_candidates_score(&r.x, r.plan->regions, r.plan->n_regions, &whole),
                         OT_OK);
        for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
            const int64_t most = whole / 100 * PARTS[k];
            ot_region_set set = {.all = cut.plan->regions, .n = cut.plan->n_regions};
            assert_int_equal(ot_candidates_score_to(&cut.x, set.all, set.n, most, &bytes), OT_OK);
            assert_true(bytes == whole || (most < whole && bytes == INT64_MAX));
            n_more += bytes == INT64_MAX;
            assert_int_equal(ot_set_score(&cut.x, most, &set), OT_OK);
            assert_true(set.bytes == whole || (most < whole && set.bytes == INT64_MAX));
        }
        assert_true(at_design || n_more > 0);
        assert_int_equal(cut.x.n_scored, 1);
        done(&r);
        done(&cut);
    }
}

/* More growth never scores less. */
static void test_growth_scores(void **state)
{
    (void)state;
    const int64_t mb = 1 << 20;
    for (int64_t loaded = 0; loaded < 400 * mb; loaded += 57 * mb)
        for (int64_t reused = 0; reused < 90 * mb; reused += 29 * mb) {
            const ot_sim_figures untiled = {.growth = 300 * mb, .loaded = 250 * mb},
                                 of = {.loaded = loaded, .loading = 350 * mb, .reused = reused};
            const ot_score_base base = ot_score_base_of(&untiled, &untiled);
            int64_t before = 0;
            for (int64_t growth = 0; growth < 700 * mb; growth += mb / 2) {
                ot_sim_figures f = of;
                ot_sim_grown(&f, growth);
                const int64_t score = ot_score_bytes(&f, &base);
                assert_true(score >= before - 1);
                before = score;
            }
        }
}

/* The set that is best at the design size comes in where it takes less at both sizes, and
 * nowhere else. */
static void test_best_at_the_design_size(void **state)
{
    (void)state;
    rig r;
    int64_t both;
    build(&r);
    ot_region_set none = {.all = OT_NEW_N(r.x.arena, ot_region, r.x.n_pool + 1),
                          .bytes = r.x.base.untiled},
                  won = none;
    assert_int_equal(ot_candidates_at_design(&r.x, &won), OT_OK);
    assert_true(won.n > 0 && won.bytes < none.bytes);
    assert_false(r.x.at_design);
    assert_int_equal(ot_candidates_score(&r.x, won.all, won.n, &both), OT_OK);
    assert_int_equal(won.bytes, both);
    won = none;
    won.bytes = both; /* as if that were as good */
    assert_int_equal(ot_candidates_at_design(&r.x, &won), OT_OK);
    assert_int_equal(won.n, 0);
    done(&r);
}

/* The plan's own region in tiles of `rows`; the caller frees the plan. */
static ot_plan *in_tiles(rig *r, ot_graph *g, int64_t rows)
{
    ot_region like = r->plan->regions[0];
    ot_plan *p;
    like.dims[0].tile = rows;
    assert_int_equal(ot_plan_like(g, &r->target, &like, 1, false, &p), OT_OK);
    assert_int_equal(p->n_regions, 0);
    return p;
}

/* A region built like one of a plan has that one's figures; at another size that size's extents;
 * none where two tiles are more than all rows. */
static void test_like_another_region(void **state)
{
    (void)state;
    rig r;
    build(&r);
    const ot_region *of = &r.plan->regions[0];
    ot_plan *same = in_tiles(&r, r.planned->graph, of->dims[0].tile),
            *long_ones = in_tiles(&r, r.planned->graph, 257);
    r.small->dynamic_dims = r.planned->dynamic_dims;
    ot_plan *small = in_tiles(&r, r.small->graph, of->dims[0].tile);
    assert_int_equal(long_ones->n_spare, 0);
    assert_int_equal(same->n_spare, 1);
    assert_int_equal(small->n_spare, 1);
    const ot_region *got = &same->spare[0];
    assert_true(got->time_tiled == of->time_tiled && got->benefit == of->benefit &&
                got->mac_ratio == of->mac_ratio);
    assert_int_equal(got->working_set, of->working_set);
    assert_int_equal(got->peak, of->peak);
    assert_int_equal(got->dims[0].n_tiles, of->dims[0].n_tiles);
    assert_int_equal(small->spare[0].dims[0].extent, 256);
    assert_int_equal(small->spare[0].dims[0].n_tiles,
                     (256 + of->dims[0].tile - 1) / of->dims[0].tile);
    ot_plan_free(same);
    ot_plan_free(long_ones);
    ot_plan_free(small);
    done(&r);
}

/* A set of one region in tiles of many rows becomes one of shorter tiles, which takes less and
 * keeps within the time allowed. */
static void test_other_tiles(void **state)
{
    (void)state;
    rig r;
    build(&r);
    ot_plan *p = in_tiles(&r, r.planned->graph, 128);
    assert_int_equal(p->n_spare, 1);
    ot_region_set won = {.all = p->spare, .n = 1, .gain = p->spare[0].benefit};
    assert_int_equal(ot_candidates_score(&r.x, won.all, won.n, &won.bytes), OT_OK);
    const ot_region_set before = won;
    r.x.n_pool = r.x.n_lap_pool = 0; /* there is nothing else to take */
    assert_int_equal(ot_candidates_vary(&r.x, &won), OT_OK);
    assert_int_equal(won.n, 1);
    assert_true(won.bytes < before.bytes);
    assert_true(won.all[0].dims[0].tile < 128);
    won = before;
    r.x.n_pool = r.x.n_lap_pool = 0;
    r.x.o.max_slowdown = fmax(0, -before.gain / r.x.untiled_s); /* no time is left */
    assert_int_equal(ot_candidates_vary(&r.x, &won), OT_OK);
    assert_true(won.gain >= before.gain);
    for (size_t k = 0; k < r.x.n_plans; k++) ot_plan_free(r.x.plans[k]);
    ot_plan_free(p);
    done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scored_at_both_sizes), cmocka_unit_test(test_scored_up_to_a_limit),
        cmocka_unit_test(test_growth_scores),        cmocka_unit_test(test_best_at_the_design_size),
        cmocka_unit_test(test_like_another_region),  cmocka_unit_test(test_other_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
