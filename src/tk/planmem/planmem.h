/* Stage tk/planmem/: kernels and tables of buffers --> offsets, scope by scope.
 *
 *   kernel --lifetime.c--> buffers with live spans --mem_plan.c--> each scope: sequential,
 *   PlanMemory (seed 002), or the packing search
 */
#ifndef OT_TK_PLANMEM_PLANMEM_H
#define OT_TK_PLANMEM_PLANMEM_H

#include "tk/language/kernel.h"
#include "pack/pack.h"
#include "machine/tk_machine.h"

/* Lifetimes. One `ot_buffer` is the storage of one alloc, or of several that were merged: in
 * place, or by carried values and yields. Positions are statement indices: a buffer read last by
 * statement p and another first written by p both hold position p, so they meet (operations read
 * while they write) unless they were merged in place. */
typedef struct ot_buffer {
    /* [n_values] ids of the allocs it stores, ascending; without alloc: of the carried values
     * and results (also of a carried value that keeps what was yielded apart, as swaps need);
     * values[0] stands for all in messages */
    const uint32_t *values;
    uint32_t n_values;
    ot_scope scope;
    uint32_t pool;                  /* 1 + the kernel's pool that it is allocated from; 0: none */
    int64_t size;                   /* of one slot: the largest value, rounded up to nothing */
    int64_t align;                  /* least common multiple of the values' and the scope's */
    uint32_t multi;                 /* slots */
    int64_t fixed[OT_TK_MULTI_MAX]; /* -1: free */
    /* [n_live] ascending, disjoint: a value that is read later, or any access; a value alive
     * around a back edge counts for the whole loop. Empty when no statement touches the buffer */
    const ot_span *live;
    uint32_t n_live;
    uint32_t loop;  /* innermost FOR or WHILE that holds all its accesses, or OT_NONE */
    uint32_t pipes; /* bit set of the pipes of statements that write or read it */
    bool dma;       /* touched by dma_in or dma_out */
} ot_buffer;

typedef struct ot_lifetimes {
    ot_arena *arena;    /* owns everything, itself included */
    ot_buffer *buffers; /* [n_buffers], in order of first write; those never written last */
    uint32_t n_buffers;
    /* [kernel n_values] index into buffers for allocs, aliases, subviews, carried, results;
     * OT_NONE: param */
    const uint32_t *buffer_of;
    uint32_t n_in_place; /* merges by in-place rules */
    /* places where an init, a yielded or a carried value is copied, since the two could not
     * share */
    uint32_t n_copies;
    /* [n_warnings] "line:col: ..." dead buffers, reads of what was never written */
    const char *const *warnings;
    uint32_t n_warnings;
    /* the first buffer, and the operation that reads it, of which no byte was written before (an
     * operation that adds to it, calls and transfers do not count); OT_NONE: none */
    uint32_t unwritten, unwritten_stmt;
} ot_lifetimes;

typedef struct ot_lifetime_options {
    bool no_in_place;       /* merge nothing by in-place rules */
    bool restrict_in_place; /* only what the instruction set allows (--restrict-inplace) */
    /* a multi-buffer holds its memory for the whole of its loop, so that the transfer of the
     * next iteration never waits for a buffer that shares it; a single buffer that an in-place
     * rule joins to it gets its slots */
    bool hold_multi;
    bool by_path; /* warn, too, where some path to a read writes nothing, though others do */
} ot_lifetime_options;

/* Gen/kill analysis over the linearised kernel. Requires a verified kernel. Fails with
 * OT_E_INPUT when the kernel asks for what cannot be (a multi-buffer that keeps a value from one
 * iteration to the next), "path:line:col: ...". Scope alignments are from the target. */
ot_status ot_lifetimes_find(const ot_kernel *k, const char *path, const ot_tk_machine *t,
                            const ot_lifetime_options *o, ot_diag *d,
                            ot_lifetimes **out) OT_MUST_USE;
void ot_lifetimes_free(ot_lifetimes *l); /* accepts NULL */

/* inplace.c: may output `out` of a compute statement named `op` overwrite its input `in`? By
 * operation only: same size, last use and the rest are the caller's to check. */
bool ot_in_place_rule(const char *op, uint32_t in, bool restricted);

/* ---- planning of one kernel ---- */

typedef enum ot_mem_mode {
    OT_MEM_AUTO,
    OT_MEM_SEQUENTIAL,
    OT_MEM_REUSE,
    OT_MEM_SEARCH
} ot_mem_mode;
const char *ot_mem_mode_name(ot_mem_mode m);

/* How a scope was planned, from best to worst for the pipes. */
typedef enum ot_reuse_level {
    OT_LEVEL_NONE = 4, /* sequential: nothing shares */
    OT_LEVEL_3 = 3,    /* sharing only between buffers of one pipe, and never with DMA */
    OT_LEVEL_2 = 2,    /* the same inside of one loop; those of different loops share */
    OT_LEVEL_1 = 1,    /* a single buffer that shares with a multi-buffer of its loop becomes one */
    OT_LEVEL_0 = 0     /* any disjoint lifetimes */
} ot_reuse_level;

/* What is planned: the memories of the device, buffers in global memory (workspaces), or both.
 * What is not stays as it is. */
typedef enum ot_mem_part { OT_MEM_BOTH, OT_MEM_LOCAL, OT_MEM_WORKSPACE } ot_mem_part;
static inline bool ot_mem_plans(ot_mem_part part, ot_scope scope)
{
    return part == OT_MEM_BOTH || (part == OT_MEM_WORKSPACE) == (scope == OT_SCOPE_GM);
}

typedef struct ot_mem_options {
    ot_mem_mode mode;      /* auto: sequential, else reuse, else search */
    int64_t capacity;      /* in place of the target's, for every scope but gm; 0: the target's */
    int64_t fast_capacity; /* in place of the target's, for l2 alone; 0: the target's */
    double time_limit;     /* for search; 0: none, steps only */
    int64_t step_limit;    /* for search, of each scope; 0: the default of ot_pack */
    uint32_t threads;
    ot_mem_part part;
    /* buffers in global memory may share; default of the command: off (seed 002) */
    bool workspace_reuse;
    ot_lifetime_options lifetimes;
} ot_mem_options;

typedef struct ot_scope_plan {
    ot_scope scope;
    int64_t capacity;     /* 0: unlimited */
    int64_t height;       /* bytes used */
    int64_t lower_bound;  /* max live bytes, every slot of multi-buffers counted */
    int64_t sum;          /* bytes without any reuse */
    ot_mem_mode mode;     /* that made the plan: sequential, reuse or search */
    ot_reuse_level level; /* lowest level that any buffer needed */
    uint32_t n_buffers;
    uint32_t rollbacks, restarts; /* of PlanMemory's last round: the one that made the plan */
    uint32_t n_upgraded;          /* single buffers made double by level 1 */
    /* pairs that share memory across pipes: each costs a dependency */
    uint32_t n_cross_pipe;
    bool proved; /* height is the least possible */
    bool timed_out;
    /* of a table with pairs that share bytes at a price: */
    bool priced;
    int64_t reuse_cost;       /* what is paid */
    int64_t reuse_cost_bound; /* within the capacity, or this height, none pays less */
    bool reuse_cost_proved;   /* what is paid is the least possible there */
    const char *reuse;        /* the same in words, by whom it is shown; NULL: not priced */
} ot_scope_plan;

typedef struct ot_mem_plan {
    ot_arena *arena;               /* owns everything, itself included */
    const ot_lifetimes *lifetimes; /* owned */
    /* [n_buffers] per slot; -1 beyond its slots. Dead buffers get offset 0 */
    int64_t (*offsets)[OT_TK_MULTI_MAX];
    /* [n_buffers] slots after level 1 upgrades; 0: in a memory that is not planned */
    uint32_t *multi;
    ot_mem_part part;
    ot_reuse_level *level; /* [n_buffers] */
    ot_scope_plan scopes[OT_SCOPE_COUNT];
    uint32_t n_scopes; /* planned scopes with buffers, in ot_scope order */
} ot_mem_plan;

/* Plan every scope of a verified kernel; `path` is for messages. Deterministic (unless a scope
 * timed_out). Overflow: OT_E_BUDGET,
 *   "path:line:col: ub overflow, requires N bits while M bits available! (possible reason: tiling
 *   basic block is too large or
 *   block number is more than what user expect due to multi-buffer feature is enabled and some ops
 *   need extra local buffer.)
 *   smallest explaining set: a (8192 B), b x2 (16384 B) at line L"
 * (one line). The set ends in " at line L" when it is alive there together, else in ", sharing
 * nothing", " at the given offset", ", which cannot be placed together" or, where that is not
 * proved, ", no plan found for them". A scope that the target does not have: OT_E_INPUT. The
 * result is checked by ot_mem_plan_check always. */
ot_status ot_mem_plan_kernel(const ot_kernel *k, const char *path, const ot_tk_machine *t,
                             const ot_mem_options *o, ot_diag *d, ot_mem_plan **out) OT_MUST_USE;
void ot_mem_plan_free(ot_mem_plan *p); /* accepts NULL */
/* Validator of kernel plans: O(n^2), no shared code: slots of one buffer disjoint, live buffers
 * disjoint, aligned, inside. */
ot_status ot_mem_plan_check(const ot_kernel *k, const ot_mem_plan *p, ot_diag *d) OT_MUST_USE;
/* Write the planned offsets (and multi counts) into the kernel's allocs, and those of storages
 * without alloc into the places of a carried value or result that they hold. */
void ot_mem_plan_apply(const ot_mem_plan *p, ot_kernel *k);

/* mem_scope.c: choose a memory for each alloc that says `@auto` (and what is made of it), by
 * size, use and target, and check the kernel again. reasons: [*n] lines for the reader, in the
 * arena; NULL: not wanted. */
ot_status ot_mem_choose_scopes(ot_kernel *k, const char *path, const ot_tk_machine *t, ot_diag *d,
                               ot_arena *a, const char ***reasons, uint32_t *n) OT_MUST_USE;

/* mem_text.c: read a kernel, choose its memories and its `auto` sizes (the largest multiples
 * that fit, one after the other), and plan it. given: values of sizes. Where a fixed size is too
 * large the message says the largest that fits. *k, *p are the caller's; *bound: the kernel at
 * the bounds of its sizes, the one that was planned: p belongs to it; *k has the given sizes and
 * the same places. */
typedef struct ot_mem_text {
    const char *path, *text;
    size_t n;
    const ot_tk_binding *given; /* [n_given] */
    uint32_t n_given;
    const ot_tk_machine *target;
    const ot_mem_options *options;
    const char **notes; /* [n_notes] out: sizes and memories that were chosen, in the arena */
    uint32_t n_notes;
} ot_mem_text;
ot_status ot_mem_plan_text(ot_mem_text *m, ot_arena *a, ot_diag *d, ot_kernel **k,
                           ot_mem_plan **p) OT_MUST_USE;

/* Where the buffers of one scope are put; the arrays are the caller's. */
typedef struct ot_scope_places {
    int64_t (*offsets)[OT_TK_MULTI_MAX]; /* [n] as in ot_mem_plan, as are multi and level */
    uint32_t *multi;
    ot_reuse_level *level;
    ot_scope_plan *stats;
    bool fits;          /* else there is no plan */
    int64_t needed;     /* the plan's height; where there is none, the height that level 0 wants */
    int64_t work_limit; /* slots that are looked at, at most; 0: some seconds' */
    bool cut;           /* that ended it: with more a higher level, or a plan, may be found */
} ot_scope_places;
/* planmem.c: one scope by PlanMemory's levels (seed 002). buffers: those of the scope. */
ot_status ot_planmem(const ot_buffer *const *buffers, uint32_t n, const ot_kernel *k,
                     int64_t capacity, ot_arena *a, ot_diag *d, ot_scope_places *out) OT_MUST_USE;

/* ---- table_plan.c: a table of buffers in one memory ---- */

typedef struct ot_table_layout {
    int64_t *offsets; /* [n] the caller's */
    ot_scope_plan memory;
    int64_t steps; /* of the search */
} ot_table_layout;
/* Offsets of a table, by mode: search (and auto) is ot_pack; reuse is ot_pack_greedy, the
 * largest first at the lowest place; sequential puts one behind the other. Checked
 * by ot_pack_check. Fails with OT_E_BUDGET when o->capacity is passed, as ot_mem_plan_kernel
 * says it. */
ot_status ot_pack_table(const ot_pack_file *f, const char *path, ot_mem_mode mode,
                        const ot_pack_options *o, ot_diag *d, ot_table_layout *out) OT_MUST_USE;

#endif
