/* onnx-tile geometry: what a part of an output needs of the inputs, on stdout. */
#ifndef OT_COMMANDS_GEOMETRY_COMMAND_H
#define OT_COMMANDS_GEOMETRY_COMMAND_H

#include "ops/ops.h"

typedef struct ot_geometry_request {
    const char *model;              /* file, or "-" for stdin */
    const ot_shape_binding *shapes; /* [n_shapes] */
    size_t n_shapes;
    bool json, bioimage, quiet;
} ot_geometry_request;

/* Fails as ot_geometry_find does, and as reading the model. */
ot_status ot_geometry_command(const ot_geometry_request *r, ot_diag *d) OT_MUST_USE;

#endif
