/* Slice relation of standard operators without a row in ops.def (their shapes: shape_extra.c), by
 * name: along what they do not work along every operand that has the axis is cut alike.
 *
 *   DFT                     all axes but its own and the last, which are the parts of a number
 *   STFT                    the batch; frames, each of `size` samples from step to step
 *   Col2Im                  the batch; channels, each of as many rows as a block has places
 *   CumProd                 all but its axis
 *   CenterCropPad           axes that it leaves
 *   RotaryEmbedding         batch and heads; rows, whose angles are given for each
 *   TensorScatter           all but the axis that it writes along
 *   MaxRoiPool              rois; channels of the picture
 *   NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss     all but classes, if nothing is reduced
 *   BitCast                 all; all but the last where the size of elements changes
 *   CausalConvWithState, LinearAttention                   the batch
 *   SimplifiedLayerNormalization                           all axes before its own (ONNX Runtime's)
 *
 * And why the others are not cut. A tile is a plain clone.
 */
#include "access_contrib.h"

/* The first result alone. */
static bool is_first(const ot_acc_question *q)
{
    return q->out_index == 0 ? true : ot_acc_refuse(q->why, OT_WHY_WORKED_ALONG);
}

static bool is_one(const ot_acc_question *q, const char *op_type)
{
    return strcmp(q->n->op_type, op_type) == 0;
}

static bool dft(const ot_acc_question *q)
{
    int64_t along = q->n->version >= 20 ? -2 : ot_attr_int(q->n, "axis", 1);
    const int32_t rank = q->out->rank;
    if (q->n->version >= 20 && ot_acc_in(q->g, q->n, 2) &&
        ot_acc_ints(q->g, q->n, 2, &along, 1) != 1)
        return ot_acc_refuse(q->why, OT_WHY_REDUCE_AXES_RUNTIME);
    const int32_t at = ot_acc_norm_axis(along, rank);
    if (at < 0) return ot_acc_refuse(q->why, OT_WHY_AXIS_RANGE);
    if (q->axis == at || q->axis == rank - 1) return ot_acc_refuse(q->why, OT_WHY_WORKED_ALONG);
    return ot_acc_follow(q, 0, q->axis);
}

/* Samples from the first of a frame to that of the next, and those of a frame; false: not known. */
static bool stft_frames(const ot_graph *g, const ot_node *n, int64_t *step, int64_t *size)
{
    const ot_value *window = ot_acc_in(g, n, 2);
    if (ot_acc_ints(g, n, 1, step, 1) != 1 || *step < 1) return false;
    if (ot_acc_in(g, n, 3)) return ot_acc_ints(g, n, 3, size, 1) == 1 && *size > 0;
    *size = window && window->rank == 1 ? window->dims[0] : 0;
    return *size > 0;
}

static bool stft(const ot_acc_question *q)
{
    const ot_value *x = ot_acc_in(q->g, q->n, 0);
    int64_t step, size, last;
    if (!x || x->rank < 2 || q->out->rank != 4) return ot_acc_refuse(q->why, OT_WHY_RANKS_DIFFER);
    if (q->axis == 0) return ot_acc_follow(q, 0, 0);
    if (q->axis != 1) return ot_acc_refuse(q->why, OT_WHY_WORKED_ALONG);
    if (!stft_frames(q->g, q->n, &step, &size)) return ot_acc_refuse(q->why, OT_WHY_NO_WINDOW);
    if (!ot_mul_i64(q->out->dims[1] - 1, step, &last) || !ot_add_i64(last, size, &last) ||
        last > x->dims[1])
        return ot_acc_refuse(q->why, OT_WHY_IN_OUT_DIFFER);
    q->in_axis[0] = 1;
    return true;
}

/* Places of a block; 0: not known. */
static int64_t col2im_places(const ot_graph *g, const ot_node *n)
{
    int64_t block[OT_RANK_MAX], places = 1;
    const int64_t count = ot_acc_ints(g, n, 2, block, OT_RANK_MAX);
    for (int64_t k = 0; k < count; k++)
        if (block[k] < 1 || !ot_mul_i64(places, block[k], &places)) return 0;
    return count > 0 ? places : 0;
}

static bool col2im(const ot_acc_question *q)
{
    const ot_value *x = ot_acc_in(q->g, q->n, 0);
    const int64_t places = col2im_places(q->g, q->n);
    int64_t rows;
    if (!x || x->rank != 3) return ot_acc_refuse(q->why, OT_WHY_RANKS_DIFFER);
    if (q->axis == 0) return ot_acc_follow(q, 0, 0);
    if (q->axis != 1) return ot_acc_refuse(q->why, OT_WHY_WORKED_ALONG);
    if (places == 0) return ot_acc_refuse(q->why, OT_WHY_NO_WINDOW);
    if (!ot_mul_i64(places, q->out->dims[1], &rows) || rows != x->dims[1])
        return ot_acc_refuse(q->why, OT_WHY_IN_OUT_DIFFER);
    q->in_axis[0] = 1;
    return true;
}

static bool cum_prod(const ot_acc_question *q)
{
    int64_t along;
    if (ot_acc_ints(q->g, q->n, 1, &along, 1) != 1)
        return ot_acc_refuse(q->why, OT_WHY_CUMSUM_AXIS_RUNTIME);
    const int32_t at = ot_acc_norm_axis(along, q->out->rank);
    if (at < 0) return ot_acc_refuse(q->why, OT_WHY_CUMSUM_AXIS_RANGE);
    return at == q->axis ? ot_acc_refuse(q->why, OT_WHY_CUMSUM) : ot_acc_follow(q, 0, q->axis);
}

static bool center_crop_pad(const ot_acc_question *q)
{
    size_t count = 0;
    const int64_t *axes = ot_attr_ints(q->n, "axes", &count);
    bool crops = axes == NULL;
    for (size_t k = 0; axes && k < count; k++)
        crops |= ot_acc_norm_axis(axes[k], q->out->rank) == q->axis;
    return crops ? ot_acc_refuse(q->why, OT_WHY_WORKED_ALONG) : ot_acc_follow(q, 0, q->axis);
}

/* x [b, heads, rows, width] or [b, rows, width]; angles [b, rows, half], or [longest, half] of
 * which `positions` [b, rows] say one. */
static bool rotary(const ot_acc_question *q)
{
    const int32_t rows = q->out->rank - 2;
    const bool placed = ot_acc_in(q->g, q->n, 3) != NULL;
    if (rows < 1 || q->axis > rows) return ot_acc_refuse(q->why, OT_WHY_ATTENTION_WIDTH);
    if (!ot_acc_follow(q, 0, q->axis)) return false;
    if (q->axis != 0 && q->axis != rows) return true;
    const int32_t at = q->axis == 0 ? 0 : 1;
    return placed ? ot_acc_follow(q, 3, at) : ot_acc_follow(q, 1, at) && ot_acc_follow(q, 2, at);
}

/* cache [b, ..], update alike but along `axis`, where to write [b]. */
static bool tensor_scatter(const ot_acc_question *q)
{
    const int32_t along = ot_acc_norm_axis(ot_attr_int(q->n, "axis", -2), q->out->rank);
    if (along < 0) return ot_acc_refuse(q->why, OT_WHY_AXIS_RANGE);
    if (along == q->axis) return ot_acc_refuse(q->why, OT_WHY_INDEXED);
    return ot_acc_follow(q, 0, q->axis) && ot_acc_follow(q, 1, q->axis) &&
           (q->axis != 0 || ot_acc_follow(q, 2, 0));
}

static bool max_roi_pool(const ot_acc_question *q)
{
    if (q->axis == 0) return ot_acc_follow(q, 1, 0);
    return q->axis == 1 ? ot_acc_follow(q, 0, 1) : ot_acc_refuse(q->why, OT_WHY_INDEXED);
}

/* scores [b, classes, ..], labels [b, ..], weights [classes] -> losses [b, ..], scores' logarithms
 */
static bool loss(const ot_acc_question *q)
{
    const ot_value *scores = ot_acc_in(q->g, q->n, 0), *losses = ot_acc_out(q->g, q->n, 0);
    if (strcmp(ot_attr_str(q->n, "reduction", "mean"), "none") != 0)
        return ot_acc_refuse(q->why, OT_WHY_REDUCE);
    if (!scores || !losses || losses->rank != scores->rank - 1)
        return ot_acc_refuse(q->why, OT_WHY_RANKS_DIFFER);
    if (q->out_index == 1 && q->axis == 1) return ot_acc_refuse(q->why, OT_WHY_SOFTMAX);
    const int32_t of_labels = q->out_index == 0 || q->axis == 0 ? q->axis : q->axis - 1,
                  of_scores = of_labels == 0 ? 0 : of_labels + 1;
    q->out_axis[0] = (int8_t)of_labels;
    if (ot_acc_out(q->g, q->n, 1)) q->out_axis[1] = (int8_t)of_scores;
    return ot_acc_follow(q, 0, of_scores) && ot_acc_follow(q, 1, of_labels);
}

/* Elements of another size are counted along the last axis. */
static bool bit_cast(const ot_acc_question *q)
{
    const ot_value *x = ot_acc_in(q->g, q->n, 0);
    if (!x || x->rank != q->out->rank) return ot_acc_refuse(q->why, OT_WHY_RANKS_DIFFER);
    return ot_acc_follow(q, 0, q->axis);
}

/* (x, weights, bias, state) -> y, state; (queries, keys, values, state, decay, beta) -> y, state */
static bool with_state(const ot_acc_question *q)
{
    if (q->axis != 0) return ot_acc_refuse(q->why, OT_WHY_WORKED_ALONG);
    const bool conv = is_one(q, "CausalConvWithState");
    for (uint32_t k = 0; k < q->n->n_in; k++)
        if (!(conv && (k == 1 || k == 2)) && !ot_acc_follow(q, k, 0)) return false;
    for (uint32_t k = 0; k < q->n->n_out; k++)
        if (ot_acc_out(q->g, q->n, k)) q->out_axis[k] = 0;
    return true;
}

static bool simplified_norm(const ot_acc_question *q)
{
    const ot_value *x = ot_acc_in(q->g, q->n, 0);
    const int32_t from = x ? ot_acc_norm_axis(ot_attr_int(q->n, "axis", -1), x->rank) : -1;
    if (!is_first(q)) return false;
    if (from < 0) return ot_acc_refuse(q->why, OT_WHY_NORM_AXIS_RANGE);
    if (q->axis >= from) return ot_acc_refuse(q->why, OT_WHY_LAYER_NORM);
    for (uint32_t k = 1; k < q->n->n_out; k++)
        if (ot_acc_out(q->g, q->n, k)) return ot_acc_refuse(q->why, OT_WHY_LAYER_NORM);
    return ot_acc_follow(q, 0, q->axis);
}

static const struct {
    const char *op_type;
    bool (*axis)(const ot_acc_question *q);
} RULES[] = {
    {"BitCast", bit_cast},
    {"CausalConvWithState", with_state},
    {"CenterCropPad", center_crop_pad},
    {"Col2Im", col2im},
    {"CumProd", cum_prod},
    {"DFT", dft},
    {"LinearAttention", with_state},
    {"MaxRoiPool", max_roi_pool},
    {"NegativeLogLikelihoodLoss", loss},
    {"RotaryEmbedding", rotary},
    {"STFT", stft},
    {"SimplifiedLayerNormalization", simplified_norm},
    {"SoftmaxCrossEntropyLoss", loss},
    {"TensorScatter", tensor_scatter},
};
#define N_RULES (sizeof RULES / sizeof *RULES)

static size_t rule_of(const ot_node *n)
{
    size_t k = 0;
    while (k < N_RULES && strcmp(RULES[k].op_type, n->op_type) != 0) k++;
    return k;
}

static bool extra_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_acc_question q = {.g = g,
                               .n = n,
                               .out = ot_acc_out(g, n, out_index),
                               .out_index = out_index,
                               .axis = (int32_t)axis,
                               .in_axis = in_axis,
                               .out_axis = out_axis,
                               .why = why,
                               .differ = OT_WHY_IN_OUT_DIFFER};
    return ot_acc_regular(g, n, why) && RULES[rule_of(n)].axis(&q);
}

static bool extra_window(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         ot_op_tile *t, ot_why *why)
{
    int64_t step = 1, size = 1;
    if (!ot_acc_same_window(extra_axis, g, n, out_index, axis, t, why)) return false;
    if (axis != 1) return true;
    if (strcmp(n->op_type, "Col2Im") == 0)
        step = size = col2im_places(g, n);
    else if (strcmp(n->op_type, "STFT") != 0)
        return true;
    else if (!stft_frames(g, n, &step, &size))
        return ot_acc_refuse(why, OT_WHY_NO_WINDOW);
    t->in[0] = (ot_win){t->need.lo * step, (t->need.hi - 1) * step + size};
    return true;
}

static const ot_access_ops extra = {extra_axis, extra_window, NULL};

const ot_access_ops *ot_access_extra(const ot_node *n)
{
    return !n->domain[0] && rule_of(n) < N_RULES ? &extra : NULL;
}

/* Why the rest is never cut. */
static const struct {
    const char *op_type;
    ot_why why;
} NEVER[] = {
    {"AffineGrid", OT_WHY_MAKES_SHAPES},
    {"Bernoulli", OT_WHY_RANDOM},
    {"BlackmanWindow", OT_WHY_MAKES_SHAPES},
    {"ConcatFromSequence", OT_WHY_NO_TENSOR},
    {"DynamicQuantizeLinear", OT_WHY_RANGE_OF_ALL},
    {"HammingWindow", OT_WHY_MAKES_SHAPES},
    {"HannWindow", OT_WHY_MAKES_SHAPES},
    {"ImageDecoder", OT_WHY_NEEDS_ALL},
    {"MelWeightMatrix", OT_WHY_MAKES_SHAPES},
    {"Multinomial", OT_WHY_RANDOM},
    {"Optional", OT_WHY_NO_TENSOR},
    {"OptionalGetElement", OT_WHY_NO_TENSOR},
    {"OptionalHasElement", OT_WHY_NO_TENSOR},
    {"RandomNormal", OT_WHY_RANDOM},
    {"RandomNormalLike", OT_WHY_RANDOM},
    {"RandomUniform", OT_WHY_RANDOM},
    {"RandomUniformLike", OT_WHY_RANDOM},
    {"RegexFullMatch", OT_WHY_TEXTS},
    {"SequenceAt", OT_WHY_NO_TENSOR},
    {"SequenceConstruct", OT_WHY_NO_TENSOR},
    {"SequenceEmpty", OT_WHY_NO_TENSOR},
    {"SequenceErase", OT_WHY_NO_TENSOR},
    {"SequenceInsert", OT_WHY_NO_TENSOR},
    {"SequenceLength", OT_WHY_NO_TENSOR},
    {"SequenceMap", OT_WHY_NO_TENSOR},
    {"SplitToSequence", OT_WHY_NO_TENSOR},
    {"StringConcat", OT_WHY_TEXTS},
    {"StringNormalizer", OT_WHY_TEXTS},
    {"StringSplit", OT_WHY_TEXTS},
    {"TfIdfVectorizer", OT_WHY_NEEDS_ALL},
};

ot_why ot_access_extra_reason(const ot_node *n)
{
    for (size_t k = 0; !n->domain[0] && k < sizeof NEVER / sizeof *NEVER; k++)
        if (strcmp(NEVER[k].op_type, n->op_type) == 0) return NEVER[k].why;
    return OT_WHY_NONE;
}
