/* The public API: order of calls, argument checks, errors, two handles in two threads. The model is
 * a 300-byte chain of element-wise operators, written here field by field so that the test depends
 * on no file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx_tile.h"

/* ---- a protobuf writer of a few lines ---- */

typedef struct bytes {
    unsigned char at[2048];
    size_t n;
} bytes;

static void put_varint(bytes *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) b->at[b->n++] = (unsigned char)(v | 0x80);
    b->at[b->n++] = (unsigned char)v;
}

static void put_int(bytes *b, unsigned number, uint64_t v)
{
    put_varint(b, number << 3);
    put_varint(b, v);
}

static void put_bytes(bytes *b, unsigned number, const void *p, size_t n)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, n);
    memcpy(b->at + b->n, p, n);
    b->n += n;
}

static void put_text(bytes *b, unsigned number, const char *s)
{
    put_bytes(b, number, s, strlen(s));
}
static void put_message(bytes *b, unsigned number, const bytes *m)
{
    put_bytes(b, number, m->at, m->n);
}

/* ValueInfoProto: float [1, 8, 256, 256]; rows: name of the third dimension, which is then free,
 * or NULL */
static bytes value_info(const char *name, const char *rows)
{
    static const uint64_t dims[] = {1, 8, 256, 256};
    bytes v = {0}, type = {0}, tensor = {0}, shape = {0};
    for (size_t k = 0; k < 4; k++) {
        bytes dim = {0};
        if (rows && k == 2)
            put_text(&dim, 2, rows);
        else
            put_int(&dim, 1, dims[k]);
        put_message(&shape, 1, &dim);
    }
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&v, 1, name);
    put_message(&v, 2, &type);
    return v;
}

static bytes node(const char *op, const char *in, const char *out)
{
    bytes n = {0};
    put_text(&n, 1, in);
    put_text(&n, 2, out);
    put_text(&n, 3, out);
    put_text(&n, 4, op);
    return n;
}

/* x -> first -> Relu -> y */
static bytes chain_from(const char *first, const char *rows)
{
    bytes model = {0}, graph = {0}, opset = {0};
    bytes a = node(first, "x", "s"), b = node("Relu", "s", "y"), x = value_info("x", rows),
          y = value_info("y", rows);
    put_message(&graph, 1, &a);
    put_message(&graph, 1, &b);
    put_text(&graph, 2, "chain");
    put_message(&graph, 11, &x);
    put_message(&graph, 12, &y);
    put_int(&opset, 2, 13);
    put_int(&model, 1, 8);
    put_message(&model, 7, &graph);
    put_message(&model, 8, &opset);
    return model;
}

static bytes chain_of(const char *rows) { return chain_from("Sigmoid", rows); }
static bytes chain_model(void) { return chain_of(NULL); }

/* ---- tests ---- */

static void whole_path_in_memory(void **state)
{
    (void)state;
    onnx_tile *t;
    const char *json;
    void *out = NULL;
    size_t n = 0;
    bytes m = chain_model();

    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, 65536), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_force(t, 1), ONNX_TILE_OK);
    if (onnx_tile_load_memory(t, m.at, m.n, NULL) != ONNX_TILE_OK)
        fail_msg("%s", onnx_tile_error(t));
    memset(&m, 0xA8, sizeof m); /* the handle must not read the caller's bytes any more */
    if (onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_region_count(t), 1);
    assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_OK);
    assert_non_null(strstr(json, "\"nodes\": [\"s\", \"y\"]"));
    if (onnx_tile_save_memory(t, &out, &n) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_true(n > 100);
    assert_non_null(memmem(out, n, "tile/r", 6));

    /* the result is a model again, and the handle takes another one */
    assert_int_equal(onnx_tile_load_memory(t, out, n, NULL), ONNX_TILE_OK);
    onnx_tile_free_bytes(out);
    assert_int_equal(onnx_tile_region_count(t), 0);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_OK);
    onnx_tile_free(t);
}

static void calls_out_of_order(void **state)
{
    (void)state;
    onnx_tile *t;
    const char *json;
    void *out;
    size_t n;
    bytes m = chain_model();

    assert_int_equal(onnx_tile_create(NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_string_equal(onnx_tile_error(t), "");
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE);
    assert_string_equal(onnx_tile_error(t), "no model is loaded");
    assert_int_equal(onnx_tile_save_file(t, "/nowhere/x"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_memory(t, &out, &n), ONNX_TILE_USAGE);
    assert_null(out);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_string_equal(onnx_tile_error(t), "");
    assert_int_equal(onnx_tile_save_report(t, "/nowhere/r.xml"), ONNX_TILE_USAGE); /* not planned */
    assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_USAGE);
    assert_null(json);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_report(t, "/nowhere/r.xml"), ONNX_TILE_USAGE); /* not kept */
    assert_non_null(strstr(onnx_tile_error(t), "onnx_tile_keep_report"));
    assert_int_equal(onnx_tile_keep_report(t, 1), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_save_report(t, "r.pdf"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_report(t, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_report(t, "/nowhere/r.xml"), ONNX_TILE_SYSTEM);
    assert_non_null(strstr(onnx_tile_error(t), "/nowhere/r.xml"));
    assert_int_equal(onnx_tile_keep_report(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_report(NULL, "r.xml"), ONNX_TILE_USAGE);
    onnx_tile_free(t);
    onnx_tile_free(NULL);
}

/* Each form of the results says what the program says; what needs a report is refused without one.
 */
static void results_in_each_form(void **state)
{
    (void)state;
    static const char *const says[] = {
        "peak memory",     "\"regions\": [", "Untiled", "\"alive\": [",
        "<!DOCTYPE html>", "<?xml",          ","};
    onnx_tile *t;
    char *text;
    bytes m = chain_model();

    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_results_text(NULL, ONNX_TILE_TEXT_TABLE, &text), ONNX_TILE_USAGE);
    for (int kept = 0; kept < 2; kept++) {
        assert_int_equal(onnx_tile_keep_report(t, kept), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_set_bit_exact(t, kept), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_results_text(t, ONNX_TILE_TEXT_TABLE, &text), ONNX_TILE_USAGE);
        assert_null(text);
        assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_OK);
        for (int form = ONNX_TILE_TEXT_TABLE; form <= ONNX_TILE_TEXT_CSV; form++) {
            onnx_tile_status want = form > ONNX_TILE_TEXT_JSON && !kept ? ONNX_TILE_USAGE
                                                                        : ONNX_TILE_OK;
            assert_int_equal(onnx_tile_results_text(t, (onnx_tile_text)form, &text), want);
            if (want == ONNX_TILE_OK && !strstr(text, says[form]))
                fail_msg("form %d: %.400s", form, text);
            if (want != ONNX_TILE_OK)
                assert_non_null(strstr(onnx_tile_error(t), "onnx_tile_keep_report"));
            onnx_tile_free_bytes(text);
        }
        assert_int_equal(onnx_tile_results_text(t, (onnx_tile_text)7, &text), ONNX_TILE_USAGE);
        assert_int_equal(onnx_tile_results_text(t, ONNX_TILE_TEXT_TABLE, NULL), ONNX_TILE_USAGE);
    }
    onnx_tile_free(t);
}

static void sizes_as_the_program_takes_them(void **state)
{
    (void)state;
    int64_t n = -1;
    assert_int_equal(onnx_tile_parse_size("1.5G", &n), ONNX_TILE_OK);
    assert_true(n == 1610612736);
    assert_int_equal(onnx_tile_parse_size("1GB", &n), ONNX_TILE_OK);
    assert_true(n == 1 << 30);
    assert_int_equal(onnx_tile_parse_size("much", &n), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_parse_size(NULL, &n), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_parse_size("1", NULL), ONNX_TILE_USAGE);
}

/* A budget for dimensions that stay dynamic holds at the guessed size; best effort keeps none. */
static void budgets_of_free_sizes(void **state)
{
    (void)state;
    static const struct {
        int64_t budget;
        int best_effort;
        onnx_tile_status want;
    } cases[] = {
        {1024, 0, ONNX_TILE_BUDGET}, {1024, 1, ONNX_TILE_OK}, {INT64_C(1) << 36, 0, ONNX_TILE_OK}};
    bytes m = chain_of("rows");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        onnx_tile *t;
        const char *json;
        assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_set_memory_budget(t, cases[k].budget), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_set_best_effort(t, cases[k].best_effort), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_inspect(t), cases[k].want);
        if (cases[k].want == ONNX_TILE_OK) {
            assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_OK);
            assert_non_null(strstr(json, "\"design_guessed\": true"));
            assert_null(strstr(json, "\"peak_bytes\": 0"));
            assert_int_equal(strstr(json, "\"missed\"") != NULL, cases[k].best_effort);
        } else {
            assert_non_null(strstr(onnx_tile_error(t), "required"));
        }
        onnx_tile_free(t);
    }
}

/* Inputs with the size that plans and runs take: bound, guessed, or as the model has it. */
static void sizes_of_inputs(void **state)
{
    (void)state;
    static const int64_t bound[] = {1, 8, 32, 256};
    onnx_tile *t;
    onnx_tile_tensor x;
    bytes free_rows = chain_of("rows"), m = chain_model();
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_input_count(t), 0);
    assert_int_equal(onnx_tile_input(t, 0, &x), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_memory(t, free_rows.at, free_rows.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_input_count(t), 1);
    assert_int_equal(onnx_tile_input(t, 0, &x), ONNX_TILE_OK);
    assert_string_equal(x.name, "x");
    assert_int_equal(x.type, ONNX_TILE_FLOAT32);
    assert_int_equal(x.rank, 4);
    assert_int_equal(x.dims[2], 4096); /* one dynamic dimension: a line */
    assert_int_equal(x.dims[3], 256);
    assert_int_equal(onnx_tile_input(t, 1, &x), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_input(t, 0, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_bind_shape(t, "x", bound, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_input(t, 0, &x), ONNX_TILE_OK);
    assert_int_equal(x.dims[2], 32);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_input(t, 0, &x), ONNX_TILE_USAGE); /* planned */
    onnx_tile_free(t);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_input(t, 0, &x), ONNX_TILE_OK);
    assert_int_equal(x.dims[2], 256);
    onnx_tile_free(t);
    assert_int_equal(onnx_tile_input_count(NULL), 0);
    assert_int_equal(onnx_tile_input(NULL, 0, &x), ONNX_TILE_USAGE);
}

static void bad_options(void **state)
{
    (void)state;
    onnx_tile *t;
    static const int64_t zero[] = {1, 0}, wrong[] = {1, 8, 256};
    bytes m = chain_model();

    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, -1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_memory_budget(t, -1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_max_tensor(t, -1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_max_slowdown(t, -0.5), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_target(t, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_threads(t, 5000), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_bind_shape(t, "x", zero, 2), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_bind_shape(t, "x", zero, 17), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_target(t, "nope"), ONNX_TILE_OK); /* checked when planning */
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "nope"));
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE); /* the model has to be loaded again */
    assert_int_equal(onnx_tile_set_target(t, "tlf-16m"), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_bind_shape(t, "x", wrong, 3), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE);
    onnx_tile_free(t);
}

/* Who runs the model: a runtime by name, the engine, or ONNX Runtime with the engine inside; NULL
 * is the target's own again. */
static void runtimes_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"onnxruntime", "openvino", "portable", "loop", "engine"};
    onnx_tile *t;
    const char *json;
    bytes m = chain_model();
    assert_int_equal(onnx_tile_set_runtime(NULL, "engine"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_ort_operators(NULL, "whole"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char want[64];
        assert_int_equal(onnx_tile_set_runtime(t, names[k]), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
        if (onnx_tile_inspect(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
        assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_OK);
        snprintf(want, sizeof want, "\"runtime\": \"%s\"", names[k]);
        if (!strstr(json, want)) fail_msg("no %s", want);
    }
    assert_int_equal(onnx_tile_set_runtime(t, "nobody"), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "no runtime 'nobody': use one of "));
    assert_int_equal(onnx_tile_set_runtime(t, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_OK);
    assert_non_null(strstr(json, "\"runtime\": \"onnxruntime\""));
    onnx_tile_free(t);
}

/* What operators of ONNX Runtime hold is asked of the runtime that writes some. */
static void operators_for_onnxruntime(void **state)
{
    (void)state;
    onnx_tile *t;
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_ort_operators(t, "parts"), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "for runtime ort-engine alone"));
    assert_int_equal(onnx_tile_set_runtime(t, "ort-engine"), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_ort_operators(t, "part"), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "whole, parts, regions"));
    assert_int_equal(onnx_tile_set_ort_operators(t, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_force(t, 1), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, 65536), ONNX_TILE_OK);
#ifdef OT_ENGINE
    static const char *const which[] = {"whole", "parts", "regions"};
    bytes m = chain_model();
    for (size_t k = 0; k < 3; k++) {
        void *out;
        size_t n;
        assert_int_equal(onnx_tile_set_ort_operators(t, which[k]), ONNX_TILE_OK);
        assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
        if (onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
        assert_int_equal(onnx_tile_save_memory(t, &out, &n), ONNX_TILE_OK);
        assert_non_null(memmem(out, n, "Engine", 6)); /* the operator's name */
        onnx_tile_free_bytes(out);
    }
#endif
    /* another runtime writes none, and forgets what they hold */
    assert_int_equal(onnx_tile_set_runtime(t, "engine"), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_ort_operators(t, "whole"), ONNX_TILE_USAGE);
    onnx_tile_free(t);
}

/* Options at the ends of what they take, and beyond; no handle, no call. */
static void options_at_their_ends(void **state)
{
    (void)state;
    onnx_tile *t;
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_max_slowdown(t, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_max_slowdown(t, 1000), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_max_slowdown(t, 1000.5), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_max_slowdown(t, (double)NAN), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_max_slowdown(t, (double)INFINITY), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "from 0 to 1000 percent"));
    assert_int_equal(onnx_tile_set_threads(t, 4096), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_threads(t, 4097), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_goal(t, ONNX_TILE_GOAL_MEMORY), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_goal(t, (onnx_tile_goal)7), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_memory_budget(t, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, 0), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_target(t, ""), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_file(t, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_file(t, ""), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_file(t, ""), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_memory(t, NULL, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_results_json(t, NULL), ONNX_TILE_USAGE);
    onnx_tile_free(t);

    static const int64_t one[] = {1};
    size_t n;
    void *out;
    const char *json;
    assert_int_equal(onnx_tile_set_target(NULL, "host"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_l2(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_threads(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_goal(NULL, ONNX_TILE_GOAL_TIME), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_memory_budget(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_best_effort(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_max_slowdown(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_force(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_bit_exact(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_bind_shape(NULL, "x", one, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_file(NULL, "m.onnx"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_memory(NULL, "", 0, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_optimise(NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_file(NULL, "m.onnx"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_save_memory(NULL, &out, &n), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_results_json(NULL, &json), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_region_count(NULL), 0);
    assert_string_equal(onnx_tile_error(NULL), "no handle");
    assert_true(strlen(onnx_tile_version()) >= 5);
}

/* A model of fixed size for another one, under a limit on tensors; what cannot be kept is told. */
static void another_size_and_a_limit(void **state)
{
    (void)state;
    static const int64_t other[] = {1, 8, 512, 64}, large[] = {1, 8, 4096, 4096};
    onnx_tile *t;
    void *out = NULL;
    size_t n = 0;
    bytes m = chain_model();

    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_max_tensor(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_set_max_tensor(t, 1 << 20), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_bind_shape(t, "x", other, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    if (onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_save_memory(t, &out, &n), ONNX_TILE_OK);
    onnx_tile *again;
    const char *json;
    assert_int_equal(onnx_tile_create(&again), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(again, out, n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_inspect(again), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_results_json(again, &json), ONNX_TILE_OK);
    assert_non_null(strstr(json, "\"largest_tensor_bytes\": 1048576")); /* 8 x 512 x 64 floats */
    onnx_tile_free(again);
    onnx_tile_free_bytes(out);
    assert_int_equal(onnx_tile_bind_shape(t, "x", large, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_BUDGET);
    assert_non_null(strstr(onnx_tile_error(t),
                           "input 'x' takes 512 MiB (536870912 bytes), 1.0 MiB are allowed"));
    onnx_tile_free(t);
}

/* One result for every size: dimensions stay dynamic. */
static void free_dimensions(void **state)
{
    (void)state;
    static const int64_t design[] = {1, 8, 256, 256};
    const char *json;
    onnx_tile *t;
    bytes m = chain_of("rows");
    assert_int_equal(onnx_tile_design_shape(NULL, "x", design, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_force(t, 1), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, 65536), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_design_shape(t, "x", design, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    if (onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_region_count(t), 1);
    assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_OK);
    assert_non_null(strstr(json, "\"dynamic_dims\": true"));
    assert_int_equal(onnx_tile_bind_shape(t, "x", design, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "--design does not go with --shape"));
    onnx_tile_free(t);
}

/* Over a range of sizes: what is proved stands in the results, and a budget holds for all. */
static void ranges_of_sizes(void **state)
{
    (void)state;
    static const int64_t lo[] = {1, 8, 64, 256}, hi[] = {1, 8, 255, 256}, step[] = {1, 1, 64, 1};
    static const int64_t zero[] = {1, 0, 64, 256};
    const char *json;
    onnx_tile *t;
    bytes m = chain_of("rows");
    assert_int_equal(onnx_tile_range_shape(NULL, "x", lo, hi, step, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_range_shape(t, "", lo, hi, step, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_range_shape(t, "x", lo, NULL, step, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_range_shape(t, "x", lo, hi, step, 17), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_range_shape(t, "x", hi, lo, step, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_range_shape(t, "x", lo, hi, zero, 4), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_range_shape(t, "x", hi, hi, step, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_range_shape(t, "x", lo, hi, step, 4), ONNX_TILE_OK); /* the last */
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    if (onnx_tile_inspect(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_results_json(t, &json), ONNX_TILE_OK);
    /* 64, 128, 192: two values of 1 x 8 x 192 x 256 floats live at once */
    assert_non_null(strstr(json, "\"verdict\": \"proved\", \"peak_bytes\": 3145728"));
    assert_non_null(strstr(json, "\"peak_at\": \"1x8x192x256\""));
    assert_int_equal(onnx_tile_set_memory_budget(t, 100000), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_inspect(t), ONNX_TILE_BUDGET);
    onnx_tile_free(t);
}

/* The result is compared before it is handed out. */
static void a_result_that_is_verified(void **state)
{
    (void)state;
    onnx_tile *t;
    bytes m = chain_model();
    assert_int_equal(onnx_tile_set_verify(NULL, 1), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_l2(t, 65536), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_force(t, 1), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_set_verify(t, 1), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
#ifdef OT_ENGINE
    if (onnx_tile_optimise(t) != ONNX_TILE_OK) fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_region_count(t), 1);
    bytes unknown = chain_from("Enigma", NULL);
    assert_int_equal(onnx_tile_load_memory(t, unknown.at, unknown.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_INPUT); /* which the engine cannot run */
    assert_non_null(strstr(onnx_tile_error(t), "Enigma"));
#else
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "engine"));
#endif
    onnx_tile_free(t);
}

static void geometry_of_a_loaded_model(void **state)
{
    (void)state;
    onnx_tile *t;
    char *text = NULL;
    bytes m = chain_model();
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_geometry(NULL, ONNX_TILE_GEOMETRY_JSON, &text), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_geometry(t, ONNX_TILE_GEOMETRY_JSON, &text), ONNX_TILE_USAGE);
    assert_null(text);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_geometry(t, ONNX_TILE_GEOMETRY_JSON, NULL), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_geometry(t, (onnx_tile_geometry_form)7, &text), ONNX_TILE_USAGE);
    assert_non_null(strstr(onnx_tile_error(t), "no such form"));
    static const char *const says[] = {"axis 3 of axis 3: align 1, scale 1/1",
                                       "\"halo_lo\": 0, \"halo_hi\": 0", "\"reference\": \"x\""};
    for (int form = ONNX_TILE_GEOMETRY_TABLE; form <= ONNX_TILE_GEOMETRY_BIOIMAGE; form++) {
        if (onnx_tile_geometry(t, (onnx_tile_geometry_form)form, &text) != ONNX_TILE_OK)
            fail_msg("%s", onnx_tile_error(t));
        if (!strstr(text, says[form])) fail_msg("%s", text);
        onnx_tile_free_bytes(text);
    }
    const int64_t dims[] = {1, 8, 64, 64};
    assert_int_equal(onnx_tile_bind_shape(t, "nobody", dims, 4), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_geometry(t, ONNX_TILE_GEOMETRY_JSON, &text), ONNX_TILE_USAGE);
    assert_null(text);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    onnx_tile_free(t);
}

static void passes_of_a_loaded_model(void **state)
{
    (void)state;
    onnx_tile *t;
    bytes m = chain_model();
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_passes(NULL, "none"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_passes(t, "none"), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_passes(t, ""), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_passes(t, "/dev/null/none"), ONNX_TILE_SYSTEM);
    assert_non_null(strstr(onnx_tile_error(t), "cannot make folder '/dev/null/none'"));
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE); /* to be loaded again */
    onnx_tile_free(t);
}

static void bad_models(void **state)
{
    (void)state;
    onnx_tile *t;
    bytes m = chain_model();

    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_load_memory(t, NULL, 0, NULL), ONNX_TILE_INPUT);
    assert_int_equal(onnx_tile_load_memory(t, NULL, 5, NULL), ONNX_TILE_USAGE);
    for (size_t cut = 0; cut < m.n; cut += 7) {
        onnx_tile_status s = onnx_tile_load_memory(t, m.at, cut, NULL);
        /* a cut between two fields may leave a model */
        assert_true(s == ONNX_TILE_INPUT || s == ONNX_TILE_OK);
        if (s == ONNX_TILE_INPUT) assert_true(strlen(onnx_tile_error(t)) > 0);
    }
    assert_int_equal(onnx_tile_load_memory(t, m.at, m.n, NULL), ONNX_TILE_OK);
    onnx_tile_free(t);
}

static void *work(void *arg)
{
    bytes m = chain_model();
    onnx_tile *t;
    bool ok = true;
    for (int k = 0; k < 20; k++) {
        const char *json;
        ok = ok && onnx_tile_create(&t) == ONNX_TILE_OK;
        ok = ok && onnx_tile_set_goal(t, k % 2 ? ONNX_TILE_GOAL_TIME : ONNX_TILE_GOAL_MEMORY) ==
                       ONNX_TILE_OK;
        ok = ok && onnx_tile_set_l2(t, 65536) == ONNX_TILE_OK &&
             onnx_tile_load_memory(t, m.at, m.n, NULL) == ONNX_TILE_OK;
        ok = ok && onnx_tile_optimise(t) == ONNX_TILE_OK &&
             onnx_tile_results_json(t, &json) == ONNX_TILE_OK;
        onnx_tile_free(t);
    }
    *(bool *)arg = ok;
    return NULL;
}

static void handles_in_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    bool ok[4] = {false};
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, work, &ok[k]), 0);
    for (size_t k = 0; k < 4; k++) {
        assert_int_equal(pthread_join(threads[k], NULL), 0);
        assert_true(ok[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_path_in_memory),
        cmocka_unit_test(calls_out_of_order),
        cmocka_unit_test(budgets_of_free_sizes),
        cmocka_unit_test(sizes_of_inputs),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(runtimes_by_name),
        cmocka_unit_test(operators_for_onnxruntime),
        cmocka_unit_test(options_at_their_ends),
        cmocka_unit_test(another_size_and_a_limit),
        cmocka_unit_test(free_dimensions),
        cmocka_unit_test(ranges_of_sizes),
        cmocka_unit_test(a_result_that_is_verified),
        cmocka_unit_test(geometry_of_a_loaded_model),
        cmocka_unit_test(passes_of_a_loaded_model),
        cmocka_unit_test(bad_models),
        cmocka_unit_test(handles_in_threads),
        cmocka_unit_test(results_in_each_form),
        cmocka_unit_test(sizes_as_the_program_takes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
