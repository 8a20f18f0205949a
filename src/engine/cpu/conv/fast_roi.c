/* RoiAlign of float32: the samples of a region's bins are found once for all channels; MaxRoiPool
 * likewise, columns first.
 *
 *   region --> bins --> taps [4 * samples of a bin][bins] --> each channel: their sum, or the
 *   largest
 *
 * Threads take regions. Large planes, bins of very many samples and other types go to the
 * reference.
 */
#include "fast_conv.h"
#include "sample_taps.h"

#include "engine/core/half.h"
#include "engine/core/pool.h"
#include "engine/cpu/rows/rows.h"
#include "engine/ref/ref_roi.h"

enum { TAPS_PIECE = 8192, TAPS_MAX = 1 << 20 /* of a bin */ };

typedef struct roi_job {
    const ot_roi_bins *bins;
    const float *x;
    float *y;
    int64_t h, w, channels, out_n, out_w;
    const ot_taps *taps; /* [threads] with room for the most taps that a bin has */
} roi_job;

/* Taps of bins [from, from + n) of a region. */
static void find_taps(const roi_job *j, const ot_roi_bins *b, const ot_taps *t, int64_t from,
                      int64_t n)
{
    int64_t samples = b->rows * b->columns;
    double share = b->max ? 1 : 1.0 / (double)ot_max(1, samples);
    for (int64_t p = 0; p < n; p++)
        for (int64_t k = 0; k < samples; k++) {
            ot_roi_sample s = ot_roi_sample_at(b, j->h, j->w, (from + p) / j->out_w,
                                               (from + p) % j->out_w, k);
            for (int64_t e = 0; e < 4; e++) {
                int64_t at = (4 * k + e) * t->points + p;
                t->index[at] = (int32_t)s.index[e];
                t->weight[at] = (float)(s.weight[e] * share);
            }
        }
}

static void roi_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const roi_job *j = job;
    for (int64_t r = first; r < end; r++) {
        const ot_roi_bins *b = &j->bins[r];
        ot_taps t = j->taps[worker];
        int64_t room = t.points * t.taps;
        t.taps = (int32_t)(4 * b->rows * b->columns);
        t.points = ot_min(j->out_n, t.taps > 0 ? room / t.taps : j->out_n);
        for (int64_t from = 0; from < j->out_n; from += t.points) {
            int64_t n = ot_min(t.points, j->out_n - from);
            find_taps(j, b, &t, from, n);
            for (int64_t ch = 0; ch < j->channels; ch++)
                (b->max ? ot_taps_most
                        : ot_taps_sum)(&t, j->x + (b->image * j->channels + ch) * j->h * j->w,
                                       j->y + (r * j->channels + ch) * j->out_n + from, n);
        }
    }
}

ot_status ot_fast_roi_align(ot_call *c)
{
    int64_t dims[4], most = 1;
    ot_roi_bins *bins;
    ot_taps taps[OT_POOL_THREADS_MAX];
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_roi_align, 0);
    if (c->n_in < 2 || !c->in[0] || c->in[0]->dtype != OT_F32) return ot_ref_roi_align(c);
    OT_TRY(ot_roi_align_open(c, dims, &bins));
    const ot_nd *x = c->in[0];
    for (int64_t r = 0; r < dims[0]; r++) most = ot_max(most, bins[r].rows * bins[r].columns);
    if (most > TAPS_MAX / 4 || x->dims[2] > INT32_MAX / ot_max(1, x->dims[3]))
        return ot_ref_roi_align(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, 4, dims));
    if (!ot_num_out(c, 0) || ot_num_count(c->out[0]) == 0) return OT_OK;
    roi_job j = {.bins = bins,
                 .x = x->data,
                 .y = c->out[0]->data,
                 .h = x->dims[2],
                 .w = x->dims[3],
                 .channels = dims[1],
                 .out_n = dims[2] * dims[3],
                 .out_w = dims[3],
                 .taps = taps};
    int threads = ot_rows_threads(c, 4.0 * (double)most * (double)ot_num_count(c->out[0]));
    int64_t points = ot_min(j.out_n, ot_max(1, TAPS_PIECE / (4 * most)));
    OT_TRY(ot_taps_new(c, points, (int32_t)(4 * most), (uint32_t)threads, taps));
    ot_pool_share_each((uint32_t)threads, dims[0], roi_share, &j);
    return OT_OK;
}

/* ---- MaxRoiPool ---- */

typedef struct max_roi_job {
    const ot_roi_area *areas;
    const float *x;
    float *y, *lines; /* [threads][w] */
    int64_t h, w, channels, rows, columns;
    int64_t *ranges; /* [threads][columns][2] */
} max_roi_job;

OT_CLONES static void largest(float *restrict y, const float *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
}

/* One row of bins of a plane: the largest of each column, then of the columns of a bin. */
static void max_roi_row(const max_roi_job *j, const float *plane, int64_t y0, int64_t y1,
                        const int64_t *ranges, float *line, float *to)
{
    int64_t x0 = ranges[0], x1 = ranges[2 * j->columns - 1];
    if (y0 < y1 && x0 < x1)
        memcpy(line + x0, plane + y0 * j->w + x0, (size_t)(x1 - x0) * sizeof *line);
    for (int64_t r = y0 + 1; r < y1 && x0 < x1; r++)
        largest(line + x0, plane + r * j->w + x0, x1 - x0);
    for (int64_t k = 0; k < j->columns; k++) {
        int64_t lo = ranges[2 * k], hi = ranges[2 * k + 1];
        float most = y0 < y1 && lo < hi ? line[lo] : 0;
        for (int64_t i = lo + 1; y0 < y1 && i < hi; i++) most = line[i] > most ? line[i] : most;
        to[k] = most;
    }
}

static void max_roi_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const max_roi_job *j = job;
    int64_t *ranges = j->ranges + worker * 2 * j->columns;
    for (int64_t r = first; r < end; r++) {
        const ot_roi_area *a = &j->areas[r];
        for (int64_t k = 0; k < j->columns; k++)
            ot_roi_range(a->edge[0], a->edge[2], j->columns, k, j->w, &ranges[2 * k],
                         &ranges[2 * k + 1]);
        for (int64_t p = 0; p < j->channels * j->rows; p++) {
            int64_t ch = p / j->rows, y0, y1;
            ot_roi_range(a->edge[1], a->edge[3], j->rows, p % j->rows, j->h, &y0, &y1);
            max_roi_row(j, j->x + (a->image * j->channels + ch) * j->h * j->w, y0, y1, ranges,
                        j->lines + worker * j->w,
                        j->y + (r * j->channels * j->rows + p) * j->columns);
        }
    }
}

ot_status ot_fast_max_roi_pool(ot_call *c)
{
    int64_t dims[4], most;
    ot_roi_area *areas;
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_max_roi_pool, 0);
    if (c->n_in < 2 || !c->in[0] || c->in[0]->dtype != OT_F32) return ot_ref_max_roi_pool(c);
    OT_TRY(ot_max_roi_open(c, dims, &areas));
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, OT_F32, 4, dims));
    if (!ot_num_out(c, 0) || ot_num_count(c->out[0]) == 0) return OT_OK;
    max_roi_job j = {.areas = areas,
                     .x = x->data,
                     .y = c->out[0]->data,
                     .h = x->dims[2],
                     .w = x->dims[3],
                     .channels = dims[1],
                     .rows = dims[2],
                     .columns = dims[3]};
    int threads = ot_rows_threads(c, 4.0 * (double)ot_num_count(c->out[0]));
    j.lines = ot_num_scratch(c, ot_mul_i64(threads, j.w, &most) ? most : -1, sizeof *j.lines);
    j.ranges = j.lines ? ot_num_scratch(c, 2 * threads * j.columns, sizeof *j.ranges) : NULL;
    if (!j.ranges) return OT_E_NOMEM;
    ot_pool_share_each((uint32_t)threads, dims[0], max_roi_share, &j);
    return OT_OK;
}
