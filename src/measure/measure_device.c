/* Everything that calibrate measures of a device, by its own kernels and its own clock.
 *
 *   level  what                                                     from
 *   fast   the cache before the device's memory: bytes, bw_fast     copies from one array to
 *                                                                   another and back
 *   slow   the device's memory: bw_slow
 *   host   transfers both ways: per byte, and for the least of them
 *
 *   bandwidth   .----.                 arrays of so many bytes together; the API's cache, if it
 *                                      tells, bounds the search
 *              /      `.  <-- the mean of the best and of bw_slow: fast_bytes
 *             /         `-----
 *        launches cost
 *
 * A node is a launch, a tile and a region are those of sessions on the device
 * (measure_overheads.c); rates are those of its kernels alone (measure_rates.c). A small working
 * set is slow on a GPU for want of work; that is in no figure of targets.
 */
#include "calibrate.h"

#include "device/profile.h"

#include <math.h>

#define COPIES      16 /* kernels of a run: the first finds nothing in the cache */
#define CACHE_MOST  (128LL << 20)
#define CACHE_LEAST (256LL << 10)
#define CACHE_GUESS (1LL << 20) /* where nothing is faster than the memory, and the API is silent */
#define SLOW_MOST   (512LL << 20)
#define SEEN        1.2 /* times bw_slow: there is a cache */
#define STARTS      50

/* ---- memories ---- */

/* Bytes per second, read and written, of copies between two arrays of `bytes` together. */
static ot_status bandwidth(const ot_calibration *c, const char *level, int64_t bytes, double *out,
                           ot_diag *d)
{
    char *text = NULL, rate[32], size[32];
    size_t n = 0;
    double took = 0;
    const int64_t columns = 1024, rows = ot_max(1, bytes / 2 / (columns * 4));
    FILE *f = open_memstream(&text, &n);
    if (!f) return ot_fail_nomem(d);
    fprintf(f, "input %%v0 : float32[%lld,%lld]\n", (long long)rows, (long long)columns);
    for (int k = 0; k < COPIES; k++) fprintf(f, "%%v%d = Concat(%%v%d) {axis=0}\n", k + 1, k);
    fprintf(f, "output %%v%d\n", COPIES);
    ot_status s = fclose(f) == 0 ? ot_measure_operators(c, text, &took, d) : ot_fail_nomem(d);
    free(text);
    if (s != OT_OK) return s;
    *out = (double)(2 * rows * columns * 4) * COPIES / took;
    if (c->log)
        fprintf(c->log, "onnx-tile: %-5s %10s  %s/s\n", level,
                ot_format_bytes((double)bytes, size, sizeof size),
                ot_format_bytes(*out, rate, sizeof rate));
    return OT_OK;
}

/* Two arrays that fit the device, and one block of it. */
static int64_t bounded(const ot_calibration *c, int64_t bytes)
{
    const ot_device_facts *f = ot_device_about(c->dev);
    if (f->memory_bytes > 0) bytes = ot_min(bytes, f->memory_bytes / 4);
    if (f->allocation_most > 0) bytes = ot_min(bytes, f->allocation_most / 2);
    return bytes;
}

static ot_status measure_levels(ot_calibration *c, ot_diag *d)
{
    ot_target *t = &c->target;
    const int64_t told = ot_device_about(c->dev)->cache_bytes;
    const int64_t most = bounded(c, told > 0 ? ot_min(ot_max(told, CACHE_LEAST), CACHE_MOST)
                                             : CACHE_MOST / 2);
    double found[16] = {0}, best = 0;
    int n = 0;
    OT_TRY(bandwidth(c, "slow", bounded(c, ot_min(8 * most, SLOW_MOST)), &t->bw_slow, d));
    for (int64_t size = most; size >= CACHE_LEAST && n < 16; size /= 2, n++) {
        OT_TRY(bandwidth(c, "fast?", size, &found[n], d));
        best = fmax(best, found[n]);
    }
    t->bw_fast = fmax(best, t->bw_slow);
    t->bw_mid = t->bw_slow;
    t->fast_bytes = told > 0 ? most : CACHE_GUESS;
    for (int k = 0; best >= SEEN * t->bw_slow && k < n; k++) {
        t->fast_bytes = most >> k;
        if (found[k] >= sqrt(best * t->bw_slow)) break;
    }
    return OT_OK;
}

/* ---- transfers ---- */

static ot_status start_cost(ot_device *dev, ot_dev_queue q, ot_dev_slice s, bool up,
                            ot_device_error *e, double *seconds)
{
    uint32_t word = 0;
    ot_dev_event done;
    for (int k = 0; k < STARTS; k++) {
        const double start = ot_now();
        if (up)
            OT_TRY(ot_dev_upload(dev, q, s, &word, NULL, e, &done));
        else
            OT_TRY(ot_dev_download(dev, q, &word, s, NULL, e, &done));
        OT_TRY(ot_dev_wait(dev, done, e));
        const double took = ot_now() - start;
        if (k == 0 || took < *seconds) *seconds = took;
    }
    return OT_OK;
}

static ot_status measure_starts(ot_calibration *c, ot_device_error *e)
{
    const ot_dev_buffer_options four = {.name = "word", .bytes = 4};
    ot_dev_buffer b = {0};
    ot_dev_queue q = {0};
    ot_status s = ot_dev_queue_new(c->dev, e, &q);
    if (s == OT_OK) s = ot_dev_buffer_new(c->dev, &four, e, &b);
    if (s == OT_OK)
        s = start_cost(c->dev, q, ot_dev_whole(c->dev, b), true, e,
                       &c->target.transfers.upload_start);
    if (s == OT_OK)
        s = start_cost(c->dev, q, ot_dev_whole(c->dev, b), false, e,
                       &c->target.transfers.download_start);
    if (q.id) ot_dev_queue_free(c->dev, q, NULL);
    if (b.id) ot_dev_buffer_free(c->dev, b, NULL);
    return s;
}

static ot_status measure_transfers(ot_calibration *c, ot_diag *d)
{
    double rate[3];
    ot_device_error e;
    if (ot_device_measure_bandwidth(c->dev, &e, rate) != OT_OK) return ot_device_tell(&e, d);
    c->target.transfers.upload = rate[0];
    c->target.transfers.download = rate[1];
    return measure_starts(c, &e) == OT_OK ? OT_OK : ot_device_tell(&e, d);
}

/* ---- the whole ---- */

static void describe(ot_target *t, const ot_device_facts *f)
{
    *t = (ot_target){.granule = f->cache_line > 0 ? f->cache_line : 64,
                     .cores = f->units > 0 ? f->units : 1,
                     .is_cache = true,
                     .runtime = &ot_runtime_gpu,
                     .memory_bytes = f->memory_bytes};
    t->scopes[OT_SCOPE_SHARED].bytes = f->shared_bytes;
    t->scopes[OT_SCOPE_GM].alignment = f->alignment;
}

ot_status ot_calibrate_device(ot_calibration *c, ot_diag *d)
{
    describe(&c->target, ot_device_about(c->dev));
    ot_progress_at(c->progress, "transfers", 0);
    OT_TRY(measure_transfers(c, d));
    ot_progress_at(c->progress, "memory", 0);
    OT_TRY(measure_levels(c, d));
    ot_progress_at(c->progress, "overheads", 0);
    OT_TRY(ot_measure_overheads(c, d));
    return ot_measure_rates(c, d);
}
