/* What a session runs of the model that it has read: tiles of other runtimes are taken back, and
 * the engine's own are made.
 *
 *   read --> restored --> all dimensions known --plan--> session
 *     |                   some are free --> a session that only describes
 *     |                                       `-- run of new sizes --plan--> session, the last
 *     |                                                                      SIZES of them stay
 *     `--------------------------------------------> as it is --> session
 *
 * What cannot be planned or bound to a size runs as it is.
 */
#include "session_handle.h"

#include "app/engine_plan.h"
#include "app/original.h"
#include "transform/transform.h"

onnx_tile_status onnx_tile_session_set_plan(onnx_tile_session *s, onnx_tile_plan plan)
{
    if (!s) return ONNX_TILE_USAGE;
    LOCKED(s);
    if ((int)plan < ONNX_TILE_PLAN_AS_FILE || plan > ONNX_TILE_PLAN_MEMORY)
        return (onnx_tile_status)ot_fail(&s->diag, OT_E_USAGE, "there is no such plan");
    s->plan = plan;
    return ONNX_TILE_OK;
}

/* The model takes its inputs as they will come. */
static ot_status convert_inputs(onnx_tile_session *s)
{
    for (size_t k = 0; k < s->n_forms; k++)
        OT_TRY(ot_convert_input(s->m, s->forms[k].input, s->forms[k].type, s->forms[k].scale));
    return OT_OK;
}

#ifdef OT_ENGINE

#define SIZES 4

/* A size of all inputs, and the session for it. */
typedef struct sized {
    ot_session *s; /* NULL: none yet */
    ot_model *m;   /* a copy, which has the contents of the session's model */
    int64_t *dims; /* [n_dims] of all inputs, one behind the other, each after its rank */
    size_t n_dims;
    uint64_t last; /* run that used it last */
} sized;

struct ot_session_sizes {
    ot_engine_request plan; /* without shapes */
    ot_model *shown;        /* a copy for the session that describes */
    sized all[SIZES];
    sized whole; /* for any size */
    uint64_t runs;
};

static ot_status copy_model(const onnx_tile_session *s, ot_model **out)
{
    OT_TRY(ot_model_clone(s->m, out));
    (*out)->source = s->m->source; /* borrowed */
    return OT_OK;
}

static ot_status open_session(onnx_tile_session *s, ot_model *m, const ot_shape_binding *shapes,
                              size_t n, ot_session **out)
{
    const ot_session_options o = {.threads = s->threads,
                                  .executor = {s->run_tasks, s->run_tasks_of},
                                  .shapes = shapes,
                                  .n_shapes = n};
    return ot_session_new(m, &o, &s->diag, out);
}

/* ---- loading ---- */

static bool is_free(const ot_session *x)
{
    for (uint32_t k = 0; k < ot_session_inputs(x); k++)
        if (!ot_value_is_static(ot_session_input(x, k))) return true;
    return false;
}

/* *x: a session that tells of the model, NULL where the engine does not take it. */
static ot_status describe(onnx_tile_session *s, ot_model **m, ot_session **x)
{
    const ot_session_options o = {
        .threads = 1, .checks_only = true, .shapes = s->shapes.all, .n_shapes = s->shapes.n};
    ot_diag unsaid = {0};
    *x = NULL;
    OT_TRY(copy_model(s, m));
    const ot_status st = ot_session_new(*m, &o, &unsaid, x);
    return st == OT_E_NOMEM ? ot_fail_nomem(&s->diag) : OT_OK;
}

/* Each run says for which size. */
static ot_status plan_later(onnx_tile_session *s, const ot_engine_request *q, ot_model *shown,
                            ot_session *x)
{
    s->sizes = OT_NEW(s->a, ot_session_sizes);
    if (!s->sizes) return ot_fail_nomem(&s->diag);
    s->sizes->plan = *q;
    s->sizes->shown = shown;
    s->s = x;
    return OT_OK;
}

static ot_status plan_model(onnx_tile_session *s, ot_engine_request *q)
{
    ot_model *shown = NULL;
    ot_session *x = NULL;
    ot_status st = describe(s, &shown, &x);
    if (st == OT_OK && x && is_free(x)) {
        st = plan_later(s, q, shown, x);
        if (st == OT_OK) return OT_OK;
    }
    const bool known = st == OT_OK && x;
    ot_session_free(x);
    ot_model_free(shown);
    if (!known) return st;
    q->shapes = s->shapes.all;
    q->n_shapes = s->shapes.n;
    return ot_plan_for_engine(&s->m, q, &s->diag);
}

/* ---- runs of models with free dimensions ---- */

static void forget(sized *x)
{
    ot_session_free(x->s);
    ot_model_free(x->m);
    free(x->dims);
    *x = (sized){0};
}

static ot_status list_dims(onnx_tile_session *s, int64_t **dims, size_t *n)
{
    *n = s->n_in;
    for (uint32_t k = 0; k < s->n_in; k++) *n += s->in[k].rank;
    int64_t *at = *dims = malloc((*n + 1) * sizeof **dims);
    if (!at) return ot_fail_nomem(&s->diag);
    for (uint32_t k = 0; k < s->n_in; k++) {
        *at++ = s->in[k].rank;
        memcpy(at, s->in[k].dims, s->in[k].rank * sizeof *at);
        at += s->in[k].rank;
    }
    return OT_OK;
}

/* The size, bound. */
static ot_status bind_shapes(onnx_tile_session *s, const sized *x, ot_arena *a,
                             ot_shape_binding **out)
{
    const int64_t *at = x->dims;
    *out = OT_NEW_N(a, ot_shape_binding, s->n_in + 1u);
    if (!*out) return ot_fail_nomem(&s->diag);
    for (uint32_t k = 0; k < s->n_in; k++) {
        const uint32_t rank = (uint32_t)*at++;
        (*out)[k] = (ot_shape_binding){s->inputs[k]->name, rank, at, true, NULL};
        at += rank;
    }
    return OT_OK;
}

static ot_status make_sized(onnx_tile_session *s, sized *x, ot_arena *a)
{
    ot_engine_request q = s->sizes->plan;
    ot_shape_binding *shapes;
    OT_TRY(bind_shapes(s, x, a, &shapes));
    q.shapes = shapes;
    q.n_shapes = s->n_in;
    OT_TRY(ot_plan_engine_copy(s->m, &q, &s->diag, &x->m));
    if (!x->m) OT_TRY(copy_model(s, &x->m));
    return open_session(s, x->m, shapes, s->n_in, &x->s);
}

static ot_status make_whole(onnx_tile_session *s)
{
    sized *x = &s->sizes->whole;
    if (x->s) return OT_OK;
    ot_status st = x->m ? OT_OK : copy_model(s, &x->m);
    return st == OT_OK ? open_session(s, x->m, s->shapes.all, s->shapes.n, &x->s) : st;
}

static sized *place_of(ot_session_sizes *z, const int64_t *dims, size_t n)
{
    sized *oldest = &z->all[0];
    for (size_t k = 0; k < SIZES; k++) {
        sized *x = &z->all[k];
        if (x->s && x->n_dims == n && memcmp(x->dims, dims, n * sizeof *dims) == 0) return x;
        if (x->last < oldest->last) oldest = x;
    }
    forget(oldest);
    return oldest;
}

/* What the size is not for is said by the session for any size. */
static ot_status find_sized(onnx_tile_session *s, sized **out)
{
    int64_t *dims;
    size_t n;
    OT_TRY(list_dims(s, &dims, &n));
    sized *x = place_of(s->sizes, dims, n);
    *out = x;
    x->last = ++s->sizes->runs;
    if (x->s) {
        free(dims);
        return OT_OK;
    }
    x->dims = dims;
    x->n_dims = n;
    ot_arena *a = ot_arena_new();
    ot_status st = a ? make_sized(s, x, a) : ot_fail_nomem(&s->diag);
    ot_arena_free(a);
    if (st != OT_OK) forget(x);
    if (st != OT_E_INPUT && st != OT_E_USAGE) return st;
    s->diag = (ot_diag){0};
    *out = &s->sizes->whole;
    return make_whole(s);
}

ot_status ot_api_session_for_run(onnx_tile_session *s)
{
    sized *x;
    if (!s->sizes || s->is_shared) return OT_OK;
    s->runs = NULL;
    OT_TRY(find_sized(s, &x));
    s->runs = x->s;
    return OT_OK;
}

ot_status ot_api_session_for_all(onnx_tile_session *s)
{
    if (!s->sizes || s->is_shared) return OT_OK;
    OT_TRY(make_whole(s));
    for (size_t k = 0; k < SIZES; k++) forget(&s->sizes->all[k]);
    s->runs = s->sizes->whole.s;
    s->is_shared = true;
    s->has_run = false; /* results went with their session */
    return OT_OK;
}

void ot_api_sizes_free(onnx_tile_session *s)
{
    if (!s->sizes) return;
    for (size_t k = 0; k < SIZES; k++) forget(&s->sizes->all[k]);
    forget(&s->sizes->whole);
    ot_session_free(s->s);
    ot_model_free(s->sizes->shown);
    s->s = NULL;
    s->sizes = NULL;
}

#else

static ot_status plan_model(onnx_tile_session *s, const ot_engine_request *q)
{
    return (void)s, (void)q, OT_OK;
}

ot_status ot_api_session_for_run(onnx_tile_session *s) { return (void)s, OT_OK; }
ot_status ot_api_session_for_all(onnx_tile_session *s) { return (void)s, OT_OK; }
void ot_api_sizes_free(onnx_tile_session *s) { (void)s; }

#endif

ot_status ot_api_plan_model(onnx_tile_session *s)
{
    ot_original o;
    OT_TRY(ot_restore_original(s->m, &o));
    s->notice = o.why;
    OT_TRY(convert_inputs(s));
    if (s->plan == ONNX_TILE_PLAN_NOT || o.why || s->is_lent) return OT_OK;
    if (s->plan == ONNX_TILE_PLAN_AS_FILE && !o.restored) return OT_OK;
    ot_engine_request q = {.goal = s->plan == ONNX_TILE_PLAN_TIME ? OT_GOAL_TIME : OT_GOAL_MEMORY,
                           .max_slowdown = OT_MAX_SLOWDOWN,
                           .threads = s->threads};
    if (s->plan == ONNX_TILE_PLAN_AS_FILE) {
        q.goal = o.goal;
        q.max_slowdown = o.max_slowdown;
    }
    return plan_model(s, &q);
}
