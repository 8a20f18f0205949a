/* THE list of passes. Each entry reads and changes one ot_run; after it the graph is verified and
 * dumped.
 *
 *   import -> shapes -> select -> plan-check -> results -> cures -> rewrite -> limit -> export
 *   `---load--'`---------------------------- tile ---------------------------'`------ save --'
 *
 * What plan a model gets, and in which variant it is written, is decided in the select pass alone
 * (src/select); regions are lowered to kernels inside it, for their memory. The dump writes them
 * after plan-check.
 *
 * A new pass is one file and one line here. Letters are those of -d; the planner's own letters
 * (A R W D G P) print from inside the select pass.
 */
#include "constants.h"
#include "cures.h"
#include "dynamic_shapes.h"
#include "original.h"

#include "base/watch.h"
#include "engine/core/engine.h"
#include "tiling/lower/lowering.h"
#include "transform/transform.h"
#include "onnx/import/model_io.h"
#include "select/select.h"

#include <errno.h>
#include <sys/stat.h>

typedef enum stage { LOAD, TILE, REWRITE, SAVE } stage;

/* What is wrong with a file names the file. */
static ot_status name_file(ot_diag *d, const char *path, ot_status s)
{
    char line[OT_DIAG_MAX];
    if (s != OT_E_INPUT || !d || strstr(d->message, path)) return s;
    memcpy(line, d->message, sizeof line);
    *d = (ot_diag){0};
    return ot_fail(d, s, "%.300s: %s", strcmp(path, "-") == 0 ? "stdin" : path, line);
}

static ot_status import(ot_run *r)
{
    const ot_source *s = &r->source;
    if (!s->path && s->lent)
        return ot_import_lent(s->bytes, s->n, s->lent, s->n_lent, r->diag, &r->model);
    if (!s->path) return ot_import_memory(s->bytes, s->n, s->dir, r->diag, &r->model);
    if (ot_is_text_path(s->path)) return ot_text_file_read(s->path, r->diag, &r->model);
    return ot_import_file(s->path, r->diag, &r->model);
}

static ot_status pass_import(ot_run *r)
{
    ot_status s = import(r);
    return r->source.path ? name_file(r->diag, r->source.path, s) : s;
}

/* With fixed inputs, model checkers infer a wrong number of bins for STFT and then find
 * contradictions downstream. */
static bool has_spectral_node(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_nodes; k++)
        if (strcmp(g->nodes[k].op_type, "STFT") == 0 || strcmp(g->nodes[k].op_type, "DFT") == 0)
            return true;
    return false;
}

/* The graph that plans are made of. */
static ot_graph *planned_graph(const ot_run *r)
{
    const ot_model *design = r->selection.design;
    return design ? design->graph : r->model->graph;
}

/* Whether the file states all extents of its inputs. */
static bool has_fixed_inputs(const ot_graph *g)
{
    for (uint32_t k = 0; k < g->n_inputs; k++)
        if (!g->values[g->inputs[k]].init && !ot_value_is_static(&g->values[g->inputs[k]]))
            return false;
    return true;
}

static ot_status infer_shapes(ot_run *r)
{
    r->was_fixed = has_fixed_inputs(r->model->graph);
    OT_TRY(ot_run_keep_untouched(r));
    OT_TRY(ot_run_choose_design(r));
    if (r->options.keep_dynamic) return ot_run_infer_dynamic(r);
    OT_TRY(ot_run_keep_unbound(r));
    OT_TRY(ot_infer_shapes(r->model->graph, r->options.shapes, r->options.n_shapes));
    r->model->static_inputs = r->options.n_shapes > 0 &&
                              (r->model->resized || !has_spectral_node(r->model->graph));
    return ot_check_tile_ops(r->model->graph, NULL);
}

void ot_warn_unfollowed(const ot_model *m, FILE *f)
{
    if (!f || !m->unfollowed) return;
    fprintf(f, "onnx-tile: warning: ");
    for (const char *at = m->unfollowed; *at;) { /* names are the file's */
        const size_t n = ot_utf8_printable(at);
        fwrite(n ? at : "?", n ? n : 1, 1, f);
        at += n ? n : 1;
    }
    if (m->n_unfollowed > 1) fprintf(f, "; %u more likewise", m->n_unfollowed - 1);
    fputc('\n', f);
}

static ot_status pass_shapes(ot_run *r)
{
    OT_TRY(infer_shapes(r));
    ot_warn_unfollowed(r->model, r->options.warn);
    return OT_OK;
}

/* The engine's own figures of this machine, where there are some. */
static void use_calibration(ot_run *r)
{
    char note[512];
    bool found = ot_target_use_calibration(&r->target, r->options.threads, note, sizeof note);
    if (r->options.log && (found || strcmp(r->target.name, "host") == 0))
        fprintf(r->options.log, "onnx-tile: host: %s\n", note);
}

/* The target as the options change it. */
static ot_status load_target(ot_run *r)
{
    const ot_run_options *o = &r->options;
    ot_target_free(&r->target);
    OT_TRY(ot_target_load(o->target, o->threads, r->diag, &r->target));
    if (o->emit_engine) use_calibration(r);
    if (o->l2_bytes) ot_target_set_l2(&r->target, o->l2_bytes);
    r->options.plan.search.smaller_fast = o->l2_bytes > 0;
    if (o->weight_bytes) r->target.weight_bytes = o->weight_bytes;
    if (o->runtime)
        OT_TRY(ot_target_set_runtime(&r->target, o->runtime, r->diag));
    else if (o->emit_engine)
        ot_target_set_engine(&r->target);
    r->target.bit_exact = o->plan.bit_exact;
    return OT_OK;
}

/* Of one size, for a runtime that would compute them while it loads the model. */
static ot_status compute_constants(ot_run *r)
{
    const ot_run_options *o = &r->options;
    const bool memory = o->plan.goal == OT_GOAL_MEMORY || o->plan.memory_budget > 0;
    r->constants = NULL;
    if (!memory || o->keep_dynamic || r->unbound || o->emit_engine ||
        !ot_runtime_simulates(r->target.runtime))
        return OT_OK;
    ot_constants *c = OT_NEW(r->model->arena, ot_constants);
    if (!c) return ot_fail_nomem(r->diag);
    OT_TRY(ot_assure(r->model->graph, OT_P_ORDER | OT_P_USES));
    OT_TRY(ot_constants_compute(r->model, o->plan.bit_exact, r->model->arena, c));
    r->constants = c;
    return OT_OK;
}

/* ---- select ---- */

#define ALONE_BYTES (1 << 20) /* of a tile, for each thread: with less, they wait for each other */
#define ALONE_PART  0.5       /* of what the plan of tiles side by side holds */

ot_status ot_run_select(ot_run *r)
{
    const ot_run_options *o = &r->options;
    const bool may_stay = r->unbound && !r->model->resized && r->target.runtime->keeps_dynamic;
    const ot_select_request q = {.model = r->model,
                                 .unbound = may_stay ? r->unbound : NULL,
                                 .target = &r->target,
                                 .options = &o->plan,
                                 .sizes = {.shapes = o->shapes,
                                           .n_shapes = o->n_shapes,
                                           .design = may_stay ? r->given_design : o->design,
                                           .n_design = may_stay ? o->n_shapes : o->n_design,
                                           .ranges = o->ranges,
                                           .n_ranges = o->n_ranges,
                                           .one_size = may_stay},
                                 .constants = r->constants,
                                 .is_dynamic = o->keep_dynamic,
                                 .static_shape = !o->keep_dynamic &&
                                                 (o->n_shapes == 0 || r->was_fixed),
                                 .diag = r->diag};
    return ot_select(&q, &r->selection);
}

/* Memory is the goal, and threads have a tile each. */
static bool holds_many_tiles(const ot_run *r)
{
    const ot_plan_options *p = &r->options.plan;
    return r->options.emit_engine && r->target.cores > 1 && p->goal == OT_GOAL_MEMORY &&
           !p->force && p->memory_budget == 0 && p->max_tensor == 0 && !r->options.keep_dynamic &&
           !r->unbound;
}

/* Tiles that run one at a time are worth that. */
static bool is_leaner(const ot_target *t, const ot_plan *alone, const ot_plan *many)
{
    if (alone->n_regions == 0 ||
        (double)alone->tiled.peak_bytes > ALONE_PART * (double)many->tiled.peak_bytes)
        return false;
    for (uint32_t k = 0; k < alone->n_regions; k++)
        if (alone->regions[k].working_set < (int64_t)t->cores * ALONE_BYTES) return false;
    return true;
}

/* Threads that have a tile each hold as many, and may miss the limit on time with small ones, for
 * which a cache that they share is too small: a plan of tiles that run one at a time, each on all
 * threads, competes. It is made of a copy, as the model was before the other one was chosen.
 * *taken: the run lends from the copy. */
static ot_status select_one_tile(ot_run *r, ot_model *copy, bool *taken)
{
    ot_selection many = r->selection;
    ot_model *model = r->model;
    ot_diag own = {0}, *told = r->diag;
    r->selection = (ot_selection){0};
    r->model = copy;
    r->diag = copy->diag = &own;
    r->target.one_tile = true;
    ot_status s = ot_run_select(r);
    r->model = model;
    r->diag = copy->diag = told;
    *taken = s == OT_OK && is_leaner(&r->target, r->selection.plan, many.plan);
    if (*taken) {
        ot_selection_free(&many);
        copy->lender = model->lender;
        model->lender = copy;
        return ot_model_adopt(model, copy);
    }
    ot_selection_free(&r->selection);
    r->selection = many;
    r->target.one_tile = false;
    return s == OT_E_NOMEM ? ot_fail_nomem(told) : OT_OK;
}

static ot_status select_tiles(ot_run *r)
{
    ot_model *copy = NULL;
    bool taken = false;
    if (holds_many_tiles(r)) OT_TRY(ot_model_clone(r->model, &copy));
    ot_status s = ot_run_select(r);
    if (s == OT_OK && copy && r->selection.plan->n_regions > 0)
        s = select_one_tile(r, copy, &taken);
    if (!taken) ot_model_free(copy);
    return s;
}

/* The engine runs all that is written, in one session, here: layouts are this machine's. */
static bool is_one_session(const ot_run *r)
{
    return r->options.emit_engine && r->options.operators <= OT_OPERATORS_WHOLE &&
           strcmp(r->options.target, "host") == 0 && r->target.runtime == &ot_runtime_engine;
}

static ot_status pass_select(ot_run *r)
{
    ot_model *file;
    OT_TRY(load_target(r));
    ot_run_keep_whole(r);
    OT_TRY(compute_constants(r));
    if (!is_one_session(r)) return select_tiles(r);
    OT_TRY(ot_model_clone(r->model, &file));
    ot_status s = select_tiles(r);
    if (s == OT_E_BUDGET)
        s = ot_run_engine_budget(r, file);
    else if (s == OT_OK)
        s = ot_run_engine_memory(r, file);
    file->lender = r->model->lender; /* the run's model may have become a copy of it */
    r->model->lender = file;
    return s;
}

static ot_status pass_plan_check(ot_run *r)
{
    return ot_plan_check(planned_graph(r), r->selection.plan, &r->target, &r->options.plan,
                         r->diag);
}

/* They need the graph as it was planned. */
static ot_status pass_results(ot_run *r)
{
    /* checked before: what the file takes is what people compare with */
    if (r->selection.plan->is_decomposed || r->selection.plan->narrowed_nodes > 0 ||
        r->selection.plan->folded_nodes > 0)
        r->selection.plan->untiled = r->selection.plan->whole;
    OT_TRY(ot_facts_from_plan(planned_graph(r), r->selection.plan, &r->target, &r->options.plan,
                              r->source.path, r->output,
                              r->output ? OT_FACTS_OPTIMISE : OT_FACTS_INSPECT, &r->facts));
    if (r->selection.design) {
        r->facts->design_guessed = r->guessed;
        r->facts->stays_dynamic = r->selection.stays_dynamic;
        r->facts->design = ot_run_design_text(r, r->facts->arena);
        if (!r->facts->design) return ot_fail_nomem(r->diag);
    }
    r->facts->missed = ot_strdup(r->facts->arena, r->selection.missed);
    if (!r->facts->missed) return ot_fail_nomem(r->diag);
    if (r->options.emit_engine) {
        r->facts->slow_nodes = ot_slow_nodes_text(planned_graph(r), r->facts->arena);
        if (!r->facts->slow_nodes) return ot_fail_nomem(r->diag);
    }
    if (r->options.n_ranges > 0)
        OT_TRY(ot_facts_add_bounds(r->facts, &r->selection.bounds, r->diag));
    if (!r->facts->complete || !ot_plan_changes(r->selection.plan)) return OT_OK;
    r->facts->command = ot_run_command_text(r, r->facts->arena);
    return r->facts->command ? OT_OK : ot_fail_nomem(r->diag);
}

/* With nothing to do the graph stays as it is, so that the export writes back what was read. */
ot_status ot_run_write_plan(ot_run *r)
{
    int64_t packed;
    r->model->operators = r->options.operators;
    r->model->data_file = r->selection.plan->data_file;
    if (!ot_plan_edits(r->selection.plan)) return ot_raise_undo(r->model);
    OT_TRY(ot_run_part_original(r));
    r->model->runtime = r->target.runtime->name;
    if (r->selection.plan->unpacked_from > 0)
        ot_mark_unpacked(r->model->graph, r->selection.plan->unpacked_from);
    ot_mark_plain(r->model->graph, r->selection.plan->plain, r->selection.plan->n_plain);
    if (r->selection.plan->n_regions > 0) {
        OT_TRY(ot_overlay(r->model->graph, r->selection.plan));
        OT_TRY(r->selection.design ? ot_fold_dynamic(r->model->graph, r->selection.design->graph)
                                   : ot_fold_static(r->model->graph, r->selection.plan));
        OT_TRY(r->selection.design
                   ? ot_transform_dynamic(r->model->graph, r->selection.design->graph,
                                          r->selection.plan)
                   : ot_transform_tiles(r->model->graph, r->selection.plan));
        OT_TRY(ot_use_one_name(r->model->graph));
    } else {
        /* nothing in it depends on the extents, but windows that are read */
        r->model->static_inputs = r->model->resized || r->selection.plan->narrowed_nodes > 0 ||
                                  r->selection.plan->folded_nodes > 0;
    }
    if (r->selection.plan->folds_norms) OT_TRY(ot_fold_norms(r->model->graph, true));
    if (r->selection.plan->piece_bytes > 0)
        OT_TRY(ot_split_weights(r->model->graph, r->selection.plan->piece_bytes));
    if (r->selection.plan->n_regions > 0 && r->target.runtime->own_biases)
        OT_TRY(ot_own_biases(r->model->graph));
    if (r->target.runtime->inlines_functions) OT_TRY(ot_write_inlined(r->model->graph));
    if (r->selection.plan->defer_from > 0)
        OT_TRY(ot_defer_packing(r->model->graph, r->selection.plan->defer_from, &packed));
    if (!r->selection.plan->in_branch) return OT_OK;
    OT_TRY(ot_branch(r->model, r->selection.plan->hides_extents));
    return ot_first_block(r->model, r->selection.plan->first_block);
}

/* The graph as it will be written, by its own shapes: what the planner promised of them is not
 * asked. */
static ot_status pass_limit(ot_run *r)
{
    const int64_t most = r->options.plan.max_tensor;
    ot_largest x = ot_largest_tensor(r->model->graph);
    if (most == 0 || x.bytes <= most) return OT_OK;
    char a[64], b[32];
    return ot_fail(
        r->diag, OT_E_BUDGET,
        "max tensor cannot be kept: '%.300s' of the tiled model takes %s, %s are allowed", x.value,
        ot_format_exact_bytes(x.bytes, a, sizeof a), ot_format_bytes((double)most, b, sizeof b));
}

static ot_status pass_export(ot_run *r)
{
    if (ot_is_text_path(r->output)) return ot_text_file_write(r->model->graph, r->output, r->diag);
    return ot_export_file(r->model, r->output);
}

static const struct {
    stage stage;
    char letter; /* -d letter that prints the graph after it; 0: none */
    const char *name;
    ot_status (*run)(ot_run *r);
} PASSES[] = {
    {LOAD, 'I', "import", pass_import},
    {TILE, 'S', "shapes", pass_shapes},
    {TILE, 0, "keep", ot_run_keep_original},
    {TILE, 0, "select", pass_select},
    {TILE, 0, "plan-check", pass_plan_check},
    {TILE, 0, "results", pass_results},
    {TILE, 0, "cures", ot_run_try_cures},
    {REWRITE, 'T', "rewrite", ot_run_write_plan},
    {REWRITE, 0, "limit", pass_limit},
    {REWRITE, 0, "operator", ot_run_mark_operators},
    {REWRITE, 0, "original", ot_run_note_original},
    {SAVE, 0, "export", pass_export},
};
#define N_PASSES (sizeof PASSES / sizeof *PASSES)

/* ---- running the list ---- */

/* region_of[node] for the dot dump: the plan's regions, until the rewriter has dissolved them. */
static uint32_t *region_table(const ot_run *r)
{
    const ot_graph *g = r->model->graph;
    uint32_t *of = malloc(((size_t)g->n_nodes + 1) * sizeof *of);
    for (uint32_t k = 0; of && k < g->n_nodes; k++) of[k] = OT_NONE;
    for (uint32_t k = 0; of && r->selection.plan && k < r->selection.plan->n_regions; k++)
        for (uint32_t j = 0; j < r->selection.plan->regions[k].n_nodes; j++)
            of[r->selection.plan->regions[k].nodes[j].node] = r->selection.plan->regions[k].id;
    return of;
}

static ot_status dump_file(const ot_run *r, size_t number, const char *suffix)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%02zu-%s%s", r->options.dump_dir, number + 1,
                     PASSES[number].name, suffix);
    if (n < 0 || (size_t)n >= sizeof path)
        return ot_fail(r->diag, OT_E_SYSTEM, "the dump folder's name is too long");
    FILE *f = fopen(path, "we");
    if (!f) return ot_fail(r->diag, OT_E_SYSTEM, "cannot write '%s': %s", path, strerror(errno));
    ot_status s;
    if (strcmp(suffix, ".ot") == 0) {
        s = ot_text_print(r->model->graph, f);
    } else {
        uint32_t *of = region_table(r);
        s = of ? ot_dot_print(r->model->graph, of, f) : OT_E_NOMEM;
        free(of);
    }
    if (fclose(f) != 0) s = OT_E_SYSTEM;
    return s == OT_OK ? OT_OK : ot_fail(r->diag, s, "cannot write '%s'", path);
}

/* What a kernel's file says of itself, and the options that plan it again as here: a cache's
 * regions may take more than it holds, and --l2 is not the named target's. */
static void print_head(const ot_run *r, const ot_region *x, const ot_region_memory *m, FILE *f)
{
    const char *target = r->options.target;
    size_t n = strlen(target);
    bool file = n > 4 && strcmp(target + n - 4, ".xml") == 0 && strcspn(target, "\r\n") == n;
    fprintf(f, "# args: --capacity %lld%s%s\n", (long long)ot_max(m->height, r->target.fast_bytes),
            file ? " --target " : "", file ? target : "");
    fprintf(f, "# %u operators, %s; %lld bytes of l2, %lld live at once\n", x->n_nodes,
            ot_form_name(x->form), (long long)m->height, (long long)m->lower_bound);
    if (r->target.double_buffer)
        fprintf(f, "# placed in %lld bytes: %s, %u pairs across pipes\n", (long long)m->arena,
                m->level == OT_LEVEL_NONE ? "nothing shares" : ot_mem_mode_name(m->mode),
                m->cross_pipe);
}

/* D/region-<id>.tk: the kernel of a region with its planned buffers. */
static ot_status dump_kernel(const ot_run *r, const ot_region *x)
{
    char path[4096];
    ot_region_memory m;
    ot_kernel *k = NULL;
    int n = snprintf(path, sizeof path, "%s/region-%u.tk", r->options.dump_dir, x->id);
    if (n < 0 || (size_t)n >= sizeof path)
        return ot_fail(r->diag, OT_E_SYSTEM, "the dump folder's name is too long");
    OT_TRY(ot_region_plan_memory(planned_graph(r), x, &r->target, r->diag, &m, &k));
    FILE *f = fopen(path, "we");
    ot_status s = f ? OT_OK
                    : ot_fail(r->diag, OT_E_SYSTEM, "cannot write '%s': %s", path, strerror(errno));
    if (f) {
        print_head(r, x, &m, f);
        s = ot_kernel_print(k, f);
        if (fclose(f) != 0) s = OT_E_SYSTEM;
        if (s != OT_OK) s = ot_fail(r->diag, s, "cannot write '%s'", path);
    }
    ot_kernel_free(k);
    return s;
}

/* D/program-<id>.tk: the region as a kernel that runs; where there is none, why. */
static ot_status print_program(const ot_run *r, const ot_region *x, const ot_lowered_region *p,
                               FILE *f)
{
    const char *target = r->options.target;
    size_t n = strlen(target);
    bool file = n > 4 && strcmp(target + n - 4, ".xml") == 0 && strcspn(target, "\r\n") == n;
    if (!p->kernel) {
        fprintf(f, "# region %u has no program: ", x->id);
        ot_put_shown(p->why, f);
        fputc('\n', f);
        return OT_OK;
    }
    fprintf(f, "# args: --fast-memory %lld%s%s\n",
            (long long)ot_max(p->memory.arena, r->target.fast_bytes), file ? " --target " : "",
            file ? target : "");
    for (uint32_t k = 0; k < p->n_params; k++) {
        fprintf(f, "# %s %s = ", p->params[k].is_output ? "output" : "input",
                p->kernel->values[p->params[k].at].name);
        ot_put_shown(planned_graph(r)->values[p->params[k].value].name, f);
        fputc('\n', f);
    }
    return ot_kernel_print(p->kernel, f);
}

static ot_status dump_program(const ot_run *r, const ot_region *x)
{
    char path[4096];
    ot_lowered_region p;
    int n = snprintf(path, sizeof path, "%s/program-%u.tk", r->options.dump_dir, x->id);
    if (n < 0 || (size_t)n >= sizeof path)
        return ot_fail(r->diag, OT_E_SYSTEM, "the dump folder's name is too long");
    ot_arena *a = ot_arena_new();
    if (!a) return ot_fail_nomem(r->diag);
    ot_diag own = {0};
    ot_status s = ot_region_lower(planned_graph(r), x, &r->target, OT_LOWER_BLOCKS, a, &own, &p);
    if (s == OT_E_NOMEM) ot_fail(r->diag, s, "%s", own.message);
    /* our bug, and no reason to leave the rest of the dump out */
    if (s == OT_E_INPUT || s == OT_E_BUDGET) {
        p.why = ot_format(a, "failed: %s", own.message);
        s = p.why ? OT_OK : ot_fail_nomem(r->diag);
    }
    FILE *f = s == OT_OK ? fopen(path, "we") : NULL;
    if (s == OT_OK && !f)
        s = ot_fail(r->diag, OT_E_SYSTEM, "cannot write '%s': %s", path, strerror(errno));
    if (f) {
        s = print_program(r, x, &p, f);
        if (fclose(f) != 0) s = OT_E_SYSTEM;
        if (s != OT_OK) s = ot_fail(r->diag, s, "cannot write '%s'", path);
    }
    ot_kernel_free(p.kernel);
    ot_arena_free(a);
    return s;
}

static ot_status dump_kernels(const ot_run *r)
{
    for (uint32_t k = 0; k < r->selection.plan->n_regions; k++) {
        OT_TRY(dump_kernel(r, &r->selection.plan->regions[k]));
        OT_TRY(dump_program(r, &r->selection.plan->regions[k]));
    }
    return OT_OK;
}

/* What every pass but the export is followed by. */
static ot_status after_pass(ot_run *r, size_t k)
{
    if (PASSES[k].stage == SAVE) return OT_OK;
    OT_TRY(ot_verify(r->model->graph));
    if (PASSES[k].letter && ot_dbg[(unsigned char)PASSES[k].letter]) {
        fprintf(stderr, "# after %s\n", PASSES[k].name);
        OT_TRY(ot_text_print(r->model->graph, stderr));
    }
    if (!r->options.dump_dir) return OT_OK;
    if (mkdir(r->options.dump_dir, 0777) != 0 && errno != EEXIST)
        return ot_fail(r->diag, OT_E_SYSTEM, "cannot make folder '%s': %s", r->options.dump_dir,
                       strerror(errno));
    OT_TRY(dump_file(r, k, ".ot"));
    OT_TRY(dump_file(r, k, ".dot"));
    return PASSES[k].run == pass_plan_check ? dump_kernels(r) : OT_OK;
}

static ot_status run_stage(ot_run *r, stage which)
{
    for (size_t k = 0; k < N_PASSES; k++) {
        if (PASSES[k].stage != which) continue;
        double start = ot_now();
        char took[32];
        ot_progress_at(r->options.progress, PASSES[k].name, (double)k / N_PASSES);
        ot_watch_at(PASSES[k].name, (double)k, N_PASSES);
        ot_status s = ot_watch_look(r->diag);
        const bool inner = ot_watch_inner(true); /* sessions that compute constants tell nothing */
        if (s == OT_OK) s = PASSES[k].run(r);
        (void)ot_watch_inner(inner);
        if (s == OT_OK) s = ot_watch_look(r->diag); /* a search that was ended found something */
        double end = ot_now();
        if (s == OT_OK) s = after_pass(r, k);
        s = ot_import_check(r->model, s, r->diag);
        ot_progress_end(r->options.progress);
        OT_TRY(s);
        if (r->options.log)
            fprintf(r->options.log, "onnx-tile: %-10s %s\n", PASSES[k].name,
                    ot_format_seconds(end - start, took, sizeof took));
    }
    return OT_OK;
}

ot_status ot_run_load(ot_run *run) { return run_stage(run, LOAD); }

ot_status ot_run_plan(ot_run *run)
{
    OT_TRY(pass_shapes(run));
    return pass_select(run);
}

ot_status ot_run_tile(ot_run *run, bool plan_only)
{
    OT_TRY(run_stage(run, TILE));
    return plan_only ? OT_OK : run_stage(run, REWRITE);
}

ot_status ot_run_rewrite(ot_run *run) { return run_stage(run, REWRITE); }

ot_status ot_run_save(ot_run *run) { return run_stage(run, SAVE); }

void ot_run_free(ot_run *run)
{
    ot_facts_free(run->facts);
    ot_selection_free(&run->selection);
    ot_model_free(run->unbound);
    ot_model_free(run->untouched);
    ot_model_free(run->original);
    ot_model_free(run->model);
    ot_target_free(&run->target);
    run->facts = NULL;
    run->unbound = run->untouched = run->original = run->model = NULL;
}
