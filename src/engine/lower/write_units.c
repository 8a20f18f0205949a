/* Writing all units as steps, in order: each kind by what stands with its implementations, a node
 * as it was. */
#include "fuse_find.h"

#include "base/watch.h"
#include "engine/cpu/conv/conv.h"

ot_status lw_finish(lw_pass *l, ot_id v)
{
    ot_id id;
    if (v == OT_NONE || !l->v[v].is_kept) return OT_OK;
    return lw_need(l, v, LW_BIT(LW_PLAIN), LW_PLAIN, &id);
}

/* float32 products take matrices with any distance between rows; of other types they are the
 * reference's, which reads dense arrays only. */
static bool takes_windows(const lw_pass *l, const lw_unit *u)
{
    if (u->nodes[0]->op != OT_OP_MatMul || u->step->plan || l->p->s->reference || u->n_in < 2)
        return false;
    for (uint32_t k = 0; k < 2; k++)
        if (u->in[k] == OT_NONE || !lw_is_f32(l, u->in[k])) return false;
    return true;
}

/* A node as it was, on dense plain arrays. */
static ot_status write_node(lw_pass *l, const lw_unit *u)
{
    ot_step step = *u->step;
    ot_id *in = ot_memdup(l->a, u->in, u->n_in * sizeof *in);
    if (!in) return ot_fail_nomem(l->p->s->d);
    unsigned accept = takes_windows(l, u) ? LW_ANY_PLAIN : LW_BIT(LW_PLAIN);
    for (uint32_t k = 0; k < u->n_in; k++) {
        if (in[k] == OT_NONE || !step.in[k]) continue;
        OT_TRY(lw_need(l, in[k], k < 2 ? accept : LW_BIT(LW_PLAIN), LW_PLAIN, &in[k]));
        step.in[k] = &l->ids[in[k]]->nd;
    }
    for (uint32_t k = 0; k < u->n_out; k++)
        if (step.out_slots[k]) l->v[u->out[k]].version[LW_PLAIN] = u->out[k];
    step.in_ids = in;
    return OT_PUSH(l->scratch, l->steps, l->n_steps, l->cap_steps, step)
               ? OT_OK
               : ot_fail_nomem(l->p->s->d);
}

static ot_status write_unit(lw_pass *l, lw_unit *u)
{
    switch (u->kind) {
    case LW_NODE: return write_node(l, u);
    case LW_CONV: return lw_write_conv(l, u);
    case LW_DECONV: return lw_write_deconv(l, u);
    case LW_QCONV: return lw_write_qconv(l, u);
    case LW_POOL: return lw_write_pool(l, u);
    case LW_RESIZE: return lw_write_resize(l, u);
    case LW_ATTENTION: return lw_write_attention(l, u);
    case LW_CHAIN: return lw_write_chain(l, u);
    case LW_CONCAT: return lw_write_concat(l, u);
    case LW_TILES: return lw_write_tiles(l, u);
    case LW_TILE_IN: return lw_write_tile_in(l, u);
    case LW_TILE_OUT: return lw_write_tile_out(l, u);
    case LW_WINDOW:
    case LW_GONE: break;
    }
    return OT_OK;
}

/* As the recogniser of groups calls it; NULL: a node as it was, or what is no group of nodes. */
static const char *group_name(const lw_pass *l, const lw_unit *u)
{
    switch (u->kind) {
    case LW_NODE:
        if (u->n_nodes == 1 && !u->step->plan) return NULL;
        return lw_is_byte(l->v[u->in[0]].slot->fore.dtype) ? "bytes" : "product";
    case LW_CONV:
    case LW_DECONV: return "convolution";
    case LW_CHAIN: return "chain";
    case LW_ATTENTION: return "attention";
    case LW_QCONV: return "bytes";
    default: return NULL;
    }
}

/* Which nodes became one. */
static ot_status note_merged(lw_pass *l)
{
    ot_schedule *p = l->p;
    p->merged = OT_NEW_N(l->a, ot_merged, l->n_units + 1u);
    if (!p->merged) return ot_fail_nomem(p->s->d);
    p->n_merged = 0;
    for (uint32_t u = 0; u < l->n_units; u++) {
        const lw_unit *x = &l->units[u];
        const char *name = group_name(l, x);
        /* nodes of others are the session's (lw_merge) */
        if (!name || (x->n_nodes < 2 && strcmp(name, "bytes"))) continue;
        p->merged[p->n_merged++] = (ot_merged){name, x->nodes, x->n_nodes};
    }
    return OT_OK;
}

ot_status lw_write(lw_pass *l)
{
    OT_TRY(note_merged(l));
    for (uint32_t u = 0; u < l->n_units; u++) {
        lw_unit *unit = &l->units[u];
        OT_TRY(ot_watch_look(l->p->s->d));
        OT_TRY(write_unit(l, unit));
        for (uint32_t k = 0; unit->kind != LW_GONE && k < unit->n_out; k++)
            if (unit->kind != LW_NODE || unit->step->out_slots[k])
                OT_TRY(lw_finish(l, unit->out[k]));
    }
    return OT_OK;
}
