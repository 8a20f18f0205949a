/* The command bench: a model and its tiled form, run in turn by the native engine.
 *
 *   MODEL ---------> original --.   warm up, then one run each in turn    .--> table, JSON
 *     `--tile, or TILED --> tiled --'                                     `--> trace
 */
#ifndef OT_COMMANDS_BENCH_COMMAND_H
#define OT_COMMANDS_BENCH_COMMAND_H

#include "app/pipeline.h"
#include "run_command.h"

typedef struct ot_bench_request {
    const char *model; /* file; .ot is the text form */
    const char *tiled; /* its tiled form; NULL: tile it here */
    /* how: target, l2_bytes, plan, log; threads and shapes are those below */
    ot_run_options tile;
    const ot_run_input *inputs; /* as of ot_run_request, with shapes and seed */
    size_t n_inputs;
    const ot_shape_binding *shapes;
    size_t n_shapes;
    uint64_t seed;
    uint32_t repeat;            /* runs of each model; 0: for some seconds */
    uint32_t threads;           /* 0: one */
    ot_device_request device;   /* as of ot_run_request, for each of the two */
    const char *trace;          /* file for a Chrome trace of one run of each; NULL: none */
    const char *const *reports; /* [n_reports] files; with tile.plan.detail */
    size_t n_reports;
    bool as_is, no_plan; /* as of ot_run_request */
    bool json, quiet;
} ot_bench_request;

#ifdef OT_ENGINE
/* Measure and say so on stdout. Fails like ot_run_command; OT_E_SYSTEM also when the outputs
 * differ (after the table). */
ot_status ot_bench_command(const ot_bench_request *r, ot_diag *d) OT_MUST_USE;
#else
static inline ot_status ot_bench_command(const ot_bench_request *r, ot_diag *d)
{
    (void)r;
    return ot_fail(d, OT_E_USAGE, "this build lacks the native engine");
}
#endif

#endif
