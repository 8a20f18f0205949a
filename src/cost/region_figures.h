/* Figures of built regions, for what compares them with estimates. */
#ifndef OT_COST_REGION_FIGURES_H
#define OT_COST_REGION_FIGURES_H

#include "tile_totals.h"

/* The totals of region r in its form, and what its nodes add up to, from the windows of every
 * tile. *possible false: some tile cannot be made. how: OT_FIT_ bits. Scratch is in a. Fails:
 * OT_E_NOMEM. */
ot_status ot_region_totals(const ot_seq *s, const ot_target *t, ot_arena *a, unsigned how,
                           const ot_region *r, ot_totals *tot, ot_node_sums *sums,
                           bool *possible) OT_MUST_USE;

#endif
