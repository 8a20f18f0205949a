/* A session: one model, ready to run.
 *
 *   new   overrides -> shapes -> schedule -> weights -> memory plan -> arena
 *   run   inputs are checked and bound -> steps -> outputs
 *         (elsewhere, a place of its own takes the schedule and runs it: engine/device)
 *   free  everything, and the model is as it was but for its inferred shapes
 *
 * Sessions share nothing: two may run in two threads. Results of a run stay in the session until
 * the next.
 */
#include "session_make.h"

#include "engine/core/row_window.h"
#include "onnx/import/model_io.h"

/* ---- making ---- */

/* The array has the shape that the value has, as far as that is known, and no holes. */
static ot_status check_dims(const ot_session *s, const ot_value *v, const ot_nd *a)
{
    char given[400], takes[400];
    bool fits = v->rank < 0 || (uint32_t)v->rank == a->rank;
    for (int32_t k = 0; k < v->rank && fits; k++) fits = v->dims[k] < 0 || v->dims[k] == a->dims[k];
    if (fits && ot_nd_is_dense(a)) return OT_OK;
    return ot_fail(s->d, OT_E_INPUT, "input '%.200s' has shape %s, but %s is given%s", v->name,
                   ot_dims_text(v->rank, v->dims, takes, sizeof takes),
                   ot_dims_text(a->rank, a->dims, given, sizeof given), fits ? ", not dense" : "");
}

/* Initializers that are inputs get the contents that the caller gives. */
static ot_status override(ot_session *s, const ot_override *o)
{
    ot_graph *g = s->m->graph;
    ot_id id = ot_value_find(g, o->name);
    if (id == OT_NONE || !g->values[id].overridable)
        return ot_fail(s->d, OT_E_INPUT,
                       "input '%.200s' cannot be given: the model has no such input", o->name);
    ot_value *v = &g->values[id];
    if (!o->array.data || v->dtype != o->array.dtype)
        return ot_fail(s->d, OT_E_INPUT, "input '%.200s' is %s, but %s is given", o->name,
                       ot_dtype_name(v->dtype), ot_dtype_name(o->array.dtype));
    OT_TRY(check_dims(s, v, &o->array));
    ot_tensor *t = OT_NEW(s->a, ot_tensor);
    int64_t bytes;
    if (!t) return ot_fail_nomem(s->d);
    if (!ot_nd_bytes(o->array.dtype, o->array.rank, o->array.dims, &bytes))
        OT_BUG("an array of impossible size");
    *t = (ot_tensor){.dtype = o->array.dtype,
                     .rank = o->array.rank,
                     .data = o->array.data,
                     .bytes = (size_t)bytes};
    t->dims = ot_memdup(s->a, o->array.dims, o->array.rank * sizeof *t->dims);
    if (!t->dims) return ot_fail_nomem(s->d);
    s->overridden[s->n_overridden].value = v;
    s->overridden[s->n_overridden++].init = v->init;
    v->init = t;
    return OT_OK;
}

static ot_status list_inputs(ot_session *s)
{
    const ot_graph *g = s->m->graph;
    s->inputs = OT_NEW_N(s->a, ot_id, g->n_inputs + 1u);
    s->copies = OT_NEW_N(s->a, ot_nd, g->n_outputs + 1u);
    if (!s->inputs || !s->copies) return ot_fail_nomem(s->d);
    for (uint32_t k = 0; k < g->n_inputs; k++)
        if (!g->values[g->inputs[k]].init) s->inputs[s->n_inputs++] = g->inputs[k];
    return OT_OK;
}

static ot_status list_times(ot_session *s)
{
    for (const ot_schedule *p = s->all; p; p = p->next) {
        s->figures.n_nodes += p->n_steps;
        s->n_times += p->times ? p->n_steps : 0;
    }
    OT_TRY(ot_schedule_time(s->top));
    s->n_times += s->top->n_steps;
    s->times = OT_NEW_N(s->a, ot_node_time, s->n_times + 1u);
    return s->times ? OT_OK : ot_fail_nomem(s->d);
}

/* Before a run: nothing took any time. After it: all that did, the top schedule first. */
static void collect_times(ot_session *s, bool after)
{
    uint32_t n = s->top->n_steps;
    if (after) memcpy(s->times, s->top->times, n * sizeof *s->times);
    for (const ot_schedule *p = s->all; p; p = p->next)
        for (uint32_t k = 0; p->times && k < p->n_steps; k++) {
            if (after && p != s->top) s->times[n++] = p->times[k];
            if (!after) p->times[k].seconds = 0;
        }
}

static ot_status take_arena(ot_session *s)
{
    s->arena_bytes = s->top->arena_bytes;
    if (s->arena_bytes == 0) return OT_OK;
    s->arena = ot_block_new(NULL, (size_t)s->arena_bytes);
    if (!s->arena) return ot_fail_nomem(s->d);
    s->top->base = ot_block_data(s->arena);
    return OT_OK;
}

static ot_status build(ot_session *s, const ot_session_options *o)
{
    ot_graph *g = s->m->graph;
    s->threads = o->threads ? o->threads : 1;
    s->reference = o->reference;
    s->hire = ot_schedule_hire;
    s->poison = o->poison;
    s->guards = s->heap.guards = o->guards;
    s->place = o->place;
    s->checks_only = o->checks_only;
    s->plans_only = o->checks_only || o->plans_only;
    s->releases = o->releases && o->n_overrides == 0;
    s->overridden = ot_alloc_n(s->a, o->n_overrides + 1, sizeof *s->overridden);
    if (!s->overridden) return ot_fail_nomem(s->d);
    for (size_t k = 0; k < o->n_overrides; k++) OT_TRY(override(s, &o->overrides[k]));
    if (s->threads > 1 && ot_pool_new(s->threads, &s->pool) != OT_OK) return ot_fail_nomem(s->d);
    if (s->pool && o->executor.run) ot_pool_run_on(s->pool, o->executor);
    ot_pool_use(s->pool);
    OT_TRY(list_inputs(s));
    OT_TRY(ot_infer_shapes(g, o->shapes, o->n_shapes));
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    s->figures.weight_bytes = (int64_t)s->m->weight_bytes;
    OT_TRY(ot_schedule_new(s, g, NULL, s->threads, 0, NULL, &s->top));
    if (s->plans_only) {
        OT_TRY(ot_schedule_plan(s->top));
        s->arena_bytes = s->top->arena_bytes;
    } else if (s->place) {
        OT_TRY(s->place->make(s->place, s, &s->placed));
    } else {
        OT_TRY(ot_finish_weights(s));
        OT_TRY(ot_schedule_plan(s->top));
        OT_TRY(take_arena(s));
    }
    s->heap.peak = s->heap.live; /* what making took is no part of a run */
    return list_times(s);
}

ot_status ot_session_new(ot_model *m, const ot_session_options *o, ot_diag *d, ot_session **out)
{
    return ot_session_make(m, o, NULL, d, out);
}

/* Runs describe failures in the model's diag: sessions that run at once need one each. */
static ot_status stand_beside(ot_session *s, const ot_session *of)
{
    s->m = ot_memdup(s->a, of->m, sizeof *s->m);
    return s->m ? ot_session_borrow(s, of) : ot_fail_nomem(s->d);
}

ot_status ot_session_make(ot_model *m, const ot_session_options *o, ot_session *of, ot_diag *d,
                          ot_session **out)
{
    ot_arena *a = ot_arena_new();
    ot_session *s = a ? OT_NEW(a, ot_session) : NULL;
    if (!s) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    ot_diag *told = m->diag;
    *s = (ot_session){.m = m, .a = a, .d = d};
    m->diag = d; /* of this call: passes describe failures there */
    ot_pool *pool = ot_pool_use(NULL);
    int threads = ot_dnnl_threads(1);
    ot_status st = of ? stand_beside(s, of) : OT_OK;
    if (st == OT_OK) st = build(s, o);
    (void)ot_dnnl_threads((uint32_t)threads);
    (void)ot_pool_use(pool);
    m->diag = told;
    s->d = NULL;
    st = ot_import_check(m, st, d);
    if (st != OT_OK) {
        ot_session_free(s);
        return st;
    }
    *out = s;
    return OT_OK;
}

static void clear_results(ot_session *s)
{
    if (s->top && s->top->slots) ot_schedule_clear(s->top);
    for (uint32_t k = 0; s->copies && k < s->m->graph->n_outputs; k++) ot_nd_release(&s->copies[k]);
}

void ot_session_free(ot_session *s)
{
    if (!s) return;
    clear_results(s);
    if (s->place) s->place->free(s->placed);
    for (ot_schedule *p = s->all; p; p = p->next) ot_schedule_release(p);
    ot_packed_free(s->packed);
    ot_dnnl_release_engine(s->dnnl);
    ot_pool_free(s->pool);
    ot_block_unref(s->arena);
    while (s->n_overridden) {
        s->n_overridden--;
        s->overridden[s->n_overridden].value->init = s->overridden[s->n_overridden].init;
    }
    ot_arena_free(s->a);
}

/* ---- asking ---- */

uint32_t ot_session_inputs(const ot_session *s) { return s->n_inputs; }
uint32_t ot_session_outputs(const ot_session *s) { return s->m->graph->n_outputs; }
const ot_value *ot_session_input(const ot_session *s, uint32_t k)
{
    return &s->m->graph->values[s->inputs[k]];
}
const ot_value *ot_session_output(const ot_session *s, uint32_t k)
{
    return &s->m->graph->values[s->m->graph->outputs[k]];
}

void ot_session_figures_get(const ot_session *s, ot_session_figures *out)
{
    *out = s->figures;
    out->planned_peak = s->arena_bytes;
    out->peak = s->arena_bytes + s->heap.peak;
}

void ot_session_trace(ot_session *s, struct ot_trace *t) { s->trace = t; }

const ot_node_time *ot_session_times(const ot_session *s, uint32_t *n)
{
    *n = s->n_times;
    return s->times;
}

/* ---- running ---- */

static ot_status check_input(const ot_session *s, const ot_value *v, const ot_nd *a)
{
    if (!v->is_tensor) {
        if (a->list) return OT_OK;
        return ot_fail(s->d, OT_E_INPUT, "input '%.200s' is no tensor, but one is given", v->name);
    }
    if (!a->data) return ot_fail(s->d, OT_E_INPUT, "input '%.200s' is not given", v->name);
    if (v->dtype != OT_DT_UNKNOWN && v->dtype != a->dtype)
        return ot_fail(s->d, OT_E_INPUT, "input '%.200s' is %s, but %s is given", v->name,
                       ot_dtype_name(v->dtype), ot_dtype_name(a->dtype));
    return check_dims(s, v, a);
}

/* Inputs are read where they lie. */
static ot_status bind(ot_session *s, const ot_nd *in, const ot_nd *out)
{
    const ot_graph *g = s->m->graph;
    for (uint32_t k = 0; k < s->n_inputs; k++) {
        ot_slot *slot = &s->top->slots[s->inputs[k]];
        OT_TRY(check_input(s, &g->values[s->inputs[k]], &in[k]));
        slot->nd = in[k];
        slot->nd.block = NULL; /* the caller's, all the time */
        if (slot->nd.list) slot->nd.list->refs++;
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        ot_slot *slot = &s->top->slots[g->outputs[k]];
        if (!slot->is_const && !slot->is_borrowed) slot->place = OT_PLACE_HEAP;
    }
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        ot_slot *slot = &s->top->slots[g->outputs[k]];
        if (slot->is_const || slot->is_borrowed || slot->place == OT_PLACE_CALLER || !out[k].data ||
            !ot_nd_is_dense(&out[k]))
            continue;
        slot->place = OT_PLACE_CALLER;
        slot->want = out[k];
    }
    return OT_OK;
}

/* Outputs of which rows are handed on as they come: not those that something reads later. */
static void keep_rows(const ot_session *s, const ot_nd *out)
{
    const ot_graph *g = s->m->graph;
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_slot *slot = &s->top->slots[g->outputs[k]];
        bool read = slot->last != slot->born;
        for (uint32_t j = 0; j < g->n_outputs; j++)
            read = read || (j != k && g->outputs[j] == g->outputs[k]);
        if (read) ot_row_windows_keep(s->windows, out[k].data);
    }
}

/* A device takes its inputs as a whole. */
static ot_status bring_all(const ot_session *s, const ot_nd *in)
{
    for (uint32_t k = 0; s->place && k < s->n_inputs; k++)
        OT_TRY(ot_row_windows_need(s->windows, &in[k], UINT32_MAX, s->d));
    return OT_OK;
}

/* Result k as the caller wants it. */
static ot_status hand_out(ot_session *s, uint32_t k, ot_nd *out)
{
    const ot_value *v = ot_session_output(s, k);
    const ot_nd *a = &s->top->at[s->m->graph->outputs[k]]->nd;
    char made[400], given[400];
    int64_t bytes;
    if (!a->data && !a->list && a->dtype != OT_DT_UNKNOWN)
        return ot_fail(s->d, OT_E_INPUT,
                       "output '%.200s' is of type %s, which the engine does not hold", v->name,
                       ot_dtype_name(a->dtype));
    if (out->data != a->data) OT_TRY(ot_row_windows_need(s->windows, a, UINT32_MAX, s->d));
    if (!out->data) {
        if (!ot_nd_is_owned(a)) {
            OT_TRY(ot_nd_copy(&s->copies[k], a, &s->heap, s->d));
            a = &s->copies[k];
        }
        *out = *a;
        out->block = NULL; /* the session's */
        return OT_OK;
    }
    if (out->data == a->data) return OT_OK;
    if (!a->data || !ot_nd_same_shape(out, a->dtype, a->rank, a->dims) || !ot_nd_is_dense(out) ||
        !ot_nd_bytes(a->dtype, a->rank, a->dims, &bytes))
        return ot_fail(
            s->d, OT_E_INPUT, "output '%.200s' is %s %s, but the memory given for it is for %s %s",
            v->name, ot_dtype_name(a->dtype), ot_dims_text(a->rank, a->dims, made, sizeof made),
            ot_dtype_name(out->dtype), ot_dims_text(out->rank, out->dims, given, sizeof given));
    if (bytes) memcpy(out->data, a->data, (size_t)bytes);
    return OT_OK;
}

static ot_status run(ot_session *s, const ot_nd *in, ot_nd *out)
{
    clear_results(s);
    OT_TRY(bind(s, in, out));
    OT_TRY(ot_row_windows_begin(s->windows, s->threads, s->d));
    keep_rows(s, out);
    OT_TRY(bring_all(s, in));
    if (s->poison && s->arena) memset(ot_block_data(s->arena), OT_POISON, (size_t)s->arena_bytes);
    collect_times(s, false);
    OT_TRY(s->place ? s->place->run(s->placed) : ot_schedule_run(s->top, s->top->times));
    collect_times(s, true);
    for (uint32_t k = 0; k < s->m->graph->n_outputs; k++) OT_TRY(hand_out(s, k, &out[k]));
    return ot_row_windows_end(s->windows, s->d);
}

ot_status ot_session_run(ot_session *s, const ot_nd *in, ot_nd *out, ot_diag *d)
{
    ot_diag *told = s->m->diag;
    s->d = s->m->diag = d;
    ot_pool *pool = ot_pool_use(s->pool);
    int threads = ot_dnnl_threads(1);
    if (s->plans_only) OT_BUG("a session that only plans was asked to run");
    ot_status st = run(s, in, out);
    (void)ot_dnnl_threads((uint32_t)threads);
    (void)ot_pool_use(pool);
    s->m->diag = told;
    s->d = NULL;
    if (st == OT_E_NOMEM) return ot_fail_nomem(d);
    return ot_import_check(s->m, st, d);
}
