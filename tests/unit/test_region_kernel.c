/* Regions as kernels, and their planned memory.
 *
 * Buffers and windows of hand-made regions are compared with numbers worked out on paper.
 * Liveness has an oracle of its own here: one pass over the statements, no sets, no merging. It
 * is compared with what the planner says of the same kernel.
 */
#include "region_rig.h"
#include "region_prices.h"

static const ot_tk_value *named(const rig *x, const char *name)
{
    for (uint32_t v = 0; v < x->k->n_values; v++)
        if (strcmp(x->k->values[v].name, name) == 0) return &x->k->values[v];
    fail_msg("no value %s", name);
    return NULL;
}

static void has_dims(const rig *x, const char *name, uint32_t rank, const int64_t *dims)
{
    const ot_tk_value *v = named(x, name);
    assert_int_equal(v->rank, rank);
    for (uint32_t k = 0; k < rank; k++)
        if (v->dims[k] != dims[k])
            fail_msg("%s: axis %u is %lld, not %lld", name, k, (long long)v->dims[k],
                     (long long)dims[k]);
}
#define HAS_DIMS(x, name, ...)                                            \
    has_dims(x, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
             (const int64_t[]){__VA_ARGS__})

/* The n-th statement of a kind that writes (or, a store, reads) `name`; NULL: there is none. */
static const ot_tk_stmt *stmt_of(const rig *x, ot_tk_op op, const char *name)
{
    for (uint32_t s = 0; s < x->k->n_stmts; s++) {
        const ot_tk_stmt *p = &x->k->stmts[s];
        if (p->op != op) continue;
        uint32_t v = op == OT_TK_STORE ? p->in[0] : p->out[0];
        if (strcmp(x->k->values[v].name, name) == 0) return p;
    }
    return NULL;
}

static uint32_t count(const rig *x, ot_tk_op op)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < x->k->n_stmts; s++) n += x->k->stmts[s].op == op;
    return n;
}

/* lo = constant + coef * var (coef 0: no variable), hi = lo + len. */
static void is_range(const ot_tk_range *r, int64_t coef, int64_t constant, int64_t len)
{
    assert_int_equal(r->lo.n, coef ? 1 : 0);
    assert_int_equal(r->hi.n, coef ? 1 : 0);
    assert_int_equal(r->lo.constant, constant);
    assert_int_equal(r->hi.constant, constant + len);
    if (coef) {
        assert_int_equal(r->lo.terms[0].coef, coef);
        assert_int_equal(r->hi.terms[0].coef, coef);
    }
}

/* ---- liveness, counted apart ---- */

/* First and last statement that touches buffer v, itself or by a view; a buffer written before a
 * loop and used in it lives to its end. hold: a buffer of several slots lives as long as its
 * loop. */
static void life(const ot_kernel *k, uint32_t v, bool hold, uint32_t *from, uint32_t *to)
{
    uint32_t loop = OT_NONE;
    *from = OT_NONE;
    *to = 0;
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        const ot_tk_stmt *p = &k->stmts[s];
        bool touches = false;
        if (p->op == OT_TK_ALLOC || p->op == OT_TK_VIEW) continue;
        for (uint32_t j = 0; j < p->n_in; j++) touches |= ot_tk_root(k, p->in[j], NULL) == v;
        for (uint32_t j = 0; j < p->n_out; j++) touches |= ot_tk_root(k, p->out[j], NULL) == v;
        if (!touches) continue;
        if (*from == OT_NONE) *from = s;
        *to = s;
    }
    for (uint32_t s = 0; *from != OT_NONE && s < k->n_stmts; s++) {
        if (k->stmts[s].op != OT_TK_FOR) continue;
        /* around the loop */
        if (*from<s && * to> s && *to < k->stmts[s].mate) *to = k->stmts[s].mate;
        if (*from > s && *to < k->stmts[s].mate) loop = s;
    }
    if (!hold || k->values[v].multi == 1 || loop == OT_NONE) return;
    *from = loop;
    *to = k->stmts[loop].mate;
}

static int64_t most_live(const ot_kernel *k, bool hold)
{
    int64_t most = 0;
    for (uint32_t s = 0; s < k->n_stmts; s++) {
        int64_t sum = 0;
        for (uint32_t v = 0; v < k->n_values; v++) {
            uint32_t from, to;
            if (k->values[v].kind != OT_TK_BUFFER) continue;
            life(k, v, hold, &from, &to);
            if (from != OT_NONE && from <= s && s <= to)
                sum += k->values[v].bytes * k->values[v].multi;
        }
        most = ot_max(most, sum);
    }
    return most;
}

/* The planner's lower bound with nothing merged in place. */
static int64_t planner_bound(rig *x, const ot_kernel *k, bool hold)
{
    ot_mem_options o = {.mode = OT_MEM_SEARCH,
                        .capacity = 1LL << 40,
                        .threads = 1,
                        .step_limit = 1000,
                        .lifetimes = {.no_in_place = true, .hold_multi = hold}};
    ot_mem_plan *p = NULL;
    int64_t bound = 0;
    const ot_tk_machine t = ot_target_tk_machine(&x->t);
    if (ot_mem_plan_kernel(k, "test", &t, &o, &x->diag, &p) != OT_OK)
        fail_msg("%s", x->diag.message);
    for (uint32_t s = 0; s < p->n_scopes; s++)
        if (p->scopes[s].scope == OT_SCOPE_L2) bound = p->scopes[s].lower_bound;
    ot_mem_plan_free(p);
    return bound;
}

static void bounds_agree(rig *x)
{
    for (int hold = 0; hold < 2; hold++)
        assert_int_equal(most_live(x->k, hold), planner_bound(x, x->k, hold));
}

/* ---- hand-made regions ---- */

/* Two convolutions in steps of 4 of 64 rows, columns in two strips of 8 with their halo: two
 * rows stay of what each of them reads, and what is new is a step's. */
static void line_buffers_hold_what_is_kept(void **state)
{
    (void)state;
    rig x;
    open_model(&x, CHAIN);
    cut(&x, 2, 2, 16, 3, 2, OT_FORM_STREAM);
    x.r.rolling = true;
    x.r.overlap = false;
    x.r.weights_stay = true;
    lower(&x);
    HAS_DIMS(&x, "x_rows", 1, 4, 2, 10);
    HAS_DIMS(&x, "x_tile", 1, 4, 4, 10);
    HAS_DIMS(&x, "b_rows", 1, 4, 2, 9);
    HAS_DIMS(&x, "a_tile", 1, 4, 4, 9);
    HAS_DIMS(&x, "b_tile", 1, 4, 4, 9);
    HAS_DIMS(&x, "y_tile", 1, 4, 4, 8);
    const ot_tk_stmt *outer = NULL, *inner = NULL, *clear = stmt_of(&x, OT_TK_COMPUTE, "b_rows");
    for (uint32_t s = 0; s < x.k->n_stmts; s++) {
        const ot_tk_stmt *p = &x.k->stmts[s];
        if (p->op == OT_TK_FOR) inner = p, outer = outer ? outer : p;
    }
    /* a strip begins with no rows */
    assert_true(outer && inner && clear && outer < clear && clear < inner);
    assert_int_equal(outer->hi, 2);
    assert_int_equal(inner->hi, 16);
    /* two rows ahead of what is made */
    is_range(&stmt_of(&x, OT_TK_LOAD, "x_tile")->ranges[2], 4, 2, 4);
    is_range(&stmt_of(&x, OT_TK_STORE, "y_tile")->ranges[2], 4, 0, 4);
    bounds_agree(&x);
    /* all rows; a and b, one over the other, and then b and y; weights */
    ot_region_memory m;
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, NULL), OT_OK);
    const int64_t column = 4 * 4, weights = 2 * 4 * 4 * 9 * 4;
    assert_int_equal(m.lower_bound, (2 * 10 + 2 * 9 + 4 * 10 + 4 * 9) * column + weights);
    assert_int_equal(m.height, m.lower_bound);
    /* a memory of their own holds the weights */
    x.t.weight_bytes = x.r.weight_bytes = weights;
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, NULL), OT_OK);
    assert_int_equal(m.lower_bound, (2 * 10 + 2 * 9 + 4 * 10 + 4 * 9) * column);
    done(&x);
}

static void chain_has_its_buffers(void **state)
{
    (void)state;
    rig x;
    open_model(&x, CHAIN);
    cut(&x, 1, 2, 4, 0, 0, OT_FORM_PEELED);
    x.r.weights_stay = true;
    lower(&x);
    HAS_DIMS(&x, "x_tile", 1, 4, 20, 16); /* 16 rows and two borders of 2 */
    HAS_DIMS(&x, "a_tile", 1, 4, 18, 16);
    HAS_DIMS(&x, "b_tile", 1, 4, 18, 16);
    HAS_DIMS(&x, "y_tile", 1, 4, 16, 16);
    HAS_DIMS(&x, "x", 1, 4, 64, 16);
    assert_int_equal(named(&x, "x_tile")->multi, 2);
    assert_int_equal(named(&x, "a_tile")->multi, 1);
    assert_int_equal(named(&x, "y_tile")->multi, 2);
    assert_int_equal(named(&x, "x")->kind, OT_TK_PARAM);
    assert_int_equal(named(&x, "a_tile")->scope, OT_SCOPE_L2);
    const ot_tk_stmt *load = stmt_of(&x, OT_TK_LOAD, "x_tile"),
                     *store = stmt_of(&x, OT_TK_STORE, "y_tile");
    const ot_tk_stmt *w = stmt_of(&x, OT_TK_LOAD, "w1_l2"), *loop = NULL;
    for (uint32_t s = 0; s < x.k->n_stmts; s++)
        if (x.k->stmts[s].op == OT_TK_FOR) loop = &x.k->stmts[s];
    assert_true(load && store && w && loop);
    assert_true(w < loop && load > loop);
    assert_int_equal(loop->hi, 4);
    assert_int_equal(load->n_ranges, 4);
    is_range(&load->ranges[1], 0, 0, 4);
    is_range(&load->ranges[2], 16, -2, 20);
    is_range(&store->ranges[2], 16, 0, 16);
    assert_int_equal(stmt_of(&x, OT_TK_COMPUTE, "a_tile")->pipe, OT_PIPE_CUBE);
    assert_string_equal(stmt_of(&x, OT_TK_COMPUTE, "a_tile")->name, "conv");
    assert_int_equal(stmt_of(&x, OT_TK_COMPUTE, "b_tile")->pipe, OT_PIPE_VECTOR);
    bounds_agree(&x);
    /* both slots of x and y, which DMA may use at any time, a tile of 18 rows (Relu in place),
     * the weights */
    ot_region_memory m;
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, NULL), OT_OK);
    int64_t row = 4 * 16 * 4, weights = 2 * 4 * 4 * 9 * 4;
    assert_int_equal(m.lower_bound, 2 * 20 * row + 2 * 16 * row + 18 * row + weights);
    assert_int_equal(m.height, m.lower_bound);
    assert_true(m.proved);
    done(&x);
}

static void weights_stream_when_they_do_not_stay(void **state)
{
    (void)state;
    rig x;
    open_model(&x, CHAIN);
    cut(&x, 1, 2, 4, 0, 0, OT_FORM_UNROLLED);
    lower(&x);
    assert_int_equal(count(&x, OT_TK_LOAD), 1);
    const ot_tk_stmt *conv = stmt_of(&x, OT_TK_COMPUTE, "a_tile");
    assert_int_equal(conv->n_in, 2);
    assert_string_equal(x.k->values[conv->in[1]].name, "w0");
    assert_int_equal(x.k->values[conv->in[1]].kind, OT_TK_PARAM);
    x.r.overlap = false; /* no DMA: one slot each */
    lower(&x);
    assert_int_equal(named(&x, "x_tile")->multi, 1);
    assert_int_equal(named(&x, "y_tile")->multi, 1);
    done(&x);
}

static void two_dims_are_nested(void **state)
{
    (void)state;
    rig x;
    open_model(&x, CHAIN);
    cut(&x, 2, 2, 8, 3, 2, OT_FORM_UNROLLED);
    lower(&x);
    assert_int_equal(count(&x, OT_TK_FOR), 2);
    HAS_DIMS(&x, "x_tile", 1, 4, 12, 10); /* W: two tiles, each with one border inside */
    HAS_DIMS(&x, "a_tile", 1, 4, 10, 9);
    HAS_DIMS(&x, "y_tile", 1, 4, 8, 8);
    const ot_tk_stmt *load = stmt_of(&x, OT_TK_LOAD, "x_tile");
    is_range(&load->ranges[2], 8, -2, 12);
    is_range(&load->ranges[3], 6, 0, 10); /* [0,10) and [6,16): exact */
    bounds_agree(&x);
    done(&x);
}

static void tiles_in_flight_share_with_what_works_in_them(void **state)
{
    (void)state;
    rig x;
    ot_region_memory m;
    open_model(&x, "model ir 8 opset 17\ngraph g {\n  input %x : float32[64,100]\n  %a = "
                   "Relu(%x)\n  %b = Sigmoid(%a)\n"
                   "  %y = Tanh(%b)\n  output %y\n}\n");
    cut(&x, 1, 0, 4, 0, 0, OT_FORM_UNROLLED);
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, NULL), OT_OK);
    /* load, three operators, store: two slots for all of it */
    assert_int_equal(m.height, 2 * 16 * 400);
    x.r.overlap = false;
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, NULL), OT_OK);
    assert_int_equal(m.height, 16 * 400);
    done(&x);
}

static const char POINTS[] = "model ir 8 opset 17\n"
                             "graph g {\n"
                             "  input %x : float32[8,32]\n"
                             "  input %z : float32[8,32]\n"
                             "  %a = Exp(%x)\n"
                             "  %y = Add(%a, %z)\n"
                             "  output %y\n"
                             "}\n";

static void scan_reads_slices_on_a_cache_only(void **state)
{
    (void)state;
    rig x;
    open_model(&x, POINTS);
    cut(&x, 1, 0, 4, 0, 0, OT_FORM_SCAN);
    x.t = cache();
    lower(&x);
    assert_int_equal(count(&x, OT_TK_LOAD), 0);
    assert_string_equal(x.k->values[stmt_of(&x, OT_TK_COMPUTE, "a_tile")->in[0]].name, "x");
    HAS_DIMS(&x, "y_tile", 2, 32);
    x.t = scratchpad();
    lower(&x);
    assert_int_equal(count(&x, OT_TK_LOAD), 2);
    x.t = cache();
    x.r.form = OT_FORM_UNROLLED;
    lower(&x);
    assert_int_equal(count(&x, OT_TK_LOAD), 2);
    done(&x);
}

static void whole_inputs_stay_where_they_are(void **state)
{
    (void)state;
    rig x;
    open_model(&x, "model ir 8 opset 17\ngraph g {\n  input %q : float32[2,32,8]\n  input %k : "
                   "float32[2,8,64]\n"
                   "  %s = MatMul(%q, %k)\n  %y = Softmax(%s) {axis=-1}\n  output %y\n}\n");
    cut(&x, 1, 1, 4, 0, 0, OT_FORM_UNROLLED);
    lower(&x);
    assert_int_equal(count(&x, OT_TK_LOAD), 1);
    const ot_tk_stmt *product = stmt_of(&x, OT_TK_COMPUTE, "s_tile");
    assert_string_equal(x.k->values[product->in[0]].name, "q_tile");
    assert_string_equal(x.k->values[product->in[1]].name, "k");
    assert_int_equal(product->pipe, OT_PIPE_CUBE);
    done(&x);
}

static void reshapes_are_names(void **state)
{
    (void)state;
    rig x;
    open_model(
        &x, "model ir 8 opset 17\ngraph g {\n  input %x : float32[8,4,4]\n  init %axes : int64[1] "
            "= [1]\n"
            "  %a = Relu(%x)\n  %b = Unsqueeze(%a, %axes)\n  %y = Sigmoid(%b)\n  output %y\n}\n");
    cut(&x, 1, 0, 2, 0, 0, OT_FORM_UNROLLED);
    lower(&x);
    HAS_DIMS(&x, "b_tile", 4, 1, 4, 4);
    assert_int_equal(named(&x, "b_tile")->kind, OT_TK_ALIAS);
    assert_int_equal(count(&x, OT_TK_COMPUTE), 2);
    for (uint32_t v = 0; v < x.k->n_values; v++)
        assert_string_not_equal(x.k->values[v].name, "axes");
    done(&x);
}

static void work_memory_counts_while_its_operator_runs(void **state)
{
    (void)state;
    rig x;
    ot_region_memory without, with;
    open_model(&x, CHAIN);
    cut(&x, 1, 2, 4, 0, 0, OT_FORM_UNROLLED);
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &without, NULL), OT_OK);
    x.r.nodes[2].work = 64 * 1000; /* of the whole node: 16 of 64 rows take a quarter */
    lower(&x);
    const ot_tk_stmt *pack = NULL, *conv = stmt_of(&x, OT_TK_COMPUTE, "y_tile");
    for (uint32_t s = 0; s < x.k->n_stmts; s++)
        if (x.k->stmts[s].op == OT_TK_COMPUTE && strcmp(x.k->stmts[s].name, "pack") == 0)
            pack = &x.k->stmts[s];
    assert_non_null(pack);
    const ot_tk_value *work = &x.k->values[pack->out[0]];
    assert_int_equal(work->bytes, 16000);
    assert_int_equal(conv->in[conv->n_in - 1], pack->out[0]);
    bounds_agree(&x);
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &with, NULL), OT_OK);
    int64_t row = 4 * 16 * 4;
    assert_int_equal(without.lower_bound, 2 * 20 * row + 2 * 16 * row + 18 * row);
    assert_int_equal(with.lower_bound, without.lower_bound + 16000);
    done(&x);
}

static void kernel_survives_its_text(void **state)
{
    (void)state;
    rig x;
    ot_kernel *k = NULL, *again = NULL;
    ot_region_memory m;
    char *text = NULL, *twice = NULL;
    size_t n = 0, n2 = 0;
    open_model(&x, CHAIN);
    cut(&x, 2, 2, 8, 3, 2, OT_FORM_UNROLLED);
    x.r.weights_stay = true;
    assert_int_equal(ot_region_plan_memory(x.m->graph, &x.r, &x.t, &x.diag, &m, &k), OT_OK);
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(ot_kernel_print(k, f), OT_OK);
    fclose(f);
    assert_non_null(strstr(text, "offset="));
    if (ot_kernel_parse("region.tk", text, n, &x.diag, &again) != OT_OK)
        fail_msg("%s\n%s", x.diag.message, text);
    f = open_memstream(&twice, &n2);
    assert_int_equal(ot_kernel_print(again, f), OT_OK);
    fclose(f);
    assert_string_equal(text, twice);
    for (uint32_t v = 0; v < again->n_values; v++)
        if (again->values[v].n_offsets)
            assert_in_range(again->values[v].offsets[again->values[v].multi - 1] +
                                again->values[v].bytes,
                            1, m.height);
    free(text);
    free(twice);
    ot_kernel_free(k);
    ot_kernel_free(again);
    done(&x);
}

static void names_are_legal_and_unique(void **state)
{
    (void)state;
    static const char *const asked[] = {"/layer.0/conv:0",
                                        "layer.0/conv_0",
                                        "42",
                                        "for",
                                        "for.x",
                                        "",
                                        "\xff\x01",
                                        "a b",
                                        "a_b",
                                        "a__b",
                                        "loads",
                                        "é",
                                        "a:-b",
                                        "_"};
    static const char *const want[] = {"layer.0/conv_0",
                                       "layer.0/conv_0_2",
                                       "v42",
                                       "_for",
                                       "_for.x",
                                       "v",
                                       "v_2",
                                       "a_b",
                                       "a_b_2",
                                       "a__b",
                                       "loads",
                                       "v_3",
                                       "a_b_3",
                                       "_"};
    ot_arena *a = ot_arena_new();
    ot_region_names n;
    assert_true(ot_region_names_init(&n, a));
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++)
        assert_string_equal(ot_region_name(&n, asked[k], ""), want[k]);
    assert_string_equal(ot_region_name(&n, "a_b", ""), "a_b_4");
    assert_string_equal(ot_region_name(&n, "a", "_b"), "a_b_5");
    char longest[400];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_true(strlen(ot_region_name(&n, longest, "_tile")) < 70);
    ot_arena_free(a);
}

/* ---- random graphs ---- */

static void random_regions_are_counted_right(void **state)
{
    (void)state;
    uint32_t regions = 0, lower_in_place = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rig x;
        char text[8192];
        ot_plan *p = NULL;
        rng = seed * 31;
        open_model(&x, random_text(text, sizeof text, 3 + next_random(12)));
        x.t = next_random(2) ? scratchpad() : cache();
        x.t.fast_bytes = 20000 << next_random(4);
        x.t.double_buffer = next_random(2);
        x.t.bw_fast = 1e11;
        x.t.bw_mid = x.t.bw_slow = 2e9;
        x.t.rate_conv = x.t.rate_conv_depthwise = x.t.rate_conv_pointwise = x.t.rate_gemm = 1e11;
        x.t.rate_elem = x.t.rate_trans = x.t.rate_reduce = x.t.rate_pool = 1e10;
        ot_plan_options o = {.goal = OT_GOAL_TIME, .force = true};
        assert_int_equal(ot_plan_graph(x.m->graph, &x.t, &o, &p), OT_OK);
        if (check_plan_and_prices(x.m->graph, p, &x.t, &o, &x.diag) != OT_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, x.diag.message);
        for (uint32_t k = 0; k < p->n_regions; k++, regions++) {
            x.r = p->regions[k];
            lower(&x);
            int64_t most = most_live(x.k, true), bound = planner_bound(&x, x.k, true);
            if (most != bound)
                fail_msg("seed %llu region %u: %lld live, the planner says %lld",
                         (unsigned long long)seed, k, (long long)most, (long long)bound);
            assert_in_range(x.r.working_set_bound, 1, most);
            assert_in_range(x.r.working_set, x.r.working_set_bound,
                            x.t.is_cache ? INT64_MAX : x.t.fast_bytes);
            lower_in_place += x.r.working_set_bound < most;
            p->regions[k].working_set++; /* a planted error is found */
            ot_diag planted = {0};
            assert_int_not_equal(check_plan_and_prices(x.m->graph, p, &x.t, &o, &planted), OT_OK);
            assert_non_null(strstr(planted.message, "planned arena"));
            p->regions[k].working_set--;
        }
        ot_plan_free(p);
        done(&x);
    }
    assert_true(regions > 60);
    assert_true(lower_in_place > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain_has_its_buffers),
        cmocka_unit_test(line_buffers_hold_what_is_kept),
        cmocka_unit_test(weights_stream_when_they_do_not_stay),
        cmocka_unit_test(two_dims_are_nested),
        cmocka_unit_test(tiles_in_flight_share_with_what_works_in_them),
        cmocka_unit_test(scan_reads_slices_on_a_cache_only),
        cmocka_unit_test(whole_inputs_stay_where_they_are),
        cmocka_unit_test(reshapes_are_names),
        cmocka_unit_test(work_memory_counts_while_its_operator_runs),
        cmocka_unit_test(kernel_survives_its_text),
        cmocka_unit_test(names_are_legal_and_unique),
        cmocka_unit_test(random_regions_are_counted_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
