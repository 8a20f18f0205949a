/* A second opinion on what regions cost: from the windows of a region's tiles to seconds, bytes
 * moved and bytes held, in the form it has; and plans checked by it.
 *
 *   windows of all tiles                    the target's and the runtime's tables
 *   bytes read and made, longest tile  -->  which memory a tile sees   -->   seconds of every node
 *                                                                            there  -->  + what the
 *                                                                            form adds
 *
 * What one node costs for given work and bytes, whole or in tiles, is the cost model's (cost.h:
 * ot_cost_compute and its kin): that is data. All that is added up of it is added up here a
 * second time, so that an error in the estimator (tile_totals.c, region_figures.c, form_cost.c)
 * is not repeated. The windows are those that the plan checker has found to be right.
 */
#ifndef TEST_REGION_PRICES_H
#define TEST_REGION_PRICES_H

#include "select/check/plan_check.h"
#include "select/search/plan_search.h"

#include <math.h>

#define OVERLAP 1e-6 /* windows of all tiles that are longer than the axis by more than rounding */

/* What the windows of a region's tiles come to in the form that it has. */
typedef struct region_bill {
    double seconds, traffic;
    /* bytes that a process holds beside what is live when the region starts: outputs as the form
     * holds them, and tiles */
    double held;
} region_bill;

typedef struct billing {
    const ot_seq *s;
    const ot_target *t;
    const ot_region *r;
    const ot_check_extents *x;
    ot_arena *a;
    ot_diag *d;
    /* [n_values] region nodes that read the value first and last; OT_NONE: none */
    uint32_t *first, *last;
    double tiles;
    /* of the nodes' time that is spent at the rate of fast, middle and slow memory */
    double part[3];
    double rate[3];   /* bytes a second there */
    double held;      /* bytes of the largest tile, second slots included */
    double constants; /* bytes that the nodes read whole, each for itself */
    bool halo;        /* elements computed twice, or tiles that are not alike */
    bool outermost;   /* each tile's outputs follow those of the tile before in memory */
    /* inputs that are cut */
    double n_inputs, windows, windows_slow, windows_seconds, runs, gathered;
    /* tiles of graph inputs and results between host and device: transfers of inputs, their
     * bytes, and what these would take whole; results */
    double loads, loads_bytes, loads_whole, stores, stores_bytes;
    /* outputs, whole */
    double outputs, outputs_seconds, outputs_kept;
    /* bytes that change layout at the border, in the tiles and once: of inputs, */
    double repack_inside, repack_outside;
    double pieces_repack_inside, pieces_repack_outside; /* of outputs */
} billing;

static ot_status broken(const billing *b, const char *rule)
{
    return ot_fail(b->d, OT_E_INPUT, "prices: region %u: %s", b->r->id, rule);
}

/* ---- values ---- */

static int64_t cut_extent(const billing *b, uint32_t v, uint32_t d)
{
    return b->s->g->values[b->r->values[v].value].dims[b->r->values[v].axis[d]];
}

/* v in all tiles of dim d, relative to all of it. What is not cut is there in every tile. */
static double all_tiles(const billing *b, uint32_t v, uint32_t d)
{
    if (b->r->values[v].axis[d] < 0) return b->r->dims[d].n_tiles;
    return (double)b->x->sum[d][v] / (double)cut_extent(b, v, d);
}

/* The same of the largest tile. */
static double largest_tile(const billing *b, uint32_t v, uint32_t d)
{
    return b->r->values[v].axis[d] < 0 ? 1 : (double)b->x->most[d][v] / (double)cut_extent(b, v, d);
}

static double bytes_all(const billing *b, uint32_t v)
{
    double bytes = (double)b->r->values[v].bytes;
    for (uint32_t d = 0; d < b->r->n_dims; d++) bytes *= all_tiles(b, v, d);
    return bytes;
}

static double bytes_largest(const billing *b, uint32_t v)
{
    double bytes = (double)b->r->values[v].bytes;
    for (uint32_t d = 0; d < b->r->n_dims; d++) bytes *= largest_tile(b, v, d);
    return bytes;
}

static bool is_cut(const ot_region *r, uint32_t v)
{
    bool cut = false;
    for (uint32_t d = 0; d < r->n_dims; d++) cut |= r->values[v].axis[d] >= 0;
    return cut;
}

/* ---- nodes ---- */

static bool node_is_cut(const ot_rnode *x, uint32_t d)
{
    return x->lead_axis[d] >= 0 || x->lead_axis[d] == OT_AX_SUM;
}

/* Work of node i in all tiles of dim d, relative to the node whole. */
static double work_all(const billing *b, uint32_t i, uint32_t d)
{
    const ot_rnode *x = &b->r->nodes[i];
    if (!node_is_cut(x, d)) return b->r->dims[d].n_tiles;
    return (double)b->x->done[d][i] / (double)ot_check_node_extent(b->s->g, x, d);
}

static double work_largest(const billing *b, uint32_t i, uint32_t d)
{
    const ot_rnode *x = &b->r->nodes[i];
    return node_is_cut(x, d)
               ? (double)b->x->done_most[d][i] / (double)ot_check_node_extent(b->s->g, x, d)
               : 1;
}

/* Operand k of node i is read as it is by every tile. */
static bool reads_whole(const billing *b, uint32_t i, uint32_t k)
{
    for (uint32_t d = 0; d < b->r->n_dims; d++)
        if (b->r->nodes[i].in_axis[d][k] >= 0) return false;
    return true;
}

/* Bytes of operand k that node i reads in all tiles; constants that it reads whole count elsewhere.
 */
static double read_all(const billing *b, uint32_t i, uint32_t k)
{
    const ot_rnode *x = &b->r->nodes[i];
    ot_id v = b->s->g->nodes[x->node].in[k];
    if (v == OT_NONE || (!b->s->act[v] && reads_whole(b, i, k))) return 0;
    double bytes = ot_cost_moved(b->s, v, b->t);
    for (uint32_t d = 0; d < b->r->n_dims; d++) {
        int8_t axis = x->in_axis[d][k];
        bytes *= axis < 0 ? b->r->dims[d].n_tiles
                          : (double)b->x->read[d][i][k] / (double)b->s->g->values[v].dims[axis];
    }
    return bytes;
}

/* Bytes that readers cut out of v's tiles: along the dim where that is most, in all tiles of the
 * others. */
static double crop_bytes(const billing *b, uint32_t v)
{
    const ot_region *r = b->r;
    double most = 0;
    for (uint32_t d = 0; d < r->n_dims; d++) {
        if (r->values[v].axis[d] < 0) continue;
        double part = (double)b->x->cropped[d][v] / (double)cut_extent(b, v, d);
        for (uint32_t e = 0; e < r->n_dims; e++) part *= e == d ? 1 : all_tiles(b, v, e);
        most = fmax(most, part);
    }
    return most > 0
               ? most * (double)r->values[v].bytes * ot_cost_crop(b->s, r->values[v].value, b->t)
               : 0;
}

/* The runtime merges the node into another one, or it moves nothing. */
static bool is_free(const ot_seq *s, uint32_t at)
{
    return s->fused[at] || s->strided[at] != OT_NONE ||
           ot_op_cost(s->g->nodes[s->node[at]].op) == OT_COST_FREE;
}

/* Seconds of node i in all tiles. */
static double node_seconds(const billing *b, uint32_t i)
{
    const ot_seq *s = b->s;
    const ot_rnode *x = &b->r->nodes[i];
    const ot_node *n = &s->g->nodes[x->node];
    const uint32_t at = s->pos[x->node];
    const bool product = ot_op_cost(n->op) == OT_COST_GEMM && s->tail[at] == OT_NONE;
    double in_elems = 0, out_elems = 0, moved = 0, packed = 0, extra = s->extra[at];
    ot_share share[OT_DIMS_MAX];
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v != OT_NONE && s->act[v]) in_elems += (double)s->elems[v];
        if (v != OT_NONE && s->act[v] && product && reads_whole(b, i, k))
            packed += (double)s->bytes[v];
        moved += read_all(b, i, k);
    }
    for (uint32_t d = 0; d < b->r->n_dims; d++) {
        share[d] = (ot_share){x->lead_axis[d], work_all(b, i, d), b->r->dims[d].n_tiles};
        extra *= share[d].made;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        if (n->out[k] != OT_NONE) out_elems += (double)s->elems[n->out[k]];
        if (x->out[k] == OT_NONE) continue;
        const ot_id v = b->r->values[x->out[k]].value;
        if (b->s->bytes[v] > 0)
            moved += bytes_all(b, x->out[k]) * ot_cost_moved(b->s, v, b->t) /
                     (double)b->s->bytes[v];
        if (b->r->values[x->out[k]].bytes > 0) extra += crop_bytes(b, x->out[k]);
    }
    double whole = ot_cost_compute(s->g, n, b->t, s->macs[at], (int64_t)out_elems,
                                   (int64_t)in_elems),
           seconds = 0;
    double compute = ot_cost_compute_cut(s, at, b->t, whole, share, b->r->n_dims);
    if (is_free(s, at)) {
        compute = ot_cost_free_compute(s, at, b->t, compute);
        if (s->tail[at] == OT_NONE) moved = 0; /* its producer has the numbers at hand */
    }
    for (int level = 0; level < 3; level++) {
        if (b->part[level] == 0) continue;
        seconds += b->part[level] * (ot_cost_both(s, at, b->t, compute, moved / b->rate[level]) +
                                     extra / ot_cost_layout_bw(b->t, b->rate[level]));
    }
    return seconds + (packed > 0 ? ot_cost_pack(b->t, packed, b->tiles) : 0);
}

/* ---- what a tile holds ---- */

static ot_status find_readers(billing *b)
{
    const ot_region *r = b->r;
    b->first = OT_NEW_N(b->a, uint32_t, r->n_values + 1u);
    b->last = OT_NEW_N(b->a, uint32_t, r->n_values + 1u);
    if (!b->first || !b->last) return ot_fail_nomem(b->d);
    for (uint32_t v = 0; v < r->n_values; v++) b->first[v] = b->last[v] = OT_NONE;
    for (uint32_t i = 0; i < r->n_nodes; i++)
        for (uint32_t k = 0; k < b->s->g->nodes[r->nodes[i].node].n_in; k++) {
            uint32_t v = r->nodes[i].in[k];
            if (v == OT_NONE) continue;
            if (b->first[v] == OT_NONE) b->first[v] = i;
            b->last[v] = i;
        }
    return OT_OK;
}

/* Node i needs no room for its results: merged, or it writes over an activation of their size
 * that it reads last. */
static bool in_place(const billing *b, uint32_t i)
{
    const ot_seq *s = b->s;
    const ot_rnode *x = &b->r->nodes[i];
    const ot_node *n = &s->g->nodes[x->node];
    const uint32_t at = s->pos[x->node];
    if (n->n_out == 0 || n->out[0] == OT_NONE) return false;
    if (s->fused[at] || s->strided[at] != OT_NONE) return true;
    bool dies = false;
    for (uint32_t k = 0; k < n->n_in; k++)
        dies |= x->in[k] != OT_NONE && s->act[n->in[k]] && b->last[x->in[k]] == i &&
                s->bytes[n->in[k]] == s->bytes[n->out[0]];
    return dies && ot_runtime_in_place(b->t->runtime, n);
}

/* Bytes of the largest tile while its nodes run, at most: what waits for readers, what a node
 * makes, its scratch. An input waits from its first reader on, where the form brings it into the
 * tile. */
static ot_status largest_live(billing *b, double *most)
{
    const ot_region *r = b->r;
    /* [i]: between node i - 1 and i: values made and read for the last time, and then what is
     * brought for i */
    double *change = OT_NEW_N(b->a, double, r->n_nodes + 2u),
           *brought = OT_NEW_N(b->a, double, r->n_nodes + 2u), waiting = 0;
    const bool brings = ot_runtime_brings_inputs(b->t->runtime, r->form);
    if (!change || !brought) return ot_fail_nomem(b->d);
    for (uint32_t v = 0; v < r->n_values; v++) {
        const bool input = v < r->n_inputs;
        if (b->last[v] == OT_NONE || (input && !(brings && is_cut(r, v)))) continue;
        if (input)
            brought[b->first[v]] += bytes_largest(b, v);
        else
            change[r->values[v].node + 1u] += bytes_largest(b, v);
        change[b->last[v] + 1u] -= bytes_largest(b, v);
    }
    *most = 0;
    /* carried from step to step, besides */
    for (uint32_t v = 0; b->x->kept && v < r->n_values; v++) {
        double carried = b->x->kept[v] == 0 ? 0
                                            : (double)r->values[v].bytes * (double)b->x->kept[v] /
                                                  (double)cut_extent(b, v, 0);
        for (uint32_t d = 1; d < r->n_dims; d++) carried *= largest_tile(b, v, d);
        waiting += carried;
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_rnode *x = &r->nodes[i];
        double scratch = b->s->work[b->s->pos[x->node]], results = 0;
        waiting += change[i] + brought[i];
        for (uint32_t d = 0; d < r->n_dims; d++) scratch *= work_largest(b, i, d);
        for (uint32_t k = 0; k < b->s->g->nodes[x->node].n_out; k++)
            if (x->out[k] != OT_NONE) results += bytes_largest(b, x->out[k]);
        double behind = waiting + change[i + 1];
        *most = fmax(*most, scratch + (in_place(b, i) ? fmax(waiting, behind) : waiting + results));
    }
    return OT_OK;
}

/* ---- what crosses the border ---- */

/* Does the runtime keep graph inputs and results on the host, and is it known what moving them
 * takes? */
static bool moves(const billing *b)
{
    return b->t->runtime->moves_tiles && b->t->transfers.upload > 0;
}

static void add_load(billing *b, uint32_t v, double windows)
{
    const ot_rvalue *rv = &b->r->values[v];
    const ot_value *x = &b->s->g->values[rv->value];
    const double whole = (double)rv->bytes;
    const bool fits = bytes_largest(b, v) * 2 <= whole * OT_STREAM_PART_MOST &&
                      windows <= whole * OT_STREAM_MOVES_MOST;
    if (!moves(b) || !x->is_input || !b->s->act[rv->value] || x->n_uses != 1 || !fits) return;
    b->loads += b->tiles;
    b->loads_bytes += windows;
    b->loads_whole += whole / b->t->transfers.upload + b->t->transfers.upload_start;
}

static void add_store(billing *b, uint32_t v)
{
    const ot_rvalue *rv = &b->r->values[v];
    const ot_value *x = &b->s->g->values[rv->value];
    if (!moves(b) || !x->is_output || x->n_uses > 0 || rv->axis[0] < 0 ||
        2 > b->tiles * OT_STREAM_PART_MOST)
        return;
    b->stores++;
    b->stores_bytes += (double)rv->bytes;
}

static void add_input(billing *b, uint32_t v)
{
    const ot_rvalue *rv = &b->r->values[v];
    const ot_value *x = &b->s->g->values[rv->value];
    const double bytes = bytes_all(b, v), whole = (double)rv->bytes,
                 elems = (double)b->s->elems[rv->value];
    b->n_inputs++;
    b->windows += bytes;
    add_load(b, v, bytes);
    const bool constant = !b->s->act[rv->value];
    if (constant || rv->bytes > b->t->fast_bytes) {
        b->windows_slow += bytes;
        b->windows_seconds += bytes / (constant ? b->t->bw_slow : ot_cost_bw(b->t, whole));
    }
    if (b->s->hands_blocks[rv->value]) {
        b->repack_inside += b->t->runtime->blocks.border_into * bytes;
        b->repack_outside += b->t->runtime->blocks.border_out_of * whole;
    }
    for (uint32_t d = 0; d < b->r->n_dims; d++) { /* rows that are cut short are read one by one */
        double row = elems > 0 ? (double)b->x->most[d][v] * whole / elems : 0;
        if (x->rank < 2 || rv->axis[d] != x->rank - 1 || row <= 0) continue;
        b->runs += bytes / row;
        if (b->s->g->model->opset < OT_SLICE_HAS_INPUTS) b->gathered += bytes / whole * elems;
    }
}

static void add_output(billing *b, uint32_t v)
{
    const ot_rvalue *rv = &b->r->values[v];
    const ot_value *x = &b->s->g->values[rv->value];
    const double whole = (double)rv->bytes;
    b->outputs += whole;
    add_store(b, v);
    b->outputs_seconds += whole / ot_cost_bw(b->t, whole);
    b->outputs_kept += x->is_output ? 0 : whole;
    if (ot_cost_blocked(b->s, rv->value, b->t)) {
        b->pieces_repack_inside += b->t->runtime->blocks.border_out_of * whole;
        b->pieces_repack_outside += b->t->runtime->blocks.border_into * whole;
    }
    b->outermost &= rv->axis[0] >= 0;
    for (int8_t k = 0; k < rv->axis[0]; k++) b->outermost &= x->dims[k] == 1;
}

static void add_border(billing *b)
{
    const ot_region *r = b->r;
    b->outermost = r->n_dims == 1;
    for (uint32_t v = 0; v < r->n_values; v++) {
        if (v < r->n_inputs && is_cut(r, v)) add_input(b, v);
        if (v >= r->n_inputs && r->values[v].is_output) add_output(b, v);
    }
    for (uint32_t i = 0; i < r->n_nodes; i++) {
        const ot_node *n = &b->s->g->nodes[r->nodes[i].node];
        for (uint32_t k = 0; k < n->n_in; k++)
            if (n->in[k] != OT_NONE && !b->s->act[n->in[k]] && reads_whole(b, i, k))
                b->constants += (double)b->s->bytes[n->in[k]];
        for (uint32_t d = 0; d < r->n_dims; d++)
            b->halo |= r->nodes[i].lead_axis[d] >= 0 && work_all(b, i, d) > 1 + OVERLAP;
    }
    for (uint32_t d = 0; d < r->n_dims; d++) b->halo |= r->dims[d].extent % r->dims[d].tile != 0;
}

/* ---- memories ---- */

/* The largest tile with second slots, where transfers run beside compute: what the target cannot
 * do, no plan may count on. Where tiles fit, only a scratchpad that has to hold them does
 * without. */
static ot_status decide_residency(billing *b)
{
    const ot_target *t = b->t;
    const ot_region *r = b->r;
    const bool can = t->runtime->motion == OT_MOTION_DMA && t->double_buffer;
    double most = 0;
    OT_TRY(largest_live(b, &most));
    b->held = floor(most + 0.5);
    if (r->overlap) b->held += floor((b->windows + b->outputs) / b->tiles);
    if (r->overlap ? !can : can && !ot_target_hard_limit(t))
        return broken(b, "transfers overlap where they cannot, or do not");
    const bool room = ot_target_weights_apart(t, (int64_t)b->constants) ||
                      b->held + b->constants <= (double)t->fast_bytes || b->tiles <= 1;
    if (r->weights_stay ? !room : room && !ot_target_hard_limit(t))
        return broken(b, "constants stay where they cannot, or do not");
    return OT_OK;
}

/* Where tiles work: in the fast memory when they fit it; else in the middle one, which fades out
 * with what tiles take of it. One tensor at a time counts there, about half of what is live; of
 * the tiles of all cores, where these share it. */
static void decide_level(billing *b)
{
    const ot_target *t = b->t;
    const double fast = (double)t->fast_bytes, mid = (double)t->mid_bytes;
    const double sharing = t->runtime->motion == OT_MOTION_VIEWS && t->cores > 1 ? t->cores : 1,
                 seen = b->held / 2 * sharing;
    b->rate[0] = t->bw_fast;
    b->rate[1] = t->mid_bytes ? t->bw_mid : t->bw_slow;
    b->rate[2] = t->bw_slow;
    b->part[0] = b->held <= fast;
    if (b->part[0] == 1) return;
    double fill = mid <= fast || seen > mid ? 1 : seen <= fast ? 0 : (seen - fast) / (mid - fast);
    b->part[2] = fill * fill;
    b->part[1] = 1 - b->part[2];
}

/* Seconds that constants take, and bytes of slow memory. */
static double constants_seconds(const billing *b, double *traffic)
{
    const ot_target *t = b->t;
    const bool far = b->r->weights_stay || t->runtime->motion == OT_MOTION_DMA;
    const double reads = b->r->weights_stay ? b->constants : b->constants * b->tiles;
    const double rate = far ? t->bw_slow : ot_cost_bw(t, b->constants);
    *traffic = rate > t->bw_slow ? b->constants : reads;
    return reads / rate * (b->constants <= (double)t->mid_bytes ? t->runtime->weights_seen : 1);
}

/* ---- forms ---- */

static double node_runs(const billing *b)
{
    double runs = 0;
    for (uint32_t i = 0; i < b->r->n_nodes; i++)
        runs += !is_free(b->s, b->s->pos[b->r->nodes[i].node]);
    return runs * b->tiles;
}

/* Granules that short rows fill in part, half of each. */
static double granules(const billing *b)
{
    return b->t->runtime->fills_granules ? b->runs * (double)b->t->granule / 2 : 0;
}

/* Three queues work on tiles at once: tile by tile the longest one shows, and of the others the
 * first or last tile. What does not move in tiles moves before and behind. */
static double with_moves(const billing *b, double kernels)
{
    const ot_transfer_costs *x = &b->t->transfers;
    double whole = 0;
    for (uint32_t i = 0; i < b->r->n_nodes; i++)
        whole += ot_cost_transfers(b->s, b->s->pos[b->r->nodes[i].node], b->t);
    if (whole == 0) return kernels;
    const double up = b->loads == 0 ? 0 : b->loads_bytes / x->upload + b->loads * x->upload_start;
    const double out = b->stores == 0 ? 0 : b->stores_bytes / x->download,
                 down = out + b->stores * b->tiles * x->download_start;
    whole -= b->loads_whole + out + b->stores * x->download_start;
    const double most = fmax(fmax(up, down), kernels), once = (up + kernels + down) / b->tiles;
    return fmax(whole, 0) + once + most * (1 - 1 / b->tiles);
}

/* Every core takes tiles in turn; windows are views of the slow memory, pieces lie in their place.
 */
static void bill_views(const billing *b, double compute, region_bill *out)
{
    const ot_target *t = b->t;
    const ot_dim *inner = &b->r->dims[b->r->n_dims - 1];
    const ot_value *sink = &b->s->g->values[b->r->values[inner->sink].value];
    /* one step after the other, each on all cores */
    const bool in_turn = b->r->form == OT_FORM_STREAM;
    const double cores = t->cores > 1 ? t->cores : 1, at_once = in_turn ? 1 : cores;
    const double busy = fmin(b->tiles, at_once), rounds = ceil(b->tiles / at_once);
    double constants = b->constants / t->bw_slow;
    if (!b->r->weights_stay)
        constants += b->constants * (b->tiles - busy) / ot_cost_bw(t, b->constants);
    double work = compute + (b->repack_inside + b->pieces_repack_inside) / t->bw_slow +
                  b->runs * t->runtime->run_seconds / cores;
    if (sink->rank > 2 && b->r->values[inner->sink].axis[b->r->n_dims - 1] == sink->rank - 1)
        work *= 1 + (double)t->runtime->row_loss / (double)inner->tile;
    work += (node_runs(b) * t->node_overhead + b->tiles * t->loop_overhead) / at_once;
    work *= rounds * at_once / b->tiles; /* the core with the most tiles */
    const double transfers = b->windows_seconds + b->outputs_seconds + constants;
    out->seconds = fmax(work, transfers) + t->runtime->overlap * fmin(work, transfers) +
                   t->region_overhead;
    out->seconds = with_moves(b, out->seconds);
    const bool once = b->r->weights_stay || b->constants <= (double)t->mid_bytes;
    out->traffic = b->windows_slow + b->outputs + b->constants * (once ? 1 : b->tiles);
    out->held = floor(b->outputs_kept + (busy - 1) * b->held);
}

/* Transfers into a scratchpad and back. */
static void bill_dma(const billing *b, double compute, region_bill *out)
{
    const ot_target *t = b->t;
    double constants, seconds = constants_seconds(b, &constants);
    double transfers = (b->windows_slow + granules(b)) / t->bw_slow +
                       b->outputs / ot_cost_bw(t, b->outputs) + seconds;
    double overhead = t->region_overhead + node_runs(b) * t->node_overhead +
                      b->tiles * t->loop_overhead;
    out->seconds = overhead + (b->r->overlap ? fmax(transfers, compute) : transfers + compute);
    out->traffic = b->windows_slow + granules(b) + b->outputs + constants;
    out->held = b->outputs;
}

/* Operators of the model copy windows out and put pieces together. */
static void bill_copied(const billing *b, double compute, region_bill *out)
{
    const ot_target *t = b->t;
    const ot_form_price *f = &t->runtime->price[b->r->form];
    const bool grid = b->r->n_dims > 1;
    const double to = ot_cost_bw(t, b->outputs), from = ot_cost_bw(t, b->held);
    const double reassembled = (b->outermost ? f->reassemble : f->scattered) +
                               (grid && b->halo ? f->cropped : 0);
    double constants, seconds = t->region_overhead + compute + node_runs(b) * t->node_overhead;
    /* fetched */
    seconds += constants_seconds(b, &constants) + (b->windows_slow + granules(b)) / t->bw_slow;
    /* and cut out */
    if (f->copies) seconds += b->windows / from + b->runs * t->runtime->run_seconds;
    /* number by number */
    if (ot_form_gathers(b->r->form)) seconds += b->gathered * t->runtime->gather_seconds;
    seconds += f->windows * b->windows / ot_cost_bw(t, b->windows);
    seconds += (1 + reassembled) * b->outputs / to;
    const double inside = ot_cost_layout_bw(t, from), outside = ot_cost_layout_bw(t, to);
    if (!f->joins_blocks) {
        seconds += b->repack_inside / inside + b->repack_outside / outside;
        seconds += b->pieces_repack_inside / inside + b->pieces_repack_outside / outside;
    }
    seconds += b->tiles * b->n_inputs * f->nodes * t->node_overhead +
               (f->loops ? b->tiles * t->loop_overhead : 0);
    out->seconds = seconds;
    /* pieces are written, read, written */
    const bool again = reassembled > 0 && b->outputs > (double)t->fast_bytes;
    out->traffic = b->windows_slow + granules(b) + (again ? 3 : 1) * b->outputs + constants;
    double copies = b->outermost ? f->outputs : f->outputs_scattered,
           tiles = grid ? f->tiles_grid : f->tiles;
    if (grid && f->outputs_grid > 0) copies = f->outputs_grid;
    if (b->halo && f->tiles_chain > 0) tiles += b->r->n_nodes / f->tiles_chain;
    const double operators = (f->written > 0 ? f->written : b->tiles) * b->r->n_nodes;
    out->held = floor(copies * b->outputs) + floor(tiles) * b->held;
    out->held += floor(f->inputs * b->windows + operators * (double)t->runtime->node_bytes);
    out->held += f->loops ? (double)t->runtime->loop_bytes : 0;
}

static ot_status bill_region(const ot_seq *s, const ot_target *t, const ot_region *r,
                             const ot_check_extents *x, ot_arena *a, ot_diag *d, region_bill *out)
{
    billing b = {.s = s, .t = t, .r = r, .x = x, .a = a, .d = d, .tiles = 1};
    double compute = 0;
    for (uint32_t k = 0; k < r->n_dims; k++) b.tiles *= r->dims[k].n_tiles;
    OT_TRY(find_readers(&b));
    add_border(&b);
    OT_TRY(decide_residency(&b));
    decide_level(&b);
    for (uint32_t i = 0; i < r->n_nodes; i++) compute += node_seconds(&b, i);
    switch (t->runtime->motion) {
    case OT_MOTION_VIEWS: bill_views(&b, compute, out); break;
    case OT_MOTION_DMA: bill_dma(&b, compute, out); break;
    case OT_MOTION_COPIED: bill_copied(&b, compute, out); break;
    }
    out->held += b.held;
    return OT_OK;
}

/* ---- plans ---- */

#define PRICES_ABOUT 1e-9 /* sums that are made in another order differ by rounding */

static ot_status wrong_price(ot_diag *d, const ot_region *r, const char *what, double stated,
                             double found)
{
    return ot_fail(d, OT_E_INPUT, "prices: region %u: %s: %.17g, found %.17g", r->id, what, stated,
                   found);
}

static bool same_price(double a, double b)
{
    return fabs(a - b) <= PRICES_ABOUT * (fabs(a) + fabs(b));
}

/* What region r states. start: bytes live when its first tile runs. */
static ot_status check_prices(const ot_seq *s, const ot_target *t, const ot_region *r,
                              const ot_check_extents *x, double start, ot_arena *a, ot_diag *d)
{
    region_bill bill = {0};
    OT_TRY(bill_region(s, t, r, x, a, d, &bill));
    const double seconds = bill.seconds + r->stall, peak = start + bill.held;
    if (!same_price(r->time_tiled, seconds))
        return wrong_price(d, r, "time is not what its tiles take", r->time_tiled, seconds);
    if (!same_price(r->traffic, bill.traffic))
        return wrong_price(d, r, "traffic is not what its tiles move", r->traffic, bill.traffic);
    if (fabs((double)r->peak - peak) > 1 + PRICES_ABOUT * peak)
        return wrong_price(d, r, "peak is not what is live", (double)r->peak, peak);
    return OT_OK;
}

static ot_status check_all_prices(ot_graph *g, const ot_plan *p, const ot_target *t,
                                  const ot_plan_options *o, ot_arena *a, ot_diag *d)
{
    ot_check_found found;
    ot_seq s;
    OT_TRY(ot_plan_check_find(g, p, t, o, a, d, &found));
    OT_TRY(ot_seq_build(g, a, &s));
    OT_TRY(ot_cost_fill(&s, t));
    for (uint32_t k = 0; k < p->n_regions; k++)
        OT_TRY(check_prices(&s, t, &p->regions[k], &found.extents[k], found.start[k], a, d));
    return OT_OK;
}

/* ot_plan_check, and the prices of all regions. Fails: OT_E_INPUT with the first thing that is
 * wrong, OT_E_NOMEM. */
static inline ot_status check_plan_and_prices(ot_graph *g, const ot_plan *p, const ot_target *t,
                                              const ot_plan_options *o, ot_diag *d)
{
    ot_arena *a = ot_arena_new();
    ot_status st = a ? check_all_prices(g, p, t, o, a, d) : ot_fail_nomem(d);
    ot_arena_free(a);
    return st;
}

#endif
