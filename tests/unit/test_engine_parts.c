/* Which nodes the engine takes where another runtime runs the others: onnx_tile_engine_parts. */
#include "engine_check.h"

#include "onnx/import/model_io.h"

#include "onnx_tile.h"

/* A convolution of 4 channels by another one. */
#define CONV(out, in) "  %" out " = Conv(%" in ", %w) {pads=[1, 1, 1, 1]}\n"
#define ENDS(size)                            \
    "  input %x : float32[1,4," size ",32]\n" \
    "  init %w : float32[4,4,3,3] = random 1 * 0.1\n"

/* Parts of the values of a graph in text, by a handle that is in the order of calls. */
static void parts_of(const char *graph, const char *const *values, size_t n, int32_t *part)
{
    ot_diag d = {0};
    ot_model *m = text_model(graph, &d);
    onnx_tile *t = NULL;
    void *bytes = NULL;
    size_t size = 0;
    assert_int_equal(ot_export_memory(m, &bytes, &size), OT_OK);
    assert_int_equal(onnx_tile_create(&t), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_engine_parts(t, values, n, part), ONNX_TILE_USAGE);
    assert_int_equal(onnx_tile_load_memory(t, bytes, size, NULL), ONNX_TILE_OK);
    assert_int_equal(onnx_tile_engine_parts(t, NULL, n, part), ONNX_TILE_USAGE);
    if (onnx_tile_engine_parts(t, values, n, part) != ONNX_TILE_OK)
        fail_msg("%s", onnx_tile_error(t));
    assert_int_equal(onnx_tile_optimise(t), ONNX_TILE_USAGE); /* in place of planning */
    onnx_tile_free(t);
    free(bytes);
    ot_model_free(m);
}

static const char *const VALUES[] = {"a", "b", "c", "d", "y", "x", "none"};
enum { N = sizeof VALUES / sizeof *VALUES };

static void nodes_of_one_part(void **state)
{
    int32_t p[N];
    (void)state;
    parts_of(ENDS("32") CONV("a", "x") "  %b = Relu(%a)\n" CONV(
                 "c", "b") "  %d = Relu(%c)\n"
                           "  %y = Add(%d, %b)\n  output %y\n",
             VALUES, N, p);
    for (int k = 1; k < 5; k++) assert_int_equal(p[k], p[0]);
    assert_true(p[0] >= 0);
    assert_int_equal(p[5], -1); /* an input */
    assert_int_equal(p[6], -1); /* no value */
}

/* What waits for a node that stays is another part than what it waits for. */
static void nodes_apart(void **state)
{
    int32_t p[N];
    (void)state;
    parts_of(ENDS("32") CONV("a", "x") "  %b : float32[1,4,32,32] = \"foo\"::Bar@1(%a)\n" CONV(
                 "c", "b") "  %d = Add(%c, %a)\n  %y = Relu(%d)\n  output %y\n",
             VALUES, N, p);
    assert_true(p[0] >= 0 && p[2] >= 0 && p[0] != p[2]);
    assert_int_equal(p[1], -1);
    assert_int_equal(p[3], p[2]);
    assert_int_equal(p[4], p[2]);
}

/* Not worth the way; and slow. */
static void nodes_that_stay(void **state)
{
    int32_t p[N];
    (void)state;
    parts_of(ENDS("64") "  %a = Relu(%x)\n  %b : float32[1,4,64,32] = \"foo\"::Bar@1(%a)\n" CONV(
                 "c", "b") "  %d = LpPool(%c) {kernel_shape=[1,1]}\n  %y = Relu(%d)\n  output %y\n",
             VALUES, N, p);
    assert_int_equal(p[0], -1);
    assert_int_equal(p[1], -1);
    assert_true(p[2] >= 0);
    assert_int_equal(p[3], -1);
    assert_int_equal(p[4], -1);
}

/* Free dimensions take the extents that such inputs usually have. */
static void nodes_of_free_sizes(void **state)
{
    int32_t p[N];
    (void)state;
    parts_of(ENDS("?") CONV("a", "x") "  %b = Relu(%a)\n" CONV(
                 "c", "b") "  %d = Relu(%c)\n  %y = Add(%d, %b)\n  output %y\n",
             VALUES, N, p);
    for (int k = 1; k < 5; k++) assert_int_equal(p[k], p[0]);
    assert_true(p[0] >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_one_part),
        cmocka_unit_test(nodes_apart),
        cmocka_unit_test(nodes_that_stay),
        cmocka_unit_test(nodes_of_free_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
