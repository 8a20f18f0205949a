/* The planner's view of a graph: its live nodes in topological order without static ones
 * (weights and shape arithmetic), sizes and live ranges of values. Regions are intervals of it,
 * less the nodes in it that run before (PRE) or after (POST).
 */
#ifndef OT_TILING_SEQUENCE_H
#define OT_TILING_SEQUENCE_H

#include "region.h"

typedef struct ot_seq {
    ot_graph *g;
    ot_arena *arena; /* pass lifetime */
    uint32_t n;      /* nodes in the sequence */
    ot_id *node;     /* [n] node ids */
    uint32_t *pos;   /* [g->n_nodes] position, or OT_NONE */
    /* [g->n_values] an activation: neither constant nor made by a static node */
    bool *act;
    int64_t *bytes; /* [g->n_values] size of an activation or constant; 0 when unknown */
    /* [g->n_values] what it takes while it lives: its size, but for what the engine does not
     * hold */
    int64_t *held;
    int64_t *elems; /* [g->n_values] */
    /* [g->n_values] position of the producer; OT_NONE for graph inputs and constants */
    uint32_t *def;
    /* [g->n_values] last reading position; n for graph outputs; OT_NONE when never read */
    uint32_t *last;
    /* [n] before or after STFT or DFT, for which model checkers infer another number of bins
     * once shapes are fixed: not cut, so that no shape is stated that they would contradict */
    bool *odd;
    bool *fused; /* [n] the target's runtime merges this node into its producer */
    /* [n] first node of the merged group that the node is in; itself when it is alone */
    uint32_t *head;
    /* [n] last node of the attention that the engine runs as one with this node; OT_NONE: there
     * is none */
    uint32_t *tail;
    /* [n] of a Transpose that is but other strides for an attention: head of that; OT_NONE */
    uint32_t *strided;
    bool *on_bytes; /* [n] the engine runs this operator on 8-bit tensors */
    /* [n + 1] between k-1 and k a group is open that the engine runs as one: no region begins or
     * ends there */
    bool *inside;
    /* [n] 1 + bytes by which Winograd's weights of this 3x3 convolution may exceed the model's in
     * the engine; 0: untiled it is a direct one; -1: it could not take them anyway */
    int64_t *wino_room;
    double *time;    /* [n + 1] prefix sums of untiled node times */
    double *traffic; /* [n + 1] prefix sums of untiled slow-memory bytes */
    double *macs;    /* [n] */
    /* [n] bytes that the runtime's kernel moves besides its operands: layout changes around
     * blocked convolutions, column buffers; 0 for other runtimes */
    double *extra;
    /* [g->n_values] blocked and taken as it is by a reader; see ot_cost_blocked */
    bool *hands_blocks;
    /* [g->n_values] held in a channel-blocked layout by the runtime (ONNX Runtime's NCHWc) */
    bool *blocked;
    double *work;  /* [n] bytes of scratch that the runtime's kernel takes (column buffers) */
    int64_t *live; /* [n] bytes of non-input activations live while node k runs, untiled */
    int64_t *cut;  /* [n + 1] bytes live between k-1 and k */
    int64_t peak;  /* max of live */
    bool sums;     /* the target's form takes reductions in parts */
    /* [n] what the node sums up is subtracted from another sum: no parts of it (ot_sum_cancels) */
    bool *cancels;
    /* an output comes from a Sigmoid: the runtime keeps its absolute, not its relative
     * precision, so plans must not change any rounding */
    bool strict;
} ot_seq;

/* Build the sequence: order, sizes and live ranges; the tables of figures are allocated and zero
 * until ot_cost_fill (cost/cost.h). Requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_seq_build(ot_graph *g, ot_arena *a, ot_seq *out) OT_MUST_USE;
/* Position of the last node of the attention that the engine runs as one with the node at p, its
 * Transposes counted: there it runs, and until then it needs what its nodes read. OT_NONE: there
 * is none. */
uint32_t ot_seq_attention_end(const ot_seq *s, uint32_t p);
/* As ot_access_sum, for a node of the sequence: OT_SUM_NONE where no parts are to be made of
 * what it reduces, too. */
ot_sum_kind ot_seq_sum(const ot_seq *s, const ot_node *n, bool reduced[OT_RANK_MAX]);

/* ---- tiling/barrier.c ---- */

/* *why the node can never be cut, or OT_WHY_NONE when some axis of extent > 1 can be. Fails:
 * OT_E_NOMEM. */
ot_status ot_barrier_reason(const ot_seq *s, ot_id node, ot_why *why) OT_MUST_USE;

#endif
