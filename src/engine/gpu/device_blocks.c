/* Which activations lie in blocks of channels, [N][C/8][H][W][8]
 * (engine/gpu/shaders/dg_blocks.c), where that suits the device.
 *
 *   conv --a--> relu --b--> conv --c--> reshape  a, b: blocks; c: as it is, since a Reshape wants
 *                                                the model's order
 *
 * From the last step to the first: a value is laid out so if who makes it and all who read it
 * take it, and somebody is faster with it: a convolution, or what hands blocks on. What the
 * graph, a loop or the host see of it from outside stays as the model has it.
 */
#include "device_internal.h"

typedef struct blocks {
    dv_schedule *q;
    uint32_t *head; /* [steps] the first step of the group that each is part of */
    bool *hands_on; /* [steps] of such a first step: the group stores blocks */
} blocks;

static ot_status find_heads(blocks *x, const ot_group *groups)
{
    const uint32_t n = x->q->p->n_steps;
    x->head = OT_NEW_N(x->q->s->a, uint32_t, n + 1u);
    x->hands_on = OT_NEW_N(x->q->s->a, bool, n + 1u);
    if (!x->head || !x->hands_on) return ot_fail_nomem(x->q->s->s->d);
    for (uint32_t k = 0; k < n; k++) x->head[k] = k;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < groups[k].n; j++)
            x->head[groups[k].parts[j].place] = groups[k].parts[0].place;
    return OT_OK;
}

/* Memory of the program's own, of a shape that makes whole blocks, which nobody outside of it sees.
 */
static bool may_lie_so(const dv_schedule *q, ot_id v, uint32_t block)
{
    const dv_value *x = q->at[v];
    if (!dv_known(q, v) || x->of || x->owner != q || x->memory != DV_ARENA || x->uploaded ||
        x->host || x->room.twice)
        return false;
    if (q->placed_in[v] != OT_NONE || q->p->at[v]->is_result || q->p->at[v]->is_const ||
        q->p->g->values[v].is_outer)
        return false;
    for (uint32_t k = 0; k < q->p->g->n_outputs; k++)
        if (q->p->g->outputs[k] == v) return false;
    return x->nd.dtype == OT_F32 && x->nd.rank >= 3 && x->nd.rank <= 5 &&
           x->nd.dims[1] % block == 0 && ot_list_readers(&q->list, v) > 0;
}

static bool is_plain(const ot_step *step)
{
    return step->n_bodies == 0 && step->node->n_captured == 0;
}

/* Does the step take v so in all its places? *gains: and is it better off? */
static bool reads(const blocks *x, uint32_t place, ot_id v, bool *gains)
{
    const dv_schedule *q = x->q;
    const ot_step *step = &q->p->steps[place];
    const ot_node *head = q->p->steps[x->head[place]].node, *n = step->node;
    if (!is_plain(step)) return false;
    for (uint32_t k = 0; k < step->n_in; k++) {
        if (step->in_ids[k] != v) continue;
        if (!ot_dg_reads_blocks(head, n, k, q->arrays)) return false;
        *gains |= n == head && ot_dg_wants_blocks(n, k);
    }
    *gains |= x->hands_on[x->head[place]];
    return true;
}

static bool lies_so(const blocks *x, ot_id v, uint32_t block)
{
    const dv_schedule *q = x->q;
    const uint32_t by = q->list.maker[v];
    bool gains = false;
    if (by == OT_NONE || !may_lie_so(q, v, block) || !is_plain(&q->p->steps[by])) return false;
    if (q->p->steps[by].out_ids[0] != v ||
        !ot_dg_makes_blocks(q->p->steps[x->head[by]].node, q->arrays))
        return false;
    for (uint32_t k = q->list.first[v]; k < q->list.first[v + 1]; k++)
        if (!reads(x, q->list.readers[k], v, &gains)) return false;
    return gains;
}

ot_status dv_choose_blocks(dv_schedule *q, const ot_group *groups)
{
    blocks x = {.q = q};
    const uint32_t block = q->s->target.layout.block;
    if (block == 0) return OT_OK;
    OT_TRY(find_heads(&x, groups));
    for (uint32_t k = q->p->n_steps; k-- > 0;) {
        const ot_id v = q->p->steps[k].n_out > 0 && q->p->steps[k].out_slots[0]
                            ? q->p->steps[k].out_ids[0]
                            : OT_NONE;
        if (!q->list.node[k] || v == OT_NONE || !lies_so(&x, v, block)) continue;
        ot_nd *nd = &q->at[v]->nd;
        ot_nd_set_blocked(nd, nd->dtype, nd->rank, nd->dims, block);
        dv_set(q, v, q->at[v]);
        x.hands_on[x.head[k]] = true;
    }
    return OT_OK;
}

void dv_unblock(dv_schedule *q, ot_id v)
{
    ot_nd *nd = &q->at[v]->nd;
    if (!nd->chan_block) return;
    ot_nd_set_dense(nd, nd->dtype, nd->rank, nd->dims);
    dv_set(q, v, q->at[v]);
}
