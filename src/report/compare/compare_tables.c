/* Tables of a comparison: regions side by side, nodes by what became of them, measured times,
 * memory maps, entries.
 *
 *   before  after  operators  nodes  axes x tiles      form              time              what
 *   r0      r0     Conv 2     4      H 4 x W 4 -> H 4  unrolled -> scan  650 us -> 325 us  other
 *                                                                                          tiles
 *   r3      -      MatMul     2      a0 8              loop-peeled       1.6 ms            only
 *                                                                                          before
 *
 * What is equal is said once; lists are bounded, and say how much they leave out.
 */
#include "compare.h"

#define OPERATORS   4
#define ROWS_MOST   1000 /* regions */
#define NODES_MOST  300  /* nodes of one kind of change */
#define TILING_SIZE 128

static const char ARROW[] = "\xe2\x86\x92";

static void put_cell(html *h, const char *cls, const char *text) { html_leaf(h, "td", cls, text); }

static void put_figures_cell(html *h, double before, double after, const char *unit)
{
    html_open_class(h, "td", "num");
    ot_compare_figures(h, before, after, unit);
    html_close(h);
}

static void put_ratio_cell(html *h, double before, double after)
{
    html_open_class(h, "td", "num");
    ot_compare_ratio(h, before, after);
    html_close(h);
}

/* "a -> b", or one of them when they are equal or the other is missing (NULL). */
static void put_texts_cell(html *h, const char *before, const char *after)
{
    html_open(h, "td");
    html_text(h, before ? before : after);
    if (before && after && strcmp(before, after) != 0) {
        html_text(h, " ");
        html_leaf(h, "span", "arrow", ARROW);
        html_textf(h, " %s", after);
    }
    html_close(h);
}

static void put_table(html *h, const char *cls, const char *const *heads)
{
    html_open_class(h, "div", "panel scroll");
    html_open_class(h, "table", cls);
    html_heads(h, heads);
    html_open(h, "tbody");
}

static void close_table(html *h)
{
    html_close(h);
    html_close(h);
    html_close(h);
}

static void put_more(html *h, uint32_t n, const char *what)
{
    html_open_class(h, "p", "quiet");
    html_textf(h, "and %u more %s", n, what);
    html_close(h);
}

/* ---- regions ---- */

static const ot_fact_region *region_at(const comparison *c, int side, uint32_t k)
{
    return k == OT_NONE ? NULL : &c->side[side]->regions[k];
}

static void put_region_name(html *h, const ot_fact_region *r)
{
    html_open(h, "td");
    if (r)
        html_textf(h, "r%u", r->id);
    else
        html_text(h, "-");
    html_close(h);
}

static void put_nodes_cell(html *h, const ot_fact_region *a, const ot_fact_region *b,
                           uint32_t shared)
{
    html_open_class(h, "td", "num");
    if (a && b && (a->n_nodes != shared || b->n_nodes != shared))
        html_textf(h, "%u %s %u, %u in both", a->n_nodes, ARROW, b->n_nodes, shared);
    else
        html_textf(h, "%u", a ? a->n_nodes : b->n_nodes);
    html_close(h);
}

static void put_verdict(html *h, const ot_fact_region *a, const ot_fact_region *b, uint32_t shared)
{
    bool same_nodes = a && b && a->n_nodes == shared && b->n_nodes == shared;
    bool same_tiling = a && b && ot_compare_same_tiling(a, b);
    const char *text = !a                            ? "only after"
                       : !b                          ? "only before"
                       : same_nodes && same_tiling   ? "the same"
                       : !same_nodes && !same_tiling ? "other nodes, other tiles"
                       : same_nodes                  ? "other tiles or form"
                                                     : "other nodes";
    html_open(h, "td");
    html_leaf(h, "span", !a ? "tag yes" : !b ? "tag no" : "tag", text);
    html_close(h);
}

#define FIGURE(r, member) ((r) ? (double)(r)->member : OT_ABSENT)
/* Of the region that is there, so that one without counterpart shows its figure alone. */
#define EITHER(r, other, member) ((r) ? (double)(r)->member : (double)(other)->member)

/* html_tiling, whose parts stay on one line; NULL: no region. */
static const char *tiling_of(const ot_fact_region *r, char *buffer)
{
    char plain[TILING_SIZE / 2], *out = buffer;
    if (!r) return NULL;
    for (const char *s = html_tiling(r->n_dims, r->axes, r->tiles, plain, sizeof plain); *s; s++) {
        if (*s == ' ') *out++ = '\xc2'; /* a space that does not break the line is C2 A0 */
        *out++ = *s == ' ' ? '\xa0' : *s;
    }
    *out = '\0';
    return buffer;
}

static void put_region(const comparison *c, html *h, uint32_t k, bool measured)
{
    const ot_fact_region *a = region_at(c, 0, c->regions.pairs[k].before),
                         *b = region_at(c, 1, c->regions.pairs[k].after);
    const ot_fact_region *any = b ? b : a;
    char tiling[2][TILING_SIZE];

    html_open(h, "tr");
    put_region_name(h, a);
    put_region_name(h, b);
    h->f = c->side[b ? 1 : 0]; /* whose nodes the names below are */
    html_open(h, "td");
    html_operators(h, any->nodes, any->n_nodes, OPERATORS);
    html_close(h);
    put_nodes_cell(h, a, b, c->shared[k]);
    put_texts_cell(h, tiling_of(a, tiling[0]), tiling_of(b, tiling[1]));
    put_texts_cell(h, a ? a->form : NULL, b ? b->form : NULL);
    put_figures_cell(h, EITHER(a, b, working_set), EITHER(b, a, working_set), "bytes");
    put_figures_cell(h, EITHER(a, b, time_tiled), EITHER(b, a, time_tiled), "seconds");
    put_ratio_cell(h, FIGURE(a, time_tiled), FIGURE(b, time_tiled));
    if (measured) {
        put_figures_cell(h, EITHER(a, b, measured), EITHER(b, a, measured), "seconds");
        put_ratio_cell(h, FIGURE(a, measured), FIGURE(b, measured));
    }
    put_figures_cell(h, EITHER(a, b, traffic), EITHER(b, a, traffic), "bytes");
    put_verdict(h, a, b, c->shared[k]);
    html_close(h);
    h->f = c->side[1];
}

static bool any_measured(const ot_facts *f)
{
    for (uint32_t k = 0; k < f->n_regions; k++)
        if (f->regions[k].measured >= 0) return true;
    return false;
}

void ot_compare_regions(const comparison *c, html *h)
{
    static const char *const plain[] = {
        "Before",           "After",  "Operators",    "#Nodes", "Tiles", "Form", "#Working set",
        "#Time, predicted", "#Ratio", "#Bytes moved", "What",   NULL};
    static const char *const full[] = {"Before",       "After",
                                       "Operators",    "#Nodes",
                                       "Tiles",        "Form",
                                       "#Working set", "#Time, predicted",
                                       "#Ratio",       "#Time, measured",
                                       "#Ratio",       "#Bytes moved",
                                       "What",         NULL};
    bool measured = any_measured(c->side[0]) && any_measured(c->side[1]);
    uint32_t shown = c->regions.n < ROWS_MOST ? c->regions.n : ROWS_MOST;
    html_section(
        h, "regions", "Regions",
        "Regions of both plans side by side: those that share the most nodes belong together.");
    put_table(h, "sortable", measured ? full : plain);
    for (uint32_t k = 0; k < shown; k++) put_region(c, h, k, measured);
    close_table(h);
    if (shown < c->regions.n) put_more(h, c->regions.n - shown, "regions");
    html_close(h);
}

/* ---- nodes ---- */

/* Where a node is: "r0, H 4 x W 4, scan", or why it is in no region. */
static void put_place(html *h, const ot_facts *f, uint32_t k)
{
    char tiling[TILING_SIZE];
    html_open(h, "td");
    const ot_fact_node *node = k == OT_NONE ? NULL : &f->nodes[k];
    if (!node) {
        html_text(h, "-");
    } else if (node->region != OT_NONE) {
        const ot_fact_region *r = &f->regions[node->region];
        html_textf(h, "r%u, %s, %s", r->id,
                   html_tiling(r->n_dims, r->axes, r->tiles, tiling, sizeof tiling), r->form);
    } else if (node->barrier != OT_NONE) {
        html_textf(h, "barrier: %s", f->barriers[node->barrier].reason);
    } else if (node->refusal != OT_NONE) {
        html_textf(h, "refused: %s", f->refusals[node->refusal].reason);
    } else {
        html_text(h, "not tiled");
    }
    html_close(h);
}

static void put_node(const comparison *c, html *h, compare_pair p)
{
    const ot_fact_node *node = p.after != OT_NONE ? &c->side[1]->nodes[p.after]
                                                  : &c->side[0]->nodes[p.before];
    html_open_class(h, "tr", "find");
    put_cell(h, "n", node->name);
    put_cell(h, NULL, node->op);
    put_place(h, c->side[0], p.before);
    put_place(h, c->side[1], p.after);
    html_close(h);
}

static void put_change(const comparison *c, html *h, compare_change change, const char *title)
{
    static const char *const heads[] = {"Node", "Operator", "Before", "After", NULL};
    uint32_t n = c->n_changes[change], shown = 0;
    html_open_class(h, "details", n > NODES_MOST ? "find cut" : "find");
    html_attr(h, "open", "open");
    html_open(h, "summary");
    html_text(h, title);
    html_open_class(h, "span", "brief");
    html_textf(h, "%u node%s", n, n == 1 ? "" : "s");
    html_close(h);
    html_close(h);
    html_open_class(h, "div", "body");
    put_table(h, "sortable small", heads);
    for (uint32_t k = 0; k < c->nodes.n && shown < NODES_MOST; k++) {
        if (c->change[k] != change) continue;
        put_node(c, h, c->nodes.pairs[k]);
        shown++;
    }
    close_table(h);
    if (shown < n) put_more(h, n - shown, "nodes");
    html_close(h);
    html_close(h);
}

void ot_compare_nodes(const comparison *c, html *h)
{
    static const char *const titles[COMPARE_CHANGES] = {"",
                                                        "Tiled now",
                                                        "No longer tiled",
                                                        "In another region",
                                                        "Other tiles or form",
                                                        "Only in the model after",
                                                        "Only in the model before"};
    html_section(h, "nodes", "Nodes that changed", NULL);
    for (int k = COMPARE_TILED; k < COMPARE_CHANGES; k++)
        if (c->n_changes[k]) put_change(c, h, (compare_change)k, titles[k]);
    html_close(h);
}

/* ---- measured ---- */

/* One figure of both models, before and after: [model][report]. */
static void put_measure(html *h, const char *what, const double x[2][2], const char *unit)
{
    html_open(h, "tr");
    put_cell(h, NULL, what);
    for (int model = 0; model < 2; model++) {
        put_figures_cell(h, x[model][0], x[model][1], unit);
        put_ratio_cell(h, x[model][0], x[model][1]);
    }
    html_close(h);
}

static double predicted(const ot_bench_side *s)
{
    return s->predicted > 0 ? s->predicted : OT_ABSENT;
}

#define MEASURE(what, figure, unit)                                           \
    do {                                                                      \
        const double x_[2][2] = {{figure(&a->side[0]), figure(&b->side[0])},  \
                                 {figure(&a->side[1]), figure(&b->side[1])}}; \
        put_measure(h, what, x_, unit);                                       \
    } while (0)
#define LEAST(s)  (s)->time.min
#define MEDIAN(s) (s)->time.p50
#define P90(s)    (s)->time.p90
#define P99(s)    (s)->time.p99
#define PEAK(s)   (double)(s)->figures.peak
#define SLOW(s)   (s)->bytes.slow
#define MISSES(s) (s)->misses

typedef double (*device_figure)(const ot_bench_device *x);
static double device_peak(const ot_bench_device *x) { return (double)x->peak; }
static double device_arena(const ot_bench_device *x) { return (double)x->arena; }
static double device_busy(const ot_bench_device *x) { return x->busy; }
static double device_moved(const ot_bench_device *x)
{
    double bytes = 0;
    for (uint32_t k = 0; k < x->n_transfers; k++) bytes += (double)x->transfers[k].bytes;
    return bytes;
}

/* Of the devices that ran both models, in both reports. */
static void put_devices(html *h, const ot_bench_facts *a, const ot_bench_facts *b)
{
    static const struct {
        const char *what;
        device_figure of;
        const char *unit;
    } rows[] = {{"device memory", device_peak, "bytes"},
                {"activations on the device", device_arena, "bytes"},
                {"bytes of transfers", device_moved, "bytes"},
                {"time in which the device worked", device_busy, "seconds"}};
    if (a->n_devices != 2 || b->n_devices != 2) return;
    for (uint32_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const double x[2][2] = {{rows[k].of(&a->devices[0]), rows[k].of(&b->devices[0])},
                                {rows[k].of(&a->devices[1]), rows[k].of(&b->devices[1])}};
        put_measure(h, rows[k].what, x, rows[k].unit);
    }
}

void ot_compare_bench(const comparison *c, html *h)
{
    static const char *const heads[] = {"Figure",       "#Original model", "#Ratio",
                                        "#Tiled model", "#Ratio",          NULL};
    const ot_bench_facts *a = c->side[0]->bench, *b = c->side[1]->bench;
    html_section(h, "bench", "Measured", NULL);
    html_open_class(h, "p", "lead");
    html_textf(h, "Before: %u runs of each model on %u thread%s; after: %u runs on %u thread%s.",
               a->runs, a->threads, a->threads == 1 ? "" : "s", b->runs, b->threads,
               b->threads == 1 ? "" : "s");
    if (c->side[0]->region_error >= 0 || c->side[1]->region_error >= 0) {
        html_text(h, " Median error of the regions' predicted times: ");
        ot_compare_figures(h, c->side[0]->region_error, c->side[1]->region_error, "percent");
        html_text(h, ".");
    }
    html_close(h);
    put_table(h, "sortable", heads);
    MEASURE("least time", LEAST, "seconds");
    MEASURE("median time", MEDIAN, "seconds");
    MEASURE("90th percentile", P90, "seconds");
    MEASURE("99th percentile", P99, "seconds");
    MEASURE("predicted time", predicted, "seconds");
    MEASURE("peak memory", PEAK, "bytes");
    MEASURE("operands in slow memory", SLOW, "bytes");
    if (a->counted && b->counted) MEASURE("cache misses", MISSES, "count");
    put_devices(h, a, b);
    close_table(h);
    html_close(h);
}

/* ---- memory maps ---- */

/* Of a plan: whose memory it is; "before" and "after" mean the reports here. */
static const char *memory_title(const comparison *c, const ot_fact_map *map)
{
    if (c->side[0]->kind == OT_FACTS_MEMORY) return map->title;
    return strcmp(map->id, "before") == 0  ? "untiled model"
           : strcmp(map->id, "after") == 0 ? "tiled model"
                                           : map->title;
}

void ot_compare_maps(const comparison *c, html *h)
{
    static const char *const heads[] = {"Memory",       "#Height",        "#Ratio",
                                        "#Lower bound", "Least possible", NULL};
    html_section(h, "maps", "Memory", "Heights of the planned memories.");
    put_table(h, "sortable", heads);
    for (uint32_t k = 0; k < c->maps.n; k++) {
        compare_pair p = c->maps.pairs[k];
        const ot_fact_map *a = p.before == OT_NONE ? NULL : &c->side[0]->maps[p.before];
        const ot_fact_map *b = p.after == OT_NONE ? NULL : &c->side[1]->maps[p.after];
        html_open(h, "tr");
        put_cell(h, NULL, memory_title(c, b ? b : a));
        put_figures_cell(h, FIGURE(a, height), FIGURE(b, height), "bytes");
        put_ratio_cell(h, FIGURE(a, height), FIGURE(b, height));
        put_figures_cell(h, FIGURE(a, lower_bound), FIGURE(b, lower_bound), "bytes");
        put_texts_cell(h, a ? (a->proved ? "proved" : "not proved") : NULL,
                       b ? (b->proved ? "proved" : "not proved") : NULL);
        html_close(h);
    }
    close_table(h);
    html_close(h);
}

/* ---- target, environment, memory of the untiled model ---- */

typedef struct entry_pair {
    const ot_fact_entry *before, *after;
} entry_pair;

static bool is_equal(entry_pair e)
{
    if (!e.before || !e.after) return false;
    if (e.before->number >= 0 || e.after->number >= 0)
        return ot_compare_same(e.before->number, e.after->number);
    return strcmp(e.before->text, e.after->text) == 0;
}

static void put_entry_cell(html *h, const ot_fact_entry *e)
{
    html_open_class(h, "td", e && e->number >= 0 ? "num" : NULL);
    if (e && e->number >= 0)
        html_number(h, e->number, e->unit);
    else
        html_text(h, e && *e->text ? e->text : "-");
    html_close(h);
}

static void put_entry(html *h, entry_pair e)
{
    html_open(h, "tr");
    put_cell(h, NULL, e.after ? e.after->title : e.before->title);
    put_entry_cell(h, e.before);
    put_entry_cell(h, e.after);
    double x = FIGURE(e.before, number), y = FIGURE(e.after, number);
    html_open_class(h, "td", "num"); /* less is neither good nor bad here */
    html_ratio(h, x > 0 && y >= 0 ? y / x : OT_ABSENT);
    html_close(h);
    html_close(h);
}

static entry_pair entry_at(const ot_fact_entry *before, const ot_fact_entry *after, compare_pair p)
{
    return (entry_pair){p.before == OT_NONE ? NULL : &before[p.before],
                        p.after == OT_NONE ? NULL : &after[p.after]};
}

static void put_equal_entries(html *h, const ot_fact_entry *before, const ot_fact_entry *after,
                              const compare_list *list, uint32_t n)
{
    html_open_class(h, "details", "plain");
    html_open(h, "summary");
    html_textf(h, "%u the same", n);
    html_close(h);
    html_open_class(h, "dl", "facts");
    for (uint32_t k = 0; k < list->n; k++) {
        entry_pair e = entry_at(before, after, list->pairs[k]);
        if (!is_equal(e)) continue;
        html_leaf(h, "dt", NULL, e.after->title);
        html_open(h, "dd");
        if (e.after->number >= 0)
            html_number(h, e.after->number, e.after->unit);
        else
            html_text(h, e.after->text);
        html_close(h);
    }
    html_close(h);
    html_close(h);
}

static void put_entries(html *h, const char *title, const ot_fact_entry *before,
                        const ot_fact_entry *after, const compare_list *list)
{
    static const char *const heads[] = {"Figure", "Before", "After", "#Ratio", NULL};
    uint32_t n_equal = 0;
    if (list->n == 0) return;
    for (uint32_t k = 0; k < list->n; k++)
        n_equal += is_equal(entry_at(before, after, list->pairs[k]));
    html_leaf(h, "h3", NULL, title);
    if (n_equal == list->n) {
        html_leaf(h, "p", "quiet", "No difference.");
    } else {
        put_table(h, "sortable", heads);
        for (uint32_t k = 0; k < list->n; k++) {
            entry_pair e = entry_at(before, after, list->pairs[k]);
            if (!is_equal(e)) put_entry(h, e);
        }
        close_table(h);
    }
    if (n_equal) put_equal_entries(h, before, after, list, n_equal);
}

void ot_compare_entries(const comparison *c, html *h)
{
    const ot_facts *a = c->side[0], *b = c->side[1];
    html_section(h, "target", "Target and environment", NULL);
    put_entries(h, "Target", a->target_entries, b->target_entries, &c->target);
    put_entries(h, "Environment", a->environment, b->environment, &c->environment);
    put_entries(h, "Memory of the untiled model", a->memory_entries, b->memory_entries, &c->memory);
    html_close(h);
}
