/* Models whose constants lie in memory of the caller's: read from there, planned, written without
 * them, and run when that memory is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx_tile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 512 };

/* ---- y = x + w, of N floats, in the file's form ---- */

typedef struct message {
    uint8_t at[1024];
    size_t n;
} message;

static void put_number(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) m->at[m->n++] = (uint8_t)(value | 0x80);
    m->at[m->n++] = (uint8_t)value;
}

static void put_int(message *m, uint32_t field, uint64_t value)
{
    put_number(m, field << 3);
    put_number(m, value);
}

static void put_bytes(message *m, uint32_t field, const void *bytes, size_t n)
{
    put_number(m, field << 3 | 2);
    put_number(m, n);
    memcpy(m->at + m->n, bytes, n);
    m->n += n;
}

static void put_text(message *m, uint32_t field, const char *text)
{
    put_bytes(m, field, text, strlen(text));
}

static void put_message(message *m, uint32_t field, const message *inner)
{
    put_bytes(m, field, inner->at, inner->n);
}

static void put_value(message *graph, uint32_t field, const char *name)
{
    message dim = {0}, shape = {0}, tensor = {0}, type = {0}, value = {0};
    put_int(&dim, 1, N);
    put_message(&shape, 1, &dim);
    put_int(&tensor, 1, ONNX_TILE_FLOAT32);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_message(&value, 2, &type);
    put_message(graph, field, &value);
}

/* w: external data at `location`. */
static message make_model(const char *location)
{
    message entry = {0}, w = {0}, node = {0}, graph = {0}, opset = {0}, model = {0};
    put_text(&node, 1, "x");
    put_text(&node, 1, "w");
    put_text(&node, 2, "y");
    put_text(&node, 4, "Add");
    put_text(&entry, 1, "location");
    put_text(&entry, 2, location);
    put_int(&w, 1, N);
    put_int(&w, 2, ONNX_TILE_FLOAT32);
    put_text(&w, 8, "w");
    put_message(&w, 13, &entry);
    put_int(&w, 14, 1);
    put_message(&graph, 1, &node);
    put_text(&graph, 2, "sum");
    put_message(&graph, 5, &w);
    put_value(&graph, 11, "x");
    put_value(&graph, 12, "y");
    put_int(&opset, 2, 17);
    put_int(&model, 1, 8);
    put_message(&model, 7, &graph);
    put_message(&model, 8, &opset);
    return model;
}

static float *make_array(float first)
{
    float *a = malloc(N * sizeof *a);
    assert_non_null(a);
    for (int k = 0; k < N; k++) a[k] = first + (float)k;
    return a;
}

static void expect_sum(onnx_tile_session *s, float first)
{
    float *x = make_array(1);
    const void *data;
    onnx_tile_tensor y;
    assert_int_equal(onnx_tile_session_bind_input(s, 0, x, NULL, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_run(s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_result(s, 0, &y, &data), ONNX_TILE_OK);
    for (int k = 0; k < N; k++) assert_true(((const float *)data)[k] == first + (float)k + x[k]);
    free(x);
}

/* ---- tests ---- */

/* Counts in *of. */
static void take_back(void *of, const void *data, size_t bytes)
{
    float *w = (float *)(uintptr_t)data;
    assert_int_equal(bytes, N * sizeof *w);
    memset(w, 0xff, bytes);
    ++*(int *)of;
}

static void memory_may_go_when_a_session_is_made(void **state)
{
    (void)state;
    const message model = make_model("0");
    onnx_tile_session *s, *other;
    float *w = make_array(3);
    int n_returned = 0;
    const onnx_tile_lent lent = {w, N * sizeof *w, take_back, &n_returned};
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_load_lent(s, model.at, model.n, &lent, 1), ONNX_TILE_OK);
    assert_int_equal(n_returned, 1);
    free(w);
    expect_sum(s, 3);
    expect_sum(s, 3);
    assert_int_equal(onnx_tile_session_share(s, &other), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_session_error(s), "were lent"));
    onnx_tile_session_free(s);
}

static void plans_leave_it_outside_unless_they_are_to_hold_it(void **state)
{
    (void)state;
    const message model = make_model("1");
    onnx_tile *t;
    onnx_tile_session *s;
    void *outside, *whole;
    size_t n_outside, n_whole;
    float *w = make_array(5);
    const onnx_tile_lent lent[2] = {{.data = ""}, {.data = w, .bytes = N * sizeof *w}};
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_runtime(t, "engine"), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_lent(t, model.at, model.n, lent, 2), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_save_lent(t, &outside, &n_outside), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_save_memory(t, &whole, &n_whole), ONNX_TILE_OK);
    onnx_tile_free(t);
    assert_true(n_outside < N * sizeof *w && n_whole > N * sizeof *w);
    assert_int_equal(onnx_tile_session_create(&s), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_session_load_lent(s, outside, n_outside, lent, 2), ONNX_TILE_OK);
    free(w);
    expect_sum(s, 5);
    assert_int_equal(onnx_tile_session_load_memory(s, whole, n_whole, NULL), ONNX_TILE_OK);
    expect_sum(s, 5);
    onnx_tile_session_free(s);
    onnx_tile_free_bytes(outside);
    onnx_tile_free_bytes(whole);
}

static void what_is_not_lent_is_refused(void **state)
{
    (void)state;
    static const char *const locations[] = {"1", "-0", "", "0x0", "w.data", "18446744073709551616"};
    float *w = make_array(5);
    const onnx_tile_lent lent = {.data = w, .bytes = N * sizeof *w},
                         shorter = {.data = w, .bytes = N * sizeof *w - 1},
                         nothing = {.bytes = N * sizeof *w};
    const message model = make_model("0");
    onnx_tile *t;
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    for (size_t k = 0; k < sizeof locations / sizeof *locations; k++) {
        const message wrong = make_model(locations[k]);
        assert_int_equal(onnx_tile_load_lent(t, wrong.at, wrong.n, &lent, 1), ONNX_TILE_INPUT);
        assert_non_null(strstr(onnx_tile_error(t), "'w': external data is none of the pieces"));
    }
    assert_int_equal(onnx_tile_load_lent(t, model.at, model.n, NULL, 0), ONNX_TILE_INPUT);
    assert_int_equal(onnx_tile_load_lent(t, model.at, model.n, &shorter, 1), ONNX_TILE_INPUT);
    assert_non_null(strstr(onnx_tile_error(t), "passes the end of '0' (2047 bytes)"));
    assert_int_equal(onnx_tile_load_lent(t, model.at, model.n, NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_lent(t, NULL, 1, &lent, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_lent(t, model.at, model.n, &nothing, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_memory(t, model.at, model.n, NULL), ONNX_TILE_INPUT);
    onnx_tile_free(t);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_go_when_a_session_is_made),
        cmocka_unit_test(plans_leave_it_outside_unless_they_are_to_hold_it),
        cmocka_unit_test(what_is_not_lent_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
