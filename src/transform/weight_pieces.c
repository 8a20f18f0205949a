/* Large weights in pieces, for runtimes that pack weights while they load a model.
 *
 *   x --> Gemm (W [4096, 25088], transB) --> y
 *
 *   x -+-> Gemm (W rows 0 ..) ------+
 *      +-> Gemm (W rows 640 ..) ----+--> Concat --> y
 *      '-> ...                      |
 *
 * A weight in a file beside the model is mapped, its pages become resident as it is packed, and
 * both are there until the kernel has packed all of it. Packed in pieces, of each of which the
 * runtime lets go before the next, the process holds a piece beside what is packed. Pieces are
 * rows of the weight, which lie in the file as they did: no byte moves. So this is for weights
 * whose first axis is that of the outputs (Gemm with transB, Conv of one group); those of MatMul
 * would have to be written anew. The Concat copies outputs that are small beside the weight.
 *
 *      VGG-16, 448 x 448          927 MB -> 650 MB
 *      AlexNet, 224 x 224         329 MB -> 249 MB; runs take 1 to 3 % longer
 */
#include "transform.h"

#define BLOCK \
    64          /* outputs that kernels compute at a time: of pieces, a multiple but for the last */
#define SMALL 8 /* the output takes at most such a part of the weight's bytes */

/* An operator whose weight is to be split. */
typedef struct split {
    ot_id node, weight, bias; /* bias: OT_NONE where each piece takes what the operator has */
    int32_t axis;             /* of the output that the weight's first axis makes */
    int64_t outputs, rows;    /* on it: of the operator, of a piece */
} split;

static ot_status nomem(const ot_graph *g) { return ot_fail_nomem(g->model->diag); }

/* A constant of float32 whose rows can be named: contents are held, or nobody will read any. */
static bool is_constant(const ot_value *v)
{
    return v->init && !v->overridable && !v->is_input && !v->is_output && !v->is_unpacked &&
           v->producer == OT_NONE && v->dtype == OT_F32 && v->rank > 0 &&
           (v->init->data || !v->init->proto);
}

/* The bias of n, which makes so many outputs on its last axis (Gemm) or that of channels: true
 * if pieces have parts of it, *v, or it fits each as it is, *v OT_NONE. */
static bool splits_bias(const ot_graph *g, const ot_node *n, int64_t outputs, ot_id *v)
{
    *v = OT_NONE;
    if (n->n_in < 3 || n->in[2] == OT_NONE) return true;
    const ot_value *b = &g->values[n->in[2]];
    int64_t elems;
    if (b->rank == 0) return true;
    if (b->rank < 0 || !ot_value_elems(b, &elems)) return false;
    if (n->op == OT_OP_Gemm && b->dims[b->rank - 1] == 1) return true;
    *v = n->in[2];
    return is_constant(b) && b->dims[b->rank - 1] == outputs && elems == outputs;
}

/* Whether n has a weight that is worth to be split into pieces of about `each` bytes. */
static bool find_split(const ot_graph *g, ot_id id, int64_t each, split *x)
{
    const ot_node *n = &g->nodes[id];
    const bool conv = n->op == OT_OP_Conv && ot_attr_int(n, "group", 1) == 1,
               gemm = n->op == OT_OP_Gemm && ot_attr_int(n, "transB", 0) != 0;
    int64_t bytes, made;
    if (n->dead || n->n_captured > 0 || !(conv || gemm) || n->n_in < 2 || n->n_out != 1 ||
        n->in[1] == OT_NONE || n->out[0] == OT_NONE)
        return false;
    const ot_value *w = &g->values[n->in[1]], *y = &g->values[n->out[0]];
    if (!is_constant(w) || w->n_uses != 1 || n->in[0] == n->in[1] || y->dtype != OT_F32 ||
        y->rank < 2 || !ot_value_bytes(w, &bytes) || !ot_value_bytes(y, &made) ||
        bytes < OT_SPLIT_FROM * each || made > bytes / SMALL || w->init->bytes != (size_t)bytes)
        return false;
    *x = (split){.node = id, .weight = n->in[1], .axis = 1, .outputs = w->dims[0]};
    if (y->dims[x->axis] != x->outputs || x->outputs == 0) return false;
    x->rows = ot_ceil_div(ot_ceil_div(x->outputs, ot_ceil_div(bytes, each)), BLOCK) * BLOCK;
    return x->rows < x->outputs && splits_bias(g, n, x->outputs, &x->bias) &&
           (x->bias == OT_NONE || x->bias != x->weight);
}

uint32_t ot_count_split(const ot_graph *g, int64_t each)
{
    uint32_t n = 0;
    split x;
    for (uint32_t k = 0; k < g->n_order && each > 0; k++) n += find_split(g, g->order[k], each, &x);
    return n;
}

/* The constant v from `row` on, [rows] of x->outputs of them. */
static ot_status piece_of(ot_graph *g, ot_id v, const split *x, uint32_t number, int64_t rows,
                          ot_id *out)
{
    ot_arena *a = g->model->arena;
    const ot_value whole = g->values[v];
    const int32_t axis = v == x->weight ? 0 : whole.rank - 1;
    const char *base = ot_format(a, OT_PIECE_PREFIX "%s/%u", whole.name, number),
               *name = base ? ot_fresh_name(g->model, base) : NULL;
    int64_t *dims = ot_memdup(a, whole.dims, (size_t)whole.rank * sizeof *dims);
    ot_tensor *t = ot_memdup(a, whole.init, sizeof *t);
    if (!name || !dims || !t) return nomem(g);
    dims[axis] = rows;
    const size_t row = whole.init->bytes / (size_t)x->outputs;
    *t = (ot_tensor){.dtype = whole.init->dtype,
                     .rank = whole.init->rank,
                     .dims = dims,
                     .bytes = row * (size_t)rows};
    if (whole.init->data)
        t->data = (const char *)whole.init->data + row * (size_t)(number * x->rows);
    *out = ot_value_new(g, name, whole.dtype, whole.rank, dims);
    if (*out == OT_NONE) return nomem(g);
    g->values[*out].init = t;
    g->values[*out].is_const = true;
    return OT_OK;
}

/* Piece `number` of x's operator: its result. */
static ot_status write_piece(ot_graph *g, const split *x, uint32_t number, ot_id *out)
{
    ot_arena *a = g->model->arena;
    const ot_node n = g->nodes[x->node];
    const ot_value y = g->values[n.out[0]], w = g->values[x->weight];
    const int64_t first = number * x->rows, rows = ot_min(x->rows, x->outputs - first);
    const char *base = ot_format(a, OT_PIECE_PREFIX "%s/%u/result", w.name, number),
               *name = base ? ot_fresh_name(g->model, base) : NULL;
    ot_id *in = ot_memdup(a, n.in, n.n_in * sizeof *in);
    int64_t *dims = ot_memdup(a, y.dims, (size_t)y.rank * sizeof *dims);
    if (!name || !in || !dims) return nomem(g);
    dims[x->axis] = rows;
    OT_TRY(piece_of(g, x->weight, x, number, rows, &in[1]));
    if (x->bias != OT_NONE) OT_TRY(piece_of(g, x->bias, x, number, rows, &in[2]));
    *out = ot_value_new(g, name, y.dtype, y.rank, dims);
    if (*out == OT_NONE) return nomem(g);
    const ot_node_def def = {.op = n.op_type,
                             .name = name,
                             .in = {in, n.n_in},
                             .out = {out, 1},
                             .attrs = {n.attrs, n.n_attrs}};
    return ot_node_new(g, &def) == OT_NONE ? nomem(g) : OT_OK;
}

static ot_status write_split(ot_graph *g, const split *x)
{
    const uint32_t n = (uint32_t)ot_ceil_div(x->outputs, x->rows);
    const ot_id y = g->nodes[x->node].out[0];
    const ot_attr axis = ot_mk_int("axis", x->axis);
    const char *base = ot_format(g->model->arena, OT_PIECE_PREFIX "%s", g->values[x->weight].name),
               *name = base ? ot_fresh_name(g->model, base) : NULL;
    ot_id *made = OT_NEW_N(g->model->arena, ot_id, n);
    if (!name || !made) return nomem(g);
    for (uint32_t k = 0; k < n; k++) OT_TRY(write_piece(g, x, k, &made[k]));
    ot_node_remove(g, x->node);
    const ot_node_def def = {
        .op = "Concat", .name = name, .in = {made, n}, .out = {&y, 1}, .attrs = {&axis, 1}};
    return ot_node_new(g, &def) == OT_NONE ? nomem(g) : OT_OK;
}

ot_status ot_split_weights(ot_graph *g, int64_t each)
{
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES | OT_P_SHAPES));
    if (ot_count_split(g, each) == 0) return OT_OK;
    const uint32_t n_nodes = g->n_nodes, n_values = g->n_values;
    bool *read = OT_NEW_N(g->model->arena, bool, n_values + 1u); /* by what is no more */
    if (!read) return nomem(g);
    for (ot_id id = 0; id < n_nodes; id++) {
        split x;
        if (!find_split(g, id, each, &x)) continue;
        OT_TRY(write_split(g, &x));
        read[x.weight] = true;
        if (x.bias != OT_NONE) read[x.bias] = true;
    }
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    for (ot_id v = 0; v < n_values; v++)
        if (read[v]) ot_value_drop_unread(g, v);
    return ot_assure(g, OT_P_ORDER | OT_P_USES);
}
