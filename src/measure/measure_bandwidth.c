/* Bandwidth of a memory level: arrays that fill a part of it, read and written again and again.
 *
 *   thread 0  x | . . . . |  -->  y | . . . . |  y[i] = x[i] * a + b, both arrays of a thread
 *             together `bytes` long
 *   thread 1  x | . . . . |  -->  y | . . . . |
 *
 * Every byte read and every byte written counts once, as the cost model counts them: what a
 * write fetches first is the level's own affair. Memory is touched by the thread that uses it.
 * Long arrays are timed in pieces, and of each piece the best of all sweeps counts: others only
 * take away, and seldom at the same place twice.
 */
#include "calibrate.h"

#include "measure.h"
#include "measure_team.h"
#include "engine/core/simd.h"

#define PIECE_BYTES (1024 * 1024) /* timed at once at least: long against the clock's grain */
#define PIECES_MAX  256
#define PAGE        4096

OT_CLONES static void scale_and_shift(const float *x, float *y, int64_t n, float a, float b)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * a + b;
}

typedef struct stream {
    float *x, *y;
    int64_t n;      /* elements of each */
    double seconds; /* to go on for */
    int64_t n_pieces;
    double best[PIECES_MAX]; /* [n_pieces] least seconds of each piece of both */
} stream;

/* One sweep over both arrays, piece by piece; short ones are gone over several times at once. */
static void sweep(stream *w, bool first)
{
    int64_t piece = w->n / w->n_pieces, times = ot_max(1, PIECE_BYTES / (piece * 8));
    for (int64_t k = 0; k < w->n_pieces; k++) {
        double start = ot_now();
        for (int64_t j = 0; j < times; j++)
            scale_and_shift(w->x + k * piece, w->y + k * piece, piece, 0.5f, (float)j);
        double took = (ot_now() - start) / (double)times;
        if (first || took < w->best[k]) w->best[k] = took;
    }
}

static void run_stream(void *of, ot_gate *g)
{
    stream *w = of;
    w->n_pieces = ot_max(1, ot_min(PIECES_MAX, w->n * 8 / PIECE_BYTES));
    for (int64_t i = 0; i < w->n; i++) w->x[i] = w->y[i] = (float)(i & 7);
    sweep(w, true);
    ot_gate_pass(g);
    double until = ot_now() + w->seconds;
    for (int k = 0; k < 3 || ot_now() < until; k++) sweep(w, k == 0);
}

static bool make_arrays(stream *w, int64_t bytes)
{
    w->n = ot_max(PAGE / 4, bytes / 8 / (PAGE / 4) * (PAGE / 4));
    w->x = aligned_alloc(PAGE, (size_t)w->n * 4);
    w->y = aligned_alloc(PAGE, (size_t)w->n * 4);
    return w->x && w->y;
}

/* Bytes per second. */
static double rate_of(const stream *w)
{
    double seconds = 0;
    for (int64_t k = 0; k < w->n_pieces; k++) seconds += w->best[k];
    return (double)(w->n / w->n_pieces * w->n_pieces) * 8 / seconds;
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
    for (uint32_t k = 0; ok && k < threads; k++) sum += rate_of(&w[k]);
    for (uint32_t k = 0; w && k < threads; k++) {
        free(w[k].x);
        free(w[k].y);
    }
    free(w);
    return sum;
}
