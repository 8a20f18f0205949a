/* The tilings that were scored for a region: as a plot, for two axes as a heat map, and as a
 * table with the reasons.
 *
 *   time |  o      o = larger than the         W  14     28     whole
 *        |    *--.       fast memory        H 14  650 us* 700 us  [x]
 *        |      . `-- front                   28  720 us  ...
 *        +---------- bytes moved
 *
 * All three show the same candidates: the chosen one, those on the front, then by time, up to
 * what the page has room for. Shapes carry the meaning (star: chosen; square: on the front;
 * ring: larger than the fast memory), colours repeat it.
 */
#include "html_plot.h"

#include <math.h>

#define ROWS_ALL   800 /* of candidates in the page, about */
#define ROWS_MOST  100
#define ROWS_LEAST 4
#define WIDTH      640.0
#define HEIGHT     330.0
#define LEFT       74.0
#define RIGHT      20.0
#define ABOVE      34.0
#define BELOW      46.0
#define SIDE_MOST  16 /* tile sizes along one axis of a heat map */
#define CELL_W     74.0
#define CELL_H     34.0
#define TILING     128

typedef struct shown {
    const ot_fact_candidate *list[ROWS_MOST];
    uint32_t n;
} shown;

static uint32_t room_of(const ot_facts *f)
{
    uint32_t room = ROWS_ALL / f->n_regions;
    return room > ROWS_MOST ? ROWS_MOST : room < ROWS_LEAST ? ROWS_LEAST : room;
}

/* The chosen ones and the front first; the rest in its order. */
static void pick(const ot_facts *f, const ot_fact_region *r, shown *s)
{
    uint32_t room = room_of(f);
    s->n = 0;
    for (int pass = 0; pass < 3; pass++)
        for (uint32_t k = 0; k < r->n_candidates && s->n < room; k++) {
            const ot_fact_candidate *c = &r->candidates[k];
            if ((c->chosen ? 0 : c->on_front ? 1 : 2) == pass) s->list[s->n++] = c;
        }
}

static const char *tiling_of(const ot_fact_candidate *c, char buffer[TILING])
{
    return html_tiling(c->n_dims, c->axes, c->tiles, buffer, TILING);
}

static void put_tip(html *h, const ot_fact_candidate *c)
{
    char tiling[TILING], time[32], bytes[32], set[32];
    html_tip(h, "%s, %s: %s, %s moved, working set %s%s. %s", tiling_of(c, tiling), c->form,
             html_format(c->time, "seconds", time, sizeof time),
             html_format(c->traffic, "bytes", bytes, sizeof bytes),
             html_format((double)c->working_set, "bytes", set, sizeof set),
             c->fits ? "" : ", larger than the fast memory", c->reason);
}

/* ---- plot ---- */

static bool is_drawn(const ot_fact_candidate *c)
{
    return c->time >= 0 && c->traffic >= 0 && isfinite(c->time) && isfinite(c->traffic);
}

static bool fit_axes(const shown *s, axis *x, axis *y)
{
    double low[2] = {INFINITY, INFINITY}, high[2] = {0, 0};
    for (uint32_t k = 0; k < s->n; k++) {
        if (!is_drawn(s->list[k])) continue;
        const double v[2] = {s->list[k]->traffic, s->list[k]->time};
        for (int d = 0; d < 2; d++) {
            low[d] = fmin(low[d], v[d]);
            high[d] = fmax(high[d], v[d]);
        }
    }
    if (!isfinite(low[0])) return false;
    *x = axis_fit(low[0], high[0], false, "bytes", LEFT, WIDTH - RIGHT);
    *y = axis_fit(low[1], high[1], false, "seconds", HEIGHT - BELOW, ABOVE);
    return true;
}

static int by_traffic(const void *a, const void *b)
{
    const ot_fact_candidate *x = *(const ot_fact_candidate *const *)a,
                            *y = *(const ot_fact_candidate *const *)b;
    if (x->traffic != y->traffic) return x->traffic < y->traffic ? -1 : 1;
    return x->time < y->time ? -1 : x->time > y->time;
}

static void put_front(html *h, const shown *s, const axis *x, const axis *y)
{
    const ot_fact_candidate *front[ROWS_MOST];
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n; k++)
        if (s->list[k]->on_front && is_drawn(s->list[k])) front[n++] = s->list[k];
    if (n < 2) return;
    qsort(front, n, sizeof *front, by_traffic);
    char d[ROWS_MOST * 24];
    size_t used = 0;
    for (uint32_t k = 0; k < n; k++) {
        int wrote = snprintf(d + used, sizeof d - used, "%c%.1f %.1f", k ? 'L' : 'M',
                             axis_at(x, front[k]->traffic), axis_at(y, front[k]->time));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    html_open_class(h, "path", "front-line");
    html_attr(h, "d", d);
    html_close(h);
}

static void put_square(html *h, const char *cls, double x, double y, double r)
{
    html_open_class(h, "path", cls);
    html_attrf(h, "d", "M%.1f %.1fh%gv%gh%gz", x - r, y - r, 2 * r, 2 * r, -2 * r);
}

static void put_mark(html *h, const ot_fact_candidate *c, double x, double y)
{
    if (c->chosen)
        plot_star(h, "point chosen", x, y, 11);
    else if (!c->fits)
        plot_circle(h, "point misfit", x, y, 4);
    else if (c->on_front)
        put_square(h, "point front", x, y, 4);
    else
        plot_circle(h, "point", x, y, 4);
}

static void put_plot(html *h, const ot_fact_region *r, const shown *s)
{
    axis x, y;
    if (!fit_axes(s, &x, &y)) return;
    char label[96];
    snprintf(label, sizeof label,
             "Tilings of region %u: bytes moved against time; the table below tells the same",
             r->id);
    html_open(h, "div");
    html_leaf(h, "h3", NULL, "Bytes moved against time");
    html_svg(h, "chart candidates", WIDTH, HEIGHT, label);
    plot_frame(h, &x, &y, x.logarithmic ? "bytes moved (logarithmic)" : "bytes moved",
               y.logarithmic ? "time (logarithmic)" : "time");
    put_front(h, s, &x, &y);
    for (uint32_t k = s->n; k-- > 0;) { /* the chosen one on top */
        const ot_fact_candidate *c = s->list[k];
        if (!is_drawn(c)) continue;
        put_mark(h, c, axis_at(&x, c->traffic), axis_at(&y, c->time));
        put_tip(h, c);
        html_close(h);
    }
    html_close(h);
    html_close(h);
}

void html_candidates_legend(html *h)
{
    html_open_class(h, "ul", "legend");
    plot_legend_key(h);
    plot_star(h, "point chosen", 7, 7, 7);
    html_close(h);
    plot_legend_text(h, "chosen");
    plot_legend_key(h);
    put_square(h, "point front", 7, 7, 4);
    html_close(h);
    plot_legend_text(h, "on the front: nothing is better in both");
    plot_legend_key(h);
    plot_circle(h, "point", 7, 7, 4);
    html_close(h);
    plot_legend_text(h, "fits into the fast memory");
    plot_legend_key(h);
    plot_circle(h, "point misfit", 7, 7, 4);
    html_close(h);
    plot_legend_text(h, "is larger");
    html_close(h);
}

/* ---- heat map ---- */

/* A region's candidates over two axes: for each pair of tile sizes the best one. */
typedef struct heat {
    const char *axes[2];
    int64_t sizes[2][SIDE_MOST]; /* [n] ascending; INT64_MAX: the axis is not cut */
    uint32_t n[2];
    const ot_fact_candidate *cells[SIDE_MOST][SIDE_MOST];
    double low, high; /* times */
} heat;

/* Elements of a tile along the axis. */
static int64_t size_along(const ot_fact_candidate *c, const char *name)
{
    for (uint32_t d = 0; d < c->n_dims; d++)
        if (strcmp(c->axes[d], name) == 0) return c->tiles[d] > 1 ? c->tile[d] : INT64_MAX;
    return INT64_MAX;
}

static bool is_of(const heat *m, const ot_fact_candidate *c)
{
    for (uint32_t d = 0; d < c->n_dims; d++)
        if (strcmp(c->axes[d], m->axes[0]) != 0 && strcmp(c->axes[d], m->axes[1]) != 0)
            return false;
    return is_drawn(c);
}

/* Place of a size among the sorted ones, or SIDE_MOST when there is no room for it. */
static uint32_t add_size(heat *m, int side, int64_t size)
{
    uint32_t k = 0;
    while (k < m->n[side] && m->sizes[side][k] < size) k++;
    if (k < m->n[side] && m->sizes[side][k] == size) return k;
    if (m->n[side] == SIDE_MOST) return SIDE_MOST;
    memmove(&m->sizes[side][k + 1], &m->sizes[side][k],
            (m->n[side] - k) * sizeof m->sizes[side][0]);
    m->sizes[side][k] = size;
    m->n[side]++;
    return k;
}

static bool is_better(const ot_fact_candidate *a, const ot_fact_candidate *b)
{
    if (!b || a->chosen != b->chosen) return !b || a->chosen;
    if (a->fits != b->fits) return a->fits;
    return a->time < b->time;
}

static uint32_t cells_in(const heat *m, int side, uint32_t line, bool *chosen)
{
    uint32_t n = 0;
    *chosen = false;
    for (uint32_t k = 0; k < m->n[1 - side]; k++) {
        const ot_fact_candidate *c = side ? m->cells[k][line] : m->cells[line][k];
        if (!c) continue;
        n++;
        *chosen |= c->chosen;
    }
    return n;
}

static void drop_line(heat *m, int side, uint32_t line)
{
    m->n[side]--;
    for (uint32_t i = line; i < m->n[side]; i++) {
        m->sizes[side][i] = m->sizes[side][i + 1];
        for (uint32_t k = 0; k < m->n[1 - side]; k++) {
            if (side)
                m->cells[k][i] = m->cells[k][i + 1];
            else
                m->cells[i][k] = m->cells[i + 1][k];
        }
    }
}

/* Sizes that were scored once, along one axis only, would be lines of nothing: the table has
 * them. The chosen one stays. */
static void drop_lonely(heat *m)
{
    bool again = true, chosen;
    while (again) {
        again = false;
        for (int side = 0; side < 2; side++)
            for (uint32_t line = m->n[side]; line-- > 0;) {
                if (cells_in(m, side, line, &chosen) > 1 || chosen) continue;
                drop_line(m, side, line);
                again = true;
            }
    }
}

/* false: there are no two axes, or more sizes than a drawing holds. */
static bool fill_heat(const shown *s, heat *m)
{
    *m = (heat){.low = INFINITY};
    for (uint32_t k = 0; k < s->n && !m->axes[0]; k++) {
        if (s->list[k]->n_dims != 2) continue;
        m->axes[0] = s->list[k]->axes[0];
        m->axes[1] = s->list[k]->axes[1];
    }
    if (!m->axes[0] || strcmp(m->axes[0], m->axes[1]) == 0) return false;
    for (uint32_t k = 0; k < s->n; k++) {
        if (!is_of(m, s->list[k])) continue;
        for (int side = 0; side < 2; side++)
            if (add_size(m, side, size_along(s->list[k], m->axes[side])) == SIDE_MOST) return false;
    }
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_fact_candidate *c = s->list[k];
        if (!is_of(m, c)) continue;
        uint32_t i = add_size(m, 0, size_along(c, m->axes[0])),
                 j = add_size(m, 1, size_along(c, m->axes[1]));
        if (is_better(c, m->cells[i][j])) m->cells[i][j] = c;
        m->low = fmin(m->low, c->time);
        m->high = fmax(m->high, c->time);
    }
    drop_lonely(m);
    return m->n[0] * m->n[1] > 1;
}

/* 0 (best) to 6, by the logarithm of the time. */
static int level_of(const heat *m, double time)
{
    if (!(m->low > 0) || !(m->high > m->low) || time <= m->low) return 0;
    double part = log(time / m->low) / log(m->high / m->low);
    return part >= 1 ? 6 : (int)(part * 7);
}

static void put_cell(html *h, const heat *m, uint32_t i, uint32_t j, double left, double top)
{
    const ot_fact_candidate *c = m->cells[i][j];
    char cls[64], text[64], time[32];
    double x = left + CELL_W * j, y = top + CELL_H * i;
    int level = c ? level_of(m, c->time) : 0;
    if (!c)
        snprintf(cls, sizeof cls, "cell none");
    else
        snprintf(cls, sizeof cls, "cell heat-%d%s%s", level, c->fits ? "" : " misfit",
                 c->chosen ? " chosen" : "");
    html_open(h, "g");
    if (c) put_tip(h, c);
    html_open_class(h, "rect", cls);
    html_attrf(h, "x", "%g", x + 1.5);
    html_attrf(h, "y", "%g", y + 1.5);
    html_attrf(h, "width", "%g", CELL_W - 3);
    html_attrf(h, "height", "%g", CELL_H - 3);
    html_attr(h, "rx", "3");
    html_close(h);
    if (c) {
        html_format(c->time, "seconds", time, sizeof time);
        snprintf(text, sizeof text, "%s%s", c->chosen ? "\xe2\x98\x85" : "", time);
        plot_text(h, level < 4 ? "middle low" : "middle high", x + CELL_W / 2, y + CELL_H / 2 + 4,
                  text);
    }
    html_close(h);
}

/* "14", or "whole". */
static void put_size(html *h, const char *cls, double x, double y, int64_t size)
{
    char text[32] = "whole";
    if (size != INT64_MAX) html_format((double)size, "count", text, sizeof text);
    plot_text(h, cls, x, y, text);
}

static void put_heat(html *h, const ot_fact_region *r, const shown *s)
{
    heat m;
    char label[128];
    if (!fill_heat(s, &m)) return;
    const double left = 78, top = 44, width = left + CELL_W * m.n[1] + 4,
                 height = top + CELL_H * m.n[0] + 6;
    html_open_class(h, "div", "fixed");
    html_open(h, "h3");
    html_textf(h, "Time by elements of a tile along %s and %s", m.axes[0], m.axes[1]);
    html_close(h);
    snprintf(label, sizeof label,
             "Times of region %u by tile sizes; the table below tells the same", r->id);
    html_open_class(h, "div", "scroll");
    html_open_class(h, "svg", "chart heat");
    html_attrf(h, "viewBox", "0 0 %g %g", width, height);
    html_attrf(h, "width", "%g", width);
    html_attrf(h, "height", "%g", height);
    html_attr(h, "role", "img");
    html_attr(h, "aria-label", label);
    snprintf(label, sizeof label, "%.40s \xe2\x86\x93   %.40s \xe2\x86\x92", m.axes[0], m.axes[1]);
    plot_text(h, "strong", 2, 16, label);
    for (uint32_t j = 0; j < m.n[1]; j++)
        put_size(h, "dim middle", left + CELL_W * (j + 0.5), top - 8, m.sizes[1][j]);
    for (uint32_t i = 0; i < m.n[0]; i++) {
        put_size(h, "dim end", left - 8, top + CELL_H * (i + 0.5) + 4, m.sizes[0][i]);
        for (uint32_t j = 0; j < m.n[1]; j++) put_cell(h, &m, i, j, left, top);
    }
    html_close(h);
    html_close(h);
    html_leaf(h, "p", "quiet note",
              "\xe2\x98\x85 and a thick rim: chosen. The stronger the colour, the slower; dashed "
              "rim: larger than the fast memory; "
              "empty: not scored. What was scored along one axis only is in the table.");
    html_close(h);
}

/* ---- table ---- */

static void put_row(html *h, const ot_fact_candidate *c)
{
    html_open_class(h, "tr", c->chosen ? "chosen" : NULL);
    html_open_class(h, "td", "tiles");
    for (uint32_t d = 0; d < c->n_dims; d++) html_axis(h, d, c->axes[d], c->tiles[d]);
    html_close(h);
    html_open_class(h, "td", "tiles");
    for (uint32_t d = 0; d < c->n_dims; d++) html_axis(h, d, c->axes[d], (double)c->tile[d]);
    html_close(h);
    html_leaf(h, "td", "form", c->form);
    html_open_class(h, "td", "num");
    html_seconds(h, c->time);
    html_close(h);
    html_open_class(h, "td", "num");
    html_bytes(h, c->traffic);
    html_close(h);
    html_open_class(h, "td", "num");
    html_bytes(h, (double)c->working_set);
    html_close(h);
    html_open(h, "td");
    html_leaf(h, "span", c->fits ? "tag yes" : "tag no", c->fits ? "fits" : "larger");
    html_close(h);
    html_open_class(h, "td", "reason");
    if (c->chosen) html_text(h, "\xe2\x98\x85 ");
    if (c->on_front && !c->chosen) html_text(h, "on the front; ");
    html_text(h, c->reason);
    html_close(h);
    html_close(h);
}

static void put_table(html *h, const ot_fact_region *r, const shown *s)
{
    static const char *const heads[] = {
        "Tiles",        "Elements of a tile", "Form", "#Time", "#Bytes moved",
        "#Working set", "Fast memory",        "Why",  NULL};
    html_leaf(h, "h3", NULL, "Tilings that were scored");
    html_open_class(h, "div", "scroll tall");
    html_attr(h, "tabindex", "0");
    html_attr(h, "role", "region");
    html_attrf(h, "aria-label", "Candidates of region %u", r->id);
    html_open_class(h, "table", "small sortable");
    html_heads(h, heads);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < s->n; k++) put_row(h, s->list[k]);
    html_close(h);
    html_close(h);
    html_close(h);
    if (s->n < r->n_candidates) {
        html_open_class(h, "p", "quiet");
        html_rest(h, r->n_candidates);
        html_text(h, ", of which the XML report tells.");
        html_close(h);
    }
}

void html_candidates(html *h, const ot_fact_region *r)
{
    shown s;
    pick(h->f, r, &s);
    if (!s.n) return;
    html_open_class(h, "div", "candidates");
    if (h->f->n_regions <= HTML_REGIONS_FULL) {
        html_open_class(h, "div", "columns drawn");
        put_plot(h, r, &s);
        put_heat(h, r, &s);
        html_close(h);
    }
    put_table(h, r, &s);
    html_close(h);
}
