/* What passes write beside numbers, so that later ones begin there and not at the input again.
 *
 *     level of a value     how many passes have to be over before it can be computed
 *     after pass k         of level below k; what later ones need of it is the frontier of k:
 *
 *         x --Conv--> a --norm 1--> b --Conv--> c --norm 2--> d --Add--> ...     of 1: a
 *                                   '-----------------------------'              of 2: b, c
 *
 * Which frontiers are written is the way of least cost through the passes: multiply-adds that are
 * computed again against bytes that are written and read. Rows are exact, so the result is that of
 * passes which compute all of it again, to the bit.
 */
#include "passes_internal.h"

/* Multiply-adds that take as long as a byte that is written or read: some 30 G/s of a processor
 * against 1 GB/s of a disk. */
#define MACS_OF_BYTE 32

typedef struct chooser {
    const pass_maker *p;
    pass_stages *s;
    const ot_graph *g;
    bool *need; /* [n_values] */
} chooser;

static ot_status nomem(const pass_maker *p) { return ot_fail_nomem(p->m->diag); }

static bool *row_of(const pass_stages *s, uint32_t k) { return s->frontier[k]; }

/* ---- levels ---- */

static uint32_t pass_of_input(const pass_maker *p, const char *name)
{
    for (uint32_t k = 0; k < p->n; k++)
        if (strcmp(p->found[k].is.name, name) == 0) return p->found[k].is.pass;
    return 0;
}

/* An array of rows, of a type that files of arrays have. */
static bool may_be_written(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    if (!x->is_tensor || x->is_output || x->producer == OT_NONE || x->rank < 2 ||
        !ot_value_is_static(x))
        return false;
    const ot_node *n = &g->nodes[x->producer];
    switch (x->dtype) {
    case OT_F16:
    case OT_F32:
    case OT_F64:
    case OT_I8:
    case OT_U8:
    case OT_I32: return n->n_out == 1 && !n->is_static;
    default: return false;
    }
}

static void take_level(const pass_stages *s, ot_id from, uint32_t *level, bool *carries)
{
    if (from == OT_NONE) return;
    if (s->level[from] > *level) *level = s->level[from];
    *carries |= s->carries[from];
}

/* Levels of all values, and which of them come of the model's inputs. */
static void fill_levels(const pass_maker *p, pass_stages *s)
{
    const ot_graph *g = s->cut->graph;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_id v = g->inputs[k];
        s->level[v] = pass_of_input(p, g->values[v].name);
        s->carries[v] = s->level[v] == 0 && !g->values[v].init;
    }
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        uint32_t level = 0;
        bool carries = false;
        for (uint32_t j = 0; j < n->n_in; j++) take_level(s, n->in[j], &level, &carries);
        for (uint32_t j = 0; j < n->n_captured; j++)
            take_level(s, n->captured[j], &level, &carries);
        for (uint32_t o = 0; o < n->n_out; o++) {
            if (n->out[o] == OT_NONE) continue;
            s->level[n->out[o]] = level;
            s->carries[n->out[o]] = carries;
        }
    }
}

/* ---- what is needed ---- */

/* Back from what c->need has, but not beyond what `stop` (may be NULL) has: multiply-adds. */
static double walk_back(const chooser *c, const bool *stop)
{
    double macs = 0;
    for (uint32_t k = c->g->n_order; k-- > 0;) {
        const ot_node *n = &c->g->nodes[c->g->order[k]];
        bool any = false;
        for (uint32_t o = 0; o < n->n_out; o++)
            any |= n->out[o] != OT_NONE && c->need[n->out[o]] && !(stop && stop[n->out[o]]);
        if (!any) continue;
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != OT_NONE) c->need[n->in[j]] = true;
        for (uint32_t j = 0; j < n->n_captured; j++) c->need[n->captured[j]] = true;
        macs += ot_node_macs(c->g, n);
    }
    return macs;
}

/* c->need has what passes [from, to] make; the last of all makes the outputs. */
static void want(const chooser *c, uint32_t from, uint32_t to)
{
    memset(c->need, 0, c->g->n_values * sizeof *c->need);
    for (uint32_t k = 0; k < c->p->n; k++)
        if (c->p->found[k].is.pass >= from && c->p->found[k].is.pass <= to)
            c->need[c->p->found[k].x] = true;
    if (to <= c->p->out->n_passes) return;
    for (uint32_t k = 0; k < c->g->n_outputs; k++)
        if (c->g->values[c->g->outputs[k]].producer != OT_NONE) c->need[c->g->outputs[k]] = true;
}

static void fill_frontier(const chooser *c, uint32_t k)
{
    const uint32_t n = c->g->n_values;
    bool *in = row_of(c->s, k);
    for (ot_id v = 0; v < n; v++)
        in[v] = c->s->level[v] < k && c->s->carries[v] && may_be_written(c->g, v);
    want(c, k + 1, c->p->out->n_passes + 1);
    (void)walk_back(c, in);
    for (ot_id v = 0; v < n; v++) in[v] &= c->need[v];
}

static double bytes_of(const ot_graph *g, ot_id v)
{
    int64_t bytes = 0;
    return ot_value_bytes(&g->values[v], &bytes) ? (double)bytes : 0;
}

/* What pass k takes, in multiply-adds, that reads what is stored after pass s (0: the inputs), and
 * stores its own frontier, or not. */
static double cost_of(const chooser *c, uint32_t s, uint32_t k, bool store)
{
    const bool *from = s ? row_of(c->s, s) : NULL;
    double bytes = 0;
    want(c, k, k);
    for (ot_id v = 0; store && v < c->g->n_values; v++) {
        if (!row_of(c->s, k)[v] || (from && from[v])) continue;
        c->need[v] = true;
        bytes += bytes_of(c->g, v);
    }
    const double macs = walk_back(c, from);
    for (ot_id v = 0; v < c->g->n_values; v++) {
        const bool read = from && from[v];
        const bool given = c->g->values[v].is_input && c->s->carries[v];
        if (c->need[v] && (read || given)) bytes += bytes_of(c->g, v);
    }
    return macs + MACS_OF_BYTE * bytes;
}

/* ---- the choice ---- */

/* The cheapest way: before[k], the stage whose values the pass that stores stage k reads. */
static uint32_t cheapest(const chooser *c, double *cost, uint32_t *before)
{
    const uint32_t n = c->p->out->n_passes;
    uint32_t best = 0;
    cost[0] = 0;
    for (uint32_t k = 1; k <= n; k++) {
        cost[k] = HUGE_COST;
        for (uint32_t s = 0; s < k; s++) {
            if (cost[s] >= HUGE_COST) continue;
            const double stored = c->s->barred[k] ? HUGE_COST : cost[s] + cost_of(c, s, k, true);
            if (stored < cost[k]) {
                cost[k] = stored;
                before[k] = s;
            }
            cost[s] += cost_of(c, s, k, false);
        }
    }
    for (uint32_t s = 0; s <= n; s++) {
        if (cost[s] >= HUGE_COST) continue;
        cost[s] += cost_of(c, s, n + 1, false);
        if (cost[s] < cost[best]) best = s;
    }
    return best;
}

ot_status passes_store_choose(const pass_maker *p, pass_stages *s)
{
    const uint32_t n = p->out->n_passes;
    ot_arena *a = p->out->arena;
    double *cost = OT_NEW_N(a, double, n + 2u);
    uint32_t *before = OT_NEW_N(a, uint32_t, n + 2u);
    const chooser c = {p, s, s->cut->graph, OT_NEW_N(a, bool, s->cut->graph->n_values + 1u)};
    if (!cost || !before || !c.need) return nomem(p);
    for (uint32_t k = 1; k <= n; k++) s->after[k] = p->store == OT_STORE_ALWAYS && !s->barred[k];
    if (p->store == OT_STORE_ALWAYS) return OT_OK;
    for (uint32_t k = cheapest(&c, cost, before); k > 0; k = before[k]) s->after[k] = true;
    return OT_OK;
}

ot_status passes_store_find(const pass_maker *p, pass_stages *s)
{
    const uint32_t n = p->out->n_passes, values = s->cut->graph->n_values;
    ot_arena *a = p->out->arena;
    s->level = OT_NEW_N(a, uint32_t, values + 1u);
    s->carries = OT_NEW_N(a, bool, values + 1u);
    s->after = OT_NEW_N(a, bool, n + 1u);
    s->barred = OT_NEW_N(a, bool, n + 1u);
    s->frontier = ot_alloc_n(a, n + 1u, sizeof *s->frontier);
    const chooser c = {p, s, s->cut->graph, OT_NEW_N(a, bool, values + 1u)};
    if (!s->level || !s->carries || !s->after || !s->barred || !s->frontier || !c.need)
        return nomem(p);
    fill_levels(p, s);
    for (uint32_t k = 1; k <= n; k++) {
        s->frontier[k] = OT_NEW_N(a, bool, values + 1u);
        if (!s->frontier[k]) return nomem(p);
        fill_frontier(&c, k);
    }
    return OT_OK;
}

uint32_t passes_stage_before(const pass_maker *p, uint32_t k)
{
    if (!p->stages.after) return 0;
    while (k > 1)
        if (p->stages.after[--k]) return k;
    return 0;
}

bool passes_is_written(const pass_maker *p, ot_id v, uint32_t k)
{
    const pass_stages *s = &p->stages;
    const uint32_t before = passes_stage_before(p, k);
    return k <= p->out->n_passes && s->after && s->after[k] && s->frontier[k][v] &&
           !(before && s->frontier[before][v]);
}
