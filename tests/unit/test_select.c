/* The choice of a plan (src/select): limits are constraints, so that a looser one never holds more;
 * what one goal finds competes for the other; variants of the model, and what is left when memory
 * runs out. */
#include "cases.h"
#include "select/variant.h"

#include "ops/shape.h"
#include "onnx/graph/text.h"
#include "stingy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef struct chosen {
    ot_diag diag;
    ot_target target;
    ot_model *m, *unbound;
    ot_plan_options o;
    ot_selection s;
} chosen;

static void load(chosen *x, const char *text, const ot_shape_binding *bind)
{
    *x = (chosen){.o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .tie_break = true}};
    assert_int_equal(ot_target_load("cpu-generic", 1, &x->diag, &x->target), OT_OK);
    if (ot_text_parse(text, strlen(text), &x->diag, &x->m) != OT_OK)
        fail_msg("%s\n%s", x->diag.message, text);
    if (bind) assert_int_equal(ot_model_clone(x->m, &x->unbound), OT_OK);
    assert_int_equal(ot_infer_shapes(x->m->graph, bind, bind != NULL), OT_OK);
    assert_int_equal(ot_assure(x->m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
}

static ot_status choose(chosen *x, const ot_shape_binding *bind, const ot_shape_binding *design)
{
    const ot_select_request q = {.model = x->m,
                                 .unbound = x->unbound,
                                 .target = &x->target,
                                 .options = &x->o,
                                 .sizes = {.shapes = bind,
                                           .n_shapes = bind != NULL,
                                           .design = design,
                                           .n_design = design != NULL,
                                           .one_size = bind != NULL},
                                 .is_dynamic = design && !bind,
                                 .static_shape = !bind && !design,
                                 .diag = &x->diag};
    return ot_select(&q, &x->s);
}

static void drop(chosen *x)
{
    ot_selection_free(&x->s);
    ot_model_free(x->unbound);
    ot_model_free(x->m);
    ot_target_free(&x->target);
}

/* What was chosen is a plan of the graph as it is now. */
static void check(chosen *x)
{
    ot_graph *g = x->s.design ? x->s.design->graph : x->m->graph;
    assert_int_equal(ot_verify(x->m->graph), OT_OK);
    if (ot_plan_check(g, x->s.plan, &x->target, &x->o, &x->diag) != OT_OK)
        fail_msg("%s", x->diag.message);
}

/* Of the process, with the plan. */
static int64_t growth(const chosen *x) { return x->s.plan->tiled.growth_bytes; }

/* A random network of maps: convolutions, activations, norms, sums with what came before,
 * poolings. */
static void network(uint64_t *state, char *out, size_t n)
{
    const int channels = 4 << ot_next_random(state) % 3, rows = 64 << ot_next_random(state) % 3;
    int at = snprintf(out, n,
                      "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,%d,%d,128]\n"
                      "  init %%w : float32[%d,%d,3,3] = random 1\n"
                      "  init %%s : float32[%d] = random 2\n",
                      channels, rows, channels, channels, channels);
    const int nodes = 4 + (int)(ot_next_random(state) % 8);
    for (int k = 1; k <= nodes; k++) {
        const int before = (int)(ot_next_random(state) % (uint64_t)k);
        const char *forms[] = {"Conv(%%v%d, %%w) {pads=[1,1,1,1]}", "Relu(%%v%d)", "Sigmoid(%%v%d)",
                               "Conv(%%v%d, %%w) {pads=[1,1,1,1]}",
                               "InstanceNormalization(%%v%d, %%s, %%s)"};
        at += snprintf(out + at, n - (size_t)at, "  %%v%d = ", k);
        if (ot_next_random(state) % 4 == 0)
            at += snprintf(out + at, n - (size_t)at, "Add(%%v%d, %%v%d)", k - 1, before);
        else
            at += snprintf(out + at, n - (size_t)at, forms[ot_next_random(state) % 5], k - 1);
        at += snprintf(out + at, n - (size_t)at, "\n");
    }
    snprintf(out + at, n - (size_t)at, "  %%y = ReduceMax(%%v%d) {axes=[1]}\n  output %%y\n}\n",
             nodes);
}

/* What a plan takes under a limit. */
typedef struct taken {
    int64_t growth, peak;
    double seconds, untiled_s;
    int64_t untiled, untiled_peak;
} taken;

/* fast: bytes of the fast memory; 0: the target's own. */
static ot_status take_on(const char *text, const ot_plan_options *o, int64_t fast, taken *out)
{
    chosen x;
    load(&x, text, NULL);
    if (fast > 0) ot_target_set_l2(&x.target, fast);
    x.o = *o;
    const ot_status s = choose(&x, NULL, NULL);
    if (s == OT_OK) {
        check(&x);
        const ot_plan *p = x.s.plan;
        const ot_figures *whole = p->is_decomposed ? &p->whole : &p->untiled;
        *out = (taken){.growth = p->tiled.growth_bytes,
                       .peak = p->tiled.peak_bytes,
                       .seconds = p->tiled.time_s,
                       .untiled_s = whole->time_s,
                       .untiled = whole->growth_bytes,
                       .untiled_peak = whole->peak_bytes};
    }
    drop(&x);
    return s;
}

static ot_status take(const char *text, const ot_plan_options *o, taken *out)
{
    return take_on(text, o, 0, out);
}

/* OT_SEEDS: so many. */
static int networks(void)
{
    const char *many = getenv("OT_SEEDS");
    return many ? atoi(many) : CASES(4);
}

/* Printed, and taken from SEED. */
static uint64_t first_seed(void)
{
    const char *given = getenv("SEED");
    const uint64_t s = given ? strtoull(given, NULL, 10) : 1;
    print_message("seed %llu\n", (unsigned long long)s);
    return s;
}

static void more_slowdown_never_holds_more(void **state)
{
    (void)state;
    static const double SLOWER[] = {0, 0.03, 0.05, 0.1, 0.17, 0.2, 0.5, 1, 3};
    uint64_t seed = first_seed();
    for (int k = 0; k < networks(); k++) {
        char text[4096];
        taken last = {.growth = INT64_MAX}, now, fast;
        network(&seed, text, sizeof text);
        ot_plan_options o = {.goal = OT_GOAL_MEMORY, .tie_break = true};
        for (size_t j = 0; j < sizeof SLOWER / sizeof *SLOWER; j++) {
            o.max_slowdown = SLOWER[j];
            assert_int_equal(take(text, &o, &now), OT_OK);
            assert_true(now.seconds <= now.untiled_s * (1 + SLOWER[j] + 1e-6));
            if (now.growth > last.growth)
                fail_msg("network %d, slowdown %g: %lld, %lld before\n%s", k, SLOWER[j],
                         (long long)now.growth, (long long)last.growth, text);
            last = now;
        }
        /* what goal time finds competes */
        o = (ot_plan_options){.goal = OT_GOAL_TIME, .tie_break = true};
        assert_int_equal(take(text, &o, &fast), OT_OK);
        assert_true(last.growth <= fast.growth);
    }
}

/* In both figures: the untiled model is faster then, too, which the limit on time counts from. */
static void a_larger_fast_memory_is_never_worse(void **state)
{
    (void)state;
    uint64_t seed = first_seed() + 4;
    for (int k = 0; k < networks(); k++) {
        char text[4096];
        taken all[4];
        network(&seed, text, sizeof text);
        const ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .tie_break = true};
        for (int j = 0; j < 4; j++) {
            assert_int_equal(take_on(text, &o, (int64_t)(256 << 10) << 2 * j, &all[j]), OT_OK);
            for (int i = 0; i < j; i++)
                if (all[j].growth > all[i].growth && all[j].seconds > all[i].seconds * (1 + 1e-9))
                    fail_msg("network %d, %d KiB: %lld in %g s, %lld in %g s before\n%s", k,
                             256 << 2 * j, (long long)all[j].growth, all[j].seconds,
                             (long long)all[i].growth, all[i].seconds, text);
        }
    }
}

/* Asking what a much larger limit would bring changes nothing of what is chosen. */
static void a_slower_plan_is_asked_about_alone(void **state)
{
    (void)state;
    uint64_t seed = first_seed() + 2;
    for (int k = 0; k < networks(); k++) {
        char text[4096];
        chosen with, without;
        network(&seed, text, sizeof text);
        load(&with, text, NULL);
        load(&without, text, NULL);
        with.o.goal = without.o.goal = OT_GOAL_MEMORY;
        with.o.search.try_slower = true;
        assert_int_equal(choose(&with, NULL, NULL), OT_OK);
        assert_int_equal(choose(&without, NULL, NULL), OT_OK);
        assert_int_equal(growth(&with), growth(&without));
        assert_int_equal(with.s.plan->n_regions, without.s.plan->n_regions);
        assert_true(with.s.plan->tiled.time_s == without.s.plan->tiled.time_s);
        assert_true(with.s.slower.peak_bytes > 0 && without.s.slower.peak_bytes == 0);
        assert_true(with.s.slower.time_s <= with.s.plan->untiled.time_s * (1 + OT_SLOWER + 1e-6));
        check(&with);
        drop(&with);
        drop(&without);
    }
}

static void larger_budgets_are_never_worse(void **state)
{
    (void)state;
    uint64_t seed = first_seed() + 1;
    for (int k = 0; k < networks(); k++) {
        char text[4096];
        taken whole;
        network(&seed, text, sizeof text);
        ot_plan_options o = {.goal = OT_GOAL_TIME, .max_slowdown = 0.1, .tie_break = true};
        assert_int_equal(take(text, &o, &whole), OT_OK);
        for (int goal = 0; goal < 2; goal++) {
            taken last = {0}, now;
            bool any = false, last_fits = false;
            for (int tenth = 1; tenth < 10; tenth++) {
                o.goal = goal ? OT_GOAL_MEMORY : OT_GOAL_TIME;
                o.memory_budget = whole.untiled / 10 * tenth;
                const ot_status s = take(text, &o, &now);
                if (s == OT_E_BUDGET && !any) continue;
                if (s != OT_OK) fail_msg("network %d, budget %d tenths: %d\n%s", k, tenth, s, text);
                assert_true(now.peak <= o.memory_budget);
                const bool fits = (double)now.growth <= 0.9 * (double)o.memory_budget;
                if (any && goal && now.growth > last.growth)
                    fail_msg("network %d, budget %d tenths: %lld, %lld before\n%s", k, tenth,
                             (long long)now.growth, (long long)last.growth, text);
                if (any && !goal) assert_true(fits || !last_fits);
                if (any && !goal && fits && last_fits)
                    assert_true(now.seconds <= last.seconds * (1 + 1e-6));
                any = true;
                last = now;
                last_fits = fits;
            }
        }
    }
}

/* ---- budgets ---- */

typedef struct asked {
    ot_plan_options o[64];
    uint32_t n, met_at;
    double seconds; /* that the plan takes by which the budget is met */
} asked;

static ot_status note(void *of, const ot_plan_options *o, double *met)
{
    asked *x = of;
    x->o[x->n++] = *o;
    *met = x->n >= x->met_at ? x->seconds : INFINITY;
    return OT_OK;
}

static asked run_slower(double slowdown, int64_t budget, ot_goal goal, bool stops, uint32_t met_at,
                        double seconds)
{
    asked x = {.met_at = met_at, .seconds = seconds};
    const ot_plan_options o = {.goal = goal, .memory_budget = budget, .max_slowdown = slowdown};
    const ot_budget_search b = {.of = &x,
                                .o = &o,
                                .untiled = {.peak_bytes = 1000, .growth_bytes = 2000, .time_s = 1},
                                .n_nodes = 10,
                                .stops = stops,
                                .attempt = note};
    assert_int_equal(ot_budget_run(&b), OT_OK);
    return x;
}

static asked run_budget(int64_t budget, ot_goal goal, bool stops, uint32_t met_at, double seconds)
{
    return run_slower(OT_MAX_SLOWDOWN, budget, goal, stops, met_at, seconds);
}

/* The budget, then tenths of what the untiled model takes that are tighter, then goal memory. */
static void what_a_budget_tries(void **state)
{
    (void)state;
    asked x = run_budget(350, OT_GOAL_TIME, false, UINT32_MAX, 0);
    static const int64_t budgets[] = {350, 300, 200, 100, 200, 0, 0, 0};
    static const double slower[] = {0.1, 0.3, 1};
    assert_int_equal(x.n, 8);
    for (uint32_t k = 0; k < x.n; k++) assert_int_equal(x.o[k].memory_budget, budgets[k]);
    for (uint32_t k = 0; k < 3; k++) {
        assert_int_equal(x.o[5 + k].goal, OT_GOAL_MEMORY);
        assert_true(x.o[5 + k].max_slowdown == slower[k]);
    }
    /* under goal memory one slower search, more where none keeps to it, unless a limit was asked
     * for */
    assert_int_equal(run_budget(350, OT_GOAL_MEMORY, false, UINT32_MAX, 0).n, 8);
    assert_int_equal(run_budget(350, OT_GOAL_MEMORY, false, 7, 1.2).n, 7);
    assert_int_equal(run_budget(350, OT_GOAL_MEMORY, false, 1, 1.9).n, 7);
    assert_int_equal(run_slower(0.05, 350, OT_GOAL_MEMORY, false, UINT32_MAX, 0).n, 6);
    /* what a tighter one may find, and a slower plan for memory that is faster than this one */
    assert_int_equal(run_budget(350, OT_GOAL_TIME, false, 1, 1).n, 6);
    assert_int_equal(run_budget(350, OT_GOAL_TIME, false, 1, 1.05).n, 7);
    assert_int_equal(run_budget(350, OT_GOAL_TIME, false, 1, 1.9).n, 8);
    assert_int_equal(run_budget(350, OT_GOAL_TIME, true, 1, 0).n, 1);
    assert_int_equal(run_budget(350, OT_GOAL_TIME, true, 3, 0).n, 3);
}

/* ---- variants ---- */

/* A normalisation over maps between convolutions: tiles must hand out its sums. */
static const char NORMS[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,1024,512]\n"
    "  init %w : float32[16,16,3,3] = random 1\n  init %s : float32[16] = fill 1\n"
    "  init %b : float32[16] = fill 0\n"
    "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %n = InstanceNormalization(%a, %s, %b)\n"
    "  %r = Relu(%n)\n  %c = Conv(%r, %w) {pads=[1,1,1,1]}\n"
    "  %m = InstanceNormalization(%c, %s, %b)\n  %q = Relu(%m)\n"
    "  %d = Conv(%q, %w) {pads=[1,1,1,1]}\n  %y = ReduceMax(%d) {axes=[1]}\n  output %y\n}\n";

static bool has_op(const ot_graph *g, ot_op op)
{
    for (uint32_t k = 0; k < g->n_order; k++)
        if (g->nodes[g->order[k]].op == op) return true;
    return false;
}

static void norms_are_decomposed(void **state)
{
    (void)state;
    chosen x;
    load(&x, NORMS, NULL);
    x.o.force = true;
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    check(&x);
    assert_true(x.s.plan->is_decomposed);
    assert_true(has_op(x.m->graph, OT_OP_Moments));
    assert_false(has_op(x.m->graph, OT_OP_InstanceNormalization));
    assert_true(x.s.plan->whole.growth_bytes > 0 && x.s.plan->whole.time_s > 0);
    drop(&x);
    load(&x, NORMS, NULL); /* another rounding than the file's is asked not to be */
    x.o.force = true;
    x.target.bit_exact = x.o.bit_exact = true;
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    assert_false(x.s.plan->is_decomposed);
    assert_true(has_op(x.m->graph, OT_OP_InstanceNormalization));
    drop(&x);
}

/* A convolution is made again behind its norm's statistics: with the least memory, in tiles of few
 * rows, that takes longer than is allowed; in larger ones it does not. */
static void what_edits_cost_is_saved(void **state)
{
    (void)state;
    static const char TEXT[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,3,512,512]\n"
        "  init %w : float32[16,3,1,1] = random 1\n  init %v : float32[1,16,1,1] = random 2\n"
        "  init %s : float32[16] = random 3\n  init %b : float32[16] = random 4\n"
        "  %a = Conv(%x, %w)\n  %n = InstanceNormalization(%a, %s, %b)\n  %r = Relu(%n)\n"
        "  %c = Conv(%r, %v)\n  %y = Sigmoid(%c)\n  output %y\n}\n";
    chosen x;
    load(&x, TEXT, NULL);
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    check(&x);
    print_message("%lld of %lld bytes, x%.3f\n", (long long)growth(&x),
                  (long long)x.s.plan->whole.growth_bytes,
                  x.s.plan->tiled.time_s / x.s.plan->whole.time_s);
    assert_in_range(growth(&x), 1, x.s.plan->whole.growth_bytes / 8);
    assert_true(x.s.plan->tiled.time_s <= x.s.plan->whole.time_s * 1.1);
    drop(&x);
}

/* The last steps of one norm are made again behind the next: while these read its factors, it does
 * not become one node again. */
static void a_norm_that_others_read_stays_decomposed(void **state)
{
    (void)state;
    static const char TEXT[] =
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,8,256,128]\n"
        "  init %w : float32[8,8,3,3] = random 1\n  init %s : float32[8] = random 2\n"
        "  %a = InstanceNormalization(%x, %s, %s)\n  %b = InstanceNormalization(%a, %s, %s)\n"
        "  %c = Conv(%b, %w) {pads=[1,1,1,1]}\n  %y = ReduceMax(%c) {axes=[1]}\n  output %y\n}\n";
    chosen x;
    load(&x, TEXT, NULL);
    /* such regions are among those that are looked at */
    if (choose(&x, NULL, NULL) != OT_OK) fail_msg("%s", x.diag.message);
    check(&x);
    drop(&x);
}

static const char HALF[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float16[1,16,256,256]\n"
    "  init %w : float16[16,16,3,3] = random 1\n  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n"
    "  %r = Relu(%a)\n  %c = Conv(%r, %w) {pads=[1,1,1,1]}\n  %q = Relu(%c)\n"
    "  %d = Conv(%q, %w) {pads=[1,1,1,1]}\n  %y = MaxPool(%d) {kernel_shape=[64,64], "
    "strides=[64,64]}\n  output %y\n}\n";

/* Half precision becomes float32 where something is tiled so, and stays where nothing is. */
static void half_precision_is_widened(void **state)
{
    (void)state;
    chosen x;
    load(&x, HALF, NULL);
    x.o.max_slowdown = 1;
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    check(&x);
    assert_int_equal(has_op(x.m->graph, OT_OP_Cast), ot_plan_changes(x.s.plan));
    drop(&x);
    load(&x, HALF, NULL);
    x.o.force = true; /* the file's operators */
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    assert_false(has_op(x.m->graph, OT_OP_Cast));
    drop(&x);
}

static const char ROWS[] =
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,?,128]\n"
    "  init %w : float32[16,16,3,3] = random 1\n  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n"
    "  %r = Relu(%a)\n  %c = Conv(%r, %w) {pads=[1,1,1,1]}\n  %q = Relu(%c)\n"
    "  %d = Conv(%q, %w) {pads=[1,1,1,1]}\n  %y = ReduceMax(%d) {axes=[1]}\n  output %y\n}\n";

/* A given size competes with the shapes left dynamic; whichever wins, the model is that one. */
static void a_given_size_or_none(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 16, 512, 128};
    const ot_shape_binding bind = {"x", 4, dims, false, "--shape"}, design = bind;
    chosen x;
    load(&x, ROWS, &bind);
    assert_int_equal(choose(&x, &bind, &design), OT_OK);
    check(&x);
    assert_true(x.s.plan->n_regions > 0);
    const ot_value *in = &x.m->graph->values[ot_value_find(x.m->graph, "x")];
    assert_int_equal(x.s.stays_dynamic, x.s.design != NULL);
    assert_int_equal(in->dims[2], x.s.stays_dynamic ? OT_DIM_UNKNOWN : 512);
    const int64_t both = growth(&x);
    drop(&x);
    load(&x, ROWS, &bind); /* the size alone */
    ot_model_free(x.unbound);
    x.unbound = NULL;
    assert_int_equal(choose(&x, &bind, NULL), OT_OK);
    assert_null(x.s.design);
    assert_true((double)both <= 1.06 * (double)growth(&x));
    drop(&x);
}

#define CHAIN                                                                  \
    "model ir 8 opset 17\ngraph g {\n  input %x : float32[1,16,512,128]\n"     \
    "  init %w : float32[16,16,3,3] = random 1\n"                              \
    "  init %from : int64[1] = [480]\n  init %to : int64[1] = [512]\n"         \
    "  init %rows : int64[1] = [2]\n  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n"    \
    "  %r = Relu(%a)\n  %c = Conv(%r, %w) {pads=[1,1,1,1]}\n  %q = Relu(%c)\n" \
    "  %d = Conv(%q, %w) {pads=[1,1,1,1]}\n"

/* What nobody reads is not computed, in the model that is chosen and in its figures. */
static void what_nobody_reads_is_left_out(void **state)
{
    (void)state;
    chosen x;
    load(&x, CHAIN "  %y = Slice(%d, %from, %to, %rows)\n  output %y\n}\n", NULL);
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    check(&x);
    const ot_plan *p = x.s.plan;
    assert_true(p->narrowed_nodes > 0 && p->unread_macs > 0 && p->unread_bytes > 0);
    assert_true(p->whole.time_s > 4 * p->tiled.time_s);
    assert_true(p->whole.growth_bytes > 4 * growth(&x));
    drop(&x);
    load(&x, CHAIN "  %y = ReduceMax(%d) {axes=[2]}\n  output %y\n}\n", NULL); /* all is read */
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    assert_int_equal(x.s.plan->narrowed_nodes, 0);
    assert_null(x.s.narrowed);
    drop(&x);
}

/* No tensor that can be cut is larger than the limit; one that cannot be is named. */
static void a_limit_on_tensors_is_kept(void **state)
{
    (void)state;
    static const char text[] = CHAIN "  %y = ReduceMax(%d) {axes=[1]}\n  output %y\n}\n";
    chosen x;
    load(&x, text, NULL);
    x.o.max_tensor = 4 << 20; /* as large as the input */
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    check(&x);
    assert_true(x.s.plan->tiled.largest_bytes <= 4 << 20);
    assert_string_equal(x.s.missed, "");
    drop(&x);
    load(&x, text, NULL);
    x.o.max_tensor = 2 << 20;
    assert_int_equal(choose(&x, NULL, NULL), OT_E_BUDGET);
    assert_non_null(strstr(x.diag.message, "'x'"));
    drop(&x);
}

/* A budget that nothing keeps is refused, or told of where the least was asked for. */
static void the_least_that_was_found(void **state)
{
    (void)state;
    static const char text[] = CHAIN "  %y = ReduceMax(%d) {axes=[1]}\n  output %y\n}\n";
    chosen x;
    load(&x, text, NULL);
    x.o.memory_budget = 1 << 20;
    assert_int_equal(choose(&x, NULL, NULL), OT_E_BUDGET);
    assert_non_null(strstr(x.diag.message, "required"));
    drop(&x);
    load(&x, text, NULL);
    x.o.memory_budget = 1 << 20;
    x.o.best_effort = true;
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    assert_true(x.s.plan->n_regions > 0);
    assert_non_null(strstr(x.s.missed, "cannot be met"));
    drop(&x);
}

/* Bodies of tiles pack the weights of products again for each tile, which the planner does not
 * know: of what it found, that much stays which is in time. */
static void weights_packed_for_each_tile(void **state)
{
    (void)state;
    static const double SLOWDOWNS[] = {0, 0.05, 0.1, 0.5, 2};
    char text[2048];
    int n = snprintf(text, sizeof text,
                     "model ir 8 opset 17\ngraph main {\n  input %%x0 : float32[256,64]\n");
    for (int k = 0; k < 6; k++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  init %%a%d : float32[64,1536]\n  init %%b%d : float32[1536,64]\n"
                      "  %%m%d = MatMul(%%x%d, %%a%d)\n  %%e%d = Erf(%%m%d)\n"
                      "  %%g%d = Mul(%%m%d, %%e%d)\n  %%n%d = MatMul(%%g%d, %%b%d)\n"
                      "  %%x%d = Add(%%n%d, %%x%d)\n",
                      k, k, k, k, k, k, k, k, k, k, k, k, k, k + 1, k, k);
    snprintf(text + n, sizeof text - (size_t)n, "  %%y = Relu(%%x6)\n  output %%y\n}\n");
    for (size_t k = 0; k < sizeof SLOWDOWNS / sizeof *SLOWDOWNS; k++) {
        chosen x;
        load(&x, text, NULL);
        x.o.max_slowdown = SLOWDOWNS[k];
        if (choose(&x, NULL, NULL) != OT_OK) fail_msg("%s", x.diag.message);
        const ot_figures *t = &x.s.plan->tiled, *u = &x.s.plan->untiled;
        if (t->time_s > u->time_s * (1 + SLOWDOWNS[k]) * (1 + 1e-9))
            fail_msg("slowdown %g: %g s for %g", SLOWDOWNS[k], t->time_s, u->time_s);
        drop(&x);
    }
}

/* Of so many nodes what tensors take does not count, a tenth of the process here: each lap makes
 * one plan, and no sets. */
static void nothing_is_searched_among_many_nodes(void **state)
{
    enum { NODES = 30001, LINE = 32 };
    chosen x;
    size_t at = 0;
    char *text = malloc(LINE * (NODES + 8));
    (void)state;
    assert_non_null(text);
    at += (size_t)sprintf(text,
                          "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[2048,2048]\n");
    for (int k = 1; k <= NODES; k++)
        at += (size_t)sprintf(text + at, "  %%v%d = Relu(%%v%d)\n", k, k - 1);
    sprintf(text + at, "  output %%v%d\n}\n", NODES);
    load(&x, text, NULL);
    assert_int_equal(choose(&x, NULL, NULL), OT_OK);
    assert_int_equal(x.s.plan->n_regions, 0);
    const size_t n_plans = x.s.groups[0].v[OT_VARIANT_PLAIN].n_plans;
    assert_true(n_plans > 0 && n_plans <= 3); /* at 0, 0.05, 0.1 */
    drop(&x);
    free(text);
}

static void out_of_memory(void **state)
{
    (void)state;
    long n = 0;
    for (;; n += 1 + n / 6) {
        chosen x;
        load(&x, NORMS, NULL);
        ot_set_alloc_hook(stingy);
        allowed = n;
        const ot_status s = choose(&x, NULL, NULL);
        ot_set_alloc_hook(NULL);
        if (s != OT_OK && s != OT_E_NOMEM) fail_msg("%d after %ld: %s", (int)s, n, x.diag.message);
        drop(&x);
        if (s == OT_OK) break;
    }
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_slowdown_never_holds_more),
        cmocka_unit_test(a_larger_fast_memory_is_never_worse),
        cmocka_unit_test(a_slower_plan_is_asked_about_alone),
        cmocka_unit_test(larger_budgets_are_never_worse),
        cmocka_unit_test(what_a_budget_tries),
        cmocka_unit_test(norms_are_decomposed),
        cmocka_unit_test(what_edits_cost_is_saved),
        cmocka_unit_test(a_norm_that_others_read_stays_decomposed),
        cmocka_unit_test(half_precision_is_widened),
        cmocka_unit_test(a_given_size_or_none),
        cmocka_unit_test(what_nobody_reads_is_left_out),
        cmocka_unit_test(a_limit_on_tensors_is_kept),
        cmocka_unit_test(the_least_that_was_found),
        cmocka_unit_test(weights_packed_for_each_tile),
        cmocka_unit_test(nothing_is_searched_among_many_nodes),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
