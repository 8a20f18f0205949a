/* State of the valley search: time cut into sections, items placed and taken back.
 *
 * Sections. Only the moments matter at which the set of live items is largest: between two of
 * them the set is contained in one of theirs. So a section begins at the start of a lifetime and
 * is kept when some lifetime ends before the next start:
 *
 *        a a a a a
 *          b b         c c c
 *              d d d d d
 *      ----|---^-|-----^-------   kept: {a b}, {a d}, {d c}
 *
 * Two items are alive together exactly when they share a section; at most n sections remain.
 */
#include "valley.h"

uint64_t valley_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- sections ---- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Live stretches of an item: its lifetime less its gaps. Returns their number; out: [n_gaps + 1].
 */
static uint32_t stretches(const ot_pack_item *x, ot_span *out)
{
    uint32_t n = 0;
    int64_t from = x->lower;
    for (uint32_t g = 0; g < x->n_gaps; g++) {
        if (x->gaps[g].lower > from) out[n++] = (ot_span){from, x->gaps[g].lower};
        from = x->gaps[g].upper;
    }
    if (x->upper > from) out[n++] = (ot_span){from, x->upper};
    return n;
}

static uint32_t unique(int64_t *v, uint32_t n)
{
    uint32_t kept = 0;
    qsort(v, n, sizeof *v, compare_i64);
    for (uint32_t k = 0; k < n; k++)
        if (kept == 0 || v[kept - 1] != v[k]) v[kept++] = v[k];
    return kept;
}

/* First index with v[index] >= x, or n. */
static uint32_t at_least(const int64_t *v, uint32_t n, int64_t x)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (v[mid] < x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Moments that stand for the sections, ascending. spans: all stretches of all items. */
static uint32_t find_moments(const ot_span *spans, uint32_t n, ot_arena *a, int64_t **out)
{
    int64_t *starts = OT_NEW_N(a, int64_t, n + 1u), *ends = OT_NEW_N(a, int64_t, n + 1u);
    uint32_t kept = 0;
    if (!starts || !ends) return OT_NONE;
    for (uint32_t k = 0; k < n; k++) {
        starts[k] = spans[k].lower;
        ends[k] = spans[k].upper;
    }
    uint32_t n_starts = unique(starts, n), n_ends = unique(ends, n);
    for (uint32_t k = 0; k < n_starts; k++) {
        uint32_t e = at_least(ends, n_ends, starts[k] + 1);
        if (e < n_ends && (k + 1 == n_starts || ends[e] <= starts[k + 1]))
            starts[kept++] = starts[k];
    }
    *out = starts;
    return kept;
}

static bool set_sections(valley *s, valley_item *it, const ot_span *spans, uint32_t n,
                         const int64_t *moments)
{
    uint32_t total = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint32_t *list = pass ? OT_NEW_N(s->arena, uint32_t, total + 1u) : NULL;
        if (pass && !list) return false;
        total = 0;
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t t = at_least(moments, s->n_sections, spans[k].lower);
                 t < s->n_sections && moments[t] < spans[k].upper; t++, total++)
                if (list) list[total] = t;
        if (list) it->sections = list;
    }
    it->n_sections = total;
    it->first = total ? it->sections[0] : 0;
    it->last = total ? it->sections[total - 1] + 1 : 0;
    it->gappy = it->last - it->first != total;
    return true;
}

/* ---- set-up ---- */

static bool alike(const valley_item *a, const valley_item *b)
{
    return a->size == b->size && a->align == b->align && a->fixed < 0 && b->fixed < 0 &&
           a->hint == b->hint && a->n_sections == b->n_sections &&
           memcmp(a->sections, b->sections, a->n_sections * sizeof *a->sections) == 0;
}

/* Items ascending by first section, then the longer one, then the larger, then as given: equal
 * items become neighbours. */
static int compare_items(const void *pa, const void *pb)
{
    const valley_item *a = pa, *b = pb;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->last != b->last) return a->last > b->last ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->hash < b->hash ? -1 : a->hash > b->hash; /* here still the index */
}

static bool make_items(valley *s, const ot_pack_problem *p)
{
    uint32_t n_spans = 0, n_all = 0;
    for (uint32_t k = 0; k < p->n; k++) n_all += p->items[k].n_gaps + 1u;
    ot_span *spans = OT_NEW_N(s->arena, ot_span, n_all + 1u);
    int64_t *moments;
    if (!spans) return false;
    for (uint32_t k = 0; k < p->n; k++) n_spans += stretches(&p->items[k], spans + n_spans);
    s->n_sections = find_moments(spans, n_spans, s->arena, &moments);
    if (s->n_sections == OT_NONE) return false;
    n_spans = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        const ot_pack_item *x = &p->items[k];
        valley_item *it = &s->items[k];
        uint32_t n = x->size > 0 ? stretches(x, spans + n_spans) : 0;
        *it = (valley_item){
            .size = x->size, .align = x->alignment, .fixed = x->fixed, .hint = x->hint, .hash = k};
        if (!set_sections(s, it, spans + n_spans, n, moments)) return false;
        n_spans += n;
        s->gaps |= it->gappy;
        s->unit = ot_gcd(ot_gcd(x->size, x->alignment > 1 ? x->alignment : 0), s->unit);
        if (x->fixed > 0) s->unit = ot_gcd(x->fixed, s->unit);
    }
    qsort(s->items, s->n, sizeof *s->items, compare_items);
    for (uint32_t k = 0; k < s->n; k++) {
        s->source[k] = (uint32_t)s->items[k].hash;
        s->items[k].hash = valley_mix(s->items[k].hash + 0x1234567u);
        s->items[k].twin = k > 0 && alike(&s->items[k - 1], &s->items[k]) ? k - 1 : OT_NONE;
    }
    if (s->unit == 0) s->unit = 1;
    return true;
}

static bool make_arrays(valley *s)
{
    ot_arena *a = s->arena;
    uint32_t n = s->n + 1u, t = s->n_sections + 1u, levels = 1;
    while ((1u << levels) <= s->n_sections) levels++;
    s->placed = OT_NEW_N(a, bool, n);
    s->offset = OT_NEW_N(a, int64_t, n);
    s->low = OT_NEW_N(a, int64_t, n);
    s->flat = OT_NEW_N(a, bool, n);
    s->key = OT_NEW_N(a, double, n);
    s->floor = OT_NEW_N(a, int64_t, t);
    s->rest = OT_NEW_N(a, int64_t, t);
    s->count = OT_NEW_N(a, uint32_t, t);
    s->rest_hash = OT_NEW_N(a, uint64_t, t);
    s->level_end = OT_NEW_N(a, uint32_t, t);
    s->highs = OT_NEW_N(a, int64_t, (size_t)levels * t);
    s->lows = OT_NEW_N(a, int64_t, (size_t)levels * t);
    s->right = OT_NEW_N(a, int64_t, t);
    s->options = OT_NEW_N(a, uint32_t, t);
    s->top_left = OT_NEW_N(a, int64_t, t + 1u);
    s->top_right = OT_NEW_N(a, int64_t, t + 1u);
    s->weight = OT_NEW_N(a, uint32_t, t);
    s->stack = OT_NEW_N(a, uint32_t, n);
    return s->placed && s->offset && s->low && s->flat && s->key && s->floor && s->rest &&
           s->count && s->rest_hash && s->level_end && s->highs && s->lows && s->right &&
           s->options && s->top_left && s->top_right && s->weight && s->stack &&
           valley_memo_make(s);
}

ot_status valley_new(const ot_pack_problem *p, int64_t capacity, uint32_t rules, valley **out)
{
    ot_arena *a = ot_arena_new();
    valley *s = a ? OT_NEW(a, valley) : NULL;
    *out = NULL;
    if (!s) {
        ot_arena_free(a);
        return OT_E_NOMEM;
    }
    s->arena = a;
    s->rules = rules;
    s->capacity = capacity;
    s->n = p->n;
    s->items = OT_NEW_N(a, valley_item, p->n + 1u);
    s->source = OT_NEW_N(a, uint32_t, p->n + 1u);
    if (!s->items || !s->source || !make_items(s, p) || !make_arrays(s)) {
        ot_arena_free(a);
        return OT_E_NOMEM;
    }
    valley_reset(s);
    *out = s;
    return OT_OK;
}

void valley_reset(valley *s)
{
    s->n_trail = s->n_stack = 0;
    s->n_pool = 0;
    memset(s->placed, 0, s->n * sizeof *s->placed);
    for (uint32_t t = 0; t < s->n_sections; t++) {
        s->floor[t] = s->rest[t] = 0;
        s->count[t] = 0;
        s->rest_hash[t] = 0;
    }
    for (uint32_t k = 0; k < s->n; k++)
        for (uint32_t j = 0; j < s->items[k].n_sections; j++) {
            uint32_t t = s->items[k].sections[j];
            s->rest[t] += s->items[k].size;
            s->count[t]++;
            s->rest_hash[t] ^= s->items[k].hash;
        }
}

/* ---- placing and taking back ---- */

bool valley_raise(valley *s, uint32_t section, int64_t to)
{
    valley_undo u = {section, s->floor[section]};
    if (!OT_PUSH(s->arena, s->trail, s->n_trail, s->cap_trail, u)) return !(s->nomem = true);
    s->floor[section] = to;
    return true;
}

bool valley_put(valley *s, uint32_t item, int64_t offset)
{
    const valley_item *it = &s->items[item];
    for (uint32_t j = 0; j < it->n_sections; j++) {
        uint32_t t = it->sections[j];
        if (!valley_raise(s, t, offset + it->size)) return false;
    }
    for (uint32_t j = 0; j < it->n_sections; j++) {
        uint32_t t = it->sections[j];
        s->rest[t] -= it->size;
        s->count[t]--;
        s->rest_hash[t] ^= it->hash;
    }
    s->placed[item] = true;
    s->offset[item] = offset;
    s->stack[s->n_stack++] = item;
    return true;
}

void valley_undo_to(valley *s, size_t n_trail, uint32_t n_stack)
{
    while (s->n_trail > n_trail) {
        s->n_trail--;
        s->floor[s->trail[s->n_trail].section] = s->trail[s->n_trail].floor;
    }
    while (s->n_stack > n_stack) {
        uint32_t item = s->stack[--s->n_stack];
        const valley_item *it = &s->items[item];
        s->placed[item] = false;
        for (uint32_t j = 0; j < it->n_sections; j++) {
            uint32_t t = it->sections[j];
            s->rest[t] += it->size;
            s->count[t]++;
            s->rest_hash[t] ^= it->hash;
        }
    }
}
