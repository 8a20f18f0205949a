/* Packings built bottom up: always fill the lowest valley.
 *
 *   offset ^        +--+
 *          |  +--+  |  |    The floor over time is a list of segments. The lowest one is a valley:
 *                           both neighbours are higher.
 *          |  |  |  |  |    Of the items that lie inside it with their whole lifetime, the one of
 *                           the largest key goes onto the
 *          |  |  +--+  |    floor and cuts the segment in up to three. When none is left that fits
 *                           inside, what is above the
 *          +--+--^--+--+->  valley can only begin at the lower neighbour: the floor rises to
 *                           it and the two become one.
 *
 * Every item rests on the floor or on others, nothing is searched for holes, and a run takes O(n
 * log n) steps: hundreds of runs per second for hundreds of items, some for tens of thousands.
 * The keys decide how good it gets (improve_keys.c).
 *
 * "Lies inside [l, r) and has the largest key" is a range query over points (first, last). They
 * are kept in a tree that halves them by first and last in turn, eight per leaf, with the
 * largest key that is left in each node.
 */
#include "improve_skyline.h"

#define LEAF 8 /* items */

/* ---- sections: moments after which some lifetime ends before the next begins; two items
 * overlap exactly when they share one ---- */

static ot_status number_sections(pack_skyline *s, const pack_life *life, uint32_t n_moments,
                                 ot_arena *a)
{
    uint32_t *before = OT_NEW_N(a, uint32_t, n_moments + 1u); /* sections before a moment */
    if (!before) return OT_E_NOMEM;
    for (uint32_t k = 0; k < s->n; k++) before[life[s->item[k]].last] = 1;
    for (uint32_t t = 1; t <= n_moments; t++) before[t] += before[t - 1];
    for (uint32_t k = 0; k < s->n; k++) {
        pack_life x = life[s->item[k]];
        s->life[k] = (pack_life){before[x.first], before[x.last]};
    }
    s->n_sections = before[n_moments];
    return OT_OK;
}

/* ---- the tree ---- */

typedef struct point {
    pack_life life;
    uint32_t item;
} point;

static int by_first(const void *pa, const void *pb)
{
    const point *a = pa, *b = pb;
    if (a->life.first != b->life.first) return a->life.first < b->life.first ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static int by_last(const void *pa, const void *pb)
{
    const point *a = pa, *b = pb;
    if (a->life.last != b->life.last) return a->life.last < b->life.last ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static uint32_t leaf_begin(const pack_skyline *s, uint32_t leaf)
{
    return (uint32_t)((uint64_t)s->n * leaf / s->n_leaves);
}

/* Order the items below each node; depth is logarithmic. leaves: [from, to) */
static void halve(const pack_skyline *s, point *points, uint32_t from, uint32_t to, bool by_end)
{
    uint32_t begin = leaf_begin(s, from), end = leaf_begin(s, to), mid = (from + to) / 2;
    if (to - from < 2) return;
    qsort(points + begin, end - begin, sizeof *points, by_end ? by_last : by_first);
    halve(s, points, from, mid, !by_end);
    halve(s, points, mid, to, !by_end);
}

static void bound_nodes(pack_skyline *s)
{
    for (uint32_t k = 0; k < s->n_leaves; k++) {
        pack_tree_node node = {UINT32_MAX, 0, UINT32_MAX, 0, -1};
        for (uint32_t j = leaf_begin(s, k); j < leaf_begin(s, k + 1); j++) {
            pack_life x = s->life[j];
            if (x.first < node.first_min) node.first_min = x.first;
            if (x.first > node.first_max) node.first_max = x.first;
            if (x.last < node.last_min) node.last_min = x.last;
            if (x.last > node.last_max) node.last_max = x.last;
        }
        s->nodes[s->n_leaves + k] = node;
    }
    for (uint32_t k = s->n_leaves; --k >= 1;) {
        const pack_tree_node *a = &s->nodes[2 * k], *b = &s->nodes[2 * k + 1];
        s->nodes[k] = (pack_tree_node){a->first_min < b->first_min ? a->first_min : b->first_min,
                                       a->first_max > b->first_max ? a->first_max : b->first_max,
                                       a->last_min < b->last_min ? a->last_min : b->last_min,
                                       a->last_max > b->last_max ? a->last_max : b->last_max, -1};
    }
}

static ot_status build_tree(pack_skyline *s, ot_arena *a)
{
    point *points = OT_NEW_N(a, point, s->n + 1u);
    s->n_leaves = 1;
    while (s->n_leaves < s->n / LEAF) s->n_leaves *= 2;
    s->nodes = OT_NEW_N(a, pack_tree_node, 2 * (size_t)s->n_leaves);
    if (!points || !s->nodes) return OT_E_NOMEM;
    for (uint32_t k = 0; k < s->n; k++) points[k] = (point){s->life[k], s->item[k]};
    halve(s, points, 0, s->n_leaves, false);
    for (uint32_t k = 0; k < s->n; k++) {
        s->life[k] = points[k].life;
        s->item[k] = points[k].item;
    }
    bound_nodes(s);
    return OT_OK;
}

ot_status pack_skyline_new(const ot_pack_problem *p, ot_arena *a, pack_skyline *out)
{
    uint32_t n_moments;
    *out = (pack_skyline){.p = p};
    pack_life *life = OT_NEW_N(a, pack_life, p->n + 1u);
    out->item = OT_NEW_N(a, uint32_t, p->n + 1u);
    out->life = OT_NEW_N(a, pack_life, p->n + 1u);
    out->key = OT_NEW_N(a, float, p->n + 1u);
    if (!life || !out->item || !out->life || !out->key) return OT_E_NOMEM;
    OT_TRY(pack_lives(p, a, life, &n_moments));
    for (uint32_t k = 0; k < p->n; k++)
        if (p->items[k].fixed < 0 && p->items[k].size > 0) out->item[out->n++] = k;
    OT_TRY(number_sections(out, life, n_moments, a));
    OT_TRY(build_tree(out, a));
    size_t cap = 3 * (size_t)out->n + 2; /* placing makes three at most; rising makes none */
    out->segments = OT_NEW_N(a, pack_segment, cap);
    out->heap = OT_NEW_N(a, uint32_t, cap);
    return out->segments && out->heap ? OT_OK : OT_E_NOMEM;
}

/* ---- keys ---- */

static void sum_leaf(pack_skyline *s, uint32_t leaf)
{
    float key = -1;
    for (uint32_t j = leaf_begin(s, leaf); j < leaf_begin(s, leaf + 1); j++)
        key = s->key[j] > key ? s->key[j] : key;
    s->nodes[s->n_leaves + leaf].key = key;
}

static void sum_node(pack_skyline *s, uint32_t k)
{
    float a = s->nodes[2 * k].key, b = s->nodes[2 * k + 1].key;
    s->nodes[k].key = a > b ? a : b;
}

static void set_keys(pack_skyline *s, const double *key)
{
    for (uint32_t k = 0; k < s->n; k++) s->key[k] = (float)key[s->item[k]];
    for (uint32_t k = 0; k < s->n_leaves; k++) sum_leaf(s, k);
    for (uint32_t k = s->n_leaves; --k >= 1;) sum_node(s, k);
}

typedef struct best {
    uint32_t place, leaf; /* OT_NONE: none found */
    float key;
} best;

static void search_leaf(const pack_skyline *s, uint32_t leaf, uint32_t first, uint32_t last,
                        best *out)
{
    for (uint32_t j = leaf_begin(s, leaf); j < leaf_begin(s, leaf + 1); j++)
        if (s->key[j] > out->key && s->life[j].first >= first && s->life[j].last <= last)
            *out = (best){j, leaf, s->key[j]};
}

/* The largest key below node k among the items inside [first, last). */
static void search(const pack_skyline *s, uint32_t k, uint32_t first, uint32_t last, best *out)
{
    const pack_tree_node *node = &s->nodes[k];
    if (node->key <= out->key || node->first_max < first || node->last_min > last ||
        node->first_min >= last)
        return;
    if (k >= s->n_leaves) {
        search_leaf(s, k - s->n_leaves, first, last, out);
        return;
    }
    uint32_t large = s->nodes[2 * k].key >= s->nodes[2 * k + 1].key ? 2 * k : 2 * k + 1;
    search(s, large, first, last, out);
    search(s, large ^ 1, first, last, out);
}

static void strike(pack_skyline *s, best b)
{
    s->key[b.place] = -1;
    sum_leaf(s, b.leaf);
    for (uint32_t k = (s->n_leaves + b.leaf) / 2; k >= 1; k /= 2) sum_node(s, k);
}

/* ---- segments ---- */

static bool is_lower(const pack_skyline *s, uint32_t a, uint32_t b)
{
    const pack_segment *x = &s->segments[a], *y = &s->segments[b];
    return x->floor < y->floor || (x->floor == y->floor && x->first < y->first);
}

static void heap_add(pack_skyline *s, uint32_t segment)
{
    uint32_t k = s->n_heap++;
    for (; k > 0 && is_lower(s, segment, s->heap[(k - 1) / 2]); k = (k - 1) / 2)
        s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = segment;
}

/* Put `segment` at k or below. */
static void heap_sink(pack_skyline *s, uint32_t k, uint32_t segment)
{
    for (;;) {
        uint32_t child = 2 * k + 1;
        if (child >= s->n_heap) break;
        if (child + 1 < s->n_heap && is_lower(s, s->heap[child + 1], s->heap[child])) child++;
        if (!is_lower(s, s->heap[child], segment)) break;
        s->heap[k] = s->heap[child];
        k = child;
    }
    s->heap[k] = segment;
}

/* The lowest segment stays on top of the heap. */
static uint32_t lowest(pack_skyline *s)
{
    while (s->segments[s->heap[0]].gone) {
        uint32_t last = s->heap[--s->n_heap];
        heap_sink(s, 0, last);
    }
    return s->heap[0];
}

static void link_up(pack_skyline *s, uint32_t left, uint32_t right)
{
    if (left != OT_NONE) s->segments[left].right = right;
    if (right != OT_NONE) s->segments[right].left = left;
}

/* Segment k takes in a neighbour of equal height. */
static void join(pack_skyline *s, uint32_t k, uint32_t neighbour)
{
    pack_segment *x = &s->segments[k], *y = &s->segments[neighbour];
    y->gone = true;
    if (y->first < x->first) {
        x->first = y->first;
        x->left = y->left;
    } else {
        x->last = y->last;
        x->right = y->right;
    }
    link_up(s, x->left, k);
    link_up(s, k, x->right);
}

static int64_t floor_of(const pack_skyline *s, uint32_t k)
{
    return k != OT_NONE ? s->segments[k].floor : INT64_MAX;
}

static void join_equal(pack_skyline *s, uint32_t k)
{
    pack_segment *x = &s->segments[k];
    if (floor_of(s, x->left) == x->floor) join(s, k, x->left);
    if (floor_of(s, x->right) == x->floor) join(s, k, x->right);
}

/* The lowest segment, on top of the heap, rises to its lower neighbour. */
static void rise(pack_skyline *s, uint32_t k)
{
    pack_segment *x = &s->segments[k];
    x->floor = ot_min(floor_of(s, x->left), floor_of(s, x->right));
    join_equal(s, k);
    heap_sink(s, 0, k);
}

static uint32_t add_segment(pack_skyline *s, uint32_t left, uint32_t first, uint32_t last,
                            int64_t floor)
{
    uint32_t k = s->n_segments++;
    s->segments[k] = (pack_segment){first, last, floor, OT_NONE, OT_NONE, false};
    link_up(s, left, k);
    return k;
}

/* An item of this lifetime and top rests on segment k: up to two parts of the floor remain
 * beside it. */
static void cut(pack_skyline *s, uint32_t k, pack_life life, int64_t top)
{
    pack_segment x = s->segments[k];
    uint32_t before = x.first < life.first ? add_segment(s, x.left, x.first, life.first, x.floor)
                                           : OT_NONE;
    uint32_t roof = add_segment(s, before != OT_NONE ? before : x.left, life.first, life.last, top);
    uint32_t after = life.last < x.last ? add_segment(s, roof, life.last, x.last, x.floor)
                                        : OT_NONE;
    link_up(s, after != OT_NONE ? after : roof, x.right);
    s->segments[k].gone = true;
    join_equal(s, roof);
    heap_add(s, roof);
    if (before != OT_NONE) heap_add(s, before);
    if (after != OT_NONE) heap_add(s, after);
}

int64_t pack_skyline_run(pack_skyline *s, const double *key, int64_t *offsets)
{
    int64_t height = 0;
    set_keys(s, key);
    s->n_segments = s->n_heap = 0;
    heap_add(s, add_segment(s, OT_NONE, 0, s->n_sections, 0));
    for (uint32_t left = s->n; left > 0;) {
        uint32_t k = lowest(s);
        best b = {OT_NONE, 0, 0};
        search(s, 1, s->segments[k].first, s->segments[k].last, &b);
        if (b.place == OT_NONE) {
            rise(s, k);
            continue;
        }
        const ot_pack_item *x = &s->p->items[s->item[b.place]];
        int64_t at = pack_align_up(s->segments[k].floor, x->alignment);
        offsets[s->item[b.place]] = at;
        height = ot_max(height, at + x->size);
        strike(s, b);
        cut(s, k, s->life[b.place], at + x->size);
        left--;
    }
    return height;
}
