/* Extents that the runtime cannot know before it runs.
 *
 *      x -----------------> Slice --> x'       x' has the extents of x, as ends * 1 says
 *      ends --> Mul ----------^
 *               one, the length of the branch's sequence
 *      shape -> Mul --> Reshape, Expand, Resize
 *
 * A runtime that knows two values to be of the same extents gives the second the buffer of the
 * first, and plans that for the whole graph: a buffer waits for its next value, be that hundreds of
 * nodes later, and what is resident by then is the sum of such plans. A value of extents that are
 * not known gets a buffer when it is made, and gives it back when nobody reads it any more.
 *
 * What is written states no extents in the branch, and what makes large values of stated extents
 * reads them from what nobody folds away. The Slice copies an input; where values are small, they
 * stay as they are, but for tables that tell how often a Scan runs: by that, its stacked results
 * have known extents.
 *
 *      NAFNet, 512 x 512, the same tiles      332 MB -> 192 MB
 *      Swin2SR                                376 MB -> 252 MB
 *      DynUNet, 96 x 96 x 96, Scans, too      469 MB -> 360 MB
 */
#include "transform_internal.h"

#define LEAST     (INT64_C(64) << 10) /* bytes of values that count */
#define SPATIAL   2                   /* axes from here on, of values of rank 4 and more */
#define RANK_MANY 4

typedef struct hiding {
    ot_graph *g;
    ot_id one;      /* a scalar, int64 */
    ot_id *hidden;  /* [n_values] of shapes: the product with `one`; OT_NONE: there is none yet */
    uint32_t n_old; /* values that there were */
} hiding;

static ot_status nomem(const hiding *x) { return ot_fail_nomem(x->g->model->diag); }

static bool is_large(const ot_value *v)
{
    int64_t bytes;
    return v->is_tensor && ot_value_is_static(v) && ot_value_bytes(v, &bytes) && bytes >= LEAST;
}

/* *out: shape x one, made once for each shape. */
static ot_status multiply(hiding *x, ot_id shape, ot_id *out)
{
    ot_graph *g = x->g;
    const int64_t rank = g->values[shape].rank == 1 ? g->values[shape].dims[0] : OT_DIM_UNKNOWN;
    if (shape < x->n_old && x->hidden[shape] != OT_NONE) {
        *out = x->hidden[shape];
        return OT_OK;
    }
    const char *name = ot_fresh_name(g->model, "tile/branch/extents");
    *out = name ? ot_value_new(g, name, OT_I64, 1, &rank) : OT_NONE;
    if (*out == OT_NONE || ot_node_new(g, &(ot_node_def){.op = "Mul",
                                                         .name = name,
                                                         .in = {(const ot_id[]){shape, x->one}, 2},
                                                         .out = {out, 1}}) == OT_NONE)
        return nomem(x);
    if (shape < x->n_old) x->hidden[shape] = *out;
    return OT_OK;
}

/* A whole Slice of v along these axes ([n]), whose ends nobody knows beforehand; for_all: that is
 * what all read that read v. */
static ot_status slice_whole(hiding *x, ot_id v, const int64_t *axes, int64_t n, bool for_all,
                             ot_id *out)
{
    ot_graph *g = x->g;
    const ot_value in = g->values[v];
    int64_t ends[OT_RANK_MAX];
    static const int64_t starts[OT_RANK_MAX] = {0};
    for (int64_t k = 0; k < n; k++) ends[k] = in.dims[axes[k]];
    const char *const names[] = {
        ot_fresh_name(g->model, "tile/branch/starts"), ot_fresh_name(g->model, "tile/branch/ends"),
        ot_fresh_name(g->model, "tile/branch/axes"), ot_fresh_name(g->model, "tile/branch/input")};
    const int64_t *const data[] = {starts, ends, axes};
    ot_id read[4] = {v, OT_NONE, OT_NONE, OT_NONE};
    for (int k = 0; k < 4; k++)
        if (!names[k]) return nomem(x);
    for (int k = 0; k < 3; k++) {
        read[k + 1] = ot_const_i64(g, names[k], data[k], 1, &n);
        if (read[k + 1] == OT_NONE) return nomem(x);
    }
    *out = ot_value_new(g, names[3], in.dtype, in.rank, in.dims);
    if (*out == OT_NONE) return nomem(x);
    if (for_all) OT_TRY(ot_replace_uses(g, v, *out));
    OT_TRY(multiply(x, read[2], &read[2]));
    const ot_node_def def = {.op = "Slice", .name = names[3], .in = {read, 4}, .out = {out, 1}};
    return ot_node_new(g, &def) == OT_NONE ? nomem(x) : OT_OK;
}

/* A whole Slice between v, which the branch captures, and its readers. */
static ot_status hide_input(hiding *x, ot_id v)
{
    ot_graph *g = x->g;
    const ot_value in = g->values[v];
    int64_t axes[OT_RANK_MAX], n = 0;
    ot_id out;
    for (int32_t k = in.rank >= RANK_MANY ? SPATIAL : 0; k < in.rank; k++)
        if (in.dims[k] > 1) axes[n++] = k;
    return n == 0 ? OT_OK : slice_whole(x, v, axes, n, true, &out);
}

/* How often Scan `id` runs: each input that tells, and whose extents are known. Those that are
 * large are hidden by then. */
static ot_status hide_length(hiding *x, ot_id id)
{
    ot_graph *g = x->g;
    const ot_node n = g->nodes[id];
    const int64_t n_scan = ot_attr_int(&n, "num_scan_inputs", 0);
    size_t n_axes = 0;
    const int64_t *axes = ot_attr_ints(&n, "scan_input_axes", &n_axes);
    bool large = false;
    for (uint32_t k = 0; k < n.n_out; k++)
        large |= n.out[k] != OT_NONE && is_large(&g->values[n.out[k]]);
    if (!large || n_scan <= 0 || n_scan > n.n_in) return OT_OK;
    for (uint32_t k = n.n_in - (uint32_t)n_scan, j = 0; k < n.n_in; k++, j++) {
        const ot_value *v = &g->values[n.in[k]];
        const int64_t axis = j < n_axes ? axes[j] : 0;
        ot_id out;
        if (is_large(v) || !ot_value_is_static(v) || axis < 0 || axis >= v->rank) continue;
        OT_TRY(slice_whole(x, n.in[k], &axis, 1, false, &out));
        g->nodes[id].in[k] = out;
        g->nodes[id].proto = NULL;
    }
    return OT_OK;
}

/* Which operand of n says the extents of its large result; OT_NONE: none. */
static uint32_t shape_operand(const ot_graph *g, const ot_node *n)
{
    const uint32_t k = n->op == OT_OP_Reshape || n->op == OT_OP_Expand ? 1
                       : n->op == OT_OP_Resize                         ? 3
                                                                       : OT_NONE;
    if (n->dead || n->is_static || k == OT_NONE || k >= n->n_in || n->in[k] == OT_NONE ||
        n->in[0] == OT_NONE || n->n_out != 1 || n->out[0] == OT_NONE)
        return OT_NONE;
    const ot_value *shape = &g->values[n->in[k]];
    return ot_value_is_precomputed(g, n->in[k]) && shape->dtype == OT_I64 &&
                   !ot_value_is_precomputed(g, n->in[0]) && is_large(&g->values[n->out[0]])
               ? k
               : OT_NONE;
}

ot_status rw_hide_extents(ot_graph *g, ot_id one)
{
    ot_arena *a = ot_arena_new();
    hiding x = {.g = g,
                .one = one,
                .hidden = a ? OT_NEW_N(a, ot_id, g->n_values + 1u) : NULL,
                .n_old = g->n_values};
    const bool *named = x.hidden ? rw_read_by_file(g, a) : NULL;
    ot_status s = named ? OT_OK : nomem(&x);
    for (uint32_t v = 0; s == OT_OK && v < x.n_old; v++) x.hidden[v] = OT_NONE;
    const uint32_t n_nodes = g->n_nodes;
    for (ot_id k = 0; s == OT_OK && k < n_nodes; k++) {
        const uint32_t at = shape_operand(g, &g->nodes[k]);
        ot_id shape;
        if (g->nodes[k].op == OT_OP_Scan && !g->nodes[k].dead) s = hide_length(&x, k);
        if (s != OT_OK || at == OT_NONE) continue;
        s = multiply(&x, g->nodes[k].in[at], &shape);
        if (s != OT_OK) break;
        g->nodes[k].in[at] = shape;
        g->nodes[k].proto = NULL;
    }
    for (ot_id v = 0; s == OT_OK && v < x.n_old; v++) {
        const ot_value *y = &g->values[v];
        if (y->is_outer && !y->is_const && !y->init && is_large(y) && !named[v])
            s = hide_input(&x, v);
    }
    g->states_no_extents = true;
    ot_arena_free(a);
    return s;
}
