/* Heuristics that get lower than plain greedy: a first packing from each of a dozen orders, then
 * rounds of three ways to learn from what is still too high (improve_keys.c: squeak, climb;
 * improve_eject.c), each with twice the steps of the round before. They complement each other:
 * squeaking mends many places of a large problem at a time, climbing is for small tight ones,
 * ejecting for what is left over in a few places.
 *
 * A step is about one item placed, so a limit in steps bounds the time; nothing but steps
 * decides what happens, so results repeat.
 */
#include "improve.h"

#define FIRST_RUNS 16 /* packings per way in the first round */
/* larger problems have too many places for one random change at a time */
#define CLIMB_ITEMS_MAX 4000

void pack_offer(pack_improver *s, const int64_t *offsets, int64_t height)
{
    if (height >= s->height) return;
    s->height = height;
    for (uint32_t k = 0; k < s->p->n; k++)
        if (s->p->items[k].fixed < 0 && s->p->items[k].size > 0) s->best[k] = offsets[k];
}

void pack_count(pack_improver *s, int64_t steps)
{
    if (!pack_spend(s->budget, steps)) s->spent = true;
}

double pack_random_unit(pack_improver *s)
{
    return (double)(ot_next_random(&s->random) >> 11) * 0x1p-53;
}

/* The problem without hints: they may lie anywhere, and it is height that counts here. */
static ot_status copy_problem(pack_improver *s, const ot_pack_problem *from, ot_pack_problem *to)
{
    ot_pack_item *items = OT_NEW_N(s->arena, ot_pack_item, from->n + 1u);
    if (!items) return OT_E_NOMEM;
    for (uint32_t k = 0; k < from->n; k++) {
        items[k] = from->items[k];
        items[k].hint = -1;
    }
    *to = (ot_pack_problem){items, from->n};
    s->p = to;
    return OT_OK;
}

/* Height of the start, where items without a size are put down: they must not be what is
 * highest. Fixed items bound the goal. */
static int64_t start_height(pack_improver *s)
{
    int64_t height = 0;
    for (uint32_t k = 0; k < s->p->n; k++) {
        const ot_pack_item *x = &s->p->items[k];
        if (x->size == 0 && x->fixed < 0) s->best[k] = 0;
        if (x->fixed >= 0) s->goal = ot_max(s->goal, x->fixed + x->size);
        height = ot_max(height, s->best[k] + x->size);
    }
    return height;
}

static ot_status run(pack_improver *s, const ot_pack_problem *p)
{
    ot_pack_problem own;
    pack_keys *keys;
    OT_TRY(copy_problem(s, p, &own));
    s->height = start_height(s);
    s->offsets = OT_NEW_N(s->arena, int64_t, p->n + 1u);
    if (!s->offsets) return OT_E_NOMEM;
    if (pack_done(s)) return OT_OK;
    OT_TRY(pack_map_new(&own, s->arena, &s->map));
    OT_TRY(pack_keys_new(s, &keys));
    OT_TRY(pack_keys_orders(keys));
    for (uint32_t round = 0; !pack_done(s); round++) {
        int64_t steps = (int64_t)p->n * (FIRST_RUNS << (round < 20 ? round : 20));
        OT_TRY(pack_keys_squeak(keys, round, steps));
        OT_TRY(pack_eject(s, steps));
        if (p->n <= CLIMB_ITEMS_MAX) OT_TRY(pack_keys_climb(keys, round, steps));
    }
    return OT_OK;
}

ot_status pack_improve(const ot_pack_problem *p, int64_t goal, uint64_t seed, pack_budget *b,
                       int64_t *offsets, int64_t *height)
{
    pack_improver s = {.arena = ot_arena_new(),
                       .goal = goal,
                       .budget = b,
                       .random = seed,
                       .best = offsets,
                       .height = *height};
    if (!s.arena) return OT_E_NOMEM;
    ot_status st = run(&s, p);
    ot_arena_free(s.arena);
    *height = s.height;
    return st;
}
