/* Text of an SVG document. */
#include "svg_text.h"

#include "base/base.h"

#include <string.h>

void ot_svg_put_number(double v, FILE *f)
{
    char text[48];
    snprintf(text, sizeof text, "%.2f", v);
    char *end = text + strlen(text);
    while (end[-1] == '0') end--;
    if (end[-1] == '.') end--;
    *end = '\0';
    fputs(strcmp(text, "-0") == 0 ? "0" : text, f);
}

void ot_svg_put_attribute(const char *name, double v, FILE *f)
{
    fprintf(f, " %s=\"", name);
    ot_svg_put_number(v, f);
    fputc('"', f);
}

/* One character at s as XML text into out[8]; *used: bytes of s. */
static const char *escape(const char *s, char out[8], size_t *used)
{
    *used = ot_utf8_printable(s);
    if (*used == 0 || memcmp(s, "\xef\xbf\xbe", *used) == 0 ||
        memcmp(s, "\xef\xbf\xbf", *used) == 0) {
        if (*used == 0) *used = 1;
        return "\xef\xbf\xbd";
    }
    if (*s == '&') return "&amp;";
    if (*s == '<') return "&lt;";
    if (*s == '>') return "&gt;";
    memcpy(out, s, *used);
    out[*used] = '\0';
    return out;
}

void ot_svg_put_text(const char *s, size_t max, FILE *f)
{
    size_t used, total = 0;
    char buf[8];
    for (; *s; s += used) {
        const char *text = escape(s, buf, &used);
        total += strlen(text);
        if (total > max) {
            fputs("\xe2\x80\xa6", f);
            return;
        }
        fputs(text, f);
    }
}

size_t ot_svg_columns(const char *s)
{
    size_t columns = 0, n;
    for (; *s; s += n ? n : 1) {
        n = ot_utf8_printable(s);
        columns += n >= 3 && (unsigned char)*s >= 0xe1 ? 2 : 1;
    }
    return columns;
}
