/* Everything that calibrate measures, in order: bandwidths, overheads, rates, their correction.
 * Later ones use what the earlier ones found.
 *
 *   level   arrays of a thread        of all threads
 *   L1      half of 32 KiB            bw_l1, for people only
 *   fast    half of fast_bytes        bw_fast
 *   mid     its share of half of it   bw_mid, and one thread alone: bw_mid_core
 *   slow    its share of 8 times mid  bw_slow, and one thread alone: bw_slow_core
 *
 * How much of the mid level there is to have is found out, too: caches are shared with others,
 * other machines among them. mid_bytes becomes the size of a tensor that is read while another
 * of its size is written, and both are still found there:
 *
 *   bandwidth  ----.____                arrays of 2 x tensor
 *                       `.   <-- the mean of both levels: mid_bytes
 *   bw_slow               `--------
 */
#include "calibrate.h"

#include <math.h>
#include <unistd.h>

#define PASS_SECONDS 0.5
#define L1_BYTES     (32 * 1024)
#define SLOW_TIMES   8                      /* the last cache */
#define SLOW_MAX     (1024LL * 1024 * 1024) /* and a part of the memory that is free at the most */

static int64_t slow_bytes(const ot_target *t)
{
    int64_t bytes = SLOW_TIMES *
                    ot_max(t->mid_bytes, t->fast_bytes * (t->cores > 1 ? t->cores : 1));
    long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_AVPHYS_PAGES);
    if (page > 0 && pages > 0) bytes = ot_min(bytes, (int64_t)page * pages / 4);
    return ot_min(bytes, SLOW_MAX);
}

static ot_status bandwidth(const ot_calibration *c, const char *level, int64_t bytes,
                           uint32_t threads, double *out, ot_diag *d)
{
    char rate[32];
    *out = ot_measure_bandwidth(bytes, threads, PASS_SECONDS);
    if (*out < 1) return ot_fail(d, OT_E_NOMEM, "out of memory or threads for measuring %s", level);
    if (c->log)
        fprintf(c->log, "onnx-tile: %-6s %u thread%s  %s/s\n", level, threads,
                threads == 1 ? " " : "s", ot_format_bytes(*out, rate, sizeof rate));
    return OT_OK;
}

/* Sizes go down by a quarter each, until the level's bandwidth is there. */
static ot_status find_capacity(ot_calibration *c, ot_diag *d)
{
    ot_target *t = &c->target;
    double enough = sqrt(t->bw_mid * t->bw_slow), found = 0;
    int64_t tensor = t->mid_bytes;
    for (; tensor / c->threads > t->fast_bytes; tensor = tensor / 4 * 3) {
        OT_TRY(bandwidth(c, "mid?", 2 * tensor / c->threads, c->threads, &found, d));
        if (found >= enough) break;
    }
    t->mid_bytes = tensor;
    return OT_OK;
}

static ot_status measure_levels(ot_calibration *c, ot_diag *d)
{
    ot_target *t = &c->target;
    int64_t slow = slow_bytes(t), mid = t->mid_bytes / 2;
    OT_TRY(bandwidth(c, "L1", L1_BYTES / 2, c->threads, &c->bw_l1, d));
    OT_TRY(bandwidth(c, "fast", t->fast_bytes / 2, c->threads, &t->bw_fast, d));
    OT_TRY(bandwidth(c, "slow", slow / c->threads, c->threads, &t->bw_slow, d));
    OT_TRY(bandwidth(c, "slow", slow / c->threads, 1, &t->bw_slow_core, d));
    if (t->mid_bytes == 0 || mid / c->threads <= t->fast_bytes) {
        /* no array lies there and not in the fast one */
        t->bw_mid = t->mid_bytes ? (t->bw_fast + t->bw_slow) / 2 : t->bw_slow;
        t->bw_mid_core = t->mid_bytes ? t->bw_mid / c->threads : 0;
    } else {
        OT_TRY(bandwidth(c, "mid", mid / c->threads, c->threads, &t->bw_mid, d));
        OT_TRY(bandwidth(c, "mid", mid / c->threads, 1, &t->bw_mid_core, d));
        OT_TRY(find_capacity(c, d));
    }
    return OT_OK;
}

ot_status ot_calibrate(ot_calibration *c, ot_diag *d)
{
    ot_progress_at(c->progress, "memory", 0);
    OT_TRY(measure_levels(c, d));
    ot_progress_at(c->progress, "overheads", 0);
    OT_TRY(ot_measure_overheads(c, d));
    OT_TRY(ot_measure_rates(c, d));
    ot_progress_at(c->progress, "networks", 0);
    return ot_measure_whole(c, d);
}
