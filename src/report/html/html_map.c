/* Memory maps: time to the right, offsets upwards, one box for each buffer while it lies there.
 *
 *   12 MiB |      +-----+                      "before" and "after" stand one under the other with
 *                                              one scale of bytes, so that
 *          |......|  b  |...... least possible what is saved is seen; maps of a kernel's scopes
 *                    have each their own
 *    6 MiB | +----+--+--+----+
 *          | |   a   |  c    |
 *        0 +-+-------+-------+--> step
 *
 * Each box has a tooltip with its name, size, place and life. Of very many boxes the smallest
 * share one shape without tooltips, and beyond that they are counted only. The largest buffers
 * stand in a table too.
 */
#include "html.h"

#include <math.h>

#define WIDTH          1040.0
#define LEFT           70.0 /* of the plot: ticks of bytes */
#define RIGHT          14.0
#define ABOVE          14.0
#define BELOW          40.0 /* ticks of time and their name */
#define TOOLTIPS       1500 /* boxes of one map that have one */
#define DRAWN          8000 /* that are drawn */
#define TABLE          30   /* rows of the table */
#define REGIONS_DRAWN  40   /* maps of regions */
#define CHAR           6.6  /* width of a character of a name in a box */
#define NAME_MAX_BYTES 120  /* of a name in a tooltip */

typedef struct plot {
    html *h;
    const ot_fact_map *m;
    double x, y, w, height; /* of its rectangle in the drawing */
    double top, steps;      /* what it spans */
    bool kernel;            /* kinds are pipes */
} plot;

typedef struct place {
    double x, y, w, h;
} place;

static place place_of(const plot *p, const ot_fact_box *b)
{
    double end = (double)b->offset + (double)b->size;
    place r = {p->x + p->w * (double)b->lower / p->steps, p->y + p->height * (1 - end / p->top), 0,
               0};
    r.w = fmax(p->w * ((double)b->upper - (double)b->lower) / p->steps, 0.5);
    r.h = fmax(p->height * (double)b->size / p->top, 0.5);
    return r;
}

/* ---- axes and lines ---- */

static void put_text(html *h, const char *cls, double x, double y, const char *text)
{
    html_open_class(h, "text", cls);
    html_attrf(h, "x", "%.1f", x);
    html_attrf(h, "y", "%.1f", y);
    html_text(h, text);
    html_close(h);
}

static void put_line(html *h, const char *cls, double x, double y, char along, double length)
{
    html_open_class(h, "path", cls);
    html_attrf(h, "d", "M%.1f %.1f%c%.1f", x, y, along, length);
    html_close(h);
}

/* Powers of two, so that ticks are whole KiB and MiB. */
static void put_byte_ticks(const plot *p)
{
    char text[48];
    double step = 1, most = p->height < 200 ? 4 : 6;
    while (p->top / step > most) step *= 2;
    for (double v = 0; v <= p->top; v += step) {
        double y = p->y + p->height * (1 - v / p->top);
        put_line(p->h, "grid", p->x, y, 'h', p->w);
        put_text(p->h, "dim end", p->x - 7, y + 4,
                 v > 0 ? html_format(v, "bytes", text, sizeof text) : "0");
    }
}

/* 1, 2 or 5 times a power of ten. */
static void put_time_ticks(const plot *p)
{
    static const double factors[] = {1, 2, 5};
    double step = 1;
    char text[48];
    for (int k = 0; p->steps / step > 10; k++) step = factors[k % 3] * pow(10, k / 3);
    for (double t = 0; t <= p->steps; t += step) {
        double x = p->x + p->w * t / p->steps;
        put_line(p->h, "axis", x, p->y + p->height, 'v', 4);
        put_text(p->h, "dim middle", x, p->y + p->height + 17,
                 html_format(t, "count", text, sizeof text));
    }
    put_text(p->h, "dim middle", p->x + p->w / 2, p->y + p->height + 34,
             p->m->time_label ? p->m->time_label : "time");
}

/* A dashed line with its name above its right end. */
static void put_level(const plot *p, double v, const char *name)
{
    char text[96], bytes[48];
    if (v <= 0 || v > p->top) return;
    double y = p->y + p->height * (1 - v / p->top);
    put_line(p->h, "limit", p->x, y, 'h', p->w);
    snprintf(text, sizeof text, "%s %s", name, html_format(v, "bytes", bytes, sizeof bytes));
    put_text(p->h, "m-level end", p->x + p->w - 6, y - 5, text);
}

/* ---- boxes ---- */

static void put_class(const plot *p, const ot_fact_box *b, bool many)
{
    html_attrf(p->h, "class", "m-box%s %s-%u", many ? " m-many" : "",
               p->kernel && b->kind ? "pipe" : "kind", b->kind);
}

static const char *kind_text(const plot *p, const ot_fact_box *b)
{
    if (p->kernel)
        return b->kind > 0 && b->kind <= OT_PIPE_COUNT ? ot_pipe_name((ot_pipe)(b->kind - 1))
                                                       : NULL;
    return b->kind == 1   ? "graph input or output"
           : b->kind == 2 ? "a tile's buffers"
                          : "activation";
}

static void put_box(const plot *p, const ot_fact_box *b)
{
    char bytes[48], offset[48];
    place r = place_of(p, b);
    const char *kind = kind_text(p, b);
    html_open(p->h, "rect");
    put_class(p, b, false);
    html_attrf(p->h, "x", "%.1f", r.x);
    html_attrf(p->h, "y", "%.1f", r.y);
    html_attrf(p->h, "width", "%.1f", r.w);
    html_attrf(p->h, "height", "%.1f", r.h);
    html_tip(p->h, "%.*s \xc2\xb7 %s at %s, steps %lld to %lld%s%s", NAME_MAX_BYTES, b->name,
             html_format((double)b->size, "bytes", bytes, sizeof bytes),
             html_format((double)b->offset, "bytes", offset, sizeof offset), (long long)b->lower,
             (long long)b->upper - 1, kind ? ", " : "", kind ? kind : "");
    html_close(p->h);
}

/* The name inside of the box when it fits there. */
static void put_name(const plot *p, const ot_fact_box *b)
{
    place r = place_of(p, b);
    size_t chars = 0;
    for (const char *s = b->name; *s; chars++) {
        size_t n = ot_utf8_printable(s);
        chars += n > 2; /* wide ones */
        s += n ? n : 1;
    }
    if (r.h < 14 || r.w < (double)chars * CHAR + 8 || chars > 200) return;
    put_text(p->h, "m-name middle", r.x + r.w / 2, r.y + r.h / 2 + 4, b->name);
}

/* Boxes of a kind as one shape. */
static void put_plain_boxes(const plot *p, const uint32_t *ids, uint32_t n, uint32_t kind, char *d,
                            size_t size)
{
    const ot_fact_box *first = NULL;
    size_t used = 0;
    for (uint32_t k = 0; k < n; k++) {
        const ot_fact_box *b = &p->m->boxes[ids[k]];
        if (b->kind != kind) continue;
        first = b;
        place r = place_of(p, b);
        if (used + 64 > size) break;
        used += (size_t)snprintf(d + used, size - used, "M%.1f %.1fh%.1fv%.1fh%.1fz", r.x, r.y, r.w,
                                 r.h, -r.w);
    }
    if (!first) return;
    html_open(p->h, "path");
    put_class(p, first, true);
    html_attr(p->h, "d", d);
    html_close(p->h);
}

typedef struct ranked {
    double size;
    uint32_t id;
} ranked;

static int by_size(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* [n_boxes] from the largest: by bytes, or by what they take of the drawing. NULL when memory
 * ran out. */
static uint32_t *rank_boxes(const ot_fact_map *m, bool by_area, ot_arena *a)
{
    ranked *r = OT_NEW_N(a, ranked, m->n_boxes + 1u);
    uint32_t *ids = OT_NEW_N(a, uint32_t, m->n_boxes + 1u);
    if (!r || !ids) return NULL;
    for (uint32_t k = 0; k < m->n_boxes; k++) {
        const ot_fact_box *b = &m->boxes[k];
        r[k] = (ranked){(double)b->size * (by_area ? (double)b->upper - (double)b->lower : 1), k};
    }
    qsort(r, m->n_boxes, sizeof *r, by_size);
    for (uint32_t k = 0; k < m->n_boxes; k++) ids[k] = r[k].id;
    return ids;
}

static bool put_boxes(const plot *p, ot_arena *a)
{
    uint32_t n = p->m->n_boxes, told = n < TOOLTIPS ? n : TOOLTIPS, drawn = n < DRAWN ? n : DRAWN;
    uint32_t *ids = rank_boxes(p->m, true, a);
    size_t size = (size_t)(drawn - told + 1) * 64;
    char *d = ot_alloc(a, size);
    if (!ids || !d) return false;
    for (uint32_t kind = 0; told < drawn && kind <= OT_PIPE_COUNT; kind++)
        put_plain_boxes(p, ids + told, drawn - told, kind, d, size);
    for (uint32_t k = 0; k < told; k++) put_box(p, &p->m->boxes[ids[k]]);
    for (uint32_t k = 0; k < told; k++) put_name(p, &p->m->boxes[ids[k]]);
    return true;
}

/* ---- one map ---- */

static void put_caption(const plot *p)
{
    html *h = p->h;
    const ot_fact_map *m = p->m;
    html_leaf(h, "h3", NULL, m->title ? m->title : m->id);
    html_open_class(h, "p", "m-figures");
    html_text(h, "height ");
    html_bytes(h, (double)m->height);
    html_text(h, m->proved ? ", the least of such layouts; most alive at once "
                           : "; most alive at once ");
    html_bytes(h, (double)m->lower_bound);
    if (m->capacity > 0) {
        html_text(h, "; capacity ");
        html_bytes(h, (double)m->capacity);
    }
    html_text(h, "; ");
    html_count(h, m->n_boxes);
    html_text(h, m->n_boxes == 1 ? " buffer" : " buffers");
    if (m->n_boxes > DRAWN) html_text(h, ", of which the largest are drawn");
    html_close(h);
}

static void put_row(const plot *p, const ot_fact_box *b)
{
    html *h = p->h;
    const char *kind = kind_text(p, b);
    html_open(h, "tr");
    html_open_class(h, "td", "n");
    html_textf(h, "%.*s", NAME_MAX_BYTES, b->name);
    html_close(h);
    html_leaf(h, "td", NULL, kind ? kind : "");
    for (int k = 0; k < 4; k++) {
        html_open_class(h, "td", "num");
        if (k < 2)
            html_bytes(h, (double)(k == 0 ? b->size : b->offset));
        else
            html_count(h, (double)(k == 2 ? b->lower : b->upper - 1));
        html_close(h);
    }
    html_close(h);
}

static bool put_table(const plot *p, ot_arena *a)
{
    static const char *const titles[] = {"Buffer",      "Kind",       "#Size", "#Offset",
                                         "#First step", "#Last step", NULL};
    uint32_t n = p->m->n_boxes < TABLE ? p->m->n_boxes : TABLE;
    uint32_t *ids = rank_boxes(p->m, false, a);
    html *h = p->h;
    if (!ids) return false;
    html_open_class(h, "details", "plain");
    html_open(h, "summary");
    html_text(h, n < p->m->n_boxes ? "The largest buffers as a table" : "The buffers as a table");
    html_close(h);
    html_open_class(h, "div", "scroll");
    html_open_class(h, "table", "sortable");
    html_heads(h, titles);
    html_open(h, "tbody");
    for (uint32_t k = 0; k < n; k++) put_row(p, &p->m->boxes[ids[k]]);
    html_close(h);
    html_close(h);
    html_close(h);
    html_close(h);
    return true;
}

/* What is common to maps of one scale: the highest line of any. */
static double top_of(const ot_fact_map *m)
{
    double top = fmax((double)m->height, (double)m->lower_bound);
    if (m->capacity > 0 && (double)m->capacity < 2 * top) top = fmax(top, (double)m->capacity);
    for (uint32_t k = 0; k < m->n_boxes; k++)
        top = fmax(top, (double)m->boxes[k].offset + (double)m->boxes[k].size);
    return fmax(top, 1) * 1.06;
}

/* A tile's buffers, whose kinds are pipes and whose steps are statements. */
static bool is_region(const ot_fact_map *m) { return m->id && strncmp(m->id, "region-", 7) == 0; }

static bool put_map(html *h, const ot_fact_map *m, double top, ot_arena *a)
{
    double height = m->n_boxes <= 4 ? 120 : 250;
    plot p = {.h = h,
              .m = m,
              .x = LEFT,
              .y = ABOVE,
              .w = WIDTH - LEFT - RIGHT,
              .height = height,
              .top = top,
              .steps = m->steps > 0 ? (double)m->steps : 1,
              .kernel = h->f->kind == OT_FACTS_MEMORY || is_region(m)};
    for (uint32_t k = 0; k < m->n_boxes; k++) p.steps = fmax(p.steps, (double)m->boxes[k].upper);
    html_open_class(h, "figure", "m-map");
    put_caption(&p);
    html_svg(h, "chart m-chart", WIDTH, ABOVE + height + BELOW, m->title ? m->title : m->id);
    put_byte_ticks(&p);
    if (!put_boxes(&p, a)) return false;
    put_time_ticks(&p);
    put_line(h, "axis", p.x, p.y, 'v', p.height);
    put_line(h, "axis", p.x, p.y + p.height, 'h', p.w);
    put_level(&p, (double)m->lower_bound,
              m->proved && m->lower_bound == m->height ? "height = most alive at once"
                                                       : "most alive at once");
    put_level(&p, (double)m->capacity, "capacity");
    html_close(h);
    if (!put_table(&p, a)) return false;
    html_close(h);
    return true;
}

static void put_key(html *h, const char *cls, const char *text)
{
    html_open(h, "li");
    html_open_class(h, "svg", "g-key");
    html_attr(h, "width", "24");
    html_attr(h, "height", "14");
    html_attr(h, "aria-hidden", "true");
    html_open_class(h, "rect", cls);
    html_attr(h, "x", "1");
    html_attr(h, "y", "1");
    html_attr(h, "width", "22");
    html_attr(h, "height", "12");
    html_close(h);
    html_close(h);
    html_text(h, text);
    html_close(h);
}

static void put_legend(html *h)
{
    bool used[OT_PIPE_COUNT + 1] = {false};
    html_open_class(h, "ul", "g-legend");
    if (h->f->kind != OT_FACTS_MEMORY) {
        put_key(h, "kind-0", "activation");
        put_key(h, "kind-1", "graph input or output");
        put_key(h, "kind-2", "working set of a region: a tile's buffers");
    }
    for (uint32_t k = 0; k < h->f->n_maps; k++) {
        if (h->f->kind != OT_FACTS_MEMORY && !is_region(&h->f->maps[k])) continue;
        for (uint32_t j = 0; j < h->f->maps[k].n_boxes; j++)
            if (h->f->maps[k].boxes[j].kind <= OT_PIPE_COUNT)
                used[h->f->maps[k].boxes[j].kind] = true;
    }
    for (uint32_t k = 1; k <= OT_PIPE_COUNT; k++) {
        char cls[24];
        snprintf(cls, sizeof cls, "pipe-%u", k);
        if (used[k]) put_key(h, cls, ot_pipe_name((ot_pipe)(k - 1)));
    }
    html_close(h);
}

static bool put_section(html *h, ot_arena *a)
{
    bool shared = h->f->kind != OT_FACTS_MEMORY;
    double top = 0;
    uint32_t drawn = 0;
    html_section(
        h, "maps", "Memory",
        shared ? "What lies where while the model runs: time to the right, addresses upwards, both "
                 "drawings in the same "
                 "scale. A tiled region is one step, and what it makes and reads in tiles needs no "
                 "place of its own. The "
                 "peak of the summary is counted otherwise: there a result may take its operand's "
                 "place, and what "
                 "operators need for themselves is in it."
               : "What lies where while the kernel runs: time to the right, addresses upwards.");
    put_legend(h);
    for (uint32_t k = 0; k < h->f->n_maps; k++)
        if (!is_region(&h->f->maps[k])) top = fmax(top, top_of(&h->f->maps[k]));
    for (uint32_t k = 0; k < h->f->n_maps; k++) {
        const ot_fact_map *m = &h->f->maps[k];
        if (is_region(m) && drawn == REGIONS_DRAWN) break; /* the XML has them all */
        if (is_region(m) && drawn++ == 0)
            html_leaf(h, "p", "quiet note",
                      "In the fast memory: the buffers of each region's tiles, every drawing in a "
                      "scale of its own.");
        if (!put_map(h, m, shared && !is_region(m) ? top : top_of(m), a)) return false;
    }
    html_close(h);
    return true;
}

void html_maps(html *h)
{
    if (h->f->n_maps == 0) return;
    ot_arena *a = ot_arena_new();
    if (!a || !put_section(h, a)) h->failed = true;
    ot_arena_free(a);
}

void html_kernel_map(html *h, const ot_fact_map *m)
{
    ot_arena *a = ot_arena_new();
    if (!a || !put_map(h, m, top_of(m), a)) h->failed = true;
    ot_arena_free(a);
}
