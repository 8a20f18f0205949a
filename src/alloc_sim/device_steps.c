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
#include "fusion/fusion.h"

/* ---- the graph as the recogniser sees it ---- */

static const ot_node *node_at(const void *of, uint32_t place)
{
    const ot_device_steps *s = of;
    const ot_node *n = &s->g->nodes[s->node[place]];
    return s->taken[place] || n->n_captured > 0 ? NULL : n;
}

static const ot_id *operands(const void *of, uint32_t place, uint32_t *n)
{
    const ot_device_steps *s = of;
    const ot_node *node = &s->g->nodes[s->node[place]];
    *n = node->n_in;
    return node->in;
}

static const uint32_t *readers(const void *of, ot_id v, uint32_t *n)
{
    const ot_device_steps *s = of;
    *n = ot_device_readers(s, v);
    return s->readers + s->first[v];
}

static uint32_t maker(const void *of, ot_id v) { return ((const ot_device_steps *)of)->maker[v]; }

static bool origin(const void *of, ot_id v, ot_group_origin *o)
{
    (void)of, (void)v, (void)o;
    return false;
}

static bool is_kept(const void *of, ot_id v)
{
    const ot_device_steps *s = of;
    return s->g->values[v].is_output || s->outward[v];
}

static bool is_const(const void *of, ot_id v)
{
    const ot_value *x = &((const ot_device_steps *)of)->g->values[v];
    return x->init || x->is_const || x->known || x->known_floats;
}

static bool shape(const void *of, ot_id v, ot_group_shape *out)
{
    const ot_value *x = &((const ot_device_steps *)of)->g->values[v];
    if (!x->is_tensor || x->is_sequence || !ot_value_is_static(x) || x->rank > OT_GROUP_RANK)
        return false;
    *out = (ot_group_shape){x->dtype, (uint32_t)x->rank, x->dims};
    return true;
}

static bool has_more_outputs(const void *of, uint32_t place)
{
    const ot_device_steps *s = of;
    const ot_node *n = &s->g->nodes[s->node[place]];
    for (uint32_t k = 1; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) return true;
    return false;
}

/* ---- what kernels take ---- */

static bool is_element(const ot_device_steps *s, uint32_t place)
{
    const ot_node *n = node_at(s, place);
    ot_group_shape x;
    if (!n || n->n_out == 0 || n->out[0] == OT_NONE || ot_op_is_view(n->op) ||
        has_more_outputs(s, place))
        return false;
    return (ot_op_access(n->op) == OT_ACC_POINTWISE || n->op == OT_OP_BatchNormalization) &&
           shape(s, n->out[0], &x);
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
    const ot_device_steps *s = v->of;
    const ot_node *n = node_at(s, place);
    ot_group_shape x;
    (void)ctx;
    if (!n) return false;
    if (role == OT_ROLE_CONVOLUTION)
        return (n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose) && shape(s, n->out[0], &x);
    return is_element(s, place) &&
           (role == OT_ROLE_ELEMENT || ot_group_same_dims(v, n->out[0], group->result));
}

/* What follows a head element by element, each the only reader of the one before. */
static void extend(const ot_group_view *v, ot_group *x)
{
    const ot_device_steps *s = v->of;
    while (x->n < OT_GROUP_PARTS) {
        const uint32_t next = is_kept(s, x->result) ? OT_NONE : ot_device_only_reader(s, x->result);
        if (next == OT_NONE || !is_element(s, next)) return;
        const ot_id made = s->g->nodes[s->node[next]].out[0];
        if (!ot_group_same_dims(v, made, x->result)) return;
        x->parts[x->n++] = (ot_group_part){next, OT_ROLE_ELEMENT};
        x->result = made;
    }
}

static void keep(ot_device_steps *s, bool *taken, const ot_group *x)
{
    uint32_t last = 0;
    for (uint32_t k = 0; k < x->n; k++) last = x->parts[k].place > last ? x->parts[k].place : last;
    for (uint32_t k = 0; k < x->n; k++) {
        taken[x->parts[k].place] = true;
        s->at[x->parts[k].place] = last;
    }
}

static ot_status find_groups(ot_device_steps *s, bool *taken, ot_arena *a)
{
    const ot_group_view view = {s,     s->g,   s->n,    node_at,  operands, readers,
                                maker, origin, is_kept, is_const, shape,    has_more_outputs};
    const ot_group_rules rules = {"device", supported, NULL};
    ot_group_list chains;
    for (uint32_t k = 0; k < s->n; k++) {
        ot_group x;
        const ot_node *n = node_at(s, k);
        if (!n || !takes_posts(n->op) || n->n_out < 1 || n->out[0] == OT_NONE) continue;
        if (!ot_group_conv(&view, &rules, k, &x))
            x = (ot_group){
                .n = 1, .parts = {{k, OT_ROLE_PRODUCT}}, .result = n->out[0], .residual = OT_NONE};
        extend(&view, &x);
        keep(s, taken, &x);
    }
    OT_TRY(ot_group_chains(&view, &rules, a, s->g->model->diag, &chains));
    for (uint32_t k = 0; k < chains.n; k++) keep(s, taken, &chains.groups[k]);
    return OT_OK;
}

/* ---- the whole ---- */

static uint32_t n_operands(const ot_node *n) { return n->n_in + n->n_captured; }
static ot_id operand(const ot_node *n, uint32_t k)
{
    return k < n->n_in ? n->in[k] : n->captured[k - n->n_in];
}

/* Readers in a table: counted, then filled in, each node once. */
static bool list_readers(ot_device_steps *s, bool *outward, ot_arena *a)
{
    const uint32_t n_values = s->g->n_values;
    uint32_t *seen = OT_NEW_N(a, uint32_t, n_values + 1u),
             *fill = OT_NEW_N(a, uint32_t, n_values + 2u);
    size_t total = 0;
    if (!seen || !fill) return false;
    for (int pass = 0; pass < 2; pass++) {
        memset(seen, 0, n_values * sizeof *seen);
        for (uint32_t p = 0; p < s->n; p++) {
            const ot_node *n = &s->g->nodes[s->node[p]];
            for (uint32_t k = 0; k < n_operands(n); k++) {
                const ot_id v = operand(n, k);
                if (v == OT_NONE || seen[v] == p + 1) continue;
                seen[v] = p + 1;
                if (k >= n->n_in) outward[v] = true;
                if (pass == 0) s->first[v + 1]++;
                if (pass == 1) s->readers[fill[v]++] = p;
            }
        }
        if (pass == 1) break;
        for (ot_id v = 0; v < n_values; v++) s->first[v + 1] += s->first[v];
        total = s->first[n_values];
        memcpy(fill, s->first, (n_values + 1u) * sizeof *fill);
        if (!(s->readers = OT_NEW_N(a, uint32_t, total + 1))) return false;
    }
    return true;
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
    *s = (ot_device_steps){.g = g};
    s->node = OT_NEW_N(a, ot_id, g->n_order + 1u);
    s->at = OT_NEW_N(a, uint32_t, g->n_order + 1u);
    s->maker = OT_NEW_N(a, uint32_t, g->n_values + 1u);
    s->first = OT_NEW_N(a, uint32_t, g->n_values + 2u);
    ot_id *order = OT_NEW_N(a, ot_id, g->n_order + 1u);
    bool *taken = OT_NEW_N(a, bool, g->n_order + 1u),
         *outward = OT_NEW_N(a, bool, g->n_values + 1u);
    bool *wanted = OT_NEW_N(a, bool, g->n_values + 1u),
         *needed = OT_NEW_N(a, bool, g->n_nodes + 1u);
    if (!wanted || !needed || !order || !s->node || !s->at || !s->maker || !s->first || !taken ||
        !outward)
        return OT_E_NOMEM;
    s->taken = taken;
    s->outward = outward;
    for (ot_id v = 0; v < g->n_values; v++) s->maker[v] = OT_NONE;
    OT_TRY(ot_tile_reads_order(g, a, order));
    find_needed(g, order, wanted, needed);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[order[k]];
        if (!needed[order[k]]) continue;
        for (uint32_t j = 0; j < n->n_out; j++)
            if (n->out[j] != OT_NONE) s->maker[n->out[j]] = s->n;
        s->at[s->n] = s->n;
        s->node[s->n++] = order[k];
    }
    return list_readers(s, outward, a) ? find_groups(s, taken, a) : OT_E_NOMEM;
}

bool ot_device_stores(const ot_device_steps *s, ot_id v, uint32_t place)
{
    if (s->g->values[v].is_output) return true;
    for (uint32_t k = s->first[v]; k < s->first[v + 1]; k++)
        if (s->at[s->readers[k]] != s->at[place]) return true;
    return false;
}
