/* Parts of a model as operators for ONNX Runtime with the engine as a library; the other nodes
 * stay what they are:
 *
 *     x -> a -> b -> odd -> c -> y     becomes     x -> Engine{a, b} -> odd -> Engine{c} -> y
 *
 * m->in_operator says of each node whether it is for an operator; which of them are one operator
 * is found by onnx/graph/node_parts.c. Constants are copied to each operator that reads them.
 * onnx/import/unwrap.c puts the bodies back into the graph.
 */
#include "export.h"

#include "onnx/graph/node_parts.h"

#define UNCONST(type, p) ((type)(uintptr_t)(p))

typedef struct parts {
    ot_exporter *ex;
    const ot_graph *g;
    const Onnx__ModelProto *inner; /* the model without operators */
    ot_part_position *places;      /* [g->n_order] */
    uint32_t *part;                /* [n_nodes] as of ot_parts */
    /* [n_values] read by a node that stays, or an output of the graph */
    bool *outside;
    bool *crosses;       /* [n_values] made in an operator, and read beyond it */
    uint32_t *seen;      /* [n_values] last operator that has listed it */
    Onnx__GraphProto *p; /* being made: the graph around */
    size_t cap_node, cap_info;
    uint32_t n_operators;
} parts;

/* outside, crosses */
static ot_status find_crossings(parts *x)
{
    const ot_graph *g = x->g;
    x->outside = OT_NEW_N(x->ex->a, bool, g->n_values + 1u);
    x->crosses = OT_NEW_N(x->ex->a, bool, g->n_values + 1u);
    x->seen = OT_NEW_N(x->ex->a, uint32_t, g->n_values + 1u);
    if (!x->outside || !x->crosses || !x->seen) return ot_fail_nomem(x->ex->d);
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        const ot_id v = g->outputs[k], p = ot_part_maker(g, v);
        x->outside[v] = true;
        x->crosses[v] = p != OT_NONE && x->part[p] != OT_NONE;
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        for (uint32_t j = 0; j < ot_part_n_reads(n); j++) {
            const ot_id v = ot_part_read(n, j), p = ot_part_maker(g, v);
            if (v == OT_NONE) continue;
            if (x->part[id] == OT_NONE) x->outside[v] = true;
            if (p != OT_NONE && x->part[p] != OT_NONE && x->part[p] != x->part[id])
                x->crosses[v] = true;
        }
    }
    return OT_OK;
}

/* ---- one operator ---- */

#define PUSH(ex, p, list, count, cap, item)                          \
    do {                                                             \
        if (!OT_PUSH((ex)->a, (p)->list, (p)->count, (cap), (item))) \
            return ot_fail_nomem((ex)->d);                           \
    } while (0)

/* A body under construction. */
typedef struct body {
    Onnx__GraphProto *p;
    uint32_t mark; /* of x->seen */
    size_t cap_input, cap_output, cap_init, cap_node, cap_info;
} body;

/* A value that a node of the body reads, for the first time: a constant, what another node of it
 * makes, or an input. */
static ot_status take_read(parts *x, body *b, ot_id id)
{
    ot_exporter *ex = x->ex;
    const ot_value *v = &x->g->values[id];
    if (x->seen[id] == b->mark) return OT_OK;
    x->seen[id] = b->mark;
    if (ot_part_constant(v)) {
        const Onnx__TensorProto *t = NULL;
        OT_TRY(ot_export_tensor(ex, v->init, v->name, &t));
        PUSH(ex, b->p, initializer, n_initializer, b->cap_init, UNCONST(Onnx__TensorProto *, t));
        return OT_OK;
    }
    const Onnx__ValueInfoProto *info = ot_export_value_info(ex, v);
    if (!info) return ot_fail_nomem(ex->d);
    PUSH(ex, b->p, input, n_input, b->cap_input, UNCONST(Onnx__ValueInfoProto *, info));
    return OT_OK;
}

static ot_status take_made(parts *x, body *b, ot_id id)
{
    ot_exporter *ex = x->ex;
    const ot_value *v = &x->g->values[id];
    x->seen[id] = b->mark;
    if (!v->is_tensor || v->dtype == OT_DT_UNKNOWN || (v->rank < 0 && !x->crosses[id]))
        return OT_OK;
    const Onnx__ValueInfoProto *info = ot_export_value_info(ex, v);
    if (!info) return ot_fail_nomem(ex->d);
    if (x->crosses[id])
        PUSH(ex, b->p, output, n_output, b->cap_output, UNCONST(Onnx__ValueInfoProto *, info));
    else
        PUSH(ex, b->p, value_info, n_value_info, b->cap_info,
             UNCONST(Onnx__ValueInfoProto *, info));
    return OT_OK;
}

static ot_status take_node(parts *x, body *b, const ot_node *n)
{
    const Onnx__NodeProto *p = NULL;
    for (uint32_t k = 0; k < ot_part_n_reads(n); k++)
        if (ot_part_read(n, k) != OT_NONE) OT_TRY(take_read(x, b, ot_part_read(n, k)));
    OT_TRY(ot_export_node(x->ex, x->g, n, &p));
    PUSH(x->ex, b->p, node, n_node, b->cap_node, UNCONST(Onnx__NodeProto *, p));
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) OT_TRY(take_made(x, b, n->out[k]));
    return OT_OK;
}

/* The nodes at places [from, to) as an operator, and the types of what it makes: the runtime
 * infers none. */
static ot_status add_operator(parts *x, uint32_t from, uint32_t to)
{
    ot_exporter *ex = x->ex;
    Onnx__ModelProto *m = OT_NEW(ex->a, Onnx__ModelProto);
    body b = {.p = OT_NEW(ex->a, Onnx__GraphProto), .mark = ++x->n_operators};
    Onnx__NodeProto *node = NULL;
    if (!m || !b.p) return ot_fail_nomem(ex->d);
    onnx__graph_proto__init(b.p);
    b.p->name = ot_format(ex->a, "onnx_tile/part%u", x->n_operators - 1);
    const char *name = ot_format(ex->a, "onnx_tile/engine%u", x->n_operators - 1);
    if (!b.p->name || !name) return ot_fail_nomem(ex->d);
    for (uint32_t k = from; k < to; k++)
        OT_TRY(take_node(x, &b, &x->g->nodes[x->g->order[x->places[k].at]]));
    if (b.p->n_output == 0) return OT_OK; /* nobody wants it */
    OT_TRY(ot_operator_model(ex, x->inner, false, m));
    m->graph = b.p;
    OT_TRY(ot_operator_node(ex, m, name, &node));
    PUSH(ex, x->p, node, n_node, x->cap_node, node);
    for (size_t k = 0; k < b.p->n_output; k++) {
        const ot_value *v = &x->g->values[ot_value_find(x->g, b.p->output[k]->name)];
        if (!v->is_output) PUSH(ex, x->p, value_info, n_value_info, x->cap_info, b.p->output[k]);
    }
    return OT_OK;
}

/* ---- the graph around ---- */

/* A node that stays; one that makes constants, where another one reads them. */
static ot_status add_node(parts *x, const ot_node *n)
{
    const Onnx__NodeProto *p = NULL;
    bool wanted = n->n_out == 0;
    for (uint32_t k = 0; k < n->n_out; k++)
        wanted |= n->out[k] != OT_NONE &&
                  (!ot_part_constant(&x->g->values[n->out[k]]) || x->outside[n->out[k]]);
    if (!wanted) return OT_OK;
    OT_TRY(ot_export_node(x->ex, x->g, n, &p));
    PUSH(x->ex, x->p, node, n_node, x->cap_node, UNCONST(Onnx__NodeProto *, p));
    return OT_OK;
}

static ot_status add_nodes(parts *x)
{
    const ot_graph *g = x->g;
    for (uint32_t k = 0, end; k < g->n_order; k = end) {
        const ot_id id = g->order[x->places[k].at];
        for (end = k + 1; x->part[id] != OT_NONE && end < g->n_order; end++)
            if (x->part[g->order[x->places[end].at]] != x->part[id]) break;
        OT_TRY(x->part[id] == OT_NONE ? add_node(x, &g->nodes[id]) : add_operator(x, k, end));
    }
    return OT_OK;
}

/* The value of that name, if an operator alone has it now. */
static bool moved(const parts *x, const char *name)
{
    const ot_id id = ot_value_find(x->g, name ? name : "");
    if (id == OT_NONE) return false;
    const ot_value *v = &x->g->values[id];
    if (ot_part_constant(v)) return !x->outside[id];
    return v->producer != OT_NONE && x->part[v->producer] != OT_NONE;
}

/* Constants that a node that stays reads, and inputs: of an old model, these are among them. */
static ot_status keep_ends(parts *x, const Onnx__GraphProto *old)
{
    ot_exporter *ex = x->ex;
    size_t cap = 0, cap_input = 0;
    for (size_t k = 0; k < old->n_initializer; k++)
        if (!moved(x, old->initializer[k]->name))
            PUSH(ex, x->p, initializer, n_initializer, cap, old->initializer[k]);
    for (size_t k = 0; k < old->n_input; k++) {
        const ot_id id = ot_value_find(x->g, old->input[k]->name ? old->input[k]->name : "");
        const Onnx__ValueInfoProto *p = old->input[k];
        if (moved(x, p->name)) continue;
        if (ex->m->static_inputs && id != OT_NONE && x->g->values[id].rank >= 0)
            p = ot_export_static(ex, &x->g->values[id], p);
        if (!p) return ot_fail_nomem(ex->d);
        PUSH(ex, x->p, input, n_input, cap_input, UNCONST(Onnx__ValueInfoProto *, p));
    }
    for (size_t k = 0; k < old->n_value_info; k++)
        if (!moved(x, old->value_info[k]->name))
            PUSH(ex, x->p, value_info, n_value_info, x->cap_info, old->value_info[k]);
    return OT_OK;
}

/* Nodes that an old model's constants became (export_graph.c). */
static ot_status keep_constants(parts *x, const Onnx__GraphProto *old)
{
    for (size_t k = 0; k < old->n_node; k++) {
        const Onnx__NodeProto *n = old->node[k];
        if (n->n_input > 0 || n->n_output != 1 ||
            strcmp(n->op_type ? n->op_type : "", "Constant") != 0)
            continue;
        const ot_id id = ot_value_find(x->g, n->output[0]);
        if (id != OT_NONE && x->g->values[id].producer == OT_NONE && x->outside[id])
            PUSH(x->ex, x->p, node, n_node, x->cap_node, old->node[k]);
    }
    return OT_OK;
}

ot_status ot_export_parts(ot_exporter *ex, const Onnx__ModelProto *inner,
                          const Onnx__ModelProto **out)
{
    parts x = {.ex = ex, .g = ex->m->graph, .inner = inner, .p = OT_NEW(ex->a, Onnx__GraphProto)};
    Onnx__ModelProto *p = OT_NEW(ex->a, Onnx__ModelProto);
    if (!x.p || !p) return ot_fail_nomem(ex->d);
    if (!ex->m->in_operator || !(x.g->props & OT_P_ORDER))
        OT_BUG("nobody has said what becomes operators");
    ot_parts found;
    OT_TRY(ot_parts_find(x.g, ex->m->in_operator, ex->a, ex->d, &found));
    x.part = found.part;
    x.places = found.places;
    OT_TRY(find_crossings(&x));
    *x.p = *inner->graph;
    x.p->n_node = x.p->n_initializer = x.p->n_input = x.p->n_value_info = 0;
    x.p->node = NULL;
    x.p->initializer = NULL;
    x.p->input = x.p->value_info = NULL;
    OT_TRY(keep_ends(&x, inner->graph));
    OT_TRY(keep_constants(&x, inner->graph));
    OT_TRY(add_nodes(&x));
    *out = inner;
    if (x.n_operators == 0) return OT_OK;
    OT_TRY(ot_operator_model(ex, inner, true, p));
    p->graph = x.p;
    *out = p;
    return OT_OK;
}
