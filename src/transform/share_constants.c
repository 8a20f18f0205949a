/* What tiles read of a large constant is computed once.
 *
 *     bias --> r0/reshape --> r0/scan          bias --> r0/reshape --> r0/scan
 *         '--> r1/reshape --> r1/scan    -->               '--------> r1/scan
 *
 * A runtime computes what depends on constants alone when it loads a model, and holds each result
 * as long as the model is loaded: regions that cut one constant alike (the position bias of all
 * layers) would hold it once a region.
 */
#include "transform_internal.h"

#include "fusion/fusion.h"
#include "ops/shape.h"

#define LARGE (INT64_C(64) << 10) /* bytes; below, a node more is no loss */

/* The initializer that v is; NULL: it may change, or a node makes it. */
static const ot_tensor *contents(const ot_graph *g, ot_id v)
{
    const ot_value *x = &g->values[v];
    return x->init && !x->overridable && x->producer == OT_NONE ? x->init : NULL;
}

/* The same value, or initializers of the same type, extents and contents. */
static bool is_same_value(const ot_graph *g, ot_id a, ot_id b)
{
    if (a == b) return true;
    if (a == OT_NONE || b == OT_NONE) return false;
    const ot_tensor *x = contents(g, a), *y = contents(g, b);
    return x && y && x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes &&
           x->data && y->data &&
           (x->rank == 0 || memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0) &&
           memcmp(x->data, y->data, x->bytes) == 0;
}

static bool is_same_attr(const ot_attr *a, const ot_attr *b)
{
    if (a->kind != b->kind || strcmp(a->name, b->name) != 0 || a->n != b->n) return false;
    if (a->kind == OT_ATTR_INT) return a->i == b->i;
    return a->kind == OT_ATTR_INTS &&
           (a->n == 0 || !memcmp(a->ints, b->ints, a->n * sizeof(int64_t)));
}

static bool is_same_node(const ot_graph *g, const ot_node *a, const ot_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_attrs != b->n_attrs) return false;
    for (uint32_t k = 0; k < a->n_in; k++)
        if (!is_same_value(g, a->in[k], b->in[k])) return false;
    for (uint32_t k = 0; k < a->n_attrs; k++)
        if (!is_same_attr(&a->attrs[k], &b->attrs[k])) return false;
    return true;
}

/* A node that the rewrite made, of one large result that depends on constants alone. */
static bool is_large_constant(const ot_graph *g, const ot_node *n)
{
    int64_t bytes = 0;
    if (n->dead || n->n_captured > 0 || n->n_out != 1 || n->n_in == 0 || n->out[0] == OT_NONE ||
        n->op == OT_OP_OPAQUE || !ot_shape_rule_of(n->op))
        return false;
    const ot_value *v = &g->values[n->out[0]];
    if (v->is_output || !v->is_tensor || !ot_value_bytes(v, &bytes) || bytes < LARGE) return false;
    if (ot_is_quantised_weight(g, n->out[0]))
        return false; /* each product's own (own_quantised.c) */
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE &&
            (!ot_value_is_precomputed(g, n->in[k]) || g->values[n->in[k]].overridable))
            return false;
    return true;
}

ot_status rw_share_constants(ot_graph *g, uint32_t n_before)
{
    ot_arena *a = ot_arena_new();
    ot_id *kept = NULL;
    size_t n_kept = 0, cap = 0;
    ot_status st = a ? OT_OK : ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; st == OT_OK && k < g->n_order; k++) {
        const ot_id id = g->order[k];
        ot_node *n = &g->nodes[id];
        size_t like = 0;
        if (id < n_before || !is_large_constant(g, n)) continue;
        while (like < n_kept && !is_same_node(g, n, &g->nodes[kept[like]])) like++;
        if (like < n_kept) {
            const ot_id from = n->out[0];
            ot_node_remove(g, id);
            st = ot_replace_uses(g, from, g->nodes[kept[like]].out[0]);
        } else {
            n->is_static = g->values[n->out[0]].is_const = true;
            if (!OT_PUSH(a, kept, n_kept, cap, id)) st = ot_fail_nomem(g->model->diag);
        }
    }
    ot_arena_free(a);
    return st == OT_OK ? ot_assure(g, OT_P_ORDER | OT_P_USES) : st;
}
