/* One public session and several threads: each call waits for the others, and the lock makes
 * several calls one. For ThreadSanitizer above all (`make tsan`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_tile.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define RUNS    60
#define NUMBERS 600

/* y = max(x, 0) * 2 + 1; two threads of its own share each run. */
static const char MODEL[] = "model ir 8 opset 17\ngraph main {\n"
                            "  input %x : float32[20,30]\n  init %two : float32[] = fill 2\n"
                            "  init %one : float32[] = fill 1\n  %r = Relu(%x)\n"
                            "  %p = Mul(%r, %two)\n  %y : float32[20,30] = Add(%p, %one)\n"
                            "  output %y\n}\n";

typedef struct user {
    onnx_tile_session *s;
    float x[NUMBERS], y[NUMBERS];
    int wrong;
} user;

static onnx_tile_session *open_session(void)
{
    char path[] = "/tmp/onnx-tile-threads-XXXXXX.ot";
    int fd = mkstemps(path, 3);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    onnx_tile_session *s;
    assert_non_null(f);
    assert_true(fputs(MODEL, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_set_threads(s, 2), ONNX_TILE_OK);
    if (onnx_tile_session_load_file(s, path) != ONNX_TILE_OK)
        fail_msg("%s", onnx_tile_session_error(s));
    remove(path);
    return s;
}

/* Binds, runs and reads under the lock, into its own memory every other time. */
static void *run_locked(void *of)
{
    user *u = of;
    for (int k = 0; k < RUNS; k++) {
        const void *data = NULL;
        onnx_tile_tensor t;
        onnx_tile_session_lock(u->s);
        bool ok = onnx_tile_session_bind_input(u->s, 0, u->x, NULL, 0) == ONNX_TILE_OK &&
                  onnx_tile_session_bind_output(u->s, 0, k % 2 ? u->y : NULL, sizeof u->y) ==
                      ONNX_TILE_OK &&
                  onnx_tile_session_run(u->s) == ONNX_TILE_OK &&
                  onnx_tile_session_result(u->s, 0, &t, &data) == ONNX_TILE_OK;
        const float *y = data;
        for (int j = 0; ok && j < NUMBERS; j++) ok = y[j] == (u->x[j] > 0 ? u->x[j] * 2 + 1 : 1);
        onnx_tile_session_unlock(u->s);
        u->wrong += !ok;
    }
    return NULL;
}

/* Calls as they come, without the lock: results are anybody's, and nothing else happens. */
static void *call_freely(void *of)
{
    user *u = of;
    for (int k = 0; k < RUNS; k++) {
        onnx_tile_tensor t;
        const void *data;
        char *json = NULL;
        int64_t peak;
        u->wrong += onnx_tile_session_bind_input(u->s, 0, u->x, NULL, 0) != ONNX_TILE_OK;
        u->wrong += onnx_tile_session_run(u->s) != ONNX_TILE_OK;
        u->wrong += onnx_tile_session_input(u->s, 0, &t) != ONNX_TILE_OK;
        u->wrong += onnx_tile_session_output_count(u->s) != 1;
        u->wrong += onnx_tile_session_result(u->s, 0, &t, &data) != ONNX_TILE_OK;
        u->wrong += onnx_tile_session_result(u->s, 7, &t, &data) != ONNX_TILE_USAGE;
        if (onnx_tile_session_profile(u->s, &json) == ONNX_TILE_OK) onnx_tile_free_bytes(json);
        onnx_tile_session_memory(u->s, &peak, NULL);
    }
    return NULL;
}

static void share(void *(*what)(void *))
{
    static user users[THREADS];
    pthread_t threads[THREADS];
    onnx_tile_session *s = open_session();
    for (int k = 0; k < THREADS; k++) {
        users[k].s = s;
        users[k].wrong = 0;
        for (int j = 0; j < NUMBERS; j++) users[k].x[j] = (float)(j % 17 - 8 + 100 * k * (j % 2));
        assert_int_equal(pthread_create(&threads[k], NULL, what, &users[k]), 0);
    }
    for (int k = 0; k < THREADS; k++) {
        assert_int_equal(pthread_join(threads[k], NULL), 0);
        assert_int_equal(users[k].wrong, 0);
    }
    onnx_tile_session_free(s);
}

static void threads_share_a_session(void **state)
{
    (void)state;
    share(run_locked);
}

static void calls_wait_for_each_other(void **state)
{
    (void)state;
    share(call_freely);
}

/* Memory of an input cannot be an output's, in whole or in part. */
static void memory_bound_twice(void **state)
{
    (void)state;
    static float x[NUMBERS], y[2 * NUMBERS];
    onnx_tile_session *s = open_session();
    const size_t bytes = sizeof x;
    assert_int_equal(onnx_tile_session_bind_input(s, 0, x, NULL, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_bind_output(s, 0, x, bytes), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(s),
                        "output 'y' and input 'x' are bound to the same memory");
    assert_int_equal(onnx_tile_session_bind_input(s, 0, y + 1, NULL, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_bind_output(s, 0, y, bytes), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_bind_input(s, 0, y + NUMBERS, NULL, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_OK);
    onnx_tile_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_session),
        cmocka_unit_test(calls_wait_for_each_other),
        cmocka_unit_test(memory_bound_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
