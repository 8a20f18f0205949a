/* Questions of the passes that find units, asked by more than one of them: see fuse_find.h. */
#include "fuse_find.h"

const ot_nd *lw_shape(const lw_pass *l, ot_id v)
{
    return v != OT_NONE && l->v[v].is_static ? &l->v[v].slot->fore : NULL;
}

const ot_nd *lw_constant(const ot_schedule *p, ot_id v)
{
    const ot_slot *slot = v == OT_NONE ? NULL : p->at[v];
    return slot && slot->is_const && slot->nd.data ? &slot->nd : NULL;
}

bool lw_source_of(const lw_pass *l, ot_id v, lw_source *s)
{
    const lw_value *w = &l->v[v];
    if (w->maker != OT_NONE) {
        const lw_unit *u = &l->units[w->maker];
        *s = (lw_source){l->p, u->nodes[0], true};
        return u->kind == LW_NODE;
    }
    const ot_schedule *p = l->p;
    const ot_value *x = &p->g->values[v];
    while (x->is_outer && p->outer) {
        p = p->outer;
        ot_id at = ot_value_find(p->g, x->name);
        if (at != OT_NONE) x = &p->g->values[at];
    }
    if (!w->slot->is_const || x->is_outer || x->producer == OT_NONE) return false;
    *s = (lw_source){p, &p->g->nodes[x->producer], false};
    return true;
}

ot_status lw_apply(lw_pass *l, const lw_rewrite *r, lw_unit **unit)
{
    ot_step *step = OT_NEW(l->a, ot_step);
    const ot_nd **in = OT_NEW_N(l->a, const ot_nd *, r->n_in);
    ot_nd **out = OT_NEW(l->a, ot_nd *);
    ot_slot **slots = OT_NEW(l->a, ot_slot *);
    if (!step || !in || !out || !slots) return ot_fail_nomem(l->p->s->d);
    *step = *l->units[r->like].step;
    OT_TRY(lw_merge(l, r->parts, r->n_parts, LW_NODE, (ot_id_list){r->in, r->n_in},
                    (ot_id_list){&r->out, 1}, NULL));
    lw_unit *u = &l->units[l->v[r->out].maker];
    for (uint32_t k = 0; k < r->n_in; k++)
        in[k] = r->in[k] == OT_NONE ? NULL : &l->p->at[r->in[k]]->nd;
    slots[0] = l->p->at[r->out];
    out[0] = &slots[0]->nd;
    if (r->run) step->run = r->run;
    step->plan = r->plan;
    step->in = in;
    step->n_in = r->n_in;
    step->in_ids = u->in;
    step->out = out;
    step->out_ids = u->out;
    step->out_slots = slots;
    step->n_out = 1;
    u->step = step;
    if (unit) *unit = u;
    return OT_OK;
}
