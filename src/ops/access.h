/* The slice relation, inside: one small vtable per access kind (ot_access_kind), dispatched by
 * access.c (questions) and adapt.c (answers as nodes). Private to src/ops/.
 *
 *   ot_access_axis ---checks---> kind->axis      which input axis follows this output axis?
 *   ot_access_window -checks---> kind->window    which window of it does this output window need?
 *   ot_tile_adapt ---clone-----> kind->adapt     what changes in the node that computes the tile?
 *
 * What the dispatchers guarantee to the three functions, so that no file checks it again.
 *
 * axis: the operator is known and no barrier, has no subgraph, its output `out_index` exists, every
 * present input and output is a tensor with a fully static shape, no output is empty (an operand
 * such as an unused roi may be), axis < rank of that output. in_axis[0..n_in) and
 * out_axis[0..n_out) are preset to OT_AX_WHOLE, *why to a general reason. After success the
 * dispatcher itself sets out_axis[out_index] = axis.
 *
 * window: the same; t->need is non-empty and inside the extent of the output axis; t->made is
 * preset to t->need, pads and extra to 0. Entries of t->in are not preset. It may be called with
 * any axis that `axis` accepted. NULL: what `axis` says that follows is cut to the same window
 * (access_same.h), and `axis` checks ot_acc_regular.
 *
 * adapt: *out is preset to a plain clone (the node's own attrs, no operands, drop all false,
 * allocated [n_in]); axes[] holds at least one entry and every tile was filled by `window`. NULL:
 * the plain clone is right.
 */
#ifndef OT_OPS_ACCESS_H
#define OT_OPS_ACCESS_H

#include "ops.h"

typedef struct ot_access_ops {
    bool (*axis)(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                 int8_t *in_axis, int8_t *out_axis, ot_why *why);
    bool (*window)(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                   ot_op_tile *t, ot_why *why);
    ot_status (*adapt)(const ot_graph *g, const ot_node *n, const ot_tile_axis *axes,
                       uint32_t n_axes, ot_arena *arena, ot_adapted *out);
} ot_access_ops;

/* One table per access kind; the file that defines it has its name (access_conv.c ...). */
extern const ot_access_ops ot_access_pointwise, ot_access_conv, ot_access_convt, ot_access_pool,
    ot_access_globalpool, ot_access_norm, ot_access_softmax, ot_access_reduce, ot_access_matmul,
    ot_access_gemm, ot_access_quant, ot_access_transpose, ot_access_reshape, ot_access_expand,
    ot_access_concat, ot_access_split, ot_access_slice, ot_access_pad, ot_access_resize,
    ot_access_block, ot_access_gather, ot_access_rows, ot_access_tile, ot_access_cumsum,
    ot_access_einsum, ot_access_attention, ot_access_batched;

/* The table of a kind, or NULL for kinds that are never sliced. */
const ot_access_ops *ot_access_table(ot_access_kind kind);
/* Of an operator of domain com.microsoft; NULL: it is none, or never sliced (access_contrib.c). */
const ot_access_ops *ot_access_contrib(const ot_node *n);
/* The table of n's operator, or NULL. */
const ot_access_ops *ot_access_of(const ot_node *n);

/* ---- small helpers for the access_*.c files (access.c, adapt.c) ---- */

/* Operand i of n as a value, or NULL when omitted or beyond n_in. */
const ot_value *ot_acc_in(const ot_graph *g, const ot_node *n, uint32_t i);
/* Output i of n as a value, or NULL. */
const ot_value *ot_acc_out(const ot_graph *g, const ot_node *n, uint32_t i);
/* Set *why and return false: `return ot_acc_refuse(why, OT_WHY_...)`. */
bool ot_acc_refuse(ot_why *why, ot_why reason);
/* Contents of operand i as integers: only when constant whatever the graph inputs are (value.known,
 * init tensor of small integer type) and at most max elements. Returns the count, or -1. */
int64_t ot_acc_ints(const ot_graph *g, const ot_node *n, uint32_t i, int64_t *out, size_t max);
/* Same for floats (value.known_floats, init tensor of a float type), as float32. */
int64_t ot_acc_floats(const ot_graph *g, const ot_node *n, uint32_t i, float *out, size_t max);
/* Axis written by the model (may be negative) -> 0..rank-1, or -1 when out of range. */
int32_t ot_acc_norm_axis(int64_t axis, int32_t rank);
/* The cut of output axis `axis` among axes[], or NULL. */
const ot_op_tile *ot_acc_cut(const ot_tile_axis *axes, uint32_t n_axes, uint32_t axis);

/* What ConvTranspose crops at the end of `axis` (>= 2), and its output_padding; what a Pad adds
 * behind `axis`. Of nodes that can be cut there. */
void ot_convt_end(const ot_graph *g, const ot_node *n, uint32_t axis, int64_t *crop,
                  int64_t *padding);
int64_t ot_pad_end(const ot_graph *g, const ot_node *n, uint32_t axis);
/* Rows that a Slice cuts off at the end of `axis`, 0 where it does not slice that. any_extent:
 * false where they, or the first row, depend on the extent. *crop is set in any case. */
bool ot_slice_end(const ot_graph *g, const ot_node *n, uint32_t axis, bool any_extent,
                  int64_t *crop);

/* The pool reads a Pad that ONNX Runtime may merge into it with other results (access_pad.c). */
bool ot_acc_pad_clash(const ot_graph *g, const ot_node *pool);
/* The pool has ceil_mode and reads such a Pad: merged, it leaves out a last window that the model
 * says there is, at the extents there are or, where they are free, at some. */
bool ot_acc_pad_lost(const ot_graph *g, const ot_node *pool);

/* Replace or append one attribute of the adapted node. */
ot_status ot_adapt_set_ints(ot_arena *arena, ot_adapted *out, const char *name, const int64_t *v,
                            size_t n) OT_MUST_USE;
/* Leave an attribute out (no effect when absent). */
ot_status ot_adapt_drop_attr(ot_arena *arena, ot_adapted *out, const char *name) OT_MUST_USE;
/* Replace operand `input` by a 1-D constant of n elements. */
ot_status ot_adapt_set_i64(ot_arena *arena, ot_adapted *out, uint32_t input, const int64_t *v,
                           size_t n) OT_MUST_USE;

#endif
