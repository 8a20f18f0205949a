/* plan-memory: read one file, plan its buffers, write it back with offsets, and a map of them.
 *
 *   read --> kernel or table? --> plan --> check --> render in memory --> both outputs are written,
 *   sealed, published
 *
 * Nothing is written before everything is known, and everything is on the disk before anything
 * is visible. */
#include "plan_memory_work.h"

#include "onnx/export/out_file.h"
#include "kernel_file.h"
#include "tk/mlir/mlir.h"

void ot_memory_log_time(const ot_memory_work *w, const char *what, double since)
{
    char took[32];
    if (w->run->log)
        fprintf(w->run->log, "onnx-tile: %-10s %s\n", what,
                ot_format_seconds(ot_now() - since, took, sizeof took));
}

/* ---- kernel or table ---- */

static const char *const WORDS[] = {"a kernel", "a table", "a kernel in MLIR"};

static ot_text_kind kind_of(const ot_memory_work *w)
{
    return ot_text_kind_of(w->run->path, w->input, w->n_input);
}

/* An output whose name promises another kind is a mistake. */
static ot_status check_output_name(const ot_memory_work *w, ot_text_kind is)
{
    const char *output = w->run->output;
    for (int k = 0; output && k < 3; k++)
        if (k != (int)is && ot_ends_with(output, ot_text_endings[k]))
            return ot_fail(w->d, OT_E_USAGE,
                           "'%.300s' holds %s, so '%.300s' would, too: name it %s", w->path,
                           WORDS[is], output, ot_text_endings[is]);
    return OT_OK;
}

/* Options of kernels. */
/* ---- rendering ---- */

ot_status ot_memory_close_text(const ot_memory_work *w, FILE *f, ot_rendered *t, ot_status s)
{
    if (fclose(f) != 0 || s != OT_OK) {
        free(t->bytes);
        *t = (ot_rendered){NULL, 0};
        return ot_fail_nomem(w->d); /* a stream in memory fails for nothing else */
    }
    return OT_OK;
}

static ot_status draw_map(ot_memory_work *w, const ot_map_plot *plots, uint32_t n,
                          const char *title)
{
    FILE *f = open_memstream(&w->map.bytes, &w->map.n);
    if (!f) return ot_fail_nomem(w->d);
    return ot_memory_close_text(w, f, &w->map, ot_maps_svg(plots, n, title, f));
}

const char *ot_memory_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Maps of the results: boxes with names of their own. */
static ot_status keep_plots(ot_memory_work *w, const ot_map_plot *plots, uint32_t n)
{
    ot_arena *a = w->r->arena;
    w->r->plots = ot_memdup(a, plots, n * sizeof *plots);
    if (!w->r->plots) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < n; k++) {
        ot_map_box *boxes = ot_memdup(a, plots[k].boxes, plots[k].n * sizeof *boxes);
        if (!boxes) return ot_fail_nomem(w->d);
        for (uint32_t j = 0; j < plots[k].n; j++)
            if (!(boxes[j].name = ot_strdup(a, boxes[j].name))) return ot_fail_nomem(w->d);
        w->r->plots[k].boxes = boxes;
    }
    w->r->n_plots = n;
    return OT_OK;
}

ot_status ot_memory_use_plots(ot_memory_work *w, const ot_map_plot *plots, uint32_t n,
                              const char *title)
{
    if (!title) return ot_fail_nomem(w->d);
    if (w->run->keep_maps) OT_TRY(keep_plots(w, plots, n));
    return w->run->svg ? draw_map(w, plots, n, title) : OT_OK;
}

ot_map_plot ot_memory_plot_of(const ot_scope_plan *p, const char *title, const char *time)
{
    return (ot_map_plot){.title = title,
                         .time = time,
                         .height = p->height,
                         .lower_bound = p->lower_bound,
                         .capacity = p->capacity};
}

/* ---- kernels ---- */

/* What is for tables alone. */
static ot_status check_kernel_options(const ot_memory_work *w)
{
    if (w->run->function && kind_of(w) == OT_TEXT_KERNEL)
        return ot_fail(w->d, OT_E_USAGE, "--function is for MLIR: '%.300s' is one kernel", w->path);
    return w->run->pairs
               ? ot_fail(w->d, OT_E_USAGE, "--pairs is for tables: '%.300s' is a kernel", w->path)
               : OT_OK;
}

/* Colour of a buffer: transfers first, since they are what a plan must not disturb. */
static uint32_t pipe_kind(uint32_t pipes)
{
    static const ot_pipe order[] = {OT_PIPE_DMA_IN, OT_PIPE_DMA_OUT, OT_PIPE_CUBE, OT_PIPE_VECTOR,
                                    OT_PIPE_SCALAR};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        if (pipes & 1u << order[k]) return 1 + order[k];
    return 0;
}

/* Boxes of one scope: each slot of each buffer while it is alive. NULL when memory ran out. */
static ot_map_box *scope_boxes(const ot_kernel *k, const ot_mem_plan *p, ot_scope scope,
                               ot_arena *a, uint32_t *count)
{
    const ot_lifetimes *l = p->lifetimes;
    size_t n = 0;
    for (uint32_t b = 0; b < l->n_buffers; b++)
        if (l->buffers[b].scope == scope) n += (size_t)l->buffers[b].n_live * p->multi[b];
    ot_map_box *boxes = n < UINT32_MAX ? OT_NEW_N(a, ot_map_box, n) : NULL;
    *count = 0;
    for (uint32_t b = 0; boxes && b < l->n_buffers; b++) {
        const ot_buffer *u = &l->buffers[b];
        if (u->scope != scope) continue;
        const char *name = k->values[u->values[0]].name;
        for (uint32_t slot = 0; slot < p->multi[b]; slot++) {
            const char *label = p->multi[b] > 1 ? ot_format(a, "%s[%u]", name, slot) : name;
            if (!label) return NULL;
            for (uint32_t j = 0; j < u->n_live; j++)
                boxes[(*count)++] = (ot_map_box){
                    label,   u->live[j].lower,   u->live[j].upper, p->offsets[b][slot],
                    u->size, pipe_kind(u->pipes)};
        }
    }
    return boxes;
}

/* The planned text. */
static ot_status render_text(ot_memory_work *w, ot_kernel *k, const ot_mem_plan *p)
{
    if (!w->run->output) return OT_OK;
    ot_mem_plan_apply(p, k);
    FILE *out = open_memstream(&w->plan.bytes, &w->plan.n);
    if (!out) return ot_fail_nomem(w->d);
    return ot_memory_close_text(w, out, &w->plan, ot_kernel_print(k, out));
}

static ot_status render_kernel(ot_memory_work *w, const ot_kernel *k, const ot_mem_plan *p)
{
    ot_arena *a = w->r->arena;
    if (!w->run->svg && !w->run->keep_maps) return OT_OK;
    ot_map_plot plots[OT_SCOPE_COUNT];
    int64_t from = INT64_MAX, to = 0; /* one time axis for all */
    for (uint32_t b = 0; b < p->lifetimes->n_buffers; b++) {
        const ot_buffer *u = &p->lifetimes->buffers[b];
        if (u->n_live > 0) from = ot_min(from, u->live[0].lower);
        if (u->n_live > 0) to = ot_max(to, u->live[u->n_live - 1].upper);
    }
    for (uint32_t s = 0; s < p->n_scopes; s++) {
        plots[s] = ot_memory_plot_of(&p->scopes[s], ot_scope_name(p->scopes[s].scope), "statement");
        plots[s].from = from;
        plots[s].to = to;
        plots[s].boxes = scope_boxes(k, p, p->scopes[s].scope, a, &plots[s].n);
        if (!plots[s].boxes) return ot_fail_nomem(w->d);
    }
    return ot_memory_use_plots(
        w, plots, p->n_scopes,
        ot_format(a, "%s: kernel %s on %s", ot_memory_base_name(w->path), k->name, w->r->target));
}

/* Facts of the plan, copied out of it. */
static ot_status keep_facts(ot_memory_work *w, const ot_kernel *k, const ot_mem_plan *p,
                            const ot_tk_machine *t)
{
    ot_memory_results *r = w->r;
    const ot_lifetimes *l = p->lifetimes;
    const char **warnings = OT_NEW_N(r->arena, const char *, l->n_warnings);

    r->kernel = ot_strdup(r->arena, k->name);
    r->target = ot_strdup(r->arena, t->name);
    r->plans = ot_memdup(r->arena, p->scopes, p->n_scopes * sizeof *p->scopes);
    if (!warnings || !r->kernel || !r->target || !r->plans) return ot_fail_nomem(w->d);
    for (uint32_t j = 0; j < l->n_warnings; j++)
        if (!(warnings[j] = ot_strdup(r->arena, l->warnings[j]))) return ot_fail_nomem(w->d);
    r->n_plans = p->n_scopes;
    r->n_buffers = l->n_buffers;
    r->n_in_place = l->n_in_place;
    r->n_copies = l->n_copies;
    r->warnings = warnings;
    r->n_warnings = l->n_warnings;
    return ot_memory_results_keep_kernel(r, k, p) == OT_OK ? OT_OK : ot_fail_nomem(w->d);
}

/* What the planner chose. */
static void keep_notes(ot_memory_work *w, const ot_mem_text *m)
{
    w->r->notes = m->notes;
    w->r->n_notes = m->n_notes;
}

/* Facts of the accesses, copied out of the kernel's memory. */
static ot_status keep_accesses(ot_memory_work *w, const ot_kaccess_report *a)
{
    ot_memory_results *r = w->r;
    ot_kaccess_finding *list = OT_NEW_N(r->arena, ot_kaccess_finding, a->n_findings + 1u);
    if (!list) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < a->n_findings; k++) {
        list[k] = a->findings[k];
        if (!(list[k].name = ot_strdup(r->arena, list[k].name))) return ot_fail_nomem(w->d);
    }
    r->analysed = true;
    r->accesses = *a;
    r->accesses.findings = list;
    return OT_OK;
}

/* What the accesses cost; with --apply the kernel is padded and planned anew. */
static ot_status analyse(ot_memory_work *w, ot_kernel *k, const ot_tk_machine *t, ot_mem_plan **p)
{
    ot_kaccess_report a;
    double start = ot_now();
    OT_TRY(ot_kaccess_analyse(k, t, w->r->arena, w->d, &a));
    OT_TRY(keep_accesses(w, &a));
    ot_memory_log_time(w, "analyse", start);
    if (!w->run->apply || a.n_pads == 0) return OT_OK;
    ot_mem_plan_free(*p);
    *p = NULL;
    OT_TRY(ot_kaccess_apply(k, a.pads, a.n_pads, w->d));
    OT_TRY(ot_kernel_verify(k, w->path, w->d));
    ot_mem_options o = w->run->plan;
    o.lifetimes.by_path = true;
    return ot_mem_plan_kernel(k, w->path, t, &o, w->d, p);
}

/* What is alive where; its plans are the results'. */
static ot_status keep_footprint(ot_memory_work *w, const ot_kernel *k, const ot_mem_plan *p,
                                const ot_tk_machine *t)
{
    ot_memory_results *r = w->r;
    double start = ot_now();
    if (!w->run->footprint) return OT_OK;
    OT_TRY(ot_mem_footprint(k, p, t, &w->run->plan, r->arena, w->d, &r->footprint));
    for (uint32_t s = 0; s < r->footprint.n_scopes; s++)
        r->footprint.scopes[s].plan = &r->plans[r->footprint.scopes[s].plan - p->scopes];
    r->measured = true;
    ot_memory_log_time(w, "footprint", start);
    return OT_OK;
}

static ot_status plan_kernel(ot_memory_work *w, const ot_tk_machine *t)
{
    ot_kernel *k = NULL;
    ot_mem_plan *p = NULL;
    ot_mem_text m = {.path = w->path,
                     .text = w->input,
                     .n = w->n_input,
                     .given = w->run->sizes,
                     .n_given = (uint32_t)w->run->n_sizes,
                     .target = t,
                     .options = &w->run->plan};
    double start = ot_now();
    OT_TRY(ot_mem_plan_text(&m, w->r->arena, w->d, &k, &p));
    w->r->seconds = ot_now() - start;
    ot_memory_log_time(w, "plan", start);
    ot_status s = w->run->analyse ? analyse(w, k, t, &p) : OT_OK;
    if (s == OT_OK) s = keep_facts(w, k, p, t);
    if (s == OT_OK) s = keep_footprint(w, k, p, t);
    keep_notes(w, &m);
    if (s == OT_OK) s = ot_memory_keep_passes(w, k, p);
    if (s == OT_OK) s = render_text(w, k, p);
    if (s == OT_OK) s = render_kernel(w, k, p);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    return s;
}

static ot_status run_kernel(ot_memory_work *w)
{
    ot_kernel *k = NULL;
    ot_tk_machine t;
    double start = ot_now();

    OT_TRY(check_kernel_options(w));
    OT_TRY(ot_kernel_parse(w->path, w->input, w->n_input, w->d, &k));
    ot_memory_log_time(w, "parse", start);
    ot_status s = ot_kernel_machine(k, w->path, w->run->target, w->d, &t);
    ot_kernel_free(k);
    if (s != OT_OK) return s;
    return plan_kernel(w, &t);
}

/* ---- MLIR ---- */

/* A function of the text (NULL: there is none); its facts are w->r's. The text from *from to its
 * end goes to out (NULL: nowhere). */
static ot_status plan_function(ot_memory_work *w, const ot_mlir_function *fn,
                               const ot_mlir_functions *all, const ot_tk_machine *t, size_t *from,
                               FILE *out)
{
    const ot_mlir_options o = {.mode = w->run->plan.part, .function = fn, .all = all};
    ot_mlir *m = NULL;
    ot_mem_plan *p = NULL;
    double start = ot_now();
    ot_status s = ot_mlir_plan(w->path, w->input, w->n_input, &o, t, &w->run->plan, w->d, &m, &p);
    if (s == OT_E_BUDGET) ot_mlir_loc(w->path, w->d);
    if (s != OT_OK) return s;
    w->r->seconds = ot_now() - start;
    ot_memory_log_time(w, "plan", start);
    s = keep_facts(w, ot_mlir_kernel(m), p, t);
    if (s == OT_OK) s = keep_footprint(w, ot_mlir_kernel(m), p, t);
    if (s == OT_OK && out && ot_mlir_write(m, p, from, out) != OT_OK) s = ot_fail_nomem(w->d);
    if (s == OT_OK) s = render_kernel(w, ot_mlir_kernel(m), p);
    ot_mem_plan_free(p);
    ot_mlir_free(m);
    return s;
}

/* The functions that are planned: all of --function's name, else all whose buffers
 * are their own. */
static ot_status choose_functions(const ot_memory_work *w, const ot_mlir_functions *l,
                                  const ot_mlir_function ***list, uint32_t *n)
{
    const char *wanted = w->run->function;
    *n = 0;
    if (!(*list = OT_NEW_N(w->r->arena, const ot_mlir_function *, l->n + 1)))
        return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < l->n; k++)
        if (wanted ? strcmp(wanted, l->at[k].name) == 0 : !l->at[k].is_vector)
            (*list)[(*n)++] = &l->at[k];
    if (*n == 0 && wanted)
        return ot_fail(w->d, OT_E_USAGE, "no function '%.200s' with a body in '%.300s'", wanted,
                       w->path);
    /* reading it says what is wrong where there is none */
    if (*n == 0) (*list)[(*n)++] = l->n > 0 ? &l->at[0] : NULL;
    if (*n > 1 && (w->run->svg || w->run->keep_maps))
        return ot_fail(w->d, OT_E_USAGE,
                       "a map or a report shows one function, '%.300s' has %u: choose one with "
                       "--function",
                       w->path, *n);
    return OT_OK;
}

/* Each by itself; facts of several are results of their own. */
static ot_status plan_functions(ot_memory_work *w, const ot_mlir_function *const *list, uint32_t n,
                                const ot_mlir_functions *known, const ot_tk_machine *t, FILE *out)
{
    ot_memory_results *all = w->r, *own = n > 1 ? OT_NEW_N(all->arena, ot_memory_results, n) : all;
    size_t from = 0;
    ot_status s = own ? OT_OK : ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < n && s == OT_OK; k++) {
        if (n > 1)
            own[k] = (ot_memory_results){
                .arena = all->arena, .file = all->file, .asked = all->asked};
        w->r = &own[k];
        s = plan_function(w, list[k], known, t, &from, out);
    }
    w->r = all;
    if (n > 1) {
        all->functions = own;
        all->n_functions = n;
    }
    if (out) fwrite(w->input + from, 1, w->n_input - from, out);
    return s;
}

static ot_status run_mlir(ot_memory_work *w)
{
    ot_mlir_functions l = {.arena = w->r->arena};
    ot_tk_machine t;
    const ot_mlir_function **list;
    uint32_t n;
    FILE *out = NULL;
    double start = ot_now();

    OT_TRY(check_kernel_options(w));
    if (w->run->analyse)
        return ot_fail(w->d, OT_E_USAGE, "--analyse is for kernels as text: '%.300s' is MLIR",
                       w->path);
    if (w->run->n_sizes > 0)
        return ot_fail(w->d, OT_E_USAGE, "--size is for kernels as text: '%.300s' is MLIR",
                       w->path);
    OT_TRY(ot_mlir_find(w->path, w->input, w->n_input, w->d, &l));
    ot_memory_log_time(w, "parse", start);
    OT_TRY(choose_functions(w, &l, &list, &n));
    const ot_kernel k = {.name = "kernel", .target = "ascend-a2"};
    OT_TRY(ot_kernel_machine(&k, w->path, w->run->target, w->d, &t));
    if (w->run->output && !(out = open_memstream(&w->plan.bytes, &w->plan.n)))
        return ot_fail_nomem(w->d);
    ot_status s = plan_functions(w, list, n, &l, &t, out);
    if (!out) return s;
    if (s == OT_OK) return ot_memory_close_text(w, out, &w->plan, s);
    fclose(out);
    return s;
}

/* ---- writing ---- */

static ot_status publish(ot_out *outs, size_t n)
{
    for (size_t k = 0; k < n; k++) OT_TRY(ot_out_seal(&outs[k]));
    for (size_t k = 0; k < n; k++) OT_TRY(ot_out_publish(&outs[k]));
    return OT_OK;
}

static ot_status write_outputs(ot_memory_work *w)
{
    const char *const paths[] = {w->run->output, w->run->svg};
    const ot_rendered *text[2];
    ot_out outs[2];
    size_t n = 0;
    ot_status s = OT_OK;
    double start = ot_now();

    for (size_t k = 0; k < 2 && s == OT_OK; k++) {
        if (!paths[k]) continue;
        text[n] = k ? &w->map : &w->plan;
        s = ot_out_open(&outs[n++], paths[k], w->r->arena, w->d);
    }
    for (size_t k = 0; k < n && s == OT_OK; k++)
        ot_sink_put(&outs[k].sink, text[k]->bytes, text[k]->n);
    if (s == OT_OK) s = publish(outs, n);
    for (size_t k = n; k > 0; k--) ot_out_close(&outs[k - 1]);
    if (n > 0 && s == OT_OK) ot_memory_log_time(w, "write", start);
    return s;
}

/* ---- all of it ---- */

static ot_status run_all(ot_memory_work *w)
{
    double start = ot_now();
    if (w->run->pairs && strcmp(w->run->pairs, "-") == 0 && strcmp(w->run->path, "-") == 0)
        return ot_fail(w->d, OT_E_USAGE, "the table and --pairs cannot both come from stdin");
    OT_TRY(ot_read_text(w->run->path, w->r->arena, w->d, &w->input, &w->n_input));
    ot_memory_log_time(w, "read", start);
    const ot_text_kind is = kind_of(w);
    OT_TRY(check_output_name(w, is));
    OT_TRY(is == OT_TEXT_KERNEL ? run_kernel(w)
           : is == OT_TEXT_MLIR ? run_mlir(w)
                                : ot_memory_run_table(w));
    return write_outputs(w);
}

ot_status ot_plan_memory(const ot_memory_run *run, ot_diag *d, ot_memory_results **out)
{
    ot_arena *a = ot_arena_new();
    ot_memory_results *r = a ? OT_NEW(a, ot_memory_results) : NULL;
    if (!r) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    ot_memory_work w = {
        .run = run, .d = d, .path = strcmp(run->path, "-") == 0 ? "stdin" : run->path, .r = r};
    r->arena = a;
    r->asked = run->plan.mode;
    r->file = ot_strdup(a, w.path);
    ot_status s = r->file ? run_all(&w) : ot_fail_nomem(d);
    free(w.plan.bytes);
    free(w.map.bytes);
    if (s != OT_OK) {
        ot_arena_free(a);
        return s;
    }
    *out = r;
    return OT_OK;
}
