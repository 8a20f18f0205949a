/* What stands beside the list of passes: files of text, dumps, the command that a report names. */
#include "pipeline_rig.h"

#include <dirent.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(text_that_cannot_be_written),
        cmocka_unit_test(dumps),
        cmocka_unit_test(dumps_that_cannot_be_written),
        cmocka_unit_test(log_of_passes),
        cmocka_unit_test(commands),
        cmocka_unit_test(design_texts),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_it_all);
}
