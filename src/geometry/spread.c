/* Which axis of each value moves with an axis of an input, by the slice relation.
 *
 *   x [1,3,H,W] --Conv--> [1,8,H,W] --+--> Add [1,8,H,W] --> Transpose [1,H,W,8]
 *   m [1,1,H,W] ----------------------'
 *       axis 2               2                  2                     1
 *
 * From the input forwards, and from an operator that an axis reaches back to its other operands, so
 * that inputs which are cropped together are found. It ends where an axis is lost: barriers.c says
 * why. Normalisations keep the shape that they need whole, and what comes behind them is looked at
 * as well: a list of all that stands in the way is worth more than the first of them.
 */
#include "geometry_internal.h"

typedef struct spreading {
    ot_spread *s;
    int8_t *in, *out; /* answers of the slice relation */
    bool changed;
    bool *clash; /* [n_nodes] two axes of a value would move: stops */
} spreading;

static void move(spreading *w, ot_id node, ot_id v, int8_t axis)
{
    if (v == OT_NONE || axis < 0 || w->s->g->values[v].dims[axis] == 1) return;
    if (w->s->axis[v] == axis) return;
    if (w->s->axis[v] != OT_AX_WHOLE) {
        w->clash[node] = true;
        return;
    }
    w->s->axis[v] = axis;
    w->changed = true;
}

static bool moves(const ot_spread *s, ot_id v, int8_t axis)
{
    return v != OT_NONE && axis >= 0 && s->axis[v] == axis;
}

/* A normalisation keeps the extents of its operand 0, whose axis it needs whole. */
static bool keeps_shape(const ot_graph *g, const ot_node *n)
{
    switch (ot_op_access(n->op)) {
    case OT_ACC_NORM:
    case OT_ACC_SOFTMAX:
    case OT_ACC_CUMSUM: break;
    default: return false;
    }
    if (n->n_in < 1 || n->n_out < 1 || n->in[0] == OT_NONE || n->out[0] == OT_NONE) return false;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    if (x->rank != y->rank || x->rank < 1) return false;
    return memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

/* The only node that reads what n makes; OT_NONE: none, or several. */
static ot_id only_reader(const ot_graph *g, ot_id n)
{
    const ot_node *x = &g->nodes[n];
    if (x->n_out < 1 || x->out[0] == OT_NONE || g->values[x->out[0]].n_uses != 1) return OT_NONE;
    return g->values[x->out[0]].uses[0];
}

ot_id ot_group_norm_of(const ot_graph *g, ot_id n, ot_id *back)
{
    const ot_node *x = &g->nodes[n];
    if (x->op != OT_OP_Reshape || x->n_in < 1 || x->in[0] == OT_NONE) return OT_NONE;
    const ot_id norm = only_reader(g, n);
    if (norm == OT_NONE || g->nodes[norm].op != OT_OP_InstanceNormalization) return OT_NONE;
    const ot_id last = only_reader(g, norm);
    if (last == OT_NONE || g->nodes[last].op != OT_OP_Reshape) return OT_NONE;
    if (g->nodes[last].n_out < 1 || g->nodes[last].out[0] == OT_NONE) return OT_NONE;
    const ot_value *v = &g->values[x->in[0]], *y = &g->values[g->nodes[last].out[0]];
    if (v->rank < 1 || v->rank != y->rank ||
        memcmp(v->dims, y->dims, (size_t)v->rank * sizeof *v->dims) != 0)
        return OT_NONE;
    if (back) *back = g->nodes[last].out[0];
    return norm;
}

bool ot_spread_runs(const ot_spread *s, const ot_node *n)
{
    int32_t in, out;
    return s->runs && n->n_in > 0 && n->in[0] != OT_NONE && ot_runs_along(s->g, n, &in, &out) &&
           s->axis[n->in[0]] == in && s->axis[n->out[0]] == out;
}

/* What runs along the axis moves it on, and back: rows may be counted by a sum of ones. */
static void visit_run(spreading *w, ot_id id)
{
    const ot_spread *s = w->s;
    const ot_node *n = &s->g->nodes[id];
    int32_t in, out;
    if (!s->runs || !ot_runs_along(s->g, n, &in, &out)) return;
    if (moves(s, n->in[0], (int8_t)in)) move(w, id, n->out[0], (int8_t)out);
    if (moves(s, n->out[0], (int8_t)out)) move(w, id, n->in[0], (int8_t)in);
}

/* x and y have one shape, and axes of their own follow each other: so that inputs which meet behind
 * a normalisation are found. */
static void move_together(spreading *w, ot_id node, ot_id x, ot_id y)
{
    int8_t *axis = w->s->axis;
    if (axis[x] >= 0 && axis[y] < 0) move(w, node, y, axis[x]);
    if (axis[y] >= 0 && axis[x] < 0) move(w, node, x, axis[y]);
}

static void visit(spreading *w, ot_id id)
{
    ot_spread *s = w->s;
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[id];
    ot_why why;
    for (uint32_t o = 0; o < n->n_out; o++) {
        const ot_id y = n->out[o];
        for (int32_t a = 0; y != OT_NONE && a < g->values[y].rank; a++) {
            if (!ot_access_axis(g, n, o, (uint32_t)a, w->in, w->out, &why)) continue;
            bool with = s->axis[y] == a;
            for (uint32_t k = 0; k < n->n_in; k++) with |= moves(s, n->in[k], w->in[k]);
            if (!with) continue;
            for (uint32_t k = 0; k < n->n_in; k++) move(w, id, n->in[k], w->in[k]);
            for (uint32_t k = 0; k < n->n_out; k++) move(w, id, n->out[k], w->out[k]);
        }
    }
    visit_run(w, id);
    ot_id back;
    if (keeps_shape(g, n)) move_together(w, id, n->in[0], n->out[0]);
    if (ot_group_norm_of(g, id, &back) != OT_NONE) move_together(w, id, n->in[0], back);
}

/* What the slice relation says of each node whose output moves. */
static ot_status fill_leads(spreading *w, ot_arena *a)
{
    ot_spread *s = w->s;
    ot_why why;
    for (uint32_t k = 0; k < s->g->n_order; k++) {
        const ot_id id = s->g->order[k];
        const ot_node *n = &s->g->nodes[id];
        if (ot_spread_runs(s, n)) {
            memset(w->in, OT_AX_WHOLE, n->n_in + 1u);
            w->in[0] = s->axis[n->in[0]];
            s->lead[id] = 0;
            s->in_axis[id] = ot_memdup(a, w->in, n->n_in + 1u);
            if (!s->in_axis[id]) return ot_fail_nomem(s->g->model->diag);
        }
        for (uint32_t o = 0; o < n->n_out && s->lead[id] == OT_NONE; o++) {
            const ot_id y = n->out[o];
            if (y == OT_NONE || s->axis[y] < 0) continue;
            if (!ot_access_axis(s->g, n, o, (uint32_t)s->axis[y], w->in, w->out, &why)) continue;
            s->lead[id] = o;
            s->in_axis[id] = ot_memdup(a, w->in, n->n_in + 1u);
            if (!s->in_axis[id]) return ot_fail_nomem(s->g->model->diag);
        }
    }
    return OT_OK;
}

static ot_status fill(spreading *w, ot_id seed, uint32_t axis, ot_arena *a)
{
    ot_spread *s = w->s;
    const ot_graph *g = s->g;
    s->axis[seed] = (int8_t)axis;
    do {
        w->changed = false;
        for (uint32_t k = 0; k < g->n_order; k++)
            if (!g->nodes[g->order[k]].is_static) visit(w, g->order[k]);
        for (uint32_t k = g->n_order; k-- > 0 && w->changed;)
            if (!g->nodes[g->order[k]].is_static) visit(w, g->order[k]);
    } while (w->changed); /* each time some value begins to move */
    OT_TRY(fill_leads(w, a));
    for (uint32_t k = 0; k < g->n_order; k++)
        if (w->clash[g->order[k]]) {
            const bool product = ot_op_access(g->nodes[g->order[k]].op) == OT_ACC_MATMUL ||
                                 ot_op_access(g->nodes[g->order[k]].op) == OT_ACC_EINSUM;
            OT_TRY(ot_spread_stop(s, a, g->order[k],
                                  product ? OT_GEOMETRY_ATTENTION : OT_GEOMETRY_FIXED,
                                  "two of its axes follow one axis of the input"));
        }
    return ot_spread_barriers(s, a);
}

ot_status ot_spread_fill(const ot_graph *g, const ot_graph *beside, ot_id seed, uint32_t axis,
                         ot_arena *a, ot_spread *out)
{
    uint32_t wide = 1;
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        if (g->nodes[k].n_in >= wide) wide = g->nodes[k].n_in + 1;
        if (g->nodes[k].n_out >= wide) wide = g->nodes[k].n_out + 1;
    }
    *out = (ot_spread){.g = g,
                       .beside = beside,
                       .runs = out->runs,
                       .axis = OT_NEW_N(a, int8_t, g->n_values + 1u),
                       .lead = OT_NEW_N(a, uint32_t, g->n_nodes + 1u),
                       .in_axis = ot_alloc_n(a, g->n_nodes + 1u, sizeof *out->in_axis),
                       .reads = OT_NEW_N(a, bool, g->n_values + 1u),
                       .sized = OT_NEW_N(a, bool, g->n_values + 1u),
                       .behind = OT_NEW_N(a, bool, g->n_values + 1u),
                       .stops = OT_NEW_N(a, bool, g->n_nodes + 1u)};
    spreading w = {.s = out,
                   .in = OT_NEW_N(a, int8_t, wide),
                   .out = OT_NEW_N(a, int8_t, wide),
                   .clash = OT_NEW_N(a, bool, g->n_nodes + 1u)};
    if (!out->axis || !out->lead || !out->in_axis || !out->reads || !out->sized || !out->behind ||
        !out->stops || !w.in || !w.out || !w.clash)
        return ot_fail_nomem(g->model->diag);
    memset(out->axis, OT_AX_WHOLE, g->n_values + 1u);
    for (uint32_t k = 0; k < g->n_nodes; k++) out->lead[k] = OT_NONE;
    return fill(&w, seed, axis, a);
}
