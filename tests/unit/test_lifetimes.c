/* Lifetimes in straight lines, branches and loops, of views and of values that loops carry. */
#include "lifetimes_check.h"

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
    ot_kernel *k = parse("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nload a <- x[0:8]\nb = "
                         "vector.reduce(a)\nstore y[0:8] <- b\n");
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
    } cases[] = {{"0..8", "a 2-2 4-6\n"},
                 {"0..?", "a 2-6\n"},
                 {"3..3", "a 2-6\n"},
                 {"7..8 step 3", "a 2-2 4-6\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "alloc a: 8 f32 @ub\nload a <- x[0:8]\nfor i in %s {\nload a <- x[0:8]\n}\nstore "
                 "y[0:8] <- a\n",
                 cases[i].bounds);
        check(text, cases[i].want);
    }
}

static void loops_that_run_once(void **state)
{
    (void)state;
    static const struct {
        const char *bounds, *want;
    } cases[] = {{"0..1", "a 2-4\n"},
                 {"0..8 step 8", "a 2-4\n"},
                 {"0..8 step 7", "a 2-5\n"},
                 {"0..?", "a 2-5\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "alloc a: 8 f32 @ub\nload a <- x[0:8]\nfor i in %s {\nstore y[0:8] <- a\n}\n",
                 cases[i].bounds);
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

/* Variables are looked at 64 at a time: what lies between is the same for those that others are
 * far from. */
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
        {"subview s = a[0:4, 0:7]\nload s <- x[0:28]\n", true},
        {"subview s = a[0:4, 0:8]\nload s <- x[0:32]\n", false},
        {"alias s = a: 31 f32\nload s <- x[0:31]\n", true},
        {"alias s = a: 64 f16\nload s <- x[0:64]\n", false},
        {"alias s = a: 32 f32\nload s <- x[0:31]\n", true},
        {"alias s = a: 32 f32\nload s <- x[-1:31]\n", false},
        {"store a[0:4, 1:8] <- b\nstore y[0:8] <- b\n", true},
        {"store a[0:4, 0:8] <- b\nstore y[0:8] <- b\n", false},
        {"alias s = a: 31 f32\ncopy a <- s\n", true},
        {"alias s = b: 32 f32\ncopy a <- s\n", false},
        {"subview s = a[0:2, 0:8]\ns = vector.add(b)\n", true},
        {"alias s = a: 4x8 i32\ns = vector.add(b)\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "alloc b: 4x8 f32 @gm\nalloc a: 4x8 f32 @gm\nload a <- x[0:32]\nload b <- "
                 "x[0:32]\n%sstore y[0:32] <- a\n",
                 cases[i].write);
        ot_kernel *k = parse(text);
        ot_lifetimes *l = find(k, &APART);
        const ot_buffer *a = &l->buffers[0];
        assert_string_equal(k->values[a->values[0]].name, "a");
        if (a->n_live != (cases[i].part ? 1 : 2))
            fail_msg("%s: %u spans", cases[i].write, a->n_live);
        ot_lifetimes_free(l);
        ot_kernel_free(k);
    }
}

static void small_elements(void **state)
{
    (void)state;
    /* 7 of 8 elements of 4 bits take as many bytes */
    check("alloc a: 8 i4 @ub\nload a <- x[0:8]\nsubview s = a[0:7]\nload s <- x[0:7]\nstore y[0:8] "
          "<- a\n",
          "a 2-5\n");
    check("alloc a: 8 i4 @ub\nload a <- x[0:8]\nsubview s = a[0:8]\nload s <- x[0:8]\nstore y[0:8] "
          "<- a\n",
          "a 2-2 4-5\n");
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
    /* n is written while acc is read */
    check_with(body, &APART, "a 2-10\nt 6-7\nn 7-8\n1 copies\n");
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
