/* The list of passes (src/app/pipeline.c) and what stands beside it: files of text, dumps, the
 * command that a report names, operators for ONNX Runtime. */
#include "report_check.h"

#include "app/pipeline.h"
#include "base/watch.h"
#include "onnx/import/model_io.h"

#include <dirent.h>

/* Three convolutions with activations; their maps take 512 KiB each. */
#define LOOKS 25 /* of planning CHAIN */

static const char CHAIN[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,128,128]\n"
                            "  init %w : float32[8,8,3,3] = random 1 * 0.1\n"
                            "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n"
                            "  %c = Conv(%b, %w) {pads=[1,1,1,1]}\n  %d = Relu(%c)\n"
                            "  %y = Conv(%d, %w) {pads=[1,1,1,1]}\n  output %y\n}\n";

typedef struct piped {
    ot_diag diag;
    ot_run run;
} piped;

/* A run of the text, which lies in m.ot. */
static void start_run(piped *p, const char *text)
{
    put_file(in_folder("m.ot"), text);
    *p = (piped){0};
    p->run.diag = &p->diag;
    p->run.options = (ot_run_options){
        .target = "cpu-generic",
        .l2_bytes = 65536,
        .threads = 1,
        .plan = {.goal = OT_GOAL_TIME, .max_slowdown = 0.1, .tie_break = true, .force = true}};
    static char path[256]; /* one run at a time */
    snprintf(path, sizeof path, "%s", in_folder("m.ot"));
    p->run.source.path = path;
}

static void load(piped *p)
{
    if (ot_run_load(&p->run) != OT_OK) fail_msg("%s", p->diag.message);
}

static void tile(piped *p, bool plan_only)
{
    if (ot_run_tile(&p->run, plan_only) != OT_OK) fail_msg("%s", p->diag.message);
}

static void has_word(const char *text, const char *word)
{
    if (!strstr(text, word)) fail_msg("no '%s' in '%s'", word, text);
}

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

static const char FREE[] = "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,?,128]\n"
                           "  init %w : float32[8,8,3,3] = random 1 * 0.1\n"
                           "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Relu(%a)\n"
                           "  %y = Conv(%b, %w) {pads=[1,1,1,1]}\n  output %y\n}\n";

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

/* ---- files ---- */

static void refuses_to_load(const char *path, ot_status status, const char *word)
{
    piped p = {0};
    p.run.diag = &p.diag;
    p.run.source.path = path;
    assert_int_equal(ot_run_load(&p.run), status);
    has_word(p.diag.message, word);
    assert_null(strchr(p.diag.message, '\n'));
    ot_run_free(&p.run);
}

/* What is wrong with a file names the file, once. */
static void files_that_are_none(void **state)
{
    (void)state;
    put_file(in_folder("bad.ot"), "model ir 8 opset 17\ngraph g {\n  %y = \n}\n");
    put_file(in_folder("bad.onnx"), "no model");
    refuses_to_load(in_folder("bad.ot"), OT_E_INPUT, "bad.ot: 4:");
    refuses_to_load(in_folder("bad.onnx"), OT_E_INPUT, "bad.onnx");
    refuses_to_load(in_folder("absent.ot"), OT_E_INPUT, "cannot read '");
    refuses_to_load(in_folder("m.ot/deep.ot"), OT_E_INPUT, "deep.ot");
    assert_int_equal(mkdir(in_folder("folder.ot"), 0777), 0);
    refuses_to_load(in_folder("folder.ot"), OT_E_INPUT, "not a regular file");
    assert_int_equal(rmdir(in_folder("folder.ot")), 0);
    /* of a model in memory there is no name to say */
    piped p = {0};
    p.run.diag = &p.diag;
    p.run.source.bytes = "no model";
    p.run.source.n = 8;
    assert_int_equal(ot_run_load(&p.run), OT_E_INPUT);
    assert_null(strstr(p.diag.message, folder));
    ot_run_free(&p.run);
    unlink(in_folder("bad.ot"));
    unlink(in_folder("bad.onnx"));
    assert_true(ot_is_text_path("a.ot") && !ot_is_text_path(".ot") && !ot_is_text_path("a.ot.x"));
}

static void text_that_cannot_be_written(void **state)
{
    (void)state;
    piped p;
    start_run(&p, CHAIN);
    load(&p);
    static const char *const names[] = {"none/t.ot", "m.ot/t.ot"};
    for (size_t k = 0; k < 2; k++) {
        p.diag = (ot_diag){0};
        p.run.output = in_folder(names[k]);
        assert_int_equal(ot_run_save(&p.run), OT_E_SYSTEM);
        has_word(p.diag.message, "t.ot");
    }
    ot_run_free(&p.run);
}

/* ---- dumps ---- */

static uint32_t files_in(const char *path, const char *ending)
{
    uint32_t n = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        const size_t a = strlen(e->d_name), b = strlen(ending);
        n += a >= b && strcmp(e->d_name + a - b, ending) == 0;
    }
    closedir(d);
    return n;
}

static void remove_all(const char *path)
{
    char file[512];
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (*e->d_name == '.') continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        assert_int_equal(unlink(file), 0);
    }
    closedir(d);
    assert_int_equal(rmdir(path), 0);
}

/* The graph after each pass as text and as a drawing; of each region its kernel, with the options
 * that plan it again, and its program. */
static void dumps(void **state)
{
    (void)state;
    static const char *const targets[] = {"cpu-generic", "tlf-16m"};
    for (size_t k = 0; k < 2; k++) {
        piped p;
        char folder_of_dump[256], path[512];
        snprintf(folder_of_dump, sizeof folder_of_dump, "%s", in_folder("dump"));
        start_run(&p, CHAIN);
        p.run.options.target = targets[k];
        p.run.options.dump_dir = folder_of_dump;
        load(&p);
        tile(&p, false);
        const uint32_t n_regions = p.run.selection.plan->n_regions,
                       n_ot = files_in(folder_of_dump, ".ot");
        assert_true(n_regions > 0 && n_ot >= 7);
        assert_int_equal(files_in(folder_of_dump, ".dot"), n_ot);
        assert_int_equal(files_in(folder_of_dump, ".tk"), 2 * n_regions);

        snprintf(path, sizeof path, "%s/01-import.ot", folder_of_dump);
        ot_model *first = NULL;
        assert_int_equal(ot_text_file_read(path, &p.diag, &first), OT_OK);
        assert_int_equal(first->graph->n_nodes, 5);
        ot_model_free(first);
        snprintf(path, sizeof path, "%s/region-%u.tk", folder_of_dump,
                 p.run.selection.plan->regions[0].id);
        char *text = get_file(path);
        has_word(text, "# args: --capacity ");
        has_word(text, " operators, ");
        has_word(text, "bytes of l2, ");
        assert_int_equal(strstr(text, "# placed in ") != NULL, p.run.target.double_buffer);
        has_word(text, "\nkernel ");
        free(text);
        snprintf(path, sizeof path, "%s/program-%u.tk", folder_of_dump,
                 p.run.selection.plan->regions[0].id);
        text = get_file(path);
        has_word(text, "# args: --fast-memory ");
        has_word(text, " = x\n");
        free(text);
        ot_run_free(&p.run);
        remove_all(folder_of_dump);
    }
}

static void dumps_that_cannot_be_written(void **state)
{
    (void)state;
    static char long_name[5000];
    memset(long_name, 'a', sizeof long_name - 1);
    const struct {
        const char *folder, *word;
    } cases[] = {{in_folder("m.ot/dump"), "cannot make folder '"},
                 {in_folder("m.ot"), "cannot write '"},
                 {long_name, "cannot make folder '"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        piped p;
        start_run(&p, CHAIN);
        p.run.options.dump_dir = cases[k].folder;
        assert_int_equal(ot_run_load(&p.run), OT_E_SYSTEM);
        has_word(p.diag.message, cases[k].word);
        ot_run_free(&p.run);
    }
}

/* One line a pass, in the order of the list. */
static void log_of_passes(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    piped p;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    start_run(&p, CHAIN);
    p.run.options.log = f;
    load(&p);
    tile(&p, false);
    assert_int_equal(fclose(f), 0);
    const char *at = text;
    static const char *const passes[] = {"import", "shapes", "select", "results", "rewrite"};
    for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
        char line[64];
        snprintf(line, sizeof line, "onnx-tile: %-10s ", passes[k]);
        at = strstr(at, line);
        if (!at) fail_msg("no '%s' in its place: %s", line, text);
    }
    ot_run_free(&p.run);
    free(text);
}

/* ---- the command that a report names ---- */

static void command_is(const ot_run *r, const char *want)
{
    ot_arena *a = ot_arena_new();
    assert_string_equal(ot_run_command_text(r, a), want);
    ot_arena_free(a);
}

/* What is as by default is not said; names are words of a shell, and no options. */
static void commands(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 3, 64, 48};
    static const ot_shape_binding x = {"x", 4, dims, true, NULL},
                                  odd = {"it's", 2, dims, true, NULL};
    ot_run r = {.options = {.target = "host", .plan = {.max_slowdown = 0.10}}};
    r.source.path = "dir/m.onnx";
    command_is(&r, "onnx-tile dir/m.onnx -o dir/m-tiled.onnx --goal time");
    r.source.path = "-";
    command_is(&r, "onnx-tile model.onnx -o model-tiled.onnx --goal time");
    r.source.path = NULL;
    command_is(&r, "onnx-tile model.onnx -o model-tiled.onnx --goal time");
    r.source.path = "-m.ot";
    command_is(&r, "onnx-tile ./-m.ot -o ./-m.ot-tiled.onnx --goal time");
    r.source.path = "a 'b' $c.onnx";
    command_is(&r,
               "onnx-tile 'a '\\''b'\\'' $c.onnx' -o 'a '\\''b'\\'' $c-tiled.onnx' --goal time");

    r.source.path = "m.onnx";
    r.options.target = "tlf-16m";
    r.options.l2_bytes = 65536;
    r.options.weight_bytes = 4096;
    r.options.threads = 2;
    r.options.plan = (ot_plan_options){.goal = OT_GOAL_MEMORY,
                                       .max_slowdown = 0.25,
                                       .memory_budget = 1000000,
                                       .max_tensor = 5000,
                                       .force = true};
    r.options.shapes = &x;
    r.options.n_shapes = 1;
    command_is(&r, "onnx-tile m.onnx -o m-tiled.onnx --target tlf-16m --l2 65536 --weight-memory "
                   "4096 --threads 2 --shape x=1,3,64,48 --goal memory --max-slowdown 25 "
                   "--memory-budget 1000000 --max-tensor 5000 --force");

    r.options = (ot_run_options){.target = "host", .plan = {.max_slowdown = 0.10}};
    r.options.design = &odd;
    r.options.n_design = 1;
    r.options.runtime = "openvino";
    command_is(&r, "onnx-tile m.onnx -o m-tiled.onnx --runtime openvino --design "
                   "'it'\\''s=1,3' --goal time");
    r.options = (ot_run_options){
        .target = "host", .emit_engine = true, .plan = {.max_slowdown = 0.10}};
    command_is(&r, "onnx-tile m.onnx -o m-tiled.onnx --emit engine --goal time");
    r.options.operators = OT_OPERATORS_WHOLE;
    command_is(&r, "onnx-tile m.onnx -o m-tiled.onnx --emit ort-engine --goal time");
    r.options.operators = OT_OPERATORS_PARTS;
    command_is(&r, "onnx-tile m.onnx -o m-tiled.onnx --emit ort-engine --ort-operators parts "
                   "--goal time");
}

static void design_texts(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 3, 64, 48};
    static const ot_shape_binding both[] = {{"x", 4, dims, true, NULL}, {"z", 1, dims, true, NULL}};
    ot_arena *a = ot_arena_new();
    ot_run r = {.options = {.target = "host"}};
    assert_string_equal(ot_run_design_text(&r, a), "");
    r.options.design = both;
    r.options.n_design = 2;
    assert_string_equal(ot_run_design_text(&r, a), "x=1,3,64,48 z=1");
    ot_arena_free(a);
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

static int remove_it_all(void **state)
{
    unlink(in_folder("m.ot"));
    return remove_folder(state);
}

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
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(text_that_cannot_be_written),
        cmocka_unit_test(dumps),
        cmocka_unit_test(dumps_that_cannot_be_written),
        cmocka_unit_test(log_of_passes),
        cmocka_unit_test(commands),
        cmocka_unit_test(design_texts),
#ifdef OT_ENGINE
        cmocka_unit_test(what_goes_into_operators),
        cmocka_unit_test(slow_nodes),
        cmocka_unit_test(budgets_of_sessions),
#endif
    };
    return cmocka_run_group_tests(tests, make_folder, remove_it_all);
}
