/* The kernel language as text: reading and printing.
 *
 * Texts go round: what parses prints, and the print parses to the same print. Limits hold; damaged
 * texts may do anything but crash.
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
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_other_spellings),
        cmocka_unit_test(test_sums),       cmocka_unit_test(test_fields),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_copy_pipes),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_many_statements),
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_mutations),  cmocka_unit_test(test_line_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
