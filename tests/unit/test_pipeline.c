/* The list of passes (src/app/pipeline.c): its stages, limits, sizes; operators for ONNX Runtime,
 * and what a session of the engine takes. */
#include "pipeline_rig.h"

#include "base/watch.h"

#define LOOKS 25 /* of planning CHAIN */

/* ---- the stages ---- */

/* A plan leaves the graph as it was; tiling changes it; both tell the same plan, and what is
 * written is read again as the graph that was made. */
static void plan_then_tile(void **state)
{
    (void)state;
    piped p;
    start_run(&p, CHAIN);
    load(&p);
    const uint32_t n_nodes = p.run.model->graph->n_nodes;
    tile(&p, true);
    assert_int_equal(p.run.model->graph->n_nodes, n_nodes);
    assert_int_equal(p.run.facts->kind, OT_FACTS_INSPECT);
    assert_true(p.run.selection.plan->n_regions > 0 && p.run.was_fixed);
    const int64_t peak = p.run.selection.plan->tiled.peak_bytes;
    ot_run_free(&p.run);
    assert_null(p.run.model);
    assert_null(p.run.selection.plan);

    start_run(&p, CHAIN);
    p.run.output = "t.ot";
    load(&p);
    tile(&p, false);
    assert_int_equal(p.run.selection.plan->tiled.peak_bytes, peak);
    assert_int_equal(p.run.facts->kind, OT_FACTS_OPTIMISE);
    assert_true(p.run.model->graph->n_nodes > n_nodes);
    static char out[256];
    snprintf(out, sizeof out, "%s", in_folder("t.ot"));
    p.run.output = out;
    assert_int_equal(ot_run_save(&p.run), OT_OK);
    ot_model *again = NULL;
    assert_int_equal(ot_text_file_read(out, &p.diag, &again), OT_OK);
    uint32_t tiles = 0;
    for (uint32_t k = 0; k < again->graph->n_nodes; k++)
        tiles += strncmp(again->graph->nodes[k].name, "tile/r", 6) == 0;
    assert_true(tiles > 0);
    ot_model_free(again);
    ot_run_free(&p.run);
    unlink(in_folder("t.ot"));
}

/* With nothing to tile the graph is written back as it was read. */
static void nothing_to_do(void **state)
{
    (void)state;
    static const char SMALL[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[4]\n"
                                "  %y = Relu(%x)\n  output %y\n}\n";
    piped p;
    start_run(&p, SMALL);
    p.run.options.plan.force = false;
    load(&p);
    tile(&p, false);
    assert_int_equal(p.run.selection.plan->n_regions, 0);
    assert_int_equal(p.run.model->graph->n_nodes, 1);
    assert_null(p.run.model->runtime);
    ot_run_free(&p.run);
}

/* Each option of the machine takes the place of what the target says. */
static void options_of_the_machine(void **state)
{
    (void)state;
    piped p;
    start_run(&p, CHAIN);
    p.run.options.l2_bytes = 98304;
    p.run.options.weight_bytes = 12345;
    p.run.options.runtime = "portable";
    load(&p);
    tile(&p, true);
    assert_int_equal(p.run.target.fast_bytes, 98304);
    assert_int_equal(p.run.target.weight_bytes, 12345);
    assert_string_equal(p.run.target.runtime->name, "portable");
    ot_run_free(&p.run);

    start_run(&p, CHAIN);
    p.run.options.emit_engine = true;
    load(&p);
    tile(&p, false);
    assert_string_equal(p.run.target.runtime->name, "engine");
    assert_string_equal(p.run.model->runtime, "engine");
    ot_run_free(&p.run);

    start_run(&p, CHAIN);
    p.run.options.target = "nowhere";
    load(&p);
    assert_int_equal(ot_run_tile(&p.run, true), OT_E_USAGE);
    has_word(p.diag.message, "nowhere");
    ot_run_free(&p.run);

    start_run(&p, CHAIN);
    p.run.options.runtime = "nobody";
    load(&p);
    assert_int_equal(ot_run_tile(&p.run, true), OT_E_USAGE);
    has_word(p.diag.message, "nobody");
    ot_run_free(&p.run);
}

/* A budget that the tiled model keeps and the untiled one does not; one that nothing keeps. */
static void budgets(void **state)
{
    (void)state;
    static const char WIDE[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,1,128,128]\n"
                               "  init %u : float32[8,1,3,3] = random 1\n"
                               "  init %w : float32[8,8,3,3] = random 2 * 0.1\n"
                               "  init %v : float32[1,8,3,3] = random 3\n"
                               "  %a = Conv(%x, %u) {pads=[1,1,1,1]}\n"
                               "  %b = Conv(%a, %w) {pads=[1,1,1,1]}\n"
                               "  %y = Conv(%b, %v) {pads=[1,1,1,1]}\n  output %y\n}\n";
    const int64_t budget = 700000; /* untiled: two maps of 512 KiB */
    piped p;
    start_run(&p, WIDE);
    p.run.options.plan.force = false;
    p.run.options.plan.memory_budget = budget;
    load(&p);
    /* live tensors keep to it, the process cannot */
    assert_int_equal(ot_run_tile(&p.run, true), OT_E_BUDGET);
    has_word(p.diag.message, "700000");
    has_word(p.diag.message, "--best-effort");
    ot_run_free(&p.run);

    start_run(&p, WIDE);
    p.run.options.plan.force = false;
    p.run.options.plan.memory_budget = budget;
    p.run.options.plan.best_effort = true;
    load(&p);
    tile(&p, true);
    assert_true(p.run.selection.plan->untiled.peak_bytes > budget);
    assert_true(p.run.selection.plan->tiled.peak_bytes <= budget);
    has_word(p.run.facts->missed, "700000");
    ot_run_free(&p.run);

    start_run(&p, CHAIN);
    p.run.options.plan.force = false;
    p.run.options.plan.memory_budget = 1000;
    load(&p);
    assert_int_equal(ot_run_tile(&p.run, false), OT_E_BUDGET);
    has_word(p.diag.message, "1000");
    ot_run_free(&p.run);
}

/* The limit on tensors holds of what is written; an input that is above it cannot be cut. */
static void limit_on_tensors(void **state)
{
    (void)state;
    piped p;
    start_run(&p, CHAIN);
    p.run.options.plan.force = false;
    p.run.options.plan.max_tensor = 524288;
    load(&p);
    tile(&p, false);
    ot_run_free(&p.run);

    start_run(&p, CHAIN);
    p.run.options.plan.force = false;
    p.run.options.plan.max_tensor = 524287;
    load(&p);
    assert_int_equal(ot_run_tile(&p.run, false), OT_E_BUDGET);
    has_word(p.diag.message, "'x'");
    has_word(p.diag.message, "524287");
    ot_run_free(&p.run);
}

/* ---- sizes ---- */

/* Nobody says a word of sizes: one is guessed, told, and bound nowhere. */
static void a_size_that_is_guessed(void **state)
{
    (void)state;
    piped p;
    start_run(&p, FREE);
    load(&p);
    tile(&p, false);
    assert_true(p.run.guessed && !p.run.was_fixed);
    assert_non_null(p.run.selection.design);
    assert_string_equal(p.run.facts->design, "x=1,8,4096,128");
    assert_true(p.run.facts->design_guessed);
    assert_int_equal(p.run.model->graph->values[p.run.model->graph->inputs[0]].dims[2],
                     OT_DIM_UNKNOWN);
    ot_run_free(&p.run);
}

/* A range is bounded at its largest size, which is what is planned for; with a budget the plan is
 * one that keeps it. */
static void a_range_of_sizes(void **state)
{
    (void)state;
    static const ot_size_var dims[4] = {{1, 1, 1}, {8, 8, 1}, {256, 1024, 1}, {128, 128, 1}};
    static const ot_size_range range = {"x", 4, dims};
    static const int64_t upper[] = {1, 8, 1024, 128};
    const ot_shape_binding design = {"x", 4, upper, false, "--range"};
    for (int budget = 0; budget < 2; budget++) {
        piped p;
        start_run(&p, FREE);
        p.run.options.plan.force = false;
        p.run.options.plan.goal = OT_GOAL_MEMORY;
        p.run.options.plan.max_slowdown = 10;
        p.run.options.keep_dynamic = true;
        p.run.options.ranges = &range;
        p.run.options.n_ranges = 1;
        p.run.options.design = &design;
        p.run.options.n_design = 1;
        p.run.options.plan.memory_budget = budget ? 60000000 : 0;
        load(&p);
        tile(&p, true);
        assert_int_equal(p.run.selection.bounds.tiled.verdict, OT_BOUNDS_PROVED);
        assert_string_equal(p.run.selection.bounds.untiled.live_at, "1x8x1024x128");
        assert_int_equal(p.run.selection.bounds.untiled.live_bytes, 2 * 8 * 1024 * 128 * 4);
        if (budget) assert_true(p.run.selection.bounds.tiled.process_bytes <= 60000000);
        ot_run_free(&p.run);
    }
}

/* ---- operators for ONNX Runtime ---- */

#ifdef OT_ENGINE
static uint32_t marked(const ot_model *m)
{
    uint32_t n = 0;
    for (uint32_t k = 0; m->in_operator && k < m->graph->n_nodes; k++)
        n += m->in_operator[k] && !m->graph->nodes[k].dead;
    return n;
}

static ot_status tile_as(piped *p, const char *text, ot_operators which)
{
    start_run(p, text);
    p->run.options.emit_engine = true;
    p->run.options.operators = which;
    load(p);
    return ot_run_tile(&p->run, false);
}

/* All of the model, parts that the engine has, or regions alone; one that it has not is refused
 * where all goes inside, and stays outside of parts. */
static void what_goes_into_operators(void **state)
{
    (void)state;
    static const char STRANGE[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,128,128]\n"
        "  init %w : float32[8,8,3,3] = random 1 * 0.1\n  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n"
        "  %b = Conv(%a, %w) {pads=[1,1,1,1]}\n  %y : float32[1,8,128,128] = "
        "\"foo\"::Bar@1(%b)\n  output %y\n}\n";
    piped p;
    assert_int_equal(tile_as(&p, CHAIN, OT_OPERATORS_WHOLE), OT_OK);
    ot_run_free(&p.run);

    assert_int_equal(tile_as(&p, CHAIN, OT_OPERATORS_PARTS), OT_OK);
    const uint32_t all = marked(p.run.model);
    ot_run_free(&p.run);
    assert_int_equal(tile_as(&p, CHAIN, OT_OPERATORS_REGIONS), OT_OK);
    const uint32_t regions = marked(p.run.model);
    ot_run_free(&p.run);
    assert_true(regions > 0 && all >= regions);

    assert_int_equal(tile_as(&p, STRANGE, OT_OPERATORS_WHOLE), OT_E_INPUT);
    has_word(p.diag.message, "--ort-operators parts leaves to ONNX Runtime");
    has_word(p.diag.message, "Bar");
    ot_run_free(&p.run);
    if (tile_as(&p, STRANGE, OT_OPERATORS_PARTS) != OT_OK) fail_msg("%s", p.diag.message);
    const ot_graph *g = p.run.model->graph;
    assert_true(marked(p.run.model) > 0);
    for (uint32_t k = 0; k < g->n_nodes; k++)
        if (strcmp(g->nodes[k].op_type, "Bar") == 0) assert_false(p.run.model->in_operator[k]);
    ot_run_free(&p.run);
}
#endif

#ifdef OT_ENGINE
/* Nodes without a fast kernel are named by operator; not views, small ones, or those of a chain;
 * and not for another runtime. */
static void slow_nodes(void **state)
{
    (void)state;
    static const char MODEL[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[5000,8,8]\n"
                                "  init %k : int64[1] = [4]\n  init %s : int64[2] = [-1, 64]\n"
                                "  %a = Det(%x)\n  %b = Det(%x)\n  %c = Det(%x)\n  %d = Det(%x)\n"
                                "  %e = Acosh(%a)\n  %f = Relu(%a)\n  %g = Reshape(%x, %s)\n"
                                "  %h, %i = TopK(%b, %k)\n  %j = Acosh(%c)\n"
                                "  %l = Einsum(%x, %x) {equation = \"bij,bjk->bik\"}\n"
                                "  output %c\n  output %d\n  output %e\n  output %f\n"
                                "  output %g\n  output %i\n  output %j\n  output %l\n}\n";
    piped p;
    for (int engine = 0; engine < 2; engine++) {
        start_run(&p, MODEL);
        p.run.options.emit_engine = engine;
        load(&p);
        tile(&p, true);
        assert_string_equal(p.run.facts->slow_nodes,
                            engine ? "Det 'a', 'b', 'c' and 1 more; Acosh 'e', 'j'" : "");
        ot_run_free(&p.run);
    }
}
#endif

#ifdef OT_ENGINE
/* CHAIN planned for a session of this host within a budget; *takes: what the session plans, or what
 * a refusal requires. */
static bool keeps(int64_t budget, int64_t *takes)
{
    piped p;
    start_run(&p, CHAIN);
    p.run.options.target = "host";
    p.run.options.l2_bytes = 0;
    p.run.options.emit_engine = true;
    p.run.options.plan.force = false;
    p.run.options.plan.goal = OT_GOAL_MEMORY;
    p.run.options.plan.memory_budget = budget;
    load(&p);
    const ot_status s = ot_run_tile(&p.run, true);
    const char *required = strstr(p.diag.message, "required ");
    if (s == OT_OK)
        *takes = p.run.selection.plan->tiled.growth_bytes;
    else if (s != OT_E_BUDGET || !required || !strchr(required, '('))
        fail_msg("%d: %s", (int)s, p.diag.message);
    else
        *takes = strtoll(strchr(required, '(') + 1, NULL, 10);
    ot_run_free(&p.run);
    return s == OT_OK;
}

/* A budget holds what a session takes, scratch included; what a refusal requires is enough. */
static void budgets_of_sessions(void **state)
{
    (void)state;
    int64_t takes, enough;
    int kept = 0, refused = 0;
    for (int64_t budget = 1200000; budget > 40000; budget = budget * 4 / 5) {
        if (keeps(budget, &takes)) {
            kept++;
            if (takes > budget) fail_msg("%lld of %lld", (long long)takes, (long long)budget);
            continue;
        }
        refused++;
        assert_true(takes > budget);
        if (!keeps(takes, &enough)) fail_msg("%lld are not enough", (long long)takes);
    }
    assert_true(kept > 0 && refused > 0);
}
#endif

/* Planning looks whether it is to end at each tiling that it tries, and sessions inside of it do
 * not say how far it is. */
static void watched(void **state)
{
    (void)state;
    const atomic_int none = 0;
    ot_watch w = {.stop = &none}, *before = ot_watch_use(&w);
    piped p;
    start_run(&p, CHAIN);
    load(&p);
    const uint64_t loaded = w.looks;
    tile(&p, true);
    ot_run_free(&p.run);
    if (w.looks - loaded < LOOKS) fail_msg("%llu looks", (unsigned long long)(w.looks - loaded));
    ot_watch_at("plan", 1, 4);
    assert_false(ot_watch_inner(true));
    ot_watch_at("run", 1, 2);
    assert_string_equal(w.stage, "plan");
    assert_true(ot_watch_inner(false));
    ot_watch_at("run", 1, 2);
    assert_string_equal(w.stage, "run");
    (void)ot_watch_use(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watched),
        cmocka_unit_test(plan_then_tile),
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(options_of_the_machine),
        cmocka_unit_test(budgets),
        cmocka_unit_test(limit_on_tensors),
        cmocka_unit_test(a_size_that_is_guessed),
        cmocka_unit_test(a_range_of_sizes),
#ifdef OT_ENGINE
        cmocka_unit_test(what_goes_into_operators),
        cmocka_unit_test(slow_nodes),
        cmocka_unit_test(budgets_of_sessions),
#endif
    };
    return cmocka_run_group_tests(tests, make_folder, remove_it_all);
}
