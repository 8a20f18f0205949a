/* The rule of Winograd's algorithm; its constants were measured with the engine's code. See
 * winograd_rule.h. */
#include "winograd_rule.h"

#include <math.h>

#define ROWS    6 /* tiles that a product takes at once */
#define V_BYTES ((int64_t)200 << 10)
#define U_OWN   (256 << 10)        /* bytes of U that stay in a core's cache */
#define U_NEAR  ((int64_t)3 << 20) /* held by a cache that a few cores share, or by a core's own */
#define U_FAR   ((int64_t)8 << 20)

/* Transformed weights are 1.8 to 7.1 times the model's (m = 2 to 6: (m + 2)^2 in place of 9),
 * and stay for as long as the session: what is gained in time is paid for with memory. Two
 * limits keep that small beside the activations, which tiling is about; beyond them weights are
 * transformed in each strip of tiles:
 *
 * HELD_EACH   a layer's transformed weights. They are read whole for every strip of tiles; those
 *             that come from a cache which is far away save no more than a tenth of the time, as
 *             each strip can transform them nearly as fast. 5 MiB: 142 x 142 channels with m = 6,
 *             190 x 190 with m = 4.
 * OT_WINOGRAD_ROOM  what transforming adds to a session's memory, over all its layers:
 *             transformed less plain weights. 22 MiB: five layers at
 *             the first limit, or the whole backbone of a small network.
 *
 * Layers ask in the order of the graph: those in front, on large maps, gain most and have the
 * smallest weights. */
#define HELD_EACH ((int64_t)5 << 20)

/* Bytes of weights that a strip transforms at one time: they stay in a core's cache. */
#define U_PART ((int64_t)320 << 10)
/* Tiles of such a strip, as many as V_FRESH bytes hold: transforming for 96 takes a tenth of
 * their products' time. */
#define FRESH_LEAST   48
#define FRESH_MOST    96
#define V_FRESH       ((int64_t)4 << 20)
#define DILATION_MOST 128 /* that is taken apart */

/* ---- the way ---- */

int64_t ot_winograd_tiles(const ot_winograd_sizes *s, int64_t m)
{
    return s->batch * ot_ceil_div(s->out_h, m) * ot_ceil_div(s->out_w, m);
}

/* V of a strip should stay in the cache of a core, next to a group's M; U, read once a strip,
 * asks for the more tiles the farther away it lies. */
static void choose_strip(const ot_winograd_sizes *s, int64_t b, ot_winograd_way *way)
{
    int64_t positions = (way->m + 2) * (way->m + 2), tiles = ot_winograd_tiles(s, way->m);
    int64_t v_tile = positions * ot_ceil_div(s->in_channels, b) * b * (int64_t)sizeof(float);
    int64_t k_blocks = ot_ceil_div(s->out_channels, b),
            u_bytes = positions * s->in_channels * k_blocks * b * (int64_t)sizeof(float);
    int64_t least = u_bytes > U_FAR    ? 48
                    : u_bytes > U_NEAR ? 24
                                       : 12,
            threads = ot_max(s->threads, 1);
    int64_t want = ot_min(ot_max(V_BYTES / v_tile / ROWS * ROWS, least), 48);
    if (way->part) want = ot_min(ot_max(V_FRESH / v_tile, FRESH_LEAST), FRESH_MOST);
    way->group = ot_min(way->part || want * v_tile <= 2 * V_BYTES ? 2 : 4, k_blocks);
    int64_t groups = ot_ceil_div(k_blocks, way->group),
            strips = ot_max((tiles + want / 2) / want, 1);
    if (threads > 1 && strips < 2 * threads) {
        /* Too few strips to go around evenly: shorter ones, unless that means to read a large U
         * more often. */
        way->shared = (way->part || u_bytes > U_NEAR) && groups >= threads;
        if (!way->shared)
            strips = ot_max(
                ot_min(ot_ceil_div(strips, threads) * threads, ot_ceil_div(tiles, ROWS)), 1);
    }
    way->strip = ot_max(strips > 1 ? ot_ceil_div(ot_ceil_div(tiles, strips), ROWS) * ROWS : tiles,
                        1);
}

/* Cycles of a core to transform a tile in one block of channels, as measured; columns of the
 * input are shared. */
static const double input_cycles[] = {50, 115, 240}, output_cycles[] = {45, 110, 190};

/* Cycles to transform the weights of one input channel and one block of output channels. */
static const double weights_cycles[] = {90, 200, 375};

/* Cycles to read `bytes` of weights: from a core's own cache nothing, from a shared one, from
 * memory. */
static double weight_cycles(double bytes, double threads)
{
    return bytes <= U_OWN    ? 0
           : bytes <= U_NEAR ? bytes / 16 / threads
                             : bytes / 7.5 / fmin(threads, 2);
}

/* Two vectors are multiplied in a cycle, given four tiles at once; a product of `channels` steps
 * takes as long as two more. */
static double winograd_cycles(const ot_winograd_sizes *s, int64_t b, const ot_winograd_way *way)
{
    int64_t positions = (way->m + 2) * (way->m + 2), tiles = ot_winograd_tiles(s, way->m);
    double k_blocks = (double)ot_ceil_div(s->out_channels, b),
           c_blocks = (double)ot_ceil_div(s->in_channels, b);
    double rows = (double)way->strip / (double)ot_ceil_div(way->strip, ROWS); /* tiles at once */
    double product = (double)positions * ceil(k_blocks / 2) * (double)(s->in_channels + 2) /
                     (0.92 * fmin(rows / 4, 1));
    double tile = product + c_blocks * input_cycles[way->m / 2 - 1] +
                  k_blocks * output_cycles[way->m / 2 - 1];
    double pairs = (double)s->in_channels * k_blocks;
    double u_bytes = (way->part ? 9 : (double)positions) * pairs * (double)b * sizeof(float);
    int64_t threads = ot_max(s->threads, 1), strips = ot_ceil_div(tiles, way->strip);
    int64_t parts = way->shared ? ot_ceil_div(ot_ceil_div(s->out_channels, b), way->group)
                                : ot_max(strips, 1);
    /* of the thread with the most */
    double share = (double)ot_ceil_div(parts, threads) / (double)parts;
    double each = weight_cycles(u_bytes, (double)threads); /* strip */
    if (way->part) each += pairs * weights_cycles[way->m / 2 - 1] * share;
    return (double)tiles * tile * share + (double)strips * each;
}

/* A good direct convolution multiplies two vectors in a cycle 85 times out of 100, and leaves
 * out rows of zeros. */
static double direct_cycles(const ot_winograd_sizes *s, int64_t block)
{
    double b = (double)block, threads = fmax(s->threads, 1);
    double pairs = (double)s->in_channels * ceil((double)s->out_channels / b);
    int64_t rows = 0; /* of the output, each as often as rows of the input reach it */
    for (int64_t t = 0; t < 3; t++)
        rows += ot_max(ot_min(s->out_h, s->in_h + s->pad_top - t) - ot_max(s->pad_top - t, 0), 0);
    double outputs = (double)s->batch * (double)rows * (double)s->out_w;
    return outputs * pairs * 3 / 2 / 0.85 / threads +
           weight_cycles(pairs * 9 * b * sizeof(float), threads);
}

/* Input channels of which U_PART holds the transformed weights: whole blocks. */
static int64_t part_of(const ot_winograd_sizes *s, int64_t m, int64_t b)
{
    int64_t channel = (m + 2) * (m + 2) * 2 * b * (int64_t)sizeof(float);
    return ot_min(ot_max(U_PART / channel / b, 1), ot_ceil_div(s->in_channels, b)) * b;
}

ot_winograd_way ot_winograd_choose(const ot_winograd_sizes *s, int64_t block, int64_t room,
                                   double *cycles)
{
    ot_winograd_way best = {0};
    double least = INFINITY;
    for (int64_t m = 2; m <= 6; m += 2) {
        ot_winograd_way way = {.m = m};
        if (ot_winograd_bytes(s, &way, block) > HELD_EACH ||
            ot_winograd_growth(s, &way, block) > room)
            way.part = part_of(s, m, block);
        choose_strip(s, block, &way);
        double takes = winograd_cycles(s, block, &way),
               counts = takes * (m == 6 ? 1.04 : 1); /* larger errors should be worth something */
        if (counts >= least) continue;
        least = counts;
        best = way;
        *cycles = takes;
    }
    return best;
}

bool ot_winograd_sizes_fit(const ot_winograd_sizes *s)
{
    const int64_t sizes[] = {s->in_channels, s->out_channels, s->in_h, s->in_w, s->out_h, s->out_w};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k] < 1 || sizes[k] > INT32_MAX) return false;
    int64_t n;
    return s->batch >= 0 && s->pad_top >= 0 && s->pad_top < INT32_MAX && s->pad_left >= 0 &&
           s->pad_left < INT32_MAX &&
           ot_product((const int64_t[]){s->batch, s->out_h, s->out_w}, 3, &n) &&
           ot_product(
               (const int64_t[]){64 * sizeof(float), s->in_channels + 16, s->out_channels + 16}, 3,
               &n) &&
           n < INT64_MAX / 2;
}

bool ot_winograd_take_apart(ot_winograd_sizes *s, int64_t d)
{
    if (d < 1 || d > DILATION_MOST || s->pad_top % d != 0 || s->pad_left % d != 0 ||
        !ot_mul_i64(s->batch, d * d, &s->batch))
        return false;
    s->in_h = ot_ceil_div(s->in_h, d);
    s->in_w = ot_ceil_div(s->in_w, d);
    s->out_h = ot_ceil_div(s->out_h, d);
    s->out_w = ot_ceil_div(s->out_w, d);
    s->pad_top /= d;
    s->pad_left /= d;
    return true;
}

int64_t ot_winograd_bytes(const ot_winograd_sizes *s, const ot_winograd_way *way, int64_t block)
{
    return (way->part ? 9 : (way->m + 2) * (way->m + 2)) * s->in_channels *
           ot_ceil_div(s->out_channels, block) * block * (int64_t)sizeof(float);
}

/* Others are padded to whole blocks, too. */
int64_t ot_winograd_growth(const ot_winograd_sizes *s, const ot_winograd_way *way, int64_t block)
{
    return way->part ? 0
                     : ot_winograd_bytes(s, way, block) -
                           9 * s->in_channels * s->out_channels * (int64_t)sizeof(float);
}

ot_winograd_guess ot_winograd_guess_for(const ot_winograd_sizes *s, int64_t block, int64_t room)
{
    ot_winograd_guess g = {0};
    if (block < 1 || !ot_winograd_sizes_fit(s) || 2 * s->in_channels < block)
        return g; /* a direct convolution takes so few without blocks */
    ot_winograd_way way = ot_winograd_choose(s, block, room, &g.cycles);
    g.pays = g.cycles < 0.9 * direct_cycles(s, block);
    g.growth = ot_winograd_growth(s, &way, block);
    return g;
}
