/* Cost model, part one: what one node costs when it runs whole. Pure functions of graph and target.
 *
 * A node takes the longer of its compute time and its memory time, plus a fixed overhead. Memory time counts every operand
 * once, at the bandwidth of the smallest memory that the operand would still be found in. Nodes that the runtime merges
 * into the convolution before them (ONNX Runtime does so with BatchNormalization, activations and a residual Add) cost
 * nothing of their own.
 */
#include "cost.h"

double ot_cost_bw(const ot_target *t, double footprint)
{
    if (footprint <= (double)t->fast_bytes) return t->bw_fast;
    if (t->mid_bytes > 0 && footprint <= (double)t->mid_bytes) return t->bw_mid;
    return t->bw_slow;
}

/* The engine's channel blocks (AVX2 registers), and inputs of so few channels that they are read as they are. */
#define ENGINE_BLOCK    8
#define DIRECT_CHANNELS 4
/* Rate of its convolutions of bytes, of that of float32: elements are gathered, and multiplied as 16-bit numbers. */
#define ENGINE_BYTES 0.6

/* Nodes that are looked at for those that the engine merges with one before them. */
#define GROUP_REACH 64

/* The part of the engine's channel blocks that is not padding. */
static double block_fill(int64_t channels)
{
    return (double)channels / (double)(ENGINE_BLOCK * ot_ceil_div(channels, ENGINE_BLOCK));
}

/* The part of what the engine computes for a ConvTranspose that is not padding. It convolves once for each phase of the stride,
 * or for all at once, with more channels and kernels padded to one extent; then the phases are interleaved. */
static double transposed_fill(const ot_node *n, const ot_value *w)
{
    size_t count;
    const int64_t *strides = ot_attr_ints(n, "strides", &count);
    int64_t phases = 1;
    double taps = 1;
    for (size_t k = 0; strides && k < count && (int32_t)k + 2 < w->rank; k++) {
        int64_t s = ot_min(16, ot_max(1, strides[k])), kernel = ot_max(1, w->dims[k + 2]);
        phases *= s;
        taps *= (double)kernel / (double)(ot_ceil_div(kernel, s) * s);
    }
    double apart = block_fill(w->dims[1]), together = block_fill(w->dims[1] * phases) * taps;
    return 0.85 * (apart > together ? apart : together);
}

/* Dense, pointwise and depthwise convolutions run at different rates. CPU kernels work on blocks of 16 channels: what is not
 * a multiple of 16 computes padding, and an input of a few channels cannot be blocked (both measured in ONNX Runtime). */
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
    bool cpu = t->is_cache && t->fuses;
    if (group > 1 && per_group <= 4) return t->rate_conv_depthwise;
    double rate = kernel == 1 ? t->rate_conv_pointwise : t->rate_conv;
    if (n->op == OT_OP_ConvTranspose) return !cpu ? rate : t->engine ? rate * transposed_fill(n, w) : rate * 0.6;
    if (!cpu) return rate;
    double out = (double)w->dims[0], in = (double)per_group;
    if (t->engine) return rate * block_fill(w->dims[0]) * (per_group <= DIRECT_CHANNELS ? 0.85 : block_fill(per_group));
    rate *= out / (16.0 * (double)ot_ceil_div(w->dims[0], 16));
    if (per_group < 8) return rate * 0.45;
    return rate * (in < 24 ? 0.7 : in < 48 ? 0.92 : 1.0);
}

/* Operators whose kernels are far from the rate of their class (measured in ONNX Runtime on a CPU). */
static double cpu_slowness(const ot_node *n)
{
    switch (n->op) {
    case OT_OP_PRelu: return 25;
    case OT_OP_Erf: return 1.5;
    case OT_OP_Pow: return 3;
    case OT_OP_Exp: return 0.5;
    case OT_OP_DepthToSpace:
    case OT_OP_SpaceToDepth: return 8;
    case OT_OP_Resize:
    case OT_OP_Upsample: {
        const char *mode = ot_attr_str(n, "mode", "nearest");
        return strcmp(mode, "nearest") == 0 ? 1.6 : strcmp(mode, "linear") == 0 ? 12 : 50;
    }
    default: return 1;
    }
}

double ot_cost_compute(const ot_graph *g, const ot_node *n, const ot_target *t, double macs, int64_t out_elems, int64_t in_elems)
{
    double slow = t->is_cache && t->fuses && !t->engine ? cpu_slowness(n) : 1;
    switch (ot_op_cost(n->op)) {
    case OT_COST_FREE: return 0;
    case OT_COST_MOVE: return slow > 1 ? slow * (double)out_elems / t->rate_elem : 0;
    case OT_COST_CONV: return macs / conv_rate(g, n, t) / (t->engine && ot_cost_on_bytes(g, n) ? ENGINE_BYTES : 1);
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

/* A merged node that takes time: in a chain each does, behind a convolution only what is no simple arithmetic. */
static bool computes(const ot_seq *s, uint32_t p)
{
    ot_cost_kind kind = ot_op_cost(s->g->nodes[s->node[p]].op);
    return kind == OT_COST_TRANS || (kind == OT_COST_ELEM && is_elementwise(&s->g->nodes[s->node[s->head[p]]]));
}

double ot_cost_free_compute(const ot_seq *s, uint32_t p, const ot_target *t, double compute)
{
    ot_cost_kind class = ot_op_cost(s->g->nodes[s->node[p]].op);
    bool counts = computes(s, p) || (class == OT_COST_GEMM && s->tail[p] != OT_NONE);
    return t->engine && t->is_cache && s->fused[p] && counts ? compute : 0;
}

/* How much longer a ConvTranspose takes in tiles of few rows or columns: all phases of a stride are computed for less than a
 * stride (measured: 8 times as long in tiles of one row, stride 2). */
static double thin_phases(const ot_seq *s, uint32_t p, const ot_share *cut, uint32_t n_dims)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    const ot_value *y = &s->g->values[n->out[0]];
    size_t count;
    const int64_t *strides = ot_attr_ints(n, "strides", &count);
    double longer = 1;
    for (uint32_t d = 0; strides && d < n_dims; d++) {
        if (cut[d].axis < 2 || (size_t)cut[d].axis - 2 >= count || cut[d].made <= 0) continue;
        double extent = (double)y->dims[cut[d].axis] * cut[d].made / cut[d].tiles, part = (double)strides[cut[d].axis - 2] / extent;
        longer *= 1 + 2 * part * part;
    }
    return longer;
}

double ot_cost_compute_cut(const ot_seq *s, uint32_t p, const ot_target *t, double compute, const ot_share *cut, uint32_t n_dims)
{
    double quick = ot_cost_winograd(s, p, t, cut, n_dims);
    if (quick > 0) return quick;
    for (uint32_t d = 0; d < n_dims; d++) compute *= cut[d].made;
    if (t->engine && t->is_cache && s->g->nodes[s->node[p]].op == OT_OP_ConvTranspose) compute *= thin_phases(s, p, cut, n_dims);
    return s->tail[p] == OT_NONE ? compute : ot_cost_attention(s, p, t, cut, n_dims, compute);
}

double ot_cost_both(const ot_seq *s, uint32_t p, const ot_target *t, double compute, double memory)
{
    return s->wino_room[p] > 0 ? compute + memory : ot_cost_overlap(t, compute, memory);
}

double ot_cost_pack(const ot_target *t, double bytes, double tiles)
{
    return bytes * tiles / (t->engine ? ot_cost_bw(t, bytes) : t->bw_slow);
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

/* A merged node of the engine: what it reads besides its group's values, and a result that is stored although the value
 * before it is stored, too. */
static void engine_fused_node(const ot_seq *s, uint32_t p, const ot_target *t, double compute, ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    bool stored_before = false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v == OT_NONE) continue;
        double b = (double)s->bytes[v];
        const ot_value *in = &g->values[v];
        if (s->def[v] != OT_NONE && s->head[s->def[v]] == s->head[p]) {
            stored_before |= in->is_output;
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
    if (stored_before || s->tail[p] == p || n->op == OT_OP_QuantizeLinear) {
        x->memory += out / ot_cost_bw(t, out);
        x->traffic += out > (double)t->fast_bytes ? out : 0;
    }
    x->compute = ot_cost_free_compute(s, p, t, ot_cost_compute_cut(s, p, t, compute, NULL, 0));
}

/* Operators that read and write channel-blocked tensors as they are. */
static bool keeps_blocks(const ot_node *n)
{
    switch (n->op) {
    case OT_OP_Conv:
    case OT_OP_MaxPool:
    case OT_OP_AveragePool:
    case OT_OP_GlobalAveragePool:
    case OT_OP_GlobalMaxPool:
    case OT_OP_BatchNormalization:
    case OT_OP_Add:
    case OT_OP_Sum:
    case OT_OP_Mul:
    case OT_OP_Concat:
    case OT_OP_Relu:
    case OT_OP_Clip:
    case OT_OP_LeakyRelu:
    case OT_OP_Sigmoid:
    case OT_OP_Tanh:
    case OT_OP_HardSigmoid: return true;
    default: return false;
    }
}

/* Convolutions make blocked tensors; what keeps blocks hands them on when all it reads is blocked. */
bool ot_cost_makes_blocked(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    if (!t->is_cache || !t->fuses || n->n_out < 1 || n->out[0] == OT_NONE || g->values[n->out[0]].rank != 4) return false;
    if (n->op == OT_OP_Conv || (t->engine && n->op == OT_OP_ConvTranspose)) return true;
    if (!keeps_blocks(n) && !(t->engine && is_elementwise(n))) return false; /* chains run in the layout that is there */
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->act[n->in[k]] && !s->blocked[n->in[k]]) return false;
    return true;
}

/* The reader takes v as it is blocked. */
static bool reads_blocked(const ot_seq *s, const ot_node *reader)
{
    if (reader->op == OT_OP_Conv || (reader->op == OT_OP_ConvTranspose && s->sums)) return true;
    return reader->n_out > 0 && reader->out[0] != OT_NONE && s->blocked[reader->out[0]];
}

/* ConvTranspose is a matrix product into a column buffer, which is then summed into place. The engine's convolves to an array of
 * its result's size, which is then interleaved. */
double ot_cost_work(const ot_seq *s, uint32_t p, const ot_target *t)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    if (!t->is_cache || !t->fuses || n->op != OT_OP_ConvTranspose || n->n_in < 2) return 0;
    const ot_value *x = &g->values[n->in[0]];
    if (x->rank < 3 || x->dims[0] < 1 || x->dims[1] < 1) return 0;
    if (t->engine) return n->n_out > 0 && n->out[0] != OT_NONE ? (double)s->bytes[n->out[0]] : 0;
    double channels = (double)x->dims[1]; /* weights / channels: numbers per position; one sample at a time */
    return (double)s->elems[n->in[1]] / channels * (double)s->bytes[n->in[0]] / channels / (double)x->dims[0];
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
    if (!t->is_cache || !t->fuses || n->n_in < 1 || n->n_out < 1 || n->in[0] == OT_NONE || n->out[0] == OT_NONE) return 0;
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    if (n->op == OT_OP_ConvTranspose && t->engine) return 2.0 * s->work[p];
    if (n->op == OT_OP_ConvTranspose) return 2.0 * s->work[p] * (double)ot_max(1, x->rank > 0 ? x->dims[0] : 1);
    double extra = 0;
    if (n->op == OT_OP_Conv && x->rank == 4 && x->dims[1] >= 8 && !s->blocked[n->in[0]]) extra = 2.5 * (double)s->bytes[n->in[0]];
    if (!s->blocked[n->out[0]] || next_is_fused(s, y)) return extra;
    bool plain = y->is_output;
    for (uint32_t u = 0; u < y->n_uses; u++) plain = plain || !reads_blocked(s, &g->nodes[y->uses[u]]);
    return plain ? extra + 2.0 * (double)s->bytes[n->out[0]] : extra;
}

bool ot_cost_blocked(const ot_seq *s, ot_id v, const ot_target *t)
{
    const ot_value *x = &s->g->values[v];
    if (!t->is_cache || !t->fuses || x->is_output || s->def[v] == OT_NONE || !s->blocked[v]) return false;
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (reads_blocked(s, &s->g->nodes[x->uses[u]])) return true;
    return false;
}

/* A copy; where every reader takes blocks, also out of the blocked layout and back, and operators that are merged otherwise
 * (the residual Add and its activation) run on their own. */
double ot_cost_crop(const ot_seq *s, ot_id v, const ot_target *t)
{
    const ot_value *x = &s->g->values[v];
    if (t->engine) return s->blocked[v] ? 2 : 1; /* blocked windows are copied; others are taken where they lie, in short rows */
    if (!t->is_cache || !t->fuses || !s->blocked[v]) return 2;
    for (uint32_t u = 0; u < x->n_uses; u++)
        if (!reads_blocked(s, &s->g->nodes[x->uses[u]])) return 2;
    return 6;
}

int64_t ot_cost_weights(const ot_seq *s, uint32_t p)
{
    const ot_node *n = &s->g->nodes[s->node[p]];
    int64_t sum = 0;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !s->act[n->in[k]]) sum += s->bytes[n->in[k]];
    return sum;
}

/* A node that the runtime merges into another one, or that moves nothing. */
static void free_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    /* What a merged node writes was counted as its producer's output, unless that seemed to stay in fast memory. */
    if (n->n_out > 0 && n->out[0] != OT_NONE && g->values[n->out[0]].is_output && s->bytes[n->out[0]] <= t->fast_bytes)
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
        double b = (double)s->bytes[v];
        x->memory += b / ot_cost_bw(t, b);
        x->traffic += b > (double)t->fast_bytes || s->def[v] == OT_NONE ? b : 0;
        if (s->act[v]) in_elems += (double)s->elems[v];
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        if (v == OT_NONE) continue;
        double b = (double)s->bytes[v];
        x->memory += b / ot_cost_bw(t, b);
        x->traffic += b > (double)t->fast_bytes || g->values[v].is_output ? b : 0;
        out_elems += (double)s->elems[v];
    }
    x->compute = ot_cost_compute(g, n, t, s->macs[p], (int64_t)out_elems, (int64_t)in_elems);
    x->compute = ot_cost_compute_cut(s, p, t, x->compute, NULL, 0);
    x->overhead = t->node_overhead;
}

/* Seconds that the nodes merged with the one at p compute, while its group's operands are read and written. */
static double merged_compute(const ot_seq *s, uint32_t p, const ot_target *t)
{
    double sum = 0;
    if (!t->engine || !t->is_cache) return 0;
    for (uint32_t q = p + 1; q < s->n && q <= p + GROUP_REACH; q++) {
        const ot_node *n = &s->g->nodes[s->node[q]];
        if (!s->fused[q] || s->head[q] != p || !computes(s, q) || s->tail[q] != OT_NONE) continue;
        sum += ot_cost_compute(s->g, n, t, 0, s->elems[n->out[0]], s->elems[n->out[0]]);
    }
    return sum;
}

void ot_cost_node(const ot_seq *s, uint32_t p, const ot_target *t, ot_node_cost *x)
{
    const ot_graph *g = s->g;
    const ot_node *n = &g->nodes[s->node[p]];
    *x = (ot_node_cost){.node = s->node[p], .macs = s->macs[p], .is_fused = s->fused[p]};
    if (s->fused[p] && t->engine && t->is_cache)
        engine_fused_node(s, p, t, ot_cost_compute(g, n, t, s->macs[p], s->elems[n->out[0]], s->elems[n->out[0]]), x);
    else if (s->fused[p] || (ot_op_cost(n->op) == OT_COST_FREE && n->op != OT_OP_OPAQUE))
        free_node(s, p, t, x);
    else
        whole_node(s, p, t, x);
    double extra = s->extra[p] / ot_cost_bw(t, s->extra[p] / 2); /* layout changes do not overlap */
    double merged = s->fused[p] ? 0 : merged_compute(s, p, t);
    x->time = ot_cost_both(s, p, t, x->compute + merged, x->memory) - merged + extra + x->overhead;
    x->memory += extra;
}
