/* One graph lowered and planned: what the engine merges is what the cost model believes. */
#ifndef TEST_GROUPS_CHECK_H
#define TEST_GROUPS_CHECK_H

#include "engine_check.h"

#include "ops/ops.h"
#include "merged.h"

/* The sequence of m, with the engine's costs. */
static inline void cost_in_engine(ot_model *m, ot_arena *a, ot_seq *s)
{
    ot_diag d = {0};
    ot_target t;
    assert_non_null(a);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    ot_target_set_engine(&t);
    assert_int_equal(ot_seq_build(m->graph, a, s), OT_OK);
    assert_int_equal(ot_cost_fill(s, &t), OT_OK);
}

/* Groups of two nodes and more are the same on both sides; nodes in the first of them. */
static inline uint32_t first_group(const char *graph)
{
    bench b;
    ot_diag d = {0};
    ot_seq s;
    ot_model *m = text_model(graph, &d);
    ot_arena *a = ot_arena_new();
    uint32_t n = 0;
    cost_in_engine(m, a, &s);
    open_text(&b, graph);
    if (merged_differences(b.s, &s, NULL)) {
        (void)merged_differences(b.s, &s, stderr);
        fail_msg("the engine and the planner merge different nodes of\n%s", graph);
    }
    for (uint32_t p = 0; p < s.n && n < 2; p++)
        if (merged_group(&s, p) == p) n = merged_size(&s, p);
    close_bench(&b);
    ot_arena_free(a);
    ot_model_free(m);
    return n < 2 ? 0 : n;
}

static inline void assert_same_groups(const char *graph) { (void)first_group(graph); }

#endif
