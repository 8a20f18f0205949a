/* The tie-break: of all plans that are about as fast as the one chosen (and whose peak is not
 * above it, when memory is the goal), the one with the least peak, then the fewest loops, then
 * the fewest tiles.
 *
 *     0  chosen  limit  untiled        about as fast: what the chosen plan gains stays, but for a
 *                                      small share.
 *     |----|=====|---------|---> time  Where memory is the goal, what the user allows ends the
 *                                      window, too.
 *
 * A plan is a path through positions 0..n whose arcs are tiled intervals or runs of untiled
 * nodes; plan_net.h says what is looked for in that net. Only intervals that lie on some path
 * within the limit take part, and positions between them are merged, so the net stays small. When
 * it would not be, the plan stays as the dynamic program made it.
 */
#include "search.h"

#include "plan_net.h"

#include <math.h>

enum { ARCS_MAX = 500 };

#define OF_TIME 0.005 /* predictions are no finer than this part of the model's time, */
#define OF_GAIN 0.05  /* but a plan that saves time keeps the rest of what it saves */

/* The net of a path's pool. */
typedef struct choices {
    const ot_seq *s;
    ot_arena *a; /* of the net */
    ot_net net;
    uint32_t *choice; /* [net.n_arcs] index into the pool, or OT_NONE: untiled run */
    uint32_t *key;    /* [net.n_nodes] positions, ascending */
} choices;

/* Least time from 0 to every position, and from every position to n, over all arcs. */
static void distances(const ot_seq *s, const ot_interval_path *path, double *fwd, double *bwd,
                      uint32_t *head, uint32_t *next)
{
    for (uint32_t p = 0; p <= s->n; p++) head[p] = OT_NONE;
    for (uint32_t k = 0; k < path->n_pool; k++) {
        uint32_t to = path->pool[k]->end + 1;
        next[k] = head[to];
        head[to] = k;
    }
    fwd[0] = 0;
    for (uint32_t p = 1; p <= s->n; p++) {
        fwd[p] = fwd[p - 1] + s->time[p] - s->time[p - 1];
        for (uint32_t k = head[p]; k != OT_NONE; k = next[k]) {
            double t = fwd[path->pool[k]->first] + path->pool[k]->time;
            if (t < fwd[p]) fwd[p] = t;
        }
    }
    for (uint32_t p = 0; p <= s->n; p++) bwd[p] = 1e300;
    bwd[s->n] = 0;
    for (uint32_t p = s->n; p > 0; p--) {
        double t = bwd[p] + s->time[p] - s->time[p - 1];
        if (t < bwd[p - 1]) bwd[p - 1] = t;
        for (uint32_t k = head[p]; k != OT_NONE; k = next[k]) {
            t = bwd[p] + path->pool[k]->time;
            if (t < bwd[path->pool[k]->first]) bwd[path->pool[k]->first] = t;
        }
    }
}

static ot_status no_memory(const choices *m) { return ot_fail_nomem(m->s->g->model->diag); }

/* Positions where some arc starts or ends become nodes; the gaps become untiled arcs. */
static ot_status add_untiled(choices *m, const bool *is_key)
{
    const ot_seq *s = m->s;
    ot_net *net = &m->net;
    uint32_t *node = OT_NEW_N(m->a, uint32_t, s->n + 1u);
    m->key = OT_NEW_N(m->a, uint32_t, s->n + 1u);
    if (!m->key || !node) return no_memory(m);
    for (uint32_t p = 0; p <= s->n; p++)
        if (is_key[p] || p == 0 || p == s->n) {
            node[p] = net->n_nodes;
            m->key[net->n_nodes++] = p;
        }
    for (uint32_t k = 0; k < net->n_arcs; k++) {
        net->arcs[k].from = node[net->arcs[k].from];
        net->arcs[k].to = node[net->arcs[k].to];
    }
    for (uint32_t k = 0; k + 1 < net->n_nodes; k++) {
        const uint32_t from = m->key[k], to = m->key[k + 1];
        ot_net_arc a = {.from = k, .to = k + 1, .time = s->time[to] - s->time[from]};
        for (uint32_t p = from; p < to; p++) a.peak = ot_max(a.peak, s->live[p]);
        m->choice[net->n_arcs] = OT_NONE;
        net->arcs[net->n_arcs++] = a;
    }
    return OT_OK;
}

/* *any: there is something to choose, and not too much. */
static ot_status build_net(const ot_interval_path *path, double peak_limit, choices *m, bool *any)
{
    const ot_seq *s = m->s;
    double *fwd = OT_NEW_N(m->a, double, s->n + 1u), *bwd = OT_NEW_N(m->a, double, s->n + 1u);
    uint32_t *head = OT_NEW_N(m->a, uint32_t, s->n + 1u),
             *next = OT_NEW_N(m->a, uint32_t, path->n_pool + 1u);
    bool *is_key = OT_NEW_N(m->a, bool, s->n + 1u);
    ot_net *net = &m->net;
    net->arcs = OT_NEW_N(m->a, ot_net_arc, ARCS_MAX + s->n + 1u);
    m->choice = OT_NEW_N(m->a, uint32_t, ARCS_MAX + s->n + 1u);
    *any = false;
    if (!fwd || !bwd || !head || !next || !is_key || !net->arcs || !m->choice) return no_memory(m);
    distances(s, path, fwd, bwd, head, next);
    for (uint32_t k = 0; k < path->n_pool; k++) {
        const ot_choice *c = path->pool[k];
        if (fwd[c->first] + c->time + bwd[c->end + 1] > net->limit || (double)c->peak > peak_limit)
            continue;
        if (net->n_arcs == ARCS_MAX) return OT_OK;
        m->choice[net->n_arcs] = k;
        net->arcs[net->n_arcs++] = (ot_net_arc){c->first, c->end + 1, c->time,
                                                c->peak,  c->loops,   c->tiles};
        is_key[c->first] = is_key[c->end + 1] = true;
    }
    *any = net->n_arcs > 0;
    return *any ? add_untiled(m, is_key) : OT_OK;
}

static void dump(const choices *m, const bool *used)
{
    const ot_net *net = &m->net;
    fprintf(stderr, "\n> Tie-break: %u nodes, %u arcs, %.3f ms at most; + on the path\n",
            net->n_nodes, net->n_arcs, net->limit * 1e3);
    for (uint32_t k = 0; k < net->n_arcs; k++) {
        const ot_net_arc *a = &net->arcs[k];
        fprintf(stderr, "%c [%u,%u) %.3f ms, peak %lld, %u loops, %u tiles\n", used[k] ? '+' : ' ',
                m->key[a->from], m->key[a->to], a->time * 1e3, (long long)a->peak, a->loops,
                a->tiles);
    }
}

/* The plan of the arcs that are used. */
static ot_status read_path(const choices *m, const bool *used, ot_interval_path *path)
{
    uint32_t at = 0, n = 0;
    const ot_choice **steps = OT_NEW_N(m->s->arena, const ot_choice *, m->net.n_arcs + 1u);
    double time = 0;
    int64_t peak = 0;
    if (!steps) return no_memory(m);
    while (at + 1 < m->net.n_nodes) {
        uint32_t k = 0;
        while (k < m->net.n_arcs && !(m->net.arcs[k].from == at && used[k])) k++;
        if (k == m->net.n_arcs) return OT_OK; /* keep the old path */
        const ot_net_arc *a = &m->net.arcs[k];
        if (m->choice[k] != OT_NONE) steps[n++] = path->pool[m->choice[k]];
        time += a->time;
        peak = ot_max(peak, a->peak);
        at = a->to;
    }
    path->steps = steps;
    path->n = n;
    path->time = time;
    path->peak = peak;
    return OT_OK;
}

/* Seconds that a plan may take in the place of one that takes `best`. */
static double time_limit(const ot_seq *s, const ot_plan_options *o, double best)
{
    double untiled = s->time[s->n], window = best * OF_TIME;
    if (o->goal == OT_GOAL_MEMORY) return fmax(best, fmin(best + window, ot_time_allowed(s, o)));
    return best + fmin(window, fmax(0, untiled - best) * OF_GAIN);
}

static ot_status break_with(const ot_seq *s, const ot_plan_options *o, ot_arena *a,
                            ot_interval_path *path)
{
    choices m = {.s = s, .a = a, .net = {.arena = a, .limit = time_limit(s, o, path->time)}};
    double peak_limit = o->memory_budget > 0        ? (double)o->memory_budget
                        : o->goal == OT_GOAL_MEMORY ? (double)path->peak
                                                    : 1e300;
    bool any;
    OT_TRY(build_net(path, peak_limit, &m, &any));
    if (!any) return OT_OK;
    bool *used = OT_NEW_N(a, bool, m.net.n_arcs + 1u);
    if (!used) return no_memory(&m);
    ot_status st = o->tie_glpk ? ot_net_milp(&m.net, used, &any)
                               : ot_net_labels(&m.net, used, &any);
    if (st != OT_OK) return no_memory(&m);
    if (ot_dbg['G']) dump(&m, used);
    return any ? read_path(&m, used, path) : OT_OK;
}

/* requires a solved path. Fails: OT_E_NOMEM; never for being hard (the path stays). */
ot_status ot_tie_break(const ot_seq *s, const ot_target *t, const ot_plan_options *o,
                       ot_interval_path *path)
{
    (void)t;
    if (o->force || path->n_pool == 0) return OT_OK;
    ot_arena *a = ot_arena_new();
    const ot_status st = a ? break_with(s, o, a, path) : ot_fail_nomem(s->g->model->diag);
    ot_arena_free(a);
    return st;
}
