/* Shape inference: bindings, stated shapes, constants, and the version differences of operators.
 *
 * Expected shapes come from the ONNX operator specification, worked out by hand;
 * tests/oracle/shapes.py holds the same code against ONNX Runtime at large.
 */
#include "shape_check.h"

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

/* An operator beside ops.def whose extents an operand says: stated ones are of one run. */
static void test_stated_behind_an_operand(void **state)
{
    (void)state;
    ot_model *m = fresh(18);
    ot_id x = input(m, "x", OT_F32, DIMS(6, 8)), to = input(m, "to", OT_I64, DIMS(2)),
          y = OP(m, "CenterCropPad", "y", x, to);
    assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){4, 5}), OT_OK);
    infer(m);
    assert_shape(m, y, DIMS(U, U));
    assert_int_equal(m->n_unfollowed, 1);
    ot_model_free(m);
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

/* Operators fed by a shape that only the file claims are not refused when it does not fit; a text,
 * which states the results of ours, says nothing of what cannot be computed either. */
static void test_no_error_on_hearsay(void **state)
{
    (void)state;
    for (int is_text = 0; is_text < 2; is_text++) {
        ot_model *m = fresh(17);
        m->shaped = is_text != 0;
        ot_id x = input(m, "x", OT_F32, DIMS(2, 4)), y = OP(m, "MadeUp", "y", x),
              z = OP(m, "Add", "z", x, y);
        assert_int_equal(ot_value_set_shape(m->graph, y, 2, (const int64_t[]){3, 9}), OT_OK);
        assert_int_equal(ot_value_set_shape(m->graph, z, 2, (const int64_t[]){3, 9}), OT_OK);
        infer(m);
        assert_int_equal(m->graph->values[z].rank, -1);
        ot_model_free(m);
    }
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
        cmocka_unit_test(test_stated_behind_an_operand),
        cmocka_unit_test(test_stale_where_free),
        cmocka_unit_test(test_stale_under_binding),
        cmocka_unit_test(test_no_error_on_hearsay),
        cmocka_unit_test(test_unchecked_axis),
        cmocka_unit_test(test_pool_ceil),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_refused),
        cmocka_unit_test(test_conv_transpose),
        cmocka_unit_test(test_const_flags),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_broadcast_refused),
        cmocka_unit_test(test_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
