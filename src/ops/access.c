/* Slice relation: the dispatcher and the checks that hold for every operator.
 *
 * A question goes through three gates before an operator's own code sees it:
 *   1. the operator: known, no subgraph, of a kind that can be sliced at all;
 *   2. its values: every operand and result present is a tensor whose shape is fully known;
 *   3. the axis: it exists and has something to cut.
 * Each gate answers with a sentence for the report, never with a failure: "cannot be cut" is a
 * normal answer. The operators live in access_<kind>.c, one vtable each.
 */
#include "access_same.h"
#include "dynamic_dims.h"
#include "onnx/import/model_io.h"
#include "quirks.h"

static const ot_access_ops *const tables[] = {
    [OT_ACC_BARRIER] = NULL,
    [OT_ACC_POINTWISE] = &ot_access_pointwise,
    [OT_ACC_CONV] = &ot_access_conv,
    [OT_ACC_CONVT] = &ot_access_convt,
    [OT_ACC_POOL] = &ot_access_pool,
    [OT_ACC_GLOBALPOOL] = &ot_access_globalpool,
    [OT_ACC_NORM] = &ot_access_norm,
    [OT_ACC_SOFTMAX] = &ot_access_softmax,
    [OT_ACC_REDUCE] = &ot_access_reduce,
    [OT_ACC_MATMUL] = &ot_access_matmul,
    [OT_ACC_GEMM] = &ot_access_gemm,
    [OT_ACC_QUANT] = &ot_access_quant,
    [OT_ACC_TRANSPOSE] = &ot_access_transpose,
    [OT_ACC_RESHAPE] = &ot_access_reshape,
    [OT_ACC_EXPAND] = &ot_access_expand,
    [OT_ACC_CONCAT] = &ot_access_concat,
    [OT_ACC_SPLIT] = &ot_access_split,
    [OT_ACC_SLICE] = &ot_access_slice,
    [OT_ACC_PAD] = &ot_access_pad,
    [OT_ACC_RESIZE] = &ot_access_resize,
    [OT_ACC_BLOCK] = &ot_access_block,
    [OT_ACC_GATHER] = &ot_access_gather,
    [OT_ACC_ROWS] = &ot_access_rows,
    [OT_ACC_TILE] = &ot_access_tile,
    [OT_ACC_CUMSUM] = &ot_access_cumsum,
    [OT_ACC_EINSUM] = &ot_access_einsum,
    [OT_ACC_ATTENTION] = &ot_access_attention,
    [OT_ACC_BATCHED] = &ot_access_batched,
    [OT_ACC_SHAPE] = NULL,
};

const ot_access_ops *ot_access_table(ot_access_kind kind)
{
    return (size_t)kind < sizeof tables / sizeof tables[0] ? tables[kind] : NULL;
}

const ot_access_ops *ot_access_of(const ot_node *n)
{
    return n->op == OT_OP_OPAQUE ? ot_access_contrib(n) : ot_access_table(ot_op_access(n->op));
}

bool ot_access_known(const ot_node *n) { return n->op != OT_OP_OPAQUE || ot_access_contrib(n); }

/* ---- helpers shared by the operator files ---- */

const ot_value *ot_acc_in(const ot_graph *g, const ot_node *n, uint32_t i)
{
    return i < n->n_in && n->in[i] != OT_NONE ? &g->values[n->in[i]] : NULL;
}

const ot_value *ot_acc_out(const ot_graph *g, const ot_node *n, uint32_t i)
{
    return i < n->n_out && n->out[i] != OT_NONE ? &g->values[n->out[i]] : NULL;
}

bool ot_acc_refuse(ot_why *why, ot_why reason)
{
    *why = reason;
    return false;
}

int64_t ot_acc_ints(const ot_graph *g, const ot_node *n, uint32_t i, int64_t *out, size_t max)
{
    const ot_value *v = ot_acc_in(g, n, i);
    if (!v || v->overridable) return -1;
    if (v->known) {
        if (v->known_n > max) return -1;
        memcpy(out, v->known, v->known_n * sizeof *out);
        return v->known_n;
    }
    size_t count = 0;
    if (v->init && ot_tensor_ints(v->init, out, max, &count)) return (int64_t)count;
    return -1;
}

int64_t ot_acc_floats(const ot_graph *g, const ot_node *n, uint32_t i, float *out, size_t max)
{
    const ot_value *v = ot_acc_in(g, n, i);
    size_t count = 0;
    if (!v || v->overridable) return -1;
    if (v->known_floats) {
        if (v->known_n > max) return -1;
        for (uint32_t k = 0; k < v->known_n; k++) out[k] = (float)v->known_floats[k];
        return v->known_n;
    }
    return v->init && ot_tensor_floats(v->init, out, max, &count) ? (int64_t)count : -1;
}

int32_t ot_acc_norm_axis(int64_t axis, int32_t rank)
{
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (int32_t)axis : -1;
}

const ot_op_tile *ot_acc_cut(const ot_tile_axis *axes, uint32_t n_axes, uint32_t axis)
{
    for (uint32_t i = 0; i < n_axes; i++)
        if (axes[i].axis == axis) return axes[i].tile;
    return NULL;
}

/* ---- the gates ---- */

/* Every present operand and result is a tensor of static shape, and no result is empty. */
static bool shapes_known(const ot_graph *g, const ot_node *n)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        const ot_value *v = ot_acc_in(g, n, i);
        if (v && (!v->is_tensor || !ot_value_is_static(v))) return false;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ot_value *v = ot_acc_out(g, n, i);
        if (!v) continue;
        if (!v->is_tensor || !ot_value_is_static(v)) return false;
        for (int32_t d = 0; d < v->rank; d++)
            if (v->dims[d] < 1) return false;
    }
    return true;
}

static const ot_access_ops *gate(const ot_graph *g, const ot_node *n, uint32_t out_index,
                                 uint32_t axis, ot_why *why)
{
    if (!ot_access_known(n)) {
        *why = OT_WHY_UNKNOWN_TO_TOOL;
        return NULL;
    }
    if (n->stays_whole) {
        *why = OT_WHY_NOT_IN_ENGINE;
        return NULL;
    }
    if (n->n_captured > 0) {
        *why = OT_WHY_SUBGRAPH;
        return NULL;
    }
    const ot_access_ops *ops = ot_access_of(n);
    if (!ops) {
        *why = ot_op_access(n->op) == OT_ACC_SHAPE ? OT_WHY_MAKES_SHAPES : OT_WHY_NEEDS_ALL;
        return NULL;
    }
    if (!shapes_known(g, n)) {
        *why = OT_WHY_SHAPE_UNKNOWN;
        return NULL;
    }
    if (ot_limits_quantised(g, n) && ot_quirk_concerns(OT_QUIRK_LIMITED_WEIGHT, OT_BY_ALL)) {
        *why = OT_WHY_LIMITED_WEIGHT;
        return NULL;
    }
    if (ot_is_half_quantised(g, n) && ot_quirk_concerns(OT_QUIRK_HALF_WEIGHT, OT_BY_ALL)) {
        *why = OT_WHY_HALF_WEIGHT;
        return NULL;
    }
    const ot_value *out = ot_acc_out(g, n, out_index);
    if (!out || (int64_t)axis >= out->rank) {
        *why = OT_WHY_NO_OUTPUT_AXIS;
        return NULL;
    }
    return ops;
}

/* Operators that repeat what they read: a tile needs no more than its extent. */
static bool repeats_input(ot_access_kind kind)
{
    return kind == OT_ACC_EXPAND || kind == OT_ACC_TILE;
}

bool ot_access_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                    int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    ot_why local;
    if (!why) why = &local;
    *why = OT_WHY_NOT_ALONG_AXIS;
    for (uint32_t i = 0; i < n->n_in; i++) in_axis[i] = OT_AX_WHOLE;
    for (uint32_t i = 0; i < n->n_out; i++) out_axis[i] = OT_AX_WHOLE;
    const ot_access_ops *ops = gate(g, n, out_index, axis, why);
    if (!ops || !ops->axis(g, n, out_index, axis, in_axis, out_axis, why)) return false;
    out_axis[out_index] = (int8_t)axis;
    bool varies = repeats_input(ot_op_access(n->op));
    for (uint32_t i = 0; i < n->n_in; i++) varies |= in_axis[i] >= 0;
    if (varies) return ot_dynamic_allows(g, n, out_index, axis, in_axis, why);
    return ot_acc_refuse(why, OT_WHY_NO_INPUT_VARIES);
}

bool ot_access_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                      ot_op_tile *t, ot_why *why)
{
    ot_why local;
    if (!why) why = &local;
    *why = OT_WHY_NO_WINDOW;
    /* ot_access_axis went through the gates */
    const ot_access_ops *ops = ot_access_of(n);
    if (!ops) return false;
    int64_t extent = ot_acc_out(g, n, out_index)->dims[axis];
    if (t->need.lo < 0 || t->need.lo >= t->need.hi || t->need.hi > extent)
        return ot_acc_refuse(why, OT_WHY_WINDOW_OUTSIDE);
    t->made = t->need;
    t->pad_lo = t->pad_hi = t->extra = 0;
    if (!(ops->window ? ops->window(g, n, out_index, axis, t, why)
                      : ot_acc_same_window(ops->axis, g, n, out_index, axis, t, why)))
        return false;
    if (t->made.lo < 0 || t->made.lo > t->need.lo || t->made.hi < t->need.hi || t->made.hi > extent)
        OT_BUG("a slice relation makes less than it was asked for, or more than there is");
    return true;
}
