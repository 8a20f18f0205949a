/* Where the boxes of a graph go: rows by longest path, boxes of a row in an order with few
 * crossings, rows wrapped into columns.
 *
 *   column 0   column 1  rank 0   [a]   [b]
 *   +---+   .-----.                |   /   \
 *   | a |   |   +-v-+    rank 1   [c]       |    an edge over several ranks keeps a lane
 *   +-+-+   |   | d |              |        |    free of boxes in each of them
 *     |     |   +-+-+    rank 2   [d]      [e]
 *   +-v-+   |     |
 *   | c |---'   +-v-+    An edge longer than LAYOUT_SPAN ranks, or one too many, is a stub: it is
 *                        not drawn,
 *   +---+       | e |    both its ends say so.
 *               +---+
 *
 * Everything is near linear in boxes and edges; `work` counts the steps. Deterministic.
 */
#ifndef OT_REPORT_HTML_HTML_LAYOUT_H
#define OT_REPORT_HTML_HTML_LAYOUT_H

#include "base/base.h"

#define LAYOUT_SPAN  12    /* ranks that a drawn edge spans at most */
#define LAYOUT_LANES 24    /* lanes of edges in one rank at most */
#define LAYOUT_EDGES 12000 /* drawn at most */
#define LAYOUT_ROUTE 1024  /* bytes of a route */

typedef struct layout_box {
    double w, h; /* given */
    double x, y; /* of its upper left corner */
    uint32_t rank, column;
} layout_box;

typedef struct layout_edge {
    uint32_t from, to; /* given; from < to, others become stubs */
    bool stub;
    uint32_t first_lane; /* index into cells, of to.rank - from.rank - 1 lanes */
} layout_edge;

struct layout_cell;
struct layout_column;

typedef struct layout {
    /* given */
    layout_box *boxes; /* [n] in topological order */
    uint32_t n;
    layout_edge *edges; /* [n_edges] */
    uint32_t n_edges;
    double gap_x, gap_y; /* between boxes of a rank, between ranks */
    uint32_t row_max;    /* boxes in a rank; more are spread over several */
    /* columns are made longer until the drawing is not wider; 0: until it is about as wide as it
     * is high */
    double max_width;
    /* found */
    double width, height;
    uint32_t n_ranks, n_columns, n_stubs;
    uint64_t work;
    /* inside */
    ot_arena *arena;
    struct layout_cell *cells; /* [n_cells] boxes first, then lanes */
    uint32_t n_cells;
    uint32_t *rank_first;          /* [n_ranks + 1] into ranked */
    uint32_t *ranked;              /* [n_cells] cells by rank, from left to right */
    double *rank_y, *rank_h;       /* [n_ranks] */
    struct layout_column *columns; /* [n_columns] */
} layout;

/* Everything found is in arena a. OT_E_NOMEM. */
ot_status layout_run(layout *l, ot_arena *a) OT_MUST_USE;
/* The path of edge e, which is no stub, as the attribute d of an SVG path. Returns buffer. */
const char *layout_route(const layout *l, uint32_t e, char buffer[LAYOUT_ROUTE]);

/* ---- inside: html_layout.c makes ranks and orders, html_layout_place.c coordinates ---- */

typedef struct layout_cell {
    uint32_t rank, pos; /* pos: in its rank, from left to right */
    double x, w;        /* centre, width */
    bool lane;
    /* neighbours in the ranks above and below: into links */
    uint32_t first_up, n_up, first_down, n_down;
} layout_cell;

typedef struct layout_column {
    uint32_t first, end; /* ranks */
    double x0, x1;       /* as drawn */
    double shift;        /* from a cell's x to the drawing's */
} layout_column;

typedef struct layout_links {
    uint32_t *up, *down;
} layout_links;

ot_status layout_place(layout *l, const layout_links *links) OT_MUST_USE;

#endif
