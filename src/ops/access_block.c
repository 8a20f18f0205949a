/* DepthToSpace and SpaceToDepth: blocks of b x b move between space and channels.
 *
 *   DepthToSpace  H_out = H*b: rows [o0, o1) need input rows [floor(o0/b), ceil(o1/b)); whole
 * blocks are made SpaceToDepth  H_out = H/b: rows [o0, o1) need input rows [o0*b, o1*b)
 *
 * Both modes (DCR, CRD) permute channels only. The channel axis itself is not cut.
 */
#include "access.h"

static int64_t block_of(const ot_graph *g, const ot_node *n)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    int64_t b = ot_attr_int(n, "blocksize", 0);
    if (!x || !y || x->rank != 4 || y->rank != 4 || b < 1 || b > ((int64_t)1 << 20)) return 0;
    const ot_value *small = n->op == OT_OP_DepthToSpace ? x : y, *large = small == x ? y : x;
    for (uint32_t d = 2; d < 4; d++)
        if (large->dims[d] / b != small->dims[d] || large->dims[d] % b != 0) return 0;
    return b;
}

static bool block_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    (void)out_index;
    (void)out_axis;
    if (block_of(g, n) == 0) return ot_acc_refuse(why, OT_WHY_BLOCK_SIZE);
    if (axis == 1) return ot_acc_refuse(why, OT_WHY_BLOCK_CHANNELS);
    in_axis[0] = (int8_t)axis;
    return true;
}

static bool block_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    (void)out_index;
    int64_t b = block_of(g, n);
    if (b == 0 || axis == 1) return ot_acc_refuse(why, OT_WHY_BLOCK_SIZE);
    if (axis == 0) {
        t->in[0] = t->need;
    } else if (n->op == OT_OP_DepthToSpace) {
        t->in[0] = (ot_win){ot_floor_div(t->need.lo, b), ot_ceil_div(t->need.hi, b)};
        t->made = (ot_win){t->in[0].lo * b, t->in[0].hi * b};
    } else {
        t->in[0] = (ot_win){t->need.lo * b, t->need.hi * b};
    }
    return true;
}

const ot_access_ops ot_access_block = {block_axis, block_window, NULL};
