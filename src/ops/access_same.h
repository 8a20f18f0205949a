/* Helpers shared by the operators whose windows are the same on both sides: when output axis `a` is
 * cut to [lo,hi), every operand that varies along it is cut to [lo,hi) of its own axis.
 *
 *   out  0....[lo  hi)....E        x [N,C,H,W]  axis 2 -> x axis 2
 *   x    0....[lo  hi)....E        b   [C,1,1]  axis 2 -> whole (extent 1 is repeated)
 *   b    whole                     s       [W]  axis 2 -> whole (has no such axis)
 *
 * Private to src/ops/; defined in access_point.c.
 */
#ifndef OT_OPS_ACCESS_SAME_H
#define OT_OPS_ACCESS_SAME_H

#include "access.h"

/* Most inputs and outputs of operators of fixed arity; nodes with more are malformed and refused.
 */
#define OT_ACC_ARITY 16

/* Returned by ot_acc_broadcast when the extents do not broadcast. */
#define OT_AX_BAD (-2)

/* The axis of `in` that follows axis `axis` of `out`, when axis 0 of `in` lies under axis
 * `shift` of `out`: an axis >= 0, OT_AX_WHOLE (absent or repeated) or OT_AX_BAD. */
int32_t ot_acc_broadcast(const ot_value *in, const ot_value *out, int32_t shift, uint32_t axis);

/* The same for numpy's alignment at the last axis. */
int32_t ot_acc_broadcast_last(const ot_value *in, const ot_value *out, uint32_t axis);

/* Store the answer for operand k; false (with a reason) when `ax` is OT_AX_BAD. */
bool ot_acc_set(int8_t *in_axis, uint32_t k, int32_t ax, ot_why *why);

/* False, with a reason, when n has more operands or outputs than OT_ACC_ARITY, or an empty operand.
 */
bool ot_acc_regular(const ot_graph *g, const ot_node *n, ot_why *why);

typedef bool (*ot_acc_axis_fn)(const ot_graph *g, const ot_node *n, uint32_t out_index,
                               uint32_t axis, int8_t *in_axis, int8_t *out_axis, ot_why *why);

/* Window function of such an operator: in[k] = need wherever `fn` says that operand k follows.
 * Only for kinds whose axis function checks ot_acc_regular. */
bool ot_acc_same_window(ot_acc_axis_fn fn, const ot_graph *g, const ot_node *n, uint32_t out_index,
                        uint32_t axis, ot_op_tile *t, ot_why *why);

/* Operands that ot_acc_same_window cuts, by bits; false: it refuses. */
bool ot_acc_same_follows(ot_acc_axis_fn fn, const ot_graph *g, const ot_node *n, uint32_t out_index,
                         uint32_t axis, uint64_t *follows);
/* Those that a window of an element-wise operator cuts; false: there are too many operands. */
bool ot_acc_point_follows(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                          uint64_t *follows);

/* One question: which axes go with `axis` of output `out_index`? */
typedef struct ot_acc_question {
    const ot_graph *g;
    const ot_node *n;
    const ot_value *out;
    uint32_t out_index;
    int32_t axis;
    int8_t *in_axis, *out_axis;
    ot_why *why;
    ot_why differ; /* why not, where an operand is not as long */
} ot_acc_question;

/* Operand k, if there is one, is cut along its axis `axis`, which must be as long as the output's.
 */
bool ot_acc_follow(const ot_acc_question *q, uint32_t k, int32_t axis);

/* n is regular, and its first operand has the rank of its output and is as long along `axis`. */
bool ot_acc_alike(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                  ot_why *why);

/* Mark the axes that a reduction of access_reduce.c reduces, of an input of that rank, in
 * reduced[] ([OT_RANK_MAX]). False (with a reason) when they are not known or wrong. */
bool ot_acc_reduced_axes(const ot_graph *g, const ot_node *n, int32_t rank, bool *reduced,
                         ot_why *why);

#endif
