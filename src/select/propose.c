/* Other plans than the one that the options give, for the least memory.
 *
 *   goal time's plan, that of another goal                    what one goal finds competes for the
 *                                                             other
 *   levels     bytes above a level have a price everywhere    the process need not grow where live
 *                                                             bytes are most
 *   kept       values between steps have a price              where every value is in two layouts
 *   waiting    around what waits for a late reader
 *   forms      one form preferred, for the goal's plan and the best level's
 *   streams    rows handed on
 *   held       around what is held where a process grows last; regions that pay together
 *   fullest    around what fills the one block of a runtime that has one
 *
 * Work is counted in nodes of plans that are made: a large graph has fewer proposals, the first of
 * this list, and no graph has none. One has a single one: whose own plan has loops that take more
 * to load than all tensors.
 */
#include "candidates.h"

#include "tiling/forms.h"

/* nodes that run, of all plans of a lap that are proposed */
#define PROPOSED_NODES   16000
#define LEAST_PROPOSED   3 /* of graphs of any size */
#define FULL_ROUNDS      4
#define LEAVES           6 /* steps of a block that are emptied one after the other */
#define HELD_NEAR        2 /* values of these, in each round */
#define HELD_ROUNDS      4
#define HELD_REGIONS     48   /* of these that climbs go through */
#define HELD_WORK        1500 /* nodes that are written and simulated for them */
#define ORDERS_AND_SIZES 4
#define BYTE_SECONDS     5e-10
#define LARGE            0.1 /* of the untiled peak: values of that size have a price */

/* Nodes that run: exporters write a constant or a shape's arithmetic for every second one, which
 * costs a plan nothing. */
static uint32_t count_running(const ot_graph *g)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_order; k++) n += !g->nodes[g->order[k]].is_static;
    return n;
}

/* What may still be proposed. */
typedef struct left {
    uint32_t proposals;
} left;

static void dump_near(const char *what, const ot_graph *g, ot_id node)
{
    fputs(what, stderr);
    ot_put_shown(g->nodes[node].name, stderr);
    fputc('\n', stderr);
}

static ot_status propose(ot_candidates *x, left *l, const ot_plan_options *o, int64_t *bytes)
{
    *bytes = INT64_MAX;
    if (l->proposals == 0) return OT_OK;
    l->proposals--;
    return ot_candidates_try(x, o, bytes);
}

static ot_status try_form(ot_candidates *x, left *l, const ot_plan_options *like, ot_form form)
{
    ot_plan_options o = *like;
    int64_t bytes;
    o.force_form = form;
    return ot_runtime_takes(x->t->runtime, form) ? propose(x, l, &o, &bytes) : OT_OK;
}

/* The fastest plan: it may hold less than the one that looks for live bytes. */
static ot_status try_goal_time(ot_candidates *x, left *l)
{
    ot_plan_options o = x->o;
    int64_t bytes;
    o.goal = OT_GOAL_TIME;
    o.tie_break = false;
    return propose(x, l, &o, &bytes);
}

/* Plans in which kept bytes have a price: of all values, also what nodes take beside them, of large
 * values alone; and all that can be tiled. */
static ot_status try_kept(ot_candidates *x, left *l)
{
    const int64_t peak = x->own->untiled.peak_bytes;
    const int64_t levels[] = {0, 1, (int64_t)(LARGE * (double)peak), 0};
    const size_t n = sizeof levels / sizeof *levels;
    for (size_t k = 0; k < n && x->starts_rich; k++) {
        ot_plan_options o = x->o;
        int64_t bytes;
        o.search.byte_seconds = BYTE_SECONDS;
        o.tie_break = false;
        o.search.level = levels[k];
        o.force = k + 1 == n;
        OT_TRY(propose(x, l, &o, &bytes));
    }
    return OT_OK;
}

/* Plans that pay for bytes above a level wherever they are, not at the peak alone: what the
 * planner holds for the peak need not be where the process grows. *best: the options of the best
 * so far. */
static ot_status try_levels(ot_candidates *x, left *l, int64_t least, ot_plan_options *best)
{
    static const struct {
        /* of the untiled model's peak and time: of that, what all nodes pay at the peak */
        double level, price;
    } TRIES[] = {{0.6, 8}, {0.4, 8}, {0.2, 8}, {0, 8}, {0.3, 1}};
    const int64_t peak = x->own->untiled.peak_bytes;
    for (size_t k = 0; k < sizeof TRIES / sizeof *TRIES && peak > 0; k++) {
        ot_plan_options o = x->o;
        int64_t bytes;
        o.search.level = (int64_t)(TRIES[k].level * (double)peak);
        o.search.price = TRIES[k].price * x->own->untiled.time_s / ((double)peak * x->g->n_order);
        OT_TRY(propose(x, l, &o, &bytes));
        /* no region: forms are nothing to it */
        if (bytes >= least || bytes == INT64_MAX || x->sets[x->n_sets - 1].n == 0) continue;
        least = bytes;
        *best = o;
    }
    return OT_OK;
}

/* Regions around what made the tensors that wait for a reader when the process grows last,
 * nothing being tiled: live bytes may be as many elsewhere, and then the planner does not care.
 * ONNX Runtime computes the up-sampled picture that a super-resolution network adds at its end
 * before all else, and holds it: a region of the last three nodes took that from 51 to 31 MB,
 * and from the live bytes nothing. */
static ot_status try_waiting(ot_candidates *x, left *l)
{
    ot_sim_figures f;
    ot_plan_options o = x->o;
    OT_TRY(ot_candidates_simulate(x, NULL, 0, &f));
    for (uint32_t k = 0; k < OT_WAITING && f.waiting[k] != OT_NONE && f.waiting[k] < x->g->n_nodes;
         k++) {
        int64_t bytes;
        o.search.near = f.waiting[k] + 1;
        if (ot_dbg['P']) dump_near("> Near held value of: ", x->g, f.waiting[k]);
        OT_TRY(propose(x, l, &o, &bytes));
        if (x->how.branch) OT_TRY(try_form(x, l, &o, OT_FORM_PEELED));
    }
    return OT_OK;
}

/* Regions around nodes [n], but for those that were looked at. *any: there were others. */
static ot_status try_near(ot_candidates *x, left *l, const ot_id *nodes, uint32_t n, bool *tried,
                          bool *any)
{
    *any = false;
    for (uint32_t k = 0; k < n; k++) {
        const ot_id id = nodes[k];
        int64_t bytes;
        if (id >= x->g->n_nodes || tried[id]) continue;
        ot_plan_options o = x->o;
        tried[id] = *any = true;
        o.search.near = id + 1;
        if (ot_dbg['P']) dump_near("> Near: ", x->g, id);
        OT_TRY(propose(x, l, &o, &bytes));
    }
    return OT_OK;
}

/* Several steps may be as full: one after the other is emptied, and what that comes to competes. */
static ot_status try_leaving(ot_candidates *x, left *l, bool *tried, ot_region_set *won)
{
    ot_region_set at = *won;
    bool emptied = true, any;
    for (int k = 0; k < LEAVES && emptied; k++) {
        ot_sim_figures f;
        OT_TRY(ot_candidates_simulate(x, at.all, at.n, &f));
        OT_TRY(try_near(x, l, f.fullest, f.n_fullest, tried, &any));
        OT_TRY(ot_candidates_leave(x, &f, &at, &emptied));
    }
    return at.bytes < won->bytes ? ot_candidates_search(x, won) : OT_OK;
}

/* Where one block holds all values: regions around what fills it when it is fullest, with the
 * regions of the best set so far written out; what fills it then, and so on. */
static ot_status try_fullest(ot_candidates *x, left *l, ot_region_set *won)
{
    bool *tried = OT_NEW_N(x->arena, bool, x->g->n_nodes + 1u), any;
    if (!tried) return ot_fail_nomem(x->g->model->diag);
    for (int round = 0; round < FULL_ROUNDS; round++) {
        ot_sim_figures f;
        OT_TRY(ot_candidates_simulate(x, won->all, won->n, &f));
        OT_TRY(try_near(x, l, f.fullest, f.n_fullest, tried, &any));
        if (!any) break;
        OT_TRY(ot_candidates_search(x, won));
    }
    return try_leaving(x, l, tried, won);
}

/* Plans like the best one in which one form is preferred. In a branch, what peeled loops join is
 * taken late (transform/branch.c), which no plan foresees: regions of the goal's own plan may
 * have that form, too. */
static ot_status try_forms(ot_candidates *x, left *l, const ot_plan_options *best)
{
    static const ot_form FORMS[] = {OT_FORM_PEELED, OT_FORM_UNROLLED, OT_FORM_LOOP, OT_FORM_SCAN,
                                    OT_FORM_PRESCAN};
    for (size_t k = 0; k < sizeof FORMS / sizeof *FORMS; k++)
        OT_TRY(try_form(x, l, best, FORMS[k]));
    if (best->search.price == 0) return OT_OK;
    /* of the goal's own plan, too: patterns hold what the price of bytes does not see */
    for (size_t k = 0; k < sizeof FORMS / sizeof *FORMS && !ot_candidates_sequences(x); k++)
        OT_TRY(try_form(x, l, &x->o, FORMS[k]));
    return x->how.branch ? try_form(x, l, &x->o, OT_FORM_PEELED) : OT_OK;
}

/* Regions that stream, in steps of some rows. */
static ot_status try_streams(ot_candidates *x, left *l)
{
    static const uint32_t ROWS[] = {1, 2, 4, 8, 16, 32, 64}; /* of a step, at least */
    const bool any = !x->o.no_streams && ot_runtime_takes(x->t->runtime, OT_FORM_STREAM);
    for (size_t k = 0; k < sizeof ROWS / sizeof *ROWS && any; k++) {
        ot_plan_options o = x->o;
        int64_t bytes;
        o.force_form = OT_FORM_STREAM;
        o.search.stream_rows = ROWS[k];
        OT_TRY(propose(x, l, &o, &bytes));
    }
    return OT_OK;
}

/* Regions around what made the values that are held when the process grows last, with the regions
 * of the best set so far written out; sets with these. */
static ot_status try_held(ot_candidates *x, left *l, ot_region_set *won)
{
    bool *tried = OT_NEW_N(x->arena, bool, x->g->n_nodes + 1u), better = true;
    if (!tried) return ot_fail_nomem(x->g->model->diag);
    /* with dynamic shapes, each set is simulated in several orders and at two sizes */
    const uint64_t most = HELD_WORK / (x->g->model->dynamic_dims ? ORDERS_AND_SIZES : 1);
    x->work = 0;
    for (int round = 0; round < HELD_ROUNDS && better; round++) {
        ot_sim_figures f;
        ot_id makers[OT_FULLEST];
        uint32_t n = 0;
        OT_TRY(ot_candidates_simulate(x, won->all, won->n, &f));
        for (uint32_t k = 0; k < f.n_held && n < HELD_NEAR; k++) {
            const ot_id v = f.held[k], by = v < x->g->n_values ? x->g->values[v].producer : OT_NONE;
            if (by != OT_NONE && !tried[by]) makers[n++] = by;
        }
        const size_t before = x->n_pool;
        x->finds_late = x->n_near >= HELD_REGIONS;
        const ot_status s = try_near(x, l, makers, n, tried, &better);
        x->finds_late = false;
        x->n_near += x->n_pool - before;
        OT_TRY(s);
        OT_TRY(ot_candidates_let_go(x, most, &f, won, &better));
        better |= n > 0;
    }
    return OT_OK;
}

ot_status ot_candidates_propose(ot_candidates *x, ot_region_set *won)
{
    const uint32_t running = count_running(x->g);
    ot_plan_options best = x->o;
    /* where the own plan's loops are too many, others' are likely to be */
    const uint32_t least = ot_score_loads_more(x, x->own->regions, x->own->n_regions)
                               ? 1
                               : LEAST_PROPOSED;
    left l = {(uint32_t)ot_max(least, PROPOSED_NODES / ot_max(1, running))};
    OT_TRY(try_kept(x, &l));
    OT_TRY(try_levels(x, &l, won->bytes, &best));
    OT_TRY(try_goal_time(x, &l));
    OT_TRY(try_waiting(x, &l));
    OT_TRY(try_forms(x, &l, &best));
    OT_TRY(try_streams(x, &l));
    OT_TRY(ot_candidates_search(x, won));
    OT_TRY(ot_candidates_at_design(x, won));
    OT_TRY(ot_candidates_vary(x, won));
    if (x->t->runtime->chunk_arena) OT_TRY(try_held(x, &l, won));
    return ot_runtime_places_all(x->t->runtime) ? try_fullest(x, &l, won) : OT_OK;
}
