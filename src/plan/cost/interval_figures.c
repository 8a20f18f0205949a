/* Trial tilings: while a walk goes down the sequence, keep for every tile count of every dim the windows of three tiles
 * (first, middle, last) and from them the totals of the interval seen so far. One visit costs a handful of window
 * computations; nothing is computed again when the interval grows.
 *
 *   dim 0: counts 2 4 8 ...   \
 *                              pairs (c0, c1): time, working set, traffic
 *   dim 1: counts 2 4 8 ...   /
 *
 * The sum over all tiles is taken as first + last + (n - 2) x middle; ot_region_exact recomputes the chosen tiling tile by
 * tile.
 */
#include "interval_figures.h"

static bool alloc_dims(ot_trial *tr)
{
    const ot_graph *g = tr->s->g;
    ot_arena *a = tr->s->arena;
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++) {
        for (uint32_t c = 0; c < (d == 0 ? OT_COUNTS_MAX : COUNTS_2D); c++) {
            dim_count *x = &tr->dim[d][c];
            x->win = ot_alloc_n(a, g->n_values + 1u, sizeof *x->win);
            x->seen = OT_NEW_N(a, uint32_t, g->n_values + 1u);
            x->sum = OT_NEW_N(a, float, g->n_values + 1u);
            x->max = OT_NEW_N(a, float, g->n_values + 1u);
            if (!x->win || !x->seen || !x->sum || !x->max) return false;
        }
    }
    return true;
}

ot_trial *ot_trial_new(const ot_seq *s, const ot_target *t, const ot_plan_options *o)
{
    ot_trial *tr = OT_NEW(s->arena, ot_trial);
    if (!tr) return NULL;
    uint32_t max_in = 0;
    for (uint32_t k = 0; k < s->n; k++) max_in = max_in > s->g->nodes[s->node[k]].n_in ? max_in : s->g->nodes[s->node[k]].n_in;
    tr->s = s;
    tr->t = t;
    tr->o = o;
    tr->pairs = OT_NEW_N(s->arena, pair, OT_COUNTS_MAX * COUNTS_2D * COUNTS_2D);
    tr->is_pending = OT_NEW_N(s->arena, bool, s->g->n_values + 1u);
    tr->is_whole = OT_NEW_N(s->arena, bool, s->g->n_values + 1u);
    tr->scratch = OT_NEW_N(s->arena, ot_win, max_in + 1u);
    bool ok = tr->pairs && tr->is_pending && tr->is_whole && tr->scratch && alloc_dims(tr);
    return ok ? tr : NULL;
}

static void fill_count(dim_count *x, int64_t extent, int64_t tile)
{
    x->tile = tile;
    x->n = (uint32_t)ot_ceil_div(extent, tile);
    x->dead = false;
    x->halo = extent % tile != 0;
    x->at[0] = 0;
    x->at[1] = x->n / 2;
    x->at[2] = x->n - 1;
    x->weight[0] = 1;
    x->weight[2] = 1;
    x->weight[1] = x->n > 2 ? x->n - 2 : 0;
}

void ot_trial_start(ot_trial *tr, ot_walk *w, uint32_t out_index, const int8_t *axes, uint32_t n_dims)
{
    for (uint32_t k = 0; k < tr->n_pending; k++) tr->is_pending[tr->pending[k]] = false;
    for (uint32_t k = 0; k < tr->n_whole; k++) tr->is_whole[tr->whole[k]] = false;
    tr->n_pending = tr->n_whole = 0;
    tr->w = w;
    tr->epoch++;
    tr->out_index = out_index;
    tr->n_dims = n_dims;
    memcpy(tr->axes, axes, n_dims * sizeof *axes);
    tr->out_seconds = tr->out_kept = 0;
    tr->out_blocked = tr->out_bytes = tr->weights = tr->outside_time = tr->outside_traffic = tr->pre_bytes = tr->in_time =
        tr->in_traffic = 0;
    tr->n_outputs = tr->n_in = 0;
    tr->outside_live = 0;
    tr->w_fast = tr->w_mid = tr->w_slow = tr->w_pack = tr->w_ws = 0;
    tr->w_nodes = 0;
    tr->w_ok = true;
    for (uint32_t d = 0; d < OT_DIMS_MAX; d++) tr->w_unit[d] = 0;
    tr->outermost_out = true;
    tr->split_quant = false;
    const ot_value *sink = &tr->s->g->values[w->sink];
    for (uint32_t d = 0; d < n_dims; d++) {
        int64_t tiles[OT_COUNTS_MAX];
        int64_t extent = sink->dims[axes[d]];
        uint32_t limit = n_dims == 1 ? OT_COUNTS_MAX : n_dims == 2 ? COUNTS_2D : COUNTS_3D;
        if (n_dims == 3 && d == 0) { /* three dims are for what two cannot fit: one element of the outer axis */
            tiles[0] = 1;
            tr->n_counts[d] = 1;
        } else {
            tr->n_counts[d] = ot_candidate_tiles(extent, limit, n_dims > 1, tiles);
        }
        for (uint32_t c = 0; c < tr->n_counts[d]; c++) fill_count(&tr->dim[d][c], extent, tiles[c]);
    }
    tr->n_pairs = 0;
    for (uint32_t i = 0; i < tr->n_counts[0]; i++)
        for (uint32_t j = 0; j < (n_dims > 1 ? tr->n_counts[1] : 1u); j++)
            for (uint32_t k = 0; k < (n_dims > 2 ? tr->n_counts[2] : 1u); k++) tr->pairs[tr->n_pairs++] = (pair){.c = {i, j, k}};
}

/* Piece of value v (extent e on its cut axis) that tile k of count x owns. */
static ot_win piece_of(const dim_count *x, int64_t sink_extent, int64_t e, uint32_t k)
{
    int64_t b0 = ot_min(sink_extent, (int64_t)k * x->tile), b1 = ot_min(sink_extent, b0 + x->tile);
    /* Same rule as ot_tile_windows_get; extents are small enough for the product (checked on import). */
    ot_win w = {(int64_t)((__int128)b0 * e / sink_extent), (int64_t)((__int128)b1 * e / sink_extent)};
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

static void need_window(ot_trial *tr, dim_count *x, ot_id v, uint32_t sample, ot_win win)
{
    if (x->seen[v] != tr->epoch) {
        x->seen[v] = tr->epoch;
        for (uint32_t k = 0; k < SAMPLES; k++) x->win[v][k] = (ot_win){0, 0};
    }
    widen(&x->win[v][sample], win);
}

/* Relative extents of v after its windows changed. */
static void measure(const ot_trial *tr, dim_count *x, ot_id v, uint32_t d)
{
    int8_t axis = ot_walk_axis(tr->w, v, d);
    if (axis < 0 || x->seen[v] != tr->epoch) {
        x->sum[v] = (float)x->n;
        x->max[v] = 1;
        return;
    }
    double e = (double)tr->s->g->values[v].dims[axis], sum = 0, max = 0;
    for (uint32_t k = 0; k < SAMPLES; k++) {
        double r = (double)(x->win[v][k].hi - x->win[v][k].lo) / e;
        sum += r * x->weight[k];
        if (r > max) max = r;
    }
    x->sum[v] = (float)sum;
    x->max[v] = (float)max;
    if (sum > 1.0 + 1e-6) x->halo = true;
}

/* A later reader of v wants another window in this tile: one of the two has to be cut out of the other. */
static double crop_bytes(const ot_trial *tr, const dim_count *x, ot_id v, int8_t axis, uint32_t sample, ot_win win)
{
    if (!tr->s->act[v] || x->seen[v] != tr->epoch || win.lo >= win.hi) return 0;
    ot_win have = x->win[v][sample];
    if (have.lo >= have.hi || (have.lo == win.lo && have.hi == win.hi)) return 0;
    int64_t less = ot_min(have.hi - have.lo, win.hi - win.lo);
    double bytes = (double)tr->s->bytes[v] * (double)less / (double)tr->s->g->values[v].dims[axis] * x->weight[sample];
    return bytes * ot_cost_crop(tr->s, v, tr->t);
}

/* The same for a node that reduces its input along d: every tile takes its share. Every tile must have one. */
static bool sum_windows(ot_trial *tr, const ot_node *n, uint32_t d, dim_count *x, int64_t sink_extent)
{
    const ot_id v = n->in[0];
    const int8_t axis = tr->w->in_axis[d][0];
    const int64_t extent = tr->s->g->values[v].dims[axis];
    x->made_sum = 1;
    x->made_max = x->crop = 0;
    if ((double)x->tile * (double)extent < (double)sink_extent) return false;
    for (uint32_t k = 0; k < SAMPLES; k++) {
        ot_win share = piece_of(x, sink_extent, extent, x->at[k]);
        if (share.lo >= share.hi) return false;
        double part = (double)(share.hi - share.lo) / (double)extent;
        if (part > x->made_max) x->made_max = part;
        x->crop += crop_bytes(tr, x, v, axis, k, share);
        need_window(tr, x, v, k, share);
    }
    measure(tr, x, n->out[0], d);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != OT_NONE && (tr->s->act[n->in[i]] || i == 0)) measure(tr, x, n->in[i], d);
    return true;
}

/* Windows of one node for one count. */
static bool node_windows(ot_trial *tr, const ot_node *n, uint32_t d, dim_count *x)
{
    const ot_graph *g = tr->s->g;
    const ot_walk *w = tr->w;
    int8_t axis = w->lead_axis[d];
    int64_t sink_extent = g->values[w->sink].dims[w->sink_axis[d]];
    double made = 0, max = 0;
    ot_why why;
    if (axis == OT_AX_SUM) return sum_windows(tr, n, d, x, sink_extent);
    x->crop = 0;
    for (uint32_t k = 0; k < SAMPLES; k++) {
        ot_op_tile t = {.in = tr->scratch};
        for (uint32_t o = 0; o < n->n_out; o++) {
            ot_id v = n->out[o];
            if (v == OT_NONE) continue;
            if (x->seen[v] == tr->epoch) widen(&t.need, x->win[v][k]);
            int8_t va = ot_walk_axis(w, v, d);
            if (va >= 0 && ot_walk_escapes(w, v)) widen(&t.need, piece_of(x, sink_extent, g->values[v].dims[va], x->at[k]));
        }
        if (t.need.lo >= t.need.hi) continue;
        if (!ot_access_window(g, n, w->lead_out, (uint32_t)axis, &t, &why)) return false;
        double e = (double)g->values[n->out[w->lead_out]].dims[axis], r = (double)(t.made.hi - t.made.lo) / e;
        made += r * x->weight[k];
        if (r > max) max = r;
        for (uint32_t o = 0; o < n->n_out; o++) /* what is made is what is live */
            if (n->out[o] != OT_NONE && ot_walk_axis(w, n->out[o], d) >= 0) need_window(tr, x, n->out[o], k, t.made);
        for (uint32_t i = 0; i < n->n_in; i++) {
            ot_id v = n->in[i];
            if (v == OT_NONE || w->in_axis[d][i] < 0) continue;
            x->crop += crop_bytes(tr, x, v, w->in_axis[d][i], k, tr->scratch[i]);
            need_window(tr, x, v, k, tr->scratch[i]);
        }
    }
    for (uint32_t o = 0; o < n->n_out; o++)
        if (n->out[o] != OT_NONE) measure(tr, x, n->out[o], d);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != OT_NONE && (tr->s->act[n->in[i]] || w->in_axis[d][i] >= 0)) measure(tr, x, n->in[i], d);
    x->made_sum = made;
    x->made_max = max;
    if (made > 1.0 + 1e-6) x->halo = true;
    return true;
}

double ot_trial_tile_bytes(const ot_trial *tr, const pair *p, ot_id v)
{
    double b = (double)tr->s->bytes[v];
    for (uint32_t d = 0; d < tr->n_dims; d++) b *= tr->dim[d][p->c[d]].max[v];
    return b;
}

double ot_trial_sum_bytes(const ot_trial *tr, const pair *p, ot_id v)
{
    double b = (double)tr->s->bytes[v];
    for (uint32_t d = 0; d < tr->n_dims; d++) b *= tr->dim[d][p->c[d]].sum[v];
    return b;
}

double ot_trial_tiles(const ot_trial *tr, const pair *p)
{
    double n = 1;
    for (uint32_t d = 0; d < tr->n_dims; d++) n *= tr->dim[d][p->c[d]].n;
    return n;
}

static double pending_bytes(const ot_trial *tr, const pair *p)
{
    double sum = 0;
    for (uint32_t k = 0; k < tr->n_pending; k++) sum += ot_trial_tile_bytes(tr, p, tr->pending[k]);
    return sum;
}

/* Bytes of activations that every tile reads whole: a matrix product packs its second factor anew each time. */
static double whole_reads(const ot_trial *tr, const ot_node *n)
{
    double sum = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        bool whole = n->in[k] != OT_NONE && tr->s->act[n->in[k]];
        for (uint32_t d = 0; d < tr->n_dims && whole; d++) whole = tr->w->in_axis[d][k] < 0;
        if (whole) sum += (double)tr->s->bytes[n->in[k]];
    }
    return sum;
}

/* Time of the node in all tiles of the pair; working set while it runs. */
static void add_node(ot_trial *tr, const ot_node *n, uint32_t pos, pair *p, bool in_place)
{
    const ot_seq *s = tr->s;
    double factor = 1, tiles = ot_trial_tiles(tr, p);
    ot_share cut[OT_DIMS_MAX];
    for (uint32_t d = 0; d < tr->n_dims; d++) {
        const dim_count *x = &tr->dim[d][p->c[d]];
        factor *= x->made_sum;
        cut[d] = (ot_share){tr->w->lead_axis[d], x->made_sum, x->n};
    }
    double bytes = 0, outs = 0, after = pending_bytes(tr, p);
    double out_elems = 0, in_elems = 0;
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE) continue;
        bytes += ot_trial_sum_bytes(tr, p, v);
        outs += ot_trial_tile_bytes(tr, p, v);
        out_elems += (double)s->elems[v];
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || !s->act[v]) continue;
        bytes += ot_trial_sum_bytes(tr, p, v);
        in_elems += (double)s->elems[v];
    }
    double work = s->work[pos];
    for (uint32_t d = 0; d < tr->n_dims; d++) work *= tr->dim[d][p->c[d]].made_max;
    double ws = in_place ? after : after + outs + work;
    if (ws > p->ws) p->ws = ws;
    bool free_node = s->fused[pos] || ot_op_cost(n->op) == OT_COST_FREE;
    double compute = ot_cost_compute(s->g, n, tr->t, s->macs[pos], (int64_t)out_elems, (int64_t)in_elems);
    compute = ot_cost_compute_cut(s, pos, tr->t, compute, cut, tr->n_dims);
    double extra = s->extra[pos] * factor, crop = 0;
    for (uint32_t d = 0; d < tr->n_dims; d++) {
        const dim_count *x = &tr->dim[d][p->c[d]];
        double c = x->crop;
        for (uint32_t e = 0; e < tr->n_dims; e++) c *= e == d ? 1 : tr->dim[e][p->c[e]].made_sum;
        if (c > crop) crop = c;
    }
    extra += crop;
    if (free_node) {
        compute = ot_cost_free_compute(s, pos, tr->t, compute);
        if (s->tail[pos] == OT_NONE) bytes = 0;
    }
    double f = bytes / tr->t->bw_fast, m = bytes / (tr->t->mid_bytes ? tr->t->bw_mid : tr->t->bw_slow), l = bytes / tr->t->bw_slow;
    p->t_fast += ot_cost_both(s, pos, tr->t, compute, f) + extra / tr->t->bw_fast;
    p->t_mid += ot_cost_both(s, pos, tr->t, compute, m) + extra / (tr->t->mid_bytes ? tr->t->bw_mid : tr->t->bw_slow);
    p->t_slow += ot_cost_both(s, pos, tr->t, compute, l) + extra / tr->t->bw_slow;
    if (tr->t->is_cache && ot_op_cost(n->op) == OT_COST_GEMM && s->tail[pos] == OT_NONE) {
        double pack = ot_cost_pack(tr->t, whole_reads(tr, n), tiles);
        p->t_fast += pack;
        p->t_mid += pack;
        p->t_slow += pack;
    }
    if (!free_node) p->nodes += tiles;
}

/* The node whole, for tiles that all have one window size. Windows need a unit that divides every cut axis, and operators
 * that treat a window as they treat the whole. */
static void add_whole(ot_trial *tr, const ot_node *n, uint32_t pos)
{
    const ot_seq *s = tr->s;
    const ot_target *t = tr->t;
    ot_access_kind a = ot_op_access(n->op);
    tr->w_ok = tr->w_ok && a != OT_ACC_PAD && a != OT_ACC_SLICE && a != OT_ACC_SPLIT && a != OT_ACC_GATHER;
    double bytes = 0, live = 0, out_elems = 0, in_elems = 0;
    for (uint32_t k = 0; k < tr->n_pending; k++) live += (double)s->bytes[tr->pending[k]];
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE) continue;
        bytes += (double)s->bytes[v];
        out_elems += (double)s->elems[v];
        if (!s->fused[pos]) live += (double)s->bytes[v];
        for (uint32_t d = 0; d < tr->n_dims; d++) {
            int8_t axis = ot_walk_axis(tr->w, v, d);
            if (axis >= 0) tr->w_unit[d] = ot_gcd(tr->w_unit[d], s->g->values[v].dims[axis]);
        }
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || !s->act[v]) continue;
        bytes += (double)s->bytes[v];
        in_elems += (double)s->elems[v];
    }
    if (live + s->work[pos] > tr->w_ws) tr->w_ws = live + s->work[pos];
    bool free_node = s->fused[pos] || ot_op_cost(n->op) == OT_COST_FREE;
    double compute = free_node ? 0 : ot_cost_compute(s->g, n, t, s->macs[pos], (int64_t)out_elems, (int64_t)in_elems);
    if (free_node) bytes = 0;
    double mid = t->mid_bytes ? t->bw_mid : t->bw_slow;
    tr->w_fast += ot_cost_overlap(t, compute, bytes / t->bw_fast) + s->extra[pos] / t->bw_fast;
    tr->w_mid += ot_cost_overlap(t, compute, bytes / mid) + s->extra[pos] / mid;
    tr->w_slow += ot_cost_overlap(t, compute, bytes / t->bw_slow) + s->extra[pos] / t->bw_slow;
    if (t->is_cache && ot_op_cost(n->op) == OT_COST_GEMM) tr->w_pack += whole_reads(tr, n);
    if (!free_node) tr->w_nodes++;
}

static bool set_pending(ot_trial *tr, const ot_node *n)
{
    ot_arena *a = tr->s->arena;
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE || !tr->is_pending[v]) continue;
        tr->is_pending[v] = false;
        for (uint32_t j = 0; j < tr->n_pending; j++)
            if (tr->pending[j] == v) {
                tr->pending[j] = tr->pending[--tr->n_pending];
                break;
            }
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE || tr->is_pending[v]) continue;
        bool cut = false, whole = false;
        for (uint32_t d = 0; d < tr->n_dims; d++) (tr->w->in_axis[d][k] >= 0 ? (void)(cut = true) : (void)(whole = true));
        if (whole && tr->s->act[v] && !tr->is_whole[v]) {
            if (!OT_PUSH(a, tr->whole, tr->n_whole, tr->cap_whole, v)) return false;
            tr->is_whole[v] = true;
        }
        if (!cut) continue;
        if (!OT_PUSH(a, tr->pending, tr->n_pending, tr->cap_pending, v)) return false;
        tr->is_pending[v] = true;
    }
    return true;
}

/* Axes before the first cut one all have extent 1. */
static bool outermost(const ot_trial *tr, ot_id v)
{
    const ot_value *x = &tr->s->g->values[v];
    int8_t axis = ot_walk_axis(tr->w, v, 0);
    for (int8_t a = 0; a < axis; a++)
        if (x->dims[a] != 1) return false;
    return axis >= 0;
}

static bool runs_in_place(const ot_trial *tr, const ot_node *n, uint32_t pos)
{
    if (n->n_out == 0 || n->out[0] == OT_NONE) return false;
    if (tr->s->fused[pos]) return true;
    ot_access_kind a = ot_op_access(n->op);
    if (a != OT_ACC_POINTWISE && a != OT_ACC_RESHAPE && a != OT_ACC_SOFTMAX && n->op != OT_OP_BatchNormalization) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v != OT_NONE && tr->s->act[v] && !tr->is_pending[v] && tr->s->bytes[v] == tr->s->bytes[n->out[0]]) return true;
    }
    return false;
}

/* The runtime runs DequantizeLinear -> operator -> QuantizeLinear as one integer kernel. A boundary inside such a group
 * would leave float operators behind, with other results. */
static bool torn_apart(const ot_trial *tr, const ot_node *n, ot_id v)
{
    const ot_value *x = &tr->s->g->values[v];
    if (n->op == OT_OP_DequantizeLinear) return true;
    for (uint32_t k = 0; k < x->n_uses; k++) {
        const ot_node *u = &tr->s->g->nodes[x->uses[k]];
        if (u->op == OT_OP_QuantizeLinear && u->n_in > 0 && u->in[0] == v) return true;
        /* A pool outside would read a plain tensor instead of a blocked one and sum in another order. */
        bool average = u->op == OT_OP_GlobalAveragePool || u->op == OT_OP_AveragePool;
        if (average && tr->s->strict && tr->t->is_cache) return true;
    }
    return false;
}

static bool visit_in(ot_trial *tr, const ot_node *n, uint32_t pos)
{
    bool alive = false;
    for (uint32_t d = 0; d < tr->n_dims; d++) {
        for (uint32_t c = 0; c < tr->n_counts[d]; c++) {
            dim_count *x = &tr->dim[d][c];
            if (x->dead) continue;
            if (!node_windows(tr, n, d, x)) {
                x->dead = true;
                continue;
            }
            /* Tiles that nearly cover the whole axis, or recompute too much, lead nowhere. */
            double limit = tr->o->force ? 64.0 : tr->t->is_cache ? 5.0 : 16.0;
            if (x->made_sum > limit || (x->made_max > 0.97 && x->made_sum > 1.9)) x->dead = true;
        }
    }
    bool in_place = runs_in_place(tr, n, pos);
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE || !ot_walk_escapes(tr->w, v)) continue;
        double bytes = (double)tr->s->bytes[v];
        tr->out_bytes += bytes;
        tr->out_seconds += bytes / ot_cost_bw(tr->t, bytes);
        if (!tr->s->g->values[v].is_output) tr->out_kept += bytes;
        if (ot_cost_blocked(tr->s, v, tr->t)) tr->out_blocked += (double)tr->s->bytes[v];
        tr->n_outputs++;
        tr->outermost_out = tr->outermost_out && outermost(tr, v);
        tr->split_quant = tr->split_quant || (!tr->t->engine && torn_apart(tr, n, v));
    }
    /* A node that overwrites its input needs the larger of what is live before and after, not both. */
    for (uint32_t k = 0; k < tr->n_pairs; k++) {
        pair *p = &tr->pairs[k];
        for (uint32_t d = 0; d < tr->n_dims; d++) p->dead = p->dead || tr->dim[d][p->c[d]].dead;
        alive = alive || !p->dead;
        if (!p->dead && in_place) {
            double b = pending_bytes(tr, p);
            if (b > p->ws) p->ws = b;
        }
    }
    if (!alive) return false;
    if (!set_pending(tr, n)) return false;
    for (uint32_t k = 0; k < tr->n_pairs; k++)
        if (!tr->pairs[k].dead) add_node(tr, n, pos, &tr->pairs[k], in_place);
    add_whole(tr, n, pos);
    tr->weights += (double)ot_cost_weights(tr->s, pos);
    tr->in_time += tr->s->time[pos + 1] - tr->s->time[pos];
    tr->in_traffic += tr->s->traffic[pos + 1] - tr->s->traffic[pos];
    tr->n_in++;
    return true;
}

bool ot_trial_visit(ot_trial *tr, int st)
{
    uint32_t pos = tr->w->lo, tail = tr->s->tail[tr->w->lo];
    if (tail != OT_NONE && tail <= tr->w->end && tr->w->state[tail] != st) return false; /* scores would be stored */
    const ot_node *n = &tr->s->g->nodes[tr->s->node[pos]];
    if (st == OT_ST_IN) return visit_in(tr, n, pos);
    tr->outside_time += tr->s->time[pos + 1] - tr->s->time[pos];
    tr->outside_traffic += tr->s->traffic[pos + 1] - tr->s->traffic[pos];
    /* What the region needs and makes itself is not whole while this node runs. */
    int64_t live = tr->s->live[pos];
    for (uint32_t k = 0; k < tr->n_pending; k++)
        if (tr->s->act[tr->pending[k]] && tr->s->def[tr->pending[k]] != OT_NONE) live -= tr->s->held[tr->pending[k]];
    tr->outside_live = ot_max(tr->outside_live, live);
    if (st == OT_ST_PRE) {
        for (uint32_t k = 0; k < n->n_out; k++)
            if (n->out[k] != OT_NONE) tr->pre_bytes += (double)tr->s->bytes[n->out[k]];
    }
    return tr->w->n_pre_run <= 6;
}
