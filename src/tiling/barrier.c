/* Barriers: nodes that no region can contain, each with a reason that a person understands. */
#include "ops/tile_places.h"
#include "sequence.h"

#define FEW_OPERANDS 32
/* of a tensor: no memory holds it, and sums over several stay exact in 64 bits and in doubles */
#define MOST_BYTES (INT64_C(1) << 48)

static ot_why opaque_reason(const ot_graph *g, const ot_node *n)
{
    if (ot_access_known(n)) return OT_WHY_NONE;
    if (n->n_captured > 0) return OT_WHY_KEPT_CONTROL_FLOW;
    if (n->calls_function) return OT_WHY_LOCAL_FUNCTION;
    if (*n->domain && strcmp(n->domain, "ai.onnx") != 0) return OT_WHY_OTHER_DOMAIN;
    if (g->model->opset < 7) return OT_WHY_OLD_OPSET;
    const ot_why never = ot_access_extra_reason(n);
    return never ? never : OT_WHY_UNKNOWN_OPERATOR;
}

/* Of operators that no row of the slice relation cuts. */
static ot_why uncut_reason(const ot_graph *g, const ot_node *n)
{
    if (n->op == OT_OP_If || n->op == OT_OP_Loop || n->op == OT_OP_Scan) return OT_WHY_CONTROL_FLOW;
    for (uint32_t k = 0; k < n->n_out; k++) /* how long it is depends on the data */
        if (n->out[k] != OT_NONE && !ot_value_is_static(&g->values[n->out[k]]))
            return OT_WHY_WHOLE_INPUT;
    return OT_WHY_NOT_CUT;
}

static bool is_too_large(const ot_value *v)
{
    int64_t bytes;
    if (ot_dtype_bits(v->dtype) == 0) return false;
    return !ot_value_bytes(v, &bytes) || bytes > MOST_BYTES;
}

static ot_why shape_reason(const ot_seq *s, const ot_node *n)
{
    const ot_graph *g = s->g;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v != OT_NONE && !g->values[v].is_tensor) return OT_WHY_NO_TENSOR;
        if (v != OT_NONE && !ot_value_is_static(&g->values[v])) return OT_WHY_INPUT_SHAPE;
        if (v != OT_NONE && is_too_large(&g->values[v])) return OT_WHY_TOO_LARGE;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v != OT_NONE && !ot_value_is_static(&g->values[v])) return OT_WHY_OUTPUT_SHAPE;
        if (v != OT_NONE && is_too_large(&g->values[v])) return OT_WHY_TOO_LARGE;
    }
    return OT_WHY_NONE;
}

/* *why: the reason the widest axis gives, the axis a person would have cut; OT_WHY_NONE: some
 * axis can be cut. */
static ot_status axes_reason(const ot_seq *s, const ot_node *n, ot_why *why)
{
    const ot_graph *g = s->g;
    int8_t few[FEW_OPERANDS] = {0}; /* all nodes of large graphs are asked about */
    const size_t wanted = (size_t)n->n_in + n->n_out + 2;
    int8_t *in_axis = wanted <= FEW_OPERANDS ? few : OT_NEW_N(s->arena, int8_t, wanted),
           *out_axis = in_axis ? in_axis + n->n_in + 1 : NULL;
    if (!out_axis) return ot_fail_nomem(g->model->diag);
    int64_t widest = 0;
    bool cut = false, any = false;
    ot_why reason = OT_WHY_ALL_ONES;
    for (uint32_t o = 0; o < n->n_out && !cut; o++) {
        if (n->out[o] == OT_NONE) continue;
        const ot_value *v = &g->values[n->out[o]];
        for (int32_t a = 0; a < v->rank && !cut; a++) {
            ot_why w;
            if (v->dims[a] < 2) continue;
            any = true;
            cut = ot_access_axis(g, n, o, (uint32_t)a, in_axis, out_axis, &w);
            if (!cut && v->dims[a] > widest) widest = v->dims[a], reason = w;
        }
    }
    bool reduced[OT_RANK_MAX];
    if (!cut && ot_seq_sum(s, n, reduced) != OT_SUM_NONE) {
        const ot_value *x = &g->values[n->in[0]];
        for (int32_t a = 0; a < x->rank; a++) cut = cut || (reduced[a] && x->dims[a] >= 2);
    }
    if (!any && !cut) {
        ot_access_kind k = ot_op_access(n->op);
        if (k == OT_ACC_GLOBALPOOL)
            reason = OT_WHY_GLOBAL_POOL_ONE;
        else if (k == OT_ACC_REDUCE)
            reason = OT_WHY_REDUCES_ALL;
    } else if (!cut && ot_op_access(n->op) == OT_ACC_GLOBALPOOL) {
        reason = OT_WHY_GLOBAL_POOL;
    }
    *why = cut ? OT_WHY_NONE : reason;
    return OT_OK;
}

ot_status ot_barrier_reason(const ot_seq *s, ot_id node, ot_why *why)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[node];
    *why = opaque_reason(g, n);
    if (!*why && n->op != OT_OP_OPAQUE && ot_op_access(n->op) == OT_ACC_BARRIER)
        *why = uncut_reason(g, n);
    if (!*why) *why = shape_reason(s, n);
    if (!*why && s->pos[node] != OT_NONE && s->odd[s->pos[node]]) *why = OT_WHY_ODD_SHAPES;
    if (!*why) OT_TRY(axes_reason(s, n, why));
    if (*why && ot_node_is_of_tiles(n)) *why = OT_WHY_TILED_ALREADY;
    return OT_OK;
}
