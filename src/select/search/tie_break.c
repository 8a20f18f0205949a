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
 * nodes, so the program is a shortest path with side constraints:
 *
 *   minimise P           flow:  one unit from position 0 to n         x_k in {0,1}
 *   then loops           time:  sum t_k x_k <= limit
 *   then tiles           peak:  P >= peak_k x_k for every arc
 *
 * Only intervals that lie on some path within the limit take part, and positions between them
 * are merged, so the program stays small. When it would not be, the plan stays as the dynamic
 * program made it.
 *
 *
 *
 */
#include "search.h"

#include "lp.h"

#include <math.h>

enum { ARCS_MAX = 500, NODE_LIMIT = 400 };

#define OF_TIME 0.005 /* predictions are no finer than this part of the model's time, */
#define OF_GAIN 0.05  /* but a plan that saves time keeps the rest of what it saves */

typedef struct arc {
    uint32_t from, to; /* key positions */
    uint32_t choice;   /* index into the pool, or OT_NONE: untiled run */
    double time;
    int64_t peak;
    double loops, tiles;
} arc;

typedef struct net {
    const ot_seq *s;
    arc *arcs; /* [n_arcs] */
    uint32_t n_arcs;
    uint32_t *key; /* [n_keys] positions */
    uint32_t n_keys;
    double limit;
} net;

/* Least time from 0 to every position, and from every position to n, over all arcs. */
static void distances(const ot_seq *s, const ot_path *path, double *fwd, double *bwd,
                      uint32_t *head, uint32_t *next)
{
    for (uint32_t p = 0; p <= s->n; p++) head[p] = OT_NONE;
    for (uint32_t k = 0; k < path->n_pool; k++) {
        uint32_t to = path->pool[k].end + 1;
        next[k] = head[to];
        head[to] = k;
    }
    fwd[0] = 0;
    for (uint32_t p = 1; p <= s->n; p++) {
        fwd[p] = fwd[p - 1] + s->time[p] - s->time[p - 1];
        for (uint32_t k = head[p]; k != OT_NONE; k = next[k]) {
            double t = fwd[path->pool[k].first] + path->pool[k].time;
            if (t < fwd[p]) fwd[p] = t;
        }
    }
    for (uint32_t p = 0; p <= s->n; p++) bwd[p] = 1e300;
    bwd[s->n] = 0;
    for (uint32_t p = s->n; p > 0; p--) {
        double t = bwd[p] + s->time[p] - s->time[p - 1];
        if (t < bwd[p - 1]) bwd[p - 1] = t;
        for (uint32_t k = head[p]; k != OT_NONE; k = next[k]) {
            t = bwd[p] + path->pool[k].time;
            if (t < bwd[path->pool[k].first]) bwd[path->pool[k].first] = t;
        }
    }
}

static ot_status no_memory(const net *m) { return ot_fail_nomem(m->s->g->model->diag); }

/* Positions where some arc starts or ends, ascending; the gaps become untiled arcs. */
static ot_status add_untiled(net *m, const bool *is_key)
{
    const ot_seq *s = m->s;
    m->key = OT_NEW_N(s->arena, uint32_t, s->n + 1u);
    if (!m->key) return no_memory(m);
    for (uint32_t p = 0; p <= s->n; p++)
        if (is_key[p] || p == 0 || p == s->n) m->key[m->n_keys++] = p;
    for (uint32_t k = 0; k + 1 < m->n_keys; k++) {
        arc a = {.from = m->key[k],
                 .to = m->key[k + 1],
                 .choice = OT_NONE,
                 .time = s->time[m->key[k + 1]] - s->time[m->key[k]]};
        for (uint32_t p = a.from; p < a.to; p++) a.peak = ot_max(a.peak, s->live[p]);
        m->arcs[m->n_arcs++] = a;
    }
    return OT_OK;
}

/* *any: there is something to choose, and not too much. */
static ot_status build_net(const ot_path *path, double peak_limit, net *m, bool *any)
{
    const ot_seq *s = m->s;
    double *fwd = OT_NEW_N(s->arena, double, s->n + 1u),
           *bwd = OT_NEW_N(s->arena, double, s->n + 1u);
    uint32_t *head = OT_NEW_N(s->arena, uint32_t, s->n + 1u),
             *next = OT_NEW_N(s->arena, uint32_t, path->n_pool + 1u);
    bool *is_key = OT_NEW_N(s->arena, bool, s->n + 1u);
    m->arcs = OT_NEW_N(s->arena, arc, ARCS_MAX + s->n + 1u);
    *any = false;
    if (!fwd || !bwd || !head || !next || !is_key || !m->arcs) return no_memory(m);
    distances(s, path, fwd, bwd, head, next);
    for (uint32_t k = 0; k < path->n_pool; k++) {
        const ot_choice *c = &path->pool[k];
        if (fwd[c->first] + c->time + bwd[c->end + 1] > m->limit || (double)c->peak > peak_limit)
            continue;
        if (m->n_arcs == ARCS_MAX) return OT_OK;
        m->arcs[m->n_arcs++] = (arc){c->first, c->end + 1, k, c->time, c->peak, c->loops, c->tiles};
        is_key[c->first] = is_key[c->end + 1] = true;
    }
    *any = m->n_arcs > 0;
    return *any ? add_untiled(m, is_key) : OT_OK;
}

/* NULL: no memory. */
static ot_lp *build_lp(const net *m, const uint32_t *row_of, uint32_t *peak_col)
{
    ot_arena *a = m->s->arena;
    ot_lp *lp = ot_lp_new(a);
    uint32_t *cols = OT_NEW_N(a, uint32_t, m->n_arcs + 1u);
    double *coef = OT_NEW_N(a, double, m->n_arcs + 1u);
    char name[32];
    if (!lp || !cols || !coef) return NULL;
    for (uint32_t k = 0; k < m->n_arcs; k++) {
        snprintf(name, sizeof name, "x%u", k);
        if (ot_lp_col(lp, name, 0, 1, 0, true) == OT_NONE) return NULL;
    }
    *peak_col = ot_lp_col(lp, "peak", 0, 1e300, 1, false);
    bool ok = *peak_col != OT_NONE;
    for (uint32_t p = 0; p < m->n_keys && ok; p++) { /* flow */
        uint32_t n = 0;
        for (uint32_t k = 0; k < m->n_arcs; k++) {
            if (row_of[m->arcs[k].from] == p)
                cols[n] = k, coef[n++] = 1;
            else if (row_of[m->arcs[k].to] == p)
                cols[n] = k, coef[n++] = -1;
        }
        double rhs = p == 0 ? 1 : p + 1 == m->n_keys ? -1 : 0;
        snprintf(name, sizeof name, "flow%u", p);
        ok = ot_lp_row(lp, name, rhs, rhs, cols, coef, n);
    }
    for (uint32_t k = 0; k < m->n_arcs && ok; k++) { /* peak in MiB */
        uint32_t two[2] = {*peak_col, k};
        double c[2] = {1, -(double)m->arcs[k].peak / 1048576.0};
        snprintf(name, sizeof name, "peak%u", k);
        ok = ot_lp_row(lp, name, 0, 1e300, two, c, 2);
    }
    for (uint32_t k = 0; k < m->n_arcs; k++) cols[k] = k, coef[k] = m->arcs[k].time * 1e3;
    ok = ok && ot_lp_row(lp, "time", -1e300, m->limit * 1e3, cols, coef, m->n_arcs);
    return ok ? lp : NULL;
}

/* Fix the value reached for one objective before the next one is minimised. false: no memory. */
static bool pin(ot_lp *lp, const char *name, const net *m, int which, uint32_t peak_col,
                double value)
{
    if (which == 0)
        return ot_lp_row(lp, name, -1e300, value * (1 + 1e-9) + 1e-9, &peak_col, (double[]){1}, 1);
    uint32_t *cols = OT_NEW_N(m->s->arena, uint32_t, m->n_arcs + 1u);
    double *coef = OT_NEW_N(m->s->arena, double, m->n_arcs + 1u);
    if (!cols || !coef) return false;
    for (uint32_t k = 0; k < m->n_arcs; k++) cols[k] = k, coef[k] = m->arcs[k].loops;
    return ot_lp_row(lp, name, -1e300, value + 1e-6, cols, coef, m->n_arcs);
}

/* *any: x [columns] holds a path. */
static ot_status solve(const net *m, ot_lp *lp, uint32_t peak_col, double *x, bool *any)
{
    double obj;
    bool feasible = false, optimal = false;
    double *y = OT_NEW_N(m->s->arena, double, m->n_arcs + 2u);
    *any = false;
    if (!y) return no_memory(m);
    for (int which = 0; which < 3; which++) {
        ot_lp_set_cost(lp, peak_col, which == 0);
        for (uint32_t k = 0; k < m->n_arcs; k++)
            ot_lp_set_cost(lp, k,
                           which == 1   ? m->arcs[k].loops
                           : which == 2 ? m->arcs[k].tiles
                                        : 0);
        if (ot_dbg['G']) {
            fprintf(stderr, "\n> Tie-break, objective %d\n", which);
            OT_TRY(ot_lp_dump(lp, stderr));
        }
        if (ot_lp_solve(lp, NODE_LIMIT, y, &obj, &feasible, &optimal) != OT_OK) return no_memory(m);
        if (!feasible) return OT_OK;
        memcpy(x, y, (m->n_arcs + 1u) * sizeof *x);
        *any = true;
        if (!optimal) return OT_OK;
        if (which < 2 && !pin(lp, which ? "loops" : "least", m, which, peak_col, obj))
            return no_memory(m);
    }
    return OT_OK;
}

static ot_status read_solution(const net *m, const double *x, ot_path *path)
{
    const ot_seq *s = m->s;
    uint32_t pos = 0, n = 0;
    ot_choice *steps = OT_NEW_N(s->arena, ot_choice, s->n + 1u);
    double time = 0;
    int64_t peak = 0;
    if (!steps) return no_memory(m);
    while (pos < s->n) {
        const arc *a = NULL;
        for (uint32_t k = 0; k < m->n_arcs && !a; k++)
            if (m->arcs[k].from == pos && x[k] > 0.5) a = &m->arcs[k];
        if (!a) return OT_OK; /* keep the old path */
        if (a->choice != OT_NONE)
            steps[n++] = path->pool[a->choice];
        else
            for (uint32_t p = a->from; p < a->to; p++)
                steps[n++] = (ot_choice){
                    .first = p, .end = p, .time = s->time[p + 1] - s->time[p], .peak = s->live[p]};
        time += a->time;
        peak = ot_max(peak, a->peak);
        pos = a->to;
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

/* requires a solved path. Fails: OT_E_NOMEM; never for being hard (the path stays). */
ot_status ot_tie_break(const ot_seq *s, const ot_target *t, const ot_plan_options *o, ot_path *path)
{
    (void)t;
    if (o->force || path->n_pool == 0) return OT_OK;
    net m = {.s = s, .limit = time_limit(s, o, path->time)};
    double peak_limit = o->memory_budget > 0        ? (double)o->memory_budget
                        : o->goal == OT_GOAL_MEMORY ? (double)path->peak
                                                    : 1e300;
    bool any;
    OT_TRY(build_net(path, peak_limit, &m, &any));
    if (!any) return OT_OK;
    uint32_t *row_of = OT_NEW_N(s->arena, uint32_t, s->n + 1u);
    if (!row_of) return no_memory(&m);
    for (uint32_t p = 0; p < m.n_keys; p++) row_of[m.key[p]] = p;
    uint32_t peak_col;
    ot_lp *lp = build_lp(&m, row_of, &peak_col);
    double *x = OT_NEW_N(s->arena, double, m.n_arcs + 2u);
    if (!lp || !x) return no_memory(&m);
    OT_TRY(solve(&m, lp, peak_col, x, &any));
    return any ? read_solution(&m, x, path) : OT_OK;
}
