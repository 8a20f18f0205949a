/* What a handle of the public C API holds (private to api.c and api_results.c). */
#ifndef OT_API_HANDLE_H
#define OT_API_HANDLE_H

#include "onnx_tile.h"

#include "app/pipeline.h"
#include "passes/passes.h"
#include "control.h"
#include "shape_list.h"

typedef enum progress { EMPTY, LOADED, PLANNED, STEP, FAILED } progress;

struct onnx_tile {
    ot_arena *options; /* copies of strings and shapes, as long as the handle */
    ot_diag diag;
    ot_run run;
    ot_passes_store store;
    ot_shape_list shapes, design;
    ot_size_range *ranges; /* [n_ranges] one an input */
    size_t n_ranges, cap_ranges;
    bool verify;
    progress progress; /* FAILED: the model may be half changed; only load helps */
    char *json;        /* made on demand; malloc'ed */
    ot_control control;
};

static inline onnx_tile_status done(ot_status s) { return (onnx_tile_status)s; }

/* Begin a call: forget the last failure. */
static inline void begin(onnx_tile *t) { memset(&t->diag, 0, sizeof t->diag); }

static inline onnx_tile_status misuse(onnx_tile *t, const char *message)
{
    return done(ot_fail(&t->diag, OT_E_USAGE, "%s", message));
}

#endif
