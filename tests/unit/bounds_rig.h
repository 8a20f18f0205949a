/* A model of a range of sizes, planned for its largest, for the tests of src/select/bounds. */
#ifndef TEST_BOUNDS_RIG_H
#define TEST_BOUNDS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/dynamic_dims.h"
#include "tiling/lower/lowering.h"
#include "select/bounds/size_bounds.h"

static ot_diag diag;

/* A model whose input x is [?,8,?,?] or [1,8,?,?], planned for the largest size of a range. */
typedef struct ranged {
    ot_model *file, *planned, *large;
    ot_target target;
    ot_plan *plan;
    ot_size_var dims[4];
    ot_size_range range;
} ranged;

static inline ot_model *bound_copy(const ranged *r, const int64_t *dims, ot_status want)
{
    ot_model *m = NULL;
    const ot_shape_binding b = {"x", 4, dims, false, "--design"};
    ot_diag aside = {0};
    assert_int_equal(ot_model_clone(r->file, &m), OT_OK);
    m->diag = &aside;
    ot_status s = ot_infer_shapes(m->graph, &b, 1);
    if (s == OT_OK) s = ot_assure(m->graph, OT_P_ORDER | OT_P_USES);
    m->diag = &diag;
    if (want == OT_OK && s != OT_OK) fail_msg("%s", aside.message);
    if (s == OT_OK) return m;
    ot_model_free(m);
    return NULL;
}

static const ot_plan_options TILES = {.goal = OT_GOAL_MEMORY,
                                      .max_slowdown = 1000,
                                      .force = true,
                                      .tie_break = true},
                             STREAMS = {.goal = OT_GOAL_MEMORY,
                                        .max_slowdown = 1000,
                                        .force_form = OT_FORM_STREAM,
                                        .tie_break = true};

static inline bool ranged_new(ranged *r, const char *body, const ot_size_var dims[4], int64_t l2,
                              const ot_plan_options *options)
{
    static char text[16384];
    *r = (ranged){0};
    diag = (ot_diag){0};
    memcpy(r->dims, dims, sizeof r->dims);
    r->range = (ot_size_range){"x", 4, r->dims};
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[%s,8,?,?]\n  init %%w : "
             "float32[8,8,3,3] = random 3\n"
             "  init %%u : float32[8,8,2,2] = random 4\n  init %%z : float32[8,8,4,4] = random 4\n "
             " init %%c : float32[8,16,1,1] = random 5\n"
             "  init %%s : float32[4] = [1, 1, 2, 2]\n%s}\n",
             dims[0].hi == 1 ? "1" : "?", body);
    if (ot_text_parse(text, strlen(text), &diag, &r->file) != OT_OK)
        fail_msg("%s\n%s", diag.message, text);
    if (ot_infer_shapes(r->file->graph, NULL, 0) != OT_OK) fail_msg("%s", diag.message);
    assert_int_equal(ot_assure(r->file->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    const int64_t upper[] = {dims[0].hi, dims[1].hi, dims[2].hi, dims[3].hi};
    const int64_t large[] = {dims[0].hi == 1 ? 1 : 8 * dims[0].hi, dims[1].hi, 8 * dims[2].hi,
                             8 * dims[3].hi};
    r->planned = bound_copy(r, upper, OT_E_INPUT);
    if (!r->planned) return false;
    r->large = bound_copy(r, large, OT_E_INPUT);
    assert_int_equal(
        ot_dynamic_dims_set(r->file->graph, r->planned->graph, r->large ? r->large->graph : NULL),
        OT_OK);
    ot_dynamic_dims_bounded(r->planned->graph);
    assert_int_equal(ot_target_load("cpu-generic", 1, &diag, &r->target), OT_OK);
    ot_target_set_l2(&r->target, l2);
    if (ot_plan_graph(r->planned->graph, &r->target, options, &r->plan) != OT_OK)
        fail_msg("%s", diag.message);
    return true;
}

static inline void ranged_free(ranged *r)
{
    if (r->plan) ot_plan_free(r->plan);
    ot_target_free(&r->target);
    ot_model_free(r->large);
    ot_model_free(r->planned);
    ot_model_free(r->file);
}

static inline ot_bounds_facts bound_of(const ranged *r, const ot_size_var dims[4], int64_t budget,
                                       ot_arena *a)
{
    const ot_size_range range = {"x", 4, dims};
    const ot_bounds_case c = {.file = r->file,
                              .planned = r->planned,
                              .plan = r->plan,
                              .target = &r->target,
                              .ranges = &range,
                              .n = 1,
                              .budget = budget,
                              .diag = &diag};
    ot_bounds_facts f;
    if (ot_bounds_compute(&c, a, &f) != OT_OK) fail_msg("%s", diag.message);
    return f;
}

#endif
