/* Small graphs of which shapes are inferred, operator by operator. */
#ifndef OT_SHAPE_CHECK_H
#define OT_SHAPE_CHECK_H

#include "ops/ops.h"
#include "onnx/import/model_io.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define U OT_DIM_UNKNOWN
#define DIMS(...)                   \
    (const int64_t[]){__VA_ARGS__}, \
        (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static ot_diag diag;

/* A graph under construction: one model per test. */
static inline ot_model *fresh(int32_t opset)
{
    diag = (ot_diag){.status = OT_OK};
    ot_model *m = ot_model_new(&diag);
    assert_non_null(m);
    m->opset = opset;
    m->ir_version = 9;
    return m;
}

static inline ot_id input(ot_model *m, const char *name, ot_dtype t, const int64_t *d, int32_t rank)
{
    ot_graph *g = m->graph;
    ot_id v = ot_value_new(g, name, t, rank, d);
    assert_int_not_equal(v, OT_NONE);
    g->values[v].is_input = true;
    g->values[v].is_tensor = true;
    return v;
}

static inline ot_id value(ot_model *m, const char *name)
{
    ot_id v = ot_value_new(m->graph, name, OT_DT_UNKNOWN, -1, NULL);
    assert_int_not_equal(v, OT_NONE);
    m->graph->values[v].is_tensor = true;
    return v;
}

static inline ot_id ints(ot_model *m, const char *name, const int64_t *d, int32_t n)
{
    int64_t dims[1] = {n};
    ot_id v = ot_const_i64(m->graph, name, d, 1, dims);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static inline ot_id floats(ot_model *m, const char *name, const float *d, int32_t rank,
                           const int64_t *dims)
{
    ot_id v = ot_const_f32(m->graph, name, d, rank, dims);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

/* A node with up to four inputs and one output named `out`; its value is returned. */
static inline ot_id op(ot_model *m, const char *type, const char *out, const ot_id *in,
                       uint32_t n_in, const ot_attr *a, uint32_t n_a)
{
    ot_id v = value(m, out);
    assert_int_not_equal(ot_node_new(m->graph, &(ot_node_def){.op = type,
                                                              .name = "the_node",
                                                              .in = {in, n_in},
                                                              .out = {&v, 1},
                                                              .attrs = {a, n_a}}),
                         OT_NONE);
    return v;
}
#define OP(m, type, out, ...)                                                                      \
    op(m, type, out, (const ot_id[]){__VA_ARGS__}, sizeof((ot_id[]){__VA_ARGS__}) / sizeof(ot_id), \
       NULL, 0)
#define OPA(m, type, out, attrs, ...)                                                              \
    op(m, type, out, (const ot_id[]){__VA_ARGS__}, sizeof((ot_id[]){__VA_ARGS__}) / sizeof(ot_id), \
       attrs, sizeof(attrs) / sizeof((attrs)[0]))

static inline void assert_shape(const ot_model *m, ot_id id, const int64_t *d, int32_t rank)
{
    const ot_value *v = &m->graph->values[id];
    if (v->rank != rank)
        fail_msg("%s has rank %d, expected %d (%s)", v->name, v->rank, rank, diag.message);
    for (int32_t k = 0; k < rank; k++)
        if (v->dims[k] != d[k])
            fail_msg("%s dim %d is %lld, expected %lld", v->name, k, (long long)v->dims[k],
                     (long long)d[k]);
}

static inline void infer(ot_model *m)
{
    if (ot_infer_shapes(m->graph, NULL, 0) != OT_OK) fail_msg("%s", diag.message);
}

#endif
