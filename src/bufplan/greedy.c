/* Greedy packing: one item after the other, none moved again.
 *
 *   offset ^  +--+ +-----+         Items with a fixed offset lie where they must, then the others follow in order. The placed items
 *          |  |c | |  d? |         that are alive together with one leave holes; it takes its hint when that is free, else a hole
 *          |  +--+-+-----+-+       that is large enough, else the place above them all.
 *          |  |  a  | |  b |
 *          +--+-----+-+----+-> time
 *
 * Without an order this is the "greedy by size" of the literature (Pisarchyk and Lee 2020; TensorFlow Lite): the largest first, each
 * into the smallest hole that takes it. With an order every item takes the lowest hole: then each packing that cannot sink has an
 * order which yields it (its own, by offsets), and searching orders searches packings.
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
    for (uint32_t k = 0; k < p->n; k++) s[k] = (sized){p->items[k].size, p->items[k].upper - p->items[k].lower, k};
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

typedef struct greedy {
    const ot_pack_problem *p;
    pack_index index;
    int64_t *offsets;    /* [n] out; -1: not placed yet */
    uint32_t *near;      /* [n] scratch */
    pack_block *blocks, *spare;
} greedy;

static void place(greedy *g, uint32_t k, pack_fit fit)
{
    const ot_pack_item *x = &g->p->items[k];
    uint32_t n = 0, n_near = pack_index_neighbours(&g->index, g->index.at[k], g->near);
    for (uint32_t j = 0; j < n_near; j++) {
        uint32_t other = g->index.item[g->near[j]];
        int64_t at = g->offsets[other], size = g->p->items[other].size;
        if (at >= 0 && size > 0) g->blocks[n++] = (pack_block){at, at + size};
    }
    pack_blocks_sort(g->blocks, n, g->spare);
    g->offsets[k] = pack_blocks_place(g->blocks, n, x, fit);
}

static ot_status run(greedy *g, const uint32_t *order, ot_arena *a, int64_t *height)
{
    const ot_pack_problem *p = g->p;
    pack_fit fit = order ? PACK_FIRST_FIT : PACK_BEST_FIT;
    if (!order) order = order_by_size(p, a);
    g->near = OT_NEW_N(a, uint32_t, p->n + 1u);
    g->blocks = OT_NEW_N(a, pack_block, p->n + 1u);
    g->spare = OT_NEW_N(a, pack_block, p->n + 1u);
    if (!order || !g->near || !g->blocks || !g->spare) return OT_E_NOMEM;
    OT_TRY(pack_index_new(p, a, &g->index));
    for (uint32_t k = 0; k < p->n; k++) g->offsets[k] = p->items[k].fixed;
    *height = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[order[k]];
        if (x->fixed < 0 && x->size > 0) place(g, order[k], fit);
        else if (x->fixed < 0) g->offsets[order[k]] = x->hint >= 0 && x->hint % x->alignment == 0 ? x->hint : 0;
    }
    for (uint32_t k = 0; k < p->n; k++) *height = ot_max(*height, g->offsets[k] + p->items[k].size);
    return OT_OK;
}

ot_status ot_pack_greedy(const ot_pack_problem *p, const uint32_t *order, int64_t *offsets, int64_t *height)
{
    if (too_large(p)) return OT_E_INPUT;
    ot_arena *a = ot_arena_new();
    greedy g = {.p = p, .offsets = offsets};
    ot_status st = a ? run(&g, order, a, height) : OT_E_NOMEM;
    ot_arena_free(a);
    return st;
}
