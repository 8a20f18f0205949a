/* Exact figures of one built region: windows of every tile, through the accumulator
 * (tile_totals.h), in the form that it will be written in.
 *
 * The working set uses the largest window of every value: an upper bound that holds for every
 * tile. A tile takes a window of a region input right before its first reader.
 */
#include "region_figures.h"

#include <math.h>

#include "tiling/stream.h"

typedef struct figures {
    const ot_seq *s;
    const ot_target *t;
    const ot_region *r;
    ot_extents *ext[OT_DIMS_MAX];  /* [n_values] per dim: of what a tile holds */
    ot_node_cut *cut[OT_DIMS_MAX]; /* [n_nodes] per dim */
    ot_wanted *wanted;             /* [n_values] in the tile at hand */
    /* [n_values] first and last node of the region that reads the value; OT_NONE: none */
    uint32_t *first, *last;
    bool *later;             /* [most operands] scratch */
    double *bytes;           /* [most operands and outputs] scratch */
    const ot_stream *stream; /* its steps, in form stream */
    /* [n_values] form stream: along dims[0], of the rows that are carried from step to step */
    ot_extents *kept;
} figures;

static bool fill_readers(figures *x, ot_arena *a)
{
    const ot_region *r = x->r;
    x->first = OT_NEW_N(a, uint32_t, r->n_values + 1u);
    x->last = OT_NEW_N(a, uint32_t, r->n_values + 1u);
    if (!x->first || !x->last) return false;
    for (uint32_t v = 0; v < r->n_values; v++) x->first[v] = x->last[v] = OT_NONE;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        for (uint32_t k = 0; k < x->s->g->nodes[r->nodes[i].node].n_in; k++) {
            uint32_t v = r->nodes[i].in[k];
            if (v == OT_NONE) continue;
            if (x->first[v] == OT_NONE) x->first[v] = i;
            x->last[v] = i;
        }
    return true;
}

static ot_status new_figures(const ot_seq *s, const ot_target *t, const ot_region *r, ot_arena *a,
                             figures *x)
{
    const ot_graph *g = s->g;
    size_t ins = 0, outs = 0, most = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &g->nodes[r->nodes[i].node];
        ins += n->n_in;
        outs += n->n_out;
        if (most < (size_t)n->n_in + n->n_out) most = (size_t)n->n_in + n->n_out;
    }
    *x = (figures){.s = s, .t = t, .r = r};
    x->wanted = OT_NEW_N(a, ot_wanted, r->n_values + 1u);
    x->later = OT_NEW_N(a, bool, most + 1);
    x->bytes = OT_NEW_N(a, double, most + 1);
    bool ok = x->wanted && x->later && x->bytes && fill_readers(x, a);
    for (uint32_t d = 0; d < r->n_dims && ok; d++) {
        double *read = OT_NEW_N(a, double, ins + 1);
        ot_extents *out = OT_NEW_N(a, ot_extents, outs + 1);
        x->ext[d] = OT_NEW_N(a, ot_extents, r->n_values + 1u);
        x->cut[d] = OT_NEW_N(a, ot_node_cut, r->n_nodes + 1u);
        ok = read && out && x->ext[d] && x->cut[d];
        for (uint32_t i = 0; i < r->n_nodes && ok; i++) {
            const ot_rnode *rn = &r->nodes[i];
            const ot_node *n = &g->nodes[rn->node];
            x->cut[d][i] = (ot_node_cut){.read = read, .out = out};
            ot_node_cut_start(&x->cut[d][i], n, rn->lead_axis[d], rn->in_axis[d],
                              r->dims[d].n_tiles);
            read += n->n_in;
            out += n->n_out;
        }
    }
    return ok ? OT_OK : ot_fail_nomem(g->model->diag);
}

/* Take in the tile with windows w along d. */
static void add_tile(figures *x, uint32_t d, const ot_tile_windows *w)
{
    const ot_region *r = x->r;
    const ot_graph *g = x->s->g;
    const bool lines = r->rolling && d == 0; /* readers take what they want where it lies */
    memset(x->wanted, 0, r->n_values * sizeof *x->wanted);
    for (uint32_t i = r->n_nodes; i-- > 0;) {
        const ot_rnode *rn = &r->nodes[i];
        const ot_node *n = &g->nodes[rn->node];
        /* not cut, or not used in this tile */
        if (!w->ops[i].in || w->ops[i].need.lo >= w->ops[i].need.hi) continue;
        ot_node_cut_add(&x->cut[d][i], n, rn->in_axis[d], &w->ops[i], 1);
        for (uint32_t k = 0; k < n->n_in; k++) {
            uint32_t v = rn->in[k];
            if (v == OT_NONE || r->values[v].axis[d] < 0) continue;
            ot_win all = {0, g->values[n->in[k]].dims[r->values[v].axis[d]]};
            if (!lines)
                x->ext[d][v].crop += (double)ot_wanted_add(
                    &x->wanted[v], rn->in_axis[d][k] < 0 ? all : w->ops[i].in[k]);
        }
    }
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (r->values[v].axis[d] < 0) continue;
        if (!lines) x->ext[d][v].crop += (double)ot_wanted_made(&x->wanted[v], w->made[v]);
        ot_extents_add(&x->ext[d][v], ot_win_len(lines ? ot_stream_new(w, v) : w->made[v]), 1);
    }
}

/* Take in all tiles of dimension d; false when some tile cannot be made. */
static bool add_tiles(figures *x, uint32_t d, ot_tile_windows *w)
{
    const ot_region *r = x->r;
    const ot_graph *g = x->s->g;
    ot_why why;
    for (uint32_t k = 0; k < r->dims[d].n_tiles; k++) {
        if (!ot_tile_windows_get(g, r, d, k, w, &why)) return false;
        add_tile(x, d, w);
    }
    return true;
}

static void add_steps(figures *x)
{
    for (uint32_t k = 0; k < x->stream->n; k++) {
        const ot_tile_windows *w = &x->stream->steps[k];
        add_tile(x, 0, w);
        for (uint32_t v = 0; v < x->r->n_values; v++) {
            if (x->r->values[v].axis[0] < 0) continue;
            ot_extents_add(&x->kept[v], ot_win_len(w->kept[v]), 1);
            if (ot_win_empty(w->kept[v])) continue;
            /* put together, or put where the next step finds them: a copy */
            x->ext[0][v].crop += (double)ot_win_len(x->r->rolling ? w->kept[v] : w->made[v]);
        }
    }
}

/* Extents along d; false when some tile cannot be made. */
static bool sum_dim(figures *x, uint32_t d, ot_tile_windows *w)
{
    const ot_region *r = x->r;
    const ot_graph *g = x->s->g;
    const bool steps = x->stream && d == 0;
    if (steps)
        add_steps(x);
    else if (!add_tiles(x, d, w))
        return false;
    for (uint32_t v = 0; v < r->n_values; v++) {
        int8_t axis = r->values[v].axis[d];
        if (steps && axis >= 0)
            ot_extents_finish(&x->kept[v], g->values[r->values[v].value].dims[axis]);
        if (axis < 0)
            x->ext[d][v] = ot_extents_whole(r->dims[d].n_tiles);
        else
            ot_extents_finish(&x->ext[d][v], g->values[r->values[v].value].dims[axis]);
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_rnode *rn = &r->nodes[i];
        const ot_node *n = &g->nodes[rn->node];
        ot_node_cut_finish(&x->cut[d][i], g, n, rn->lead_out[d], rn->in_axis[d]);
        for (uint32_t k = 0; k < n->n_out; k++)
            if (rn->out[k] != OT_NONE) x->cut[d][i].out[k] = x->ext[d][rn->out[k]];
    }
    return true;
}

static bool is_cut(const ot_region *r, uint32_t v)
{
    for (uint32_t d = 0; d < r->n_dims; d++)
        if (r->values[v].axis[d] >= 0) return true;
    return false;
}

/* Bytes of region value v in the largest tile. */
static double tile_bytes(const figures *x, uint32_t v)
{
    double b = (double)x->r->values[v].bytes;
    for (uint32_t d = 0; d < x->r->n_dims; d++) b *= x->ext[d][v].max;
    return b;
}

/* Of what a tile holds, and of outputs; of windows gathered ahead, whose sum they are. */
static int64_t largest_tensor(const figures *x)
{
    const ot_region *r = x->r;
    double most = 0;
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (v < r->n_inputs && !is_cut(r, v)) continue;
        double b = r->values[v].is_output ? (double)r->values[v].bytes : tile_bytes(x, v),
               gathered = (double)r->values[v].bytes;
        for (uint32_t d = 0; d < r->n_dims; d++) gathered *= x->ext[d][v].sum;
        if (r->form == OT_FORM_PRESCAN && v < r->n_inputs) b = fmax(b, gathered);
        most = fmax(most, b);
    }
    return (int64_t)(most + 0.5);
}

/* A Scan reads slices of the outer tensors as they lie in a cached memory; a scratchpad needs
 * them brought in. */
static bool holds(const figures *x, uint32_t v)
{
    if (v >= x->r->n_inputs) return true;
    return is_cut(x->r, v) && ot_runtime_brings_inputs(x->t->runtime, x->r->form);
}

/* Add node i, the nodes behind it are in. live: bytes live in the largest tile behind it, then
 * before it. */
static void add_node(figures *x, uint32_t i, ot_node_sums *sums, double *live)
{
    const ot_region *r = x->r;
    const ot_rnode *rn = &r->nodes[i];
    const ot_node *n = &x->s->g->nodes[rn->node];
    const ot_node_cut *cut[OT_DIMS_MAX];
    const int8_t *in_axis[OT_DIMS_MAX];
    const double after = *live;
    for (uint32_t d = 0; d < r->n_dims; d++) cut[d] = &x->cut[d][i], in_axis[d] = rn->in_axis[d];
    for (uint32_t k = 0; k < n->n_out; k++) {
        uint32_t v = rn->out[k];
        if (v != OT_NONE && x->last[v] != OT_NONE) *live -= tile_bytes(x, v);
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        uint32_t v = rn->in[k];
        x->later[k] = v != OT_NONE && x->last[v] != i;
        bool counted = v == OT_NONE || x->last[v] != i || !holds(x, v);
        for (uint32_t j = 0; j < k; j++) counted |= rn->in[j] == v;
        if (!counted) *live += tile_bytes(x, v);
    }
    const ot_node_use use = {.pos = x->s->pos[rn->node],
                             .lead = rn->lead_out[0],
                             .n_dims = r->n_dims,
                             .in_axis = in_axis,
                             .later = x->later};
    ot_node_facts f = ot_node_facts_of(x->s, x->t, &use, x->bytes);
    ot_sums_add_node(sums, x->s, x->t, &f, cut, *live, after);
    for (uint32_t v = 0; v < r->n_inputs; v++)
        if (x->first[v] == i && holds(x, v)) *live -= tile_bytes(x, v);
}

/* Some elements are computed in several tiles, or tiles are uneven. */
static bool has_halo(const figures *x)
{
    const ot_region *r = x->r;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        if (r->dims[d].extent % r->dims[d].tile != 0) return true;
        for (uint32_t i = 0; i < r->n_nodes; i++)
            if (r->nodes[i].lead_axis[d] >= 0 && ot_extents_overlap(&x->cut[d][i].made))
                return true;
    }
    return false;
}

/* Bytes that are carried from step to step. */
static double carried_bytes(const figures *x)
{
    double sum = 0;
    for (uint32_t v = 0; x->stream && v < x->r->n_values; v++) {
        double bytes = (double)x->r->values[v].bytes * x->kept[v].max;
        for (uint32_t d = 1; d < x->r->n_dims; d++) bytes *= x->ext[d][v].max;
        sum += bytes;
    }
    return sum;
}

/* stream: the region's steps, in that form; else NULL. */
static ot_status totals(const ot_seq *s, const ot_target *t, ot_arena *a, unsigned how,
                        const ot_region *r, const ot_stream *stream, ot_region_figures *out)
{
    const ot_graph *g = s->g;
    ot_totals *tot = &out->totals;
    ot_node_sums *sums = &out->sums;
    ot_tile_windows w;
    figures x;
    OT_TRY(ot_tile_windows_new(g, r, a, &w));
    OT_TRY(new_figures(s, t, r, a, &x));
    x.stream = stream;
    x.kept = OT_NEW_N(a, ot_extents, r->n_values + 1u);
    if (!x.kept) return ot_fail_nomem(g->model->diag);
    for (uint32_t d = 0; d < r->n_dims; d++) {
        if (!sum_dim(&x, d, &w)) return OT_OK;
        tot->tiles *= r->dims[d].n_tiles;
    }
    double live = tot->carried = carried_bytes(&x);
    for (uint32_t i = r->n_nodes; i-- > 0;) add_node(&x, i, sums, &live);
    for (uint32_t i = 0; i < r->n_nodes; i++)
        tot->weights += (double)ot_cost_weights(s, s->pos[r->nodes[i].node], r->nodes[i].in_axis,
                                                r->n_dims);
    for (uint32_t v = 0; v < r->n_values; v++) {
        const ot_rvalue *rv = &r->values[v];
        ot_extents e[OT_DIMS_MAX];
        for (uint32_t d = 0; d < r->n_dims; d++) e[d] = x.ext[d][v];
        if (v < r->n_inputs && is_cut(r, v)) ot_totals_add_input(tot, s, t, rv->value, rv->axis, e);
        if (v >= r->n_inputs && rv->is_output)
            ot_totals_add_output(tot, s, t, rv->value, rv->axis[0]);
    }
    const ot_dim *inner = &r->dims[r->n_dims - 1];
    const ot_rvalue *sink = &r->values[inner->sink];
    tot->chain = r->n_nodes;
    tot->how = how;
    tot->halo = has_halo(&x);
    ot_totals_finish(tot, t, sums, &g->values[sink->value], sink->axis[r->n_dims - 1], inner->tile);
    tot->largest = largest_tensor(&x);
    out->possible = true;
    return OT_OK;
}

ot_status ot_region_totals(const ot_seq *s, const ot_target *t, unsigned how, const ot_region *r,
                           ot_region_figures *out)
{
    const bool streams = r->form == OT_FORM_STREAM;
    ot_stream steps; /* windows of all of them at once */
    ot_why why;
    bool possible = true;
    *out = (ot_region_figures){0};
    ot_totals_start(&out->totals, r->n_dims);
    ot_arena *scratch = ot_arena_new();
    if (!scratch) return ot_fail_nomem(s->g->model->diag);
    ot_status st = OT_OK;
    if (streams) st = ot_stream_steps(s->g, r, scratch, &steps, &possible, &why);
    if (st == OT_OK && possible) st = totals(s, t, scratch, how, r, streams ? &steps : NULL, out);
    ot_arena_free(scratch);
    return st;
}

/* Bytes of region inputs that nodes of its own interval make before it runs: they wait beside
 * what is live when the interval starts. */
static int64_t made_before(const ot_seq *s, const ot_region *r)
{
    int64_t bytes = 0;
    for (uint32_t v = 0; v < r->n_inputs; v++) {
        uint32_t def = s->def[r->values[v].value];
        if (def != OT_NONE && def >= r->first && def <= r->last)
            bytes += s->held[r->values[v].value];
    }
    return bytes;
}

/* requires a built region with its form set. Fills predictions; time_tiled < 0 when the form
 * cannot be made, or its tiles do not fit a scratchpad. */
ot_status ot_region_exact(const ot_seq *s, const ot_target *t, unsigned how, ot_region *r)
{
    ot_region_figures f;
    int64_t reassembly;
    double macs = 0;
    r->time_tiled = -1;
    r->stall = 0; /* known when its memory is planned */
    OT_TRY(ot_region_totals(s, t, how, r, &f));
    if (!f.possible) return OT_OK;
    const ot_totals tot = f.totals;
    r->weight_bytes = (int64_t)tot.weights;
    r->largest = tot.largest;
    r->carried = (int64_t)(tot.carried + 0.5);
    r->working_set = tot.ws;
    r->weights_stay = ot_weights_stay(t, &tot);
    r->overlap = ot_overlaps(t, &tot);
    /* the search estimates; a scratchpad is a hard limit */
    if (ot_target_hard_limit(t) && tot.ws > ot_target_room(t)) return OT_OK;
    ot_form_cost(t, &tot, r->form, &r->time_tiled, &r->traffic, &reassembly);
    r->time_untiled = r->traffic_untiled = 0;
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        uint32_t pos = s->pos[r->nodes[i].node];
        r->time_untiled += s->time[pos + 1] - s->time[pos];
        r->traffic_untiled += s->traffic[pos + 1] - s->traffic[pos];
        macs += s->macs[pos];
    }
    r->benefit = r->time_untiled - r->time_tiled;
    r->mac_ratio = macs > 0 ? f.sums.macs / macs : 1;
    r->peak = s->cut[r->first] + made_before(s, r) + reassembly + tot.ws;
    return OT_OK;
}
