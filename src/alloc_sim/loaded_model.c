/* What a session holds once a model is loaded, before it runs, and on the way there (ONNX Runtime
 * on a CPU, measured).
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
 * Nodes that run take memory for their implementations and tables, whatever they do.
 *
 *   file    w  --copied-->  tensor  --reordered-->  initializer  --packed-->  w'
 *           '---------- free by then, but the heap keeps their pages ---'
 *
 * What was freed on the way stays resident where it lies below what is live; pieces above the
 * largest that the C library takes from its heap go back to the system. Constants that are
 * computed while loading all exist until that is done. Runs take a part of what is free.
 */
#include "simulate.h"

/* a session that runs next to nothing: code and tables that making it touches */
#define SESSION        (INT64_C(55) << 19)
#define NODE           (INT64_C(12) << 10)
#define PACKED_COLUMNS 16 /* panels of a matrix product's weights */

/* The C library maps pieces of that size or more for themselves, until one of them is freed: then
 * up to that, and never larger ones. */
#define MAPPED_FROM  (INT64_C(128) << 10)
#define MAPPED_ABOVE (INT64_C(32) << 20)

/* What was freed of a weight by the time that the model is loaded, for each byte of it, by its
 * size; fitted to 55 networks in ONNX Runtime 1.31.1. */
typedef struct freed_row {
    int64_t below;                  /* bytes of the weight */
    double conv, product, constant; /* what it becomes */
} freed_row;
static const freed_row FREED[] = {
    {MAPPED_FROM, 2.2, 1.0, 1.0},
    {INT64_C(1) << 20, 1.4, 0.2, 0},
    {INT64_C(4) << 20, 1.6, 0.6, 0},
    {MAPPED_ABOVE, 1.7, 0.6, 0},
    {INT64_MAX, 0, 0, 0},
};
#define FREED_FOLDED 0.7 /* the same of a constant that is computed on the way, smaller pieces */
/* Copies of a mapped weight that exist at once on the way, besides the last. */
#define CONV_COPIES 4

typedef struct tally {
    const ot_runtime *r;
    ot_arena *a;
    ot_map *kept;                 /* names of weights that stay beside what is packed */
    int64_t packed, plain, nodes; /* bytes */
    int64_t freed, folded;        /* bytes that are free by the end, or are made on the way */
    int64_t transient;            /* the most that is there beside what is resident by then */
    bool mapped;                  /* weights are in files beside the model, which are not copied */
} tally;

typedef enum weight_kind { WEIGHT_OF_CONV, WEIGHT_OF_PRODUCT, WEIGHT_PLAIN } weight_kind;

/* A node makes v while the model is loaded: from other numbers, not by another name of them. */
static bool is_computed(const ot_graph *g, const ot_value *v)
{
    return v->producer != OT_NONE && g->nodes[v->producer].op != OT_OP_Reshape;
}

/* What loading weight v, of so many bytes, leaves behind. */
static void count_copies(tally *x, const ot_graph *g, const ot_value *v, int64_t bytes,
                         weight_kind kind)
{
    uint32_t k = 0;
    while (bytes >= FREED[k].below) k++;
    const freed_row *row = &FREED[k];
    double part = kind == WEIGHT_OF_CONV      ? row->conv
                  : kind == WEIGHT_OF_PRODUCT ? row->product
                                              : row->constant;
    /* nor is what is computed copied from the file */
    if (x->mapped || is_computed(g, v)) part = part > 1 ? part - 1 : 0;
    const int64_t copies = kind == WEIGHT_OF_CONV && bytes >= MAPPED_ABOVE ? CONV_COPIES : 1;
    x->freed += (int64_t)((double)bytes * part);
    if (!x->mapped || kind != WEIGHT_PLAIN) x->transient = ot_max(x->transient, copies * bytes);
}

/* Bytes of v as implementations read it. 0: not known. */
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

/* The weight of a matrix product stays as it is: a body makes a constant of what it captures, or
 * it is a loop of a branch, which packs none that it captures. */
static ot_status keep_original(tally *x, const ot_graph *g, ot_id w)
{
    const ot_id by = g->values[w].producer;
    const ot_node *n = by == OT_NONE ? NULL : &g->nodes[by];
    const ot_id from = n && n->op == OT_OP_Reshape && n->n_in > 0 ? n->in[0] : w;
    const char *name = g->values[from == OT_NONE ? w : from].name;
    if (ot_map_get(x->kept, name) != OT_NONE) return OT_OK;
    x->plain += bytes_of(&g->values[w]);
    if (g->values[w].is_outer)
        count_copies(x, g, &g->values[w], bytes_of(&g->values[w]), WEIGHT_PLAIN);
    return ot_map_put(x->kept, name, w) ? OT_OK : OT_E_NOMEM;
}

static ot_status count_product(tally *x, const ot_graph *g, const ot_node *n, uint32_t depth,
                               bool *seen)
{
    const ot_id w = n->in[1];
    const ot_value *v = &g->values[w];
    const bool again = seen[w];
    bool input;
    seen[w] = true;
    if ((n->op == OT_OP_MatMul || n->op == OT_OP_Gemm) && v->rank == 2) {
        const bool turned = n->op == OT_OP_Gemm && ot_attr_int(n, "transB", 0) != 0;
        if (v->is_outer && depth > 1) return again ? OT_OK : keep_original(x, g, w);
        if (!again) {
            x->packed += padded(v, turned ? 0 : 1, PACKED_COLUMNS);
            count_copies(x, g, v, bytes_of(v), WEIGHT_OF_PRODUCT);
            /* the enclosing graph lets go of it when all bodies have packed theirs */
            if (v->is_outer) x->folded += bytes_of(v);
        }
        return again || depth == 0 || v->is_outer ? OT_OK : keep_original(x, g, w);
    }
    if (n->op == OT_OP_Conv && ot_sim_is_blocked(g, x->r, n, &input)) {
        if (!again || ot_onnxruntime_folded(g, (ot_id)(n - g->nodes)) != OT_NONE) {
            x->packed += padded(v, 0, x->r->conv.block);
            count_copies(x, g, v, padded(v, 0, x->r->conv.block), WEIGHT_OF_CONV);
        }
    } else if (ot_sim_turned_bytes(g, x->r, n) > 0) { /* each node has its own */
        x->packed += bytes_of(v);
        if (!again) count_copies(x, g, v, bytes_of(v), WEIGHT_PLAIN);
    } else if (!again) {
        x->plain += bytes_of(v);
        count_copies(x, g, v, bytes_of(v), WEIGHT_PLAIN);
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

/* Which nodes of a graph are computed while loading, and which values they make: all that reads
 * constants, which includes what the rewriter put in. Casts from and to 8 bits stay. */
typedef struct folding {
    bool *nodes, *values; /* [n_nodes], [n_values] */
} folding;

static bool folds(const folding *f, const ot_graph *g, const ot_node *n)
{
    if (n->is_static) return true;
    if (n->op == OT_OP_OPAQUE || n->op == OT_OP_DequantizeLinear || n->op == OT_OP_QuantizeLinear ||
        n->n_in == 0 || n->n_captured > 0)
        return false;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_GRAPH) return false;
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && !f->values[n->in[k]] && !ot_value_is_precomputed(g, n->in[k]))
            return false;
    return true;
}

static ot_status find_folding(const ot_graph *g, ot_arena *a, folding *f)
{
    *f = (folding){OT_NEW_N(a, bool, g->n_nodes + 1u), OT_NEW_N(a, bool, g->n_values + 1u)};
    if (!f->nodes || !f->values) return OT_E_NOMEM;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        f->nodes[g->order[k]] = folds(f, g, n);
        for (uint32_t j = 0; f->nodes[g->order[k]] && j < n->n_out; j++)
            if (n->out[j] != OT_NONE) f->values[n->out[j]] = true;
    }
    return OT_OK;
}

/* Results that are computed while loading: those that no node which runs reads are there until
 * the end, of the others a copy is made. */
static void count_folded(tally *x, const ot_graph *g, const ot_node *n, const folding *f)
{
    for (uint32_t k = 0; k < n->n_out; k++) {
        const ot_value *v = n->out[k] == OT_NONE ? NULL : &g->values[n->out[k]];
        bool runs = v && v->is_output;
        for (uint32_t u = 0; v && u < v->n_uses; u++) runs |= !f->nodes[v->uses[u]];
        if (v && !runs) x->folded += bytes_of(v);
        if (v && !runs && bytes_of(v) < MAPPED_ABOVE)
            x->freed += (int64_t)((double)bytes_of(v) * FREED_FOLDED);
        if (v && runs) x->transient = ot_max(x->transient, bytes_of(v));
    }
}

/* Bytes of constant v, input `j` of n, that are there: of a table in a mapped file, the rows that
 * are looked up, if nobody else reads it. */
static int64_t read_bytes(const tally *x, const ot_graph *g, const ot_node *n, uint32_t j)
{
    const ot_value *v = &g->values[n->in[j]];
    const int64_t bytes = bytes_of(v);
    if (!x->mapped || !v->init || n->op != OT_OP_Gather || j != 0 || v->n_uses != 1) return bytes;
    return ot_min(bytes, bytes_of(&g->values[n->out[0]]));
}

/* A constant of an enclosing graph that a body reads otherwise than as a weight: it is there once
 * for all. */
static ot_status count_outer(tally *x, const ot_graph *g, ot_id v)
{
    const ot_value *w = &g->values[v];
    if (!w->is_const || ot_map_get(x->kept, w->name) != OT_NONE) return OT_OK;
    x->plain += bytes_of(w);
    count_copies(x, g, w, bytes_of(w), WEIGHT_PLAIN);
    return ot_map_put(x->kept, w->name, v) ? OT_OK : OT_E_NOMEM;
}

static ot_status count_graph(tally *x, const ot_graph *g, uint32_t depth);

static ot_status count_node(tally *x, const ot_graph *g, const ot_node *n, uint32_t depth,
                            const folding *f, bool *seen)
{
    x->nodes += is_half(g, n) ? NODE + NODE / 2 : NODE;
    if (has_weights(g, n)) OT_TRY(count_product(x, g, n, depth, seen));
    for (uint32_t j = 0; j < n->n_in; j++) {
        const ot_id v = n->in[j];
        if (v == OT_NONE || seen[v] || !(f->values[v] || ot_value_is_precomputed(g, v))) continue;
        seen[v] = true;
        if (g->values[v].is_outer) {
            OT_TRY(count_outer(x, g, v));
            continue;
        }
        x->plain += read_bytes(x, g, n, j);
        count_copies(x, g, &g->values[v], bytes_of(&g->values[v]), WEIGHT_PLAIN);
    }
    for (uint32_t j = 0; j < n->n_attrs; j++)
        if (n->attrs[j].kind == OT_ATTR_GRAPH && n->attrs[j].g)
            OT_TRY(count_graph(x, n->attrs[j].g, depth + 1));
    return OT_OK;
}

/* The weights of n, which runs on 8-bit tensors, as they are in the file: packed once. */
static void count_bytes(tally *x, const ot_graph *g, const ot_node *n, bool *seen)
{
    for (uint32_t j = 1; j < n->n_in; j++) {
        const ot_id of = ot_dequantized_from(g, n->in[j]);
        if (of == OT_NONE || seen[of] || !ot_value_is_precomputed(g, of)) continue;
        seen[of] = true;
        x->packed += bytes_of(&g->values[of]);
        count_copies(x, g, &g->values[of], bytes_of(&g->values[of]), WEIGHT_OF_CONV);
    }
}

static ot_status count_graph(tally *x, const ot_graph *g, uint32_t depth)
{
    bool *seen = OT_NEW_N(x->a, bool, g->n_values + 1u);
    folding f;
    ot_on_bytes bytes;
    if (!seen) return OT_E_NOMEM;
    OT_TRY(find_folding(g, x->a, &f));
    OT_TRY(ot_onnxruntime_on_bytes(g, ot_runtime_fuses(x->r), x->a, &bytes));
    OT_TRY(ot_sim_find_unread(g, x->a, bytes.gone));
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (bytes.gone[g->order[k]] || bytes.names[g->order[k]]) continue;
        if (bytes.nodes[g->order[k]]) {
            x->nodes += NODE;
            count_bytes(x, g, n, seen);
            continue;
        }
        if (f.nodes[g->order[k]])
            count_folded(x, g, n, &f);
        else
            OT_TRY(count_node(x, g, n, depth, &f, seen));
    }
    return OT_OK;
}

int64_t ot_loaded_node_bytes(const ot_runtime *r) { return r->chunk_arena ? NODE : 0; }

ot_status ot_loaded_bytes(const ot_graph *g, const ot_runtime *r, ot_arena *a, ot_sim_figures *out)
{
    tally x = {.r = r,
               .a = a,
               .kept = ot_map_new(a),
               .mapped = g->model->has_external || g->model->data_file};
    if (!x.kept) return OT_E_NOMEM;
    OT_TRY(count_graph(&x, g, 0));
    out->loaded = SESSION + x.packed + x.plain + x.nodes + x.freed;
    out->loading = out->loaded + ot_max(x.folded + x.transient - x.freed, 0);
    out->reused = x.freed / OT_SIM_REUSED;
    if (ot_dbg['P'])
        fprintf(stderr,
                "> Loaded: %.2f MB of packed weights, %.2f MB of other constants, %.2f MB for "
                "nodes, %.2f MB free\n",
                (double)x.packed / 1048576.0, (double)x.plain / 1048576.0,
                (double)x.nodes / 1048576.0, (double)x.freed / 1048576.0);
    return OT_OK;
}
