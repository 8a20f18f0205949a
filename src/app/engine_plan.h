/* Models that are planned for the engine when they are loaded. */
#ifndef OT_APP_ENGINE_PLAN_H
#define OT_APP_ENGINE_PLAN_H

#include "pipeline.h"

typedef struct ot_engine_request {
    ot_goal goal;
    double max_slowdown;            /* fraction, of goal memory */
    uint32_t threads;               /* of the session; 0: 1 */
    const ot_shape_binding *shapes; /* [n_shapes] dimensions of inputs */
    size_t n_shapes;
} ot_engine_request;

/* *planned: m, which is loaded and not planned, with tiles for the engine; it has the contents of
 * m, which stays and is freed after it. NULL where tiles do not pay (with goal memory: where a
 * session of it takes no less with them), and where m cannot be planned. Fails: OT_E_NOMEM, and
 * where the watch of this thread ends it (base/watch.h). */
ot_status ot_plan_engine_copy(ot_model *m, const ot_engine_request *q, ot_diag *d,
                              ot_model **planned) OT_MUST_USE;
/* The same in place: *m may be another model afterwards, which owns the one that it was. */
ot_status ot_plan_for_engine(ot_model **m, const ot_engine_request *q, ot_diag *d) OT_MUST_USE;

#endif
