/* Lifetimes of small kernels, as text: one line for each buffer, the names of its allocs and the lines of the kernel's body
 * (from 1) at which it is alive. What holds for all kernels is in test_kernel_run.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planmem/planmem.h"

#define HEAD       "kernel k {\nparam x: 64 i8 @gm\nparam y: 64 i8 @gm\n"
#define HEAD_LINES 3

static const ot_lifetime_options PLAIN = {0}, RESTRICTED = {.restrict_in_place = true}, APART = {.no_in_place = true},
                                 HOLD = {.hold_multi = true};

static ot_target target(void)
{
    ot_target t = {0};
    for (int s = 0; s < OT_SCOPE_COUNT; s++) t.scopes[s].alignment = 32;
    return t;
}

static ot_kernel *parse(const char *body)
{
    char text[8192];
    ot_diag d = {0};
    ot_kernel *k = NULL;
    int n = snprintf(text, sizeof text, HEAD "%s}\n", body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    if (ot_kernel_parse("k.tk", text, (size_t)n, &d, &k) != OT_OK) fail_msg("%s\n%s", d.message, text);
    return k;
}

static ot_lifetimes *find(const ot_kernel *k, const ot_lifetime_options *o)
{
    ot_target t = target();
    ot_diag d = {0};
    ot_lifetimes *l = NULL;
    if (ot_lifetimes_find(k, "k.tk", &t, o, &d, &l) != OT_OK) fail_msg("%s", d.message);
    return l;
}

static void put(char *out, size_t cap, const char *fmt, ...) OT_PRINTF(3, 4);
static void put(char *out, size_t cap, const char *fmt, ...)
{
    size_t at = strlen(out);
    va_list args;
    va_start(args, fmt);
    vsnprintf(out + at, cap - at, fmt, args);
    va_end(args);
}

/* "a+b x2 @0 2-5 7-7\n" for each buffer (of 2 slots, fixed at offset 0), "N copies\n", "warning ...\n". */
static void describe(const ot_kernel *k, const ot_lifetimes *l, char *out, size_t cap)
{
    out[0] = 0;
    for (uint32_t b = 0; b < l->n_buffers; b++) {
        const ot_buffer *x = &l->buffers[b];
        for (uint32_t v = 0; v < x->n_values; v++) put(out, cap, "%s%s", v ? "+" : "", k->values[x->values[v]].name);
        if (x->multi > 1) put(out, cap, " x%u", x->multi);
        if (x->fixed[0] >= 0) put(out, cap, " @%d", (int)x->fixed[0]);
        for (uint32_t i = 0; i < x->n_live; i++) {
            put(out, cap, " %u-%u", k->stmts[x->live[i].lower].line - HEAD_LINES, k->stmts[x->live[i].upper - 1].line - HEAD_LINES);
        }
        put(out, cap, "\n");
    }
    if (l->n_copies) put(out, cap, "%u copies\n", l->n_copies);
    for (uint32_t i = 0; i < l->n_warnings; i++) {
        unsigned line, col;
        int at = 0;
        assert_int_equal(sscanf(l->warnings[i], "%u:%u: %n", &line, &col, &at), 2);
        put(out, cap, "warning %u: %s\n", line - HEAD_LINES, l->warnings[i] + at);
    }
}

static void check_with(const char *body, const ot_lifetime_options *o, const char *want)
{
    char got[2048];
    ot_kernel *k = parse(body);
    ot_lifetimes *l = find(k, o);
    describe(k, l, got, sizeof got);
    assert_string_equal(got, want);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

static void check(const char *body, const char *want) { check_with(body, &PLAIN, want); }

static void check_fails(const char *body, const char *want)
{
    ot_kernel *k = parse(body);
    ot_target t = target();
    ot_diag d = {0};
    ot_lifetimes *l;
    assert_int_equal(ot_lifetimes_find(k, "k.tk", &t, &PLAIN, &d, &l), OT_E_INPUT);
    assert_null(l);
    assert_string_equal(d.message, want);
    ot_kernel_free(k);
}

/* ---- straight lines ---- */

static void first_write_to_last_read(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "alloc b: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "b = vector.reduce(a)\n"
          "store y[0:8] <- b\n"
          "store y[0:8] <- a\n",
          "a 3-6\nb 4-5\n");
}

static void holes(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "store y[0:8] <- a\n"
          "alloc b: 8 f32 @ub\n"
          "load b <- x[0:8]\n"
          "store y[0:8] <- b\n"
          "load a <- x[0:8]\n"
          "store y[0:8] <- a\n",
          "a 2-3 7-8\nb 5-6\n");
}

static void dead_writes_stay(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "alloc b: 8 f32 @ub\n"
          "alloc c: 8 f32 @ub\n"
          "alloc e: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "a = vector.reduce(a)\n"
          "load b <- x[0:8]\n"
          "load b <- x[0:8]\n"
          "store y[0:8] <- b\n"
          "store y[0:8] <- e\n",
          "a 5-6\nb 7-9\nc\ne 10-10\n"
          "warning 3: 'c' is never used\n"
          "warning 10: 'e' is read here before anything is written to it\n");
    check("alloc a: 8 f32 @ub\nload a <- x[0:8]\n", "a 2-2\nwarning 1: 'a' is never read\n");
}

static void both_operands_of_a_statement_meet(void **state)
{
    (void)state;
    ot_kernel *k = parse("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nload a <- x[0:8]\nb = vector.reduce(a)\nstore y[0:8] <- b\n");
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->n_buffers, 2);
    assert_int_equal(l->buffers[0].live[0].upper, 4);
    assert_int_equal(l->buffers[1].live[0].lower, 3);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

/* ---- branches ---- */

static void branches_join(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "alloc b: 8 f32 @ub\n"
          "alloc c: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "load b <- x[0:8]\n"
          "if (?) {\n"
          "c = vector.reduce(a)\n"
          "} else {\n"
          "store y[0:8] <- b\n"
          "c = vector.reduce(b)\n"
          "}\n"
          "store y[0:8] <- c\n",
          "a 4-7\nb 5-6 8-10\nc 7-7 10-12\n");
}

static void a_branch_may_be_skipped(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "if (?) {\n"
          "load a <- x[0:8]\n"
          "}\n"
          "store y[0:8] <- a\n",
          "a 2-6\n");
    check("alloc a: 8 f32 @ub\n"
          "alloc s: 1 i32 @ub\n"
          "load s <- x[0:1]\n"
          "if (s) {\n"
          "} else {\n"
          "load a <- x[0:8]\n"
          "store y[0:8] <- a\n"
          "}\n",
          "s 3-4\na 6-7\n");
}

static void results_of_branches_share(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "q = if (?) {\n"
          "alloc b: 8 f32 @ub\n"
          "b = vector.reduce(a)\n"
          "yield (b)\n"
          "} else {\n"
          "alloc c: 8 f32 @ub\n"
          "store y[0:8] <- a\n"
          "c = vector.reduce(a)\n"
          "yield (c)\n"
          "}\n"
          "store y[0:8] <- q\n",
          "a 2-5 7-10\nb+c 5-6 10-13\n");
    /* a is read later: q must not overwrite it, so it is a copy */
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "q = if (?) {\n"
          "yield (a)\n"
          "} else {\n"
          "alloc c: 8 f32 @ub\n"
          "load c <- x[0:8]\n"
          "yield (c)\n"
          "}\n"
          "q = vector.reduce(q)\n"
          "store y[0:8] <- q\n"
          "store y[0:8] <- a\n",
          "a 2-12\nc 4-4 7-11\n1 copies\n");
}

static void copies_of_unchanged_values_share(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "q = if (?) {\n"
          "yield (a)\n"
          "} else {\n"
          "yield (a)\n"
          "}\n"
          "store y[0:8] <- q\n"
          "store y[0:8] <- a\n",
          "a 2-9\n");
}

/* ---- loops ---- */

static void alive_around_the_back_edge(void **state)
{
    (void)state;
    check("alloc w: 8 f32 @ub\n"
          "alloc s: 8 f32 @ub\n"
          "load w <- x[0:8]\n"
          "for i in 0..8 {\n"
          "alloc t: 8 f32 @ub\n"
          "load t <- x[0:8]\n"
          "s = vector.reduce(t, w)\n"
          "store y[0:8] <- s\n"
          "}\n",
          "w 3-9\nt 6-7\ns 7-8\n");
    /* written at the end of an iteration, read at the beginning of the next */
    check("alloc a: 8 f32 @ub\n"
          "for i in 0..8 {\n"
          "store y[0:8] <- a\n"
          "load a <- x[0:8]\n"
          "}\n",
          "a 2-5\n");
    /* never written: nothing to keep */
    check("alloc a: 8 f32 @ub\n"
          "for i in 0..8 {\n"
          "store y[0:8] <- a\n"
          "}\n",
          "a 3-3\nwarning 3: 'a' is read here before anything is written to it\n");
}

static void written_anew_in_every_iteration(void **state)
{
    (void)state;
    /* read after the loop only: no iteration needs what the one before wrote */
    check("alloc a: 8 f32 @ub\n"
          "for i in 0..8 {\n"
          "alloc b: 8 f32 @ub\n"
          "load b <- x[0:8]\n"
          "load a <- x[0:8]\n"
          "store y[0:8] <- a\n"
          "}\n"
          "store y[0:8] <- a\n",
          "b 4-4\na 5-8\nwarning 3: 'b' is never read\n");
}

static void loops_that_surely_run(void **state)
{
    (void)state;
    /* the loop overwrites a whatever happens, if it runs */
    static const struct {
        const char *bounds, *want;
    } cases[] = {{"0..8", "a 2-2 4-6\n"}, {"0..?", "a 2-6\n"}, {"3..3", "a 2-6\n"}, {"7..8 step 3", "a 2-2 4-6\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "alloc a: 8 f32 @ub\nload a <- x[0:8]\nfor i in %s {\nload a <- x[0:8]\n}\nstore y[0:8] <- a\n",
                 cases[i].bounds);
        check(text, cases[i].want);
    }
}

static void loops_that_run_once(void **state)
{
    (void)state;
    static const struct {
        const char *bounds, *want;
    } cases[] = {{"0..1", "a 2-4\n"}, {"0..8 step 8", "a 2-4\n"}, {"0..8 step 7", "a 2-5\n"}, {"0..?", "a 2-5\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "alloc a: 8 f32 @ub\nload a <- x[0:8]\nfor i in %s {\nstore y[0:8] <- a\n}\n", cases[i].bounds);
        check(text, cases[i].want);
    }
}

static void conditions_are_read_before_each_iteration(void **state)
{
    (void)state;
    check("alloc s: 1 i32 @ub\n"
          "alloc a: 8 f32 @ub\n"
          "load s <- x[0:1]\n"
          "while (s) {\n"
          "load a <- x[0:8]\n"
          "store y[0:8] <- a\n"
          "load s <- x[0:1]\n"
          "}\n",
          "s 3-4 7-8\na 5-6\n");
}

static void nested_loops(void **state)
{
    (void)state;
    check("for i in 0..4 {\n"
          "alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "for j in 0..4 {\n"
          "alloc b: 8 f32 @ub\n"
          "b = vector.reduce(a)\n"
          "store y[0:8] <- b\n"
          "}\n"
          "alloc c: 8 f32 @ub\n"
          "load c <- x[0:8]\n"
          "store y[0:8] <- c\n"
          "}\n",
          "a 3-8\nb 6-7\nc 10-11\n");
}

/* Variables are looked at 64 at a time: what lies between is the same for those that others are far from. */
static void far_apart(void **state)
{
    (void)state;
    char text[8192] = "alloc a: 8 f32 @ub\n";
    for (int i = 0; i < 70; i++) put(text, sizeof text, "alloc p%d: 8 f32 @ub\n", i);
    put(text, sizeof text,
        "alloc b: 8 f32 @ub\n" /* line 72 */
        "if (?) {\n"
        "load a <- x[0:8]\n"
        "} else {\n"
        "load b <- x[0:8]\n"
        "store y[0:8] <- b\n"
        "}\n"
        "store y[0:8] <- a\n");
    ot_kernel *k = parse(text);
    ot_lifetimes *l = find(k, &PLAIN);
    char got[8192];
    describe(k, l, got, sizeof got);
    got[strcspn(got, "p")] = 0;
    assert_string_equal(got, "a 74-74 78-79\nb 76-77\n");
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

/* ---- views and parts ---- */

static void views_are_their_base(void **state)
{
    (void)state;
    check("alloc a: 4x8 f32 @ub\n"
          "load a <- x[0:32]\n"
          "subview s = a[1:2, 0:8]\n"
          "alias v = s: 8 i32\n"
          "alloc b: 8 f32 @ub\n"
          "load b <- x[0:8]\n"
          "b = vector.add(b, v)\n"
          "store y[0:8] <- b\n",
          "a 2-7\nb 6-8\n");
}

static void parts_do_not_end_a_life(void **state)
{
    (void)state;
    static const struct {
        const char *write;
        bool part;
    } cases[] = {
        {"subview s = a[0:4, 0:7]\nload s <- x[0:28]\n", true}, {"subview s = a[0:4, 0:8]\nload s <- x[0:32]\n", false},
        {"alias s = a: 31 f32\nload s <- x[0:31]\n", true},     {"alias s = a: 64 f16\nload s <- x[0:64]\n", false},
        {"alias s = a: 32 f32\nload s <- x[0:31]\n", true},     {"alias s = a: 32 f32\nload s <- x[-1:31]\n", false},
        {"store a[0:4, 1:8] <- b\nstore y[0:8] <- b\n", true},  {"store a[0:4, 0:8] <- b\nstore y[0:8] <- b\n", false},
        {"alias s = a: 31 f32\ncopy a <- s\n", true},           {"alias s = b: 32 f32\ncopy a <- s\n", false},
        {"subview s = a[0:2, 0:8]\ns = vector.add(b)\n", true}, {"alias s = a: 4x8 i32\ns = vector.add(b)\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "alloc b: 4x8 f32 @gm\nalloc a: 4x8 f32 @gm\nload a <- x[0:32]\nload b <- x[0:32]\n%sstore y[0:32] <- a\n",
                 cases[i].write);
        ot_kernel *k = parse(text);
        ot_lifetimes *l = find(k, &APART);
        const ot_buffer *a = &l->buffers[0];
        assert_string_equal(k->values[a->values[0]].name, "a");
        if (a->n_live != (cases[i].part ? 1 : 2)) fail_msg("%s: %u spans", cases[i].write, a->n_live);
        ot_lifetimes_free(l);
        ot_kernel_free(k);
    }
}

static void small_elements(void **state)
{
    (void)state;
    /* 7 of 8 elements of 4 bits take as many bytes */
    check("alloc a: 8 i4 @ub\nload a <- x[0:8]\nsubview s = a[0:7]\nload s <- x[0:7]\nstore y[0:8] <- a\n", "a 2-5\n");
    check("alloc a: 8 i4 @ub\nload a <- x[0:8]\nsubview s = a[0:8]\nload s <- x[0:8]\nstore y[0:8] <- a\n", "a 2-2 4-5\n");
}

/* ---- carried values ---- */

static void carried_values_share(void **state)
{
    (void)state;
    const char *body = "alloc a: 8 f32 @ub\n"
                       "load a <- x[0:8]\n"
                       "r = for i in 0..8 carry (acc = a) {\n"
                       "alloc t: 8 f32 @ub\n"
                       "alloc n: 8 f32 @ub\n"
                       "load t <- x[0:8]\n"
                       "n = vector.add(acc, t)\n"
                       "yield (n)\n"
                       "}\n"
                       "store y[0:8] <- r\n";
    check(body, "a+n 2-10\nt 6-7\n");
    check_with(body, &APART, "a 2-10\nt 6-7\nn 7-8\n1 copies\n"); /* n is written while acc is read */
}

static void yielded_too_early(void **state)
{
    (void)state;
    /* acc is read after n was written */
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 8 f32 @ub\n"
          "n = vector.add(acc, acc)\n"
          "store y[0:8] <- acc\n"
          "yield (n)\n"
          "}\n"
          "store y[0:8] <- r\n",
          "a 2-9\nn 5-7\n1 copies\n");
}

static void init_read_later(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 8 f32 @ub\n"
          "n = vector.add(acc, acc)\n"
          "yield (n)\n"
          "}\n"
          "store y[0:8] <- r\n"
          "store y[0:8] <- a\n",
          "a 2-9\nn 3-8\n1 copies\n");
    /* nobody changes acc: then both may have it */
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "store y[0:8] <- acc\n"
          "yield (acc)\n"
          "}\n"
          "store y[0:8] <- r\n"
          "store y[0:8] <- a\n",
          "a 2-8\n");
}

static void one_init_twice(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r, s = while (?) carry (u = a, v = a) {\n"
          "u = vector.relu(u)\n"
          "v = vector.sqrt(v)\n"
          "yield (u, v)\n"
          "}\n"
          "store y[0:8] <- r\n"
          "store y[0:8] <- s\n",
          "a 2-8\ns+v 3-9\n1 copies\n");
}

static void swaps_are_copied(void **state)
{
    (void)state;
    ot_kernel *k = parse("alloc a: 8 f32 @ub\n"
                         "alloc b: 8 f32 @ub\n"
                         "load a <- x[0:8]\n"
                         "load b <- x[0:8]\n"
                         "r, s = while (?) carry (u = a, v = b) {\n"
                         "yield (v, u)\n"
                         "}\n"
                         "store y[0:8] <- r\n"
                         "store y[0:8] <- s\n");
    ot_lifetimes *l = find(k, &PLAIN);
    char got[512];
    describe(k, l, got, sizeof got);
    /* one value waits in a third place, from the yield to the end */
    assert_string_equal(got, "a 3-8\nb 4-9\nu 6-7\n3 copies\n");
    uint32_t ids[7] = {0};
    for (uint32_t v = 0; v < k->n_values; v++) {
        const char *names = "abuvrs", *at = strchr(names, k->values[v].name[0]);
        if (at) ids[at - names] = l->buffer_of[v];
    }
    assert_int_equal(ids[0], 0);
    assert_int_equal(ids[1], 1);
    assert_int_equal(ids[2], 0); /* u is a's, not where it waits */
    assert_int_equal(ids[3], 1);
    assert_int_equal(ids[4], 0);
    assert_int_equal(ids[5], 1);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

static void results_that_nothing_reads(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = for i in 0..8 carry (acc = a) {\n"
          "acc = vector.relu(acc)\n"
          "yield (acc)\n"
          "}\n"
          "alloc b: 8 f32 @ub\n"
          "load b <- x[0:8]\n"
          "store y[0:8] <- b\n",
          "a 2-6\nb 8-9\n");
}

static void views_are_yielded(void **state)
{
    (void)state;
    /* a part is copied, all of it is not */
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 2x8 f32 @ub\n"
          "load n <- x[0:16]\n"
          "alias h = n: 8 f32\n"
          "yield (h)\n"
          "}\n"
          "store y[0:8] <- r\n",
          "a 2-3 7-9\nn 5-7\n1 copies\n");
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 2x4 f32 @ub\n"
          "load n <- x[0:8]\n"
          "alias h = n: 8 f32\n"
          "yield (h)\n"
          "}\n"
          "store y[0:8] <- r\n",
          "a+n 2-3 5-9\n");
}

static void fixed_offsets(void **state)
{
    (void)state;
    /* what a finished plan says: all that shares has one offset */
    check("alloc a: 8 f32 @ub offset=64\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 8 f32 @ub offset=64\n"
          "n = vector.relu(acc)\n"
          "yield (n)\n"
          "}\n"
          "store y[0:8] <- r\n",
          "a+n @64 2-8\n");
    check("alloc a: 8 f32 @ub offset=64\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 8 f32 @ub offset=96\n"
          "n = vector.relu(acc)\n"
          "yield (n)\n"
          "}\n"
          "store y[0:8] <- r\n",
          "a @64 2-3\nn @96 3-8\n1 copies\n");
    /* one is given: the others follow */
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = while (?) carry (acc = a) {\n"
          "alloc n: 8 f32 @ub offset=96\n"
          "n = vector.relu(acc)\n"
          "yield (n)\n"
          "}\n"
          "store y[0:8] <- r\n",
          "a+n @96 2-8\n");
}

static void deep_copies_go_first(void **state)
{
    (void)state;
    /* a shares with acc, not with q: copies outside of the loop cost less */
    check("alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "q = if (?) {\n"
          "yield (a)\n"
          "} else {\n"
          "yield (a)\n"
          "}\n"
          "for i in 0..1 {\n"
          "r = while (?) carry (acc = a) {\n"
          "acc = vector.relu(acc)\n"
          "yield (acc)\n"
          "}\n"
          "store y[0:8] <- r\n"
          "}\n"
          "store y[0:8] <- q\n",
          "a 2-13\nq 4-4 6-15\n2 copies\n");
}

/* ---- multi-buffers ---- */

static void multi_buffers(void **state)
{
    (void)state;
    ot_kernel *k = parse("for i in 0..8 {\n"
                         "alloc a: 8 f32 @ub multi=2\n"
                         "load a <- x[0:8]\n"
                         "for j in 0..4 {\n"
                         "store y[0:8] <- a\n"
                         "}\n"
                         "}\n");
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->buffers[0].multi, 2);
    assert_int_equal(l->buffers[0].loop, 0);
    assert_true(l->buffers[0].dma);
    assert_int_equal(l->buffers[0].pipes, 1u << OT_PIPE_DMA_IN | 1u << OT_PIPE_DMA_OUT);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
    check_fails("alloc a: 8 f32 @ub multi=2\n"
                "for i in 0..8 {\n"
                "store y[0:8] <- a\n"
                "load a <- x[0:8]\n"
                "}\n",
                "k.tk:4:7: 'a' has multi=2, but keeps a value from one iteration of the loop at line 5 to the next (a buffer "
                "that is written by parts is to be allocated inside the loop)");
    check("for i in 0..8 {\n" /* by parts, inside */
          "alloc a: 2x8 f32 @ub multi=2\n"
          "subview s = a[0:1, 0:8]\n"
          "subview t = a[1:2, 0:8]\n"
          "load s <- x[0:8]\n"
          "load t <- x[0:8]\n"
          "store y[0:8] <- a\n"
          "}\n",
          "a x2 5-7\n");
}

static void multi_buffers_and_carried_values(void **state)
{
    (void)state;
    /* acc and r live in the slot of a, since all are of one iteration of i */
    check("for i in 0..8 {\n"
          "alloc a: 8 f32 @ub multi=2\n"
          "load a <- x[0:8]\n"
          "r = for j in 0..4 carry (acc = a) {\n"
          "acc = vector.relu(acc)\n"
          "yield (acc)\n"
          "}\n"
          "store y[0:8] <- r\n"
          "}\n",
          "a x2 3-8\n");
    /* n takes its slots by j, so it cannot be acc; nor a multi-buffer a single one */
    check("for i in 0..8 {\n"
          "alloc a: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "r = for j in 0..4 carry (acc = a) {\n"
          "alloc n: 8 f32 @ub multi=2\n"
          "n = vector.relu(acc)\n"
          "yield (n)\n"
          "}\n"
          "store y[0:8] <- r\n"
          "}\n",
          "a 3-9\nn x2 6-7\n1 copies\n");
}

static void held_multi_buffers(void **state)
{
    (void)state;
    const char *body = "for i in 0..8 {\n"
                       "alloc a: 8 f32 @ub multi=2\n"
                       "alloc b: 8 f32 @ub\n"
                       "load a <- x[0:8]\n"
                       "b = vector.relu(a)\n"
                       "store y[0:8] <- b\n"
                       "}\n";
    check(body, "a x2 4-5\nb 5-6\n");
    check_with(body, &HOLD, "a+b x2 1-7\n");
    /* b keeps a value for the next iteration, which finds another slot */
    check_with("alloc b: 8 f32 @ub\n"
               "load b <- x[0:8]\n"
               "for i in 0..8 {\n"
               "alloc a: 8 f32 @ub multi=2\n"
               "store y[0:8] <- b\n"
               "load a <- x[0:8]\n"
               "b = vector.relu(a)\n"
               "}\n",
               &HOLD, "b 2-8\na x2 3-8\n");
    check_with("alloc b: 8 f32 @ub\n"
               "for i in 0..8 {\n"
               "alloc a: 8 f32 @ub multi=2\n"
               "store y[0:8] <- b\n"
               "load a <- x[0:8]\n"
               "b = vector.relu(a)\n"
               "}\n",
               &HOLD, "a x2 2-7\nb 2-7\n");
}

/* ---- in place ---- */

static void in_place_chain(void **state)
{
    (void)state;
    const char *body = "alloc a: 8 f32 @ub\n"
                       "alloc b: 8 f32 @ub\n"
                       "alloc c: 8 i32 @ub\n"
                       "load a <- x[0:8]\n"
                       "b = vector.exp(a)\n"
                       "c = vector.cast(b)\n"
                       "store y[0:8] <- c\n";
    check(body, "a+b+c 4-7\n");
    check_with(body, &RESTRICTED, "a+b 4-6\nc 6-7\n");
    check_with(body, &APART, "a 4-5\nb 5-6\nc 6-7\n");
    ot_kernel *k = parse(body);
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->n_in_place, 2);
    assert_int_equal(l->n_copies, 0);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

/* b = OP(...) of a and others; are a and b one? */
static void check_in_place(const char *allocs, const char *op, const char *after, bool want)
{
    char text[1024];
    snprintf(text, sizeof text, "%sload a <- x[0:8]\n%s\n%sstore y[0:8] <- b\n", allocs, op, after);
    ot_kernel *k = parse(text);
    ot_lifetimes *l = find(k, &PLAIN);
    uint32_t a = OT_NONE, b = OT_NONE;
    for (uint32_t v = 0; v < k->n_values; v++) {
        if (strcmp(k->values[v].name, "a") == 0) a = l->buffer_of[v];
        if (strcmp(k->values[v].name, "b") == 0) b = l->buffer_of[v];
    }
    assert_true(a != OT_NONE && b != OT_NONE);
    if ((a == b) != want || l->n_in_place != want) fail_msg("%s%s: %u merged", text, op, l->n_in_place);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

static void in_place_conditions(void **state)
{
    (void)state;
    const char *ab = "alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\n";
    check_in_place(ab, "b = vector.relu(a)", "", true);
    check_in_place(ab, "b = vector.add(a, a)", "", true);
    check_in_place(ab, "b = vector.where(x, x, a)", "", true);
    check_in_place(ab, "b = vector.where(a, x, x)", "", false); /* another input */
    check_in_place(ab, "b = vector.where(a, x, a)", "", false); /* both */
    check_in_place(ab, "b = vector.transpose(a)", "", false);
    check_in_place(ab, "b = vector.relu(a)", "store y[0:8] <- a\n", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @l1\n", "b = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f16 @ub\n", "b = vector.cast(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 i32 @ub\n", "b = vector.cast(a)", "", true);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 16 i16 @ub\n", "b = vector.add(a, x)", "", false); /* broadcast, as many bytes */
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 2x8 f32 @ub\n", "b = vector.add(a, x)", "", false);
    check_in_place("alloc a: 8 f32 @ub multi=2\nalloc b: 8 f32 @ub\n", "b = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub multi=2\nalloc b: 8 f32 @ub multi=2\n", "b = vector.relu(a)", "", true);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub offset=0\n", "b = vector.relu(a)", "", true);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub offset=32\n", "b = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub\n", "b = vector.relu(a)", "", true);
    check_in_place("alloc a: 8 f32 @ub offset=32\nalloc b: 8 f32 @ub align=64\n", "b = vector.relu(a)", "", false);
    const char *with_c = "alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub\nalloc c: 8 f32 @ub offset=%d\n";
    for (int offset = 0; offset <= 32; offset += 16) { /* c is given a's place when a is dead, but b is alive */
        char allocs[256];
        snprintf(allocs, sizeof allocs, with_c, offset);
        check_in_place(allocs, "b = vector.relu(a)", "load c <- x[0:8]\nstore y[0:8] <- c\n", offset == 32);
    }
    const char *use_c = "load c <- x[0:4]\nstore y[0:4] <- c\n"; /* c ends where a begins; or is in another memory */
    check_in_place(
        "alloc a: 8 f32 @ub offset=64\nalloc b: 8 f32 @ub\nalloc c: 4 f32 @ub offset=48\nalloc e: 64 f32 @ub offset=512\n",
        "b = vector.relu(a)", use_c, true);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub\nalloc c: 4 f32 @l1 offset=0\n", "b = vector.relu(a)", use_c,
                   true);
    check_in_place(ab, "b, a = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nalloc c: 8 f32 @ub\n", "b, c = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nsubview s = a[0:8]\n", "b = vector.relu(s)", "", true);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nsubview s = a[0:4]\n", "b = vector.add(a, s)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nsubview s = b[0:4]\n", "s = vector.relu(a)", "", false);
}

static void in_place_and_loops(void **state)
{
    (void)state;
    /* w is needed by the next iteration */
    check("alloc w: 8 f32 @ub\n"
          "load w <- x[0:8]\n"
          "for i in 0..4 {\n"
          "alloc b: 8 f32 @ub\n"
          "b = vector.relu(w)\n"
          "store y[0:8] <- b\n"
          "}\n",
          "w 2-7\nb 5-6\n");
    /* the last use, though inside a loop: it runs once */
    check("alloc w: 8 f32 @ub\n"
          "load w <- x[0:8]\n"
          "for i in 0..1 {\n"
          "alloc b: 8 f32 @ub\n"
          "b = vector.relu(w)\n"
          "store y[0:8] <- b\n"
          "}\n",
          "w+b 2-6\n");
}

static void nothing_to_lose(void **state)
{
    (void)state;
    /* a part of a is read before it is written, but when b is written the first time, there is nothing in a */
    check("alloc a: 8 f32 @ub\n"
          "alloc b: 8 f32 @ub\n"
          "load b <- x[0:8]\n"
          "store y[0:8] <- b\n"
          "load a <- x[0:7]\n"
          "b = vector.relu(a)\n"
          "store y[0:8] <- b\n",
          "a+b 3-7\n");
}

static void first_eligible_input(void **state)
{
    (void)state;
    check("alloc a: 8 f32 @ub\n"
          "alloc b: 8 f32 @ub\n"
          "alloc c: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "load b <- x[0:8]\n"
          "c = vector.add(a, b)\n"
          "store y[0:8] <- c\n",
          "a+c 4-7\nb 5-6\n");
    check("alloc a: 8 f32 @ub\n"
          "alloc b: 8 f32 @ub\n"
          "alloc c: 8 f32 @ub\n"
          "load a <- x[0:8]\n"
          "load b <- x[0:8]\n"
          "c = vector.add(a, b)\n"
          "store y[0:8] <- c\n"
          "store y[0:8] <- a\n",
          "a 4-8\nb+c 5-7\n");
}

static void in_place_table(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        uint32_t general, restricted; /* bit sets of inputs */
    } cases[] = {
        {"relu", 1, 1},       {"add", 3, 3},       {"sub", 3, 3},       {"exp", 1, 1},      {"cast", 1, 0},
        {"where", 6, 0},      {"select", 6, 0},    {"clip", 1, 0},      {"mmad", 4, 4},     {"batchnormalization", 1, 0},
        {"prelu", 1, 0},      {"softmax", 1, 0},   {"reshape", 1, 1},   {"identity", 1, 1}, {"equal", 3, 0},
        {"sigmoid", 1, 0},    {"pow", 3, 0},       {"min", 3, 3},       {"gelu", 1, 0},     {"hardswish", 1, 0},
        {"reduce_max", 0, 0}, {"transpose", 0, 0}, {"gather", 0, 0},    {"conv", 0, 0},     {"maxpool", 0, 0},
        {"matmul", 0, 0},     {"concat", 0, 0},    {"broadcast", 0, 0}, {"expand", 0, 0},   {"layernormalization", 0, 0},
        {"nosuchop", 0, 0},   {"", 0, 0},          {"Relu", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t in = 0; in < 40; in++) {
            bool general = in < 32 && cases[i].general >> in & 1, restricted = in < 32 && cases[i].restricted >> in & 1;
            if (ot_in_place_rule(cases[i].op, in, false) != general || ot_in_place_rule(cases[i].op, in, true) != restricted)
                fail_msg("%s, input %u", cases[i].op, in);
        }
    }
}

/* ---- the rest of a buffer ---- */

static void alignments(void **state)
{
    (void)state;
    ot_kernel *k = parse(
        "alloc a: 8 f32 @ub align=48\nalloc b: 8 f32 @ub align=5\nload a <- x[0:8]\nb = vector.relu(a)\nstore y[0:8] <- b\n");
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->n_buffers, 1);
    assert_int_equal(l->buffers[0].align, 480); /* of 32, 48 and 5 */
    assert_int_equal(l->buffers[0].size, 32);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
    check_fails("alloc a: 8 f32 @ub align=4611686018427387903\nload a <- x[0:8]\n", "k.tk:4:7: the alignment of 'a' is too large");
}

static void pipes(void **state)
{
    (void)state;
    ot_kernel *k = parse("alloc a: 8 f32 @ub\n"
                         "alloc b: 8 f32 @ub\n"
                         "load a <- x[0:8]\n"
                         "b = cube.reduce(a)\n"
                         "if (b) {\n"
                         "}\n"
                         "a = vector.reduce(b)\n"
                         "store y[0:8] <- a\n");
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->buffers[0].pipes, 1u << OT_PIPE_DMA_IN | 1u << OT_PIPE_CUBE | 1u << OT_PIPE_VECTOR | 1u << OT_PIPE_DMA_OUT);
    assert_true(l->buffers[0].dma);
    assert_int_equal(l->buffers[1].pipes, 1u << OT_PIPE_CUBE | 1u << OT_PIPE_SCALAR | 1u << OT_PIPE_VECTOR);
    assert_false(l->buffers[1].dma);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

static void loops_of_buffers(void **state)
{
    (void)state;
    ot_kernel *k = parse("for i in 0..4 {\n"
                         "alloc a: 8 f32 @ub\n"
                         "alloc b: 8 f32 @ub\n"
                         "if (?) {\n"
                         "load a <- x[0:8]\n"
                         "for j in 0..4 {\n"
                         "load b <- x[0:8]\n"
                         "store y[0:8] <- b\n"
                         "store y[0:8] <- a\n"
                         "}\n"
                         "}\n"
                         "}\n");
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->buffers[0].loop, 0); /* a: of i */
    assert_int_equal(l->buffers[1].loop, 5); /* b: of j */
    ot_lifetimes_free(l);
    ot_kernel_free(k);
    k = parse("for i in 0..4 {\n"
              "q = if (?) {\n" /* unused: in a's place, but no access of it */
              "alloc a: 8 f32 @ub\n"
              "load a <- x[0:8]\n"
              "yield (a)\n"
              "} else {\n"
              "alloc b: 8 f32 @ub\n"
              "yield (b)\n"
              "}\n"
              "}\n");
    l = find(k, &PLAIN);
    assert_int_equal(l->buffers[0].loop, 0);
    assert_int_equal(l->n_copies, 0);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
}

/* ---- memory runs out ---- */

static int64_t allocations_left;

static void *failing(void *p, size_t old_size, size_t new_size)
{
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(p, new_size) : NULL;
}

static void memory_runs_out(void **state)
{
    (void)state;
    /* enough values that arenas ask for several blocks */
    char *body = malloc(1 << 20);
    size_t n = 0;
    for (int i = 0; i < 600; i++)
        n += (size_t)sprintf(body + n,
                             "alloc a%d: 8 f32 @ub\nload a%d <- x[0:8]\nr%d = while (?) carry (c%d = a%d) {\nyield (a%d)\n}\n", i,
                             i, i, i, i, i > 7 ? i - 7 : 0);
    char *text = malloc(n + 200);
    n = (size_t)sprintf(text, HEAD "%s}\n", body);
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", text, n, &d, &k) != OT_OK) fail_msg("%s", d.message);
    ot_target t = target();
    ot_set_alloc_hook(failing);
    int failures = 0;
    for (int64_t allow = 0;; allow++) {
        ot_lifetimes *l;
        ot_diag e = {0};
        allocations_left = allow;
        ot_status s = ot_lifetimes_find(k, "k.tk", &t, &PLAIN, &e, &l);
        ot_lifetimes_free(l);
        if (s == OT_OK) break;
        assert_int_equal(s, OT_E_NOMEM);
        failures++;
    }
    ot_set_alloc_hook(NULL);
    assert_true(failures > 5);
    ot_kernel_free(k);
    free(text);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_write_to_last_read),
        cmocka_unit_test(holes),
        cmocka_unit_test(dead_writes_stay),
        cmocka_unit_test(both_operands_of_a_statement_meet),
        cmocka_unit_test(branches_join),
        cmocka_unit_test(a_branch_may_be_skipped),
        cmocka_unit_test(results_of_branches_share),
        cmocka_unit_test(copies_of_unchanged_values_share),
        cmocka_unit_test(alive_around_the_back_edge),
        cmocka_unit_test(written_anew_in_every_iteration),
        cmocka_unit_test(loops_that_surely_run),
        cmocka_unit_test(loops_that_run_once),
        cmocka_unit_test(conditions_are_read_before_each_iteration),
        cmocka_unit_test(nested_loops),
        cmocka_unit_test(far_apart),
        cmocka_unit_test(views_are_their_base),
        cmocka_unit_test(parts_do_not_end_a_life),
        cmocka_unit_test(small_elements),
        cmocka_unit_test(carried_values_share),
        cmocka_unit_test(yielded_too_early),
        cmocka_unit_test(init_read_later),
        cmocka_unit_test(one_init_twice),
        cmocka_unit_test(swaps_are_copied),
        cmocka_unit_test(results_that_nothing_reads),
        cmocka_unit_test(views_are_yielded),
        cmocka_unit_test(fixed_offsets),
        cmocka_unit_test(deep_copies_go_first),
        cmocka_unit_test(multi_buffers),
        cmocka_unit_test(multi_buffers_and_carried_values),
        cmocka_unit_test(held_multi_buffers),
        cmocka_unit_test(in_place_chain),
        cmocka_unit_test(in_place_conditions),
        cmocka_unit_test(in_place_and_loops),
        cmocka_unit_test(nothing_to_lose),
        cmocka_unit_test(first_eligible_input),
        cmocka_unit_test(in_place_table),
        cmocka_unit_test(alignments),
        cmocka_unit_test(pipes),
        cmocka_unit_test(loops_of_buffers),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
