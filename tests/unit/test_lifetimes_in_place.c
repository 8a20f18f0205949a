/* Buffers of several slots, results in the place of operands, and what else belongs to a buffer. */
#include "lifetimes_check.h"

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
                "k.tk:4:7: 'a' has multi=2, but keeps a value from one iteration of the loop at "
                "line 5 to the next (a buffer "
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
    check(body, "a+b x2 4-6\n");
    check_with(body, &APART, "a x2 4-5\nb 5-6\n");
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
    if ((a == b) != want || l->n_in_place != want)
        fail_msg("%s%s: %u merged", text, op, l->n_in_place);
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
    /* broadcast, as many bytes */
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 16 i16 @ub\n", "b = vector.add(a, x)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 2x8 f32 @ub\n", "b = vector.add(a, x)", "", false);
    check_in_place("alloc a: 8 f32 @ub multi=2\nalloc b: 8 f32 @ub\n", "b = vector.relu(a)", "",
                   true);
    check_in_place("alloc a: 8 f32 @ub multi=2\nalloc b: 8 f32 @ub multi=3\n", "b = vector.relu(a)",
                   "", false);
    check_in_place("alloc a: 8 f32 @ub multi=2\nalloc b: 8 f32 @ub multi=2\n", "b = vector.relu(a)",
                   "", true);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub offset=0\n",
                   "b = vector.relu(a)", "", true);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub offset=32\n",
                   "b = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub\n", "b = vector.relu(a)", "",
                   true);
    check_in_place("alloc a: 8 f32 @ub offset=32\nalloc b: 8 f32 @ub align=64\n",
                   "b = vector.relu(a)", "", false);
    const char *with_c =
        "alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub\nalloc c: 8 f32 @ub offset=%d\n";
    /* c is given a's place when a is dead, but b is alive */
    for (int offset = 0; offset <= 32; offset += 16) {
        char allocs[256];
        snprintf(allocs, sizeof allocs, with_c, offset);
        check_in_place(allocs, "b = vector.relu(a)", "load c <- x[0:8]\nstore y[0:8] <- c\n",
                       offset == 32);
    }
    /* c ends where a begins; or is in another memory */
    const char *use_c = "load c <- x[0:4]\nstore y[0:4] <- c\n";
    check_in_place("alloc a: 8 f32 @ub offset=64\nalloc b: 8 f32 @ub\nalloc c: 4 f32 @ub "
                   "offset=48\nalloc e: 64 f32 @ub offset=512\n",
                   "b = vector.relu(a)", use_c, true);
    check_in_place("alloc a: 8 f32 @ub offset=0\nalloc b: 8 f32 @ub\nalloc c: 4 f32 @l1 offset=0\n",
                   "b = vector.relu(a)", use_c, true);
    check_in_place(ab, "b, a = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nalloc c: 8 f32 @ub\n",
                   "b, c = vector.relu(a)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nsubview s = a[0:8]\n",
                   "b = vector.relu(s)", "", true);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nsubview s = a[0:4]\n",
                   "b = vector.add(a, s)", "", false);
    check_in_place("alloc a: 8 f32 @ub\nalloc b: 8 f32 @ub\nsubview s = b[0:4]\n",
                   "s = vector.relu(a)", "", false);
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
    /* a part of a is read before it is written, but when b is written the first time, there is
     * nothing in a */
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
        {"relu", 1, 1},       {"add", 3, 3},
        {"sub", 3, 3},        {"exp", 1, 1},
        {"cast", 1, 0},       {"where", 6, 0},
        {"select", 6, 0},     {"clip", 1, 0},
        {"mmad", 4, 4},       {"batchnormalization", 1, 0},
        {"prelu", 1, 0},      {"softmax", 1, 0},
        {"reshape", 1, 1},    {"identity", 1, 1},
        {"equal", 3, 0},      {"sigmoid", 1, 0},
        {"pow", 3, 0},        {"min", 3, 3},
        {"gelu", 1, 0},       {"hardswish", 1, 0},
        {"reduce_max", 0, 0}, {"transpose", 0, 0},
        {"gather", 0, 0},     {"conv", 0, 0},
        {"maxpool", 0, 0},    {"matmul", 0, 0},
        {"concat", 0, 0},     {"broadcast", 0, 0},
        {"expand", 0, 0},     {"layernormalization", 0, 0},
        {"nosuchop", 0, 0},   {"", 0, 0},
        {"Relu", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t in = 0; in < 40; in++) {
            bool general = in < 32 && cases[i].general >> in & 1,
                 restricted = in < 32 && cases[i].restricted >> in & 1;
            if (ot_in_place_rule(cases[i].op, in, false) != general ||
                ot_in_place_rule(cases[i].op, in, true) != restricted)
                fail_msg("%s, input %u", cases[i].op, in);
        }
    }
}

/* ---- the rest of a buffer ---- */

static void alignments(void **state)
{
    (void)state;
    ot_kernel *k = parse("alloc a: 8 f32 @ub align=48\nalloc b: 8 f32 @ub align=5\nload a <- "
                         "x[0:8]\nb = vector.relu(a)\nstore y[0:8] <- b\n");
    ot_lifetimes *l = find(k, &PLAIN);
    assert_int_equal(l->n_buffers, 1);
    assert_int_equal(l->buffers[0].align, 480); /* of 32, 48 and 5 */
    assert_int_equal(l->buffers[0].size, 32);
    ot_lifetimes_free(l);
    ot_kernel_free(k);
    check_fails("alloc a: 8 f32 @ub align=4611686018427387903\nload a <- x[0:8]\n",
                "k.tk:4:7: the alignment of 'a' is too large");
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
    assert_int_equal(l->buffers[0].pipes, 1u << OT_PIPE_DMA_IN | 1u << OT_PIPE_CUBE |
                                              1u << OT_PIPE_VECTOR | 1u << OT_PIPE_DMA_OUT);
    assert_true(l->buffers[0].dma);
    assert_int_equal(l->buffers[1].pipes,
                     1u << OT_PIPE_CUBE | 1u << OT_PIPE_SCALAR | 1u << OT_PIPE_VECTOR);
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
                             "alloc a%d: 8 f32 @ub\nload a%d <- x[0:8]\nr%d = while (?) carry (c%d "
                             "= a%d) {\nyield (a%d)\n}\n",
                             i, i, i, i, i, i > 7 ? i - 7 : 0);
    char *text = malloc(n + 200);
    n = (size_t)sprintf(text, HEAD "%s}\n", body);
    ot_diag d = {0};
    ot_kernel *k = NULL;
    if (ot_kernel_parse("k.tk", text, n, &d, &k) != OT_OK) fail_msg("%s", d.message);
    ot_tk_machine t = target();
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
