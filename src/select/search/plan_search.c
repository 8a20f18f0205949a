/* The planner's driver: sequence -> barriers -> dynamic programming -> tie-break -> regions with
 * exact figures (exact_fit.c).
 *
 * A region whose exact benefit turns out not to be positive is dropped again and listed as
 * refused, with the numbers. A plan that exact figures find to pass a limit gives way to the
 * best one of all regions at hand (recombine.c).
 */
#include "search.h"

#include "tiling/reassemble_types.h"

#include <math.h>

#define BAN_ROUNDS     3 /* plans that are made again without what no form expresses */
#define LIMIT_ATTEMPTS 3 /* to keep a budget */
#define MANY_NODES     1500
#define REST           64 /* regions of other paths that are built when a limit is missed */
#define REST_LARGE     16 /* beyond MANY_NODES */
/* blocks of channels are padded, and rows that are put together are there twice for a moment:
 * what is predicted of streams in the engine does not count that (measured: x1.0 to 1.6) */
#define TWO_LAYOUTS 1.3

static ot_status list_barriers(const ot_seq *s, ot_plan *p)
{
    p->barriers = OT_NEW_N(s->arena, ot_barrier, s->n + 1u);
    if (!p->barriers) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t k = 0; k < s->n; k++) {
        ot_why why;
        OT_TRY(ot_barrier_reason(s, s->node[k], &why));
        if (why) p->barriers[p->n_barriers++] = (ot_barrier){s->node[k], {why, 0}};
    }
    return OT_OK;
}

static ot_status refuse(const ot_seq *s, ot_plan *p, const ot_region *r, ot_reason reason)
{
    ot_id *nodes = OT_NEW_N(p->arena, ot_id, r->n_nodes + 1u);
    if (!nodes) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t k = 0; k < r->n_nodes; k++) nodes[k] = r->nodes[k].node;
    p->refused[p->n_refused++] = (ot_refusal){nodes, r->n_nodes, reason};
    return OT_OK;
}

static void ban(ot_limit *limit, const ot_choice *c)
{
    if (limit->n_banned == OT_BANNED_MAX) return;
    const bool sums = limit->most == 0 && c->out_index == OT_SUM_SINK;
    limit->banned[limit->n_banned++] = (ot_banned){sums ? OT_NONE : c->first, c->end};
}

/* Room for so many more, and no more: of a large graph there are tens of thousands. */
static bool reserve(const ot_seq *s, ot_region_pool *x, uint32_t more)
{
    if (x->cap - x->n >= more) return true;
    ot_region *all = OT_NEW_N(s->arena, ot_region, (size_t)x->n + more);
    if (all && x->n > 0) memcpy(all, x->all, x->n * sizeof *all);
    x->all = all;
    x->cap = (size_t)x->n + more;
    return all != NULL;
}

static ot_status build_regions(ot_planner *x, const ot_plan_options *o, ot_limit *limit,
                               const ot_interval_path *path, ot_plan *p, ot_region_pool *built)
{
    const ot_seq *s = &x->s;
    const ot_target *t = x->t;
    ot_interval_ends at;
    p->regions = OT_NEW_N(p->arena, ot_region, path->n + 1u);
    p->refused = OT_NEW_N(s->arena, ot_refusal, (size_t)path->n + s->n + 1u);
    if (!p->regions || !p->refused) return ot_fail_nomem(s->g->model->diag);
    if (!reserve(s, built, path->n)) return ot_fail_nomem(s->g->model->diag);
    OT_TRY(ot_interval_ends_list(s, path, &at));
    ot_fit_left left = {OT_FIT_TRIES, OT_FIT_WRITTEN};
    const ot_fit_request q = {s, &x->w, t, o, &at, &x->fitted, &left};
    /* what regions may take beyond what was estimated of them */
    double spare = ot_time_allowed(s, o) - path->time;
    for (uint32_t k = 0; k < path->n; k++) {
        const ot_choice *c = path->steps[k];
        ot_region r;
        bool found;
        double gain = s->time[c->end + 1] - s->time[c->first] - c->time;
        OT_TRY(ot_region_fit(&q, c, spare - gain, &r, &found));
        spare += (found ? r.benefit : 0) - gain;
        bool needed = limit->n_large > 0 && ot_limit_needs(limit, s, &r);
        if (!found && (needed || limit->most == 0)) ban(limit, c);
        if (!found) {
            ot_why types = ot_runtime_in_classes(t->runtime) ? OT_WHY_NONE
                                                             : ot_reassemble_refusal(s->g, &r);
            ot_why why = ot_target_hard_limit(t)   ? OT_WHY_NO_FORM_FITS
                         : t->runtime->cannot != 0 ? OT_WHY_NO_FORM_OF_RUNTIME
                                                   : OT_WHY_NO_EXACT_FORM;
            OT_TRY(refuse(s, p, &r, (ot_reason){types != OT_WHY_NONE ? types : why, 0}));
            continue;
        }
        if (!needed && ot_region_loses(s, t, o, &r)) {
            OT_TRY(refuse(s, p, &r, (ot_reason){OT_WHY_LOSES, -r.benefit}));
            continue;
        }
        r.id = o->search.first_region + p->n_regions;
        p->regions[p->n_regions++] = r;
        if (!OT_PUSH(s->arena, built->all, built->n, built->cap, r))
            return ot_fail_nomem(s->g->model->diag);
    }
    return OT_OK;
}

static double compulsory(const ot_seq *s)
{
    const ot_graph *g = s->g;
    double sum = 0;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *x = &g->values[v];
        bool weight = x->init && x->n_uses > 0;
        if ((x->is_input && !x->init) || x->is_output || weight) sum += (double)s->bytes[v];
    }
    return sum;
}

/* Bytes of values that exist in tiles only, while the untiled node at each step of their region's
 * interval runs (before or after the region):
 *
 *      region          first  .  .  .  last
 *      value                def ------------- last reader
 *      in tiles             +held  .   .    -held              sums of these: [s->n] bytes
 */
static int64_t *in_tiles_alone(const ot_seq *s, const ot_plan *p)
{
    int64_t *bytes = ot_alloc_n(s->arena, s->n + 2u, sizeof *bytes);
    for (uint32_t j = 0; bytes && j < p->n_regions; j++) {
        const ot_region *r = &p->regions[j];
        for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
            const ot_id id = r->values[v].value;
            if (r->values[v].is_output || s->last[id] == OT_NONE) continue;
            const uint32_t from = s->def[id] > r->first ? s->def[id] : r->first,
                           to = s->last[id] < r->last ? s->last[id] : r->last;
            if (from > to) continue; /* def OT_NONE: of nothing */
            bytes[from] += s->held[id];
            bytes[to + 1] -= s->held[id];
        }
    }
    for (uint32_t k = 1; bytes && k < s->n; k++) bytes[k] += bytes[k - 1];
    return bytes;
}

/* Whole-model figures of the plan: regions replace their intervals. */
static ot_status total(const ot_seq *s, ot_plan *p)
{
    bool *inside = ot_alloc_n(s->arena, s->n + 1u, sizeof *inside);
    const int64_t *in_tiles = in_tiles_alone(s, p);
    if (!inside || !in_tiles) return ot_fail_nomem(s->g->model->diag);
    p->compulsory_bytes = compulsory(s);
    p->untiled = (ot_figures){
        .time_s = s->time[s->n], .peak_bytes = s->peak, .traffic_bytes = s->traffic[s->n]};
    p->tiled = p->untiled;
    for (uint32_t k = 0; k < s->n; k++) p->untiled.macs += s->macs[k];
    p->tiled.macs = p->untiled.macs;
    p->tiled.peak_bytes = 0;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        double macs = 0;
        p->tiled.time_s -= r->benefit;
        p->tiled.traffic_bytes += r->traffic - r->traffic_untiled;
        p->tiled.peak_bytes = ot_max(p->tiled.peak_bytes, r->peak);
        for (uint32_t i = 0; i < r->n_nodes; i++) {
            uint32_t pos = s->pos[r->nodes[i].node];
            macs += s->macs[pos];
            inside[pos] = true;
        }
        p->tiled.macs += macs * (r->mac_ratio - 1);
    }
    for (uint32_t k = 0; k < s->n; k++)
        if (!inside[k]) p->tiled.peak_bytes = ot_max(p->tiled.peak_bytes, s->live[k] - in_tiles[k]);
    if (p->n_regions == 0) p->tiled = p->untiled;
    return OT_OK;
}

/* Fill p's figures, of which only its regions count. */
static ot_status total_of(ot_planner *x, ot_plan *p)
{
    ot_arena *scratch = ot_arena_new();
    if (!scratch) return ot_fail_nomem(x->g->model->diag);
    x->s.arena = scratch;
    const ot_status s = total(&x->s, p);
    x->s.arena = x->arena;
    ot_arena_free(scratch);
    return s;
}

int64_t ot_planner_peak(ot_planner *x, ot_region *regions, uint32_t n)
{
    ot_plan p = {.regions = regions, .n_regions = n};
    return total_of(x, &p) == OT_OK ? p.tiled.peak_bytes : -1;
}

ot_status ot_planner_untiled(ot_planner *x, ot_figures *out)
{
    ot_plan p = {.n_regions = 0};
    const ot_status s = total_of(x, &p);
    *out = p.untiled;
    return s;
}

/* What the process holds all the time for the regions makes up for what they save. A region's
 * own peak counts its own share. */
static bool holds_too_much(const ot_seq *s, const ot_target *t, const ot_plan *p)
{
    int64_t sum = 0, inside = 0, most = 0;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        int64_t own = ot_form_holds(s, t, &p->regions[k]);
        sum += own;
        inside = ot_max(inside, p->regions[k].peak - own);
        most = ot_max(most, p->regions[k].peak);
    }
    /* it is outside of them */
    if (p->tiled.peak_bytes > most) inside = ot_max(inside, p->tiled.peak_bytes);
    return inside + sum >= p->untiled.peak_bytes;
}

/* Goal memory, and where less memory counts beside time: a region that costs time, or memory in
 * all of the run, must lower the peak. Exact figures may say that it does not. What it saves of
 * time stays where others spend it. */
static ot_status drop_useless(const ot_seq *s, const ot_target *t, const ot_plan_options *o,
                              const ot_limit *limit, ot_plan *p)
{
    if ((o->goal != OT_GOAL_MEMORY && t->runtime->about == 0) || o->force || o->search.price > 0 ||
        o->search.byte_seconds > 0)
        return OT_OK;
    uint32_t kept = 0, before = p->n_regions;
    const bool held = o->goal == OT_GOAL_MEMORY && t->runtime->node_bytes > 0,
               too_much = held && holds_too_much(s, t, p);
    bool none = p->tiled.peak_bytes > p->untiled.peak_bytes - p->untiled.peak_bytes / 50;
    const double allowed = ot_time_allowed(s, o) * (1 + OT_TIME_ABOUT);
    double time = p->tiled.time_s;
    for (uint32_t k = 0; k < before; k++) {
        ot_region r = p->regions[k];
        int64_t whole = 0;
        for (uint32_t i = 0; i < r.n_nodes; i++)
            whole = ot_max(whole, s->live[s->pos[r.nodes[i].node]]);
        const bool is_useless = too_much ||
                                ((r.benefit < 0 || held) && (none || whole <= p->tiled.peak_bytes));
        if (is_useless && !ot_limit_needs(limit, s, &r) &&
            (r.benefit <= 0 || time + r.benefit <= allowed)) {
            time += r.benefit;
            OT_TRY(refuse(s, p, &r, (ot_reason){OT_WHY_PEAK, 0}));
            continue;
        }
        r.id = o->search.first_region + kept;
        p->regions[kept++] = r;
    }
    p->n_regions = kept;
    return kept < before ? total(s, p) : OT_OK;
}

static void dump_steps(const ot_seq *s, const ot_interval_path *path)
{
    fprintf(stderr, "\n> Plan: %u intervals, %.3f ms, peak %lld\n", path->n, path->time * 1e3,
            (long long)path->peak);
    for (uint32_t k = 0; k < path->n; k++) {
        const ot_choice *c = path->steps[k];
        double untiled = s->time[c->end + 1] - s->time[c->first];
        fprintf(stderr,
                "  [%u,%u] axes %d,%d tile %lld,%lld form %s: %.3f -> %.3f ms, peak %.1f MB\n",
                c->first, c->end, c->axes[0], c->n_dims > 1 ? c->axes[1] : -1,
                (long long)c->tile[0], (long long)c->tile[1], ot_form_name(c->form), untiled * 1e3,
                c->time * 1e3, (double)c->peak / 1048576.0);
    }
}

/* Regions that stream, those of the least peak; the rest is whole. */
static ot_status plan_streams(ot_planner *x, const ot_plan_options *o, const ot_limit *limit,
                              ot_plan *p, ot_region_pool *built)
{
    const ot_seq *s = &x->s;
    OT_TRY(ot_planner_streams(x, o, p->arena, built));
    p->regions = OT_NEW_N(p->arena, ot_region, built->n + 1u);
    p->refused = OT_NEW_N(s->arena, ot_refusal, built->n + s->n + 1u);
    if (!p->regions || !p->refused) return ot_fail_nomem(s->g->model->diag);
    OT_TRY(ot_recombine(s, o, built, p->regions, &p->n_regions));
    OT_TRY(total(s, p));
    return drop_useless(s, x->t, o, limit, p);
}

/* One pass of the planner under the given options; *p is started anew. */
static ot_status plan_once(ot_planner *x, const ot_plan_options *o, ot_limit *limit, ot_plan *p,
                           ot_region_pool *built, ot_interval_path *path)
{
    const ot_seq *s = &x->s;
    *path = (ot_interval_path){0};
    p->n_regions = p->n_barriers = p->n_refused = 0;
    OT_TRY(list_barriers(s, p));
    if (x->tr && o->force_form == OT_FORM_STREAM && !o->force)
        return plan_streams(x, o, limit, p, built);
    if (x->tr) {
        const ot_interval_caches known = {&x->cuts[o->goal], &x->alone[o->goal][o->force]};
        OT_TRY(ot_dp_solve(s, &x->w, x->tr, x->t, o, limit, &known, path));
        /* it knows no prices */
        if (o->tie_break && limit->n_large == 0 && o->search.price == 0)
            OT_TRY(ot_tie_break(s, x->t, o, path));
        if (ot_dbg['D']) dump_steps(s, path);
    }
    OT_TRY(build_regions(x, o, limit, path, p, built));
    OT_TRY(total(s, p));
    return drop_useless(s, x->t, o, limit, p);
}

/* a is to be preferred to b, by what the goal asks. */
static bool is_better(const ot_plan_options *o, const ot_plan *a, const ot_plan *b)
{
    const ot_figures *x = &a->tiled, *y = &b->tiled;
    if (o->goal == OT_GOAL_MEMORY && x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes;
    return x->time_s < y->time_s;
}

/* Intervals that no form expresses give way to others, where that makes a better plan: a region
 * that cannot end with a sum in parts may end before it. Not where a price or a limit leads the
 * search. */
static ot_status plan_without_banned(ot_planner *x, const ot_plan_options *o, ot_limit *limit,
                                     ot_plan *p, ot_region_pool *built, ot_interval_path *path)
{
    const bool plain = !o->force && o->memory_budget == 0 && o->search.price == 0 &&
                       o->search.byte_seconds <= 0 && o->search.near == 0 &&
                       o->force_form == OT_FORM_NONE;
    ot_plan best = {0};
    for (int round = 0;; round++) {
        const uint32_t banned = limit->n_banned;
        OT_TRY(plan_once(x, o, limit, p, built, path));
        if (round > 0 && !is_better(o, p, &best)) *p = best;
        if (!plain || limit->n_banned == banned || round == BAN_ROUNDS) return OT_OK;
        best = *p;
    }
}

/* The same; intervals that no form expresses with tensors as small as they have to be give way
 * to others, which leave none larger. */
static ot_status plan_within(ot_planner *x, const ot_plan_options *o, ot_limit *limit, ot_plan *p,
                             ot_region_pool *built, ot_interval_path *path)
{
    if (limit->most == 0) return plan_without_banned(x, o, limit, p, built, path);
    for (;;) {
        uint32_t banned = limit->n_banned;
        OT_TRY(plan_once(x, o, limit, p, built, path));
        if (ot_limit_left(limit, p) == OT_NONE) return OT_OK;
        if (limit->n_banned == banned) break;
    }
    OT_TRY(ot_region_ends_list(&x->s, p));
    return ot_limit_fail(limit, &x->s, p);
}

/* What a plan tells besides its regions. Lists that had room for every node so far take no more
 * than they hold. */
static ot_status finish(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t,
                        const ot_plan_options *o, ot_plan *p)
{
    OT_TRY(ot_region_ends_list(s, p));
    OT_TRY(ot_refusals_list(s, o, p));
    p->barriers = ot_memdup(p->arena, p->barriers, p->n_barriers * sizeof *p->barriers);
    p->refused = ot_memdup(p->arena, p->refused, p->n_refused * sizeof *p->refused);
    if (!p->barriers || !p->refused) return ot_fail_nomem(s->g->model->diag);
    return o->detail ? ot_plan_detail_fill(s, w, tr, t, p) : OT_OK;
}

/* Seconds by which the plan is slower than the user allows; 0: it is not. */
static double excess_time(const ot_seq *s, const ot_plan_options *o, const ot_plan *p)
{
    double allowed = ot_time_allowed(s, o);
    return p->tiled.time_s > allowed * (1 + OT_TIME_ABOUT) ? p->tiled.time_s - allowed : 0;
}

static bool is_allowed(const ot_seq *s, const ot_plan_options *o, const ot_plan *p)
{
    return excess_time(s, o, p) <= 0 &&
           (o->memory_budget == 0 || p->tiled.peak_bytes <= o->memory_budget);
}

/* Regions of other paths that the search found as good in another way, for a recombination. */
static ot_status build_rest(ot_planner *x, const ot_plan_options *o, const ot_interval_path *path,
                            ot_region_pool *built)
{
    const ot_seq *s = &x->s;
    ot_interval_ends at;
    ot_fit_left left = {OT_FIT_TRIES, OT_FIT_WRITTEN};
    const ot_fit_request q = {s, &x->w, x->t, o, &at, &x->fitted, &left};
    uint32_t most = s->n > MANY_NODES ? REST_LARGE : REST;
    const double loss = fmax(0, ot_time_allowed(s, o) - s->time[s->n]);
    OT_TRY(ot_interval_ends_list(s, path, &at));
    for (uint32_t k = 0; k < path->n_rest && k < most; k++) {
        ot_region r;
        bool found;
        OT_TRY(ot_region_fit(&q, path->rest[k], loss, &r, &found));
        if (found && !OT_PUSH(s->arena, built->all, built->n, built->cap, r))
            return ot_fail_nomem(s->g->model->diag);
    }
    return OT_OK;
}

/* What was built and is no region of the plan. */
static ot_status keep_spare(const ot_seq *s, const ot_region_pool *built, ot_plan *p)
{
    const ot_region **of = OT_NEW_N(s->arena, const ot_region *, s->g->n_nodes + 1u);
    p->spare = OT_NEW_N(p->arena, ot_region, built->n + 1u);
    if (!p->spare || !of) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t j = 0; j < p->n_regions; j++) of[p->regions[j].nodes[0].node] = &p->regions[j];
    for (uint32_t k = 0; k < built->n; k++) {
        const ot_region *r = &built->all[k], *chosen = of[r->nodes[0].node];
        if (!chosen || !ot_region_is(chosen, r)) p->spare[p->n_spare++] = *r;
    }
    return OT_OK;
}

/* The best plan of all regions that were built under any limits, in the place of p's own. */
static ot_status recombine(const ot_seq *s, const ot_target *t, const ot_plan_options *o,
                           const ot_region_pool *built, ot_plan *p)
{
    static const ot_limit none;
    uint32_t kept = 0;
    bool *taken = OT_NEW_N(s->arena, bool, s->g->n_nodes + 1u);
    p->regions = OT_NEW_N(p->arena, ot_region, built->n + 1u);
    if (!taken || !p->regions) return ot_fail_nomem(s->g->model->diag);
    OT_TRY(ot_recombine(s, o, built, p->regions, &p->n_regions));
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++)
            taken[p->regions[k].nodes[i].node] = true;
    /* by the last attempt, unless another region has them now */
    for (uint32_t k = 0; k < p->n_refused; k++) {
        bool any = false;
        for (uint32_t i = 0; i < p->refused[k].n; i++) any |= taken[p->refused[k].nodes[i]];
        if (!any) p->refused[kept++] = p->refused[k];
    }
    p->n_refused = kept;
    OT_TRY(total(s, p));
    return drop_useless(s, t, o, &none, p);
}

/* On a cached machine tiles run at once, and steps one after the other: streams must take
 * clearly less memory, and no longer. */
static bool is_worth_streaming(const ot_plan *tiles, const ot_plan *streams)
{
    if ((double)streams->tiled.peak_bytes * TWO_LAYOUTS > (double)tiles->tiled.peak_bytes)
        return false;
    return tiles->n_regions == 0 ||
           streams->tiled.time_s <= tiles->tiled.time_s * (1 + OT_TIME_ABOUT);
}

/* Regions whose rows are handed on are candidates beside those in tiles: the best plan of all.
 * That needs somebody who writes in place; elsewhere streams are made by themselves (stage
 * select/). */
static ot_status add_streams(ot_planner *x, const ot_plan_options *o, const ot_limit *limit,
                             ot_plan *p, ot_region_pool *built)
{
    const ot_seq *s = &x->s;
    const ot_target *t = x->t;
    const uint32_t before = built->n;
    const bool hard = ot_target_hard_limit(t),
               in_place = hard || (ot_runtime_in_classes(t->runtime) && o->goal == OT_GOAL_MEMORY);
    const ot_plan tiles = *p;
    if (!in_place || o->force || o->force_form != OT_FORM_NONE || limit->n_large > 0) return OT_OK;
    OT_TRY(ot_planner_streams(x, o, p->arena, built));
    if (built->n == before) return OT_OK;
    ot_refusal *refused = OT_NEW_N(s->arena, ot_refusal, tiles.n_refused + 1u);
    if (!refused) return ot_fail_nomem(s->g->model->diag);
    if (tiles.n_refused > 0) memcpy(refused, tiles.refused, tiles.n_refused * sizeof *refused);
    OT_TRY(recombine(s, t, o, built, p));
    if (hard) return OT_OK;
    built->n = before;
    if (is_worth_streaming(&tiles, p)) return OT_OK;
    *p = tiles;
    if (tiles.n_refused > 0) memcpy(p->refused, refused, tiles.n_refused * sizeof *refused);
    return OT_OK;
}

/* The exact figures may miss what the trials promised of memory and time: then the best of all
 * regions that were built, and of those on the search's other paths; under a budget that is hard
 * to keep, again with what is missing taken off. */
ot_status ot_planner_fill(ot_planner *x, ot_plan *p)
{
    const ot_plan_options given = x->o, *o = &given;
    ot_plan_options tight = given, before = given;
    ot_graph *g = x->g;
    const ot_target *t = x->t;
    const ot_seq *s = &x->s;
    ot_walk *w = &x->w;
    ot_trial *tr = x->tr;
    ot_region_pool built = {0};
    ot_limit limit;
    int64_t least = 0;
    OT_TRY(ot_limit_find(s, o->max_tensor, &limit));
    const uint32_t attempts = o->memory_budget == 0 && o->search.price == 0 ? 1 : LIMIT_ATTEMPTS;
    for (uint32_t attempt = 0; attempt < attempts; attempt++) {
        ot_diag *diag = g->model->diag, aside = {0};
        ot_interval_path path;
        if (attempt > 0) g->model->diag = &aside; /* tightened limits are nobody's business */
        ot_status st = plan_within(x, &tight, &limit, p, &built, &path);
        if (st == OT_E_BUDGET && attempt > 0) { /* tightened too much */
            attempt = attempts - 1;
            st = plan_within(x, &before, &limit, p, &built, &path);
        }
        if (st == OT_OK && attempt == 0 && tr) st = add_streams(x, o, &limit, p, &built);
        bool last = o->search.price == 0 || attempt + 1 == attempts;
        if (st == OT_OK && limit.n_large == 0 && last && (attempt > 0 || !is_allowed(s, o, p))) {
            if (attempt == 0) st = build_rest(x, o, &path, &built);
            if (st == OT_OK) st = recombine(s, t, o, &built, p);
        } else if (st == OT_OK && o->search.spare &&
                   attempt == 0) /* for sets of regions that compete */
            st = build_rest(x, o, &path, &built);
        g->model->diag = diag;
        if (st != OT_OK) return attempt > 0 ? ot_fail(diag, st, "%s", aside.message) : st;
        bool in_budget = o->memory_budget == 0 || p->tiled.peak_bytes <= o->memory_budget;
        if (limit.n_large > 0 ? in_budget : is_allowed(s, o, p)) {
            if (o->search.spare) OT_TRY(keep_spare(s, &built, p));
            return finish(s, w, tr, t, o, p);
        }
        if (least == 0 || p->tiled.peak_bytes < least) least = p->tiled.peak_bytes;
        before = tight;
        int64_t excess = ot_max(0, p->tiled.peak_bytes - o->memory_budget);
        if (tight.memory_budget - excess > 0) tight.memory_budget -= excess;
        tight.max_slowdown -= excess_time(s, o, p) / s->time[s->n];
    }
    char excess[OT_EXCESS_SIZE];
    return ot_fail(g->model->diag, OT_E_BUDGET, "memory budget cannot be met: %s",
                   ot_format_excess(least, o->memory_budget, excess, sizeof excess));
}

/* Idle regions of which no node is in a region of p. */
static ot_status refuse_idle(const ot_seq *s, const ot_region *idle, uint32_t n_idle, ot_why reason,
                             ot_plan *p)
{
    bool *taken = OT_NEW_N(s->arena, bool, s->g->n_nodes + 1u);
    if (!taken) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t i = 0; i < p->regions[k].n_nodes; i++)
            taken[p->regions[k].nodes[i].node] = true;
    for (uint32_t k = 0; k < n_idle; k++) {
        bool any = false;
        for (uint32_t i = 0; i < idle[k].n_nodes; i++) any |= taken[idle[k].nodes[i].node];
        for (uint32_t i = 0; i < idle[k].n_nodes && !any; i++) taken[idle[k].nodes[i].node] = true;
        if (!any) OT_TRY(refuse(s, p, &idle[k], (ot_reason){reason, 0}));
    }
    return OT_OK;
}

static ot_status take_in(ot_planner *x, const ot_plan_parts *of, ot_plan *p)
{
    const ot_seq *s = &x->s;
    p->refused = OT_NEW_N(s->arena, ot_refusal, (size_t)of->n_idle + s->n + 1u);
    p->regions = OT_NEW_N(p->arena, ot_region, of->n + 1u);
    if (!p->refused || !p->regions) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < of->n; k++) {
        p->regions[k] = of->regions[k];
        p->regions[k].id = x->o.search.first_region + k;
    }
    p->n_regions = of->n;
    OT_TRY(list_barriers(s, p));
    OT_TRY(total(s, p));
    OT_TRY(refuse_idle(s, of->idle, of->n_idle, of->reason, p));
    return finish(s, &x->w, x->tr, x->t, &x->o, p);
}

static ot_status take_with(ot_planner *x, const ot_plan_options *o, const ot_plan_parts *of,
                           ot_plan *p)
{
    ot_arena *scratch = ot_arena_new();
    p->lenders = OT_NEW_N(p->arena, ot_plan *, of->n_lenders + 1u);
    ot_status st = OT_E_NOMEM;
    if (scratch && p->lenders) {
        if (of->n_lenders) memcpy(p->lenders, of->lenders, of->n_lenders * sizeof *of->lenders);
        x->o = *o;
        x->s.arena = scratch;
        st = take_in(x, of, p);
        x->s.arena = x->arena;
    } else {
        st = ot_fail_nomem(x->g->model->diag);
    }
    ot_arena_free(scratch);
    return st;
}

ot_status ot_planner_take(ot_planner *x, const ot_plan_options *o, const ot_plan_parts *of,
                          ot_plan **out)
{
    ot_plan *p = ot_plan_begin(x->t);
    const ot_status st = p ? take_with(x, o, of, p) : ot_fail_nomem(x->g->model->diag);
    *out = NULL;
    if (st == OT_OK) {
        p->n_lenders = of->n_lenders;
        *out = p;
        return OT_OK;
    }
    if (p) ot_arena_free(p->arena);
    for (uint32_t k = 0; k < of->n_lenders; k++) ot_plan_free(of->lenders[k]);
    return st;
}
