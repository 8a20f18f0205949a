/* Roofline: operations a byte against operations a second, both logarithmic; for each region an
 * arrow from where it is untiled to where tiling brings it.
 *
 *   op/s |        ________________ convolution
 *        |      /:    o----># r0
 *        |    /  :                     o untiled, # tiled
 *        |  / slow memory
 *        +----------------------- op/byte
 *
 * A table below has the same figures exactly.
 */
#include "html_plot.h"

#include <math.h>

#define WIDTH       1100.0
#define HEIGHT      460.0
#define LEFT        82.0
#define RIGHT       150.0 /* holds the names of the flat roofs */
#define ABOVE       34.0
#define BELOW       46.0
#define LABELS_MOST 24 /* points that are named */
#define POINTS_MOST 600
#define ROOFS_MOST  32
#define LABEL_GAP   14.0

static bool is_drawn(const ot_fact_point *p)
{
    return isfinite(p->intensity) && isfinite(p->rate) && p->intensity > 0 && p->rate > 0;
}

static uint32_t count_points(const ot_facts *f)
{
    return f->n_points < POINTS_MOST ? f->n_points : POINTS_MOST;
}

static uint32_t count_roofs(const ot_facts *f)
{
    return f->n_roofs < ROOFS_MOST ? f->n_roofs : ROOFS_MOST;
}

static double highest_roof(const ot_facts *f)
{
    double high = 0;
    for (uint32_t k = 0; k < count_roofs(f); k++) high = fmax(high, f->roofs[k].rate);
    return high;
}

/* All points, the flat roofs, and where the slowest memory's line meets the highest of them. */
static bool fit_axes(const ot_facts *f, axis *x, axis *y)
{
    double x_low = INFINITY, x_high = 0, y_low = INFINITY, y_high = highest_roof(f), roof = y_high;
    for (uint32_t k = 0; k < count_points(f); k++) {
        const ot_fact_point *p = &f->points[k];
        if (!is_drawn(p)) continue;
        x_low = fmin(x_low, p->intensity);
        x_high = fmax(x_high, p->intensity);
        y_low = fmin(y_low, p->rate);
        y_high = fmax(y_high, p->rate);
    }
    if (!isfinite(x_low)) return false;
    for (uint32_t k = 0; k < count_roofs(f); k++) {
        double bandwidth = f->roofs[k].bandwidth;
        if (bandwidth > 0 && roof > 0) x_high = fmax(x_high, roof / bandwidth);
        if (bandwidth > 0 && roof > 0) x_low = fmin(x_low, roof / bandwidth / 4);
    }
    *x = axis_fit(x_low / 1.5, x_high * 1.5, true, "op/byte", LEFT, WIDTH - RIGHT);
    *y = axis_fit(y_low / 1.5, y_high * 1.2, true, "ops/s", HEIGHT - BELOW, ABOVE);
    return true;
}

/* ---- roofs ---- */

static void put_path(html *h, const char *cls, double x1, double y1, double x2, double y2)
{
    html_open_class(h, "path", cls);
    html_attrf(h, "d", "M%.1f %.1fL%.1f %.1f", x1, y1, x2, y2);
}

static void put_slanted(html *h, const ot_fact_roof *r, const axis *x, const axis *y, double roof,
                        uint32_t place)
{
    double top = roof > 0 ? fmin(roof, y->high) : y->high;
    double from = fmax(x->low, y->low / r->bandwidth), to = fmin(x->high, top / r->bandwidth);
    if (!(from < to)) return;
    double x1 = axis_at(x, from), y1 = axis_at(y, from * r->bandwidth), x2 = axis_at(x, to),
           y2 = axis_at(y, to * r->bandwidth);
    char shown[64];
    html_format(r->bandwidth, "bytes/s", shown, sizeof shown);
    put_path(h, "roof slant", x1, y1, x2, y2);
    html_tip(h, "%s: %s", r->title, shown);
    html_close(h);
    double along = 0.06 + 0.16 * (place % 3), at_x = x1 + along * (x2 - x1),
           at_y = y1 + along * (y2 - y1);
    html_open_class(h, "text", "halo label");
    html_attr(h, "y", "-6");
    html_attrf(h, "transform", "translate(%.1f %.1f) rotate(%.1f)", at_x, at_y,
               atan2(y2 - y1, x2 - x1) * 180 / acos(-1));
    html_text(h, r->title);
    html_close(h);
}

typedef struct roof_label {
    const ot_fact_roof *roof;
    double at, label_at; /* y of the line, of its name */
} roof_label;

static int by_height(const void *a, const void *b)
{
    const roof_label *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return strcmp(x->roof->id, y->roof->id);
}

/* Flat roofs, from where the fastest memory reaches them; their names in the right margin, moved
 * apart. */
static void put_flat(html *h, const ot_facts *f, const axis *x, const axis *y)
{
    roof_label labels[ROOFS_MOST];
    uint32_t n = 0;
    double fastest = 0, last = -LABEL_GAP;
    for (uint32_t k = 0; k < count_roofs(f); k++) fastest = fmax(fastest, f->roofs[k].bandwidth);
    for (uint32_t k = 0; k < count_roofs(f); k++)
        if (f->roofs[k].rate > 0 && axis_shows(y, f->roofs[k].rate))
            labels[n++] = (roof_label){&f->roofs[k], axis_at(y, f->roofs[k].rate), 0};
    qsort(labels, n, sizeof *labels, by_height);
    for (uint32_t k = 0; k < n; k++) {
        labels[k].label_at = fmax(labels[k].at, last + LABEL_GAP);
        last = labels[k].label_at;
    }
    for (uint32_t k = 0; k < n; k++) {
        const ot_fact_roof *r = labels[k].roof;
        double from = fastest > 0 ? fmin(fmax(x->low, r->rate / fastest), x->high) : x->low;
        char shown[64];
        put_path(h, "roof flat", axis_at(x, from), labels[k].at, x->at_high, labels[k].at);
        html_tip(h, "%s: %s", r->title, html_format(r->rate, "ops/s", shown, sizeof shown));
        html_close(h);
        put_path(h, "axis", x->at_high, labels[k].at, x->at_high + 8, labels[k].label_at);
        html_close(h);
        plot_text(h, "label", x->at_high + 11, labels[k].label_at + 4, r->title);
    }
}

/* ---- points ---- */

static const ot_fact_point *tiled_of(const ot_facts *f, uint32_t region)
{
    for (uint32_t k = 0; k < count_points(f); k++)
        if (f->points[k].tiled && f->points[k].region == region && is_drawn(&f->points[k]))
            return &f->points[k];
    return NULL;
}

/* From the untiled point to near the tiled one, with a head. */
static void put_move(html *h, double x1, double y1, double x2, double y2)
{
    double dx = x2 - x1, dy = y2 - y1, length = hypot(dx, dy);
    if (length < 16) return;
    dx /= length;
    dy /= length;
    double sx = x1 + 6 * dx, sy = y1 + 6 * dy, ex = x2 - 8 * dx, ey = y2 - 8 * dy;
    html_open_class(h, "path", "move");
    html_attrf(h, "d", "M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1fL%.1f %.1f", sx, sy, ex, ey,
               ex - 6 * dx + 3.5 * dy, ey - 6 * dy - 3.5 * dx, ex, ey, ex - 6 * dx - 3.5 * dy,
               ey - 6 * dy + 3.5 * dx);
    html_close(h);
}

static void put_point(html *h, const ot_fact_point *p, const axis *x, const axis *y)
{
    char intensity[32], rate[32], attained[32];
    double at_x = axis_at(x, p->intensity), at_y = axis_at(y, p->rate);
    if (p->tiled)
        plot_diamond(h, "dot tiled", at_x, at_y, 6);
    else
        plot_circle(h, "dot untiled", at_x, at_y, 4.5);
    html_tip(h, "%s: %s operations a byte, %s, %s of the roof there", p->label,
             html_format(p->intensity, "count", intensity, sizeof intensity),
             html_format(p->rate, "ops/s", rate, sizeof rate),
             html_format(p->attained, "percent", attained, sizeof attained));
    html_close(h);
}

/* Names of the tiled points, where they do not cover one another. */
static void put_labels(html *h, const ot_facts *f, const axis *x, const axis *y)
{
    double placed[LABELS_MOST][2];
    uint32_t n = 0;
    for (uint32_t k = 0; k < count_points(f) && n < LABELS_MOST; k++) {
        const ot_fact_point *p = &f->points[k];
        if (!p->tiled || !is_drawn(p)) continue;
        double at_x = axis_at(x, p->intensity) + 9, at_y = axis_at(y, p->rate) + 15;
        bool covered = false;
        for (uint32_t j = 0; j < n; j++)
            covered |= fabs(placed[j][0] - at_x) < 26 && fabs(placed[j][1] - at_y) < 12;
        if (covered) continue;
        char text[24];
        if (p->region < f->n_regions)
            snprintf(text, sizeof text, "r%u", f->regions[p->region].id);
        else
            snprintf(text, sizeof text, "%.*s", (int)strcspn(p->label, ","), p->label);
        plot_text(h, "halo strong", at_x, at_y, text);
        placed[n][0] = at_x;
        placed[n++][1] = at_y;
    }
}

static void put_points(html *h, const ot_facts *f, const axis *x, const axis *y)
{
    for (uint32_t k = 0; k < count_points(f); k++) {
        const ot_fact_point *p = &f->points[k];
        const ot_fact_point *t = p->tiled || !is_drawn(p) ? NULL : tiled_of(f, p->region);
        if (t)
            put_move(h, axis_at(x, p->intensity), axis_at(y, p->rate), axis_at(x, t->intensity),
                     axis_at(y, t->rate));
    }
    for (int tiled = 0; tiled < 2; tiled++)
        for (uint32_t k = 0; k < count_points(f); k++)
            if (f->points[k].tiled == (tiled == 1) && is_drawn(&f->points[k]))
                put_point(h, &f->points[k], x, y);
    put_labels(h, f, x, y);
}

static void put_legend(html *h)
{
    html_open_class(h, "ul", "legend");
    plot_legend_key(h);
    plot_circle(h, "dot untiled", 7, 7, 4.5);
    html_close(h);
    plot_legend_text(h, "untiled");
    plot_legend_key(h);
    plot_diamond(h, "dot tiled", 7, 7, 6);
    html_close(h);
    plot_legend_text(h, "tiled");
    plot_legend_key(h);
    put_path(h, "roof slant", 1, 13, 13, 1);
    html_close(h);
    plot_legend_text(h, "what a memory can feed");
    plot_legend_key(h);
    put_path(h, "roof flat", 0, 7, 14, 7);
    html_close(h);
    plot_legend_text(h, "what the arithmetic can do");
    html_close(h);
}

/* ---- tables ---- */

static void put_cell(html *h, double x, const char *unit)
{
    html_open_class(h, "td", "num");
    html_number(h, x, unit);
    html_close(h);
}

static void put_points_table(html *h, const ot_facts *f)
{
    static const char *const heads[] = {
        "Point", "#Operations",  "#Bytes", "#Time", "#Operations a byte",
        "#Rate", "#Of the roof", NULL};
    html_open_class(h, "div", "scroll");
    html_attr(h, "tabindex", "0");
    html_open_class(h, "table", "small sortable");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < count_points(f); k++) {
        const ot_fact_point *p = &f->points[k];
        html_open(h, "tr");
        html_leaf(h, "td", NULL, p->label);
        put_cell(h, p->operations, "ops");
        put_cell(h, p->bytes, "bytes");
        put_cell(h, p->seconds, "seconds");
        put_cell(h, p->intensity, "count");
        put_cell(h, p->rate, "ops/s");
        put_cell(h, p->attained, "percent");
        html_close(h);
    }
    html_close(h);
    html_close(h);
    html_close(h);
    if (f->n_points > count_points(f))
        html_leaf(h, "p", "quiet", "More points are in the XML report.");
}

static void put_roofs_table(html *h, const ot_facts *f)
{
    static const char *const heads[] = {"Roof", "#Bandwidth", "#Rate", NULL};
    html_open_class(h, "div", "scroll");
    html_open_class(h, "table", "small sortable");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < count_roofs(f); k++) {
        html_open(h, "tr");
        html_leaf(h, "td", NULL, f->roofs[k].title);
        put_cell(h, f->roofs[k].bandwidth, "bytes/s");
        put_cell(h, f->roofs[k].rate, "ops/s");
        html_close(h);
    }
    html_close(h);
    html_close(h);
    html_close(h);
}

void html_roofline(html *h)
{
    const ot_facts *f = h->f;
    axis x, y;
    if (!f->n_points || !f->n_roofs || !fit_axes(f, &x, &y)) return;
    html_section(h, "roofline", "Roofline",
                 "How much work each byte from slow memory feeds (to the right: more), and how "
                 "fast that work is done "
                 "(up: faster). Tiling moves a region to the right, and up when memory was what "
                 "held it back. Operations are "
                 "counted by definition: where the engine takes Winograd's algorithm, it needs "
                 "fewer, and passes a roof.");
    html_open_class(h, "div", "panel");
    html_svg(h, "chart wide", WIDTH, HEIGHT,
             "Roofline of the target with the regions, untiled and tiled; the table below tells "
             "the same");
    plot_frame(h, &x, &y, "operations a byte", "operations a second");
    double roof = highest_roof(f);
    for (uint32_t k = 0, place = 0; k < count_roofs(f); k++)
        if (f->roofs[k].bandwidth > 0) put_slanted(h, &f->roofs[k], &x, &y, roof, place++);
    put_flat(h, f, &x, &y);
    put_points(h, f, &x, &y);
    html_close(h);
    put_legend(h);
    html_open_class(h, "details", "plain");
    html_leaf(h, "summary", NULL, "The same as tables");
    html_open_class(h, "div", "columns");
    html_open(h, "div");
    put_points_table(h, f);
    html_close(h);
    html_open(h, "div");
    put_roofs_table(h, f);
    html_close(h);
    html_close(h);
    html_close(h);
    html_close(h);
    html_close(h);
}
