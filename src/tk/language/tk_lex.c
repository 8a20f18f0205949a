/* Tokens of the .tk kernel language.
 *
 *   load a <- x[0:1, 16*i-1:16*i+17]  # comment     alloc b: 1x16x64 f16 @ub multi=2
 *   NAME NAME '<' NAME '[' INT ':' ...               NAME NAME ':' SHAPE NAME '@' NAME NAME '=' INT
 *
 * Names are [A-Za-z_][A-Za-z0-9_.$/]*: what ONNX calls `/layer.0/conv:0` can be
 * `_/layer.0/conv$0` here. A minus sign is none of a name's characters, since `i-1` is an
 * expression; a dot is one, so `vector.conv` is one token. Ends of lines are blanks like any
 * other. The text is any bytes from a stranger: every read is bounded by the length, and after
 * the first failure there are TK_BAD tokens only, so that callers end without special care.
 */
#include "tk_internal.h"

/* ---- failures ---- */

static ot_status fail_list(tk_lexer *lx, uint32_t line, uint32_t col, const char *fmt, va_list args)
{
    lx->tok = TK_BAD;
    return ot_reader_vfail(&lx->r, line, col, fmt, args);
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
    ot_status s = fail_list(lx, lx->r.tok_line, lx->r.tok_col, fmt, args);
    va_end(args);
    return s;
}

ot_status tk_fail_nomem(tk_lexer *lx)
{
    if (lx->r.status == OT_OK) lx->r.status = ot_fail_nomem(lx->r.d);
    lx->tok = TK_BAD;
    return lx->r.status;
}

ot_status(tk_expected)(tk_lexer *lx, const char *what)
{
    lx->tok = TK_BAD;
    return ot_reader_expected(&lx->r, what);
}

/* ---- characters ---- */

static int peek(const tk_lexer *lx, size_t ahead) { return ot_peek(&lx->r, ahead); }

static bool is_rest(int c)
{
    return ot_is_letter(c) || ot_is_digit(c) || c == '.' || c == '$' || c == '/';
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
    if (!name || !ot_is_letter((unsigned char)name[0])) return false;
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
    ot_reader_while(&lx->r, is_rest);
    lx->tok = TK_NAME;
    lx->r.len = lx->r.next - lx->r.at;
    if (lx->r.len > TK_NAME_MAX) {
        tk_fail(lx, "a name has at most %d bytes, not %zu", TK_NAME_MAX, lx->r.len);
        return;
    }
    memcpy(lx->name, lx->r.text + lx->r.at, lx->r.len);
    lx->name[lx->r.len] = '\0';
}

/* ---- the other tokens ---- */

/* Go on after the digits of a number with a point or an exponent: 0.5, 1e-5. Else nothing is done.
 */
static void lex_fraction(tk_lexer *lx)
{
    char text[64];
    size_t start = lx->r.next;
    if (peek(lx, 0) == '.' && ot_is_digit(peek(lx, 1))) {
        lx->r.next++;
        ot_reader_while(&lx->r, ot_is_digit);
    }
    (void)ot_reader_exponent(&lx->r);
    if (lx->r.next == start) return;
    lx->tok = TK_FLOAT;
    size_t n = lx->r.next - lx->r.at;
    if (n >= sizeof text) {
        tk_fail(lx, "a number has at most %zu characters", sizeof text - 1);
        return;
    }
    memcpy(text, lx->r.text + lx->r.at, n);
    text[n] = '\0';
    lx->number = strtod(text, NULL);
}

/* Of 4K, 1M, 2G. */
static int64_t unit_of(int c)
{
    return c == 'K' ? 1 << 10 : c == 'M' ? 1 << 20 : c == 'G' ? 1 << 30 : 1;
}

/* 16, 4K, 0.5, or 1x16x64; what follows must be no part of a word. */
static void lex_number(tk_lexer *lx)
{
    lx->tok = TK_INT;
    for (;; lx->r.next++) {
        bool by = peek(lx, 0) == 'x' && ot_is_digit(peek(lx, 1));
        if (by) lx->tok = TK_SHAPE;
        if (!by && !ot_is_digit(peek(lx, 0))) break;
    }
    if (lx->tok == TK_INT) lex_fraction(lx);
    if (lx->tok == TK_BAD) return;
    int64_t unit = lx->tok == TK_INT && !is_rest(peek(lx, 1)) ? unit_of(peek(lx, 0)) : 1;
    if (unit > 1) {
        lx->r.next++;
        lx->r.len = lx->r.next - lx->r.at;
        if (!ot_digits_value(lx->r.text + lx->r.at, lx->r.len - 1, &lx->value) ||
            !ot_mul_i64(lx->value, unit, &lx->value))
            tk_fail(lx, "the number does not fit 64 bits");
        return;
    }
    bool glued = ot_is_letter(peek(lx, 0));
    if (glued) ot_reader_while(&lx->r, is_rest);
    lx->r.len = lx->r.next - lx->r.at;
    if (glued)
        tk_expected(lx, "a number");
    else if (lx->tok == TK_INT && !ot_digits_value(lx->r.text + lx->r.at, lx->r.len, &lx->value))
        tk_fail(lx, "the number does not fit 64 bits");
}

static void lex_string(tk_lexer *lx)
{
    bool closed = ot_reader_string(&lx->r, false);
    lx->r.len = lx->r.next - lx->r.at;
    if (!closed || memchr(lx->r.text + lx->r.at, '\0', lx->r.len)) {
        tk_fail(lx, "the string has no closing quote");
        return;
    }
    lx->tok = TK_STRING;
    if (lx->r.len > TK_NAME_MAX + 2)
        tk_fail(lx, "a string has at most %d bytes, not %zu", TK_NAME_MAX, lx->r.len - 2);
}

static void lex_punct(tk_lexer *lx, int c)
{
    bool arrow = c == '<' && peek(lx, 1) == '-', dots = c == '.' && peek(lx, 1) == '.',
         most = c == '<' && peek(lx, 1) == '=';
    lx->tok = TK_PUNCT;
    lx->punct = most ? 'l' : c;
    lx->r.len = arrow || dots || most ? 2 : 1;
    lx->r.next += lx->r.len;
    if (arrow || dots || most || memchr("{}()[]=,:?@*+-", c, 14)) return;
    if (c > 0x20 && c < 0x7f)
        tk_fail(lx, "unexpected character '%c'", c);
    else
        tk_fail(lx, c ? "unexpected byte 0x%02x" : "a NUL byte (0x%02x) is no text", (unsigned)c);
}

void tk_lex_next(tk_lexer *lx)
{
    if (lx->r.status != OT_OK) {
        lx->tok = TK_BAD;
        return;
    }
    ot_reader_skip(&lx->r, "#");
    int c = peek(lx, 0);
    if (c < 0)
        lx->tok = TK_END;
    else if (ot_is_letter(c))
        lex_name(lx);
    else if (ot_is_digit(c))
        lex_number(lx);
    else if (c == '"')
        lex_string(lx);
    else
        lex_punct(lx, c);
}

void tk_lex_init(tk_lexer *lx, const char *path, const char *text, size_t n, ot_diag *d)
{
    *lx = (tk_lexer){.r = ot_reader_of(path, text, n, d)};
    if (n > TK_TEXT_MAX) {
        tk_fail(lx, "the text has %zu bytes, at most %zu are read", n, TK_TEXT_MAX);
        return;
    }
    /* byte order mark */
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) lx->r.next = lx->r.line_start = 3;
    tk_lex_next(lx);
}

/* ---- small steps of the parser ---- */

bool tk_is(const tk_lexer *lx, int punct) { return lx->tok == TK_PUNCT && lx->punct == punct; }

bool tk_is_word(const tk_lexer *lx, const char *word)
{
    return lx->tok == TK_NAME && strcmp(lx->name, word) == 0;
}

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
    if (tk_accept(lx, punct)) return lx->r.status;
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
    if (tk_accept_word(lx, word)) return lx->r.status;
    snprintf(what, sizeof what, "'%s'", word);
    return tk_expected(lx, what);
}

ot_status tk_expect_int(tk_lexer *lx, int64_t *out)
{
    if (lx->tok != TK_INT) return tk_expected(lx, "an integer");
    *out = lx->value;
    tk_lex_next(lx);
    return lx->r.status;
}
