/* A runtime that places all values before it runs (private to this folder). */
#ifndef OT_ALLOC_SIM_ONE_BLOCK_H
#define OT_ALLOC_SIM_ONE_BLOCK_H

#include "alloc_sim.h"

/* What ot_sim_growth says of such a runtime. Requires ORDER, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_one_block_growth(const ot_graph *g, const ot_runtime *r, ot_arena *a,
                              ot_sim_figures *out) OT_MUST_USE;

#endif
