/* What the engine runs as one kernel on a device: convolutions with what follows them, products,
 * pools and reductions with element-wise nodes behind them, chains. Attention, products with a
 * factor and groups of bytes are kernels of CPUs alone; on a device their nodes are kernels one by
 * one.
 *
 * A session asks its generator of kernels besides (engine/gpu/device_groups.c); what that refuses
 * runs node by node, and takes more than these rules say.
 */
#include "steps.h"

#include "ops/ops.h"

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
static bool takes_posts(const ot_node *n)
{
    if (n->n_out < 1 || n->out[0] == OT_NONE) return false;
    switch ((int)n->op) {
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

static bool merges(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                   ot_group_role role)
{
    const ot_node *n = v->node(v->of, place);
    ot_group_shape x;
    (void)ctx;
    if (!n) return false;
    if (role == OT_ROLE_PRODUCT) return takes_posts(n);
    if (role == OT_ROLE_CONVOLUTION)
        return (n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose) &&
               v->shape(v->of, n->out[0], &x);
    return is_element(v, place) &&
           (role == OT_ROLE_ELEMENT || ot_group_same_dims(v, n->out[0], group->result));
}

/* What follows a head element by element, each the only reader of the one before. */
static void extend(const ot_group_rules *r, const ot_group_view *v, ot_group *x)
{
    while (x->n < OT_GROUP_PARTS) {
        const uint32_t next = ot_group_only_reader(v, x->result);
        if (next == OT_NONE || !v->node(v->of, next) ||
            !r->supported(r->ctx, v, x, next, OT_ROLE_ELEMENT))
            return;
        const ot_id made = v->node(v->of, next)->out[0];
        if (!ot_group_same_dims(v, made, x->result)) return;
        x->parts[x->n++] = (ot_group_part){next, OT_ROLE_ELEMENT};
        x->result = made;
    }
}

ot_status ot_device_find(const ot_group_rules *r, ot_node_list *l, ot_arena *a, ot_steps *s)
{
    const ot_group_view v = ot_node_list_view(l);
    const ot_group none = {.kind = OT_GROUP_PRODUCT, .result = OT_NONE, .residual = OT_NONE};
    ot_group_list chains;
    for (uint32_t k = 0; k < l->n; k++) {
        const ot_node *n = v.node(v.of, k);
        ot_group x = none;
        if (!n || !r->supported(r->ctx, &v, &none, k, OT_ROLE_PRODUCT)) continue;
        if (!ot_group_conv(&v, r, k, &x)) {
            x = none;
            x.parts[x.n++] = (ot_group_part){k, OT_ROLE_PRODUCT};
            x.result = n->out[0];
        }
        extend(r, &v, &x);
        OT_TRY(ot_steps_add(s, l, a, &x));
    }
    OT_TRY(ot_group_chains(&v, r, a, l->g->model->diag, &chains));
    for (uint32_t k = 0; k < chains.n; k++) OT_TRY(ot_steps_add(s, l, a, &chains.groups[k]));
    return OT_OK;
}

const ot_group_rules ot_device_rules = {
    .name = "device", .supported = merges, .find = ot_device_find};
