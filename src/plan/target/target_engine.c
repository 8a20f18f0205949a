/* The target for a model in the engine's operators (--emit engine). */
#include "target_internal.h"

void ot_target_set_engine(ot_target *t)
{
    const ot_runtime *r = ot_runtime_emitting(t->runtime, t->is_cache);
    t->runtime = r;
    if (*t->cpu) return; /* measured */
    if (r->node_overhead > 0) t->node_overhead = r->node_overhead;
    if (r->loop_overhead > 0) t->loop_overhead = r->loop_overhead;
    if (r->region_overhead > 0) t->region_overhead = r->region_overhead;
}
