/* Results of regions that a residual network reads in channel blocks. ONNX Runtime adds in blocks
 * where both operands are; what tiles are joined to is plain, so the sum is, too, and so are all
 * sums of the stage behind it: each convolution changes its operand and its result, and both
 * layouts of a value are there at once.
 *
 *     region --> v ---> Conv ---> Conv --> Add      region --> v --> Conv of ones --> w ---> ...
 *                '------------------------'                         (one a channel)   '--> Add
 *
 * A depthwise convolution of one tap, which is 1, copies v to blocks: bit for bit, but for zeros
 * below 0.
 */
#include "fusion/fusion.h"
#include "machine/runtime/runtime.h"
#include "transform_internal.h"

typedef struct readers {
    uint32_t convs, sums; /* in blocks where v is; of what is in blocks and v */
} readers;

#define MOST_DEPTH 6 /* of operators behind a convolution that are looked through */

static bool makes_blocks(const ot_graph *g, const ot_runtime *r, const ot_node *n)
{
    return ot_runtime_makes_blocks(r, n) && n->n_in > 1 && n->in[1] != OT_NONE &&
           g->values[n->in[1]].is_const;
}

/* v is made in blocks whatever is made of other results: by a convolution, or from such values by
 * operators that keep them. */
static bool is_in_blocks(const ot_graph *g, const ot_runtime *r, ot_id v, int depth)
{
    const ot_value *x = v == OT_NONE ? NULL : &g->values[v];
    if (!x || x->producer == OT_NONE || rw_is_tile(&g->nodes[x->producer])) return false;
    const ot_node *n = &g->nodes[x->producer];
    if (makes_blocks(g, r, n)) return true;
    if (depth == 0 || !ot_runtime_keeps_blocks(r, n)) return false;
    const bool with_constants = n->op == OT_OP_BatchNormalization || n->op == OT_OP_Clip;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const bool is_const = n->in[k] == OT_NONE || g->values[n->in[k]].is_const;
        if (is_const ? !with_constants : !is_in_blocks(g, r, n->in[k], depth - 1)) return false;
    }
    return n->n_in > 0;
}

/* A sum of v and of what is in blocks. */
static bool adds_blocks(const ot_graph *g, const ot_runtime *r, const ot_node *n, ot_id v)
{
    return n->op == OT_OP_Add && n->n_in == 2 && n->in[0] != n->in[1] &&
           is_in_blocks(g, r, n->in[n->in[0] == v], MOST_DEPTH);
}

static bool count_readers(const ot_graph *g, const ot_runtime *r, ot_id v, readers *out)
{
    const ot_value *x = &g->values[v];
    *out = (readers){0};
    for (uint32_t k = 0; k < x->n_uses; k++) {
        const ot_node *n = &g->nodes[x->uses[k]];
        if (rw_is_tile(n)) return false;
        if (makes_blocks(g, r, n) && n->in[0] == v)
            out->convs++;
        else if (adds_blocks(g, r, n, v))
            out->sums++;
        else
            return false;
    }
    return true;
}

static bool wants_blocks(const ot_graph *g, const ot_runtime *r, ot_id v)
{
    const ot_value *x = &g->values[v];
    readers n;
    if (x->producer == OT_NONE || !rw_is_tile(&g->nodes[x->producer]) || x->is_output) return false;
    if (x->dtype != OT_F32 || x->rank != 4 || !ot_value_is_static(x) || r->conv.block == 0 ||
        x->dims[1] % r->conv.block != 0)
        return false;
    return count_readers(g, r, v, &n) && n.convs > 0 && n.sums > 0;
}

static ot_status copy_to_blocks(ot_graph *g, ot_id v)
{
    ot_model *m = g->model;
    const ot_value x = g->values[v];
    const int64_t channels = x.dims[1], dims[4] = {channels, 1, 1, 1};
    const char *base = ot_format(m->arena, "tile/blocks/%s", x.name),
               *to = ot_format(m->arena, "tile/blocks/%s/out", x.name),
               *ones = ot_format(m->arena, "tile/blocks/%s/ones", x.name);
    base = base ? ot_fresh_name(m, base) : NULL;
    to = to ? ot_fresh_name(m, to) : NULL;
    ones = ones ? ot_fresh_name(m, ones) : NULL;
    float *taps = OT_NEW_N(m->arena, float, (size_t)channels);
    if (!base || !to || !ones || !taps) return ot_fail_nomem(m->diag);
    for (int64_t k = 0; k < channels; k++) taps[k] = 1;
    const ot_id w = ot_value_new(g, to, x.dtype, x.rank, x.dims),
                weights = w == OT_NONE ? w : ot_const_f32(g, ones, taps, 4, dims);
    if (weights == OT_NONE) return ot_fail_nomem(m->diag);
    for (uint32_t k = 0; k < x.n_uses; k++) rw_read_instead(&g->nodes[x.uses[k]], v, w);
    const ot_attr group = ot_mk_int("group", channels);
    return ot_node_new(g, &(ot_node_def){.op = "Conv",
                                         .name = base,
                                         .in = {(const ot_id[]){v, weights}, 2},
                                         .out = {&w, 1},
                                         .attrs = {&group, 1}}) == OT_NONE
               ? ot_fail_nomem(m->diag)
               : OT_OK;
}

ot_status rw_blocked_results(ot_graph *g, const ot_runtime *r)
{
    const uint32_t n = g->n_values;
    bool any = false;
    for (ot_id v = 0; v < n; v++) {
        if (!wants_blocks(g, r, v)) continue;
        OT_TRY(copy_to_blocks(g, v));
        any = true;
    }
    if (!any) return OT_OK;
    ot_confirm(g, OT_P_SHAPES);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
