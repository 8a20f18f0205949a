/* Diagnostics: the one error line of a run.
 *
 * What: ot_fail formats a message once and keeps the first one; later failures, which are
 * mostly consequences, do not overwrite it.
 * Why the cleaning: names in messages come from strangers' files. A terminal must not be
 * driven by them, so control characters (C0, DEL, C1) and bytes that are not UTF-8 become '?'.
 */
#include "base.h"

#include <stdarg.h>

/* Characters that turn, break or hide what stands beside them: marks and isolates of direction,
 * separators of lines, what has no width. */
static const uint32_t GARBLES[][2] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},
                                      {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                                      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

size_t ot_utf8_printable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7f;
    size_t n;
    uint32_t code, least;
    if ((s[0] & 0xe0) == 0xc0) {
        n = 2, code = s[0] & 0x1fu, least = 0xa0; /* U+0080..U+009F are controls */
    } else if ((s[0] & 0xf0) == 0xe0) {
        n = 3, code = s[0] & 0x0fu, least = 0x800;
    } else if ((s[0] & 0xf8) == 0xf0) {
        n = 4, code = s[0] & 0x07u, least = 0x10000;
    } else {
        return 0;
    }
    for (size_t k = 1; k < n; k++) { /* stops at the terminating zero */
        if ((s[k] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[k] & 0x3fu);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return 0;
    for (size_t k = 0; k < sizeof GARBLES / sizeof *GARBLES; k++)
        if (code >= GARBLES[k][0] && code <= GARBLES[k][1]) return 0;
    return n;
}

static void clean(char *text)
{
    for (char *p = text; *p;) {
        size_t n = ot_utf8_printable(p);
        if (n == 0) *p = '?';
        p += n ? n : 1;
    }
}

void ot_put_shown(const char *text, FILE *f)
{
    while (*text) {
        const size_t n = ot_utf8_printable(text);
        if (n)
            fwrite(text, 1, n, f);
        else
            fputc('?', f);
        text += n ? n : 1;
    }
}

void ot_make_shown(char *text)
{
    while (*text) {
        const size_t n = ot_utf8_printable(text);
        if (!n) *text = '?';
        text += n ? n : 1;
    }
}

ot_status(ot_fail)(ot_diag *d, ot_status status, const char *fmt, ...)
{
    if (!d || d->status != OT_OK) return status;
    d->status = status;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(d->message, sizeof d->message, fmt, args);
    va_end(args);
    if (n < 0) d->message[0] = '\0';
    if (n >= (int)sizeof d->message) memcpy(d->message + sizeof d->message - 4, "...", 4);
    clean(d->message);
    return status;
}

ot_status(ot_fail_nomem)(ot_diag *d) { return ot_fail(d, OT_E_NOMEM, "out of memory"); }
