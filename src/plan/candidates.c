/* Which tile extents to try on an axis. Counts grow geometrically; near each, an extent that divides the axis is preferred,
 * because equal tiles allow the zero-copy form and need no peeled tail. */
#include "../plan/planner.h"

/* A divisor of extent within a third of want, the nearest; else want. */
static int64_t nearest_divisor(int64_t extent, int64_t want)
{
    int64_t lo = ot_max(1, want - want / 4), hi = want + want / 3, best = 0;
    if (hi - lo > 4096) return want;
    for (int64_t t = lo; t <= hi; t++) {
        if (extent % t != 0) continue;
        if (best == 0 || llabs(t - want) < llabs(best - want)) best = t;
    }
    return best ? best : want;
}

/* Few tail elements waste a tile: 4097 = 16 x 256 + 1 becomes 16 x 257. */
static int64_t balanced(int64_t extent, int64_t n)
{
    return ot_ceil_div(extent, n);
}

uint32_t ot_candidate_tiles(int64_t extent, uint32_t max_counts, bool spread, int64_t *tiles)
{
    static const int64_t dense[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 0};
    static const int64_t sparse[] = {2, 4, 8, 16, 32, 64, 128, 0};
    const int64_t *counts = spread ? sparse : dense;
    uint32_t n = 0;
    for (size_t k = 0; counts[k] && n < max_counts; k++) {
        if (counts[k] > extent) break;
        int64_t t = nearest_divisor(extent, balanced(extent, counts[k]));
        if (ot_ceil_div(extent, t) < 2) continue;
        if (n > 0 && tiles[n - 1] == t) continue;
        tiles[n++] = t;
    }
    if (extent >= 2 && extent <= 64 && n < max_counts && (n == 0 || tiles[n - 1] != 1)) tiles[n++] = 1;
    return n;
}
