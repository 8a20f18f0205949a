/* Graphs tiled in memory by the planner, in the engine's form. */
#ifndef TEST_TILED_GRAPH_H
#define TEST_TILED_GRAPH_H

#include "select/search/plan_search.h"
#include "transform/transform.h"

/* Every region that may be cut is cut, for a cache of so many bytes. Returns the number of regions.
 */
static inline uint32_t tile_graph(ot_model *m, int64_t l2)
{
    ot_target target;
    ot_plan *plan = NULL;
    ot_plan_options o = {.force = true, .max_slowdown = 0.1};
    ot_graph *g = m->graph;
    bool ok = ot_infer_shapes(g, NULL, 0) == OT_OK &&
              ot_target_load("cpu-generic", 2, m->diag, &target) == OT_OK;
    if (!ok) fail_msg("%s", m->diag->message);
    ot_target_set_l2(&target, l2);
    ot_target_set_engine(&target);
    if (ot_plan_graph(g, &target, &o, &plan) != OT_OK) fail_msg("%s", m->diag->message);
    uint32_t n = plan->n_regions;
    if (n > 0 && (ot_fold_static(g, plan) != OT_OK || ot_transform_tiles(g, plan) != OT_OK ||
                  ot_check_tile_ops(g, NULL) != OT_OK))
        fail_msg("%s", m->diag->message);
    ot_plan_free(plan);
    return n;
}

#endif
