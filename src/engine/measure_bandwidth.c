/* Bandwidth of a memory level: arrays that fill a part of it, read and written again and again.
 *
 *   thread 0   x | . . . . |  -->  y | . . . . |        y[i] = x[i] * a + b, both arrays of a thread together `bytes` long
 *   thread 1   x | . . . . |  -->  y | . . . . |
 *
 * Every byte read and every byte written counts once, as the cost model counts them: what a write fetches first is the level's
 * own affair. Memory is touched by the thread that uses it. The best pass counts, since others only take away.
 */
#include "calibrate.h"

#include "measure.h"
#include "measure_team.h"
#include "simd.h"

#define PASS_BYTES (8 * 1024 * 1024) /* of one timed pass at least: long against the clock's grain */
#define PAGE       4096

OT_CLONES static void scale_and_shift(const float *x, float *y, int64_t n, float a, float b)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * a + b;
}

typedef struct stream {
    float *x, *y;
    int64_t n;      /* elements of each */
    double seconds; /* to go on for */
    double best;    /* least seconds of a sweep over both */
} stream;

/* Seconds of one sweep over both arrays; several short ones are timed together. */
static double sweep_seconds(const stream *w, int64_t sweeps)
{
    double start = ot_now();
    for (int64_t k = 0; k < sweeps; k++) scale_and_shift(w->x, w->y, w->n, 0.5f, (float)k);
    return (ot_now() - start) / (double)sweeps;
}

static void run_stream(void *of, ot_gate *g)
{
    stream *w = of;
    int64_t sweeps = ot_max(1, PASS_BYTES / (w->n * 8));
    for (int64_t i = 0; i < w->n; i++) w->x[i] = w->y[i] = (float)(i & 7);
    (void)sweep_seconds(w, 1);
    ot_gate_pass(g);
    double until = ot_now() + w->seconds;
    for (int k = 0; k < 3 || ot_now() < until; k++) {
        double took = sweep_seconds(w, sweeps);
        if (k == 0 || took < w->best) w->best = took;
    }
}

static bool make_arrays(stream *w, int64_t bytes)
{
    w->n = ot_max(PAGE / 4, bytes / 8 / (PAGE / 4) * (PAGE / 4));
    w->x = aligned_alloc(PAGE, (size_t)w->n * 4);
    w->y = aligned_alloc(PAGE, (size_t)w->n * 4);
    return w->x && w->y;
}

double ot_measure_bandwidth(int64_t bytes, uint32_t threads, double seconds)
{
    stream *w = calloc(threads, sizeof *w);
    double sum = 0;
    bool ok = w != NULL;
    for (uint32_t k = 0; ok && k < threads; k++) {
        w[k].seconds = seconds;
        ok = make_arrays(&w[k], bytes);
    }
    ok = ok && ot_team_run(threads, run_stream, w, sizeof *w);
    for (uint32_t k = 0; ok && k < threads; k++) sum += (double)w[k].n * 8 / w[k].best;
    for (uint32_t k = 0; w && k < threads; k++) {
        free(w[k].x);
        free(w[k].y);
    }
    free(w);
    return sum;
}
