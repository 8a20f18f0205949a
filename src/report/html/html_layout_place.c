/* Coordinates of a layered drawing whose ranks are ordered.
 *
 *   across   each rank is moved, as far as order and gaps allow, to where its cells' neighbours
 *            are: the places nearest to those
 *            in the sense of least squares come from merging blocks that push against each other
 *            (isotonic regression), in linear
 *            time. Boxes weigh more than lanes: chains are straight, and edges give way.
 *   down     ranks are cut into columns of about equal height, near the goal where the fewest edges
 *            are cut.
 *   edges    a curve from rank to rank; from the end of a column around its foot, up the gutter,
 *            and in from the head:
 *
 *              |   .----+        head
 *              |   |    v
 *             [a]  |   [b]
 *              +---'             foot
 */
#include "html_layout.h"

#include <math.h>

#define SWEEPS   8
#define LANE_GAP 8.0
#define GUTTER   44.0 /* between columns */
#define MARGIN   12.0 /* around the drawing */
#define HEAD     22.0 /* above and below the columns, when there are several */
/* places in head, foot and gutter, for edges that would lie upon each other */
#define SPREAD 6

typedef struct block {
    double target, weight; /* mean of the targets of its cells, their weight */
    uint32_t n;
} block;

typedef struct place_work {
    layout *l;
    const layout_links *links;
    block *blocks;  /* [n_cells] */
    double *offset; /* [n_cells] of a cell from the first of its rank, when all are tight */
} place_work;

/* ---- across ---- */

static double gap_between(const layout *l, const layout_cell *a, const layout_cell *b)
{
    return (a->w + b->w) / 2 + (a->lane || b->lane ? LANE_GAP : l->gap_x);
}

typedef struct mean {
    double sum, n;
} mean;

static void add_cells(const layout *l, const uint32_t *cells, uint32_t n, mean *boxes, mean *lanes)
{
    for (uint32_t k = 0; k < n; k++) {
        mean *m = l->cells[cells[k]].lane ? lanes : boxes;
        m->sum += l->cells[cells[k]].x;
        m->n++;
    }
}

/* Where the neighbours of cell c are; *weight 0.01: it has none. A box that has boxes next to it
 * does not follow lanes: a chain with edges beside it would lean, a little at every rank. */
static double target_of(const place_work *w, const layout_cell *c, bool up, bool down,
                        double *weight)
{
    mean boxes = {0}, lanes = {0};
    if (up) add_cells(w->l, w->links->up + c->first_up, c->n_up, &boxes, &lanes);
    if (down) add_cells(w->l, w->links->down + c->first_down, c->n_down, &boxes, &lanes);
    if (c->lane || boxes.n == 0) boxes.sum += lanes.sum, boxes.n += lanes.n;
    *weight = boxes.n == 0 ? 0.01 : c->lane ? 0.05 : 1;
    return boxes.n > 0 ? boxes.sum / boxes.n : c->x;
}

/* Cells of one rank as near as can be to their targets. */
static void settle_rank(place_work *w, uint32_t r, bool up, bool down)
{
    layout *l = w->l;
    uint32_t first = l->rank_first[r], n = l->rank_first[r + 1] - first, n_blocks = 0, at = 0;
    for (uint32_t k = 0; k < n; k++) {
        layout_cell *c = &l->cells[l->ranked[first + k]];
        double weight, target = target_of(w, c, up, down, &weight);
        w->offset[k] = k ? w->offset[k - 1] + gap_between(l, &l->cells[l->ranked[first + k - 1]], c)
                         : 0;
        block b = {target - w->offset[k], weight, 1};
        for (; n_blocks && w->blocks[n_blocks - 1].target >= b.target; n_blocks--) {
            const block *p = &w->blocks[n_blocks - 1];
            b = (block){(b.target * b.weight + p->target * p->weight) / (b.weight + p->weight),
                        b.weight + p->weight, b.n + p->n};
            l->work++;
        }
        w->blocks[n_blocks++] = b;
        l->work += 1 + (up ? c->n_up : 0) + (down ? c->n_down : 0);
    }
    for (uint32_t b = 0; b < n_blocks; b++)
        for (uint32_t k = 0; k < w->blocks[b].n; k++, at++)
            l->cells[l->ranked[first + at]].x = w->blocks[b].target + w->offset[at];
}

static void find_x(place_work *w)
{
    layout *l = w->l;
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        uint32_t first = l->rank_first[r], end = l->rank_first[r + 1];
        double x = 0;
        for (uint32_t k = first; k < end; k++) {
            layout_cell *c = &l->cells[l->ranked[k]];
            if (k > first) x += gap_between(l, &l->cells[l->ranked[k - 1]], c);
            c->x = x;
        }
        for (uint32_t k = first; k < end; k++) l->cells[l->ranked[k]].x -= x / 2;
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (uint32_t k = 0; k < l->n_ranks; k++) {
            bool down = sweep % 2 == 0, both = sweep >= SWEEPS - 2;
            settle_rank(w, down ? k : l->n_ranks - 1 - k, down || both, !down || both);
        }
}

/* ---- columns ---- */

/* Edges that a cut below rank r would cut. */
static uint32_t cut_at(const layout *l, uint32_t r)
{
    uint32_t n = 0;
    for (uint32_t k = l->rank_first[r]; k < l->rank_first[r + 1]; k++)
        n += l->cells[l->ranked[k]].n_down;
    return n;
}

/* First rank behind the column that begins at `first` and is about so high; a short rest is left
 * in it. */
static uint32_t end_of_column(const layout *l, uint32_t first, double height)
{
    double y = 0;
    uint32_t end = OT_NONE, least = OT_NONE, r = first;
    for (; r < l->n_ranks && (y <= height * 1.25 || end == OT_NONE); r++) {
        y += l->rank_h[r] + l->gap_y;
        if (y < height * 0.85 || (y > height && end != OT_NONE)) continue;
        uint32_t cut = cut_at(l, r);
        if (cut > least) continue;
        end = r + 1;
        least = cut;
    }
    return r >= l->n_ranks && y <= height * 1.25 ? l->n_ranks : end;
}

/* Columns of about the given height; returns their number, and the size of the drawing. */
static uint32_t cut_columns(layout *l, double height, double *w, double *h)
{
    uint32_t n = 0;
    double x = MARGIN;
    *h = 0;
    for (uint32_t r = 0; r < l->n_ranks; n++) {
        layout_column *c = &l->columns[n];
        double lo = INFINITY, hi = -INFINITY, y = 0;
        *c = (layout_column){.first = r, .end = end_of_column(l, r, height)};
        for (; r < c->end; r++) {
            const layout_cell *a = &l->cells[l->ranked[l->rank_first[r]]],
                              *b = &l->cells[l->ranked[l->rank_first[r + 1] - 1]];
            lo = fmin(lo, a->x - a->w / 2);
            hi = fmax(hi, b->x + b->w / 2);
            l->rank_y[r] = y;
            y += l->rank_h[r] + l->gap_y;
            l->work++;
        }
        if (n) x += GUTTER;
        c->x0 = x;
        c->x1 = x + ceil(hi - lo);
        c->shift = x - lo;
        x = c->x1;
        *h = fmax(*h, y - l->gap_y);
    }
    *w = x + MARGIN;
    return n;
}

static void find_columns(layout *l)
{
    double total = 0, w = 0, h = 0, tallest = 0;
    for (uint32_t r = 0; r < l->n_ranks; r++) {
        for (uint32_t k = l->rank_first[r]; k < l->rank_first[r + 1]; k++)
            if (l->ranked[k] < l->n) l->rank_h[r] = fmax(l->rank_h[r], l->boxes[l->ranked[k]].h);
        total += l->rank_h[r] + l->gap_y;
        tallest = fmax(tallest, l->rank_h[r]);
    }
    for (double height = fmax(l->max_width > 0 ? 900 : 1100, tallest);; height *= 1.3) {
        l->n_columns = cut_columns(l, height, &w, &h);
        if (l->n_columns <= 1 || (l->max_width > 0 ? w <= l->max_width : w <= 1.6 * h) ||
            height > total * 1.2)
            break;
    }
    double head = MARGIN + (l->n_columns > 1 ? HEAD : 0);
    for (uint32_t r = 0; r < l->n_ranks; r++) l->rank_y[r] += head;
    l->width = w;
    l->height = h + 2 * head;
}

/* ---- together ---- */

static void place_boxes(layout *l)
{
    for (uint32_t k = 0; k < l->n_columns; k++)
        for (uint32_t r = l->columns[k].first; r < l->columns[k].end; r++)
            for (uint32_t j = l->rank_first[r]; j < l->rank_first[r + 1]; j++) {
                layout_cell *c = &l->cells[l->ranked[j]];
                c->x = floor(c->x + l->columns[k].shift);
                if (l->ranked[j] >= l->n) continue;
                layout_box *b = &l->boxes[l->ranked[j]];
                b->x = floor(c->x - b->w / 2);
                b->y = floor(l->rank_y[r] + (l->rank_h[r] - b->h) / 2);
                b->column = k;
            }
}

ot_status layout_place(layout *l, const layout_links *links)
{
    place_work w = {.l = l, .links = links};
    w.blocks = OT_NEW_N(l->arena, block, l->n_cells + 1u);
    w.offset = OT_NEW_N(l->arena, double, l->n_cells + 1u);
    l->rank_y = OT_NEW_N(l->arena, double, l->n_ranks + 1u);
    l->rank_h = OT_NEW_N(l->arena, double, l->n_ranks + 1u);
    l->columns = OT_NEW_N(l->arena, layout_column, l->n_ranks + 1u);
    if (!w.blocks || !w.offset || !l->rank_y || !l->rank_h || !l->columns) return OT_E_NOMEM;
    if (l->n == 0) return OT_OK;
    find_x(&w);
    find_columns(l);
    place_boxes(l);
    return OT_OK;
}

/* ---- routes ---- */

static uint32_t column_of(const layout *l, uint32_t rank)
{
    uint32_t lo = 0, hi = l->n_columns;
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (l->columns[mid].first <= rank)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Where edges enter and leave a cell: above and below its box; a lane from end to end of its rank.
 */
static double top_of(const layout *l, uint32_t c)
{
    return floor(c < l->n ? l->boxes[c].y : l->rank_y[l->cells[c].rank]);
}

static double bottom_of(const layout *l, uint32_t c)
{
    uint32_t r = l->cells[c].rank;
    return floor(c < l->n ? l->boxes[c].y + l->boxes[c].h : l->rank_y[r] + l->rank_h[r]);
}

/* From below cell a to above cell b of the next rank; appended at *used. */
static void add_segment(const layout *l, uint32_t a, uint32_t b, uint32_t e, char *buffer,
                        size_t *used)
{
    double x0 = l->cells[a].x, y0 = bottom_of(l, a), x1 = l->cells[b].x, y1 = top_of(l, b),
           middle = floor((y0 + y1) / 2);
    uint32_t column = column_of(l, l->cells[a].rank);
    char *at = buffer + *used;
    size_t room = LAYOUT_ROUTE - *used;
    int n;
    if (column_of(l, l->cells[b].rank) != column) {
        double step = 3.0 * (e % SPREAD), foot = floor(l->height - 4 - step),
               head = floor(4 + step);
        n = snprintf(at, room, "V%.0fH%.0fV%.0fH%.0fV%.0f", foot,
                     floor(l->columns[column].x1 + 12 + step), head, x1, y1);
    } else if (x0 == x1) {
        n = snprintf(at, room, "V%.0f", y1);
    } else {
        n = snprintf(at, room, "C%.0f %.0f %.0f %.0f %.0f %.0f", x0, middle, x1, middle, x1, y1);
    }
    if (n > 0 && (size_t)n < room) *used += (size_t)n;
}

const char *layout_route(const layout *l, uint32_t e, char buffer[LAYOUT_ROUTE])
{
    const layout_edge *edge = &l->edges[e];
    uint32_t span = l->boxes[edge->to].rank - l->boxes[edge->from].rank, cell = edge->from;
    size_t used = (size_t)snprintf(buffer, LAYOUT_ROUTE, "M%.0f %.0f", l->cells[cell].x,
                                   bottom_of(l, cell));
    for (uint32_t k = 1; k <= span; k++) {
        uint32_t next = k == span ? edge->to : edge->first_lane + k - 1;
        add_segment(l, cell, next, e, buffer, &used);
        double through = bottom_of(l, next);
        if (k < span && used + 24 < LAYOUT_ROUTE)
            used += (size_t)snprintf(buffer + used, LAYOUT_ROUTE - used, "V%.0f", through);
        cell = next;
    }
    return buffer;
}
