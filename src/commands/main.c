/* The program: options, pipeline, results, exit status. No logic of its own. */
#include "bench_command.h"
#include "calibrate_command.h"
#include "devices_command.h"
#include "error_place.h"
#include "gate_command.h"
#include "geometry_command.h"
#include "passes_command.h"
#include "report/facts/facts.h"
#include "options.h"
#include "app/pipeline.h"
#include "onnx/export/out_file.h"
#include "base/wrap.h"
#include "plan_memory.h"
#include "run_kernel.h"
#include "step_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>

/* Hundreds of plans are written on copies of the model, one after the other: what one took
 * serves the next, and no pages are given back and cleared anew in between, which was a fifth of
 * the time. Large blocks still go. */
static void keep_freed(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, 128 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 4 << 20);
    (void)mallopt(M_TOP_PAD, 8 << 20);
}
#else
static void keep_freed(void) {}
#endif

#ifndef OT_VERSION
#define OT_VERSION "0.1.0"
#endif

#define READER_LEFT 141 /* as of a program that SIGPIPE ends */

/* Exit status of each ot_status; see base.h. */
static int exit_code(ot_status s)
{
    switch (s) {
    case OT_OK: return 0;
    case OT_E_INPUT: return 1;
    case OT_E_USAGE: return 2;
    case OT_E_BUDGET: return 3;
    case OT_E_SYSTEM:
    case OT_E_NOMEM: return 4;
    }
    return 4;
}

static ot_status dump_target(const char *name, ot_diag *d)
{
    ot_target t = {0};
    OT_TRY(ot_target_load(name, 0, d, &t));
    const ot_status s = ot_target_save_commented(&t, stdout, d);
    ot_target_free(&t);
    return s;
}

/* What --help, --version and the other options ask for that do no work. */
static ot_status answer(const ot_options *o, ot_diag *d)
{
    if (o->help) return ot_options_help(o, stdout, d);
    if (o->completion) return ot_options_completion(o->completion, stdout);
    if (o->dump_target) return dump_target(o->dump_target, d);
    if (o->list_targets || o->list_runtimes) {
        ot_wrap wrap;
        FILE *to = ot_wrap_open(&wrap, stdout);
        const ot_status s = o->list_targets ? ot_target_list(to) : ot_runtime_list(to);
        const ot_status closed = ot_wrap_close(&wrap);
        return s == OT_OK ? closed : s;
    }
    return printf("onnx-tile %s\n", OT_VERSION) < 0 ? OT_E_SYSTEM : OT_OK;
}

/* An output on stdout leaves no room for the table there. */
static FILE *table_stream(const ot_options *o)
{
    bool taken = (o->output && strcmp(o->output, "-") == 0) || (o->svg && strcmp(o->svg, "-") == 0);
    return taken ? stderr : stdout;
}

static ot_status print_results(const ot_options *o, const ot_facts *f)
{
    bool inspect = o->command == OT_CMD_INSPECT;
    if (o->command == OT_CMD_EXPLAIN && o->json) return ot_explain_json(f, stdout);
    if (o->json) return ot_results_json(f, stdout);
    if (o->quiet) return OT_OK;
    ot_wrap wrap;
    FILE *to = ot_wrap_open(&wrap, table_stream(o));
    ot_status s = o->command == OT_CMD_EXPLAIN ? ot_explain_print(f, wrap.columns, to)
                  : o->table                   ? ot_results_nodes(f, wrap.columns, to)
                                               : ot_results_print(f, inspect, wrap.columns, to);
    ot_status closed = ot_wrap_close(&wrap);
    return s == OT_OK ? closed : s;
}

/* All reports that are asked for. */
static ot_status write_reports(const ot_options *o, const ot_facts *f, ot_diag *d)
{
    for (size_t k = 0; k < o->n_reports; k++) OT_TRY(ot_report_write(f, o->reports[k], d));
    return OT_OK;
}

/* What plan-memory found, within the terminal's columns. */
static ot_status print_memory(const ot_memory_results *r, FILE *f)
{
    ot_wrap wrap;
    const ot_status s = ot_memory_results_print(r, ot_terminal_columns(f), ot_wrap_open(&wrap, f));
    const ot_status closed = ot_wrap_close(&wrap);
    return s == OT_OK ? closed : s;
}

static ot_status report_memory(const ot_options *o, const ot_memory_results *r, ot_diag *d)
{
    ot_facts *f;
    if (o->n_reports == 0) return OT_OK;
    OT_TRY(ot_facts_from_memory(r, d, &f));
    ot_status s = write_reports(o, f, d);
    ot_facts_free(f);
    return s;
}

static ot_status plan_memory(const ot_options *o, ot_diag *d)
{
    ot_memory_run run = {.path = o->model,
                         .output = o->output,
                         .svg = o->svg,
                         .pairs = o->pairs,
                         .function = o->function,
                         .target = o->target,
                         .sizes = o->sizes,
                         .n_sizes = o->n_sizes,
                         .keep_maps = o->n_reports > 0,
                         .analyse = o->analyse,
                         .apply = o->apply,
                         .footprint = o->footprint,
                         .plan = o->memory,
                         .log = o->verbose ? stderr : NULL};
    ot_memory_results *r = NULL;

    run.plan.threads = o->threads;
    OT_TRY(ot_plan_memory(&run, d, &r));
    ot_status s = report_memory(o, r, d);
    if (s == OT_OK && o->json)
        s = ot_memory_results_json(r, stdout);
    else if (s == OT_OK && !o->quiet)
        s = print_memory(r, table_stream(o));
    ot_memory_results_free(r);
    return s;
}

/* Where progress is shown: on a terminal, unless other lines go there or none are wanted. */
static ot_progress progress_of(const ot_options *o)
{
    return (ot_progress){.out = !o->quiet && !o->verbose && ot_terminal_draws(stderr) ? stderr
                                                                                      : NULL};
}

static ot_status run_model(const ot_options *o, ot_diag *d)
{
    ot_progress progress = progress_of(o);
    ot_run_request r = {.model = o->model,
                        .inputs = o->inputs,
                        .n_inputs = o->n_inputs,
                        .forms = o->forms,
                        .n_forms = o->n_forms,
                        .shapes = o->shapes,
                        .n_shapes = o->n_shapes,
                        .seed = o->seed,
                        .outputs = o->outputs,
                        .n_outputs = o->n_outputs,
                        .output_dir = o->output_dir,
                        .device = {o->device, o->device_memory, o->device_check},
                        .trace = o->trace,
                        .repeat = o->repeat,
                        .threads = o->threads,
                        .reference = o->reference,
                        .as_is = o->as_is,
                        .no_plan = o->no_plan,
                        .has_goal = o->goal_given,
                        .goal = o->plan.goal,
                        .progress = &progress,
                        .json = o->json,
                        .quiet = o->quiet,
                        .verbose = o->verbose};
    return ot_run_command(&r, d);
}

static ot_status run_kernel(const ot_options *o, ot_diag *d)
{
    ot_kernel_request r = {.path = o->model,
                           .target = o->target,
                           .plan = o->memory,
                           .inputs = o->inputs,
                           .n_inputs = o->n_inputs,
                           .sizes = o->sizes,
                           .n_sizes = o->n_sizes,
                           .output_dir = o->output_dir,
                           .trace = o->trace,
                           .on = {o->device, o->source, o->work_items, o->repeat},
                           .stats = o->stats,
                           .tune = o->tune,
                           .json = o->json,
                           .quiet = o->quiet};
    r.plan.threads = 1;
    return ot_run_kernel(&r, d);
}

/* Nothing can be written beside it: standard output, a text file, a device. */
static bool stands_alone(const char *output)
{
    struct stat st;
    if (!output) return false;
    return strcmp(output, "-") == 0 || ot_is_text_path(output) ||
           (stat(output, &st) == 0 && !S_ISREG(st.st_mode));
}

/* How to tile a model. */
static ot_run_options tile_options(const ot_options *o, ot_progress *progress)
{
    ot_run_options r = {.target = o->target,
                        .l2_bytes = o->l2_bytes,
                        .weight_bytes = o->weight_bytes,
                        .threads = o->threads,
                        .shapes = o->shapes,
                        .n_shapes = o->n_shapes,
                        .design = o->design,
                        .n_design = o->n_design,
                        .ranges = o->ranges,
                        .n_ranges = o->n_ranges,
                        .keep_dynamic = o->keep_dynamic,
                        .plan = o->plan,
                        .runtime = o->runtime,
                        .emit_engine = o->emit_engine,
                        .operators = o->operators,
                        .dump_dir = o->dump_dir,
                        .log = o->verbose ? stderr : NULL,
                        .warn = stderr,
                        .progress = progress};
    r.plan.single_file |= stands_alone(o->output);
    r.try_cures = o->n_reports > 0 || o->command == OT_CMD_EXPLAIN;
    r.plan.detail = o->n_reports > 0 || o->table || o->command == OT_CMD_EXPLAIN ||
                    o->command == OT_CMD_GATE;
    return r;
}

static ot_status bench_model(const ot_options *o, ot_diag *d)
{
    ot_progress progress = progress_of(o);
    ot_bench_request r = {.model = o->model,
                          .tiled = o->second,
                          .tile = tile_options(o, &progress),
                          .inputs = o->inputs,
                          .n_inputs = o->n_inputs,
                          .shapes = o->shapes,
                          .n_shapes = o->n_shapes,
                          .seed = o->seed,
                          .repeat = o->repeat,
                          .threads = o->threads,
                          .device = {o->device, o->device_memory, o->device_check},
                          .trace = o->trace,
                          .reports = o->reports,
                          .n_reports = o->n_reports,
                          .as_is = o->as_is,
                          .no_plan = o->no_plan,
                          .json = o->json,
                          .quiet = o->quiet};
    return ot_bench_command(&r, d);
}

static ot_status calibrate(const ot_options *o, ot_diag *d)
{
    ot_progress progress = progress_of(o);
    ot_calibrate_request r = {.output = o->output,
                              .threads = o->threads,
                              .device = o->device,
                              .quiet = o->quiet,
                              .verbose = o->verbose,
                              .progress = &progress};
    return ot_calibrate_command(&r, d);
}

static ot_status compare(const ot_options *o, ot_diag *d)
{
    if (!o->markdown) return ot_compare_reports(o->model, o->second, o->output, d);
    return ot_compare_summary(o->model, o->second, o->output ? o->output : "-", d);
}

static ot_status geometry(const ot_options *o, ot_diag *d)
{
    ot_geometry_request r = {.model = o->model,
                             .shapes = o->shapes,
                             .n_shapes = o->n_shapes,
                             .json = o->json,
                             .bioimage = o->bioimage,
                             .quiet = o->quiet};
    return ot_geometry_command(&r, d);
}

static ot_status passes(const ot_options *o, ot_diag *d)
{
    ot_passes_request r = {.model = o->model,
                           .folder = o->output,
                           .shapes = o->shapes,
                           .n_shapes = o->n_shapes,
                           .store = o->store,
                           .json = o->json,
                           .quiet = o->quiet};
    return ot_passes_command(&r, d);
}

static ot_status step(const ot_options *o, ot_diag *d)
{
    ot_step_command_request r = {.model = o->model,
                                 .output = o->output,
                                 .step = o->step,
                                 .table = o->quiet ? NULL : table_stream(o),
                                 .json = o->json};
    r.step.shapes = o->shapes;
    r.step.n_shapes = o->n_shapes;
    return ot_step_command(&r, d);
}

static ot_status gate(const ot_options *o, ot_diag *d)
{
    ot_progress progress = progress_of(o);
    ot_gate_request r = {.model = o->model,
                         .tile = tile_options(o, &progress),
                         .limits = o->gate,
                         .baseline = o->baseline,
                         .reports = o->reports,
                         .n_reports = o->n_reports,
                         .json = o->json,
                         .quiet = o->quiet};
    keep_freed();
    return ot_gate_command(&r, d);
}

/* The result is what the original was, or nothing is written. */
static ot_status verify_result(const ot_options *o, const ot_run *run, const void *original,
                               size_t n)
{
    ot_verify_facts f;
    OT_TRY(ot_verify_tiled(run, original, n, o->verify, &f));
    if (!o->quiet && !o->json)
        fprintf(table_stream(o),
                "verified  %u value%s the same (NMSE at most %.1e, difference at most %.1e of the "
                "largest value%s)\n",
                f.n_values, f.n_values == 1 ? "" : "s", f.nmse, f.max_rel,
                f.n_noisy > 0 ? ": within the original's own rounding" : "");
    return OT_OK;
}

/* Who read standard output has left: "| head" has seen enough, and no more is printed. */
static bool reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/* What was written, how large it is, and how long all of it took since `start`. */
static void print_written(const ot_options *o, double start)
{
    struct stat st;
    char size[32];
    if (o->quiet || o->json || strcmp(o->output, "-") == 0 || stat(o->output, &st) != 0) return;
    fprintf(table_stream(o), "wrote %s, %s, %.1f s\n", o->output,
            ot_format_bytes((double)st.st_size, size, sizeof size), ot_now() - start);
}

/* Who names no goal and looks on is told what the other one would give, where that is an eighth
 * less than what was written: a plan more, after the work is done. */
static void print_other_goal(const ot_options *o, const ot_facts *written)
{
    ot_diag d = {0};
    ot_progress progress = progress_of(o);
    const int64_t now = written->totals.tiled.process_bytes;
    if (o->goal_given || o->quiet || o->json || o->plan.memory_budget > 0 ||
        strcmp(o->model, "-") == 0 || !written->totals.predicts_process || now <= 0 ||
        !ot_terminal_draws(stdout))
        return;
    ot_run run = {.diag = &d, .options = tile_options(o, &progress), .source = {.path = o->model}};
    run.options.plan.goal = OT_GOAL_MEMORY;
    run.options.warn = NULL;
    if (ot_run_load(&run) == OT_OK && ot_run_tile(&run, true) == OT_OK) {
        char before[32], after[32];
        const ot_figures *u = &run.facts->totals.untiled, *t = &run.facts->totals.tiled;
        if (t->process_bytes > 0 && t->process_bytes < now - now / 8)
            printf("--goal memory would take a process of %s%s in place of %s, time x%.2f "
                   "(predicted)\n",
                   *run.facts->unknown_sizes ? "at least " : "",
                   ot_format_bytes((double)t->process_bytes, after, sizeof after),
                   ot_format_bytes((double)u->process_bytes, before, sizeof before),
                   t->time_s / u->time_s);
    }
    ot_run_free(&run);
}

static ot_status process(const ot_options *o, ot_diag *d)
{
    ot_progress progress = progress_of(o);
    ot_run run = {.diag = d,
                  .options = tile_options(o, &progress),
                  .source = {.path = o->model},
                  .output = o->output};
    bool inspect = o->command == OT_CMD_INSPECT || o->command == OT_CMD_EXPLAIN;
    void *original = NULL; /* for --verify */
    size_t n = 0;
    const double start = ot_now();
    if (o->command == OT_CMD_PLAN_MEMORY) return plan_memory(o, d);
    if (o->command == OT_CMD_RUN) return run_model(o, d);
    if (o->command == OT_CMD_RUN_KERNEL) return run_kernel(o, d);
    if (o->command == OT_CMD_BENCH) return bench_model(o, d);
    if (o->command == OT_CMD_CALIBRATE) return calibrate(o, d);
    if (o->command == OT_CMD_DEVICES) return ot_devices_command(o->json, o->quiet, d);
    if (o->command == OT_CMD_COMPARE) return compare(o, d);
    if (o->command == OT_CMD_GATE) return gate(o, d);
    if (o->command == OT_CMD_GEOMETRY) return geometry(o, d);
    if (o->command == OT_CMD_PASSES) return passes(o, d);
    if (o->emit_step) return step(o, d);
    keep_freed();
    ot_status s = ot_run_load(&run);
    if (s == OT_OK && run.output) s = ot_out_check(run.output, d); /* before minutes of planning */
    if (s == OT_OK && o->verify) s = ot_verify_keep(&run, &original, &n);
    if (s == OT_OK) s = ot_run_tile(&run, inspect);
    if (s == OT_OK && o->verify) s = verify_result(o, &run, original, n);
    free(original);
    if (s == OT_OK) s = write_reports(o, run.facts, d);
    if (s == OT_OK) s = print_results(o, run.facts); /* who cannot print writes nothing */
    if (s == OT_OK && fflush(stdout) != 0 && !reader_left())
        s = ot_fail(d, OT_E_SYSTEM, "cannot write standard output: %s", strerror(errno));
    if (s == OT_OK && !inspect) {
        s = ot_run_save(&run);
        if (s == OT_OK) print_written(o, start);
        if (s == OT_OK) print_other_goal(o, run.facts);
    }
    ot_run_free(&run);
    return s;
}

/* Descriptors of standard streams that are closed become ones that nothing can be written to, so
 * that no file that is opened later gets their numbers and what is printed. */
static void claim_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    ot_diag d = {0};
    ot_options o;

    signal(SIGPIPE, SIG_IGN); /* who reads no more of the table still gets the model */
    signal(SIGXFSZ, SIG_IGN); /* so is a limit on the size of files */
    claim_streams();
    ot_status s = ot_options_parse(argc, argv, &d, &o);
    if (s == OT_OK) s = ot_options_ask(&o) ? answer(&o, &d) : process(&o, &d);
    if (s == OT_OK && (fflush(stdout) != 0 || ferror(stdout))) s = OT_E_SYSTEM;
    if (s == OT_E_SYSTEM && ferror(stdout) && reader_left()) {
        ot_options_free(&o);
        return READER_LEFT;
    }
    if (s != OT_OK) {
        if (!*d.message)
            ot_fail(&d, s, s == OT_E_NOMEM ? "out of memory" : "cannot write: %s", strerror(errno));
        bool colours = ot_terminal_colours(stderr);
        fprintf(stderr, "onnx-tile: %serror:%s %s\n", colours ? "\033[1;31m" : "",
                colours ? "\033[0m" : "", d.message);
        if ((o.command == OT_CMD_PLAN_MEMORY || o.command == OT_CMD_RUN_KERNEL) &&
            (o.verbose || isatty(STDERR_FILENO)))
            ot_print_error_place(stderr, o.model, d.message);
    }
    ot_options_free(&o);
    return exit_code(s);
}
