/* Plans whose tiles take less of a scratchpad than there is (src/select/less_room.c). */
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

/* fast: bytes of the fast memory; 0: the target's own. */
static void load(chosen *x, const char *text, int64_t fast)
{
    *x = (chosen){.o = {.goal = OT_GOAL_MEMORY, .max_slowdown = 0.3, .tie_break = true}};
    assert_int_equal(ot_target_load("mcu-512k", 1, &x->diag, &x->target), OT_OK);
    if (fast > 0) ot_target_set_l2(&x->target, fast);
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

static void check(chosen *x)
{
    if (ot_plan_check(x->m->graph, x->s.plan, &x->target, &x->o, &x->diag) != OT_OK)
        fail_msg("%s", x->diag.message);
}

static void drop(chosen *x)
{
    ot_selection_free(&x->s);
    ot_model_free(x->m);
    ot_target_free(&x->target);
}

static int next(uint64_t *state, int n) { return (int)(ot_next_random(state) % (uint64_t)n); }

/* Blocks of a network of microcontrollers: 1 x 1 to more maps, each by itself, 1 x 1 to few. */
static void network(uint64_t *state, char *out, size_t n)
{
    int at = 0, maps = 8, v = 0;
    char inits[4096] = "";
    int of_inits = 0;
    char nodes[4096];
    for (int block = 0, blocks = 3 + next(state, 3); block < blocks; block++) {
        const int wide = maps * (3 + next(state, 4)), more = maps + 4 * next(state, 3);
        const int k = 3 + 2 * next(state, 2), stride = 1 + next(state, 2);
        of_inits += snprintf(inits + of_inits, sizeof inits - (size_t)of_inits,
                             "  init %%a%d : float32[%d,%d,1,1] = random 1\n"
                             "  init %%b%d : float32[%d,1,%d,%d] = random 2\n"
                             "  init %%c%d : float32[%d,%d,1,1] = random 3\n",
                             block, wide, maps, block, wide, k, k, block, more, wide);
        at += snprintf(nodes + at, sizeof nodes - (size_t)at,
                       "  %%v%d = Conv(%%v%d, %%a%d)\n"
                       "  %%v%d = Conv(%%v%d, %%b%d) {group=%d, pads=[%d,%d,%d,%d], "
                       "strides=[%d,%d]}\n"
                       "  %%v%d = Conv(%%v%d, %%c%d)\n",
                       v + 1, v, block, v + 2, v + 1, block, wide, k / 2, k / 2, k / 2, k / 2,
                       stride, stride, v + 3, v + 2, block);
        v += 3;
        maps = more;
    }
    snprintf(out, n,
             "model ir 8 opset 17\ngraph g {\n  input %%v0 : float32[1,8,64,64]\n%s%s  output "
             "%%v%d\n}\n",
             inits, nodes, v);
}

#define NETWORKS CASES(8)
#define ABOUT    1.05 /* what a node costs untiled depends on the fast memory as well */

/* Printed, and taken from SEED. */
static uint64_t first_seed(void)
{
    const char *given = getenv("SEED");
    const uint64_t s = given ? strtoull(given, NULL, 10) : 1;
    print_message("seed %llu\n", (unsigned long long)s);
    return s;
}

/* In both figures: the untiled model is faster then, too, which the limit on time counts from. */
static void a_larger_scratchpad_is_never_worse(void **state)
{
    (void)state;
    uint64_t seed = first_seed();
    for (int k = 0; k < NETWORKS; k++) {
        char text[8192];
        int64_t peak[4];
        double seconds[4];
        network(&seed, text, sizeof text);
        for (int j = 0; j < 4; j++) {
            chosen x;
            load(&x, text, (int64_t)(16 << 10) << 2 * j);
            assert_int_equal(choose(&x), OT_OK);
            check(&x);
            peak[j] = x.s.plan->tiled.peak_bytes;
            seconds[j] = x.s.plan->tiled.time_s;
            drop(&x);
            for (int i = 0; i < j; i++)
                if ((double)peak[j] > ABOUT * (double)peak[i] &&
                    seconds[j] > seconds[i] * (1 + 1e-9))
                    fail_msg("network %d, %d KiB: %lld in %g s, %lld in %g s before\n%s", k,
                             16 << 2 * j, (long long)peak[j], seconds[j], (long long)peak[i],
                             seconds[i], text);
        }
    }
}

/* A plan of all of the room holds no less than what is chosen, and often more. */
static void smaller_tiles_compete(void **state)
{
    (void)state;
    uint64_t seed = first_seed() + 1;
    int less = 0;
    for (int k = 0; k < NETWORKS; k++) {
        char text[8192];
        chosen x;
        ot_plan *p;
        network(&seed, text, sizeof text);
        load(&x, text, 0);
        assert_int_equal(ot_plan_graph(x.m->graph, &x.target, &x.o, &p), OT_OK);
        const int64_t all = p->tiled.peak_bytes;
        ot_plan_free(p);
        assert_int_equal(choose(&x), OT_OK);
        check(&x);
        assert_true(x.s.plan->tiled.peak_bytes <= all);
        assert_true(x.s.plan->tiled.time_s <= 1.3 * x.s.plan->untiled.time_s);
        less += x.s.plan->tiled.peak_bytes < all;
        drop(&x);
    }
    assert_true(less > 0);
}

/* A budget that no plan of all of the room keeps. */
static void a_budget_is_kept_in_less_room(void **state)
{
    (void)state;
    uint64_t seed = first_seed() + 1;
    int kept = 0;
    for (int k = 0; k < NETWORKS; k++) {
        char text[8192];
        chosen x;
        ot_plan *p;
        network(&seed, text, sizeof text);
        load(&x, text, 0);
        x.o.max_slowdown = 100;
        assert_int_equal(ot_plan_graph(x.m->graph, &x.target, &x.o, &p), OT_OK);
        const int64_t budget = p->tiled.peak_bytes - p->tiled.peak_bytes / 16;
        ot_plan_free(p);
        x.o.goal = OT_GOAL_TIME;
        x.o.memory_budget = budget;
        const ot_status s = choose(&x);
        if (s == OT_OK) {
            check(&x);
            assert_true(x.s.plan->tiled.peak_bytes <= budget);
            kept++;
        } else {
            assert_int_equal(s, OT_E_BUDGET);
            assert_non_null(strstr(x.diag.message, "memory budget cannot be met: required"));
        }
        drop(&x);
    }
    assert_true(kept > 0);
}

static void out_of_memory(void **state)
{
    (void)state;
    uint64_t seed = 1;
    char text[8192];
    network(&seed, text, sizeof text);
    long n = 0;
    for (;; n += 1 + n / 4) {
        chosen x;
        load(&x, text, 0);
        x.o.memory_budget = n % 2 ? 100000 : 0;
        ot_set_alloc_hook(stingy);
        allowed = n;
        const ot_status s = choose(&x);
        ot_set_alloc_hook(NULL);
        if (s != OT_OK && s != OT_E_NOMEM && s != OT_E_BUDGET)
            fail_msg("%d after %ld: %s", (int)s, n, x.diag.message);
        drop(&x);
        if (s == OT_OK) break;
    }
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_larger_scratchpad_is_never_worse),
        cmocka_unit_test(smaller_tiles_compete),
        cmocka_unit_test(a_budget_is_kept_in_less_room),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
