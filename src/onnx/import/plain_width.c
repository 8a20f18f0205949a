/* Channels (axis 1) of plain values between blocked ones (blocked_nodes.h), told by the operators
 * that make them: sizes are not inferred yet when a file is read, and files that ONNX Runtime saves
 * do not state them.
 *
 *   Conv, Gemm ...          the weights'              Concat, Split, Slice, Pad, Gather   along 1
 *   Reshape                 its constant's            DepthToSpace, SpaceToDepth
 *   element-wise operators  the widest operand's      reductions of other axes, and others: kept
 */
#include "blocked_nodes.h"

#include "model_io.h"

#define SPLITS_MOST 1024 /* pieces of a Split that are looked at */

/* Operators that keep the channels of operand 0. */
static const char *const KEEPING[] = {
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Ceil",
    "Celu",
    "DequantizeLinear",
    "Dropout",
    "Erf",
    "Floor",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GroupNormalization",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LRN",
    "LayerNormalization",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MaxPool",
    "MeanVarianceNormalization",
    "Mish",
    "Neg",
    "PRelu",
    "QuantizeLinear",
    "Reciprocal",
    "Round",
    "Selu",
    "Sign",
    "Softmax",
    "Softsign",
    "Sqrt",
    "ThresholdedRelu",
};

/* Operators whose operands broadcast, besides those that blocked values go through. */
static const char *const BROADCAST[] = {"Equal", "Greater", "Less", "Mod", "Pow", "Where"};

/* Resize and Upsample, by a constant that leaves the channels. */
static const char *const RESIZING[] = {"Resize", "Upsample"};

/* Reductions; of axes in an attribute, or in operand 1. */
static const char *const REDUCING[] = {"ReduceL1",  "ReduceL2",   "ReduceMax", "ReduceMean",
                                       "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"};

/* Channels of operand k: of broadcast constants, too; 0: not known. */
static int64_t operand_width(const ot_blocked *b, const ot_node *n, uint32_t k)
{
    const ot_value *v = k < n->n_in && n->in[k] != OT_NONE ? &b->g->values[n->in[k]] : NULL;
    if (!v) return 0;
    if (v->init) return v->rank == 4 ? v->dims[1] : v->rank == 3 ? v->dims[0] : v->rank < 2;
    return b->plain_width[n->in[k]];
}

/* Dimension a of the constant weights of operand k; 0: there is none. */
static int64_t weights_dim(const ot_blocked *b, const ot_node *n, uint32_t k, int32_t a)
{
    const ot_value *w = k < n->n_in && n->in[k] != OT_NONE ? &b->g->values[n->in[k]] : NULL;
    return w && w->init && a < w->rank ? w->dims[a] : 0;
}

/* Numbers of attribute `name`, or of the constant operand k; -1: there are none, or too many. */
static int64_t numbers(const ot_blocked *b, const ot_node *n, const char *name, uint32_t k,
                       int64_t *out, size_t most)
{
    const ot_value *v = k < n->n_in && n->in[k] != OT_NONE ? &b->g->values[n->in[k]] : NULL;
    size_t count = 0;
    const int64_t *given = ot_attr_ints(n, name, &count);
    if (given && count <= most) {
        memcpy(out, given, count * sizeof *out);
        return (int64_t)count;
    }
    if (given || !v || v->overridable || !v->init) return -1;
    return ot_tensor_ints(v->init, out, most, &count) ? (int64_t)count : -1;
}

static int64_t conv_width(const ot_blocked *b, const ot_node *n)
{
    int64_t width;
    if (strcmp(n->op_type, "Conv") == 0) return weights_dim(b, n, 1, 0);
    if (strcmp(n->op_type, "QLinearConv") == 0) return weights_dim(b, n, 3, 0);
    if (strcmp(n->op_type, "Gemm") == 0)
        return weights_dim(b, n, 1, ot_attr_int(n, "transB", 0) ? 0 : 1);
    return strcmp(n->op_type, "ConvTranspose") == 0 &&
                   ot_mul_i64(weights_dim(b, n, 1, 1), ot_attr_int(n, "group", 1), &width)
               ? width
               : 0;
}

static int64_t reshaped_width(const ot_blocked *b, const ot_node *n)
{
    int64_t to[OT_RANK_MAX];
    const int64_t rank = numbers(b, n, "shape", 1, to, OT_RANK_MAX);
    if (rank < 2) return 0;
    if (to[1] == 0 && ot_attr_int(n, "allowzero", 0) == 0) return operand_width(b, n, 0);
    return ot_max(to[1], 0);
}

static int64_t padded_width(const ot_blocked *b, const ot_node *n)
{
    int64_t pads[2 * OT_RANK_MAX], width = operand_width(b, n, 0);
    const int64_t count = numbers(b, n, "pads", 1, pads, 2 * OT_RANK_MAX);
    if (width == 0 || count < 4 || count % 2 || (n->n_in > 3 && n->in[3] != OT_NONE)) return 0;
    return ot_add_i64(width, pads[1], &width) && ot_add_i64(width, pads[count / 2 + 1], &width)
               ? ot_max(width, 0)
               : 0;
}

/* Cut channels, in single steps; axes that are counted from the end are not known. */
static int64_t sliced_width(const ot_blocked *b, const ot_node *n)
{
    int64_t from[OT_RANK_MAX], to[OT_RANK_MAX], axes[OT_RANK_MAX], steps[OT_RANK_MAX];
    const int64_t width = operand_width(b, n, 0),
                  count = numbers(b, n, "starts", 1, from, OT_RANK_MAX),
                  named = numbers(b, n, "axes", 3, axes, OT_RANK_MAX),
                  stepped = numbers(b, n, "steps", 4, steps, OT_RANK_MAX);
    if (width == 0 || count < 0 || numbers(b, n, "ends", 2, to, OT_RANK_MAX) != count) return 0;
    if (named != count || (stepped != count && n->n_in > 4 && n->in[4] != OT_NONE)) return 0;
    for (int64_t k = 0; k < count; k++)
        if (axes[k] < 0) return 0;
    for (int64_t k = 0; k < count; k++) {
        if (axes[k] != 1) continue;
        if (stepped == count && steps[k] != 1) return 0;
        const int64_t lo = ot_min(ot_max(from[k] < 0 ? from[k] + width : from[k], 0), width),
                      hi = ot_min(ot_max(to[k] < 0 ? to[k] + width : to[k], 0), width);
        return ot_max(hi - lo, 0);
    }
    return width;
}

static int64_t split_width(const ot_blocked *b, const ot_node *n, uint32_t k)
{
    int64_t pieces[SPLITS_MOST];
    const int64_t axis = ot_attr_int(n, "axis", 0), width = operand_width(b, n, 0);
    if (axis != 1) return axis < 0 ? 0 : width;
    const int64_t count = numbers(b, n, "split", 1, pieces, SPLITS_MOST);
    if (count >= 0) return k < count ? ot_max(pieces[k], 0) : 0;
    return n->n_in < 2 && width % n->n_out == 0 ? width / n->n_out : 0;
}

static int64_t gathered_width(const ot_blocked *b, const ot_node *n)
{
    const int64_t axis = ot_attr_int(n, "axis", 0);
    const ot_value *at = n->n_in > 1 && n->in[1] != OT_NONE ? &b->g->values[n->in[1]] : NULL;
    if (!at || !at->init || at->rank != 1 || axis < 0) return 0;
    return axis == 1 ? at->dims[0] : operand_width(b, n, 0);
}

/* Of a block of places, or to one. */
static int64_t block_width(const ot_blocked *b, const ot_node *n)
{
    const int64_t width = operand_width(b, n, 0), size = ot_attr_int(n, "blocksize", 0);
    int64_t area, more;
    if (size < 1 || !ot_mul_i64(size, size, &area) || !ot_mul_i64(width, area, &more)) return 0;
    return strcmp(n->op_type, "SpaceToDepth") == 0 ? more : width % area == 0 ? width / area : 0;
}

static int64_t reduced_width(const ot_blocked *b, const ot_node *n)
{
    int64_t axes[OT_RANK_MAX];
    const int64_t count = numbers(b, n, "axes", 1, axes, OT_RANK_MAX);
    if (count < 1 || ot_attr_int(n, "keepdims", 1) == 0) return 0;
    for (int64_t k = 0; k < count; k++)
        if (axes[k] < 0 || axes[k] == 1) return 0;
    return operand_width(b, n, 0);
}

/* By scales of which the channels' is 1, or by the constant size of the channels. */
static int64_t resized_width(const ot_blocked *b, const ot_node *n)
{
    int64_t sizes[OT_RANK_MAX];
    float scales[OT_RANK_MAX];
    size_t count = 0;
    const int64_t n_sizes = numbers(b, n, "", 3, sizes, OT_RANK_MAX);
    const uint32_t at = n->n_in > 2 ? 2 : 1;
    if (ot_attr_find(n, "axes")) return 0;
    if (n_sizes >= 2) return ot_max(sizes[1], 0);
    const ot_attr *given = ot_attr_find(n, "scales");
    if (given && given->kind == OT_ATTR_FLOATS && given->n >= 2)
        return given->floats[1] == 1 ? operand_width(b, n, 0) : 0;
    const ot_value *v = at < n->n_in && n->in[at] != OT_NONE ? &b->g->values[n->in[at]] : NULL;
    if (!v || v->overridable || !v->init || !ot_tensor_floats(v->init, scales, OT_RANK_MAX, &count))
        return 0;
    return count >= 2 && scales[1] == 1 ? operand_width(b, n, 0) : 0;
}

/* The widest of all operands, or with `joins` their sum. */
static int64_t widths_together(const ot_blocked *b, const ot_node *n, bool joins)
{
    int64_t width = 0;
    bool all = true;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const int64_t one = operand_width(b, n, k);
        all &= one > 0;
        if (one > INT32_MAX ||
            !ot_add_i64(joins ? width : 0, joins ? one : ot_max(one, width), &width))
            return 0;
    }
    return all || (!joins && width > 1) ? width : 0;
}

static bool is_one(const ot_node *n, const char *op_type)
{
    return strcmp(n->op_type, op_type) == 0;
}

int64_t ot_plain_width(const ot_blocked *b, const ot_node *n, uint32_t k)
{
    const int64_t weighed = n->domain[0] ? 0 : conv_width(b, n);
    if (n->domain[0] || n->n_in == 0) return 0;
    if (weighed > 0) return weighed;
    if (is_one(n, "Split")) return split_width(b, n, k);
    if (k > 0) return 0;
    if (is_one(n, "Concat"))
        return ot_attr_int(n, "axis", 0) == 1 ? widths_together(b, n, true) : 0;
    if (is_one(n, "Reshape")) return reshaped_width(b, n);
    if (is_one(n, "Pad")) return padded_width(b, n);
    if (is_one(n, "Slice")) return sliced_width(b, n);
    if (is_one(n, "Gather")) return gathered_width(b, n);
    if (is_one(n, "DepthToSpace") || is_one(n, "SpaceToDepth")) return block_width(b, n);
    if (is_one(n, "Transpose")) {
        size_t rank = 0;
        const int64_t *perm = ot_attr_ints(n, "perm", &rank);
        return perm && rank > 1 && perm[1] == 1 ? operand_width(b, n, 0) : 0;
    }
    if (OT_IS_AMONG(n->op_type, REDUCING)) return reduced_width(b, n);
    if (OT_IS_AMONG(n->op_type, RESIZING)) return resized_width(b, n);
    if (OT_IS_AMONG(n->op_type, KEEPING)) return operand_width(b, n, 0);
    return ot_blocked_is_alike(n->op_type) || OT_IS_AMONG(n->op_type, BROADCAST)
               ? widths_together(b, n, false)
               : 0;
}
