/* Candidates: the plan as made, the same goal with one form everywhere, the best of these without one region after the other; all of
 * them, and the untiled graph, as a branch in which the runtime keeps no block for tensors (rewrite/branch.c), where that is possible.
 *
 *   planner -- copy -- rewrite [-- branch] -- play --> bytes            the least wins; within 2 %, the faster one
 *
 * The model as it is stays unless a candidate takes an eighth less.
 */
#include "weigh.h"

#include "analyse/analyse.h"
#include "process/process.h"
#include "region/forms.h"
#include "rewrite/rewrite.h"

#define WINS       0.88 /* of the untiled model's growth: tiled models are predicted 4 % too low in the median, a tenth in bad cases */
#define WINS_BLOCK 0.95  /* where one block is placed before the run: predicted within 5 % */
#define WINS_HALF  0.70  /* half precision: casts at the borders of bodies, of which a third more was measured than is predicted */
#define BRANCH     0.95  /* of what the same plan takes without the branch */
#define ABOUT      0.02  /* growth that differs by less is taken to be equal */
#define MOST_NODES 600   /* of a graph for which other plans are made; larger ones are judged as planned */
#define MOST_WORK  20000 /* nodes of graphs that are rewritten without one region and played */

typedef struct weigher {
    ot_graph *g;
    const ot_target *t;
    const ot_plan_options *o;
    bool pinned; /* the file states all extents */
    bool branch; /* candidates are played as a branch */
} weigher;

/* Memory patterns are escaped by a branch that reads a sequence. */
static bool takes_branch(const weigher *w) { return (w->t->runtime->cannot & OT_NEEDS_SEQUENCE) == 0 && ot_branch_fits(w->g); }

/* p on a copy of the model, of which only `regions` ([n]) are written. Caller frees. */
static ot_status write_copy(const weigher *w, const ot_plan *p, ot_region *regions, uint32_t n, ot_model **copy)
{
    ot_plan some = *p;
    some.regions = regions;
    some.n_regions = n;
    OT_TRY(ot_model_clone(w->g->model, copy));
    ot_status s = n > 0 ? ot_fold_static((*copy)->graph, &some) : OT_OK;
    if (s == OT_OK && n > 0) s = ot_rewrite((*copy)->graph, &some);
    if (s == OT_OK && w->branch) s = ot_branch(*copy);
    if (s == OT_OK) s = ot_assure((*copy)->graph, OT_P_ORDER | OT_P_USES);
    if (s != OT_OK) ot_model_free(*copy);
    return s;
}

/* What the process grows by under p, of which only `regions` ([n]) are written: without bound where a tensor is larger than allowed. */
static ot_status play(const weigher *w, const ot_plan *p, ot_region *regions, uint32_t n, int64_t *growth)
{
    ot_model *copy;
    ot_process_figures f = {0};
    ot_status s = write_copy(w, p, regions, n, &copy);
    if (s == OT_OK) {
        s = ot_process_growth(copy->graph, w->t->runtime, w->pinned || n > 0, &f);
        *growth = w->o->max_tensor && ot_largest_tensor(copy->graph).bytes > w->o->max_tensor ? INT64_MAX : f.growth;
        ot_model_free(copy);
    }
    return s == OT_E_NOMEM ? ot_fail_nomem(w->g->model->diag) : s;
}

/* Bytes of the largest tensor that p makes. */
static ot_status measure_largest(const weigher *w, const ot_plan *p, int64_t *bytes)
{
    ot_model *copy;
    ot_status s = write_copy(w, p, p->regions, p->n_regions, &copy);
    if (s == OT_OK) {
        *bytes = ot_largest_tensor(copy->graph).bytes;
        ot_model_free(copy);
    }
    return s == OT_E_NOMEM ? ot_fail_nomem(w->g->model->diag) : s;
}

/* The planner reckons with tiles and outputs, and not with what a form makes besides: another form, where that is too large. */
static ot_status keep_limit(const weigher *w, ot_plan **p)
{
    static const ot_form FORMS[] = {OT_FORM_PEELED, OT_FORM_UNROLLED, OT_FORM_LOOP, OT_FORM_SCAN, OT_FORM_WINDOW};
    ot_diag *told = w->g->model->diag;
    int64_t bytes, least;
    OT_TRY(measure_largest(w, *p, &bytes));
    least = bytes;
    for (size_t k = 0; bytes > w->o->max_tensor && k < sizeof FORMS / sizeof *FORMS; k++) {
        ot_plan_options o = *w->o;
        ot_diag aside = {0};
        ot_plan *other = NULL;
        o.force_form = FORMS[k];
        if (!ot_runtime_takes(w->t->runtime, FORMS[k])) continue;
        w->g->model->diag = &aside;
        ot_status s = ot_plan_graph(w->g, w->t, &o, &other);
        if (s == OT_OK) s = measure_largest(w, other, &bytes);
        w->g->model->diag = told;
        if (s == OT_E_NOMEM) return ot_fail_nomem(told);
        least = s == OT_OK ? ot_min(least, bytes) : least;
        bool holds = s == OT_OK && bytes <= w->o->max_tensor;
        ot_plan_free(holds ? *p : other);
        if (holds) *p = other;
        if (s != OT_OK) bytes = INT64_MAX;
    }
    if (bytes <= w->o->max_tensor) return OT_OK;
    return ot_fail(told, OT_E_BUDGET,
                   "max tensor cannot be kept: no form of the tiles makes tensors of less than %lld bytes, %lld are allowed",
                   (long long)least, (long long)w->o->max_tensor);
}

/* a is to be preferred to b. */
static bool beats(int64_t a, double time_a, int64_t b, double time_b)
{
    if ((double)a < (double)b * (1 - ABOUT)) return true;
    return (double)a <= (double)b * (1 + ABOUT) && time_a < time_b;
}

/* Plans for the same goal in which one form is preferred; the best of all in *p. */
static ot_status try_forms(const weigher *w, ot_plan **p, int64_t *growth)
{
    static const ot_form FORMS[] = {OT_FORM_PEELED, OT_FORM_UNROLLED, OT_FORM_LOOP, OT_FORM_SCAN, OT_FORM_PRESCAN};
    for (size_t k = 0; k < sizeof FORMS / sizeof *FORMS; k++) {
        ot_plan_options o = *w->o;
        ot_plan *other = NULL;
        int64_t grown;
        o.force_form = FORMS[k];
        if (!ot_runtime_takes(w->t->runtime, FORMS[k])) continue;
        ot_diag *told = w->g->model->diag, aside = {0};
        if (o.max_tensor) w->g->model->diag = &aside; /* a form that does not hold is no failure */
        ot_status s = ot_plan_graph(w->g, w->t, &o, &other);
        w->g->model->diag = told;
        if (s == OT_E_BUDGET && o.max_tensor) continue;
        if (s == OT_E_NOMEM && o.max_tensor) return ot_fail_nomem(told);
        OT_TRY(s);
        s = play(w, other, other->regions, other->n_regions, &grown);
        /* nothing tiled is no win of that form: the untiled model has its turn later, and says why */
        bool better = s == OT_OK && other->n_regions > 0 && beats(grown, other->tiled.time_s, *growth, (*p)->tiled.time_s);
        ot_plan_free(better ? *p : other);
        OT_TRY(s);
        if (!better) continue;
        *p = other;
        *growth = grown;
    }
    return OT_OK;
}

/* Regions, from the last to the first, without which the process grows no more, are marked in keep. */
static ot_status drop_idle(const weigher *w, const ot_plan *p, bool *keep, int64_t *growth)
{
    ot_region *some = malloc((p->n_regions + 1u) * sizeof *some);
    double time = p->tiled.time_s, allowed = p->untiled.time_s * (1 + w->o->max_slowdown);
    uint64_t work = 0;
    ot_status s = some ? OT_OK : ot_fail_nomem(w->g->model->diag);
    for (uint32_t k = p->n_regions; s == OT_OK && k-- > 0 && work < MOST_WORK; work += w->g->n_nodes) {
        double without = time + p->regions[k].benefit;
        uint32_t n = 0;
        int64_t grown;
        if (without > allowed && without > time) continue;
        for (uint32_t j = 0; j < p->n_regions; j++) {
            if (!keep[j] || j == k) continue;
            some[n] = p->regions[j];
            some[n].id = w->o->first_region + n;
            n++;
        }
        s = play(w, p, some, n, &grown);
        if (s != OT_OK || !beats(grown, without, *growth, time)) continue;
        keep[k] = false;
        *growth = grown;
        time = without;
    }
    free(some);
    return s;
}

/* Part of the untiled model's growth that a plan must not exceed. */
static double least_win(const weigher *w)
{
    const ot_graph *g = w->g;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (g->values[v].dtype == OT_F16 && !g->values[v].init) return WINS_HALF;
    return w->t->runtime->one_block ? WINS_BLOCK : WINS;
}

/* Regions of *p that do not make the process grow less go; in *growth what is left takes. */
static ot_status drop_regions(const weigher *w, ot_plan **p, int64_t *growth)
{
    int64_t none;
    bool all = true, *keep = malloc(((*p)->n_regions + 1u) * sizeof *keep);
    if (!keep) return ot_fail_nomem(w->g->model->diag);
    for (uint32_t k = 0; k < (*p)->n_regions; k++) keep[k] = true;
    ot_status s = drop_idle(w, *p, keep, growth);
    if (s == OT_OK) s = play(w, *p, NULL, 0, &none);
    if (s == OT_OK && (double)*growth > least_win(w) * (double)none) {
        for (uint32_t k = 0; k < (*p)->n_regions; k++) keep[k] = false;
        *growth = none;
    }
    for (uint32_t k = 0; k < (*p)->n_regions; k++) all &= keep[k];
    if (s == OT_OK && !all) s = ot_plan_keep(w->g, w->t, w->o, keep, OT_WHY_GROWTH, *p);
    free(keep);
    return s;
}

/* The branch has to pay by itself. */
static ot_status drop_branch(const weigher *w, ot_plan *p, int64_t *growth)
{
    weigher plain = *w;
    int64_t without;
    plain.branch = false;
    if (w->branch) OT_TRY(play(&plain, p, p->regions, p->n_regions, &without));
    p->in_branch = w->branch && (double)*growth <= BRANCH * (double)without;
    if (w->branch && !p->in_branch) *growth = without;
    return OT_OK;
}

static ot_status improve(weigher *w, int64_t untiled, ot_plan **p, int64_t *growth)
{
    w->branch = takes_branch(w);
    OT_TRY(play(w, *p, (*p)->regions, (*p)->n_regions, growth));
    if (w->g->n_nodes <= MOST_NODES && (*p)->n_regions > 0) OT_TRY(try_forms(w, p, growth));
    OT_TRY(drop_regions(w, p, growth));
    OT_TRY(drop_branch(w, *p, growth));
    if ((double)*growth <= least_win(w) * (double)untiled) return OT_OK;
    if (w->o->max_tensor && ot_largest_tensor(w->g).bytes > w->o->max_tensor) return OT_OK; /* it has to be */
    bool *none = calloc((*p)->n_regions + 1u, sizeof *none);
    if (!none) return ot_fail_nomem(w->g->model->diag);
    ot_status s = (*p)->n_regions > 0 ? ot_plan_keep(w->g, w->t, w->o, none, OT_WHY_GROWTH, *p) : OT_OK;
    free(none);
    (*p)->in_branch = false;
    *growth = untiled;
    return s;
}

/* Of the model as it is, and as it is written. */
static ot_status fill_largest(weigher *w, ot_plan *p)
{
    w->branch = p->in_branch;
    p->untiled.largest_bytes = p->tiled.largest_bytes = ot_largest_tensor(w->g).bytes;
    return p->n_regions > 0 ? measure_largest(w, p, &p->tiled.largest_bytes) : OT_OK;
}

ot_status ot_weigh_plan(ot_graph *g, const ot_target *t, const ot_plan_options *o, bool pinned, ot_plan **p)
{
    weigher w = {.g = g, .t = t, .o = o, .pinned = pinned};
    ot_process_figures whole;
    int64_t growth;
    if (g->n_nodes == 0) return OT_OK;
    if (o->max_tensor) OT_TRY(keep_limit(&w, p));
    if (!ot_runtime_plays(t->runtime)) return fill_largest(&w, *p);
    ot_status s = ot_process_growth(g, t->runtime, pinned, &whole);
    if (s != OT_OK) return ot_fail_nomem(g->model->diag);
    growth = whole.growth;
    if (o->goal == OT_GOAL_MEMORY && !o->force && o->force_form == OT_FORM_NONE)
        OT_TRY(improve(&w, whole.growth, p, &growth));
    else if ((*p)->n_regions > 0)
        OT_TRY(play(&w, *p, (*p)->regions, (*p)->n_regions, &growth));
    if (ot_dbg['P']) { /* the last that is dumped is what is written */
        w.branch = (*p)->in_branch;
        OT_TRY(play(&w, *p, (*p)->regions, (*p)->n_regions, &growth));
    }
    (*p)->untiled.growth_bytes = whole.n_unknown ? 0 : whole.growth;
    (*p)->tiled.growth_bytes = whole.n_unknown ? 0 : growth;
    return fill_largest(&w, *p);
}
