/* Inside the generator of device programs: what its files share.
 *
 *   value --kgen_place.c--> operand: address, strides --kgen_nest.c--> loops --kgen_compute.c,
 *   ...--> statements of C
 */
#ifndef OT_TK_CODEGEN_KGEN_INTERNAL_H
#define OT_TK_CODEGEN_KGEN_INTERNAL_H

#include "codegen.h"

#define KGEN_OPERANDS_MAX 16 /* of an operation */
#define KGEN_LOCAL_ALIGN  64
#define KGEN_INTEGERS     8 /* integer types */

/* ---- the language: kgen_dialect.c ---- */

typedef struct kgen_dialect {
    const char *name;
    const char *prelude, *f64_prelude, *half_prelude;
    const char *function;       /* before a helper function */
    const char *global, *local; /* before a pointer's type, with the blank behind it */
    const char *item, *group, *groups;
    const char *barrier;
    bool has_async;         /* copies that go on beside the items, with events */
    const char *restricted; /* of pointers that alone reach their memory */
} kgen_dialect;
extern const kgen_dialect kgen_dialects[];

/* ---- operands ---- */

/* A value as a statement finds it: element (c0, c1, ...) lies at
 *
 *   address + map(origin + c0 * stride[0] + c1 * stride[1] + ...) * width
 *
 * map is the identity but for an alias of a subview that has gaps: number e of the alias is then
 * the e-th element of a block of map_dims with strides of its own. */
typedef struct kgen_operand {
    uint32_t value, root;
    const char *dtype; /* static */
    uint32_t width;    /* bytes of an element */
    bool is_local;
    uint32_t memory;     /* for the order: a scope, or OT_SCOPE_COUNT + the value id of a param */
    const char *base;    /* name of the memory in the text */
    int64_t constant;    /* bytes from there, */
    const char *dynamic; /* and the part that depends on loops: " + i_3 * 64", or "" */
    uint32_t rank;
    int64_t dims[OT_TK_RANK_MAX], stride[OT_TK_RANK_MAX]; /* strides in elements */
    /* "" or " + i_3 * 8": elements, before the map */
    const char *origin;
    uint32_t map_rank; /* 0: no map */
    int64_t map_dims[OT_TK_RANK_MAX], map_stride[OT_TK_RANK_MAX];
    int64_t grain;     /* the address is a multiple of it */
    int64_t low, high; /* the bytes [low, high) of its memory hold all that it may touch */
    /* windows of params: axis d begins at first[d] (text), and is outside unless 0 <= first[d] +
     * c < limit[d]; NULL: never outside */
    const char *first[OT_TK_RANK_MAX];
    int64_t limit[OT_TK_RANK_MAX];
} kgen_operand;

/* ---- loop nests ---- */

/* Who touches which element: two statements that share `total` elements in rows of `inner` and
 * walk the same dense place do so by the same items, and need no barrier between them. */
typedef struct kgen_share {
    int64_t total, inner; /* total 0: not known */
    uint32_t walks;       /* bit k: operand k of the nest is dense and moves as the nest does */
} kgen_share;

/* The elements of `dims`, shared by the items of a group. Operand k moves by stride[k][d] along
 * axis d. */
typedef struct kgen_nest {
    uint32_t rank;
    int64_t dims[OT_TK_RANK_MAX];
    uint32_t n;
    const kgen_operand *op[KGEN_OPERANDS_MAX]; /* [n]; NULL: only an index is wanted */
    int64_t stride[KGEN_OPERANDS_MAX][OT_TK_RANK_MAX];
    /* axis d is inside where 0 <= first[d] + c < limit[d]; NULL: everywhere */
    const char *first[OT_TK_RANK_MAX];
    int64_t limit[OT_TK_RANK_MAX];
    bool keep_axes; /* the body wants the coordinates along the axes as they were given */
    /* filled by kgen_nest_open: */
    const char *lin[KGEN_OPERANDS_MAX]; /* position before the map, as text */
    const char *axis[OT_TK_RANK_MAX];   /* the coordinate along each axis, as text */
    const char *guard;                  /* condition for being inside, or NULL */
    int opened;                         /* braces */
} kgen_nest;

/* ---- the order of accesses ---- */

typedef struct kgen_access {
    uint32_t memory;
    int64_t low, high;
    bool write;
    kgen_share share;
    const char *place; /* text of the address of a dense operand; NULL: it is not */
    uint32_t width;
} kgen_access;

/* ---- the generator ---- */

typedef struct kgen {
    const ot_kernel *k;
    const char *path;
    const ot_mem_plan *plan;
    const ot_kg_options *options;
    const kgen_dialect *dialect;
    ot_diag *d;
    ot_arena *a;
    FILE *f; /* the body */
    int indent;
    bool failed; /* memory ran out */
    uint32_t pc;
    bool is_local[OT_SCOPE_COUNT];
    int64_t start[OT_SCOPE_COUNT]; /* of each memory in its arena */
    int64_t local_bytes, slow_bytes;
    int64_t stage_bytes; /* for what is carried all at once, in the global arena */
    /* [n_stmts] of FOR, WHILE: number of the iteration, as text; NULL: not under way */
    const char **turn;
    kgen_access *pending; /* [n_pending] since the last barrier */
    size_t n_pending, cap_pending;
    /* [n_streams] of transfers that the device does beside the items: k has event<k> */
    const char *streams[OT_TK_STREAMS_MAX];
    uint32_t n_streams;
    /* the parallel loop whose iterations the groups share; OT_NONE */
    uint32_t spread;
    bool converts[KGEN_INTEGERS][OT_TK_CLASS_COUNT]; /* helper functions to print */
    bool uses_half, uses_bf16_out, uses_f64, uses_wrap;
} kgen;

ot_status kgen_fail(const kgen *g, const char *rule, const char *fmt, ...) OT_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* see ot_fail */
#define kgen_fail(g, rule, ...) (kgen_fail(g, rule, __VA_ARGS__), OT_E_INPUT)
#endif
/* Text in the arena; "" when memory ran out, which g->failed tells at the end. */
const char *kgen_text(kgen *g, const char *fmt, ...) OT_PRINTF(2, 3);
/* A line of the body, indented. */
void kgen_line(kgen *g, const char *fmt, ...) OT_PRINTF(2, 3);
/* the line, then " {" and one level deeper */
void kgen_open(kgen *g, const char *fmt, ...) OT_PRINTF(2, 3);
void kgen_block(kgen *g); /* only "{" */
void kgen_close(kgen *g);
static inline const ot_tk_value *kgen_value(const kgen *g, uint32_t v) { return &g->k->values[v]; }
/* Letters, digits and underscores, made unique by a number: NAME_4. The generator's own names do
 * not end so: t4, item. */
const char *kgen_name(kgen *g, const char *name, uint32_t id);
/* sum + factor * coef, without what changes nothing; "" and "0" are sums of nothing. */
const char *kgen_term(kgen *g, const char *sum, const char *factor, int64_t coef);
/* Row-by-row strides. */
void kgen_dense(const int64_t *dims, uint32_t rank, int64_t *stride);

/* ---- kgen_number.c ---- */

const char *kgen_class_name(ot_tk_class c);
/* Element `index` (text) behind pointer `p` as a number of class c. */
const char *kgen_get(kgen *g, const char *dtype, ot_tk_class c, const char *p, const char *index);
/* The statement that puts number x of class c there, rounded once, integers cut and saturated. */
const char *kgen_put(kgen *g, const char *dtype, ot_tk_class c, const char *p, const char *index,
                     const char *x);
/* A literal. */
const char *kgen_number(kgen *g, ot_tk_class c, double x);
/* An expression with the names of the class's types: $c the class, $u its unsigned type (of
 * floats themselves). */
const char *kgen_expand(kgen *g, const char *expr, ot_tk_class c);
/* x * y + acc, where integers wrap. */
const char *kgen_mad(kgen *g, ot_tk_class c, const char *x, const char *y, const char *acc);
/* The helper functions that were asked for. */
void kgen_helpers(kgen *g, FILE *f);
/* Type behind a pointer: "f32", "half". raw: as unsigned integers of its width. */
const char *kgen_element(const char *dtype, bool raw);

/* ---- kgen_place.c ---- */

ot_status kgen_locate(kgen *g, uint32_t v, kgen_operand *o) OT_MUST_USE;
/* The window of a param (ranges NULL: all of it). */
ot_status kgen_window(kgen *g, kgen_operand *o, const ot_tk_range *ranges) OT_MUST_USE;
/* Declare pointer `name` to it. */
void kgen_pointer(kgen *g, const kgen_operand *o, const char *name, bool reads, bool raw);
/* The index behind the pointer of position `lin` (text before the map). */
const char *kgen_index(kgen *g, const kgen_operand *o, const char *lin);
/* Do all elements lie one behind the other, in order? */
bool kgen_is_dense(const kgen_operand *o);
/* Slot of a buffer: bytes in its memory, the least and the most, and the part that depends on an
 * iteration. */
const char *kgen_slot(kgen *g, uint32_t buffer, int64_t *constant, int64_t *low, int64_t *high);
int64_t kgen_elements(const kgen_operand *o);

/* ---- kgen_nest.c ---- */

void kgen_nest_init(kgen_nest *n, const int64_t *dims, uint32_t rank);
/* Operand o (or NULL) with its own axes paired to the nest's: from the last one, axes of 1 stand
 * still. */
void kgen_nest_broadcast(kgen_nest *n, const kgen_operand *o);
/* Operand o whose axes that are not 1 are the nest's, in order. */
void kgen_nest_same(kgen_nest *n, const kgen_operand *o);
/* Any other way: strides[k] along axis k. */
void kgen_nest_strides(kgen_nest *n, const kgen_operand *o, const int64_t *strides);
/* The nest follows the guards of a window's axes, which are its own. */
void kgen_nest_guard(kgen_nest *n, const kgen_operand *o);
/* Axes along which all operands move alike become one. To be called once, behind the last operand.
 */
void kgen_nest_fold(kgen_nest *n);
kgen_share kgen_nest_share(const kgen *g, const kgen_nest *n);
void kgen_nest_open(kgen *g, kgen_nest *n);
void kgen_nest_close(kgen *g, const kgen_nest *n);

/* ---- kgen_order.c ---- */

/* The statement is about to read in[0..n_in) and to write out (NULL: nothing): a barrier before
 * it where it depends on what is pending; then it is pending. share: operands of the nest are in
 * the order of `in`, then `out`. */
ot_status kgen_touch(kgen *g, const kgen_operand *in, uint32_t n_in, const kgen_operand *out,
                     kgen_share share) OT_MUST_USE;
/* Everything before is done: for the head and the end of loops. */
void kgen_flush(kgen *g);
/* The parallel loop that work-groups can share, or OT_NONE. */
uint32_t kgen_find_spread(const kgen *g);

/* ---- kgen_walk.c, kgen_move.c ---- */

ot_status kgen_walk(kgen *g) OT_MUST_USE;
/* Wait for the transfers of a stream; NULL: of all. */
void kgen_wait(kgen *g, const char *stream);
/* o's strides become those of its elements' numbers: what has gaps gets a map. */
ot_status kgen_number_elements(kgen *g, kgen_operand *o) OT_MUST_USE;
ot_status kgen_move(kgen *g, const ot_tk_stmt *s) OT_MUST_USE;
/* to[i] = from[i], all at once. */
ot_status kgen_carry(kgen *g, const uint32_t *to, const uint32_t *from, uint32_t n) OT_MUST_USE;

/* ---- operations ---- */

typedef struct kgen_call {
    kgen *g;
    ot_tk_site at;
    const ot_tk_stmt *s;
    const char *name; /* small letters, no underscores */
    kgen_operand *in; /* [n_in], which the body has as pointers a0, a1, ... */
    uint32_t n_in;
    kgen_operand *out; /* pointer `out` */
    ot_tk_class c;
} kgen_call;

typedef ot_status (*kgen_op)(const kgen_call *);

ot_status kgen_compute(kgen *g, const ot_tk_stmt *s) OT_MUST_USE;
/* NULL: not in this file's table. */
kgen_op kgen_elementwise(const char *name);
kgen_op kgen_reduction(const char *name);
kgen_op kgen_product(const char *name);
kgen_op kgen_window_op(const char *name);
kgen_op kgen_shaping(const char *name);
/* Barriers, then the pointers a0, a1, ... and out of the call: before the body. */
ot_status kgen_begin(const kgen_call *c, kgen_share share) OT_MUST_USE;
/* Element of input k, or of the output, at position `lin`; the output's new value. */
const char *kgen_in(const kgen_call *c, uint32_t k, const char *lin);
void kgen_out(const kgen_call *c, const char *lin, const char *x);
#endif
