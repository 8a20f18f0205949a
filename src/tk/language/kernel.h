/* Stage tk/language/: tile kernels as text (.tk), the input of the buffer planner.
 *
 * A kernel is a linear list of statements with structured control flow. Buffers have a shape, a
 * scope (which memory) and no address until they are planned; parameters are tensors in slow
 * memory that the caller owns.
 *
 *   # comment                                     # to the end of the line
 *   kernel conv_relu target "ascend-a2" {         # the target is optional
 *     param x: 1x16x64x64 f32 @gm                 # never planned
 *     param y: 1x16x64x64 f32 @gm
 *     alloc w: 16x16x3x3 f32 @ub                  # [align=N] [multi=N] [offset=N[,N...]] in this
 *                                                 order; [warp=N] [with=NAME] [unique|hold]
 *     workspace ws: 4096 f32                      # a buffer in global memory; same as alloc ...
 *                                                 @gm
 *     load w <- weights                           # slow memory -> buffer         pipe dma_in
 *     for i in 0..4 {                             # lo..hi [step N]; `?` for hi: unknown trip count
 *       alloc a: 1x16x18x64 f32 @ub multi=2
 *       load a <- x[0:1, 0:16, 16*i-1:16*i+17, 0:64]
 *       b = vector.conv(a, w)                     # pipe.operation; pipes: vector cube scalar
 *                                                 dma_in dma_out
 *       store y[0:1, 0:16, 16*i:16*i+16, 0:64] <- b   # buffer -> slow memory     pipe dma_out
 *       free a                                    # optional; any later use is an error
 *     }
 *     copy d <- c                                 # buffer -> buffer, pipe by the scopes;
 *                                                 `copy.vector d <- c` says it
 *     alias v = a: 2304 f32                       # another name and shape for all of a; not larger
 *                                                 than a
 *     subview s = a[0:1, 0:8, 0:18, 0:64]         # a part of a: writing it writes a part only
 *     r = for i in 0..8 carry (acc = init) {      # loop-carried values: acc is init, then what was
 *                                                 yielded; r the last
 *       n = vector.add(acc, t)
 *       yield (n)                               # last statement of the body; as many values as are
 *                                               carried
 *     }
 *     while (s) { ... }                           # s: a buffer read before every iteration, or
 *                                                 `?`; carry as in for
 *     q = if (s) { ... yield (a) } else { ... yield (b) }
 *     place acc: 256 f32 @ub offset=0         # of a planned kernel: where a carried value or a
 *                                             result lies that no alloc holds
 *     place yield acc: 256 f32 @ub offset=1024  # where what is yielded to acc waits until all that
 *                                               is carried was read (a swap)
 *   }
 *
 * Several outputs, results and carried values are separated by commas: `p, q = vector.split(a)`,
 * `r, t = while (?) carry (u = a, v = b) {`. An operation's output is the name of an allocated
 * buffer (or of an alias or a subview): operations write buffers, they do not create them. Names
 * are unique in a kernel, loop variables in their loop.
 *
 * Names are [A-Za-z_][A-Za-z0-9_.$/]*, at most 255 bytes, unique in a kernel, and no word of the
 * language up to their first dot; loop variables are apart from them and unique in the loops
 * around them. The kernel's own name and operations may be any such word. A value is visible
 * from its definition to the end of the block that it stands in. What is written may also be a
 * carried value or a result. Views of params are params. Texts: at most 64 MiB, 2^20 statements
 * and 2^20 values.
 */
#ifndef OT_TK_LANGUAGE_KERNEL_H
#define OT_TK_LANGUAGE_KERNEL_H

#include "machine/scope.h"

#include <stdarg.h>

/* ---- pipes ---- */

typedef enum ot_pipe {
    OT_PIPE_VECTOR,
    OT_PIPE_CUBE,
    OT_PIPE_SCALAR,
    OT_PIPE_DMA_IN,
    OT_PIPE_DMA_OUT,
    OT_PIPE_COUNT
} ot_pipe;
const char *ot_pipe_name(ot_pipe p);

/* ---- the kernel ---- */

#define OT_TK_RANK_MAX    8
#define OT_TK_MULTI_MAX   16
#define OT_TK_STREAMS_MAX 16
#define OT_TK_POOLS_MAX   64
#define OT_TK_SIZES_MAX   64
#define OT_TK_DEPTH_MAX   64 /* nesting of for, while, if */

typedef enum ot_tk_kind {
    OT_TK_PARAM,
    OT_TK_BUFFER, /* alloc, workspace */
    OT_TK_ALIAS,  /* base is another name */
    OT_TK_SUBVIEW,
    OT_TK_CARRIED, /* `acc` of a loop: type of its init */
    OT_TK_RESULT   /* `r = for ...` or `q = if ...` */
} ot_tk_kind;

/* What the updates of a reducer do. */
typedef enum ot_tk_reduction {
    OT_TK_NO_REDUCTION,
    OT_TK_SUM,
    OT_TK_MAX,
    OT_TK_MIN
} ot_tk_reduction;
/* Where its partial results are: what the machine likes, in every thread, each once. */
typedef enum ot_tk_replication {
    OT_TK_REPLICATION_ANY,
    OT_TK_REPLICATION_ALL,
    OT_TK_REPLICATION_NONE
} ot_tk_replication;
typedef enum ot_tk_descriptor {
    OT_TK_NO_DESCRIPTOR,
    OT_TK_WGMMA,
    OT_TK_TCGEN05,
    OT_TK_TCGEN05_INSTRUCTION
} ot_tk_descriptor;

/* c0 + sum of coef[k] * loop variable. */
typedef struct ot_tk_affine {
    int64_t constant;
    uint32_t n;
    struct {
        const char *var;
        int64_t coef;
    } terms[4];
} ot_tk_affine;

typedef struct ot_tk_range {
    ot_tk_affine lo, hi; /* half-open */
} ot_tk_range;

/* How long a buffer keeps its place. */
typedef enum ot_tk_keep {
    OT_TK_KEEP_LIVE, /* while it holds something that is read later */
    OT_TK_KEEP_LOOP, /* `hold`: throughout the loop that it is allocated in; else the kernel */
    OT_TK_KEEP_ALL   /* `unique`: throughout the kernel, and no other buffer has it */
} ot_tk_keep;

typedef struct ot_tk_value {
    const char *name;
    ot_tk_kind kind;
    uint32_t line, col;           /* of the definition, from 1 */
    uint32_t rank;                /* 1..OT_TK_RANK_MAX */
    int64_t dims[OT_TK_RANK_MAX]; /* >= 1 */
    const char *dtype;            /* static: "f32"... */
    /* product of dims times the type's size, rounded up to bytes; checked */
    int64_t bytes;
    ot_scope scope;
    int64_t align; /* 0: the scope's own */
    /* 1: single buffer; N: N slots that iterations take in turn */
    uint32_t multi;
    uint32_t n_offsets; /* 0: not placed; else multi */
    /* fixed on input, planned on output; of CARRIED and RESULT: of a storage of its own, in
     * n_offsets slots whatever multi is */
    int64_t offsets[OT_TK_MULTI_MAX];
    /* the same of CARRIED's next value, when it waits in a storage of its own; 0: not placed */
    uint32_t n_waits;
    int64_t waits[OT_TK_MULTI_MAX];
    bool workspace; /* written with the word `workspace` */
    /* PARAM written with the word `empty`: the kernel makes its contents, the caller gives none */
    bool empty;
    int64_t arrive; /* of a barrier: arrivals that a phase takes; else 0 */
    /* in shared memory that the launch sizes, `@shared.dyn`: no static limit */
    bool dynamic;
    double init;               /* of a var: what it holds first */
    uint32_t warp;             /* of tensor memory: 1 + the warp that takes it; else 0 */
    ot_tk_reduction reduction; /* of a reducer */
    ot_tk_replication replication;
    ot_tk_descriptor descriptor; /* of a descriptor */
    uint32_t pool;               /* 1 + the pool that it is allocated from; 0: none */
    ot_tk_keep keep;             /* of an alloc */
    uint32_t with;               /* 1 + the alloc in whose place it lies, too; 0: none */
    /* names of bounded sizes that dims stand for; NULL: a number */
    const char *sizes[OT_TK_RANK_MAX];
    uint32_t base;             /* ALIAS, SUBVIEW: value id; else OT_NONE */
    const ot_tk_range *ranges; /* SUBVIEW: [base's rank] */
    uint32_t stmt;             /* defining statement, OT_NONE for params */
} ot_tk_value;

typedef enum ot_tk_op {
    OT_TK_ALLOC,
    OT_TK_FREE,
    OT_TK_VIEW, /* out[0] / in[0] / out[0] = alias or subview of its base */
    OT_TK_LOAD,
    OT_TK_STORE,
    OT_TK_COPY,    /* out[0] <- in[0] */
    OT_TK_COMPUTE, /* out... = pipe.op(in...) */
    OT_TK_FOR,
    OT_TK_WHILE, /* in: [inits, then `s` of while if any]; out: results; carried: names inside */
    OT_TK_IF,
    OT_TK_ELSE,   /* in: [s if any]; out: results (on IF) */
    OT_TK_YIELD,  /* in */
    OT_TK_END,    /* of FOR, WHILE or IF */
    OT_TK_WAIT,   /* for a stream's transfers (stream), or for a barrier (in[0]) */
    OT_TK_ARRIVE, /* at a barrier: in[0] */
    OT_TK_FENCE,  /* every pipe waits for every other */
    /* of in[0]'s planned address: name "is_aligned" or "address_of", keep: the alignment, the
     * address */
    OT_TK_CHECK
} ot_tk_op;

/* A setting of an operation: axis=1, pad=[1, 1, 0, 0]. */
typedef struct ot_tk_attr {
    const char *name;
    uint32_t n;                    /* 1..OT_TK_RANK_MAX values */
    bool list;                     /* written in brackets */
    double values[OT_TK_RANK_MAX]; /* finite or infinite */
} ot_tk_attr;

typedef struct ot_tk_stmt {
    ot_tk_op op;
    uint32_t line, col;
    ot_pipe pipe;
    const char *name;         /* COMPUTE: operation */
    const uint32_t *out, *in; /* [n_out], [n_in] value ids */
    uint32_t n_out, n_in;
    /* COMPUTE: [n_in] the operand that each input is, or may be: of several that a name of MLIR
     * may mean, one is; NULL: each is its own */
    const uint32_t *operand;
    const uint32_t *carried;   /* FOR, WHILE: [n_out] value ids; in[k] is the init of carried[k] */
    bool has_condition;        /* WHILE, IF: in[n_in - 1] is the condition (false: `?`) */
    const ot_tk_range *ranges; /* LOAD: window of in[0]; STORE: window of out[0]; NULL: all of it */
    uint32_t n_ranges;
    const char *var;      /* FOR */
    int64_t lo, hi, step; /* FOR; hi -1: unknown (`?`); trips = ceil((hi - lo) / step) */
    /* FOR, WHILE: its END; IF: ELSE or END; ELSE: END; END: its FOR, WHILE or IF; YIELD: its
     * opener (IF for both branches) */
    uint32_t mate;
    /* innermost enclosing FOR, WHILE, IF (for the else branch and ELSE too), or OT_NONE; of END:
     * the opener's */
    uint32_t parent;
    bool explicit_pipe;      /* COPY, WAIT, ARRIVE written with their pipe */
    const ot_tk_attr *attrs; /* COMPUTE: [n_attrs] */
    uint32_t n_attrs;
    /* LOAD, STORE, COPY: runs beside what follows, until its stream is waited for; WAIT: that
     * stream. NULL: none */
    const char *stream;
    uint32_t warp;       /* FREE of tensor memory: 1 + the warp; 0: not said */
    const char *hi_size; /* FOR: name of a bounded size that hi stands for; NULL: a number */
    /* WAIT: so many of the stream's last transfers may go on; of a barrier 0 */
    int64_t keep;
    bool parallel; /* FOR: iterations in any order, or at once */
    /* COMPUTE: so many of out, the last ones, are scratch: no result, and never in place */
    uint32_t n_scratch;
    /* COMPUTE: [n_in] in[k] is the same part of its buffer as out[0] of its own; NULL: none is */
    const bool *same_part;
    /* COMPUTE: [n_out * n_in] out[k] may lie where in[j] does at k * n_in + j; NULL: the
     * operation's name says so */
    const bool *over;
} ot_tk_stmt;

/* Memory that is handed out in blocks: `pool P max=1M block=4K @shared`. */
typedef struct ot_tk_pool {
    const char *name;
    uint32_t line, col;
    ot_scope scope;
    int64_t max, block; /* bytes; max a multiple of block */
} ot_tk_pool;

/* A name for an extent: `size n <= 4096` is known when the kernel runs, and planned at its
 * bound; `size t = auto <= 256` is chosen by the planner, `size t = 64` is given. The latter two
 * are numbers once the kernel is read. */
typedef struct ot_tk_size {
    const char *name;
    uint32_t line, col;
    bool is_auto, is_fixed;
    int64_t bound;    /* of a fixed one: its value */
    int64_t multiple; /* what it is a multiple of; 1: anything */
    bool asks;        /* an auto one that says no multiple: at least 16, and what the target asks */
    int64_t value;    /* that the kernel was read with */
} ot_tk_size;

/* A value for a size, by name. */
typedef struct ot_tk_binding {
    const char *name;
    int64_t value;
} ot_tk_binding;

/* The value that is given for a name, the last one of several; NULL: none. */
static inline const ot_tk_binding *ot_tk_binding_of(const ot_tk_binding *given, size_t n,
                                                    const char *name)
{
    while (n > 0)
        if (strcmp(given[--n].name, name) == 0) return &given[n];
    return NULL;
}

/* Strings, arrays: all in the arena. Positions of the planner are indices into stmts. */
typedef struct ot_kernel {
    ot_arena *arena; /* owns everything, itself included */
    const char *name;
    const char *target; /* NULL: none given */
    /* pipes run side by side and wait where the text says so only; else statements run in order */
    bool explicit_sync;
    ot_tk_pool *pools; /* [n_pools] */
    uint32_t n_pools;
    ot_tk_size *sizes; /* [n_sizes] */
    uint32_t n_sizes;
    ot_tk_value *values;
    uint32_t n_values;
    ot_tk_stmt *stmts;
    uint32_t n_stmts;
} ot_kernel;

/* Parse and verify `n` bytes of text; `path` is for messages. Fails with OT_E_INPUT,
 * "path:line:col: rule". *out is to be freed with ot_kernel_free. */
ot_status ot_kernel_parse(const char *path, const char *text, size_t n, ot_diag *d,
                          ot_kernel **out) OT_MUST_USE;
/* The same with values for sizes that are not fixed: 1 to the bound. Sizes that none is given
 * for have their bound; an unknown name is OT_E_USAGE. */
ot_status ot_kernel_parse_sized(const char *path, const char *text, size_t n,
                                const ot_tk_binding *given, uint32_t n_given, ot_diag *d,
                                ot_kernel **out) OT_MUST_USE;
/* Pipe of a `copy` that does not say it. */
ot_pipe ot_tk_copy_pipe(ot_scope from, ot_scope to);
/* Print as text that parses to the same kernel: print(parse(print(k))) == print(k), byte for byte.
 */
ot_status ot_kernel_print(const ot_kernel *k, FILE *f) OT_MUST_USE;
/* Rules beyond syntax, for kernels that code built: every index in range, types of yields, inits
 * and results agree, views inside their base, no use before the definition, outside its block or
 * after free, no write to a param but by store, yields where values are carried. First
 * violation: OT_E_INPUT, "path:line:col: rule". */
ot_status ot_kernel_verify(const ot_kernel *k, const char *path, ot_diag *d) OT_MUST_USE;
void ot_kernel_free(ot_kernel *k); /* accepts NULL */

/* The setting of an operation, NULL: not given. */
const ot_tk_attr *ot_tk_attr_find(const ot_tk_stmt *s, const char *name);
/* Bits of one element, 0 for an unknown name. */
uint32_t ot_tk_dtype_bits(const char *dtype);
/* The buffer or param (or CARRIED, RESULT) that an alias or subview leads to; v itself when it
 * is none. *partial (may be NULL): a subview is on the way. */
uint32_t ot_tk_root(const ot_kernel *k, uint32_t v, bool *partial);

/* ---- tk_compute.c: what an operation asks for, whoever computes it ---- */

/* What an operation computes in: f64 with an operand in f64, f32 with one in another float (f16
 * and bf16 are summed in f32), 64-bit integers with one in them, else 32-bit integers, which are
 * unsigned with an operand in u32 and none in i32. */
typedef enum ot_tk_class {
    OT_TK_I32,
    OT_TK_U32,
    OT_TK_I64,
    OT_TK_F32,
    OT_TK_F64,
    OT_TK_CLASS_COUNT
} ot_tk_class;
ot_tk_class ot_tk_class_of(const ot_kernel *k, const ot_tk_stmt *s);
bool ot_tk_is_float(const char *dtype);
/* The name that operations are found by: small letters, no underscores. Returns buf. */
#define OT_TK_OP_KEY 64
const char *ot_tk_op_key(const char *name, char buf[OT_TK_OP_KEY]);

/* A statement, for messages. */
typedef struct ot_tk_site {
    const char *path;
    const ot_tk_stmt *s;
    ot_diag *d;
} ot_tk_site;
/* OT_E_INPUT, "path:line:col: ... [rule]". */
ot_status ot_tk_fail_at(const ot_tk_site *at, const char *rule, const char *fmt, ...)
    OT_PRINTF(3, 4);
ot_status ot_tk_vfail_at(const ot_tk_site *at, const char *rule, const char *fmt, va_list args);
#ifdef __clang_analyzer__ /* see ot_fail */
#define ot_tk_fail_at(at, rule, ...) (ot_tk_fail_at(at, rule, __VA_ARGS__), OT_E_INPUT)
#endif
/* The first number of a setting, `other` when it is not given. */
double ot_tk_setting(const ot_tk_stmt *s, const char *name, double other);
/* A setting as n integers from `least` to 10^9; one number stands for all. out: [n], filled with
 * `other` when it is not given. */
ot_status ot_tk_integers(const ot_tk_site *at, const char *name, uint32_t n, int64_t other,
                         int64_t least, int64_t *out) OT_MUST_USE;
ot_status ot_tk_integer(const ot_tk_site *at, const char *name, int64_t other,
                        int64_t *out) OT_MUST_USE;
/* n_in operands are `least` to `most`. */
ot_status ot_tk_needs(const ot_tk_site *at, uint32_t n_in, uint32_t least,
                      uint32_t most) OT_MUST_USE;
/* The output x has these dims but for axes of 1. */
ot_status ot_tk_makes(const ot_tk_site *at, const int64_t *dims, uint32_t rank,
                      const ot_tk_value *x) OT_MUST_USE;

/* ---- builder: for kernels that code writes (region_kernel.c, tests). All return OT_NONE /
 * false when memory ran out. ---- */

typedef struct ot_kernel_builder ot_kernel_builder;
/* NULL when memory ran out */
ot_kernel_builder *ot_kernel_build(const char *name, const char *target);
/* Type of a new value; returns its id. */
uint32_t ot_kb_param(ot_kernel_builder *b, const char *name, const char *dtype, const int64_t *dims,
                     uint32_t rank);
/* Where a buffer lies. */
typedef struct ot_tk_storage {
    ot_scope scope;
    int64_t align;  /* bytes; 0: the scope's */
    uint32_t multi; /* slots */
} ot_tk_storage;
uint32_t ot_kb_alloc(ot_kernel_builder *b, const char *name, const char *dtype, const int64_t *dims,
                     uint32_t rank, ot_tk_storage in);
/* Another name and shape for all of `base` (not larger than it); a part of `base`: ranges
 * [base's rank], affine over open loops with equal terms in lo and hi. Both return the new id. */
uint32_t ot_kb_alias(ot_kernel_builder *b, const char *name, uint32_t base, const char *dtype,
                     const int64_t *dims, uint32_t rank);
uint32_t ot_kb_subview(ot_kernel_builder *b, const char *name, uint32_t base,
                       const ot_tk_range *ranges);
bool ot_kb_load(ot_kernel_builder *b, uint32_t dst, uint32_t src, const ot_tk_range *ranges,
                uint32_t n_ranges);
bool ot_kb_store(ot_kernel_builder *b, uint32_t dst, const ot_tk_range *ranges, uint32_t n_ranges,
                 uint32_t src);
bool ot_kb_copy(ot_kernel_builder *b, uint32_t dst, uint32_t src);
bool ot_kb_compute(ot_kernel_builder *b, ot_pipe pipe, const char *op, const uint32_t *out,
                   uint32_t n_out, const uint32_t *in, uint32_t n_in);
/* The setting of the last compute. */
bool ot_kb_attr(ot_kernel_builder *b, const char *name, const double *values, uint32_t n,
                bool list);
/* carries nothing */
bool ot_kb_for(ot_kernel_builder *b, const char *var, int64_t lo, int64_t hi, int64_t step);
bool ot_kb_end(ot_kernel_builder *b);
/* For readers of other texts, whose lines and columns stay as they are: a value of any kind with
 * its dtype's name, dims, scope, line and column (name and dtype are copied, bytes computed; 0
 * bytes: they overflow, or the type is unknown), and a statement of any kind. FOR, WHILE and IF
 * open a block (their mates are found), ELSE begins its second branch, END closes it; lists are
 * copied. Both return the new id. ot_kb_at: the value, to be completed. */
uint32_t ot_kb_put_value(ot_kernel_builder *b, ot_tk_value v);
uint32_t ot_kb_put_stmt(ot_kernel_builder *b, ot_tk_stmt s);
ot_tk_value *ot_kb_at(ot_kernel_builder *b, uint32_t v);
uint32_t ot_kb_n_stmts(const ot_kernel_builder *b);
/* May a value have this name? */
bool ot_tk_is_value_name(const char *name);
/* Hand the kernel over (NULL when memory ran out at any earlier call, or a block is open); the
 * builder is gone either way. */
ot_kernel *ot_kb_finish(ot_kernel_builder *b);
void ot_kb_drop(ot_kernel_builder *b); /* accepts NULL */

#endif
