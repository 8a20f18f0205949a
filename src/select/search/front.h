/* What the dynamic program keeps of the ways to one position (private to this folder). */
#ifndef OT_SELECT_SEARCH_FRONT_H
#define OT_SELECT_SEARCH_FRONT_H

#include "base/base.h"

enum { OT_STATES_MAX = 10 };

/* A way: what it takes, and where it came from. */
typedef struct ot_plan_state {
    double score, time;
    int64_t peak;
    uint32_t missed; /* values that stay above --max-tensor */
    uint32_t loops, tiles;
    uint32_t from_pos, from_state; /* where it came from */
    uint32_t choice;               /* index into choices, or OT_NONE: node untiled */
} ot_plan_state;

typedef struct ot_front {
    ot_plan_state *s; /* [n] none of which is better than another in both score and peak */
    uint32_t n;
} ot_front;

/* Where x would go: index of a state to overwrite, f->n to append, or OT_NONE when x is not wanted.
 * States that x beats go. f->s: room for OT_STATES_MAX. */
uint32_t ot_front_place(ot_front *f, const ot_plan_state *x);

#endif
