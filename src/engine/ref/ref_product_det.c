/* Det: determinants of square matrices, the last two axes; leading axes are a batch.
 *
 * Gaussian elimination with partial pivoting in double: the product of the pivots, negated for
 * every exchange of rows.
 */
#include "ref_product.h"

#include "base/half_float.h"

#include <math.h>

static double determinant(double *m, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t r = k + 1; r < n; r++)
            if (fabs(m[r * n + k]) > fabs(m[best * n + k])) best = r;
        if (best != k) det = -det;
        for (int64_t j = 0; j < n && best != k; j++) {
            double t = m[k * n + j];
            m[k * n + j] = m[best * n + j];
            m[best * n + j] = t;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0) break;
        for (int64_t r = k + 1; r < n; r++) {
            double f = m[r * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++) m[r * n + j] -= f * m[k * n + j];
        }
    }
    return det;
}

static void store(ot_nd *y, int64_t i, double v)
{
    switch (y->dtype) {
    case OT_F64: ((double *)y->data)[i] = v; break;
    case OT_F16: ((uint16_t *)y->data)[i] = ot_f32_to_f16((float)v); break;
    case OT_BF16: ((uint16_t *)y->data)[i] = ot_f32_to_bf16((float)v); break;
    default: ((float *)y->data)[i] = (float)v;
    }
}

ot_status ot_ref_det(ot_call *c)
{
    OT_TRY(ot_call_need(c, 1));
    const ot_nd *x = c->in[0];
    if (x->dtype != OT_F32 && x->dtype != OT_F64 && x->dtype != OT_F16 && x->dtype != OT_BF16)
        return ot_call_fail(c, "type %s is not a floating-point type it takes",
                            ot_dtype_name(x->dtype));
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return ot_call_fail(c, "its input is no stack of square matrices");
    int64_t n = x->dims[x->rank - 1], count, size;
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank - 2, x->dims));
    if (!c->out[0]) return OT_OK;
    if (!ot_nd_elems(c->out[0], &count) || !ot_mul_i64(n, n, &size) ||
        size > INT64_MAX / (int64_t)sizeof(double))
        return ot_call_fail(c, "its matrices are too large");
    double *m = ot_call_scratch(c, (size_t)size * sizeof *m + 1);
    if (!m) return ot_fail_nomem(c->diag);
    for (int64_t k = 0; k < count; k++) {
        for (int64_t j = 0; j < size; j++) m[j] = ot_nd_double(x, k * size + j);
        store(c->out[0], k, determinant(m, n));
    }
    return OT_OK;
}
