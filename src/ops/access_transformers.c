/* Slice relation of attention, and of what stands around it in transformers, as ONNX Runtime's
 * optimisers write them (domain com.microsoft; access_contrib.c):
 *
 *   Attention, QAttention        [b, rows, width]: the batch; rows are keys at the same time
 *   MultiHeadAttention           the batch; rows of the queries, where none is masked by its number
 *   GroupQueryAttention          the batch, of the cache, too
 *   EmbedLayerNormalization      the batch; rows, where their positions are given
 *   RotaryEmbedding              the same
 *   MatMulNBits, MatMulIntegerToFloat, QGemm    rows of A
 *
 * A tile is a plain clone: no attribute speaks of an extent. The range of what
 * DynamicQuantizeMatMul and DynamicQuantizeLSTM quantize is that of all of it: these are never cut.
 */
#include "access_contrib.h"

static ot_acc_question ask(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           int8_t *in_axis, ot_why *why)
{
    return (ot_acc_question){.g = g,
                             .n = n,
                             .out = ot_acc_out(g, n, out_index),
                             .out_index = out_index,
                             .axis = (int32_t)axis,
                             .in_axis = in_axis,
                             .why = why,
                             .differ = OT_WHY_ATTENTION_DISAGREE};
}

/* Or, of extent 1 there, is repeated. */
static bool cut_or_repeated(const ot_acc_question *q, uint32_t k, int32_t axis)
{
    const ot_value *v = ot_acc_in(q->g, q->n, k);
    return (v && axis < v->rank && v->dims[axis] == 1) || ot_acc_follow(q, k, axis);
}

/* All results but an empty one have the batch at `axis`. */
static void cut_results(const ot_acc_question *q, int32_t axis, int8_t *out_axis)
{
    for (uint32_t k = 0; k < q->n->n_out; k++) {
        const ot_value *v = ot_acc_out(q->g, q->n, k);
        if (v && axis < v->rank && v->dims[axis] == q->out->dims[q->axis])
            out_axis[k] = (int8_t)axis;
    }
}

static bool has_any(const ot_graph *g, const ot_node *n, const uint32_t *operands, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (ot_acc_in(g, n, operands[k])) return true;
    return false;
}

static bool has_more_results(const ot_graph *g, const ot_node *n)
{
    for (uint32_t k = 1; k < n->n_out; k++)
        if (ot_acc_out(g, n, k)) return true;
    return false;
}

/* ---- Attention (x, weights, bias, mask, past, attention bias, past length) ---- */

/* A mask of one number a picture is the batch; of two, or 3 b + 2, it is not in order. */
static bool attention_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                           int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    static const uint32_t caches[] = {4, 6}, q_caches[] = {8};
    const ot_acc_question q = ask(g, n, out_index, axis, in_axis, why);
    const bool quantized = strcmp(n->op_type, "QAttention") == 0;
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (axis == 1) return ot_acc_refuse(why, OT_WHY_ATTENTION_KEYS);
    if (axis != 0 || out_index != 0) return ot_acc_refuse(why, OT_WHY_ATTENTION_WIDTH);
    if (has_more_results(g, n)) return ot_acc_refuse(why, OT_WHY_ATTENTION_OUTPUTS);
    if (quantized ? has_any(g, n, q_caches, 1) : has_any(g, n, caches, 2))
        return ot_acc_refuse(why, OT_WHY_ATTENTION_CACHE);
    return ot_acc_follow(&q, 0, 0) && ot_acc_follow(&q, quantized ? 5 : 3, 0) &&
           (quantized || cut_or_repeated(&q, 5, 0));
}

/* ---- MultiHeadAttention (q, k, v, bias, padding mask, attention bias, past ...) ---- */

/* Keys and values [b, rows, width]; packed operands are of other ranks. */
static bool heads_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    static const uint32_t caches[] = {6, 7, 8, 9};
    const ot_acc_question q = ask(g, n, out_index, axis, in_axis, why);
    const ot_value *x = ot_acc_in(g, n, 0), *keys = ot_acc_in(g, n, 1),
                   *values = ot_acc_in(g, n, 2), *mask = ot_acc_in(g, n, 4);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (has_more_results(g, n)) return ot_acc_refuse(why, OT_WHY_ATTENTION_OUTPUTS);
    if (has_any(g, n, caches, 4)) return ot_acc_refuse(why, OT_WHY_ATTENTION_CACHE);
    if (!x || !keys || !values || x->rank != 3 || keys->rank < 3)
        return ot_acc_refuse(why, OT_WHY_ATTENTION_RANK);
    if (axis > 1) return ot_acc_refuse(why, OT_WHY_ATTENTION_WIDTH);
    if (axis == 0)
        return ot_acc_follow(&q, 0, 0) && ot_acc_follow(&q, 1, 0) && ot_acc_follow(&q, 2, 0) &&
               ot_acc_follow(&q, 4, 0) && cut_or_repeated(&q, 5, 0);
    if (ot_attr_int(n, "unidirectional", 0) != 0)
        return ot_acc_refuse(why, OT_WHY_ATTENTION_CAUSAL);
    /* one picture's numbers tell where its queries end, too */
    if (mask && mask->rank != 2 && mask->rank != 3)
        return ot_acc_refuse(why, OT_WHY_ATTENTION_LENGTHS);
    return ot_acc_follow(&q, 0, 1) && (!mask || mask->rank != 3 || ot_acc_follow(&q, 4, 1)) &&
           (!ot_acc_in(g, n, 5) || ot_acc_follow(&q, 5, 2));
}

/* ---- GroupQueryAttention (q, k, v, past k, past v, lengths - 1, total length, ...) ---- */

/* Rows are told from others by their number. */
static bool groups_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    static const uint32_t others[] = {9, 10, 11, 12, 13, 14, 15};
    const ot_acc_question q = ask(g, n, out_index, axis, in_axis, why);
    if (!ot_acc_regular(g, n, why)) return false;
    if (axis != 0)
        return ot_acc_refuse(why, out_index == 0 && axis == 1 ? OT_WHY_ATTENTION_CAUSAL
                                                              : OT_WHY_ATTENTION_WIDTH);
    if (has_any(g, n, others, 7)) return ot_acc_refuse(why, OT_WHY_ATTENTION_CACHE);
    for (uint32_t k = 0; k < 6; k++)
        if (!ot_acc_follow(&q, k, 0)) return false;
    cut_results(&q, 0, out_axis);
    return true;
}

/* ---- EmbedLayerNormalization (ids, segments, tables ..., mask 7, positions 8) ---- */

/* Its second result counts the mask's rows. */
static bool embed_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                       int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_acc_question q = ask(g, n, out_index, axis, in_axis, why);
    const ot_value *positions = ot_acc_in(g, n, 8);
    if (!ot_acc_regular(g, n, why)) return false;
    if (axis > 1 || out_index == 1) return ot_acc_refuse(why, OT_WHY_LAYER_NORM);
    if (axis == 1 && (!positions || ot_acc_in(g, n, 7)))
        return ot_acc_refuse(why, OT_WHY_ATTENTION_CAUSAL);
    if (axis == 1 && ot_acc_out(g, n, 1)) return ot_acc_refuse(why, OT_WHY_ATTENTION_OUTPUTS);
    cut_results(&q, (int32_t)axis, out_axis);
    if (axis == 1)
        return ot_acc_follow(&q, 0, 1) && ot_acc_follow(&q, 1, 1) && ot_acc_follow(&q, 8, 1);
    return ot_acc_follow(&q, 0, 0) && ot_acc_follow(&q, 1, 0) && ot_acc_follow(&q, 7, 0) &&
           cut_or_repeated(&q, 8, 0);
}

/* ---- RotaryEmbedding (x, positions, cos, sin) ---- */

/* x [b, rows, width] or [b, heads, rows, width]; positions [b, rows], or where the first row is. */
static bool rotary_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                        int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const ot_acc_question q = ask(g, n, out_index, axis, in_axis, why);
    const ot_value *x = ot_acc_in(g, n, 0), *at = ot_acc_in(g, n, 1);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!x || !at || (x->rank != 3 && x->rank != 4) || ot_attr_int(n, "is_packed_batching", 0) != 0)
        return ot_acc_refuse(why, OT_WHY_ATTENTION_RANK);
    const uint32_t rows = (uint32_t)x->rank - 2;
    if (axis > rows) return ot_acc_refuse(why, OT_WHY_ATTENTION_WIDTH);
    if (axis == rows && at->rank != 2) return ot_acc_refuse(why, OT_WHY_ATTENTION_CAUSAL);
    if (!ot_acc_follow(&q, 0, (int32_t)axis)) return false;
    if (at->rank != 2 || (axis != 0 && axis != rows)) return true;
    return ot_acc_follow(&q, 1, axis == 0 ? 0 : 1);
}

/* ---- products whose columns stay whole ---- */

/* Rows of operand 0; what is added to them may have rows as well. */
static bool product_axis(const ot_graph *g, const ot_node *n, uint32_t out_index, uint32_t axis,
                         int8_t *in_axis, int8_t *out_axis, ot_why *why)
{
    const bool gemm = strcmp(n->op_type, "QGemm") == 0,
               scaled = strcmp(n->op_type, "MatMulIntegerToFloat") == 0;
    const ot_acc_question q = ask(g, n, out_index, axis, in_axis, why);
    const ot_value *a = ot_acc_in(g, n, 0), *y = ot_acc_out(g, n, out_index),
                   *scale = ot_acc_in(g, n, gemm ? 1 : 2), *sum = ot_acc_in(g, n, 6);
    (void)out_axis;
    if (!ot_acc_regular(g, n, why)) return false;
    if (!a || a->rank != y->rank || (int32_t)axis == y->rank - 1)
        return ot_acc_refuse(why, OT_WHY_MATMUL_OPERAND);
    /* a scale for each row of A */
    if ((gemm || scaled) && (!scale || (scale->rank > 0 && scale->dims[0] != 1)))
        return ot_acc_refuse(why, OT_WHY_QUANT_SCALE);
    if (scaled && (!ot_acc_in(g, n, 1) || ot_acc_in(g, n, 1)->rank != 2))
        return ot_acc_refuse(why, OT_WHY_MATMUL_RANKS);
    if (gemm && sum && sum->rank == 2 && !cut_or_repeated(&q, 6, 0)) return false;
    return ot_acc_follow(&q, 0, gemm && ot_attr_int(n, "transA", 0) ? 1 : (int32_t)axis);
}

const ot_contrib ot_access_transformers[] = {
    {"Attention", {attention_axis, NULL, NULL}},
    {"QAttention", {attention_axis, NULL, NULL}},
    {"MultiHeadAttention", {heads_axis, NULL, NULL}},
    {"GroupQueryAttention", {groups_axis, NULL, NULL}},
    {"EmbedLayerNormalization", {embed_axis, NULL, NULL}},
    {"RotaryEmbedding", {rotary_axis, NULL, NULL}},
    {"MatMulNBits", {product_axis, NULL, NULL}},
    {"MatMulIntegerToFloat", {product_axis, NULL, NULL}},
    {"QGemm", {product_axis, NULL, NULL}},
    {NULL, {NULL, NULL, NULL}},
};
