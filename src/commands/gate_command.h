/* The command gate: a model, or a report of one, against limits.
 *
 *   MODEL --plan--> facts --.
 *   R.xml --read--> facts --+--> report/compare/gate.c --> table or JSON, exit status
 *   --baseline B.xml -------'
 */
#ifndef OT_COMMANDS_GATE_COMMAND_H
#define OT_COMMANDS_GATE_COMMAND_H

#include "app/pipeline.h"
#include "report/compare/gate.h"

typedef struct ot_gate_request {
    /* file of a model, which is planned, or of a report (.xml), which is read */
    const char *model;
    ot_run_options tile; /* how to plan; with plan.detail */
    ot_gate_limits limits;
    const char *baseline;       /* report; NULL: none */
    const char *const *reports; /* [n_reports] files to write, of a model */
    size_t n_reports;
    bool json, quiet;
} ot_gate_request;

/* Judge and say so on stdout. Fails: OT_E_BUDGET with the checks that did not pass (after the
 * table), and like ot_run_tile, ot_report_read and ot_gate_judge. */
ot_status ot_gate_command(const ot_gate_request *r, ot_diag *d) OT_MUST_USE;

#endif
