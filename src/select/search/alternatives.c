/* What a report tells besides the plan: what every node costs whole, and which other tilings of
 * a region's operators there were.
 *
 *   region [first, last] --walk again, along every set of axes--> trial --> choices --built,
 *   windows summed--> exact figures
 *
 * The search itself scores estimates, and intervals by the thousand; here the interval is
 * fixed and its tilings are looked at once more, each as the region it would have been.
 */
#include "search.h"

#define WINDOWS_MAX  500000.0 /* node windows computed for a whole graph: some tenths of a second */
#define WALK_WINDOWS 4.0      /* what a step of the walk costs, in windows */

typedef struct scoring {
    const ot_seq *s;
    ot_walk *w;
    ot_trial *tr;
    const ot_target *t;
    ot_plan *p;
    double left;        /* windows; of the region at hand */
    ot_candidate *list; /* [n] of the region at hand, in the plan's arena */
    uint32_t n;
    size_t cap;
} scoring;

static ot_candidate of_region(const ot_region *r, const ot_target *t)
{
    ot_candidate c = {.n_dims = r->n_dims,
                      .form = r->form,
                      .time = r->time_tiled,
                      .traffic = r->traffic,
                      .mac_ratio = r->mac_ratio,
                      .working_set = r->working_set,
                      .peak = r->peak,
                      .fits = r->working_set <= ot_target_room(t)};
    for (uint32_t d = 0; d < r->n_dims; d++) {
        c.axes[d] = r->values[r->dims[d].sink].axis[d];
        c.tiles[d] = r->dims[d].n_tiles;
        c.tile[d] = r->dims[d].tile;
    }
    return c;
}

static bool same_tiling(const ot_candidate *a, const ot_candidate *b)
{
    if (a->n_dims != b->n_dims) return false;
    for (uint32_t d = 0; d < a->n_dims; d++)
        if (a->axes[d] != b->axes[d] || a->tile[d] != b->tile[d]) return false;
    return true;
}

static ot_status add(scoring *x, const ot_candidate *c)
{
    return OT_PUSH(x->p->arena, x->list, x->n, x->cap, *c) ? OT_OK
                                                           : ot_fail_nomem(x->s->g->model->diag);
}

/* The region that choice c would be, with exact figures; left out when it cannot be written. */
static ot_status score(scoring *x, const ot_choice *c)
{
    ot_why why;
    bool legal;
    ot_region r;
    double tiles = 0;
    ot_arena *a = ot_arena_new();
    ot_status st = a ? ot_region_build(x->s, x->w, c, a, &r) : ot_fail_nomem(x->s->g->model->diag);
    if (st == OT_OK) {
        for (uint32_t d = 0; d < r.n_dims; d++) tiles += r.dims[d].n_tiles;
        x->left -= tiles * r.n_nodes;
        r.form = c->form;
        st = ot_form_legal(x->s->g, &r, r.form, x->t->runtime->cannot, &legal, &why);
        if (st == OT_OK && legal)
            st = ot_region_exact(x->s, x->t, 0, &r);
        else
            r.time_tiled = -1;
    }
    if (st == OT_OK && r.time_tiled >= 0) {
        ot_candidate k = of_region(&r, x->t);
        if (!same_tiling(&k, &x->list[0])) st = add(x, &k);
    }
    ot_arena_free(a);
    return st;
}

/* Tilings of the interval [first, end] along one set of axes. */
static ot_status score_axes(scoring *x, uint32_t first, uint32_t end, uint32_t out,
                            const int8_t *axes, uint32_t n_dims)
{
    ot_choice found[OT_COUNTS_MAX * OT_COUNTS_MAX];
    uint32_t n = 0;
    int st = OT_ST_NONE;
    ot_walk_start(x->w, end, out, axes, n_dims);
    ot_trial_start(x->tr, x->w, out, axes, n_dims);
    while (x->w->lo > first) {
        st = ot_walk_step(x->w);
        x->left -= WALK_WINDOWS;
        if (!ot_trial_visit(x->tr, st)) return OT_OK;
    }
    if (st != OT_ST_IN) return OT_OK;
    for (uint32_t k = 0; k < ot_trial_pairs(x->tr) && n < sizeof found / sizeof *found; k++)
        if (ot_trial_choice(x->tr, k, &found[n])) n++;
    for (uint32_t k = 0; k < n && x->left > 0; k++) OT_TRY(score(x, &found[k]));
    return OT_OK;
}

uint32_t ot_sink_output(const ot_seq *s, const ot_region *r)
{
    const ot_node *n = &s->g->nodes[s->node[r->last]];
    for (uint32_t k = 0; k < n->n_out; k++)
        if (n->out[k] == r->values[r->dims[0].sink].value) return k;
    bool in_parts = n->n_in > 0 && n->in[0] == r->values[r->dims[0].sink].value;
    for (uint32_t d = 0; d < r->n_dims && in_parts; d++)
        if (r->nodes[r->n_nodes - 1].lead_axis[d] == OT_AX_SUM) return OT_SUM_SINK;
    return OT_NONE;
}

static ot_status score_region(scoring *x, const ot_region *r)
{
    int8_t sets[OT_AXIS_SETS_MAX][OT_DIMS_MAX];
    uint32_t dims[OT_AXIS_SETS_MAX], out = ot_sink_output(x->s, r);
    ot_candidate chosen = of_region(r, x->t);
    x->list = NULL;
    x->n = 0;
    x->cap = 0;
    chosen.chosen = true;
    OT_TRY(add(x, &chosen));
    if (!x->tr || out == OT_NONE) return OT_OK;
    uint32_t n = ot_candidate_axes(x->s, x->w, r->last, out, sets, dims);
    for (uint32_t k = 0; k < n && x->left > 0; k++)
        OT_TRY(score_axes(x, r->first, r->last, out, sets[k], dims[k]));
    return OT_OK;
}

ot_status ot_plan_detail_fill(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_target *t,
                              ot_plan *p)
{
    scoring x = {.s = s, .w = w, .tr = tr, .t = t, .p = p};
    double left = WINDOWS_MAX;
    ot_plan_detail *d = p->detail = OT_NEW(p->arena, ot_plan_detail);
    if (!d) return ot_fail_nomem(s->g->model->diag);
    d->nodes = OT_NEW_N(p->arena, ot_node_cost, s->n + 1u);
    d->candidates = OT_NEW_N(p->arena, ot_candidate *, p->n_regions + 1u);
    d->n_candidates = OT_NEW_N(p->arena, uint32_t, p->n_regions + 1u);
    if (!d->nodes || !d->candidates || !d->n_candidates) return ot_fail_nomem(s->g->model->diag);
    for (uint32_t k = 0; k < s->n; k++) ot_cost_node(s, k, t, &d->nodes[k]);
    d->n_nodes = s->n;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        double share = x.left = left / (p->n_regions - k);
        OT_TRY(score_region(&x, &p->regions[k]));
        left -= share - x.left;
        d->candidates[k] = x.list;
        d->n_candidates[k] = x.n;
    }
    return OT_OK;
}
