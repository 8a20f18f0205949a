/* Which steps run as one kernel: as src/fusion finds them for devices (device_rules.c), by what
 * the generator of kernels takes.
 */
#include "device_internal.h"

#include "fusion/steps.h"

/* ---- what the device's kernels take ---- */

/* All operands and the result are known, and the node is one of ot_dg_is_element; views are none.
 */
static bool is_element(const dv_schedule *q, uint32_t place)
{
    const ot_step *step = &q->p->steps[place];
    const ot_node *n = step->node;
    for (uint32_t k = 1; k < step->n_out; k++)
        if (step->out_slots[k]) return false;
    if (ot_op_is_view(n->op) || step->n_bodies > 0) return false;
    for (uint32_t k = 0; k < step->n_in; k++)
        if (step->in_ids[k] != OT_NONE && !dv_known(q, step->in_ids[k])) return false;
    return step->n_out > 0 && dv_known(q, step->out_ids[0]) && ot_dg_is_element(n, q->arrays);
}

static bool same_dims(const ot_nd *a, const ot_nd *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static bool supported(void *ctx, const ot_group_view *v, const ot_group *group, uint32_t place,
                      ot_group_role role)
{
    const dv_schedule *q = ctx;
    const ot_node *n = v->node(v->of, place);
    if (!n) return false;
    if (role == OT_ROLE_PRODUCT)
        return ot_dg_takes_posts(n) && n->n_out > 0 && dv_known(q, n->out[0]);
    if (role == OT_ROLE_CONVOLUTION)
        return (n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose) && dv_known(q, n->out[0]);
    if (!is_element(q, place)) return false;
    return role == OT_ROLE_ELEMENT || same_dims(&q->arrays[n->out[0]], &q->arrays[group->result]);
}

static ot_group_shape shape_of(const ot_nd *x)
{
    if (x->dtype == OT_DT_UNKNOWN || x->rank > OT_GROUP_RANK)
        return (ot_group_shape){.rank = OT_NONE};
    return (ot_group_shape){x->dtype, x->rank, x->dims};
}

ot_status dv_find_groups(dv_schedule *q, ot_group **out)
{
    const ot_group_rules rules = {.supported = supported, .ctx = q, .find = ot_device_find};
    ot_steps steps;
    *out = OT_NEW_N(q->s->a, ot_group, q->p->n_steps + 1u);
    if (!*out) return ot_fail_nomem(q->s->s->d);
    for (ot_id v = 0; v < q->p->g->n_values; v++) q->list.shape[v] = shape_of(&q->arrays[v]);
    if (ot_steps_find(&q->list, &rules, q->s->a, &steps) != OT_OK) return ot_fail_nomem(q->s->s->d);
    for (size_t k = 0; k < steps.n_groups; k++)
        (*out)[ot_step_at(&steps, steps.groups[k].parts[0].place)] = steps.groups[k];
    return OT_OK;
}
