/* Normalisations over shapes of their own: MeanVarianceNormalization (any axes), LRN (a window
 * of channels).
 *
 *   LRN   x [n][channels][positions]; POSITIONS of them side by side
 *         y[ch] = x[ch] / (bias + alpha / size * sum of x[k]^2, k in a window around ch) ^ beta
 */
#include "fast_rows_fold.h"
#include "engine/ref/ref_reduce.h"

#include <math.h>

/* ---- MeanVarianceNormalization ---- */

/* All rows that `gone` goes through from x on. */
static void normalise(ot_rm_counter rows, const float *x, float *y)
{
    int64_t n, step, all = 0;
    double sum = 0, squares = 0;
    ot_rm_counter_split(&rows, &n, &step);
    do {
        sum += ot_rows_mean(x + rows.at, n) * (double)n;
        all += n;
    } while (ot_rm_counter_next(&rows));
    double mean = sum / (double)all;
    do squares += ot_rows_square_mean(x + rows.at, n, mean) * (double)n;
    while (ot_rm_counter_next(&rows));
    double deviation = sqrt(squares / (double)all) + 1e-9;
    float shift = (float)(((double)(float)mean - mean) / deviation);
    do ot_rows_affine(y + rows.at, x + rows.at, n, (float)mean, (float)(1 / deviation), shift);
    while (ot_rm_counter_next(&rows));
}

typedef struct mean_variance {
    const ot_rm_counter *kept, *gone;
    const float *x;
    float *y;
} mean_variance;

static void mean_variance_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const mean_variance *m = job;
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t at = ot_rm_counter_at(m->kept, p);
        normalise(*m->gone, m->x + at, m->y + at);
    }
}

ot_status ot_fast_mean_variance(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_mean_variance, 0);
    static const int64_t usual[] = {0, 2, 3};
    bool reduced[OT_RANK_MAX] = {false};
    size_t n_axes = 0;
    int64_t elems, n_out = 1;
    const int64_t *axes = ot_attr_ints(c->node, "axes", &n_axes);
    bool ok = ot_rows_takes(c) && ot_nd_elems(c->in[0], &elems) && elems > 0;
    if (!axes) {
        axes = usual;
        n_axes = sizeof usual / sizeof *usual;
    }
    for (size_t k = 0; ok && k < n_axes; k++) {
        uint32_t d = 0;
        ok = c->in[0]->rank > 0 && ot_rows_axis(axes[k], c->in[0]->rank, &d);
        if (ok) reduced[d] = true;
    }
    ot_rm_counter kept = {0}, gone = {0};
    if (ok) {
        ot_rm_counter_new(&kept, c->in[0], reduced, false);
        ot_rm_counter_new(&gone, c->in[0], reduced, true);
    }
    if (gone.rank == 0 || gone.steps[gone.rank - 1] != 1)
        return ot_op_reference(OT_OP_MeanVarianceNormalization)(c);
    const ot_nd *x = c->in[0];
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    for (uint32_t d = 0; d < x->rank; d++) n_out *= reduced[d] ? 1 : x->dims[d];
    mean_variance m = {.kept = &kept, .gone = &gone, .x = x->data, .y = c->out[0]->data};
    ot_pool_share((uint32_t)ot_rows_threads(c, 3.0 * (double)elems), n_out, 1, mean_variance_share,
                  &m);
    return OT_OK;
}

/* ---- LRN ---- */

enum { POSITIONS = 64 };

typedef struct lrn {
    int64_t channels, inner, before, after;
    float alpha, beta, bias; /* alpha: over size */
    int64_t blocks;          /* of POSITIONS in `inner` */
    const float *x;
    float *y;
} lrn;

/* y = x / s ^ beta */
static inline void divide(float *y, const float *x, const float *s, int64_t w, float beta)
{
    if (beta == 0.75f) {
#pragma omp simd
        for (int64_t i = 0; i < w; i++) {
            float root = sqrtf(s[i]);
            y[i] = x[i] / (root * sqrtf(root));
        }
    } else if (beta == 0.5f) {
#pragma omp simd
        for (int64_t i = 0; i < w; i++) y[i] = x[i] / sqrtf(s[i]);
    } else {
        for (int64_t i = 0; i < w; i++) y[i] = x[i] / powf(s[i], beta);
    }
}

OT_CLONES static void lrn_block(const lrn *l, float *y, const float *x, int64_t w)
{
    for (int64_t ch = 0; ch < l->channels; ch++) {
        int64_t first = ot_max(0, ch - l->before),
                last = ot_min(l->channels - 1 - ch, l->after) + ch;
        float s[POSITIONS] = {0};
        for (int64_t k = first; k <= last; k++) {
            const float *row = x + k * l->inner;
#pragma omp simd
            for (int64_t i = 0; i < w; i++) s[i] += row[i] * row[i];
        }
#pragma omp simd
        for (int64_t i = 0; i < w; i++) s[i] = l->bias + l->alpha * s[i];
        divide(y + ch * l->inner, x + ch * l->inner, s, w, l->beta);
    }
}

static void lrn_share(void *job, int64_t first, int64_t end, uint32_t worker)
{
    const lrn *l = job;
    (void)worker;
    for (int64_t p = first; p < end; p++) {
        int64_t k = p % l->blocks * POSITIONS, at = p / l->blocks * l->channels * l->inner + k;
        lrn_block(l, l->y + at, l->x + at, ot_min(POSITIONS, l->inner - k));
    }
}

ot_status ot_fast_lrn(ot_call *c)
{
    if (ot_call_is_half(c)) return ot_call_widened(c, ot_fast_lrn, 1);
    int64_t size = ot_attr_int(c->node, "size", 0);
    ot_lanes lanes;
    if (!ot_rows_takes(c) || c->in[0]->rank < 2 || size < 1 ||
        !ot_lanes_open(c->in[0], 1, 2, &lanes))
        return ot_op_reference(OT_OP_LRN)(c);
    const ot_nd *x = c->in[0];
    lrn l = {.channels = lanes.n,
             .inner = lanes.inner,
             .before = (size - 1) / 2,
             .after = size / 2,
             .alpha = ot_attr_float(c->node, "alpha", 0.0001f) / (float)size,
             .beta = ot_attr_float(c->node, "beta", 0.75f),
             .bias = ot_attr_float(c->node, "bias", 1.0f)};
    OT_TRY(ot_call_output(c, 0, OT_F32, x->rank, x->dims));
    if (!ot_rows_wants(c, 0)) return OT_OK;
    l.x = x->data;
    l.y = c->out[0]->data;
    l.blocks = (l.inner + POSITIONS - 1) / POSITIONS;
    int threads = ot_rows_threads(c,
                                  8.0 * (double)lanes.outer * (double)l.channels * (double)l.inner);
    ot_pool_share((uint32_t)threads, lanes.outer * l.blocks, 1, lrn_share, &l);
    return OT_OK;
}
