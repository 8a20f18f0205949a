/* Operators of domain onnx_tile that normalisations are decomposed to (src/transform/decompose).
 *
 *   Moments      x [N, C, ...], the last axes -> [N, C, 1.., 2]: mean and variance of each channel,
 *                float64
 *   NormFactors  these, scale, bias, gamma, beta -> factor and summand of each channel. Channels of
 *                a group are put together:
 *                mean = mean of their means; variance = mean of (variance + (their mean - mean)^2).
 *                centred: no operands but these; the summand, -mean, comes first, and epsilon is
 *                added to the deviation
 */
#include "ref_number.h"
#include "ref_reduce.h"

#include <math.h>

/* n elements from `at` on: their mean, and the mean of their squared distances from it. */
static void moments_of(const ot_nd *a, int64_t at, int64_t n, double out[2])
{
    double r[REF_ROW], sum = 0, square = 0;
    for (int64_t i = 0; i < n; i += REF_ROW) {
        int64_t m = ot_min(REF_ROW, n - i);
        ot_rm_load_f(a, at + i, 1, m, r);
        for (int64_t j = 0; j < m; j++) sum += r[j];
    }
    out[0] = sum / (double)n;
    for (int64_t i = 0; i < n; i += REF_ROW) {
        int64_t m = ot_min(REF_ROW, n - i);
        ot_rm_load_f(a, at + i, 1, m, r);
        for (int64_t j = 0; j < m; j++) square += (r[j] - out[0]) * (r[j] - out[0]);
    }
    out[1] = square / (double)n;
}

ot_status ot_rm_moments(ot_call *c)
{
    const ot_nd *x = c->in[0];
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(c->node, "axes", &n_axes);
    int64_t dims[OT_RANK_MAX], outer, len;
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    if (!axes || n_axes == 0 || n_axes > x->rank)
        return ot_call_fail(c, "attribute axes is missing");
    const uint32_t first = x->rank - (uint32_t)n_axes;
    for (size_t k = 0; k < n_axes; k++)
        if (axes[k] != (int64_t)(first + k))
            return ot_call_fail(c, "axes are not the last ones, in order");
    if (!ot_product(x->dims, first, &outer) || !ot_product(x->dims + first, n_axes, &len) ||
        len == 0)
        return ot_call_fail(c, "input 0 has no elements");
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = d < first ? x->dims[d] : 1;
    dims[x->rank - 1] = 2;
    OT_TRY(ot_call_output(c, 0, OT_F64, x->rank, dims));
    for (int64_t o = 0; o < outer; o++) {
        double pair[2];
        moments_of(x, o * len, len, pair);
        ot_rm_store_f(c->out[0], 2 * o, 1, 2, pair);
    }
    return OT_OK;
}

/* ---- NormFactors ---- */

/* Input k, one number for each channel or each group of channels; NULL in *out: it is not given. */
static ot_status numbers(ot_call *c, uint32_t k, int64_t channels, int64_t groups,
                         const double **out, int64_t *per)
{
    const ot_nd *v = ot_num_in(c, k);
    *out = NULL;
    if (!v) return OT_OK;
    OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
    const int64_t n = ot_num_count(v);
    if (n != channels && n != groups)
        return ot_call_fail(c, "input %u has neither a number for each channel nor for each group",
                            k);
    *per = channels / n;
    *out = ot_num_doubles(c, v);
    return *out ? OT_OK : OT_E_NOMEM;
}

static void join_channels(const double *pairs, int64_t n, double out[2])
{
    out[0] = out[1] = 0;
    for (int64_t k = 0; k < n; k++) out[0] += pairs[2 * k];
    out[0] /= (double)n;
    for (int64_t k = 0; k < n; k++)
        out[1] += pairs[2 * k + 1] + (pairs[2 * k] - out[0]) * (pairs[2 * k] - out[0]);
    out[1] /= (double)n;
}

ot_status ot_rm_norm_factors(ot_call *c)
{
    const ot_nd *m = c->in[0];
    const int64_t groups = ot_attr_int(c->node, "groups", 0);
    const double epsilon = (double)ot_attr_float(c->node, "epsilon", 0);
    const ot_dtype type = (ot_dtype)ot_attr_int(c->node, "dtype", OT_F32);
    const bool centred = ot_attr_int(c->node, "centred", 0) != 0;
    const double *by[4];
    int64_t per[4] = {1, 1, 1, 1}, dims[OT_RANK_MAX];
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    if (m->rank < 3 || m->dims[m->rank - 1] != 2 || groups < 1 || m->dims[1] % groups != 0)
        return ot_call_fail(c, "groups do not divide the channels");
    const int64_t channels = m->dims[1], size = channels / groups, all = m->dims[0] * channels;
    if (ot_num_count(m) != 2 * all) return ot_call_fail(c, "input 0 is no pair for each channel");
    for (uint32_t k = 0; k < 4; k++) OT_TRY(numbers(c, k + 1, channels, groups, &by[k], &per[k]));
    const double *pairs = ot_num_doubles(c, m);
    double *factor = ot_num_scratch(c, all, sizeof *factor),
           *summand = ot_num_scratch(c, all, sizeof *summand);
    if (!pairs || !factor || !summand) return OT_E_NOMEM;
    for (int64_t k = 0; k < all; k++) {
        const int64_t channel = k % channels;
        double both[2];
        join_channels(pairs + 2 * (k - channel % size), size, both);
        if (centred) {
            factor[k] = 1 / (sqrt(both[1]) + epsilon);
            summand[k] = -both[0];
            continue;
        }
        factor[k] = (by[0] ? by[0][channel / per[0]] : 1) / sqrt(both[1] + epsilon);
        summand[k] = (by[1] ? by[1][channel / per[1]] : 0) - both[0] * factor[k];
        if (by[2]) factor[k] *= by[2][channel / per[2]], summand[k] *= by[2][channel / per[2]];
        if (by[3]) summand[k] += by[3][channel / per[3]];
    }
    memcpy(dims, m->dims, m->rank * sizeof *dims);
    dims[m->rank - 1] = 1;
    OT_TRY(ot_num_output(c, 0, type, m->rank, dims, factor));
    return ot_num_output(c, 1, type, m->rank, dims, summand);
}
