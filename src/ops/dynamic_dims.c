/* The table of what holds at the design size alone. See dynamic_dims.h. */
#include "dynamic_dims.h"

/* What is filled in; the table itself is read only. */
typedef struct filling {
    const ot_graph *file;
    ot_graph *g;
    ot_arena *a;
    uint32_t *axes;
    bool *varies, *unranked, *foldable;
    const ot_id **source;
    uint32_t *n_source;
} filling;

static bool is_known(const ot_value *v)
{
    return v->known || v->known_floats || (v->init && !v->overridable);
}

/* Known at every size, in a way that bodies take as a constant: nobody needs what it is computed
 * of. */
static bool is_known_anyway(const ot_value *v)
{
    const bool integer = v->dtype == OT_I64 || v->dtype == OT_I32 || v->dtype == OT_BOOL;
    return v->is_const || (v->init && !v->overridable) || v->known_floats || (v->known && integer);
}

static void fill_values(filling *f)
{
    for (ot_id v = 0; v < f->g->n_values; v++) {
        const ot_value *now = &f->g->values[v], *any = &f->file->values[v];
        for (int32_t k = 0; k < now->rank && k < OT_RANK_MAX; k++)
            if (any->rank != now->rank || any->dims[k] < 0) f->axes[v] |= 1u << k;
        f->unranked[v] = any->rank != now->rank;
        f->varies[v] = (is_known(now) || now->is_const) && !is_known_anyway(any);
    }
}

/* Add v to a list without repetition. */
static bool add(filling *f, ot_id **list, uint32_t *n, size_t *cap, ot_id v)
{
    for (uint32_t k = 0; k < *n; k++)
        if ((*list)[k] == v) return true;
    return OT_PUSH(f->a, *list, *n, *cap, v) != 0;
}

/* What operand v of a static node stands for: an activation itself, or what its own contents are
 * computed of. */
static bool add_operand(filling *f, ot_id **list, uint32_t *n, size_t *cap, ot_id v)
{
    const ot_value *x = &f->g->values[v];
    if (f->varies[v]) {
        for (uint32_t k = 0; k < f->n_source[v]; k++)
            if (!add(f, list, n, cap, f->source[v][k])) return false;
        return true;
    }
    const bool made = x->producer != OT_NONE && !f->g->nodes[x->producer].is_static;
    return !made || add(f, list, n, cap, v);
}

/* requires fill_values. Static nodes in order: what they read first. */
static bool fill_sources(filling *f)
{
    for (uint32_t k = 0; k < f->g->n_order; k++) {
        const ot_node *n = &f->g->nodes[f->g->order[k]];
        ot_id *list = NULL;
        uint32_t count = 0;
        size_t cap = 0;
        if (!n->is_static) continue;
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i] != OT_NONE && !add_operand(f, &list, &count, &cap, n->in[i])) return false;
        for (uint32_t o = 0; o < n->n_out; o++) {
            if (n->out[o] == OT_NONE) continue;
            f->source[n->out[o]] = list;
            f->n_source[n->out[o]] = count;
        }
    }
    return true;
}

/* Every reader of what n makes is replaced by constants: then nobody needs n. */
static bool only_for_folded(const filling *f, const ot_node *n)
{
    bool any = false;
    for (uint32_t o = 0; o < n->n_out; o++) {
        if (n->out[o] == OT_NONE) continue;
        const ot_value *v = &f->g->values[n->out[o]];
        if (v->is_output) return false;
        for (uint32_t u = 0; u < v->n_uses; u++)
            if (!f->foldable[v->uses[u]]) return false;
        any |= v->n_uses > 0;
    }
    return any && n->is_static && n->n_captured == 0;
}

static void fill_foldable(filling *f)
{
    for (uint32_t k = f->g->n_order; k-- > 0;) {
        const ot_id n = f->g->order[k];
        f->foldable[n] = ot_static_foldable(f->file, &f->file->nodes[n]) ||
                         only_for_folded(f, &f->g->nodes[n]);
    }
}

/* requires ORDER, USES, SHAPES of both. keeps all. */
ot_status ot_dynamic_dims_set(const ot_graph *file, ot_graph *planned, const ot_graph *large)
{
    ot_arena *a = planned->model->arena;
    filling f = {.file = file, .g = planned, .a = a};
    ot_dynamic_dims *t = OT_NEW(a, ot_dynamic_dims);
    f.axes = OT_NEW_N(a, uint32_t, planned->n_values + 1u);
    f.varies = OT_NEW_N(a, bool, planned->n_values + 1u);
    f.unranked = OT_NEW_N(a, bool, planned->n_values + 1u);
    f.foldable = OT_NEW_N(a, bool, planned->n_nodes + 1u);
    f.source = ot_alloc_n(a, planned->n_values + 1u, sizeof *f.source);
    f.n_source = OT_NEW_N(a, uint32_t, planned->n_values + 1u);
    if (!t || !f.axes || !f.varies || !f.unranked || !f.foldable || !f.source || !f.n_source)
        return ot_fail_nomem(planned->model->diag);
    fill_values(&f);
    if (!fill_sources(&f)) return ot_fail_nomem(planned->model->diag);
    fill_foldable(&f);
    *t = (ot_dynamic_dims){.large = large,
                           .n_values = planned->n_values,
                           .n_nodes = planned->n_nodes,
                           .axes = f.axes,
                           .varies = f.varies,
                           .unranked = f.unranked,
                           .foldable = f.foldable,
                           .source = f.source,
                           .n_source = f.n_source};
    planned->model->dynamic_dims = t;
    if (large) large->model->dynamic_dims = t;
    return OT_OK;
}

void ot_dynamic_dims_small(ot_graph *planned, const ot_graph *small)
{
    /* ours: ot_dynamic_dims_set made it */
    ot_dynamic_dims *t = (ot_dynamic_dims *)planned->model->dynamic_dims;
    if (t) t->small = small;
}

void ot_dynamic_dims_bounded(ot_graph *planned)
{
    ot_dynamic_dims *t = (ot_dynamic_dims *)planned->model->dynamic_dims;
    if (t) t->bounded = true;
}

bool ot_axis_is_dynamic(const ot_graph *g, ot_id v, int32_t axis)
{
    const ot_dynamic_dims *t = g->model->dynamic_dims;
    return t && v != OT_NONE && v < t->n_values && axis >= 0 && axis < OT_RANK_MAX &&
           (t->axes[v] >> axis & 1u) != 0;
}

bool ot_value_varies(const ot_graph *g, ot_id v)
{
    const ot_dynamic_dims *t = g->model->dynamic_dims;
    return t && v != OT_NONE && v < t->n_values && t->varies[v];
}

bool ot_value_is_unranked(const ot_graph *g, ot_id v)
{
    const ot_dynamic_dims *t = g->model->dynamic_dims;
    return t && v != OT_NONE && v < t->n_values && t->unranked[v];
}
