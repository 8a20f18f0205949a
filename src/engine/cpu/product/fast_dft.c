/* DFT of float32 by fast transforms: up to LANES lines of an array at a time.
 *
 *   x [outer, t, inner, parts]   line (i, j) = x[i, :, j]
 *   lane                         a line; or two lines of real numbers, one as the imaginary part
 *                                of the other:
 *
 *       Z = A + i B     A[k] = (Z[k] + conj Z[n - k]) / 2     B[k] = (Z[k] - conj Z[n - k]) / 2i
 *
 * Other types, and transforms longer than OT_FFT_MAX, go to the reference.
 */
#include "fast_product.h"
#include "fft.h"

#include "engine/core/half.h"
#include "engine/core/pool.h"

enum { LANES = 16, LANE_FLOATS = 1 << 16 /* of an array of a run, where lanes can be fewer */ };

typedef struct dft_job {
    const ot_dft *d;
    const ot_fft *fft;
    const float *x;
    float *y;
    int64_t lines, lanes; /* lanes: at a time */
    bool pairs;
    float *memory; /* [threads][4][room * lanes] */
} dft_job;

/* ---- lines ---- */

static const float *line_of(const dft_job *j, int64_t line)
{
    const ot_dft *d = j->d;
    return j->x + (line / d->inner * d->in_extent * d->inner + line % d->inner) * d->parts;
}

static float *result_of(const dft_job *j, int64_t line)
{
    const ot_dft *d = j->d;
    return j->y + (line / d->inner * d->out * d->inner + line % d->inner) * d->out_parts;
}

/* Every step-th of `from`, `len` of them, to every lanes-th of `to`; zeros up to n. */
static void put_lane(float *to, const float *from, int64_t step, int64_t len, int64_t n,
                     int64_t lanes)
{
    for (int64_t t = 0; t < len; t++) to[t * lanes] = from[t * step];
    for (int64_t t = len; t < n; t++) to[t * lanes] = 0;
}

/* The half of a spectrum that the operand has not is that of a real signal. */
static void complete(const ot_dft *d, float *re, float *im, int64_t lanes)
{
    for (int64_t k = d->n / 2 + 1; k < d->n; k++) {
        re[k * lanes] = re[(d->n - k) * lanes];
        im[k * lanes] = -im[(d->n - k) * lanes];
    }
}

/* Lines from `first` on into `count` lanes. */
static void load(const dft_job *j, const ot_fft_arrays *a, int64_t first, int64_t count)
{
    const ot_dft *d = j->d;
    int64_t step = d->inner * d->parts, lanes = j->lanes;
    for (int64_t l = 0; l < lanes; l++) {
        int64_t line = first + (j->pairs ? 2 * l : l);
        const float *x = line_of(j, ot_min(line, j->lines - 1));
        const float *im = j->pairs        ? line_of(j, ot_min(line + 1, j->lines - 1))
                          : d->parts == 2 ? x + 1
                                          : x;
        put_lane(a->re + l, x, step, l < count ? d->len : 0, d->n, lanes);
        put_lane(a->im + l, im, step, l < count && (j->pairs || d->parts == 2) ? d->len : 0, d->n,
                 lanes);
        if (d->inverse && d->onesided) complete(d, a->re + l, a->im + l, lanes);
    }
}

/* Element k of a result; re, im: of its lane, those of -k for pairs. */
static void store_pair(const dft_job *j, const ot_fft_arrays *a, int64_t lane, int64_t line)
{
    const ot_dft *d = j->d;
    float *first = result_of(j, line),
          *second = line + 1 < j->lines ? result_of(j, line + 1) : NULL;
    float factor = 0.5f * (d->inverse ? 1 / (float)d->n : 1), sign = d->inverse ? -factor : factor;
    for (int64_t k = 0; k < d->out; k++) {
        int64_t at = k * j->lanes + lane, back = (k == 0 ? 0 : d->n - k) * j->lanes + lane,
                to = k * d->inner * 2;
        float zr = a->re[at], zi = a->im[at], yr = a->re[back], yi = a->im[back];
        first[to] = factor * (zr + yr);
        first[to + 1] = sign * (zi - yi);
        if (!second) continue;
        second[to] = factor * (zi + yi);
        second[to + 1] = sign * (yr - zr);
    }
}

static void store(const dft_job *j, const ot_fft_arrays *a, int64_t lane, int64_t line)
{
    const ot_dft *d = j->d;
    float *to = result_of(j, line), factor = d->inverse ? 1 / (float)d->n : 1;
    const float *re = a->re + lane, *im = a->im + lane;
    for (int64_t k = 0; k < d->out; k++, to += d->inner * d->out_parts) {
        to[0] = factor * re[k * j->lanes];
        if (d->out_parts == 2) to[1] = factor * im[k * j->lanes];
    }
}

/* ---- the implementation ---- */

static void dft_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const dft_job *j = job;
    int64_t size = ot_fft_room(j->fft) * j->lanes, each = j->lanes * (j->pairs ? 2 : 1);
    float *m = j->memory + worker * 4 * size;
    bool swaps = j->d->inverse && !j->pairs;
    for (int64_t g = first; g < end; g++) {
        ot_fft_arrays a = {m, m + size, m + 2 * size, m + 3 * size};
        int64_t line = g * each, lines = ot_min(each, j->lines - line),
                count = j->pairs ? (lines + 1) / 2 : lines;
        load(j, &a, line, count);
        if (swaps) a = (ot_fft_arrays){a.im, a.re, a.other_im, a.other_re};
        a = ot_fft_run(j->fft, a, j->lanes);
        if (swaps) a = (ot_fft_arrays){a.im, a.re, a.other_im, a.other_re};
        for (int64_t l = 0; l < count; l++) {
            if (j->pairs)
                store_pair(j, &a, l, line + 2 * l);
            else
                store(j, &a, l, line + l);
        }
    }
}

/* The transform that the node keeps, or one of this call's own (*own). Threads may meet here at
 * the same node: the first to finish wins. NULL: no memory. */
static const ot_fft *find(ot_call *c, int64_t n, ot_fft **own)
{
    void *none = NULL;
    const ot_fft *kept = c->state ? __atomic_load_n(&c->state->data, __ATOMIC_ACQUIRE) : NULL;
    *own = NULL;
    if (kept && ot_fft_length(kept) == n) return kept;
    *own = ot_fft_new(n);
    if (!*own || kept || !c->state) return *own;
    if (!__atomic_compare_exchange_n(&c->state->data, &none, *own, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return *own;
    kept = *own;
    c->state->free = ot_fft_free;
    *own = NULL;
    return kept;
}

static ot_status run(ot_call *c, dft_job *j)
{
    int64_t room = ot_fft_room(j->fft), groups, size;
    double work = (double)j->lines * (double)room * 8;
    int threads = ot_rows_threads(c, work);
    j->lines = j->d->outer * j->d->inner;
    j->pairs = j->d->parts == 1 && !(j->d->inverse && j->d->onesided) && j->lines > 1;
    int64_t lanes = j->pairs ? (j->lines + 1) / 2 : j->lines;
    j->lanes = ot_max(1, ot_min(ot_min(lanes, LANES), LANE_FLOATS / room));
    groups = ot_ceil_div(lanes, j->lanes);
    if (!ot_mul_i64(room, 4 * j->lanes * threads, &size)) return OT_E_NOMEM;
    if (!(j->memory = ot_num_scratch(c, size, sizeof *j->memory))) return OT_E_NOMEM;
    ot_pool_share((uint32_t)threads, groups, 1, dft_share, j);
    return OT_OK;
}

ot_status ot_fast_dft(ot_call *c)
{
    ot_dft d = {0};
    ot_fft *own;
    int64_t dims[OT_RANK_MAX];
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_dft, 0);
    if (c->n_in == 0 || !c->in[0] || c->in[0]->dtype != OT_F32) return ot_ref_dft(c);
    OT_TRY(ot_dft_open(c, &d, dims));
    if (d.n > OT_FFT_MAX || d.in_extent == 0) return ot_ref_dft(c);
    OT_TRY(ot_call_output(c, 0, OT_F32, c->in[0]->rank, dims));
    if (!ot_num_out(c, 0) || ot_num_count(c->out[0]) == 0) return OT_OK;
    dft_job j = {.d = &d, .x = c->in[0]->data, .y = c->out[0]->data};
    if (!(j.fft = find(c, d.n, &own))) return ot_fail_nomem(c->diag);
    ot_status st = run(c, &j);
    ot_fft_free(own);
    return st;
}
