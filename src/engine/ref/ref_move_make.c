/* Operators that make an array from little: Constant, ConstantOfShape, Range, EyeLike, OneHot,
 * Trilu, and the windows of signal processing.
 */
#include "ref_move.h"

#include "onnx/import/model_io.h"

#include <math.h>

/* ---- Constant ---- */

static ot_status put_tensor(ot_call *c, const ot_tensor *t)
{
    OT_TRY(ot_call_output(c, 0, t->dtype, t->rank, t->dims));
    size_t bytes = (size_t)ot_num_count(c->out[0]) * ot_mv_size(c->out[0]);
    if (bytes == 0) return OT_OK;
    if (ot_dtype_bits(t->dtype) < 8)
        return ot_tensor_unpack(t, c->out[0]->data)
                   ? OT_OK
                   : ot_call_fail(c, "the contents of its tensor are not held in memory");
    if (t->bytes != bytes || (!t->data && !t->proto))
        return ot_call_fail(c, "the contents of its tensor are not held in memory");
    if (t->data)
        memcpy(c->out[0]->data, t->data, bytes);
    else if (!ot_tensor_read(t, c->out[0]->data))
        return ot_call_fail(c, "the contents of its tensor cannot be read");
    return OT_OK;
}

static ot_status put_list(ot_call *c, ot_dtype t, uint32_t rank, size_t n, const void *from)
{
    int64_t dims[1] = {(int64_t)n};
    OT_TRY(ot_call_output(c, 0, t, rank, dims));
    if (n > 0) memcpy(c->out[0]->data, from, n * ot_dtype_bytes(t));
    return OT_OK;
}

ot_status ot_mv_constant(ot_call *c)
{
    for (uint32_t k = 0; k < c->node->n_attrs; k++) {
        const ot_attr *a = &c->node->attrs[k];
        if (strcmp(a->name, "value") == 0 && a->kind == OT_ATTR_TENSOR) return put_tensor(c, a->t);
        if (strcmp(a->name, "value_float") == 0 && a->kind == OT_ATTR_FLOAT)
            return put_list(c, OT_F32, 0, 1, &a->f);
        if (strcmp(a->name, "value_int") == 0 && a->kind == OT_ATTR_INT)
            return put_list(c, OT_I64, 0, 1, &a->i);
        if (strcmp(a->name, "value_floats") == 0 && a->kind == OT_ATTR_FLOATS)
            return put_list(c, OT_F32, 1, a->n, a->floats);
        if (strcmp(a->name, "value_ints") == 0 && a->kind == OT_ATTR_INTS)
            return put_list(c, OT_I64, 1, a->n, a->ints);
        if (strncmp(a->name, "value", 5) == 0 || strcmp(a->name, "sparse_value") == 0)
            return ot_call_fail(c,
                                "attribute '%.60s' (strings, a sparse tensor, or of the wrong "
                                "kind) is not supported",
                                a->name);
    }
    return ot_call_fail(c, "it has no value");
}

/* ---- ConstantOfShape ---- */

ot_status ot_mv_constant_of_shape(ot_call *c)
{
    static const float zero = 0;
    int64_t dims[OT_RANK_MAX];
    uint32_t rank;
    char value[16];
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_mv_shape(c, 0, &rank, dims));
    const ot_attr *a = ot_attr_find(c->node, "value");
    const ot_tensor *t = a && a->kind == OT_ATTR_TENSOR ? a->t : NULL;
    if (a && !t) return ot_call_fail(c, "attribute 'value' is no tensor");
    ot_dtype type = t ? t->dtype : OT_F32;
    size_t size = ot_dtype_bytes(type);
    if (t && (size == 0 || t->bytes != size || (!t->data && !t->proto)))
        return ot_call_fail(c, "attribute 'value' must be one number (it is of type %s)",
                            ot_dtype_name(type));
    if (!t || t->data)
        memcpy(value, t ? t->data : &zero, size);
    else if (!ot_tensor_read(t, value))
        return ot_call_fail(c, "attribute 'value' cannot be read");
    OT_TRY(ot_call_output(c, 0, type, rank, dims));
    int64_t n = ot_num_count(c->out[0]);
    for (int64_t i = 0; i < n; i++) memcpy(ot_mv_at(c->out[0], i), value, size);
    return OT_OK;
}

/* ---- Range ---- */

#define RANGE_MAX ((double)((int64_t)1 << 53))

static ot_status range_float(ot_call *c, ot_dtype t)
{
    double start = ot_nd_double(c->in[0], 0), limit = ot_nd_double(c->in[1], 0),
           delta = ot_nd_double(c->in[2], 0);
    double n = ceil((limit - start) / delta);
    if (!isfinite(start) || !isfinite(delta) || isnan(limit) || delta == 0 || n > RANGE_MAX)
        return ot_call_fail(c, "it has no end: from %g to %g by %g", start, limit, delta);
    int64_t count = n > 0 ? (int64_t)n : 0;
    OT_TRY(ot_call_output(c, 0, t, 1, &count));
    for (int64_t i = 0; i < count; i++) ot_num_put(c->out[0], i, start + (double)i * delta);
    return OT_OK;
}

static ot_status range_int(ot_call *c, ot_dtype t)
{
    int64_t start = ot_nd_int(c->in[0], 0), limit = ot_nd_int(c->in[1], 0),
            delta = ot_nd_int(c->in[2], 0), count = 0;
    if (delta == 0) return ot_call_fail(c, "its step is 0");
    if (delta > 0 ? limit > start : limit < start) {
        uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start
                                  : (uint64_t)start - (uint64_t)limit;
        uint64_t n = (span - 1) / (delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta) + 1;
        count = n > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)n;
    }
    OT_TRY(ot_call_output(c, 0, t, 1, &count));
    for (int64_t i = 0; i < count; i++)
        ot_num_put_int(c->out[0], i, (int64_t)((uint64_t)start + (uint64_t)i * (uint64_t)delta));
    return OT_OK;
}

ot_status ot_mv_range(ot_call *c)
{
    OT_TRY(ot_call_need(c, 3));
    const uint32_t ints = OT_NUM_INTS & ~OT_NUM_BIT(OT_U64);
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS | ints));
    for (uint32_t k = 0; k < 3; k++) {
        OT_TRY(ot_num_same_type(c, k, 0));
        OT_TRY(ot_num_single(c, k));
    }
    ot_dtype t = c->in[0]->dtype;
    return ot_num_is(t, OT_NUM_FLOATS) ? range_float(c, t) : range_int(c, t);
}

/* ---- EyeLike, Trilu ---- */

/* Element (i, j) is on diagonal j - i. */
ot_status ot_mv_eye_like(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    int64_t type = ot_attr_int(c->node, "dtype", x->dtype), k = ot_attr_int(c->node, "k", 0);
    if (type <= 0 || type > OT_I2 || !ot_num_is((ot_dtype)type, OT_NUM_ALL))
        return ot_call_fail(c, "type %lld", (long long)type);
    OT_TRY(ot_num_rank(c, 0, 2));
    OT_TRY(ot_call_output(c, 0, (ot_dtype)type, 2, x->dims));
    int64_t n = ot_num_count(x);
    for (int64_t i = 0; i < n; i++) ot_num_put(c->out[0], i, i % x->dims[1] - i / x->dims[1] == k);
    return OT_OK;
}

/* The upper triangle: diagonals k and above; the lower one: k and below. The rest is 0. */
ot_status ot_mv_trilu(ot_call *c)
{
    int64_t k = 0;
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    bool upper = ot_attr_int(c->node, "upper", 1) != 0;
    if (ot_num_in(c, 1)) OT_TRY(ot_mv_scalar(c, 1, &k));
    if (x->rank < 2) return ot_call_fail(c, "input 0 has rank %u, needs at least 2", x->rank);
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    int64_t n = ot_num_count(x), rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        int64_t diagonal = i % columns - i / columns % rows;
        if (upper ? diagonal >= k : diagonal <= k)
            memcpy(ot_mv_at(c->out[0], i), ot_mv_at(x, i), ot_mv_size(x));
        else
            memset(ot_mv_at(c->out[0], i), 0, ot_mv_size(x));
    }
    return OT_OK;
}

/* ---- OneHot ---- */

/* Input k as an index or a size; a floating one is cut. Out of range: a value that no depth
 * reaches. */
static int64_t whole_number(const ot_nd *a, int64_t i)
{
    if (!ot_num_is(a->dtype, OT_NUM_FLOATS)) return ot_nd_int(a, i);
    double v = ot_nd_double(a, i);
    return fabs(v) < 0x1p62 ? (int64_t)v : INT64_MIN;
}

static ot_status one_hot_read(ot_call *c, int64_t *depth, uint32_t *axis)
{
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS | OT_NUM_INTS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_FLOATS | OT_NUM_INTS));
    OT_TRY(ot_num_single(c, 1));
    OT_TRY(ot_num_dims(c, 2, 1, &(int64_t){2}));
    *depth = whole_number(c->in[1], 0);
    if (*depth < 0) return ot_call_fail(c, "its depth is out of range");
    if (c->in[0]->rank >= OT_RANK_MAX)
        return ot_call_fail(c, "more than %d dimensions", OT_RANK_MAX);
    return ot_num_axis(c, ot_attr_int(c->node, "axis", -1), c->in[0]->rank + 1, axis);
}

/* values[1] where the coordinate on the new axis is the index, values[0] elsewhere; from opset
 * 11 on negative indices count from the end. */
ot_status ot_mv_one_hot(ot_call *c)
{
    int64_t depth, dims[OT_RANK_MAX], after = 1;
    uint32_t axis;
    OT_TRY(one_hot_read(c, &depth, &axis));
    const ot_nd *index = c->in[0], *values = c->in[2];
    for (uint32_t k = 0; k <= index->rank; k++)
        dims[k] = k < axis ? index->dims[k] : k > axis ? index->dims[k - 1] : depth;
    OT_TRY(ot_call_output(c, 0, values->dtype, index->rank + 1, dims));
    int64_t n = ot_num_count(c->out[0]);
    for (uint32_t k = axis; n > 0 && k < index->rank; k++) after *= index->dims[k];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = whole_number(index, i / (after * depth) * after + i % after),
                on = i / after % depth;
        if (at < 0 && c->node->version >= 11) at += depth;
        memcpy(ot_mv_at(c->out[0], i), ot_mv_at(values, at == on), ot_mv_size(values));
    }
    return OT_OK;
}

/* ---- windows ---- */

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), where n is the size, or one less for a symmetric
 * window. */
static ot_status window(ot_call *c, double a0, double a1, double a2)
{
    int64_t size, type = ot_attr_int(c->node, "output_datatype", OT_F32);
    const double pi = 3.14159265358979323846;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_INDEX));
    OT_TRY(ot_mv_scalar(c, 0, &size));
    if (type <= 0 || type > OT_I2 || !ot_num_is((ot_dtype)type, OT_NUM_FLOATS | OT_NUM_INTS))
        return ot_call_fail(c, "type %lld", (long long)type);
    if (size < 0) return ot_call_fail(c, "its size is negative");
    OT_TRY(ot_call_output(c, 0, (ot_dtype)type, 1, &size));
    double n = (double)(ot_attr_int(c->node, "periodic", 1) ? size : size - 1);
    for (int64_t i = 0; i < size; i++) {
        double angle = n > 0 ? 2 * pi * (double)i / n : pi; /* one sample: the window's top */
        ot_num_put(c->out[0], i, a0 - a1 * cos(angle) + a2 * cos(2 * angle));
    }
    return OT_OK;
}

ot_status ot_mv_hann_window(ot_call *c) { return window(c, 0.5, 0.5, 0); }

ot_status ot_mv_hamming_window(ot_call *c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }

ot_status ot_mv_blackman_window(ot_call *c) { return window(c, 0.42, 0.5, 0.08); }
