/* ConvTranspose, Col2Im, MaxUnpool: windows that write.
 *
 *   position p of the (small) input      window on the (large) output
 *   [ . . p . ]  ---- adds x[p] * w[k] to every tap of ---->  [ . . . k k k . . . ]
 *
 * So the taps are those of a pool over the output whose positions are the input's elements.
 */
#include "ref_window.h"

/* ---- ConvTranspose ---- */

/* Attribute output_shape: the last n values (old files give N and C, too). NULL: absent. */
static ot_status fixed_shape(ot_call *c, uint32_t n, const int64_t **out)
{
    size_t have = 0;
    *out = ot_attr_ints(c->node, "output_shape", &have);
    if (!*out || have == 0) {
        *out = NULL;
        return OT_OK;
    }
    if (have != n && have != (size_t)n + 2)
        return ot_call_fail(c, "output_shape has %zu values, the input has %u spatial axes", have,
                            n);
    *out += have - n;
    return OT_OK;
}

/* Output size along axis k: what the windows cover, less the pads. A fixed size, and SAME_*,
 * choose the pads. */
static ot_status transposed_size(ot_call *c, ot_window *w, uint32_t k, int64_t extra,
                                 const int64_t *fixed, int64_t *out)
{
    int64_t full;
    bool same = w->same_upper || w->same_lower;
    if (!ot_mul_i64(w->in[k] - 1, w->stride[k], &full) ||
        !ot_add_i64(full, extra + (w->kernel[k] - 1) * w->dilation[k] + 1, &full))
        return ot_call_fail(c, "the output size overflows");
    if (fixed || same) {
        int64_t want = fixed ? fixed[k] : w->in[k] * w->stride[k];
        int64_t pads = ot_max(0, full - ot_max(want, 0));
        w->lo[k] = w->same_upper ? pads / 2 : pads - pads / 2;
        w->hi[k] = pads - w->lo[k];
        *out = fixed ? want : full - pads;
    } else {
        *out = full - w->lo[k] - w->hi[k];
    }
    if (*out < 1 || *out > (int64_t)1 << 40)
        return ot_call_fail(c, "the output size along spatial axis %u is %lld", k, (long long)*out);
    return OT_OK;
}

ot_status ot_scatter_open(ot_call *c, ot_scatter *v)
{
    const ot_nd *x = c->in[0], *wt = c->in[1];
    const int64_t *fixed;
    int64_t extra[OT_RANK_MAX];
    if (x->rank != wt->rank)
        return ot_call_fail(c, "the input has rank %u, the weight has rank %u", x->rank, wt->rank);
    OT_TRY(ot_window_read(c, x, wt->dims + 2, &v->w));
    OT_TRY(ot_window_ints(c, "output_padding", v->w.n, 0, 0, extra));
    OT_TRY(fixed_shape(c, v->w.n, &fixed));
    v->group = ot_attr_int(c->node, "group", 1);
    v->batch = v->dims[0] = x->dims[0];
    v->channels = x->dims[1];
    if (v->group < 1 || v->channels % v->group != 0 || wt->dims[0] != v->channels ||
        !ot_mul_i64(wt->dims[1], v->group, &v->maps))
        return ot_call_fail(c,
                            "%lld channels and weights of %lld x %lld do not agree for group %lld",
                            (long long)v->channels, (long long)wt->dims[0], (long long)wt->dims[1],
                            (long long)v->group);
    v->dims[1] = v->maps;
    for (uint32_t k = 0; k < v->w.n; k++) {
        OT_TRY(transposed_size(c, &v->w, k, extra[k], fixed, &v->dims[2 + k]));
        v->w.out[k] = v->w.in[k];
        v->w.in[k] = v->dims[2 + k];
    }
    if (!ot_product(v->w.out, v->w.n, &v->x_n) || !ot_product(v->w.in, v->w.n, &v->y_n) ||
        !ot_product(v->w.kernel, v->w.n, &v->k_n))
        return ot_call_fail(c, "the spatial size overflows");
    return OT_OK;
}

/* y [N, M, output...] += x [N, C, input...] spread by wt [C, M / group, kernel...] */
static void spread(const ot_scatter *v, const double *x, const double *wt, double *y, ot_tap *taps)
{
    int64_t per = v->channels / v->group, maps_per = v->maps / v->group, pos[OT_RANK_MAX] = {0};
    for (int64_t p = 0; p < v->x_n; p++, (void)ot_num_next(v->w.n, v->w.out, pos)) {
        int64_t n_taps = ot_window_taps(&v->w, pos, taps);
        for (int64_t n = 0; n < v->batch; n++) {
            for (int64_t ch = 0; ch < v->channels; ch++) {
                double e = x[(n * v->channels + ch) * v->x_n + p];
                for (int64_t m = 0; m < maps_per; m++) {
                    double *plane = y + (n * v->maps + ch / per * maps_per + m) * v->y_n;
                    const double *kernel = wt + (ch * maps_per + m) * v->k_n;
                    for (int64_t t = 0; t < n_taps; t++) plane[taps[t].in] += e * kernel[taps[t].k];
                }
            }
        }
    }
}

ot_status ot_ref_conv_transpose(ot_call *c)
{
    ot_scatter v = {0};
    int64_t n;
    OT_TRY(ot_call_need(c, 2));
    for (uint32_t k = 0; k < 3; k++) {
        OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
        OT_TRY(ot_num_same_type(c, k, 0));
    }
    OT_TRY(ot_scatter_open(c, &v));
    OT_TRY(ot_num_dims(c, 2, 1, &v.maps));
    double *x = ot_num_doubles(c, c->in[0]), *wt = x ? ot_num_doubles(c, c->in[1]) : NULL;
    double *y = wt ? ot_num_scratch(c, ot_product(v.dims, v.w.n + 2, &n) ? n : -1, sizeof *y)
                   : NULL;
    ot_tap *taps = y ? ot_window_taps_new(c, &v.w) : NULL;
    if (!taps) return OT_E_NOMEM;
    spread(&v, x, wt, y, taps);
    const ot_nd *b = ot_num_in(c, 2);
    for (int64_t i = 0; b && i < n; i++) y[i] += ot_nd_double(b, i / v.y_n % v.maps);
    return ot_num_output(c, 0, c->in[0]->dtype, v.w.n + 2, v.dims, y);
}

/* ---- Col2Im: x [N, C * block, positions], columns added back into images ---- */

/* Input k is a shape: int64 values in [1, 2^31] into out; returns their number in *n. */
static ot_status shape_input(ot_call *c, uint32_t k, uint32_t *n, int64_t *out)
{
    const ot_nd *a = c->in[k];
    OT_TRY(ot_num_type(c, k, OT_NUM_INDEX));
    OT_TRY(ot_num_rank(c, k, 1));
    if (a->dims[0] < 1 || a->dims[0] > OT_RANK_MAX - 2)
        return ot_call_fail(c, "input %u has %lld values", k, (long long)a->dims[0]);
    *n = (uint32_t)a->dims[0];
    for (uint32_t i = 0; i < *n; i++) {
        out[i] = ot_nd_int(a, i);
        if (out[i] < 1 || out[i] > (int64_t)1 << 31)
            return ot_call_fail(c, "input %u holds %lld", k, (long long)out[i]);
    }
    return OT_OK;
}

static ot_status read_col2im(ot_call *c, ot_window *w)
{
    uint32_t n_block = 0;
    int64_t pads[2 * OT_RANK_MAX];
    *w = (ot_window){0};
    OT_TRY(shape_input(c, 1, &w->n, w->in));
    OT_TRY(shape_input(c, 2, &n_block, w->kernel));
    if (n_block != w->n)
        return ot_call_fail(c, "image_shape has %u values, block_shape has %u", w->n, n_block);
    OT_TRY(ot_window_ints(c, "strides", w->n, 1, 1, w->stride));
    OT_TRY(ot_window_ints(c, "dilations", w->n, 1, 1, w->dilation));
    OT_TRY(ot_window_ints(c, "pads", 2 * w->n, 0, 0, pads));
    for (uint32_t k = 0; k < w->n; k++) w->lo[k] = pads[k], w->hi[k] = pads[w->n + k];
    return ot_window_conv_out(c, w);
}

ot_status ot_window_col2im(ot_call *c, ot_window *w, int64_t *dims)
{
    int64_t block, positions;
    OT_TRY(ot_num_rank(c, 0, 3));
    OT_TRY(read_col2im(c, w));
    const ot_nd *x = c->in[0];
    if (!ot_product(w->kernel, w->n, &block) || !ot_product(w->out, w->n, &positions))
        return ot_call_fail(c, "the size overflows");
    if (x->dims[1] % block != 0 || x->dims[2] != positions)
        return ot_call_fail(
            c, "columns [%lld,%lld] do not agree with blocks of %lld elements at %lld positions",
            (long long)x->dims[1], (long long)x->dims[2], (long long)block, (long long)positions);
    dims[0] = x->dims[0];
    dims[1] = x->dims[1] / block;
    memcpy(dims + 2, w->in, w->n * sizeof *dims);
    return OT_OK;
}

ot_status ot_ref_col2im(ot_call *c)
{
    ot_window w = {0};
    int64_t block, positions, image, dims[OT_RANK_MAX], pos[OT_RANK_MAX] = {0}, n;
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(ot_num_type(c, 0, OT_NUM_ALL));
    OT_TRY(ot_window_col2im(c, &w, dims));
    const ot_nd *x = c->in[0];
    if (!ot_product(w.kernel, w.n, &block) || !ot_product(w.out, w.n, &positions) ||
        !ot_product(w.in, w.n, &image))
        return ot_call_fail(c, "the size overflows");
    double *v = ot_num_doubles(c, x),
           *y = v ? ot_num_scratch(c, ot_product(dims, w.n + 2, &n) ? n : -1, sizeof *y) : NULL;
    ot_tap *taps = y ? ot_window_taps_new(c, &w) : NULL;
    if (!taps) return OT_E_NOMEM;
    for (int64_t p = 0; p < positions; p++, (void)ot_num_next(w.n, w.out, pos)) {
        int64_t n_taps = ot_window_taps(&w, pos, taps);
        for (int64_t plane = 0; plane < dims[0] * dims[1]; plane++)
            for (int64_t t = 0; t < n_taps; t++)
                y[plane * image + taps[t].in] += v[(plane * block + taps[t].k) * positions + p];
    }
    return ot_num_output(c, 0, x->dtype, w.n + 2, dims, y);
}

/* ---- MaxUnpool ---- */

ot_status ot_window_unpool(ot_call *c, int64_t *from, int64_t *dims)
{
    const ot_nd *x = c->in[0], *shape = ot_num_in(c, 2);
    ot_window w = {0};
    OT_TRY(ot_window_read(c, x, NULL, &w));
    OT_TRY(ot_num_type(c, 2, OT_NUM_BIT(OT_I64)));
    if (shape && (shape->rank != 1 || shape->dims[0] != x->rank))
        return ot_call_fail(c, "output_shape must have %u values", x->rank);
    for (uint32_t k = 0; k < x->rank; k++) {
        dims[k] = from[k] = x->dims[k];
        if (k >= 2) {
            uint32_t a = k - 2;
            if (!ot_mul_i64(w.in[a] - 1, w.stride[a], &from[k]) ||
                !ot_add_i64(from[k], w.kernel[a] - w.lo[a] - w.hi[a], &from[k]) || from[k] < 0)
                return ot_call_fail(c, "the output size along spatial axis %u is out of range", a);
            dims[k] = from[k];
        }
        if (shape) dims[k] = ot_nd_int(shape, k);
        if (dims[k] < 0) return ot_call_fail(c, "output_shape holds %lld", (long long)dims[k]);
    }
    return OT_OK;
}

/* Indices count in the array that the pool read; where the output is larger, that array lies in
 * its corner. */
ot_status ot_ref_max_unpool(ot_call *c)
{
    int64_t from[OT_RANK_MAX], dims[OT_RANK_MAX], from_n, y_n;
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_BIT(OT_I64)));
    const ot_nd *x = c->in[0], *index = c->in[1];
    OT_TRY(ot_num_dims(c, 1, x->rank, x->dims));
    OT_TRY(ot_window_unpool(c, from, dims));
    if (!ot_product(from, x->rank, &from_n) || !ot_product(dims, x->rank, &y_n))
        return ot_call_fail(c, "the output size overflows");
    double *y = ot_num_scratch(c, y_n, sizeof *y);
    if (!y) return OT_E_NOMEM;
    int64_t n = ot_num_count(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = ot_nd_int(index, i), at = 0, step = 1;
        bool inside = y_n > 0;
        if (rest < 0 || rest >= from_n)
            return ot_call_fail(c, "index %lld is outside the %lld elements of the pool's input",
                                (long long)rest, (long long)from_n);
        for (uint32_t k = x->rank; k-- > 0; rest /= from[k]) {
            int64_t p = rest % from[k];
            inside = inside && p < dims[k];
            if (!inside) continue;
            at += p * step;
            step *= dims[k];
        }
        if (inside) y[at] = ot_nd_double(x, i);
    }
    return ot_num_output(c, 0, x->dtype, x->rank, dims, y);
}
