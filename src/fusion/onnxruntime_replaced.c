/* Nodes that ONNX Runtime replaces by one operator, whatever becomes of layouts: what lies
 * between them is never made.
 *
 *   product   MatMul -> Add of a row                         Gemm, on matrices
 *   gate      x -> (factor ->) Sigmoid -> Mul(x)             QuickGelu
 *   gelu      x -> Div -> Erf -> Add 1 -> Mul(x), factor     Gelu
 *             x -> polynomial -> Tanh -> Add 1 -> Mul(x/2)   FastGelu
 *   norm      Sub of the mean -> ... -> Div -> Mul -> Add    LayerNormalization
 *   skip      Add of two -> LayerNormalization               SkipLayerNormalization
 *
 * Each is recognised from the node in its middle that is rarest.
 */
#include "fusion.h"

typedef struct finder {
    const ot_graph *g;
    ot_id *tail;      /* [n_nodes] see ot_onnxruntime_replaced */
    ot_id nodes[12];  /* of the group that is looked at */
    uint32_t n_nodes; /* of them */
} finder;

static const ot_node *node_of(const finder *f, ot_id id)
{
    return id == OT_NONE ? NULL : &f->g->nodes[id];
}

/* The node of that operator which alone reads v; OT_NONE. */
static ot_id reader(const finder *f, ot_id v, ot_op op)
{
    const ot_value *x = &f->g->values[v];
    if (x->is_output || x->n_uses != 1) return OT_NONE;
    const ot_node *n = &f->g->nodes[x->uses[0]];
    return n->op == op && n->n_captured == 0 && n->n_out > 0 && n->out[0] != OT_NONE ? x->uses[0]
                                                                                     : OT_NONE;
}

/* The node of that operator which makes v, for so many readers; OT_NONE. */
static ot_id maker(const finder *f, ot_id v, ot_op op, uint32_t readers)
{
    if (v == OT_NONE) return OT_NONE;
    const ot_value *x = &f->g->values[v];
    if (x->producer == OT_NONE || x->is_output || x->n_uses != readers) return OT_NONE;
    const ot_node *n = &f->g->nodes[x->producer];
    return n->op == op && !n->is_static && n->n_in > 0 && n->in[0] != OT_NONE ? x->producer
                                                                              : OT_NONE;
}

/* A constant of one element. */
static bool is_number(const finder *f, ot_id v)
{
    int64_t elems = 0;
    return v != OT_NONE && ot_value_is_precomputed(f->g, v) &&
           ot_value_elems(&f->g->values[v], &elems) && elems == 1;
}

/* The operand of a node of two beside v; OT_NONE. */
static ot_id beside(const ot_node *n, ot_id v)
{
    if (!n || n->n_in != 2) return OT_NONE;
    return n->in[0] == v ? n->in[1] : n->in[1] == v ? n->in[0] : OT_NONE;
}

/* The operand that is no number, of a node whose other one is; OT_NONE. */
static ot_id scaled(const finder *f, const ot_node *n)
{
    if (!n || n->n_in != 2) return OT_NONE;
    if (is_number(f, n->in[1])) return n->in[0];
    return n->op != OT_OP_Div && is_number(f, n->in[0]) ? n->in[1] : OT_NONE;
}

static void begin(finder *f) { f->n_nodes = 0; }

/* The node joins the group; false: it is none, or in a group already. */
static bool take(finder *f, ot_id id)
{
    if (id == OT_NONE || f->tail[id] != OT_NONE) return false;
    f->nodes[f->n_nodes++] = id;
    return true;
}

/* All that was taken runs where the last one stands. */
static void replace(finder *f)
{
    const ot_id last = f->nodes[f->n_nodes - 1];
    for (uint32_t k = 0; k < f->n_nodes; k++) f->tail[f->nodes[k]] = last;
}

static bool is_real(const finder *f, ot_id v)
{
    const ot_dtype t = f->g->values[v].dtype;
    return t == OT_F32 || t == OT_F16;
}

/* MatMul of static extents with a matrix, and a row that is added. */
static void find_product(finder *f, ot_id id)
{
    const ot_graph *g = f->g;
    const ot_node *n = &g->nodes[id];
    if (n->n_in != 2 || n->in[1] == OT_NONE) return;
    const ot_value *a = &g->values[n->in[0]], *b = &g->values[n->in[1]];
    const ot_id add = reader(f, n->out[0], OT_OP_Add);
    const ot_id bias = add == OT_NONE ? OT_NONE : beside(&g->nodes[add], n->out[0]);
    if (bias == OT_NONE || b->rank != 2 || b->dims[1] < 0 || a->rank < 1) return;
    const ot_value *row = &g->values[bias];
    const bool is_row = row->rank == 1 && row->dims[0] == b->dims[1];
    const bool is_matrix = a->rank == 2 && row->rank == 2 &&
                           (row->dims[0] == 1 || row->dims[0] == a->dims[0]) &&
                           (row->dims[1] == b->dims[1] ||
                            (row->dims[1] == 1 && row->dims[0] == a->dims[0]));
    begin(f);
    if ((is_row || is_matrix) && take(f, id) && take(f, add)) replace(f);
}

/* x * Sigmoid(x), x * Sigmoid(factor * x) */
static void find_gate(finder *f, ot_id id)
{
    const ot_graph *g = f->g;
    const ot_node *n = &g->nodes[id];
    const ot_id mul = reader(f, n->out[0], OT_OP_Mul);
    const ot_id other = mul == OT_NONE ? OT_NONE : beside(&g->nodes[mul], n->out[0]);
    const ot_id factor = maker(f, n->in[0], OT_OP_Mul, 1);
    if (other == OT_NONE) return;
    begin(f);
    if (other != n->in[0] && (scaled(f, node_of(f, factor)) != other || !take(f, factor))) return;
    if (take(f, id) && take(f, mul)) replace(f);
}

/* What both kinds end with: v -> Add of a number -> Mul(x) -> Mul of a number, or -> Mul of what a
 * number makes of x. */
static void end_gelu(finder *f, ot_id v, ot_id x)
{
    const ot_graph *g = f->g;
    const ot_id add = reader(f, v, OT_OP_Add);
    if (scaled(f, node_of(f, add)) != v || !take(f, add)) return;
    const ot_id one = g->nodes[add].out[0], mul = reader(f, one, OT_OP_Mul);
    const ot_id other = beside(node_of(f, mul), one);
    if (other == OT_NONE) return;
    if (other != x) {
        const ot_id half = maker(f, other, OT_OP_Mul, 1);
        if (scaled(f, node_of(f, half)) == x && take(f, half) && take(f, mul)) replace(f);
        return;
    }
    const ot_id made = g->nodes[mul].out[0], half = reader(f, made, OT_OP_Mul);
    if (take(f, mul) && scaled(f, node_of(f, half)) == made && take(f, half)) replace(f);
}

static void find_gelu(finder *f, ot_id id)
{
    const ot_graph *g = f->g;
    const ot_node *n = &g->nodes[id];
    ot_id factor = maker(f, n->in[0], OT_OP_Div, 1);
    if (factor == OT_NONE) factor = maker(f, n->in[0], OT_OP_Mul, 1);
    const ot_id x = scaled(f, node_of(f, factor));
    begin(f);
    if (x != OT_NONE && take(f, factor) && take(f, id)) end_gelu(f, n->out[0], x);
}

/* x + number * x^3, times a number */
static void find_fast_gelu(finder *f, ot_id id)
{
    const ot_graph *g = f->g;
    const ot_node *n = &g->nodes[id];
    const ot_id outer = maker(f, n->in[0], OT_OP_Mul, 1), sum = scaled(f, node_of(f, outer));
    const ot_id add = maker(f, sum, OT_OP_Add, 1);
    if (add == OT_NONE || g->nodes[add].n_in != 2) return;
    for (uint32_t k = 0; k < 2; k++) {
        const ot_id x = g->nodes[add].in[k];
        const ot_id inner = maker(f, g->nodes[add].in[1 - k], OT_OP_Mul, 1);
        const ot_id cube = maker(f, scaled(f, node_of(f, inner)), OT_OP_Pow, 1);
        if (cube == OT_NONE || g->nodes[cube].in[0] != x) continue;
        begin(f);
        if (take(f, cube) && take(f, inner) && take(f, add) && take(f, outer) && take(f, id))
            end_gelu(f, n->out[0], x);
        return;
    }
}

/* Sqrt(mean(d * d) + number), where d = x - mean(x); then d over that, times a row, and a row. */
static void find_norm(finder *f, ot_id id)
{
    const ot_graph *g = f->g;
    const ot_node *n = &g->nodes[id];
    const ot_id add = maker(f, n->in[0], OT_OP_Add, 1), variance = scaled(f, node_of(f, add));
    const ot_id mean = maker(f, variance, OT_OP_ReduceMean, 1);
    const ot_id square = mean == OT_NONE ? OT_NONE : g->values[g->nodes[mean].in[0]].producer;
    const ot_id div = reader(f, n->out[0], OT_OP_Div);
    if (square == OT_NONE || div == OT_NONE || g->nodes[div].n_in != 2) return;
    const ot_node *sq = &g->nodes[square];
    const ot_id d = g->nodes[div].in[0];
    if ((sq->op != OT_OP_Pow && sq->op != OT_OP_Mul) || sq->in[0] != d) return;
    const ot_id sub = maker(f, d, OT_OP_Sub, 2);
    const ot_id first = sub == OT_NONE ? OT_NONE
                                       : maker(f, g->nodes[sub].in[1], OT_OP_ReduceMean, 1);
    if (first == OT_NONE || g->nodes[first].in[0] != g->nodes[sub].in[0]) return;
    const ot_id scale = reader(f, g->nodes[div].out[0], OT_OP_Mul);
    const ot_id bias = scale == OT_NONE ? OT_NONE : reader(f, g->nodes[scale].out[0], OT_OP_Add);
    begin(f);
    if (bias != OT_NONE && take(f, first) && take(f, sub) && take(f, square) && take(f, mean) &&
        take(f, add) && take(f, id) && take(f, div) && take(f, scale) && take(f, bias))
        replace(f);
}

static bool same_dims(const ot_value *x, const ot_value *y)
{
    return x->rank == y->rank && x->rank > 0 &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

/* Where the normalisation over the last axis stands that alone reads v, as one node or as the
 * parts of one; OT_NONE. */
static ot_id norm_of(const finder *f, ot_id v)
{
    const ot_graph *g = f->g;
    const ot_value *x = &g->values[v];
    if (x->is_output || x->n_uses == 0) return OT_NONE;
    const ot_id at = x->uses[0];
    const ot_node *n = &g->nodes[at];
    if (n->op == OT_OP_LayerNormalization) {
        const int64_t axis = ot_attr_int(n, "axis", -1);
        return x->n_uses == 1 && n->n_out == 1 && (axis == -1 || axis == x->rank - 1) ? at
                                                                                      : OT_NONE;
    }
    const ot_id tail = f->tail[at];
    return n->op == OT_OP_ReduceMean && tail != OT_NONE && x->n_uses == 2 &&
                   f->tail[x->uses[1]] == tail
               ? tail
               : OT_NONE;
}

/* The sum of two values of one shape that only a LayerNormalization reads. */
static void find_skip(finder *f, ot_id id)
{
    const ot_graph *g = f->g;
    const ot_node *n = &g->nodes[id];
    const ot_value *y = &g->values[n->out[0]];
    if (n->n_in != 2 || f->tail[id] != OT_NONE || y->rank < 2 || y->rank > 3) return;
    for (uint32_t k = 0; k < 2; k++)
        if (n->in[k] == OT_NONE || ot_value_is_precomputed(g, n->in[k]) ||
            !same_dims(&g->values[n->in[k]], y))
            return;
    const ot_id tail = norm_of(f, n->out[0]);
    if (tail == OT_NONE) return;
    f->tail[id] = f->tail[tail] = tail;
}

ot_status ot_onnxruntime_replaced(const ot_graph *g, ot_arena *a, ot_id **tail)
{
    static const struct {
        ot_op op;
        void (*find)(finder *, ot_id);
    } GROUPS[] = {
        {OT_OP_MatMul, find_product}, {OT_OP_Sigmoid, find_gate}, {OT_OP_Erf, find_gelu},
        {OT_OP_Tanh, find_fast_gelu}, {OT_OP_Sqrt, find_norm},    {OT_OP_Add, find_skip},
    };
    finder f = {.g = g, .tail = OT_NEW_N(a, ot_id, g->n_nodes + 1u)};
    *tail = f.tail;
    if (!f.tail) return OT_E_NOMEM;
    for (ot_id k = 0; k < g->n_nodes; k++) f.tail[k] = OT_NONE;
    for (size_t j = 0; j < sizeof GROUPS / sizeof *GROUPS; j++)
        for (uint32_t k = 0; k < g->n_order; k++) {
            const ot_node *n = &g->nodes[g->order[k]];
            if (n->op == GROUPS[j].op && !n->is_static && n->n_in > 0 && n->in[0] != OT_NONE &&
                n->n_out > 0 && n->out[0] != OT_NONE && is_real(&f, n->out[0]))
                GROUPS[j].find(&f, g->order[k]);
        }
    return OT_OK;
}
