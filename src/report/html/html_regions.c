/* The regions: one row each, and below one <details> each with its nodes and its candidates.
 *
 *   region  operators     nodes  axes x tiles  form      working set  time        ...
 *   r0      Conv 2, Relu 2    4  H 8 x W 4     unrolled  [####  ]     1 ms -> 650 us
 *   > r0  Conv 2, Relu 2   H 8 x W 4             what one opens
 *
 * What a details element holds is bounded by how many regions there are, so that the page stays
 * small whatever the model is.
 */
#include "html.h"

#define OPERATORS    4    /* kinds named in a row */
#define NODES_ALL    1500 /* rows of nodes in the page, about */
#define NODES_MOST   50
#define NODES_LEAST  5
#define ROWS_OPEN    30  /* regions; more are in a box that scrolls, and folded away together */
#define DETAILS_MOST 150 /* regions that can be opened */

static void put_arrow(html *h) { html_leaf(h, "span", "arrow", "\xe2\x86\x92"); }

/* "before -> after" */
static void put_change(html *h, double before, double after, const char *unit)
{
    html_number(h, before, unit);
    put_arrow(h);
    html_number(h, after, unit);
}

static void put_change_cell(html *h, double before, double after, const char *unit)
{
    html_open_class(h, "td", "num");
    if (before < 0 && after < 0)
        html_text(h, "-");
    else
        put_change(h, before, after, unit);
    html_close(h);
}

static void put_tiles(html *h, const ot_fact_region *r)
{
    for (uint32_t d = 0; d < r->n_dims; d++) html_axis(h, d, r->axes[d], r->tiles[d]);
}

static void put_working_set(html *h, const ot_fact_region *r)
{
    html_open_class(h, "td", "num");
    html_bytes(h, (double)r->working_set);
    if (*r->residence) {
        html_open_class(h, "span", "quiet");
        html_textf(h, " %s", r->working_set <= r->capacity ? "fits" : "streams");
        html_close(h);
    } else if (r->capacity > 0) {
        html_gauge(h, r->fill);
        html_open_class(h, "span", "quiet");
        html_percent(h, r->fill);
        html_text(h, " of capacity");
        html_close(h);
    }
    html_close(h);
}

static void put_bound_cell(html *h, const ot_fact_region *r)
{
    html_open_class(h, "td", "bounds");
    if (r->bound_untiled != r->bound) {
        html_bound(h, r->bound_untiled);
        put_arrow(h);
    }
    html_bound(h, r->bound);
    html_close(h);
}

static bool any_measured(const ot_facts *f)
{
    for (uint32_t k = 0; k < f->n_regions; k++)
        if (f->regions[k].measured >= 0 || f->regions[k].measured_untiled >= 0) return true;
    return false;
}

static void put_row(html *h, const ot_fact_region *r, bool measured, bool linked)
{
    html_open_class(h, "tr", "find");
    if (!linked) html_attrf(h, "id", "region-%u", r->id); /* where links to the region lead, then */
    html_attrf(h, "data-region", "%u", r->id);
    html_open(h, "th");
    html_attr(h, "scope", "row");
    html_open(h, linked ? "a" : "span");
    if (linked) html_attrf(h, "href", "#region-%u", r->id);
    html_textf(h, "r%u", r->id);
    html_close(h);
    html_close(h);
    html_open_class(h, "td", "operators");
    html_operators(h, r->nodes, r->n_nodes, OPERATORS);
    if (r->n_sums)
        html_leaf(h, "span", "quiet", "; parts of a reduction are combined after the tiles");
    html_close(h);
    html_open_class(h, "td", "num");
    html_count(h, r->n_nodes);
    html_close(h);
    html_open_class(h, "td", "tiles");
    put_tiles(h, r);
    html_close(h);
    html_leaf(h, "td", NULL, r->form);
    put_working_set(h, r);
    put_change_cell(h, r->time_untiled, r->time_tiled, "seconds");
    if (measured) {
        put_change_cell(h, r->measured_untiled, r->measured, "seconds");
        html_open_class(h, "td", "num");
        html_percent(h, r->error);
        html_close(h);
    }
    put_change_cell(h, r->traffic_untiled, r->traffic, "bytes");
    html_open_class(h, "td", "num");
    html_ratio(h, r->mac_ratio);
    html_close(h);
    put_bound_cell(h, r);
    html_close(h);
}

static void put_table(html *h)
{
    static const char *const plain[] = {"Region",
                                        "Operators",
                                        "#Nodes",
                                        "Axes \xc3\x97 tiles",
                                        "Form",
                                        "#Working set",
                                        "#Time, predicted",
                                        "#Bytes moved",
                                        "#MACs",
                                        "Bound by",
                                        NULL};
    static const char *const timed[] = {"Region",
                                        "Operators",
                                        "#Nodes",
                                        "Axes \xc3\x97 tiles",
                                        "Form",
                                        "#Working set",
                                        "#Time, predicted",
                                        "#Time, measured",
                                        "#Error",
                                        "#Bytes moved",
                                        "#MACs",
                                        "Bound by",
                                        NULL};
    bool measured = any_measured(h->f);
    html_scroll(h, h->f->n_regions > ROWS_OPEN ? "panel scroll tall" : "panel scroll",
                "Table of regions");
    html_open_class(h, "table", "sortable");
    html_attr(h, "id", "region-table");
    html_heads(h, measured ? timed : plain);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < h->f->n_regions; k++)
        put_row(h, &h->f->regions[k], measured, k < DETAILS_MOST);
    html_close(h);
    html_close(h);
    html_close(h);
}

/* ---- one region ---- */

static void put_node(html *h, const ot_fact_node *n)
{
    html_open(h, "tr");
    html_leaf(h, "td", "n", n->name);
    html_open(h, "td");
    html_text(h, n->op);
    if (n->is_fused) html_leaf(h, "span", "quiet", " fused");
    html_close(h);
    html_leaf(h, "td", "shape", *n->shape ? n->shape : "-");
    html_open_class(h, "td", "num");
    html_seconds(h, n->time);
    html_close(h);
    html_open(h, "td");
    /* what is fused into another takes no time of its own */
    if (n->time > 0) html_bound(h, n->bound);
    html_close(h);
    html_close(h);
}

static uint32_t room_of(const ot_facts *f)
{
    uint32_t room = NODES_ALL / f->n_regions;
    return room > NODES_MOST ? NODES_MOST : room < NODES_LEAST ? NODES_LEAST : room;
}

static void put_nodes_table(html *h, const ot_fact_region *r, uint32_t shown)
{
    static const char *const heads[] = {"Node",           "Operator", "Output",
                                        "#Time, untiled", "Bound by", NULL};
    html_open_class(h, "div", "scroll tall");
    html_attr(h, "tabindex", "0");
    html_attr(h, "role", "region");
    html_attrf(h, "aria-label", "Nodes of region %u", r->id);
    html_open_class(h, "table", "small");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < shown; k++) put_node(h, &h->f->nodes[r->nodes[k]]);
    html_close(h);
    html_close(h);
    html_close(h);
    if (shown < r->n_nodes) {
        html_open_class(h, "p", "quiet");
        html_rest(h, r->n_nodes);
        html_close(h);
    }
}

static void put_nodes(html *h, const ot_fact_region *r)
{
    uint32_t most = room_of(h->f);
    html_open(h, "div");
    html_leaf(h, "h3", NULL, "Nodes");
    if (h->f->n_regions > HTML_REGIONS_FULL)
        html_names(h, r->nodes, r->n_nodes, most);
    else
        put_nodes_table(h, r, r->n_nodes < most ? r->n_nodes : most);
    html_close(h);
}

static void put_text_fact(html *h, const char *title, const char *text)
{
    html_leaf(h, "dt", NULL, title);
    html_leaf(h, "dd", NULL, text);
}

static void put_change_fact(html *h, const char *title, double before, double after,
                            const char *unit)
{
    if (before < 0 && after < 0) return;
    html_leaf(h, "dt", NULL, title);
    html_open(h, "dd");
    put_change(h, before, after, unit);
    html_close(h);
}

static void put_tile_facts(html *h, const ot_fact_region *r)
{
    html_leaf(h, "dt", NULL, "One tile");
    html_open(h, "dd");
    for (uint32_t d = 0; d < r->n_dims; d++) {
        html_axis(h, d, r->axes[d], (double)r->tile[d]);
        if (r->extent[d] > 0) {
            html_text(h, " of ");
            html_count(h, (double)r->extent[d]);
        }
    }
    html_close(h);
}

/* "GlobalAveragePool pool5, ..." */
static void put_sums(html *h, const ot_fact_region *r)
{
    if (r->n_sums == 0) return;
    html_leaf(h, "dt", NULL, "Ends in");
    html_open(h, "dd");
    for (uint32_t k = 0; k < r->n_sums; k++) {
        const ot_fact_node *n = &h->f->nodes[r->sums[k].node];
        html_textf(h, "%s%s ", k ? ", " : "", n->op);
        html_leaf(h, "span", "name", n->name);
    }
    html_text(h, ": every tile reduces its share, the parts are combined after the tiles");
    html_close(h);
}

static void put_facts(html *h, const ot_fact_region *r)
{
    html_open_class(h, "div", NULL);
    html_leaf(h, "h3", NULL, "Figures");
    html_open_class(h, "dl", "facts");
    html_leaf(h, "dt", NULL, "Tiles");
    html_open(h, "dd");
    put_tiles(h, r);
    html_close(h);
    put_tile_facts(h, r);
    put_text_fact(h, "Form", r->form);
    put_sums(h, r);
    html_fact(h, "Working set", (double)r->working_set, "bytes");
    html_fact(h, "Least possible", (double)r->working_set_bound, "bytes");
    html_fact(h, "Capacity", (double)r->capacity, "bytes");
    if (*r->residence)
        put_text_fact(h, "In the cache", r->residence);
    else
        html_fact(h, "Filled", r->fill, "percent");
    if (r->placement && *r->placement) put_text_fact(h, "Buffers are placed", r->placement);
    if (r->cores && *r->cores) put_text_fact(h, "In the cores", r->cores);
    html_fact(h, "Weights", (double)r->weights, "bytes");
    if (r->weights > 0)
        put_text_fact(h, "Weights are",
                      r->weights_stay ? "kept in fast memory" : "streamed for every tile");
    put_change_fact(h, "Time, predicted", r->time_untiled, r->time_tiled, "seconds");
    html_fact(h, "Saved", r->benefit, "seconds");
    put_change_fact(h, "Time, measured", r->measured_untiled, r->measured, "seconds");
    html_fact(h, "Prediction is off by", r->error, "percent");
    put_change_fact(h, "Bytes moved", r->traffic_untiled, r->traffic, "bytes");
    html_fact(h, "MACs, with recomputed halos", r->mac_ratio, "ratio");
    html_close(h);
    html_close(h);
}

static void put_block_row(html *h, const ot_fact_block *b)
{
    html_open(h, "tr");
    html_leaf(h, "td", "n", b->node);
    html_leaf(h, "td", NULL, b->operation);
    html_leaf(h, "td", NULL, b->unit);
    html_leaf(h, "td", "shape", b->extent);
    html_leaf(h, "td", "shape", b->block);
    html_open_class(h, "td", "num");
    if (b->depth > 0)
        html_textf(h, "%lld of %lld", (long long)b->depth_block, (long long)b->depth);
    else
        html_text(h, "-");
    html_close(h);
    html_open_class(h, "td", "num");
    html_count(h, (double)b->n_blocks);
    html_close(h);
    html_open_class(h, "td", "num");
    html_bytes(h, (double)b->bytes);
    html_close(h);
    html_close(h);
}

/* The second level: blocks in the memories of the cores. */
static void put_blocks(html *h, const ot_fact_region *r)
{
    static const char *const heads[] = {"Node",   "Operation", "Unit",         "Tile", "Block",
                                        "#Depth", "#Blocks",   "#Bytes moved", NULL};
    const uint32_t most = room_of(h->f), shown = r->n_blocks < most ? r->n_blocks : most;
    if (r->n_blocks == 0) return;
    html_leaf(h, "h3", NULL, "Blocks in the cores");
    html_scroll(h, "scroll tall", "Blocks in the cores");
    html_open_class(h, "table", "small");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < shown; k++) put_block_row(h, &r->blocks[k]);
    html_close(h);
    html_close(h);
    html_close(h);
    if (shown < r->n_blocks) html_leaf(h, "p", "quiet", "The XML has the others.");
}

static void put_details(html *h, const ot_fact_region *r)
{
    html_open_class(h, "details", "region find");
    html_attrf(h, "id", "region-%u", r->id);
    html_attrf(h, "data-region", "%u", r->id);
    html_open(h, "summary");
    html_open(h, "b");
    html_textf(h, "Region r%u", r->id);
    html_close(h);
    html_open_class(h, "span", "brief");
    html_operators(h, r->nodes, r->n_nodes, OPERATORS);
    html_close(h);
    html_open_class(h, "span", "right");
    put_tiles(h, r);
    html_close(h);
    html_close(h);
    html_open_class(h, "div", "body");
    html_open_class(h, "div", "columns");
    put_facts(h, r);
    put_nodes(h, r);
    html_close(h);
    put_blocks(h, r);
    if (r->n_candidates) html_candidates(h, r);
    html_close(h);
    html_close(h);
}

static void put_one_by_one(html *h)
{
    static const char title[] = "One by one: nodes, and the tilings that were scored";
    const ot_facts *f = h->f;
    bool folded = f->n_regions > ROWS_OPEN;
    if (folded) {
        html_open_class(h, "details", "plain");
        html_leaf(h, "summary", NULL, title);
    } else
        html_leaf(h, "h3", NULL, title);
    if (f->n_regions <= HTML_REGIONS_FULL) html_candidates_legend(h);
    for (uint32_t k = 0; k < f->n_regions && k < DETAILS_MOST; k++) put_details(h, &f->regions[k]);
    if (f->n_regions > DETAILS_MOST) {
        html_open_class(h, "p", "quiet");
        html_rest(h, f->n_regions);
        html_text(h, ", of which the XML report tells.");
        html_close(h);
    }
    if (folded) html_close(h);
}

void html_regions(html *h)
{
    const ot_facts *f = h->f;
    if (!f->n_regions) return;
    html_section(h, "regions", "Regions",
                 "A region is a group of nodes that runs tile by tile, so that what flows between "
                 "them stays in fast memory. "
                 "MACs: how many it computes for each one of the untiled model; above one, tiles "
                 "overlap and compute their rims "
                 "again.");
    put_table(h);
    put_one_by_one(h);
    html_close(h);
}
