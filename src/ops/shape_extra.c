/* Shapes of operators outside ops.def: few are tiled (access_contrib.c), but what follows them
 * needs their sizes.
 *
 * Old experimental operators (ScaledTanh...), signal processing, random numbers, and the
 * fused operators that ONNX Runtime writes into optimised models (domain com.microsoft). Nothing
 * here is an error and nothing is exact: a rule that does not apply leaves the output as the file
 * states it.
 */
#include "ops.h"
#include "shape.h"

#define MS "com.microsoft"
#define ML "ai.onnx.ml"

static ot_dtype type_attr(const ot_infer *c, const char *name, ot_dtype dflt)
{
    int64_t t = ot_attr_int(c->n, name, dflt);
    return t > 0 && t <= OT_I2 ? (ot_dtype)t : OT_DT_UNKNOWN;
}

static int64_t dim_at(const ot_value *v, int32_t a)
{
    if (v == NULL) return OT_DIM_UNKNOWN;
    if (a < 0) a += v->rank;
    return a >= 0 && a < v->rank ? v->dims[a] : OT_DIM_UNKNOWN;
}

static ot_status like_first(ot_infer *c)
{
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 0), ot_shape_ranked(c, 0));
    return OT_OK;
}

static ot_status float_like(ot_infer *c)
{
    ot_shape_set_like(c, 0, OT_F32, ot_shape_ranked(c, 0));
    return OT_OK;
}

/* The type is that of a table in an attribute. */
static ot_status like_of_any_type(ot_infer *c)
{
    ot_shape_set_like(c, 0, OT_DT_UNKNOWN, ot_shape_ranked(c, 0));
    return OT_OK;
}

static ot_status has_element(ot_infer *c)
{
    ot_shape_set(c, 0, OT_BOOL, 0, NULL);
    return OT_OK;
}

/* SkipLayerNormalization: result, mean, inverse deviation, sum of the inputs. */
static ot_status skip_norm(ot_infer *c)
{
    ot_shape_set_like(c, 3, ot_shape_dtype(c, 0), ot_shape_ranked(c, 0));
    return like_first(c);
}

static ot_status random_like(ot_infer *c)
{
    ot_shape_set_like(c, 0, type_attr(c, "dtype", ot_shape_dtype(c, 0)), ot_shape_ranked(c, 0));
    return OT_OK;
}

static ot_status random_of(ot_infer *c)
{
    size_t n = 0;
    const int64_t *d = ot_attr_ints(c->n, "shape", &n);
    if (d != NULL && n <= OT_RANK_MAX)
        ot_shape_set(c, 0, type_attr(c, "dtype", OT_F32), (int32_t)n, d);
    return OT_OK;
}

ot_status ot_shape_grid_sample(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *grid = ot_shape_ranked(c, 1);
    int64_t d[OT_RANK_MAX];
    if (x == NULL || grid == NULL || x->rank < 3 || grid->rank != x->rank) return OT_OK;
    for (int32_t a = 0; a < x->rank; a++) d[a] = a < 2 ? x->dims[a] : grid->dims[a - 1];
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

static ot_status dynamic_quantize(ot_infer *c)
{
    ot_shape_set_like(c, 0, OT_U8, ot_shape_ranked(c, 0));
    ot_shape_set(c, 1, OT_F32, 0, NULL);
    ot_shape_set(c, 2, OT_U8, 0, NULL);
    return OT_OK;
}

/* ---- signals ---- */

static ot_status window_function(ot_infer *c)
{
    int64_t d[1] = {OT_DIM_UNKNOWN};
    if (!ot_shape_int(c, 0, &d[0]) || d[0] < 0) d[0] = OT_DIM_UNKNOWN;
    ot_shape_set(c, 0, type_attr(c, "output_datatype", OT_F32), 1, d);
    return OT_OK;
}

static ot_status stft(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t step, size = dim_at(ot_shape_ranked(c, 2), 0), given;
    bool half = ot_attr_int(c->n, "onesided", 1) != 0;
    if (ot_shape_int(c, 3, &given)) size = given;
    int64_t length = dim_at(x, 1);
    int64_t d[4] = {dim_at(x, 0), OT_DIM_UNKNOWN, OT_DIM_UNKNOWN, 2};
    if (size > 0 && size <= OT_SHAPE_DIM_MAX) {
        d[2] = half ? size / 2 + 1 : size;
        if (ot_shape_int(c, 1, &step) && step > 0 && length >= size)
            d[1] = (length - size) / step + 1;
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 4, d);
    return OT_OK;
}

static ot_status dft(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t axis = c->n->version >= 20 ? -2 : ot_attr_int(c->n, "axis", 1), size;
    if (c->n->version >= 20 && ot_shape_in(c, 2) != NULL && !ot_shape_int(c, 2, &axis))
        axis = INT64_MAX;
    if (x == NULL || x->rank < 2) return OT_OK;
    if (axis < 0) axis += x->rank;
    int64_t d[OT_RANK_MAX];
    for (int32_t a = 0; a < x->rank; a++)
        d[a] = axis < 0 || axis >= x->rank ? OT_DIM_UNKNOWN : x->dims[a];
    if (axis >= 0 && axis < x->rank) {
        bool half = ot_attr_int(c->n, "onesided", 0) != 0,
             back = ot_attr_int(c->n, "inverse", 0) != 0;
        if (ot_shape_in(c, 1) != NULL)
            d[axis] = ot_shape_int(c, 1, &size) && size > 0 ? size : OT_DIM_UNKNOWN;
        if (half && back)
            d[axis] = OT_DIM_UNKNOWN;
        else if (half && d[axis] >= 0)
            d[axis] = d[axis] / 2 + 1;
        d[x->rank - 1] = half && back ? 1 : 2;
    }
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

static ot_status mel_matrix(ot_infer *c)
{
    int64_t bins, size, d[2] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN};
    if (ot_shape_int(c, 0, &bins) && bins >= 0) d[1] = bins;
    if (ot_shape_int(c, 1, &size) && size >= 0) d[0] = size / 2 + 1;
    ot_shape_set(c, 0, type_attr(c, "output_datatype", OT_F32), 2, d);
    return OT_OK;
}

/* ---- com.microsoft ---- */

/* Broadcast of inputs a and b. */
static ot_status broadcast_two(ot_infer *c, uint32_t a, uint32_t b)
{
    const ot_value *x = ot_shape_ranked(c, a), *y = ot_shape_ranked(c, b);
    ot_shp o = {.dtype = ot_shape_dtype(c, a), .rank = 0};
    if (x == NULL || y == NULL || !ot_shape_broadcast(&o, x->rank, x->dims) ||
        !ot_shape_broadcast(&o, y->rank, y->dims))
        return OT_OK;
    ot_shape_set(c, 0, o.dtype, o.rank, o.d);
    return OT_OK;
}

static ot_status qlinear_binary(ot_infer *c) { return broadcast_two(c, 0, 3); }

static ot_status qlinear_global_pool(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    bool last = ot_attr_int(c->n, "channels_last", 0) != 0;
    int64_t d[OT_RANK_MAX];
    if (x == NULL || x->rank < 3) return OT_OK;
    for (int32_t a = 0; a < x->rank; a++)
        d[a] = a == 0 || a == (last ? x->rank - 1 : 1) ? x->dims[a] : 1;
    ot_shape_set(c, 0, x->dtype, x->rank, d);
    return OT_OK;
}

static ot_status qlinear_pool(ot_infer *c)
{
    if (ot_attr_int(c->n, "channels_last", 0) != 0) return OT_OK;
    return ot_shape_pool(c);
}

/* Triples of tensor, scale, zero point after the output's scale and zero point. */
static ot_status qlinear_concat(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 2);
    if (x == NULL || x->rank < 1) return OT_OK;
    int64_t axis = ot_attr_int(c->n, "axis", 0), d[OT_RANK_MAX], sum = 0;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank) return OT_OK;
    for (int32_t a = 0; a < x->rank; a++) d[a] = x->dims[a];
    for (uint32_t k = 2; k < c->n->n_in; k += 3) {
        int64_t piece = dim_at(ot_shape_ranked(c, k), (int32_t)axis);
        if (piece < 0 || sum < 0 || !ot_add_i64(sum, piece, &sum)) sum = OT_DIM_UNKNOWN;
    }
    d[axis] = sum;
    ot_shape_set(c, 0, ot_shape_dtype(c, 1), x->rank, d);
    return OT_OK;
}

/* MatMul whose operands may be transposed in their last two axes. */
static ot_status fused_matmul(ot_infer *c)
{
    const ot_value *a = ot_shape_ranked(c, 0), *b = ot_shape_ranked(c, 1);
    if (a == NULL || b == NULL || a->rank < 2 || b->rank < 2) return OT_OK;
    if (ot_attr_int(c->n, "transBatchA", 0) != 0 || ot_attr_int(c->n, "transBatchB", 0) != 0)
        return OT_OK;
    ot_shp o = {.dtype = a->dtype, .rank = 0};
    if (!ot_shape_broadcast(&o, a->rank - 2, a->dims) ||
        !ot_shape_broadcast(&o, b->rank - 2, b->dims))
        return OT_OK;
    o.d[o.rank++] = dim_at(a, ot_attr_int(c->n, "transA", 0) != 0 ? -1 : -2);
    o.d[o.rank++] = dim_at(b, ot_attr_int(c->n, "transB", 0) != 0 ? -2 : -1);
    ot_shape_set(c, 0, o.dtype, o.rank, o.d);
    return OT_OK;
}

/* Integer product that comes back as float: the type of input 2 (a scale) or of input 0. */
static ot_status float_matmul(ot_infer *c)
{
    OT_TRY(ot_shape_matmul(c));
    ot_dtype a = ot_shape_dtype(c, 0);
    ot_shape_set_type(c, 0, a == OT_F32 || a == OT_F16 ? a : ot_shape_dtype(c, 2));
    return OT_OK;
}

/* A (input 0) by B (input 3); float without scale and zero point of the result. */
static ot_status qgemm(ot_infer *c)
{
    const ot_value *a = ot_shape_ranked(c, 0), *b = ot_shape_ranked(c, 3);
    if (a == NULL || b == NULL || a->rank != 2 || b->rank != 2) return OT_OK;
    int64_t d[2] = {a->dims[ot_attr_int(c->n, "transA", 0) != 0 ? 1 : 0],
                    b->dims[ot_attr_int(c->n, "transB", 0) != 0 ? 0 : 1]};
    bool floats = ot_shape_in(c, 7) == NULL;
    ot_shape_set(c, 0,
                 floats                      ? OT_F32
                 : ot_shape_in(c, 8) != NULL ? ot_shape_dtype(c, 8)
                                             : OT_U8,
                 2, d);
    return OT_OK;
}

static ot_status matmul_nbits(ot_infer *c)
{
    const ot_value *a = ot_shape_ranked(c, 0);
    int64_t d[OT_RANK_MAX];
    if (a == NULL || a->rank < 1) return OT_OK;
    for (int32_t k = 0; k < a->rank; k++) d[k] = a->dims[k];
    d[a->rank - 1] = ot_attr_int(c->n, "N", OT_DIM_UNKNOWN);
    ot_shape_set(c, 0, a->dtype, a->rank, d);
    return OT_OK;
}

/* Attention of one packed projection: (batch, sequence, hidden) out, hidden from the bias or the
 * weight. */
static ot_status packed_attention(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *w = ot_shape_ranked(c, 1),
                   *bias = ot_shape_ranked(c, 2);
    size_t n = 0;
    const int64_t *sizes = ot_attr_ints(c->n, "qkv_hidden_sizes", &n);
    if (x == NULL || x->rank != 3) return OT_OK;
    int64_t all = bias != NULL ? dim_at(bias, 0) : dim_at(w, 1);
    int64_t d[3] = {x->dims[0], x->dims[1],
                    sizes != NULL && n == 3 ? sizes[2]
                    : all >= 0              ? all / 3
                                            : OT_DIM_UNKNOWN};
    ot_shape_set(c, 0, x->dtype, 3, d);
    return OT_OK;
}

static ot_status multi_head(ot_infer *c)
{
    const ot_value *q = ot_shape_ranked(c, 0), *v = ot_shape_ranked(c, 2);
    if (q == NULL || v == NULL || q->rank != 3 || v->rank != 3) return OT_OK;
    int64_t d[3] = {q->dims[0], q->dims[1], v->dims[2]};
    ot_shape_set(c, 0, q->dtype, 3, d);
    return OT_OK;
}

static ot_status embed_norm(ot_infer *c)
{
    const ot_value *ids = ot_shape_ranked(c, 0), *table = ot_shape_ranked(c, 2);
    int64_t d[3] = {dim_at(ids, 0), dim_at(ids, 1), dim_at(table, 1)};
    ot_dtype t = ot_shape_dtype(c, 2);
    ot_shape_set(c, 0, t, 3, d);
    ot_shape_set(c, 1, OT_I32, 1, d);
    ot_shape_set(c, 2, t, 3, d);
    return OT_OK;
}

/* ---- ai.onnx.ml: a row of results for each row of the input ---- */

static void rows_of(ot_infer *c, uint32_t k, ot_dtype t, int64_t columns)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    if (x == NULL || x->rank < 1 || x->rank > 2) return;
    const int64_t d[2] = {x->rank == 2 ? x->dims[0] : 1, columns};
    ot_shape_set(c, k, t, columns == 0 ? 1 : 2, d);
}

/* The results of a regressor; an SVM has one. */
static ot_status regressor(ot_infer *c)
{
    const bool tree = strncmp(c->n->op_type, "Tree", 4) == 0;
    const int64_t n = ot_attr_int(c->n, tree ? "n_targets" : "targets", 1);
    if (n > 0 && n <= OT_SHAPE_ATTR_MAX)
        rows_of(c, 0, strcmp(c->n->op_type, "TreeEnsemble") ? OT_F32 : ot_shape_dtype(c, 0), n);
    return OT_OK;
}

/* The class, and a score of each class; those of an SVM may be of pairs. */
static ot_status classifier(ot_infer *c)
{
    const bool of_pairs = strncmp(c->n->op_type, "SVM", 3) == 0,
               tree = strncmp(c->n->op_type, "Tree", 4) == 0;
    const ot_attr *texts = ot_attr_find(c->n, "classlabels_strings"),
                  *ints = ot_attr_find(c->n, tree ? "classlabels_int64s" : "classlabels_ints");
    const bool named = texts != NULL && texts->kind == OT_ATTR_STRINGS && texts->n > 0;
    const size_t n = named ? texts->n : ints != NULL && ints->kind == OT_ATTR_INTS ? ints->n : 0;
    rows_of(c, 0, named ? OT_STRING : OT_I64, 0);
    rows_of(c, 1, OT_F32, of_pairs || n < 2 ? OT_DIM_UNKNOWN : (int64_t)n);
    return OT_OK;
}

static ot_status feature_vector(ot_infer *c)
{
    size_t n = 0;
    int64_t sum = 0;
    const int64_t *sizes = ot_attr_ints(c->n, "inputdimensions", &n);
    for (size_t k = 0; k < n; k++)
        if (sizes[k] < 0 || !ot_add_i64(sum, sizes[k], &sum)) return OT_OK;
    rows_of(c, 0, OT_F32, sum > 0 ? sum : OT_DIM_UNKNOWN);
    return OT_OK;
}

static const struct {
    const char *domain, *op_type;
    ot_shape_rule rule;
} extras[] = {
    {"", "ParametricSoftplus", like_first},
    {"", "ScaledTanh", like_first},
    {"", "SimplifiedLayerNormalization", like_first},
    {"", "RotaryEmbedding", like_first},
    {"", "TensorScatter", like_first},
    {"", "Bernoulli", random_like},
    {"", "RandomNormalLike", random_like},
    {"", "RandomUniformLike", random_like},
    {"", "RandomNormal", random_of},
    {"", "RandomUniform", random_of},
    {"", "MaxRoiPool", ot_shape_max_roi_pool},
    {"", "Col2Im", ot_shape_col2im},
    {"", "AffineGrid", ot_shape_affine_grid},
    {"", "CenterCropPad", ot_shape_center_crop_pad},
    {"", "CumProd", like_first},
    {"", "BitCast", ot_shape_bit_cast},
    {"", "NegativeLogLikelihoodLoss", ot_shape_loss},
    {"", "SoftmaxCrossEntropyLoss", ot_shape_loss},
    {"", "CausalConvWithState", ot_shape_causal_conv},
    {"", "LinearAttention", ot_shape_linear_attention},
    {"ai.onnx.preview", "FlexAttention", ot_shape_flex_attention},
    {"", "OptionalHasElement", has_element},
    {ML, "Binarizer", like_first},
    {ML, "Imputer", like_first},
    {ML, "Normalizer", float_like},
    {ML, "Scaler", float_like},
    {ML, "LabelEncoder", like_of_any_type},
    {ML, "CategoryMapper", like_of_any_type},
    {ML, "TreeEnsemble", regressor},
    {ML, "TreeEnsembleRegressor", regressor},
    {ML, "LinearRegressor", regressor},
    {ML, "SVMRegressor", regressor},
    {ML, "TreeEnsembleClassifier", classifier},
    {ML, "LinearClassifier", classifier},
    {ML, "SVMClassifier", classifier},
    {ML, "FeatureVectorizer", feature_vector},
    {"", "DynamicQuantizeLinear", dynamic_quantize},
    {"", "HannWindow", window_function},
    {"", "HammingWindow", window_function},
    {"", "BlackmanWindow", window_function},
    {"", "STFT", stft},
    {"", "DFT", dft},
    {"", "MelWeightMatrix", mel_matrix},
    {MS, "Gelu", like_first},
    {MS, "FastGelu", like_first},
    {MS, "BiasGelu", like_first},
    {MS, "QuickGelu", like_first},
    {MS, "ScaledSiLU", like_first},
    {MS, "BiasAdd", like_first},
    {MS, "BiasSoftmax", like_first},
    {MS, "GroupNorm", like_first},
    {MS, "RotaryEmbedding", like_first},
    {MS, "Trilu", like_first},
    {MS, "SkipLayerNormalization", skip_norm},
    {MS, "SkipSimplifiedLayerNormalization", skip_norm},
    {MS, "QLinearLeakyRelu", like_first},
    {MS, "QLinearSigmoid", like_first},
    {MS, "QLinearSoftmax", like_first},
    {MS, "QLinearAdd", qlinear_binary},
    {MS, "QLinearMul", qlinear_binary},
    {MS, "QLinearAveragePool", qlinear_pool},
    {MS, "QLinearGlobalAveragePool", qlinear_global_pool},
    {MS, "QLinearConcat", qlinear_concat},
    {MS, "QuantizeLinear", ot_shape_quantize},
    {MS, "DequantizeLinear", ot_shape_dequantize},
    {MS, "FusedConv", ot_shape_conv},
    {MS, "FusedGemm", ot_shape_gemm},
    {MS, "GemmFastGelu", ot_shape_matmul},
    {MS, "FusedMatMul", fused_matmul},
    {MS, "TransposeMatMul", fused_matmul},
    {MS, "DynamicQuantizeMatMul", float_matmul},
    {MS, "MatMulIntegerToFloat", float_matmul},
    {MS, "QGemm", qgemm},
    {MS, "MatMulNBits", matmul_nbits},
    {MS, "Attention", packed_attention},
    {MS, "MultiHeadAttention", multi_head},
    {MS, "EmbedLayerNormalization", embed_norm},
    {MS, "GridSample", ot_shape_grid_sample},
    {OT_TILE_DOMAIN, "Alloc", ot_shape_tile_alloc},
    {OT_TILE_DOMAIN, "While", ot_shape_tile_while},
    {OT_TILE_DOMAIN, "Slice", ot_shape_tile_slice},
    {OT_TILE_DOMAIN, "Deslice", ot_shape_tile_deslice},
};

ot_shape_rule ot_shape_extra_rule(const ot_node *n)
{
    for (size_t k = 0; k < sizeof extras / sizeof extras[0]; k++)
        if (strcmp(n->op_type, extras[k].op_type) == 0 && strcmp(n->domain, extras[k].domain) == 0)
            return extras[k].rule;
    return NULL;
}
