/* Where all free items have one size, places are slots, and the cheapest packing is a colouring:
 * exact, by Russian dolls.
 *
 *   capacity  +----+----+----+--+      A packing that sinks as far as no new bytes are shared has
 *             | s0 | s1 | s2 |  |      all its offsets at slots, and costs no more.
 *             +----+----+----+--+
 *
 * The last k items alone are solved for k = 1, 2, ...: what they cost bounds from below what they
 * add to any choice for those before them. Slots are alike, so an item takes a used one or the
 * first that is empty. Fixed items are slots that are taken: only those count that all free items
 * meet in time, else the method does not apply. */
#include "improve.h"
#include "price.h"

#define ITEMS_MAX 64
#define SLOTS_MAX 64

typedef struct slots {
    const price_part *part;
    pack_budget *budget;
    uint32_t n, k; /* items, slots */
    int64_t place[SLOTS_MAX];
    uint32_t item[ITEMS_MAX];             /* in the order of the search */
    int64_t weight[ITEMS_MAX][ITEMS_MAX]; /* -1: hard */
    /* what an item would cost in a slot, given those that are placed; how many hard neighbours */
    int64_t cost[ITEMS_MAX][SLOTS_MAX];
    uint32_t hard[ITEMS_MAX][SLOTS_MAX];
    uint32_t slot[ITEMS_MAX], best[ITEMS_MAX];
    int64_t doll[ITEMS_MAX + 1]; /* least cost of the last items alone */
    int64_t least;               /* of the doll at hand */
    bool found;
} slots;

/* Slots between the fixed items, which all lie below and above every free one. */
static bool list_slots(slots *s)
{
    const price_part *p = s->part;
    int64_t at = 0, step = 0, align = 1;
    uint32_t n_fixed = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        n_fixed += p->fixed[i];
        if (p->fixed[i]) continue;
        if (step > 0 && (p->size[i] != step || p->alignment[i] != align)) return false;
        step = p->size[i];
        align = p->alignment[i];
        if (s->n == ITEMS_MAX) return false;
        s->item[s->n++] = i;
    }
    for (uint32_t i = 0; i < p->n; i++) { /* a fixed item keeps all free ones away */
        uint32_t met = 0;
        if (!p->fixed[i]) continue;
        for (uint32_t k = p->begin[i]; k < p->begin[i + 1]; k++)
            met += p->edges[k].hard && !p->fixed[p->edges[k].item];
        if (met < s->n) return false;
    }
    while (s->k < SLOTS_MAX && s->k < s->n && step > 0) {
        at = pack_align_up(at, align);
        if (at + step > p->capacity) break;
        int64_t next = -1; /* past what is in the way */
        for (uint32_t i = 0; n_fixed > 0 && i < p->n; i++)
            if (p->fixed[i] && at < p->offset[i] + p->size[i] && p->offset[i] < at + step)
                next = ot_max(next, p->offset[i] + p->size[i]);
        if (next < 0) s->place[s->k++] = at;
        at = next < 0 ? at + step : next;
    }
    return s->n > 0 && s->k > 0;
}

static void read_weights(slots *s)
{
    const price_part *p = s->part;
    for (uint32_t a = 0; a < s->n; a++)
        for (uint32_t b = 0; b < s->n; b++)
            for (uint32_t k = p->begin[s->item[a]]; k < p->begin[s->item[a] + 1]; k++)
                if (p->edges[k].item == s->item[b])
                    s->weight[a][b] = p->edges[k].hard ? -1 : p->edges[k].weight;
}

static void put(slots *s, uint32_t i, uint32_t to, int sign)
{
    for (uint32_t j = i + 1; j < s->n; j++) {
        const int64_t w = s->weight[i][j];
        if (w < 0)
            s->hard[j][to] += (uint32_t)sign;
        else
            s->cost[j][to] += sign * w;
    }
}

/* Least that the items from i on add, with `used` slots in use, as far as it is below `limit`;
 * INT64_MAX: no room for one. */
static int64_t bound_of(const slots *s, uint32_t i, uint32_t used, int64_t limit)
{
    int64_t sum = s->doll[i];
    const uint32_t k = used < s->k ? used + 1 : s->k;
    for (uint32_t j = i; j < s->n && sum < limit; j++) {
        int64_t least = INT64_MAX;
        for (uint32_t t = 0; t < k; t++)
            if (s->hard[j][t] == 0) least = ot_min(least, s->cost[j][t]);
        if (least == INT64_MAX) return INT64_MAX;
        sum += least;
    }
    return sum;
}

/* Items from i on; false: the budget is used up. */
static bool descend(slots *s, uint32_t i, uint32_t used, int64_t cost)
{
    if (i == s->n) {
        s->least = cost;
        s->found = true;
        memcpy(s->best, s->slot, sizeof s->best);
        return true;
    }
    if (!pack_spend(s->budget, 1)) return false;
    if (bound_of(s, i, used, s->least - cost) >= s->least - cost) return true;
    const uint32_t k = used < s->k ? used + 1 : s->k;
    bool tried[SLOTS_MAX] = {false};
    for (uint32_t round = 0; round < k; round++) { /* the cheapest slot first */
        uint32_t to = OT_NONE;
        for (uint32_t t = 0; t < k; t++)
            if (!tried[t] && s->hard[i][t] == 0 &&
                (to == OT_NONE || s->cost[i][t] < s->cost[i][to]))
                to = t;
        if (to == OT_NONE) break;
        tried[to] = true;
        const int64_t now = cost + s->cost[i][to];
        if (now >= s->least) break;
        s->slot[i] = to;
        put(s, i, to, 1);
        const bool goes_on = descend(s, i + 1, to == used ? used + 1 : used, now);
        put(s, i, to, -1);
        if (!goes_on) return false;
    }
    return true;
}

/* What item i pays to those behind it in the best packing so far. */
static int64_t paid_so_far(const slots *s, uint32_t i)
{
    const price_part *p = s->part;
    int64_t sum = 0;
    for (uint32_t j = i + 1; j < s->n; j++)
        if (s->weight[i][j] > 0 && price_meets(p, p->offset, s->item[i], s->item[j]))
            sum += s->weight[i][j];
    return sum;
}

/* Dolls from the smallest; the last is the whole problem. None costs more than what the best
 * packing so far pays among its items. */
static bool solve(slots *s)
{
    int64_t known = 0;
    for (uint32_t i = s->n; i-- > 0;) {
        s->found = false;
        known += paid_so_far(s, i);
        s->least = i == 0 ? s->part->sum : known + 1;
        s->doll[i] = s->doll[i + 1]; /* the first item is not in the bound yet */
        if (!descend(s, i, 0, 0)) return false;
        if (s->least > known) return false; /* cannot be, a packing is known */
        s->doll[i] = s->least;
    }
    return true;
}

ot_status price_slots(price_part *p, pack_budget *b, ot_arena *a, bool *applies)
{
    slots *s = OT_NEW(a, slots);
    *applies = false;
    if (!s) return OT_E_NOMEM;
    s->part = p;
    s->budget = b;
    if (!list_slots(s)) return OT_OK;
    read_weights(s);
    *applies = solve(s);
    if (!*applies) {
        for (uint32_t k = 0; k <= s->n; k++) p->bound = ot_max(p->bound, s->doll[k]);
        return OT_OK;
    }
    for (uint32_t k = 0; s->found && k < s->n; k++) p->offset[s->item[k]] = s->place[s->best[k]];
    p->sum = p->bound = s->doll[0];
    return OT_OK;
}
