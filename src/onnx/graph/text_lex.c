/* Tokens of the .ot text form.
 *
 *   %y : float32[1,?] = Conv(%x, %"/conv/w") {pads=[1, 1]} "name"  # comment to the end of the line
 *   VALUE : NAME [ .. ] = NAME ( VALUE , VALUE ) { .. } STRING
 *
 * The text is any bytes from a stranger: every read is bounded by the length, errors say
 * line:column, and after the first failure the lexer delivers OT_TOK_BAD only, so that callers
 * end without special care.
 *
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "text.h"

#define NUMBER_MAX 64 /* characters of a number literal */

ot_status(ot_lex_fail)(ot_lexer *lx, const char *fmt, ...)
{
    if (lx->status != OT_OK) return lx->status;
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    lx->tok = OT_TOK_BAD;
    lx->status = ot_fail(lx->diag, OT_E_INPUT, "%u:%u: %s", lx->tok_line, lx->tok_col, message);
    return lx->status;
}

static void fail_nomem(ot_lexer *lx)
{
    if (lx->status == OT_OK) lx->status = ot_fail_nomem(lx->diag);
    lx->tok = OT_TOK_BAD;
}

/* ---- characters ---- */

static int peek(const ot_lexer *lx, size_t ahead)
{
    return lx->n - lx->at > ahead ? (unsigned char)lx->text[lx->at + ahead] : -1;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_alpha(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_word(int c) { return is_alpha(c) || is_digit(c) || c == '.'; }
static bool is_value(int c) { return is_word(c) || c == '/'; }

static int hex_digit(int c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool ot_text_is_keyword(const char *s)
{
    return !strcmp(s, "input") || !strcmp(s, "outer") || !strcmp(s, "init") || !strcmp(s, "output");
}

bool ot_text_is_word(const char *s, bool value)
{
    if (!s[0] || (!value && !is_alpha((unsigned char)s[0]))) return false;
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

static void skip_blank(ot_lexer *lx)
{
    for (;;) {
        int c = peek(lx, 0);
        if (c == '\n') {
            lx->line++;
            lx->line_start = lx->at + 1;
        } else if (c == '#') {
            while (peek(lx, 1) != '\n' && peek(lx, 1) != -1) lx->at++;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
        lx->at++;
    }
}

/* ---- tokens ---- */

static void lex_run(ot_lexer *lx, ot_tok tok, bool (*belongs)(int))
{
    size_t from = lx->at;
    while (belongs(peek(lx, 0))) lx->at++;
    lx->tok = tok;
    lx->len = lx->at - from;
    lx->str = ot_strndup(lx->arena, lx->text + from, lx->len);
    if (!lx->str) fail_nomem(lx);
}

/* One character of a string, escapes resolved, into *out. */
static bool lex_char(ot_lexer *lx, char *out)
{
    int c = peek(lx, 0);
    lx->at++;
    if (c != '\\') {
        *out = (char)c;
        return true;
    }
    int e = peek(lx, 0), hi = hex_digit(peek(lx, 1)), lo = hi < 0 ? -1 : hex_digit(peek(lx, 2));
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
    lx->at += e == 'x' ? 3 : 1;
    return true;
}

static void lex_string(ot_lexer *lx, ot_tok tok)
{
    size_t end = lx->at + 1; /* upper bound of the result's length: up to the closing quote */
    while (end < lx->n && lx->text[end] != '"' && lx->text[end] != '\n')
        end += lx->text[end] == '\\' ? 2 : 1;
    if (end >= lx->n || lx->text[end] != '"') {
        ot_lex_fail(lx, "string without its closing quote");
        return;
    }
    char *s = ot_alloc(lx->arena, end - lx->at);
    if (!s) {
        fail_nomem(lx);
        return;
    }
    size_t n = 0;
    lx->at++;
    while (lx->at < end)
        if (!lex_char(lx, &s[n++])) {
            ot_lex_fail(lx, "unknown escape in a string (known: \\\" \\\\ \\n \\t \\xHH)");
            return;
        }
    lx->at = end + 1;
    lx->tok = tok;
    lx->str = s;
    lx->len = n;
    if (tok == OT_TOK_VALUE && (n == 0 || memchr(s, 0, n)))
        ot_lex_fail(lx, "a value name cannot be empty or hold a zero byte");
}

static void lex_hex(ot_lexer *lx)
{
    lx->at += 2;
    lx->u = 0;
    uint32_t digits = 0;
    for (int h; (h = hex_digit(peek(lx, 0))) >= 0; lx->at++, digits++)
        lx->u = lx->u << 4 | (unsigned)h;
    if (digits == 0 || digits > 16) ot_lex_fail(lx, "a hexadecimal number has 1 to 16 digits");
}

/* [-+]digits[.digits][e[-+]digits], 0x..., -inf; the token kind tells integers from floats. */
static void lex_number(ot_lexer *lx)
{
    lx->neg = peek(lx, 0) == '-';
    if (lx->neg || peek(lx, 0) == '+') lx->at++;
    lx->tok = OT_TOK_INT;
    if (peek(lx, 0) == 'i' && peek(lx, 1) == 'n' && peek(lx, 2) == 'f' && !is_word(peek(lx, 3))) {
        lx->at += 3;
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
    for (int c; n < NUMBER_MAX - 1; lx->at++) {
        c = peek(lx, 0);
        bool exp_sign = (c == '-' || c == '+') && n > 0 && (buf[n - 1] | 32) == 'e';
        if (!is_digit(c) && c != '.' && (c | 32) != 'e' && !exp_sign) break;
        digits |= is_digit(c);
        if (!is_digit(c)) lx->tok = OT_TOK_FLOAT;
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
    if (lx->status != OT_OK) {
        lx->tok = OT_TOK_BAD;
        return;
    }
    lx->last_line = lx->line;
    skip_blank(lx);
    lx->tok_line = lx->line;
    lx->tok_col = (uint32_t)(lx->at - lx->line_start + 1);
    int c = peek(lx, 0);
    if (c < 0) {
        lx->tok = OT_TOK_END;
    } else if (c == '%') {
        lx->at++;
        if (peek(lx, 0) == '"')
            lex_string(lx, OT_TOK_VALUE);
        else if (is_value(peek(lx, 0)))
            lex_run(lx, OT_TOK_VALUE, is_value);
        else
            ot_lex_fail(lx, "'%%' without a value name");
    } else if (c == '"') {
        lex_string(lx, OT_TOK_STRING);
    } else if (is_alpha(c)) {
        lex_run(lx, OT_TOK_NAME, is_word);
    } else if (is_digit(c) || c == '-' || c == '+') {
        lex_number(lx);
    } else if (memchr("{}()[]=,:*?@", c, 12)) {
        lx->tok = OT_TOK_PUNCT;
        lx->punct = c == ':' && peek(lx, 1) == ':' ? 'S' : c;
        lx->at += lx->punct == 'S' ? 2 : 1;
    } else {
        ot_lex_fail(lx, "unexpected character (byte 0x%02x)", (unsigned)c);
    }
}

void ot_lex_init(ot_lexer *lx, const char *text, size_t n, ot_arena *arena, ot_diag *diag)
{
    *lx = (ot_lexer){.text = text, .n = n, .line = 1, .arena = arena, .diag = diag};
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
    if (ot_lex_accept(lx, punct)) return lx->status;
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
    return lx->status;
}
