/* What a device of the project's engine runs as one kernel (private to this folder). */
#ifndef OT_ALLOC_SIM_DEVICE_STEPS_H
#define OT_ALLOC_SIM_DEVICE_STEPS_H

#include "fusion/graph_view.h"

typedef struct ot_device_steps {
    /* places: numbers in the order, those left out whose results are known before the model
     * runs, or that nobody wants */
    ot_node_list list;
    uint32_t *at; /* [list.n] the place of the last node of the kernel that it is part of, where
                   * that runs */
} ot_device_steps;

/* Requires ORDER, USES, SHAPES. Fails: OT_E_NOMEM. */
ot_status ot_device_steps_find(const ot_graph *g, ot_arena *a, ot_device_steps *out) OT_MUST_USE;

/* Somebody beside the kernel that makes v, which is at `place`, wants it. */
bool ot_device_stores(const ot_device_steps *s, ot_id v, uint32_t place);

#endif
