/* Who runs the models, and what it takes to start operators, loops and regions there: the
 * runtime's own figures (its table), but for what the target says.
 *
 *   target     says                                            counts for
 *   host       nothing
 *   a preset   launches of a device; an assumption             its own runtime, and those alike
 *   a file     what its writer says, or calibrate_runtime.py   its own runtime, and those alike
 *   a file     what `calibrate` measured in the engine         every runtime
 *
 * A target is for its own runtime, or for another: one that is asked for by name, or the
 * engine's operators (--emit engine). */
#include "target_internal.h"

/* What the target says of overheads holds for r: they were measured here, in the engine
 * (`calibrate`), or are those of a runtime that starts operators as r does. */
static bool says_of(const ot_target *t, const ot_runtime *r)
{
    if (!t->said_of) return false;
    return (*t->cpu && !t->factors) || !r->overheads || r->overheads == t->said_of->overheads;
}

/* r runs the models. */
static void take(ot_target *t, const ot_runtime *r)
{
    const ot_overheads none = {0}, *own = r->overheads ? r->overheads : &none,
                       *o = says_of(t, r) ? &t->said : own;
    t->runtime = r;
    t->node_overhead = o->node;
    t->loop_overhead = o->loop;
    t->region_overhead = o->region;
}

void ot_target_fill_overheads(ot_target *t, bool says)
{
    t->said = (ot_overheads){t->node_overhead, t->loop_overhead, t->region_overhead};
    t->said_of = says ? ot_target_plain_runtime(t) : NULL;
    take(t, t->runtime);
}

void ot_target_set_engine(ot_target *t) { take(t, ot_runtime_emitting(t->runtime, t->is_cache)); }

ot_status ot_target_set_runtime(ot_target *t, const char *name, ot_diag *diag)
{
    char names[256];
    const ot_runtime *r = ot_runtime_asked(name, names, sizeof names);
    if (!r) return ot_fail(diag, OT_E_USAGE, "no runtime '%.80s': use one of %s", name, names);
    if (r->gives_form) {
        ot_target_set_engine(t);
        return OT_OK;
    }
    if (!ot_runtime_drives(r, t->is_cache))
        return ot_fail(diag, OT_E_USAGE,
                       "runtime %s needs a cache, and target %s has a scratchpad: leave out "
                       "--runtime; its own, %s, writes standard ONNX, too",
                       r->name, t->name, t->runtime->name);
    const ot_runtime *of_file = ot_target_runtime_of_file(t, r); /* measured, where it was */
    take(t, of_file == r ? ot_runtime_with_lanes(r, t->vector_lanes) : of_file);
    return OT_OK;
}
