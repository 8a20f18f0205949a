/* GridSample, AffineGrid, DeformConv: elements at places computed between the elements.
 *
 *   a place x along an axis:   . . o  x   o . .      one tap (nearest), two (linear) or four
 *                                                    (cubic), each an index and a weight
 *   several axes: every combination of their taps, weights multiplied; a tap outside the input
 *   counts as zero, or is moved inside (ref_sample.h)
 */
#include "ref_sample.h"

static double sample(const ot_sampler *s, const double *plane, const ot_sample_point *places)
{
    int64_t counts[OT_RANK_MAX], at[OT_RANK_MAX] = {0};
    double sum = 0;
    for (uint32_t a = 0; a < s->n; a++) counts[a] = places[a].n;
    do {
        double weight = 1;
        int64_t from = 0;
        bool inside = true;
        for (uint32_t a = 0; a < s->n; a++) {
            int64_t index = places[a].index[at[a]];
            inside = inside && index >= 0;
            weight *= places[a].weight[at[a]];
            from = from * s->in[a] + index;
        }
        if (inside && weight != 0) sum += weight * plane[from];
    } while (ot_num_next(s->n, counts, at));
    return sum;
}

/* ---- GridSample ---- */

static ot_status read_sampler(ot_call *c, ot_sampler *s)
{
    const char *m = ot_attr_str(c->node, "mode", "linear"),
               *p = ot_attr_str(c->node, "padding_mode", "zeros");
    if (strcmp(m, "nearest") == 0)
        s->mode = OT_SAMPLE_NEAREST;
    else if (strcmp(m, "linear") == 0 || strcmp(m, "bilinear") == 0)
        s->mode = OT_SAMPLE_LINEAR;
    else if (strcmp(m, "cubic") == 0 || strcmp(m, "bicubic") == 0)
        s->mode = OT_SAMPLE_CUBIC;
    else
        return ot_call_fail(c, "mode '%s' is unknown", m);
    if (strcmp(p, "zeros") == 0)
        s->padding = OT_SAMPLE_ZEROS;
    else if (strcmp(p, "border") == 0)
        s->padding = OT_SAMPLE_BORDER;
    else if (strcmp(p, "reflection") == 0)
        s->padding = OT_SAMPLE_REFLECTION;
    else
        return ot_call_fail(c, "padding_mode '%s' is unknown", p);
    s->align_corners = ot_attr_int(c->node, "align_corners", 0) != 0;
    return OT_OK;
}

ot_status ot_grid_open(ot_call *c, ot_grid *g)
{
    ot_sampler *s = &g->s;
    *g = (ot_grid){0};
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_ALL));
    OT_TRY(ot_num_type(c, 1, OT_NUM_FLOATS));
    OT_TRY(read_sampler(c, s));
    const ot_nd *x = c->in[0], *grid = c->in[1];
    if (x->rank < 3 || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[x->rank - 1] != x->rank - 2)
        return ot_call_fail(c, "the grid does not fit the input of rank %u", x->rank);
    s->n = x->rank - 2;
    memcpy(s->in, x->dims + 2, s->n * sizeof *s->in);
    memcpy(g->dims, x->dims, 2 * sizeof *g->dims);
    memcpy(g->dims + 2, grid->dims + 1, s->n * sizeof *g->dims);
    if (!ot_product(s->in, s->n, &g->in_n) || !ot_product(g->dims + 2, s->n, &g->out_n))
        return ot_call_fail(c, "the size overflows");
    if (g->in_n == 0 && g->out_n > 0) return ot_call_fail(c, "the input has no elements to sample");
    return OT_OK;
}

ot_status ot_ref_grid_sample(ot_call *c)
{
    ot_grid g;
    ot_sample_point places[OT_RANK_MAX];
    int64_t n;
    OT_TRY(ot_grid_open(c, &g));
    const ot_sampler *s = &g.s;
    const ot_nd *x = c->in[0], *grid = c->in[1];
    double *v = ot_num_doubles(c, x),
           *y = v ? ot_num_scratch(c, ot_product(g.dims, x->rank, &n) ? n : -1, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    for (int64_t b = 0; b < g.dims[0]; b++) {
        for (int64_t p = 0; p < g.out_n; p++) {
            for (uint32_t a = 0; a < s->n; a++) { /* the grid names the last axis first */
                double at = ot_nd_double(grid, (b * g.out_n + p) * s->n + (s->n - 1 - a));
                ot_sample_locate(s, a, ot_sample_position(s, a, at, grid->dtype == OT_F64),
                                 &places[a]);
            }
            for (int64_t ch = 0; ch < g.dims[1]; ch++) {
                int64_t plane = b * g.dims[1] + ch;
                y[plane * g.out_n + p] = sample(s, v + plane * g.in_n, places);
            }
        }
    }
    return ot_num_output(c, 0, x->dtype, x->rank, g.dims, y);
}

/* ---- AffineGrid: theta [N, n, n + 1], size [N, C, D1 ... Dn] -> grid [N, D1 ... Dn, n] ---- */

ot_status ot_affine_open(ot_call *c, uint32_t *axes, int64_t *dims)
{
    int64_t n;
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_BIT(OT_I64)));
    OT_TRY(ot_num_rank(c, 1, 1));
    const ot_nd *size = c->in[1];
    if (size->dims[0] != 4 && size->dims[0] != 5)
        return ot_call_fail(c, "size has %lld values, must have 4 or 5", (long long)size->dims[0]);
    *axes = (uint32_t)size->dims[0] - 2;
    dims[0] = ot_nd_int(size, 0);
    for (uint32_t a = 0; a < *axes; a++) dims[1 + a] = ot_nd_int(size, 2 + a);
    dims[*axes + 1] = *axes;
    if (!ot_product(dims, *axes + 2, &n)) return ot_call_fail(c, "size is out of range");
    int64_t want[3] = {dims[0], *axes, *axes + 1};
    return ot_num_dims(c, 0, 3, want);
}

ot_status ot_ref_affine_grid(ot_call *c)
{
    int64_t dims[OT_RANK_MAX], pos[OT_RANK_MAX] = {0}, n, points;
    uint32_t axes;
    bool align = ot_attr_int(c->node, "align_corners", 0) != 0;
    OT_TRY(ot_affine_open(c, &axes, dims));
    const ot_nd *theta = c->in[0];
    if (!ot_product(dims, axes + 2, &n) || !ot_product(dims + 1, axes, &points))
        return ot_call_fail(c, "size is out of range");
    double *y = ot_num_scratch(c, n, sizeof *y);
    if (!y) return OT_E_NOMEM;
    for (int64_t p = 0; n > 0 && p < dims[0] * points;
         p++, (void)ot_num_next(axes, dims + 1, pos)) {
        for (uint32_t row = 0; row < axes; row++) {
            int64_t at = (p / points * axes + row) * (axes + 1);
            double sum = ot_nd_double(theta, at + axes);
            for (uint32_t a = 0; a < axes; a++) /* theta names the last axis first */
                sum += ot_nd_double(theta, at + a) *
                       ot_affine_step(pos[axes - 1 - a], dims[axes - a], align);
            y[p * axes + row] = sum;
        }
    }
    return ot_num_output(c, 0, theta->dtype, axes + 2, dims, y);
}

/* ---- DeformConv: a convolution whose taps are moved by `offset` and weighed by `mask` ---- */

ot_status ot_deform_open(ot_call *c, ot_deform *d)
{
    int64_t dims[4];
    OT_TRY(ot_call_need(c, 3));
    for (uint32_t k = 0; k < 5; k++) {
        OT_TRY(ot_num_type(c, k, OT_NUM_FLOATS));
        OT_TRY(ot_num_same_type(c, k, 0));
    }
    OT_TRY(ot_num_rank(c, 0, 4));
    OT_TRY(ot_conv_open(c, 0, 1, &d->v));
    d->offset_group = ot_attr_int(c->node, "offset_group", 1);
    if (d->offset_group < 1 || d->v.channels % d->offset_group != 0)
        return ot_call_fail(c, "offset_group %lld does not divide %lld channels",
                            (long long)d->offset_group, (long long)d->v.channels);
    dims[0] = d->v.batch;
    memcpy(dims + 2, d->v.w.out, 2 * sizeof *dims);
    if (!ot_mul_i64(d->offset_group, d->v.k_n, &dims[1]) || dims[1] > INT64_MAX / 2)
        return ot_call_fail(c, "offset_group is too large");
    OT_TRY(ot_num_dims(c, 4, 4, dims));
    dims[1] *= 2;
    OT_TRY(ot_num_dims(c, 2, 4, dims));
    OT_TRY(ot_num_dims(c, 3, 1, &d->v.maps));
    if (d->v.in_n == 0) return ot_call_fail(c, "the input has no elements to sample");
    return OT_OK;
}

/* The arrays as doubles. */
typedef struct deform_numbers {
    const double *x, *wt, *offset, *mask;
} deform_numbers;

/* What tap k of output position p of image n reads in channel ch. */
static double deformed(const ot_deform *d, const deform_numbers *v, int64_t n, int64_t ch,
                       int64_t k, int64_t p)
{
    int64_t group = ch / (d->v.channels / d->offset_group),
            at = (n * d->offset_group + group) * d->v.k_n + k;
    ot_sampler s = ot_deform_sampler(d);
    ot_sample_point places[2];
    ot_deform_locate(d, &s, k, p, v->offset[2 * at * d->v.out_n + p],
                     v->offset[(2 * at + 1) * d->v.out_n + p], places);
    double e = sample(&s, v->x + (n * d->v.channels + ch) * d->v.in_n, places);
    return v->mask ? e * v->mask[at * d->v.out_n + p] : e;
}

ot_status ot_ref_deform_conv(ot_call *c)
{
    ot_deform d;
    deform_numbers f = {0};
    OT_TRY(ot_deform_open(c, &d));
    const ot_conv *v = &d.v;
    const ot_nd *b = ot_num_in(c, 3), *mask = ot_num_in(c, 4);
    if (!(f.x = ot_num_doubles(c, c->in[0])) || !(f.wt = ot_num_doubles(c, c->in[1])) ||
        !(f.offset = ot_num_doubles(c, c->in[2])) || (mask && !(f.mask = ot_num_doubles(c, mask))))
        return OT_E_NOMEM;
    int64_t dims[4] = {v->batch, v->maps, v->w.out[0], v->w.out[1]}, n,
            per = v->channels / v->group;
    double *y = ot_num_scratch(c, ot_product(dims, 4, &n) ? n : -1, sizeof *y);
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        int64_t p = i % v->out_n, m = i / v->out_n % v->maps, image = i / v->out_n / v->maps;
        y[i] = b ? ot_nd_double(b, m) : 0;
        for (int64_t ch = 0; ch < per; ch++)
            for (int64_t k = 0; k < v->k_n; k++)
                y[i] += f.wt[(m * per + ch) * v->k_n + k] *
                        deformed(&d, &f, image, m / (v->maps / v->group) * per + ch, k, p);
    }
    return ot_num_output(c, 0, c->in[0]->dtype, 4, dims, y);
}
