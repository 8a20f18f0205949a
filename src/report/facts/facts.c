/* Facts with nothing in them yet. */
#include "facts.h"

#ifndef OT_VERSION
#define OT_VERSION "0.1.0"
#endif

ot_status ot_facts_new(ot_fact_kind kind, ot_diag *d, ot_facts **out)
{
    ot_arena *a = ot_arena_new();
    ot_facts *f = a ? OT_NEW(a, ot_facts) : NULL;
    *out = NULL;
    if (!f) {
        ot_arena_free(a);
        return ot_fail_nomem(d);
    }
    f->arena = a;
    f->kind = kind;
    f->version = OT_VERSION;
    f->model = f->target = f->goal = f->runtime = f->design = f->unknown_sizes = f->missed =
        f->slow_nodes = "";
    f->region_error = OT_ABSENT;
    f->peak_region = OT_NONE;
    *out = f;
    return OT_OK;
}

void ot_facts_free(ot_facts *f)
{
    if (f) ot_arena_free(f->arena);
}
