/* Shape rules of arithmetic: element-wise operators (numpy broadcast), normalisations, reductions,
 * matrix products and quantisation.
 */
#include "shape.h"

/* ---- element-wise ---- */

ot_status ot_shape_same(ot_infer *c)
{
    ot_dtype type = ot_shape_dtype(c, c->n->op == OT_OP_RMSNormalization ? 1 : 0);
    ot_shape_set_like(c, 0, type, ot_shape_ranked(c, 0));
    return OT_OK;
}

static ot_dtype pointwise_type(const ot_infer *c)
{
    ot_dtype t = OT_DT_UNKNOWN;
    uint32_t first = c->n->op == OT_OP_Where ? 1 : 0;
    uint32_t end = c->n->op == OT_OP_Pow ? 1 : c->n->n_in;
    for (uint32_t k = first; k < end && t == OT_DT_UNKNOWN; k++) t = ot_shape_dtype(c, k);
    return t;
}

/* Inputs that take part in the broadcast: all, but for the bounds of Clip and the slope of PRelu.
 */
static uint32_t broadcast_inputs(const ot_infer *c)
{
    if (c->n->op == OT_OP_Clip) return 1;
    return c->n->n_in;
}

static ot_status pointwise(ot_infer *c, ot_dtype type)
{
    ot_shape_set_type(c, 0, type);
    /* before 7: like the first */
    uint32_t n = c->n->version > 0 && c->n->version < 7 ? 1 : broadcast_inputs(c);
    ot_shp o = {.dtype = type, .rank = 0};
    for (uint32_t k = 0; k < n; k++) {
        const ot_value *x = ot_shape_ranked(c, k);
        if (x == NULL) return OT_OK;
        if (!ot_shape_broadcast(&o, x->rank, x->dims))
            return ot_shape_fail(c, "input %u ('%s') does not broadcast with the inputs before it",
                                 k, x->name);
    }
    const ot_value *x = ot_shape_ranked(c, 0);
    if (c->n->op == OT_OP_PRelu && x != NULL && o.rank > x->rank)
        return ot_shape_fail(c, "slope has a larger rank than the input");
    for (int32_t a = 0; c->n->op == OT_OP_PRelu && x != NULL && a < o.rank; a++)
        if (x->dims[a] >= 0 && o.d[a] != x->dims[a])
            return ot_shape_fail(c, "slope does not broadcast to the input");
    ot_shape_set(c, 0, type, o.rank, o.d);
    return OT_OK;
}

ot_status ot_shape_pointwise(ot_infer *c) { return pointwise(c, pointwise_type(c)); }
ot_status ot_shape_pointwise_bool(ot_infer *c) { return pointwise(c, OT_BOOL); }

/* Operands of one shape, which do not broadcast. */
ot_status ot_shape_alike(ot_infer *c)
{
    const ot_value *first = NULL;
    ot_shp o = {.dtype = ot_shape_dtype(c, 0), .rank = -1};
    ot_shape_set_type(c, 0, o.dtype);
    for (uint32_t k = 0; k < c->n->n_in; k++) {
        const ot_value *x = ot_shape_ranked(c, k);
        if (x == NULL) continue;
        if (first == NULL) {
            first = x;
            o.rank = x->rank;
            memcpy(o.d, x->dims, (size_t)x->rank * sizeof o.d[0]);
        }
        bool same = x->rank == o.rank;
        for (int32_t a = 0; same && a < o.rank; a++) same = ot_shape_merge(&o.d[a], x->dims[a]);
        if (!same)
            return ot_shape_fail(c, "input %u ('%s') has another shape than '%s'", k, x->name,
                                 first->name);
    }
    ot_shape_set(c, 0, o.dtype, o.rank, o.d);
    return OT_OK;
}

ot_status ot_shape_cast(ot_infer *c)
{
    int64_t to = ot_attr_int(c->n, "to", 0);
    ot_dtype type = OT_DT_UNKNOWN;
    if (c->n->op == OT_OP_CastLike)
        type = ot_shape_dtype(c, 1);
    else if (to > 0 && to <= OT_I2)
        type = (ot_dtype)to;
    else if (c->n->version >= 6)
        return ot_shape_fail(c, "attribute 'to' is %lld, no data type", (long long)to);
    ot_shape_set_like(c, 0, type, ot_shape_ranked(c, 0));
    return OT_OK;
}

ot_status ot_shape_dropout(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_dtype type = ot_shape_dtype(c, 0);
    ot_shape_set_like(c, 0, type, x);
    ot_shape_set_like(c, 1, c->n->version >= 10 ? OT_BOOL : type, x);
    return OT_OK;
}

/* ---- normalisation ---- */

/* Input k is a vector with one element per channel. */
static ot_status check_vector(ot_infer *c, uint32_t k, int64_t channels)
{
    const ot_value *v = ot_shape_ranked(c, k);
    if (v == NULL || channels < 0) return OT_OK;
    if (v->rank != 1 || (v->dims[0] >= 0 && v->dims[0] != channels))
        return ot_shape_fail(c, "input %u ('%s') must have shape [%lld]", k, v->name,
                             (long long)channels);
    return OT_OK;
}

ot_status ot_shape_batch_norm(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0), *scale = ot_shape_ranked(c, 1);
    ot_dtype type = ot_shape_dtype(c, 0), stat = ot_shape_dtype(c, 3);
    int64_t channels = x != NULL ? (x->rank > 1 ? x->dims[1] : 1) : OT_DIM_UNKNOWN;
    bool per_feature = ot_attr_int(c->n, "spatial", 1) == 0 && c->n->version < 9;
    for (uint32_t k = 1; k < 5 && !per_feature; k++) OT_TRY(check_vector(c, k, channels));
    ot_shape_set_like(c, 0, type, x);
    if (channels < 0 && scale != NULL && scale->rank == 1) channels = scale->dims[0];
    for (uint32_t k = 1; k < 5; k++) ot_shape_set(c, k, stat, per_feature ? -1 : 1, &channels);
    return OT_OK;
}

ot_status ot_shape_instance_norm(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 0), x);
    if (x == NULL) return OT_OK;
    if (x->rank < 2) return ot_shape_fail(c, "input has rank %d, needs N and C", x->rank);
    if (c->n->op == OT_OP_InstanceNormalization) {
        OT_TRY(check_vector(c, 1, x->dims[1]));
        return check_vector(c, 2, x->dims[1]);
    }
    int64_t groups = ot_attr_int(c->n, "num_groups", 0);
    if (groups < 1 || (x->dims[1] >= 0 && x->dims[1] % groups != 0))
        return ot_shape_fail(c, "num_groups %lld does not divide %lld channels", (long long)groups,
                             (long long)x->dims[1]);
    return OT_OK;
}

ot_status ot_shape_layer_norm(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    int64_t stash = ot_attr_int(c->n, "stash_type", OT_F32), d[OT_RANK_MAX];
    ot_dtype stat = stash > 0 && stash <= OT_I2 ? (ot_dtype)stash : OT_F32;
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 0), x);
    ot_shape_set_type(c, 1, stat);
    ot_shape_set_type(c, 2, stat);
    if (x == NULL) return OT_OK;
    uint32_t axis;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", -1), x->rank, &axis));
    for (int32_t a = 0; a < x->rank; a++) d[a] = (uint32_t)a < axis ? x->dims[a] : 1;
    ot_shape_set(c, 1, stat, x->rank, d);
    ot_shape_set(c, 2, stat, x->rank, d);
    return OT_OK;
}

ot_status ot_shape_softmax(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    uint32_t axis;
    ot_shape_set_like(c, 0, ot_shape_dtype(c, 0), x);
    if (x == NULL || x->rank == 0) return OT_OK;
    return ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", c->n->version < 13 ? 1 : -1), x->rank,
                         &axis);
}

/* ---- reductions ---- */

/* Output shape of reducing the axes in mask. */
static void set_reduced(ot_infer *c, ot_dtype type, const ot_value *x, const bool *mask, bool keep)
{
    int64_t d[OT_RANK_MAX];
    int32_t rank = 0;
    for (int32_t a = 0; a < x->rank; a++) {
        if (mask[a] && !keep) continue;
        d[rank++] = mask[a] ? 1 : x->dims[a];
    }
    ot_shape_set(c, 0, type, rank, d);
}

ot_status ot_shape_reduce(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_dtype type = ot_shape_dtype(c, 0);
    bool keep = ot_attr_int(c->n, "keepdims", 1) != 0, given, mask[OT_RANK_MAX];
    const int64_t *axes;
    size_t n = 0;
    ot_shape_set_type(c, 0, type);
    ot_shape_axes_of(c, "axes", 1, &given, &axes, &n);
    bool none = !given || n == 0;
    if (none && ot_attr_int(c->n, "noop_with_empty_axes", 0) != 0) {
        ot_shape_set_like(c, 0, type, x);
        return OT_OK;
    }
    if (x == NULL) {
        if (none && !keep) ot_shape_set(c, 0, type, 0, NULL);
        return OT_OK;
    }
    if (none) {
        for (int32_t a = 0; a < OT_RANK_MAX; a++) mask[a] = true;
    } else if (axes == NULL) {
        if (keep)
            ot_shape_set(c, 0, type, x->rank, NULL);
        else if (n <= (size_t)x->rank)
            ot_shape_set(c, 0, type, x->rank - (int32_t)n, NULL);
        return OT_OK;
    } else {
        OT_TRY(ot_shape_axes(c, "axes", axes, n, x->rank, mask));
    }
    set_reduced(c, type, x, mask, keep);
    return OT_OK;
}

/* [..., 1, 2]: the reduced axes have one element, the last of them two, mean and variance. */
ot_status ot_shape_moments(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    bool given, mask[OT_RANK_MAX];
    const int64_t *axes;
    int64_t dims[OT_RANK_MAX];
    size_t n = 0;
    ot_shape_set_type(c, 0, OT_F64);
    ot_shape_axes_of(c, "axes", 1, &given, &axes, &n);
    if (x == NULL) return OT_OK;
    if (!given || axes == NULL) return ot_shape_fail(c, "attribute axes is missing");
    OT_TRY(ot_shape_axes(c, "axes", axes, n, x->rank, mask));
    if (n == 0 || n > (size_t)x->rank)
        return ot_shape_fail(c, "axes are not the last ones, in order");
    for (size_t k = 0; k < n; k++)
        if (axes[k] != x->rank - (int64_t)n + (int64_t)k)
            return ot_shape_fail(c, "axes are not the last ones, in order");
    for (int32_t a = 0; a < x->rank; a++) dims[a] = mask[a] ? 1 : x->dims[a];
    dims[x->rank - 1] = 2;
    ot_shape_set(c, 0, OT_F64, x->rank, dims);
    return OT_OK;
}

/* A factor and a summand for each sample and channel, of the type that attribute dtype says. */
ot_status ot_shape_norm_factors(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    const ot_dtype type = (ot_dtype)ot_attr_int(c->n, "dtype", OT_F32);
    int64_t dims[OT_RANK_MAX], groups = ot_attr_int(c->n, "groups", 0);
    ot_shape_set_type(c, 0, type);
    ot_shape_set_type(c, 1, type);
    if (x == NULL) return OT_OK;
    if (x->rank < 3 || groups < 1 || (x->dims[1] >= 0 && x->dims[1] % groups != 0))
        return ot_shape_fail(c, "groups do not divide the channels");
    memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[x->rank - 1] = 1;
    ot_shape_set(c, 0, type, x->rank, dims);
    ot_shape_set(c, 1, type, x->rank, dims);
    return OT_OK;
}

ot_status ot_shape_arg_reduce(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, OT_I64);
    if (x == NULL) return OT_OK;
    bool mask[OT_RANK_MAX] = {false};
    uint32_t axis;
    OT_TRY(ot_shape_axis(c, "axis", ot_attr_int(c->n, "axis", 0), x->rank, &axis));
    mask[axis] = true;
    set_reduced(c, OT_I64, x, mask, ot_attr_int(c->n, "keepdims", 1) != 0);
    return OT_OK;
}

ot_status ot_shape_det(ot_infer *c)
{
    const ot_value *x = ot_shape_ranked(c, 0);
    ot_shape_set_type(c, 0, ot_shape_dtype(c, 0));
    if (x == NULL) return OT_OK;
    if (x->rank < 2) return ot_shape_fail(c, "input has rank %d, needs 2 or more", x->rank);
    int64_t m = x->dims[x->rank - 2];
    if (!ot_shape_merge(&m, x->dims[x->rank - 1]))
        return ot_shape_fail(c, "the matrices are not square");
    ot_shape_set(c, 0, x->dtype, x->rank - 2, x->dims);
    return OT_OK;
}

/* ---- matrix products ---- */

ot_status ot_shape_matmul(ot_infer *c)
{
    bool qlinear = c->n->op == OT_OP_QLinearMatMul;
    const ot_value *a = ot_shape_ranked(c, 0), *b = ot_shape_ranked(c, qlinear ? 3 : 1);
    ot_dtype type = c->n->op == OT_OP_MatMulInteger ? OT_I32 : ot_shape_dtype(c, qlinear ? 7 : 0);
    if (type == OT_DT_UNKNOWN && !qlinear) type = ot_shape_dtype(c, 1);
    ot_shape_set_type(c, 0, type);
    if (a == NULL || b == NULL) return OT_OK;
    if (a->rank == 0 || b->rank == 0) return ot_shape_fail(c, "an operand is a scalar");
    int64_t k = a->dims[a->rank - 1], other = b->rank == 1 ? b->dims[0] : b->dims[b->rank - 2];
    if (!ot_shape_merge(&k, other))
        return ot_shape_fail(
            c, "rows of the left operand have %lld elements, columns of the right have %lld",
            (long long)k, (long long)other);
    ot_shp o = {.dtype = type, .rank = a->rank > 2 ? a->rank - 2 : 0};
    for (int32_t d = 0; d < o.rank; d++) o.d[d] = a->dims[d];
    if (!ot_shape_broadcast(&o, b->rank > 2 ? b->rank - 2 : 0, b->dims))
        return ot_shape_fail(c, "the batch dims of the operands do not broadcast");
    if (a->rank > 1) o.d[o.rank++] = a->dims[a->rank - 2];
    if (b->rank > 1) o.d[o.rank++] = b->dims[b->rank - 1];
    ot_shape_set(c, 0, type, o.rank, o.d);
    return OT_OK;
}

ot_status ot_shape_gemm(ot_infer *c)
{
    const ot_value *a = ot_shape_ranked(c, 0), *b = ot_shape_ranked(c, 1),
                   *bias = ot_shape_ranked(c, 2);
    bool ta = ot_attr_int(c->n, "transA", 0) != 0, tb = ot_attr_int(c->n, "transB", 0) != 0;
    int64_t d[2] = {OT_DIM_UNKNOWN, OT_DIM_UNKNOWN}, k = OT_DIM_UNKNOWN;
    if ((a != NULL && a->rank != 2) || (b != NULL && b->rank != 2))
        return ot_shape_fail(c, "operand %s has rank %d, must have 2",
                             a != NULL && a->rank != 2 ? "A" : "B",
                             a != NULL && a->rank != 2 ? a->rank : b->rank);
    if (a != NULL) {
        d[0] = a->dims[ta ? 1 : 0];
        k = a->dims[ta ? 0 : 1];
    }
    if (b != NULL) {
        d[1] = b->dims[tb ? 0 : 1];
        if (!ot_shape_merge(&k, b->dims[tb ? 1 : 0]))
            return ot_shape_fail(c, "A has inner extent %lld, B has %lld", (long long)k,
                                 (long long)b->dims[tb ? 1 : 0]);
    }
    if (bias != NULL && c->n->version >= 7) {
        ot_shp o = {.rank = 2, .d = {d[0], d[1]}};
        bool fits = bias->rank <= 2 && ot_shape_broadcast(&o, bias->rank, bias->dims);
        for (int i = 0; i < 2 && fits; i++) fits = d[i] < 0 || o.d[i] == d[i];
        if (!fits) return ot_shape_fail(c, "operand C does not broadcast to the product");
    }
    ot_shape_set(c, 0, ot_shape_dtype(c, 0), 2, d);
    return OT_OK;
}

/* ---- quantisation ---- */

static ot_dtype type_attr(const ot_infer *c, ot_dtype dflt)
{
    int64_t t = ot_attr_int(c->n, "output_dtype", 0);
    return t > 0 && t <= OT_I2 ? (ot_dtype)t : dflt;
}

ot_status ot_shape_quantize(ot_infer *c)
{
    ot_dtype zero = ot_shape_dtype(c, 2);
    bool has_zero = ot_shape_in(c, 2) != NULL;
    ot_shape_set_like(c, 0, has_zero ? zero : type_attr(c, OT_U8), ot_shape_ranked(c, 0));
    return OT_OK;
}

ot_status ot_shape_dequantize(ot_infer *c)
{
    ot_dtype scale = ot_shape_dtype(c, 1);
    ot_shape_set_like(c, 0, type_attr(c, scale), ot_shape_ranked(c, 0));
    return OT_OK;
}
