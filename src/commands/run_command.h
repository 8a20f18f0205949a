/* The command run: a model, arrays in, arrays out, and how long it took.
 *
 *   model --import--> session --> repeat times --> D/0.npy, D/1.npy, ...
 *   F.npy, F.pb, or random numbers --^       `--> ot_run_report --> table, JSON
 */
#ifndef OT_COMMANDS_RUN_COMMAND_H
#define OT_COMMANDS_RUN_COMMAND_H

#include "model_device.h"
#include "run_outputs.h"
#include "tiling/plan.h"

/* How an input comes (ot_convert_input). */
typedef struct ot_input_form {
    const char *name; /* NULL: the only one */
    ot_dtype type;    /* OT_DT_UNKNOWN: the model's own */
    double scale;     /* 0: none */
} ot_input_form;

typedef struct ot_run_request {
    const char *model;          /* file, "-" for stdin; .ot is the text form */
    const ot_run_input *inputs; /* [n_inputs] those that are given; the others are random */
    size_t n_inputs;
    const ot_input_form *forms; /* [n_forms] of inputs that come otherwise than the model says */
    size_t n_forms;
    /* [n_shapes] for inputs that are not given; dynamic dimensions are 1 else */
    const ot_shape_binding *shapes;
    size_t n_shapes;
    uint64_t seed;
    const ot_run_output *outputs; /* [n_outputs] those that are written, each to its file; */
    size_t n_outputs;
    const char *output_dir;   /* or all to a folder; NULL: not so */
    ot_device_request device; /* none: the engine itself */
    const char *trace;        /* file for a Chrome trace of one more run; NULL: none */
    uint32_t repeat;          /* 0: once */
    uint32_t threads;         /* 0: one */
    ot_progress *progress;    /* of repeated runs; NULL: none */
    bool reference;           /* reference kernels only */
    /* a file that was tiled for another runtime runs by its tiles; by its original, not planned */
    bool as_is, no_plan;
    bool has_goal; /* any model is planned for */
    ot_goal goal;
    bool json, quiet, verbose; /* what is printed on stdout; verbose: each node's time, too */
} ot_run_request;

#ifdef OT_ENGINE
/* Run the model and say so on stdout. Results appear whole or not at all, all or none. Fails:
 * OT_E_INPUT (the model, an input's file, an operator that the engine does not have), OT_E_USAGE
 * (an input that the model does not have), OT_E_SYSTEM, OT_E_NOMEM. */
ot_status ot_run_command(const ot_run_request *r, ot_diag *d) OT_MUST_USE;
#else
static inline ot_status ot_run_command(const ot_run_request *r, ot_diag *d)
{
    (void)r;
    return ot_fail(d, OT_E_USAGE, "this build lacks the native engine");
}
#endif

#endif
