/* Normalisations by the mean and variance of a part of the input.
 *
 *   LayerNormalization, RMSNormalization       rows: all axes from `axis` on; scale and shift one
 *                                              number an element
 *   SkipLayerNormalization (com.microsoft)     the same of input + skip + bias, a sum that is an
 *                                              output, too
 *   InstanceNormalization, GroupNormalization  [sample][group][channels of the group * positions];
 *                                              scale and shift one a channel
 *
 * What is no float32, or is scaled in other shapes, goes to the reference;
 * SkipLayerNormalization has none and is refused instead.
 */
#include "fast_rows.h"

#include <math.h>

/* ---- layers ---- */

/* Does `a` hold one number for each element of axes [axis, rank) of x? */
static bool one_each(const ot_nd *a, const ot_nd *x, uint32_t axis)
{
    uint32_t len = x->rank - axis;
    if (!a || a->dtype != OT_F32 || !ot_nd_is_dense(a) || a->rank < len || a->rank > x->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        uint32_t of = x->rank - a->rank + d;
        if (a->dims[d] != (of < axis ? 1 : x->dims[of])) return false;
    }
    return true;
}

/* Output k: one number a row. */
static ot_status statistic(ot_call *c, uint32_t k, uint32_t axis, float **out)
{
    const ot_nd *x = c->in[0];
    int64_t dims[OT_RANK_MAX];
    *out = NULL;
    if (!ot_rows_wants(c, k)) return OT_OK;
    for (uint32_t d = 0; d < x->rank; d++) dims[d] = d < axis ? x->dims[d] : 1;
    OT_TRY(ot_call_output(c, k, OT_F32, x->rank, dims));
    *out = c->out[k]->data;
    return OT_OK;
}

static ot_status refuse(ot_call *c)
{
    return ot_call_fail(c, "these types and shapes are not supported");
}

typedef struct layer_norm {
    int64_t n; /* of a row */
    const float *x;
    float *y, *mean, *inverse; /* mean, inverse: one number a row, or NULL */
    const ot_rows_norm *norm;
} layer_norm;

static void layer_norm_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const layer_norm *l = job;
    (void)worker;
    for (int64_t r = first; r < end; r++)
        ot_rows_layernorm(l->y + r * l->n, l->x + r * l->n, l->n, l->norm,
                          l->mean ? l->mean + r : NULL, l->inverse ? l->inverse + r : NULL);
}

ot_status ot_fast_layer_norm(ot_call *c)
{
    if (ot_call_is_half(c))
        return ot_call_widened(c, ot_fast_layer_norm,
                               ot_rows_before(c, ot_attr_int(c->node, "axis", -1)));
    const char *type = c->node->op_type;
    bool simplified = strcmp(type, "SimplifiedLayerNormalization") == 0;
    ot_rows_norm norm = {.rms = simplified || strcmp(type, "RMSNormalization") == 0};
    const ot_nd *x = ot_rows_in(c, 0), *scale = ot_rows_in(c, 1),
                *shift = norm.rms ? NULL : ot_rows_in(c, 2);
    ot_op_fn otherwise = simplified ? refuse : ot_op_reference(ot_rows_op(c));
    uint32_t axis = 0;
    ot_lanes l;
    if (!ot_rows_takes(c) || !ot_rows_axis(ot_attr_int(c->node, "axis", -1), x->rank, &axis) ||
        !one_each(scale, x, axis) || (shift && !one_each(shift, x, axis)) ||
        ot_attr_int(c->node, "stash_type", OT_F32) != OT_F32 ||
        !ot_lanes_open(x, axis, x->rank, &l))
        return otherwise(c);
    float *mean = NULL, *inverse;
    if (!norm.rms) OT_TRY(statistic(c, 1, axis, &mean));
    OT_TRY(statistic(c, simplified ? 1 : 2, axis, &inverse));
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    if (!ot_rows_wants(c, 0) && !mean && !inverse) return OT_OK;
    float *y = ot_rows_wants(c, 0) ? c->out[0]->data
                                   : ot_call_scratch(c, (size_t)(l.outer * l.n) * sizeof(float));
    if (!y) return ot_fail_nomem(c->diag);
    norm.scale = scale->data;
    norm.shift = shift ? shift->data : NULL;
    norm.epsilon = ot_attr_float(c->node, "epsilon", 1e-5f);
    layer_norm job = {
        .n = l.n, .x = x->data, .y = y, .mean = mean, .inverse = inverse, .norm = &norm};
    ot_pool_share((uint32_t)ot_rows_threads(c, 2.0 * (double)l.outer * (double)l.n), l.outer, 1,
                  layer_norm_share, &job);
    return OT_OK;
}

/* ---- SkipLayerNormalization, SkipSimplifiedLayerNormalization ---- */

typedef struct skip_norm {
    int64_t rows, n, skip_rows;
    const float *x, *skip, *bias;    /* bias: [n] or NULL */
    float *y, *sum, *mean, *inverse; /* mean, inverse: NULL when not wanted */
    ot_rows_norm norm;
} skip_norm;

static bool is_row(const ot_nd *a, int64_t n)
{
    return a->dtype == OT_F32 && a->rank == 1 && a->dims[0] == n && ot_nd_is_dense(a);
}

static ot_status open_skip(ot_call *c, skip_norm *s)
{
    bool rms = strcmp(c->node->op_type, "SkipSimplifiedLayerNormalization") == 0;
    OT_TRY(ot_call_need(c, 3));
    const ot_nd *x = c->in[0], *skip = c->in[1], *shift = rms ? NULL : ot_rows_in(c, 3),
                *bias = ot_rows_in(c, rms ? 3 : 4);
    if (x->dtype != OT_F32 || skip->dtype != OT_F32)
        return ot_call_fail(c, "only float32 is supported");
    if (x->rank < 2 || !ot_nd_is_dense(x))
        return ot_call_fail(c, "the input has rank %u, needs 2 or more", x->rank);
    int64_t n = x->dims[x->rank - 1], elems, skip_elems;
    if (!ot_nd_elems(x, &elems) || !ot_nd_elems(skip, &skip_elems))
        return ot_call_fail(c, "the input is too large");
    if (skip->rank < 1 || skip->dims[skip->rank - 1] != n || !ot_nd_is_dense(skip) ||
        (elems > 0 && (skip_elems == 0 || elems % skip_elems != 0)))
        return ot_call_fail(c, "skip does not broadcast to the input");
    if (!is_row(c->in[2], n) || (shift && !is_row(shift, n)) || (bias && !is_row(bias, n)))
        return ot_call_fail(c, "gamma, beta and bias must be %lld numbers each", (long long)n);
    *s = (skip_norm){
        .rows = elems > 0 ? elems / n : 0, .n = n, .skip_rows = elems > 0 ? skip_elems / n : 1};
    s->x = x->data;
    s->skip = skip->data;
    s->bias = bias ? bias->data : NULL;
    s->norm = (ot_rows_norm){c->in[2]->data, shift ? shift->data : NULL,
                             ot_attr_float(c->node, "epsilon", 1e-12f), rms};
    return OT_OK;
}

/* The sum goes where it is wanted, else where the result will be. */
static void skip_row(const skip_norm *s, int64_t r)
{
    float *sum = (s->sum ? s->sum : s->y) + r * s->n;
    const float *x = s->x + r * s->n, *skip = s->skip + r % s->skip_rows * s->n;
    for (int64_t i = 0; i < s->n; i++) sum[i] = x[i] + skip[i] + (s->bias ? s->bias[i] : 0.0f);
    if (s->y)
        ot_rows_layernorm(s->y + r * s->n, sum, s->n, &s->norm, s->mean ? s->mean + r : NULL,
                          s->inverse ? s->inverse + r : NULL);
}

static void skip_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    (void)worker;
    for (int64_t r = first; r < end; r++) skip_row(job, r);
}

ot_status ot_fast_skip_layer_norm(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_skip_layer_norm, 0);
    skip_norm s;
    OT_TRY(open_skip(c, &s));
    const ot_nd *x = c->in[0];
    OT_TRY(statistic(c, 1, x->rank - 1, &s.mean));
    OT_TRY(statistic(c, 2, x->rank - 1, &s.inverse));
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    OT_TRY(ot_call_output(c, 3, OT_F32, x->rank, x->dims));
    s.y = ot_rows_wants(c, 0) ? c->out[0]->data : NULL;
    s.sum = ot_rows_wants(c, 3) ? c->out[3]->data : NULL;
    if (!s.y && (s.mean || s.inverse)) {
        s.y = ot_call_scratch(c, (size_t)(s.rows * s.n) * sizeof(float) + 1);
        if (!s.y) return ot_fail_nomem(c->diag);
    }
    if (!s.y && !s.sum) return OT_OK;
    ot_pool_share((uint32_t)ot_rows_threads(c, 3.0 * (double)s.rows * (double)s.n), s.rows, 1,
                  skip_share, &s);
    return OT_OK;
}

/* ---- InstanceNormalization, GroupNormalization ---- */

typedef struct channels {
    /* parts of `group` channels each; channels that share a scale */
    int64_t parts, channels, group, shared, inner;
    const float *scale, *shift;
    double epsilon;
    const ot_nd *x, *y;
    float *wide; /* of arrays of 16 bits: a part for each thread; else NULL */
} channels;

/* Scale or shift as float32: as it lies, or widened. NULL: no memory. */
static const float *floats_of(ot_call *c, const ot_nd *a, int64_t n)
{
    if (a->dtype == OT_F32) return a->data;
    float *to = ot_call_scratch(c, (size_t)n * sizeof *to + 1);
    if (to) ot_half_widen(a->dtype, to, a->data, n);
    return to;
}

/* All operands of one type: float32, or 16 bits. */
static bool open_channels(const ot_call *c, channels *k)
{
    const ot_nd *x = ot_rows_in(c, 0), *scale = ot_rows_in(c, 1), *shift = ot_rows_in(c, 2);
    ot_lanes l;
    int64_t n_scale, n_shift;
    if (!x || !ot_dtype_is_real(x->dtype) || !ot_nd_is_dense(x) || x->rank < 2 ||
        !ot_lanes_open(x, 1, 2, &l) || !scale || !shift || scale->dtype != x->dtype ||
        shift->dtype != x->dtype || !ot_nd_elems(scale, &n_scale) || !ot_nd_elems(shift, &n_shift))
        return false;
    *k = (channels){.channels = l.n, .group = 1, .shared = 1, .inner = l.inner};
    if (ot_rows_op(c) == OT_OP_GroupNormalization) {
        int64_t groups = ot_attr_int(c->node, "num_groups", 0);
        if (groups <= 0 || l.n % groups != 0 ||
            ot_attr_int(c->node, "stash_type", OT_F32) != OT_F32)
            return false;
        k->group = l.n / groups;
        if (c->node->version < 21) k->shared = k->group;
    }
    k->parts = l.outer * (l.n / k->group);
    k->epsilon = (double)ot_attr_float(c->node, "epsilon", 1e-5f);
    return n_scale == l.n / k->shared && n_shift == n_scale;
}

/* Part p, which begins at x, to y. */
static void normalise_part(const channels *k, int64_t p, float *y, const float *x)
{
    int64_t len = k->group * k->inner, first = p * k->group % k->channels;
    double mean = ot_rows_mean(x, len);
    double inverse = 1 / sqrt(ot_rows_square_mean(x, len, mean) + k->epsilon);
    for (int64_t j = 0; j < k->group; j++) {
        int64_t at = j * k->inner, of = (first + j) / k->shared;
        /* of the rounded mean */
        double factor = inverse * (double)k->scale[of], rest = (double)(float)mean - mean;
        ot_rows_affine(y + at, x + at, k->inner, (float)mean, (float)factor,
                       (float)((double)k->shift[of] + rest * factor));
    }
}

/* Part p of arrays of 16 bits: widened into `wide`, normalised there, rounded. */
static void normalise_half(const channels *k, int64_t p, float *wide)
{
    int64_t len = k->group * k->inner;
    ot_half_widen(k->x->dtype, wide, (const uint16_t *)k->x->data + p * len, len);
    normalise_part(k, p, wide, wide);
    ot_half_narrow(k->x->dtype, (uint16_t *)k->y->data + p * len, wide, len);
}

static void parts_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const channels *k = job;
    int64_t len = k->group * k->inner;
    for (int64_t p = first; p < end; p++) {
        if (k->wide)
            normalise_half(k, p, k->wide + worker * len);
        else
            normalise_part(k, p, (float *)k->y->data + p * len,
                           (const float *)k->x->data + p * len);
    }
}

ot_status ot_fast_channel_norm(ot_call *c)
{
    channels k;
    int64_t room;
    if (!open_channels(c, &k)) return ot_op_reference(ot_rows_op(c))(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, x->dtype, x->rank, x->dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    k.x = x;
    k.y = c->out[0];
    k.scale = floats_of(c, c->in[1], k.channels / k.shared);
    k.shift = floats_of(c, c->in[2], k.channels / k.shared);
    if (!k.scale || !k.shift) return ot_fail_nomem(c->diag);
    int64_t len = k.group * k.inner,
            threads = ot_rows_threads(c, 3.0 * (double)k.parts * (double)len);
    if (x->dtype != OT_F32) {
        if (!ot_mul_i64(len, threads * (int64_t)sizeof *k.wide, &room))
            return ot_fail_nomem(c->diag);
        k.wide = ot_call_scratch(c, (size_t)room);
        if (!k.wide) return ot_fail_nomem(c->diag);
    }
    ot_pool_share((uint32_t)threads, k.parts, 1, parts_share, &k);
    return OT_OK;
}
