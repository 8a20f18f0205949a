/* What values inside of the file's own If, Loop and Scan, and of its functions, take while these
 * run: the most that lives at one time in a body, beside what the node reads and makes, which the
 * graph around counts.
 *
 *   Loop body    i, go, a --> Conv --> t --> Relu --> a'     t and a: a' of the last iteration is
 *                                                            the node's result, a is another array
 *                                                            from the second iteration on
 *
 * Not counted: constants, what is read of the graphs around, slices that a Scan takes, and what
 * the body hands on. Results that a Loop gathers lie there twice when it ends.
 */
#include "onnx/import/model_io.h"
#include "ops.h"

#define UNKNOWN (-1)

/* Inputs of a body that are arrays of its own: those that a loop carries, unless they are handed
 * on as they are. */
static bool is_carried(const ot_node *n, const ot_graph *body, uint32_t k)
{
    const int64_t scans = ot_attr_int(n, "num_scan_inputs", 0);
    const bool carried = n->op == OT_OP_Loop   ? k >= 2
                         : n->op == OT_OP_Scan ? (int64_t)k < (int64_t)body->n_inputs - scans
                                               : false;
    return carried && !body->values[body->inputs[k]].is_output;
}

/* When each value of a body is made and read last, by positions from 1. */
typedef struct lives {
    uint32_t *last; /* [n_values] 0: nobody reads it */
    int64_t
        *starts; /* [n_order + 2] bytes that begin to live there, less those that ended before */
    ot_inner found;
} lives;

static void take_largest(ot_inner *x, int64_t bytes, const char *name)
{
    if (bytes <= x->largest) return;
    x->largest = bytes;
    x->value = name;
}

static void count_value(const ot_graph *body, lives *l, ot_id v, uint32_t made)
{
    const ot_value *x = &body->values[v];
    int64_t bytes;
    if (x->is_const || x->init || x->is_outer) return;
    const bool sized = x->is_tensor && ot_value_bytes(x, &bytes);
    if (sized) take_largest(&l->found, bytes, x->name);
    if (x->is_output) return;
    if (!sized || !ot_add_i64(l->starts[made], bytes, &l->starts[made])) {
        l->found.bytes = UNKNOWN;
        return;
    }
    l->starts[(l->last[v] > made ? l->last[v] : made) + 1] -= bytes;
}

static int64_t sum_up(const ot_graph *body, const lives *l)
{
    int64_t now = 0, most = 0;
    for (uint32_t p = 0; p <= body->n_order; p++) {
        const int64_t inner = p > 0 ? body->nodes[body->order[p - 1]].inner.bytes : 0;
        int64_t with;
        if (inner < 0 || !ot_add_i64(now, l->starts[p], &now) || !ot_add_i64(now, inner, &with))
            return UNKNOWN;
        most = ot_max(most, with);
    }
    return most;
}

/* What the body of n holds. Requires ORDER, and nodes sized. */
static ot_status body_holds(const ot_node *n, const ot_graph *body, ot_arena *a, ot_inner *out)
{
    lives l = {.last = OT_NEW_N(a, uint32_t, body->n_values + 1u),
               .starts = OT_NEW_N(a, int64_t, body->n_order + 3u)};
    if (!l.last || !l.starts) return ot_fail_nomem(body->model->diag);
    for (uint32_t p = 1; p <= body->n_order; p++) {
        const ot_node *x = &body->nodes[body->order[p - 1]];
        for (uint32_t k = 0; k < x->n_in + x->n_captured; k++) {
            const ot_id v = k < x->n_in ? x->in[k] : x->captured[k - x->n_in];
            if (v != OT_NONE) l.last[v] = p;
        }
    }
    for (uint32_t k = 0; k < body->n_inputs; k++)
        if (is_carried(n, body, k)) count_value(body, &l, body->inputs[k], 0);
    for (uint32_t p = 1; p <= body->n_order; p++) {
        const ot_node *x = &body->nodes[body->order[p - 1]];
        for (uint32_t k = 0; k < x->n_out; k++)
            if (x->out[k] != OT_NONE) count_value(body, &l, x->out[k], p);
        take_largest(&l.found, x->inner.largest, x->inner.value);
    }
    if (l.found.bytes == 0) l.found.bytes = sum_up(body, &l);
    *out = l.found;
    return OT_OK;
}

/* ---- nodes ---- */

static ot_status size_nodes(ot_graph *g, ot_arena *a);

/* *all becomes what the body holds, where that is more. A body that cannot be read, or inferred,
 * is not known: whoever runs it says why. */
static ot_status take_body(ot_graph *g, const ot_node *n, const ot_attr *attr, ot_arena *a,
                           ot_inner *all)
{
    ot_graph *body;
    ot_inner found = {.bytes = UNKNOWN};
    OT_TRY(ot_inferred_body(g, n, attr, &body));
    if (body) OT_TRY(size_nodes(body, a));
    if (body) OT_TRY(body_holds(n, body, a, &found));
    all->bytes = found.bytes < 0 || all->bytes < 0 ? UNKNOWN : ot_max(all->bytes, found.bytes);
    take_largest(all, found.largest, found.value);
    return OT_OK;
}

/* What a Loop gathers, until it is one array. */
static int64_t gathered(const ot_graph *g, const ot_node *n)
{
    int64_t sum = 0, bytes;
    if (n->op != OT_OP_Loop) return 0;
    for (uint32_t k = n->n_in > 2 ? n->n_in - 2 : 0; k < n->n_out; k++) {
        if (n->out[k] == OT_NONE || !ot_value_bytes(&g->values[n->out[k]], &bytes)) continue;
        if (!ot_add_i64(sum, bytes, &sum)) return UNKNOWN;
    }
    return sum;
}

static uint64_t key_of(const ot_graph *g, const ot_node *n)
{
    uint64_t h = 1;
    for (uint32_t k = 0; k < n->n_in + n->n_captured + n->n_out; k++) {
        const ot_id v = k < n->n_in                   ? n->in[k]
                        : k < n->n_in + n->n_captured ? n->captured[k - n->n_in]
                                                      : n->out[k - n->n_in - n->n_captured];
        if (v == OT_NONE) continue;
        const ot_value *x = &g->values[v];
        h = ot_hash_bytes(h, &x->dtype, sizeof x->dtype);
        h = ot_hash_bytes(h, &x->rank, sizeof x->rank);
        if (x->rank > 0) h = ot_hash_bytes(h, x->dims, (size_t)x->rank * sizeof *x->dims);
    }
    return h ? h : 1;
}

static ot_status size_node(ot_graph *g, ot_node *n, ot_arena *a)
{
    ot_inner all = {0};
    const uint64_t key = key_of(g, n);
    if (n->inner.key == key) return OT_OK;
    for (uint32_t k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].kind == OT_ATTR_OPAQUE && ot_attr_has_graph(g->model, &n->attrs[k]))
            OT_TRY(take_body(g, n, &n->attrs[k], a, &all));
    if (n->calls_function) OT_TRY(take_body(g, n, NULL, a, &all));
    const int64_t more = gathered(g, n);
    all.bytes = all.bytes < 0 || more < 0 ? UNKNOWN : ot_max(all.bytes, more);
    all.key = key;
    n->inner = all;
    return OT_OK;
}

static ot_status size_nodes(ot_graph *g, ot_arena *a)
{
    for (uint32_t k = 0; k < g->n_order; k++) {
        ot_node *n = &g->nodes[g->order[k]];
        bool inner = n->calls_function;
        for (uint32_t j = 0; j < n->n_attrs && !inner; j++)
            inner = n->attrs[j].kind == OT_ATTR_OPAQUE;
        if (inner) OT_TRY(size_node(g, n, a));
    }
    return OT_OK;
}

ot_status ot_size_bodies(ot_graph *g)
{
    ot_arena *a = ot_arena_new();
    if (!a) return ot_fail_nomem(g->model->diag);
    ot_status s = size_nodes(g, a);
    ot_arena_free(a);
    return s;
}
