/* What an output form adds to the node times: taking windows, reassembling pieces, loop and
 * operator overhead.
 *
 *   form        window in           piece out                       peak of the outputs
 *   scan        slice of the outer  slice of the outer tensor       1 x
 *   unrolled    Slice copy          Concat copy                     2 x (all pieces, then the
 *                                                                   result), and tiles
 *                                                                   that fragment the outer
 *                                                                   graph's memory
 *   loop-peeled Slice copy          sequence of pieces, Concat      2 x
 *   loop        Slice copy          scan output, Transpose, Concat  2 x, and border tiles in the
 *                                                                   outer graph
 *   prescan     Gather, Transpose   scan output, Transpose, Concat  2 x, border tiles, and the
 *                                                                   windows of all tiles
 *
 * Scratchpad targets run the While/Slice/Deslice form (no reassembly): transfers in and out,
 * overlapped with compute where the target double-buffers.
 *
 * So does the engine on a cached machine. There a core works on one tile at a time, in a fast
 * memory of its own:
 *
 *     core 0  t0 t2 t4 t6 t8  time: that of the core with the most tiles; caches bring windows and
 *             take pieces
 *     core 1  t1 t3 t5 t7     while it computes, through a slow memory that all cores share
 *
 * Steps of a region that streams follow one another, each on all cores. So do tiles where memory
 * counts more (one_tile): there is one in memory.
 */
#include "cost.h"

#include <math.h>

bool ot_weights_stay(const ot_target *t, const ot_totals *x)
{
    if (ot_target_weights_apart(t, (int64_t)x->weights)) return true;
    return !(x->how & OT_FIT_STREAM) &&
           ((double)x->ws + x->weights <= (double)t->fast_bytes || x->tiles <= 1);
}

static double level_time(const ot_target *t, const ot_totals *x)
{
    if ((double)x->ws <= (double)t->fast_bytes) return x->t_fast;
    /* The middle level is judged by one tensor at a time, as for untiled nodes; about half of
     * what is live. */
    const double fast = (double)t->fast_bytes, mid = fmax((double)t->mid_bytes, fast);
    double half = (double)x->ws / 2;
    /* tiles in flight share the middle level */
    if (t->runtime->motion == OT_MOTION_VIEWS && !t->one_tile && t->cores > 1) half *= t->cores;
    if (t->mid_bytes == 0 || half > mid) return x->t_slow;
    /* A shared cache fades out, it does not end: from its own time towards that of slow memory. */
    double fill = half <= fast ? 0 : (half - fast) / (mid - fast);
    return x->t_mid + fill * fill * (x->t_slow - x->t_mid);
}

bool ot_overlaps(const ot_target *t, const ot_totals *x)
{
    return t->runtime->motion == OT_MOTION_DMA && t->double_buffer && !(x->how & OT_FIT_SINGLE);
}

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

static void engine_cost(const ot_target *t, const ot_totals *x, bool stream, double *time,
                        double *traffic, int64_t *reassembly_peak)
{
    const bool in_order = stream || t->one_tile;
    bool resident = ot_weights_stay(t, x);
    double cores = t->cores > 1 ? t->cores : 1, in_flight = in_order ? 1 : cores,
           workers = x->tiles < in_flight ? x->tiles : in_flight;
    double uneven = in_order ? 1 : imbalance(t, x->tiles);
    double weight_seconds = x->weights / t->bw_slow;
    if (!resident) weight_seconds += x->weights * (x->tiles - workers) / ot_cost_bw(t, x->weights);
    /* Windows of convolutions are packed into channel blocks, results unpacked: read on one
     * side, written on the other, at about the rate of slow memory (measured: 8 to 9 GB/s where
     * that gives 18). What is not blocked is made in its place. */
    double compute = level_time(t, x) + (x->border_tile + x->border_tile_out) / t->bw_slow +
                     x->runs * t->runtime->run_seconds / cores;
    /* Rows that are cut short are read by themselves. */
    if (x->row > 0) compute *= 1 + (double)t->runtime->row_loss / (double)x->row;
    double overhead = (x->nodes * t->node_overhead + x->tiles * t->loop_overhead) / in_flight;
    *time = ot_cost_overlap(t, (compute + overhead) * uneven,
                            x->in_seconds + x->out_seconds + weight_seconds) +
            t->region_overhead;
    *time = ot_cost_streams(t, x, *time);
    *traffic = x->in_slow + x->out_bytes +
               (resident || x->weights <= (double)t->mid_bytes ? x->weights
                                                               : x->weights * x->tiles);
    *reassembly_peak = (int64_t)(x->out_kept + (workers - 1) * (double)x->ws);
}

/* What reading constants takes, and how much of it goes through slow memory. */
static double weight_seconds(const ot_target *t, const ot_totals *x, double *traffic)
{
    bool resident = ot_weights_stay(t, x), dma = t->runtime->motion == OT_MOTION_DMA;
    double reads = resident ? x->weights : x->weights * x->tiles;
    double bw = resident || dma ? t->bw_slow : ot_cost_bw(t, x->weights), seconds = reads / bw;
    *traffic = bw <= t->bw_slow ? reads : x->weights;
    if (x->weights <= (double)t->mid_bytes) seconds *= t->runtime->weights_seen;
    return seconds;
}

/* Short runs fill their last granule in part: half of it on average. */
static double padding_of(const ot_target *t, const ot_totals *x)
{
    return t->runtime->fills_granules ? x->runs * (double)t->granule / 2 : 0;
}

/* Transfers in and out of a scratchpad, no reassembly. */
static void dma_cost(const ot_target *t, const ot_totals *x, double *time, double *traffic,
                     int64_t *reassembly_peak)
{
    double compute = level_time(t, x), padding = padding_of(t, x), weight_traffic,
           weights = weight_seconds(t, x, &weight_traffic);
    double transfers = (x->in_slow + padding) / t->bw_slow +
                       x->out_bytes / ot_cost_bw(t, x->out_bytes) + weights;
    double overhead = t->region_overhead;
    overhead += x->nodes * t->node_overhead + x->tiles * t->loop_overhead;
    double longer = transfers < compute ? compute : transfers;
    *time = (ot_overlaps(t, x) ? longer : compute + transfers) + overhead;
    *traffic = x->in_slow + padding + x->out_bytes + weight_traffic;
    *reassembly_peak = (int64_t)x->out_bytes;
}

/* Bytes that a process holds for the operators and loops that are written for so many tiles of
 * so many nodes. */
static double written_bytes(const ot_runtime *rt, const ot_form_price *f, double tiles,
                            double nodes)
{
    double operators = (f->written > 0 ? f->written : tiles) * nodes;
    return operators * (double)rt->node_bytes + (f->loops ? (double)rt->loop_bytes : 0);
}

/* Bytes that a process holds besides the values of the outer graph. */
static int64_t reassembly_peak_of(const ot_target *t, const ot_form_price *f, const ot_totals *x)
{
    bool grid = x->n_dims > 1;
    double outputs = grid && f->outputs_grid > 0 ? f->outputs_grid
                     : x->outermost              ? f->outputs
                                                 : f->outputs_scattered;
    double tiles = grid ? f->tiles_grid : f->tiles;
    if (x->halo && f->tiles_chain > 0) tiles += x->chain / f->tiles_chain;
    double held = f->inputs * x->in_bytes + written_bytes(t->runtime, f, x->tiles, x->chain);
    return (int64_t)(outputs * (double)(int64_t)x->out_bytes) + (int64_t)tiles * x->ws +
           (int64_t)held;
}

/* Operators of standard ONNX copy windows out and reassemble pieces. */
static void copied_cost(const ot_target *t, const ot_totals *x, ot_form form, double *time,
                        double *traffic, int64_t *reassembly_peak)
{
    const ot_form_price *f = &t->runtime->price[form];
    double compute = level_time(t, x), padding = padding_of(t, x), weight_traffic,
           weights = weight_seconds(t, x, &weight_traffic);
    double out_bw = ot_cost_bw(t, x->out_bytes), in_bw = ot_cost_bw(t, (double)x->ws);
    double transfers = (x->in_slow + padding) / t->bw_slow + x->out_bytes / out_bw + weights;
    double copies = f->copies ? x->in_bytes / in_bw + x->runs * t->runtime->run_seconds : 0;
    if (ot_form_gathers(form)) copies += x->gathered * t->runtime->gather_seconds;
    copies += f->windows * x->in_bytes / ot_cost_bw(t, x->in_bytes);
    double reassembled = x->outermost ? f->reassemble : f->scattered;
    if (x->n_dims > 1 && x->halo) reassembled += f->cropped;
    double reassembly = reassembled * x->out_bytes / out_bw, overhead = t->region_overhead;
    const double tile_bw = ot_cost_layout_bw(t, in_bw), whole_bw = ot_cost_layout_bw(t, out_bw);
    if (!f->joins_blocks) {
        overhead += x->border_tile / tile_bw + x->border_whole / whole_bw;
        overhead += x->border_tile_out / tile_bw + x->border_whole_out / whole_bw;
    }
    overhead += x->tiles *
                (x->n_inputs * f->nodes * t->node_overhead + (f->loops ? t->loop_overhead : 0));
    *time = compute + transfers + copies + reassembly + overhead + x->nodes * t->node_overhead;
    /* Results too large for the fast memory are read and written once more. */
    *traffic = x->in_slow + padding +
               x->out_bytes * (reassembly > 0 && x->out_bytes > (double)t->fast_bytes ? 3 : 1) +
               weight_traffic;
    *reassembly_peak = reassembly_peak_of(t, f, x);
}

int64_t ot_form_holds(const ot_seq *s, const ot_target *t, const ot_region *r)
{
    const ot_form_price *f = &t->runtime->price[r->form];
    double tiles = 1, taken = 0;
    for (uint32_t d = 0; d < r->n_dims; d++) tiles *= r->dims[d].n_tiles;
    for (uint32_t v = 0; v < r->n_inputs && f->inputs_stay; v++)
        if (s->act[r->values[v].value]) taken += (double)r->values[v].bytes;
    return (int64_t)(taken + written_bytes(t->runtime, f, tiles, r->n_nodes));
}

void ot_form_cost(const ot_target *t, const ot_totals *x, ot_form form, double *time,
                  double *traffic, int64_t *reassembly_peak)
{
    switch (t->runtime->motion) {
    case OT_MOTION_VIEWS:
        engine_cost(t, x, form == OT_FORM_STREAM, time, traffic, reassembly_peak);
        return;
    case OT_MOTION_DMA: dma_cost(t, x, time, traffic, reassembly_peak); return;
    case OT_MOTION_COPIED: break;
    }
    copied_cost(t, x, form, time, traffic, reassembly_peak);
}
