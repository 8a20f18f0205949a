/* A matrix product with a factor (fusion/fusion.h) as one node.
 *
 *   MatMul --> Mul by 0.125      becomes      FusedMatMul <alpha = 0.125>
 */
#include "engine/cpu/product/fast_product.h"
#include "lower.h"

typedef struct search {
    const lw_pass *l;
    float factor; /* of the group that was found last */
} search;

static bool supported(void *ctx, const ot_group_view *v, const ot_group *x, uint32_t place,
                      ot_group_role role)
{
    search *s = ctx;
    if (!ot_engine_merges(NULL, v, x, place, role)) return false;
    return role != OT_ROLE_FACTOR ||
           lw_scalar(s->l, ot_group_operand(v, place, ot_group_factor(v, place)), &s->factor);
}

static ot_status fuse(lw_pass *l, uint32_t at, uint32_t reader, float factor)
{
    const lw_unit *u = &l->units[at];
    ot_node *node = ot_memdup(l->a, u->nodes[0], sizeof *node);
    ot_attr *alpha = OT_NEW(l->a, ot_attr);
    ot_step *step = OT_NEW(l->a, ot_step);
    if (!node || !alpha || !step) return ot_fail_nomem(l->p->s->d);
    ot_id in[2] = {u->in[0], u->in[1]}, out = l->units[reader].out[0];
    uint32_t parts[2] = {at, reader};
    *alpha = ot_mk_float("alpha", factor);
    *step = *u->step;
    node->attrs = alpha;
    node->n_attrs = 1;
    OT_TRY(lw_merge(l, parts, 2, LW_NODE, (ot_id_list){in, 2}, (ot_id_list){&out, 1}, NULL));
    lw_unit *fused = &l->units[reader];
    step->node = node;
    step->run = ot_fast_fused_matmul;
    step->in_ids = fused->in;
    step->out_ids = fused->out;
    step->out = OT_NEW(l->a, ot_nd *);
    step->out_slots = OT_NEW(l->a, ot_slot *);
    if (!step->out || !step->out_slots) return ot_fail_nomem(l->p->s->d);
    step->out_slots[0] = l->p->at[out];
    step->out[0] = &step->out_slots[0]->nd;
    fused->step = step;
    fused->nodes[0] = node;
    return OT_OK;
}

ot_status lw_fuse_product(lw_pass *l)
{
    const ot_group_view v = lw_group_view(l);
    search s = {.l = l};
    const ot_group_rules rules = {.name = "engine", .supported = supported, .ctx = &s};
    for (uint32_t u = 0; u < l->n_units; u++) {
        ot_group x;
        if (!ot_group_product(&v, &rules, u, &x)) continue;
        uint32_t reader = x.parts[1].place;
        OT_TRY(fuse(l, u, reader, v.node(l, reader)->op == OT_OP_Div ? 1 / s.factor : s.factor));
    }
    return OT_OK;
}
