/* BatchNormalization and Dropout.
 *
 * BatchNormalization scales and shifts every channel by its own numbers: X is [N, C, ...], seen
 * as [N, C, inner]; a rank of one is one channel. With `spatial` = 0 (before version 9) every
 * feature of a sample is a channel of its own: [N, C * inner, 1].
 *
 *     y = (x - mean) / sqrt(var + epsilon) * scale + B
 *
 * In inference mean and var are inputs 3 and 4; in training they are those of the batch, and the
 * outputs report running ones. Which it is, an attribute says from version 14 on, the presence
 * of further outputs before.
 */
#include "ref_math.h"

#include <math.h>

typedef struct batch_norm {
    int64_t samples, channels, inner;
    double epsilon, momentum;
    double *scale, *shift, *mean, *var; /* [channels] */
} batch_norm;

/* Numbers of all channels from input k. */
static ot_status channel_input(ot_call *c, uint32_t k, int64_t channels, double **out)
{
    int64_t n;
    OT_TRY(ot_rm_need_kind(c, k, REF_FLOAT));
    if (!ot_nd_elems(c->in[k], &n) || n != channels)
        return ot_call_fail(c, "input %u does not have one number for each of %lld channels", k,
                            (long long)channels);
    *out = ot_call_scratch(c, ((size_t)n + 1) * sizeof **out);
    if (!*out) return ot_fail_nomem(c->diag);
    ot_rm_load_f(c->in[k], 0, 1, n, *out);
    return OT_OK;
}

static ot_status split(ot_call *c, batch_norm *b)
{
    const ot_nd *x = c->in[0];
    if (x->rank == 0) return ot_call_fail(c, "input 0 has no dimension of samples");
    b->samples = x->dims[0];
    b->channels = x->rank > 1 ? x->dims[1] : 1;
    b->inner = 1;
    if (x->rank > 2 && !ot_product(x->dims + 2, x->rank - 2, &b->inner))
        return ot_call_fail(c, "input 0 is too large");
    if (c->node->version < 9 && !ot_attr_int(c->node, "spatial", 1)) {
        if (!ot_mul_i64(b->channels, b->inner, &b->channels))
            return ot_call_fail(c, "input 0 is too large");
        b->inner = 1;
    }
    return OT_OK;
}

static void normalise(const ot_nd *x, const batch_norm *b, ot_nd *out)
{
    double r[REF_ROW];
    for (int64_t s = 0, at = 0; s < b->samples; s++) {
        for (int64_t k = 0; k < b->channels; k++) {
            double factor = b->scale[k] / sqrt(b->var[k] + b->epsilon);
            for (int64_t i = 0; i < b->inner; i += REF_ROW) {
                int64_t n = ot_min(REF_ROW, b->inner - i);
                ot_rm_load_f(x, at, 1, n, r);
                for (int64_t j = 0; j < n; j++) r[j] = (r[j] - b->mean[k]) * factor + b->shift[k];
                ot_rm_store_f(out, at, 1, n, r);
                at += n;
            }
        }
    }
}

/* Sum over the batch of (x - center[channel]) ^ power, divided by the number of summands, to
 * out[channel]. */
static void batch_moment(const ot_nd *x, const batch_norm *b, const double *center, int power,
                         double *out)
{
    double r[REF_ROW], n_all = (double)b->samples * (double)b->inner;
    for (int64_t k = 0; k < b->channels; k++) {
        double sum = 0;
        for (int64_t s = 0; b->inner > 0 && s < b->samples; s++) {
            int64_t at = (s * b->channels + k) * b->inner;
            for (int64_t i = 0; i < b->inner; i += REF_ROW) {
                int64_t n = ot_min(REF_ROW, b->inner - i);
                ot_rm_load_f(x, at + i, 1, n, r);
                for (int64_t j = 0; j < n; j++)
                    sum += power == 1 ? r[j] : (r[j] - center[k]) * (r[j] - center[k]);
            }
        }
        out[k] = sum / n_all;
    }
}

/* Output k, like input `like`: values[channel]. */
static ot_status channel_output(ot_call *c, uint32_t k, uint32_t like, const batch_norm *b,
                                const double *values)
{
    const ot_nd *a = c->in[like];
    OT_TRY(ot_call_output(c, k, a->dtype, a->rank, a->dims));
    if (ot_rm_wants(c, k)) ot_rm_store_f(c->out[k], 0, 1, b->channels, values);
    return OT_OK;
}

/* Statistics of the batch replace those given; the running ones go out. */
static ot_status train(ot_call *c, batch_norm *b)
{
    size_t bytes = ((size_t)b->channels + 1) * sizeof(double);
    double *mean = ot_call_scratch(c, bytes), *var = ot_call_scratch(c, bytes);
    if (!mean || !var) return ot_fail_nomem(c->diag);
    batch_moment(c->in[0], b, NULL, 1, mean);
    batch_moment(c->in[0], b, mean, 2, var);
    for (int64_t k = 0; k < b->channels; k++) {
        b->mean[k] = b->mean[k] * b->momentum + mean[k] * (1 - b->momentum);
        b->var[k] = b->var[k] * b->momentum + var[k] * (1 - b->momentum);
    }
    OT_TRY(channel_output(c, 1, 3, b, b->mean));
    OT_TRY(channel_output(c, 2, 4, b, b->var));
    OT_TRY(channel_output(c, 3, 3, b, mean)); /* saved ones, before version 14 */
    OT_TRY(channel_output(c, 4, 4, b, var));
    b->mean = mean;
    b->var = var;
    return OT_OK;
}

ot_status ot_rm_batch_norm(ot_call *c)
{
    const ot_node *n = c->node;
    batch_norm b = {.epsilon = (double)ot_attr_float(n, "epsilon", 1e-5f),
                    .momentum = (double)ot_attr_float(n, "momentum", 0.9f)};
    bool extra = ot_rm_wants(c, 1) || ot_rm_wants(c, 2) || ot_rm_wants(c, 3) || ot_rm_wants(c, 4);
    bool training = n->version >= 14 ? ot_attr_int(n, "training_mode", 0) != 0 : extra;
    OT_TRY(ot_call_need(c, 5));
    OT_TRY(ot_rm_need_kind(c, 0, REF_FLOAT));
    OT_TRY(split(c, &b));
    OT_TRY(channel_input(c, 1, b.channels, &b.scale));
    OT_TRY(channel_input(c, 2, b.channels, &b.shift));
    OT_TRY(channel_input(c, 3, b.channels, &b.mean));
    OT_TRY(channel_input(c, 4, b.channels, &b.var));
    if (extra && !training) return ot_call_fail(c, "more than one output without training_mode");
    if (training) OT_TRY(train(c, &b));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    int64_t elems;
    if (ot_rm_wants(c, 0) && ot_nd_elems(x, &elems) && elems > 0) normalise(x, &b, c->out[0]);
    return OT_OK;
}

/* ---- Dropout: the input itself, as it is after training ---- */

static ot_status dropout_ratio(ot_call *c, double *ratio)
{
    *ratio = (double)ot_attr_float(c->node, "ratio", 0.5f);
    if (!ot_rm_given(c, 1)) return OT_OK;
    int64_t n;
    OT_TRY(ot_rm_need_kind(c, 1, REF_FLOAT));
    if (!ot_nd_elems(c->in[1], &n) || n != 1)
        return ot_call_fail(c, "input 1 (ratio) is not one number");
    ot_rm_load_f(c->in[1], 0, 0, 1, ratio);
    return OT_OK;
}

static ot_status is_training(ot_call *c, bool *yes)
{
    *yes = c->node->version < 7 && !ot_attr_int(c->node, "is_test", 0);
    if (!ot_rm_given(c, 2)) return OT_OK;
    int64_t n, mode;
    OT_TRY(ot_rm_need_kind(c, 2, REF_BOOL));
    if (!ot_nd_elems(c->in[2], &n) || n != 1)
        return ot_call_fail(c, "input 2 (training_mode) is not one value");
    ot_rm_load_i(c->in[2], 0, 0, 1, &mode);
    *yes = mode != 0;
    return OT_OK;
}

ot_status ot_rm_dropout(ot_call *c)
{
    double ratio;
    bool training;
    int64_t n, one = 1;
    OT_TRY(ot_call_need(c, 1));
    OT_TRY(dropout_ratio(c, &ratio));
    OT_TRY(is_training(c, &training));
    if (training && ratio != 0)
        return ot_call_fail(c, "dropping out at random (training) is not supported");
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 1, c->node->version < 10 ? x->dtype : OT_BOOL, x->rank, x->dims));
    if (ot_rm_wants(c, 1)) {
        ot_nd *mask = c->out[1];
        if (!ot_rm_kind(mask->dtype)) return ot_rm_bad_type(c, 0);
        if (!ot_nd_elems(x, &n)) return ot_call_fail(c, "input 0 is too large");
        double d = 1;
        for (int64_t i = 0; i < n; i++) {
            if (ot_rm_kind(mask->dtype) == REF_FLOAT)
                ot_rm_store_f(mask, i, 1, 1, &d);
            else
                ot_rm_store_i(mask, i, 1, 1, &one);
        }
    }
    return ot_call_view(c, 0, 0, x->rank, x->dims);
}
