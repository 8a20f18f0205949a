/* Ranks and orders of a layered drawing.
 *
 *   longest path --> layers --wide ones split--> ranks --lanes of long edges--> cells --sweeps-->
 *   order in each rank
 *
 * A box without inputs sits right above its first reader, not at the top: constants and shape
 * computations stay near their use. Orders are found by a few sweeps down and up in which each
 * cell goes to the mean place of its neighbours.
 */
#include "html_layout.h"

#define SWEEPS 8

typedef struct work {
    layout *l;
    uint32_t *layer; /* [n] */
    uint32_t n_layers;
    layout_links links; /* neighbours, grouped by cell */
    double *key;        /* [n_cells] of sorting */
} work;

/* ---- ranks ---- */

static bool is_usable(const layout *l, const layout_edge *e)
{
    return e->from < e->to && e->to < l->n;
}

/* Edges by their end, so that one pass in topological order sees them all: first[b] .. first[b +
 * 1] of list are b's. */
static bool group_edges(const layout *l, bool by_from, uint32_t **first, uint32_t **list)
{
    uint32_t *start = OT_NEW_N(l->arena, uint32_t, l->n + 2u),
             *ids = OT_NEW_N(l->arena, uint32_t, l->n_edges + 1u);
    if (!start || !ids) return false;
    for (uint32_t e = 0; e < l->n_edges; e++)
        if (is_usable(l, &l->edges[e])) start[(by_from ? l->edges[e].from : l->edges[e].to) + 2]++;
    for (uint32_t b = 2; b <= l->n + 1; b++) start[b] += start[b - 1];
    for (uint32_t e = 0; e < l->n_edges; e++)
        if (is_usable(l, &l->edges[e]))
            ids[start[(by_from ? l->edges[e].from : l->edges[e].to) + 1]++] = e;
    *first = start;
    *list = ids;
    return true;
}

static ot_status find_layers(work *w)
{
    layout *l = w->l;
    uint32_t *in_first, *in, *out_first, *out;
    w->layer = OT_NEW_N(l->arena, uint32_t, l->n + 1u);
    if (!w->layer || !group_edges(l, false, &in_first, &in) ||
        !group_edges(l, true, &out_first, &out))
        return OT_E_NOMEM;
    for (uint32_t b = 0; b < l->n; b++)
        for (uint32_t k = in_first[b]; k < in_first[b + 1]; k++, l->work++) {
            uint32_t least = w->layer[l->edges[in[k]].from] + 1;
            if (w->layer[b] < least) w->layer[b] = least;
        }
    for (uint32_t b = l->n; b-- > 0;) {
        uint32_t n_in = in_first[b + 1] - in_first[b], n_out = out_first[b + 1] - out_first[b],
                 latest = OT_NONE;
        for (uint32_t k = out_first[b]; k < out_first[b + 1]; k++, l->work++) {
            uint32_t most = w->layer[l->edges[out[k]].to] - 1;
            if (most < latest) latest = most;
        }
        if (n_out > n_in) w->layer[b] = latest; /* out edges shrink by more than in edges grow */
    }
    for (uint32_t b = 0; b < l->n; b++)
        if (w->layer[b] + 1 > w->n_layers) w->n_layers = w->layer[b] + 1;
    return OT_OK;
}

/* A layer becomes as many ranks as its boxes need; empty layers none. */
static ot_status find_ranks(work *w)
{
    layout *l = w->l;
    uint32_t *count = OT_NEW_N(l->arena, uint32_t, w->n_layers + 1u),
             *base = OT_NEW_N(l->arena, uint32_t, w->n_layers + 1u);
    if (!count || !base) return OT_E_NOMEM;
    for (uint32_t b = 0; b < l->n; b++) count[w->layer[b]]++;
    for (uint32_t k = 0; k < w->n_layers; k++) {
        base[k] = l->n_ranks;
        l->n_ranks += (count[k] + l->row_max - 1) / l->row_max;
        count[k] = 0;
    }
    for (uint32_t b = 0; b < l->n; b++) {
        uint32_t layer = w->layer[b];
        l->boxes[b].rank = base[layer] + count[layer]++ / l->row_max;
        l->work++;
    }
    return OT_OK;
}

/* ---- cells ---- */

/* Which edges are drawn: shorter ones first; each takes a lane in every rank that it passes. */
static ot_status choose_edges(work *w)
{
    layout *l = w->l;
    uint32_t drawn = 0, *lanes = OT_NEW_N(l->arena, uint32_t, l->n_ranks + 1u);
    if (!lanes) return OT_E_NOMEM;
    l->n_cells = l->n;
    for (uint32_t e = 0; e < l->n_edges; e++) l->edges[e].stub = true;
    for (uint32_t span = 1; span <= LAYOUT_SPAN; span++)
        for (uint32_t e = 0; e < l->n_edges; e++) {
            layout_edge *edge = &l->edges[e];
            l->work++;
            if (!is_usable(l, edge) || drawn >= LAYOUT_EDGES) continue;
            uint32_t first = l->boxes[edge->from].rank + 1, end = l->boxes[edge->to].rank;
            if (end + 1 - first != span) continue;
            bool full = false;
            for (uint32_t r = first; r < end; r++) full = full || lanes[r] >= LAYOUT_LANES;
            if (full) continue;
            for (uint32_t r = first; r < end; r++) lanes[r]++;
            edge->stub = false;
            edge->first_lane = l->n_cells;
            l->n_cells += span - 1;
            drawn++;
        }
    l->n_stubs = l->n_edges - drawn;
    return OT_OK;
}

/* Cell k-th on the way of an edge: 0 its source, span its target, lanes between. */
static uint32_t cell_on(const layout *l, const layout_edge *e, uint32_t k)
{
    uint32_t span = l->boxes[e->to].rank - l->boxes[e->from].rank;
    return k == 0 ? e->from : k == span ? e->to : e->first_lane + k - 1;
}

static ot_status make_cells(work *w)
{
    layout *l = w->l;
    l->cells = OT_NEW_N(l->arena, layout_cell, l->n_cells + 1u);
    w->key = OT_NEW_N(l->arena, double, l->n_cells + 1u);
    if (!l->cells || !w->key) return OT_E_NOMEM;
    for (uint32_t b = 0; b < l->n; b++)
        l->cells[b] = (layout_cell){.rank = l->boxes[b].rank, .w = l->boxes[b].w};
    for (uint32_t e = 0; e < l->n_edges; e++) {
        const layout_edge *edge = &l->edges[e];
        if (edge->stub) continue;
        uint32_t first = l->boxes[edge->from].rank + 1, end = l->boxes[edge->to].rank;
        for (uint32_t r = first; r < end; r++)
            l->cells[edge->first_lane + r - first] = (layout_cell){.rank = r, .w = 8, .lane = true};
    }
    return OT_OK;
}

/* Neighbours of every cell, by counting. */
static ot_status link_cells(work *w)
{
    layout *l = w->l;
    uint32_t n_links = 0, up = 0, down = 0;
    for (uint32_t e = 0; e < l->n_edges; e++) {
        uint32_t span = l->edges[e].stub
                            ? 0
                            : l->boxes[l->edges[e].to].rank - l->boxes[l->edges[e].from].rank;
        for (uint32_t k = 0; k < span; k++, n_links++) {
            l->cells[cell_on(l, &l->edges[e], k)].n_down++;
            l->cells[cell_on(l, &l->edges[e], k + 1)].n_up++;
        }
    }
    w->links.up = OT_NEW_N(l->arena, uint32_t, n_links + 1u);
    w->links.down = OT_NEW_N(l->arena, uint32_t, n_links + 1u);
    if (!w->links.up || !w->links.down) return OT_E_NOMEM;
    for (uint32_t c = 0; c < l->n_cells; c++) {
        layout_cell *cell = &l->cells[c];
        cell->first_up = up;
        cell->first_down = down;
        up += cell->n_up;
        down += cell->n_down;
        cell->n_up = cell->n_down = 0;
    }
    for (uint32_t e = 0; e < l->n_edges; e++) {
        uint32_t span = l->edges[e].stub
                            ? 0
                            : l->boxes[l->edges[e].to].rank - l->boxes[l->edges[e].from].rank;
        for (uint32_t k = 0; k < span; k++, l->work++) {
            uint32_t a = cell_on(l, &l->edges[e], k), b = cell_on(l, &l->edges[e], k + 1);
            w->links.down[l->cells[a].first_down + l->cells[a].n_down++] = b;
            w->links.up[l->cells[b].first_up + l->cells[b].n_up++] = a;
        }
    }
    return OT_OK;
}

static ot_status group_by_rank(work *w)
{
    layout *l = w->l;
    l->rank_first = OT_NEW_N(l->arena, uint32_t, l->n_ranks + 2u);
    l->ranked = OT_NEW_N(l->arena, uint32_t, l->n_cells + 1u);
    if (!l->rank_first || !l->ranked) return OT_E_NOMEM;
    for (uint32_t c = 0; c < l->n_cells; c++) l->rank_first[l->cells[c].rank + 2]++;
    for (uint32_t r = 2; r <= l->n_ranks + 1; r++) l->rank_first[r] += l->rank_first[r - 1];
    for (uint32_t c = 0; c < l->n_cells; c++) {
        uint32_t r = l->cells[c].rank, at = l->rank_first[r + 1]++;
        l->ranked[at] = c;
        l->cells[c].pos = at - l->rank_first[r];
    }
    return OT_OK;
}

/* ---- order ---- */

/* Place of a cell counted from the middle of its rank, so that ranks of different lengths compare.
 */
static double place_of(const layout *l, uint32_t c)
{
    uint32_t r = l->cells[c].rank;
    return (double)l->cells[c].pos - (double)(l->rank_first[r + 1] - l->rank_first[r] - 1) / 2;
}

static double mean_place(const work *w, uint32_t c, bool down)
{
    const layout_cell *cell = &w->l->cells[c];
    uint32_t n = down ? cell->n_up : cell->n_down;
    const uint32_t *list = down ? w->links.up + cell->first_up : w->links.down + cell->first_down;
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) sum += place_of(w->l, list[k]);
    return n ? sum / n : place_of(w->l, c);
}

/* Stable merge sort of cells by key: from list into list, with room of the same length. */
static void sort_cells(work *w, uint32_t *list, uint32_t *room, uint32_t n)
{
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t lo = 0; lo < n; lo += 2 * width) {
            uint32_t mid = lo + width < n ? lo + width : n,
                     hi = lo + 2 * width < n ? lo + 2 * width : n, a = lo, b = mid;
            for (uint32_t k = lo; k < hi; k++, w->l->work++)
                room[k] = b >= hi || (a < mid && w->key[list[a]] <= w->key[list[b]]) ? list[a++]
                                                                                     : list[b++];
        }
        memcpy(list, room, n * sizeof *list);
    }
}

static ot_status order_ranks(work *w)
{
    layout *l = w->l;
    uint32_t *room = OT_NEW_N(l->arena, uint32_t, l->n_cells + 1u);
    if (!room) return OT_E_NOMEM;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool down = sweep % 2 == 0;
        for (uint32_t k = 0; k < l->n_ranks; k++) {
            uint32_t r = down ? k : l->n_ranks - 1 - k, first = l->rank_first[r],
                     n = l->rank_first[r + 1] - first;
            uint32_t *list = l->ranked + first;
            for (uint32_t j = 0; j < n; j++) {
                w->key[list[j]] = mean_place(w, list[j], down);
                l->work += down ? l->cells[list[j]].n_up : l->cells[list[j]].n_down;
            }
            sort_cells(w, list, room, n);
            for (uint32_t j = 0; j < n; j++) l->cells[list[j]].pos = j;
        }
    }
    return OT_OK;
}

ot_status layout_run(layout *l, ot_arena *a)
{
    work w = {.l = l};
    l->arena = a;
    l->n_ranks = l->n_columns = l->n_stubs = l->n_cells = 0;
    l->width = l->height = 0;
    l->work = 0;
    if (l->row_max == 0) l->row_max = 1;
    OT_TRY(find_layers(&w));
    OT_TRY(find_ranks(&w));
    OT_TRY(choose_edges(&w));
    OT_TRY(make_cells(&w));
    OT_TRY(link_cells(&w));
    OT_TRY(group_by_rank(&w));
    OT_TRY(order_ranks(&w));
    return layout_place(l, &w.links);
}
