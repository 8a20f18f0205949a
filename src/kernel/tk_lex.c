/* Tokens of the .tk kernel language.
 *
 *   load a <- x[0:1, 16*i-1:16*i+17]  # comment          alloc b: 1x16x64 f16 @ub multi=2
 *   NAME NAME '<' NAME '[' INT ':' ...                    NAME NAME ':' SHAPE NAME '@' NAME NAME '=' INT
 *
 * Names are [A-Za-z_][A-Za-z0-9_.$/]*: what ONNX calls `/layer.0/conv:0` can be `_/layer.0/conv$0` here. A minus sign is none of
 * a name's characters, since `i-1` is an expression; a dot is one, so `vector.conv` is one token. Ends of lines are blanks like
 * any other. The text is any bytes from a stranger: every read is bounded by the length, and after the first failure there are
 * TK_BAD tokens only, so that callers end without special care.
 */
#include "tk_internal.h"

#include <stdarg.h>

#define SHOWN_MAX 40 /* bytes of a token in a message */

/* ---- failures ---- */

static ot_status fail_list(tk_lexer *lx, uint32_t line, uint32_t col, const char *fmt, va_list args)
{
    char message[512];
    if (lx->status != OT_OK) return lx->status;
    vsnprintf(message, sizeof message, fmt, args);
    lx->tok = TK_BAD;
    lx->status = ot_fail(lx->diag, OT_E_INPUT, "%s:%u:%u: %s", lx->path, line, col, message);
    return lx->status;
}

ot_status(tk_fail_at)(tk_lexer *lx, uint32_t line, uint32_t col, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = fail_list(lx, line, col, fmt, args);
    va_end(args);
    return s;
}

ot_status(tk_fail)(tk_lexer *lx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = fail_list(lx, lx->tok_line, lx->tok_col, fmt, args);
    va_end(args);
    return s;
}

ot_status tk_fail_nomem(tk_lexer *lx)
{
    if (lx->status == OT_OK) lx->status = ot_fail_nomem(lx->diag);
    lx->tok = TK_BAD;
    return lx->status;
}

ot_status(tk_expected)(tk_lexer *lx, const char *what)
{
    if (lx->status != OT_OK) return lx->status;
    if (lx->tok == TK_END) return tk_fail(lx, "expected %s, found the end of the text", what);
    bool cut = lx->len > SHOWN_MAX;
    return tk_fail(lx, "expected %s, found '%.*s%s'", what, cut ? SHOWN_MAX : (int)lx->len, lx->text + lx->at, cut ? "..." : "");
}

/* ---- characters ---- */

static int peek(const tk_lexer *lx, size_t ahead)
{
    return lx->n - lx->next > ahead ? (unsigned char)lx->text[lx->next + ahead] : -1;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }
static bool is_first(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_rest(int c) { return is_first(c) || is_digit(c) || c == '.' || c == '$' || c == '/'; }

static void skip_blank(tk_lexer *lx)
{
    for (;; lx->next++) {
        int c = peek(lx, 0);
        if (c == '#')
            while (peek(lx, 0) > 0 && peek(lx, 0) != '\n') lx->next++;
        c = peek(lx, 0);
        if (c == '\n') {
            lx->line++;
            lx->line_start = lx->next + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

/* ---- names ---- */

bool tk_is_keyword(const char *name)
{
    static const char *const words[] = {
        "kernel",  "target", "param", "alloc",  "workspace", "load",  "store",  "copy",   "for",
        "in",      "step",   "while", "if",     "else",      "yield", "carry",  "free",   "alias",
        "subview", "align",  "multi", "offset", "vector",    "cube",  "scalar", "dma_in", "dma_out",
    };
    size_t n = strcspn(name, ".");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strlen(words[k]) == n && memcmp(words[k], name, n) == 0) return true;
    return false;
}

bool tk_is_name(const char *name)
{
    if (!name || !is_first((unsigned char)name[0])) return false;
    size_t n = 1;
    while (is_rest((unsigned char)name[n])) n++;
    return n <= TK_NAME_MAX && name[n] == '\0';
}

bool tk_is_string(const char *text)
{
    size_t n = 0;
    for (size_t step; text[n]; n += step) {
        step = ot_utf8_printable(text + n);
        if (step == 0 || text[n] == '"' || text[n] == '\\') return false;
    }
    return n > 0 && n <= TK_NAME_MAX;
}

static void lex_name(tk_lexer *lx)
{
    while (is_rest(peek(lx, 0))) lx->next++;
    lx->tok = TK_NAME;
    lx->len = lx->next - lx->at;
    if (lx->len > TK_NAME_MAX) {
        tk_fail(lx, "a name has at most %d bytes, not %zu", TK_NAME_MAX, lx->len);
        return;
    }
    memcpy(lx->name, lx->text + lx->at, lx->len);
    lx->name[lx->len] = '\0';
}

/* ---- the other tokens ---- */

bool tk_digits(const char *text, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t k = 0; k < n; k++)
        if (!ot_mul_i64(*out, 10, out) || !ot_add_i64(*out, text[k] - '0', out)) return false;
    return n > 0;
}

/* The exponent after a number's digits: e5, e-5. Its length, 0: there is none. */
static size_t exponent(const tk_lexer *lx)
{
    size_t sign = peek(lx, 1) == '+' || peek(lx, 1) == '-';
    if ((peek(lx, 0) != 'e' && peek(lx, 0) != 'E') || !is_digit(peek(lx, 1 + sign))) return 0;
    size_t n = 2 + sign;
    while (is_digit(peek(lx, n))) n++;
    return n;
}

/* Go on after the digits of a number with a point or an exponent: 0.5, 1e-5. Else nothing is done. */
static void lex_fraction(tk_lexer *lx)
{
    char text[64];
    size_t start = lx->next;
    if (peek(lx, 0) == '.' && is_digit(peek(lx, 1))) {
        lx->next++;
        while (is_digit(peek(lx, 0))) lx->next++;
    }
    lx->next += exponent(lx);
    if (lx->next == start) return;
    lx->tok = TK_FLOAT;
    size_t n = lx->next - lx->at;
    if (n >= sizeof text) {
        tk_fail(lx, "a number has at most %zu characters", sizeof text - 1);
        return;
    }
    memcpy(text, lx->text + lx->at, n);
    text[n] = '\0';
    lx->number = strtod(text, NULL);
}

/* Of 4K, 1M, 2G. */
static int64_t unit_of(int c) { return c == 'K' ? 1 << 10 : c == 'M' ? 1 << 20 : c == 'G' ? 1 << 30 : 1; }

/* 16, 4K, 0.5, or 1x16x64; what follows must be no part of a word. */
static void lex_number(tk_lexer *lx)
{
    lx->tok = TK_INT;
    for (;; lx->next++) {
        bool by = peek(lx, 0) == 'x' && is_digit(peek(lx, 1));
        if (by) lx->tok = TK_SHAPE;
        if (!by && !is_digit(peek(lx, 0))) break;
    }
    if (lx->tok == TK_INT) lex_fraction(lx);
    if (lx->tok == TK_BAD) return;
    int64_t unit = lx->tok == TK_INT && !is_rest(peek(lx, 1)) ? unit_of(peek(lx, 0)) : 1;
    if (unit > 1) {
        lx->next++;
        lx->len = lx->next - lx->at;
        if (!tk_digits(lx->text + lx->at, lx->len - 1, &lx->value) || !ot_mul_i64(lx->value, unit, &lx->value))
            tk_fail(lx, "the number does not fit 64 bits");
        return;
    }
    bool glued = is_first(peek(lx, 0));
    while (glued && is_rest(peek(lx, 0))) lx->next++;
    lx->len = lx->next - lx->at;
    if (glued)
        tk_expected(lx, "a number");
    else if (lx->tok == TK_INT && !tk_digits(lx->text + lx->at, lx->len, &lx->value))
        tk_fail(lx, "the number does not fit 64 bits");
}

static void lex_string(tk_lexer *lx)
{
    lx->next++;
    while (peek(lx, 0) > 0 && peek(lx, 0) != '"' && peek(lx, 0) != '\n') lx->next++;
    if (peek(lx, 0) != '"') {
        tk_fail(lx, "the string has no closing quote");
        return;
    }
    lx->next++;
    lx->tok = TK_STRING;
    lx->len = lx->next - lx->at;
    if (lx->len > TK_NAME_MAX + 2) tk_fail(lx, "a string has at most %d bytes, not %zu", TK_NAME_MAX, lx->len - 2);
}

static void lex_punct(tk_lexer *lx, int c)
{
    bool arrow = c == '<' && peek(lx, 1) == '-', dots = c == '.' && peek(lx, 1) == '.', most = c == '<' && peek(lx, 1) == '=';
    lx->tok = TK_PUNCT;
    lx->punct = most ? 'l' : c;
    lx->len = arrow || dots || most ? 2 : 1;
    lx->next += lx->len;
    if (arrow || dots || most || memchr("{}()[]=,:?@*+-", c, 14)) return;
    if (c > 0x20 && c < 0x7f)
        tk_fail(lx, "unexpected character '%c'", c);
    else
        tk_fail(lx, c ? "unexpected byte 0x%02x" : "a NUL byte (0x%02x) is no text", (unsigned)c);
}

void tk_lex_next(tk_lexer *lx)
{
    if (lx->status != OT_OK) {
        lx->tok = TK_BAD;
        return;
    }
    skip_blank(lx);
    int c = peek(lx, 0);
    lx->tok_line = lx->line;
    lx->tok_col = (uint32_t)(lx->next - lx->line_start + 1);
    lx->at = lx->next;
    lx->len = 0;
    if (c < 0)
        lx->tok = TK_END;
    else if (is_first(c))
        lex_name(lx);
    else if (is_digit(c))
        lex_number(lx);
    else if (c == '"')
        lex_string(lx);
    else
        lex_punct(lx, c);
}

void tk_lex_init(tk_lexer *lx, const char *path, const char *text, size_t n, ot_diag *d)
{
    *lx = (tk_lexer){.path = path, .text = text, .n = n, .line = 1, .tok_line = 1, .tok_col = 1, .diag = d};
    if (n > TK_TEXT_MAX) {
        tk_fail(lx, "the text has %zu bytes, at most %zu are read", n, TK_TEXT_MAX);
        return;
    }
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) lx->next = lx->line_start = 3; /* byte order mark */
    tk_lex_next(lx);
}

/* ---- small steps of the parser ---- */

bool tk_is(const tk_lexer *lx, int punct) { return lx->tok == TK_PUNCT && lx->punct == punct; }

bool tk_is_word(const tk_lexer *lx, const char *word) { return lx->tok == TK_NAME && strcmp(lx->name, word) == 0; }

bool tk_accept(tk_lexer *lx, int punct)
{
    if (!tk_is(lx, punct)) return false;
    tk_lex_next(lx);
    return true;
}

bool tk_accept_word(tk_lexer *lx, const char *word)
{
    if (!tk_is_word(lx, word)) return false;
    tk_lex_next(lx);
    return true;
}

ot_status tk_expect(tk_lexer *lx, int punct)
{
    char what[8];
    if (tk_accept(lx, punct)) return lx->status;
    snprintf(what, sizeof what, "'%c%s'", punct == 'l' ? '<' : punct,
             punct == '<'   ? "-"
             : punct == 'l' ? "="
             : punct == '.' ? "."
                            : "");
    return tk_expected(lx, what);
}

ot_status tk_expect_word(tk_lexer *lx, const char *word)
{
    char what[32];
    if (tk_accept_word(lx, word)) return lx->status;
    snprintf(what, sizeof what, "'%s'", word);
    return tk_expected(lx, what);
}

ot_status tk_expect_int(tk_lexer *lx, int64_t *out)
{
    if (lx->tok != TK_INT) return tk_expected(lx, "an integer");
    *out = lx->value;
    tk_lex_next(lx);
    return lx->status;
}
