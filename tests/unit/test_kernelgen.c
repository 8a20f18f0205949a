/* The generator of device programs: what it refuses, line by line; which loops it spreads; a
 * generation that runs out of memory at every allocation. That the programs are right is for
 * tests/e2e/kernel_device.sh, which runs them. */
#include "kernel_check.h"

#include "tk/codegen/codegen.h"
#include "stingy.h"

static ot_tk_machine roomy(void)
{
    ot_tk_machine t = {0};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) {
        t.scopes[s].bytes = s == OT_SCOPE_GM ? 0 : 1 << 20;
        t.scopes[s].alignment = 4;
    }
    return t;
}

/* The program of a text, planned with plenty of memory; frugal: allocations that the generator
 * gets. */
static ot_status generate(const char *text, uint32_t items, ot_kg_language language, long frugal,
                          ot_diag *d, ot_kg_code **out)
{
    ot_kernel *k = parse(text);
    ot_tk_machine t = roomy();
    ot_mem_plan *p = NULL;
    ot_mem_options o = {.threads = 1};
    ot_kg_options g = {language, items, OT_KG_LOCAL_DEFAULT};
    *out = NULL;
    ot_status s = ot_mem_plan_kernel(k, "k.tk", &t, &o, d, &p);
    if (s != OT_OK) fail_msg("%s\nin:\n%s", d->message, text);
    allowed = frugal;
    if (frugal >= 0) ot_set_alloc_hook(stingy);
    s = ot_kg_make(k, "k.tk", p, &g, d, out);
    ot_set_alloc_hook(NULL);
    ot_mem_plan_free(p);
    ot_kernel_free(k);
    return s;
}

#define HEAD                                                                                       \
    "kernel k {\n  param x: 8x8 f32 @gm\n  param y: 8x8 f32 @gm\nalloc a: 8x8 f32 @ub\nload a <- " \
    "x\n"

/* ---- what it refuses ---- */

static const struct {
    const char *body, *message;
} REFUSED[] = {
    {"a = vector.frobnicate(a)\n",
     "k.tk:6:1: no device knows the operation 'frobnicate' [operation]"},
    {"a = vector.add(a)\n", "k.tk:6:1: add takes 2 operands, not 1 [operands]"},
    {"alloc b: 8x4 f32 @ub\nb = vector.relu(a)\n",
     "k.tk:7:1: relu makes 8x8, but 'b' is 8x4 [shape]"},
    {"alloc b: 3x8 f32 @ub\nload b <- x[0:3, 0:8]\nalloc c: 8x8 f32 @ub\nc = vector.add(a, b)\n",
     "do not fit each other: 8 and 3 elements along an axis [broadcast]"},
    {"alloc b: 8x1 f32 @ub\nb = vector.reduce_sum(a, axis=2)\n", "axis is from -2 to 1 [axis]"},
    {"a = cube.matmul(a, a)\n",
     "k.tk:6:1: 'a' and 'a' share bytes, and matmul reads one while it writes the other [overlap]"},
    {"if (?) {\n}\n",
     "k.tk:6:1: '?' cannot be run: nobody knows which way to go [unknown-condition]"},
    {"for i in 0..? {\n}\n", "k.tk:6:1: '?' cannot be run: nobody knows how often [unknown-trips]"},
    {"for i in 0..6 {\nsubview s = a[2*i:2*i+2, 0:8]\nstore y[0:2, 0:8] <- s\n}\n",
     "the subview 's' leaves 'a' in some iteration: [0:12] of 8 in axis 0 [subview-bounds]"},
    {"alloc b: 8x8 f4e2m1 @ub\nb = vector.fill()\n",
     "'b' is of a type that no device computes in [run-type]"},
    {"alloc b: 4x8x8 f32 @ub\nb = vector.concat(a, a)\n",
     "concat makes 16x8, but 'b' is 4x8x8 [shape]"},
    {"alloc b: 8x8 f32 @ub\nb = vector.transpose(a, perm=[0, 0])\n",
     "perm names each of the 2 axes once [setting]"},
    {"alloc b: 9x8 f32 @ub\nalloc c: 8x8 f32 @ub\nb = vector.fill()\nc = cube.matmul(a, b)\n",
     "matmul sums over 8 columns and 9 rows [shape]"},
    {"subview s = a[0:8, 1:4]\nalias t = s: 12x2 f32\nsubview u = t[0:12, 0:1]\nalias w = u: 12 "
     "f32\nw = vector.relu(w)\n",
     "'w' renames what has gaps in a way that no strides describe [device-view]"},
    {"alias b = a: 256 i8\nsubview s = b[1:201]\nalias w = s: 50 f32\nw = vector.relu(w)\n",
     "'w' does not lie at a multiple of its elements' 4 bytes [device-align]"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        char text[1000];
        ot_diag d = {0};
        ot_kg_code *c;
        snprintf(text, sizeof text, HEAD "%s}\n", REFUSED[i].body);
        ot_status s = generate(text, 8, OT_KG_OPENCL, -1, &d, &c);
        ot_kg_free(c);
        if (s != OT_E_INPUT || !strstr(d.message, REFUSED[i].message))
            fail_msg("'%s', not '%s' in\n%s", d.message, REFUSED[i].message, text);
    }
}

/* ---- which loops groups share ---- */

static const struct {
    const char *body;
    int64_t groups;
} SPREAD[] = {
    {"parallel for i in 0..4 {\nalloc b: 2x8 f32 @ub\nload b <- x[2*i:2*i+2, 0:8]\nstore "
     "y[2*i:2*i+2, 0:8] <- b\n}\n",
     4},
    {"for i in 0..4 {\nalloc b: 2x8 f32 @ub\nload b <- x[2*i:2*i+2, 0:8]\nstore y[2*i:2*i+2, 0:8] "
     "<- b\n}\n",
     1},
    /* something comes after it, or before it what only one may do */
    {"parallel for i in 0..4 {\nalloc b: 2x8 f32 @ub\nload b <- x[2*i:2*i+2, 0:8]\nstore "
     "y[2*i:2*i+2, 0:8] <- b\n}\nload a <- y\n",
     1},
    {"store y <- a\nparallel for i in 0..4 {\nalloc b: 2x8 f32 @ub\nload b <- x[2*i:2*i+2, "
     "0:8]\nstore y[2*i:2*i+2, 0:8] <- b\n}\n",
     1},
    /* what an iteration writes is another's as well */
    {"parallel for i in 0..4 {\nsubview s = a[2*i:2*i+2, 0:8]\ns = vector.relu(s)\nstore "
     "y[2*i:2*i+2, 0:8] <- s\n}\n",
     1},
    {"parallel for i in 0..2 {\nalloc b: 2x8 f32 @ub\nb = vector.fill()\nstore y[2*i:2*i+2, 0:8] "
     "<- b\n}\n"
     "parallel for j in 2..4 {\nalloc c: 2x8 f32 @ub\nc = vector.fill()\nstore y[2*j:2*j+2, 0:8] "
     "<- c\n}\n",
     1},
};

static void spreads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SPREAD / sizeof *SPREAD; i++) {
        char text[1000];
        ot_diag d = {0};
        ot_kg_code *c;
        snprintf(text, sizeof text, HEAD "%s}\n", SPREAD[i].body);
        if (generate(text, 8, OT_KG_OPENCL, -1, &d, &c) != OT_OK)
            fail_msg("%s\nin:\n%s", d.message, text);
        if (c->n_groups != SPREAD[i].groups)
            fail_msg("%lld groups, not %lld in\n%s", (long long)c->n_groups,
                     (long long)SPREAD[i].groups, text);
        ot_kg_free(c);
    }
}

/* ---- barriers ---- */

static size_t barriers(const char *body)
{
    char text[1000];
    ot_diag d = {0};
    ot_kg_code *c;
    size_t n = 0;
    snprintf(text, sizeof text, HEAD "%s}\n", body);
    if (generate(text, 8, OT_KG_CUDA, -1, &d, &c) != OT_OK)
        fail_msg("%s\nin:\n%s", d.message, text);
    for (const char *at = c->text; (at = strstr(at, "BARRIER();")) != NULL; at++) n++;
    ot_kg_free(c);
    return n;
}

static void orders(void **state)
{
    (void)state;
    /* element by element no item waits for another */
    assert_int_equal(barriers("a = vector.relu(a)\na = vector.neg(a)\nstore y <- a\n"), 0);
    /* rows that others wrote; then a column that others make */
    assert_int_equal(barriers("alloc s: 8x1 f32 @ub\ns = vector.reduce_sum(a)\nstore y <- a\n"), 1);
    assert_int_equal(
        barriers(
            "alloc s: 8x1 f32 @ub\ns = vector.reduce_sum(a)\na = vector.sub(a, s)\nstore y <- a\n"),
        2);
    assert_int_equal(barriers("alloc b: 8x8 f32 @ub\nb = vector.transpose(a)\nstore y <- b\n"), 1);
    /* a load over what others still read */
    assert_int_equal(
        barriers("alloc s: 8x1 f32 @ub\ns = vector.reduce_sum(a)\nload a <- x\nstore y <- a\n"), 2);
    /* the end of a loop's body, and its head */
    assert_int_equal(barriers("for i in 0..2 {\na = vector.relu(a)\n}\nstore y <- a\n"), 2);
}

/* ---- names ---- */

/* What the generator calls its own does not meet what a kernel calls its values, nor words of C. */
static void names(void **state)
{
    (void)state;
    static const char text[] =
        "kernel float {\nparam t: 8x8 f32 @gm\nparam item/e: 8x8 f32 @gm\nalloc restrict: 8x8 f32 "
        "@ub\n"
        "for go in 0..2 {\nload restrict <- t[go:go+8, 0:8]\nstore item/e <- restrict\n}\n}\n";
    static const char *const wanted[] = {"void tile_float(", "u8 *restrict t_0",
                                         "u8 *restrict item_e_1", "for (int t1 = 0; t1 < 2;",
                                         "const int go_1 = t1;"};
    ot_diag d = {0};
    ot_kg_code *c;
    if (generate(text, 8, OT_KG_OPENCL, -1, &d, &c) != OT_OK) fail_msg("%s", d.message);
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        if (!strstr(c->text, wanted[k])) fail_msg("no '%s' in\n%s", wanted[k], c->text);
    ot_kg_free(c);
}

/* ---- memory ---- */

static void runs_out(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "alloc b: 8x8 f16 @ub multi=1\nb = vector.exp(a)\nfor i in 0..4 {\nalloc c: 2x8 i8 @ub "
        "multi=2\n"
        "load c <- x[2*i-1:2*i+1, 0:8] stream=s\nwait s\nstore y[2*i:2*i+2, 0:8] <- c\n}\nalloc m: "
        "8x8 f32 @ub\nm = cube.matmul(b, b)\nstore y <- m\n}\n";
    ot_kg_code *c;
    ot_status s = OT_E_NOMEM;
    long n = 0;
    for (; s != OT_OK && n < 100000; n++) {
        ot_diag d = {0};
        s = generate(text, 8, OT_KG_OPENCL, n, &d, &c);
        if (s != OT_OK && s != OT_E_NOMEM) fail_msg("after %ld allocations: %s", n, d.message);
        if (s == OT_OK) assert_non_null(strstr(c->text, "tile_k("));
        ot_kg_free(c);
    }
    assert_int_equal(s, OT_OK);
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(spreads),
                                       cmocka_unit_test(orders), cmocka_unit_test(names),
                                       cmocka_unit_test(runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
