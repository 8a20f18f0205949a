/* Which steps run as one kernel: groups of src/fusion by the rules of the device's kernels, and
 * what follows a product, a pool or a reduction element by element.
 *
 */
#include "device_internal.h"

/* ---- what the device's kernels take ---- */

/* All operands and the result are known, and the node is one of ot_dg_is_element; views are none.
 */
static bool is_element(const dv_prog *q, uint32_t place)
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
    const dv_prog *q = ctx;
    const ot_node *n = v->node(v->of, place);
    if (!n) return false;
    if (role == OT_ROLE_CONVOLUTION)
        return (n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose) && dv_known(q, n->out[0]);
    if (!is_element(q, place)) return false;
    return role == OT_ROLE_ELEMENT || same_dims(&q->arrays[n->out[0]], &q->arrays[group->result]);
}

/* What follows a head element by element, each the only reader of the one before. */
static void extend(const dv_prog *q, const ot_group_view *v, ot_group *x)
{
    while (x->n < OT_GROUP_PARTS) {
        uint32_t next = dv_only_reader(q, x->result);
        if (next == OT_NONE || !v->node(v->of, next) || !is_element(q, next)) return;
        ot_id made = q->p->steps[next].node->out[0];
        if (!same_dims(&q->arrays[made], &q->arrays[x->result])) return;
        x->parts[x->n++] = (ot_group_part){next, OT_ROLE_ELEMENT};
        x->result = made;
    }
}

static void keep(dv_prog *q, const ot_group *x, ot_group *groups)
{
    uint32_t last = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        q->list.taken[x->parts[k].place] = true;
        last = x->parts[k].place > last ? x->parts[k].place : last;
    }
    groups[last] = *x;
}

static ot_group_shape shape_of(const ot_nd *x)
{
    if (x->dtype == OT_DT_UNKNOWN || x->rank > OT_GROUP_RANK)
        return (ot_group_shape){.rank = OT_NONE};
    return (ot_group_shape){x->dtype, x->rank, x->dims};
}

ot_status dv_find_groups(dv_prog *q, ot_group **out)
{
    const ot_group_view view = ot_node_list_view(&q->list);
    const ot_group_rules rules = {"device", supported, q};
    ot_group_list chains;
    *out = OT_NEW_N(q->s->a, ot_group, q->p->n_steps + 1u);
    if (!*out) return ot_fail_nomem(q->s->s->d);
    for (ot_id v = 0; v < q->p->g->n_values; v++) q->list.shape[v] = shape_of(&q->arrays[v]);
    for (uint32_t k = 0; k < q->p->n_steps; k++) {
        ot_group x;
        const ot_node *n = view.node(view.of, k);
        if (!n || !ot_dg_takes_posts(n) || n->n_out < 1 || !dv_known(q, n->out[0])) continue;
        if (!ot_group_conv(&view, &rules, k, &x))
            x = (ot_group){
                .n = 1, .parts = {{k, OT_ROLE_PRODUCT}}, .result = n->out[0], .residual = OT_NONE};
        extend(q, &view, &x);
        keep(q, &x, *out);
    }
    OT_TRY(ot_group_chains(&view, &rules, q->s->a, q->s->s->d, &chains));
    for (uint32_t k = 0; k < chains.n; k++) keep(q, &chains.groups[k], *out);
    return OT_OK;
}
