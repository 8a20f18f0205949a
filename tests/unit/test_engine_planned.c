/* Sessions that plan what they load: figures and results against the same model without tiles, of
 * sizes that are bound, and of sizes as they come; files that were tiled for another runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_tile.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE 192 /* of the largest picture */

/* A chain of convolutions whose values are large against its weights; rows and columns are free. */
static const char MODEL[] =
    "model ir 8 opset 17\ngraph main {\n  input %x : float32[1,3,?,?]\n"
    "  init %w : float32[24,3,3,3] = random 1 * 0.2\n"
    "  init %v : float32[24,24,3,3] = random 2 * 0.1\n"
    "  init %u : float32[3,24,3,3] = random 3 * 0.1\n"
    "  %a = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n  %b = Relu(%a)\n"
    "  %c = Conv(%b, %v) {pads=[1, 1, 1, 1]}\n  %d = Relu(%c)\n"
    "  %e = Conv(%d, %v) {pads=[1, 1, 1, 1]}\n  %f = Relu(%e)\n"
    "  %y : float32[1,3,?,?] = Conv(%f, %u) {pads=[1, 1, 1, 1]}\n  output %y\n}\n";

static char path[] = "/tmp/onnx-tile-planned-XXXXXX.ot";
static float *picture;

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemps(path, 3);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    picture = malloc(3 * SIDE * SIDE * sizeof *picture);
    if (!f || !picture || fputs(MODEL, f) < 0) return -1;
    for (int k = 0; k < 3 * SIDE * SIDE; k++) picture[k] = (float)(k * 7919 % 1009) / 1009;
    return fclose(f);
}

static int remove_file(void **state)
{
    (void)state;
    free(picture);
    return unlink(path);
}

static void check(onnx_tile_session *s, onnx_tile_status status)
{
    if (status != ONNX_TILE_OK) fail_msg("%s", onnx_tile_session_error(s));
}

static onnx_tile_session *prepare(onnx_tile_plan plan, int64_t side)
{
    onnx_tile_session *s;
    const int64_t dims[] = {1, 3, side, side};
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    check(s, onnx_tile_session_set_plan(s, plan));
    if (side) check(s, onnx_tile_session_bind_shape(s, "x", dims, 4));
    return s;
}

/* side 0: sizes as they come. */
static onnx_tile_session *open_session(onnx_tile_plan plan, int64_t side)
{
    onnx_tile_session *s = prepare(plan, side);
    check(s, onnx_tile_session_load_file(s, path));
    return s;
}

static const float *run(onnx_tile_session *s, int64_t rows, int64_t columns)
{
    const int64_t dims[] = {1, 3, rows, columns};
    onnx_tile_tensor t;
    const void *data;
    check(s, onnx_tile_session_bind_input(s, 0, picture, dims, 4));
    check(s, onnx_tile_session_run(s));
    check(s, onnx_tile_session_result(s, 0, &t, &data));
    assert_int_equal(t.rank, 4);
    assert_int_equal(t.dims[2], rows);
    assert_int_equal(t.dims[3], columns);
    return data;
}

/* Both give the same, but for rounding, and the result is not zero. */
static void expect_same(onnx_tile_session *s, onnx_tile_session *plain, int64_t rows,
                        int64_t columns)
{
    const float *got = run(s, rows, columns), *want = run(plain, rows, columns);
    double most = 0;
    for (int64_t k = 0; k < 3 * rows * columns; k++) {
        if (!(fabs((double)got[k] - (double)want[k]) <= 1e-5)) fail_msg("element %d", (int)k);
        most = fmax(most, fabs((double)want[k]));
    }
    assert_true(most > 0.01);
}

static int64_t peak_of(const onnx_tile_session *s)
{
    int64_t peak, planned;
    onnx_tile_session_memory(s, &peak, &planned);
    assert_true(peak >= planned && planned >= 0);
    return peak;
}

static void bound_sizes_are_planned_when_loading(void **state)
{
    (void)state;
    onnx_tile_session *plain = open_session(ONNX_TILE_PLAN_AS_FILE, SIDE);
    for (int plan = ONNX_TILE_PLAN_TIME; plan <= ONNX_TILE_PLAN_MEMORY; plan++) {
        onnx_tile_session *s = open_session((onnx_tile_plan)plan, SIDE);
        expect_same(s, plain, SIDE, SIDE);
        if (plan == ONNX_TILE_PLAN_MEMORY) assert_true(peak_of(s) * 2 < peak_of(plain));
        onnx_tile_session_free(s);
    }
    onnx_tile_session_free(plain);
}

static void sizes_are_planned_as_they_come(void **state)
{
    (void)state;
    onnx_tile_tensor t;
    onnx_tile_session *plain = open_session(ONNX_TILE_PLAN_NOT, 0),
                      *s = open_session(ONNX_TILE_PLAN_MEMORY, 0);
    assert_int_equal(peak_of(s), 0); /* nothing was planned yet */
    check(s, onnx_tile_session_input(s, 0, &t));
    assert_int_equal(t.dims[2], -1);
    check(s, onnx_tile_session_output(s, 0, &t));
    assert_int_equal(t.dims[2], -1);
    expect_same(s, plain, SIDE, SIDE);
    assert_true(peak_of(s) * 2 < peak_of(plain));
    /* more sizes than are kept, and some of them again */
    for (int64_t k = 0; k < 14; k++) expect_same(s, plain, SIDE - 16 * (k % 7), SIDE - 8 * (k % 3));
    onnx_tile_session_free(s);
    onnx_tile_session_free(plain);
}

static void a_size_that_the_model_does_not_take_is_named(void **state)
{
    (void)state;
    const int64_t wrong[] = {1, 4, 30, 30};
    onnx_tile_session *plain = open_session(ONNX_TILE_PLAN_NOT, 0),
                      *s = open_session(ONNX_TILE_PLAN_MEMORY, 0);
    for (int again = 0; again < 2; again++) {
        char message[200];
        check(s, onnx_tile_session_bind_input(s, 0, picture, wrong, 4));
        check(plain, onnx_tile_session_bind_input(plain, 0, picture, wrong, 4));
        assert_int_equal(onnx_tile_session_run(plain), ONNX_TILE_INPUT);
        assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_INPUT);
        snprintf(message, sizeof message, "%.190s", onnx_tile_session_error(plain));
        assert_non_null(strstr(message, "'x'"));
        assert_string_equal(onnx_tile_session_error(s), message);
        expect_same(s, plain, 64, 64);
    }
    onnx_tile_session_free(s);
    onnx_tile_session_free(plain);
}

/* What shares a model runs any size; so does the session that is shared, from then on. */
static void shared_sessions_take_any_size(void **state)
{
    (void)state;
    onnx_tile_session *plain = open_session(ONNX_TILE_PLAN_NOT, 0),
                      *s = open_session(ONNX_TILE_PLAN_MEMORY, 0), *other;
    onnx_tile_tensor t;
    const void *data;
    expect_same(s, plain, 64, 48);
    check(s, onnx_tile_session_share(s, &other));
    assert_int_equal(onnx_tile_session_result(s, 0, &t, &data), ONNX_TILE_USAGE);
    for (int64_t k = 0; k < 3; k++) {
        expect_same(other, plain, 64 + k, 48);
        expect_same(s, plain, 64, 48 + k);
    }
    onnx_tile_session_free(s);
    expect_same(other, plain, 33, 31);
    onnx_tile_session_free(other);
    onnx_tile_session_free(plain);

    plain = open_session(ONNX_TILE_PLAN_NOT, SIDE);
    s = open_session(ONNX_TILE_PLAN_MEMORY, SIDE);
    check(s, onnx_tile_session_share(s, &other));
    expect_same(other, plain, SIDE, SIDE);
    assert_true(peak_of(other) * 2 < peak_of(plain));
    onnx_tile_session_free(other);
    onnx_tile_session_free(s);
    onnx_tile_session_free(plain);
}

/* ---- several threads ---- */

#define USERS 8

typedef struct user {
    onnx_tile_session *s;
    const float *want;
    int64_t side;
    int wrong, ended;
} user;

static void *run_often(void *of)
{
    user *u = of;
    const int64_t dims[] = {1, 3, u->side, u->side};
    for (int k = 0; k < 6; k++) {
        onnx_tile_tensor t;
        const void *data;
        onnx_tile_status status = onnx_tile_session_bind_input(u->s, 0, picture, dims, 4);
        if (status == ONNX_TILE_OK) status = onnx_tile_session_run(u->s);
        u->ended += status == ONNX_TILE_CANCELLED;
        if (status == ONNX_TILE_CANCELLED) continue;
        if (status == ONNX_TILE_OK) status = onnx_tile_session_result(u->s, 0, &t, &data);
        u->wrong += status != ONNX_TILE_OK ||
                    memcmp(data, u->want, (size_t)(3 * u->side * u->side) * sizeof(float)) != 0;
    }
    return NULL;
}

/* Planned when they were loaded or for sizes as they come; one of them is cancelled again and
 * again meanwhile. */
static void threads_run_planned_sessions(void **state)
{
    (void)state;
    for (int is_free = 0; is_free < 2; is_free++) {
        const int64_t side = is_free ? 64 : SIDE;
        const size_t bytes = (size_t)(3 * side * side) * sizeof(float);
        onnx_tile_session *s = open_session(ONNX_TILE_PLAN_MEMORY, is_free ? 0 : SIDE);
        pthread_t threads[USERS];
        user users[USERS];
        float *want = malloc(bytes);
        assert_non_null(want);
        for (int k = 0; k < USERS; k++) {
            users[k] = (user){.s = s, .want = want, .side = side};
            if (k > 0) check(s, onnx_tile_session_share(s, &users[k].s));
        }
        memcpy(want, run(users[1].s, side, side), bytes);
        for (int k = 0; k < USERS; k++)
            assert_int_equal(pthread_create(&threads[k], NULL, run_often, &users[k]), 0);
        for (int k = 0; k < 50; k++) {
            onnx_tile_session_cancel(users[USERS - 1].s);
            usleep(500);
        }
        for (int k = 0; k < USERS; k++) pthread_join(threads[k], NULL);
        for (int k = 0; k < USERS; k++) {
            assert_int_equal(users[k].wrong, 0);
            assert_true(users[k].ended == 0 || k == USERS - 1);
        }
        for (int k = USERS; k-- > 0;) onnx_tile_session_free(users[k].s);
        free(want);
    }
}

/* Tiled for ONNX Runtime: the tiles go, others come; goal memory says so in the file. */
static void files_for_another_runtime_are_planned_anew(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 3, SIDE, SIDE};
    for (int goal = ONNX_TILE_GOAL_TIME; goal <= ONNX_TILE_GOAL_MEMORY; goal++) {
        onnx_tile *t;
        void *bytes;
        size_t n;
        assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_set_goal(t, (onnx_tile_goal)goal), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_set_force(t, 1), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_bind_shape(t, "x", dims, 4), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_load_file(t, path), ONNX_TILE_OK);
        if (onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
        assert_true(onnx_tile_region_count(t) > 0);
        assert_int_equal(onnx_tile_save_memory(t, &bytes, &n), ONNX_TILE_OK);
        onnx_tile_free(t);
        onnx_tile_session *s = prepare(ONNX_TILE_PLAN_AS_FILE, SIDE),
                          *not_planned = prepare(ONNX_TILE_PLAN_NOT, SIDE);
        check(s, onnx_tile_session_load_memory(s, bytes, n, NULL));
        check(not_planned, onnx_tile_session_load_memory(not_planned, bytes, n, NULL));
        memset(bytes, 0xee, n); /* nobody needs them any more */
        onnx_tile_free_bytes(bytes);
        assert_string_equal(onnx_tile_session_notice(s), "");
        expect_same(s, not_planned, SIDE, SIDE);
        if (goal == ONNX_TILE_GOAL_MEMORY) assert_true(peak_of(s) * 2 < peak_of(not_planned));
        onnx_tile_session_free(s);
        onnx_tile_session_free(not_planned);
    }
}

/* Planning is part of the run that it is for. */
static void planning_for_a_run_ends_with_it(void **state)
{
    (void)state;
    const int64_t dims[] = {1, 3, SIDE, SIDE};
    onnx_tile_session *plain = open_session(ONNX_TILE_PLAN_NOT, 0),
                      *s = open_session(ONNX_TILE_PLAN_MEMORY, 0);
    check(s, onnx_tile_session_bind_input(s, 0, picture, dims, 4));
    check(s, onnx_tile_session_set_timeout(s, 1e-9));
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_TIMEOUT);
    check(s, onnx_tile_session_set_timeout(s, 0));
    expect_same(s, plain, SIDE, SIDE);
    assert_true(peak_of(s) * 2 < peak_of(plain));
    onnx_tile_session_free(s);
    onnx_tile_session_free(plain);
}

static void what_is_no_plan_is_refused(void **state)
{
    (void)state;
    onnx_tile_session *s = prepare(ONNX_TILE_PLAN_AS_FILE, 0);
    assert_int_equal(onnx_tile_session_set_plan(NULL, ONNX_TILE_PLAN_NOT), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_session_set_plan(s, (onnx_tile_plan)4), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_session_error(s), "there is no such plan");
    assert_int_equal(onnx_tile_session_set_plan(s, (onnx_tile_plan)-1), ONNX_TILE_USAGE);
    onnx_tile_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_sizes_are_planned_when_loading),
        cmocka_unit_test(sizes_are_planned_as_they_come),
        cmocka_unit_test(a_size_that_the_model_does_not_take_is_named),
        cmocka_unit_test(shared_sessions_take_any_size),
        cmocka_unit_test(threads_run_planned_sessions),
        cmocka_unit_test(files_for_another_runtime_are_planned_anew),
        cmocka_unit_test(planning_for_a_run_ends_with_it),
        cmocka_unit_test(what_is_no_plan_is_refused),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
