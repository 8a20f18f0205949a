/* Operators whose channels lie last, as ONNX Runtime writes them into quantized models that it
 * saves with all of its optimisations, read as those of plain order that mean the same:
 *
 *   QLinearConv {channels_last=1}      QLinearConv, the standard's
 *   NhwcMaxPool                        MaxPool
 *   QLinearAveragePool, QLinearGlobalAveragePool {channels_last=1}   the same {channels_last=0}
 *
 *   x -> Transpose -> a -> op -> b -> QLinearAdd -> c -> Transpose -> y      as the file has it
 *   x -> op -> b' -> QLinearAdd -> y, and Transpose(b') -> b for others      as it is read
 *
 * Every value of such an order gets a twin of plain order. Element-wise operators between, and
 * Transposes back, read and make twins, too; what else reads a value gets it from its twin. The
 * runtime puts channels last again when it loads what is written.
 */
#include "model_io.h"
#include "node_writer.h"

#define OLDEST     10 /* opset of the first quantized operators */
#define BYTES_POOL 12 /* opset from which on MaxPool takes 8-bit numbers */
#define PER_AXIS   13 /* opset from which on Softmax is of one axis */

typedef enum part {
    PART_NONE,
    PART_OP,      /* channels last in the file */
    PART_PLAIN,   /* QLinearConv of com.microsoft in plain order */
    PART_BETWEEN, /* of twins alone, if all of its operands have some */
    PART_LAST,    /* Transpose of a plain value */
    PART_FIRST    /* Transpose back */
} part;

typedef struct turning {
    ot_graph *g;
    int32_t *rank; /* [n_values] of a value whose channels lie last; 0: another */
    ot_id *twin;   /* [n_values] the same in plain order; OT_NONE: not written yet */
    part *parts;   /* [n_nodes] */
} turning;

static bool is_ms(const ot_node *n, const char *op_type)
{
    return strcmp(n->domain, "com.microsoft") == 0 && strcmp(n->op_type, op_type) == 0;
}

static bool is_conv(const ot_node *n) { return is_ms(n, "QLinearConv"); }
static bool is_max(const ot_node *n) { return is_ms(n, "NhwcMaxPool"); }
static bool is_last(const ot_node *n) { return ot_attr_int(n, "channels_last", 0) != 0; }

static bool is_turning_op(const ot_node *n)
{
    if (is_max(n)) return true;
    return is_last(n) &&
           (is_conv(n) || is_ms(n, "QLinearAveragePool") || is_ms(n, "QLinearGlobalAveragePool"));
}

static const ot_value *operand(const turning *t, const ot_node *n, uint32_t k)
{
    return k < n->n_in && n->in[k] != OT_NONE ? &t->g->values[n->in[k]] : NULL;
}

/* ---- which values have their channels last ---- */

/* Transpose of rank axes that puts channels last, or back; 0: another. */
static int32_t turned_rank(const ot_node *n, bool to_last)
{
    size_t rank = 0;
    const int64_t *perm = ot_attr_ints(n, "perm", &rank);
    if (n->domain[0] || strcmp(n->op_type, "Transpose") != 0) return 0;
    if (!perm || rank < 3 || rank > OT_RANK_MAX || perm[0] != 0) return 0;
    for (size_t a = 1; a < rank; a++)
        if ((size_t)perm[a] !=
            (to_last ? (a == rank - 1 ? 1 : a + 1) : (a == 1 ? rank - 1 : a - 1)))
            return 0;
    return (int32_t)rank;
}

/* Axes of what operator n reads; 0: not known. */
static int32_t rank_read(const turning *t, const ot_node *n)
{
    size_t window = 0;
    const ot_value *w = operand(t, n, 3), *x = &t->g->values[n->in[0]];
    if (is_conv(n)) return w && w->rank >= 3 && w->rank <= OT_RANK_MAX ? (int32_t)w->rank : 0;
    if (ot_attr_ints(n, "kernel_shape", &window) && window < OT_RANK_MAX - 2)
        return (int32_t)(window + 2);
    return t->rank[n->in[0]] ? t->rank[n->in[0]] : x->rank >= 3 ? x->rank : 0;
}

static bool op_fits(const turning *t, const ot_node *n)
{
    const int32_t rank = rank_read(t, n), known = t->rank[n->in[0]];
    if (is_max(n) && t->g->model->opset < BYTES_POOL) return false;
    return rank > 0 && (known == 0 || known == rank);
}

/* Operators that hold for every order of axes: of operands 0, of 0 and 3, of a triple each from 2
 * on, and of all. */
static const char *const OF_FIRST[] = {"QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"},
                         *const OF_TWO[] = {"QLinearAdd", "QLinearMul"},
                         *const OF_ALL[] = {"Add", "Mul",     "Sub",       "Div",  "Relu",
                                            "Max", "Sigmoid", "HardSwish", "Tanh", "Min"};

/* Operand k is what n works on element by element: the step to the next, from `from`; 0: none. */
static uint32_t step_between(const ot_node *n, uint32_t *from, uint32_t *to)
{
    *from = 0;
    *to = n->n_in;
    if (strcmp(n->domain, "com.microsoft") == 0) {
        if (is_ms(n, "QLinearConcat")) return *from = 2, 3;
        if (OT_IS_AMONG(n->op_type, OF_TWO)) return *to = n->n_in < 4 ? n->n_in : 4, 3;
        return *to = 1, OT_IS_AMONG(n->op_type, OF_FIRST) ? 1 : 0;
    }
    if (n->domain[0]) return 0;
    if (strcmp(n->op_type, "QuantizeLinear") == 0 || strcmp(n->op_type, "DequantizeLinear") == 0 ||
        strcmp(n->op_type, "Clip") == 0 || strcmp(n->op_type, "LeakyRelu") == 0)
        return *to = 1, 1;
    return OT_IS_AMONG(n->op_type, OF_ALL) ? 1 : 0;
}

static bool is_number(const ot_value *v)
{
    int64_t n = 0;
    return v->init && ot_product(v->init->dims, v->init->rank, &n) && n == 1 && v->rank <= 1;
}

/* Scales of channels say which axis those are. */
static bool scaled_as_one(const turning *t, const ot_node *n)
{
    if (strcmp(n->op_type, "QuantizeLinear") != 0 && strcmp(n->op_type, "DequantizeLinear") != 0)
        return true;
    const ot_value *scale = operand(t, n, 1);
    return scale && is_number(scale);
}

/* Axes of the values that n is between; 0: it is not. */
static int32_t rank_between(const turning *t, const ot_node *n)
{
    uint32_t from, to;
    const uint32_t step = step_between(n, &from, &to);
    int32_t rank = 0;
    if (step == 0) return 0;
    if (!scaled_as_one(t, n)) return 0;
    if (is_ms(n, "QLinearSoftmax") && ot_attr_int(n, "opset", 0) < PER_AXIS) return 0;
    for (uint32_t k = from; k < to; k += step) {
        const ot_value *v = operand(t, n, k);
        const int32_t one = v ? t->rank[n->in[k]] : 0;
        if (!v || (one == 0 && !is_number(v))) return 0;
        if (one > 0 && rank > 0 && one != rank) return 0;
        if (one > 0) rank = one;
    }
    return rank;
}

static void know(turning *t, ot_id id)
{
    const ot_node *n = &t->g->nodes[id];
    if (n->n_in < 1 || n->in[0] == OT_NONE || n->n_out != 1 || n->out[0] == OT_NONE) return;
    if (n->calls_function || n->n_captured > 0) return;
    const int32_t last = turned_rank(n, true), back = turned_rank(n, false);
    int32_t rank = 0;
    if (is_turning_op(n)) {
        if (!op_fits(t, n)) return;
        rank = rank_read(t, n);
        t->parts[id] = PART_OP;
        t->rank[n->in[0]] = rank;
    } else if (is_conv(n)) {
        t->parts[id] = PART_PLAIN;
    } else if (last > 0) {
        rank = last;
        t->parts[id] = PART_LAST;
        t->twin[n->out[0]] = n->in[0];
    } else if (back > 0 && t->rank[n->in[0]] == back) {
        t->parts[id] = PART_FIRST;
    } else if ((rank = rank_between(t, n)) > 0) {
        t->parts[id] = PART_BETWEEN;
    }
    if (rank > 0) t->rank[n->out[0]] = rank;
}

/* What a Transpose back makes is the twin of what it reads: made in its place, or by itself where
 * it reads what is no operator's of ours. */
static void pair_up(turning *t, ot_id id, const bool *ours)
{
    const ot_node *n = &t->g->nodes[id];
    if (t->parts[id] != PART_FIRST) return;
    if (!ours[n->in[0]]) t->parts[id] = PART_NONE;
    if (t->twin[n->in[0]] == OT_NONE) t->twin[n->in[0]] = n->out[0];
}

/* ---- writing ---- */

static ot_status write_turned(const turning *t, const ot_node_writer *w, ot_id x, bool to_last,
                              ot_id *y)
{
    const int32_t rank = t->rank[to_last ? *y : x];
    int64_t perm[OT_RANK_MAX] = {0};
    for (int32_t a = 1; a < rank; a++)
        perm[a] = to_last ? (a == rank - 1 ? 1 : a + 1) : (a == 1 ? rank - 1 : a - 1);
    const ot_attr attr = ot_mk_ints(w->g->model->arena, "perm", perm, (size_t)rank);
    return ot_write_node(w, "Transpose", (ot_id_list){&x, 1}, (ot_attr_list){&attr, 1}, y);
}

/* The twin of v, which a node of the file may make: written where there is none yet. */
static ot_status twin_of(turning *t, const ot_node_writer *w, ot_id v, ot_id *out)
{
    if (t->rank[v] == 0) return *out = v, OT_OK;
    if (t->twin[v] == OT_NONE) OT_TRY(write_turned(t, w, v, false, &t->twin[v]));
    *out = t->twin[v];
    return OT_OK;
}

/* Somebody reads v who is not written for twins. */
static bool is_wanted(const turning *t, ot_id v)
{
    const ot_value *x = &t->g->values[v];
    bool wanted = x->is_output;
    for (uint32_t k = 0; k < x->n_uses; k++) {
        const part p = t->parts[x->uses[k]];
        wanted |= p == PART_NONE || p == PART_PLAIN || p == PART_LAST;
    }
    return wanted;
}

/* Attributes that are another's in plain order: an axis. */
static ot_status attrs_of(const turning *t, const ot_node_writer *w, const ot_node *old,
                          ot_attr **attrs, uint32_t *n)
{
    static const char *const conv[] = {"channels_last", NULL}, *const with[] = {"axis", NULL},
                             *const all[] = {NULL};
    const bool along = is_ms(old, "QLinearConcat") || is_ms(old, "QLinearSoftmax"),
               turned = is_last(old);
    OT_TRY(ot_write_attrs_of(w, old, turned || is_conv(old) ? conv : along ? with : all, attrs, n));
    if (turned && !is_conv(old)) (*attrs)[(*n)++] = ot_mk_int("channels_last", 0);
    if (!along) return OT_OK;
    const int32_t rank = t->rank[old->out[0]];
    int64_t axis = ot_attr_int(old, "axis", is_ms(old, "QLinearSoftmax") ? -1 : 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
        return ot_fail(w->g->model->diag, OT_E_INPUT, "node '%s' (%s): axis %lld of a rank of %d",
                       old->name, old->op_type, (long long)axis, (int)rank);
    (*attrs)[(*n)++] = ot_mk_int("axis", axis == 0 ? 0 : axis == rank - 1 ? 1 : axis + 1);
    return OT_OK;
}

static ot_status write_op(turning *t, ot_id id)
{
    ot_node old;
    ot_attr *attrs;
    uint32_t n_attrs, from = 0, to = 1, step = 1;
    ot_node_writer w = ot_writer_in_place_of(t->g, id, &old);
    const ot_id y = old.out[0];
    const bool turned = t->parts[id] != PART_PLAIN;
    ot_id *in = OT_NEW_N(t->g->model->arena, ot_id, old.n_in);
    if (!in) return ot_fail_nomem(t->g->model->diag);
    memcpy(in, old.in, old.n_in * sizeof *in);
    if (t->parts[id] == PART_BETWEEN) step = step_between(&old, &from, &to);
    for (uint32_t k = from; turned && k < to; k += step) OT_TRY(twin_of(t, &w, old.in[k], &in[k]));
    OT_TRY(attrs_of(t, &w, &old, &attrs, &n_attrs));
    const ot_id_list ins = {in, old.n_in};
    const ot_attr_list with = {attrs, n_attrs};
    const bool standard = is_conv(&old) || is_max(&old);
    w.domain = standard ? "" : old.domain;
    ot_id made = turned ? t->twin[y] : y;
    OT_TRY(ot_write_node(&w, is_max(&old) ? "MaxPool" : old.op_type, ins, with, &made));
    w.domain = "";
    if (!turned) return OT_OK;
    t->twin[y] = made;
    ot_id back = y;
    return is_wanted(t, y) ? write_turned(t, &w, made, true, &back) : OT_OK;
}

/* The twin itself is what it makes, or another of its copies. */
static ot_status write_back(turning *t, ot_id id)
{
    const ot_id y = t->g->nodes[id].out[0], twin = t->twin[t->g->nodes[id].in[0]];
    ot_node old;
    ot_id made = y;
    const ot_node_writer w = ot_writer_in_place_of(t->g, id, &old);
    if (twin == y) return OT_OK;
    return ot_write_node(&w, "Identity", (ot_id_list){&twin, 1}, (ot_attr_list){0}, &made);
}

/* A Transpose whose result nobody reads any more goes. */
static ot_status write_part(turning *t, ot_id id)
{
    switch (t->parts[id]) {
    case PART_OP:
    case PART_PLAIN:
    case PART_BETWEEN: return write_op(t, id);
    case PART_FIRST: return write_back(t, id);
    case PART_LAST:
        if (!is_wanted(t, t->g->nodes[id].out[0])) ot_node_remove(t->g, id);
        return OT_OK;
    default: return OT_OK;
    }
}

static bool allocate(turning *t, ot_arena *a)
{
    /* twins that are written have none of their own */
    const size_t n = t->g->n_values + 1u;
    t->rank = OT_NEW_N(a, int32_t, n);
    t->twin = OT_NEW_N(a, ot_id, n);
    t->parts = OT_NEW_N(a, part, t->g->n_nodes + 1u);
    if (!t->rank || !t->twin || !t->parts) return false;
    for (size_t v = 0; v < n; v++) t->twin[v] = OT_NONE;
    return true;
}

ot_status ot_turn_nhwc_nodes(ot_importer *im)
{
    turning t = {.g = im->g};
    ot_graph *g = im->g;
    bool any = false;
    for (ot_id id = 0; id < g->n_nodes; id++)
        any |= !g->nodes[id].dead && !g->nodes[id].calls_function &&
               (is_turning_op(&g->nodes[id]) || is_conv(&g->nodes[id]));
    if (!any || im->opset < OLDEST) return OT_OK;
    OT_TRY(ot_topo_sort(g));
    if (!allocate(&t, im->scratch)) return ot_fail_nomem(im->d);
    const uint32_t n_order = g->n_order;
    ot_id *order = OT_NEW_N(im->scratch, ot_id, n_order + 1u);
    bool *ours = OT_NEW_N(im->scratch, bool, g->n_values + 1u); /* what they make */
    if (!order || !ours) return ot_fail_nomem(im->d);
    memcpy(order, g->order, n_order * sizeof *order);
    for (uint32_t k = 0; k < n_order; k++) {
        know(&t, order[k]);
        const part p = t.parts[order[k]];
        if (p == PART_OP || p == PART_BETWEEN || p == PART_LAST)
            ours[g->nodes[order[k]].out[0]] = true;
    }
    for (uint32_t k = 0; k < n_order; k++) pair_up(&t, order[k], ours);
    for (uint32_t k = 0; k < n_order; k++) OT_TRY(write_part(&t, order[k]));
    return ot_raise_constants(im);
}
