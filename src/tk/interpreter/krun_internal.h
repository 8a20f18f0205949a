/* Inside the interpreter of kernels: what its files share.
 *
 *   value --krun_place.c--> spans of bytes in a memory --krun_memory.c--> bytes --krun_number.c-->
 *   numbers --krun_ops.c--> numbers
 */
#ifndef OT_TK_INTERPRETER_KRUN_INTERNAL_H
#define OT_TK_INTERPRETER_KRUN_INTERNAL_H

#include "interpreter.h"

#define KRUN_INPUTS_MAX   16 /* operands of an operation */
#define KRUN_AGENTS       (OT_PIPE_COUNT + OT_TK_STREAMS_MAX)
#define KRUN_KEEP_MAX     64  /* transfers of a stream, phases of a barrier, that are remembered */
#define KRUN_PARALLEL_MAX 8   /* parallel loops around a statement */
#define KRUN_BARRIERS_MAX 256 /* of a kernel */

/* ---- memory ---- */

/* One memory of the plan, or one param. */
typedef struct krun_memory {
    uint8_t *bytes;   /* [size] poison at first */
    uint8_t *defined; /* [size] of a param: something is there; else NULL */
    uint32_t *owner;  /* [size] 1 + value that wrote the byte, 0: nobody; NULL for params */
    uint32_t *writer; /* [size] statement that did; NULL for params */
    int64_t size;
} krun_memory;

/* Bytes [at, at + n) of a memory; at -1: n bytes outside of the tensor. */
typedef struct krun_span {
    int64_t at, n;
    int64_t start; /* bytes of the list before it */
} krun_span;

typedef struct krun_spans {
    krun_span *at; /* [n] in the order of the value's elements */
    size_t n, cap;
    int64_t bytes;
} krun_spans;

/* A value as a statement finds it. */
typedef struct krun_operand {
    uint32_t value, root;
    krun_memory *memory;
    krun_spans spans;
} krun_operand;

/* ---- order ---- */

typedef struct krun_clock {
    uint32_t at[KRUN_AGENTS]; /* operations of each agent that are surely done */
} krun_clock;

typedef struct krun_stream {
    const char *name;
    krun_clock past[KRUN_KEEP_MAX]; /* after its transfer n, at n % KRUN_KEEP_MAX */
    int64_t n;                      /* transfers so far */
} krun_stream;

typedef struct krun_barrier {
    uint32_t value;
    int64_t arrived;                /* all together */
    krun_clock now;                 /* of what arrived in this phase */
    krun_clock past[KRUN_KEEP_MAX]; /* of the phases that are over */
    int64_t waits[OT_PIPE_COUNT];   /* of each pipe */
} krun_barrier;

typedef struct krun_turn {
    uint32_t loop;
    int64_t run; /* number of this execution of the loop */
    int64_t iteration;
} krun_turn;

/* Something that may still be going on. */
typedef struct krun_access {
    const krun_memory *memory;
    uint32_t value, root, stmt;
    uint32_t agent, epoch; /* the agent's operation number `epoch` */
    bool write;
    krun_span *spans; /* [n] */
    size_t n, cap;
    int64_t low, high; /* hull */
    krun_turn turns[KRUN_PARALLEL_MAX];
    uint32_t n_turns;
} krun_access;

typedef struct krun_order {
    bool on;    /* streams, explicit pipes or parallel loops: else everything is ordered */
    bool pipes; /* pipes are agents; else agent 0 stands for all of them */
    bool used[KRUN_AGENTS];
    krun_clock clock[KRUN_AGENTS];
    krun_stream *streams; /* [n_streams] agents OT_PIPE_COUNT + k */
    uint32_t n_streams;
    krun_barrier *barriers; /* [n_barriers] */
    uint32_t n_barriers;
    krun_access *accesses; /* [n_accesses] that some agent does not know to be done */
    size_t n_accesses, cap_accesses;
    krun_turn turns[KRUN_PARALLEL_MAX]; /* [n_turns] of the parallel loops around the statement */
    uint32_t n_turns;
    int64_t runs;
} krun_order;

/* ---- numbers ---- */

typedef struct krun_tensor {
    const ot_tk_value *x;
    uint32_t rank;
    int64_t dims[OT_TK_RANK_MAX], n; /* elements */
    double *v;                       /* [n] */
    size_t cap;
} krun_tensor;

/* ---- the machine ---- */

typedef struct krun_loop {
    int64_t trips, turn; /* turn -1: not under way */
    int64_t run;
    uint32_t n_alive; /* allocations when the block began */
} krun_loop;

typedef struct krun {
    const ot_kernel *k;
    const char *path;
    const ot_mem_plan *plan;
    const ot_krun_request *request;
    ot_diag *d;
    ot_arena *a;
    krun_memory memories[OT_SCOPE_COUNT];
    krun_memory *params; /* [k->n_values] of params */
    krun_loop *loops;    /* [k->n_stmts] of FOR, WHILE, IF */
    uint32_t *alive;     /* [n_alive] values that are allocated, in order */
    uint32_t n_alive;
    bool *is_alive; /* [k->n_values] */
    bool *written;  /* [k->n_values] params that some statement writes */
    bool *read;     /* [k->n_values] that some statement reads */
    uint32_t pc;
    int64_t steps;
    krun_order order;
    krun_operand in[KRUN_INPUTS_MAX], out[KRUN_INPUTS_MAX], moved;
    krun_spans scratch[2];
    krun_tensor tin[KRUN_INPUTS_MAX], tout;
    uint8_t *bytes, *more; /* [cap_bytes], [cap_more] of transfers */
    size_t cap_bytes, cap_more;
    ot_krun_result *r;
    int64_t live[OT_SCOPE_COUNT];
    size_t cap_events, cap_leaks;
} krun;

/* ---- krun_walk.c ---- */

/* "path:line:col: ... [rule]" at the current statement. */
ot_status krun_fail(const krun *m, const char *rule, const char *fmt, ...) OT_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* see ot_fail */
#define krun_fail(m, rule, ...) (krun_fail(m, rule, __VA_ARGS__), OT_E_INPUT)
#endif
static inline const ot_tk_value *krun_value(const krun *m, uint32_t v) { return &m->k->values[v]; }
/* Room for n bytes in *buffer. */
bool krun_room(krun *m, uint8_t **buffer, size_t *cap, int64_t n) OT_MUST_USE;

/* ---- krun_place.c ---- */

int64_t krun_affine(const krun *m, const ot_tk_affine *a);
/* Where value v is now. */
ot_status krun_locate(krun *m, uint32_t v, krun_operand *o) OT_MUST_USE;
/* The window of o (ranges NULL: all of it): o->spans become those of the window, row by row,
 * what is outside at -1. */
ot_status krun_window(krun *m, krun_operand *o, const ot_tk_range *ranges) OT_MUST_USE;
/* Keep the first n bytes. */
void krun_cut(krun_spans *s, int64_t n);
/* First byte of the slot that a buffer has now. */
int64_t krun_slot(const krun *m, uint32_t buffer);

/* ---- krun_memory.c ---- */

/* Copy the bytes out, in order; they must be the value's own. Outside: 0. */
ot_status krun_read(krun *m, const krun_operand *o, uint8_t *to) OT_MUST_USE;
ot_status krun_write(krun *m, const krun_operand *o, const uint8_t *from) OT_MUST_USE;
/* to[i] = from[i], all at once, undefined bytes too. */
ot_status krun_carry(krun *m, const uint32_t *to, const uint32_t *from, uint32_t n) OT_MUST_USE;
/* What a value holds in its slot is gone. */
void krun_forget(krun *m, uint32_t v);
/* Do the two share a byte? */
bool krun_overlap(const krun_operand *a, const krun_operand *b);
bool krun_same_place(const krun_operand *a, const krun_operand *b);

/* ---- krun_order.c ---- */

ot_status krun_order_init(krun *m) OT_MUST_USE;
/* The current statement runs and touches in[0..n_in) and out[0..n_out). */
ot_status krun_order_touch(krun *m, const krun_operand *in, uint32_t n_in, const krun_operand *out,
                           uint32_t n_out) OT_MUST_USE;
/* The current statement waits, arrives or is a fence. */
ot_status krun_order_sync(krun *m, const ot_tk_stmt *s) OT_MUST_USE;
/* A parallel loop begins an iteration (the first opens it), or is over. */
ot_status krun_order_turn(krun *m, uint32_t loop, int64_t iteration) OT_MUST_USE;
void krun_order_end(krun *m);

/* ---- krun_number.c ---- */

double krun_decode(const char *dtype, const uint8_t *at);
/* Round to the type: floats to nearest even, integers cut towards zero and saturated, NaN to 0. */
void krun_encode(const char *dtype, double x, uint8_t *to);
/* From one type to another, n elements. */
void krun_convert(const char *from, const uint8_t *src, const char *to, uint8_t *dst, int64_t n);
/* A result in the class that it is computed in. */
double krun_round(ot_tk_class c, double x);
float krun_f32(double x);

/* ---- krun_ops.c ---- */

/* Compute the current statement, which has its operands in m->in and m->out. */
ot_status krun_compute(krun *m, const ot_tk_stmt *s) OT_MUST_USE;

/* What an operation gets. */
typedef struct krun_call {
    krun *m;
    ot_tk_site at;
    const ot_tk_stmt *s;
    const char *name; /* small letters, no underscores */
    const krun_tensor *in;
    uint32_t n_in;
    krun_tensor *out;
    ot_tk_class c;
} krun_call;

typedef ot_status (*krun_op)(const krun_call *);
/* NULL: not in this table. */
krun_op krun_elementwise(const char *name);
krun_op krun_reduction(const char *name);
krun_op krun_product(const char *name);
krun_op krun_shaping(const char *name);
#endif
