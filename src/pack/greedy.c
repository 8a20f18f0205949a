/* Greedy packing: one item after the other, none moved again.
 *
 *   offset ^  +--+ +-----+         Items with a fixed offset lie where they must, then the others
 *                                  follow in order. The placed items
 *          |  |c | |  d? |         that are alive together with one leave holes; it takes its hint
 *                                  when that is free, else a hole
 *          |  +--+-+-----+-+       that is large enough, else the place above them all.
 *          |  |  a  | |  b |
 *          +--+-----+-+----+-> time
 *
 * Without an order this is the "greedy by size" of the literature (Pisarchyk and Lee 2020;
 * TensorFlow Lite): the largest first, each into the smallest hole that takes it. With an order
 * every item takes the lowest hole: then each packing that cannot sink has an order which yields
 * it (its own, by offsets), and searching orders searches packings.
 */
#include "improve.h"

typedef struct sized {
    int64_t size, length;
    uint32_t item;
} sized;

/* The larger, the longer, the earlier in the problem. */
static int compare_sized(const void *pa, const void *pb)
{
    const sized *a = pa, *b = pb;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (a->length != b->length) return a->length > b->length ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static const uint32_t *order_by_size(const ot_pack_problem *p, ot_arena *a)
{
    sized *s = OT_NEW_N(a, sized, p->n + 1u);
    uint32_t *order = OT_NEW_N(a, uint32_t, p->n + 1u);
    if (!s || !order) return NULL;
    for (uint32_t k = 0; k < p->n; k++)
        s[k] = (sized){p->items[k].size, p->items[k].upper - p->items[k].lower, k};
    if (p->n > 1) qsort(s, p->n, sizeof *s, compare_sized);
    for (uint32_t k = 0; k < p->n; k++) order[k] = s[k].item;
    return order;
}

/* Sizes that add up to more than offsets can say. */
static bool too_large(const ot_pack_problem *p)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[k];
        if (!ot_add_i64(sum, x->size, &sum) || !ot_add_i64(sum, x->alignment, &sum)) return true;
    }
    for (uint32_t k = 0; k < p->n; k++) {
        int64_t end;
        if (!ot_add_i64(ot_max(p->items[k].fixed, p->items[k].hint), sum, &end)) return true;
    }
    return false;
}

static ot_status run(const ot_pack_problem *p, const uint32_t *order, pack_budget *b, ot_arena *a,
                     int64_t *offsets)
{
    pack_map m;
    pack_fit fit = order ? PACK_FIRST_FIT : PACK_BEST_FIT;
    if (!order) order = order_by_size(p, a);
    if (!order) return OT_E_NOMEM;
    OT_TRY(pack_map_new(p, a, &m));
    for (uint32_t k = 0; k < p->n; k++)
        if (p->items[k].fixed >= 0 && !pack_map_put(&m, k, p->items[k].fixed)) return OT_E_NOMEM;
    bool goes_on = true;
    for (uint32_t k = 0; k < p->n && goes_on; k++) {
        uint32_t item = order[k];
        if (p->items[item].fixed >= 0) continue;
        goes_on = pack_spend(b, 1);
        if (!pack_map_put(&m, item, pack_map_place(&m, item, fit))) return OT_E_NOMEM;
    }
    if (!goes_on) OT_TRY(pack_stack(&m, order));
    memcpy(offsets, m.offset, p->n * sizeof *offsets);
    return OT_OK;
}

ot_status ot_pack_greedy(const ot_pack_problem *p, const uint32_t *order, int64_t *offsets,
                         int64_t *height)
{
    pack_budget whole = {0};
    return pack_greedy(p, order, &whole, offsets, height);
}

ot_status pack_greedy(const ot_pack_problem *p, const uint32_t *order, pack_budget *b,
                      int64_t *offsets, int64_t *height)
{
    if (too_large(p)) return OT_E_INPUT;
    ot_arena *a = ot_arena_new();
    ot_status st = a ? run(p, order, b, a, offsets) : OT_E_NOMEM;
    ot_arena_free(a);
    *height = 0;
    for (uint32_t k = 0; k < p->n && st == OT_OK; k++)
        *height = ot_max(*height, offsets[k] + p->items[k].size);
    return st;
}
