#include "reader.h"

#define SHOWN_MAX 40 /* bytes of a token in a message */

ot_reader ot_reader_of(const char *path, const char *text, size_t n, ot_diag *d)
{
    return (ot_reader){
        .path = path, .text = text, .n = n, .line = 1, .d = d, .tok_line = 1, .tok_col = 1};
}

int ot_hex_digit(int c)
{
    if (ot_is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void ot_reader_while(ot_reader *r, bool (*belongs)(int c))
{
    while (belongs(ot_peek(r, 0))) r->next++;
}

bool ot_reader_exponent(ot_reader *r)
{
    const size_t sign = ot_peek(r, 1) == '+' || ot_peek(r, 1) == '-';
    if ((ot_peek(r, 0) | 32) != 'e' || !ot_is_digit(ot_peek(r, 1 + sign))) return false;
    r->next += 1 + sign;
    ot_reader_while(r, ot_is_digit);
    return true;
}

bool ot_reader_string(ot_reader *r, bool escapes)
{
    for (r->next++; ot_peek(r, 0) != '"'; r->next++) {
        if (escapes && ot_peek(r, 0) == '\\') r->next++;
        if (ot_peek(r, 0) < 0 || ot_peek(r, 0) == '\n') return false;
    }
    r->next++;
    return true;
}

void ot_reader_skip(ot_reader *r, const char *comment)
{
    const size_t marks = strlen(comment);
    for (;; r->next++) {
        if (r->n - r->next >= marks && memcmp(r->text + r->next, comment, marks) == 0)
            while (ot_peek(r, 0) > 0 && ot_peek(r, 0) != '\n') r->next++;
        const int c = ot_peek(r, 0);
        if (c == '\n') {
            r->line++;
            r->line_start = r->next + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }
    r->tok_line = r->line;
    r->tok_col = (uint32_t)(r->next - r->line_start + 1);
    r->at = r->next;
    r->len = 0;
}

ot_status ot_reader_vfail(ot_reader *r, uint32_t line, uint32_t col, const char *fmt, va_list args)
{
    char message[700];
    if (r->status != OT_OK) return r->status;
    vsnprintf(message, sizeof message, fmt, args);
    r->status = ot_fail(r->d, OT_E_INPUT, "%s%s%u:%u: %s", r->path ? r->path : "",
                        r->path ? ":" : "", line, col, message);
    return r->status;
}

static ot_status fail_here(ot_reader *r, const char *fmt, ...) OT_PRINTF(2, 3);
static ot_status fail_here(ot_reader *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const ot_status s = ot_reader_vfail(r, r->tok_line, r->tok_col, fmt, args);
    va_end(args);
    return s;
}

ot_status ot_reader_expected(ot_reader *r, const char *what)
{
    if (r->at >= r->n) return fail_here(r, "expected %s, found the end of the text", what);
    const bool cut = r->len > SHOWN_MAX;
    return fail_here(r, "expected %s, found '%.*s%s'", what, cut ? SHOWN_MAX : (int)r->len,
                     r->text + r->at, cut ? "..." : "");
}

bool ot_digits_value(const char *text, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t k = 0; k < n; k++)
        if (!ot_mul_i64(*out, 10, out) || !ot_add_i64(*out, text[k] - '0', out)) return false;
    return n > 0;
}
