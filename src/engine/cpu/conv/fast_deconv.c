/* ConvTranspose of what no fused step takes: groups (depthwise above all), and weights that are
 * not known before the run.
 *
 *   one row of the output, its columns sorted by their place in the stride:
 *
 *     phases  [0: y0 y2 y4 ...] [1: y1 y3 y5 ...]      column = place * stride + phase
 *     row of x * one weight --added to--> a piece of one phase: contiguous on both sides
 *     phases --bias, interleaved--> y
 *
 * With many channels a group is one product instead, whose columns are added to the output:
 *
 *   columns [map, tap][position] = weights' [map, tap][channel] * x [channel][position]
 *
 * float32, one or two spatial axes (three by products); the rest goes to the reference. Threads
 * take rows, or planes.
 */
#include "fast_conv.h"
#include "window_rows.h"

#include "engine/cpu/product/fast_product.h"
#include "engine/cpu/rows/fast_rows.h"
#include "engine/core/simd.h"

#define ROWS_AT_ONCE 16

typedef struct deconv {
    ot_scatter v;
    const float *x, *w, *bias;
    float *y;
    float *phases; /* [threads][line] */
    int64_t in_h, in_w, out_h, out_w, kernel_h, kernel_w;
    int64_t stride_h, stride_w, dilation_h, dilation_w, top, left;
    int64_t places; /* columns of one phase */
} deconv;

OT_CLONES static void add_scaled(float *to, const float *x, float w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += w * x[i];
}

/* One row of x, spread by one row of the kernel into the phases of one row of the output. */
static void spread_row(const deconv *d, const float *x, const float *kernel, float *phases)
{
    for (int64_t k = 0; k < d->kernel_w; k++) {
        int64_t shift = k * d->dilation_w - d->left, phase = shift % d->stride_w;
        if (phase < 0) phase += d->stride_w;
        int64_t ahead = (shift - phase) / d->stride_w; /* place = column of x + ahead */
        int64_t columns = (d->out_w - phase + d->stride_w - 1) / d->stride_w;
        int64_t from = ot_max(0, -ahead), to = ot_min(d->in_w, columns - ahead);
        if (from < to)
            add_scaled(phases + phase * d->places + from + ahead, x + from, kernel[k], to - from);
    }
}

static void interleave(const deconv *d, const float *phases, float bias, float *y)
{
    if (d->stride_w == 1) {
        for (int64_t i = 0; i < d->out_w; i++) y[i] = phases[i] + bias;
        return;
    }
    for (int64_t p = 0; p < d->stride_w; p++)
        for (int64_t i = p, at = 0; i < d->out_w; i += d->stride_w, at++)
            y[i] = phases[p * d->places + at] + bias;
}

/* Row `row` of one plane (sample n, map m). */
static void make_row(const deconv *d, int64_t n, int64_t m, int64_t row, float *phases)
{
    const ot_scatter *v = &d->v;
    int64_t per = v->channels / v->group, maps_per = v->maps / v->group, group = m / maps_per;
    memset(phases, 0, (size_t)(d->places * d->stride_w) * sizeof *phases);
    for (int64_t c = group * per; c < (group + 1) * per; c++) {
        const float *x = d->x + (n * v->channels + c) * v->x_n,
                    *kernel = d->w + (c * maps_per + m % maps_per) * v->k_n;
        for (int64_t k = 0; k < d->kernel_h; k++) {
            int64_t at = row + d->top - k * d->dilation_h;
            if (at < 0 || at % d->stride_h != 0 || at / d->stride_h >= d->in_h) continue;
            spread_row(d, x + at / d->stride_h * d->in_w, kernel + k * d->kernel_w, phases);
        }
    }
    interleave(d, phases, d->bias ? d->bias[m] : 0,
               d->y + ((n * v->maps + m) * d->out_h + row) * d->out_w);
}

/* Two spatial axes; one is the columns of a single row. */
static void set_sizes(deconv *d)
{
    const ot_window *w = &d->v.w;
    uint32_t last = w->n - 1;
    bool flat = w->n == 1;
    d->in_h = flat ? 1 : w->out[0];
    d->out_h = flat ? 1 : w->in[0];
    d->kernel_h = flat ? 1 : w->kernel[0];
    d->stride_h = flat ? 1 : w->stride[0];
    d->dilation_h = flat ? 1 : w->dilation[0];
    d->top = flat ? 0 : w->lo[0];
    d->in_w = w->out[last];
    d->out_w = w->in[last];
    d->kernel_w = w->kernel[last];
    d->stride_w = w->stride[last];
    d->dilation_w = w->dilation[last];
    d->left = w->lo[last];
    d->places = (d->out_w + d->stride_w - 1) / d->stride_w;
}

static bool is_taken(ot_call *c)
{
    const ot_nd *x = ot_num_in(c, 0), *w = ot_num_in(c, 1), *b = ot_num_in(c, 2);
    return x && w && x->dtype == OT_F32 && w->dtype == OT_F32 && (!b || b->dtype == OT_F32) &&
           x->rank == w->rank && x->rank >= 3 && x->rank <= 2 + OT_ROW_AXES &&
           ot_num_count(x) > 0 && ot_num_count(w) > 0;
}

static void rows_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const deconv *d = job;
    float *phases = d->phases + worker * d->places * d->stride_w;
    for (int64_t r = first; r < end; r++) {
        int64_t plane = r / d->out_h;
        make_row(d, plane / d->v.maps, plane % d->v.maps, r % d->out_h, phases);
    }
}

/* ---- by products ---- */

#define COLUMN_FLOATS ((int64_t)1 << 20) /* at a time, unless one map has more */
#define CHANNELS_MIN  8                  /* of a group */

typedef struct add_job {
    ot_row_window w;
    const float *columns, *bias; /* of the first map; bias or NULL */
    float *y;
} add_job;

static void add_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const add_job *j = job;
    (void)worker;
    for (int64_t m = first; m < end; m++) {
        float *y = j->y + m * j->w.in_n, bias = j->bias ? j->bias[m] : 0;
        for (int64_t i = 0; i < j->w.in_n; i++) y[i] = bias;
        ot_row_window_add(&j->w, y, j->columns + m * j->w.k_n * j->w.out_n);
    }
}

/* One group of one image, `chunk` maps at a time. */
static ot_status group_product(ot_call *c, const deconv *d, int64_t image, int64_t g, int64_t chunk,
                               float *columns)
{
    const ot_scatter *v = &d->v;
    int64_t per = v->channels / v->group, maps_per = v->maps / v->group;
    add_job add = {.columns = columns};
    ot_row_window_of(&v->w, &add.w);
    for (int64_t m = 0; m < maps_per; m += chunk) {
        int64_t n = ot_min(chunk, maps_per - m), at = g * maps_per + m;
        ot_product_job j = {
            .m = n * v->k_n, .n = v->x_n, .k = per, .ldc = v->x_n, .c = columns, .alpha = 1};
        const float *w = d->w + (g * per * maps_per + m) * v->k_n,
                    *x = d->x + (image * v->channels + g * per) * v->x_n;
        if (!ot_product_view(w, j.m, per, 1, maps_per * v->k_n, &j.a) ||
            !ot_product_view(x, per, v->x_n, v->x_n, 1, &j.b))
            return OT_E_NOMEM;
        OT_TRY(ot_product_shared(c, &j));
        add.bias = d->bias ? d->bias + at : NULL;
        add.y = d->y + (image * v->maps + at) * v->y_n;
        ot_pool_share((uint32_t)ot_rows_threads(c, (double)j.m * (double)v->x_n), n, 1, add_share,
                      &add);
    }
    return OT_OK;
}

static ot_status by_products(ot_call *c, const deconv *d)
{
    const ot_scatter *v = &d->v;
    int64_t one, floats, chunk;
    if (!ot_mul_i64(v->k_n, v->x_n, &one)) return ot_ref_conv_transpose(c);
    chunk = ot_max(1, ot_min(v->maps / v->group, COLUMN_FLOATS / one));
    float *columns = ot_num_scratch(c, ot_mul_i64(chunk, one, &floats) ? floats : -1,
                                    sizeof *columns);
    if (!columns) return OT_E_NOMEM;
    for (int64_t image = 0; image < v->batch; image++)
        for (int64_t g = 0; g < v->group; g++)
            OT_TRY(group_product(c, d, image, g, chunk, columns));
    return OT_OK;
}

ot_status ot_fast_conv_transpose(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_conv_transpose, 0);
    deconv d = {0};
    if (!is_taken(c)) return ot_ref_conv_transpose(c);
    OT_TRY(ot_scatter_open(c, &d.v));
    OT_TRY(ot_num_dims(c, 2, 1, &d.v.maps));
    set_sizes(&d);
    bool deep = d.v.channels / d.v.group >= CHANNELS_MIN;
    if (!deep && (d.v.w.n > 2 || d.stride_w > d.out_w)) return ot_ref_conv_transpose(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, d.v.w.n + 2, d.v.dims));
    if (!ot_num_out(c, 0)) return OT_OK;
    d.x = c->in[0]->data;
    d.w = c->in[1]->data;
    d.bias = ot_num_in(c, 2) ? c->in[2]->data : NULL;
    d.y = c->out[0]->data;
    if (deep) return by_products(c, &d);
    int64_t rows = d.v.batch * d.v.maps * d.out_h, line = d.places * d.stride_w;
    int threads = ot_rows_threads(c, (double)rows * (double)d.out_w *
                                         (double)(d.v.channels / d.v.group) * (double)d.v.k_n);
    d.phases = ot_num_scratch(c, line * threads, sizeof *d.phases);
    if (!d.phases) return OT_E_NOMEM;
    ot_pool_share((uint32_t)threads, rows, ROWS_AT_ONCE, rows_share, &d);
    return OT_OK;
}
