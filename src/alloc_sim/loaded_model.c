/* What a session holds once a model is loaded, before it runs (ONNX Runtime on a CPU, measured).
 *
 *   top    w ----------------------------.      if nobody reads it as it is, w is gone after
 *                                               loading
 *   body   '--> Reshape --> w' --> Conv     w', packed for the kernel: once for each graph that has
 *                                           it ...
 *   tiles  w --> Conv BN,  w --> Conv BN    ... but once for each convolution where something is
 *                                           folded into its weights
 *
 * Matrix products pack their weights once for each graph, too; if a body computes them so, w
 * stays, once for all bodies. Other constants are there once in each graph that reads them.
 * Nodes that run take memory for their kernels and tables, whatever they do.
 *
 *
 *
 */
#include "simulate.h"

#define SESSION        (INT64_C(9) << 20) /* a session that runs next to nothing */
#define NODE           (INT64_C(12) << 10)
#define PACKED_COLUMNS 16 /* panels of a matrix product's weights */

typedef struct tally {
    const ot_runtime *r;
    ot_arena *a;
    ot_map *kept;                 /* names of weights that stay beside what is packed */
    int64_t packed, plain, nodes; /* bytes */
} tally;

/* Bytes of v as kernels read it. 0: not known. */
static int64_t bytes_of(const ot_value *v)
{
    int64_t bytes = 0;
    return ot_sim_held_bytes(v, &bytes) ? bytes : 0;
}

/* v's bytes with its extent `axis` filled up to whole blocks. */
static int64_t padded(const ot_value *v, int32_t axis, int64_t block)
{
    const int64_t bytes = bytes_of(v), extent = axis < v->rank ? v->dims[axis] : 0;
    return extent <= 0 || block <= 0 ? bytes
                                     : bytes / extent * (ot_ceil_div(extent, block) * block);
}

/* The weight of a matrix product stays as it is: a body makes a constant of what it captures. */
static ot_status keep_original(tally *x, const ot_graph *g, ot_id w)
{
    const ot_id by = g->values[w].producer;
    const ot_node *n = by == OT_NONE ? NULL : &g->nodes[by];
    const ot_id from = n && n->op == OT_OP_Reshape && n->n_in > 0 ? n->in[0] : w;
    const char *name = g->values[from == OT_NONE ? w : from].name;
    if (ot_map_get(x->kept, name) != OT_NONE) return OT_OK;
    x->plain += bytes_of(&g->values[w]);
    return ot_map_put(x->kept, name, w) ? OT_OK : OT_E_NOMEM;
}

static ot_status count_product(tally *x, const ot_graph *g, const ot_node *n, bool is_body,
                               bool *seen)
{
    const ot_id w = n->in[1];
    const ot_value *v = &g->values[w];
    const bool again = seen[w];
    bool input;
    seen[w] = true;
    if ((n->op == OT_OP_MatMul || n->op == OT_OP_Gemm) && v->rank == 2) {
        const bool turned = n->op == OT_OP_Gemm && ot_attr_int(n, "transB", 0) != 0;
        if (!again) x->packed += padded(v, turned ? 0 : 1, PACKED_COLUMNS);
        return again || !is_body || v->is_outer ? OT_OK : keep_original(x, g, w);
    }
    if (n->op == OT_OP_Conv && ot_sim_is_blocked(g, x->r, n, &input)) {
        if (!again || ot_onnxruntime_folded(g, (ot_id)(n - g->nodes)) != OT_NONE)
            x->packed += padded(v, 0, x->r->conv.block);
    } else if (!again) {
        x->plain += bytes_of(v);
    }
    return OT_OK;
}

static bool has_weights(const ot_graph *g, const ot_node *n)
{
    if (n->op != OT_OP_Conv && n->op != OT_OP_ConvTranspose && n->op != OT_OP_MatMul &&
        n->op != OT_OP_Gemm)
        return false;
    return n->n_in >= 2 && n->in[1] != OT_NONE && n->n_out > 0 &&
           ot_value_is_precomputed(g, n->in[1]);
}

/* Between nodes of half precision there are casts. */
static bool is_half(const ot_graph *g, const ot_node *n)
{
    return n->n_out > 0 && n->out[0] != OT_NONE && g->values[n->out[0]].dtype == OT_F16;
}

static ot_status count_graph(tally *x, const ot_graph *g, bool is_body)
{
    bool *seen = OT_NEW_N(x->a, bool, g->n_values + 1u);
    if (!seen) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (n->is_static) continue;
        x->nodes += is_half(g, n) ? NODE + NODE / 2 : NODE;
        if (has_weights(g, n)) OT_TRY(count_product(x, g, n, is_body, seen));
        for (uint32_t j = 0; j < n->n_in; j++) {
            const ot_id v = n->in[j];
            if (v == OT_NONE || seen[v] || !ot_value_is_precomputed(g, v) || g->values[v].is_outer)
                continue;
            seen[v] = true;
            x->plain += bytes_of(&g->values[v]);
        }
        for (uint32_t j = 0; j < n->n_attrs; j++)
            if (n->attrs[j].kind == OT_ATTR_GRAPH && n->attrs[j].g)
                OT_TRY(count_graph(x, n->attrs[j].g, true));
    }
    return OT_OK;
}

ot_status ot_loaded_bytes(const ot_graph *g, const ot_runtime *r, ot_arena *a, int64_t *bytes)
{
    tally x = {.r = r, .a = a, .kept = ot_map_new(a)};
    if (!x.kept) return OT_E_NOMEM;
    OT_TRY(count_graph(&x, g, false));
    *bytes = SESSION + x.packed + x.plain + x.nodes;
    if (ot_dbg['P'])
        fprintf(
            stderr,
            "> Loaded: %.2f MB of packed weights, %.2f MB of other constants, %.2f MB for nodes\n",
            (double)x.packed / 1048576.0, (double)x.plain / 1048576.0, (double)x.nodes / 1048576.0);
    return OT_OK;
}
