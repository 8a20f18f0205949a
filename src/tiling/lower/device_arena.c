/* Lifetimes on a device to items of the packing problem, and those to offsets. */
#include "device_arena.h"

#include "lowering.h"

#include "ops/ops.h"
#include "pack/pack.h"

#define ALIGN 256 /* of values: rows of vectors and cache lines begin with them */

static int64_t aligned(int64_t bytes) { return ot_ceil_div(bytes, ALIGN) * ALIGN; }

void ot_device_touch(ot_device_memory *m, uint32_t unit)
{
    if (m->first == OT_NONE || unit < m->first) m->first = unit;
    if (m->last == OT_NONE || unit > m->last) m->last = unit;
}

ot_status ot_device_arena_add(ot_device_arena *x, ot_arena *a, ot_device_memory *m)
{
    if (m->listed || m->first == OT_NONE) return OT_OK;
    m->listed = true;
    ot_device_item item = {m, NULL, m->first, m->last, aligned(m->bytes)};
    if (m->twice) { /* it moves while all units of the next iteration run */
        m->turn = item.bytes;
        item = (ot_device_item){m, NULL, 0, x->n_units - 1, 2 * m->turn};
    }
    return OT_PUSH(a, x->items, x->n, x->cap, item) ? OT_OK : OT_E_NOMEM;
}

ot_status ot_device_arena_add_body(ot_device_arena *x, ot_arena *a, ot_device_arena *body,
                                   uint32_t unit)
{
    const ot_device_item item = {NULL, body, unit, unit, 0};
    if (body->n == 0) return OT_OK;
    return OT_PUSH(a, x->items, x->n, x->cap, item) ? OT_OK : OT_E_NOMEM;
}

static ot_pack_item *problem_of(const ot_device_arena *x, ot_arena *a)
{
    ot_pack_item *items = OT_NEW_N(a, ot_pack_item, x->n + 1);
    for (size_t k = 0; items && k < x->n; k++)
        items[k] = (ot_pack_item){.lower = x->items[k].first,
                                  .upper = (int64_t)x->items[k].last + 1,
                                  .size = x->items[k].bytes,
                                  .alignment = ALIGN,
                                  .fixed = -1,
                                  .hint = -1};
    return items;
}

ot_status ot_device_arena_measure(ot_device_arena *x, ot_arena *a)
{
    x->live = 0;
    for (size_t k = 0; k < x->n; k++)
        if (x->items[k].body) x->items[k].bytes = x->items[k].body->live;
    const ot_pack_problem problem = {problem_of(x, a), (uint32_t)x->n};
    if (!problem.items) return OT_E_NOMEM;
    return x->n ? ot_pack_find_bound(&problem, &x->live) : OT_OK;
}

ot_status ot_device_arena_place(ot_device_arena *x, ot_arena *a, ot_diag *d)
{
    const ot_pack_options o = {.step_limit = ot_graph_arena_steps((uint32_t)x->n),
                               .threads = 1,
                               .rules = OT_PACK_RULES_ALL};
    ot_pack_result r;
    x->height = 0;
    if (x->n == 0) return OT_OK;
    for (size_t k = 0; k < x->n; k++)
        if (x->items[k].body) x->items[k].bytes = x->items[k].body->height;
    const ot_pack_problem problem = {problem_of(x, a), (uint32_t)x->n};
    int64_t *offsets = OT_NEW_N(a, int64_t, x->n + 1);
    if (!problem.items || !offsets) return ot_fail_nomem(d);
    OT_TRY(ot_pack(&problem, &o, d, offsets, &r));
    OT_TRY(ot_pack_check(&problem, offsets, 0, NULL, d));
    for (size_t k = 0; k < x->n; k++)
        *(x->items[k].body ? &x->items[k].body->base : &x->items[k].memory->offset) = offsets[k];
    x->height = r.height;
    return OT_OK;
}

/* ---- parts of something else ---- */

bool ot_device_looks(const ot_node *n)
{
    return ot_op_is_view(n->op) || n->op == OT_OP_Slice || n->op == OT_OP_Split ||
           n->op == OT_OP_Expand;
}

bool ot_device_makes_in_place(const ot_node_list *l, uint32_t place)
{
    const ot_node *n = l->node[place];
    if (!n || !ot_is_tile_op(n, "Deslice") || n->n_in < 2) return false;
    const ot_id tile = n->in[0], buffer = n->in[1];
    if (tile == OT_NONE || buffer == OT_NONE || ot_list_only_reader(l, tile) != place ||
        ot_list_only_reader(l, buffer) != place || !l->g->values[buffer].is_input ||
        l->maker[tile] == OT_NONE)
        return false;
    const ot_node *by = l->node[l->maker[tile]];
    return by->op != OT_OP_OPAQUE && !ot_device_looks(by);
}
