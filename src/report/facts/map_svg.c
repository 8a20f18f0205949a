/* Maps of memory: time to the right, offsets upwards, one box for each buffer while it is alive.
 *
 *    8 KiB |- - - - - - - - - - - - - - - - - capacity 8 KiB
 *          |      +--------+
 *    4 KiB |......|   b    |................ lower bound 4 KiB
 *          | +----+---+----+----+
 *          | |   a    |    c    |
 *        0 +-+--------+---------+----
 *            0        10        20   time
 *
 * One self-contained SVG document: no script, no font, no network; light and dark as the
 * reader's system wants. Buffers of kernels have the colour and the pattern of their pipe,
 * others one of six tints that mean nothing but "another buffer". What a box says is in its
 * tooltip, and inside it when it fits. Names come from strangers' files: they are cut, escaped,
 * and bytes that XML or a terminal would trip over become U+FFFD.
 */
#include "map_svg.h"

#include "svg_text.h"

#define MARGIN       24.0
#define LEFT         92.0  /* of the plot: offsets */
#define RIGHT        170.0 /* of it: labels of lines */
#define ABOVE        66.0  /* of it: title, figures, legend */
#define BELOW        52.0  /* of it: times */
#define CHAR         6.4   /* width of a character of names at 11 px */
#define LINE         14.0
#define TINTS        6
#define KINDS        (1 + OT_PIPE_COUNT)
#define MANY         2000  /* boxes that outlines would drown */
#define TOOLTIPS_ALL 20000 /* up to here every box has one */
/* beyond: the largest have one, the next are drawn, the rest is counted */
#define TOOLTIPS 10000
#define DRAWN    60000
#define KIB      1024LL
#define MIB      (1024LL * 1024)
#define GIB      (1024LL * 1024 * 1024)

static const char STYLE[] =
    "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#24292f}\n"
    ".h1{font-size:20px;font-weight:600}.h2{font-size:15px;font-weight:600}.m{fill:#57606a}\n"
    ".e{text-anchor:end}.c{text-anchor:middle}\n"
    ".bg{fill:#fff}.plot{fill:#f6f8fa;stroke:#8c959f}.grid{stroke:#d0d7de;stroke-width:.6}\n"
    ".b{stroke:#57606a;stroke-width:.5}.many{stroke-width:.1}.b "
    "rect:hover{stroke:#24292f;stroke-width:2}\n"
    ".n{font-size:11px;text-anchor:middle;dominant-baseline:central;pointer-events:none;paint-"
    "order:stroke;stroke:#fff;"
    "stroke-width:2.5px;stroke-opacity:.75}\n"
    ".l{fill:none;stroke-width:1.4}.cap{stroke:#cf222e}.low{stroke:#0969da;stroke-dasharray:7 "
    "4}.top{stroke:#6e7781;"
    "stroke-dasharray:2 3}\n"
    ".t0{fill:#cfe2ff}.t1{fill:#ffe0c2}.t2{fill:#d2f0d8}.t3{fill:#e8dbfb}.t4{fill:#fbe3ee}.t5{fill:"
    "#f6ecbe}\n"
    ".k1{fill:url(#p1)}.k2{fill:url(#p2)}.k3{fill:url(#p3)}.k4{fill:url(#p4)}.k5{fill:url(#p5)}\n"
    ".f1{fill:#cfe2ff}.f2{fill:#ffe0c2}.f3{fill:#e6e8eb}.f4{fill:#d2f0d8}.f5{fill:#e8dbfb}\n"
    ".s{fill:none;stroke-width:1.1}.s1{stroke:#7aa7f2}.s2{stroke:#e8a765}.s3{stroke:#9aa1a9}.s4{"
    "stroke:#6abf80}\n"
    ".s5{stroke:#b08be8}\n"
    "@media "
    "(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}.bg{fill:#0d1117}.plot{fill:#"
    "151b23;stroke:#656c76}\n"
    ".grid{stroke:#2f3742}.b{stroke:#9198a1}.b rect:hover{stroke:#f0f6fc}.n{stroke:#0d1117}\n"
    ".cap{stroke:#f85149}.low{stroke:#4493f8}.top{stroke:#9198a1}\n"
    ".t0{fill:#1f3a5f}.t1{fill:#5a3a1a}.t2{fill:#1d4428}.t3{fill:#40305f}.t4{fill:#5a2a40}.t5{fill:"
    "#4d4419}\n"
    ".f1{fill:#1f3a5f}.f2{fill:#5a3a1a}.f3{fill:#3a3f47}.f4{fill:#1d4428}.f5{fill:#40305f}\n"
    ".s1{stroke:#4a78bd}.s2{stroke:#a86c30}.s3{stroke:#6e7681}.s4{stroke:#3d8a54}.s5{stroke:#"
    "7d5fc0}}\n";

/* Lines of each pipe's pattern inside a tile of 8 by 8. */
static const char *const PATTERNS[KINDS] = {
    NULL,
    "M-2 2L2 -2M0 8L8 0M6 10L10 6",                             /* vector: rising lines */
    "M0 8L8 0M0 0L8 8M-2 2L2 -2M6 10L10 6M-2 6L2 10M6 -2L10 2", /* cube: crossed lines */
    "M3 4h2",                                                   /* scalar: dots */
    "M0 4h8",                                                   /* dma_in: level lines */
    "M4 0v8",                                                   /* dma_out: upright lines */
};

typedef struct frame {
    FILE *f;
    const ot_map_plot *p;
    double x, y, w, h;        /* of the plot's rectangle */
    int64_t t0, t1, top;      /* what it spans: [t0, t1] by [0, top] */
    size_t name_max;          /* bytes of a name in a tooltip, escaped */
    uint32_t tooltips, drawn; /* boxes that may have one, that may be drawn */
} frame;

/* "12 B", "3 KiB", "1500 B (1.5 KiB)": exact. */
static const char *bytes_text(int64_t v, char *buf, size_t n)
{
    char about[32];
    if (v >= MIB && v % MIB == 0)
        snprintf(buf, n, "%lld MiB", (long long)(v / MIB));
    else if (v >= KIB && v % KIB == 0)
        snprintf(buf, n, "%lld KiB", (long long)(v / KIB));
    else if (v < KIB)
        snprintf(buf, n, "%lld B", (long long)v);
    else
        snprintf(buf, n, "%lld B (%s)", (long long)v,
                 ot_format_bytes((double)v, about, sizeof about));
    return buf;
}

/* ---- places ---- */

static double x_of(const frame *m, int64_t t)
{
    double span = (double)m->t1 - (double)m->t0;
    return m->x + m->w * ((double)t - (double)m->t0) / (span > 0 ? span : 1);
}

static double y_of(const frame *m, int64_t offset)
{
    return m->y + m->h - m->h * (double)offset / (double)m->top;
}

typedef struct area {
    double x, y, w, h;
} area;

/* Never thinner than what can be seen. */
static area area_of(const frame *m, const ot_map_box *b)
{
    int64_t end;
    if (!ot_add_i64(b->offset, b->size, &end)) end = INT64_MAX;
    area r = {x_of(m, b->lower), y_of(m, end), 0, 0};
    r.w = x_of(m, b->upper) - r.x;
    r.h = y_of(m, b->offset) - r.y;
    if (r.w < 0.4) r.w = 0.4;
    if (r.h < 0.4) r.h = 0.4;
    return r;
}

/* What the axes span. A capacity far above the boxes would flatten them: it is told in words then.
 */
static void find_span(frame *m)
{
    const ot_map_plot *p = m->p;
    m->top = ot_max(ot_max(p->height, p->lower_bound), 1);
    bool given = p->from < p->to;
    m->t0 = given ? p->from : p->n ? p->boxes[0].lower : 0;
    m->t1 = given ? p->to : p->n ? p->boxes[0].upper : 1;
    for (uint32_t k = 0; k < p->n; k++) {
        int64_t end;
        if (!ot_add_i64(p->boxes[k].offset, p->boxes[k].size, &end)) end = INT64_MAX;
        m->top = ot_max(m->top, end);
        m->t0 = ot_min(m->t0, p->boxes[k].lower);
        m->t1 = ot_max(m->t1, p->boxes[k].upper);
    }
    if (p->capacity > m->top && p->capacity / 2 <= m->top) m->top = p->capacity;
    if (m->top < INT64_MAX / 2) m->top += m->top / 32 + 1; /* room above the highest line */
}

/* ---- axes ---- */

static void put_offset_ticks(const frame *m)
{
    int64_t step = 1, unit, most = m->h < 300 ? 4 : 8;
    while (m->top / step > most) step *= 2;
    unit = step >= GIB ? GIB : step >= MIB ? MIB : step >= KIB ? KIB : 1;
    const char *name = unit == GIB ? "GiB" : unit == MIB ? "MiB" : unit == KIB ? "KiB" : "B";
    for (int64_t k = 0; k <= m->top / step; k++) {
        double y = y_of(m, k * step);
        fputs("<path class=\"grid\" d=\"M", m->f);
        ot_svg_put_number(m->x, m->f);
        fputc(' ', m->f);
        ot_svg_put_number(y, m->f);
        fputc('h', m->f);
        ot_svg_put_number(m->w, m->f);
        fputs("\"/><text class=\"m e\"", m->f);
        ot_svg_put_attribute("x", m->x - 8, m->f);
        ot_svg_put_attribute("y", y + 4, m->f);
        if (k == 0)
            fputs(">0</text>\n", m->f);
        else
            fprintf(m->f, ">%lld %s</text>\n", (long long)(k * step / unit), name);
    }
}

/* Digits in groups of three, narrow spaces between. */
static void put_grouped(int64_t v, FILE *f)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)v);
    for (size_t k = 0, n = strlen(digits); k < n; k++) {
        if (k > 0 && digits[k - 1] != '-' && n > 4 && (n - k) % 3 == 0) fputs("\xe2\x80\xaf", f);
        fputc(digits[k], f);
    }
}

/* 1, 2 or 5 times a power of ten, such that at most `most` steps make the span. */
static int64_t time_step(double span, double most)
{
    static const int64_t factors[] = {1, 2, 5};
    for (int64_t power = 1; power <= INT64_MAX / 50; power *= 10)
        for (int k = 0; k < 3; k++)
            if (span <= most * (double)(factors[k] * power)) return factors[k] * power;
    return INT64_MAX / 2;
}

static void put_time_ticks(const frame *m)
{
    int64_t step = time_step((double)m->t1 - (double)m->t0, m->w / 80);
    int64_t first = m->t0 / step + (m->t0 % step > 0),
            n = m->t1 / step - (m->t1 % step < 0) - first;
    for (int64_t k = 0; k <= n; k++) {
        int64_t t = (first + k) * step;
        double x = x_of(m, t);
        fputs("<path class=\"grid\" d=\"M", m->f);
        ot_svg_put_number(x, m->f);
        fputc(' ', m->f);
        ot_svg_put_number(m->y, m->f);
        fputc('v', m->f);
        ot_svg_put_number(m->h + 5, m->f);
        fputs("\"/><text class=\"m c\"", m->f);
        ot_svg_put_attribute("x", x, m->f);
        ot_svg_put_attribute("y", m->y + m->h + 19, m->f);
        fputc('>', m->f);
        put_grouped(t, m->f);
        fputs("</text>\n", m->f);
    }
    fputs("<text class=\"m c\"", m->f);
    ot_svg_put_attribute("x", m->x + m->w / 2, m->f);
    ot_svg_put_attribute("y", m->y + m->h + 38, m->f);
    fputc('>', m->f);
    ot_svg_put_text(m->p->time ? m->p->time : "time", 80, m->f);
    fputs("</text>\n", m->f);
}

/* ---- lines: height, lower bound, capacity ---- */

typedef struct level {
    const char *name, *class;
    int64_t value;
} level;

static void put_level(const frame *m, const level *l, double y)
{
    fprintf(m->f, "<path class=\"l %s\" d=\"M", l->class);
    ot_svg_put_number(m->x, m->f);
    fputc(' ', m->f);
    ot_svg_put_number(y, m->f);
    fputc('h', m->f);
    ot_svg_put_number(m->w, m->f);
    fputs("\"/>\n", m->f);
}

/* Lines with their names in the right margin, from the lowest up; names of equal values share a
 * place, near ones make room. */
static void put_levels(const frame *m)
{
    const ot_map_plot *p = m->p;
    level all[3] = {{"lower bound", "low", p->lower_bound},
                    {"height", "top", p->height},
                    {"capacity", "cap", p->capacity}};
    double free_y = m->y + m->h + 4; /* the lowest place that a name may take */
    int n = p->capacity > 0 && p->capacity <= m->top ? 3 : 2;

    for (int k = 1; k < n; k++)
        for (int j = k; j > 0 && all[j].value < all[j - 1].value; j--) {
            level swap = all[j];
            all[j] = all[j - 1];
            all[j - 1] = swap;
        }
    for (int k = 0; k < n; k++) put_level(m, &all[k], y_of(m, all[k].value));
    for (int k = 0; k < n; k++) {
        char bytes[64];
        double y = y_of(m, all[k].value), text_y = y + 4 < free_y ? y + 4 : free_y;
        fputs("<text", m->f);
        ot_svg_put_attribute("x", m->x + m->w + 8, m->f);
        ot_svg_put_attribute("y", text_y, m->f);
        fprintf(m->f, ">%s", all[k].name);
        for (; k + 1 < n && all[k + 1].value == all[k].value; k++)
            fprintf(m->f, " = %s", all[k + 1].name);
        free_y = text_y - LINE;
        fputs("</text><text class=\"m\"", m->f);
        ot_svg_put_attribute("x", m->x + m->w + 8, m->f);
        ot_svg_put_attribute("y", free_y, m->f);
        fprintf(m->f, ">%s</text>\n", bytes_text(all[k].value, bytes, sizeof bytes));
        free_y -= LINE + 3;
    }
}

/* ---- boxes ---- */

static void put_class(const ot_map_box *b, uint32_t k, FILE *f)
{
    if (b->kind > 0 && b->kind < KINDS)
        fprintf(f, "k%u", b->kind);
    else
        fprintf(f, "t%u", k % TINTS);
}

static void put_box(const frame *m, uint32_t k)
{
    const ot_map_box *b = &m->p->boxes[k];
    area r = area_of(m, b);
    char bytes[64];

    fputs("<rect class=\"", m->f);
    put_class(b, k, m->f);
    fputc('"', m->f);
    ot_svg_put_attribute("x", r.x, m->f);
    ot_svg_put_attribute("y", r.y, m->f);
    ot_svg_put_attribute("width", r.w, m->f);
    ot_svg_put_attribute("height", r.h, m->f);
    fputs("><title>", m->f);
    ot_svg_put_text(b->name ? b->name : "", m->name_max, m->f);
    fprintf(m->f, "\n%s at %lld, time %lld to %lld", bytes_text(b->size, bytes, sizeof bytes),
            (long long)b->offset, (long long)b->lower, (long long)b->upper);
    if (b->kind > 0 && b->kind < KINDS) fprintf(m->f, ", %s", ot_pipe_name((ot_pipe)(b->kind - 1)));
    fputs("</title></rect>\n", m->f);
}

/* The name inside the box, across or upright; nothing when it fits neither way. */
static void put_name(const frame *m, const ot_map_box *b)
{
    area r = area_of(m, b);
    size_t columns = b->name ? ot_svg_columns(b->name) : 0;
    double need = (double)columns * CHAR + 6;
    bool across = r.w >= need && r.h >= LINE, upright = !across && r.h >= need && r.w >= LINE;
    double x = r.x + r.w / 2, y = r.y + r.h / 2;

    if (columns == 0 || columns > 200 || (!across && !upright)) return;
    fputs("<text class=\"n\"", m->f);
    ot_svg_put_attribute("x", x, m->f);
    ot_svg_put_attribute("y", y, m->f);
    if (upright) {
        fputs(" transform=\"rotate(-90 ", m->f);
        ot_svg_put_number(x, m->f);
        fputc(' ', m->f);
        ot_svg_put_number(y, m->f);
        fputs(")\"", m->f);
    }
    fputc('>', m->f);
    ot_svg_put_text(b->name, 1000, m->f);
    fputs("</text>\n", m->f);
}

/* Boxes without a tooltip: one path for each class. */
static void put_plain_boxes(const frame *m, const uint32_t *ids, uint32_t n)
{
    for (uint32_t class = 0; class < TINTS + KINDS; class ++) {
        bool any = false;
        for (uint32_t j = 0; j < n; j++) {
            const ot_map_box *b = &m->p->boxes[ids[j]];
            bool piped = b->kind > 0 && b->kind < KINDS;
            if (class != (piped ? TINTS + b->kind : ids[j] % TINTS)) continue;
            if (!any) {
                fputs("<path class=\"", m->f);
                put_class(b, ids[j], m->f);
                fputs("\" d=\"", m->f);
            }
            any = true;
            area r = area_of(m, b);
            fputc('M', m->f);
            ot_svg_put_number(r.x, m->f);
            fputc(' ', m->f);
            ot_svg_put_number(r.y, m->f);
            fputc('h', m->f);
            ot_svg_put_number(r.w, m->f);
            fputc('v', m->f);
            ot_svg_put_number(r.h, m->f);
            fputc('h', m->f);
            ot_svg_put_number(-r.w, m->f);
            fputs("z", m->f);
        }
        if (any) fputs("\"/>\n", m->f);
    }
}

typedef struct ranked {
    double size; /* square pixels */
    uint32_t id;
} ranked;

static int by_size(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* [n] the boxes from the largest, when not all of them can have a tooltip; else as they come.
 * NULL when memory ran out. */
static uint32_t *order_boxes(const frame *m, ot_arena *a)
{
    uint32_t n = m->p->n, *ids = OT_NEW_N(a, uint32_t, n);
    for (uint32_t k = 0; ids && k < n; k++) ids[k] = k;
    if (n <= m->tooltips || !ids) return ids;
    ranked *r = OT_NEW_N(a, ranked, n);
    if (!r) return NULL;
    for (uint32_t k = 0; k < n; k++) {
        area box = area_of(m, &m->p->boxes[k]);
        r[k] = (ranked){box.w * box.h, k};
    }
    qsort(r, n, sizeof *r, by_size);
    for (uint32_t k = 0; k < n; k++) ids[k] = r[k].id;
    return ids;
}

static ot_status put_boxes(const frame *m, ot_arena *a)
{
    uint32_t n = m->p->n, full = n < m->tooltips ? n : m->tooltips;
    uint32_t drawn = n < m->drawn || n == full ? n : m->drawn;
    uint32_t *ids = order_boxes(m, a);

    if (!ids) return OT_E_NOMEM;
    fprintf(m->f, "<g class=\"b%s\">\n", n > MANY ? " many" : "");
    put_plain_boxes(m, ids + full, drawn - full);
    for (uint32_t k = 0; k < full; k++) put_box(m, ids[k]);
    fputs("</g>\n", m->f);
    put_levels(m);
    for (uint32_t k = 0; k < full; k++) put_name(m, &m->p->boxes[ids[k]]);
    if (drawn == n) return OT_OK;
    fputs("<text class=\"m e\"", m->f);
    ot_svg_put_attribute("x", m->x + m->w, m->f);
    ot_svg_put_attribute("y", m->y + m->h + 38, m->f);
    fprintf(m->f, ">the %u smallest boxes are not drawn</text>\n", n - drawn);
    return OT_OK;
}

/* ---- one map ---- */

static void put_legend(const frame *m)
{
    bool used[KINDS] = {false};
    double x = m->x;

    for (uint32_t k = 0; k < m->p->n; k++)
        if (m->p->boxes[k].kind < KINDS) used[m->p->boxes[k].kind] = true;
    for (uint32_t k = 1; k < KINDS; k++) {
        if (!used[k]) continue;
        const char *name = ot_pipe_name((ot_pipe)(k - 1));
        fprintf(m->f, "<rect class=\"b k%u\"", k);
        ot_svg_put_attribute("x", x, m->f);
        ot_svg_put_attribute("y", m->y - 20, m->f);
        fputs(" width=\"22\" height=\"12\"/><text", m->f);
        ot_svg_put_attribute("x", x + 28, m->f);
        ot_svg_put_attribute("y", m->y - 10, m->f);
        fprintf(m->f, ">%s</text>\n", name);
        x += 28 + 7.0 * (double)strlen(name) + 22;
    }
}

static void put_heading(const frame *m)
{
    const ot_map_plot *p = m->p;
    char height[64], bound[64], capacity[64];

    fputs("<text class=\"h2\"", m->f);
    ot_svg_put_attribute("x", m->x, m->f);
    ot_svg_put_attribute("y", m->y - ABOVE + 14, m->f);
    fputc('>', m->f);
    ot_svg_put_text(p->title ? p->title : "", 160, m->f);
    fputs("</text><text class=\"m\"", m->f);
    ot_svg_put_attribute("x", m->x, m->f);
    ot_svg_put_attribute("y", m->y - ABOVE + 33, m->f);
    fprintf(m->f, ">height %s, lower bound %s", bytes_text(p->height, height, sizeof height),
            bytes_text(p->lower_bound, bound, sizeof bound));
    if (p->capacity > 0)
        fprintf(m->f, ", capacity %s", bytes_text(p->capacity, capacity, sizeof capacity));
    fputs("</text>\n", m->f);
}

static ot_status put_map(const frame *m)
{
    ot_arena *a = ot_arena_new();
    if (!a) return OT_E_NOMEM;

    put_heading(m);
    put_legend(m);
    fputs("<rect class=\"plot\"", m->f);
    ot_svg_put_attribute("x", m->x, m->f);
    ot_svg_put_attribute("y", m->y, m->f);
    ot_svg_put_attribute("width", m->w, m->f);
    ot_svg_put_attribute("height", m->h, m->f);
    fputs("/>\n", m->f);
    put_offset_ticks(m);
    put_time_ticks(m);
    ot_status s = put_boxes(m, a);
    ot_arena_free(a);
    return s;
}

/* ---- the document ---- */

static void put_patterns(FILE *f)
{
    fputs("<defs>\n", f);
    for (uint32_t k = 1; k < KINDS; k++)
        fprintf(f,
                "<pattern id=\"p%u\" width=\"8\" height=\"8\" "
                "patternUnits=\"userSpaceOnUse\"><rect class=\"f%u\" width=\"8\" "
                "height=\"8\"/><path class=\"s s%u\" d=\"%s\"/></pattern>\n",
                k, k, k, PATTERNS[k]);
    fputs("</defs>\n", f);
}

static void open_document(const char *title, double w, double h, FILE *f)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
          "role=\"img\" viewBox=\"0 0 ",
          f);
    ot_svg_put_number(w, f);
    fputc(' ', f);
    ot_svg_put_number(h, f);
    fputs("\">\n<title>", f);
    ot_svg_put_text(title, 200, f);
    fprintf(f, "</title>\n<style>\n%s</style>\n", STYLE);
    put_patterns(f);
    fputs("<rect class=\"bg\" width=\"100%\" height=\"100%\"/>\n<text class=\"h1\"", f);
    ot_svg_put_attribute("x", MARGIN, f);
    ot_svg_put_attribute("y", MARGIN + 18, f);
    fputc('>', f);
    ot_svg_put_text(title, 120, f);
    fputs("</text>\n", f);
}

static double plot_height(uint32_t boxes)
{
    return boxes <= 4 ? 170 : boxes <= 40 ? 340 : boxes <= 1000 ? 560 : 900;
}

ot_status ot_maps_svg(const ot_map_plot *plots, uint32_t n, const char *title, FILE *f)
{
    uint64_t total = 0, largest = 0;
    for (uint32_t k = 0; k < n; k++) {
        total += plots[k].n;
        if (plots[k].n > largest) largest = plots[k].n;
    }
    bool all = total <= TOOLTIPS_ALL;
    double w = largest <= 40 ? 760 : largest <= 1000 ? 1100 : 1500, y = MARGIN + 40, h = y + MARGIN;
    for (uint32_t k = 0; k < n; k++) h += ABOVE + plot_height(plots[k].n) + BELOW;
    frame m = {.f = f, .x = MARGIN + LEFT, .w = w, .name_max = total <= 2000 ? 240 : 48};

    open_document(title ? title : "", MARGIN + LEFT + w + RIGHT + MARGIN, h, f);
    for (uint32_t k = 0; k < n; k++) {
        m.p = &plots[k];
        m.y = y + ABOVE;
        m.h = plot_height(plots[k].n);
        m.tooltips = all ? TOOLTIPS_ALL : TOOLTIPS / n;
        m.drawn = all ? TOOLTIPS_ALL : DRAWN / n;
        find_span(&m);
        OT_TRY(put_map(&m));
        y += ABOVE + m.h + BELOW;
    }
    fputs("</svg>\n", f);
    return ferror(f) ? OT_E_SYSTEM : OT_OK;
}
