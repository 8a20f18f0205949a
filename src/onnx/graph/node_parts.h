/* Nodes of a graph that go to somebody else, together: as operators of ONNX Runtime, or as what its
 * execution provider takes. */
#ifndef OT_ONNX_GRAPH_NODE_PARTS_H
#define OT_ONNX_GRAPH_NODE_PARTS_H

#include "onnx/graph/ir.h"

/* Where a node is written: nodes in this order, those of one part side by side. */
typedef struct ot_part_position {
    /* first: place in g->order of the first node of its part; of a node that stays, its own */
    uint32_t level, first;
    uint32_t at; /* in g->order */
} ot_part_position;

typedef struct ot_parts {
    uint32_t *part; /* [n_nodes] the first of its part, as in a place; OT_NONE: it stays */
    ot_part_position *places; /* [n_order] */
} ot_parts;

/* Which of the nodes that `in` [n_nodes] marks are one part. What comes out lives in a. Requires
 * ORDER. Fails: OT_E_NOMEM. */
ot_status ot_parts_find(const ot_graph *g, const bool *in, ot_arena *a, ot_diag *d,
                        ot_parts *out) OT_MUST_USE;

/* Copied to each part that reads it. */
bool ot_part_constant(const ot_value *v);
/* Inputs and captured values of a node, in this order; ot_part_read: OT_NONE where one is left out.
 */
uint32_t ot_part_n_reads(const ot_node *n);
ot_id ot_part_read(const ot_node *n, uint32_t k);
/* The node that makes v when the model runs; OT_NONE. */
ot_id ot_part_maker(const ot_graph *g, ot_id v);

#endif
