/* An independent checker of plans, in release builds too. What it proves, from the graph and the
 * operators' slice relations alone:
 *
 *   legality   nodes are in one region each, regions convex and connected, in a form that the
 *              runtime takes; every reader finds in its tile what it needs, and outside what it
 *              reads (plan_check.c); in steps that carry rows, too (plan_check_stream.c)
 *   coverage   tiles cover an axis once; pieces are disjoint and complete; every element of a
 *              reduction counts once
 *   memory     buffers of a tile lie in the planned arena and do not overlap while both live
 *              (plan_check_memory.c)
 *   figures    sizes, scratch, constants, multiply-adds and what is untiled are the graph's; times,
 *              bytes moved and peaks of the plan are the sums of its steps (plan_check_figures.c)
 *   limits     slowdown, memory budget, largest tensor, capacity of a scratchpad, and what a
 *              region may lose
 *
 * What it takes as stated is what the tiles of a region cost: seconds, bytes moved, peak. Tests
 * add these up a second time (tests/oracle/region_prices.h).
 *
 * It shares no code with the search (no walk, no trial, no totals): it follows the region's
 * nodes itself, tile by tile, and compares. What it shares are tables and rates: the target, the
 * runtime, and the cost model's pure functions of one node. It is linear in nodes x tiles, but for
 * the packing, whose steps are bounded.
 */
#include "plan_check.h"

typedef struct checker {
    const ot_graph *g;
    const ot_target *t;
    ot_diag *d;
    ot_arena *a;
    uint32_t *pos;        /* [n_nodes] place in g->order; n_order: not there */
    bool *made, *tainted; /* [n_values] scratch of check_convex, false between its calls */
    uint32_t *constant;   /* [n_values] scratch of ot_plan_check_memory */
    const ot_region *r;
    ot_check_extents *x; /* of r, filled by check_windows */
} checker;

static ot_status broken(const checker *c, const char *rule, ot_id value)
{
    const char *name = value == OT_NONE ? "" : c->g->values[value].name;
    return ot_fail(c->d, OT_E_INPUT, "plan check: region %u: %s%s%s", c->r->id, rule,
                   *name ? ": value " : "", name);
}

static ot_status check_members(checker *c, uint32_t *owner, uint32_t index)
{
    for (uint32_t k = 0; k < c->r->n_nodes; k++) {
        ot_id n = c->r->nodes[k].node;
        if (n >= c->g->n_nodes || c->g->nodes[n].dead)
            return broken(c, "a node does not exist", OT_NONE);
        if (owner[n] != OT_NONE) return broken(c, "a node is in two regions", OT_NONE);
        owner[n] = index;
    }
    return c->r->n_nodes ? OT_OK : broken(c, "empty", OT_NONE);
}

/* Nothing that reads the region's results may feed it again. Only what runs between its first
 * and its last node can. */
static ot_status check_convex(checker *c, const uint32_t *owner, uint32_t index)
{
    const ot_graph *g = c->g;
    bool *made = c->made, *tainted = c->tainted;
    uint32_t first = g->n_order, last = 0;
    for (uint32_t k = 0; k < c->r->n_nodes; k++) {
        first = (uint32_t)ot_min(first, c->pos[c->r->nodes[k].node]);
        last = (uint32_t)ot_max(last, c->pos[c->r->nodes[k].node]);
    }
    for (uint32_t k = first; k <= last && k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool inside = owner[g->order[k]] == index, hit = false;
        if (n->is_static) continue; /* folded, never executed between tiles */
        for (uint32_t i = 0; i < n->n_in + n->n_captured; i++) {
            ot_id v = i < n->n_in ? n->in[i] : n->captured[i - n->n_in];
            if (v == OT_NONE) continue;
            if (inside && tainted[v])
                return broken(c, "not convex: a path leaves the region and comes back", v);
            hit |= !inside && (made[v] || tainted[v]);
        }
        for (uint32_t o = 0; o < n->n_out; o++) {
            if (n->out[o] == OT_NONE) continue;
            made[n->out[o]] = inside;
            tainted[n->out[o]] = hit;
        }
    }
    for (uint32_t k = first; k <= last && k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) made[n->out[o]] = tainted[n->out[o]] = false;
    }
    return OT_OK;
}

static uint32_t root(uint32_t *up, uint32_t x)
{
    while (up[x] != x) x = up[x] = up[up[x]];
    return x;
}

/* Nodes hang together through values they share. */
static ot_status check_connected(checker *c)
{
    const ot_region *r = c->r;
    uint32_t n = r->n_nodes + r->n_values;
    uint32_t *up = OT_NEW_N(c->a, uint32_t, n + 1u);
    if (!up) return ot_fail_nomem(c->d);
    for (uint32_t k = 0; k < n; k++) up[k] = k;
    for (uint32_t k = 0; k < r->n_nodes; k++) {
        const ot_node *x = &c->g->nodes[r->nodes[k].node];
        for (uint32_t i = 0; i < x->n_in; i++)
            if (r->nodes[k].in[i] != OT_NONE)
                up[root(up, r->n_nodes + r->nodes[k].in[i])] = root(up, k);
        for (uint32_t o = 0; o < x->n_out; o++)
            if (r->nodes[k].out[o] != OT_NONE)
                up[root(up, r->n_nodes + r->nodes[k].out[o])] = root(up, k);
    }
    for (uint32_t k = 1; k < r->n_nodes; k++)
        if (root(up, k) != root(up, 0)) return broken(c, "not connected", OT_NONE);
    return OT_OK;
}

static ot_status check_dims(checker *c)
{
    const ot_region *r = c->r;
    if (r->n_dims < 1 || r->n_dims > OT_DIMS_MAX) return broken(c, "number of dims", OT_NONE);
    for (uint32_t d = 0; d < r->n_dims; d++) {
        const ot_dim *m = &r->dims[d];
        if (m->n_tiles < 2 || m->tile < 1 || m->sink >= r->n_values)
            return broken(c, "fewer than two tiles", OT_NONE);
        if ((int64_t)m->n_tiles * m->tile < m->extent ||
            (int64_t)(m->n_tiles - 1) * m->tile >= m->extent)
            return broken(c, "tiles do not cover the axis once", r->values[m->sink].value);
    }
    return OT_OK;
}

static void hull(ot_win *a, ot_win b)
{
    if (b.lo >= b.hi) return;
    if (a->lo >= a->hi)
        *a = b;
    else
        *a = (ot_win){b.lo < a->lo ? b.lo : a->lo, b.hi > a->hi ? b.hi : a->hi};
}

static int64_t length(ot_win w) { return w.lo < w.hi ? w.hi - w.lo : 0; }

/* Node i makes `made` in the tile at hand. */
static void count_node(checker *c, uint32_t d, uint32_t i, ot_win made)
{
    c->x->done[d][i] += length(made);
    c->x->done_most[d][i] = ot_max(c->x->done_most[d][i], length(made));
}

/* Operand k of node i takes `win` of a value that is cut in d; axis OT_AX_WHOLE: all of it. */
static void count_read(checker *c, uint32_t d, uint32_t i, uint32_t k, int8_t axis, ot_win win,
                       const ot_tile_windows *w)
{
    uint32_t v = c->r->nodes[i].in[k];
    const ot_rvalue *rv = &c->r->values[v];
    if (axis >= 0) c->x->read[d][i][k] += length(win);
    if (rv->axis[d] < 0) return;
    if (axis < 0) win = (ot_win){0, c->g->values[rv->value].dims[rv->axis[d]]};
    if (length(win) > 0 && (win.lo != w->made[v].lo || win.hi != w->made[v].hi))
        c->x->cropped[d][v] += length(win);
}

/* Tile k of dimension d reduces its share of what node i reads, no more: every element counts once.
 */
static ot_status check_share(checker *c, uint32_t d, uint32_t k, uint32_t i,
                             const ot_tile_windows *w, ot_win *must)
{
    const ot_rnode *x = &c->r->nodes[i];
    const ot_node *n = &c->g->nodes[x->node];
    const ot_dim *m = &c->r->dims[d];
    bool reduced[OT_RANK_MAX];
    uint32_t v = x->in[0];
    int8_t axis = x->in_axis[d][0];
    const ot_form f = c->r->form;
    if ((f != OT_FORM_WHILE && f != OT_FORM_PEELED && f != OT_FORM_LOOP && f != OT_FORM_UNROLLED) ||
        ot_access_sum(c->g, n, reduced) == OT_SUM_NONE || axis < 0 || !reduced[axis] ||
        v == OT_NONE || x->out[0] == OT_NONE || c->r->values[x->out[0]].axis[d] >= 0)
        return broken(c, "a reduction has no parts along this dimension", n->out[0]);
    if (c->r->values[v].axis[d] != axis)
        return broken(c, "a value is cut along two axes", c->r->values[v].value);
    __int128 extent = c->g->values[c->r->values[v].value].dims[axis];
    int64_t from = (int64_t)k * m->tile, to = k + 1 == m->n_tiles ? m->extent : from + m->tile;
    ot_win share = {(int64_t)(from * extent / m->extent), (int64_t)(to * extent / m->extent)},
           in = w->ops[i].in[0];
    if (share.lo >= share.hi || in.lo != share.lo || in.hi != share.hi)
        return broken(c, "a tile does not reduce its share", c->r->values[v].value);
    if (w->made[v].lo > share.lo || w->made[v].hi < share.hi)
        return broken(c, "a reader needs more than the tile holds", c->r->values[v].value);
    hull(&must[v], share);
    count_node(c, d, i, share);
    count_read(c, d, i, 0, axis, share, w);
    for (uint32_t u = 0; u < c->r->n_nodes; u++)
        for (uint32_t j = 0; j < c->g->nodes[c->r->nodes[u].node].n_in; j++)
            if (c->r->nodes[u].in[j] == x->out[0])
                return broken(c, "a part of a reduction is read inside", n->out[0]);
    return OT_OK;
}

/* A reader in this tile wants `win` along `axis` of region value v; axis OT_AX_WHOLE: all of it. */
static ot_status take(checker *c, uint32_t d, uint32_t v, int8_t axis, ot_win win,
                      const ot_tile_windows *w, ot_win *must)
{
    const ot_rvalue *rv = &c->r->values[v];
    if (rv->axis[d] < 0) {
        if (axis >= 0) return broken(c, "a value is cut along two axes", rv->value);
        must[v] = (ot_win){0, 1}; /* a mark: it is read */
        return OT_OK;
    }
    if (axis < 0) win = (ot_win){0, c->g->values[rv->value].dims[rv->axis[d]]};
    if (axis >= 0 && rv->axis[d] != axis)
        return broken(c, "a value is cut along two axes", rv->value);
    hull(&must[v], win);
    if (win.lo < win.hi && (w->made[v].lo > win.lo || w->made[v].hi < win.hi))
        return broken(c, "a reader needs more than the tile holds", rv->value);
    return OT_OK;
}

/* Node i makes what its readers in this tile must have, and reads what it needs for that. */
static ot_status check_node(checker *c, uint32_t d, uint32_t i, const ot_tile_windows *w,
                            ot_win *must)
{
    const ot_region *r = c->r;
    const ot_rnode *x = &r->nodes[i];
    const ot_node *n = &c->g->nodes[x->node];
    const bool cut = x->lead_axis[d] >= 0;
    ot_why why;
    ot_op_tile t = {.in = OT_NEW_N(c->a, ot_win, n->n_in + 1u)};
    if (!t.in) return ot_fail_nomem(c->d);
    for (uint32_t o = 0; o < n->n_out; o++)
        if (x->out[o] != OT_NONE && (!cut || r->values[x->out[o]].axis[d] >= 0))
            hull(&t.need, must[x->out[o]]);
    if (t.need.lo >= t.need.hi) return OT_OK;
    if (cut && !ot_access_window(c->g, n, x->lead_out[d], (uint32_t)x->lead_axis[d], &t, &why))
        return broken(c, ot_reason_sentence(why), n->out[x->lead_out[d]]);
    if (cut) count_node(c, d, i, t.made);
    for (uint32_t k = 0; k < n->n_in; k++) {
        int8_t axis = cut ? x->in_axis[d][k] : OT_AX_WHOLE;
        if (x->in[k] == OT_NONE || (axis >= 0 && t.in[k].lo >= t.in[k].hi)) continue;
        if (cut) count_read(c, d, i, k, axis, t.in[k], w);
        OT_TRY(take(c, d, x->in[k], axis, t.in[k], w, must));
    }
    return OT_OK;
}

/* What every value must at least contain in this tile, from the pieces w claims. */
static ot_status check_tile(checker *c, uint32_t d, uint32_t tile, const ot_tile_windows *w,
                            ot_win *must)
{
    const ot_region *r = c->r;
    for (uint32_t v = 0; v < r->n_values; v++) {
        const ot_rvalue *rv = &r->values[v];
        must[v] = (ot_win){0, 0};
        if (rv->is_output) must[v] = rv->axis[d] >= 0 ? w->piece[v] : (ot_win){0, 1};
        if (rv->axis[d] >= 0 && must[v].lo < must[v].hi &&
            (w->made[v].lo > must[v].lo || w->made[v].hi < must[v].hi))
            return broken(c, "a tile does not make its piece", rv->value);
    }
    for (uint32_t k = r->n_nodes; k-- > 0;)
        if (r->nodes[k].lead_axis[d] == OT_AX_SUM)
            OT_TRY(check_share(c, d, tile, k, w, must));
        else
            OT_TRY(check_node(c, d, k, w, must));
    return OT_OK;
}

static ot_status new_extents(checker *c, uint32_t d)
{
    const ot_region *r = c->r;
    ot_check_extents *x = c->x;
    x->most[d] = OT_NEW_N(c->a, int64_t, r->n_values + 1u);
    x->sum[d] = OT_NEW_N(c->a, int64_t, r->n_values + 1u);
    x->cropped[d] = OT_NEW_N(c->a, int64_t, r->n_values + 1u);
    x->done[d] = OT_NEW_N(c->a, int64_t, r->n_nodes + 1u);
    x->done_most[d] = OT_NEW_N(c->a, int64_t, r->n_nodes + 1u);
    x->read[d] = OT_NEW_N(c->a, int64_t *, r->n_nodes + 1u);
    if (!x->most[d] || !x->sum[d] || !x->cropped[d] || !x->done[d] || !x->done_most[d] ||
        !x->read[d])
        return ot_fail_nomem(c->d);
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        x->read[d][i] = OT_NEW_N(c->a, int64_t, c->g->nodes[r->nodes[i].node].n_in + 1u);
        if (!x->read[d][i]) return ot_fail_nomem(c->d);
    }
    return OT_OK;
}

/* What all tiles of dimension d have. must: [n_values] scratch. */
static ot_status check_dim(checker *c, uint32_t d, ot_tile_windows *w, ot_win *must)
{
    const ot_region *r = c->r;
    ot_check_extents *x = c->x;
    ot_why why;
    int64_t *covered = OT_NEW_N(c->a, int64_t, r->n_values + 1u);
    if (!covered) return ot_fail_nomem(c->d);
    for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
        if (!ot_tile_windows_get(c->g, r, d, k, w, &why))
            return broken(c, ot_reason_sentence(why), OT_NONE);
        for (uint32_t v = 0; v < r->n_values; v++) {
            if (r->values[v].axis[d] < 0) continue;
            x->most[d][v] = ot_max(x->most[d][v], w->made[v].hi - w->made[v].lo);
            x->sum[d][v] += w->made[v].hi - w->made[v].lo;
            if (!r->values[v].is_output) continue;
            if (w->piece[v].lo != covered[v] || w->piece[v].hi < w->piece[v].lo)
                return broken(c, "pieces overlap or leave a gap", r->values[v].value);
            covered[v] = w->piece[v].hi;
        }
        OT_TRY(check_tile(c, d, k, w, must));
    }
    for (uint32_t v = 0; v < r->n_values; v++)
        if (r->values[v].is_output && r->values[v].axis[d] >= 0 &&
            covered[v] != c->g->values[r->values[v].value].dims[r->values[v].axis[d]])
            return broken(c, "pieces do not reach the end", r->values[v].value);
    return OT_OK;
}

static ot_status check_windows(checker *c)
{
    const ot_region *r = c->r;
    const bool stream = r->form == OT_FORM_STREAM;
    ot_tile_windows w;
    ot_win *must = OT_NEW_N(c->a, ot_win, r->n_values + 1u);
    if (!must) return ot_fail_nomem(c->d);
    if (stream && r->n_dims > (r->rolling ? 2 : 1))
        return broken(c, "steps along more than one axis", OT_NONE);
    OT_TRY(ot_tile_windows_new(c->g, r, c->a, &w));
    for (uint32_t d = 0; d < r->n_dims; d++) {
        OT_TRY(new_extents(c, d));
        if (stream && d == 0)
            OT_TRY(ot_plan_check_stream(c->g, r, c->x, c->a, c->d));
        else
            OT_TRY(check_dim(c, d, &w, must));
    }
    return OT_OK;
}

/* Every reader outside the region finds its value among the outputs. */
static ot_status check_outputs(checker *c, const uint32_t *owner, uint32_t index)
{
    const ot_region *r = c->r;
    for (uint32_t v = r->n_inputs; v < r->n_values; v++) {
        const ot_value *x = &c->g->values[r->values[v].value];
        bool outside = x->is_output;
        for (uint32_t u = 0; u < x->n_uses; u++)
            outside |= owner[x->uses[u]] != index &&
                       !(c->g->nodes[x->uses[u]].is_static &&
                         ot_static_foldable(c->g, &c->g->nodes[x->uses[u]]));
        if (outside && !r->values[v].is_output)
            return broken(c, "a value read outside is not an output", r->values[v].value);
        bool cut = false;
        for (uint32_t d = 0; d < r->n_dims; d++)
            cut |= r->values[v].axis[d] >= 0 || ot_is_part(r, v, d);
        if (outside && !cut) return broken(c, "an output is cut in no dim", r->values[v].value);
    }
    return OT_OK;
}

/* All that concerns region k alone. */
static ot_status check_region(checker *c, const uint32_t *owner, uint32_t k)
{
    OT_TRY(check_convex(c, owner, k));
    OT_TRY(check_connected(c));
    OT_TRY(check_dims(c));
    OT_TRY(check_windows(c));
    OT_TRY(check_outputs(c, owner, k));
    return ot_plan_check_memory(c->g, c->r, c->t, c->x, c->constant, c->a, c->d);
}

static ot_status check_regions(checker *c, const ot_graph *g, const ot_plan *p,
                               ot_check_found *found)
{
    uint32_t *owner = OT_NEW_N(c->a, uint32_t, g->n_nodes + 1u);
    ot_check_extents *extents = OT_NEW_N(c->a, ot_check_extents, p->n_regions + 1u);
    c->pos = OT_NEW_N(c->a, uint32_t, g->n_nodes + 1u);
    c->made = OT_NEW_N(c->a, bool, g->n_values + 1u);
    c->tainted = OT_NEW_N(c->a, bool, g->n_values + 1u);
    c->constant = OT_NEW_N(c->a, uint32_t, g->n_values + 1u);
    if (!owner || !extents || !c->pos || !c->made || !c->tainted || !c->constant)
        return ot_fail_nomem(c->d);
    for (uint32_t k = 0; k < g->n_nodes; k++) owner[k] = OT_NONE, c->pos[k] = g->n_order;
    for (uint32_t k = 0; k < g->n_order; k++) c->pos[g->order[k]] = k;
    for (uint32_t v = 0; v < g->n_values; v++) c->constant[v] = OT_NONE;
    for (uint32_t k = 0; k < p->n_regions; k++) {
        c->r = &p->regions[k];
        OT_TRY(check_members(c, owner, k));
    }
    for (uint32_t k = 0; k < p->n_regions; k++) {
        c->r = &p->regions[k];
        c->x = &extents[k];
        OT_TRY(check_region(c, owner, k));
    }
    *found = (ot_check_found){.extents = extents, .owner = owner};
    return OT_OK;
}

ot_status ot_plan_check_find(ot_graph *g, const ot_plan *p, const ot_target *t,
                             const ot_plan_options *o, ot_arena *a, ot_diag *d,
                             ot_check_found *found)
{
    checker c = {.g = g, .t = t, .d = d, .a = a};
    OT_TRY(check_regions(&c, g, p, found));
    return ot_plan_check_figures(g, p, t, o, found, a, d);
}

/* requires the graph the plan was made for, unchanged. Fails: OT_E_INPUT with the first
 * violation (our bug), OT_E_NOMEM. */
ot_status ot_plan_check(ot_graph *g, const ot_plan *p, const ot_target *t, const ot_plan_options *o,
                        ot_diag *d)
{
    ot_check_found found;
    ot_arena *a = ot_arena_new();
    ot_status st = a ? ot_plan_check_find(g, p, t, o, a, d, &found) : ot_fail_nomem(d);
    ot_arena_free(a);
    return st;
}
