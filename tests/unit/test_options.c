/* The command line parser: values, shapes, defaults, and one message for each wrong word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "options.h"

#define WORDS_MAX 16

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
                     "2G", "--max-slowdown=25%", "--force", "--no-tie-break", "--form",
                     "loop-window", "--", "-odd.onnx", NULL);
    assert_int_equal(p.s, OT_OK);
    assert_int_equal(p.o.command, OT_CMD_INSPECT);
    assert_int_equal(p.o.l2_bytes, 1572864);
    assert_int_equal(p.o.threads, 3);
    assert_int_equal(p.o.plan.goal, OT_GOAL_MEMORY);
    assert_int_equal(p.o.plan.memory_budget, 2147483648LL);
    assert_true(p.o.plan.max_slowdown == 0.25);
    assert_true(p.o.plan.force);
    assert_false(p.o.plan.tie_break);
    assert_int_equal(p.o.plan.force_form, OT_FORM_WINDOW);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_option),
        cmocka_unit_test(shapes_split_at_the_last_equals_sign),
        cmocka_unit_test(too_many_dimensions),
        cmocka_unit_test(commands_are_first_words_only),
        cmocka_unit_test(hints_need_a_near_name),
        cmocka_unit_test(letters_reach_the_debug_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
