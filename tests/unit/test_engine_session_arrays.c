/* Sessions whose arrays are files, or functions of rows: the same bits as in memory, rows that come
 * and go once and in order, failures of whoever has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_tile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS    1024
#define COLUMNS 512
#define IN      2 /* channels */
#define OUT     3
#define N_IN    ((size_t)IN * ROWS * COLUMNS)
#define N_OUT   ((size_t)OUT * ROWS * COLUMNS)

static const char HEAD[] = "model ir 8 opset 17\n"
                           "graph main {\n"
                           "  input %x : float32[1,2,1024,512]\n"
                           "  init %w : float32[3,2,3,3] = fill 0.25\n"
                           "  init %v : float32[3,3,5,5] = fill -0.125\n"
                           "  %a : float32[1,3,1024,512] = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"
                           "  %b : float32[1,3,1024,512] = Sin(%a)\n";
static const char CHAIN[] = "  %y : float32[1,3,1024,512] = Conv(%b, %v) {pads=[2, 2, 2, 2]}\n"
                            "  output %y\n}\n";
/* Somebody reads the output; the input is read whole. */
static const char READ_AGAIN[] = "  %y : float32[1,3,1024,512] = Conv(%b, %v) {pads=[2, 2, 2, 2]}\n"
                                 "  %m : float32[1,3,1,512] = ReduceMax(%y) {axes=[2]}\n"
                                 "  %z : float32[1,2,1,512] = ReduceMax(%x) {axes=[2]}\n"
                                 "  output %y\n  output %m\n  output %z\n}\n";
static const char TWICE[] = "  %y : float32[1,3,1024,512] = Conv(%b, %v) {pads=[2, 2, 2, 2]}\n"
                            "  output %y\n  output %y\n}\n";

static char folder[] = "/tmp/onnx-tile-arrays-XXXXXX";
static float *x, *want;

static char *at(const char *name)
{
    static char path[2][128];
    static int k;
    k = 1 - k;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static int begin(void **state)
{
    (void)state;
    x = malloc(N_IN * sizeof *x);
    want = malloc(N_OUT * sizeof *want);
    uint32_t bits = 1;
    for (size_t k = 0; x && k < N_IN; k++) {
        bits = bits * 1664525u + 1013904223u;
        x[k] = (float)(bits >> 8) * 0x1p-24f - 0.5f;
    }
    return x && want && mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    free(x);
    free(want);
    return rmdir(folder);
}

static void check(onnx_tile_session *s, onnx_tile_status status)
{
    if (status != ONNX_TILE_OK) fail_msg("%s", onnx_tile_session_error(s));
}

/* ---- models ---- */

/* REGIONS: two of them, one after the other; TILED: one. */
typedef enum form { PLAIN, REGIONS, TILED, FORMS } form;

/* HEAD and what follows, as it is or tiled, ready to run. */
static onnx_tile_session *load(const char *tail, form how, uint32_t threads)
{
    char text[2000];
    void *bytes;
    size_t n;
    onnx_tile *t;
    onnx_tile_session *s;
    snprintf(text, sizeof text, "%s%s", HEAD, tail);
    FILE *f = fopen(at("m.ot"), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_runtime(t, "engine"), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, 1 << 18), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_goal(t, ONNX_TILE_GOAL_MEMORY), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_force(t, how == REGIONS), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_file(t, at("m.ot")), ONNX_TILE_OK);
    if (how != PLAIN && onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_save_memory(t, &bytes, &n), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    check(s, onnx_tile_session_set_threads(s, threads));
    check(s, onnx_tile_session_load_memory(s, bytes, n, NULL));
    onnx_tile_free_bytes(bytes);
    onnx_tile_free(t);
    assert_int_equal(unlink(at("m.ot")), 0);
    return s;
}

/* What the session computes in memory. */
static void run_in_memory(onnx_tile_session *s)
{
    check(s, onnx_tile_session_bind_input(s, 0, x, NULL, 0));
    check(s, onnx_tile_session_bind_output(s, 0, want, N_OUT * sizeof *want));
    check(s, onnx_tile_session_run(s));
    check(s, onnx_tile_session_bind_output(s, 0, NULL, 0));
}

/* ---- rows ---- */

typedef struct rows {
    float *got; /* [N_OUT] */
    /* the next row of either, where they come in order; one thread may read while another writes */
    _Atomic int64_t read, wrote;
    bool early;                    /* rows were handed on before the last were read */
    int64_t times[ROWS];           /* that a row was read */
    int64_t fail_at;               /* a row whose call fails; -1: none */
    bool in_order, reads_in_order; /* written, read */
} rows;

static rows new_rows(void)
{
    rows r = {.got = calloc(N_OUT, sizeof *r.got),
              .fail_at = -1,
              .in_order = true,
              .reads_in_order = true};
    assert_non_null(r.got);
    return r;
}

static int read_rows(void *of, int64_t first, int64_t last, void *into)
{
    rows *r = of;
    r->reads_in_order = r->reads_in_order && first >= r->read;
    if (last > r->read) r->read = last; /* threads take tiles in any order */
    const size_t n = (size_t)(last - first) * COLUMNS;
    for (int64_t k = first; k < last; k++) {
        if (k == r->fail_at) return 1;
        r->times[k]++;
    }
    for (size_t c = 0; c < IN; c++)
        memcpy((float *)into + c * n, x + (c * ROWS + (size_t)first) * COLUMNS, n * sizeof(float));
    return 0;
}

static int write_rows(void *of, int64_t first, int64_t last, const void *from)
{
    rows *r = of;
    r->in_order = r->in_order && first == r->wrote;
    r->wrote = last;
    r->early = r->early || r->read < ROWS;
    if (first <= r->fail_at && r->fail_at < last) return 1;
    const size_t n = (size_t)(last - first) * COLUMNS;
    for (size_t c = 0; c < OUT; c++)
        memcpy(r->got + (c * ROWS + (size_t)first) * COLUMNS, (const float *)from + c * n,
               n * sizeof(float));
    return 0;
}

static void bind_rows(onnx_tile_session *s, rows *r)
{
    check(s, onnx_tile_session_read_input(s, 0, NULL, 0, 2, read_rows, r));
    check(s, onnx_tile_session_write_output(s, 0, 2, write_rows, r));
}

static void same_bits(const float *got)
{
    for (size_t k = 0; k < N_OUT; k++)
        if (memcmp(&got[k], &want[k], sizeof want[k]) != 0)
            fail_msg("element %zu is %g, not %g", k, (double)got[k], (double)want[k]);
}

static void rows_come_and_go_once(void **state)
{
    (void)state;
    for (form how = 0; how < FORMS; how++)
        for (uint32_t threads = 1; threads <= 3; threads += 2) {
            onnx_tile_session *s = load(CHAIN, how, threads);
            rows r = new_rows();
            run_in_memory(s);
            bind_rows(s, &r);
            for (int run = 1; run <= 2; run++) {
                r.read = r.wrote = 0;
                check(s, onnx_tile_session_run(s));
                same_bits(r.got);
                assert_int_equal(r.wrote, ROWS);
                assert_true((r.in_order && r.reads_in_order) || threads > 1);
                for (int k = 0; k < ROWS && threads == 1; k++) assert_int_equal(r.times[k], run);
            }
            assert_int_equal(r.early, how == TILED);
            free(r.got);
            onnx_tile_session_free(s);
        }
}

/* Where rows are needed later they stay: outputs that are read again, or are two. */
static void rows_stay_where_they_are_needed(void **state)
{
    (void)state;
    static const char *const TAILS[] = {READ_AGAIN, TWICE};
    for (int k = 0; k < 2; k++) {
        onnx_tile_session *s = load(TAILS[k], TILED, 2);
        onnx_tile_tensor t;
        const void *data;
        rows r = new_rows();
        run_in_memory(s);
        check(s, onnx_tile_session_result(s, 1, &t, &data));
        const size_t n = k == 0 ? (size_t)OUT * COLUMNS : N_OUT;
        float *other = malloc(n * sizeof *other);
        assert_non_null(other);
        memcpy(other, data, n * sizeof *other);
        bind_rows(s, &r);
        check(s, onnx_tile_session_run(s));
        same_bits(r.got);
        check(s, onnx_tile_session_result(s, 1, &t, &data));
        assert_memory_equal(data, other, n * sizeof *other);
        assert_int_equal(onnx_tile_session_result(s, 0, &t, &data), ONNX_TILE_USAGE);
        free(other);
        free(r.got);
        onnx_tile_session_free(s);
    }
}

static void failures_of_functions_end_the_run(void **state)
{
    (void)state;
    onnx_tile_session *s = load(CHAIN, TILED, 1);
    rows good = new_rows(), bad = new_rows();
    bad.fail_at = 700;
    run_in_memory(s);
    check(s, onnx_tile_session_read_input(s, 0, NULL, 0, 2, read_rows, &bad));
    check(s, onnx_tile_session_write_output(s, 0, 2, write_rows, &good));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_SYSTEM);
    assert_non_null(strstr(onnx_tile_session_error(s), "input 'x': its reader failed at rows ["));
    assert_true(good.wrote < 700);
    good.read = good.wrote = 0;
    check(s, onnx_tile_session_read_input(s, 0, NULL, 0, 2, read_rows, &good));
    check(s, onnx_tile_session_write_output(s, 0, 2, write_rows, &bad));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_SYSTEM);
    assert_non_null(strstr(onnx_tile_session_error(s), "output 'y': its writer failed at rows ["));
    good.read = good.wrote = 0;
    bind_rows(s, &good);
    check(s, onnx_tile_session_run(s));
    same_bits(good.got);
    free(good.got);
    free(bad.got);
    onnx_tile_session_free(s);
}

/* ---- files ---- */

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The last N_OUT floats of a file are `want`; the file goes. */
static void same_file_bits(const char *path)
{
    float *got = malloc(N_OUT * sizeof *got);
    FILE *f = fopen(path, "rb");
    assert_true(got && f && fseek(f, -(long)(N_OUT * sizeof *got), SEEK_END) == 0);
    assert_int_equal(fread(got, sizeof *got, N_OUT, f), N_OUT);
    assert_int_equal(fclose(f), 0);
    same_bits(got);
    free(got);
    assert_int_equal(unlink(path), 0);
}

static void files_are_arrays(void **state)
{
    (void)state;
    write_file(at("x.raw"), x, N_IN * sizeof *x);
    for (form how = 0; how < FORMS; how++) {
        onnx_tile_session *s = load(CHAIN, how, 2);
        run_in_memory(s);
        check(s, onnx_tile_session_map_input(s, 0, at("x.raw"), NULL, 0));
        for (int k = 0; k < 2; k++) {
            check(s, onnx_tile_session_map_output(s, 0, at(k ? "y.npy" : "y.raw")));
            check(s, onnx_tile_session_run(s));
            same_file_bits(at(k ? "y.npy" : "y.raw"));
        }
        onnx_tile_session_free(s);
    }
    assert_int_equal(unlink(at("x.raw")), 0);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    onnx_tile_session *s = load(CHAIN, TILED, 1);
    struct stat st;
    write_file(at("x.raw"), x, N_IN * sizeof *x);
    write_file(at("s.raw"), x, 1000);
    assert_int_equal(onnx_tile_session_map_input(s, 0, at("s.raw"), NULL, 0), ONNX_TILE_INPUT);
    assert_non_null(strstr(onnx_tile_session_error(s), "holds 1000 bytes"));
    assert_int_equal(onnx_tile_session_map_input(s, 0, at("none.npy"), NULL, 0), ONNX_TILE_INPUT);
    assert_int_equal(onnx_tile_session_map_input(s, 1, at("x.raw"), NULL, 0), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_read_input(s, 0, NULL, 0, 4, read_rows, NULL),
                     ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_session_error(s), "no rows along axis 4"));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_USAGE); /* nothing is bound */
    check(s, onnx_tile_session_map_input(s, 0, at("x.raw"), NULL, 0));
    check(s, onnx_tile_session_map_output(s, 0, at("x.raw")));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_session_error(s), "are one file"));
    check(s, onnx_tile_session_map_output(s, 0, at("none/y.npy")));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_SYSTEM);
    check(s, onnx_tile_session_map_output(s, 0, at("y.npy")));
    /* by less than a page, which is no signal; by most of it */
    assert_int_equal(truncate(at("x.raw"), (off_t)(N_IN * sizeof *x) - 8), 0);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_INPUT);
    assert_non_null(strstr(onnx_tile_session_error(s), "has become shorter"));
    assert_int_equal(truncate(at("x.raw"), 5000), 0);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_INPUT);
    assert_non_null(strstr(onnx_tile_session_error(s), "has become shorter"));
    assert_int_not_equal(stat(at("y.npy"), &st), 0);
    onnx_tile_session_free(s);
    assert_int_equal(unlink(at("x.raw")), 0);
    assert_int_equal(unlink(at("s.raw")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_and_go_once),
        cmocka_unit_test(rows_stay_where_they_are_needed),
        cmocka_unit_test(failures_of_functions_end_the_run),
        cmocka_unit_test(files_are_arrays),
        cmocka_unit_test(wrong_files_are_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
