/* Shapes in the bodies of If, Loop and Scan: from what the node hands its body, not from
 * what the body says of itself.
 *
 *   node   Loop(M, cond, x [4,8])      body input   stated    taken
 *                                      i            -         int64 []
 *                                      go           [1]       bool [1]: runtimes let it be both
 *                                      a            [1,8]     [4,8]
 *
 * What goes from one iteration to the next has the first one's shape as long as the body keeps it;
 * dims that the body changes are unknown. That is found by inferring until nothing changes: each
 * time round, what differs becomes unknown and stays so.
 */
#include "onnx/import/model_io.h"
#include "shape.h"

/* A value from outside as the body sees it: without the axes that the node takes slices of. */
typedef struct handed {
    ot_dtype dtype;
    int32_t rank;
    int64_t dims[OT_RANK_MAX];
} handed;

#define ROUNDS    4
#define BODY_COST 64 /* nodes that take as much memory as a body without any */

static const handed UNKNOWN = {.rank = -1};

static handed of_value(const ot_graph *g, const ot_node *n, uint32_t k)
{
    handed h = UNKNOWN;
    const ot_value *v = k < n->n_in && n->in[k] != OT_NONE ? &g->values[n->in[k]] : NULL;
    if (!v || !v->is_tensor) return h;
    h.dtype = v->dtype;
    if (v->rank < 0 || v->rank > OT_RANK_MAX) return h;
    h.rank = v->rank;
    for (int32_t a = 0; a < v->rank; a++) h.dims[a] = v->dims[a];
    return h;
}

static handed scalar(ot_dtype t) { return (handed){.dtype = t, .rank = 0}; }

static void drop_axis(handed *h, int64_t axis)
{
    if (h->rank < 0) return;
    if (axis < 0) axis += h->rank;
    if (axis < 0 || axis >= h->rank) {
        h->rank = -1;
        return;
    }
    h->rank--;
    for (int32_t a = (int32_t)axis; a < h->rank; a++) h->dims[a] = h->dims[a + 1];
}

/* Input k of the body is this. A scalar and an array of one element stand for each other where the
 * body says so. */
static ot_status set_input(ot_graph *body, uint32_t k, handed h)
{
    ot_value *v = &body->values[body->inputs[k]];
    if (!v->is_tensor || v->init) return OT_OK;
    if (h.rank == 0 && v->rank == 1) h = (handed){.dtype = h.dtype, .rank = 1, .dims = {1}};
    if (h.rank == 1 && h.dims[0] == 1 && v->rank == 0) h.rank = 0;
    v->dtype = h.dtype;
    return ot_value_set_shape(body, body->inputs[k], h.rank, h.dims);
}

/* ---- each operator ---- */

static ot_status set_loop(const ot_graph *g, const ot_node *n, ot_graph *body)
{
    for (uint32_t k = 0; k < body->n_inputs; k++)
        OT_TRY(set_input(body, k,
                         k == 0   ? scalar(OT_I64)
                         : k == 1 ? scalar(OT_BOOL)
                                  : of_value(g, n, k)));
    return OT_OK;
}

/* Opset 8 has batches of sequences, and the lengths of these as its first input. */
static ot_status set_scan(const ot_graph *g, const ot_node *n, ot_graph *body)
{
    const bool batched = n->version < 9;
    const int64_t scans = ot_attr_int(n, "num_scan_inputs", 0);
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(n, "scan_input_axes", &n_axes);
    for (uint32_t k = 0; k < body->n_inputs; k++) {
        handed h = of_value(g, n, k + batched);
        const int64_t scan = (int64_t)k + scans - (int64_t)body->n_inputs;
        if (batched) drop_axis(&h, 0);
        if (scan >= 0) drop_axis(&h, !batched && axes && (size_t)scan < n_axes ? axes[scan] : 0);
        OT_TRY(set_input(body, k, h));
    }
    return OT_OK;
}

/* A function may be called with fewer operands than it has. */
static ot_status set_call(const ot_graph *g, const ot_node *n, ot_graph *body)
{
    for (uint32_t k = 0; k < body->n_inputs; k++) OT_TRY(set_input(body, k, of_value(g, n, k)));
    return OT_OK;
}

/* Elements of sequences: any shape, of the type that the body says. */
static ot_status set_other(ot_graph *body)
{
    for (uint32_t k = 0; k < body->n_inputs; k++) {
        handed h = UNKNOWN;
        h.dtype = body->values[body->inputs[k]].dtype;
        OT_TRY(set_input(body, k, h));
    }
    return OT_OK;
}

/* ---- what goes from one iteration to the next ---- */

static bool is_one(const ot_value *v) { return v->rank == 1 && v->dims[0] == 1; }

/* Input `in` of the body is in the next iteration what output `out` is in this one. */
static ot_status widen(ot_graph *body, uint32_t in, uint32_t out, bool *changed)
{
    ot_value *a = &body->values[body->inputs[in]];
    const ot_value *b = &body->values[body->outputs[out]];
    int64_t dims[OT_RANK_MAX];
    bool differs = false;
    if (!a->is_tensor || a->init || a == b) return OT_OK;
    if (a->dtype != b->dtype && a->dtype != OT_DT_UNKNOWN) {
        a->dtype = OT_DT_UNKNOWN;
        *changed = true;
    }
    if (a->rank < 0 || (a->rank == 0 && is_one(b)) || (is_one(a) && b->rank == 0)) return OT_OK;
    for (int32_t k = 0; k < a->rank; k++) {
        dims[k] = b->rank == a->rank && b->dims[k] == a->dims[k] ? a->dims[k] : OT_DIM_UNKNOWN;
        differs |= dims[k] != a->dims[k];
    }
    if (b->rank != a->rank) differs = true;
    if (!differs) return OT_OK;
    *changed = true;
    return ot_value_set_shape(body, body->inputs[in], b->rank == a->rank ? a->rank : -1, dims);
}

static ot_status forget(ot_graph *body, uint32_t k)
{
    ot_value *v = &body->values[body->inputs[k]];
    if (!v->is_tensor || v->init) return OT_OK;
    v->dtype = OT_DT_UNKNOWN;
    return ot_value_set_shape(body, body->inputs[k], -1, NULL);
}

/* What the file states of values that nodes make: each round begins with that, not with what the
 * one before found. */
static void restore(ot_graph *body, const ot_tensor_type *stated)
{
    for (ot_id v = 0; v < body->n_values; v++) {
        ot_value *x = &body->values[v];
        if (x->producer == OT_NONE) continue;
        x->dtype = stated[v].dtype;
        x->rank = stated[v].rank;
        x->dims = (int64_t *)(uintptr_t)stated[v].dims;
    }
}

/* Inputs from `first` on [n] are what outputs from `from` on were. Each round but the last makes
 * something unknown; what takes more than a few is made unknown at once. */
static ot_status infer_carried(ot_graph *body, uint32_t first, uint32_t n, uint32_t from)
{
    bool changed = true;
    ot_tensor_type *stated = OT_NEW_N(body->model->arena, ot_tensor_type, body->n_values + 1u);
    if (!stated) return ot_fail_nomem(body->model->diag);
    for (ot_id v = 0; v < body->n_values; v++) stated[v] = ot_type_of(&body->values[v]);
    for (uint32_t round = 0; changed; round++) {
        changed = false;
        restore(body, stated);
        OT_TRY(ot_infer_lenient(body));
        for (uint32_t k = 0; k < n && first + k < body->n_inputs && from + k < body->n_outputs; k++)
            OT_TRY(widen(body, first + k, from + k, &changed));
        for (uint32_t k = 0; changed && round >= ROUNDS && k < n && first + k < body->n_inputs; k++)
            OT_TRY(forget(body, first + k));
    }
    return OT_OK;
}

ot_status ot_infer_body(const ot_graph *outer, const ot_node *n, ot_graph *body)
{
    const uint32_t in = body->n_inputs;
    /* what a While states of its buffers is compared when it is lowered */
    if (ot_is_tile_op(n, "While")) return ot_infer_lenient(body);
    if (n->op == OT_OP_Loop) {
        OT_TRY(set_loop(outer, n, body));
        return infer_carried(body, 2, in > 2 ? in - 2 : 0, 1);
    }
    if (n->op == OT_OP_Scan) {
        const int64_t scans = ot_attr_int(n, "num_scan_inputs", 0);
        OT_TRY(set_scan(outer, n, body));
        return infer_carried(body, 0, scans >= 0 && scans < in ? in - (uint32_t)scans : 0, 0);
    }
    if (n->calls_function)
        OT_TRY(set_call(outer, n, body));
    else if (n->op != OT_OP_If)
        OT_TRY(set_other(body));
    return ot_infer_lenient(body);
}

static ot_status read_and_infer(const ot_graph *g, const ot_node *n, const ot_attr *attr,
                                ot_graph **body)
{
    ot_model *m = g->model;
    OT_TRY(attr ? ot_import_body(m, attr, (ot_graph *)(uintptr_t)g, body)
                : ot_import_call(m, n, body));
    if (!*body) return OT_OK;
    m->in_bodies += (*body)->n_nodes + BODY_COST;
    (*body)->nesting = g->nesting + 1;
    return ot_infer_body(g, n, *body);
}

ot_status ot_inferred_body(const ot_graph *g, const ot_node *n, const ot_attr *attr,
                           ot_graph **body)
{
    ot_model *m = g->model;
    ot_diag aside = {0}, *diag = m->diag;
    *body = NULL;
    if (g->nesting >= OT_NESTING_MAX || m->in_bodies > OT_BODY_NODES_MAX) return OT_OK;
    m->diag = &aside;
    const ot_status s = read_and_infer(g, n, attr, body);
    m->diag = diag;
    if (s == OT_E_NOMEM) return ot_fail_nomem(diag);
    if (s != OT_OK) *body = NULL;
    return OT_OK;
}

bool ot_shape_is_sure(const ot_graph *g, const ot_value *x)
{
    const ot_node *n = x->producer == OT_NONE ? NULL : &g->nodes[x->producer];
    if (x->is_outer || (n && x->is_inferred)) return x->is_inferred;
    if (!n) return true;
    if (n->op == OT_OP_OPAQUE && !n->domain[0] && ot_op_find(n->op_type) != OT_OP_OPAQUE)
        return false; /* of an opset too old for the passes: kernels know it, shape rules do not */
    return n->op == OT_OP_Reshape || !ot_shape_has_rule(n);
}

bool ot_shape_has_rule(const ot_node *n)
{
    return n->op == OT_OP_OPAQUE ? ot_shape_extra_rule(n) != NULL : ot_shape_rule_of(n->op) != NULL;
}
