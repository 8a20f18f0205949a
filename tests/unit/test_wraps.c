/* Circular padding moves to the front: how much of it, what stays, and what is left alone. */
#include "shaped_model.h"

#include "transform/transform.h"

#define HEAD                                                                           \
    "model ir 9 opset 19\ngraph g {\n  input %x : float32[1,2,64,8]\n"                 \
    "  init %w : float32[2,2,3,3] = random 1\n  init %p : int64[8] = [0, 0, 1, 1, 0, " \
    "0, 1, 1]\n"

static ot_model *moved(const char *body, uint32_t *n, ot_diag *d)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s}\n", HEAD, body);
    ot_model *m = read_model(text, d);
    assert_int_equal(ot_move_wraps(m->graph, n), OT_OK);
    assert_int_equal(ot_verify(m->graph), OT_OK);
    return m;
}

/* Rows of the value that holds `name` now; -1: there is none. */
static int64_t rows(const ot_model *m, const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "tile/wrap/%s", name);
    const ot_id v = ot_value_find(m->graph, text);
    return v == OT_NONE ? -1 : m->graph->values[v].dims[2];
}

/* Three wraps of one row: the first wraps three, the others only columns. */
static void rows_add_up(void **state)
{
    (void)state;
    uint32_t n;
    ot_diag d;
    ot_model *m = moved("  %a = Pad(%x, %p) {mode = \"wrap\"}\n  %b = Conv(%a, %w)\n"
                        "  %c = Pad(%b, %p) {mode = \"wrap\"}\n  %e = Conv(%c, %w)\n"
                        "  %f = Pad(%e, %p) {mode = \"wrap\"}\n  %y = Conv(%f, %w)\n  output %y\n",
                        &n, &d);
    assert_int_equal(n, 2);
    assert_int_equal(rows(m, "a"), 64 + 6);
    assert_int_equal(rows(m, "b"), 64 + 4);
    assert_int_equal(rows(m, "e"), 64 + 2);
    assert_int_equal(count_nodes(m->graph, OT_OP_Pad), 3);
    ot_model_free(m);
}

/* An element-wise reader in between takes its own rows of what has more. */
static void readers_take_their_rows(void **state)
{
    (void)state;
    uint32_t n;
    ot_diag d;
    ot_model *m = moved("  %a = Pad(%x, %p) {mode = \"wrap\"}\n  %b = Conv(%a, %w)\n"
                        "  %c = Pad(%b, %p) {mode = \"wrap\"}\n  %e = Conv(%c, %w)\n"
                        "  %y = Add(%b, %e)\n  output %y\n  output %b\n",
                        &n, &d);
    assert_int_equal(n, 1);
    assert_int_equal(rows(m, "b"), 64 + 2);
    assert_int_equal(count_nodes(m->graph, OT_OP_Slice),
                     1); /* b itself, for the sum and for the caller */
    assert_true(m->graph->values[ot_value_find(m->graph, "b")].is_output);
    ot_model_free(m);
}

/* Padding by zeros between, a reduction over rows, a constant that differs from row to row: what is
 * beyond the ends is not what a wrap would put there. */
static void what_is_not_periodic_stays(void **state)
{
    (void)state;
    static const char *const between[] = {"Conv(%a, %w) {pads = [1, 0, 1, 0]}",
                                          "InstanceNormalization(%a, %s, %s)", "Add(%a, %r)",
                                          "Resize(%a, _, %z)"};
    for (size_t k = 0; k < sizeof between / sizeof *between; k++) {
        char body[1024];
        uint32_t n;
        ot_diag d;
        snprintf(body, sizeof body,
                 "  init %%s : float32[2] = [1, 1]\n  init %%r : float32[1,1,66,1] = random 1\n"
                 "  init %%z : float32[4] = [1, 1, 1, 1]\n"
                 "  %%a = Pad(%%x, %%p) {mode = \"wrap\"}\n  %%b = %s\n"
                 "  %%c = Pad(%%b, %%p) {mode = \"wrap\"}\n  output %%c\n",
                 between[k]);
        ot_model *m = moved(body, &n, &d);
        assert_int_equal(n, 0);
        ot_model_free(m);
    }
}

/* More than an eighth of the rows would be computed twice: the chain begins anew. */
static void long_chains_begin_anew(void **state)
{
    (void)state;
    char body[2048] = "  %v0 = Relu(%x)\n";
    uint32_t n;
    ot_diag d;
    for (int k = 0; k < 7; k++) {
        char part[128];
        snprintf(part, sizeof part,
                 "  %%a%d = Pad(%%v%d, %%p) {mode = \"wrap\"}\n  %%v%d = Conv(%%a%d, %%w)\n", k, k,
                 k + 1, k);
        strcat(body, part);
    }
    ot_model *m = moved(strcat(body, "  output %v7\n"), &n, &d);
    assert_int_equal(n, 5); /* not the first, nor the third: four behind it take eight rows */
    ot_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_add_up),
        cmocka_unit_test(readers_take_their_rows),
        cmocka_unit_test(what_is_not_periodic_stays),
        cmocka_unit_test(long_chains_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
