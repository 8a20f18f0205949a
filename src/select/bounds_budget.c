/* A plan that keeps to a budget over a range: plans for one size are made in the order in which
 * people like them best, and each is bounded; the first whose bound is within the budget wins.
 *
 *   the goal's own plan  ->  the same within the budget and parts of it (live bytes, at the design
 *                        size)  ->  goal memory, slower and slower
 */
#include "variant.h"

#include <math.h>

typedef struct search {
    ot_bounds_case c;
    const ot_plan_options *o; /* the user's */
    ot_model *design;
    ot_arena *a;
    ot_plan *best; /* NULL: none yet */
    ot_bounds_facts facts;
    bool holds;
} search;

static int64_t worst(const ot_bounds_side *s) { return ot_max(s->live_bytes, s->process_bytes); }

/* Bound p and take it in, if it is the best so far; else free it. */
static ot_status enter(search *x, ot_plan *p)
{
    ot_bounds_facts facts;
    x->c.plan = p;
    ot_status s = ot_bounds_compute(&x->c, x->a, &facts);
    if (s != OT_OK) {
        ot_plan_free(p);
        return s;
    }
    const bool holds = facts.tiled.verdict == OT_BOUNDS_PROVED &&
                       p->tiled.peak_bytes <= x->o->memory_budget;
    if (ot_dbg['P'])
        fprintf(stderr, "> Budget over sizes: %s, %lld live, process %lld\n",
                ot_bounds_verdict_name(facts.tiled.verdict), (long long)facts.tiled.live_bytes,
                (long long)facts.tiled.process_bytes);
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

/* A plan of these options; a limit that cannot be kept is no failure. The first that holds is the
 * one that people like best. */
static ot_status attempt(void *of, const ot_plan_options *o, double *met)
{
    search *x = of;
    ot_diag *told = x->design->diag, aside = {0};
    ot_plan *p = NULL;
    x->design->diag = &aside;
    ot_status s = ot_select_plan(x->design->graph, x->c.target, o, false, &p);
    x->design->diag = told;
    if (s == OT_OK)
        s = enter(x, p);
    else if (s == OT_E_BUDGET)
        s = OT_OK;
    else if (s != OT_E_NOMEM)
        s = ot_fail(told, s, "%s", aside.message);
    *met = x->holds ? 0 : INFINITY;
    return s == OT_E_NOMEM ? ot_fail_nomem(told) : s;
}

/* What the goal alone gives, before anything is asked of memory. */
static ot_status try_unlimited(search *x, double *met)
{
    ot_plan_options o = *x->o;
    o.memory_budget = 0;
    return attempt(x, &o, met);
}

static ot_status try_all(search *x)
{
    ot_live_bytes live;
    double met = INFINITY;
    OT_TRY(try_unlimited(x, &met));
    if (isfinite(met)) return OT_OK;
    OT_TRY(ot_live_bytes_of(x->design->graph, &live));
    const ot_budget_search b = {.of = x,
                                .o = x->o,
                                .untiled = {.peak_bytes = live.peak, .growth_bytes = live.peak},
                                .n_nodes = x->design->graph->n_order,
                                .stops = true,
                                .attempt = attempt};
    return ot_budget_run(&b);
}

/* Why the best plan that was found does not do. */
static ot_status refuse(const search *x)
{
    const ot_bounds_side *t = &x->facts.tiled;
    const int64_t budget = x->o->memory_budget;
    char a[64], b[64];
    ot_format_limit(budget, b, sizeof b);
    if (!x->best)
        return ot_fail(x->c.diag, OT_E_BUDGET,
                       "memory budget cannot be kept over the range: no plan keeps to it");
    if (t->verdict == OT_BOUNDS_UNKNOWN)
        return ot_fail(x->c.diag, OT_E_BUDGET,
                       "memory budget cannot be proved over the range: %.600s", t->why);
    if (t->live_bytes > budget)
        return ot_fail(x->c.diag, OT_E_BUDGET,
                       "memory budget cannot be kept over the range: at %.300s live tensors take "
                       "%s, %s are allowed",
                       t->live_at, ot_format_exact_bytes(t->live_bytes, a, sizeof a), b);
    if (t->process_bytes > budget)
        return ot_fail(x->c.diag, OT_E_BUDGET,
                       "memory budget cannot be kept over the range: at %.300s the process takes "
                       "up to %s, %s are allowed",
                       t->growth_at, ot_format_exact_bytes(t->process_bytes, a, sizeof a), b);
    return ot_fail(x->c.diag, OT_E_BUDGET,
                   "memory budget cannot be kept over the range: the plan holds %s at once, %s "
                   "are allowed",
                   ot_format_exact_bytes(x->best->tiled.peak_bytes, a, sizeof a), b);
}

ot_status ot_bounds_plan(const ot_select_request *r, ot_model *design, ot_plan **p,
                         ot_bounds_facts *out)
{
    search x = {.c = {.file = r->model,
                      .planned = design,
                      .target = r->target,
                      .ranges = r->sizes.ranges,
                      .n = r->sizes.n_ranges,
                      .budget = r->options->memory_budget,
                      .diag = r->diag},
                .o = r->options,
                .design = design,
                .a = r->model->arena};
    *p = NULL;
    ot_status s = try_all(&x);
    if (s == OT_OK && !x.holds) s = refuse(&x);
    if (s != OT_OK && (s != OT_E_BUDGET || !x.o->best_effort)) {
        ot_plan_free(x.best);
        return s;
    }
    *p = x.best;
    *out = x.facts;
    return s;
}
