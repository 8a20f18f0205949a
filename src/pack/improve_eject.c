/* Getting lower by throwing out: guided ejection search (Nagata and Braysy 2009, there for
 * vehicle routes), on packings.
 *
 *   limit  - - - - - - - -       Everything that ends above a limit below the present height is
 *                                taken out and waits. Then, one by
 *          | a |  | b  |         one: put the last that came to where it is free; if nowhere, to
 *                                where the items in its way are
 *          |     v?    |    -->  the easiest ones to place elsewhere; these are taken out and wait.
 *                                When nobody waits, the packing
 *          | c  |  | d |         is lower than before.
 *
 * How hard an item is to place is learnt: each time that no place was free for it counts. So
 * hard items push easy ones around and end where they block least. A few random items nearby
 * move within their free space each time, else it would go round in circles.
 *
 * Each step costs as much as the item has neighbours: for problems with thousands alive at a
 * time priorities (improve_keys.c) do better.
 */
#include "improve.h"

#define MOVES 2             /* random moves after an ejection */
#define FIXED 1000000000000 /* difficulty of what must not move */

typedef struct ejector {
    pack_improver *s;
    pack_map *m;
    const ot_pack_problem *p;
    int64_t limit;
    uint32_t *waiting; /* [n] a stack */
    uint32_t n_waiting;
    int64_t *failures; /* [n] times that no place was free, plus 1 */
    pack_block *ends;  /* [n] scratch: neighbours by upper end, kept in `lower` */
    uint32_t *nearby;  /* [n] scratch */
} ejector;

static int64_t cost(const ejector *e, uint32_t item)
{
    return e->p->items[item].fixed >= 0 ? FIXED : e->failures[item];
}

/* The offset below the limit at which the items in the way are easiest to place; -1: fixed ones
 * are everywhere. blocks: neighbours. Moving up from one candidate to the next, blocks enter
 * when the item's top reaches them and leave when its bottom passes them. */
static int64_t cheapest_place(ejector *e, const pack_block *blocks, uint32_t n,
                              const ot_pack_item *x)
{
    int64_t best = -1, least = FIXED, now = 0, last = -1;
    uint32_t entered = 0, left = 0, equal = 0;
    for (uint32_t k = 0; k < n; k++)
        e->ends[k] = (pack_block){.lower = blocks[k].upper, .item = blocks[k].item};
    pack_blocks_sort(e->ends, n, e->m->spare);
    for (uint32_t c = 0; c <= n; c++) {
        int64_t at = c > 0 ? pack_align_up(e->ends[c - 1].lower, x->alignment) : 0;
        if (at == last) continue;
        if (at > e->limit - x->size) break;
        last = at;
        for (; entered < n && blocks[entered].lower < at + x->size; entered++)
            now += cost(e, blocks[entered].item);
        for (; left < n && e->ends[left].lower <= at; left++) now -= cost(e, e->ends[left].item);
        equal = now < least ? 1 : equal + (now == least);
        if (now > least || now >= FIXED ||
            (equal > 1 && ot_next_random(&e->s->random) % equal != 0))
            continue;
        least = now;
        best = at;
    }
    return best;
}

/* Take out what is in the way of [at, at + size); they wait in random order. */
static void eject(ejector *e, const pack_block *blocks, uint32_t n, int64_t at, int64_t size)
{
    uint32_t first = e->n_waiting;
    for (uint32_t k = 0; k < n; k++) {
        if (blocks[k].lower >= at + size || blocks[k].upper <= at) continue;
        pack_map_take(e->m, blocks[k].item);
        uint32_t other = first +
                         (uint32_t)(ot_next_random(&e->s->random) % (e->n_waiting - first + 1));
        e->waiting[e->n_waiting++] = e->waiting[other];
        e->waiting[other] = blocks[k].item;
    }
}

/* One of the ends of the free spaces, at random; -1: none. */
static int64_t random_place(ejector *e, const pack_block *blocks, uint32_t n, const ot_pack_item *x)
{
    int64_t top = 0, at = -1;
    uint32_t seen = 0;
    for (uint32_t k = 0; k <= n; k++) {
        int64_t low = pack_align_up(top, x->alignment), end = k < n ? blocks[k].lower : e->limit;
        if (end - low >= x->size) {
            int64_t high = low + (end - x->size - low) / x->alignment * x->alignment;
            if (ot_next_random(&e->s->random) % ++seen == 0) at = low;
            if (ot_next_random(&e->s->random) % ++seen == 0) at = high;
        }
        if (k < n) top = ot_max(top, blocks[k].upper);
    }
    return at;
}

static bool move_at_random(ejector *e, uint32_t item)
{
    if (e->m->offset[item] < 0 || e->p->items[item].fixed >= 0) return true;
    uint32_t n = pack_map_near(e->m, item);
    int64_t at = random_place(e, e->m->near, n, &e->p->items[item]);
    pack_count(e->s, 1 + n / 16);
    if (at < 0 || at == e->m->offset[item]) return true;
    pack_map_take(e->m, item);
    return pack_map_put(e->m, item, at);
}

/* Place one that waits. *stuck: it cannot be placed at all. */
static ot_status place_next(ejector *e, bool *stuck)
{
    uint32_t item = e->waiting[--e->n_waiting], n = pack_map_near(e->m, item);
    const ot_pack_item *x = &e->p->items[item];
    const pack_block *blocks = e->m->near;
    int64_t at = pack_blocks_place(blocks, n, e->m->life[item], x, PACK_BEST_FIT);
    pack_count(e->s, 1 + n / 16);
    if (at <= e->limit - x->size) return pack_map_put(e->m, item, at) ? OT_OK : OT_E_NOMEM;
    e->failures[item]++;
    at = cheapest_place(e, blocks, n, x);
    *stuck = at < 0;
    if (*stuck) return OT_OK;
    eject(e, blocks, n, at, x->size);
    for (uint32_t k = 0; k < n; k++) e->nearby[k] = blocks[k].item;
    if (!pack_map_put(e->m, item, at)) return OT_E_NOMEM;
    for (uint32_t k = 0; k < MOVES && n > 0; k++)
        if (!move_at_random(e, e->nearby[ot_next_random(&e->s->random) % n])) return OT_E_NOMEM;
    return OT_OK;
}

/* A tenth of the way to the goal; what ends above waits. */
static void lower_limit(ejector *e)
{
    e->limit = e->s->height - ot_max(1, (e->s->height - e->s->goal) / 10);
    e->n_waiting = 0;
    for (uint32_t k = 0; k < e->p->n; k++) {
        if (e->p->items[k].fixed >= 0 || e->m->offset[k] + e->p->items[k].size <= e->limit)
            continue;
        pack_map_take(e->m, k);
        e->waiting[e->n_waiting++] = k;
    }
}

static void offer(ejector *e)
{
    int64_t height = 0;
    for (uint32_t k = 0; k < e->p->n; k++)
        height = ot_max(height, e->m->offset[k] + e->p->items[k].size);
    pack_offer(e->s, e->m->offset, height);
}

ot_status pack_eject(pack_improver *s, int64_t steps)
{
    ejector e = {.s = s, .m = &s->map, .p = s->p};
    int64_t end = s->budget->steps + steps;
    uint32_t n = s->p->n + 1u;
    bool stuck = false;
    ot_arena *a = ot_arena_new();
    e.waiting = a ? OT_NEW_N(a, uint32_t, n) : NULL;
    e.failures = a ? OT_NEW_N(a, int64_t, n) : NULL;
    e.ends = a ? OT_NEW_N(a, pack_block, n) : NULL;
    e.nearby = a ? OT_NEW_N(a, uint32_t, n) : NULL;
    ot_status st = e.waiting && e.failures && e.ends && e.nearby ? OT_OK : OT_E_NOMEM;
    pack_map_clear(e.m);
    for (uint32_t k = 0; k < s->p->n && st == OT_OK; k++) {
        e.failures[k] = 1;
        if (!pack_map_put(e.m, k, s->best[k])) st = OT_E_NOMEM;
    }
    while (st == OT_OK && !stuck && !pack_done(s) && s->budget->steps < end) {
        if (e.n_waiting == 0) lower_limit(&e);
        while (st == OT_OK && e.n_waiting > 0 && !stuck && !s->spent && s->budget->steps < end)
            st = place_next(&e, &stuck);
        if (st == OT_OK && e.n_waiting == 0 && !stuck) offer(&e);
    }
    ot_arena_free(a);
    return st;
}
