/* Exact search over the packings of a small part, of whatever sizes.
 *
 * Among the cheapest packings one has sunk as far as it can without a new pair sharing bytes: each
 * item lies at 0 or on top of a neighbour. Such packings are built from the bottom: the next item
 * lies no lower than the last, so that each is met once.
 *
 *            +-----+      may come next: c on a, d at 0 beside b (where that shares), ...
 *   +---+    |  b  |      bound: for each item to come, the least that it pays to those that lie
 *   | a |    +-----+      already, anywhere above the last one; and what those to come pay among
 *   +---+---------------  themselves
 *
 * The higher an item lies, the less it meets of those that came before it, so the least that it
 * pays is what it pays at the top (where items are fixed, any place may be the cheapest).
 *
 * Of m items of which at most q lie one above the other, at least as many pairs meet as in q
 * groups of m / q (Turan, 1941).
 *
 * Items that are alike in everything come in one order only. */
#include "improve.h"
#include "price.h"

#define ITEMS_MAX   24
#define CHOICES_MAX (ITEMS_MAX * (ITEMS_MAX + 1))

typedef struct choice {
    int64_t at, paid, total; /* with what the others pay at least */
    uint32_t item;
} choice;

typedef struct search {
    const price_part *part;
    choice *lists; /* [n + 1][CHOICES_MAX] */
    pack_budget *budget;
    uint32_t n;
    int64_t weight[ITEMS_MAX][ITEMS_MAX]; /* -1: hard */
    uint32_t twin[ITEMS_MAX];             /* the one before that is alike; OT_NONE */
    bool placed[ITEMS_MAX];
    int64_t offset[ITEMS_MAX], best[ITEMS_MAX];
    int64_t top[ITEMS_MAX];      /* highest offset; below 0: none */
    uint32_t by_size[ITEMS_MAX]; /* [n_by_size] free items, the largest first */
    uint32_t n_by_size;
    bool has_fixed;
    int64_t least; /* cost of the best */
    bool found, spent;
} search;

static void read_weights(search *s)
{
    const price_part *p = s->part;
    for (uint32_t a = 0; a < s->n; a++)
        for (uint32_t k = p->begin[a]; k < p->begin[a + 1]; k++)
            s->weight[a][p->edges[k].item] = p->edges[k].hard ? -1 : p->edges[k].weight;
}

/* Do both have the same size and rules and the same edges to all others? */
static bool are_alike(const search *s, uint32_t a, uint32_t b)
{
    const price_part *p = s->part;
    if (p->fixed[a] || p->fixed[b] || p->size[a] != p->size[b] ||
        p->alignment[a] != p->alignment[b])
        return false;
    for (uint32_t k = 0; k < s->n; k++)
        if (k != a && k != b && s->weight[a][k] != s->weight[b][k]) return false;
    return true;
}

static void find_twins(search *s)
{
    for (uint32_t a = 0; a < s->n; a++) {
        s->twin[a] = OT_NONE;
        for (uint32_t b = a; b-- > 0 && s->twin[a] == OT_NONE;)
            if (are_alike(s, a, b)) s->twin[a] = b;
    }
}

/* What item i pays at this offset to those that are placed; -1: it cannot lie there. */
static int64_t paid_at(const search *s, uint32_t i, int64_t at)
{
    const price_part *p = s->part;
    int64_t sum = 0;
    if (at + p->size[i] > p->capacity) return -1;
    for (uint32_t j = 0; j < s->n; j++) {
        if (!s->placed[j] || s->weight[i][j] == 0) continue;
        if (at >= s->offset[j] + p->size[j] || s->offset[j] >= at + p->size[i]) continue;
        if (s->weight[i][j] < 0) return -1;
        sum += s->weight[i][j];
    }
    return sum;
}

/* Least that item i pays at `from` or above: at `from` itself or where a neighbour ends below it,
 * since nothing is gained between those. -1: there is no place. */
static int64_t least_above(const search *s, uint32_t i, int64_t from)
{
    const price_part *p = s->part;
    int64_t least = paid_at(s, i, pack_align_up(from, p->alignment[i]));
    for (uint32_t j = 0; j < s->n && least != 0; j++) {
        if (!s->placed[j] || s->weight[i][j] == 0) continue;
        const int64_t at = pack_align_up(s->offset[j] + p->size[j], p->alignment[i]);
        if (at < from) continue;
        const int64_t paid = paid_at(s, i, at);
        if (paid >= 0 && (least < 0 || paid < least)) least = paid;
    }
    return least;
}

/* Item i may come next at this offset, after the last one at `from`. */
static bool offer(const search *s, uint32_t i, int64_t at, int64_t from, uint32_t last,
                  choice *list, uint32_t *n)
{
    if (at < from || (at == from && last != OT_NONE && i < last)) return false;
    for (uint32_t k = *n; k-- > 0 && list[k].item == i;)
        if (list[k].at == at) return false;
    const int64_t paid = paid_at(s, i, at);
    if (paid >= 0) list[(*n)++] = (choice){at, paid, 0, i};
    return paid >= 0;
}

static uint32_t list_choices(const search *s, int64_t from, uint32_t last, choice *list)
{
    const price_part *p = s->part;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->placed[i] || (s->twin[i] != OT_NONE && !s->placed[s->twin[i]])) continue;
        offer(s, i, 0, from, last, list, &n);
        for (uint32_t j = 0; j < s->n; j++)
            if (s->placed[j] && s->weight[i][j] != 0)
                offer(s, i, pack_align_up(s->offset[j] + p->size[j], p->alignment[i]), from, last,
                      list, &n);
    }
    return n;
}

/* What item i pays at its top to those that are placed, which all begin at `from` or below it; -1:
 * it has no place. */
static int64_t least_at_top(const search *s, uint32_t i, int64_t from)
{
    const price_part *p = s->part;
    int64_t sum = 0;
    if (s->top[i] < from) return -1;
    for (uint32_t j = 0; j < s->n; j++) {
        if (!s->placed[j] || s->offset[j] + p->size[j] <= s->top[i]) continue;
        if (s->weight[i][j] < 0) return -1;
        sum += s->weight[i][j];
    }
    return sum;
}

/* Pairs that meet among m items of which no more than q lie one above the other, at least. */
static int64_t least_meetings(int64_t m, int64_t q)
{
    if (q <= 0 || m <= q) return 0;
    const int64_t each = m / q, more = m % q;
    return more * (each + 1) * each / 2 + (q - more) * each * (each - 1) / 2;
}

/* Least that the items to come pay among themselves at `from` or above: of those of a size or
 * more, each size taken by itself. */
static int64_t least_among(const search *s, int64_t from)
{
    const price_part *p = s->part;
    uint32_t items[ITEMS_MAX];
    int64_t best = 0, m = 0, spared = 0, weight = INT64_MAX; /* spared: pairs that may meet free */
    for (uint32_t k = 0; k < s->n_by_size; k++) {
        const uint32_t i = s->by_size[k];
        if (s->placed[i]) continue;
        for (int64_t j = 0; j < m; j++) {
            const int64_t w = s->weight[i][items[j]];
            spared += w == 0;
            if (w > 0) weight = ot_min(weight, w);
        }
        items[m++] = i;
        const int64_t pairs = least_meetings(m, (p->capacity - from) / p->size[i]) - spared;
        if (pairs > 0 && weight < INT64_MAX) best = ot_max(best, pairs * weight);
    }
    return best;
}

/* Least that all items to come pay at `from` or above, as far as it is below `limit`; -1: one has
 * no place. */
static int64_t bound_above(const search *s, int64_t from, int64_t limit)
{
    int64_t sum = least_among(s, from);
    for (uint32_t i = 0; i < s->n && sum < limit; i++) {
        if (s->placed[i]) continue;
        const int64_t least = s->has_fixed ? least_above(s, i, from) : least_at_top(s, i, from);
        if (least < 0) return -1;
        sum += least;
    }
    return sum;
}

static int compare_choices(const void *pa, const void *pb)
{
    const choice *a = pa, *b = pb;
    if (a->total != b->total) return a->total < b->total ? -1 : 1;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static void descend(search *s, int64_t from, uint32_t last, uint32_t left, int64_t cost)
{
    choice *list = s->lists + (size_t)left * CHOICES_MAX;
    if (left == 0) {
        s->least = cost;
        s->found = true;
        memcpy(s->best, s->offset, sizeof s->best);
        return;
    }
    const uint32_t n = list_choices(s, from, last, list);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        choice x = list[k];
        if (cost + x.paid >= s->least) continue;
        if (!pack_spend(s->budget, s->has_fixed ? 1 + s->n * s->n / 16 : 1 + s->n / 8)) {
            s->spent = true;
            return;
        }
        s->placed[x.item] = true;
        s->offset[x.item] = x.at;
        const int64_t bound = bound_above(s, x.at, s->least - cost - x.paid);
        s->placed[x.item] = false;
        x.total = cost + x.paid + bound;
        if (bound >= 0 && x.total < s->least) list[kept++] = x;
    }
    if (kept > 1) qsort(list, kept, sizeof *list, compare_choices);
    for (uint32_t k = 0; k < kept && list[k].total < s->least && !s->spent; k++) {
        s->placed[list[k].item] = true;
        s->offset[list[k].item] = list[k].at;
        descend(s, list[k].at, list[k].item, left - 1, cost + list[k].paid);
        s->placed[list[k].item] = false;
    }
}

/* The free items by size, and how high each may lie. */
static void read_tops(search *s)
{
    const price_part *p = s->part;
    for (uint32_t i = 0; i < s->n; i++) {
        const int64_t at = p->capacity - p->size[i];
        s->top[i] = at < 0 ? -1 : at - at % p->alignment[i];
        s->has_fixed = s->has_fixed || p->fixed[i];
        if (p->fixed[i]) continue;
        uint32_t k = s->n_by_size++;
        for (; k > 0 && p->size[s->by_size[k - 1]] < p->size[i]; k--)
            s->by_size[k] = s->by_size[k - 1];
        s->by_size[k] = i;
    }
}

ot_status price_search(price_part *p, pack_budget *b, ot_arena *a)
{
    uint32_t left = 0;
    if (p->n > ITEMS_MAX) return OT_OK;
    search *s = OT_NEW(a, search);
    if (!s) return OT_E_NOMEM;
    s->lists = OT_NEW_N(a, choice, ((size_t)p->n + 1) * CHOICES_MAX);
    if (!s->lists) return OT_E_NOMEM;
    s->part = p;
    s->budget = b;
    s->n = p->n;
    s->least = p->sum;
    read_weights(s);
    read_tops(s);
    find_twins(s);
    for (uint32_t k = 0; k < p->n; k++) {
        s->placed[k] = p->fixed[k];
        s->offset[k] = p->offset[k];
        left += !p->fixed[k];
    }
    descend(s, 0, OT_NONE, left, 0);
    if (s->found) {
        p->sum = s->least;
        memcpy(p->offset, s->best, p->n * sizeof *p->offset);
    }
    if (!s->spent) p->bound = p->sum;
    return OT_OK;
}
