/* The accumulator of trial tilings and built regions: what tiles read, compute, make and hold,
 * added up. */
#include "tile_totals.h"

#include <math.h>

/* a working set of more is as good as none that fits, and sums of several stay within 64 bits */
#define MOST_BYTES (INT64_C(1) << 50)

static bool is_empty(ot_win a) { return a.lo >= a.hi; }
void ot_node_cut_start(ot_node_cut *x, const ot_node *n, int8_t axis, const int8_t *in_axis,
                       double tiles)
{
    x->axis = axis;
    x->tiles = tiles;
    x->made = axis < 0 && axis != OT_AX_SUM ? ot_extents_whole(tiles) : (ot_extents){0};
    for (uint32_t k = 0; k < n->n_in; k++) x->read[k] = in_axis[k] >= 0 ? 0 : tiles;
}

static bool is_node_cut(const ot_node_cut *x) { return x->axis >= 0 || x->axis == OT_AX_SUM; }

void ot_node_cut_add(ot_node_cut *x, const ot_node *n, const int8_t *in_axis, const ot_op_tile *t,
                     double weight)
{
    if (is_empty(t->made) || !is_node_cut(x)) return;
    ot_extents_add(&x->made, t->made.hi - t->made.lo, weight);
    for (uint32_t k = 0; k < n->n_in; k++)
        if (in_axis[k] >= 0 && !is_empty(t->in[k]))
            x->read[k] += (double)(t->in[k].hi - t->in[k].lo) * weight;
}

void ot_node_cut_finish(ot_node_cut *x, const ot_graph *g, const ot_node *n, uint32_t lead,
                        const int8_t *in_axis)
{
    if (!is_node_cut(x)) return;
    const ot_value *v = x->axis == OT_AX_SUM ? &g->values[n->in[0]] : &g->values[n->out[lead]];
    ot_extents_finish(&x->made, v->dims[x->axis == OT_AX_SUM ? in_axis[0] : x->axis]);
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && in_axis[k] >= 0)
            x->read[k] /= (double)g->values[n->in[k]].dims[in_axis[k]];
}

/* Operand k is cut in no dim. */
static bool is_whole(const int8_t *const *in_axis, uint32_t n_dims, uint32_t k)
{
    for (uint32_t d = 0; d < n_dims; d++)
        if (in_axis[d][k] >= 0) return false;
    return true;
}

/* A merged node works on what its producer has at hand; others may write over an operand of the
 * same size. */
static bool runs_in_place(const ot_seq *s, const ot_target *t, uint32_t pos, const bool *later)
{
    const ot_node *n = &s->g->nodes[s->node[pos]];
    if (n->n_out == 0 || n->out[0] == OT_NONE) return false;
    if (s->fused[pos] || s->strided[pos] != OT_NONE) return true;
    if (!ot_runtime_in_place(t->runtime, n)) return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        if (v != OT_NONE && s->act[v] && !later[k] && s->bytes[v] == s->bytes[n->out[0]])
            return true;
    }
    return false;
}

ot_node_facts ot_node_facts_of(const ot_seq *s, const ot_target *t, const ot_node_use *u,
                               double *bytes)
{
    const uint32_t pos = u->pos;
    const ot_node *n = &s->g->nodes[s->node[pos]];
    bool free = s->fused[pos] || s->strided[pos] != OT_NONE || ot_op_cost(n->op) == OT_COST_FREE;
    ot_node_facts f = {.node = n, .pos = pos, .n_dims = u->n_dims, .bytes = bytes, .is_free = free};
    double out_elems = 0, in_elems = 0;
    bool packs = ot_op_cost(n->op) == OT_COST_GEMM && s->tail[pos] == OT_NONE;
    for (uint32_t k = 0; k < n->n_in; k++) {
        ot_id v = n->in[k];
        bool whole = v != OT_NONE && is_whole(u->in_axis, u->n_dims, k);
        bytes[k] = v == OT_NONE || (whole && !s->act[v]) ? 0 : ot_cost_moved(s, v, t);
        if (v == OT_NONE || !s->act[v]) continue;
        in_elems += (double)s->elems[v];
        if (packs && whole) f.whole_reads += (double)s->bytes[v];
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        ot_id v = n->out[k];
        bool used = v != OT_NONE &&
                    (s->g->values[v].n_uses > 0 || s->g->values[v].is_output || k == u->lead);
        bytes[n->n_in + k] = used ? (double)s->bytes[v] : 0;
        if (v != OT_NONE) out_elems += (double)s->elems[v];
    }
    f.compute = ot_cost_compute(s->g, n, t, s->macs[pos], (int64_t)out_elems, (int64_t)in_elems);
    f.in_place = runs_in_place(s, t, pos, u->later);
    return f;
}

/* Bytes cut out of output k for its readers: along the dim where that is most. */
static double crop_bytes(const ot_seq *s, const ot_target *t, ot_id v,
                         const ot_node_cut *const *cut, uint32_t n_dims, uint32_t k)
{
    double most = 0;
    for (uint32_t d = 0; d < n_dims; d++) {
        double part = cut[d]->out[k].crop;
        if (part <= 0) continue;
        for (uint32_t e = 0; e < n_dims; e++) part *= e == d ? 1 : cut[e]->out[k].sum;
        if (part > most) most = part;
    }
    return most > 0 ? most * (double)s->bytes[v] * ot_cost_crop(s, v, t) : 0;
}

void ot_sums_add_node(ot_node_sums *x, const ot_seq *s, const ot_target *t, const ot_node_facts *f,
                      const ot_node_cut *const *cut, double before, double after)
{
    const uint32_t n_dims = f->n_dims;
    const ot_node *n = f->node;
    ot_share share[OT_DIMS_MAX];
    double factor = 1, tiles = 1, work = s->work[f->pos], bytes = 0, outs = 0, crop = 0;
    for (uint32_t d = 0; d < n_dims; d++) {
        factor *= cut[d]->made.sum;
        tiles *= cut[d]->tiles;
        work *= cut[d]->made.max;
        share[d] = (ot_share){cut[d]->axis, cut[d]->made.sum, cut[d]->tiles};
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        double b = f->bytes[k];
        for (uint32_t d = 0; d < n_dims; d++) b *= cut[d]->read[k];
        bytes += b;
    }
    for (uint32_t k = 0; k < n->n_out; k++) {
        double sum = f->bytes[n->n_in + k], max = sum;
        if (sum <= 0) continue;
        for (uint32_t d = 0; d < n_dims; d++) sum *= cut[d]->out[k].sum, max *= cut[d]->out[k].max;
        bytes += sum * ot_cost_moved(s, n->out[k], t) / (double)s->bytes[n->out[k]];
        outs += max;
        crop += crop_bytes(s, t, n->out[k], cut, n_dims, k);
    }
    double during = work + (f->in_place ? (before > after ? before : after) : before + outs);
    if (during > x->ws) x->ws = during;
    double compute = ot_cost_compute_cut(s, f->pos, t, f->compute, share, n_dims);
    if (f->is_free) {
        compute = ot_cost_free_compute(s, f->pos, t, compute);
        if (s->tail[f->pos] == OT_NONE) bytes = 0;
    }
    const double bw[3] = {t->bw_fast, t->mid_bytes ? t->bw_mid : t->bw_slow, t->bw_slow},
                 extra = s->extra[f->pos] * factor + crop;
    const double pack = f->whole_reads > 0 ? ot_cost_pack(t, f->whole_reads, tiles) : 0;
    double *sum[3] = {&x->t_fast, &x->t_mid, &x->t_slow};
    for (int k = 0; k < 3; k++)
        *sum[k] += ot_cost_both(s, f->pos, t, compute, bytes / bw[k]) +
                   extra / ot_cost_layout_bw(t, bw[k]) + pack;
    x->transfers += ot_cost_transfers(s, f->pos, t);
    if (!f->is_free) x->nodes += tiles;
    x->macs += s->macs[f->pos] * factor;
}

void ot_totals_start(ot_totals *x, uint32_t n_dims)
{
    *x = (ot_totals){.n_dims = n_dims, .tiles = 1, .outermost = true};
}

void ot_totals_add_input(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v,
                         const int8_t *axis, const ot_extents *e)
{
    const ot_value *val = &s->g->values[v];
    double whole = (double)s->bytes[v], b = ot_tiles_bytes(s, v, e, x->n_dims);
    x->in_bytes += b;
    /* nothing has left a constant in the fast memory */
    if (!s->act[v] || whole > (double)t->fast_bytes) {
        x->in_slow += b;
        x->in_seconds += b / (s->act[v] ? ot_cost_bw(t, whole) : t->bw_slow);
    }
    double largest = whole;
    for (uint32_t d = 0; d < x->n_dims; d++) largest *= e[d].max;
    ot_streams_add_input(x, s, t, v, b, largest);
    /* Contiguous runs: short ones where the last axis is cut, else too few to count. */
    for (uint32_t d = 0; d < x->n_dims; d++) {
        if (val->rank < 2 || axis[d] != val->rank - 1 || s->elems[v] <= 0) continue;
        double run = (double)val->dims[val->rank - 1] * e[d].max * whole / (double)s->elems[v];
        x->runs += run > 0 ? b / run : 0;
        if (s->g->model->opset < OT_SLICE_HAS_INPUTS)
            x->gathered += b * (double)s->elems[v] / whole;
    }
    if (s->hands_blocks[v]) {
        x->border_tile += t->runtime->blocks.border_into * b;
        x->border_whole += t->runtime->blocks.border_out_of * whole;
    }
    x->n_inputs++;
}

void ot_totals_add_output(ot_totals *x, const ot_seq *s, const ot_target *t, ot_id v, int8_t axis)
{
    const ot_value *val = &s->g->values[v];
    double whole = (double)s->bytes[v];
    x->out_bytes += whole;
    x->out_seconds += whole / ot_cost_bw(t, whole);
    if (!val->is_output) x->out_kept += whole;
    ot_streams_add_output(x, s, t, v, axis);
    if (ot_cost_blocked(s, v, t)) {
        x->border_tile_out += t->runtime->blocks.border_out_of * whole;
        x->border_whole_out += t->runtime->blocks.border_into * whole;
    }
    x->n_outputs++;
    x->outermost = x->outermost && axis >= 0;
    for (int8_t k = 0; k < axis; k++) x->outermost = x->outermost && val->dims[k] == 1;
}

void ot_totals_finish(ot_totals *x, const ot_target *t, const ot_node_sums *sums,
                      const ot_value *sink, int8_t innermost, int64_t tile)
{
    x->t_fast = sums->t_fast;
    x->t_mid = sums->t_mid;
    x->t_slow = sums->t_slow;
    x->nodes = sums->nodes;
    x->transfers = sums->transfers;
    x->row = sink->rank > 2 && innermost == sink->rank - 1 ? tile : 0;
    x->outermost = x->outermost && x->n_dims == 1;
    x->ws = (int64_t)fmin(sums->ws + 0.5, (double)MOST_BYTES);
    x->ws = ot_min(x->ws + ot_double_buffers(t, x), MOST_BYTES);
}
