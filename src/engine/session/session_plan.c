/* Where the values of a schedule lie: one arena, laid out by the buffer planner. The top
 * schedule's is the session's; a tile body's is part of its While step's scratch, one a worker.
 *
 *   step       0     1       2        3         arena
 *   a          |=====|                          [a      ]
 *   b          .     |=======|                  .       [b  ]
 *   c = view b .     .       |========|         .       [b  ]  the same bytes: b lives as long as c
 *   d          .     .       .        |=====    [d    ]
 *
 * Planned is what a step computes whose size is known, except graph outputs (the caller's, or
 * the heap's), what control flow makes (arrays of its bodies), constants and inputs; and the
 * scratch of fused steps. Positions are steps; a value read by the step that writes another
 * meets it, unless it is a fused step that may write in place. What implementations really make is
 * compared with this plan when it is made; see op_call.c.
 */
#include "engine/core/session.h"
#include "tiling/lower/lowering.h"

typedef struct plan_work {
    ot_schedule *p;
    uint32_t *item_of; /* [n_ids] the item whose memory a slot has, or OT_NONE */
} plan_work;

/* Is input k of the node missing, or known to be false? */
static bool is_off(const ot_graph *g, const ot_node *n, uint32_t k)
{
    if (k >= n->n_in || n->in[k] == OT_NONE) return true;
    const ot_value *v = &g->values[n->in[k]];
    return v->is_const && v->known && v->known_n == 1 && v->known[0] == 0;
}

static bool is_view(const ot_graph *g, const ot_node *n)
{
    return ot_op_is_view(n->op) && (n->op != OT_OP_Dropout || is_off(g, n, 2));
}

static ot_pack_item *new_item(plan_work *w, int64_t lower, int64_t upper, int64_t bytes)
{
    ot_pack_item *item = &w->p->items[w->p->n_items++];
    *item = (ot_pack_item){.lower = lower,
                           .upper = upper,
                           .size = bytes + (w->p->s->guards ? 2 * OT_GUARD : 0),
                           .alignment = OT_ARENA_ALIGN,
                           .fixed = -1,
                           .hint = -1};
    return item;
}

static void add_item(plan_work *w, ot_id id, ot_slot *slot, int64_t bytes)
{
    w->item_of[id] = w->p->n_items;
    new_item(w, slot->born, (int64_t)slot->last + 1, bytes);
    slot->place = OT_PLACE_ARENA;
}

/* Output `id` is another name of its input's memory, wherever that is. */
static void add_view(plan_work *w, ot_id id, ot_id in)
{
    ot_slot *slot = w->p->at[id];
    slot->place = OT_PLACE_VIEW;
    w->item_of[id] = w->item_of[in];
    if (w->item_of[in] == OT_NONE) return;
    ot_pack_item *item = &w->p->items[w->item_of[in]];
    item->upper = ot_max(item->upper, (int64_t)slot->last + 1);
}

/* May output 0 of a fused step take the place of input k: planned memory that nobody needs after
 * this step, of the same form? */
static bool takes_place(const plan_work *w, const ot_step *step, uint32_t at)
{
    if (step->in_place == OT_NONE || step->in_ids[step->in_place] == OT_NONE) return false;
    ot_id in = step->in_ids[step->in_place];
    const ot_slot *from = w->p->at[in], *to = step->out_slots[0];
    if (w->item_of[in] == OT_NONE || from->place != OT_PLACE_ARENA) return false;
    /* nor does it read the same memory under another name */
    for (uint32_t k = 0; k < step->n_in; k++) {
        ot_id other = step->in_ids[k];
        if (other != OT_NONE && other != in && w->item_of[other] == w->item_of[in]) return false;
    }
    return w->p->items[w->item_of[in]].upper == (int64_t)at + 1 &&
           !memcmp(from->fore.strides, to->fore.strides, to->fore.rank * sizeof *to->fore.strides);
}

/* Bytes of what the step's output k will be; false when that is not known. */
static bool size_of(const ot_schedule *p, const ot_step *step, uint32_t k, int64_t *bytes)
{
    ot_slot *slot = step->out_slots[k];
    ot_id id = step->out_ids[k];
    if (step->is_fused) return ot_nd_span(&slot->fore, bytes) && *bytes > 0;
    const ot_value *x = &p->g->values[id];
    if (!x->is_tensor || x->is_sequence || !ot_value_is_static(x) || x->rank > OT_RANK_MAX)
        return false;
    if (!ot_nd_bytes(x->dtype, (uint32_t)x->rank, x->dims, bytes) || *bytes == 0) return false;
    ot_nd_set_dense(&slot->want, x->dtype, (uint32_t)x->rank, x->dims);
    return true;
}

static void add_outputs(plan_work *w, const ot_step *step, uint32_t at)
{
    const ot_graph *g = w->p->g;
    int64_t bytes;
    if (step->n_bodies > 0 && !step->is_fused) return;
    for (uint32_t k = 0; k < step->n_out; k++) {
        ot_slot *slot = step->out_slots[k];
        if (!slot || slot->is_result || slot->is_const) continue;
        if (step->is_fused ? step->is_view
                           : k == 0 && is_view(g, step->node) && step->n_in > 0 &&
                                 step->in_ids[0] != OT_NONE) {
            add_view(w, step->out_ids[k], step->in_ids[0]);
            continue;
        }
        if (!size_of(w->p, step, k, &bytes)) continue;
        if (k == 0 && step->is_fused && takes_place(w, step, at)) {
            slot->under = w->p->at[step->in_ids[step->in_place]];
            add_view(w, step->out_ids[k], step->in_ids[step->in_place]);
            continue;
        }
        add_item(w, step->out_ids[k], slot, bytes);
    }
}

static ot_status pack(ot_schedule *p)
{
    ot_pack_problem problem = {p->items, p->n_items};
    ot_pack_options o = {
        .step_limit = ot_graph_arena_steps(p->n_items), .threads = 1, .rules = OT_PACK_RULES_ALL};
    ot_pack_result r;
    OT_TRY(ot_pack(&problem, &o, p->s->d, p->offsets, &r));
    OT_TRY(ot_pack_check(&problem, p->offsets, 0, NULL, p->s->d));
    p->arena_bytes = r.height;
    for (uint32_t k = 0; p->s->guards && k < p->n_items; k++) {
        p->offsets[k] += OT_GUARD;
        p->items[k].size -= 2 * OT_GUARD;
    }
    return OT_OK;
}

ot_status ot_schedule_plan(ot_schedule *p)
{
    plan_work w = {.p = p, .item_of = OT_NEW_N(p->s->a, uint32_t, p->n_ids + 1u)};
    p->items = OT_NEW_N(p->s->a, ot_pack_item, p->n_ids + p->n_steps + 1u);
    p->offsets = OT_NEW_N(p->s->a, int64_t, p->n_ids + p->n_steps + 1u);
    uint32_t *work = OT_NEW_N(p->s->a, uint32_t, p->n_steps + 1u); /* item of each step's scratch */
    if (!w.item_of || !p->items || !p->offsets || !work) return ot_fail_nomem(p->s->d);
    for (ot_id v = 0; v < p->n_ids; v++) w.item_of[v] = OT_NONE;
    for (uint32_t k = 0; k < p->n_steps; k++) {
        work[k] = p->n_items;
        if (p->steps[k].work > 0) new_item(&w, k, (int64_t)k + 1, p->steps[k].work);
        add_outputs(&w, &p->steps[k], k);
    }
    if (p->n_items == 0) return OT_OK;
    OT_TRY(pack(p));
    for (ot_id v = 0; v < p->n_ids; v++)
        if (w.item_of[v] != OT_NONE && p->at[v]->place == OT_PLACE_ARENA)
            p->at[v]->offset = p->offsets[w.item_of[v]];
    for (uint32_t k = 0; k < p->n_steps; k++)
        if (p->steps[k].work > 0) p->steps[k].work_at = p->offsets[work[k]];
    return OT_OK;
}
