/* The planner against exhaustive search, and the plan checker against planted errors.
 *
 * Exhaustive search: the cost of every interval in every tiling is taken from the trial code
 * (which has its own oracle in ot_region_exact), but all compositions of the sequence into
 * intervals are enumerated here, without dynamic programming.
 */
#include "select/search/plan_search.h"
#include "select/search/search.h"
#include "region_prices.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t rng;

static uint32_t next_random(uint32_t n) { return (uint32_t)(ot_next_random(&rng) % n); }

/* A random chain with skips: convolutions, activations, adds, pools on [1,c,h,h]. */
static char *random_text(char *buf, size_t size, uint32_t n)
{
    uint32_t h = 64u << next_random(3), c = 4u << next_random(4);
    int len = snprintf(
        buf, size, "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,%u,%u,%u]\n", c, h, h);
    for (uint32_t k = 0; k < n; k++)
        len += snprintf(buf + len, size - (size_t)len,
                        "  init %%w%u : float32[%u,%u,3,3] = random %u\n", k, c, c, k + 1);
    for (uint32_t k = 0; k < n; k++) {
        switch (next_random(4)) {
        case 0:
            len += snprintf(buf + len, size - (size_t)len, "  %%v%u = Relu(%%v%u)\n", k + 1, k);
            break;
        case 1:
            len += snprintf(buf + len, size - (size_t)len, "  %%v%u = Add(%%v%u, %%v%u)\n", k + 1,
                            k, next_random(k + 1));
            break;
        case 2:
            len += snprintf(buf + len, size - (size_t)len, "  %%v%u = Softmax(%%v%u) {axis=%u}\n",
                            k + 1, k, 1 + next_random(3));
            break;
        default:
            len += snprintf(buf + len, size - (size_t)len,
                            "  %%v%u = Conv(%%v%u, %%w%u) {pads=[1,1,1,1]}\n", k + 1, k, k);
        }
    }
    snprintf(buf + len, size - (size_t)len, "  output %%v%u\n}\n", n);
    return buf;
}

static ot_target small_target(void)
{
    ot_target t = {.fast_bytes = 1 << 18,
                   .granule = 64,
                   .cores = 1,
                   .is_cache = next_random(2) == 0,
                   .bw_fast = 100e9,
                   .bw_mid = 20e9,
                   .mid_bytes = 0,
                   .bw_slow = 2e9,
                   .rate_conv = 400e9,
                   .rate_conv_depthwise = 20e9,
                   .rate_conv_pointwise = 40e9,
                   .rate_gemm = 50e9,
                   .rate_elem = 5e9,
                   .rate_trans = 1e9,
                   .rate_reduce = 5e9,
                   .rate_pool = 5e9,
                   .node_overhead = 1e-7,
                   .loop_overhead = 1e-7,
                   .region_overhead = 1e-6};
    t.runtime = ot_runtime_of(t.is_cache, false);
    return t;
}

typedef struct table {
    double t[12][12]; /* [first][end] least time of a tiled interval */
} table;

static void fill_table(const ot_seq *s, ot_walk *w, ot_trial *tr, const ot_plan_options *o,
                       table *tab)
{
    for (uint32_t a = 0; a < 12; a++)
        for (uint32_t b = 0; b < 12; b++) tab->t[a][b] = 1e300;
    for (uint32_t end = 0; end < s->n; end++) {
        const ot_value *x = &s->g->values[s->g->nodes[s->node[end]].out[0]];
        int8_t sets[8][OT_DIMS_MAX];
        uint32_t dims[8], n_sets = 0;
        /* The axis sets that the planner promises to try: every cuttable axis, and neighbours
         * among them. */
        int8_t ok[8], n_ok = 0;
        for (int8_t a = 0; a < x->rank; a++) {
            ot_why why;
            const ot_node *n = &s->g->nodes[s->node[end]];
            if (x->dims[a] > 1 &&
                ot_access_axis(s->g, n, 0, (uint32_t)a, w->in_axis[0], w->out_axis[0], &why))
                ok[n_ok++] = a;
        }
        for (int8_t a = 0; a < n_ok; a++)
            for (int8_t b = a; b < n_ok && b <= a + 1; b++) {
                sets[n_sets][0] = ok[a];
                sets[n_sets][1] = ok[b];
                dims[n_sets++] = a == b ? 1 : 2;
            }
        for (uint32_t k = 0; k < n_sets; k++) {
            ot_walk_start(w, end, 0, sets[k], dims[k]);
            ot_trial_start(tr, w, 0, sets[k], dims[k]);
            while (w->lo > 0) {
                int st = ot_walk_step(w);
                if (!ot_trial_visit(tr, st)) break;
                if (st != OT_ST_IN || end == w->lo) continue;
                for (uint32_t p = 0; p < ot_trial_pairs(tr); p++) {
                    ot_choice c;
                    if (!ot_trial_choice(tr, p, &c)) continue;
                    if (c.time < tab->t[w->lo][end] && c.time < s->time[end + 1] - s->time[w->lo])
                        tab->t[w->lo][end] = c.time;
                }
            }
        }
    }
    (void)o;
}

static double enumerate(const ot_seq *s, const table *tab, uint32_t pos)
{
    if (pos == s->n) return 0;
    double best = s->time[pos + 1] - s->time[pos] + enumerate(s, tab, pos + 1);
    for (uint32_t end = pos; end < s->n; end++) {
        if (tab->t[pos][end] >= 1e299) continue;
        double t = tab->t[pos][end] + enumerate(s, tab, end + 1);
        if (t < best) best = t;
    }
    return best;
}

static void dp_equals_exhaustive(void **state)
{
    (void)state;
    uint32_t tiled = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        rng = seed;
        char text[8192];
        ot_diag d = {0};
        ot_model *m = NULL;
        random_text(text, sizeof text, 3 + next_random(7));
        ot_target t = small_target();
        assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        ot_arena *a = ot_arena_new();
        ot_seq s;
        ot_walk w;
        ot_interval_path path;
        ot_plan_options o = {.goal = OT_GOAL_TIME};
        table tab;
        assert_int_equal(ot_seq_build(m->graph, a, &s), OT_OK);
        assert_int_equal(ot_cost_fill(&s, &t), OT_OK);
        assert_int_equal(ot_walk_new(&s, &w), OT_OK);
        ot_trial *tr = ot_trial_new(&s, &t, &o);
        assert_non_null(tr);
        assert_int_equal(ot_dp_solve(&s, &w, tr, &t, &o, NULL, NULL, &path), OT_OK);
        fill_table(&s, &w, tr, &o, &tab);
        double best = enumerate(&s, &tab, 0);
        if (path.time > best * (1 + 1e-6) || path.time < best * (1 - 1e-6))
            fail_msg("seed %llu: dynamic programming %.9g s, exhaustive %.9g s\n%s",
                     (unsigned long long)seed, path.time, best, text);
        if (best < s.time[s.n] * 0.999) tiled++;
        ot_arena_free(a);
        ot_model_free(m);
    }
    if (tiled < 20)
        fail_msg("tiling wins in only %u of 60 graphs",
                 tiled); /* the test means something only when tiling wins often */
}

/* GLPK finds the same plan as labels do. */
static void check_glpk(ot_graph *g, const ot_target *t, const ot_plan_options *o, const ot_plan *p)
{
    ot_plan_options by_glpk = *o;
    ot_plan *q = NULL;
    by_glpk.tie_glpk = true;
    assert_int_equal(ot_plan_graph(g, t, &by_glpk, &q), OT_OK);
    assert_int_equal(q->n_regions, p->n_regions);
    assert_true(q->tiled.time_s == p->tiled.time_s && q->tiled.peak_bytes == p->tiled.peak_bytes);
    for (uint32_t k = 0; k < p->n_regions; k++)
        assert_true(p->regions[k].first == q->regions[k].first &&
                    p->regions[k].last == q->regions[k].last &&
                    p->regions[k].form == q->regions[k].form);
    ot_plan_free(q);
}

static void plans_check_out(void **state)
{
    (void)state;
    uint32_t regions = 0, met = 0;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        rng = seed * 77;
        char text[8192];
        ot_diag d = {0};
        ot_model *m = NULL;
        random_text(text, sizeof text, 3 + next_random(12));
        ot_target t = small_target();
        assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        ot_plan_options o = {.goal = next_random(2) ? OT_GOAL_TIME : OT_GOAL_MEMORY,
                             .force = next_random(2),
                             .max_slowdown = 0.3,
                             .tie_break = true};
        ot_plan *p;
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, d.message, text);
        regions += p->n_regions;
        check_glpk(m->graph, &t, &o, p);
        ot_plan_options less = o; /* where it can be met, a budget is kept */
        less.memory_budget = p->tiled.peak_bytes - p->tiled.peak_bytes / 8;
        ot_plan *q = NULL;
        ot_status st = ot_plan_graph(m->graph, &t, &less, &q);
        if (st != OT_OK) assert_int_equal(st, OT_E_BUDGET);
        if (st == OT_OK && check_plan_and_prices(m->graph, q, &t, &less, &d) != OT_OK)
            fail_msg("seed %llu, budget: %s\n%s", (unsigned long long)seed, d.message, text);
        met += st == OT_OK;
        ot_plan_free(q);
        if (p->n_regions > 0) { /* a planted error is found */
            ot_region *r = &p->regions[0];
            ot_diag planted = {0};
            int64_t tile = r->dims[0].tile;
            r->dims[0].tile += r->dims[0].extent;
            assert_int_not_equal(check_plan_and_prices(m->graph, p, &t, &o, &planted), OT_OK);
            r->dims[0].tile = tile;
            uint32_t n = r->n_values - 1;
            r->values[n].is_output = !r->values[n].is_output;
            memset(&planted, 0, sizeof planted);
            assert_int_not_equal(check_plan_and_prices(m->graph, p, &t, &o, &planted), OT_OK);
        }
        ot_plan_free(p);
        ot_model_free(m);
    }
    assert_true(regions > 40);
    assert_true(met > 5);
}

static void budget_is_hard(void **state)
{
    (void)state;
    rng = 5;
    char text[8192];
    ot_diag d = {0};
    ot_model *m = NULL;
    random_text(text, sizeof text, 6);
    ot_target t = small_target();
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    ot_plan_options o = {.goal = OT_GOAL_MEMORY, .memory_budget = 1000};
    ot_plan *p;
    assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_E_BUDGET);
    assert_non_null(strstr(d.message, "available 1000"));
    ot_model_free(m);
}

/* Exporters write Shape(Slice(...)) where all sizes are known: the Slice computes nothing that
 * anybody reads. */
static void unread_results_are_not_tiled(void **state)
{
    (void)state;
#define DEAD "  %d = Slice(%b, %s, %e, %a)\n  %h = Shape(%d)\n"
#define REST "  %q = Slice(%r, %s, %e, %a)\n  %k = Expand(%q, %h)\n  output %k\n}\n"
    static const char *const graphs[] = {
        "  %b = ScatterND(%x, %i, %u)\n" DEAD
        "  %t = ScatterND(%b, %i, %u)\n  %r = Relu(%t)\n" REST,
        "  %b = Sigmoid(%x)\n" DEAD "  %r = Relu(%b)\n" REST,
    };
#undef DEAD
#undef REST
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        char text[2048];
        ot_diag d = {0};
        ot_model *m = NULL;
        ot_plan *p;
        snprintf(text, sizeof text,
                 "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,16,64,64]\n  init %%s : "
                 "int64[1] = [0]\n"
                 "  init %%e : int64[1] = [8]\n  init %%a : int64[1] = [1]\n  init %%i : "
                 "int64[1,1] = [0]\n"
                 "  init %%u : float32[1,16,64,64] = random 2\n%s",
                 graphs[k]);
        ot_target t;
        assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
        assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
        assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
        ot_plan_options o = {.force = true};
        assert_int_equal(ot_plan_graph(m->graph, &t, &o, &p), OT_OK);
        assert_true(p->n_regions > 0);
        if (check_plan_and_prices(m->graph, p, &t, &o, &d) != OT_OK)
            fail_msg("%s\n%s", d.message, text);
        ot_plan_free(p);
        ot_model_free(m);
    }
}

/* Seconds of the region of two convolutions cut in eight along the axis, as a loop; *numbers:
 * elements of its input's windows. */
static double seconds_of(uint32_t opset, int8_t axis, double *numbers)
{
    char text[512];
    ot_diag d = {0};
    ot_model *m = NULL;
    ot_arena *a = ot_arena_new();
    ot_seq s;
    ot_walk w;
    ot_region r;
    ot_target t;
    ot_tile_windows win;
    ot_why why;
    snprintf(text, sizeof text,
             "model ir 8 opset %u\ngraph g {\n  input %%x : float32[1,8,64,64]\n  init %%w : "
             "float32[8,8,3,3] = random 1\n"
             "  %%a = Conv(%%x, %%w) {pads=[1,1,1,1]}\n  %%y = Conv(%%a, %%w) {pads=[1,1,1,1]}\n  "
             "output %%y\n}\n",
             opset);
    assert_int_equal(ot_text_parse(text, strlen(text), &d, &m), OT_OK);
    assert_int_equal(ot_infer_shapes(m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_seq_build(m->graph, a, &s), OT_OK);
    assert_int_equal(ot_cost_fill(&s, &t), OT_OK);
    assert_int_equal(ot_walk_new(&s, &w), OT_OK);
    const ot_choice c = {
        .first = 0, .end = 1, .n_dims = 1, .axes = {axis}, .tile = {8}, .form = OT_FORM_LOOP};
    assert_int_equal(ot_region_build(&s, &w, &c, a, &r), OT_OK);
    r.form = OT_FORM_LOOP;
    assert_int_equal(ot_region_exact(&s, &t, 0, &r), OT_OK);
    assert_int_equal(ot_tile_windows_new(m->graph, &r, a, &win), OT_OK);
    *numbers = 0;
    for (uint32_t k = 0; k < r.dims[0].n_tiles; k++) {
        assert_true(ot_tile_windows_get(m->graph, &r, 0, k, &win, &why));
        *numbers += 8.0 * 64 * (double)(win.made[0].hi - win.made[0].lo);
    }
    ot_model_free(m);
    ot_arena_free(a);
    return r.time_tiled;
}

/* Before opset 10 a Slice has no operands: bodies gather their windows, along the last axis
 * number by number. */
static void gathered_windows_have_a_price(void **state)
{
    (void)state;
    double numbers;
    /* rows are copied as a Slice does */
    assert_true(fabs(seconds_of(9, 2, &numbers) - seconds_of(13, 2, &numbers)) < 1e-12);
    const double more = seconds_of(9, 3, &numbers) - seconds_of(13, 3, &numbers);
    assert_true(fabs(more - numbers * ot_runtime_onnxruntime.gather_seconds) < 1e-9);
    assert_true(more > 0.1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dp_equals_exhaustive),
        cmocka_unit_test(plans_check_out),
        cmocka_unit_test(budget_is_hard),
        cmocka_unit_test(unread_results_are_not_tiled),
        cmocka_unit_test(gathered_windows_have_a_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
