/* What a plan for dynamic dimensions takes at a smaller size than its design's.
 *
 *   design       whole values ===============  a tile ==  tiles may be large: the peak is elsewhere
 *   half of it   whole values =========        a tile ==  and is in them here
 *
 * The rows of a tile are the same at every size. So a plan is scored at both sizes: by what it
 * scores of what the untiled model scores there and there, in the mean. The regions are written as
 * they are for every size: such as are too short there for a first and a last tile run untiled.
 */
#include "candidates.h"

#include "ops/ops.h"
#include "ops/dynamic_dims.h"
#include "alloc_sim/alloc_sim.h"
#include "tiling/forms.h"
#include "transform/transform.h"

#include <math.h>

/* Extents of tiles that are tried beside those of the set that won: parts of WHOLE. The search
 * has powers of two and three times such, and the time that the user allows is rarely used up by
 * these. */
static const int PARTS[] = {4, 5, 6, 7, 10, 12};
#define N_PARTS (sizeof PARTS / sizeof *PARTS)
#define WHOLE   8
#define ROWS    8

/* The regions with the extents that they have in `small`; such as run untiled there stay whole. */
static ot_status resize(const ot_candidates *x, const ot_graph *small, const ot_region *regions,
                        uint32_t n, ot_region *out, uint32_t *kept)
{
    *kept = 0;
    for (uint32_t k = 0; k < n; k++) {
        ot_region r = regions[k];
        const ot_rvalue *sink = &r.values[r.dims[0].sink];
        const ot_value *v = &small->values[sink->value];
        bool legal = false;
        ot_why why;
        if (r.n_dims != 1 || !ot_value_is_static(v)) continue;
        r.dims[0].extent = v->dims[sink->axis[0]];
        r.dims[0].n_tiles = ot_tile_count(r.dims[0].extent, r.dims[0].tile);
        OT_TRY(ot_form_recall_legal(x->small_memo, small, &r, r.form, &legal, &why));
        if (legal) out[(*kept)++] = r;
    }
    return OT_OK;
}

/* What the process takes with the regions at the small size, as far as its score there is at most
 * `most`; *known false: they cannot be written there. */
static ot_status simulate(const ot_candidates *x, const ot_graph *small, const ot_region *regions,
                          uint32_t n, int64_t most, ot_sim_figures *f, bool *known)
{
    const ot_score_limit limit = {.base = &x->small_base, .most = most};
    const ot_sim_stop stop = ot_score_stop(&limit);
    ot_model *copy = NULL;
    ot_diag aside = {0};
    ot_plan some = {.outer_weights = x->t->runtime->outer_weights && !x->how.data_file,
                    .looped_borders = x->t->runtime->looped_borders,
                    .slices_apart = x->t->runtime->slices_apart,
                    .nests_scans = x->t->runtime->nests_scans,
                    .memo = x->small_memo};
    ot_arena *a = ot_arena_new();
    ot_form_memo_next(x->small_memo);
    some.regions = a ? OT_NEW_N(a, ot_region, n + 1u) : NULL;
    ot_status s = some.regions ? ot_model_sketch(small->model, &copy) : OT_E_NOMEM;
    if (s == OT_OK) {
        copy->diag = &aside;
        some.arena = copy->arena;
        copy->data_file = x->how.data_file;
        copy->dynamic_dims = x->g->model->dynamic_dims;
        s = resize(x, copy->graph, regions, n, some.regions, &some.n_regions);
        for (uint32_t k = 0; k < some.n_regions; k++) some.regions[k].id = k;
        if (s == OT_OK && ot_candidates_unpack(x)) ot_mark_writing(copy->graph, &x->how);
        if (s == OT_OK) s = ot_fold_static(copy->graph, &some);
        if (s == OT_OK) s = ot_transform_tiles(copy->graph, &some);
        if (s == OT_OK && x->how.branch) s = ot_branch(copy, false);
        if (s == OT_OK) s = ot_assure(copy->graph, OT_P_ORDER | OT_P_USES);
        if (s == OT_OK) s = ot_candidates_growth(x, copy->graph, x->static_shape, &stop, f);
        ot_model_free(copy);
    }
    ot_arena_free(a);
    *known = s == OT_OK;
    return s == OT_E_NOMEM ? ot_fail_nomem(x->g->model->diag) : OT_OK;
}

/* The same, once for each set. With -d P each is simulated, as at the design's size. */
static ot_status simulate_once(ot_candidates *x, const ot_graph *small, const ot_region *regions,
                               uint32_t n, int64_t most, ot_simulated *out)
{
    const uint64_t key = ot_written_key(x, regions, n);
    const ot_simulated *known = ot_dbg['P'] ? NULL : ot_simulations_find(&x->small_simulated, key);
    if (known) {
        const ot_sim_figures *f = &known->figures;
        *out = *known;
        if (!known->is_written || !f->is_cut || ot_score_bytes(f, &x->small_base) > most)
            return OT_OK;
    }
    *out = (ot_simulated){0};
    OT_TRY(simulate(x, small, regions, n, most, &out->figures, &out->is_written));
    return ot_simulations_keep(&x->small_simulated, x->arena, key, out)
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

/* x->small_base, once. */
static ot_status look_small(ot_candidates *x, const ot_graph *small)
{
    ot_sim_figures f;
    if (x->looked_small) return OT_OK;
    x->looked_small = true;
    if (ot_sim_growth(small, x->t->runtime, x->static_shape, &f) != OT_OK)
        return ot_fail_nomem(x->g->model->diag);
    if (f.n_unknown == 0 && f.growth > 0) x->small_base = ot_score_base_of(&f, &f);
    return OT_OK;
}

/* Of the score there, the most with which that of both sizes is at most `most`. */
static int64_t most_there(const ot_candidates *x, int64_t bytes, int64_t most)
{
    if (most >= INT64_MAX / 2 || x->base.untiled <= 0) return INT64_MAX;
    const double there = ((double)most * 2 + 2 - (double)bytes) / (double)x->base.untiled *
                         (double)x->small_base.untiled;
    if (there <= 0) return 0;
    return there < 0x1p60 ? (int64_t)there : INT64_MAX;
}

/* *small: the graph at the smaller size; NULL: a score there does not count. */
static ot_status find_small(ot_candidates *x, const ot_graph **small)
{
    const ot_graph *g = x->g->model->dynamic_dims ? x->g->model->dynamic_dims->small : NULL;
    *small = NULL;
    if (x->at_design || !g || x->untiled.growth <= 0) return OT_OK;
    OT_TRY(look_small(x, g));
    if (x->small_base.process > 0) *small = g;
    return OT_OK;
}

/* Bytes of the design's score for which a score there counts. */
static double as_here(const ot_candidates *x, const ot_sim_figures *f)
{
    return (double)ot_score_bytes(f, &x->small_base) / (double)x->small_base.untiled *
           (double)x->base.untiled;
}

ot_status ot_candidates_both(ot_candidates *x, const ot_region *regions, uint32_t n, int64_t most,
                             int64_t *bytes)
{
    const ot_graph *small;
    ot_simulated at;
    if (*bytes == INT64_MAX) return OT_OK;
    OT_TRY(find_small(x, &small));
    if (!small) return OT_OK;
    OT_TRY(simulate_once(x, small, regions, n, most_there(x, *bytes, most), &at));
    const ot_sim_figures *f = &at.figures;
    if (!at.is_written) return OT_OK;
    if (f->is_cut) {
        *bytes = INT64_MAX;
        return OT_OK;
    }
    if (ot_dbg['P'])
        fprintf(stderr, "> Smaller size: %.2f MB, x%.3f\n", (double)f->growth / 1048576.0,
                (double)ot_score_bytes(f, &x->small_base) / (double)x->small_base.untiled);
    *bytes = (int64_t)(((double)*bytes + as_here(x, f)) / 2);
    return OT_OK;
}

ot_status ot_candidates_small_first(ot_candidates *x, const ot_region *regions, uint32_t n,
                                    int64_t most, int64_t *here)
{
    const ot_graph *small;
    ot_simulated at;
    *here = most < INT64_MAX / 2 && x->g->model->dynamic_dims ? 2 * most : most;
    if (most >= INT64_MAX / 2 || x->base.untiled <= 0 || ot_dbg['P']) return OT_OK;
    OT_TRY(find_small(x, &small));
    if (!small) return OT_OK;
    OT_TRY(simulate_once(x, small, regions, n, most_there(x, 0, most), &at));
    if (!at.is_written) return OT_OK;
    *here = at.figures.is_cut ? -1 : (int64_t)fmax(-1, (double)*here + 2 - as_here(x, &at.figures));
    return OT_OK;
}

/* *best: of all sets the one that scores best at the design size, where that is less than what
 * *won takes there; else it has no regions. */
static ot_status best_at_design(ot_candidates *x, const ot_region_set *won, ot_region_set *best)
{
    int64_t least;
    best->n = 0;
    OT_TRY(ot_candidates_score(x, won->all, won->n, &least));
    for (size_t k = 0; k < x->n_sets; k++) {
        ot_region_set at = x->sets[k];
        OT_TRY(ot_candidates_score(x, at.all, at.n, &at.bytes));
        if (at.bytes >= least) continue;
        least = at.bytes;
        *best = at;
    }
    return best->n > 0 ? ot_candidates_climb(x, best) : OT_OK;
}

ot_status ot_candidates_at_design(ot_candidates *x, ot_region_set *won)
{
    ot_region_set best;
    if (!x->g->model->dynamic_dims || !x->g->model->dynamic_dims->small) return OT_OK;
    x->at_design = true;
    const ot_status s = best_at_design(x, won, &best);
    x->at_design = false;
    OT_TRY(s);
    if (best.n == 0) return OT_OK;
    OT_TRY(ot_candidates_score(x, best.all, best.n, &best.bytes));
    if (ot_dbg['P'])
        fprintf(stderr, "> Best at the design size: %.2f MB at both, %u regions\n",
                (double)best.bytes / 1048576.0, best.n);
    if (best.bytes < won->bytes) *won = best;
    return OT_OK;
}

/* ---- tiles of other extents ---- */

/* Regions like those of the set ([set->n * N_PARTS] in out), in tiles a part as long: of whole
 * multiples of ROWS. Steps of streams come in all lengths anyway. Returns how many. */
static uint32_t vary(const ot_region_set *set, ot_region *out)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < set->n; k++) {
        const int64_t tile = set->all[k].dims[0].tile;
        for (uint32_t i = 0;
             i < N_PARTS && set->all[k].form != OT_FORM_STREAM && set->all[k].n_dims == 1; i++) {
            const int64_t other = tile * PARTS[i] / WHOLE / ROWS * ROWS;
            if (other < ROWS || other == tile) continue;
            out[n] = set->all[k];
            out[n++].dims[0].tile = other;
        }
    }
    return n;
}

ot_status ot_candidates_vary(ot_candidates *x, ot_region_set *won)
{
    ot_plan *p;
    if (!x->g->model->dynamic_dims || !x->g->model->dynamic_dims->small || won->n == 0)
        return OT_OK;
    ot_region *like = OT_NEW_N(x->arena, ot_region, won->n * N_PARTS);
    if (!like) return ot_fail_nomem(x->g->model->diag);
    const uint32_t n = vary(won, like);
    if (n == 0) return OT_OK;
    OT_TRY(ot_plan_like(x->g, x->t, like, n, false, &p));
    OT_TRY(ot_candidates_offer(x, p));
    return ot_candidates_climb(x, won);
}
