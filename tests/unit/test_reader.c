/* What the lexers share: places of tokens, comments, strings, exponents, the first failure.
 */
#include "base/reader.h"

#include <setjmp.h>
#include <cmocka.h>

static ot_status fail_at(ot_reader *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = ot_reader_vfail(r, r->tok_line, r->tok_col, fmt, args);
    va_end(args);
    return s;
}

static void tokens_have_places(void **state)
{
    (void)state;
    static const char text[] = "  ab # no token\n\n\tcd";
    ot_reader r = ot_reader_of("f", text, sizeof text - 1, NULL);
    ot_reader_skip(&r, "#");
    assert_true(r.tok_line == 1 && r.tok_col == 3 && r.at == 2);
    ot_reader_while(&r, ot_is_digit);
    assert_int_equal(r.next, 2);
    r.next += 2;
    ot_reader_skip(&r, "#");
    assert_true(r.tok_line == 3 && r.tok_col == 2 && ot_peek(&r, 0) == 'c');
    assert_true(ot_peek(&r, 1) == 'd' && ot_peek(&r, 2) == -1 && ot_peek(&r, 100) == -1);
}

static void strings_end_on_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool escapes, closed;
        size_t next;
    } cases[] = {
        {"\"ab\" c", false, true, 4}, {"\"\"", true, true, 2},     {"\"a\\\"b\"", true, true, 6},
        {"\"a\\\"b", false, true, 4}, {"\"a\\\"", true, false, 4}, {"\"a\n\"", true, false, 2},
        {"\"a", false, false, 2},     {"\"a\\", true, false, 3},   {"\"\\\\\"\"", true, true, 4},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_reader r = ot_reader_of(NULL, cases[k].text, strlen(cases[k].text), NULL);
        assert_int_equal(ot_reader_string(&r, cases[k].escapes), cases[k].closed);
        assert_int_equal(r.next, cases[k].next);
    }
}

static void exponents_have_digits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t next;
    } cases[] = {{"e5", 2}, {"E-12x", 4}, {"e+7", 3}, {"e", 0},
                 {"e+", 0}, {"ex", 0},    {"5", 0},   {"", 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_reader r = ot_reader_of(NULL, cases[k].text, strlen(cases[k].text), NULL);
        assert_int_equal(ot_reader_exponent(&r), cases[k].next > 0);
        assert_int_equal(r.next, cases[k].next);
    }
    assert_true(ot_hex_digit('9') == 9 && ot_hex_digit('f') == 15 && ot_hex_digit('A') == 10);
    assert_true(ot_hex_digit('g') == -1 && ot_hex_digit(-1) == -1);
}

static void the_first_failure_stays(void **state)
{
    (void)state;
    ot_diag named = {0}, bare = {0};
    ot_reader r = ot_reader_of("a.tk", "\n x", 3, &named), q = ot_reader_of(NULL, "x", 1, &bare);
    ot_reader_skip(&r, "#");
    ot_reader_skip(&q, "#");
    assert_int_equal(fail_at(&r, "no %d", 1), OT_E_INPUT);
    assert_int_equal(fail_at(&r, "no %d", 2), OT_E_INPUT);
    assert_string_equal(named.message, "a.tk:2:2: no 1");
    assert_int_equal(fail_at(&q, "no"), OT_E_INPUT);
    assert_string_equal(bare.message, "1:1: no");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_have_places), cmocka_unit_test(strings_end_on_their_line),
        cmocka_unit_test(exponents_have_digits), cmocka_unit_test(the_first_failure_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
