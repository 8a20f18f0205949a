/* Writing steps whose operands are in a layout that their implementation takes.
 *
 *   value x  versions                       made by
 *            PLAIN       id = x             its unit, or a relayout
 *            BLOCK       id >= g->n_values  its unit (a convolution), or a relayout
 *            PLAIN_VIEW, BLOCK_VIEW         a window (Slice) of a version of another value; nothing
 *                                           is copied
 *
 * Versions are made right before the first step that needs them, and stay. A window is a step,
 * too, so that lifetimes and memory plan know of it.
 */
#include "units.h"

#include "engine/cpu/move/box.h"

/* ---- steps and versions ---- */

ot_status lw_push(lw_pass *l, const ot_node *node, ot_op_fn run, const void *plan, ot_id_list in,
                  ot_id_list out, ot_step **step)
{
    ot_step x = {.node = node,
                 .run = run,
                 .is_fused = true,
                 .plan = plan,
                 .n_in = in.n,
                 .n_out = out.n,
                 .in_place = OT_NONE,
                 .work_at = -1};
    x.in_ids = ot_memdup(l->a, in.at, in.n * sizeof *in.at);
    x.out_ids = ot_memdup(l->a, out.at, out.n * sizeof *out.at);
    x.in = OT_NEW_N(l->a, const ot_nd *, in.n + 1u);
    x.out = OT_NEW_N(l->a, ot_nd *, out.n + 1u);
    x.out_slots = OT_NEW_N(l->a, ot_slot *, out.n + 1u);
    if (!x.in_ids || !x.out_ids || !x.in || !x.out || !x.out_slots ||
        !OT_PUSH(l->scratch, l->steps, l->n_steps, l->cap_steps, x))
        return ot_fail_nomem(l->p->s->d);
    for (uint32_t k = 0; k < in.n; k++) {
        if (in.at[k] == OT_NONE) continue;
        x.in[k] = &l->ids[in.at[k]]->nd;
    }
    for (uint32_t k = 0; k < out.n; k++) {
        if (out.at[k] == OT_NONE) continue;
        x.out_slots[k] = l->ids[out.at[k]];
        x.out[k] = &x.out_slots[k]->nd;
    }
    if (step) *step = &l->steps[l->n_steps - 1];
    return OT_OK;
}

ot_status lw_make(lw_pass *l, ot_id v, lw_layout layout, ot_id *id)
{
    lw_value *w = &l->v[v];
    const ot_nd *plain = &w->slot->fore;
    *id = v;
    if (layout != LW_PLAIN) {
        ot_slot *slot = OT_NEW(l->a, ot_slot);
        *id = (ot_id)l->n_ids;
        if (!slot || !OT_PUSH(l->scratch, l->ids, l->n_ids, l->cap_ids, slot))
            return ot_fail_nomem(l->p->s->d);
        if (layout == LW_BLOCK || layout == LW_BLOCK_VIEW)
            ot_nd_set_blocked(&slot->fore, plain->dtype, plain->rank, plain->dims, l->block);
        else
            ot_nd_set_dense(&slot->fore, plain->dtype, plain->rank, plain->dims);
    }
    w->version[layout] = *id;
    return OT_OK;
}

/* ---- relayout ---- */

static ot_status run_relayout(ot_call *c)
{
    OT_TRY(ot_call_place(c, 0));
    ot_box_relayout(c->out[0], c->in[0], c->threads);
    return OT_OK;
}

/* ---- windows ---- */

/* A window of an array: offset in elements, then the array's own strides. */
typedef struct window_setup {
    int64_t offset;
    bool dense; /* no holes: strides as if it were whole */
} window_setup;

static ot_status run_window(ot_call *c)
{
    const window_setup *plan = c->plan;
    ot_slot *slot = c->frame->step->out_slots[0];
    slot->nd = slot->fore;
    if (!plan->dense) memcpy(slot->nd.strides, c->in[0]->strides, sizeof slot->nd.strides);
    slot->nd.data = (char *)c->in[0]->data +
                    plan->offset * (int64_t)ot_dtype_bytes(slot->fore.dtype);
    slot->handed = true;
    return OT_OK;
}

/* Can the window be taken of the blocked source: whole blocks of channels? */
static bool blocks_whole(const lw_pass *l, const lw_value *w)
{
    const ot_nd *to = &w->slot->fore, *from = &l->v[w->of].slot->fore;
    int64_t b = l->block;
    if (to->rank < 2 || w->start[1] % b != 0) return false;
    return to->dims[1] % b == 0 || (w->start[1] + to->dims[1] == from->dims[1]);
}

static bool window_has(const lw_pass *l, const lw_value *w, lw_layout layout)
{
    if (w->of == OT_NONE) return false;
    if (layout == LW_PLAIN_VIEW) return lw_has(l, w->of, LW_ANY_PLAIN);
    return layout == LW_BLOCK_VIEW && lw_has(l, w->of, LW_ANY_BLOCK) && blocks_whole(l, w);
}

bool lw_has(const lw_pass *l, ot_id v, unsigned layouts)
{
    const lw_value *w = &l->v[v];
    for (uint32_t k = 0; k < LW_LAYOUTS; k++)
        if ((layouts & LW_BIT(k)) && (w->version[k] != OT_NONE || window_has(l, w, (lw_layout)k)))
            return true;
    return false;
}

bool lw_stays_dense(const ot_nd *window, const ot_nd *source)
{
    ot_nd a = *window;
    memcpy(a.strides, source->strides, sizeof a.strides);
    return ot_nd_is_dense(&a);
}

/* The source's version of which the window is taken; made if it is a window itself. */
static ot_status take_window(lw_pass *l, ot_id v, lw_layout layout, ot_id *id)
{
    const lw_value *w = &l->v[v];
    bool blocked = layout == LW_BLOCK_VIEW;
    ot_id from, ins[1], outs[1];
    ot_step *step = NULL;
    OT_TRY(lw_need(l, w->of, blocked ? LW_ANY_BLOCK : LW_ANY_PLAIN, blocked ? LW_BLOCK : LW_PLAIN,
                   &from));
    bool dense = !blocked && !w->slot->is_result &&
                 lw_stays_dense(&w->slot->fore, &l->ids[from]->fore);
    OT_TRY(lw_make(l, v, dense ? LW_PLAIN : layout, id));
    window_setup *plan = OT_NEW(l->a, window_setup);
    if (!plan) return ot_fail_nomem(l->p->s->d);
    const ot_nd *src = &l->ids[from]->fore;
    ot_nd *to = &l->ids[*id]->fore;
    plan->dense = *id == v;
    if (!plan->dense) memcpy(to->strides, src->strides, sizeof to->strides);
    for (uint32_t k = 0; k < to->rank; k++)
        plan->offset += (blocked && k == 1 ? w->start[k] / l->block : w->start[k]) *
                        src->strides[k];
    ins[0] = from;
    outs[0] = *id;
    OT_TRY(lw_push(l, l->units[w->maker].nodes[0], run_window, plan, (ot_id_list){ins, 1},
                   (ot_id_list){outs, 1}, &step));
    step->is_view = true;
    return OT_OK;
}

/* ---- needs ---- */

ot_status lw_need(lw_pass *l, ot_id v, unsigned accept, lw_layout otherwise, ot_id *id)
{
    lw_value *w = &l->v[v];
    for (uint32_t k = 0; k < LW_LAYOUTS; k++) {
        *id = w->version[k];
        if ((accept & LW_BIT(k)) && *id != OT_NONE) return OT_OK;
    }
    for (uint32_t k = 0; k < LW_LAYOUTS; k++)
        if ((accept & LW_BIT(k)) && window_has(l, w, (lw_layout)k))
            return take_window(l, v, (lw_layout)k, id);
    ot_id from = OT_NONE;
    for (uint32_t k = 0; k < LW_LAYOUTS && from == OT_NONE; k++) from = w->version[k];
    if (from == OT_NONE) {
        if (w->of == OT_NONE) OT_BUG("a unit reads what nobody made");
        bool blocked = window_has(l, w, LW_BLOCK_VIEW);
        OT_TRY(take_window(l, v, blocked ? LW_BLOCK_VIEW : LW_PLAIN_VIEW, &from));
        if ((accept & LW_BIT(LW_PLAIN)) && from == w->version[LW_PLAIN]) { /* it had no holes */
            *id = from;
            return OT_OK;
        }
    }
    OT_TRY(lw_make(l, v, otherwise, id));
    const ot_node *node = w->maker == OT_NONE ? l->p->steps[0].node : l->units[w->maker].nodes[0];
    return lw_push(l, node, run_relayout, NULL, (ot_id_list){&from, 1}, (ot_id_list){id, 1}, NULL);
}
