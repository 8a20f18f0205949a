/* Files that were tiled for another runtime than the engine, as they were before. */
#ifndef OT_APP_ORIGINAL_H
#define OT_APP_ORIGINAL_H

#include "pipeline.h"

/* Before anything is chosen: the model as it is, for what is written of it. */
ot_status ot_run_keep_original(ot_run *r) OT_MUST_USE;
/* Before the model is edited: what was kept is a copy of it from then on. Fails: OT_E_NOMEM. */
ot_status ot_run_part_original(ot_run *r) OT_MUST_USE;
/* After rewriting for a runtime: model->original, where every large constant of the original is in
 * what will be written. */
ot_status ot_run_note_original(ot_run *r) OT_MUST_USE;

/* Of a file that was read. */
typedef struct ot_original {
    bool restored; /* it was tiled, and is what it was again */
    ot_goal goal;  /* with restored: what it was tiled for, and with which limit (goal memory) */
    double max_slowdown;
    const char *why; /* a sentence, static, where it is tiled and stays so; NULL: it is not */
} ot_original;

/* m, which was just read, becomes the model that it was before it was tiled for a runtime. Keeps
 * ORDER, USES. Fails: OT_E_NOMEM. */
ot_status ot_restore_original(ot_model *m, ot_original *out) OT_MUST_USE;

/* The same, and says the sentence on f (NULL: does not). */
ot_status ot_run_original(ot_model *m, FILE *f, ot_original *out) OT_MUST_USE;

#endif
