/* Values that stay in pieces between two regions (src/transform/unjoined_tiles.c): which do, how
 * they are read, what a process saves by it. Numbers in ONNX Runtime and the engine:
 * tests/e2e/unjoined_tiles.sh.
 *
 *     x --conv--> m --conv--> y         regions: what makes m, what makes y of it
 */
#include "ir_check.h"

#include "hand_plan.h"
#include "machine/runtime/runtime.h"
#include "machine/target/target.h"
#include "alloc_sim/alloc_sim.h"
#include "transform/transform_internal.h"
#include "stingy.h"

#define WEIGHTS \
    " init %w : float32[16,16,3,3] = random 1\n init %p : float32[16,16,1,1] = random 2\n"
#define FIRST  " %m = Conv(%x, %w) {kernel_shape=[3,3], pads=[1,1,1,1]}\n"
#define SECOND " %y = Conv(%m, %w) {kernel_shape=[3,3], pads=[1,1,1,1]}\n"

typedef struct rig {
    ot_model *m;
    ot_arena *a;
    ot_region r[2];
    ot_plan p;
} rig;

/* The network with m in `first` tiles and y in `second`. */
static void build(rig *x, const char *body, uint32_t first, uint32_t second)
{
    char text[2048];
    const uint32_t axis = 2;
    ot_why why;
    snprintf(
        text, sizeof text,
        "model ir 8 opset 17\ngraph g {\n input %%x : float32[1,16,512,64]\n%s%s output %%y\n}\n",
        WEIGHTS, body);
    *x = (rig){.m = parse(text), .a = ot_arena_new()};
    ot_graph *g = x->m->graph;
    assert_int_equal(ot_infer_shapes(g, NULL, 0), OT_OK);
    assert_int_equal(ot_assure(g, OT_P_ORDER | OT_P_USES), OT_OK);
    const ot_id m = ot_value_find(g, "m"), y = ot_value_find(g, "y");
    assert_true(hand_plan(g, m, 1, &axis, &first, OT_FORM_PEELED, x->a, &x->r[0], &why) > 0);
    assert_true(hand_plan_from(g, m, y, 1, &axis, &second, OT_FORM_PEELED, x->a, &x->r[1], &why) >
                0);
    x->r[1].id = 1;
    x->p = (ot_plan){.arena = x->a, .regions = x->r, .n_regions = 2, .unjoined_from = 1};
}

static void done(rig *x)
{
    ot_model_free(x->m);
    ot_arena_free(x->a);
}

static void rewrite(rig *x)
{
    assert_int_equal(ot_transform_tiles(x->m->graph, &x->p), OT_OK);
    assert_int_equal(ot_verify(x->m->graph), OT_OK);
}

/* Live nodes of that operator in the graph and its bodies. */
static uint32_t count(const ot_graph *g, const char *op)
{
    uint32_t n = 0;
    for (ot_id i = 0; i < g->n_nodes; i++) {
        const ot_node *k = &g->nodes[i];
        if (k->dead) continue;
        n += strcmp(k->op_type, op) == 0;
        for (uint32_t j = 0; j < k->n_attrs; j++)
            if (k->attrs[j].kind == OT_ATTR_GRAPH) n += count(k->attrs[j].g, op);
    }
    return n;
}

/* In three Loops: the first and the last tile touch two pieces, those between three. */
static void pieces_are_taken(void **state)
{
    (void)state;
    rig x;
    build(&x, FIRST SECOND, 16, 16);
    rewrite(&x);
    assert_int_equal(count(x.m->graph, "SequenceAt"), 2 + 3 + 2);
    assert_int_equal(count(x.m->graph, "ConcatFromSequence"), 1); /* y */
    const ot_value *m = &x.m->graph->values[ot_value_find(x.m->graph, "m")];
    assert_int_equal(m->producer, OT_NONE);
    assert_int_equal(m->n_uses, 0);
    done(&x);
}

/* What makes a value whole. */
static void others_are_joined(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t first, second;
        int64_t from;
        bool kept;
    } CASES[] = {
        {FIRST SECOND, 16, 16, 16 * 512 * 64 * 4, true},
        {FIRST SECOND, 16, 16, 16 * 512 * 64 * 4 + 1, false}, /* too small */
        {FIRST SECOND, 16, 16, 0, false},                     /* not asked for */
        {FIRST SECOND, 32, 8, 1, true},                       /* tiles of 16 rows, windows of 66 */
        /* windows of 24 lie anywhere in pieces of 32 */
        {FIRST SECOND, 16, 24, 1, true},
        /* much of a piece for little of a window; the last one is shorter */
        {FIRST SECOND, 3, 64, 1, false},
        /* another reader */
        {FIRST " %z = Relu(%m)\n output %z\n" SECOND, 16, 16, 1, false},
        /* handed out */
        {FIRST " output %m\n" SECOND, 16, 16, 1, false},
        /* two readers in the region */
        {FIRST " %q = Conv(%m, %p)\n %s = Relu(%q)\n %y = Add(%s, %m)\n", 16, 16, 1, true},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        rig x;
        build(&x, CASES[k].body, CASES[k].first, CASES[k].second);
        x.p.unjoined_from = CASES[k].from;
        rewrite(&x);
        if ((count(x.m->graph, "SequenceAt") > 0) != CASES[k].kept) fail_msg("case %zu", k);
        if (count(x.m->graph, "ConcatFromSequence") != (CASES[k].kept ? 1 : 2))
            fail_msg("case %zu: joined", k);
        done(&x);
    }
}

static int64_t growth(int64_t from, uint32_t tiles)
{
    rig x;
    ot_target t;
    ot_diag d;
    ot_sim_figures f;
    build(&x, FIRST SECOND, tiles, tiles);
    x.p.unjoined_from = from;
    rewrite(&x);
    assert_int_equal(ot_target_load("cpu-generic", 1, &d, &t), OT_OK);
    assert_int_equal(ot_sim_growth(x.m->graph, t.runtime, true, &f), OT_OK);
    ot_target_free(&t);
    done(&x);
    return f.growth;
}

/* m and y take 2 MB each. Joined, m is there as pieces, too, then as a whole beside y's pieces;
 * its pieces go when y's last tile is made. */
static void a_process_saves_them(void **state)
{
    (void)state;
    const int64_t joined = growth(0, 16), kept = growth(1, 16);
    if (kept >= joined - (INT64_C(1) << 20))
        fail_msg("%lld joined, %lld in pieces", (long long)joined, (long long)kept);
}

/* Let 0, 1, 2... blocks through: either the memory error comes back, or all is well. */
static void memory_runs_out(void **state)
{
    (void)state;
    bool ok = false;
    for (long n = 0; n < 1000 && !ok; n++) {
        rig x;
        build(&x, FIRST SECOND, 16, 16);
        ot_set_alloc_hook(stingy);
        allowed = n;
        const ot_status s = ot_transform_tiles(x.m->graph, &x.p);
        allowed = 1000000;
        assert_true(s == OT_OK || s == OT_E_NOMEM);
        ok = s == OT_OK;
        done(&x);
        ot_set_alloc_hook(NULL);
    }
    assert_true(ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_taken),
        cmocka_unit_test(others_are_joined),
        cmocka_unit_test(a_process_saves_them),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
