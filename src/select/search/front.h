/* What the dynamic program keeps of the ways to one position (private to this folder). */
#ifndef OT_SELECT_SEARCH_FRONT_H
#define OT_SELECT_SEARCH_FRONT_H

#include "base/base.h"

enum { OT_STATES_MAX = 10 };

/* A way: what it takes, and where it came from. */
typedef struct ot_plan_state {
    double score, time;
    int64_t peak;
    uint32_t missed;     /* values that stay above --max-tensor */
    uint32_t from_state; /* where it came from: of the front where `choice` begins, */
    uint32_t choice;     /* index into the pool, or OT_NONE: the node before is untiled */
} ot_plan_state;

typedef struct ot_front {
    /* [n] none of which is better than another in both score and peak */
    ot_plan_state s[OT_STATES_MAX];
    uint32_t n;
} ot_front;

/* Where x would go: index of a state to overwrite, f->n to append, or OT_NONE when x is not wanted.
 * States that x beats go. */
uint32_t ot_front_place(ot_front *f, const ot_plan_state *x);

/* What is asked of the states at the end. */
typedef struct ot_front_wish {
    double time;  /* the most seconds that are allowed, */
    int64_t peak; /* and bytes */
    bool lean;    /* for less memory: its peak counts first */
    /* a plan that takes so many times as long as the fastest is as good when it needs less memory;
     * 0: none */
    double lean_limit;
} ot_front_wish;

/* Which final state: the fastest allowed one; for the engine, of those about as fast the one
 * with the least peak. For memory: the fastest of those within a tenth of the least peak, since
 * predictions are no finer than that. OT_NONE: nothing is allowed. */
uint32_t ot_front_final(const ot_front *f, const ot_front_wish *x);
/* The fastest of those with at most that peak; OT_NONE: there is none. */
uint32_t ot_front_fastest(const ot_front *f, int64_t peak);

#endif
