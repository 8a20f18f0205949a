/* What an output form adds to the node times: taking windows, stitching pieces, loop and operator overhead.
 *
 *   form        window in           piece out                           peak of the outputs
 *   scan        slice of the outer  slice of the outer tensor           1 x
 *   unrolled    Slice copy          Concat copy                         2 x (all pieces, then the result), and tiles
 *                                                                       that fragment the outer graph's memory
 *   loop-peeled Slice copy          sequence of pieces, Concat          2 x
 *   loop-window Slice copy + crop   scan output, Transpose              2 x, or 1 x when tiles are contiguous
 *
 * Scratchpad targets run the While/Slice/Deslice form (no stitching): transfers in and out, overlapped with
 * compute where the target double-buffers.
 *
 * So does the engine on a cached machine. There a core works on one tile at a time, in a fast memory of its own:
 *
 *     core 0   t0 t2 t4 t6 t8      time: that of the core with the most tiles; caches bring windows and take pieces
 *     core 1   t1 t3 t5 t7         while it computes, through a slow memory that all cores share
 */
#include "cost.h"

#include <math.h>

#define RUN_SECONDS 80e-9 /* a strided copy, for each contiguous run (measured: Slice of narrow tiles) */

bool ot_weights_stay(const ot_target *t, const ot_totals *x)
{
    return !(x->how & OT_FIT_STREAM) && ((double)x->ws + x->weights <= (double)t->fast_bytes || x->tiles <= 1);
}

static double level_time(const ot_target *t, const ot_totals *x)
{
    if ((double)x->ws <= (double)t->fast_bytes) return x->t_fast;
    /* The middle level is judged by one tensor at a time, as for untiled nodes; about half of what is live. */
    double half = (double)x->ws / 2, mid = (double)t->mid_bytes, fast = (double)t->fast_bytes;
    if (t->engine && t->cores > 1) half *= t->cores; /* tiles in flight share the middle level */
    if (mid <= fast || half > mid) return x->t_slow;
    /* A shared cache fades out, it does not end: from its own time towards that of slow memory. */
    double fill = half <= fast ? 0 : (half - fast) / (mid - fast);
    return x->t_mid + fill * fill * (x->t_slow - x->t_mid);
}

bool ot_overlaps(const ot_target *t, const ot_totals *x) { return !t->is_cache && t->double_buffer && !(x->how & OT_FIT_SINGLE); }

int64_t ot_double_buffers(const ot_target *t, const ot_totals *x)
{
    return ot_overlaps(t, x) ? (int64_t)((x->in_bytes + x->out_bytes) / x->tiles) : 0;
}

/* The busiest core's share of the tiles, against an even one. */
static double imbalance(const ot_target *t, double tiles)
{
    double cores = t->cores > 1 ? t->cores : 1;
    return ceil(tiles / cores) * cores / tiles;
}

/* Rows of a window that are cut short are read by themselves, and end in registers that are filled in part. */
#define ENGINE_RUN_SECONDS 5e-9
#define ENGINE_ROW_LOSS    4 /* elements of each row */

static void engine_cost(const ot_target *t, const ot_totals *x, double *time, double *traffic, int64_t *stitch_peak)
{
    bool resident = ot_weights_stay(t, x);
    double cores = t->cores > 1 ? t->cores : 1, workers = x->tiles < cores ? x->tiles : cores, uneven = imbalance(t, x->tiles);
    double weight_seconds = x->weights / t->bw_slow;
    if (!resident) weight_seconds += x->weights * (x->tiles - workers) / ot_cost_bw(t, x->weights);
    /* Windows of convolutions are packed into channel blocks, results unpacked: read on one side, written on the other, at about
     * the rate of slow memory (measured: 8 to 9 GB/s where that gives 18). What is not blocked is made in its place. */
    double compute = level_time(t, x) + x->border_tile / t->bw_slow + x->runs * ENGINE_RUN_SECONDS / cores;
    if (x->row > 0) compute *= 1 + (double)ENGINE_ROW_LOSS / (double)x->row;
    double overhead = (x->nodes * t->node_overhead + x->tiles * t->loop_overhead) / cores;
    *time = ot_cost_overlap(t, (compute + overhead) * uneven, x->in_seconds + x->out_seconds + weight_seconds) + t->region_overhead;
    *traffic = x->in_slow + x->out_bytes + (resident || x->weights <= (double)t->mid_bytes ? x->weights : x->weights * x->tiles);
    *stitch_peak = (int64_t)(x->out_kept + (workers - 1) * (double)x->ws);
}

void ot_form_cost(const ot_target *t, const ot_totals *x, ot_form form, double *time, double *traffic, int64_t *stitch_peak)
{
    if (t->engine && t->is_cache) {
        engine_cost(t, x, time, traffic, stitch_peak);
        return;
    }
    bool resident = ot_weights_stay(t, x);
    double compute = level_time(t, x);
    double weight_reads = resident ? x->weights : x->weights * x->tiles;
    double weight_bw = resident || !t->is_cache ? t->bw_slow : ot_cost_bw(t, x->weights);
    double weight_time = weight_reads / weight_bw;
    /* Kernels on a cache fetch constants while they compute; what is left to see is a part of it. */
    if (t->is_cache && x->weights <= (double)t->mid_bytes) weight_time *= 0.3;
    double weight_traffic = weight_bw <= t->bw_slow ? weight_reads : x->weights;
    double out_bw = ot_cost_bw(t, x->out_bytes), in_bw = ot_cost_bw(t, (double)x->ws);
    double overhead = t->region_overhead;
    /* Short runs fill their last granule in part: half of it on average. */
    double padding = t->is_cache ? 0 : x->runs * (double)t->granule / 2;
    double transfers = (x->in_slow + padding) / t->bw_slow + x->out_bytes / out_bw + weight_time;
    double stitch = 0;
    *stitch_peak = (int64_t)x->out_bytes;
    if (!t->is_cache) {
        overhead += x->nodes * t->node_overhead + x->tiles * t->loop_overhead;
        double longer = transfers < compute ? compute : transfers;
        *time = (ot_overlaps(t, x) ? longer : compute + transfers) + overhead;
    } else {
        double copies = x->in_bytes / in_bw + x->runs * RUN_SECONDS;
        if (x->n_dims > 1 && x->halo && form == OT_FORM_PEELED) stitch += 2 * x->out_bytes / out_bw;
        overhead += x->border_tile / in_bw + x->border_whole / out_bw;
        switch (form) {
        case OT_FORM_SCAN:
            overhead += x->tiles * t->loop_overhead;
            copies = 0;
            break;
        case OT_FORM_UNROLLED:
            stitch = 2 * x->out_bytes / out_bw;
            overhead += x->tiles * x->n_inputs * t->node_overhead;
            /* Tiles live in the outer graph; sizes that differ from layer to layer do not fit each other's places
             * (measured: 4 working sets for a chain of 12 nodes, 12 for one of 48). */
            *stitch_peak = 2 * *stitch_peak + (x->halo ? 1 + x->chain / 4 : 1) * x->ws;
            break;
        case OT_FORM_PEELED:
            stitch += 2 * x->out_bytes / out_bw;
            overhead += x->tiles * (x->n_inputs * 4 * t->node_overhead + t->loop_overhead);
            /* In several dims the border tiles stay in the outer graph and the stack is transposed. */
            *stitch_peak = x->n_dims > 1 ? 3 * *stitch_peak + 2 * x->ws : 2 * *stitch_peak;
            break;
        case OT_FORM_WINDOW:
            stitch = (x->outermost ? 1 : 3) * x->out_bytes / out_bw;
            overhead += x->tiles * (x->n_inputs * 2 * t->node_overhead + t->loop_overhead);
            if (!x->outermost) *stitch_peak *= 2;
            break;
        case OT_FORM_WHILE:
        case OT_FORM_NONE: break;
        }
        *time = compute + transfers + copies + stitch + overhead + x->nodes * t->node_overhead;
    }
    *traffic = x->in_slow + padding + x->out_bytes * (t->is_cache && stitch > 0 && x->out_bytes > (double)t->fast_bytes ? 3 : 1) +
               weight_traffic;
}
