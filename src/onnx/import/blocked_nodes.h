/* Which nodes of a graph run on blocks of channels, and how wide their values are (unblock.c). */
#ifndef OT_ONNX_IMPORT_BLOCKED_NODES_H
#define OT_ONNX_IMPORT_BLOCKED_NODES_H

#include "import.h"

#define OT_POOLS_ROUND_UP  10 /* opset from which on pools have dilations and round up */
#define OT_RESIZES_BY_MODE 11 /* opset from which on Resize says where its samples lie */

/* What a node is among them. Standard operators read blocked values between those of the domain,
 * and two Reshapes make the blocks of one an axis and take that back. */
typedef enum ot_blocked_part {
    OT_BLOCKED_NONE,
    OT_BLOCKED_TAKE, /* ReorderInput */
    OT_BLOCKED_GIVE, /* ReorderOutput */
    OT_BLOCKED_CONV,
    OT_BLOCKED_POOL,
    OT_BLOCKED_RESIZE,
    OT_BLOCKED_BETWEEN,
    OT_BLOCKED_SPLIT,
    OT_BLOCKED_JOIN
} ot_blocked_part;

typedef struct ot_blocked {
    ot_graph *g;
    int64_t block;
    uint32_t rank;          /* of weights and values in blocks; 0: not known yet */
    int64_t *width;         /* [n_values] channels of a value in blocks; 0: it is plain */
    int64_t *plain_width;   /* [n_values] channels of a plain value; 0: not known */
    bool *split;            /* [n_values] its blocks are an axis of their own */
    ot_blocked_part *parts; /* [n_nodes] */
} ot_blocked;

/* Standard operators with one result of the shape of all their operands, that mean the same of
 * blocked values. */
bool ot_blocked_is_alike(const char *op_type);

/* plain_width.c: channels of result k of node n, which reads no blocked value; 0: not known. */
int64_t ot_plain_width(const ot_blocked *b, const ot_node *n, uint32_t k);

/* Is n of the domain of blocked operators? */
bool ot_blocked_is_op(const ot_node *n);
/* Fill *b; requires ORDER, USES. b->block 0: some node does not fit, for no size of blocks. Fails:
 * OT_E_NOMEM. */
ot_status ot_blocked_read(ot_graph *g, ot_arena *scratch, ot_blocked *b) OT_MUST_USE;

/* Operand k as a constant of float32 whose contents are at hand; NULL: it is none. */
const ot_tensor *ot_blocked_constant(const ot_blocked *b, const ot_node *n, uint32_t k);
/* Blocks of the weights of `conv` are of input channels, too. */
bool ot_blocked_both(const ot_node *conv, const ot_tensor *weights, int64_t block);
/* The weight of {output channel, input channel, place in the window}, of `area` places. */
float ot_blocked_weight(const ot_tensor *w, int64_t block, bool both, const int64_t *at,
                        int64_t area);
/* Channels of the plain value that ReorderInput n reads; 0: not known. */
int64_t ot_blocked_taken(const ot_blocked *b, const ot_node *n);
/* The plain side of a ReorderInput or ReorderOutput has its channels last. */
bool ot_blocked_is_last(const ot_node *n);

#endif
