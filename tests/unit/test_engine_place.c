/* Element-wise tiles are computed in their place in the whole array: no copy; and the result is
 * that of the untiled model. */
#include "fast_check.h"

#include "select/search/plan_search.h"
#include "transform/transform.h"

static void tile(ot_model *m)
{
    ot_target target;
    ot_plan *plan = NULL;
    ot_plan_options o = {.force = true, .max_slowdown = 0.1};
    ot_graph *g = m->graph;
    if (ot_infer_shapes(g, NULL, 0) != OT_OK ||
        ot_target_load("cpu-generic", 2, m->diag, &target) != OT_OK)
        fail_msg("%s", m->diag->message);
    ot_target_set_l2(&target, 40000);
    ot_target_set_engine(&target);
    if (ot_plan_graph(g, &target, &o, &plan) != OT_OK) fail_msg("%s", m->diag->message);
    assert_true(plan->n_regions > 0);
    if (ot_fold_static(g, plan) != OT_OK || ot_transform_tiles(g, plan) != OT_OK ||
        ot_check_tile_ops(g, NULL) != OT_OK)
        fail_msg("%s", m->diag->message);
    ot_plan_free(plan);
}

/* Deslices of all tile bodies, and how many of them follow a step that has written its tile itself.
 */
static void count_placed(const ot_session *s, uint32_t *deslices, uint32_t *placed)
{
    *deslices = *placed = 0;
    for (const ot_schedule *p = s->all; p; p = p->next)
        for (uint32_t k = 0; k < p->n_steps; k++) {
            if (strcmp(p->steps[k].node->op_type, "Deslice") != 0 || p->steps[k].n_in != 3)
                continue;
            ++*deslices;
            for (uint32_t j = 0; j < k;
                 j++) /* the window of the buffer is an operand of the chain that computes it */
                for (uint32_t i = 0; p->steps[j].n_out == 0 && i < p->steps[j].n_in; i++)
                    if (p->steps[j].in_ids[i] == p->steps[k].in_ids[1]) ++*placed;
        }
}

static void check(const char *text, ot_nd *in, uint32_t threads)
{
    bench whole, b = {.status = OT_OK};
    ot_nd want[2] = {{0}}, got[2] = {{0}};
    uint32_t deslices, placed;
    open_text(&whole, text);
    run_ok(&whole, in, want);
    b.m = text_model(text, &b.d);
    tile(b.m);
    ot_session_options o = {.threads = threads, .poison = true};
    if (ot_session_new(b.m, &o, &b.d, &b.s) != OT_OK) fail_msg("%s", b.d.message);
    count_placed(b.s, &deslices, &placed);
    if (deslices == 0 || placed < deslices)
        fail_msg("%u of %u tiles are made in their place", placed, deslices);
    for (int again = 0; again < 2; again++) {
        memset(got, 0, sizeof got); /* results of the last run are gone: not buffers for this one */
        run_ok(&b, in, got);
        assert_int_equal(fast_count(&got[0]), fast_count(&want[0]));
        assert_memory_equal(got[0].data, want[0].data,
                            (size_t)fast_count(&want[0]) * sizeof(float));
    }
    close_bench(&b);
    close_bench(&whole);
}

static void chains(void **state)
{
    (void)state;
    static const char text[] = "input %x : float32[1,6,50,64]\ninput %y : float32[1,6,50,1]\n%a = "
                               "Sigmoid(%x)\n%b = Mul(%a, %y)\n"
                               "%c = Tanh(%b)\n%d = Mul(%c, %x)\noutput %d\n";
    ot_nd in[2] = {FAST_ARRAY(OT_F32, 1, 6, 50, 64), FAST_ARRAY(OT_F32, 1, 6, 50, 1)};
    for (uint32_t threads = 1; threads <= 3; threads++) check(text, in, threads);
    for (int k = 0; k < 2; k++) test_free(in[k].data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
