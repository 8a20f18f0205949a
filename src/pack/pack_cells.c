/* Lines of cells: quotes, blanks and ends of lines as spreadsheets and scripts write them. */
#include "pack_cells.h"

#include <stdarg.h>

ot_status pack_refuse(const pack_lines *r, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return ot_fail(r->d, OT_E_INPUT, "%.300s:%u: %s", r->path, r->line, text);
}

ot_status pack_lines_begin(pack_lines *r, const char *text, size_t n)
{
    r->line = 0;
    r->at = ot_memdup(r->a, text, n);
    if (!r->at) return ot_fail_nomem(r->d);
    r->end = r->at + n;
    if (n >= 3 && memcmp(r->at, "\xef\xbb\xbf", 3) == 0) r->at += 3; /* byte order mark */
    const char *zero = memchr(r->at, '\0', (size_t)(r->end - r->at));
    if (!zero) return OT_OK;
    r->line = 1;
    for (const char *p = r->at; p < zero; p++) r->line += *p == '\n';
    return pack_refuse(r, "a zero byte: this is no text file");
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool pack_next_line(pack_lines *r, const char **text, size_t *n, bool *crlf)
{
    while (r->at < r->end) {
        const char *from = r->at, *stop = memchr(from, '\n', (size_t)(r->end - from));
        r->line++;
        r->at = stop ? stop + 1 : r->end;
        if (!stop) stop = r->end;
        if (crlf) *crlf = stop > from && stop[-1] == '\r';
        while (stop > from && is_blank(stop[-1])) stop--;
        *text = from;
        *n = (size_t)(stop - from);
        if (*n > 0) return true;
    }
    return false;
}

ot_status pack_next_cell(const pack_lines *r, const char **p, const char *end, pack_cell *out,
                         bool *more)
{
    const char *at = *p, *stop;
    while (at < end && is_blank(*at)) at++;
    if (at < end && *at == '"') {
        for (stop = at + 1; stop < end && (*stop != '"' || (stop + 1 < end && stop[1] == '"'));
             stop++)
            if (*stop == '"') stop++;
        if (stop >= end) return pack_refuse(r, "a quoted cell does not end on its line");
        *out = (pack_cell){at, (size_t)(++stop - at)};
        while (stop < end && is_blank(*stop)) stop++;
        if (stop < end && *stop != ',')
            return pack_refuse(r, "text after the end of a quoted cell");
    } else {
        stop = memchr(at, ',', (size_t)(end - at));
        if (!stop) stop = end;
        const char *last = stop;
        while (last > at && is_blank(last[-1])) last--;
        *out = (pack_cell){at, (size_t)(last - at)};
        if (memchr(at, '"', out->n))
            return pack_refuse(r, "a quote inside a cell that does not begin with one");
    }
    *more = stop < end;
    *p = *more ? stop + 1 : end;
    return OT_OK;
}

ot_status pack_row_next(const pack_lines *r, pack_row *w, pack_cell *out, bool *any)
{
    bool more = false;
    *any = !w->ended;
    if (w->ended && w->taken < w->columns)
        return pack_refuse(r, "%zu cells where the header has %zu", w->taken, w->columns);
    if (w->ended) return OT_OK;
    OT_TRY(pack_next_cell(r, &w->at, w->end, out, &more));
    w->ended = !more;
    if (w->taken++ < w->columns) return OT_OK;
    return pack_refuse(r, "more cells than the %zu columns of the header", w->columns);
}

char *pack_cell_text(const pack_lines *r, const pack_cell *c)
{
    bool quoted = c->n >= 2 && c->at[0] == '"';
    char *text = ot_strndup(r->a, quoted ? c->at + 1 : c->at, quoted ? c->n - 2 : c->n);
    if (!text || !quoted) return text;
    char *to = text;
    for (const char *from = text; *from; from++) {
        *to++ = *from;
        if (*from == '"') from++; /* doubled */
    }
    *to = '\0';
    return text;
}
