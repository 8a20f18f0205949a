/* A part of a graph that the provider took: planned for the engine, and run. Private to src/ort. */
#ifndef OT_ORT_EP_PART_H
#define OT_ORT_EP_PART_H

#include "ep_model.h"
#include "ort_run.h"

/* What a session asks of the provider. */
typedef struct ep_settings {
    onnx_tile_goal goal;
    int64_t budget;      /* 0: none */
    double max_slowdown; /* percent; negative: as without the option */
    uint32_t threads;    /* 0: the runtime's */
    uint32_t sizes;      /* plans that are kept of a part with free dimensions */
} ep_settings;

/* The part of graph g that `node` stands for; planned here and now where its inputs' dimensions are
 * all known. *out is released by ep_part_free. */
ort_status *ep_part_new(const ep_tables *t, const ep_settings *s, const ort_graph *g,
                        const ort_node *node, ort_compute_info **out);
void ep_part_free(ort_compute_info *info); /* accepts NULL */

#endif
