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
 */
#include "ort_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN_NAME "onnx_tile"
#define OP_NAME     "Engine"
#define THREADS_KEY "onnx_tile.threads" /* session config entry */

/* The operator as sessions of one setting see it; lives as long as the library. */
typedef struct setting {
    ort_op op; /* first: the runtime hands it back */
    ort_domain *domain;
    uint32_t threads;          /* 0: not said */
    ort_parallel_for parallel; /* NULL: this runtime keeps its threads to itself */
    struct setting *next;
} setting;

/* ---- making one ---- */

/* Threads that a session or a node asks for: the session's entry, else the node's attribute. 0:
 * neither says. */
static uint32_t threads_said(const setting *s, const ort_api *api, const ort_info *info)
{
    int64_t asked = 0;
    if (s->threads) return s->threads;
    ort_status *none = CALL(api, ORT_ATTRIBUTE_INT, ort_attribute_int)(info, "threads", &asked);
    if (none) CALL(api, ORT_RELEASE_STATUS, ort_release_status)(none);
    return !none && asked > 0 && asked <= ORT_THREADS_LIMIT ? (uint32_t)asked : 0;
}

static ort_status *load_body(ort_computed *k, const ort_info *info)
{
    ort_attribute_string get = CALL(k->api, ORT_ATTRIBUTE_STRING, ort_attribute_string);
    size_t n = 0;
    TRY_ORT(get(info, "model", NULL, &n));
    char *body = malloc(n ? n : 1);
    if (!body) return ort_failure(k->api, "out of memory", NULL);
    ort_status *st = get(info, "model", body, &n);
    if (!st && onnx_tile_session_load_memory(k->session, body, n ? n - 1 : 0, NULL) != ONNX_TILE_OK)
        st = ort_failure(k->api, OP_NAME, onnx_tile_session_error(k->session));
    free(body);
    return st;
}

static void destroy(void *object)
{
    ort_computed *k = object;
    if (!k) return;
    onnx_tile_session_free(k->session);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static ort_status *fill_kernel(ort_computed *k, const setting *s, const ort_info *info)
{
    if (onnx_tile_session_create(&k->session) != ONNX_TILE_OK)
        return ort_failure(k->api, "out of memory", NULL);
    TRY_ORT(ort_computed_set_threads(k, threads_said(s, k->api, info), s->parallel));
    return load_body(k, info);
}

static ort_status *create(const ort_op *op, const ort_api *api, const ort_info *info, void **out)
{
    ort_computed *k = calloc(1, sizeof *k);
    *out = NULL;
    if (!k || pthread_mutex_init(&k->lock, NULL) != 0) {
        free(k);
        return ort_failure(api, "out of memory", NULL);
    }
    k->api = api;
    k->what = OP_NAME;
    ort_status *st = fill_kernel(k, (const setting *)op, info);
    if (st)
        destroy(k);
    else
        *out = k;
    return st;
}

static ort_status *compute(void *object, ort_context *c)
{
    ort_computed *k = object;
    pthread_mutex_lock(&k->lock);
    k->running = c;
    ort_status *st = ort_computed_run(k, c);
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
    if (*end || value < 1 || value > ORT_THREADS_LIMIT)
        return ort_failure(api, "session config entry '" THREADS_KEY "' is from 1 to 4096, not",
                           text);
    *out = (uint32_t)value;
    return NULL;
}

static ort_status *make_setting(const ort_api *api, uint32_t threads, ort_parallel_for parallel,
                                setting **out)
{
    setting *s = calloc(1, sizeof *s);
    if (!s) return ort_failure(api, "out of memory", NULL);
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
    const ort_api *first = base->get_api(1);
    if (!first) return NULL; /* no table at all: nothing can be said, and the model will not load */
    /* Asking for a table that it lacks makes the runtime print a line of its own. */
    const int minor = ort_minor_version(base);
    const ort_api *api = minor >= ORT_VERSION_NEEDED ? base->get_api(ORT_VERSION_NEEDED) : NULL;
    const ort_api *newer = minor >= ORT_VERSION_THREADS ? base->get_api(ORT_VERSION_THREADS) : NULL;
    if (!api) {
        snprintf(line, sizeof line, "ONNX Runtime %.40s is too old: 1.%d or newer is needed",
                 base->version(), ORT_VERSION_NEEDED);
        return ort_failure(first, line, NULL);
    }
    TRY_ORT(threads_asked(api, options, &threads));
    TRY_ORT(setting_for(api, threads,
                        newer ? CALL(newer, ORT_PARALLEL_FOR, ort_parallel_for) : NULL, &s));
    return CALL(api, ORT_OPTIONS_ADD, ort_options_add)(options, s->domain);
}
