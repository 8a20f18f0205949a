/* Plans of one graph, one after the other.
 *
 *   graph --> sequence, costs, walk, trials     once
 *               '--> intervals x tilings        once a goal (dynamic_program.c)
 *               '--> streams                    once a number of rows (stream_plan.c)
 *                      '--> plan                for each set of options
 */
#include "search.h"

ot_plan *ot_plan_begin(const ot_target *t)
{
    ot_arena *arena = ot_arena_new();
    ot_plan *p = arena ? OT_NEW(arena, ot_plan) : NULL;
    if (!p) {
        ot_arena_free(arena);
        return NULL;
    }
    p->arena = arena;
    p->outer_weights = t->runtime->outer_weights;
    p->looped_borders = t->runtime->looped_borders;
    p->slices_apart = t->runtime->slices_apart;
    p->nests_scans = t->runtime->nests_scans;
    p->in_order = t->one_tile;
    return p;
}

static ot_status fill(ot_planner *x)
{
    x->fitted = (ot_fitted_cache){.arena = x->arena, .store = ot_region_store_new()};
    if (!x->fitted.store) return ot_fail_nomem(x->g->model->diag);
    OT_TRY(ot_seq_build(x->g, x->arena, &x->s));
    OT_TRY(ot_cost_fill(&x->s, x->t));
    OT_TRY(ot_walk_new(&x->s, &x->w));
    for (int goal = 0; goal < 2; goal++) {
        x->cuts[goal].arena = x->alone[goal][0].arena = x->alone[goal][1].arena = x->arena;
        x->cuts[goal].ends = OT_NEW_N(x->arena, ot_interval_list, x->s.n + 1u);
        if (!x->cuts[goal].ends) return ot_fail_nomem(x->g->model->diag);
    }
    if (x->g->model->opset < 7 || x->s.n == 0) return OT_OK;
    x->tr = ot_trial_new(&x->s, x->t, &x->o);
    return x->tr ? OT_OK : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_planner_open(ot_graph *g, const ot_target *t, ot_planner **out)
{
    ot_arena *arena = ot_arena_new();
    ot_planner *x = arena ? OT_NEW(arena, ot_planner) : NULL;
    *out = NULL;
    if (!x) {
        ot_arena_free(arena);
        return ot_fail_nomem(g->model->diag);
    }
    x->g = g;
    x->t = t;
    x->arena = arena;
    const ot_status s = fill(x);
    if (s == OT_OK)
        *out = x;
    else
        ot_planner_close(x);
    return s;
}

ot_status ot_planner_plan(ot_planner *x, const ot_plan_options *o, ot_plan **out)
{
    ot_arena *scratch = ot_arena_new();
    ot_plan *p = ot_plan_begin(x->t);
    *out = NULL;
    ot_status s = OT_E_NOMEM;
    if (scratch && p) {
        p->store = ot_region_store_hold(x->fitted.store);
        x->o = *o;
        x->s.arena = scratch;
        s = ot_planner_fill(x, p);
        x->s.arena = x->arena;
    } else {
        s = ot_fail_nomem(x->g->model->diag);
    }
    ot_arena_free(scratch);
    if (s == OT_OK)
        *out = p;
    else
        ot_plan_free(p);
    return s;
}

void ot_planner_close(ot_planner *x)
{
    if (!x) return;
    ot_region_store_release(x->fitted.store);
    ot_arena_free(x->arena);
}

ot_status ot_plan_graph(ot_graph *g, const ot_target *t, const ot_plan_options *o, ot_plan **out)
{
    ot_planner *x;
    *out = NULL;
    OT_TRY(ot_planner_open(g, t, &x));
    const ot_status s = ot_planner_plan(x, o, out);
    ot_planner_close(x);
    return s;
}

ot_status ot_planner_streams(ot_planner *x, const ot_plan_options *o, ot_arena *a,
                             ot_region_pool *pool)
{
    const bool asked = o->force_form == OT_FORM_STREAM;
    const ot_stream_cache *known = NULL;
    if (o->no_streams) return OT_OK;
    for (size_t k = 0; k < x->n_streams; k++)
        if (x->streams[k].rows == o->search.stream_rows && x->streams[k].asked == asked)
            known = &x->streams[k];
    if (!known) {
        ot_stream_cache made = {.rows = o->search.stream_rows, .asked = asked};
        ot_arena *scratch = x->s.arena;
        x->s.arena = x->arena;
        const ot_status s = ot_stream_regions(&x->s, &x->w, x->t, o, x->arena, &x->steps_seen,
                                              &made.pool);
        x->s.arena = scratch;
        OT_TRY(s);
        if (!OT_PUSH(x->arena, x->streams, x->n_streams, x->cap_streams, made))
            return ot_fail_nomem(x->g->model->diag);
        known = &x->streams[x->n_streams - 1];
    }
    for (uint32_t k = 0; k < known->pool.n; k++) {
        ot_region r;
        if (ot_region_copy(x->g, &known->pool.all[k], a, &r) != OT_OK ||
            !OT_PUSH(x->s.arena, pool->all, pool->n, pool->cap, r))
            return ot_fail_nomem(x->g->model->diag);
    }
    return OT_OK;
}

double ot_planner_untiled_seconds(const ot_planner *x) { return x->s.time[x->s.n]; }

uint32_t ot_planner_nodes(const ot_planner *x) { return x->s.n; }

ot_status ot_planner_detail(ot_planner *x, const ot_plan_options *o, ot_plan *p)
{
    ot_arena *scratch = ot_arena_new();
    if (!scratch) return ot_fail_nomem(x->g->model->diag);
    x->o = *o;
    x->s.arena = scratch;
    const ot_status s = ot_plan_detail_fill(&x->s, &x->w, x->tr, x->t, p);
    x->s.arena = x->arena;
    ot_arena_free(scratch);
    return s;
}
