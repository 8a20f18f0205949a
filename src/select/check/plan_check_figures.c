/* The checker's second half: what a plan says in seconds and bytes, and the limits that it must
 * keep.
 *
 * The prices of untiled nodes are the cost model's (time, bytes moved, MACs, bytes held,
 * scratch: cost/sequence_cost.c), and a region's seconds, bytes moved and peak are what it states.
 * All that is added up of them is added up here anew:
 *
 *     order  n0  n1 [ region 0: n2 n4 n5 ] n3  n6  time, traffic, MACs  sum over n0 n1 n3 n6, and
 *            what region 0 states
 *     live   ##  ##      stated peak       ##  ##  peak                 sweep over values; a region
 *                                                                       is one step
 *
 * Whether a region's prices are right is for tests: tests/oracle/region_prices.h adds them up a
 * second time.
 */
#include "plan_check.h"

#include <math.h>

#define ABOUT 1e-9 /* sums that are made in another order differ by rounding */

typedef struct checker {
    ot_graph *g;
    const ot_plan *p;
    const ot_target *t;
    const ot_plan_options *o;
    ot_check_found *found;
    ot_arena *a;
    ot_diag *d;
    ot_seq s;
    /* [s.n + 1] bytes live when position k starts, regions having no values of their own */
    int64_t *before;
    int64_t *live; /* [s.n] bytes live while k runs untiled, likewise */
} checker;

static ot_status broken(const checker *c, const ot_region *r, const char *rule, double stated,
                        double found)
{
    if (!r)
        return ot_fail(c->d, OT_E_INPUT, "plan check: %s: %.17g, found %.17g", rule, stated, found);
    return ot_fail(c->d, OT_E_INPUT, "plan check: region %u: %s: %.17g, found %.17g", r->id, rule,
                   stated, found);
}

/* Equal but for rounding, against the size of what was added up. Never of what is no number. */
static bool same(double a, double b, double scale)
{
    return fabs(a - b) <= ABOUT * (fabs(scale) + fabs(a));
}

static double price_time(const checker *c, uint32_t k) { return c->s.time[k + 1] - c->s.time[k]; }
static double price_traffic(const checker *c, uint32_t k)
{
    return c->s.traffic[k + 1] - c->s.traffic[k];
}

/* ---- bytes live ---- */

/* Operators that may write their result over an operand of which nothing else is left. */
static int64_t overwritten(const checker *c, uint32_t k, const uint32_t *last)
{
    const ot_node *n = &c->g->nodes[c->s.node[k]];
    const bool conv = ot_op_access(n->op) == OT_ACC_CONV;
    if (n->n_out == 0 || n->out[0] == OT_NONE) return 0;
    bool may = ot_runtime_in_place(c->t->runtime, n);
    if (!may && conv && c->t->inplace_depthwise && n->n_in > 1 && n->in[1] != OT_NONE &&
        ot_attr_int(n, "group", 1) > 1) {
        ot_id weights = n->in[ot_op_row_of(n->op)->weights];
        may = weights != OT_NONE && c->g->values[weights].rank >= 3 &&
              c->g->values[weights].dims[1] == 1;
    }
    for (uint32_t i = 0; may && i < n->n_in; i++) {
        ot_id v = n->in[i];
        if (v == OT_NONE || c->s.def[v] == OT_NONE || last[v] != k) continue;
        if (c->s.bytes[v] != c->s.bytes[n->out[0]] && !(conv && i == 0)) continue;
        return ot_min(c->s.held[n->out[0]], c->s.held[v]);
    }
    return 0;
}

/* Position of the last reader of v, the end of the sequence for those that are not in it; its
 * own where there is none. */
static uint32_t last_reader(const checker *c, ot_id v)
{
    const ot_value *x = &c->g->values[v];
    uint32_t last = x->is_output ? c->s.n : c->s.pos[x->producer];
    for (uint32_t u = 0; u < x->n_uses; u++) {
        uint32_t at = c->s.pos[x->uses[u]];
        if (at == OT_NONE && ot_static_foldable(c->g, &c->g->nodes[x->uses[u]])) continue;
        if (at == OT_NONE)
            at = c->s.n; /* kept alive, like an output */
        else if (ot_seq_attention_end(&c->s, at) != OT_NONE)
            at = ot_seq_attention_end(&c->s, at); /* a group of attention reads where it ends */
        if (at > last) last = at;
    }
    return last;
}

/* Values that exist in tiles only. */
static bool *tile_values(const checker *c)
{
    bool *absent = OT_NEW_N(c->a, bool, c->g->n_values + 1u);
    for (uint32_t k = 0; absent && k < c->p->n_regions; k++)
        for (uint32_t v = c->p->regions[k].n_inputs; v < c->p->regions[k].n_values; v++)
            if (!c->p->regions[k].values[v].is_output)
                absent[c->p->regions[k].values[v].value] = true;
    return absent;
}

/* Fill before and live. absent: [n_values] values that are nowhere, or NULL. *peak: most of live.
 */
static ot_status sweep(checker *c, const bool *absent, int64_t *peak)
{
    const uint32_t n = c->s.n;
    int64_t *change = OT_NEW_N(c->a, int64_t, n + 2u), live = 0;
    uint32_t *last = OT_NEW_N(c->a, uint32_t, c->g->n_values + 1u);
    if (!change || !last) return ot_fail_nomem(c->d);
    *peak = 0;
    for (ot_id v = 0; v < c->g->n_values; v++) {
        uint32_t def = c->g->values[v].producer == OT_NONE ? OT_NONE
                                                           : c->s.pos[c->g->values[v].producer];
        if (def == OT_NONE) continue; /* the caller's, or a constant */
        last[v] = last_reader(c, v);
        if ((absent && absent[v]) || last[v] == def) continue;
        change[def + 1] += c->s.held[v];
        change[last[v] + 1] -= c->s.held[v];
    }
    for (uint32_t k = 0; k <= n; k++) {
        c->before[k] = live += change[k];
        if (k == n) break;
        const ot_node *x = &c->g->nodes[c->s.node[k]];
        c->live[k] = live + (int64_t)c->s.work[k] - overwritten(c, k, last);
        for (uint32_t i = 0; i < x->n_out; i++)
            if (x->out[i] != OT_NONE) c->live[k] += c->s.held[x->out[i]];
        *peak = ot_max(*peak, c->live[k]);
    }
    return OT_OK;
}

/* ---- one region ---- */

/* MACs in all tiles against those of the nodes whole. */
static double mac_ratio(const checker *c, const ot_region *r, const ot_check_extents *x)
{
    double whole = 0, tiled = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_rnode *rn = &r->nodes[i];
        double macs = c->s.macs[c->s.pos[rn->node]], factor = 1;
        for (uint32_t d = 0; d < r->n_dims; d++) {
            bool cut = rn->lead_axis[d] >= 0 || rn->lead_axis[d] == OT_AX_SUM;
            factor *= cut ? (double)x->done[d][i] / (double)ot_check_node_extent(c->g, rn, d)
                          : r->dims[d].n_tiles;
        }
        whole += macs;
        tiled += macs * factor;
    }
    return whole > 0 ? tiled / whole : 1;
}

/* Sizes of values are the graph's, scratch is what the runtime takes; constants that nodes read
 * whole count for each node, what tiles cut is an input. */
static ot_status check_sizes(const checker *c, const ot_region *r)
{
    double sum = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &c->g->nodes[r->nodes[i].node];
        const double scratch = c->s.work[c->s.pos[r->nodes[i].node]];
        if (r->nodes[i].work != scratch)
            return broken(c, r, "scratch of a node", r->nodes[i].work, scratch);
        for (uint32_t k = 0; k < n->n_in; k++) {
            bool cut = false;
            for (uint32_t d = 0; d < r->n_dims; d++) cut |= r->nodes[i].in_axis[d][k] >= 0;
            if (n->in[k] != OT_NONE && !c->s.act[n->in[k]] && !cut)
                sum += (double)c->s.bytes[n->in[k]];
        }
    }
    for (uint32_t v = 0; v < r->n_values; v++) {
        const ot_rvalue *rv = &r->values[v];
        if (rv->bytes != c->s.bytes[rv->value])
            return broken(c, r, "size of a value", (double)rv->bytes,
                          (double)c->s.bytes[rv->value]);
    }
    if (!same(sum, (double)r->weight_bytes, sum))
        return broken(c, r, "bytes of constants", (double)r->weight_bytes, sum);
    return OT_OK;
}

/* Bytes that nodes of the region's interval make before it for its tiles to read. */
static double waiting_inputs(const checker *c, const ot_region *r)
{
    double bytes = 0;
    for (uint32_t v = 0; v < r->n_inputs; v++) {
        ot_id id = r->values[v].value, maker = c->g->values[id].producer;
        uint32_t at = maker == OT_NONE ? OT_NONE : c->s.pos[maker];
        if (at != OT_NONE && at >= r->first && at <= r->last) bytes += (double)c->s.held[id];
    }
    return bytes;
}

/* start: bytes live when its first tile runs. */
static ot_status check_region(const checker *c, const ot_region *r, const ot_check_extents *x,
                              double start)
{
    double time = 0, traffic = 0, ratio = mac_ratio(c, r, x), all = c->s.time[c->s.n];
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        uint32_t at = c->s.pos[r->nodes[i].node];
        if (at == OT_NONE || at < r->first || at > r->last)
            return broken(c, r, "a node outside the interval", at, r->first);
        time += price_time(c, at);
        traffic += price_traffic(c, at);
    }
    /* A form may be asked for that its maker would not choose. */
    bool asked = r->form == c->o->force_form && r->form != OT_FORM_NONE &&
                 !ot_runtime_one_form(c->t->runtime);
    if (!asked && !ot_runtime_takes(c->t->runtime, r->form))
        return broken(c, r, "a form that the runtime does not take", (double)r->form,
                      (double)c->t->runtime->forms);
    OT_TRY(check_sizes(c, r));
    if (!(r->time_tiled >= 0 && isfinite(r->time_tiled)))
        return broken(c, r, "time is no time", r->time_tiled, 0);
    if (!(r->traffic >= 0 && isfinite(r->traffic)))
        return broken(c, r, "traffic is no number of bytes", r->traffic, 0);
    if (!same(r->time_untiled, time, all))
        return broken(c, r, "untiled time is not its nodes'", r->time_untiled, time);
    if (!same(r->benefit, time - r->time_tiled, all))
        return broken(c, r, "benefit is not time saved", r->benefit, time - r->time_tiled);
    if (!same(r->traffic_untiled, traffic, c->s.traffic[c->s.n]))
        return broken(c, r, "untiled traffic is not its nodes'", r->traffic_untiled, traffic);
    if (!same(r->mac_ratio, ratio, ratio))
        return broken(c, r, "MACs are not what its tiles compute", r->mac_ratio, ratio);
    if ((double)r->peak < start)
        return broken(c, r, "peak below what is live", (double)r->peak, start);
    return OT_OK;
}

/* ---- the whole plan ---- */

/* Intervals follow one another, so that "while a region runs" means something. */
static ot_status check_intervals(const checker *c)
{
    for (uint32_t k = 0; k < c->p->n_regions; k++) {
        const ot_region *r = &c->p->regions[k];
        if (r->id != c->o->search.first_region + k)
            return broken(c, r, "not its number in the plan", r->id, c->o->search.first_region + k);
        if (r->first > r->last || r->last >= c->s.n)
            return broken(c, r, "no interval of the order", r->first, r->last);
        if (k > 0 && r->first <= r[-1].last)
            return broken(c, r, "intervals overlap", r->first, r[-1].last);
    }
    return OT_OK;
}

static double compulsory_bytes(const checker *c)
{
    double sum = 0;
    for (ot_id v = 0; v < c->g->n_values; v++) {
        const ot_value *x = &c->g->values[v];
        if (x->is_output || (x->init ? x->n_uses > 0 : x->is_input)) sum += (double)c->s.bytes[v];
    }
    return sum;
}

static ot_status check_untiled(const checker *c, int64_t peak)
{
    const ot_figures *u = &c->p->untiled;
    double time = 0, traffic = 0, macs = 0, compulsory = compulsory_bytes(c);
    for (uint32_t k = 0; k < c->s.n; k++) {
        time += price_time(c, k);
        traffic += price_traffic(c, k);
        macs += c->s.macs[k];
    }
    if (!same(u->time_s, time, time))
        return broken(c, NULL, "untiled time is not the nodes'", u->time_s, time);
    if (!same(u->traffic_bytes, traffic, traffic))
        return broken(c, NULL, "untiled traffic is not the nodes'", u->traffic_bytes, traffic);
    if (!same(u->macs, macs, macs))
        return broken(c, NULL, "untiled MACs are not the nodes'", u->macs, macs);
    if (u->peak_bytes != peak)
        return broken(c, NULL, "untiled peak is not what is live", (double)u->peak_bytes,
                      (double)peak);
    if (!same(c->p->compulsory_bytes, compulsory, compulsory))
        return broken(c, NULL, "compulsory bytes are not inputs, outputs and weights",
                      c->p->compulsory_bytes, compulsory);
    return OT_OK;
}

static ot_status check_tiled(const checker *c)
{
    const ot_figures *t = &c->p->tiled, *u = &c->p->untiled;
    double time = c->p->deferred_seconds, traffic = 0, macs = 0;
    int64_t peak = 0;
    for (uint32_t k = 0; k < c->s.n; k++) {
        if (c->found->owner[c->s.node[k]] != OT_NONE) continue;
        time += price_time(c, k);
        traffic += price_traffic(c, k);
        macs += c->s.macs[k];
        peak = ot_max(peak, c->live[k]);
    }
    for (uint32_t k = 0; k < c->p->n_regions; k++) {
        const ot_region *r = &c->p->regions[k];
        double whole = 0;
        for (uint32_t i = 0; i < r->n_nodes; i++) whole += c->s.macs[c->s.pos[r->nodes[i].node]];
        time += r->time_tiled;
        traffic += r->traffic;
        macs += whole * r->mac_ratio;
        peak = ot_max(peak, r->peak);
    }
    if (!same(t->time_s, time, u->time_s))
        return broken(c, NULL, "time is not the steps'", t->time_s, time);
    if (!same(t->traffic_bytes, traffic, u->traffic_bytes))
        return broken(c, NULL, "traffic is not the steps'", t->traffic_bytes, traffic);
    if (!same(t->macs, macs, u->macs))
        return broken(c, NULL, "MACs are not the steps'", t->macs, macs);
    if (t->peak_bytes != peak)
        return broken(c, NULL, "peak is not the steps'", (double)t->peak_bytes, (double)peak);
    return OT_OK;
}

/* No value is whole that must not be: each is in tiles of a region, whose windows are small
 * enough. What is written is measured after the rewriting, too. */
static ot_status check_tensors(const checker *c, const ot_check_extents *extents)
{
    const double most = (double)c->o->max_tensor;
    for (ot_id v = 0; v < c->g->n_values; v++) {
        if (!c->s.act[v] || c->s.def[v] == OT_NONE || c->s.bytes[v] <= c->o->max_tensor) continue;
        const uint32_t owner = c->found->owner[c->g->values[v].producer];
        if (owner == OT_NONE)
            return broken(c, NULL, "a tensor above the limit is whole", (double)c->s.bytes[v],
                          most);
        const ot_region *r = &c->p->regions[owner];
        for (uint32_t k = r->n_inputs; k < r->n_values; k++) {
            if (r->values[k].value != v) continue;
            double bytes = (double)c->s.bytes[v];
            for (uint32_t d = 0; d < r->n_dims; d++) {
                int8_t axis = r->values[k].axis[d];
                if (axis >= 0)
                    bytes *= (double)extents[owner].most[d][k] / (double)c->g->values[v].dims[axis];
            }
            if (r->values[k].is_output) bytes = (double)c->s.bytes[v];
            if (bytes > most * (1 + ABOUT))
                return broken(c, r, "a tensor above the limit", bytes, most);
        }
    }
    return OT_OK;
}

/* What the user allows. Figures are those that were just found to be right. */
static ot_status check_limits(const checker *c)
{
    const ot_plan_options *o = c->o;
    const ot_figures *t = &c->p->tiled, *u = &c->p->untiled;
    const bool is_default = o->max_slowdown == OT_MAX_SLOWDOWN;
    const double slowdown = o->memory_budget > 0 && is_default ? OT_BUDGET_SLOWDOWN
                                                               : o->max_slowdown;
    const double allowed = u->time_s * (1 + slowdown);
    /* for tiles that take longer */
    const bool asked = o->force || o->max_tensor > 0 || o->force_form == OT_FORM_STREAM;
    if (o->goal == OT_GOAL_MEMORY && !asked && t->time_s > allowed * (1 + ABOUT))
        return broken(c, NULL, "slower than allowed", t->time_s, allowed);
    if (o->memory_budget > 0 && !o->best_effort && t->peak_bytes > o->memory_budget)
        return broken(c, NULL, "peak above the memory budget", (double)t->peak_bytes,
                      (double)o->memory_budget);
    if (o->goal != OT_GOAL_TIME || asked || o->memory_budget > 0) return OT_OK;
    const double loss = u->time_s * c->t->runtime->about; /* for less memory */
    for (uint32_t k = 0; k < c->p->n_regions; k++)
        if (c->p->regions[k].benefit < -loss - ABOUT * u->time_s)
            return broken(c, &c->p->regions[k], "slower than untiled", c->p->regions[k].benefit,
                          -loss);
    return OT_OK;
}

ot_status ot_plan_check_figures(ot_graph *g, const ot_plan *p, const ot_target *t,
                                const ot_plan_options *o, ot_check_found *found, ot_arena *a,
                                ot_diag *d)
{
    checker c = {.g = g, .p = p, .t = t, .o = o, .found = found, .a = a, .d = d};
    int64_t peak, tiled;
    OT_TRY(ot_seq_build(g, a, &c.s));
    OT_TRY(ot_cost_fill(&c.s, t));
    c.before = OT_NEW_N(a, int64_t, c.s.n + 1u);
    c.live = OT_NEW_N(a, int64_t, c.s.n + 1u);
    found->start = OT_NEW_N(a, double, p->n_regions + 1u);
    bool *absent = tile_values(&c);
    if (!c.before || !c.live || !found->start || !absent) return ot_fail_nomem(d);
    OT_TRY(check_intervals(&c));
    OT_TRY(sweep(&c, NULL, &peak));
    OT_TRY(check_untiled(&c, peak));
    OT_TRY(sweep(&c, absent, &tiled));
    for (uint32_t k = 0; k < p->n_regions; k++) {
        const ot_region *r = &p->regions[k];
        found->start[k] = (double)c.before[r->first] + waiting_inputs(&c, r);
        OT_TRY(check_region(&c, r, &found->extents[k], found->start[k]));
    }
    OT_TRY(check_tiled(&c));
    OT_TRY(o->max_tensor > 0 ? check_tensors(&c, found->extents) : OT_OK);
    return check_limits(&c);
}
