/* A priced problem as a graph: edges between what is alive together and between pairs with a
 * price, split into the parts that they connect. */
#include "pack_reduce.h"
#include "price.h"

#define ITEMS_MAX 16384   /* above, or */
#define EDGES_MAX 6000000 /* ..., the graph is too large to be worth its memory */

typedef struct link {
    uint32_t a, b; /* a < b */
    int64_t weight;
    bool hard;
} link;

typedef struct builder {
    const ot_pack_problem *p;
    ot_arena *arena;
    link *links;
    size_t n, cap;
    uint32_t *root; /* [p->n] of the sets that the links connect */
    uint32_t *part; /* [p->n] number of its part, OT_NONE: in none */
    uint32_t *at;   /* [p->n] index in its part */
} builder;

static int compare_starts(const void *pa, const void *pb)
{
    const ot_pack_item *const *a = pa, *const *b = pb;
    if ((*a)->lower != (*b)->lower) return (*a)->lower < (*b)->lower ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

static ot_status add_link(builder *s, uint32_t a, uint32_t b, int64_t weight, bool hard)
{
    const link x = {a < b ? a : b, a < b ? b : a, weight, hard};
    return OT_PUSH(s->arena, s->links, s->n, s->cap, x) ? OT_OK : OT_E_NOMEM;
}

/* Hard edges: along the time, each item with those that are alive when it begins. */
static ot_status link_alive(builder *s, bool *whole)
{
    const ot_pack_problem *p = s->p;
    const ot_pack_item **order = OT_NEW_N(s->arena, const ot_pack_item *, p->n + 1u);
    const ot_pack_item **alive = OT_NEW_N(s->arena, const ot_pack_item *, p->n + 1u);
    uint32_t n = 0, n_alive = 0;
    if (!order || !alive) return OT_E_NOMEM;
    for (uint32_t k = 0; k < p->n; k++)
        if (pack_takes_part(&p->items[k])) order[n++] = &p->items[k];
    if (n > 1) qsort(order, n, sizeof *order, compare_starts);
    for (uint32_t k = 0; k < n && *whole; k++) {
        uint32_t kept = 0;
        for (uint32_t j = 0; j < n_alive; j++) {
            if (alive[j]->upper <= order[k]->lower) continue;
            alive[kept++] = alive[j];
            if (!ot_pack_meet(alive[j], order[k])) continue;
            OT_TRY(add_link(s, (uint32_t)(alive[j] - p->items), (uint32_t)(order[k] - p->items), 0,
                            true));
        }
        alive[kept] = order[k];
        n_alive = kept + 1;
        *whole = s->n <= EDGES_MAX;
    }
    return OT_OK;
}

static int compare_links(const void *pa, const void *pb)
{
    const link *x = pa, *y = pb;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    if (x->b != y->b) return x->b < y->b ? -1 : 1;
    return x->hard < y->hard ? 1 : -(x->hard > y->hard); /* hard ones first */
}

/* One edge for two items: a hard one rules, prices add up. */
static void merge_links(builder *s)
{
    size_t n = 0;
    if (s->n > 1) qsort(s->links, s->n, sizeof *s->links, compare_links);
    for (size_t k = 0; k < s->n; k++) {
        link *last = n > 0 ? &s->links[n - 1] : NULL;
        if (!last || last->a != s->links[k].a || last->b != s->links[k].b)
            s->links[n++] = s->links[k];
        else if (!last->hard)
            last->weight += s->links[k].weight;
    }
    s->n = n;
}

static uint32_t root_of(builder *s, uint32_t k)
{
    while (s->root[k] != k) k = s->root[k] = s->root[s->root[k]];
    return k;
}

/* Number the parts that a free item and a price are in, and count what each has. */
static ot_status number_parts(builder *s, price_graph *g, uint32_t **n_edges)
{
    const uint32_t n = s->p->n;
    bool *priced = OT_NEW_N(s->arena, bool, n + 1u);
    if (!priced) return OT_E_NOMEM;
    for (size_t k = 0; k < s->n; k++) {
        const uint32_t a = root_of(s, s->links[k].a), b = root_of(s, s->links[k].b);
        if (a < b) s->root[b] = a;
        if (b < a) s->root[a] = b;
    }
    for (size_t k = 0; k < s->n; k++)
        if (!s->links[k].hard) priced[root_of(s, s->links[k].a)] = true;
    for (uint32_t k = 0; k < n; k++)
        s->part[k] = root_of(s, k) == k && priced[k] ? (uint32_t)g->n++ : OT_NONE;
    g->parts = OT_NEW_N(s->arena, price_part, g->n + 1u);
    *n_edges = OT_NEW_N(s->arena, uint32_t, g->n + 1u);
    if (!g->parts || !*n_edges) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t part = s->part[k] = s->part[root_of(s, k)];
        if (part != OT_NONE) s->at[k] = g->parts[part].n++;
    }
    for (size_t k = 0; k < s->n; k++)
        if (s->part[s->links[k].a] != OT_NONE) (*n_edges)[s->part[s->links[k].a]]++;
    return OT_OK;
}

static ot_status make_part(price_part *t, uint32_t n_edges, ot_arena *a)
{
    t->source = OT_NEW_N(a, uint32_t, t->n);
    t->size = OT_NEW_N(a, int64_t, t->n);
    t->alignment = OT_NEW_N(a, int64_t, t->n);
    t->fixed = OT_NEW_N(a, bool, t->n);
    t->offset = OT_NEW_N(a, int64_t, t->n);
    t->begin = OT_NEW_N(a, uint32_t, t->n + 2u);
    t->edges = OT_NEW_N(a, price_edge, 2 * (size_t)n_edges + 1);
    return t->source && t->size && t->alignment && t->fixed && t->offset && t->begin && t->edges
               ? OT_OK
               : OT_E_NOMEM;
}

static void fill_items(const builder *s, price_graph *g, const int64_t *offsets, int64_t capacity)
{
    for (uint32_t k = 0; k < s->p->n; k++) {
        if (s->part[k] == OT_NONE) continue;
        price_part *t = &g->parts[s->part[k]];
        const uint32_t at = s->at[k];
        t->source[at] = k;
        t->size[at] = s->p->items[k].size;
        t->alignment[at] = s->p->items[k].alignment;
        t->fixed[at] = s->p->items[k].fixed >= 0;
        t->offset[at] = offsets[k];
        t->capacity = capacity;
    }
}

/* The edges of each item in a row: begin[k + 1] is where the next one of item k goes, so that it
 * is the beginning of item k + 1 at last. */
static void fill_edges(const builder *s, price_graph *g)
{
    for (size_t k = 0; k < s->n; k++) {
        const link *x = &s->links[k];
        if (s->part[x->a] == OT_NONE) continue;
        price_part *t = &g->parts[s->part[x->a]];
        t->begin[s->at[x->a] + 2]++;
        t->begin[s->at[x->b] + 2]++;
    }
    for (size_t j = 0; j < g->n; j++)
        for (uint32_t k = 2; k < g->parts[j].n + 2u; k++)
            g->parts[j].begin[k] += g->parts[j].begin[k - 1];
    for (size_t k = 0; k < s->n; k++) {
        const link *x = &s->links[k];
        if (s->part[x->a] == OT_NONE) continue;
        price_part *t = &g->parts[s->part[x->a]];
        const uint32_t a = t->begin[s->at[x->a] + 1]++, b = t->begin[s->at[x->b] + 1]++;
        t->edges[a] = (price_edge){s->at[x->b], x->weight, x->hard};
        t->edges[b] = (price_edge){s->at[x->a], x->weight, x->hard};
    }
}

static int compare_weights(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return *a < *b ? -1 : *a > *b;
}

static ot_status find_unit(price_part *t, ot_arena *a)
{
    int64_t *weights = OT_NEW_N(a, int64_t, t->begin[t->n] + 1u);
    size_t n = 0;
    if (!weights) return OT_E_NOMEM;
    for (uint32_t k = 0; k < t->begin[t->n]; k++)
        if (!t->edges[k].hard) weights[n++] = t->edges[k].weight;
    if (n > 1) qsort(weights, n, sizeof *weights, compare_weights);
    t->unit = n > 0 ? ot_max(1, weights[n / 2]) : 1;
    return OT_OK;
}

int64_t price_part_sum(const price_part *s, const int64_t *offset)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = s->begin[i]; k < s->begin[i + 1]; k++)
            if (s->edges[k].item > i && !s->edges[k].hard &&
                price_meets(s, offset, i, s->edges[k].item))
                sum += s->edges[k].weight;
    return sum;
}

/* What cannot be saved is no edge: pairs of fixed items, and those that cost nothing. */
static ot_status link_pairs(builder *s, const ot_pack_pair *pairs, size_t n, price_graph *g)
{
    for (size_t k = 0; k < n; k++) {
        const ot_pack_item *x = &s->p->items[pairs[k].first], *y = &s->p->items[pairs[k].second];
        if (!pack_takes_part(x) || !pack_takes_part(y) || pairs[k].weight == 0) continue;
        if (x->fixed < 0 || y->fixed < 0)
            OT_TRY(add_link(s, pairs[k].first, pairs[k].second, pairs[k].weight, false));
        else if (x->fixed < y->fixed + y->size && y->fixed < x->fixed + x->size)
            g->bound += pairs[k].weight;
    }
    return OT_OK;
}

ot_status price_make(const ot_pack_problem *p, const ot_pack_pair *pairs, size_t n_pairs,
                     int64_t capacity, const int64_t *offsets, ot_arena *a, price_graph *out)
{
    builder s = {.p = p, .arena = a};
    uint32_t *n_edges = NULL;
    *out = (price_graph){.whole = p->n <= ITEMS_MAX};
    s.root = OT_NEW_N(a, uint32_t, p->n + 1u);
    s.part = OT_NEW_N(a, uint32_t, p->n + 1u);
    s.at = OT_NEW_N(a, uint32_t, p->n + 1u);
    if (!s.root || !s.part || !s.at) return OT_E_NOMEM;
    for (uint32_t k = 0; k < p->n; k++) s.root[k] = k;
    if (out->whole) OT_TRY(link_pairs(&s, pairs, n_pairs, out));
    if (out->whole) OT_TRY(link_alive(&s, &out->whole));
    if (!out->whole) return OT_OK;
    merge_links(&s);
    OT_TRY(number_parts(&s, out, &n_edges));
    for (size_t k = 0; k < out->n; k++) OT_TRY(make_part(&out->parts[k], n_edges[k], a));
    fill_items(&s, out, offsets, capacity);
    fill_edges(&s, out);
    for (size_t k = 0; k < out->n; k++) {
        OT_TRY(find_unit(&out->parts[k], a));
        out->parts[k].sum = price_part_sum(&out->parts[k], out->parts[k].offset);
    }
    return OT_OK;
}
