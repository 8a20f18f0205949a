/* Pieces that sections of the page share: headings, drawings, heads of tables, lists of names
 * and of operators.
 *
 *   ul.names   [conv1] [relu1] [conv2] ... and 37 more  what is shown of long lists is bounded: the
 *              page of a model with
 *   operators  Conv 4, Relu 4, Add, ...                  thousands of nodes must stay small
 */
#include "html.h"

#include <stdarg.h>

#define KINDS   64  /* operators told apart in one list; what comes later is "5 others" */
#define TIP_MAX 512 /* bytes of a tooltip */

void html_section(html *h, const char *id, const char *title, const char *lead)
{
    html_open(h, "section");
    html_attr(h, "id", id);
    html_attrf(h, "aria-labelledby", "%s-heading", id);
    html_open(h, "h2");
    html_attrf(h, "id", "%s-heading", id);
    html_text(h, title);
    html_close(h);
    if (lead) html_leaf(h, "p", "lead", lead);
}

void html_svg(html *h, const char *cls, double width, double height, const char *label)
{
    html_open_class(h, "svg", cls);
    html_attrf(h, "viewBox", "0 0 %g %g", width, height);
    html_attr(h, "role", "img");
    html_attr(h, "aria-label", label);
}

void html_tip(html *h, const char *format, ...)
{
    char text[TIP_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    html_open(h, "title");
    for (char *line = text, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end) *end++ = '\0';
        html_text(h, line);
        if (end && !h->failed && xmlTextWriterWriteRaw(h->w, BAD_CAST "\n") < 0) h->failed = true;
    }
    html_close(h);
}

void html_scroll(html *h, const char *cls, const char *label)
{
    html_open_class(h, "div", cls);
    html_attr(h, "tabindex", "0");
    html_attr(h, "role", "region");
    html_attr(h, "aria-label", label);
}

void html_heads(html *h, const char *const *titles)
{
    html_open(h, "thead");
    html_open(h, "tr");
    for (; *titles; titles++) {
        bool figures = **titles == '#';
        html_open_class(h, "th", figures ? "num" : NULL);
        html_attr(h, "scope", "col");
        html_text(h, *titles + figures);
        html_close(h);
    }
    html_close(h);
    html_close(h);
}

void html_fact(html *h, const char *title, double x, const char *unit)
{
    if (x < 0) return;
    html_leaf(h, "dt", NULL, title);
    html_open(h, "dd");
    html_number(h, x, unit);
    html_close(h);
}

void html_cell(html *h, double x, const char *unit)
{
    html_open_class(h, "td", "num");
    html_number(h, x, unit);
    html_close(h);
}

void html_gauge(html *h, double fill)
{
    html_open_class(h, "svg", "gauge");
    html_attr(h, "aria-hidden", "true");
    html_open_class(h, "rect", "track");
    html_attr(h, "width", "100%");
    html_attr(h, "height", "100%");
    html_close(h);
    if (fill > 0) {
        html_open_class(h, "rect", fill > 1 ? "over" : "after");
        html_attrf(h, "width", "%.1f%%", fill < 1 ? 100 * fill : 100);
        html_attr(h, "height", "100%");
        html_close(h);
    }
    html_close(h);
}

void html_bound(html *h, ot_bound bound)
{
    html_open(h, "span");
    html_attrf(h, "class", "tag bound-%s", ot_bound_name(bound));
    html_text(h, ot_bound_name(bound));
    html_close(h);
}

void html_axis(html *h, uint32_t d, const char *axis, double n)
{
    if (d) html_text(h, " \xc3\x97 ");
    html_open_class(h, "span", "axis-tiles");
    html_textf(h, "%s ", axis);
    html_count(h, n);
    html_close(h);
}

const char *html_tiling(uint32_t n_dims, const char *const *axes, const uint32_t *tiles,
                        char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (uint32_t d = 0; d < n_dims && used < size; d++) {
        int n = snprintf(buffer + used, size - used, "%s%s %u", d ? " \xc3\x97 " : "", axes[d],
                         tiles[d]);
        if (n < 0) break;
        used += (size_t)n;
    }
    return buffer;
}

/* ---- operators ---- */

typedef struct kind {
    const char *op;
    uint32_t count, first;
} kind;

static int by_count(const void *x, const void *y)
{
    const kind *a = x, *b = y;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return a->first < b->first ? -1 : 1;
}

static void put_kind(html *h, uint32_t k, const char *op, uint32_t count)
{
    html_textf(h, "%s%s", k ? ", " : "", op);
    if (count < 2) return;
    html_text(h, " ");
    html_count(h, count);
}

void html_operators(html *h, const uint32_t *nodes, uint32_t n, uint32_t most)
{
    kind kinds[KINDS];
    uint32_t n_kinds = 0;
    bool others = false;
    for (uint32_t k = 0; k < n; k++) {
        const char *op = h->f->nodes[nodes[k]].op;
        uint32_t j = 0;
        while (j < n_kinds && strcmp(kinds[j].op, op) != 0) j++;
        if (j < n_kinds)
            kinds[j].count++;
        else if (n_kinds < KINDS)
            kinds[n_kinds++] = (kind){op, 1, k};
        else
            others = true;
    }
    qsort(kinds, n_kinds, sizeof *kinds, by_count);
    uint32_t shown = n_kinds < most ? n_kinds : most;
    for (uint32_t k = 0; k < shown; k++) put_kind(h, k, kinds[k].op, kinds[k].count);
    if (others || shown < n_kinds) html_text(h, shown ? ", others" : "others");
}

void html_rest(html *h, double n)
{
    html_text(h, "and others: ");
    html_count(h, n);
    html_text(h, " in all");
}

void html_names(html *h, const uint32_t *nodes, uint32_t n, uint32_t most)
{
    uint32_t shown = n < most ? n : most;
    html_open_class(h, "ul", "names");
    for (uint32_t k = 0; k < shown; k++) html_leaf(h, "li", "n", h->f->nodes[nodes[k]].name);
    if (shown < n) {
        html_open_class(h, "li", "rest");
        html_rest(h, n);
        html_close(h);
    }
    html_close(h);
}

/* ---- navigation ---- */

void html_navigation_open(html *h)
{
    html_open_class(h, "nav", "bar");
    html_attr(h, "aria-label", "Sections");
    html_open(h, "div");
    html_open(h, "ul");
}

void html_navigation_link(html *h, const char *id, const char *title)
{
    html_open(h, "li");
    html_open(h, "a");
    html_attrf(h, "href", "#%s", id);
    html_text(h, title);
    html_close(h);
    html_close(h);
}

void html_navigation_close(html *h, bool searched)
{
    html_close(h);
    if (searched) html_search(h);
    html_close(h);
    html_close(h);
}
