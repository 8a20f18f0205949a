/* What stands in the way of crops, and what of it is a number of all rows that parts hand out. */
#include "passes_internal.h"

#include "ops/access_same.h"

ot_status passes_refuse(const pass_maker *p, ot_id node, const char *kind, const char *why)
{
    const ot_node *n = &p->base->graph->nodes[node];
    const bool named = n->name[0] || n->n_out == 0 || n->out[0] == OT_NONE;
    return ot_fail(p->m->diag, OT_E_INPUT,
                   "cannot be made of passes: node '%.160s' (%.60s), %s: %s",
                   named ? n->name : p->base->graph->values[n->out[0]].name, n->op_type, kind, why);
}

const char *passes_advice(ot_geometry_kind kind)
{
    switch (kind) {
    case OT_GEOMETRY_REDUCE:
        return "no sum, mean, largest value or normalisation that parts can be put together to";
    case OT_GEOMETRY_ATTENTION: return "export it with windows of a fixed size, as it was trained";
    case OT_GEOMETRY_FIXED: return "export it for the size of the parts, or without sizes in it";
    case OT_GEOMETRY_DATA: break;
    }
    return "only a run on the whole gives its result";
}

static bool is_real(ot_dtype t) { return ot_dtype_is_real(t) || t == OT_F64; }

/* Elements that float64 holds as they are. */
static bool is_held(ot_dtype t)
{
    return is_real(t) || (t != OT_I64 && t != OT_U64 && ot_dtype_bits(t) >= 8 && t <= OT_U32 &&
                          t != OT_STRING && t != OT_BOOL);
}

/* Node id reduces, over axes that are known, to what parts can be put together to. */
static bool find_reduction(const ot_graph *g, ot_id id, pass_statistic *s)
{
    const ot_node *n = &g->nodes[id];
    ot_why why;
    switch (n->op) {
    case OT_OP_GlobalAveragePool:
    case OT_OP_ReduceMean: s->is.kind = OT_STATISTIC_MEAN; break;
    case OT_OP_ReduceSum:
    case OT_OP_ReduceSumSquare:
    case OT_OP_ReduceL1:
    case OT_OP_ReduceL2:
    case OT_OP_ReduceLogSum: s->is.kind = OT_STATISTIC_SUM; break;
    case OT_OP_GlobalMaxPool:
    case OT_OP_ReduceMax: s->is.kind = OT_STATISTIC_MAX; break;
    case OT_OP_ReduceMin: s->is.kind = OT_STATISTIC_MIN; break;
    default: return false;
    }
    const ot_value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    const bool any = s->is.kind == OT_STATISTIC_MAX || s->is.kind == OT_STATISTIC_MIN;
    if (!ot_value_is_static(x) || !ot_value_is_static(y) || x->dtype != y->dtype ||
        !(any ? is_held(x->dtype) : is_real(x->dtype)))
        return false;
    if (ot_op_access(n->op) == OT_ACC_GLOBALPOOL) {
        for (int32_t a = 2; a < x->rank; a++) s->reduced[a] = true;
    } else if (!ot_acc_reduced_axes(g, n, x->rank, s->reduced, &why)) {
        return false;
    }
    s->x = n->in[0];
    s->y = n->out[0];
    s->node = id;
    return true;
}

static bool find_norm(const ot_graph *g, ot_id id, pass_statistic *s)
{
    if (!ot_decompose_find(g, id, &s->norm)) return false;
    s->is.kind = OT_STATISTIC_MOMENTS;
    s->x = s->norm.x;
    s->y = s->norm.y;
    s->node = id;
    for (int32_t a = 2; a < g->values[s->x].rank; a++) s->reduced[a] = true;
    return true;
}

/* Names, shape and number of what is found. */
static ot_status describe(pass_maker *p, pass_statistic *s)
{
    const ot_graph *g = p->base->graph;
    const ot_value *x = &g->values[s->x];
    const ot_node *n = &g->nodes[s->node];
    ot_arena *a = p->out->arena;
    s->is.size = 1;
    for (int32_t k = 0; k < x->rank; k++) {
        s->shape[k] = s->reduced[k] ? 1 : x->dims[k];
        if (!ot_mul_i64(s->is.size, s->shape[k], &s->is.size))
            return passes_refuse(p, s->node, "reduce", "too many numbers of it");
    }
    const char *base = ot_format(a, "%s.%s", ot_statistic_kind_name(s->is.kind), x->name);
    const char *name = base ? ot_fresh_name(p->base, base) : NULL;
    s->is.name = name ? ot_strdup(a, name) : NULL;
    s->is.node = ot_strdup(a, n->name[0] ? n->name : g->values[n->out[0]].name);
    s->is.op = ot_strdup(a, n->op_type);
    s->is.value = ot_strdup(a, x->name);
    s->is.rank = (uint32_t)x->rank;
    return s->is.name && s->is.node && s->is.op && s->is.value ? OT_OK : ot_fail_nomem(p->m->diag);
}

/* Nodes that statistics take the place of. */
static void mark(const pass_statistic *s, bool *taken)
{
    taken[s->node] = true;
    for (uint32_t k = 0; s->is.kind == OT_STATISTIC_MOMENTS && k < s->norm.n_nodes; k++)
        taken[s->norm.nodes[k]] = true;
}

static bool has_barrier(const pass_statistic *s, const bool *barred)
{
    bool any = barred[s->node];
    for (uint32_t k = 0; s->is.kind == OT_STATISTIC_MOMENTS && k < s->norm.n_nodes; k++)
        any |= barred[s->norm.nodes[k]];
    return any;
}

/* Node n of statistic s is in the way of that axis of that input, of some output. */
static bool is_barrier_of(const pass_statistic *s, const ot_geometry *g, const char *input,
                          uint32_t axis)
{
    for (uint32_t k = 0; k < g->n_pairs; k++)
        for (uint32_t j = 0; j < g->pairs[k].n_barriers; j++) {
            const ot_geometry_barrier *b = &g->pairs[k].barriers[j];
            bool own = b->node == s->node;
            for (uint32_t i = 0; s->is.kind == OT_STATISTIC_MOMENTS && i < s->norm.n_nodes; i++)
                own |= b->node == s->norm.nodes[i];
            if (own && b->input_axis == axis && strcmp(g->pairs[k].input, input) == 0) return true;
        }
    return false;
}

/* It is over all axes that crops are cut along: one that is left would be one of its numbers. */
static ot_status check_axes(const pass_maker *p, const pass_statistic *s, const ot_geometry *g)
{
    for (uint32_t k = 0; k < g->n_pairs; k++) {
        const ot_geometry_pair *pair = &g->pairs[k];
        uint32_t over = 0, all = 0;
        for (uint32_t axis = 0; axis < pair->input_rank; axis++) {
            bool cut = false;
            for (uint32_t j = 0; j < pair->n_axes; j++) cut |= pair->axes[j].input_axis == axis;
            for (uint32_t j = 0; j < pair->n_barriers; j++)
                cut |= pair->barriers[j].input_axis == axis;
            all += cut;
            over += cut && is_barrier_of(s, g, pair->input, axis);
        }
        if (over > 0 && over < all)
            return passes_refuse(p, s->node, "reduce",
                                 "it keeps an axis that crops are cut along beside one that it "
                                 "reduces");
    }
    return OT_OK;
}

/* Which pass each is of: one more than what its value needs. */
static ot_status order_by_pass(pass_maker *p)
{
    const ot_graph *g = p->base->graph;
    uint32_t *level = OT_NEW_N(p->out->arena, uint32_t, g->n_values + 1u), done = 0;
    pass_statistic *sorted = OT_NEW_N(p->out->arena, pass_statistic, p->n + 1u);
    if (!level || !sorted) return ot_fail_nomem(p->m->diag);
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_node *n = &g->nodes[g->order[k]];
        uint32_t most = 0;
        for (uint32_t j = 0; j < n->n_in; j++)
            if (n->in[j] != OT_NONE && level[n->in[j]] > most) most = level[n->in[j]];
        for (uint32_t j = 0; j < n->n_captured; j++)
            if (level[n->captured[j]] > most) most = level[n->captured[j]];
        for (uint32_t o = 0; o < n->n_out; o++) {
            if (n->out[o] == OT_NONE) continue;
            level[n->out[o]] = most;
            for (uint32_t j = 0; j < p->n; j++)
                if (p->found[j].y == n->out[o] && level[p->found[j].x] + 1 > level[n->out[o]])
                    level[n->out[o]] = level[p->found[j].x] + 1;
        }
    }
    for (uint32_t k = 0; k < p->n; k++) p->found[k].is.pass = level[p->found[k].x] + 1;
    for (uint32_t pass = 1; done < p->n; pass++)
        for (uint32_t k = 0; k < p->n; k++)
            if (p->found[k].is.pass == pass) sorted[done++] = p->found[k];
    p->found = sorted;
    p->out->n_passes = p->n ? sorted[p->n - 1].is.pass : 0;
    return OT_OK;
}

ot_status passes_find(pass_maker *p, const ot_geometry *geometry)
{
    const ot_graph *g = p->base->graph;
    size_t cap = 0;
    bool *barred = OT_NEW_N(p->out->arena, bool, g->n_nodes + 1u),
         *taken = OT_NEW_N(p->out->arena, bool, g->n_nodes + 1u);
    if (!barred || !taken) return ot_fail_nomem(p->m->diag);
    for (uint32_t k = 0; k < geometry->n_pairs; k++)
        for (uint32_t j = 0; j < geometry->pairs[k].n_barriers; j++)
            barred[geometry->pairs[k].barriers[j].node] = true;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        pass_statistic s = {0};
        if (g->nodes[id].is_static || taken[id]) continue;
        if (!find_norm(g, id, &s) || !has_barrier(&s, barred)) {
            s = (pass_statistic){0};
            if (!barred[id] || !find_reduction(g, id, &s)) continue;
        }
        mark(&s, taken);
        OT_TRY(check_axes(p, &s, geometry));
        OT_TRY(describe(p, &s));
        if (!OT_PUSH(p->out->arena, p->found, p->n, cap, s)) return ot_fail_nomem(p->m->diag);
    }
    for (uint32_t k = 0; k < geometry->n_pairs; k++)
        for (uint32_t j = 0; j < geometry->pairs[k].n_barriers; j++) {
            const ot_geometry_barrier *b = &geometry->pairs[k].barriers[j];
            if (taken[b->node]) continue;
            const char *why = ot_format(p->out->arena, "%s; %s", b->why, passes_advice(b->kind));
            if (!why) return ot_fail_nomem(p->m->diag);
            return passes_refuse(p, b->node, ot_geometry_kind_name(b->kind), why);
        }
    return order_by_pass(p);
}
