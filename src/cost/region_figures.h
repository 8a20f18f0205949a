/* Figures of built regions, for what compares them with estimates. */
#ifndef OT_COST_REGION_FIGURES_H
#define OT_COST_REGION_FIGURES_H

#include "tile_totals.h"

/* Of a region in its form, from the windows of every tile. */
typedef struct ot_region_figures {
    bool possible; /* else some tile cannot be made, and the rest says nothing */
    ot_totals totals;
    ot_node_sums sums; /* what its nodes add up to */
} ot_region_figures;

/* how: OT_FIT_ bits. Fails: OT_E_NOMEM. */
ot_status ot_region_totals(const ot_seq *s, const ot_target *t, unsigned how, const ot_region *r,
                           ot_region_figures *out) OT_MUST_USE;

#endif
