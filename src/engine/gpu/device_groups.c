/* Which steps run as one kernel: groups of src/fusion by the rules of the device's kernels, and
 * what follows a product, a pool or a reduction element by element.
 *
 */
#include "device_internal.h"

/* ---- the program as the recogniser sees it ---- */

static const ot_node *node_at(const void *of, uint32_t place)
{
    const dv_prog *q = of;
    const ot_step *step = &q->p->steps[place];
    return q->needed[place] && !q->taken[place] && step->n_bodies == 0 ? step->node : NULL;
}

static const ot_id *operands(const void *of, uint32_t place, uint32_t *n)
{
    const ot_step *step = &((const dv_prog *)of)->p->steps[place];
    *n = step->n_in;
    return step->in_ids;
}

static const uint32_t *readers(const void *of, ot_id v, uint32_t *n)
{
    const dv_prog *q = of;
    *n = q->n_readers[v];
    return q->readers + q->reader_first[v];
}

static uint32_t maker(const void *of, ot_id v) { return ((const dv_prog *)of)->maker[v]; }

static bool origin(const void *of, ot_id v, ot_group_origin *o)
{
    (void)of, (void)v, (void)o;
    return false;
}

static bool is_kept(const void *of, ot_id v) { return ((const dv_prog *)of)->p->at[v]->is_result; }
static bool is_const(const void *of, ot_id v) { return ((const dv_prog *)of)->p->at[v]->is_const; }

static bool shape(const void *of, ot_id v, ot_group_shape *s)
{
    const ot_nd *x = &((const dv_prog *)of)->arrays[v];
    if (x->dtype == OT_DT_UNKNOWN || x->rank > OT_GROUP_RANK) return false;
    *s = (ot_group_shape){x->dtype, x->rank, x->dims};
    return true;
}

static bool has_more_outputs(const void *of, uint32_t place)
{
    const ot_step *step = &((const dv_prog *)of)->p->steps[place];
    for (uint32_t k = 1; k < step->n_out; k++)
        if (step->out_slots[k]) return true;
    return false;
}

/* ---- what the device's kernels take ---- */

/* All operands and the result are known, and the node is one of ot_dg_is_element; views are none.
 */
static bool is_element(const dv_prog *q, uint32_t place)
{
    const ot_step *step = &q->p->steps[place];
    const ot_node *n = step->node;
    if (ot_op_is_view(n->op) || has_more_outputs(q, place) || step->n_bodies > 0) return false;
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
    const dv_prog *q = v->of;
    const ot_node *n = v->node(v->of, place);
    (void)ctx;
    if (!n) return false;
    if (role == OT_ROLE_CONVOLUTION)
        return (n->op == OT_OP_Conv || n->op == OT_OP_ConvTranspose) && dv_known(q, n->out[0]);
    if (!is_element(q, place)) return false;
    return role == OT_ROLE_ELEMENT || same_dims(&q->arrays[n->out[0]], &q->arrays[group->result]);
}

/* What follows a head element by element, each the only reader of the one before. */
static void extend(const dv_prog *q, ot_group *x)
{
    while (x->n < OT_GROUP_PARTS) {
        uint32_t next = dv_only_reader(q, x->result);
        if (next == OT_NONE || !node_at(q, next) || !is_element(q, next)) return;
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
        q->taken[x->parts[k].place] = true;
        last = x->parts[k].place > last ? x->parts[k].place : last;
    }
    groups[last] = *x;
}

ot_status dv_find_groups(dv_prog *q, ot_group **out)
{
    const ot_group_view view = {q,        q->p->g,  q->p->n_steps, node_at,
                                operands, readers,  maker,         origin,
                                is_kept,  is_const, shape,         has_more_outputs};
    const ot_group_rules rules = {"device", supported, NULL};
    ot_group_list chains;
    *out = OT_NEW_N(q->s->a, ot_group, q->p->n_steps + 1u);
    if (!*out) return ot_fail_nomem(q->s->s->d);
    for (uint32_t k = 0; k < q->p->n_steps; k++) {
        ot_group x;
        const ot_node *n = node_at(q, k);
        if (!n || !ot_dg_takes_posts(n) || n->n_out < 1 || !dv_known(q, n->out[0])) continue;
        if (!ot_group_conv(&view, &rules, k, &x))
            x = (ot_group){
                .n = 1, .parts = {{k, OT_ROLE_PRODUCT}}, .result = n->out[0], .residual = OT_NONE};
        extend(q, &x);
        keep(q, &x, *out);
    }
    OT_TRY(ot_group_chains(&view, &rules, q->s->a, q->s->s->d, &chains));
    for (uint32_t k = 0; k < chains.n; k++) keep(q, &chains.groups[k], *out);
    return OT_OK;
}
