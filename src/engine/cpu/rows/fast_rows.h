/* What the fast implementations of rows and lanes share. */
#ifndef OT_ENGINE_CPU_ROWS_FAST_ROWS_H
#define OT_ENGINE_CPU_ROWS_FAST_ROWS_H

#include "engine/core/half.h"
#include "engine/core/pool.h"
#include "rows.h"

/* A dense array seen as [outer, n, inner]; lane (o, i) is elements (o * n + j) * inner + i. */
typedef struct ot_lanes {
    int64_t outer, n, inner;
} ot_lanes;

/* Axes [first, end) are the lane. false: the array is empty. */
bool ot_lanes_open(const ot_nd *a, uint32_t first, uint32_t end, ot_lanes *l);
/* Negative axes count from the end; false: no axis of this rank. */
bool ot_rows_axis(int64_t axis, uint32_t rank, uint32_t *out);
/* Input 0 is a dense float32 array. */
bool ot_rows_takes(const ot_call *c);

static inline bool ot_rows_wants(const ot_call *c, uint32_t k) { return k < c->n_out && c->out[k]; }

static inline const ot_nd *ot_rows_in(const ot_call *c, uint32_t k)
{
    return k < c->n_in ? c->in[k] : NULL;
}

static inline ot_op ot_rows_op(const ot_call *c)
{
    return c->node->op != OT_OP_OPAQUE ? c->node->op : ot_op_find(c->node->op_type);
}

/* Axes of operand 0 before this one, which may count from the end; 0 when there is no such axis. */
static inline uint32_t ot_rows_before(const ot_call *c, int64_t axis)
{
    int64_t rank = c->n_in > 0 && c->in[0] ? c->in[0]->rank : 0;
    axis = axis < 0 ? axis + rank : axis;
    return axis > 0 && axis < rank ? (uint32_t)axis : 0;
}

#endif
