/* Normalisations by the mean and variance of a part of the input itself.
 *
 * LayerNormalization         all axes from `axis` on        scale, B broadcast to X; mean and 1 /
 *                                                           deviation are
 * outputs, too
 *     RMSNormalization           the same, without the mean     scale
 *     InstanceNormalization      one channel of one sample      scale, B: one number a channel
 *     GroupNormalization         some channels of one sample    scale, bias: one a channel (a
 *                                                               group, before version 21)
 *     MeanVarianceNormalization  any axes                       none
 *
 * Everything is computed in double and rounded once, so stash_type only says the type of the
 * outputs Mean and InvStdDev.
 */
#include "ref_reduce.h"

#include <math.h>

/* n elements from `at` on: their mean, and the mean of their squared distances from `center`. */
static double mean_of(const ot_nd *a, int64_t at, int64_t n)
{
    double r[REF_ROW], sum = 0;
    for (int64_t i = 0; i < n; i += REF_ROW) {
        int64_t m = ot_min(REF_ROW, n - i);
        ot_rm_load_f(a, at + i, 1, m, r);
        for (int64_t j = 0; j < m; j++) sum += r[j];
    }
    return sum / (double)n;
}

static double square_mean_of(const ot_nd *a, int64_t at, int64_t n, double center)
{
    double r[REF_ROW], sum = 0;
    for (int64_t i = 0; i < n; i += REF_ROW) {
        int64_t m = ot_min(REF_ROW, n - i);
        ot_rm_load_f(a, at + i, 1, m, r);
        for (int64_t j = 0; j < m; j++) sum += (r[j] - center) * (r[j] - center);
    }
    return sum / (double)n;
}

/* ---- LayerNormalization, RMSNormalization ---- */

typedef struct layer {
    bool rms;
    uint32_t axis;
    int64_t outer, len;     /* parts, elements of each */
    double *mean, *inverse; /* [outer] mean (0 for RMS), 1 / deviation */
} layer;

static ot_status layer_statistics(ot_call *c, layer *l)
{
    const ot_nd *x = c->in[0];
    double epsilon = (double)ot_attr_float(c->node, "epsilon", 1e-5f);
    int64_t elems;
    if (!ot_nd_elems(x, &elems)) return ot_call_fail(c, "input 0 is too large");
    if (!ot_product(x->dims, l->axis, &l->outer)) return ot_call_fail(c, "input 0 is too large");
    /* parts without elements may be any number */
    if (elems == 0 && !ot_rm_wants(c, 1) && !ot_rm_wants(c, 2)) l->outer = 0;
    l->len = l->outer && elems ? elems / l->outer : 0;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)l->outer + 1, sizeof(double), &bytes))
        return ot_call_fail(c, "input 0 is too large");
    l->mean = ot_call_scratch(c, bytes);
    l->inverse = ot_call_scratch(c, bytes);
    if (!l->mean || !l->inverse) return ot_fail_nomem(c->diag);
    for (int64_t o = 0; o < l->outer; o++) {
        l->mean[o] = l->rms ? 0 : mean_of(x, o * l->len, l->len);
        l->inverse[o] = 1 / sqrt(square_mean_of(x, o * l->len, l->len, l->mean[o]) + epsilon);
    }
    return OT_OK;
}

/* Output k: one number for each part, as stash_type says. */
static ot_status layer_statistic(ot_call *c, uint32_t k, const layer *l, const double *values)
{
    const ot_nd *x = c->in[0];
    int64_t dims[OT_RANK_MAX], stash = ot_attr_int(c->node, "stash_type", OT_F32);
    ot_dtype t = stash > 0 && stash <= OT_I2 ? (ot_dtype)stash : OT_DT_UNKNOWN;
    if (ot_rm_kind(t) != REF_FLOAT)
        return ot_call_fail(c, "stash_type %lld is not a floating type", (long long)stash);
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = d < l->axis ? x->dims[d] : 1;
    OT_TRY(ot_call_output(c, k, t, x->rank, dims));
    if (ot_rm_wants(c, k)) ot_rm_store_f(c->out[k], 0, 1, l->outer, values);
    return OT_OK;
}

/* Y, with scale and B (inputs 1 and 2, if given) broadcast. */
static ot_status layer_scale(ot_call *c, const layer *l, ot_dtype t)
{
    const ot_nd *x = c->in[0];
    uint32_t n = !l->rms && ot_rm_given(c, 2) ? 3 : 2;
    ot_rm_walk w;
    OT_TRY(ot_rm_walk_inputs(&w, c, 0, n, x->rank, x->dims));
    OT_TRY(ot_call_output(c, 0, t, x->rank, x->dims));
    if (!ot_rm_wants(c, 0)) return OT_OK;
    for (bool more = ot_rm_walk_first(&w); more; more = ot_rm_walk_next(&w)) {
        double r[REF_ROW], scale[REF_ROW], shift[REF_ROW];
        ot_rm_row_f(&w, 0, r);
        ot_rm_row_f(&w, 1, scale);
        if (n == 3) ot_rm_row_f(&w, 2, shift);
        for (int64_t i = 0; i < w.n; i++) {
            int64_t o = (w.out + i) / l->len;
            r[i] = (r[i] - l->mean[o]) * l->inverse[o] * scale[i] + (n == 3 ? shift[i] : 0);
        }
        ot_rm_store_f(c->out[0], w.out, 1, w.n, r);
    }
    return OT_OK;
}

ot_status ot_rm_layer_norm(ot_call *c)
{
    layer l = {.rms = ot_rm_op(c) == OT_OP_RMSNormalization};
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 2; k++) OT_TRY(ot_rm_need_kind(c, k, REF_FLOAT));
    if (!l.rms && ot_rm_given(c, 2)) OT_TRY(ot_rm_need_kind(c, 2, REF_FLOAT));
    OT_TRY(ot_rm_axis(c, ot_attr_int(c->node, "axis", -1), c->in[0]->rank, &l.axis));
    OT_TRY(layer_statistics(c, &l));
    if (!l.rms) {
        OT_TRY(layer_statistic(c, 1, &l, l.mean));
        OT_TRY(layer_statistic(c, 2, &l, l.inverse));
    }
    return layer_scale(c, &l, c->in[l.rms ? 1 : 0]->dtype);
}

/* ---- InstanceNormalization, GroupNormalization ---- */

typedef struct channels {
    int64_t samples, n, inner;
    int64_t group;  /* channels normalised together */
    int64_t shared; /* channels that share a scale */
    double *scale, *shift;
} channels;

static ot_status channel_input(ot_call *c, uint32_t k, int64_t want, double **out)
{
    int64_t n;
    OT_TRY(ot_rm_need_kind(c, k, REF_FLOAT));
    if (!ot_nd_elems(c->in[k], &n) || n != want)
        return ot_call_fail(c, "input %u does not have %lld numbers", k, (long long)want);
    *out = ot_call_scratch(c, ((size_t)n + 1) * sizeof **out);
    if (!*out) return ot_fail_nomem(c->diag);
    ot_rm_load_f(c->in[k], 0, 1, n, *out);
    return OT_OK;
}

static ot_status read_channels(ot_call *c, channels *k)
{
    const ot_nd *x = c->in[0];
    if (x->rank < 2) return ot_call_fail(c, "input 0 has no channels: rank %u", x->rank);
    *k = (channels){.samples = x->dims[0], .n = x->dims[1], .inner = 1, .group = 1, .shared = 1};
    if (!ot_product(x->dims + 2, x->rank - 2, &k->inner))
        return ot_call_fail(c, "input 0 is too large");
    if (ot_rm_op(c) == OT_OP_GroupNormalization) {
        int64_t groups = ot_attr_int(c->node, "num_groups", 0);
        if (groups <= 0 || k->n % groups != 0)
            return ot_call_fail(c, "num_groups %lld does not divide %lld channels",
                                (long long)groups, (long long)k->n);
        k->group = k->n / groups;
        if (c->node->version < 21) k->shared = ot_max(k->group, 1);
    }
    OT_TRY(channel_input(c, 1, k->n / k->shared, &k->scale));
    return channel_input(c, 2, k->n / k->shared, &k->shift);
}

/* One channel: y = (x - mean) * factor + shift. */
static void channel_row(const ot_nd *x, ot_nd *y, int64_t at, int64_t n, double mean, double factor,
                        double shift)
{
    double r[REF_ROW];
    for (int64_t i = 0; i < n; i += REF_ROW) {
        int64_t m = ot_min(REF_ROW, n - i);
        ot_rm_load_f(x, at + i, 1, m, r);
        for (int64_t j = 0; j < m; j++) r[j] = (r[j] - mean) * factor + shift;
        ot_rm_store_f(y, at + i, 1, m, r);
    }
}

ot_status ot_rm_channel_norm(ot_call *c)
{
    channels k;
    int64_t elems;
    double epsilon = (double)ot_attr_float(c->node, "epsilon", 1e-5f);
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    OT_TRY(read_channels(c, &k));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    if (!ot_rm_wants(c, 0) || !ot_nd_elems(x, &elems) || elems == 0) return OT_OK;
    int64_t len = k.group * k.inner;
    for (int64_t at = 0; at < elems; at += len) {
        double mean = mean_of(x, at, len);
        double inverse = 1 / sqrt(square_mean_of(x, at, len, mean) + epsilon);
        int64_t first = at / k.inner % k.n;
        for (int64_t j = 0; j < k.group; j++) {
            int64_t p = (first + j) / k.shared;
            channel_row(x, c->out[0], at + j * k.inner, k.inner, mean, inverse * k.scale[p],
                        k.shift[p]);
        }
    }
    return OT_OK;
}

/* ---- MeanVarianceNormalization ---- */

/* Over all positions of the counter, from `base` on: with `out`, y = (x - mean) / deviation.
 * Returns the sum of (x - mean) ^ power. */
static double variance_pass(const ot_nd *x, ot_rm_counter *k, int64_t base, double mean, int power,
                            ot_nd *out, double deviation)
{
    double sum = 0, v;
    do {
        ot_rm_load_f(x, base + k->at, 1, 1, &v);
        v -= mean;
        sum += power == 1 ? v : v * v;
        v /= deviation;
        if (out) ot_rm_store_f(out, base + k->at, 1, 1, &v);
    } while (ot_rm_counter_next(k));
    return sum;
}

ot_status ot_rm_mean_variance(ot_call *c)
{
    static const int64_t usual[] = {0, 2, 3};
    bool reduced[OT_RANK_MAX] = {false};
    size_t n_axes = 0;
    int64_t elems, n = 1;
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    const ot_nd *x = c->in[0];
    const int64_t *axes = ot_attr_ints(c->node, "axes", &n_axes);
    if (!axes) {
        axes = usual;
        n_axes = sizeof usual / sizeof *usual;
    }
    for (size_t k = 0; k < n_axes; k++) {
        uint32_t d = 0;
        OT_TRY(ot_rm_axis(c, axes[k], x->rank, &d));
        reduced[d] = true;
    }
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    if (!ot_rm_wants(c, 0) || !ot_nd_elems(x, &elems) || elems == 0) return OT_OK;
    for (uint32_t d = 0; d < x->rank; d++)
        if (reduced[d]) n *= x->dims[d];
    ot_rm_counter kept, gone;
    ot_rm_counter_new(&kept, x, reduced, false);
    ot_rm_counter_new(&gone, x, reduced, true);
    do {
        double mean = variance_pass(x, &gone, kept.at, 0, 1, NULL, 1) / (double)n;
        double deviation = sqrt(variance_pass(x, &gone, kept.at, mean, 2, NULL, 1) / (double)n);
        (void)variance_pass(x, &gone, kept.at, mean, 1, c->out[0], deviation + 1e-9);
    } while (ot_rm_counter_next(&kept));
    return OT_OK;
}
