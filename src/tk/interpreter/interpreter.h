/* Stage tk/interpreter/: a planned kernel, run on the CPU: the oracle of every other way to run it.
 *
 *   kernel + plan --krun_walk.c--> statements in order --> krun_ops.c: what an operation computes
 *   (docs/kernels/language.md)
 *        memories of the plan's heights, poisoned ------^   krun_memory.c: who owns each byte
 *        streams, pipes, parallel iterations -----------^   krun_order.c: which accesses are
 *                                                           ordered
 *
 * It is hostile: what nobody wrote, what another buffer has overwritten, what two pipes touch
 * without an order between them, is an error that names the statements. Nothing is fast.
 */
#ifndef OT_TK_INTERPRETER_INTERPRETER_H
#define OT_TK_INTERPRETER_INTERPRETER_H

#include "tk/planmem/planmem.h"

/* A dense array, row by row, in the machine's byte order. */
typedef struct ot_krun_array {
    const char *name;
    const char *dtype; /* as kernels name it: "f32" */
    uint32_t rank;     /* 0: one element */
    int64_t dims[OT_TK_RANK_MAX];
    const void *data;
} ot_krun_array;

typedef struct ot_krun_request {
    const ot_krun_array *inputs; /* [n_inputs] of params, by name */
    uint32_t n_inputs;
    bool restricted;    /* planned with in-place rules of the instruction set */
    bool events;        /* keep every allocation, transfer and free */
    int64_t step_limit; /* statements; 0: 2^30 */
} ot_krun_request;

typedef struct ot_krun_scope {
    ot_scope scope;
    /* bytes of buffers that are allocated at the end: never freed, and no block ended them */
    int64_t allocated;
    int64_t peak;   /* most at one time */
    int64_t freed;  /* all together */
    int64_t height; /* of the plan */
} ot_krun_scope;

typedef struct ot_krun_pipe {
    int64_t operations; /* transfers and computations */
    int64_t bytes;      /* read and written */
} ot_krun_pipe;

typedef enum ot_krun_what {
    OT_KRUN_ALLOC,
    OT_KRUN_FREE,
    OT_KRUN_MOVE,
    OT_KRUN_COMPUTE
} ot_krun_what;

typedef struct ot_krun_event {
    int64_t step; /* statements run before it: the time of a run, the same on every machine */
    ot_krun_what what;
    uint32_t stmt;  /* of a free at a block's end: the allocation */
    uint32_t value; /* whose */
    int64_t bytes;  /* allocated, freed, moved or written */
    int64_t offset; /* of an allocation */
} ot_krun_event;

typedef struct ot_krun_leak {
    uint32_t value; /* allocated outside of blocks and never freed */
    int64_t bytes;
} ot_krun_leak;

typedef struct ot_krun_result {
    ot_arena *arena;        /* owns everything, itself included */
    ot_krun_array *outputs; /* [n_outputs] params that something wrote, in order */
    int64_t *unwritten;     /* [n_outputs] bytes of them that nothing wrote: 0 there */
    uint32_t n_outputs;
    ot_krun_scope scopes[OT_SCOPE_COUNT]; /* [n_scopes] those with buffers */
    uint32_t n_scopes;
    ot_krun_pipe pipes[OT_PIPE_COUNT];
    int64_t steps;       /* statements run */
    ot_krun_leak *leaks; /* [n_leaks] */
    uint32_t n_leaks;
    ot_krun_event *events; /* [n_events] when asked for */
    size_t n_events;
} ot_krun_result;

/* Run a verified kernel where p has put its buffers. Fails with OT_E_INPUT, "path:line:col: ...
 * [rule]": an input that is missing or of another type, an operation that is not known or does
 * not fit its operands, a read of what was not written or was overwritten, a race, a barrier
 * that never opens, an unknown trip count. *out is to be freed with ot_krun_free. */
ot_status ot_krun(const ot_kernel *k, const char *path, const ot_mem_plan *p,
                  const ot_krun_request *r, ot_diag *d, ot_krun_result **out) OT_MUST_USE;
void ot_krun_free(ot_krun_result *r); /* accepts NULL */

/* Events as a trace for chrome://tracing; a step is a microsecond there. */
ot_status ot_krun_trace(const ot_kernel *k, const ot_krun_result *r, FILE *f) OT_MUST_USE;

#endif
