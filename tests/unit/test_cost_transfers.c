/* What graph inputs and results cost between host and device: untiled and tiled times against
 * sums by hand, and what the planner makes of it.
 *
 *   kernels take K, an input U whole, a result D  untiled: U + K + D  n tiles: the longest of the
 *                                                                     three, and 1 / n of the
 *                                                                     others
 */
#include "shaped_model.h"

#include "select/search/plan_search.h"
#include "select/search/search.h"
#include "region_prices.h"

#include <math.h>

#define ROWS   4096
#define COLS   1024
#define BYTES  (4.0 * ROWS * COLS) /* of an array */
#define UP     2e9
#define DOWN   1e9
#define START  1e-5
#define FINISH 2e-5

/* Element by element: no halos, and windows of all tiles are all of the input. */
static const char CHAIN[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[4096,1024]\n  %a = Sigmoid(%x)\n"
    "  %b = Softmax(%a) {axis=1}\n  %y = Tanh(%b)\n  output %y\n}\n";
/* x has two readers, and the result one. */
static const char SHARED[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[4096,1024]\n  %a = Sigmoid(%x)\n"
    "  %b = Softmax(%a) {axis=1}\n  %y = Add(%b, %x)\n  %t = ReduceMean(%y) {axes=[0, 1]}\n  "
    "output %y\n  output %t\n}\n";

typedef struct planned {
    ot_diag d;
    ot_model *m;
    ot_plan *p;
    ot_target t;
    ot_plan_options o;
} planned;

static ot_target device(bool transfers, double rate)
{
    ot_target t = {.fast_bytes = 1 << 20,
                   .granule = 64,
                   .cores = 4,
                   .is_cache = true,
                   .runtime = &ot_runtime_engine_device,
                   .bw_fast = 4 * rate,
                   .bw_mid = rate,
                   .bw_slow = rate,
                   .rate_conv = 1e12,
                   .rate_conv_depthwise = 1e11,
                   .rate_conv_pointwise = 1e12,
                   .rate_gemm = 1e12,
                   .rate_elem = 1e11,
                   .rate_trans = 1e10,
                   .rate_reduce = 1e11,
                   .rate_pool = 1e11,
                   .node_overhead = 1e-6,
                   .loop_overhead = 1e-6,
                   .region_overhead = 1e-6};
    if (transfers) t.transfers = (ot_transfer_costs){UP, DOWN, START, FINISH};
    return t;
}

static void open_plan(planned *x, const char *text, ot_target t, bool force)
{
    *x = (planned){.t = t, .o = {.force = force, .tie_break = true}};
    x->m = read_model(text, &x->d);
    if (ot_plan_graph(x->m->graph, &x->t, &x->o, &x->p) != OT_OK) fail_msg("%s", x->d.message);
    if (check_plan_and_prices(x->m->graph, x->p, &x->t, &x->o, &x->d) != OT_OK)
        fail_msg("%s", x->d.message);
}

static void close_plan(planned *x)
{
    ot_plan_free(x->p);
    ot_model_free(x->m);
}

/* The same region where transfers cost nothing. */
static double kernels_alone(const planned *x, const ot_region *from)
{
    ot_arena *a = ot_arena_new();
    ot_target t = device(false, x->t.bw_slow);
    ot_region r = *from;
    ot_seq s;
    assert_non_null(a);
    assert_int_equal(ot_seq_build(x->m->graph, a, &s), OT_OK);
    assert_int_equal(ot_cost_fill(&s, &t), OT_OK);
    assert_int_equal(ot_region_exact(&s, &t, 0, &r), OT_OK);
    ot_arena_free(a);
    return r.time_tiled;
}

static void check(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * want)) fail_msg("%.9g s, not %.9g", got, want);
}

static double tiles_of(const ot_region *r)
{
    double n = 1;
    for (uint32_t d = 0; d < r->n_dims; d++) n *= r->dims[d].n_tiles;
    return n;
}

static void untiled_models_pay_for_each_array_once(void **state)
{
    (void)state;
    static const char *const texts[] = {CHAIN, SHARED};
    static const double results[] = {BYTES / DOWN + FINISH, BYTES / DOWN + 4 / DOWN + 2 * FINISH};
    for (int k = 0; k < 2; k++) {
        planned with, without;
        open_plan(&with, texts[k], device(true, 1e11), false);
        open_plan(&without, texts[k], device(false, 1e11), false);
        check(with.p->untiled.time_s, without.p->untiled.time_s + BYTES / UP + START + results[k]);
        close_plan(&with);
        close_plan(&without);
    }
}

static void tiles_move_beside_kernels(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) { /* transfers take longest, or kernels do */
        planned x;
        open_plan(&x, CHAIN, device(true, slow ? 5e8 : 1e11), true);
        assert_int_equal(x.p->n_regions, 1);
        const ot_region *r = &x.p->regions[0];
        const double n = tiles_of(r), kernels = kernels_alone(&x, r), up = BYTES / UP + n * START,
                     down = BYTES / DOWN + n * FINISH;
        const double longest = fmax(kernels, fmax(up, down));
        assert_true(n >= 4 && slow == (longest == kernels));
        check(r->time_tiled, longest + (up + kernels + down - longest) / n);
        close_plan(&x);
    }
}

static void others_move_whole(void **state)
{
    (void)state;
    planned x;
    open_plan(&x, SHARED, device(true, 1e11), true);
    assert_true(x.p->n_regions >= 1);
    const ot_region *r = &x.p->regions[0];
    assert_int_equal(r->first, 0);
    double whole = BYTES / UP + START;
    for (uint32_t k = 0; k < r->n_nodes; k++) {
        const ot_node *n = &x.m->graph->nodes[r->nodes[k].node];
        if (x.m->graph->values[n->out[0]].is_output)
            whole += n->op == OT_OP_Add ? BYTES / DOWN + FINISH : 4 / DOWN + FINISH;
    }
    check(r->time_tiled, kernels_alone(&x, r) + whole);
    close_plan(&x);
}

/* The chain is one pass over memory: nothing is gained by tiles but what moves meanwhile. */
static void transfers_are_a_reason_to_tile(void **state)
{
    (void)state;
    planned with, without, elsewhere, plain;
    static const char one[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[4096,1024]\n  "
                              "%a = Sigmoid(%x)\n  %y = Tanh(%a)\n  output %y\n}\n";
    ot_target engine = device(true, 1e11), engine_alone = device(false, 1e11);
    engine.runtime = engine_alone.runtime = &ot_runtime_engine;
    open_plan(&without, one, device(false, 1e11), false);
    open_plan(&with, one, device(true, 1e11), false);
    open_plan(&elsewhere, one, engine, false);
    open_plan(&plain, one, engine_alone, false);
    assert_int_equal(without.p->n_regions, 0);
    assert_int_equal(with.p->n_regions, 1);
    assert_true(with.p->tiled.time_s < 0.8 * with.p->untiled.time_s);
    assert_int_equal(elsewhere.p->n_regions, 0); /* whose inputs are where it computes */
    check(elsewhere.p->untiled.time_s, plain.p->untiled.time_s);
    close_plan(&plain);
    close_plan(&with);
    close_plan(&without);
    close_plan(&elsewhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(untiled_models_pay_for_each_array_once),
        cmocka_unit_test(tiles_move_beside_kernels),
        cmocka_unit_test(others_move_whole),
        cmocka_unit_test(transfers_are_a_reason_to_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
