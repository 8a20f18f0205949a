/* Private to the kernel language (.tk): tokens, the growing kernel that parser and builder
 * share, and rules of one value.
 *
 *   text --tk_lex--> tokens --tk_parse, tk_parse_parts--> tk_build --> ot_kernel --tk_verify--> a
 *   kernel to rely on
 *                                     code (ot_kb_...) -----^              \--tk_print--> text
 */
#ifndef OT_TK_LANGUAGE_TK_INTERNAL_H
#define OT_TK_LANGUAGE_TK_INTERNAL_H

#include "base/reader.h"
#include "kernel.h"

#define TK_NAME_MAX 255                /* bytes of a name */
#define TK_TEXT_MAX ((size_t)64 << 20) /* bytes of a text */
/* values, and statements, of a text: a value takes far more memory than its letters */
#define TK_ITEMS_MAX (1u << 20)
#define TK_VIEW_MAX  64                 /* views of views: ot_tk_root walks them */
#define TK_COUNT_MAX ((int64_t)1 << 62) /* bounds and steps of loops: their sums stay in 64 bits */

/* ---- scope.c ---- */

bool tk_pipe_parse(const char *name, size_t n, ot_pipe *out);
/* The table's own string, NULL for an unknown type. */
const char *tk_dtype_parse(const char *name);
/* Bytes of a value, bits rounded up; false on overflow, a negative dim or an unknown type. */
bool tk_type_bytes(const char *dtype, const int64_t *dims, uint32_t rank, int64_t *out) OT_MUST_USE;

/* ---- tk_affine.c ---- */

/* a += coef * var; a term that becomes 0 stays until tk_affine_tidy. false: overflow, or a fifth
 * variable. */
bool tk_affine_add(ot_tk_affine *a, const char *var, int64_t coef) OT_MUST_USE;
/* Drop terms with coefficient 0. */
void tk_affine_tidy(ot_tk_affine *a);
/* hi - lo when it is the same in every iteration; false when it is not, or overflows. */
bool tk_extent(const ot_tk_range *r, int64_t *out) OT_MUST_USE;

/* ---- tk_lex.c ---- */

typedef enum tk_tok {
    TK_END,    /* of the text */
    TK_NAME,   /* name: names and keywords; dots included, so `vector.conv` is one */
    TK_INT,    /* value */
    TK_FLOAT,  /* number: digits with a point or an exponent */
    TK_SHAPE,  /* digits, x, digits, ...: the text */
    TK_STRING, /* "...": at + 1, len - 2 */
    TK_PUNCT,  /* punct: the character; '<' for "<-", '.' for "..", 'l' for "<=" */
    TK_BAD     /* a failure was reported */
} tk_tok;

typedef struct tk_lexer {
    ot_reader r; /* after its first failure every token is TK_BAD */
    /* the current token */
    tk_tok tok;
    char name[TK_NAME_MAX + 1];
    int64_t value;
    double number;
    int punct;
} tk_lexer;

void tk_lex_init(tk_lexer *lx, const char *path, const char *text, size_t n, ot_diag *d);
void tk_lex_next(tk_lexer *lx);
/* Fail at a place, or at the current token; the first failure stays. */
ot_status tk_fail_at(tk_lexer *lx, uint32_t line, uint32_t col, const char *fmt, ...)
    OT_PRINTF(4, 5);
ot_status tk_fail(tk_lexer *lx, const char *fmt, ...) OT_PRINTF(2, 3);
/* "expected WHAT, found the current token". */
ot_status tk_expected(tk_lexer *lx, const char *what);
#ifdef __clang_analyzer__ /* see ot_fail */
#define tk_expected(lx, what)          (tk_expected(lx, what), OT_E_INPUT)
#define tk_fail_at(lx, line, col, ...) (tk_fail_at(lx, line, col, __VA_ARGS__), OT_E_INPUT)
#define tk_fail(lx, ...)               (tk_fail(lx, __VA_ARGS__), OT_E_INPUT)
#endif
ot_status tk_fail_nomem(tk_lexer *lx);
bool tk_is(const tk_lexer *lx, int punct);
bool tk_is_word(const tk_lexer *lx, const char *word);
/* Skip it when it is there. */
bool tk_accept(tk_lexer *lx, int punct);
bool tk_accept_word(tk_lexer *lx, const char *word);
/* It must be there; skipped. */
ot_status tk_expect(tk_lexer *lx, int punct) OT_MUST_USE;
ot_status tk_expect_word(tk_lexer *lx, const char *word) OT_MUST_USE;
ot_status tk_expect_int(tk_lexer *lx, int64_t *out) OT_MUST_USE;
/* Is the text up to its first dot a word of the language? Such names are nobody's. */
bool tk_is_keyword(const char *name);
/* [A-Za-z_][A-Za-z0-9_.$/]*, at most TK_NAME_MAX bytes; keywords allowed. NULL is no name. */
bool tk_is_name(const char *name);
/* What may stand in "...": printable UTF-8 without quote and backslash, 1 to TK_NAME_MAX bytes. */
bool tk_is_string(const char *text);

/* ---- tk_build.c ---- */

struct ot_kernel_builder {
    ot_kernel *k;
    size_t cap_values, cap_stmts;
    uint32_t *open; /* [n_open] openers (FOR, WHILE, IF) of the open blocks */
    size_t n_open, cap_open;
    bool failed; /* out of memory, or an `end` without a block: nothing is handed over */
    bool placed; /* lines and columns are another text's */
};

/* false when memory ran out. */
bool tk_builder_init(ot_kernel_builder *b) OT_MUST_USE;
uint32_t tk_innermost(const ot_kernel_builder *b);
/* Append; both OT_NONE when memory ran out. A statement's out, in, carried and ranges are
 * copied, its parent is set. */
uint32_t tk_add_value(ot_kernel_builder *b, ot_tk_value v);
uint32_t tk_add_stmt(ot_kernel_builder *b, ot_tk_stmt s);
/* Append FOR, WHILE or IF and open its block; the else branch; the END. */
uint32_t tk_open(ot_kernel_builder *b, ot_tk_stmt s);
uint32_t tk_else(ot_kernel_builder *b, uint32_t line, uint32_t col);
uint32_t tk_close(ot_kernel_builder *b, uint32_t line, uint32_t col);

/* ---- tk_parse_parts.c ---- */

/* A name on the left of '=', not yet known to be old or new. */
typedef struct tk_word {
    const char *name; /* in the kernel's arena */
    uint32_t id;      /* of the value with that name; OT_NONE: none so far */
    uint32_t line, col;
} tk_word;

typedef struct tk_parser {
    tk_lexer lx;
    ot_kernel_builder b;
    ot_arena *scratch;
    ot_map *names; /* -> value id */
    /* lists of the statement under way */
    tk_word *words; /* [n_words] left of '=', then carried names */
    size_t n_words, cap_words;
    uint32_t *ids; /* [n_ids] values read */
    size_t n_ids, cap_ids;
    ot_tk_range ranges[OT_TK_RANK_MAX];
    uint32_t n_ranges;
    ot_tk_attr *attrs; /* [n_attrs] of the operation */
    size_t n_attrs, cap_attrs;
    const ot_tk_binding *given; /* [n_given] values of sizes */
    uint32_t n_given;
    size_t cap_pools, cap_sizes;
    struct {
        size_t n_open;         /* blocks of the builder around it */
        uint32_t n_stmts;      /* before it */
    } scopes[OT_TK_DEPTH_MAX]; /* [n_scopes] open `block {` */
    uint32_t n_scopes;
} tk_parser;

/* The value that the current token names; skipped. */
ot_status tk_old_name(tk_parser *p, uint32_t *id) OT_MUST_USE;
/* A name that is no keyword, appended to p->words; skipped. `what` for messages: "a name". */
ot_status tk_any_name(tk_parser *p, const char *what) OT_MUST_USE;
/* `dims dtype` into v, its bytes too (0 when they overflow: the verifier's business). */
ot_status tk_type(tk_parser *p, ot_tk_value *v) OT_MUST_USE;
/* `@scope`. */
ot_status tk_scope(tk_parser *p, ot_tk_value *v) OT_MUST_USE;
/* [align=N] [multi=N] [offset=N[,N...]]. */
ot_status tk_attributes(tk_parser *p, ot_tk_value *v) OT_MUST_USE;
/* `[lo:hi, ...]` into p->ranges. */
ot_status tk_ranges(tk_parser *p) OT_MUST_USE;
/* Is the current token `word`, followed by '=' and a name that begins no statement (`names`) or
 * an integer? Then on to that. */
bool tk_accept_setting(tk_parser *p, const char *word, bool names);
/* `(a, b, axis=1, ...)` into p->ids and p->attrs; may be empty. */
ot_status tk_call(tk_parser *p) OT_MUST_USE;
/* `(a, b, ...)` into p->ids; may be empty. */
ot_status tk_operands(tk_parser *p) OT_MUST_USE;

/* ---- tk_parse_sync.c ---- */

/* A value or a statement under its name; the parser's own. */
ot_tk_value tk_new_value(const tk_parser *p, const tk_word *w, ot_tk_kind kind);
ot_tk_stmt tk_new_stmt(const tk_parser *p, ot_tk_op op);
ot_status tk_add_named(tk_parser *p, const ot_tk_value *v, uint32_t *id) OT_MUST_USE;
ot_status tk_define(tk_parser *p, const ot_tk_value *v, ot_tk_stmt s) OT_MUST_USE;
ot_status tk_add(tk_parser *p, const ot_tk_stmt *s) OT_MUST_USE;
/* A statement that begins with a word which may be a name elsewhere: barrier, arrive, wait,
 * fence. The word was read, s begins at it. *known false: no such word, nothing was read. */
ot_status tk_parse_sync(tk_parser *p, const char *word, ot_tk_stmt *s, bool *known) OT_MUST_USE;
/* tk_parse_alloc.c: after the word of the statement is seen, and before it is read. */
ot_status tk_parse_alloc(tk_parser *p, bool workspace) OT_MUST_USE;
ot_status tk_parse_alias(tk_parser *p) OT_MUST_USE;
ot_status tk_parse_subview(tk_parser *p) OT_MUST_USE;
/* The number of a warp; *warp: 1 + it. */
ot_status tk_parse_warp(tk_parser *p, uint32_t *warp) OT_MUST_USE;
/* tk_parse_decl.c: var, reducer, descriptor, pool, size, check, block; as tk_parse_sync. */
ot_status tk_parse_declaration(tk_parser *p, const char *word, ot_tk_stmt *s,
                               bool *known) OT_MUST_USE;
/* Is the current '}' that of a `block`? Then its buffers are freed. */
ot_status tk_close_scope(tk_parser *p, bool *closed) OT_MUST_USE;
/* The size that the current token names, or NULL. */
const ot_tk_size *tk_size_here(const tk_parser *p);
/* An integer, or a size (`which` may be NULL: then a bounded one is an error). */
ot_status tk_extent_here(tk_parser *p, int64_t *out, const char **which) OT_MUST_USE;
/* [stream=NAME] of a transfer. */
ot_status tk_parse_stream(tk_parser *p, ot_tk_stmt *s) OT_MUST_USE;

/* ---- tk_verify.c, tk_verify_value.c, tk_verify_sync.c ---- */

typedef struct tk_block {
    uint32_t opener;
    /* values visible before the block: the rest of tk_check.shown goes with it */
    uint32_t shown;
    uint32_t freed;      /* entries of tk_check.freed before the block; */
    uint32_t freed_else; /* before the else branch */
    bool in_else, yielded;
} tk_block;

typedef struct tk_freed {
    uint32_t root, stmt;
} tk_freed;

typedef struct tk_check {
    const ot_kernel *k;
    const char *path;
    ot_diag *d;
    ot_map *names;      /* of the values defined so far */
    uint32_t at;        /* current statement */
    uint8_t *state;     /* [n_values] TK_UNSEEN... */
    uint8_t *views;     /* [n_values] aliases and subviews from it to its root */
    uint32_t *root;     /* [n_values] once defined: itself, or what the view leads to */
    uint32_t *loop;     /* [n_values] innermost FOR or WHILE around the definition, or OT_NONE */
    uint32_t *freed_by; /* [n_values] of roots: FREE statement, or OT_NONE */
    uint32_t *written;  /* [n_values] 1 + last statement that has it as an output */
    uint32_t *shown;    /* [n_shown] visible values in order of definition */
    uint32_t n_shown;
    tk_freed *freed; /* [n_freed] in order; those of an `if` until the loop around it ends */
    uint32_t n_freed;
    tk_block blocks[OT_TK_DEPTH_MAX]; /* [n_blocks] open */
    uint32_t n_blocks;
    uint8_t *reducer;                       /* [n_values] of roots: TK_RAW... */
    int64_t columns;                        /* of the last tensor memory that was taken; 0: none */
    const char *streams[OT_TK_STREAMS_MAX]; /* [n_streams] of the transfers so far */
    uint32_t n_streams;
} tk_check;

enum { TK_RAW, TK_FILLED, TK_FINAL };      /* a reducer: before fill; takes updates; may be read */
enum { TK_UNSEEN, TK_VISIBLE, TK_HIDDEN }; /* not defined yet; may be used; its block is over */

/* Fail at the current statement, or at a value's definition. */
ot_status tk_bad_stmt(const tk_check *c, const char *fmt, ...) OT_PRINTF(2, 3);
ot_status tk_bad_value(const tk_check *c, const ot_tk_value *v, const char *fmt, ...)
    OT_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* see ot_fail */
#define tk_bad_stmt(c, ...)     (tk_bad_stmt(c, __VA_ARGS__), OT_E_INPUT)
#define tk_bad_value(c, v, ...) (tk_bad_value(c, v, __VA_ARGS__), OT_E_INPUT)
#endif
/* Rules of WAIT, ARRIVE, FENCE; of a transfer's stream; of an operation's settings. */
ot_status tk_check_sync(tk_check *c, const ot_tk_stmt *s) OT_MUST_USE;
ot_status tk_check_stream(const tk_check *c, const ot_tk_stmt *s) OT_MUST_USE;
ot_status tk_count_stream(tk_check *c, const ot_tk_stmt *s) OT_MUST_USE;
ot_status tk_check_attrs(const tk_check *c, const ot_tk_stmt *s) OT_MUST_USE;
/* tk_verify_kinds.c: rules of vars, tensor memory, reducers, descriptors, pools: by themselves,
 * in an operation or transfer, at their allocation, when they are freed, when their block (shown
 * from `shown` on) ends. */
ot_status tk_check_kind(const tk_check *c, const ot_tk_value *v) OT_MUST_USE;
ot_status tk_check_kind_use(tk_check *c, const ot_tk_stmt *s) OT_MUST_USE;
ot_status tk_check_kind_alloc(tk_check *c, uint32_t v) OT_MUST_USE;
ot_status tk_check_kind_free(const tk_check *c, const ot_tk_stmt *s) OT_MUST_USE;
ot_status tk_check_kind_end(const tk_check *c, uint32_t shown) OT_MUST_USE;
/* A barrier is used by nothing else. */
ot_status tk_check_no_barrier(const tk_check *c, uint32_t v) OT_MUST_USE;
/* Rules of one value by itself: name, type, attributes. */
ot_status tk_check_value(const tk_check *c, const ot_tk_value *v) OT_MUST_USE;
/* Rules of an alias or subview; its base is visible. */
ot_status tk_check_view(const tk_check *c, const ot_tk_value *v) OT_MUST_USE;
/* The window of `tensor` in the current statement (ranges NULL: all of it) has no more elements
 * than `buffer`. */
ot_status tk_check_window(const tk_check *c, const ot_tk_value *tensor,
                          const ot_tk_value *buffer) OT_MUST_USE;
/* Equal dims, element types and memories. */
bool tk_same_type(const ot_tk_value *a, const ot_tk_value *b);
/* "1x16x64 f32 @ub" into buf; returns buf. Safe for any value. */
#define TK_TYPE_TEXT 256
const char *tk_type_text(const ot_tk_value *v, char buf[TK_TYPE_TEXT]);

#endif
