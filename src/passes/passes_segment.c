/* Passes between two that write values: they read the same, so that they have one geometry.
 *
 *     stage 0, the inputs --pass 1 .. k--> stage k --pass k + 1 .. n--> stage n --> ... outputs
 *
 * Where the rows of a stage cannot be found in crops, it is not stored.
 */
#include "passes_internal.h"

static ot_status nomem(const pass_maker *p) { return ot_fail_nomem(p->m->diag); }

ot_status passes_read_stage(const pass_maker *p, ot_graph *g, uint32_t s)
{
    if (s == 0) return OT_OK;
    for (ot_id v = 0; v < p->stages.cut->graph->n_values; v++) {
        if (!p->stages.frontier[s][v]) continue;
        ot_node_remove(g, g->values[v].producer); /* makes nothing else */
        OT_TRY(passes_become_input(g, v));
    }
    return OT_OK;
}

/* A copy of what passes s + 1 .. next compute, with sizes of the inputs alone. */
static ot_status copy_segment(const pass_maker *p, uint32_t s, uint32_t next, ot_model **out)
{
    OT_TRY(ot_model_clone(p->base, out));
    ot_graph *g = (*out)->graph;
    OT_TRY(passes_cut(p, g));
    OT_TRY(passes_read_stage(p, g, s));
    if (next <= p->out->n_passes) {
        for (uint32_t o = 0; o < g->n_outputs; o++) g->values[g->outputs[o]].is_output = false;
        g->n_outputs = 0;
    }
    for (uint32_t k = 0; k < p->n; k++)
        if (p->found[k].is.pass > s && p->found[k].is.pass <= next)
            OT_TRY(passes_add_output(g, p->found[k].x));
    for (ot_id v = 0; v < p->stages.cut->graph->n_values; v++)
        if (passes_is_written(p, v, next)) OT_TRY(passes_add_output(g, v));
    OT_TRY(passes_keep_needed(g));
    return passes_forget_extents(g);
}

/* Every value follows all axes that crops are cut along. */
static bool follows(const pass_maker *p, const ot_geometry *g)
{
    uint32_t cut = 0;
    for (uint32_t k = 0; k < p->out->geometry->n_pairs; k++)
        if (p->out->geometry->pairs[k].n_axes > cut) cut = p->out->geometry->pairs[k].n_axes;
    for (uint32_t k = 0; k < g->n_pairs; k++)
        if (g->pairs[k].n_axes != cut) return false;
    return g->n_pairs > 0;
}

/* The geometry of that segment; NULL: it cannot be one. */
static ot_status look_at(const pass_maker *p, uint32_t s, uint32_t next, ot_geometry **out)
{
    ot_model *copy = NULL;
    *out = NULL;
    ot_status st = copy_segment(p, s, next, &copy);
    if (st == OT_OK) st = ot_geometry_find(copy, NULL, 0, out);
    ot_model_free(copy);
    if (st == OT_E_USAGE || st == OT_E_INPUT) return OT_OK;
    if (st != OT_OK) return st;
    if (!passes_without_statistics(p, *out) && follows(p, *out)) return OT_OK;
    ot_geometry_free(*out);
    *out = NULL;
    return OT_OK;
}

static void drop(ot_geometry **all, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) ot_geometry_free(all[k]);
}

/* The geometry of all segments, all [*n]; a stage is barred where there is none. */
static ot_status look_at_all(pass_maker *p, ot_geometry **all, uint32_t *n, bool *good)
{
    const uint32_t last = p->out->n_passes + 1;
    *n = 0;
    *good = true;
    for (uint32_t next = 1, s = 0; next <= last; next++) {
        if (next < last && !p->stages.after[next]) continue;
        OT_TRY(look_at(p, s, next, &all[*n]));
        if (!all[*n]) {
            *good = false;
            p->stages.barred[s ? s : next] = true;
            return OT_OK;
        }
        ++*n;
        s = next;
    }
    return OT_OK;
}

/* What is found at the inputs is `whole` from here on, the rest is what all segments say. */
static ot_status join(pass_maker *p, ot_geometry **all, uint32_t n)
{
    ot_passes *x = p->out;
    ot_geometry *sum = OT_NEW(x->arena, ot_geometry);
    uint32_t pairs = 0;
    for (uint32_t k = 0; k < n; k++) pairs += all[k]->n_pairs;
    if (!sum) return nomem(p);
    sum->pairs = OT_NEW_N(x->arena, ot_geometry_pair, pairs + 1u);
    if (!sum->pairs) return nomem(p);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j < all[k]->n_pairs; j++)
            sum->pairs[sum->n_pairs++] = all[k]->pairs[j];
    sum->inputs = x->geometry->inputs;
    sum->n_inputs = x->geometry->n_inputs;
    x->whole = x->geometry;
    x->geometry = sum;
    x->parts = all;
    x->n_parts = n;
    return OT_OK;
}

/* The values that are stored, in the order of passes. */
static ot_status list_stored(pass_maker *p)
{
    const ot_graph *g = p->stages.cut->graph;
    ot_arena *a = p->out->arena;
    size_t cap = 0;
    for (uint32_t k = 1; k <= p->out->n_passes; k++)
        for (ot_id v = 0; v < g->n_values; v++) {
            if (!passes_is_written(p, v, k)) continue;
            const ot_value *x = &g->values[v];
            ot_stored s = {.value = ot_strdup(a, x->name),
                           .dtype = x->dtype,
                           .rank = (uint32_t)x->rank,
                           .dims = ot_memdup(a, x->dims, (size_t)x->rank * sizeof *x->dims),
                           .pass = k};
            if (!s.value || !s.dims) return nomem(p);
            if (!ot_value_bytes(x, &s.bytes)) s.bytes = 0;
            if (!OT_PUSH(a, p->out->stored, p->out->n_stored, cap, s)) return nomem(p);
        }
    return OT_OK;
}

/* A copy of the base, cut: its outputs are those of the model and the values of statistics. */
static ot_status make_cut(pass_maker *p)
{
    OT_TRY(ot_model_clone(p->base, &p->stages.cut));
    ot_graph *g = p->stages.cut->graph;
    OT_TRY(passes_cut(p, g));
    OT_TRY(ot_assure(g, OT_P_ORDER | OT_P_USES));
    return passes_store_find(p, &p->stages);
}

static bool any_stage(const pass_maker *p)
{
    bool any = false;
    for (uint32_t k = 1; k <= p->out->n_passes; k++) any |= p->stages.after[k];
    return any;
}

ot_status passes_segments(pass_maker *p)
{
    if (p->store == OT_STORE_NEVER || p->out->n_passes == 0) return OT_OK;
    if (p->guessed && p->store == OT_STORE_ALWAYS)
        return ot_fail(p->m->diag, OT_E_USAGE,
                       "values are stored for one size: give those of the inputs with --shape");
    if (p->guessed) return OT_OK;
    OT_TRY(make_cut(p));
    const uint32_t most = p->out->n_passes + 1;
    ot_geometry **all = ot_alloc_n(p->out->arena, most, sizeof *all);
    if (!all) return nomem(p);
    for (uint32_t tries = 0; tries < most; tries++) {
        uint32_t n = 0;
        bool good = false;
        OT_TRY(passes_store_choose(p, &p->stages));
        if (!any_stage(p)) break;
        ot_status s = look_at_all(p, all, &n, &good);
        if (s == OT_OK && good) s = join(p, all, n);
        if (s != OT_OK || !good) drop(all, n);
        if (s != OT_OK) return s;
        if (good) return list_stored(p);
    }
    p->stages.after = NULL;
    return OT_OK;
}
