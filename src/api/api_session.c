/* The public C API, part two: sessions. A handle around one model and its ot_session.
 *
 *   create -> (threads, shapes)* -> load -> bind inputs (and outputs) -> run -> results -> bind,
 *   run ... -> free
 *
 * Only open_model, run_model, close_model and the reading of figures know the engine: a library
 * without it has the rest, and never gets past loading.
 */
#include "onnx_tile.h"

#include "session_handle.h"

#include "engine/core/session_beside.h"
#include "lent.h"
#include "session_json.h"

#include <math.h>

_Static_assert((int)ONNX_TILE_FLOAT32 == (int)OT_F32 && (int)ONNX_TILE_INT64 == (int)OT_I64 &&
                   (int)ONNX_TILE_BOOL == (int)OT_BOOL && (int)ONNX_TILE_FLOAT16 == (int)OT_F16 &&
                   (int)ONNX_TILE_BFLOAT16 == (int)OT_BF16 && ONNX_TILE_RANK_MAX == OT_RANK_MAX,
               "public types are the internal ones");

static onnx_tile_status done(ot_status s) { return (onnx_tile_status)s; }

onnx_tile_session *ot_api_session_enter(onnx_tile_session *s)
{
    pthread_mutex_lock(&s->lock);
    memset(&s->diag, 0, sizeof s->diag);
    return s;
}

void ot_api_session_leave(onnx_tile_session *const *s) { pthread_mutex_unlock(&(*s)->lock); }

static onnx_tile_status misuse(onnx_tile_session *s, const char *message)
{
    return done(ot_fail(&s->diag, OT_E_USAGE, "%s", message));
}

/* ---- the engine ---- */

#ifdef OT_ENGINE

ot_status ot_api_open_model(onnx_tile_session *s)
{
    const ot_shape_list *shapes = s->of ? &s->of->shapes : &s->shapes;
    ot_session_options o = {.threads = s->threads,
                            .executor = {s->run_tasks, s->run_tasks_of},
                            .releases = s->is_lent,
                            .shapes = shapes->all,
                            .n_shapes = shapes->n};
    if (s->of)
        OT_TRY(ot_session_new_beside(s->of->runs, &o, &s->diag, &s->s));
    else if (!s->s)
        OT_TRY(ot_session_new(s->m, &o, &s->diag, &s->s));
    s->runs = s->sizes ? NULL : s->s;
    s->n_in = ot_session_inputs(s->s);
    s->n_out = ot_session_outputs(s->s);
    s->inputs = ot_alloc_n(s->a, s->n_in + 1u, sizeof *s->inputs);
    s->outputs = ot_alloc_n(s->a, s->n_out + 1u, sizeof *s->outputs);
    s->in = OT_NEW_N(s->a, ot_nd, s->n_in + 1u);
    s->places = OT_NEW_N(s->a, ot_nd, s->n_out + 1u);
    s->out = OT_NEW_N(s->a, ot_nd, s->n_out + 1u);
    if (!s->inputs || !s->outputs || !s->in || !s->places || !s->out)
        return ot_fail_nomem(&s->diag);
    for (uint32_t k = 0; k < s->n_in; k++) s->inputs[k] = ot_session_input(s->s, k);
    for (uint32_t k = 0; k < s->n_out; k++) s->outputs[k] = ot_session_output(s->s, k);
    return OT_OK;
}

static void close_model(onnx_tile_session *s)
{
    ot_session_arrays_free(s);
    ot_api_sizes_free(s);
    ot_session_free(s->s);
}

static ot_status run_model(onnx_tile_session *s)
{
    OT_TRY(ot_api_session_for_run(s));
    ot_status st = ot_session_arrays_begin(s);
    for (uint32_t k = 0; k < s->n_out; k++) s->out[k] = s->places[k];
    if (st == OT_OK) st = ot_session_run(s->runs, s->in, s->out, &s->diag);
    return ot_session_arrays_end(s, st);
}

static void set_array(ot_nd *a, ot_dtype type, uint32_t rank, const int64_t *dims, void *data)
{
    *a = (ot_nd){.data = data};
    ot_nd_set_dense(a, type, rank, dims);
}

static void read_memory(const onnx_tile_session *s, int64_t *peak, int64_t *planned)
{
    ot_session_figures f = {0};
    if (s->runs) ot_session_figures_get(s->runs, &f);
    *peak = f.peak;
    *planned = f.planned_peak;
}

static void put_profile(const onnx_tile_session *s, ot_json *j)
{
    ot_session_json_memory(s->runs, j);
    ot_session_json_nodes(s->runs, j);
}

#else

ot_status ot_api_open_model(onnx_tile_session *s)
{
    return ot_fail(&s->diag, OT_E_USAGE, "this build lacks the native engine");
}

static void close_model(onnx_tile_session *s) { (void)s; }

static ot_status run_model(onnx_tile_session *s) { return ot_api_open_model(s); }

static void set_array(ot_nd *a, ot_dtype type, uint32_t rank, const int64_t *dims, void *data)
{
    *a = (ot_nd){.dtype = type, .rank = rank, .data = data};
    memcpy(a->dims, dims, rank * sizeof *dims);
}

static void read_memory(const onnx_tile_session *s, int64_t *peak, int64_t *planned)
{
    (void)s;
    *peak = *planned = 0;
}

static void put_profile(const onnx_tile_session *s, ot_json *j)
{
    (void)s;
    (void)j;
}

void ot_session_arrays_drop_input(onnx_tile_session *s, uint32_t k)
{
    (void)s;
    (void)k;
}

void ot_session_arrays_drop_output(onnx_tile_session *s, uint32_t k)
{
    (void)s;
    (void)k;
}

bool ot_session_arrays_has_output(const onnx_tile_session *s, uint32_t k)
{
    (void)s;
    (void)k;
    return false;
}

static onnx_tile_status no_engine(onnx_tile_session *s)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    return done(ot_api_open_model(s));
}

onnx_tile_status onnx_tile_session_map_input(onnx_tile_session *s, uint32_t k, const char *path,
                                             const int64_t *dims, uint32_t rank)
{
    (void)k, (void)path, (void)dims, (void)rank;
    return no_engine(s);
}

onnx_tile_status onnx_tile_session_map_output(onnx_tile_session *s, uint32_t k, const char *path)
{
    (void)k, (void)path;
    return no_engine(s);
}

onnx_tile_status onnx_tile_session_read_input(onnx_tile_session *s, uint32_t k, const int64_t *dims,
                                              uint32_t rank, uint32_t axis,
                                              onnx_tile_read_rows *read, void *of)
{
    (void)k, (void)dims, (void)rank, (void)axis, (void)read, (void)of;
    return no_engine(s);
}

onnx_tile_status onnx_tile_session_write_output(onnx_tile_session *s, uint32_t k, uint32_t axis,
                                                onnx_tile_write_rows *write, void *of)
{
    (void)k, (void)axis, (void)write, (void)of;
    return no_engine(s);
}

#endif

/* ---- the handle ---- */

void onnx_tile_session_lock(onnx_tile_session *s)
{
    if (s) pthread_mutex_lock(&s->lock);
}

void onnx_tile_session_unlock(onnx_tile_session *s)
{
    if (s) pthread_mutex_unlock(&s->lock);
}

onnx_tile_status onnx_tile_session_create(onnx_tile_session **out)
{
    if (!out) return ONNX_TILE_USAGE;
    *out = NULL;
    onnx_tile_session *s = calloc(1, sizeof *s);
    if (!s) return ONNX_TILE_NOMEM;
    s->options = ot_arena_new();
    if (!s->options || !ot_lock_new(&s->lock)) {
        ot_arena_free(s->options);
        free(s);
        return ONNX_TILE_NOMEM;
    }
    s->threads = 1;
    atomic_init(&s->users, 1);
    *out = s;
    return ONNX_TILE_OK;
}

/* Drop the model. */
static void unload(onnx_tile_session *s)
{
    close_model(s);
    if (!s->of) ot_model_free(s->m);
    ot_arena_free(s->a);
    s->s = s->runs = NULL;
    s->sizes = NULL;
    s->is_shared = false;
    s->m = NULL;
    s->a = NULL;
    s->arrays = NULL;
    s->notice = NULL;
    s->n_in = s->n_out = 0;
    s->has_run = false;
}

void onnx_tile_session_free(onnx_tile_session *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock); /* a run in another thread ends first */
    if (atomic_fetch_sub(&s->users, 1) > 1) {
        pthread_mutex_unlock(&s->lock);
        return;
    }
    onnx_tile_session *of = s->of;
    unload(s);
    ot_arena_free(s->options);
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
    onnx_tile_session_free(of);
}

const char *onnx_tile_session_error(const onnx_tile_session *s)
{
    return s ? s->diag.message : "no session";
}

onnx_tile_status onnx_tile_session_set_threads(onnx_tile_session *s, uint32_t threads)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (threads < 1 || threads > 4096) return misuse(s, "threads must be from 1 to 4096");
    s->threads = threads;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_session_set_executor(onnx_tile_session *s, onnx_tile_run_tasks *run,
                                                void *of)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    s->run_tasks = run;
    s->run_tasks_of = of;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_session_bind_shape(onnx_tile_session *s, const char *input,
                                              const int64_t *dims, uint32_t rank)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    return done(ot_shape_list_put(&s->shapes, (ot_shape_binding){input, rank, dims, true, NULL},
                                  s->options, &s->diag));
}

onnx_tile_status onnx_tile_session_set_input_type(onnx_tile_session *s, const char *input,
                                                  int32_t type, double scale)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (!input || !*input) return misuse(s, "an input needs a name");
    if (!isfinite(scale) || scale == 0) return misuse(s, "a scale is a number other than 0");
    if (type < 0 || (type != 0 && strcmp(ot_dtype_name((ot_dtype)type), "unknown") == 0))
        return misuse(s, "there is no such type");
    ot_session_form f = {NULL, (ot_dtype)type, scale};
    for (size_t k = 0; k < s->n_forms; k++)
        if (strcmp(s->forms[k].input, input) == 0) {
            f.input = s->forms[k].input;
            s->forms[k] = f;
            return ONNX_TILE_OK;
        }
    f.input = ot_strdup(s->options, input);
    if (!f.input || !OT_PUSH(s->options, s->forms, s->n_forms, s->cap_forms, f))
        return done(ot_fail_nomem(&s->diag));
    return ONNX_TILE_OK;
}

/* ---- loading ---- */

static ot_status load_all(onnx_tile_session *s, ot_source source)
{
    ot_run run = {.diag = &s->diag, .source = source};
    ot_status st = s->a ? ot_run_load(&run) : ot_fail_nomem(&s->diag);
    s->m = run.model; /* the run holds nothing else */
    if (st == OT_OK) st = ot_api_plan_model(s);
    return st == OT_OK ? ot_api_open_model(s) : st;
}

/* It can be cancelled; time-outs and progress are of runs. */
static onnx_tile_status load(onnx_tile_session *s, ot_source source)
{
    ot_watch w = {.stop = &s->control.stop}, *before;
    if (s->of || atomic_load(&s->users) > 1)
        return misuse(s, "sessions share the model: it stays until they are freed");
    unload(s);
    s->a = ot_arena_new();
    s->is_lent = source.lent != NULL;
    atomic_store(&s->control.stop, 0);
    before = ot_watch_use(&w);
    const onnx_tile_status st = ot_control_end(&w, before, load_all(s, source), "loading",
                                               &s->diag);
    if (st != ONNX_TILE_OK) unload(s);
    return st;
}

onnx_tile_status onnx_tile_session_load_file(onnx_tile_session *s, const char *path)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (!path || !*path) return misuse(s, "a model needs a path");
    char *copy = ot_strdup(s->options, path); /* models remember where they came from */
    if (!copy) return done(ot_fail_nomem(&s->diag));
    return load(s, (ot_source){.path = copy});
}

onnx_tile_status onnx_tile_session_load_memory(onnx_tile_session *s, const void *bytes, size_t n,
                                               const char *dir)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (!bytes && n) return misuse(s, "a model in memory needs its bytes");
    return load(s, (ot_source){.bytes = bytes ? bytes : "", .n = n, .dir = dir});
}

onnx_tile_status onnx_tile_session_load_lent(onnx_tile_session *s, const void *bytes, size_t n,
                                             const onnx_tile_lent *lent, size_t n_lent)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    ot_source source;
    ot_status st = ot_lent_source(bytes, n, lent, n_lent, &s->diag, &source);
    if (st != OT_OK) return done(st);
    onnx_tile_status loaded = load(s, source);
    free((void *)(uintptr_t)source.lent);
    return loaded;
}

/* ---- asking ---- */

/* Asking changes nothing but the lock. */
static onnx_tile_session *to_ask(const onnx_tile_session *s)
{
    return (onnx_tile_session *)(uintptr_t)s;
}

static uint32_t count(const onnx_tile_session *s, const uint32_t *n)
{
    onnx_tile_session_lock(to_ask(s));
    const uint32_t is = *n;
    onnx_tile_session_unlock(to_ask(s));
    return is;
}

const char *onnx_tile_session_notice(const onnx_tile_session *s)
{
    return s && s->notice ? s->notice : "";
}

uint32_t onnx_tile_session_input_count(const onnx_tile_session *s)
{
    return s ? count(s, &s->n_in) : 0;
}

uint32_t onnx_tile_session_output_count(const onnx_tile_session *s)
{
    return s ? count(s, &s->n_out) : 0;
}

static void describe(const ot_value *v, onnx_tile_tensor *out)
{
    *out = (onnx_tile_tensor){
        .name = v->name, .type = (int32_t)v->dtype, .rank = v->is_tensor ? v->rank : -1};
    for (int32_t k = 0; k < out->rank; k++) out->dims[k] = v->dims[k];
}

onnx_tile_status onnx_tile_session_input(onnx_tile_session *s, uint32_t k, onnx_tile_tensor *out)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (k >= s->n_in || !out)
        return misuse(s, s->a ? "the model has no such input" : "no model is loaded");
    describe(s->inputs[k], out);
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_session_output(onnx_tile_session *s, uint32_t k, onnx_tile_tensor *out)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (k >= s->n_out || !out)
        return misuse(s, s->a ? "the model has no such output" : "no model is loaded");
    describe(s->outputs[k], out);
    return ONNX_TILE_OK;
}

/* ---- binding ---- */

onnx_tile_status onnx_tile_session_bind_input(onnx_tile_session *s, uint32_t k, const void *data,
                                              const int64_t *dims, uint32_t rank)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (k >= s->n_in) return misuse(s, s->a ? "the model has no such input" : "no model is loaded");
    const ot_value *v = s->inputs[k];
    if (!v->is_tensor || v->dtype == OT_DT_UNKNOWN || v->dtype == OT_STRING ||
        ot_dtype_bits(v->dtype) < 8)
        return misuse(s, "the input is no tensor of a type that can be bound");
    if (!data) return misuse(s, "an input needs its memory");
    if (!dims && !ot_value_is_static(v))
        return misuse(s, "the input has dynamic dimensions: give its dims");
    if (dims && rank > OT_RANK_MAX) return misuse(s, "an array has at most 16 dimensions");
    for (uint32_t j = 0; dims && j < rank; j++)
        if (dims[j] < 0) return misuse(s, "a dimension is negative");
    ot_session_arrays_drop_input(s, k);
    /* The engine only reads inputs. */
    set_array(&s->in[k], v->dtype, dims ? rank : (uint32_t)v->rank, dims ? dims : v->dims,
              (void *)(uintptr_t)data);
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_session_bind_output(onnx_tile_session *s, uint32_t k, void *data,
                                               size_t bytes)
{
    int64_t need;
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (k >= s->n_out)
        return misuse(s, s->a ? "the model has no such output" : "no model is loaded");
    const ot_value *v = s->outputs[k];
    ot_session_arrays_drop_output(s, k);
    s->places[k] = (ot_nd){0};
    if (!data) return ONNX_TILE_OK;
    if (!v->is_tensor || !ot_value_is_static(v) || ot_dtype_bits(v->dtype) < 8 ||
        !ot_value_bytes(v, &need))
        return misuse(s, "the output is no tensor of fixed dimensions: it cannot be bound");
    if (bytes < (size_t)need)
        return done(ot_fail(&s->diag, OT_E_USAGE,
                            "output '%.200s' needs %lld bytes, but %zu are bound", v->name,
                            (long long)need, bytes));
    set_array(&s->places[k], v->dtype, (uint32_t)v->rank, v->dims, data);
    return ONNX_TILE_OK;
}

/* ---- running ---- */

/* The memory that an array takes; NULL: none. */
static const char *span_of(const ot_nd *a, size_t *bytes)
{
    int64_t n = 0, size = (int64_t)ot_dtype_bits(a->dtype) / 8;
    if (!a->data || !ot_product(a->dims, a->rank, &n) || !ot_mul_i64(n, size, &n) || n <= 0)
        return NULL;
    *bytes = (size_t)n;
    return a->data;
}

static bool meet(const ot_nd *a, const ot_nd *b)
{
    size_t n = 0, m = 0;
    const char *p = span_of(a, &n), *q = span_of(b, &m);
    return p && q && p < q + m && q < p + n;
}

/* An output is written before all inputs are read, and before other outputs are done. */
static ot_status check_apart(onnx_tile_session *s)
{
    for (uint32_t k = 0; k < s->n_out; k++) {
        for (uint32_t j = 0; j < s->n_in; j++)
            if (meet(&s->places[k], &s->in[j]))
                return ot_fail(&s->diag, OT_E_USAGE,
                               "output '%.200s' and input '%.200s' are bound to the same memory",
                               s->outputs[k]->name, s->inputs[j]->name);
        for (uint32_t j = 0; j < k; j++)
            if (meet(&s->places[k], &s->places[j]))
                return ot_fail(&s->diag, OT_E_USAGE,
                               "outputs '%.200s' and '%.200s' are bound to the same memory",
                               s->outputs[j]->name, s->outputs[k]->name);
    }
    return OT_OK;
}

onnx_tile_status onnx_tile_session_run(onnx_tile_session *s)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (!s->a) return misuse(s, "no model is loaded");
    for (uint32_t k = 0; k < s->n_in; k++)
        if (!s->in[k].data)
            return done(
                ot_fail(&s->diag, OT_E_USAGE, "input '%.200s' is not bound", s->inputs[k]->name));
    ot_status st = check_apart(s);
    if (st != OT_OK) return done(st);
    ot_watch w, *before;
    ot_control_begin(&s->control, &w, &before);
    const onnx_tile_status ran = ot_control_end(&w, before, run_model(s), "the run", &s->diag);
    s->has_run = ran == ONNX_TILE_OK;
    return ran;
}

onnx_tile_status onnx_tile_session_result(onnx_tile_session *s, uint32_t k, onnx_tile_tensor *out,
                                          const void **data)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (!out || !data) return misuse(s, "a result needs a place");
    *data = NULL;
    if (k >= s->n_out)
        return misuse(s, s->a ? "the model has no such output" : "no model is loaded");
    if (!s->has_run) return misuse(s, "no results: run first");
    if (ot_session_arrays_has_output(s, k))
        return misuse(s, "the output is in its file, or was handed to its writer");
    const ot_nd *a = &s->out[k];
    if (!a->data || a->list) return misuse(s, "the output is no tensor");
    *out = (onnx_tile_tensor){
        .name = s->outputs[k]->name, .type = (int32_t)a->dtype, .rank = (int32_t)a->rank};
    for (uint32_t j = 0; j < a->rank; j++) out->dims[j] = a->dims[j];
    *data = a->data;
    return ONNX_TILE_OK;
}

void onnx_tile_session_memory(const onnx_tile_session *s, int64_t *peak, int64_t *planned)
{
    int64_t p = 0, q = 0;
    onnx_tile_session_lock(to_ask(s));
    if (s && s->a) read_memory(s, &p, &q);
    onnx_tile_session_unlock(to_ask(s));
    if (peak) *peak = p;
    if (planned) *planned = q;
}

onnx_tile_status onnx_tile_session_profile(onnx_tile_session *s, char **json)
{
    size_t n = 0;
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if (!json) return misuse(s, "the profile needs a place");
    *json = NULL;
    if (!s->a) return misuse(s, "no model is loaded");
    if (!s->has_run) return misuse(s, "no results: run first");
    ot_json j = {.f = open_memstream(json, &n)};
    if (!j.f) return done(ot_fail_nomem(&s->diag));
    ot_json_open(&j, NULL);
    put_profile(s, &j);
    ot_json_close(&j);
    bool ok = !ferror(j.f);
    ok = fclose(j.f) == 0 && ok;
    if (ok) return ONNX_TILE_OK;
    free(*json);
    *json = NULL;
    return done(ot_fail_nomem(&s->diag));
}
