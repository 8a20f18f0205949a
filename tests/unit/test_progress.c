/* The bar: what it writes to a stream in memory. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Everything that `write` lets the bar write. */
static char *written(void (*write)(ot_progress *))
{
    char *text = NULL;
    size_t n = 0;
    ot_progress p = {.out = open_memstream(&text, &n)};
    assert_non_null(p.out);
    write(&p);
    fclose(p.out);
    return text;
}

static void half(ot_progress *p) { ot_progress_at(p, "bench", 0.5); }

static void test_bar(void **state)
{
    (void)state;
    char *text = written(half);
    assert_non_null(strstr(text, "onnx-tile: bench "));
    assert_non_null(strstr(text, "[##########----------]  50 %"));
    assert_null(strstr(text, "left")); /* too early to tell */
    free(text);
}

static void many(ot_progress *p)
{
    for (int k = 0; k < 100000; k++) ot_progress_at(p, "bench", k / 1e5);
}

static void test_few_drawings(void **state)
{
    (void)state;
    char *text = written(many);
    size_t drawings = 0;
    for (const char *at = text; (at = strstr(at, "\r")); at++) drawings++;
    assert_in_range(drawings, 1, 1000);
    free(text);
}

static void two_stages(ot_progress *p)
{
    ot_progress_at(p, "warm-up", 2.0); /* more than all, and less than nothing */
    ot_progress_at(p, "bench", -1.0);
    ot_progress_end(p);
    ot_progress_end(p);
}

static void test_stages(void **state)
{
    (void)state;
    char *text = written(two_stages);
    assert_non_null(strstr(text, "warm-up     [####################] 100 %"));
    assert_non_null(strstr(text, "bench       [--------------------]   0 %"));
    assert_string_equal(text + strlen(text) - 4, "\r\033[K"); /* wiped, once */
    assert_memory_not_equal(text + strlen(text) - 8, "\r\033[K", 4);
    free(text);
}

static void test_silent(void **state)
{
    (void)state;
    ot_progress p = {0};
    ot_progress_at(NULL, "bench", 0.5);
    ot_progress_end(NULL);
    ot_progress_at(&p, "bench", 0.5);
    ot_progress_end(&p);
    assert_null(p.stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bar), cmocka_unit_test(test_few_drawings),
        cmocka_unit_test(test_stages), cmocka_unit_test(test_silent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
