/* The operator library against a made-up ONNX Runtime: what it asks of the table of functions,
 * what it does with the answers. The real ones are tested with the Python package
 * (tests/python/test_ort.py). */
#include "engine_graphs.h"
#include "onnx/import/model_io.h"

#include "ort/ort_library.c"
#include "ort/ort_run.c"

/* ---- a runtime ---- */

#define ENDS 4

struct ort_status {
    char line[300];
};
struct ort_shape {
    int type;
    size_t rank;
    int64_t dims[8];
};
struct ort_value {
    struct ort_shape shape;
    float data[64];
};
struct ort_options {
    const char *threads; /* NULL: no entry */
    int n_domains;
};
struct ort_info {
    const char *model;
    size_t n;
    int64_t threads; /* 0: no attribute */
};
struct ort_context {
    struct ort_value in[ENDS], out[ENDS];
    size_t n_in, n_out;
};

static const ort_op *registered;
static int statuses, shapes;

static ort_status *fake_status(int code, const char *message)
{
    ort_status *s = malloc(sizeof *s);
    assert_int_equal(code, ORT_FAIL);
    assert_non_null(s);
    snprintf(s->line, sizeof s->line, "%s", message);
    statuses++;
    return s;
}
static void fake_release_status(ort_status *s)
{
    statuses--;
    free(s);
}
static ort_status *fake_domain(const char *name, ort_domain **out)
{
    assert_string_equal(name, "onnx_tile");
    *out = (ort_domain *)&statuses;
    return NULL;
}
static void fake_release_domain(ort_domain *d) { (void)d; }
static ort_status *fake_add(ort_domain *d, const ort_op *op)
{
    (void)d;
    registered = op;
    return NULL;
}
static ort_status *fake_options_add(ort_options *o, ort_domain *d)
{
    assert_non_null(d);
    o->n_domains++;
    return NULL;
}
static ort_status *fake_exists(const ort_options *o, const char *key, int *out)
{
    assert_string_equal(key, "onnx_tile.threads");
    *out = o->threads != NULL;
    return NULL;
}
static ort_status *fake_option(const ort_options *o, const char *key, char *out, size_t *size)
{
    (void)key;
    snprintf(out, *size, "%s", o->threads);
    return NULL;
}
static ort_status *fake_int(const ort_info *i, const char *name, int64_t *out)
{
    assert_string_equal(name, "threads");
    *out = i->threads;
    return i->threads ? NULL : fake_status(ORT_FAIL, "no attribute 'threads'");
}
static ort_status *fake_string(const ort_info *i, const char *name, char *out, size_t *size)
{
    assert_string_equal(name, "model");
    if (out) memcpy(out, i->model, i->n);
    if (out) out[i->n] = '\0';
    *size = i->n + 1;
    return NULL;
}
static ort_status *fake_inputs(const ort_context *c, size_t *n) { return *n = c->n_in, NULL; }
static ort_status *fake_outputs(const ort_context *c, size_t *n) { return *n = c->n_out, NULL; }
static ort_status *fake_input(const ort_context *c, size_t k, const ort_value **out)
{
    return *out = &c->in[k], NULL;
}
static ort_status *fake_output(ort_context *c, size_t k, const int64_t *dims, size_t rank,
                               ort_value **out)
{
    if (c->out[k].shape.type == 0) c->out[k].shape.type = ONNX_TILE_FLOAT32;
    c->out[k].shape.rank = rank;
    memcpy(c->out[k].shape.dims, dims, rank * sizeof *dims);
    *out = &c->out[k];
    return NULL;
}
static ort_status *fake_data(ort_value *v, void **out) { return *out = v->data, NULL; }
static ort_status *fake_shape(const ort_value *v, ort_shape **out)
{
    *out = (ort_shape *)(uintptr_t)&v->shape;
    shapes++;
    return NULL;
}
static void fake_release_shape(ort_shape *s)
{
    (void)s;
    shapes--;
}
static ort_status *fake_type(const ort_shape *s, int *out) { return *out = s->type, NULL; }
static ort_status *fake_rank(const ort_shape *s, size_t *out) { return *out = s->rank, NULL; }
static ort_status *fake_dims(const ort_shape *s, int64_t *dims, size_t n)
{
    return memcpy(dims, s->dims, n * sizeof *dims), NULL;
}

/* The runtime's threads: one. */
static uint32_t shared_out;
static ort_status *fake_parallel(const ort_context *c, void (*task)(void *job, size_t k), size_t n,
                                 size_t batches, void *job)
{
    (void)c;
    (void)batches;
    for (size_t k = 0; k < n; k++) task(job, k);
    shared_out++;
    return NULL;
}

static ort_api table;
static const char *version_text;
static const ort_api *fake_api(uint32_t version)
{
    assert_true(version == 1 || version == ORT_VERSION_NEEDED || version == ORT_VERSION_THREADS);
    return &table;
}
static const char *fake_version(void) { return version_text; }
static const ort_base base = {fake_api, fake_version};

static int start_runtime(void **state)
{
    (void)state;
    table.at[ORT_CREATE_STATUS] = (ort_function)fake_status;
    table.at[ORT_CREATE_DOMAIN] = (ort_function)fake_domain;
    table.at[ORT_DOMAIN_ADD] = (ort_function)fake_add;
    table.at[ORT_OPTIONS_ADD] = (ort_function)fake_options_add;
    table.at[ORT_TENSOR_DATA] = (ort_function)fake_data;
    table.at[ORT_SHAPE_TYPE] = (ort_function)fake_type;
    table.at[ORT_SHAPE_RANK] = (ort_function)fake_rank;
    table.at[ORT_SHAPE_DIMS] = (ort_function)fake_dims;
    table.at[ORT_TENSOR_SHAPE] = (ort_function)fake_shape;
    table.at[ORT_ATTRIBUTE_INT] = (ort_function)fake_int;
    table.at[ORT_ATTRIBUTE_STRING] = (ort_function)fake_string;
    table.at[ORT_INPUT_COUNT] = (ort_function)fake_inputs;
    table.at[ORT_OUTPUT_COUNT] = (ort_function)fake_outputs;
    table.at[ORT_INPUT] = (ort_function)fake_input;
    table.at[ORT_OUTPUT] = (ort_function)fake_output;
    table.at[ORT_RELEASE_STATUS] = (ort_function)fake_release_status;
    table.at[ORT_RELEASE_SHAPE] = (ort_function)fake_release_shape;
    table.at[ORT_RELEASE_DOMAIN] = (ort_function)fake_release_domain;
    table.at[ORT_OPTION_EXISTS] = (ort_function)fake_exists;
    table.at[ORT_OPTION] = (ort_function)fake_option;
    table.at[ORT_PARALLEL_FOR] = (ort_function)fake_parallel;
    return 0;
}

/* The call failed with that line. */
static void says(ort_status *s, const char *line)
{
    assert_non_null(s);
    assert_string_equal(s->line, line);
    fake_release_status(s);
}

/* ---- registering ---- */

static void versions(void **state)
{
    (void)state;
    static const char *const fit[] = {"1.16.0", "1.31.1", "2.0.0"};
    for (int k = 0; k < 3; k++) {
        ort_options o = {0};
        version_text = fit[k];
        assert_null(RegisterCustomOps(&o, &base));
        assert_int_equal(o.n_domains, 1);
    }
    version_text = "1.15.1";
    says(RegisterCustomOps(&(ort_options){0}, &base),
         "onnx_tile: ONNX Runtime 1.15.1 is too old: 1.16 or newer is needed");
    version_text = "1.31.1";
}

static void threads_of_a_session(void **state)
{
    (void)state;
    ort_options o = {.threads = "3"};
    assert_null(RegisterCustomOps(&o, &base));
    const ort_op *first = registered;
    assert_int_equal(threads_said((const setting *)first, &table, &(ort_info){.threads = 2}), 3);
    registered = NULL;
    assert_null(RegisterCustomOps(&o, &base)); /* shares it */
    assert_null(registered);
    o.threads = "0";
    says(RegisterCustomOps(&o, &base),
         "onnx_tile: session config entry 'onnx_tile.threads' is from 1 to 4096, not: 0");
    const setting none = {.op = OPERATOR};
    assert_int_equal(threads_said(&none, &table, &(ort_info){.threads = 2}), 2);
    assert_int_equal(threads_said(&none, &table, &(ort_info){0}), 0);
    assert_true(threads_of_machine() >= 1);
    assert_int_equal(statuses, 0);
}

/* ---- running ---- */

/* A model as bytes; the caller frees. */
static void *model_bytes(const char *text, size_t *n)
{
    bench b;
    void *bytes;
    open_with(&b, text, (ot_session_options){.threads = 1});
    assert_int_equal(b.status, OT_OK);
    assert_int_equal(ot_export_memory(b.m, &bytes, n), OT_OK);
    close_bench(&b);
    return bytes;
}

static void *make_kernel(const char *text)
{
    ort_info info = {.threads = 2};
    void *made, *bytes = model_bytes(text, &info.n);
    info.model = bytes;
    const setting s = {.op = OPERATOR};
    ort_status *st = s.op.create(&s.op, &table, &info, &made);
    if (st) fail_msg("%s", st->line);
    free(bytes);
    return made;
}

static void fixed_and_free_outputs(void **state)
{
    (void)state;
    void *k = make_kernel("input %x : float32[?,2]\ninput %z : float32[3]\n%y = Neg(%x)\n%w = "
                          "Abs(%z)\noutput %y\noutput %w");
    for (int64_t rows = 1; rows < 4; rows++) {
        ort_context c = {.n_in = 2, .n_out = 2};
        c.in[0] = (ort_value){.shape = {.type = 1, .rank = 2, .dims = {rows, 2}},
                              .data = {1, 2, 3, 4, 5, 6}};
        c.in[1] = (ort_value){.shape = {.type = 1, .rank = 1, .dims = {3}}, .data = {-1, 0, -2}};
        assert_null(OPERATOR.compute(k, &c));
        assert_int_equal(c.out[0].shape.rank, 2);
        assert_int_equal(c.out[0].shape.dims[0], rows);
        for (int64_t j = 0; j < 2 * rows; j++)
            assert_float_equal(c.out[0].data[j], -(float)(j + 1), 0);
        assert_float_equal(c.out[1].data[2], 2, 0);
    }
    OPERATOR.destroy(k);
    assert_int_equal(statuses + shapes, 0);
}

static void add_one(void *sum, size_t k)
{
    (void)k;
    ++*(uint64_t *)sum;
}

/* Where nobody says how many threads, the engine's work is shared out by the runtime. */
static void works_on_the_runtimes_threads(void **state)
{
    (void)state;
    for (int64_t threads = 0; threads < 3; threads += 2) {
        ort_info info = {.threads = threads};
        void *k, *bytes = model_bytes("input %x : float32[2]\n%y = Tanh(%x)\noutput %y", &info.n);
        info.model = bytes;
        const setting s = {.op = OPERATOR, .parallel = fake_parallel};
        assert_null(s.op.create(&s.op, &table, &info, &k));
        free(bytes);
        assert_true((((ort_computed *)k)->parallel == fake_parallel) == (threads == 0));
        const ort_context none = {.n_in = 0};
        uint64_t sum = 0;
        shared_out = 0;
        ((ort_computed *)k)->running = &none;
        if (threads == 0) run_on_runtime(k, add_one, 5, &sum);
        ((ort_computed *)k)->running = NULL;
        assert_int_equal(sum, threads == 0 ? 5 : 0);
        assert_int_equal(shared_out, threads == 0);
        OPERATOR.destroy(k);
    }
    assert_int_equal(statuses, 0);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    void *k = make_kernel("input %x : float32[2]\n%y = Neg(%x)\noutput %y");
    ort_context c = {.n_in = 1, .n_out = 1};
    c.in[0] = (ort_value){.shape = {.type = ONNX_TILE_FLOAT64, .rank = 1, .dims = {2}}};
    says(OPERATOR.compute(k, &c), "onnx_tile: an input has another type than in the body: x");
    c.in[0].shape = (ort_shape){.type = 1, .rank = 1, .dims = {3}};
    ort_status *st = OPERATOR.compute(k, &c);
    assert_non_null(st);
    fake_release_status(st);
    c.in[0].shape = (ort_shape){.type = ONNX_TILE_FLOAT32, .rank = 1, .dims = {2}};
    c.out[0].shape.type = ONNX_TILE_FLOAT64; /* what its node states */
    says(OPERATOR.compute(k, &c), "onnx_tile: an output has another type than in the body: y");
    c.n_in = 2;
    says(OPERATOR.compute(k, &c),
         "onnx_tile: the node has not as many inputs and outputs as its body");
    OPERATOR.destroy(k);
    const setting s = {.op = OPERATOR};
    st = s.op.create(&s.op, &table, &(ort_info){.model = "no model", .n = 8, .threads = 1}, &k);
    assert_non_null(st);
    assert_null(k);
    assert_true(strncmp(st->line, "onnx_tile: Engine: ", 19) == 0);
    fake_release_status(st);
    assert_int_equal(statuses + shapes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions), cmocka_unit_test(threads_of_a_session),
        cmocka_unit_test(fixed_and_free_outputs), cmocka_unit_test(works_on_the_runtimes_threads),
        cmocka_unit_test(what_does_not_fit)};
    return cmocka_run_group_tests(tests, start_runtime, NULL);
}
