/* What a caller says of long calls: how long they may take, whom to tell how far they are, and
 * that they are to end. */
#ifndef OT_API_CONTROL_H
#define OT_API_CONTROL_H

#include "onnx_tile.h"

#include "base/watch.h"

typedef struct ot_control {
    atomic_int stop; /* set by any thread */
    double seconds;  /* 0: any */
    onnx_tile_progress *tell;
    void *of;
} ot_control;

/* Begin a long call in this thread: what was cancelled before is forgotten. *before: for the end
 * of it. */
void ot_control_begin(ot_control *c, ot_watch *w, ot_watch **before);
/* End it. `s` is what it returned; what ended it replaces the line in d. what: "the run". */
onnx_tile_status ot_control_end(const ot_watch *w, ot_watch *before, ot_status s, const char *what,
                                ot_diag *d);
/* NULL: fine, else what is wrong. */
const char *ot_control_set_timeout(ot_control *c, double seconds);

#endif
