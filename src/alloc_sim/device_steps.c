/* A graph's nodes as kernels of a device, by the rules that its sessions follow
 * (engine/gpu/device_groups.c): convolutions with what follows them, products, pools and
 * reductions with element-wise nodes behind them, chains.
 *
 *   place   0     1     2     3         at     2 2 2 3
 *           Conv  Relu  Add   MaxPool          a kernel runs where its last node stands
 *
 * The session asks its generator besides; what that refuses runs node by node, and takes more
 * than is thought here.
 *
 */
#include "device_steps.h"

#include "ops/ops.h"

/* ---- what kernels take ---- */

static bool is_element(const ot_group_view *v, uint32_t place)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape x;
    if (!n || n->n_out == 0 || n->out[0] == OT_NONE || ot_op_is_view(n->op) ||
        v->has_more_outputs(v->of, place))
        return false;
    return (ot_op_access(n->op) == OT_ACC_POINTWISE || n->op == OT_OP_BatchNormalization) &&
           v->shape(v->of, n->out[0], &x);
}

/* Element-wise nodes may follow it in its kernel. */
static bool takes_posts(ot_op op)
{
    switch ((int)op) {
    case OT_OP_Conv:
    case OT_OP_ConvTranspose:
    case OT_OP_MaxPool:
    case OT_OP_AveragePool:
    case OT_OP_MatMul:
    case OT_OP_Gemm:
    case OT_OP_GlobalAveragePool:
    case OT_OP_GlobalMaxPool:
    case OT_OP_ReduceMean:
    case OT_OP_ReduceSum:
    case OT_OP_ReduceMax:
    case OT_OP_ReduceMin:
    case OT_OP_Resize:
    case OT_OP_Upsample: return true;
    default: return false;
    }
}

static bool supported(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                      ot_group_role role)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape x;
    (void)ctx;
    if (!n) return false;
    if (role == OT_ROLE_CONVOLUTION)
        return (n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose) &&
               v->shape(v->of, n->out[0], &x);
    return is_element(v, place) &&
           (role == OT_ROLE_ELEMENT || ot_group_same_dims(v, n->out[0], group->result));
}

/* What follows a head element by element, each the only reader of the one before. */
static void extend(const ot_group_view *v, ot_group *x)
{
    while (x->n < OT_GROUP_PARTS) {
        const uint32_t next = ot_group_only_reader(v, x->result);
        if (next == OT_NONE || !is_element(v, next)) return;
        const ot_id made = v->node(v->of, next)->out[0];
        if (!ot_group_same_dims(v, made, x->result)) return;
        x->parts[x->n++] = (ot_group_part){next, OT_ROLE_ELEMENT};
        x->result = made;
    }
}

static void keep(ot_device_steps *s, const ot_group *x)
{
    uint32_t last = 0;
    for (uint32_t k = 0; k < x->n; k++) last = x->parts[k].place > last ? x->parts[k].place : last;
    for (uint32_t k = 0; k < x->n; k++) {
        s->list.taken[x->parts[k].place] = true;
        s->at[x->parts[k].place] = last;
    }
}

static ot_status find_groups(ot_device_steps *s, ot_arena *a)
{
    const ot_group_view view = ot_node_list_view(&s->list);
    const ot_group_rules rules = {"device", supported, NULL};
    ot_group_list chains;
    for (uint32_t k = 0; k < s->list.n; k++) {
        ot_group x;
        const ot_node *n = view.node(view.of, k);
        if (!n || !takes_posts(n->op) || n->n_out < 1 || n->out[0] == OT_NONE) continue;
        if (!ot_group_conv(&view, &rules, k, &x))
            x = (ot_group){
                .n = 1, .parts = {{k, OT_ROLE_PRODUCT}}, .result = n->out[0], .residual = OT_NONE};
        extend(&view, &x);
        keep(s, &x);
    }
    OT_TRY(ot_group_chains(&view, &rules, a, s->list.g->model->diag, &chains));
    for (uint32_t k = 0; k < chains.n; k++) keep(s, &chains.groups[k]);
    return OT_OK;
}

/* ---- the whole ---- */

static uint32_t n_operands(const ot_node *n) { return n->n_in + n->n_captured; }
static ot_id operand(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

/* Nodes that no result depends on do not run. wanted: [n_values]. */
static void find_needed(const ot_graph *g, const ot_id *order, bool *wanted, bool *needed)
{
    for (uint32_t k = 0; k < g->n_outputs; k++) wanted[g->outputs[k]] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[order[k]];
        if (n->is_static) continue;
        for (uint32_t j = 0; j < n->n_out; j++)
            needed[order[k]] |= n->out[j] != OT_NONE && wanted[n->out[j]];
        for (uint32_t j = 0; j < n_operands(n) && needed[order[k]]; j++)
            if (operand(n, j) != OT_NONE) wanted[operand(n, j)] = true;
    }
}

ot_status ot_device_steps_find(const ot_graph *g, ot_arena *a, ot_device_steps *s)
{
    *s = (ot_device_steps){.list.g = g};
    s->list.node = OT_NEW_N(a, const ot_node *, g->n_order + 1u);
    s->at = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    ot_id *order = OT_NEW_N(a, ot_id, g->n_order + 1u);
    bool *wanted = OT_NEW_N(a, bool, g->n_values + 1u),
         *needed = OT_NEW_N(a, bool, g->n_nodes + 1u);
    if (!wanted || !needed || !order || !s->list.node || !s->at) return OT_E_NOMEM;
    OT_TRY(ot_tile_reads_order(g, a, order));
    find_needed(g, order, wanted, needed);
    for (uint32_t k = 0; k < g->n_order; k++) {
        if (!needed[order[k]]) continue;
        s->at[s->list.n] = s->list.n;
        s->list.node[s->list.n++] = &g->nodes[order[k]];
    }
    OT_TRY(ot_node_list_fill(&s->list, a));
    for (ot_id v = 0; v < g->n_values; v++)
        s->list.constant[v] |= g->values[v].known || g->values[v].known_floats;
    return find_groups(s, a);
}

bool ot_device_stores(const ot_device_steps *s, ot_id v, uint32_t place)
{
    if (s->list.g->values[v].is_output) return true;
    for (uint32_t k = s->list.first[v]; k < s->list.first[v + 1]; k++)
        if (s->at[s->list.readers[k]] != s->at[place]) return true;
    return false;
}
