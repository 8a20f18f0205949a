/* Conv, ConvInteger, QLinearConv, CausalConvWithState.
 *
 *   y[n, m, p] = bias[m] + sum over channels c of m's group, taps k at p:  x[n, c, in(p, k)] * w[m,
 *                                                                          c, k]
 *
 * All are the same sum over doubles. The integer ones subtract their zero points first, so pads
 * are zero points, too, as ONNX wants it; sums of products of 8-bit numbers are exact.
 */
#include "ref_window.h"

#include <math.h>

ot_status ot_conv_open(ot_call *c, uint32_t xi, uint32_t wi, ot_conv *v)
{
    const ot_nd *x = c->in[xi], *wt = c->in[wi];
    if (x->rank != wt->rank)
        return ot_call_fail(c, "the input has rank %u, the weight has rank %u", x->rank, wt->rank);
    OT_TRY(ot_window_read(c, x, wt->dims + 2, &v->w));
    OT_TRY(ot_window_conv_out(c, &v->w));
    v->group = ot_attr_int(c->node, "group", 1);
    v->batch = x->dims[0];
    v->channels = x->dims[1];
    v->maps = wt->dims[0];
    if (v->group < 1 || v->channels % v->group != 0 || v->maps % v->group != 0 ||
        wt->dims[1] != v->channels / v->group)
        return ot_call_fail(c,
                            "%lld channels and weights of %lld x %lld do not agree for group %lld",
                            (long long)v->channels, (long long)v->maps, (long long)wt->dims[1],
                            (long long)v->group);
    if (!ot_product(v->w.in, v->w.n, &v->in_n) || !ot_product(v->w.out, v->w.n, &v->out_n) ||
        !ot_product(v->w.kernel, v->w.n, &v->k_n))
        return ot_call_fail(c, "the spatial size overflows");
    return OT_OK;
}

ot_status ot_conv_sums(ot_call *c, const ot_conv *v, const double *x, const double *wt, double *y)
{
    int64_t per = v->channels / v->group, maps_per = v->maps / v->group, pos[OT_RANK_MAX] = {0};
    ot_tap *taps = ot_window_taps_new(c, &v->w);
    if (!taps) return OT_E_NOMEM;
    if (v->out_n == 0) return OT_OK;
    for (int64_t p = 0; p < v->out_n; p++, (void)ot_num_next(v->w.n, v->w.out, pos)) {
        int64_t n_taps = ot_window_taps(&v->w, pos, taps);
        for (int64_t n = 0; n < v->batch; n++) {
            for (int64_t m = 0; m < v->maps; m++) {
                double sum = 0;
                for (int64_t ch = 0; ch < per; ch++) {
                    const double *plane = x + (n * v->channels + m / maps_per * per + ch) * v->in_n;
                    const double *kernel = wt + (m * per + ch) * v->k_n;
                    for (int64_t t = 0; t < n_taps; t++)
                        sum += plane[taps[t].in] * kernel[taps[t].k];
                }
                y[(n * v->maps + m) * v->out_n + p] += sum;
            }
        }
    }
    return OT_OK;
}

/* Memory for the sums and the dims of the output. */
static double *conv_output(ot_call *c, const ot_conv *v, int64_t *dims)
{
    int64_t n;
    dims[0] = v->batch;
    dims[1] = v->maps;
    memcpy(dims + 2, v->w.out, v->w.n * sizeof *dims);
    return ot_num_scratch(c, ot_product(dims, v->w.n + 2, &n) ? n : -1, sizeof(double));
}

static void add_bias(const ot_conv *v, const double *bias, double *y)
{
    for (int64_t n = 0; n < v->batch; n++)
        for (int64_t m = 0; m < v->maps; m++)
            for (int64_t p = 0; p < v->out_n; p++) y[(n * v->maps + m) * v->out_n + p] += bias[m];
}

ot_status ot_ref_conv(ot_call *c)
{
    ot_conv v = {0};
    int64_t dims[OT_RANK_MAX];
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 3; k++) {
        OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
        OT_TRY(ot_num_same_type(c, k, 0));
    }
    OT_TRY(ot_conv_open(c, 0, 1, &v));
    OT_TRY(ot_num_dims(c, 2, 1, &v.maps));
    const ot_nd *b = ot_num_in(c, 2);
    double *x = ot_num_doubles(c, c->in[0]), *wt = x ? ot_num_doubles(c, c->in[1]) : NULL;
    double *bias = wt && b ? ot_num_doubles(c, b) : NULL, *y = wt ? conv_output(c, &v, dims) : NULL;
    if (!y || (b && !bias)) return OT_E_NOMEM;
    OT_TRY(ot_conv_sums(c, &v, x, wt, y));
    if (bias) add_bias(&v, bias, y);
    return ot_num_output(c, 0, c->in[0]->dtype, v.w.n + 2, dims, y);
}

/* ---- quantized ---- */

/* Input k minus its zero point (input z; one value, or one for each of the n slices along the
 * first axis), as doubles. */
static ot_status centred(ot_call *c, uint32_t k, uint32_t z, bool per_slice, double **out)
{
    const ot_nd *zero = ot_num_in(c, z);
    int64_t n = ot_num_count(c->in[k]), slices = per_slice ? c->in[k]->dims[0] : 1;
    *out = ot_num_doubles(c, c->in[k]);
    if (!*out) return OT_E_NOMEM;
    if (!zero) return OT_OK;
    OT_TRY(ot_num_same_type(c, z, k));
    int64_t zeros = ot_num_count(zero);
    if (zeros != 1 && (zeros != slices || zero->rank != 1))
        return ot_call_fail(c, "input %u (a zero point) has %lld elements, must have 1%s", z,
                            (long long)zeros, per_slice ? " or one per output channel" : "");
    int64_t size = slices ? n / slices : 0;
    for (int64_t i = 0; i < n; i++) (*out)[i] -= (double)ot_nd_int(zero, zeros == 1 ? 0 : i / size);
    return OT_OK;
}

ot_status ot_ref_conv_integer(ot_call *c)
{
    ot_conv v = {0};
    int64_t dims[OT_RANK_MAX];
    double *x, *wt;
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 4; k++) OT_TRY(ot_num_type(c, k, OT_NUM_BYTES));
    OT_TRY(ot_conv_open(c, 0, 1, &v));
    OT_TRY(centred(c, 0, 2, false, &x));
    OT_TRY(centred(c, 1, 3, true, &wt));
    double *y = conv_output(c, &v, dims);
    if (!y) return OT_E_NOMEM;
    OT_TRY(ot_conv_sums(c, &v, x, wt, y));
    if (!ot_num_out(c, 0)) return OT_OK;
    OT_TRY(ot_call_output(c, 0, OT_I32, v.w.n + 2, dims));
    int64_t n = ot_num_count(c->out[0]);
    /* wraps like int32 sums do */
    for (int64_t i = 0; i < n; i++) ot_num_put_int(c->out[0], i, (int64_t)y[i]);
    return OT_OK;
}

/* Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias. */
static ot_status qlinear_check(ot_call *c)
{
    OT_TRY(ot_call_need(c, 8));
    for (uint32_t k = 0; k < 8; k++)
        OT_TRY(ot_num_type(c, k, k == 1 || k == 4 || k == 6 ? OT_NUM_FLOATS : OT_NUM_BYTES));
    OT_TRY(ot_num_type(c, 8, OT_NUM_BIT(OT_I32)));
    OT_TRY(ot_num_single(c, 1));
    OT_TRY(ot_num_single(c, 6));
    return ot_num_single(c, 7);
}

ot_status ot_ref_qlinear_conv(ot_call *c)
{
    ot_conv v = {0};
    int64_t dims[OT_RANK_MAX];
    double *x, *wt;
    OT_TRY(qlinear_check(c));
    OT_TRY(ot_conv_open(c, 0, 3, &v));
    OT_TRY(ot_num_dims(c, 8, 1, &v.maps));
    const ot_nd *w_scale = c->in[4], *b = ot_num_in(c, 8);
    int64_t scales = ot_num_count(w_scale);
    if (scales != 1 && (scales != v.maps || w_scale->rank != 1))
        return ot_call_fail(
            c, "the weight's scale has %lld elements, must have 1 or one per output channel",
            (long long)scales);
    OT_TRY(centred(c, 0, 2, false, &x));
    OT_TRY(centred(c, 3, 5, true, &wt));
    double *y = conv_output(c, &v, dims), *bias = y && b ? ot_num_doubles(c, b) : NULL;
    if (!y || (b && !bias)) return OT_E_NOMEM;
    OT_TRY(ot_conv_sums(c, &v, x, wt, y));
    if (bias) add_bias(&v, bias, y);
    if (!ot_num_out(c, 0)) return OT_OK;
    float x_scale = (float)ot_nd_double(c->in[1], 0), y_scale = (float)ot_nd_double(c->in[6], 0);
    double zero = (double)ot_nd_int(c->in[7], 0);
    OT_TRY(ot_call_output(c, 0, c->in[7]->dtype, v.w.n + 2, dims));
    int64_t n = ot_num_count(c->out[0]);
    for (int64_t i = 0; i < n; i++) {
        int64_t m = i / v.out_n % v.maps;
        float scale = x_scale * (float)ot_nd_double(w_scale, scales == 1 ? 0 : m) / y_scale;
        ot_num_put_quantized(c->out[0], i, (double)((float)y[i] * scale), zero);
    }
    return OT_OK;
}

/* ---- CausalConvWithState ---- */

/* x [B, C, L] behind its past [B, C, k - 1] (or zeros). */
static double *with_past(ot_call *c, const ot_nd *x, const ot_nd *past, int64_t before)
{
    int64_t len = x->dims[2], rows = x->dims[0] * x->dims[1], total;
    double *v = ot_num_scratch(
        c, ot_add_i64(len, before, &total) && ot_mul_i64(rows, total, &total) ? total : -1,
        sizeof *v);
    if (!v) return NULL;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; past && i < before; i++)
            v[r * (before + len) + i] = ot_nd_double(past, r * before + i);
        for (int64_t i = 0; i < len; i++)
            v[r * (before + len) + before + i] = ot_nd_double(x, r * len + i);
    }
    return v;
}

/* Input, weight [C, 1, k], bias, past_state -> output, the last k - 1 columns of what was seen. */
ot_status ot_ref_causal_conv(ot_call *c)
{
    const char *act = ot_attr_str(c->node, "activation", "none");
    bool silu = strcmp(act, "silu") == 0 || strcmp(act, "swish") == 0;
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 4; k++) {
        OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
        OT_TRY(ot_num_same_type(c, k, 0));
    }
    OT_TRY(ot_num_rank(c, 0, 3));
    OT_TRY(ot_num_rank(c, 1, 3));
    if (!silu && strcmp(act, "none") != 0)
        return ot_call_fail(c, "activation '%s' is unknown", act);
    const ot_nd *x = c->in[0], *wt = c->in[1], *b = ot_num_in(c, 2), *past = ot_num_in(c, 3);
    int64_t channels = x->dims[1], len = x->dims[2], k_n = wt->dims[2], before = k_n - 1,
            all = len + before;
    int64_t want[3] = {channels, 1, k_n}, state[3] = {x->dims[0], channels, before};
    if (k_n < 1) return ot_call_fail(c, "the kernel is empty");
    OT_TRY(ot_num_dims(c, 1, 3, want));
    OT_TRY(ot_num_dims(c, 2, 1, &channels));
    OT_TRY(ot_num_dims(c, 3, 3, state));
    double *v = with_past(c, x, past, before),
           *y = v ? ot_num_scratch(c, ot_num_count(x), sizeof *y) : NULL;
    double *kept = y ? ot_num_scratch(c, x->dims[0] * channels * before, sizeof *kept) : NULL;
    if (!kept) return OT_E_NOMEM;
    for (int64_t r = 0; r < x->dims[0] * channels; r++) {
        int64_t ch = r % channels;
        for (int64_t i = 0; i < len; i++) {
            double sum = b ? ot_nd_double(b, ch) : 0;
            for (int64_t k = 0; k < k_n; k++)
                sum += v[r * all + i + k] * ot_nd_double(wt, ch * k_n + k);
            y[r * len + i] = silu ? sum / (1 + exp(-sum)) : sum;
        }
        for (int64_t k = 0; k < before; k++) kept[r * before + k] = v[r * all + len + k];
    }
    OT_TRY(ot_num_output(c, 0, x->dtype, 3, x->dims, y));
    return ot_num_output(c, 1, x->dtype, 3, state, kept);
}
