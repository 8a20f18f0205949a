/* The target for another runtime than its own: one that is asked for by name, or the engine's
 * operators (--emit engine). */
#include "target_internal.h"

/* r runs the models; its overheads count where the target's are not measured ones. */
static void take(ot_target *t, const ot_runtime *r)
{
    t->runtime = r;
    if (*t->cpu && !t->factors) return; /* measured, and not in another runtime */
    if (r->node_overhead > 0) t->node_overhead = r->node_overhead;
    if (r->loop_overhead > 0) t->loop_overhead = r->loop_overhead;
    if (r->region_overhead > 0) t->region_overhead = r->region_overhead;
}

void ot_target_set_engine(ot_target *t) { take(t, ot_runtime_emitting(t->runtime, t->is_cache)); }

ot_status ot_target_set_runtime(ot_target *t, const char *name, ot_diag *diag)
{
    char names[256];
    const ot_runtime *r = ot_runtime_asked(name, names, sizeof names);
    if (!r) return ot_fail(diag, OT_E_USAGE, "no runtime '%.80s': use one of %s", name, names);
    if (r == &ot_runtime_engine) {
        ot_target_set_engine(t);
        return OT_OK;
    }
    if (!ot_runtime_drives(r, t->is_cache))
        return ot_fail(
            diag, OT_E_USAGE,
            "runtime %s needs a cache, and target %s has a scratchpad: leave out --runtime",
            r->name, t->name);
    const ot_runtime *of_file = ot_target_runtime_of_file(t, r); /* measured, where it was */
    take(t, of_file == r ? ot_runtime_with_lanes(r, t->vector_lanes) : of_file);
    return OT_OK;
}
