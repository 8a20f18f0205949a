/* One more candidate: the model with its normalisations decomposed (stage transform/decompose/),
 * planned and scored like the model as it is.
 *
 *   planned, weighed --------------------------------> bytes, seconds ---.
 *   copy -- split -- planned, weighed ---------------> bytes, seconds ----> if it wins, the model
 *   itself is split, and has that plan
 *
 * So with values that are computed twice, be that for a normalisation or for readers that come
 * late.
 *
 */
#include "candidates.h"

#include "ops/quirks.h"
#include "tiling/forms.h"
#include "transform/transform.h"
#include "transform/decompose/decompose.h"

#include <math.h>

/* of what the other plan takes: no difference is worth another rounding */
#define LESS         0.98
#define TIME_ABOUT   1e-9
#define BYTE_SECONDS 5e-10
/* of the untiled model's peak: only values of that size weigh, in one of the plans */
#define LARGE  0.1
#define STARTS 4 /* plans to begin with, besides the goal's own */
/* times the slowdown allowed: of all multiply-adds, those that may be done twice; tiles save
 * time elsewhere */
#define AGAIN_MACS 2
#define AGAIN_LESS 0.95
/* of what the model as it is takes at the design and half of it: at other sizes, they differ by
 * some percent more */
#define FREE_LESS 0.9

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

/* m's Softmaxes are taken apart for nothing: there are some, and p cuts the pixels of none of them.
 */
static bool softmax_idle(const ot_model *m, const ot_plan *p)
{
    bool any = false;
    for (uint32_t k = 0; k < m->n_decomposed; k++) {
        if (m->graph->nodes[m->decomposed[k].parts[0]].op != OT_OP_ReduceMax) continue;
        any = true;
        if (in_parts(p, m->decomposed[k].parts[0])) return false;
    }
    return any;
}

/* Who asks for plans of the split model, and how it is split. */
typedef struct request {
    ot_graph *g;
    const ot_target *t;
    const ot_plan_options *o;
    double allowed; /* seconds that a plan may take */
    bool static_shape;
    ot_remat remat;
} request;

/* *n: normalisations taken apart. */
static ot_status split_graph(ot_graph *g, bool softmax, const ot_remat *twice, uint32_t *n)
{
    if (twice->n_skips > 0) OT_TRY(ot_rematerialise_skips(g, twice->skips, twice->n_skips));
    OT_TRY(ot_decompose_norms(g, softmax, n));
    return twice->n_again > 0 ? ot_rematerialise_norms(g, twice->again, twice->n_again) : OT_OK;
}

/* Other plans to begin with than the goal's own: those in which bytes weigh, of all values, also
 * what nodes take beside them, the same of large values alone; and all that can be tiled. Live
 * bytes, by which plans are made, say little of a process where every value is in two layouts
 * for a while; weighing takes out what does not lower its growth. Returns how many. */
static size_t other_starts(const request *r, const ot_plan_options *o, int64_t peak,
                           ot_plan_options starts[STARTS])
{
    const int64_t levels[STARTS] = {0, 1, (int64_t)(LARGE * (double)peak), 0};
    if (o->goal != OT_GOAL_MEMORY || o->force || o->force_form != OT_FORM_NONE ||
        !r->t->runtime->chunk_arena)
        return 0;
    for (int k = 0; k < STARTS; k++) {
        starts[k] = *o;
        starts[k].byte_seconds = BYTE_SECONDS;
        starts[k].tie_break = false;
        starts[k].level = levels[k];
        starts[k].force = k == STARTS - 1;
    }
    return STARTS;
}

/* No plan for g, which was split, keeps within the time that the request allows: the fastest
 * does not. */
static ot_status is_too_slow(const request *r, ot_graph *g, bool *too_slow)
{
    ot_plan_options o = *r->o;
    ot_plan *p = NULL;
    o.goal = OT_GOAL_TIME;
    OT_TRY(ot_plan_graph(g, r->t, &o, &p));
    *too_slow = p->tiled.time_s > r->allowed * (1 + TIME_ABOUT);
    ot_plan_free(p);
    return OT_OK;
}

/* The plan for a graph that was split, within the time that the request allows: what it takes
 * longer by than the model as it is counts. *p NULL: there is none. */
static ot_status plan_within(const request *r, ot_graph *g, ot_plan **p)
{
    ot_plan_options o = *r->o, starts[STARTS];
    OT_TRY(ot_plan_graph(g, r->t, &o, p));
    const double slower = r->allowed / (*p)->untiled.time_s - 1;
    if (o.goal == OT_GOAL_MEMORY && !o.force && slower < o.max_slowdown) {
        ot_plan_free(*p);
        *p = NULL;
        bool too_slow = false;
        if (slower < 0) OT_TRY(is_too_slow(r, g, &too_slow));
        if (too_slow) return OT_OK;
        o.max_slowdown = fmax(0, slower);
        OT_TRY(ot_plan_graph(g, r->t, &o, p));
    }
    const size_t n = other_starts(r, &o, (*p)->untiled.peak_bytes, starts);
    return ot_select_plan_with(g, r->t, &o, r->static_shape, starts, n, p);
}

/* The plan for a copy of the graph with its normalisations taken apart, and its Softmaxes over
 * pixels, where `softmax`. *p NULL: there are none. */
static ot_status plan_copy(const request *r, bool softmax, ot_plan **p, bool *idle)
{
    const ot_plan_options *o = r->o;
    ot_model *copy = NULL;
    uint32_t n = 0;
    *p = NULL;
    OT_TRY(ot_model_clone(r->g->model, &copy));
    ot_status s = split_graph(copy->graph, softmax, &r->remat, &n);
    if (s == OT_OK && (n > 0 || copy->n_rematerialised > 0)) s = plan_within(r, copy->graph, p);
    if (s != OT_OK && *p) {
        ot_plan_free(*p);
        *p = NULL;
    }
    /* the model as it is has a plan that keeps to it */
    if (s == OT_E_BUDGET && o->memory_budget > 0) s = OT_OK;
    if (*p) {
        (*p)->whole_softmax = !softmax;
        (*p)->remat = r->remat;
    }
    *idle = *p && softmax_idle(copy, *p);
    ot_model_free(copy);
    return s;
}

/* The plan for the split model; *p NULL: there is nothing to split. */
static ot_status plan_split(const request *r, ot_plan **p)
{
    bool idle;
    OT_TRY(plan_copy(r, true, p, &idle));
    if (!idle) return OT_OK;
    ot_plan_free(*p);
    return plan_copy(r, false, p, &idle);
}

static double weight(const ot_figures *f, const ot_figures *untiled)
{
    return (double)ot_score_bytes(f->growth_bytes, f->loaded_bytes, untiled);
}

/* Time of a plan for the split model, or for `whole`'s: what parts by themselves are predicted
 * to save does not count, be they faster at all (25 normalisations of a Conv-TasNet, apart for
 * one region: predicted x0.93, measured x1.22). */
static double seconds_of(const ot_plan *p, const ot_plan *whole)
{
    return p->tiled.time_s + fmax(0, whole->untiled.time_s - p->untiled.time_s);
}

/* The plan b for the split model is to be preferred to a, which is for it, too, or for the model
 * as it is, as `whole` is. */
static bool wins(const request *r, const ot_plan *a, const ot_plan *whole, const ot_plan *b)
{
    const ot_plan_options *o = r->o;
    if (b->n_regions == 0) return false;
    if (o->force) return true;
    const bool faster = seconds_of(b, whole) < LESS * seconds_of(a, whole);
    if (o->goal == OT_GOAL_TIME && o->memory_budget == 0) return faster;
    const double allowed = fmin(whole->untiled.time_s, b->untiled.time_s) *
                           (1 + o->max_slowdown); /* the checker knows the latter only */
    if (o->goal == OT_GOAL_MEMORY && b->tiled.time_s > allowed * (1 + TIME_ABOUT)) return false;
    if (o->goal == OT_GOAL_TIME && ot_budget_fits(&a->tiled, o) != ot_budget_fits(&b->tiled, o))
        return ot_budget_fits(&b->tiled, o);
    if (o->goal == OT_GOAL_TIME) return faster; /* live tensors of both keep to the budget */
    if (whole->untiled.growth_bytes > 0 && b->tiled.growth_bytes > 0)
        return weight(&b->tiled, &whole->untiled) < LESS * weight(&a->tiled, &whole->untiled) &&
               weight(&b->tiled, &whole->untiled) <
                   r->t->runtime->margins.wins_decomposed * (double)whole->untiled.growth_bytes;
    return (double)b->tiled.peak_bytes < LESS * (double)a->tiled.peak_bytes;
}

static void show(const request *r, const ot_plan *p)
{
    if (!ot_dbg['D'] || !p) return;
    fprintf(stderr, "> Split: %u regions, %.3f ms, peak %lld, growth %lld", p->n_regions,
            p->tiled.time_s * 1e3, (long long)p->tiled.peak_bytes,
            (long long)p->tiled.growth_bytes);
    for (uint32_t k = 0; k < r->remat.n_again; k++)
        fprintf(stderr, "%s %u", k ? "," : ", twice", r->remat.again[k]);
    for (uint32_t k = 0; k < r->remat.n_skips; k++)
        fprintf(stderr, "%s %s", k ? "," : ", twice", r->g->values[r->remat.skips[k]].name);
    fprintf(stderr, "\n");
}

/* What plans compete by, where nothing else is asked. */
static double bytes_of(const ot_plan *p, const ot_figures *untiled)
{
    return p->tiled.growth_bytes > 0 ? weight(&p->tiled, untiled) : (double)p->tiled.peak_bytes;
}

/* The split model's plan takes the place of *best, or of p, the plan for the model as it is, if
 * it wins. */
static ot_status try_split(const request *r, const ot_plan *p, ot_plan **best)
{
    OT_TRY(plan_split(r, best));
    show(r, *best);
    if (!*best || wins(r, p, p, *best)) return OT_OK;
    ot_plan_free(*best);
    *best = NULL;
    return OT_OK;
}

/* ---- made twice ---- */

/* Splits to make twice: the largest first, since what is kept of a larger one hides what a
 * smaller one saves, as long as the time allowed may do. */
static uint32_t pick_again(ot_remat_norm *all, uint32_t n, int64_t least, double macs,
                           uint32_t out[OT_REMAT_MAX])
{
    uint32_t picked = 0;
    while (n > 0 && picked < OT_REMAT_MAX) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < n; k++)
            if (all[k].bytes > all[best].bytes) best = k;
        if (all[best].bytes < least) break;
        if (all[best].macs <= macs) {
            macs -= all[best].macs;
            out[picked++] = all[best].split;
        }
        all[best] = all[--n];
    }
    return picked;
}

static double all_macs(const ot_graph *g)
{
    double macs = 0;
    for (uint32_t k = 0; k < g->n_order; k++) macs += ot_node_macs(g, &g->nodes[g->order[k]]);
    return macs;
}

static ot_status choose_again(const request *r, const ot_plan *p, request *out)
{
    ot_model *copy = NULL;
    uint32_t n = 0;
    *out = *r;
    OT_TRY(ot_model_clone(r->g->model, &copy));
    const ot_graph *g = copy->graph;
    ot_status s = ot_decompose_norms(copy->graph, true, &n);
    ot_remat_norm *all = s == OT_OK ? OT_NEW_N(copy->arena, ot_remat_norm, n + 1u) : NULL;
    if (s == OT_OK && !all) s = ot_fail_nomem(r->g->model->diag);
    if (s == OT_OK) {
        out->remat.n_again = pick_again(all, ot_rematerialise_find_norms(g, all, n),
                                        (int64_t)(LARGE * (double)p->untiled.peak_bytes),
                                        all_macs(g) * r->o->max_slowdown * AGAIN_MACS,
                                        out->remat.again);
    }
    ot_model_free(copy);
    return s;
}

/* Values that late readers make twice, as pick_again. Where values of the whole graph have one
 * block that is placed before it runs: else what waits fills places that others leave, and the
 * search for sets of regions is long. */
static ot_status choose_skips(const request *r, const ot_plan *p, request *out)
{
    ot_remat_skip all[OT_REMAT_MAX];
    uint32_t n = 0;
    double macs = all_macs(r->g) * r->o->max_slowdown * AGAIN_MACS;
    *out = *r;
    if (!ot_runtime_places_all(r->t->runtime) || r->g->model->dynamic_dims) return OT_OK;
    OT_TRY(ot_rematerialise_find_skips(r->g, all, OT_REMAT_MAX, &n));
    for (uint32_t k = 0; k < n && (double)all[k].bytes >= LARGE * (double)p->untiled.peak_bytes;
         k++) {
        if (all[k].macs > macs) continue;
        macs -= all[k].macs;
        out->remat.skips[out->remat.n_skips++] = all[k].value;
    }
    return OT_OK;
}

/* The plan with all that r makes twice, *n of one kind, or with the largest of them alone takes
 * the place of *best, if it wins by something. */
static ot_status try_twice(const request *r, uint32_t *n, const ot_plan *p, ot_plan **best)
{
    for (bool won = false; *n > 0 && !won; *n = *n > 1 ? 1 : 0) {
        const ot_plan *so_far = *best ? *best : p;
        ot_plan *other = NULL;
        OT_TRY(plan_split(r, &other));
        show(r, other);
        won = other && wins(r, so_far, p, other) &&
              bytes_of(other, &p->untiled) < AGAIN_LESS * bytes_of(so_far, &p->untiled);
        ot_plan_free(won ? *best : other);
        if (won) *best = other;
    }
    return OT_OK;
}

/* Plans in which large values before normalisations are computed twice: the statistics' tiles
 * have them, and those of what follows, and nobody keeps them; then such in which skip
 * connections are. */
static ot_status try_again(const request *r, const ot_plan *p, ot_plan **best)
{
    request again;
    if (r->o->goal != OT_GOAL_MEMORY || r->o->force || r->o->force_form != OT_FORM_NONE)
        return OT_OK;
    OT_TRY(choose_again(r, p, &again));
    OT_TRY(try_twice(&again, &again.remat.n_again, p, best));
    OT_TRY(choose_skips(r, p, &again));
    return try_twice(&again, &again.remat.n_skips, p, best);
}

/* Taken apart, a normalisation would not come out as the runtime makes it of the model as it is:
 * the one of them that is right is not what people compare with. */
static bool differs_apart(const ot_graph *g, uint32_t by)
{
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (ot_quirk_hits(OT_QUIRK_LONG_SUM, by, n->op_type) && ot_is_long_sum(g, n)) return true;
    }
    return false;
}

ot_status ot_select_decomposed(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                               bool static_shape, ot_plan **p)
{
    const double allowed = g->n_nodes > 0 ? (*p)->untiled.time_s * (1 + o->max_slowdown) : 0;
    const request r = {.g = g, .t = t, .o = o, .allowed = allowed, .static_shape = static_shape};
    ot_plan *best = NULL;
    if (t->bit_exact || g->n_nodes == 0 || differs_apart(g, t->runtime->bit)) return OT_OK;
    ot_status s = try_split(&r, *p, &best);
    if (s == OT_OK) s = try_again(&r, *p, &best);
    if (s != OT_OK) {
        ot_plan_free(best);
        return s;
    }
    if (!best) return OT_OK;
    const ot_figures whole = (*p)->untiled;
    ot_plan_free(*p);
    *p = best;
    best->whole = whole;
    best->is_decomposed = true;
    return ot_decompose_like(g, best);
}

ot_status ot_select_decomposed_dynamic(ot_graph *g, const ot_target *t, const ot_plan_options *o,
                                       const ot_plan *whole, ot_plan **p)
{
    const request r = {
        .g = g, .t = t, .o = o, .allowed = whole->untiled.time_s * (1 + o->max_slowdown)};
    *p = NULL;
    ot_status s = plan_within(&r, g, p);
    show(&r, *p);
    if (!*p) return s;
    const bool by_far = s == OT_OK && (o->force || o->goal == OT_GOAL_TIME ||
                                       bytes_of(*p, &whole->untiled) <
                                           FREE_LESS * bytes_of(whole, &whole->untiled));
    if (by_far && wins(&r, whole, whole, *p)) {
        (*p)->whole = whole->untiled;
        (*p)->is_decomposed = true;
        return OT_OK;
    }
    ot_plan_free(*p);
    *p = NULL;
    return s;
}

ot_status ot_decompose_like(ot_graph *g, const ot_plan *p)
{
    uint32_t n;
    return split_graph(g, !p->whole_softmax, &p->remat, &n);
}
