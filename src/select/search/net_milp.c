/* The tie-break's path (plan_net.h) as an integer program, for GLPK.
 *
 *   minimise P           flow:  one unit from node 0 to the last      x_k in {0,1}
 *   then loops           time:  sum t_k x_k <= limit
 *   then tiles           peak:  P >= peak_k x_k for every arc
 *   then time
 *
 * Four solves; what one has reached is a limit of the next. Built with GLPK=yes only: the product
 * asks labels (label_search.c), and tests compare the two.
 */
#include "plan_net.h"

#include "lp.h"

#include <math.h>

/* Branches that a solve may look at: time would not be deterministic. */
enum { NODE_LIMIT = 400 };

/* What is minimised, in this order. */
typedef enum goal { LEAST_PEAK, LEAST_LOOPS, LEAST_TILES, LEAST_TIME, N_GOALS } goal;

static bool add_flow(const ot_net *m, ot_lp *lp, uint32_t *cols, double *coef)
{
    char name[32];
    for (uint32_t p = 0; p < m->n_nodes; p++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < m->n_arcs; k++) {
            if (m->arcs[k].from == p)
                cols[n] = k, coef[n++] = 1;
            else if (m->arcs[k].to == p)
                cols[n] = k, coef[n++] = -1;
        }
        double rhs = p == 0 ? 1 : p + 1 == m->n_nodes ? -1 : 0;
        snprintf(name, sizeof name, "flow%u", p);
        if (!ot_lp_row(lp, name, rhs, rhs, cols, coef, n)) return false;
    }
    return true;
}

/* NULL: no memory. Columns: one for each arc, and the peak. */
static ot_lp *build(const ot_net *m)
{
    ot_lp *lp = ot_lp_new(m->arena);
    uint32_t *cols = OT_NEW_N(m->arena, uint32_t, m->n_arcs + 1u);
    double *coef = OT_NEW_N(m->arena, double, m->n_arcs + 1u);
    char name[32];
    if (!lp || !cols || !coef) return NULL;
    for (uint32_t k = 0; k < m->n_arcs; k++) {
        snprintf(name, sizeof name, "x%u", k);
        if (ot_lp_col(lp, name, 0, 1, 0, true) == OT_NONE) return NULL;
    }
    const uint32_t peak_col = ot_lp_col(lp, "peak", 0, 1e300, 1, false);
    bool ok = peak_col != OT_NONE && add_flow(m, lp, cols, coef);
    for (uint32_t k = 0; k < m->n_arcs && ok; k++) { /* peak in MiB */
        uint32_t two[2] = {peak_col, k};
        double c[2] = {1, -(double)m->arcs[k].peak / 1048576.0};
        snprintf(name, sizeof name, "peak%u", k);
        ok = ot_lp_row(lp, name, 0, 1e300, two, c, 2);
    }
    for (uint32_t k = 0; k < m->n_arcs; k++) cols[k] = k, coef[k] = m->arcs[k].time * 1e3;
    ok = ok && ot_lp_row(lp, "time", -1e300, m->limit * 1e3, cols, coef, m->n_arcs);
    return ok ? lp : NULL;
}

static double cost_of(const ot_net_arc *a, goal of)
{
    switch (of) {
    case LEAST_LOOPS: return a->loops;
    case LEAST_TILES: return a->tiles;
    case LEAST_TIME: return a->time * 1e3;
    default: return 0;
    }
}

/* Fix the value reached for one goal before the next one is minimised. false: no memory. */
static bool fix_goal(ot_lp *lp, const ot_net *m, goal of, double value)
{
    if (of == LEAST_PEAK)
        return ot_lp_row(lp, "least", -1e300, value * (1 + 1e-9) + 1e-9, &m->n_arcs, (double[]){1},
                         1);
    uint32_t *cols = OT_NEW_N(m->arena, uint32_t, m->n_arcs + 1u);
    double *coef = OT_NEW_N(m->arena, double, m->n_arcs + 1u);
    if (!cols || !coef) return false;
    for (uint32_t k = 0; k < m->n_arcs; k++) cols[k] = k, coef[k] = cost_of(&m->arcs[k], of);
    /* whole numbers, which GLPK may state a little too low */
    return ot_lp_row(lp, of == LEAST_LOOPS ? "loops" : "tiles", -1e300, floor(value + 0.5) + 0.5,
                     cols, coef, m->n_arcs);
}

/* x [n_arcs + 1]; *found: it holds a path. */
static ot_status solve(const ot_net *m, ot_lp *lp, double *x, bool *found)
{
    double obj;
    bool feasible = false, optimal = false;
    double *y = OT_NEW_N(m->arena, double, m->n_arcs + 2u);
    if (!y) return OT_E_NOMEM;
    for (goal of = LEAST_PEAK; of < N_GOALS; of++) {
        ot_lp_set_cost(lp, m->n_arcs, of == LEAST_PEAK);
        for (uint32_t k = 0; k < m->n_arcs; k++) ot_lp_set_cost(lp, k, cost_of(&m->arcs[k], of));
        if (ot_dbg['G']) {
            fprintf(stderr, "\n> Tie-break, objective %d\n", (int)of);
            OT_TRY(ot_lp_dump(lp, stderr));
        }
        OT_TRY(ot_lp_solve(lp, NODE_LIMIT, y, &obj, &feasible, &optimal));
        if (!feasible) return OT_OK;
        memcpy(x, y, (m->n_arcs + 1u) * sizeof *x);
        *found = true;
        if (!optimal) return OT_OK;
        if (of + 1 < N_GOALS && !fix_goal(lp, m, of, obj)) return OT_E_NOMEM;
    }
    return OT_OK;
}

ot_status ot_net_milp(const ot_net *m, bool *used, bool *found)
{
    ot_lp *lp = build(m);
    double *x = OT_NEW_N(m->arena, double, m->n_arcs + 2u);
    *found = false;
    if (!lp || !x) return OT_E_NOMEM;
    OT_TRY(solve(m, lp, x, found));
    for (uint32_t k = 0; k < m->n_arcs; k++) used[k] = *found && x[k] > 0.5;
    return OT_OK;
}
