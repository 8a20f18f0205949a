/* What the engine of this project does differently on a cached machine; see form_cost.c.
 *
 *   runtime for ONNX   the cores share each node; a tile costs copies, and a dispatch per operator
 *   engine             the cores share out tiles; windows are views, operators of a tile are calls
 */
#include "target_internal.h"

void ot_target_set_engine(ot_target *t)
{
    t->engine = true;
    if (!t->is_cache) return;
    t->fuses = true;
    if (*t->cpu) return; /* measured */
    t->node_overhead = 1.5e-6;
    t->loop_overhead = 2e-6;
    t->region_overhead = 5e-6;
}
