/* The validator of packings: nothing is taken from the planners.
 *
 * Two items may share bytes only when no moment has both alive. A lifetime with k gaps is k + 1
 * stretches. They begin and end along the time, and those that are alive are kept in the order of
 * their offsets: none overlaps another, so one that begins can only overlap its neighbours.
 *
 *   offset   d [====]                   alive at the time of b: a, c
 *            c    [=========]           b begins: held against a below it and c above it
 *            b        [===]
 *            a [========]               Items of size 0 hold no byte and overlap nothing.
 *              ------> time
 */
#include "pack.h"

static const char *label(const char *const *names, uint32_t k, char *buf, size_t n)
{
    if (names)
        snprintf(buf, n, "%.200s", names[k]);
    else
        snprintf(buf, n, "%u", k);
    return buf;
}

/* Stretch k of the lifetime, 0 .. n_gaps; may be empty. */
static ot_span live_stretch(const ot_pack_item *x, uint32_t k)
{
    return (ot_span){k == 0 ? x->lower : x->gaps[k - 1].upper,
                     k == x->n_gaps ? x->upper : x->gaps[k].lower};
}

static ot_status check_item(const ot_pack_item *x, int64_t offset, int64_t capacity,
                            const char *name, ot_diag *d)
{
    long long at = offset, size = x->size;
    if (offset < 0)
        return ot_fail(d, OT_E_INPUT, "buffer %s: its offset %lld is negative", name, at);
    if (offset % x->alignment != 0)
        return ot_fail(d, OT_E_INPUT,
                       "buffer %s: its offset %lld is not a multiple of its alignment %lld", name,
                       at, (long long)x->alignment);
    if (x->fixed >= 0 && offset != x->fixed)
        return ot_fail(d, OT_E_INPUT, "buffer %s: it is at %lld but fixed at %lld", name, at,
                       (long long)x->fixed);
    if (offset > INT64_MAX - x->size)
        return ot_fail(d, OT_E_INPUT, "buffer %s: its end overflows (offset %lld, size %lld)", name,
                       at, size);
    if (capacity > 0 && offset + x->size > capacity)
        return ot_fail(d, OT_E_INPUT, "buffer %s: its end %lld is above the capacity %lld", name,
                       at + size, (long long)capacity);
    return OT_OK;
}

/* ---- along the time ---- */

typedef struct event {
    int64_t time;
    bool begins; /* ends come first: what ends at a moment is not alive there */
    uint32_t item;
} event;

static int compare_events(const void *pa, const void *pb)
{
    const event *a = pa, *b = pb;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->begins != b->begins) return a->begins ? 1 : -1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* What is alive, in the order of offsets. */
typedef struct alive {
    const ot_pack_problem *p;
    const int64_t *offsets;
    uint32_t *items; /* [n] */
    uint32_t n;
} alive;

/* How many of them lie below the offset. */
static uint32_t count_below(const alive *x, int64_t offset)
{
    uint32_t lo = 0, hi = x->n;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (x->offsets[x->items[mid]] < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static int64_t end_of(const alive *x, uint32_t item)
{
    return x->offsets[item] + x->p->items[item].size;
}

/* An item comes alive; of those that it overlaps one, or OT_NONE, and then it is among them. */
static uint32_t begin(alive *x, uint32_t item)
{
    const uint32_t at = count_below(x, x->offsets[item]);
    if (at > 0 && end_of(x, x->items[at - 1]) > x->offsets[item]) return x->items[at - 1];
    if (at < x->n && x->offsets[x->items[at]] < end_of(x, item)) return x->items[at];
    memmove(x->items + at + 1, x->items + at, (x->n - at) * sizeof *x->items);
    x->items[at] = item;
    x->n++;
    return OT_NONE;
}

static void end(alive *x, uint32_t item)
{
    const uint32_t at = count_below(x, x->offsets[item]);
    x->n--;
    memmove(x->items + at, x->items + at + 1, (x->n - at) * sizeof *x->items);
}

/* All beginnings and ends of stretches that hold a byte, in the order of time. */
static ot_status list_events(const ot_pack_problem *p, ot_arena *a, event **out, size_t *n)
{
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        for (uint32_t k = 0; k <= p->items[i].n_gaps && p->items[i].size > 0; k++) {
            const ot_span s = live_stretch(&p->items[i], k);
            if (s.lower >= s.upper) continue;
            if (!OT_PUSH(a, *out, *n, cap, ((event){s.lower, true, i})) ||
                !OT_PUSH(a, *out, *n, cap, ((event){s.upper, false, i})))
                return OT_E_NOMEM;
        }
    }
    if (*n > 1) qsort(*out, *n, sizeof **out, compare_events);
    return OT_OK;
}

static ot_status overlap_of(const alive *x, uint32_t i, uint32_t j, int64_t when,
                            const char *const *names, ot_diag *d)
{
    char a[256], b[256];
    const uint32_t low = i < j ? i : j, high = i < j ? j : i;
    return ot_fail(d, OT_E_INPUT,
                   "buffers %s [%lld, %lld) and %s [%lld, %lld) overlap at time %lld",
                   label(names, low, a, sizeof a), (long long)x->offsets[low],
                   (long long)end_of(x, low), label(names, high, b, sizeof b),
                   (long long)x->offsets[high], (long long)end_of(x, high), (long long)when);
}

static ot_status check_overlaps(const ot_pack_problem *p, const int64_t *offsets, ot_arena *a,
                                const char *const *names, ot_diag *d)
{
    event *all;
    size_t n;
    alive x = {.p = p, .offsets = offsets, .items = OT_NEW_N(a, uint32_t, p->n + 1u)};
    if (!x.items || list_events(p, a, &all, &n) != OT_OK) return ot_fail_nomem(d);
    for (size_t k = 0; k < n; k++) {
        if (!all[k].begins) {
            end(&x, all[k].item);
            continue;
        }
        const uint32_t other = begin(&x, all[k].item);
        if (other != OT_NONE) return overlap_of(&x, all[k].item, other, all[k].time, names, d);
    }
    return OT_OK;
}

ot_status ot_pack_check(const ot_pack_problem *p, const int64_t *offsets, int64_t capacity,
                        const char *const *names, ot_diag *d)
{
    char text[256];
    for (uint32_t i = 0; i < p->n; i++)
        OT_TRY(
            check_item(&p->items[i], offsets[i], capacity, label(names, i, text, sizeof text), d));
    ot_arena *a = ot_arena_new();
    const ot_status s = a ? check_overlaps(p, offsets, a, names, d) : ot_fail_nomem(d);
    ot_arena_free(a);
    return s;
}
