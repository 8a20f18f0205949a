/* One more candidate: the model with its normalisations taken apart (stage split/), planned and weighed like the model as it is.
 *
 *   planned, weighed --------------------------------> bytes, seconds ---.
 *   copy -- split -- planned, weighed ---------------> bytes, seconds ----> if it wins, the model itself is split, and has that plan
 */
#include "contest.h"

#include "rewrite/rewrite.h"
#include "split/split.h"

#include <math.h>

#define LESS         0.98 /* of what the other plan takes: no difference is worth another rounding */
#define WINS         0.88 /* of the untiled model's growth, as for other plans */
#define TIME_ABOUT   1e-9
#define BYTE_SECONDS 5e-10
#define HALVINGS     4   /* of these */
#define LARGE        0.1 /* of the untiled model's peak: only values of that size weigh, in one of the plans */
#define PLANS        5   /* to begin with */

/* A region of p reduces node id in parts. */
static bool in_parts(const ot_plan *p, ot_id id)
{
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        for (uint32_t i = 0; i < r->n_nodes; i++)
            for (uint32_t d = 0; r->nodes[i].node == id && d < r->n_dims; d++)
                if (r->nodes[i].lead_axis[d] == OT_AX_SUM) return true;
    }
    return false;
}

/* m's Softmaxes are taken apart for nothing: there are some, and p cuts the pixels of none of them. */
static bool softmax_idle(const ot_model *m, const ot_plan *p)
{
    bool any = false;
    for (uint32_t k = 0; k < m->n_splits; k++) {
        if (m->graph->nodes[m->splits[k].parts[0]].op != OT_OP_ReduceMax) continue;
        any = true;
        if (in_parts(p, m->splits[k].parts[0])) return false;
    }
    return any;
}

/* A plan with o. Where bytes weigh so much that nothing which saves them keeps within the time allowed, they weigh less and less. */
static ot_status plan_in_reach(ot_graph *g, const ot_target *t, const ot_plan_options *o, ot_plan **p)
{
    ot_plan_options less = *o;
    OT_TRY(ot_plan_graph(g, t, &less, p));
    for (int k = 0; k < HALVINGS && o->byte_seconds > 0 && !o->force && (*p)->n_regions == 0; k++) {
        ot_plan_free(*p);
        *p = NULL;
        less.byte_seconds /= 2;
        OT_TRY(ot_plan_graph(g, t, &less, p));
    }
    return OT_OK;
}

/* The plan for a copy of g with its normalisations taken apart, and its Softmaxes over pixels, where `softmax`. *p NULL: there are none. */
static ot_status plan_copy(ot_graph *g, const ot_target *t, const ot_plan_options *made, const ot_plan_options *o, bool pinned,
                           bool softmax, ot_plan **p, bool *idle)
{
    ot_model *copy = NULL;
    uint32_t n = 0;
    *p = NULL;
    OT_TRY(ot_model_clone(g->model, &copy));
    ot_status s = ot_split_norms(copy->graph, softmax, &n);
    if (s == OT_OK && n > 0) s = plan_in_reach(copy->graph, t, made, p);
    if (s == OT_OK && *p) s = ot_weigh_plan(copy->graph, t, o, pinned, p);
    if (s != OT_OK && *p) {
        ot_plan_free(*p);
        *p = NULL;
    }
    if (s == OT_E_BUDGET && o->memory_budget > 0) s = OT_OK; /* the model as it is has a plan that keeps to it */
    if (*p) (*p)->whole_softmax = !softmax;
    *idle = *p && softmax_idle(copy, *p);
    ot_model_free(copy);
    return s;
}

/* The plan for the split model, made with `made` and weighed with o; *p NULL: there is nothing to split. */
static ot_status plan_split(ot_graph *g, const ot_target *t, const ot_plan_options *made, const ot_plan_options *o, bool pinned,
                            ot_plan **p)
{
    bool idle;
    OT_TRY(plan_copy(g, t, made, o, pinned, true, p, &idle));
    if (!idle) return OT_OK;
    ot_plan_free(*p);
    return plan_copy(g, t, made, o, pinned, false, p, &idle);
}

static double weight(const ot_figures *f, const ot_figures *untiled)
{
    return (double)ot_weight(f->growth_bytes, f->loaded_bytes, untiled);
}

/* The plan b for the split model is to be preferred to a, which is for it, too, or for the model as it is, as `whole` is. */
static bool wins(const ot_plan_options *o, const ot_plan *a, const ot_plan *whole, const ot_plan *b)
{
    if (b->n_regions == 0) return false;
    if (o->force) return true;
    if (o->goal == OT_GOAL_TIME && o->memory_budget == 0) return b->tiled.time_s < LESS * a->tiled.time_s;
    const double allowed = fmin(whole->untiled.time_s, b->untiled.time_s) *
                           (1 + o->max_slowdown); /* the checker knows the latter only */
    if (o->goal == OT_GOAL_MEMORY && b->tiled.time_s > allowed * (1 + TIME_ABOUT)) return false;
    if (o->goal == OT_GOAL_TIME && ot_budget_fits(&a->tiled, o) != ot_budget_fits(&b->tiled, o))
        return ot_budget_fits(&b->tiled, o);
    if (o->goal == OT_GOAL_TIME) return b->tiled.time_s < LESS * a->tiled.time_s; /* live tensors of both keep to the budget */
    if (whole->untiled.growth_bytes > 0 && b->tiled.growth_bytes > 0)
        return weight(&b->tiled, &whole->untiled) < LESS * weight(&a->tiled, &whole->untiled) &&
               weight(&b->tiled, &whole->untiled) < WINS * (double)whole->untiled.growth_bytes;
    return (double)b->tiled.peak_bytes < LESS * (double)a->tiled.peak_bytes;
}

/* The same, where it takes longer than the model as it is may take: what is allowed is counted from that. */
static ot_status plan_in_time(ot_graph *g, const ot_target *t, const ot_plan_options *made, const ot_plan_options *o,
                              double allowed, bool pinned, ot_plan **p)
{
    OT_TRY(plan_split(g, t, made, o, pinned, p));
    if (!*p || o->goal != OT_GOAL_MEMORY || o->force || (*p)->n_regions == 0 || (*p)->tiled.time_s <= allowed) return OT_OK;
    ot_plan_options strict = *o, strictly = *made;
    strict.max_slowdown = strictly.max_slowdown = fmax(0, allowed / (*p)->untiled.time_s - 1);
    ot_plan_free(*p);
    return plan_split(g, t, &strictly, &strict, pinned, p);
}

/* Plans to begin with: the goal's own; those in which bytes weigh: of all values, also what nodes take beside them, the same of large values alone;
 * and all that can be tiled. Live bytes, by which plans are made, say little of a process where
 * every value is in two layouts for a while; weighing takes out what does not lower its growth. */
static ot_status try_plans(ot_graph *g, const ot_target *t, const ot_plan_options *o, bool pinned, const ot_plan *p, ot_plan **best)
{
    const double allowed = p->untiled.time_s * (1 + o->max_slowdown);
    const bool all = o->goal == OT_GOAL_MEMORY && !o->force && o->force_form == OT_FORM_NONE && t->runtime->chunk_arena;
    *best = NULL;
    const int64_t levels[PLANS] = {o->level, 0, 1, (int64_t)(LARGE * (double)p->untiled.peak_bytes), 0};
    for (int k = 0; k < (all ? PLANS : 1); k++) {
        ot_plan_options made = *o;
        ot_plan *other = NULL;
        made.byte_seconds = k > 0 ? BYTE_SECONDS : 0;
        made.tie_break = o->tie_break && k == 0;
        made.level = levels[k];
        made.force = o->force || k == PLANS - 1;
        OT_TRY(plan_in_time(g, t, &made, o, allowed, pinned, &other));
        if (ot_dbg['D'] && other)
            fprintf(stderr, "> Split: %u regions, %.3f ms, peak %lld, growth %lld\n", other->n_regions, other->tiled.time_s * 1e3,
                    (long long)other->tiled.peak_bytes, (long long)other->tiled.growth_bytes);
        if (other && wins(o, *best ? *best : p, p, other)) {
            ot_plan_free(*best);
            *best = other;
        } else {
            ot_plan_free(other);
        }
    }
    return OT_OK;
}

ot_status ot_weigh_split(ot_graph *g, const ot_target *t, const ot_plan_options *o, bool pinned, ot_plan **p)
{
    ot_plan *best;
    uint32_t n;
    if (t->bit_exact || g->n_nodes == 0) return OT_OK;
    OT_TRY(try_plans(g, t, o, pinned, *p, &best));
    if (!best) return OT_OK;
    const ot_figures whole = (*p)->untiled;
    ot_plan_free(*p);
    *p = best;
    best->whole = whole;
    best->is_split = true;
    return ot_split_norms(g, !best->whole_softmax, &n);
}
