/* The memory that the project's engine takes on a device (private to this folder). */
#ifndef OT_ALLOC_SIM_DEVICE_GROWTH_H
#define OT_ALLOC_SIM_DEVICE_GROWTH_H

#include "alloc_sim.h"

/* What ot_sim_growth says of such a runtime: the arena of activations, without weights. Requires
 * ORDER, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_device_growth(const ot_graph *g, ot_arena *a, ot_sim_figures *out) OT_MUST_USE;

#endif
