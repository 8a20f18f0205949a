/* Which nodes go into operators for ONNX Runtime with the engine as a library
 * (onnx/export/export_parts.c), or to its execution provider (src/ort). What goes there is what the
 * engine runs: said when the model is written, not where it is loaded.
 */
#include "pipeline.h"

#include "engine/core/engine.h"
#include "onnx/graph/node_parts.h"
#include "onnx/import/model_io.h"
#include "ops/guessed_size.h"

#ifdef OT_ENGINE
/* A value that an operator of ONNX Runtime can be given, or give. */
static bool can_cross(const ot_graph *g, ot_id id)
{
    if (id == OT_NONE) return true;
    const ot_value *v = &g->values[id];
    return v->is_tensor && v->dtype != OT_DT_UNKNOWN && v->dtype != OT_STRING &&
           ot_dtype_bits(v->dtype) >= 8;
}

/* Nodes with graphs of their own stay with ONNX Runtime, whatever these hold. */
static bool engine_has(const ot_model *m, const ot_node *n)
{
    bool ok = ot_op_choose(n, false) != NULL;
    for (uint32_t k = 0; ok && k < n->n_attrs; k++) ok = !ot_attr_has_graph(m, &n->attrs[k]);
    for (uint32_t k = 0; ok && k < n->n_in; k++) ok = can_cross(m->graph, n->in[k]);
    for (uint32_t k = 0; ok && k < n->n_out; k++) ok = can_cross(m->graph, n->out[k]);
    return ok;
}

static bool is_slow(const ot_graph *g, const ot_node *n) { return ot_op_is_slow(g, n); }

/* The engine runs that body. */
static ot_status try_body(void *ctx, const void *bytes, size_t n, const ot_lent *lent,
                          size_t n_lent)
{
    const ot_session_options o = {.threads = 1, .checks_only = true};
    const ot_run *r = ctx;
    ot_model *written = NULL;
    ot_session *session = NULL;
    ot_status s = ot_import_lent(bytes, n, lent, n_lent, r->diag, &written);
    if (s == OT_OK) s = ot_session_new(written, &o, r->diag, &session);
    ot_session_free(session);
    ot_model_free(written);
    return s;
}

void ot_run_keep_whole(ot_run *r)
{
    ot_graph *g = r->model->graph;
    for (ot_id id = 0; r->options.emit_engine && id < g->n_nodes; id++) {
        ot_node *n = &g->nodes[id];
        n->stays_whole = !n->dead && n->op == OT_OP_OPAQUE && !n->calls_function &&
                         strcmp(n->domain, OT_TILE_DOMAIN) != 0 && !ot_op_choose(n, false);
    }
}
#else
void ot_run_keep_whole(ot_run *r) { (void)r; }

static bool engine_has(const ot_model *m, const ot_node *n) { return (void)m, (void)n, false; }
static bool is_slow(const ot_graph *g, const ot_node *n) { return (void)g, (void)n, true; }

static ot_status try_body(void *ctx, const void *bytes, size_t n, const ot_lent *lent,
                          size_t n_lent)
{
    return (void)ctx, (void)bytes, (void)n, (void)lent, (void)n_lent, OT_OK;
}
#endif

/* Nodes that go into operators: what regions became, and where `all` what the engine has besides.
 */
static ot_status mark_nodes(ot_model *m, bool all)
{
    static const char made[] = "tile/r";
    const ot_graph *g = m->graph;
    bool *in = OT_NEW_N(m->arena, bool, g->n_nodes + 1u);
    if (!in) return ot_fail_nomem(m->diag);
    for (ot_id id = 0; id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        const bool tiled = n->source == OT_NONE && strncmp(n->name, made, sizeof made - 1) == 0;
        in[id] = !n->dead &&
                 (tiled || strcmp(n->domain, OT_TILE_DOMAIN) == 0 || (all && engine_has(m, n)));
    }
    m->in_operator = in;
    return OT_OK;
}

ot_status ot_run_mark_operators(ot_run *r)
{
    const ot_operators which = r->options.operators;
    if (which == OT_OPERATORS_NONE) return OT_OK;
    if (which != OT_OPERATORS_WHOLE) {
        r->model->static_inputs |= r->options.n_shapes > 0; /* bodies state extents */
        OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
        OT_TRY(mark_nodes(r->model, which == OT_OPERATORS_PARTS));
    }
    ot_status s = ot_export_bodies(r->model, try_body, r);
    if (s != OT_E_INPUT || which != OT_OPERATORS_WHOLE) return s;
    const ot_diag why = *r->diag;
    *r->diag = (ot_diag){0};
    return ot_fail(
        r->diag, s,
        "%.800s; --ort-operators parts leaves to ONNX Runtime what the engine does not have",
        why.message);
}

/* What the engine has and runs as fast; nodes on paths between others that wait for it stay. */
static bool *fast_nodes(const ot_model *m, ot_arena *a)
{
    const ot_graph *g = m->graph;
    bool *in = OT_NEW_N(a, bool, g->n_nodes + 1u);
    for (ot_id id = 0; in && id < g->n_nodes; id++) {
        const ot_node *n = &g->nodes[id];
        in[id] = !n->dead && engine_has(m, n) && !is_slow(g, n);
    }
    return in;
}

/* The part of the node that makes a value; OT_NONE: it stays, or none makes it. */
static uint32_t part_of(const ot_graph *g, const ot_parts *parts, const char *value)
{
    const ot_id v = ot_value_find(g, value), n = v == OT_NONE ? OT_NONE : ot_part_maker(g, v);
    return n == OT_NONE ? OT_NONE : parts->part[n];
}

ot_status ot_run_engine_parts(ot_run *r, const char *const *values, size_t n, uint32_t *part)
{
    ot_graph *g = r->model->graph;
    ot_arena *a = r->model->arena;
    ot_guessed_sizes sizes;
    ot_parts parts;
    OT_TRY(ot_guess_sizes(r->model, r->options.shapes, r->options.n_shapes, NULL, a, &sizes));
    OT_TRY(ot_infer_shapes(g, sizes.all, sizes.n));
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    const bool *in = fast_nodes(r->model, a);
    if (!in) return ot_fail_nomem(r->diag);
    OT_TRY(ot_parts_find(g, in, a, r->diag, &parts));
    for (size_t k = 0; k < n; k++) part[k] = part_of(g, &parts, values[k]);
    return OT_OK;
}
