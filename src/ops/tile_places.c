/* Whether places that tiles are written to are disjoint.
 *
 *   y    0   4   8  12  16  A place is an interval along each axis. Two places meet when they do
 *                           along every axis, and along one
 *      0 +---+---+---+---+  axis they do when one of them holds the other's first element. So
 *                           the question is, axis by axis:
 *        | a | b | c | d |  which of these intervals hold which of those points?
 *      8 +---+---+---+---+
 *        | e | f | g | h |  The axis is halved again and again. What holds a whole piece holds
 *                           every point in it: these go on to
 *     16 +---+---+---+---+  the next axis, and after the last one they have met. What holds a
 *                           part of the piece goes on to the
 *                           halves. An interval is whole in at most two pieces of each length.
 *
 * (Zomorodian and Edelsbrunner, "Fast software for box intersections", with halves of the extent
 * in place of medians: the depth is bounded by the extent, whatever the places are.) The first
 * pair that meets ends it.
 */
#include "tile_places.h"

bool ot_node_is_of_tiles(const ot_node *n)
{
    return strncmp(n->name, "tile/branch", strlen("tile/branch")) == 0 ||
           (strncmp(n->name, "tile/r", strlen("tile/r")) == 0 && n->name[6] >= '0' &&
            n->name[6] <= '9');
}

#include <string.h>

#define FEW 8 /* with so few on one side, every pair is looked at */
/* steps, some seconds: a grid of 2^20 tiles along two axes takes an eighth of them */
#define WORK_MAX ((int64_t)1 << 29)

typedef struct compare {
    const ot_place_table **tables; /* [n_tables] */
    uint32_t *first;               /* [n_tables] number of their first place */
    uint32_t *of;                  /* [n] table of each place */
    uint32_t n_axes;               /* that any of them cuts */
    int64_t extent[OT_RANK_MAX];   /* [n_axes] */
    /* [n_tables * n_axes] of a table's rows; OT_NO_COLUMN: it takes the axis whole */
    int64_t *columns;
    int64_t *sizes; /* [n_tables * n_axes] */
    int64_t work;
    ot_places found;
    uint32_t pair[2];
} compare;

#define OT_NO_COLUMN (-1)

typedef struct interval {
    int64_t lo, hi;
} interval;

static interval along(const compare *c, uint32_t place, uint32_t axis)
{
    uint32_t t = c->of[place];
    int64_t column = c->columns[t * c->n_axes + axis];
    if (column == OT_NO_COLUMN) return (interval){0, c->extent[axis]};
    int64_t lo =
        c->tables[t]->starts[(int64_t)(place - c->first[t]) * c->tables[t]->n_axes + column];
    return (interval){lo, lo + c->sizes[t * c->n_axes + axis]};
}

static bool met(compare *c, uint32_t a, uint32_t b)
{
    c->found = OT_PLACES_MEET;
    c->pair[0] = a < b ? a : b;
    c->pair[1] = a < b ? b : a;
    return true;
}

static bool any_pair(compare *c, const uint32_t *a, uint32_t n_a, const uint32_t *b, uint32_t n_b)
{
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t j = 0; j < n_b; j++) {
            bool meet = a[i] != b[j];
            for (uint32_t axis = 0; meet && axis < c->n_axes; axis++) {
                interval x = along(c, a[i], axis), y = along(c, b[j], axis);
                meet = x.lo < y.hi && y.lo < x.hi;
            }
            if (meet) return met(c, a[i], b[j]);
        }
    return false;
}

/* Those of list [n] that hold all of [lo, hi) along the axis (`whole`), or any of it, come
 * first; their number. */
static uint32_t bring_forward(const compare *c, uint32_t *list, uint32_t n, uint32_t axis,
                              int64_t lo, int64_t hi, bool whole)
{
    uint32_t front = 0;
    for (uint32_t k = 0; k < n; k++) {
        interval x = along(c, list[k], axis);
        if (whole ? x.lo > lo || x.hi < hi : x.lo >= hi || x.hi <= lo) continue;
        uint32_t swap = list[front];
        list[front++] = list[k];
        list[k] = swap;
    }
    return front;
}

/* Those of list [n] that begin before `mid` come first; their number. */
static uint32_t bring_earlier(const compare *c, uint32_t *list, uint32_t n, uint32_t axis,
                              int64_t mid)
{
    uint32_t front = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (along(c, list[k], axis).lo >= mid) continue;
        uint32_t swap = list[front];
        list[front++] = list[k];
        list[k] = swap;
    }
    return front;
}

/* Places, in any order. */
typedef struct place_list {
    uint32_t *at;
    uint32_t n;
} place_list;

/* The first n of the list; those behind them. */
static place_list first_of(place_list x, uint32_t n) { return (place_list){x.at, n}; }
static place_list behind(place_list x, uint32_t n) { return (place_list){x.at + n, x.n - n}; }

/* Does one of `wide` hold the first element of one of `points` along `axis`, both having met
 * along those after it? All points begin in [lo, hi), and all of `wide` reach into it. Reorders
 * both lists. true: there is an answer, in c->found. */
static bool search(compare *c, place_list wide, place_list points, uint32_t axis, int64_t lo,
                   int64_t hi)
{
    if (wide.n == 0 || points.n == 0) return false;
    bool few = wide.n <= FEW || points.n <= FEW;
    c->work += few ? (int64_t)wide.n * points.n : (int64_t)wide.n + points.n;
    if (c->work > WORK_MAX) {
        c->found = OT_PLACES_UNKNOWN;
        return true;
    }
    if (few) return any_pair(c, wide.at, wide.n, points.at, points.n);
    uint32_t n = bring_forward(c, wide.at, wide.n, axis, lo, hi, true);
    if (n > 0 && axis == 0) return met(c, wide.at[0], points.at[points.at[0] == wide.at[0]]);
    const int64_t extent = axis > 0 ? c->extent[axis - 1] : 0;
    if (n > 0 && (search(c, first_of(wide, n), points, axis - 1, 0, extent) ||
                  search(c, points, first_of(wide, n), axis - 1, 0, extent)))
        return true;
    wide = behind(wide, n);
    if (wide.n == 0) return false; /* always so in a piece of one element */
    int64_t mid = lo + (hi - lo) / 2;
    uint32_t early = bring_earlier(c, points.at, points.n, axis, mid);
    n = bring_forward(c, wide.at, wide.n, axis, lo, mid, false);
    if (search(c, first_of(wide, n), first_of(points, early), axis, lo, mid)) return true;
    n = bring_forward(c, wide.at, wide.n, axis, mid, hi, false);
    return search(c, first_of(wide, n), behind(points, early), axis, mid, hi);
}

/* Axes that some table cuts, those along which there are the most tiles last: they are the first
 * to tell places apart. */
static uint32_t list_axes(const ot_place_table *tables, int32_t rank, const int64_t *dims,
                          int32_t *axes)
{
    int64_t tiles[OT_RANK_MAX];
    uint32_t n = 0;
    for (int32_t a = 0; a < rank; a++) {
        int64_t longest = 0;
        for (const ot_place_table *t = tables; t; t = t->next)
            for (uint32_t k = 0; k < t->n_axes; k++)
                if (t->axes[k] == a) longest = ot_max(longest, t->sizes[a]);
        if (longest == 0) continue;
        uint32_t at = n++;
        for (; at > 0 && tiles[at - 1] > dims[a] / longest; at--) {
            tiles[at] = tiles[at - 1];
            axes[at] = axes[at - 1];
        }
        tiles[at] = dims[a] / longest;
        axes[at] = a;
    }
    return n;
}

/* false: no memory. */
static bool open_tables(compare *c, ot_arena *a, const ot_place_table *tables, uint32_t n_tables,
                        uint32_t n, const int32_t *axes)
{
    uint32_t place = 0, k = 0;
    c->tables = OT_NEW_N(a, const ot_place_table *, n_tables);
    c->first = OT_NEW_N(a, uint32_t, n_tables);
    c->of = OT_NEW_N(a, uint32_t, n);
    c->columns = OT_NEW_N(a, int64_t, (size_t)n_tables * c->n_axes);
    c->sizes = OT_NEW_N(a, int64_t, (size_t)n_tables * c->n_axes);
    if (!c->tables || !c->first || !c->of || !c->columns || !c->sizes) return false;
    for (const ot_place_table *t = tables; t; t = t->next, k++) {
        c->tables[k] = t;
        c->first[k] = place;
        for (uint32_t j = 0; j < c->n_axes; j++) {
            int64_t *column = &c->columns[k * c->n_axes + j];
            c->sizes[k * c->n_axes + j] = t->sizes[axes[j]];
            *column = OT_NO_COLUMN;
            for (uint32_t q = 0; q < t->n_axes; q++)
                if (t->axes[q] == axes[j]) *column = q;
        }
        for (int64_t row = 0; row < t->rows; row++) c->of[place++] = k;
    }
    return true;
}

static ot_status compare_all(compare *c, ot_arena *a, const ot_place_table *tables,
                             uint32_t n_tables, uint32_t n, const int32_t *axes)
{
    uint32_t *wide = OT_NEW_N(a, uint32_t, n), *points = OT_NEW_N(a, uint32_t, n);
    if (!wide || !points || !open_tables(c, a, tables, n_tables, n, axes)) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) wide[k] = points[k] = k;
    (void)search(c, (place_list){wide, n}, (place_list){points, n}, c->n_axes - 1, 0,
                 c->extent[c->n_axes - 1]);
    return OT_OK;
}

ot_status ot_places_compare(const ot_place_table *tables, int32_t rank, const int64_t *dims,
                            ot_places *out, ot_place pair[2])
{
    compare c = {.found = OT_PLACES_APART};
    int32_t axes[OT_RANK_MAX];
    int64_t n = 0, n_tables = 0;
    *out = OT_PLACES_APART;
    for (int32_t k = 0; k < rank; k++)
        if (dims[k] == 0) return OT_OK; /* nothing is written */
    for (const ot_place_table *t = tables; t; t = t->next, n_tables++)
        if (!ot_add_i64(n, t->rows, &n) || n >= OT_NONE) n = OT_NONE;
    if (n == OT_NONE) *out = OT_PLACES_UNKNOWN;
    if (n == OT_NONE || n < 2) return OT_OK;
    c.n_axes = list_axes(tables, rank, dims, axes);
    for (uint32_t k = 0; k < c.n_axes; k++) c.extent[k] = dims[axes[k]];
    ot_arena *a = ot_arena_new();
    ot_status st = a ? compare_all(&c, a, tables, (uint32_t)n_tables, (uint32_t)n, axes)
                     : OT_E_NOMEM;
    *out = c.found;
    for (uint32_t k = 0; st == OT_OK && k < 2 && c.found == OT_PLACES_MEET; k++) {
        uint32_t t = c.of[c.pair[k]];
        pair[k] = (ot_place){c.tables[t], c.pair[k] - c.first[t]};
    }
    ot_arena_free(a);
    return st;
}
