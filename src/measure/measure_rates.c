/* Rates by class of operator: small models through the engine's own sessions.
 *
 *   class          models (operands of half the fast memory, so that memory is not what is
 *                  measured)
 *   conv           chains of 3x3 convolutions, 16 to 96 channels (weights of more are larger than
 *                  the fast memory), dilated:
 *                  these are direct ones
 *   winograd       the same without: what Winograd's algorithm computes
 *   depthwise, pointwise, gemm, element-wise, transcendental, reduction, pooling likewise
 *
 * Each thread runs a session of one thread on a model of its own, as the tiles of a region run:
 * the rate of all is the sum. From the least time of a node the cost model (cost/node_cost.c) is
 * solved for the rate: what it will predict for such a node is then what was measured. A class
 * has the geometric mean of its models.
 *
 * On a device one session runs each model, and the time is that of its kernels by the device's
 * clock: launches and transfers are apart.
 */
#include "calibrate.h"

#include "device/profile.h"
#include "engine/gpu/device_session.h"
#include "cost/cost.h"
#include "measure.h"
#include "measure_team.h"

#include <math.h>

#define PROBE_SECONDS 0.22
#define ROUNDS        2 /* over all models: what disturbs one round may spare the other */
#define CHAIN         4 /* nodes of a chain */

typedef enum shape { CONV, WINOGRAD, DEPTHWISE, POINTWISE, MATMUL, UNARY, BINARY, NORM } shape;

/* A model: CHAIN nodes for CONV to MATMUL, else one. */
typedef struct probe {
    size_t rate; /* place of the class's rate in ot_target */
    shape shape;
    /* operator and attributes of UNARY, BINARY, NORM: "Softmax {axis=3}" is written as two texts */
    const char *op;
    const char *attrs;
    int64_t size; /* channels; of MATMUL rows and columns of the weights */
} probe;

#define RATE(member) offsetof(ot_target, member)
static const probe PROBES[] = {
    {RATE(rate_conv), CONV, "Conv", "", 16},
    {RATE(rate_conv), CONV, "Conv", "", 32},
    {RATE(rate_conv), CONV, "Conv", "", 64},
    {RATE(rate_conv), CONV, "Conv", "", 96},
    {RATE(rate_conv_winograd), WINOGRAD, "Conv", "winograd", 16},
    {RATE(rate_conv_winograd), WINOGRAD, "Conv", "winograd", 32},
    {RATE(rate_conv_winograd), WINOGRAD, "Conv", "winograd", 64},
    {RATE(rate_conv_winograd), WINOGRAD, "Conv", "winograd", 96},
    {RATE(rate_conv_depthwise), DEPTHWISE, "Conv", "", 32},
    {RATE(rate_conv_depthwise), DEPTHWISE, "Conv", "", 96},
    {RATE(rate_conv_pointwise), POINTWISE, "Conv", "", 32},
    {RATE(rate_conv_pointwise), POINTWISE, "Conv", "", 64},
    {RATE(rate_conv_pointwise), POINTWISE, "Conv", "", 128},
    {RATE(rate_gemm), MATMUL, "MatMul", "", 128},
    {RATE(rate_gemm), MATMUL, "MatMul", "", 256},
    {RATE(rate_elem), BINARY, "Add", "", 32},
    {RATE(rate_elem), UNARY, "Relu", "", 32},
    {RATE(rate_elem), BINARY, "Mul", "", 32},
    {RATE(rate_trans), UNARY, "Sigmoid", "", 32},
    {RATE(rate_trans), UNARY, "Tanh", "", 32},
    {RATE(rate_trans), UNARY, "Exp", "", 32},
    {RATE(rate_trans), UNARY, "Erf", "", 32},
    {RATE(rate_trans), UNARY, "Softmax", "{axis=-1}", 32},
    {RATE(rate_reduce), UNARY, "ReduceMean", "{axes=[2, 3]}", 32},
    {RATE(rate_reduce), UNARY, "ReduceMax", "{axes=[3]}", 32},
    {RATE(rate_reduce), NORM, "InstanceNormalization", "", 32},
    {RATE(rate_pool), UNARY, "MaxPool", "{kernel_shape=[2, 2], strides=[2, 2]}", 32},
    {RATE(rate_pool), UNARY, "AveragePool", "{kernel_shape=[3, 3], pads=[1, 1, 1, 1]}", 32},
};
#define N_PROBES (sizeof PROBES / sizeof *PROBES)
#undef RATE

/* ---- models ---- */

/* Side of a square image whose input and output take half of the fast memory. */
static int64_t image_side(int64_t channels, int64_t fast_bytes)
{
    int64_t side = (int64_t)sqrt((double)fast_bytes / (double)(16 * channels));
    return ot_min(1024, ot_max(8, side / 8 * 8));
}

static void write_convolutions(FILE *f, const probe *p, int64_t side)
{
    int64_t c = p->size, kernel = p->shape == POINTWISE ? 1 : 3,
            group = p->shape == DEPTHWISE ? c : 1;
    long long dilation = p->shape == CONV ? 2 : 1, pad = kernel / 2 * dilation;
    fprintf(f, "input %%v0 : float32[1,%lld,%lld,%lld]\n", (long long)c, (long long)side,
            (long long)side);
    for (int k = 0; k < CHAIN; k++) {
        fprintf(f, "init %%w%d : float32[%lld,%lld,%lld,%lld] = random %d * 0.05\n", k,
                (long long)c, (long long)(c / group), (long long)kernel, (long long)kernel, k + 1);
        fprintf(f,
                "%%v%d = Conv(%%v%d, %%w%d) {pads=[%lld, %lld, %lld, %lld], dilations=[%lld, "
                "%lld], group=%lld}\n",
                k + 1, k, k, pad, pad, pad, pad, dilation, dilation, (long long)group);
    }
    fprintf(f, "output %%v%d\n", CHAIN);
}

static void write_products(FILE *f, const probe *p, int64_t fast_bytes)
{
    int64_t n = p->size, rows = ot_max(16, fast_bytes / (16 * n) / 16 * 16);
    fprintf(f, "input %%v0 : float32[%lld,%lld]\n", (long long)rows, (long long)n);
    for (int k = 0; k < CHAIN; k++)
        fprintf(
            f, "init %%w%d : float32[%lld,%lld] = random %d * 0.05\n%%v%d = MatMul(%%v%d, %%w%d)\n",
            k, (long long)n, (long long)n, k + 1, k + 1, k, k);
    fprintf(f, "output %%v%d\n", CHAIN);
}

static void write_single(FILE *f, const probe *p, int64_t side)
{
    long long c = p->size, s = side;
    fprintf(f, "input %%x : float32[1,%lld,%lld,%lld]\n", c, s, s);
    if (p->shape == BINARY) fprintf(f, "input %%z : float32[1,%lld,%lld,%lld]\n", c, s, s);
    if (p->shape == NORM)
        fprintf(f, "init %%a : float32[%lld] = fill 1.0\ninit %%b : float32[%lld] = fill 0.5\n", c,
                c);
    fprintf(f, "%%y = %s(%%x%s) %s\noutput %%y\n", p->op,
            p->shape == BINARY ? ", %z"
            : p->shape == NORM ? ", %a, %b"
                               : "",
            p->attrs);
}

static void write_probe(FILE *f, const probe *p, int64_t fast_bytes)
{
    switch (p->shape) {
    case CONV:
    case WINOGRAD:
    case DEPTHWISE:
    case POINTWISE: write_convolutions(f, p, image_side(p->size, fast_bytes)); break;
    case MATMUL: write_products(f, p, fast_bytes); break;
    case UNARY:
    case NORM: write_single(f, p, image_side(p->size, fast_bytes)); break;
    case BINARY: write_single(f, p, image_side(p->size * 3 / 2, fast_bytes)); break;
    }
}

/* ---- runs ---- */

/* One thread's model. */
typedef struct runner {
    const char *text; /* of the graph's inside */
    uint32_t threads; /* of the session */
    ot_device *dev;   /* where it runs; NULL: here */
    bool kernels;     /* the time is that of the device's kernels */
    double seconds;   /* to go on for */
    double best;      /* least seconds of a run */
    /* of a run: what the cost model divides by the rate, and by the bandwidth */
    double units, bytes;
    uint32_t n_nodes; /* that the engine runs */
    ot_diag d;
    ot_status status;
} runner;

ot_status ot_parse_inside(const char *graph, ot_diag *d, ot_model **out)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (f) fprintf(f, "model ir 8 opset 17\ngraph main {\n%s}\n", graph);
    if (!f || fclose(f) != 0) {
        free(text);
        return ot_fail_nomem(d);
    }
    ot_status s = ot_text_parse(text, n, d, out);
    free(text);
    return s;
}

/* Work of all nodes at a rate of one, and bytes of their operands. Requires shapes. */
static void count_work(const ot_graph *g, runner *r)
{
    static const ot_target unit = {.runtime = &ot_runtime_engine,
                                   .rate_conv = 1,
                                   .rate_conv_depthwise = 1,
                                   .rate_conv_pointwise = 1,
                                   .rate_gemm = 1,
                                   .rate_elem = 1,
                                   .rate_trans = 1,
                                   .rate_reduce = 1,
                                   .rate_pool = 1};
    for (uint32_t k = 0; k < g->n_nodes; k++) {
        const ot_node *n = &g->nodes[k];
        int64_t in = 0, out = 0, v;
        for (uint32_t j = 0; j < n->n_in; j++) {
            const ot_value *x = &g->values[n->in[j]];
            if (ot_value_bytes(x, &v)) r->bytes += (double)v;
            if (!x->is_const && ot_value_elems(x, &v)) in += v;
        }
        if (ot_value_bytes(&g->values[n->out[0]], &v)) r->bytes += (double)v;
        if (ot_value_elems(&g->values[n->out[0]], &v)) out += v;
        double winograd = ot_cost_winograd_work(g, n);
        r->units += winograd > 0 ? winograd
                                 : ot_cost_compute(g, n, &unit, ot_node_macs(g, n), out, in);
    }
}

/* One run, which may be the fastest. */
static ot_status run_timed(runner *r, ot_measured *x)
{
    ot_device_error e;
    if (r->kernels && ot_device_profile_start(r->dev, &e) != OT_OK)
        return ot_device_tell(&e, &r->d);
    OT_TRY(ot_measured_run(x, true, &r->d));
    double took = r->kernels ? ot_device_profile_sum(r->dev).work[OT_DEV_WORK_KERNEL].seconds
                             : x->seconds[x->n_runs - 1];
    if (took <= 0)
        return ot_fail(&r->d, OT_E_SYSTEM, "the device does not say how long kernels take");
    if (r->best == 0 || took < r->best) r->best = took;
    return OT_OK;
}

static ot_status run_model(runner *r, ot_model *m, ot_arena *a, ot_gate *g, bool *passed)
{
    ot_feed feed = {0};
    ot_measured x = {0};
    ot_feed_request none = {0};
    const ot_device_laid laid = r->dev ? ot_device_suited(r->dev) : (ot_device_laid){0};
    const ot_backend place = ot_device_backend(&laid);
    ot_session_options o = {.threads = r->threads, .place = r->dev ? &place : NULL};
    ot_status s = ot_feed_new(m->graph, &none, a, &r->d, &feed);
    if (s == OT_OK) s = ot_measured_open(&x, m, &feed, &o, a, &r->d);
    if (s == OT_OK) s = ot_measured_run(&x, false, &r->d);
    if (s == OT_OK) count_work(m->graph, r);
    ot_gate_pass(g);
    *passed = true;
    double until = ot_now() + r->seconds;
    for (int k = 0; s == OT_OK && (k < 3 || ot_now() < until); k++) s = run_timed(r, &x);
    if (s == OT_OK) (void)ot_session_times(x.s, &r->n_nodes);
    ot_measured_close(&x);
    ot_feed_release(&feed);
    return s;
}

static void run_probe(void *of, ot_gate *g)
{
    runner *r = of;
    ot_model *m = NULL;
    ot_arena *a = ot_arena_new();
    bool passed = false;
    r->status = a ? ot_parse_inside(r->text, &r->d, &m) : ot_fail_nomem(&r->d);
    if (r->status == OT_OK) r->status = run_model(r, m, a, g, &passed);
    if (!passed) ot_gate_pass(g);
    ot_model_free(m);
    ot_arena_free(a);
}

/* `n` threads run the graph, each as `like` says. Fails like the first that fails. runners: [n] */
static ot_status run_team(runner like, uint32_t n, runner *runners, ot_diag *d)
{
    for (uint32_t k = 0; k < n; k++) runners[k] = like;
    if (!ot_team_run(n, run_probe, runners, sizeof *runners))
        return ot_fail(d, OT_E_SYSTEM, "cannot start %u threads", n);
    for (uint32_t k = 0; k < n; k++)
        if (runners[k].status != OT_OK)
            return ot_fail(d, runners[k].status, "%s", runners[k].d.message);
    return OT_OK;
}

/* ---- rates ---- */

/* The compute time c for which the cost model's overlap(c, memory) is `took`. */
static double compute_part(double took, double memory)
{
    const double part = 0.35; /* of the shorter that caches do not hide; ot_cost_overlap */
    double c = took - part * memory;
    if (c < memory) c = (took - memory) / part;
    /* as fast as memory, or faster than its measurement: the rate is not what limits */
    return fmax(c, took * 0.2);
}

static double rate_of(const ot_calibration *c, const runner *r)
{
    double overhead = r->kernels ? 0 : c->target.node_overhead * (r->n_nodes ? r->n_nodes : 1);
    double took = fmax(r->best - overhead, r->best * 0.2);
    return r->units / compute_part(took, r->bytes / (c->target.bw_fast / c->threads));
}

static ot_status measure_probe(ot_calibration *c, const probe *p, runner *runners, double *rate,
                               ot_diag *d)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return ot_fail_nomem(d);
    write_probe(f, p, c->target.fast_bytes);
    ot_status s = fclose(f) == 0 ? OT_OK : ot_fail_nomem(d);
    const runner like = {
        .text = text, .threads = 1, .dev = c->dev, .kernels = c->dev, .seconds = PROBE_SECONDS};
    if (s == OT_OK) s = run_team(like, c->threads, runners, d);
    free(text);
    *rate = 0;
    for (uint32_t k = 0; s == OT_OK && k < c->threads; k++) *rate += rate_of(c, &runners[k]);
    return s;
}

/* Devices' kernels have no Winograd. */
static bool is_measured(const ot_calibration *c, const probe *p)
{
    return !c->dev || p->shape != WINOGRAD;
}

static void set_rates(ot_calibration *c, const double *best)
{
    for (size_t k = 0; k < N_PROBES; k++) {
        double logs = 0;
        int n = 0;
        if (!is_measured(c, &PROBES[k])) continue;
        for (size_t j = 0; j < N_PROBES; j++) {
            if (PROBES[j].rate != PROBES[k].rate) continue;
            logs += log(best[j]);
            n++;
        }
        double mean = fmin(1e18, fmax(1, exp(logs / n)));
        memcpy((char *)&c->target + PROBES[k].rate, &mean, sizeof mean);
    }
}

static ot_status measure_classes(ot_calibration *c, runner *runners, ot_diag *d)
{
    double best[N_PROBES] = {0};
    for (int round = 0; round < ROUNDS; round++)
        for (size_t k = 0; k < N_PROBES; k++) {
            double rate = 0;
            if (!is_measured(c, &PROBES[k])) continue;
            ot_progress_at(c->progress, "rates",
                           ((double)round * N_PROBES + (double)k) / (ROUNDS * N_PROBES));
            OT_TRY(measure_probe(c, &PROBES[k], runners, &rate, d));
            best[k] = fmax(best[k], rate);
        }
    for (size_t k = 0; c->log && k < N_PROBES; k++)
        if (is_measured(c, &PROBES[k]))
            fprintf(c->log, "onnx-tile: %-22s %4lld  %.3g /s\n", PROBES[k].op,
                    (long long)PROBES[k].size, best[k]);
    set_rates(c, best);
    return OT_OK;
}

ot_status ot_measure_rates(ot_calibration *c, ot_diag *d)
{
    runner *runners = calloc(c->threads, sizeof *runners);
    if (!runners) return ot_fail_nomem(d);
    ot_status s = measure_classes(c, runners, d);
    free(runners);
    return s;
}

ot_status ot_measure_graph(const ot_calibration *c, const char *graph, uint32_t threads,
                           double *seconds, ot_diag *d)
{
    runner r;
    const runner like = {
        .text = graph, .threads = threads, .dev = c->dev, .seconds = PROBE_SECONDS};
    OT_TRY(run_team(like, 1, &r, d));
    *seconds = r.best;
    return OT_OK;
}

ot_status ot_measure_operators(const ot_calibration *c, const char *graph, double *seconds,
                               ot_diag *d)
{
    runner r;
    const runner like = {
        .text = graph, .threads = 1, .dev = c->dev, .kernels = true, .seconds = PROBE_SECONDS};
    OT_TRY(run_team(like, 1, &r, d));
    *seconds = r.best;
    return OT_OK;
}
