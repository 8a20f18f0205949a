/* Plans that keep a budget over a range of sizes (src/select/bounds_budget.c), and ranges
 * that are those of a model's inputs (bounds/bounds_check.c). */
#include "bounds_rig.h"
#include "select/variant.h"
#include "stingy.h"

/* Four convolutions: untiled, two of their maps live at once. */
static const char CHAIN[] =
    "  %a = Conv(%x, %w) {pads=[1,1,1,1]}\n  %b = Conv(%a, %w) {pads=[1,1,1,1]}\n"
    "  %c1 = Conv(%b, %w) {pads=[1,1,1,1]}\n  %d = Conv(%c1, %w) {pads=[1,1,1,1]}\n"
    "  %y = ReduceMax(%d) {axes=[1]}\n  output %y\n";
static const ot_size_var ROWS[4] = {{1, 1, 1}, {8, 8, 1}, {256, 512, 1}, {128, 128, 1}};
/* of the range's largest size: 8 x 512 x 128 floats, 2 MiB */
#define MAP_BYTES ((int64_t)8 * 512 * 128 * 4)
#define SESSION   ((int64_t)28 << 20) /* what a process takes before it runs such a model */

static ot_bounds_case case_of(ranged *r, int64_t budget)
{
    return (ot_bounds_case){.file = r->file,
                            .planned = r->planned,
                            .plan = r->plan,
                            .target = &r->target,
                            .ranges = &r->range,
                            .n = 1,
                            .budget = budget,
                            .diag = &diag};
}

/* The plan within the budget, with its facts; the case's diag has the line of a failure. */
static ot_status plan_within(ranged *r, int64_t budget, const ot_plan_options *more, ot_plan **p,
                             ot_bounds_facts *f)
{
    ot_plan_options o = more ? *more : (ot_plan_options){.goal = OT_GOAL_TIME, .tie_break = true};
    o.memory_budget = budget;
    const ot_select_request q = {.model = r->file,
                                 .target = &r->target,
                                 .options = &o,
                                 .sizes = {.ranges = &r->range, .n_ranges = 1},
                                 .is_dynamic = true,
                                 .diag = &diag};
    diag = (ot_diag){0};
    return ot_bounds_plan(&q, r->planned, p, f);
}

static void new_chain(ranged *r) { assert_true(ranged_new(r, CHAIN, ROWS, 65536, &TILES)); }

/* A budget that everything keeps leaves the goal its own plan. */
static void a_budget_that_nothing_passes(void **state)
{
    (void)state;
    ranged r;
    ot_plan *p, *own;
    ot_bounds_facts f;
    new_chain(&r);
    const ot_plan_options o = {.goal = OT_GOAL_TIME, .tie_break = true};
    assert_int_equal(plan_within(&r, (int64_t)1 << 40, &o, &p, &f), OT_OK);
    assert_int_equal(f.tiled.verdict, OT_BOUNDS_PROVED);
    assert_int_equal(f.untiled.verdict, OT_BOUNDS_PROVED);
    assert_int_equal(f.untiled.live_bytes, 2 * MAP_BYTES);
    assert_string_equal(f.untiled.live_at, "1x8x512x128");
    assert_int_equal(ot_plan_graph(r.planned->graph, &r.target, &o, &own), OT_OK);
    assert_int_equal(p->n_regions, own->n_regions);
    assert_int_equal(p->tiled.peak_bytes, own->tiled.peak_bytes);
    ot_plan_free(own);
    ot_plan_free(p);
    ranged_free(&r);
}

/* What a refusal says is so: it names what passes the budget, by a number that is above it. */
static void check_refusal(int64_t budget)
{
    static const char *const FORMS[] = {
        "memory budget cannot be kept over the range: at %*s live tensors take %*[^(](%lld "
        "bytes), %31[0-9.KMiB ]are allowed",
        "memory budget cannot be kept over the range: at %*s the process takes up to %*[^(](%lld "
        "bytes), %31[0-9.KMiB ]are allowed",
        "memory budget cannot be kept over the range: the plan holds %*[^(](%lld bytes) at once, "
        "%31[0-9.KMiB ]are allowed"};
    for (size_t k = 0; k < sizeof FORMS / sizeof *FORMS; k++) {
        long long takes;
        char within[32], shown[32];
        if (sscanf(diag.message, FORMS[k], &takes, within) != 2) continue;
        within[strlen(within) - 1] = '\0';
        assert_string_equal(within, ot_format_bytes((double)budget, shown, sizeof shown));
        assert_true(takes > budget);
        return;
    }
    fail_msg("%s", diag.message);
}

/* Of every budget, from more than the untiled model takes down to a tenth of it: a plan that keeps
 * it by its own figures and by a bound that is computed anew, or a refusal. What keeps a budget
 * keeps every larger one. */
static void budgets_downward(void **state)
{
    (void)state;
    ranged r;
    int kept = 0, refused = 0, tiled = 0;
    new_chain(&r);
    for (int part = 480; part >= 20; part -= 20) {
        const int64_t budget = SESSION + MAP_BYTES * part / 100;
        ot_arena *a = ot_arena_new();
        ot_plan *p;
        ot_bounds_facts f;
        const ot_status s = plan_within(&r, budget, NULL, &p, &f);
        if (s == OT_OK) {
            if (refused) fail_msg("%lld are kept, but a larger budget was not", (long long)budget);
            kept++;
            assert_int_equal(f.tiled.verdict, OT_BOUNDS_PROVED);
            assert_true(f.tiled.live_bytes <= budget && f.tiled.process_bytes <= budget);
            assert_true(f.tiled.process_bytes > f.tiled.growth_bytes && f.tiled.growth_bytes > 0);
            assert_true(p->tiled.peak_bytes <= budget);
            assert_int_equal(f.untiled.verdict,
                             f.untiled.live_bytes > budget || f.untiled.process_bytes > budget
                                 ? OT_BOUNDS_EXCEEDS
                                 : OT_BOUNDS_PROVED);
            ot_bounds_case again = case_of(&r, 0);
            ot_bounds_facts g;
            again.plan = p;
            assert_int_equal(ot_bounds_compute(&again, a, &g), OT_OK);
            assert_int_equal(g.tiled.live_bytes, f.tiled.live_bytes);
            assert_int_equal(g.tiled.growth_bytes, f.tiled.growth_bytes);
            assert_int_equal(g.tiled.process_bytes, f.tiled.process_bytes);
            tiled += p->n_regions > 0;
            ot_plan_free(p);
        } else {
            assert_int_equal(s, OT_E_BUDGET);
            assert_null(p);
            check_refusal(budget);
            refused++;
        }
        ot_arena_free(a);
    }
    print_message("%d budgets kept, %d of them tiled, %d refused\n", kept, tiled, refused);
    assert_true(kept > 0 && tiled > 0 && refused > 0);
    ranged_free(&r);
}

static void refuses(ranged *r, int64_t budget, const ot_plan_options *o, const char *says)
{
    ot_plan *p;
    ot_bounds_facts f;
    assert_int_equal(plan_within(r, budget, o, &p, &f), OT_E_BUDGET);
    if (!strstr(diag.message, says)) fail_msg("'%s' does not say '%s'", diag.message, says);
    assert_null(p);
}

/* The refusal names the size and the bytes of what passes the budget first: live tensors. */
static void too_small(void **state)
{
    (void)state;
    ranged r;
    new_chain(&r);
    refuses(&r, 4096, NULL, "at 1x8x512x128 live tensors take ");
    refuses(&r, 4096, NULL, " bytes), 4.0 KiB are allowed");
    ranged_free(&r);
}

/* Live tensors keep a budget that the process of a small model passes. */
static void a_process_that_passes_it(void **state)
{
    (void)state;
    static const ot_size_var few[4] = {{1, 1, 1}, {8, 8, 1}, {40, 96, 1}, {64, 64, 1}};
    ranged r;
    assert_true(ranged_new(&r, CHAIN, few, 65536, &TILES));
    refuses(&r, (int64_t)3 * 8 * 96 * 64 * 4, NULL, " the process takes up to ");
    check_refusal((int64_t)3 * 8 * 96 * 64 * 4);
    ranged_free(&r);
}

/* A size that is computed of data has no bound: nothing is proved, and the node is named. */
static void what_is_not_proved(void **state)
{
    (void)state;
    ranged r;
    assert_true(ranged_new(&r,
                           "  %p = Relu(%x)\n  %v = NonZero(%p)\n  %f = Cast(%v) {to=1}\n  %t = "
                           "ReduceSum(%f)\n  %y = Add(%x, %t)\n  output %y\n",
                           ROWS, 16384, &TILES));
    refuses(&r, (int64_t)1 << 40, NULL, "memory budget cannot be proved over the range: ");
    assert_non_null(strstr(diag.message, "NonZero"));
    ranged_free(&r);
}

/* Another limit that no plan keeps is no failure of its own: there is just no plan. */
static void no_plan_at_all(void **state)
{
    (void)state;
    ranged r;
    const ot_plan_options o = {.goal = OT_GOAL_MEMORY, .max_tensor = 1, .tie_break = true};
    new_chain(&r);
    refuses(&r, (int64_t)1 << 40, &o, "over the range: no plan keeps to it");
    ranged_free(&r);
}

static void out_of_memory(void **state)
{
    (void)state;
    ranged r;
    long n = 0;
    new_chain(&r);
    for (;; n += 1 + n / 4) {
        ot_plan *p;
        ot_bounds_facts f;
        ot_set_alloc_hook(stingy);
        allowed = n;
        const ot_status s = plan_within(&r, SESSION + 9 * MAP_BYTES, NULL, &p, &f);
        ot_set_alloc_hook(NULL);
        if (s == OT_OK) {
            ot_plan_free(p);
            break;
        }
        if (s != OT_E_NOMEM) fail_msg("%d after %ld blocks: %s", (int)s, n, diag.message);
        assert_non_null(strstr(diag.message, "out of memory"));
    }
    assert_true(n > 50);
    ranged_free(&r);
}

/* ---- ranges ---- */

static const char INPUTS[] = "model ir 8 opset 17\ngraph g {\n"
                             "  input %a : float32[1,?,8]\n  input %b : float32[?]\n"
                             "  input %still : float32[2,3]\n  init %w : float32[8] = fill 1\n"
                             "  %p = Mul(%a, %w)\n  %q = Relu(%b)\n  %s = Relu(%still)\n"
                             "  output %p\n  output %q\n  output %s\n}\n";

typedef struct checked {
    ot_model *m;
    ot_arena *a;
    ot_shape_binding *design;
} checked;

static void read_inputs(checked *c, const char *text)
{
    diag = (ot_diag){0};
    *c = (checked){.a = ot_arena_new()};
    assert_int_equal(ot_text_parse(text, strlen(text), &diag, &c->m), OT_OK);
    assert_int_equal(ot_infer_shapes(c->m->graph, NULL, 0), OT_OK);
}

static void forget_inputs(checked *c)
{
    ot_model_free(c->m);
    ot_arena_free(c->a);
}

static const ot_size_var A[3] = {{1, 1, 1}, {4, 64, 4}, {8, 8, 1}}, B[1] = {{1, 9, 1}};

/* The design is the upper corner of what was given; what is fixed needs no range. */
static void ranges_of_all_inputs(void **state)
{
    (void)state;
    checked c;
    const ot_size_range ranges[] = {{"b", 1, B}, {"a", 3, A}};
    read_inputs(&c, INPUTS);
    assert_int_equal(ot_bounds_check(c.m->graph, ranges, 2, c.a, &c.design), OT_OK);
    assert_string_equal(c.design[0].input, "b");
    assert_int_equal(c.design[0].rank, 1);
    assert_int_equal(c.design[0].dims[0], 9);
    assert_string_equal(c.design[1].input, "a");
    assert_int_equal(c.design[1].rank, 3);
    assert_int_equal(c.design[1].dims[0], 1);
    assert_int_equal(c.design[1].dims[1], 64);
    assert_int_equal(c.design[1].dims[2], 8);
    assert_string_equal(c.design[1].option, "--range");
    forget_inputs(&c);
}

static void ranges_that_are_none(void **state)
{
    (void)state;
    static const ot_size_var other_batch[3] = {{2, 2, 1}, {4, 64, 4}, {8, 8, 1}},
                             wider[3] = {{1, 1, 1}, {4, 64, 4}, {8, 9, 1}},
                             narrower[3] = {{1, 1, 1}, {4, 64, 4}, {7, 8, 1}};
    static const struct {
        ot_size_range range;
        const char *says;
    } cases[] = {
        {{"z", 3, A}, "--range z: the model has no input of that name"},
        {{"w", 1, B}, "--range w: the model has no input of that name"},
        {{"p", 3, A}, "--range p: the model has no input of that name"},
        {{"a", 1, B}, "--range a: 1 dims given, the input has 3"},
        {{"a", 3, other_batch}, "--range a: dim 0 is fixed at 1 in the model"},
        {{"a", 3, wider}, "--range a: dim 2 is fixed at 8 in the model"},
        {{"a", 3, narrower}, "--range a: dim 2 is fixed at 8 in the model"},
        {{"a", 3, A}, "input 'b' has dynamic dimensions: give its range, too, --range b=D,LO:HI"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        checked c;
        read_inputs(&c, INPUTS);
        assert_int_equal(ot_bounds_check(c.m->graph, &cases[k].range, 1, c.a, &c.design),
                         OT_E_USAGE);
        if (!strstr(diag.message, cases[k].says))
            fail_msg("'%s' does not say '%s'", diag.message, cases[k].says);
        forget_inputs(&c);
    }
}

/* An input of no known rank takes a range of any rank. */
static void an_input_without_a_rank(void **state)
{
    (void)state;
    checked c;
    const ot_size_range range = {"x", 3, A};
    read_inputs(&c, "model ir 8 opset 17\ngraph g {\n  input %x : float32\n  %y = Relu(%x)\n  "
                    "output %y\n}\n");
    assert_int_equal(ot_bounds_check(c.m->graph, &range, 1, c.a, &c.design), OT_OK);
    assert_int_equal(c.design[0].dims[1], 64);
    assert_int_equal(ot_bounds_check(c.m->graph, NULL, 0, c.a, &c.design), OT_E_USAGE);
    assert_non_null(strstr(diag.message, "input 'x' has dynamic dimensions"));
    forget_inputs(&c);
}

static void no_memory_for_a_design(void **state)
{
    (void)state;
    const ot_size_range ranges[] = {{"b", 1, B}, {"a", 3, A}};
    checked c;
    read_inputs(&c, INPUTS);
    ot_set_alloc_hook(stingy);
    allowed = 0;
    ot_arena *a = ot_arena_new();
    const ot_status s = a ? ot_bounds_check(c.m->graph, ranges, 2, a, &c.design) : OT_E_NOMEM;
    ot_set_alloc_hook(NULL);
    assert_int_equal(s, OT_E_NOMEM);
    ot_arena_free(a);
    forget_inputs(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_that_nothing_passes),
        cmocka_unit_test(budgets_downward),
        cmocka_unit_test(too_small),
        cmocka_unit_test(a_process_that_passes_it),
        cmocka_unit_test(what_is_not_proved),
        cmocka_unit_test(no_plan_at_all),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(ranges_of_all_inputs),
        cmocka_unit_test(ranges_that_are_none),
        cmocka_unit_test(an_input_without_a_rank),
        cmocka_unit_test(no_memory_for_a_design),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
