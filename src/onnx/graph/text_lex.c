/* Tokens of the .ot text form.
 *
 *   %y : float32[1,?] = Conv(%x, %"/conv/w") {pads=[1, 1]} "name"  # comment to the end of the line
 *   VALUE : NAME [ .. ] = NAME ( VALUE , VALUE ) { .. } STRING
 *
 * The text is any bytes from a stranger: every read is bounded by the length, errors say
 * line:column, and after the first failure the lexer delivers OT_TOK_BAD only, so that callers
 * end without special care.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "text.h"

#define NUMBER_MAX 64 /* characters of a number literal */

ot_status(ot_lex_fail)(ot_lexer *lx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = ot_reader_vfail(&lx->r, lx->r.tok_line, lx->r.tok_col, fmt, args);
    va_end(args);
    lx->tok = OT_TOK_BAD;
    return s;
}

static void fail_nomem(ot_lexer *lx)
{
    if (lx->r.status == OT_OK) lx->r.status = ot_fail_nomem(lx->r.d);
    lx->tok = OT_TOK_BAD;
}

/* ---- characters ---- */

static int peek(const ot_lexer *lx, size_t ahead) { return ot_peek(&lx->r, ahead); }
static bool is_word(int c) { return ot_is_letter(c) || ot_is_digit(c) || c == '.'; }
static bool is_value(int c) { return is_word(c) || c == '/'; }

bool ot_text_is_keyword(const char *s)
{
    return !strcmp(s, "input") || !strcmp(s, "outer") || !strcmp(s, "init") || !strcmp(s, "output");
}

bool ot_text_is_word(const char *s, bool value)
{
    if (!s[0] || (!value && !ot_is_letter((unsigned char)s[0]))) return false;
    for (; *s; s++)
        if (!(value ? is_value((unsigned char)*s) : is_word((unsigned char)*s))) return false;
    return true;
}

void ot_text_quote(FILE *f, const char *s, size_t n)
{
    fputc('"', f);
    for (size_t k = 0; k < n; k++) {
        unsigned char c = (unsigned char)s[k];
        if (c == '"' || c == '\\')
            fprintf(f, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", f);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(f, "\\x%02x", c);
        else
            fputc(c, f);
    }
    fputc('"', f);
}

/* ---- tokens ---- */

static void lex_run(ot_lexer *lx, ot_tok tok, bool (*belongs)(int))
{
    size_t from = lx->r.next;
    ot_reader_while(&lx->r, belongs);
    lx->tok = tok;
    lx->len = lx->r.next - from;
    lx->str = ot_strndup(lx->arena, lx->r.text + from, lx->len);
    if (!lx->str) fail_nomem(lx);
}

/* One character of a string, escapes resolved, into *out. */
static bool lex_char(ot_lexer *lx, char *out)
{
    int c = peek(lx, 0);
    lx->r.next++;
    if (c != '\\') {
        *out = (char)c;
        return true;
    }
    int e = peek(lx, 0), hi = ot_hex_digit(peek(lx, 1)),
        lo = hi < 0 ? -1 : ot_hex_digit(peek(lx, 2));
    if (e == '"' || e == '\\')
        *out = (char)e;
    else if (e == 'n')
        *out = '\n';
    else if (e == 't')
        *out = '\t';
    else if (e == 'x' && lo >= 0)
        *out = (char)(hi * 16 + lo);
    else
        return false;
    lx->r.next += e == 'x' ? 3 : 1;
    return true;
}

static void lex_string(ot_lexer *lx, ot_tok tok)
{
    const size_t start = lx->r.next;
    if (!ot_reader_string(&lx->r, true)) {
        ot_lex_fail(lx, "string without its closing quote");
        return;
    }
    const size_t end = lx->r.next -
                       1; /* the closing quote: no text is longer than what lies before */
    char *s = ot_alloc(lx->arena, end - start);
    if (!s) {
        fail_nomem(lx);
        return;
    }
    size_t n = 0;
    lx->r.next = start + 1;
    while (lx->r.next < end)
        if (!lex_char(lx, &s[n++])) {
            ot_lex_fail(lx, "unknown escape in a string (known: \\\" \\\\ \\n \\t \\xHH)");
            return;
        }
    lx->r.next = end + 1;
    lx->tok = tok;
    lx->str = s;
    lx->len = n;
    if (tok == OT_TOK_VALUE && (n == 0 || memchr(s, 0, n)))
        ot_lex_fail(lx, "a value name cannot be empty or hold a zero byte");
}

static void lex_hex(ot_lexer *lx)
{
    lx->r.next += 2;
    lx->u = 0;
    uint32_t digits = 0;
    for (int h; (h = ot_hex_digit(peek(lx, 0))) >= 0; lx->r.next++, digits++)
        lx->u = lx->u << 4 | (unsigned)h;
    if (digits == 0 || digits > 16) ot_lex_fail(lx, "a hexadecimal number has 1 to 16 digits");
}

/* [-+]digits[.digits][e[-+]digits], 0x..., -inf; the token kind tells integers from floats. */
static void lex_number(ot_lexer *lx)
{
    lx->neg = peek(lx, 0) == '-';
    if (lx->neg || peek(lx, 0) == '+') lx->r.next++;
    lx->tok = OT_TOK_INT;
    if (peek(lx, 0) == 'i' && peek(lx, 1) == 'n' && peek(lx, 2) == 'f' && !is_word(peek(lx, 3))) {
        lx->r.next += 3;
        lx->tok = OT_TOK_FLOAT;
        lx->d = lx->neg ? -INFINITY : INFINITY;
        return;
    }
    if (peek(lx, 0) == '0' && (peek(lx, 1) | 32) == 'x') {
        lex_hex(lx);
        return;
    }
    char buf[NUMBER_MAX] = "";
    size_t n = 0;
    bool digits = false;
    for (int c; n < NUMBER_MAX - 1; lx->r.next++) {
        c = peek(lx, 0);
        bool exp_sign = (c == '-' || c == '+') && n > 0 && (buf[n - 1] | 32) == 'e';
        if (!ot_is_digit(c) && c != '.' && (c | 32) != 'e' && !exp_sign) break;
        digits |= ot_is_digit(c);
        if (!ot_is_digit(c)) lx->tok = OT_TOK_FLOAT;
        buf[n++] = (char)c;
    }
    buf[n] = 0;
    char *end = buf;
    errno = 0;
    if (lx->tok == OT_TOK_FLOAT) {
        lx->d = strtod(buf, &end);
        if (lx->neg) lx->d = -lx->d;
    } else {
        lx->u = strtoull(buf, &end, 10);
        if (errno == ERANGE) digits = false;
    }
    if (!digits || *end || is_value(peek(lx, 0))) ot_lex_fail(lx, "malformed or too large number");
}

void ot_lex_next(ot_lexer *lx)
{
    if (lx->r.status != OT_OK) {
        lx->tok = OT_TOK_BAD;
        return;
    }
    lx->last_line = lx->r.line;
    ot_reader_skip(&lx->r, "#");
    int c = peek(lx, 0);
    if (c < 0) {
        lx->tok = OT_TOK_END;
    } else if (c == '%') {
        lx->r.next++;
        if (peek(lx, 0) == '"')
            lex_string(lx, OT_TOK_VALUE);
        else if (is_value(peek(lx, 0)))
            lex_run(lx, OT_TOK_VALUE, is_value);
        else
            ot_lex_fail(lx, "'%%' without a value name");
    } else if (c == '"') {
        lex_string(lx, OT_TOK_STRING);
    } else if (ot_is_letter(c)) {
        lex_run(lx, OT_TOK_NAME, is_word);
    } else if (ot_is_digit(c) || c == '-' || c == '+') {
        lex_number(lx);
    } else if (memchr("{}()[]=,:*?@", c, 12)) {
        lx->tok = OT_TOK_PUNCT;
        lx->punct = c == ':' && peek(lx, 1) == ':' ? 'S' : c;
        lx->r.next += lx->punct == 'S' ? 2 : 1;
    } else {
        ot_lex_fail(lx, "unexpected character (byte 0x%02x)", (unsigned)c);
    }
}

void ot_lex_init(ot_lexer *lx, const char *text, size_t n, ot_arena *arena, ot_diag *diag)
{
    *lx = (ot_lexer){.r = ot_reader_of(NULL, text, n, diag), .arena = arena};
    ot_lex_next(lx);
}

/* ---- small steps of the parser ---- */

bool ot_lex_is(const ot_lexer *lx, int punct)
{
    return lx->tok == OT_TOK_PUNCT && lx->punct == punct;
}

bool ot_lex_word(const ot_lexer *lx, const char *word)
{
    return lx->tok == OT_TOK_NAME && strcmp(lx->str, word) == 0;
}

bool ot_lex_accept(ot_lexer *lx, int punct)
{
    if (!ot_lex_is(lx, punct)) return false;
    ot_lex_next(lx);
    return true;
}

bool ot_lex_accept_word(ot_lexer *lx, const char *word)
{
    if (!ot_lex_word(lx, word)) return false;
    ot_lex_next(lx);
    return true;
}

ot_status ot_lex_expect(ot_lexer *lx, int punct)
{
    if (ot_lex_accept(lx, punct)) return lx->r.status;
    return punct == 'S' ? ot_lex_fail(lx, "expected '::'")
                        : ot_lex_fail(lx, "expected '%c'", punct);
}

ot_status ot_lex_i64(ot_lexer *lx, int64_t *out)
{
    if (lx->tok != OT_TOK_INT) return ot_lex_fail(lx, "expected an integer");
    uint64_t most = (uint64_t)INT64_MAX + (lx->neg ? 1 : 0);
    if (lx->u > most) return ot_lex_fail(lx, "integer does not fit 64 bits");
    *out = lx->neg ? (int64_t)(0 - lx->u) : (int64_t)lx->u;
    ot_lex_next(lx);
    return lx->r.status;
}
