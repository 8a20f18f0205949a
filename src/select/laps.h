/* Laps: all groups of variants under one limit on time after the other (private to this folder). */
#ifndef OT_SELECT_LAPS_H
#define OT_SELECT_LAPS_H

#include "variant.h"

#define OT_LAPS_GROUPS 2 /* static shapes, as given, and dynamic ones */

/* A variant and what was found for it. */
typedef struct ot_pick {
    ot_variant_group *group;
    ot_variant *v; /* NULL: nothing was found */
    ot_outcome found;
} ot_pick;

/* Groups of variants, and what their laps found. */
typedef struct ot_laps {
    const ot_select_request *r;
    ot_variant_group *groups; /* [n], of at most OT_LAPS_GROUPS */
    uint32_t n;
    ot_pick memory; /* the best of the laps for goal memory so far, */
    size_t next;    /* index of the next limit that is searched */
} ot_laps;

/* The best with options o. Fails: as ot_candidates_lap. */
ot_status ot_laps_find(ot_laps *x, const ot_plan_options *o, ot_pick *out) OT_MUST_USE;
/* Whether a much larger limit on time would bring anything, of the planners at hand: *out, else it
 * stays as it is. Fails: likewise. */
ot_status ot_laps_slower(ot_laps *x, ot_figures *out) OT_MUST_USE;
/* The groups of x->r's model of one type: with given shapes, with dynamic ones, or both. *any
 * false: nothing was widened, and there are none. Fails: as ot_group_open; OT_E_NOMEM. */
ot_status ot_laps_open_groups(ot_laps *x, bool widened, bool *any) OT_MUST_USE;
/* v->c: what competes for v, a variant of x, with options o. Fails: OT_E_NOMEM. */
ot_status ot_laps_open(const ot_variant_group *x, ot_variant *v,
                       const ot_plan_options *o) OT_MUST_USE;

/* ---- smaller_fast.c ---- */

/* *kept, what x found with options o, becomes a better pick of x that is planned as for a smaller
 * fast memory. Nothing where o does not ask for it. Fails: OT_E_NOMEM. */
ot_status ot_laps_smaller_fast(ot_laps *x, bool widened, const ot_plan_options *o,
                               ot_pick *kept) OT_MUST_USE;

#endif
