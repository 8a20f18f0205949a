/* The handle of a session of the public API: what the files of src/api share. */
#ifndef OT_API_SESSION_HANDLE_H
#define OT_API_SESSION_HANDLE_H

#include "onnx_tile.h"

#include "app/pipeline.h"
#include "base/lock.h"
#include "control.h"
#include "engine/core/engine.h"
#include "shape_list.h"

#include <pthread.h>

typedef struct ot_session_arrays ot_session_arrays;
typedef struct ot_session_sizes ot_session_sizes;

/* How an input comes: of ot_convert_input. */
typedef struct ot_session_form {
    const char *input;
    ot_dtype type;
    double scale;
} ot_session_form;

struct onnx_tile_session {
    pthread_mutex_t lock; /* recursive: held by each call, and by callers for several calls */
    ot_arena *options;    /* copies of strings and shapes, as long as the handle */
    ot_diag diag;
    uint32_t threads;
    onnx_tile_run_tasks *run_tasks; /* NULL: threads of its own */
    void *run_tasks_of;
    ot_shape_list shapes;
    onnx_tile_plan plan;
    ot_session_form *forms; /* [n_forms] */
    size_t n_forms, cap_forms;

    ot_control control;
    onnx_tile_session *of; /* whose model it runs; NULL: its own */
    atomic_uint users;     /* who holds it, and sessions that run its model: the last frees it */
    const char *notice;    /* static; NULL: none */

    /* of the loaded model */
    ot_arena *a; /* NULL: none is loaded */
    ot_model *m;
    bool is_lent;             /* contents of its constants were, which nothing reads any more */
    ot_session *s;            /* tells of inputs and outputs, and mostly */
    ot_session *runs;         /* is what runs; NULL: the first run makes it */
    ot_session_sizes *sizes;  /* sessions for sizes as they come; NULL: s is for all */
    bool is_shared;           /* with sizes: runs is for all of them */
    const ot_value **inputs;  /* [n_in] */
    const ot_value **outputs; /* [n_out] */
    ot_nd *in;                /* [n_in] bound; no data: not yet */
    ot_nd *places;            /* [n_out] bound; no data: the session's memory */
    ot_nd *out;               /* [n_out] of the last run */
    uint32_t n_in, n_out;
    bool has_run;
    ot_session_arrays *arrays; /* of those that are no memory of the caller's; NULL: none was yet */
};

/* ---- planned_session.c: models that are planned when they are loaded, or run ---- */

/* s->m, just read, becomes what is to run; or s->sizes and s->s, which only describes, are made. */
ot_status ot_api_plan_model(onnx_tile_session *s) OT_MUST_USE;
/* s->runs for the inputs that are bound. */
ot_status ot_api_session_for_run(onnx_tile_session *s) OT_MUST_USE;
/* s->runs for any inputs, from now on: others will share it. */
ot_status ot_api_session_for_all(onnx_tile_session *s) OT_MUST_USE;
void ot_api_sizes_free(onnx_tile_session *s);

/* Make s->m ready to run. (api_session.c) */
ot_status ot_api_open_model(onnx_tile_session *s) OT_MUST_USE;

/* Begin a call: the session is this thread's until the end of the block, and the last failure is
 * forgotten. */
onnx_tile_session *ot_api_session_enter(onnx_tile_session *s);
void ot_api_session_leave(onnx_tile_session *const *s);
#define LOCKED(s)                    \
    onnx_tile_session *const locked_ \
        __attribute__((cleanup(ot_api_session_leave), unused)) = ot_api_session_enter(s)

/* ---- session_arrays.c: arrays that are no memory of the caller's; of the engine ---- */

/* Input or output k is bound to something else. */
void ot_session_arrays_drop_input(onnx_tile_session *s, uint32_t k);
void ot_session_arrays_drop_output(onnx_tile_session *s, uint32_t k);
/* Before a run: files of outputs are made, and windows of rows are known. After it, whose status is
 * `ran`: files appear, or nothing of them stays. */
ot_status ot_session_arrays_begin(onnx_tile_session *s) OT_MUST_USE;
ot_status ot_session_arrays_end(onnx_tile_session *s, ot_status ran) OT_MUST_USE;
/* The output is in a file, or was handed to its writer. */
bool ot_session_arrays_has_output(const onnx_tile_session *s, uint32_t k);
void ot_session_arrays_free(onnx_tile_session *s);

#endif
