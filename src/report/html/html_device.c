/* What devices did in one run of each model that was recorded: memory, transfers, kernels by
 * operators, what fell back to the host.
 *
 *   original |weights|#### activations ####| ... |     peak of buffers
 *   tiled    |weights|##|
 *
 *   kernel        original: launches  time ----   bytes    tiled: launches  time --   bytes
 *   Conv, Relu    20                  4.1 ms      88 MiB   160              4.4 ms    91 MiB
 */
#include "html.h"

#define KERNELS_SHOWN 40
#define CHART_WIDTH   560
#define CHART_LEFT    64
#define CHART_RIGHT   86
#define BAR_STEP      34
#define BAR_HEIGHT    20

/* ---- memory ---- */

typedef struct piece {
    const char *cls, *title;
    double bytes;
} piece;

static double put_piece(html *h, double x, double y, double width, const piece *p)
{
    char shown[32];
    if (!(width > 0)) return x;
    html_open_class(h, "rect", p->cls);
    html_attrf(h, "x", "%.2f", x);
    html_attrf(h, "y", "%.2f", y);
    html_attrf(h, "width", "%.2f", width);
    html_attrf(h, "height", "%d", BAR_HEIGHT);
    html_tip(h, "%s: %s", p->title, html_format(p->bytes, "bytes", shown, sizeof shown));
    html_close(h);
    return x + width;
}

static void put_label(html *h, const char *cls, double x, double y, const char *text)
{
    html_open_class(h, "text", cls);
    html_attrf(h, "x", "%.2f", x);
    html_attrf(h, "y", "%.2f", y);
    html_text(h, text);
    html_close(h);
}

/* One bar a model, all on the scale of the longest. */
static void put_bars(html *h, const ot_bench_facts *b)
{
    double most = 1;
    char shown[32];
    for (uint32_t k = 0; k < b->n_devices; k++)
        if ((double)b->devices[k].planned > most) most = (double)b->devices[k].planned;
    html_svg(h, "chart", CHART_WIDTH, BAR_STEP * b->n_devices + 4, "Device memory of each model");
    for (uint32_t k = 0; k < b->n_devices; k++) {
        const ot_bench_device *x = &b->devices[k];
        const double live = (double)x->live, rest = (double)(x->arena - x->live);
        const piece pieces[] = {{"kind-1", "weights", (double)x->weights},
                                {"kind-0", "activations", live},
                                {"g-pill", "never filled", rest}};
        const double y = BAR_STEP * k + 6, scale = (CHART_WIDTH - CHART_LEFT - CHART_RIGHT) / most;
        double at = CHART_LEFT;
        put_label(h, "dim", 0, y + 14, x->side);
        for (uint32_t j = 0; j < sizeof pieces / sizeof *pieces; j++)
            at = put_piece(h, at, y, pieces[j].bytes * scale, &pieces[j]);
        put_label(h, "strong", at + 6, y + 14,
                  html_format((double)x->planned, "bytes", shown, sizeof shown));
    }
    html_close(h);
}

static void put_key(html *h, const char *cls, const char *title)
{
    html_open(h, "li");
    html_open_class(h, "svg", "key");
    html_attr(h, "aria-hidden", "true");
    html_open_class(h, "rect", cls);
    html_attr(h, "x", "1");
    html_attr(h, "y", "1");
    html_attr(h, "width", "12");
    html_attr(h, "height", "12");
    html_close(h);
    html_close(h);
    html_text(h, title);
    html_close(h);
}

static void put_memory(html *h, const ot_bench_facts *b)
{
    html_open(h, "div");
    html_open_class(h, "div", "panel");
    html_leaf(h, "h3", NULL, "Planned memory");
    put_bars(h, b);
    html_open_class(h, "ul", "legend");
    put_key(h, "kind-1", "weights");
    put_key(h, "kind-0", "activations that live at one time, at the most");
    put_key(h, "g-pill", "never filled: fragmentation of the arena");
    html_close(h);
    html_close(h);
    html_close(h);
}

/* ---- figures, a column a model ---- */

typedef double (*figure)(const ot_bench_device *x);
static double planned(const ot_bench_device *x) { return (double)x->planned; }
static double peak(const ot_bench_device *x) { return (double)x->peak; }
static double arena(const ot_bench_device *x) { return (double)x->arena; }
static double weights(const ot_bench_device *x) { return (double)x->weights; }
static double fragmentation(const ot_bench_device *x) { return x->fragmentation; }
static double budget(const ot_bench_device *x) { return (double)x->budget; }
static double n_made(const ot_bench_device *x) { return (double)x->n_made; }
static double n_freed(const ot_bench_device *x) { return (double)x->n_freed; }
static double bytes_made(const ot_bench_device *x) { return (double)x->bytes_made; }
static double bytes_freed(const ot_bench_device *x) { return (double)x->bytes_freed; }
static double allocating(const ot_bench_device *x) { return x->allocate_seconds; }
static double compiling(const ot_bench_device *x) { return x->compile_seconds; }
static double span(const ot_bench_device *x) { return x->span; }
static double busy(const ot_bench_device *x) { return x->busy; }
static double launches(const ot_bench_device *x) { return x->n_launches; }
static double packed(const ot_bench_device *x) { return x->n_packed; }
static double packed_bytes(const ot_bench_device *x) { return (double)x->packed_bytes; }
static double blocked(const ot_bench_device *x) { return x->n_blocked; }
static double blocked_bytes(const ot_bench_device *x) { return (double)x->blocked_bytes; }
static double spread(const ot_bench_device *x) { return x->n_spread; }
static double transactions(const ot_bench_device *x) { return x->transactions; }
static double transactions_plain(const ot_bench_device *x) { return x->transactions_plain; }
static double transactions_ideal(const ot_bench_device *x) { return x->transactions_ideal; }
static double on_device(const ot_bench_device *x) { return x->n_device; }
static double on_host(const ot_bench_device *x) { return x->n_host; }

static void put_row(html *h, const ot_bench_facts *b, const char *title, figure of,
                    const char *unit)
{
    html_open(h, "tr");
    html_open(h, "th");
    html_attr(h, "scope", "row");
    html_text(h, title);
    html_close(h);
    for (uint32_t k = 0; k < b->n_devices; k++) html_cell(h, of(&b->devices[k]), unit);
    html_close(h);
}

static void put_heads(html *h, const ot_bench_facts *b)
{
    html_open(h, "thead");
    html_open(h, "tr");
    for (uint32_t k = 0; k <= b->n_devices; k++) {
        html_open_class(h, "th", k ? "num" : NULL);
        html_attr(h, "scope", "col");
        html_text(h, k ? b->devices[k - 1].side : "");
        html_close(h);
    }
    html_close(h);
    html_close(h);
}

static void put_figures(html *h, const ot_bench_facts *b)
{
    html_open_class(h, "div", "panel scroll");
    html_open_class(h, "table", "small");
    html_attr(h, "id", "device-table");
    put_heads(h, b);
    html_open(h, "tbody");
    put_row(h, b, "Memory, planned", planned, "bytes");
    put_row(h, b, "Memory, most that buffers took", peak, "bytes");
    put_row(h, b, "Arena of activations", arena, "bytes");
    put_row(h, b, "Fragmentation of the arena", fragmentation, "percent");
    put_row(h, b, "Weights and tables", weights, "bytes");
    put_row(h, b, "Memory that may be taken", budget, "bytes");
    put_row(h, b, "Buffers made", n_made, "count");
    put_row(h, b, "Bytes of these", bytes_made, "bytes");
    put_row(h, b, "Buffers freed", n_freed, "count");
    put_row(h, b, "Bytes of those", bytes_freed, "bytes");
    put_row(h, b, "Time of making and freeing", allocating, "seconds");
    put_row(h, b, "Compiling, once", compiling, "seconds");
    put_row(h, b, "First command to last", span, "seconds");
    put_row(h, b, "Something ran in", busy, "seconds");
    put_row(h, b, "Launches of kernels", launches, "count");
    put_row(h, b, "Weights rewritten for the device", packed, "count");
    put_row(h, b, "Bytes of these weights", packed_bytes, "bytes");
    put_row(h, b, "Activations in blocks of channels", blocked, "count");
    put_row(h, b, "Bytes of these activations", blocked_bytes, "bytes");
    put_row(h, b, "Kernels with spread elements", spread, "count");
    put_row(h, b, "Transactions of convolutions and products", transactions, "count");
    put_row(h, b, "The same in the model's layouts", transactions_plain, "count");
    put_row(h, b, "If each held what is asked alone", transactions_ideal, "count");
    put_row(h, b, "Nodes on the device", on_device, "count");
    put_row(h, b, "Nodes on the host", on_host, "count");
    html_close(h);
    html_close(h);
    html_close(h);
}

/* ---- transfers ---- */

static void put_transfer(html *h, const ot_bench_device *x, const ot_bench_transfer *t)
{
    html_open(h, "tr");
    html_leaf(h, "td", NULL, x->side);
    html_leaf(h, "td", NULL, t->direction);
    html_cell(h, (double)t->count, "count");
    html_cell(h, (double)t->bytes, "bytes");
    html_cell(h, t->seconds, "seconds");
    html_cell(h, t->bandwidth, "bytes/s");
    html_cell(h, t->of_peak, "percent");
    html_close(h);
}

static void put_transfers(html *h, const ot_bench_facts *b)
{
    static const char *const heads[] = {"Model", "Transfers",  "#Count",   "#Bytes",
                                        "#Time", "#Bandwidth", "#Of peak", NULL};
    html_open(h, "div");
    html_scroll(h, "panel scroll", "Table of transfers");
    html_open_class(h, "table", "small sortable");
    html_attr(h, "id", "transfer-table");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < b->n_devices; k++)
        for (uint32_t j = 0; j < b->devices[k].n_transfers; j++)
            put_transfer(h, &b->devices[k], &b->devices[k].transfers[j]);
    html_close(h);
    html_close(h);
    html_close(h);
    html_leaf(h, "p", "quiet note",
              "The peak is that of large transfers; small ones that fit a cache may be faster.");
    html_close(h);
}

/* ---- kernels ---- */

/* NULL: this device ran none of that name. */
static const ot_bench_shader *kernel_of(const ot_bench_device *x, const char *name)
{
    for (uint32_t k = 0; k < x->n_kernels; k++)
        if (strcmp(x->kernels[k].name, name) == 0) return &x->kernels[k];
    return NULL;
}

static double most_seconds(const ot_bench_facts *b)
{
    double most = 0;
    for (uint32_t k = 0; k < b->n_devices; k++)
        if (b->devices[k].n_kernels && b->devices[k].kernels[0].seconds > most)
            most = b->devices[k].kernels[0].seconds;
    return most;
}

static void put_kernel(html *h, const ot_bench_facts *b, const char *name, double most)
{
    html_open(h, "tr");
    html_leaf(h, "td", "name operators", name);
    for (uint32_t k = 0; k < b->n_devices; k++) {
        const ot_bench_shader *x = kernel_of(&b->devices[k], name);
        html_cell(h, x ? (double)x->count : OT_ABSENT, "count");
        html_open_class(h, "td", "num");
        html_number(h, x ? x->seconds : OT_ABSENT, "seconds");
        if (x && most > 0) html_gauge(h, x->seconds / most);
        html_close(h);
        html_cell(h, x ? (double)x->bytes : OT_ABSENT, "bytes");
        html_cell(h, x ? x->bandwidth : OT_ABSENT, "bytes/s");
    }
    html_close(h);
}

static void put_kernel_heads(html *h, const ot_bench_facts *b)
{
    static const char *const heads[] = {"launches", "time", "bytes", "bandwidth"};
    html_open(h, "thead");
    html_open(h, "tr");
    html_open(h, "th");
    html_attr(h, "scope", "col");
    html_text(h, "Operators");
    html_close(h);
    for (uint32_t k = 0; k < 4 * b->n_devices; k++) {
        html_open_class(h, "th", "num");
        html_attr(h, "scope", "col");
        html_textf(h, "%s: %s", b->devices[k / 4].side, heads[k % 4]);
        html_close(h);
    }
    html_close(h);
    html_close(h);
}

/* A row a name: those of the first device, then what the second has besides, KERNELS_SHOWN in all.
 */
static void put_kernels(html *h, const ot_bench_facts *b)
{
    const double most = most_seconds(b);
    uint32_t shown = 0;
    html_leaf(h, "h3", NULL, "Kernels");
    html_scroll(h, "panel scroll tall", "Table of kernels");
    html_open_class(h, "table", "small sortable");
    html_attr(h, "id", "device-kernels");
    put_kernel_heads(h, b);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < b->n_devices; k++)
        for (uint32_t j = 0; j < b->devices[k].n_kernels; j++) {
            const char *name = b->devices[k].kernels[j].name;
            bool seen = false;
            for (uint32_t i = 0; i < k; i++) seen = seen || kernel_of(&b->devices[i], name);
            if (!seen && shown++ < KERNELS_SHOWN) put_kernel(h, b, name, most);
        }
    html_close(h);
    html_close(h);
    html_close(h);
    html_leaf(h, "p", "quiet note",
              shown > KERNELS_SHOWN ? "Those that take longest; the XML report has all."
                                    : "Bytes are those of the elements that a kernel reads and "
                                      "writes, each once a launch.");
}

/* ---- what the host runs ---- */

static void put_fallbacks(html *h, const ot_bench_facts *b)
{
    static const char *const heads[] = {
        "Model", "Operator", "#Nodes", "Why the host runs them", "The first of them", NULL};
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->n_devices; k++) n += b->devices[k].n_fallbacks;
    if (n == 0) return;
    html_leaf(h, "h3", NULL, "On the host");
    html_scroll(h, "panel scroll", "Table of nodes that the host runs");
    html_open_class(h, "table", "small sortable");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < b->n_devices; k++)
        for (uint32_t j = 0; j < b->devices[k].n_fallbacks; j++) {
            const ot_bench_fallback *x = &b->devices[k].fallbacks[j];
            html_open(h, "tr");
            html_leaf(h, "td", NULL, b->devices[k].side);
            html_leaf(h, "td", NULL, x->op);
            html_cell(h, x->n, "count");
            html_leaf(h, "td", "name", x->why);
            html_leaf(h, "td", "name mono", x->node);
            html_close(h);
        }
    html_close(h);
    html_close(h);
    html_close(h);
}

void html_device(html *h)
{
    const ot_bench_facts *b = h->f->bench;
    if (!b || b->n_devices == 0) return;
    html_section(h, "device", "On the device", NULL);
    html_open_class(h, "p", "lead");
    html_textf(h, "One more run of each model was recorded on %s:", b->devices[0].api);
    html_count(h, b->devices[0].number);
    html_textf(h, ", %s. Times are those of the device's own clock, each command by itself.",
               b->devices[0].name);
    html_close(h);
    html_open_class(h, "div", "columns");
    html_open(h, "div");
    put_memory(h, b);
    html_leaf(h, "h3", NULL, "Transfers");
    put_transfers(h, b);
    html_close(h);
    put_figures(h, b);
    html_close(h);
    put_kernels(h, b);
    put_fallbacks(h, b);
    html_close(h);
}
