/* What nobody reads is not computed: which windows are left, and what stays whole. */
#include "shaped_model.h"

#include "transform/transform.h"

/* The model of this text, narrowed; values that it had keep their names. */
static ot_model *narrowed(const char *body, ot_narrowed *what, ot_diag *d)
{
    char text[4096];
    snprintf(text, sizeof text, "model ir 8 opset 17\ngraph g {\n%s}\n", body);
    ot_model *m = read_model(text, d);
    assert_int_equal(ot_narrow(m->graph, what), OT_OK);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    return m;
}

/* Extent of that axis of what holds the part of the value that is made. */
static int64_t extent(const ot_model *m, const char *name, int axis)
{
    char part[64];
    snprintf(part, sizeof part, "tile/part/%s", name);
    ot_id v = ot_value_find(m->graph, part);
    if (v == OT_NONE) v = ot_value_find(m->graph, name);
    assert_int_not_equal(v, OT_NONE);
    return m->graph->values[v].dims[axis];
}

/* Halos widen the window towards the input; at the end of the axis the padding stays. */
static void windows_widen_to_the_input(void **state)
{
    (void)state;
    ot_narrowed what;
    ot_diag d;
    ot_model *m = narrowed("  input %x : float32[1,2,100]\n  init %w : float32[2,2,3] = random 1\n"
                           "  init %s : int64[1] = [-1]\n  init %e : int64[1] = [1000]\n"
                           "  init %a : int64[1] = [2]\n"
                           "  %c1 = Conv(%x, %w) {pads = [1, 1]}\n  %r1 = Relu(%c1)\n"
                           "  %c2 = Conv(%r1, %w) {pads = [1, 1]}\n"
                           "  %y = Slice(%c2, %s, %e, %a)\n  output %y\n",
                           &what, &d);
    assert_int_equal(extent(m, "c2", 2), 1);
    assert_int_equal(extent(m, "r1", 2), 2);
    assert_int_equal(extent(m, "c1", 2), 2);
    assert_int_equal(extent(m, "x", 2), 3);
    assert_int_equal(extent(m, "y", 2), 1);
    assert_int_equal(what.n_nodes, 3);
    assert_int_equal(count_nodes(m->graph, OT_OP_Slice), 1); /* of the input */
    ot_model_free(m);
}

/* A value that is read whole is made whole; what is computed of a part of it is narrow. */
static void what_is_read_stays(void **state)
{
    (void)state;
    ot_narrowed what;
    ot_diag d;
    ot_model *m = narrowed("  input %x : float32[1,64,40]\n  init %i : int64[] = [5]\n"
                           "  %r = Relu(%x)\n  %t = Tanh(%r)\n  %e = Exp(%t)\n"
                           "  %y = Gather(%e, %i) {axis = 1}\n  output %r\n  output %y\n",
                           &what, &d);
    assert_int_equal(m->graph->values[ot_value_find(m->graph, "r")].dims[1], 64);
    assert_int_equal(extent(m, "r", 1), 1); /* a Slice of it */
    assert_int_equal(extent(m, "t", 1), 1);
    assert_int_equal(extent(m, "e", 1), 1);
    assert_int_equal(what.n_nodes, 2);
    ot_model_free(m);
}

/* Operands of a Concat that nobody reads go with all that makes them; their shapes are constants.
 */
static void unread_operands_go(void **state)
{
    (void)state;
    ot_narrowed what;
    ot_diag d;
    ot_model *m = narrowed("  input %x : float32[4,32]\n  init %z : int64[1] = [4]\n"
                           "  init %e : int64[1] = [8]\n  init %a : int64[1] = [0]\n"
                           "  %p = Exp(%x)\n  %q = Tanh(%x)\n  %shape = Shape(%p)\n"
                           "  %c = Concat(%p, %q) {axis = 0}\n  %s = Slice(%c, %z, %e, %a)\n"
                           "  %y = Reshape(%s, %shape)\n  output %y\n",
                           &what, &d);
    assert_int_equal(count_nodes(m->graph, OT_OP_Exp), 0);
    assert_int_equal(count_nodes(m->graph, OT_OP_Concat), 0);
    assert_int_equal(count_nodes(m->graph, OT_OP_Shape), 0);
    assert_int_equal(count_nodes(m->graph, OT_OP_Tanh), 1);
    assert_non_null(m->graph->values[ot_value_find(m->graph, "shape")].init);
    ot_model_free(m);
}

/* Less than an eighth is left out: nothing is changed. */
static void small_crops_stay(void **state)
{
    (void)state;
    ot_narrowed what;
    ot_diag d;
    ot_model *m = narrowed("  input %x : float32[1,80]\n  init %s : int64[1] = [1]\n"
                           "  init %e : int64[1] = [75]\n  init %a : int64[1] = [1]\n"
                           "  %r = Exp(%x)\n  %t = Tanh(%r)\n  %y = Slice(%t, %s, %e, %a)\n"
                           "  output %y\n",
                           &what, &d);
    assert_int_equal(what.n_nodes, 0);
    assert_int_equal(ot_value_find(m->graph, "tile/part/t"), OT_NONE);
    ot_model_free(m);
}

/* An operator that needs the axis whole: what is before it stays, what is behind it is narrow. */
static void windows_end_at_whole_axes(void **state)
{
    (void)state;
    ot_narrowed what;
    ot_diag d;
    ot_model *m = narrowed("  input %x : float32[8,80]\n  init %s : int64[1] = [0]\n"
                           "  init %e : int64[1] = [2]\n  init %a : int64[1] = [1]\n"
                           "  %r = Exp(%x)\n  %t = Softmax(%r) {axis = 1}\n  %u = Tanh(%t)\n"
                           "  %y = Slice(%u, %s, %e, %a)\n  output %y\n",
                           &what, &d);
    assert_int_equal(extent(m, "r", 1), 80);
    assert_int_equal(extent(m, "u", 1), 2);
    assert_int_equal(what.n_nodes, 1);
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_widen_to_the_input), cmocka_unit_test(what_is_read_stays),
        cmocka_unit_test(unread_operands_go),         cmocka_unit_test(small_crops_stay),
        cmocka_unit_test(windows_end_at_whole_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
