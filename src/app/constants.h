/* Contents of the constants that a model computes. */
#ifndef OT_APP_CONSTANTS_H
#define OT_APP_CONSTANTS_H

#include "transform/transform.h"

/* Constants of m's graph that may become initializers, and their contents, in a; none, where there
 * is little to gain or the engine is not built in or does not compute them. Requires ORDER, USES,
 * SHAPES. bit_exact: nothing that rounds. Fails: OT_E_NOMEM. */
ot_status ot_constants_compute(const ot_model *m, bool bit_exact, ot_arena *a,
                               ot_constants *out) OT_MUST_USE;

#endif
