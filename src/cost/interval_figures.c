/* Trial tilings: while a walk goes down the sequence, keep for every tile count of every dim the
 * windows of three tiles (first, middle, last) and from them the totals of the interval seen so
 * far. One visit costs a handful of window computations; nothing is computed again when the
 * interval grows.
 *
 *   dim 0: counts 2 4 8 ...   \
 *                              pairs (c0, c1): time, working set, traffic
 *   dim 1: counts 2 4 8 ...   /
 *
 * Tiles, nodes and values go through the accumulator that exact figures use (tile_totals.h); the
 * three tiles count 1, n-2 and 1. So both agree where the tiles in between are alike, but for
 *   - the working set: what the region reads from outside counts from the start of a tile, not from
 *   its first reader, since a node
 *     that makes it may still join; where a node wants more of a value than those behind it, of
 *     these only the place where most is
 *     live is counted again;
 *   - form scan, which holds no windows of its inputs on a cache.
 */
#include "interval_figures.h"

#include "ops/quirks.h"

/* Nodes that a walk visits at most, about: one that touches more values than so many nodes anywhere
 * in the graph ends there. */
#define LONGEST_WALK 1100

static bool alloc_count(ot_arena *a, uint32_t max_slots, uint32_t max_in, uint32_t max_out,
                        dim_count *x)
{
    x->value = OT_NEW_N(a, value_cut, max_slots + 1u);
    x->seen = OT_NEW_N(a, uint32_t, max_slots + 1u);
    x->node.read = OT_NEW_N(a, double, max_in + 1u);
    x->node.out = OT_NEW_N(a, ot_extents, max_out + 1u);
    return x->value && x->seen && x->node.read && x->node.out;
}

/* The most values that LONGEST_WALK nodes in a row read and make. */
static uint32_t count_slots(const ot_seq *s)
{
    uint64_t now = 0, most = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &s->g->nodes[s->node[k]];
        now += (uint64_t)n->n_in + n->n_out;
        if (k >= LONGEST_WALK) {
            const ot_node *gone = &s->g->nodes[s->node[k - LONGEST_WALK]];
            now -= (uint64_t)gone->n_in + gone->n_out;
        }
        if (now > most) most = now;
    }
    return most < s->g->n_values ? (uint32_t)most : s->g->n_values;
}

ot_trial *ot_trial_new(const ot_seq *s, const ot_target *t, const ot_plan_options *o)
{
    ot_trial *tr = OT_NEW(s->arena, ot_trial);
    ot_arena *a = s->arena;
    if (!tr) return NULL;
    uint32_t max_in = 0, max_out = 0, n_values = s->g->n_values;
    for (uint32_t k = 0; k < s->n; k++) {
        const ot_node *n = &s->g->nodes[s->node[k]];
        max_in = max_in > n->n_in ? max_in : n->n_in;
        max_out = max_out > n->n_out ? max_out : n->n_out;
    }
    tr->s = s;
    tr->t = t;
    tr->o = o;
    tr->pairs = OT_NEW_N(a, pair, OT_COUNTS_MAX * COUNTS_2D * COUNTS_2D);
    tr->is_pending = OT_NEW_N(a, bool, n_values + 1u);
    tr->pending_at = OT_NEW_N(a, uint32_t, n_values + 1u);
    tr->whole_in = OT_NEW_N(a, uint8_t, n_values + 1u);
    tr->scratch = OT_NEW_N(a, ot_win, max_in + 1u);
    tr->later = OT_NEW_N(a, bool, max_in + 1u);
    tr->bytes = OT_NEW_N(a, double, (size_t)max_in + max_out + 1u);
    /* each value once: they never grow in a walk */
    tr->pending = OT_NEW_N(a, ot_id, n_values + 1u);
    tr->whole = OT_NEW_N(a, ot_id, n_values + 1u);
    tr->max_slots = count_slots(s);
    tr->slot = OT_NEW_N(a, uint32_t, n_values + 1u);
    tr->slot_of = OT_NEW_N(a, uint32_t, n_values + 1u);
    bool ok = tr->pairs && tr->slot && tr->slot_of && tr->is_pending && tr->pending_at &&
              tr->whole_in && tr->scratch && tr->later && tr->bytes && tr->pending && tr->whole;
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++)
        for (uint32_t c = 0; c < (d == 0 ? OT_COUNTS_MAX : COUNTS_2D); c++)
            ok = ok && alloc_count(a, tr->max_slots, max_in, max_out, &tr->dim[d][c]);
    return ok ? tr : NULL;
}

static void fill_count(dim_count *x, int64_t extent, int64_t tile)
{
    x->tile = tile;
    x->n = ot_tile_count(extent, tile);
    x->dead = false;
    x->halo = x->overlap = extent % tile != 0;
    x->n_at = x->n > 2 ? 3 : 2;
    x->at[0] = 0;
    x->at[1] = x->n - 1;
    x->at[2] = x->n / 2;
    x->weight[0] = x->weight[1] = 1;
    x->weight[2] = x->n > 2 ? x->n - 2 : 0;
}

void ot_trial_start(ot_trial *tr, ot_walk *w, uint32_t out_index, const int8_t *axes,
                    uint32_t n_dims)
{
    for (uint32_t k = 0; k < tr->n_pending; k++) tr->is_pending[tr->pending[k]] = false;
    for (uint32_t k = 0; k < tr->n_whole; k++) tr->whole_in[tr->whole[k]] = 0;
    tr->n_pending = tr->n_whole = tr->n_dequantized = 0;
    tr->w = w;
    tr->epoch++;
    tr->n_slots = 0;
    tr->out_index = out_index;
    tr->n_dims = n_dims;
    memcpy(tr->axes, axes, n_dims * sizeof *axes);
    ot_totals_start(&tr->border, n_dims);
    tr->outside_time = tr->pre_bytes = tr->in_time = tr->in_traffic = 0;
    tr->n_in = 0;
    tr->outside_live = 0;
    tr->split_quant = false;
    const ot_value *sink = &tr->s->g->values[w->sink];
    for (uint32_t d = 0; d < n_dims; d++) {
        int64_t tiles[OT_COUNTS_MAX];
        int64_t extent = sink->dims[axes[d]];
        uint32_t limit = n_dims == 1 ? OT_COUNTS_MAX : n_dims == 2 ? COUNTS_2D : COUNTS_3D;
        /* three dims are for what two cannot fit: one element of the outer axis */
        if (n_dims == 3 && d == 0) {
            tiles[0] = 1;
            tr->n_counts[d] = 1;
        } else if (tr->s->g->model->dynamic_dims) {
            tr->n_counts[d] = ot_candidate_dynamic_tiles(extent, limit, tiles);
        } else {
            tr->n_counts[d] = ot_candidate_tiles(extent, limit, n_dims > 1, tiles);
        }
        for (uint32_t c = 0; c < tr->n_counts[d]; c++) fill_count(&tr->dim[d][c], extent, tiles[c]);
    }
    tr->n_pairs = 0;
    for (uint32_t i = 0; i < tr->n_counts[0]; i++)
        for (uint32_t j = 0; j < (n_dims > 1 ? tr->n_counts[1] : 1u); j++)
            for (uint32_t k = 0; k < (n_dims > 2 ? tr->n_counts[2] : 1u); k++)
                tr->pairs[tr->n_pairs++] = (pair){.c = {i, j, k}};
}

/* Piece of value v (extent e on its cut axis) that tile k of count x owns. */
static ot_win piece_of(const dim_count *x, int64_t sink_extent, int64_t e, uint32_t k)
{
    int64_t b0 = ot_min(sink_extent, (int64_t)k * x->tile), b1 = ot_min(sink_extent, b0 + x->tile);
    /* Same rule as ot_tile_windows_get; extents are small enough for the product (checked on
     * import). */
    ot_win w = {(int64_t)((__int128)b0 * e / sink_extent),
                (int64_t)((__int128)b1 * e / sink_extent)};
    return w;
}

static void widen(ot_win *a, ot_win b)
{
    if (b.lo >= b.hi) return;
    if (a->lo >= a->hi) {
        *a = b;
        return;
    }
    a->lo = ot_min(a->lo, b.lo);
    a->hi = ot_max(a->hi, b.hi);
}

static bool is_touched(const ot_trial *tr, const dim_count *x, ot_id v)
{
    return tr->slot_of[v] == tr->epoch && x->seen[tr->slot[v]] == tr->epoch;
}

/* v along d, begun when this is the first that is heard of it. */
static value_cut *touch(ot_trial *tr, dim_count *x, ot_id v)
{
    if (tr->slot_of[v] != tr->epoch) {
        tr->slot_of[v] = tr->epoch;
        tr->slot[v] = tr->n_slots++;
    }
    const uint32_t at = tr->slot[v];
    if (x->seen[at] != tr->epoch) {
        x->seen[at] = tr->epoch;
        x->value[at] = (value_cut){0};
    }
    return &x->value[at];
}

/* Operand k of the node, which is cut or whose whole axis is read although others cut it, in a
 * sample with windows t. */
static void read_window(ot_trial *tr, dim_count *x, const ot_node *n, uint32_t d, uint32_t k,
                        uint32_t sample, const ot_op_tile *t)
{
    const ot_id v = n->in[k];
    int8_t axis = ot_walk_axis(tr->w, v, d);
    if (axis < 0) return;
    value_cut *c = touch(tr, x, v);
    bool whole = tr->whole_in[v] >> d & 1;
    ot_win win = whole ? (ot_win){0, tr->s->g->values[v].dims[axis]} : t->in[k];
    if (whole) c->crop += (double)ot_wanted_add(&c->at[sample], win) * x->weight[sample];
    if (tr->w->in_axis[d][k] >= 0)
        c->crop += (double)ot_wanted_add(&c->at[sample], t->in[k]) * x->weight[sample];
}

/* Extents of v after its windows changed. */
static void measure(ot_trial *tr, dim_count *x, ot_id v, uint32_t d)
{
    int8_t axis = ot_walk_axis(tr->w, v, d);
    value_cut *c = touch(tr, x, v);
    c->e.sum = axis < 0 ? x->n : 0;
    c->e.max = axis < 0 ? 1 : 0;
    if (axis < 0) return;
    for (uint32_t k = 0; k < x->n_at; k++)
        ot_extents_add(&c->e, c->at[k].hull.hi - c->at[k].hull.lo, x->weight[k]);
    c->e.crop = c->crop;
    ot_extents_finish(&c->e, tr->s->g->values[v].dims[axis]);
    if (ot_extents_overlap(&c->e)) x->overlap = true;
}

/* Windows of a sample of a node that reduces its input along d: every tile takes its share, and
 * must have one. */
static bool sum_window(const ot_trial *tr, const ot_node *n, uint32_t d, const dim_count *x,
                       uint32_t sample, ot_op_tile *t)
{
    int64_t extent = tr->s->g->values[n->in[0]].dims[tr->w->in_axis[d][0]];
    t->made = piece_of(x, tr->s->g->values[tr->w->sink].dims[tr->w->sink_axis[d]], extent,
                       x->at[sample]);
    memset(t->in, 0, n->n_in * sizeof *t->in);
    t->in[0] = t->made;
    return t->made.lo < t->made.hi;
}

/* Windows of a sample of a node; t->made empty: nobody wants anything of it there. */
static bool cut_window(const ot_trial *tr, const ot_node *n, uint32_t d, const dim_count *x,
                       uint32_t sample, ot_op_tile *t)
{
    const ot_graph *g = tr->s->g;
    const ot_walk *w = tr->w;
    ot_why why;
    for (uint32_t o = 0; o < n->n_out; o++) {
        ot_id v = n->out[o];
        if (v == OT_NONE) continue;
        if (is_touched(tr, x, v)) widen(&t->need, ot_trial_cut(tr, x, v)->at[sample].hull);
        int8_t axis = ot_walk_axis(w, v, d);
        if (axis >= 0 && ot_walk_escapes(w, v))
            widen(&t->need, piece_of(x, g->values[w->sink].dims[w->sink_axis[d]],
                                     g->values[v].dims[axis], x->at[sample]));
    }
    return t->need.lo >= t->need.hi || ot_window_by_rule(&tr->rule[d], t, &why);
}

static bool is_cut_along_any(const ot_trial *tr, uint32_t k)
{
    for (uint32_t d = 0; d < tr->n_dims; d++)
        if (tr->w->in_axis[d][k] >= 0) return true;
    return false;
}

/* Windows of one node for one count. */
static bool node_windows(ot_trial *tr, const ot_node *n, uint32_t d, dim_count *x)
{
    const ot_walk *w = tr->w;
    const int8_t *in_axis = w->in_axis[d];
    const bool sum = w->lead_axis[d] == OT_AX_SUM;
    const ot_graph *g = tr->s->g;
    if (sum && (double)x->tile * (double)g->values[n->in[0]].dims[in_axis[0]] <
                   (double)g->values[w->sink].dims[w->sink_axis[d]])
        return false;
    ot_node_cut_start(&x->node, n, w->lead_axis[d], in_axis, x->n);
    for (uint32_t k = 0; k < x->n_at; k++) {
        ot_op_tile t = {.in = tr->scratch};
        if (!(sum ? sum_window(tr, n, d, x, k, &t) : cut_window(tr, n, d, x, k, &t))) return false;
        if (t.made.lo >= t.made.hi) continue;
        ot_node_cut_add(&x->node, n, in_axis, &t, x->weight[k]);
        for (uint32_t o = 0; o < n->n_out; o++) { /* what is made is what is live */
            ot_id v = n->out[o];
            int8_t axis = v == OT_NONE ? OT_AX_UNSET : ot_walk_axis(w, v, d);
            if (axis < 0) continue;
            value_cut *c = touch(tr, x, v);
            c->crop += (double)ot_wanted_made(&c->at[k], t.made) * x->weight[k];
        }
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] != OT_NONE) read_window(tr, x, n, d, i, k, &t);
    }
    ot_node_cut_finish(&x->node, g, n, w->lead_out, in_axis);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != OT_NONE && (tr->s->act[n->in[i]] || is_cut_along_any(tr, i)))
            measure(tr, x, n->in[i], d);
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] == OT_NONE) continue;
        measure(tr, x, n->out[o], d);
        x->node.out[o] = ot_trial_cut(tr, x, n->out[o])->e;
    }
    if (x->node.axis >= 0 && ot_extents_overlap(&x->node.made)) x->halo = x->overlap = true;
    return true;
}

void ot_trial_extents(const ot_trial *tr, const pair *p, ot_id v, ot_extents *e)
{
    for (uint32_t d = 0; d < tr->n_dims; d++) e[d] = ot_trial_cut(tr, &tr->dim[d][p->c[d]], v)->e;
}

/* Bytes in the largest tile of what the nodes visited so far need and do not make. */
static double pending_bytes(const ot_trial *tr, const pair *p)
{
    double sum = 0;
    for (uint32_t k = 0; k < tr->n_pending; k++) {
        double b = (double)tr->s->bytes[tr->pending[k]];
        for (uint32_t d = 0; d < tr->n_dims; d++)
            b *= ot_trial_cut(tr, &tr->dim[d][p->c[d]], tr->pending[k])->e.max;
        sum += b;
    }
    return sum;
}

/* The node in all tiles of the pair; `after`: bytes live when it has run. */
static void add_node(ot_trial *tr, const ot_node_facts *f, pair *p, double after)
{
    const ot_node_cut *cut[OT_DIMS_MAX];
    for (uint32_t d = 0; d < tr->n_dims; d++) cut[d] = &tr->dim[d][p->c[d]].node;
    const double most = p->sums.ws;
    ot_sums_add_node(&p->sums, tr->s, tr->t, f, cut, pending_bytes(tr, p), after);
    if (p->sums.ws > most) p->most_at = f->pos;
}

static void set_pending(ot_trial *tr, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE || !tr->is_pending[v]) continue;
        tr->is_pending[v] = false;
        for (uint32_t j = 0; j < tr->n_pending; j++)
            if (tr->pending[j] == v) {
                tr->pending[j] = tr->pending[--tr->n_pending];
                tr->n_dequantized -= ot_value_is_dequantized(tr->s->g, v);
                break;
            }
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || tr->is_pending[v]) continue;
        if (!is_cut_along_any(tr, k)) continue;
        tr->pending[tr->n_pending++] = v;
        tr->n_dequantized += ot_value_is_dequantized(tr->s->g, v);
        tr->is_pending[v] = true;
        tr->pending_at[v] = tr->w->lo;
    }
}

/* Note which operands the node reads whole along which dims. */
static void note_whole(ot_trial *tr, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        unsigned bits = 0;
        for (uint32_t d = 0; d < tr->n_dims; d++) bits |= tr->w->in_axis[d][k] < 0 ? 1u << d : 0;
        if (bits == 0 || v == OT_NONE || !tr->s->act[v]) continue;
        if (tr->whole_in[v] == 0) tr->whole[tr->n_whole++] = v;
        tr->whole_in[v] |= (uint8_t)bits;
    }
}

/* Remember what operands that nodes behind this one read, too, held before it. */
static void note_held(ot_trial *tr, const ot_node *n, dim_count *x)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && tr->is_pending[n->in[k]]) {
            value_cut *c = touch(tr, x, n->in[k]);
            c->held = c->e.max;
        }
}

/* The node wants more of them than was known: where most was live, that has grown if the operand
 * was live there. (Another place may have grown beyond it; that is not known.) */
static void grow_held(const ot_trial *tr, const ot_node *n, pair *p)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || !tr->is_pending[v] || p->most_at > tr->pending_at[v]) continue;
        bool again = false; /* the same operand twice */
        for (uint32_t j = 0; j < k; j++) again = again || n->in[j] == v;
        if (again) continue;
        double before = (double)tr->s->bytes[v], now = before;
        for (uint32_t d = 0; d < tr->n_dims; d++) {
            const value_cut *c = ot_trial_cut(tr, &tr->dim[d][p->c[d]], v);
            before *= c->held;
            now *= c->e.max;
        }
        p->sums.ws += now - before;
    }
}

static bool visit_in(ot_trial *tr, const ot_node *n, uint32_t pos)
{
    bool alive = false;
    const int8_t *in_axis[OT_DIMS_MAX];
    for (uint32_t d = 0; d < tr->n_dims; d++) in_axis[d] = tr->w->in_axis[d];
    for (uint32_t k = 0; k < n->n_in; k++)
        tr->later[k] = n->in[k] != OT_NONE && (tr->is_pending[n->in[k]] || tr->whole_in[n->in[k]]);
    const ot_node_use use = {.pos = pos,
                             .lead = tr->w->lead_out,
                             .n_dims = tr->n_dims,
                             .in_axis = in_axis,
                             .later = tr->later};
    ot_node_facts f = ot_node_facts_of(tr->s, tr->t, &use, tr->bytes);
    note_whole(tr, n);
    for (uint32_t d = 0; d < tr->n_dims; d++) {
        if (tr->w->lead_axis[d] >= 0)
            tr->rule[d] = ot_window_rule_of(tr->s->g, n, tr->w->lead_out,
                                            (uint32_t)tr->w->lead_axis[d]);
        for (uint32_t c = 0; c < tr->n_counts[d]; c++) {
            dim_count *x = &tr->dim[d][c];
            if (x->dead) continue;
            note_held(tr, n, x);
            tr->work++;
            if (!node_windows(tr, n, d, x)) {
                x->dead = true;
                continue;
            }
            /* Tiles that nearly cover the whole axis, or recompute too much, lead nowhere. */
            bool forced = tr->o->force || tr->o->max_tensor > 0; /* into tiles that do not pay */
            double limit = forced ? tr->t->runtime->recompute_forced : tr->t->runtime->recompute;
            const ot_extents made = x->node.made;
            if (made.sum > limit || (made.max > 0.97 && made.sum > 1.9)) x->dead = true;
        }
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE || !ot_walk_escapes(tr->w, v)) continue;
        ot_totals_add_output(&tr->border, tr->s, tr->t, v, ot_walk_axis(tr->w, v, 0));
        tr->split_quant = tr->split_quant ||
                          (tr->t->runtime->int8_groups && ot_cost_torn(tr->s, tr->t, n, v));
    }
    for (uint32_t k = 0; k < tr->n_pairs; k++) {
        pair *p = &tr->pairs[k];
        for (uint32_t d = 0; d < tr->n_dims; d++) p->dead = p->dead || tr->dim[d][p->c[d]].dead;
        alive = alive || !p->dead;
        if (p->dead) continue;
        grow_held(tr, n, p);
        if (f.in_place) p->after = pending_bytes(tr, p);
    }
    if (!alive) return false;
    set_pending(tr, n);
    for (uint32_t k = 0; k < tr->n_pairs; k++) {
        if (tr->pairs[k].dead) continue;
        add_node(tr, &f, &tr->pairs[k], tr->pairs[k].after);
        tr->work += 1 + tr->n_pending / OT_PENDING_A_STEP;
    }
    tr->border.weights += (double)ot_cost_weights(tr->s, pos, in_axis, tr->n_dims);
    tr->in_time += tr->s->time[pos + 1] - tr->s->time[pos];
    tr->in_traffic += tr->s->traffic[pos + 1] - tr->s->traffic[pos];
    tr->border.chain = ++tr->n_in;
    return true;
}

void ot_trial_totals(const ot_trial *tr, const pair *p, ot_totals *x)
{
    const uint32_t last = tr->n_dims - 1;
    const ot_value *sink = &tr->s->g->values[tr->w->sink];
    *x = tr->border;
    for (uint32_t d = 0; d < tr->n_dims; d++) {
        x->tiles *= tr->dim[d][p->c[d]].n;
        x->halo = x->halo || tr->dim[d][p->c[d]].halo;
    }
    for (uint32_t j = 0; j < tr->n_pending; j++) {
        ot_extents e[OT_DIMS_MAX];
        int8_t axis[OT_DIMS_MAX];
        ot_trial_extents(tr, p, tr->pending[j], e);
        for (uint32_t d = 0; d < tr->n_dims; d++) axis[d] = ot_walk_axis(tr->w, tr->pending[j], d);
        ot_totals_add_input(x, tr->s, tr->t, tr->pending[j], axis, e);
    }
    ot_totals_finish(x, tr->t, &p->sums, sink, tr->axes[last], tr->dim[last][p->c[last]].tile);
}

/* There is a place for every value that the node may touch. */
static bool has_room(const ot_trial *tr, const ot_node *n)
{
    return tr->max_slots == tr->s->g->n_values ||
           (uint64_t)tr->n_slots + n->n_in + n->n_out <= tr->max_slots;
}

bool ot_trial_visit(ot_trial *tr, int st)
{
    uint32_t pos = tr->w->lo, tail = tr->s->tail[tr->w->lo];
    /* scores would be stored */
    if (tail != OT_NONE && tail <= tr->w->end && tr->w->state[tail] != st) return false;
    const ot_node *n = &tr->s->g->nodes[tr->s->node[pos]];
    if (!has_room(tr, n)) return false;
    if (st == OT_ST_IN) return visit_in(tr, n, pos);
    tr->outside_time += tr->s->time[pos + 1] - tr->s->time[pos];
    /* What the region needs and makes itself is not whole while this node runs. */
    int64_t live = tr->s->live[pos];
    for (uint32_t k = 0; k < tr->n_pending; k++)
        if (tr->s->act[tr->pending[k]] && tr->s->def[tr->pending[k]] != OT_NONE)
            live -= tr->s->held[tr->pending[k]];
    tr->outside_live = ot_max(tr->outside_live, live);
    if (st == OT_ST_PRE) {
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OT_NONE) tr->pre_bytes += (double)tr->s->bytes[n->out[k]];
    }
    return tr->w->n_pre_run <= 6;
}
