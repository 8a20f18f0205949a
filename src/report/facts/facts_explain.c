/* Where memory goes: the step at which the untiled model holds most, what lives then, and what
 * of it the plan leaves whole, and why.
 *
 *   step      1  2  3  4  5
 *   a         #########           peak: step 3, of b, c and what is made there
 *   b            ######           in the way: what is still whole where the tiled model holds most
 *   c               #########
 *
 * Bytes are the planner's: a result in the place of an operand counts once, what belongs to the
 * caller (inputs) does not.
 */
#include "facts_build.h"
#include "facts_number.h"

#include "cost/cost.h"

#define MOST_ALIVE     64
#define MOST_OBSTACLES 4

typedef struct explain {
    ot_facts *f;
    const fact_source *x;
    ot_seq s;
    bool *in_tiles;    /* [n_values] */
    bool *inside;      /* [s.n] in a region */
    uint32_t tiled_at; /* position where the tiled model holds most, outside of regions */
} explain;

/* "1x64x?x56", with another sign than x between extents. */
static const char *shape_text(ot_arena *a, const ot_value *v, char between)
{
    char text[256] = "";
    size_t at = 0;
    for (int32_t k = 0; k < v->rank && at < sizeof text; k++) {
        char sign[2] = {k ? between : '\0', '\0'};
        int w = v->dims[k] >= 0
                    ? snprintf(text + at, sizeof text - at, "%s%lld", sign, (long long)v->dims[k])
                    : snprintf(text + at, sizeof text - at, "%s?", sign);
        at += w < 0 ? 0 : (size_t)w;
    }
    return ot_strdup(a, text);
}

static bool is_alive(const ot_seq *s, ot_id v, uint32_t k)
{
    if (!s->act[v] || s->def[v] == OT_NONE || s->held[v] == 0 || s->def[v] > k) return false;
    return s->def[v] == k || (s->last[v] != OT_NONE && s->last[v] >= k);
}

static uint32_t index_at(const explain *e, uint32_t pos)
{
    return pos < e->s.n ? e->x->node_of[e->s.node[pos]] : OT_NONE;
}

static int by_bytes(const void *a, const void *b)
{
    const ot_fact_alive *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->maker < y->maker ? -1 : x->maker > y->maker;
}

/* ---- the peak of the untiled model ---- */

static uint32_t peak_step(const ot_seq *s)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < s->n; k++)
        if (s->live[k] > s->live[best]) best = k;
    return best;
}

static ot_status add_alive(explain *e, uint32_t k)
{
    const ot_seq *s = &e->s;
    ot_facts *f = e->f;
    size_t cap = 0;
    double sum = 0;
    for (ot_id v = 0; v < s->g->n_values; v++) {
        if (!is_alive(s, v, k)) continue;
        const ot_value *x = &s->g->values[v];
        ot_fact_alive a = {ot_strdup(f->arena, x->name),
                           shape_text(f->arena, x, 'x'),
                           (double)s->held[v],
                           0,
                           index_at(e, s->def[v]),
                           s->last[v] == OT_NONE ? OT_NONE : index_at(e, s->last[v]),
                           e->in_tiles[v]};
        if (!a.value || !a.shape || !OT_PUSH(f->arena, f->alive, f->n_alive, cap, a))
            return ot_fail_nomem(s->g->model->diag);
        sum += a.bytes;
    }
    double place = sum + s->work[k] - (double)s->live[k]; /* results in the place of operands */
    for (uint32_t j = 0; j < f->n_alive && place > 0; j++) {
        ot_fact_alive *a = &f->alive[j];
        if (a->maker != index_at(e, k)) continue;
        double less = a->bytes < place ? a->bytes : place;
        a->bytes -= less;
        place -= less;
    }
    if (s->work[k] >= 1) {
        ot_fact_alive a = {
            "(scratch of the operator)", "", s->work[k], 0, index_at(e, k), index_at(e, k), false};
        if (!OT_PUSH(f->arena, f->alive, f->n_alive, cap, a))
            return ot_fail_nomem(s->g->model->diag);
    }
    qsort(f->alive, f->n_alive, sizeof *f->alive, by_bytes);
    if (f->n_alive > MOST_ALIVE) f->n_alive = MOST_ALIVE;
    for (uint32_t j = 0; j < f->n_alive; j++)
        f->alive[j].share = f->alive[j].bytes / (double)s->live[k];
    return OT_OK;
}

/* ---- what is in the way ---- */

/* Positions during which the tiled model holds most: those of a region, or one node. region: its
 * index, or OT_NONE. */
static void tiled_peak(const explain *e, uint32_t *first, uint32_t *last, uint32_t *region)
{
    const ot_plan *p = e->x->p;
    const ot_seq *s = &e->s;
    *first = *last = peak_step(s);
    *region = OT_NONE;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        if (p->regions[k].peak != p->tiled.peak_bytes || *region != OT_NONE) continue;
        *region = k;
        *first = p->regions[k].first;
        *last = p->regions[k].last;
    }
    if (*region != OT_NONE || p->n_regions == 0) return;
    int64_t most = -1;
    for (uint32_t k = 0; k < s->n; k++) {
        int64_t live = s->live[k];
        if (e->inside[k]) continue;
        for (ot_id v = 0; v < s->g->n_values; v++)
            if (e->in_tiles[v] && is_alive(s, v, k)) live -= s->held[v];
        if (live > most) most = live, *first = *last = k;
    }
}

/* Reasons that tell what was not found, in place of what is in the way. */
static bool is_general(const char *reason_id)
{
    const ot_why why = ot_reason_find(reason_id);
    return why == OT_WHY_PEAK_WITHIN_SLOWDOWN || why == OT_WHY_NOT_FASTER || why == OT_WHY_GROWTH ||
           why == OT_WHY_PEAK;
}

/* How much the reason of a node tells: 3 it is a barrier, 2 it cannot be cut as its neighbours
 * are, 1 no tiling of it was found, 0 none. */
static int reason_of(const ot_facts *f, uint32_t node, ot_fact_obstacle *out)
{
    if (node == OT_NONE) return 0;
    if (f->nodes[node].barrier != OT_NONE) {
        const ot_fact_barrier *b = &f->barriers[f->nodes[node].barrier];
        out->node = node, out->reason_id = b->reason_id, out->reason = b->reason,
        out->lift = b->lift;
        return 3;
    }
    if (f->nodes[node].refusal == OT_NONE) return 0;
    const ot_fact_refusal *r = &f->refusals[f->nodes[node].refusal];
    out->node = node, out->reason_id = r->reason_id, out->reason = r->reason, out->lift = r->lift;
    return is_general(r->reason_id) ? 1 : 2;
}

/* Why v is whole: a node that makes or reads it and is not cut, or left alone; the one that tells
 * most, its maker first. */
static void find_reason(const explain *e, ot_id v, ot_fact_obstacle *out)
{
    const ot_value *x = &e->s.g->values[v];
    int best = 0;
    for (uint32_t u = 0; u <= x->n_uses; u++) {
        const ot_id id = u == 0 ? x->producer : x->uses[u - 1];
        ot_fact_obstacle o = *out;
        const int told = reason_of(e->f, e->x->node_of[id], &o);
        if (told > best) best = told, *out = o;
    }
}

static ot_status add_obstacles(explain *e)
{
    ot_facts *f = e->f;
    const ot_seq *s = &e->s;
    uint32_t first, last, region;
    tiled_peak(e, &first, &last, &region);
    e->tiled_at = first;
    f->peak_region = region;
    bool *done = OT_NEW_N(s->arena, bool, s->g->n_values + 1u);
    f->obstacles = OT_NEW_N(f->arena, ot_fact_obstacle, MOST_OBSTACLES);
    if (!done || !f->obstacles) return ot_fail_nomem(s->g->model->diag);
    while (f->n_obstacles < MOST_OBSTACLES) {
        ot_id best = OT_NONE;
        for (ot_id v = 0; v < s->g->n_values; v++) {
            bool there = s->act[v] && s->def[v] != OT_NONE && s->def[v] <= last &&
                         s->last[v] != OT_NONE && s->last[v] >= first;
            if (!there || done[v] || e->in_tiles[v] || s->held[v] <= 0 ||
                s->held[v] < f->totals.tiled.peak_bytes / 50)
                continue;
            if (best == OT_NONE || s->held[v] > s->held[best]) best = v;
        }
        if (best == OT_NONE) return OT_OK;
        done[best] = true;
        const ot_value *x = &s->g->values[best];
        const ot_why why = x->is_output                                       ? OT_WHY_MODEL_OUTPUT
                           : s->last[best] > last + 1 && s->last[best] < s->n ? OT_WHY_READ_LATER
                                                                              : OT_WHY_REGION_ENDS;
        ot_fact_obstacle o = {.value = ot_strdup(f->arena, x->name),
                              .bytes = (double)s->held[best],
                              .node = index_at(e, s->def[best]),
                              .reason_id = ot_reason_name(why),
                              .reason = ot_reason_sentence(why),
                              .lift = ""};
        if (!o.value) return ot_fail_nomem(s->g->model->diag);
        if (!x->is_output) find_reason(e, best, &o);
        f->obstacles[f->n_obstacles++] = o;
    }
    return OT_OK;
}

/* ---- in words ---- */

static ot_status add_entry(ot_facts *f, const ot_graph *g, ot_fact_entry e)
{
    return OT_PUSH(f->arena, f->peak, f->n_peak, f->cap_peak, e) ? OT_OK
                                                                 : ot_fail_nomem(g->model->diag);
}

/* Inputs whose extents are not known: nothing is known of what follows. */
static ot_status add_unknown(const explain *e)
{
    const ot_graph *g = e->s.g;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (v->init || !v->is_tensor || ot_value_is_static(v)) continue;
        const char *shape = v->rank < 0 ? "..." : shape_text(e->f->arena, v, ',');
        const char *text = shape ? ot_format(e->f->arena, "%s=%s", v->name, shape) : NULL;
        if (!text) return ot_fail_nomem(g->model->diag);
        OT_TRY(add_entry(
            e->f, g,
            (ot_fact_entry){"unknown-input", "Input of unknown size", text, OT_ABSENT, ""}));
    }
    return OT_OK;
}

/* "while region r1 runs, from Conv a to Relu b", "at Conv c". NULL: no memory. */
static const char *tiled_where(const explain *e)
{
    const ot_facts *f = e->f;
    uint32_t at = index_at(e, e->tiled_at);
    if (f->peak_region == OT_NONE)
        return at == OT_NONE ? ""
                             : ot_format(f->arena, "at %s %s", f->nodes[at].op, f->nodes[at].name);
    const ot_fact_region *r = &f->regions[f->peak_region];
    const ot_fact_node *a = &f->nodes[r->nodes[0]], *b = &f->nodes[r->nodes[r->n_nodes - 1]];
    return ot_format(f->arena, "while region r%u runs, from %s %s to %s %s", r->id, a->op, a->name,
                     b->op, b->name);
}

static ot_status add_words(const explain *e, uint32_t k)
{
    ot_facts *f = e->f;
    const ot_seq *s = &e->s;
    const ot_graph *g = s->g;
    const ot_figures *a = &f->totals.untiled, *b = &f->totals.tiled;
    const char *holds = f->totals.growth_title ? ot_format(f->arena, "%s holds", f->totals.holder)
                                               : "the process grows by",
               *title = holds ? ot_fact_capital(f->arena, holds) : NULL,
               *tiled = title ? ot_format(f->arena, "%s, tiled", title) : NULL;
    const ot_fact_node *n = index_at(e, k) == OT_NONE ? NULL : &f->nodes[index_at(e, k)];
    const char *node = n ? ot_format(f->arena, "%s %s", n->op, n->name) : "";
    const char *where = f->n_alive == 0 ? NULL : tiled_where(e);
    if (!node || (f->n_alive > 0 && !where) || !tiled) return ot_fail_nomem(g->model->diag);
    const ot_fact_entry entries[] = {
        {"peak-node", "The untiled model holds most at", node, OT_ABSENT, ""},
        {"peak-step", "At step", NULL, k + 1, "count"},
        {"steps", "Steps in all", NULL, s->n, "count"},
        {"peak-bytes", "Live tensors then", NULL, (double)a->peak_bytes, "bytes"},
        {"growth-bytes", title, NULL, a->growth_bytes > 0 ? (double)a->growth_bytes : OT_ABSENT,
         "bytes"},
        {"tiled-peak-bytes", "Live tensors, tiled", NULL, (double)b->peak_bytes, "bytes"},
        {"tiled-growth-bytes", tiled, NULL,
         b->growth_bytes > 0 ? (double)b->growth_bytes : OT_ABSENT, "bytes"},
        {"tiled-peak-at", "Tiled, it holds most", where, OT_ABSENT, ""},
        {"time-seconds", "Time", NULL, a->time_s, "seconds"},
        {"tiled-time-seconds", "Time, tiled", NULL, b->time_s, "seconds"},
    };
    for (size_t j = 0; j < sizeof entries / sizeof *entries; j++) {
        ot_fact_entry x = entries[j];
        if (x.number == 0 && ot_fact_known(f, 0) < 0) {
            x.text = "not known";
            x.number = OT_ABSENT;
        }
        if (x.number >= 0 || x.text) OT_TRY(add_entry(f, g, x));
    }
    return add_unknown(e);
}

static ot_status explain_in(explain *e, ot_arena *scratch)
{
    /* its order and uses are asked for, which hold already */
    ot_graph *g = (ot_graph *)(uintptr_t)e->x->g;
    OT_TRY(ot_seq_build(g, scratch, &e->s));
    OT_TRY(ot_cost_fill(&e->s, e->x->t));
    e->in_tiles = OT_NEW_N(scratch, bool, g->n_values + 1u);
    e->inside = OT_NEW_N(scratch, bool, e->s.n + 1u);
    if (!e->in_tiles || !e->inside) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < e->x->p->n_regions; k++) {
        const ot_region *r = &e->x->p->regions[k];
        for (uint32_t v = r->n_inputs; v < r->n_values; v++)
            e->in_tiles[r->values[v].value] = !r->values[v].is_output;
        for (uint32_t i = 0; i < r->n_nodes; i++) e->inside[e->s.pos[r->nodes[i].node]] = true;
    }
    if (e->s.n == 0) return OT_OK;
    const uint32_t k = peak_step(&e->s);
    if (e->s.live[k] > 0) {
        OT_TRY(add_alive(e, k));
        OT_TRY(add_obstacles(e));
    }
    return add_words(e, k);
}

ot_status ot_facts_explain(ot_facts *f, const fact_source *x)
{
    explain e = {.f = f, .x = x};
    ot_arena *scratch = ot_arena_new();
    f->peak_region = OT_NONE;
    if (!scratch) return ot_fail_nomem(x->g->model->diag);
    ot_status s = explain_in(&e, scratch);
    ot_arena_free(scratch);
    return s;
}
