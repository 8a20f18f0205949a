/* See passes.h. All models are copies of the one that was read, edited before anything is written,
 * and written one after the other.
 */
#include "passes_internal.h"

#include "onnx/export/out_file.h"
#include "onnx/import/model_io.h"
#include "ops/guessed_size.h"

#include <errno.h>
#include <sys/stat.h>

#define OPSET_MIN 7

const char *ot_statistic_kind_name(ot_statistic_kind kind)
{
    switch (kind) {
    case OT_STATISTIC_MOMENTS: return "moments";
    case OT_STATISTIC_MEAN: return "mean";
    case OT_STATISTIC_SUM: return "sum";
    case OT_STATISTIC_MAX: return "max";
    case OT_STATISTIC_MIN: return "min";
    }
    return "sum";
}

const char *ot_passes_store_name(ot_passes_store store)
{
    switch (store) {
    case OT_STORE_NEVER: return "never";
    case OT_STORE_AUTO: return "auto";
    case OT_STORE_ALWAYS: return "always";
    }
    return "never";
}

static ot_status nomem(const pass_maker *p) { return ot_fail_nomem(p->m->diag); }

/* p->base, at the size that geometry looks at. */
static ot_status make_base(pass_maker *p)
{
    ot_guessed_sizes sizes;
    OT_TRY(ot_guess_sizes(p->m, p->shapes, p->n_shapes, "--shape", p->out->arena, &sizes));
    p->guessed = sizes.found;
    OT_TRY(ot_model_clone(p->m, &p->base));
    p->base->unchanged = true;
    OT_TRY(ot_infer_shapes(p->base->graph, sizes.found ? sizes.all : p->shapes,
                           sizes.found ? sizes.n : p->n_shapes));
    return ot_assure(p->base->graph, OT_P_ORDER | OT_P_USES);
}

ot_status passes_forget_extents(ot_graph *g)
{
    int64_t dims[OT_RANK_MAX];
    for (int k = 0; k < OT_RANK_MAX; k++) dims[k] = OT_DIM_UNKNOWN;
    for (ot_id v = 0; v < g->n_values; v++) {
        const ot_value *x = &g->values[v];
        if (x->producer == OT_NONE || x->rank < 1 || !x->is_tensor) continue;
        OT_TRY(ot_value_set_shape(g, v, x->rank, dims));
    }
    return OT_OK;
}

/* ---- geometry ---- */

/* A copy that also hands out the values that statistics are of, with inputs as the file has
 * them. */
static ot_status copy_to_look(const pass_maker *p, ot_model **out)
{
    OT_TRY(ot_model_clone(p->base, out));
    ot_graph *g = (*out)->graph;
    OT_TRY(passes_cut(p, g));
    for (uint32_t k = 0; k < p->n; k++) OT_TRY(passes_add_output(g, p->found[k].x));
    OT_TRY(passes_keep_needed(g));
    OT_TRY(passes_forget_extents(g));
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_id v = g->inputs[k];
        if (v >= p->m->graph->n_values) continue;
        const ot_value *x = &p->m->graph->values[v];
        OT_TRY(ot_value_set_shape(g, v, x->rank, x->dims));
    }
    return OT_OK;
}

static bool is_statistic(const pass_maker *p, const char *name)
{
    for (uint32_t k = 0; k < p->n; k++)
        if (strcmp(p->found[k].is.name, name) == 0) return true;
    return false;
}

const ot_geometry_barrier *passes_without_statistics(const pass_maker *p, ot_geometry *g)
{
    const ot_geometry_barrier *first = NULL;
    uint32_t n = 0, inputs = 0;
    for (uint32_t k = 0; k < g->n_pairs; k++) {
        if (is_statistic(p, g->pairs[k].input)) continue;
        if (!first && g->pairs[k].n_barriers > 0) first = g->pairs[k].barriers;
        g->pairs[n++] = g->pairs[k];
    }
    for (uint32_t k = 0; k < g->n_inputs; k++)
        if (!is_statistic(p, g->inputs[k])) g->inputs[inputs++] = g->inputs[k];
    g->n_pairs = n;
    g->n_inputs = inputs;
    return first;
}

/* Only of inputs of the file; nothing is in the way. */
static ot_status check_geometry(const pass_maker *p, ot_geometry *g)
{
    uint32_t axes = 0;
    const ot_geometry_barrier *b = passes_without_statistics(p, g);
    if (b)
        return ot_fail(p->m->diag, OT_E_INPUT,
                       "cannot be made of passes: node '%.160s' (%.60s), %s: %.300s; %s", b->name,
                       b->op, ot_geometry_kind_name(b->kind), b->why, passes_advice(b->kind));
    for (uint32_t k = 0; k < g->n_pairs; k++) axes += g->pairs[k].n_axes;
    if (axes > 0) return OT_OK;
    return ot_fail(p->m->diag, OT_E_USAGE,
                   "cannot be made of passes: no output has an axis of an input that can be "
                   "cropped");
}

/* Axes of s's value that are cut, and names of the inputs that say which rows of them are owned. */
static ot_status take_axes(pass_maker *p, pass_statistic *s)
{
    const ot_geometry *g = p->out->geometry;
    ot_arena *a = p->out->arena;
    bool cut[OT_RANK_MAX] = {false};
    for (uint32_t k = 0; k < g->n_pairs; k++)
        for (uint32_t j = 0; j < g->pairs[k].n_axes; j++)
            if (strcmp(g->pairs[k].output, s->is.value) == 0) cut[g->pairs[k].axes[j].axis] = true;
    s->is.axes = OT_NEW_N(a, uint32_t, OT_RANK_MAX);
    s->is.owned = ot_alloc_n(a, OT_RANK_MAX, sizeof *s->is.owned);
    if (!s->is.axes || !s->is.owned) return nomem(p);
    for (uint32_t k = 0; k < OT_RANK_MAX; k++) {
        if (!cut[k]) continue;
        if (!s->reduced[k])
            return passes_refuse(p, s->node, "reduce",
                                 "it keeps an axis that crops are cut along beside one that it "
                                 "reduces");
        const char *base = ot_format(a, "%s.owned_%u", s->is.name, k);
        const char *name = base ? ot_fresh_name(p->base, base) : NULL;
        s->is.owned[s->is.n_axes] = name ? ot_strdup(a, name) : NULL;
        if (!s->is.owned[s->is.n_axes]) return nomem(p);
        s->is.axes[s->is.n_axes++] = k;
    }
    if (s->is.n_axes > 0) return OT_OK;
    return passes_refuse(p, s->node, "reduce", "what it reads follows no axis that can be cut");
}

static ot_status look(pass_maker *p)
{
    ot_model *copy = NULL;
    ot_status s = copy_to_look(p, &copy);
    if (s == OT_OK) s = ot_geometry_find(copy, p->shapes, p->n_shapes, &p->out->geometry);
    ot_model_free(copy);
    OT_TRY(s);
    OT_TRY(check_geometry(p, p->out->geometry));
    for (uint32_t k = 0; k < p->n; k++) OT_TRY(take_axes(p, &p->found[k]));
    return OT_OK;
}

/* ---- models ---- */

static double macs_of(const ot_graph *g)
{
    double sum = 0;
    for (uint32_t k = 0; k < g->n_order; k++) sum += ot_node_macs(g, &g->nodes[g->order[k]]);
    return sum;
}

/* Axes that crops are cut along become free, the others are those of the base. */
static ot_status free_inputs(const pass_maker *p, ot_graph *g)
{
    const ot_geometry *x = p->out->geometry;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_id v = g->inputs[k];
        ot_value *in = &g->values[v];
        bool owns = false;
        if (in->rank < 1) continue;
        int64_t dims[OT_RANK_MAX];
        memcpy(dims, in->dims, (size_t)in->rank * sizeof *dims);
        for (uint32_t j = 0; j < x->n_pairs; j++)
            for (uint32_t i = 0; i < x->pairs[j].n_axes; i++)
                if (strcmp(x->pairs[j].input, in->name) == 0)
                    dims[x->pairs[j].axes[i].input_axis] = OT_DIM_UNKNOWN;
        for (uint32_t j = 0; j < p->n; j++)
            for (uint32_t i = 0; i < p->found[j].is.n_axes && !owns; i++)
                if (strcmp(p->found[j].is.owned[i], in->name) == 0) {
                    owns = true;
                    dims[p->found[j].is.axes[i]] = OT_DIM_UNKNOWN;
                }
        OT_TRY(ot_value_set_shape(g, v, in->rank, dims));
    }
    return OT_OK;
}

static ot_status note_model(const pass_maker *p, const ot_graph *g, uint32_t k)
{
    ot_pass_model *m = &p->out->models[k];
    ot_arena *a = p->out->arena;
    m->file = k < p->out->n_passes ? ot_format(a, "pass_%u.onnx", k + 1) : "final.onnx";
    m->inputs = ot_alloc_n(a, g->n_inputs + 1u, sizeof *m->inputs);
    m->macs = macs_of(g);
    if (!m->file || !m->inputs) return nomem(p);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        if (g->values[g->inputs[i]].init) continue;
        m->inputs[m->n_inputs] = ot_strdup(a, g->values[g->inputs[i]].name);
        if (!m->inputs[m->n_inputs++]) return nomem(p);
    }
    return OT_OK;
}

/* Model k: that of pass k + 1, or the final one. */
static ot_status make_model(const pass_maker *p, uint32_t k, ot_model **out)
{
    OT_TRY(ot_model_clone(p->base, out));
    ot_graph *g = (*out)->graph;
    OT_TRY(passes_cut(p, g));
    const uint32_t values = g->n_values; /* hand_out adds some */
    OT_TRY(passes_read_stage(p, g, passes_stage_before(p, k + 1)));
    if (k < p->out->n_passes) {
        for (uint32_t o = 0; o < g->n_outputs; o++) g->values[g->outputs[o]].is_output = false;
        g->n_outputs = 0;
    }
    for (uint32_t j = 0; j < p->n; j++)
        if (p->found[j].is.pass == k + 1) OT_TRY(passes_hand_out(p, &p->found[j], g));
    for (ot_id v = 0; v < values; v++)
        if (passes_is_written(p, v, k + 1)) OT_TRY(passes_add_output(g, v));
    OT_TRY(passes_keep_needed(g));
    OT_TRY(note_model(p, g, k));
    OT_TRY(passes_forget_extents(g));
    OT_TRY(free_inputs(p, g));
    (*out)->static_inputs = (*out)->resized = true;
    return ot_verify(g);
}

/* ---- files ---- */

static const char *path_of(const pass_maker *p, const char *folder, const char *file)
{
    return ot_format(p->out->arena, "%s/%s", folder, file);
}

static ot_status write_plan(const pass_maker *p, const char *folder)
{
    char *text = NULL;
    size_t n = 0;
    const char *path = path_of(p, folder, "plan.json");
    FILE *f = path ? open_memstream(&text, &n) : NULL;
    ot_status s = f ? ot_passes_json(p->out, f) : OT_E_NOMEM;
    if (f && fclose(f) != 0) s = OT_E_NOMEM;
    s = s == OT_OK ? ot_out_write(path, text, n, p->m->diag) : nomem(p);
    free(text);
    return s;
}

static ot_status write_files(const pass_maker *p, ot_model *const *models, const char *folder)
{
    const uint32_t n = p->out->n_passes + 1;
    ot_status s = OT_OK;
    uint32_t done = 0;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return ot_fail(p->m->diag, OT_E_SYSTEM, "cannot make folder '%.300s': %s", folder,
                       strerror(errno));
    for (; done < n && s == OT_OK; done++) {
        const char *path = path_of(p, folder, p->out->models[done].file);
        s = path ? ot_model_adopt(p->m, models[done]) : nomem(p);
        if (s == OT_OK) s = ot_export_file(p->m, path);
    }
    if (s == OT_OK) s = write_plan(p, folder);
    for (uint32_t k = 0; k < done && s != OT_OK; k++) {
        const char *path = path_of(p, folder, p->out->models[k].file);
        if (path) (void)remove(path);
    }
    return s;
}

static ot_status keep_statistics(pass_maker *p)
{
    ot_passes *x = p->out;
    x->statistics = OT_NEW_N(x->arena, ot_statistic, p->n + 1u);
    x->models = OT_NEW_N(x->arena, ot_pass_model, x->n_passes + 1u);
    if (!x->statistics || !x->models) return nomem(p);
    for (uint32_t k = 0; k < p->n; k++) x->statistics[k] = p->found[k].is;
    x->n_statistics = p->n;
    x->macs = macs_of(p->base->graph);
    return OT_OK;
}

static ot_status make_all(pass_maker *p, const char *folder)
{
    OT_TRY(keep_statistics(p));
    const uint32_t n = p->out->n_passes + 1;
    ot_model **models = ot_alloc_n(p->out->arena, n, sizeof *models);
    ot_status s = models ? OT_OK : nomem(p);
    for (uint32_t k = 0; k < n && s == OT_OK; k++) s = make_model(p, k, &models[k]);
    if (s == OT_OK) s = write_files(p, models, folder);
    for (uint32_t k = 0; models && k < n; k++) ot_model_free(models[k]);
    return s;
}

static ot_status find(pass_maker *p)
{
    ot_geometry *barriers;
    if (p->m->opset < OPSET_MIN)
        return ot_fail(p->m->diag, OT_E_INPUT, "passes need opset %d or newer: the model has %d",
                       OPSET_MIN, (int)p->m->opset);
    OT_TRY(make_base(p));
    OT_TRY(ot_geometry_find(p->m, p->shapes, p->n_shapes, &barriers));
    ot_status s = passes_find(p, barriers);
    ot_geometry_free(barriers);
    if (s == OT_OK) s = look(p);
    return s == OT_OK ? passes_segments(p) : s;
}

ot_status ot_passes_write(ot_model *m, const ot_shape_binding *shapes, size_t n_shapes,
                          ot_passes_store store, const char *folder, ot_passes **out)
{
    ot_arena *a = ot_arena_new();
    *out = a ? OT_NEW(a, ot_passes) : NULL;
    if (!*out) {
        ot_arena_free(a);
        return ot_fail_nomem(m->diag);
    }
    (*out)->arena = a;
    pass_maker p = {.m = m, .shapes = shapes, .n_shapes = n_shapes, .store = store, .out = *out};
    ot_status s = find(&p);
    if (s == OT_OK) s = make_all(&p, folder);
    ot_model_free(p.stages.cut);
    ot_model_free(p.base);
    if (s == OT_OK) return OT_OK;
    ot_passes_free(*out);
    *out = NULL;
    return s;
}

void ot_passes_free(ot_passes *x)
{
    if (!x) return;
    for (uint32_t k = 0; k < x->n_parts; k++) ot_geometry_free(x->parts[k]);
    ot_geometry_free(x->n_parts ? x->whole : x->geometry);
    ot_arena_free(x->arena);
}
