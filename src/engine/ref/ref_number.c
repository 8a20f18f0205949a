/* Arrays as plain numbers: checks of inputs, conversion on the way in, rounding on the way out.
 * See ref_number.h. */
#include "ref_number.h"

#include "base/half_float.h"

#include <math.h>

int64_t ot_num_count(const ot_nd *a)
{
    int64_t n;
    return ot_nd_elems(a, &n) ? n : 0;
}

/* ---- checks ---- */

ot_status ot_num_type(ot_call *c, uint32_t k, uint32_t set)
{
    const ot_nd *a = ot_num_in(c, k);
    if (!a || (ot_num_is(a->dtype, set) && a->data)) return OT_OK;
    return ot_call_fail(c, "input %u has type %s, which is not supported here", k,
                        ot_dtype_name(a->dtype));
}

ot_status ot_num_same_type(ot_call *c, uint32_t k, uint32_t j)
{
    const ot_nd *a = ot_num_in(c, k), *b = ot_num_in(c, j);
    if (!a || !b || a->dtype == b->dtype) return OT_OK;
    return ot_call_fail(c, "input %u has type %s, input %u has %s", k, ot_dtype_name(a->dtype), j,
                        ot_dtype_name(b->dtype));
}

ot_status ot_num_rank(ot_call *c, uint32_t k, uint32_t rank)
{
    const ot_nd *a = ot_num_in(c, k);
    if (!a || a->rank == rank) return OT_OK;
    return ot_call_fail(c, "input %u has rank %u, must have %u", k, a->rank, rank);
}

ot_status ot_num_single(ot_call *c, uint32_t k)
{
    const ot_nd *a = ot_num_in(c, k);
    if (!a || ot_num_count(a) == 1) return OT_OK;
    return ot_call_fail(c, "input %u has %lld elements, must have 1", k,
                        (long long)ot_num_count(a));
}

ot_status ot_num_dims(ot_call *c, uint32_t k, uint32_t rank, const int64_t *dims)
{
    const ot_nd *a = ot_num_in(c, k);
    OT_TRY(ot_num_rank(c, k, rank));
    for (uint32_t d = 0; a && d < rank; d++)
        if (a->dims[d] != dims[d])
            return ot_call_fail(c, "input %u has %lld elements along axis %u, must have %lld", k,
                                (long long)a->dims[d], d, (long long)dims[d]);
    return OT_OK;
}

ot_status ot_num_axis(ot_call *c, int64_t axis, uint32_t rank, uint32_t *out)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return ot_call_fail(c, "axis %lld is out of range for rank %u", (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return OT_OK;
}

/* ---- memory ---- */

void *ot_num_scratch(ot_call *c, int64_t n, size_t size)
{
    int64_t bytes;
    void *p = n >= 0 && ot_mul_i64(n, (int64_t)size, &bytes) ? ot_call_scratch(c, (size_t)bytes)
                                                             : NULL;
    if (!p) (void)ot_fail_nomem(c->diag);
    return p;
}

double *ot_num_doubles(ot_call *c, const ot_nd *a)
{
    int64_t n = ot_num_count(a);
    double *v = ot_num_scratch(c, n, sizeof *v);
    if (!v) return NULL;
    if (a->dtype == OT_F32) { /* the usual case, without a call per element */
        const float *f = a->data;
        for (int64_t i = 0; i < n; i++) v[i] = (double)f[i];
        return v;
    }
    for (int64_t i = 0; i < n; i++) v[i] = ot_nd_double(a, i);
    return v;
}

int64_t *ot_num_ints(ot_call *c, const ot_nd *a)
{
    int64_t n = ot_num_count(a), *v = ot_num_scratch(c, n, sizeof *v);
    for (int64_t i = 0; v && i < n; i++) v[i] = ot_nd_int(a, i);
    return v;
}

/* ---- stores ---- */

/* Smallest and largest value of an integer type, as doubles that convert back without overflow. */
static void int_range(ot_dtype t, double *lo, double *hi)
{
    switch ((int)t) {
    case OT_I8: *lo = INT8_MIN, *hi = INT8_MAX; return;
    case OT_U8: *lo = 0, *hi = UINT8_MAX; return;
    case OT_I4: *lo = -8, *hi = 7; return;
    case OT_U4: *lo = 0, *hi = 15; return;
    case OT_I2: *lo = -2, *hi = 1; return;
    case OT_U2: *lo = 0, *hi = 3; return;
    case OT_I16: *lo = INT16_MIN, *hi = INT16_MAX; return;
    case OT_U16: *lo = 0, *hi = UINT16_MAX; return;
    case OT_I32: *lo = INT32_MIN, *hi = INT32_MAX; return;
    case OT_U32: *lo = 0, *hi = UINT32_MAX; return;
    case OT_U64: *lo = 0, *hi = 0x1.fffffffffffffp63; return;
    default: *lo = -0x1p63, *hi = 0x1.fffffffffffffp62; return;
    }
}

void ot_num_put_int(ot_nd *a, int64_t i, int64_t v)
{
    switch ((int)a->dtype) {
    case OT_BOOL: ((uint8_t *)a->data)[i] = v != 0; return;
    case OT_I8:
    case OT_U8: ((uint8_t *)a->data)[i] = (uint8_t)v; return;
    case OT_I4: ((int8_t *)a->data)[i] = (int8_t)((v & 15) - (v & 8) * 2); return;
    case OT_I2: ((int8_t *)a->data)[i] = (int8_t)((v & 3) - (v & 2) * 2); return;
    case OT_U4: ((uint8_t *)a->data)[i] = (uint8_t)(v & 15); return;
    case OT_U2: ((uint8_t *)a->data)[i] = (uint8_t)(v & 3); return;
    case OT_I16:
    case OT_U16: ((uint16_t *)a->data)[i] = (uint16_t)v; return;
    case OT_I32:
    case OT_U32: ((uint32_t *)a->data)[i] = (uint32_t)v; return;
    case OT_I64:
    case OT_U64: ((uint64_t *)a->data)[i] = (uint64_t)v; return;
    default: return;
    }
}

void ot_num_put(ot_nd *a, int64_t i, double v)
{
    switch ((int)a->dtype) {
    case OT_F32: ((float *)a->data)[i] = (float)v; return;
    case OT_F64: ((double *)a->data)[i] = v; return;
    case OT_F16: ((uint16_t *)a->data)[i] = ot_f32_to_f16((float)v); return;
    case OT_BF16: ((uint16_t *)a->data)[i] = ot_f32_to_bf16((float)v); return;
    case OT_BOOL: ((uint8_t *)a->data)[i] = v != 0; return;
    default: break;
    }
    double lo, hi;
    int_range(a->dtype, &lo, &hi);
    v = v >= lo ? (v <= hi ? v : hi) : lo; /* NaN: lo */
    if (a->dtype == OT_U64)
        ((uint64_t *)a->data)[i] = (uint64_t)v;
    else
        ot_num_put_int(a, i, (int64_t)v);
}

void ot_num_put_quantized(ot_nd *a, int64_t i, double v, double zero)
{
    ot_num_put(a, i, rint(v) + zero);
}

ot_status ot_num_output(ot_call *c, uint32_t k, ot_dtype t, uint32_t rank, const int64_t *dims,
                        const double *v)
{
    if (!ot_num_out(c, k)) return OT_OK;
    OT_TRY(ot_call_output(c, k, t, rank, dims));
    ot_nd *y = c->out[k];
    int64_t n = ot_num_count(y);
    for (int64_t i = 0; i < n; i++) ot_num_put(y, i, v[i]);
    return OT_OK;
}

bool ot_num_next(uint32_t n, const int64_t *dims, int64_t *pos)
{
    for (uint32_t k = n; k-- > 0;) {
        if (++pos[k] < dims[k]) return true;
        pos[k] = 0;
    }
    return false;
}
