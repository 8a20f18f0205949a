/* The table of shape rules, one row per operator of ops.def, and the small helpers that rules
 * share.
 *
 * A row also states how many inputs and outputs the operator takes over all its versions, so that
 * later stages may index the required inputs of a known operator without checking.
 */
#include "shape.h"

#include <stdarg.h>

#define ROW(op, rule, min_in, max_in, max_out) [OT_OP_##op] = {ot_shape_##rule, min_in, max_in, max_out}
#define STATED(op, min_in)                     [OT_OP_##op] = {NULL, min_in, OT_SHAPE_MANY, OT_SHAPE_MANY}
#define UNARY(op)                              ROW(op, pointwise, 1, 1, 1)
#define BINARY(op)                             ROW(op, pointwise, 2, 2, 1)
#define VARIADIC(op)                           ROW(op, pointwise, 1, OT_SHAPE_MANY, 1)
#define REDUCE(op)                             ROW(op, reduce, 1, 2, 1)

static const ot_shape_row rows[OT_OP_COUNT] = {
    ROW(Conv, conv, 2, 3, 1),
    ROW(ConvInteger, conv, 2, 4, 1),
    ROW(QLinearConv, conv, 8, 9, 1),
    ROW(ConvTranspose, conv_transpose, 2, 3, 1),
    ROW(MaxPool, pool, 1, 1, 2),
    ROW(AveragePool, pool, 1, 1, 1),
    ROW(LpPool, pool, 1, 1, 1),
    ROW(GlobalAveragePool, global_pool, 1, 1, 1),
    ROW(GlobalMaxPool, global_pool, 1, 1, 1),
    ROW(GlobalLpPool, global_pool, 1, 1, 1),
    ROW(BatchNormalization, batch_norm, 5, 5, 5),
    ROW(InstanceNormalization, instance_norm, 3, 3, 1),
    ROW(LayerNormalization, layer_norm, 2, 3, 3),
    ROW(GroupNormalization, instance_norm, 3, 3, 1),
    ROW(RMSNormalization, same, 2, 2, 1),
    ROW(LpNormalization, same, 1, 1, 1),
    ROW(MeanVarianceNormalization, same, 1, 1, 1),
    ROW(LRN, same, 1, 1, 1),
    ROW(Softmax, softmax, 1, 1, 1),
    ROW(LogSoftmax, softmax, 1, 1, 1),
    ROW(Hardmax, softmax, 1, 1, 1),
    REDUCE(ReduceMean),
    REDUCE(ReduceSum),
    REDUCE(ReduceMax),
    REDUCE(ReduceMin),
    REDUCE(ReduceProd),
    REDUCE(ReduceL1),
    REDUCE(ReduceL2),
    REDUCE(ReduceLogSum),
    REDUCE(ReduceLogSumExp),
    REDUCE(ReduceSumSquare),
    ROW(ArgMax, arg_reduce, 1, 1, 1),
    ROW(ArgMin, arg_reduce, 1, 1, 1),
    ROW(MatMul, matmul, 2, 2, 1),
    ROW(MatMulInteger, matmul, 2, 4, 1),
    ROW(QLinearMatMul, matmul, 8, 8, 1),
    ROW(Gemm, gemm, 2, 3, 1),
    ROW(Einsum, einsum, 1, OT_SHAPE_MANY, 1),
    ROW(Attention, attention, 3, 7, 4),
    ROW(QuantizeLinear, quantize, 2, 3, 1),
    ROW(DequantizeLinear, dequantize, 2, 3, 1),
    BINARY(Add),
    BINARY(Sub),
    BINARY(Mul),
    BINARY(Div),
    BINARY(Mod),
    BINARY(BitShift),
    BINARY(And),
    BINARY(Or),
    BINARY(Xor),
    BINARY(BitwiseAnd),
    BINARY(BitwiseOr),
    BINARY(BitwiseXor),
    BINARY(Equal),
    BINARY(Less),
    BINARY(LessOrEqual),
    BINARY(Greater),
    BINARY(GreaterOrEqual),
    BINARY(Pow),
    BINARY(PRelu),
    VARIADIC(Min),
    VARIADIC(Max),
    VARIADIC(Sum),
    VARIADIC(Mean),
    ROW(Where, pointwise, 3, 3, 1),
    ROW(Clip, pointwise, 1, 3, 1),
    UNARY(Not),
    UNARY(BitwiseNot),
    UNARY(Relu),
    UNARY(LeakyRelu),
    UNARY(ThresholdedRelu),
    UNARY(HardSigmoid),
    UNARY(HardSwish),
    UNARY(Abs),
    UNARY(Neg),
    UNARY(Sign),
    UNARY(Ceil),
    UNARY(Floor),
    UNARY(Round),
    UNARY(Reciprocal),
    UNARY(Sqrt),
    UNARY(IsNaN),
    UNARY(IsInf),
    UNARY(Shrink),
    UNARY(Softsign),
    UNARY(Exp),
    UNARY(Log),
    UNARY(Sigmoid),
    UNARY(Tanh),
    UNARY(Erf),
    UNARY(Elu),
    UNARY(Selu),
    UNARY(Celu),
    UNARY(Softplus),
    UNARY(Gelu),
    UNARY(Mish),
    UNARY(Swish),
    UNARY(Sin),
    UNARY(Cos),
    UNARY(Tan),
    UNARY(Asin),
    UNARY(Acos),
    UNARY(Atan),
    UNARY(Sinh),
    UNARY(Cosh),
    UNARY(Asinh),
    UNARY(Acosh),
    UNARY(Atanh),
    UNARY(Identity),
    ROW(Cast, cast, 1, 1, 1),
    ROW(CastLike, cast, 2, 2, 1),
    ROW(Dropout, dropout, 1, 3, 2),
    ROW(Transpose, transpose, 1, 1, 1),
    ROW(Reshape, reshape, 1, 2, 1),
    ROW(Flatten, flatten, 1, 1, 1),
    ROW(Squeeze, squeeze, 1, 2, 1),
    ROW(Unsqueeze, unsqueeze, 1, 2, 1),
    ROW(Expand, expand, 2, 2, 1),
    ROW(Concat, concat, 1, OT_SHAPE_MANY, 1),
    ROW(Split, split, 1, 2, OT_SHAPE_MANY),
    ROW(Slice, slice, 1, 5, 1),
    ROW(Pad, pad, 1, 4, 1),
    ROW(Resize, resize, 1, 4, 1),
    ROW(Upsample, resize, 1, 2, 1),
    ROW(DepthToSpace, depth_to_space, 1, 1, 1),
    ROW(SpaceToDepth, space_to_depth, 1, 1, 1),
    ROW(Gather, gather, 2, 2, 1),
    ROW(Tile, tile, 2, 3, 1),
    ROW(CumSum, same, 2, 2, 1),
    ROW(Shape, shape, 1, 1, 1),
    ROW(Size, size, 1, 1, 1),
    ROW(ConstantOfShape, constant_of_shape, 1, 1, 1),
    ROW(Range, range, 3, 3, 1),
    ROW(Constant, constant, 0, 0, 1),
    ROW(NonZero, non_zero, 1, 1, 1),
    ROW(EyeLike, eye_like, 1, 1, 1),
    ROW(TopK, top_k, 1, 2, 2),
    ROW(NonMaxSuppression, nms, 2, 5, 1),
    ROW(Scatter, same, 3, 3, 1),
    ROW(ScatterElements, same, 3, 3, 1),
    ROW(ScatterND, same, 3, 3, 1),
    ROW(GatherElements, gather_elements, 2, 2, 1),
    ROW(GatherND, gather_nd, 2, 2, 1),
    ROW(OneHot, one_hot, 3, 3, 1),
    ROW(LSTM, recurrent, 3, 8, 3),
    ROW(GRU, recurrent, 3, 6, 2),
    ROW(RNN, recurrent, 3, 6, 2),
    STATED(If, 1),
    STATED(Loop, 0),
    STATED(Scan, 0),
    ROW(Compress, compress, 2, 2, 1),
    ROW(Unique, unique, 1, 1, 4),
    ROW(RoiAlign, roi_align, 3, 3, 1),
    ROW(MaxUnpool, max_unpool, 2, 3, 1),
    ROW(ReverseSequence, same, 2, 2, 1),
    ROW(Det, det, 1, 1, 1),
    ROW(Trilu, same, 1, 2, 1),
};

const ot_shape_row *ot_shape_row_of(ot_op op)
{
    if (op <= OT_OP_OPAQUE || op >= OT_OP_COUNT) return NULL;
    return rows[op].max_out == 0 ? NULL : &rows[op];
}

ot_status(ot_shape_fail)(ot_infer *c, const char *fmt, ...)
{
    if (!c->exact) return OT_E_INPUT; /* the driver forgets it */
    char text[OT_DIAG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    const ot_node *n = c->n;
    ot_diag *diag = c->g->model->diag;
    if (n->name != NULL && n->name[0] != '\0') return ot_fail(diag, OT_E_INPUT, "node '%s' (%s): %s", n->name, n->op_type, text);
    const char *made = "?";
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] != OT_NONE) {
            made = c->g->values[n->out[k]].name;
            break;
        }
    return ot_fail(diag, OT_E_INPUT, "node making '%s' (%s): %s", made, n->op_type, text);
}

const ot_value *ot_shape_in(const ot_infer *c, uint32_t k)
{
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return NULL;
    return &c->g->values[c->n->in[k]];
}

const ot_value *ot_shape_ranked(const ot_infer *c, uint32_t k)
{
    const ot_value *v = ot_shape_in(c, k);
    return v != NULL && v->rank >= 0 ? v : NULL;
}

const ot_known *ot_shape_known(const ot_infer *c, uint32_t k)
{
    if (k >= c->n->n_in || c->n->in[k] == OT_NONE) return NULL;
    const ot_known *known = &c->known[c->n->in[k]];
    return known->valid ? known : NULL;
}

const int64_t *ot_shape_ints(const ot_infer *c, uint32_t k, size_t *n)
{
    const ot_known *known = ot_shape_known(c, k);
    if (known == NULL || known->i == NULL || known->ok != NULL) return NULL;
    *n = known->n;
    return known->i;
}

bool ot_shape_int(const ot_infer *c, uint32_t k, int64_t *out)
{
    size_t n = 0;
    const int64_t *i = ot_shape_ints(c, k, &n);
    if (i == NULL || n != 1) return false;
    *out = i[0];
    return true;
}

ot_dtype ot_shape_dtype(const ot_infer *c, uint32_t k)
{
    const ot_value *v = ot_shape_in(c, k);
    return v == NULL ? OT_DT_UNKNOWN : v->dtype;
}

void ot_shape_set(ot_infer *c, uint32_t k, ot_dtype t, int32_t rank, const int64_t *d)
{
    if (k >= c->n->n_out) return;
    ot_shp *o = &c->out[k];
    o->dtype = t;
    o->rank = rank > OT_RANK_MAX ? -1 : rank;
    for (int32_t a = 0; a < o->rank; a++) o->d[a] = d == NULL ? OT_DIM_UNKNOWN : d[a];
}

void ot_shape_set_type(ot_infer *c, uint32_t k, ot_dtype t)
{
    if (k < c->n->n_out) c->out[k].dtype = t;
}

void ot_shape_set_like(ot_infer *c, uint32_t k, ot_dtype t, const ot_value *v)
{
    ot_shape_set(c, k, t, v == NULL ? -1 : v->rank, v == NULL ? NULL : v->dims);
}

ot_status ot_shape_axis(ot_infer *c, const char *what, int64_t axis, int32_t rank, uint32_t *out)
{
    if (axis < -rank || axis >= rank) return ot_shape_fail(c, "%s %lld is not in [%d, %d)", what, (long long)axis, -rank, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return OT_OK;
}

ot_status ot_shape_axes(ot_infer *c, const char *what, const int64_t *axes, size_t n, int32_t rank, bool mask[OT_RANK_MAX])
{
    memset(mask, 0, OT_RANK_MAX * sizeof(bool));
    for (size_t k = 0; k < n; k++) {
        uint32_t a = 0;
        OT_TRY(ot_shape_axis(c, what, axes[k], rank, &a));
        if (mask[a]) return ot_shape_fail(c, "%s names axis %u twice", what, a);
        mask[a] = true;
    }
    return OT_OK;
}

void ot_shape_axes_of(const ot_infer *c, const char *attr, uint32_t k, bool *given, const int64_t **axes, size_t *n)
{
    *axes = ot_attr_ints(c->n, attr, n);
    *given = *axes != NULL;
    if (*given) return;
    const ot_value *v = ot_shape_in(c, k);
    if (v == NULL) return;
    *given = true;
    *axes = ot_shape_ints(c, k, n);
    if (*axes != NULL) return;
    *n = SIZE_MAX;
    if (v->rank == 0) *n = 1;
    if (v->rank == 1 && v->dims[0] >= 0) *n = (size_t)v->dims[0];
}

bool ot_shape_broadcast(ot_shp *a, int32_t rank, const int64_t *d)
{
    if (rank > a->rank) {
        int32_t more = rank - a->rank;
        memmove(a->d + more, a->d, (size_t)a->rank * sizeof a->d[0]);
        for (int32_t k = 0; k < more; k++) a->d[k] = 1;
        a->rank = rank;
    }
    for (int32_t k = 0; k < rank; k++) {
        int64_t *x = &a->d[a->rank - rank + k];
        int64_t y = d[k];
        if (*x == y || y == 1) continue;
        if (*x == 1 || *x == OT_DIM_UNKNOWN)
            *x = y; /* an unknown dim is 1 or y: y either way */
        else if (y != OT_DIM_UNKNOWN)
            return false;
    }
    return true;
}

bool ot_shape_merge(int64_t *a, int64_t b)
{
    if (*a == OT_DIM_UNKNOWN) *a = b;
    return b == OT_DIM_UNKNOWN || *a == b;
}
