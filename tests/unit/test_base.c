/* The base layer: arenas, diagnostics, checked arithmetic, sizes as people write them, name tables.
 *
 * Oracles are naive: 128-bit arithmetic for the checked operations, a linear list for the table.
 */
#include "base/base.h"
#include "base/wrap.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---- arena ---- */

static void test_arena_memory_is_zero_aligned_and_apart(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    assert_non_null(a);
    enum { N = 3000 };
    static unsigned char *at[N];
    static size_t size[N];
    uint32_t seed = 1;
    for (int k = 0; k < N; k++) {
        seed = seed * 1664525u + 1013904223u;
        size[k] = k % 500 == 0 ? 3000000 / (size_t)(k + 1) : seed >> 24;
        at[k] = ot_alloc(a, size[k]);
        assert_non_null(at[k]);
        assert_int_equal((uintptr_t)at[k] % 16, 0);
        for (size_t j = 0; j < size[k]; j++) assert_int_equal(at[k][j], 0);
        memset(at[k], k & 0xff, size[k]);
    }
    for (int k = 0; k < N; k++) /* nobody wrote into a neighbour */
        for (size_t j = 0; j < size[k]; j++) assert_int_equal(at[k][j], k & 0xff);
    assert_true(ot_arena_bytes(a) > 3000000);
    ot_arena_free(a);
    ot_arena_free(NULL);
}

static void test_arena_refuses_overflow(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    assert_null(ot_alloc_n(a, SIZE_MAX / 4, 8));
    assert_null(ot_alloc_n(a, SIZE_MAX, SIZE_MAX));
    assert_null(ot_alloc(a, SIZE_MAX));
    assert_null(ot_alloc(a, SIZE_MAX - 15));
    assert_non_null(ot_alloc(a, 0));
    assert_non_null(ot_alloc_n(a, 0, SIZE_MAX));
    ot_arena_free(a);
}

/* Pages that the process holds; -1: the system does not tell. */
static long resident(void)
{
    long all, held = -1;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return -1;
    if (fscanf(f, "%ld %ld", &all, &held) != 2) held = -1;
    fclose(f);
    return held;
}

/* What nobody writes to takes no memory, neither in a large table nor behind what it holds. */
static void test_arena_touches_no_large_table(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    const long before = resident();
    if (before < 0) skip();
    char *table = ot_alloc(a, 100 << 20);
    void *list = NULL;
    size_t cap = 0;
    assert_non_null(table);
    assert_true(ot_grow(a, &list, &cap, 100 << 20, 1));
    assert_true(resident() - before < 4096);
    assert_int_equal(table[50 << 20], 0);
    assert_int_equal(((char *)list)[cap - 1], 0);
    ot_arena_free(a);
}

static long live_bytes;
static int allow; /* allocations before the hook fails */

static void *counting_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && allow-- <= 0) return NULL;
    live_bytes += (long)new_size - (long)(ptr ? old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void test_arena_hook_fails_cleanly_and_sizes_match(void **state)
{
    (void)state;
    live_bytes = 0;
    allow = 0;
    ot_set_alloc_hook(counting_hook);
    assert_null(ot_arena_new());
    allow = 3;
    ot_arena *a = ot_arena_new();
    assert_non_null(a);
    void *first = ot_alloc(a, 100);
    assert_non_null(first);
    assert_non_null(ot_alloc(a, 1 << 20));
    assert_null(ot_alloc(a, 1 << 20)); /* the fourth block */
    assert_non_null(ot_alloc(a, 100)); /* still room in the first */
    assert_int_equal((size_t)live_bytes, ot_arena_bytes(a));
    ot_arena_free(a);
    assert_int_equal(live_bytes, 0);
    ot_set_alloc_hook(NULL);
}

static void test_strings_and_growing_lists(void **state)
{
    (void)state;
    ot_arena *a = ot_arena_new();
    assert_string_equal(ot_strdup(a, "abc"), "abc");
    assert_string_equal(ot_strndup(a, "abcdef", 2), "ab");
    assert_string_equal(ot_format(a, "%s/%d", "x", 42), "x/42");
    char *copy = ot_memdup(a, "q\0r", 3);
    assert_memory_equal(copy, "q\0r", 3);
    uint32_t *list = NULL, n = 0;
    size_t cap = 0;
    for (uint32_t k = 0; k < 100000; k++) assert_true(OT_PUSH(a, list, n, cap, k * 7));
    assert_int_equal(n, 100000);
    for (uint32_t k = 0; k < n; k++) assert_int_equal(list[k], k * 7);
    void *none = NULL;
    size_t zero = 0;
    assert_false(ot_grow(a, &none, &zero, SIZE_MAX, 8));
    ot_arena_free(a);
}

/* ---- diagnostics ---- */

static void test_diag_keeps_the_first_failure(void **state)
{
    (void)state;
    ot_diag d = {0};
    assert_int_equal(ot_fail(&d, OT_E_INPUT, "node '%s': %d", "x", 3), OT_E_INPUT);
    assert_int_equal(ot_fail(&d, OT_E_SYSTEM, "later"), OT_E_SYSTEM);
    assert_int_equal(d.status, OT_E_INPUT);
    assert_string_equal(d.message, "node 'x': 3");
    assert_int_equal(ot_fail(NULL, OT_E_USAGE, "nobody listens"), OT_E_USAGE);
    assert_int_equal(ot_fail_nomem(NULL), OT_E_NOMEM);
}

static void expect_clean(const char *in, const char *out)
{
    ot_diag d = {0};
    assert_int_equal(ot_fail(&d, OT_E_INPUT, "%s", in), OT_E_INPUT);
    assert_string_equal(d.message, out);
}

static void test_diag_is_safe_on_a_terminal(void **state)
{
    (void)state;
    expect_clean("a\nb\tc\x1b[31m", "a?b?c?[31m");
    expect_clean("\x7f", "?");
    expect_clean("h\xc3\xa4user", "h\xc3\xa4user");       /* U+00E4 */
    expect_clean("\xe5\xb1\x82", "\xe5\xb1\x82");         /* U+5C42 */
    expect_clean("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"); /* U+1F600 */
    expect_clean("\xc2\x9b", "??");                       /* C1: CSI */
    expect_clean("\xff\xfe", "??");
    expect_clean("\xc0\xaf", "??");        /* overlong '/' */
    expect_clean("\xed\xa0\x80", "???");   /* surrogate */
    expect_clean("\xe2\x80\xae.", "???."); /* right-to-left override */
    expect_clean("cut \xe5\xb1", "cut ??");
}

static void test_diag_cuts_long_messages(void **state)
{
    (void)state;
    ot_diag d = {0};
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(ot_fail(&d, OT_E_INPUT, "%s", text), OT_E_INPUT);
    assert_int_equal(strlen(d.message), OT_DIAG_MAX - 1);
    assert_string_equal(d.message + OT_DIAG_MAX - 4, "...");
}

/* ---- checked arithmetic ---- */

static const int64_t edges[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                7,
                                1000,
                                INT32_MAX,
                                INT32_MIN,
                                (int64_t)1 << 31,
                                (int64_t)1 << 32,
                                3037000499,
                                3037000500,
                                -3037000500,
                                INT64_MAX - 1,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MIN + 1};
enum { N_EDGES = sizeof edges / sizeof *edges };

static void test_checked_against_128_bits(void **state)
{
    (void)state;
    for (int i = 0; i < N_EDGES; i++) {
        for (int j = 0; j < N_EDGES; j++) {
            __extension__ __int128 sum = (__int128)edges[i] + edges[j],
                                   product = (__int128)edges[i] * edges[j];
            int64_t out;
            bool fits = sum >= INT64_MIN && sum <= INT64_MAX;
            assert_int_equal(ot_add_i64(edges[i], edges[j], &out), fits);
            if (fits) assert_true(out == (int64_t)sum);
            fits = product >= INT64_MIN && product <= INT64_MAX;
            assert_int_equal(ot_mul_i64(edges[i], edges[j], &out), fits);
            if (fits) assert_true(out == (int64_t)product);
        }
    }
}

static void test_product(void **state)
{
    (void)state;
    int64_t p;
    assert_true(ot_product(NULL, 0, &p) && p == 1);
    assert_true(ot_product((int64_t[]){2, 3, 4}, 3, &p) && p == 24);
    assert_true(ot_product((int64_t[]){INT64_MAX, 1}, 2, &p) && p == INT64_MAX);
    assert_false(ot_product((int64_t[]){INT64_MAX, 2}, 2, &p));
    assert_true(ot_product((int64_t[]){INT64_MAX, 2, 0}, 3, &p) && p == 0);
    assert_false(ot_product((int64_t[]){0, -1}, 2, &p));
    assert_false(ot_product((int64_t[]){-2, -3}, 2, &p));
}

static void test_divisions_round_the_right_way(void **state)
{
    (void)state;
    for (int64_t a = -30; a <= 30; a++) {
        for (int64_t b = 1; b <= 9; b++) {
            int64_t f = ot_floor_div(a, b), c = ot_ceil_div(a, b);
            assert_true(f * b <= a && a < (f + 1) * b);
            assert_true((c - 1) * b < a && a <= c * b);
        }
    }
}

static void test_parse_size(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes; /* -1: malformed */
    } cases[] = {{"100", 100},
                 {"0", 0},
                 {"512K", 524288},
                 {"362KB", 370688},
                 {"16M", 16777216},
                 {"1.5G", 1610612736},
                 {"2k", 2048},
                 {"4KiB", 4096},
                 {"1T", 1099511627776},
                 {"100B", 100},
                 {"0.5K", 512},
                 {"9223372036854775807", INT64_MAX},
                 {"1.999999999K", 2047},
                 {"", -1},
                 {"K", -1},
                 {"-1", -1},
                 {"+1", -1},
                 {" 1", -1},
                 {"1 K", -1},
                 {"1.5", -1},
                 {"1.K", -1},
                 {".5K", -1},
                 {"1X", -1},
                 {"1KK", -1},
                 {"1Ki", -1},
                 {"0x10", -1},
                 {"9223372036854775808", -1},
                 {"9223372036854775807K", -1},
                 {"8388608T", -1},
                 {"1e3", -1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int64_t got = -1;
        bool ok = ot_parse_size(cases[k].text, &got);
        if (ok != (cases[k].bytes >= 0) || (ok && got != cases[k].bytes))
            fail_msg("ot_parse_size(\"%s\") -> %d, %lld", cases[k].text, ok, (long long)got);
    }
}

static void test_sizes_and_times_as_text(void **state)
{
    (void)state;
    char buf[32];
    assert_string_equal(ot_format_bytes(17, buf, sizeof buf), "17 B");
    assert_string_equal(ot_format_bytes(1.5 * 1024 * 1024, buf, sizeof buf), "1.5 MiB");
    assert_string_equal(ot_format_bytes(362 * 1024, buf, sizeof buf), "362 KiB");
    assert_string_equal(ot_format_bytes(0, buf, sizeof buf), "0 B");
    assert_string_equal(ot_format_bytes(-2048, buf, sizeof buf), "-2.0 KiB");
    assert_string_equal(ot_format_exact_bytes(1023, buf, sizeof buf), "1023 B");
    assert_string_equal(ot_format_exact_bytes(102498304, buf, sizeof buf),
                        "97.8 MiB (102498304 bytes)");
    assert_string_equal(ot_format_limit(10485760, buf, sizeof buf), "10.0 MiB");
    assert_string_equal(ot_format_limit(700000, buf, sizeof buf), "684 KiB (700000 bytes)");
    assert_string_equal(ot_format_limit(1000, buf, sizeof buf), "1000 B");
    char excess[OT_EXCESS_SIZE];
    assert_string_equal(ot_format_excess(10485761, 10485760, excess, sizeof excess),
                        "required 10.0 MiB (10485761 bytes), available 10.0 MiB, excess 1 B");
    ot_format_excess(INT64_MAX, 1023, excess, sizeof excess); /* the longest fits */
    assert_string_equal(excess, "required 8192 PiB (9223372036854775807 bytes), "
                                "available 1023 B, excess 8192 PiB");
    assert_string_equal(ot_format_seconds(0.00123, buf, sizeof buf), "1.23 ms");
    assert_string_equal(ot_format_seconds(45e-6, buf, sizeof buf), "45.0 us");
    assert_string_equal(ot_format_seconds(2.1, buf, sizeof buf), "2.10 s");
    assert_string_equal(ot_format_seconds(0, buf, sizeof buf), "0.00 s");
    assert_string_equal(ot_format_seconds(250, buf, sizeof buf), "250 s");
}

/* ---- names -> ids ---- */

static void test_map_against_a_list(void **state)
{
    (void)state;
    enum { N = 600 };
    static char keys[N][24];
    static uint32_t want[N];
    ot_arena *a = ot_arena_new();
    ot_map *m = ot_map_new(a);
    assert_non_null(m);
    assert_int_equal(ot_map_get(m, "x"), OT_NONE);
    uint32_t seed = 7;
    for (int k = 0; k < N; k++) {
        snprintf(keys[k], sizeof keys[k], "%.*s%d", k % 12, "aaaaaaaaaaaa", k);
        want[k] = OT_NONE;
    }
    for (int step = 0; step < 20000; step++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t k = (seed >> 8) % N;
        if (seed >> 31) {
            assert_true(ot_map_put(m, keys[k], seed & 0xffff));
            want[k] = seed & 0xffff;
        }
        assert_int_equal(ot_map_get(m, keys[k]), want[k]);
    }
    for (int k = 0; k < N; k++) assert_int_equal(ot_map_get(m, keys[k]), want[k]);
    assert_true(ot_map_put(m, "", 5)); /* the empty name is a key like any other */
    assert_int_equal(ot_map_get(m, ""), 5);
    assert_true(ot_map_has_initial(m, 0) && ot_map_has_initial(m, keys[0][0]));
    assert_false(ot_map_has_initial(m, '~'));
    assert_true(ot_map_put(m, "~1", 6) && ot_map_has_initial(m, '~'));
    const ot_map *copy = ot_map_copy(a, m);
    assert_true(copy && ot_map_has_initial(copy, '~') && ot_map_get(copy, "~1") == 6);
    ot_arena_free(a);
}

/* A map and its copies do not see what is put into the others, new keys and old, also where one of
 * them grows. */
static void test_map_copies(void **state)
{
    (void)state;
    enum { N = 40, MAPS = 4 };
    static char keys[N][8];
    for (uint32_t which = 0; which < MAPS; which++) {
        for (uint32_t more = 1; more <= N; more += 13) {
            bool fresh;
            ot_arena *a = ot_arena_new();
            ot_map *m[MAPS] = {ot_map_new(a)};
            for (uint32_t k = 0; k < N; k++) snprintf(keys[k], sizeof keys[k], "k%u", k);
            for (uint32_t k = 0; k < 10; k++) assert_true(ot_map_put(m[0], keys[k], k));
            m[1] = ot_map_copy(a, m[0]);
            m[2] = ot_map_copy(a, m[1]);
            m[3] = ot_map_copy(a, m[0]);
            for (uint32_t k = 0; k < more; k++)
                assert_true(more % 2 ? ot_map_put(m[which], keys[k], 100 + k)
                                     : ot_map_add(m[which], keys[k], 100 + k, &fresh));
            for (uint32_t j = 0; j < MAPS; j++)
                for (uint32_t k = 0; k < N; k++) {
                    const uint32_t put = j != which || k >= more ? OT_NONE : 100 + k;
                    const uint32_t old = k < 10 ? k : OT_NONE;
                    const bool changes = put != OT_NONE && (more % 2 || k >= 10);
                    assert_int_equal(ot_map_get(m[j], keys[k]), changes ? put : old);
                }
            ot_arena_free(a);
        }
    }
}

/* What is there keeps its value; what is new comes in, also where the table has to grow. */
static void test_map_add(void **state)
{
    (void)state;
    enum { N = 300 };
    static char keys[N][8];
    bool fresh;
    ot_arena *a = ot_arena_new();
    ot_map *m = ot_map_new(a);
    assert_non_null(m);
    assert_int_equal(ot_map_get(m, "k0"), OT_NONE);
    for (uint32_t k = 0; k < N; k++) {
        snprintf(keys[k], sizeof keys[k], "k%u", k);
        assert_true(ot_map_add(m, keys[k], k, &fresh) && fresh);
        assert_true(ot_map_add(m, keys[k / 2], 1000, &fresh) && !fresh);
    }
    for (uint32_t k = 0; k < N; k++) assert_int_equal(ot_map_get(m, keys[k]), k);
    ot_arena_free(a);
}

static void test_join(void **state)
{
    (void)state;
    char number[OT_DECIMAL];
    ot_arena *a = ot_arena_new();
    assert_string_equal(ot_join(a, NULL, 0), "");
    assert_string_equal(ot_join(a, (const char *[]){"a", "", "bc"}, 3), "abc");
    assert_string_equal(ot_decimal(0, number), "0");
    assert_string_equal(ot_decimal(4096, number), "4096");
    assert_string_equal(ot_decimal(UINT64_MAX, number), "18446744073709551615");
    ot_arena_free(a);
}

static char *folded(const char *text, size_t columns)
{
    char *out = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&out, &n);
    assert_non_null(f);
    ot_wrap_text(text, columns, f);
    assert_int_equal(fclose(f), 0);
    return out;
}

static void test_lines_fold_at_spaces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } CASES[] = {
        {"", ""},
        {"\n\n", "\n\n"},
        {"fits exactly 20 cols\n", "fits exactly 20 cols\n"},
        {"one more than fits it\n", "one more than fits\n    it\n"},
        {"  margin stays, and more of it\n", "  margin stays, and\n      more of it\n"},
        {"a_word_that_is_longer_than_all it\n", "a_word_that_is_longer_than_all\n    it\n"},
        {"  onnx-tile model.onnx -o tiled.onnx\n", "  onnx-tile model.onnx -o tiled.onnx\n"},
        {"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 0123456789 1\n",
         "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4 0123456789 1\n"},
        {"two   gaps of   a table's row", "two   gaps of   a\n    table's row\n"},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        char *got = folded(CASES[k].text, 20);
        assert_string_equal(got, CASES[k].want);
        free(got);
    }
    /* to what is no terminal, as it is */
    ot_wrap x;
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_ptr_equal(ot_wrap_open(&x, out), out);
    assert_int_equal(x.columns, 0);
    assert_int_equal(ot_wrap_close(&x), OT_OK);
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_memory_is_zero_aligned_and_apart),
        cmocka_unit_test(test_arena_refuses_overflow),
        cmocka_unit_test(test_arena_touches_no_large_table),
        cmocka_unit_test(test_arena_hook_fails_cleanly_and_sizes_match),
        cmocka_unit_test(test_strings_and_growing_lists),
        cmocka_unit_test(test_diag_keeps_the_first_failure),
        cmocka_unit_test(test_diag_is_safe_on_a_terminal),
        cmocka_unit_test(test_diag_cuts_long_messages),
        cmocka_unit_test(test_checked_against_128_bits),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_divisions_round_the_right_way),
        cmocka_unit_test(test_parse_size),
        cmocka_unit_test(test_sizes_and_times_as_text),
        cmocka_unit_test(test_map_against_a_list),
        cmocka_unit_test(test_map_copies),
        cmocka_unit_test(test_map_add),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_lines_fold_at_spaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
