/* The command behind its command line: modes of tables, why one does not fit, the summary, and
 * running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "commands/plan_memory.h"

/* Plan a table with a capacity; offsets: room for 16. */
static ot_status plan(const char *csv, ot_mem_mode mode, int64_t capacity, int64_t *offsets,
                      ot_scope_plan *p, ot_diag *d)
{
    ot_pack_file *f = NULL;
    ot_table_layout t = {.offsets = offsets};
    ot_diag read = {0};
    const ot_pack_options o = {.capacity = capacity, .rules = OT_PACK_RULES_ALL};
    if (ot_pack_read_csv("t.csv", csv, strlen(csv), &read, &f) != OT_OK)
        fail_msg("%s", read.message);
    ot_status s = ot_pack_table(f, "t.csv", mode, &o, d, &t);
    *p = t.memory;
    ot_pack_file_free(f);
    return s;
}

static void sequential_goes_behind_the_fixed(void **state)
{
    (void)state;
    int64_t offsets[16];
    ot_scope_plan p;
    ot_diag d = {0};
    static const int64_t want[] = {112, 64, 128, 0, 144};
    static const char csv[] = "id,lower,upper,size,alignment,offset\na,0,1,10,16,\nb,2,3,40,1,"
                              "64\nc,4,5,16,64,\nd,0,9,8,8,0\ne,7,8,0,1,\n";
    assert_int_equal(plan(csv, OT_MEM_SEQUENTIAL, 0, offsets, &p, &d), OT_OK);
    assert_memory_equal(offsets, want, sizeof want);
    assert_int_equal(p.height, 144);
    assert_int_equal(p.sum, 74);
    assert_int_equal(p.mode, OT_MEM_SEQUENTIAL);
    assert_int_equal(p.level, OT_LEVEL_NONE);
    assert_int_equal(p.n_buffers, 5);
    assert_false(p.proved || p.timed_out);
}

static const char FIVE[] =
    "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n";

static void modes_of_a_table(void **state)
{
    (void)state;
    static const ot_mem_mode modes[] = {OT_MEM_AUTO, OT_MEM_SEARCH, OT_MEM_REUSE};
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        int64_t offsets[16];
        ot_scope_plan p;
        ot_diag d = {0};
        assert_int_equal(plan(FIVE, modes[k], 12, offsets, &p, &d), OT_OK);
        assert_int_equal(p.height, 12);
        assert_int_equal(p.lower_bound, 12);
        assert_int_equal(p.capacity, 12);
        assert_true(p.proved);
        assert_int_equal(p.mode, modes[k] == OT_MEM_AUTO ? OT_MEM_SEARCH : modes[k]);
    }
}

/* Every way to be too small has its own line. The set is the fewest of those alive at the peak:
 * the largest. */
static void too_small(void **state)
{
    (void)state;
    static const struct {
        const char *csv;
        ot_mem_mode mode;
        int64_t capacity;
        const char *says;
    } cases[] = {
        {FIVE, OT_MEM_SEARCH, 11,
         "t.csv: proved infeasible: at time 0 buffers of 12 bytes are alive, capacity 11; the "
         "smallest set above it: "
         "b1 (4), b3 (4), b5 (4)"},
        {FIVE, OT_MEM_SEQUENTIAL, 19,
         "t.csv: mode sequential needs 20 bytes, capacity 19 (lower bound 12)"},
        {"id,lower,upper,size\na,0,9,5\nb,4,6,1\nc,5,7,90\nd,5,8,20\n", OT_MEM_SEARCH, 100,
         "at time 5 buffers of 116 bytes are alive, "
         "capacity 100; the smallest set above it: c (90), d (20)"},
        {"id,lower,upper,size\na,0,9,5\nb,4,6,101\n", OT_MEM_REUSE, 100,
         "at time 4 buffer b alone has 101 bytes, capacity 100"},
        {"id,lower,upper,size,offset\na,0,9,5,\nb,4,6,1,100\n", OT_MEM_SEARCH, 100,
         "buffer b is fixed at 100 and ends at 101, capacity 100"},
        /* a is away when c comes and goes, so the peak is at 4 */
        {"id,lower,upper,size,gaps\na,0,9,50,1-3\nb,0,9,40,\nc,1,3,40,\nd,4,5,30,\n", OT_MEM_SEARCH,
         100,
         "at time 4 buffers of 120 bytes are alive, capacity 100; the smallest set above it: a "
         "(50), b (40), d (30)"},
        {"id,lower,upper,size,offset\na,0,9,5,0\nb,4,6,1,4\n", OT_MEM_SEARCH, 100,
         "t.csv: fixed offsets: "},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int64_t offsets[16];
        ot_scope_plan p;
        ot_diag d = {0};
        ot_status s = plan(cases[k].csv, cases[k].mode, cases[k].capacity, offsets, &p, &d),
                  want = OT_E_BUDGET;
        if (strstr(cases[k].says, "fixed offsets")) want = OT_E_INPUT;
        if (s != want || !strstr(d.message, cases[k].says))
            fail_msg("%zu: status %d: %s", k, s, d.message);
    }
}

static void long_sets_are_cut(void **state)
{
    (void)state;
    char csv[1000] = "id,lower,upper,size\n";
    for (int k = 0; k < 12; k++)
        snprintf(csv + strlen(csv), sizeof csv - strlen(csv), "b%d,0,1,10\n", k);
    int64_t offsets[16];
    ot_scope_plan p;
    ot_diag d = {0};
    assert_int_equal(plan(csv, OT_MEM_SEARCH, 95, offsets, &p, &d), OT_E_BUDGET);
    assert_non_null(
        strstr(d.message, "b0 (10), b1 (10), b2 (10), b3 (10), b4 (10), b5 (10) and 4 more"));
}

/* Gaps that keep a part count as no gap: what follows from that is proved neither way. */
static void windows_prove_nothing(void **state)
{
    (void)state;
    static const char csv[] = "id,lower,upper,size,gaps\na,0,9,60,2-5@0:1\nb,2,5,50,\n";
    int64_t offsets[16];
    ot_scope_plan p;
    ot_diag d = {0};
    assert_int_equal(plan(csv, OT_MEM_SEARCH, 0, offsets, &p, &d), OT_OK);
    assert_int_equal(p.height, 110);
    assert_false(p.proved);
    assert_int_equal(plan(csv, OT_MEM_SEARCH, 100, offsets, &p, &d), OT_E_BUDGET);
    assert_null(strstr(d.message, "proved"));
    assert_non_null(strstr(d.message, "no plan within capacity 100 was found"));
}

/* ---- the summary ---- */

static char *printed(const ot_memory_results *r, bool json)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    assert_int_equal(json ? ot_memory_results_json(r, f) : ot_memory_results_print(r, 0, f), OT_OK);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void summary_of_a_kernel(void **state)
{
    (void)state;
    static const char *const warnings[] = {"3:5: dead \x1b[31m buffer \"x\""};
    ot_scope_plan plans[] = {{.scope = OT_SCOPE_UB,
                              .capacity = 4096,
                              .height = 1500,
                              .lower_bound = 1000,
                              .sum = 3000,
                              .mode = OT_MEM_REUSE,
                              .level = OT_LEVEL_1,
                              .n_buffers = 4,
                              .rollbacks = 2,
                              .restarts = 1,
                              .n_upgraded = 3,
                              .n_cross_pipe = 5,
                              .timed_out = true},
                             {.scope = OT_SCOPE_GM,
                              .height = 8,
                              .lower_bound = 0,
                              .sum = 8,
                              .mode = OT_MEM_SEQUENTIAL,
                              .level = OT_LEVEL_NONE,
                              .n_buffers = 1,
                              .proved = true}};
    const ot_memory_results r = {.file = "dir/\n.tk",
                                 .kernel = "k\"",
                                 .target = "h200",
                                 .plans = plans,
                                 .n_plans = 2,
                                 .n_buffers = 5,
                                 .n_in_place = 1,
                                 .n_copies = 2,
                                 .warnings = warnings,
                                 .n_warnings = 1,
                                 .seconds = 0.001};
    char *text = printed(&r, false);
    assert_non_null(strstr(text, "dir/?.tk (kernel k\" on h200): 5 buffers, planned in 1.00 ms\n"));
    assert_non_null(strstr(text, "ub           4    1500         1000  50.00 %  no          4096  "
                                 "reuse           1          2         1        3           5\n"));
    assert_non_null(strstr(text, "gm           1       8            0        -  yes            -  "
                                 "sequential      -          0"));
    assert_non_null(strstr(text, "1 in-place merge, 2 copies\n"));
    assert_non_null(strstr(text, "time limit hit"));
    assert_non_null(strstr(text, "warning: 3:5: dead ?[31m buffer"));
    free(text);
    text = printed(&r, true);
    assert_non_null(strstr(text, "\"file\": \"dir/\\u000a.tk\""));
    assert_non_null(strstr(text, "\"kernel\": \"k\\\"\""));
    assert_non_null(
        strstr(text, "\"scope\": \"ub\", \"capacity_bytes\": 4096, \"height_bytes\": "));
    assert_non_null(strstr(text,
                           "\"mode\": \"reuse\", \"level\": 1, \"buffers\": 4, \"rollbacks\": "
                           "2, \"restarts\": 1, \"doubled\": 3, \"cross_pipe\": 5, "
                           "\"proved\": false, \"timed_out\": true, \"gap_percent\": 50}"));
    assert_non_null(strstr(text, "\"scope\": \"gm\", \"capacity_bytes\": null, "));
    assert_non_null(strstr(text, "\"mode\": \"sequential\", \"level\": null, "));
    assert_non_null(strstr(text, "\"timed_out\": false, \"gap_percent\": null}"));
    assert_non_null(strstr(text, "\"in_place\": 1,\n  \"copies\": 2"));
    assert_non_null(strstr(text, "\\u001b[31m buffer \\\"x\\\"\""));
    free(text);
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

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void walk(const char *in, const char *out, const char *map, const char *text)
{
    const ot_memory_run run = {.path = in, .output = out, .svg = map};
    ot_status s = OT_E_NOMEM;
    int failures = 0;
    write_file(in, text);
    for (long allowed = 0; s != OT_OK && allowed < 3000; allowed++) {
        ot_memory_results *r = NULL;
        ot_diag d = {0};
        allocations_left = allowed;
        ot_set_alloc_hook(failing_hook);
        s = ot_plan_memory(&run, &d, &r);
        if (s != OT_OK && s != OT_E_NOMEM) fail_msg("%ld allocations: %s", allowed, d.message);
        if (s != OT_OK && (access(out, F_OK) == 0 || access(map, F_OK) == 0))
            fail_msg("%ld allocations leave a file", allowed);
        failures += s != OT_OK;
        ot_memory_results_free(r);
        ot_set_alloc_hook(NULL);
    }
    assert_int_equal(s, OT_OK);
    assert_true(failures > 8);
    assert_int_equal(access(out, F_OK), 0);
    assert_int_equal(access(map, F_OK), 0);
    unlink(in);
    unlink(out);
    unlink(map);
}

static void memory_runs_out(void **state)
{
    (void)state;
    char dir[] = "/tmp/ot_plan_memory_XXXXXX", in[64], out[64], map[64];
    assert_non_null(mkdtemp(dir));
    snprintf(in, sizeof in, "%s/in.csv", dir);
    snprintf(out, sizeof out, "%s/out.csv", dir);
    snprintf(map, sizeof map, "%s/map.svg", dir);
    walk(in, out, map,
         "id,lower,upper,size,gaps\nb1,0,3,4,\nb2,3,9,4,4-5\nb3,0,9,4,\nb4,9,21,4,12-13@0:1\nb5,0,"
         "21,4,\n");
    snprintf(in, sizeof in, "%s/in.tk", dir);
    snprintf(out, sizeof out, "%s/out.tk", dir);
    walk(in, out, map,
         "kernel k target \"ascend-a2\" {\n  param x: 8x512 i8 @gm\n  for i in 0..8 {\n    alloc "
         "a: 512 i8 @ub multi=2\n"
         "    alloc b: 512 i8 @ub\n    load a <- x[i:i+1, 0:512]\n    b = vector.exp(a)\n    store "
         "x[i:i+1, 0:512] <- b\n  }\n}\n");
    assert_int_equal(rmdir(dir), 0); /* no temporary file stays */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_goes_behind_the_fixed),
        cmocka_unit_test(modes_of_a_table),
        cmocka_unit_test(too_small),
        cmocka_unit_test(long_sets_are_cut),
        cmocka_unit_test(windows_prove_nothing),
        cmocka_unit_test(summary_of_a_kernel),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
