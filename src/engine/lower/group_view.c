/* The units of a schedule as the recogniser of groups sees them (fusion/fusion.h): a place is the
 * number of a unit. */
#include "fuse_find.h"

static const ot_node *node_at(const void *of, uint32_t place)
{
    const lw_pass *l = of;
    const lw_unit *u = &l->units[place];
    bool as_it_was = u->kind == LW_NODE && u->n_nodes == 1 && u->step->n_bodies == 0 &&
                     !u->step->plan;
    return as_it_was ? u->nodes[0] : NULL;
}

static const ot_id *operands(const void *of, uint32_t place, uint32_t *n)
{
    const lw_pass *l = of;
    *n = l->units[place].n_in;
    return l->units[place].in;
}

static const uint32_t *readers(const void *of, ot_id v, uint32_t *n)
{
    const lw_pass *l = of;
    *n = l->v[v].n_readers;
    return l->readers + l->v[v].first;
}

static uint32_t maker(const void *of, ot_id v) { return ((const lw_pass *)of)->v[v].maker; }

static bool origin(const void *of, ot_id v, ot_group_origin *o)
{
    lw_source s;
    if (!lw_source_of(of, v, &s) || s.is_unit) return false;
    *o = (ot_group_origin){s.p->g, s.node, OT_NONE};
    return true;
}

static bool is_kept(const void *of, ot_id v) { return ((const lw_pass *)of)->v[v].is_kept; }
static bool is_const(const void *of, ot_id v) { return ((const lw_pass *)of)->v[v].slot->is_const; }

static bool shape(const void *of, ot_id v, ot_group_shape *s)
{
    const lw_value *x = &((const lw_pass *)of)->v[v];
    if (!x->is_static || x->slot->absent) return false;
    /* what the file alone says of a part of a group is compared with nothing */
    if (x->maker != OT_NONE && !x->x->is_inferred && node_at(of, x->maker)) {
        if (ot_shape_has_rule(node_at(of, x->maker))) return false;
    }
    *s = (ot_group_shape){x->slot->fore.dtype, x->slot->fore.rank, x->slot->fore.dims};
    return true;
}

static bool has_more_outputs(const void *of, uint32_t place)
{
    const lw_unit *u = &((const lw_pass *)of)->units[place];
    for (uint32_t k = 1; k < u->n_out; k++)
        if (u->step->out_slots[k]) return true;
    return false;
}

ot_group_view lw_group_view(const lw_pass *l)
{
    return (ot_group_view){l,     l->p->g, l->n_units, node_at,  operands, readers,
                           maker, origin,  is_kept,    is_const, shape,    has_more_outputs};
}
