/* One part: its model, and sessions of the engine that run it.
 *
 *     all dimensions known     plan when the runtime compiles -> session when it makes its kernels
 *                              (at once where no file has the weights); the model is freed
 *     some are free            the model stays; each size of the inputs that comes gets a plan and
 *                              a session of its own, the last `sizes` of them are kept
 *
 * Inputs that have a default (ep_defaults.c) are constants of the usual form of the part; a run
 * that is given something else for one takes its open form, in which all are inputs.
 *
 * Runs of a part come one after the other, whoever calls.
 */
#include "ep_part.h"

#include "ep_defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* A size of all inputs, and the session for it. */
typedef struct sized {
    onnx_tile_session *session;
    int64_t *dims;   /* [part.n_dims] of all inputs, one behind the other, each after its rank */
    uint64_t last;   /* run that used it last */
    uint32_t n_dims; /* of dims */
} sized;

/* A model of the part, and its sessions. */
typedef struct form {
    ep_model model; /* empty once it is not needed any more */
    sized *all;     /* [settings.sizes], [0] alone where dimensions are known */
    uint32_t *from; /* [n_from] its inputs among those of the part, in order */
    size_t n_from;
    bool is_free;  /* dimensions are known by each run only */
    void *planned; /* [n_planned] the planned model, of which no session is made yet; or NULL */
    size_t n_planned;
} form;

typedef struct part {
    ort_compute_info info; /* first: the runtime hands it back */
    ort_computed computed;
    ep_settings settings;
    char **inputs;        /* [n_inputs] names */
    bool *fixed;          /* [n_inputs] dimensions are known */
    ep_default *defaults; /* [n_inputs] */
    size_t n_inputs, n_defaults;
    form usual, open; /* open: where there are defaults */
    int64_t *dims;    /* [n_dims] of the run that is under way */
    uint32_t n_dims;
    uint64_t runs;
} part;

static const char NAME[] = "OnnxTile";

static ort_status *no_memory(const part *p)
{
    return ort_failure(p->computed.api, "out of memory", NULL);
}

/* ---- planning ---- */

#define TRY_PLAN(t, expr)                         \
    do {                                          \
        if ((expr) != ONNX_TILE_OK) return false; \
    } while (0)

/* Inputs have the dimensions of the run that is under way. */
static bool bind_shapes(const part *p, const form *f, onnx_tile *t)
{
    const int64_t *at = p->dims;
    for (size_t k = 0; f->is_free && k < f->n_from; k++) {
        const uint32_t rank = (uint32_t)*at++;
        TRY_PLAN(t, onnx_tile_bind_shape(t, p->inputs[f->from[k]], at, rank));
        at += rank;
    }
    return true;
}

static bool plan_into(const part *p, const form *f, onnx_tile *t)
{
    const ep_settings *s = &p->settings;
    TRY_PLAN(t, onnx_tile_set_runtime(t, "engine"));
    TRY_PLAN(t, onnx_tile_set_goal(t, s->goal));
    TRY_PLAN(t, onnx_tile_set_threads(t, s->threads));
    TRY_PLAN(t, onnx_tile_set_memory_budget(t, s->budget));
    if (s->max_slowdown >= 0) TRY_PLAN(t, onnx_tile_set_max_slowdown(t, s->max_slowdown));
    if (!bind_shapes(p, f, t)) return false;
    const ep_model *m = &f->model;
    TRY_PLAN(t, onnx_tile_load_lent(t, m->bytes.at, m->bytes.n, m->pieces.lent, m->pieces.n));
    TRY_PLAN(t, onnx_tile_optimise(t));
    return true;
}

/* The part as the engine runs it best, but for lent contents; *bytes by onnx_tile_free_bytes. */
static ort_status *plan(const part *p, const form *f, void **bytes, size_t *n)
{
    onnx_tile *t = NULL;
    *bytes = NULL;
    if (onnx_tile_create(&t) != ONNX_TILE_OK) return no_memory(p);
    ort_status *st = plan_into(p, f, t) && onnx_tile_save_lent(t, bytes, n) == ONNX_TILE_OK
                         ? NULL
                         : ort_failure(p->computed.api, NAME, onnx_tile_error(t));
    onnx_tile_free(t);
    return st;
}

/* Contents of constants are in memory, until ep_pieces_return. */
static ort_status *lend(const part *p, form *f)
{
    char line[400];
    const char *path = ep_pieces_lend(&f->model.pieces);
    if (!path) return NULL;
    ep_pieces_return(&f->model.pieces);
    if (!*path) return no_memory(p);
    snprintf(line, sizeof line, "'%.300s' was written to since the session was made, or is cut off",
             path);
    return ort_failure(p->computed.api, NAME, line);
}

/* The session of what was planned. */
static ort_status *load(part *p, const form *f, onnx_tile_session *session, const void *bytes,
                        size_t n)
{
    const ep_pieces *x = &f->model.pieces;
    p->computed.session = session;
    TRY_ORT(ort_computed_set_threads(&p->computed, p->settings.threads, p->computed.parallel));
    if (onnx_tile_session_load_lent(session, bytes, n, x->lent, x->n) != ONNX_TILE_OK)
        return ort_failure(p->computed.api, NAME, onnx_tile_session_error(session));
    return onnx_tile_session_input_count(session) == f->n_from
               ? NULL
               : ort_failure(p->computed.api, NAME, "a part has other inputs than its model");
}

static void forget(sized *s)
{
    onnx_tile_session_free(s->session);
    free(s->dims);
    *s = (sized){0};
}

/* The session in that place, of what was planned. */
static ort_status *open_session(part *p, const form *f, sized *s, const void *bytes, size_t n)
{
    if (onnx_tile_session_create(&s->session) != ONNX_TILE_OK) return no_memory(p);
    ort_status *st = load(p, f, s->session, bytes, n);
    if (st) forget(s);
    return st;
}

/* A session for the size that is asked for, in that place. */
static ort_status *make_session(part *p, form *f, sized *s)
{
    void *bytes = NULL;
    size_t n = 0;
    forget(s);
    s->dims = malloc((p->n_dims + 1) * sizeof *s->dims);
    if (!s->dims) return no_memory(p);
    memcpy(s->dims, p->dims, p->n_dims * sizeof *s->dims);
    s->n_dims = p->n_dims;
    TRY_ORT(lend(p, f));
    ort_status *st = plan(p, f, &bytes, &n);
    if (!st) st = open_session(p, f, s, bytes, n);
    ep_pieces_return(&f->model.pieces);
    onnx_tile_free_bytes(bytes);
    return st;
}

/* ---- a run ---- */

/* Dimensions of input k behind the others. */
static ort_status *read_dims(part *p, ort_context *c, size_t k)
{
    const ort_api *api = p->computed.api;
    const ort_value *value;
    ort_shape *s;
    size_t rank = 0;
    TRY_ORT(CALL(api, ORT_INPUT, ort_input)(c, k, &value));
    if (!value) return ort_failure(api, NAME, "an input that a part needs is omitted");
    TRY_ORT(CALL(api, ORT_TENSOR_SHAPE, ort_tensor_shape)(value, &s));
    ort_status *st = CALL(api, ORT_SHAPE_RANK, ort_shape_rank)(s, &rank);
    if (!st && rank > ONNX_TILE_RANK_MAX)
        st = ort_failure(api, "an input has more than 16 dimensions", p->inputs[k]);
    if (!st) {
        p->dims[p->n_dims++] = (int64_t)rank;
        st = CALL(api, ORT_SHAPE_DIMS, ort_shape_dims)(s, p->dims + p->n_dims, rank);
        p->n_dims += (uint32_t)rank;
    }
    CALL(api, ORT_RELEASE_SHAPE, ort_release_shape)(s);
    return st;
}

static bool is_asked(const part *p, const sized *s)
{
    return s->session && s->n_dims == p->n_dims &&
           memcmp(s->dims, p->dims, p->n_dims * sizeof *p->dims) == 0;
}

/* The place of the size of this run, or the one that has waited longest. */
static ort_status *find_session(part *p, form *f, ort_context *c)
{
    size_t at = 0;
    p->n_dims = 0;
    for (size_t k = 0; k < f->n_from; k++) TRY_ORT(read_dims(p, c, f->from[k]));
    for (size_t k = 0; k < p->settings.sizes; k++) {
        if (f->all[k].last < f->all[at].last) at = k;
        if (is_asked(p, &f->all[k])) {
            at = k;
            break;
        }
    }
    if (!is_asked(p, &f->all[at])) TRY_ORT(make_session(p, f, &f->all[at]));
    f->all[at].last = ++p->runs;
    p->computed.session = f->all[at].session;
    return NULL;
}

/* The form for this run. */
static ort_status *find_form(part *p, ort_context *c, form **out)
{
    const ort_api *api = p->computed.api;
    size_t n = 0;
    *out = &p->usual;
    TRY_ORT(CALL(api, ORT_INPUT_COUNT, ort_count)(c, &n));
    if (n != p->n_inputs) return ort_failure(api, NAME, "a part has other inputs");
    for (size_t k = 0; p->n_defaults > 0 && k < n; k++) {
        const ort_value *v = NULL;
        bool is_default = false;
        if (!p->defaults[k].there) continue;
        TRY_ORT(CALL(api, ORT_INPUT, ort_input)(c, k, &v));
        if (v) TRY_ORT(ep_default_is(api, &p->defaults[k], v, &is_default));
        if (!is_default) *out = &p->open;
    }
    return NULL;
}

static ort_status *run(part *p, ort_context *c)
{
    form *f;
    TRY_ORT(find_form(p, c, &f));
    if (f->is_free)
        TRY_ORT(find_session(p, f, c));
    else
        p->computed.session = f->all[0].session;
    p->computed.from = f->from;
    return ort_computed_run(&p->computed, c);
}

static ort_status *compute(ort_compute_info *info, void *state, ort_context *c)
{
    part *p = (part *)info;
    (void)state;
    pthread_mutex_lock(&p->computed.lock);
    p->computed.running = c;
    ort_status *st = run(p, c);
    p->computed.running = NULL;
    pthread_mutex_unlock(&p->computed.lock);
    return st;
}

static ort_status *open_planned(part *p, form *f)
{
    if (!f->planned) return NULL;
    TRY_ORT(lend(p, f));
    ort_status *st = open_session(p, f, &f->all[0], f->planned, f->n_planned);
    ep_model_free(&f->model);
    onnx_tile_free_bytes(f->planned);
    f->planned = NULL;
    return st;
}

static ort_status *create_state(ort_compute_info *info, ort_compute_context *c, void **state)
{
    part *p = (part *)info;
    (void)c;
    *state = info;
#ifdef __GLIBC__
    (void)malloc_trim(0); /* the runtime has let constants go that only parts read */
#endif
    pthread_mutex_lock(&p->computed.lock);
    ort_status *st = open_planned(p, &p->usual);
    pthread_mutex_unlock(&p->computed.lock);
    return st;
}

static void release_state(ort_compute_info *info, void *state) { (void)info, (void)state; }

/* ---- making one ---- */

/* Names of the inputs, and whether their dimensions are known. */
static ort_status *take_inputs(part *p, const ep_tables *t, const ort_value_info *const *values)
{
    p->inputs = calloc(p->n_inputs + 1, sizeof *p->inputs);
    p->fixed = calloc(p->n_inputs + 1, sizeof *p->fixed);
    if (!p->inputs || !p->fixed) return no_memory(p);
    for (size_t k = 0; k < p->n_inputs; k++) {
        const char *name;
        TRY_ORT(ep_value_name(t, values[k], &name));
        TRY_ORT(ep_value_is_fixed(t, values[k], &p->fixed[k]));
        p->inputs[k] = strdup(name);
        if (!p->inputs[k]) return no_memory(p);
    }
    return NULL;
}

static ort_status *read_inputs(part *p, const ep_tables *t, const ort_node *node)
{
    const ort_value_info **values;
    ort_status *st = ep_node_values(t, node, ORT_NODE_INPUT_COUNT, ORT_NODE_INPUTS, &values,
                                    &p->n_inputs);
    if (!st) st = take_inputs(p, t, values);
    free(values);
    return st;
}

static ort_status *keep(const part *p, form *f, const char *path)
{
    return ep_pieces_keep(&f->model.pieces, path) ? NULL : no_memory(p);
}

/* All dimensions are known: the plan, and the session, unless its weights are for the most part in
 * files: it is made when the runtime has let its own go. */
static ort_status *compile(part *p, form *f, const char *path)
{
    ep_pieces *x = &f->model.pieces;
    size_t in_files = 0, all = 0;
    TRY_ORT(lend(p, f));
    ort_status *st = plan(p, f, &f->planned, &f->n_planned);
    if (!st && !ep_pieces_find(x, path)) st = no_memory(p);
    ep_pieces_count(x, &in_files, &all);
    if (!st && all > 0 && in_files >= all / 2) {
        ep_pieces_return(x);
        return keep(p, f, path);
    }
    if (!st) st = open_session(p, f, &f->all[0], f->planned, f->n_planned);
    ep_model_free(&f->model);
    onnx_tile_free_bytes(f->planned);
    f->planned = NULL;
    return st;
}

/* The open form is for rare runs: sessions are made by those alone. */
static ort_status *fill_form(part *p, const ep_tables *t, const ort_graph *g, const ort_node *node,
                             form *f)
{
    const bool usual = f == &p->usual;
    const char *path = "";
    TRY_ORT(CALL(p->computed.api, ORT_GRAPH_PATH, ort_graph_path)(g, &path));
    TRY_ORT(ep_model_write(t, g, node, usual, &f->model));
    f->all = calloc(p->settings.sizes, sizeof *f->all);
    f->from = calloc(p->n_inputs + 1, sizeof *f->from);
    if (!f->all || !f->from) return no_memory(p);
    f->is_free = !usual;
    for (size_t k = 0; k < p->n_inputs; k++) {
        if (usual && p->defaults[k].there) continue;
        f->from[f->n_from++] = (uint32_t)k;
        f->is_free |= !p->fixed[k];
    }
    return f->is_free ? keep(p, f, path) : compile(p, f, path);
}

static ort_status *fill(part *p, const ep_tables *t, const ort_graph *g, const ort_node *node)
{
    TRY_ORT(read_inputs(p, t, node));
    TRY_ORT(ep_defaults_find(t, g, p->inputs, p->n_inputs, &p->defaults, &p->n_defaults));
    p->dims = calloc(p->n_inputs * (ONNX_TILE_RANK_MAX + 1) + 1, sizeof *p->dims);
    if (!p->dims) return no_memory(p);
    TRY_ORT(fill_form(p, t, g, node, &p->usual));
    return p->n_defaults > 0 ? fill_form(p, t, g, node, &p->open) : NULL;
}

static void free_form(const part *p, form *f)
{
    for (size_t k = 0; f->all && k < p->settings.sizes; k++) forget(&f->all[k]);
    free(f->all);
    free(f->from);
    onnx_tile_free_bytes(f->planned);
    ep_model_free(&f->model);
}

void ep_part_free(ort_compute_info *info)
{
    part *p = (part *)info;
    if (!p) return;
    free_form(p, &p->usual);
    free_form(p, &p->open);
    for (size_t k = 0; p->inputs && k < p->n_inputs; k++) free(p->inputs[k]);
    free(p->inputs);
    free(p->fixed);
    free(p->defaults);
    free(p->dims);
    pthread_mutex_destroy(&p->computed.lock);
    free(p);
}

ort_status *ep_part_new(const ep_tables *t, const ep_settings *s, const ort_graph *g,
                        const ort_node *node, ort_compute_info **out)
{
    part *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p || pthread_mutex_init(&p->computed.lock, NULL) != 0) {
        free(p);
        return ort_failure(t->api, "out of memory", NULL);
    }
    p->info = (ort_compute_info){ORT_VERSION_EP, create_state, compute, release_state};
    p->settings = *s;
    p->computed.api = t->api;
    p->computed.what = NAME;
    p->computed.parallel = s->threads ? NULL : CALL(t->api, ORT_PARALLEL_FOR, ort_parallel_for);
    ort_status *st = fill(p, t, g, node);
    if (st)
        ep_part_free(&p->info);
    else
        *out = &p->info;
    return st;
}
