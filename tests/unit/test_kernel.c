/* The kernel language as text: reading and printing.
 *
 * Texts go round: what parses prints, and the print parses to the same print. Each rule has a
 * text that breaks it and nothing else, with the place that the message must name. Damaged texts
 * may do anything but crash.
 *
 */
#include "kernel_check.h"

/* ---- helpers ---- */

static void prints(const char *text, const char *canonical)
{
    ot_kernel *k = parse(text);
    char *got = round_trip(k);
    assert_string_equal(got, canonical);
    free(got);
    ot_kernel_free(k);
}

/* "k.tk:" place ": " ... fragment ... */
static void expect_message(const char *message, const char *place, const char *fragment,
                           const char *text)
{
    char start[64];
    snprintf(start, sizeof start, "k.tk:%s: ", place);
    if (strncmp(message, start, strlen(start)) != 0 || !strstr(message, fragment))
        fail_msg("message '%s', wanted '%s...%s'\nin:\n%s", message, start, fragment, text);
}

static void parse_fails_n(const char *text, size_t n, const char *place, const char *fragment)
{
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", text, n, &d, &k) != OT_E_INPUT) fail_msg("this parses:\n%s", text);
    assert_null(k);
    expect_message(d.message, place, fragment, text);
}

static void parse_fails(const char *text, const char *place, const char *fragment)
{
    parse_fails_n(text, strlen(text), place, fragment);
}

/* ---- reading and printing ---- */

static void test_round_trip(void **state)
{
    (void)state;
    prints(EVERYTHING, EVERYTHING);
    prints("kernel k {\n}\n", "kernel k {\n}\n");
}

static void test_other_spellings(void **state)
{
    (void)state;
    /* one line, CRLF, byte order mark, comments, no blanks where none are needed, leading zeros,
     * default values */
    prints("\xef\xbb\xbfkernel kernel{param x:04x8 f32@gm alloc a:4x8 f32@ub multi=1 load a<-x for "
           "i in 0..4 step 1{}}",
           "kernel kernel {\n  param x: 4x8 f32 @gm\n  alloc a: 4x8 f32 @ub\n  load a <- x\n  for "
           "i in 0..4 {\n  }\n}\n");
    prints("# comment \xff\r\nkernel k # {\r\n{\r\n\talloc a: 4 f32 @ub#}\r\n}#",
           "kernel k {\n  alloc a: 4 f32 @ub\n}\n");
}

static void test_sums(void **state)
{
    (void)state;
    const struct {
        const char *range, *printed;
    } sums[] = {
        {"1+i-3+j*2-i*3:2*j-2*i+2", "-2*i+2*j-2:2*j-2*i+2"},
        {"i-i+3-3:1", "0:1"},
        {"-j:-1*j+1", "-j:-j+1"},
        {"-1:1", "-1:1"},
        {"4611686018427387904+i:i+4611686018427387905",
         "i+4611686018427387904:i+4611686018427387905"},
        {"0*i+7:007+1", "7:8"},
    };
    for (size_t t = 0; t < sizeof sums / sizeof *sums; t++) {
        char text[400], want[400];
        const char *form = "kernel k {\n  param x: 9 u8 @gm\n  alloc a: 8 u8 @ub\n  for i in 0..4 "
                           "{\n    for j in 0..4 {\n"
                           "      load a <- x[%s]\n    }\n  }\n}\n";
        snprintf(text, sizeof text, form, sums[t].range);
        snprintf(want, sizeof want, form, sums[t].printed);
        prints(text, want);
    }
}

static void test_fields(void **state)
{
    (void)state;
    ot_kernel *k = parse("kernel k target \"t\" {\n"
                         "  param x: 4x8 f32 @gm\n"
                         "  alloc a: 3x5 i4 @l1 align=96 multi=2 offset=0,96\n" /* statement 0 */
                         "  alloc t: 4x8 f32 @ub\n"                             /* 1 */
                         "  r = for i in 2..9 step 3 carry (acc = t) {\n"       /* 2 */
                         "    load t <- x[0:4, i+1:i+2]\n"                      /* 3 */
                         "    yield (t)\n"                                      /* 4 */
                         "  }\n"                                                /* 5 */
                         "  q = if (r) {\n"                                     /* 6 */
                         "    copy.cube t <- t\n"                               /* 7 */
                         "    yield (t)\n"                                      /* 8 */
                         "  } else {\n"                                         /* 9 */
                         "    yield (r)\n"                                      /* 10 */
                         "  }\n"                                                /* 11 */
                         "  while (?) {\n"                                      /* 12 */
                         "  }\n"                                                /* 13 */
                         "  subview s = t[2:4, 0:8]\n"                          /* 14 */
                         "  alias v = s: 2x2 c64\n"                             /* 15 */
                         "}\n");
    enum { X, A, T, R, ACC, Q, S, V };
    const ot_tk_stmt *s = k->stmts;
    const ot_tk_value *v = k->values;
    bool partial;
    assert_string_equal(k->target, "t");
    assert_int_equal(k->n_stmts, 16);
    assert_int_equal(k->n_values, 8);
    /* values */
    assert_int_equal(v[X].kind, OT_TK_PARAM);
    assert_int_equal(v[X].stmt, OT_NONE);
    assert_int_equal(v[X].base, OT_NONE);
    assert_true(v[X].line == 2 && v[X].col == 9);
    assert_int_equal(v[A].bytes, 8); /* 15 elements of 4 bits */
    assert_int_equal(v[A].align, 96);
    assert_true(v[A].multi == 2 && v[A].n_offsets == 2 && v[A].offsets[1] == 96);
    assert_int_equal(v[A].scope, OT_SCOPE_L1);
    assert_true(v[R].kind == OT_TK_RESULT && v[ACC].kind == OT_TK_CARRIED &&
                v[Q].kind == OT_TK_RESULT);
    assert_true(v[R].stmt == 2 && v[ACC].stmt == 2 && v[Q].stmt == 6);
    assert_true(v[R].line == 5 && v[R].col == 3 && v[ACC].col == 35);
    assert_true(v[Q].rank == 2 && v[Q].dims[1] == 8 && v[Q].bytes == 128 &&
                v[Q].scope == OT_SCOPE_UB && v[Q].multi == 1);
    assert_true(v[S].kind == OT_TK_SUBVIEW && v[S].base == T && v[S].dims[0] == 2 &&
                v[S].bytes == 64 && v[S].ranges);
    assert_true(v[V].kind == OT_TK_ALIAS && v[V].base == S && v[V].bytes == 32);
    assert_int_equal(ot_tk_root(k, V, &partial), T);
    assert_true(partial);
    assert_int_equal(ot_tk_root(k, T, &partial), T);
    assert_false(partial);
    /* statements */
    assert_true(s[0].op == OT_TK_ALLOC && s[0].parent == OT_NONE && s[0].mate == OT_NONE &&
                s[0].out[0] == A && s[0].col == 3);
    assert_true(s[2].op == OT_TK_FOR && s[2].lo == 2 && s[2].hi == 9 && s[2].step == 3 &&
                s[2].mate == 5 && s[2].n_out == 1);
    assert_true(s[2].out[0] == R && s[2].carried[0] == ACC && s[2].n_in == 1 && s[2].in[0] == T &&
                !s[2].has_condition);
    assert_true(s[3].op == OT_TK_LOAD && s[3].parent == 2 && s[3].n_ranges == 2 &&
                s[3].ranges[1].lo.terms[0].coef == 1);
    assert_true(s[3].pipe == OT_PIPE_DMA_IN && s[3].line == 6 && s[3].col == 5);
    assert_true(s[4].op == OT_TK_YIELD && s[4].mate == 2 && s[4].parent == 2 && s[4].in[0] == T);
    assert_true(s[5].op == OT_TK_END && s[5].mate == 2 && s[5].parent == OT_NONE);
    assert_true(s[6].op == OT_TK_IF && s[6].mate == 9 && s[6].has_condition && s[6].n_in == 1 &&
                s[6].in[0] == R);
    assert_true(s[7].op == OT_TK_COPY && s[7].pipe == OT_PIPE_CUBE && s[7].explicit_pipe &&
                s[7].parent == 6);
    assert_true(s[9].op == OT_TK_ELSE && s[9].mate == 11 && s[9].parent == 6 && s[9].line == 12 &&
                s[9].col == 5);
    assert_true(s[10].op == OT_TK_YIELD && s[10].mate == 6 && s[10].parent == 6);
    assert_true(s[11].op == OT_TK_END && s[11].mate == 6 && s[11].parent == OT_NONE);
    assert_true(s[12].op == OT_TK_WHILE && !s[12].has_condition && s[12].n_in == 0 &&
                s[12].mate == 13);
    assert_true(s[14].op == OT_TK_VIEW && s[14].out[0] == S && s[14].n_in == 0);
    ot_kernel_free(k);
}

static void test_names(void **state)
{
    (void)state;
    ot_scope s;
    for (unsigned k = 0; k < OT_SCOPE_COUNT; k++) {
        assert_true(ot_scope_parse(ot_scope_name((ot_scope)k), &s));
        assert_int_equal(s, k);
    }
    assert_string_equal(ot_scope_name(OT_SCOPE_L0C), "l0c");
    assert_string_equal(ot_pipe_name(OT_PIPE_DMA_OUT), "dma_out");
    assert_false(ot_scope_parse("UB", &s));
    assert_false(ot_scope_parse("", &s));
    assert_string_equal(ot_scope_name(OT_SCOPE_COUNT), "?");
    assert_int_equal(ot_tk_dtype_bits("f32"), 32);
    assert_int_equal(ot_tk_dtype_bits("bf16"), 16);
    assert_int_equal(ot_tk_dtype_bits("i4"), 4);
    assert_int_equal(ot_tk_dtype_bits("c128"), 128);
    assert_int_equal(ot_tk_dtype_bits("float32"), 0);
    assert_int_equal(ot_tk_dtype_bits(NULL), 0);
}

static void test_copy_pipes(void **state)
{
    (void)state;
    const struct {
        const char *from, *to;
        ot_pipe pipe;
    } copies[] = {
        {"gm", "ub", OT_PIPE_DMA_IN},    {"gm", "l1", OT_PIPE_DMA_IN},
        {"ub", "gm", OT_PIPE_DMA_OUT},   {"l1", "gm", OT_PIPE_DMA_OUT},
        {"ub", "ub", OT_PIPE_VECTOR},    {"l2", "l2", OT_PIPE_VECTOR},
        {"l1", "l0a", OT_PIPE_DMA_IN},   {"l1", "l0b", OT_PIPE_DMA_IN},
        {"l1", "bt", OT_PIPE_DMA_IN},    {"l0c", "gm", OT_PIPE_DMA_OUT},
        {"l0c", "ub", OT_PIPE_DMA_OUT},  {"l0c", "l1", OT_PIPE_DMA_OUT},
        {"ub", "l1", OT_PIPE_DMA_IN},    {"gm", "gm", OT_PIPE_DMA_IN},
        {"l0c", "l0c", OT_PIPE_DMA_OUT},
    };
    for (size_t t = 0; t < sizeof copies / sizeof *copies; t++) {
        char text[200];
        snprintf(text, sizeof text,
                 "kernel k { alloc a: 4 f32 @%s alloc b: 4 f32 @%s copy b <- a }", copies[t].from,
                 copies[t].to);
        ot_kernel *k = parse(text);
        if (k->stmts[2].pipe != copies[t].pipe)
            fail_msg("%s: pipe %s", text, ot_pipe_name(k->stmts[2].pipe));
        ot_kernel_free(k);
    }
}

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

/* ---- limits ---- */

static void repeat_parses(const char *head, const char *piece, size_t n, const char *tail)
{
    char *text = repeat(head, piece, n, tail);
    ot_kernel *k = parse(text);
    free(round_trip(k));
    ot_kernel_free(k);
    free(text);
}

static void repeat_fails(const char *head, const char *piece, size_t n, const char *tail,
                         const char *place, const char *part)
{
    char *text = repeat(head, piece, n, tail);
    parse_fails(text, place, part);
    free(text);
}

static void test_limits(void **state)
{
    (void)state;
    /* 64 blocks; a name and a target of 255 bytes; 64 views */
    char *ends = repeat("", "}", 65, "");
    repeat_parses("kernel k {", "while (?) {", 64, ends);
    free(ends);
    repeat_fails("kernel k {\n", "if (?) {\n", 65, "", "66:1", "blocks nest more than 64 deep");
    repeat_parses("kernel k { alloc ", "n", 255, ": 4 f32 @ub }");
    repeat_fails("kernel k {\nalloc ", "n", 256, ": 4 f32 @ub }", "2:7",
                 "a name has at most 255 bytes, not 256");
    repeat_parses("kernel k target \"", "t", 255, "\" { }");
    repeat_fails("kernel k target \"", "t", 256, "\" { }", "1:17",
                 "a string has at most 255 bytes, not 256");
    repeat_parses("kernel k { alloc v0: 4 f32 @ub\n", "alias v^ = v%: 4 f32\n", 64, "}");
    repeat_fails("kernel k { alloc v0: 4 f32 @ub\n", "alias v^ = v%: 4 f32\n", 65, "}", "66:1",
                 "views of views more than 64 deep");
    /* lists are of any length */
    repeat_parses("kernel k { alloc a: 4 f32 @ub a = vector.concat(a", ", a", 20000, ") }");
}

static void test_many_statements(void **state)
{
    (void)state;
    repeat_parses("kernel k { param x: 4 f32 @gm\n",
                  "alloc a%: 4 f32 @ub\nload a% <- x\na% = vector.exp(a%)\nfree a%\n", 25000, "}");
    repeat_fails("kernel k { alloc a: 4 f32 @ub\n", "a=vector.f()\n", 1u << 20, "}", "1048577:1",
                 "more than 1048576 statements");
    char *names = repeat("kernel k {\nparam p0:1 u8@gm\n", "param p^:1 u8@gm\n", 1u << 20, "}");
    parse_fails(names, "1048578:7", "more than 1048576 values");
    free(names);
}

static void test_bytes(void **state)
{
    (void)state;
    char nul[] = "kernel k {\n  alloc a: 4 f32 @ub?\n}";
    nul[sizeof nul - 4] = '\0';
    parse_fails_n(nul, sizeof nul - 1, "2:21", "a NUL byte (0x00) is no text");
    parse_fails_n("kernel k { # \0 }\n}", 18, "1:14", "a NUL byte");
    parse_fails_n("kernel k target \"\0\" {}", 22, "1:17", "no closing quote");
    parse_fails("kernel k {\r\n\r\n  ;", "3:3", "';'"); /* CRLF counts once */
    parse_fails("kernel k {\n\t\t;", "2:3", "';'");     /* a tab is one column */
    parse_fails("\xef\xbb\xbfkernel ;", "1:8", "';'");  /* the byte order mark none */
    size_t n = ((size_t)64 << 20) + 1;
    char *big = malloc(n);
    assert_non_null(big);
    memset(big, ' ', n);
    parse_fails_n(big, n, "1:1", "the text has 67108865 bytes, at most 67108864 are read");
    memcpy(big, "kernel k { }", 12);
    ot_kernel_free(parse_n(big, n - 1));
    free(big);
}

/* ---- damage ---- */

/* Any outcome but a crash; what parses goes round. */
static void survives(const char *text, size_t n)
{
    char *exact = malloc(n ? n : 1); /* of the very size, so that a read past the end is seen */
    ot_diag d = {0};
    ot_kernel *k = NULL;
    assert_non_null(exact);
    memcpy(exact, text, n);
    ot_status s = ot_kernel_parse("k.tk", exact, n, &d, &k);
    if (s == OT_OK) {
        free(round_trip(k));
        ot_kernel_free(k);
    } else {
        unsigned line, col;
        assert_int_equal(s, OT_E_INPUT);
        assert_int_equal(sscanf(d.message, "k.tk:%u:%u: ", &line, &col), 2);
    }
    free(exact);
}

static void test_truncations(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof EVERYTHING; n++) survives(EVERYTHING, n);
    ot_kernel *k = NULL;
    for (size_t n = 0; n < sizeof EVERYTHING - 2;
         n++) /* without its last '}' no text is a kernel */
        assert_int_equal(ot_kernel_parse("k.tk", EVERYTHING, n, NULL, &k), OT_E_INPUT);
}

static void test_mutations(void **state)
{
    (void)state;
    static const char bytes[] = "0941x.:,-+*?=@[]{}()<\"#\n aivn_\x80\xff";
    char text[sizeof EVERYTHING + 1];
    size_t n = sizeof EVERYTHING - 1;
    for (size_t at = 0; at < n; at++) {
        for (size_t b = 0; b < sizeof bytes; b++) { /* the terminating zero too */
            memcpy(text, EVERYTHING, n);
            text[at] = bytes[b];
            survives(text, n);
        }
        memcpy(text, EVERYTHING, at); /* one byte less; one twice */
        memcpy(text + at, EVERYTHING + at + 1, n - at - 1);
        survives(text, n - 1);
        memcpy(text, EVERYTHING, at + 1);
        memcpy(text + at + 1, EVERYTHING + at, n - at);
        survives(text, n + 1);
    }
}

static void test_line_mutations(void **state)
{
    (void)state;
    const char *lines[100];
    size_t n = 0;
    for (const char *c = EVERYTHING; *c; c = strchr(c, '\n') + 1) lines[n++] = c;
    lines[n] = EVERYTHING + sizeof EVERYTHING - 1;
    for (uint32_t run = 0; run < 3000; run++) { /* some lines moved, doubled, dropped */
        char text[2 * sizeof EVERYTHING];
        size_t used = 0;
        for (size_t l = 0; l < n; l++) {
            size_t from = below(20) ? l : below((uint32_t)n);
            size_t times = below(30) ? 1 : below(3);
            size_t len = (size_t)(lines[from + 1] - lines[from]);
            for (; times > 0 && used + len <= sizeof text; times--) {
                memcpy(text + used, lines[from], len);
                used += len;
            }
        }
        survives(text, used);
    }
}

int main(void)
{
    seed_from_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_other_spellings),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_copy_pipes),
        cmocka_unit_test(test_bad_syntax),
        cmocka_unit_test(test_bad_statements),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_bad_flow),
        cmocka_unit_test(test_good_flow),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_many_statements),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_line_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
