/* Contents of the constants that a model computes, by the engine's reference implementations: they
 * are what ONNX Runtime makes of them while it loads the model (transform/fold_constants.c).
 */
#include "constants.h"

#include "engine/core/engine.h"

#include <string.h>

#ifdef OT_ENGINE
/* g, a copy, becomes what computes them. */
static ot_status keep_computing(ot_graph *g, const ot_computed *c)
{
    ot_arena *a = g->model->arena;
    for (ot_id id = 0; id < g->n_nodes; id++)
        if (!g->nodes[id].dead && !c->nodes[id]) ot_node_remove(g, id);
    for (ot_id v = 0; v < g->n_values; v++) {
        ot_value *x = &g->values[v];
        x->is_output = x->is_input = false;
        if (x->producer != OT_NONE || x->init || !(x->known || x->known_floats)) continue;
        if (!(x->init = ot_known_tensor(a, x))) return ot_fail_nomem(g->model->diag);
    }
    g->n_inputs = 0;
    g->outputs = ot_memdup(a, c->values, c->n * sizeof *c->values);
    g->n_outputs = c->n;
    if (!g->outputs) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < c->n; k++) g->values[c->values[k]].is_output = true;
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}

/* The array as a tensor, borrowed. false: it does not lie as tensors do. */
static bool tensor_of(const ot_nd *x, ot_tensor *t)
{
    int64_t n = 0;
    const size_t each = ot_dtype_bytes(x->dtype);
    if (each == 0 || x->list || !ot_nd_is_dense(x) || !ot_nd_elems(x, &n)) return false;
    *t = (ot_tensor){.dtype = x->dtype,
                     .rank = x->rank,
                     .dims = x->dims,
                     .data = x->data,
                     .bytes = (size_t)n * each};
    return true;
}

static bool same_tensor(const ot_tensor *a, const ot_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
           memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
           (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

static const ot_tensor *keep(ot_arena *a, const ot_tensor *t)
{
    ot_tensor *kept = ot_memdup(a, t, sizeof *t);
    if (!kept) return NULL;
    kept->dims = ot_memdup(a, t->dims, t->rank * sizeof *t->dims);
    kept->data = ot_memdup(a, t->data, t->bytes);
    return kept->dims && kept->data ? kept : NULL;
}

/* Results of the session, equal ones as one tensor. */
static ot_status take(ot_arena *a, const ot_nd *made, ot_constants *out)
{
    uint64_t *hashes = OT_NEW_N(a, uint64_t, out->computed.n + 1u);
    if (!hashes) return OT_E_NOMEM;
    for (uint32_t k = 0; k < out->computed.n; k++) {
        ot_tensor t;
        if (!tensor_of(&made[k], &t)) return OT_E_INPUT;
        hashes[k] = ot_hash_bytes(0, t.data, t.bytes);
        for (uint32_t j = 0; j < k && !out->contents[k]; j++)
            if (hashes[j] == hashes[k] && same_tensor(out->contents[j], &t))
                out->contents[k] = out->contents[j];
        if (!out->contents[k] && !(out->contents[k] = keep(a, &t))) return OT_E_NOMEM;
    }
    return OT_OK;
}

static ot_status compute(ot_model *copy, ot_arena *a, ot_constants *out, ot_diag *d)
{
    const ot_session_options o = {.threads = 1, .reference = true};
    ot_session *s = NULL;
    ot_nd *made = OT_NEW_N(a, ot_nd, out->computed.n + 1u);
    if (!made) return OT_E_NOMEM;
    OT_TRY(keep_computing(copy->graph, &out->computed));
    OT_TRY(ot_session_new(copy, &o, d, &s));
    ot_status st = ot_session_run(s, NULL, made, d);
    if (st == OT_OK) st = take(a, made, out);
    ot_session_free(s);
    return st;
}

ot_status ot_constants_compute(const ot_model *m, bool bit_exact, ot_arena *a, ot_constants *out)
{
    ot_diag unsaid = {0};
    ot_model *copy;
    OT_TRY(ot_find_constants(m->graph, bit_exact, a, &out->computed));
    const uint32_t n = out->computed.n;
    out->contents = OT_NEW_N(a, const ot_tensor *, n + 1u);
    out->made = OT_NEW_N(a, ot_id, n + 1u);
    if (!out->contents || !out->made) return ot_fail_nomem(m->diag);
    if (n == 0) return OT_OK;
    OT_TRY(ot_model_clone(m, &copy));
    copy->diag = &unsaid;
    copy->source = m->source; /* borrowed: nothing frees it here */
    if (compute(copy, a, out, &unsaid) != OT_OK) out->computed.n = 0; /* they stay as they are */
    ot_model_free(copy);
    return OT_OK;
}
#else
ot_status ot_constants_compute(const ot_model *m, bool bit_exact, ot_arena *a, ot_constants *out)
{
    (void)m, (void)bit_exact, (void)a;
    *out = (ot_constants){0};
    return OT_OK;
}
#endif
