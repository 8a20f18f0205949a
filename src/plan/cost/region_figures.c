/* Exact figures of one region: windows of every tile, summed, in the form that it will be written in.
 *
 * Windows of different dims are independent, so the sum over a grid of tiles is the product of sums per dim. The working set
 * uses the largest window of every value: an upper bound that holds for every tile.
 */
#include "cost.h"

typedef struct ratios {
    double *made_sum; /* [n_nodes] over all tiles, relative to the axis */
    double *made_max; /* [n_nodes] */
    double *val_sum;  /* [n_values] */
    double *val_max;  /* [n_values] */
    double *crop;     /* [n_nodes] bytes cut out of the node's inputs over all tiles of this dim */
} ratios;

static ot_status new_ratios(const ot_region *r, ot_arena *a, ratios *x, ot_diag *d)
{
    x->made_sum = OT_NEW_N(a, double, r->n_nodes + 1u);
    x->made_max = OT_NEW_N(a, double, r->n_nodes + 1u);
    x->val_sum = OT_NEW_N(a, double, r->n_values + 1u);
    x->val_max = OT_NEW_N(a, double, r->n_values + 1u);
    x->crop = OT_NEW_N(a, double, r->n_nodes + 1u);
    return x->crop && x->made_sum && x->made_max && x->val_sum && x->val_max ? OT_OK : ot_fail_nomem(d);
}

/* What node i reads of its inputs is less than what the tile holds. */
static double crop_bytes(const ot_seq *s, const ot_target *t, const ot_region *r, uint32_t d, uint32_t i, const ot_tile_windows *w)
{
    const ot_graph *g = s->g;
    const ot_rnode *x = &r->nodes[i];
    double sum = 0;
    if (x->lead_axis[d] == OT_AX_WHOLE || !w->ops[i].in || r->form == OT_FORM_WINDOW) return 0;
    for (uint32_t k = 0; k < g->nodes[x->node].n_in; k++) {
        uint32_t v = x->in[k];
        if (v == OT_NONE || x->in_axis[d][k] < 0 || r->values[v].node == OT_NONE) continue;
        ot_win in = w->ops[i].in[k], made = w->made[v];
        if (in.lo >= in.hi || (in.lo == made.lo && in.hi == made.hi)) continue;
        double part = (double)(in.hi - in.lo) / (double)g->values[r->values[v].value].dims[r->values[v].axis[d]];
        sum += (double)r->values[v].bytes * part * ot_cost_crop(s, r->values[v].value, t);
    }
    return sum;
}

/* Sums of one dim; false when some tile cannot be made. */
static bool sum_dim(const ot_seq *s, const ot_target *t, const ot_region *r, uint32_t d, ot_tile_windows *w, ratios *x)
{
    const ot_graph *g = s->g;
    ot_why why;
    for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
        bool ok = r->form == OT_FORM_WINDOW ? ot_tile_windows_clamped(g, r, d, k, w, &why)
                                            : ot_tile_windows_get(g, r, d, k, w, &why);
        if (!ok) return false;
        for (uint32_t v = 0; v < r->n_values; v++) {
            double part = 1;
            if (r->values[v].axis[d] >= 0) {
                double e = (double)g->values[r->values[v].value].dims[r->values[v].axis[d]];
                part = (double)(w->made[v].hi - w->made[v].lo) / e;
            }
            x->val_sum[v] += part;
            if (part > x->val_max[v]) x->val_max[v] = part;
        }
        for (uint32_t i = 0; i < r->n_nodes; i++) {
            double part = ot_tile_share(g, r, d, i, w);
            x->made_sum[i] += part;
            x->crop[i] += crop_bytes(s, t, r, d, i, w);
            if (part > x->made_max[i]) x->made_max[i] = part;
        }
    }
    return true;
}

static double prod_sum(const ratios *x, uint32_t n_dims, uint32_t v, bool node)
{
    double p = 1;
    for (uint32_t d = 0; d < n_dims; d++) p *= node ? x[d].made_sum[v] : x[d].val_sum[v];
    return p;
}

static double prod_max(const ratios *x, uint32_t n_dims, uint32_t v)
{
    double p = 1;
    for (uint32_t d = 0; d < n_dims; d++) p *= x[d].val_max[v];
    return p;
}

/* Most bytes live inside a tile: forward over the nodes, values die after their last reader in the region. */
static int64_t working_set(const ot_seq *s, const ot_region *r, const ratios *x, ot_arena *a, bool count_inputs)
{
    uint32_t *last = OT_NEW_N(a, uint32_t, r->n_values + 1u), *first = OT_NEW_N(a, uint32_t, r->n_values + 1u);
    if (!last || !first) return 0;
    for (uint32_t v = 0; v < r->n_values; v++) last[v] = OT_NONE, first[v] = OT_NONE;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &s->g->nodes[r->nodes[i].node];
        for (uint32_t k = 0; k < n->n_in; k++) {
            uint32_t v = r->nodes[i].in[k];
            if (v == OT_NONE) continue;
            if (first[v] == OT_NONE) first[v] = i;
            last[v] = i;
        }
        for (uint32_t k = 0; k < n->n_out; k++) {
            uint32_t v = r->nodes[i].out[k];
            if (v == OT_NONE) continue;
            first[v] = i;
            last[v] = i;
        }
    }
    double live = 0, peak = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &s->g->nodes[r->nodes[i].node];
        double dying = 0, born = 0;
        for (uint32_t v = 0; v < r->n_values; v++) {
            bool whole = true;
            for (uint32_t d = 0; d < r->n_dims; d++) whole = whole && r->values[v].axis[d] < 0;
            if (v < r->n_inputs && (whole || !count_inputs)) continue;
            double b = (double)r->values[v].bytes * prod_max(x, r->n_dims, v);
            if (first[v] == i) born += b;
            if (last[v] == i) dying += b;
        }
        bool in_place = s->fused[s->pos[r->nodes[i].node]] || ot_op_access(n->op) == OT_ACC_POINTWISE ||
                        ot_op_access(n->op) == OT_ACC_RESHAPE || ot_op_access(n->op) == OT_ACC_SOFTMAX;
        double during = live + born, work = s->work[s->pos[r->nodes[i].node]];
        for (uint32_t d = 0; d < r->n_dims; d++) work *= x[d].made_max[i];
        during += work;
        if (in_place && n->n_out == 1 && r->nodes[i].out[0] != OT_NONE) {
            double out = (double)r->values[r->nodes[i].out[0]].bytes * prod_max(x, r->n_dims, r->nodes[i].out[0]);
            double other = dying;
            if (other >= out * 0.999) during -= out;
        }
        if (during > peak) peak = during;
        live += born - dying;
    }
    return (int64_t)peak;
}

/* Activations that node i reads whole in every tile. */
static double whole_reads(const ot_seq *s, const ot_region *r, uint32_t i)
{
    const ot_node *n = &s->g->nodes[r->nodes[i].node];
    double sum = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        uint32_t v = r->nodes[i].in[k];
        bool whole = v != OT_NONE && s->act[r->values[v].value];
        for (uint32_t d = 0; d < r->n_dims && whole; d++) whole = r->values[v].axis[d] < 0;
        if (whole) sum += (double)r->values[v].bytes;
    }
    return sum;
}

/* requires a built region with its form set. Fills predictions; time_tiled < 0 when the form cannot be made, or its tiles
 * do not fit a scratchpad. */
ot_status ot_region_exact(const ot_seq *s, const ot_target *t, ot_arena *a, unsigned how, ot_region *r)
{
    const ot_graph *g = s->g;
    ot_tile_windows w;
    ratios x[OT_DIMS_MAX];
    OT_TRY(ot_tile_windows_new(g, r, a, &w));
    r->time_tiled = -1;
    double tiles = 1;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        OT_TRY(new_ratios(r, a, &x[d], g->model->diag));
        if (!sum_dim(s, t, r, d, &w, &x[d])) return OT_OK;
        tiles *= r->dims[d].n_tiles;
    }
    ot_totals tot = {.tiles = tiles, .n_dims = r->n_dims, .chain = r->n_nodes, .how = how, .outermost = r->n_dims == 1};
    for (uint32_t d = 0; d < r->n_dims; d++) tot.halo |= r->dims[d].extent % r->dims[d].tile != 0;
    double macs = 0, macs_tiled = 0, untiled = 0, traffic_untiled = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        uint32_t pos = s->pos[r->nodes[i].node];
        const ot_node *n = &g->nodes[r->nodes[i].node];
        double f = prod_sum(x, r->n_dims, i, true), bytes = 0, out_elems = 0, in_elems = 0;
        untiled += s->time[pos + 1] - s->time[pos];
        traffic_untiled += s->traffic[pos + 1] - s->traffic[pos];
        macs += s->macs[pos];
        macs_tiled += s->macs[pos] * f;
        tot.halo |= f > 1 + 1e-6;
        r->weight_bytes += ot_cost_weights(s, pos);
        bool free_node = s->fused[pos] || ot_op_cost(n->op) == OT_COST_FREE;
        for (uint32_t k = 0; k < n->n_in + n->n_out; k++) {
            uint32_t v = k < n->n_in ? r->nodes[i].in[k] : r->nodes[i].out[k - n->n_in];
            ot_id id = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
            if (v != OT_NONE) bytes += (double)r->values[v].bytes * prod_sum(x, r->n_dims, v, false);
            if (id != OT_NONE && k >= n->n_in) out_elems += (double)s->elems[id];
            if (id != OT_NONE && k < n->n_in && s->act[id]) in_elems += (double)s->elems[id];
        }
        ot_share cut[OT_DIMS_MAX];
        for (uint32_t d = 0; d < r->n_dims; d++)
            cut[d] = (ot_share){r->nodes[i].lead_axis[d], x[d].made_sum[i], r->dims[d].n_tiles};
        double compute = ot_cost_compute(g, n, t, s->macs[pos], (int64_t)out_elems, (int64_t)in_elems);
        compute = ot_cost_compute_cut(s, pos, t, compute, cut, r->n_dims);
        double extra = s->extra[pos] * f, crop = 0;
        for (uint32_t d = 0; d < r->n_dims; d++) {
            double c = x[d].crop[i];
            for (uint32_t e = 0; e < r->n_dims; e++) c *= e == d ? 1 : x[e].made_sum[i];
            if (c > crop) crop = c;
        }
        extra += crop;
        if (free_node) {
            compute = ot_cost_free_compute(s, pos, t, compute);
            if (s->tail[pos] == OT_NONE) bytes = 0;
        }
        double bw[3] = {t->bw_fast, t->mid_bytes ? t->bw_mid : t->bw_slow, t->bw_slow};
        double *sum[3] = {&tot.t_fast, &tot.t_mid, &tot.t_slow};
        bool packs = t->is_cache && ot_op_cost(n->op) == OT_COST_GEMM && s->tail[pos] == OT_NONE;
        double pack = packs ? ot_cost_pack(t, whole_reads(s, r, i), tiles) : 0;
        for (int k = 0; k < 3; k++) *sum[k] += ot_cost_both(s, pos, t, compute, bytes / bw[k]) + extra / bw[k] + pack;
        if (!free_node) tot.nodes += tiles;
    }
    const ot_dim *inner = &r->dims[r->n_dims - 1];
    const ot_rvalue *sink = &r->values[inner->sink];
    int32_t rank = g->values[sink->value].rank;
    if (rank > 2 && sink->axis[r->n_dims - 1] == rank - 1) tot.row = inner->tile;
    int64_t outs = 0;
    for (uint32_t v = 0; v < r->n_values; v++) {
        const ot_rvalue *rv = &r->values[v];
        const ot_value *val = &g->values[rv->value];
        bool cut = false;
        for (uint32_t d = 0; d < r->n_dims; d++) cut |= rv->axis[d] >= 0;
        if (v < r->n_inputs && cut) {
            double b = (double)rv->bytes * prod_sum(x, r->n_dims, v, false);
            tot.in_bytes += b;
            for (uint32_t d = 0; d < r->n_dims; d++)
                if (val->rank > 1 && rv->axis[d] == val->rank - 1 && s->elems[rv->value] > 0)
                    tot.runs += b / ((double)val->dims[val->rank - 1] * x[d].val_max[v] * (double)rv->bytes /
                                     (double)s->elems[rv->value]);
            if ((double)rv->bytes > (double)t->fast_bytes) {
                tot.in_slow += b;
                tot.in_seconds += b / ot_cost_bw(t, (double)rv->bytes);
            }
            if (ot_cost_blocked(s, rv->value, t)) tot.border_tile += 2 * b, tot.border_whole += 2 * (double)rv->bytes;
            tot.n_inputs++;
        }
        if (v < r->n_inputs || !rv->is_output) continue;
        outs += rv->bytes;
        tot.out_seconds += (double)rv->bytes / ot_cost_bw(t, (double)rv->bytes);
        if (!val->is_output) tot.out_kept += (double)rv->bytes;
        if (ot_cost_blocked(s, rv->value, t)) tot.border_tile += 2 * (double)rv->bytes, tot.border_whole += 2 * (double)rv->bytes;
        tot.n_outputs++;
        for (int8_t k = 0; k < rv->axis[0]; k++) tot.outermost = tot.outermost && val->dims[k] == 1;
    }
    tot.out_bytes = (double)outs;
    tot.weights = (double)r->weight_bytes;
    /* A Scan reads slices of the outer tensors as they lie in a cached memory; a scratchpad needs them brought in. */
    tot.ws = working_set(s, r, x, a, r->form != OT_FORM_SCAN || !t->is_cache) + ot_double_buffers(t, &tot);
    int64_t stitch;
    r->working_set = tot.ws;
    r->weights_stay = ot_weights_stay(t, &tot);
    r->overlap = ot_overlaps(t, &tot);
    if (!t->is_cache && tot.ws > t->fast_bytes) return OT_OK; /* the search estimates; a scratchpad is a hard limit */
    ot_form_cost(t, &tot, r->form, &r->time_tiled, &r->traffic, &stitch);
    r->time_untiled = untiled;
    r->traffic_untiled = traffic_untiled;
    r->benefit = untiled - r->time_tiled;
    r->mac_ratio = macs > 0 ? macs_tiled / macs : 1;
    r->peak = s->cut[r->first] + stitch + tot.ws;
    return OT_OK;
}
