/* What OpenVINO runs as one step on a CPU (measured by what its process grows by): element-wise
 * nodes join what makes their operand, if nothing else reads that; attention is one step.
 *
 *   Conv -> BN -> Relu        one step      Sigmoid(x), Mul(x, .)   both readers of x are of one
 *                                                                   step: x is not stored
 *   MatMul -> Softmax -> MatMul    one step; its scores are not stored
 *
 * A step has one convolution at most; a sum of two goes to the later one. What is read elsewhere
 * joins nothing.
 */
#include "steps.h"

#include "ops/ops.h"

static bool is_element_wise(const ot_node *n)
{
    return ot_op_access(n->op) == OT_ACC_POINTWISE || n->op == OT_OP_BatchNormalization;
}

static bool same_dims(const ot_graph *g, ot_id a, ot_id b)
{
    const ot_value *x = &g->values[a], *y = &g->values[b];
    return x->rank == y->rank && x->rank > 0 &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

/* Everything that `maker`'s step makes stays within it, or within step `leader`. */
static bool feeds_only(const ot_node_list *l, const ot_steps *s, uint32_t maker, uint32_t leader)
{
    for (uint32_t k = s->leader[maker]; k != OT_NONE; k = s->next[k])
        for (uint32_t j = 0; j < l->node[k]->n_out; j++) {
            const ot_id v = l->node[k]->out[j];
            if (v != OT_NONE && ot_step_stores(l, s, v, s->leader[maker]) &&
                ot_step_stores(l, s, v, leader))
                return false;
        }
    return true;
}

/* May the node take in what makes v? */
static bool may_join(const ot_node_list *l, const ot_steps *s, const ot_node *n, ot_id v)
{
    const uint32_t product = s->product[s->leader[l->maker[v]]];
    const ot_node *by = l->node[l->maker[v]];
    if (by->is_static || n->n_out == 0 || n->out[0] == OT_NONE) return false;
    if (is_element_wise(n))
        return same_dims(l->g, v, n->out[0]) && (is_element_wise(by) || ot_step_is_product(by));
    if (n->op == OT_OP_Softmax)
        return product != OT_NONE && ot_op_access(l->node[product]->op) == OT_ACC_MATMUL;
    return n->op == OT_OP_MatMul && by->op == OT_OP_Softmax && v == n->in[0];
}

/* The node adds to what a convolution makes what that convolution reads: it is left out, and
 * takes memory of its own. */
static bool adds_its_input(const ot_node_list *l, const ot_steps *s, const ot_node *n, uint32_t by)
{
    const uint32_t product = s->product[s->leader[by]];
    for (uint32_t k = 0; product != OT_NONE && k < n->n_in; k++)
        if (n->in[k] != OT_NONE && n->in[k] == l->node[product]->in[0]) return true;
    return false;
}

static bool join_one(const ot_node_list *l, ot_steps *s, uint32_t place)
{
    const ot_node *n = l->node[place];
    uint32_t best = OT_NONE;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_id v = n->in[k];
        const uint32_t by = v == OT_NONE || l->constant[v] ? OT_NONE : l->maker[v];
        if (by == OT_NONE || s->leader[by] == s->leader[place] || !may_join(l, s, n, v)) continue;
        if (ot_step_stores(l, s, v, s->leader[place]) || !feeds_only(l, s, by, s->leader[place]))
            continue;
        const bool both = s->product[s->leader[by]] != OT_NONE &&
                          s->product[s->leader[place]] != OT_NONE;
        if ((both && !ot_step_is_product(n)) || adds_its_input(l, s, n, by)) continue;
        if (best == OT_NONE || by > best) best = by;
    }
    if (best != OT_NONE) ot_steps_unite(s, s->leader[best], s->leader[place]);
    return best != OT_NONE;
}

/* The scores of the step with the Softmax at `softmax`: from its product to the one behind. */
static ot_status list_attention(ot_steps *s, const ot_node_list *l, ot_arena *a, uint32_t softmax)
{
    ot_group x = {.kind = OT_GROUP_ATTENTION, .residual = OT_NONE};
    const uint32_t leader = s->leader[softmax];
    uint32_t product = OT_NONE, mix = OT_NONE;
    for (uint32_t k = leader; k != OT_NONE; k = s->next[k]) {
        if (ot_op_access(l->node[k]->op) != OT_ACC_MATMUL) continue;
        if (k < softmax && (product == OT_NONE || k < product)) product = k;
        if (k > softmax && l->node[k]->in[0] == l->node[softmax]->out[0]) mix = k;
    }
    if (product == OT_NONE || mix == OT_NONE) return OT_OK;
    x.result = l->node[mix]->out[0];
    for (uint32_t k = leader; k != OT_NONE; k = s->next[k]) {
        if (k < product || k > mix || x.n == OT_GROUP_PARTS) continue;
        x.parts[x.n++] = (ot_group_part){k, k == product   ? OT_ROLE_PRODUCT
                                            : k == softmax ? OT_ROLE_SOFTMAX
                                            : k == mix     ? OT_ROLE_MIX
                                                           : OT_ROLE_ELEMENT};
    }
    return OT_PUSH(a, s->groups, s->n_groups, s->cap_groups, x) ? OT_OK : OT_E_NOMEM;
}

/* Steps of element-wise nodes alone. */
static ot_status list_chain(ot_steps *s, const ot_node_list *l, ot_arena *a, uint32_t leader)
{
    ot_group x = {.kind = OT_GROUP_CHAIN, .result = OT_NONE, .residual = OT_NONE};
    for (uint32_t k = leader; k != OT_NONE; k = s->next[k]) {
        if (!is_element_wise(l->node[k]) || x.n == OT_GROUP_PARTS) return OT_OK;
        x.parts[x.n++] = (ot_group_part){k, OT_ROLE_ELEMENT};
    }
    return OT_PUSH(a, s->groups, s->n_groups, s->cap_groups, x) ? OT_OK : OT_E_NOMEM;
}

ot_status ot_openvino_join(const ot_group_rules *r, ot_node_list *l, ot_arena *a, ot_steps *s)
{
    const ot_group_view v = ot_node_list_view(l);
    for (uint32_t p = 0; p < l->n; p++) {
        if (!l->node[p] || l->node[p]->is_static || l->node[p]->n_captured) continue;
        while (join_one(l, s, p)) continue;
    }
    for (uint32_t p = 0; p < l->n; p++)
        if (l->node[p] && l->node[p]->op == OT_OP_Softmax) OT_TRY(list_attention(s, l, a, p));
    for (uint32_t p = 0; p < l->n; p++)
        if (l->node[p] && s->leader[p] == p) OT_TRY(list_chain(s, l, a, p));
    for (uint32_t p = 0; p < l->n; p++) {
        ot_bytes_group bytes;
        if (!ot_group_bytes(&v, r, p, &bytes)) continue;
        for (uint32_t k = 0; k < bytes.group.n; k++) l->taken[bytes.group.parts[k].place] = true;
        if (!OT_PUSH(a, s->bytes, s->n_bytes, s->cap_bytes, bytes)) return OT_E_NOMEM;
    }
    return OT_OK;
}

const ot_group_rules ot_openvino_rules = {
    .name = "openvino", .supported = ot_engine_merges, .find = ot_openvino_join};
