/* Lifetimes on a device to items of the packing problem, and those to offsets in blocks. */
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

static ot_pack_item item_of(const ot_device_item *x, int64_t bytes)
{
    return (ot_pack_item){.lower = x->first,
                          .upper = (int64_t)x->last + 1,
                          .size = bytes,
                          .alignment = ALIGN,
                          .fixed = -1,
                          .hint = -1};
}

ot_status ot_device_arena_measure(ot_device_arena *x, ot_arena *a)
{
    ot_pack_item *items = OT_NEW_N(a, ot_pack_item, x->n + 1);
    const ot_pack_problem problem = {items, (uint32_t)x->n};
    x->live = 0;
    if (!items) return OT_E_NOMEM;
    for (size_t k = 0; k < x->n; k++) {
        if (x->items[k].body) x->items[k].bytes = x->items[k].body->live;
        items[k] = item_of(&x->items[k], x->items[k].bytes);
    }
    return x->n ? ot_pack_find_bound(&problem, &x->live) : OT_OK;
}

/* ---- blocks ---- */

/* What is placed: values, and each block of a body for itself; behind them what stands between
 * blocks. */
typedef struct placing {
    ot_device_arena *x;
    ot_pack_item *items; /* [n_items + blocks between which something stands] */
    uint32_t n_items;
    int64_t *offsets; /* of items */
    int64_t stride;   /* bytes from the begin of a block to that of the next; 0: there is one */
} placing;

static ot_status list_items(placing *w, ot_arena *a)
{
    ot_device_arena *x = w->x;
    size_t n = x->n;
    for (size_t k = 0; k < x->n; k++)
        if (x->items[k].body) n += x->items[k].body->n_blocks;
    /* as many blocks as items are enough */
    w->items = OT_NEW_N(a, ot_pack_item, 2 * n + 1);
    w->offsets = OT_NEW_N(a, int64_t, 2 * n + 1);
    if (!w->items || !w->offsets) return OT_E_NOMEM;
    for (size_t k = 0; k < x->n; k++) {
        const ot_device_arena *body = x->items[k].body;
        if (!body) w->items[w->n_items++] = item_of(&x->items[k], x->items[k].bytes);
        for (uint32_t b = 0; body && b < body->n_blocks; b++)
            w->items[w->n_items++] = item_of(&x->items[k], body->blocks[b].bytes);
    }
    return OT_OK;
}

/* All in n blocks of `stride` bytes, the last ALIGN of which nobody may use; *last: bytes of the
 * last block. */
static ot_status pack_in(placing *w, uint32_t n, ot_diag *d, int64_t *last)
{
    const ot_pack_options o = {
        .step_limit = ot_graph_arena_steps(w->n_items), .threads = 1, .rules = OT_PACK_RULES_ALL};
    ot_pack_result r;
    for (uint32_t k = 0; k + 1 < n; k++)
        w->items[w->n_items + k] = (ot_pack_item){.upper = w->x->n_units,
                                                  .size = ALIGN,
                                                  .alignment = ALIGN,
                                                  .fixed = (k + 1) * w->stride - ALIGN,
                                                  .hint = -1};
    const ot_pack_problem problem = {w->items, w->n_items + n - 1};
    OT_TRY(ot_pack(&problem, &o, d, w->offsets, &r));
    OT_TRY(ot_pack_check(&problem, w->offsets, 0, NULL, d));
    *last = r.height - (n - 1) * w->stride;
    return OT_OK;
}

static void put(const placing *w, uint32_t item, uint32_t *block, int64_t *offset)
{
    const int64_t at = w->offsets[item];
    *block = w->stride > 0 ? (uint32_t)(at / w->stride) : 0;
    *offset = at - *block * w->stride;
    int64_t *bytes = &w->x->blocks[*block].bytes;
    *bytes = ot_max(*bytes, *offset + w->items[item].size);
}

/* The blocks as they are filled, the items in them. */
static ot_status take_blocks(const placing *w, uint32_t n, ot_arena *a)
{
    ot_device_arena *x = w->x;
    uint32_t item = 0;
    x->blocks = OT_NEW_N(a, ot_device_block, n);
    x->n_blocks = n;
    if (!x->blocks) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) x->blocks[k].block = k;
    for (size_t k = 0; k < x->n; k++) {
        ot_device_memory *m = x->items[k].memory;
        ot_device_arena *body = x->items[k].body;
        if (m) put(w, item++, &m->block, &m->offset);
        for (uint32_t b = 0; body && b < body->n_blocks; b++)
            put(w, item++, &body->blocks[b].block, &body->blocks[b].base);
    }
    for (uint32_t k = 0; k < n; k++) x->height += x->blocks[k].bytes;
    return OT_OK;
}

ot_status ot_device_arena_place(ot_device_arena *x, int64_t most, ot_arena *a, ot_diag *d)
{
    placing w = {.x = x};
    uint32_t n = 1;
    int64_t last;
    x->height = 0;
    x->n_blocks = 0;
    if (list_items(&w, a) != OT_OK) return ot_fail_nomem(d);
    if (w.n_items == 0) return OT_OK;
    most = most > 0 ? most / ALIGN * ALIGN : INT64_MAX;
    OT_TRY(pack_in(&w, n, d, &last));
    if (last > most) {
        w.stride = most + ALIGN;
        n = (uint32_t)ot_min(ot_ceil_div(last, most), w.n_items);
    }
    while (last > most) {
        if (n > w.n_items) OT_BUG("a value that no block holds");
        OT_TRY(pack_in(&w, n, d, &last));
        if (last > most) n++;
    }
    return take_blocks(&w, n, a) == OT_OK ? OT_OK : ot_fail_nomem(d);
}

/* ---- who has the same bytes ---- */

static bool overlaps(const ot_device_memory *m, int64_t bytes, uint32_t block, int64_t offset,
                     int64_t n)
{
    return m->block == block && m->offset < offset + n && offset < m->offset + bytes;
}

static bool shares(const ot_device_memory *m, int64_t bytes, const ot_device_item *i)
{
    if (i->memory) return overlaps(m, bytes, i->memory->block, i->memory->offset, i->bytes);
    for (uint32_t b = 0; b < i->body->n_blocks; b++) {
        const ot_device_block *x = &i->body->blocks[b];
        if (overlaps(m, bytes, x->block, x->base, x->bytes)) return true;
    }
    return false;
}

void ot_device_arena_neighbours(const ot_device_arena *x, const ot_device_memory *m,
                                uint32_t *before, uint32_t *after)
{
    *before = *after = OT_NONE;
    for (size_t k = 0; k < x->n; k++) {
        const ot_device_item *i = &x->items[k];
        if (i->memory == m || !shares(m, aligned(m->bytes), i)) continue;
        if (i->last < m->first && (*before == OT_NONE || i->last > *before)) *before = i->last;
        if (i->first > m->last && (*after == OT_NONE || i->first < *after)) *after = i->first;
    }
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
