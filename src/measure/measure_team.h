/* Threads that do the same thing at the same time, each on its own data (private to the
 * measuring files). */
#ifndef OT_MEASURE_MEASURE_TEAM_H
#define OT_MEASURE_MEASURE_TEAM_H

#include "base/base.h"

#include <stdatomic.h>

/* Where the threads of a team wait for each other, once. */
typedef struct ot_gate {
    atomic_uint arrived;
    uint32_t n;
} ot_gate;

void ot_gate_pass(ot_gate *g);

/* work(member k of `members`, gate) in n threads, member 0 in the caller's; each passes the gate
 * once when it is ready. They have no pool: kernels that they call are on their own. false: not
 * all could be started, and what was measured means nothing. */
bool ot_team_run(uint32_t n, void (*work)(void *member, ot_gate *g), void *members,
                 size_t member_size) OT_MUST_USE;

#endif
