/* The geometry of a model: the sets of input axes that are cropped together, each looked at by
 * itself (finding.h). Where the file leaves extents open and nobody has said one, every remainder
 * modulo align is looked at, and the largest halo is told.
 */
#include "finding.h"

#include "ops/guessed_size.h"

#define RATIO_MAX 64 /* rows of inputs to each other */
#define OPEN_MAX  64 /* largest alignment for which every extent modulo it is looked at */

/* A whole input of `more` rows more: outputs need at least what `found` says already, or what they
 * need then, where all else is as it was and the model takes that. */
static ot_status widen(ot_tracing *w, int64_t more, int64_t align, ot_reach *found)
{
    const ot_together *t = w->t;
    ot_arena *kept = w->a;
    ot_row_fit fit;
    ot_id node;
    const char *why;
    ot_reach *there;
    w->a = ot_arena_new();
    t->extent[t->first] += more;
    ot_status s = w->a ? OT_OK : ot_fail_nomem(w->f->diag);
    for (uint32_t k = 0; k < w->f->at.n; k++) /* all are as long as the reference */
        if (t->extent[k] > 0 && k != t->first) t->extent[k] += more;
    if (s == OT_OK) s = ot_geo_look(w, &fit, &node, &why);
    if (s == OT_OK && !why && fit == OT_ROWS_FIT && w->flow.align == align) {
        const uint32_t n = w->s.g->n_outputs;
        there = OT_NEW_N(w->a, ot_reach, n + 1u);
        s = there ? ot_geo_reaches(w, there) : ot_fail_nomem(w->f->diag);
        for (uint32_t o = 0; s == OT_OK && o < n; o++) {
            const ot_reach *x = &there[o];
            ot_reach *y = &found[o];
            if (!x->known || !y->known || x->num != y->num || x->den != y->den ||
                x->offset != y->offset) {
                y->any_extent = false;
                continue;
            }
            y->halo_lo = ot_max(y->halo_lo, x->halo_lo);
            y->halo_hi = ot_max(y->halo_hi, x->halo_hi);
            y->least = ot_max(y->least, x->least);
        }
    }
    if (s == OT_OK && !why && (fit != OT_ROWS_FIT || w->flow.align != align))
        for (uint32_t o = 0; o < w->t->base.g->n_outputs; o++) found[o].any_extent = false;
    for (uint32_t k = 0; k < w->f->at.n; k++)
        if (t->extent[k] > 0) t->extent[k] -= more;
    ot_geo_drop(w);
    ot_arena_free(w->a);
    w->a = kept;
    return s;
}

/* The file leaves the extents of all inputs that move open, they are one extent, and nobody has
 * said which: then the geometry is that of every extent. */
static bool is_open(const ot_tracing *w)
{
    const ot_together *t = w->t;
    for (uint32_t k = 0; k < w->f->at.n; k++) {
        const ot_id x = w->f->at.input[k];
        if (t->extent[k] == 0) continue;
        if (t->extent[k] != t->extent[t->first] || w->f->given[k]) return false;
        if (w->f->at.file->graph->values[x].rank < 0) continue;
        if (w->f->at.file->graph->values[x].dims[t->base.axis[x]] >= 0) return false;
    }
    return true;
}

static ot_status find_together(ot_tracing *w)
{
    ot_row_fit fit;
    ot_id node = OT_NONE;
    const char *why;
    ot_spread *s = &w->t->base;
    w->found = OT_NEW_N(w->f->out->arena, ot_reach, s->g->n_outputs + 1u);
    if (!w->found) return ot_fail_nomem(w->f->diag);
    OT_TRY(ot_geo_look(w, &fit, &node, &why));
    if (!why && fit == OT_ROWS_FIT) {
        const int64_t align = w->flow.align;
        const bool any = align == 1 || (align <= OPEN_MAX && is_open(w));
        OT_TRY(ot_geo_reaches(w, w->found));
        for (uint32_t o = 0; o < s->g->n_outputs; o++) w->found[o].any_extent = any;
        for (int64_t more = 1; any && more < align; more++) OT_TRY(widen(w, more, align, w->found));
        if (any && align > 1) OT_TRY(ot_geo_look(w, &fit, &node, &why)); /* as it was */
        return ot_geo_tell(w, &w->s);
    }
    if (!why) why = "too few rows are left of some value to see what it reads";
    if (node == OT_NONE && s->g->n_order > 0) node = s->g->order[0];
    if (node != OT_NONE) OT_TRY(ot_spread_stop(s, w->f->out->arena, node, OT_GEOMETRY_FIXED, why));
    for (uint32_t k = 0; k < s->n_barriers; k++)
        if (s->barriers[k].node == node) s->barriers[k].why = why;
    return ot_geo_tell(w, s);
}

/* ---- the model ---- */

static bool has_to_be_given(const ot_value *v) { return !v->init && v->is_tensor; }

ot_status ot_geo_base(ot_finding *f, const ot_shape_binding *bind, size_t n)
{
    ot_arena *a = f->out->arena;
    ot_guessed_sizes sizes;
    OT_TRY(ot_guess_sizes(f->at.file, bind, n, "--shape", a, &sizes));
    OT_TRY(ot_model_clone(f->at.file, &f->base));
    ot_graph *g = f->base->graph;
    f->base->unchanged = true;
    OT_TRY(ot_infer_shapes(g, sizes.found ? sizes.all : bind, sizes.found ? sizes.n : n));
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    f->at.bind = OT_NEW_N(a, ot_shape_binding, g->n_inputs + 1u);
    f->at.dims = ot_alloc_n(a, g->n_inputs + 1u, sizeof *f->at.dims);
    f->at.input = OT_NEW_N(a, ot_id, g->n_inputs + 1u);
    f->given = OT_NEW_N(a, bool, g->n_inputs + 1u);
    f->out->inputs = ot_alloc_n(a, g->n_inputs + 1u, sizeof *f->out->inputs);
    if (!f->at.bind || !f->at.dims || !f->at.input || !f->given || !f->out->inputs)
        return ot_fail_nomem(f->diag);
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (!has_to_be_given(v)) continue;
        if (!ot_value_is_static(v))
            return ot_fail(f->diag, OT_E_USAGE,
                           "input '%.300s' has dynamic dimensions: bind them with --shape "
                           "%.300s=D,D,...",
                           v->name, v->name);
        int64_t *dims = OT_NEW_N(a, int64_t, (size_t)v->rank + 1);
        if (!dims) return ot_fail_nomem(f->diag);
        if (v->rank > 0) memcpy(dims, v->dims, (size_t)v->rank * sizeof *dims);
        f->at.dims[f->at.n] = dims;
        f->at.input[f->at.n] = g->inputs[k];
        f->out->inputs[f->at.n] = v->name;
        for (size_t j = 0; j < n; j++) f->given[f->at.n] |= strcmp(bind[j].input, v->name) == 0;
        f->at.bind[f->at.n++] = (ot_shape_binding){
            .input = v->name, .rank = (uint32_t)v->rank, .dims = dims, .replace = true};
    }
    f->out->n_inputs = f->at.n;
    return OT_OK;
}

ot_status ot_geo_extents(ot_finding *f, ot_together *t, bool *fit)
{
    t->extent = OT_NEW_N(f->out->arena, int64_t, f->at.n + 1u);
    if (!t->extent) return ot_fail_nomem(f->diag);
    t->first = OT_NONE;
    *fit = true;
    for (uint32_t k = 0; k < f->at.n; k++) {
        const int8_t axis = t->base.axis[f->at.input[k]];
        if (axis < 0) continue;
        t->extent[k] = f->at.dims[k][axis];
        if (t->first == OT_NONE || t->extent[k] > t->extent[t->first]) t->first = k;
    }
    for (uint32_t k = 0; k < f->at.n; k++)
        if (t->extent[k] > 0)
            *fit &= t->extent[t->first] / ot_gcd(t->extent[k], t->extent[t->first]) <= RATIO_MAX;
    return OT_OK;
}

/* Is the axis one that people crop? Where operators of pictures are, theirs; else all but the batch
 * and what weights are multiplied with. */
static bool is_wanted(const ot_finding *f, const ot_together *t, bool pictures)
{
    const ot_id x = f->at.input[t->first];
    const int8_t axis = t->base.axis[x];
    if (t->base.is_spatial) return true;
    if (t->base.is_feature) return false;
    const int32_t rank = f->base->graph->values[x].rank;
    return pictures || rank >= 4 ? axis >= 2 : axis >= 1 || rank == 1;
}

static ot_status find_one(ot_finding *f, ot_together *t)
{
    ot_tracing w = {.f = f, .t = t, .a = ot_arena_new()};
    if (!w.a) return ot_fail_nomem(f->diag);
    ot_status s = find_together(&w);
    for (uint32_t k = 0; k < f->at.n; k++) /* as they were */
        if (t->extent[k] > 0) f->at.dims[k][t->base.axis[f->at.input[k]]] = t->extent[k];
    ot_geo_drop(&w);
    ot_arena_free(w.a);
    return s;
}

/* The sets of axes that move together, each once. */
static ot_status find_sets(ot_finding *f, ot_together **all, uint32_t *n)
{
    size_t cap = 0;
    for (uint32_t k = 0; k < f->at.n; k++)
        for (uint32_t axis = 0; axis < f->at.bind[k].rank; axis++) {
            bool known = f->at.dims[k][axis] < 2;
            for (uint32_t j = 0; j < *n; j++)
                known |= (*all)[j].base.axis[f->at.input[k]] == (int8_t)axis;
            if (known) continue;
            ot_together t = {0};
            bool fit = false;
            OT_TRY(
                ot_spread_fill(f->base->graph, NULL, f->at.input[k], axis, f->out->arena, &t.base));
            OT_TRY(ot_geo_extents(f, &t, &fit));
            if (!fit) continue;
            if (!OT_PUSH(f->out->arena, *all, *n, cap, t)) return ot_fail_nomem(f->diag);
        }
    return OT_OK;
}

static ot_status find_all(ot_finding *f, const ot_shape_binding *bind, size_t n)
{
    ot_together *all = NULL;
    uint32_t count = 0;
    bool pictures = false;
    OT_TRY(ot_geo_base(f, bind, n));
    OT_TRY(find_sets(f, &all, &count));
    for (uint32_t k = 0; k < count; k++) pictures |= all[k].base.is_spatial;
    for (uint32_t k = 0; k < count; k++)
        if (is_wanted(f, &all[k], pictures)) OT_TRY(find_one(f, &all[k]));
    return OT_OK;
}

/* Names outlive the copies of the model. */
static ot_status keep_names(ot_finding *f)
{
    ot_geometry *g = f->out;
    bool ok = true;
    for (uint32_t k = 0; k < g->n_inputs; k++)
        ok &= (g->inputs[k] = ot_strdup(g->arena, g->inputs[k])) != NULL;
    for (uint32_t k = 0; k < g->n_pairs; k++) {
        ot_geometry_pair *p = &g->pairs[k];
        ok &= (p->output = ot_strdup(g->arena, p->output)) != NULL;
        ok &= (p->input = ot_strdup(g->arena, p->input)) != NULL;
        for (uint32_t j = 0; j < p->n_barriers; j++) {
            ok &= (p->barriers[j].name = ot_strdup(g->arena, p->barriers[j].name)) != NULL;
            ok &= (p->barriers[j].op = ot_strdup(g->arena, p->barriers[j].op)) != NULL;
        }
    }
    return ok ? OT_OK : ot_fail_nomem(f->diag);
}

ot_status ot_geometry_find(const ot_model *model, const ot_shape_binding *bind, size_t n,
                           ot_geometry **out)
{
    ot_arena *a = ot_arena_new();
    *out = a ? OT_NEW(a, ot_geometry) : NULL;
    if (!*out) {
        ot_arena_free(a);
        return ot_fail_nomem(model->diag);
    }
    (*out)->arena = a;
    ot_finding f = {.at = {.file = model, .a = a}, .diag = model->diag, .out = *out};
    ot_status s = find_all(&f, bind, n);
    if (s == OT_OK) s = keep_names(&f);
    ot_model_free(f.base);
    if (s == OT_OK) return OT_OK;
    ot_geometry_free(*out);
    *out = NULL;
    return s;
}

void ot_geometry_free(ot_geometry *g)
{
    if (g) ot_arena_free(g->arena);
}
