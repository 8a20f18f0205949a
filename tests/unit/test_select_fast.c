/* Plans as for smaller fast memories compete (src/select/smaller_fast.c). */
#include "cases.h"
#include "select/check/plan_check.h"
#include "select/select.h"

#include "onnx/graph/text.h"
#include "ops/shape.h"
#include "stingy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

typedef struct chosen {
    ot_diag diag;
    ot_target target;
    ot_model *m;
    ot_plan_options o;
    ot_selection s;
} chosen;

/* fast: bytes of the fast memory. */
static void load(chosen *x, const char *text, int64_t fast, bool smaller)
{
    *x = (chosen){.o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.1, .tie_break = true}};
    x->o.search.smaller_fast = smaller;
    assert_int_equal(ot_target_load("cpu-generic", 1, &x->diag, &x->target), OT_OK);
    ot_target_set_l2(&x->target, fast);
    if (ot_text_parse(text, strlen(text), &x->diag, &x->m) != OT_OK)
        fail_msg("%s\n%s", x->diag.message, text);
    assert_int_equal(ot_infer_shapes(x->m->graph, NULL, false), OT_OK);
    assert_int_equal(ot_assure(x->m->graph, OT_P_ORDER | OT_P_USES), OT_OK);
}

static ot_status choose(chosen *x)
{
    const ot_select_request q = {.model = x->m,
                                 .target = &x->target,
                                 .options = &x->o,
                                 .static_shape = true,
                                 .diag = &x->diag};
    return ot_select(&q, &x->s);
}

static void drop(chosen *x)
{
    ot_selection_free(&x->s);
    ot_model_free(x->m);
    ot_target_free(&x->target);
}

static int next(uint64_t *state, int n) { return (int)(ot_next_random(state) % (uint64_t)n); }

#define SEED UINT64_C(5603483398507482426) /* not any: of 40 networks, three show it */

/* Convolutions of a picture, some with strides. */
static void network(uint64_t *state, char *out, size_t n)
{
    int maps = 3, v = 0, at = 0, of_inits = 0;
    char inits[4096] = "", nodes[4096] = "";
    for (int layers = 3 + next(state, 4); v < 2 * layers; v += 2) {
        const int more = 8 << next(state, 3), k = 1 + 2 * next(state, 3),
                  stride = 1 + (v > 0 && next(state, 3) == 0);
        of_inits += snprintf(inits + of_inits, sizeof inits - (size_t)of_inits,
                             "  init %%w%d : float32[%d,%d,%d,%d] = random %d\n", v, more, maps, k,
                             k, v);
        at += snprintf(nodes + at, sizeof nodes - (size_t)at,
                       "  %%v%d = Conv(%%v%d, %%w%d) {pads=[%d,%d,%d,%d], strides=[%d,%d]}\n"
                       "  %%v%d = Relu(%%v%d)\n",
                       v + 1, v, v, k / 2, k / 2, k / 2, k / 2, stride, stride, v + 2, v + 1);
        maps = more;
    }
    snprintf(out, n,
             "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,3,256,256]\n%s%s  output "
             "%%v%d\n}\n",
             inits, nodes, v);
}

#define NETWORKS CASES(4)
#define SIZES    6
#define LEAST    (INT64_C(128) << 10)

static ot_figures figures_of(const char *text, int64_t fast, bool smaller)
{
    chosen x;
    load(&x, text, fast, smaller);
    if (choose(&x) != OT_OK) fail_msg("%s", x.diag.message);
    if (ot_plan_check(x.m->graph, x.s.plan, &x.target, &x.o, &x.diag) != OT_OK)
        fail_msg("%s\n%s", x.diag.message, text);
    const ot_figures f = x.s.plan->tiled;
    drop(&x);
    return f;
}

/* b is worse than a, and in nothing better. */
static bool is_worse(const ot_figures *a, const ot_figures *b)
{
    return b->growth_bytes > a->growth_bytes && b->time_s >= a->time_s * (1 - 1e-9) &&
           b->process_bytes >= a->process_bytes;
}

/* Plans of networks, with larger and larger fast memories, that are worse than one before. */
static int steps_back(uint64_t seed, bool smaller)
{
    int n = 0;
    for (int k = 0; k < NETWORKS; k++) {
        char text[8192];
        ot_figures f[SIZES];
        bool any = false;
        network(&seed, text, sizeof text);
        for (int j = 0; j < SIZES; j++) {
            f[j] = figures_of(text, LEAST << j, smaller);
            for (int i = 0; i < j; i++) any |= is_worse(&f[i], &f[j]);
        }
        n += any;
        if (any && smaller) print_message("%s", text);
    }
    return n;
}

static void a_larger_one_is_never_worse(void **state)
{
    (void)state;
    assert_int_equal(steps_back(SEED, true), 0);
}

/* Else the case above shows nothing. */
static void without_them_it_is(void **state)
{
    (void)state;
    assert_true(steps_back(SEED, false) > 0);
}

/* What is chosen is that of a smaller one, and takes no longer than allowed. */
static void the_plan_of_a_smaller_one_is_taken(void **state)
{
    (void)state;
    uint64_t seed = SEED;
    int taken = 0;
    for (int k = 0; k < NETWORKS; k++) {
        char text[8192];
        network(&seed, text, sizeof text);
        const ot_figures own = figures_of(text, LEAST << 3, false),
                         any = figures_of(text, LEAST << 3, true);
        assert_false(is_worse(&own, &any));
        taken += any.growth_bytes < own.growth_bytes;
    }
    assert_true(taken > 0);
}

static void out_of_memory(void **state)
{
    (void)state;
    uint64_t seed = SEED;
    char text[8192];
    network(&seed, text, sizeof text);
    long n = 0;
    for (;; n += 1 + n / 4) {
        chosen x;
        load(&x, text, LEAST << 2, true);
        ot_set_alloc_hook(stingy);
        allowed = n;
        const ot_status s = choose(&x);
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
        cmocka_unit_test(a_larger_one_is_never_worse),
        cmocka_unit_test(without_them_it_is),
        cmocka_unit_test(the_plan_of_a_smaller_one_is_taken),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
