/* A matrix product and the scalar that its result is multiplied by or divided by, as one product with a factor.
 *
 *   MatMul --> Mul by 0.125      becomes      FusedMatMul <alpha = 0.125>
 *
 * Attention scales its scores so: a pass over the largest array of the network less.
 */
#include "engine/product/fast_product.h"
#include "lower.h"

/* The only reader of v multiplies by a constant: its factor. */
static bool scaled(const lw_pass *l, ot_id v, uint32_t *reader, float *factor)
{
    *reader = lw_only_reader(l, v);
    if (*reader == OT_NONE) return false;
    const lw_unit *r = &l->units[*reader];
    ot_op op = r->nodes[0]->op;
    if (r->kind != LW_NODE || r->n_in != 2 || (op != OT_OP_Mul && op != OT_OP_Div) || !lw_is_f32(l, r->out[0])) return false;
    bool second = r->in[0] == v;
    if (op == OT_OP_Div && !second) return false;
    if (!lw_scalar(l, r->in[second ? 1 : 0], factor) || !lw_same_dims(l, v, r->out[0])) return false;
    if (op == OT_OP_Div) *factor = 1 / *factor;
    return true;
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
    OT_TRY(lw_merge(l, parts, 2, LW_NODE, in, 2, &out, 1, NULL));
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
    for (uint32_t u = 0; u < l->n_units; u++) {
        const lw_unit *unit = &l->units[u];
        uint32_t reader;
        float factor;
        if (unit->kind != LW_NODE || unit->nodes[0]->op != OT_OP_MatMul || unit->n_in != 2 || !lw_is_f32(l, unit->out[0])) continue;
        if (!lw_is_f32(l, unit->in[0]) || !lw_is_f32(l, unit->in[1])) continue;
        if (scaled(l, unit->out[0], &reader, &factor)) OT_TRY(fuse(l, u, reader, factor));
    }
    return OT_OK;
}
