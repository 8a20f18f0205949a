/* Stage step/: a model becomes one that is run again and again on the next rows along an axis, and
 * hands what it has to keep of earlier rows from run to run.
 *
 *            x: rows [t k, t k + k)  --+                +--> y: rows [t k' - delay, ... + k')
 *   rows: how many of them there are --+--> one step ---+--> y.rows: which of these there are
 *             state.<value>, at first 0 +                +--> next.<value>
 *
 * What is handed on are the last rows of each value that are read again (as line buffers of form
 * stream, docs/streaming.md), the states of recurrent operators, and, where it matters where rows
 * lie, two counters. The first and the last step are the same model: rows before the first and
 * behind the last row of a value are replaced, where they are read, by what the operator takes for
 * them (ops/outside.c), so that results are those of the whole model on all rows. The relations are
 * those of geometry/axis_flow.h: a node is written once, at a place far from both ends, for the
 * rows of a step. What has no such relation is refused.
 */
#ifndef OT_STEP_STEP_H
#define OT_STEP_STEP_H

#include "onnx/graph/ir.h"
#include "ops/ops.h"

typedef struct ot_step_request {
    const char *input;
    int64_t axis;                   /* of it */
    int64_t rows;                   /* of a step; 0: as few as the model can be cut in */
    const ot_shape_binding *shapes; /* [n_shapes] as of ot_geometry_find */
    size_t n_shapes;
} ot_step_request;

/* An input or output that has rows. */
typedef struct ot_step_rows {
    const char *name;
    uint32_t axis;
    int64_t rows;      /* of each step */
    int64_t num, den;  /* of all rows: num for den of the named input */
    int64_t delay;     /* of outputs: rows of the first steps that there are not */
    const char *valid; /* of outputs: the output that says which rows there are; NULL: all */
} ot_step_rows;

typedef struct ot_step_state {
    const char *from, *to; /* input, and the output that is its next value */
    ot_tensor_type type;
    int64_t bytes;
} ot_step_state;

/* What was written. Lives as long as the model. */
typedef struct ot_step_facts {
    const char *named; /* input */
    int64_t named_rows;
    const char *count; /* the input that says how many rows there are; NULL: there is none */
    ot_step_rows *inputs, *outputs; /* [n_inputs], [n_outputs] */
    uint32_t n_inputs, n_outputs;
    ot_step_state *states; /* [n_states] */
    uint32_t n_states;
    int64_t state_bytes;
    int64_t flush; /* steps without rows after the last, at most */
    int64_t align; /* rows of a step are a multiple of it */
    /* [n_remainders] what all rows may be modulo `align`, in rows of the named input; n 0: any */
    int64_t *remainders;
    uint32_t n_remainders;
} ot_step_facts;

/* Make m, a model as it was read, the model of a step. Fails: OT_E_USAGE (no such input or axis,
 * rows that are no multiple of what the model can be cut in), OT_E_INPUT (a node that cannot be
 * written so, named), OT_E_NOMEM; m is then of no more use. */
ot_status ot_step_write(ot_model *m, const ot_step_request *r, ot_step_facts **out) OT_MUST_USE;

/* ---- step_facts.c ---- */

/* As a table for people; as JSON (docs/json.md), which is also the model's metadata. */
ot_status ot_step_print(const ot_step_facts *x, FILE *f) OT_MUST_USE;
ot_status ot_step_json(const ot_step_facts *x, FILE *f) OT_MUST_USE;

#endif
