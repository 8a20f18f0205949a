/* Files of the outputs of a run.
 *
 *   before the run   large outputs of known shape: a file of full size each, mapped; the engine
 *                    writes there, no other memory holds them
 *   after it         all others are written; then every file is synced, then every one appears
 */
#ifndef OT_COMMANDS_RUN_OUTPUTS_H
#define OT_COMMANDS_RUN_OUTPUTS_H

#include "measure/measure.h"

typedef struct ot_run_output {
    const char *name; /* of the model's output */
    const char *file; /* .npy; .raw, .bin: elements alone */
} ot_run_output;

typedef struct ot_run_output_request {
    const ot_run_output *files; /* [n_files] outputs that are written */
    size_t n_files;
    const char *dir;          /* all of them, to D/0.npy ...; NULL: none so. Not both */
    const char *const *reads; /* [n_reads] files that are read: none is an output, too */
    size_t n_reads;
} ot_run_output_request;

typedef struct ot_run_outputs {
    const ot_run_output_request *r;
    ot_measured *x;
    ot_arena *a;
    const char **paths;   /* [outputs] NULL: not written, or a sequence to D */
    ot_array_out *mapped; /* [n_mapped] in the order of opening */
    uint32_t *of;         /* [n_mapped] outputs */
    uint32_t n_mapped;
    ot_array_out *put; /* [n_put] after the run */
    size_t n_put;
    bool made_dir, done;
} ot_run_outputs;

/* Open what is mapped, and place outputs of x there. *o is to be closed in any case. Fails:
 * OT_E_USAGE (no such output, a file that is read or named twice), OT_E_INPUT, OT_E_SYSTEM,
 * OT_E_NOMEM. */
ot_status ot_run_outputs_open(ot_run_outputs *o, const ot_run_output_request *r, ot_measured *x,
                              ot_arena *a, ot_diag *d) OT_MUST_USE;
/* After the last run: all files, or none. */
ot_status ot_run_outputs_write(ot_run_outputs *o, ot_diag *d) OT_MUST_USE;
void ot_run_outputs_close(ot_run_outputs *o);

#endif
