/* Sessions of one model side by side, runs that are ended, and what a second run allocates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_tile.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define RUNS    40
#define NUMBERS 4096

/* Convolutions that pack their weights, a product, a chain; everything is of fixed size. */
static const char MODEL[] =
    "model ir 8 opset 17\ngraph main {\n  input %x : float32[1,4,32,32]\n"
    "  init %w : float32[4,4,3,3] = random 1 * 0.2\n  init %v : float32[4,4,1,1] = random 2 * 0.5\n"
    "  init %m : float32[32,32] = random 3 * 0.2\n"
    "  %a = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n  %b = Relu(%a)\n  %c = Conv(%b, %v)\n"
    "  %d = MatMul(%c, %m)\n  %e = Sigmoid(%d)\n  %y : float32[1,4,32,32] = Add(%e, %x)\n"
    "  output %y\n}\n";

static _Atomic long counted;

static void *counting(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size) {
        atomic_fetch_add(&counted, 1);
        return realloc(ptr, new_size);
    }
    free(ptr);
    return NULL;
}

/* Writes MODEL to a new file; path: a template of six X before ".ot". */
static void write_model(char *path)
{
    int fd = mkstemps(path, 3);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    assert_non_null(f);
    assert_true(fputs(MODEL, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static onnx_tile_session *open_session(uint32_t threads)
{
    char path[] = "/tmp/onnx-tile-sharing-XXXXXX.ot";
    onnx_tile_session *s;
    write_model(path);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_set_threads(s, threads), ONNX_TILE_OK);
    if (onnx_tile_session_load_file(s, path) != ONNX_TILE_OK)
        fail_msg("%s", onnx_tile_session_error(s));
    remove(path);
    return s;
}

static onnx_tile_session *share(onnx_tile_session *of)
{
    onnx_tile_session *s;
    if (onnx_tile_session_share(of, &s) != ONNX_TILE_OK)
        fail_msg("%s", onnx_tile_session_error(of));
    return s;
}

typedef struct user {
    onnx_tile_session *s;
    float x[NUMBERS], want[NUMBERS], y[NUMBERS];
    int wrong;
} user;

static bool run_once(user *u, float *y)
{
    return onnx_tile_session_bind_input(u->s, 0, u->x, NULL, 0) == ONNX_TILE_OK &&
           onnx_tile_session_bind_output(u->s, 0, y, sizeof u->y) == ONNX_TILE_OK &&
           onnx_tile_session_run(u->s) == ONNX_TILE_OK;
}

static user *new_user(onnx_tile_session *s, onnx_tile_session *alone, int seed)
{
    user *u = calloc(1, sizeof *u);
    assert_non_null(u);
    for (int k = 0; k < NUMBERS; k++) u->x[k] = (float)((k * 37 + seed * 101) % 255) / 64 - 2;
    u->s = alone;
    assert_true(run_once(u, u->want));
    u->s = s;
    return u;
}

static void *run_many(void *of)
{
    user *u = of;
    for (int k = 0; k < RUNS; k++)
        u->wrong += !run_once(u, u->y) || memcmp(u->y, u->want, sizeof u->y) != 0;
    return NULL;
}

static void threads_run_sessions_of_one_model(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        onnx_tile_session *alone = open_session(workers), *first = open_session(workers);
        onnx_tile_session *others[THREADS];
        pthread_t threads[THREADS];
        user *users[THREADS];
        for (int k = 0; k < THREADS; k++) {
            others[k] = k == 0 ? first : share(first);
            users[k] = new_user(others[k], alone, k);
        }
        for (int k = 0; k < THREADS; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, run_many, users[k]), 0);
        for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
        onnx_tile_session_free(first); /* the model goes with the last */
        for (int k = 0; k < THREADS; k++) {
            assert_int_equal(users[k]->wrong, 0);
            free(users[k]);
            if (k > 0) onnx_tile_session_free(others[k]);
        }
        onnx_tile_session_free(alone);
    }
}

/* What a session of the model takes beside the first. */
static void weights_are_held_once(void **state)
{
    (void)state;
    onnx_tile_session *s = open_session(1), *other, *none = NULL;
    other = share(s);
    assert_int_equal(onnx_tile_session_share(other, &none), ONNX_TILE_USAGE);
    assert_null(none);
    assert_non_null(strstr(onnx_tile_session_error(other), "share the one that loaded it"));
    assert_int_equal(onnx_tile_session_load_file(s, "none.onnx"), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_session_error(s), "sessions share the model"));
    assert_int_equal(onnx_tile_session_load_file(other, "none.onnx"), ONNX_TILE_USAGE);
    onnx_tile_session_free(other);
    assert_int_equal(onnx_tile_session_load_file(s, "none.onnx"), ONNX_TILE_INPUT);
    assert_int_equal(onnx_tile_session_share(s, &none), ONNX_TILE_USAGE); /* nothing is loaded */
    assert_int_equal(onnx_tile_session_share(NULL, &none), ONNX_TILE_USAGE);
    onnx_tile_session_free(s);
}

static void runs_after_the_first_allocate_nothing(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 2; workers++) {
        ot_set_alloc_hook(counting);
        onnx_tile_session *s = open_session(workers);
        assert_true(counted > 0);
        user *u = new_user(s, s, 1);
        const long before = counted;
        for (int k = 0; k < 3; k++) assert_true(run_once(u, u->y));
        assert_int_equal(counted, before);
        free(u);
        onnx_tile_session_free(s);
        ot_set_alloc_hook(NULL);
    }
}

/* ---- runs that are ended ---- */

static void runs_end(void **state)
{
    (void)state;
    onnx_tile_session *s = open_session(1);
    user *u = new_user(s, s, 2);
    assert_int_equal(onnx_tile_session_set_timeout(s, 1e-9), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_TIMEOUT);
    assert_non_null(strstr(onnx_tile_session_error(s), "longer than 1e-09 seconds"));
    assert_int_equal(onnx_tile_session_set_timeout(s, -1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_set_timeout(s, 0), ONNX_TILE_OK);
    onnx_tile_session_cancel(s); /* nothing runs */
    onnx_tile_session_cancel(NULL);
    assert_true(run_once(u, u->y));
    assert_memory_equal(u->y, u->want, sizeof u->y);
    onnx_tile_session_free(s);
    free(u);
}

/* ---- loading that is ended ---- */

static onnx_tile_session *loading;
static long until_cancelled; /* allocations of the engine */

static void *cancelling(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && until_cancelled-- == 0) onnx_tile_session_cancel(loading);
    return counting(ptr, old_size, new_size);
}

/* At any time before its last weights are packed. */
static void loading_ends(void **state)
{
    (void)state;
    char path[] = "/tmp/onnx-tile-sharing-XXXXXX.ot";
    long ended = 0;
    write_model(path);
    assert_int_equal(onnx_tile_session_create(&loading), ONNX_TILE_OK);
    ot_set_alloc_hook(cancelling);
    for (long k = 0; until_cancelled = k, k < 100; k++) {
        const onnx_tile_status st = onnx_tile_session_load_file(loading, path);
        if (until_cancelled >= 0) break; /* it has no more */
        if (st == ONNX_TILE_OK) continue;
        ended++;
        assert_int_equal(st, ONNX_TILE_CANCELLED);
        assert_string_equal(onnx_tile_session_error(loading), "loading was cancelled");
        assert_int_equal(onnx_tile_session_input_count(loading), 0);
    }
    assert_true(until_cancelled >= 0);
    assert_true(ended >= 2);
    assert_int_equal(onnx_tile_session_input_count(loading), 1);
    onnx_tile_session_free(loading);
    ot_set_alloc_hook(NULL);
    remove(path);
}

static void planning_ends(void **state)
{
    (void)state;
    onnx_tile *t;
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    char path[] = "/tmp/onnx-tile-sharing-XXXXXX.ot";
    write_model(path);
    assert_int_equal(onnx_tile_load_file(t, path), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_timeout(t, 1e-9), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_TIMEOUT);
    assert_string_equal(onnx_tile_error(t), "planning took longer than 1e-09 seconds");
    assert_int_equal(onnx_tile_set_timeout(t, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE); /* it may be half changed */
    assert_int_equal(onnx_tile_load_file(t, path), ONNX_TILE_OK);
    onnx_tile_cancel(t);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_OK);
    onnx_tile_free(t);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_run_sessions_of_one_model),
        cmocka_unit_test(weights_are_held_once),
        cmocka_unit_test(runs_after_the_first_allocate_nothing),
        cmocka_unit_test(runs_end),
        cmocka_unit_test(loading_ends),
        cmocka_unit_test(planning_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
