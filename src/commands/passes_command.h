/* onnx-tile passes: models for passes over crops, where a model needs numbers of a whole axis. */
#ifndef OT_COMMANDS_PASSES_COMMAND_H
#define OT_COMMANDS_PASSES_COMMAND_H

#include "passes/passes.h"

typedef struct ot_passes_request {
    const char *model, *folder;     /* file, or "-" for stdin; where models are written */
    const ot_shape_binding *shapes; /* [n_shapes] */
    size_t n_shapes;
    ot_passes_store store;
    bool json, quiet;
} ot_passes_request;

/* Fails: as ot_passes_write, and as reading the model. */
ot_status ot_passes_command(const ot_passes_request *r, ot_diag *d) OT_MUST_USE;

#endif
