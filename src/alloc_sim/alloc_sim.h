/* Stage alloc_sim/: what the process of a runtime grows by while it runs a graph.
 *
 * Live bytes are what a model must hold; a process holds more: an allocator that asks for memory
 * in ever larger regions and cuts it into chunks, buffers that wait for another tensor of their
 * shape, a block for the pattern of the second run while the first run's chunks stay, layouts
 * that exist twice, pieces of a loop until they are joined. The habits stand in the runtime's
 * table (ot_runtime); here they are simulated, node by node, on the graph as it is:
 * untiled, or with tiled regions written out.
 *
 *   simulate_plan.c   graph -> steps: merged nodes, changes of layout; simulate_order.c: in which
 *                     order
 *   simulate_buffers.c  steps -> buffers, and who takes whose
 *   simulate.c        steps -> allocations and releases, loops iteration by iteration, some runs in
 *                     a row
 *   simulate_waiting.c  which values waited, or were held, when the process grew last
 *   memory_pattern.c   the block that later runs take for all tensors of a graph at once
 *   chunk_arena.c      the allocator, and which pages of it were touched
 *   loaded_model.c           constants that were packed, or copied into bodies, before all that
 *
 * OpenVINO places everything before it runs: one_block.c (graph -> boxes), live_boxes.c (their
 * places). So do the engine's devices: device_growth.c (what is there at once); nothing else grows.
 * What runs as one step is for fusion/ to say.
 */
#ifndef OT_ALLOC_SIM_ALLOC_SIM_H
#define OT_ALLOC_SIM_ALLOC_SIM_H

#include "machine/runtime/runtime.h"

#define OT_WAITING    2
#define OT_FULLEST    6
#define OT_SIM_REUSED 4 /* one part in so many of what loading left free serves runs */

typedef struct ot_sim_figures {
    /* bytes that the resident set grows by over a loaded session, in several runs */
    int64_t growth;
    /* bytes that it holds before that: weights as they are and packed, implementations, what
     * loading freed and the heap keeps; 0: growth has them */
    int64_t loaded;
    int64_t loading;   /* the most that it holds until then; 0: as `loaded` */
    int64_t reused;    /* of growth, what runs take of the memory that loading freed */
    int64_t first_run; /* of growth, by the first run */
    /* bytes of the block of later runs, of the graph itself; 0: the runtime takes none */
    int64_t pattern;
    uint32_t n_unknown; /* values whose size is not known: left out */
    bool is_cut;        /* growth is that or more: the rest was not simulated, nor is known */
    /* Nodes that made the largest tensors that waited for a reader when the process grew last,
     * largest first, of the graph that they are in; OT_NONE: no more, or not known. */
    ot_id waiting[OT_WAITING];
    /* [n_fullest] where one block is placed before the run: nodes of the graph that made what is
     * there when most bytes are, largest first */
    ot_id fullest[OT_FULLEST];
    uint32_t n_fullest;
    /* [n_held] values that are there at the last step of the first run at which an arena grew by
     * much, largest first: of the graph, or of its branch */
    ot_id held[OT_FULLEST];
    uint32_t n_held;
} ot_sim_figures;

/* Bytes that a session of r holds for each node of a model, at least; 0: not known. */
int64_t ot_loaded_node_bytes(const ot_runtime *r);

/* The most that the process holds, while it loads the model or runs it. INT64_MAX: no bound. */
static inline int64_t ot_process_bytes(const ot_sim_figures *f)
{
    if (f->growth == INT64_MAX) return INT64_MAX;
    return ot_max(f->loading, f->loaded + ot_max(f->growth - f->reused, 0));
}

/* The process grows so far, or has grown by the end: of *f, growth and what follows from it. */
static inline void ot_sim_grown(ot_sim_figures *f, int64_t growth)
{
    f->growth = growth;
    f->reused = ot_min(f->reused, growth / 2);
}

/* Where a simulation may end early: what grows by more is not wanted, however much it is. */
typedef struct ot_sim_stop {
    int64_t (*most)(const ot_sim_figures *loaded, const void *of); /* growth; loaded: without it */
    const void *of;
} ot_sim_stop;

#define OT_SIM_ORDERS 6

/* Simulate g for runtime r. static_shape: the model's file states all extents; else they become
 * known while it runs, and buffers are not planned to follow each other. Requires ORDER, USES,
 * SHAPES. Bodies written by the rewriter are simulated, subgraphs of the model itself count by
 * their results. Fails: OT_E_NOMEM. Deterministic. */
ot_status ot_sim_growth(const ot_graph *g, const ot_runtime *r, bool static_shape,
                        ot_sim_figures *out) OT_MUST_USE;

/* The same, of so many orders (1 to OT_SIM_ORDERS) of changes of layout the one in which the
 * process grows most: the runtime takes them from a hash table, and another session takes another.
 * The first is as they come, the second the other way round. An order in which every graph runs as
 * in the first is not simulated. */
ot_status ot_sim_growth_most(const ot_graph *g, const ot_runtime *r, bool static_shape,
                             uint32_t n_orders, ot_sim_figures *out) OT_MUST_USE;
/* The same; it ends (out->is_cut) where the process has grown by more than stop says; stop NULL: at
 * the end. Runtimes that place everything beforehand are simulated to the end. */
ot_status ot_sim_growth_until(const ot_graph *g, const ot_runtime *r, bool static_shape,
                              uint32_t n_orders, const ot_sim_stop *stop,
                              ot_sim_figures *out) OT_MUST_USE;

#endif
