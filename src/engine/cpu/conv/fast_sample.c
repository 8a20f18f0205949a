/* GridSample, AffineGrid and DeformConv of float32: where a point reads is found once for all
 * channels that read there.
 *
 *   GridSample   points of the grid --> taps --> each channel                        y
 *   DeformConv   tap k of positions --> taps --> columns [channel, k][position]
 *                y [map][position] = weights [map][channel, k] * columns + bias      one product
 *
 * Threads take pieces of the points. Planes of 2^31 elements and other types go to the
 * reference.
 */
#include "fast_conv.h"
#include "sample_taps.h"

#include "engine/core/half.h"
#include "engine/core/pool.h"
#include "engine/core/simd.h"
#include "engine/cpu/product/fast_product.h"

#include <stdatomic.h>

enum {
    TAPS_PIECE = 8192, /* taps of a piece of the points */
    POINTS_MIN = 64,   /* of a piece, when there are as many */
    CORNERS = 4,       /* elements around a place in a plane */
    COLUMN_FLOATS = 1 << 16
};

static bool all_float(const ot_call *c, uint32_t n)
{
    for (uint32_t k = 0; k < n && k < c->n_in; k++)
        if (c->in[k] && c->in[k]->dtype != OT_F32) return false;
    return c->n_in > 0;
}

/* ---- GridSample ---- */

typedef struct grid_job {
    const ot_grid *g;
    const float *x, *grid;
    float *y;
    int64_t piece, pieces; /* points of a piece; pieces of an image */
    const ot_taps *taps;   /* [threads] */
} grid_job;

static void grid_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const grid_job *j = job;
    const ot_grid *g = j->g;
    const ot_sampler s = g->s;
    const ot_taps t = j->taps[worker];
    int64_t channels = g->dims[1];
    for (int64_t k = first; k < end; k++) {
        ot_sample_point places[OT_RANK_MAX];
        int64_t b = k / j->pieces, from = k % j->pieces * j->piece,
                n = ot_min(j->piece, g->out_n - from);
        const float *at = j->grid + (b * g->out_n + from) * s.n;
        for (int64_t p = 0; p < n; p++, at += s.n) {
            for (uint32_t a = 0; a < s.n; a++)
                ot_sample_locate(&s, a, ot_sample_position(&s, a, (double)at[s.n - 1 - a], false),
                                 &places[a]);
            ot_taps_put(&t, &s, places, p, 1);
        }
        for (int64_t ch = b * channels; ch < (b + 1) * channels; ch++)
            ot_taps_sum(&t, j->x + ch * g->in_n, j->y + ch * g->out_n + from, n);
    }
}

ot_status ot_fast_grid_sample(ot_call *c)
{
    ot_grid g;
    ot_taps taps[OT_POOL_THREADS_MAX];
    int32_t each = 1;
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_grid_sample, 0);
    if (!all_float(c, 2)) return ot_ref_grid_sample(c);
    OT_TRY(ot_grid_open(c, &g));
    if (g.s.n > 3 || g.in_n > INT32_MAX) return ot_ref_grid_sample(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, g.s.n + 2, g.dims));
    if (!ot_num_out(c, 0) || ot_num_count(c->out[0]) == 0) return OT_OK;
    for (uint32_t a = 0; a < g.s.n; a++)
        each *= g.s.mode == OT_SAMPLE_NEAREST ? 1 : g.s.mode == OT_SAMPLE_LINEAR ? 2 : 4;
    int threads = ot_rows_threads(c, (double)ot_num_count(c->out[0]) * each);
    grid_job j = {.g = &g, .x = c->in[0]->data, .grid = c->in[1]->data, .y = c->out[0]->data};
    j.piece = ot_min(g.out_n, ot_max(POINTS_MIN, TAPS_PIECE / each));
    j.pieces = ot_ceil_div(g.out_n, j.piece);
    j.taps = taps;
    OT_TRY(ot_taps_new(c, j.piece, each, (uint32_t)threads, taps));
    ot_pool_share((uint32_t)threads, g.dims[0] * j.pieces, 1, grid_share, &j);
    return OT_OK;
}

/* ---- AffineGrid ---- */

OT_CLONES static void affine_row(float *restrict y, const double *restrict from, double shift,
                                 int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++) y[i * step] = (float)(from[i] + shift);
}

/* Along the last axis a coordinate is a number of its own plus what the other axes add. */
ot_status ot_fast_affine_grid(ot_call *c)
{
    int64_t dims[OT_RANK_MAX];
    uint32_t axes;
    const ot_nd *theta = ot_num_in(c, 0);
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_affine_grid, 0);
    if (!theta || theta->dtype != OT_F32) return ot_ref_affine_grid(c);
    OT_TRY(ot_affine_open(c, &axes, dims));
    OT_TRY(ot_call_output(c, 0, OT_F32, axes + 2, dims));
    if (!ot_num_out(c, 0) || ot_num_count(c->out[0]) == 0) return OT_OK;
    bool align = ot_attr_int(c->node, "align_corners", 0) != 0;
    int64_t w = dims[axes], rows = ot_num_count(c->out[0]) / w / axes, each = rows / dims[0];
    double *line = ot_num_scratch(c, w, sizeof *line);
    if (!line) return OT_E_NOMEM;
    for (int64_t k = 0; k < dims[0] * axes; k++) {
        const float *t = (const float *)theta->data + k * (axes + 1);
        float *y = (float *)c->out[0]->data + k / axes * each * w * axes + k % axes;
        for (int64_t i = 0; i < w; i++)
            line[i] = (double)t[axes] + (double)t[0] * ot_affine_step(i, w, align);
        for (int64_t r = 0; r < each; r++, y += w * axes) {
            int64_t rest = r;
            double shift = 0;
            for (uint32_t a = 1; a < axes; a++) { /* theta names the last axis first */
                int64_t len = dims[axes - a];
                shift += (double)t[a] * ot_affine_step(rest % len, len, align);
                rest /= len;
            }
            affine_row(y, line, shift, w, axes);
        }
    }
    return OT_OK;
}

/* ---- DeformConv ---- */

typedef struct deform_job {
    const ot_deform *d;
    const float *x, *w, *offset, *bias, *mask; /* bias, mask: NULL when omitted */
    float *y;
    int64_t piece, pieces; /* positions at a time; pieces of an image */
    const ot_taps *taps;   /* [threads] */
    float *columns;        /* [threads][channels of a group, kernel][piece] */
    int64_t columns_step;
    atomic_bool failed;
} deform_job;

/* The taps of element k of the kernel in offset group `group`. */
static ot_taps taps_of(const deform_job *j, const ot_taps *all, int64_t group, int64_t k)
{
    int64_t at = (group * j->d->v.k_n + k) * CORNERS * all->points;
    return (ot_taps){all->points, CORNERS, all->index + at, all->weight + at};
}

/* All that is read for positions [from, from + n) of image b. */
static void find_taps(const deform_job *j, const ot_taps *all, int64_t b, int64_t from, int64_t n)
{
    const ot_deform *d = j->d;
    const ot_sampler s = ot_deform_sampler(d);
    int64_t out_n = d->v.out_n;
    for (int64_t e = 0; e < d->offset_group * d->v.k_n; e++) {
        int64_t k = e % d->v.k_n, at = b * d->offset_group * d->v.k_n + e;
        ot_taps t = taps_of(j, all, e / d->v.k_n, k);
        const float *dy = j->offset + 2 * at * out_n + from, *dx = dy + out_n,
                    *mask = j->mask ? j->mask + at * out_n + from : NULL;
        for (int64_t p = 0; p < n; p++) {
            ot_sample_point places[2];
            ot_deform_locate(d, &s, k, from + p, (double)dy[p], (double)dx[p], places);
            ot_taps_put(&t, &s, places, p, mask ? mask[p] : 1);
        }
    }
}

/* Maps of group g at positions [from, from + n) of image b. */
static bool run_group(const deform_job *j, const ot_taps *all, float *columns, int64_t b, int64_t g,
                      int64_t from, int64_t n)
{
    const ot_conv *v = &j->d->v;
    int64_t per = v->channels / v->group, maps = v->maps / v->group, depth = per * v->k_n,
            per_offset = v->channels / j->d->offset_group;
    for (int64_t r = 0; r < depth; r++) {
        int64_t ch = g * per + r / v->k_n;
        ot_taps t = taps_of(j, all, ch / per_offset, r % v->k_n);
        ot_taps_sum(&t, j->x + (b * v->channels + ch) * v->in_n, columns + r * j->piece, n);
    }
    float *y = j->y + (b * v->maps + g * maps) * v->out_n + from;
    for (int64_t m = 0; j->bias && m < maps; m++)
        for (int64_t p = 0; p < n; p++) y[m * v->out_n + p] = j->bias[g * maps + m];
    ot_product_job p = {
        .m = maps, .n = n, .k = depth, .ldc = v->out_n, .c = y, .alpha = 1, .add = j->bias != NULL};
    p.a = (ot_matrix){
        .data = j->w + g * maps * depth, .row_step = depth, .column_step = 1, .ld = depth};
    p.b = (ot_matrix){.data = columns, .row_step = j->piece, .column_step = 1, .ld = j->piece};
    return ot_product_run(&p) == OT_OK;
}

static void deform_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    deform_job *j = job;
    for (int64_t k = first; k < end; k++) {
        int64_t from = k % j->pieces * j->piece, n = ot_min(j->piece, j->d->v.out_n - from);
        find_taps(j, &j->taps[worker], k / j->pieces, from, n);
        for (int64_t g = 0; g < j->d->v.group; g++)
            if (!run_group(j, &j->taps[worker], j->columns + worker * j->columns_step,
                           k / j->pieces, g, from, n))
                j->failed = true;
    }
}

static const float *floats(const ot_call *c, uint32_t k)
{
    const ot_nd *a = ot_num_in(c, k);
    return a ? a->data : NULL;
}

ot_status ot_fast_deform_conv(ot_call *c)
{
    ot_deform d;
    ot_taps taps[OT_POOL_THREADS_MAX];
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_deform_conv, 0);
    if (!all_float(c, 5)) return ot_ref_deform_conv(c);
    OT_TRY(ot_deform_open(c, &d));
    const ot_conv *v = &d.v;
    int64_t dims[4] = {v->batch, v->maps, v->w.out[0], v->w.out[1]},
            depth = v->channels / v->group * v->k_n, taps_n, all;
    if (v->in_n > INT32_MAX || v->maps == 0) return ot_ref_deform_conv(c);
    if (!ot_mul_i64(d.offset_group * v->k_n, CORNERS, &taps_n) || taps_n > INT32_MAX)
        return ot_ref_deform_conv(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, 4, dims));
    if (!ot_num_out(c, 0) || ot_num_count(c->out[0]) == 0) return OT_OK;
    deform_job j = {.d = &d,
                    .x = floats(c, 0),
                    .w = floats(c, 1),
                    .offset = floats(c, 2),
                    .bias = floats(c, 3),
                    .mask = floats(c, 4),
                    .y = c->out[0]->data,
                    .taps = taps};
    int threads = ot_rows_threads(c, (double)ot_num_count(c->out[0]) * (double)depth);
    j.piece = ot_min(v->out_n,
                     ot_max(POINTS_MIN, COLUMN_FLOATS / ot_max(1, ot_max(depth, taps_n))));
    j.pieces = ot_ceil_div(v->out_n, j.piece);
    if (!ot_mul_i64(depth, j.piece, &j.columns_step) || !ot_mul_i64(j.columns_step, threads, &all))
        return OT_E_NOMEM;
    OT_TRY(ot_taps_new(c, j.piece, (int32_t)taps_n, (uint32_t)threads, taps));
    if (!(j.columns = ot_num_scratch(c, all, sizeof *j.columns))) return OT_E_NOMEM;
    ot_pool_share((uint32_t)threads, v->batch * j.pieces, 1, deform_share, &j);
    return j.failed ? ot_fail_nomem(c->diag) : OT_OK;
}
