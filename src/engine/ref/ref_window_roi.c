/* RoiAlign and MaxRoiPool: a fixed grid of bins over each region of interest.
 *
 *   +---------+---------+     RoiAlign: samples at regular places inside a bin, interpolated,
 *                             averaged (or their maximum)
 *   | x  x  x | x  x  x |     MaxRoiPool: the largest element whose place lies in the (rounded) bin
 *   | x  x  x | x  x  x |
 *   +---------+---------+
 */
#include "ref_roi.h"

#define SAMPLES_MAX 4096.0 /* along one side of a bin */

static double bin_value(const ot_roi_bins *b, const double *plane, int64_t h, int64_t w,
                        int64_t row, int64_t column)
{
    double sum = 0, most = 0;
    for (int64_t k = 0; k < b->rows * b->columns; k++) {
        double v = 0, largest = 0;
        ot_roi_sample s = ot_roi_sample_at(b, h, w, row, column, k);
        for (int t = 0; t < 4; t++) {
            double e = s.weight[t] * plane[s.index[t]];
            v += e;
            largest = t == 0 ? e : fmax(largest, e);
        }
        if (!s.inside) v = largest = 0;
        sum += v;
        most = k == 0 || largest > most ? largest : most;
    }
    return b->max ? most : sum / (double)ot_max(1, b->rows * b->columns);
}

/* The bins of region r. */
static ot_status place_bins(ot_call *c, int64_t r, const int64_t dims[4], ot_roi_bins *b)
{
    double scale = (double)ot_attr_float(c->node, "spatial_scale", 1), edge[4];
    bool old = c->node->version != 0 && c->node->version < 16;
    const char *mode = ot_attr_str(c->node, "mode", "avg");
    const char *transform = ot_attr_str(c->node, "coordinate_transformation_mode",
                                        old ? "output_half_pixel" : "half_pixel");
    int64_t ratio = ot_attr_int(c->node, "sampling_ratio", 0);
    bool half = strcmp(transform, "half_pixel") == 0;
    b->max = strcmp(mode, "max") == 0;
    if (!b->max && strcmp(mode, "avg") != 0) return ot_call_fail(c, "mode '%s' is unknown", mode);
    if (!half && strcmp(transform, "output_half_pixel") != 0)
        return ot_call_fail(c, "coordinate_transformation_mode '%s' is unknown", transform);
    for (int k = 0; k < 4; k++)
        edge[k] = ot_nd_double(c->in[1], r * 4 + k) * scale -
                  (half ? 0.5 : 0); /* left, top, right, bottom */
    b->left = edge[0];
    b->top = edge[1];
    b->width = (half ? edge[2] - edge[0] : fmax(edge[2] - edge[0], 1)) / (double)dims[3];
    b->height = (half ? edge[3] - edge[1] : fmax(edge[3] - edge[1], 1)) / (double)dims[2];
    double rows = ratio > 0 ? (double)ratio : ceil(b->height),
           columns = ratio > 0 ? (double)ratio : ceil(b->width);
    if (!(rows <= SAMPLES_MAX && columns <= SAMPLES_MAX))
        return ot_call_fail(c, "region %lld needs too many samples", (long long)r);
    b->rows = rows > 0 ? (int64_t)rows : 0;
    b->columns = columns > 0 ? (int64_t)columns : 0;
    return OT_OK;
}

ot_status ot_roi_align_open(ot_call *c, int64_t dims[4], ot_roi_bins **bins)
{
    int64_t out_h = ot_attr_int(c->node, "output_height", 1),
            out_w = ot_attr_int(c->node, "output_width", 1), n;
    OT_TRY(ot_call_need(c, 3));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 2, OT_NUM_BIT(OT_I64)));
    OT_TRY(ot_num_rank(c, 0, 4));
    OT_TRY(ot_num_rank(c, 2, 1));
    const ot_nd *x = c->in[0], *batch = c->in[2];
    int64_t rois[2] = {batch->dims[0], 4};
    memcpy(dims, (int64_t[]){batch->dims[0], x->dims[1], out_h, out_w}, 4 * sizeof *dims);
    OT_TRY(ot_num_dims(c, 1, 2, rois));
    if (out_h < 1 || out_w < 1)
        return ot_call_fail(c, "output size %lld x %lld is not positive", (long long)out_h,
                            (long long)out_w);
    if ((x->dims[2] == 0 || x->dims[3] == 0) && dims[0] > 0)
        return ot_call_fail(c, "the input has no elements");
    if (!ot_product(dims, 4, &n)) return ot_call_fail(c, "the size overflows");
    if (!(*bins = ot_num_scratch(c, dims[0], sizeof **bins))) return OT_E_NOMEM;
    for (int64_t r = 0; n > 0 && r < dims[0]; r++) {
        ot_roi_bins *b = &(*bins)[r];
        b->image = ot_nd_int(batch, r);
        if (b->image < 0 || b->image >= x->dims[0])
            return ot_call_fail(c, "batch index %lld is out of range", (long long)b->image);
        OT_TRY(place_bins(c, r, dims, b));
    }
    return OT_OK;
}

ot_status ot_ref_roi_align(ot_call *c)
{
    int64_t dims[4], n;
    ot_roi_bins *bins;
    OT_TRY(ot_roi_align_open(c, dims, &bins));
    const ot_nd *x = c->in[0];
    int64_t h = x->dims[2], w = x->dims[3], size = dims[1] * dims[2] * dims[3];
    double *v = ot_num_doubles(c, x),
           *y = v ? ot_num_scratch(c, ot_product(dims, 4, &n) ? n : -1, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        const ot_roi_bins *b = &bins[i / size];
        int64_t ch = i / (dims[2] * dims[3]) % dims[1];
        y[i] = bin_value(b, v + (b->image * dims[1] + ch) * h * w, h, w, i / dims[3] % dims[2],
                         i % dims[3]);
    }
    return ot_num_output(c, 0, x->dtype, 4, dims, y);
}

/* ---- MaxRoiPool: rois [R, 5], each the image and the corners ---- */

ot_status ot_max_roi_open(ot_call *c, int64_t dims[4], ot_roi_area **areas)
{
    size_t n_shape = 0;
    const int64_t *shape = ot_attr_ints(c->node, "pooled_shape", &n_shape);
    float scale = ot_attr_float(c->node, "spatial_scale", 1);
    OT_TRY(ot_call_need(c, 2));
    OT_TRY(ot_num_type(c, 0, OT_NUM_FLOATS));
    OT_TRY(ot_num_type(c, 1, OT_NUM_FLOATS));
    OT_TRY(ot_num_rank(c, 0, 4));
    OT_TRY(ot_num_rank(c, 1, 2));
    const ot_nd *x = c->in[0], *rois = c->in[1];
    if (!shape || n_shape != 2 || shape[0] < 1 || shape[1] < 1)
        return ot_call_fail(c, "pooled_shape must have two positive values");
    if (rois->dims[1] != 5)
        return ot_call_fail(c, "rois have %lld columns, must have 5", (long long)rois->dims[1]);
    memcpy(dims, (int64_t[]){rois->dims[0], x->dims[1], shape[0], shape[1]}, 4 * sizeof *dims);
    if (!(*areas = ot_num_scratch(c, dims[0], sizeof **areas))) return OT_E_NOMEM;
    for (int64_t r = 0; r < dims[0]; r++) {
        double image = ot_nd_double(rois, r * 5);
        if (!(image >= 0 && image < (double)x->dims[0]))
            return ot_call_fail(c, "image number %g is out of range", image);
        (*areas)[r].image = (int64_t)image;
        for (int k = 0; k < 4; k++)
            (*areas)[r].edge[k] = roundf((float)ot_nd_double(rois, r * 5 + 1 + k) * scale);
    }
    return OT_OK;
}

ot_status ot_ref_max_roi_pool(ot_call *c)
{
    int64_t n, dims[4];
    ot_roi_area *areas;
    OT_TRY(ot_max_roi_open(c, dims, &areas));
    const ot_nd *x = c->in[0];
    int64_t h = x->dims[2], w = x->dims[3];
    double *v = ot_num_doubles(c, x),
           *y = v ? ot_num_scratch(c, ot_product(dims, 4, &n) ? n : -1, sizeof *y) : NULL;
    if (!y) return OT_E_NOMEM;
    for (int64_t i = 0; i < n; i++) {
        int64_t column = i % dims[3], row = i / dims[3] % dims[2], ch = i / dims[3] / dims[2], y0,
                y1, x0, x1;
        const ot_roi_area *r = &areas[ch / dims[1]];
        ot_roi_range(r->edge[1], r->edge[3], dims[2], row, h, &y0, &y1);
        ot_roi_range(r->edge[0], r->edge[2], dims[3], column, w, &x0, &x1);
        const double *plane = v + (r->image * dims[1] + ch % dims[1]) * h * w;
        bool first = true;
        for (int64_t a = y0; a < y1; a++)
            for (int64_t b = x0; b < x1; b++, first = false)
                if (first || plane[a * w + b] > y[i]) y[i] = plane[a * w + b];
    }
    return ot_num_output(c, 0, x->dtype, 4, dims, y);
}
