/* Fixed extents of inputs replaced: what is inferred anew, and constants that only fit the old
 * size. The cases with ONNX Runtime beside them are tests/oracle/other_size.py. */
#include "ops/ops.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static ot_diag diag;

/* x [1,8,32,32] -> Conv h [1,8,32,32] -> body -> %y */
static ot_model *model_of(const char *inits, const char *body)
{
    static char text[8192];
    ot_model *m = NULL;
    diag = (ot_diag){0};
    snprintf(text, sizeof text,
             "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,8,32,32]\n  init %%w : "
             "float32[8,8,3,3] = random 3\n%s"
             "  %%h : float32[1,8,32,32] = Conv(%%x, %%w) {pads=[1,1,1,1]} \"conv\"\n%s  output "
             "%%y\n}\n",
             inits, body);
    if (ot_text_parse(text, strlen(text), &diag, &m) != OT_OK)
        fail_msg("%s\n%s", diag.message, text);
    return m;
}

static ot_status resize(ot_model *m, int64_t n, int64_t h, int64_t w)
{
    const int64_t dims[] = {n, 8, h, w};
    const ot_shape_binding b = {"x", 4, dims, true, NULL};
    return ot_infer_shapes(m->graph, &b, 1);
}

static void takes(const char *inits, const char *body, int64_t n, int64_t h, int64_t w,
                  int32_t rank, const int64_t *want)
{
    ot_model *m = model_of(inits, body);
    if (resize(m, n, h, w) != OT_OK) fail_msg("%s\n%s", diag.message, body);
    const ot_value *y = &m->graph->values[ot_value_find(m->graph, "y")];
    assert_true(m->resized);
    assert_int_equal(y->rank, rank);
    for (int32_t k = 0; k < rank; k++) assert_int_equal(y->dims[k], want[k]);
    ot_model_free(m);
}

static void refuses(const char *inits, const char *body, int64_t n, int64_t h, int64_t w,
                    const char *says)
{
    ot_model *m = model_of(inits, body);
    ot_status s = resize(m, n, h, w);
    if (s != OT_E_USAGE) fail_msg("status %d, not a refusal: %s", s, body);
    if (!strstr(diag.message, says) || !strstr(diag.message, "--shape: node"))
        fail_msg("'%s' is not in: %s", says, diag.message);
    ot_model_free(m);
}
#define DIMS(...) \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* What the file states of h and y is of the old size: forgotten. */
static void inferred_anew(void **state)
{
    (void)state;
    takes("", "  %y : float32[1,8,32,32] = Relu(%h)\n", 1, 48, 20, DIMS(1, 8, 48, 20));
    takes("", "  %y : float32[1,8,32,32] = Relu(%h)\n", 4, 32, 32, DIMS(4, 8, 32, 32));
    ot_model *m = model_of("", "  %y = Relu(%h)\n");
    assert_int_equal(resize(m, 1, 32, 32), OT_OK);
    assert_false(m->resized); /* nothing was replaced */
    ot_model_free(m);
}

/* Without leave to replace, a fixed extent is what it was: bindings of arrays. */
static void not_without_leave(void **state)
{
    (void)state;
    ot_model *m = model_of("", "  %y = Relu(%h)\n");
    const ot_shape_binding b = {.input = "x", .rank = 4, .dims = (const int64_t[]){1, 8, 16, 16}};
    assert_int_equal(ot_infer_shapes(m->graph, &b, 1), OT_E_USAGE);
    assert_non_null(strstr(diag.message, "dim 2 is 16, but the input has shape [1,8,32,32]"));
    ot_model_free(m);
}

static void reshapes(void **state)
{
    (void)state;
    const char *to = "  %y = Reshape(%h, %s) \"guilty\"\n";
    takes("  init %s : int64[3] = [1, 8, -1]\n", to, 1, 64, 64, DIMS(1, 8, 4096));
    takes("  init %s : int64[3] = [1, 4, -1]\n", to, 1, 64, 64, DIMS(1, 4, 8192));
    takes("  init %s : int64[3] = [0, 0, -1]\n", to, 1, 64, 64, DIMS(1, 8, 4096));
    takes("  init %s : int64[3] = [1, 8, 1024]\n", to, 1, 64, 16, DIMS(1, 8, 1024));
    takes("  init %s : int64[2] = [-1, 1024]\n", to, 2, 32, 32, DIMS(16, 1024));
    refuses("  init %s : int64[3] = [1, 8, 1024]\n", to, 1, 64, 64,
            "'s' has the old size baked in: it makes 1024 of 32 x 32, which is 64 x 64 now");
    /* fits: a batch of 4 */
    refuses("  init %s : int64[3] = [-1, 8, 1024]\n", to, 1, 64, 64, "guilty");
    /* fits: 32 channels */
    refuses("  init %s : int64[3] = [1, -1, 1024]\n", to, 1, 64, 64, "guilty");
    /* fits: rows of 128 */
    refuses("  init %s : int64[4] = [1, 8, 32, -1]\n", to, 1, 64, 64, "guilty");
    /* fits: rows and columns exchanged */
    refuses("  init %s : int64[4] = [1, 8, 32, 32]\n", to, 1, 64, 16, "guilty");
    /* fits: pictures into pixels */
    refuses("  init %s : int64[2] = [8, -1]\n", to, 2, 32, 32, "guilty");
    refuses("  init %s : int64[6] = [1, 8, 4, 8, 4, 8]\n", to, 1, 64, 64, "guilty");
    refuses("  init %s : int64[3] = [1, 8, -1]\n", to, 1, 1 << 24, 1 << 25, "larger than 2^48");
}

static void slices(void **state)
{
    (void)state;
    const char *cut = "  %y = Slice(%h, %a, %b, %c) \"guilty\"\n";
#define BOUNDS(a, b) \
    "  init %a : int64[1] = [" a "]\n  init %b : int64[1] = [" b "]\n  init %c : int64[1] = [2]\n"
    takes(BOUNDS("2", "-2"), cut, 1, 64, 32, DIMS(1, 8, 60, 32));
    takes(BOUNDS("1", "9223372036854775807"), cut, 1, 64, 32, DIMS(1, 8, 63, 32));
    takes(BOUNDS("0", "1"), cut, 1, 64, 32, DIMS(1, 8, 1, 32));
    takes(BOUNDS("-1", "9223372036854775807"), cut, 1, 64, 32, DIMS(1, 8, 1, 32));
    refuses(BOUNDS("0", "32"), cut, 1, 64, 32, "'b' has the old size baked in");
    refuses(BOUNDS("0", "32"), cut, 1, 16, 32, "'b' has the old size baked in");
    refuses(BOUNDS("0", "16"), cut, 1, 64, 32, "'b' has the old size baked in");
    refuses(BOUNDS("16", "9223372036854775807"), cut, 1, 64, 32, "'a' has the old size baked in");
    refuses(BOUNDS("-4", "9223372036854775807"), cut, 1, 64, 32, "'a' has the old size baked in");
}

static void operands(void **state)
{
    (void)state;
    takes("  init %p : float32[8,1,1] = random 1\n", "  %y = Add(%h, %p) \"guilty\"\n", 1, 64, 64,
          DIMS(1, 8, 64, 64));
    refuses("  init %p : float32[32,32] = random 1\n", "  %y = Add(%h, %p) \"guilty\"\n", 1, 64, 64,
            "constant 'p' has the old size");
    refuses("  init %p : float32[32,32] = random 1\n", "  %y = Add(%h, %p) \"guilty\"\n", 1, 1, 1,
            "constant 'p' has the old size");
    refuses("  init %p : float32[32,7] = random 1\n", "  %y = MatMul(%h, %p) \"guilty\"\n", 1, 64,
            64, "'p' of shape [32,7]");
    refuses("  input %p : float32[1,8,32,32]\n", "  %y = Add(%h, %p) \"guilty\"\n", 1, 64, 64,
            "input 'p' keeps its size");
    refuses("  init %k : float32[] = fill 32.0\n",
            "  %g = GlobalAveragePool(%h)\n  %y = Mul(%g, %k) \"guilty\"\n", 1, 64, 64,
            "'k' may be");
}

static void windows(void **state)
{
    (void)state;
    takes("", "  %y = AveragePool(%h) {kernel_shape=[2,2], strides=[2,2]}\n", 1, 64, 64,
          DIMS(1, 8, 32, 32));
    refuses("", "  %y = AveragePool(%h) {kernel_shape=[32,32]} \"guilty\"\n", 1, 64, 64,
            "kernel_shape has the old size");
    refuses("", "  %y = AveragePool(%h) {kernel_shape=[16,16], strides=[16,16]} \"guilty\"\n", 1,
            64, 64, "kernel_shape has the old size");
    takes("  init %k : float32[4] = [1,1,2,2]\n", "  %y = Resize(%h, _, %k)\n", 1, 64, 64,
          DIMS(1, 8, 128, 128));
    refuses("  init %k : float32[4] = [1,1,1.03125,1.03125]\n",
            "  %y = Resize(%h, _, %k) \"guilty\"\n", 1, 64, 64, "no plain factor");
    refuses("  init %k : int64[4] = [1,8,64,64]\n", "  %y = Resize(%h, _, _, %k) \"guilty\"\n", 1,
            64, 64, "64 for axis 2");
    refuses("  init %k : int64[4] = [1,8,32,32]\n",
            "  %g = GlobalAveragePool(%h)\n  %y = Expand(%g, %k) \"guilty\"\n", 1, 64, 64,
            "guilty");
}

/* What is not understood is refused; what no resized value reaches is not asked. */
static void not_understood(void **state)
{
    (void)state;
    refuses("", "  %y : float32[1,8,32,32] = \"acme\"::Mystery@1(%h) \"guilty\"\n", 1, 64, 64,
            "not known to this tool");
    takes("  init %p : float32[8,1,1] = random 1\n",
          "  %q : float32[8,1,1] = \"acme\"::Mystery@1(%p)\n  %y = Add(%h, %q)\n", 1, 64, 64,
          DIMS(1, 8, 64, 64));
}

/* Extremes of sizes neither overflow nor loop. */
static void extremes(void **state)
{
    (void)state;
    ot_model *m = model_of("  init %s : int64[3] = [1, 8, -1]\n", "  %y = Reshape(%h, %s)\n");
    ot_status s = resize(m, INT64_C(1) << 40, INT64_C(1) << 40, INT64_C(1) << 40);
    assert_true(s == OT_OK || s == OT_E_USAGE);
    ot_model_free(m);
    refuses("  init %s : int64[3] = [1, 8, 1024]\n", "  %y = Reshape(%h, %s) \"guilty\"\n", 1,
            INT64_C(1) << 47, 1, "guilty");
}

static long left;

static void *failing(void *ptr, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size && left-- <= 0) return NULL;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* Short of memory at any place: that, and never another answer. */
static void short_of_memory(void **state)
{
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        ot_status s = OT_E_NOMEM;
        for (long allowed = 0; s == OT_E_NOMEM && allowed < 2000; allowed++) {
            ot_model *m = model_of(refused ? "  init %s : int64[3] = [1, 8, 1024]\n"
                                           : "  init %s : int64[3] = [1, 8, -1]\n",
                                   "  %y = Reshape(%h, %s) \"guilty\"\n");
            left = allowed;
            ot_set_alloc_hook(failing);
            s = resize(m, 1, 64, 64);
            ot_set_alloc_hook(NULL);
            ot_model_free(m);
        }
        assert_int_equal(s, refused ? OT_E_USAGE : OT_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inferred_anew),   cmocka_unit_test(not_without_leave),
        cmocka_unit_test(reshapes),        cmocka_unit_test(slices),
        cmocka_unit_test(operands),        cmocka_unit_test(windows),
        cmocka_unit_test(not_understood),  cmocka_unit_test(extremes),
        cmocka_unit_test(short_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
