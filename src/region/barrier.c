/* Barriers: nodes that no region can contain, each with a reason that a person understands. */
#include "sequence.h"

static const char *opaque_reason(const ot_graph *g, const ot_node *n)
{
    if (n->op != OT_OP_OPAQUE) return NULL;
    if (n->n_captured > 0) return "its subgraph reads outer values; control flow is kept as it is";
    if (*n->domain && strcmp(n->domain, "ai.onnx") != 0) return "operator of another domain: what it reads is not known";
    if (g->model->opset < 7) return "opset below 7: kept as it is";
    return "unknown operator: what it reads is not known";
}

static const char *shape_reason(const ot_seq *s, const ot_node *n)
{
    const ot_graph *g = s->g;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v != OT_NONE && !g->values[v].is_tensor) return "reads a sequence, map or optional";
        if (v != OT_NONE && !ot_value_is_static(&g->values[v])) return "the shape of an input is not known (bind it with --shape)";
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v != OT_NONE && !ot_value_is_static(&g->values[v]))
            return "the shape of an output is not known (it depends on data, or bind it with --shape)";
    }
    return NULL;
}

/* The reason the widest axis gives: the axis a person would have cut. */
const char *ot_barrier_reason(const ot_seq *s, ot_id node)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[node];
    const char *why = opaque_reason(g, n);
    if (why) return why;
    if (ot_op_access(n->op) == OT_ACC_BARRIER) return "its output depends on all of its input, or on the data";
    why = shape_reason(s, n);
    if (why) return why;
    if (s->pos[node] != OT_NONE && s->odd[s->pos[node]])
        return "runtimes and checkers disagree on the shapes here (STFT, DFT or a ceil_mode pool nearby)";
    int8_t *in_axis = malloc(n->n_in + 1u), *out_axis = malloc(n->n_out + 1u);
    int64_t widest = 0;
    bool cut = false, any = false;
    const char *reason = "every axis has extent 1";
    for (uint32_t o = 0; in_axis && out_axis && o < n->n_out && !cut; o++) {
        if (n->out[o] == OT_NONE) continue;
        const ot_value *v = &g->values[n->out[o]];
        for (int32_t a = 0; a < v->rank && !cut; a++) {
            const char *w = NULL;
            if (v->dims[a] < 2) continue;
            any = true;
            cut = ot_access_axis(g, n, o, (uint32_t)a, in_axis, out_axis, &w);
            if (!cut && v->dims[a] > widest) widest = v->dims[a], reason = w ? w : "not cuttable";
        }
    }
    bool reduced[OT_RANK_MAX];
    if (!cut && s->sums && ot_access_sum(g, n, reduced) != OT_SUM_NONE) {
        const ot_value *x = &g->values[n->in[0]];
        for (int32_t a = 0; a < x->rank; a++) cut = cut || (reduced[a] && x->dims[a] >= 2);
    }
    if (!any && !cut) {
        ot_access_kind k = ot_op_access(n->op);
        if (k == OT_ACC_GLOBALPOOL)
            reason = "global pooling reads the whole map (and there is one sample)";
        else if (k == OT_ACC_REDUCE)
            reason = "the reduction reads its whole input";
    } else if (!cut && ot_op_access(n->op) == OT_ACC_GLOBALPOOL) {
        reason = "global pooling reads the whole map";
    }
    free(in_axis);
    free(out_axis);
    return cut ? NULL : reason;
}
