/* The writer of the page: tags, attributes and texts on libxml2's xmlTextWriter, and numbers as
 * people like them.
 *
 *   html_open "tr"  html_attr "id"  html_text  html_close
 *   <tr ............ id="..." ...... > text ... </tr>\n
 *
 * What comes out is XML and HTML at once. For that only elements that HTML knows as void, and
 * shapes of SVG, may end in "/>"; every other one gets its end tag even when it is empty:
 * html_open keeps for each open element how it is to be closed.
 *
 * Texts are cleaned here, at the last moment, so that no section can forget it: a character that
 * XML cannot hold, a control character, a mark that turns the line around and a byte that is no
 * UTF-8 become U+FFFD each.
 */
#include "html.h"

#include <math.h>
#include <stdarg.h>

#define CHUNK     256 /* bytes of text handed over at once */
#define FORMATTED 512 /* longer ones are formatted in a block of their own */

#define REPLACEMENT "\xef\xbf\xbd"

/* ---- elements ---- */

static bool is_in(const char *tag, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(tag, *list) == 0) return true;
    return false;
}

static const char *const VOID_TAGS[] = {"meta",    "input", "br",   "hr",      "col",
                                        "rect",    "path",  "line", "circle",  "polyline",
                                        "polygon", "use",   "stop", "ellipse", NULL};
/* A line ends after them, for readers of the source and for diff. */
static const char *const LINE_TAGS[] = {
    "meta",   "title",      "style", "script", "head",     "body",    "header", "main",
    "footer", "section",    "nav",   "div",    "details",  "summary", "table",  "caption",
    "thead",  "tbody",      "tr",    "ul",     "ol",       "li",      "dl",     "dd",
    "p",      "h1",         "h2",    "h3",     "h4",       "svg",     "defs",   "g",
    "rect",   "path",       "line",  "circle", "polyline", "polygon", "use",    "pattern",
    "figure", "figcaption", NULL};

/* Note what a call of the writer returned. */
static void check(html *h, int result)
{
    if (result < 0) h->failed = true;
}

void html_open(html *h, const char *tag)
{
    if (h->failed) return;
    if (h->depth >= HTML_DEPTH) OT_BUG("the page is nested too deep");
    h->how[h->depth++] = (uint8_t)((is_in(tag, VOID_TAGS) ? HTML_VOID : 0) |
                                   (is_in(tag, LINE_TAGS) ? HTML_LINE : 0));
    check(h, xmlTextWriterStartElement(h->w, BAD_CAST tag));
    /* HTML knows, XML has to be told */
    if (strcmp(tag, "svg") == 0) html_attr(h, "xmlns", "http://www.w3.org/2000/svg");
}

void html_open_class(html *h, const char *tag, const char *cls)
{
    html_open(h, tag);
    if (cls) html_attr(h, "class", cls);
}

void html_close(html *h)
{
    if (h->failed) return;
    if (h->depth == 0) OT_BUG("the page closes what is not open");
    uint8_t how = h->how[--h->depth];
    check(h, how & HTML_VOID ? xmlTextWriterEndElement(h->w) : xmlTextWriterFullEndElement(h->w));
    if (how & HTML_LINE) check(h, xmlTextWriterWriteRaw(h->w, BAD_CAST "\n"));
}

void html_leaf(html *h, const char *tag, const char *cls, const char *text)
{
    html_open_class(h, tag, cls);
    html_text(h, text);
    html_close(h);
}

/* ---- texts ---- */

static bool is_noncharacter(const char *s, size_t n)
{
    return n == 3 && (memcmp(s, "\xef\xbf\xbe", 3) == 0 || memcmp(s, "\xef\xbf\xbf", 3) == 0);
}

/* Clean text into the open element or attribute; the writer escapes it. */
static void put(html *h, const char *s)
{
    char chunk[CHUNK + 8];
    size_t used = 0;
    while (*s && !h->failed) {
        size_t n = ot_utf8_printable(s);
        if (n == 0 || is_noncharacter(s, n)) {
            memcpy(chunk + used, REPLACEMENT, 3);
            used += 3;
            s += n ? n : 1;
        } else {
            memcpy(chunk + used, s, n);
            used += n;
            s += n;
        }
        if (used < CHUNK && *s) continue;
        chunk[used] = '\0';
        check(h, xmlTextWriterWriteString(h->w, BAD_CAST chunk));
        used = 0;
    }
}

void html_attr(html *h, const char *name, const char *value)
{
    if (h->failed) return;
    check(h, xmlTextWriterStartAttribute(h->w, BAD_CAST name));
    put(h, value);
    check(h, xmlTextWriterEndAttribute(h->w));
}

void html_text(html *h, const char *text) { put(h, text); }

/* Give the formatted text to `use`. */
static void with_format(html *h, const char *name, void (*use)(html *, const char *, const char *),
                        const char *format, va_list list) __attribute__((format(printf, 4, 0)));
static void with_format(html *h, const char *name, void (*use)(html *, const char *, const char *),
                        const char *format, va_list list)
{
    char text[FORMATTED], *block = NULL;
    va_list again;
    va_copy(again, list);
    int n = vsnprintf(text, sizeof text, format, list);
    if (n >= FORMATTED) {
        block = malloc((size_t)n + 1);
        if (block) n = vsnprintf(block, (size_t)n + 1, format, again);
    }
    va_end(again);
    if (n < 0 || (n >= FORMATTED && !block))
        h->failed = true;
    else
        use(h, name, block ? block : text);
    free(block);
}

static void use_text(html *h, const char *name, const char *text)
{
    (void)name;
    html_text(h, text);
}

void html_attrf(html *h, const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    with_format(h, name, html_attr, format, list);
    va_end(list);
}

void html_textf(html *h, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    with_format(h, NULL, use_text, format, list);
    va_end(list);
}

/* ---- numbers ---- */

static bool is_absent(double x) { return !isfinite(x) || x < 0; }

/* Three digits that count, no zeros behind the last of them: 1.5, 12.3, 123, 1023. */
static void put_three(double v, char *buffer, size_t size)
{
    int decimals = v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
    if (v > 0 && v < 0.0995) {
        snprintf(buffer, size, "%.3g", v);
        return;
    }
    snprintf(buffer, size, "%.*f", v < 0.9995 ? 3 : decimals, v);
    if (!strchr(buffer, '.')) return;
    char *end = buffer + strlen(buffer);
    while (end[-1] == '0') *--end = '\0';
    if (end[-1] == '.') end[-1] = '\0';
}

/* v in the largest of the units, which are `step` apart, that makes it 1 at least. */
static void put_scaled(double v, double step, const char *const *units, char *buffer, size_t size)
{
    char number[32];
    while (units[1] && v >= step * 0.99995) {
        v /= step;
        units++;
    }
    put_three(v, number, sizeof number);
    snprintf(buffer, size, "%s%s%s", number, **units ? " " : "", *units);
}

/* "1 234 567" */
static void put_grouped(double v, char *buffer, size_t size)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.0f", v);
    size_t n = strlen(digits), used = 0;
    for (size_t k = 0; k < n && used + 2 < size; k++) {
        if (k && (n - k) % 3 == 0) buffer[used++] = ' ';
        buffer[used++] = digits[k];
    }
    buffer[used] = '\0';
}

static void put_seconds(double v, char *buffer, size_t size)
{
    static const char *const units[] = {"ns", "\xc2\xb5s", "ms", "s", NULL};
    if (v > 0 && v < 1e-12)
        snprintf(buffer, size, "%.3g s", v);
    else
        put_scaled(v * 1e9, 1000, units, buffer, size);
}

static void put_count(double v, char *buffer, size_t size)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E", NULL};
    if (v < 1e7 && v == floor(v))
        put_grouped(v, buffer, size);
    else if (v < 1e3)
        put_three(v, buffer, size);
    else
        put_scaled(v, 1000, units, buffer, size);
}

const char *html_format(double x, const char *unit, char *buffer, size_t size)
{
    static const char *const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
    static const char *const bandwidth[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", NULL};
    static const char *const rate[] = {"op/s", "kop/s", "Mop/s", "Gop/s", "Top/s", "Pop/s", NULL};
    char number[32];
    if (is_absent(x)) return snprintf(buffer, size, "-"), buffer;
    if (strcmp(unit, "bytes") == 0)
        put_scaled(x, 1024, bytes, buffer, size);
    else if (strcmp(unit, "bytes/s") == 0)
        put_scaled(x, 1000, bandwidth, buffer, size);
    else if (strcmp(unit, "ops/s") == 0)
        put_scaled(x, 1000, rate, buffer, size);
    else if (strcmp(unit, "seconds") == 0)
        put_seconds(x, buffer, size);
    else if (strcmp(unit, "tiny") == 0)
        snprintf(buffer, size, x > 0 ? "%.1e" : "%.0f", x);
    else if (strcmp(unit, "percent") == 0) {
        put_three(x * 100, number, sizeof number);
        snprintf(buffer, size, "%s %%", number);
    } else if (strcmp(unit, "ratio") == 0) {
        put_three(x, number, sizeof number);
        snprintf(buffer, size, "\xc3\x97%s", number);
    } else
        put_count(x, buffer, size);
    return buffer;
}

const char *html_card_text(const ot_fact_card *c, double x, char *buffer, size_t size)
{
    char known[64];
    snprintf(buffer, size, "%s%s", c->at_least && !is_absent(x) ? "at least " : "",
             is_absent(x) ? "not known" : html_format(x, c->unit, known, sizeof known));
    return buffer;
}

void html_value(html *h, double x, const char *shown)
{
    char exact[FACT_NUMBER_SIZE];
    html_open(h, "data");
    html_attr(h, "value", ot_fact_number(x, exact));
    html_text(h, shown);
    html_close(h);
}

void html_number(html *h, double x, const char *unit)
{
    char shown[64];
    html_format(x, unit, shown, sizeof shown);
    if (is_absent(x)) {
        html_text(h, shown);
        return;
    }
    html_value(h, x, shown);
}

void html_bytes(html *h, double bytes) { html_number(h, bytes, "bytes"); }

void html_seconds(html *h, double seconds) { html_number(h, seconds, "seconds"); }

void html_count(html *h, double n) { html_number(h, n, "count"); }

void html_percent(html *h, double fraction) { html_number(h, fraction, "percent"); }

void html_ratio(html *h, double x) { html_number(h, x, "ratio"); }
