/* Kernels in memory: the verifier, the builder, memory that runs out.
 *
 * Rules that no text can break are broken in a kernel that was read before; random damage must
 * be answered, and what is accepted must be printable and readable.
 */
#include "kernel_check.h"

/* ---- the verifier on kernels that no text makes ---- */

static void verify_fails(const ot_kernel *k, const char *part)
{
    ot_diag d = {0};
    if (ot_kernel_verify(k, "k.tk", &d) != OT_E_INPUT) fail_msg("verified, wanted '%s'", part);
    if (!strstr(d.message, part)) fail_msg("message '%s' lacks '%s'", d.message, part);
}

static ot_tk_stmt *stmt_of(ot_kernel *k, ot_tk_op op, uint32_t number)
{
    for (uint32_t s = 0; s < k->n_stmts; s++)
        if (k->stmts[s].op == op && number-- == 0) return &k->stmts[s];
    fail_msg("no statement %d", (int)op);
    return NULL;
}

static ot_tk_value *value_of(ot_kernel *k, const char *name)
{
    for (uint32_t v = 0; v < k->n_values; v++)
        if (strcmp(k->values[v].name, name) == 0) return &k->values[v];
    fail_msg("no value %s", name);
    return NULL;
}

/* Set one field of EVERYTHING's kernel, and the verifier says why not. */
#define BREAKS(field, value, part)        \
    do {                                  \
        ot_kernel *k = parse(EVERYTHING); \
        field = value;                    \
        verify_fails(k, part);            \
        ot_kernel_free(k);                \
    } while (0)
#define STMT(op, number) stmt_of(k, OT_TK_##op, number)
#define VALUE(name)      value_of(k, name)

static void test_bad_kernel_values(void **state)
{
    (void)state;
    BREAKS(k->name, NULL, "'' is no name of a kernel");
    BREAKS(k->name, "a b", "'a b' is no name of a kernel");
    BREAKS(k->target, "", "the target's name is empty");
    BREAKS(k->target, "a\"b", "the target's name is empty, too long or not printable");
    BREAKS(k->values, NULL, "lists that are not there");
    BREAKS(k->n_stmts, k->n_stmts - 1, "the block has no end");
    BREAKS(VALUE("a")->name, NULL, "'' is no name");
    BREAKS(VALUE("a")->name, "b-c", "'b-c' is no name");
    BREAKS(VALUE("a")->name, "load", "a word of the language");
    BREAKS(VALUE("v")->name, NULL, "a view without a name");
    BREAKS(VALUE("a")->rank, 0, "'a' has 0 dimensions: 1 to 8");
    BREAKS(VALUE("a")->rank, 9, "'a' has 9 dimensions: 1 to 8");
    BREAKS(VALUE("a")->dims[0], -1, "dimension 0 of 'a' is -1");
    BREAKS(VALUE("a")->dtype, NULL, "'a' has the unknown element type ''");
    BREAKS(VALUE("a")->dtype, "f33", "'a' has the unknown element type 'f33'");
    BREAKS(VALUE("a")->bytes, 4, "'a' has 73728 bytes, but says 4");
    BREAKS(VALUE("a")->scope, OT_SCOPE_COUNT, "'a' is in no known memory");
    BREAKS(VALUE("a")->align, -1, "'a' has a negative alignment");
    BREAKS(VALUE("a")->multi, 0, "'a' has multi=0");
    BREAKS(VALUE("ws")->n_offsets, 17, "'ws' has 17 offsets for 2 slots");
    BREAKS(VALUE("ws")->offsets[1], -1, "'ws' has an offset that is negative");
    BREAKS(VALUE("ws")->scope, OT_SCOPE_UB, "the workspace 'ws' is not in gm");
    BREAKS(VALUE("x")->multi, 2, "'x' is no allocated buffer, but has its attributes");
    BREAKS(VALUE("r")->align, 32, "'r' is no allocated buffer, but has its attributes");
    BREAKS(VALUE("a")->base, 0, "'a' is no view, but has a base");
    BREAKS(VALUE("a")->ranges, VALUE("s")->ranges, "'a' is no subview, but has ranges");
    BREAKS(VALUE("a")->kind, OT_TK_RESULT, "'a' says that it is defined elsewhere");
    BREAKS(VALUE("a")->stmt, 0, "'a' says that it is defined elsewhere");
    BREAKS(VALUE("x")->stmt, 0, "'x' says that it is defined elsewhere");
    BREAKS(VALUE("x")->kind, (ot_tk_kind)77, "'x' is used before its definition");
    BREAKS(VALUE("y")->kind, OT_TK_BUFFER, "'y' is used before its definition");
    BREAKS(VALUE("v")->base, OT_NONE, "a value that does not exist");
    BREAKS(VALUE("v")->base, (uint32_t)(VALUE("v") - k->values),
           "'v' is used before its definition");
    BREAKS(VALUE("v")->kind, OT_TK_BUFFER, "'v' is no view");
    BREAKS(VALUE("v")->scope, OT_SCOPE_L1, "the view 'v' is not in the memory of 'a'");
    BREAKS(VALUE("s")->ranges, NULL, "the subview 's' has not the rank and element type of 'a'");
    BREAKS(VALUE("s")->rank, 3, "the subview 's' has not the rank");
    BREAKS(VALUE("s")->dtype, "u32", "the subview 's' has not the rank and element type");
    BREAKS(VALUE("s")->dims[1], 7, "dimension 1 of 's' is not its range's extent");
    BREAKS(VALUE("acc")->dims[0], 15, "'acc' is 15 f32 @ub, its init 16 f32 @ub");
    BREAKS(VALUE("r")->dims[0], 15, "'n' is 16 f32 @ub, but 'r' is 15 f32 @ub");
    BREAKS(VALUE("r")->dtype, NULL, "'n' is 16 f32 @ub, but 'r' is 16 ? @ub");
    BREAKS(VALUE("r")->rank, 100, "'n' is 16 f32 @ub, but 'r' is 16x0x0x0x0x0x0x0 f32 @ub");
}

static void test_bad_kernel_stmts(void **state)
{
    (void)state;
    static const uint32_t far[] = {OT_NONE, OT_NONE, OT_NONE};
    BREAKS(STMT(ALLOC, 0)->op, (ot_tk_op)99, "a statement of no known kind");
    BREAKS(STMT(ALLOC, 0)->out, NULL, "a statement with the wrong number of operands");
    BREAKS(STMT(ALLOC, 0)->n_out, 2, "a statement with the wrong number of operands");
    BREAKS(STMT(ALLOC, 0)->n_in, 1, "a statement with the wrong number of operands");
    BREAKS(STMT(ALLOC, 0)->out, far, "a value that does not exist");
    BREAKS(STMT(ALLOC, 1)->out, STMT(ALLOC, 0)->out, "'ws' is defined twice");
    BREAKS(STMT(ALLOC, 0)->op, OT_TK_VIEW, "'ws' is no view");
    BREAKS(STMT(VIEW, 0)->out, far, "a value that does not exist");
    BREAKS(STMT(LOAD, 0)->out, far, "a value that does not exist");
    BREAKS(STMT(LOAD, 0)->in, far, "a value that does not exist");
    BREAKS(STMT(LOAD, 0)->pipe, OT_PIPE_CUBE, "a load on another pipe than dma_in");
    BREAKS(STMT(STORE, 0)->pipe, OT_PIPE_CUBE, "a store on another pipe than dma_out");
    BREAKS(STMT(COPY, 0)->pipe, OT_PIPE_CUBE, "a copy on another pipe than its memories'");
    BREAKS(STMT(COPY, 1)->pipe, OT_PIPE_COUNT, "a copy on no known pipe");
    BREAKS(STMT(COPY, 0)->n_ranges, 1, "ranges that are not there");
    BREAKS(STMT(LOAD, 1)->op, OT_TK_COPY, "a copy has no ranges");
    BREAKS(STMT(COMPUTE, 0)->pipe, OT_PIPE_COUNT, "an operation on no known pipe");
    BREAKS(STMT(COMPUTE, 0)->name, NULL, "'' is no name of an operation");
    BREAKS(STMT(COMPUTE, 0)->name, "a b", "'a b' is no name of an operation");
    BREAKS(STMT(COMPUTE, 0)->n_out, 0, "an operation without an output");
    BREAKS(STMT(COMPUTE, 0)->in, far, "a value that does not exist");
    BREAKS(STMT(COMPUTE, 0)->out, far, "a value that does not exist");
    BREAKS(STMT(FREE, 0)->in, far, "a value that does not exist");
    BREAKS(STMT(COMPUTE, 0)->parent, OT_NONE, "a statement that names another parent block");
    BREAKS(STMT(END, 0)->parent, 0, "a statement that names another parent block");
    BREAKS(STMT(END, 0)->mate, 0, "an end that its block does not know");
    BREAKS(STMT(FOR, 0)->mate, 0, "an end that its block does not know");
    BREAKS(STMT(IF, 0)->mate, 0, "an 'else' that its 'if' does not know");
    BREAKS(STMT(ELSE, 0)->mate, 0, "an end that its block does not know");
    BREAKS(STMT(YIELD, 0)->mate, 0, "a yield that its block does not know");
    BREAKS(STMT(YIELD, 0)->in, far, "a value that does not exist");
    BREAKS(STMT(IF, 0)->op, OT_TK_WHILE,
           "a block whose inits, carried values and results do not pair");
    BREAKS(STMT(FOR, 1)->carried, NULL,
           "a block whose inits, carried values and results do not pair");
    BREAKS(STMT(FOR, 1)->carried, far, "a carried value that does not exist");
    BREAKS(STMT(FOR, 1)->in, far, "a value that does not exist");
    BREAKS(STMT(FOR, 1)->out, far, "a result that does not exist");
    BREAKS(STMT(FOR, 1)->n_in, 0, "a block whose inits, carried values and results do not pair");
    BREAKS(STMT(WHILE, 0)->has_condition, false,
           "a block whose inits, carried values and results do not pair");
    BREAKS(STMT(WHILE, 0)->op, OT_TK_FOR, "'' is no name of a loop variable");
    BREAKS(STMT(FOR, 0)->var, "for", "'for' is no name of a loop variable");
    BREAKS(STMT(FOR, 0)->lo, -1, "loop bounds are");
    BREAKS(STMT(FOR, 0)->hi, -2, "loop bounds are");
    BREAKS(STMT(FOR, 0)->step, -1, "a loop's step is");
    BREAKS(STMT(FOR, 0)->n_ranges, 1, "ranges that are not there");
    /* reads one statement and then fails */
    BREAKS(k->stmts, k->stmts + k->n_stmts - 1, "an end without its block");
}

static void test_bad_kernel_ranges(void **state)
{
    (void)state;
    ot_tk_range r[4];
#define BREAKS_RANGE(field, value, part)            \
    do {                                            \
        ot_kernel *k = parse(EVERYTHING);           \
        memcpy(r, STMT(LOAD, 1)->ranges, sizeof r); \
        field = value;                              \
        STMT(LOAD, 1)->ranges = r;                  \
        verify_fails(k, part);                      \
        ot_kernel_free(k);                          \
    } while (0)
    BREAKS_RANGE(r[2].lo.n, 5, "an expression with more than 4 loop variables");
    BREAKS_RANGE(r[2].lo.terms[0].var, NULL, "'' is no variable of a loop around this");
    BREAKS_RANGE(r[2].hi.terms[0].var, "j", "'j' is no variable of a loop around this");
    BREAKS_RANGE(r[2].hi.terms[0].coef, 0, "the factor of 'i' is 0");
    BREAKS_RANGE(r[2].hi.terms[0].coef, INT64_MIN, "does not fit 64 bits in every iteration");
    BREAKS_RANGE(r[2].hi.constant, INT64_MIN, "does not fit 64 bits in every iteration");
    BREAKS_RANGE(r[2].lo.terms[1] = r[2].lo.terms[0]; r[2].lo.n, 2, "'i' twice in one expression");
}

/* Random fields of a good kernel become random numbers: the verifier answers, and what it
 * accepts can be printed and read. */
static void test_random_damage(void **state)
{
    (void)state;
    uint32_t accepted = 0;
    for (uint32_t run = 0; run < 20000; run++) {
        ot_kernel *k = parse(EVERYTHING);
        ot_diag d = {0};
        for (uint32_t n = 1 + below(2); n > 0; n--) {
            ot_tk_stmt *s = &k->stmts[below(k->n_stmts)];
            ot_tk_value *v = &k->values[below(k->n_values)];
            uint32_t any = below(4) ? below(k->n_values + 1) : OT_NONE,
                     place = below(4) ? below(k->n_stmts + 1) : OT_NONE;
            int64_t number = below(3) ? (int64_t)below(70) - 3 : INT64_MAX - below(3);
            switch (below(22)) {
            case 0: s->op = (ot_tk_op)below(OT_TK_END + 2); break;
            case 1: s->pipe = (ot_pipe)below(OT_PIPE_COUNT + 1); break;
            case 2:
                if (s->n_out > 0) s->n_out = below(s->n_out);
                break;
            case 3:
                if (s->n_in > 0) s->n_in = below(s->n_in);
                break;
            case 4:
                if (s->n_out > 0) s->out = ot_memdup(k->arena, &any, sizeof any), s->n_out = 1;
                break;
            case 5:
                if (s->n_in > 0) s->in = ot_memdup(k->arena, &any, sizeof any), s->n_in = 1;
                break;
            case 6: s->mate = place; break;
            case 7: s->parent = place; break;
            case 8: s->lo = number; break;
            case 9: s->hi = number; break;
            case 10: s->step = number; break;
            case 11: s->has_condition = !s->has_condition; break;
            case 12: s->explicit_pipe = !s->explicit_pipe; break;
            case 13: v->kind = (ot_tk_kind)below(OT_TK_RESULT + 2); break;
            case 14: v->rank = below(10); break;
            case 15: v->dims[below(OT_TK_RANK_MAX)] = number; break;
            case 16: v->scope = (ot_scope)below(OT_SCOPE_COUNT + 1); break;
            case 17: v->align = number; break;
            case 18: v->multi = below(18); break;
            case 19: v->n_offsets = below(18); break;
            case 20:
                if (v->kind != OT_TK_SUBVIEW) v->base = any;
                break;
            default: v->stmt = place; break;
            }
        }
        if (ot_kernel_verify(k, "k.tk", &d) == OT_OK) {
            accepted++;
            free(round_trip(k));
        } else {
            assert_non_null(strstr(d.message, "k.tk:"));
        }
        ot_kernel_free(k);
    }
    assert_in_range(accepted, 100, 10000); /* neither all nor nothing */
}

/* ---- the builder ---- */

static const char BUILT[] = "kernel built target \"t\" {\n"
                            "  param x: 1x64 f32 @gm\n"
                            "  param y: 1x64 f32 @gm\n"
                            "  alloc w: 8 f16 @l2 align=64\n"
                            "  for i in 0..8 step 2 {\n"
                            "    for j in 0..? {\n"
                            "      alloc t: 2x32 f32 @ub multi=2\n"
                            "      load t <- x[0:1, 8*i-j-1:8*i-j+15]\n"
                            "      alias v = t: 4x4 f32\n"
                            "      subview s = v[0:1, 0:4]\n"
                            "      t, w = cube.conv(x, s)\n"
                            "      copy t <- s\n"
                            "      store y <- t\n"
                            "    }\n"
                            "    store y[0:1, i:i+8] <- w\n"
                            "  }\n"
                            "}\n";

static ot_tk_range range(int64_t lo, int64_t hi, const char *var, int64_t coef)
{
    ot_tk_range r = {.lo = {.constant = lo}, .hi = {.constant = hi}};
    if (!var) return r;
    r.lo.n = r.hi.n = 1;
    r.lo.terms[0].var = r.hi.terms[0].var = var;
    r.lo.terms[0].coef = r.hi.terms[0].coef = coef;
    return r;
}

/* NULL when memory ran out anywhere. */
static ot_kernel *build(void)
{
    char i[] = "i", j[] = "j"; /* not the builder's: it copies */
    ot_kernel_builder *b = ot_kernel_build("built", "t");
    if (!b) return NULL;
    uint32_t x = ot_kb_param(b, "x", "f32", (int64_t[]){1, 64}, 2);
    uint32_t w = ot_kb_alloc(b, "w", "f16", (int64_t[]){8}, 1, (ot_tk_storage){OT_SCOPE_L2, 64, 1});
    ot_kb_for(b, i, 0, 8, 2);
    ot_kb_for(b, j, 0, -1, 1);
    uint32_t t = ot_kb_alloc(b, "t", "f32", (int64_t[]){2, 32}, 2,
                             (ot_tk_storage){OT_SCOPE_UB, 0, 2});
    ot_tk_range window[2] = {range(0, 1, NULL, 0), range(-1, 15, i, 8)};
    window[1].lo.n = window[1].hi.n = 4; /* 8*i, -j, and two that come to nothing */
    window[1].lo.terms[1].var = window[1].hi.terms[1].var = j;
    window[1].lo.terms[1].coef = window[1].hi.terms[1].coef = -3;
    window[1].lo.terms[2].var = window[1].hi.terms[2].var = "i";
    window[1].lo.terms[2].coef = window[1].hi.terms[2].coef = 0;
    window[1].lo.terms[3].var = window[1].hi.terms[3].var = "j";
    window[1].lo.terms[3].coef = window[1].hi.terms[3].coef = 2;
    ot_kb_load(b, t, x, window, 2);
    uint32_t v = ot_kb_alias(b, "v", t, "f32", (int64_t[]){4, 4}, 2);
    uint32_t s = ot_kb_subview(b, "s", v,
                               (ot_tk_range[]){range(0, 1, NULL, 0), range(0, 4, NULL, 0)});
    /* late, printed with the others */
    uint32_t y = ot_kb_param(b, "y", "f32", (int64_t[]){1, 64}, 2);
    ot_kb_compute(b, OT_PIPE_CUBE, "conv", (uint32_t[]){t, w}, 2, (uint32_t[]){x, s}, 2);
    ot_kb_copy(b, t, s);
    ot_kb_store(b, y, NULL, 0, t);
    ot_kb_end(b);
    ot_kb_store(b, y, (ot_tk_range[]){range(0, 1, NULL, 0), range(0, 8, i, 1)}, 2, w);
    memset(i, 'q', 1);
    ot_kb_end(b);
    return ot_kb_finish(b);
}

static void test_builder(void **state)
{
    (void)state;
    ot_kernel *k = build();
    ot_diag d = {0};
    assert_non_null(k);
    if (ot_kernel_verify(k, "k.tk", &d) != OT_OK) fail_msg("%s", d.message);
    char *text = round_trip(k);
    assert_string_equal(text, BUILT);
    /* the statements know where they stand in the text */
    ot_kernel *read = parse(text);
    assert_int_equal(read->n_stmts, k->n_stmts);
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        const ot_tk_stmt *a = &k->stmts[s], *b = &read->stmts[s];
        assert_true(a->op == b->op && a->line == b->line && a->col == b->col &&
                    a->mate == b->mate && a->parent == b->parent);
        assert_true(a->pipe == b->pipe && a->n_ranges == b->n_ranges && a->n_in == b->n_in &&
                    a->n_out == b->n_out);
    }
    for (uint32_t v = 0; v < k->n_values; v++) {
        const ot_tk_value *a = &k->values[v], *b = value_of(read, a->name);
        assert_true(a->line == b->line && a->col == b->col && a->bytes == b->bytes &&
                    a->scope == b->scope && a->stmt == b->stmt);
    }
    ot_kernel_free(read);
    ot_kernel_free(k);
    free(text);
}

static void test_builder_blocks(void **state)
{
    (void)state;
    ot_kernel_builder *b = ot_kernel_build("k", NULL);
    assert_true(ot_kb_for(b, "i", 0, 4, 1));
    assert_null(ot_kb_finish(b)); /* open */
    b = ot_kernel_build("k", NULL);
    assert_false(ot_kb_end(b)); /* none to end */
    assert_null(ot_kb_finish(b));
    b = ot_kernel_build("k", NULL);
    for (uint32_t k = 0; k <= OT_TK_DEPTH_MAX; k++) {
        char var[8];
        snprintf(var, sizeof var, "i%u", k);
        assert_true(ot_kb_for(b, var, 0, 4, 1));
    }
    for (uint32_t k = 0; k <= OT_TK_DEPTH_MAX; k++) assert_true(ot_kb_end(b));
    ot_kernel *k = ot_kb_finish(b);
    verify_fails(k, "k.tk:66:131: blocks nest more than 64 deep");
    ot_kernel_free(k);
    ot_kb_drop(ot_kernel_build("dropped", "t"));
    ot_kb_drop(NULL);
    ot_kernel_free(NULL);
}

/* The builder takes anything, the verifier finds it. */
static void test_builder_nonsense(void **state)
{
    (void)state;
    const int64_t dims[] = {4, 8, 1, 1, 1, 1, 1, 1, 1};
    for (uint32_t t = 0; t < 13; t++) {
        static const char *const parts[] = {
            "'d' has 9 dimensions",
            "unknown element type 'f33'",
            "a value that does not exist",
            "a value that does not exist",
            "range 0 has no constant extent",
            "'j' is no variable of a loop",
            "does not fit 64 bits in every iteration",
            "a value that does not exist",
            "a value that does not exist",
            "2 ranges for 'v', which has 1 dimensions",
            "'d' is in no known memory",
            "larger than 'a'",
            "'' is no name",
        };
        ot_kernel_builder *b = ot_kernel_build("k", NULL);
        uint32_t a = ot_kb_alloc(b, "a", "f32", dims, 2, (ot_tk_storage){OT_SCOPE_GM, 0, 1}),
                 none = OT_NONE;
        ot_tk_range r[2] = {range(0, 1, "i", 1), range(0, 8, NULL, 0)};
        ot_kb_for(b, "i", 0, 4, 1);
        switch (t) {
        case 0: ot_kb_alloc(b, "d", "f32", dims, 9, (ot_tk_storage){OT_SCOPE_UB, 0, 1}); break;
        case 1: ot_kb_param(b, "d", "f33", dims, 1); break;
        case 2: ot_kb_alias(b, "d", none, "f32", dims, 1); break;
        case 3: ot_kb_subview(b, "d", none, r); break;
        case 4:
            r[0].hi.terms[0].coef = 2;
            ot_kb_subview(b, "d", a, r);
            break;
        case 5:
            r[0].lo.terms[0].var = r[0].hi.terms[0].var = "j";
            ot_kb_subview(b, "d", a, r);
            break;
        case 6:
            r[0].lo.terms[0].coef = r[0].hi.terms[0].coef = INT64_MIN;
            ot_kb_subview(b, "d", a, r);
            break;
        case 7: ot_kb_copy(b, none, a); break;
        case 8: ot_kb_compute(b, OT_PIPE_CUBE, "f", &a, 1, &none, 1); break;
        case 9: ot_kb_load(b, a, ot_kb_alias(b, "v", a, "f32", dims, 1), r, 2); break;
        case 10: ot_kb_alloc(b, "d", "f32", dims, 2, (ot_tk_storage){(ot_scope)77, 0, 1}); break;
        case 11: ot_kb_alias(b, "d", a, "f64", dims, 2); break;
        default: ot_kb_alloc(b, "", "f32", dims, 2, (ot_tk_storage){OT_SCOPE_UB, 0, 1}); break;
        }
        ot_kb_end(b);
        ot_kernel *k = ot_kb_finish(b);
        assert_non_null(k);
        verify_fails(k, parts[t]);
        ot_kernel_free(k);
    }
}

/* ---- memory that runs out ---- */

static long allowed, live;

static void *failing_hook(void *ptr, size_t old_size, size_t new_size)
{
    if (new_size && allowed-- <= 0) return NULL;
    live += (long)new_size - (long)(ptr ? old_size : 0);
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static void test_no_memory(void **state)
{
    (void)state;
    char *text = repeat("kernel k { param x: 4 f32 @gm\n",
                        "alloc a%: 4 f32 @ub load a% <- x[0:4] alias v% = a%: 4 f32\n"
                        "r% = for i in 0..4 carry (c% = a%) { c% = vector.f(v%) yield (c%) }",
                        60, "}");
    ot_set_alloc_hook(failing_hook);
    bool done = false;
    for (long k = 0; !done; k++) {
        ot_diag d = {0};
        ot_kernel *kernel = NULL;
        allowed = k;
        ot_status s = ot_kernel_parse("k.tk", text, strlen(text), &d, &kernel);
        done = s == OT_OK;
        if (!done) assert_int_equal(s, OT_E_NOMEM);
        assert_true(done == (kernel != NULL));
        ot_kernel_free(kernel);
        assert_int_equal(live, 0);
    }
    done = false;
    for (long k = 0; !done; k++) {
        allowed = k;
        ot_kernel *kernel = build();
        done = kernel != NULL;
        ot_kernel_free(kernel);
        assert_int_equal(live, 0);
    }
    ot_set_alloc_hook(NULL);
    free(text);
}

int main(void)
{
    seed_from_environment();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_kernel_values), cmocka_unit_test(test_bad_kernel_stmts),
        cmocka_unit_test(test_bad_kernel_ranges), cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_builder),           cmocka_unit_test(test_builder_blocks),
        cmocka_unit_test(test_builder_nonsense),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
