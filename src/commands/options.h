/* The command line: one declarative table (option_table.c) yields the parser, the help text, the
 * completion of shells and the defaults. */
#ifndef OT_COMMANDS_OPTIONS_H
#define OT_COMMANDS_OPTIONS_H

#include "tk/planmem/planmem.h"
#include "tiling/plan.h"
#include "select/bounds/size_bounds.h"
#include "report/compare/gate.h"
#include "run_command.h"
#include "passes/passes.h"
#include "step/step.h"
#include "api/verify_tiled.h"

typedef enum ot_command {
    OT_CMD_OPTIMISE = 0, /* no command word */
    OT_CMD_INSPECT,
    OT_CMD_PLAN_MEMORY,
    OT_CMD_RUN,
    OT_CMD_BENCH,
    OT_CMD_CALIBRATE,
    OT_CMD_COMPARE,
    OT_CMD_EXPLAIN,
    OT_CMD_RUN_KERNEL,
    OT_CMD_DEVICES,
    OT_CMD_GATE,
    OT_CMD_GEOMETRY,
    OT_CMD_PASSES
} ot_command;

typedef struct ot_options {
    ot_arena *arena; /* owns the shapes and inputs; freed by ot_options_free */
    ot_command command;
    const char *model; /* file to read, "-" for stdin; NULL until given */
    /* of bench: the tiled model, of compare: the later report; NULL: none */
    const char *second;
    /* -o; "-" for stdout; NULL for inspect, and for plan-memory when only the summary is wanted */
    const char *output;
    /* name or .xml file; NULL for plan-memory: the kernel's own, else host */
    const char *target;
    int64_t l2_bytes;         /* 0: the target's own */
    int64_t weight_bytes;     /* likewise */
    uint32_t threads;         /* 0: the target's own */
    ot_shape_binding *shapes; /* [n_shapes] */
    size_t n_shapes, cap_shapes;
    ot_shape_binding *design; /* [n_design] --design */
    size_t n_design, cap_design;
    ot_size_range *ranges; /* [n_ranges] --range */
    size_t n_ranges, cap_ranges;
    bool keep_dynamic; /* --keep-dynamic, --design, --range */
    ot_plan_options plan;
    const char *runtime;    /* --runtime; NULL: the target's own */
    bool emit_engine;       /* --emit engine or --runtime engine: see ot_run_options */
    bool in_operator;       /* --emit ort-engine */
    bool goal_given;        /* --goal */
    ot_passes_store store;  /* --store */
    ot_operators operators; /* --ort-operators, which is for that; NONE: not given */
    bool emit_given;        /* --emit was there */
    bool emit_step;         /* --emit step; */
    ot_step_request step;   /* --axis, which is for that; input NULL: not given */
    ot_mem_options memory;  /* of plan-memory; threads is above */
    bool analyse, apply;    /* likewise */
    bool footprint;         /* likewise */
    ot_run_input *inputs;   /* [n_inputs] of run and bench */
    size_t n_inputs, cap_inputs;
    ot_input_form *forms; /* [n_forms] of run */
    size_t n_forms, cap_forms;
    ot_tk_binding *sizes; /* [n_sizes] of kernels */
    size_t n_sizes, cap_sizes;
    uint64_t seed;          /* of random inputs */
    uint32_t repeat;        /* of run and bench; 0: their own choice */
    const char *trace;      /* of run and bench: file; NULL: none */
    ot_run_output *outputs; /* [n_outputs] of run */
    size_t n_outputs, cap_outputs;
    const char *output_dir; /* of run; NULL: none */
    bool reference;         /* of run: reference kernels only */
    bool as_is;             /* of run and bench: tiles of other runtimes stay */
    bool no_plan;           /* of run and bench: originals of tiled files run without tiles */
    bool stats, tune;       /* of run-kernel */
    /* of run-kernel, run and bench: "cpu", "opencl", "vulkan:1"; NULL: not given */
    const char *device;
    int64_t device_memory; /* of run and bench: bytes; 0: all that the device has */
    bool device_check;     /* of run and bench */
    const char *source;    /* of run-kernel: device program to write; NULL: none */
    uint32_t work_items;   /* of run-kernel; 0: the device's choice */
    const char **reports;  /* [n_reports] files to write */
    size_t n_reports, cap_reports;
    ot_gate_limits gate; /* of gate; its sizes are in the next ones */
    int64_t max_peak, max_growth, max_process;
    const char *baseline; /* of gate; NULL: none */
    bool table;           /* of inspect */
    bool markdown;        /* of compare */
    const char *svg;      /* of plan-memory: map to write; "-" for stdout; NULL: none */
    const char *function; /* of plan-memory: the function of a text in MLIR; NULL: all */
    const char *pairs;    /* of plan-memory: file of priced pairs; "-" for stdin; NULL: none */
    const char *dump_dir; /* NULL: none */
    ot_verify_mode verify;
    bool bioimage; /* of geometry */
    bool json, quiet, verbose;
    /* answer one of them and do nothing else */
    bool help, version, list_targets, list_runtimes;
    const char *completion;  /* the shell; NULL: none */
    const char *dump_target; /* name or file; NULL: none */
    const char *help_topic;  /* of --help=TOPIC; NULL: none */
} ot_options;

/* Parse the command line. Strings are borrowed from argv. Sets ot_dbg for -d. Fails with OT_E_USAGE
 * and one line that names the option, its value and the rule. *o is to be freed with
 * ot_options_free in any case. */
ot_status ot_options_parse(int argc, char **argv, ot_diag *diag, ot_options *o) OT_MUST_USE;
void ot_options_free(ot_options *o);
/* o asks for an answer (--help and the like), not for work. */
bool ot_options_ask(const ot_options *o);
/* What --help asks for: an overview, or the options of a command or topic, in lines of 80
 * columns. OT_E_USAGE: there is no such topic. */
ot_status ot_options_help(const ot_options *o, FILE *f, ot_diag *diag) OT_MUST_USE;
/* A script for a shell (bash, zsh, fish) that completes commands, options and their values; made
 * from the same table. */
ot_status ot_options_completion(const char *shell, FILE *f) OT_MUST_USE;

#endif
