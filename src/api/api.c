/* The public C API: a handle around one ot_run. Adds nothing but argument checks, copies of what
 * the caller gives, and the order of calls.
 *
 *   create -> (set options)* -> load -> optimise | inspect -> save, results -> load ... -> free
 */
#include "onnx/import/model_io.h"
#include "ops/guessed_size.h"
#include "geometry/geometry.h"
#include "step/step.h"
#include "handle.h"
#include "verify_tiled.h"
#include "lent.h"

#include <math.h>

#ifndef OT_VERSION
#define OT_VERSION "0.1.0"
#endif

_Static_assert((int)ONNX_TILE_INPUT == (int)OT_E_INPUT && (int)ONNX_TILE_USAGE == (int)OT_E_USAGE &&
                   (int)ONNX_TILE_BUDGET == (int)OT_E_BUDGET &&
                   (int)ONNX_TILE_SYSTEM == (int)OT_E_SYSTEM &&
                   (int)ONNX_TILE_NOMEM == (int)OT_E_NOMEM,
               "public status codes are the internal ones");

const char *onnx_tile_version(void) { return OT_VERSION; }

onnx_tile_status onnx_tile_create(onnx_tile **out)
{
    if (!out) return ONNX_TILE_USAGE;
    *out = NULL;
    onnx_tile *t = calloc(1, sizeof *t);
    if (!t) return ONNX_TILE_NOMEM;
    t->options = ot_arena_new();
    if (!t->options) {
        free(t);
        return ONNX_TILE_NOMEM;
    }
    t->run.diag = &t->diag;
    t->run.options.target = "host";
    t->run.options.plan = (ot_plan_options){.goal = OT_GOAL_TIME,
                                            .max_slowdown = OT_MAX_SLOWDOWN,
                                            .tie_break = true,
                                            .single_file = true};
    *out = t;
    return ONNX_TILE_OK;
}

/* Drop the model and its results. */
static void unload(onnx_tile *t)
{
    ot_run_free(&t->run);
    free(t->json);
    t->json = NULL;
    t->progress = EMPTY;
}

void onnx_tile_free(onnx_tile *t)
{
    if (!t) return;
    unload(t);
    ot_arena_free(t->options);
    free(t);
}

const char *onnx_tile_error(const onnx_tile *t) { return t ? t->diag.message : "no handle"; }

onnx_tile_status onnx_tile_parse_size(const char *text, int64_t *bytes)
{
    return text && bytes && ot_parse_size(text, bytes) ? ONNX_TILE_OK : ONNX_TILE_USAGE;
}

/* ---- options ---- */

onnx_tile_status onnx_tile_set_target(onnx_tile *t, const char *name)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!name || !*name) return misuse(t, "a target needs a name");
    char *copy = ot_strdup(t->options, name);
    if (!copy) return done(ot_fail_nomem(&t->diag));
    t->run.options.target = copy;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_runtime(onnx_tile *t, const char *name)
{
    char names[256];
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    bool within = name && strcmp(name, "ort-engine") == 0;
    const ot_runtime *r = within ? &ot_runtime_engine
                          : name ? ot_runtime_asked(name, names, sizeof names)
                                 : NULL;
    if (name && !r)
        return done(ot_fail(&t->diag, OT_E_USAGE, "no runtime '%.80s': use one of %s, ort-engine",
                            name, names));
    t->run.options.emit_engine = r && ot_runtime_in_classes(r);
    t->run.options.operators = within ? OT_OPERATORS_WHOLE : OT_OPERATORS_NONE;
    t->run.options.runtime = r ? r->name : NULL;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_ort_operators(onnx_tile *t, const char *which)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (t->run.options.operators == OT_OPERATORS_NONE)
        return misuse(t, "operators of ONNX Runtime are written for runtime ort-engine alone");
    for (ot_operators k = OT_OPERATORS_WHOLE; which && k <= OT_OPERATORS_REGIONS; k++) {
        if (strcmp(which, ot_operators_name(k)) != 0) continue;
        t->run.options.operators = k;
        return ONNX_TILE_OK;
    }
    return misuse(t, "operators of ONNX Runtime hold one of: whole, parts, regions");
}

onnx_tile_status onnx_tile_set_l2(onnx_tile *t, int64_t bytes)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (bytes < 0) return misuse(t, "the capacity of the fast memory is negative");
    t->run.options.l2_bytes = bytes;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_threads(onnx_tile *t, uint32_t threads)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (threads > 4096) return misuse(t, "more than 4096 threads");
    t->run.options.threads = threads;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_goal(onnx_tile *t, onnx_tile_goal goal)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (goal != ONNX_TILE_GOAL_TIME && goal != ONNX_TILE_GOAL_MEMORY)
        return misuse(t, "the goal is neither time nor memory");
    t->run.options.plan.goal = goal == ONNX_TILE_GOAL_TIME ? OT_GOAL_TIME : OT_GOAL_MEMORY;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_memory_budget(onnx_tile *t, int64_t bytes)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (bytes < 0) return misuse(t, "the memory budget is negative");
    t->run.options.plan.memory_budget = bytes;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_best_effort(onnx_tile *t, int best_effort)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->run.options.plan.best_effort = best_effort != 0;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_max_tensor(onnx_tile *t, int64_t bytes)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (bytes < 0) return misuse(t, "the size of a tensor is negative");
    t->run.options.plan.max_tensor = bytes;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_max_slowdown(onnx_tile *t, double percent)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!isfinite(percent) || percent < 0 || percent > 1000)
        return misuse(t, "the slowdown must be from 0 to 1000 percent");
    t->run.options.plan.max_slowdown = percent / 100;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_force(onnx_tile *t, int force)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->run.options.plan.force = force != 0;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_bit_exact(onnx_tile *t, int exact)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->run.options.plan.bit_exact = exact != 0;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_data_file(onnx_tile *t, int allowed)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->run.options.plan.single_file = allowed == 0;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_keep_report(onnx_tile *t, int keep)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->run.options.plan.detail = t->run.options.try_cures = keep != 0;
    return ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_bind_shape(onnx_tile *t, const char *input, const int64_t *dims,
                                      uint32_t rank)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    return done(ot_shape_list_put(&t->shapes, (ot_shape_binding){input, rank, dims, true, NULL},
                                  t->options, &t->diag));
}

onnx_tile_status onnx_tile_design_shape(onnx_tile *t, const char *input, const int64_t *dims,
                                        uint32_t rank)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    return done(ot_shape_list_put(&t->design,
                                  (ot_shape_binding){input, rank, dims, false, "--design"},
                                  t->options, &t->diag));
}

onnx_tile_status onnx_tile_range_shape(onnx_tile *t, const char *input, const int64_t *lo,
                                       const int64_t *hi, const int64_t *step, uint32_t rank)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!input || !*input || !lo || !hi || !step || rank == 0 || rank > OT_RANK_MAX)
        return misuse(t, "a range needs an input and 1 to 16 dimensions");
    ot_size_var dims[OT_RANK_MAX];
    for (uint32_t k = 0; k < rank; k++) {
        if (lo[k] < 1 || hi[k] < lo[k] || hi[k] > INT32_MAX || step[k] < 1)
            return misuse(t, "a range goes upwards from 1 to 2147483647 at most, by 1 or more");
        dims[k] = (ot_size_var){lo[k], hi[k] - (hi[k] - lo[k]) % step[k], step[k]};
    }
    ot_size_range r = {.input = ot_strdup(t->options, input),
                       .rank = rank,
                       .dims = ot_memdup(t->options, dims, rank * sizeof *dims)};
    if (!r.input || !r.dims) return done(ot_fail_nomem(&t->diag));
    for (size_t k = 0; k < t->n_ranges; k++) {
        if (strcmp(t->ranges[k].input, input) != 0) continue;
        t->ranges[k] = r;
        return ONNX_TILE_OK;
    }
    return OT_PUSH(t->options, t->ranges, t->n_ranges, t->cap_ranges, r)
               ? ONNX_TILE_OK
               : done(ot_fail_nomem(&t->diag));
}

onnx_tile_status onnx_tile_set_verify(onnx_tile *t, int verify)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->verify = verify != 0;
    return ONNX_TILE_OK;
}

/* ---- the model ---- */

static onnx_tile_status load(onnx_tile *t, ot_source source)
{
    unload(t);
    t->run.source = source;
    ot_status s = ot_run_load(&t->run);
    t->progress = s == OT_OK ? LOADED : FAILED;
    t->run.source.bytes = NULL; /* the caller's, and below */
    t->run.source.lent = NULL;
    return done(s);
}

onnx_tile_status onnx_tile_load_file(onnx_tile *t, const char *path)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!path || !*path) return misuse(t, "a model needs a path");
    char *copy = ot_strdup(t->options, path);
    if (!copy) return done(ot_fail_nomem(&t->diag));
    return load(t, (ot_source){.path = copy});
}

onnx_tile_status onnx_tile_load_memory(onnx_tile *t, const void *bytes, size_t n, const char *dir)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!bytes && n) return misuse(t, "a model in memory needs its bytes");
    return load(t, (ot_source){.bytes = bytes ? bytes : "", .n = n, .dir = dir});
}

onnx_tile_status onnx_tile_load_lent(onnx_tile *t, const void *bytes, size_t n,
                                     const onnx_tile_lent *lent, size_t n_lent)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    ot_source source;
    ot_status s = ot_lent_source(bytes, n, lent, n_lent, &t->diag, &source);
    if (s != OT_OK) return done(s);
    onnx_tile_status loaded = load(t, source);
    free((void *)(uintptr_t)source.lent);
    return loaded;
}

/* ---- its inputs ---- */

static bool has_to_be_given(const ot_value *v) { return !v->init; }

uint32_t onnx_tile_input_count(const onnx_tile *t)
{
    const ot_graph *g = t && t->run.model ? t->run.model->graph : NULL;
    uint32_t n = 0;
    for (uint32_t k = 0; g && k < g->n_inputs; k++) n += has_to_be_given(&g->values[g->inputs[k]]);
    return n;
}

static const ot_value *input_at(const ot_graph *g, uint32_t at)
{
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (has_to_be_given(v) && at-- == 0) return v;
    }
    return NULL;
}

/* What is bound, then what is designed for. */
static ot_status sizes_of(onnx_tile *t, ot_arena *a, ot_guessed_sizes *out)
{
    const size_t n = t->shapes.n + t->design.n;
    ot_shape_binding *given = OT_NEW_N(a, ot_shape_binding, n + 1);
    if (!given) return ot_fail_nomem(&t->diag);
    for (size_t k = 0; k < n; k++)
        given[k] = k < t->shapes.n ? t->shapes.all[k] : t->design.all[k - t->shapes.n];
    return ot_guess_sizes(t->run.model, given, n, NULL, a, out);
}

static void describe(const ot_value *v, const ot_guessed_sizes *sizes, onnx_tile_tensor *out)
{
    *out = (onnx_tile_tensor){
        .name = v->name, .type = (int32_t)v->dtype, .rank = v->is_tensor ? v->rank : -1};
    for (int32_t k = 0; k < out->rank; k++) out->dims[k] = v->dims[k];
    for (size_t j = 0; j < sizes->n; j++) {
        const ot_shape_binding *b = &sizes->all[j];
        if (strcmp(b->input, v->name) != 0 || !v->is_tensor || b->rank > ONNX_TILE_RANK_MAX)
            continue;
        out->rank = (int32_t)b->rank;
        memcpy(out->dims, b->dims, b->rank * sizeof *b->dims);
        return;
    }
}

onnx_tile_status onnx_tile_input(onnx_tile *t, uint32_t k, onnx_tile_tensor *out)
{
    ot_guessed_sizes sizes;
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (t->progress != LOADED)
        return misuse(t, "inputs are told of a loaded model, before planning");
    const ot_value *v = input_at(t->run.model->graph, k);
    if (!v || !out) return misuse(t, "the model has no such input");
    ot_arena *a = ot_arena_new();
    const ot_status s = a ? sizes_of(t, a, &sizes) : ot_fail_nomem(&t->diag);
    if (s == OT_OK) describe(v, &sizes, out);
    ot_arena_free(a);
    return done(s);
}

static ot_status put_geometry(onnx_tile *t, onnx_tile_geometry_form form, FILE *out)
{
    ot_geometry *g;
    OT_TRY(ot_geometry_find(t->run.model, t->shapes.all, t->shapes.n, &g));
    ot_status s = form == ONNX_TILE_GEOMETRY_TABLE  ? ot_geometry_print(g, out)
                  : form == ONNX_TILE_GEOMETRY_JSON ? ot_geometry_json(g, out)
                                                    : ot_geometry_bioimage(g, out);
    ot_geometry_free(g);
    return s == OT_E_SYSTEM ? OT_E_NOMEM : s; /* it is written to memory */
}

onnx_tile_status onnx_tile_geometry(onnx_tile *t, onnx_tile_geometry_form form, char **text)
{
    size_t n = 0;
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!text) return misuse(t, "the geometry needs a place");
    *text = NULL;
    if (t->progress != LOADED)
        return misuse(t, "the geometry is that of a loaded model, before planning");
    if ((int)form < ONNX_TILE_GEOMETRY_TABLE || form > ONNX_TILE_GEOMETRY_BIOIMAGE)
        return misuse(t, "the geometry has no such form");
    FILE *f = open_memstream(text, &n);
    ot_status s = f ? put_geometry(t, form, f) : OT_E_NOMEM;
    if (f && fclose(f) != 0 && s == OT_OK) s = OT_E_NOMEM;
    if (s == OT_OK) return ONNX_TILE_OK;
    free(*text);
    *text = NULL;
    return s == OT_E_NOMEM ? done(ot_fail_nomem(&t->diag)) : done(s);
}

/* Plan, and compare with what the model was. */
static ot_status plan_verified(onnx_tile *t)
{
    void *original = NULL;
    size_t n = 0;
    ot_verify_facts facts;
    ot_status s = ot_verify_keep(&t->run, &original, &n);
    if (s == OT_OK) s = ot_run_tile(&t->run, false);
    if (s == OT_OK) s = ot_verify_tiled(&t->run, original, n, OT_VERIFY_OUTPUTS, &facts);
    free(original);
    return s;
}

static onnx_tile_status plan(onnx_tile *t, bool plan_only)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (t->progress == PLANNED || t->progress == STEP)
        return misuse(t, "this model has been planned: load it again to plan anew");
    if (t->progress != LOADED) return misuse(t, "no model is loaded");
    t->run.options.shapes = t->shapes.all;
    t->run.options.n_shapes = t->shapes.n;
    t->run.options.design = t->design.all;
    t->run.options.n_design = t->design.n;
    t->run.options.ranges = t->ranges;
    t->run.options.n_ranges = t->n_ranges;
    t->run.options.keep_dynamic = t->design.n > 0 || t->n_ranges > 0;
    ot_watch w, *before;
    ot_control_begin(&t->control, &w, &before);
    const onnx_tile_status s = ot_control_end(
        &w, before, t->verify && !plan_only ? plan_verified(t) : ot_run_tile(&t->run, plan_only),
        "planning", &t->diag);
    /* the pass goes by the output's path: none yet */
    if (t->run.facts && !plan_only) t->run.facts->kind = OT_FACTS_OPTIMISE;
    t->progress = s == ONNX_TILE_OK ? PLANNED : FAILED;
    return s;
}

onnx_tile_status onnx_tile_set_timeout(onnx_tile *t, double seconds)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    const char *wrong = ot_control_set_timeout(&t->control, seconds);
    return wrong ? misuse(t, wrong) : ONNX_TILE_OK;
}

onnx_tile_status onnx_tile_set_progress(onnx_tile *t, onnx_tile_progress *tell, void *of)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    t->control.tell = tell;
    t->control.of = of;
    return ONNX_TILE_OK;
}

void onnx_tile_cancel(onnx_tile *t)
{
    if (t) atomic_store(&t->control.stop, 1);
}

onnx_tile_status onnx_tile_optimise(onnx_tile *t) { return plan(t, false); }
onnx_tile_status onnx_tile_inspect(onnx_tile *t) { return plan(t, true); }

onnx_tile_status onnx_tile_step(onnx_tile *t, const char *input, uint32_t axis, int64_t rows)
{
    ot_step_facts *facts;
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (t->progress != LOADED)
        return misuse(t, "a step is made of a loaded model, in place of planning");
    if (!input || rows < 0) return misuse(t, "a step needs an input and its rows, 0 or more");
    const ot_step_request r = {.input = input,
                               .axis = axis,
                               .rows = rows,
                               .shapes = t->shapes.all,
                               .n_shapes = t->shapes.n};
    ot_status s = ot_step_write(t->run.model, &r, &facts);
    t->progress = s == OT_OK ? STEP : FAILED;
    return done(s);
}

onnx_tile_status onnx_tile_set_store(onnx_tile *t, onnx_tile_store store)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    switch (store) {
    case ONNX_TILE_STORE_NEVER: t->store = OT_STORE_NEVER; return ONNX_TILE_OK;
    case ONNX_TILE_STORE_AUTO: t->store = OT_STORE_AUTO; return ONNX_TILE_OK;
    case ONNX_TILE_STORE_ALWAYS: t->store = OT_STORE_ALWAYS; return ONNX_TILE_OK;
    }
    return misuse(t, "values are stored never, always, or where it costs less");
}

onnx_tile_status onnx_tile_passes(onnx_tile *t, const char *folder)
{
    ot_passes *made;
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (t->progress != LOADED)
        return misuse(t, "passes are made of a loaded model, in place of planning");
    if (!folder || !*folder) return misuse(t, "passes need a folder");
    ot_status s = ot_passes_write(t->run.model, t->shapes.all, t->shapes.n, t->store, folder,
                                  &made);
    ot_passes_free(made);
    t->progress = FAILED;
    return done(s);
}

onnx_tile_status onnx_tile_engine_parts(onnx_tile *t, const char *const *values, size_t n,
                                        int32_t *part)
{
    _Static_assert(sizeof *part == sizeof(uint32_t) && (int32_t)OT_NONE == -1, "no part is -1");
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (t->progress != LOADED)
        return misuse(t, "parts are those of a loaded model, in place of planning");
    if (n && (!values || !part)) return misuse(t, "parts need values, and a place");
    t->run.options.shapes = t->shapes.all;
    t->run.options.n_shapes = t->shapes.n;
    t->progress = FAILED;
    return done(ot_run_engine_parts(&t->run, values, n, (uint32_t *)part));
}

static bool may_save(const onnx_tile *t)
{
    return t->progress == LOADED || t->progress == PLANNED || t->progress == STEP;
}

onnx_tile_status onnx_tile_save_file(onnx_tile *t, const char *path)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!path || !*path) return misuse(t, "an output needs a path");
    if (!may_save(t)) return misuse(t, "no model is loaded");
    t->run.output = path;
    ot_status s = ot_run_save(&t->run);
    t->run.output = NULL;
    return done(s);
}

static onnx_tile_status save_memory(onnx_tile *t,
                                    ot_status (*save)(const ot_model *, void **, size_t *),
                                    void **bytes, size_t *n)
{
    if (!t) return ONNX_TILE_USAGE;
    begin(t);
    if (!bytes || !n) return misuse(t, "an output in memory needs a place");
    *bytes = NULL;
    *n = 0;
    if (!may_save(t)) return misuse(t, "no model is loaded");
    return done(save(t->run.model, bytes, n));
}

onnx_tile_status onnx_tile_save_memory(onnx_tile *t, void **bytes, size_t *n)
{
    return save_memory(t, ot_export_memory, bytes, n);
}

onnx_tile_status onnx_tile_save_lent(onnx_tile *t, void **bytes, size_t *n)
{
    return save_memory(t, ot_export_lent, bytes, n);
}

void onnx_tile_free_bytes(void *bytes) { free(bytes); }
