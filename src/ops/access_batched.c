/* Slice relation of operators that do the same many times over: along the axes of that batch every
 * operand that has the axis is cut to the same window, along the others they are not cut.
 *
 *   GatherElements   out and indices alike; data too, but along `axis`, where it is whole
 *   ScatterElements  all alike, but along `axis`
 *   GatherND         data [b.., k indexed, rest]   indices [b, m.., k]   out [b, m.., rest]
 *   ScatterND        data, updates: the axes that one index leaves whole
 *   TopK             all but `axis`
 *   OneHot           the axes of the indices
 *   GridSample       out [n, c, rows...]: n of image and grid, c of the image, rows of the grid
 *   DeformConv       n of all operands but the weights
 *   RoiAlign         out [rois, c, ...]: rois and their images' numbers, c of the image
 *   LSTM, GRU, RNN   the batch, which lies behind the steps, or first with `layout`
 *   ReverseSequence  all but the time
 *   Trilu, Det       all but the last two
 *
 * No attribute speaks of an extent that is cut, so the node of a tile is a plain clone.
 */
#include "access_same.h"

/* All outputs of this one's shape are cut with it. */
static void follow_outputs(const ot_acc_question *b)
{
    for (uint32_t k = 0; k < b->n->n_out; k++) {
        const ot_value *v = ot_acc_out(b->g, b->n, k);
        if (v && v->rank == b->out->rank && v->dims[b->axis] == b->out->dims[b->axis])
            b->out_axis[k] = (int8_t)b->axis;
    }
}

/* Every axis but `whole` (counted from the end where negative) of operands [0, n). */
static bool all_but(const ot_acc_question *b, int64_t whole, uint32_t n, ot_why reason)
{
    const ot_value *x = ot_acc_in(b->g, b->n, 0);
    if (!x || x->rank != b->out->rank) return ot_acc_refuse(b->why, OT_WHY_RANKS_DIFFER);
    const int32_t at = ot_acc_norm_axis(whole, x->rank);
    if (at < 0) return ot_acc_refuse(b->why, OT_WHY_AXIS_RANGE);
    if (at == b->axis) return ot_acc_refuse(b->why, reason);
    for (uint32_t k = 0; k < n; k++)
        if (!ot_acc_follow(b, k, b->axis)) return false;
    follow_outputs(b);
    return true;
}

/* Data may be longer than the indices: rows behind them are not read. */
static bool gather_elements(const ot_acc_question *b)
{
    const ot_value *x = ot_acc_in(b->g, b->n, 0);
    if (!x || x->rank != b->out->rank) return ot_acc_refuse(b->why, OT_WHY_RANKS_DIFFER);
    const int32_t along = ot_acc_norm_axis(ot_attr_int(b->n, "axis", 0), x->rank);
    if (along < 0) return ot_acc_refuse(b->why, OT_WHY_AXIS_RANGE);
    if (along != b->axis) {
        if (x->dims[b->axis] < b->out->dims[b->axis])
            return ot_acc_refuse(b->why, OT_WHY_IN_OUT_DIFFER);
        b->in_axis[0] = (int8_t)b->axis;
    }
    return ot_acc_follow(b, 1, b->axis);
}

static bool gather_nd(const ot_acc_question *b)
{
    const ot_value *x = ot_acc_in(b->g, b->n, 0), *at = ot_acc_in(b->g, b->n, 1);
    const int64_t batch = ot_attr_int(b->n, "batch_dims", 0);
    if (!x || !at || at->rank < 1 || batch < 0 || batch >= ot_min(x->rank, at->rank))
        return ot_acc_refuse(b->why, OT_WHY_GATHER_RANKS);
    const int64_t indexed = at->dims[at->rank - 1];
    const int32_t before = at->rank - 1;
    if (indexed > x->rank - batch || b->out->rank != before + x->rank - batch - indexed)
        return ot_acc_refuse(b->why, OT_WHY_GATHER_RANKS);
    if (b->axis >= before)
        return ot_acc_follow(b, 0, b->axis - before + (int32_t)(batch + indexed));
    return (b->axis >= batch || ot_acc_follow(b, 0, b->axis)) && ot_acc_follow(b, 1, b->axis);
}

static bool scatter_nd(const ot_acc_question *b)
{
    const ot_value *at = ot_acc_in(b->g, b->n, 1), *x = ot_acc_in(b->g, b->n, 0);
    if (!x || !at || at->rank < 1 || x->rank != b->out->rank)
        return ot_acc_refuse(b->why, OT_WHY_GATHER_RANKS);
    const int64_t indexed = at->dims[at->rank - 1];
    if (b->axis < indexed) return ot_acc_refuse(b->why, OT_WHY_INDEXED);
    return ot_acc_follow(b, 0, b->axis) &&
           ot_acc_follow(b, 2, at->rank - 1 + b->axis - (int32_t)indexed);
}

static bool one_hot(const ot_acc_question *b)
{
    const ot_value *at = ot_acc_in(b->g, b->n, 0);
    if (!at || b->out->rank != at->rank + 1) return ot_acc_refuse(b->why, OT_WHY_RANKS_DIFFER);
    const int32_t made = ot_acc_norm_axis(ot_attr_int(b->n, "axis", -1), b->out->rank);
    if (made < 0) return ot_acc_refuse(b->why, OT_WHY_AXIS_RANGE);
    if (made == b->axis) return ot_acc_refuse(b->why, OT_WHY_NO_INPUT_VARIES);
    return ot_acc_follow(b, 0, b->axis - (b->axis > made));
}

/* Rows of the result lie where the grid says, and may lie anywhere in the image. */
static bool grid_sample(const ot_acc_question *b)
{
    const ot_value *x = ot_acc_in(b->g, b->n, 0), *grid = ot_acc_in(b->g, b->n, 1);
    if (!x || !grid || x->rank != b->out->rank || grid->rank != x->rank)
        return ot_acc_refuse(b->why, OT_WHY_RANKS_DIFFER);
    if (b->axis < 2 && !ot_acc_follow(b, 0, b->axis)) return false;
    return b->axis == 1 || ot_acc_follow(b, 1, b->axis == 0 ? 0 : b->axis - 1);
}

static bool deform_conv(const ot_acc_question *b)
{
    if (b->axis != 0) return ot_acc_refuse(b->why, OT_WHY_DEFORMED);
    return ot_acc_follow(b, 0, 0) && ot_acc_follow(b, 2, 0) && ot_acc_follow(b, 4, 0);
}

static bool roi_align(const ot_acc_question *b)
{
    if (b->axis == 0) return ot_acc_follow(b, 1, 0) && ot_acc_follow(b, 2, 0);
    return b->axis == 1 ? ot_acc_follow(b, 0, 1) : ot_acc_refuse(b->why, OT_WHY_INDEXED);
}

/* X [steps, batch, ..], lengths [batch], states [directions, batch, ..], Y [steps, directions,
 * batch, ..]; layout 1: the batch is first in all of them. */
static bool recurrent(const ot_acc_question *b)
{
    const bool first = ot_attr_int(b->n, "layout", 0) != 0;
    const int32_t of_rows = first ? 0 : 1, of_steps = first ? 0 : 2;
    const int32_t want = b->out_index == 0 ? of_steps : of_rows;
    if (b->axis != want) return ot_acc_refuse(b->why, OT_WHY_WORKED_ALONG);
    for (uint32_t k = 0; k < 3; k++)
        if (ot_acc_out(b->g, b->n, k)) b->out_axis[k] = (int8_t)(k == 0 ? of_steps : of_rows);
    return ot_acc_follow(b, 0, of_rows) && ot_acc_follow(b, 4, 0) && ot_acc_follow(b, 5, of_rows) &&
           (b->n->op != OT_OP_LSTM || ot_acc_follow(b, 6, of_rows));
}

static bool reverse_sequence(const ot_acc_question *b)
{
    const int64_t batch = ot_attr_int(b->n, "batch_axis", 1),
                  time = ot_attr_int(b->n, "time_axis", 0);
    if (!all_but(b, time, 1, OT_WHY_WORKED_ALONG)) return false;
    return b->axis != ot_acc_norm_axis(batch, b->out->rank) || ot_acc_follow(b, 1, 0);
}

/* Matrices of the last two axes. */
static bool matrices(const ot_acc_question *b)
{
    const ot_value *x = ot_acc_in(b->g, b->n, 0);
    if (!x || b->axis >= x->rank - 2) return ot_acc_refuse(b->why, OT_WHY_WORKED_ALONG);
    return ot_acc_follow(b, 0, b->axis);
}

static bool batched_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_acc_question b = {.g = g,
                               .n = n,
                               .out = ot_acc_out(g, n, out_index),
                               .out_index = out_index,
                               .axis = (int32_t)axis,
                               .in_axis = in_axis,
                               .out_axis = out_axis,
                               .why = why,
                               .differ = OT_WHY_IN_OUT_DIFFER};
    if (!ot_acc_regular(g, n, why)) return false;
    switch (n->op) {
    case OT_OP_GatherElements: return gather_elements(&b);
    case OT_OP_Scatter:
    case OT_OP_ScatterElements: return all_but(&b, ot_attr_int(n, "axis", 0), 3, OT_WHY_INDEXED);
    case OT_OP_GatherND: return gather_nd(&b);
    case OT_OP_ScatterND: return scatter_nd(&b);
    case OT_OP_TopK: return all_but(&b, ot_attr_int(n, "axis", -1), 1, OT_WHY_WORKED_ALONG);
    case OT_OP_OneHot: return one_hot(&b);
    case OT_OP_GridSample: return grid_sample(&b);
    case OT_OP_DeformConv: return deform_conv(&b);
    case OT_OP_RoiAlign: return roi_align(&b);
    case OT_OP_LSTM:
    case OT_OP_GRU:
    case OT_OP_RNN: return recurrent(&b);
    case OT_OP_ReverseSequence: return reverse_sequence(&b);
    case OT_OP_Trilu:
    case OT_OP_Det: return matrices(&b);
    default: return false;
    }
}

const ot_access_ops ot_access_batched = {batched_axis, NULL, NULL};

bool ot_runs_along(const ot_graph *g, const ot_node *n, int32_t *in, int32_t *out)
{
    const ot_value *x = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, 0);
    int64_t along;
    if (!x || !y || x->rank < 1) return false;
    switch (n->op) {
    case OT_OP_LSTM:
    case OT_OP_GRU:
    case OT_OP_RNN:
        *in = *out = ot_attr_int(n, "layout", 0) != 0 ? 1 : 0;
        return x->rank == 3 && y->rank == 4 && !ot_acc_in(g, n, 4) &&
               strcmp(ot_attr_str(n, "direction", "forward"), "forward") == 0;
    case OT_OP_CumSum:
        if (ot_attr_int(n, "reverse", 0) != 0 || ot_acc_ints(g, n, 1, &along, 1) != 1) return false;
        *in = *out = ot_acc_norm_axis(along, x->rank);
        return *in >= 0 && x->rank == y->rank;
    default: return false;
    }
}
