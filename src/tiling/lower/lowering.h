/* Stage tiling/lower/: what a planned region needs of the fast memory, and what an untiled graph
 * needs of the slow one. */
#ifndef OT_TILING_LOWER_LOWERING_H
#define OT_TILING_LOWER_LOWERING_H

#include "machine/target/target.h"
#include "tk/planmem/planmem.h"
#include "tiling/region.h"

typedef struct ot_region_memory {
    int64_t height;      /* of the planned scope l2: the region's working set */
    int64_t lower_bound; /* most bytes live at once */
    bool proved;         /* height is the least possible */
    /* Where its buffers are put, when the kernel is asked for: */
    /* bytes that they take; height, or more where sharing less costs nothing */
    int64_t arena;
    ot_mem_mode mode;     /* that made the plan */
    ot_reuse_level level; /* lowest level of sharing that any buffer needed */
    uint32_t cross_pipe;  /* pairs that share memory across pipes */
    /* seconds that transfers and operators wait for each other because of that, all tiles
     * together; 0 where the time counts on no overlap */
    double stall;
} ot_region_memory;
/* Lower the region and plan its fast memory as low as a bounded search gets, whatever the
 * target's capacity. Deterministic. kernel: NULL, or the kernel with its offsets (caller frees).
 * On targets with DMA, whose pipes wait for each other where they share memory, the offsets are
 * PlanMemory's in the whole fast memory: nothing shares when all fits, else as little as fits;
 * those of the search only when that finds none. arena, mode, level, cross_pipe and stall are of
 * that plan, whether the kernel is asked for or not, if it fits at all. Elsewhere the offsets
 * are those of the search. */
ot_status ot_region_plan_memory(const ot_graph *g, const ot_region *r, const ot_target *t,
                                ot_diag *d, ot_region_memory *out, ot_kernel **kernel) OT_MUST_USE;

/* ---- kernels that run: lower_region.c, inner_nest.c ---- */

/* How one operator's tile is done in blocks in the memories of the cores: what the second level
 * chose for it. */
typedef struct ot_inner_op {
    const char *node;      /* name, or the operator's type where it has none */
    const char *operation; /* of the kernel: static, as unit */
    const char *unit;      /* "cube", "vector" */
    uint32_t rank;
    /* of the tile that it makes, of a block */
    int64_t extent[OT_TK_RANK_MAX], block[OT_TK_RANK_MAX];
    /* of products: what is summed up; else 0 */
    int64_t depth, depth_block;
    int64_t n_blocks; /* blocks of the tile */
    /* moved between the fast memory and the cores for the tile */
    int64_t bytes;
    /* bytes that rows of whole DMA granules save of that; 0: nothing was snapped */
    int64_t granules_saved;
    double time; /* seconds that moving takes, predicted */
} ot_inner_op;

/* A region as a kernel that runs (tk/interpreter/interpreter.h): every tile with its own windows
 * and borders, in the places of the planned kernel. Params are the region's inputs and outputs
 * and the constants that it reads, by their names in the model (made legal). */
typedef struct ot_lowered_region {
    /* with offsets; the caller frees it. NULL: there is none, and `why` says what is in the way */
    ot_kernel *kernel;
    const char *why; /* in the arena; NULL: there is a kernel */
    ot_region_memory memory;
    ot_scope_plan scopes[OT_SCOPE_COUNT]; /* [n_scopes] that the lowered kernel uses */
    uint32_t n_scopes;
    struct ot_region_param {
        ot_id value; /* of the graph */
        uint32_t at; /* param of the kernel */
        bool is_output;
    } const *params; /* [n_params] in the arena */
    uint32_t n_params;
    /* [n_inner] operators in blocks, in the order of the lowered kernel; in the arena */
    const ot_inner_op *inner;
    uint32_t n_inner;
} ot_lowered_region;

/* operators run in blocks in the memories of the target's cores (Ascend: l1, l0a, l0b, l0c, ub;
 * GPU: shared, fragment), where it has some; sizes of blocks by cost */
#define OT_LOWER_BLOCKS 1u
/* only tiles of the most frequent kind: for figures, the outputs are not complete */
#define OT_LOWER_ONE_KIND 2u

/* Does the target have memories in its cores that OT_LOWER_BLOCKS uses? */
bool ot_target_has_cores(const ot_target *t);
/* Lower the region. how: set of OT_LOWER_... a: for what *out points to. Deterministic. */
ot_status ot_region_lower(const ot_graph *g, const ot_region *r, const ot_target *t, unsigned how,
                          ot_arena *a, ot_diag *d, ot_lowered_region *out) OT_MUST_USE;

typedef struct ot_arena_figures {
    int64_t naive;       /* all activations side by side */
    int64_t lower_bound; /* max live bytes */
    int64_t planned;     /* height of our plan */
    int64_t greedy;      /* height of greedy by size */
    int64_t in_place;    /* height of our plan with in-place merges (and reshapes as views) */
    uint32_t n_buffers;
    bool proved; /* planned is the least possible */
} ot_arena_figures;
/* Arena of an untiled graph's activations in graph.order. Requires ORDER, USES, SHAPES; values
 * of unknown size are left out (counted in n_unknown). Deterministic: bounded by steps. */
ot_status ot_graph_arena(const ot_graph *g, ot_arena_figures *out, uint32_t *n_unknown) OT_MUST_USE;
/* What of g has no known size, of what lives while it runs, for a message: "the size of input 'x'
 * is not known" or "sizes of 3 values are not known, the first is that of 'y', which Odd 'n'
 * makes".
 * In arena a; "": all sizes are known. Requires ORDER. NULL: no memory. */
const char *ot_unknown_sizes(const ot_graph *g, ot_arena *a);

/* Steps (ot_pack_options.step_limit) that packing n activations may take. What a step costs
 * grows with n, so steps x n is bounded: at most 4 million items looked at, and never less than
 * one step. */
int64_t ot_graph_arena_steps(uint32_t n);

/* Another course of events than node by node: several nodes in one step, values that lie
 * nowhere, other things that do. */
typedef struct ot_arena_steps {
    /* [g->n_nodes] 1 .. n of each live node; a node's inputs are made at its step or before */
    const uint32_t *step_of;
    uint32_t n;
    const bool *absent;        /* [g->n_values]; NULL: none */
    const ot_pack_item *extra; /* [n_extra] with lifetimes in steps */
    uint32_t n_extra;
} ot_arena_steps;

/* The plan whose height is ot_arena_figures.planned. Step 0 is the caller's, who writes the
 * inputs, the last one too. */
typedef struct ot_arena_layout {
    const ot_pack_item *items; /* [n] lifetimes in steps */
    const ot_id *values;       /* [n] whose they are; OT_NONE of extra ones, which come last */
    const int64_t *offsets;    /* [n] */
    uint32_t n, n_steps;
    int64_t height, lower_bound;
    bool proved;
} ot_arena_layout;
/* Everything in arena a. Requires and fails as ot_graph_arena. */
ot_status ot_graph_arena_layout(const ot_graph *g, const ot_arena_steps *steps, ot_arena *a,
                                ot_arena_layout *out, uint32_t *n_unknown) OT_MUST_USE;

#endif
