/* What is computed element by element of large constants with few distinct values is computed of
 * those, and looked up.
 *
 *   distances [n,n] --> Log --> ... --> bucket [n,n] --> Gather(table) --> Transpose --> bias
 *
 *   distinct [2n] --> Log --> ... --> bucket [2n] --> Gather(table) --> Transpose --> [h,2n] --.
 *   which of them [n,n] ----------------------------------------------------------> Gather --> bias
 *
 * Such nodes are left where a step is made of what one of them rounds (fold_constants.c): the
 * runtime computes them still, by the same operators. Vectors of whole packets are, so that no
 * element is left over for another kernel, which might round otherwise.
 */
#include "transform.h"
#include "constant_ops.h"

#include "ops/ops.h"

#define LEAST  (INT64_C(1) << 16) /* elements of what is computed */
#define FEWER  16                 /* distinct ones are at most one in so many */
#define PACKET 64                 /* their number is a multiple */
#define LEAVES 8                  /* constants that they are tuples of */
#define RANK   8

typedef struct look {
    ot_graph *g;
    ot_arena *a;   /* scratch */
    bool *each;    /* [n_nodes] of constants, element by element */
    bool *within;  /* [n_nodes] leads to the exit that is looked at */
    bool *dropped; /* [n_nodes] may have no reader any more */
    ot_id *to;     /* [n_values] the same of the distinct ones; OT_NONE */
    ot_id leaves[LEAVES];
    uint32_t n_leaves;
    uint32_t n_nodes, n_values; /* before anything is made */
    uint32_t *first;            /* [n] place of each distinct tuple */
    int32_t *which;             /* [elems] the tuple at each place */
    uint32_t n;
} look;

/* Bytes of an element of 8 bits or more. */
static size_t bytes_each(ot_dtype t) { return (size_t)ot_dtype_bits(t) / 8; }

static bool same_dims(const ot_value *x, const ot_value *y)
{
    return x->rank == y->rank && x->rank > 0 && ot_value_is_static(x) && ot_value_is_static(y) &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

static bool is_number(const ot_value *v)
{
    int64_t elems = 0;
    return ((v->init && !v->overridable) || v->known || v->known_floats) &&
           ot_value_elems(v, &elems) && elems == 1;
}

/* What v is, by the file; NULL. */
static const ot_tensor *contents(const ot_graph *g, const ot_value *v)
{
    const ot_node *n = v->producer == OT_NONE ? NULL : &g->nodes[v->producer];
    const ot_attr *a = n && n->op == OT_OP_Constant ? ot_attr_find(n, "value") : NULL;
    if (v->init) return v->overridable ? NULL : v->init;
    return a && a->kind == OT_ATTR_TENSOR ? a->t : NULL;
}

/* A constant of y's extents whose contents are here. */
static bool is_leaf(const ot_graph *g, const ot_value *v, const ot_value *y)
{
    const ot_tensor *t = contents(g, v);
    int64_t elems = 0;
    return t && t->data && same_dims(v, y) && ot_value_elems(v, &elems) &&
           ot_dtype_bits(v->dtype) >= 8 && v->dtype != OT_STRING &&
           t->bytes == (size_t)elems * bytes_each(v->dtype);
}

static bool computes_each(const look *x, const ot_node *n)
{
    int64_t elems = 0;
    if (!(ot_constant_op(n->op) & OT_CONSTANT_EACH) || n->n_captured > 0 || n->n_out != 1 ||
        n->out[0] == OT_NONE)
        return false;
    const ot_value *y = &x->g->values[n->out[0]];
    if (y->rank < 1 || y->rank > RANK || y->known || !ot_value_is_static(y) ||
        !ot_value_elems(y, &elems) || elems < LEAST || elems > INT32_MAX)
        return false;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_value *v = n->in[k] == OT_NONE ? NULL : &x->g->values[n->in[k]];
        if (!v) return false;
        const bool made = v->producer != OT_NONE && x->each[v->producer] && same_dims(v, y);
        if (!made && !is_number(v) && !is_leaf(x->g, v, y)) return false;
    }
    return true;
}

/* Nodes that lead to value v, and the constants that they begin with. */
static bool find_within(look *x, ot_id v)
{
    const ot_graph *g = x->g;
    memset(x->within, 0, x->n_nodes * sizeof *x->within);
    x->n_leaves = 0;
    x->within[g->values[v].producer] = true;
    for (uint32_t k = g->n_order; k-- > 0;) {
        const ot_node *n = &g->nodes[g->order[k]];
        if (g->order[k] >= x->n_nodes || !x->within[g->order[k]]) continue;
        for (uint32_t j = 0; j < n->n_in; j++) {
            const ot_value *in = &g->values[n->in[j]];
            bool again = false;
            if (in->producer != OT_NONE && x->each[in->producer]) x->within[in->producer] = true;
            for (uint32_t i = 0; i < x->n_leaves; i++) again |= x->leaves[i] == n->in[j];
            if (again || is_number(in) || !contents(g, in)) continue;
            if (x->n_leaves == LEAVES) return false;
            x->leaves[x->n_leaves++] = n->in[j];
        }
    }
    return x->n_leaves > 0;
}

/* Leaf k's element at a place. */
static const uint8_t *element(const look *x, uint32_t k, int64_t place, size_t *bytes)
{
    const ot_value *v = &x->g->values[x->leaves[k]];
    *bytes = bytes_each(v->dtype);
    return (const uint8_t *)contents(x->g, v)->data + (size_t)place * *bytes;
}

static uint64_t hash_at(const look *x, int64_t place)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < x->n_leaves; k++) {
        size_t bytes;
        const uint8_t *at = element(x, k, place, &bytes);
        h = ot_hash_bytes(h, at, bytes);
    }
    return h;
}

static bool same_at(const look *x, int64_t p, int64_t q)
{
    for (uint32_t k = 0; k < x->n_leaves; k++) {
        size_t bytes;
        const uint8_t *a = element(x, k, p, &bytes), *b = element(x, k, q, &bytes);
        if (memcmp(a, b, bytes) != 0) return false;
    }
    return true;
}

/* Numbers the tuples of elems places. *few: there are few. */
static ot_status number_tuples(look *x, int64_t elems, bool *few)
{
    const uint32_t most = (uint32_t)(elems / FEWER);
    uint32_t cells = 1;
    while (cells < 2 * most) cells *= 2;
    uint32_t *table = OT_NEW_N(x->a, uint32_t, cells); /* number of a tuple, and one; 0: none */
    x->first = OT_NEW_N(x->a, uint32_t, most + PACKET);
    x->which = OT_NEW_N(x->g->model->arena, int32_t, (size_t)elems);
    if (!table || !x->first || !x->which) return ot_fail_nomem(x->g->model->diag);
    x->n = 0;
    *few = false;
    for (int64_t p = 0; p < elems; p++) {
        uint32_t at = (uint32_t)hash_at(x, p) & (cells - 1);
        while (table[at] && !same_at(x, x->first[table[at] - 1], p)) at = (at + 1) & (cells - 1);
        if (!table[at]) {
            if (x->n == most) return OT_OK;
            x->first[x->n] = (uint32_t)p;
            table[at] = ++x->n;
        }
        x->which[p] = (int32_t)table[at] - 1;
    }
    for (; x->n % PACKET != 0; x->n++) x->first[x->n] = x->first[0];
    *few = true;
    return OT_OK;
}

/* ---- the new nodes ---- */

static ot_id new_value(look *x, const char *what, ot_dtype t, int32_t rank, const int64_t *dims)
{
    const char *name = ot_fresh_name(x->g->model, what);
    return name ? ot_value_new(x->g, name, t, rank, dims) : OT_NONE;
}

static ot_status new_constant(look *x, ot_tensor t, ot_id *out)
{
    ot_tensor *kept = ot_memdup(x->g->model->arena, &t, sizeof t);
    *out = kept ? new_value(x, "tile/distinct/constant", t.dtype, (int32_t)t.rank, t.dims)
                : OT_NONE;
    if (*out == OT_NONE) return ot_fail_nomem(x->g->model->diag);
    kept->dims = x->g->values[*out].dims;
    x->g->values[*out].init = kept;
    x->g->values[*out].is_const = true;
    return OT_OK;
}

/* It is computed of constants, while a runtime loads the model. */
static ot_status new_node(look *x, const ot_node_def *def)
{
    const ot_id out = def->out.at[0], id = out == OT_NONE ? OT_NONE : ot_node_new(x->g, def);
    if (id == OT_NONE) return ot_fail_nomem(x->g->model->diag);
    x->g->values[out].is_const = x->g->nodes[id].is_static = true;
    return OT_OK;
}

/* The distinct ones of leaf k. */
static ot_status new_leaf(look *x, uint32_t k)
{
    const ot_value copied = x->g->values[x->leaves[k]], *v = &copied;
    const int64_t n = x->n;
    const size_t each = bytes_each(v->dtype);
    uint8_t *data = OT_NEW_N(x->g->model->arena, uint8_t, x->n * each);
    if (!data) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t j = 0; j < x->n; j++) {
        size_t bytes;
        const uint8_t *from = element(x, k, x->first[j], &bytes);
        memcpy(data + j * each, from, bytes);
    }
    const ot_tensor t = {
        .dtype = v->dtype, .rank = 1, .dims = &n, .data = data, .bytes = x->n * each};
    ot_id to;
    OT_TRY(new_constant(x, t, &to));
    x->to[x->leaves[k]] = to;
    if (v->producer != OT_NONE) x->dropped[v->producer] = true;
    return OT_OK;
}

/* Node n once more, of other operands: value *out of those extents. */
static ot_status copy_node(look *x, ot_id id, const ot_id *in, int32_t rank, const int64_t *dims,
                           const ot_attr *attr, ot_id *out)
{
    const ot_node n = x->g->nodes[id];
    *out = new_value(x, "tile/distinct", x->g->values[n.out[0]].dtype, rank, dims);
    const ot_node_def def = {.op = n.op_type,
                             .name = *out == OT_NONE ? NULL : x->g->values[*out].name,
                             .in = {in, n.n_in},
                             .out = {out, 1},
                             .attrs = {attr ? attr : n.attrs, attr ? 1 : n.n_attrs}};
    x->dropped[id] = true;
    return new_node(x, &def);
}

/* All nodes within, of distinct ones. */
static ot_status copy_within(look *x)
{
    const uint32_t n_order = x->g->n_order;
    const int64_t n = x->n;
    for (uint32_t k = 0; k < x->n_leaves; k++) OT_TRY(new_leaf(x, k));
    for (uint32_t k = 0; k < n_order; k++) {
        const ot_id id = x->g->order[k];
        if (id >= x->n_nodes || !x->within[id]) continue;
        const ot_node node = x->g->nodes[id];
        ot_id out, *in = OT_NEW_N(x->a, ot_id, node.n_in + 1u);
        if (!in) return ot_fail_nomem(x->g->model->diag);
        for (uint32_t j = 0; j < node.n_in; j++)
            in[j] = is_number(&x->g->values[node.in[j]]) ? node.in[j] : x->to[node.in[j]];
        OT_TRY(copy_node(x, id, in, 1, &n, NULL, &out));
        x->to[node.out[0]] = out;
    }
    return OT_OK;
}

/* The node of the file that alone reads v, if it has that operator; OT_NONE. */
static ot_id next_of(const look *x, ot_id v, ot_op op)
{
    const ot_id id = ot_value_only_reader(x->g, v);
    const ot_node *n = id < x->n_nodes ? &x->g->nodes[id] : NULL;
    return n && n->op == op && n->n_out == 1 && n->out[0] != OT_NONE ? id : OT_NONE;
}

/* A result so far: v of the file, `table` of distinct ones, and which axis of the table they are
 * along; the axes of v from that one on, `rank` of them, are those of what was computed. */
typedef struct exit_point {
    ot_id v, table;
    int32_t axis, rank;
} exit_point;

/* Rows of a constant table are looked up: the distinct ones first. */
static ot_status past_gather(look *x, exit_point *e)
{
    const ot_id id = next_of(x, e->v, OT_OP_Gather);
    if (id == OT_NONE) return OT_OK;
    const ot_node n = x->g->nodes[id];
    const ot_value *rows = n.n_in == 2 && n.in[0] != OT_NONE ? &x->g->values[n.in[0]] : NULL;
    if (!rows || n.in[1] != e->v || !rows->init || rows->rank < 1 || rows->rank > RANK ||
        ot_attr_int(&n, "axis", 0) != 0)
        return OT_OK;
    const ot_id in[2] = {n.in[0], e->table};
    int64_t dims[RANK];
    memcpy(dims, rows->dims, (size_t)rows->rank * sizeof *dims);
    dims[0] = x->n;
    OT_TRY(copy_node(x, id, in, rows->rank, dims, NULL, &e->table));
    e->v = n.out[0];
    return OT_OK;
}

/* Axes change places, those of what was computed all together. */
static ot_status past_transpose(look *x, exit_point *e)
{
    const ot_id id = next_of(x, e->v, OT_OP_Transpose);
    if (id == OT_NONE) return OT_OK;
    const ot_node n = x->g->nodes[id];
    size_t rank = 0;
    const int64_t *perm = ot_attr_ints(&n, "perm", &rank);
    const ot_value *table = &x->g->values[e->table];
    int64_t to[RANK], dims[RANK];
    int32_t axis = -1, at = 0;
    if (!perm || table->rank > RANK || rank != (size_t)(table->rank + e->rank - 1)) return OT_OK;
    for (size_t k = 0; k < rank; k++) {
        const int64_t from = perm[k];
        if (from > e->axis && from < e->axis + e->rank) {
            if (k == 0 || perm[k - 1] != from - 1) return OT_OK;
            continue;
        }
        if (from == e->axis) axis = at;
        to[at] = from < e->axis ? from : from == e->axis ? from : from - e->rank + 1;
        dims[at] = table->dims[to[at]];
        at++;
    }
    if (axis < 0 || at != table->rank) return OT_OK;
    const ot_attr attr = ot_mk_ints(x->g->model->arena, "perm", to, (size_t)at);
    if (attr.kind == OT_ATTR_OPAQUE) return ot_fail_nomem(x->g->model->diag);
    const ot_id in = e->table;
    OT_TRY(copy_node(x, id, &in, at, dims, &attr, &e->table));
    e->axis = axis;
    e->v = n.out[0];
    return OT_OK;
}

/* Who reads e->v reads what is looked up in the table. */
static ot_status look_up(look *x, exit_point e, const ot_value *of)
{
    const ot_value v = x->g->values[e.v];
    const ot_tensor t = {.dtype = OT_I32,
                         .rank = (uint32_t)of->rank,
                         .dims = of->dims,
                         .data = x->which,
                         .bytes = 4};
    ot_tensor which = t;
    ot_id in[2] = {e.table, OT_NONE};
    for (int32_t k = 0; k < of->rank; k++) which.bytes *= (size_t)of->dims[k];
    OT_TRY(new_constant(x, which, &in[1]));
    const ot_id out = new_value(x, "tile/distinct/all", v.dtype, v.rank, v.dims);
    const ot_attr axis = ot_mk_int("axis", e.axis);
    const ot_node_def def = {.op = "Gather",
                             .name = out == OT_NONE ? NULL : x->g->values[out].name,
                             .in = {in, 2},
                             .out = {&out, 1},
                             .attrs = {&axis, 1}};
    if (out == OT_NONE) return ot_fail_nomem(x->g->model->diag);
    OT_TRY(ot_replace_uses(x->g, e.v, out));
    return new_node(x, &def);
}

/* v is read, and not by nodes that compute element by element. */
static bool is_exit(const look *x, ot_id v)
{
    const ot_value *y = &x->g->values[v];
    if (y->is_output) return false;
    for (uint32_t k = 0; k < y->n_uses; k++) {
        const ot_node *n = &x->g->nodes[y->uses[k]];
        for (uint32_t j = 0; j < n->n_captured; j++)
            if (n->captured[j] == v) return false;
        if (y->uses[k] < x->n_nodes && x->each[y->uses[k]]) return false;
    }
    return y->n_uses > 0;
}

static ot_status look_at(look *x, ot_id v)
{
    int64_t elems = 0;
    bool few = false;
    if (!is_exit(x, v) || !find_within(x, v) || !ot_value_elems(&x->g->values[v], &elems))
        return OT_OK;
    const ot_value of = x->g->values[v];
    OT_TRY(number_tuples(x, elems, &few));
    if (!few) return OT_OK;
    OT_TRY(copy_within(x));
    exit_point e = {v, x->to[v], 0, of.rank};
    OT_TRY(past_gather(x, &e));
    OT_TRY(past_transpose(x, &e));
    OT_TRY(look_up(x, e, &of));
    return ot_assure(x->g, OT_P_ORDER | OT_P_USES);
}

/* What nobody reads any more goes. */
static ot_status drop_unread(look *x)
{
    ot_graph *g = x->g;
    for (bool more = true; more;) {
        more = false;
        for (ot_id id = 0; id < x->n_nodes; id++) {
            const ot_node *n = &g->nodes[id];
            if (!x->dropped[id] || n->dead || g->values[n->out[0]].n_uses > 0) continue;
            ot_node_remove(g, id);
            more = true;
        }
        OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    }
    for (ot_id v = 0; v < x->n_values; v++) {
        ot_value *y = &g->values[v];
        if (y->init && y->n_uses == 0 && !y->is_input && !y->is_output && x->to[v] != OT_NONE)
            y->removed = true;
    }
    return OT_OK;
}

static ot_status run(look *x)
{
    ot_graph *g = x->g;
    ot_id *exits = OT_NEW_N(x->a, ot_id, g->n_nodes + 1u);
    uint32_t n = 0;
    x->each = OT_NEW_N(x->a, bool, g->n_nodes + 1u);
    x->within = OT_NEW_N(x->a, bool, g->n_nodes + 1u);
    x->dropped = OT_NEW_N(x->a, bool, g->n_nodes + 1u);
    if (!exits || !x->each || !x->within || !x->dropped) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        x->each[id] = computes_each(x, &g->nodes[id]);
        if (x->each[id]) exits[n++] = g->nodes[id].out[0];
    }
    for (uint32_t k = 0; k < n; k++) OT_TRY(look_at(x, exits[k]));
    return drop_unread(x);
}

ot_status ot_fold_distinct(ot_graph *g)
{
    bool any = false;
    for (uint32_t k = 0; k < g->n_order && !any; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        any = n->op == OT_OP_Log || n->op == OT_OP_Exp || n->op == OT_OP_Pow || n->op == OT_OP_Sqrt;
    }
    if (!any) return OT_OK;
    ot_arena *a = ot_arena_new();
    look x = {.g = g, .a = a, .n_nodes = g->n_nodes, .n_values = g->n_values};
    x.to = a ? OT_NEW_N(a, ot_id, g->n_values + 1u) : NULL;
    for (ot_id v = 0; x.to && v < g->n_values; v++) x.to[v] = OT_NONE;
    const ot_status s = x.to ? run(&x) : ot_fail_nomem(g->model->diag);
    ot_arena_free(a);
    return s;
}
