/* --emit step: the model of one step along an axis (src/step/step.h). */
#ifndef OT_COMMANDS_STEP_COMMAND_H
#define OT_COMMANDS_STEP_COMMAND_H

#include "step/step.h"

typedef struct ot_step_command_request {
    const char *model, *output;
    ot_step_request step;
    FILE *table; /* where what was written is told; NULL: nowhere */
    bool json;
} ot_step_command_request;

/* Fails: as ot_step_write, and where files cannot be read or written. */
ot_status ot_step_command(const ot_step_command_request *r, ot_diag *d) OT_MUST_USE;

#endif
