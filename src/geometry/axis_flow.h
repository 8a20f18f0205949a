/* One axis of one input and all that moves with it, for stages that write models by it: which axis
 * of each value follows, the relation of every node as a formula, and how long values are for
 * inputs of any extent.
 *
 * What is said holds wherever rows lie and whatever the extent: whoever cuts the axis in equal
 * parts may write one node for all of them. LSTM, GRU, RNN and CumSum count as nodes that make row
 * by row (ot_runs_along): their state is the caller's.
 */
#ifndef OT_GEOMETRY_AXIS_FLOW_H
#define OT_GEOMETRY_AXIS_FLOW_H

#include "geometry_internal.h"

/* The reference is the input with the most rows along the axis. */
typedef struct ot_axis_flow {
    ot_arena *arena;     /* owns what is below, but the models */
    ot_model *model;     /* a copy at a large size; ids are those of the file's graph */
    const ot_spread *s;  /* of its graph */
    const ot_flow *flow; /* maps of nodes, scales of values, alignment, extent of the reference */
    uint32_t n_inputs;
    const ot_shape_binding *bind; /* [n_inputs] the size of `model`; dims may be changed */
    int64_t *const *dims;         /* [n_inputs] of bind, to be changed */
    const ot_id *input;           /* [n_inputs] graph inputs that have to be given */
    const int64_t *extent; /* [n_inputs] rows in the file or asked for; 0: it does not move */
    uint32_t first, named; /* of these: the reference, and the one that was asked for */
    /* [flow->align] by the reference's extent modulo align: [n_values] extents along the axis, for
     * a reference of flow->extent - flow->extent % align + align + the remainder rows. NULL: the
     * model does not take such an extent, or would pad otherwise, or it was not looked at */
    const int64_t *const *made;
    bool all_seen; /* every remainder was looked at */
    void *finding; /* private */
} ot_axis_flow;

/* Of `axis` of the input of that name, at the sizes in bind ([n]; as of ot_geometry_find). The
 * model is not changed, and must outlive the flow. Caller frees, also after failure. Fails:
 * OT_E_USAGE (no such input or axis, a size that the model does not take), OT_E_INPUT (a node has
 * no such relation: named), OT_E_NOMEM. */
ot_status ot_axis_flow_find(const ot_model *model, const ot_shape_binding *bind, size_t n,
                            const char *input, int64_t axis, ot_axis_flow *out) OT_MUST_USE;
void ot_axis_flow_free(ot_axis_flow *f);

#endif
