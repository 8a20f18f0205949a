/* Inside the reader of MLIR: tokens, types, symbols.
 *
 *   text --mlir_lex--> tokens --mlir_parse (module, function), mlir_stmt (statements), mlir_flow
 *   (scf), mlir_hivm--> ot_kernel + casts
 */
#ifndef OT_TK_MLIR_MLIR_INTERNAL_H
#define OT_TK_MLIR_MLIR_INTERNAL_H

#include "base/reader.h"
#include "mlir.h"

#define ML_NAME_MAX  200 /* bytes of a name */
#define ML_TEXT_MAX  ((size_t)64 << 20)
#define ML_ITEMS_MAX (1u << 20) /* statements, and values, of a text */
/* operands, results, types of a statement; arguments of a function may be more */
#define ML_LIST_MAX 64
#define ML_NEST_MAX 64 /* brackets in brackets */

typedef enum ml_tok {
    ML_END,
    ML_VALUE,  /* %alloc_0, %0, %0#1 */
    ML_SYMBOL, /* @name, @"name" */
    ML_LABEL,  /* ^bb0 */
    ML_ATTR,   /* #hivm.address_space, #map */
    ML_WORD,   /* memref.alloc, f16, true */
    ML_INT,    /* value */
    ML_FLOAT,
    ML_DIMS, /* 16x?x, only where a memref's shape begins */
    ML_STRING,
    ML_PUNCT, /* punct: the character; '>' of "->" is 'r' */
    ML_BAD    /* a failure was reported */
} ml_tok;

typedef struct ml_lexer {
    ot_reader r;   /* after its first failure every token is ML_BAD */
    bool in_shape; /* the next token may be ML_DIMS */
    /* the current token */
    ml_tok tok;
    int64_t value;
    int punct;
} ml_lexer;

/* ---- mlir_lex.c ---- */

/* The first token; with `from` that of a function. */
void ml_lex_init(ml_lexer *lx, const ot_mlir *m, const ot_mlir_function *from, ot_diag *d);
void ml_next(ml_lexer *lx);
/* OT_E_INPUT "path:line:col: ..."; the first failure stays. */
ot_status ml_fail_at(ml_lexer *lx, uint32_t line, uint32_t col, const char *fmt, ...)
    OT_PRINTF(4, 5);
ot_status ml_fail(ml_lexer *lx, const char *fmt, ...) OT_PRINTF(2, 3); /* at the current token */
ot_status ml_expected(ml_lexer *lx, const char *what);
#ifdef __clang_analyzer__ /* see ot_fail */
#define ml_expected(lx, what)          (ml_expected(lx, what), OT_E_INPUT)
#define ml_fail_at(lx, line, col, ...) (ml_fail_at(lx, line, col, __VA_ARGS__), OT_E_INPUT)
#define ml_fail(lx, ...)               (ml_fail(lx, __VA_ARGS__), OT_E_INPUT)
#endif
bool ml_is(const ml_lexer *lx, int punct);
bool ml_is_word(const ml_lexer *lx, const char *word);
bool ml_accept(ml_lexer *lx, int punct);
bool ml_accept_word(ml_lexer *lx, const char *word);
ot_status ml_expect(ml_lexer *lx, int punct) OT_MUST_USE;
ot_status ml_expect_word(ml_lexer *lx, const char *word) OT_MUST_USE;
/* The token is an opening bracket: skip to behind its mate. */
ot_status ml_skip_brackets(ml_lexer *lx) OT_MUST_USE;

/* ---- types: mlir_type.c ---- */

typedef enum ml_type_kind { ML_SCALAR_TYPE, ML_MEMREF_TYPE, ML_OTHER_TYPE } ml_type_kind;

typedef struct ml_type {
    ml_type_kind kind;
    uint32_t line, col;
    size_t at, end; /* its text */
    bool has_space; /* MEMREF: #hivm.address_space<...> is there; else scope is gm */
    ot_scope scope; /* MEMREF */
    /* MEMREF: every dim and stride is a number, the element type is one that kernels have */
    bool is_static;
    const char *dtype; /* static: the kernel language's name */
    /* of what is allocated: strides that leave gaps make it one dim of all elements from the
     * first to the last */
    uint32_t rank;
    int64_t dims[OT_TK_RANK_MAX];
    /* which element lies where: 0: one behind the other; 1: not known; else equal where the
     * strides are */
    uint64_t layout;
} ml_type;

ot_status ml_parse_type(ml_lexer *lx, ml_type *t) OT_MUST_USE;
/* A memref of a size that is known. */
ot_status ml_check_static(ml_lexer *lx, const ml_type *t) OT_MUST_USE;

/* ---- the reader ---- */

typedef struct ml_symbol {
    const char *name;
    /* id in the kernel of what is planned; OT_NONE: a scalar, a tensor of the caller, what is
     * not planned */
    uint32_t value;
    const uint32_t *also; /* [n_also] others that it may be, and nobody knows which */
    uint32_t n_also;
    uint32_t block; /* of the function, where its value was made */
    bool is_memref;
    bool is_part; /* a view of a part, or one that may lie anywhere in its base */
    /* of a view of a part: where in its base, and its type; two with one text are the same part
     * of theirs; NULL: not known */
    const char *window;
    bool has_number; /* arith.constant */
    int64_t number;
    bool is_true; /* arith.constant true */
} ml_symbol;

/* A piece of text that the plan replaces: the allocation of value `value`. */
typedef struct ml_cast {
    uint32_t value;
    size_t at, end;           /* from the operation's name to the end of its type */
    size_t type_at, type_end; /* its type */
    bool marked;              /* annotation.mark says that it is a multi-buffer */
    bool is_placed;           /* it is a pointer_cast already */
    bool is_empty;            /* it has no bytes: value is OT_NONE, its address 0 */
    const char *name;         /* of its result, without the percent sign; NULL: none */
} ml_cast;

typedef struct ml_operands {
    uint32_t symbols[ML_LIST_MAX]; /* indices into ml_parser.symbols */
    uint32_t lines[ML_LIST_MAX], cols[ML_LIST_MAX];
    uint32_t n;
} ml_operands;

/* A region under way, and what it gives back to its opener. */
typedef struct ml_region {
    ot_tk_op op;
    uint32_t n; /* operands of the opener: inits of a loop, results of a branch */
    /* [n] ids of carried values (loops) or results (branches); OT_NONE: not planned */
    const uint32_t *carried;
    ml_operands *condition; /* WHILE, before `do`: what scf.condition passes on; else NULL */
    bool has_condition;     /* it was there */
    ml_symbol *merged;      /* IF, results apart: [n] what each may be; else NULL */
    uint32_t first;         /* id of the first value that may be made in it */
} ml_region;

/* A block of the function's body. The first has no label. */
typedef struct ml_block {
    const char *label;
    bool is_defined;
    uint32_t n_args;
    size_t at;                   /* of its label */
    ml_symbol args[ML_LIST_MAX]; /* what each may be: value and also are indices into casts */
    uint32_t *to;                /* [n_to] blocks that it may branch to */
    size_t n_to, cap_to;
    uint32_t n_opens, n_closes; /* loops that begin before it, that end behind it */
    uint32_t pair;              /* 1: it runs or the next one, never both; 2: it is that next one */
} ml_block;

/* What one reading of a body learns for the next. A body with blocks, or with an allocation that
 * is seen outside of its region, is read until nothing new comes: then all its allocations are at
 * its head. */
typedef struct ml_passes {
    ml_block **blocks; /* [n_blocks] in the order of the text, as far as labels were met */
    size_t n_blocks, cap_blocks;
    ot_tk_value *hoisted; /* [n_hoisted] allocations of the reading before */
    size_t n_hoisted, cap_hoisted;
    bool hoist;   /* they are at the head */
    bool ordered; /* blocks are in order, and have their loops and pairs */
    bool again;   /* another reading is needed */
} ml_passes;

struct ot_mlir {
    ot_arena *arena;
    const char *path, *text; /* borrowed */
    size_t n;
    ot_kernel *k;
    ml_cast *casts; /* [n_casts] in the order of the text */
    size_t n_casts;
    size_t body;   /* behind the function's brace */
    size_t end;    /* of its last brace */
    ot_map *names; /* every name that the text defines */
};

/* Names of a statement's results: %0:2, %b = ... */
typedef struct ml_results {
    struct {
        const char *name;
        uint32_t n; /* 2 of %0:2 */
        uint32_t line, col;
    } at[ML_LIST_MAX];
    uint32_t n;
} ml_results;

typedef struct ml_parser {
    ml_lexer lx;
    ot_arena *a;
    ot_mlir *m;
    ot_mem_part mode;
    ot_kernel_builder *b;
    ot_map *by_name;    /* -> index into symbols; a name that has gone: OT_NONE */
    ot_map *taken;      /* names of the kernel's values */
    ml_symbol *symbols; /* [n_symbols] visible */
    size_t n_symbols, cap_symbols, cap_casts;
    ml_region regions[OT_TK_DEPTH_MAX]; /* [n_regions] open */
    uint32_t n_regions;
    uint32_t scopes[OT_TK_DEPTH_MAX]; /* [n_scopes] open scope.scope: regions around each */
    ml_symbol *scope_results[OT_TK_DEPTH_MAX]; /* [n_scopes] what each hands on */
    uint32_t n_scope_results[OT_TK_DEPTH_MAX];
    uint32_t n_scopes;
    ml_passes *passes;
    uint32_t block;                 /* index of the block under way */
    uint32_t *hoisted;              /* [passes->n_hoisted] ids of allocations at the head */
    const ot_mlir_function *wanted; /* what is read; NULL: all, and the first body */
    ot_mlir_functions *list;        /* only functions are looked for; else NULL */
    const ot_mlir_functions *all;   /* what calls lead to; NULL: not known */
    bool apart;                     /* results of branches need no common place */
    uint32_t n_values, n_loops;
    /* a tensor of the caller that stands for all: what only reads writes it; OT_NONE: none so
     * far */
    uint32_t sink;
    bool has_function;
    bool has_workspace, has_placed; /* workspaces without an offset, with one */
    /* the function's cores: cubes have no ub of their own, vectors no l1 */
    bool is_cube, is_vector;
    ml_results results; /* of the statement under way */
} ml_parser;

/* ---- mlir_symbol.c ---- */

/* A statement of this kind here. */
ot_tk_stmt ml_stmt(const ml_parser *p, ot_tk_op op);
ot_status ml_nomem(ml_parser *p);
/* Define a visible name (in the arena). */
ot_status ml_define(ml_parser *p, const char *name, uint32_t line, uint32_t col,
                    ml_symbol s) OT_MUST_USE;
/* Result k of the statement; a statement without results defines nothing. */
ot_status ml_define_result(ml_parser *p, uint32_t k, ml_symbol s) OT_MUST_USE;
/* Exactly n results are named. */
ot_status ml_expect_results(ml_parser *p, uint32_t n) OT_MUST_USE;
/* All of them as scalars. */
ot_status ml_define_scalars(ml_parser *p) OT_MUST_USE;
/* The value that the current token names, skipped. */
ot_status ml_use(ml_parser *p, uint32_t *symbol) OT_MUST_USE;
/* %a, %b, ... into o; may be empty. */
ot_status ml_use_list(ml_parser *p, ml_operands *o) OT_MUST_USE;
/* Forget the symbols from n on. */
ot_status ml_close_scope(ml_parser *p, size_t n) OT_MUST_USE;
/* Text of the token, in the arena; without its first byte when it is a % or @. NULL: memory ran
 * out. */
const char *ml_token_name(ml_parser *p);
/* A value of the kernel under a name made from `name`; the type's dims and scope. */
ot_status ml_add_value(ml_parser *p, const char *name, ot_tk_kind kind, const ot_tk_value *like,
                       uint32_t *id) OT_MUST_USE;
ot_status ml_add_stmt(ml_parser *p, ot_tk_stmt s, uint32_t *id) OT_MUST_USE; /* id may be NULL */
/* The kernel's value of a type. */
ot_tk_value ml_value_of(const ml_parser *p, const ml_type *t);
/* Another name of all of `base`, or of an unknown part. */
ot_status ml_add_view(ml_parser *p, const char *name, uint32_t base, bool part,
                      uint32_t *id) OT_MUST_USE;
/* Something on this pipe reads v and writes nothing that is planned. */
ot_status ml_add_read(ml_parser *p, uint32_t v, const ot_tk_stmt *at) OT_MUST_USE;
/* The same of all that a symbol may be. */
ot_status ml_add_reads(ml_parser *p, uint32_t symbol, const ot_tk_stmt *at) OT_MUST_USE;
/* Ids of all that a symbol may be, as they are seen here. writes: of several, or of a part of
 * one, each is a view of a part. ids: [ML_LIST_MAX] */
ot_status ml_values(ml_parser *p, uint32_t symbol, bool writes, uint32_t *ids,
                    uint32_t *n) OT_MUST_USE;

/* ---- mlir_blocks.c: cf, and what is seen outside of its region ---- */

/* The allocations that a symbol leads to: seen everywhere once they are at the head. */
ot_status ml_rooted(ml_parser *p, uint32_t symbol, ml_symbol *out) OT_MUST_USE;
/* The same for the end of a region, whose values are those from id `first` on: what is from outside
 * of it stays as it is. */
ot_status ml_seen_behind(ml_parser *p, uint32_t symbol, uint32_t first, ml_symbol *out) OT_MUST_USE;
/* into may be what `from` may be, too. */
ot_status ml_merge(ml_parser *p, ml_symbol *into, const ml_symbol *from) OT_MUST_USE;
/* The allocations of the reading before, at the head of the function. */
ot_status ml_hoist(ml_parser *p) OT_MUST_USE;
ot_status ml_label(ml_parser *p) OT_MUST_USE;        /* ^bb1(%a : T): */
ot_status ml_close_blocks(ml_parser *p) OT_MUST_USE; /* the end of the body */
ot_status ml_branch(ml_parser *p, const char *op) OT_MUST_USE;
/* Loops and pairs of the blocks, from their branches. */
ot_status ml_order_blocks(ml_parser *p) OT_MUST_USE;

/* ---- mlir_call.c ---- */

ot_status ml_call(ml_parser *p, ot_tk_stmt at) OT_MUST_USE;
/* arith.select of memrefs, or of scalars. */
ot_status ml_select(ml_parser *p) OT_MUST_USE;
/* Skip `{ ... }`, whatever it holds. */
ot_status ml_skip_body(ml_parser *p) OT_MUST_USE;

/* ---- statements ---- */

/* Statements up to '}' (not skipped) or the end. */
ot_status ml_statements(ml_parser *p) OT_MUST_USE;
/* mlir_memref.c: does the word begin a statement of memrefs? Then read it. start: offset of the
 * operation's name. */
ot_status ml_memref_stmt(ml_parser *p, const char *op, size_t start, ot_tk_stmt at,
                         bool *known) OT_MUST_USE;
/* mlir_flow.c: of scf, and return. */
ot_status ml_flow_stmt(ml_parser *p, const char *op, ot_tk_stmt at, bool *known) OT_MUST_USE;
/* mlir_hivm.c: of hivm.hir; `op` is behind that prefix. */
ot_status ml_hivm_stmt(ml_parser *p, const char *op, ot_tk_stmt at) OT_MUST_USE;

#endif
