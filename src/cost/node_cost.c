/* Cost model, part one: what one node costs when it runs whole. Pure functions of graph and target.
 *
 * A node takes the longer of its compute time and its memory time, plus a fixed overhead. Memory
 * time counts every operand once, at the bandwidth of the smallest memory that the operand would
 * still be found in. Nodes that the runtime merges into one before them cost what plan/runtime/
 * says.
 */
#include "cost.h"

double ot_cost_bw(const ot_target *t, double footprint)
{
    /* In a shared cache a value is found again when what is made meanwhile, about as much,
     * leaves it there. */
    const double mid = (double)t->mid_bytes * (t->is_cache ? 0.5 : 1);
    if (footprint <= (double)t->fast_bytes) return t->bw_fast;
    if (footprint <= mid) return t->bw_mid;
    return t->bw_slow;
}

double ot_cost_moved(const ot_seq *s, ot_id v, const ot_target *t)
{
    const ot_value *x = &s->g->values[v];
    if (!s->blocked[v] || x->rank != 4 || x->dims[1] < 1) return (double)s->bytes[v];
    return (double)s->bytes[v] / ot_runtime_block_fill(t->runtime, x->dims[1]);
}

/* Nodes that are looked at for those that the engine merges with one before them. */
#define GROUP_REACH 64
#define NARROW      64 /* channels: ot_unpacked_price */

/* The part of what is computed for a ConvTranspose that is not padding. By phases, it convolves
 * once for each of the stride, or for all at once, with more channels and kernels padded to one
 * extent; then the phases are interleaved. */
static double transposed_part(const ot_runtime *r, const ot_node *n, const ot_value *w)
{
    if (r->conv.transposed != OT_TRANSPOSED_PHASES) return r->conv.transposed_part;
    size_t count;
    const int64_t *strides = ot_attr_ints(n, "strides", &count);
    int64_t phases = 1;
    double taps = 1;
    for (size_t k = 0; strides && k < count && (int32_t)k + 2 < w->rank; k++) {
        int64_t s = ot_min(16, ot_max(1, strides[k])), kernel = ot_max(1, w->dims[k + 2]);
        phases *= s;
        taps *= (double)kernel / (double)(ot_ceil_div(kernel, s) * s);
    }
    double apart = ot_runtime_block_fill(r, w->dims[1]),
           together = ot_runtime_block_fill(r, w->dims[1] * phases) * taps;
    return r->conv.transposed_part * (apart > together ? apart : together);
}

/* Dense, pointwise and depthwise convolutions run at different rates; blocks of channels compute
 * padding. */
static double conv_rate(const ot_graph *g, const ot_node *n, const ot_target *t)
{
    uint32_t wi = n->op == OT_OP_QLinearConv ? 3 : 1;
    if (wi >= n->n_in || n->in[wi] == OT_NONE) return t->rate_conv;
    const ot_value *w = &g->values[n->in[wi]];
    if (w->rank < 3 || w->dims[0] < 1 || w->dims[1] < 1) return t->rate_conv;
    int64_t kernel = 1;
    for (int32_t k = 2; k < w->rank; k++) kernel *= ot_max(1, w->dims[k]);
    int64_t group = ot_attr_int(n, "group", 1);
    int64_t per_group = w->dims[1];
    if (group > 1 && per_group <= 4)
        return t->rate_conv_depthwise * ot_runtime_block_fill(t->runtime, w->dims[0]);
    double rate = kernel == 1 ? t->rate_conv_pointwise : t->rate_conv;
    if (n->op == OT_OP_ConvTranspose) return rate * transposed_part(t->runtime, n, w);
    return rate * ot_runtime_conv_part(t->runtime, w->dims[0], per_group, t->conv_few);
}

double ot_cost_compute(const ot_graph *g, const ot_node *n, const ot_target *t, double macs,
                       int64_t out_elems, int64_t in_elems)
{
    double slow = ot_runtime_slowness(t->runtime, n);
    if (ot_is_fused_conv(n)) return macs / conv_rate(g, n, t);
    switch (ot_op_cost(n->op)) {
    case OT_COST_FREE: return 0;
    case OT_COST_MOVE: return slow > 1 ? slow * (double)out_elems / t->rate_elem : 0;
    case OT_COST_CONV: return macs / conv_rate(g, n, t);
    case OT_COST_GEMM: return macs / t->rate_gemm;
    case OT_COST_TRANS: return slow * (double)out_elems / t->rate_trans;
    case OT_COST_REDUCE: return (double)in_elems / t->rate_reduce;
    case OT_COST_NORM: return 2.0 * (double)out_elems / t->rate_reduce;
    case OT_COST_POOL: return macs / t->rate_pool;
    case OT_COST_ELEM:
    case OT_COST_OTHER: break;
    }
    return slow * (double)out_elems / t->rate_elem;
}

double ot_cost_unpacked(const ot_graph *g, const ot_node *n, const ot_target *t)
{
    const ot_unpacked_price *price = &t->runtime->unpacked;
    const ot_value *w = &g->values[n->in[1]], *y = &g->values[n->out[0]];
    double pixels = 1;
    bool is_point = true;
    for (int32_t k = 2; k < w->rank; k++) is_point &= w->dims[k] == 1;
    for (int32_t k = 2; k < y->rank; k++) pixels *= (double)ot_max(1, y->dims[k]);
    const bool narrow = ot_min(w->dims[0], w->dims[1]) < NARROW;
    const double part = is_point ? price->pointwise : narrow ? price->narrow : price->windows;
    return ot_node_macs(g, n) / conv_rate(g, n, t) * (part + price->pixels / pixels);
}

static bool is_elementwise(const ot_node *n)
{
    return ot_op_access(n->op) == OT_ACC_POINTWISE || n->op == OT_OP_BatchNormalization;
}

bool ot_cost_has_constant(const ot_seq *s, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !s->act[n->in[k]]) return true;
    return false;
}

/* A merged node that takes time: in a chain each does, behind a convolution only what is no
 * simple arithmetic. */
static bool computes(const ot_seq *s, uint32_t p)
{
    ot_cost_kind kind = ot_op_cost(s->g->nodes[s->node[p]].op);
    return kind == OT_COST_TRANS ||
           (kind == OT_COST_ELEM && is_elementwise(&s->g->nodes[s->node[s->head[p]]]));
}

double ot_cost_free_compute(const ot_seq *s, uint32_t p, const ot_target *t, double compute)
{
    ot_cost_kind class = ot_op_cost(s->g->nodes[s->node[p]].op);
    bool counts = computes(s, p) || (class == OT_COST_GEMM && s->tail[p] != OT_NONE);
    return t->runtime->one_pass && s->fused[p] && counts ? compute : 0;
}

/* How much longer a ConvTranspose takes in tiles of few rows or columns: all phases of a stride
 * are computed for less than a stride (measured: 8 times as long in tiles of one row, stride 2). */
static double thin_phases(const ot_seq *s, uint32_t p, const ot_share *cut, uint32_t n_dims)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    const ot_value *y = &s->g->values[n->out[0]];
    size_t count;
    const int64_t *strides = ot_attr_ints(n, "strides", &count);
    double longer = 1;
    for (uint32_t d = 0; strides && d < n_dims; d++) {
        if (cut[d].axis < 2 || (size_t)cut[d].axis - 2 >= count || cut[d].made <= 0) continue;
        double extent = (double)y->dims[cut[d].axis] * cut[d].made / cut[d].tiles,
               part = (double)strides[cut[d].axis - 2] / extent;
        longer *= 1 + 2 * part * part;
    }
    return longer;
}

/* Numbers of 16 bits that the first node of a group reads and makes: widened and rounded on the
 * way. */
static double conversions(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    ot_cost_kind class = ot_op_cost(n->op);
    double count = 0;
    if (t->runtime->half_part <= 0 || class == OT_COST_FREE || class == OT_COST_MOVE ||
        (s->fused[p] && s->head[p] != p))
        return 0;
    for (uint32_t k = 0; k <= n->n_in; k++) {
        ot_id v = k < n->n_in ? n->in[k] : n->n_out > 0 ? n->out[0] : OT_NONE;
        int64_t elems;
        if (v == OT_NONE || !s->act[v] || !ot_dtype_is_half(s->g->values[v].dtype)) continue;
        count += ot_value_elems(&s->g->values[v], &elems) ? (double)elems : 0;
    }
    return count / (t->rate_elem * t->runtime->half_part);
}

double ot_cost_compute_cut(const ot_seq *s, uint32_t p, const ot_target *t, double compute,
                           const ot_share *cut, uint32_t n_dims)
{
    double quick = ot_cost_winograd(s, p, t, cut, n_dims), converts = conversions(s, p, t);
    for (uint32_t d = 0; d < n_dims; d++) converts *= cut[d].made;
    if (quick > 0) return quick + converts;
    for (uint32_t d = 0; d < n_dims; d++) compute *= cut[d].made;
    if (s->on_bytes[p] && ot_op_cost(s->g->nodes[s->node[p]].op) == OT_COST_CONV &&
        t->runtime->conv.bytes_part > 0)
        compute /= t->runtime->conv.bytes_part;
    bool phases = t->runtime->conv.transposed == OT_TRANSPOSED_PHASES &&
                  s->g->nodes[s->node[p]].op == OT_OP_ConvTranspose;
    if (phases) compute *= thin_phases(s, p, cut, n_dims);
    compute += converts;
    return s->tail[p] == OT_NONE ? compute : ot_cost_attention(s, p, t, cut, n_dims, compute);
}

double ot_cost_both(const ot_seq *s, uint32_t p, const ot_target *t, double compute, double memory)
{
    return s->wino_room[p] > 0 ? compute + memory : ot_cost_overlap(t, compute, memory);
}

double ot_cost_pack(const ot_target *t, double bytes, double tiles)
{
    if (t->runtime->packing == OT_PACK_NONE) return 0;
    return bytes * tiles /
           (t->runtime->packing == OT_PACK_LEVEL ? ot_cost_bw(t, bytes) : t->bw_slow);
}

/* A node of p's group before it reads v, too: it is still there. */
static bool read_before(const ot_seq *s, uint32_t p, const ot_value *v)
{
    for (uint32_t u = 0; u < v->n_uses; u++) {
        uint32_t q = s->pos[v->uses[u]];
        if (q != OT_NONE && q < p && s->head[q] == s->head[p]) return true;
    }
    return false;
}

/* A merged node of the engine: what it reads besides its group's values, and a result that is
 * stored although the value before it is stored, too. */
static void engine_fused_node(const ot_seq *s, uint32_t p, const ot_target *t, double compute,
                              ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    /* what it reads of its group is stored, or nowhere */
    bool stored_before = false, opened = false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE) continue;
        double b = (double)s->bytes[v];
        const ot_value *in = &g->values[v];
        if (s->def[v] != OT_NONE && s->head[s->def[v]] == s->head[p]) {
            stored_before |= in->is_output;
            opened |= s->bytes[v] == 0;
            for (uint32_t u = 0; u < in->n_uses; u++) {
                uint32_t q = s->pos[in->uses[u]];
                stored_before |= q != OT_NONE && q < p && s->head[q] != s->head[p];
            }
            continue;
        }
        if (read_before(s, p, in)) continue;
        x->memory += b / ot_cost_bw(t, b);
        x->traffic += b > (double)t->fast_bytes ? b : 0;
    }
    double out = (double)s->bytes[n->out[0]];
    if (stored_before || opened || s->tail[p] == p) {
        x->memory += out / ot_cost_bw(t, out);
        x->traffic += out > (double)t->fast_bytes ? out : 0;
    }
    x->compute = ot_cost_free_compute(s, p, t, ot_cost_compute_cut(s, p, t, compute, NULL, 0));
}

/* The node at p runs inside of a convolution. */
static bool is_in_convolution(const ot_seq *s, uint32_t p)
{
    return s->fused[p] && s->g->nodes[s->node[s->head[p]]].op == OT_OP_Conv;
}

/* Convolutions make blocked tensors; what keeps blocks, or runs inside of one, hands them on when
 * all it reads is blocked. */
bool ot_cost_makes_blocked(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    if (n->n_out < 1 || n->out[0] == OT_NONE || g->values[n->out[0]].rank != 4) return false;
    if (ot_runtime_makes_blocks(t->runtime, n)) return true;
    if (!ot_runtime_keeps_blocks(t->runtime, n) && !is_in_convolution(s, p)) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->act[n->in[k]] && !s->blocked[n->in[k]]) return false;
    return true;
}

/* A convolution of fewer channels than a block reads them plain; one for each channel does not. */
static bool reads_plain(const ot_seq *s, const ot_node *n, const ot_target *t)
{
    const ot_value *x = &s->g->values[n->in[0]];
    return n->op == OT_OP_Conv && x->rank == 4 && x->dims[1] < t->runtime->blocks.least &&
           ot_attr_int(n, "group", 1) != x->dims[1];
}

/* The reader takes v as it is blocked. */
static bool reads_blocked(const ot_seq *s, const ot_node *reader, const ot_target *t)
{
    if (ot_runtime_makes_blocks(t->runtime, reader)) return !reads_plain(s, reader, t);
    return reader->n_out > 0 && reader->out[0] != OT_NONE && s->blocked[reader->out[0]];
}

double ot_cost_work(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    ot_transposed how = t->runtime->conv.transposed;
    if (n->inner.bytes > 0) return (double)n->inner.bytes;
    if (how == OT_TRANSPOSED_PLAIN || n->op != OT_OP_ConvTranspose || n->n_in < 2) return 0;
    const ot_value *x = &g->values[n->in[0]];
    if (x->rank < 3 || x->dims[0] < 1 || x->dims[1] < 1) return 0;
    if (how == OT_TRANSPOSED_PHASES)
        return n->n_out > 0 && n->out[0] != OT_NONE ? (double)s->bytes[n->out[0]] : 0;
    /* weights / channels: numbers per position; one sample at a time */
    double channels = (double)x->dims[1];
    return (double)s->elems[n->in[1]] / channels * (double)s->bytes[n->in[0]] / channels /
           (double)x->dims[0];
}

/* The only reader is merged into the producer, which is then the one that writes. */
static bool next_is_fused(const ot_seq *s, const ot_value *y)
{
    return y->n_uses == 1 && s->pos[y->uses[0]] != OT_NONE && s->fused[s->pos[y->uses[0]]];
}

double ot_cost_extra(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    const ot_block_habits *b = &t->runtime->blocks;
    if (n->n_in < 1 || n->n_out < 1 || n->in[0] == OT_NONE || n->out[0] == OT_NONE) return 0;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    if (n->op == OT_OP_ConvTranspose && t->runtime->conv.transposed == OT_TRANSPOSED_PHASES)
        return 2.0 * s->work[p];
    if (n->op == OT_OP_ConvTranspose)
        return 2.0 * s->work[p] * (double)ot_max(1, x->rank > 0 ? x->dims[0] : 1);
    if (!b->has_blocks) return 0;
    double extra = 0;
    if (n->op == OT_OP_Conv && x->rank == 4 && !s->blocked[n->in[0]] && !reads_plain(s, n, t))
        extra = b->into * (double)s->bytes[n->in[0]];
    if (!s->blocked[n->out[0]] || next_is_fused(s, y)) return extra;
    bool plain = y->is_output;
    for (uint32_t u = 0; u < y->n_uses; u++)
        plain = plain || !reads_blocked(s, &g->nodes[y->uses[u]], t);
    return plain ? extra + b->out_of * (double)s->bytes[n->out[0]] : extra;
}

bool ot_cost_blocked(const ot_seq *s, ot_id v, const ot_target *t)
{
    const ot_value *x = &s->g->values[v];
    if (x->is_output || s->def[v] == OT_NONE || !s->blocked[v]) return false;
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (reads_blocked(s, &s->g->nodes[x->uses[u]], t)) return true;
    return false;
}

double ot_cost_crop(const ot_seq *s, ot_id v, const ot_target *t)
{
    const ot_value *x = &s->g->values[v];
    const ot_block_habits *b = &t->runtime->blocks;
    if (!s->blocked[v]) return b->crop;
    for (uint32_t u = 0; b->crop_readers && u < x->n_uses; u++)
        if (!reads_blocked(s, &s->g->nodes[x->uses[u]], t)) return b->crop;
    return b->crop_blocked;
}

int64_t ot_cost_weights(const ot_seq *s, uint32_t p, const int8_t *const *in_axis, uint32_t n_dims)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    int64_t sum = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        bool cut = false;
        for (uint32_t d = 0; d < n_dims; d++) cut |= in_axis[d][k] >= 0;
        if (n->in[k] != OT_NONE && !s->act[n->in[k]] && !cut) sum += s->bytes[n->in[k]];
    }
    return sum;
}

/* A node that the runtime merges into another one, or that moves nothing. */
static void free_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    /* What a merged node writes was counted as its producer's output, unless that seemed to stay
     * in fast memory. */
    if (n->n_out > 0 && n->out[0] != OT_NONE && g->values[n->out[0]].is_output &&
        s->bytes[n->out[0]] <= t->fast_bytes)
        x->traffic = (double)s->bytes[n->out[0]];
    /* A merged residual Add still reads the other operand. */
    if (n->op == OT_OP_Add) {
        double b = (double)s->bytes[n->out[0]];
        x->memory += b / ot_cost_bw(t, b);
        x->traffic += b > (double)t->fast_bytes ? b : 0;
    }
}

static void whole_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    double out_elems = 0, in_elems = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE) continue;
        double b = (double)s->bytes[v], moved = ot_cost_moved(s, v, t);
        x->memory += moved / ot_cost_bw(t, moved);
        x->traffic += b > (double)t->fast_bytes || s->def[v] == OT_NONE ? b : 0;
        if (s->act[v]) in_elems += (double)s->elems[v];
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE) continue;
        double b = (double)s->bytes[v], moved = ot_cost_moved(s, v, t);
        x->memory += moved / ot_cost_bw(t, moved);
        x->traffic += b > (double)t->fast_bytes || g->values[v].is_output ? b : 0;
        out_elems += (double)s->elems[v];
    }
    x->compute = ot_cost_compute(g, n, t, s->macs[p], (int64_t)out_elems, (int64_t)in_elems);
    x->compute = ot_cost_compute_cut(s, p, t, x->compute, NULL, 0);
    x->overhead = t->node_overhead;
}

/* Seconds that the nodes merged with the one at p compute, while its group's operands are read
 * and written. */
static double merged_compute(const ot_seq *s, uint32_t p, const ot_target *t)
{
    double sum = 0;
    if (!t->runtime->one_pass) return 0;
    for (uint32_t q = p + 1; q < s->n && q <= p + GROUP_REACH; q++) {
        const ot_node *n = &s->g->nodes[s->node[q]];
        if (!s->fused[q] || s->head[q] != p || !computes(s, q) || s->tail[q] != OT_NONE) continue;
        sum += ot_cost_compute(s->g, n, t, 0, s->elems[n->out[0]], s->elems[n->out[0]]);
    }
    return sum;
}

static void node_cost(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    *x = (ot_node_cost){.node = s->node[p], .macs = s->macs[p], .is_fused = s->fused[p]};
    if (s->strided[p] != OT_NONE) {
        x->is_fused = true;
        return;
    }
    if (s->fused[p] && t->runtime->one_pass)
        engine_fused_node(
            s, p, t, ot_cost_compute(g, n, t, s->macs[p], s->elems[n->out[0]], s->elems[n->out[0]]),
            x);
    else if (s->fused[p] || (ot_op_cost(n->op) == OT_COST_FREE && n->op != OT_OP_OPAQUE))
        free_node(s, p, t, x);
    else
        whole_node(s, p, t, x);
    /* layout changes do not overlap */
    double extra = s->extra[p] / ot_cost_layout_bw(t, ot_cost_bw(t, s->extra[p] / 2));
    double merged = s->fused[p] ? 0 : merged_compute(s, p, t);
    x->time = ot_cost_both(s, p, t, x->compute + merged, x->memory) - merged + extra + x->overhead;
    x->memory += extra;
}

void ot_cost_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x)
{
    const double transfers = ot_cost_transfers(s, p, t);
    node_cost(s, p, t, x);
    x->memory += transfers; /* before the node, or behind it: hidden by nothing */
    x->time += transfers;
}
