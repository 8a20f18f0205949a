/* MaxPool, AveragePool, LpPool, their global forms, LRN.
 *
 *   every channel of every image is a plane; each window position makes one number from the plane's
 *   elements under its taps
 *
 * The number of windows is what ONNX Runtime makes of it: SAME_* ignores dilations when it
 * chooses the pads, and with ceil_mode a last window that would start in the end pads does not
 * exist.
 */
#include "ref_window.h"

#include <math.h>

/* A pool that is about to run. */
typedef struct pool {
    ot_window w;
    int64_t planes, in_n, out_n;
    int64_t dims[OT_RANK_MAX]; /* of the output */
    ot_tap *taps;
} pool;

static ot_status pool_out(ot_call *c, ot_window *w, uint32_t k, bool ceil_mode)
{
    int64_t in = w->in[k], stride = w->stride[k];
    if (w->same_upper || w->same_lower) {
        int64_t pads = (ot_ceil_div(in, stride) - 1) * stride + w->kernel[k] - in;
        /* negative where strides leave elements out: the input is cropped */
        w->lo[k] = (w->same_upper ? pads : pads + 1) / 2;
        w->hi[k] = pads - w->lo[k];
        if (w->dilation[k] == 1) {
            w->out[k] = ot_ceil_div(in, stride);
            return OT_OK;
        }
    }
    int64_t extent = (w->kernel[k] - 1) * w->dilation[k] + 1,
            room = in + w->lo[k] + w->hi[k] - extent;
    if (room < 0)
        return ot_call_fail(
            c, "the window (%lld) is larger than the padded input (%lld) along spatial axis %u",
            (long long)extent, (long long)(room + extent), k);
    w->out[k] = (ceil_mode ? ot_ceil_div(room, stride) : room / stride) + 1;
    if (ceil_mode && (w->out[k] - 1) * stride >= in + w->lo[k]) w->out[k]--;
    return OT_OK;
}

ot_status ot_window_pool(ot_call *c, ot_window *w, int64_t *dims)
{
    const ot_nd *x = c->in[0];
    OT_TRY(ot_window_read(c, x, NULL, w));
    for (uint32_t k = 0; k < w->n; k++)
        OT_TRY(pool_out(c, w, k, ot_attr_int(c->node, "ceil_mode", 0) != 0));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    memcpy(dims + 2, w->out, w->n * sizeof *dims);
    return OT_OK;
}

static ot_status pool_open(ot_call *c, pool *p)
{
    OT_TRY(ot_window_pool(c, &p->w, p->dims));
    if (!ot_product(p->w.in, p->w.n, &p->in_n) || !ot_product(p->w.out, p->w.n, &p->out_n) ||
        !ot_mul_i64(p->dims[0], p->dims[1], &p->planes))
        return ot_call_fail(c, "the spatial size overflows");
    p->taps = ot_window_taps_new(c, &p->w);
    return p->taps ? OT_OK : OT_E_NOMEM;
}

/* ---- MaxPool ---- */

/* Position `in` of a plane as ONNX numbers it: row-major, or column-major among the spatial axes.
 */
static int64_t max_index(const ot_window *w, int64_t in, bool column_major)
{
    int64_t index = 0, step = w->in[0], rest = in, pos[OT_RANK_MAX] = {0};
    if (!column_major) return in;
    for (uint32_t a = w->n; a-- > 0;) {
        pos[a] = rest % w->in[a];
        rest /= w->in[a];
    }
    index = pos[0];
    for (uint32_t a = 1; a < w->n; a++) {
        index += pos[a] * step;
        step *= w->in[a];
    }
    return index;
}

ot_status ot_ref_max_pool(ot_call *c)
{
    pool p = {0};
    int64_t pos[OT_RANK_MAX] = {0};
    bool column_major = ot_attr_int(c->node, "storage_order", 0) != 0;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS | OT_NUM_BYTES));
    OT_TRY(pool_open(c, &p));
    double *x = ot_num_doubles(c, c->in[0]);
    if (!x) return OT_E_NOMEM;
    uint32_t rank = c->in[0]->rank;
    ot_nd *y = ot_num_out(c, 0), *index = ot_num_out(c, 1);
    if (y) OT_TRY(ot_call_output(c, 0, c->in[0]->dtype, rank, p.dims));
    if (index) OT_TRY(ot_call_output(c, 1, OT_I64, rank, p.dims));
    for (int64_t i = 0; i < p.out_n; i++, (void)ot_num_next(p.w.n, p.w.out, pos)) {
        int64_t n_taps = ot_window_taps(&p.w, pos, p.taps);
        for (int64_t plane = 0; plane < p.planes; plane++) {
            const double *from = x + plane * p.in_n;
            int64_t best = -1;
            for (int64_t t = 0; t < n_taps; t++)
                if (best < 0 || from[p.taps[t].in] > from[best]) best = p.taps[t].in;
            if (y) ot_num_put(y, plane * p.out_n + i, best < 0 ? -INFINITY : from[best]);
            if (index)
                ot_num_put_int(index, plane * p.out_n + i,
                               plane * p.in_n +
                                   (best < 0 ? 0 : max_index(&p.w, best, column_major)));
        }
    }
    return OT_OK;
}

/* ---- AveragePool, LpPool ---- */

/* What an average divides by: elements under the window, or all its places that are no excess of
 * ceil_mode. */
static double divisor(const pool *p, const int64_t *pos, int64_t n_taps, bool with_pads)
{
    double n = 1;
    if (!with_pads) return n_taps ? (double)n_taps : 1;
    for (uint32_t a = 0; a < p->w.n; a++) n *= (double)ot_window_padded(&p->w, a, pos[a]);
    return n > 0 ? n : 1;
}

/* A version 1 LpPool has a floating p. */
static double lp_order(const ot_call *c)
{
    const ot_attr *a = ot_attr_find(c->node, "p");
    return a && a->kind == OT_ATTR_FLOAT ? (double)a->f
           : a && a->kind == OT_ATTR_INT ? (double)a->i
                                         : 2;
}

/* order 0: average; quantized: bytes with scales and zero points (inputs 1 to 4). */
static ot_status sum_pool(ot_call *c, double order, bool quantized)
{
    ot_quantizer q = {0};
    double *x = NULL;
    pool p = {0};
    int64_t pos[OT_RANK_MAX] = {0}, n;
    bool with_pads = ot_attr_int(c->node, "count_include_pad", 0) != 0;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, quantized ? OT_NUM_BYTES : OT_NUM_FLOATS));
    OT_TRY(pool_open(c, &p));
    if (quantized)
        OT_TRY(ot_ref_dequantized(c, 0, &q, &x));
    else
        x = ot_num_doubles(c, c->in[0]);
    double *y = x ? ot_num_scratch(c, ot_mul_i64(p.planes, p.out_n, &n) ? n : -1, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < p.out_n; i++, (void)ot_num_next(p.w.n, p.w.out, pos)) {
        int64_t n_taps = ot_window_taps(&p.w, pos, p.taps);
        double by = divisor(&p, pos, n_taps, with_pads);
        for (int64_t plane = 0; plane < p.planes; plane++) {
            const double *from = x + plane * p.in_n;
            double sum = 0;
            for (int64_t t = 0; t < n_taps; t++)
                sum += order > 0 ? pow(fabs(from[p.taps[t].in]), order) : from[p.taps[t].in];
            y[plane * p.out_n + i] = order > 0 ? pow(sum, 1 / order) : sum / by;
        }
    }
    if (quantized) return ot_ref_requantized(c, 3, c->in[0]->dtype, c->in[0]->rank, p.dims, y);
    return ot_num_output(c, 0, c->in[0]->dtype, c->in[0]->rank, p.dims, y);
}

ot_status ot_ref_average_pool(ot_call *c) { return sum_pool(c, 0, false); }

ot_status ot_ref_qlinear_average_pool(ot_call *c)
{
    if (ot_attr_int(c->node, "channels_last", 0))
        return ot_call_fail(c, "channels_last is not supported");
    return sum_pool(c, 0, true);
}

ot_status ot_ref_lp_pool(ot_call *c)
{
    double order = lp_order(c);
    return order > 0 ? sum_pool(c, order, false)
                     : ot_call_fail(c, "p is %g, must be positive", order);
}

/* ---- global pools ---- */

ot_status ot_ref_global_pool(ot_call *c)
{
    bool max = strcmp(c->node->op_type, "GlobalMaxPool") == 0,
         lp = strcmp(c->node->op_type, "GlobalLpPool") == 0;
    double order = lp_order(c);
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    const ot_nd *x = c->in[0];
    int64_t dims[OT_RANK_MAX], planes, size;
    if (x->rank < 2) return ot_call_fail(c, "the input has rank %u, needs N and C", x->rank);
    if (lp && !(order > 0)) return ot_call_fail(c, "p is %g, must be positive", order);
    for (uint32_t k = 0; k < x->rank; k++) dims[k] = k < 2 ? x->dims[k] : 1;
    if (!ot_product(x->dims, 2, &planes) || !ot_product(x->dims + 2, x->rank - 2, &size))
        return ot_call_fail(c, "the size overflows");
    double *v = ot_num_doubles(c, x), *y = v ? ot_num_scratch(c, planes, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    for (int64_t p = 0; p < planes; p++) {
        double r = max ? -INFINITY : 0;
        for (int64_t i = 0; i < size; i++) {
            double e = v[p * size + i];
            r = max ? (e > r || isnan(e) ? e : r) : r + (lp ? pow(fabs(e), order) : e);
        }
        y[p] = max ? r : lp ? pow(r, 1 / order) : r / (double)size;
    }
    return ot_num_output(c, 0, x->dtype, x->rank, dims, y);
}

/* ---- LRN: each element over a power of the squares around it, along the channels ---- */

ot_status ot_ref_lrn(ot_call *c)
{
    int64_t size = ot_attr_int(c->node, "size", 0), inner = 1;
    double alpha = (double)ot_attr_float(c->node, "alpha", 0.0001f),
           beta = (double)ot_attr_float(c->node, "beta", 0.75f);
    double bias = (double)ot_attr_float(c->node, "bias", 1.0f);
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    const ot_nd *x = c->in[0];
    if (size < 1) return ot_call_fail(c, "size is %lld, must be at least 1", (long long)size);
    if (x->rank < 2) return ot_call_fail(c, "the input has rank %u, needs N and C", x->rank);
    int64_t n = ot_num_count(x), channels = x->dims[1], before = (size - 1) / 2, after = size / 2;
    for (uint32_t k = 2; n > 0 && k < x->rank; k++) inner *= x->dims[k];
    double *v = ot_num_doubles(c, x), *y = v ? ot_num_scratch(c, n, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        int64_t ch = i / inner % channels;
        double sum = 0;
        for (int64_t k = ot_max(0, ch - before);
             k <= (after < channels - 1 - ch ? ch + after : channels - 1); k++) {
            double e = v[i + (k - ch) * inner];
            sum += e * e;
        }
        y[i] = v[i] / pow(bias + alpha / (double)size * sum, beta);
    }
    return ot_num_output(c, 0, x->dtype, x->rank, x->dims, y);
}
