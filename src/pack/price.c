/* A price on reuse: the cheapest packing within a capacity.
 *
 *   packing that fits --> parts of the graph --> each: nothing shared, a short annealing, an exact
 *   search where there is one, a long annealing --> offsets, their price, and what is proved of it
 *
 * Parts share no edge, so each may use the whole memory, and prices and bounds add up. */
#include "price.h"

#define FIRST_MOVES  60       /* an item, in the short annealing */
#define LONG_MOVES   1000     /* an item, in the long one, where no time limit is given */
#define MORE_MOVES   4        /* ... for each item that there is, at most */
#define LONG_WORK    60000000 /* ... and neighbours looked at, about */
#define EXACT_STEPS  200000
#define SEARCH_STEPS 12000 /* looks at eight items */
#define FIRST_SHARE  0.25  /* of the time limit, for the first of two long annealings */

int64_t ot_pack_price_of(const ot_pack_problem *p, const ot_pack_pair *pairs, size_t n_pairs,
                         const int64_t *offsets)
{
    int64_t sum = 0;
    for (size_t k = 0; k < n_pairs; k++) {
        const uint32_t a = pairs[k].first, b = pairs[k].second;
        if (p->items[a].size > 0 && p->items[b].size > 0 &&
            offsets[a] < offsets[b] + p->items[b].size &&
            offsets[b] < offsets[a] + p->items[a].size)
            sum += pairs[k].weight;
    }
    return sum;
}

typedef struct pricer {
    const ot_pack_options *o;
    ot_arena *arena;
    pack_budget budget;
    uint64_t seed;
} pricer;

static bool is_done(const pricer *s, const price_part *p)
{
    return p->sum <= p->bound || s->budget.timed_out;
}

/* Moves of a part's long annealing without a clock. */
static int64_t long_moves(const pricer *s, const price_part *p)
{
    const int64_t degree = 1 + p->begin[p->n] / p->n;
    const int64_t each = ot_min(LONG_MOVES, MORE_MOVES * (int64_t)p->n);
    const int64_t moves = ot_min(each * p->n, LONG_WORK / degree);
    return s->o->step_limit > 0 ? ot_min(moves, s->o->step_limit) : moves;
}

static ot_status anneal(pricer *s, price_part *p, int64_t moves, double until)
{
    return is_done(s, p) ? OT_OK : price_anneal(p, moves, until, ++s->seed, &s->budget, s->arena);
}

static ot_status solve_first(pricer *s, price_part *p)
{
    bool exact = false;
    OT_TRY(price_apart(p, s->arena));
    if (!is_done(s, p)) OT_TRY(price_find_bound(p, s->arena));
    OT_TRY(anneal(s, p, FIRST_MOVES * (int64_t)p->n, 0));
    if (is_done(s, p)) return OT_OK;
    pack_budget b = {.step_limit = EXACT_STEPS, .deadline = s->budget.deadline};
    OT_TRY(price_slots(p, &b, s->arena, &exact));
    s->budget.steps += b.steps;
    s->budget.timed_out |= b.timed_out;
    if (exact || is_done(s, p)) return OT_OK;
    b = (pack_budget){.step_limit = SEARCH_STEPS, .deadline = s->budget.deadline};
    OT_TRY(price_search(p, &b, s->arena));
    s->budget.steps += b.steps;
    s->budget.timed_out |= b.timed_out;
    return OT_OK;
}

/* The time that is left goes to the parts by their sizes. */
static ot_status solve_on(pricer *s, price_graph *g)
{
    int64_t left = 0;
    for (size_t k = 0; k < g->n; k++)
        if (!is_done(s, &g->parts[k])) left += g->parts[k].begin[g->parts[k].n];
    for (size_t k = 0; k < g->n; k++) {
        price_part *p = &g->parts[k];
        const int64_t moves = long_moves(s, p), size = p->begin[p->n];
        if (is_done(s, p)) continue;
        const double now = ot_now(), deadline = s->budget.deadline;
        const double share = deadline > 0 ? (deadline - now) * (double)size / (double)left : 0;
        OT_TRY(anneal(s, p, (int64_t)((double)moves * FIRST_SHARE),
                      deadline > 0 ? now + share * FIRST_SHARE : 0));
        OT_TRY(anneal(s, p, moves, deadline > 0 ? now + share : 0));
        left -= size;
    }
    return OT_OK;
}

static ot_status solve(pricer *s, const ot_pack_problem *p, const ot_pack_pair *pairs,
                       size_t n_pairs, int64_t *offsets, ot_pack_price *r)
{
    price_graph g;
    OT_TRY(price_make(p, pairs, n_pairs, s->o->capacity, offsets, s->arena, &g));
    r->lower_bound = g.bound;
    if (!g.whole) return OT_OK;
    for (size_t k = 0; k < g.n; k++) OT_TRY(solve_first(s, &g.parts[k]));
    OT_TRY(solve_on(s, &g));
    for (size_t k = 0; k < g.n; k++) {
        r->lower_bound += g.parts[k].bound;
        for (uint32_t j = 0; j < g.parts[k].n; j++)
            offsets[g.parts[k].source[j]] = g.parts[k].offset[j];
    }
    return OT_OK;
}

ot_status ot_pack_price_reuse(const ot_pack_problem *p, const ot_pack_pair *pairs, size_t n_pairs,
                              const ot_pack_options *o, int64_t *offsets, ot_pack_price *r)
{
    const double deadline = o->time_limit > 0 ? ot_now() + o->time_limit : 0;
    pricer s = {.o = o, .arena = ot_arena_new(), .budget = {.deadline = deadline}};
    *r = (ot_pack_price){0};
    const ot_status st = s.arena ? solve(&s, p, pairs, n_pairs, offsets, r) : OT_E_NOMEM;
    ot_arena_free(s.arena);
    r->sum = ot_pack_price_of(p, pairs, n_pairs, offsets);
    r->proved = r->sum <= r->lower_bound;
    r->steps = s.budget.steps;
    /* a clock decides how far annealing goes even where it ends before */
    r->timed_out = !r->proved && deadline > 0;
    return st;
}
