/* Element-wise nodes join what makes their operand, if nothing else reads that; attention is one
 * step.
 *
 *   Conv -> BN -> Relu        one step      Sigmoid(x), Mul(x, .)   both readers of x are of one
 *                                                                   step: x is not stored
 *   MatMul -> Softmax -> MatMul    one step; its scores are not stored
 *
 * A step runs where its last node stands: whoever reads its results comes behind that, since
 * what is read elsewhere joins nothing. A step has one convolution at most; a sum of two goes to
 * the later one.
 *
 *
 *
 */
#include "merged_steps.h"

static bool is_element_wise(const ot_node *n)
{
    return ot_op_access(n->op) == OT_ACC_POINTWISE || n->op == OT_OP_BatchNormalization;
}

static bool is_product(const ot_node *n)
{
    return n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose || n->op == OT_OP_MatMul ||
           n->op == OT_OP_Gemm;
}

static bool same_dims(const ot_graph *g, ot_id a, ot_id b)
{
    const ot_value *x = &g->values[a], *y = &g->values[b];
    return x->rank == y->rank && x->rank > 0 &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

static ot_status note_reader(ot_merged_steps *s, ot_arena *a, size_t *cap, ot_id v, ot_id node)
{
    if (v == OT_NONE || (s->n_readers[v] > 0 && s->readers[v][s->n_readers[v] - 1] == node))
        return OT_OK;
    size_t n = s->n_readers[v];
    if (!OT_PUSH(a, s->readers[v], n, cap[v], node)) return OT_E_NOMEM;
    s->n_readers[v] = (uint32_t)n;
    return OT_OK;
}

static ot_status find_readers(const ot_graph *g, ot_arena *a, ot_merged_steps *s)
{
    size_t *cap = OT_NEW_N(a, size_t, g->n_values + 1u);
    if (!cap) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t j = 0; j < n->n_in; j++)
            OT_TRY(note_reader(s, a, cap, n->in[j], g->order[k]));
        for (uint32_t j = 0; j < n->n_captured; j++)
            OT_TRY(note_reader(s, a, cap, n->captured[j], g->order[k]));
        for (uint32_t j = 0; j < n->n_out; j++)
            if (n->out[j] != OT_NONE) s->maker[n->out[j]] = g->order[k];
    }
    return OT_OK;
}

/* Every reader of v is of step `leader`. */
static bool stays_inside(const ot_graph *g, const ot_merged_steps *s, ot_id v, ot_id leader)
{
    if (g->values[v].is_output) return false;
    for (uint32_t k = 0; k < s->n_readers[v]; k++)
        if (s->leader[s->readers[v][k]] != leader) return false;
    return true;
}

/* Everything that `maker`'s step makes stays within it and step `leader`. */
static bool feeds_only(const ot_graph *g, const ot_merged_steps *s, ot_id maker, ot_id leader)
{
    for (ot_id k = s->leader[maker]; k != OT_NONE; k = s->next[k])
        for (uint32_t j = 0; j < g->nodes[k].n_out; j++) {
            ot_id v = g->nodes[k].out[j];
            if (v != OT_NONE && !stays_inside(g, s, v, s->leader[maker]) &&
                !stays_inside(g, s, v, leader))
                return false;
        }
    return true;
}

/* The nodes of step b become part of step a, whose first node comes before. */
static void unite(ot_merged_steps *s, ot_id a, ot_id b)
{
    for (ot_id k = b; k != OT_NONE; k = s->next[k]) s->leader[k] = a;
    s->next[s->last[a]] = b;
    s->last[a] = s->last[b];
    if (s->product[b] != OT_NONE) s->product[a] = s->product[b];
}

/* May the node take in what makes v? */
static bool may_join(const ot_graph *g, const ot_merged_steps *s, const ot_node *n, ot_id v)
{
    const ot_node *by = &g->nodes[s->maker[v]];
    if (by->is_static || n->n_out == 0 || n->out[0] == OT_NONE) return false;
    const bool by_product = s->product[s->leader[s->maker[v]]] != OT_NONE;
    if (is_element_wise(n))
        return same_dims(g, v, n->out[0]) && (is_element_wise(by) || is_product(by));
    if (n->op == OT_OP_Softmax)
        return by_product &&
               ot_op_access(g->nodes[s->product[s->leader[s->maker[v]]]].op) == OT_ACC_MATMUL;
    return n->op == OT_OP_MatMul && by->op == OT_OP_Softmax && v == n->in[0];
}

/* The node adds to what a convolution makes what that convolution reads: it is left out, and
 * takes memory of its own. */
static bool adds_its_input(const ot_graph *g, const ot_merged_steps *s, const ot_node *n, ot_id by)
{
    const ot_id product = s->product[s->leader[by]];
    for (uint32_t k = 0; product != OT_NONE && k < n->n_in; k++)
        if (n->in[k] != OT_NONE && n->in[k] == g->nodes[product].in[0]) return true;
    return false;
}

static bool join_one(const ot_graph *g, ot_merged_steps *s, ot_id node)
{
    const ot_node *n = &g->nodes[node];
    ot_id best = OT_NONE;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k], by = v == OT_NONE || ot_is_fixed(g, v) ? OT_NONE : s->maker[v];
        if (by == OT_NONE || s->leader[by] == s->leader[node] || !may_join(g, s, n, v)) continue;
        if (!stays_inside(g, s, v, s->leader[node]) || !feeds_only(g, s, by, s->leader[node]))
            continue;
        const bool both = s->product[s->leader[by]] != OT_NONE &&
                          s->product[s->leader[node]] != OT_NONE;
        if ((both && !is_product(n)) || adds_its_input(g, s, n, by)) continue;
        if (best == OT_NONE || by > best) best = by;
    }
    if (best != OT_NONE) unite(s, s->leader[best], s->leader[node]);
    return best != OT_NONE;
}

ot_status ot_merged_steps_find(const ot_graph *g, const ot_runtime *r, ot_arena *a,
                               ot_merged_steps *s)
{
    *s = (ot_merged_steps){0};
    s->leader = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    s->next = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    s->last = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    s->product = OT_NEW_N(a, ot_id, g->n_nodes + 1u);
    s->readers = OT_NEW_N(a, ot_id *, g->n_values + 1u);
    s->n_readers = OT_NEW_N(a, uint32_t, g->n_values + 1u);
    s->maker = OT_NEW_N(a, ot_id, g->n_values + 1u);
    if (!s->maker || !s->leader || !s->next || !s->last || !s->product || !s->readers ||
        !s->n_readers)
        return OT_E_NOMEM;
    for (ot_id k = 0; k < g->n_nodes; k++) {
        s->leader[k] = s->last[k] = k;
        s->next[k] = OT_NONE;
        s->product[k] = is_product(&g->nodes[k]) ? k : OT_NONE;
    }
    for (uint32_t v = 0; v < g->n_values; v++) s->maker[v] = OT_NONE;
    OT_TRY(find_readers(g, a, s));
    for (uint32_t k = 0; k < g->n_order && ot_runtime_fuses(r); k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->is_static || n->n_captured) continue;
        while (join_one(g, s, g->order[k])) continue;
    }
    return OT_OK;
}
