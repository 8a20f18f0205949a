/* From a chosen interval to a region: the best output form, exact figures, planned memory.
 *
 * The search estimated with three tiles of each count and let no memory fragment. Here every
 * tile is looked at and the region's kernel is planned (bufplan.h): its arena is the working
 * set. A scratchpad must hold that. When it does not,
 *
 *     [16 x 4] does not fit  -->  [16 x 4] with its constants streamed, without tiles in flight, or
 *                            both;
 *                                 [20 x 4], [24 x 4], [16 x 5], [16 x 6]
 *                            -->  the best one that fits; none: again from a smaller tile
 *
 * A cache takes what it gets: the cost model has charged for what does not fit. Where the search
 * took a tile to fit and it does not, finer ones compete with it for time.
 *
 * A tiling that no form expresses, or that loses by its exact figures, gives way to the next
 * best one of its interval that the search had kept: a few at most, then the nodes stay whole.
 */
#include "search.h"

#include "base/watch.h"
#include "tiling/lower/lowering.h"
#include "tiling/forms.h"

#include <float.h>
#include <math.h>

/* forms that take no longer than this differ by less than is predicted well */
#define ABOUT_AS_FAST 1.05
#define ROUNDS        5    /* of smaller tiles for one region */
#define SPILL_ROUNDS  2    /* of those where a cache does not hold a tile */
#define TILINGS_TRIED 4    /* of one interval: the chosen one and the next best */
#define MANY_SINGLE   4    /* tiles that a loop form writes out; more: even tiles are looked for */
#define SAME_PEAK     1.02 /* a peak that is as low as another */
/* another tiling may take that much longer than the search expected of the chosen one */
#define SLOWER 1.25

typedef struct fitting {
    const ot_seq *s;
    ot_walk *w;
    const ot_target *t;
    const ot_plan_options *o;
    ot_fitted_cache *known;
    ot_fit_left *left; /* for the whole graph */
    double slowest;    /* seconds that another tiling may take */
    /* seconds that the region may lose against its nodes untiled for less memory */
    double loss;
    ot_region *best; /* best region that fits so far; valid when found */
    bool found;
} fitting;

/* Whether x is preferred to best. Memory: a lower peak by more than 2 %, or the same peak in
 * less time; time: faster, or as fast with a lower peak. */
static bool preferred(const ot_plan_options *o, const ot_region *r, const ot_region *best)
{
    double a = (double)r->peak, b = (double)best->peak;
    if (o->goal == OT_GOAL_MEMORY)
        return a < b * 0.98 || (a <= b * SAME_PEAK && r->time_tiled < best->time_tiled);
    return r->time_tiled < best->time_tiled * 0.999 ||
           (r->time_tiled <= best->time_tiled * 1.001 && a < b);
}

/* Under a budget, forms that keep it, if there are any; else all that are possible. */
static bool may_take(const ot_plan_options *o, const ot_region *r, bool in_budget)
{
    return r->time_tiled >= 0 && (!in_budget || r->peak <= o->memory_budget);
}

uint32_t ot_best_form(const ot_plan_options *o, const ot_region *forms, uint32_t n, double loss)
{
    bool in_budget = false;
    double fastest = DBL_MAX;
    uint32_t best = OT_NONE;
    for (uint32_t k = 0; k < n; k++)
        in_budget |= forms[k].time_tiled >= 0 && forms[k].peak <= o->memory_budget;
    for (uint32_t k = 0; k < n; k++)
        if (may_take(o, &forms[k], in_budget)) fastest = fmin(fastest, forms[k].time_tiled);
    for (uint32_t k = 0; k < n; k++) {
        const ot_region *r = &forms[k];
        bool slow = r->time_tiled > fastest * ABOUT_AS_FAST + 1e-5 ||
                    (r->time_tiled > fastest && -r->benefit > loss);
        if (!may_take(o, r, in_budget) || slow) continue;
        if (best == OT_NONE || preferred(o, r, &forms[best])) best = k;
    }
    return best;
}

/* Operators of the region in all tiles: what form unrolled writes. */
static double written_nodes(const ot_region *r)
{
    double nodes = r->n_nodes;
    for (uint32_t d = 0; d < r->n_dims; d++) nodes *= r->dims[d].n_tiles;
    return nodes;
}

/* Of the forms that the rewriter accepts, the one with the best exact figures; for memory, among
 * those that are about as fast as the fastest. */
static ot_status pick_form(const fitting *x, ot_fitted *known, unsigned how, ot_region *r,
                           bool *found)
{
    const ot_plan_options *o = x->o;
    ot_region forms[OT_FORM_WHILE + 1];
    const ot_form first = OT_FORM_SCAN, last = OT_FORM_WHILE;
    const ot_runtime *rt = x->t->runtime;
    const double nodes = written_nodes(r), tiles = nodes / r->n_nodes;
    for (ot_form f = first; f <= last; f++) {
        forms[f] = *r;
        forms[f].time_tiled = -1;
        if (!ot_runtime_takes(rt, f) && (f != o->force_form || ot_runtime_one_form(rt))) continue;
        if (o->force_form != OT_FORM_NONE && f != o->force_form && !ot_runtime_one_form(rt))
            continue;
        if (f == OT_FORM_STREAM && f != o->force_form) continue; /* where it pays: stream_plan.c */
        if (f == OT_FORM_UNROLLED && (nodes > 1500 || !ot_runtime_writes_out(rt, tiles))) continue;
        OT_TRY(ot_fitted_form(x->known, x->s, x->t, known, f, how, &forms[f]));
        if (o->max_tensor && forms[f].largest > o->max_tensor) forms[f].time_tiled = -1;
    }
    /* Tiles written out live in the outer graph; loops that hand pieces along do not. */
    bool loops = first <= OT_FORM_PEELED && last >= OT_FORM_PEELED &&
                 forms[OT_FORM_PEELED].time_tiled >= 0;
    if (o->goal == OT_GOAL_MEMORY && r->n_dims == 1 && loops)
        forms[OT_FORM_UNROLLED].time_tiled = -1;
    bool others = false; /* than tiles written out, of which a whole graph has only so many */
    for (ot_form f = first; f <= last; f++)
        others |= f != OT_FORM_UNROLLED && forms[f].time_tiled >= 0;
    if (others && nodes > x->left->written) forms[OT_FORM_UNROLLED].time_tiled = -1;
    uint32_t best = ot_best_form(o, forms + first, (uint32_t)(last - first) + 1, x->loss);
    *found = best != OT_NONE;
    if (*found) *r = forms[first + best];
    return OT_OK;
}

void ot_region_take_memory(ot_region *r, const ot_region_memory *m)
{
    r->working_set = m->height;
    r->working_set_bound = m->lower_bound;
    r->stall = m->stall;
    r->time_tiled += m->stall;
    r->benefit -= m->stall;
}

ot_status ot_region_fit_memory(const ot_seq *s, const ot_target *t, ot_region *r)
{
    ot_region_memory m;
    OT_TRY(ot_region_plan_memory(s->g, r, t, s->g->model->diag, &m, NULL));
    ot_region_take_memory(r, &m);
    return OT_OK;
}

static ot_status plan_memory(const fitting *x, ot_fitted *known, unsigned how, ot_region *r,
                             bool *fits)
{
    OT_TRY(ot_fitted_memory(x->known, x->s, x->t, known, how, r));
    *fits = !ot_target_hard_limit(x->t) || r->working_set <= ot_target_room(x->t);
    return OT_OK;
}

static void dump_try(const fitting *x, const ot_choice *c, unsigned how, const ot_region *r,
                     bool form, bool fits)
{
    fprintf(stderr, "  [%u,%u] tile", c->first, c->end);
    for (uint32_t d = 0; d < c->n_dims; d++)
        fprintf(stderr, "%s%lld", d ? "," : " ", (long long)c->tile[d]);
    fprintf(stderr, "%s%s: ", how & OT_FIT_STREAM ? " constants streamed" : "",
            how & OT_FIT_SINGLE ? " one slot" : "");
    if (!form)
        fprintf(stderr, "no form, or estimated above %lld bytes\n",
                (long long)ot_target_room(x->t));
    else
        fprintf(stderr, "%s, %.3f ms, %lld bytes planned, %lld at once%s%s\n",
                ot_form_name(r->form), r->time_tiled * 1e3, (long long)r->working_set,
                (long long)r->working_set_bound, r->weights_stay ? ", constants stay" : "",
                !fits                        ? ": too much"
                : r->time_tiled > x->slowest ? ": too slow"
                                             : "");
}

/* Choice c as a region, as `how` says. */
static ot_status try_choice(fitting *x, const ot_choice *c, unsigned how, ot_region *r)
{
    ot_fitted *known;
    bool form, fits;
    OT_TRY(ot_watch_look(x->s->g->model->diag));
    OT_TRY(ot_fitted_region(x->known, x->s, x->w, c, &known));
    ot_fitted_built(known, r);
    OT_TRY(pick_form(x, known, how, r, &form));
    fits = form;
    if (form) OT_TRY(plan_memory(x, known, how, r, &fits));
    if (ot_dbg['W']) dump_try(x, c, how, r, form, fits);
    bool instead = x->slowest < DBL_MAX; /* of what the search chose */
    fits = fits && r->time_tiled <= x->slowest && (!instead || -r->benefit <= x->loss);
    if (!fits || (x->found && !preferred(x->o, r, x->best))) return OT_OK;
    *x->best = *r;
    x->found = true;
    return OT_OK;
}

/* Next smaller tiles along d: one of the counts that the search tries, and a quarter more tiles.
 * Returns how many. */
static uint32_t smaller_tiles(const ot_graph *g, const ot_region *r, uint32_t d, int64_t tile,
                              int64_t *out)
{
    int64_t tiles[OT_COUNTS_MAX], extent = r->dims[d].extent;
    uint32_t n = 0, count = g->model->dynamic_dims
                                ? ot_candidate_dynamic_tiles(extent, OT_COUNTS_MAX, tiles)
                                : ot_candidate_tiles(extent, OT_COUNTS_MAX, false, tiles);
    for (uint32_t k = 0; k < count && n == 0; k++)
        if (tiles[k] < tile) out[n++] = tiles[k];
    int64_t more = ot_ceil_div(extent, ot_ceil_div((int64_t)r->dims[d].n_tiles * 5, 4));
    if (more >= 1 && more < tile && (n == 0 || more != out[0])) out[n++] = more;
    return n;
}

/* The same tiling with less beside its tiles. */
static ot_status try_leaner(fitting *x, const ot_choice *c)
{
    ot_region r;
    for (unsigned how = 1; how <= (OT_FIT_STREAM | OT_FIT_SINGLE) && x->left->tries > 0;
         how++, --x->left->tries)
        if (!(how & OT_FIT_SINGLE) || x->t->double_buffer) OT_TRY(try_choice(x, c, how, &r));
    return OT_OK;
}

/* Tilings a little finer than c, which did not fit. *c: the coarsest of the finer ones, to go on
 * from. */
static ot_status try_finer(fitting *x, ot_choice *c, const ot_region *r, bool *more)
{
    ot_choice next = *c;
    uint32_t split = OT_NONE;
    ot_region finer;
    *more = false;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        int64_t tiles[2];
        uint32_t n = smaller_tiles(x->s->g, r, d, c->tile[d], tiles);
        for (uint32_t k = 0; k < n && x->left->tries > 0; k++, --x->left->tries) {
            ot_choice f = *c;
            f.tile[d] = tiles[k];
            OT_TRY(try_choice(x, &f, 0, &finer));
        }
        if (n == 0 || (split != OT_NONE && r->dims[d].n_tiles >= r->dims[split].n_tiles)) continue;
        split = d; /* the dimension with the fewest tiles */
        next = *c;
        next.tile[d] = tiles[0];
        *more = true;
    }
    *c = next;
    return OT_OK;
}

/* Tiles of the chosen region stream through a cache that the search took to hold them. For less
 * memory what they hold counts, and not where. */
static bool spills(const fitting *x)
{
    const ot_plan_options *o = x->o;
    const bool for_time = o->goal == OT_GOAL_TIME && o->memory_budget == 0 &&
                          o->search.price == 0 && o->max_tensor == 0 &&
                          o->force_form == OT_FORM_NONE && !o->force;
    return for_time && !ot_target_hard_limit(x->t) && x->best->working_set > ot_target_room(x->t);
}

/* Tiles a little finer than c, until the cache holds them; the best by its exact figures stays. */
static ot_status try_in_cache(fitting *x, const ot_choice *c)
{
    const double slowest = x->slowest;
    ot_choice finer = *c;
    bool more = true;
    x->slowest = x->best->time_tiled;
    for (uint32_t round = 0; round < SPILL_ROUNDS && more && spills(x) && x->left->tries > 0;
         round++) {
        ot_fitted *known;
        OT_TRY(ot_fitted_region(x->known, x->s, x->w, &finer, &known));
        ot_region built;
        ot_fitted_built(known, &built);
        OT_TRY(try_finer(x, &finer, &built, &more));
    }
    x->slowest = slowest;
    return OT_OK;
}

/* Coarser tilings than c, which no form expresses: tiles of too many kinds. */
static ot_status try_coarser(fitting *x, const ot_choice *c, ot_region *r)
{
    ot_choice next = *c;
    for (uint32_t round = 0; !x->found && round < ROUNDS && x->left->tries > 0;
         round++, --x->left->tries) {
        uint32_t most = 0;
        for (uint32_t d = 1; d < r->n_dims; d++)
            if (r->dims[d].n_tiles > r->dims[most].n_tiles) most = d;
        if (r->dims[most].n_tiles < 4) return OT_OK;
        next.tile[most] = ot_ceil_div(r->dims[most].extent, r->dims[most].n_tiles / 2);
        OT_TRY(try_choice(x, &next, 0, r));
    }
    return OT_OK;
}

/* Tiles of r that its form writes out one by one, each with weights that the runtime packs once
 * more. Fails: OT_E_NOMEM. */
static ot_status count_single(const fitting *x, const ot_region *r, uint32_t *single)
{
    ot_form_tiles tiles = {.g = x->s->g, .r = r, .arena = ot_arena_new()};
    bool legal = false;
    ot_why why;
    *single = 0;
    if (!tiles.arena) return ot_fail_nomem(x->s->g->model->diag);
    ot_status st = ot_form_prepare(&tiles, r->form, &legal, &why);
    for (uint32_t k = 0; st == OT_OK && legal && k < tiles.dims[0].n_runs; k++)
        *single += tiles.dims[0].runs[k].count == 1;
    ot_arena_free(tiles.arena);
    return st;
}

/* The next extent above `tile` that divides `extent`, at most twice as long; 0: there is none. */
static int64_t divisor_above(int64_t extent, int64_t tile)
{
    for (int64_t t = tile + 1; t <= 2 * tile && 2 * t <= extent; t++)
        if (extent % t == 0) return t;
    return 0;
}

/* Where an extent of tiles that does not divide the axis makes tiles of many kinds, as it does
 * behind a Resize by 2 with odd ones, one that divides it is taken: the tiles in the middle look
 * alike then, and one loop runs them.
 *
 *     512 rows in tiles of 11    47 bodies            in tiles of 16    first, 30 in a loop, last
 */
static ot_status even_out(fitting *x, const ot_choice *c)
{
    const ot_region chosen = *x->best;
    uint32_t before, after;
    ot_choice even = *c;
    if (chosen.n_dims != 1 || chosen.form != OT_FORM_PEELED || x->o->force_form != OT_FORM_NONE ||
        x->left->tries == 0)
        return OT_OK;
    OT_TRY(count_single(x, &chosen, &before));
    even.tile[0] = before > MANY_SINGLE ? divisor_above(chosen.dims[0].extent, chosen.dims[0].tile)
                                        : 0;
    if (even.tile[0] == 0) return OT_OK;
    ot_region r;
    x->left->tries--;
    x->found = false;
    OT_TRY(try_choice(x, &even, 0, &r));
    if (x->found) {
        OT_TRY(count_single(x, x->best, &after));
        x->found = x->best->form != OT_FORM_UNROLLED && after < before;
    }
    if (!x->found) *x->best = chosen;
    x->found = true;
    return OT_OK;
}

/* Bytes of granules that r moves. */
static ot_status count_granules(const fitting *x, const ot_region *r, double *moved)
{
    ot_arena *scratch = ot_arena_new();
    if (!scratch) return ot_fail_nomem(x->s->g->model->diag);
    ot_status st = ot_granules_moved(x->s->g, r, x->t->granule, scratch, moved);
    ot_arena_free(scratch);
    return st;
}

/* No time, and no memory, or where only time is asked for about the same. */
static bool costs_nothing(const ot_plan_options *o, const ot_region *r, const ot_region *chosen)
{
    const bool counts = o->goal == OT_GOAL_MEMORY || o->memory_budget > 0;
    const double peak = (double)chosen->peak * (counts ? 1 : SAME_PEAK);
    return r->time_tiled <= chosen->time_tiled && (double)r->peak <= peak;
}

/* The tiling c in place of the best one, where it moves fewer granules and costs nothing. */
static ot_status try_snapped(fitting *x, const ot_choice *c)
{
    const ot_region chosen = *x->best;
    const double slowest = x->slowest;
    double before, after = 0;
    ot_region r;
    OT_TRY(count_granules(x, &chosen, &before));
    x->left->tries--;
    x->found = false;
    x->slowest = chosen.time_tiled;
    OT_TRY(try_choice(x, c, 0, &r));
    x->slowest = slowest;
    if (x->found) OT_TRY(count_granules(x, x->best, &after));
    if (x->found && after > 0 && after < before && costs_nothing(x->o, x->best, &chosen))
        return OT_OK;
    *x->best = chosen;
    x->found = true;
    return OT_OK;
}

/* Tiles of whole granules of the DMA, the next longer ones or the next shorter ones. */
static ot_status snap(fitting *x, const ot_choice *c)
{
    for (uint32_t d = 0; d < x->best->n_dims; d++) {
        const int64_t unit = ot_granule_steps(x->s->g, x->best, d, x->t->granule),
                      extent = x->best->dims[d].extent;
        const int64_t tile = x->best->dims[d].tile;
        for (uint32_t k = 0;
             k < 2 && unit > 1 && x->best->dims[d].tile % unit != 0 && x->left->tries > 0; k++) {
            ot_choice next = *c;
            for (uint32_t e = 0; e < c->n_dims; e++) next.tile[e] = x->best->dims[e].tile;
            next.tile[d] = (tile / unit + (k == 0)) * unit;
            if (next.tile[d] > 0 && next.tile[d] < extent) OT_TRY(try_snapped(x, &next));
        }
    }
    return OT_OK;
}

static ot_status fit(const ot_fit_request *q, const ot_choice *choice, double loss, ot_region *out,
                     bool *found)
{
    const ot_seq *s = q->s;
    ot_walk *w = q->w;
    const ot_target *t = q->t;
    const ot_plan_options *o = q->o;
    ot_fit_left *left = q->left;
    ot_region best = {0};
    fitting x = {.s = s,
                 .w = w,
                 .t = t,
                 .o = o,
                 .known = q->known,
                 .left = left,
                 .slowest = DBL_MAX,
                 .loss = loss,
                 .best = &best};
    ot_choice c = *choice;
    bool more = true;
    OT_TRY(try_choice(&x, &c, 0, out));
    /* The search chose within what the goal allows: what comes in its place must not take much
     * longer. */
    double allowed = o->goal == OT_GOAL_MEMORY ? 1 + o->max_slowdown : 1;
    if (!o->force && !o->max_tensor)
        x.slowest = fmax(SLOWER * c.time, allowed * (s->time[c.end + 1] - s->time[c.first]));
    if ((ot_runtime_in_classes(t->runtime) || t->runtime->written_most > 0) &&
        !ot_target_hard_limit(t) && !x.found) {
        ot_region coarse = *out;
        OT_TRY(try_coarser(&x, &c, &coarse));
    }
    if (x.found && o->search.byte_seconds > 0 && !ot_target_hard_limit(t)) OT_TRY(even_out(&x, &c));
    if (x.found && spills(&x)) OT_TRY(try_in_cache(&x, &c));
    bool fitted = x.found || (!ot_target_hard_limit(t) && !o->max_tensor);
    if (!fitted && ot_target_hard_limit(t)) OT_TRY(try_leaner(&x, &c));
    for (uint32_t round = 0; !fitted && round < ROUNDS && more && left->tries > 0; round++) {
        ot_region r = *out;
        ot_fitted *known;
        if (round > 0) {
            OT_TRY(ot_fitted_region(x.known, s, w, &c, &known));
            ot_fitted_built(known, &r);
        }
        OT_TRY(try_finer(&x, &c, &r, &more));
        fitted = x.found;
    }
    if (x.found && t->runtime->motion == OT_MOTION_DMA && !s->g->model->dynamic_dims)
        OT_TRY(snap(&x, choice));
    if (x.found) *out = best;
    if (x.found && out->form == OT_FORM_UNROLLED) left->written -= written_nodes(out);
    *found = x.found;
    return OT_OK;
}

/* ---- other tilings of an interval ---- */

ot_status ot_interval_ends_list(const ot_seq *s, const ot_interval_path *path, ot_interval_ends *x)
{
    *x = (ot_interval_ends){path, OT_NEW_N(s->arena, uint32_t, s->n + 1u),
                            OT_NEW_N(s->arena, uint32_t, path->n_pool + 1u)};
    if (!x->head || !x->next) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t p = 0; p <= s->n; p++) x->head[p] = OT_NONE;
    for (uint32_t k = 0; k < path->n_pool; k++) {
        x->next[k] = x->head[path->pool[k]->end];
        x->head[path->pool[k]->end] = k;
    }
    return OT_OK;
}

static bool same_tiling(const ot_choice *a, const ot_choice *b)
{
    bool same = a->n_dims == b->n_dims && a->out_index == b->out_index;
    for (uint32_t d = 0; same && d < a->n_dims; d++)
        same = a->axes[d] == b->axes[d] && a->tile[d] == b->tile[d];
    return same;
}

/* The fastest other tiling of the interval of tried[0] that is in none of tried [n]; NULL: there
 * is none that is worth it. */
static const ot_choice *next_best(const ot_seq *s, const ot_interval_ends *x,
                                  const ot_choice *const *tried, uint32_t n)
{
    const ot_choice *best = NULL;
    const uint32_t first = tried[0]->first, end = tried[0]->end;
    const double slowest = fmax(s->time[end + 1] - s->time[first], tried[0]->time);
    for (uint32_t k = x->head[end]; k != OT_NONE; k = x->next[k]) {
        const ot_choice *c = x->path->pool[k];
        bool known = c->first != first || c->time > slowest || (best && c->time >= best->time);
        for (uint32_t i = 0; i < n && !known; i++) known = same_tiling(c, tried[i]);
        if (!known) best = c;
    }
    return best;
}

bool ot_region_loses(const ot_seq *s, const ot_target *t, const ot_plan_options *o,
                     const ot_region *r)
{
    return !o->force && o->goal == OT_GOAL_TIME && o->memory_budget == 0 &&
           r->benefit <= -s->time[s->n] * t->runtime->about;
}

/* Estimates are not exact figures: what is refused then is what was chosen. */
ot_status ot_region_fit(const ot_fit_request *q, const ot_choice *choice, double loss,
                        ot_region *out, bool *found)
{
    const ot_plan_options *o = q->o;
    const ot_choice *tried[TILINGS_TRIED] = {choice};
    ot_region first;
    bool first_found;
    if (o->max_tensor) loss = DBL_MAX;
    OT_TRY(fit(q, choice, loss, out, found));
    first = *out;
    first_found = *found;
    for (uint32_t n = 1; n < TILINGS_TRIED && q->left->tries > 0 &&
                         (!*found || ot_region_loses(q->s, q->t, o, out));
         n++, q->left->tries--) {
        tried[n] = next_best(q->s, q->ends, tried, n);
        if (!tried[n]) break;
        OT_TRY(fit(q, tried[n], loss, out, found));
    }
    if (!*found || ot_region_loses(q->s, q->t, o, out)) *out = first, *found = first_found;
    return OT_OK;
}
