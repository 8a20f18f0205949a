/* Resize and Upsample of arrays of real numbers by factors known when the session is made:
 * tables once, then loops on whatever layout the input is in.
 *
 *   blocked  [n, c / b, h, w, b]  --> the same, of the output's h and w: channels of a block move
 *            together
 *   plain    [n, c, h, w]         --> plain
 *
 *
 *   [16 bits] --Cast--> float32 --nearest--> float32 --Cast--> [16 bits]  picks elements of 16
 *                                                                         bits: nothing is
 *                                                                         converted
 *
 * Windows of either kind are read in place. What changes batch or channels stays a node, and so
 * does what extrapolates: it would fill the channels that pad a block.
 */
#include "engine/cpu/move/fast_resize.h"
#include "lower.h"

#define INPUTS 4 /* x, roi, scales, sizes */

/* The tables of unit u in *out; NULL: it stays a node. */
static ot_status fit(lw_pass *l, const lw_unit *u, const ot_resize **out)
{
    const ot_node *n = u->nodes[0];
    const ot_nd *in[INPUTS] = {NULL};
    *out = NULL;
    if (u->kind != LW_NODE || (n->op != OT_OP_Resize && n->op != OT_OP_Upsample)) return OT_OK;
    if (u->n_in < 1 || u->n_in > INPUTS || !lw_is_real(l, u->in[0]) || !lw_is_real(l, u->out[0]))
        return OT_OK;
    const ot_nd *x = &l->v[u->in[0]].slot->fore, *y = &l->v[u->out[0]].slot->fore;
    if (x->dtype != y->dtype) return OT_OK;
    for (uint32_t k = 1; k < u->n_in; k++) {
        if (u->in[k] == OT_NONE) continue;
        const ot_slot *slot = l->v[u->in[k]].slot;
        if (!slot->is_const || !slot->nd.data) return OT_OK;
        in[k] = &slot->nd;
    }
    const ot_resize *r;
    if (ot_resize_new(l->a, n, x, in, u->n_in, &r) != OT_OK) return ot_fail_nomem(l->p->s->d);
    if (!r || !ot_resize_blocked_ok(r, x->dtype) || y->rank != r->rank) return OT_OK;
    for (uint32_t k = 0; k < r->rank; k++)
        if (y->dims[k] != r->axes[k].out || r->axes[k].outside) return OT_OK;
    *out = r;
    return OT_OK;
}

/* A Cast from or to numbers of 16 bits. */
static bool is_cast(const lw_pass *l, uint32_t at)
{
    const lw_unit *u = at == OT_NONE ? NULL : &l->units[at];
    return u && u->kind == LW_NODE && u->nodes[0]->op == OT_OP_Cast && lw_is_real(l, u->in[0]) &&
           lw_is_real(l, u->out[0]);
}

/* Takes in the Casts around unit `at`, which picks elements, when they only undo each other. */
static ot_status drop_casts(lw_pass *l, uint32_t at)
{
    lw_unit *u = &l->units[at];
    uint32_t before = l->v[u->in[0]].maker, behind = lw_only_reader(l, u->out[0]), parts[3], n = 0;
    if (!is_cast(l, before) || !is_cast(l, behind)) return OT_OK;
    ot_id in = l->units[before].in[0], out = l->units[behind].out[0];
    ot_dtype type = l->v[in].slot->fore.dtype;
    if (!ot_dtype_is_half(type) || l->v[out].slot->fore.dtype != type ||
        l->v[u->in[0]].slot->fore.dtype != OT_F32)
        return OT_OK;
    if (lw_only_reader(l, u->in[0]) == at) parts[n++] = before;
    parts[n++] = at;
    parts[n++] = behind;
    OT_TRY(lw_merge(l, parts, n, LW_RESIZE, (ot_id_list){&in, 1}, (ot_id_list){&out, 1}, u->plan));
    return lw_find_readers(l);
}

ot_status lw_fuse_resize(lw_pass *l)
{
    for (uint32_t u = 0; u < l->n_units; u++) {
        const ot_resize *r;
        OT_TRY(fit(l, &l->units[u], &r));
        if (!r) continue;
        l->units[u].kind = LW_RESIZE;
        l->units[u].plan = ot_memdup(l->a, r, sizeof *r);
        if (!l->units[u].plan) return ot_fail_nomem(l->p->s->d);
        if (r->mode == OT_RESIZE_NEAREST) OT_TRY(drop_casts(l, u));
    }
    return OT_OK;
}

static ot_status run_resize(ot_call *c)
{
    OT_TRY(ot_call_place(c, 0));
    ot_resize_run(c->plan, c->out[0], c->in[0], c->work, c->threads);
    return OT_OK;
}

ot_status lw_write_resize(lw_pass *l, lw_unit *u)
{
    bool blocked = lw_has(l, u->in[0], LW_ANY_BLOCK);
    lw_layout layout = blocked ? LW_BLOCK : LW_PLAIN;
    ot_id in, out;
    ot_step *step = NULL;
    OT_TRY(lw_need(l, u->in[0], blocked ? LW_ANY_BLOCK : LW_ANY_PLAIN, layout, &in));
    OT_TRY(lw_make(l, u->out[0], layout, &out));
    OT_TRY(lw_push(l, u->nodes[0], run_resize, u->plan, (ot_id_list){&in, 1}, (ot_id_list){&out, 1},
                   &step));
    step->work = ot_resize_scratch(u->plan, l->v[u->in[0]].slot->fore.dtype, blocked ? l->block : 0,
                                   l->p->threads);
    return OT_OK;
}
