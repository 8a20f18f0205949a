/* The graph's section: from far to near.
 *
 *   overview        inputs -> [37 untiled nodes] -> [region 0: H × 8 ...] -> ... -> outputs:
 *                   every region closed
 *   <details> each  region 0, its nodes and the nodes around it: a region open
 *   <details>       every node, in a frame that scrolls and zooms: all open
 *
 * Nothing here needs a script: a closed region is a link to its open drawing (#graph-region-N,
 * inside of a <details>, which browsers open for a link into it) and from there to its tilings
 * (#region-N).
 */
#include "html_graph.h"

#include <math.h>

#define FULL_NODES   6000 /* more are not drawn */
#define FULL_TERSE   1200
#define FULL_OPEN    400  /* shown at once when there are no regions to look at */
#define OPEN_NODES   150  /* of one region that are drawn */
#define OPEN_AROUND  16   /* nodes around it */
#define OPEN_TOTAL   2000 /* nodes in the drawings of all regions */
#define OPEN_TERSE   1000 /* of a model with very many nodes */
#define OVERVIEW_MAX 400  /* boxes of the overview */
#define BOX_W        232.0
#define BOX_H        70.0
#define PILL_H       34.0
#define PAGE_W       1040.0

/* ---- overview ---- */

typedef struct line {
    char text[200];
} line;

static void count_text(char *buffer, size_t size, uint32_t n, const char *noun)
{
    char number[48];
    snprintf(buffer, size, "%s %s%s", html_format(n, "count", number, sizeof number), noun,
             n == 1 ? "" : "s");
}

/* "Conv 12, Relu 11, Add 4, ...": the operators of group g, most frequent first. */
static void list_ops(const ot_facts *f, const graph_groups *gs, uint32_t g, char *buffer,
                     size_t size)
{
    enum { KINDS = 24, CHARS = 30 };
    struct {
        const char *op;
        uint32_t n;
    } kinds[KINDS];
    uint32_t n_kinds = 0, left = gs->groups[g].n;
    size_t used = 0;
    for (uint32_t k = 0, seen = 0; k < f->n_nodes && seen < gs->groups[g].n; k++) {
        uint32_t j = 0;
        if (gs->of_node[k] != g) continue;
        seen++;
        while (j < n_kinds && strcmp(kinds[j].op, f->nodes[k].op) != 0) j++;
        if (j == n_kinds && n_kinds == KINDS) continue;
        if (j == n_kinds) {
            kinds[n_kinds].op = f->nodes[k].op;
            kinds[n_kinds++].n = 0;
        }
        kinds[j].n++;
    }
    buffer[0] = '\0';
    while (left > 0) {
        char op[GRAPH_SHORT], text[GRAPH_SHORT + 16];
        uint32_t best = OT_NONE;
        for (uint32_t j = 0; j < n_kinds; j++)
            if (kinds[j].n && (best == OT_NONE || kinds[j].n > kinds[best].n)) best = j;
        if (best == OT_NONE) break;
        int n = snprintf(text, sizeof text, "%s%s %u", used ? ", " : "",
                         graph_shorten(kinds[best].op, 14, op), kinds[best].n);
        if (n < 0 || used + (size_t)n >= size || (used && used + (size_t)n > CHARS)) break;
        memcpy(buffer + used, text, (size_t)n + 1);
        used += (size_t)n;
        left -= kinds[best].n;
        kinds[best].n = 0;
    }
    if (left > 0 && used + 6 < size) snprintf(buffer + used, size - used, ", \xe2\x80\xa6");
}

/* The three lines in a box. */
static void describe(const html *h, const graph_groups *gs, uint32_t g, line lines[3])
{
    const graph_group *group = &gs->groups[g];
    char tiles[96], before[48], after[48];
    memset(lines, 0, 3 * sizeof *lines);
    if (group->kind == GRAPH_INPUTS || group->kind == GRAPH_OUTPUTS) {
        count_text(lines[0].text, sizeof lines[0].text, group->n,
                   group->kind == GRAPH_INPUTS ? "graph input" : "graph output");
    } else if (group->kind == GRAPH_REGION) {
        const ot_fact_region *r = &h->f->regions[group->region];
        snprintf(lines[0].text, sizeof lines[0].text, "region %u: %s", r->id,
                 html_tiling(r->n_dims, r->axes, r->tiles, tiles, sizeof tiles));
        count_text(before, sizeof before, group->n, "node");
        snprintf(lines[1].text, sizeof lines[1].text, "%s, %s", r->form ? r->form : "", before);
        snprintf(lines[2].text, sizeof lines[2].text, "%s \xe2\x86\x92 %s",
                 html_format(r->time_untiled, "seconds", before, sizeof before),
                 html_format(r->time_tiled, "seconds", after, sizeof after));
    } else if (group->n == 1) {
        const ot_fact_node *n = &h->f->nodes[group->first];
        char name[GRAPH_SHORT];
        snprintf(lines[0].text, sizeof lines[0].text, "%s", graph_shorten(n->op, 22, name));
        snprintf(lines[1].text, sizeof lines[1].text, "%s", graph_shorten(n->name, 22, name));
        snprintf(lines[2].text, sizeof lines[2].text, "%s",
                 html_format(group->time, "seconds", before, sizeof before));
    } else {
        count_text(lines[0].text, sizeof lines[0].text, group->n, "untiled node");
        list_ops(h->f, gs, g, lines[1].text, sizeof lines[1].text);
        snprintf(lines[2].text, sizeof lines[2].text, "%s",
                 html_format(group->time, "seconds", before, sizeof before));
    }
}

static void put_text(html *h, double x, double y, const char *cls, const char *text)
{
    html_open(h, "text");
    if (cls) html_attr(h, "class", cls);
    html_attrf(h, "x", "%.0f", x);
    html_attrf(h, "y", "%.0f", y);
    html_text(h, text);
    html_close(h);
}

/* The box's tooltip says what the box leaves out: the barriers' reasons. */
static void put_box_title(html *h, const graph_group *group, const line lines[3])
{
    html_open(h, "title");
    html_text(h, lines[0].text);
    if (lines[1].text[0]) html_textf(h, " \xc2\xb7 %s \xc2\xb7 %s", lines[1].text, lines[2].text);
    if (group->n_barriers) {
        const ot_fact_barrier *b = &h->f->barriers[group->barrier];
        html_textf(h, " \xc2\xb7 %u barrier%s, the first: %.200s", group->n_barriers,
                   group->n_barriers == 1 ? "" : "s", b->reason);
    }
    if (group->kind == GRAPH_REGION) html_text(h, " \xc2\xb7 open it: its nodes, below");
    html_close(h);
}

static void put_rect(html *h, const char *cls, double w, double height, double radius)
{
    html_open_class(h, "rect", cls);
    html_attrf(h, "width", "%.0f", w);
    html_attrf(h, "height", "%.0f", height);
    html_attrf(h, "rx", "%.0f", radius);
    html_close(h);
}

static void put_group(html *h, const layout *l, const graph_groups *gs, uint32_t g)
{
    static const char *const classes[] = {"g-pill", "g-box g-run", "g-box g-region-box", "g-pill"};
    static const char letters[] = {'C', 'B', 'O'};
    const graph_group *group = &gs->groups[g];
    const ot_fact_region *r = group->kind == GRAPH_REGION ? &h->f->regions[group->region] : NULL;
    bool pill = group->kind == GRAPH_INPUTS || group->kind == GRAPH_OUTPUTS;
    line lines[3];

    describe(h, gs, g, lines);
    html_open_class(h, r ? "a" : "g", "g-group");
    if (r) html_attrf(h, "href", "#graph-region-%u", r->id);
    html_attrf(h, "transform", "translate(%.0f %.0f)", l->boxes[g].x, l->boxes[g].y);
    html_attrf(h, "data-nodes", "%u", group->n);
    put_box_title(h, group, lines);
    put_rect(h, classes[group->kind], l->boxes[g].w, l->boxes[g].h, pill ? PILL_H / 2 : r ? 10 : 5);
    if (r) {
        char letter[2] = {(unsigned)r->bound < 3 ? letters[r->bound] : 'O', '\0'};
        html_open_class(h, "g", NULL);
        html_attr(h, "transform", "translate(2 2)");
        html_open(h, "rect");
        html_attrf(h, "class", "bound-%s g-strip", ot_bound_name(r->bound));
        html_attr(h, "width", "18");
        html_attrf(h, "height", "%.0f", BOX_H - 4);
        html_attr(h, "rx", "8");
        html_close(h);
        html_close(h);
        put_text(h, 11, BOX_H / 2 + 4, "g-letter", letter);
    }
    put_text(h, pill ? l->boxes[g].w / 2 : 28, pill ? 21 : 22, pill ? "g-middle" : "g-head",
             lines[0].text);
    if (!pill) put_text(h, 28, 41, NULL, lines[1].text);
    if (!pill) put_text(h, 28, 59, "g-quiet", lines[2].text);
    if (group->n_barriers) {
        char tag[48];
        count_text(tag, sizeof tag, group->n_barriers, "barrier");
        html_open_class(h, "path", "g-stop-sign");
        html_attrf(h, "d", "M%.0f 50h6l4 4v6l-4 4h-6l-4-4v-6z",
                   BOX_W - 24 - 6.4 * (double)strlen(tag));
        html_close(h);
        put_text(h, BOX_W - 8, 61, "g-tag g-stop", tag);
    }
    html_close(h);
}

static void put_flow(html *h, const layout *l, const graph_groups *gs, uint32_t e)
{
    const graph_flow *flow = &gs->flows[e];
    char route[LAYOUT_ROUTE], bytes[48];
    html_open(h, "path");
    html_attrf(h, "class", "g-edge g-w%u", graph_width_class(flow->bytes));
    html_attr(h, "d", layout_route(l, e, route));
    html_open(h, "title");
    html_textf(h, "%u tensor%s, %s", flow->n, flow->n == 1 ? "" : "s",
               html_format(flow->bytes, "bytes", bytes, sizeof bytes));
    html_close(h);
    html_close(h);
}

static ot_status put_overview(html *h, ot_arena *a)
{
    graph_groups gs;
    OT_TRY(graph_group_nodes(h->f, a, &gs));
    uint32_t n = gs.n < OVERVIEW_MAX ? gs.n : OVERVIEW_MAX;
    layout l = {
        .n = n, .n_edges = gs.n_flows, .gap_x = 26, .gap_y = 30, .row_max = 4, .max_width = PAGE_W};
    l.boxes = OT_NEW_N(a, layout_box, n + 1u);
    l.edges = OT_NEW_N(a, layout_edge, gs.n_flows + 1u);
    if (!l.boxes || !l.edges) return OT_E_NOMEM;
    for (uint32_t g = 0; g < n; g++) {
        bool pill = gs.groups[g].kind == GRAPH_INPUTS || gs.groups[g].kind == GRAPH_OUTPUTS;
        l.boxes[g] = (layout_box){.w = pill ? 150 : BOX_W, .h = pill ? PILL_H : BOX_H};
    }
    for (uint32_t e = 0; e < gs.n_flows; e++)
        l.edges[e] = (layout_edge){.from = gs.flows[e].from, .to = gs.flows[e].to};
    OT_TRY(layout_run(&l, a));
    html_open_class(h, "div", "g-overview");
    graph_open_svg(h, "g-svg", l.width, l.height, "Overview: regions and what lies between them");
    for (uint32_t e = 0; e < l.n_edges; e++)
        if (!l.edges[e].stub) put_flow(h, &l, &gs, e);
    for (uint32_t g = 0; g < n; g++) put_group(h, &l, &gs, g);
    html_close(h);
    html_close(h);
    if (n == gs.n) return OT_OK;
    html_open_class(h, "p", "note");
    html_text(h, "Further boxes, not drawn: ");
    html_count(h, gs.n - n);
    html_close(h);
    return OT_OK;
}

/* ---- pictures of nodes ---- */

/* Lay out and draw p.nodes[0 .. l->n), ascending, with the edges between them. place: [n_nodes],
 * OT_NONE everywhere, and again after. l: n and max_width are set. */
static ot_status put_picture(html *h, graph_picture p, uint32_t *place, ot_arena *a, layout *l)
{
    const ot_facts *f = h->f;
    const uint32_t n = l->n, *nodes = p.nodes;
    uint32_t n_edges = 0, *edges = OT_NEW_N(a, uint32_t, f->n_edges + 1u);
    l->gap_x = 18;
    l->gap_y = 26;
    l->row_max = 8;
    l->boxes = OT_NEW_N(a, layout_box, n + 1u);
    l->edges = OT_NEW_N(a, layout_edge, f->n_edges + 1u);
    if (!edges || !l->boxes || !l->edges) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) {
        place[nodes[k]] = k;
        l->boxes[k] = (layout_box){.w = GRAPH_NODE_W, .h = GRAPH_NODE_H};
    }
    for (uint32_t e = 0; e < f->n_edges; e++) {
        const ot_fact_edge *x = &f->edges[e];
        if (x->from >= f->n_nodes || x->to >= f->n_nodes || place[x->from] == OT_NONE ||
            place[x->to] == OT_NONE)
            continue;
        l->edges[n_edges] = (layout_edge){.from = place[x->from], .to = place[x->to]};
        edges[n_edges++] = e;
    }
    l->n_edges = n_edges;
    for (uint32_t k = 0; k < n; k++) place[nodes[k]] = OT_NONE;
    OT_TRY(layout_run(l, a));
    p.edges = edges;
    return graph_draw(h, l, &p, a);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The first nodes of region r, and some of those around it, ascending; returns their number.
 * in_list: [n_nodes], clear. */
static uint32_t pick_nodes(const ot_facts *f, uint32_t r, uint32_t *list, bool *in_list,
                           uint32_t *around)
{
    const ot_fact_region *region = &f->regions[r];
    uint32_t n = 0;
    for (uint32_t k = 0; k < region->n_nodes && n < OPEN_NODES; k++) {
        list[n++] = region->nodes[k];
        in_list[region->nodes[k]] = true;
    }
    *around = 0;
    for (uint32_t e = 0; e < f->n_edges && *around < OPEN_AROUND; e++) {
        const ot_fact_edge *x = &f->edges[e];
        if (x->from >= f->n_nodes || x->to >= f->n_nodes || in_list[x->from] == in_list[x->to])
            continue;
        uint32_t other = in_list[x->from] ? x->to : x->from,
                 own = in_list[x->from] ? x->from : x->to;
        if (f->nodes[other].region == r || f->nodes[own].region != r) continue;
        list[n++] = other;
        in_list[other] = true;
        ++*around;
    }
    for (uint32_t k = 0; k < n; k++) in_list[list[k]] = false;
    qsort(list, n, sizeof *list, by_number);
    return n;
}

static ot_status put_region(html *h, uint32_t r, uint32_t *place, bool *in_list, bool drawn)
{
    const ot_fact_region *region = &h->f->regions[r];
    char label[64];
    uint32_t around, list[OPEN_NODES + OPEN_AROUND];
    layout l = {0};
    ot_status st = OT_OK;
    html_open_class(h, "details", "g-open");
    html_open(h, "summary");
    html_textf(h, "region %u: ", region->id);
    for (uint32_t d = 0; d < region->n_dims; d++)
        html_axis(h, d, region->axes[d], region->tiles[d]);
    html_textf(h, ", %s, ", region->form ? region->form : "");
    html_count(h, region->n_nodes);
    html_text(h, region->n_nodes == 1 ? " node" : " nodes");
    html_close(h);
    html_open_class(h, "div", "body");
    html_attrf(h, "id", "graph-region-%u", region->id);
    html_open_class(h, "p", "note");
    html_open(h, "a");
    html_attrf(h, "href", "#region-%u", region->id);
    html_textf(h, "Tilings of region %u that were scored", region->id);
    html_close(h);
    if (drawn && region->n_nodes > OPEN_NODES) {
        html_text(h, " \xc2\xb7 drawn are its first ");
        html_count(h, OPEN_NODES);
        html_text(h, " nodes");
    }
    html_text(h, drawn ? " \xc2\xb7 pale nodes are around it"
                       : " \xc2\xb7 its nodes are in the drawing of every node, below");
    html_close(h);
    ot_arena *a = drawn ? ot_arena_new() : NULL;
    if (drawn && !a) return OT_E_NOMEM;
    if (drawn) {
        snprintf(label, sizeof label, "Nodes of region %u", region->id);
        html_open_class(h, "div", "g-frame");
        l = (layout){.n = pick_nodes(h->f, r, list, in_list, &around), .max_width = PAGE_W};
        st = put_picture(h, (graph_picture){.nodes = list, .region = r, .label = label}, place, a,
                         &l);
        html_close(h);
    }
    ot_arena_free(a);
    html_close(h);
    html_close(h);
    return st;
}

static ot_status put_regions(html *h, uint32_t *place, ot_arena *a)
{
    bool *in_list = OT_NEW_N(a, bool, h->f->n_nodes + 1u);
    uint32_t total = 0;
    if (!in_list) return OT_E_NOMEM;
    for (uint32_t r = 0; r < h->f->n_regions; r++) {
        uint32_t n = h->f->regions[r].n_nodes < OPEN_NODES ? h->f->regions[r].n_nodes : OPEN_NODES;
        bool drawn = total + n <= (h->f->n_nodes > FULL_TERSE ? OPEN_TERSE : OPEN_TOTAL);
        if (drawn) total += n + OPEN_AROUND;
        OT_TRY(put_region(h, r, place, in_list, drawn));
    }
    return OT_OK;
}

/* ---- every node ---- */

static void put_zoom(html *h)
{
    static const struct {
        const char *id, *text;
    } sizes[] = {{"g-zoom-100", "full size"},
                 {"g-zoom-50", "half"},
                 {"g-zoom-25", "a quarter"},
                 {"g-zoom-fit", "as wide as the page"}};
    for (int k = 0; k < 4; k++) {
        html_open_class(h, "input", "g-zoom");
        html_attr(h, "type", "radio");
        html_attr(h, "name", "g-zoom");
        html_attr(h, "id", sizes[k].id);
        if (k == 0) html_attr(h, "checked", "checked");
        html_close(h);
        html_open(h, "label");
        html_attr(h, "for", sizes[k].id);
        html_text(h, sizes[k].text);
        html_close(h);
    }
}

static ot_status put_full(html *h, uint32_t *place, ot_arena *a)
{
    uint32_t n = h->f->n_nodes < FULL_NODES ? h->f->n_nodes : FULL_NODES;
    uint32_t *nodes = OT_NEW_N(a, uint32_t, n + 1u);
    layout l = {0};
    if (!nodes) return OT_E_NOMEM;
    for (uint32_t k = 0; k < n; k++) nodes[k] = k;
    html_open_class(h, "details", "g-full");
    html_attr(h, "id", "graph-all");
    if (h->f->n_regions == 0 && n <= FULL_OPEN) html_attr(h, "open", "open");
    html_open(h, "summary");
    html_text(h, "Every node (");
    html_count(h, h->f->n_nodes);
    html_text(h, ")");
    html_close(h);
    html_open_class(h, "div", "body");
    put_zoom(h);
    html_open_class(h, "div", "g-frame g-scroll");
    html_attr(h, "tabindex", "0");
    html_attr(h, "role", "region");
    html_attr(h, "aria-label", "Every node of the graph; scroll with the arrow keys");
    const graph_picture all = {.nodes = nodes,
                               .region = OT_NONE,
                               .searched = true,
                               .terse = n > FULL_TERSE,
                               .label = "Every node of the graph"};
    l.n = n;
    OT_TRY(put_picture(h, all, place, a, &l));
    html_close(h);
    html_open_class(h, "p", "note");
    html_text(h, "From top to bottom, then the next column. \xe2\x96\xbe marks at a node stand for "
                 "graph inputs and outputs, and "
                 "for long edges that are not drawn: ");
    html_count(h, l.n_stubs);
    html_text(h, ".");
    if (n < h->f->n_nodes) {
        html_text(h, " The drawing ends after ");
        html_count(h, n);
        html_text(h, " nodes.");
    }
    html_close(h);
    html_close(h);
    html_close(h);
    return OT_OK;
}

static ot_status put_section(html *h, ot_arena *a)
{
    uint32_t *place = OT_NEW_N(a, uint32_t, h->f->n_nodes + 1u);
    if (!place) return OT_E_NOMEM;
    for (uint32_t k = 0; k < h->f->n_nodes; k++) place[k] = OT_NONE;
    html_section(h, "graph", "Graph",
                 h->f->n_regions ? "Every region is one box; what is not tiled between them is one "
                                   "box too. A region's box opens "
                                   "the drawing of its nodes below."
                                 : "Nothing is tiled here, so there are no regions to open.");
    graph_legend(h);
    OT_TRY(put_overview(h, a));
    OT_TRY(put_regions(h, place, a));
    OT_TRY(put_full(h, place, a));
    html_close(h);
    return OT_OK;
}

void html_graph(html *h)
{
    if (h->f->n_nodes == 0) return;
    ot_arena *a = ot_arena_new();
    if (!a || put_section(h, a) != OT_OK) h->failed = true;
    ot_arena_free(a);
}
