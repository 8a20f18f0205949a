/* The height below which no packing exists, by looking at single moments.
 *
 *   bytes ^     +--+
 *         |  +--+  +--+       At every moment the live items lie side by side, so their sizes add
 *                             up; the tallest moment is a
 *         |  |        +--+    lower bound. Only starts have to be looked at: nothing grows anywhere
 *                             else.
 *         +--+-----------+-->
 *
 * Alignment. When all alignments are multiples of g, so are all offsets, and every item but the
 * topmost takes a multiple of g. Which one is topmost is not known: the most that any live item
 * saves there is taken off again.
 */
#include "pack.h"

typedef struct change {
    int64_t time;
    uint32_t item;
    bool start; /* ends come first at equal times */
} change;

static int compare_changes(const void *pa, const void *pb)
{
    const change *a = pa, *b = pb;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->start != b->start) return a->start ? 1 : -1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Starts and ends of all live stretches. Returns their number; out: room for 2 * (n_gaps + 1) of
 * each item. */
static size_t list_changes(const ot_pack_problem *p, change *out)
{
    size_t n = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[k];
        int64_t from = x->lower;
        for (uint32_t g = 0; g <= x->n_gaps && x->size > 0; g++) {
            int64_t to = g < x->n_gaps ? x->gaps[g].lower : x->upper;
            if (from < to) {
                out[n++] = (change){from, k, true};
                out[n++] = (change){to, k, false};
            }
            if (g < x->n_gaps) from = x->gaps[g].upper;
        }
    }
    return n;
}

/* A tree of maxima over items: what each live one saves as the topmost. */
typedef struct savings {
    int64_t *most; /* [2 * n] leaves from n on, the root is 1 */
    uint32_t n;
} savings;

static void set_saving(savings *s, uint32_t item, int64_t value)
{
    size_t k = (size_t)s->n + item;
    s->most[k] = value;
    for (k /= 2; k >= 1; k /= 2) s->most[k] = ot_max(s->most[2 * k], s->most[2 * k + 1]);
}

/* Greatest common divisor of the alignments; 1 when nothing is placed. */
static int64_t common_alignment(const ot_pack_problem *p)
{
    int64_t g = 0;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->items[k].size > 0) g = ot_gcd(p->items[k].alignment, g);
    return g > 0 ? g : 1;
}

/* Largest fixed end; -1 on overflow. */
static int64_t fixed_end(const ot_pack_problem *p)
{
    int64_t most = 0, end;
    for (uint32_t k = 0; k < p->n; k++) {
        if (p->items[k].fixed < 0) continue;
        if (!ot_add_i64(p->items[k].fixed, p->items[k].size, &end)) return -1;
        most = ot_max(most, end);
    }
    return most;
}

/* Sweep over the changes; -1 on overflow. */
static int64_t tallest(const ot_pack_problem *p, const change *c, size_t n, savings *s)
{
    int64_t g = common_alignment(p), live = 0, most = 0;
    for (size_t k = 0; k < n; k++) {
        int64_t size = p->items[c[k].item].size, over = size % g, taken;
        if (!ot_add_i64(size, over ? g - over : 0, &taken)) return -1;
        if (!ot_add_i64(live, c[k].start ? taken : -taken, &live)) return -1;
        set_saving(s, c[k].item, c[k].start ? taken - size : 0);
        if (c[k].start) most = ot_max(most, live - s->most[1]);
    }
    return most;
}

ot_status ot_pack_find_bound(const ot_pack_problem *p, int64_t *out)
{
    size_t most = 0;
    int64_t bound = fixed_end(p), live = -1;
    for (uint32_t k = 0; k < p->n; k++) most += 2 * ((size_t)p->items[k].n_gaps + 1);
    *out = bound;
    if (bound < 0 || p->n == 0) return OT_OK;
    ot_arena *a = ot_arena_new();
    change *changes = a ? OT_NEW_N(a, change, most) : NULL;
    savings s = {a ? OT_NEW_N(a, int64_t, 2 * (size_t)p->n) : NULL, p->n};
    bool ok = changes && s.most;
    if (ok) {
        size_t n = list_changes(p, changes);
        qsort(changes, n, sizeof *changes, compare_changes);
        live = tallest(p, changes, n, &s);
    }
    ot_arena_free(a);
    *out = live < 0 ? -1 : ot_max(bound, live);
    return ok ? OT_OK : OT_E_NOMEM;
}

int64_t ot_pack_lower_bound(const ot_pack_problem *p)
{
    int64_t bound;
    return ot_pack_find_bound(p, &bound) == OT_OK ? bound : -1;
}

/* The next live stretch of x from gap *g on; false when there is none. */
static bool next_stretch(const ot_pack_item *x, uint32_t *g, ot_span *out)
{
    while (*g <= x->n_gaps) {
        out->lower = *g > 0 ? x->gaps[*g - 1].upper : x->lower;
        out->upper = *g < x->n_gaps ? x->gaps[*g].lower : x->upper;
        if (out->lower < out->upper) return true;
        ++*g;
    }
    return false;
}

bool ot_pack_meet(const ot_pack_item *a, const ot_pack_item *b)
{
    uint32_t i = 0, j = 0;
    ot_span x, y;
    if (a->lower >= b->upper || b->lower >= a->upper) return false;
    if (a->n_gaps == 0 && b->n_gaps == 0) return true;
    while (next_stretch(a, &i, &x) && next_stretch(b, &j, &y)) {
        if (x.lower < y.upper && y.lower < x.upper) return true;
        if (x.upper <= y.upper)
            i++;
        else
            j++;
    }
    return false;
}
