/* Fold shape arithmetic that would keep a tiled value alive.
 *
 *   x (made inside a region) --> Shape --> Gather --> Concat --> Reshape
 *
 * Shape reads x, but its contents are known. Without folding, x would have to be a whole tensor again just to be asked for
 * its shape. Every static node that reads a value made in a region is replaced by a constant.
 */
#include "plan.h"

/* known[] in the value's own element type; NULL when the type is not an integer or memory ran out. */
static const ot_tensor *known_tensor(ot_arena *a, const ot_value *v)
{
    uint32_t bits = ot_dtype_bits(v->dtype);
    if (v->dtype != OT_I64 && v->dtype != OT_I32 && v->dtype != OT_BOOL) return NULL;
    ot_tensor *t = OT_NEW(a, ot_tensor);
    unsigned char *data = ot_alloc_n(a, v->known_n + 1u, bits / 8);
    if (!t || !data) return NULL;
    for (uint32_t k = 0; k < v->known_n; k++) {
        int64_t x = v->known[k];
        int32_t x32 = (int32_t)x;
        unsigned char x8 = x != 0;
        const void *from = v->dtype == OT_I64 ? (const void *)&x : v->dtype == OT_I32 ? (const void *)&x32 : (const void *)&x8;
        memcpy(data + (size_t)k * (bits / 8), from, bits / 8);
    }
    t->dtype = v->dtype;
    t->rank = (uint32_t)v->rank;
    t->dims = v->dims;
    t->data = data;
    t->bytes = (size_t)v->known_n * (bits / 8);
    return t;
}

bool ot_static_foldable(const ot_graph *g, const ot_node *n)
{
    if (!n->is_static || n->n_captured > 0) return false;
    for (uint32_t o = 0; o < n->n_out; o++) {
        ot_id v = n->out[o];
        if (v == OT_NONE) continue;
        const ot_value *x = &g->values[v];
        bool integer = x->dtype == OT_I64 || x->dtype == OT_I32 || x->dtype == OT_BOOL;
        if (!x->known || !integer || x->is_output || x->rank < 0 || o >= 8) return false;
    }
    return true;
}

/* requires SHAPES and a plan. keeps SHAPES, breaks ORDER and USES. Fails: OT_E_NOMEM, OT_E_INPUT when a reader cannot be
 * folded (the planner then should have made the value an output). */
ot_status ot_fold_static(ot_graph *g, const ot_plan *p)
{
    ot_arena *a = g->model->arena;
    bool *made = ot_alloc_n(p->arena, g->n_values + 1u, sizeof *made);
    if (!made) return ot_fail_nomem(g->model->diag);
    for (uint32_t k = 0; k < p->n_regions; k++)
        for (uint32_t v = p->regions[k].n_inputs; v < p->regions[k].n_values; v++)
            if (!p->regions[k].values[v].is_output) made[p->regions[k].values[v].value] = true;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        bool reads = false;
        for (uint32_t i = 0; i < n->n_in; i++) reads |= n->in[i] != OT_NONE && made[n->in[i]];
        if (!reads || !n->is_static || n->dead) continue;
        if (!ot_static_foldable(g, n)) return ot_fail(g->model->diag, OT_E_INPUT, "node '%s' (%s): cannot be folded", n->name, n->op_type);
        ot_id outs[8];
        uint32_t n_outs = n->n_out < 8 ? n->n_out : 8;
        memcpy(outs, n->out, n_outs * sizeof *outs);
        ot_node_remove(g, g->order[k]);
        for (uint32_t o = 0; o < n_outs; o++) {
            if (outs[o] == OT_NONE) continue;
            ot_value *v = &g->values[outs[o]];
            v->init = known_tensor(a, v);
            if (!v->init) return ot_fail_nomem(g->model->diag);
            v->is_const = true;
            v->proto = NULL;
        }
    }
    return OT_OK;
}
