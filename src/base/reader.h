/* Reading a text of tokens: where the reader is, where the token at hand begins, and the first
 * failure. What a token is, its lexer says.
 *
 *   alloc a: 16x64 f16 @ub        # comment
 *         ^at  ^next               line, line_start: of `next`; tok_line, tok_col: of `at`
 *
 * All languages of text share this: .ot graphs, .tk kernels, MLIR. The text is any bytes from a
 * stranger: every look is bounded by the length.
 */
#ifndef OT_BASE_READER_H
#define OT_BASE_READER_H

#include "base.h"

#include <stdarg.h>

typedef struct ot_reader {
    const char *path;  /* in front of messages; NULL: only line and column are */
    const char *text;  /* [n] borrowed */
    size_t n, next;    /* next byte to look at */
    size_t line_start; /* where the line of `next` begins */
    uint32_t line;     /* of `next`, from 1 */
    ot_diag *d;
    ot_status status; /* the first failure */
    /* the token at hand */
    uint32_t tok_line, tok_col;
    size_t at, len;
} ot_reader;

ot_reader ot_reader_of(const char *path, const char *text, size_t n, ot_diag *d);

/* The byte so far ahead; -1 behind the end. */
static inline int ot_peek(const ot_reader *r, size_t ahead)
{
    return r->n - r->next > ahead ? (unsigned char)r->text[r->next + ahead] : -1;
}
static inline bool ot_is_digit(int c) { return c >= '0' && c <= '9'; }
/* Of the first character of a name. */
static inline bool ot_is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Value of a hexadecimal digit; -1: it is none. */
int ot_hex_digit(int c);
/* Go on while characters belong. */
void ot_reader_while(ot_reader *r, bool (*belongs)(int c));
/* Go on behind e5, E-5; false, nothing is done: there is no exponent. */
bool ot_reader_exponent(ot_reader *r);
/* From an opening quote to behind the closing one; with `escapes` a backslash hides what follows.
 * false: the line or the text ends first. */
bool ot_reader_string(ot_reader *r, bool escapes);
/* Skip blanks, ends of lines, and comments, which begin with these characters and end with their
 * line (a NUL is no part of one). The next token begins there. */
void ot_reader_skip(ot_reader *r, const char *comment);
/* OT_E_INPUT "path:line:col: ..." or "line:col: ..."; the first failure stays. */
ot_status ot_reader_vfail(ot_reader *r, uint32_t line, uint32_t col, const char *fmt, va_list args);
/* "expected WHAT, found 'the token at hand'", long ones cut; behind the end: "found the end of
 * the text". */
ot_status ot_reader_expected(ot_reader *r, const char *what);
/* Value of n decimal digits; false when it does not fit, or n is 0. */
bool ot_digits_value(const char *text, size_t n, int64_t *out) OT_MUST_USE;

#endif
