/* bench: a model and its tiled form in the native engine, side by side.
 *
 *   load original --> feed --> load tiled, or load again and tile --> the same arrays
 *   warm up both --> original, tiled, original, tiled, ...      what disturbs the machine for a
 *                                                               while disturbs both alike
 *   outputs of the last two runs are compared
 *
 * Regions are recognised in the times of nodes: in the original by their nodes' names, in the
 * tiled model by "tile/r<id>/". The engine also gives times of nodes inside of bodies; the nodes
 * around these contain them.
 */
#include "bench_command.h"

#include "bench_print.h"
#include "app/engine_plan.h"
#include "app/original.h"
#include "base/wrap.h"

#include "report/facts/facts.h"
#include "onnx/export/out_file.h"

#include <errno.h>

#define WARM_UPS     2
#define ROUNDS_LEAST 5 /* when no count is asked for: so many, */
#define ROUNDS_MOST  200
#define ROUNDS_S     4.0 /* or as fit into so many seconds */

enum { ORIGINAL, TILED, SIDES };

typedef struct side {
    ot_run run; /* the model, and for the tiled one the plan */
    ot_feed feed;
    ot_measured x;
    ot_cache_counts cache;
    ot_map *top;         /* names of the nodes of the top graph */
    uint32_t *region_of; /* [n_times] of each node's time; OT_NONE: of no region */
    uint32_t n_times;
} side;

typedef struct work {
    const ot_bench_request *r;
    ot_diag *d;
    ot_arena *a;
    side side[SIDES];
    bool half;                 /* the original has half precision inside */
    ot_model_device on[SIDES]; /* one each: each counts its own memory */
    ot_bench_facts facts;
} work;

static uint32_t threads_of(const work *w) { return w->r->threads ? w->r->threads : 1; }

/* ---- the two models ---- */

/* Tiles of other runtimes are taken back. */
static ot_status untile(const work *w, const ot_run *run, ot_original *out)
{
    *out = (ot_original){0};
    return w->r->as_is ? OT_OK : ot_run_original(run->model, w->r->quiet ? NULL : stderr, out);
}

static ot_status load_original(work *w)
{
    side *o = &w->side[ORIGINAL];
    ot_original was;
    ot_feed_request f = {w->r->inputs,   w->r->n_inputs, w->r->shapes,
                         w->r->n_shapes, w->r->seed,     false};
    o->run = (ot_run){.diag = w->d, .source = {.path = w->r->model}};
    OT_TRY(ot_run_load(&o->run));
    OT_TRY(untile(w, &o->run, &was));
    w->half = ot_has_half(o->run.model->graph);
    return ot_feed_new(o->run.model->graph, &f, w->a, w->d, &o->feed);
}

/* A file that was tiled for another runtime gets tiles of the engine in place of those. */
static ot_status plan_restored(const work *w, side *t, const ot_original *was)
{
    if (!was->restored || w->r->no_plan || w->r->device.name) return OT_OK;
    const ot_engine_request q = {.goal = was->goal,
                                 .max_slowdown = was->max_slowdown,
                                 .threads = threads_of(w),
                                 .shapes = t->run.options.shapes,
                                 .n_shapes = t->run.options.n_shapes};
    return ot_plan_for_engine(&t->run.model, &q, w->d);
}

/* A model in which nothing changes has again the nodes of the file, some of which the engine runs
 * only as they are read (ot_raise_undo): it is read again. */
static ot_status read_unchanged(side *t)
{
    ot_run again = {.diag = t->run.diag, .options = t->run.options, .source = t->run.source};
    if (ot_plan_edits(t->run.selection.plan)) return OT_OK;
    ot_status s = ot_run_load(&again);
    if (s == OT_OK && !again.options.keep_dynamic) /* another size than the file's */
        s = ot_infer_shapes(again.model->graph, again.options.shapes, again.options.n_shapes);
    if (s == OT_OK) {
        again.model->lender = t->run.model; /* the plan and its facts tell of that one */
        t->run.model = again.model;
        again.model = NULL;
    }
    ot_run_free(&again);
    return s;
}

/* The file, or the original once more, tiled for the shapes of the arrays. */
static ot_status load_tiled(work *w)
{
    side *o = &w->side[ORIGINAL], *t = &w->side[TILED];
    ot_original was;
    t->run = (ot_run){.diag = w->d,
                      .options = w->r->tile,
                      .source = {.path = w->r->tiled ? w->r->tiled : w->r->model}};
    t->run.options.threads = threads_of(w);
    t->run.options.shapes = o->feed.shapes;
    t->run.options.n_shapes = o->feed.n_shapes;
    OT_TRY(ot_run_load(&t->run));
    OT_TRY(untile(w, &t->run, &was));
    OT_TRY(w->r->tiled ? plan_restored(w, t, &was) : ot_run_tile(&t->run, false));
    if (!w->r->tiled && !was.restored) OT_TRY(read_unchanged(t));
    return ot_feed_adopt(t->run.model->graph, o->run.model->graph, &o->feed, w->a, w->d, &t->feed);
}

static ot_status load_target(work *w, ot_target *t)
{
    const ot_run_options *o = &w->r->tile;
    char note[512];
    OT_TRY(ot_target_load(o->target, threads_of(w), w->d, t));
    if (o->emit_engine) (void)ot_target_use_calibration(t, threads_of(w), note, sizeof note);
    if (o->l2_bytes) ot_target_set_l2(t, o->l2_bytes);
    if (o->weight_bytes) t->weight_bytes = o->weight_bytes;
    return OT_OK;
}

/* Counters first: they see the threads that start after them. */
static ot_status open_sides(work *w)
{
    ot_session_options o = {.threads = threads_of(w)};
    bool counted = ot_cache_open(&w->side[ORIGINAL].cache);
    w->facts.counted = ot_cache_open(&w->side[TILED].cache) && counted;
    for (int k = 0; k < SIDES; k++) {
        side *s = &w->side[k];
        OT_TRY(ot_model_device_open(&w->r->device, w->d, &w->on[k]));
        o.place = ot_model_device_backend(&w->on[k]);
        OT_TRY(ot_measured_open(&s->x, s->run.model, &s->feed, &o, w->a, w->d));
    }
    if (w->side[ORIGINAL].x.n_outputs == w->side[TILED].x.n_outputs) return OT_OK;
    return ot_fail(w->d, OT_E_INPUT, "the tiled model has %u outputs, the original %u",
                   w->side[TILED].x.n_outputs, w->side[ORIGINAL].x.n_outputs);
}

/* ---- regions in the times of nodes ---- */

/* "tile/r12/while" --> 12, or OT_NONE. */
static uint32_t region_in_name(const char *name)
{
    unsigned id;
    int end = 0;
    if (sscanf(name, "tile/r%9u/%n", &id, &end) != 1 || end == 0) return OT_NONE;
    return id;
}

static uint32_t region_index(const ot_facts *r, uint32_t id)
{
    for (uint32_t k = 0; k < r->n_regions; k++)
        if (r->regions[k].id == id) return k;
    return OT_NONE;
}

/* Names of the nodes of the top graph, to tell them from those of bodies. */
static ot_status list_top(work *w, side *s)
{
    const ot_graph *g = s->run.model->graph;
    s->top = ot_map_new(w->a);
    if (!s->top) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < g->n_nodes; k++)
        if (!ot_map_put(s->top, g->nodes[k].name, k)) return ot_fail_nomem(w->d);
    return OT_OK;
}

/* Requires a run. */
static ot_status map_regions(work *w, int which)
{
    const ot_facts *r = w->side[TILED].run.facts;
    side *s = &w->side[which];
    ot_map *nodes = ot_map_new(w->a);
    const ot_node_time *t = ot_session_times(s->x.s, &s->n_times);
    s->region_of = OT_NEW_N(w->a, uint32_t, s->n_times + 1u);
    if (!nodes || !s->region_of) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < r->n_regions; k++)
        for (uint32_t j = 0; j < r->regions[k].n_nodes; j++)
            if (!ot_map_put(nodes, r->nodes[r->regions[k].nodes[j]].name, k))
                return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < s->n_times; k++) {
        uint32_t id = region_in_name(t[k].name);
        s->region_of[k] = OT_NONE;
        if (ot_map_get(s->top, t[k].name) == OT_NONE) continue;
        if (which == ORIGINAL && *t[k].name) s->region_of[k] = ot_map_get(nodes, t[k].name);
        if (which == TILED && id != OT_NONE) s->region_of[k] = region_index(r, id);
    }
    return OT_OK;
}

static ot_status list_regions(work *w)
{
    const ot_facts *r = w->side[TILED].run.facts;
    if (!r) return OT_OK; /* the tiled model came from a file */
    w->facts.n_regions = r->n_regions;
    w->facts.regions = ot_alloc_n(w->a, r->n_regions + 1u, sizeof *w->facts.regions);
    if (!w->facts.regions) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < r->n_regions; k++)
        w->facts.regions[k] = (ot_bench_region){
            .id = r->regions[k].id,
            .predicted = {r->regions[k].time_untiled, r->regions[k].time_tiled}};
    OT_TRY(map_regions(w, ORIGINAL));
    return map_regions(w, TILED);
}

/* The least time of each region so far. */
static ot_status note_regions(work *w, int which)
{
    const side *s = &w->side[which];
    uint32_t n;
    const ot_node_time *t = ot_session_times(s->x.s, &n);
    double *sum = OT_NEW_N(w->a, double, w->facts.n_regions + 1u);
    if (!sum) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < n && k < s->n_times; k++)
        if (s->region_of[k] != OT_NONE) sum[s->region_of[k]] += t[k].seconds;
    for (uint32_t k = 0; k < w->facts.n_regions; k++) {
        double *least = &w->facts.regions[k].measured[which];
        if (*least <= 0 || sum[k] < *least) *least = sum[k];
    }
    return OT_OK;
}

/* ---- runs ---- */

static ot_status run_side(work *w, int which, bool keep)
{
    side *s = &w->side[which];
    ot_cache_start(&s->cache);
    ot_status st = ot_measured_run(&s->x, keep, w->d);
    ot_cache_stop(&s->cache);
    OT_TRY(st);
    if (!keep) {
        s->cache.references = s->cache.misses = 0;
        return OT_OK;
    }
    return w->facts.n_regions ? note_regions(w, which) : OT_OK;
}

static bool enough(const work *w, uint32_t rounds, double since)
{
    if (w->r->repeat) return rounds >= w->r->repeat;
    return rounds >= ROUNDS_MOST || (rounds >= ROUNDS_LEAST && ot_now() - since >= ROUNDS_S);
}

static ot_status warm_up(work *w)
{
    for (uint32_t k = 0; k < WARM_UPS; k++)
        for (int j = 0; j < SIDES; j++) {
            ot_progress_at(w->r->tile.progress, "warm-up",
                           (double)(k * SIDES + j) / (WARM_UPS * SIDES));
            OT_TRY(run_side(w, j, false));
        }
    return OT_OK;
}

/* Of the rounds: those that are done, or of the time that they may take. */
static double part_done(const work *w, uint32_t rounds, double since)
{
    if (w->r->repeat) return (double)rounds / w->r->repeat;
    double time = (ot_now() - since) / ROUNDS_S, least = (double)rounds / ROUNDS_LEAST;
    return time < least ? time : least;
}

static ot_status run_rounds(work *w)
{
    uint32_t rounds = 0;
    double start = ot_now();
    for (; !enough(w, rounds, start); rounds++)
        for (int j = 0; j < SIDES; j++) {
            ot_progress_at(w->r->tile.progress, "bench", part_done(w, rounds, start));
            OT_TRY(run_side(w, j, true));
        }
    w->facts.runs = rounds;
    return OT_OK;
}

/* ---- facts ---- */

static ot_status load_again(void *of, ot_model **m)
{
    const work *w = of;
    ot_original was;
    ot_run run = {.diag = w->d, .source = {.path = w->r->model}};
    ot_status s = ot_run_load(&run);
    if (s == OT_OK) s = untile(w, &run, &was);
    *m = run.model;
    return s;
}

static ot_status compare_outputs(work *w)
{
    side *o = &w->side[ORIGINAL], *t = &w->side[TILED];
    w->facts.n_outputs = o->x.n_outputs;
    w->facts.outputs = ot_alloc_n(w->a, o->x.n_outputs + 1u, sizeof *w->facts.outputs);
    if (!w->facts.outputs) return ot_fail_nomem(w->d);
    w->facts.same = true;
    const ot_comparison c = {.original = &o->x,
                             .other = &t->x,
                             .feed = &o->feed,
                             .half = w->half,
                             .load = load_again,
                             .of = w};
    ot_difference *found = OT_NEW_N(w->a, ot_difference, o->x.n_outputs + 1u);
    if (!found) return ot_fail_nomem(w->d);
    OT_TRY(ot_compare_outputs(&c, w->a, w->d, found));
    for (uint32_t k = 0; k < o->x.n_outputs; k++) {
        ot_bench_output *x = &w->facts.outputs[k];
        *x = (ot_bench_output){ot_session_output(o->x.s, k)->name, found[k]};
        w->facts.same = w->facts.same && x->difference.same;
    }
    return OT_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static ot_status region_error(work *w)
{
    double *errors = OT_NEW_N(w->a, double, w->facts.n_regions + 1u);
    uint32_t n = 0;
    if (!errors) return ot_fail_nomem(w->d);
    for (uint32_t k = 0; k < w->facts.n_regions; k++) {
        const ot_bench_region *x = &w->facts.regions[k];
        double e = x->predicted[TILED] - x->measured[TILED];
        if (x->measured[TILED] > 0 && !w->facts.elsewhere)
            errors[n++] = (e < 0 ? -e : e) / x->measured[TILED];
    }
    if (n) qsort(errors, n, sizeof *errors, by_value);
    w->facts.region_error = n ? errors[n / 2] : -1;
    return OT_OK;
}

static ot_status gather(work *w)
{
    static const char *const names[SIDES] = {"original", "tiled"};
    const ot_facts *r = w->side[TILED].run.facts;
    ot_target t;
    OT_TRY(load_target(w, &t));
    ot_target_free(&t); /* bytes are counted whoever runs the model */
    for (int k = 0; k < SIDES; k++) {
        side *s = &w->side[k];
        ot_bench_side *f = &w->facts.side[k];
        f->name = names[k];
        f->time = ot_spread_of(s->x.seconds, s->x.n_runs);
        ot_session_figures_get(s->x.s, &f->figures);
        OT_TRY(ot_count_bytes(s->run.model, &t, w->a, &f->bytes));
        f->references = w->facts.counted ? s->cache.references / w->facts.runs : OT_ABSENT;
        f->misses = w->facts.counted ? s->cache.misses / w->facts.runs : OT_ABSENT;
        if (r) f->predicted = k == ORIGINAL ? r->totals.untiled.time_s : r->totals.tiled.time_s;
    }
    w->facts.model = w->r->model;
    w->facts.tiled = w->r->tiled;
    w->facts.target = ot_strdup(w->a, t.name);
    w->facts.elsewhere = !ot_target_is_here(&t);
    w->facts.threads = threads_of(w);
    w->facts.resident = ot_resident_peak();
    w->facts.times = ot_session_times(w->side[ORIGINAL].x.s, &w->facts.n_times);
    OT_TRY(region_error(w));
    return compare_outputs(w);
}

/* ---- what devices do, and traces ---- */

/* Of one more run of each, which no figure counts. */
static ot_status record_devices(work *w)
{
    ot_bench_device *devices = OT_NEW_N(w->a, ot_bench_device, SIDES);
    if (!devices) return ot_fail_nomem(w->d);
    OT_TRY(ot_model_device_record(w->on, SIDES, w->d));
    for (int k = 0; k < SIDES; k++) {
        OT_TRY(run_side(w, k, false));
        OT_TRY(ot_model_device_facts(&w->on[k], w->side[k].x.s, w->facts.side[k].name, w->a, w->d,
                                     &devices[k]));
    }
    w->facts.devices = devices;
    w->facts.n_devices = SIDES;
    return OT_OK;
}

static ot_status write_device_trace(work *w)
{
    const char *names[SIDES];
    for (int k = 0; k < SIDES; k++) names[k] = w->facts.side[k].name;
    return ot_model_device_trace(w->on, names, SIDES, w->r->trace, w->d);
}

static ot_status write_trace(work *w)
{
    if (w->on[0].dev) return write_device_trace(w);
    ot_trace *t = ot_trace_new(threads_of(w), OT_TRACE_EVENTS);
    ot_status s = t ? OT_OK : ot_fail_nomem(w->d);
    for (int k = 0; k < SIDES && s == OT_OK; k++) {
        ot_trace_begin(t, w->facts.side[k].name);
        ot_session_trace(w->side[k].x.s, t);
        s = run_side(w, k, false);
        ot_session_trace(w->side[k].x.s, NULL);
    }
    if (s == OT_OK) s = ot_trace_save(t, w->r->trace, w->d);
    ot_trace_free(t);
    return s;
}

/* ---- reports ---- */

/* On the facts of the plan; of a tiled model from a file there are none but what was measured. */
static ot_status write_reports(work *w)
{
    ot_run *t = &w->side[TILED].run;
    if (w->r->n_reports == 0) return OT_OK;
    if (!t->facts) {
        OT_TRY(ot_facts_new(OT_FACTS_BENCH, w->d, &t->facts));
        t->facts->model = w->facts.model;
        t->facts->output = w->facts.tiled;
        t->facts->target = w->facts.target;
    }
    t->facts->kind = OT_FACTS_BENCH;
    OT_TRY(ot_facts_add_bench(t->facts, &w->facts, w->d));
    for (size_t k = 0; k < w->r->n_reports; k++)
        OT_TRY(ot_report_write(t->facts, w->r->reports[k], w->d));
    return OT_OK;
}

/* ---- the command ---- */

static ot_status say(const work *w)
{
    ot_bench_side_device at[SIDES];
    for (int k = 0; k < SIDES; k++) at[k] = (ot_bench_side_device){&w->on[k], w->side[k].x.s};
    if (w->r->json)
        ot_bench_json(&w->facts, at, stdout);
    else if (!w->r->quiet) {
        ot_wrap wrap;
        FILE *to = ot_wrap_open(&wrap, stdout);
        ot_feed_say_guess(&w->side[ORIGINAL].feed, to);
        ot_bench_print(&w->facts, at, to);
        return ot_wrap_close(&wrap);
    }
    return ferror(stdout) ? OT_E_SYSTEM : OT_OK;
}

static ot_status check_same(const work *w)
{
    for (uint32_t k = 0; k < w->facts.n_outputs; k++) {
        const ot_difference *x = &w->facts.outputs[k].difference;
        if (x->same) continue;
        return ot_fail(w->d, OT_E_SYSTEM,
                       "output '%.200s' of the tiled model is not the original's: %s (NMSE %.2e, "
                       "largest difference %.3e)",
                       w->facts.outputs[k].name, x->why, x->nmse, x->max_abs);
    }
    return OT_OK;
}

static ot_status bench(work *w)
{
    if (strcmp(w->r->model, "-") == 0 || (w->r->tiled && strcmp(w->r->tiled, "-") == 0))
        return ot_fail(w->d, OT_E_USAGE,
                       "bench reads its models from files, not from standard input");
    OT_TRY(load_original(w));
    OT_TRY(load_tiled(w));
    OT_TRY(open_sides(w));
    for (int k = 0; k < SIDES; k++) OT_TRY(list_top(w, &w->side[k]));
    OT_TRY(warm_up(w));
    OT_TRY(list_regions(w));
    OT_TRY(run_rounds(w));
    ot_progress_end(w->r->tile.progress);
    OT_TRY(gather(w));
    if (w->facts.elsewhere && !w->r->quiet)
        fprintf(stderr,
                "onnx-tile: note: target '%s' is not this machine: predictions and levels of "
                "memory are the target's, "
                "times were measured here\n",
                w->facts.target);
    if (w->on[0].dev && (w->r->trace || w->r->n_reports)) OT_TRY(record_devices(w));
    if (w->r->trace) OT_TRY(write_trace(w));
    OT_TRY(write_reports(w));
    OT_TRY(say(w));
    return check_same(w);
}

ot_status ot_bench_command(const ot_bench_request *r, ot_diag *d)
{
    work w = {.r = r, .d = d, .a = ot_arena_new()};
    for (int k = 0; k < SIDES; k++) w.side[k].cache.references_fd = w.side[k].cache.misses_fd = -1;
    ot_status s = w.a ? bench(&w) : ot_fail_nomem(d);
    ot_progress_end(r->tile.progress);
    for (int k = 0; k < SIDES; k++) {
        ot_measured_close(&w.side[k].x);
        const ot_status closed = ot_model_device_close(&w.on[k], d);
        if (s == OT_OK) s = closed;
        ot_feed_release(&w.side[k].feed);
        ot_cache_close(&w.side[k].cache);
        ot_run_free(&w.side[k].run);
    }
    ot_arena_free(w.a);
    return s;
}
