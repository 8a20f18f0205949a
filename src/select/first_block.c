/* A tensor that comes before all others.
 *
 *   regions as they are asked for   |4|8 |16    |32            |     live 20, resident 60
 *   the first one large             |20        |                     live 20, resident 20
 *
 * An arena that asks the system for ever larger regions keeps those it has, and a tensor that none
 * of their free chunks holds brings the next one, however much is free in all. A tensor as large as
 * what is live at one time, which comes and goes before the branch runs, makes one region for all:
 * later tensors are cut from it. How large it is best is found by simulating: too small, and
 * regions follow; too large, and its own pages are the most that is held. EfficientNet-B0 at
 * 512 x 512: 87 -> 71 MB.
 */
#include "candidates.h"

#define STEPS       9
#define LARGEST     0.75               /* of the growth: larger ones hardly leave room for error */
#define LEAST_BYTES (INT64_C(4) << 20) /* of growth: less is not worth the nodes */
#define MOST_NODES  60000              /* that are written and simulated, in all tries of a lap */
#define GROWTH      0.9  /* is left at most: places are predicted less well than sums */
#define SAVES       0.97 /* of the process */

/* The zeros are written in every run. */
double ot_first_block_seconds(const ot_candidates *x, int64_t bytes)
{
    return (double)bytes / x->t->bw_slow;
}

ot_status ot_candidates_first_block(ot_candidates *x, ot_region_set *won)
{
    ot_sim_figures without, f;
    int64_t best = 0, bytes;
    x->block_s = 0;
    if (!x->how.branch || x->g->model->dynamic_dims) return OT_OK;
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &without));
    if (without.growth < LEAST_BYTES || without.growth == INT64_MAX || without.n_unknown > 0)
        return OT_OK;
    int64_t least = without.growth;
    const int64_t tries = ot_min(STEPS, MOST_NODES / ((int64_t)x->g->n_order + won->n + 1));
    for (int64_t k = 0; k < tries; k++) {
        const double part = LARGEST * (double)(STEPS - k * (STEPS / tries)) / STEPS;
        const int64_t block = (int64_t)(part * (double)without.growth);
        if (block >= least) continue;
        x->how.first_block = block;
        x->block_s = ot_first_block_seconds(x, block);
        if (won->gain - x->unpacked_s - x->block_s < -x->o.max_slowdown * x->untiled_s) continue;
        OT_TRY(ot_candidates_simulate(x, won->all, won->n, &f));
        if (f.growth >= least) continue;
        least = f.growth;
        best = block;
    }
    x->how.first_block = best;
    x->block_s = ot_first_block_seconds(x, best);
    OT_TRY(ot_candidates_simulate(x, won->all, won->n, &f));
    OT_TRY(ot_candidates_score(x, won->all, won->n, &bytes));
    if (ot_dbg['P'])
        fprintf(stderr, "> First block of %.2f MB: growth %.2f MB -> %.2f MB\n",
                (double)best / 1048576.0, (double)without.growth / 1048576.0,
                (double)f.growth / 1048576.0);
    if (best > 0 && bytes < won->bytes && (double)least <= GROWTH * (double)without.growth &&
        (double)ot_process_bytes(&f) <= SAVES * (double)ot_process_bytes(&without)) {
        won->bytes = bytes;
        return OT_OK;
    }
    x->how.first_block = 0;
    x->block_s = 0;
    return OT_OK;
}
