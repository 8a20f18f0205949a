/* What a runtime that makes one pass of a group runs as one step (private to this folder). */
#ifndef OT_ALLOC_SIM_MERGED_STEPS_H
#define OT_ALLOC_SIM_MERGED_STEPS_H

#include "machine/runtime/runtime.h"

/* Steps by number of the node that leads them: of those that run as one, the first in the order. */
typedef struct ot_merged_steps {
    ot_id *leader;       /* [n_nodes] */
    ot_id *next;         /* [n_nodes] the next node of its step in the order; OT_NONE */
    ot_id *last;         /* [n_nodes] of a leader: the last node, where the step runs */
    ot_id *product;      /* [n_nodes] of a leader: its convolution or matrix product; OT_NONE */
    ot_id **readers;     /* [n_values][n_readers] nodes that read it, each once, in order */
    uint32_t *n_readers; /* [n_values] */
    ot_id *maker;        /* [n_values] node that makes it; OT_NONE */
} ot_merged_steps;

/* Requires ORDER, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_merged_steps_find(const ot_graph *g, const ot_runtime *r, ot_arena *a,
                               ot_merged_steps *out) OT_MUST_USE;

/* Values that take no memory of their own as activations. */
static inline bool ot_is_fixed(const ot_graph *g, ot_id v)
{
    return g->values[v].init || g->values[v].is_const;
}

#endif
