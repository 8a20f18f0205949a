/* Files that were tiled for another runtime than the engine, as they were before. */
#ifndef OT_APP_ORIGINAL_H
#define OT_APP_ORIGINAL_H

#include "pipeline.h"

/* Before anything is chosen: the model as it is, for what is written of it. */
ot_status ot_run_keep_original(ot_run *r) OT_MUST_USE;
/* After rewriting for a runtime: model->original, where every large constant of the original is in
 * what will be written. */
ot_status ot_run_note_original(ot_run *r) OT_MUST_USE;

/* m, which was just read, becomes the model that it was before it was tiled for a runtime. Keeps
 * ORDER, USES. *why: a sentence, static, where it is tiled and stays so; NULL: it is not, or it
 * was. Fails: OT_E_NOMEM. */
ot_status ot_restore_original(ot_model *m, const char **why) OT_MUST_USE;

/* The same, and says the sentence on f (NULL: does not). */
ot_status ot_run_original(ot_model *m, FILE *f) OT_MUST_USE;

#endif
