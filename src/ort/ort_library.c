/* The native engine as an operator of ONNX Runtime: a library for
 * SessionOptions.register_custom_ops_library (docs/onnxruntime-operators.md).
 *
 *     y0, y1 = "onnx_tile"::Engine(x0, x1, ...) {model="an ONNX file: standard ONNX or the engine's
 *     form", threads=0}
 *
 * Knows the engine by include/onnx_tile.h only. A node has a session of its own, which is made
 * with the runtime's session. Inputs are read where they lie; outputs of fixed dimensions are
 * computed in the runtime's memory, others are copied there. The work is shared out to the
 * runtime's threads, unless somebody says a number. Runs of one node come one after the other,
 * whoever calls.
 *
 */
#include "onnx_tile.h"
#include "ort_abi.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOMAIN_NAME   "onnx_tile"
#define OP_NAME       "Engine"
#define THREADS_KEY   "onnx_tile.threads" /* session config entry */
#define THREADS_LIMIT 4096

/* The function of that index, by its signature. */
#define CALL(api, index, type) ((type)(api)->at[index])

/* The operator as sessions of one setting see it; lives as long as the library. */
typedef struct setting {
    ort_op op; /* first: the runtime hands it back */
    ort_domain *domain;
    uint32_t threads;          /* 0: not said */
    ort_parallel_for parallel; /* NULL: this runtime keeps its threads to itself */
    struct setting *next;
} setting;

typedef struct kernel {
    const ort_api *api;
    onnx_tile_session *session;
    pthread_mutex_t lock; /* a session belongs to one thread at a time */
    ort_parallel_for parallel;
    const ort_context *running; /* NULL: no run is under way */
} kernel;

static ort_status *failure(const ort_api *api, const char *what, const char *why)
{
    char line[1200];
    snprintf(line, sizeof line, "onnx_tile: %s%s%s", what, why ? ": " : "", why ? why : "");
    return CALL(api, ORT_CREATE_STATUS, ort_create_status)(ORT_FAIL, line);
}

/* Return when a call of ours or of the runtime's fails. */
#define TRY_ORT(expr)                 \
    do {                              \
        ort_status *status_ = (expr); \
        if (status_) return status_;  \
    } while (0)
#define TRY_TILE(k, expr)                                                              \
    do {                                                                               \
        if ((expr) != ONNX_TILE_OK)                                                    \
            return failure((k)->api, "Engine", onnx_tile_session_error((k)->session)); \
    } while (0)

/* ---- making one ---- */

/* Threads that a session or a node asks for: the session's entry, else the node's attribute. 0:
 * neither says. */
static uint32_t threads_said(const setting *s, const ort_api *api, const ort_info *info)
{
    int64_t asked = 0;
    if (s->threads) return s->threads;
    ort_status *none = CALL(api, ORT_ATTRIBUTE_INT, ort_attribute_int)(info, "threads", &asked);
    if (none) CALL(api, ORT_RELEASE_STATUS, ort_release_status)(none);
    return !none && asked > 0 && asked <= THREADS_LIMIT ? (uint32_t)asked : 0;
}

static uint32_t threads_of_machine(void)
{
    long there = sysconf(_SC_NPROCESSORS_ONLN);
    return there < 1 ? 1 : there > THREADS_LIMIT ? THREADS_LIMIT : (uint32_t)there;
}

/* onnx_tile_run_tasks on the runtime's threads of this run; what it does not do, weights that
 * are packed when the session is made among it, the engine does in the calling thread. */
static void run_on_runtime(void *of, onnx_tile_task *task, size_t n, void *job)
{
    const kernel *k = of;
    if (!k->running) return;
    ort_status *st = k->parallel(k->running, task, n, 0, job);
    if (st) CALL(k->api, ORT_RELEASE_STATUS, ort_release_status)(st);
}

/* The runtime does not tell how many threads it has: those of the machine are the most that take
 * part. */
static ort_status *set_threads(kernel *k, const setting *s, const ort_info *info)
{
    uint32_t said = threads_said(s, k->api, info);
    TRY_TILE(k, onnx_tile_session_set_threads(k->session, said ? said : threads_of_machine()));
    k->parallel = said ? NULL : s->parallel;
    if (k->parallel) TRY_TILE(k, onnx_tile_session_set_executor(k->session, run_on_runtime, k));
    return NULL;
}

static ort_status *load_body(kernel *k, const ort_info *info)
{
    ort_attribute_string get = CALL(k->api, ORT_ATTRIBUTE_STRING, ort_attribute_string);
    size_t n = 0;
    TRY_ORT(get(info, "model", NULL, &n));
    char *body = malloc(n ? n : 1);
    if (!body) return failure(k->api, "out of memory", NULL);
    ort_status *st = get(info, "model", body, &n);
    if (!st && onnx_tile_session_load_memory(k->session, body, n ? n - 1 : 0, NULL) != ONNX_TILE_OK)
        st = failure(k->api, "Engine", onnx_tile_session_error(k->session));
    free(body);
    return st;
}

static void destroy(void *object)
{
    kernel *k = object;
    if (!k) return;
    onnx_tile_session_free(k->session);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static ort_status *fill_kernel(kernel *k, const setting *s, const ort_info *info)
{
    if (onnx_tile_session_create(&k->session) != ONNX_TILE_OK)
        return failure(k->api, "out of memory", NULL);
    TRY_ORT(set_threads(k, s, info));
    return load_body(k, info);
}

static ort_status *create(const ort_op *op, const ort_api *api, const ort_info *info, void **out)
{
    kernel *k = calloc(1, sizeof *k);
    *out = NULL;
    if (!k || pthread_mutex_init(&k->lock, NULL) != 0) {
        free(k);
        return failure(api, "out of memory", NULL);
    }
    k->api = api;
    ort_status *st = fill_kernel(k, (const setting *)op, info);
    if (st)
        destroy(k);
    else
        *out = k;
    return st;
}

/* ---- running one ---- */

/* Dimensions and type of an input against what the session takes. */
static ort_status *bind_shaped(kernel *k, uint32_t at, const ort_value *value,
                               const ort_shape *shape)
{
    static const char nothing[1]; /* of an array without elements */
    onnx_tile_tensor want;
    int64_t dims[ONNX_TILE_RANK_MAX];
    int type;
    size_t rank;
    void *data;
    TRY_TILE(k, onnx_tile_session_input(k->session, at, &want));
    TRY_ORT(CALL(k->api, ORT_SHAPE_TYPE, ort_shape_type)(shape, &type));
    TRY_ORT(CALL(k->api, ORT_SHAPE_RANK, ort_shape_rank)(shape, &rank));
    if (type != want.type)
        return failure(k->api, "an input has another type than in the body", want.name);
    if (rank > ONNX_TILE_RANK_MAX)
        return failure(k->api, "an input has more than 16 dimensions", want.name);
    TRY_ORT(CALL(k->api, ORT_SHAPE_DIMS, ort_shape_dims)(shape, dims, rank));
    /* Only read: the runtime has no function that gives a pointer to constant data for every
     * version. */
    TRY_ORT(CALL(k->api, ORT_TENSOR_DATA, ort_tensor_data)((ort_value *)(uintptr_t)value, &data));
    TRY_TILE(k, onnx_tile_session_bind_input(k->session, at, data ? data : nothing, dims,
                                             (uint32_t)rank));
    return NULL;
}

static ort_status *omitted(const kernel *k, uint32_t at)
{
    onnx_tile_tensor want;
    TRY_TILE(k, onnx_tile_session_input(k->session, at, &want));
    return failure(k->api, "an input that its body needs is omitted", want.name);
}

static ort_status *bind_input(kernel *k, ort_context *c, uint32_t at)
{
    const ort_value *value;
    ort_shape *shape;
    TRY_ORT(CALL(k->api, ORT_INPUT, ort_input)(c, at, &value));
    if (!value) return omitted(k, at);
    TRY_ORT(CALL(k->api, ORT_TENSOR_SHAPE, ort_tensor_shape)(value, &shape));
    ort_status *st = bind_shaped(k, at, value, shape);
    CALL(k->api, ORT_RELEASE_SHAPE, ort_release_shape)(shape);
    return st;
}

/* Bytes of an array; -1: dimensions that are not known, or none of ours. */
static int64_t bytes_of(const onnx_tile_tensor *t)
{
    int64_t n;
    switch (t->type) {
    case ONNX_TILE_UINT8:
    case ONNX_TILE_INT8:
    case ONNX_TILE_BOOL: n = 1; break;
    case ONNX_TILE_UINT16:
    case ONNX_TILE_INT16:
    case ONNX_TILE_FLOAT16:
    case ONNX_TILE_BFLOAT16: n = 2; break;
    case ONNX_TILE_FLOAT32:
    case ONNX_TILE_INT32:
    case ONNX_TILE_UINT32: n = 4; break;
    case ONNX_TILE_INT64:
    case ONNX_TILE_UINT64:
    case ONNX_TILE_FLOAT64: n = 8; break;
    default: return -1;
    }
    if (t->rank < 0) return -1;
    for (int32_t k = 0; k < t->rank; k++) {
        if (t->dims[k] < 0 || __builtin_mul_overflow(n, t->dims[k], &n)) return -1;
    }
    return n;
}

/* The runtime made a tensor of the type that its graph states for the output. Is it the body's? */
static ort_status *check_type(const kernel *k, const ort_value *value, const onnx_tile_tensor *t)
{
    ort_shape *shape;
    int type;
    TRY_ORT(CALL(k->api, ORT_TENSOR_SHAPE, ort_tensor_shape)(value, &shape));
    ort_status *st = CALL(k->api, ORT_SHAPE_TYPE, ort_shape_type)(shape, &type);
    CALL(k->api, ORT_RELEASE_SHAPE, ort_release_shape)(shape);
    if (!st && type != (int)t->type)
        st = failure(k->api, "an output has another type than in the body", t->name);
    return st;
}

/* The runtime's memory for an output; NULL: nobody wants it. */
static ort_status *place_of(const kernel *k, ort_context *c, uint32_t at, const onnx_tile_tensor *t,
                            void **data)
{
    ort_value *value = NULL;
    *data = NULL;
    TRY_ORT(CALL(k->api, ORT_OUTPUT, ort_output)(c, at, t->dims, (size_t)t->rank, &value));
    if (!value) return NULL;
    TRY_ORT(check_type(k, value, t));
    return CALL(k->api, ORT_TENSOR_DATA, ort_tensor_data)(value, data);
}

static ort_status *bind_output(kernel *k, ort_context *c, uint32_t at)
{
    onnx_tile_tensor t;
    void *data = NULL;
    TRY_TILE(k, onnx_tile_session_output(k->session, at, &t));
    int64_t bytes = bytes_of(&t);
    if (bytes > 0) TRY_ORT(place_of(k, c, at, &t, &data));
    TRY_TILE(k, onnx_tile_session_bind_output(k->session, at, data, data ? (size_t)bytes : 0));
    return NULL;
}

/* What was not computed in the runtime's memory, where somebody wants it. */
static ort_status *copy_output(kernel *k, ort_context *c, uint32_t at)
{
    onnx_tile_tensor t;
    const void *from;
    void *to;
    TRY_TILE(k, onnx_tile_session_output(k->session, at, &t));
    if (bytes_of(&t) > 0) return NULL;
    TRY_TILE(k, onnx_tile_session_result(k->session, at, &t, &from));
    int64_t bytes = bytes_of(&t);
    if (bytes < 0) return failure(k->api, "an output is no tensor that can be handed on", t.name);
    TRY_ORT(place_of(k, c, at, &t, &to));
    if (bytes > 0 && to) memcpy(to, from, (size_t)bytes);
    return NULL;
}

static ort_status *run_locked(kernel *k, ort_context *c)
{
    size_t n_in, n_out;
    TRY_ORT(CALL(k->api, ORT_INPUT_COUNT, ort_count)(c, &n_in));
    TRY_ORT(CALL(k->api, ORT_OUTPUT_COUNT, ort_count)(c, &n_out));
    if (n_in != onnx_tile_session_input_count(k->session) ||
        n_out != onnx_tile_session_output_count(k->session))
        return failure(k->api, "the node has not as many inputs and outputs as its body", NULL);
    for (uint32_t j = 0; j < n_in; j++) TRY_ORT(bind_input(k, c, j));
    for (uint32_t j = 0; j < n_out; j++) TRY_ORT(bind_output(k, c, j));
    TRY_TILE(k, onnx_tile_session_run(k->session));
    for (uint32_t j = 0; j < n_out; j++) TRY_ORT(copy_output(k, c, j));
    return NULL;
}

static ort_status *compute(void *object, ort_context *c)
{
    kernel *k = object;
    pthread_mutex_lock(&k->lock);
    k->running = c;
    ort_status *st = run_locked(k, c);
    k->running = NULL;
    pthread_mutex_unlock(&k->lock);
    return st;
}

/* ---- the operator ---- */

static const char *op_name(const ort_op *op) { return (void)op, OP_NAME; }
static const char *op_provider(const ort_op *op) { return (void)op, NULL; }
static size_t one(const ort_op *op) { return (void)op, 1; }
static int any_type(const ort_op *op, size_t k) { return (void)op, (void)k, ORT_TYPE_ANY; }
static int variadic(const ort_op *op, size_t k) { return (void)op, (void)k, ORT_VARIADIC; }
/* The first one apart: runtimes before 1.18 give the output of an operator with one input and
 * one output of any type the input's type. */
static size_t two(const ort_op *op) { return (void)op, 2; }
static int first_apart(const ort_op *op, size_t k)
{
    return (void)op, k == 0 ? ORT_OPTIONAL : ORT_VARIADIC;
}
static int plain_memory(const ort_op *op, size_t k) { return (void)op, (void)k, ORT_MEMORY_PLAIN; }
/* Beside the first input. */
static int none_needed(const ort_op *op) { return (void)op, 0; }
static int one_needed(const ort_op *op) { return (void)op, 1; }
static int mixed_types(const ort_op *op) { return (void)op, 0; }

static const ort_op OPERATOR = {
    .version = ORT_VERSION_NEEDED,
    .name = op_name,
    .provider = op_provider,
    .input_type = any_type,
    .n_inputs = two,
    .output_type = any_type,
    .n_outputs = one,
    .destroy = destroy,
    .input_kind = first_apart,
    .output_kind = variadic,
    .input_memory = plain_memory,
    .least_inputs = none_needed,
    .inputs_alike = mixed_types,
    .least_outputs = one_needed,
    .outputs_alike = mixed_types,
    .create = create,
    .compute = compute,
};

/* ---- registering ---- */

/* What the session's options say of threads; 0: nothing. */
static ort_status *threads_asked(const ort_api *api, const ort_options *o, uint32_t *out)
{
    int there = 0;
    char text[16] = "", *end;
    size_t n = sizeof text;
    *out = 0;
    TRY_ORT(CALL(api, ORT_OPTION_EXISTS, ort_option_exists)(o, THREADS_KEY, &there));
    if (!there) return NULL;
    TRY_ORT(CALL(api, ORT_OPTION, ort_option)(o, THREADS_KEY, text, &n));
    long value = strtol(text, &end, 10);
    if (*end || value < 1 || value > THREADS_LIMIT)
        return failure(api, "session config entry '" THREADS_KEY "' is from 1 to 4096, not", text);
    *out = (uint32_t)value;
    return NULL;
}

static ort_status *make_setting(const ort_api *api, uint32_t threads, ort_parallel_for parallel,
                                setting **out)
{
    setting *s = calloc(1, sizeof *s);
    if (!s) return failure(api, "out of memory", NULL);
    *s = (setting){.op = OPERATOR, .threads = threads, .parallel = parallel};
    ort_status *st = CALL(api, ORT_CREATE_DOMAIN, ort_create_domain)(DOMAIN_NAME, &s->domain);
    if (!st) st = CALL(api, ORT_DOMAIN_ADD, ort_domain_add)(s->domain, &s->op);
    if (st) {
        if (s->domain) CALL(api, ORT_RELEASE_DOMAIN, ort_release_domain)(s->domain);
        free(s);
        return st;
    }
    *out = s;
    return NULL;
}

/* The domain for these threads: sessions of all time share it. */
static ort_status *setting_for(const ort_api *api, uint32_t threads, ort_parallel_for parallel,
                               setting **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static setting *all;
    ort_status *st = NULL;
    pthread_mutex_lock(&lock);
    for (*out = all; *out && ((*out)->threads != threads || (*out)->parallel != parallel);)
        *out = (*out)->next;
    if (!*out) {
        st = make_setting(api, threads, parallel, out);
        if (!st) {
            (*out)->next = all;
            all = *out;
        }
    }
    pthread_mutex_unlock(&lock);
    return st;
}

/* What ONNX Runtime calls by this name when the library is registered. */
__attribute__((visibility("default"))) ort_status *RegisterCustomOps(ort_options *options,
                                                                     const ort_base *base);

ort_status *RegisterCustomOps(ort_options *options, const ort_base *base)
{
    char line[200];
    uint32_t threads;
    setting *s = NULL;
    int major = 0, minor = 0;
    const ort_api *first = base->get_api(1);
    if (!first) return NULL; /* no table at all: nothing can be said, and the model will not load */
    /* Asking for a table that it lacks makes the runtime print a line of its own. */
    const char *version = base->version();
    if (sscanf(version, "%d.%d", &major, &minor) != 2) minor = 0;
    if (major > 1) minor = ORT_VERSION_THREADS;
    const ort_api *api = minor >= ORT_VERSION_NEEDED ? base->get_api(ORT_VERSION_NEEDED) : NULL;
    const ort_api *newer = minor >= ORT_VERSION_THREADS ? base->get_api(ORT_VERSION_THREADS) : NULL;
    if (!api) {
        snprintf(line, sizeof line, "ONNX Runtime %.40s is too old: 1.%d or newer is needed",
                 version, ORT_VERSION_NEEDED);
        return failure(first, line, NULL);
    }
    TRY_ORT(threads_asked(api, options, &threads));
    TRY_ORT(setting_for(api, threads,
                        newer ? CALL(newer, ORT_PARALLEL_FOR, ort_parallel_for) : NULL, &s));
    return CALL(api, ORT_OPTIONS_ADD, ort_options_add)(options, s->domain);
}
