/* Private to the .ot text form: tokens, and tensor contents. The language is described in
 * docs/ot-format.md. */
#ifndef OT_ONNX_GRAPH_TEXT_H
#define OT_ONNX_GRAPH_TEXT_H

#include "ir.h"

#include "base/reader.h"

#define OT_TEXT_INLINE   16        /* tensors up to this many elements are written out */
#define OT_TEXT_BRIEF    1024      /* likewise, for programs */
#define OT_TEXT_DATA_MAX (1 << 30) /* bytes of contents that one file may make */
#define OT_TEXT_NEST_MAX 32        /* bodies inside bodies */

/* ---- text_lex.c ---- */

typedef enum ot_tok {
    OT_TOK_END = 0,
    OT_TOK_NAME,   /* word: keyword, operator, attribute, element type; text */
    OT_TOK_VALUE,  /* %name or %"name"; text */
    OT_TOK_STRING, /* "..."; text, len (may hold zero bytes) */
    OT_TOK_INT,    /* neg, u */
    OT_TOK_FLOAT,  /* d */
    OT_TOK_PUNCT,  /* one character, or ':' twice as "::"; punct */
    OT_TOK_BAD     /* an error was reported */
} ot_tok;

typedef struct ot_lexer {
    ot_reader r;        /* the text, the place of the current token, the first failure */
    uint32_t last_line; /* where the token before the current one ended */
    ot_arena *arena;    /* token texts */
    /* the current token */
    ot_tok tok;
    const char *str; /* NAME, VALUE, STRING */
    size_t len;      /* of str */
    bool neg;        /* INT */
    uint64_t u;      /* INT: magnitude */
    double d;        /* FLOAT */
    int punct;       /* PUNCT; "::" is 'S' */
} ot_lexer;

void ot_lex_init(ot_lexer *lx, const char *text, size_t n, ot_arena *arena, ot_diag *diag);
void ot_lex_next(ot_lexer *lx); /* advance; OT_TOK_BAD after a failure, for ever */
/* Fail at the current token with "line:col: message"; the first failure stays. */
ot_status ot_lex_fail(ot_lexer *lx, const char *fmt, ...) OT_PRINTF(2, 3);
#ifdef __clang_analyzer__ /* see ot_fail */
#define ot_lex_fail(lx, ...) (ot_lex_fail(lx, __VA_ARGS__), OT_E_INPUT)
#endif
bool ot_lex_is(const ot_lexer *lx, int punct);
bool ot_lex_word(const ot_lexer *lx, const char *word);
/* Current token must be this; advances. */
ot_status ot_lex_expect(ot_lexer *lx, int punct) OT_MUST_USE;
/* Skip it when it is there. */
bool ot_lex_accept(ot_lexer *lx, int punct);
bool ot_lex_accept_word(ot_lexer *lx, const char *word);
/* An int64 literal; advances. */
ot_status ot_lex_i64(ot_lexer *lx, int64_t *out) OT_MUST_USE;

/* Words that begin a declaration. */
bool ot_text_is_keyword(const char *s);
/* Can `s` be written without quotes? `value`: after '%', where more characters are allowed. */
bool ot_text_is_word(const char *s, bool value);
/* "..." with escapes; every byte outside printable ASCII becomes \xHH. */
void ot_text_quote(FILE *f, const char *s, size_t n);

/* ---- text_tensor.c ---- */

/* " = [..]" of up to `most` elements, " = fill x", " = bits 0x..", " = stored ..", or nothing when
 * the contents are not known. */
void ot_text_print_contents(FILE *f, const ot_tensor *t, int64_t most);
/* Contents after '=' into t (dtype, rank, dims and bytes are set). *budget: bytes that may still
 * be made. */
ot_status ot_text_parse_contents(ot_lexer *lx, ot_tensor *t, int64_t *budget) OT_MUST_USE;
/* A float so that reading it gives the same bits; always with '.', an exponent, inf or nan. */
void ot_text_float(FILE *f, double x, int digits);
/* The nearest float, ties to even; infinity only beyond the largest one's rounding range. */
float ot_text_narrow(double d);

#endif
