/* Sets of times as ascending, disjoint spans that do not touch. */
#include "lifetime_internal.h"

bool lt_spans_hold(const lt_spans *s, int64_t x)
{
    size_t low = 0, high = s->n; /* the first span that ends after x */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (s->at[mid].upper <= x)
            low = mid + 1;
        else
            high = mid;
    }
    return low < s->n && s->at[low].lower <= x;
}

bool lt_spans_meet(const lt_spans *a, const lt_spans *b)
{
    size_t i = 0, j = 0;
    while (i < a->n && j < b->n) {
        if (a->at[i].upper <= b->at[j].lower)
            i++;
        else if (b->at[j].upper <= a->at[i].lower)
            j++;
        else
            return true;
    }
    return false;
}

bool lt_spans_join(ot_arena *arena, lt_spans *a, const lt_spans *b)
{
    if (!b->n) return true;
    size_t both = a->n + b->n;
    if (both > a->cap && !ot_grow(arena, (void **)&a->at, &a->cap, both, sizeof *a->at))
        return false;
    /* a moves to the end and is read from there: what is written never passes what is still to
     * be read. */
    const ot_span *old = memmove(a->at + b->n, a->at, a->n * sizeof *a->at);
    size_t n_old = a->n;
    a->n = 0;
    for (size_t i = 0, j = 0; i < n_old || j < b->n;) {
        ot_span s = j == b->n || (i < n_old && old[i].lower <= b->at[j].lower) ? old[i++]
                                                                               : b->at[j++];
        ot_span *last = a->n ? &a->at[a->n - 1] : NULL;
        if (last && s.lower <= last->upper)
            last->upper = ot_max(last->upper, s.upper);
        else
            a->at[a->n++] = s;
    }
    return true;
}
