/* The kernel language as text: each rule has a text that breaks it and nothing else, with the place
 * that the message must name. */
#include "kernel_check.h"

/* ---- texts that break one rule ---- */

static void test_bad_syntax(void **state)
{
    (void)state;
    const struct {
        const char *text, *place, *part;
    } bad[] = {
        {"", "1:1", "expected 'kernel', found the end of the text"},
        {"kernle k {}", "1:1", "expected 'kernel', found 'kernle'"},
        {"kernel", "1:7", "expected the kernel's name, found the end"},
        {"kernel 4 {}", "1:8", "expected the kernel's name, found '4'"},
        {"kernel k target ascend {}", "1:17", "expected a name in quotes, found 'ascend'"},
        {"kernel k target \"\" {}", "1:17", "a name in quotes is not empty"},
        {"kernel k target \"a\\b\" {}", "1:17", "printable"},
        {"kernel k target \"a\x1b\" {}", "1:17", "printable"},
        {"kernel k target \"a\n\" {}", "1:17", "no closing quote"},
        {"kernel k target \"a", "1:17", "no closing quote"},
        {"kernel k\n  param", "2:3", "expected '{', found 'param'"},
        {"kernel k {", "1:11", "the kernel has no '}'"},
        {"kernel k {\n\n while (?) {\n}", "4:2", "the kernel has no '}'"},
        {"kernel k {\n\n while (?) {\n if (?) {\n }\n", "6:1", "the block of line 3 has no '}'"},
        {"kernel k { }\n}", "2:1", "expected nothing after the kernel, found '}'"},
        {"kernel k { alloc a: 4 f32 @ub; }", "1:30", "unexpected character ';'"},
        {"kernel k { \xc3\xa4 }", "1:12", "unexpected byte 0xc3"},
        {"kernel k { a <", "1:14", "unexpected character '<'"},
        {"kernel k { a .", "1:14", "unexpected character '.'"},
    };
    for (size_t t = 0; t < sizeof bad / sizeof *bad; t++)
        parse_fails(bad[t].text, bad[t].place, bad[t].part);
}

#define BEFORE                 \
    "kernel k {\n"             \
    "  param x: 4x8 f32 @gm\n" \
    "  param y: 4x8 f32 @gm\n" \
    "  alloc a: 4x8 f32 @ub\n" \
    "  alloc b: 4x8 f32 @ub\n" \
    "  alloc c: 32 i8 @l1\n" /* the text under test begins in line 7, column 1 */

typedef struct bad_text {
    const char *text, *place, *part;
} bad_text;

static void all_fail(const bad_text *bad, size_t n)
{
    for (size_t t = 0; t < n; t++) {
        char text[2000];
        snprintf(text, sizeof text, "%s%s\n}\n", BEFORE, bad[t].text);
        parse_fails(text, bad[t].place, bad[t].part);
    }
}
#define ALL_FAIL(list) all_fail(list, sizeof(list) / sizeof *(list))

static void test_bad_statements(void **state)
{
    (void)state;
    const bad_text bad[] = {
        {"param z: 4 f32 @gm", "7:1", "params come before all statements"},
        {"alloc for: 4 f32 @ub", "7:7", "found 'for', a word of the language"},
        {"alloc vector.x: 4 f32 @ub", "7:7", "a word of the language"},
        {"alloc : 4 f32 @ub", "7:7", "expected a name, found ':'"},
        {"alloc d 4 f32 @ub", "7:9", "expected ':', found '4'"},
        {"alloc d: f32 @ub", "7:10", "expected dimensions such as 16x64, found 'f32'"},
        {"alloc d: 4x f32 @ub", "7:10", "expected a number, found '4x'"},
        {"alloc d: 4xf32 @ub", "7:10", "expected a number, found '4xf32'"},
        {"alloc d: 4 float @ub", "7:12", "expected an element type such as f32, found 'float'"},
        {"alloc d: 4 f32 ub", "7:16", "expected '@', found 'ub'"},
        {"alloc d: 4 f32 @UB", "7:17",
         "expected a memory (ub l1 l0a l0b l0c bt fp l2 shared gm, local fragment tmem host auto), "
         "found 'UB'"},
        {"alloc d: 1x2x3x4x5x6x7x8x9 f32 @ub", "7:10", "more than 8 dimensions"},
        {"alloc d: 2x9223372036854775808 f32 @ub", "7:10", "dimension 2 does not fit"},
        {"alloc d: 9223372036854775808 f32 @ub", "7:10", "the number does not fit 64 bits"},
        {"alloc d: 4 f32 @ub multi=2 align=4", "7:28",
         "'align' again, or out of order: align, multi, offset"},
        {"alloc d: 4 f32 @ub multi=2 multi=2", "7:28", "'multi' again"},
        {"alloc d: 4 f32 @ub align=0", "7:26", "align is at least 1"},
        {"alloc d: 4 f32 @ub multi=0", "7:26", "multi is at least 1"},
        {"alloc d: 4 f32 @ub align=-1", "7:26", "expected an integer, found '-'"},
        {"alloc d: 4 f32 @ub offset=0,", "8:1", "expected an integer, found '}'"},
        {"alloc d: 4 f32 @ub offset=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "7:66",
         "more than 16 offsets"},
        {"workspace d: 4 f32 @gm", "7:20", "expected a statement, found '@'"},
        {"alias v = zz: 4 f32", "7:11", "'zz' is not defined before this line"},
        {"alias v = a", "8:1", "expected ':', found '}'"},
        {"alias v a: 4 f32", "7:9", "expected '=', found 'a'"},
        {"subview v = a", "8:1", "expected '[', found '}'"},
        {"subview v = a[0:4]", "7:1", "1 ranges for 'a', which has 2 dimensions"},
        {"subview v = a[0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1]", "7:55",
         "more than 8 ranges"},
        {"load a x", "7:8", "expected '<-', found 'x'"},
        {"load a <- zz", "7:11", "'zz' is not defined before this line"},
        {"load a <- for", "7:11", "expected the name of a buffer or param, found 'for'"},
        {"load a[0:4, 0:8] <- x", "7:7", "expected '<-', found '['"},
        {"load a <- x[0:4 0:8]", "7:17", "expected ']', found '0'"},
        {"load a <- x[0-4, 0:8]", "7:16", "expected ':', found ','"},
        {"load a <- x[i:i+4, 0:8]", "7:13", "'i' is no variable of a loop around this"},
        {"for i in 0..4 { } load a <- x[i:i+4, 0:8]", "7:31",
         "'i' is no variable of a loop around this"},
        {"load a <- x[2*3:4, 0:8]", "7:15", "expected an integer or a loop variable, found '3'"},
        {"load a <- x[--1:4, 0:8]", "7:14", "expected an integer or a loop variable, found '-'"},
        {"load a <- x[9223372036854775807+1:4, 0:8]", "7:33", "the sum does not fit 64 bits"},
        {"load a <- x[-1-9223372036854775807:4, 0:8]", "7:16", "the sum does not fit 64 bits"},
        {"for i in 0..4 { load a <- x[9223372036854775807*i+i:4, 0:8] }", "7:51",
         "too many loop variables, or too large"},
        {"for i in 0..4 { for j in 0..4 { for k in 0..4 { for l in 0..4 { for m in 0..4 {\nload a "
         "<- x[i+j+k+l+m:4, 0:8] } } } } }",
         "8:21", "too many loop variables"},
        {"copy.dma a <- b", "7:1",
         "expected copy.PIPE (vector cube scalar dma_in dma_out), found 'copy.dma'"},
        {"copy. a <- b", "7:1", "expected copy.PIPE"},
        {"free zz", "7:6", "'zz' is not defined before this line"},
        {"a = vector(b)", "7:5",
         "expected for, while, if or PIPE.OPERATION (pipes: vector cube scalar dma_in dma_out), "
         "found 'vector'"},
        {"a = gpu.exp(b)", "7:5", "expected for, while, if or PIPE.OPERATION"},
        {"a = vector.(b)", "7:5", "expected an operation after the pipe, found 'vector.'"},
        {"a = vector.4(b)", "7:5", "expected an operation after the pipe"},
        {"a, = vector.exp(b)", "7:4", "expected a statement, found '='"},
        {"a = vector.exp(b,)", "7:18", "expected the name of a buffer or param, found ')'"},
        {"a = vector.exp b", "7:16", "expected '(', found 'b'"},
        {"a, zz = vector.exp(b)", "7:4",
         "'zz' is not defined before this line (operations write buffers that exist)"},
        {"a vector.exp(b)", "7:3", "expected '=', found 'vector.exp'"},
        {"4 = vector.exp(b)", "7:1", "expected a statement, found '4'"},
        {"for 4 in 0..4 {}", "7:5", "expected a loop variable, found '4'"},
        {"for in in 0..4 {}", "7:5", "expected a loop variable, found 'in'"},
        {"for i of 0..4 {}", "7:7", "expected 'in', found 'of'"},
        {"for i in 0:4 {}", "7:11", "expected '..', found ':'"},
        {"for i in -1..4 {}", "7:10", "expected an integer, found '-'"},
        {"for i in 0..n {}", "7:13", "expected an integer, found 'n'"},
        {"for i in 0..4 step {}", "7:20", "expected an integer, found '{'"},
        {"for i in 0..4 carry acc = a {}", "7:21", "expected '(', found 'acc'"},
        {"for i in 0..4 carry (acc = a) {}", "7:1", "0 results, but 1 carried values"},
        {"r, s = while (?) carry (acc = a) {}", "7:1", "2 results, but 1 carried values"},
        {"r = while (?) {}", "7:1", "1 results, but 0 carried values"},
        {"r = while (?) carry (acc = acc) {}", "7:28", "'acc' is not defined before this line"},
        {"while a {}", "7:7", "expected '(', found 'a'"},
        {"while (zz) {}", "7:8", "'zz' is not defined before this line"},
        {"if (?) carry (q = a) {}", "7:8", "expected '{', found 'carry'"},
        {"else { }", "7:1", "'else' without 'if', or a second one"},
        {"if (?) { } else { } else { }", "7:21", "'else' without 'if', or a second one"},
        {"while (?) { } else { }", "7:15", "'else' without 'if', or a second one"},
        {"yield a", "7:7", "expected '(', found 'a'"},
        {"} alloc d: 4 f32 @ub", "7:3", "expected nothing after the kernel, found 'alloc'"},
    };
    ALL_FAIL(bad);
    parse_fails("kernel k { param x: 4 f32 }", "1:27", "expected '@', found '}'");
}

static void test_bad_values(void **state)
{
    (void)state;
    const bad_text bad[] = {
        {"alloc a: 4 f32 @ub", "7:7", "'a' is defined already, in line 4"},
        {"alias x = a: 4 f32", "7:7", "'x' is defined already, in line 2"},
        {"a = for i in 0..4 carry (q = b) { yield (b) }", "7:1",
         "'a' is defined already, in line 4"},
        {"q = for i in 0..4 carry (a = b) { yield (b) }", "7:26", "'a' is defined already"},
        {"for i in 0..4 { alloc d: 4 f32 @ub }\nalloc d: 4 f32 @ub", "8:7",
         "'d' is defined already, in line 7"},
        {"alloc d: 4x0 f32 @ub", "7:7", "dimension 1 of 'd' is 0: at least 1"},
        {"alloc d: 4294967296x4294967296 f32 @ub", "7:7", "the size of 'd' does not fit 64 bits"},
        /* 2^60, times 16 slots */
        {"alloc d: 1152921504606846976 u8 @ub", "7:7", "the size of 'd' does not fit 64 bits"},
        {"alloc d: 4 f32 @ub multi=17", "7:7", "'d' has multi=17: 1 to 16"},
        {"alloc d: 4 f32 @ub multi=4294967298", "7:7", "'d' has multi=4294967295"},
        {"alloc d: 4 f32 @ub multi=3 offset=0,16", "7:7", "'d' has 2 offsets for 3 slots"},
        {"alloc d: 4 f32 @ub offset=9223372036854775800", "7:7",
         "an offset that is negative or too large"},
        {"alias v = a: 33 f32", "7:1", "the alias 'v' (132 bytes) is larger than 'a' (128 bytes)"},
        {"subview v = a[0:5, 0:8]", "7:1", "range 0 of 'v' leaves 'a', which has 4 there"},
        {"subview v = a[0:4, 1:9]", "7:1", "range 1 of 'v' leaves 'a', which has 8 there"},
        {"subview v = a[-1:2, 0:8]", "7:1", "range 0 of 'v' leaves 'a'"},
        {"for i in 0..4 { subview v = a[i:i+5, 0:8] }", "7:17", "range 0 of 'v' leaves 'a'"},
        {"subview v = a[2:2, 0:8]", "7:1", "range 0 has the extent 0: at least 1"},
        {"subview v = a[3:2, 0:8]", "7:1", "range 0 has the extent -1"},
        {"for i in 0..4 { subview v = a[0:i, 0:8] }", "7:17",
         "range 0 has no constant extent (hi - lo)"},
        {"for i in 0..4 { for j in 0..4 { subview v = a[i:j+1, 0:8] } }", "7:33",
         "range 0 has no constant extent"},
        {"for i in 0..4 { subview v = a[i:2*i+1, 0:8] }", "7:17", "range 0 has no constant extent"},
        {"load a <- x[-9223372036854775807:9223372036854775807, 0:8]", "7:1",
         "range 0 has no constant extent"},
        {"for i in 0..4611686018427387904 { load a <- x[2*i:2*i+1, 0:8] }", "7:35",
         "does not fit 64 bits in every iteration"},
    };
    ALL_FAIL(bad);
    parse_fails("kernel k {\n param x: 4 f32 @ub\n}", "2:8",
                "the param 'x' is in ub: params are in gm");
}

static void test_bad_flow(void **state)
{
    (void)state;
    const bad_text bad[] = {
        /* movement */
        {"load y <- a", "7:1", "load writes the param 'y': only store does"},
        {"load a <- b", "7:1", "load from 'b', which is in ub like 'a': this is a copy"},
        {"alias v = y: 4x8 f32\nload v <- a", "8:1", "load writes the param 'v'"},
        {"store a <- b", "7:1", "store to 'a', which is in ub, not in gm: this is a copy"},
        {"store y <- x", "7:1", "the param 'x' cannot be stored"},
        {"copy y <- a", "7:1", "copy writes the param 'y'"},
        {"y = vector.exp(a)", "7:1", "an operation writes the param 'y': only store does"},
        {"a, b, a = vector.split(b)", "7:1", "'a' is an output twice"},
        {"load a <- x[0:4]", "7:1", "1 ranges for 'x', which has 2 dimensions"},
        {"load a <- x[0:5, 0:8]", "7:1", "40 elements of 'x' are moved, but 'a' has 32"},
        {"store y[0:5, 0:8] <- a", "7:1", "40 elements of 'y' are moved, but 'a' has 32"},
        {"load a <- x[0:4, 8:8]", "7:1", "range 1 has the extent 0"},
        {"load a <- x[0:4611686018427387904, 0:4611686018427387904]", "7:1",
         "the window's number of elements does not fit 64 bits"},
        {"subview v = a[0:1, 0:8]\ncopy v <- c", "8:1",
         "32 elements of 'c' are moved, but 'v' has 8"},
        {"subview v = a[0:1, 0:8]\nload v <- x", "8:1",
         "32 elements of 'x' are moved, but 'v' has 8"},
        /* free */
        {"free a\nb = vector.exp(a)", "8:1", "'a' is used after it was freed in line 7"},
        {"free a\na = vector.exp(b)", "8:1", "'a' is used after it was freed in line 7"},
        {"free a\nfree a", "8:1", "'a' is freed twice: before in line 7"},
        {"alias v = a: 8 f32\nfree v\nfree a", "9:1", "'a' is freed twice: before in line 8"},
        {"alias v = a: 8 f32\nfree a\ncopy b <- v", "9:1",
         "'v' is used after it was freed in line 8"},
        {"free a\nalias v = a: 8 f32", "8:1", "'a' is used after it was freed in line 7"},
        {"free x", "7:1", "the param 'x' cannot be freed"},
        {"for i in 0..4 {\nfree a\n}", "8:1",
         "'a' was allocated outside this loop: every iteration would free it"},
        {"for i in 0..4 {\nif (?) {\nfree a\n} }", "9:1", "'a' was allocated outside this loop"},
        {"r = for i in 0..4 carry (q = a) {\nfree q\nyield (b)\n}", "8:1",
         "'q' leads to no allocated buffer"},
        {"r = for i in 0..4 carry (q = a) { yield (b) }\nfree r", "8:1",
         "'r' leads to no allocated buffer"},
        {"if (?) { free a }\nb = vector.exp(a)", "8:1", "'a' is used after it was freed in line 7"},
        {"if (?) { free a } else { }\nb = vector.exp(a)", "8:1",
         "'a' is used after it was freed in line 7"},
        {"if (?) { } else { free a }\nb = vector.exp(a)", "8:1",
         "'a' is used after it was freed in line 7"},
        {"if (?) { if (?) { free a } else { } } else { }\nfree a", "8:1",
         "'a' is freed twice: before in line 7"},
        {"r = for i in 0..4 carry (q = a) { alloc n: 4x8 f32 @ub\nfree n\nyield (n) }", "9:1",
         "'n' is used after it was freed in line 8"},
        /* blocks */
        {"for i in 0..4 { alloc d: 4 f32 @ub }\nfree d", "8:1",
         "'d' is used outside the block that defines it"},
        {"if (?) { alloc d: 4 f32 @ub } else {\nfree d }", "8:1",
         "'d' is used outside the block that defines it"},
        {"r = for i in 0..4 carry (q = a) { yield (b) }\nb = vector.exp(q)", "8:1",
         "'q' is used outside the block"},
        {"r = for i in 0..4 carry (q = a) {\nb = vector.exp(r)\nyield (b) }", "8:1",
         "'r' is used before the end of the block that makes it"},
        {"r = if (?) {\nyield (r) } else { yield (a) }", "8:1",
         "'r' is used before the end of the block that makes it"},
        {"for i in 0..4 {\nfor i in 0..4 { } }", "8:1",
         "'i' is the variable of the loop in line 7 already"},
        {"for i in 4..2 { }", "7:1", "loop bounds are 0 <= lo <= hi <= 2^62"},
        {"for i in 0..4611686018427387905 { }", "7:1", "loop bounds are 0 <= lo <= hi <= 2^62"},
        {"for i in 0..4 step 0 { }", "7:1", "a loop's step is 1 to 2^62"},
        {"while (x) { }", "7:1", "the param 'x' cannot be a condition"},
        {"r = while (?) carry (q = x) { yield (q) }", "7:1", "the param 'x' cannot be carried"},
        {"r = while (?) carry (q = a) {\nyield (x) }", "8:1", "the param 'x' cannot be yielded"},
        {"r = while (?) carry (q = a) { }", "7:31",
         "the block of line 7 ends without yield, but makes 'r'"},
        {"r = if (?) { } else { yield (a) }", "7:16",
         "the block of line 7 ends without yield, but makes 'r'"},
        {"r = if (?) { yield (a) } else { }", "7:33", "the block of line 7 ends without yield"},
        {"r = if (?) {\nyield (a)\n}", "9:1", "the 'if' of line 7 makes 'r' and has no else"},
        {"yield (a)", "7:1", "yield in a block without results"},
        {"for i in 0..4 { yield (a) }", "7:17", "yield in a block without results"},
        {"r = while (?) carry (q = a) { if (?) {\nyield (a) } }", "8:1",
         "yield in a block without results"},
        {"r = while (?) carry (q = a) { yield (a)\nb = vector.exp(a) }", "8:1",
         "a statement after yield"},
        {"r = while (?) carry (q = a) { yield (a)\nyield (a) }", "8:1", "a statement after yield"},
        {"r = while (?) carry (q = a) {\nyield () }", "8:1", "0 values yielded, 1 wanted"},
        {"r = while (?) carry (q = a) {\nyield (a, b) }", "8:1", "2 values yielded, 1 wanted"},
        {"r = while (?) carry (q = a) {\nyield (c) }", "8:1",
         "'c' is 32 i8 @l1, but 'r' is 4x8 f32 @ub"},
        {"alias v = a: 8x4 f32\nr = if (?) { yield (a) } else {\nyield (v) }", "9:1",
         "'v' is 8x4 f32 @ub, but 'r' is 4x8 f32 @ub"},
        {"alias v = a: 4x8 i32\nr = if (?) { yield (v) } else {\nyield (a) }", "9:1",
         "'a' is 4x8 f32 @ub, but 'r' is 4x8 i32 @ub"},
        {"alloc z: 4x8 f32 @l2\nr = if (?) { yield (z) } else {\nyield (a) }", "9:1",
         "'a' is 4x8 f32 @ub, but 'r' is 4x8 f32 @l2"},
    };
    ALL_FAIL(bad);
}

/* What is near a broken rule and allowed. */
static void test_good_flow(void **state)
{
    (void)state;
    const char *good[] = {
        "if (?) { free a } else { b = vector.exp(a) free a } free b",
        "if (?) { if (?) { free a } else { } } else { b = vector.exp(a) free a }",
        "for i in 0..4 { alloc d: 4 f32 @ub if (?) { alias v = d: 2 f32 free v } }",
        "alloc i: 4 f32 @ub for i in 0..4 { } for i in 0..0 { } while (i) { }",
        "load a <- x[-1:3, 7:15] load c <- a copy a <- x copy c <- a b = cube.mmad(x, y)",
        "store y <- c workspace w: 32 f32 load a <- w store w <- a load w <- x copy w <- a",
        "alias v = x: 32 f32 b = vector.exp(v) alias z = y: 32 f32 store z[0:32] <- b",
        "a = vector.copy(a) a = vector.for.each(a) copy.vector c <- a",
        "r = for i in 0..4 carry (q = a) { q = vector.exp(q) yield (q) } r = vector.exp(r)",
        "r, s = for i in 0..4 carry (q = a, p = b) { yield (p, q) } alias v = r: 8 f32 subview w = "
        "s[1:2, 0:8]",
        "for i in 0..? { for j in 0..4 { load a <- x[j-i:2+j-i, i:i+8] } }",
        "a, b = vector.split(a, b) if (a) { } while (b) { }",
        "subview v = a[3:4, 7:8] subview w = v[0:1, 0:1] alias u = w: 4 u8",
        /* where it lies depends on i: not known here */
        "for i in 0..4 { subview v = a[i-9:i-8, 0:8] }",
    };
    for (size_t t = 0; t < sizeof good / sizeof *good; t++) {
        char text[2000];
        snprintf(text, sizeof text, "%s%s\n}\n", BEFORE, good[t]);
        ot_kernel *k = parse(text);
        free(round_trip(k));
        ot_kernel_free(k);
    }
}

int main(void)
{
    seed_from_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_syntax), cmocka_unit_test(test_bad_statements),
        cmocka_unit_test(test_bad_values), cmocka_unit_test(test_bad_flow),
        cmocka_unit_test(test_good_flow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
