/* The validator of packings: every pair looked at, nothing taken from the planners.
 *
 * Two items may share bytes only when no moment has both alive. A lifetime with k gaps is k + 1
 * stretches, and those of one item are held against those of the other:
 *
 *   x  ====   =====     ===        Items of size 0 hold no byte and overlap nothing.
 *   y       =         =    ====
 *                     ^ both
 *
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

/* Some moment at which both are alive? Step by step past the stretch that ends first. */
static bool both_alive(const ot_pack_item *x, const ot_pack_item *y, int64_t *when)
{
    for (uint32_t i = 0, j = 0; i <= x->n_gaps && j <= y->n_gaps;) {
        ot_span a = live_stretch(x, i), b = live_stretch(y, j);
        *when = a.lower > b.lower ? a.lower : b.lower;
        if (*when < a.upper && *when < b.upper) return true;
        if (a.upper < b.upper)
            i++;
        else
            j++;
    }
    return false;
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

ot_status ot_pack_check(const ot_pack_problem *p, const int64_t *offsets, int64_t capacity,
                        const char *const *names, ot_diag *d)
{
    char a[256], b[256];
    int64_t when;
    for (uint32_t i = 0; i < p->n; i++)
        OT_TRY(check_item(&p->items[i], offsets[i], capacity, label(names, i, a, sizeof a), d));
    for (uint32_t i = 0; i < p->n; i++) {
        const ot_pack_item x = p->items[i];
        int64_t from = offsets[i], to = from + x.size;
        for (uint32_t j = 0; j < i; j++) {
            const ot_pack_item *y = &p->items[j];
            int64_t at = offsets[j];
            /* `&`: with n^2 pairs, branches that cannot be foreseen are what costs */
            if (((from < at + y->size) & (at < to) & (x.lower < y->upper) & (y->lower < x.upper)) ==
                0)
                continue;
            if (x.size == 0 || y->size == 0 || !both_alive(&x, y, &when)) continue;
            return ot_fail(
                d, OT_E_INPUT, "buffers %s [%lld, %lld) and %s [%lld, %lld) overlap at time %lld",
                label(names, j, b, sizeof b), (long long)at, (long long)(at + y->size),
                label(names, i, a, sizeof a), (long long)from, (long long)to, (long long)when);
        }
    }
    return OT_OK;
}
