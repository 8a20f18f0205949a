/* Stage bufplan/: static memory planning. Two layers:
 *
 *   pack:   rectangles (lifetime x size) -> offsets. Knows time, sizes, alignment; nothing of kernels.
 *   kernel: .tk kernel -> lifetimes, in-place merges -> PlanMemory levels or packing, per scope -> offsets in the kernel.
 *
 *        offset ^   +-----+  +--------+
 *               |   |  b  |  |   d    |        height = max(offset + size)
 *               | +-+-----+--+-+------+        lower bound = max over time of the live sizes
 *               | |     a      |   c  |
 *               +-+------------+------+---> time
 */
#ifndef OT_BUFPLAN_H
#define OT_BUFPLAN_H

#include "kernel/kernel.h"
#include "plan/target/target.h"

/* ================= pack: one memory ================= */

typedef struct ot_span {
    int64_t lower, upper; /* half-open, lower < upper */
} ot_span;

typedef struct ot_pack_item {
    int64_t lower, upper; /* lifetime, half-open, lower < upper */
    int64_t size;         /* bytes, >= 0 */
    int64_t alignment;    /* >= 1 (no power of two needed) */
    int64_t fixed;        /* offset that is given; -1: free */
    int64_t hint;         /* preferred offset, tried first; -1: none */
    const ot_span *gaps;  /* [n_gaps] disjoint, ascending, inside the lifetime: the buffer holds nothing then */
    uint32_t n_gaps;
} ot_pack_item;

typedef struct ot_pack_problem {
    const ot_pack_item *items; /* [n] */
    uint32_t n;
} ot_pack_problem;

/* Rules of the search; tests switch them off one by one (answers must not change, only the effort). */
typedef enum ot_pack_rule {
    OT_PACK_SECTIONS = 1,  /* a section whose floor plus the sizes still to come passes the capacity is a dead end */
    OT_PACK_RAISE = 2,     /* floors rise to the lowest place that any item still to come can take */
    OT_PACK_DOMINANCE = 4, /* height given up reaches to the next level at which an item can rest */
    OT_PACK_DECOMPOSE = 8, /* parts that no item to come connects are searched apart */
    OT_PACK_DYNAMIC = 16,  /* next section: fewest options per failure seen there; off: lowest floor, leftmost */
    OT_PACK_SYMMETRY = 32, /* equal items in one order only */
    OT_PACK_MEMO = 64,     /* states that failed are remembered */
    OT_PACK_RULES_ALL = 127
} ot_pack_rule;

typedef struct ot_pack_options {
    int64_t capacity;   /* > 0: any packing of at most this height; 0: the lowest */
    double time_limit;  /* seconds; 0: none */
    int64_t step_limit; /* search steps (deterministic); 0: a default that ends within seconds */
    uint32_t threads;   /* 0 or 1: one; the result is the same for any number unless time ran out */
    uint32_t rules;     /* OT_PACK_RULES_ALL */
} ot_pack_options;

typedef struct ot_pack_result {
    int64_t height;      /* of offsets */
    int64_t lower_bound; /* largest sum of live sizes, fixed offsets and alignment considered */
    bool found;          /* capacity 0: always; else height <= capacity */
    bool proved;         /* height is the least possible; or, when !found, that nothing fits */
    bool timed_out;      /* time_limit ended the search: another run may find another result */
    int64_t steps;       /* search steps taken */
    double seconds;
} ot_pack_result;

/* Place all items. offsets: [n] out; when !found they hold the best packing (height > capacity). Deterministic unless timed_out.
 * Fails: OT_E_INPUT when an item breaks the rules above, its number named; OT_E_NOMEM. */
ot_status ot_pack(const ot_pack_problem *p, const ot_pack_options *o, ot_diag *d, int64_t *offsets, ot_pack_result *r) OT_MUST_USE;

/* Largest sum of sizes alive at one time (gaps excluded), at least the largest fixed end. -1 on overflow. */
int64_t ot_pack_lower_bound(const ot_pack_problem *p);
/* Do the lifetimes, less their gaps, meet? */
bool ot_pack_meet(const ot_pack_item *a, const ot_pack_item *b);

/* Best-fit: items in the given order (NULL: by size, then lifetime; the "greedy by size" of the literature), each at the lowest
 * offset that is free for its whole lifetime. offsets: [n]. O(n * neighbours). */
ot_status ot_pack_greedy(const ot_pack_problem *p, const uint32_t *order, int64_t *offsets, int64_t *height) OT_MUST_USE;

/* The validator: O(n^2), shares no code with the planners. capacity 0: not checked. Fails with OT_E_INPUT and a reason of its own
 * for each rule: negative offset, alignment, fixed offset moved, above capacity, overlap (both items named). names: [n] or NULL. */
ot_status ot_pack_check(const ot_pack_problem *p, const int64_t *offsets, int64_t capacity, const char *const *names,
                        ot_diag *d) OT_MUST_USE;

/* ---- csv.c: id,lower,upper,size[,alignment][,gaps][,hint][,offset] as minimalloc reads it ---- */

typedef struct ot_pack_file {
    ot_arena *arena; /* owns everything, itself included */
    ot_pack_problem problem;
    const char **names; /* [n] */
    void *table;        /* the cells as read, for writing back */
    uint32_t n_windows; /* gaps that keep a part of the buffer: planned as if it kept all, so a proof is none */
} ot_pack_file;
ot_status ot_pack_read_csv(const char *path, const char *text, size_t n, ot_diag *d, ot_pack_file **out) OT_MUST_USE;
/* The columns as read, `offset` filled in or added. */
ot_status ot_pack_write_csv(const ot_pack_file *f, const int64_t *offsets, FILE *out) OT_MUST_USE;
void ot_pack_file_free(ot_pack_file *f); /* accepts NULL */

/* ================= kernels ================= */

/* Lifetimes. One `ot_buffer` is the storage of one alloc, or of several that were merged: in place, or by carried values and
 * yields. Positions are statement indices: a buffer read last by statement p and another first written by p both hold position p,
 * so they meet (operations read while they write) unless they were merged in place. */
typedef struct ot_buffer {
    const uint32_t *values; /* [n_values] ids of the allocs it stores, ascending; without alloc: of the carried values and results
                               (also of a carried value that keeps what was yielded apart, as swaps need); values[0] stands for
                               all in messages */
    uint32_t n_values;
    ot_scope scope;
    int64_t size;                   /* of one slot: the largest value, rounded up to nothing */
    int64_t align;                  /* least common multiple of the values' and the scope's */
    uint32_t multi;                 /* slots */
    int64_t fixed[OT_TK_MULTI_MAX]; /* -1: free */
    const ot_span *live; /* [n_live] ascending, disjoint: a value that is read later, or any access; a value alive around a back
                               edge counts for the whole loop. Empty when no statement touches the buffer */
    uint32_t n_live;
    uint32_t loop;  /* innermost FOR or WHILE that holds all its accesses, or OT_NONE */
    uint32_t pipes; /* bit set of the pipes of statements that write or read it */
    bool dma;       /* touched by dma_in or dma_out */
} ot_buffer;

typedef struct ot_lifetimes {
    ot_arena *arena;    /* owns everything, itself included */
    ot_buffer *buffers; /* [n_buffers], in order of first write; those never written last */
    uint32_t n_buffers;
    const uint32_t
        *buffer_of;      /* [kernel n_values] index into buffers for allocs, aliases, subviews, carried, results; OT_NONE: param */
    uint32_t n_in_place; /* merges by in-place rules */
    uint32_t n_copies;   /* places where an init, a yielded or a carried value is copied, since the two could not share */
    const char *const *warnings; /* [n_warnings] "line:col: ..." dead buffers, reads of what was never written */
    uint32_t n_warnings;
} ot_lifetimes;

typedef struct ot_lifetime_options {
    bool no_in_place;       /* merge nothing by in-place rules */
    bool restrict_in_place; /* only what the instruction set allows (--restrict-inplace) */
    bool hold_multi;        /* a multi-buffer holds its memory for the whole of its loop, so that the transfer of the next
                               iteration never waits for a buffer that shares it; a single buffer that an in-place rule
                               joins to it gets its slots */
} ot_lifetime_options;

/* Gen/kill analysis over the linearised kernel. Requires a verified kernel. Fails with OT_E_INPUT when the kernel asks for what
 * cannot be (a multi-buffer that keeps a value from one iteration to the next), "path:line:col: ...". Scope alignments are
 * from the target. */
ot_status ot_lifetimes_find(const ot_kernel *k, const char *path, const ot_target *t, const ot_lifetime_options *o, ot_diag *d,
                            ot_lifetimes **out) OT_MUST_USE;
void ot_lifetimes_free(ot_lifetimes *l); /* accepts NULL */

/* inplace.c: may output `out` of a compute statement named `op` overwrite its input `in`? By operation only: same size, last use
 * and the rest are the caller's to check. */
bool ot_in_place_rule(const char *op, uint32_t in, bool restricted);

/* ---- planning of one kernel ---- */

typedef enum ot_mem_mode { OT_MEM_AUTO, OT_MEM_SEQUENTIAL, OT_MEM_REUSE, OT_MEM_SEARCH } ot_mem_mode;
const char *ot_mem_mode_name(ot_mem_mode m);

/* How a scope was planned, from best to worst for the pipes. */
typedef enum ot_reuse_level {
    OT_LEVEL_NONE = 3, /* sequential: nothing shares */
    OT_LEVEL_2 = 2,    /* sharing only between buffers of one pipe, and never with DMA */
    OT_LEVEL_1 = 1,    /* a single buffer that shares with a multi-buffer of its loop becomes one */
    OT_LEVEL_0 = 0     /* any disjoint lifetimes */
} ot_reuse_level;

typedef struct ot_mem_options {
    ot_mem_mode mode;   /* auto: sequential, else reuse, else search */
    int64_t capacity;   /* in place of the target's, for every scope but gm; 0: the target's */
    double time_limit;  /* for search; 0: none, steps only */
    int64_t step_limit; /* for search, of each scope; 0: the default of ot_pack */
    uint32_t threads;
    bool workspace_reuse; /* buffers in global memory may share; default of the command: off (seed 002) */
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
    uint32_t n_cross_pipe;        /* pairs that share memory across pipes: each costs a dependency */
    bool proved;                  /* height is the least possible */
    bool timed_out;
} ot_scope_plan;

typedef struct ot_mem_plan {
    ot_arena *arena;                     /* owns everything, itself included */
    const ot_lifetimes *lifetimes;       /* owned */
    int64_t (*offsets)[OT_TK_MULTI_MAX]; /* [n_buffers] per slot; -1 beyond its slots. Dead buffers get offset 0 */
    uint32_t *multi;                     /* [n_buffers] slots after level 1 upgrades */
    ot_reuse_level *level;               /* [n_buffers] */
    ot_scope_plan scopes[OT_SCOPE_COUNT];
    uint32_t n_scopes; /* scopes with buffers, in ot_scope order */
} ot_mem_plan;

/* Plan every scope of a verified kernel; `path` is for messages. Deterministic (unless a scope timed_out). Overflow: OT_E_BUDGET,
 *   "path:line:col: ub overflow, requires N bits while M bits available! (possible reason: tiling basic block is too large or
 *   block number is more than what user expect due to multi-buffer feature is enabled and some ops need extra local buffer.)
 *   smallest explaining set: a (8192 B), b x2 (16384 B) at line L"
 * (one line). The set ends in " at line L" when it is alive there together, else in ", sharing nothing", " at the given offset",
 * ", which cannot be placed together" or, where that is not proved, ", no plan found for them".
 * A scope that the target does not have: OT_E_INPUT. The result is checked by ot_mem_plan_check always. */
ot_status ot_mem_plan_kernel(const ot_kernel *k, const char *path, const ot_target *t, const ot_mem_options *o, ot_diag *d,
                             ot_mem_plan **out) OT_MUST_USE;
void ot_mem_plan_free(ot_mem_plan *p); /* accepts NULL */
/* Validator of kernel plans: O(n^2), no shared code: slots of one buffer disjoint, live buffers disjoint, aligned, inside. */
ot_status ot_mem_plan_check(const ot_kernel *k, const ot_mem_plan *p, ot_diag *d) OT_MUST_USE;
/* Write the planned offsets (and multi counts) into the kernel's allocs. */
void ot_mem_plan_apply(const ot_mem_plan *p, ot_kernel *k);

/* planmem.c: one scope by PlanMemory's levels (seed 002). buffers: those of the scope. offsets, multi, level: as in ot_mem_plan,
 * for these n. false in *fits: no plan; *needed is then the height that level 0 wants (else the plan's). */
ot_status ot_planmem(const ot_buffer *const *buffers, uint32_t n, const ot_kernel *k, int64_t capacity, ot_arena *a, ot_diag *d,
                     int64_t (*offsets)[OT_TK_MULTI_MAX], uint32_t *multi, ot_reuse_level *level, ot_scope_plan *stats, bool *fits,
                     int64_t *needed) OT_MUST_USE;

/* ---- svg.c: time x offset map ---- */

typedef struct ot_map_box {
    const char *name;
    int64_t lower, upper, offset, size;
    uint32_t kind; /* colour and pattern: 0 none, 1 + ot_pipe */
} ot_map_box;

typedef struct ot_map_plot {
    const char *title;
    const char *time;        /* label of the time axis */
    int64_t from, to;        /* times that it shows at least; equal: those of the boxes */
    const ot_map_box *boxes; /* [n] */
    uint32_t n;
    int64_t height, lower_bound;
    int64_t capacity; /* 0: no line for it */
} ot_map_plot;

/* A self-contained SVG document, one map below the other. Names are escaped; deterministic; below 5 MB whatever n is (the
 * smallest boxes lose their tooltips, then go). */
ot_status ot_maps_svg(const ot_map_plot *plots, uint32_t n, const char *title, FILE *f) OT_MUST_USE;
/* One map. capacity 0: no line for it. */
ot_status ot_map_svg(const ot_map_box *boxes, uint32_t n, int64_t height, int64_t lower_bound, int64_t capacity, const char *title,
                     FILE *f) OT_MUST_USE;

/* ---- region_kernel.c, region_memory.c, arena.c: the way into the optimizer ---- */

struct ot_region;
struct ot_graph;
/* The kernel of one tile loop nest of a planned region: loads of the input windows, the operators, stores of the pieces; weights
 * loaded before the loop when they stay resident; every buffer has the size of its largest tile, scope l2. */
ot_status ot_region_kernel(const struct ot_graph *g, const struct ot_region *r, const ot_target *t, ot_diag *d,
                           ot_kernel **out) OT_MUST_USE;

typedef struct ot_region_memory {
    int64_t height;      /* of the planned scope l2: the region's working set */
    int64_t lower_bound; /* most bytes live at once */
    bool proved;         /* height is the least possible */
} ot_region_memory;
/* Lower the region and plan its fast memory as low as a bounded search gets, whatever the target's capacity. Deterministic.
 * kernel: NULL, or the kernel with its offsets (caller frees). */
ot_status ot_region_plan_memory(const struct ot_graph *g, const struct ot_region *r, const ot_target *t, ot_diag *d,
                                ot_region_memory *out, ot_kernel **kernel) OT_MUST_USE;

typedef struct ot_arena_figures {
    int64_t naive;       /* sum of all activations */
    int64_t lower_bound; /* max live bytes */
    int64_t planned;     /* height of our plan */
    int64_t greedy;      /* height of greedy by size */
    int64_t in_place;    /* height of our plan with in-place merges (and reshapes as views) */
    uint32_t n_buffers;
    bool proved; /* planned is the least possible */
} ot_arena_figures;
/* Arena of an untiled graph's activations in graph.order. Requires ORDER, USES, SHAPES; values of unknown size are left out
 * (counted in n_unknown). Deterministic: bounded by steps. */
ot_status ot_graph_arena(const struct ot_graph *g, ot_arena_figures *out, uint32_t *n_unknown) OT_MUST_USE;

/* Another course of events than node by node: several nodes in one step, values that lie nowhere, other things that do. */
typedef struct ot_arena_steps {
    const uint32_t *step_of; /* [g->n_nodes] 1 .. n of each live node; a node's inputs are made at its step or before */
    uint32_t n;
    const bool *absent;        /* [g->n_values]; NULL: none */
    const ot_pack_item *extra; /* [n_extra] with lifetimes in steps */
    uint32_t n_extra;
} ot_arena_steps;

/* The plan whose height is ot_arena_figures.planned. Step 0 is the caller's, who writes the inputs, the last one too. */
typedef struct ot_arena_layout {
    const ot_pack_item *items; /* [n] lifetimes in steps */
    const ot_id *values;       /* [n] whose they are; OT_NONE of extra ones, which come last */
    const int64_t *offsets;    /* [n] */
    uint32_t n, n_steps;
    int64_t height, lower_bound;
    bool proved;
} ot_arena_layout;
/* Everything in arena a. Requires and fails as ot_graph_arena. */
ot_status ot_graph_arena_layout(const struct ot_graph *g, const ot_arena_steps *steps, ot_arena *a, ot_arena_layout *out,
                                uint32_t *n_unknown) OT_MUST_USE;

#endif
