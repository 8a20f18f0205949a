/* A plan that keeps to a budget over a range: plans for one size are made in the order in which
 * people like them best, and each is bounded; the first whose bound is within the budget wins.
 *
 *   the goal's own plan  ->  the same within the budget and parts of it (live bytes, at the design
 *                        size)  ->  goal memory, slower and slower
 *
 */
#include "size_bounds.h"

#include "select/select.h"

typedef struct search {
    const ot_bounds_case *c;
    const ot_plan_options *o; /* the user's */
    ot_arena *a;
    ot_plan *best; /* NULL: none yet */
    ot_bounds_facts facts;
    bool holds;
} search;

static int64_t worst(const ot_bounds_side *s) { return ot_max(s->live_bytes, s->growth_bytes); }

/* Bound p and take it in, if it is the best so far; else free it. */
static ot_status enter(search *x, ot_plan *p)
{
    ot_bounds_case c = *x->c;
    ot_bounds_facts facts;
    c.plan = p;
    ot_status s = ot_bounds_compute(&c, x->a, &facts);
    if (s != OT_OK) {
        ot_plan_free(p);
        return s;
    }
    const bool holds = facts.tiled.verdict == OT_BOUNDS_PROVED &&
                       p->tiled.peak_bytes <= x->o->memory_budget;
    if (ot_dbg['P'])
        fprintf(stderr, "> Range budget: %s, %lld live, %lld growth\n",
                ot_bounds_verdict_name(facts.tiled.verdict), (long long)facts.tiled.live_bytes,
                (long long)facts.tiled.growth_bytes);
    if (x->best && !holds && (x->holds || worst(&facts.tiled) >= worst(&x->facts.tiled))) {
        ot_plan_free(p);
        return OT_OK;
    }
    ot_plan_free(x->best);
    x->best = p;
    x->facts = facts;
    x->holds = holds;
    return OT_OK;
}

/* A plan of these options, unless one was found; a limit that cannot be kept is no failure. */
static ot_status try_plan(search *x, const ot_plan_options *o)
{
    ot_graph *g = x->c->planned->graph;
    ot_diag *told = g->model->diag, aside = {0};
    ot_plan *p = NULL;
    if (x->holds) return OT_OK;
    g->model->diag = &aside;
    ot_status s = ot_plan_graph(g, x->c->target, o, &p);
    if (s == OT_OK) s = ot_select_plan(g, x->c->target, o, false, &p);
    g->model->diag = told;
    if (s == OT_OK) return enter(x, p);
    ot_plan_free(p);
    if (s == OT_E_BUDGET) return OT_OK;
    return s == OT_E_NOMEM ? ot_fail_nomem(told) : ot_fail(told, s, "%s", aside.message);
}

static ot_status try_all(search *x)
{
    static const double PARTS[] = {1.0, 0.6, 0.35}, SLOWER[] = {0, 0.3, 1.0};
    ot_plan_options o = *x->o;
    o.memory_budget = 0;
    OT_TRY(try_plan(x, &o));
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
        o = *x->o;
        o.memory_budget = ot_max(1, (int64_t)(PARTS[k] * (double)o.memory_budget));
        OT_TRY(try_plan(x, &o));
    }
    for (size_t k = 0; k < sizeof SLOWER / sizeof *SLOWER; k++) {
        o = *x->o;
        o.goal = OT_GOAL_MEMORY;
        o.memory_budget = 0;
        o.max_slowdown = SLOWER[k] > o.max_slowdown ? SLOWER[k] : o.max_slowdown;
        OT_TRY(try_plan(x, &o));
    }
    return OT_OK;
}

/* Why the best plan that was found does not do. */
static ot_status refuse(const search *x)
{
    const ot_bounds_side *t = &x->facts.tiled;
    const int64_t budget = x->o->memory_budget;
    if (!x->best)
        return ot_fail(x->c->diag, OT_E_BUDGET,
                       "memory budget cannot be kept over the range: no plan keeps to it");
    if (t->verdict == OT_BOUNDS_UNKNOWN)
        return ot_fail(x->c->diag, OT_E_BUDGET,
                       "memory budget cannot be proved over the range: %.600s", t->why);
    if (t->live_bytes > budget)
        return ot_fail(x->c->diag, OT_E_BUDGET,
                       "memory budget cannot be kept over the range: at %.300s live tensors take "
                       "%lld bytes, %lld are allowed",
                       t->live_at, (long long)t->live_bytes, (long long)budget);
    if (t->growth_bytes > budget)
        return ot_fail(x->c->diag, OT_E_BUDGET,
                       "memory budget cannot be kept over the range: at %.300s the process grows "
                       "by up to %lld bytes, %lld are allowed",
                       t->growth_at, (long long)t->growth_bytes, (long long)budget);
    return ot_fail(x->c->diag, OT_E_BUDGET,
                   "memory budget cannot be kept over the range: the plan holds %lld bytes at "
                   "once, %lld are allowed",
                   (long long)x->best->tiled.peak_bytes, (long long)budget);
}

ot_status ot_bounds_plan(const ot_bounds_case *c, const ot_plan_options *o, ot_arena *a,
                         ot_plan **p, ot_bounds_facts *out)
{
    search x = {.c = c, .o = o, .a = a};
    ot_status s = try_all(&x);
    if (s == OT_OK && !x.holds) s = refuse(&x);
    if (s != OT_OK) {
        ot_plan_free(x.best);
        return s;
    }
    *p = x.best;
    *out = x.facts;
    return OT_OK;
}
