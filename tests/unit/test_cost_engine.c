/* What the planner believes of the engine, against the engine itself and against sums by hand:
 * which convolutions take Winograd's algorithm, attention as one step, what joins a convolution,
 * transposed convolutions.
 */
#include "engine_check.h"

#include "engine/cpu/conv/winograd.h"
#include "select/search/plan_search.h"
#include "select/search/search.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* A planned model: sequence and target. */
typedef struct planned {
    ot_diag d;
    ot_model *m;
    ot_arena *a;
    ot_target t;
    ot_seq s;
} planned;

static ot_target engine_target(const char *name)
{
    ot_target t = {.fast_bytes = 1 << 19,
                   .granule = 64,
                   .cores = 1,
                   .is_cache = true,
                   .runtime = &ot_runtime_onnxruntime,
                   .bw_fast = 100e9,
                   .bw_mid = 40e9,
                   .mid_bytes = 32 << 20,
                   .bw_slow = 18e9,
                   .rate_conv = 40e9,
                   .rate_conv_depthwise = 20e9,
                   .rate_conv_pointwise = 42e9,
                   .rate_gemm = 41e9,
                   .rate_elem = 40e9,
                   .rate_trans = 2e9,
                   .rate_reduce = 3e9,
                   .rate_pool = 1e9,
                   .node_overhead = 1e-6,
                   .loop_overhead = 1e-6,
                   .region_overhead = 1e-6};
    snprintf(t.name, sizeof t.name, "%s", name);
    ot_target_set_engine(&t);
    return t;
}

static void open_plan(planned *p, const char *graph, ot_target t)
{
    *p = (planned){.t = t};
    p->m = text_model(graph, &p->d);
    p->a = ot_arena_new();
    assert_non_null(p->a);
    assert_int_equal(ot_infer_shapes(p->m->graph, NULL, 0), OT_OK);
    assert_int_equal(ot_seq_build(p->m->graph, p->a, &p->s), OT_OK);
    assert_int_equal(ot_cost_fill(&p->s, &p->t), OT_OK);
}

static void close_plan(planned *p)
{
    ot_arena_free(p->a);
    ot_model_free(p->m);
}

/* Position of the node of that name. */
static uint32_t at(const planned *p, const char *name)
{
    for (uint32_t k = 0; k < p->s.n; k++)
        if (strcmp(p->m->graph->nodes[p->s.node[k]].name, name) == 0) return k;
    fail_msg("there is no node %s", name);
    return 0;
}

static ot_id out_of(const planned *p, const char *name)
{
    return p->m->graph->nodes[p->s.node[at(p, name)]].out[0];
}

/* ---- Winograd ---- */

/* By how much the engine's weights exceed the model's must be what the planner gave room for. */
static void check_agreement(const char *graph, uint32_t taken)
{
    planned p;
    bench b;
    int64_t room = 0;
    uint32_t n = 0;
    open_plan(&p, graph, engine_target("host")); /* of this machine's vectors */
    for (uint32_t k = 0; k < p.s.n; k++) {
        if (p.s.wino_room[k] <= 0) continue;
        room += p.s.wino_room[k] - 1;
        n++;
    }
    open_text(&b, graph);
    assert_int_equal(b.s->winograd_growth, room);
    if (ot_winograd_block() == 8) assert_int_equal(n, taken);
    close_bench(&b);
    close_plan(&p);
}

/* oneDNN reads its limit once: each is looked at in a process of its own, before anything else
 * asks. */
static void vectors_are_the_same(void **state)
{
    (void)state;
    static const char *const limits[] = {"",    "SSE41",    "avx2", "AVX2_VNNI", "AVX512_CORE",
                                         "ALL", "something"};
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        pid_t child = fork();
        if (child == 0) {
            setenv("ONEDNN_MAX_CPU_ISA", limits[k], 1);
            _exit(ot_winograd_block() == ot_cpu_lanes() ? 0 : 1);
        }
        int said = 1;
        assert_true(child > 0 && waitpid(child, &said, 0) == child);
        if (said != 0)
            fail_msg("with the limit '%s' the engine's vectors are others than the planner's",
                     limits[k]);
    }
}

static void planner_and_engine_choose_the_same(void **state)
{
    (void)state;
    check_agreement("input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %y",
                    1);
    check_agreement("input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[1,1,1,1], strides=[2,2]}\noutput %y",
                    0);
    check_agreement("input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[2,2,2,2], dilations=[2,2]}\noutput %y",
                    1);
    check_agreement("input %x : float32[2,32,61,47]\ninit %w : float32[32,32,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {dilations=[3,3]}\noutput %y",
                    1);
    check_agreement("input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[1,1,1,1], dilations=[2,2]}\noutput %y",
                    0);
    check_agreement("input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[2,3,2,3], dilations=[2,3]}\noutput %y",
                    0);
    check_agreement("input %x : float32[1,32,60,60]\ninit %w : float32[32,1,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[1,1,1,1], group=32}\noutput %y",
                    0);
    check_agreement("input %x : float32[1,3,60,60]\ninit %w : float32[32,3,3,3] = random 1\n"
                    "%y = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %y",
                    0);
    check_agreement(
        "input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
        /* two activations in one pass */
        "%y = Conv(%x, %w) {pads=[1,1,1,1]}\n%z = Relu(%y)\n%u = Sigmoid(%z)\noutput %u",
        0);
    check_agreement(
        "input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n" /* Silu */
        "%y = Conv(%x, %w) {pads=[1,1,1,1]}\n%z = Sigmoid(%y)\n%u = Mul(%y, %z)\noutput %u",
        0);
    check_agreement(
        "input %x : float32[1,32,60,60]\ninit %w : float32[32,32,3,3] = random 1\n"
        /* residual and activation */
        "%y = Conv(%x, %w) {pads=[1,1,1,1]}\n%z = Add(%y, %x)\n%u = Relu(%z)\noutput %u",
        1);
}

/* Layers that are wanted after the room is used up are direct ones, in both. */
static void room_ends_in_order(void **state)
{
    (void)state;
    char graph[8192];
    int n = snprintf(graph, sizeof graph, "input %%v0 : float32[1,128,48,48]\n");
    for (int k = 0; k < 9; k++)
        n += snprintf(graph + n, sizeof graph - (size_t)n,
                      "init %%w%d : float32[128,128,3,3] = random %d\n%%v%d = Conv(%%v%d, %%w%d) "
                      "{pads=[1,1,1,1]}\n",
                      k, k + 1, k + 1, k, k);
    snprintf(graph + n, sizeof graph - (size_t)n, "output %%v9\n");
    int64_t one = (64 - 9) * 128 * 128 * 4, all = 22 << 20; /* F(6x6, 3x3) holds 64 numbers for 9 */
    check_agreement(graph, (uint32_t)(all / one));
}

/* Seconds of the convolution at position 0 in n tiles of `rows` rows. */
static double seconds_in_tiles(const planned *p, int64_t rows, int64_t n, int64_t extent)
{
    ot_share cut = {.axis = 2, .made = (double)(rows * n) / (double)extent, .tiles = (double)n};
    return ot_cost_winograd(&p->s, 0, &p->t, &cut, 1);
}

static void blocks_filled_in_part_cost_whole_ones(void **state)
{
    (void)state;
    planned p;
    open_plan(&p,
              "input %x : float32[1,64,192,192]\ninit %w : float32[64,64,3,3] = random 1\n"
              "%y = Conv(%x, %w) {pads=[1,1,1,1]}\noutput %y",
              engine_target("elsewhere"));
    double whole = ot_cost_winograd(&p.s, 0, &p.t, NULL, 0), macs = 9.0 * 64 * 64 * 192 * 192;
    /* 5.06 times less */
    assert_true(whole > 0 && whole < macs / p.t.rate_conv / 1.8 &&
                whole > macs / p.t.rate_conv / 5);
    double even = seconds_in_tiles(&p, 24, 8, 192), odd = seconds_in_tiles(&p, 25, 8, 192),
           more = seconds_in_tiles(&p, 30, 8, 192);
    assert_true(even > whole * 0.95 && even < whole * 1.3);
    assert_true(odd > even * 1.04);  /* a fifth row of blocks, or smaller ones */
    assert_true(more > odd * 0.999); /* up to a multiple of the block rows are free, or nearly */
    double thin = seconds_in_tiles(&p, 1, 192, 192);
    assert_true(thin == 0 || thin > 1.5 * whole); /* one row of each block */
    p.t.rate_conv_winograd = 2 * p.t.rate_conv / 0.85;
    assert_true(fabs(ot_cost_winograd(&p.s, 0, &p.t, NULL, 0) / whole - 0.5) < 1e-9);
    close_plan(&p);
}

/* ---- attention ---- */

#define OPERANDS "input %k : float32[2,32,256]\ninput %v : float32[2,256,32]\n"
#define HEADS    "input %q : float32[2,256,32]\n" OPERANDS "init %f : float32[] = fill 0.125\n"
#define PLAIN                                                                                      \
    "%s = MatMul(%q, %k) \"scores\"\n%p = Softmax(%s) {axis=-1} \"softmax\"\n%y = MatMul(%p, %v) " \
    "\"mix\"\n"

static void scores_are_never_stored(void **state)
{
    (void)state;
    planned p;
    open_plan(
        &p,
        HEADS
        "%q1 = Relu(%q) \"relu\"\n%s = MatMul(%q1, %k) \"scores\"\n%t = Mul(%s, %f) \"scale\"\n"
        "%p = Softmax(%t) {axis=-1} \"softmax\"\n%y = MatMul(%p, %v) \"mix\"\n%z = Relu(%y) "
        "\"last\"\noutput %z",
        engine_target("elsewhere"));
    const int64_t rows = 2 * 256 * 32 * 4;
    uint32_t first = at(&p, "scores"), last = at(&p, "mix");
    assert_int_equal(p.s.bytes[out_of(&p, "scores")], 0);
    assert_int_equal(p.s.bytes[out_of(&p, "scale")], 0);
    assert_int_equal(p.s.bytes[out_of(&p, "softmax")], 0);
    assert_int_equal(p.s.bytes[out_of(&p, "mix")], rows);
    /* Relu's result and that of the attention; 0.5 MB of scores are not there */
    assert_int_equal(p.s.peak, 2 * rows);
    for (uint32_t k = first; k <= last; k++) {
        assert_int_equal(p.s.tail[k], last);
        assert_int_equal(p.s.head[k], first);
    }
    assert_true(p.s.inside[first + 1] && p.s.inside[last] && !p.s.inside[first] &&
                !p.s.inside[last + 1]);
    double products = 2.0 * 2 * 256 * 256 * 32 / p.t.rate_gemm,
           exponentials = 2.0 * 256 * 256 / p.t.rate_trans;
    double took = p.s.time[last + 1] - p.s.time[first];
    assert_true(took > products + exponentials && took < 1.5 * (products + exponentials));
    close_plan(&p);
}

static void other_groups_store_scores(void **state)
{
    (void)state;
    /* read outside */
    const char *graphs[] = {
        HEADS PLAIN "output %y\noutput %s",
        HEADS
        "%s = MatMul(%q, %k) \"scores\"\n%p = Softmax(%s) {axis=1} \"softmax\"\n" /* another axis */
        "%y = MatMul(%p, %v) \"mix\"\noutput %y",
        /* few queries */
        "input %q : float32[2,4,32]\n" OPERANDS PLAIN "output %y"};
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        planned p;
        open_plan(&p, graphs[k], engine_target("elsewhere"));
        assert_true(p.s.bytes[out_of(&p, "scores")] > 0 && p.s.bytes[out_of(&p, "softmax")] > 0);
        assert_int_equal(p.s.tail[at(&p, "mix")], OT_NONE);
        close_plan(&p);
    }
    const ot_runtime *others[] = {&ot_runtime_onnxruntime, &ot_runtime_engine_device};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        planned p;
        ot_target t = engine_target("elsewhere");
        t.runtime = others[k];
        open_plan(&p, HEADS PLAIN "output %y", t);
        assert_int_equal(p.s.bytes[out_of(&p, "scores")], 2 * 256 * 256 * 4);
        assert_int_equal(p.s.wino_room[0], -1);
        close_plan(&p);
    }
}

/* Queries go by panels of 16, and each tile packs K and V. */
static void queries_go_by_sixteen(void **state)
{
    (void)state;
    planned p;
    open_plan(&p, HEADS PLAIN "output %y", engine_target("elsewhere"));
    uint32_t soft = at(&p, "softmax"), mix = at(&p, "mix");
    ot_share of_20 = {1, 20.0 * 12 / 256, 12}, of_32 = {1, 32.0 * 8 / 256, 8}, of_128 = {1, 1, 2};
    double c = 1e-3, a = ot_cost_compute_cut(&p.s, soft, &p.t, c, &of_20, 1);
    double b = ot_cost_compute_cut(&p.s, soft, &p.t, c, &of_32, 1);
    assert_true(fabs(a / 12 - b / 8) < 1e-12); /* a tile of 20 takes as long as one of 32 */
    assert_true(fabs(b - c) < 1e-12);
    double small = ot_cost_compute_cut(&p.s, mix, &p.t, c, &of_32, 1),
           large = ot_cost_compute_cut(&p.s, mix, &p.t, c, &of_128, 1);
    /* four times as many tiles */
    assert_true(large > c && fabs((small - c) / (large - c) - 4) < 1e-9);
    close_plan(&p);
}

/* No plan cuts through the group. */
static void plans_keep_attention_whole(void **state)
{
    (void)state;
    for (int goal = 0; goal < 3; goal++) {
        planned p;
        ot_plan *plan = NULL;
        ot_plan_options o = {.goal = goal == 1 ? OT_GOAL_MEMORY : OT_GOAL_TIME, .force = goal == 2};
        o.max_slowdown = 0.1;
        open_plan(&p,
                  "input %x : float32[2,256,32]\n" OPERANDS
                  "init %w : float32[32,64] = random 3\n%q = Relu(%x) \"relu\"\n" PLAIN
                  "%z = MatMul(%y, %w) \"next\"\n%u = Relu(%z) \"end\"\noutput %u",
                  engine_target("elsewhere"));
        p.t.fast_bytes = 48 << 10;
        assert_int_equal(ot_assure(p.m->graph, OT_P_ORDER | OT_P_USES | OT_P_SHAPES), OT_OK);
        assert_int_equal(ot_plan_graph(p.m->graph, &p.t, &o, &plan), OT_OK);
        for (uint32_t r = 0; r < plan->n_regions; r++) {
            uint32_t inside = 0;
            for (uint32_t k = 0; k < plan->regions[r].n_nodes; k++) {
                uint32_t at_node = p.s.pos[plan->regions[r].nodes[k].node];
                inside += at_node >= at(&p, "scores") && at_node <= at(&p, "mix");
            }
            assert_true(inside == 0 || inside == 3);
        }
        if (goal == 2) assert_true(plan->n_regions > 0);
        ot_plan_free(plan);
        close_plan(&p);
    }
}

/* ---- convolutions ---- */

static void some_operators_join_a_convolution(void **state)
{
    (void)state;
    const struct {
        const char *text;
        bool joins;
    } cases[] = {{"Relu(%y)", true},    {"Sigmoid(%y)", true}, {"Elu(%y)", true},
                 {"Mul(%y, %f)", true}, {"Tanh(%y)", false},   {"PRelu(%y, %f)", false},
                 {"Mul(%y, %x)", false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char graph[1024];
        planned p;
        snprintf(graph, sizeof graph,
                 "input %%x : float32[1,16,32,32]\ninit %%w : float32[16,16,3,3] = random 1\n"
                 "init %%f : float32[16,1,1] = fill 0.5\n%%y = Conv(%%x, %%w) {pads=[1,1,1,1]} "
                 "\"conv\"\n%%z = %s \"after\"\n"
                 "%%u = Relu(%%z) \"end\"\noutput %%u",
                 cases[k].text);
        open_plan(&p, graph, engine_target("elsewhere"));
        if (p.s.fused[at(&p, "after")] != cases[k].joins) fail_msg("%s", cases[k].text);
        assert_true(p.s.fused[at(&p, "end")]); /* with whatever is before */
        assert_int_equal(p.s.head[at(&p, "end")], at(&p, cases[k].joins ? "conv" : "after"));
        close_plan(&p);
    }
}

/* A chain reads x once, however many of its operators do. */
static void chains_read_once(void **state)
{
    (void)state;
    planned p;
    open_plan(
        &p,
        "input %x : float32[1,8,1024,1024]\n%s = Sigmoid(%x) \"gate\"\n%y = Mul(%x, %s) \"mul\"\n"
        "%z = Add(%y, %x) \"add\"\noutput %z",
        engine_target("elsewhere"));
    assert_true(p.s.traffic[p.s.n] == 2.0 * 8 * 1024 * 1024 * 4);
    /* and while it computes */
    double bytes = p.s.traffic[p.s.n], n = 8.0 * 1024 * 1024,
           computes = n / p.t.rate_trans + 2 * n / p.t.rate_elem;
    assert_true(computes > bytes / p.t.bw_slow &&
                p.s.time[p.s.n] < computes + 0.4 * bytes / p.t.bw_slow);
    close_plan(&p);
}

/* The engine has no column buffer: an array of the result's size, whatever the kernel. */
static void transposed_convolutions(void **state)
{
    (void)state;
    planned p;
    open_plan(&p,
              "input %x : float32[1,32,40,40]\ninit %w : float32[32,16,4,4] = random 1\n"
              "%y = ConvTranspose(%x, %w) {strides=[2,2], pads=[1,1,1,1]}\noutput %y",
              engine_target("elsewhere"));
    assert_true(p.s.work[0] == 16.0 * 80 * 80 * 4);
    ot_node_cost c;
    ot_cost_node(&p.s, 0, &p.t, &c);
    double macs = 32.0 * 40 * 40 * 16 * 16;
    assert_true(c.macs == macs && c.compute >= macs / p.t.rate_conv &&
                c.compute < 1.5 * macs / p.t.rate_conv);
    ot_share thin = {2, 1, 80}, thick = {2, 1, 4}; /* tiles of 1 row, of 20 */
    assert_true(ot_cost_compute_cut(&p.s, 0, &p.t, c.compute, &thin, 1) > 5 * c.compute);
    assert_true(ot_cost_compute_cut(&p.s, 0, &p.t, c.compute, &thick, 1) < 1.1 * c.compute);
    close_plan(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_the_same),
        cmocka_unit_test(planner_and_engine_choose_the_same),
        cmocka_unit_test(room_ends_in_order),
        cmocka_unit_test(blocks_filled_in_part_cost_whole_ones),
        cmocka_unit_test(scores_are_never_stored),
        cmocka_unit_test(other_groups_store_scores),
        cmocka_unit_test(queries_go_by_sixteen),
        cmocka_unit_test(plans_keep_attention_whole),
        cmocka_unit_test(some_operators_join_a_convolution),
        cmocka_unit_test(chains_read_once),
        cmocka_unit_test(transposed_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
