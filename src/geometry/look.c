/* One set of axes: the model at two large sizes, and the maps of its nodes, which have to be the
 * same at both.
 *
 *   E + 3 steps   relations are asked here              steps are whole multiples of align
 *   E + 2 steps   and have to be the same here
 *
 * E is the size of the file, or the one that is asked for.
 */
#include "finding.h"

#define STEP      1920 /* rows: a multiple of usual alignments */
#define LONGER    8    /* times, where values have too few rows */
#define TRIES     8
#define ALIGN_MAX (1 << 16)

/* Products of rows and scales stay within 62 bits, and phases are walked one by one. */
#define ROWS_MAX   (1LL << 40)
#define SCALE_MAX  (1 << 20)
#define PHASES_MAX (1 << 17)

ot_status ot_geo_model_at(const ot_finding *f, ot_model **out, ot_id *node, const char **why)
{
    ot_diag aside = {0};
    OT_TRY(ot_model_clone(f->at.file, out));
    ot_model *m = *out;
    m->diag = &aside;
    m->unchanged = true;
    ot_status s = ot_infer_shapes(m->graph, f->at.bind, f->at.n);
    if (s == OT_OK) s = ot_assure(m->graph, OT_P_ORDER | OT_P_USES);
    m->diag = f->diag;
    if (s == OT_OK) return OT_OK;
    *node = m->failed_node;
    ot_model_free(m);
    *out = NULL;
    if (s == OT_E_NOMEM) return ot_fail_nomem(f->diag);
    const char *text = strstr(aside.message, "): ");
    *why = ot_strdup(f->out->arena, text ? text + 3 : aside.message);
    return *why ? OT_OK : ot_fail_nomem(f->diag);
}

void ot_geo_set_extents(const ot_finding *f, const ot_together *t, int64_t more)
{
    for (uint32_t k = 0; k < f->at.n; k++) {
        const int8_t axis = t->base.axis[f->at.input[k]];
        if (t->extent[k] == 0) continue;
        f->at.dims[k][axis] = t->extent[k] + more * t->extent[k] / t->extent[t->first];
    }
}

void ot_geo_reduce(int64_t *num, int64_t *den)
{
    const int64_t d = ot_gcd(*num, *den);
    *num /= d;
    *den /= d;
}

static ot_status stop(ot_tracing *w, ot_id n, const char *why)
{
    return ot_spread_stop(&w->s, w->a, n, OT_GEOMETRY_FIXED, why);
}

int64_t ot_geo_lcm(int64_t a, int64_t b) { return a / ot_gcd(a, b) * b; }

/* Crops begin where operand k of the node begins a period of the map. */
static bool align_to(ot_tracing *w, ot_id v, const ot_row_map *m)
{
    const int64_t num = w->flow.num[v], per = w->flow.den[v] * m->q;
    w->flow.align = ot_geo_lcm(w->flow.align, per / ot_gcd(num, per));
    return w->flow.align <= ALIGN_MAX;
}

/* All outputs of n that move lie at num/den, and have as many rows more as that says. */
static ot_status place_outputs(ot_tracing *w, ot_id id, int64_t num, int64_t den)
{
    const ot_node *n = &w->s.g->nodes[id];
    for (uint32_t o = 0; o < n->n_out; o++) {
        const ot_id y = n->out[o];
        if (y == OT_NONE || w->s.axis[y] < 0) continue;
        const int64_t large = w->s.g->values[y].dims[w->s.axis[y]],
                      less = w->beside->graph->values[y].dims[w->s.axis[y]];
        w->flow.num[y] = num;
        w->flow.den[y] = den;
        if (large > ROWS_MAX || num > SCALE_MAX || den > SCALE_MAX ||
            w->flow.align * num / den > PHASES_MAX)
            return stop(w, id, "its result has too many rows, or at too large a scale");
        if ((large - less) * den != w->step * num && w->step % den == 0)
            return stop(w, id, "the extent of its result does not follow that of the input");
    }
    return OT_OK;
}

/* The map of operand k, the same at both sizes; *fit says where it is not to be had. */
static ot_status map_operand(ot_tracing *w, const ot_spread *beside, ot_id id, uint32_t k,
                             ot_row_fit *fit)
{
    ot_row_map there;
    ot_row_map *m = &w->map[id][k];
    OT_TRY(ot_row_map_find(&w->s, id, k, w->a, m, fit));
    if (*fit != OT_ROWS_FIT) return OT_OK;
    OT_TRY(ot_row_map_find(beside, id, k, w->a, &there, fit));
    if (*fit == OT_ROWS_FIT && !ot_row_map_equal(m, &there)) *fit = OT_ROWS_ODD;
    return OT_OK;
}

void ot_geo_scale_by_extents(ot_tracing *w, ot_id v)
{
    const int8_t axis = w->s.axis[v];
    w->flow.num[v] = w->s.g->values[v].dims[axis] - w->beside->graph->values[v].dims[axis];
    w->flow.den[v] = w->step;
    if (w->flow.num[v] > 0) ot_geo_reduce(&w->flow.num[v], &w->flow.den[v]);
}

/* Rows of node id are not read alike wherever they lie. */
static ot_status stop_odd(ot_tracing *w, ot_id id)
{
    const ot_node *n = &w->s.g->nodes[id];
    ot_arena *a = w->f->out->arena;
    size_t count = 0;
    const int64_t *shape = ot_attr_ints(n, "output_shape", &count);
    if (count == 0) return stop(w, id, "what its rows read is not the same wherever they lie");
    const char *size = ot_format(a, "%lld", (long long)shape[0]);
    for (size_t k = 1; size && k < count; k++)
        size = ot_format(a, "%s x %lld", size, (long long)shape[k]);
    const char *why = size ? ot_format(a,
                                       "its attribute output_shape is %s, whatever the extent "
                                       "of the input",
                                       size)
                           : NULL;
    return why ? stop(w, id, why) : ot_fail_nomem(w->f->diag);
}

/* Maps of one node, and where its outputs lie. */
static ot_status map_node(ot_tracing *w, const ot_spread *beside, ot_id id, ot_row_fit *fit)
{
    const ot_node *n = &w->s.g->nodes[id];
    int64_t num = 0, den = 1;
    w->map[id] = OT_NEW_N(w->a, ot_row_map, n->n_in + 1u);
    if (!w->map[id]) return ot_fail_nomem(w->f->diag);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const ot_id v = n->in[k];
        if (v == OT_NONE || w->s.in_axis[id][k] < 0) continue;
        if (!w->s.reads[v] && !ot_spread_runs(&w->s, n)) continue;
        if (w->flow.num[v] == 0) ot_geo_scale_by_extents(w, v);
        if (w->flow.num[v] <= 0)
            return stop(w, id, "the extent of an operand does not follow that of the input");
        OT_TRY(map_operand(w, beside, id, k, fit));
        if (*fit == OT_ROWS_SHORT) return OT_OK;
        ot_row_map *m = &w->map[id][k];
        if (*fit == OT_ROWS_ODD) return stop_odd(w, id);
        if (!align_to(w, v, m)) return stop(w, id, "crops would have to be aligned too far");
        int64_t x = w->flow.num[v] * m->p, y = w->flow.den[v] * m->q;
        ot_geo_reduce(&x, &y);
        if (num != 0 && (x != num || y != den))
            return stop(w, id, "its operands lie at different scales of the input");
        num = x;
        den = y;
    }
    return num == 0 ? OT_OK : place_outputs(w, id, num, den);
}

static bool is_behind(const ot_spread *s, const ot_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++)
        if (n->in[k] != OT_NONE && s->behind[n->in[k]]) return true;
    for (uint32_t k = 0; k < n->n_captured; k++)
        if (s->behind[n->captured[k]]) return true;
    return false;
}

/* Maps of all nodes that no barrier comes before. */
static ot_status map_nodes(ot_tracing *w, const ot_spread *beside, ot_row_fit *fit)
{
    const ot_graph *g = w->s.g;
    for (uint32_t k = 0; k < g->n_order; k++) {
        const ot_id id = g->order[k];
        const ot_node *n = &g->nodes[id];
        *fit = OT_ROWS_FIT;
        bool behind = is_behind(&w->s, n) || w->s.stops[id];
        if (!behind && w->s.lead[id] != OT_NONE) OT_TRY(map_node(w, beside, id, fit));
        if (*fit == OT_ROWS_SHORT) return OT_OK;
        behind |= w->s.stops[id];
        if (behind) w->map[id] = NULL;
        for (uint32_t o = 0; o < n->n_out; o++)
            if (n->out[o] != OT_NONE) w->s.behind[n->out[o]] |= behind;
    }
    *fit = OT_ROWS_FIT;
    return OT_OK;
}

static ot_status start_flow(ot_tracing *w)
{
    const ot_graph *g = w->large->graph;
    const ot_together *t = w->t;
    w->map = ot_alloc_n(w->a, g->n_nodes + 1u, sizeof *w->map);
    w->need = OT_NEW_N(w->a, int64_t, 2 * (size_t)g->n_values + 2);
    w->flow = (ot_flow){.s = &w->s,
                        .num = OT_NEW_N(w->a, int64_t, g->n_values + 1u),
                        .den = OT_NEW_N(w->a, int64_t, g->n_values + 1u),
                        .align = 1,
                        .extent = t->extent[t->first] + 3 * w->step};
    w->flow.map = (const ot_row_map *const *)w->map;
    if (!w->map || !w->need || !w->flow.num || !w->flow.den) return ot_fail_nomem(w->f->diag);
    for (uint32_t k = 0; k < w->f->at.n; k++) {
        if (t->extent[k] == 0) continue;
        const ot_id v = w->f->at.input[k];
        w->flow.num[v] = t->extent[k];
        w->flow.den[v] = t->extent[t->first];
        ot_geo_reduce(&w->flow.num[v], &w->flow.den[v]);
        w->flow.align = ot_geo_lcm(w->flow.align, w->flow.den[v]);
    }
    return OT_OK;
}

/* Look at the model 3 and 2 steps longer; *fit OT_ROWS_SHORT: look at longer ones. *node: where it
 * takes no other size (*why); OT_NONE and *why NULL: it does. */
static ot_status look(ot_tracing *w, ot_row_fit *fit, ot_id *node, const char **why)
{
    ot_spread beside = {.runs = w->t->base.runs};
    const ot_id seed = w->f->at.input[w->t->first];
    const uint32_t axis = (uint32_t)w->t->base.axis[seed];
    *why = NULL;
    *fit = OT_ROWS_FIT;
    ot_geo_set_extents(w->f, w->t, 3 * w->step);
    OT_TRY(ot_geo_model_at(w->f, &w->large, node, why));
    if (!w->large) return OT_OK;
    ot_geo_set_extents(w->f, w->t, 2 * w->step);
    OT_TRY(ot_geo_model_at(w->f, &w->beside, node, why));
    if (!w->beside) return OT_OK;
    w->s.runs = w->t->base.runs;
    OT_TRY(ot_spread_fill(w->large->graph, w->beside->graph, seed, axis, w->a, &w->s));
    OT_TRY(ot_spread_fill(w->beside->graph, w->large->graph, seed, axis, w->a, &beside));
    OT_TRY(start_flow(w));
    OT_TRY(map_nodes(w, &beside, fit));
    if (*fit == OT_ROWS_FIT && w->step % w->flow.align != 0) *fit = OT_ROWS_SHORT;
    return OT_OK;
}

void ot_geo_drop(ot_tracing *w)
{
    ot_model_free(w->large);
    ot_model_free(w->beside);
    w->large = w->beside = NULL;
}

/* Look at longer and longer models until relations show; *node, *why as of look. */
ot_status ot_geo_look(ot_tracing *w, ot_row_fit *fit, ot_id *node, const char **why)
{
    w->step = STEP;
    for (int tries = 0; tries < TRIES; tries++) {
        ot_geo_drop(w);
        OT_TRY(look(w, fit, node, why));
        if (*fit != OT_ROWS_SHORT || *why) return OT_OK;
        const bool aligned = w->step % w->flow.align == 0;
        w->step = aligned ? w->step * LONGER : ot_geo_lcm(w->flow.align, w->step);
    }
    return OT_OK;
}
