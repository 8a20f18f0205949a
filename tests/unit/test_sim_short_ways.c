/* What the simulation of a process leaves out changes nothing: iterations that are replayed, and
 * orders of changes of layout in which the steps are the same. */
#include "alloc_sim/simulate.h"
#include "shaped_model.h"

#include <fcntl.h>
#include <unistd.h>

/* With -d P, every iteration is simulated; what that prints is not looked at. */
static ot_sim_figures simulated(const ot_graph *g, bool static_shape, bool all)
{
    ot_sim_figures f;
    const int told = dup(2), nowhere = open("/dev/null", O_WRONLY);
    assert_true(told >= 0 && nowhere >= 0);
    fflush(stderr);
    dup2(nowhere, 2);
    ot_dbg['P'] = all;
    const ot_status s = ot_sim_growth(g, &ot_runtime_onnxruntime, static_shape, &f);
    ot_dbg['P'] = false;
    fflush(stderr);
    dup2(told, 2);
    close(told);
    close(nowhere);
    assert_int_equal(s, OT_OK);
    return f;
}

static void check_loop(const char *text)
{
    ot_diag d;
    ot_model *m = read_model(text, &d);
    for (int is_static = 0; is_static < 2; is_static++) {
        const ot_sim_figures all = simulated(m->graph, is_static, true),
                             few = simulated(m->graph, is_static, false);
        assert_int_equal(all.growth, few.growth);
        assert_int_equal(all.first_run, few.first_run);
        assert_int_equal(all.pattern, few.pattern);
        assert_memory_equal(all.held, few.held, all.n_held * sizeof *all.held);
        assert_int_equal(all.n_held, few.n_held);
    }
    ot_model_free(m);
}

/* Pieces in a sequence: each iteration finds another arena. */
static void sequences_are_replayed(void **state)
{
    (void)state;
    char text[2048];
    for (int trips = 1; trips < 700; trips = trips * 3 + 1)
        for (int rows = 5; rows < 3000; rows = rows * 7 + 2) {
            snprintf(
                text, sizeof text,
                "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,%d,64]\n"
                "  init %%n : int64[] = [%d]\n  init %%yes : bool[] = [1]\n"
                "  %%none : opaque = SequenceEmpty()\n"
                "  %%all : opaque = Loop(%%n, %%yes, %%none) {body=graph step {\n"
                "    input %%i : int64[]\n    input %%go : bool[]\n    input %%s : opaque\n"
                "    outer %%x : float32[1,%d,64]\n    %%on : bool[] = Identity(%%go)\n"
                "    %%a : float32[1,%d,64] = Softmax(%%x)\n"
                "    %%e : float32[1,%d,64] = Softmax(%%a)\n"
                "    %%more : opaque = SequenceInsert(%%s, %%e)\n"
                "    output %%on\n    output %%more\n  }}\n"
                "  %%y : float32[%d,%d,64] = ConcatFromSequence(%%all) {axis=0}\n  output %%y\n}\n",
                rows, trips, rows, rows, rows, trips, rows);
            check_loop(text);
        }
}

/* Results of all iterations beside a tensor that each hands to the next. */
static void kept_results_are_replayed(void **state)
{
    (void)state;
    char text[2048];
    for (int trips = 1; trips < 700; trips = trips * 3 + 1)
        for (int rows = 3; rows < 2000; rows = rows * 5 + 1) {
            snprintf(text, sizeof text,
                     "model ir 8 opset 17\ngraph g {\n  input %%x : float32[%d,64]\n"
                     "  init %%n : int64[] = [%d]\n  init %%yes : bool[] = [1]\n"
                     "  %%p : float32[%d,64], %%q : float32[%d,%d,64] = Loop(%%n, %%yes, %%x) "
                     "{body=graph step {\n    input %%i : int64[]\n    input %%go : bool[]\n"
                     "    input %%s : float32[%d,64]\n    %%on : bool[] = Identity(%%go)\n"
                     "    %%e : float32[%d,64] = Softmax(%%s)\n"
                     "    %%f : float32[%d,64] = Softmax(%%e)\n    %%h : float32[%d,64] = "
                     "Softmax(%%f)\n    output %%on\n    output %%h\n    output %%f\n  }}\n"
                     "  output %%q\n  output %%p\n}\n",
                     rows, trips, rows, trips, rows, rows, rows, rows, rows);
            check_loop(text);
        }
}

/* ---- orders ---- */

/* So many convolutions' results, each of which changes its layout to be joined with the others;
 * `apart`: something stands between, whose order is that of the file. */
static ot_model *branching(uint32_t n, bool apart, ot_diag *d)
{
    char text[8192];
    int at = snprintf(text, sizeof text,
                      "model ir 8 opset 17\ngraph g {\n  input %%x : float32[1,32,24,24]\n"
                      "  init %%w : float32[32,32,3,3] = random 1\n");
    for (uint32_t k = 0; k < n; k++)
        at += snprintf(text + at, sizeof text - (size_t)at,
                       "  %%c%u = Conv(%%x, %%w) {pads=[1,1,1,1]}\n  %%s%u = Softmax(%%c%u)\n", k,
                       k, k);
    at += snprintf(text + at, sizeof text - (size_t)at, "  %%y = Concat(");
    for (uint32_t k = 0; k < n; k++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%%%c%u", k ? ", " : "",
                       apart ? 's' : 'c', k);
    snprintf(text + at, sizeof text - (size_t)at, ") {axis=2}\n  output %%y\n}\n");
    return read_model(text, d);
}

static bool same_steps(const ot_sim_schedule *p, const ot_sim_schedule *q)
{
    bool same = p->n == q->n;
    for (size_t k = 0; k < p->n && same; k++)
        same = p->steps[k].node == q->steps[k].node && p->steps[k].n_writes > 0 &&
               p->steps[k].writes[0] == q->steps[k].writes[0];
    return same;
}

/* An order is another one where its steps are, and only there. */
static void orders_that_differ_are_found(void **state)
{
    (void)state;
    uint32_t n_same = 0, n_other = 0;
    for (uint32_t n = 2; n < 12; n++) {
        ot_diag d;
        ot_model *m = branching(n / 2, n % 2, &d);
        const ot_runtime *r = &ot_runtime_onnxruntime;
        ot_sim_schedule first, at;
        ot_sim_figures one, most;
        assert_int_equal(ot_sim_plan_make(m->graph, NULL, r, true,
                                          (ot_sim_orders){0, OT_SIM_ORDERS}, m->arena, &first),
                         OT_OK);
        for (uint32_t k = 1; k < OT_SIM_ORDERS; k++) {
            assert_int_equal(
                ot_sim_plan_make(m->graph, NULL, r, true, (ot_sim_orders){k, 0}, m->arena, &at),
                OT_OK);
            const bool same = same_steps(&first, &at);
            assert_int_equal(first.other_orders >> k & 1, !same);
            n_same += same;
            n_other += !same;
        }
        assert_int_equal(ot_sim_growth(m->graph, r, false, &one), OT_OK);
        assert_int_equal(ot_sim_growth_most(m->graph, r, false, OT_SIM_ORDERS, &most), OT_OK);
        assert_true(most.growth >= one.growth);
        ot_model_free(m);
    }
    assert_true(n_same > 0 && n_other > 0);
}

/* ---- an early end ---- */

typedef struct limit {
    int64_t most;
    ot_sim_figures loaded; /* what it was asked with */
} limit;

static int64_t most_of(const ot_sim_figures *loaded, const void *of)
{
    limit *l = (limit *)of;
    l->loaded = *loaded;
    return l->most;
}

/* Where the process grows by more than is asked for, it is cut, and grows by that at least; else
 * nothing is different. Returns how often it was cut. */
static uint32_t check_ends(const ot_graph *g, uint32_t orders)
{
    static const int PARTS[] = {0, 20, 50, 90, 99, 100, 101, 300};
    const ot_runtime *r = &ot_runtime_onnxruntime;
    ot_sim_figures whole, f;
    uint32_t n = 0;
    assert_int_equal(ot_sim_growth_most(g, r, true, orders, &whole), OT_OK);
    assert_false(whole.is_cut);
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
        const limit l = {.most = whole.growth / 100 * PARTS[k] + (PARTS[k] == 100) * 100};
        const ot_sim_stop stop = {.most = most_of, .of = &l};
        assert_int_equal(ot_sim_growth_until(g, r, true, orders, &stop, &f), OT_OK);
        assert_int_equal(l.loaded.loaded, whole.loaded);
        assert_int_equal(f.is_cut, whole.growth > l.most);
        if (f.is_cut)
            assert_true(f.growth > l.most && f.growth <= whole.growth);
        else
            assert_memory_equal(&f, &whole, sizeof f);
        n += f.is_cut;
    }
    return n;
}

static void ends_where_it_is_more(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 6; n++) {
        ot_diag d;
        ot_model *m = branching(n, n % 2, &d);
        assert_int_equal(check_ends(m->graph, 1), 5);
        assert_int_equal(check_ends(m->graph, OT_SIM_ORDERS), 5);
        ot_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_replayed),
        cmocka_unit_test(kept_results_are_replayed),
        cmocka_unit_test(orders_that_differ_are_found),
        cmocka_unit_test(ends_where_it_is_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
