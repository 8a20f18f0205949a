/* Annealing of offsets: one item after the other is taken out and put where it costs little, by
 * chance, the less so the colder it is.
 *
 *   cost of putting x at an offset      3 | 1 |   broken   | 0 | 2     steps where a neighbour
 *                                      ---+---+------------+---+---->  begins or ends
 *
 * All offsets of x count, in stretches of equal cost; a stretch whose cost is d above the least is
 * taken with weight 2^-(d * cold), at its lower or its upper end. What is alive together may be
 * broken on the way: that costs, too, and ever more where it stays broken while it grows cold. The
 * best state in which nothing is broken is kept.
 *
 * Whole numbers and products of doubles only: the same moves on every machine. */
#include "improve.h"
#include "price.h"

/* cold, per unit of weight: from loose to nearly greedy */
#define COLD_FROM  1.0
#define COLD_TO    7.0
#define BROKEN     20  /* units that a broken edge costs at first */
#define PRESSURE   4   /* more for each round that it stays broken, in the second half */
#define BROKEN_MAX 256 /* and at most */
#define STEPS_OF   16  /* of 2^-x, between whole numbers */

/* 65536 * 2^-(k / 16) */
static const uint32_t POWERS[STEPS_OF] = {65536, 62757, 60097, 57549, 55109, 52772, 50535, 48393,
                                          46341, 44376, 42495, 40693, 38968, 37316, 35734, 34219};

typedef struct turn { /* where the cost of an item changes */
    int64_t at, change;
} turn;

typedef struct anneal {
    price_part *part;
    int64_t *offset; /* [n] */
    turn *turns;     /* scratch */
    uint64_t random;
    double cold;    /* steps of POWERS per weight */
    int64_t sum;    /* price at present */
    int64_t broken; /* hard edges at present */
} anneal;

/* By `at`; those of the same are not ordered. */
static void sort_turns(turn *t, size_t n)
{
    while (n > 16) {
        const int64_t a = t[0].at, b = t[n / 2].at, c = t[n - 1].at;
        const int64_t middle = a < b ? (b < c ? b : ot_max(a, c)) : (a < c ? a : ot_max(b, c));
        size_t low = 0, high = n - 1;
        for (;;) {
            while (t[low].at < middle) low++;
            while (t[high].at > middle) high--;
            if (low >= high) break;
            const turn kept = t[low];
            t[low++] = t[high];
            t[high--] = kept;
        }
        high++; /* [0, high) is no larger than the middle, the rest no smaller */
        if (high < n - high) {
            sort_turns(t, high);
            t += high;
            n -= high;
        } else {
            sort_turns(t + high, n - high);
            n = high;
        }
    }
    for (size_t k = 1; k < n; k++) {
        const turn x = t[k];
        size_t j = k;
        for (; j > 0 && t[j - 1].at > x.at; j--) t[j] = t[j - 1];
        t[j] = x;
    }
}

/* The turns of item i, sorted; returns their number. *at_zero: its cost at offset 0. */
static size_t list_turns(anneal *s, uint32_t i, int64_t *at_zero)
{
    const price_part *p = s->part;
    const int64_t size = p->size[i], top = p->capacity - size;
    size_t n = 0;
    *at_zero = 0;
    for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
        const price_edge *e = &p->edges[k];
        const int64_t from = s->offset[e->item] - size + 1,
                      to = s->offset[e->item] + p->size[e->item];
        if (from <= 0)
            *at_zero += e->weight;
        else if (from <= top)
            s->turns[n++] = (turn){from, e->weight};
        if (to <= top) s->turns[n++] = (turn){to, -e->weight};
    }
    sort_turns(s->turns, n);
    return n;
}

/* Stretches of equal cost, one after the other. */
typedef struct walk {
    size_t next;
    int64_t from, to, cost; /* offsets from..to */
} walk;

static bool next_stretch(const anneal *s, size_t n, int64_t top, walk *w)
{
    if (w->to == top) return false;
    w->from = w->to + 1;
    while (w->next < n && s->turns[w->next].at <= w->from) w->cost += s->turns[w->next++].change;
    w->to = w->next < n ? s->turns[w->next].at - 1 : top;
    return true;
}

/* The aligned offsets of a stretch; false: there is none. */
static bool align_stretch(const walk *w, int64_t alignment, int64_t *low, int64_t *high)
{
    *low = pack_align_up(w->from, alignment);
    *high = w->to - w->to % alignment;
    return *low <= *high;
}

static uint64_t weight_of(const anneal *s, int64_t above)
{
    const double steps = (double)above * s->cold;
    if (!(steps < 16.0 * STEPS_OF)) return 0;
    const uint32_t k = (uint32_t)steps;
    return POWERS[k % STEPS_OF] >> k / STEPS_OF;
}

static int64_t choose(anneal *s, uint32_t i)
{
    const int64_t top = s->part->capacity - s->part->size[i], align = s->part->alignment[i];
    int64_t at_zero, low, high, least = INT64_MAX, taken = s->offset[i];
    uint64_t total = 0;
    const size_t n = list_turns(s, i, &at_zero);
    walk w = {.to = -1, .cost = at_zero};
    while (next_stretch(s, n, top, &w))
        if (w.cost < least && align_stretch(&w, align, &low, &high)) least = w.cost;
    w = (walk){.to = -1, .cost = at_zero};
    while (next_stretch(s, n, top, &w)) {
        const uint64_t weight = weight_of(s, w.cost - least);
        if (weight == 0 || !align_stretch(&w, align, &low, &high)) continue;
        total += weight;
        const uint64_t r = ot_next_random(&s->random);
        if ((r >> 32) * total >> 32 < weight) taken = r & 1 ? low : high;
    }
    return taken;
}

static void move(anneal *s, uint32_t i)
{
    const price_part *p = s->part;
    const int64_t old = s->offset[i], to = choose(s, i), size = p->size[i];
    if (to == old) return;
    for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
        const price_edge *e = &p->edges[k];
        const int64_t at = s->offset[e->item], end = at + p->size[e->item];
        const int change = (to < end && at < to + size) - (old < end && at < old + size);
        if (e->hard)
            s->broken += change;
        else
            s->sum += change * e->weight;
    }
    s->offset[i] = to;
}

static void keep_best(anneal *s)
{
    if (s->broken > 0 || s->sum >= s->part->sum) return;
    s->part->sum = s->sum;
    memcpy(s->part->offset, s->offset, s->part->n * sizeof *s->offset);
}

/* What is still broken costs more from now on. */
static void press(anneal *s)
{
    price_part *p = s->part;
    for (uint32_t i = 0; s->broken > 0 && i < p->n; i++)
        for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++)
            if (p->edges[k].hard && p->edges[k].weight < BROKEN_MAX * p->unit &&
                price_meets(p, s->offset, i, p->edges[k].item))
                p->edges[k].weight += PRESSURE * p->unit; /* either end adds to its own */
}

static void start(anneal *s)
{
    price_part *p = s->part;
    s->sum = p->sum;
    s->broken = 0;
    memcpy(s->offset, p->offset, p->n * sizeof *s->offset);
    for (uint32_t k = 0; k < p->begin[p->n]; k++)
        if (p->edges[k].hard) p->edges[k].weight = BROKEN * p->unit;
}

/* How much of the cycle is over, 0 to 1. */
static double progress(int64_t done, int64_t moves, double began, double until)
{
    if (until > 0) return (ot_now() - began) / (until - began);
    return (double)done / (double)moves;
}

static void cycle(anneal *s, int64_t moves, double until, const uint32_t *free_items,
                  uint32_t n_free, pack_budget *b)
{
    const double began = until > 0 ? ot_now() : 0, unit = (double)s->part->unit;
    double over = 0;
    for (int64_t done = 0; s->part->sum > s->part->bound; done++) {
        if (done % 128 == 0) {
            over = progress(done, moves, began, until);
            if (!(over < 1)) return;
            s->cold = (COLD_FROM + (COLD_TO - COLD_FROM) * over) * STEPS_OF / unit;
        }
        if (!pack_spend(b, 1)) return;
        move(s, free_items[(ot_next_random(&s->random) >> 32) * n_free >> 32]);
        keep_best(s);
        if (over > 0.5 && done % n_free == 0) press(s);
    }
}

ot_status price_anneal(price_part *p, int64_t moves, double until, uint64_t seed, pack_budget *b,
                       ot_arena *a)
{
    anneal s = {.part = p, .random = seed};
    uint32_t *free_items = OT_NEW_N(a, uint32_t, p->n), n_free = 0, most = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        if (free_items && !p->fixed[k]) free_items[n_free++] = k;
        const uint32_t degree = p->begin[k + 1] - p->begin[k];
        most = degree > most ? degree : most;
    }
    s.offset = OT_NEW_N(a, int64_t, p->n);
    s.turns = OT_NEW_N(a, turn, 2 * (size_t)most + 1);
    if (!free_items || !s.offset || !s.turns) return OT_E_NOMEM;
    if (n_free == 0) return OT_OK;
    start(&s);
    cycle(&s, moves, until, free_items, n_free, b);
    return OT_OK;
}
