/* Where the values of the top graph lie: one arena, laid out by the buffer planner.
 *
 *   step       0     1       2        3                  arena
 *   a          |=====|                                   [a       ]
 *   b          .     |=======|                           .        [b   ]
 *   c = view b .     .       |========|                  .        [b   ]   the same bytes: b lives as long as c
 *   d          .     .       .        |=====             [d     ]
 *
 * Planned is what a step computes whose size is known, except graph outputs (the caller's, or the heap's), what control flow
 * makes (arrays of its bodies), constants and inputs. Positions are steps; a value read by the step that writes another
 * meets it. What kernels really make is compared with this plan when it is made; see call.c.
 */
#include "session.h"

#define STEPS      20000 /* of the search, for graphs of up to FEW values; fewer for more */
#define STEPS_MIN  1000
#define VALUES_FEW 200

typedef struct plan_work {
    ot_session *s;
    uint32_t *item_of; /* [g n_values] the item whose memory a slot has, or OT_NONE */
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
    switch ((int)n->op) {
    case OT_OP_Reshape: case OT_OP_Flatten: case OT_OP_Squeeze: case OT_OP_Unsqueeze: case OT_OP_Identity: return true;
    case OT_OP_Dropout: return is_off(g, n, 2);
    default: return false;
    }
}

static ot_status add_item(plan_work *w, ot_id v, int64_t bytes)
{
    ot_session *s = w->s;
    const ot_value *x = &s->top->g->values[v];
    ot_slot *slot = &s->top->slots[v];
    w->item_of[v] = s->n_items;
    s->items[s->n_items++] = (ot_pack_item){.lower = slot->born, .upper = (int64_t)slot->last + 1, .size = bytes,
                                            .alignment = OT_ARENA_ALIGN, .fixed = -1, .hint = -1};
    slot->place = OT_PLACE_ARENA;
    ot_nd_set_dense(&slot->want, x->dtype, (uint32_t)x->rank, x->dims);
    return OT_OK;
}

/* Output v of a view is another name of its input's memory, wherever that is. */
static void add_view(plan_work *w, ot_id v, ot_id in)
{
    ot_slot *slot = &w->s->top->slots[v];
    slot->place = OT_PLACE_VIEW;
    w->item_of[v] = w->item_of[in];
    if (w->item_of[in] == OT_NONE) return;
    ot_pack_item *item = &w->s->items[w->item_of[in]];
    item->upper = ot_max(item->upper, (int64_t)slot->last + 1);
}

static ot_status add_outputs(plan_work *w, const ot_step *step)
{
    const ot_graph *g = w->s->top->g;
    const ot_node *n = step->node;
    if (step->n_bodies > 0) return OT_OK;
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_slot *slot = step->out_slots[k];
        const ot_value *x = slot ? &g->values[n->out[k]] : NULL;
        int64_t bytes;
        if (!slot || slot->is_result || slot->is_const || !x->is_tensor || x->is_sequence) continue;
        if (k == 0 && is_view(g, n) && n->n_in > 0 && n->in[0] != OT_NONE) {
            add_view(w, n->out[k], n->in[0]);
            continue;
        }
        if (!ot_value_is_static(x) || x->rank > OT_RANK_MAX || !ot_nd_bytes(x->dtype, (uint32_t)x->rank, x->dims, &bytes) ||
            bytes == 0)
            continue;
        OT_TRY(add_item(w, n->out[k], bytes));
    }
    return OT_OK;
}

static ot_status pack(ot_session *s)
{
    ot_pack_problem problem = {s->items, s->n_items};
    ot_pack_options o = {.step_limit = STEPS, .threads = 1, .rules = OT_PACK_RULES_ALL};
    ot_pack_result r;
    if (s->n_items > VALUES_FEW) o.step_limit = ot_max(STEPS_MIN, (int64_t)STEPS * VALUES_FEW / s->n_items);
    OT_TRY(ot_pack(&problem, &o, s->d, s->offsets, &r));
    OT_TRY(ot_pack_check(&problem, s->offsets, 0, NULL, s->d));
    s->arena_bytes = r.height;
    s->arena = ot_block_new(NULL, (size_t)r.height);
    return s->arena ? OT_OK : ot_fail_nomem(s->d);
}

ot_status ot_session_plan(ot_session *s)
{
    const ot_graph *g = s->top->g;
    plan_work w = {.s = s, .item_of = OT_NEW_N(s->a, uint32_t, g->n_values + 1u)};
    s->items = OT_NEW_N(s->a, ot_pack_item, g->n_values + 1u);
    s->offsets = OT_NEW_N(s->a, int64_t, g->n_values + 1u);
    if (!w.item_of || !s->items || !s->offsets) return ot_fail_nomem(s->d);
    for (ot_id v = 0; v < g->n_values; v++) w.item_of[v] = OT_NONE;
    for (uint32_t k = 0; k < s->top->n_steps; k++) OT_TRY(add_outputs(&w, &s->top->steps[k]));
    if (s->n_items == 0) return OT_OK;
    OT_TRY(pack(s));
    for (ot_id v = 0; v < g->n_values; v++)
        if (s->top->slots[v].place == OT_PLACE_ARENA) s->top->slots[v].offset = s->offsets[w.item_of[v]];
    return OT_OK;
}
