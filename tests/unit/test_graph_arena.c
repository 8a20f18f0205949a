/* The activations of a whole model in one arena, counted apart. */
#include "region_rig.h"

/* Most bytes alive at one node, from the graph alone: inputs until their last reader, outputs to
 * the end. */
static int64_t graph_live(const ot_graph *g, int64_t *sum)
{
    int64_t most = 0;
    *sum = 0;
    for (uint32_t at = 0; at <= g->n_order + 1; at++) {
        int64_t live = 0;
        for (ot_id v = 0; v < g->n_values; v++) {
            const ot_value *x = &g->values[v];
            int64_t bytes, from = OT_NONE, to = -1;
            if (x->init || x->is_const || !ot_value_bytes(x, &bytes)) continue;
            if (x->is_input) from = to = 0;
            for (uint32_t k = 0; k < g->n_order; k++) {
                const ot_node *n = &g->nodes[g->order[k]];
                for (uint32_t j = 0; j < n->n_out; j++)
                    if (n->out[j] == v) from = to = k + 1;
                for (uint32_t j = 0; j < n->n_in; j++)
                    if (n->in[j] == v) to = k + 1;
            }
            if (x->is_output) to = g->n_order + 1;
            if (from <= at && at <= to) live += bytes;
            if (at == 0) *sum += bytes;
        }
        most = ot_max(most, live);
    }
    return most;
}

static void arena_counts_every_activation(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rig x;
        char text[8192];
        ot_arena_figures f;
        uint32_t unknown;
        int64_t sum;
        rng = seed * 131;
        open_model(&x, random_text(text, sizeof text, 2 + next_random(20)));
        assert_int_equal(ot_graph_arena(x.m->graph, &f, &unknown), OT_OK);
        int64_t live = graph_live(x.m->graph, &sum);
        if (f.lower_bound != live || f.naive != sum)
            fail_msg("seed %llu: %lld and %lld, not %lld and %lld", (unsigned long long)seed,
                     (long long)f.lower_bound, (long long)f.naive, (long long)live, (long long)sum);
        assert_int_equal(unknown, 0);
        assert_in_range(f.planned, f.lower_bound, f.greedy);
        assert_in_range(f.in_place, 1, f.planned);
        assert_int_equal(f.n_buffers, x.m->graph->n_order + 1);
        done(&x);
    }
}

static void arena_in_place_and_unknown(void **state)
{
    (void)state;
    rig x;
    ot_arena_figures f;
    uint32_t unknown;
    open_model(
        &x,
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[64]\n  init %s : int64[2] = [8, 8]\n"
        "  %a = Relu(%x)\n  %b = Sigmoid(%a)\n  %c = Reshape(%b, %s)\n  %y = Relu(%c)\n  output "
        "%y\n}\n");
    assert_int_equal(ot_graph_arena(x.m->graph, &f, &unknown), OT_OK);
    assert_int_equal(f.naive, 5 * 256);
    assert_int_equal(f.lower_bound, 2 * 256);
    assert_int_equal(f.planned, 2 * 256);
    assert_int_equal(f.in_place, 256); /* all of it one buffer */
    assert_true(f.proved);
    done(&x);
    /* a value that is read later, and one that the caller wants, are not overwritten */
    open_model(
        &x,
        "model ir 8 opset 17\ngraph g {\n  input %x : float32[64]\n"
        "  %a = Relu(%x)\n  %y = Sigmoid(%a)\n  %z = Add(%x, %y)\n  output %y\n  output %z\n}\n");
    assert_int_equal(ot_graph_arena(x.m->graph, &f, &unknown), OT_OK);
    assert_int_equal(f.naive, 4 * 256);
    assert_int_equal(f.in_place, 2 * 256);
    done(&x);
    /* side by side each has an address of its own, too: never less than what lives at one time */
    open_model(&x, "model ir 8 opset 17\ngraph g {\n  input %x : float32[1]\n  %a = Relu(%x)\n"
                   "  %y = Sigmoid(%a)\n  output %y\n}\n");
    assert_int_equal(ot_graph_arena(x.m->graph, &f, &unknown), OT_OK);
    assert_int_equal(f.naive, 2 * 64 + 4);
    assert_int_equal(f.lower_bound, 64 + 4);
    done(&x);
    open_model(&x, "model ir 8 opset 17\ngraph g {\n  input %x : float32[?,64]\n  %a = Relu(%x)\n  "
                   "output %a\n}\n");
    assert_int_equal(ot_graph_arena(x.m->graph, &f, &unknown), OT_OK);
    assert_int_equal(unknown, 2);
    assert_int_equal(f.planned, 0);
    done(&x);
}

/* Work, steps x values, never passes that of a graph of a few values. */
static void arena_packing_has_bounded_work(void **state)
{
    (void)state;
    const int64_t most = 200 * ot_graph_arena_steps(200);
    assert_int_equal(ot_graph_arena_steps(1), ot_graph_arena_steps(200));
    assert_int_equal(ot_graph_arena_steps(4000), most / 4000);
    for (uint32_t n = 200; n <= 200000; n += n / 8) {
        int64_t steps = ot_graph_arena_steps(n), work = steps * n;
        assert_in_range(steps, 1, most / 200);
        assert_true(work <= most);
    }
}

/* Of very many values, a layout near the bound will do, and says what it is. */
static void arena_of_many_values_is_near_the_bound(void **state)
{
    (void)state;
    static char text[1 << 17];
    for (uint64_t seed = 1; seed <= 8; seed++) {
        rig x;
        ot_arena_figures f;
        uint32_t unknown;
        rng = seed * 977;
        open_model(&x, random_text(text, sizeof text, 300));
        assert_int_equal(ot_graph_arena(x.m->graph, &f, &unknown), OT_OK);
        assert_true(f.n_buffers > 200);
        assert_in_range(f.planned, f.lower_bound, f.greedy);
        assert_int_equal(f.proved, f.planned == f.lower_bound);
        assert_in_range(f.planned, f.lower_bound, f.lower_bound + f.lower_bound / 1000);
        done(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_counts_every_activation),
        cmocka_unit_test(arena_packing_has_bounded_work),
        cmocka_unit_test(arena_in_place_and_unknown),
        cmocka_unit_test(arena_of_many_values_is_near_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
