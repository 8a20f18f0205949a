/* The plan checker, and the prices of regions beside it: an error planted for every rule is found,
 * and its reason said. */
#include "tiling/lower/lowering.h"
#include "select/search/plan_search.h"
#include "region_prices.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Two regions, between them a node that no tile gets past. */
static const char *const text =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,64,64]\n"
    "  init %w : float32[4,4,3,3] = random 1\n  init %s : float32[4,64,64] = random 2\n"
    "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n  %c = Conv(%b, %w) {pads=[1,1,1,1]}\n"
    "  %d = LayerNormalization(%c, %s) {axis=1}\n"
    "  %e = Conv(%d, %w) {pads=[1,1,1,1]}\n  %f = Relu(%e)\n  %y = Conv(%f, %w) {pads=[1,1,1,1]}\n"
    "  output %y\n}\n";

/* A cache in which the regions of a forced plan lose time. */
static ot_target cache(void)
{
    ot_target t = {.fast_bytes = 1 << 15,
                   .granule = 64,
                   .cores = 1,
                   .is_cache = true,
                   .bw_fast = 100e9,
                   .bw_mid = 20e9,
                   .bw_slow = 2e9};
    t.rate_conv = t.rate_conv_depthwise = t.rate_conv_pointwise = t.rate_gemm = 4e9;
    t.rate_elem = t.rate_trans = t.rate_reduce = t.rate_pool = 5e9;
    t.node_overhead = t.loop_overhead = t.region_overhead = 1e-4;
    t.runtime = ot_runtime_of(true, false);
    return t;
}

typedef struct rig {
    ot_graph *g;
    ot_plan *p;
    ot_region *r; /* [2] */
    ot_target t;
    ot_plan_options o;
} rig;

#define PLANT(NAME, ...) \
    static void NAME(rig *x) { __VA_ARGS__; }

/* A region's figure that is wrong, where all that is added up of it agrees: only its tiles tell. */
static void take_longer(rig *x, double part)
{
    double more = part * x->r->time_tiled;
    x->r->time_tiled += more;
    x->r->benefit -= more;
    x->p->tiled.time_s += more;
}

static void move_more(rig *x, double part)
{
    double more = part * x->r->traffic;
    x->r->traffic += more;
    x->p->tiled.traffic_bytes += more;
}

static void hold_more(rig *x, int64_t more)
{
    for (uint32_t k = 0; k < 2; k++) x->r[k].peak += more;
    x->p->tiled.peak_bytes += more; /* which is that of a region */
}

/* The region's kernel plans well, of a region that is not what it should be: the planner of
 * buffers finds nothing wrong. */
static void plan_again(rig *x)
{
    ot_diag d = {0};
    ot_region_memory m;
    assert_int_equal(ot_region_plan_memory(x->g, x->r, &x->t, &d, &m, NULL), OT_OK);
    x->r->working_set = m.height;
    x->r->working_set_bound = m.lower_bound;
}

/* regions and their tiles */
PLANT(no_nodes, x->r->n_nodes = 0)
PLANT(no_node, x->r->nodes[0].node = 1000)
PLANT(node_twice, x->r[1].nodes[0].node = x->r[0].nodes[0].node)
PLANT(no_dims, x->r->n_dims = 0)
PLANT(one_tile, x->r->dims[0].n_tiles = 1)
PLANT(long_tile, x->r->dims[0].tile += x->r->dims[0].extent)
PLANT(hidden_output, x->r->values[x->r->n_values - 1].is_output = false)
PLANT(piece, x->r->nodes[x->r->n_nodes - 1].lead_axis[0] = OT_AX_WHOLE)
PLANT(reader, x->r->nodes[0].lead_axis[0] = OT_AX_WHOLE)
PLANT(other_axis, x->r->values[x->r->n_inputs].axis[0] ^= 1)
/* the fast memory */
PLANT(capacity, x->t.is_cache = false, x->t.fast_bytes = x->r->working_set - 1)
PLANT(arena, x->r->working_set++)
PLANT(small_arena, x->r->working_set--)
PLANT(bound, x->r->working_set_bound--)
PLANT(scratch, x->r->nodes[0].work = 1 << 20, plan_again(x))
PLANT(stay, x->r->weights_stay ^= true, plan_again(x))
PLANT(transfers, x->r->overlap ^= true, plan_again(x))
PLANT(crowded, x->r->values[x->r->n_inputs].bytes *= 1000)
/* a region's figures */
PLANT(number, x->r->id++)
PLANT(no_interval, x->r[1].last = 1000)
PLANT(overlap, x->r[1].first = x->r[0].last)
PLANT(outside, x->r->first = x->r->last)
PLANT(no_time, x->r->time_tiled = NAN)
PLANT(no_traffic, x->r->traffic = NAN)
PLANT(no_peak, x->r[1].peak = 0)
PLANT(untiled_time, x->r->time_untiled *= 1.001)
PLANT(benefit, x->r->benefit += 1e-6)
PLANT(untiled_traffic, x->r->traffic_untiled += 1)
PLANT(ratio, x->r->mac_ratio *= 1.001)
PLANT(value_size, x->r->values[0].bytes -= 4)
PLANT(constants, x->r->weight_bytes++)
PLANT(much_time, take_longer(x, 1e-6))
PLANT(little_time, take_longer(x, -1e-6))
PLANT(little_traffic, move_more(x, -1e-6))
PLANT(much_traffic, move_more(x, 1e-6))
PLANT(low_peak, hold_more(x, -2))
PLANT(high_peak, hold_more(x, 2))
PLANT(other_form, x->r->form = OT_FORM_WHILE)
/* the plan's */
PLANT(all_untiled_time, x->p->untiled.time_s *= 1.001)
PLANT(all_untiled_traffic, x->p->untiled.traffic_bytes += 1)
PLANT(all_untiled_macs, x->p->untiled.macs += 1)
PLANT(all_untiled_peak, x->p->untiled.peak_bytes++)
PLANT(compulsory, x->p->compulsory_bytes += 4)
PLANT(all_time, x->p->tiled.time_s *= 1.001)
PLANT(all_traffic, x->p->tiled.traffic_bytes += 1)
PLANT(all_macs, x->p->tiled.macs += 1)
PLANT(all_peak, x->p->tiled.peak_bytes--)
/* limits */
PLANT(slow, x->o = (ot_plan_options){
                .goal = OT_GOAL_MEMORY,
                .max_slowdown = 0.9 * (x->p->tiled.time_s / x->p->untiled.time_s - 1)})
PLANT(budget, x->o.memory_budget = x->p->tiled.peak_bytes - 1)
PLANT(loses, x->o.force = false)
/* within the limits */
PLANT(nothing, x->o.memory_budget = 0)
PLANT(at_budget, x->o.memory_budget = x->p->tiled.peak_bytes)
PLANT(at_slowdown,
      x->o = (ot_plan_options){.goal = OT_GOAL_MEMORY,
                               .max_slowdown = x->p->tiled.time_s / x->p->untiled.time_s - 1})

static const struct {
    void (*plant)(rig *x);
    const char *reason; /* NULL: there is nothing wrong */
} CASES[] = {
    {no_nodes, "empty"},
    {no_node, "a node does not exist"},
    {node_twice, "a node is in two regions"},
    {no_dims, "number of dims"},
    {one_tile, "fewer than two tiles"},
    {long_tile, "tiles do not cover the axis once"},
    {hidden_output, "a value read outside is not an output"},
    {piece, "a tile does not make its piece"},
    {reader, "needs more than the tile holds"},
    {other_axis, "cut along two axes"},
    {capacity, "working set above the capacity"},
    {arena, "the working set is not the planned arena"},
    {small_arena, "the working set is not the planned arena"},
    {bound, "the working set is not the planned arena"},
    {scratch, "scratch of a node"},
    {stay, "constants stay where they cannot, or do not"},
    {transfers, "transfers overlap where they cannot, or do not"},
    {crowded, "size of a value"},
    {number, "not its number in the plan"},
    {no_interval, "no interval of the order"},
    {overlap, "intervals overlap"},
    {outside, "a node outside the interval"},
    {no_time, "time is no time"},
    {no_traffic, "traffic is no number of bytes"},
    {no_peak, "region 1: peak below what is live"},
    {untiled_time, "region 0: untiled time is not its nodes'"},
    {benefit, "benefit is not time saved"},
    {untiled_traffic, "region 0: untiled traffic is not its nodes'"},
    {ratio, "MACs are not what its tiles compute"},
    {value_size, "size of a value"},
    {constants, "bytes of constants"},
    {much_time, "region 0: time is not what its tiles take"},
    {little_time, "region 0: time is not what its tiles take"},
    {little_traffic, "region 0: traffic is not what its tiles move"},
    {much_traffic, "region 0: traffic is not what its tiles move"},
    {low_peak, "region 0: peak is not what is live"},
    {high_peak, "region 0: peak is not what is live"},
    {other_form, "a form that the runtime does not take"},
    {all_untiled_time, "untiled time is not the nodes'"},
    {all_untiled_traffic, "untiled traffic is not the nodes'"},
    {all_untiled_macs, "untiled MACs are not the nodes'"},
    {all_untiled_peak, "untiled peak is not what is live"},
    {compulsory, "compulsory bytes are not inputs, outputs and weights"},
    {all_time, "plan check: time is not the steps'"},
    {all_traffic, "plan check: traffic is not the steps'"},
    {all_macs, "plan check: MACs are not the steps'"},
    {all_peak, "plan check: peak is not the steps'"},
    {slow, "slower than allowed"},
    {budget, "peak above the memory budget"},
    {loses, "region 0: slower than untiled"},
    {nothing, NULL},
    {at_budget, NULL},
    {at_slowdown, NULL},
};

static void every_rule_has_its_reason(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        rig x = {.t = cache(), .o = {.goal = OT_GOAL_TIME, .force = true}};
        assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        assert_int_equal(ot_plan_graph(m->graph, &x.t, &x.o, &x.p), OT_OK);
        assert_int_equal(x.p->n_regions, 2);
        x.g = m->graph;
        x.r = x.p->regions;
        assert_true(x.r->benefit < 0 && x.p->tiled.peak_bytes > 0);
        CASES[k].plant(&x);
        ot_status st = check_plan_and_prices(m->graph, x.p, &x.t, &x.o, &d);
        if (st != (CASES[k].reason ? OT_E_INPUT : OT_OK) ||
            (CASES[k].reason && !strstr(d.message, CASES[k].reason)))
            fail_msg("case %zu (%s): status %d, %s", k,
                     CASES[k].reason ? CASES[k].reason : "nothing wrong", (int)st, d.message);
        ot_plan_free(x.p);
        ot_model_free(m);
    }
}

/* A step that runs several nodes needs what they read until it ends: the sweep knows, and finds
 * no fault. */
static void attention_is_one_step(void **state)
{
    (void)state;
    static const char *const attention =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,64,32]\n  init %wq : "
        "float32[32,32] = random 1\n"
        "  init %wk : float32[32,32] = random 2\n  init %wv : float32[32,32] = random 3\n  init %c "
        ": float32[1] = random 4\n"
        "  %q = MatMul(%x, %wq)\n  %k = MatMul(%x, %wk)\n  %v = MatMul(%x, %wv)\n  %t = "
        "Transpose(%k) {perm=[0,2,1]}\n"
        "  %s = MatMul(%q, %t)\n  %d = Div(%s, %c)\n  %p = Softmax(%d) {axis=-1}\n  %a = "
        "MatMul(%p, %v)\n  %y = Relu(%a)\n"
        "  output %y\n}\n";
    for (int force = 0; force < 2; force++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        ot_plan *p = NULL;
        ot_target t;
        ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.5, .force = force};
        assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
        ot_target_set_l2(&t, 12 << 10);
        ot_target_set_engine(&t);
        assert_int_equal(ot_text_parse(attention, strlen(attention), &d, &m), OT_OK);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
            fail_msg("force %d: %s", force, d.message);
        ot_plan_free(p);
        ot_model_free(m);
    }
}

/* A constant that tiles cut is a window of each, not weights that every tile reads besides. */
static void cut_constants_count_once(void **state)
{
    (void)state;
    static const char *const sums =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,4,64,64]\n  init %c : "
        "float32[1,4,64,64] = random 1\n"
        "  init %w : float32[4,4,1,1] = random 2\n  %a = Add(%x, %c)\n  %y = Conv(%a, %w)\n  "
        "output %y\n}\n";
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_plan *p = NULL;
    ot_target t = cache();
    ot_plan_options o = {.goal = OT_GOAL_TIME, .force = true};
    const double whole = 4 * 64 * 64 * 4, weights = 4 * 4 * 4;
    /* a scratchpad: windows come in, pieces go out, nothing else moves */
    t.runtime = ot_runtime_of(false, true);
    t.is_cache = false;
    assert_int_equal(ot_text_parse(sums, strlen(sums), &d, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
    if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK) fail_msg("%s", d.message);
    assert_int_equal(p->n_regions, 1);
    assert_int_equal(p->regions[0].n_nodes, 2);
    assert_int_equal(p->regions[0].weight_bytes, weights);
    /* x, c and y, weights once or in every tile, granules of cut rows */
    double moved = p->regions[0].traffic;
    if (moved < 3 * whole + weights || moved > 3.5 * whole)
        fail_msg("%.0f bytes of %.0f", moved, 3 * whole + weights);
    ot_plan_free(p);
    ot_model_free(m);
}

/* Windows of elements that are no whole bytes have no address: the engine's form is not for them.
 */
static void packed_elements_are_not_cut(void **state)
{
    (void)state;
    static const char *const casts =
        "model ir 10 opset 21\ngraph g {\n  input %x : float32[8,64,64]\n  %a = Relu(%x)\n"
        "  %b = Cast(%a) {to=TYPE}\n  output %b\n}\n";
    static const char *const types[] = {"22", "21", "3"}; /* int4, uint4, int8 */
    for (uint32_t k = 0; k < 3; k++) {
        ot_diag d = {0};
        ot_model *m = NULL;
        ot_plan *p = NULL;
        ot_target t;
        ot_plan_options o = {.goal = OT_GOAL_TIME, .force = true};
        char graph[256];
        const char *at = strstr(casts, "TYPE");
        snprintf(graph, sizeof graph, "%.*s%s%s", (int)(at - casts), casts, types[k], at + 4);
        assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
        ot_target_set_l2(&t, 16 << 10);
        ot_target_set_engine(&t);
        if (ot_text_parse(graph, strlen(graph), &d, &m) != OT_OK) fail_msg("%s", d.message);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        for (uint32_t r = 0; r < p->n_regions; r++) /* Relu alone may be */
            assert_int_equal(p->regions[r].n_nodes, k < 2 ? 1 : 2);
        assert_true(k < 2 || p->n_regions == 1);
        ot_plan_free(p);
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_its_reason), cmocka_unit_test(attention_is_one_step),
        cmocka_unit_test(cut_constants_count_once), cmocka_unit_test(packed_elements_are_not_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
