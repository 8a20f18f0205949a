/* The table of operators (ops.def) is one with what uses it: every row has a shape rule, a
 * relation and a kernel, and its columns do not contradict one another.
 * tests/oracle/ops_table.py compares rows with the schemas of the onnx package.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ops/access.h"
#include "ops/shape.h"
#include "tk/planmem/planmem.h"

#ifdef OT_ENGINE
#include "engine/core/engine.h"
static bool has_kernel(ot_op op) { return ot_op_reference(op) != NULL; }
#else
static bool has_kernel(ot_op op) { return op != OT_OP_OPAQUE; }
#endif

static bool is_control(ot_op op) { return op == OT_OP_If || op == OT_OP_Loop || op == OT_OP_Scan; }

/* Small letters, as kernels spell operators. */
static void lower(const char *name, char out[64])
{
    size_t k = 0;
    for (; name[k] && k < 63; k++)
        out[k] = (char)(name[k] >= 'A' && name[k] <= 'Z' ? name[k] - 'A' + 'a' : name[k]);
    out[k] = 0;
}

static void rows_are_complete(void **state)
{
    (void)state;
    for (int k = OT_OP_OPAQUE + 1; k < OT_OP_COUNT; k++) {
        ot_op op = (ot_op)k;
        const ot_op_row *r = ot_op_row_of(op);
        if (ot_op_find(r->name) != op) fail_msg("%s: two rows have this name", r->name);
        if ((ot_shape_rule_of(op) != NULL) == is_control(op))
            fail_msg("%s: a shape rule, but for control flow", r->name);
        bool cut = r->access != OT_ACC_BARRIER && r->access != OT_ACC_SHAPE;
        if ((ot_access_table(r->access) != NULL) != cut)
            fail_msg("%s: its relation is not implemented", r->name);
        if (!has_kernel(op)) fail_msg("%s: no reference kernel", r->name);
    }
}

static void columns_agree(void **state)
{
    (void)state;
    for (int k = OT_OP_OPAQUE + 1; k < OT_OP_COUNT; k++) {
        ot_op op = (ot_op)k;
        const ot_op_row *r = ot_op_row_of(op);
        char name[64];
        lower(r->name, name);
        if (r->min_in > r->max_in || r->max_out < 1) fail_msg("%s: arity", r->name);
        bool product = r->cost == OT_COST_CONV ||
                       (r->cost == OT_COST_GEMM && op != OT_OP_Einsum && op != OT_OP_Attention);
        if ((r->weights > 0) != product || (product && r->weights >= r->max_in))
            fail_msg("%s: weights", r->name);
        if (r->access == OT_ACC_POINTWISE && r->place == OT_OVER_NONE)
            fail_msg("%s: element-wise, but not in place", r->name);
        if (r->access == OT_ACC_RESHAPE && !ot_op_is_view(op))
            fail_msg("%s: a reshape is a view", r->name);
        if (ot_op_is_view(op) && r->cost != OT_COST_FREE)
            fail_msg("%s: a view costs nothing", r->name);
        for (uint32_t in = 0; in < 4; in++) {
            if (ot_op_over(op, in) && in >= r->max_in)
                fail_msg("%s: no input %u to take the place of", r->name, in);
            if (ot_op_over(op, in) != ot_in_place_rule(name, in, false))
                fail_msg("%s, input %u: kernels say otherwise", r->name, in);
        }
    }
}

/* What no row has: any operands, never cut, never in place. */
static void opaque_promises_nothing(void **state)
{
    (void)state;
    const ot_op_row *r = ot_op_row_of(OT_OP_OPAQUE);
    assert_ptr_equal(ot_op_row_of(OT_OP_COUNT), r);
    assert_int_equal(r->access, OT_ACC_BARRIER);
    assert_int_equal(r->max_in, OT_OP_MANY);
    assert_false(ot_op_over(OT_OP_OPAQUE, 0));
    assert_null(ot_shape_rule_of(OT_OP_OPAQUE));
    assert_null(ot_shape_rule_of(OT_OP_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(columns_agree),
        cmocka_unit_test(opaque_promises_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
