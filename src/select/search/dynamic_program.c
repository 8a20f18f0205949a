/* The global choice: dynamic programming over the node sequence.
 *
 *   state p: the first p nodes are done;  f[p] = Pareto set of (score, peak)
 *   f[p+1] <- f[p] + node p untiled
 *   f[e+1] <- f[i] + interval [i, e] in each of its tilings
 *
 * A tiling that loses on its own may win here because it lets its neighbours fuse. Score is
 * predicted time; with `force` an untiled node that could have been tiled costs a penalty, so
 * that everything legal gets tiled. Intervals do not cut a convolution from the nodes that the
 * runtime merges into it.
 *
 * Work is counted (ot_trial_work) and bounded over the whole graph: every end may use its even
 * share of what the ends before it have left, so a large graph has shorter intervals looked at,
 * everywhere alike, and the time of planning has a limit.
 *
 * What an interval costs in a tiling depends on the goal alone; which of them make a plan depends
 * on limits and prices. So the intervals of a graph are looked at once, and their choices kept
 * (ot_interval_cache), for all plans that are made of it. Plans that pay for what is kept ask what
 * a region leaves to others, which follows from the walk: they walk again, and know the figures.
 *
 * Large graphs have many states: those that an interval can begin at are held as they are, of all
 * others only how the plan came there.
 */
#include "front.h"
#include "search.h"

#include "base/watch.h"

#include <float.h>
#include <math.h>

#define NEAR 12 /* nodes before and behind the one that is asked for */
/* Of one plan, about a second; of a plan that shares no intervals with others, where it is not the
 * first: there are some forty of them. Neither depends on the plans before. */
#define WORK_MAX   UINT64_C(8000000)
#define WORK_ALONE (WORK_MAX / 8)

/* What is left of a state. */
typedef struct way {
    uint32_t from_state, choice;
} way;

typedef struct solver {
    const ot_seq *s;
    ot_walk *w;
    ot_trial *tr;
    const ot_target *t;
    const ot_plan_options *o;
    ot_front *fronts; /* [n_fronts] of a position: at its remainder */
    uint32_t n_fronts;
    way **ways;             /* [n + 1] of each front's states */
    const ot_choice **pool; /* [n_pool] */
    uint32_t n_pool;
    size_t cap_pool;
    bool is_kept;           /* the choices that are taken now stay where they are */
    const ot_choice **near; /* [n_near] see note_near */
    uint32_t n_near;
    size_t cap_near;
    bool *tileable;      /* [n] */
    uint32_t step_limit; /* longest walk */
    uint64_t work_limit; /* of the walk at hand: where it ends, on the count of ot_trial_work */
    uint64_t work_end;   /* of the sequence's end at hand, likewise */
    /* seconds that a plan may lose against the untiled model on its way; 0: no limit is kept */
    double time_limit;
    const ot_limit *limit;    /* never NULL */
    ot_interval_cache *cache; /* NULL: none for these options */
    ot_interval_cache *alone; /* of walks that are looked at for one plan; NULL: none */
    ot_interval_list found;   /* of the end at hand, in s->arena: room for the next one, too */
    bool records;             /* it is kept */
    /* of the end at hand, all of whose walks are known; NULL: they are not */
    const ot_interval_list *known;
    uint32_t walk_at, choice_at; /* how far the walks of these were made again */
    ot_choice *best;             /* [n_best] see keep_best; room for all tilings of an interval */
    uint32_t n_best, max_best;
    /* a plan that takes so many times as long as the fastest is as good when it needs less
     * memory; 0: none */
    double lean_limit;
} solver;

static ot_front *front_at(const solver *v, uint32_t pos) { return &v->fronts[pos % v->n_fronts]; }

/* c where it stays as long as the plan is made; NULL: no memory. */
static const ot_choice *keep(const solver *v, const ot_choice *c)
{
    return v->is_kept ? c : ot_memdup(v->s->arena, c, sizeof *c);
}

static bool put_in_pool(solver *v, const ot_choice *c)
{
    const ot_choice *kept = keep(v, c);
    return kept && OT_PUSH(v->s->arena, v->pool, v->n_pool, v->cap_pool, kept);
}

/* Extend every state at `from` by `c` (or by the untiled node when c is NULL) into state `to`. */
static bool relax(solver *v, uint32_t from, uint32_t to, const ot_choice *c, double penalty,
                  uint32_t missed)
{
    const ot_seq *s = v->s;
    uint32_t saved = OT_NONE;
    const ot_front *f = front_at(v, from);
    ot_front *next = front_at(v, to);
    for (uint32_t k = 0; k < f->n; k++) {
        const ot_plan_state *p = &f->s[k];
        double time = c ? c->time : s->time[to] - s->time[from];
        ot_plan_state x = {.score = p->score + time + penalty,
                           .time = p->time + time,
                           .missed = p->missed + missed,
                           .from_state = k,
                           .choice = OT_NONE};
        int64_t peak = c ? c->peak : s->live[from];
        x.peak = peak > p->peak ? peak : p->peak;
        if (!v->o->force && v->time_limit > 0 && x.time > s->time[to] + v->time_limit) continue;
        uint32_t at = ot_front_place(next, &x);
        if (at == OT_NONE) continue;
        if (c) {
            if (saved == OT_NONE) {
                saved = v->n_pool;
                if (!put_in_pool(v, c)) return false;
            }
            x.choice = saved;
        }
        next->s[at] = x;
        if (at == next->n) next->n++;
    }
    return true;
}

/* Seconds for n nodes that run while so many bytes are live. */
static double excess_price(const solver *v, int64_t live, uint32_t n)
{
    return v->o->search.price > 0
               ? v->o->search.price * n * (double)ot_max(0, live - v->o->search.level)
               : 0;
}

/* What the results cost that the nodes from `first` to `end` leave to others, and what those take
 * that run whole. */
static double kept_penalty(const solver *v, uint32_t first, uint32_t end, bool tiled)
{
    const ot_search_settings *o = &v->o->search;
    if (o->byte_seconds <= 0) return 0;
    return ot_kept_bytes(v->s, tiled ? v->w : NULL, o->level, first, end) * o->byte_seconds;
}

static double choice_penalty(const solver *v, const ot_choice *c)
{
    if (!v->o->force) return excess_price(v, c->peak, c->end - c->first + 1);
    uint32_t untiled = 0;
    for (uint32_t p = c->first; p <= c->end; p++)
        if (v->w->state[p] != OT_ST_IN && v->tileable[p]) untiled++;
    return untiled * 1.0 + (c->fits ? 0 : 0.3 * c->n_in);
}

/* Within reach of the node that the options name. */
static bool is_near(const ot_seq *s, const ot_plan_options *o, uint32_t p)
{
    if (o->search.near == 0) return true;
    const uint32_t at = s->pos[o->search.near - 1];
    return p + NEAR >= at && p <= at + NEAR;
}

/* Of the intervals that hold the node that the options name: the fastest choice for each,
 * whatever the plan as a whole makes of it. */
static bool note_near(solver *v, const ot_choice *c)
{
    const uint32_t at = v->s->pos[v->o->search.near - 1];
    if (c->first > at || c->end < at || c->first + NEAR < at || c->end > at + NEAR) return true;
    for (uint32_t k = 0; k < v->n_near; k++) {
        if (v->near[k]->first != c->first || v->near[k]->end != c->end) continue;
        if (c->time < v->near[k]->time) v->near[k] = keep(v, c);
        return v->near[k] != NULL;
    }
    const ot_choice *kept = keep(v, c);
    return kept && OT_PUSH(v->s->arena, v->near, v->n_near, v->cap_near, kept);
}

static bool is_banned(const solver *v, const ot_choice *c)
{
    for (uint32_t k = 0; k < v->limit->n_banned; k++) {
        const ot_banned *b = &v->limit->banned[k];
        if (b->end != c->end) continue;
        if (b->first == OT_NONE ? c->out_index == OT_SUM_SINK : b->first == c->first) return true;
    }
    return false;
}

/* One more way to go on: the interval of c, whose values above the limit `concerned` says there
 * are. kept: what the results cost that it leaves. */
static ot_status take_choice(solver *v, const ot_choice *c, double kept, uint32_t missed,
                             bool concerned)
{
    const ot_seq *s = v->s;
    const double untiled = s->time[c->end + 1] - s->time[c->first];
    bool done;
    if (is_banned(v, c)) return OT_OK;
    /* whatever it costs */
    if (concerned && missed < v->limit->before[c->end + 1] - v->limit->before[c->first]) {
        done = relax(v, c->first, c->end + 1, c, choice_penalty(v, c), missed);
        return done ? OT_OK : ot_fail_nomem(s->g->model->diag);
    }
    bool lean = v->o->goal == OT_GOAL_MEMORY || v->lean_limit > 0;
    if (!v->o->force && !lean && v->o->memory_budget == 0 && c->time >= untiled) return OT_OK;
    if (!v->o->force && lean && v->time_limit > 0 && c->time > untiled + v->time_limit)
        return OT_OK;
    if (v->o->search.near > 0 && !note_near(v, c)) return ot_fail_nomem(s->g->model->diag);
    done = relax(v, c->first, c->end + 1, c, kept + choice_penalty(v, c), missed);
    return done ? OT_OK : ot_fail_nomem(s->g->model->diag);
}

/* Where what this plan looks at is kept for others. */
static ot_interval_cache *kept_in(const solver *v) { return v->cache ? v->cache : v->alone; }

/* Keep c for other plans, so that a plan is the same whichever came before it. */
static ot_status record_choice(solver *v, const ot_choice *c)
{
    ot_interval_list *x = &v->found;
    if (!v->records) return OT_OK;
    kept_in(v)->n_choices++;
    return OT_PUSH(v->s->arena, x->all, x->n, x->cap, *c) ? OT_OK
                                                          : ot_fail_nomem(v->s->g->model->diag);
}

/* Keep a walk of so many steps, whose choices are those from `from` on. */
static ot_status record_walk(solver *v, uint32_t steps, uint32_t from)
{
    ot_interval_list *x = &v->found;
    if (!v->records || !v->alone) return OT_OK;
    const ot_walk_seen walk = {steps, x->n - from};
    return OT_PUSH(v->s->arena, x->walks, x->n_walks, x->cap_walks, walk)
               ? OT_OK
               : ot_fail_nomem(v->s->g->model->diag);
}

/* All that was found of the end at hand, with so much work, as *out. */
static ot_status keep_found(const solver *v, uint64_t work, ot_interval_list *out)
{
    const ot_interval_list *x = &v->found;
    ot_arena *a = kept_in(v)->arena;
    *out = (ot_interval_list){.all = ot_memdup(a, x->all, x->n * sizeof *x->all),
                              .n = x->n,
                              .complete = true,
                              .walks = ot_memdup(a, x->walks, x->n_walks * sizeof *x->walks),
                              .n_walks = x->n_walks,
                              .work = work};
    return out->all && out->walks ? OT_OK : ot_fail_nomem(v->s->g->model->diag);
}

/* Of one interval, only tilings that neither another nor its nodes untiled beat in both time and
 * peak make a plan. */
static void keep_best(solver *v, const ot_choice *c)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < v->n_best; k++)
        if (v->best[k].time <= c->time && v->best[k].peak <= c->peak) return;
    for (uint32_t k = 0; k < v->n_best; k++)
        if (v->best[k].time < c->time || v->best[k].peak < c->peak) v->best[n++] = v->best[k];
    v->best[n++] = *c;
    v->n_best = n;
}

/* The interval with its nodes untiled, as a choice. */
static ot_choice untiled_choice(const ot_seq *s, uint32_t first, uint32_t end)
{
    ot_choice c = {.first = first, .end = end, .time = s->time[end + 1] - s->time[first]};
    for (uint32_t p = first; p <= end; p++) c.peak = ot_max(c.peak, s->live[p]);
    return c;
}

/* Tilings of the interval, which all plans of the graph may share: taken once they are kept. */
static ot_status try_shared(solver *v, uint32_t first, uint32_t end)
{
    const ot_choice whole = untiled_choice(v->s, first, end);
    v->n_best = 0;
    for (uint32_t k = 0; k < ot_trial_pairs(v->tr) && v->n_best < v->max_best; k++) {
        ot_choice c;
        if (ot_trial_choice(v->tr, k, &c) && (c.time < whole.time || c.peak < whole.peak))
            keep_best(v, &c);
    }
    for (uint32_t k = 0; k < v->n_best; k++) {
        OT_TRY(v->records ? record_choice(v, &v->best[k])
                          : take_choice(v, &v->best[k], 0, 0, false));
    }
    return OT_OK;
}

/* All tilings of the interval that the walk has reached. */
static ot_status try_interval(solver *v, uint32_t first, uint32_t end)
{
    const ot_seq *s = v->s;
    if (v->cache) return try_shared(v, first, end);
    const double kept = kept_penalty(v, first, end, true);
    const bool concerned = ot_limit_concerns(v->limit, first, end);
    for (uint32_t k = 0; k < ot_trial_pairs(v->tr); k++) {
        ot_choice c;
        if (!ot_trial_choice(v->tr, k, &c)) continue;
        OT_TRY(record_choice(v, &c));
        uint32_t missed = concerned ? ot_limit_missed(v->limit, s, v->w, v->tr, k, first, end) : 0;
        OT_TRY(take_choice(v, &c, kept, missed, concerned));
    }
    return OT_OK;
}

/* One more walk that was made before for another plan, which has started again: what it came to. */
static ot_status walk_again(solver *v, uint32_t end)
{
    const ot_interval_list *x = v->known;
    const ot_walk_seen walk = x->walks[v->walk_at++];
    const uint32_t stop = v->choice_at + walk.n_choices;
    for (uint32_t k = 0; k < walk.steps && v->choice_at < stop; k++) {
        (void)ot_walk_step(v->w);
        const uint32_t first = v->w->lo;
        if (x->all[v->choice_at].first != first) continue;
        const double kept = kept_penalty(v, first, end, true);
        for (; v->choice_at < stop && x->all[v->choice_at].first == first; v->choice_at++)
            OT_TRY(take_choice(v, &x->all[v->choice_at], kept, 0, false));
    }
    return OT_OK;
}

static ot_status try_axes(solver *v, uint32_t end, uint32_t out, const int8_t *axes,
                          uint32_t n_dims)
{
    const uint32_t min_nodes = v->o->force ? 1 : 2, from = v->found.n;
    uint32_t steps = 0;
    ot_walk_start(v->w, end, out, axes, n_dims);
    if (v->known) return walk_again(v, end);
    ot_trial_start(v->tr, v->w, out, axes, n_dims);
    while (v->w->lo > 0 && steps < v->step_limit && ot_trial_work(v->tr) < v->work_limit) {
        int st = ot_walk_step(v->w);
        steps++;
        if (!ot_trial_visit(v->tr, st)) break;
        uint32_t first = v->w->lo;
        if (st != OT_ST_IN || end - first + 1 < min_nodes || ot_splits_fusion(v->s, first))
            continue;
        OT_TRY(try_interval(v, first, end));
    }
    return record_walk(v, steps, from);
}

/* Where the first of n equal shares of the work between used and end ends. */
static uint64_t share_of(uint64_t used, uint64_t end, uint32_t n)
{
    return used < end ? used + (end - used) / n : used;
}

/* Intervals that end with this node, its tiles counted on output `out`. */
static ot_status try_output(solver *v, uint32_t end, uint32_t out)
{
    int8_t sets[OT_AXIS_SETS_MAX][OT_DIMS_MAX];
    uint32_t dims[OT_AXIS_SETS_MAX], n_sets = ot_candidate_axes(v->s, v->w, end, out, sets, dims);
    for (uint32_t k = 0; k < n_sets; k++) {
        OT_TRY(ot_watch_look(v->s->g->model->diag));
        v->work_limit = share_of(ot_trial_work(v->tr), v->work_end, n_sets - k);
        OT_TRY(try_axes(v, end, out, sets[k], dims[k]));
    }
    return OT_OK;
}

/* Intervals that end with this node, tile counts on its first output that is read, and on what
 * it sums up. */
static ot_status try_node(solver *v, uint32_t end)
{
    const ot_seq *s = v->s;
    const ot_node *n = &s->g->nodes[s->node[end]];
    OT_TRY(ot_watch_look(s->g->model->diag));
    for (uint32_t o = 0; o < n->n_out && o < 2; o++) {
        ot_id x = n->out[o];
        /* nobody reads it: Shape of it is known without */
        if (x == OT_NONE || s->last[x] == OT_NONE) continue;
        OT_TRY(try_output(v, end, o));
        return o == 0 ? try_output(v, end, OT_SUM_SINK) : OT_OK;
    }
    return OT_OK;
}

static ot_status take_kept(solver *v, const ot_interval_list *x)
{
    v->is_kept = true;
    for (uint32_t k = 0; k < x->n; k++) OT_TRY(take_choice(v, &x->all[k], 0, 0, false));
    v->is_kept = false;
    return OT_OK;
}

/* Intervals that end there, which are known, or kept when they are. */
static ot_status look_at(solver *v, uint32_t end)
{
    ot_interval_cache *x = kept_in(v);
    ot_interval_list *list = x ? &x->ends[end] : NULL;
    if (v->cache && list->complete) return take_kept(v, list);
    const uint64_t before = ot_trial_work(v->tr);
    const bool again = list && list->complete;
    v->records = list && !again && x->n_choices < OT_CACHED_CHOICES;
    v->found.n = v->found.n_walks = 0;
    v->known = again ? list : NULL;
    v->is_kept = again;
    v->walk_at = v->choice_at = 0;
    OT_TRY(try_node(v, end));
    v->known = NULL;
    v->is_kept = false;
    if (again) ot_trial_knows(v->tr, list->work);
    if (!v->records) return OT_OK;
    OT_TRY(keep_found(v, ot_trial_work(v->tr) - before, list));
    return v->cache ? take_kept(v, list) : OT_OK;
}

/* All ways to the sequence's end at hand. */
static ot_status try_end(solver *v, uint32_t end)
{
    const ot_seq *s = v->s;
    uint32_t missed = v->limit->n_large ? v->limit->before[end + 1] - v->limit->before[end] : 0;
    double penalty = v->o->force ? (v->tileable[end] ? 1.0 : 0.0)
                                 : excess_price(v, s->live[end], 1);
    if (!relax(v, end, end + 1, NULL, penalty + kept_penalty(v, end, end, false), missed))
        return ot_fail_nomem(s->g->model->diag);
    if (!v->tileable[end] || ot_splits_fusion(s, end + 1)) return OT_OK;
    return look_at(v, end);
}

static ot_status solve_end(solver *v, uint32_t end)
{
    ot_front *f = front_at(v, end + 1);
    f->n = 0;
    OT_TRY(try_end(v, end));
    way *ways = ot_alloc_n(v->s->arena, f->n, sizeof *ways);
    if (!ways) return ot_fail_nomem(v->s->g->model->diag);
    for (uint32_t k = 0; k < f->n; k++) ways[k] = (way){f->s[k].from_state, f->s[k].choice};
    v->ways[end + 1] = ways;
    return OT_OK;
}

double ot_time_allowed(const ot_seq *s, const ot_plan_options *o)
{
    bool limited = o->goal == OT_GOAL_MEMORY && !o->force;
    return limited ? s->time[s->n] * (1 + o->max_slowdown) : DBL_MAX;
}

/* What the goal asks of the states at the end. */
static ot_front_wish wish_of(const solver *v)
{
    const ot_plan_options *o = v->o;
    return (ot_front_wish){.time = ot_time_allowed(v->s, o) + 1e-12,
                           .peak = o->memory_budget > 0 ? o->memory_budget : INT64_MAX,
                           .lean = o->goal == OT_GOAL_MEMORY && !o->force && o->search.price == 0,
                           .lean_limit = v->lean_limit};
}

/* From state *k of the front at *pos to the one before it. */
static void step_back(const solver *v, uint32_t *pos, uint32_t *k)
{
    const way *x = &v->ways[*pos][*k];
    *pos = x->choice != OT_NONE ? v->pool[x->choice]->first : *pos - 1;
    *k = x->from_state;
}

static ot_status read_path(solver *v, uint32_t final, ot_interval_path *out)
{
    const ot_seq *s = v->s;
    const ot_plan_state *x = &front_at(v, s->n)->s[final];
    for (uint32_t pos = s->n, k = final; pos > 0; step_back(v, &pos, &k))
        out->n += v->ways[pos][k].choice != OT_NONE;
    out->steps = OT_NEW_N(s->arena, const ot_choice *, out->n + 1u);
    if (!out->steps) return ot_fail_nomem(s->g->model->diag);
    uint32_t at = out->n;
    for (uint32_t pos = s->n, k = final; pos > 0; step_back(v, &pos, &k))
        if (v->ways[pos][k].choice != OT_NONE) out->steps[--at] = v->pool[v->ways[pos][k].choice];
    out->time = x->time;
    out->peak = x->peak;
    out->pool = v->pool;
    out->n_pool = v->n_pool;
    return OT_OK;
}

/* Choices of the other final states, the fastest state first. */
static ot_status read_rest(solver *v, uint32_t final, ot_interval_path *out)
{
    const ot_seq *s = v->s;
    const ot_front *f = front_at(v, s->n);
    bool *known = OT_NEW_N(s->arena, bool, v->n_pool + 1u), done[OT_STATES_MAX] = {false};
    size_t cap = 0;
    if (!known) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t round = 0; round < f->n; round++) {
        uint32_t next = final; /* first, so that what it takes is known */
        for (uint32_t k = 0; k < f->n && round > 0; k++)
            if (!done[k] && (done[next] || f->s[k].time < f->s[next].time)) next = k;
        done[next] = true;
        for (uint32_t pos = s->n, k = next; pos > 0; step_back(v, &pos, &k)) {
            const uint32_t choice = v->ways[pos][k].choice;
            if (choice == OT_NONE || known[choice]) continue;
            known[choice] = true;
            if (next != final && !OT_PUSH(s->arena, out->rest, out->n_rest, cap, v->pool[choice]))
                return ot_fail_nomem(s->g->model->diag);
        }
    }
    return OT_OK;
}

/* Room for the states of all fronts that an interval may begin at, and of the next; the first has
 * one state. */
static bool open_fronts(solver *v)
{
    const uint32_t n = v->s->n;
    v->n_fronts = (n < v->step_limit ? n : v->step_limit) + 1;
    v->fronts = OT_NEW_N(v->s->arena, ot_front, v->n_fronts);
    v->ways = OT_NEW_N(v->s->arena, way *, n + 1u);
    if (!v->fronts || !v->ways) return false;
    v->fronts[0] = (ot_front){.s = {{.choice = OT_NONE}}, .n = 1};
    return true;
}

/* Other plans that pay for what is kept make the same walks, which are kept in x for them. */
static ot_status open_alone(solver *v, ot_interval_cache *x)
{
    if (!x->ends) x->ends = OT_NEW_N(x->arena, ot_interval_list, v->s->n + 1u);
    if (!x->ends) return ot_fail_nomem(v->s->g->model->diag);
    v->alone = x;
    return OT_OK;
}

/* requires a built sequence. Fails: OT_E_NOMEM, OT_E_BUDGET. */
ot_status ot_dp_solve(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t,
                      const ot_plan_options *o, const ot_limit *limit,
                      const ot_interval_caches *known, ot_interval_path *out)
{
    static const ot_limit none;
    ot_diag *diag = s->g->model->diag;
    solver v = {.s = s, .w = w, .tr = tr, .t = t, .o = o, .limit = limit ? limit : &none};
    memset(out, 0, sizeof *out);
    const bool any_plan = !o->force && o->search.byte_seconds <= 0 && o->search.near == 0 &&
                          o->max_tensor == 0;
    v.cache = any_plan && v.limit->n_large == 0 && known ? known->shared : NULL;
    v.tileable = OT_NEW_N(s->arena, bool, s->n + 1u);
    v.max_best = OT_COUNTS_MAX * OT_COUNTS_MAX * OT_COUNTS_MAX;
    v.best = OT_NEW_N(s->arena, ot_choice, v.max_best);
    if (!v.tileable || !v.best) return ot_fail_nomem(diag);
    for (uint32_t p = 0; p < s->n; p++) {
        ot_why why;
        OT_TRY(ot_barrier_reason(s, s->node[p], &why));
        v.tileable[p] = why == OT_WHY_NONE && is_near(s, o, p);
    }
    uint32_t longest = s->n ? 700000u / s->n : 0;
    v.step_limit = longest < 48 ? 48 : longest > 1024 ? 1024 : longest;
    if (o->goal == OT_GOAL_MEMORY && !o->force)
        v.time_limit = s->time[s->n] * (fmax(0, o->max_slowdown) + 0.05);
    if (o->goal == OT_GOAL_TIME && !o->force && t->runtime->about > 0) {
        v.lean_limit = 1 + t->runtime->about;
        if (o->memory_budget == 0) v.time_limit = s->time[s->n] * t->runtime->about;
    }
    if (v.limit->n_large > 0) v.time_limit = 0; /* what has to be in tiles is, whatever it costs */
    if (!open_fronts(&v)) return ot_fail_nomem(diag);
    const uint64_t work = ot_trial_work(tr), share = v.cache || work == 0 ? WORK_MAX : WORK_ALONE,
                   work_max = work + share;
    if (known && share == WORK_ALONE && o->search.byte_seconds > 0 && o->search.near == 0 &&
        o->max_tensor == 0)
        OT_TRY(open_alone(&v, known->alone));
    for (uint32_t end = 0; end < s->n; end++) {
        v.work_end = share_of(ot_trial_work(tr), work_max, s->n - end);
        OT_TRY(solve_end(&v, end));
    }
    if (ot_dbg['W'])
        fprintf(stderr, "  search: %u nodes, work %llu\n", s->n,
                (unsigned long long)(ot_trial_work(tr) - work));
    const ot_front *last = front_at(&v, s->n);
    const ot_front_wish wish = wish_of(&v);
    uint32_t final = ot_front_final(last, &wish);
    if (final == OT_NONE && v.limit->n_large > 0) final = ot_front_fastest(last, wish.peak);
    if (final == OT_NONE && o->memory_budget == 0) {
        out->time = s->time[s->n]; /* every node whole: nothing else is as fast as it must be */
        out->peak = s->peak;
        return OT_OK;
    }
    if (final == OT_NONE) {
        int64_t least = INT64_MAX;
        for (uint32_t k = 0; k < last->n; k++) least = ot_min(least, last->s[k].peak);
        char excess[OT_EXCESS_SIZE];
        return ot_fail(diag, OT_E_BUDGET, "memory budget cannot be met: %s",
                       ot_format_excess(least, o->memory_budget, excess, sizeof excess));
    }
    OT_TRY(read_path(&v, final, out));
    if (o->search.near == 0) return read_rest(&v, final, out);
    out->rest = v.near;
    out->n_rest = v.n_near;
    return OT_OK;
}
