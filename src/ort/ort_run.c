/* A session of the engine on ONNX Runtime's arrays and threads. Knows the engine by
 * include/onnx_tile.h only. */
#include "ort_run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY_TILE(k, expr)                                                                   \
    do {                                                                                    \
        if ((expr) != ONNX_TILE_OK)                                                         \
            return ort_failure((k)->api, (k)->what, onnx_tile_session_error((k)->session)); \
    } while (0)

ort_status *ort_failure(const ort_api *api, const char *what, const char *why)
{
    char line[1200];
    snprintf(line, sizeof line, "onnx_tile: %s%s%s", what, why ? ": " : "", why ? why : "");
    return CALL(api, ORT_CREATE_STATUS, ort_create_status)(ORT_FAIL, line);
}

int ort_minor_version(const ort_base *base)
{
    int major = 0, minor = 0;
    if (sscanf(base->version(), "%d.%d", &major, &minor) != 2) return 0;
    return major > 1 ? INT_MAX : minor;
}

static uint32_t threads_of_machine(void)
{
    long there = sysconf(_SC_NPROCESSORS_ONLN);
    return there < 1 ? 1 : there > ORT_THREADS_LIMIT ? ORT_THREADS_LIMIT : (uint32_t)there;
}

/* onnx_tile_run_tasks on the runtime's threads of this run; what it does not do, weights that
 * are packed when the session is made among it, the engine does in the calling thread. */
static void run_on_runtime(void *of, onnx_tile_task *task, size_t n, void *job)
{
    const ort_computed *k = of;
    if (!k->running) return;
    ort_status *st = k->parallel(k->running, task, n, 0, job);
    if (st) CALL(k->api, ORT_RELEASE_STATUS, ort_release_status)(st);
}

ort_status *ort_computed_set_threads(ort_computed *k, uint32_t threads, ort_parallel_for parallel)
{
    /* how many are the runtime's is not told: those of the machine are the most that take part */
    TRY_TILE(k,
             onnx_tile_session_set_threads(k->session, threads ? threads : threads_of_machine()));
    k->parallel = threads ? NULL : parallel;
    if (k->parallel) TRY_TILE(k, onnx_tile_session_set_executor(k->session, run_on_runtime, k));
    return NULL;
}

/* ---- running ---- */

/* Dimensions and type of an input against what the session takes. */
static ort_status *bind_shaped(ort_computed *k, uint32_t at, const ort_value *value,
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
        return ort_failure(k->api, "an input has another type than in the body", want.name);
    if (rank > ONNX_TILE_RANK_MAX)
        return ort_failure(k->api, "an input has more than 16 dimensions", want.name);
    TRY_ORT(CALL(k->api, ORT_SHAPE_DIMS, ort_shape_dims)(shape, dims, rank));
    /* Only read: the runtime has no function that gives a pointer to constant data for every
     * version. */
    TRY_ORT(CALL(k->api, ORT_TENSOR_DATA, ort_tensor_data)((ort_value *)(uintptr_t)value, &data));
    TRY_TILE(k, onnx_tile_session_bind_input(k->session, at, data ? data : nothing, dims,
                                             (uint32_t)rank));
    return NULL;
}

static ort_status *omitted(const ort_computed *k, uint32_t at)
{
    onnx_tile_tensor want;
    TRY_TILE(k, onnx_tile_session_input(k->session, at, &want));
    return ort_failure(k->api, "an input that its body needs is omitted", want.name);
}

static ort_status *bind_input(ort_computed *k, ort_context *c, uint32_t at)
{
    const ort_value *value;
    ort_shape *shape;
    TRY_ORT(CALL(k->api, ORT_INPUT, ort_input)(c, k->from ? k->from[at] : at, &value));
    if (!value) return omitted(k, at);
    TRY_ORT(CALL(k->api, ORT_TENSOR_SHAPE, ort_tensor_shape)(value, &shape));
    ort_status *st = bind_shaped(k, at, value, shape);
    CALL(k->api, ORT_RELEASE_SHAPE, ort_release_shape)(shape);
    return st;
}

int64_t ort_tensor_bytes(const onnx_tile_tensor *t)
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
static ort_status *check_type(const ort_computed *k, const ort_value *value,
                              const onnx_tile_tensor *t)
{
    ort_shape *shape;
    int type;
    TRY_ORT(CALL(k->api, ORT_TENSOR_SHAPE, ort_tensor_shape)(value, &shape));
    ort_status *st = CALL(k->api, ORT_SHAPE_TYPE, ort_shape_type)(shape, &type);
    CALL(k->api, ORT_RELEASE_SHAPE, ort_release_shape)(shape);
    if (!st && type != (int)t->type)
        st = ort_failure(k->api, "an output has another type than in the body", t->name);
    return st;
}

/* The runtime's memory for an output; NULL: nobody wants it. */
static ort_status *place_of(const ort_computed *k, ort_context *c, uint32_t at,
                            const onnx_tile_tensor *t, void **data)
{
    ort_value *value = NULL;
    *data = NULL;
    TRY_ORT(CALL(k->api, ORT_OUTPUT, ort_output)(c, at, t->dims, (size_t)t->rank, &value));
    if (!value) return NULL;
    TRY_ORT(check_type(k, value, t));
    return CALL(k->api, ORT_TENSOR_DATA, ort_tensor_data)(value, data);
}

static ort_status *bind_output(ort_computed *k, ort_context *c, uint32_t at)
{
    onnx_tile_tensor t;
    void *data = NULL;
    TRY_TILE(k, onnx_tile_session_output(k->session, at, &t));
    int64_t bytes = ort_tensor_bytes(&t);
    if (bytes > 0) TRY_ORT(place_of(k, c, at, &t, &data));
    TRY_TILE(k, onnx_tile_session_bind_output(k->session, at, data, data ? (size_t)bytes : 0));
    return NULL;
}

/* What was not computed in the runtime's memory, where somebody wants it. */
static ort_status *copy_output(ort_computed *k, ort_context *c, uint32_t at)
{
    onnx_tile_tensor t;
    const void *from;
    void *to;
    TRY_TILE(k, onnx_tile_session_output(k->session, at, &t));
    if (ort_tensor_bytes(&t) > 0) return NULL;
    TRY_TILE(k, onnx_tile_session_result(k->session, at, &t, &from));
    int64_t bytes = ort_tensor_bytes(&t);
    if (bytes < 0)
        return ort_failure(k->api, "an output is no tensor that can be handed on", t.name);
    TRY_ORT(place_of(k, c, at, &t, &to));
    if (bytes > 0 && to) memcpy(to, from, (size_t)bytes);
    return NULL;
}

ort_status *ort_computed_run(ort_computed *k, ort_context *c)
{
    size_t n_in, n_out;
    TRY_ORT(CALL(k->api, ORT_INPUT_COUNT, ort_count)(c, &n_in));
    TRY_ORT(CALL(k->api, ORT_OUTPUT_COUNT, ort_count)(c, &n_out));
    if (k->from) n_in = onnx_tile_session_input_count(k->session);
    if (n_in != onnx_tile_session_input_count(k->session) ||
        n_out != onnx_tile_session_output_count(k->session))
        return ort_failure(k->api, "the node has not as many inputs and outputs as its body", NULL);
    for (uint32_t j = 0; j < n_in; j++) TRY_ORT(bind_input(k, c, j));
    for (uint32_t j = 0; j < n_out; j++) TRY_ORT(bind_output(k, c, j));
    TRY_TILE(k, onnx_tile_session_run(k->session));
    for (uint32_t j = 0; j < n_out; j++) TRY_ORT(copy_output(k, c, j));
    return NULL;
}
