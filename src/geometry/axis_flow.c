/* See axis_flow.h. The search is that of a geometry (look.c), for one set of axes. */
#include "axis_flow.h"
#include "finding.h"

#define REMAINDERS_MAX 512       /* that are looked at one by one */
#define EXTENTS_MAX    (1 << 22) /* that are kept */

/* What a flow keeps of the search. */
typedef struct search {
    ot_geometry names; /* the arena that the search writes to */
    ot_finding f;
    ot_together t;
    ot_tracing w;
    const int64_t **made;
} search;

static ot_status cannot(const search *x, const ot_graph *g, ot_id node, const char *why)
{
    if (node == OT_NONE)
        return ot_fail(x->f.diag, OT_E_INPUT, "the axis cannot be cut: %.300s", why);
    return ot_fail(x->f.diag, OT_E_INPUT, "node '%.300s' (%.60s): %.300s",
                   g->nodes[node].name[0] || g->nodes[node].n_out == 0 ||
                           g->nodes[node].out[0] == OT_NONE
                       ? g->nodes[node].name
                       : g->values[g->nodes[node].out[0]].name,
                   g->nodes[node].op_type, why);
}

/* The named input, in f->at. */
static ot_status find_named(search *x, const char *input, int64_t axis, uint32_t *named)
{
    const ot_graph *g = x->f.base->graph;
    for (*named = 0; *named < x->f.at.n; (*named)++) {
        const ot_value *v = &g->values[x->f.at.input[*named]];
        if (strcmp(v->name, input) != 0) continue;
        if (axis < 0 || axis >= v->rank)
            return ot_fail(x->f.diag, OT_E_USAGE,
                           "input '%.300s' has %d axes: there is no axis %lld", input, (int)v->rank,
                           (long long)axis);
        if (v->dims[axis] < 2)
            return ot_fail(
                x->f.diag, OT_E_USAGE,
                "axis %lld of input '%.300s' has %lld rows, which shows no relation: give "
                "a larger size with --shape",
                (long long)axis, input, (long long)v->dims[axis]);
        return OT_OK;
    }
    return ot_fail(x->f.diag, OT_E_USAGE, "the model has no input '%.300s'", input);
}

/* Every map of w holds in s. */
static ot_status all_hold(const ot_tracing *w, const ot_spread *s, ot_arena *a, bool *hold)
{
    const ot_graph *g = w->s.g;
    *hold = true;
    for (ot_id id = 0; id < g->n_nodes && *hold; id++)
        for (uint32_t j = 0; w->map[id] && j < g->nodes[id].n_in && *hold; j++) {
            if (w->map[id][j].p == 0) continue;
            *hold = s->lead[id] == w->s.lead[id] && s->in_axis[id] &&
                    s->in_axis[id][j] == w->s.in_axis[id][j];
            if (*hold) OT_TRY(ot_row_map_holds(s, id, j, &w->map[id][j], a, hold));
        }
    return OT_OK;
}

/* Extents of values in m, a copy that is `more` rows longer than the flow's model. */
static ot_status note_extents(search *x, const ot_graph *g, const int64_t **out)
{
    int64_t *made = OT_NEW_N(x->f.at.a, int64_t, g->n_values + 1u);
    if (!made) return ot_fail_nomem(x->f.diag);
    for (ot_id v = 0; v < g->n_values; v++)
        if (x->w.s.axis[v] >= 0 && g->values[v].rank > x->w.s.axis[v])
            made[v] = g->values[v].dims[x->w.s.axis[v]];
    *out = made;
    return OT_OK;
}

static ot_status see_remainder(search *x, int64_t rest, const int64_t **out)
{
    ot_spread s = {.runs = true};
    ot_model *m;
    ot_id node;
    const char *why;
    bool fit = true, hold = false;
    const int64_t align = x->w.flow.align, extent = x->w.flow.extent;
    const int64_t more = extent - extent % align + align + rest - x->t.extent[x->t.first];
    for (uint32_t k = 0; k < x->f.at.n; k++)
        fit &= x->t.extent[k] == 0 || more * x->t.extent[k] % x->t.extent[x->t.first] == 0;
    if (!fit) return OT_OK;
    ot_geo_set_extents(&x->f, &x->t, more);
    OT_TRY(ot_geo_model_at(&x->f, &m, &node, &why));
    if (!m) return OT_OK;
    ot_arena *a = ot_arena_new();
    ot_status st = a ? ot_spread_fill(m->graph, x->w.large->graph, x->f.at.input[x->t.first],
                                      (uint32_t)x->t.base.axis[x->f.at.input[x->t.first]], a, &s)
                     : ot_fail_nomem(x->f.diag);
    if (st == OT_OK) st = all_hold(&x->w, &s, a, &hold);
    if (st == OT_OK && hold) st = note_extents(x, m->graph, out);
    ot_arena_free(a);
    ot_model_free(m);
    return st;
}

static ot_status see_remainders(search *x, bool *all)
{
    const int64_t align = x->w.flow.align, own = x->w.flow.extent % align;
    x->made = OT_NEW_N(x->f.at.a, const int64_t *, (size_t)align);
    if (!x->made) return ot_fail_nomem(x->f.diag);
    *all = align <= REMAINDERS_MAX && align * x->w.s.g->n_values <= EXTENTS_MAX;
    for (int64_t r = 0; r < align; r++)
        if (*all || r == own) OT_TRY(see_remainder(x, r, &x->made[r]));
    ot_geo_set_extents(&x->f, &x->t, x->w.flow.extent - x->t.extent[x->t.first]);
    return OT_OK;
}

static void scale_rest(search *x)
{
    for (ot_id v = 0; v < x->w.s.g->n_values; v++)
        if (x->w.s.axis[v] >= 0 && x->w.flow.num[v] == 0 && !x->w.s.reads[v])
            ot_geo_scale_by_extents(&x->w, v);
}

static ot_status search_axis(search *x, const ot_shape_binding *bind, size_t n, const char *input,
                             int64_t axis, ot_axis_flow *out)
{
    ot_row_fit fit;
    ot_id node = OT_NONE;
    const char *why;
    bool ratio;
    OT_TRY(ot_geo_base(&x->f, bind, n));
    OT_TRY(find_named(x, input, axis, &out->named));
    x->t.base.runs = true;
    OT_TRY(ot_spread_fill(x->f.base->graph, NULL, x->f.at.input[out->named], (uint32_t)axis,
                          out->arena, &x->t.base));
    OT_TRY(ot_geo_extents(&x->f, &x->t, &ratio));
    if (!ratio) return cannot(x, NULL, OT_NONE, "its inputs' extents have no small ratio");
    x->w = (ot_tracing){.f = &x->f, .t = &x->t, .a = out->arena};
    OT_TRY(ot_geo_look(&x->w, &fit, &node, &why));
    if (!why && fit != OT_ROWS_FIT)
        why = "too few rows are left of some value to see what it reads";
    if (why) return cannot(x, x->f.base->graph, node, why);
    scale_rest(x);
    OT_TRY(see_remainders(x, &out->all_seen));
    out->model = x->w.large;
    out->s = &x->w.s;
    out->flow = &x->w.flow;
    out->n_inputs = x->f.at.n;
    out->bind = x->f.at.bind;
    out->dims = x->f.at.dims;
    out->input = x->f.at.input;
    out->extent = x->t.extent;
    out->first = x->t.first;
    out->made = x->made;
    return OT_OK;
}

ot_status ot_axis_flow_find(const ot_model *model, const ot_shape_binding *bind, size_t n,
                            const char *input, int64_t axis, ot_axis_flow *out)
{
    ot_arena *a = ot_arena_new();
    search *x = a ? OT_NEW(a, search) : NULL;
    *out = (ot_axis_flow){.arena = a, .finding = x};
    if (!x) return ot_fail_nomem(model->diag);
    x->names.arena = a;
    x->f = (ot_finding){.at = {.file = model, .a = a}, .diag = model->diag, .out = &x->names};
    return search_axis(x, bind, n, input, axis, out);
}

void ot_axis_flow_free(ot_axis_flow *f)
{
    search *x = f->finding;
    if (x) {
        ot_geo_drop(&x->w);
        ot_model_free(x->f.base);
    }
    ot_arena_free(f->arena);
    *f = (ot_axis_flow){0};
}
