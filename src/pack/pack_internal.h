/* Inside the packer: what pack.c (the driver), valley*.c (exact) and greedy.c, improve*.c
 * (heuristics) share. */
#ifndef OT_PACK_PACK_INTERNAL_H
#define OT_PACK_PACK_INTERNAL_H

#include "pack.h"

#include <stdatomic.h>

/* Effort allowed to one worker. Steps make runs repeatable; the clock is asked every few
 * thousand steps only. */
typedef struct pack_budget {
    int64_t steps;           /* taken so far */
    int64_t step_limit;      /* stop when reached; 0: none */
    double deadline;         /* CLOCK_MONOTONIC seconds; 0: none */
    bool timed_out;          /* the clock ended it */
    const atomic_bool *stop; /* another worker's result made this one pointless; NULL: none */
} pack_budget;
/* Count n steps; false when the budget is used up (then return what there is). */
bool pack_spend(pack_budget *b, int64_t n);

typedef enum pack_answer {
    PACK_FOUND,
    PACK_NONE /* proved */,
    PACK_LIMIT /* budget used up */
} pack_answer;

/* valley.c: a packing of height <= capacity, or the proof that there is none. `order`: number of
 * a static order or strategy (deterministic; any number is valid). offsets: [n], written when
 * found. */
ot_status pack_search(const ot_pack_problem *p, int64_t capacity, uint32_t order, uint32_t rules,
                      pack_budget *b, int64_t *offsets, pack_answer *answer) OT_MUST_USE;

/* greedy.c: ot_pack_greedy within a budget of items placed (a step each); the others are then put
 * above all that they meet (stack.c). */
ot_status pack_greedy(const ot_pack_problem *p, const uint32_t *order, pack_budget *b,
                      int64_t *offsets, int64_t *height) OT_MUST_USE;

/* improve.c: heuristics that get lower than plain greedy, from 10 to 100,000 items.
 * offsets/height: in: a valid packing (of ot_pack_greedy); out: the best found. Stops at height
 * <= goal or when the budget is used up. Deterministic in (p, seed, steps). */
ot_status pack_improve(const ot_pack_problem *p, int64_t goal, uint64_t seed, pack_budget *b,
                       int64_t *offsets, int64_t *height) OT_MUST_USE;

#endif
