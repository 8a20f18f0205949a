/* Packing problems as CSV: every way of writing one, one line for every broken one, and rows
 * that come back as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pack/pack.h"

static ot_pack_file *read_n(const char *text, size_t n)
{
    ot_diag d = {0};
    ot_pack_file *f = NULL;
    if (ot_pack_read_csv("p.csv", text, n, &d, &f) != OT_OK) fail_msg("%s", d.message);
    return f;
}

static ot_pack_file *read(const char *text) { return read_n(text, strlen(text)); }

/* Text after writing; malloc'ed. */
static char *written(const ot_pack_file *f, const int64_t *offsets)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    assert_int_equal(ot_pack_write_csv(f, offsets, out), OT_OK);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void check_written(const char *in, const int64_t *offsets, const char *want)
{
    ot_pack_file *f = read(in);
    char *text = written(f, offsets);
    assert_string_equal(text, want);
    free(text);
    ot_pack_file_free(f);
}

static void check_item(const ot_pack_item *i, int64_t lower, int64_t upper, int64_t size,
                       int64_t alignment)
{
    assert_int_equal(i->lower, lower);
    assert_int_equal(i->upper, upper);
    assert_int_equal(i->size, size);
    assert_int_equal(i->alignment, alignment);
}

static void plain(void **state)
{
    (void)state;
    ot_pack_file *f = read("id,lower,upper,size\nb1,0,3,4\nb2,3,9,0\n");
    assert_int_equal(f->problem.n, 2);
    assert_string_equal(f->names[0], "b1");
    assert_string_equal(f->names[1], "b2");
    check_item(&f->problem.items[0], 0, 3, 4, 1);
    check_item(&f->problem.items[1], 3, 9, 0, 1);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(f->problem.items[k].fixed, -1);
        assert_int_equal(f->problem.items[k].hint, -1);
        assert_int_equal(f->problem.items[k].n_gaps, 0);
    }
    assert_int_equal(f->n_windows, 0);
    ot_pack_file_free(f);
}

static void any_order_and_every_column(void **state)
{
    (void)state;
    ot_pack_file *f = read("size,gaps,Hint,note,UPPER,alignment,offset,lower,id\n"
                           "100,7-8 2-4  5-7,64,hello,9,32,,1,a\n"
                           "50,,-1,,9,,128,0,b\n"
                           "50,,,,9,1,-1,0,c");
    const ot_pack_item *i = f->problem.items;
    assert_int_equal(f->problem.n, 3);
    check_item(&i[0], 1, 9, 100, 32);
    assert_int_equal(i[0].hint, 64);
    assert_int_equal(i[0].fixed, -1);
    static const ot_span gaps[] = {{2, 4}, {5, 7}, {7, 8}}; /* sorted; touching ones are two */
    assert_int_equal(i[0].n_gaps, 3);
    assert_memory_equal(i[0].gaps, gaps, sizeof gaps);
    check_item(&i[1], 0, 9, 50, 1);
    assert_int_equal(i[1].fixed, 128);
    assert_int_equal(i[2].fixed, -1);
    ot_pack_file_free(f);
}

/* `end` is the last moment, for the lifetime and for its gaps; `upper` is the moment after it. */
static void old_names(void **state)
{
    (void)state;
    static const char *const headers[] = {"id,begin,end,size,gaps", "buffer,start,end,size,gaps",
                                          "buffer_id,lower,end,size,gaps"};
    for (size_t k = 0; k < sizeof headers / sizeof *headers; k++) {
        char text[128];
        snprintf(text, sizeof text, "%s\nx,0,8,4,2-3\ny,5,5,1,\n", headers[k]);
        ot_pack_file *f = read(text);
        check_item(&f->problem.items[0], 0, 9, 4, 1);
        assert_int_equal(f->problem.items[0].gaps[0].lower, 2);
        assert_int_equal(f->problem.items[0].gaps[0].upper, 4);
        check_item(&f->problem.items[1], 5, 6, 1, 1);
        ot_pack_file_free(f);
    }
    ot_pack_file *f = read("buffer,begin,upper,size\nx,0,8,4\n");
    check_item(&f->problem.items[0], 0, 8, 4, 1);
    ot_pack_file_free(f);
}

/* Gaps that keep a part are no gaps for us: the buffer counts as whole, and the reader says how
 * many there were. */
static void windows_count_as_kept(void **state)
{
    (void)state;
    ot_pack_file *f = read("id,lower,upper,size,gaps\nx,0,8,4,1-2 3-4@0:2 5-6@1:1\n");
    assert_int_equal(f->problem.items[0].n_gaps, 1);
    assert_int_equal(f->problem.items[0].gaps[0].lower, 1);
    assert_int_equal(f->n_windows, 2);
    ot_pack_file_free(f);
}

static void quoted_spaced_crlf(void **state)
{
    (void)state;
    ot_pack_file *f = read("\xef\xbb\xbf id , lower,\tupper,size ,\"gaps\"\r\n"
                           "\r\n"
                           "\"a,\"\"b\"\" \" , 0, 3 ,4, \"1-2\"\r\n"
                           "   \t\r\n"
                           " plain name ,1,2,\"5\",\r\n");
    assert_int_equal(f->problem.n, 2);
    assert_string_equal(f->names[0], "a,\"b\" ");
    assert_string_equal(f->names[1], "plain name");
    assert_int_equal(f->problem.items[0].n_gaps, 1);
    check_item(&f->problem.items[1], 1, 2, 5, 1);
    ot_pack_file_free(f);
}

static void rows_come_back_as_they_were(void **state)
{
    (void)state;
    static const int64_t offsets[] = {8, 0};
    check_written("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n", offsets,
                  "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,0\n");
    check_written("id,lower,upper,size\nb1,0,3,4\n\nb2,3,9,4", offsets,
                  "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,0\n");
    /* spaces, quotes, unknown columns and line ends stay */
    check_written(
        "id, begin, end, size, note\r\n\"b,1\", 0, 3, 4, \"x,\"\"y\"\r\nb2,3,9,4,\r\n", offsets,
        "id, begin, end, size, note,offset\r\n\"b,1\", 0, 3, 4, \"x,\"\"y\",8\r\nb2,3,9,4,,0\r\n");
    /* an offset column is filled where it stands, whatever was in it */
    check_written("offset,id,lower,upper,size\n,b1,0,3,4\n -1 ,b2,3,9,4\n", offsets,
                  "offset,id,lower,upper,size\n8,b1,0,3,4\n 0 ,b2,3,9,4\n");
    check_written("id,lower,upper,offset,size\nb1,0,3, \"\" ,4\nb2,3,9,0,4\n", offsets,
                  "id,lower,upper,offset,size\nb1,0,3, 8 ,4\nb2,3,9,0,4\n");
    check_written("id,lower,upper,size,offset\nb1,0,3,4,\nb2,3,9,4, \n", offsets,
                  "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,0\n");
    check_written("id,lower,upper,size\n", offsets, "id,lower,upper,size,offset\n");
}

/* What was written is read again, with every offset fixed: plans replay. */
static void plans_replay(void **state)
{
    (void)state;
    static const int64_t offsets[] = {64, 0, INT64_C(1) << 40};
    ot_pack_file *f = read("id,lower,upper,size,alignment\na,0,3,4,32\nb,0,3,64,1\nc,3,4,9,\n");
    char *text = written(f, offsets);
    ot_pack_file *g = read(text);
    for (int k = 0; k < 3; k++) assert_int_equal(g->problem.items[k].fixed, offsets[k]);
    char *again = written(g, offsets);
    assert_string_equal(again, text);
    free(again);
    free(text);
    ot_pack_file_free(f);
    ot_pack_file_free(g);
}

static void errors_name_line_and_rule(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "p.csv:1: the file is empty"},
        {" \n\r\n\n", "p.csv:1: the file is empty"},
        {"b1,0,3,4\n", "p.csv:1: the header has no column 'id'"},
        {"id,lower,upper\n", "p.csv:1: the header has no column 'size'"},
        {"\n\nid,size,upper\n", "p.csv:3: the header has no column 'lower'"},
        {"id,lower,start,upper,size\n", "p.csv:1: two columns mean 'lower'"},
        {"id,lower,upper,size,offset,offset\n", "p.csv:1: two columns mean 'offset'"},
        {"id,lower,upper,size\na,0,1\n", "p.csv:2: 3 cells where the header has 4"},
        {"id,lower,upper,size\na,0,1,2,3\n", "p.csv:2: more cells than the 4 columns"},
        {"id,lower,upper,size\na,0,1,2\n\na,0,1,2\n", "p.csv:4: id 'a' is already on line 2"},
        {"id,lower,upper,size\n,0,1,2\n", "p.csv:2: id is empty"},
        {"id,lower,upper,size\na,,1,2\n", "p.csv:2: lower is empty"},
        {"id,lower,upper,size\na,x,1,2\n", "p.csv:2: lower 'x' is not a whole number"},
        {"id,lower,upper,size\na,0,1.5,2\n", "p.csv:2: upper '1.5' is not a whole number"},
        {"id,lower,upper,size\na,0,1,+2\n", "p.csv:2: size '+2' is not a whole number"},
        {"id,lower,upper,size\na,0,1,0x2\n", "p.csv:2: size '0x2' is not a whole number"},
        {"id,lower,upper,size\na,-4,1,2\n", "p.csv:2: lower '-4' must not be negative"},
        {"id,lower,upper,size\na,0,1,-2\n", "p.csv:2: size '-2' must not be negative"},
        {"id,lower,upper,size\na,0,1,99999999999999999999\n",
         "p.csv:2: size '99999999999999999999' is too large"},
        {"id,lower,upper,size\na,0,9223372036854775807,1\n",
         "p.csv:2: upper '9223372036854775807' is too large"},
        {"id,lower,upper,size\na,3,3,1\n", "p.csv:2: the lifetime is empty"},
        {"id,start,end,size\na,3,2,1\n", "p.csv:2: the lifetime is empty"},
        {"id,lower,upper,size\na,0,1,2000000000000000000\nb,0,1,2000000000000000000\n",
         "p.csv:3: sizes and alignments up to here"},
        {"id,lower,upper,size,alignment\na,0,1,4,0\n", "p.csv:2: alignment must be at least 1"},
        {"id,lower,upper,size,alignment\na,0,1,4,5000000000000000000\n",
         "p.csv:2: sizes and alignments up to here"},
        {"id,lower,upper,size,hint\na,0,1,4,-2\n", "p.csv:2: hint '-2' must not be negative"},
        {"id,lower,upper,size,offset\na,0,1,4,-2\n", "p.csv:2: offset '-2' must not be negative"},
        {"id,lower,upper,size,offset\na,0,1,4,2305843009213693952\n",
         "p.csv:2: offset and size add up"},
        {"id,lower,upper,size,alignment,offset\na,0,1,4,8,12\n",
         "p.csv:2: offset 12 is not a multiple of the alignment 8"},
        {"id,lower,upper,size,gaps\na,0,9,4,3\n", "p.csv:2: gap '3' is not LOWER-UPPER"},
        {"id,lower,upper,size,gaps\na,0,9,4,3-\n", "p.csv:2: gap '3-' is not LOWER-UPPER"},
        {"id,lower,upper,size,gaps\na,0,9,4,-3-4\n", "p.csv:2: gap '-3-4' is not LOWER-UPPER"},
        {"id,lower,upper,size,gaps\na,0,9,4,3-3\n", "p.csv:2: gap '3-3' is empty"},
        {"id,lower,upper,size,gaps\na,0,9,4,3-99999999999999999999\n", "a time is too large"},
        {"id,lower,upper,size,gaps\na,0,9,4,1-4 3-5\n", "p.csv:2: two gaps overlap at time 3"},
        {"id,lower,upper,size,gaps\na,2,9,4,1-4\n", "p.csv:2: a gap reaches beyond the lifetime"},
        {"id,lower,upper,size,gaps\na,2,9,4,8-10\n", "p.csv:2: a gap reaches beyond the lifetime"},
        {"id,lower,upper,size,gaps\na,0,9,4,1-2@\n",
         "p.csv:2: gap '1-2@': what it keeps is not @FROM:TO"},
        {"id,lower,upper,size,gaps\na,0,9,4,1-2@4:3\n", "what it keeps is not @FROM:TO"},
        {"id,lower,upper,size\n\"a,0,1,2\n", "p.csv:2: a quoted cell does not end on its line"},
        {"id,lower,upper,size\n\"a\"\"\n", "p.csv:2: a quoted cell does not end on its line"},
        {"id,lower,upper,size\n\"a\"b,0,1,2\n", "p.csv:2: text after the end of a quoted cell"},
        {"id,lower,upper,size\na\"b\",0,1,2\n", "p.csv:2: a quote inside a cell"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        ot_diag d = {0};
        ot_pack_file *f = NULL;
        assert_int_equal(ot_pack_read_csv("p.csv", cases[k].text, strlen(cases[k].text), &d, &f),
                         OT_E_INPUT);
        assert_null(f);
        if (!strstr(d.message, cases[k].says)) fail_msg("'%s': %s", cases[k].text, d.message);
    }
}

static void zero_bytes_are_refused(void **state)
{
    (void)state;
    static const char text[] = "id,lower,upper,size\na,0,1,2\nb\0,0,1,2\n";
    ot_diag d = {0};
    ot_pack_file *f = NULL;
    assert_int_equal(ot_pack_read_csv("p.csv", text, sizeof text - 1, &d, &f), OT_E_INPUT);
    assert_non_null(strstr(d.message, "p.csv:3: a zero byte"));
}

static void many_rows(void **state)
{
    (void)state;
    enum { N = 100000 };
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int64_t *offsets = malloc(N * sizeof *offsets);
    assert_true(f && offsets);
    fputs("id,lower,upper,size,alignment\n", f);
    for (int k = 0; k < N; k++) fprintf(f, "buffer_%d,%d,%d,%d,64\n", k, k, k + 10, k * 3);
    assert_int_equal(fclose(f), 0);
    ot_pack_file *p = read_n(text, n);
    assert_int_equal(p->problem.n, N);
    for (int k = 0; k < N; k++) {
        check_item(&p->problem.items[k], k, k + 10, k * 3, 64);
        offsets[k] = 64LL * k;
    }
    assert_string_equal(p->names[N - 1], "buffer_99999");
    char *out = written(p, offsets);
    assert_non_null(strstr(out, "\nbuffer_99999,99999,100009,299997,64,6399936\n"));
    free(out);
    free(text);
    free(offsets);
    ot_pack_file_free(p);
}

/* Random changes of a good file: read or refused with a line, never worse; what is read keeps
 * the promises of the header. */
static void mutations(void **state)
{
    (void)state;
    static const char good[] = "id,lower,end,size,alignment,gaps,hint,offset\n\"a\",0,3,4,2,1-2,,"
                               "\nb,3,9,4,1,4-5 6-7@0:2,8,16\n";
    static const char bytes[] = ",\"\n\r -@:0129aZ\xff";
    const uint32_t seed = 20240817;
    uint32_t x = seed, accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        for (int k = 0; k < 1 + round % 3; k++) {
            x = x * 1664525u + 1013904223u;
            text[(x >> 8) % (sizeof good - 1)] = bytes[(x >> 24) % (sizeof bytes - 1)];
        }
        ot_diag d = {0};
        ot_pack_file *f = NULL;
        ot_status s = ot_pack_read_csv("p.csv", text, sizeof good - 1, &d, &f);
        if (s != OT_OK) {
            if (s != OT_E_INPUT || strncmp(d.message, "p.csv:", 6) != 0)
                fail_msg("seed %u round %d: %s", seed, round, d.message);
            continue;
        }
        accepted++;
        for (uint32_t k = 0; k < f->problem.n; k++) {
            const ot_pack_item *i = &f->problem.items[k];
            if (!(i->lower >= 0 && i->lower < i->upper && i->size >= 0 && i->alignment >= 1 &&
                  i->fixed >= -1 && i->hint >= -1))
                fail_msg("seed %u round %d: item %u", seed, round, k);
        }
        ot_pack_file_free(f);
    }
    assert_true(accepted > 1000);
}

/* ---- memory runs out at each allocation in turn ---- */

static long allocations_left;

static void *failing_hook(void *p, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(p, new_size) : NULL;
}

static void memory_runs_out(void **state)
{
    (void)state;
    char text[4000] = "id,lower,upper,size,gaps\n";
    for (int k = 0; k < 100; k++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "\"buffer %d\",0,9,%d,1-2 3-4\n", k, k);
    }
    int failures = 0;
    ot_status s = OT_E_NOMEM;
    for (long allowed = 0; s != OT_OK && allowed < 1000; allowed++) {
        ot_diag d = {0};
        ot_pack_file *f = NULL;
        allocations_left = allowed;
        ot_set_alloc_hook(failing_hook);
        s = ot_pack_read_csv("p.csv", text, strlen(text), &d, &f);
        if (s != OT_OK) assert_int_equal(s, OT_E_NOMEM);
        failures += s != OT_OK;
        ot_pack_file_free(f);
        ot_set_alloc_hook(NULL);
    }
    assert_int_equal(s, OT_OK);
    assert_true(failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(any_order_and_every_column),
        cmocka_unit_test(old_names),
        cmocka_unit_test(windows_count_as_kept),
        cmocka_unit_test(quoted_spaced_crlf),
        cmocka_unit_test(rows_come_back_as_they_were),
        cmocka_unit_test(plans_replay),
        cmocka_unit_test(errors_name_line_and_rule),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(mutations),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
