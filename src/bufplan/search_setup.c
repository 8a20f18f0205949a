/* From a packing problem to the state of the exact search: units, sections, boxes.
 *
 * Units. Where all alignments and given offsets are multiples of g, all offsets are, and a box may as well end at the next multiple of
 * g: sizes are rounded up, and only the capacity sees the true end. In a packing where no box can move down by itself, offsets are
 * sums of sizes, rounded up to alignments; so all lengths are divided by what the sizes, given offsets and other alignments share.
 *
 * Sections. Between two moments at which something ends after something has begun, the boxes alive are among those alive at one of
 * them, so only those moments matter:
 *
 *        a a a a a
 *          b b         c c c
 *              d d d d d
 *            ^   ^       ^        {a b}, {a d}, {d c}
 *
 * Fixed boxes are walls: the others know the offsets that are taken, and a fixed box is placed like any other when the floor under it
 * has come up to its offset.
 */
#include "search_internal.h"

typedef struct event {
    int64_t time;
    bool start; /* ends come first */
    uint32_t item, span;
} event;

static int compare_events(const void *pa, const void *pb)
{
    const event *a = pa, *b = pb;
    if (a->time != b->time) return a->time < b->time ? -1 : 1;
    if (a->start != b->start) return a->start ? 1 : -1;
    if (a->item != b->item) return a->item < b->item ? -1 : 1;
    return a->span < b->span ? -1 : a->span > b->span;
}

/* Stretches in which the item is alive; out: room for n_gaps + 1. */
static uint32_t live_spans(const ot_pack_item *x, ot_span *out)
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

/* ---- units ---- */

/* What all offsets are multiples of; set: rounded sizes of the shapes are wanted in real_size's stead. */
static int64_t common_alignment(const ot_pack_problem *p)
{
    int64_t g = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        if (p->items[k].size == 0) continue;
        g = ot_gcd(p->items[k].alignment, g);
        if (p->items[k].fixed > 0) g = ot_gcd(p->items[k].fixed, g);
    }
    return g > 0 ? g : 1;
}

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

static int64_t find_unit(const ot_pack_problem *p, int64_t align)
{
    int64_t unit = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        if (p->items[k].size == 0) continue;
        unit = ot_gcd(round_up(p->items[k].size, align), unit);
        if (p->items[k].fixed > 0) unit = ot_gcd(p->items[k].fixed, unit);
    }
    if (unit == 0) return 1;
    for (bool changed = true; changed;) { /* an alignment that divides the unit asks for nothing */
        changed = false;
        for (uint32_t k = 0; k < p->n; k++) {
            if (p->items[k].size == 0 || unit % p->items[k].alignment == 0) continue;
            int64_t less = ot_gcd(p->items[k].alignment, unit);
            changed |= less != unit;
            unit = less;
        }
    }
    return unit;
}

/* ---- boxes ---- */

typedef struct builder {
    search *s;
    const ot_pack_problem *p;
    ot_span *ranges;      /* of sections, [n_ranges] in order of items; empty when the item is left out */
    uint32_t *range_at;   /* [p->n + 1] */
    search_shape *shapes; /* [n] before sorting */
} builder;

/* Sweep over the events; fills ranges and n_sections. */
static bool find_sections(builder *b)
{
    const ot_pack_problem *p = b->p;
    ot_arena *a = b->s->arena;
    size_t most = 0, n = 0;
    for (uint32_t k = 0; k < p->n; k++) most += p->items[k].n_gaps + (size_t)1;
    ot_span *spans = OT_NEW_N(a, ot_span, most + 1);
    event *events = OT_NEW_N(a, event, 2 * most + 1);
    b->ranges = OT_NEW_N(a, ot_span, most + 1);
    b->range_at = OT_NEW_N(a, uint32_t, p->n + (size_t)1);
    if (most > UINT32_MAX / 2 || !spans || !events || !b->ranges || !b->range_at) return false;
    for (uint32_t k = 0, at = 0; k < p->n; k++) {
        uint32_t m = p->items[k].size > 0 ? live_spans(&p->items[k], spans) : 0;
        for (uint32_t j = 0; j < m; j++) {
            events[n++] = (event){spans[j].lower, true, k, at + j};
            events[n++] = (event){spans[j].upper, false, k, at + j};
        }
        at += m;
        b->range_at[k + 1] = at;
    }
    qsort(events, n, sizeof *events, compare_events);
    bool fresh = false; /* something has begun since the last section */
    for (size_t k = 0; k < n; k++) {
        ot_span *range = &b->ranges[events[k].span];
        if (events[k].start) {
            range->lower = b->s->n_sections;
            fresh = true;
            continue;
        }
        if (fresh) b->s->n_sections++;
        fresh = false;
        range->upper = b->s->n_sections;
    }
    return true;
}

static bool set_sections(builder *b, search_shape *x)
{
    uint32_t from = b->range_at[x->item], to = b->range_at[x->item + 1], n = 0;
    for (uint32_t r = from; r < to; r++) n += (uint32_t)(b->ranges[r].upper - b->ranges[r].lower);
    uint32_t *sections = OT_NEW_N(b->s->arena, uint32_t, n + (size_t)1);
    if (!sections) return false;
    x->sections = sections;
    for (uint32_t r = from; r < to; r++)
        for (int64_t t = b->ranges[r].lower; t < b->ranges[r].upper; t++) sections[x->n_sections++] = (uint32_t)t;
    return true;
}

static bool make_shapes(builder *b, int64_t align)
{
    search *s = b->s;
    b->shapes = OT_NEW_N(s->arena, search_shape, b->p->n + (size_t)1);
    if (!b->shapes) return false;
    for (uint32_t k = 0; k < b->p->n; k++) {
        const ot_pack_item *x = &b->p->items[k];
        if (b->range_at[k] == b->range_at[k + 1]) continue;
        search_shape *y = &b->shapes[s->n++];
        *y = (search_shape){.item = k, .real_size = x->size, .align = 1, .fixed = -1, .hint = -1};
        if (s->unit % x->alignment) y->align = x->alignment / s->unit;
        if (x->fixed >= 0) y->fixed = x->fixed / s->unit;
        if (x->hint >= 0 && x->hint % s->unit == 0) y->hint = x->hint / s->unit;
        y->highest = round_up(x->size, align) / s->unit; /* the size, until there are boxes */
        if (!set_sections(b, y)) return false;
    }
    return true;
}

/* Equal in everything that the search sees give 0 but for the item. */
static int compare_alike(const search_shape *a, const search_shape *b)
{
    int64_t x[] = {a->sections[0], a->sections[a->n_sections - 1], b->highest, a->n_sections, a->real_size, a->align, a->fixed, a->hint};
    int64_t y[] = {b->sections[0], b->sections[b->n_sections - 1], a->highest, b->n_sections, b->real_size, b->align, b->fixed, b->hint};
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        if (x[k] != y[k]) return x[k] < y[k] ? -1 : 1;
    return memcmp(a->sections, b->sections, a->n_sections * sizeof *a->sections);
}

static int compare_shapes(const void *pa, const void *pb)
{
    const search_shape *a = pa, *b = pb;
    int order = compare_alike(a, b);
    if (order) return order;
    return a->item < b->item ? -1 : a->item > b->item;
}

static bool make_boxes(builder *b)
{
    search *s = b->s;
    s->shape = b->shapes;
    s->box = OT_NEW_N(s->arena, search_box, s->n + (size_t)1);
    s->low = OT_NEW_N(s->arena, int64_t, s->n + (size_t)1);
    s->size = OT_NEW_N(s->arena, int64_t, s->n + (size_t)1);
    if (!s->box || !s->low || !s->size) return false;
    qsort(s->shape, s->n, sizeof *s->shape, compare_shapes);
    for (uint32_t k = 0; k < s->n; k++) {
        search_shape *x = &s->shape[k];
        uint32_t first = x->sections[0], last = x->sections[x->n_sections - 1] + 1;
        s->size[k] = x->highest;
        s->box[k] = (search_box){.first = first, .last = last, .gappy = last - first != x->n_sections};
        s->box[k].twin = k > 0 && compare_alike(&s->shape[k - 1], x) == 0 ? k - 1 : OT_NONE;
        x->hash = search_mix((k + 1) * 0x9e3779b97f4a7c15u);
    }
    return true;
}

/* ---- sections ---- */

static bool fill_sections(search *s)
{
    size_t total = 0;
    s->section = OT_NEW_N(s->arena, search_section, s->n_sections + (size_t)1);
    if (!s->section) return false;
    for (uint32_t b = 0; b < s->n; b++) {
        total += s->shape[b].n_sections;
        for (uint32_t k = 0; k < s->shape[b].n_sections; k++) s->section[s->shape[b].sections[k]].end++;
    }
    uint32_t *lists = OT_NEW_N(s->arena, uint32_t, total + 1);
    if (!lists) return false;
    for (uint32_t t = 0; t < s->n_sections; t++) {
        search_section *x = &s->section[t];
        x->list = lists;
        lists += x->end;
        x->end = 0;
        x->weight = 1;
        x->salt = search_mix(~(t * (uint64_t)0xd1342543de82ef95u)) | 1;
    }
    for (uint32_t b = 0; b < s->n; b++) {
        for (uint32_t k = 0; k < s->shape[b].n_sections; k++) {
            search_section *x = &s->section[s->shape[b].sections[k]];
            x->list[x->end++] = b;
            x->rest += s->size[b];
            x->set ^= s->shape[b].hash;
        }
        for (uint32_t t = s->box[b].first; t + 1 < s->box[b].last; t++) s->section[t].crossing++;
    }
    return true;
}

/* ---- fixed boxes ---- */

static int compare_spans(const void *pa, const void *pb)
{
    const ot_span *a = pa, *b = pb;
    if (a->lower != b->lower) return a->lower < b->lower ? -1 : 1;
    return a->upper < b->upper ? -1 : a->upper > b->upper;
}

/* Offsets that fixed boxes take from box b. seen: [n] the last box that asked about each. */
static bool find_taken(search *s, uint32_t b, uint32_t *seen)
{
    search_shape *x = &s->shape[b];
    ot_span *taken = NULL;
    size_t n = 0, cap = 0;
    for (uint32_t k = 0; k < x->n_sections; k++) {
        const search_section *t = &s->section[x->sections[k]];
        for (uint32_t j = t->start; j < t->end; j++) {
            uint32_t f = t->list[j];
            if (s->shape[f].fixed < 0 || seen[f] == b) continue;
            seen[f] = b;
            ot_span span = {s->shape[f].fixed, s->shape[f].fixed + s->size[f]};
            if (!OT_PUSH(s->arena, taken, n, cap, span)) return false;
        }
    }
    if (n == 0) return true;
    qsort(taken, n, sizeof *taken, compare_spans);
    uint32_t kept = 0;
    for (size_t k = 1; k < n; k++) {
        if (taken[k].lower <= taken[kept].upper) taken[kept].upper = ot_max(taken[kept].upper, taken[k].upper);
        else taken[++kept] = taken[k];
    }
    x->taken = taken;
    x->n_taken = kept + 1;
    return true;
}

/* Limits and lowest offsets. *fits: false when some box fits nowhere. */
static bool set_limits(search *s, int64_t capacity, bool *fits)
{
    bool any_fixed = false;
    uint32_t *seen = OT_NEW_N(s->arena, uint32_t, s->n + (size_t)1);
    if (!seen) return false;
    for (uint32_t b = 0; b < s->n; b++) {
        search_shape *x = &s->shape[b];
        seen[b] = OT_NONE;
        any_fixed |= x->fixed >= 0;
        if (x->real_size > capacity) {
            *fits = false;
            return true;
        }
        x->highest = (capacity - x->real_size) / s->unit;
        s->capacity = ot_max(s->capacity, x->highest + s->size[b]);
    }
    s->plain = true;
    for (uint32_t b = 0; b < s->n; b++) {
        search_shape *x = &s->shape[b];
        if (x->fixed >= 0) {
            *fits &= x->fixed <= x->highest;
            x->highest = x->fixed;
        } else if (any_fixed && !find_taken(s, b, seen)) {
            return false;
        }
        s->box[b].special = x->align > 1 || x->fixed >= 0 || x->n_taken > 0 || x->highest + s->size[b] < s->capacity;
        s->plain &= !s->box[b].special;
        s->low[b] = search_lowest(s, b, 0);
        *fits &= s->low[b] <= x->highest;
    }
    return true;
}

static bool make_arrays(search *s)
{
    size_t n = s->n + (size_t)1, t = s->n_sections + (size_t)1;
    s->offset = OT_NEW_N(s->arena, int64_t, n);
    s->phase = OT_NEW_N(s->arena, int64_t, n);
    s->key = OT_NEW_N(s->arena, uint64_t, n);
    s->rank = OT_NEW_N(s->arena, uint64_t, n);
    s->floor = OT_NEW_N(s->arena, int64_t, t);
    s->raw = OT_NEW_N(s->arena, int64_t, t);
    s->run_first = OT_NEW_N(s->arena, uint32_t, t);
    s->run_last = OT_NEW_N(s->arena, uint32_t, t);
    if (!s->floor || !s->raw || !s->offset || !s->phase || !s->key || !s->rank || !s->run_first || !s->run_last) return false;
    for (uint32_t b = 0; b < s->n; b++) s->phase[b] = -1;
    return true;
}

static bool build(search *s, const ot_pack_problem *p, int64_t capacity, bool *fits)
{
    builder b = {.s = s, .p = p};
    int64_t align = common_alignment(p);
    s->unit = find_unit(p, align);
    return find_sections(&b) && make_shapes(&b, align) && make_boxes(&b) && fill_sections(s) && set_limits(s, capacity, fits) &&
           (!*fits || (make_arrays(s) && search_learn_init(s)));
}

ot_status search_new(const ot_pack_problem *p, int64_t capacity, uint32_t rules, pack_budget *b, search **out, pack_answer *answer)
{
    ot_arena *a = ot_arena_new();
    search *s = a ? OT_NEW(a, search) : NULL;
    bool fits = true;
    *out = NULL;
    *answer = PACK_LIMIT;
    if (s) {
        s->arena = a;
        s->budget = b;
        s->rules = rules;
        s->jumps = (rules & OT_PACK_DECOMPOSE) && (rules & OT_PACK_SECTIONS);
    }
    if (!s || !build(s, p, capacity, &fits) || !fits) {
        ot_arena_free(a);
        if (fits) return OT_E_NOMEM;
        *answer = PACK_NONE;
        return OT_OK;
    }
    *out = s;
    return OT_OK;
}
