/* The footprint of a plan: what is alive where in the text, and what the next 4 KiB cost.
 *
 *   memory ^  line  12     13-14    15
 *          |       [  c  ]                    line 12: 4 KiB more fit into the hole below c;
 *          |               [   d   ][ e ]     13-14: they fit above d, the plan grows;
 *          | hole  [     b         ]          15: e and f leave no room: f goes
 *          |[       a      ][    f      ]
 *          +-----------------------------> statements
 *
 * One buffer more, alive at one line only, is priced against the plan as it is. A buffer more
 * that is always alive is less memory for all others: that is priced by planning again, with
 * 4 KiB less, and with 4 KiB more to tell what they would gain.
 */
#ifndef OT_TK_PLANMEM_FOOTPRINT_H
#define OT_TK_PLANMEM_FOOTPRINT_H

#include "planmem.h"

#define OT_FOOTPRINT_STEP   4096
#define OT_FOOTPRINT_GO_MAX 64 /* buffers of a set that would have to go */

/* What 4 KiB more at a line cost, from nothing to most. */
typedef enum ot_footprint_next {
    OT_NEXT_HOLE,  /* they fit below the height */
    OT_NEXT_GROWS, /* they fit above it */
    OT_NEXT_MOVES, /* so many bytes are free, but not in one piece: others must move */
    OT_NEXT_GOES   /* so many are not free */
} ot_footprint_next;
const char *ot_footprint_next_name(ot_footprint_next n); /* "hole", "grows", "moves", "goes" */

typedef struct ot_footprint_buffer {
    const char *name; /* of the value that stands for it */
    int64_t bytes;    /* of all its slots */
    uint32_t slots;
} ot_footprint_buffer;

/* Statements that follow one another with the same buffers alive. */
typedef struct ot_footprint_line {
    uint32_t line, last_line; /* of the text */
    int64_t live;             /* bytes of what is alive, all slots */
    uint32_t n_buffers;       /* alive */
    ot_footprint_next next;
    int64_t offset;  /* HOLE, GROWS: where 4 KiB more fit */
    int64_t growth;  /* GROWS: bytes that the height grows by */
    int64_t missing; /* GOES: bytes that are not free */
    /* GOES: [n_goes] alive here, enough when they go, and none of them can stay. 0: more than
     * OT_FOOTPRINT_GO_MAX would have to */
    const ot_footprint_buffer *goes;
    uint32_t n_goes;
} ot_footprint_line;

/* The plan in another capacity. */
typedef struct ot_footprint_price {
    int64_t capacity; /* 0: not priced; the memory has no limit, or less than 4 KiB */
    bool fits;
    bool certain;       /* not fits: it cannot; fits: no higher level does (as the planner finds) */
    ot_scope_plan plan; /* where it fits */
} ot_footprint_price;

typedef struct ot_footprint_scope {
    const ot_scope_plan *plan;      /* what there is */
    const ot_footprint_line *lines; /* [n_lines] in the order of statements; what holds nothing is
                                     * left out */
    uint32_t n_lines;
    uint32_t peak; /* the first line where most is alive */
    /* [n_at_peak] what is alive there, largest first */
    const ot_footprint_buffer *at_peak;
    uint32_t n_at_peak;
    /* [n_goes] with these gone, 4 KiB less are alive at most, and none of them can stay. 0: more
     * than OT_FOOTPRINT_GO_MAX would have to, or 4 KiB are not alive */
    const ot_footprint_buffer *goes;
    uint32_t n_goes;
    ot_footprint_price less, more; /* with 4 KiB less and more */
} ot_footprint_scope;

typedef struct ot_footprint {
    ot_footprint_scope *scopes; /* [n_scopes] those of the plan in which anything lives */
    uint32_t n_scopes;
} ot_footprint;

/* Of a plan that ot_mem_plan_kernel made of these k, t and o. All is in a, names included, but
 * each scope's plan, which is p's. Takes bounded work: a price that it does not reach is not
 * certain. Fails: OT_E_NOMEM. */
ot_status ot_mem_footprint(const ot_kernel *k, const ot_mem_plan *p, const ot_tk_machine *t,
                           const ot_mem_options *o, ot_arena *a, ot_diag *d,
                           ot_footprint *out) OT_MUST_USE;

#endif
