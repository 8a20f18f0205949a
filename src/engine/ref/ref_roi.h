/* RoiAlign: where the samples of a bin lie; MaxRoiPool: which elements a bin has. One rule for the
 * reference and the fast implementation. */
#ifndef OT_ENGINE_REF_REF_ROI_H
#define OT_ENGINE_REF_REF_ROI_H

#include "ref_window.h"

#include <math.h>

/* A grid of bins over a region. */
typedef struct ot_roi_bins {
    int64_t image;
    double top, left, height, width; /* of the first bin: corner and size, in elements */
    int64_t rows, columns;           /* samples in a bin */
    bool max;                        /* the largest of all weighted neighbours, not their mean */
} ot_roi_bins;

/* Inputs (checked) and attributes of a RoiAlign: dims of its output, bins[regions] in scratch. */
ot_status ot_roi_align_open(ot_call *c, int64_t dims[4], ot_roi_bins **bins) OT_MUST_USE;

typedef struct ot_roi_sample {
    bool inside;      /* else it is 0 */
    int64_t index[4]; /* of an element of the plane; 0 outside */
    double weight[4];
} ot_roi_sample;

/* Sample k of a bin, of a plane of h x w elements. */
static inline ot_roi_sample ot_roi_sample_at(const ot_roi_bins *b, int64_t h, int64_t w,
                                             int64_t row, int64_t column, int64_t k)
{
    ot_roi_sample s = {0};
    double i = (double)(k / b->columns), j = (double)(k % b->columns);
    double y = b->top + (double)row * b->height + (i + 0.5) * b->height / (double)b->rows,
           x = b->left + (double)column * b->width + (j + 0.5) * b->width / (double)b->columns;
    if (!(y >= -1 && y <= (double)h && x >= -1 && x <= (double)w)) return s;
    y = fmax(y, 0);
    x = fmax(x, 0);
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= h - 1) y0 = y1 = h - 1, y = (double)y0;
    if (x0 >= w - 1) x0 = x1 = w - 1, x = (double)x0;
    double fy = y - (double)y0, fx = x - (double)x0;
    return (ot_roi_sample){.inside = true,
                           .index = {y0 * w + x0, y0 * w + x1, y1 * w + x0, y1 * w + x1},
                           .weight = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx}};
}

/* A region of MaxRoiPool. */
typedef struct ot_roi_area {
    int64_t image;
    float edge[4]; /* left, top, right, bottom: whole numbers */
} ot_roi_area;

/* Inputs (checked) and attributes of a MaxRoiPool: dims of its output, areas[regions] in scratch.
 */
ot_status ot_max_roi_open(ot_call *c, int64_t dims[4], ot_roi_area **areas) OT_MUST_USE;

/* Elements [*lo, *hi) of an axis of `len` in bin k of `bins` over [start, end]. The size of a bin
 * is a float32, as in other implementations: where bins meet at whole numbers, rounding decides. */
static inline void ot_roi_range(float start, float end, int64_t bins, int64_t k, int64_t len,
                                int64_t *lo, int64_t *hi)
{
    float size = fmaxf(end - start + 1, 1) / (float)bins;
    float first = floorf((float)k * size) + start, last = ceilf((float)(k + 1) * size) + start;
    *lo = !(first > 0) ? 0 : first < (float)len ? (int64_t)first : len;
    *hi = !(last > 0) ? 0 : last < (float)len ? (int64_t)last : len;
}

#endif
