/* run: read a model and its inputs, run it, write its outputs.
 *
 *   import --> feed: given arrays are read or mapped, the others made up --> session --> files of
 *   large outputs, mapped --> run, run, ... --> other files --> figures
 *
 * Output files are all on the disk before the first is visible.
 */
#include "run_command.h"

#include "model_device.h"

#include "measure/measure.h"
#include "onnx/import/model_io.h"
#include "app/engine_plan.h"
#include "app/original.h"
#include "api/session_json.h"
#include "base/wrap.h"
#include "base/json.h"
#include "transform/transform.h"

typedef struct work {
    const ot_run_request *r;
    ot_diag *d;
    ot_arena *a;
    ot_model *m;
    ot_original original;
    ot_feed feed;
    ot_measured x;
    ot_model_device on;
    ot_run_output_request wants;
    ot_run_outputs outputs;
    ot_row_windows windows; /* of what is mapped */
    ot_spread time;         /* of the runs */
} work;

/* ---- running ---- */

/* The input that has to be given, where it is one alone; NULL. */
static const char *only_input(const ot_graph *g)
{
    const char *name = NULL;
    for (uint32_t k = 0; k < g->n_inputs; k++) {
        const ot_value *v = &g->values[g->inputs[k]];
        if (v->init) continue;
        if (name) return NULL;
        name = v->name;
    }
    return name;
}

static ot_status convert_inputs(work *w)
{
    for (size_t k = 0; k < w->r->n_forms; k++) {
        const ot_input_form *f = &w->r->forms[k];
        const char *name = f->name ? f->name : only_input(w->m->graph);
        if (!name)
            return ot_fail(w->d, OT_E_USAGE,
                           "the model has not one input alone: --input-type and --scale need its "
                           "name, INPUT=");
        OT_TRY(ot_convert_input(w->m, name, f->type, f->scale == 0 ? 1 : f->scale));
    }
    return OT_OK;
}

static ot_status load(work *w)
{
    ot_run run = {.diag = w->d, .source = {.path = w->r->model}};
    ot_status s = ot_run_load(&run);
    w->m = run.model; /* the run holds nothing else yet */
    if (s == OT_OK && !w->r->as_is)
        s = ot_run_original(w->m, w->r->quiet ? NULL : stderr, &w->original);
    return s == OT_OK ? convert_inputs(w) : s;
}

/* For the sizes of the arrays. */
static ot_status plan(work *w)
{
    const ot_run_request *r = w->r;
    const bool restored = w->original.restored && !r->no_plan;
    if (w->on.dev || r->reference || w->original.why || !(restored || r->has_goal)) return OT_OK;
    const ot_engine_request q = {.goal = r->has_goal ? r->goal : w->original.goal,
                                 .max_slowdown = restored ? w->original.max_slowdown
                                                          : OT_MAX_SLOWDOWN,
                                 .threads = r->threads,
                                 .shapes = w->feed.shapes,
                                 .n_shapes = w->feed.n_shapes};
    return ot_plan_for_engine(&w->m, &q, w->d);
}

/* Of one more run, which the times do not count. */
static ot_status write_device_trace(work *w)
{
    OT_TRY(ot_model_device_record(&w->on, 1, w->d));
    OT_TRY(ot_measured_run(&w->x, false, w->d));
    return ot_model_device_trace(&w->on, &w->r->model, 1, w->r->trace, w->d);
}

static ot_status write_trace(work *w)
{
    if (w->on.dev) return write_device_trace(w);
    ot_trace *t = ot_trace_new(w->r->threads ? w->r->threads : 1, OT_TRACE_EVENTS);
    if (!t) return ot_fail_nomem(w->d);
    ot_trace_begin(t, w->r->model);
    ot_session_trace(w->x.s, t);
    ot_status s = ot_measured_run(&w->x, false, w->d);
    ot_session_trace(w->x.s, NULL);
    if (s == OT_OK) s = ot_trace_save(t, w->r->trace, w->d);
    ot_trace_free(t);
    return s;
}

/* Large outputs get files, none of which is read. */
static ot_status open_outputs(work *w)
{
    const char **reads = ot_alloc_n(w->a, w->r->n_inputs + 1u, sizeof *reads);
    if (!reads) return ot_fail_nomem(w->d);
    for (size_t k = 0; k < w->r->n_inputs; k++) reads[k] = w->r->inputs[k].file;
    reads[w->r->n_inputs] = w->r->model;
    w->wants = (ot_run_output_request){.files = w->r->outputs,
                                       .n_files = w->r->n_outputs,
                                       .dir = w->r->output_dir,
                                       .reads = reads,
                                       .n_reads = w->r->n_inputs + 1u};
    return ot_run_outputs_open(&w->outputs, &w->wants, &w->x, w->a, w->d);
}

static ot_status add_window(work *w, const ot_nd *array, const char *name, bool written)
{
    ot_row_window **to = &w->windows.all[w->windows.n];
    OT_TRY(ot_row_window_mapped(array, name, written, w->d, to));
    w->windows.n++;
    return OT_OK;
}

/* The pages of mapped files come and go with the tiles. */
static ot_status watch_rows(work *w)
{
    const ot_graph *g = w->m->graph;
    const ot_run_outputs *o = &w->outputs;
    w->windows.all = ot_alloc_n(w->a, w->feed.n + o->n_mapped + 1u, sizeof *w->windows.all);
    if (!w->windows.all) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < w->feed.n; k++)
        if (w->feed.files[k].view)
            OT_TRY(add_window(w, &w->feed.arrays[k], g->values[g->inputs[k]].name, false));
    for (uint32_t k = 0; k < o->n_mapped; k++)
        if (o->mapped[k].view)
            OT_TRY(add_window(w, &o->mapped[k].array, ot_session_output(w->x.s, o->of[k])->name,
                              true));
    if (o->n_mapped > 0) w->windows.hold = &o->mapped[0].file.hold;
    if (w->windows.n > 0) ot_session_row_windows(w->x.s, &w->windows);
    return OT_OK;
}

static ot_status run_all(work *w)
{
    const ot_run_request *r = w->r;
    ot_feed_request f = {r->inputs, r->n_inputs, r->shapes, r->n_shapes, r->seed, true};
    OT_TRY(ot_model_device_open(&r->device, w->d, &w->on));
    ot_session_options o = {.place = ot_model_device_backend(&w->on),
                            .threads = r->threads,
                            .reference = r->reference,
                            .releases = true};
    OT_TRY(ot_feed_new(w->m->graph, &f, w->a, w->d, &w->feed));
    OT_TRY(plan(w));
    OT_TRY(ot_measured_open(&w->x, w->m, &w->feed, &o, w->a, w->d));
    OT_TRY(open_outputs(w));
    OT_TRY(watch_rows(w));
    uint32_t n = r->repeat ? r->repeat : 1;
    for (uint32_t k = 0; k < n; k++) {
        if (n > 1) ot_progress_at(r->progress, "run", (double)k / n);
        ot_status s = ot_measured_run(&w->x, true, w->d);
        if (s != OT_OK || k + 1 == n) ot_progress_end(r->progress);
        OT_TRY(s);
    }
    w->time = ot_spread_of(w->x.seconds, w->x.n_runs);
    if (r->trace) OT_TRY(write_trace(w));
    OT_TRY(ot_feed_check(&w->feed, w->d));
    ot_feed_release_inputs(&w->feed);
    return OT_OK;
}

/* ---- saying ---- */

static void json_outputs(const work *w, ot_json *j)
{
    ot_json_list(j, "outputs");
    for (uint32_t k = 0; k < w->x.n_outputs; k++) {
        const ot_nd *a = &w->x.out[k];
        ot_json_open(j, NULL);
        ot_json_put_text(j, "name", ot_session_output(w->x.s, k)->name);
        ot_json_put_text(j, "dtype", ot_dtype_name(a->dtype));
        if (a->list) {
            ot_json_put_null(j, "shape");
            ot_json_put_int(j, "length", (int64_t)a->list->n);
        } else {
            ot_json_list(j, "shape");
            for (uint32_t d = 0; d < a->rank; d++) ot_json_put_int(j, NULL, a->dims[d]);
            ot_json_close(j);
        }
        ot_json_close(j);
    }
    ot_json_close(j);
}

/* docs/json.md: ms_min is a name that the judge of the engine reads. */
static void print_json(const work *w, FILE *f)
{
    ot_json j = {.f = f};
    ot_json_open(&j, NULL);
    ot_json_put_figure(&j, "ms_min", w->time.min * 1e3);
    ot_json_put_figure(&j, "least_seconds", w->time.min);
    ot_json_put_figure(&j, "median_seconds", w->time.p50);
    ot_json_put_figure(&j, "p90_seconds", w->time.p90);
    ot_json_put_figure(&j, "p99_seconds", w->time.p99);
    ot_json_put_int(&j, "runs", w->x.n_runs);
    ot_json_put_int(&j, "threads", w->r->threads ? w->r->threads : 1);
    ot_session_json_memory(w->x.s, &j);
    ot_json_put_int(&j, "resident_bytes", ot_resident_peak());
    ot_session_json_nodes(w->x.s, &j);
    if (w->on.dev) ot_model_device_json(&w->on, w->x.s, &j);
    json_outputs(w, &j);
    ot_json_close(&j);
}

static void print_nodes(const work *w, FILE *f)
{
    char took[32];
    uint32_t n;
    const ot_node_time *t = ot_session_times(w->x.s, &n);
    for (uint32_t k = 0; k < n; k++) {
        fprintf(f, "node     %-10s ", ot_format_seconds(t[k].seconds, took, sizeof took));
        ot_put_shown(t[k].op, f);
        fputc(' ', f);
        ot_put_shown(t[k].name, f);
        fputc('\n', f);
    }
}

static void print_outputs(const work *w, FILE *f)
{
    for (uint32_t k = 0; k < w->x.n_outputs; k++) {
        const ot_nd *o = &w->x.out[k];
        fprintf(f, "output %u ", k);
        ot_put_shown(ot_session_output(w->x.s, k)->name, f);
        fputs(": ", f);
        if (o->list) {
            fprintf(f, "sequence of %zu\n", o->list->n);
            continue;
        }
        fprintf(f, "%s [", ot_dtype_name(o->dtype));
        for (uint32_t j = 0; j < o->rank; j++)
            fprintf(f, "%s%lld", j ? "," : "", (long long)o->dims[j]);
        fputs("]\n", f);
    }
}

static void print_table(const work *w, const ot_session_figures *x, FILE *f)
{
    char a[32], b[32], c[32], e[32];
    ot_feed_say_guess(&w->feed, f);
    fprintf(f, "time     %s least, %s median", ot_format_seconds(w->time.min, a, sizeof a),
            ot_format_seconds(w->time.p50, b, sizeof b));
    fprintf(f, ", %s p90, %s p99 of %u\n", ot_format_seconds(w->time.p90, c, sizeof c),
            ot_format_seconds(w->time.p99, e, sizeof e), w->x.n_runs);
    fprintf(f, "memory   %s of values at the most, %s of them planned",
            ot_format_bytes((double)x->peak, a, sizeof a),
            ot_format_bytes((double)x->planned_peak, b, sizeof b));
    fprintf(f, "; weights %s; process %s\n", ot_format_bytes((double)x->weight_bytes, c, sizeof c),
            ot_format_bytes((double)ot_resident_peak(), e, sizeof e));
    if (w->on.dev) ot_model_device_print(&w->on, w->x.s, "", f);
    if (w->r->verbose) {
        fprintf(f, "nodes    %u run, %u computed before; %u values not as planned\n", x->n_nodes,
                x->n_folded, x->n_mispredicted);
        print_nodes(w, f);
    }
    print_outputs(w, f);
}

static ot_status say(const work *w)
{
    ot_session_figures x;
    ot_session_figures_get(w->x.s, &x);
    if (w->r->json)
        print_json(w, stdout);
    else if (!w->r->quiet) {
        ot_wrap wrap;
        print_table(w, &x, ot_wrap_open(&wrap, stdout));
        return ot_wrap_close(&wrap);
    }
    return ferror(stdout) ? OT_E_SYSTEM : OT_OK;
}

static ot_status run_command(work *w)
{
    OT_TRY(load(w));
    OT_TRY(run_all(w));
    OT_TRY(ot_run_outputs_write(&w->outputs, w->d));
    return say(w);
}

ot_status ot_run_command(const ot_run_request *r, ot_diag *d)
{
    work w = {.r = r, .d = d, .a = ot_arena_new()};
    ot_status s = w.a ? run_command(&w) : ot_fail_nomem(d);
    ot_run_outputs_close(&w.outputs);
    ot_measured_close(&w.x);
    for (uint32_t k = 0; k < w.windows.n; k++) ot_row_window_free(w.windows.all[k]);
    const ot_status closed = ot_model_device_close(&w.on, d);
    ot_feed_release(&w.feed);
    ot_model_free(w.m);
    ot_arena_free(w.a);
    return s == OT_OK ? closed : s;
}
