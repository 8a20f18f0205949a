/* Figures of a planned model as a whole: headline cards, the roofline, tables of the target, of
 * the environment and of memory. */
#include "facts_build.h"
#include "facts_number.h"

#include <math.h>

#define MAX_ENTRIES 40

/* ---- cards ---- */

static double ratio_of(double before, double after)
{
    return before > 0 && after >= 0 ? after / before : OT_ABSENT;
}

/* Of its arithmetic, as far as it is known. */
static double seconds_of(const ot_fact_node *n) { return n->compute > 0 ? n->compute : 0; }

/* The longer of all compute and of the traffic that cannot be avoided. */
static double least_time(const ot_facts *f, const fact_source *x)
{
    double compute = 0, memory = x->p->compulsory_bytes / x->t->bw_slow;
    for (uint32_t k = 0; k < f->n_nodes; k++) compute += seconds_of(&f->nodes[k]);
    return compute > memory ? compute : memory;
}

/* The limit is told where it is one: a prediction below it leaves it out, since what stays in a
 * cache is not moved, and the cost model takes some inputs for read that are made beforehand. */
static char *card_note(const ot_facts *f, const ot_fact_card *c, const char *limit)
{
    const char *known = c->before < 0 ? "Not known: "
                        : c->at_least ? "At least that: "
                                      : "",
               *which = *known ? f->unknown_sizes : "", *stop = *known ? ". " : "";
    return c->bound >= 0 ? ot_format(f->arena, "%s%s%s%s; the limit is %s.", known, which, stop,
                                     c->note, limit)
                         : ot_format(f->arena, "%s%s%s%s.", known, which, stop, c->note);
}

/* Leaves out what the runtime has no prediction of, and the loaded model where tiling does not
 * change it. */
static bool is_card_told(const ot_facts *f, const fact_source *x, const ot_fact_card *c)
{
    if (strcmp(c->id, "process") == 0)
        return ot_runtime_grows(x->t->runtime) && (c->before > 0 || *f->unknown_sizes);
    if (strcmp(c->id, "process-growth") == 0)
        return c->before > 0 || (*f->unknown_sizes && ot_runtime_simulates(x->t->runtime));
    if (strcmp(c->id, "model-loaded") == 0)
        return fabs(c->after - c->before) > OT_FACT_LOADED_SHOWN;
    return true;
}

static ot_status add_cards(ot_facts *f, const fact_source *x)
{
    const ot_figures *a = &x->p->untiled, *b = &x->p->tiled;
    const ot_runtime *r = x->t->runtime;
    const char *note = r->growth_note,
               *title = note ? ot_fact_capital(f->arena, r->growth_title) : "Peak resident growth";
    if (!title) return ot_fail_nomem(x->g->model->diag);
    const ot_fact_card cards[] = {
        {"process", "Whole process", "bytes", (double)a->process_bytes, (double)b->process_bytes,
         OT_ABSENT, 0,
         "The most that the process holds to the last run, the runtime's library included, the "
         "inputs "
         "not; predicted",
         false},
        {"process-growth", title, "bytes", (double)a->growth_bytes, (double)b->growth_bytes,
         OT_ABSENT, 0,
         note ? note
              : "What running the model adds to the process: live tensors, and what the runtime's "
                "allocator keeps beside them; "
                "predicted",
         false},
        {"peak-memory", "Peak memory", "bytes", (double)a->peak_bytes, (double)b->peak_bytes,
         OT_ABSENT, 0,
         "Most bytes of activations that live at one time, predicted, with results in the place of "
         "operands where they may be. The "
         "memory maps give every buffer an address of its own, and leave out what operators take "
         "to work in: they differ",
         false},
        {"model-loaded", "Model loaded", "bytes", (double)a->loaded_bytes, (double)b->loaded_bytes,
         OT_ABSENT, 0,
         "What loading the model takes before anything runs: weights, and what the runtime makes "
         "of them; predicted",
         false},
        {"bytes-moved", "Bytes moved", "bytes", a->traffic_bytes, b->traffic_bytes,
         f->totals.compulsory_bytes, 0, "Traffic of the slow memory, predicted", false},
        {"time", "Time", "seconds", a->time_s, b->time_s, least_time(f, x), 0,
         "Predicted for the target", false},
        {"macs", "Multiply-accumulates", "macs", a->macs, b->macs, a->macs, 0,
         "Halos of neighbouring tiles are computed again", false},
        {"largest-tensor", "Largest tensor", "bytes", (double)a->largest_bytes,
         (double)b->largest_bytes, OT_ABSENT, 0,
         "Of those that nodes make, in the graph and in the bodies of loops", false},
    };
    static const char *const limits[] = {
        "",
        "",
        "",
        "",
        "inputs, outputs and weights once each",
        "all compute, or the least traffic, whichever takes longer",
        "the model's own",
        ""};
    const uint32_t n = sizeof cards / sizeof *cards;
    f->cards = OT_NEW_N(f->arena, ot_fact_card, n);
    if (!f->cards) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < n; k++) {
        if (!is_card_told(f, x, &cards[k])) continue;
        ot_fact_card *c = &f->cards[f->n_cards++];
        *c = cards[k];
        c->before = ot_fact_known(f, c->before);
        c->after = ot_fact_known(f, c->after);
        c->at_least = *f->unknown_sizes != '\0' && c->before >= 0;
        c->ratio = ratio_of(c->before, c->after);
        if (c->at_least || c->bound > c->before || c->bound > c->after) c->bound = OT_ABSENT;
        c->note = card_note(f, c, limits[k]);
        if (!c->note) return ot_fail_nomem(x->g->model->diag);
    }
    return OT_OK;
}

/* ---- roofline ---- */

static ot_status add_roofs(ot_facts *f, const fact_source *x)
{
    const ot_target *t = x->t;
    const ot_fact_roof roofs[] = {
        {"slow", "slow memory", t->bw_slow, OT_ABSENT},
        {"mid", "mid level", t->mid_bytes > 0 ? t->bw_mid : OT_ABSENT, OT_ABSENT},
        {"fast", "fast memory", t->bw_fast, OT_ABSENT},
        {"conv", "convolution", OT_ABSENT, t->rate_conv},
        {"conv-pointwise", "pointwise convolution", OT_ABSENT, t->rate_conv_pointwise},
        {"conv-depthwise", "depthwise convolution", OT_ABSENT, t->rate_conv_depthwise},
        {"gemm", "matrix product", OT_ABSENT, t->rate_gemm},
        {"elementwise", "element-wise", OT_ABSENT, t->rate_elem},
    };
    f->roofs = OT_NEW_N(f->arena, ot_fact_roof, sizeof roofs / sizeof *roofs);
    if (!f->roofs) return ot_fail_nomem(x->g->model->diag);
    for (size_t k = 0; k < sizeof roofs / sizeof *roofs; k++)
        if (roofs[k].bandwidth > 0 || roofs[k].rate > 0) f->roofs[f->n_roofs++] = roofs[k];
    return OT_OK;
}

/* flat: operations a second that the compute alone would reach. */
static ot_status add_point(ot_facts *f, const fact_source *x, size_t *cap, ot_fact_point p,
                           double flat)
{
    if (p.operations <= 0 || p.bytes <= 0 || p.seconds <= 0) return OT_OK;
    p.intensity = p.operations / p.bytes;
    p.rate = p.operations / p.seconds;
    double slanted = p.intensity * x->t->bw_slow,
           roof = flat > 0 && flat < slanted ? flat : slanted;
    p.attained = p.rate / roof;
    if (!p.label || !OT_PUSH(f->arena, f->points, f->n_points, *cap, p))
        return ot_fail_nomem(x->g->model->diag);
    return OT_OK;
}

/* Two points for a list of nodes: whole, and as tiled. */
static ot_status add_points(ot_facts *f, const fact_source *x)
{
    size_t cap = 0;
    double all = 0, all_compute = 0;
    double *ops = OT_NEW_N(f->arena, double, f->n_nodes + 1u);
    if (!ops) return ot_fail_nomem(x->g->model->diag);
    for (uint32_t k = 0; k < f->n_nodes; k++) {
        ops[k] = ot_facts_operations(x->g, &x->p->detail->nodes[k]);
        all += ops[k];
        all_compute += seconds_of(&f->nodes[k]);
    }
    double flat = all_compute > 0 ? all / all_compute : 0,
           growth = x->p->untiled.macs > 0 ? x->p->tiled.macs / x->p->untiled.macs : 1;
    const ot_figures *a = &x->p->untiled, *b = &x->p->tiled;
    OT_TRY(add_point(f, x, &cap,
                     (ot_fact_point){"model, untiled", OT_NONE, false, all, a->traffic_bytes,
                                     a->time_s, 0, 0, 0},
                     flat));
    if (f->n_regions > 0)
        OT_TRY(add_point(f, x, &cap,
                         (ot_fact_point){"model, tiled", OT_NONE, true, all * growth,
                                         b->traffic_bytes, b->time_s, 0, 0, 0},
                         flat));
    for (uint32_t k = 0; k < f->n_regions; k++) {
        const ot_fact_region *r = &f->regions[k];
        double o = 0, compute = 0;
        for (uint32_t j = 0; j < r->n_nodes; j++)
            o += ops[r->nodes[j]], compute += seconds_of(&f->nodes[r->nodes[j]]);
        flat = compute > 0 ? o / compute : 0;
        ot_fact_point untiled = {ot_format(f->arena, "region %u, untiled", r->id),
                                 k,
                                 false,
                                 o,
                                 r->traffic_untiled,
                                 r->time_untiled,
                                 0,
                                 0,
                                 0};
        ot_fact_point tiled = {ot_format(f->arena, "region %u, tiled", r->id),
                               k,
                               true,
                               o * r->mac_ratio,
                               r->traffic,
                               r->time_tiled,
                               0,
                               0,
                               0};
        OT_TRY(add_point(f, x, &cap, untiled, flat));
        OT_TRY(add_point(f, x, &cap, tiled, flat));
    }
    return OT_OK;
}

/* ---- tables ---- */

static void number(ot_fact_entry *list, uint32_t *n, const char *id, const char *title,
                   double value, const char *unit)
{
    list[(*n)++] = (ot_fact_entry){id, title, "", value, unit};
}

static void text(ot_fact_entry *list, uint32_t *n, const char *id, const char *title,
                 const char *value)
{
    if (value && *value) list[(*n)++] = (ot_fact_entry){id, title, value, OT_ABSENT, ""};
}

static void target_table(ot_fact_entry *e, uint32_t *n, const ot_target *t)
{
    text(e, n, "name", "Name", t->name);
    text(e, n, "description", "Description", t->description);
    text(e, n, "cpu", "Measured on", t->cpu);
    number(e, n, "cores", "Cores", t->cores, "count");
    text(e, n, "fast-kind", "Fast memory",
         ot_target_hard_limit(t) ? "a scratchpad: its capacity is hard"
                                 : "a cache: its capacity is soft");
    number(e, n, "fast-bytes", "Capacity of the fast memory", (double)t->fast_bytes, "bytes");
    number(e, n, "fast-bandwidth", "Bandwidth of the fast memory", t->bw_fast, "bytes/s");
    if (t->mid_bytes > 0) {
        number(e, n, "mid-bytes", "Capacity of the mid level", (double)t->mid_bytes, "bytes");
        number(e, n, "mid-bandwidth", "Bandwidth of the mid level", t->bw_mid, "bytes/s");
    }
    if (t->memory_bytes > 0)
        number(e, n, "slow-bytes", "Slow memory", (double)t->memory_bytes, "bytes");
    number(e, n, "slow-bandwidth", "Bandwidth of the slow memory", t->bw_slow, "bytes/s");
    if (t->transfers.upload > 0) {
        number(e, n, "upload-bandwidth", "Bandwidth from the host", t->transfers.upload, "bytes/s");
        number(e, n, "download-bandwidth", "Bandwidth to the host", t->transfers.download,
               "bytes/s");
    }
    number(e, n, "rate-conv", "Convolution", t->rate_conv, "ops/s");
    if (ot_runtime_in_classes(t->runtime) && t->rate_conv_winograd > 0)
        number(e, n, "rate-conv-winograd", "Products of Winograd's algorithm",
               t->rate_conv_winograd, "ops/s");
    number(e, n, "rate-conv-pointwise", "Pointwise convolution", t->rate_conv_pointwise, "ops/s");
    number(e, n, "rate-conv-depthwise", "Depthwise convolution", t->rate_conv_depthwise, "ops/s");
    number(e, n, "rate-gemm", "Matrix product", t->rate_gemm, "ops/s");
    number(e, n, "rate-elementwise", "Element-wise", t->rate_elem, "ops/s");
    number(e, n, "rate-transcendental", "Transcendental", t->rate_trans, "ops/s");
    number(e, n, "rate-reduction", "Reduction", t->rate_reduce, "ops/s");
    number(e, n, "rate-pooling", "Pooling", t->rate_pool, "ops/s");
    number(e, n, "overhead-node", "Overhead of a node", t->node_overhead, "seconds");
    number(e, n, "overhead-loop", "Overhead of a loop step", t->loop_overhead, "seconds");
    number(e, n, "overhead-region", "Overhead of a region", t->region_overhead, "seconds");
    text(e, n, "runtime", "Tiles run in", t->runtime->title);
}

static void environment_table(ot_fact_entry *e, uint32_t *n, const ot_facts *f,
                              const fact_source *x)
{
    const ot_plan_options *o = x->o;
    text(e, n, "version", "onnx-tile", f->version);
    number(e, n, "opset", "Opset of the model", x->g->model->opset, "count");
    text(e, n, "goal", "Goal", f->goal);
    if (o->goal == OT_GOAL_MEMORY)
        number(e, n, "max-slowdown", "Slowdown allowed", o->max_slowdown, "percent");
    if (o->memory_budget > 0)
        number(e, n, "memory-budget", "Memory budget", (double)o->memory_budget, "bytes");
    text(e, n, "emit", "Operators written",
         ot_runtime_in_classes(x->t->runtime) ? "the engine's own (domain onnx_tile)"
                                              : "standard ONNX");
    text(e, n, "force", "Forced", o->force ? "every legal region is tiled, whatever it costs" : "");
}

static void known_bytes(ot_fact_entry *e, uint32_t *n, const ot_facts *f, const char *id,
                        const char *title, int64_t bytes)
{
    if (ot_fact_known(f, (double)bytes) < 0)
        text(e, n, id, title, "not known");
    else
        number(e, n, id, title, (double)bytes, "bytes");
}

static void memory_table(ot_fact_entry *e, uint32_t *n, const ot_facts *f)
{
    const ot_arena_figures *a = &f->totals.activations;
    number(e, n, "buffers", "Activations of the untiled model", a->n_buffers, "count");
    known_bytes(e, n, f, "naive", "All of them side by side", a->naive);
    known_bytes(e, n, f, "greedy", "Packed, largest first", a->greedy);
    known_bytes(e, n, f, "planned", "Packed by search", a->planned);
    known_bytes(e, n, f, "in-place", "Packed by search, in place where possible", a->in_place);
    known_bytes(e, n, f, "lower-bound", "Most of them at one time", a->lower_bound);
    text(e, n, "proved", "Packing by search",
         a->proved ? "the least of all such layouts"
                   : "not proved to be the least of such layouts");
    number(e, n, "unsized", "Values of unknown size, not counted", f->totals.n_unsized, "count");
}

/* A copy of e[0..n) with its texts. */
static ot_fact_entry *keep(ot_arena *a, const ot_fact_entry *e, uint32_t n)
{
    ot_fact_entry *to = OT_NEW_N(a, ot_fact_entry, n + 1u);
    for (uint32_t k = 0; to && k < n; k++) {
        to[k] = e[k];
        to[k].text = ot_strdup(a, e[k].text);
        if (!to[k].text) return NULL;
    }
    return to;
}

static ot_status add_tables(ot_facts *f, const fact_source *x)
{
    ot_fact_entry e[MAX_ENTRIES];
    uint32_t n = 0;
    target_table(e, &n, x->t);
    f->target_entries = keep(f->arena, e, f->n_target_entries = n);
    n = 0;
    environment_table(e, &n, f, x);
    f->environment = keep(f->arena, e, f->n_environment = n);
    n = 0;
    memory_table(e, &n, f);
    f->memory_entries = keep(f->arena, e, f->n_memory_entries = n);
    return f->target_entries && f->environment && f->memory_entries
               ? OT_OK
               : ot_fail_nomem(x->g->model->diag);
}

ot_status ot_facts_figures(ot_facts *f, const fact_source *x)
{
    OT_TRY(add_cards(f, x));
    OT_TRY(add_roofs(f, x));
    OT_TRY(add_points(f, x));
    return add_tables(f, x);
}
