/* The picture of a laid-out graph: edges first, nodes upon them.
 *
 *      v             mark: reads from far above, or a graph input (tooltip)
 *   +--+---------+
 *   |C| Conv   R3|   letter and pattern: compute, bandwidth or overhead; R3: in region 3
 *   | | co…nv1/c |   name, cut in the middle
 *   +---------+--+
 *             v      mark: is read far below
 *
 * Boxes are <use> of a few shapes, which the legend holds, so that a node of a large graph takes
 * few bytes. Edges are grouped by their width; in terse pictures many share one <path>. Numbers
 * in labels stand in data-* attributes, or in the tooltip.
 */
#include "html_graph.h"

#include <math.h>

#define MARKS           3 /* names in the tooltip of a mark; one in a terse picture */
#define WIDTHS          5
#define OP_CHARS        15
#define OP_CHARS_TAGGED 12 /* beside the name of a region */
#define NAME_CHARS      20
#define TERSE_NAME      44    /* characters of a name in a terse tooltip */
#define PATH_BYTES      30000 /* of a <path> that edges share */

/* Bytes of the widths: at least so many. */
static const double WIDTH_BYTES[WIDTHS] = {0, 4096, 65536, 1048576, 16777216};

/* ---- texts ---- */

static size_t step_of(const char *s)
{
    size_t n = ot_utf8_printable(s);
    return n ? n : 1;
}

const char *graph_shorten(const char *name, uint32_t most, char out[GRAPH_SHORT])
{
    uint32_t chars = 0, at = 0, head;
    size_t used = 0;
    if (most > GRAPH_SHORT / 4 - 2) most = GRAPH_SHORT / 4 - 2;
    for (const char *s = name; *s; s += step_of(s)) chars++;
    head = chars <= most ? chars : most * 2 / 5;
    for (const char *s = name; *s; at++) {
        size_t n = step_of(s);
        if (at == head && chars > most) {
            memcpy(out + used, "\xe2\x80\xa6", 3);
            used += 3;
        }
        if (at < head || chars - at < most - head) {
            memcpy(out + used, s, n);
            used += n;
        }
        s += n;
    }
    out[used] = '\0';
    return out;
}

uint32_t graph_width_class(double bytes)
{
    uint32_t k = 1;
    while (k < WIDTHS && bytes >= WIDTH_BYTES[k]) k++;
    return k;
}

static void put_start(html *h, const char *text, uint32_t most)
{
    char cut[512];
    size_t n = 0;
    for (uint32_t k = 0; text[n] && k < most; k++) n += step_of(text + n);
    if (n >= sizeof cut) n = sizeof cut - 1;
    memcpy(cut, text, n);
    cut[n] = '\0';
    html_text(h, cut);
    if (text[n]) html_text(h, "\xe2\x80\xa6");
}

/* ---- edges ---- */

static void put_edge_title(html *h, const ot_fact_edge *e)
{
    char bytes[48];
    html_open(h, "title");
    put_start(h, e->value ? e->value : "", 80);
    if (e->bytes >= 0) html_textf(h, ", %s", html_format(e->bytes, "bytes", bytes, sizeof bytes));
    if (e->in_tiles) html_text(h, ", in tiles only");
    html_close(h);
}

/* Is edge e of the picture one of this group? */
static bool is_in(const ot_facts *f, const layout *l, const graph_picture *p, uint32_t e,
                  uint32_t width, bool in_tiles)
{
    const ot_fact_edge *x = &f->edges[p->edges[e]];
    return !l->edges[e].stub && x->in_tiles == in_tiles && graph_width_class(x->bytes) == width;
}

static void put_edges_apart(html *h, const layout *l, const graph_picture *p, uint32_t width,
                            bool in_tiles)
{
    char route[LAYOUT_ROUTE];
    for (uint32_t e = 0; e < l->n_edges; e++) {
        if (!is_in(h->f, l, p, e, width, in_tiles)) continue;
        html_open(h, "path");
        html_attr(h, "d", layout_route(l, e, route));
        put_edge_title(h, &h->f->edges[p->edges[e]]);
        html_close(h);
    }
}

static void put_path(html *h, const char *d)
{
    html_open(h, "path");
    html_attr(h, "d", d);
    html_close(h);
}

static ot_status put_edges_together(html *h, const layout *l, const graph_picture *p,
                                    uint32_t width, bool in_tiles, ot_arena *a)
{
    char route[LAYOUT_ROUTE], *d = ot_alloc(a, PATH_BYTES + LAYOUT_ROUTE);
    size_t used = 0;
    if (!d) return OT_E_NOMEM;
    for (uint32_t e = 0; e < l->n_edges; e++) {
        if (!is_in(h->f, l, p, e, width, in_tiles)) continue;
        size_t n = strlen(layout_route(l, e, route));
        memcpy(d + used, route, n + 1);
        used += n;
        if (used < PATH_BYTES) continue;
        put_path(h, d);
        used = 0;
    }
    if (used) put_path(h, d);
    return OT_OK;
}

static ot_status put_edges(html *h, const layout *l, const graph_picture *p, ot_arena *a)
{
    for (uint32_t k = 0; k < 2 * WIDTHS; k++) {
        uint32_t width = k / 2 + 1, n = 0;
        bool in_tiles = k % 2;
        for (uint32_t e = 0; e < l->n_edges && n == 0; e++)
            n += is_in(h->f, l, p, e, width, in_tiles);
        if (n == 0) continue;
        html_open(h, "g");
        html_attrf(h, "class", "g-edge g-w%u%s", width, in_tiles ? " g-tiles" : "");
        if (p->terse)
            OT_TRY(put_edges_together(h, l, p, width, in_tiles, a));
        else
            put_edges_apart(h, l, p, width, in_tiles);
        html_close(h);
    }
    return OT_OK;
}

/* ---- marks of edges that are not drawn ---- */

typedef struct mark {
    uint32_t n;
    uint32_t edges[MARKS]; /* index into the facts' edges */
} mark;

static void note(mark *m, uint32_t edge)
{
    if (m->n < MARKS) m->edges[m->n] = edge;
    m->n++;
}

static void put_mark(html *h, const mark *m, bool below, bool terse)
{
    uint32_t told = terse ? 1 : MARKS;
    char name[GRAPH_SHORT];
    if (m->n == 0) return;
    html_open_class(h, "path", "g-mark");
    html_attrf(h, "d", "M%.0f %.0fl5 7l5-7z", GRAPH_NODE_W - 22, below ? GRAPH_NODE_H + 1 : -8.0);
    html_open(h, "title");
    html_text(h, below ? "to " : "from ");
    for (uint32_t k = 0; k < m->n && k < told; k++) {
        const ot_fact_edge *e = &h->f->edges[m->edges[k]];
        uint32_t other = below ? e->to : e->from;
        if (k) html_text(h, ", ");
        if (other < h->f->n_nodes)
            html_text(h, graph_shorten(h->f->nodes[other].name, terse ? 14 : 22, name));
        else
            html_textf(h, "graph %s %s", below ? "output" : "input",
                       graph_shorten(e->value ? e->value : "", 22, name));
    }
    if (m->n > told) html_textf(h, " and %u more", m->n - told);
    html_close(h);
    html_close(h);
}

/* ---- nodes ---- */

static void put_node_title(html *h, const ot_fact_node *n, bool terse)
{
    const ot_facts *f = h->f;
    char bytes[48], time[48];
    html_open(h, "title");
    put_start(h, n->name, terse ? TERSE_NAME : 240);
    html_textf(h, " \xc2\xb7 %s%s%s, %s", n->op, n->shape[0] ? " " : "", n->shape,
               html_format(n->out_bytes, "bytes", bytes, sizeof bytes));
    html_textf(h, " \xc2\xb7 %s predicted, mostly %s",
               html_format(n->time, "seconds", time, sizeof time), ot_bound_name(n->bound));
    if (n->measured >= 0)
        html_textf(h, "; %s measured", html_format(n->measured, "seconds", time, sizeof time));
    if (n->region < f->n_regions) html_textf(h, " \xc2\xb7 region %u", f->regions[n->region].id);
    if (n->barrier < f->n_barriers) {
        html_text(h, " \xc2\xb7 barrier: ");
        put_start(h, f->barriers[n->barrier].reason, 200);
    }
    if (!terse && n->refusal < f->n_refusals) {
        html_text(h, " \xc2\xb7 not tiled: ");
        put_start(h, f->refusals[n->refusal].reason, 200);
    }
    if (!terse && n->is_fused)
        html_text(h, " \xc2\xb7 merged into the node before it by the runtime");
    html_close(h);
}

static void put_label(html *h, double x, double y, const char *cls, const char *text)
{
    html_open(h, "text");
    if (cls) html_attr(h, "class", cls);
    html_attrf(h, "x", "%.0f", x);
    html_attrf(h, "y", "%.0f", y);
    html_text(h, text);
    html_close(h);
}

static void put_node(html *h, const layout *l, const graph_picture *p, uint32_t k, const mark *in,
                     const mark *out)
{
    static const char shapes[] = {'c', 'b', 'o'};
    const ot_fact_node *n = &h->f->nodes[p->nodes[k]];
    bool barrier = n->barrier < h->f->n_barriers,
         dim = p->region != OT_NONE && n->region != p->region;
    bool tagged = n->region < h->f->n_regions && p->region == OT_NONE;
    char text[GRAPH_SHORT];

    html_open_class(h, "g", dim ? "node g-dim" : "node");
    html_attrf(h, "transform", "translate(%.0f %.0f)", l->boxes[k].x, l->boxes[k].y);
    if (p->searched) html_attr(h, "data-name", n->name);
    if (n->region < h->f->n_regions)
        html_attrf(h, "data-region", "%u", h->f->regions[n->region].id);
    put_node_title(h, n, p->terse);
    html_open(h, "use");
    html_attrf(h, "href", "#g-%s%c", barrier ? "barrier-" : "",
               (unsigned)n->bound < sizeof shapes ? shapes[n->bound] : 'o');
    html_close(h);
    put_label(h, 24, 15, "g-op", graph_shorten(n->op, tagged ? OP_CHARS_TAGGED : OP_CHARS, text));
    put_label(h, 24, 29, NULL, graph_shorten(n->name, NAME_CHARS, text));
    if (barrier)
        put_label(h, GRAPH_NODE_W - 6, 14, "g-tag g-stop", "barrier");
    else if (tagged) {
        snprintf(text, sizeof text, "R%u", h->f->regions[n->region].id);
        put_label(h, GRAPH_NODE_W - 6, 14, "g-tag", text);
    }
    put_mark(h, in, false, p->terse);
    put_mark(h, out, true, p->terse);
    html_close(h);
}

static ot_status put_nodes(html *h, const layout *l, const graph_picture *p, ot_arena *a)
{
    mark *in = OT_NEW_N(a, mark, l->n + 1u), *out = OT_NEW_N(a, mark, l->n + 1u);
    uint32_t *place = OT_NEW_N(a, uint32_t, h->f->n_nodes + 1u); /* of a node in the picture */
    if (!in || !out || !place) return OT_E_NOMEM;
    for (uint32_t k = 0; k < h->f->n_nodes; k++) place[k] = OT_NONE;
    for (uint32_t k = 0; k < l->n; k++) place[p->nodes[k]] = k;
    for (uint32_t e = 0; e < l->n_edges; e++) {
        if (!l->edges[e].stub) continue;
        note(&out[l->edges[e].from], p->edges[e]);
        note(&in[l->edges[e].to], p->edges[e]);
    }
    for (uint32_t e = 0; e < h->f->n_edges; e++) {
        const ot_fact_edge *x = &h->f->edges[e];
        bool from = x->from < h->f->n_nodes, to = x->to < h->f->n_nodes;
        if (!from && to && place[x->to] != OT_NONE) note(&in[place[x->to]], e);
        if (from && !to && place[x->from] != OT_NONE) note(&out[place[x->from]], e);
    }
    for (uint32_t k = 0; k < l->n; k++) put_node(h, l, p, k, &in[k], &out[k]);
    return OT_OK;
}

/* ---- regions' outlines ---- */

typedef struct outline {
    double x0, y0, x1, y1;
    uint32_t n;
} outline;

/* Around those of the n nodes of a column that are of the region, when no other is between them. */
static bool find_outline(const ot_facts *f, const layout *l, const graph_picture *p,
                         const uint32_t *column, uint32_t n, uint32_t region, outline *o)
{
    *o = (outline){INFINITY, INFINITY, -INFINITY, -INFINITY, 0};
    for (uint32_t j = 0; j < n; j++) {
        const layout_box *b = &l->boxes[column[j]];
        if (f->nodes[p->nodes[column[j]]].region != region) continue;
        *o = (outline){fmin(o->x0, b->x - 6), fmin(o->y0, b->y - 12), fmax(o->x1, b->x + b->w + 6),
                       fmax(o->y1, b->y + b->h + 6), o->n + 1};
    }
    for (uint32_t j = 0; j < n; j++) {
        const layout_box *b = &l->boxes[column[j]];
        if (f->nodes[p->nodes[column[j]]].region == region) continue;
        if (b->x < o->x1 && b->x + b->w > o->x0 && b->y < o->y1 && b->y + b->h > o->y0)
            return false;
    }
    return o->n > 1;
}

static void put_outline(html *h, const ot_fact_region *r, const outline *o)
{
    char label[64];
    html_open(h, "rect");
    html_attr(h, "class", "g-outline");
    html_attrf(h, "x", "%.0f", o->x0);
    html_attrf(h, "y", "%.0f", o->y0);
    html_attrf(h, "width", "%.0f", o->x1 - o->x0);
    html_attrf(h, "height", "%.0f", o->y1 - o->y0);
    html_attr(h, "rx", "9");
    html_close(h);
    html_open(h, "a");
    html_attrf(h, "href", "#region-%u", r->id);
    snprintf(label, sizeof label, "region %u", r->id);
    put_label(h, o->x0 + 8, o->y0 + 9, "g-region-name", label);
    html_close(h);
}

/* Nodes by column, so that each region is compared with those of its columns only. */
static ot_status put_outlines(html *h, const layout *l, const graph_picture *p, ot_arena *a)
{
    uint32_t *first = OT_NEW_N(a, uint32_t, l->n_columns + 2u),
             *ids = OT_NEW_N(a, uint32_t, l->n + 1u);
    uint32_t *done = OT_NEW_N(a, uint32_t, h->f->n_regions + 1u);
    if (!first || !ids || !done) return OT_E_NOMEM;
    for (uint32_t k = 0; k < l->n; k++) first[l->boxes[k].column + 2]++;
    for (uint32_t c = 2; c <= l->n_columns + 1; c++) first[c] += first[c - 1];
    for (uint32_t k = 0; k < l->n; k++) ids[first[l->boxes[k].column + 1]++] = k;
    for (uint32_t c = 0; c < l->n_columns; c++)
        for (uint32_t j = first[c]; j < first[c + 1]; j++) {
            outline o;
            uint32_t r = h->f->nodes[p->nodes[ids[j]]].region;
            if (r >= h->f->n_regions || done[r] == c + 1) continue;
            done[r] = c + 1;
            if (find_outline(h->f, l, p, ids + first[c], first[c + 1] - first[c], r, &o))
                put_outline(h, &h->f->regions[r], &o);
        }
    return OT_OK;
}

/* ---- the drawing ---- */

void graph_open_svg(html *h, const char *cls, double w, double height, const char *label)
{
    html_open_class(h, "svg", cls);
    html_attrf(h, "width", "%.0f", w);
    html_attrf(h, "height", "%.0f", height);
    html_attrf(h, "viewBox", "0 0 %.0f %.0f", w, height);
    html_attr(h, "role", "group");
    html_attr(h, "aria-label", label);
}

ot_status graph_draw(html *h, const layout *l, const graph_picture *p, ot_arena *a)
{
    graph_open_svg(h, "g-svg", l->width, l->height, p->label);
    if (p->region == OT_NONE) OT_TRY(put_outlines(h, l, p, a));
    OT_TRY(put_edges(h, l, p, a));
    OT_TRY(put_nodes(h, l, p, a));
    html_close(h);
    return OT_OK;
}

/* ---- the legend ---- */

static void define_node(html *h, char letter, const char *bound, bool barrier)
{
    const char text[2] = {(char)(letter - 'a' + 'A'), '\0'};
    html_open(h, "g");
    html_attrf(h, "id", "g-%s%c", barrier ? "barrier-" : "", letter);
    html_open_class(h, "path", barrier ? "g-box g-stop" : "g-box");
    html_attr(h, "d",
              barrier ? "M9 0H143L152 9V27L143 36H9L0 27V9z"
                      : "M4 0H148Q152 0 152 4V32Q152 36 148 36H4Q0 36 0 32V4Q0 0 4 0z");
    html_close(h);
    html_open(h, "path");
    html_attrf(h, "class", "bound-%s g-strip", bound);
    html_attr(h, "d", barrier ? "M9 1H19V35H9L1 27V9z" : "M4 1H19V35H4Q1 35 1 32V4Q1 1 4 1z");
    html_close(h);
    put_label(h, 10, 22, "g-letter", text);
    html_close(h);
}

/* A node of the drawings, cut short behind its letter. */
static void put_sample(html *h, bool barrier, const char *bound, const char *text)
{
    const char letter[2] = {(char)(bound[0] - 'a' + 'A'), '\0'};
    html_open_class(h, "li", NULL);
    html_open_class(h, "svg", "g-key");
    html_attr(h, "width", "30");
    html_attr(h, "height", "20");
    html_attr(h, "aria-hidden", "true");
    html_open_class(h, "path", barrier ? "g-box g-stop" : "g-box");
    html_attr(h, "d",
              barrier ? "M6 1H24L29 6V14L24 19H6L1 14V6z" : "M3 1H27L29 3V17L27 19H3L1 17V3z");
    html_close(h);
    html_open(h, "path");
    html_attrf(h, "class", "bound-%s g-strip", bound);
    html_attr(h, "d", barrier ? "M6 2H17V18H6L2 14V6z" : "M3 2H17V18H3L2 17V3z");
    html_close(h);
    put_label(h, 10, 14, "g-letter", letter);
    html_close(h);
    html_text(h, text);
    html_close(h);
}

static void put_line_sample(html *h, uint32_t width, bool in_tiles)
{
    html_open_class(h, "svg", "g-key");
    html_attr(h, "width", "30");
    html_attr(h, "height", "14");
    html_attr(h, "aria-hidden", "true");
    html_open(h, "path");
    html_attrf(h, "class", "g-edge g-w%u%s", width, in_tiles ? " g-tiles" : "");
    html_attr(h, "d", "M1 7H29");
    html_close(h);
    html_close(h);
}

static void put_edge_samples(html *h)
{
    char text[32]; /* thresholds of the page, no figures of the facts: not in <data> */
    html_open(h, "li");
    html_text(h, "lines by bytes:");
    for (uint32_t k = 1; k <= WIDTHS; k++) {
        html_text(h, " ");
        put_line_sample(h, k, false);
        html_text(h, k == 1 ? "below " : k == 2 ? "from " : "");
        html_text(h, html_format(WIDTH_BYTES[k == 1 ? 1 : k - 1], "bytes", text, sizeof text));
    }
    html_close(h);
    html_open(h, "li");
    put_line_sample(h, 2, true);
    html_text(h, "in tiles only: never whole in memory");
    html_close(h);
    html_open(h, "li");
    html_open_class(h, "svg", "g-key");
    html_attr(h, "width", "12");
    html_attr(h, "height", "14");
    html_attr(h, "aria-hidden", "true");
    html_open_class(h, "path", "g-mark");
    html_attr(h, "d", "M1 3l5 7l5-7z");
    html_close(h);
    html_close(h);
    html_text(h, "from or to elsewhere: the tooltip names it");
    html_close(h);
}

void graph_legend(html *h)
{
    static const ot_bound bounds[] = {OT_BOUND_COMPUTE, OT_BOUND_BANDWIDTH, OT_BOUND_OVERHEAD};
    static const char letters[] = {'c', 'b', 'o'};
    html_open_class(h, "svg", "g-defs");
    html_attr(h, "width", "0");
    html_attr(h, "height", "0");
    html_attr(h, "aria-hidden", "true");
    html_open(h, "defs");
    for (int k = 0; k < 6; k++)
        define_node(h, letters[k % 3], ot_bound_name(bounds[k % 3]), k >= 3);
    html_close(h);
    html_close(h);
    html_open_class(h, "ul", "g-legend");
    put_sample(h, false, "compute", "time goes into computing");
    put_sample(h, false, "bandwidth", "into moving bytes");
    put_sample(h, false, "overhead", "into overhead");
    put_sample(h, true, "overhead", "barrier: never tiled");
    put_edge_samples(h);
    html_close(h);
}
