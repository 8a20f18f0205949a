/* Sets of regions whose nodes take more to load than they can save, of a large graph
 * (src/select/score.c). */
#include "ir_check.h"

#include "machine/target/target.h"
#include "select/candidates.h"

#define MEGABYTE  (INT64_C(1) << 20)
#define NODE_SIZE (12.0 / 1024) /* MiB that ONNX Runtime takes for a node */

typedef struct rig {
    ot_diag diag;
    ot_target target;
    ot_graph g;
    ot_candidates x;
    ot_region regions[2000];
} rig;

/* `nodes` that run, tensors of `growth` MiB, n regions of three nodes in rows x columns tiles. */
static bool loads_more(rig *r, uint32_t nodes, int64_t growth, uint32_t n, ot_form form,
                       uint32_t rows, uint32_t columns)
{
    assert_true(n <= sizeof r->regions / sizeof *r->regions);
    r->g.n_order = nodes;
    r->x.untiled = (ot_sim_figures){.growth = growth * MEGABYTE};
    for (uint32_t k = 0; k < n; k++)
        r->regions[k] = (ot_region){.form = form,
                                    .n_nodes = 3,
                                    .n_dims = 2,
                                    .dims = {{.n_tiles = rows}, {.n_tiles = columns}}};
    return ot_score_loads_more(&r->x, r->regions, n);
}

static void open_rig(rig *r, const ot_runtime *runtime)
{
    *r = (rig){0};
    assert_int_equal(ot_target_load("cpu-generic", 1, &r->diag, &r->target), OT_OK);
    r->target.runtime = runtime;
    r->x.g = &r->g;
    r->x.t = &r->target;
}

static void test_loops(void **state)
{
    static rig r;
    const int64_t growth = (int64_t)(1000 * 6 * NODE_SIZE); /* what 1000 gathering loops take */
    (void)state;
    open_rig(&r, &ot_runtime_onnxruntime);
    assert_true(loads_more(&r, 5000, growth, 1100, OT_FORM_LOOP, 8, 1));
    assert_true(loads_more(&r, 5000, growth, 1100, OT_FORM_PEELED, 8, 1));
    assert_false(loads_more(&r, 5000, growth, 900, OT_FORM_LOOP, 8, 1));
    assert_false(loads_more(&r, 5000, growth, 1100, OT_FORM_SCAN, 8, 1)); /* half as many nodes */
    assert_true(loads_more(&r, 5000, growth / 2, 1100, OT_FORM_SCAN, 8, 1));
    assert_false(loads_more(&r, 5000, 0, 0, OT_FORM_LOOP, 8, 1));
}

/* Each tile but one has its own nodes. */
static void test_written_out(void **state)
{
    static rig r;
    const int64_t growth = (int64_t)(100 * 15 * 3 * NODE_SIZE);
    (void)state;
    open_rig(&r, &ot_runtime_onnxruntime);
    assert_true(loads_more(&r, 5000, growth, 110, OT_FORM_UNROLLED, 4, 4));
    assert_false(loads_more(&r, 5000, growth, 90, OT_FORM_UNROLLED, 4, 4));
}

/* Small graphs are simulated, a limit on tensors and --force may need the regions, and of other
 * runtimes the bytes are not known. */
static void test_not_asked(void **state)
{
    static rig r;
    (void)state;
    open_rig(&r, &ot_runtime_onnxruntime);
    assert_true(loads_more(&r, 4001, 1, 1000, OT_FORM_LOOP, 8, 1));
    assert_false(loads_more(&r, 4000, 1, 1000, OT_FORM_LOOP, 8, 1));
    r.x.o.max_tensor = 1;
    assert_false(loads_more(&r, 4001, 1, 1000, OT_FORM_LOOP, 8, 1));
    r.x.o = (ot_plan_options){.force = true};
    assert_false(loads_more(&r, 4001, 1, 1000, OT_FORM_LOOP, 8, 1));
    open_rig(&r, &ot_runtime_openvino);
    assert_false(loads_more(&r, 4001, 1, 1000, OT_FORM_LOOP, 8, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_written_out),
        cmocka_unit_test(test_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
