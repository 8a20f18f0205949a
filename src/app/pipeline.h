/* The pipeline: one run of the tool over one model, as a list of passes. */
#ifndef OT_APP_PIPELINE_H
#define OT_APP_PIPELINE_H

#include "onnx/import/model_io.h"
#include "report/facts/facts.h"
#include "select/select.h"

/* Where a model comes from. */
typedef struct ot_source {
    const char *path;  /* file, or "-" for stdin; NULL: from memory */
    const void *bytes; /* [n] when path is NULL */
    size_t n;
    const char *dir;     /* folder of external data for a model in memory; NULL refuses it */
    const ot_lent *lent; /* [n_lent] for a model in memory: its external data; NULL: files */
    size_t n_lent;
} ot_source;

typedef struct ot_run_options {
    const char *target;             /* name or .xml file */
    int64_t l2_bytes;               /* 0: the target's own */
    int64_t weight_bytes;           /* likewise, of the memory for weights beside it */
    uint32_t threads;               /* 0: the target's own */
    const ot_shape_binding *shapes; /* [n_shapes] */
    size_t n_shapes;
    const ot_shape_binding *design; /* [n_design] with keep_dynamic: the size that is planned for */
    size_t n_design;
    /* [n_ranges] with keep_dynamic: sizes that the bound and the budget are for; the upper
     * corner is the design where there is none */
    const ot_size_range *ranges;
    size_t n_ranges;
    /* dynamic dimensions stay dynamic in what is written; planned at the design size. Set where
     * nothing is said of sizes */
    bool keep_dynamic;
    ot_plan_options plan;
    /* who runs the model, by name (ot_target_set_runtime); NULL: the target's own, the engine
     * with emit_engine */
    const char *runtime;
    /* write the engine's operators; runtime, where it is given, is one that takes them */
    bool emit_engine;
    /* with emit_engine: what becomes operators, for ONNX Runtime with the engine as a library */
    ot_operators operators;
    bool try_cures; /* with plan.detail: try what would help (cures.c), which takes more plans */
    const char *dump_dir;  /* NULL: none */
    FILE *log;             /* time of each pass, one line each; NULL: silent */
    FILE *warn;            /* what of the file is not followed, one line; NULL: silent */
    ot_progress *progress; /* the running pass; NULL: none */
} ot_run_options;

typedef struct ot_run {
    ot_diag *diag;          /* borrowed */
    ot_run_options options; /* strings borrowed */
    ot_source source;
    const char *output;
    ot_target target;
    ot_model *model; /* after load */
    /* a size was given: the model before it was bound, where its dimensions may stay dynamic */
    ot_model *unbound;
    /* with options.try_cures: the model and the options as they were before shapes were inferred */
    ot_model *untouched;
    ot_run_options asked;
    ot_model *original; /* a copy of the model as select finds it, unless the engine runs it */
    const ot_shape_binding *given_design; /* [options.n_shapes] with that: the size as a design */
    const ot_constants *constants;        /* that the model computes; NULL: not asked for */
    ot_selection selection;               /* after tile: the plan, and what it is of */
    ot_facts *facts;                      /* after tile; complete with options.plan.detail */
    bool was_fixed; /* after tile: the file states all extents of its inputs */
    /* after tile: part of the design, or all of it, is a guess (ops/guessed_size.h) */
    bool guessed;
} ot_run;

/* Read the model: run->source. Fails as ot_import_file does; .ot files are parsed as text. */
ot_status ot_run_load(ot_run *run) OT_MUST_USE;
/* Plan and check; rewrite the graph too unless `plan_only`. Requires load, once. */
ot_status ot_run_tile(ot_run *run, bool plan_only) OT_MUST_USE;
/* What it left out then. */
ot_status ot_run_rewrite(ot_run *run) OT_MUST_USE;
/* Write the model to run->output (.ot: text form). */
ot_status ot_run_save(ot_run *run) OT_MUST_USE;
/* mark_operators.c, a pass of ot_run_tile: which nodes are written as operators, as
 * options.operators says. Fails: OT_E_INPUT where the engine does not run what is in one. */
ot_status ot_run_mark_operators(ot_run *run) OT_MUST_USE;
/* mark_operators.c: what the engine takes where another runtime runs the rest. part[k]: the part of
 * the node that makes values[k], as of ot_parts; OT_NONE: it stays. Requires load; the model is not
 * for planning any more. */
ot_status ot_run_engine_parts(ot_run *run, const char *const *values, size_t n,
                              uint32_t *part) OT_MUST_USE;
/* With options.emit_engine: nodes of operators that the engine does not have are in no region. */
void ot_run_keep_whole(ot_run *run);
/* Parts of these: the run's model, whose shapes and target are known, gets a plan; it is rewritten
 * by that. */
ot_status ot_run_select(ot_run *run) OT_MUST_USE;
ot_status ot_run_write_plan(ot_run *run) OT_MUST_USE;
/* engine_memory.c: growth_bytes of the plan's figures become what a session of the engine holds of
 * the run's model, and of `file`, a copy of it before it was planned; and for goal memory the plan
 * has no tiles where the former is no less. The model may borrow from `file` then. Fails as
 * ot_run_select does; what the engine does not run has no such figures. */
ot_status ot_run_engine_memory(ot_run *run, ot_model *file) OT_MUST_USE;
/* The same where no plan keeps the memory budget by live bytes, run->diag saying so: whether one
 * keeps it in a session. OT_E_BUDGET, with the least that one takes, if none does. */
ot_status ot_run_engine_budget(ot_run *run, ot_model *file) OT_MUST_USE;
/* Free what a run holds, not the run itself. */
void ot_run_free(ot_run *run);

/* ---- command_line.c ---- */

/* The command that tiles the run's model as the run did, in the arena; NULL: no memory. */
const char *ot_run_command_text(const ot_run *run, ot_arena *a);
/* The design size, or the one that was bound, "INPUT=D,D,... INPUT=...", likewise; "": none. */
const char *ot_run_design_text(const ot_run *run, ot_arena *a);
/* The options that bind the design size, "--shape INPUT=D,D,... --shape ...", likewise. */
const char *ot_run_shape_text(const ot_run *run, ot_arena *a);

/* ---- slow_nodes.c ---- */

/* Nodes of g that the engine runs by reference implementations, in words; "": none. NULL: no
 * memory. */
const char *ot_slow_nodes_text(const ot_graph *g, ot_arena *a);

/* ---- text_file.c: .ot files ---- */

bool ot_is_text_path(const char *path); /* ends in ".ot" */
ot_status ot_text_file_read(const char *path, ot_diag *diag, ot_model **out) OT_MUST_USE;
/* Whole or not at all, like ot_export_file. */
ot_status ot_text_file_write(const ot_graph *g, const char *path, ot_diag *diag) OT_MUST_USE;

/* The shapes that the file states and that do not follow (model.unfollowed), as one line; f NULL:
 * nothing. */
void ot_warn_unfollowed(const ot_model *m, FILE *f);

#endif
