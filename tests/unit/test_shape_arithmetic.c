/* Shape inference by arithmetic: what chains of Shape, Cast, Div, Slice, ... compute of extents,
 * and the operators that read it. Expected values are worked out by hand. */
#include "shape_check.h"

static ot_id scalar(ot_model *m, const char *name, int64_t x)
{
    ot_id v = ot_const_i64(m->graph, name, &x, 0, NULL);
    assert_int_not_equal(v, OT_NONE);
    return v;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partial_chain),   cmocka_unit_test(test_float_chain),
        cmocka_unit_test(test_half_precision),  cmocka_unit_test(test_half_rounding),
        cmocka_unit_test(test_float_clip),      cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_slice),           cmocka_unit_test(test_reshape),
        cmocka_unit_test(test_axes_by_version), cmocka_unit_test(test_resize_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
