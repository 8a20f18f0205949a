/* Shape inference: bindings, stated shapes, constants, and the version differences of operators.
 *
 * Expected shapes come from the ONNX operator specification, worked out by hand;
 * tests/oracle/shapes.py holds the same code against ONNX Runtime at large.
 */
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
static ot_model *fresh(int32_t opset)
{
    diag = (ot_diag){.status = OT_OK};
    ot_model *m = ot_model_new(&diag);
    assert_non_null(m);
    m->opset = opset;
    m->ir_version = 9;
    return m;
}

static ot_id input(ot_model *m, const char *name, ot_dtype t, const int64_t *d, int32_t rank)
{
    ot_graph *g = m->graph;
    ot_id v = ot_value_new(g, name, t, rank, d);
    assert_int_not_equal(v, OT_NONE);
    g->values[v].is_input = true;
    g->values[v].is_tensor = true;
    return v;
}

static ot_id value(ot_model *m, const char *name)
{
    ot_id v = ot_value_new(m->graph, name, OT_DT_UNKNOWN, -1, NULL);
    assert_int_not_equal(v, OT_NONE);
    m->graph->values[v].is_tensor = true;
    return v;
}

static ot_id ints(ot_model *m, const char *name, const int64_t *d, int32_t n)
{
    int64_t dims[1] = {n};
    ot_id v = ot_const_i64(m->graph, name, d, 1, dims);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static ot_id scalar(ot_model *m, const char *name, int64_t x)
{
    ot_id v = ot_const_i64(m->graph, name, &x, 0, NULL);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

static ot_id floats(ot_model *m, const char *name, const float *d, int32_t rank,
                    const int64_t *dims)
{
    ot_id v = ot_const_f32(m->graph, name, d, rank, dims);
    assert_int_not_equal(v, OT_NONE);
    return v;
}

/* A node with up to four inputs and one output named `out`; its value is returned. */
static ot_id op(ot_model *m, const char *type, const char *out, const ot_id *in, uint32_t n_in,
                const ot_attr *a, uint32_t n_a)
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

static void assert_shape(const ot_model *m, ot_id id, const int64_t *d, int32_t rank)
{
    const ot_value *v = &m->graph->values[id];
    if (v->rank != rank)
        fail_msg("%s has rank %d, expected %d (%s)", v->name, v->rank, rank, diag.message);
    for (int32_t k = 0; k < rank; k++)
        if (v->dims[k] != d[k])
            fail_msg("%s dim %d is %lld, expected %lld", v->name, k, (long long)v->dims[k],
                     (long long)d[k]);
}

static void infer(ot_model *m)
{
    if (ot_infer_shapes(m->graph, NULL, 0) != OT_OK) fail_msg("%s", diag.message);
}

static void assert_refused(ot_model *m, const char *says)
{
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_E_INPUT);
    if (strstr(diag.message, says) == NULL || strstr(diag.message, "the_node") == NULL)
        fail_msg("message: %s", diag.message);
    ot_model_free(m);
}

/* ---- bindings ---- */

static void test_binding(void **state)
{
    (void)state;
    ot_model *m = fresh(17);
    ot_id x = input(m, "x", OT_F32, DIMS(U, 3, U, U)), y = OP(m, "Relu", "y", x);
    ot_shape_binding b = {"x", 4, (const int64_t[]){2, 3, 8, 9}, false, NULL};
    assert_int_equal(ot_infer_shapes(m->graph, &b, 1), OT_OK);
    assert_shape(m, y, DIMS(2, 3, 8, 9));
    assert_int_equal(m->graph->values[y].dtype, OT_F32);
    assert_true(m->graph->props & OT_P_SHAPES);
    ot_model_free(m);
}

static void refuse_binding(ot_shape_binding b, const char *says)
{
    ot_model *m = fresh(17);
    ot_id x = input(m, "x", OT_F32, DIMS(U, 3, U, U));
    OP(m, "Relu", "y", x);
    assert_int_equal(ot_infer_shapes(m->graph, &b, 1), OT_E_USAGE);
    if (strstr(diag.message, says) == NULL) fail_msg("message: %s", diag.message);
    ot_model_free(m);
}

static void test_binding_refused(void **state)
{
    (void)state;
    refuse_binding((ot_shape_binding){"z", 1, (const int64_t[]){2}, false, NULL},
                   "no input of that name");
    refuse_binding((ot_shape_binding){"y", 1, (const int64_t[]){2}, false, NULL},
                   "no input of that name");
    refuse_binding((ot_shape_binding){"x", 3, (const int64_t[]){1, 3, 8}, false, NULL},
                   "[?,3,?,?]");
    refuse_binding((ot_shape_binding){"x", 4, (const int64_t[]){1, 4, 8, 8}, false, NULL},
                   "dim 1 is 4");
    refuse_binding((ot_shape_binding){"x", 4, (const int64_t[]){-5, 3, 8, 8}, false, NULL},
                   "no extent");
}

/* ---- what the file states ---- */

static void test_stated_fills_unknown(void **state)
{
    (void)state;
    ot_model *m = fresh(17);
    ot_id x = input(m, "x", OT_F32, DIMS(2, 4)), y = OP(m, "MadeUp", "y", x),
          z = OP(m, "Relu", "z", y);
    assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){5, 7}), OT_OK);
    m->graph->values[y].dtype = OT_F16;
    infer(m);
    assert_shape(m, z, DIMS(5, 7));
    assert_int_equal(m->graph->values[z].dtype, OT_F16);
    ot_model_free(m);
}

static void test_stated_contradiction(void **state)
{
    (void)state;
    ot_model *m = fresh(17);
    ot_id x = input(m, "x", OT_F32, DIMS(2, 4)), y = OP(m, "Relu", "y", x);
    assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){1, 4}), OT_OK);
    infer(m);
    assert_shape(m, y, DIMS(2, 4));
    assert_non_null(strstr(m->unfollowed, "is taken as [2,4], not as [1,4]"));
    assert_int_equal(m->n_unfollowed, 1);
    assert_true(m->restated);
    infer(m); /* of what is known already, nothing is said again */
    assert_int_equal(m->n_unfollowed, 1);
    ot_model_free(m);
}

/* What is stated of a value that depends on free extents is of one size: it is free. Behind an
 * operator without a rule it counts, where all operands are known. */
static void test_stale_where_free(void **state)
{
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        ot_model *m = fresh(17);
        ot_id x = input(m, "x", OT_F32, DIMS(fixed ? 1 : U, 4)), y = OP(m, "Relu", "y", x);
        ot_id z = OP(m, "NoSuchOperator", "z", y);
        assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){1, 4}), OT_OK);
        assert_int_equal(ot_value_set_shape(m->graph, z, 2, (const int64_t[]){1, 9}), OT_OK);
        infer(m);
        assert_shape(m, y, DIMS(fixed ? 1 : U, 4));
        if (fixed)
            assert_shape(m, z, DIMS(1, 9));
        else
            assert_int_equal(m->graph->values[z].rank, -1);
        assert_int_equal(m->n_unfollowed, fixed ? 0 : 2);
        ot_model_free(m);
    }
}

/* A binding makes shapes stated for another batch stale, not wrong. */
static void test_stale_under_binding(void **state)
{
    (void)state;
    ot_model *m = fresh(17);
    ot_id x = input(m, "x", OT_F32, DIMS(U, 4)), y = OP(m, "Relu", "y", x);
    assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){1, 4}), OT_OK);
    ot_shape_binding b = {"x", 2, (const int64_t[]){6, 4}, false, NULL};
    assert_int_equal(ot_infer_shapes(m->graph, &b, 1), OT_OK);
    assert_shape(m, y, DIMS(6, 4));
    ot_model_free(m);
}

/* Operators fed by a shape that only the file claims are not refused when it does not fit. */
static void test_no_error_on_hearsay(void **state)
{
    (void)state;
    ot_model *m = fresh(17);
    ot_id x = input(m, "x", OT_F32, DIMS(2, 4)), y = OP(m, "MadeUp", "y", x),
          z = OP(m, "Add", "z", x, y);
    assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){3, 9}), OT_OK);
    infer(m);
    assert_int_equal(m->graph->values[z].rank, -1);
    ot_model_free(m);
}

/* A rule that fails for what the file alone says is no error, but nothing is computed by what it
 * has not checked. */
static void test_unchecked_axis(void **state)
{
    (void)state;
    static const int64_t AXES[] = {-327683, -2, 1, INT64_MAX};
    for (size_t k = 0; k < sizeof AXES / sizeof *AXES; k++) {
        ot_model *m = fresh(17);
        ot_attr at[] = {ot_mk_int("axis", AXES[k])};
        ot_id x = input(m, "x", OT_F32, DIMS(2, 4)), s = OP(m, "Shape", "s", x),
              y = OP(m, "MadeUp", "y", x);
        m->graph->values[y].dtype = OT_I64;
        assert_int_equal(ot_value_set_shape(m->graph, y, 1, (const int64_t[]){1}), OT_OK);
        ot_id z = OPA(m, "Concat", "z", at, s, y);
        m->graph->values[z].dtype = OT_I64;
        assert_int_equal(ot_value_set_shape(m->graph, z, 1, (const int64_t[]){3}), OT_OK);
        infer(m);
        assert_null(m->graph->values[z].known);
        ot_model_free(m);
    }
}

/* ---- windows ---- */

static void pool_case(int64_t in, int64_t k, int64_t s, int64_t lo, int64_t hi, int64_t ceil_mode,
                      int64_t want)
{
    ot_model *m = fresh(19);
    ot_arena *a = m->arena;
    ot_attr at[] = {ot_mk_ints(a, "kernel_shape", &k, 1), ot_mk_ints(a, "strides", &s, 1),
                    ot_mk_ints(a, "pads", (int64_t[]){lo, hi}, 2),
                    ot_mk_int("ceil_mode", ceil_mode)};
    ot_id x = input(m, "x", OT_F32, DIMS(1, 2, in)), y = OPA(m, "MaxPool", "y", at, x);
    infer(m);
    assert_shape(m, y, DIMS(1, 2, want));
    ot_model_free(m);
}

static void test_pool_ceil(void **state)
{
    (void)state;
    pool_case(7, 2, 2, 0, 0, 0, 3);
    pool_case(7, 2, 2, 0, 0, 1, 4);
    pool_case(5, 2, 3, 0, 1, 1, 2); /* a third window would start in the end padding */
    pool_case(5, 2, 2, 1, 1, 1, 3);
    pool_case(112, 3, 2, 0, 0, 1, 56);
}

static ot_id conv_model(ot_model *m, const int64_t *w, int32_t w_rank, const ot_attr *at,
                        uint32_t n)
{
    ot_id x = input(m, "x", OT_F32, DIMS(1, 4, 9, 11)), wv = input(m, "w", OT_F32, w, w_rank);
    return op(m, "Conv", "y", (ot_id[]){x, wv}, 2, at, n);
}

static void test_conv(void **state)
{
    (void)state;
    ot_model *m = fresh(11);
    ot_attr at[] = {ot_mk_ints(m->arena, "strides", (int64_t[]){2, 3}, 2),
                    ot_mk_ints(m->arena, "pads", (int64_t[]){1, 0, 2, 1}, 4),
                    ot_mk_ints(m->arena, "dilations", (int64_t[]){2, 1}, 2)};
    ot_id y = conv_model(m, DIMS(6, 4, 3, 2), at, 3);
    infer(m);
    assert_shape(m, y, DIMS(1, 6, 4, 4)); /* (9+3-5)/2+1, (11+1-2)/3+1 */
    ot_model_free(m);

    m = fresh(11);
    ot_attr same[] = {ot_mk_str("auto_pad", "SAME_LOWER"),
                      ot_mk_ints(m->arena, "strides", (int64_t[]){2, 3}, 2)};
    y = conv_model(m, DIMS(6, 4, 3, 2), same, 2);
    infer(m);
    assert_shape(m, y, DIMS(1, 6, 5, 4));
    ot_model_free(m);
}

static void test_conv_refused(void **state)
{
    (void)state;
    ot_model *m = fresh(11);
    conv_model(m, DIMS(6, 4, 3), NULL, 0);
    assert_refused(m, "rank 4, weight has rank 3");
    m = fresh(11);
    conv_model(m, DIMS(6, 3, 3, 3), NULL, 0);
    assert_refused(m, "4 channels");
    m = fresh(11);
    conv_model(m, DIMS(6, 4, 3, 30), NULL, 0);
    assert_refused(m, "larger than the padded input");
    m = fresh(11);
    ot_attr stride[] = {ot_mk_ints(m->arena, "strides", (int64_t[]){0, 1}, 2)};
    conv_model(m, DIMS(6, 4, 3, 3), stride, 1);
    assert_refused(m, "strides[0] is 0");
    m = fresh(11);
    ot_attr pads[] = {ot_mk_ints(m->arena, "pads", (int64_t[]){1, 1}, 2)};
    conv_model(m, DIMS(6, 4, 3, 3), pads, 1);
    assert_refused(m, "pads has 2 values");
    m = fresh(11);
    ot_attr huge[] = {ot_mk_ints(m->arena, "dilations", (int64_t[]){INT64_MAX, 1}, 2)};
    conv_model(m, DIMS(6, 4, 3, 3), huge, 1);
    assert_refused(m, "dilations[0]");
    m = fresh(11);
    ot_attr group[] = {ot_mk_int("group", 0)};
    conv_model(m, DIMS(6, 4, 3, 3), group, 1);
    assert_refused(m, "group is 0");
}

static void test_conv_transpose(void **state)
{
    (void)state;
    ot_model *m = fresh(11);
    ot_attr at[] = {ot_mk_ints(m->arena, "strides", (int64_t[]){2, 3}, 2),
                    ot_mk_ints(m->arena, "output_padding", (int64_t[]){1, 0}, 2),
                    ot_mk_ints(m->arena, "pads", (int64_t[]){1, 0, 0, 1}, 4),
                    ot_mk_int("group", 2)};
    ot_id x = input(m, "x", OT_F32, DIMS(1, 4, 5, 6)), w = input(m, "w", OT_F32, DIMS(4, 3, 3, 3));
    ot_id y = OPA(m, "ConvTranspose", "y", at, x, w);
    infer(m);
    assert_shape(m, y, DIMS(1, 6, 11, 17)); /* 2*4+1+3-1, 3*5+3-1 */
    ot_model_free(m);
}

/* ---- shape arithmetic ---- */

/* Reshape to (batch, -1) computed from Shape with a free batch: the hole stays a hole. */
static void test_partial_chain(void **state)
{
    (void)state;
    ot_model *m = fresh(13);
    ot_id x = input(m, "x", OT_F32, DIMS(U, 8, 4));
    ot_id shape = OP(m, "Shape", "s", x),
          batch = OP(m, "Gather", "b", shape, ints(m, "i", (int64_t[]){0}, 1));
    ot_id chan = OP(m, "Gather", "c", shape, ints(m, "j", (int64_t[]){1}, 1));
    ot_id twice = OP(m, "Mul", "twice", chan, ints(m, "two", (int64_t[]){2}, 1));
    ot_attr axis[] = {ot_mk_int("axis", 0)};
    ot_id target = OPA(m, "Concat", "t", axis, batch, twice, ints(m, "rest", (int64_t[]){-1}, 1));
    ot_id y = OP(m, "Reshape", "y", x, target);
    infer(m);
    assert_shape(m, y, DIMS(U, 16, U));
    assert_null(m->graph->values[target].known);
    assert_non_null(m->graph->values[twice].known);
    assert_int_equal(m->graph->values[twice].known[0], 16);
    ot_model_free(m);
}

/* Resize sizes written with floats: Shape, Cast, Mul, Floor, Cast. */
static void test_float_chain(void **state)
{
    (void)state;
    ot_model *m = fresh(13);
    ot_id x = input(m, "x", OT_F32, DIMS(1, 2, 5, 7)), shape = OP(m, "Shape", "s", x);
    ot_attr to_f[] = {ot_mk_int("to", OT_F32)}, to_i[] = {ot_mk_int("to", OT_I64)},
            axis[] = {ot_mk_int("axis", 0)};
    ot_id hw = OP(m, "Slice", "hw", shape, ints(m, "two", (int64_t[]){2}, 1),
                  ints(m, "end", (int64_t[]){INT64_MAX}, 1));
    ot_id f = OPA(m, "Cast", "f", to_f, hw);
    ot_id scale = floats(m, "scale", (float[]){1.5f}, 0, NULL);
    ot_id sized = OPA(m, "Cast", "sized", to_i,
                      OP(m, "Floor", "fl", OP(m, "Mul", "mul", f, scale)));
    ot_id sizes = OPA(m, "Concat", "sizes", axis, ints(m, "nc", (int64_t[]){1, 2}, 2), sized);
    ot_id y = OP(m, "Resize", "y", x, OT_NONE, OT_NONE, sizes);
    infer(m);
    assert_shape(m, y, DIMS(1, 2, 7, 10));
    ot_model_free(m);
}

/* A constant of 16-bit floats, cast to float32: what exporters of half-precision models write
 * for the scales of a Resize. */
static ot_id cast_halves(ot_model *m, ot_dtype type, const uint16_t *bits, int32_t n)
{
    int64_t *dims = OT_NEW_N(m->arena, int64_t, 1);
    ot_tensor *t = OT_NEW(m->arena, ot_tensor);
    ot_attr to[] = {ot_mk_int("to", OT_F32)}, contents[] = {ot_mk_tensor("value", t)};
    dims[0] = n;
    *t = (ot_tensor){.dtype = type, .rank = 1, .dims = dims, .data = bits, .bytes = (size_t)n * 2};
    ot_id made = value(m, "halves"),
          node = ot_node_new(m->graph, &(ot_node_def){.op = "Constant",
                                                      .name = "halves",
                                                      .out = {&made, 1},
                                                      .attrs = {contents, 1}});
    assert_int_not_equal(node, OT_NONE);
    return OPA(m, "Cast", "scales", to, made);
}

static void test_half_precision(void **state)
{
    (void)state;
    /* 1 1 2 1.5 */
    static const uint16_t halves[] = {0x3c00, 0x3c00, 0x4000, 0x3e00},
                          brains[] = {0x3f80, 0x3f80, 0x4000, 0x3fc0};
    for (int k = 0; k < 2; k++) {
        ot_model *m = fresh(13);
        ot_id x = input(m, "x", OT_F32, DIMS(1, 2, 8, 8));
        ot_id y = OP(m, "Resize", "y", x, OT_NONE,
                     cast_halves(m, k == 0 ? OT_F16 : OT_BF16, k == 0 ? halves : brains, 4));
        infer(m);
        assert_shape(m, y, DIMS(1, 2, 16, 12));
        int8_t in[3], out[1];
        ot_why why;
        assert_true(ot_access_axis(m->graph, &m->graph->nodes[m->graph->values[y].producer], 0, 2,
                                   in, out, &why));
        ot_model_free(m);
    }
}

/* n / d, computed in a floating type. */
static ot_id quotient(ot_model *m, ot_dtype type, int64_t n, int64_t d)
{
    ot_attr to_f[] = {ot_mk_int("to", type)};
    ot_id a = OPA(m, "Cast", "a", to_f, scalar(m, "n", n)),
          b = OPA(m, "Cast", "b", to_f, scalar(m, "d", d));
    return OP(m, "Div", "q", a, b);
}

static void quotient_case(ot_dtype type, int64_t n, int64_t d, bool known, double want)
{
    ot_model *m = fresh(13);
    ot_id q = quotient(m, type, n, d);
    infer(m);
    const ot_value *v = &m->graph->values[q];
    assert_null(v->known);
    assert_int_equal(v->known_floats != NULL, known);
    if (known) assert_true(v->known_floats[0] == want);
    if (known) {
        const ot_tensor *t = ot_known_tensor(m->arena, v);
        float f;
        size_t count;
        assert_non_null(t);
        assert_true(ot_tensor_floats(t, &f, 1, &count) && count == 1 && f == (float)want);
    }
    ot_model_free(m);
}

/* A Cast rounds; a quotient that 16 bits do not hold is computed with and without rounding, so
 * it counts as unknown. */
static void test_half_rounding(void **state)
{
    (void)state;
    quotient_case(OT_F16, 3, 2, true, 1.5);
    quotient_case(OT_F16, -1, 1024, true, -0x1p-10);
    quotient_case(OT_F16, 1, 1 << 15, true, 0x1p-15); /* subnormal */
    quotient_case(OT_F16, 1, 3, false, 0);
    quotient_case(OT_F16, 2049, 1, true, 2048); /* to even */
    quotient_case(OT_F16, 2051, 1, true, 2052);
    quotient_case(OT_F16, 65519, 1, true, 65504);
    quotient_case(OT_F16, 65520, 1, true, (double)INFINITY);
    quotient_case(OT_BF16, 257, 1, true, 256);
    quotient_case(OT_BF16, 259, 2, true, 130);
    quotient_case(OT_F32, 1, 4, true, 0.25);
}

/* Clip of floats: bounds as operands, and as attributes before opset 11. */
static void test_float_clip(void **state)
{
    (void)state;
    for (int32_t opset = 10; opset <= 11; opset++) {
        ot_model *m = fresh(opset);
        ot_attr to_f[] = {ot_mk_int("to", OT_F32)},
                at[] = {ot_mk_float("min", 2), ot_mk_float("max", 5)};
        ot_id x = OPA(m, "Cast", "x", to_f, ints(m, "i", (int64_t[]){1, 3, 9}, 3)), y;
        if (opset < 11)
            y = OPA(m, "Clip", "y", at, x);
        else
            y = OP(m, "Clip", "y", x, floats(m, "lo", (float[]){2}, 0, NULL),
                   floats(m, "hi", (float[]){5}, 0, NULL));
        infer(m);
        const double *f = m->graph->values[y].known_floats;
        assert_non_null(f);
        assert_true(f[0] == 2 && f[1] == 3 && f[2] == 5);
        ot_model_free(m);
    }
}

static void arith_case(const char *type, int64_t a, int64_t b, bool known, int64_t want)
{
    ot_model *m = fresh(13);
    ot_id r = OP(m, type, "r", scalar(m, "a", a), scalar(m, "b", b));
    infer(m);
    const ot_value *v = &m->graph->values[r];
    if ((v->known != NULL) != known)
        fail_msg("%s %lld %lld: known %d", type, (long long)a, (long long)b, v->known != NULL);
    if (known && v->known[0] != want)
        fail_msg("%s %lld %lld = %lld", type, (long long)a, (long long)b, (long long)v->known[0]);
    assert_true(v->is_const);
    ot_model_free(m);
}

static void test_arithmetic(void **state)
{
    (void)state;
    arith_case("Add", 3, 4, true, 7);
    arith_case("Add", INT64_MAX, 1, false, 0);
    arith_case("Sub", 0, INT64_MIN, false, 0);
    arith_case("Mul", (int64_t)1 << 40, (int64_t)1 << 40, false, 0);
    arith_case("Div", -7, 2, true, -3); /* towards zero */
    arith_case("Div", 1, 0, false, 0);
    arith_case("Div", INT64_MIN, -1, false, 0);
    arith_case("Mod", -7, 3, true, 2); /* sign of the divisor */
    arith_case("Mod", 5, 0, false, 0);
    arith_case("Mod", INT64_MIN, -1, true, 0);
    arith_case("Max", -2, 5, true, 5);
    arith_case("Equal", 4, 4, true, 1);
    arith_case("Less", 4, 4, true, 0);
}

static void slice_case(int64_t dim, int64_t s, int64_t e, int64_t step, int64_t want, int64_t first)
{
    ot_model *m = fresh(13);
    int64_t data[16];
    for (int k = 0; k < 16; k++) data[k] = k * 10;
    ot_id r = OP(m, "Slice", "r", ints(m, "x", data, (int32_t)dim), ints(m, "s", &s, 1),
                 ints(m, "e", &e, 1), ints(m, "a", (int64_t[]){-1}, 1), ints(m, "p", &step, 1));
    infer(m);
    assert_shape(m, r, DIMS(want));
    const ot_value *v = &m->graph->values[r];
    assert_int_equal(v->known_n, want);
    if (want > 0) assert_int_equal(v->known[0], first * 10);
    ot_model_free(m);
}

static void test_slice(void **state)
{
    (void)state;
    slice_case(8, 2, 7, 2, 3, 2);
    slice_case(8, -3, INT64_MAX, 1, 3, 5);
    slice_case(8, 100, 200, 1, 0, 0);
    slice_case(8, -1, INT64_MIN, -1, 8, 7); /* reversed */
    slice_case(8, 6, 1, -2, 3, 6);
    slice_case(8, 0, 8, INT64_MAX, 1, 0);
    slice_case(8, 7, 0, INT64_MIN, 1, 7);
}

static void reshape_case(int32_t opset, const int64_t *t, int32_t n, int64_t allowzero,
                         const int64_t *want, int32_t rank)
{
    ot_model *m = fresh(opset);
    ot_attr at[] = {ot_mk_int("allowzero", allowzero)};
    ot_id x = input(m, "x", OT_F32, DIMS(2, 3, 4)),
          y = OPA(m, "Reshape", "y", at, x, ints(m, "t", t, n));
    if (rank < 0) {
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_E_INPUT);
    } else {
        infer(m);
        assert_shape(m, y, want, rank);
    }
    ot_model_free(m);
}

static void test_reshape(void **state)
{
    (void)state;
    reshape_case(14, DIMS(0, -1), 0, DIMS(2, 12));
    reshape_case(14, DIMS(6, 4, 1), 0, DIMS(6, 4, 1));
    reshape_case(14, DIMS(0, 0, 0), 0, DIMS(2, 3, 4));
    reshape_case(14, DIMS(0, 5), 1, NULL, -1); /* an empty tensor from 24 elements */
    reshape_case(14, DIMS(-1, -1), 0, NULL, -1);
    reshape_case(14, DIMS(5, -1), 0, NULL, -1);
    reshape_case(14, DIMS(1, 2, 3, 0), 0, NULL, -1); /* nothing to copy at axis 3 */
    reshape_case(14, DIMS(7), 0, NULL, -1);
}

/* Axes are an attribute before 13 (ReduceSum) or 18 (ReduceMean), an input after. */
static void test_axes_by_version(void **state)
{
    (void)state;
    for (int newer = 0; newer < 2; newer++) {
        ot_model *m = fresh(newer ? 18 : 11);
        int64_t ax[2] = {-1, 1};
        ot_attr axes = ot_mk_ints(m->arena, "axes", ax, 2), keep = ot_mk_int("keepdims", 0),
                at[] = {keep, axes};
        ot_id x = input(m, "x", OT_F32, DIMS(2, 3, 4)), in[2] = {x, ints(m, "ax", ax, 2)};
        ot_id sum = op(m, "ReduceSum", "sum", in, newer ? 2 : 1, at, newer ? 1 : 2);
        ot_id mean = op(m, "ReduceMean", "mean", in, newer ? 2 : 1, at, newer ? 1 : 2);
        ot_id un = op(m, "Unsqueeze", "un", in, newer ? 2 : 1, &axes, newer ? 0 : 1);
        infer(m);
        assert_shape(m, sum, DIMS(2));
        assert_shape(m, mean, DIMS(2));
        assert_shape(m, un, DIMS(2, 1, 3, 4, 1));
        ot_model_free(m);
    }
}

static void test_resize_policy(void **state)
{
    (void)state;
    for (int larger = 0; larger < 2; larger++) {
        ot_model *m = fresh(19);
        ot_attr at[] = {
            ot_mk_ints(m->arena, "axes", (int64_t[]){2, 3}, 2),
            ot_mk_str("keep_aspect_ratio_policy", larger ? "not_smaller" : "not_larger")};
        ot_id x = input(m, "x", OT_F32, DIMS(1, 1, 5, 7));
        ot_id y = OPA(m, "Resize", "y", at, x, OT_NONE, OT_NONE,
                      ints(m, "s", (int64_t[]){9, 16}, 2));
        infer(m);
        if (larger)
            assert_shape(m, y, DIMS(1, 1, 11, 16));
        else
            assert_shape(m, y, DIMS(1, 1, 9, 13));
        ot_model_free(m);
    }
}

/* ---- constants and robustness ---- */

static void test_const_flags(void **state)
{
    (void)state;
    ot_model *m = fresh(13);
    ot_id x = input(m, "x", OT_F32, DIMS(2, 2)),
          w = floats(m, "w", (float[]){1, 2, 3, 4}, 2, (int64_t[]){2, 2});
    ot_id o = floats(m, "o", (float[]){1, 2, 3, 4}, 2, (int64_t[]){2, 2});
    m->graph->values[o].is_input = m->graph->values[o].overridable = true;
    ot_id wt = OP(m, "Transpose", "wt", w), ot = OP(m, "Transpose", "ot", o),
          y = OP(m, "MatMul", "y", x, wt);
    ot_id shape = OP(m, "Shape", "s", x), random = op(m, "RandomNormalLike", "r", &w, 1, NULL, 0);
    infer(m);
    const ot_graph *g = m->graph;
    assert_true(g->values[w].is_const && g->values[wt].is_const);
    assert_true(g->nodes[g->values[wt].producer].is_static);
    assert_false(g->values[o].is_const || g->values[ot].is_const || g->values[y].is_const ||
                 g->values[random].is_const);
    assert_false(g->nodes[g->values[y].producer].is_static);
    assert_true(!g->values[shape].is_const && g->nodes[g->values[shape].producer].is_static);
    assert_shape(m, random, DIMS(2, 2));
    ot_model_free(m);
}

static void test_hostile(void **state)
{
    (void)state;
    ot_model *m = fresh(13);
    ot_id x = input(m, "x", OT_F32, DIMS((int64_t)1 << 47, (int64_t)1 << 47));
    ot_attr at[] = {ot_mk_int("axis", 1)};
    OPA(m, "Concat", "y", at, x, x, x);
    assert_refused(m, "larger than 2^48");

    m = fresh(13);
    x = input(m, "x", OT_F32, DIMS((int64_t)1 << 47, (int64_t)1 << 47, 1));
    ot_id flat = OP(m, "Flatten", "f", x);
    ot_id size = OP(m, "Size", "n", x);
    infer(m);
    assert_shape(m, flat, DIMS((int64_t)1 << 47, (int64_t)1 << 47));
    assert_null(m->graph->values[size].known); /* 2^94 */
    ot_model_free(m);

    m = fresh(13);
    input(m, "x", OT_F32, DIMS(INT64_MAX, 2));
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_E_INPUT);
    ot_model_free(m);

    m = fresh(13);
    x = input(m, "x", OT_F32, DIMS(1));
    OP(m, "Unsqueeze", "y", x,
       ints(m, "a", (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 16));
    assert_refused(m, "rank 17");

    m = fresh(13);
    x = input(m, "x", OT_F32, DIMS(4, 4));
    OP(m, "Conv", "y", x);
    assert_refused(m, "needs 2");
}

static void test_broadcast_refused(void **state)
{
    (void)state;
    ot_model *m = fresh(13);
    OP(m, "Add", "y", input(m, "a", OT_F32, DIMS(2, 3)), input(m, "b", OT_F32, DIMS(2, 2)));
    assert_refused(m, "does not broadcast");
    m = fresh(13);
    OP(m, "MatMul", "y", input(m, "a", OT_F32, DIMS(2, 3)), input(m, "b", OT_F32, DIMS(2, 3)));
    assert_refused(m, "3 elements");
}

static void test_alike(void **state)
{
    (void)state;
    ot_model *m = fresh(28);
    ot_id y = OP(m, "SwiGLU", "y", input(m, "a", OT_F32, DIMS(2, OT_DIM_UNKNOWN)),
                 input(m, "b", OT_F32, DIMS(OT_DIM_UNKNOWN, 3)));
    infer(m);
    assert_shape(m, y, DIMS(2, 3));
    ot_model_free(m);
    m = fresh(28);
    /* it does not broadcast */
    OP(m, "SwiGLU", "y", input(m, "a", OT_F32, DIMS(2, 3)), input(m, "b", OT_F32, DIMS(1, 3)));
    assert_refused(m, "another shape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_binding_refused),
        cmocka_unit_test(test_stated_fills_unknown),
        cmocka_unit_test(test_stated_contradiction),
        cmocka_unit_test(test_stale_where_free),
        cmocka_unit_test(test_stale_under_binding),
        cmocka_unit_test(test_no_error_on_hearsay),
        cmocka_unit_test(test_unchecked_axis),
        cmocka_unit_test(test_pool_ceil),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_refused),
        cmocka_unit_test(test_conv_transpose),
        cmocka_unit_test(test_partial_chain),
        cmocka_unit_test(test_float_chain),
        cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_float_clip),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_axes_by_version),
        cmocka_unit_test(test_resize_policy),
        cmocka_unit_test(test_const_flags),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_broadcast_refused),
        cmocka_unit_test(test_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
