/* The command line parser: values, shapes, defaults, and one message for each wrong word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "commands/options.h"

#define WORDS_MAX 20

typedef struct parsed {
    ot_options o;
    ot_diag d;
    ot_status s;
} parsed;

/* Parse a NULL-terminated list of words after the program's name. */
static parsed parse(const char *first, ...)
{
    char *argv[WORDS_MAX] = {(char *)"onnx-tile"};
    int argc = 1;
    va_list ap;
    parsed p = {0};

    va_start(ap, first);
    for (const char *w = first; w && argc < WORDS_MAX; w = va_arg(ap, const char *))
        argv[argc++] = (char *)(uintptr_t)w;
    va_end(ap);
    p.s = ot_options_parse(argc, argv, &p.d, &p.o);
    return p;
}

static void defaults(void **state)
{
    (void)state;
    parsed p = parse("m.onnx", "-o", "t.onnx", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_OPTIMISE);
    assert_string_equal(p.o.model, "m.onnx");
    assert_string_equal(p.o.output, "t.onnx");
    assert_string_equal(p.o.target, "host");
    assert_int_equal(p.o.plan.goal, OT_GOAL_TIME);
    assert_true(p.o.plan.max_slowdown > 0.0999 && p.o.plan.max_slowdown < 0.1001);
    assert_true(p.o.plan.tie_break);
    assert_false(p.o.plan.force);
    assert_int_equal(p.o.plan.force_form, OT_FORM_NONE);
    assert_int_equal(p.o.l2_bytes, 0);
    assert_int_equal(p.o.n_shapes, 0);
    ot_options_free(&p.o);
}

static void every_option(void **state)
{
    (void)state;
    parsed p = parse("inspect", "--l2=1.5M", "--threads", "3", "--goal=memory", "--memory-budget",
                     "2G", "--max-slowdown=25%", "--force", "--no-tie-break", "--tie-glpk",
                     "--form", "prescan", "--", "-odd.onnx", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_INSPECT);
    assert_int_equal(p.o.l2_bytes, 1572864);
    assert_int_equal(p.o.threads, 3);
    assert_int_equal(p.o.plan.goal, OT_GOAL_MEMORY);
    assert_int_equal(p.o.plan.memory_budget, 2147483648LL);
    assert_true(p.o.plan.max_slowdown == 0.25);
    assert_true(p.o.plan.force);
    assert_false(p.o.plan.tie_break);
    assert_true(p.o.plan.tie_glpk);
    assert_int_equal(p.o.plan.force_form, OT_FORM_PRESCAN);
    assert_string_equal(p.o.model, "-odd.onnx");
    ot_options_free(&p.o);
}

static void shapes_split_at_the_last_equals_sign(void **state)
{
    (void)state;
    parsed p = parse("m", "-oX", "--shape", "a:0/b.c=d=1,3,224,225", "--shape=y=7", NULL);
    static const int64_t want[] = {1, 3, 224, 225};
    assert_int_equal(p.s, OT_OK);
    assert_string_equal(p.o.output, "X");
    assert_int_equal(p.o.n_shapes, 2);
    assert_string_equal(p.o.shapes[0].input, "a:0/b.c=d");
    assert_int_equal(p.o.shapes[0].rank, 4);
    assert_memory_equal(p.o.shapes[0].dims, want, sizeof want);
    assert_string_equal(p.o.shapes[1].input, "y");
    assert_int_equal(p.o.shapes[1].rank, 1);
    assert_int_equal(p.o.shapes[1].dims[0], 7);
    ot_options_free(&p.o);
}

static void reports_are_many(void **state)
{
    (void)state;
    parsed p = parse("m", "-oX", "--report", "a.html", "--report=b.xml", "--report=c.json",
                     "--report=d.csv", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.n_reports, 4);
    assert_string_equal(p.o.reports[0], "a.html");
    assert_string_equal(p.o.reports[3], "d.csv");
    ot_options_free(&p.o);
    p = parse("m", "-oX", "--report=a.pdf", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "must end in .html, .xml, .json or .csv"));
    ot_options_free(&p.o);
    p = parse("m", "-oX", "--report=a.xml", "--report=a.xml", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "is given twice"));
    ot_options_free(&p.o);
    p = parse("m", "-oa.xml", "--report=a.xml", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "both want 'a.xml'"));
    ot_options_free(&p.o);
}

static void compare_takes_two_reports(void **state)
{
    (void)state;
    parsed p = parse("compare", "a.xml", "b.xml", "-o", "d.html", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_string_equal(p.o.model, "a.xml");
    assert_string_equal(p.o.second, "b.xml");
    ot_options_free(&p.o);
    p = parse("compare", "a.xml", "-o", "d.html", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "needs two reports"));
    ot_options_free(&p.o);
    p = parse("compare", "a.xml", "b.xml", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "no output given"));
    ot_options_free(&p.o);
    p = parse("compare", "a.xml", "b.xml", "c.xml", "-o", "d.html", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "two reports at a time"));
    ot_options_free(&p.o);
}

static void too_many_dimensions(void **state)
{
    (void)state;
    parsed p = parse("m", "-o", "x", "--shape", "x=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "too many"));
    ot_options_free(&p.o);
}

/* A word that starts with a command's name, or comes later, is a file. */
static void commands_are_first_words_only(void **state)
{
    (void)state;
    parsed p = parse("inspected", "-o", "x", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_string_equal(p.o.model, "inspected");
    ot_options_free(&p.o);
    p = parse("-o", "x", "inspect", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_OPTIMISE);
    assert_string_equal(p.o.model, "inspect");
    ot_options_free(&p.o);
}

static void hints_need_a_near_name(void **state)
{
    (void)state;
    static const struct {
        const char *word, *hint;
    } cases[] = {{"--threds", "'--threads'"},
                 {"--gaol=time", "'--goal'"},
                 {"--memory", "'--memory-budget'"},
                 {"--xyzzy", "--help"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        parsed p = parse("m", cases[k].word, NULL);
        assert_int_equal(p.s, OT_E_USAGE);
        if (!strstr(p.d.message, cases[k].hint)) fail_msg("%s: %s", cases[k].word, p.d.message);
        ot_options_free(&p.o);
    }
}

/* Two edits are near, one where the word is short; of two the nearer; what begins with the word
 * is as near as one edit. */
static void nearest_names(void **state)
{
    (void)state;
    static const struct {
        const char *word, *names, *want;
    } cases[] = {{"memroy", "time|memory", "memory"},
                 {"meomyr", "time|memory", NULL},
                 {"cpu", "gpu|opencl", "gpu"},
                 {"cup", "gpu|opencl", NULL},
                 {"asc", "host|ascend-a2", "ascend-a2"},
                 {"a", "ab|b", NULL},
                 {"", "a", NULL},
                 {"abcd", "abxy|abcx", "abcx"},
                 {"loop", "loop-peeled|loop", "loop"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_nearest near = ot_nearest_to(cases[k].word, strlen(cases[k].word));
        ot_nearest_try_list(&near, cases[k].names, "|");
        if (!cases[k].want) {
            if (near.best)
                fail_msg("%s: near %.*s", cases[k].word, (int)near.best_length, near.best);
            continue;
        }
        if (!near.best || near.best_length != strlen(cases[k].want) ||
            strncmp(near.best, cases[k].want, near.best_length) != 0)
            fail_msg("%s: not near %s", cases[k].word, cases[k].want);
    }
}

static void letters_reach_the_debug_mask(void **state)
{
    (void)state;
    parsed p = parse("m", "-o", "x", "-dRT", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_true(ot_dbg['R'] && ot_dbg['T']);
    assert_false(ot_dbg['S']);
    ot_dbg['R'] = ot_dbg['T'] = false;
    ot_options_free(&p.o);
}

static void plan_memory_options(void **state)
{
    (void)state;
    parsed p = parse("plan-memory", "k.tk", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_PLAN_MEMORY);
    assert_string_equal(p.o.model, "k.tk");
    assert_null(p.o.target); /* the kernel's own */
    assert_null(p.o.output);
    assert_null(p.o.svg);
    assert_int_equal(p.o.memory.mode, OT_MEM_AUTO);
    assert_int_equal(p.o.memory.capacity, 0);
    assert_true(p.o.memory.time_limit == 0);
    assert_false(p.o.memory.workspace_reuse || p.o.memory.lifetimes.no_in_place ||
                 p.o.memory.lifetimes.restrict_in_place);
    ot_options_free(&p.o);
    p = parse("plan-memory", "-", "-o", "-", "--capacity", "1.5K", "--time-limit=2.5", "--mode",
              "reuse", "--svg", "m.svg", "--target=h200", "--threads", "2", "--restrict-inplace",
              NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.memory.capacity, 1536);
    assert_true(p.o.memory.time_limit == 2.5);
    assert_int_equal(p.o.memory.mode, OT_MEM_REUSE);
    assert_string_equal(p.o.svg, "m.svg");
    assert_string_equal(p.o.target, "h200");
    assert_int_equal(p.o.threads, 2);
    assert_true(p.o.memory.lifetimes.restrict_in_place);
    ot_options_free(&p.o);
    p = parse("plan-memory", "k.tk", "--no-inplace", "--workspace-reuse", "--mode=search", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_true(p.o.memory.lifetimes.no_in_place && p.o.memory.workspace_reuse);
    assert_int_equal(p.o.memory.mode, OT_MEM_SEARCH);
    ot_options_free(&p.o);
}

/* Options are refused by the commands that have no use for them, with the command that has. */
static void options_belong_to_commands(void **state)
{
    (void)state;
    static const char *const memory[] = {
        "--capacity=1K", "--mode=search", "--time-limit=1",     "--svg=x",
        "--function=f",  "--no-inplace",  "--restrict-inplace", "--workspace-reuse"};
    static const char *const models[] = {
        "--l2=1K",          "--shape=x=1",    "--goal=time",  "--memory-budget=1K",
        "--max-slowdown=1", "--force",        "--dump-dir=x", "--verify",
        "--emit=onnx",      "--no-tie-break", "--form=scan"};
    for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) {
        for (int inspect = 0; inspect < 2; inspect++) {
            parsed p = inspect ? parse("inspect", "m.onnx", memory[k], NULL)
                               : parse("m.onnx", "-o", "x", memory[k], NULL);
            assert_int_equal(p.s, OT_E_USAGE);
            if (!strstr(p.d.message, "is for 'onnx-tile plan-memory' only"))
                fail_msg("%s: %s", memory[k], p.d.message);
            ot_options_free(&p.o);
        }
    }
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        parsed p = parse("plan-memory", "k.tk", models[k], NULL);
        assert_int_equal(p.s, OT_E_USAGE);
        if (!strstr(p.d.message, "is not for 'plan-memory'"))
            fail_msg("%s: %s", models[k], p.d.message);
        ot_options_free(&p.o);
    }
}

static void run_options(void **state)
{
    (void)state;
    parsed p = parse("run", "m.onnx", "--input", "a=b=dir/f.npy", "--input=x:0=g.pb", "--seed", "7",
                     "--repeat=3", "--output-dir", "d", "--reference", "--as-is", "--shape",
                     "y=2,3", "--threads=2", "--json", "-q", NULL);
#ifdef OT_ENGINE
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_RUN);
    assert_string_equal(p.o.model, "m.onnx");
    assert_int_equal(p.o.n_inputs, 2);
    assert_string_equal(p.o.inputs[0].name, "a=b");
    assert_string_equal(p.o.inputs[0].file, "dir/f.npy");
    assert_string_equal(p.o.inputs[1].name, "x:0");
    assert_string_equal(p.o.inputs[1].file, "g.pb");
    assert_int_equal(p.o.seed, 7);
    assert_int_equal(p.o.repeat, 3);
    assert_string_equal(p.o.output_dir, "d");
    assert_true(p.o.reference && p.o.as_is && p.o.json && p.o.quiet);
    assert_int_equal(p.o.n_shapes, 1);
    assert_int_equal(p.o.threads, 2);
    ot_options_free(&p.o);
    p = parse("run", "m.onnx", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.repeat, 0); /* its own choice */
    assert_int_equal(p.o.n_inputs, 0);
    assert_false(p.o.reference);
    ot_options_free(&p.o);
    p = parse("run", "m.onnx", "--goal=memory", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.plan.goal, OT_GOAL_MEMORY);
    ot_options_free(&p.o);
    static const char *const refused[] = {"--l2=1M",       "--output=x",   "--target=h200",
                                          "--capacity=1K", "--dump-dir=d", "-dT"};
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        p = parse("run", "m.onnx", refused[k], NULL);
        assert_int_equal(p.s, OT_E_USAGE);
        ot_options_free(&p.o);
    }
#else
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "needs the native engine"));
    ot_options_free(&p.o);
#endif
    p = parse("inspect", "m.onnx", "--seed=1", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "is for 'onnx-tile run' and 'bench' only"));
    ot_options_free(&p.o);
    p = parse("inspect", "m.onnx", "--output-dir=d", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "is for 'onnx-tile run' only"));
    ot_options_free(&p.o);
}

static void bench_and_calibrate_options(void **state)
{
    (void)state;
    parsed p = parse("bench", "a.onnx", "b.onnx", "--repeat=9", "--trace", "t.json", "--l2=1M",
                     "--goal=memory", "--input=x=f.npy", "--json", NULL);
#ifdef OT_ENGINE
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_BENCH);
    assert_string_equal(p.o.model, "a.onnx");
    assert_string_equal(p.o.second, "b.onnx");
    assert_string_equal(p.o.trace, "t.json");
    assert_int_equal(p.o.repeat, 9);
    assert_int_equal(p.o.l2_bytes, 1 << 20);
    assert_int_equal(p.o.plan.goal, OT_GOAL_MEMORY);
    assert_true(p.o.emit_engine && p.o.json);
    ot_options_free(&p.o);
    p = parse("bench", "a.onnx", "--emit=onnx", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_null(p.o.second);
    assert_false(p.o.emit_engine);
    ot_options_free(&p.o);
    p = parse("calibrate", "--threads=3", "-oT.xml", "-q", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_CALIBRATE);
    assert_int_equal(p.o.threads, 3);
    assert_string_equal(p.o.output, "T.xml");
    ot_options_free(&p.o);
    p = parse("calibrate", "--device=vulkan:1", "-oT.xml", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_string_equal(p.o.device, "vulkan:1");
    ot_options_free(&p.o);
    p = parse("run", "m.onnx", "--device-check", "--device=opencl", NULL);
    assert_true(p.s == OT_OK && p.o.device_check);
    ot_options_free(&p.o);
    p = parse("bench", "m.onnx", "--device-check", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    assert_non_null(strstr(p.d.message, "--device-check looks at a device"));
    ot_options_free(&p.o);
    p = parse("calibrate", "--device=vulkan:1", NULL); /* the cache is this machine's */
    assert_int_equal(p.s, OT_E_USAGE);
    ot_options_free(&p.o);
    p = parse("calibrate", "--goal=time", NULL);
#endif
    assert_int_equal(p.s, OT_E_USAGE);
    ot_options_free(&p.o);
}

static void verify_takes_all_or_nothing(void **state)
{
    (void)state;
    parsed p = parse("m.onnx", "-ox", NULL);
    assert_int_equal(p.o.verify, OT_VERIFY_NONE);
    ot_options_free(&p.o);
#ifdef OT_ENGINE
    p = parse("--verify", "m.onnx", "-ox", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.verify, OT_VERIFY_OUTPUTS);
    assert_string_equal(p.o.model, "m.onnx"); /* not the option's value */
    ot_options_free(&p.o);
    p = parse("m.onnx", "-ox", "--verify=all", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.verify, OT_VERIFY_ALL);
    ot_options_free(&p.o);
#endif
    p = parse("m.onnx", "-ox", "--verify=none", NULL);
    assert_int_equal(p.s, OT_E_USAGE);
    ot_options_free(&p.o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_option),
        cmocka_unit_test(shapes_split_at_the_last_equals_sign),
        cmocka_unit_test(too_many_dimensions),
        cmocka_unit_test(reports_are_many),
        cmocka_unit_test(compare_takes_two_reports),
        cmocka_unit_test(commands_are_first_words_only),
        cmocka_unit_test(hints_need_a_near_name),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(letters_reach_the_debug_mask),
        cmocka_unit_test(plan_memory_options),
        cmocka_unit_test(options_belong_to_commands),
        cmocka_unit_test(run_options),
        cmocka_unit_test(bench_and_calibrate_options),
        cmocka_unit_test(verify_takes_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
