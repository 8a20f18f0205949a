/* Stage lifetime/: first and last use of every value of a graph, in steps.
 *
 *   step   0     1     2     3     end       x   made -, last 1     (an input)
 *          Conv  Relu  Loop  Add             a   made 0, last 2     (the Loop's body reads it)
 *   x      ------>                           y   made 3, last end   (a result: the caller's)
 *   a      |------------>                    z   made 1, last -     (nobody reads it)
 *   y                        |------>
 *
 * What a body of Loop, If, Scan or While reads of the graph around it is read by the node that
 * has the body, for as long as that runs. A value lives from the step that makes it to the last
 * that reads it; that a result may take the place of an operand is a question of its own, which
 * whoever places values asks. Steps are the caller's: places in graph.order, positions of the
 * planner's sequence, steps of a program.
 *
 * Read by the planner's sequence (tiling/sequence.c), by the arena of a graph
 * (tiling/lower/graph_arena.c) and of a device (device_arena.c), by bounds on live bytes
 * (select/bounds/live_bytes.c) and by the engine's programs (engine/session/program.c). Others ask
 * something else: the checker of plans finds lifetimes anew, since it shares no code with what it
 * checks (select/check); regions ask which of their nodes reads a tile first and last
 * (cost/region_figures.c, tiling/lower/region_*.c), tile kernels which statement does
 * (tk/planmem); simulations of allocators count readers, since a value goes when the last of them
 * has run, in the order and under the names that the runtime makes (alloc_sim).
 */
#ifndef OT_LIFETIME_LIFETIME_H
#define OT_LIFETIME_LIFETIME_H

#include "onnx/graph/ir.h"

typedef struct ot_value_lifetimes {
    uint32_t n;     /* values */
    uint32_t *made; /* [n] step that makes it; OT_NONE: none does */
    uint32_t *last; /* [n] last step that reads it; OT_NONE: none does */
} ot_value_lifetimes;

/* Of n values that nobody makes or reads, in arena a. Fails: OT_E_NOMEM. */
ot_status ot_value_lifetimes_new(uint32_t n, ot_arena *a, ot_value_lifetimes *out) OT_MUST_USE;

/* Of the values of g. step_of: [g->n_nodes] steps of nodes, OT_NONE for one that does not run;
 * NULL: its place in the order. end: the step at which the caller reads results. Requires ORDER.
 * Fails: OT_E_NOMEM. */
ot_status ot_value_lifetimes_of(const ot_graph *g, const uint32_t *step_of, uint32_t end,
                                ot_arena *a, ot_value_lifetimes *out) OT_MUST_USE;

/* The step reads value v, perhaps after others that do. */
static inline void ot_lifetime_read(ot_value_lifetimes *l, ot_id v, uint32_t step)
{
    if (l->last[v] == OT_NONE || step > l->last[v]) l->last[v] = step;
}
/* When v is needed no more: after its last reader, or after its maker where there is none; made
 * or read by somebody. */
static inline uint32_t ot_lifetime_end(const ot_value_lifetimes *l, ot_id v)
{
    return l->last[v] == OT_NONE ? l->made[v] : l->last[v];
}

#endif
