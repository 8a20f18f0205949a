/* Tokens of MLIR.
 *
 *   %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %b) -> (memref<16x4xf16,
 *   #hivm.address_space<ub>>) { // comment
 *   VALUE ':' INT '=' WORD VALUE '=' VALUE WORD ...    'r' '(' WORD '<' DIMS WORD ',' ATTR '<' WORD
 *                                                      '>' ...
 *
 * Bare words take their dots: `memref.alloc` is one. Ends of lines mean nothing. The text is any
 * bytes from a stranger: every read is bounded by the length, and after the first failure there
 * are ML_BAD tokens only.
 */
#include "mlir_internal.h"

static ot_status fail_list(ml_lexer *lx, uint32_t line, uint32_t col, const char *fmt, va_list args)
{
    lx->tok = ML_BAD;
    return ot_reader_vfail(&lx->r, line, col, fmt, args);
}

ot_status(ml_fail_at)(ml_lexer *lx, uint32_t line, uint32_t col, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = fail_list(lx, line, col, fmt, args);
    va_end(args);
    return s;
}

ot_status(ml_fail)(ml_lexer *lx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    ot_status s = fail_list(lx, lx->r.tok_line, lx->r.tok_col, fmt, args);
    va_end(args);
    return s;
}

ot_status(ml_expected)(ml_lexer *lx, const char *what)
{
    lx->tok = ML_BAD;
    return ot_reader_expected(&lx->r, what);
}

/* ---- characters ---- */

static int peek(const ml_lexer *lx, size_t ahead) { return ot_peek(&lx->r, ahead); }
static bool is_rest(int c) { return ot_is_letter(c) || ot_is_digit(c) || c == '$' || c == '.'; }

/* ---- tokens ---- */

static void lex_name(ml_lexer *lx, ml_tok tok)
{
    lx->tok = tok;
    while (is_rest(peek(lx, 0)) || (peek(lx, 0) == '-' && tok != ML_WORD && peek(lx, 1) != '>'))
        lx->r.next++;
    if (tok == ML_VALUE && peek(lx, 0) == '#') {
        lx->r.next++;
        ot_reader_while(&lx->r, ot_is_digit);
    }
    if (lx->r.next - lx->r.at > ML_NAME_MAX)
        ml_fail(lx, "a name has at most %d bytes", ML_NAME_MAX);
}

static void lex_string(ml_lexer *lx, ml_tok tok)
{
    lx->tok = tok;
    if (!ot_reader_string(&lx->r, true)) ml_fail(lx, "the string has no end");
}

/* 16x?x */
static bool lex_dims(ml_lexer *lx)
{
    size_t n = 0, whole = 0;
    for (;;) {
        if (peek(lx, n) == '?')
            n++;
        else
            while (ot_is_digit(peek(lx, n))) n++;
        if (n == whole || peek(lx, n) != 'x') break;
        whole = ++n;
    }
    lx->r.next += whole;
    lx->tok = ML_DIMS;
    return whole > 0;
}

static void lex_number(ml_lexer *lx)
{
    bool fits = true;
    lx->tok = ML_INT;
    lx->value = 0;
    if (peek(lx, 0) == '0' && peek(lx, 1) == 'x') {
        lx->tok = ML_FLOAT; /* bits: nothing that is counted with is written so */
        for (lx->r.next += 2; is_rest(peek(lx, 0)) && peek(lx, 0) != '.'; lx->r.next++) {}
        return;
    }
    for (; ot_is_digit(peek(lx, 0)); lx->r.next++) {
        fits = fits && ot_mul_i64(lx->value, 10, &lx->value) &&
               ot_add_i64(lx->value, peek(lx, 0) - '0', &lx->value);
    }
    if (peek(lx, 0) == '.') {
        lx->tok = ML_FLOAT;
        lx->r.next++;
        ot_reader_while(&lx->r, ot_is_digit);
        (void)ot_reader_exponent(&lx->r);
    } else if (!fits) {
        ml_fail(lx, "the number does not fit 64 bits");
    }
}

static void lex_token(ml_lexer *lx)
{
    int c = peek(lx, 0);
    if (lx->in_shape && (ot_is_digit(c) || c == '?') && lex_dims(lx)) return;
    if (ot_is_digit(c)) {
        lex_number(lx);
    } else if (ot_is_letter(c)) {
        lex_name(lx, ML_WORD);
    } else if (c == '"') {
        lex_string(lx, ML_STRING);
    } else if (c == '@' && peek(lx, 1) == '"') {
        lx->r.next++;
        lex_string(lx, ML_SYMBOL);
    } else if (c == '%' || c == '@' || c == '^' || c == '#' || c == '!') {
        lx->r.next++;
        bool named = is_rest(peek(lx, 0));
        lex_name(lx, c == '%'   ? ML_VALUE
                     : c == '@' ? ML_SYMBOL
                     : c == '^' ? ML_LABEL
                     : c == '#' ? ML_ATTR
                                : ML_WORD);
        if (!named) ml_fail(lx, "'%c' without a name", c);
    } else if (c == '-' && peek(lx, 1) == '>') {
        lx->r.next += 2;
        lx->tok = ML_PUNCT;
        lx->punct = 'r';
    } else if (c > ' ' && c < 127) {
        lx->r.next++;
        lx->tok = ML_PUNCT;
        lx->punct = c;
    } else {
        lx->r.next++;
        ml_fail(lx, "byte 0x%02x has no meaning here", (unsigned)c & 0xff);
    }
}

void ml_next(ml_lexer *lx)
{
    if (lx->r.status != OT_OK) return;
    ot_reader_skip(&lx->r, "//");
    if (lx->r.next >= lx->r.n) {
        lx->tok = ML_END;
    } else {
        lex_token(lx);
    }
    lx->r.len = lx->r.next - lx->r.at;
    lx->in_shape = false;
}

void ml_lex_init(ml_lexer *lx, const ot_mlir *m, const ot_mlir_function *from, ot_diag *d)
{
    *lx = (ml_lexer){.r = ot_reader_of(m->path, m->text, m->n, d)};
    if (m->n > ML_TEXT_MAX) {
        ml_fail(lx, "the text has %zu bytes: at most %zu are allowed", m->n, ML_TEXT_MAX);
        return;
    }
    if (from) {
        lx->r.next = from->at;
        lx->r.line = from->line;
        lx->r.line_start = from->at + 1 - from->col;
    }
    ml_next(lx);
}

/* ---- what parsers ask ---- */

bool ml_is(const ml_lexer *lx, int punct) { return lx->tok == ML_PUNCT && lx->punct == punct; }

bool ml_is_word(const ml_lexer *lx, const char *word)
{
    return lx->tok == ML_WORD && lx->r.len == strlen(word) &&
           memcmp(lx->r.text + lx->r.at, word, lx->r.len) == 0;
}

bool ml_accept(ml_lexer *lx, int punct)
{
    if (!ml_is(lx, punct)) return false;
    ml_next(lx);
    return true;
}

bool ml_accept_word(ml_lexer *lx, const char *word)
{
    if (!ml_is_word(lx, word)) return false;
    ml_next(lx);
    return true;
}

ot_status ml_expect(ml_lexer *lx, int punct)
{
    char what[8] = {'\'', (char)punct, '\''};
    if (!ml_is(lx, punct)) return ml_expected(lx, punct == 'r' ? "'->'" : what);
    ml_next(lx);
    return lx->r.status;
}

ot_status ml_expect_word(ml_lexer *lx, const char *word)
{
    if (!ml_accept_word(lx, word)) {
        char what[ML_NAME_MAX + 8];
        snprintf(what, sizeof what, "'%s'", word);
        return ml_expected(lx, what);
    }
    return lx->r.status;
}

ot_status ml_skip_brackets(ml_lexer *lx)
{
    char open[ML_NEST_MAX];
    uint32_t n = 0, line = lx->r.tok_line, col = lx->r.tok_col;
    do {
        int c = lx->tok == ML_PUNCT ? lx->punct : 0;
        if (lx->tok == ML_BAD) return lx->r.status;
        if (lx->tok == ML_END) return ml_fail_at(lx, line, col, "the bracket has no end");
        if (c == '(' || c == '[' || c == '{' || c == '<') {
            if (n == ML_NEST_MAX)
                return ml_fail(lx, "brackets nest more than %d deep", ML_NEST_MAX);
            open[n++] = (char)(c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '>');
        } else if (n > 0 && open[n - 1] == '>' && c != '>' && (c == ')' || c == ']' || c == '}')) {
            return ml_expected(lx, "'>'");
        } else if (c == ')' || c == ']' || c == '}' || c == '>') {
            if (n > 0 && c != open[n - 1] && c == '>') { /* a comparison in an affine map */
                ml_next(lx);
                continue;
            }
            if (n == 0 || c != open[n - 1]) return ml_expected(lx, "the end of a bracket");
            n--;
        }
        lx->in_shape = c == '<';
        ml_next(lx);
    } while (n > 0 && lx->r.status == OT_OK);
    return lx->r.status;
}
