/* A memory budget: live tensors must keep to it (the planner sees to that, or fails), and where
 * the runtime's allocator is known, the process should, too. Who gives a budget means the
 * process.
 *
 *   the goal's own plan within the budget ----------.
 *   the same within a part of the budget             \   on copies of the model, each weighed, and
 *   plans for goal memory, of some slowdown or more  /   with its normalisations taken apart
 *                                                        (select_decomposed.c)
 *                                                   '--> fastest that fits, else the one that grows
 *                                                   least
 *
 *
 *
 */
#include "candidates.h"

#include "transform/decompose/decompose.h"

/* of the budget, by prediction: tiled models are predicted a tenth too low in bad cases */
#define FITS       0.9
#define TIME_ABOUT 1e-9 /* times that near are the same */

static const double PARTS[] = {0.6, 0.35}; /* of the budget */

typedef struct search {
    ot_graph *g;
    const ot_target *t;
    const ot_plan_options *o; /* the user's */
    bool static_shape;
    ot_plan *best;      /* keeps live tensors within the budget; NULL: none does yet */
    ot_diag why;        /* the first refusal of the planner */
    ot_figures untiled; /* of the model as it is: every plan tells the same */
} search;

bool ot_budget_fits(const ot_figures *f, const ot_plan_options *o)
{
    return (double)f->growth_bytes <= FITS * (double)o->memory_budget;
}

static bool fits(const search *x, const ot_plan *p) { return ot_budget_fits(&p->tiled, x->o); }

static bool is_met(const search *x) { return x->best && fits(x, x->best); }

static bool is_better(const search *x, const ot_plan *p)
{
    const ot_plan *best = x->best;
    if (!best) return true;
    /* unknown: the planner's order counts */
    if (p->tiled.growth_bytes == 0 || best->tiled.growth_bytes == 0) return false;
    if (x->o->goal == OT_GOAL_TIME && fits(x, p) != fits(x, best)) return fits(x, p);
    if (x->o->goal == OT_GOAL_TIME && fits(x, p))
        return p->tiled.time_s < best->tiled.time_s * (1 - TIME_ABOUT);
    return ot_score_bytes(p->tiled.growth_bytes, p->tiled.loaded_bytes, &x->untiled) <
           ot_score_bytes(best->tiled.growth_bytes, best->tiled.loaded_bytes, &x->untiled);
}

/* Take p in, or free it. */
static void enter(search *x, ot_plan *p)
{
    x->untiled = p->is_decomposed ? p->whole : p->untiled;
    const bool holds = p->tiled.peak_bytes <= x->o->memory_budget;
    if (ot_dbg['P'])
        fprintf(stderr, "> Budget: peak %lld, growth %lld, %.3f ms\n",
                (long long)p->tiled.peak_bytes, (long long)p->tiled.growth_bytes,
                p->tiled.time_s * 1e3);
    if (holds && is_better(x, p)) {
        ot_plan_free(x->best);
        x->best = p;
    } else {
        ot_plan_free(p);
    }
}

/* A plan for the model, or for it with normalisations taken apart, made on a copy. A limit that
 * cannot be kept is no failure. */
static ot_status try_plan(search *x, const ot_plan_options *o)
{
    ot_diag *told = x->g->model->diag, aside = {0};
    ot_model *copy = NULL;
    ot_plan *p = NULL;
    OT_TRY(ot_model_clone(x->g->model, &copy));
    copy->diag = &aside;
    ot_status s = ot_plan_graph(copy->graph, x->t, o, &p);
    if (s == OT_OK) s = ot_select_plan(copy->graph, x->t, o, x->static_shape, &p);
    if (s == OT_OK) s = ot_select_decomposed(copy->graph, x->t, o, x->static_shape, &p);
    ot_model_free(copy);
    if (s == OT_OK)
        enter(x, p);
    else
        ot_plan_free(p);
    if (s == OT_E_BUDGET && !x->why.message[0]) x->why = aside;
    if (s == OT_OK || s == OT_E_BUDGET) return OT_OK;
    return s == OT_E_NOMEM ? ot_fail_nomem(told) : ot_fail(told, s, "%s", aside.message);
}

/* Plans for the least growth are not made within the budget: what they hold is looked at when
 * they are there. */
static ot_status try_memory(search *x, double slowdown)
{
    ot_plan_options o = *x->o;
    o.goal = OT_GOAL_MEMORY;
    o.memory_budget = 0;
    o.max_slowdown = slowdown;
    return try_plan(x, &o);
}

static ot_status try_part(search *x, double part)
{
    ot_plan_options o = *x->o;
    o.memory_budget = (int64_t)(part * (double)o.memory_budget);
    return o.memory_budget > 0 ? try_plan(x, &o) : OT_OK;
}

static ot_status try_all(search *x)
{
    /* slowdown that a plan for memory may have where a smaller one does not fit */
    static const double SLOWER[] = {0.3, 1.0};
    OT_TRY(try_plan(x, x->o));
    const bool within = x->best, by_time = x->o->goal == OT_GOAL_TIME;
    if (x->o->force_form != OT_FORM_NONE || (by_time && is_met(x))) return OT_OK;
    OT_TRY(try_memory(x, x->o->max_slowdown));
    for (size_t k = 0; within && by_time && k < sizeof PARTS / sizeof *PARTS && !is_met(x); k++)
        OT_TRY(try_part(x, PARTS[k]));
    for (size_t k = within ? 0 : 1; by_time && k < sizeof SLOWER / sizeof *SLOWER && !is_met(x);
         k++)
        if (SLOWER[k] > x->o->max_slowdown) OT_TRY(try_memory(x, SLOWER[k]));
    return OT_OK;
}

ot_status ot_select_budget(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                           bool static_shape, ot_plan **p)
{
    search x = {.g = g, .t = t, .o = o, .static_shape = static_shape};
    *p = NULL;
    ot_status s = try_all(&x);
    if (s == OT_OK && !x.best) s = ot_fail(g->model->diag, OT_E_BUDGET, "%s", x.why.message);
    if (s == OT_OK && x.best->is_decomposed) s = ot_decompose_like(g, x.best);
    if (s != OT_OK) {
        ot_plan_free(x.best);
        return s;
    }
    *p = x.best;
    return OT_OK;
}
