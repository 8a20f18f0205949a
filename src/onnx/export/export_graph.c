/* Graphs: ot_graph -> GraphProto, for the top graph and for bodies.
 *
 * The file's graph, which may have become the body of a branch, starts as a copy of its message
 * struct, so that everything the IR does not know (documentation, quantisation annotations,
 * sparse initializers, newer fields) stays; then inputs, outputs, initializers, value_info and
 * nodes are replaced by what the IR says. A graph in which nothing changed is written as it
 * came, in file order.
 *
 * IR < 4 demands that every initializer is also a graph input. Constants that the rewriter made,
 * and those of bodies, become Constant nodes there, in front of the other nodes.
 */
#include "onnx/graph/ir.h"
#include "export.h"

#define UNCONST(type, p) ((type)(uintptr_t)(p))

/* A graph message under construction; lists grow in the exporter's arena. */
typedef struct builder {
    ot_exporter *ex;
    const ot_graph *g;
    const Onnx__GraphProto *old; /* of the file's graph; NULL: made here */
    ot_id first_new;             /* values from here on were made since import */
    Onnx__GraphProto *p;
    size_t cap_node, cap_init, cap_input, cap_output, cap_info;
} builder;

#define PUSH(b, list, count, cap, item)                                        \
    do {                                                                       \
        if (!OT_PUSH((b)->ex->a, (b)->p->list, (b)->p->count, (b)->cap, item)) \
            return ot_fail_nomem((b)->ex->d);                                  \
    } while (0)

/* ---- has anything changed? ---- */

static bool same_outputs(const ot_graph *g, const Onnx__GraphProto *p)
{
    if (g->n_outputs != p->n_output || g->n_inputs != p->n_input) return false;
    for (uint32_t k = 0; k < g->n_outputs; k++)
        if (strcmp(g->values[g->outputs[k]].name, p->output[k]->name) != 0) return false;
    return true;
}

bool ot_export_changed(const ot_exporter *ex)
{
    const ot_graph *g = ex->m->graph;
    if (!ex->src || !g->proto || g->n_values != ex->src->n_values || ex->m->resized) return true;
    const Onnx__GraphProto *p = g->proto;
    if (g->n_nodes != p->n_node || !same_outputs(g, p)) return true;
    for (ot_id n = 0; n < g->n_nodes; n++)
        if (g->nodes[n].dead || !g->nodes[n].proto) return true;
    for (ot_id v = 0; v < g->n_values; v++)
        if (g->values[v].removed) return true;
    return false;
}

/* ---- inputs and outputs ---- */

/* The file's description of an input or output called `name`, or NULL. k: where it stood. */
static const Onnx__ValueInfoProto *own_info(const ot_value *v, Onnx__ValueInfoProto *const *list,
                                            size_t n, size_t k)
{
    if (k < n && list[k]->name && strcmp(list[k]->name, v->name) == 0) return list[k];
    const Onnx__ValueInfoProto *p = v->proto;
    return p && p->name && strcmp(p->name, v->name) == 0 ? p : NULL;
}

/* The file says another shape than v has: of another size, or one that does not follow. */
static bool is_restated(const builder *b, const ot_value *v, const Onnx__ValueInfoProto *p)
{
    if (!b->ex->m->resized && !b->ex->m->restated) return false;
    if (!v->is_tensor || !p->type || p->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return false;
    const Onnx__TensorShapeProto *s = p->type->tensor_type->shape;
    if (!s) return false;
    if (v->rank < 0 || s->n_dim != (size_t)v->rank) return true;
    for (int32_t k = 0; k < v->rank; k++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[k];
        if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            d->dim_value != v->dims[k])
            return true;
    }
    return false;
}

static ot_status add_inputs(builder *b)
{
    for (uint32_t k = 0; k < b->g->n_inputs; k++) {
        const ot_value *v = &b->g->values[b->g->inputs[k]];
        if (v->removed && v->init) continue; /* IR 3: an initializer that moved into a body */
        const Onnx__ValueInfoProto *p = b->old ? own_info(v, b->old->input, b->old->n_input, k)
                                               : own_info(v, NULL, 0, 0);
        if (!p)
            p = ot_export_value_info(b->ex, v);
        else if (b->ex->m->static_inputs && v->rank >= 0)
            p = ot_export_static(b->ex, v, p);
        if (!p) return ot_fail_nomem(b->ex->d);
        PUSH(b, input, n_input, cap_input, UNCONST(Onnx__ValueInfoProto *, p));
    }
    return OT_OK;
}

/* An output of whose shape nothing is known: of the rank that the file states, since the format
 * wants one. */
static const Onnx__ValueInfoProto *free_output(const builder *b, const ot_value *v,
                                               const Onnx__ValueInfoProto *p)
{
    ot_value x = *v;
    const size_t rank = p->type->tensor_type->shape->n_dim;
    int64_t *dims = OT_NEW_N(b->ex->a, int64_t, rank + 1u);
    if (!dims || rank > INT32_MAX) return NULL;
    for (size_t k = 0; k < rank; k++) dims[k] = OT_DIM_UNKNOWN;
    x.rank = (int32_t)rank;
    x.dims = dims;
    return ot_export_static(b->ex, &x, p);
}

static ot_status add_outputs(builder *b)
{
    for (uint32_t k = 0; k < b->g->n_outputs; k++) {
        const ot_value *v = &b->g->values[b->g->outputs[k]];
        /* as the file says; a branch need not say so much */
        const bool stands = b->old && !(b->g->parent && !v->proto);
        const Onnx__ValueInfoProto *p = stands ? own_info(v, b->old->output, b->old->n_output, k)
                                               : own_info(v, NULL, 0, 0);
        if (!p)
            p = ot_export_value_info(b->ex, v);
        else if (v->rank < 0 && is_restated(b, v, p))
            p = free_output(b, v, p);
        else if (v->rank >= 0 && (b->ex->m->static_inputs || is_restated(b, v, p)))
            p = ot_export_static(b->ex, v, p);
        if (!p) return ot_fail_nomem(b->ex->d);
        PUSH(b, output, n_output, cap_output, UNCONST(Onnx__ValueInfoProto *, p));
    }
    return OT_OK;
}

/* ---- initializers ---- */

static ot_status add_constant(builder *b, const ot_value *v)
{
    if (b->ex->m->ir_version < 4 && !v->is_input) {
        const Onnx__NodeProto *n = NULL, *cast = NULL;
        OT_TRY(ot_export_constant(b->ex, v, &n, &cast));
        PUSH(b, node, n_node, cap_node, UNCONST(Onnx__NodeProto *, n));
        if (cast) PUSH(b, node, n_node, cap_node, UNCONST(Onnx__NodeProto *, cast));
        return OT_OK;
    }
    const Onnx__TensorProto *t = NULL;
    OT_TRY(ot_export_tensor(b->ex, v->init, v->name, &t));
    PUSH(b, initializer, n_initializer, cap_init, UNCONST(Onnx__TensorProto *, t));
    return OT_OK;
}

/* A constant of the IR that has no place in the file's own list. */
static bool is_new_constant(const builder *b, ot_id id)
{
    const ot_value *v = &b->g->values[id];
    if (!v->init || v->producer != OT_NONE || v->is_outer || v->removed) return false;
    if (id >= b->first_new || v->is_output || v->is_input) return true;
    /* a Constant node that was removed: its value is wanted only if something still reads it */
    return !(b->g->props & OT_P_USES) || v->n_uses > 0;
}

static ot_status add_initializers(builder *b)
{
    const ot_graph *g = b->g;
    bool *done = OT_NEW_N(b->ex->a, bool, g->n_values);
    if (!done) return ot_fail_nomem(b->ex->d);
    for (size_t k = 0; b->old && k < b->old->n_initializer; k++) {
        Onnx__TensorProto *t = b->old->initializer[k];
        ot_id id = ot_value_find(g, t->name ? t->name : "");
        if (id == OT_NONE) { /* nameless: nothing reads it, it stays */
            PUSH(b, initializer, n_initializer, cap_init, t);
            continue;
        }
        const ot_value *v = &g->values[id];
        done[id] = true;
        if (v->removed || !v->init) continue;
        const Onnx__TensorProto *now = NULL;
        OT_TRY(ot_export_tensor(b->ex, v->init, v->name, &now));
        PUSH(b, initializer, n_initializer, cap_init, UNCONST(Onnx__TensorProto *, now));
    }
    for (ot_id id = 0; id < g->n_values; id++)
        if (!done[id] && is_new_constant(b, id)) OT_TRY(add_constant(b, &g->values[id]));
    return OT_OK;
}

/* ---- nodes and value_info ---- */

static ot_status add_node(builder *b, const ot_node *n)
{
    const Onnx__NodeProto *p = NULL;
    if (n->dead) return OT_OK;
    OT_TRY(ot_export_node(b->ex, b->g, n, &p));
    PUSH(b, node, n_node, cap_node, UNCONST(Onnx__NodeProto *, p));
    return OT_OK;
}

static ot_status add_nodes(builder *b)
{
    const ot_graph *g = b->g;
    if (g->props & OT_P_ORDER) {
        const ot_id *order = (g->props & OT_P_USES) ? ot_write_order(g, b->ex->a) : g->order;
        if (!order) return ot_fail_nomem(b->ex->d);
        for (uint32_t k = 0; k < g->n_order; k++) OT_TRY(add_node(b, &g->nodes[order[k]]));
    } else { /* a body that was built in order and never sorted */
        for (ot_id id = 0; id < g->n_nodes; id++) OT_TRY(add_node(b, &g->nodes[id]));
    }
    return OT_OK;
}

static bool still_there(const ot_graph *g, ot_id id)
{
    if (id == OT_NONE) return false;
    const ot_value *v = &g->values[id];
    return !v->removed &&
           (v->producer != OT_NONE || v->init || v->is_input || v->is_output || !v->is_tensor);
}

static bool is_tile_op(const ot_graph *g, ot_id producer)
{
    return producer != OT_NONE && strcmp(g->nodes[producer].domain, OT_TILE_DOMAIN) == 0;
}

/* A node made here to read what the engine's operators make: parts that are combined after the
 * tiles. */
static bool reads_tile_op(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in && n->source == OT_NONE; k++)
        if (n->in[k] != OT_NONE && is_tile_op(g, g->values[n->in[k]].producer)) return true;
    return false;
}

/* A value of the file that the engine's operators make now: standard shape inference does not
 * know them. */
static bool needs_info(const builder *b, const ot_value *v)
{
    if (v->producer == OT_NONE ||
        !(is_tile_op(b->g, v->producer) || reads_tile_op(b->g, &b->g->nodes[v->producer])))
        return false;
    for (size_t k = 0; k < b->old->n_value_info; k++)
        if (b->old->value_info[k]->name && strcmp(b->old->value_info[k]->name, v->name) == 0)
            return false;
    return true;
}

/* Half precision became float32 (transform/widen.c). */
static bool retyped(const ot_value *v, const Onnx__ValueInfoProto *p)
{
    if (!v->is_tensor || v->dtype != OT_F32 || !p->type ||
        p->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return false;
    return p->type->tensor_type->elem_type == OT_F16;
}

/* Whether v, which was made here, is described: sequences always, as readers that infer shapes
 * take what they do not know for a tensor. */
static bool states_type(const ot_graph *g, const ot_value *v)
{
    if (v->is_sequence) return true;
    return v->is_tensor && v->dtype != OT_DT_UNKNOWN && v->rank >= 0 && !g->states_no_extents;
}

static ot_status add_value_info(builder *b)
{
    const ot_graph *g = b->g;
    for (size_t k = 0; b->old && k < b->old->n_value_info && !g->states_no_extents; k++) {
        Onnx__ValueInfoProto *p = b->old->value_info[k];
        ot_id id = ot_value_find(g, p->name ? p->name : "");
        if (!still_there(g, id)) continue;
        const Onnx__ValueInfoProto *now = p;
        if (retyped(&g->values[id], p)) {
            now = ot_export_static(b->ex, &g->values[id], p);
            if (!now) return ot_fail_nomem(b->ex->d);
        } else if (is_restated(b, &g->values[id], p)) {
            now = g->values[id].rank >= 0 ? ot_export_static(b->ex, &g->values[id], p) : NULL;
            if (!now && g->values[id].rank >= 0) return ot_fail_nomem(b->ex->d);
        }
        if (now) PUSH(b, value_info, n_value_info, cap_info, UNCONST(Onnx__ValueInfoProto *, now));
    }
    for (ot_id id = 0; id < g->n_values; id++) {
        const ot_value *v = &g->values[id];
        if (id < b->first_new && !needs_info(b, v)) continue;
        if (v->producer == OT_NONE || v->is_input || v->is_output || v->is_outer || v->removed)
            continue;
        if (!states_type(g, v)) continue;
        const Onnx__ValueInfoProto *p = ot_export_value_info(b->ex, v);
        if (!p) return ot_fail_nomem(b->ex->d);
        PUSH(b, value_info, n_value_info, cap_info, UNCONST(Onnx__ValueInfoProto *, p));
    }
    return OT_OK;
}

/* ---- the graph ---- */

static void start(builder *b)
{
    onnx__graph_proto__init(b->p);
    if (b->old) *b->p = *b->old;
    if (!b->old || !b->p->name) b->p->name = UNCONST(char *, b->g->name);
    b->p->n_node = b->p->n_initializer = b->p->n_input = b->p->n_output = b->p->n_value_info = 0;
    b->p->node = NULL;
    b->p->initializer = NULL;
    b->p->input = b->p->output = b->p->value_info = NULL;
}

ot_status ot_export_graph(ot_exporter *ex, const ot_graph *g, const Onnx__GraphProto **out)
{
    if (g == ex->m->graph && !ot_export_changed(ex)) {
        *out = g->proto;
        return OT_OK;
    }
    builder b = {.ex = ex, .g = g, .old = g->proto, .p = OT_NEW(ex->a, Onnx__GraphProto)};
    if (!b.p) return ot_fail_nomem(ex->d);
    b.first_new = b.old && ex->src ? ex->src->n_values : 0;
    start(&b);
    OT_TRY(add_inputs(&b));
    OT_TRY(add_outputs(&b));
    OT_TRY(add_initializers(&b)); /* before the nodes: IR < 4 puts Constant nodes first */
    OT_TRY(add_nodes(&b));
    OT_TRY(add_value_info(&b));
    *out = b.p;
    return OT_OK;
}
