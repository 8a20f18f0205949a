/* PlanMemory, by the scenarios of its description: sequential when all fits, reuse within a pipe
 * (level 2), upgrade to a double buffer (level 1), any disjoint lifetimes (level 0), rollback,
 * restart, overflow; alignments, fixed offsets, workspace. */
#include "planmem_check.h"

/* ---- scenarios of the description ---- */

/* The loop of the description: A and D double-buffered and touched by DMA, B and C of the vector
 * pipe. */
#define LOOP_ABCD(c_type, body)                                                    \
    "kernel k {\n param x: 128 f32 @gm\n param y: 128 f32 @gm\n for i in 0..4 {\n" \
    "  alloc a: 32 f32 @ub multi=2\n  alloc b: 32 f32 @ub\n  alloc c: " c_type     \
    " @ub\n  alloc d: 32 f32 @ub multi=2\n" body "  store y[32*i:32*i+32] <- d\n }\n}\n"
#define LOAD_A "  load a <- x[32*i:32*i+32]\n"
#define LOAD_D "  load d <- x[32*i:32*i+32]\n"
/* b is done before c begins, a before d is stored: 768 bytes if nothing shares */
#define SAME_PIPE                                                                     \
    LOOP_ABCD("32 f32", LOAD_A LOAD_D                                                 \
              "  b = vector.op2(a)\n  d = vector.op3(a, b, d)\n  c = vector.op4(d)\n" \
              "  d = vector.op5(c, a, d)\n")
/* a is done before c begins; b, c and d live together */
#define UPGRADE(c_type)             \
    LOOP_ABCD(c_type, LOAD_A LOAD_D \
              "  b = vector.op2(a)\n  c = vector.op3(b)\n  d = vector.op4(d, b, c)\n")

static void sequential_when_all_fits(void **state)
{
    (void)state;
    for (int mode = OT_MEM_AUTO; mode <= OT_MEM_REUSE; mode++) {
        planned r = plan(SAME_PIPE, (ot_mem_mode)mode, 768);
        const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
        assert_int_equal(s->mode, OT_MEM_SEQUENTIAL);
        assert_int_equal(s->level, OT_LEVEL_NONE);
        assert_int_equal(s->height, 768);
        assert_int_equal(s->sum, 768);
        assert_int_equal(s->n_buffers, 4);
        assert_int_equal(s->n_cross_pipe + s->n_upgraded + s->rollbacks + s->restarts, 0);
        assert_int_equal(at(r, "a", 0), 0);
        assert_int_equal(at(r, "a", 1), 128);
        done(r);
    }
}

static void level_3_shares_within_a_pipe(void **state)
{
    (void)state;
    planned r = plan(SAME_PIPE, OT_MEM_REUSE, 640);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->mode, OT_MEM_REUSE);
    assert_int_equal(s->level, OT_LEVEL_3);
    assert_int_equal(at(r, "c", 0), at(r, "b", 0)); /* not a's place */
    assert_int_equal(s->n_cross_pipe, 0);
    assert_int_equal(s->n_upgraded, 0);
    assert_int_equal(s->height, 640);
    assert_int_equal(r.p->level[find(r, "c")], OT_LEVEL_3);
    assert_int_equal(r.p->level[find(r, "a")], OT_LEVEL_NONE);
    done(r);
}

/* Transfers of two loops take turns in one place; those of one loop do so at level 1 at most. */
static void level_2_shares_between_loops(void **state)
{
    (void)state;
    const char *text =
        "kernel k {\n param x: 128 f32 @gm\n param y: 128 f32 @gm\n for i in 0..4 {\n"
        "  alloc a: 32 f32 @ub\n  alloc b: 32 f32 @ub\n  load a <- x[32*i:32*i+32]\n"
        "  b = vector.op1(a)\n  store y[32*i:32*i+32] <- b\n }\n for i in 0..4 {\n"
        "  alloc c: 32 f32 @ub\n  alloc d: 32 f32 @ub\n  load c <- x[32*i:32*i+32]\n"
        "  d = vector.op2(c)\n  store y[32*i:32*i+32] <- d\n }\n}\n";
    planned r = plan(text, OT_MEM_REUSE, 256);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->level, OT_LEVEL_2);
    assert_int_equal(s->height, 256);
    assert_int_equal(s->n_cross_pipe, 2);
    done(r);
}

static void level_1_upgrades_to_a_double_buffer(void **state)
{
    (void)state;
    planned r = plan(UPGRADE("32 f32"), OT_MEM_AUTO, 640);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->mode, OT_MEM_REUSE);
    assert_int_equal(s->level, OT_LEVEL_1);
    assert_int_equal(s->n_upgraded, 1);
    assert_int_equal(r.p->multi[find(r, "c")], 2);
    assert_int_equal(r.p->multi[find(r, "b")], 1);
    /* while op1 fills a0, op3 works in c1: in a1's place */
    assert_int_equal(at(r, "c", 0), at(r, "a", 0));
    assert_int_equal(at(r, "c", 1), at(r, "a", 1));
    assert_int_equal(s->n_cross_pipe, 1);
    done(r);
}

/* c is first, as a single buffer; a then comes to lie over it and gives it its second slot. */
static void level_1_upgrades_an_earlier_buffer(void **state)
{
    (void)state;
    const char *text =
        "kernel k {\n param x: 128 f32 @gm\n param y: 128 f32 @gm\n for i in 0..4 {\n"
        "  alloc c: 32 f32 @ub\n  alloc d: 32 f32 @ub\n  alloc a: 32 f32 @ub multi=2\n"
        "  c = vector.op1()\n  d = vector.op2(c)\n  load a <- x[32*i:32*i+32]\n  d = vector.op3(a, "
        "d)\n"
        "  store y[32*i:32*i+32] <- d\n }\n}\n";
    planned r = plan(text, OT_MEM_REUSE, 384);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->level, OT_LEVEL_1);
    assert_int_equal(s->n_upgraded, 1);
    for (uint32_t k = 0; k < 2; k++) assert_int_equal(at(r, "c", k), at(r, "a", k));
    done(r);
}

static void level_0_shares_any_disjoint_lifetimes(void **state)
{
    (void)state;
    /* c is as large as both slots of a: with two slots of its own it does not fit */
    planned r = plan(UPGRADE("64 f32"), OT_MEM_REUSE, 640);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->mode, OT_MEM_REUSE);
    assert_int_equal(s->level, OT_LEVEL_0);
    assert_int_equal(s->n_upgraded, 0);
    assert_int_equal(s->n_cross_pipe, 1);
    assert_int_equal(at(r, "c", 0), ot_min(at(r, "a", 0), at(r, "a", 1)));
    assert_int_equal(r.p->level[find(r, "c")], OT_LEVEL_0);
    assert_int_equal(r.p->level[find(r, "b")], OT_LEVEL_NONE);
    done(r);
}

/* r first takes the low end of p's place, then u has none: r must go to q's. */
#define ROLLBACK                                                                                   \
    "kernel k {\n param src: 8 f32 @gm\n param dst: 8 f32 @gm\n"                                   \
    " alloc s: 8 f32 @ub\n alloc p: 16 f32 @ub\n alloc x: 8 f32 @ub\n alloc q: 8 f32 @ub\n alloc " \
    "r: 8 f32 @ub\n"                                                                               \
    " alloc u: 16 f32 @ub\n load s <- src\n p = vector.f(s)\n x = vector.f(s)\n q = "              \
    "vector.f(s)\n x = vector.g(p, q, x)\n"                                                        \
    " r = vector.f(s)\n u = vector.f(s)\n x = vector.g(r, u, x)\n store dst <- x\n}\n"

static void rollback_undoes_a_choice(void **state)
{
    (void)state;
    planned r = plan(ROLLBACK, OT_MEM_REUSE, 160);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->mode, OT_MEM_REUSE);
    assert_int_equal(s->level, OT_LEVEL_3);
    assert_int_equal(s->rollbacks, 1);
    assert_int_equal(s->restarts, 0);
    assert_int_equal(at(r, "r", 0), at(r, "q", 0));
    assert_int_equal(at(r, "u", 0), at(r, "p", 0));
    done(r);
}

/* By first write a (4 units) takes 0 to 4 and b (2) 4 to 6, c (3) goes over a, and d (2) finds 1
 * unit twice, whatever is undone. By area b is first, c and a lie over each other above it, and
 * d has room. */
static void restart_takes_another_order(void **state)
{
    (void)state;
    planned r = plan("kernel k {\n alloc a: 32 f32 @ub\n alloc b: 16 f32 @ub\n alloc c: 24 f32 "
                     "@ub\n alloc d: 16 f32 @ub\n"
                     " a = vector.f()\n b = vector.f(a)\n c = vector.f(b)\n d = vector.f(b)\n d = "
                     "vector.f(c, d)\n"
                     " d = vector.f(b, d)\n}\n",
                     OT_MEM_REUSE, 224);
    const ot_scope_plan *s = scope(r, OT_SCOPE_UB);
    assert_int_equal(s->mode, OT_MEM_REUSE);
    assert_int_equal(s->level, OT_LEVEL_3);
    assert_int_equal(s->restarts, 1);
    assert_true(s->rollbacks > 0);
    assert_true(s->proved);
    assert_int_equal(at(r, "b", 0), 0);
    assert_int_equal(at(r, "c", 0), at(r, "a", 0));
    done(r);
}

/* ---- overflow ---- */

#define REASON                                                                                  \
    "(possible reason: tiling basic block is too large or block number is more than what user " \
    "expect due to multi-buffer "                                                               \
    "feature is enabled and some ops need extra local buffer.)"

static void overflow_has_the_message_of_the_description(void **state)
{
    (void)state;
    const char *text = "kernel k {\n"
                       "  alloc a: 33536 f32 @ub\n"
                       "  alloc b: 33536 f32 @ub\n"
                       "  alloc c: 33536 f32 @ub\n"
                       "  a = vector.op()\n"
                       "  b = vector.op(a)\n"
                       "  c = vector.op(a, b)\n"
                       "  a = vector.op(a, b, c)\n"
                       "  b = vector.op(a)\n"
                       "}\n";
    const ot_mem_mode modes[] = {OT_MEM_AUTO, OT_MEM_REUSE, OT_MEM_SEARCH};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        ot_mem_options o = options(modes[m], 0);
        ot_diag d = {0};
        assert_int_equal(refuse(text, "/tmp/tmp0h121237/kernel.tk", &o, &d), OT_E_BUDGET);
        assert_string_equal(d.message,
                            "/tmp/tmp0h121237/kernel.tk:2:3: ub overflow, requires 3219456 bits "
                            "while 1572864 bits available! " REASON
                            " smallest explaining set: a (134144 B), b (134144 B) at line 6");
    }
}

static void overflow_counts_every_slot(void **state)
{
    (void)state;
    ot_mem_options o = options(OT_MEM_REUSE, 700);
    ot_diag d = {0};
    assert_int_equal(
        refuse(LOOP_ABCD("96 f32", LOAD_A LOAD_D
                         "  c = vector.op2(a)\n  b = vector.op3(c)\n  d = vector.op4(d, b)\n"),
               "k.tk", &o, &d),
        OT_E_BUDGET);
    /* load of d to op2: a, d, c, of which c and either of the others are not enough */
    assert_string_equal(
        d.message, "k.tk:7:3: ub overflow, requires 7168 bits while 5600 bits available! " REASON
                   " smallest explaining set: c (384 B), a x2 (256 B), d x2 (256 B) at line 11");
}

static void overflow_in_sequential_mode(void **state)
{
    (void)state;
    ot_mem_options o = options(OT_MEM_SEQUENTIAL, 640);
    ot_diag d = {0};
    assert_int_equal(refuse(SAME_PIPE, "k.tk", &o, &d), OT_E_BUDGET);
    assert_true(contains(d.message, "ub overflow, requires 6144 bits while 5120 bits available! "));
    assert_true(contains(d.message,
                         "set: a x2 (256 B), d x2 (256 B), b (128 B), c (128 B), sharing nothing"));
}

static void overflow_of_fixed_offsets(void **state)
{
    (void)state;
    ot_mem_options o = options(OT_MEM_AUTO, 0);
    ot_diag d = {0};
    assert_int_equal(
        refuse(
            "kernel k {\n alloc a: 8 f32 @ub offset=196608\n alloc b: 8 f32 @ub\n a = vector.f()\n"
            " b = vector.f(a)\n a = vector.f(b)\n b = vector.f(a)\n}\n",
            "k.tk", &o, &d),
        OT_E_BUDGET);
    assert_true(contains(
        d.message, "k.tk:2:2: ub overflow, requires 1573120 bits while 1572864 bits available! "));
    assert_true(contains(d.message, "set: a (32 B) at the given offset"));
}

/* Around a fixed buffer in the middle there is room for b, and for c and d, but not for all: 32
 * bytes above and below it. */
static void overflow_of_places(void **state)
{
    (void)state;
    const char *text = "kernel k {\n alloc f: 8 f32 @ub offset=64\n alloc b: 24 f32 @ub\n alloc z: "
                       "8 f32 @ub\n f = vector.f()\n"
                       " z = vector.f(f)\n f = vector.f(z)\n b = vector.f(f)\n f = vector.f(b, "
                       "f)\n b = vector.f(f)\n z = vector.f(b)\n"
                       " z = vector.f(z)\n}\n";
    for (int m = OT_MEM_REUSE; m <= OT_MEM_SEARCH; m++) {
        ot_mem_options o = options((ot_mem_mode)m, 160);
        ot_diag d = {0};
        assert_int_equal(refuse(text, "k.tk", &o, &d), OT_E_BUDGET);
        assert_true(contains(
            d.message, "k.tk:3:2: ub overflow, requires 1536 bits while 1280 bits available! "));
        assert_true(
            contains(d.message, m == OT_MEM_REUSE
                                    ? "set: b (96 B), f (32 B), no plan found for them"
                                    : "set: b (96 B), f (32 B), which cannot be placed together"));
    }
}

/* The same, b being one of many buffers: all others are dropped. */
static void overflow_set_is_irreducible(void **state)
{
    (void)state;
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "kernel k {\n alloc f: 8 f32 @ub offset=64\n f = vector.f()\n "
                                "alloc t0: 8 f32 @ub\n t0 = vector.f(f)\n");
    for (int i = 1; i < 60; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n,
                              " alloc t%d: 8 f32 @ub\n t%d = vector.f(t%d, f)\n", i, i, i - 1);
        if (i == 30)
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  " alloc b: 24 f32 @ub\n b = vector.f(f)\n f = vector.f(b, f)\n");
    }
    snprintf(text + n, sizeof text - n, " f = vector.f(f)\n}\n");
    for (int m = OT_MEM_REUSE; m <= OT_MEM_SEARCH; m++) {
        ot_mem_options o = options((ot_mem_mode)m, 160);
        ot_diag d = {0};
        assert_int_equal(refuse(text, "k.tk", &o, &d), OT_E_BUDGET);
        assert_true(contains(d.message, "set: b (96 B), f (32 B), "));
    }
}

static void overflow_list_is_cut(void **state)
{
    (void)state;
    char text[16384], path[900];
    size_t n = (size_t)snprintf(text, sizeof text, "kernel k {\n");
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " alloc buffer_number_%d: 8 f32 @ub\n", i);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " buffer_number_%d = vector.f()\n", i);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              " buffer_number_0 = vector.f(buffer_number_%d, buffer_number_0)\n",
                              i);
    snprintf(text + n, sizeof text - n, "}\n");
    ot_mem_options o = options(OT_MEM_AUTO, 3168);
    ot_diag d = {0};
    assert_int_equal(refuse(text, "k.tk", &o, &d), OT_E_BUDGET);
    assert_true(contains(d.message, "requires 25600 bits while 25344 bits available! "));
    assert_true(contains(d.message, "set: buffer_number_0 (32 B), buffer_number_1 (32 B),"));
    const char *cut = strstr(d.message, ", ... and ");
    assert_non_null(cut);
    int shown = 0, more = 0;
    for (const char *p = strstr(d.message, "set:"); (p = strstr(p, "(32 B)")) != NULL; p++) shown++;
    assert_int_equal(sscanf(cut, ", ... and %d more at line 201", &more), 1);
    assert_int_equal(shown + more, 100);
    assert_true(shown > 15 && strlen(d.message) < OT_DIAG_MAX - 1);
    /* hardly room for the list, and none */
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = 0;
    ot_diag e = {0};
    assert_int_equal(refuse(text, path, &o, &e), OT_E_BUDGET);
    assert_true(strlen(e.message) == OT_DIAG_MAX - 1);
    path[500] = 0;
    e = (ot_diag){0};
    assert_int_equal(refuse(text, path, &o, &e), OT_E_BUDGET);
    assert_true(contains(e.message, " more at line 201"));
}

static void unknown_memory_of_the_target(void **state)
{
    (void)state;
    const char *text = "kernel k {\n alloc a: 8 f32 @ub\n alloc s: 8 f32 @shared\n a = "
                       "vector.f()\n s = vector.f(a)\n"
                       " a = vector.f(s)\n a = vector.f(a)\n}\n";
    ot_mem_options o = options(OT_MEM_AUTO, 0);
    ot_diag d = {0};
    assert_int_equal(refuse(text, "k.tk", &o, &d), OT_E_INPUT);
    assert_string_equal(d.message,
                        "k.tk:3:8: buffer 's' in shared: target 'ascend-a2' has no such memory");
    done(plan(text, OT_MEM_AUTO, 64)); /* a limit of its own replaces the target's */
}

/* ---- alignment, slots, workspace, fixed offsets ---- */

static void every_scope_has_its_alignment(void **state)
{
    (void)state;
    static const struct {
        ot_scope scope;
        int64_t alignment;
    } rules[] = {{OT_SCOPE_UB, 32},   {OT_SCOPE_L1, 32}, {OT_SCOPE_L0A, 512}, {OT_SCOPE_L0B, 512},
                 {OT_SCOPE_L0C, 512}, {OT_SCOPE_BT, 64}, {OT_SCOPE_FP, 64},   {OT_SCOPE_GM, 256}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char text[512];
        const char *name = ot_scope_name(rules[i].scope);
        snprintf(text, sizeof text,
                 "kernel k {\n alloc a: 10 u8 @%s multi=3\n alloc b: 10 u8 @%s\n for i in 0..9 {\n "
                 " a = vector.f()\n"
                 "  b = vector.f(a)\n  a = vector.f(a, b)\n  b = vector.f(a, b)\n  b = "
                 "vector.f(b)\n }\n}\n",
                 name, name);
        for (int mode = OT_MEM_SEQUENTIAL; mode <= OT_MEM_SEARCH; mode++) {
            planned r = plan(text, (ot_mem_mode)mode, 0);
            const ot_scope_plan *s = scope(r, rules[i].scope);
            assert_int_equal(s->height, 3 * rules[i].alignment + 10);
            assert_int_equal(s->lower_bound, s->height);
            assert_int_equal(s->sum, s->height);
            assert_true(s->proved);
            for (uint32_t k = 0; k < 3; k++) {
                assert_int_equal(at(r, "a", k) % rules[i].alignment, 0);
                assert_true(at(r, "a", k) != at(r, "a", (k + 1) % 3) &&
                            at(r, "a", k) != at(r, "b", 0));
            }
            assert_int_equal(at(r, "a", 3), -1);
            done(r);
        }
    }
}

/* Two workspaces that are never alive together. */
#define WORKSPACE                                                                                  \
    "kernel k {\n param x: 64 f32 @gm\n param y: 64 f32 @gm\n workspace w: 64 f32\n workspace v: " \
    "64 f32\n alloc u: 64 f32 @ub\n"                                                               \
    " load u <- x\n store w <- u\n load u <- w\n store v <- u\n load u <- v\n store y <- u\n}\n"

static void workspace_shares_only_on_demand(void **state)
{
    (void)state;
    for (int mode = OT_MEM_AUTO; mode <= OT_MEM_SEARCH; mode++)
        for (int reuse = 0; reuse < 2; reuse++) {
            ot_mem_options o = options((ot_mem_mode)mode, 0);
            o.workspace_reuse = reuse == 1;
            planned r = plan_with(WORKSPACE, &o);
            const ot_scope_plan *s = scope(r, OT_SCOPE_GM);
            bool shares = reuse == 1 && mode != OT_MEM_SEQUENTIAL;
            assert_int_equal(s->capacity, 0);
            assert_int_equal(s->n_buffers, 2);
            assert_int_equal(s->sum, 512);
            assert_int_equal(s->height, shares ? 256 : 512);
            assert_int_equal(s->level, shares ? OT_LEVEL_2 : OT_LEVEL_NONE);
            assert_int_equal(s->mode, !shares                ? OT_MEM_SEQUENTIAL
                                      : mode == OT_MEM_REUSE ? OT_MEM_REUSE
                                                             : OT_MEM_SEARCH);
            assert_int_equal(at(r, "v", 0), shares ? 0 : 256);
            done(r);
        }
}

static void fixed_offsets_stay(void **state)
{
    (void)state;
    const char *text =
        "kernel k {\n alloc a: 8 f32 @ub\n alloc f: 16 f32 @ub offset=32\n alloc b: 16 f32 @ub\n"
        " alloc g: 8 f32 @ub multi=2 offset=160,128\n for i in 0..2 {\n  a = vector.f()\n  f = "
        "vector.f(a)\n"
        "  b = vector.f(a, f)\n  g = vector.f(a, b, f)\n  a = vector.f(a, b, f, g)\n  a = "
        "vector.f(a)\n }\n}\n";
    for (int mode = OT_MEM_AUTO; mode <= OT_MEM_SEARCH; mode++) {
        planned r = plan(text, (ot_mem_mode)mode, 0);
        assert_int_equal(at(r, "f", 0), 32);
        assert_int_equal(at(r, "g", 0), 160);
        assert_int_equal(at(r, "g", 1), 128);
        int64_t a = at(r, "a", 0), b = at(r, "b", 0);
        assert_true(a == 0 || a >= 192 || a == 96);
        assert_true(b >= 192); /* 32 free bytes below f, 32 between f and g */
        if (mode == OT_MEM_SEARCH) assert_int_equal(scope(r, OT_SCOPE_UB)->height, 256);
        done(r);
    }
}

static void bad_fixed_offsets_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *message;
    } cases[] = {
        {"offset=40", "", "k.tk:2:8: buffer 'a' in ub: the given offset is not aligned"},
        {"offset=64", "offset=64",
         "k.tk:3:8: buffer 'b' in ub: at the given offset it overlaps 'a', which is alive at the "
         "same time"},
        {"multi=2 offset=64,64", "",
         "k.tk:2:8: buffer 'a' in ub: two of its slots overlap at the given offsets"},
        {"offset=4611686018427387904", "",
         "k.tk:2:8: buffer 'a' in ub: sizes are too large to plan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "kernel k {\n alloc a: 8 f32 @ub %s\n alloc b: 8 f32 @ub %s\n for i in 0..2 {\n  "
                 "a = vector.f()\n  b = vector.f(a)\n"
                 "  a = vector.f(a, b)\n  a = vector.f(a)\n }\n}\n",
                 cases[i].a, cases[i].b);
        ot_mem_options o = options(OT_MEM_AUTO, 0);
        ot_diag d = {0};
        assert_int_equal(refuse(text, "k.tk", &o, &d), OT_E_INPUT);
        assert_string_equal(d.message, cases[i].message);
    }
}

/* A planned kernel planned again stays as it is. */
static void plans_replay(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t capacity;
    } cases[] = {
        {SAME_PIPE, 640}, {UPGRADE("32 f32"), 640}, {UPGRADE("64 f32"), 640}, {ROLLBACK, 160}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        planned r = plan(cases[i].text, OT_MEM_AUTO, cases[i].capacity);
        ot_mem_plan_apply(r.p, r.k);
        char *text = NULL;
        size_t n = 0;
        FILE *f = open_memstream(&text, &n);
        assert_int_equal(ot_kernel_print(r.k, f), OT_OK);
        assert_int_equal(fclose(f), 0);
        planned again = plan(text, OT_MEM_AUTO, cases[i].capacity);
        assert_int_equal(again.p->lifetimes->n_buffers, r.p->lifetimes->n_buffers);
        for (uint32_t b = 0; b < r.p->lifetimes->n_buffers; b++) {
            assert_int_equal(again.p->multi[b], r.p->multi[b]);
            assert_memory_equal(again.p->offsets[b], r.p->offsets[b], sizeof *r.p->offsets);
        }
        assert_int_equal(scope(again, OT_SCOPE_UB)->n_cross_pipe,
                         scope(r, OT_SCOPE_UB)->n_cross_pipe);
        done(again);
        done(r);
        free(text);
    }
}

/* ---- the validator ---- */

static void check_finds_every_fault(void **state)
{
    (void)state;
    planned r = plan(UPGRADE("32 f32"), OT_MEM_AUTO, 640);
    uint32_t a = find(r, "a"), b = find(r, "b"), c = find(r, "c");
    ot_scope_plan *s = &r.p->scopes[0];
    ot_diag d;
#define FAULT(change, reason, restore)                                                \
    do {                                                                              \
        change;                                                                       \
        d = (ot_diag){0};                                                             \
        assert_int_equal(ot_mem_plan_check(r.k, r.p, &d), OT_E_INPUT);                \
        if (!contains(d.message, reason)) fail_msg("%s, not: %s", d.message, reason); \
        restore;                                                                      \
        assert_int_equal(ot_mem_plan_check(r.k, r.p, &d), OT_OK);                     \
    } while (0)
    int64_t was = r.p->offsets[a][0];
    FAULT(r.p->offsets[a][0] = r.p->offsets[a][1], "overlaps another slot of the buffer",
          r.p->offsets[a][0] = was);
    FAULT(r.p->offsets[a][0] += 16, "not aligned", r.p->offsets[a][0] = was);
    FAULT(r.p->offsets[a][0] = -32, "no offset", r.p->offsets[a][0] = was);
    FAULT(r.p->offsets[a][0] = 640, "above the height", r.p->offsets[a][0] = was);
    FAULT(r.p->offsets[a][2] = 0, "offset beyond the slots", r.p->offsets[a][2] = -1);
    FAULT(r.p->multi[a] = 1, "wrong number of slots", r.p->multi[a] = 2);
    FAULT(s->capacity = 600, "above the capacity", s->capacity = 640);
    FAULT(s->scope = OT_SCOPE_L1, "its scope is not planned", s->scope = OT_SCOPE_UB);
    was = r.p->offsets[b][0];
    FAULT(r.p->offsets[b][0] = r.p->offsets[c][0], "overlap while both are alive",
          r.p->offsets[b][0] = was);
    ot_buffer *buffers = (ot_buffer *)r.p->lifetimes->buffers;
    FAULT(buffers[b].fixed[0] = was + 32, "fixed offset moved", buffers[b].fixed[0] = -1);
    done(r);
}

/* ---- the rest ---- */

/* Words that a value may be named like: `unique` and `hold` before '=' or ',' are outputs. A
 * printed text reads the same. */
static void words_of_places(void **state)
{
    (void)state;
    const char *text =
        "kernel k {\n param x: 64 f32 @gm\n alloc hold: 64 f32 @ub\n alloc unique: 64 f32 @ub\n"
        " hold = vector.fill(value=1)\n for i in 0..2 {\n  alloc a: 64 f32 @ub unique\n"
        "  alloc b: 64 f32 @ub hold\n  alloc c: 64 f32 @ub\n  unique = vector.f(hold)\n"
        "  alloc d: 64 f32 @ub with=c\n  hold, a = vector.f(unique)\n  b = vector.f(a)\n"
        "  c = vector.f(b)\n  store x <- c\n  load d <- x\n  store x <- d\n }\n store x <- "
        "hold\n}\n";
    planned r = plan(text, OT_MEM_REUSE, 0);
    const ot_lifetimes *l = r.p->lifetimes;
    const ot_buffer *a = &l->buffers[find(r, "a")], *b = &l->buffers[find(r, "b")];
    uint32_t loop = 0;
    while (r.k->stmts[loop].op != OT_TK_FOR) loop++;
    assert_true(a->n_live == 1 && a->live[0].lower == 0 && a->live[0].upper == r.k->n_stmts);
    assert_true(b->n_live == 1 && b->live[0].lower == loop &&
                b->live[0].upper == r.k->stmts[loop].mate + 1);
    assert_int_equal(find(r, "c"), find(r, "d"));
    char *printed = NULL, *again = NULL;
    size_t n, m;
    FILE *f = open_memstream(&printed, &n), *g;
    ot_mem_plan_apply(r.p, r.k);
    assert_true(f && ot_kernel_print(r.k, f) == OT_OK && fclose(f) == 0);
    ot_kernel *k = parse(printed);
    g = open_memstream(&again, &m);
    assert_true(g && ot_kernel_print(k, g) == OT_OK && fclose(g) == 0);
    assert_string_equal(printed, again);
    assert_true(contains(printed, " unique\n") && contains(printed, " hold\n") &&
                contains(printed, " with=c\n"));
    ot_kernel_free(k);
    free(printed);
    free(again);
    done(r);
}

static void modes_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"auto", "sequential", "reuse", "search"};
    for (int m = OT_MEM_AUTO; m <= OT_MEM_SEARCH; m++)
        assert_string_equal(ot_mem_mode_name((ot_mem_mode)m), names[m]);
}

static long allowed, held;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && allowed-- <= 0) return NULL;
    held += (long)new_size - (long)(ptr ? old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    ot_tk_machine t = small_target();
    static const struct {
        ot_mem_mode mode;
        int64_t capacity;
    } cases[] = {{OT_MEM_AUTO, 640},
                 {OT_MEM_SEARCH, 640},
                 {OT_MEM_REUSE, 500},
                 {OT_MEM_AUTO, 500},
                 {OT_MEM_SEQUENTIAL, 500}};
    ot_set_alloc_hook(failing_hook);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        allowed = 1 << 30;
        ot_kernel *k = parse(UPGRADE("32 f32"));
        long before = held;
        for (long n = 0;; n++) {
            ot_mem_options o = options(cases[c].mode, cases[c].capacity);
            ot_mem_plan *p = NULL;
            ot_diag d = {0};
            allowed = n;
            ot_status s = ot_mem_plan_kernel(k, "k.tk", &t, &o, &d, &p);
            assert_true(s == OT_E_NOMEM || s == (cases[c].capacity == 640 ? OT_OK : OT_E_BUDGET));
            ot_mem_plan_free(p);
            assert_int_equal(held, before);
            if (s != OT_E_NOMEM) break;
            assert_true(n < 10000);
        }
        ot_kernel_free(k);
    }
    ot_set_alloc_hook(NULL);
    ot_mem_plan_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_when_all_fits),
        cmocka_unit_test(level_3_shares_within_a_pipe),
        cmocka_unit_test(level_2_shares_between_loops),
        cmocka_unit_test(level_1_upgrades_to_a_double_buffer),
        cmocka_unit_test(level_1_upgrades_an_earlier_buffer),
        cmocka_unit_test(level_0_shares_any_disjoint_lifetimes),
        cmocka_unit_test(rollback_undoes_a_choice),
        cmocka_unit_test(restart_takes_another_order),
        cmocka_unit_test(overflow_has_the_message_of_the_description),
        cmocka_unit_test(overflow_counts_every_slot),
        cmocka_unit_test(overflow_in_sequential_mode),
        cmocka_unit_test(overflow_of_fixed_offsets),
        cmocka_unit_test(overflow_of_places),
        cmocka_unit_test(overflow_set_is_irreducible),
        cmocka_unit_test(overflow_list_is_cut),
        cmocka_unit_test(unknown_memory_of_the_target),
        cmocka_unit_test(every_scope_has_its_alignment),
        cmocka_unit_test(workspace_shares_only_on_demand),
        cmocka_unit_test(fixed_offsets_stay),
        cmocka_unit_test(bad_fixed_offsets_are_named),
        cmocka_unit_test(plans_replay),
        cmocka_unit_test(check_finds_every_fault),
        cmocka_unit_test(words_of_places),
        cmocka_unit_test(modes_have_names),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
