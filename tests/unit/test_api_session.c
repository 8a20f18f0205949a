/* The public sessions: loading, asking, binding, running, misuse, and two of them in two threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_tile.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* y = x * w + 1 with w = 2; s: the shape of y. Rows of x are free. */
static const char MODEL[] = "model ir 8 opset 17\n"
                            "graph main {\n"
                            "  input %x : float32[?,3]\n"
                            "  init %w : float32[3] = fill 2\n"
                            "  init %one : float32[] = fill 1\n"
                            "  %p = Mul(%x, %w)\n"
                            "  %y : float32[?,3] = Add(%p, %one)\n"
                            "  %s : int64[2] = Shape(%y)\n"
                            "  output %y\n"
                            "  output %s\n"
                            "}\n";

static char folder[] = "/tmp/onnx-tile-test-XXXXXX";
static char path[64];

static int make_file(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/m.ot", folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(MODEL, f) < 0) return -1;
    return fclose(f);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path) | rmdir(folder);
}

static void check(onnx_tile_session *s, onnx_tile_status status)
{
    if (status != ONNX_TILE_OK) fail_msg("%s", onnx_tile_session_error(s));
}

#ifdef OT_ENGINE

static void expect_result(onnx_tile_session *s, const float *x, int64_t rows)
{
    onnx_tile_tensor t;
    const void *data;
    check(s, onnx_tile_session_result(s, 0, &t, &data));
    assert_string_equal(t.name, "y");
    assert_int_equal(t.type, ONNX_TILE_FLOAT32);
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.dims[0], rows);
    for (int64_t k = 0; k < rows * 3; k++) assert_true(((const float *)data)[k] == x[k] * 2 + 1);
    check(s, onnx_tile_session_result(s, 1, &t, &data));
    assert_int_equal(t.type, ONNX_TILE_INT64);
    assert_int_equal(((const int64_t *)data)[0], rows);
}

static void free_dimensions_follow_the_arrays(void **state)
{
    (void)state;
    onnx_tile_session *s;
    onnx_tile_tensor t;
    float x[12];
    for (int k = 0; k < 12; k++) x[k] = (float)k / 4;
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    check(s, onnx_tile_session_load_file(s, path));
    assert_int_equal(onnx_tile_session_input_count(s), 1);
    assert_int_equal(onnx_tile_session_output_count(s), 2);
    check(s, onnx_tile_session_input(s, 0, &t));
    assert_string_equal(t.name, "x");
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.dims[0], -1);
    assert_int_equal(t.dims[1], 3);
    for (int64_t rows = 1; rows <= 4; rows++) {
        int64_t dims[] = {rows, 3};
        check(s, onnx_tile_session_bind_input(s, 0, x, dims, 2));
        check(s, onnx_tile_session_run(s));
        expect_result(s, x, rows);
    }
    int64_t wrong[] = {3, 4};
    check(s, onnx_tile_session_bind_input(s, 0, x, wrong, 2));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_INPUT);
    assert_non_null(strstr(onnx_tile_session_error(s), "'x'"));
    onnx_tile_session_free(s);
}

/* With bound shapes everything is fixed: outputs may be bound, too, and memory is planned. */
static void outputs_are_written_in_place(void **state)
{
    (void)state;
    onnx_tile_session *s;
    onnx_tile_tensor t;
    const void *data;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0};
    int64_t dims[] = {2, 3}, peak, planned;
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    check(s, onnx_tile_session_bind_shape(s, "x", dims, 2));
    check(s, onnx_tile_session_load_file(s, path));
    check(s, onnx_tile_session_bind_input(s, 0, x, NULL, 0));
    char *none;
    assert_int_equal(onnx_tile_session_profile(s, &none), ONNX_TILE_USAGE); /* nothing has run */
    assert_null(none);
    assert_int_equal(onnx_tile_session_profile(NULL, &none), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_bind_output(s, 0, y, sizeof y - 1), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_session_error(s), "needs 24 bytes"));
    check(s, onnx_tile_session_bind_output(s, 0, y, sizeof y));
    check(s, onnx_tile_session_run(s));
    for (int k = 0; k < 6; k++) assert_true(y[k] == x[k] * 2 + 1);
    check(s, onnx_tile_session_result(s, 0, &t, &data));
    assert_ptr_equal(data, y);
    char *json;
    check(s, onnx_tile_session_profile(s, &json));
    assert_non_null(strstr(json, "\"measured_seconds\""));
    assert_non_null(strstr(json, "\"peak_bytes\""));
    onnx_tile_free_bytes(json);
    onnx_tile_session_memory(s, &peak, &planned);
    assert_true(peak >= planned && planned >= 0);
    check(s, onnx_tile_session_bind_output(s, 0, NULL, 0));
    x[0] = 10;
    check(s, onnx_tile_session_run(s));
    assert_true(y[0] == 3); /* no longer bound: not written */
    expect_result(s, x, 2);
    onnx_tile_session_free(s);
}

static void from_memory(void **state)
{
    (void)state;
    onnx_tile *t;
    onnx_tile_session *s;
    void *bytes;
    size_t n;
    float x[3] = {1, 2, 3};
    int64_t dims[] = {1, 3};
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_file(t, path), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_save_memory(t, &bytes, &n), ONNX_TILE_OK);
    onnx_tile_free(t);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    check(s, onnx_tile_session_load_memory(s, bytes, n, NULL));
    memset(bytes, 0xee, n); /* nobody needs them any more */
    onnx_tile_free_bytes(bytes);
    check(s, onnx_tile_session_bind_input(s, 0, x, dims, 2));
    check(s, onnx_tile_session_run(s));
    expect_result(s, x, 1);
    assert_int_equal(onnx_tile_session_load_memory(s, "nonsense", 8, NULL), ONNX_TILE_INPUT);
    assert_int_equal(onnx_tile_session_input_count(s), 0); /* the old model is gone, too */
    onnx_tile_session_free(s);
}

typedef struct job {
    uint32_t threads;
    float start;
    int failures;
} job;

static void *run_job(void *of)
{
    job *j = of;
    onnx_tile_session *s;
    onnx_tile_tensor t;
    const void *data;
    float x[300];
    int64_t dims[] = {100, 3};
    if (onnx_tile_session_create(&s) != ONNX_TILE_OK) return NULL;
    j->failures += onnx_tile_session_set_threads(s, j->threads) != ONNX_TILE_OK;
    for (int round = 0; round < 5; round++) {
        j->failures += onnx_tile_session_load_file(s, path) != ONNX_TILE_OK;
        for (int run = 0; run < 20; run++) {
            for (int k = 0; k < 300; k++) x[k] = j->start + (float)(k + run);
            j->failures += onnx_tile_session_bind_input(s, 0, x, dims, 2) != ONNX_TILE_OK ||
                           onnx_tile_session_run(s) != ONNX_TILE_OK ||
                           onnx_tile_session_result(s, 0, &t, &data) != ONNX_TILE_OK;
            for (int k = 0; k < 300 && j->failures == 0; k++)
                j->failures += ((const float *)data)[k] != x[k] * 2 + 1;
        }
    }
    onnx_tile_session_free(s);
    return NULL;
}

static void sessions_in_two_threads(void **state)
{
    (void)state;
    job jobs[2] = {{.threads = 1, .start = 0}, {.threads = 2, .start = 0.5f}};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, run_job, &jobs[0]), 0);
    run_job(&jobs[1]);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(jobs[0].failures, 0);
    assert_int_equal(jobs[1].failures, 0);
}

/* Runs tasks in the calling thread, and counts the times it is asked to. */
static void run_here(void *of, onnx_tile_task *task, size_t n, void *of_task)
{
    ++*(int *)of;
    assert_in_range(n, 2, 3);
    for (size_t k = 0; k < n; k++) task(of_task, k);
}

static void work_goes_to_the_executor(void **state)
{
    (void)state;
    enum { ROWS = 400000 };
    onnx_tile_session *s;
    onnx_tile_tensor t;
    const void *data;
    int64_t dims[] = {ROWS, 3};
    int asked = 0, with_executor;
    float *x = calloc((size_t)ROWS * 3, sizeof *x);
    assert_non_null(x);
    for (int k = 0; k < ROWS * 3; k++) x[k] = (float)(k % 1000);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    check(s, onnx_tile_session_set_threads(s, 3));
    check(s, onnx_tile_session_bind_shape(s, "x", dims, 2));
    for (int own = 0; own < 2; own++) {
        with_executor = asked;
        check(s, onnx_tile_session_set_executor(s, own ? NULL : run_here, &asked));
        check(s, onnx_tile_session_load_file(s, path));
        check(s, onnx_tile_session_bind_input(s, 0, x, dims, 2));
        check(s, onnx_tile_session_run(s));
        check(s, onnx_tile_session_result(s, 0, &t, &data));
        for (int k = 0; k < ROWS * 3; k++)
            if (((const float *)data)[k] != x[k] * 2 + 1) fail_msg("element %d", k);
    }
    assert_true(with_executor > 0);
    assert_int_equal(asked, with_executor);
    onnx_tile_session_free(s);
    free(x);
}

#else

static void the_engine_is_missed(void **state)
{
    (void)state;
    onnx_tile_session *s;
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_load_file(s, path), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(s), "this build lacks the native engine");
    onnx_tile_session_free(s);
}

#endif

/* Calls out of order, and wrong arguments: refused with a line, never a crash. */
static void misuse(void **state)
{
    (void)state;
    onnx_tile_session *s;
    onnx_tile_tensor t;
    const void *data;
    int64_t dims[] = {0};
    float x = 0;
    assert_int_equal(onnx_tile_session_create(NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_run(NULL), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(NULL), "no session");
    onnx_tile_session_free(NULL);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_string_equal(onnx_tile_session_error(s), "");
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(s), "no model is loaded");
    assert_int_equal(onnx_tile_session_input(s, 0, &t), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_output(s, 0, &t), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_bind_input(s, 0, &x, NULL, 0), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_bind_output(s, 0, &x, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_result(s, 0, &t, &data), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_set_threads(s, 0), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_set_executor(NULL, NULL, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_bind_shape(s, "x", dims, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_load_file(s, ""), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_input_count(s), 0);
#ifdef OT_ENGINE
    check(s, onnx_tile_session_load_file(s, path));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(s), "input 'x' is not bound");
    assert_int_equal(onnx_tile_session_bind_input(s, 0, &x, NULL, 0), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_bind_input(s, 1, &x, NULL, 0), ONNX_TILE_USAGE);
    /* its rows are free */
    assert_int_equal(onnx_tile_session_bind_output(s, 0, &x, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_result(s, 0, &t, &data), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(s), "no results: run first");
#endif
    check(s, onnx_tile_session_set_threads(s, 1));
    onnx_tile_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef OT_ENGINE
        cmocka_unit_test(free_dimensions_follow_the_arrays),
        cmocka_unit_test(outputs_are_written_in_place),
        cmocka_unit_test(from_memory),
        cmocka_unit_test(sessions_in_two_threads),
        cmocka_unit_test(work_goes_to_the_executor),
#else
        cmocka_unit_test(the_engine_is_missed),
#endif
        cmocka_unit_test(misuse),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
