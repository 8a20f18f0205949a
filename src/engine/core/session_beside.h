/* Sessions of one model that run at the same time. */
#ifndef OT_ENGINE_CORE_SESSION_BESIDE_H
#define OT_ENGINE_CORE_SESSION_BESIDE_H

#include "engine.h"

/* A session beside `of`, of the same model and with the same shapes: it has an arena, threads and
 * constants of its own, and takes weights that `of` has packed from there. `of` must outlive it,
 * holds its model unreleased, and overrides no initializer; none of its model's sessions runs
 * while this one is made. Fails as ot_session_new does. */
ot_status ot_session_new_beside(ot_session *of, const ot_session_options *o, ot_diag *d,
                                ot_session **out) OT_MUST_USE;

#endif
